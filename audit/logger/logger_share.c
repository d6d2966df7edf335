/* Who may write how much of the log. Each writer's credit is what is left of its share; where a
 * writer serves several sandboxes each of these has a share, too, and the writer is told whose is
 * used up. What a writer appends without credit is found, and ends it: within LOGGER_TICK_MS where
 * the disk has LOOK_BYTES less free for it, else (somebody frees as much) within LOOKS times that.
 * With little room on the disk shares shrink, so that who used most is refused first. */
#include "logger_internal.h"

#include "broker.h"
#include "meter.h"
#include "timestamp.h"
#include "wire.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>

enum {
    WINDOW_MIN = 2 * RECORD_MAX, /* credit for less would not carry a record */
    SHARED = 16,                 /* times a sandbox's: of a writer for several, and one each */
    PACED_MAX = 1024,            /* of a channel; as the writer's bound */
    SAY_MS = 60 * 1000,
    RESERVE_MAX = 256 << 20, /* bytes; or an eighth of the disk */
    LOOK_BYTES = 2 << 20,    /* fewer are free: who took them? */
    LOOKS = 10,              /* ticks, in each of which a share of those that rest is looked at */
};

/* ---- whose ---- */

static bool is_charged(const struct channel *ch)
{
    enum role r = (enum role)ch->file.role;
    return r == ROLE_GATE || r == ROLE_INJECTOR || r == ROLE_DIALER || broker_of(r);
}

static unsigned times_of(const struct channel *ch)
{
    return ch->file.sandbox[0] ? 1 : SHARED + (unsigned)ch->logger->n_channels;
}

/* A gate without a policy may name any: what it says is charged beside nobody else's. */
static void name_of(const struct channel *ch, struct slice sandbox, struct slice policy,
                    char name[SHARE_NAME_MAX])
{
    char own[32] = "";
    if (ch->file.policy[0])
        policy = slice_str(ch->file.policy);
    else if (ch->file.role == ROLE_GATE)
        snprintf(own, sizeof own, "#%u", (unsigned)ch->handle);
    snprintf(name, SHARE_NAME_MAX, "%s%.*s/%.*s", own, (int)policy.n, policy.p, (int)sandbox.n,
             sandbox.p);
}

/* The channel's own. NULL: out of memory; then it has what every writer has. */
static struct share *own_share(struct channel *ch)
{
    char name[SHARE_NAME_MAX];
    if (ch->share)
        return ch->share;
    if (ch->file.sandbox[0])
        name_of(ch, slice_str(ch->file.sandbox), (struct slice){"", 0}, name);
    else
        snprintf(name, sizeof name, "%s#%u", role_name((enum role)ch->file.role),
                 (unsigned)ch->handle);
    ch->share = shares_get(ch->logger->shares, name, times_of(ch), logger_ms());
    if (ch->share)
        share_hold(ch->share);
    return ch->share;
}

/* ---- pace ---- */

static void send_pace(struct channel *ch, const char *sandbox, bool on)
{
    struct msg m;
    msg_init(&m, W_PACE);
    msg_put_u8(&m, on);
    msg_put_str(&m, sandbox);
    ipc_send(ch->ipc, &m);
}

static void say_paced(struct channel *ch, const char *sandbox)
{
    struct logger *l = ch->logger;
    if (ch->said_ms && logger_ms() - ch->said_ms < SAY_MS)
        return;
    ch->said_ms = logger_ms();
    meter_add(METER_LOG_PACED, 1);
    logger_event(l, ch, "log_share_used", sandbox, 0);
}

static bool is_paced(const struct channel *ch, const char *sandbox)
{
    const struct paced *p;
    TAILQ_FOREACH(p, &ch->paced, link)
    if (strcmp(p->sandbox, sandbox) == 0)
        return true;
    return false;
}

/* One of several sandboxes of a writer has nothing left. */
static void pace(struct channel *ch, struct share *x, struct slice sandbox)
{
    char name[RENDER_NAME_MAX + 1];
    snprintf(name, sizeof name, "%.*s", (int)sandbox.n, sandbox.p);
    if (ch->ipc == NULL || ch->n_paced == PACED_MAX || is_paced(ch, name))
        return;
    struct paced *p = calloc(1, sizeof *p);
    if (p == NULL)
        return;
    memcpy(p->sandbox, name, sizeof name);
    p->share = x;
    share_hold(x);
    TAILQ_INSERT_TAIL(&ch->paced, p, link);
    ch->n_paced++;
    send_pace(ch, name, true);
    say_paced(ch, name);
}

static void forget_paced(struct channel *ch, struct paced *p)
{
    TAILQ_REMOVE(&ch->paced, p, link);
    ch->n_paced--;
    share_drop(p->share);
    free(p);
}

static void unpace(struct channel *ch, uint64_t now)
{
    struct paced *p, *next;
    for (p = TAILQ_FIRST(&ch->paced); p; p = next) {
        next = TAILQ_NEXT(p, link);
        if (share_left(p->share, ch->logger->may_use, now) < WINDOW_MIN)
            continue;
        send_pace(ch, p->sandbox, false);
        forget_paced(ch, p);
    }
}

void channel_share_done(struct channel *ch)
{
    while (!TAILQ_EMPTY(&ch->paced))
        forget_paced(ch, TAILQ_FIRST(&ch->paced));
    share_drop(ch->share);
    ch->share = NULL;
}

void channel_charge(struct channel *ch, const struct record_view *v, size_t line)
{
    struct logger *l = ch->logger;
    uint64_t now = logger_ms();
    struct slice sandbox = v->field[RF_SANDBOX];
    char name[SHARE_NAME_MAX];
    if (own_share(ch))
        share_charge(ch->share, line, now);
    if (!is_charged(ch) || ch->file.sandbox[0] || sandbox.n == 0)
        return;
    name_of(ch, sandbox, v->field[RF_POLICY], name);
    struct share *x = shares_get(l->shares, name, 1, now);
    if (x == NULL)
        return;
    share_charge(x, line, now);
    if (share_left(x, l->may_use, now) == 0)
        pace(ch, x, sandbox);
}

/* ---- credit ---- */

/* How far the writer may be ahead of us now. */
static uint64_t window(struct channel *ch)
{
    uint64_t left = UINT64_MAX;
    if (own_share(ch)) {
        share_times(ch->share, times_of(ch), logger_ms());
        left = share_left(ch->share, ch->logger->may_use, logger_ms());
    }
    if (left >= LOGGER_CREDIT)
        return LOGGER_CREDIT;
    if (left >= WINDOW_MIN)
        return left;
    say_paced(ch, "");
    return 0;
}

uint64_t channel_credit(struct channel *ch)
{
    uint64_t most = window(ch), ahead = ch->granted - (ch->file.pos - ch->file.start);
    uint64_t more = most > ahead ? most - ahead : 0;
    if (ch->overrun)
        return 0;
    if (ch->slowed != (most < LOGGER_CREDIT)) {
        ch->slowed = !ch->slowed;
        send_pace(ch, "", ch->slowed);
    }
    if (most == LOGGER_CREDIT)
        return more >= LOGGER_CREDIT / 4 ? more : 0;
    return more >= WINDOW_MIN || ahead < WINDOW_MIN / 2 ? more : 0;
}

/* ---- each tick ---- */

/* Of the room that is kept for others a sandbox may have used as much as there is of it yet. */
static uint64_t may_use(const struct logger *l, uint64_t all, uint64_t free)
{
    uint64_t reserve = all / 8 < RESERVE_MAX ? all / 8 : RESERVE_MAX;
    uint64_t most = shares_burst(l->shares) < reserve ? shares_burst(l->shares) : reserve;
    return free >= reserve ? UINT64_MAX : most / 1024 * free / (reserve / 1024 + 1);
}

/* Sets what shares may use by what the disk has. -> whether so much of it went since the last such
 * look that every channel is looked at in this tick. */
static bool look_at_disk(struct logger *l)
{
    struct statvfs st;
    if (fstatvfs(l->dir, &st) < 0 || st.f_blocks == 0) {
        l->may_use = UINT64_MAX;
        return true;
    }
    uint64_t free = (uint64_t)st.f_bavail * st.f_frsize;
    bool went = l->ticks == 0 || (free < l->free_seen && l->free_seen - free >= LOOK_BYTES);
    l->may_use = may_use(l, (uint64_t)st.f_blocks * st.f_frsize, free);
    if (went || free > l->free_seen)
        l->free_seen = free;
    return went;
}

/* A resting channel waits for nothing: what is left is that its writer may write without a word. */
static bool rests(const struct channel *ch)
{
    return !ch->busy && !ch->slowed && TAILQ_EMPTY(&ch->paced);
}

bool logger_tick(struct logger *l)
{
    struct channel *ch, *next;
    uint64_t now = logger_ms();
    bool all = look_at_disk(l);
    l->ticks++;
    for (ch = TAILQ_FIRST(&l->channels); ch; ch = next) {
        next = TAILQ_NEXT(ch, link);
        if (ch->state != CHANNEL_OPEN ||
            (!all && rests(ch) && (ch->file.channel + l->ticks) % LOOKS != 0))
            continue;
        struct journal_look look = journal_file_look(&ch->file);
        if (look.removed)
            return false;
        if (look.size - ch->file.start > ch->granted) {
            channel_wake(ch); /* the copying ends it where its credit did */
            continue;
        }
        unpace(ch, now);
        if (!l->failing && !ch->dirty)
            channel_settle(ch, false);
    }
    return true;
}
