/* The states of a request to an origin: waiting for another's dial, dialling, handshake, active. It
 * is sent again only while its head is still kept. */
#include "origin.h"

#include "assertion.h"
#include "client_cert.h"
#include "dial_client.h"
#include "grpc_message.h"
#include "http1_head.h"
#include "http1_write.h"
#include "meter.h"
#include "tls_sessions.h"

#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { IN_MIN = 32 * 1024 };

enum origin_state { O_WAITING = 0, O_DIALLING, O_HANDSHAKE, O_ACTIVE, O_DONE };

struct origin {
    struct origin_env env;
    struct dial_client *dial;
    struct downstream downstream;
    struct authority authority;
    enum origin_state state;
    struct head *head; /* kept while the request may be sent again, then NULL */
    char method[16];
    enum body_kind body;
    enum pool_want want;
    bool grpc;
    bool knows_http2; /* in clear, by prior knowledge: nothing chooses it */
    char *key, *id, *token;
    struct pool_wait *pool_wait; /* WAITING: for another's dial */
    struct pool_dial *dialling;
    struct dial_wait *wait;
    struct io *io;                          /* HANDSHAKE */
    struct client_cert *cert;               /* or NULL */
    struct client_proof *proof;             /* HANDSHAKE, if there is one */
    struct upstream_stream upstream_stream; /* ACTIVE */
    struct http1_client *client;            /* in use; if it goes back to the pool */
    struct origin_facts facts;
    struct trace trace;
    bool request_done, body_begun, replied, retried;
};

static const char *const states[] = {
    [O_WAITING] = "origin: waiting", [O_DIALLING] = "origin: dialling",
    [O_HANDSHAKE] = "origin: TLS",   [O_ACTIVE] = "origin: sending",
    [O_DONE] = "origin: done",
};

static void set_state(struct origin *o, enum origin_state s)
{
    ASSERT(o->state != O_DONE || s == O_DONE);
    TRACE(&o->trace, states[s], "%s", o->facts.reused ? "on a connection of the pool" : "");
    o->state = s;
}

/* It cannot be sent again from here on. */
static void drop_head(struct origin *o)
{
    if (o->head)
        http_head_free(o->head);
    free(o->head);
    o->head = NULL;
}

static void origin_free(struct origin *o)
{
    pool_wait_cancel(o->pool_wait);
    pool_dial_over(o->dialling, false);
    dial_client_cancel(o->wait);
    client_proof_free(o->proof);
    io_close(o->io);
    drop_head(o);
    free(o->key);
    free(o->id);
    free(o->token);
    free(o);
}

static void origin_fail(struct origin *o, unsigned status, const char *code, const char *detail)
{
    set_state(o, O_DONE);
    snprintf(o->facts.detail, sizeof o->facts.detail, "%s", detail ? detail : "");
    o->downstream.ops->fail(o->downstream.self, status, code, NULL);
    origin_free(o);
}

static const struct client_ops client_ops;

/* As the pool has it. */
static struct slice owner_of(const struct origin *o)
{
    return (struct slice){o->key, strcspn(o->key, "|")};
}

/* The dial is over: who waited for it may go on. */
static void dial_over(struct origin *o, bool failed)
{
    struct pool_dial *d = o->dialling;
    o->dialling = NULL;
    pool_dial_over(d, failed);
}

static int start_http1(struct origin *o)
{
    struct buf text;
    buf_init(&text, STREAM_OUT_MAX / 2);
    text.wipe = o->env.wipe;
    int r = http1_write_request(&text, o->head, &o->authority);
    if (r == 0) {
        http1_client_start(o->client, &client_ops, o, buf_slice(&text), slice_str(o->method),
                           o->body);
        o->upstream_stream = http1_client_open_stream(o->client);
    } else {
        http1_client_close(o->client);
        o->client = NULL;
    }
    buf_free(&text);
    return r;
}

/* -1: out of memory. */
static int start(struct origin *o, struct connection c)
{
    o->client = c.http1;
    o->facts.sent = meter_now();
    o->facts.protocol = c.http2 ? "h2" : "http/1.1";
    if (c.http2) {
        o->upstream_stream =
            http2_client_open_stream(c.http2, &client_ops, o, o->head, &o->authority);
        snprintf(o->facts.address, sizeof o->facts.address, "%s", http2_client_address(c.http2));
    } else if (start_http1(o) < 0) {
        return -1;
    }
    if (o->upstream_stream.ops == NULL)
        return -1;
    set_state(o, O_ACTIVE);
    if (o->request_done)
        o->upstream_stream.ops->end(o->upstream_stream.self);
    return 0;
}

/* From the event loop; origin_open does the same without telling anyone. */
static void start_told(struct origin *o, struct connection c)
{
    if (start(o, c) < 0)
        origin_fail(o, 503, "memory", NULL);
    else if (!o->request_done)
        o->downstream.ops->wanted(o->downstream.self);
}

static void connected_http2(struct origin *o, struct io *io)
{
    if (!o->knows_http2)
        pool_spoke(o->env.pool, o->key, true);
    struct connection c = pool_take(o->env.pool, o->key, POOL_HTTP2);
    if (c.http2) { /* another was quicker: one connection serves both */
        io_close(io);
        o->facts.reused = true;
    } else {
        c.http2 = http2_client_new(o->env.base, io, o->env.limits, o->env.wipe, o->facts.address);
        if (c.http2 && pool_add(o->env.pool, o->key, c.http2) < 0)
            c.http2 = NULL;
    }
    dial_over(o, false);
    if (c.http2)
        start_told(o, c);
    else
        origin_fail(o, 503, "memory", NULL);
}

static void connected_http1(struct origin *o, struct io *io)
{
    struct connection c = {NULL, NULL};
    if (o->want != POOL_SOCKET)
        pool_spoke(o->env.pool, o->key, false);
    dial_over(o, false);
    if (o->grpc) {
        io_close(io);
        origin_fail(o, 502, "grpc_needs_h2", "the origin speaks no HTTP/2");
        return;
    }
    c.http1 = http1_client_new(io, o->env.limits);
    if (c.http1)
        start_told(o, c);
    else
        origin_fail(o, 503, "memory", NULL);
}

static void connected(struct origin *o)
{
    struct io *io = o->io;
    bool unasked = o->proof && !client_proof_given(o->proof);
    if (unasked) {
        dial_over(o, true);
        origin_fail(o, 502, "upstream_tls", "the origin asked for no client certificate");
        return;
    }
    client_proof_free(o->proof);
    o->proof = NULL;
    o->io = NULL;
    io_deadline(io, 0);
    switch (o->knows_http2 ? ORIGIN_HTTP2 : origin_protocol(io_ssl(io))) {
    case ORIGIN_HTTP1:
        connected_http1(o, io);
        return;
    case ORIGIN_HTTP2:
        if (o->want != POOL_SOCKET) {
            connected_http2(o, io);
            return;
        }
        break; /* not offered */
    case ORIGIN_UNKNOWN:
        break;
    }
    io_close(io);
    origin_fail(o, 502, "upstream_protocol", "the origin chose a protocol that was not offered");
}

static void on_handshake(struct io *io, enum io_event ev, void *arg)
{
    struct origin *o = arg;
    switch (ev) {
    case IO_CONNECTED:
        meter_add(METER_ORIGIN_HANDSHAKES, 1);
        meter_add(METER_ORIGIN_RESUMED, SSL_session_reused(io_ssl(io)) == 1);
        o->facts.secured = meter_now();
        snprintf(o->facts.tls, sizeof o->facts.tls, "%s %s", SSL_get_version(io_ssl(io)),
                 SSL_get_cipher_name(io_ssl(io)));
        connected(o);
        return;
    case IO_ERROR:
        dial_over(o, true);
        origin_fail(o, 502, "upstream_tls", io_why(io));
        return;
    case IO_EOF:
        dial_over(o, true);
        origin_fail(o, 502, "upstream_tls", "the origin closed during the handshake");
        return;
    case IO_TIMEOUT:
        dial_over(o, true);
        origin_fail(o, 504, "upstream_timeout", "TLS handshake with the origin");
        return;
    case IO_READABLE:
    case IO_DRAINED:
        return;
    }
}

/* A head and a little more: what waits here for a reader that takes nothing, it holds for each. */
static size_t in_max(const struct limits *l)
{
    size_t most = l->head_bytes + 1024;
    return most > IN_MIN ? most : IN_MIN;
}

/* Each connection with a client certificate proves it anew: none is resumed. */
static int prepare_tls(struct origin *o, SSL *ssl)
{
    if (o->cert == NULL)
        return tls_sessions_begin(pool_sessions(o->env.pool), o->key, ssl);
    o->proof = client_proof_new(o->cert, o->io, ssl);
    return o->proof ? 0 : -1;
}

static void on_dialled(void *arg, int fd, const char *address, const char *code, const char *detail)
{
    struct origin *o = arg;
    o->wait = NULL;
    if (fd < 0) {
        dial_over(o, true);
        bool policy = strcmp(code, "denied") == 0 || strcmp(code, "blocked_ip") == 0;
        bool ours = strcmp(code, "overload") == 0 || strcmp(code, "share_used") == 0 ||
                    strcmp(code, "dialer_gone") == 0 || strcmp(code, "audit") == 0;
        bool late = strcmp(code, "timeout") == 0;
        origin_fail(o, policy ? 403 : ours ? 503 : late ? 504 : 502, code, detail);
        return;
    }
    snprintf(o->facts.address, sizeof o->facts.address, "%s", address);
    o->facts.dialled = meter_now();
    o->io = io_new(o->env.base, fd, in_max(o->env.limits), STREAM_OUT_MAX, o->env.wipe);
    if (o->io == NULL) {
        origin_fail(o, 503, "memory", NULL);
        return;
    }
    io_owner(o->io, owner_of(o));
    if (o->authority.scheme == SCHEME_HTTP) {
        connected(o);
        return;
    }
    SSL *ssl = origin_ssl(o->env.tls, &o->authority, o->want == POOL_SOCKET);
    if (ssl == NULL || prepare_tls(o, ssl) < 0) {
        SSL_free(ssl);
        origin_fail(o, 503, "memory", NULL);
        return;
    }
    set_state(o, O_HANDSHAKE);
    io_callback(o->io, on_handshake, o);
    io_deadline(o->io, o->env.limits->dial_seconds);
    io_tls_connect(o->io, ssl);
}

static struct dial_wait *ask_dialer(struct origin *o)
{
    dial_client_next_trace(o->dial, &o->trace);
    struct dial_wait *w =
        dial_client_get(o->dial, owner_of(o), &o->authority, o->id, o->token, on_dialled, o);
    dial_client_begun(w, &o->facts.opened); /* until then it is in no queue_ms but ours */
    return w;
}

static int dial(struct origin *o)
{
    set_state(o, O_DIALLING);
    if (o->want != POOL_SOCKET) /* what it makes serves nobody else */
        o->dialling = pool_dial(o->env.pool, o->key);
    o->wait = ask_dialer(o);
    return o->wait ? 0 : -1;
}

static void on_waited(void *arg, bool again);

/* A connection of the pool, or that which another request is just making, or one of our own. What
 * was started is not told to the downstream. -1: out of memory. */
static int find_way(struct origin *o, bool may_wait)
{
    struct connection c = pool_take(o->env.pool, o->key, o->want);
    if (c.http1 || c.http2) {
        o->facts.reused = true;
        meter_add(METER_POOL_REUSED, 1);
        return start(o, c);
    }
    if (may_wait)
        meter_add(METER_POOL_FRESH, 1);
    if (may_wait && o->want != POOL_SOCKET) {
        o->pool_wait = pool_wait(o->env.pool, o->key, o->knows_http2, on_waited, o);
        set_state(o, O_WAITING);
        if (o->pool_wait)
            return 0;
    }
    return dial(o);
}

static void find_way_told(struct origin *o, bool may_wait)
{
    if (find_way(o, may_wait) < 0)
        origin_fail(o, 503, "memory", NULL);
    else if (o->state == O_ACTIVE && !o->request_done)
        o->downstream.ops->wanted(o->downstream.self);
}

static void on_waited(void *arg, bool again)
{
    struct origin *o = arg;
    o->pool_wait = NULL;
    find_way_told(o, again);
}

/* ---- what the connection tells ---- */

static void on_reply(void *arg, const struct head *h)
{
    struct origin *o = arg;
    o->replied = true;
    o->facts.replied = meter_now();
    o->facts.repaired |= h->repaired;
    drop_head(o);
    o->downstream.ops->reply(o->downstream.self, h);
}

static void on_data(void *arg, const void *p, size_t n)
{
    struct origin *o = arg;
    o->downstream.ops->data(o->downstream.self, p, n);
}

static void on_trailers(void *arg, const struct head *fields)
{
    struct origin *o = arg;
    o->downstream.ops->trailers(o->downstream.self, fields);
}

static void on_end(void *arg)
{
    struct origin *o = arg;
    struct http1_client *c = o->client;
    o->client = NULL;
    set_state(o, O_DONE);
    if (c && o->request_done && http1_client_reusable(c))
        pool_give(o->env.pool, o->key, c);
    else
        http1_client_close(c);
    o->downstream.ops->end(o->downstream.self);
    origin_free(o);
}

/* Sent again, once: what the origin says it has not begun, and a safe method that
 * failed on a reused connection before any reply byte. A body that was begun is not kept, so not
 * then. */
static bool may_retry(const struct origin *o, const char *code)
{
    bool safe = strcmp(o->method, "GET") == 0 || strcmp(o->method, "HEAD") == 0 ||
                strcmp(o->method, "OPTIONS") == 0;
    if (o->replied || o->body_begun || o->retried || o->head == NULL)
        return false;
    return strcmp(code, "upstream_refused") == 0 ||
           (safe && o->facts.reused && strcmp(code, "upstream_closed") == 0);
}

static void on_fail(void *arg, const char *code, const char *detail)
{
    struct origin *o = arg;
    bool http1 = o->client != NULL;
    o->client = NULL;
    o->upstream_stream.ops = NULL;
    if (!may_retry(o, code)) {
        origin_fail(o, strcmp(code, "upstream_timeout") == 0 ? 504 : 502, code, detail);
        return;
    }
    o->retried = true;
    o->facts.reused = false;
    if (!http1)
        find_way_told(o, true);
    else if (dial(o) < 0) /* what else idles may be dead as well */
        origin_fail(o, 503, "memory", NULL);
}

static size_t on_room(void *arg)
{
    struct origin *o = arg;
    return o->downstream.ops->room(o->downstream.self);
}

static void on_wanted(void *arg)
{
    struct origin *o = arg;
    if (!o->request_done)
        o->downstream.ops->wanted(o->downstream.self);
}

static const struct client_ops client_ops = {
    .reply = on_reply,
    .data = on_data,
    .trailers = on_trailers,
    .end = on_end,
    .fail = on_fail,
    .room = on_room,
    .wanted = on_wanted,
};

/* ---- what the downstream asks ---- */

static void upstream_data(void *self, const void *p, size_t n)
{
    struct origin *o = self;
    o->body_begun = true;
    drop_head(o);
    if (o->state == O_ACTIVE)
        o->upstream_stream.ops->data(o->upstream_stream.self, p, n);
}

static void upstream_end(void *self)
{
    struct origin *o = self;
    o->request_done = true;
    if (o->state == O_ACTIVE)
        o->upstream_stream.ops->end(o->upstream_stream.self);
}

static size_t upstream_room(void *self)
{
    struct origin *o = self;
    return o->state == O_ACTIVE ? o->upstream_stream.ops->room(o->upstream_stream.self) : 0;
}

static void upstream_resume(void *self)
{
    struct origin *o = self;
    if (o->state == O_ACTIVE)
        o->upstream_stream.ops->resume(o->upstream_stream.self);
}

static void upstream_cancel(void *self, const char *code UNUSED)
{
    struct origin *o = self;
    struct upstream_stream l = o->upstream_stream;
    bool active = o->state == O_ACTIVE;
    set_state(o, O_DONE);
    origin_free(o);
    if (active)
        l.ops->drop(l.self);
}

static const struct upstream_ops upstream_ops = {
    .data = upstream_data,
    .end = upstream_end,
    .room = upstream_room,
    .resume = upstream_resume,
    .cancel = upstream_cancel,
};

struct upstream origin_upstream(struct origin *o)
{
    return (struct upstream){&upstream_ops, o};
}

const struct origin_facts *origin_facts(const struct origin *o)
{
    return &o->facts;
}

static void put_ms(struct record *to, enum record_field f, uint64_t from, uint64_t until)
{
    if (from && until >= from)
        record_put_u64(to, f, (until - from) / 1000);
}

void origin_record(const struct origin_facts *f, uint64_t begun, struct record *to)
{
    char repaired[REPAIR_TEXT];
    record_put_str(to, RF_ADDRESS, f->address);
    record_put_str(to, RF_DETAIL, f->detail);
    /* who got a connection that another request was making has waited for it */
    put_ms(to, RF_QUEUE_MS, begun, f->reused ? f->sent : f->opened);
    if (!f->reused) {
        put_ms(to, RF_DIAL_MS, f->opened, f->dialled);
        put_ms(to, RF_TLS_MS, f->dialled, f->secured);
        record_put_str(to, RF_TLS, f->tls);
    }
    put_ms(to, RF_FIRST_MS, f->sent, f->replied);
    if (f->protocol)
        record_put_str(to, RF_PROTOCOL, f->protocol);
    record_put_str(to, RF_REPAIRED, repair_text(f->repaired, repaired));
}

/* What came by prior knowledge goes so, on connections of its own: who speaks HTTP/1.1 to this host
 * keeps to that. A WebSocket goes by HTTP/1.1, unless such a connection is there that takes it. -1:
 * out of memory. */
static int settle_key(struct origin *o, const struct head *h, const char *key)
{
    bool http2 = h->knows_http2;
    ASSERT(!http2 || o->authority.scheme == SCHEME_HTTP);
    size_t room = strlen(key) + sizeof "|h2c";
    o->key = malloc(room);
    if (o->key == NULL)
        return -1;
    snprintf(o->key, room, "%s%s", key, http2 ? "|h2c" : "");
    o->knows_http2 = http2 && o->want != POOL_SOCKET;
    if (o->knows_http2)
        o->want = POOL_HTTP2;
    return 0;
}

struct origin *origin_open(const struct origin_env *env, struct dial_client *dialer,
                           struct downstream downstream, const struct authority *a,
                           const struct head *h, const char *key, const char *id, const char *token,
                           struct client_cert *cert, const struct trace *trace)
{
    struct origin *o = calloc(1, sizeof *o);
    if (o == NULL)
        return NULL;
    if (trace)
        o->trace = *trace;
    o->env = *env;
    o->facts.opened = meter_now();
    o->dial = dialer;
    o->downstream = downstream;
    o->authority = *a;
    o->cert = cert;
    o->id = strdup(id);
    o->token = strdup(token);
    o->body = h->body;
    o->grpc = grpc_is(h);
    o->want = h->upgrade != UPGRADE_NONE ? POOL_SOCKET : o->grpc ? POOL_HTTP2 : POOL_ANY;
    snprintf(o->method, sizeof o->method, "%.*s", SL(h->method));
    o->head = malloc(sizeof *o->head);
    if (o->head)
        http_head_init(o->head);
    if (settle_key(o, h, key) < 0 || !o->id || !o->token || !o->head ||
        http_head_copy(o->head, h) < 0 || find_way(o, true) < 0) {
        origin_free(o);
        return NULL;
    }
    return o;
}
