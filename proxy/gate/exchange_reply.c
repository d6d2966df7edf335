/* An exchange as the front of its upstream: the reply, its tunnel, its end. */
#include "exchange_internal.h"

#include "guard.h"
#include "inbound.h"
#include "policy.h"
#include "body_inspection.h"
#include "tunnel.h"
#include "upgrade.h"
#include "placeholder_scan.h"

#include <stdio.h>
#include <string.h>

static void on_tunnel_over(void *self, const char *code)
{
    struct exchange *x = self;
    struct downstream f = x->relay.downstream;
    char target[HOST_TEXT_MAX + 16];
    if (x->inbound == NULL)
        gate_denied(x->gate, code, authority_text(&x->authority, target, sizeof target), 1);
    exchange_end_record(x, RECORD_ABORTED, code);
    x->relay.upstream.ops->cancel(x->relay.upstream.self, code);
    exchange_set_state(x, EXCHANGE_DONE);
    exchange_free(x);
    f.ops->end(f.self);
}

/* The origin has agreed to the upgrade. -1: memory is out. */
static int open_tunnel(struct exchange *x)
{
    struct tunnel_owner owner = {on_tunnel_over, x};
    x->placeholder_scan = placeholder_scan_new(x->gate, &x->who);
    if (x->placeholder_scan == NULL)
        return -1;
    struct tunnel_filter scan = placeholder_scan_filter(x->placeholder_scan), up = scan;
    if (rule_reads_calls(x->rule) && exchange_session(x, &scan, &up) < 0)
        return -1;
    return relay_open_tunnel(&x->relay, x->gate->base, owner,
                             x->origin ? TUNNEL_STRICT_NONE : TUNNEL_STRICT_UP, &up, NULL);
}

/* The reply is not to go on: what sent it is given up from within its own call. */
static void abandon(struct exchange *x, unsigned status, const char *code)
{
    exchange_end_record(x, RECORD_ABORTED, code);
    x->relay.upstream.ops->cancel(x->relay.upstream.self, code);
    exchange_tell_fail(x, status, code);
}

/* A 101 that was not asked for, or with a sub-protocol that was not. */
static bool upgrade_unfit(const struct exchange *x, const struct head *reply)
{
    return reply->body == BODY_TUNNEL &&
           (x->head.upgrade == UPGRADE_NONE || !upgrade_protocol_fits(&x->head, reply));
}

/* The same head over from's storage, of which it owns nothing: fields can be taken off, none added.
 * Until from is changed or freed. */
static void view(struct head *to, const struct head *from)
{
    memcpy(to, from, offsetof(struct head, fields) + from->n * sizeof from->fields[0]);
    to->raw = NULL;
    to->extra = NULL;
    to->raw_n = to->n_extra = 0;
}

static void downstream_reply(void *self, const struct head *reply)
{
    struct exchange *x = self;
    struct head h;
    if (upgrade_unfit(x, reply)) {
        abandon(x, 502, "upstream_protocol");
        return;
    }
    exchange_set_state(x, EXCHANGE_REPLYING);
    x->relay.status = reply->status;
    view(&h, reply);
    guard_clean_reply(&h, x->rule->credential != NULL, x->rule->cookies);
    if (x->inbound && x->origin) /* not our own answer to a link */
        exchange_inbound_reply(x, &h);
    if (h.body == BODY_TUNNEL && open_tunnel(x) < 0) {
        abandon(x, 503, "memory");
        return;
    }
    exchange_events(x, &h);
    x->relay.downstream.ops->reply(x->relay.downstream.self, &h);
    if (x->relay.tunnel) /* frames may wait already */
        x->relay.downstream.ops->wanted(x->relay.downstream.self);
}

static void downstream_data(void *self, const void *p, size_t n)
{
    struct exchange *x = self;
    relay_down_bytes(x, p, n);
    if (x->events)
        mcp_stream_saw(x->events, (struct slice){p, n});
}

static void downstream_trailers(void *self, const struct head *fields)
{
    struct exchange *x = self;
    struct head h;
    view(&h, fields);
    guard_clean_trailers(&h);
    if (h.n > 0)
        x->relay.downstream.ops->trailers(x->relay.downstream.self, &h);
}

static void downstream_end(void *self)
{
    struct exchange *x = self;
    struct downstream f = x->relay.downstream;
    bool cut = x->relay.tunnel && !tunnel_down_closed(x->relay.tunnel);
    exchange_end_record(x, RECORD_COMPLETED, "ok");
    if (cut) {
        exchange_tell_fail(x, 502, "upstream_closed");
        return;
    }
    exchange_set_state(x, EXCHANGE_DONE);
    exchange_free(x);
    f.ops->end(f.self);
}

static void downstream_fail(void *self, unsigned status, const char *code, const char *id)
{
    struct exchange *x = self;
    char target[HOST_TEXT_MAX + 16];
    authority_text(&x->authority, target, sizeof target);
    if (x->relay.tunnel && tunnel_down_closed(x->relay.tunnel)) {
        downstream_end(x); /* both had said goodbye: how the connection goes then is no matter */
        return;
    }
    if (x->inbound == NULL &&
        (x->origin || id || x->state != EXCHANGE_OPEN)) /* else it is told as it is denied, below */
        gate_denied(x->gate, code, target, 1);
    if (x->admitted) { /* here, and not by an injector */
        exchange_end_record(x, RECORD_ABORTED, code);
        exchange_tell_fail(x, status, code);
        return;
    }
    x->relay.upstream = (struct upstream){NULL, NULL};
    if (id == NULL && x->state == EXCHANGE_OPEN) {
        exchange_deny(x, status, code); /* the injector's end was lost before it said anything */
        return;
    }
    char copy[48];
    snprintf(copy, sizeof copy, "%s", id ? id : "-");
    exchange_tell_end(x, status, code, copy);
}

static void downstream_retry(void *self, unsigned seconds)
{
    ((struct exchange *)self)->retry = seconds;
}

static void downstream_wanted(void *self)
{
    struct exchange *x = self;
    if (x->body_inspection)
        exchange_pump(x);
    else
        exchange_wanted(x);
}

const struct downstream_ops exchange_downstream_ops = {
    .reply = downstream_reply,
    .data = downstream_data,
    .trailers = downstream_trailers,
    .end = downstream_end,
    .fail = downstream_fail,
    .room = relay_down_room,
    .wanted = downstream_wanted,
    .retry = downstream_retry,
};
