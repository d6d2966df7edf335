/* Starts `podman healthcheck run` again and again, and waits in between. */
#define _GNU_SOURCE 1
#include "health_ticker.h"

#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "compiler.h"
#include "network_folder.h"
#include "slice.h"

enum {
    HEALTHY = 0,
    UNHEALTHY = 1,
    SECOND = 1000000000,
    SLICE = 10, /* seconds: what has ended is not waited for longer */
    TRIES = 2 * SLICE,
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

/* What podman says of the container, without the line's end; empty: it knows none. */
static struct slice inspect(const char *id, char *format, char *text, size_t size)
{
    static char word[] = "inspect", type[] = "--type=container";
    char *argv[] = {program, word, type, format, (char *)(uintptr_t)id, NULL};
    int pipes[2];
    if (pipe2(pipes, O_CLOEXEC) < 0)
        return (struct slice){text, 0};
    int status = run(argv, pipes[1]);
    close(pipes[1]);
    ssize_t n = status == 0 ? read(pipes[0], text, size) : -1;
    close(pipes[0]);
    return (struct slice){text, n > 1 ? (size_t)n - 1 : 0};
}

/* In nanoseconds; 0: there is nothing to check, or nobody shall. */
static uint64_t interval(const char *id)
{
    static char format[] =
        "--format={{with .Config.Healthcheck}}{{printf \"%d\" .Interval}}{{end}}";
    char text[32];
    uint64_t ns = 0;
    return slice_u64(inspect(id, format, text, sizeof text), INT64_MAX, &ns) < 0 ? 0 : ns;
}

/* One that is paused will go on; one that is made just now, too. */
static bool is_there(const char *id)
{
    static char format[] = "--format={{.State.Status}}";
    char text[32];
    struct slice state = inspect(id, format, text, sizeof text);
    return slice_eq_str(state, "running") || slice_eq_str(state, "paused") ||
           slice_eq_str(state, "initialized");
}

/* false: the container has ended meanwhile. */
static bool wait_for(uint64_t ns, const char *id)
{
    const uint64_t slice = (uint64_t)SLICE * SECOND;
    while (ns > 0) {
        uint64_t now = ns > slice ? slice : ns;
        struct timespec t = {.tv_sec = (time_t)(now / SECOND), .tv_nsec = (long)(now % SECOND)};
        nanosleep(&t, NULL);
        ns -= now;
        if (ns > 0 && !is_there(id))
            return false;
    }
    return true;
}

static void tick(const char *id, uint64_t ns)
{
    static char healthcheck[] = "healthcheck", word[] = "run";
    char *argv[] = {program, healthcheck, word, (char *)(uintptr_t)id, NULL};
    bool there = true;
    while (there && wait_for(ns, id)) {
        int status = run(argv, -1);
        there = status == HEALTHY || status == UNHEALTHY || is_there(id);
    }
}

/* One process a container, however often that was started: the lock of a file that stays as long as
 * the sandbox. One that was for an earlier start may be about to end. */
static bool is_first(const char *id)
{
    char name[PATH_MAX];
    int folder = network_folder_open(NULL);
    int n = snprintf(name, sizeof name, "health-%s", id);
    int fd = folder < 0 || n >= (int)sizeof name
                 ? -1
                 : openat(folder, name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    for (int i = 0; fd >= 0 && i < TRIES; i++) {
        if (flock(fd, LOCK_EX | LOCK_NB) == 0)
            return true;
        sleep(1);
    }
    return false;
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
    uint64_t ns = interval(id);
    if (ns > 0 && is_first(id))
        tick(id, ns);
    _exit(0);
}
