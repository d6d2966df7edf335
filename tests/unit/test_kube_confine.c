/* What is left to the processes of a pod's keeper: to those that ask the API server, and to those
 * that carry what a pod says. */
#define _GNU_SOURCE 1
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kube_confine.h"
#include "landlock.h"
#include "proc.h"
#include "tap_main.h"

static char folder[64], token[80], other[64];

/* What it could do, each a bit. */
enum {
    TOKEN,
    OTHER,
    INET,
    UNIX,
    UNIX_WIDE,
    SIGNAL,
    THREAD,
    PROGRAM,
    OWNER,
    LIMIT,
    FORK,
    PIPE,
    TRIES
};
static const char *const names[TRIES] = {
    "the token",           "another file",    "a socket of TCP",    "a unix socket",
    "a unix socket, wide", "a signal",        "a signal by thread", "another program",
    "an owner of signals", "another's limit", "a process",          "what is open"};

static bool opens(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

static bool makes(long family)
{
    long fd = syscall(SYS_socket, family, SOCK_STREAM, 0);
    if (fd >= 0)
        close((int)fd);
    return fd >= 0;
}

static bool forks(void)
{
    pid_t pid = fork();
    if (pid == 0)
        _exit(0);
    return pid > 0 && waitpid(pid, NULL, 0) == pid;
}

static bool runs(void)
{
    char *const argv[] = {NULL}, *const env[] = {NULL};
    return execve(other, argv, env) < 0 && errno != EPERM; /* asked for, it could not be run */
}

static unsigned tried(int victim, int out)
{
    struct rlimit l;
    unsigned can = 0;
    can |= (unsigned)opens(token) << TOKEN;
    can |= (unsigned)opens(other) << OTHER;
    can |= (unsigned)makes(AF_INET) << INET;
    can |= (unsigned)makes(AF_UNIX) << UNIX;
    can |= (unsigned)makes(1L << 32 | AF_UNIX) << UNIX_WIDE;
    can |= (unsigned)(kill(victim, 0) == 0) << SIGNAL;
    can |= (unsigned)(syscall(SYS_tgkill, victim, victim, 0) == 0) << THREAD;
    can |= (unsigned)runs() << PROGRAM;
    can |= (unsigned)(fcntl(out, F_SETOWN, victim) == 0) << OWNER;
    can |= (unsigned)(prlimit(victim, RLIMIT_CORE, NULL, &l) == 0) << LIMIT;
    can |= (unsigned)forks() << FORK;
    return can;
}

static NORETURN void be(bool carrier, pid_t victim, int out)
{
    struct err err = {0};
    unsigned can = 0;
    if (kube_confine(token, -1, &err) < 0 || (carrier && kube_confine_carrier(&err) < 0))
        can = ~0U;
    else
        can = tried(victim, out) | 1U << PIPE;
    _exit(write(out, &can, sizeof can) != sizeof can);
}

static void has(bool carrier, unsigned want)
{
    int p[2];
    unsigned can = 0;
    CU_ASSERT_FATAL(pipe2(p, O_CLOEXEC) == 0);
    pid_t victim = fork();
    if (victim == 0)
        for (prctl(PR_SET_PDEATHSIG, SIGKILL);;)
            pause();
    pid_t pid = fork();
    if (pid == 0)
        be(carrier, victim, p[1]);
    close(p[1]);
    CU_ASSERT(read(p[0], &can, sizeof can) == sizeof can);
    for (unsigned i = 0; i < TRIES; i++)
        if ((can ^ want) >> i & 1) {
            printf("# %s: %s\n", names[i], can >> i & 1 ? "allowed" : "refused");
            CU_FAIL("its rights");
        }
    waitpid(pid, NULL, 0);
    kill(victim, SIGKILL);
    waitpid(victim, NULL, 0);
    close(p[0]);
}

static bool files(void)
{
    snprintf(folder, sizeof folder, "/tmp/durward-kube-XXXXXX");
    snprintf(other, sizeof other, "/tmp/durward-kube-other-XXXXXX");
    if (SANITIZED || landlock_abi() == 0 || mkdtemp(folder) == NULL)
        return false;
    snprintf(token, sizeof token, "%s/t", folder);
    close(open(token, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    int fd = mkstemp(other);
    close(fd);
    return fd >= 0;
}

static void done(void)
{
    unlink(token);
    rmdir(folder);
    unlink(other);
}

static void test_asks(void)
{
    if (!files()) {
        tap_skip("no Landlock here, or a build that knows no filter");
        return;
    }
    has(false, 1U << TOKEN | 1U << INET | 1U << FORK | 1U << PIPE);
    done();
}

static void test_carries(void)
{
    if (!files()) {
        tap_skip("no Landlock here, or a build that knows no filter");
        return;
    }
    has(true, 1U << PIPE);
    done();
}

/* A name is looked up by whatever this host has for that. */
static void test_names(void)
{
    int status;
    if (!files()) {
        tap_skip("no Landlock here, or a build that knows no filter");
        return;
    }
    pid_t pid = fork();
    if (pid == 0) {
        struct err err = {0};
        struct addrinfo want = {.ai_socktype = SOCK_STREAM}, *list;
        _exit(kube_confine(token, -1, &err) < 0 ||
              getaddrinfo("localhost", "443", &want, &list) != 0);
    }
    CU_ASSERT(waitpid(pid, &status, 0) == pid && status == 0);
    done();
}

void tap_suites(void)
{
    CU_pSuite s = CU_add_suite("kube confine", NULL, NULL);
    CU_add_test(s, "who asks", test_asks);
    CU_add_test(s, "who carries", test_carries);
    CU_add_test(s, "names", test_names);
}
