/* A grant as the front of its origin: the reply looked through for the secret, then passed on. */
#include "grant_internal.h"

#include "meter.h"
#include "scrub_head.h"
#include "spend.h"
#include "tunnel.h"

#include <stdlib.h>

/* The rule would rather have no reply than one with the secret taken out. */
static bool is_blocked(const struct grant *g)
{
    return g->decided.rule->on_reflect != REFLECT_REDACT && grant_hits(g) > 0;
}

/* In a copy of our own. -1: out of memory. */
static int clean_head(struct grant *g, struct head *to, const struct head *from)
{
    ssize_t n = scrub_head(scrub_set(g->scrub), to, from);
    g->head_hits += n > 0 ? (uint64_t)n : 0;
    return n < 0 ? -1 : 0;
}

static void on_tunnel_over(void *self, const char *code)
{
    struct grant *g = self;
    struct front f = g->relay.front;
    grant_end_record(g, RECORD_ABORTED, code);
    g->relay.back.ops->cancel(g->relay.back.self, code);
    grant_set_state(g, G_DONE);
    grant_release(g);
    f.ops->end(f.self);
}

static int open_tunnel(struct grant *g)
{
    struct tunnel_owner owner = {on_tunnel_over, g};
    g->frames.scrub = g->scrub;
    struct tunnel_filter down = scrub_frames_filter(&g->frames);
    return relay_open_tunnel(&g->relay, g->injector->base, owner, TUNNEL_STRICT_DOWN, NULL,
                             g->scrub ? &down : NULL);
}

static void pass_reply(struct grant *g, const struct head *h)
{
    g->relay.front.ops->reply(g->relay.front.self, h);
    if (g->relay.tunnel) /* frames may wait already */
        g->relay.front.ops->wanted(g->relay.front.self);
}

static void front_reply(void *self, const struct head *h)
{
    struct grant *g = self;
    struct head clean;
    if (g->filled && h->body != BODY_NONE && scrub_head_coded(h)) {
        grant_abandon(g, 502, "cannot_scrub");
        return;
    }
    g->relay.status = h->status;
    g->in_messages = grpc_has_messages(h);
    if (h->body == BODY_TUNNEL && open_tunnel(g) < 0) {
        grant_abandon(g, 503, "memory");
        return;
    }
    if (grant_captures(g, h)) {
        grant_capture_begin(g, h);
        return;
    }
    if (g->scrub == NULL) {
        pass_reply(g, h);
        return;
    }
    int r = clean_head(g, &clean, h);
    bool blocked = r == 0 && is_blocked(g);
    if (r == 0 && !blocked)
        pass_reply(g, &clean);
    http_head_free(&clean);
    if (blocked)
        grant_abandon(g, 502, "secret_reflected");
    else if (r < 0)
        grant_abandon(g, 503, "memory");
}

static void pass_body(struct grant *g, struct slice s)
{
    g->relay.down += s.n;
    if (!g->unsearched)
        relay_capture(&g->relay, BODY_REPLY, s.p, s.n);
    if (s.n > 0)
        g->relay.front.ops->data(g->relay.front.self, s.p, s.n);
}

static void front_data(void *self, const void *p, size_t n)
{
    struct grant *g = self;
    struct slice s = {p, n};
    spend_down(g->relay.spend, n);
    if (g->relay.tunnel) {
        tunnel_down(g->relay.tunnel, p, n);
        return;
    }
    if (g->reply.state != GATHER_OFF) {
        grant_capture_data(g, p, n);
        return;
    }
    bool over = g->in_messages && grpc_message_over(&g->message, s);
    meter_add(METER_SCRUBBED_BYTES, g->scrub ? n : 0);
    if (g->scrub && scrub_feed(g->scrub, s, &s) < 0) {
        grant_abandon(g, 503, "memory");
        return;
    }
    if (is_blocked(g)) {
        grant_abandon(g, 502, "secret_reflected");
        return;
    }
    pass_body(g, s);
    if (over && g->scrub && scrub_early(g->scrub, &s) == 0)
        pass_body(g, s); /* a peer waits for it before it says more */
}

/* What the search still holds of the body goes on: there is no more of it. */
static int flush_scrub(struct grant *g)
{
    struct slice rest = {"", 0};
    if (g->scrub && !g->body_whole && scrub_end(g->scrub, &rest) < 0)
        return -1;
    g->body_whole = true;
    if (is_blocked(g))
        return 0;       /* front_end tells */
    pass_body(g, rest); /* the room for it was never given away */
    return 0;
}

/* Trailers come after the body, so what the search still holds of it goes first. */
static void front_trailers(void *self, const struct head *fields)
{
    struct grant *g = self;
    struct head clean;
    if (g->reply.state != GATHER_OFF) /* they would say nothing of a body that is another */
        return;
    if (flush_scrub(g) < 0 || is_blocked(g))
        return;
    if (g->scrub == NULL) {
        g->relay.front.ops->trailers(g->relay.front.self, fields);
        return;
    }
    int r = clean_head(g, &clean, fields);
    if (r == 0)
        g->relay.front.ops->trailers(g->relay.front.self, &clean);
    http_head_free(&clean);
}

static void front_end(void *self)
{
    struct grant *g = self;
    struct front f = g->relay.front;
    if (g->reply.state != GATHER_OFF) {
        grant_capture_end(g);
        return;
    }
    if (g->relay.tunnel) {
        bool cut = !tunnel_down_closed(g->relay.tunnel);
        grant_end_record(g, RECORD_COMPLETED, "ok");
        if (cut) {
            grant_tell_fail(g, 502, "upstream_closed");
            return;
        }
    } else if (flush_scrub(g) < 0) {
        grant_end_record(g, RECORD_ABORTED, "memory");
        grant_tell_fail(g, 503, "memory");
        return;
    } else if (is_blocked(g)) {
        grant_end_record(g, RECORD_ABORTED, "secret_reflected");
        grant_tell_fail(g, 502, "secret_reflected");
        return;
    }
    grant_end_record(g, RECORD_COMPLETED, "ok");
    grant_set_state(g, G_DONE);
    grant_release(g);
    f.ops->end(f.self);
}

void grant_pass_whole(struct grant *g, struct head *h, struct slice body)
{
    struct head clean;
    if (g->scrub && clean_head(g, &clean, h) == 0) {
        http_head_free(h);
        *h = clean;
    } else if (g->scrub) {
        grant_end_record(g, RECORD_ABORTED, "memory");
        grant_tell_fail(g, 503, "memory");
        return;
    }
    if (!is_blocked(g)) {
        struct slice s = body;
        pass_reply(g, h);
        if (g->scrub == NULL || scrub_feed(g->scrub, body, &s) == 0)
            pass_body(g, s);
    }
    front_end(g);
}

static void front_fail(void *self, unsigned status, const char *code, const char *id UNUSED)
{
    struct grant *g = self;
    if (g->relay.tunnel && tunnel_down_closed(g->relay.tunnel)) {
        front_end(g); /* both had said goodbye: how the connection goes then is no matter */
        return;
    }
    grant_end_record(g, RECORD_ABORTED, code);
    grant_tell_fail(g, status, code);
}

static size_t front_room(void *self)
{
    struct grant *g = self;
    if (g->relay.tunnel)
        return spend_down_room(g->relay.spend, tunnel_down_room(g->relay.tunnel));
    if (g->reply.state != GATHER_OFF)
        return spend_down_room(g->relay.spend, gather_room(&g->reply));
    size_t room = g->relay.front.ops->room(g->relay.front.self);
    size_t held = g->scrub ? scrub_held(g->scrub) : 0;
    return room > held ? spend_down_room(g->relay.spend, room - held) : 0;
}

static void front_wanted(void *self)
{
    struct grant *g = self;
    if (g->body.state != GATHER_OFF)
        gather_pump(&g->body, g->relay.back);
    else if (g->upload)
        aws_upload_pump(g->upload);
    else
        relay_wanted(self);
}

const struct front_ops grant_front_ops = {
    .reply = front_reply,
    .data = front_data,
    .trailers = front_trailers,
    .end = front_end,
    .fail = front_fail,
    .room = front_room,
    .wanted = front_wanted,
};
