/* The life of MCP servers' sandboxes, and the connections into them that the dialer asks for. */
#include "mcp_servers.h"

#include "assertion.h"
#include "command.h"
#include "controller_internal.h"
#include "execution_internal.h"
#include "managed_sandbox.h"
#include "mcp_host.h"
#include "proc.h"
#include "quota.h"
#include "stdio_program.h"
#include "wire.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { TOLD_MAX = 256, OUTPUT_A_SECOND = 64 * 1024 };
enum { TAIL_MAX = 512, SHOWN_MAX = 200, SOON_S = 5, FAILURES = 2, PAUSE_MAX_S = 60, LAUNCH_S = 10 };

enum mcp_state { MCP_ABSENT = 0, MCP_MAKING, MCP_LAUNCHING, MCP_READY, MCP_ENDING };

/* A connection that the dialer waits for. */
struct mcp_wait {
    uint32_t who, req;
    uint32_t number; /* of its W_INIT_CONNECT; 0: not asked for yet */
    STAILQ_ENTRY(mcp_wait) link;
};
STAILQ_HEAD(mcp_waits, mcp_wait);

struct mcp_server {
    struct mcp_servers *all;
    char name[MCP_HOST_NAME_MAX + 1];
    char user[SANDBOX_ID_MAX + 1]; /* the sandbox that uses it */
    enum mcp_state state;
    struct sandbox *sandbox; /* NULL: ABSENT */
    uint32_t number;         /* the last that was given */
    int out;                 /* what it prints; -1 */
    struct event *on_out, *timer, *pace;
    size_t taken;        /* of that, within this second */
    char tail[TAIL_MAX]; /* the end of that */
    size_t n_tail;
    struct mcp_waits waits;
    size_t n_waits;
    unsigned failures; /* in a row */
    time_t begun, not_before;
    struct quota_part part;
    bool unused; /* who used it is gone */
    bool clean;  /* it ended as it should */
    LIST_ENTRY(mcp_server) link;
};

struct mcp_servers {
    struct controller *controller;
    LIST_HEAD(, mcp_server) list;
    struct quota quota; /* of servers, by who uses them */
};

enum { NUMBER_PROGRAM = 1 };

static time_t seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec;
}

struct mcp_servers *mcp_servers_new(struct controller *c)
{
    struct mcp_servers *all = calloc(1, sizeof *all);
    if (all) {
        all->controller = c;
        all->quota = (struct quota){.total = MCP_SERVERS_MAX, .each = MCP_SERVERS_EACH};
    }
    return all;
}

/* ---- the dialer ---- */

/* The descriptor is the message's. */
static void tell_dialer(struct mcp_servers *all, uint32_t who, uint32_t req, int fd,
                        const char *text)
{
    struct msg m;
    msg_init(&m, W_MCP_DIALED);
    msg_put_u32(&m, who);
    msg_put_u32(&m, req);
    msg_put_u8(&m, fd >= 0);
    /* a longer one would end this channel */
    msg_put_slice(&m, (struct slice){text, strnlen(text, TOLD_MAX)});
    if (fd >= 0)
        msg_put_fd(&m, fd);
    (void)ipc_send(all->controller->owner.parent, &m);
}

static void wait_over(struct mcp_server *s, struct mcp_wait *w, int fd, const char *text)
{
    STAILQ_REMOVE(&s->waits, w, mcp_wait, link);
    s->n_waits--;
    tell_dialer(s->all, w->who, w->req, fd, text);
    free(w);
}

static void fail_waits(struct mcp_server *s, const char *text)
{
    struct mcp_wait *w;
    while ((w = STAILQ_FIRST(&s->waits)) != NULL)
        wait_over(s, w, -1, text);
}

/* ---- states ---- */

static void set_timer(struct mcp_server *s, unsigned n)
{
    struct timeval tv = {(time_t)n, 0};
    event_del(s->timer);
    if (n)
        event_add(s->timer, &tv);
}

static void drop_output(struct mcp_server *s)
{
    if (s->on_out)
        event_free(s->on_out);
    s->on_out = NULL;
    event_del(s->pace);
    s->taken = 0;
    if (s->out >= 0)
        close(s->out);
    s->out = -1;
}

static void forget(struct mcp_server *s)
{
    fail_waits(s, "the sandbox that asked is gone");
    drop_output(s);
    event_free(s->timer);
    event_free(s->pace);
    LIST_REMOVE(s, link);
    quota_leave(&s->part);
    free(s);
}

/* What it printed last, as one line of plain letters. */
static void put_tail(const struct mcp_server *s, char *to, size_t size)
{
    size_t from = s->n_tail > SHOWN_MAX ? s->n_tail - SHOWN_MAX : 0, n = 0;
    for (size_t i = from; i < s->n_tail && n + 1 < size; i++) {
        unsigned char c = (unsigned char)s->tail[i];
        to[n++] = (char)(c >= 0x20 && c < 0x7f ? c : ' ');
    }
    to[n] = 0;
}

static void note(const struct mcp_server *s, const char *what, const char *more)
{
    char text[SHOWN_MAX + 256];
    snprintf(text, sizeof text, "%s for %s%s%s", s->name, s->user, *more ? ": " : "", more);
    controller_note(s->all->controller, s->sandbox ? sandbox_id(s->sandbox) : s->user, what, text);
}

static void end(struct mcp_server *s, const char *why)
{
    if (s->state == MCP_ENDING || s->sandbox == NULL)
        return;
    note(s, "mcp_server_ended", why);
    s->state = MCP_ENDING;
    set_timer(s, 0);
    sandbox_end(s->sandbox, 0, why); /* mcp_servers_gone comes later, or within this call */
}

static void on_timer(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
    struct mcp_server *s = arg;
    if (s->state == MCP_LAUNCHING)
        end(s, "it did not listen in time");
    else if (s->state == MCP_ABSENT && STAILQ_EMPTY(&s->waits))
        forget(s);
}

/* ---- its sandbox ---- */

static int fill_request(const struct mcp_server *s, const struct config_mcp_server *c,
                        struct run_request *q, struct err *err)
{
    const struct controller *k = s->all->controller;
    run_request_init(q);
    snprintf(q->policy, sizeof q->policy, "%s", c->policy);
    snprintf(q->backend, sizeof q->backend, "%s", config_backend_name(BACKEND_BWRAP));
    snprintf(q->image, sizeof q->image, "%s", c->image);
    snprintf(q->cwd, sizeof q->cwd, MANAGED_SANDBOX_WORKDIR);
    snprintf(q->home, sizeof q->home, MANAGED_SANDBOX_WORKDIR);
    q->uid = k->owner_uid;
    q->gid = k->owner_gid;
    bool root = q->uid == 0 || strcmp(c->image, "host") != 0;
    snprintf(q->user, sizeof q->user, "%s", root ? "root" : "sandbox");
    for (size_t i = 0; i < c->n_files; i++)
        if (run_request_bind(q, c->files[i].path, c->files[i].at, c->files[i].writable) < 0)
            return err_set(err, ERR_LIMIT, "too many files");
    return 0;
}

static int make(struct mcp_server *s, const struct config_mcp_server *c, struct err *err)
{
    struct run_request q;
    struct sandbox_plan plan;
    int bad = fill_request(s, c, &q, err);
    if (bad == 0)
        bad = sandbox_plan_make(s->all->controller, &q, NULL, &plan, err);
    run_request_done(&q);
    if (bad)
        return -1;
    plan.kept = plan.serves = true;
    plan.sandbox_spec.root = SANDBOX_SPEC_MEMORY;
    s->state = MCP_MAKING;
    s->number = 0;
    s->clean = false;
    s->n_tail = 0;
    s->begun = seconds();
    s->sandbox = sandbox_new(&s->all->controller->owner, &plan, NULL);
    if (s->sandbox) {
        note(s, "mcp_server_started", "");
        return 0;
    }
    s->state = MCP_ABSENT;
    sandbox_plan_done(&plan);
    return err_set(err, ERR_INTERNAL, "out of memory");
}

/* durward-mcp, which starts the server itself, once for each session. */
static void launch(struct mcp_server *s, const struct config_mcp_server *c)
{
    char idle[16];
    struct strlist argv = {0};
    struct msg m;
    snprintf(idle, sizeof idle, "%u", c->idle);
    int bad = strlist_add(&argv, STDIO_INSIDE) < 0 || strlist_add(&argv, "--serve") < 0 ||
              strlist_add(&argv, idle) < 0 || strlist_add(&argv, "--") < 0;
    for (size_t i = 0; c->command[i] && !bad; i++)
        bad = strlist_add(&argv, c->command[i]) < 0;
    msg_init(&m, W_INIT_EXEC);
    msg_put_u32(&m, NUMBER_PROGRAM);
    strlist_put(&argv, &m);
    strlist_put(sandbox_env(s->sandbox), &m);
    msg_put_str(&m, MANAGED_SANDBOX_WORKDIR);
    msg_put_u8(&m, COMMAND_PIPES);
    msg_put_u32(&m, 0);
    msg_put_u32(&m, 0);
    msg_put_u8(&m, 0);
    strlist_done(&argv);
    s->number = NUMBER_PROGRAM;
    s->state = MCP_LAUNCHING;
    set_timer(s, LAUNCH_S);
    if (sandbox_tell(s->sandbox, &m) < 0 || bad)
        end(s, "it could not be started");
}

static struct mcp_server *of(const struct mcp_servers *all, const struct sandbox *sandbox)
{
    struct mcp_server *s;
    LIST_FOREACH(s, &all->list, link)
    if (s->sandbox == sandbox)
        return s;
    return NULL;
}

bool mcp_servers_have(const struct mcp_servers *all, const struct sandbox *s)
{
    return of(all, s) != NULL;
}

bool mcp_servers_running(struct mcp_servers *all, struct sandbox *sandbox)
{
    struct mcp_server *s = of(all, sandbox);
    if (s == NULL)
        return false;
    const struct config_mcp_server *c = config_mcp_server(all->controller->config, s->name);
    if (c && s->state == MCP_MAKING && !s->unused)
        launch(s, c);
    else
        end(s, "it is not wanted any more");
    return true;
}

/* ---- what it prints ---- */

static void connect_all(struct mcp_server *s)
{
    struct mcp_wait *w, *next;
    for (w = STAILQ_FIRST(&s->waits); w && s->state == MCP_READY; w = next) {
        struct msg m;
        next = STAILQ_NEXT(w, link);
        if (w->number)
            continue;
        w->number = ++s->number;
        msg_init(&m, W_INIT_CONNECT);
        msg_put_u32(&m, w->number);
        msg_put_u32(&m, STDIO_PORT);
        if (sandbox_tell(s->sandbox, &m) < 0)
            wait_over(s, w, -1, "the MCP server has ended just now");
    }
}

static void keep_tail(struct mcp_server *s, const char *p, size_t n)
{
    if (n > TAIL_MAX) {
        p += n - TAIL_MAX;
        n = TAIL_MAX;
    }
    size_t drop = s->n_tail + n > TAIL_MAX ? s->n_tail + n - TAIL_MAX : 0;
    memmove(s->tail, s->tail + drop, s->n_tail - drop);
    memcpy(s->tail + s->n_tail - drop, p, n);
    s->n_tail += n - drop;
}

/* What it prints costs us: so much a second, and it waits for the next. */
static void on_pace(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
    struct mcp_server *s = arg;
    s->taken = 0;
    if (s->on_out)
        event_add(s->on_out, NULL);
}

static void pace(struct mcp_server *s, size_t n)
{
    static const struct timeval second = {1, 0};
    if (!evtimer_pending(s->pace, NULL))
        event_add(s->pace, &second);
    s->taken += n;
    if (s->taken >= OUTPUT_A_SECOND)
        event_del(s->on_out);
}

static void on_output(evutil_socket_t fd, short what UNUSED, void *arg)
{
    struct mcp_server *s = arg;
    char room[4096];
    ssize_t n = read(fd, room, sizeof room);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        drop_output(s);
        return;
    }
    pace(s, (size_t)n);
    keep_tail(s, room, (size_t)n);
    struct slice ready = SLICE(STDIO_READY), all = {s->tail, s->n_tail};
    if (s->state != MCP_LAUNCHING || slice_find_slice(all, ready) < 0)
        return;
    s->n_tail = 0;
    s->state = MCP_READY;
    set_timer(s, 0);
    connect_all(s);
}

/* ---- what durward-init says; it is reached by the sandbox's bytes ---- */

static int take_output(struct mcp_server *s, int fd)
{
    if (s->state != MCP_LAUNCHING || s->out >= 0 || !inside_is_pipe(fd))
        return -1;
    s->out = fd;
    s->on_out = event_new(s->all->controller->base, fd, EV_READ | EV_PERSIST, on_output, s);
    return s->on_out && event_add(s->on_out, NULL) == 0 ? 1 : -1;
}

static struct mcp_wait *wait_of(struct mcp_server *s, uint32_t number)
{
    struct mcp_wait *w;
    STAILQ_FOREACH(w, &s->waits, link)
    if (w->number == number)
        return w;
    return NULL;
}

/* 1: the descriptor is taken; 0: nobody wants it; -1: it is not what was asked for. */
static int take_descriptor(struct mcp_server *s, uint32_t number, int fd)
{
    if (fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK) < 0)
        return -1;
    if (number == NUMBER_PROGRAM)
        return take_output(s, fd);
    struct mcp_wait *w = wait_of(s, number);
    if (w == NULL)
        return 0;
    if (!inside_is_connection(fd))
        return -1;
    wait_over(s, w, fd, "");
    return 1;
}

static int on_started(struct mcp_server *s, struct msg *m)
{
    uint32_t number, n;
    int fd = -1;
    if (msg_get_u32(m, &number) < 0 || msg_get_u32(m, &n) < 0 || n != 1 || number == 0 ||
        msg_get_fd(m, &fd) < 0)
        return -1;
    int r = msg_end(m) < 0 ? -1 : take_descriptor(s, number, fd);
    if (r <= 0 && s->out != fd)
        close(fd);
    return r < 0 ? -1 : 0;
}

static int on_exit_message(struct mcp_server *s, struct msg *m)
{
    uint32_t number, status;
    char text[512], why[SHOWN_MAX + 64], tail[SHOWN_MAX + 1];
    if (msg_get_u32(m, &number) < 0 || msg_get_u32(m, &status) < 0 ||
        msg_get_str(m, text, sizeof text) < 0 || msg_end(m) < 0 || status > 255)
        return -1;
    struct mcp_wait *w = number == NUMBER_PROGRAM ? NULL : wait_of(s, number);
    if (w)
        wait_over(s, w, -1, "the MCP server does not listen");
    if (number != NUMBER_PROGRAM)
        return 0;
    put_tail(s, tail, sizeof tail);
    s->clean = status == 0;
    if (status == 0)
        snprintf(why, sizeof why, "it was not used any more");
    else
        snprintf(why, sizeof why, "status %u: %s", (unsigned)status, *text ? "" : tail);
    end(s, why);
    return 0;
}

bool mcp_servers_said(struct mcp_servers *all, struct sandbox *sandbox, struct msg *m, int *bad)
{
    struct mcp_server *s = of(all, sandbox);
    if (s == NULL)
        return false;
    *bad = m->type == W_INIT_STARTED ? on_started(s, m)
           : m->type == W_INIT_EXIT  ? on_exit_message(s, m)
                                     : -1;
    return true;
}

/* ---- ends ---- */

static int begin(struct mcp_server *s, struct err *err)
{
    const struct config_mcp_server *c = config_mcp_server(s->all->controller->config, s->name);
    return c ? make(s, c, err) : err_set(err, ERR_DENIED, "there is no such MCP server");
}

/* Nothing is left to be known of it, or only for a while that it failed. */
static void rest(struct mcp_server *s)
{
    if (s->state != MCP_ABSENT || !STAILQ_EMPTY(&s->waits))
        return;
    if (s->unused || s->failures == 0)
        forget(s);
    else
        set_timer(s, 2 * PAUSE_MAX_S);
}

/* Of its own sandbox. Who asked while it ended gets the next. */
static void is_gone(struct mcp_server *s)
{
    char why[256];
    struct err err = {0};
    bool asked = s->state == MCP_ENDING && !s->unused;
    snprintf(why, sizeof why, "%.200s", sandbox_why(s->sandbox));
    if (s->state != MCP_ENDING)
        note(s, "mcp_server_ended", why);
    bool failed = !s->clean && seconds() - s->begun < SOON_S;
    s->failures = failed ? s->failures + 1 : 0;
    if (s->failures > FAILURES) {
        unsigned more = s->failures - FAILURES;
        s->not_before = seconds() + (more < 6 ? 1 << more : PAUSE_MAX_S);
        asked = false;
    }
    drop_output(s);
    s->sandbox = NULL;
    s->state = MCP_ABSENT;
    set_timer(s, 0);
    struct mcp_wait *w, *next;
    for (w = STAILQ_FIRST(&s->waits); w; w = next) {
        next = STAILQ_NEXT(w, link);
        if (w->number || !asked)
            wait_over(s, w, -1, why);
    }
    if (!s->unused && !STAILQ_EMPTY(&s->waits) && begin(s, &err) < 0)
        fail_waits(s, err.text);
    rest(s);
}

void mcp_servers_gone(struct mcp_servers *all, struct sandbox *sandbox)
{
    struct mcp_server *s = of(all, sandbox), *next;
    if (s)
        is_gone(s);
    for (s = LIST_FIRST(&all->list); s; s = next) {
        next = LIST_NEXT(s, link);
        if (strcmp(s->user, sandbox_id(sandbox)) != 0)
            continue;
        s->unused = true;
        fail_waits(s, "the sandbox that asked is gone");
        if (s->sandbox)
            end(s, "the sandbox that used it is gone");
        else
            forget(s);
    }
}

void mcp_servers_free(struct mcp_servers *all)
{
    struct mcp_server *s;
    if (all == NULL)
        return;
    while ((s = LIST_FIRST(&all->list)) != NULL)
        forget(s);
    free(all);
}

/* ---- a connection is asked for ---- */

static struct mcp_server *find(struct mcp_servers *all, const char *user, const char *name)
{
    struct mcp_server *s;
    LIST_FOREACH(s, &all->list, link)
    if (strcmp(s->user, user) == 0 && strcmp(s->name, name) == 0)
        return s;
    return NULL;
}

static struct mcp_server *fresh(struct mcp_servers *all, const char *user, const char *name)
{
    struct mcp_server *s = calloc(1, sizeof *s);
    if (s == NULL)
        return NULL;
    *s = (struct mcp_server){.all = all, .out = -1};
    snprintf(s->user, sizeof s->user, "%s", user);
    snprintf(s->name, sizeof s->name, "%s", name);
    STAILQ_INIT(&s->waits);
    s->timer = evtimer_new(all->controller->base, on_timer, s);
    s->pace = evtimer_new(all->controller->base, on_pace, s);
    if (!s->timer || !s->pace ||
        quota_take(&all->quota, &s->part, slice_str(user), 1) != QUOTA_TAKEN) {
        if (s->timer)
            event_free(s->timer);
        if (s->pace)
            event_free(s->pace);
        free(s);
        return NULL;
    }
    LIST_INSERT_HEAD(&all->list, s, link);
    return s;
}

/* Who asks was named by the dialer; here the sandbox is known, and what its policy allows. */
static const char *refused(const struct mcp_servers *all, const char *user, const char *policy,
                           const char *name)
{
    struct controller *c = all->controller;
    const struct sandbox *s = sandbox_find(&c->owner, user);
    if (s == NULL || sandbox_state(s) != SANDBOX_RUNNING || of(all, s))
        return "MCP servers are there for local sandboxes that run";
    if (strcmp(sandbox_policy(s), policy) != 0 || !config_mcp_allowed(c->config, policy, name))
        return "the policy has no such MCP server";
    return NULL;
}

static const char *ask(struct mcp_server *s, uint32_t who, uint32_t req)
{
    struct mcp_wait *w = s->n_waits < MCP_WAITS_MAX ? calloc(1, sizeof *w) : NULL;
    if (w == NULL)
        return "too many connections to the MCP server are being made";
    *w = (struct mcp_wait){.who = who, .req = req};
    STAILQ_INSERT_TAIL(&s->waits, w, link);
    s->n_waits++;
    return NULL;
}

static const char *dial(struct mcp_servers *all, uint32_t who, uint32_t req, const char *user,
                        const char *name, struct err *err)
{
    struct mcp_server *s = find(all, user, name);
    if (s == NULL)
        s = fresh(all, user, name);
    if (s == NULL)
        return "too many MCP servers run, of this sandbox or of all";
    if (s->state == MCP_ABSENT && seconds() < s->not_before)
        return "the MCP server keeps ending; it is started again in a while";
    const char *why = ask(s, who, req);
    if (why) {
        rest(s);
        return why;
    }
    if (s->state == MCP_ABSENT && begin(s, err) < 0) {
        fail_waits(s, err->text);
        rest(s);
        return NULL;
    }
    if (s->state == MCP_READY)
        connect_all(s);
    return NULL;
}

int mcp_servers_message(struct mcp_servers *all, struct msg *m)
{
    uint32_t who, req;
    char user[SANDBOX_ID_MAX + 1], policy[SANDBOX_ID_MAX + 1], name[MCP_HOST_NAME_MAX + 1];
    struct err err = {0};
    if (msg_get_u32(m, &who) < 0 || msg_get_u32(m, &req) < 0 ||
        msg_get_str(m, user, sizeof user) < 0 || msg_get_str(m, policy, sizeof policy) < 0 ||
        msg_get_str(m, name, sizeof name) < 0 || msg_end(m) < 0 ||
        !mcp_host_name_ok(slice_str(name)))
        return -1;
    const char *why = refused(all, user, policy, name);
    if (why == NULL)
        why = dial(all, who, req, user, name, &err);
    if (why)
        tell_dialer(all, who, req, -1, why);
    return 0;
}
