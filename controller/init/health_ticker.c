/* Starts `podman healthcheck run` again and again, and waits in between. */
#define _GNU_SOURCE 1
#include "health_ticker.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "compiler.h"
#include "slice.h"

enum {
    HEALTHY = 0,
    UNHEALTHY = 1,
    REFUSALS = 3, /* in a row: a container may be paused */
    SECOND = 1000000000,
    DEFAULT = 30, /* seconds, as podman says itself */
};

static char program[] = "podman";

/* Its exit status; what it writes goes to a descriptor. -1: it was not started, or killed. */
static int run(char **argv, int out)
{
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        if (out >= 0 && dup2(out, STDOUT_FILENO) < 0)
            _exit(127);
        execvp(program, argv);
        _exit(127);
    }
    return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status)
                                                                           : -1;
}

/* In nanoseconds; 0: there is nothing to check. */
static uint64_t interval(const char *id)
{
    static char inspect[] = "inspect", type[] = "--type=container",
                format[] =
                    "--format={{with .Config.Healthcheck}}{{printf \"%d\" .Interval}}{{end}}";
    char *argv[] = {program, inspect, type, format, (char *)(uintptr_t)id, NULL}, text[32];
    uint64_t ns = 0;
    int pipes[2];
    if (pipe2(pipes, O_CLOEXEC) < 0)
        return 0;
    int status = run(argv, pipes[1]);
    close(pipes[1]);
    ssize_t n = status == 0 ? read(pipes[0], text, sizeof text) : -1;
    close(pipes[0]);
    if (n < 2 || slice_u64((struct slice){text, (size_t)n - 1}, INT64_MAX, &ns) < 0)
        return 0;
    return ns ? ns : (uint64_t)DEFAULT * SECOND;
}

static void tick(const char *id)
{
    static char healthcheck[] = "healthcheck", word[] = "run";
    char *argv[] = {program, healthcheck, word, (char *)(uintptr_t)id, NULL};
    uint64_t ns = interval(id);
    struct timespec wait = {.tv_sec = (time_t)(ns / SECOND), .tv_nsec = (long)(ns % SECOND)};
    for (int refused = 0; ns > 0 && refused < REFUSALS;) {
        nanosleep(&wait, NULL);
        int status = run(argv, -1);
        refused = status == HEALTHY || status == UNHEALTHY ? 0 : refused + 1;
    }
}

/* One process a container, however often that was started: a name that one alone can have. */
static bool is_first(const char *id)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    int n = snprintf(name.sun_path + 1, sizeof name.sun_path - 1, "durward-health-%.80s", id);
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    return fd >= 0 && bind(fd, (struct sockaddr *)&name,
                           (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + n)) == 0;
}

void health_ticker_begin(const char *id)
{
    pid_t pid = fork();
    if (pid != 0) {
        if (pid > 0)
            (void)waitpid(pid, NULL, 0);
        return;
    }
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (setsid() < 0 || fork() != 0 || null < 0)
        _exit(0);
    for (int i = 0; i < 3; i++)
        (void)dup2(null, i);
    if (syscall(SYS_close_range, 3, ~0U, 0) < 0)
        _exit(0);
    (void)prctl(PR_SET_NAME, "durward-health");
    if (is_first(id))
        tick(id);
    _exit(0);
}
