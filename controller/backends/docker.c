/* The backend's `make`, in a launcher: it creates and starts the container, enters its network,
 * hands over to its pid 1, waits for its end and removes it. */
#define _GNU_SOURCE 1
#include "docker.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/nsfs.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "backend.h"
#include "handover.h"
#include "proc.h"
#include "wire.h"

enum { CONNECT_MS = 15000, START_WAIT_MS = 20000 };

struct container {
    const struct making *m;
    struct engine engine;
    struct docker_parts parts;
    char id[ENGINE_ID_MAX]; /* "" before it is created */
    pid_t pid;
    int pidfd, signals;
    struct buf notes;
};

/* ---- the world outside ---- */

/* Waits until fd can be read, if it is not -1. 0: it can; -1: the sandbox is to end, or has. */
static int await(const struct container *c, int fd, int ms, struct err *err)
{
    struct pollfd p[4] = {{.fd = fd, .events = POLLIN},
                          {.fd = c->signals, .events = POLLIN},
                          {.fd = LAUNCHER_CHANNEL, .events = fd == LAUNCHER_CHANNEL ? 0 : POLLIN},
                          {.fd = c->pidfd, .events = POLLIN}};
    int n;
    do
        n = poll(p, 4, ms);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return err_sys(err, "poll");
    if (p[1].revents || p[2].revents & (POLLHUP | POLLERR | POLLIN))
        return err_set(err, ERR_UNREADY, "the sandbox was ended");
    if (fd >= 0 && p[0].revents)
        return 0;
    if (p[3].revents)
        return err_set(err, ERR_UPSTREAM, "the container ended by itself");
    return err_set(err, ERR_UNREADY, "the container does not ask for what it needs");
}

static int heed_signals(struct container *c, struct err *err)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    if (sigprocmask(SIG_BLOCK, &set, NULL) < 0 ||
        (c->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK)) < 0)
        return err_sys(err, "signalfd");
    return 0;
}

static void remove_orphan(void *arg, const char *id, const json_t *labels)
{
    const struct container *c = arg;
    const char *sandbox = json_string_value(json_object_get(labels, DOCKER_LABEL_SANDBOX));
    if (sandbox && docker_parts_orphan(&c->parts, sandbox))
        (void)engine_remove(&c->engine, id, NULL); /* the next launcher tries again */
}

/* ---- its network ---- */

static int same_file(int a, int b)
{
    struct stat x, y;
    if (fstat(a, &x) < 0 || fstat(b, &y) < 0)
        return -1;
    return x.st_ino == y.st_ino && x.st_dev == y.st_dev;
}

static int not_ours(struct err *err)
{
    return err_set(
        err, ERR_DENIED,
        "the engine's containers are not ours to enter (%s): run durward as the engine's "
        "user, or as root",
        strerror(errno));
}

/* Where the container is another user namespace's (a rootless engine of ours), by way of that. */
static int enter(int net, struct err *err)
{
    if (setns(net, CLONE_NEWNET) == 0)
        return 0;
    int user = ioctl(net, NS_GET_USERNS);
    bool entered = user >= 0 && setns(user, CLONE_NEWUSER) == 0 && setns(net, CLONE_NEWNET) == 0;
    int r = entered ? 0 : not_ours(err);
    if (user >= 0)
        close(user);
    return r;
}

static int open_ns(pid_t pid, struct err *err)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/ns/net", (int)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 && (errno == EACCES || errno == EPERM))
        err_set(err, ERR_DENIED,
                "the engine's containers are not ours to enter: run durward as "
                "the engine's user, or as root");
    else if (fd < 0)
        err_sys(err, "%s", path);
    return fd;
}

/* The process stays in there: it has no further use of the host's network. */
static int enter_network(const struct container *c, struct err *err)
{
    int net = open_ns(c->pid, err), own = net < 0 ? -1 : open_ns(getpid(), err);
    int r = own < 0 ? -1 : same_file(net, own);
    if (own >= 0 && r != 0)
        r = err_set(err, ERR_UPSTREAM, "the container has the host's network");
    if (r == 0)
        r = enter(net, err);
    if (own >= 0)
        close(own);
    own = r == 0 ? open_ns(getpid(), err) : -1;
    if (own < 0 || same_file(net, own) != 1)
        r = r < 0 ? -1 : err_set(err, ERR_INTERNAL, "not in the container's network");
    if (own >= 0)
        close(own);
    if (net >= 0)
        close(net);
    return r;
}

/* ---- handing over ---- */

static int accept_init(const struct container *c, struct err *err)
{
    struct ucred who;
    socklen_t n = sizeof who;
    if (await(c, c->parts.listener, CONNECT_MS, err) < 0)
        return -1;
    int fd = accept4(c->parts.listener, NULL, NULL, SOCK_CLOEXEC);
    if (fd < 0)
        return err_sys(err, "accept");
    /* pid 1, which has been there since before we looked at its network */
    struct pollfd p = {.fd = c->pidfd, .events = POLLIN};
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &n) == 0 && who.pid == c->pid &&
        poll(&p, 1, 0) == 0)
        return fd;
    close(fd);
    return err_set(err, ERR_UPSTREAM, "another process than the container's first has asked");
}

static int hand_over(const struct container *c, struct err *err)
{
    struct msg m;
    char info[64];
    int n = snprintf(info, sizeof info, "{\"child-pid\": %d}\n", (int)c->pid);
    if (write(LAUNCHER_INFO, info, (size_t)n) != n)
        return err_sys(err, "the builder does not listen");
    int fd = accept_init(c, err);
    if (fd < 0)
        return -1;
    msg_init(&m, W_INIT_HANDOVER);
    msg_put_fd_dup(&m, LAUNCHER_INIT);
    msg_put_fd_dup(&m, LAUNCHER_FILTER);
    int r = msg_send(fd, &m) == 0 ? 0 : err_set(err, ERR_UPSTREAM, "the container does not listen");
    msg_done(&m);
    close(fd);
    return r;
}

/* ---- from birth to death ---- */

static int create(struct container *c, struct err *err)
{
    char name[ENGINE_NAME_MAX];
    json_t *spec = docker_spec(c->m, &c->engine, &c->parts, err);
    if (spec == NULL)
        return -1;
    snprintf(name, sizeof name, "durward-%s", c->m->plan->sandbox);
    int r = engine_create(&c->engine, name, spec, c->id, &c->notes, err);
    json_decref(spec);
    if (r == 0)
        r = engine_start(&c->engine, c->id, err);
    if (r == 0)
        r = engine_look(&c->engine, c->id, &c->pid, &c->notes, err);
    if (r < 0)
        return -1;
    c->pidfd = (int)syscall(SYS_pidfd_open, c->pid, 0);
    return c->pidfd < 0 ? err_sys(err, "the container's first process") : 0;
}

static int make_it(struct container *c, struct err *err)
{
    static struct netns_listeners l;
    static char text[LAUNCHER_NOTES_MAX];
    const struct plan *plan = c->m->plan;
    struct docker_copies copies = {0};
    if (docker_copies_check(c->m, &copies, err) < 0 || engine_meet(&c->engine, err) < 0 ||
        docker_parts_make(c->m, &c->parts, err) < 0 ||
        engine_each(&c->engine, DOCKER_LABEL_STATE, c->m->parts.state_dir, remove_orphan, c, err) <
            0 ||
        create(c, err) < 0 || docker_copies_owner(plan, &copies, c->pid, err) < 0 ||
        enter_network(c, err) < 0)
        return -1;
    if (netns_listen(&l, plan->ports, plan->nports, err) < 0 || launcher_offer(plan, &l, err) < 0 ||
        await(c, LAUNCHER_CHANNEL, -1, err) < 0 || docker_parts_trust(c->m, &c->parts, err) < 0 ||
        launcher_note_network(&l, &c->notes, err) < 0 ||
        docker_note_limits(plan, &c->notes, err) < 0)
        return -1;
    if (buf_len(&c->notes))
        memcpy(text, buf_data(&c->notes), buf_len(&c->notes));
    if (launcher_built(plan, true, text, err) < 0 || await(c, LAUNCHER_CHANNEL, -1, err) < 0 ||
        launcher_await_consent(err) < 0)
        return -1;
    netns_close(&l);
    return hand_over(c, err);
}

static void unmake(struct container *c)
{
    struct err err = {0};
    if (c->id[0] && engine_remove(&c->engine, c->id, &err) < 0)
        proc_log("%s: %s", c->m->plan->sandbox, err.text);
    docker_parts_remove(&c->parts);
}

/* Copies are ours on the host: that is the root of the containers of an engine of ours, and of one
 * that is root's as we are. */
static const struct making *as_owner(const struct making *m)
{
    static struct making own;
    static struct plan plan;
    if (m->plan->nbinds == 0)
        return m;
    plan = *m->plan;
    plan.uid = plan.gid = 0;
    own = *m;
    own.plan = &plan;
    return &own;
}

static int docker_make(const struct making *given, struct err *err)
{
    static struct container c;
    const struct making *m = as_owner(given);
    c = (struct container){.m = m,
                           .engine = {m->plan->sandbox_spec.limits.docker.socket},
                           .parts = {.above = -1, .dir = -1, .listener = -1},
                           .pidfd = -1,
                           .signals = -1};
    buf_init(&c.notes, LAUNCHER_NOTES_MAX - 1);
    prctl(PR_SET_NAME, "durward-keeper");
    if (heed_signals(&c, err) < 0)
        return -1;
    int r = make_it(&c, err);
    if (r == 0) {
        /* durward-init's alone from here on */
        for (int fd = LAUNCHER_INIT; fd <= LAUNCHER_ERRORS; fd++)
            close(fd);
        (void)await(&c, -1, -1, NULL);
    }
    unmake(&c);
    if (r < 0)
        return -1;
    _exit(0);
}

static int check(const struct plan *plan, struct err *err)
{
    (void)plan;
    (void)err;
    return 0; /* the engine is asked by the launcher, who may wait for it */
}

static const char *remedy(const char *said)
{
    (void)said;
    return "";
}

const struct backend backend_docker = {
    .name = "docker",
    .check = check,
    .make = docker_make,
    .remedy = remedy,
    .stays = true,
    .start_wait_ms = START_WAIT_MS,
};
