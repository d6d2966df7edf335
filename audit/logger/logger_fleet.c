/* This host among those of its fleet: reads what the others say of their logs, remembers it, says
 * how far its own goes and what it has seen, each few seconds, by the fleet's role. What the
 * database has is looked through again, a page at a time: whether all of it is still there, as it
 * was. Nothing that comes from there is believed but for its host's signature. */
#include "logger_internal.h"

#include "fleet_file.h"
#include "peer.h"
#include "timestamp.h"
#include "wire.h"
#include "witness_problem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    EVERY_MAX = 3600,
    ANSWER_MS = 30000,
    TICK_MS = 1000,
    PAGES_MAX = 32,
    PATROLLED = FLEET_KEEP - 64,
    KNOWN_PROBLEMS = 8, /* of a host, for people */
};

enum fleet_state {
    FLEET_RESTING = 0,
    FLEET_READING,    /* what is new */
    FLEET_PATROLLING, /* what was there */
};

struct logger_fleet {
    struct logger *logger;
    struct ipc *role; /* NULL: it is not there */
    uint32_t channel;
    struct witness *witness;
    struct fleet_file *file;
    struct fleet_head head; /* the line in hand */
    struct buf batch;       /* lines of the answer that comes, for the file */
    char name[FLEET_LINE_NAME + 1];
    size_t self;
    unsigned every;
    enum fleet_state state;
    uint32_t ask;
    uint64_t due_ms, begun_ms, asked_ms; /* asked_ms: of this round the latest question */
    unsigned pages; /* of this round, and of the host that is looked through: */
    unsigned patrolled;
    size_t rows, news;    /* of the answer that comes */
    struct buf own;       /* our latest line */
    uint64_t told_ms;     /* when the controller was told last what is known */
    uint64_t unread;      /* its number, until it was read in the database; 0: it was */
    uint64_t unseen;      /* another host's word of a later one was taken up to this number */
    bool listed;          /* our key is the one that the fleet knows */
    bool anew;            /* our log is not the one of our latest line */
    bool failing;         /* the file cannot be written: said once */
    size_t patrol;        /* the host whose lines are looked through, */
    uint64_t after, upto; /* behind this number, and up to this one */
};

/* ---- what is found ---- */

static bool doubted(const struct fleet_head *h, const struct fleet_doubt *d)
{
    for (size_t i = 0; h && i < h->n_doubts; i++)
        if (h->doubt[i].number == d->number && h->doubt[i].kind == d->kind &&
            strcmp(h->doubt[i].host, d->host) == 0)
            return true;
    return false;
}

/* What this host doubts now, and did not in its line before, goes into the log, too. */
static void record_doubts(struct logger_fleet *f, const struct fleet_head *before)
{
    char detail[160];
    for (size_t i = 0; i < f->head.n_doubts; i++) {
        const struct fleet_doubt *d = &f->head.doubt[i];
        if (doubted(before, d))
            continue;
        snprintf(detail, sizeof detail, "head %llu of %s is %s", (unsigned long long)d->number,
                 d->host, fleet_doubt_word(d->kind));
        logger_event(f->logger, NULL, "fleet_doubt", detail, 0);
        logger_wake(f->logger);
    }
}

static void begin_anew(struct logger_fleet *f, const char *why)
{
    if (f->anew)
        return;
    f->anew = true;
    logger_event(f->logger, NULL, "fleet_rolled_back", why, 0);
    logger_wake(f->logger);
    logger_warn(f->logger, "%s: this log was put back to an older state, or replaced", why);
}

static bool knows(const struct logger_fleet *f, size_t host, uint64_t number)
{
    size_t n;
    const struct witness_known *k = witness_known(f->witness, host, &n);
    while (n > 0 && k[n - 1].number > number)
        n--;
    return n > 0 && k[n - 1].number == number;
}

/* Those between, which an answer by number has left out. */
static void miss(struct logger_fleet *f, uint64_t from, uint64_t to)
{
    size_t n;
    const struct witness_known *k = witness_known(f->witness, f->patrol, &n);
    uint64_t latest = n ? k[n - 1].number : 0;
    for (size_t i = 0; i < n; i++)
        if (k[i].number > from && k[i].number < to && k[i].number + PATROLLED > latest &&
            !(f->patrol == f->self && k[i].number == f->unread))
            witness_doubt(f->witness, f->patrol, k[i].number, DOUBT_MISSING);
}

/* ---- rows ---- */

static void keep(struct logger_fleet *f, struct slice line)
{
    size_t before = buf_len(&f->batch);
    if (buf_append_slice(&f->batch, line) < 0 || buf_append(&f->batch, "\n", 1) < 0)
        buf_cut(&f->batch, buf_len(&f->batch) - before);
}

/* What the database has of ourselves; said: the number of our latest line before. An older one that
 * the file has no more was let go when the fleet had more hosts, each with less room. */
static void own_row(struct logger_fleet *f, uint64_t number, enum witness_taken taken,
                    uint64_t said)
{
    if (number == f->unread)
        f->unread = 0; /* it is there, or another one is in its place */
    if ((taken == WITNESS_NEW && number > said) || taken == WITNESS_FORKED)
        begin_anew(f, "the fleet has a head of this host that its directory does not");
}

static void take_row(struct logger_fleet *f, size_t host, uint64_t number, struct slice line)
{
    struct witness *w = f->witness;
    const struct fleet_head *own = witness_latest(w, f->self);
    uint64_t said = own ? own->number : 0;
    bool was = knows(f, host, number);
    enum witness_taken taken = witness_take(w, line, true, &f->head);
    bool is_line = taken == WITNESS_NEW || taken == WITNESS_KNOWN || taken == WITNESS_FORKED;
    bool right =
        is_line && f->head.number == number && strcmp(f->head.host, witness_name(w, host)) == 0;
    if (taken == WITNESS_NEW || taken == WITNESS_FORKED) {
        keep(f, line);
        f->news++;
    }
    if (!right)
        witness_doubt(w, host, number, was ? DOUBT_CHANGED : DOUBT_UNSIGNED);
    else
        witness_undoubt(w, host, number);
    if (host == f->self)
        own_row(f, number, right ? taken : WITNESS_KNOWN, said);
    if (f->state == FLEET_PATROLLING && host == f->patrol && number > f->after) {
        miss(f, f->after, number);
        f->after = number;
    }
}

/* "HOST NUMBER LINE" */
static int on_row(struct logger_fleet *f, struct msg *m)
{
    char name[FLEET_LINE_NAME + 1];
    uint64_t number;
    uint32_t ask;
    struct slice row;
    if (msg_get_u32(m, &ask) < 0 || msg_get_slice(m, FLEET_LINE_MAX + 128, &row) < 0 ||
        msg_end(m) < 0 || (ask == f->ask && (f->state == FLEET_RESTING || ++f->rows > FLEET_PAGE)))
        return -1;
    ssize_t first = slice_find(row, ' ');
    if (ask != f->ask || first <= 0 || first > FLEET_LINE_NAME)
        return 0;
    memcpy(name, row.p, (size_t)first);
    name[first] = 0;
    row = (struct slice){row.p + first + 1, row.n - (size_t)first - 1};
    ssize_t second = slice_find(row, ' ');
    size_t host = witness_find(f->witness, name);
    if (second < 0 || host == SIZE_MAX ||
        slice_u64((struct slice){row.p, (size_t)second}, INT64_MAX, &number) < 0 || number == 0)
        return 0;
    take_row(f, host, number, (struct slice){row.p + second + 1, row.n - (size_t)second - 1});
    return 0;
}

/* ---- asking ---- */

static void put_after(const struct logger_fleet *f, struct msg *m, size_t host)
{
    const struct fleet_head *latest = witness_latest(f->witness, host);
    uint64_t after = latest ? latest->number : 0;
    if (f->state == FLEET_PATROLLING)
        after = f->after;
    else if (host == f->self && f->unread)
        after = f->unread - 1;
    msg_put_str(m, witness_name(f->witness, host));
    msg_put_u64(m, after);
}

static void ask(struct logger_fleet *f, enum fleet_state state)
{
    struct msg m;
    f->state = state;
    f->rows = f->news = 0;
    f->asked_ms = logger_ms();
    msg_init(&m, W_FLEET_HEADS_ASK);
    msg_put_u32(&m, ++f->ask);
    size_t n = state == FLEET_PATROLLING ? 1 : witness_hosts(f->witness);
    msg_put_u32(&m, (uint32_t)n);
    for (size_t i = 0; i < n; i++)
        put_after(f, &m, state == FLEET_PATROLLING ? f->patrol : i);
    (void)ipc_send(f->role, &m);
}

static void begin_patrol(struct logger_fleet *f)
{
    const struct fleet_head *latest = witness_latest(f->witness, f->patrol);
    if (f->after == 0)
        f->upto = latest ? latest->number : 0;
    ask(f, FLEET_PATROLLING);
}

/* A database that has no end of lines of one host is left to itself. */
static void end_patrol(struct logger_fleet *f)
{
    if (f->rows == FLEET_PAGE && ++f->patrolled < PAGES_MAX)
        return; /* there is more of this host's */
    if (f->rows < FLEET_PAGE) {
        miss(f, f->after, f->upto + 1);
        witness_settle(f->witness, f->patrol);
    }
    f->after = 0;
    f->patrolled = 0;
    f->patrol = (f->patrol + 1) % witness_hosts(f->witness);
}

static void rest(struct logger_fleet *f)
{
    f->state = FLEET_RESTING;
    f->due_ms = f->begun_ms + f->every * UINT64_C(1000) - TICK_MS / 2;
}

/* ---- what we say ---- */

static void put_own(struct logger_fleet *f)
{
    struct msg m;
    struct slice line = buf_slice(&f->own);
    msg_init(&m, W_FLEET_HEADS_PUT);
    msg_put_str(&m, f->name);
    msg_put_u64(&m, f->unread);
    msg_put_slice(&m, line);
    (void)ipc_send(f->role, &m);
}

static int add(struct logger_fleet *f, struct slice lines)
{
    struct err err = {0};
    int r = fleet_file_add(f->file, lines, &err);
    if (r == 0)
        r = fleet_file_thin(f->file, f->witness, FLEET_FILE_LONG, &err);
    if (r < 0 && !f->failing)
        logger_warn(f->logger, "%s; this host says nothing to the fleet until it can", err.text);
    f->failing = r < 0;
    return r;
}

/* What was read is known, and asked for no more: it waits here until it is in the file. */
static bool store(struct logger_fleet *f)
{
    if (add(f, buf_slice(&f->batch)) < 0)
        return false;
    buf_clear(&f->batch);
    return true;
}

/* Our next line: on disk here before anybody else hears of it, so that none is ever made twice. */
static int make(struct logger_fleet *f)
{
    const struct fleet_head *latest = witness_latest(f->witness, f->self);
    struct fleet_head *h = &f->head;
    struct head tip;
    memset(h, 0, sizeof *h);
    if (!log_file_tip(f->logger->log, &tip) || log_file_sync(f->logger->log, NULL) < 0)
        return -1;
    memcpy(h->host, f->name, sizeof h->host);
    h->number = latest ? latest->number + 1 : 1;
    h->anew = f->anew;
    h->log = tip.tip;
    timestamp_text(timestamp_now(), h->time, sizeof h->time);
    witness_say(f->witness, h);
    record_doubts(f, latest);
    buf_clear(&f->own);
    if (fleet_head_make(h, f->logger->key, &f->own) < 0 || buf_append(&f->own, "\n", 1) < 0 ||
        add(f, buf_slice(&f->own)) < 0)
        return -1;
    buf_cut(&f->own, 1);
    (void)witness_take(f->witness, buf_slice(&f->own), false, h);
    f->unread = h->number;
    f->anew = false;
    return 0;
}

/* Once: it is that host's word alone, and may be a lie. */
static void see_own_fault(void *arg, size_t host UNUSED, const struct witness_fault *fault)
{
    struct logger_fleet *f = arg;
    char why[160];
    if (fault->kind != FAULT_UNSEEN || fault->number <= f->unseen)
        return;
    f->unseen = fault->number;
    snprintf(why, sizeof why, "%s has seen head %llu of this host, which its directory has not",
             fault->by, (unsigned long long)fault->number);
    begin_anew(f, why);
}

static void say(struct logger_fleet *f)
{
    rest(f);
    witness_faults(f->witness, f->self, see_own_fault, f);
    if (f->listed && (f->unread || make(f) == 0))
        put_own(f);
}

static int on_end(struct logger_fleet *f, struct msg *m)
{
    uint32_t number;
    uint8_t ok;
    if (msg_get_u32(m, &number) < 0 || msg_get_u8(m, &ok) < 0 || msg_end(m) < 0 || ok > 1)
        return -1;
    if (number != f->ask)
        return 0;
    if (f->state == FLEET_RESTING)
        return -1;
    enum fleet_state was = f->state;
    bool more = f->rows == FLEET_PAGE, stored = store(f);
    bool behind = was == FLEET_READING && more && f->news > 0;
    if (!ok || !stored || (behind && ++f->pages == PAGES_MAX))
        rest(f); /* nothing is said of others before all is known that they said */
    else if (behind)
        ask(f, FLEET_READING);
    else if (was == FLEET_READING && !more)
        begin_patrol(f);
    else {
        if (was == FLEET_PATROLLING)
            end_patrol(f);
        say(f);
    }
    return 0;
}

/* ---- the channel ---- */

static int on_role(struct ipc *ch UNUSED, struct msg *m, void *arg)
{
    switch (m->type) {
    case W_FLEET_HEADS_ROW:
        return on_row(arg, m);
    case W_FLEET_HEADS_END:
        return on_end(arg, m);
    default:
        return -1;
    }
}

static void drop(struct logger_fleet *f)
{
    ipc_free(f->role);
    f->role = NULL;
    f->state = FLEET_RESTING;
    f->ask++;
}

static void on_role_closed(struct ipc *ch UNUSED, const char *why UNUSED, void *arg)
{
    struct logger_fleet *f = arg;
    drop(f);
    peer_lost(f->logger->control, f->channel);
}

int logger_fleet_attach(struct logger *l, int fd, uint32_t channel)
{
    struct logger_fleet *f = l->fleet;
    if (f == NULL) {
        close(fd);
        return -1;
    }
    drop(f);
    f->channel = channel;
    f->due_ms = 0;
    f->role = ipc_new(l->base, fd, on_role, on_role_closed, f);
    return 0;
}

void logger_fleet_tick(struct logger *l)
{
    struct logger_fleet *f = l->fleet;
    uint64_t now = logger_ms();
    if (f == NULL || f->role == NULL || l->failing || l->stopping)
        return;
    if (f->state == FLEET_RESTING ? now >= f->due_ms : now - f->asked_ms >= ANSWER_MS) {
        f->begun_ms = now;
        f->pages = 0;
        if (store(f)) {
            ask(f, FLEET_READING);
        } else {
            f->ask++; /* what is answered still counts no more */
            rest(f);
        }
    }
}

/* ---- what is known, for people ---- */

struct said {
    struct msg *m; /* NULL: they are counted */
    uint32_t n;
};

static void on_problem(void *arg, size_t host UNUSED, const char *what, const char *text)
{
    struct said *s = arg;
    if (s->n++ >= KNOWN_PROBLEMS || s->m == NULL)
        return;
    msg_put_str(s->m, what);
    msg_put_str(s->m, text);
}

static void tell_host(const struct logger_fleet *f, size_t host, struct ipc *to)
{
    const struct fleet_head *latest = witness_latest(f->witness, host);
    struct said count = {NULL, 0};
    struct msg m;
    msg_init(&m, W_FLEET_KNOWN);
    msg_put_str(&m, witness_name(f->witness, host));
    msg_put_u64(&m, latest ? latest->number : 0);
    msg_put_u64(&m, latest ? latest->log.seq : 0);
    msg_put_u64(&m, witness_heard(f->witness, host));
    witness_problems(f->witness, host, on_problem, &count);
    msg_put_u32(&m, count.n < KNOWN_PROBLEMS ? count.n : KNOWN_PROBLEMS);
    struct said all = {&m, 0};
    witness_problems(f->witness, host, on_problem, &all);
    (void)ipc_send(to, &m);
}

void logger_fleet_tell(const struct logger *l, struct ipc *to)
{
    struct logger_fleet *f = l->fleet;
    uint64_t now = logger_ms();
    if (f == NULL || ipc_queued(to) > SUBSCRIBERS_BEHIND)
        return; /* it does not read */
    if (f->told_ms && now - f->told_ms < LOGGER_TICK_MS)
        return; /* each answer looks through all heads: who asks so often is a conquered one */
    f->told_ms = now;
    for (size_t i = 0; i < witness_hosts(f->witness); i++)
        tell_host(f, i, to);
}

/* ---- birth and death ---- */

int logger_fleet_take(struct logger *l, struct msg *m)
{
    char host[FLEET_LINE_NAME + 1], name[FLEET_LINE_NAME + 1];
    uint32_t every, n;
    struct slice raw;
    struct err err = {0};
    if (msg_get_str(m, host, sizeof host) < 0 || msg_get_u32(m, &every) < 0 ||
        msg_get_u32(m, &n) < 0 || every > EVERY_MAX || n > FLEET_LINE_HOSTS ||
        (host[0] != 0) != (n > 0) || (n > 0 && every == 0))
        return -1;
    if (n == 0)
        return 0;
    struct logger_fleet *f = l->fleet = calloc(1, sizeof *f);
    if (f == NULL || (f->witness = witness_new()) == NULL)
        return -1;
    f->logger = l;
    f->every = every;
    memcpy(f->name, host, sizeof f->name);
    buf_init(&f->batch, FLEET_PAGE * (FLEET_LINE_MAX + 1));
    buf_init(&f->own, FLEET_LINE_MAX + 2);
    for (uint32_t i = 0; i < n; i++)
        if (msg_get_str(m, name, sizeof name) < 0 || msg_get_slice(m, CHAIN_HASH, &raw) < 0 ||
            raw.n != CHAIN_HASH ||
            witness_add(f->witness, name, (const unsigned char *)raw.p, &err) < 0)
            return -1;
    f->self = witness_find(f->witness, host);
    return f->self == SIZE_MAX ? -1 : 0;
}

/* Our own latest one may never have come to the database. */
static void on_kept(void *arg, uint64_t number UNUSED, struct slice line, enum witness_taken taken,
                    const struct fleet_head *head)
{
    struct logger_fleet *f = arg;
    if (taken == WITNESS_MALFORMED || taken == WITNESS_STRANGER ||
        strcmp(head->host, f->name) != 0 || head->number < f->unread)
        return;
    f->unread = head->number;
    buf_clear(&f->own);
    if (buf_append_slice(&f->own, line) < 0)
        f->unread = 0;
}

static void check_own(struct logger_fleet *f)
{
    const struct fleet_head *own = witness_latest(f->witness, f->self);
    struct head tip;
    if (own == NULL)
        return;
    bool any = log_file_tip(f->logger->log, &tip);
    if (!any || tip.tip.seq < own->log.seq ||
        (tip.tip.seq == own->log.seq && memcmp(tip.tip.hash, own->log.hash, CHAIN_HASH) != 0))
        begin_anew(f, "the log does not hold what this host said to the fleet");
}

int logger_fleet_open(struct logger *l, struct err *err)
{
    struct logger_fleet *f = l->fleet;
    unsigned char ours[CHAIN_HASH], listed[CHAIN_HASH];
    char hex[CHAIN_HEX];
    if (f == NULL)
        return 0;
    f->file = fleet_file_open(l->dir, f->witness, on_kept, f, err);
    if (f->file == NULL)
        return -1;
    if (signing_key_raw(l->key, ours) < 0 ||
        signing_key_raw(witness_key(f->witness, f->self), listed) < 0)
        return err_set(err, ERR_INTERNAL, "the public key cannot be read");
    f->listed = memcmp(ours, listed, CHAIN_HASH) == 0;
    if (!f->listed) {
        logger_event(l, NULL, "fleet_key", "the key of this log is not the one that the fleet has",
                     0);
        logger_warn(l,
                    "fleet.logs has another key for %s than that of this log, which is %s: "
                    "this host says nothing to the fleet",
                    f->name, chain_hex(ours, hex));
    }
    check_own(f);
    return 0;
}

void logger_fleet_free(struct logger *l)
{
    struct logger_fleet *f = l->fleet;
    if (f == NULL)
        return;
    ipc_free(f->role);
    witness_free(f->witness);
    fleet_file_free(f->file);
    buf_free(&f->batch);
    buf_free(&f->own);
    free(f);
}
