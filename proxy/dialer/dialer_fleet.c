/* Budgets of a fleet at the dialer: what it asks the fleet's role for, what it gives back, and the
 * wishes that wait meanwhile. The lease is kept here, by our own clock from the moment on at which
 * it was asked for: whatever the role says makes it no longer, and no share more than the limit. */
#include "dialer_internal.h"

#include "budget_ledger.h"
#include "budget_share.h"
#include "wire.h"

#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

enum {
    WAITING_MAX = 4096,
    WAIT_US = 1000000,  /* a wish waits for shares no longer */
    AGAIN_MS = 150,     /* others have given back what they do not use */
    BEATS = 6,          /* of a lease, */
    BEAT_MAX_MS = 1000, /* but no fewer than one in this time */
    ANSWER_PARTS = 2,   /* of a lease: a beat that was not answered is said again */
};

struct waiting {
    struct channel *channel;
    struct dialer_wish wish;
    uint64_t until;
    TAILQ_ENTRY(waiting) link;
};

struct dialer_fleet {
    struct dialer *dialer;
    struct budget_shares *shares;
    struct ipc *ch; /* NULL: the role is not there */
    uint64_t hold;  /* us */
    uint32_t last, beat;
    uint64_t beat_sent;
    struct event *tick, *again;
    size_t n_waiting;
    TAILQ_HEAD(, waiting) waiting;
};

static uint64_t clock_us(clockid_t id)
{
    struct timespec ts;
    clock_gettime(id, &ts);
    return (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000;
}

bool dialer_fleet_leased(const struct dialer *d)
{
    return d->fleet && clock_us(CLOCK_BOOTTIME) < d->fleet->shares->until;
}

static void in_ms(struct event *ev, unsigned ms)
{
    struct timeval tv = {ms / 1000, (suseconds_t)(ms % 1000) * 1000};
    (void)event_add(ev, &tv);
}

/* ---- what is said ---- */

static uint32_t next_number(struct dialer_fleet *f)
{
    return ++f->last ? f->last : ++f->last;
}

static void say_share(struct dialer_fleet *f, struct budget_share *s, uint64_t want)
{
    struct msg m;
    s->unsaid = 0;
    if (f->ch == NULL)
        return;
    s->asked = next_number(f);
    msg_init(&m, W_FLEET_ASK);
    msg_put_u32(&m, s->asked);
    msg_put_str(&m, s->policy);
    msg_put_u64(&m, s->key);
    msg_put_u64(&m, s->whose);
    msg_put_u8(&m, (uint8_t)s->kind);
    msg_put_u32(&m, s->seconds);
    msg_put_u64(&m, s->amount);
    msg_put_u64(&m, s->held);
    msg_put_u64(&m, s->need);
    msg_put_u64(&m, want);
    (void)ipc_send(f->ch, &m);
}

static void say_beat(struct dialer_fleet *f)
{
    struct msg m;
    uint64_t now = clock_us(CLOCK_BOOTTIME);
    if (f->ch == NULL || !f->shares->known ||
        (f->beat && now - f->beat_sent < f->hold / ANSWER_PARTS))
        return;
    f->beat = next_number(f);
    f->beat_sent = now;
    msg_init(&m, W_FLEET_BEAT);
    msg_put_u32(&m, f->beat);
    (void)ipc_send(f->ch, &m);
}

static void say_holder(struct dialer_fleet *f)
{
    struct msg m;
    if (f->ch == NULL)
        return;
    msg_init(&m, W_FLEET_HOLDER);
    msg_put_str(&m, f->shares->holder);
    msg_put_u8(&m, f->shares->known);
    msg_put_u32(&m, (uint32_t)(f->hold / 1000000));
    (void)ipc_send(f->ch, &m);
}

/* Under another name, with nothing: what it held is no longer its own. */
static void begin_anew(struct budget_shares *s)
{
    unsigned char raw[BUDGET_HOLDER / 2];
    if (getrandom(raw, sizeof raw, 0) != sizeof raw)
        abort();
    memset(s, 0, sizeof *s);
    for (size_t i = 0; i < sizeof raw; i++)
        snprintf(s->holder + 2 * i, 3, "%02x", raw[i]);
}

static void ask_for_all(struct dialer_fleet *f)
{
    uint64_t now = clock_us(CLOCK_MONOTONIC);
    for (size_t i = 0; f->shares->known && i < BUDGET_SHARES_MAX; i++) {
        struct budget_share *s = &f->shares->list[i];
        if (s->policy[0] == 0 || s->asked || f->ch == NULL)
            continue;
        if (s->want > s->held && s->dry <= now)
            say_share(f, s, s->want);
        else if (s->unsaid)
            say_share(f, s, s->held);
    }
}

/* ---- wishes that wait ---- */

static void wait_end(struct dialer_fleet *f, struct waiting *w)
{
    TAILQ_REMOVE(&f->waiting, w, link);
    f->n_waiting--;
    free(w);
}

static void look_again(struct dialer_fleet *f)
{
    struct waiting *w, *next;
    uint64_t now = clock_us(CLOCK_MONOTONIC);
    for (w = TAILQ_FIRST(&f->waiting); w; w = next) {
        next = TAILQ_NEXT(w, link);
        if (dialer_budget_decide(w->channel, &w->wish, now >= w->until))
            wait_end(f, w);
    }
    ask_for_all(f);
    if (f->n_waiting && !event_pending(f->again, EV_TIMEOUT, NULL))
        in_ms(f->again, AGAIN_MS);
}

/* Of one channel no more than are left for all others. */
static bool has_room(const struct dialer_fleet *f, const struct channel *c)
{
    const struct waiting *w;
    size_t own = 0;
    TAILQ_FOREACH(w, &f->waiting, link)
    own += w->channel == c;
    return own < WAITING_MAX - f->n_waiting;
}

bool dialer_fleet_wait(struct channel *c, const struct dialer_wish *wish)
{
    struct dialer_fleet *f = c->dialer->fleet;
    struct waiting *w = f && has_room(f, c) ? calloc(1, sizeof *w) : NULL;
    if (w == NULL)
        return false;
    *w = (struct waiting){c, *wish, clock_us(CLOCK_MONOTONIC) + WAIT_US, {NULL, NULL}};
    TAILQ_INSERT_TAIL(&f->waiting, w, link);
    f->n_waiting++;
    ask_for_all(f);
    if (!event_pending(f->again, EV_TIMEOUT, NULL))
        in_ms(f->again, AGAIN_MS);
    return true;
}

void dialer_fleet_more(struct dialer *d)
{
    if (d->fleet)
        ask_for_all(d->fleet);
}

void dialer_fleet_forget(const struct channel *c)
{
    struct dialer_fleet *f = c->dialer->fleet;
    struct waiting *w = f ? TAILQ_FIRST(&f->waiting) : NULL, *next;
    for (; w; w = next) {
        next = TAILQ_NEXT(w, link);
        if (w->channel == c)
            wait_end(f, w);
    }
}

/* ---- what is given back ---- */

static void trim(struct dialer_fleet *f, bool ahead)
{
    uint64_t now = clock_us(CLOCK_MONOTONIC);
    for (size_t i = 0; i < BUDGET_SHARES_MAX; i++) {
        struct budget_share *s = &f->shares->list[i];
        if (s->policy[0] == 0)
            continue;
        uint64_t used = budget_ledger_used(f->dialer->book, s, now);
        if (s->held == 0 && used == 0 && !s->need && !s->want && !s->asked && !s->unsaid)
            memset(s, 0, sizeof *s);
        else if (budget_share_trim(s, used, ahead))
            say_share(f, s, s->held);
    }
}

/* Whoever waits says it again: of a wish that has gone nothing is to be kept. */
static void forget_needs(struct dialer_fleet *f)
{
    for (size_t i = 0; i < BUDGET_SHARES_MAX; i++)
        if (f->shares->list[i].asked == 0)
            f->shares->list[i].need = 0;
}

static void on_tick(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
    struct dialer_fleet *f = arg;
    say_beat(f);
    forget_needs(f);
    look_again(f);
    if (f->ch)
        trim(f, true);
}

static void on_again(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
    look_again(arg);
}

/* We end for good: what is not used is given back at once, and nothing is granted any more. */
void dialer_fleet_leave(struct dialer *d)
{
    struct dialer_fleet *f = d->fleet;
    struct msg m;
    if (f == NULL || f->ch == NULL || !f->shares->known)
        return;
    f->shares->until = 0;
    for (size_t i = 0; i < BUDGET_SHARES_MAX; i++) {
        struct budget_share *s = &f->shares->list[i];
        s->need = s->want = s->asked = 0;
    }
    trim(f, false);
    msg_init(&m, W_FLEET_LEAVE);
    (void)ipc_send(f->ch, &m);
    ipc_flush(f->ch, 100);
    begin_anew(f->shares);
}

/* ---- what the role says ---- */

/* What was asked may have been granted without our hearing of it: what is held is said again. */
static void say_again(struct dialer_fleet *f)
{
    for (size_t i = 0; i < BUDGET_SHARES_MAX; i++) {
        f->shares->list[i].asked = 0;
        f->shares->list[i].unsaid = f->shares->list[i].policy[0] != 0;
    }
}

/* There is a connection, a first or another one. */
static int on_up(struct dialer_fleet *f)
{
    f->shares->known = 1;
    f->beat = 0;
    say_again(f);
    say_beat(f);
    look_again(f);
    return 0;
}

static int on_lost(struct dialer_fleet *f)
{
    dialer_tell_operator(f->dialer,
                         "the fleet has taken this host's shares back: the host begins with none");
    begin_anew(f->shares);
    f->beat = 0;
    say_holder(f);
    return 0;
}

static int on_beaten(struct dialer_fleet *f, struct msg *m)
{
    uint32_t number;
    if (msg_get_u32(m, &number) < 0 || msg_end(m) < 0)
        return -1;
    if (f->beat == 0 || number != f->beat)
        return 0; /* another one was said since */
    f->beat = 0;
    f->shares->until = f->beat_sent + f->hold;
    look_again(f);
    return 0;
}

static int on_share(struct dialer_fleet *f, struct msg *m)
{
    uint32_t number;
    uint64_t held;
    if (msg_get_u32(m, &number) < 0 || msg_get_u64(m, &held) < 0 || msg_end(m) < 0 || number == 0)
        return -1;
    for (size_t i = 0; i < BUDGET_SHARES_MAX; i++)
        if (f->shares->list[i].policy[0] && f->shares->list[i].asked == number) {
            budget_share_answer(&f->shares->list[i], held, clock_us(CLOCK_MONOTONIC));
            look_again(f);
            return 0;
        }
    return 0;
}

/* Another host needs what we do not use. */
static int on_wanted(struct dialer_fleet *f, struct msg *m)
{
    if (msg_end(m) < 0)
        return -1;
    trim(f, false);
    return 0;
}

static int on_message(struct ipc *ch UNUSED, struct msg *m, void *arg)
{
    struct dialer_fleet *f = arg;
    switch (m->type) {
    case W_FLEET_UP:
        return msg_end(m) < 0 ? -1 : on_up(f);
    case W_FLEET_LOST:
        return msg_end(m) < 0 ? -1 : on_lost(f);
    case W_FLEET_BEATEN:
        return on_beaten(f, m);
    case W_FLEET_SHARE:
        return on_share(f, m);
    case W_FLEET_WANTED:
        return on_wanted(f, m);
    default:
        return -1;
    }
}

static void detach(struct dialer_fleet *f)
{
    ipc_free(f->ch);
    f->ch = NULL;
    f->beat = 0;
    say_again(f);
}

static void on_closed(struct ipc *ch UNUSED, const char *why UNUSED, void *arg)
{
    detach(arg);
}

void dialer_fleet_attach(struct dialer *d, int fd)
{
    struct dialer_fleet *f = d->fleet;
    if (f == NULL) {
        close(fd);
        return;
    }
    detach(f);
    f->ch = ipc_new(d->base, fd, on_message, on_closed, f);
    say_holder(f);
}

struct dialer_fleet *dialer_fleet_new(struct dialer *d, unsigned hold)
{
    struct dialer_fleet *f = calloc(1, sizeof *f);
    if (f == NULL)
        return NULL;
    unsigned ms = hold * 1000 / BEATS;
    struct timeval often = {0};
    ms = ms > BEAT_MAX_MS ? BEAT_MAX_MS : ms;
    often.tv_sec = ms / 1000;
    often.tv_usec = (suseconds_t)(ms % 1000) * 1000;
    TAILQ_INIT(&f->waiting);
    f->dialer = d;
    f->hold = (uint64_t)hold * 1000000;
    f->shares = budget_ledger_shares(d->book);
    detach(f);
    if (f->shares->holder[0] == 0)
        begin_anew(f->shares);
    f->tick = event_new(d->base, -1, EV_PERSIST, on_tick, f);
    f->again = event_new(d->base, -1, 0, on_again, f);
    if (f->tick == NULL || f->again == NULL || event_add(f->tick, &often) < 0) {
        dialer_fleet_free(f);
        return NULL;
    }
    return f;
}

void dialer_fleet_free(struct dialer_fleet *f)
{
    struct waiting *w;
    if (f == NULL)
        return;
    while ((w = TAILQ_FIRST(&f->waiting)) != NULL)
        wait_end(f, w);
    ipc_free(f->ch);
    if (f->tick)
        event_free(f->tick);
    if (f->again)
        event_free(f->again);
    free(f);
}
