/* Forks a process for one layer_work and reads its report from a pipe; one that ends without a
 * report has failed. */
#define _GNU_SOURCE 1
#include "worker.h"

#include <event2/event.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

struct report {
    enum layer_result result;
    char text[512];
};

struct worker {
    pid_t pid;
    int said;
    struct event *event;
    void (*done)(void *arg, enum layer_result result, const char *text);
    void *arg;
};

static void worker_free(struct worker *e)
{
    if (e->event)
        event_free(e->event);
    if (e->said >= 0)
        close(e->said);
    if (e->pid > 0)
        (void)waitpid(e->pid, NULL, 0);
    free(e);
}

/* The report, or the end of a process that gave none. */
static void on_report(evutil_socket_t fd, short what, void *arg)
{
    struct worker *e = arg;
    struct report r;
    (void)what;
    if (read(fd, &r, sizeof r) != sizeof r)
        r = (struct report){LAYER_FAILED, "the process that copies was killed"};
    r.text[sizeof r.text - 1] = '\0';
    e->done(e->arg, r.result, r.text);
    worker_free(e);
}

static NORETURN void child(int say, pid_t builder, const struct worker_place *at, enum layer_op op,
                           const char *from, const char *to, const struct layer_stream *stream)
{
    struct layer_stream own = stream ? *stream : (struct layer_stream){.fd = -1};
    struct report r = {LAYER_FAILED, ""};
    struct err err = {0};
    sigset_t empty;
    sigemptyset(&empty);
    for (int sig = 1; sig < NSIG; sig++)
        signal(sig, SIG_DFL);
    sigprocmask(SIG_SETMASK, &empty, NULL);
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && getppid() == builder)
        r.result = layer_work(at->state_dir, at->archive, op, from, to, &own, &err);
    snprintf(r.text, sizeof r.text, "%.511s", r.result == LAYER_DONE ? own.about : err.text);
    _exit(write(say, &r, sizeof r) == sizeof r ? 0 : 1);
}

struct worker *worker_start(struct event_base *base, const struct worker_place *at,
                            enum layer_op op, const char *from, const char *to,
                            const struct layer_stream *stream,
                            void (*done)(void *arg, enum layer_result result, const char *text),
                            void *arg)
{
    int pair[2];
    struct worker *e = calloc(1, sizeof *e);
    if (e == NULL || pipe2(pair, O_CLOEXEC) < 0) {
        free(e);
        return NULL;
    }
    *e = (struct worker){.said = pair[0], .done = done, .arg = arg};
    e->event = event_new(base, e->said, EV_READ, on_report, e);
    pid_t self = getpid();
    e->pid = e->event && event_add(e->event, NULL) == 0 ? fork() : -1;
    if (e->pid == 0)
        child(pair[1], self, at, op, from, to, stream);
    close(pair[1]);
    if (e->pid > 0)
        return e;
    worker_free(e);
    return NULL;
}

void worker_abandon(struct worker *e)
{
    kill(e->pid, SIGKILL);
    worker_free(e);
}

void worker_finish(struct worker *e, unsigned ms)
{
    struct pollfd p = {.fd = e->said, .events = POLLIN};
    if (poll(&p, 1, (int)ms) <= 0)
        kill(e->pid, SIGKILL);
    worker_free(e);
}
