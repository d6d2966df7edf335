/* An injection as the front of its origin: the reply looked through for the secret, then passed on.
 */
#include "injection_internal.h"

#include "meter.h"
#include "scrub_places.h"
#include "budget_client.h"
#include "tunnel.h"

#include <stdlib.h>

/* The rule would rather have no reply than one with the secret taken out. */
static bool is_blocked(const struct injection *g)
{
    return g->on_reflect != REFLECT_REDACT && injection_hits(g) > 0;
}

/* In a copy of our own. -1: out of memory. */
static int clean_head(struct injection *g, struct head *to, const struct head *from)
{
    ssize_t n = scrub_head(scrub_set(g->scrub), to, from);
    g->head_hits += n > 0 ? (uint64_t)n : 0;
    return n < 0 ? -1 : 0;
}

static void on_tunnel_over(void *self, const char *code)
{
    struct injection *g = self;
    struct downstream f = g->relay.downstream;
    injection_end_record(g, RECORD_ABORTED, code);
    g->relay.upstream.ops->cancel(g->relay.upstream.self, code);
    injection_set_state(g, G_DONE);
    injection_release(g);
    f.ops->end(f.self);
}

static int open_tunnel(struct injection *g)
{
    struct tunnel_owner owner = {on_tunnel_over, g};
    g->frames.scrub = g->scrub;
    struct tunnel_filter up, down = scrub_frames_filter(&g->frames);
    if (g->session && injection_session_filters(g, &up, &down) < 0)
        return -1;
    if (g->session)
        return relay_open_tunnel(&g->relay, g->injector->base, owner, TUNNEL_STRICT_DOWN, &up,
                                 &down);
    return relay_open_tunnel(&g->relay, g->injector->base, owner, TUNNEL_STRICT_DOWN, NULL,
                             g->scrub ? &down : NULL);
}

/* False: its body is another than a client would await, or it is too large for a gate. */
static bool pass_reply(struct injection *g, const struct head *h)
{
    if (!injector_channel_fits(h) || !reply_length_begin(&g->length, g->bodiless, h))
        return false;
    g->relay.downstream.ops->reply(g->relay.downstream.self, h);
    if (g->relay.tunnel) /* frames may wait already */
        g->relay.downstream.ops->wanted(g->relay.downstream.self);
    return true;
}

/* False: the injection is gone. */
static bool pass_head(struct injection *g, const struct head *h)
{
    struct head clean;
    http_head_init(&clean);
    int r = g->scrub ? clean_head(g, &clean, h) : 0;
    bool blocked = r == 0 && g->scrub && is_blocked(g),
         passed = r == 0 && !blocked && pass_reply(g, g->scrub ? &clean : h);
    http_head_free(&clean);
    if (blocked)
        injection_abandon(g, 502, "secret_reflected");
    else if (r < 0)
        injection_abandon(g, 503, "memory");
    else if (!passed)
        injection_abandon(g, 502, "upstream_protocol");
    return passed;
}

static bool abandon(struct injection *g, unsigned status, const char *code)
{
    injection_abandon(g, status, code);
    return false;
}

/* In a copy that says nothing of its length: it may become shorter. */
static bool take_shorter(struct injection *g, const struct head *h)
{
    struct head clean;
    bool ok = http_head_copy(&clean, h) == 0;
    clean.body = BODY_CHUNKED;
    ok = ok ? pass_head(g, &clean) : abandon(g, 503, "memory");
    http_head_free(&clean);
    return ok;
}

/* Its head waits, or goes on. */
static bool take_messages(struct injection *g, const struct head *h, enum mcp_form form)
{
    if (injection_mcp_reply(g, h, form) < 0)
        return abandon(g, 503, "memory");
    return g->messages_whole || take_shorter(g, h);
}

/* A copy that says what was asked for. */
static bool take_part(struct injection *g, const struct head *h)
{
    struct head cut;
    bool ok = http_head_copy(&cut, h) == 0;
    if (!ok) {
        http_head_free(&cut);
        return abandon(g, 503, "memory");
    }
    ok = byte_range_cut(&g->range, SCRUB_LONGEST, &cut, &g->cut) == 0;
    g->relay.status = cut.status;
    ok = ok ? pass_head(g, &cut) : abandon(g, 502, "upstream_protocol");
    http_head_free(&cut);
    return ok;
}

/* There is something that its bytes could hold. */
static bool is_searched(const struct injection *g)
{
    return g->unsearched || (g->scrub && scrub_set_longest(scrub_set(g->scrub)) > 0);
}

/* Something of ours has to read its body. */
static bool is_read(const struct injection *g)
{
    const struct rule *rule = g->decided.rule;
    return is_searched(g) || rule->n_captures > 0 || rule_read_again(rule);
}

bool injection_take_reply(struct injection *g, const struct head *h)
{
    g->coded = h->body != BODY_NONE && scrub_head_coded(h);
    if (g->coded && is_read(g))
        return abandon(g, 502, "cannot_scrub");
    /* its client has nothing to log in with, unless it has logged in inside */
    if (h->status == 401 && injection_mcp(g) && g->filled && !g->decided.credential->captured) {
        return abandon(g, 502, "mcp_login");
    }
    enum mcp_form form = injection_mcp_form(g, h);
    if (form == MCP_FORM_DOUBTFUL)
        return abandon(g, 502, "mcp_reply");
    g->relay.status = h->status;
    injection_llm_reply(g, h);
    g->in_messages = grpc_has_messages(h);
    if (h->body == BODY_TUNNEL && open_tunnel(g) < 0)
        return abandon(g, 503, "memory");
    if (injection_captures(g, h)) {
        injection_capture_begin(g, h);
        return true;
    }
    if (g->range.name)
        return take_part(g, h);
    int cuts = injection_llm_cuts(g);
    if (cuts != 0)
        return cuts > 0 ? take_shorter(g, h) : abandon(g, 503, "memory");
    return form == MCP_FORM_NONE ? pass_head(g, h) : take_messages(g, h, form);
}

static void downstream_reply(void *self, const struct head *h)
{
    if (!injection_renew_holds(self, h))
        injection_take_reply(self, h);
}

static void pass_bytes(struct injection *g, struct slice s)
{
    g->misframed = g->misframed || !reply_length_take(&g->length, s.n);
    if (g->misframed)
        return;
    g->relay.down += s.n;
    if (!g->unsearched)
        relay_capture(&g->relay, BODY_REPLY, s.p, s.n);
    if (s.n > 0)
        g->relay.downstream.ops->data(g->relay.downstream.self, s.p, s.n);
}

/* Of a wider part only what was asked for. */
static void pass_body(struct injection *g, struct slice s)
{
    pass_bytes(g, byte_cut_take(&g->cut, s));
}

static void downstream_data(void *self, const void *p, size_t n)
{
    struct injection *g = self;
    struct slice s = {p, n};
    budget_client_down(g->relay.budget_client, n);
    injection_llm_feed(g, p, n);
    if (g->relay.tunnel) {
        tunnel_down(g->relay.tunnel, p, n);
        return;
    }
    if (g->reply.state != BODY_BUFFER_OFF) {
        injection_capture_data(g, p, n);
        return;
    }
    if (g->messages) {
        if (injection_mcp_feed(g, p, n))
            (void)injection_mcp_pump(g);
        return;
    }
    if (g->coded && is_searched(g)) { /* the host was given a secret since it began */
        injection_abandon(g, 502, "cannot_scrub");
        return;
    }
    bool over = g->in_messages && grpc_message_over(&g->message, s);
    meter_add(METER_SCRUBBED_BYTES, g->scrub ? n : 0);
    if (injection_llm_cut(g, &s) < 0 || (g->scrub && scrub_feed(g->scrub, s, &s) < 0)) {
        injection_abandon(g, 503, "memory");
        return;
    }
    if (is_blocked(g)) {
        injection_abandon(g, 502, "secret_reflected");
        return;
    }
    pass_body(g, s);
    if (g->cut.bad || g->misframed) { /* more than the origin said it had */
        injection_abandon(g, 502, "upstream_protocol");
        return;
    }
    if (over && g->scrub && scrub_early(g->scrub, &s) == 0)
        pass_body(g, s); /* a peer waits for it before it says more */
}

/* What the search still holds of the body goes on: there is no more of it. */
static int flush_scrub(struct injection *g)
{
    struct slice rest = {"", 0}, held = injection_llm_cut_end(g);
    if (!g->body_whole && held.n > 0) {
        if (g->scrub && scrub_feed(g->scrub, held, &held) < 0)
            return -1;
        if (!is_blocked(g))
            pass_body(g, held);
    }
    if (g->scrub && !g->body_whole && scrub_end(g->scrub, &rest) < 0)
        return -1;
    g->body_whole = true;
    if (is_blocked(g) || !byte_cut_close(&g->cut, rest.n))
        return 0;       /* finish tells */
    pass_body(g, rest); /* the room for it was never given away */
    pass_bytes(g, byte_cut_end(&g->cut));
    return 0;
}

/* A client awaits more than came, or less. */
static bool is_misframed(const struct injection *g)
{
    return g->cut.bad || g->misframed || !reply_length_whole(&g->length);
}

/* What is left of it once the origin has said all. */
static void finish(struct injection *g)
{
    struct downstream f = g->relay.downstream;
    if (flush_scrub(g) < 0) {
        injection_end_record(g, RECORD_ABORTED, "memory");
        injection_tell_fail(g, 503, "memory");
    } else if (is_blocked(g)) {
        injection_end_record(g, RECORD_ABORTED, "secret_reflected");
        injection_tell_fail(g, 502, "secret_reflected");
    } else if (is_misframed(g)) { /* the origin said more than it had */
        injection_end_record(g, RECORD_ABORTED, "upstream_protocol");
        injection_tell_fail(g, 502, "upstream_protocol");
    } else {
        injection_end_record(g, RECORD_COMPLETED, "ok");
        injection_set_state(g, G_DONE);
        injection_release(g);
        f.ops->end(f.self);
    }
}

static void give_up(struct injection *g, unsigned status, const char *code)
{
    if (g->state != G_DRAINING) {
        injection_abandon(g, status, code);
        return;
    }
    injection_end_record(g, RECORD_ABORTED, code);
    injection_tell_fail(g, status, code);
}

/* A piece of what may go on, as far as the downstream has room. */
static size_t next_piece(const struct injection *g)
{
    size_t room = g->relay.downstream.ops->room(g->relay.downstream.self),
           held = g->scrub ? scrub_held(g->scrub) : 0, n = injection_mcp_out(g).n;
    room = room > held ? room - held : 0;
    n = n < room ? n : room;
    return n < STREAM_CHUNK ? n : STREAM_CHUNK;
}

bool injection_mcp_pump(struct injection *g)
{
    size_t n;
    if (g->messages_whole && g->state != G_DRAINING)
        return true;
    while ((n = next_piece(g)) > 0) {
        struct slice s = {injection_mcp_out(g).p, n};
        meter_add(METER_SCRUBBED_BYTES, g->scrub ? n : 0);
        int r = g->scrub ? scrub_feed(g->scrub, s, &s) : 0;
        if (r < 0 || is_blocked(g)) {
            give_up(g, r < 0 ? 503 : 502, r < 0 ? "memory" : "secret_reflected");
            return false;
        }
        pass_body(g, s);
        injection_mcp_drain(g, n);
    }
    if (injection_mcp_out(g).n > 0 || g->state != G_DRAINING)
        return true;
    finish(g);
    return false;
}

void injection_leave_origin(struct injection *g)
{
    g->facts = *origin_facts(g->origin);
    g->origin = NULL;
    g->relay.upstream = (struct upstream){NULL, NULL};
}

static void end_messages(struct injection *g)
{
    injection_leave_origin(g);
    injection_set_state(g, G_DRAINING);
    if (!injection_mcp_close(g))
        return;
    if (g->messages_whole) {
        struct head clean;
        int r = g->scrub ? clean_head(g, &clean, &g->held) : http_head_copy(&clean, &g->held);
        bool blocked = r == 0 && is_blocked(g),
             passed = r == 0 && !blocked && pass_reply(g, &clean);
        http_head_free(&clean);
        if (!passed) {
            give_up(g, r < 0 ? 503 : 502,
                    r < 0     ? "memory"
                    : blocked ? "secret_reflected"
                              : "upstream_protocol");
            return;
        }
    }
    (void)injection_mcp_pump(g);
}

/* Trailers come after the body, so what the search still holds of it goes first. */
static void downstream_trailers(void *self, const struct head *fields)
{
    struct injection *g = self;
    struct head clean;
    if (g->relay.tunnel || g->messages || g->state == G_RENEWING ||
        g->reply.state != BODY_BUFFER_OFF) /* they would say nothing of a body that is another */
        return;
    g->misframed = g->misframed || !injector_channel_fits(fields);
    if (flush_scrub(g) < 0 || is_blocked(g) || is_misframed(g))
        return;
    if (g->scrub == NULL) {
        g->relay.downstream.ops->trailers(g->relay.downstream.self, fields);
        return;
    }
    int r = clean_head(g, &clean, fields);
    if (r == 0)
        g->relay.downstream.ops->trailers(g->relay.downstream.self, &clean);
    http_head_free(&clean);
}

void injection_reply_end(struct injection *g)
{
    struct downstream f = g->relay.downstream;
    injection_llm_close(g);
    if (g->reply.state != BODY_BUFFER_OFF) {
        injection_capture_end(g);
        return;
    }
    if (g->messages) {
        end_messages(g);
        return;
    }
    if (g->relay.tunnel) {
        bool cut = !tunnel_down_closed(g->relay.tunnel);
        injection_end_record(g, RECORD_COMPLETED, "ok");
        if (cut) {
            injection_tell_fail(g, 502, "upstream_closed");
            return;
        }
        injection_set_state(g, G_DONE);
        injection_release(g);
        f.ops->end(f.self);
        return;
    }
    finish(g);
}

static void downstream_end(void *self)
{
    if (!injection_renew_gone(self, 0, NULL))
        injection_reply_end(self);
}

void injection_pass_whole(struct injection *g, struct head *h, struct slice body)
{
    struct head clean;
    struct slice s = body;
    bool failed = g->scrub && clean_head(g, &clean, h) < 0;
    if (g->scrub && !failed) {
        http_head_free(h);
        *h = clean;
    }
    if (!failed && !is_blocked(g)) {
        g->misframed = !pass_reply(g, h);
        failed = g->scrub && scrub_feed(g->scrub, body, &s) < 0;
        if (!failed)
            pass_body(g, s);
    }
    if (failed) {
        injection_end_record(g, RECORD_ABORTED, "memory");
        injection_tell_fail(g, 503, "memory");
        return;
    }
    injection_reply_end(g);
}

static void downstream_fail(void *self, unsigned status, const char *code, const char *id UNUSED)
{
    struct injection *g = self;
    if (injection_renew_gone(g, status, code))
        return;
    if (g->relay.tunnel && tunnel_down_closed(g->relay.tunnel)) {
        injection_reply_end(
            g); /* both had said goodbye: how the connection goes then is no matter */
        return;
    }
    injection_end_record(g, RECORD_ABORTED, code);
    injection_tell_fail(g, status, code);
}

static size_t downstream_room(void *self)
{
    struct injection *g = self;
    if (g->state == G_RENEWING)
        return 0;
    if (g->relay.tunnel)
        return budget_client_down_room(g->relay.budget_client, tunnel_down_room(g->relay.tunnel));
    if (g->reply.state != BODY_BUFFER_OFF)
        return budget_client_down_room(g->relay.budget_client, body_buffer_room(&g->reply));
    if (g->messages)
        return budget_client_down_room(g->relay.budget_client, injection_mcp_room(g));
    size_t room = g->relay.downstream.ops->room(g->relay.downstream.self);
    size_t held = (g->scrub ? scrub_held(g->scrub) : 0) + g->cut.held + injection_llm_held(g);
    return room > held ? budget_client_down_room(g->relay.budget_client, room - held) : 0;
}

static void downstream_wanted(void *self)
{
    struct injection *g = self;
    if (g->relay.upstream.ops == NULL) /* gone while its reply is held */
        return;
    if (g->body.state != BODY_BUFFER_OFF)
        body_buffer_pump(&g->body, g->relay.upstream);
    else if (g->upload)
        aws_upload_pump(g->upload);
    else
        relay_wanted(self);
}

const struct downstream_ops injection_downstream_ops = {
    .reply = downstream_reply,
    .data = downstream_data,
    .trailers = downstream_trailers,
    .end = downstream_end,
    .fail = downstream_fail,
    .room = downstream_room,
    .wanted = downstream_wanted,
};
