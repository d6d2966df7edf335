/* Roles: names, and what the system-call filter of each leaves (promise P5). Each filter is tried
 * in a child, because it cannot be taken off again. */
#include "tap_main.h"

#include "landlock.h"
#include "proc.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* In the child: errno of the attempt, 0 when it succeeded. */
typedef int (*attempt_fn)(void);

static int listener = -1;
static pid_t parent;

static int outcome(long r)
{
    return r < 0 ? errno : 0;
}

static int try_open(void)
{
    return outcome(open("/etc/passwd", O_RDONLY | O_CLOEXEC));
}

static int try_socket(void)
{
    return outcome(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
}

static int try_unix_socket(void)
{
    return outcome(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
}

static int try_connect(void)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = 9};
    return outcome(connect(0, (struct sockaddr *)&to, sizeof to));
}

static int try_exec(void)
{
    char *const argv[] = {(char *)"true", NULL};
    return outcome(execve("/bin/true", argv, NULL));
}

static int try_fork(void)
{
    return outcome(syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0));
}

static int try_ptrace(void)
{
    return outcome(ptrace(PTRACE_ATTACH, getppid(), 0, 0));
}

static int try_executable_memory(void)
{
    void *p = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return p == MAP_FAILED ? errno : 0;
}

static int try_memory(void)
{
    void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return p == MAP_FAILED ? errno : 0;
}

static int try_append_off(void)
{
    return outcome(fcntl(2, F_SETFL, 0));
}

static int try_truncate(void)
{
    return outcome(ftruncate(2, 0));
}

static int try_seek(void)
{
    return outcome(lseek(2, 0, SEEK_SET));
}

static int try_io_uring(void)
{
    return outcome(syscall(425, 1, NULL)); /* io_uring_setup */
}

/* connect(2) by another name: a listener, shut down, is a fresh socket (promise P5). */
static int fast_open(bool with_message)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct iovec iov = {(char *)(uintptr_t) "x", 1};
    to.sin_port = htons(9);
    struct msghdr m = {.msg_name = &to, .msg_namelen = sizeof to, .msg_iov = &iov, .msg_iovlen = 1};
    if (shutdown(listener, SHUT_RD) < 0)
        return 199;
    return outcome(with_message ? sendmsg(listener, &m, MSG_FASTOPEN | MSG_NOSIGNAL)
                                : sendto(listener, "x", 1, MSG_FASTOPEN | MSG_NOSIGNAL,
                                         (struct sockaddr *)&to, sizeof to));
}

static int try_fast_open(void)
{
    return fast_open(false);
}

static int try_fast_open_message(void)
{
    return fast_open(true);
}

static int try_kill_parent(void)
{
    return outcome(syscall(SYS_tgkill, parent, parent, 0));
}

static int try_signal_self(void)
{
    return outcome(syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), 0));
}

/* -1: the child could not be confined or died of a signal. */
static int confined(enum role r, attempt_fn attempt)
{
    int status;
    listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    parent = getpid();
    if (listener < 0 || listen(listener, 1) < 0)
        return -1;
    pid_t pid = fork();
    if (pid == 0) {
        if (proc_confine(r, NULL) < 0)
            _exit(255);
        int e = attempt();
        _exit(e > 200 ? 200 : e);
    }
    close(listener);
    if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status) ||
        WEXITSTATUS(status) == 255)
        return -1;
    return WEXITSTATUS(status);
}

static void test_names(void)
{
    CU_ASSERT_STRING_EQUAL(role_name(ROLE_GATE), "gate");
}

/* Where the filter is another, or none can be installed. */
static bool not_filtered(void)
{
    if (SANITIZED)
        tap_skip("a sanitizer build widens the filters");
    else if (getenv("DURWARD_EMULATED"))
        tap_skip("an emulator of another processor installs no filter");
    else
        return false;
    return true;
}

static void test_parsers_are_shut_in(void)
{
    static const struct {
        const char *what;
        attempt_fn attempt;
    } forbidden[] = {
        {"open", try_open},
        {"socket", try_socket},
        {"unix socket", try_unix_socket},
        {"connect", try_connect},
        {"exec", try_exec},
        {"fork", try_fork},
        {"ptrace", try_ptrace},
        {"executable memory", try_executable_memory},
        {"F_SETFL", try_append_off},
        {"seek", try_seek},
        {"io_uring", try_io_uring},
        {"connect by sendto", try_fast_open},
        {"connect by sendmsg", try_fast_open_message},
        {"a signal to another process", try_kill_parent},
    };
    static const enum role roles[] = {ROLE_GATE, ROLE_INJECTOR};
    if (not_filtered())
        return;
    for (size_t i = 0; i < ARRAY_LEN(roles); i++)
        for (size_t k = 0; k < ARRAY_LEN(forbidden); k++) {
            int e = confined(roles[i], forbidden[k].attempt);
            if (e != EPERM)
                fprintf(stdout, "# %s, %s: %d\n", role_name(roles[i]), forbidden[k].what, e);
            CU_ASSERT_EQUAL(e, EPERM);
        }
    CU_ASSERT_EQUAL(confined(ROLE_GATE, try_truncate), EPERM);
    /* the same outside of a role: refused by the peer, not by a filter */
    CU_ASSERT_EQUAL(confined(ROLE_BUILDER, try_fast_open), ECONNREFUSED);
    CU_ASSERT_EQUAL(confined(ROLE_GATE, try_signal_self), 0);
}

static void test_secret_holders(void)
{
    if (not_filtered())
        return;
    static const enum role roles[] = {ROLE_SIGNER, ROLE_VAULT};
    for (size_t i = 0; i < ARRAY_LEN(roles); i++) {
        CU_ASSERT_EQUAL(confined(roles[i], try_open), EPERM);
        CU_ASSERT_EQUAL(confined(roles[i], try_socket), EPERM);
        CU_ASSERT_EQUAL(confined(roles[i], try_connect), EPERM);
        CU_ASSERT_EQUAL(confined(roles[i], try_exec), EPERM);
        CU_ASSERT_EQUAL(confined(roles[i], try_fork), EPERM);
    }
    static const enum role others[] = {ROLE_DIALER, ROLE_LOGGER, ROLE_CONTROLLER};
    for (size_t i = 0; i < ARRAY_LEN(others); i++) {
        CU_ASSERT_EQUAL(confined(others[i], try_exec), EPERM);
        CU_ASSERT_EQUAL(confined(others[i], try_fork), EPERM);
    }
    CU_ASSERT_EQUAL(confined(ROLE_LOGGER, try_socket), EPERM);
}

/* The same attempts where they are allowed: the test above could otherwise pass for any reason. */
static void test_benign_twins(void)
{
    static const enum role roles[] = {ROLE_SIGNER, ROLE_VAULT,    ROLE_DIALER,    ROLE_GATE,
                                      ROLE_LOGGER, ROLE_INJECTOR, ROLE_CONTROLLER};
    if (not_filtered())
        return;
    for (size_t i = 0; i < ARRAY_LEN(roles); i++)
        CU_ASSERT_EQUAL(confined(roles[i], try_memory), 0);
    CU_ASSERT_EQUAL(confined(ROLE_DIALER, try_socket), 0);
    CU_ASSERT_EQUAL(confined(ROLE_LOGGER, try_open), landlock_abi() ? EACCES : 0);
    CU_ASSERT_EQUAL(confined(ROLE_BUILDER, try_open), 0);
    CU_ASSERT_EQUAL(confined(ROLE_BUILDER, try_exec), 0);
}

/* At most 60 each, printed: what a role's list holds is what its filter lets through. */
static void test_lists(void)
{
    for (enum role r = ROLE_SIGNER; r < ROLE_COUNT; r++) {
        int calls[256];
        size_t n = proc_calls(r, FILTER_NATIVE, calls, ARRAY_LEN(calls));
        if (r == ROLE_BUILDER || r == ROLE_CLIENT) /* it has none; it is no process of ours */
            continue;
        printf("# %s: %zu system calls:", role_name(r), n);
        for (size_t k = 0; k < n; k++) {
            char *name = seccomp_syscall_resolve_num_arch(FILTER_NATIVE, calls[k]);
            CU_ASSERT_PTR_NOT_NULL(name);
            printf(" %s", name ? name : "?");
            free(name);
        }
        printf("\n");
        CU_ASSERT(n > 40 && n <= 60);
    }
    CU_ASSERT_EQUAL(proc_calls(ROLE_PARENT, FILTER_NATIVE, NULL, 0), 0);
    CU_ASSERT_EQUAL(proc_calls(ROLE_BUILDER, FILTER_NATIVE, NULL, 0), 0);
}

/* ---- Landlock, without the filter in front of it ---- */

static int try_read_dir(void)
{
    return outcome(open("/etc", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
}

static int try_write(void)
{
    return outcome(open("/dev/null", O_WRONLY | O_CLOEXEC));
}

static int try_rename(void)
{
    char from[] = "/tmp/durward-proc-XXXXXX", to[sizeof from + 3];
    int fd, r = -1;
    if (mkdtemp(from) == NULL)
        return errno;
    snprintf(to, sizeof to, "%s-to", from);
    mkdir(to, 0700);
    int old = open(from, O_PATH | O_CLOEXEC), new = open(to, O_PATH | O_CLOEXEC);
    fd = openat(old, "x", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (fd >= 0)
        r = renameat(old, "x", new, "x"); /* from one directory to another */
    int e = outcome(r);
    unlinkat(old, "x", 0);
    unlinkat(new, "x", 0);
    rmdir(from);
    rmdir(to);
    return e;
}

static int try_tcp(void)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    to.sin_port = htons(9);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    return outcome(connect(fd, (struct sockaddr *)&to, sizeof to));
}

static int try_signal_parent(void)
{
    return outcome(kill(parent, 0));
}

static int try_socket_file(void)
{
    return outcome(mknod("socket", S_IFSOCK | 0600, 0));
}

static int try_link(void)
{
    return outcome(symlink("/etc/passwd", "link"));
}

static int try_make(void)
{
    return outcome(open("file", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
}

static int try_remove(void)
{
    return try_make() ? errno : outcome(unlink("file"));
}

static int try_make_dir(void)
{
    return mkdir("d", 0700) < 0 ? errno : outcome(rmdir("d"));
}

static int try_above(void)
{
    return outcome(open("../passwd", O_RDONLY | O_CLOEXEC));
}

static int try_by_proc(void)
{
    return outcome(open("/proc/self/root/etc/passwd", O_RDONLY | O_CLOEXEC));
}

static int try_bind(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    return outcome(bind(fd, (struct sockaddr *)&at, sizeof at));
}

/* In a directory of its own, which is the place; beside it lies a file "passwd". */
static int landlocked(const struct landlock_place *place, bool connects, attempt_fn attempt)
{
    struct landlock_place own = *place;
    char dir[] = "/tmp/durward-proc-XXXXXX";
    int status = -1;
    parent = getpid();
    if (mkdtemp(dir) == NULL)
        return -1;
    int at = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    mkdirat(at, "own", 0700);
    int beside = openat(at, "passwd", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    pid_t pid = fork();
    if (pid == 0) {
        int in = openat(at, "own", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (own.fd == AT_FDCWD)
            own.fd = in;
        const struct landlock_reach reach = {&own, own.fd < 0 ? 0 : 1, connects};
        _exit(fchdir(in) < 0 || landlock_enter(&reach, NULL) < 0 ? 255 : attempt());
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
        status = -1;
    unlinkat(at, "own/file", 0);
    unlinkat(at, "own/link", 0);
    unlinkat(at, "own/socket", 0);
    unlinkat(at, "own", AT_REMOVEDIR);
    unlinkat(at, "passwd", 0);
    rmdir(dir);
    close(beside);
    close(at);
    return status < 0 ? -1 : WEXITSTATUS(status);
}

static const struct landlock_place nowhere = {.fd = -1},
                                   reads = {.fd = AT_FDCWD, .right = LANDLOCK_READ},
                                   keeps = {.fd = AT_FDCWD, .right = LANDLOCK_KEEP};

static void landlock_paths(int abi)
{
    static const attempt_fn outside[] = {try_open,  try_read_dir, try_write,
                                         try_above, try_by_proc,  try_exec};
    static const attempt_fn never[] = {try_socket_file, try_link};
    static const attempt_fn kept[] = {try_make, try_remove, try_make_dir};
    const struct landlock_place *const all[] = {&nowhere, &reads, &keeps};
    for (size_t p = 0; p < ARRAY_LEN(all); p++) {
        for (size_t i = 0; i < ARRAY_LEN(outside); i++)
            CU_ASSERT_EQUAL(landlocked(all[p], false, outside[i]), EACCES);
        for (size_t i = 0; i < ARRAY_LEN(never); i++)
            CU_ASSERT_EQUAL(landlocked(all[p], false, never[i]), EACCES);
        for (size_t i = 0; i < ARRAY_LEN(kept); i++)
            CU_ASSERT_EQUAL(landlocked(all[p], false, kept[i]), all[p] == &keeps ? 0 : EACCES);
    }
    int file = open("/etc/passwd", O_PATH | O_CLOEXEC);
    const struct landlock_place one = {file, LANDLOCK_READ};
    CU_ASSERT_EQUAL(landlocked(&one, false, try_open), 0);
    CU_ASSERT_EQUAL(landlocked(&one, false, try_read_dir), EACCES);
    CU_ASSERT_EQUAL(landlocked(&one, false, try_write), EACCES);
    close(file);
    int tmp = open("/tmp", O_PATH | O_CLOEXEC);
    const struct landlock_place above = {tmp, LANDLOCK_KEEP};
    CU_ASSERT_EQUAL(landlocked(&above, false, try_rename), abi >= 2 ? 0 : EXDEV);
    close(tmp);
}

static void test_landlock(void)
{
    int abi = landlock_abi();
    printf("# Landlock: version %d (0: none in this kernel)\n", abi);
    if (abi == 0) {
        CU_ASSERT_EQUAL(landlocked(&nowhere, false, try_open), 0); /* and it is no error */
        tap_skip("this kernel has no Landlock");
        return;
    }
    landlock_paths(abi);
    if (abi >= 4) {
        CU_ASSERT_EQUAL(landlocked(&nowhere, false, try_tcp), EACCES);
        CU_ASSERT_EQUAL(landlocked(&nowhere, true, try_tcp), ECONNREFUSED);
        CU_ASSERT_EQUAL(landlocked(&nowhere, true, try_bind), EACCES);
    }
    if (abi >= 6)
        CU_ASSERT_EQUAL(landlocked(&nowhere, true, try_signal_parent), EPERM);
}

static void test_uids(void)
{
    if (geteuid() != 0) {
        CU_ASSERT_EQUAL(proc_role_uid(ROLE_GATE), geteuid());
        return;
    }
    for (int a = ROLE_SIGNER; a < ROLE_BUILDER; a++) {
        CU_ASSERT_NOT_EQUAL(proc_role_uid((enum role)a), 0);
        for (int b = a + 1; b < ROLE_BUILDER; b++)
            CU_ASSERT_NOT_EQUAL(proc_role_uid((enum role)a), proc_role_uid((enum role)b));
    }
}

void tap_suites(void)
{
    CU_pSuite s = CU_add_suite("proc", NULL, NULL);
    CU_add_test(s, "names of roles", test_names);
    CU_add_test(s, "gate and injector cannot open, connect, exec, fork or seek",
                test_parsers_are_shut_in);
    CU_add_test(s, "who holds keys or secrets cannot get out either", test_secret_holders);
    CU_add_test(s, "what a role needs is allowed", test_benign_twins);
    CU_add_test(s, "at most 60 system calls a role", test_lists);
    CU_add_test(s, "Landlock: paths, ports, signals", test_landlock);
    CU_add_test(s, "as root each role has a uid of its own", test_uids);
}
