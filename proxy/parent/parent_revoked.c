/* Revoked tokens: what the controller says is kept here, and told to every role that looks at
 * tokens, those that start later included. */
#include "parent.h"

#include "revoked.h"
#include "wire.h"

#include <event2/event.h>
#include <stdlib.h>
#include <time.h>

static bool looks_at_tokens(const struct child *c)
{
    if (c->ch == NULL || (c->state != CHILD_INITED && c->state != CHILD_READY))
        return false;
    return c->role == ROLE_GATE || c->role == ROLE_DIALER || c->role == ROLE_INJECTOR;
}

static void tell_until(struct child *c)
{
    struct msg m;
    uint64_t until = revoked_end(c->parent->revoked);
    if (until == 0 || !looks_at_tokens(c))
        return;
    msg_init(&m, W_REVOKED_UNTIL);
    msg_put_u64(&m, until);
    parent_tell(c, &m);
}

static void tell(struct child *c, const struct revoked *r)
{
    size_t from = 0, n;
    if (r == NULL || !looks_at_tokens(c))
        return;
    do {
        struct msg m;
        msg_init(&m, W_REVOKED);
        n = revoked_put(r, from, &m);
        parent_tell(c, &m);
        from += n;
    } while (n == REVOKED_IN_MESSAGE);
}

void parent_tell_revoked(struct child *c)
{
    tell(c, c->parent->revoked);
    tell_until(c);
}

int parent_revoked(struct parent *p, struct msg *m)
{
    struct child *c;
    struct revoked *said = revoked_new();
    uint64_t now = (uint64_t)time(NULL);
    int r = -1;
    if (p->revoked == NULL)
        p->revoked = revoked_new();
    /* without memory for it nothing can be told: the controller's channel ends, and its next life
     * says all of it again */
    if (p->revoked && said && revoked_get(said, m, now) == 0) {
        revoked_merge(p->revoked, said, now);
        TAILQ_FOREACH(c, &p->children, link)
        tell(c, said); /* the others have the rest */
        r = 0;
    }
    revoked_free(said);
    return r;
}

/* ---- up to when it is known, in a fleet ---- */

static uint64_t boottime_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

static void tell_all_until(struct parent *p)
{
    struct child *c;
    TAILQ_FOREACH(c, &p->children, link)
    tell_until(c);
}

enum { LOOK_US = 2000000 };

static void watch_until(struct parent *p);

/* They look at the clock themselves; this ends what is open with a token. */
static void on_until(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
    struct parent *p = arg;
    if (revoked_stale(p->revoked)) {
        proc_log("what the fleet has revoked is not known any more: tokens are refused");
        tell_all_until(p);
    } else {
        watch_until(p);
    }
}

static void watch_until(struct parent *p)
{
    uint64_t now = boottime_us(), until = revoked_end(p->revoked);
    uint64_t left = until > now ? until - now : 0;
    if (left > LOOK_US)
        left = LOOK_US; /* the timer stands still while the host sleeps */
    struct timeval tv = {(time_t)(left / 1000000), (suseconds_t)(left % 1000000)};
    if (p->until_timer == NULL)
        p->until_timer = event_new(p->base, -1, 0, on_until, p);
    if (p->until_timer)
        (void)event_add(p->until_timer, &tv);
}

/* Nothing was read yet: no token is taken before. */
int parent_revoked_begin(struct parent *p)
{
    if (config_fleet(p->config) == NULL || p->mode != PARENT_SERVE)
        return 0;
    p->revoked = revoked_new();
    if (p->revoked == NULL)
        return -1;
    revoked_until(p->revoked, 1);
    return 0;
}

/* Roles are told where it goes on, and of a renewal when a quarter of the time is over. */
int parent_revoked_until(struct parent *p, struct msg *m)
{
    const struct config_fleet *f = config_fleet(p->config);
    uint64_t until, most, was = revoked_end(p->revoked);
    if (f == NULL || was == 0 || msg_get_u64(m, &until) < 0 || msg_end(m) < 0)
        return -1;
    most = boottime_us() + (uint64_t)f->revocations * 1000000;
    if (until > most)
        until = most;
    if (until < was + (uint64_t)f->revocations * 250000)
        return 0;
    revoked_until(p->revoked, until);
    tell_all_until(p);
    watch_until(p);
    return 0;
}

/* ---- that each role has taken it ---- */

enum { TAKE_MS = 1000 };

static int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000) + now.tv_nsec / 1000000;
}

static void answer_first(struct parent *p)
{
    struct msg m;
    struct revocation *r = STAILQ_FIRST(&p->revocations);
    STAILQ_REMOVE_HEAD(&p->revocations, link);
    msg_init(&m, W_REVOKED_TAKEN);
    msg_put_str(&m, r->id);
    if (p->controller->ch)
        ipc_send(p->controller->ch, &m);
    else
        msg_done(&m); /* it died, and whoever asked with it */
    free(r);
}

/* One that was started since was told all at its start. */
static bool taken_by(const struct child *c, uint32_t n)
{
    return !looks_at_tokens(c) || c->revoked_taken >= n || c->revoked_asked < n;
}

static bool taken_by_all(const struct parent *p, uint32_t n)
{
    const struct child *c;
    TAILQ_FOREACH(c, &p->children, link)
    if (!taken_by(c, n))
        return false;
    return true;
}

static void on_waited(evutil_socket_t fd UNUSED, short what UNUSED, void *arg);

/* Answers what is due, in the order in which it was asked. */
static void settle(struct parent *p)
{
    struct revocation *r;
    while ((r = STAILQ_FIRST(&p->revocations)) != NULL &&
           (taken_by_all(p, r->n) || now_ms() >= r->until))
        answer_first(p);
    if (r == NULL)
        return;
    int64_t left = r->until - now_ms();
    struct timeval tv = {0, (suseconds_t)(left > 0 ? left : 0) * 1000};
    if (left >= TAKE_MS)
        tv = (struct timeval){TAKE_MS / 1000, 0};
    if (p->revocation_timer == NULL)
        p->revocation_timer = event_new(p->base, -1, 0, on_waited, p);
    if (p->revocation_timer == NULL || event_add(p->revocation_timer, &tv) < 0)
        answer_first(p); /* without a clock nobody waits */
}

static void on_waited(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
    settle(arg);
}

void parent_revocations_gone(struct parent *p)
{
    struct revocation *r;
    while ((r = STAILQ_FIRST(&p->revocations)) != NULL) {
        STAILQ_REMOVE_HEAD(&p->revocations, link);
        free(r);
    }
}

static int ask_all(struct parent *p, struct msg *m)
{
    struct child *c;
    struct revocation *r = calloc(1, sizeof *r);
    if (r == NULL || msg_get_str(m, r->id, sizeof r->id) < 0 || msg_end(m) < 0) {
        free(r);
        return -1;
    }
    r->n = ++p->n_revocations;
    r->until = now_ms() + TAKE_MS;
    TAILQ_FOREACH(c, &p->children, link)
    if (looks_at_tokens(c)) {
        struct msg q;
        msg_init(&q, W_REVOKED_TAKEN);
        msg_put_u32(&q, r->n);
        c->revoked_asked = r->n;
        ipc_send(c->ch, &q);
    }
    STAILQ_INSERT_TAIL(&p->revocations, r, link); /* as many as the controller has requests */
    settle(p);
    return 0;
}

int parent_revoked_taken(struct child *c, struct msg *m)
{
    uint32_t n;
    if (c->role == ROLE_CONTROLLER)
        return ask_all(c->parent, m);
    if (!looks_at_tokens(c) || msg_get_u32(m, &n) < 0 || msg_end(m) < 0 || n > c->revoked_asked ||
        n <= c->revoked_taken)
        return -1;
    c->revoked_taken = n;
    settle(c->parent);
    return 0;
}
