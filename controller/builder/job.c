/* The states of one sandbox in the builder: what its launcher, its backend and its process 1 say,
 * and its end. The first reason of a failure is the one that is told. */
#define _GNU_SOURCE 1
#include "job.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "backend.h"
#include "bwrap.h"
#include "cgroup.h"
#include "image.h"
#include "selftest.h"
#include "volume.h"
#include "wire.h"

enum {
    BUILD_S = 20, /* from start to self-test; a large tree is searched for at most 2 s a bind */
    TEXT_MAX = 40 * 1024,
    FREEZE_MS = 100, /* for the locks of its volumes, and as long until it stands still */
};

enum state {
    JOB_MAKING,  /* the launcher works, or waits for the parent's consent */
    JOB_TESTING, /* bubblewrap is starting; process 1 has not reported yet */
    JOB_RUNNING,
    JOB_ENDING, /* killed; its processes are awaited */
    JOB_DEAD,   /* its process was reaped; its last words may still be in the channels */
};

struct job {
    char sandbox[PLAN_ID_MAX + 1];
    enum state state;
    const struct backend *backend;
    const struct job_ops *ops;
    void *arg;
    pid_t pid;            /* launcher, then perhaps bubblewrap; 0 once reaped */
    int pidfd;            /* process 1, or -1 */
    struct ipc *launcher; /* NULL once it closed */
    struct event *init;   /* pending until process 1 has reported */
    int init_fd;          /* to be given away with `built`; then -1 */
    int errors, info;
    struct event *timer;
    bool answered;   /* `built` was called */
    struct buf text; /* notes for `built`, or the first reason of the failure */
    bool failed;     /* text is a reason */
    bool staged, consented;
    struct event *first;   /* pending once it runs: process 1 ends */
    int status;            /* of pid, once reaped */
    struct cgroup *cgroup; /* NULL: none */
    int image;             /* held, so that nobody removes it; -1: none */
    const char *state_dir; /* the builder's own */
    unsigned n_volumes;    /* that it mounts */
    char volumes[SANDBOX_SPEC_VOLUMES_MAX][SANDBOX_SPEC_NAME_MAX + 1];
};

static void set_state(struct job *j, enum state to)
{
    if (to > j->state)
        j->state = to;
}

static void close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

static void job_free(struct job *j)
{
    ipc_free(j->launcher);
    if (j->first)
        event_free(j->first);
    if (j->init)
        event_free(j->init);
    close_fd(&j->init_fd);
    close_fd(&j->errors);
    close_fd(&j->info);
    close_fd(&j->pidfd);
    if (j->timer)
        event_free(j->timer);
    buf_free(&j->text);
    cgroup_free(j->cgroup);
    close_fd(&j->image);
    free(j);
}

static const char *text_of(struct job *j)
{
    if (buf_append(&j->text, "", 1) < 0)
        return "";
    return (const char *)buf_data(&j->text);
}

/* The first reason is the one that counts. */
static void blame(struct job *j, const char *text)
{
    if (j->failed)
        return;
    j->failed = true;
    buf_clear(&j->text);
    if (buf_append_str(&j->text, text) < 0)
        buf_clear(&j->text); /* out of memory: a failure without a reason */
}

/* bubblewrap's child asks to die with it only after a moment: one that is killed before would leave
 * it behind, were it not in the same group until then. */
static void kill_launcher(const struct job *j)
{
    if (j->pid <= 0)
        return;
    kill(-j->pid, SIGKILL);
    kill(j->pid, SIGKILL); /* one that has no group yet */
}

static void kill_processes(struct job *j)
{
    if (j->backend->stays) {
        if (j->pid > 0)
            kill(j->pid, SIGTERM); /* it takes the sandbox down */
        return;
    }
    (void)cgroup_freeze(j->cgroup, false, NULL); /* what is frozen does not die (version 1) */
    if (j->pidfd >= 0 && syscall(SYS_pidfd_send_signal, j->pidfd, SIGKILL, NULL, 0) == 0)
        return; /* bubblewrap sees its child's end, and ends when all in there are gone */
    kill_launcher(j);
}

static void arm(struct job *j, int ms)
{
    struct timeval t = {ms / 1000, ms % 1000 * 1000};
    evtimer_add(j->timer, &t);
}

void job_end(struct job *j)
{
    if (j->state >= JOB_ENDING)
        return;
    set_state(j, JOB_ENDING);
    kill_processes(j);
    arm(j, j->backend->start_wait_ms);
}

static void fail(struct job *j, const char *text)
{
    blame(j, text);
    job_end(j);
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
    struct job *j = arg;
    (void)fd;
    (void)what;
    if (j->state >= JOB_ENDING) {
        kill_launcher(j);
        return;
    }
    fail(j, "the sandbox was not ready in time");
}

/* What the backend, or a program that it could not start, had to say. */
static void blame_backend(struct job *j)
{
    char said[2048], line[3072];
    ssize_t n = read(j->errors, said, sizeof said - 1);
    said[n > 0 ? n : 0] = '\0';
    for (char *c = said; *c; c++)
        if ((unsigned char)*c < 0x20)
            *c = ' ';
    const char *remedy = j->backend->remedy(said);
    if (n > 0)
        snprintf(line, sizeof line, "%s%s%s", said, *remedy ? ": " : "", remedy);
    else if (WIFSIGNALED(j->status))
        snprintf(line, sizeof line, "the sandbox was killed by signal %d", WTERMSIG(j->status));
    else
        snprintf(line, sizeof line, "the sandbox ended with status %d before it was ready",
                 WEXITSTATUS(j->status));
    blame(j, line);
}

static int peek_report(struct job *j);

/* All that the sandbox could say was heard. */
static void conclude(struct job *j)
{
    if (j->state != JOB_DEAD || j->launcher)
        return;
    if (!j->answered) {
        j->answered = true;
        if (!j->failed)
            (void)peek_report(j); /* its last words may not have been read yet */
        if (!j->failed)
            blame_backend(j);
        j->ops->built(j->arg, j, false, text_of(j), -1);
    }
    j->ops->ended(j->arg, j);
    job_free(j);
}

void job_reap(struct job *j)
{
    if (j->pid == 0 || waitpid(j->pid, &j->status, WNOHANG) != j->pid)
        return;
    j->pid = 0;
    if (j->backend->stays && j->pidfd >= 0) /* it was killed: nobody else takes the sandbox down */
        (void)syscall(SYS_pidfd_send_signal, j->pidfd, SIGKILL, NULL, 0);
    evtimer_del(j->timer);
    bool was_making = j->state <= JOB_TESTING;
    set_state(j, JOB_DEAD);
    if (!was_making) {
        ipc_free(j->launcher);
        j->launcher = NULL;
    }
    conclude(j);
}

/* ---- the launcher ---- */

static void go_on(struct job *j)
{
    struct msg m;
    if (!j->staged || !j->consented || j->state != JOB_MAKING)
        return;
    set_state(j, JOB_TESTING);
    msg_init(&m, W_LISTENERS_OK);
    (void)ipc_send(j->launcher, &m); /* a failure closes the channel, and the launcher ends */
}

/* The launcher waits for it between its listeners and their consent. */
void job_root(struct job *j, struct slice root)
{
    struct msg m;
    if (j->state != JOB_MAKING || j->launcher == NULL)
        return;
    msg_init(&m, W_ROOT);
    msg_put_str(&m, j->sandbox);
    msg_put_slice(&m, root);
    (void)ipc_send(j->launcher, &m); /* a failure closes the channel, and the launcher ends */
}

void job_consent(struct job *j, bool ok, const char *text)
{
    char line[512];
    if (j->state != JOB_MAKING || j->consented)
        return;
    if (!ok) {
        snprintf(line, sizeof line, "the sandbox's listeners were not taken: %.400s", text);
        fail(j, line);
        return;
    }
    j->consented = true;
    go_on(j);
}

static int on_built(struct job *j, struct msg *m)
{
    struct slice id, text;
    uint8_t ok;
    if (msg_get_slice(m, PLAN_ID_MAX, &id) < 0 || msg_get_u8(m, &ok) < 0 ||
        msg_get_slice(m, TEXT_MAX, &text) < 0 || msg_end(m) < 0)
        return -1;
    if (j->failed)
        return 0;
    buf_clear(&j->text);
    if (buf_append_slice(&j->text, text) < 0)
        return -1;
    if (ok) {
        j->staged = true;
        go_on(j);
    } else {
        j->failed = true; /* it ends by itself */
    }
    return 0;
}

static int on_launcher(struct ipc *ch, struct msg *m, void *arg)
{
    struct job *j = arg;
    (void)ch;
    switch (m->type) {
    case W_LISTENERS:
        j->ops->listeners(j->arg, j, m);
        return 0;
    case W_BUILT:
        return on_built(j, m);
    default:
        return -1;
    }
}

static void on_launcher_closed(struct ipc *ch, const char *why, void *arg)
{
    struct job *j = arg;
    (void)why;
    ipc_free(ch);
    j->launcher = NULL;
    conclude(j);
}

/* ---- process 1 ---- */

/* With it ends all that ran in there; who made it takes a moment longer, and is reaped. */
static void on_first(evutil_socket_t fd, short what, void *arg)
{
    struct job *j = arg;
    (void)fd;
    (void)what;
    event_free(j->first);
    j->first = NULL;
    j->ops->left(j->arg, j);
}

static int open_pidfd(struct job *j)
{
    char info[1024];
    ssize_t n = read(j->info, info, sizeof info);
    pid_t pid = n > 0 ? bwrap_child(info, (size_t)n) : 0;
    j->pidfd = pid > 0 ? (int)syscall(SYS_pidfd_open, pid, 0) : -1;
    if (j->pidfd < 0)
        return -1;
    j->first = event_new(event_get_base(j->timer), j->pidfd, EV_READ, on_first, j);
    if (j->first && !j->backend->stays)
        event_add(j->first, NULL); /* without it the end is told a little later */
    return 0;
}

/* One text of all probes that failed. -1: the message is malformed. */
static int read_report(struct msg *m, bool *ok, struct buf *failed)
{
    uint8_t all;
    uint32_t n;
    if (msg_get_u8(m, &all) < 0 || all > 1 || msg_get_u32(m, &n) < 0 || n > SELFTEST_MAX)
        return -1;
    *ok = all == 1 && n > 0;
    while (n-- > 0) {
        struct slice probe, detail;
        uint8_t good;
        if (msg_get_slice(m, 64, &probe) < 0 || msg_get_u8(m, &good) < 0 ||
            msg_get_slice(m, SELFTEST_DETAIL, &detail) < 0)
            return -1;
        if (good)
            continue;
        *ok = false;
        if (buf_printf(failed, "%s%.*s (%.*s)", buf_len(failed) ? ", " : "", SL(probe),
                       SL(detail)) < 0)
            return -1;
    }
    return msg_end(m);
}

/* W_INIT_READY as it lies in the socket; it stays there for the controller, which looks at it too.
 * 1 it is here and all is well, 0 not yet, -1 not well (blamed) or the end of file. */
static int peek_report(struct job *j)
{
    static unsigned char room[16 * 1024];
    char line[4096];
    struct msg m;
    struct buf failed;
    bool ok = false;
    ssize_t n = recv(j->init_fd, room, sizeof room, MSG_PEEK | MSG_DONTWAIT);
    if (n < 0)
        return errno == EAGAIN || errno == EINTR ? 0 : -1;
    if (n < 4)
        return -1;
    msg_init(&m, (uint16_t)(room[0] << 8 | room[1]));
    buf_init(&failed, 3000);
    int r = m.type == W_INIT_READY && buf_append(&m.body, room + 4, (size_t)n - 4) == 0
                ? read_report(&m, &ok, &failed)
                : -1;
    if (r == 0 && !ok) {
        snprintf(line, sizeof line, "the sandbox's self-test failed: %.*s", SL(buf_slice(&failed)));
        blame(j, line);
    }
    buf_free(&failed);
    msg_done(&m);
    return r == 0 && ok ? 1 : -1;
}

/* A sandbox that is not well ends by itself or is on its way out: give it a moment, so that what
 * the backend has to say is heard, then kill it. */
static void on_init(evutil_socket_t fd, short what, void *arg)
{
    struct job *j = arg;
    (void)fd;
    (void)what;
    int r = peek_report(j);
    if (r == 0)
        return;
    event_del(j->init);
    if (r > 0 && (j->state != JOB_TESTING || open_pidfd(j) < 0)) {
        blame(j, "the backend does not say which process is the sandbox's first");
        r = -1;
    }
    if (r < 0) {
        if (j->state < JOB_ENDING)
            arm(j, j->backend->start_wait_ms);
        return;
    }
    set_state(j, JOB_RUNNING);
    evtimer_del(j->timer);
    j->answered = true;
    int init = j->init_fd;
    j->init_fd = -1;
    close_fd(&j->errors); /* durward-init has let go of the other end */
    close_fd(&j->info);
    j->ops->built(j->arg, j, true, text_of(j), init);
}

/* ---- birth ---- */

static int wire_up(struct job *j, struct event_base *base, struct launcher *made, struct err *err)
{
    j->pid = made->pid;
    j->errors = made->errors;
    j->info = made->info;
    j->init_fd = made->init;
    j->launcher = ipc_new(base, made->channel, on_launcher, on_launcher_closed, j);
    j->init = event_new(base, made->init, EV_READ | EV_PERSIST, on_init, j);
    j->timer = evtimer_new(base, on_timer, j);
    if (j->launcher == NULL || j->init == NULL || j->timer == NULL || event_add(j->init, NULL) < 0)
        return err_set(err, ERR_INTERNAL, "out of memory");
    arm(j, (j->backend->ready_s ? j->backend->ready_s : BUILD_S) * 1000);
    return 0;
}

/* Control group and image, where they are ours to hold. */
static int hold(struct job *j, const struct rootfs_parts *parts, struct plan *plan, struct err *err)
{
    if (j->backend->stays)
        return 0;
    struct config_sandbox limits = plan->sandbox_spec.limits;
    limits.memory += limits.memory ? plan_server_memory(plan) : 0;
    j->cgroup = cgroup_new(plan->sandbox, &limits, plan_server_tasks(plan),
                           plan->sandbox_spec.root != SANDBOX_SPEC_READ_ONLY);
    plan->held = cgroup_held(j->cgroup);
    if (plan->sandbox_spec.image[0])
        j->image = image_hold(parts->state_dir, plan->sandbox_spec.image, err);
    return plan->sandbox_spec.image[0] && j->image < 0 ? -1 : 0;
}

struct job *job_start(struct event_base *base, const struct rootfs_parts *parts,
                      const struct filter_program *filter, struct plan *plan,
                      const struct job_ops *ops, void *arg, struct err *err)
{
    struct launcher made;
    struct job *j = calloc(1, sizeof *j);
    if (j == NULL) {
        err_set(err, ERR_INTERNAL, "out of memory");
        return NULL;
    }
    memcpy(j->sandbox, plan->sandbox, sizeof j->sandbox);
    j->ops = ops;
    j->arg = arg;
    j->pidfd = j->init_fd = j->errors = j->info = j->image = -1;
    buf_init(&j->text, TEXT_MAX);
    j->backend = backend_of(plan);
    j->state_dir = parts->state_dir;
    for (unsigned i = 0; i < plan->sandbox_spec.n_volumes; i++)
        memcpy(j->volumes[j->n_volumes++], plan->sandbox_spec.volumes[i].name,
               sizeof j->volumes[0]);
    if (hold(j, parts, plan, err) < 0 ||
        launcher_start(parts, filter, plan, j->cgroup, &made, err) < 0) {
        job_free(j);
        return NULL;
    }
    if (wire_up(j, base, &made, err) < 0) {
        job_abandon(j);
        return NULL;
    }
    return j;
}

/* By CLOCK_MONOTONIC. */
static struct timespec after_ms(long ms)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    t.tv_nsec += ms * 1000000;
    t.tv_sec += t.tv_nsec / 1000000000;
    t.tv_nsec %= 1000000000;
    return t;
}

/* Who serves one of its volumes is frozen too. So that it holds no lock then, on which others would
 * wait in vain, we hold them meanwhile. One that does not let go of its lock is frozen all the
 * same: it could have kept it without that. */
static int freeze_unlocked(const struct job *j, struct err *err)
{
    const struct timespec moment = {0, 1000000};
    int locks[SANDBOX_SPEC_VOLUMES_MAX];
    struct timespec until = after_ms(FREEZE_MS);
    for (unsigned i = 0; i < j->n_volumes; i++) {
        locks[i] = volume_usage_open(j->state_dir, j->volumes[i]);
        if (locks[i] >= 0)
            (void)volume_usage_lock(locks[i], &until);
    }
    int r = cgroup_freeze(j->cgroup, true, err);
    for (unsigned ms = 0; r == 0 && ms < FREEZE_MS && !cgroup_frozen(j->cgroup); ms++)
        (void)clock_nanosleep(CLOCK_MONOTONIC, 0, &moment, NULL);
    for (unsigned i = 0; i < j->n_volumes; i++)
        close_fd(&locks[i]);
    return r;
}

int job_freeze(struct job *j, bool frozen, struct err *err)
{
    if (j->state != JOB_RUNNING)
        return err_set(err, ERR_UNREADY, "the sandbox is not running");
    if (j->backend->stays)
        return err_set(err, ERR_UNREADY,
                       "unsupported: a sandbox of the %s backend cannot be paused",
                       j->backend->name);
    if (!frozen || j->n_volumes == 0)
        return cgroup_freeze(j->cgroup, frozen, err);
    return freeze_unlocked(j, err);
}

const char *job_sandbox(const struct job *j)
{
    return j->sandbox;
}

void job_abandon(struct job *j)
{
    kill_processes(j);
    if (j->pid > 0 && !j->backend->stays) {
        kill_launcher(j);
        (void)waitpid(j->pid, NULL, 0); /* it was killed: this does not take long */
    }
    job_free(j);
}
