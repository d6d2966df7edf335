/* The vault over its channels, with this test as parent and as injectors. */
#include "env_block.h"
#include "loop_bed.h"
#include "ipc.h"
#include "proc.h"
#include "secret_list.h"
#include "tap_main.h"
#include "vault.h"
#include "vault_entry.h"
#include "wire.h"

#include <event2/event.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void suite_vault(void);

static void on_readable(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    *(short *)arg = what;
}

/* Run the vault's loop until a message is here. 1, 0 at the end, -1 when none came in time. */
static int receive_within(int fd, struct msg *m, int ms)
{
    struct timeval tv = {ms / 1000, ms % 1000 * 1000};
    short what = 0;
    struct event *ev = event_new(base, fd, EV_READ, on_readable, &what);
    event_add(ev, &tv);
    while (what == 0)
        event_base_loop(base, EVLOOP_ONCE);
    event_free(ev);
    return what & EV_READ ? msg_recv(fd, m) : -1;
}

static unsigned states; /* W_STORE_STATE that came */

static int receive_but_states(int fd, struct msg *m, int ms)
{
    int r;
    while ((r = receive_within(fd, m, ms)) == 1 && m->type == W_STORE_STATE) {
        states++;
        msg_done(m);
    }
    return r;
}

static int receive(int fd, struct msg *m)
{
    return receive_but_states(fd, m, 3000);
}

static bool silent(int fd)
{
    struct msg m;
    int r = receive_but_states(fd, &m, 60);
    if (r == 1)
        msg_done(&m);
    return r == -1;
}

struct world {
    struct vault *vault;
    int control;
};

static int env_memfd(void)
{
    struct buf b;
    env_block_begin(&b);
    CU_ASSERT_EQUAL(env_block_add(&b, "gh", SLICE("ghp_real"), NULL), 0);
    CU_ASSERT_EQUAL(env_block_add(&b, "dirty", SLICE("a\nb"), NULL), 0);
    return env_block_end(&b, NULL);
}

static void put_secret(struct msg *m, const char *name, enum store_kind store, uint32_t ttl)
{
    msg_put_str(m, name);
    msg_put_u8(m, (uint8_t)store);
    msg_put_u32(m, ttl);
    msg_put_u8(m, 0);
}

static struct world start(void)
{
    int fds[2];
    struct msg m;
    struct world w;
    CU_ASSERT_EQUAL_FATAL(ipc_pair(fds, NULL), 0);
    w.vault = vault_new(base, fds[0], false, NULL);
    w.control = fds[1];
    CU_ASSERT_PTR_NOT_NULL_FATAL(w.vault);
    msg_init(&m, W_INIT);
    msg_put_u32(&m, 6);
    put_secret(&m, "gh", STORE_ENV, 0);
    put_secret(&m, "dirty", STORE_ENV, 0);
    put_secret(&m, "unset", STORE_ENV, 0);
    put_secret(&m, "file", STORE_FILE, 0);
    put_secret(&m, "cmd", STORE_COMMAND, 0);
    put_secret(&m, "kept", STORE_COMMAND, 60);
    msg_put_fd(&m, env_memfd());
    CU_ASSERT_EQUAL(msg_send(w.control, &m), 0);
    msg_done(&m);
    CU_ASSERT_EQUAL_FATAL(receive(w.control, &m), 1);
    CU_ASSERT_EQUAL(m.type, W_READY);
    msg_done(&m);
    return w;
}

static void stop(struct world w)
{
    vault_free(w.vault);
    close(w.control);
}

static int injector_with(struct world w, uint32_t number, uint8_t kind, struct slice extra)
{
    int fds[2];
    struct msg m;
    CU_ASSERT_EQUAL_FATAL(ipc_pair(fds, NULL), 0);
    msg_init(&m, W_PEER);
    msg_put_u8(&m, kind);
    msg_put_u32(&m, number);
    msg_put_str(&m, "");
    msg_put_str(&m, "coder");
    msg_put_u32(&m, 1);
    msg_put_u32(&m, 0); /* wire */
    msg_put_slice(&m, extra);
    msg_put_fd(&m, fds[0]);
    CU_ASSERT_EQUAL(msg_send(w.control, &m), 0);
    msg_done(&m);
    event_base_loop(base, EVLOOP_NONBLOCK);
    return fds[1];
}

static int injector(struct world w, uint32_t number, const char *const *names, size_t n)
{
    struct buf b;
    buf_init(&b, 4096);
    CU_ASSERT_EQUAL(secret_list_pack(&b, names, n), 0);
    int fd = injector_with(w, number, ROLE_INJECTOR, buf_slice(&b));
    buf_free(&b);
    return fd;
}

static const char *const all[] = {"gh", "dirty", "unset", "file", "cmd", "kept", "no-such"};

static void get(int ch, uint32_t req, const char *name)
{
    struct msg m;
    msg_init(&m, W_SECRET_GET);
    msg_put_u32(&m, req);
    msg_put_str(&m, name);
    CU_ASSERT_EQUAL(msg_send(ch, &m), 0);
    msg_done(&m);
}

/* The next W_SECRET is this value (or this reason, when !ok). Returns its ttl. */
static uint32_t expect(int ch, uint32_t req, bool ok, const char *text)
{
    struct msg m;
    uint32_t got_req = 0, ttl = 0;
    uint8_t got_ok = 0;
    struct slice value;
    int r = receive(ch, &m);
    CU_ASSERT_EQUAL(r, 1);
    if (r != 1)
        return 0;
    CU_ASSERT_EQUAL(m.type, W_SECRET);
    CU_ASSERT_EQUAL(msg_get_u32(&m, &got_req) | msg_get_u8(&m, &got_ok) | msg_get_u32(&m, &ttl) |
                        msg_get_slice(&m, SECRET_MAX, &value) | msg_end(&m),
                    0);
    CU_ASSERT_EQUAL(got_req, req);
    CU_ASSERT_EQUAL(got_ok, ok);
    bool same = ok ? slice_eq_str(value, text) : slice_find_slice(value, slice_str(text)) >= 0;
    if (!same)
        printf("# wanted \"%s\": \"%.*s\"\n", text, SL(value));
    CU_ASSERT(same);
    msg_done(&m);
    return ttl;
}

/* The vault asks its parent for this secret; returns the number. */
static uint32_t asked(struct world w, const char *name)
{
    struct msg m;
    uint32_t req = 0;
    char got[64];
    int r = receive(w.control, &m);
    CU_ASSERT_EQUAL_FATAL(r, 1);
    CU_ASSERT_EQUAL(m.type, W_STORE_OPEN);
    CU_ASSERT_EQUAL(msg_get_u32(&m, &req) | msg_get_str(&m, got, sizeof got) | msg_end(&m), 0);
    CU_ASSERT_STRING_EQUAL(got, name);
    msg_done(&m);
    return req;
}

static void opened(struct world w, uint32_t req, int fd, const char *why)
{
    struct msg m;
    msg_init(&m, W_STORE_FD);
    msg_put_u32(&m, req);
    msg_put_u8(&m, fd >= 0);
    msg_put_str(&m, why);
    if (fd >= 0)
        msg_put_fd(&m, fd);
    CU_ASSERT_EQUAL(msg_send(w.control, &m), 0);
    msg_done(&m);
}

static void exited(struct world w, uint32_t req, uint32_t status)
{
    struct msg m;
    msg_init(&m, W_STORE_EXIT);
    msg_put_u32(&m, req);
    msg_put_u32(&m, status);
    CU_ASSERT_EQUAL(msg_send(w.control, &m), 0);
    msg_done(&m);
}

static int file_with(const char *text)
{
    return ipc_memfd("store", text, strlen(text), NULL);
}

/* A command's stdout: what it has printed, its end still open in *writer. */
static int pipe_with(const char *text, int *writer)
{
    int fds[2];
    CU_ASSERT_EQUAL_FATAL(pipe2(fds, O_CLOEXEC | O_NONBLOCK), 0);
    CU_ASSERT_EQUAL(write(fds[1], text, strlen(text)), (ssize_t)strlen(text));
    *writer = fds[1];
    return fds[0];
}

static void test_environment(void)
{
    struct world w = start();
    int ch = injector(w, 1, all, ARRAY_LEN(all));
    get(ch, 7, "gh");
    CU_ASSERT_EQUAL(expect(ch, 7, true, "ghp_real"), VAULT_ENV_TTL);
    get(ch, 8, "dirty");
    expect(ch, 8, false, "more than one line");
    get(ch, 9, "unset");
    expect(ch, 9, false, "was not set");
    CU_ASSERT(silent(w.control)); /* nothing of it needs the parent */
    close(ch);
    stop(w);
}

static void test_released(void)
{
    static const char *const some[] = {"file", "gh"};
    struct world w = start();
    int a = injector(w, 1, some, 2), b = injector(w, 2, NULL, 0);
    get(a, 1, "gh");
    expect(a, 1, true, "ghp_real");
    get(a, 2, "cmd");
    expect(a, 2, false, "not released");
    get(a, 3, "no-such");
    expect(a, 3, false, "not released");
    get(a, 4, "");
    expect(a, 4, false, "not released");
    get(b, 5, "gh");
    expect(b, 5, false, "not released");
    CU_ASSERT(silent(w.control));
    close(a);
    close(b);
    stop(w);
}

static void test_file(void)
{
    struct world w = start();
    int ch = injector(w, 1, all, ARRAY_LEN(all)), other = injector(w, 2, all, ARRAY_LEN(all));
    int none = injector(w, 3, NULL, 0);
    get(ch, 1, "file");
    get(ch, 2, "file"); /* waits for the same fetch */
    uint32_t req = asked(w, "file");
    CU_ASSERT(silent(w.control));
    opened(w, req, file_with("first\n"), "");
    expect(ch, 1, true, "first");
    CU_ASSERT_EQUAL(expect(ch, 2, true, "first"), 1);
    get(other, 3, "file"); /* within the second: not read again */
    expect(other, 3, true, "first");
    CU_ASSERT(silent(w.control));
    silent(ch);
    struct timeval tv = {1, 100000};
    event_base_loopexit(base, &tv);
    event_base_loop(base, EVLOOP_NO_EXIT_ON_EMPTY);
    get(ch, 4, "file");
    opened(w, asked(w, "file"), file_with("second"), "");
    /* everyone who may have it hears that it changed, before the new value */
    int chs[] = {ch, other};
    for (size_t i = 0; i < 2; i++) {
        struct msg m;
        char name[64];
        CU_ASSERT_EQUAL_FATAL(receive(chs[i], &m), 1);
        CU_ASSERT_EQUAL(m.type, W_SECRET_STALE);
        CU_ASSERT_EQUAL(msg_get_str(&m, name, sizeof name), 0);
        CU_ASSERT_STRING_EQUAL(name, "file");
        msg_done(&m);
    }
    expect(ch, 4, true, "second");
    CU_ASSERT(silent(none));
    close(ch);
    close(other);
    close(none);
    stop(w);
}

static void changed(struct world w, const char *name)
{
    struct msg m;
    msg_init(&m, W_STORE_CHANGED);
    msg_put_str(&m, name);
    CU_ASSERT_EQUAL(msg_send(w.control, &m), 0);
    msg_done(&m);
}

static void expect_stale(int ch)
{
    struct msg m;
    CU_ASSERT_EQUAL_FATAL(receive(ch, &m), 1);
    CU_ASSERT_EQUAL(m.type, W_SECRET_STALE);
    msg_done(&m);
}

/* A file that changed is read again at once, also when it failed, also when it was being read. */
static void test_changed(void)
{
    struct world w = start();
    int ch = injector(w, 1, all, ARRAY_LEN(all));
    changed(w, "no-such");
    get(ch, 1, "file");
    opened(w, asked(w, "file"), file_with("first"), "");
    expect(ch, 1, true, "first");
    changed(w, "file");
    expect_stale(ch);
    get(ch, 2, "file");
    uint32_t req = asked(w, "file");
    changed(w, "file"); /* while it is being read: what was read may be the old one */
    opened(w, req, file_with("second"), "");
    expect_stale(ch);
    expect(ch, 2, true, "second");
    expect_stale(ch);
    get(ch, 3, "file");
    opened(w, asked(w, "file"), -1, "no such file");
    expect(ch, 3, false, "no such file");
    changed(w, "file"); /* nobody waits for a failure to be over */
    get(ch, 4, "file");
    opened(w, asked(w, "file"), file_with("third"), "");
    expect(ch, 4, true, "third");
    close(ch);
    stop(w);
}

static void test_backoff(void)
{
    states = 0;
    struct world w = start();
    int ch = injector(w, 1, all, ARRAY_LEN(all));
    get(ch, 1, "file");
    opened(w, asked(w, "file"), -1, "it is open to others; chmod 600 it");
    expect(ch, 1, false, "chmod 600");
    get(ch, 2, "file"); /* answered without asking again */
    expect(ch, 2, false, "chmod 600");
    CU_ASSERT(silent(w.control));
    CU_ASSERT_EQUAL(states, 1); /* that it failed */
    struct timeval tv = {1, 100000};
    event_base_loopexit(base, &tv);
    event_base_loop(base, EVLOOP_NO_EXIT_ON_EMPTY);
    get(ch, 3, "file");
    opened(w, asked(w, "file"), file_with("fine\r\n"), "");
    expect(ch, 3, true, "fine");
    CU_ASSERT(silent(w.control));
    CU_ASSERT_EQUAL(states, 2); /* and is back */
    close(ch);
    stop(w);
}

static void test_command(void)
{
    struct world w = start();
    int out, ch = injector(w, 1, all, ARRAY_LEN(all));
    /* the exit counts: nothing before it, whatever was printed */
    get(ch, 1, "cmd");
    uint32_t req = asked(w, "cmd");
    opened(w, req, pipe_with("tok", &out), "");
    CU_ASSERT(silent(ch));
    CU_ASSERT_EQUAL(write(out, "en\n", 3), 3);
    close(out);
    CU_ASSERT(silent(ch));
    exited(w, req + 100, 0); /* of another fetch */
    CU_ASSERT(silent(ch));
    exited(w, req, 0);
    CU_ASSERT_EQUAL(expect(ch, 1, true, "token"), 0);
    /* ttl 0: run again each time; a failing one gives no value */
    get(ch, 2, "cmd");
    req = asked(w, "cmd");
    opened(w, req, pipe_with("token\n", &out), "");
    exited(w, req, 1 << 8);
    expect(ch, 2, false, "status 1");
    close(out);
    close(ch);
    stop(w);
}

static void test_command_leftover(void)
{
    struct world w = start();
    int out, ch = injector(w, 1, all, ARRAY_LEN(all));
    /* an agent keeps the pipe open: what is in it at the exit is all */
    get(ch, 1, "kept");
    uint32_t req = asked(w, "kept");
    opened(w, req, pipe_with("token\n", &out), "");
    exited(w, req, 0);
    uint32_t ttl = expect(ch, 1, true, "token");
    CU_ASSERT(ttl >= 58 && ttl <= 60);
    get(ch, 2, "kept"); /* for its time it is not run again */
    expect(ch, 2, true, "token");
    CU_ASSERT(silent(w.control));
    close(out);
    close(ch);
    stop(w);
}

static void test_command_size(void)
{
    struct world w = start();
    int fds[2], ch = injector(w, 1, all, ARRAY_LEN(all));
    CU_ASSERT_EQUAL_FATAL(pipe2(fds, O_CLOEXEC | O_NONBLOCK), 0);
    CU_ASSERT(fcntl(fds[1], F_SETPIPE_SZ, 1 << 18) >= 1 << 18);
    char *big = malloc(SECRET_MAX + 1);
    CU_ASSERT_PTR_NOT_NULL_FATAL(big);
    memset(big, 'x', SECRET_MAX + 1);
    CU_ASSERT_EQUAL(write(fds[1], big, SECRET_MAX + 1), SECRET_MAX + 1);
    get(ch, 1, "cmd");
    opened(w, asked(w, "cmd"), fds[0], "");
    expect(ch, 1, false, "longer than");
    free(big);
    close(fds[1]);
    close(ch);
    stop(w);
}

static void test_late_answers(void)
{
    struct world w = start();
    int ch = injector(w, 1, all, ARRAY_LEN(all));
    get(ch, 1, "file");
    uint32_t req = asked(w, "file");
    close(ch); /* nobody waits any longer */
    event_base_loop(base, EVLOOP_NONBLOCK);
    CU_ASSERT_EQUAL(vault_channels(w.vault), 0);
    opened(w, req, file_with("value"), "");
    opened(w, req, file_with("again"), ""); /* twice, and one that nobody asked */
    opened(w, req + 9, file_with("other"), "");
    ch = injector(w, 2, all, ARRAY_LEN(all));
    get(ch, 2, "file");
    expect(ch, 2, true, "value");
    close(ch);
    stop(w);
}

/* What the parent says of a fetch that is not this one, or not so far, changes nothing. */
static void test_another_fetch(void)
{
    struct world w = start();
    int out, ch = injector(w, 1, all, ARRAY_LEN(all));
    get(ch, 1, "file");
    uint32_t req = asked(w, "file");
    opened(w, req + 1, file_with("other"), "");
    CU_ASSERT(silent(ch));
    opened(w, req, file_with("value"), "");
    expect(ch, 1, true, "value");
    get(ch, 2, "cmd");
    req = asked(w, "cmd");
    exited(w, req, 1 << 8); /* it was not begun */
    CU_ASSERT(silent(ch));
    opened(w, req, pipe_with("token\n", &out), "");
    close(out);
    exited(w, req, 0);
    expect(ch, 2, true, "token");
    close(ch);
    stop(w);
}

static void test_bad_channels(void)
{
    struct world w = start();
    struct msg m;
    int a = injector(w, 1, all, ARRAY_LEN(all)), b = injector(w, 2, all, ARRAY_LEN(all));
    msg_init(&m, W_STORE_FD); /* an injector is no parent */
    msg_put_u32(&m, 1);
    CU_ASSERT_EQUAL(msg_send(a, &m), 0);
    msg_done(&m);
    CU_ASSERT_EQUAL(receive(a, &m), 0);
    CU_ASSERT_EQUAL(vault_channels(w.vault), 1);
    get(b, 1, "gh");
    expect(b, 1, true, "ghp_real");
    int c = injector(w, 3, all, ARRAY_LEN(all));
    for (uint32_t i = 0; i < SECRET_LIST_MAX + 2048;
         i++) { /* all that an injector may have under way */
        get(c, i, "file");
        CU_ASSERT_FATAL(i % 100 != 99 || silent(c));
    }
    CU_ASSERT_EQUAL(vault_channels(w.vault), 2);
    get(c, SECRET_LIST_MAX + 2048, "file");
    CU_ASSERT_EQUAL(receive(c, &m), 0);
    CU_ASSERT_EQUAL(vault_channels(w.vault), 1);
    msg_init(&m, W_PEER_GONE);
    msg_put_u32(&m, 2);
    CU_ASSERT_EQUAL(msg_send(w.control, &m), 0);
    msg_done(&m);
    asked(w, "file"); /* of c, which is gone */
    CU_ASSERT_EQUAL(receive(b, &m), 0);
    close(a);
    close(b);
    close(c);
    stop(w);
}

static void test_bad_control(void)
{
    static const struct {
        uint8_t kind;
        struct slice extra;
    } bad[] = {{ROLE_GATE, {"\0\0\0\0", 4}},
               {ROLE_INJECTOR, {"", 0}},
               {ROLE_INJECTOR, {"\0\0\0\1", 4}},
               {ROLE_INJECTOR, {"\0\0\0\1\0\0\0\5gh", 10}},
               {ROLE_INJECTOR, {"\0\0\0\1\0\0\0\2ghx", 11}},
               {ROLE_INJECTOR, {"\xff\xff\xff\xff", 4}}};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct msg m;
        struct timeval tv = {2, 0};
        struct world w = start();
        int ch = injector_with(w, 1, bad[i].kind, bad[i].extra);
        CU_ASSERT_EQUAL(vault_channels(w.vault), 0);
        CU_ASSERT_EQUAL(receive(ch, &m), 0);
        close(ch);
        /* such a message never comes from our parent: the role has ended */
        event_base_loopexit(base, &tv);
        (void)event_base_loop(base, EVLOOP_NONBLOCK);
        get(w.control, 1, "gh");
        CU_ASSERT(silent(w.control));
        stop(w);
    }
}

/* What is no whole message of these ends the channel it came on; on the parent's it ends the role.
 */
static void test_not_whole(void)
{
    static const uint16_t types[] = {W_PEER_GONE,  W_STORE_EXIT,  W_STORE_CHANGED,
                                     W_STORE_FD,   W_STORE_FD,    W_CAPTURED_GONE,
                                     W_SECRET_TRY, W_TOKEN_SAVED, W_TOKEN_FOUND};
    struct msg m;
    struct world w = start();
    int a = injector(w, 1, all, ARRAY_LEN(all));
    msg_init(&m, W_SECRET_GET);
    msg_put_u32(&m, 1);
    msg_put_str(&m, "gh");
    msg_put_u8(&m, 0); /* a byte after it */
    CU_ASSERT_EQUAL(msg_send(a, &m), 0);
    msg_done(&m);
    CU_ASSERT_EQUAL(receive(a, &m), 0);
    close(a);
    stop(w);
    for (size_t i = 0; i < ARRAY_LEN(types); i++) {
        w = start();
        msg_init(&m, types[i]);
        if (types[i] == W_STORE_CHANGED || types[i] == W_CAPTURED_GONE)
            msg_put_str(&m, "gh");
        else
            msg_put_u32(&m, 9);
        if (types[i] == W_STORE_EXIT)
            msg_put_u32(&m, 0);
        if (types[i] == W_SECRET_TRY || types[i] == W_TOKEN_FOUND)
            msg_put_str(&m, "x");
        if (types[i] == W_TOKEN_SAVED)
            msg_put_u8(&m, 1);
        if (types[i] == W_STORE_FD) {
            msg_put_u8(&m, i == 3 ? 2 : 0);
            msg_put_str(&m, "why");
            if (i == 3)
                msg_put_fd(&m, file_with("value"));
        }
        if (i != 3)
            msg_put_u8(&m, 0);
        CU_ASSERT_EQUAL(msg_send(w.control, &m), 0);
        msg_done(&m);
        struct timeval tv = {1, 0};
        event_base_loopexit(base, &tv);
        event_base_dispatch(base);
        CU_ASSERT(event_base_got_break(base));
        stop(w);
    }
}

static void test_bad_init(void)
{
    enum { COUNT, TWICE, STORE, NO_BLOCK, NO_NAME, NO_STORE, LINES, UNMADE, MANY, VARIANTS };
    for (int variant = 0; variant < VARIANTS; variant++) {
        int fds[2];
        struct msg m;
        struct timeval tv = {2, 0};
        CU_ASSERT_EQUAL_FATAL(ipc_pair(fds, NULL), 0);
        struct vault *v = vault_new(base, fds[0], false, NULL);
        CU_ASSERT_PTR_NOT_NULL_FATAL(v);
        msg_init(&m, W_INIT);
        uint32_t more = variant == MANY ? SECRET_LIST_MAX - 1 : 0;
        msg_put_u32(&m, variant == COUNT ? 2000000 : 2 + more);
        put_secret(&m, "a", STORE_ENV, 0);
        msg_put_str(&m, variant == TWICE ? "a" : variant == NO_NAME ? "" : "b");
        msg_put_u8(&m, variant == STORE      ? 9
                       : variant == NO_STORE ? 0
                       : variant == UNMADE   ? STORE_MINT
                                             : STORE_FILE);
        msg_put_u32(&m, 0);
        msg_put_u8(&m, variant == LINES ? 2 : 0);
        if (variant == UNMADE) {
            msg_put_u8(&m, 0); /* of no kind */
            msg_put_u32(&m, 0);
            msg_put_u8(&m, 0);
        }
        for (uint32_t i = 0; i < more; i++) {
            char name[16];
            snprintf(name, sizeof name, "s%u", i);
            put_secret(&m, name, STORE_ENV, 0);
        }
        if (variant != NO_BLOCK)
            msg_put_fd(&m, env_memfd());
        CU_ASSERT_EQUAL(msg_send(fds[1], &m), 0);
        msg_done(&m);
        event_base_loopexit(base, &tv);
        event_base_dispatch(base);
        CU_ASSERT(event_base_got_break(base));
        CU_ASSERT(silent(fds[1]));
        vault_free(v);
        close(fds[1]);
    }
}

void suite_vault(void)
{
    CU_pSuite s = CU_add_suite("vault", setup, teardown);
    CU_add_test(s, "environment secrets", test_environment);
    CU_add_test(s, "a channel gets what was released to it", test_released);
    CU_add_test(s, "files: one fetch for all, again after a second, changes told", test_file);
    CU_add_test(s, "a changed file is read at once", test_changed);
    CU_add_test(s, "a failing store is left alone for a second", test_backoff);
    CU_add_test(s, "commands count with exit 0 only", test_command);
    CU_add_test(s, "commands: kept for the ttl, leftovers do not hold up", test_command_leftover);
    CU_add_test(s, "commands: size", test_command_size);
    CU_add_test(s, "answers that nobody waits for", test_late_answers);
    CU_add_test(s, "answers to another fetch", test_another_fetch);
    CU_add_test(s, "a bad message ends its channel only", test_bad_channels);
    CU_add_test(s, "a bad W_PEER ends the role", test_bad_control);
    CU_add_test(s, "messages that are not whole", test_not_whole);
    CU_add_test(s, "a bad W_INIT ends the role", test_bad_init);
}

void tap_suites(void)
{
    suite_vault();
}
