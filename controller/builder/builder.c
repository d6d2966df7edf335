/* The builder's main and its channels: passes messages on between controllers, launchers and the
 * parent. What becomes of one sandbox is in job.c, work on layers in worker_table.c. */
#define _GNU_SOURCE 1
#include "builder.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backend.h"
#include "bind.h"
#include "cgroup.h"
#include "volume.h"
#include "worker_table.h"
#include "ipc.h"
#include "job.h"
#include "launcher.h"
#include "packets.h"
#include "plan.h"
#include "peer.h"
#include "proc.h"
#include "role_run.h"
#include "strlist.h"
#include "wire.h"

enum { FILES_MAX = 2048 }; /* of MCP servers */

/* A controller's channel. */
struct requester {
    LIST_ENTRY(requester) link;
    struct builder *builder;
    uint32_t channel;
    struct ipc *ch;
};

struct site { /* a sandbox and whose it is */
    LIST_ENTRY(site) link;
    struct builder *builder;
    struct requester *requester; /* NULL when it is gone */
    struct job *job;
    struct packets *packets; /* of its log to its gate; NULL: none (yet) */
    bool running;            /* `built` said so: its end is to be told */
    bool keep;               /* the requester's end is not its end at once */
    bool passing;            /* its end is told before its mounts are gone */
    bool left;               /* and was */
    bool ending;             /* W_TEARDOWN came before it ran: its end is to be told all the same */
    int init; /* of a kept one that runs: a duplicate for the next controller; else -1 */
};

struct builder {
    struct event_base *base;
    struct event *child, *orphans; /* orphans: the time that kept sandboxes have */
    struct event *sweeper;         /* of control groups, see on_sweep */
    unsigned swept;                /* how often */
    bool sweep_again;              /* a sandbox ended since */
    struct ipc *parent;
    struct filter_program filter, nested; /* nested: once it is needed */
    struct rootfs_parts parts;            /* state_dir NULL until W_INIT */
    char *state_dir, *roots_dir, *init_path;
    int archive;                   /* the program that reads and writes archives */
    bool binds;                    /* as W_INIT says: of `run` */
    struct pod_place pods;         /* netns_dir "": none are made here */
    struct cluster_place cluster;  /* api "": there is none */
    struct strlist shown, written; /* what MCP servers see of the host; of it what they write */
    LIST_HEAD(, requester) requesters;
    LIST_HEAD(, site) sites;
    struct worker_table *worker_table; /* NULL until W_INIT */
};

/* ---- control groups ---- */

/* What a killed builder left frozen is thawed once it is about to die, which it may not be yet when
 * the next builder starts; a group that a process was leaving as its sandbox ended goes after a
 * minute. */
static void plan_sweep(struct builder *b)
{
    static const struct timeval after[] = {{0, 200000}, {1, 0}, {4, 0}, {15, 0}, {65, 0}};
    if (b->swept == ARRAY_LEN(after) && b->sweep_again) {
        b->sweep_again = false;
        b->swept--;
    }
    if (b->swept < ARRAY_LEN(after) && !evtimer_pending(b->sweeper, NULL))
        evtimer_add(b->sweeper, &after[b->swept]);
}

static void on_sweep(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
    struct builder *b = arg;
    cgroup_sweep();
    b->swept++;
    plan_sweep(b);
}

/* ---- answers ---- */

static void tell_built(struct requester *a, const char *sandbox, bool ok, const char *text, int fd)
{
    struct msg m;
    if (a == NULL) {
        if (fd >= 0)
            close(fd); /* nobody holds durward-init any more: it ends */
        return;
    }
    msg_init(&m, W_BUILT);
    msg_put_str(&m, sandbox);
    msg_put_u8(&m, ok);
    msg_put_str(&m, text);
    if (fd >= 0)
        msg_put_fd(&m, fd);
    (void)ipc_send(a->ch, &m); /* a failure closes the channel, which ends its sandboxes */
}

static void tell_torn(struct requester *a, const char *sandbox)
{
    struct msg m;
    if (a == NULL)
        return;
    msg_init(&m, W_TORN);
    msg_put_str(&m, sandbox);
    (void)ipc_send(a->ch, &m);
}

/* ---- what jobs want ---- */

/* Sandbox monitor and parent agree on the fields of W_LISTENERS; we only see that they are whole
 * and that the sandbox is the one whose launcher spoke. */
static void on_listeners(void *arg, struct job *j, struct msg *m)
{
    struct site *s = arg;
    struct msg out;
    struct slice id;
    struct err err = {.text = "the launcher sent nonsense"};
    uint32_t n = 0;
    msg_init(&out, W_LISTENERS);
    bool ok = msg_get_slice(m, PLAN_ID_MAX, &id) == 0 && msg_get_u32(m, &n) == 0 &&
              n <= IPC_FDS_MAX && slice_eq_str(id, job_sandbox(j));
    msg_put_str(&out, job_sandbox(j));
    msg_put_u32(&out, n);
    for (uint32_t i = 0; ok && i < n; i++) {
        uint8_t kind;
        uint32_t port;
        int fd;
        ok = msg_get_u8(m, &kind) == 0 && msg_get_u32(m, &port) == 0 && msg_get_fd(m, &fd) == 0;
        if (ok && kind == LISTENER_NFLOG)
            ok = (fd = packets_keep(&s->packets, s->builder->base, fd, &err)) >= 0;
        if (!ok)
            break;
        msg_put_u8(&out, kind);
        msg_put_u32(&out, port);
        msg_put_fd(&out, fd);
    }
    if (ok && msg_end(m) == 0) {
        (void)ipc_send(s->builder->parent, &out); /* a failure ends us */
        return;
    }
    msg_done(&out);
    job_consent(j, false, err.text);
}

static void site_free(struct site *s)
{
    LIST_REMOVE(s, link);
    if (s->init >= 0)
        close(s->init);
    packets_free(s->packets);
    free(s);
}

static void on_built(void *arg, struct job *j, bool ok, const char *text, int fd)
{
    struct site *s = arg;
    s->running = ok;
    if (ok && s->keep)
        s->init = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    tell_built(s->requester, job_sandbox(j), ok, text, fd);
}

/* Of a `run`, whose sandbox comes back under no name if its files are not kept: whoever waits for
 * its end need not wait for its mounts, too. */
static void on_left(void *arg, struct job *j)
{
    struct site *s = arg;
    if (!s->running || !s->passing)
        return;
    s->running = false;
    s->left = true;
    tell_torn(s->requester, job_sandbox(j));
}

static void on_ended(void *arg, struct job *j)
{
    struct site *s = arg;
    if (s->running || s->ending)
        tell_torn(s->requester, job_sandbox(j));
    s->builder->sweep_again = true;
    plan_sweep(s->builder);
    site_free(s);
}

static const struct job_ops job_ops = {on_listeners, on_built, on_left, on_ended};

/* ---- making ---- */

static struct site *find(struct builder *b, const char *sandbox)
{
    struct site *s;
    LIST_FOREACH(s, &b->sites, link)
    if (strcmp(job_sandbox(s->job), sandbox) == 0)
        return s;
    return NULL;
}

static int load_init(struct builder *b, struct err *err)
{
    if (b->parts.init < 0)
        b->parts.init = launcher_load(b->init_path, &b->parts.init_file, err);
    return b->parts.init < 0 ? -1 : 0;
}

static int prepare(struct builder *b, const struct plan *plan, struct err *err)
{
    const struct backend *backend = backend_of(plan);
    if (backend->check(plan, err) < 0) /* what this host lacks, waiting does not bring */
        return err->code == ERR_UNREADY
                   ? err_wrap(err, "unsupported: backend: %s cannot run here", backend->name)
                   : -1;
    if (load_init(b, err) < 0)
        return -1;
    bool nested = plan->sandbox_spec.limits.nested;
    struct filter_program *filter = nested ? &b->nested : &b->filter;
    return filter->code ? 0 : sandbox_seccomp_compile(FILTER_NATIVE, nested, filter, err);
}

static bool lists(const struct strlist *l, const char *path)
{
    for (size_t i = 0; i < l->n; i++)
        if (strcmp(l->v[i], path) == 0)
            return true;
    return false;
}

/* Into a sandbox of the daemon nothing is bound but what its configuration says of MCP servers. */
static bool may_bind(const struct builder *b, const struct plan *plan)
{
    for (unsigned i = 0; i < plan->nbinds && !b->binds; i++) {
        const struct plan_bind *bind = &plan->binds[i];
        if (!lists(bind->writable ? &b->written : &b->shown, bind->source) || bind->home)
            return false;
    }
    return true;
}

static int build(struct requester *a, struct plan *plan, struct err *err)
{
    struct builder *b = a->builder;
    if (!may_bind(b, plan))
        return err_set(err, ERR_DENIED, "nothing is bound into a sandbox of the daemon");
    if (find(b, plan->sandbox))
        return err_set(err, ERR_DENIED, "a sandbox of this name exists already");
    if (prepare(b, plan, err) < 0)
        return -1;
    struct site *s = calloc(1, sizeof *s);
    if (s == NULL)
        return err_set(err, ERR_INTERNAL, "out of memory");
    s->builder = b;
    s->requester = a;
    s->init = -1;
    s->passing = b->binds && plan->sandbox_spec.root != SANDBOX_SPEC_KEPT;
    s->job =
        job_start(b->base, &b->parts, plan->sandbox_spec.limits.nested ? &b->nested : &b->filter,
                  plan, &job_ops, s, err);
    if (s->job == NULL) {
        free(s);
        return -1;
    }
    LIST_INSERT_HEAD(&b->sites, s, link);
    return 0;
}

/* A W_BUILD with a readable id is answered, whatever is wrong with it; else it is a bad message. */
static int on_build(struct requester *a, struct msg *m)
{
    char id[PLAN_ID_MAX + 1];
    struct err err = {0};
    struct plan *plan = plan_read(m, id, &err);
    if (plan == NULL && id[0] == '\0')
        return -1;
    if (plan == NULL || build(a, plan, &err) < 0)
        tell_built(a, id, false, err.text, -1);
    plan_free(plan);
    return 0;
}

static int on_teardown(struct requester *a, struct msg *m)
{
    char id[PLAN_ID_MAX + 1];
    if (msg_get_str(m, id, sizeof id) < 0 || msg_end(m) < 0)
        return -1;
    struct site *s = find(a->builder, id);
    if (s && s->requester == NULL)
        s->requester = a; /* one of its predecessor's, which it does not want */
    if (s && s->requester == a && !s->left) {
        s->ending = !s->running;
        job_end(s->job);
    } else {
        tell_torn(a, id); /* not there (any more): that is what was wanted */
    }
    return 0;
}

/* ---- layers ---- */

static void tell_layered(void *requester, uint32_t req, enum layer_result result, const char *text)
{
    struct requester *a = requester;
    struct msg m;
    msg_init(&m, W_LAYERED);
    msg_put_u32(&m, req);
    msg_put_u8(&m, (uint8_t)result);
    msg_put_str(&m, text);
    (void)ipc_send(a->ch, &m);
}

/* What is said of a volume that is made. */
static bool about_ok(struct msg *m, struct layer_stream *ret)
{
    struct volume_about about;
    return msg_get_str(m, ret->about, VOLUME_ABOUT_MAX) == 0 &&
           volume_about_read(ret->about, &about) == 0;
}

static int on_layer(struct requester *a, struct msg *m)
{
    struct layer_stream stream = {.fd = -1};
    char from[SANDBOX_SPEC_NAME_MAX + 1], to[SANDBOX_SPEC_NAME_MAX + 1];
    uint32_t req;
    uint8_t op;
    if (msg_get_u32(m, &req) < 0 || msg_get_u8(m, &op) < 0 || op == 0 || op >= LAYER_SWEEP ||
        msg_get_str(m, from, sizeof from) < 0 || msg_get_str(m, to, sizeof to) < 0)
        return -1;
    if (layer_streams((enum layer_op)op))
        return worker_table_read(a->builder->worker_table, a, req, (enum layer_op)op, from, to, m);
    if (layer_makes_volume((enum layer_op)op) && !about_ok(m, &stream))
        return -1;
    bool one = layer_removes((enum layer_op)op) || op == LAYER_VOLUME_USED;
    if (msg_end(m) < 0 || !sandbox_spec_name_ok(from) ||
        (one ? to[0] != '\0' : !sandbox_spec_name_ok(to)))
        return -1;
    bool at_from = op == LAYER_REMOVE || op == LAYER_UNMARK;
    const char *written = at_from ? from : op == LAYER_REPLACE ? to : NULL;
    if (written && find(a->builder, written))
        tell_layered(a, req, LAYER_FAILED, "the sandbox is running");
    else
        worker_table_start(a->builder->worker_table, a, req, (enum layer_op)op, from, to, &stream);
    return 0;
}

static int on_freeze(struct requester *a, struct msg *m)
{
    char id[PLAN_ID_MAX + 1];
    uint32_t req;
    uint8_t frozen;
    struct err err = {0};
    if (msg_get_u32(m, &req) < 0 || msg_get_str(m, id, sizeof id) < 0 ||
        msg_get_u8(m, &frozen) < 0 || frozen > 1 || msg_end(m) < 0)
        return -1;
    struct site *s = find(a->builder, id);
    if (s == NULL || s->requester != a)
        tell_layered(a, req, LAYER_ABSENT, "");
    else if (job_freeze(s->job, frozen, &err) < 0)
        tell_layered(a, req, LAYER_FAILED, err.text);
    else
        tell_layered(a, req, LAYER_DONE, "");
    return 0;
}

static int on_keep(struct requester *a, struct msg *m)
{
    char id[PLAN_ID_MAX + 1];
    if (msg_get_str(m, id, sizeof id) < 0 || msg_end(m) < 0)
        return -1;
    struct site *s = find(a->builder, id);
    if (s && s->requester == a)
        s->keep = true;
    return 0; /* else its building failed */
}

static int on_adopt(struct requester *a, struct msg *m)
{
    char id[PLAN_ID_MAX + 1];
    if (msg_get_str(m, id, sizeof id) < 0 || msg_end(m) < 0)
        return -1;
    struct site *s = find(a->builder, id);
    int fd = s && s->requester != a && s->init >= 0 ? fcntl(s->init, F_DUPFD_CLOEXEC, 3) : -1;
    if (fd >= 0)
        s->requester = a;
    tell_built(a, id, fd >= 0, fd >= 0 ? "" : "it runs no more", fd);
    return 0;
}

/* No controller wanted them in time. */
static void on_orphans(evutil_socket_t fd, short what, void *arg)
{
    struct builder *b = arg;
    struct site *s, *next;
    (void)fd;
    (void)what;
    for (s = LIST_FIRST(&b->sites); s; s = next) {
        next = LIST_NEXT(s, link);
        if (s->requester == NULL)
            job_end(s->job);
    }
}

/* ---- channels ---- */

static int on_requester_message(struct ipc *ch, struct msg *m, void *arg)
{
    (void)ch;
    switch (m->type) {
    case W_BUILD:
        return on_build(arg, m);
    case W_TEARDOWN:
        return on_teardown(arg, m);
    case W_LAYER:
        return on_layer(arg, m);
    case W_FREEZE:
        return on_freeze(arg, m);
    case W_KEEP:
        return on_keep(arg, m);
    case W_ADOPT:
        return on_adopt(arg, m);
    default:
        return -1;
    }
}

static void requester_free(struct requester *a)
{
    static const struct timeval grace = {BUILDER_KEEP_SECONDS, 0};
    struct site *s, *next;
    for (s = LIST_FIRST(&a->builder->sites); s; s = next) {
        next = LIST_NEXT(s, link);
        if (s->requester != a)
            continue;
        s->requester = NULL;
        if (s->init < 0)
            job_end(s->job);
        else
            evtimer_add(a->builder->orphans, &grace);
    }
    worker_table_drop(a->builder->worker_table, a);
    LIST_REMOVE(a, link);
    ipc_free(a->ch);
    free(a);
}

static void on_requester_closed(struct ipc *ch, const char *why, void *arg)
{
    (void)ch;
    (void)why;
    requester_free(arg);
}

/* One at a time: what the one before left is given up before the next is listened to. */
static int on_peer(struct builder *b, struct msg *m)
{
    struct peer far;
    if (peer_get(m, &far) < 0)
        return -1;
    bool right = far.kind == ROLE_CONTROLLER && b->state_dir;
    struct requester *a = right ? calloc(1, sizeof *a) : NULL;
    if (a == NULL) {
        close(far.fd);
        return -1;
    }
    while (!LIST_EMPTY(&b->requesters))
        requester_free(LIST_FIRST(&b->requesters));
    a->builder = b;
    a->channel = far.channel;
    LIST_INSERT_HEAD(&b->requesters, a, link);
    a->ch = ipc_new(b->base, far.fd, on_requester_message, on_requester_closed, a);
    if (a->ch == NULL) {
        requester_free(a);
        return -1;
    }
    return 0;
}

static int on_peer_gone(struct builder *b, struct msg *m)
{
    uint32_t channel;
    struct requester *a;
    if (msg_get_u32(m, &channel) < 0 || msg_end(m) < 0)
        return -1;
    LIST_FOREACH(a, &b->requesters, link)
    if (a->channel == channel) {
        requester_free(a);
        break;
    }
    return 0;
}

static int get_string(struct msg *m, char **to)
{
    struct slice s;
    if (msg_get_slice(m, PLAN_PATH_MAX, &s) < 0)
        return -1;
    *to = slice_dup(s);
    return *to && **to == '/' ? 0 : -1;
}

static int get_files(struct builder *b, struct msg *m)
{
    char path[PATH_MAX];
    uint32_t n;
    uint8_t writable;
    if (msg_get_u32(m, &n) < 0 || n > FILES_MAX)
        return -1;
    for (uint32_t i = 0; i < n; i++)
        if (msg_get_str(m, path, sizeof path) < 0 || msg_get_u8(m, &writable) < 0 ||
            strlist_add(&b->shown, path) < 0 || (writable && strlist_add(&b->written, path) < 0))
            return -1;
    return 0;
}

static int builder_load(void *self, struct msg *m, struct msg *ready UNUSED, struct err *err UNUSED)
{
    struct builder *b = self;
    uint8_t binds = 0;
    if (b->state_dir || get_string(m, &b->state_dir) < 0 || get_string(m, &b->roots_dir) < 0 ||
        get_string(m, &b->init_path) < 0 || msg_get_u8(m, &binds) < 0 || binds > 1 ||
        get_files(b, m) < 0 || pod_place_get(&b->pods, m) < 0 ||
        cluster_place_get(&b->cluster, m) < 0 || msg_get_fd(m, &b->archive) < 0 || msg_end(m) < 0)
        return -1;
    b->binds = binds;
    b->parts.state_dir = b->state_dir;
    b->parts.roots_dir = b->roots_dir;
    b->parts.init_path = b->init_path;
    b->parts.pods = b->pods.netns_dir[0] ? &b->pods : NULL;
    b->parts.cluster = b->cluster.api[0] ? &b->cluster : NULL;
    (void)load_init(b, NULL);             /* where it fails the first build says why */
    b->parts.owners = idmap_mounts(NULL); /* without it, what is bound is said to be so */
    b->worker_table =
        worker_table_new(b->base, &(struct worker_place){b->state_dir, b->archive}, tell_layered);
    if (b->worker_table == NULL)
        return -1;
    cgroup_sweep();
    plan_sweep(b);
    worker_table_sweep(b->worker_table);
    return 0;
}

static const struct role_start role_steps = {.load = builder_load};

static int on_consent(struct builder *b, struct msg *m)
{
    char id[PLAN_ID_MAX + 1], text[512];
    uint8_t ok;
    if (msg_get_str(m, id, sizeof id) < 0 || msg_get_u8(m, &ok) < 0 ||
        msg_get_str(m, text, sizeof text) < 0 || msg_end(m) < 0)
        return -1;
    struct site *s = find(b, id);
    if (s)
        job_consent(s->job, ok == 1, text);
    return 0; /* else it ended meanwhile */
}

static int on_root(struct builder *b, struct msg *m)
{
    char id[PLAN_ID_MAX + 1];
    struct slice root;
    if (msg_get_str(m, id, sizeof id) < 0 || msg_get_slice(m, IPC_MSG_MAX, &root) < 0 ||
        msg_end(m) < 0)
        return -1;
    struct site *s = find(b, id);
    if (s)
        job_root(s->job, root);
    return 0; /* else it ended meanwhile */
}

static int on_parent(struct ipc *ch, struct msg *m, void *arg)
{
    struct builder *b = arg;
    (void)ch;
    switch (m->type) {
    case W_INIT:
        return role_start(&role_steps, b, b->parent, m);
    case W_PEER:
        return on_peer(b, m);
    case W_PEER_GONE:
        return on_peer_gone(b, m);
    case W_LISTENERS_OK:
        return on_consent(b, m);
    case W_ROOT:
        return on_root(b, m);
    default:
        return -1;
    }
}

static void on_parent_closed(struct ipc *ch, const char *why, void *arg)
{
    struct builder *b = arg;
    (void)ch;
    (void)why;
    event_base_loopbreak(b->base);
}

static void on_child(evutil_socket_t sig, short what, void *arg)
{
    struct builder *b = arg;
    struct site *s, *next;
    (void)sig;
    (void)what;
    for (s = LIST_FIRST(&b->sites); s; s = next) {
        next = LIST_NEXT(s, link);
        job_reap(s->job);
    }
}

/* ---- life ---- */

static struct ipc *builder_open(void *self, struct event_base *base, int control_fd,
                                struct err *err UNUSED)
{
    struct builder *b = self;
    b->base = base;
    /* ahead, while the other roles load; where it fails the first build says why */
    if (sandbox_seccomp_compile(FILTER_NATIVE, false, &b->filter, NULL) < 0)
        filter_program_free(&b->filter);
    b->child = evsignal_new(base, SIGCHLD, on_child, b);
    b->orphans = evtimer_new(base, on_orphans, b);
    b->sweeper = evtimer_new(base, on_sweep, b);
    b->parent = ipc_new(base, control_fd, on_parent, on_parent_closed, b);
    return b->child && b->orphans && b->sweeper && event_add(b->child, NULL) == 0 ? b->parent
                                                                                  : NULL;
}

static int builder_leave(void *self, struct event_base *base)
{
    struct builder *b = self;
    while (!LIST_EMPTY(&b->sites)) {
        struct site *s = LIST_FIRST(&b->sites);
        job_abandon(s->job);
        site_free(s);
    }
    while (!LIST_EMPTY(&b->requesters))
        requester_free(LIST_FIRST(&b->requesters));
    worker_table_free(b->worker_table);
    ipc_free(b->parent);
    event_free(b->child);
    event_free(b->orphans);
    event_free(b->sweeper);
    event_base_free(base);
    if (b->parts.init >= 0)
        close(b->parts.init);
    if (b->parts.owners >= 0)
        close(b->parts.owners);
    if (b->archive >= 0)
        close(b->archive);
    filter_program_free(&b->filter);
    filter_program_free(&b->nested);
    free(b->state_dir);
    free(b->roots_dir);
    free(b->init_path);
    strlist_done(&b->shown);
    strlist_done(&b->written);
    return EXIT_SUCCESS;
}

int builder_main(void)
{
    static const struct role_life life = {
        .role = ROLE_BUILDER, .open = builder_open, .leave = builder_leave};
    struct builder b = {.parts = {.init = -1, .owners = -1}, .archive = -1};
    return role_run(&life, &b);
}
