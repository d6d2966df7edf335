/* Forks and executes a command with a reduced environment and a process group of its own. A pipe
 * that a successful exec closes brings the error of one that failed. */
#include "store_command.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ENV_MAX = 64 };

static bool kept(const char *setting)
{
    static const char *const names[] = {
        "PATH=",      "HOME=",    "USER=",           "LANG=", "LC_", "DBUS_SESSION_BUS_ADDRESS=",
        "GNUPGHOME=", "GPG_TTY=", "XDG_RUNTIME_DIR="};
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (strncmp(setting, names[i], strlen(names[i])) == 0)
            return true;
    return false;
}

/* Pointers into our own environment: nothing to free. */
static void clean_environment(char *env[ENV_MAX])
{
    size_t n = 0;
    for (char **e = environ; e && *e && n < ENV_MAX - 1; e++)
        if (kept(*e))
            env[n++] = *e;
    env[n] = NULL;
}

/* In the child: never returns. `report` gets errno when the command cannot be executed. */
static NORETURN void run(const char *const *argv, char *const env[], int in, int out, int report)
{
    static const int defaults[] = {SIGPIPE, SIGINT,  SIGQUIT, SIGHUP,
                                   SIGTERM, SIGCHLD, SIGUSR1, SIGUSR2};
    sigset_t none;
    if (in < 0)
        in = open("/dev/null", O_RDONLY | O_CLOEXEC);
    for (size_t i = 0; i < ARRAY_LEN(defaults); i++)
        signal(defaults[i], SIG_DFL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    if (in >= 0 && setpgid(0, 0) == 0 && prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 &&
        dup2(in, 0) == 0 && dup2(out, 1) == 1 && dup3(report, 3, O_CLOEXEC) == 3 &&
        syscall(SYS_close_range, 4, ~0U, 0) == 0) {
        report = 3;
        execvpe(argv[0], (char *const *)argv, env);
    }
    int e = errno;
    ssize_t w = write(report, &e, sizeof e);
    (void)w;
    _exit(127);
}

/* Both ends of two pipes at or above 10, so that the child's dup2 to 0, 1 and 3 hits none. */
static int make_pipe(int fds[2], struct err *err)
{
    int low[2];
    if (pipe2(low, O_CLOEXEC) < 0)
        return err_sys(err, "pipe");
    for (int i = 0; i < 2; i++) {
        fds[i] = fcntl(low[i], F_DUPFD_CLOEXEC, 10);
        close(low[i]);
    }
    if (fds[0] < 0 || fds[1] < 0) {
        err_sys(err, "pipe");
        for (int i = 0; i < 2; i++)
            if (fds[i] >= 0)
                close(fds[i]);
        return -1;
    }
    return 0;
}

/* The child's errno, or 0 once exec has closed its end. */
static int exec_error(int fd)
{
    int e = 0;
    ssize_t n;
    do
        n = read(fd, &e, sizeof e);
    while (n < 0 && errno == EINTR);
    return n == (ssize_t)sizeof e ? e : 0;
}

int store_command_start(const char *const *argv, int in, struct store_result *ret, struct err *err)
{
    int out[2], report[2];
    char *env[ENV_MAX];
    if (make_pipe(out, err) < 0)
        return -1;
    if (fcntl(out[0], F_SETFL, O_NONBLOCK) < 0 || make_pipe(report, err) < 0) {
        close(out[0]);
        close(out[1]);
        return err_wrap(err, "%s", argv[0]);
    }
    clean_environment(env);
    pid_t pid = fork();
    if (pid == 0)
        run(argv, env, in, out[1], report[1]);
    int e = pid < 0 ? errno : 0;
    close(out[1]);
    close(report[1]);
    if (pid > 0) {
        e = exec_error(report[0]);
        if (e)
            waitpid(pid, NULL, 0);
    }
    close(report[0]);
    if (e == 0) {
        *ret = (struct store_result){.fd = out[0], .pid = pid};
        return 0;
    }
    close(out[0]);
    errno = e;
    return err_sys(err, "cannot run %s", argv[0]);
}

int store_command_tell(const char *const *argv, const char *line, pid_t *pid, struct err *err)
{
    struct store_result r = {.fd = -1};
    int in[2];
    size_t n = strlen(line);
    *pid = 0;
    if (make_pipe(in, err) < 0)
        return -1;
    int ok = write(in[1], line, n) == (ssize_t)n && write(in[1], "\n", 1) == 1
                 ? store_command_start(argv, in[0], &r, err)
                 : err_sys(err, "pipe");
    close(in[0]);
    close(in[1]);
    if (r.fd >= 0)
        close(r.fd);
    if (ok == 0)
        *pid = r.pid;
    return ok;
}
