/* A request head arrived on a session: which authority is it for, and may that be? */
#include "session_internal.h"

#include "basic.h"
#include "gate_names.h"
#include "guide.h"
#include "inbound.h"
#include "mcp_host.h"
#include "policy.h"
#include "revoked.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

struct exchange *session_open_exchange(struct session *s, const struct requester *by)
{
    struct exchange *x = exchange_new(s->gate, &s->who, by->downstream);
    if (x)
        by->set_upstream(by->downstream.self, exchange_upstream(x));
    else
        by->downstream.ops->fail(by->downstream.self, 503, "memory", "-");
    return x;
}

void session_refuse(struct session *s, const struct requester *by, const struct head *h,
                    const struct authority *a, unsigned status, const char *code)
{
    struct exchange *x = session_open_exchange(s, by);
    if (x && s->inbound)
        exchange_inbound_refuse(x, s->inbound, status, code);
    else if (x)
        exchange_refuse(x, h, a, s->entry_name, status, code);
}

const char *session_identify(struct session *s, struct slice token)
{
    struct token t;
    struct sockaddr_storage peer;
    socklen_t len = sizeof peer;
    if (token.n >= sizeof s->who.token ||
        token_verify(s->gate->token_public, token, (uint64_t)time(NULL), &t, NULL) < 0)
        return "token_invalid";
    const char *why = revoked_why(s->gate->revoked, t.sandbox, t.expiry);
    if (why)
        return why;
    if (getpeername(io_fd(s->io), (struct sockaddr *)&peer, &len) < 0 ||
        !token_from(&t, (struct sockaddr *)&peer))
        return "token_source";
    s->who.route = gate_route(s->gate, t.policy);
    if (s->who.route == NULL)
        return "token_policy";
    s->who.expires = t.expiry;
    memcpy(s->who.token, token.p, token.n);
    s->who.token[token.n] = 0;
    snprintf(s->who.sandbox, sizeof s->who.sandbox, "%s", t.sandbox);
    memcpy(s->who.seed, t.seed, sizeof s->who.seed);
    s->who.has_seed = true;
    return NULL;
}

/* By the token that is the password in Proxy-Authorization. */
static const char *identify(struct session *s, const struct head *h)
{
    char plain[TOKEN_TEXT_MAX + 256];
    struct slice pair, user, password;
    if (s->gate->mode != GATE_TOKEN || s->tunnel)
        return NULL;
    const struct field *f = http_head_find(h, "proxy-authorization");
    if (f == NULL || http_head_count(h, "proxy-authorization") != 1)
        return "token_missing";
    if (basic_decode(f->value, plain, sizeof plain, &pair) < 0 ||
        basic_split(pair, &user, &password) < 0)
        return "token_invalid";
    return session_identify(s, password);
}

/* Whom a Host beside CONNECT may name: the target, or us, whom the request came to (ffmpeg). */
static bool connect_host_fits(const struct field *host, const struct authority *target)
{
    struct authority said = *target;
    return host == NULL ||
           (authority_parse(&said, SCHEME_HTTPS, host->value) == 0 &&
            (authority_same_host(&said, target) || strcmp(said.host, NAMES_SELF_HOST) == 0));
}

static void connect_request(struct session *s, struct http1_server *server,
                            const struct requester *by, struct head *h)
{
    struct authority a, plain;
    memset(&a, 0, sizeof a);
    s->entry_name = "connect";
    ssize_t colon = slice_find(h->target_authority, ':');
    if (colon < 0 || authority_parse(&a, SCHEME_HTTPS, h->target_authority) < 0) {
        session_refuse(s, by, h, NULL, 400, "malformed_host");
        return;
    }
    plain = a;
    plain.scheme = SCHEME_HTTP;
    if (!connect_host_fits(http_head_find(h, "host"), &a)) {
        session_refuse(s, by, h, &a, 421, "authority_mismatch");
        return;
    }
    if (h->body != BODY_NONE || buf_len(io_in(s->io)) > 0) {
        session_refuse(s, by, h, &a, 400, "early_data");
        return;
    }
    if (!session_host_allowed(s, &a) && !session_host_allowed(s, &plain)) {
        session_refuse(s, by, h, &a, 403, "no_rule");
        return;
    }
    if (io_write(s->io, "HTTP/1.1 200 Connection established\r\n\r\n", 39) < 0) {
        session_refuse(s, by, h, &a, 503, "memory");
        return;
    }
    http1_server_release(server);
    s->server = NULL;
    s->outer = a;
    s->outer_binds_name = true;
    session_enter_tunnel(s);
}

/* Host against the authority that the connection already has: 0, or the status of the refusal. */
unsigned session_host_refused(const struct session *s, const struct head *h)
{
    struct authority a;
    const struct field *host = http_head_find(h, "host");
    if (host == NULL)
        return h->minor == 0 ? 0 : 400; /* HTTP/1.0 may leave it out: the connection says it */
    if (authority_parse(&a, s->authority.scheme, host->value) < 0)
        return 400;
    return authority_eq(&a, &s->authority) ? 0 : 421;
}

static void start(struct session *s, const struct requester *by, struct head *h,
                  const struct authority *a)
{
    struct authority server;
    if (guide_is(a) && guide_server(h, &server))
        a = &server;
    else if (guide_is(a) && guide_start(s->gate, &s->who, by, h))
        return;
    h->knows_http2 = s->knows_http2 && !mcp_host_is(a); /* those are ours, and speak HTTP/1.1 */
    struct exchange *x = session_open_exchange(s, by);
    if (x)
        exchange_start(x, h, a, s->entry_name);
}

/* At the address of names that no rule names the client says which it is, and hears no. */
static void refused_name(struct session *s, const struct requester *by, const struct head *h)
{
    const struct field *host = http_head_find(h, "host");
    struct authority a = s->authority;
    if (a.scheme == SCHEME_HTTP && host && authority_parse(&a, SCHEME_HTTP, host->value) < 0)
        session_refuse(s, by, h, NULL, 400, "malformed_host");
    else if (session_host_allowed(s, &a)) /* it is somewhere else */
        session_refuse(s, by, h, &a, 421, "authority_mismatch");
    else
        session_refuse(s, by, h, &a, 403, "no_rule");
}

/* A server takes absolute form as well (RFC 9112 3.2.2): lftp and PHP write it into tunnels. It has
 * to name what the connection leads to; what goes on is in origin form. */
static bool target_fits(const struct session *s, const struct head *h)
{
    struct authority a = {.port = 0};
    enum scheme scheme = h->target_https ? SCHEME_HTTPS : SCHEME_HTTP;
    return h->form != TARGET_ABSOLUTE || (authority_parse(&a, scheme, h->target_authority) == 0 &&
                                          authority_eq(&a, &s->authority));
}

/* Inside a tunnel or at a transparent listener, where the connection has its authority. */
static void inner_request(struct session *s, const struct requester *by, struct head *h)
{
    if (h->form == TARGET_AUTHORITY) {
        session_refuse(s, by, h, &s->authority, 405, "connect_inside");
        return;
    }
    if (!target_fits(s, h)) {
        session_refuse(s, by, h, &s->authority, 400, "bad_target");
        return;
    }
    if (s->refusing && s->authority.scheme == SCHEME_HTTP) {
        refused_name(s, by, h);
        return;
    }
    unsigned status = session_host_refused(s, h);
    if (status) {
        if (by->close_after)
            by->close_after(by->downstream.self);
        session_refuse(s, by, h, &s->authority, status,
                       status == 421 ? "authority_mismatch" : "malformed_host");
        return;
    }
    if (s->refusing)
        refused_name(s, by, h);
    else
        start(s, by, h, &s->authority);
}

/* The first head on an explicit port, or any absolute-form one there. */
static void proxy_request(struct session *s, struct http1_server *server,
                          const struct requester *by, struct head *h)
{
    struct authority a, said;
    const char *code = identify(s, h);
    memset(&a, 0, sizeof a);
    if (code && strcmp(code, "fleet_unread") == 0) {
        session_refuse(s, by, h, NULL, 503, code);
        return;
    }
    if (code) {
        http1_server_refusal_field(server, "proxy-authenticate: Basic realm=\"durward\"\r\n");
        session_refuse(s, by, h, NULL, 407, code);
        return;
    }
    if (h->form == TARGET_AUTHORITY) {
        connect_request(s, server, by, h);
        return;
    }
    s->entry_name = "forward";
    /* https is never asked of a proxy in clear: what its client thinks private would not be */
    if (h->form != TARGET_ABSOLUTE || h->target_https ||
        authority_parse(&a, SCHEME_HTTP, h->target_authority) < 0) {
        session_refuse(s, by, h, NULL, 400, "bad_target");
        return;
    }
    const struct field *host = http_head_find(h, "host");
    if (host &&
        (authority_parse(&said, SCHEME_HTTP, host->value) < 0 || !authority_eq(&said, &a))) {
        session_refuse(s, by, h, &a, 400, "authority_mismatch");
        return;
    }
    start(s, by, h, &a);
}

/* What a provider sent on, each request with its own sandbox and destination. */
static void forwarded_request(struct session *s, const struct requester *by, struct head *h)
{
    struct authority a;
    struct refusal why;
    memset(&a, 0, sizeof a);
    if (session_forwarded(s, h, &a, &why) < 0)
        session_refuse(s, by, h, a.host[0] ? &a : NULL, why.status, why.code);
    else
        start(s, by, h, &a);
}

static void set_upstream(void *downstream, struct upstream upstream)
{
    http1_server_set_upstream(downstream, upstream);
}

static void close_after(void *downstream)
{
    http1_server_close_after(downstream);
}

/* Its connection is its downstream: one request at a time. */
static struct requester http1_requester(struct downstream downstream)
{
    return (struct requester){
        .downstream = downstream, .set_upstream = set_upstream, .close_after = close_after};
}

static void on_request(void *self, struct http1_server *server, struct head *h,
                       struct downstream downstream)
{
    struct session *s = self;
    struct requester by = http1_requester(downstream);
    s->server = server;
    if (s->inbound)
        session_inbound_request(s, &by, h);
    else if (s->entry == ENTRY_FORWARDED)
        forwarded_request(s, &by, h);
    else if (s->explicit_inner && !s->tunnel)
        proxy_request(s, server, &by, h);
    else
        inner_request(s, &by, h);
}

static void refused(struct session *s, const struct requester *by, const struct head *h,
                    const struct refusal *why)
{
    session_refuse(s, by, h, s->authority.host[0] ? &s->authority : NULL, why->status, why->code);
}

static void on_refused(void *self, struct http1_server *server, const struct head *h,
                       struct downstream downstream, const struct refusal *why)
{
    struct session *s = self;
    struct requester by = http1_requester(downstream);
    s->server = server;
    if (s->entry == ENTRY_FORWARDED)
        s->who.sandbox[0] = 0; /* of the request before */
    refused(s, &by, h, why);
}

static void on_closed(void *self)
{
    struct session *s = self;
    s->server = NULL;
    session_close(s, "connection over");
}

static struct faults *faults_of(void *self, bool unread)
{
    struct session *s = self;
    if (unread && s->entry == ENTRY_FORWARDED)
        s->who.sandbox[0] = 0; /* of the request before */
    return session_faults(s);
}

const struct http1_server_ops session_http1_ops = {
    .request = on_request,
    .refused = on_refused,
    .faults = faults_of,
    .closed = on_closed,
};

static void on_request2(void *self, const struct requester *by, struct head *h)
{
    inner_request(self, by, h);
}

static void on_inbound2(void *self, const struct requester *by, struct head *h)
{
    session_inbound_request(self, by, h);
}

static void on_refused2(void *self, const struct requester *by, const struct head *h,
                        const struct refusal *why)
{
    refused(self, by, h, why);
}

static void on_breach2(void *self, const char *code, const char *detail)
{
    session_note_denied(self, code, detail);
}

static void on_closed2(void *self)
{
    struct session *s = self;
    s->server2 = NULL;
    session_close(s, "connection over");
}

const struct http2_server_ops session_http2_ops = {
    .ahead = INJECTOR_CHANNEL_WINDOW,
    .request = on_request2,
    .refused = on_refused2,
    .breach = on_breach2,
    .closed = on_closed2,
};

const struct http2_server_ops session_clear_http2_ops = {
    .ahead = INJECTOR_CHANNEL_WINDOW,
    .schemes = HTTP2_IN_CLEAR,
    .request = on_request2,
    .refused = on_refused2,
    .breach = on_breach2,
    .closed = on_closed2,
};

const struct http2_server_ops session_inbound_http2_ops = {
    .ahead = INJECTOR_CHANNEL_WINDOW,
    .schemes = HTTP2_EITHER,
    .request = on_inbound2,
    .refused = on_refused2,
    .breach = on_breach2,
    .closed = on_closed2,
};
