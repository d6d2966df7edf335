/* Looks at all holders once a second, remembers since when each has been as it is, and has the
 * database do what follows from that. */
#include "sweep.h"

#include "compiler.h"
#include "database.h"

#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <time.h>

enum { LOOK_SECONDS = 1, ID_MAX = 32, DAY = 86400, SLACK_PART = 20 };
/* Dead holders may be many, whose shares last for a day: what is done about them leaves room for
 * what is asked, and the longer one is dead the more rarely it is looked after. */
enum { OPEN_MAX = 256, LATER_PART = 16 };

struct holder {
    char id[ID_MAX + 1];
    uint64_t beat, hold;
    bool gone, seen; /* seen: in the answer that is being read */
    uint64_t since;  /* seconds: it has been like this at least from then on */
    uint64_t next;   /* when something is done about it again */
    LIST_ENTRY(holder) link;
};

struct sweep {
    struct database *database;
    struct event *tick;
    bool ours, asked;
    size_t n;
    LIST_HEAD(, holder) holders;
};

/* Goes on while the host sleeps. */
static uint64_t seconds_now(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_BOOTTIME, &ts);
    return (uint64_t)ts.tv_sec;
}

/* Clocks of two hosts do not run alike to the last part. */
static uint64_t with_slack(uint64_t seconds)
{
    return seconds + seconds / SLACK_PART + 1;
}

static void forget(struct sweep *s, struct holder *h)
{
    LIST_REMOVE(h, link);
    s->n--;
    free(h);
}

static void forget_all(struct sweep *s)
{
    while (!LIST_EMPTY(&s->holders))
        forget(s, LIST_FIRST(&s->holders));
}

static struct holder *find(struct sweep *s, struct slice id)
{
    struct holder *h;
    LIST_FOREACH(h, &s->holders, link)
    if (slice_eq_str(id, h->id))
        return h;
    if (id.n == 0 || id.n > ID_MAX || s->n == SWEEP_HOLDERS_MAX)
        return NULL;
    h = calloc(1, sizeof *h);
    if (h == NULL)
        return NULL;
    memcpy(h->id, id.p, id.n);
    h->beat = UINT64_MAX; /* none has that */
    LIST_INSERT_HEAD(&s->holders, h, link);
    s->n++;
    return h;
}

static bool is_id(struct slice id)
{
    for (size_t i = 0; i < id.n; i++)
        if (!((id.p[i] >= '0' && id.p[i] <= '9') || (id.p[i] >= 'a' && id.p[i] <= 'f')))
            return false;
    return id.n > 0;
}

/* ---- what follows ---- */

static void act(struct sweep *s, struct holder *h, uint64_t now)
{
    char text[400];
    uint64_t waited = now - h->since;
    if ((!h->gone && waited < with_slack(h->hold)) || now < h->next ||
        database_open(s->database) >= OPEN_MAX)
        return;
    h->next = now + 1 + waited / LATER_PART;
    if (!h->gone) {
        snprintf(text, sizeof text,
                 "UPDATE durward_holder SET gone = true WHERE id = '%s' AND beat = %llu", h->id,
                 (unsigned long long)h->beat);
        database_ask(s->database, text, NULL, NULL, NULL);
        return;
    }
    /* the longest that is over, slack included */
    uint64_t over = waited > 1 ? (waited - 1) * SLACK_PART / (SLACK_PART + 1) : 0;
    snprintf(text, sizeof text,
             "DELETE FROM durward_share WHERE holder = '%s' AND seconds <= %llu; "
             "DELETE FROM durward_holder h WHERE id = '%s' AND gone AND NOT EXISTS "
             "(SELECT 1 FROM durward_share s WHERE s.holder = h.id)",
             h->id, (unsigned long long)over, h->id);
    database_ask(s->database, text, NULL, NULL, NULL);
}

/* ---- looking ---- */

/* "ID BEAT HOLD GONE" */
static void on_line(struct sweep *s, struct slice line, uint64_t now)
{
    uint64_t field[3] = {0};
    ssize_t blank = slice_find(line, ' ');
    struct slice id = {line.p, blank < 0 ? 0 : (size_t)blank};
    for (size_t i = 0; i < ARRAY_LEN(field); i++) {
        if (blank < 0)
            return;
        line = (struct slice){line.p + blank + 1, line.n - (size_t)blank - 1};
        blank = slice_find(line, ' ');
        struct slice number = {line.p, blank < 0 ? line.n : (size_t)blank};
        if (slice_u64(number, UINT64_MAX / 2, &field[i]) < 0)
            return;
    }
    struct holder *h = is_id(id) ? find(s, id) : NULL;
    if (h == NULL)
        return;
    bool gone = field[2] != 0;
    if (h->beat != field[0] || h->gone != gone) {
        h->since = now;
        h->next = 0;
    }
    h->beat = field[0];
    h->hold = field[1] > DAY ? DAY : field[1];
    h->gone = gone;
    h->seen = true;
}

static void on_holders(void *arg, const struct database_tag *tag UNUSED, bool ok,
                       struct slice rows);

static void look(struct sweep *s)
{
    s->asked = true;
    database_ask(s->database,
                 "SELECT concat_ws(' ', id, beat, hold, gone::int) FROM durward_holder LIMIT 16384",
                 on_holders, s, NULL);
}

/* Of several roles one has this lock, for as long as its connection lasts. */
static void on_lock(void *arg, const struct database_tag *tag UNUSED, bool ok, struct slice rows);

static void try_lock(struct sweep *s)
{
    s->asked = true;
    database_ask(s->database, "SELECT pg_try_advisory_lock(1685418354, 1)::text", on_lock, s, NULL);
}

static void on_tick(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
    struct sweep *s = arg;
    if (s->asked || !database_is_up(s->database))
        return;
    if (s->ours)
        look(s);
    else
        try_lock(s);
}

struct sweep *sweep_new(struct event_base *base, struct database *d)
{
    static const struct timeval often = {LOOK_SECONDS, 0};
    struct sweep *s = calloc(1, sizeof *s);
    if (s == NULL)
        return NULL;
    s->database = d;
    LIST_INIT(&s->holders);
    s->tick = event_new(base, -1, EV_PERSIST, on_tick, s);
    if (s->tick == NULL || event_add(s->tick, &often) < 0) {
        sweep_free(s);
        return NULL;
    }
    return s;
}

static void on_holders(void *arg, const struct database_tag *tag UNUSED, bool ok, struct slice rows)
{
    struct sweep *s = arg;
    struct holder *h, *next;
    uint64_t now = seconds_now();
    ssize_t end;
    s->asked = false;
    if (!ok)
        return;
    LIST_FOREACH(h, &s->holders, link)
    h->seen = false;
    while ((end = slice_find(rows, '\n')) >= 0) {
        on_line(s, (struct slice){rows.p, (size_t)end}, now);
        rows = (struct slice){rows.p + end + 1, rows.n - (size_t)end - 1};
    }
    for (h = LIST_FIRST(&s->holders); h; h = next) {
        next = LIST_NEXT(h, link);
        if (h->seen)
            act(s, h, now);
        else
            forget(s, h);
    }
}

static void on_lock(void *arg, const struct database_tag *tag UNUSED, bool ok, struct slice rows)
{
    struct sweep *s = arg;
    s->asked = false;
    s->ours = ok && slice_eq_str(rows, "true\n");
}

void sweep_begin(struct sweep *s)
{
    s->ours = s->asked = false;
    forget_all(s);
}

void sweep_free(struct sweep *s)
{
    if (s == NULL)
        return;
    forget_all(s);
    if (s->tick)
        event_free(s->tick);
    free(s);
}
