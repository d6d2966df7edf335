#include "journal.h"

#include "ipc.h"
#include "stamp.h"
#include "wire.h"
#include "peer.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
    ACK_SECONDS = 2,
    LATE_MAX = 256 * 1024,
    LATE_RETRY_MS = 200,
    TELL_MS = 20, /* the record is the write(2); that the logger hears of it can wait so long, */
    TELL_BYTES = 64 * 1024, /* or until there is so much of it */
};

enum journal_state {
    JOURNAL_NONE = 0, /* no file: every append fails */
    JOURNAL_OPEN,
    JOURNAL_TORN, /* a short write; waits until the logger has cut its rest off */
};

struct journal_wait {
    TAILQ_ENTRY(journal_wait) link;
    struct journal *journal;
    uint64_t upto;     /* acknowledged when so many bytes are */
    uint64_t deadline; /* monotonic ns */
    uint64_t counter;
    bool admitted;
    journal_done_fn fn;
    void *arg;
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
    uint64_t next;    /* counter; goes on across files, so that no two of them share one */
    uint64_t first;   /* of this file; lower ones are an earlier file's, which the logger ends */
    uint64_t written; /* bytes appended */
    uint64_t credit;  /* bytes that may be appended yet */
    uint64_t told;    /* written, as the logger last heard */
    bool telling;     /* the tick is armed */
    struct event *tick, *timer, *retry, *turn;
    struct buf late; /* end records of this turn, and those that found no room; written first */
    TAILQ_HEAD(, journal_wait) waits; /* in the order of upto and of deadline */
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

static void wait_remove(struct journal_wait *w)
{
    TAILQ_REMOVE(&w->journal->waits, w, link);
}

/* The callbacks may append, cancel others, but not free the journal under us: journal_free from
 * inside one is the caller's error. */
static void answer_all(struct journal *j, bool ok, uint64_t upto)
{
    struct journal_wait *w;
    while ((w = TAILQ_FIRST(&j->waits)) != NULL && w->upto <= upto) {
        wait_remove(w);
        w->fn(w->arg, ok);
        free(w);
    }
}

static void arm_timer(struct journal *j)
{
    struct journal_wait *w = TAILQ_FIRST(&j->waits);
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
    while ((w = TAILQ_FIRST(&j->waits)) != NULL && w->deadline <= now) {
        wait_remove(w);
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

/* Appends are told together: of one turn of the loop where somebody waits for the acknowledgement,
 * else of TELL_MS. */
static void on_tick(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
    struct journal *j = arg;
    j->telling = false;
    if (j->state == JOURNAL_NONE || j->told == j->written)
        return;
    j->told = j->written;
    send_count(j, TAILQ_EMPTY(&j->waits) ? W_TICK : W_SYNC, j->written);
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

static int write_late(struct journal *j);

static void close_file(struct journal *j)
{
    (void)write_late(j);
    if (j->fd >= 0)
        close(j->fd);
    j->fd = -1;
    j->state = JOURNAL_NONE;
    j->credit = j->written = j->told = 0;
    buf_free(&j->late);
    event_del(j->retry);
    event_del(j->turn);
    answer_all(j, false, UINT64_MAX);
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
    struct stat st;
    j->fd = fd;
    j->named = fstat(fd, &st) == 0 && st.st_nlink > 0;
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

static int on_message(struct ipc *ch UNUSED, struct msg *m, void *arg)
{
    struct journal *j = arg;
    uint64_t count;
    if (m->type == W_JOURNAL)
        return on_journal(j, m);
    if (m->type == W_WATCHED)
        return j->on_other ? j->on_other(j->on_other_arg, m) : -1;
    if ((msg_get_u64(m, &count) | msg_end(m)) < 0 || j->state == JOURNAL_NONE)
        return -1;
    switch (m->type) {
    case W_CREDIT:
        if (__builtin_add_overflow(j->credit, count, &j->credit))
            return -1;
        (void)write_late(j);
        return 0;
    case W_SYNCED:
        if (count > j->written)
            return -1;
        answer_all(j, true, count);
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
    struct stat st;
    return j->named && fstat(j->fd, &st) == 0 && st.st_nlink == 0;
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

/* 0 when none is left. While some are, nothing new is admitted. */
static int write_late(struct journal *j)
{
    size_t left = buf_len(&j->late);
    if (left == 0)
        return 0;
    buf_drain(&j->late, write_records(j, buf_data(&j->late), left));
    if (buf_len(&j->late)) {
        struct timeval t = {0, LATE_RETRY_MS * 1000};
        event_add(j->retry, &t);
        return -1;
    }
    buf_shrink(&j->late);
    return 0;
}

static void on_retry(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
    write_late(arg);
}

/* With the ends that wait, in one write; 0, or -1 and it is not on record. */
static int write_new(struct journal *j, const unsigned char *bytes, size_t n)
{
    if (buf_len(&j->late) == 0)
        return write_records(j, bytes, n) == n ? 0 : -1;
    if (buf_append(&j->late, bytes, n) < 0)
        return -1;
    if (write_late(j) == 0)
        return 0;
    buf_cut(&j->late, n); /* it was the last, and not all went */
    return -1;
}

/* An end waits for the next record that somebody waits for, at most until this turn of the loop is
 * over. */
static int write_end(struct journal *j, const unsigned char *bytes, size_t n)
{
    bool first = buf_len(&j->late) == 0;
    if (n > buf_room(&j->late))
        (void)write_late(j);
    if (buf_append(&j->late, bytes, n) < 0)
        return -1; /* an end that is lost here is made by the logger when the channel ends */
    if (first)
        event_active(j->turn, EV_TIMEOUT, 0);
    return 0;
}

static int append(struct journal *j, const struct record *r, uint64_t counter, bool end)
{
    unsigned char bytes[RECORD_MAX + 32];
    if (j->state == JOURNAL_NONE || counter < j->first)
        return -1;
    size_t n = record_encode(r, stamp_now(), bytes, sizeof bytes);
    if (n == 0)
        return -1;
    for (int i = 0; i < 8; i++) /* the caller's record is const: its counter goes in here */
        bytes[13 + i] = (unsigned char)(counter >> (56 - 8 * i));
    return end ? write_end(j, bytes, n) : write_new(j, bytes, n);
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
    bool end = r->kind == RECORD_COMPLETED || r->kind == RECORD_ABORTED;
    return append(j, r, counter_of(j, r), end);
}

struct journal_wait *journal_append(struct journal *j, const struct record *r, journal_done_fn fn,
                                    void *arg)
{
    uint64_t counter = counter_of(j, r);
    bool waits = j->synced;
    struct journal_wait *w = waits ? calloc(1, sizeof *w) : NULL;
    if ((waits && w == NULL) || append(j, r, counter, false) < 0) {
        free(w);
        fn(arg, false);
        return NULL;
    }
    if (!waits) {
        fn(arg, true);
        return NULL;
    }
    *w = (struct journal_wait){.journal = j,
                               .upto = j->written,
                               .deadline = monotonic() + ACK_SECONDS * 1000000000ULL,
                               .counter = counter,
                               .admitted = r->kind == RECORD_ADMITTED,
                               .fn = fn,
                               .arg = arg};
    TAILQ_INSERT_TAIL(&j->waits, w, link);
    if (TAILQ_FIRST(&j->waits) == w)
        arm_timer(j);
    return w;
}

void journal_cancel(struct journal_wait *w)
{
    if (w == NULL)
        return;
    wait_remove(w);
    abort_admitted(w, "cancelled");
    free(w);
}

/* ---- birth, death, questions ---- */

struct journal *journal_new(struct event_base *base, bool synced)
{
    struct journal *j = calloc(1, sizeof *j);
    if (j == NULL)
        return NULL;
    TAILQ_INIT(&j->waits);
    j->base = base;
    j->synced = synced;
    j->fd = -1;
    buf_init(&j->late, LATE_MAX);
    j->tick = event_new(base, -1, 0, on_tick, j);
    j->timer = event_new(base, -1, 0, on_timer, j);
    j->retry = event_new(base, -1, 0, on_retry, j);
    j->turn = event_new(base, -1, 0, on_retry, j);
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
    snprintf(buf, size, "%u-%llu", (unsigned)j->channel, (unsigned long long)counter);
    return buf;
}

uint32_t journal_channel(const struct journal *j)
{
    return j->channel;
}
