/* Host-side stores: files, commands, environment. */
#include "env_block.h"
#include "ipc.h"
#include "secret_value.h"
#include "store.h"
#include "store_broker.h"
#include "store_watch.h"
#include "tap_main.h"
#include "wire.h"

#include <event2/event.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

void suite_store(void);

static char dir[] = "/tmp/durward-test-store-XXXXXX";
static char path[sizeof dir + 16];

static int setup(void)
{
    if (mkdtemp(dir) == NULL)
        return -1;
    snprintf(path, sizeof path, "%s/secret", dir);
    setenv("PATH", "/usr/local/bin:/usr/bin:/bin", 1); /* the errors of exec depend on it */
    return 0;
}

static int teardown(void)
{
    unlink(path);
    return rmdir(dir);
}

static void put(const char *text, size_t n, mode_t mode)
{
    unlink(path); /* a read-only one could not be opened again */
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    CU_ASSERT_FATAL(fd >= 0);
    CU_ASSERT_EQUAL(write(fd, text, n), (ssize_t)n);
    CU_ASSERT_EQUAL(fchmod(fd, mode), 0);
    close(fd);
}

static struct config_secret file_secret(void)
{
    return (struct config_secret){.name = "f", .store = STORE_FILE, .source = path, .kind = ""};
}

static bool reads(const struct config_secret *s, const char *want)
{
    struct err err = {0};
    struct secret *v = store_read(s, &err);
    if (v == NULL)
        printf("# %s\n", err.text);
    bool ok = v && slice_eq_str(secret_slice(v), want);
    secret_unref(v);
    return ok;
}

/* The read fails and its message has this in it, and nothing of the value. */
static bool fails(const struct config_secret *s, const char *why)
{
    struct err err = {0};
    struct secret *v = store_read(s, &err);
    bool ok = v == NULL && strstr(err.text, why) && strstr(err.text, "hunter") == NULL;
    if (!ok)
        printf("# wanted \"%s\": %s\n", why, v ? "it was read" : err.text);
    secret_unref(v);
    return ok;
}

static void test_file(void)
{
    struct config_secret s = file_secret();
    put("hunter2\n", 8, 0600);
    CU_ASSERT(reads(&s, "hunter2"));
    put("hunter2\r\n", 9, 0400);
    CU_ASSERT(reads(&s, "hunter2"));
    put("hunter2", 7, 0600);
    CU_ASSERT(reads(&s, "hunter2"));
    put("hunter2\n\n", 9, 0600); /* only one newline is the editor's */
    CU_ASSERT(fails(&s, "more than one line"));
    put("hunter\t2", 8, 0600);
    CU_ASSERT(fails(&s, "control byte (0x09 at byte 7)"));
    put("hunter\x7f", 7, 0600);
    CU_ASSERT(fails(&s, "control byte (0x7f"));
    put("hunter\0x", 8, 0600);
    CU_ASSERT(fails(&s, "control byte (0x00"));
    put("", 0, 0600);
    CU_ASSERT(fails(&s, "empty"));
    put("\n", 1, 0600);
    CU_ASSERT(fails(&s, "empty"));
    put("p\xc3\xa4ss", 5, 0600);
    CU_ASSERT(reads(&s, "p\xc3\xa4ss"));
}

static void test_file_size(void)
{
    struct config_secret s = file_secret();
    char *big = malloc(SECRET_MAX + 1);
    CU_ASSERT_PTR_NOT_NULL_FATAL(big);
    memset(big, 'x', SECRET_MAX + 1);
    put(big, SECRET_MAX + 1, 0600);
    CU_ASSERT(fails(&s, "longer than 65536"));
    put(big, SECRET_MAX, 0600);
    struct secret *v = store_read(&s, NULL);
    CU_ASSERT_PTR_NOT_NULL_FATAL(v);
    CU_ASSERT_EQUAL(secret_slice(v).n, SECRET_MAX);
    secret_unref(v);
    free(big);
}

static void test_file_modes(void)
{
    struct config_secret s = file_secret();
    static const mode_t bad[] = {0644, 0604, 0620, 0602, 0660, 0606, 0777, 0601};
    char hint[sizeof path + 16];
    snprintf(hint, sizeof hint, "chmod 600 %s", path);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        put("hunter2", 7, bad[i]);
        CU_ASSERT(fails(&s, hint));
    }
    put("hunter2", 7, 0640); /* ours, so nobody else needs it by its group */
    CU_ASSERT(fails(&s, hint));
    s.source = "/nowhere/secret";
    CU_ASSERT(fails(&s, "cannot open /nowhere/secret"));
    s.source = dir;
    CU_ASSERT(fails(&s, "not a regular file"));
    s.source = "/dev/null";
    CU_ASSERT(fails(&s, "not a regular file"));
    unlink(path);
    CU_ASSERT_EQUAL(mkfifo(path, 0600), 0); /* does not hang */
    s.source = path;
    CU_ASSERT(fails(&s, "not a regular file"));
    unlink(path);
}

/* Run a check as an ordinary user: root's file that a group may read is how a service gets one. */
static int as_user(int (*check)(void))
{
    int status = -1;
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        if (setregid(65533, 65533) < 0 || setreuid(65534, 65534) < 0)
            _exit(2);
        _exit(check() == 0 ? 0 : 1);
    }
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int open_as_user(void)
{
    struct config_secret s = file_secret();
    struct store_result r;
    return store_open(&s, &r, NULL);
}

static void test_file_owner(void)
{
    if (geteuid() != 0) { /* the other half is covered by test_file_modes */
        struct config_secret s = {.store = STORE_FILE, .source = "/etc/passwd"};
        CU_ASSERT(fails(&s, "open to others"));
        return;
    }
    CU_ASSERT_EQUAL(chmod(dir, 0755), 0);
    put("hunter2", 7, 0440);
    CU_ASSERT_EQUAL(chown(path, 0, 65533), 0);
    CU_ASSERT_EQUAL(as_user(open_as_user), 0);
    CU_ASSERT_EQUAL(chmod(path, 0444), 0); /* all may read */
    CU_ASSERT_EQUAL(as_user(open_as_user), 1);
    CU_ASSERT_EQUAL(chmod(path, 0460), 0); /* the group may write */
    CU_ASSERT_EQUAL(as_user(open_as_user), 1);
    CU_ASSERT_EQUAL(chown(path, 65533, 65533), 0);
    CU_ASSERT_EQUAL(chmod(path, 0440), 0); /* a stranger's */
    CU_ASSERT_EQUAL(as_user(open_as_user), 1);
    struct config_secret s = file_secret();
    CU_ASSERT(fails(&s, "belongs to uid 65533"));
    unlink(path);
}

static bool command_reads(const char *script, const char *want)
{
    const char *const argv[] = {"sh", "-c", script, NULL};
    struct config_secret s = {.name = "c", .store = STORE_COMMAND, .command = argv, .kind = ""};
    return reads(&s, want);
}

static bool command_fails(const char *script, const char *why)
{
    const char *const argv[] = {"sh", "-c", script, NULL};
    struct config_secret s = {.name = "c", .store = STORE_COMMAND, .command = argv, .kind = ""};
    return fails(&s, why);
}

/* The value as a process id, or 0. */
static pid_t command_reads_pid(const char *script)
{
    const char *const argv[] = {"sh", "-c", script, NULL};
    struct config_secret s = {.name = "c", .store = STORE_COMMAND, .command = argv, .kind = ""};
    struct err err = {0};
    char text[16] = "";
    struct secret *v = store_read(&s, &err);
    if (v && secret_slice(v).n < sizeof text)
        memcpy(text, secret_slice(v).p, secret_slice(v).n);
    secret_unref(v);
    return (pid_t)strtol(text, NULL, 10);
}

static int64_t now_ms(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static void test_command(void)
{
    CU_ASSERT(command_reads("echo hunter2", "hunter2"));
    CU_ASSERT(command_reads("printf hun; sleep 0.05; printf ter2", "hunter2"));
    CU_ASSERT(command_reads("exec 2>/dev/null; cat; echo hunter2", "hunter2")); /* stdin is empty */
    CU_ASSERT(command_fails("echo hunter2; exit 3", "status 3"));
    CU_ASSERT(command_fails("echo hunter2; kill -9 $$", "signal 9"));
    CU_ASSERT(command_fails("true", "empty"));
    CU_ASSERT(command_fails("echo hunter2; echo more", "more than one line"));
    CU_ASSERT(command_fails("head -c 100000 /dev/zero | tr '\\0' x", "longer than 65536"));
    /* an agent left behind with our pipe open does not hold the value up */
    int64_t before = now_ms();
    pid_t agent = command_reads_pid("sleep 60 & echo $!");
    CU_ASSERT(now_ms() - before < 4000);
    CU_ASSERT(agent > 1 && kill(agent, SIGKILL) == 0);
    const char *const none[] = {"durward-no-such-program", NULL};
    struct config_secret s = {.name = "c", .store = STORE_COMMAND, .command = none, .kind = ""};
    CU_ASSERT(fails(&s, "cannot run durward-no-such-program: No such file"));
    const char *const not_executable[] = {"/etc/passwd", NULL};
    s.command = not_executable;
    CU_ASSERT(fails(&s, "cannot run /etc/passwd: Permission denied"));
}

static void test_command_world(void)
{
    setenv("DURWARD_TEST_CANARY", "hunter2", 1);
    setenv("LC_TEST", "kept", 1);
    CU_ASSERT(command_reads("echo \"${DURWARD_TEST_CANARY-none} $LC_TEST\"", "none kept"));
    CU_ASSERT(command_reads("test \"$(ps -o pgid= -p $$ 2>/dev/null | tr -d ' ')\" = $$ || "
                            "test \"$(cut -d' ' -f5 /proc/$$/stat)\" = $$ && echo own",
                            "own"));
    /* no descriptor of ours is in it: 0, 1, 2 and the one of ls itself */
    int extra = open("/dev/null", O_RDONLY);
    CU_ASSERT(command_reads("cd /proc/self/fd && echo *", "0 1 2 3") ||
              command_reads("cd /proc/self/fd && echo *", "0 1 2"));
    close(extra);
    /* signals that the daemon ignores are not ignored in it */
    signal(SIGPIPE, SIG_IGN);
    CU_ASSERT(
        command_reads("grep -q '^SigIgn:.*0000000$' /proc/self/status && echo clear", "clear"));
    signal(SIGPIPE, SIG_DFL);
    unsetenv("DURWARD_TEST_CANARY");
    unsetenv("LC_TEST");
}

static void test_kill_group(void)
{
    const char *const argv[] = {"sh", "-c", "sleep 60 & echo ready; wait", NULL};
    struct config_secret s = {.name = "c", .store = STORE_COMMAND, .command = argv, .kind = ""};
    struct store_result r;
    char line[16];
    CU_ASSERT_EQUAL_FATAL(store_open(&s, &r, NULL), 0);
    CU_ASSERT(fcntl(r.fd, F_GETFL) & O_NONBLOCK);
    CU_ASSERT(fcntl(r.fd, F_GETFD) & FD_CLOEXEC);
    fcntl(r.fd, F_SETFL, 0);
    CU_ASSERT_EQUAL(read(r.fd, line, sizeof line), 6);
    store_kill(&r);
    CU_ASSERT_EQUAL(waitpid(r.pid, NULL, 0), r.pid);
    CU_ASSERT_EQUAL(read(r.fd, line, sizeof line), 0); /* its child is gone too */
    close(r.fd);
}

static bool environ_has(const char *needle)
{
    char buf[65536];
    int fd = open("/proc/self/environ", O_RDONLY | O_CLOEXEC);
    ssize_t n = read(fd, buf, sizeof buf);
    close(fd);
    return n > 0 && memmem(buf, (size_t)n, needle, strlen(needle)) != NULL;
}

/* In a fresh program, because only what exec put there is what /proc shows. */
static int wipe_in_child(void)
{
    struct config_secret list[] = {
        {.name = "one", .store = STORE_ENV, .source = "DURWARD_T1", .kind = ""},
        {.name = "two", .store = STORE_ENV, .source = "DURWARD_T1", .kind = ""},
        {.name = "three", .store = STORE_ENV, .source = "DURWARD_T2", .kind = ""},
        {.name = "file", .store = STORE_FILE, .source = "/x", .kind = ""},
        {.name = "unset", .store = STORE_ENV, .source = "DURWARD_T3", .kind = ""},
    };
    size_t missing = 0;
    if (!environ_has("hunter2") || !environ_has("correct horse"))
        return 10;
    int fd = store_env_memfd(list, ARRAY_LEN(list), &missing, NULL);
    if (fd < 0 || missing != 4)
        return 11;
    if (environ_has("hunter2") || environ_has("correct horse") || getenv("DURWARD_T1") ||
        getenv("DURWARD_T2") || !getenv("DURWARD_T9"))
        return 12;
    static const struct {
        const char *name, *value;
    } want[] = {{"one", "hunter2"}, {"two", "hunter2"}, {"three", "correct horse \xe2\x9c\x93"}};
    for (size_t i = 0; i < ARRAY_LEN(want); i++) {
        struct secret *v = env_block_get(fd, want[i].name, NULL);
        if (v == NULL || !slice_eq_str(secret_slice(v), want[i].value))
            return 13;
        secret_unref(v);
    }
    struct err err = {0};
    if (env_block_get(fd, "unset", &err) || err.code != ERR_UNREADY ||
        env_block_get(fd, "file", NULL))
        return 14;
    close(fd);
    return 0;
}

/* The child of test_env is this program again; the constructor runs before the harness. */
static void __attribute__((constructor)) child_main(void)
{
    if (getenv("DURWARD_TEST_WIPE"))
        _exit(wipe_in_child());
}

static void test_env(void)
{
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        char *argv[] = {(char *)"test_store", NULL};
        char *env[] = {(char *)"DURWARD_TEST_WIPE=1", (char *)"DURWARD_T1=hunter2",
                       (char *)"DURWARD_T2=correct horse \xe2\x9c\x93", (char *)"DURWARD_T9=kept",
                       NULL};
        execve("/proc/self/exe", argv, env);
        _exit(127);
    }
    CU_ASSERT_EQUAL(waitpid(pid, &status, 0), pid);
    CU_ASSERT(WIFEXITED(status));
    CU_ASSERT_EQUAL(WEXITSTATUS(status), 0);
    struct config_secret s = {.store = STORE_ENV, .source = "DURWARD_NOT_SET", .kind = ""};
    CU_ASSERT(fails(&s, "DURWARD_NOT_SET is not set"));
    setenv("DURWARD_T1", "hun\nter", 1);
    s.source = "DURWARD_T1";
    CU_ASSERT(fails(&s, "more than one line"));
    unsetenv("DURWARD_T1");
}

static void test_env_block(void)
{
    struct buf b;
    struct err err = {0};
    env_block_begin(&b);
    CU_ASSERT_EQUAL(env_block_add(&b, "a", SLICE("x"), NULL), 0);
    CU_ASSERT_EQUAL(env_block_add(&b, "ab", SLICE("yz"), NULL), 0);
    CU_ASSERT_EQUAL(env_block_add(&b, "bad\"name", SLICE("yz"), NULL), -1);
    CU_ASSERT_EQUAL(env_block_add(&b, "bad\\", SLICE("yz"), NULL), -1);
    CU_ASSERT_EQUAL(env_block_add(&b, "", SLICE("yz"), NULL), -1);
    CU_ASSERT_EQUAL(env_block_add(&b, "empty", SLICE(""), NULL), 0);
    CU_ASSERT(slice_eq_str(buf_slice(&b), "{\"a\":\"eA==\",\"ab\":\"eXo=\",\"empty\":\"\""));
    int fd = env_block_end(&b, NULL);
    CU_ASSERT_FATAL(fd >= 0);
    struct secret *v = env_block_get(fd, "ab", NULL);
    CU_ASSERT(v && slice_eq_str(secret_slice(v), "yz"));
    secret_unref(v);
    CU_ASSERT_PTR_NULL(env_block_get(fd, "empty", &err));
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "empty"));
    CU_ASSERT_PTR_NULL(env_block_get(fd, "eA==", NULL)); /* a value is no name */
    close(fd);
    env_block_begin(&b);
    fd = env_block_end(&b, NULL);
    CU_ASSERT_PTR_NULL(env_block_get(fd, "a", &err));
    CU_ASSERT_EQUAL(err.code, ERR_UNREADY);
    close(fd);
    CU_ASSERT_PTR_NULL(env_block_get(-1, "a", NULL));
}

static void test_folder(void)
{
    struct config_secret s = {
        .name = "f", .store = STORE_FILE, .source = "secret", .folder = "CREDENTIALS_DIRECTORY"};
    put("hunter2\n", 8, 0400);
    unsetenv("CREDENTIALS_DIRECTORY");
    CU_ASSERT(fails(&s, "$CREDENTIALS_DIRECTORY is not set"));
    setenv("CREDENTIALS_DIRECTORY", "tmp", 1);
    CU_ASSERT(fails(&s, "is not set"));
    setenv("CREDENTIALS_DIRECTORY", dir, 1);
    CU_ASSERT(reads(&s, "hunter2"));
    put("hunter2\n", 8, 0444);
    CU_ASSERT(fails(&s, "chmod 600"));
    unsetenv("CREDENTIALS_DIRECTORY");
    unlink(path);
}

static void on_told(void *arg, const char *secret)
{
    char *told = arg;
    size_t n = strlen(told);
    snprintf(told + n, 64 - n, "%s ", secret);
}

/* What the watch tells of within a moment. */
static bool tells(struct event_base *base, char *told, const char *want)
{
    struct timeval tv = {0, 20000};
    told[0] = 0;
    event_base_loopexit(base, &tv);
    event_base_dispatch(base);
    if (strcmp(told, want) != 0)
        printf("# wanted \"%s\": \"%s\"\n", want, told);
    return strcmp(told, want) == 0;
}

/* Files in place, moved in, removed; links whose target moves; neighbours that say nothing. */
static void test_watch(void)
{
    char told[64] = "", other[sizeof path + 16], link[sizeof path + 8], data[sizeof path + 2];
    struct event_base *base = event_base_new();
    struct store_watch *w = store_watch_new(base, on_told, told);
    CU_ASSERT_PTR_NOT_NULL_FATAL(w);
    snprintf(other, sizeof other, "%s.x", path);
    snprintf(link, sizeof link, "%s.l", path);
    snprintf(data, sizeof data, "%s.d", path);
    put("one", 3, 0600);
    store_watch_add(w, "a", path);
    store_watch_add(w, "gone", "/nowhere/at/all");
    CU_ASSERT(tells(base, told, ""));
    put("two", 3, 0600); /* removed and made anew */
    CU_ASSERT(tells(base, told, "a ") || strcmp(told, "a a ") == 0 || strcmp(told, "a a a ") == 0);
    CU_ASSERT_EQUAL(chmod(path, 0644), 0);
    CU_ASSERT(tells(base, told, "a "));
    CU_ASSERT_EQUAL(rename(path, other), 0);
    CU_ASSERT(tells(base, told, "a "));
    CU_ASSERT_EQUAL(rename(other, path), 0);
    CU_ASSERT(tells(base, told, "a "));
    CU_ASSERT_EQUAL(mkdir(data, 0700), 0); /* a neighbour */
    CU_ASSERT(tells(base, told, ""));
    snprintf(other, sizeof other, "%s/s", data);
    CU_ASSERT_EQUAL(rename(path, other), 0);
    CU_ASSERT_EQUAL(symlink(other, link), 0);
    store_watch_add(w, "a", link); /* in place of the first */
    CU_ASSERT(tells(base, told, ""));
    CU_ASSERT_EQUAL(truncate(other, 1), 0); /* behind the link */
    CU_ASSERT_EQUAL(chmod(other, 0600), 0);
    CU_ASSERT(tells(base, told, "a "));
    CU_ASSERT_EQUAL(symlink("/etc/hostname", path), 0);
    CU_ASSERT_EQUAL(rename(path, link), 0); /* another target */
    CU_ASSERT(tells(base, told, "a "));
    unlink(link);
    unlink(other);
    rmdir(data);
    store_watch_free(w);
    event_base_free(base);
}

/* ---- the broker: what the vault may ask, and how much of it at once ---- */

struct vaults_end {
    struct event_base *base;
    struct store_broker *broker;
    struct ipc *ch;
    int fd;
};

static int nothing(struct ipc *ch UNUSED, struct msg *m UNUSED, void *arg UNUSED)
{
    return 0;
}

static void closed(struct ipc *ch UNUSED, const char *why UNUSED, void *arg UNUSED)
{
}

static int asks(struct vaults_end *v, const struct config_secret *list, size_t n, uint16_t type,
                const char *name, bool more)
{
    struct msg m;
    msg_init(&m, type);
    msg_put_u32(&m, 7);
    msg_put_str(&m, name);
    if (more)
        msg_put_u8(&m, 1);
    int r = store_broker_message(v->broker, v->ch, &m, list, n);
    msg_done(&m);
    event_base_loop(v->base, EVLOOP_NONBLOCK);
    return r;
}

/* True: a descriptor came with the answer. */
static bool opened(struct vaults_end *v, const char *why)
{
    struct msg m;
    uint32_t req;
    uint8_t ok = 0;
    char text[256] = "";
    int fd = -1;
    CU_ASSERT_EQUAL_FATAL(msg_recv(v->fd, &m), 1);
    CU_ASSERT(m.type == W_STORE_FD && msg_get_u32(&m, &req) == 0 && req == 7);
    CU_ASSERT(msg_get_u8(&m, &ok) == 0 && msg_get_str(&m, text, sizeof text) == 0);
    if (ok)
        CU_ASSERT_EQUAL(msg_get_fd(&m, &fd), 0);
    CU_ASSERT_EQUAL(msg_end(&m), 0);
    CU_ASSERT(ok ? text[0] == 0 : strstr(text, why) != NULL);
    if (fd >= 0)
        close(fd);
    msg_done(&m);
    return ok;
}

static void test_broker(void)
{
    static const char *const argv[] = {"sleep", "60", NULL};
    const struct config_secret list[] = {
        {.name = "f", .store = STORE_FILE, .source = path, .kind = ""},
        {.name = "c", .store = STORE_COMMAND, .command = argv, .kind = ""},
    };
    struct vaults_end v = {.base = event_base_new()};
    int fds[2];
    CU_ASSERT_EQUAL_FATAL(ipc_pair(fds, NULL), 0);
    v.broker = store_broker_new(v.base);
    v.ch = ipc_new(v.base, fds[0], nothing, closed, NULL);
    v.fd = fds[1];
    put("hunter2\n", 8, 0600);
    CU_ASSERT_EQUAL(asks(&v, list, 2, W_STORE_OPEN, "f", false), 0);
    CU_ASSERT_TRUE(opened(&v, ""));
    CU_ASSERT_EQUAL(asks(&v, list, 2, W_STORE_OPEN, "f", true), -1);
    CU_ASSERT_EQUAL(asks(&v, list, 2, W_STORE_FD, "f", false), -1);
    CU_ASSERT_EQUAL(asks(&v, list, 1, W_STORE_OPEN, "c", false), 0);
    CU_ASSERT_FALSE(opened(&v, "not in the configuration"));
    for (int i = 0; i < STORE_BROKER_MAX; i++) {
        CU_ASSERT_EQUAL(asks(&v, list, 2, W_STORE_OPEN, "c", false), 0);
        CU_ASSERT_TRUE(opened(&v, ""));
    }
    CU_ASSERT_EQUAL(asks(&v, list, 2, W_STORE_OPEN, "c", false), 0);
    CU_ASSERT_FALSE(opened(&v, "run already"));
    CU_ASSERT_EQUAL(asks(&v, list, 2, W_STORE_OPEN, "f", false), 0); /* files are no commands */
    CU_ASSERT_TRUE(opened(&v, ""));
    CU_ASSERT_FALSE(store_broker_reaped(v.broker, getpid(), 0));
    store_broker_vault_gone(v.broker); /* nobody reads them any more */
    for (int i = 0; i < STORE_BROKER_MAX; i++) {
        int status;
        pid_t pid = waitpid(-1, &status, 0);
        CU_ASSERT(pid > 0 && WIFSIGNALED(status));
        CU_ASSERT_TRUE(store_broker_reaped(v.broker, pid, status));
    }
    CU_ASSERT_EQUAL(asks(&v, list, 2, W_STORE_OPEN, "c", false), 0);
    CU_ASSERT_TRUE(opened(&v, "")); /* there is room again */
    store_broker_free(v.broker);
    CU_ASSERT(waitpid(-1, NULL, 0) > 0);
    ipc_free(v.ch);
    close(v.fd);
    event_base_free(v.base);
    unlink(path);
}

void suite_store(void)
{
    CU_pSuite s = CU_add_suite("store", setup, teardown);
    CU_add_test(s, "file: value", test_file);
    CU_add_test(s, "file: size", test_file_size);
    CU_add_test(s, "file: modes and kinds", test_file_modes);
    CU_add_test(s, "file: owners", test_file_owner);
    CU_add_test(s, "file: in a folder that a variable names", test_folder);
    CU_add_test(s, "file: watched", test_watch);
    CU_add_test(s, "command: value and failures", test_command);
    CU_add_test(s, "command: what it gets and does not get", test_command_world);
    CU_add_test(s, "command: killed with all it started", test_kill_group);
    CU_add_test(s, "the broker of the vault's stores", test_broker);
    CU_add_test(s, "environment: collected and wiped", test_env);
    CU_add_test(s, "environment: the block", test_env_block);
}

void tap_suites(void)
{
    suite_store();
}
