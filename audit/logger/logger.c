/* Drives the logger: its turns on the event loop, the head that it signs, the control channel to
 * the parent, and its end. What a turn does to channels and files stands in the logger_*.c beside
 * it. */
#include "logger_internal.h"

#include "crypto_text.h"
#include "file_look.h"
#include "meter.h"
#include "timestamp.h"
#include "peer.h"
#include "role_run.h"
#include "wire.h"

#include <event2/event.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { CLOCK_JUMP_S = 2 }; /* what is less is a correction */

uint64_t logger_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

void logger_wake(struct logger *l)
{
    if (l->turn)
        event_active(l->turn, EV_TIMEOUT, 0);
}

void logger_warn(struct logger *l, const char *fmt, ...)
{
    char text[1024];
    struct msg m;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    if (l->control == NULL)
        return;
    msg_init(&m, W_LOG);
    msg_put_u8(&m, 1);
    msg_put_str(&m, text);
    ipc_send(l->control, &m);
}

void logger_event(struct logger *l, const struct channel *ch, const char *event, const char *detail,
                  uint64_t request)
{
    char id[32];
    struct render_source from = {.role = role_name(ROLE_LOGGER),
                                 .sandbox = ch ? ch->file.sandbox : "",
                                 .policy = ch ? ch->file.policy : ""};
    struct record_view v = {
        .kind = RECORD_LIFECYCLE, .wall_ns = timestamp_now(), .counter = log_file_seq(l->log) + 1};
    v.field[RF_EVENT] = slice_str(event);
    v.field[RF_DETAIL] = slice_str(detail);
    if (request) {
        int n = snprintf(id, sizeof id, "%u-%llu", (unsigned)ch->file.channel,
                         (unsigned long long)request);
        v.field[RF_REQUEST] = (struct slice){id, (size_t)n};
    }
    if (log_file_put(l->log, &v, &from, 0, v.wall_ns) < 0)
        logger_warn(l, "the audit event %s was lost: its queue is full", event);
}

void logger_clock(struct logger *l)
{
    char detail[64];
    struct timespec boot;
    if (clock_gettime(CLOCK_BOOTTIME, &boot) < 0)
        return;
    int64_t was = l->clock_ms;
    l->clock_ms = (int64_t)(timestamp_now() / 1000000U) -
                  (boot.tv_sec * INT64_C(1000) + boot.tv_nsec / 1000000);
    long long by = (long long)(l->clock_ms - was);
    if (was == 0 || llabs(by) < CLOCK_JUMP_S * 1000)
        return;
    snprintf(detail, sizeof detail, "put %s by %lld.%03lld s", by < 0 ? "back" : "forward",
             llabs(by) / 1000, llabs(by) % 1000);
    logger_event(l, NULL, "clock_changed", detail, 0);
}

void logger_arm(struct event *e, unsigned ms)
{
    struct timeval t = {ms / 1000, (suseconds_t)(ms % 1000) * 1000};
    event_add(e, &t);
}

/* ---- head ---- */

static void sign_head(struct logger *l)
{
    struct err err = {0};
    struct head h;
    if (!log_file_tip(l->log, &h) || h.tip.seq == l->signed_seq)
        return;
    timestamp_text(timestamp_now(), h.time, sizeof h.time);
    /* the log first, or a power cut could leave it shorter than its head */
    if (log_file_sync(l->log, &err) < 0 || head_write(l->dir, &h, l->key, &err) < 0) {
        if (!l->head_failing)
            logger_warn(l, "%s; trying again each second", err.text);
        l->head_failing = true;
        return;
    }
    l->head_failing = false;
    l->signed_seq = h.tip.seq;
}

static void report_counts(struct logger *l)
{
    struct msg m;
    if (!l->counts.changed || l->control == NULL)
        return;
    l->counts.changed = false;
    msg_init(&m, W_COUNTS);
    counts_put(&m, &l->counts);
    ipc_send(l->control, &m);
}

/* ---- turns ---- */

static void finish(struct logger *l, bool ok)
{
    l->ok = ok;
    l->finished = true;
    event_base_loopexit(l->base, NULL);
}

static bool is_removed(int fd)
{
    struct file_look look;
    return fd >= 0 && file_look(fd, &look) == 0 && look.removed;
}

static bool lost_journal(const struct channel *ch)
{
    return ch->state != CHANNEL_DRAINED && journal_file_look(&ch->file).removed;
}

/* The directory, or a journal in it, was removed under us: what is recorded goes nowhere. Nobody is
 * told that anything is on disk any more; the parent makes a directory for the next logger. */
static void leave(struct logger *l)
{
    logger_warn(l, "the audit directory or a journal in it was removed, and what it held with it; "
                   "beginning anew");
    finish(l, false);
}

/* A turn looks at the journals that it copies, a tick at those of open channels (logger_tick), and
 * a second at all others. */
static bool leave_removed(struct logger *l, bool second)
{
    const struct channel *ch;
    bool gone = is_removed(l->dir) || is_removed(l->journal_dir);
    TAILQ_FOREACH(ch, &l->busy, busy_link)
    gone |= lost_journal(ch);
    if (second)
        TAILQ_FOREACH(ch, &l->channels, link)
    gone |= (ch->state != CHANNEL_OPEN || l->stopping) && lost_journal(ch);
    if (gone)
        leave(l);
    return gone;
}

/* 0: the queue is on disk. -1: not; nobody gets credit, and the timer tries again. */
static int flush(struct logger *l, bool sync)
{
    struct err err = {0};
    if (log_file_flush(l->log, &err) == 0 && (!sync || log_file_sync(l->log, &err) == 0)) {
        if (l->failing) {
            l->failing = false;
            meter_set(METER_LOG_FAILING, 0);
            logger_event(l, NULL, "log_recovered", NULL, 0);
            logger_warn(l, "the audit log can be written again");
            logger_wake(l);
        }
        return 0;
    }
    if (!l->failing) {
        logger_warn(l, "%s; requests are refused until it can be written", err.text);
        meter_add(METER_LOG_FAILURES, 1);
        meter_set(METER_LOG_FAILING, 1);
    }
    l->failing = true;
    logger_arm(l->retry, LOGGER_RETRY_MS);
    return -1;
}

static void on_second(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
    struct logger *l = arg;
    if (l->finished || leave_removed(l, true))
        return;
    if (log_file_lost(l->log)) {
        logger_event(l, NULL, "log_removed", "the active file was removed", 0);
        logger_warn(l, "the active audit file was removed; a new one is begun");
        logger_wake(l);
    }
    logger_clock(l);
    logger_keep(l);
    sign_head(l);
    logger_fleet_tick(l);
    report_counts(l);
}

static void on_tick(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
    struct logger *l = arg;
    if (l->finished)
        return;
    if (!l->stopping && !logger_tick(l)) {
        leave(l);
        return;
    }
    if (l->signed_seq == 0)
        sign_head(l); /* a new log has its first head soon */
    if (l->n_drained > 0) {
        l->clear = true;
        logger_wake(l);
    }
}

static void say_last(struct logger *l)
{
    if (l->said_last)
        return;
    l->said_last = true;
    logger_event(l, NULL, "stop", NULL, 0);
    logger_keep_last(l);
}

/* Once every channel is done or time is up. */
static void end(struct logger *l)
{
    bool left = !TAILQ_EMPTY(&l->channels);
    say_last(l);
    bool ok = log_file_flush(l->log, NULL) == 0 && !left;
    sign_head(l);
    finish(l, ok && !l->head_failing);
}

/* Come back at once for what is in hand, later for what must wait for others. */
static void plan(struct logger *l)
{
    struct channel *ch;
    bool soon = log_file_pending(l->log), later = false;
    TAILQ_FOREACH(ch, &l->busy, busy_link)
    {
        bool waits = ch->state == CHANNEL_CLOSING || ch->state == CHANNEL_WAITING || ch->torn;
        soon |= ch->more || (ch->dirty && !waits);
        later |= waits;
    }
    if (soon)
        logger_wake(l);
    if (later)
        logger_arm(l->retry, l->stopping ? LOGGER_RETRY_MS / 20 : LOGGER_RETRY_MS);
    if (l->stopping && TAILQ_EMPTY(&l->channels) && !l->finished)
        end(l);
}

/* What there is to be copied, of each once; what found no room is first in the next turn. */
static void pump(struct logger *l)
{
    struct channel *ch, *next, *last = TAILQ_LAST(&l->busy, channel_list);
    for (ch = TAILQ_FIRST(&l->busy); ch && log_file_room(l->log); ch = next) {
        next = ch == last ? NULL : TAILQ_NEXT(ch, busy_link);
        if (!ch->dirty)
            continue;
        TAILQ_REMOVE(&l->busy, ch, busy_link);
        TAILQ_INSERT_TAIL(&l->busy, ch, busy_link);
        channel_pump(ch);
    }
}

/* Whether journals that were copied whole go in this turn: the log is on disk before they do, which
 * is waited for once for all that ended since the last tick, or, at our own end, since we were told
 * to stop. */
static bool clears(struct logger *l)
{
    bool last = l->stopping && l->n_drained == l->n_channels;
    if (last)
        say_last(l);
    return l->n_drained > 0 && (l->clear || last);
}

static void on_turn(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
    struct logger *l = arg;
    struct channel *ch, *next;
    if (l->finished || leave_removed(l, false) || flush(l, false) < 0)
        return;
    pump(l);
    logger_notice(l);
    bool clear = clears(l), sync = clear;
    TAILQ_FOREACH(ch, &l->busy, busy_link)
    sync |= channel_wants_sync(ch);
    if (flush(l, sync) < 0)
        return;
    for (ch = TAILQ_FIRST(&l->busy); ch; ch = next) {
        next = TAILQ_NEXT(ch, busy_link);
        channel_settle(ch, clear);
    }
    l->clear &= !clear;
    plan(l);
}

static void on_deadline(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
    struct logger *l = arg;
    if (l->forced) {
        end(l);
        return;
    }
    l->forced = true; /* whoever still holds a journal has lost its channel long ago */
    logger_wake(l);
    logger_arm(l->deadline, LOGGER_STOP_MS / 4);
}

void logger_stop(struct logger *l)
{
    struct channel *ch, *next;
    if (l->stopping || l->finished)
        return;
    l->stopping = true;
    if (!l->started) {
        finish(l, false);
        return;
    }
    for (ch = TAILQ_FIRST(&l->channels); ch; ch = next) {
        next = TAILQ_NEXT(ch, link);
        channel_close(ch);
    }
    logger_arm(l->deadline, LOGGER_STOP_MS);
    logger_wake(l);
}

/* ---- control channel ---- */

static int logger_load(void *self, struct msg *m, struct msg *ready UNUSED, struct err *err)
{
    return logger_start(self, m, err);
}

static int logger_confine(void *self, struct err *err)
{
    const struct logger *l = self;
    return l->confine ? l->confine(l->dir, err) : 0;
}

static void logger_begun(void *self)
{
    struct logger *l = self;
    struct timeval second = {1, 0}, tick = {0, LOGGER_TICK_MS * 1000};
    l->started = true;
    event_add(l->second, &second);
    event_add(l->tick, &tick);
    logger_wake(l);
}

static const struct role_start role_steps = {
    .load = logger_load, .confine = logger_confine, .begun = logger_begun};

static bool is_writer(unsigned role)
{
    return role > ROLE_NONE && role < ROLE_COUNT && role != ROLE_LOGGER && role != ROLE_CLIENT;
}

static int on_peer(struct logger *l, struct msg *m)
{
    struct peer far;
    if (peer_get(m, &far) < 0)
        return -1;
    if (far.kind == ROLE_FLEET)
        return logger_fleet_attach(l, far.fd, far.channel);
    if (!is_writer(far.kind)) {
        close(far.fd);
        return -1;
    }
    (void)channel_accept(l, far.kind, far.channel, far.sandbox, far.policy, far.fd);
    return 0;
}

static int on_peer_gone(struct logger *l, struct msg *m)
{
    uint32_t handle;
    struct channel *ch, *next;
    if ((msg_get_u32(m, &handle) | msg_end(m)) < 0)
        return -1;
    for (ch = TAILQ_FIRST(&l->channels); ch; ch = next) {
        next = TAILQ_NEXT(ch, link);
        if (ch->ipc && ch->handle == handle)
            channel_close(ch);
    }
    return 0;
}

static int on_control(struct ipc *ipc UNUSED, struct msg *m, void *arg)
{
    struct logger *l = arg;
    if (m->type == W_INIT)
        return l->started || l->log ? -1 : role_start(&role_steps, l, l->control, m);
    if (!l->started || l->stopping)
        return l->finished || l->stopping ? 0 : -1;
    switch (m->type) {
    case W_PEER:
        return on_peer(l, m);
    case W_PEER_GONE:
        return on_peer_gone(l, m);
    case W_SUPPRESS:
        return logger_take_suppressions(l, m);
    case W_ROTATE:
        l->rotate_asked = true;
        return msg_end(m);
    case W_LOGGER_FINISH:
        logger_stop(l);
        return msg_end(m);
    default:
        return -1;
    }
}

static void on_control_closed(struct ipc *ipc, const char *why UNUSED, void *arg)
{
    struct logger *l = arg;
    meter_report_end();
    ipc_free(ipc);
    l->control = NULL;
    logger_stop(l);
}

/* ---- birth and death ---- */

struct logger *logger_new(struct event_base *base, int control_fd,
                          int (*confine)(int dir, struct err *))
{
    struct logger *l = calloc(1, sizeof *l);
    if (l == NULL) {
        close(control_fd);
        return NULL;
    }
    TAILQ_INIT(&l->channels);
    TAILQ_INIT(&l->busy);
    l->base = base;
    l->confine = confine;
    l->base_dir = l->dir = l->journal_dir = l->lock = -1;
    l->turn = event_new(base, -1, 0, on_turn, l);
    l->retry = event_new(base, -1, 0, on_turn, l);
    l->tick = event_new(base, -1, EV_PERSIST, on_tick, l);
    l->second = event_new(base, -1, EV_PERSIST, on_second, l);
    l->deadline = event_new(base, -1, 0, on_deadline, l);
    l->control = ipc_new(base, control_fd, on_control, on_control_closed, l);
    if (logger_keep_start(l) < 0 || !l->turn || !l->retry || !l->tick || !l->second ||
        !l->deadline || !l->control) {
        logger_free(l);
        return NULL;
    }
    return l;
}

bool logger_finished(const struct logger *l)
{
    return l->finished;
}

bool logger_ok(const struct logger *l)
{
    return l->ok;
}

static void free_event(struct event *e)
{
    if (e)
        event_free(e);
}

void logger_free(struct logger *l)
{
    if (l == NULL)
        return;
    while (!TAILQ_EMPTY(&l->channels))
        channel_free(TAILQ_FIRST(&l->channels));
    ipc_free(l->control);
    logger_fleet_free(l);
    logger_keep_end(l);
    free_event(l->turn);
    free_event(l->retry);
    free_event(l->tick);
    free_event(l->second);
    free_event(l->deadline);
    subscribers_free(l->subscribers);
    thresholds_free(l->thresholds);
    shares_free(l->shares);
    log_index_free(l->index);
    log_file_free(l->log);
    signing_key_free(l->key);
    int fds[] = {l->lock, l->journal_dir, l->dir, l->base_dir};
    for (size_t i = 0; i < ARRAY_LEN(fds); i++)
        if (fds[i] >= 0)
            close(fds[i]);
    free(l);
}

static int confine_to(int dir, struct err *err)
{
    const struct landlock_place own = {dir, LANDLOCK_KEEP};
    return proc_confine_to(ROLE_LOGGER, &own, 1, err);
}

static void on_term(evutil_socket_t sig UNUSED, short what UNUSED, void *arg)
{
    logger_stop(arg);
}

struct process {
    struct logger *logger;
    struct event *term;
};

static struct ipc *logger_open(void *self, struct event_base *base, int control_fd,
                               struct err *err UNUSED)
{
    struct process *r = self;
    signal(SIGIO, SIG_IGN);   /* a broken lease */
    signal(SIGXFSZ, SIG_IGN); /* EFBIG will do */
    r->logger = logger_new(base, control_fd, confine_to);
    r->term = r->logger ? evsignal_new(base, SIGTERM, on_term, r->logger) : NULL;
    return r->term && event_add(r->term, NULL) == 0 ? r->logger->control : NULL;
}

static int logger_leave(void *self, struct event_base *base)
{
    struct process *r = self;
    bool ok = logger_ok(r->logger);
    logger_free(r->logger);
    /* taking the signal handler down again needs a system call that the filter has no place for */
    if (SANITIZED) {
        event_free(r->term);
        event_base_free(base);
    }
    return ok ? 0 : 1;
}

int logger_main(void)
{
    static const struct role_life life = {.role = ROLE_LOGGER,
                                          .first = crypto_text_later,
                                          .counts = true,
                                          .open = logger_open,
                                          .leave = logger_leave};
    struct process process = {NULL, NULL};
    return role_run(&life, &process);
}
