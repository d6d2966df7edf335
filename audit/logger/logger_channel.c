/* One writer of the logger: its channel, its journal, its ids. */
#include "logger_internal.h"

#include "assertion.h"
#include "broker.h"
#include "meter.h"
#include "timestamp.h"
#include "wire.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct channel *channel_new(struct logger *l)
{
    struct channel *ch = calloc(1, sizeof *ch);
    if (ch == NULL || (ch->ids = open_ids_new()) == NULL) {
        free(ch);
        return NULL;
    }
    ch->logger = l;
    ch->state = CHANNEL_WAITING;
    ch->file.fd = -1;
    TAILQ_INIT(&ch->paced);
    TAILQ_INSERT_TAIL(&l->channels, ch, link);
    l->n_channels++;
    return ch;
}

static void rest(struct channel *ch)
{
    if (ch->busy)
        TAILQ_REMOVE(&ch->logger->busy, ch, busy_link);
    ch->busy = false;
}

void channel_free(struct channel *ch)
{
    TAILQ_REMOVE(&ch->logger->channels, ch, link);
    rest(ch);
    ch->logger->n_channels--;
    ch->logger->n_drained -= ch->state == CHANNEL_DRAINED;
    subscribers_leave(ch->logger->subscribers, ch->ipc);
    channel_share_done(ch);
    ipc_free(ch->ipc);
    journal_file_done(&ch->file);
    open_ids_free(ch->ids);
    free(ch);
}

void channel_wake(struct channel *ch)
{
    ch->dirty = true;
    if (!ch->busy)
        TAILQ_INSERT_TAIL(&ch->logger->busy, ch, busy_link);
    ch->busy = true;
    logger_wake(ch->logger);
}

static void set_state(struct channel *ch, enum channel_state state)
{
    ASSERT(ch->state != CHANNEL_DRAINED);
    ch->state = state;
    ch->logger->n_drained += state == CHANNEL_DRAINED;
    channel_wake(ch);
}

void channel_close(struct channel *ch)
{
    subscribers_leave(ch->logger->subscribers, ch->ipc);
    ipc_free(ch->ipc);
    ch->ipc = NULL;
    if (ch->state == CHANNEL_WAITING && ch->file.fd < 0) {
        channel_free(ch);
        return;
    }
    if (ch->state > CHANNEL_OPEN)
        return;
    ch->torn = false;
    ch->since_ms = logger_ms();
    set_state(ch, CHANNEL_CLOSING);
}

/* Whoever writes what it may not is not the program that we started: its process has to end. */
static void end_writer(const struct channel *ch)
{
    struct msg m;
    if (ch->ipc == NULL || ch->logger->control == NULL)
        return;
    msg_init(&m, W_CORRUPT);
    msg_put_u32(&m, ch->handle);
    ipc_send(ch->logger->control, &m);
}

/* Nothing that this writer says from here on is read. */
static void corrupt(struct channel *ch, const char *why)
{
    end_writer(ch);
    logger_event(ch->logger, ch, "journal_corrupt", why, 0);
    logger_warn(ch->logger,
                "the journal of channel %u (%s, sandbox \"%s\") is corrupt: %s; it is ended",
                (unsigned)ch->handle, role_name((enum role)ch->file.role), ch->file.sandbox, why);
    subscribers_leave(ch->logger->subscribers, ch->ipc);
    ipc_free(ch->ipc);
    ch->ipc = NULL;
    ch->more = ch->torn = false;
    set_state(ch, CHANNEL_ABORTING);
}

static void on_closed(struct ipc *ipc UNUSED, const char *why UNUSED, void *arg)
{
    channel_close(arg);
}

/* Only these two show the log to anybody. */
static int on_watch(struct channel *ch, struct msg *m)
{
    uint8_t on;
    if ((ch->file.role != ROLE_CONTROLLER && ch->file.role != ROLE_EXPORTER) ||
        (msg_get_u8(m, &on) | msg_end(m)) < 0 || on > 2)
        return -1;
    if (on)
        subscribers_watch(ch->logger->subscribers, ch->ipc, on == 1);
    else
        subscribers_leave(ch->logger->subscribers, ch->ipc);
    return 0;
}

static int on_known_ask(const struct channel *ch, struct msg *m)
{
    if (ch->file.role != ROLE_CONTROLLER || msg_end(m) < 0)
        return -1;
    logger_fleet_tell(ch->logger, ch->ipc);
    return 0;
}

/* Counts of bytes are the writer's word: they only say when to look. */
static int on_message(struct ipc *ipc UNUSED, struct msg *m, void *arg)
{
    struct channel *ch = arg;
    uint64_t count;
    if (m->type == W_WATCH)
        return on_watch(ch, m);
    if (m->type == W_FLEET_KNOWN_ASK)
        return on_known_ask(ch, m);
    if ((msg_get_u64(m, &count) | msg_end(m)) < 0 || ch->state != CHANNEL_OPEN ||
        count > ch->granted)
        return -1;
    switch (m->type) {
    case W_TICK:
        break;
    case W_SYNC:
        if (count < ch->sync_upto)
            return -1;
        ch->sync_upto = count;
        break;
    case W_REPAIR:
        if (ch->torn)
            return -1;
        ch->torn = true;
        ch->torn_at = count;
        break;
    default:
        return -1;
    }
    channel_wake(ch);
    return 0;
}

int channel_accept(struct logger *l, enum role role, uint32_t handle, const char *sandbox,
                   const char *policy, int fd)
{
    struct channel *ch = l->n_channels < LOGGER_CHANNELS_MAX ? channel_new(l) : NULL;
    if (ch == NULL) {
        close(fd);
        logger_warn(l, "no room for another writer: %u channels", (unsigned)l->n_channels);
        return -1;
    }
    ch->handle = handle;
    ch->file.role = (unsigned)role;
    snprintf(ch->file.sandbox, sizeof ch->file.sandbox, "%s", sandbox);
    snprintf(ch->file.policy, sizeof ch->file.policy, "%s", policy);
    ch->ipc = ipc_new(l->base, fd, on_message, on_closed, ch);
    if (ch->ipc == NULL) {
        channel_free(ch);
        return -1;
    }
    set_state(ch, CHANNEL_WAITING);
    return 0;
}

/* A channel in WAITING: make its journal and hand it out. */
static void begin(struct channel *ch)
{
    struct logger *l = ch->logger;
    struct err err = {0};
    int writer;
    if (ch->file.channel == 0)
        ch->file.channel = logger_number(l, &err);
    ch->file.birth = log_file_seq(l->log);
    if (ch->file.channel == 0 || journal_file_make(&ch->file, l->journal_dir, &writer, &err) < 0) {
        if (!ch->told)
            logger_warn(l, "%s; trying again", err.text);
        ch->told = true;
        ch->file.channel = 0;
        return; /* stays dirty: the retry timer comes back to it */
    }
    ch->state = CHANNEL_OPEN;
    ch->dirty = false;
    ch->granted = LOGGER_CREDIT;
    struct msg m;
    msg_init(&m, W_JOURNAL);
    msg_put_u32(&m, ch->file.channel);
    msg_put_u64(&m, LOGGER_CREDIT);
    msg_put_u64(&m, 1);
    msg_put_fd(&m, writer);
    ipc_send(ch->ipc, &m);
}

/* What the ids say to a record (P4). */
static enum open_ids_result note_id(struct channel *ch, enum record_kind kind, uint64_t counter)
{
    switch (kind) {
    case RECORD_ADMITTED:
        return open_ids_begin(ch->ids, counter, true);
    case RECORD_DENIED:
        return open_ids_begin(ch->ids, counter, false);
    case RECORD_COMPLETED:
    case RECORD_ABORTED:
        return open_ids_end(ch->ids, counter);
    default:
        return OPEN_IDS_OK;
    }
}

void channel_replay(struct channel *ch, const struct render_head *h)
{
    if (h->seq <= ch->file.birth)
        return;
    (void)note_id(ch, h->kind, h->counter);
    if (h->at > ch->file.pos)
        ch->file.pos = h->at;
}

/* Some kinds are one role's to say, and a name is only believed where the channel has none. */
static const char *forbidden(const struct channel *ch, const struct record_view *v)
{
    enum role r = (enum role)ch->file.role;
    if (v->kind == RECORD_CONNECTION && r != ROLE_DIALER)
        return "a connection record from another role than the dialer";
    if (v->kind == RECORD_LIFECYCLE &&
        (r == ROLE_GATE || r == ROLE_INJECTOR || r == ROLE_DIALER || broker_of(r)))
        return "a lifecycle record from a role that has none to write";
    if (v->field[RF_SANDBOX].n && ch->file.sandbox[0])
        return "a sandbox's name on a channel that belongs to a sandbox";
    /* of a listener: it has clients with tokens, or those that a provider names */
    if (r == ROLE_GATE && !ch->file.sandbox[0] && v->field[RF_SANDBOX].n &&
        !slice_starts(v->field[RF_SANDBOX], ch->file.policy[0] ? SLICE("vercel:") : SLICE("rt-")))
        return "a sandbox's name that none of this listener's clients can have";
    if (v->field[RF_POLICY].n && ch->file.policy[0])
        return "a policy's name on a channel that belongs to a policy";
    if (v->field[RF_SANDBOX].n > RENDER_NAME_MAX || v->field[RF_POLICY].n > RENDER_NAME_MAX)
        return "a name is too long";
    return NULL;
}

static struct render_source source(const struct channel *ch)
{
    return (struct render_source){.channel = ch->file.channel,
                                  .role = role_name((enum role)ch->file.role),
                                  .sandbox = ch->file.sandbox,
                                  .policy = ch->file.policy};
}

static void count(struct logger *l, const struct record_view *v, const struct render_source *from,
                  uint64_t now, size_t line)
{
    uint64_t ms = 0;
    counts_note(&l->counts, v, from);
    thresholds_note(l->thresholds, v, from, line, logger_ms() / 1000);
    meter_time(SPAN_AUDIT_LAG, now > v->wall_ns ? (now - v->wall_ns) / 1000 : 0);
    bool end = v->kind == RECORD_COMPLETED || v->kind == RECORD_ABORTED;
    if (end && slice_u64(v->field[RF_MS], INT64_MAX / 1000, &ms) == 0)
        meter_time(SPAN_REQUEST, ms * 1000);
}

/* One record into the queue. -1: the channel was ended. */
static int take(struct channel *ch, const struct record_view *v, uint64_t at)
{
    struct logger *l = ch->logger;
    const char *why = forbidden(ch, v);
    if (why == NULL && at - ch->file.start > ch->granted)
        why = "more bytes than it had credit for";
    enum open_ids_result id = why ? OPEN_IDS_OK : note_id(ch, v->kind, v->counter);
    if (id == OPEN_IDS_FULL)
        why = "too many requests without an end";
    if (why) {
        corrupt(ch, why);
        return -1;
    }
    struct render_source from = source(ch);
    uint64_t now = timestamp_now();
    size_t before = log_file_queued(l->log);
    if (log_file_put(l->log, v, &from, at, now) < 0) {
        corrupt(ch, "a record that cannot be written as a line");
        return -1;
    }
    ch->file.pos = at;
    size_t line = log_file_queued(l->log) - before;
    channel_charge(ch, v, line);
    count(l, v, &from, now, line);
    if (id == OPEN_IDS_SECOND || id == OPEN_IDS_UNKNOWN)
        logger_event(l, ch, id == OPEN_IDS_SECOND ? "duplicate" : "unmatched",
                     record_kind_name(v->kind), v->counter);
    return 0;
}

enum copied { COPIED_ALL, COPIED_TORN, COPIED_MORE, COPIED_ENDED };

/* One chunk of the journal into the queue. */
static enum copied copy(struct channel *ch)
{
    struct logger *l = ch->logger;
    /* once over its credit it gets no more: the copying then ends where the credit did */
    if (journal_file_look(&ch->file).size - ch->file.start > ch->granted)
        ch->overrun = true;
    logger_clock(l); /* before the first line that has the new time */
    ssize_t n = journal_file_read(&ch->file, l->chunk, sizeof l->chunk);
    if (n < 0) {
        corrupt(ch, "it cannot be read");
        return COPIED_ENDED;
    }
    size_t off = 0;
    while (off < (size_t)n) {
        struct record_view v;
        const char *why;
        ch->more = !log_file_room(l->log);
        if (ch->more)
            return COPIED_MORE;
        ssize_t r = record_read(&v, l->chunk + off, (size_t)n - off, &why);
        if (r < 0) {
            corrupt(ch, why);
            return COPIED_ENDED;
        }
        if (r == 0)
            break;
        off += (size_t)r;
        if (take(ch, &v, ch->file.pos + (uint64_t)r) < 0)
            return COPIED_ENDED;
    }
    ch->more = n == LOGGER_CHUNK && off > 0;
    if (ch->more)
        return COPIED_MORE;
    return off < (size_t)n ? COPIED_TORN : COPIED_ALL;
}

static void pump_open(struct channel *ch)
{
    enum copied c = copy(ch);
    ch->dirty = c == COPIED_MORE || c == COPIED_ENDED;
}

/* Whether anybody may still append is asked before the rest is read, not after. */
static void pump_closing(struct channel *ch)
{
    struct logger *l = ch->logger;
    int held = journal_file_held(&ch->file);
    if (l->forced)
        held = 0;
    else if (held < 0)
        held = logger_ms() - ch->since_ms < LOGGER_GRACE_MS;
    enum copied c = copy(ch);
    if (c == COPIED_MORE || c == COPIED_ENDED || held)
        return;
    if (c == COPIED_TORN)
        logger_event(l, ch, "journal_torn", "its writer ended inside a record", 0);
    set_state(ch, CHANNEL_ABORTING);
}

static void pump_aborting(struct channel *ch)
{
    struct logger *l = ch->logger;
    struct render_source from = source(ch);
    while (open_ids_count(ch->ids)) {
        struct record_view v = {.kind = RECORD_ABORTED, .wall_ns = timestamp_now()};
        if (!log_file_room(l->log))
            return;
        v.counter = open_ids_any(ch->ids);
        v.field[RF_CODE] = SLICE("writer_gone");
        v.field[RF_BYTES] = SLICE("unknown");
        if (log_file_put(l->log, &v, &from, 0, v.wall_ns) < 0)
            return;
        counts_note(&l->counts, &v, &from);
        (void)open_ids_end(ch->ids, v.counter);
    }
    set_state(ch, CHANNEL_DRAINED);
}

void channel_pump(struct channel *ch)
{
    switch (ch->state) {
    case CHANNEL_WAITING:
        begin(ch);
        break;
    case CHANNEL_OPEN:
        pump_open(ch);
        break;
    case CHANNEL_CLOSING:
        pump_closing(ch);
        break;
    case CHANNEL_ABORTING:
        pump_aborting(ch);
        break;
    case CHANNEL_DRAINED: /* until its journal is cleared */
        ch->dirty = false;
        break;
    }
}

bool channel_wants_sync(const struct channel *ch)
{
    uint64_t copied = ch->file.pos - ch->file.start;
    return ch->state == CHANNEL_OPEN && ch->sync_upto > ch->synced && copied >= ch->sync_upto;
}

static void send_count(struct channel *ch, uint16_t type, uint64_t count)
{
    struct msg m;
    msg_init(&m, type);
    msg_put_u64(&m, count);
    ipc_send(ch->ipc, &m); /* a failure closes the channel from the loop */
}

/* All whole records are copied; what is behind them was never acknowledged to anybody. */
static void repair(struct channel *ch)
{
    struct logger *l = ch->logger;
    struct err err = {0};
    if (ch->torn_at != ch->file.pos - ch->file.start) {
        corrupt(ch, "its writer and its records disagree on where it is torn");
        return;
    }
    if (journal_file_cut(&ch->file, &err) < 0) {
        logger_warn(l, "%s", err.text);
        ch->dirty = true; /* and busy, as it is torn */
        return;
    }
    ch->torn = false;
    logger_event(l, ch, "journal_torn", "a short write; its rest was cut off", 0);
    logger_wake(l);
    send_count(ch, W_REPAIR, ch->torn_at);
}

static void settle_open(struct channel *ch)
{
    uint64_t credit = channel_credit(ch);
    if (channel_wants_sync(ch)) {
        ch->synced = ch->sync_upto;
        send_count(ch, W_SYNCED, ch->synced);
    }
    if (credit) {
        ch->granted += credit;
        send_count(ch, W_CREDIT, credit);
        journal_file_punch(&ch->file);
    }
    if (ch->torn && !ch->dirty)
        repair(ch);
}

void channel_settle(struct channel *ch, bool clear)
{
    struct err err = {0};
    if (ch->state == CHANNEL_OPEN) {
        settle_open(ch);
        if (ch->state == CHANNEL_OPEN && !ch->dirty && !ch->more && !ch->torn)
            rest(ch);
    } else if (ch->state == CHANNEL_DRAINED && clear) {
        if (journal_file_remove(&ch->file, &err) < 0)
            logger_warn(ch->logger, "%s", err.text);
        channel_free(ch);
    }
}
