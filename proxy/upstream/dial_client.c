/* Gives each wait a slot and a number, when its owner may have one more, asks the dialer and hands
 * its answer over. When the dialer dies, open questions fail, and what comes then waits a moment
 * for the next one. */
#include "dial_client.h"

#include "ipc.h"
#include "meter.h"
#include "fair_queue.h"
#include "pace.h"
#include "quota.h"
#include "budget_client.h"
#include "wire.h"
#include "peer.h"

#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <unistd.h>

/* SLOTS is what the dialer takes of one channel (of one sandbox's gate no more than it may have). A
 * request's number is its slot and, above it, how often slots have been taken, so a late answer
 * never meets another request. */
enum {
    SLOTS = DIALS_MAX,
    ATTACH_SECONDS = 2,
    MARGIN_SECONDS = 4,
    DETAIL_MAX = 512,
    BEHIND_MS = 20,
    UNREAD_MAX = 1024 * 1024 /* of ours by the dialer; what is cancelled at once takes no slot */
};

static const char *const codes[] = {"denied",  "blocked_ip", "resolve", "connect",
                                    "timeout", "overload",   "audit",   "upstream_proxy"};

enum wait_state {
    WAIT_QUEUED,  /* for its turn */
    WAIT_CHANNEL, /* for a channel to the dialer */
    WAIT_ASKED,   /* for its answer */
    WAIT_FAILING  /* fn is told from the loop: code and detail are set */
};

struct dial_wait {
    struct dial_client *client;
    enum wait_state state;
    int slot; /* -1: none */
    uint32_t req;
    uint64_t since; /* us, monotonic; when it began */
    uint64_t *begun;
    struct trace trace;
    struct authority authority;
    char *id, *token, *owner;
    struct quota_part part;
    struct fair_item place;    /* WAIT_QUEUED */
    const char *code, *detail; /* WAIT_FAILING; constant */
    struct event *timer;
    dial_fn fn;
    void *arg;
    LIST_ENTRY(dial_wait) link;
};

struct dial_client {
    struct ipc *parent; /* told of a channel that ended; NULL: nobody is */
    struct event_base *base;
    struct ipc *channel;
    uint32_t number; /* of that channel */
    struct budget_channel *budget_channel;
    struct quota quota; /* of slots */
    struct fair_queue queue;
    struct pace pace;
    struct event *paced;     /* whom its pace holds is looked at again, */
    uint64_t paced_at;       /* then (us) */
    struct trace next_trace; /* of what is asked for next */
    bool closing;
    unsigned seconds;
    uint32_t turn;
    unsigned next_slot; /* where the search for a free one starts */
    struct dial_wait *slots[SLOTS];
    LIST_HEAD(, dial_wait) waits;
};

static void wait_enter(struct dial_wait *w, enum wait_state state)
{
    struct timeval tv = {0, 0};
    w->state = state;
    if (state == WAIT_QUEUED)
        tv.tv_sec = (time_t)w->client->seconds;
    else if (state == WAIT_CHANNEL)
        tv.tv_sec = ATTACH_SECONDS;
    else if (state == WAIT_ASKED)
        tv.tv_sec = (time_t)w->client->seconds + MARGIN_SECONDS;
    event_add(w->timer, &tv);
}

static void wait_fail(struct dial_wait *w, const char *code, const char *detail)
{
    w->code = code;
    w->detail = detail;
    wait_enter(w, WAIT_FAILING);
}

static void begin_more(struct dial_client *c);

static void wait_free(struct dial_wait *w)
{
    struct dial_client *c = w->client;
    bool held = w->part.n > 0;
    if (w->slot >= 0)
        c->slots[w->slot] = NULL;
    quota_leave(&w->part);
    fair_queue_leave(&w->place);
    LIST_REMOVE(w, link);
    if (w->timer)
        event_free(w->timer);
    free(w->id);
    free(w->token);
    free(w->owner);
    free(w);
    if (held)
        begin_more(c);
}

/* The one way out: frees the wait, then tells. Nothing may be touched after it. */
static void wait_tell(struct dial_wait *w, int fd, const char *address, const char *code,
                      const char *detail)
{
    dial_fn fn = w->fn;
    void *arg = w->arg;
    meter_add(METER_DIALS_FAILED, fd < 0);
    if (fd >= 0)
        meter_time(SPAN_DIAL, meter_now() - w->since);
    wait_free(w);
    fn(arg, fd, address, code, detail);
}

static void send_cancel(struct dial_client *c, uint32_t req)
{
    struct msg m;
    msg_init(&m, W_DIAL_CANCEL);
    msg_put_u32(&m, req);
    (void)ipc_send(c->channel, &m); /* a channel that cannot take it is ending anyway */
}

static void wait_ask(struct dial_wait *w)
{
    struct msg m;
    trace_send(w->client->channel, w->req, &w->trace); /* a near host is reached at once */
    msg_init(&m, W_DIAL);
    msg_put_u32(&m, w->req);
    msg_put_u8(&m, (uint8_t)w->authority.scheme);
    msg_put_str(&m, w->authority.host);
    msg_put_u32(&m, w->authority.port);
    msg_put_str(&m, w->id);
    msg_put_str(&m, w->token);
    msg_put_str(&m, w->owner);
    if (ipc_send(w->client->channel, &m) < 0)
        wait_fail(w, "dialer_gone", "the channel to the dialer failed");
    else
        wait_enter(w, WAIT_ASKED);
}

static void trace_queued(const struct dial_wait *w)
{
    TRACE(&w->trace, "dial: waits for its turn", "%zu wait", w->client->queue.quota.used);
}

void dial_client_next_trace(struct dial_client *c, const struct trace *t)
{
    c->next_trace = *t;
}

void dial_client_begun(struct dial_wait *w, uint64_t *at)
{
    if (w)
        w->begun = at;
}

/* ---- turns ---- */

static void take_slot(struct dial_client *c, struct dial_wait *w)
{
    for (unsigned i = 0; i < SLOTS; i++) {
        unsigned at = (c->next_slot + i) % SLOTS;
        if (c->slots[at])
            continue;
        c->slots[at] = w;
        c->next_slot = (at + 1) % SLOTS;
        c->turn++;
        w->slot = (int)at;
        w->req = c->turn * SLOTS + at;
        return;
    }
}

static void waited(struct dial_wait *w)
{
    w->since = meter_now();
    if (w->begun)
        *w->begun = w->since;
}

/* In so many ms, or sooner. */
static void look_again(struct dial_client *c, long ms)
{
    struct timeval tv = {.tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000};
    uint64_t at = meter_now() + (uint64_t)ms * 1000;
    if (event_pending(c->paced, EV_TIMEOUT, NULL) && c->paced_at <= at)
        return;
    c->paced_at = at;
    event_add(c->paced, &tv);
}

/* Its owner has room and its pace allows it: claimed. What only the pace holds is looked at again.
 */
static bool may_begin(struct dial_client *c, const struct dial_wait *w)
{
    struct slice owner = slice_str(w->owner);
    if (quota_would(&c->quota, owner, 1) != QUOTA_TAKEN)
        return false;
    if (c->channel && ipc_queued(c->channel) > UNREAD_MAX) { /* the dialer is behind */
        look_again(c, BEHIND_MS);
        return false;
    }
    long ms = pace_begin(&c->pace, owner, meter_now());
    if (ms == 0)
        return true;
    look_again(c, ms);
    return false;
}

static void begin(struct dial_client *c, struct dial_wait *w)
{
    waited(w);
    if (quota_take(&c->quota, &w->part, slice_str(w->owner), 1) == QUOTA_TAKEN)
        take_slot(c, w);
    if (w->slot < 0)
        wait_fail(w, "overload", "out of memory");
    else if (c->channel == NULL)
        wait_enter(w, WAIT_CHANNEL);
    else
        wait_ask(w);
}

static bool next_may_begin(void *arg, const struct fair_item *i)
{
    return may_begin(arg, i->self);
}

/* Calls nobody back. */
static void begin_more(struct dial_client *c)
{
    struct fair_item *i;
    while (!c->closing && c->quota.used < c->quota.total &&
           (i = fair_queue_next(&c->queue, next_may_begin, c)) != NULL)
        begin(c, i->self);
}

static void on_paced(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
    begin_more(arg);
}

/* At once if it may, else behind those of its owner. */
static void take_turn(struct dial_client *c, struct dial_wait *w)
{
    struct slice owner = slice_str(w->owner);
    if (!fair_queue_has(&c->queue, owner) && may_begin(c, w)) {
        begin(c, w);
        return;
    }
    switch (fair_queue_add(&c->queue, &w->place, owner, w)) {
    case QUOTA_TAKEN:
        meter_add(METER_DIALS_QUEUED, 1);
        wait_enter(w, WAIT_QUEUED);
        trace_queued(w);
        return;
    case QUOTA_SHARE:
        wait_fail(w, "share_used", "too many connections of this sandbox wait to be made");
        return;
    case QUOTA_OUT:
        wait_fail(w, "overload", "too many connections wait to be made");
        return;
    }
}

/* It has waited as long as it may. */
static void turn_missed(struct dial_wait *w)
{
    waited(w);
    switch (quota_would(&w->client->quota, slice_str(w->owner), 1)) {
    case QUOTA_SHARE:
        wait_tell(w, -1, NULL, "share_used", "too many connections of this sandbox being made");
        return;
    case QUOTA_OUT:
        wait_tell(w, -1, NULL, "overload", "too many connections being made");
        return;
    case QUOTA_TAKEN:
        wait_tell(w, -1, NULL, "overload", "too many dials a second");
        return;
    }
}

static void on_timer(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
    struct dial_wait *w = arg;
    switch (w->state) {
    case WAIT_QUEUED:
        turn_missed(w);
        return;
    case WAIT_CHANNEL:
        wait_tell(w, -1, NULL, "dialer_gone", "no dialer");
        return;
    case WAIT_ASKED:
        send_cancel(w->client, w->req);
        wait_tell(w, -1, NULL, "timeout", "no answer from the dialer");
        return;
    case WAIT_FAILING:
        wait_tell(w, -1, NULL, w->code, w->detail);
        return;
    }
}

/* ---- the dialer's answers ---- */

static struct dial_wait *find(struct dial_client *c, uint32_t req)
{
    struct dial_wait *w = c->slots[req % SLOTS];
    return w && w->req == req && w->state == WAIT_ASKED ? w : NULL;
}

static int on_dialed(struct dial_client *c, struct msg *m)
{
    uint32_t req;
    char address[80];
    int fd;
    (void)msg_get_u32(m, &req);
    (void)msg_get_str(m, address, sizeof address);
    if (m->lost && !m->bad) { /* a client that fills our table must not end the channel of all */
        struct dial_wait *lost = find(c, req);
        if (lost)
            wait_tell(lost, -1, NULL, "overload", "out of descriptors");
        return 0;
    }
    if (msg_get_fd(m, &fd) < 0)
        return -1;
    struct dial_wait *w = msg_end(m) == 0 ? find(c, req) : NULL;
    if (w == NULL) { /* malformed, or cancelled meanwhile */
        close(fd);
        return msg_end(m);
    }
    wait_tell(w, fd, address, "ok", "");
    return 0;
}

static int on_dial_fail(struct dial_client *c, struct msg *m)
{
    uint32_t req;
    char code[32], text[DETAIL_MAX];
    const char *constant = NULL;
    (void)msg_get_u32(m, &req);
    (void)msg_get_str(m, code, sizeof code);
    (void)msg_get_str(m, text, sizeof text);
    if (msg_end(m) < 0)
        return -1;
    for (size_t i = 0; i < ARRAY_LEN(codes); i++)
        if (strcmp(codes[i], code) == 0)
            constant = codes[i];
    if (constant == NULL)
        return -1;
    struct dial_wait *w = find(c, req);
    if (w)
        wait_tell(w, -1, NULL, constant, text);
    return 0;
}

static int on_message(struct ipc *ch UNUSED, struct msg *m, void *arg)
{
    switch (m->type) {
    case W_DIALED:
        return on_dialed(arg, m);
    case W_DIAL_FAIL:
        return on_dial_fail(arg, m);
    case W_BUDGET:
        return budget_channel_message(((struct dial_client *)arg)->budget_channel, m);
    default:
        return -1;
    }
}

static void drop_channel(struct dial_client *c)
{
    struct dial_wait *w;
    ipc_free(c->channel);
    c->channel = NULL;
    budget_channel_attach(c->budget_channel, NULL);
    LIST_FOREACH(w, &c->waits, link)
    if (w->state == WAIT_ASKED)
        wait_fail(w, "dialer_gone", "the dialer ended");
}

static void on_closed(struct ipc *ch UNUSED, const char *why UNUSED, void *arg)
{
    drop_channel(arg);
    peer_lost(((struct dial_client *)arg)->parent, ((struct dial_client *)arg)->number);
}

/* ---- the client ---- */

struct dial_client *dial_client_new(struct event_base *base, unsigned seconds)
{
    struct dial_client *c = calloc(1, sizeof *c);
    if (c == NULL)
        return NULL;
    c->base = base;
    c->seconds = seconds;
    c->quota = (struct quota){.total = DIALS_MAX, .each = DIALS_OWNER};
    fair_queue_init(&c->queue, DIALS_WAITING, DIALS_WAITING_OWNER);
    LIST_INIT(&c->waits);
    c->paced = event_new(base, -1, 0, on_paced, c);
    c->budget_channel = budget_channel_new();
    if (c->paced == NULL || c->budget_channel == NULL) {
        dial_client_free(c);
        return NULL;
    }
    return c;
}

void dial_client_free(struct dial_client *c)
{
    struct dial_wait *w;
    if (c == NULL)
        return;
    c->closing = true;
    while ((w = LIST_FIRST(&c->waits)) != NULL)
        wait_free(w);
    if (c->paced)
        event_free(c->paced);
    pace_free(&c->pace);
    budget_channel_free(c->budget_channel);
    ipc_free(c->channel);
    free(c);
}

struct budget_channel *dial_client_budget_channel(const struct dial_client *c)
{
    return c->budget_channel;
}

void dial_client_lost_to(struct dial_client *c, struct ipc *parent)
{
    c->parent = parent;
}

void dial_client_attach(struct dial_client *c, int dialer_fd, uint32_t number)
{
    struct dial_wait *w;
    c->number = number;
    drop_channel(c);
    c->channel = ipc_new(c->base, dialer_fd, on_message, on_closed, c);
    if (c->channel == NULL)
        return;
    budget_channel_attach(c->budget_channel, c->channel);
    LIST_FOREACH(w, &c->waits, link)
    if (w->state == WAIT_CHANNEL)
        wait_ask(w);
}

struct dial_wait *dial_client_get(struct dial_client *c, struct slice owner,
                                  const struct authority *a, const char *id, const char *token,
                                  dial_fn fn, void *arg)
{
    struct dial_wait *w = calloc(1, sizeof *w);
    if (w == NULL)
        return NULL;
    w->client = c;
    w->slot = -1;
    w->trace = c->next_trace;
    c->next_trace.session = 0;
    meter_add(METER_DIALS, 1);
    w->authority = *a;
    w->fn = fn;
    w->arg = arg;
    LIST_INSERT_HEAD(&c->waits, w, link);
    w->id = strdup(id);
    w->token = strdup(token);
    w->owner =
        slice_dup((struct slice){owner.p, owner.n < DIAL_NAME_MAX ? owner.n : DIAL_NAME_MAX - 1});
    w->timer = event_new(c->base, -1, 0, on_timer, w);
    if (!w->id || !w->token || !w->owner || !w->timer) {
        wait_free(w);
        return NULL;
    }
    take_turn(c, w);
    return w;
}

void dial_client_cancel(struct dial_wait *w)
{
    if (w == NULL)
        return;
    if (w->state == WAIT_ASKED)
        send_cancel(w->client, w->req);
    wait_free(w);
}
