/* Appends records within the logger's credit, all of a turn of the loop in one write, holds those
 * that must wait for credit, and calls back whoever waits. An end that finds no room is kept and
 * written before anything is admitted. */
#include "journal.h"

#include "assertion.h"
#include "file_look.h"
#include "ipc.h"
#include "record_read.h"
#include "render.h"
#include "timestamp.h"
#include "wire.h"
#include "peer.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <time.h>
#include <unistd.h>

enum {
    ACK_SECONDS = 2,
    HOLD_SECONDS = 5, /* for credit, or until the sandbox has some of its share again */
    HEARD_MS = 5000,  /* a logger that gave credit so lately is only behind, as disks may be */
    HOLD_BYTES = 1 << 20,
    HOLD_ONE = 256 * 1024, /* of one sandbox */
    PACED_MAX = 1024,
    LATE_MAX = 256 * 1024,
    FRESH_MAX = 64 * 1024, /* more of one turn is written at once */
    LATE_RETRY_MS = 200,
    TELL_MS = 20, /* the record is the write(2); that the logger hears of it can wait so long, */
                  /* and as long an end can wait for the next record, which takes it along, */
    TELL_BYTES = 64 * 1024, /* or until there is so much of it */
    /* Who has written so much in TELL_MS is busy. The logger hears of it in each fifth turn only,
     * as it may want the processor that answers requests. */
    BUSY_BYTES = 16 * 1024,
    BUSY_TURNS = 5,
};

enum journal_state {
    JOURNAL_NONE = 0, /* no file: every append fails */
    JOURNAL_OPEN,
    JOURNAL_TORN, /* a short write; waits until the logger has cut its rest off */
};

enum wait_state {
    WAIT_HELD = 1, /* for credit; in held */
    WAIT_FRESH,    /* for this turn's write; in turned, as the next two */
    WAIT_WRITTEN,  /* its callback is next, or in `synced` the acknowledgement */
    WAIT_REFUSED,  /* its callback is next */
    WAIT_SYNC,     /* for the acknowledgement; in waits */
};

TAILQ_HEAD(waits, journal_wait);

struct journal_wait {
    TAILQ_ENTRY(journal_wait) link;
    struct journal *journal;
    enum wait_state state;
    uint64_t upto;     /* FRESH: its end in fresh; then on record, or acknowledged, with so many */
    uint64_t deadline; /* monotonic ns; HELD and SYNC */
    uint64_t counter;
    bool admitted;
    unsigned char *bytes; /* HELD */
    size_t n;
    struct slice sandbox; /* in bytes; of a journal that several share */
    journal_done_fn fn;
    void *arg;
};

/* A sandbox whose share of the log is used up. */
struct paced {
    TAILQ_ENTRY(paced) link;
    char sandbox[RENDER_NAME_MAX + 1];
};

struct journal {
    struct ipc *parent; /* told of a channel that ended; NULL: nobody is */
    struct event_base *base;
    bool synced;
    enum journal_state state;
    struct ipc *logger; /* NULL: none */
    uint32_t number;    /* of that channel */
    bool named;         /* the file had a name in a directory when it came */
    int fd;             /* >= 0 exactly while state is not NONE */
    uint32_t channel;
    uint64_t next;      /* counter; goes on across files, so that no two of them share one */
    uint64_t first;     /* of this file; lower ones are an earlier file's, which the logger ends */
    uint64_t written;   /* bytes appended */
    uint64_t credit;    /* bytes that may be appended yet */
    uint64_t told;      /* written, as the logger last heard */
    bool telling;       /* the tick is armed */
    unsigned turns_off; /* of telling, one after another */
    struct event *tick, *timer, *retry, *turn;
    struct buf late;  /* ends that wait for company, and those that found no room; written first */
    struct buf fresh; /* this turn's records that somebody waits for; written behind them */
    struct waits turned; /* who waits for these, in their order */
    struct waits waits;  /* in the order of upto and of deadline */
    bool patient;        /* what finds no credit is held, */
    uint64_t heard;      /* as it is where some came so lately; monotonic ns */
    struct waits held;   /* not written yet; in the order of deadline */
    size_t held_bytes;
    TAILQ_HEAD(, paced) paced;
    size_t n_paced;
    void (*on_ready)(void *arg);
    void *on_ready_arg;
    int (*on_other)(void *arg, struct msg *m);
    void *on_other_arg;
};

static uint64_t monotonic(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000U + (uint64_t)t.tv_nsec;
}

/* ---- waiting for acknowledgements ---- */

static struct waits *wait_list(struct journal *j, enum wait_state s)
{
    switch (s) {
    case WAIT_HELD:
        return &j->held;
    case WAIT_SYNC:
        return &j->waits;
    default:
        return &j->turned;
    }
}

static void wait_enter(struct journal_wait *w, enum wait_state s)
{
    w->state = s;
    TAILQ_INSERT_TAIL(wait_list(w->journal, s), w, link);
}

static void wait_remove(struct journal_wait *w)
{
    struct journal *j = w->journal;
    TAILQ_REMOVE(wait_list(j, w->state), w, link);
    if (w->state != WAIT_HELD)
        return;
    j->held_bytes -= w->n;
    free(w->bytes);
    w->bytes = NULL;
}

/* The callbacks may append, cancel others, but not free the journal under us: journal_free from
 * inside one is the caller's error. */
static void acknowledge(struct journal *j, uint64_t upto)
{
    struct journal_wait *w;
    while ((w = TAILQ_FIRST(&j->waits)) != NULL && w->upto <= upto) {
        wait_remove(w);
        w->fn(w->arg, true);
        free(w);
    }
}

static struct journal_wait *earliest(struct journal *j)
{
    struct journal_wait *a = TAILQ_FIRST(&j->waits), *b = TAILQ_FIRST(&j->held);
    return a == NULL || (b && b->deadline < a->deadline) ? b : a;
}

static void arm_timer(struct journal *j)
{
    struct journal_wait *w = earliest(j);
    if (w == NULL) {
        event_del(j->timer);
        return;
    }
    uint64_t now = monotonic(), left = w->deadline > now ? w->deadline - now : 0;
    struct timeval t = {(time_t)(left / 1000000000U), (suseconds_t)(left % 1000000000U / 1000)};
    event_add(j->timer, &t);
}

/* Nobody goes on with what was admitted here, and it may be on disk all the same: its end. */
static void abort_admitted(const struct journal_wait *w, const char *code)
{
    struct record end;
    if (!w->admitted)
        return;
    record_init(&end, RECORD_ABORTED, w->counter);
    record_put_str(&end, RF_CODE, code);
    journal_note(w->journal, &end); /* if this fails, the logger ends the id with the channel */
}

static void on_timer(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
    struct journal *j = arg;
    struct journal_wait *w;
    uint64_t now = monotonic();
    while ((w = earliest(j)) != NULL && w->deadline <= now) {
        bool written = w->state == WAIT_SYNC;
        wait_remove(w);
        if (written)
            abort_admitted(w, "not_acknowledged");
        w->fn(w->arg, false);
        free(w);
    }
    arm_timer(j);
}

/* ---- the channel to the logger ---- */

static void send_count(struct journal *j, uint16_t type, uint64_t count)
{
    struct msg m;
    msg_init(&m, type);
    msg_put_u64(&m, count);
    ipc_send(j->logger, &m); /* a failure closes the channel from the loop */
}

static int write_late(struct journal *j);
static void write_held(struct journal *j);
static void tell_soon(struct journal *j);

/* A busy writer, and nobody waits for what the logger would say. */
static bool put_off(struct journal *j)
{
    uint64_t untold = j->written - j->told;
    bool off = !j->synced && untold >= BUSY_BYTES && untold < TELL_BYTES &&
               TAILQ_EMPTY(&j->waits) && TAILQ_EMPTY(&j->held) && j->turns_off + 1 < BUSY_TURNS;
    j->turns_off = off ? j->turns_off + 1 : 0;
    return off;
}

/* Appends are told together: of one turn of the loop where somebody waits for the acknowledgement,
 * else of TELL_MS, or of BUSY_TURNS of them. */
static void on_tick(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
    struct journal *j = arg;
    (void)write_late(j);
    buf_shrink(&j->late);
    buf_shrink(&j->fresh);
    j->telling = false;
    if (j->state == JOURNAL_NONE || j->told == j->written)
        return;
    if (put_off(j)) {
        tell_soon(j);
        return;
    }
    j->told = j->written;
    /* of what this very call has written somebody may wait in `turned` yet */
    bool awaited = !TAILQ_EMPTY(&j->waits) || (j->synced && !TAILQ_EMPTY(&j->turned));
    send_count(j, awaited ? W_SYNC : W_TICK, j->written);
}

static void tell_soon(struct journal *j)
{
    static const struct timeval later = {0, TELL_MS * 1000};
    if (j->synced || j->written - j->told >= TELL_BYTES)
        event_active(j->tick, EV_TIMEOUT, 0);
    else if (!j->telling)
        event_add(j->tick, &later);
    j->telling = true;
}

static void forget_paced(struct journal *j, struct paced *p)
{
    TAILQ_REMOVE(&j->paced, p, link);
    j->n_paced--;
    free(p);
}

static void refuse_all(struct waits *from)
{
    struct journal_wait *w;
    while ((w = TAILQ_FIRST(from)) != NULL) {
        wait_remove(w);
        w->fn(w->arg, false);
        free(w);
    }
}

void journal_leave(struct journal *j)
{
    if (j == NULL)
        return;
    buf_clear(&j->fresh); /* nobody goes on with these */
    (void)write_late(j);
}

static void close_file(struct journal *j)
{
    journal_leave(j);
    buf_free(&j->fresh);
    if (j->fd >= 0)
        close(j->fd);
    j->fd = -1;
    j->state = JOURNAL_NONE;
    j->credit = j->written = j->told = 0;
    j->patient = false;
    j->heard = 0;
    j->turns_off = 0;
    while (!TAILQ_EMPTY(&j->paced))
        forget_paced(j, TAILQ_FIRST(&j->paced));
    buf_free(&j->late);
    event_del(j->retry);
    event_del(j->turn);
    refuse_all(&j->waits);
    refuse_all(&j->turned);
    refuse_all(&j->held);
    arm_timer(j);
}

static void detach(struct journal *j)
{
    ipc_free(j->logger);
    j->logger = NULL;
    close_file(j);
}

static void on_closed(struct ipc *ch UNUSED, const char *why UNUSED, void *arg)
{
    detach(arg);
    peer_lost(((struct journal *)arg)->parent, ((struct journal *)arg)->number);
}

static int on_journal(struct journal *j, struct msg *m)
{
    uint32_t channel;
    uint64_t credit, next;
    int fd;
    if ((msg_get_u32(m, &channel) | msg_get_u64(m, &credit) | msg_get_u64(m, &next)) < 0 ||
        j->state != JOURNAL_NONE || next == 0 || msg_get_fd(m, &fd) < 0)
        return -1;
    int flags = fcntl(fd, F_GETFL);
    if (msg_end(m) < 0 || flags < 0 || (flags & O_APPEND) == 0 || (flags & O_ACCMODE) != O_WRONLY) {
        close(fd);
        return -1;
    }
    struct file_look look;
    j->fd = fd;
    j->named = file_look(fd, &look) == 0 && !look.removed;
    j->channel = channel;
    j->credit = credit;
    if (j->next < next)
        j->next = next;
    j->first = j->next;
    j->state = JOURNAL_OPEN;
    if (j->on_ready)
        j->on_ready(j->on_ready_arg);
    return 0;
}

static struct paced *find_paced(const struct journal *j, struct slice sandbox)
{
    struct paced *p;
    TAILQ_FOREACH(p, &j->paced, link)
    if (slice_eq_str(sandbox, p->sandbox))
        return p;
    return NULL;
}

static int on_pace(struct journal *j, struct msg *m)
{
    uint8_t on;
    char sandbox[RENDER_NAME_MAX + 1];
    if ((msg_get_u8(m, &on) | msg_get_str(m, sandbox, sizeof sandbox) | msg_end(m)) < 0 || on > 1 ||
        j->state == JOURNAL_NONE)
        return -1;
    struct paced *p = find_paced(j, slice_str(sandbox));
    if (sandbox[0] == 0) {
        j->patient = on;
    } else if (on && p == NULL) {
        if (j->n_paced == PACED_MAX || (p = calloc(1, sizeof *p)) == NULL)
            return -1;
        memcpy(p->sandbox, sandbox, sizeof sandbox);
        TAILQ_INSERT_TAIL(&j->paced, p, link);
        j->n_paced++;
    } else if (!on && p) {
        forget_paced(j, p);
        write_held(j);
    }
    return 0;
}

static int on_message(struct ipc *ch UNUSED, struct msg *m, void *arg)
{
    struct journal *j = arg;
    uint64_t count;
    if (m->type == W_JOURNAL)
        return on_journal(j, m);
    if (m->type == W_PACE)
        return on_pace(j, m);
    if (m->type == W_WATCHED || m->type == W_FLEET_KNOWN)
        return j->on_other ? j->on_other(j->on_other_arg, m) : -1;
    if ((msg_get_u64(m, &count) | msg_end(m)) < 0 || j->state == JOURNAL_NONE)
        return -1;
    switch (m->type) {
    case W_CREDIT:
        if (__builtin_add_overflow(j->credit, count, &j->credit))
            return -1;
        j->heard = monotonic();
        (void)write_late(j);
        write_held(j);
        return 0;
    case W_SYNCED:
        if (count > j->written)
            return -1;
        acknowledge(j, count);
        arm_timer(j);
        return 0;
    case W_REPAIR:
        if (j->state != JOURNAL_TORN || count != j->written)
            return -1;
        j->state = JOURNAL_OPEN;
        (void)write_late(j);
        return 0;
    default:
        return -1;
    }
}

void journal_lost_to(struct journal *j, struct ipc *parent)
{
    j->parent = parent;
}

void journal_attach(struct journal *j, int logger_fd, uint32_t number)
{
    j->number = number;
    detach(j);
    j->logger = ipc_new(j->base, logger_fd, on_message, on_closed, j);
}

/* ---- appending ---- */

static size_t record_size(const unsigned char *p)
{
    return 4 + ((size_t)p[0] << 24 | (size_t)p[1] << 16 | (size_t)p[2] << 8 | p[3]);
}

/* How many of these bytes are whole records that end within `most`. */
static size_t whole_records(const unsigned char *p, size_t n, uint64_t most)
{
    size_t at = 0;
    while (at < n && at + record_size(p + at) <= most)
        at += record_size(p + at);
    return at;
}

/* Somebody removed it, with the log: what is written there is nowhere. The logger finds out, too,
 * and begins another. */
static bool is_removed(const struct journal *j)
{
    struct file_look look;
    return j->named && file_look(j->fd, &look) == 0 && look.removed;
}

/* Whole records with one write(2), as many as there is credit for; -> the bytes of those that are
 * on record. What is in the file beyond them is cut off by the logger before anything else is
 * written. */
static size_t write_records(struct journal *j, const unsigned char *bytes, size_t n)
{
    ssize_t w;
    n = whole_records(bytes, n, j->credit);
    if (j->state != JOURNAL_OPEN || n == 0 || is_removed(j))
        return 0;
    do
        w = write(j->fd, bytes, n);
    while (w < 0 && errno == EINTR);
    if (w <= 0)
        return 0;
    size_t whole = whole_records(bytes, n, (uint64_t)w);
    j->credit -= whole;
    j->written += whole;
    if (whole < (size_t)w) {
        j->state = JOURNAL_TORN;
        send_count(j, W_REPAIR, j->written);
    }
    if (whole)
        tell_soon(j);
    return whole;
}

/* What this turn's records are now, of which so many bytes went behind the ends. */
static void settle_fresh(struct journal *j, size_t whole)
{
    struct journal_wait *w;
    TAILQ_FOREACH(w, &j->turned, link)
    if (w->state == WAIT_FRESH) {
        w->state = w->upto <= whole ? WAIT_WRITTEN : WAIT_REFUSED;
        w->upto += j->written - whole;
    }
}

/* The ends that wait and this turn's records, in one write. 0 when no end is left. While some are,
 * nothing new is admitted: what was to be is refused. */
static int write_late(struct journal *j)
{
    size_t ends = buf_len(&j->late), fresh = buf_len(&j->fresh);
    if (ends + fresh == 0)
        return 0;
    bool joined = buf_append(&j->late, buf_data(&j->fresh), fresh) == 0;
    size_t whole = write_records(j, buf_data(&j->late), buf_len(&j->late));
    buf_clear(&j->fresh);
    if (joined)
        buf_cut(&j->late, whole > ends ? ends + fresh - whole : fresh);
    if (fresh)
        settle_fresh(j, whole > ends ? whole - ends : 0);
    buf_drain(&j->late, whole);
    if (buf_len(&j->late)) {
        struct timeval t = {0, LATE_RETRY_MS * 1000};
        event_add(j->retry, &t);
        return -1;
    }
    return 0;
}

static void on_retry(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
    write_late(arg);
}

/* With the ends that wait, in one write; 0, or -1 and it is not on record. */
static int write_new(struct journal *j, const unsigned char *bytes, size_t n)
{
    if (buf_append(&j->late, bytes, n) < 0)
        return -1;
    if (write_late(j) == 0)
        return 0;
    buf_cut(&j->late, n); /* it was the last, and not all went */
    return -1;
}

/* An end waits for the next record that somebody waits for, at most until the logger is told: in
 * `synced` until this turn of the loop is over. */
static int write_end(struct journal *j, const unsigned char *bytes, size_t n)
{
    /* an end goes before what was admitted, but takes none of its credit */
    if (buf_len(&j->fresh) && j->credit < buf_len(&j->late) + buf_len(&j->fresh) + n)
        (void)write_late(j);
    bool first = buf_len(&j->late) == 0;
    if (buf_len(&j->late) + n > LATE_MAX)
        (void)write_late(j);
    if (buf_len(&j->late) + n > LATE_MAX || buf_append(&j->late, bytes, n) < 0)
        return -1; /* an end that is lost here is made by the logger when the channel ends */
    if (first && j->synced)
        event_active(j->turn, EV_TIMEOUT, 0);
    else if (first)
        tell_soon(j);
    return 0;
}

/* Its bytes in the file's form; 0: it belongs in no file that there is. */
static size_t encode(const struct journal *j, const struct record *r, uint64_t counter,
                     unsigned char *bytes, size_t size)
{
    if (j->state == JOURNAL_NONE || counter < j->first)
        return 0;
    size_t n = record_encode(r, timestamp_now(), bytes, size);
    for (int i = 0; n && i < 8; i++) /* the caller's record is const: its counter goes in here */
        bytes[13 + i] = (unsigned char)(counter >> (56 - 8 * i));
    return n;
}

static uint64_t counter_of(struct journal *j, const struct record *r)
{
    return r->counter ? r->counter : journal_next(j);
}

void journal_on_other(struct journal *j, int (*fn)(void *arg, struct msg *m), void *arg)
{
    j->on_other = fn;
    j->on_other_arg = arg;
}

int journal_ask_fleet(struct journal *j)
{
    struct msg m;
    if (j->logger == NULL)
        return -1;
    msg_init(&m, W_FLEET_KNOWN_ASK);
    return ipc_send(j->logger, &m);
}

int journal_watch(struct journal *j, bool on)
{
    struct msg m;
    if (j->logger == NULL)
        return -1;
    msg_init(&m, W_WATCH);
    msg_put_u8(&m, on);
    return ipc_send(j->logger, &m);
}

int journal_note(struct journal *j, const struct record *r)
{
    unsigned char bytes[RECORD_MAX + 32];
    bool end = r->kind == RECORD_COMPLETED || r->kind == RECORD_ABORTED;
    size_t n = encode(j, r, counter_of(j, r), bytes, sizeof bytes);
    if (n == 0)
        return -1;
    return end ? write_end(j, bytes, n) : write_new(j, bytes, n);
}

/* ---- records that are waited for ---- */

/* Of a record as it was encoded; it has one only where its writer serves several sandboxes. */
static struct slice sandbox_of(const unsigned char *bytes, size_t n)
{
    struct record_view v;
    const char *why;
    if (record_read(&v, bytes, n, &why) != (ssize_t)n)
        return (struct slice){"", 0};
    return v.field[RF_SANDBOX];
}

/* There is not the credit for it yet. */
static bool starved(const struct journal *j, size_t n)
{
    return j->state == JOURNAL_OPEN && j->credit < buf_len(&j->late) + buf_len(&j->fresh) + n;
}

size_t journal_room(const struct journal *j)
{
    size_t kept = buf_len(&j->late) + buf_len(&j->fresh);
    return j->state == JOURNAL_OPEN && j->credit > kept ? (size_t)j->credit - kept : 0;
}

static bool is_behind(const struct journal *j)
{
    return j->patient || (j->heard && monotonic() - j->heard < HEARD_MS * 1000000ULL);
}

static bool must_hold(const struct journal *j, size_t n, struct slice sandbox)
{
    return (starved(j, n) && is_behind(j)) || (sandbox.n && find_paced(j, sandbox));
}

static bool has_room(const struct journal *j, size_t n, struct slice sandbox)
{
    size_t its = 0;
    const struct journal_wait *w;
    if (j->held_bytes + n > HOLD_BYTES)
        return false;
    TAILQ_FOREACH(w, &j->held, link)
    if (slice_eq(w->sandbox, sandbox))
        its += w->n;
    return its + n <= HOLD_ONE;
}

static int hold(struct journal *j, struct journal_wait *w, const unsigned char *bytes, size_t n)
{
    struct slice sandbox = sandbox_of(bytes, n);
    if (!has_room(j, n, sandbox) || (w->bytes = malloc(n)) == NULL)
        return -1;
    memcpy(w->bytes, bytes, n);
    w->n = n;
    w->sandbox = sandbox_of(w->bytes, n);
    w->deadline = monotonic() + HOLD_SECONDS * 1000000000ULL;
    j->held_bytes += n;
    wait_enter(w, WAIT_HELD);
    arm_timer(j);
    return 0;
}

/* It is written: until the acknowledgement, where there is to be one. */
static void await(struct journal *j, struct journal_wait *w, uint64_t upto)
{
    w->upto = upto;
    w->deadline = monotonic() + ACK_SECONDS * 1000000000ULL;
    wait_enter(w, WAIT_SYNC);
    arm_timer(j);
}

/* Whoever waits for this turn's records hears what became of them. The callbacks may append and
 * cancel: what they append is of the next write. */
static void answer_turn(struct journal *j)
{
    struct journal_wait *w;
    while ((w = TAILQ_FIRST(&j->turned)) != NULL && w->state != WAIT_FRESH) {
        bool ok = w->state == WAIT_WRITTEN;
        wait_remove(w);
        if (ok && j->synced) {
            await(j, w, w->upto);
            continue;
        }
        w->fn(w->arg, ok);
        free(w);
    }
}

static void on_turn(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
    struct journal *j = arg;
    (void)write_late(j);
    answer_turn(j);
}

/* Into this turn's write. 0 or -1. */
static int join_turn(struct journal *j, struct journal_wait *w, const unsigned char *bytes,
                     size_t n)
{
    if (n > buf_room(&j->fresh))
        (void)write_late(j);
    if (buf_append(&j->fresh, bytes, n) < 0)
        return -1;
    w->upto = buf_len(&j->fresh);
    wait_enter(w, WAIT_FRESH);
    event_active(j->turn, EV_TIMEOUT, 0);
    return 0;
}

/* -> whether it is no longer held: it is on record, or never will be. */
static bool release(struct journal *j, struct journal_wait *w)
{
    if (must_hold(j, w->n, w->sandbox))
        return false;
    bool ok = write_new(j, w->bytes, w->n) == 0;
    wait_remove(w);
    if (ok && j->synced) {
        await(j, w, j->written);
        return true;
    }
    w->fn(w->arg, ok);
    free(w);
    return true;
}

/* What need not wait any longer. A callback may append and cancel: begin anew after each. */
static void write_held(struct journal *j)
{
    struct journal_wait *w;
    do
        TAILQ_FOREACH(w, &j->held, link)
    if (release(j, w))
        break;
    while (w)
        ;
    arm_timer(j);
}

struct journal_wait *journal_append(struct journal *j, const struct record *r, journal_done_fn fn,
                                    void *arg)
{
    unsigned char bytes[RECORD_MAX + 32];
    uint64_t counter = counter_of(j, r);
    size_t n = encode(j, r, counter, bytes, sizeof bytes);
    bool named = n && j->n_paced > 0;
    bool held = n && must_hold(j, n, named ? sandbox_of(bytes, n) : (struct slice){"", 0});
    struct journal_wait *w = n ? malloc(sizeof *w) : NULL;
    if (w)
        *w = (struct journal_wait){.journal = j,
                                   .counter = counter,
                                   .admitted = r->kind == RECORD_ADMITTED,
                                   .fn = fn,
                                   .arg = arg};
    if (w && (held ? hold(j, w, bytes, n) : join_turn(j, w, bytes, n)) == 0)
        return w;
    free(w);
    fn(arg, false);
    return NULL;
}

void journal_cancel(struct journal_wait *w, const char *code)
{
    if (w == NULL)
        return;
    if (w->state == WAIT_FRESH)
        (void)write_late(w->journal); /* who asked and left at once is on record all the same */
    bool written = w->state == WAIT_WRITTEN || w->state == WAIT_SYNC;
    wait_remove(w);
    if (written)
        abort_admitted(w, code);
    free(w);
}

/* ---- birth, death, questions ---- */

struct journal *journal_new(struct event_base *base, bool synced)
{
    struct journal *j = calloc(1, sizeof *j);
    if (j == NULL)
        return NULL;
    TAILQ_INIT(&j->waits);
    TAILQ_INIT(&j->held);
    TAILQ_INIT(&j->turned);
    TAILQ_INIT(&j->paced);
    j->base = base;
    j->synced = synced;
    j->fd = -1;
    buf_init(&j->late, LATE_MAX + FRESH_MAX);
    buf_init(&j->fresh, FRESH_MAX);
    j->tick = event_new(base, -1, 0, on_tick, j);
    j->timer = event_new(base, -1, 0, on_timer, j);
    j->retry = event_new(base, -1, 0, on_retry, j);
    j->turn = event_new(base, -1, 0, on_turn, j);
    if (j->tick == NULL || j->timer == NULL || j->retry == NULL || j->turn == NULL) {
        journal_free(j);
        return NULL;
    }
    return j;
}

void journal_free(struct journal *j)
{
    if (j == NULL)
        return;
    struct event *events[] = {j->tick, j->timer, j->retry, j->turn};
    if (j->turn)
        detach(j);
    for (size_t i = 0; i < ARRAY_LEN(events); i++)
        if (events[i])
            event_free(events[i]);
    free(j);
}

bool journal_ready(const struct journal *j)
{
    return j->state == JOURNAL_OPEN;
}

void journal_on_ready(struct journal *j, void (*fn)(void *arg), void *arg)
{
    j->on_ready = fn;
    j->on_ready_arg = arg;
}

uint64_t journal_next(struct journal *j)
{
    return j->state == JOURNAL_NONE ? 0 : j->next++;
}

char *journal_id(const struct journal *j, uint64_t counter, char *buf, size_t size)
{
    char channel[SLICE_U64_TEXT], number[SLICE_U64_TEXT];
    struct slice c = slice_of_u64(j->channel, channel), n = slice_of_u64(counter, number);
    ASSERT(size > c.n + 1 + n.n);
    memcpy(buf, c.p, c.n);
    buf[c.n] = '-';
    memcpy(buf + c.n + 1, n.p, n.n);
    buf[c.n + 1 + n.n] = 0;
    return buf;
}

uint32_t journal_channel(const struct journal *j)
{
    return j->channel;
}
