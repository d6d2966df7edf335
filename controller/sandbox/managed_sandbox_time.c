/* When a managed sandbox ends, or falls asleep: its time to live, its soft time to live, its idle
 * time. All go by CLOCK_BOOTTIME, so what the wall clock is put to lengthens and shortens none. The
 * row has them with the boot that they belong to: of another boot the wall clock tells what is left
 * of the time to live, and nothing runs that the others could be of. */
#include "managed_sandbox_internal.h"

#include <event2/event.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "proc.h"

enum {
    REMOVE_AGAIN_SECONDS = 30,
    CONFIRM_AGAIN_SECONDS = 5,
    USE_NOTED_SECONDS = 60, /* a row's last use is at most so old, or an eighth of the idle time */
};

static int64_t clock_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_BOOTTIME, &t);
    return (int64_t)t.tv_sec;
}

int64_t managed_sandbox_date(int64_t at)
{
    return (int64_t)time(NULL) + at - clock_now();
}

void managed_sandbox_live(struct managed_sandbox *r)
{
    r->ends = clock_now() + r->ttl;
    r->expires = (int64_t)time(NULL) + r->ttl;
}

void managed_sandbox_live_soft(struct managed_sandbox *r)
{
    r->soft_ends = clock_now() + r->soft_ttl;
}

int64_t managed_sandbox_expires(struct managed_sandbox *r)
{
    enum { ROUNDING = 2 }; /* two clocks do not begin their seconds together */
    int64_t at = managed_sandbox_date(r->ends);
    if (at - r->expires > ROUNDING || r->expires - at > ROUNDING)
        r->expires = at;
    return r->expires;
}

/* ---- ends that only what runs has ---- */

/* Who only looks on uses nothing. */
static bool busy(const struct managed_sandbox *r)
{
    return r->n_executions > r->n_watches;
}

int64_t managed_sandbox_idle_end(const struct managed_sandbox *r)
{
    bool idles = managed_sandbox_awake(r) && r->idle_ttl > 0 && !busy(r);
    return idles ? r->used + r->idle_ttl : INT64_MAX;
}

int64_t managed_sandbox_soft_end(const struct managed_sandbox *r)
{
    return managed_sandbox_awake(r) && r->soft_ttl > 0 ? r->soft_ends : INT64_MAX;
}

/* ---- the row ---- */

void managed_sandbox_row_times(struct managed_sandbox *r, struct registry_sandbox *row)
{
    r->noted = clock_now();
    r->noted_busy = busy(r);
    row->boot = r->controller->boot;
    row->expires = managed_sandbox_expires(r);
    row->ends = r->ends;
    row->soft_ends = r->soft_ends;
    row->used = r->noted_busy ? 0 : r->used;
}

static int64_t at_most(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Of this boot: by its clock. A use that is not known (0: something ran) is now. */
static void load_same_boot(struct managed_sandbox *r, const struct registry_sandbox *row)
{
    int64_t now = clock_now();
    r->ends = at_most(row->ends, now + r->ttl);
    r->expires = managed_sandbox_date(r->ends);
    r->soft_ends = at_most(row->soft_ends, now + r->soft_ttl);
    if (row->used > 0 && row->used < now)
        r->used = row->used;
}

void managed_sandbox_load_times(struct managed_sandbox *r, const struct registry_sandbox *row)
{
    int64_t now = clock_now(), left = row->expires - (int64_t)time(NULL);
    r->used = r->noted = now;
    r->soft_ends = now + r->soft_ttl;
    if (row->boot[0] && strcmp(row->boot, r->controller->boot) == 0) {
        load_same_boot(r, row);
        return;
    }
    r->ends = now + at_most(left, r->ttl);
    r->expires = left <= r->ttl ? row->expires : managed_sandbox_date(r->ends);
}

/* When its last use has to be in the row. */
static int64_t note_due(const struct managed_sandbox *r)
{
    bool stale = r->noted_busy != busy(r) || (!r->noted_busy && r->used > r->noted);
    if (!managed_sandbox_awake(r) || r->idle_ttl == 0 || !stale)
        return INT64_MAX;
    return r->noted + at_most(r->idle_ttl / 8 + 1, USE_NOTED_SECONDS);
}

static void note_use(struct managed_sandbox *r)
{
    struct err err = {0};
    if (managed_sandbox_row_save(r, &err) < 0)
        proc_log("%s: %s", r->id, err.text);
    r->noted = clock_now(); /* if it cannot be, not again at once */
    managed_sandbox_arm(r);
}

/* ---- the timer ---- */

void managed_sandbox_arm(struct managed_sandbox *r)
{
    if (r->state == MANAGED_SANDBOX_CREATING) {
        event_del(r->timer); /* making it has a time-out of its own */
        return;
    }
    int64_t next = at_most(r->ends, managed_sandbox_idle_end(r));
    next = at_most(next, at_most(managed_sandbox_soft_end(r), note_due(r)));
    int64_t left = next - clock_now();
    if (r->state == MANAGED_SANDBOX_STOPPING)
        left = REMOVE_AGAIN_SECONDS;
    else if (managed_sandbox_unsure(r) && left > CONFIRM_AGAIN_SECONDS)
        left = CONFIRM_AGAIN_SECONDS;
    struct timeval tv = {left > 0 ? left : 0, 0};
    event_add(r->timer, &tv);
}

static void fall_asleep(struct managed_sandbox *r, enum config_idle how, const char *why)
{
    struct err err = {0};
    if (how == IDLE_DELETE)
        managed_sandbox_delete(r, why, NULL, NULL);
    else if ((how == IDLE_PAUSE ? managed_sandbox_pause(r, NULL, NULL, &err)
                                : managed_sandbox_stop(r, why, NULL, NULL, &err)) < 0)
        proc_log("%s: %s", r->id, err.text);
    else
        managed_sandbox_arm(r);
}

static void idle_over(struct managed_sandbox *r)
{
    r->used = clock_now(); /* if it cannot be, not again at once */
    fall_asleep(r, r->on_idle, "it was idle too long");
}

static void soft_over(struct managed_sandbox *r)
{
    managed_sandbox_live_soft(r); /* the same */
    fall_asleep(r, r->on_soft, "its soft time to live is over");
}

static void on_timer(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
    struct managed_sandbox *r = arg;
    int64_t now = clock_now();
    if (r->state == MANAGED_SANDBOX_STOPPING && r->sandbox == NULL && !r->busy)
        managed_sandbox_dispose(r);
    else if (r->state != MANAGED_SANDBOX_STOPPING && now >= r->ends)
        managed_sandbox_delete(r, "its time to live is over", NULL, NULL);
    else if (now >= managed_sandbox_idle_end(r))
        idle_over(r);
    else if (now >= managed_sandbox_soft_end(r))
        soft_over(r);
    else if (managed_sandbox_unsure(r))
        managed_sandbox_confirm(r);
    else if (now >= note_due(r))
        note_use(r);
    else
        managed_sandbox_arm(r);
}

struct event *managed_sandbox_timer(struct managed_sandbox *r)
{
    return evtimer_new(r->controller->base, on_timer, r);
}

void managed_sandbox_used(struct managed_sandbox *r)
{
    r->used = clock_now();
    managed_sandbox_arm(r);
}
