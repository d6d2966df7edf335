/* Asks once a second, and at each hint; what was asked before tells up to when nothing was missed,
 * by CLOCK_BOOTTIME from the moment of the question on. */
#include "fleet_notes.h"

#include <event2/event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <time.h>

#include "controller_internal.h"
#include "fleet_said.h"
#include "proc.h"
#include "registry.h"
#include "wire.h"

enum {
    READERS_MAX = 8,
    SENT_MAX = NOTES_OPEN_MAX / 2, /* that the role has not answered */
    TICK_MS = 1000,
};

struct waiting {
    uint32_t number; /* 0: not sent */
    char kind[NOTE_KIND_MAX + 1], id[NOTE_ID_MAX + 1];
    char *body;
    uint32_t seconds;
    bool durable;
    TAILQ_ENTRY(waiting) link;
};

struct fleet_notes {
    struct controller *controller;
    struct ipc *ch;
    bool up, again;           /* again: there was a hint while we asked */
    bool missed;              /* a reader could not apply what it was given */
    bool whole;               /* since this connection began not all was read yet */
    bool full;                /* not all is known that should be: said once */
    uint64_t after;           /* place of the last that was read */
    uint32_t number, asked;   /* asked 0: nothing is */
    unsigned got;             /* of the answer */
    uint64_t asked_at, begun; /* us; begun: the first question of those that go on */
    uint64_t until;           /* us: nothing was missed up to then */
    uint64_t read_at;
    struct fleet_said *said;
    bool shares_asked;
    int (*shares)(void *arg, struct msg *m);
    void *shares_arg;
    struct event *tick;
    size_t n_waiting, n_sent, n_readers;
    TAILQ_HEAD(, waiting) waiting;
    struct fleet_reader readers[READERS_MAX];
};

static uint64_t now_us(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_BOOTTIME, &ts);
    return (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000;
}

bool fleet_notes_stale(const struct fleet_notes *n)
{
    return n && now_us() >= n->until;
}

bool fleet_notes_up(const struct fleet_notes *n)
{
    return n->up;
}

uint64_t fleet_notes_read_at(const struct fleet_notes *n)
{
    return n->read_at;
}

static uint32_t next_number(struct fleet_notes *n)
{
    return ++n->number ? n->number : ++n->number;
}

static const struct fleet_reader *reader_of(const struct fleet_notes *n, const char *kind)
{
    for (size_t i = 0; i < n->n_readers; i++)
        if (strcmp(n->readers[i].kind, kind) == 0)
            return &n->readers[i];
    return NULL;
}

void fleet_notes_reader(struct fleet_notes *n, const struct fleet_reader *r)
{
    if (n->n_readers < READERS_MAX)
        n->readers[n->n_readers++] = *r;
}

/* ---- putting ---- */

static void send_one(struct fleet_notes *n, struct waiting *w)
{
    struct msg m;
    w->number = next_number(n);
    n->n_sent++;
    msg_init(&m, W_NOTE_PUT);
    msg_put_u32(&m, w->number);
    msg_put_str(&m, w->kind);
    msg_put_str(&m, w->id);
    msg_put_str(&m, w->body);
    msg_put_u32(&m, w->seconds);
    (void)ipc_send(n->ch, &m);
}

static void unsend(struct fleet_notes *n, struct waiting *w)
{
    if (w->number)
        n->n_sent--;
    w->number = 0;
}

/* No more at a time than the role takes; it answers each, or says that there is another connection.
 */
static void send_more(struct fleet_notes *n)
{
    struct waiting *w;
    if (n->ch == NULL || !n->up)
        return;
    TAILQ_FOREACH(w, &n->waiting, link)
    {
        if (n->n_sent >= SENT_MAX)
            return;
        if (w->number == 0)
            send_one(n, w);
    }
}

static void drop(struct fleet_notes *n, struct waiting *w)
{
    unsend(n, w);
    TAILQ_REMOVE(&n->waiting, w, link);
    n->n_waiting--;
    free(w->body);
    free(w);
}

static struct waiting *find(const struct fleet_notes *n, const char *kind, const char *id)
{
    struct waiting *w;
    TAILQ_FOREACH(w, &n->waiting, link)
    if (strcmp(w->kind, kind) == 0 && strcmp(w->id, id) == 0)
        return w;
    return NULL;
}

static struct waiting *add(struct fleet_notes *n, const char *kind, const char *id,
                           struct slice body, uint32_t seconds)
{
    struct waiting *w = calloc(1, sizeof *w);
    if (w)
        w->body = slice_dup(body);
    if (w == NULL || w->body == NULL) {
        free(w);
        return NULL;
    }
    snprintf(w->kind, sizeof w->kind, "%s", kind);
    snprintf(w->id, sizeof w->id, "%s", id);
    w->seconds = seconds;
    if (strcmp(kind, "revoked") == 0) /* nothing waits behind what a sandbox makes others say */
        TAILQ_INSERT_HEAD(&n->waiting, w, link);
    else
        TAILQ_INSERT_TAIL(&n->waiting, w, link);
    n->n_waiting++;
    return w;
}

int fleet_notes_put(struct fleet_notes *n, const char *kind, const char *id, struct slice body,
                    uint32_t seconds, bool durable, struct err *err)
{
    if (find(n, kind, id))
        return 0;
    if (!note_kind_ok(kind) || !note_id_ok(id) || !note_body_ok(body) || seconds > NOTE_SECONDS_MAX)
        return err_set(err, ERR_PARSE, "that cannot be said to the fleet");
    if (n->n_waiting >= FLEET_NOTES_WAITING_MAX)
        return err_set(err, ERR_LIMIT, "too much waits to be said to the fleet");
    struct waiting *w = add(n, kind, id, body, seconds);
    if (w == NULL)
        return err_set(err, ERR_INTERNAL, "out of memory");
    if (durable &&
        registry_note_add(n->controller->registry,
                          &(struct registry_note){kind, id, w->body, seconds}, err) < 0) {
        drop(n, w);
        return -1;
    }
    w->durable = durable;
    send_more(n);
    return 0;
}

void fleet_notes_forget(struct fleet_notes *n, const char *kind, const char *id)
{
    struct waiting *w = find(n, kind, id);
    fleet_said_forget(n->said, kind, id);
    if (w && w->durable)
        (void)registry_note_delete(n->controller->registry, kind, id, NULL);
    if (w)
        drop(n, w);
    send_more(n);
}

bool fleet_notes_waits(const struct fleet_notes *n, const char *kind, const char *id)
{
    return find(n, kind, id) != NULL;
}

void fleet_notes_renew(struct fleet_notes *n, const char *kind, const char *id, struct slice body,
                       uint32_t seconds)
{
    struct err err = {0};
    struct waiting *w = find(n, kind, id);
    if (w && w->number)
        return;
    if (w)
        drop(n, w);
    (void)fleet_notes_put(n, kind, id, body, seconds, false, &err);
}

/* ---- what the database must not lose ---- */

void fleet_notes_keep(struct fleet_notes *n, const char *kind, const char *id, struct slice body,
                      uint32_t seconds)
{
    if (note_replaces(kind) ||
        fleet_said_add(n->said, kind, id, body, now_us(), (uint64_t)seconds * 1000000) == 0)
        return;
    if (!n->full)
        proc_log("more was said to the fleet than this host keeps: what its database loses of that "
                 "is not said again");
    n->full = true;
}

static void put_back(void *arg, const char *kind, const char *id, struct slice body,
                     uint32_t seconds)
{
    struct err err = {0};
    (void)fleet_notes_put(arg, kind, id, body, seconds, false, &err);
}

static int on_kept(struct fleet_notes *n, struct msg *m)
{
    struct waiting *w;
    uint32_t number;
    uint8_t mine;
    char id[NOTE_ID_MAX + 1];
    if (msg_get_u32(m, &number) < 0 || msg_get_u8(m, &mine) < 0 || mine > NOTE_FAILED ||
        msg_end(m) < 0 || number == 0)
        return -1;
    TAILQ_FOREACH(w, &n->waiting, link)
    if (w->number == number)
        break;
    if (w == NULL)
        return 0; /* it was said again since, or is not wanted any more */
    if (mine == NOTE_FAILED) {
        unsend(n, w); /* until the next tick */
        return 0;
    }
    const struct fleet_reader *r = reader_of(n, w->kind);
    snprintf(id, sizeof id, "%s", w->id);
    if (w->durable)
        (void)registry_note_delete(n->controller->registry, w->kind, w->id, NULL);
    if (mine == NOTE_MINE)
        fleet_notes_keep(n, w->kind, w->id, slice_str(w->body), w->seconds);
    drop(n, w);
    if (r && r->kept)
        r->kept(r->arg, id, mine);
    send_more(n);
    return 0;
}

/* ---- reading ---- */

static void ask(struct fleet_notes *n, uint64_t begun)
{
    struct msg m;
    n->asked = next_number(n);
    n->asked_at = now_us();
    n->begun = begun ? begun : n->asked_at;
    n->again = false;
    n->got = 0;
    msg_init(&m, W_NOTES_ASK);
    msg_put_u32(&m, n->asked);
    msg_put_u64(&m, n->after);
    (void)ipc_send(n->ch, &m);
}

static void renew(struct fleet_notes *n)
{
    struct msg m;
    n->read_at = n->begun;
    n->until = n->begun + (uint64_t)config_fleet(n->controller->config)->revocations * 1000000;
    msg_init(&m, W_REVOKED_UNTIL);
    msg_put_u64(&m, n->until);
    (void)ipc_send(n->controller->owner.parent, &m);
}

static int on_note(struct fleet_notes *n, struct msg *m)
{
    uint64_t place;
    char kind[NOTE_KIND_MAX + 1], id[NOTE_ID_MAX + 1];
    struct slice body;
    if (msg_get_u64(m, &place) < 0 || msg_get_str(m, kind, sizeof kind) < 0 ||
        msg_get_str(m, id, sizeof id) < 0 || msg_get_slice(m, NOTE_BODY_MAX, &body) < 0 ||
        msg_end(m) < 0 || !note_kind_ok(kind) || !note_id_ok(id) || !note_body_ok(body))
        return -1;
    if (n->asked == 0 || n->got++ >= NOTES_AT_ONCE)
        return -1; /* nobody asked for it */
    if (place > n->after)
        n->after = place;
    fleet_said_seen(n->said, kind, id);
    const struct fleet_reader *r = reader_of(n, kind);
    if (r)
        r->note(r->arg, id, body);
    return 0;
}

static int on_read(struct fleet_notes *n, struct msg *m)
{
    uint32_t number;
    uint8_t more; /* 2: it failed, and is asked again at the next tick */
    if (msg_get_u32(m, &number) < 0 || msg_get_u8(m, &more) < 0 || more > 2 || msg_end(m) < 0)
        return -1;
    if (n->asked == 0 || number != n->asked)
        return 0;
    n->asked = 0;
    if (more == 2)
        return 0;
    if (more) {
        ask(n, n->begun);
        return 0;
    }
    if (n->missed) {
        n->missed = false;
        n->after = 0;
        return 0;
    }
    renew(n);
    if (n->whole) /* a database may have lost what it said was on disk: another is primary now */
        fleet_said_missing(n->said, now_us(), put_back, n);
    n->whole = false;
    if (n->again)
        ask(n, 0);
    return 0;
}

void fleet_notes_again(struct fleet_notes *n)
{
    if (n)
        n->missed = true;
}

/* Another connection: what was said may not be there, and what is there may be another. */
static int on_up(struct fleet_notes *n)
{
    struct waiting *w;
    n->up = n->whole = true; /* once a connection, however often one that shows nothing is asked */
    n->after = 0;
    fleet_said_begin(n->said);
    TAILQ_FOREACH(w, &n->waiting, link)
    unsend(n, w);
    send_more(n);
    ask(n, 0);
    return 0;
}

static int on_hint(struct fleet_notes *n)
{
    if (!n->up)
        return 0;
    if (n->asked)
        n->again = true;
    else
        ask(n, 0);
    return 0;
}

/* ---- time ---- */

static void on_tick(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
    struct fleet_notes *n = arg;
    send_more(n);
    if (n->ch && n->up && n->asked == 0)
        ask(n, 0);
}

/* ---- shares of budgets ---- */

void fleet_notes_on_shares(struct fleet_notes *n, int (*fn)(void *arg, struct msg *m), void *arg)
{
    n->shares = fn;
    n->shares_arg = arg;
}

void fleet_notes_ask_shares(struct fleet_notes *n)
{
    struct msg m;
    if (n->ch == NULL || n->shares_asked)
        return;
    n->shares_asked = true;
    msg_init(&m, W_SHARES_ASK);
    (void)ipc_send(n->ch, &m);
}

static int on_shares(struct fleet_notes *n, struct msg *m)
{
    if (!n->shares_asked)
        return -1; /* nobody asked for it */
    n->shares_asked = false;
    return n->shares ? n->shares(n->shares_arg, m) : 0;
}

/* ---- channel ---- */

static int on_message(struct ipc *ch UNUSED, struct msg *m, void *arg)
{
    struct fleet_notes *n = arg;
    switch (m->type) {
    case W_NOTES_UP:
        return msg_end(m) < 0 ? -1 : on_up(n);
    case W_NOTES_HINT:
        return msg_end(m) < 0 ? -1 : on_hint(n);
    case W_NOTE:
        return on_note(n, m);
    case W_NOTES_READ:
        return on_read(n, m);
    case W_NOTE_KEPT:
        return on_kept(n, m);
    case W_SHARES:
        return on_shares(n, m);
    default:
        return -1;
    }
}

static void detach(struct fleet_notes *n)
{
    struct waiting *w;
    ipc_free(n->ch);
    n->ch = NULL;
    n->up = n->again = n->shares_asked = false;
    n->asked = 0;
    TAILQ_FOREACH(w, &n->waiting, link)
    unsend(n, w);
}

static void on_closed(struct ipc *ch UNUSED, const char *why UNUSED, void *arg)
{
    detach(arg);
}

void fleet_notes_attach(struct fleet_notes *n, int fd)
{
    detach(n);
    n->ch = ipc_new(n->controller->base, fd, on_message, on_closed, n);
}

static int load_each(void *arg, const struct registry_note *row)
{
    struct fleet_notes *n = arg;
    struct slice body = slice_str(row->body);
    if (!note_kind_ok(row->kind) || !note_id_ok(row->id) || !note_body_ok(body))
        return 0;
    struct waiting *w = n->n_waiting < FLEET_NOTES_WAITING_MAX
                            ? add(n, row->kind, row->id, body, (uint32_t)row->seconds)
                            : NULL;
    if (w)
        w->durable = true;
    return w ? 0 : -1;
}

struct fleet_notes *fleet_notes_new(struct controller *c, struct err *err)
{
    static const struct timeval often = {TICK_MS / 1000, 0};
    struct fleet_notes *n = calloc(1, sizeof *n);
    if (n == NULL) {
        err_set(err, ERR_INTERNAL, "out of memory");
        return NULL;
    }
    n->controller = c;
    TAILQ_INIT(&n->waiting);
    n->said = fleet_said_new();
    n->tick = event_new(c->base, -1, EV_PERSIST, on_tick, n);
    if (n->said && n->tick && event_add(n->tick, &often) == 0 &&
        registry_note_each(c->registry, load_each, n, err) == 0)
        return n;
    if (!err->code)
        err_set(err, ERR_INTERNAL, "out of memory");
    fleet_notes_free(n);
    return NULL;
}

void fleet_notes_free(struct fleet_notes *n)
{
    struct waiting *w;
    if (n == NULL)
        return;
    while ((w = TAILQ_FIRST(&n->waiting)) != NULL)
        drop(n, w);
    ipc_free(n->ch);
    fleet_said_free(n->said);
    if (n->tick)
        event_free(n->tick);
    free(n);
}
