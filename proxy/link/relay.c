/* Passes bytes and room between front and back, through the tunnel, budget and capture where there
 * are some, and writes the records of progress and what all records of an end share. */
#include "relay.h"

#include "assertion.h"
#include "meter.h"
#include "budget_client.h"

#include <event2/event.h>
#include <stdio.h>
#include <string.h>

void relay_init(struct relay *r, struct downstream downstream)
{
    memset(r, 0, sizeof *r);
    r->downstream = downstream;
    clock_gettime(CLOCK_MONOTONIC, &r->begun);
}

void relay_open(struct relay *r, struct upstream upstream)
{
    r->upstream = upstream;
    if (r->request_ended)
        upstream.ops->end(upstream.self);
    else /* a kept connection has room at once, and nobody else says so */
        r->downstream.ops->wanted(r->downstream.self);
}

uint64_t relay_begun(const struct relay *r)
{
    return (uint64_t)r->begun.tv_sec * 1000000 + (uint64_t)r->begun.tv_nsec / 1000;
}

uint64_t relay_ms(const struct relay *r)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    int64_t ns =
        (now.tv_sec - r->begun.tv_sec) * INT64_C(1000000000) + now.tv_nsec - r->begun.tv_nsec;
    return (uint64_t)(ns / 1000000);
}

void relay_record(const struct relay *r, struct record *to, enum record_kind kind, uint64_t counter,
                  const char *code)
{
    char detail[80];
    record_init(to, kind, counter);
    record_put_str(to, RF_CODE, code);
    if (r->sandbox)
        record_put_str(to, RF_SANDBOX, r->sandbox);
    if (r->policy)
        record_put_str(to, RF_POLICY, r->policy);
    if (r->status)
        record_put_u64(to, RF_STATUS, r->status);
    record_put_u64(to, RF_UP, r->up);
    record_put_u64(to, RF_DOWN, r->down);
    record_put_u64(to, RF_MS, relay_ms(r));
    tunnel_record(r->tunnel, to);
    if (r->found)
        record_put_str(to, RF_PATTERNS, r->found);
    if (r->capture_lost) {
        snprintf(detail, sizeof detail, "%zu pieces of the bodies are not on record",
                 r->capture_lost);
        record_put_str(to, RF_DETAIL, detail);
    }
}

static void note(const struct relay *r, enum record_kind kind)
{
    struct record to;
    if (r->journal == NULL)
        return; /* recorded elsewhere */
    relay_record(r, &to, kind, r->counter, "ok");
    (void)journal_note(r->journal, &to);
}

static void on_tick(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
    note(arg, RECORD_PROGRESS);
}

void relay_admitted(struct relay *r, struct event_base *base, unsigned seconds, struct journal *j,
                    uint64_t counter)
{
    ASSERT(r->tick == NULL && counter > 0); /* once, and under the id of its record */
    struct timeval every = {(time_t)seconds, 0};
    r->journal = j;
    r->counter = counter;
    r->tick = event_new(base, -1, EV_PERSIST, on_tick, r);
    if (r->tick)
        event_add(r->tick, &every);
}

void relay_again(struct relay *r)
{
    if (r->tick)
        event_free(r->tick);
    r->tick = NULL;
    r->journal = NULL;
    r->upstream = (struct upstream){NULL, NULL};
    r->status = 0;
}

int relay_open_tunnel(struct relay *r, struct event_base *base, struct tunnel_owner owner,
                      enum tunnel_strict strict, const struct tunnel_filter *up,
                      const struct tunnel_filter *down)
{
    r->tunnel = tunnel_new(base, r, owner, strict, up, down);
    if (r->tunnel == NULL)
        return -1;
    note(r, RECORD_OPENED);
    return 0;
}

void relay_capture(struct relay *r, enum body_side s, const void *p, size_t n)
{
    if (r->capture_max == 0 || r->tunnel || n == 0)
        return;
    if (r->capture == NULL)
        r->capture = body_capture_new(r->capture_max);
    if (r->capture)
        body_capture_take(r->capture, s, p, n);
    else
        r->capture_lost = 1; /* no memory */
}

void relay_record_bodies(struct relay *r, struct journal *j, uint64_t counter,
                         body_capture_fn unfit, void *arg)
{
    r->capture_lost += body_capture_record(r->capture, j, counter, unfit, arg);
    meter_add(METER_CAPTURE_LOST, r->capture_lost);
}

void relay_done(struct relay *r)
{
    body_capture_free(r->capture);
    r->capture = NULL;
    if (r->tick)
        event_free(r->tick);
    r->tick = NULL;
    budget_client_free(r->budget_client);
    r->budget_client = NULL;
    quota_leave(&r->lease);
    tunnel_free(r->tunnel);
    r->tunnel = NULL;
}

void relay_up_bytes(void *self, const void *p, size_t n)
{
    struct relay *r = self;
    if (r->tunnel) {
        tunnel_up(r->tunnel, p, n);
        return;
    }
    r->up += n;
    if (r->upstream.ops)
        r->upstream.ops->data(r->upstream.self, p, n);
}

void relay_up_end(void *self)
{
    struct relay *r = self;
    if (r->request_ended)
        return; /* a tunnel had ended it already */
    r->request_ended = true;
    if (r->upstream.ops)
        r->upstream.ops->end(r->upstream.self);
}

size_t relay_up_room(void *self)
{
    struct relay *r = self;
    if (r->tunnel)
        return tunnel_up_room(r->tunnel);
    return r->upstream.ops && !r->upgrade ? r->upstream.ops->room(r->upstream.self) : 0;
}

void relay_resume(void *self)
{
    struct relay *r = self;
    if (r->upstream.ops)
        r->upstream.ops->resume(r->upstream.self);
}

void relay_down_bytes(void *self, const void *p, size_t n)
{
    struct relay *r = self;
    budget_client_down(r->budget_client, n);
    if (r->tunnel) {
        tunnel_down(r->tunnel, p, n);
        return;
    }
    r->down += n;
    relay_capture(r, BODY_REPLY, p, n);
    r->downstream.ops->data(r->downstream.self, p, n);
}

size_t relay_down_room(void *self)
{
    struct relay *r = self;
    size_t room =
        r->tunnel ? tunnel_down_room(r->tunnel) : r->downstream.ops->room(r->downstream.self);
    return budget_client_down_room(r->budget_client, room);
}

void relay_wanted(void *self)
{
    struct relay *r = self;
    r->downstream.ops->wanted(r->downstream.self);
}
