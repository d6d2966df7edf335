/* Client, vault and the parent's store broker together, over real files and commands; and the
 * client against a vault that dies. */
#include "env_block.h"
#include "ipc.h"
#include "proc.h"
#include "secret_client.h"
#include "secret_list.h"
#include "store.h"
#include "store_broker.h"
#include "tap_main.h"
#include "vault.h"
#include "wire.h"

#include <event2/event.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static void test_login_name(void)
{
    static const struct {
        const char *told, *name;
    } rows[] = {
        {"redis bob", "bob"},    {"redis 12345678", "12345678"},
        {"redis 123456789", ""}, {"redis a b", "a b"},
        {"redis ", ""},          {"redis", ""},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct secret *s = secret_new(rows[i].told, strlen(rows[i].told));
        CU_ASSERT_PTR_NOT_NULL_FATAL(s);
        CU_ASSERT(slice_eq_str(secret_client_login_name(s, 8), rows[i].name));
        secret_unref(s);
    }
    CU_ASSERT_EQUAL(secret_client_login_name(NULL, 8).n, 0);
}

void suite_secret_client(void);

static char dir[] = "/tmp/durward-test-client-XXXXXX";
static char path[sizeof dir + 16];
static const char *const counted[] = {"sh", "-c", "echo run >> \"$HOME/runs\"; echo token", NULL};
static const char *const slow[] = {"sh", "-c", "echo $$ > \"$HOME/pid\"; sleep 60", NULL};
static struct config_secret list[] = {
    {.name = "gh", .store = STORE_ENV, .source = "GH", .kind = ""},
    {.name = "file", .store = STORE_FILE, .source = path, .kind = ""},
    {.name = "counted", .store = STORE_COMMAND, .command = counted, .kind = ""},
    {.name = "kept", .store = STORE_COMMAND, .command = counted, .kind = "", .ttl = 60},
    {.name = "slow", .store = STORE_COMMAND, .command = slow, .kind = ""},
};
static struct event_base *base;

/* The parent, as far as secrets go. */
static struct {
    struct vault *vault;
    struct ipc *control;
    struct store_broker *store_broker;
    struct event *child;
} world;

static int on_control(struct ipc *ch, struct msg *m, void *arg)
{
    (void)arg;
    return m->type == W_READY
               ? 0
               : store_broker_message(world.store_broker, ch, m, list, ARRAY_LEN(list));
}

static void on_closed(struct ipc *ch, const char *why, void *arg)
{
    (void)ch;
    (void)why;
    (void)arg;
}

static void on_child(evutil_socket_t fd, short what, void *arg)
{
    int status;
    pid_t pid;
    (void)fd;
    (void)what;
    (void)arg;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
        CU_ASSERT(store_broker_reaped(world.store_broker, pid, status));
}

static void start_vault(void)
{
    int fds[2];
    struct msg m;
    struct buf b;
    CU_ASSERT_EQUAL_FATAL(ipc_pair(fds, NULL), 0);
    world.control = ipc_new(base, fds[0], on_control, on_closed, NULL);
    world.vault = vault_new(base, fds[1], false, NULL);
    msg_init(&m, W_INIT);
    msg_put_u32(&m, ARRAY_LEN(list));
    for (size_t i = 0; i < ARRAY_LEN(list); i++) {
        msg_put_str(&m, list[i].name);
        msg_put_u8(&m, (uint8_t)list[i].store);
        msg_put_u32(&m, list[i].ttl);
        msg_put_u8(&m, 0);
    }
    env_block_begin(&b);
    CU_ASSERT_EQUAL(env_block_add(&b, "gh", SLICE("ghp_real"), NULL), 0);
    msg_put_fd(&m, env_block_end(&b, NULL));
    CU_ASSERT_EQUAL(ipc_send(world.control, &m), 0);
}

static void stop_vault(void)
{
    vault_free(world.vault);
    ipc_free(world.control);
    store_broker_vault_gone(world.store_broker);
}

/* The injector's end of a new channel to the vault. */
static int channel(void)
{
    static const char *const names[] = {"gh", "file", "counted", "kept", "slow"};
    int fds[2];
    struct msg m;
    struct buf b;
    CU_ASSERT_EQUAL_FATAL(ipc_pair(fds, NULL), 0);
    buf_init(&b, 1024);
    CU_ASSERT_EQUAL(secret_list_pack(&b, names, ARRAY_LEN(names)), 0);
    msg_init(&m, W_PEER);
    msg_put_u8(&m, ROLE_INJECTOR);
    msg_put_u32(&m, 1);
    msg_put_str(&m, "");
    msg_put_str(&m, "coder");
    msg_put_u32(&m, 1);
    msg_put_u32(&m, 0); /* wire */
    msg_put_slice(&m, buf_slice(&b));
    msg_put_fd(&m, fds[0]);
    CU_ASSERT_EQUAL(ipc_send(world.control, &m), 0);
    buf_free(&b);
    return fds[1];
}

static int setup(void)
{
    base = event_base_new();
    if (base == NULL || mkdtemp(dir) == NULL)
        return -1;
    snprintf(path, sizeof path, "%s/secret", dir);
    setenv("HOME", dir, 1);
    world.store_broker = store_broker_new(base);
    world.child = evsignal_new(base, SIGCHLD, on_child, NULL);
    return world.store_broker && event_add(world.child, NULL) == 0 ? 0 : -1;
}

static int teardown(void)
{
    static const char *const names[] = {"/secret", "/runs", "/pid", ""};
    char p[128];
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        snprintf(p, sizeof p, "%s%s", dir, names[i]);
        remove(p);
    }
    store_broker_free(world.store_broker);
    event_free(world.child);
    event_base_free(base);
    return 0;
}

struct seen {
    unsigned good, bad;
    char text[768];
    enum err_code code;
};

static void on_secret(void *arg, struct secret *value, const struct err *err)
{
    struct seen *s = arg;
    if (value) {
        s->good++;
        snprintf(s->text, sizeof s->text, "%.*s", SL(secret_slice(value)));
    } else {
        s->bad++;
        s->code = err->code;
        snprintf(s->text, sizeof s->text, "%s", err->text);
    }
}

static void on_sign(void *arg, struct slice signature, const struct err *err)
{
    (void)signature;
    *(struct err *)arg = *err;
}

static void stop_loop(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    *(bool *)arg = true;
}

/* Run until so many answers are here, ms at most. */
static void run_until(const struct seen *s, unsigned answers, int ms)
{
    struct timeval tv = {ms / 1000, ms % 1000 * 1000};
    bool over = false;
    struct event *ev = event_new(base, -1, 0, stop_loop, &over);
    event_add(ev, &tv);
    while (!over && s->good + s->bad < answers)
        event_base_loop(base, EVLOOP_ONCE);
    event_free(ev);
}

static unsigned runs(void)
{
    char p[128];
    struct stat st;
    snprintf(p, sizeof p, "%s/runs", dir);
    return stat(p, &st) == 0 ? (unsigned)(st.st_size / 4) : 0;
}

static void put_file(const char *text)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    CU_ASSERT_EQUAL(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
}

static void test_stores(void)
{
    struct secret_client *c = secret_client_new(base);
    struct seen env = {0}, file = {0}, cmd = {0}, no = {0};
    start_vault();
    secret_client_attach(c, channel(), 1);
    put_file("from a file\n");
    CU_ASSERT_PTR_NOT_NULL(secret_client_get(c, "gh", on_secret, &env));
    CU_ASSERT_PTR_NOT_NULL(secret_client_get(c, "file", on_secret, &file));
    CU_ASSERT_PTR_NOT_NULL(secret_client_get(c, "counted", on_secret, &cmd));
    secret_client_get(c, "elsewhere", on_secret, &no);
    run_until(&cmd, 1, 5000);
    run_until(&file, 1, 1000);
    run_until(&no, 1, 1000);
    CU_ASSERT_STRING_EQUAL(env.text, "ghp_real");
    CU_ASSERT_STRING_EQUAL(file.text, "from a file");
    CU_ASSERT_STRING_EQUAL(cmd.text, "token");
    CU_ASSERT_STRING_EQUAL(no.text, "secret elsewhere: not released to this policy");
    CU_ASSERT_EQUAL(no.code, ERR_DENIED);
    CU_ASSERT_PTR_NULL(secret_client_get(c, "gh", on_secret, &env)); /* at hand */
    CU_ASSERT_EQUAL(env.good, 2);
    secret_client_free(c);
    stop_vault();
}

static void test_shared_and_kept(void)
{
    struct secret_client *c = secret_client_new(base);
    struct seen a = {0}, b = {0}, gone = {0};
    start_vault();
    secret_client_attach(c, channel(), 1);
    unsigned before = runs();
    for (int i = 0; i < 5; i++)
        secret_client_get(c, "counted", on_secret, &a);
    secret_client_cancel(secret_client_get(c, "counted", on_secret, &gone));
    secret_client_cancel(NULL);
    run_until(&a, 5, 5000);
    CU_ASSERT_EQUAL(a.good, 5);
    CU_ASSERT_EQUAL(gone.good + gone.bad, 0);
    CU_ASSERT_EQUAL(runs(), before + 1); /* shared while under way */
    secret_client_get(c, "counted", on_secret, &a);
    run_until(&a, 6, 5000);
    CU_ASSERT_EQUAL(runs(), before + 2); /* ttl 0: asked each time */
    for (unsigned i = 1; i <= 3; i++) {
        secret_client_get(c, "kept", on_secret, &b);
        run_until(&b, i, 5000);
    }
    CU_ASSERT_EQUAL(b.good, 3);
    CU_ASSERT_EQUAL(runs(), before + 3);
    secret_client_free(c);
    stop_vault();
}

static void test_changed_file(void)
{
    struct secret_client *c = secret_client_new(base);
    struct seen s = {0};
    start_vault();
    secret_client_attach(c, channel(), 1);
    put_file("old");
    secret_client_get(c, "file", on_secret, &s);
    run_until(&s, 1, 2000);
    put_file("new");
    for (unsigned i = 0; i < 40 && strcmp(s.text, "new") != 0; i++) {
        struct seen never = {0};
        secret_client_get(c, "file", on_secret, &s);
        run_until(&never, 1, 100);
    }
    CU_ASSERT_STRING_EQUAL(s.text, "new"); /* within its second or two, without a restart */
    CU_ASSERT_EQUAL(s.bad, 0);
    CU_ASSERT_EQUAL(chmod(path, 0644), 0);
    for (unsigned i = 0; i < 40 && s.bad == 0; i++) {
        struct seen never = {0};
        secret_client_get(c, "file", on_secret, &s);
        run_until(&never, 1, 100);
    }
    CU_ASSERT_PTR_NOT_NULL(strstr(s.text, "chmod 600"));
    secret_client_free(c);
    stop_vault();
}

static void test_vault_dies(void)
{
    struct secret_client *c = secret_client_new(base);
    struct seen slow_one = {0}, s = {0}, never = {0};
    char p[128];
    start_vault();
    secret_client_attach(c, channel(), 1);
    secret_client_get(c, "slow", on_secret, &slow_one);
    snprintf(p, sizeof p, "%s/pid", dir);
    for (int i = 0; i < 50 && access(p, F_OK) < 0; i++)
        run_until(&never, 1, 20);
    stop_vault(); /* the command that ran for it is killed and reaped */
    start_vault();
    run_until(&never, 1, 100);
    CU_ASSERT_EQUAL(waitpid(-1, NULL, WNOHANG), -1);
    secret_client_attach(c, channel(), 1); /* asked again */
    run_until(&never, 1, 100);
    CU_ASSERT_EQUAL(slow_one.good + slow_one.bad, 0);
    secret_client_get(c, "gh", on_secret, &s);
    run_until(&s, 1, 2000);
    CU_ASSERT_EQUAL(s.good, 1);
    secret_client_free(c); /* the wait of `slow` is dropped */
    CU_ASSERT_EQUAL(slow_one.good + slow_one.bad, 0);
    stop_vault();
    run_until(&never, 1, 100);
}

static void test_no_vault(void)
{
    struct secret_client *c = secret_client_new(base);
    struct seen s = {0};
    secret_client_get(c, "gh", on_secret, &s);
    run_until(&s, 1, 4000);
    CU_ASSERT_EQUAL(s.bad, 1);
    CU_ASSERT_EQUAL(s.code, ERR_UNREADY);
    secret_client_free(c);
}

static void test_bad_vault(void)
{
    struct secret_client *c = secret_client_new(base);
    struct seen s = {0};
    struct msg m;
    int fds[2];
    CU_ASSERT_EQUAL_FATAL(ipc_pair(fds, NULL), 0);
    secret_client_attach(c, fds[0], 1);
    secret_client_get(c, "gh", on_secret, &s);
    CU_ASSERT_EQUAL(msg_recv(fds[1], &m), 1);
    msg_done(&m);
    msg_init(&m, W_SECRET); /* "here it is", and then nothing */
    msg_put_u32(&m, 1);
    msg_put_u8(&m, 1);
    msg_put_u32(&m, 10);
    msg_put_bytes(&m, "", 0);
    CU_ASSERT_EQUAL(msg_send(fds[1], &m), 0);
    msg_done(&m);
    run_until(&s, 1, 4000);
    CU_ASSERT_EQUAL(s.good, 0);
    CU_ASSERT_EQUAL(s.bad, 1);
    CU_ASSERT_EQUAL(msg_recv(fds[1], &m), 0);
    close(fds[1]);
    secret_client_free(c);
}

/* What the vault was asked on this channel: how often, and the number of the last. */
static unsigned asked_of(int fd, uint32_t *req)
{
    struct msg m;
    struct pollfd p = {.fd = fd, .events = POLLIN};
    unsigned n = 0;
    event_base_loop(base, EVLOOP_NONBLOCK);
    while (poll(&p, 1, 0) == 1 && msg_recv(fd, &m) == 1) {
        CU_ASSERT_EQUAL(m.type, W_SECRET_GET);
        CU_ASSERT_EQUAL(msg_get_u32(&m, req), 0);
        msg_done(&m);
        n++;
    }
    return n;
}

static void say(int fd, uint32_t req, bool ok, const char *text)
{
    struct msg m;
    msg_init(&m, W_SECRET);
    msg_put_u32(&m, req);
    msg_put_u8(&m, ok);
    msg_put_u32(&m, 0);
    msg_put_str(&m, text);
    CU_ASSERT_EQUAL(msg_send(fd, &m), 0);
    msg_done(&m);
    event_base_loop(base, EVLOOP_NONBLOCK);
}

/* Who can go on without: a failure is told at once and asked for anew once its time is over, and
 * nobody waits for the answer. */
static void test_failed_lately(void)
{
    struct secret_client *c = secret_client_new(base);
    struct seen s = {0}, own = {0}, never = {0};
    uint32_t req = 0;
    int fds[2];
    CU_ASSERT_EQUAL_FATAL(ipc_pair(fds, NULL), 0);
    secret_client_attach(c, fds[0], 1);
    secret_client_look(c, "gh", on_secret, &s); /* the first time it is waited for */
    CU_ASSERT_EQUAL_FATAL(asked_of(fds[1], &req), 1);
    CU_ASSERT_EQUAL(s.bad, 0);
    say(fds[1], req, false, "no");
    CU_ASSERT_EQUAL_FATAL(s.bad, 1);
    for (unsigned i = 2; i <= 50; i++) {
        CU_ASSERT_PTR_NULL(secret_client_look(c, "gh", on_secret, &s));
        CU_ASSERT_EQUAL(s.bad, i);
    }
    CU_ASSERT_STRING_EQUAL(s.text, "secret gh: no");
    CU_ASSERT_EQUAL(asked_of(fds[1], &req), 0);
    run_until(&never, 1, SECRET_CLIENT_RETRY_MS + 50);
    secret_client_look(c, "gh", on_secret, &s);
    CU_ASSERT_EQUAL(s.bad, 51); /* at once */
    CU_ASSERT_EQUAL_FATAL(asked_of(fds[1], &req), 1);
    say(fds[1], req, false, "no");
    run_until(&never, 1, SECRET_CLIENT_RETRY_MS + 50); /* now it is twice that */
    secret_client_look(c, "gh", on_secret, &s);
    CU_ASSERT_EQUAL(asked_of(fds[1], &req), 0);
    secret_client_get(c, "gh", on_secret, &own); /* who needs it asks */
    CU_ASSERT_EQUAL_FATAL(asked_of(fds[1], &req), 1);
    say(fds[1], req, true, "value");
    CU_ASSERT_EQUAL(own.good, 1);
    secret_client_look(c, "gh", on_secret, &s); /* nothing of the failure is left */
    CU_ASSERT_EQUAL_FATAL(asked_of(fds[1], &req), 1);
    say(fds[1], req, true, "value");
    CU_ASSERT_EQUAL(s.good, 1);
    close(fds[1]);
    secret_client_free(c);
}

/* Answers that are owed: one sandbox has its part of them. */
static void test_signs(void)
{
    struct secret_client *c = secret_client_new(base);
    static struct err last;
    int fds[2];
    CU_ASSERT_EQUAL_FATAL(ipc_pair(fds, NULL), 0);
    secret_client_attach(c, fds[0], 1);
    unsigned n = 0;
    while (n < 2 * SECRET_CLIENT_SIGNS &&
           secret_client_sign_text(c, "a", "k", 0, SLICE("text"), on_sign, &last))
        n++;
    CU_ASSERT_EQUAL(n, SECRET_CLIENT_SIGNS / 2);
    CU_ASSERT_EQUAL(last.code, ERR_LIMIT);
    CU_ASSERT_PTR_NOT_NULL(secret_client_sign_text(c, "b", "k", 0, SLICE("text"), on_sign, &last));
    close(fds[1]);
    secret_client_free(c);
}

void suite_secret_client(void)
{
    CU_pSuite s = CU_add_suite("secret_client", setup, teardown);
    CU_add_test(s, "all stores, through vault and store broker", test_stores);
    CU_add_test(s, "shared while under way, kept for the ttl", test_shared_and_kept);
    CU_add_test(s, "a file that changes", test_changed_file);
    CU_add_test(s, "a vault that dies", test_vault_dies);
    CU_add_test(s, "no vault", test_no_vault);
    CU_add_test(s, "a vault that talks nonsense", test_bad_vault);
    CU_add_test(s, "what failed lately is not asked for again", test_failed_lately);
    CU_add_test(s, "answers owed to one sandbox are bounded", test_signs);
    CU_add_test(s, "whom a login is", test_login_name);
}

void tap_suites(void)
{
    suite_secret_client();
}
