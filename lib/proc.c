/* Starts roles and prepares a role's process: uid, limits, signals, and death with its parent. The
 * filter that follows is confine.c. */
#define _GNU_SOURCE 1
#include "proc.h"

#include "program.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { ROLE_UID_BASE = 61700, ROLE_FILES = 65536 };

static const char *const names[ROLE_COUNT] = {
    [ROLE_NONE] = "none",
    [ROLE_PARENT] = "parent",
    [ROLE_SIGNER] = "signer",
    [ROLE_VAULT] = "vault",
    [ROLE_DIALER] = "dialer",
    [ROLE_GATE] = "gate",
    [ROLE_INJECTOR] = "injector",
    [ROLE_LOGGER] = "logger",
    [ROLE_CONTROLLER] = "controller",
    [ROLE_BUILDER] = "builder",
    [ROLE_CLIENT] = "client",
    [ROLE_EXPORTER] = "exporter",
    [ROLE_SSH_FRONT] = "ssh-front",
    [ROLE_SSH_BACK] = "ssh-back",
    [ROLE_POSTGRES_FRONT] = "postgres-front",
    [ROLE_POSTGRES_BACK] = "postgres-back",
    [ROLE_REDIS_FRONT] = "redis-front",
    [ROLE_REDIS_BACK] = "redis-back",
    [ROLE_MYSQL_FRONT] = "mysql-front",
    [ROLE_MYSQL_BACK] = "mysql-back",
    [ROLE_SMTP_FRONT] = "smtp-front",
    [ROLE_SMTP_BACK] = "smtp-back",
    [ROLE_IMAP_FRONT] = "imap-front",
    [ROLE_IMAP_BACK] = "imap-back",
    [ROLE_FLEET] = "fleet",
};

static enum role self = ROLE_NONE;

const char *role_name(enum role r)
{
    return (unsigned)r < ROLE_COUNT ? names[r] : "unknown";
}

void proc_role_argv(char *argv0, bool debug, char *argv[PROC_ARGV])
{
    static char build[64], level[] = PROGRAM_DEBUG;
    snprintf(build, sizeof build, "%s", program_build);
    argv[0] = argv0;
    argv[1] = build;
    argv[2] = debug ? level : NULL;
    argv[3] = NULL;
}

/* Roles start with an empty environment (the parent is told by message what it needs). Sanitizer
 * builds keep the sanitizers' own options, or their reports would be lost. */
char **proc_environment(void)
{
    static char *env[8];
    size_t n = 0;
    if (SANITIZED) {
        static const char *const keep[] = {
            "ASAN_OPTIONS=", "LSAN_OPTIONS=", "UBSAN_OPTIONS=", "ASAN_SYMBOLIZER_PATH="};
        for (char **e = environ; *e && n < ARRAY_LEN(env) - 1; e++)
            for (size_t i = 0; i < ARRAY_LEN(keep); i++)
                if (strncmp(*e, keep[i], strlen(keep[i])) == 0)
                    env[n++] = *e;
    }
    env[n] = NULL;
    return env;
}

static struct rlimit files_before; /* rlim_max 0: not raised */

void proc_files_raise(void)
{
    struct rlimit r;
    if (getrlimit(RLIMIT_NOFILE, &r) < 0 || r.rlim_cur >= ROLE_FILES)
        return;
    files_before = r;
    r.rlim_cur = r.rlim_max < ROLE_FILES ? r.rlim_max : ROLE_FILES;
    (void)setrlimit(RLIMIT_NOFILE, &r); /* with fewer there is 503 earlier */
}

void proc_files_restore(void)
{
    if (files_before.rlim_max > 0)
        (void)setrlimit(RLIMIT_NOFILE, &files_before);
}

/* What our loop does at a signal is done in our memory, which a child shares until its exec. */
static void forget_handlers(void)
{
    for (int sig = 1; sig < NSIG; sig++) {
        struct sigaction is;
        if (sigaction(sig, NULL, &is) == 0 && is.sa_handler != SIG_DFL && is.sa_handler != SIG_IGN)
            (void)signal(sig, SIG_DFL);
    }
}

static NORETURN void role_exec(int program, char *argv0, bool debug, int control_fd)
{
    enum { PROGRAM_FD = PROC_CONTROL_FD + 1 };
    char *argv[PROC_ARGV];
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    /* out of the way first: any of them may have the number of another */
    int ours = fcntl(program, F_DUPFD_CLOEXEC, 16),
        channel = fcntl(control_fd, F_DUPFD_CLOEXEC, 16);
    if (null < 0 || ours < 0 || channel < 0 || dup2(null, 0) < 0 || dup2(null, 1) < 0 ||
        dup2(channel, PROC_CONTROL_FD) < 0 || dup3(ours, PROGRAM_FD, O_CLOEXEC) < 0)
        _exit(126);
    if (syscall(SYS_close_range, PROGRAM_FD + 1, ~0U, 0) < 0)
        _exit(126);
    /* Of no terminal, whose keys are for the parent; and where the scheduler shares by session,
     * what a sandbox makes its gate do is on that gate's account. */
    (void)setsid();
    proc_files_restore();
    forget_handlers();
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    proc_role_argv(argv0, debug, argv);
    program_exec(PROGRAM_FD, argv, proc_environment());
    _exit(127);
}

struct spawn {
    int program, control_fd;
    char *argv0;
    bool debug;
};

static int in_child(void *arg)
{
    const struct spawn *s = arg;
    role_exec(s->program, s->argv0, s->debug, s->control_fd);
}

/* Until its exec the child runs in our memory, on a stack of its own, while we wait: a copy of our
 * page tables that it would throw away costs more than the exec. No signal is taken meanwhile. */
static pid_t spawn(struct spawn *s)
{
    enum { STACK = 32 * 1024 };
    static _Alignas(16) char stack[STACK];
    sigset_t all, before;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &before);
    pid_t pid = SANITIZED /* which knows no stack but its own */
                    ? fork()
                    : clone(in_child, stack + sizeof stack, CLONE_VM | CLONE_VFORK | SIGCHLD, s);
    if (SANITIZED && pid == 0)
        in_child(s);
    int saved = errno;
    sigprocmask(SIG_SETMASK, &before, NULL);
    errno = saved;
    return pid;
}

int proc_spawn(enum role r, int program, const char *tag, bool debug, int control_fd, pid_t *ret,
               struct err *err)
{
    char argv0[96];
    struct spawn s = {program, control_fd, argv0, debug};
    snprintf(argv0, sizeof argv0, "durward: %s%s%s", role_name(r), tag ? " " : "", tag ? tag : "");
    pid_t pid = spawn(&s);
    if (pid < 0)
        return err_sys(err, "cannot start the %s", role_name(r));
    *ret = pid;
    return 0;
}

int proc_spawn_one(enum role r, int control_fd, pid_t *ret, struct err *err)
{
    int program = program_open(role_name(r), err);
    if (program < 0)
        return -1;
    int result = proc_spawn(r, program, NULL, false, control_fd, ret, err);
    close(program);
    return result;
}

/* Root with uids to give away: not "root" of a user namespace that has no other uid. Lines of
 * uid_map: first uid inside, first uid outside, how many. */
static bool map_has_role_uids(const char *map)
{
    char *end;
    for (const char *at = map; *at;) {
        unsigned long in = strtoul(at, &end, 10);
        strtoul(end, &end, 10);
        unsigned long n = strtoul(end, &end, 10);
        if (end == at)
            return false;
        if (in <= ROLE_UID_BASE && in + n > ROLE_UID_BASE + ROLE_COUNT)
            return true;
        at = end + strspn(end, " \n");
    }
    return false;
}

static bool has_role_uids(void)
{
    static int known = -1;
    char map[1024];
    if (known >= 0)
        return known;
    known = 0;
    int fd = geteuid() == 0 ? open("/proc/self/uid_map", O_RDONLY | O_CLOEXEC) : -1;
    ssize_t n = fd >= 0 ? read(fd, map, sizeof map - 1) : -1;
    if (fd >= 0)
        close(fd);
    if (n > 0) {
        map[n] = 0;
        known = map_has_role_uids(map);
    }
    return known;
}

uid_t proc_role_uid(enum role r)
{
    return has_role_uids() ? (uid_t)(ROLE_UID_BASE + r) : geteuid();
}

static bool keeps_uid(enum role r)
{
    return r == ROLE_PARENT || r == ROLE_BUILDER || r == ROLE_NONE;
}

int proc_become(enum role r, struct err *err)
{
    if (keeps_uid(r) || !has_role_uids())
        return 0;
    uid_t uid = proc_role_uid(r);
    if (setgroups(0, NULL) < 0 || setresgid(uid, uid, uid) < 0 || setresuid(uid, uid, uid) < 0)
        return err_sys(err, "cannot become uid %u", (unsigned)uid);
    if (setuid(0) == 0 || setgid(0) == 0 || geteuid() != uid || getegid() != uid)
        return err_set(err, ERR_INTERNAL, "privileges came back after the drop");
    return 0;
}

int proc_no_core(void)
{
    struct rlimit one = {1, 1}, none = {0, 0};
    return setrlimit(RLIMIT_CORE, &one) == 0 ? 0 : setrlimit(RLIMIT_CORE, &none);
}

int proc_enter(enum role r, struct err *err)
{
    self = r;
    int type = 0;
    socklen_t len = sizeof type;
    if (getsockopt(PROC_CONTROL_FD, SOL_SOCKET, SO_TYPE, &type, &len) < 0 || type != SOCK_SEQPACKET)
        return err_set(err, ERR_UNREADY,
                       "this is a role of Durward and is only started by its parent");
    char name[16];
    snprintf(name, sizeof name, "durward-%.7s", role_name(r));
    prctl(PR_SET_NAME, name);
    if (proc_no_core() < 0)
        return err_sys(err, "RLIMIT_CORE");
    /* One client connection is up to three descriptors. And the kernel counts what lies unread in
     * sockets by uid, sandboxes' of ours included, against the limit of whoever sends one. */
    proc_files_raise();
    if (proc_become(r, err) < 0)
        return -1;
    signal(SIGPIPE, SIG_IGN);
    if (r != ROLE_PARENT) {
        signal(SIGINT, SIG_IGN); /* a terminal's ^C is for the sandbox, not for us */
        signal(SIGQUIT, SIG_IGN);
        signal(SIGHUP, SIG_IGN);
        if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
            return err_sys(err, "PR_SET_PDEATHSIG");
        if (getppid() == 1 && fcntl(PROC_CONTROL_FD, F_GETFD) < 0)
            return err_set(err, ERR_UNREADY, "the parent is gone");
    }
    /* bubblewrap and the commands of `command:` secrets are started below these two; they set
     * no_new_privs themselves or must be able to run what the user configured */
    if (!keeps_uid(r) && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return err_sys(err, "no_new_privs");
    /* a change of uid made it not dumpable already; LeakSanitizer needs it back */
    if (prctl(PR_SET_DUMPABLE, SANITIZED) < 0)
        return err_sys(err, "PR_SET_DUMPABLE");
    return 0;
}

const char *proc_relaxations(void)
{
    return SANITIZED ? "sanitizer build: roles stay dumpable (LeakSanitizer attaches by ptrace), "
                       "their system-call lists are widened for the sanitizers' runtime, there is "
                       "no Landlock, and "
                       "sanitizer options are kept in their environment"
                     : "";
}

void proc_log(const char *fmt, ...)
{
    char line[1024];
    int n = snprintf(line, sizeof line, "durward: %s: ", role_name(self));
    va_list ap;
    va_start(ap, fmt);
    int m = vsnprintf(line + n, sizeof line - (size_t)n - 1, fmt, ap);
    va_end(ap);
    size_t len = (size_t)n + (m < 0 ? 0 : (size_t)m);
    if (len > sizeof line - 2)
        len = sizeof line - 2;
    for (size_t i = 0; i < len; i++)
        if ((unsigned char)line[i] < 0x20 || line[i] == 0x7f)
            line[i] = '?';
    line[len++] = '\n';
    ssize_t w = write(STDERR_FILENO, line, len);
    (void)w; /* nowhere left to complain */
}
