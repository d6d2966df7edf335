/* The injector's end of a gate's channel: requests by number, bodies within credit. */
#include "injection.h"
#include "detector.h"
#include "injector_channel.h"
#include "http1_head.h"
#include "mcp_pins.h"
#include "meter.h"
#include "wire.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <unistd.h>

enum {
    TARGET_MAX = 65536, /* what limits.target_bytes may be at most */
    BUCKETS = 128,      /* in which requests are found by their numbers */
};

struct served {
    struct injector_channel_server *server;
    uint32_t id;
    struct upstream upstream;
    struct buf waiting;   /* request bytes the upstream had no room for */
    uint32_t credit;      /* reply bytes we may still send */
    uint32_t window;      /* request bytes that may wait */
    enum body_kind body;  /* what the request's head promised */
    uint64_t left;        /* of a counted body */
    unsigned retry;       /* seconds, with a failure */
    bool ended, end_told; /* the gate's request end: arrived, passed on */
    LIST_ENTRY(served) link, same;
};

struct injector_channel_server {
    struct injector *injector;
    struct ipc *ch;
    char sandbox[65];
    bool needs_token;
    struct tracing tracing; /* the request that comes next */
    uint32_t n,
        grown; /* grown: bytes of all windows together, beyond INJECTOR_CHANNEL_FIRST each */
    LIST_HEAD(, served) list;
    LIST_HEAD(, served) by_id[BUCKETS];
};

static struct served *find(struct injector_channel_server *s, uint32_t id)
{
    struct served *x;
    LIST_FOREACH(x, &s->by_id[id % BUCKETS], same)
    if (x->id == id)
        return x;
    return NULL;
}

static void drop(struct served *x)
{
    LIST_REMOVE(x, link);
    LIST_REMOVE(x, same);
    x->server->n--;
    x->server->grown -= x->window - INJECTOR_CHANNEL_FIRST;
    buf_free(&x->waiting);
    free(x);
}

/* ---- as the front of an injection ---- */

static void downstream_reply(void *self, const struct head *h)
{
    struct served *x = self;
    struct msg m;
    msg_init(&m, W_INJECTOR_CHANNEL_REPLY);
    msg_put_u32(&m, x->id);
    msg_put_u32(&m, h->status);
    msg_put_u8(&m, (uint8_t)h->body);
    msg_put_u64(&m, h->length);
    injector_channel_put_fields(&m, h);
    ipc_send(x->server->ch, &m);
}

static void downstream_data(void *self, const void *p, size_t n)
{
    struct served *x = self;
    injector_channel_send_body(x->server->ch, x->id, &x->credit, (struct slice){p, n});
}

static void downstream_trailers(void *self, const struct head *fields)
{
    struct served *x = self;
    struct msg m;
    msg_init(&m, W_INJECTOR_CHANNEL_TRAILERS);
    msg_put_u32(&m, x->id);
    injector_channel_put_fields(&m, fields);
    ipc_send(x->server->ch, &m);
}

static void downstream_end(void *self)
{
    struct served *x = self;
    injector_channel_send(x->server->ch, x->id, W_INJECTOR_CHANNEL_END);
    drop(x);
}

static void downstream_fail(void *self, unsigned status, const char *code, const char *id)
{
    struct served *x = self;
    struct msg m;
    msg_init(&m, W_INJECTOR_CHANNEL_FAIL);
    msg_put_u32(&m, x->id);
    msg_put_u32(&m, status);
    msg_put_str(&m, code);
    msg_put_str(&m, id ? id : "-");
    msg_put_u32(&m, x->retry);
    ipc_send(x->server->ch, &m);
    drop(x);
}

static size_t downstream_room(void *self)
{
    struct served *x = self;
    return injector_channel_room(x->server->ch, x->credit);
}

/* Pass waiting request bytes on; what went is credited to the gate. */
static void pump(struct served *x)
{
    size_t sent = stream_send(&x->upstream, buf_slice(&x->waiting));
    buf_drain(&x->waiting, sent);
    buf_shrink(&x->waiting);
    if (sent > 0 && !x->ended) {
        if (buf_len(&x->waiting) == 0)
            sent += injector_channel_window_grow(&x->window, &x->server->grown);
        injector_channel_send_credit(x->server->ch, x->id, (uint32_t)sent);
    }
    if (x->ended && !x->end_told && buf_len(&x->waiting) == 0) {
        x->end_told = true;
        x->upstream.ops->end(x->upstream.self);
    }
}

static void downstream_retry(void *self, unsigned seconds)
{
    ((struct served *)self)->retry = seconds;
}

static void downstream_wanted(void *self)
{
    pump(self);
}

static const struct downstream_ops downstream_ops = {
    .reply = downstream_reply,
    .data = downstream_data,
    .trailers = downstream_trailers,
    .end = downstream_end,
    .fail = downstream_fail,
    .room = downstream_room,
    .wanted = downstream_wanted,
    .retry = downstream_retry,
};

/* ---- messages ---- */

/* Long enough not to be found by chance, and of bytes that stand for themselves everywhere. */
static int read_placeholders(struct msg *m, unsigned max, char to[][PLACEHOLDER_MAX], unsigned *ret)
{
    uint32_t n;
    if (msg_get_u32(m, &n) < 0 || n > max)
        return -1;
    for (*ret = 0; *ret < n; ++*ret) {
        char *text = to[*ret];
        size_t len = msg_get_str(m, text, PLACEHOLDER_MAX) < 0 ? 0 : strlen(text);
        if (len < INJECTOR_CHANNEL_MARK_MIN)
            return -1;
        for (size_t i = 0; i < len; i++)
            if (!ascii_is_alnum(text[i]) && text[i] != '_' && text[i] != '-')
                return -1;
    }
    return 0;
}

static bool client_ok(uint8_t client, uint8_t scheme)
{
    bool http2 = client & INJECTOR_CHANNEL_HTTP2;
    return client <= (INJECTOR_CHANNEL_TRAILERS | INJECTOR_CHANNEL_HTTP2) &&
           (!http2 || scheme == SCHEME_HTTP);
}

static int read_request(struct msg *m, struct injection_request *r)
{
    uint8_t scheme, has_query, body, client;
    uint32_t port;
    struct head *h = &r->head;
    if (msg_get_u32(m, &r->generation) < 0 || msg_get_u8(m, &scheme) < 0 ||
        msg_get_str(m, r->authority.host, sizeof r->authority.host) < 0 ||
        msg_get_u32(m, &port) < 0 || msg_get_slice(m, 32, &h->method) < 0 ||
        msg_get_slice(m, TARGET_MAX, &h->path) < 0 || msg_get_u8(m, &has_query) < 0 ||
        msg_get_slice(m, TARGET_MAX, &h->query) < 0 || msg_get_u8(m, &body) < 0 ||
        msg_get_u64(m, &h->length) < 0 || msg_get_u8(m, &client) < 0 ||
        msg_get_str(m, r->secret, sizeof r->secret) < 0 ||
        msg_get_str(m, r->entry, sizeof r->entry) < 0 ||
        msg_get_str(m, r->token, sizeof r->token) < 0 ||
        read_placeholders(m, INJECTOR_CHANNEL_MARKS_MAX, r->marks.text, &r->marks.n) < 0 ||
        read_placeholders(m, CAPTURES_MAX, r->blanks.text, &r->blanks.n) < 0 ||
        injector_channel_get_fields(m, h) < 0 || msg_end(m) < 0)
        return -1;
    bool tunnel = body == BODY_TUNNEL;
    if (port == 0 || port > 65535 || (body > BODY_CHUNKED && !tunnel) ||
        !http1_is_token(h->method) || (tunnel && !slice_eq_str(h->method, "GET")) ||
        (scheme != SCHEME_HTTP && scheme != SCHEME_HTTPS) ||
        strcmp(r->entry, "inbound") == 0 /* no injector is asked for those, and they count less */)
        return -1;
    if ((h->length > 0) != (body == BODY_LENGTH))
        return -1;
    if (!client_ok(client, scheme))
        return -1;
    for (size_t i = 0; i < h->query.n; i++)
        if ((unsigned char)h->query.p[i] <= 0x20 || (unsigned char)h->query.p[i] >= 0x7f)
            return -1;
    r->authority.scheme = (enum scheme)scheme;
    r->authority.port = (uint16_t)port;
    h->has_query = has_query;
    h->te_trailers = client & INJECTOR_CHANNEL_TRAILERS;
    h->knows_http2 = client & INJECTOR_CHANNEL_HTTP2;
    h->body = (enum body_kind)body;
    h->upgrade = tunnel ? UPGRADE_WEBSOCKET : UPGRADE_NONE;
    h->form = TARGET_ORIGIN;
    h->minor = 1;
    return 0;
}

static int on_request(struct injector_channel_server *s, uint32_t id, struct msg *m)
{
    struct injection_request r; /* large: its head is not cleared whole */
    memset(&r, 0, offsetof(struct injection_request, head));
    r.sandbox = s->sandbox;
    r.needs_token = s->needs_token;
    r.trace = trace_take(&s->tracing, id, meter_now());
    http_head_init(&r.head);
    int bad = find(s, id) || s->n >= INJECTOR_CHANNEL_EXCHANGES_MAX || read_request(m, &r) < 0;
    if (bad) {
        http_head_free(&r.head);
        return -1;
    }
    struct served *x = calloc(1, sizeof *x);
    struct downstream f = {&downstream_ops, x};
    struct injection *g = x ? injection_new(s->injector, f) : NULL;
    if (g == NULL) {
        free(x);
        http_head_free(&r.head);
        return -1;
    }
    x->server = s;
    x->id = id;
    x->credit = x->window = INJECTOR_CHANNEL_FIRST;
    x->body = r.head.body;
    x->left = r.head.length;
    buf_init_wiped(&x->waiting, INJECTOR_CHANNEL_WINDOW);
    x->upstream = injection_upstream(g);
    LIST_INSERT_HEAD(&s->list, x, link);
    LIST_INSERT_HEAD(&s->by_id[id % BUCKETS], x, same);
    s->n++;
    injection_start(g, &r);
    return 0;
}

/* A body longer or shorter than its head says would make the origin read its rest, or the next
 * request with that one's credential, as something else: no gate may do that. */
static int on_body(struct served *x, struct msg *m)
{
    struct slice b;
    if (msg_get_slice(m, INJECTOR_CHANNEL_BODY_MAX, &b) < 0 || msg_end(m) < 0 || x->ended ||
        x->body == BODY_NONE || (x->body == BODY_LENGTH && b.n > x->left) ||
        b.n > x->window - buf_len(&x->waiting) || /* beyond its credit */
        buf_append_slice(&x->waiting, b) < 0)
        return -1;
    if (x->body == BODY_LENGTH)
        x->left -= b.n;
    pump(x);
    return 0;
}

static int on_credit(struct served *x, struct msg *m)
{
    if (injector_channel_take_credit(m, &x->credit) < 0)
        return -1;
    x->upstream.ops->resume(x->upstream.self);
    return 0;
}

/* What the gate says it found goes into the record: names that are known, and numbers. */
static int on_found(struct served *x, struct msg *m)
{
    char patterns[DETECT_FOUND_MAX];
    if (msg_get_str(m, patterns, sizeof patterns) < 0 || msg_end(m) < 0 || x->ended ||
        !detect_found_is(slice_str(patterns)))
        return -1;
    x->upstream.ops->found(x->upstream.self, patterns);
    return 0;
}

static int on_abort(struct served *x, struct msg *m)
{
    char code[48];
    if (msg_get_str(m, code, sizeof code) < 0 || msg_end(m) < 0 || !http1_is_token(slice_str(code)))
        return -1;
    struct upstream b = x->upstream;
    char id[STREAM_ID] = "-";
    if (b.ops->id)
        b.ops->id(b.self, id);
    b.ops->cancel(b.self, code);
    downstream_fail(x, 400, code, id); /* the gate knows its answer: it wants the id */
    return 0;
}

static int on_message(struct ipc *ch UNUSED, struct msg *m, void *arg)
{
    struct injector_channel_server *s = arg;
    uint32_t id;
    if (m->type == W_TRACING)
        return trace_get(m, &s->tracing);
    if (msg_get_u32(m, &id) < 0)
        return -1;
    if (m->type == W_INJECTOR_CHANNEL_REQUEST)
        return on_request(s, id, m);
    bool known = m->type == W_INJECTOR_CHANNEL_BODY || m->type == W_INJECTOR_CHANNEL_CREDIT ||
                 m->type == W_INJECTOR_CHANNEL_END || m->type == W_INJECTOR_CHANNEL_ABORT ||
                 m->type == W_INJECTOR_CHANNEL_FOUND;
    struct served *x = find(s, id);
    if (x == NULL)
        return known ? 0 : -1; /* 0: it ended on our side meanwhile */
    switch (m->type) {
    case W_INJECTOR_CHANNEL_BODY:
        return on_body(x, m);
    case W_INJECTOR_CHANNEL_CREDIT:
        return on_credit(x, m);
    case W_INJECTOR_CHANNEL_END:
        if (msg_end(m) < 0 || x->ended || x->left > 0)
            return -1;
        x->ended = true;
        pump(x);
        return 0;
    case W_INJECTOR_CHANNEL_FOUND:
        return on_found(x, m);
    case W_INJECTOR_CHANNEL_ABORT:
        return on_abort(x, m);
    default:
        return -1;
    }
}

static void on_drained(void *arg)
{
    struct injector_channel_server *s = arg;
    struct served *x, *next;
    for (x = LIST_FIRST(&s->list); x; x = next) {
        next = LIST_NEXT(x, link);
        x->upstream.ops->resume(x->upstream.self); /* may end this one, never another */
    }
}

static void on_closed(struct ipc *ch UNUSED, const char *why UNUSED, void *arg)
{
    struct injector_channel_server *s = arg;
    struct served *x;
    while ((x = LIST_FIRST(&s->list)) != NULL) {
        struct upstream b = x->upstream;
        drop(x);
        b.ops->cancel(b.self, "gate_gone");
    }
    if (s->sandbox[0])
        mcp_pins_gone(s->injector->pins, s->sandbox);
    ipc_free(s->ch);
    free(s);
}

struct injector_channel_server *injector_channel_server_new(struct injector *i, int fd,
                                                            const char *sandbox, bool needs_token)
{
    struct injector_channel_server *s = calloc(1, sizeof *s);
    if (s == NULL) {
        close(fd);
        return NULL;
    }
    s->injector = i;
    s->needs_token = needs_token;
    snprintf(s->sandbox, sizeof s->sandbox, "%s", sandbox);
    LIST_INIT(&s->list);
    s->ch = ipc_new(i->base, fd, on_message, on_closed, s);
    if (s->ch == NULL) {
        free(s);
        return NULL;
    }
    ipc_gather(s->ch);
    ipc_on_drained(s->ch, on_drained, s);
    return s;
}
