/* The injector's end of a gate's channel: requests by number, bodies within credit. */
#include "grant.h"
#include "hop.h"
#include "http1_head.h"
#include "wire.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <unistd.h>

enum { TARGET_MAX = 65536 /* what limits.target_bytes may be at most */ };

struct served {
    struct hop_server *server;
    uint32_t id;
    struct back back;
    struct buf waiting;   /* request bytes the back had no room for */
    uint32_t credit;      /* reply bytes we may still send */
    uint32_t window;      /* request bytes that may wait */
    enum body_kind body;  /* what the request's head promised */
    uint64_t left;        /* of a counted body */
    unsigned retry;       /* seconds, with a failure */
    bool ended, end_told; /* the gate's request end: arrived, passed on */
    LIST_ENTRY(served) link;
};

struct hop_server {
    struct injector *injector;
    struct ipc *ch;
    char sandbox[65];
    bool needs_token;
    uint32_t n, grown; /* grown: bytes of all windows together, beyond HOP_FIRST each */
    LIST_HEAD(, served) list;
};

static struct served *find(struct hop_server *s, uint32_t id)
{
    struct served *x;
    LIST_FOREACH(x, &s->list, link)
    if (x->id == id)
        return x;
    return NULL;
}

static void drop(struct served *x)
{
    LIST_REMOVE(x, link);
    x->server->n--;
    x->server->grown -= x->window - HOP_FIRST;
    buf_free(&x->waiting);
    free(x);
}

static void send_id(struct served *x, uint16_t type)
{
    struct msg m;
    msg_init(&m, type);
    msg_put_u32(&m, x->id);
    ipc_send(x->server->ch, &m);
}

/* ---- as the front of a grant ---- */

static void front_reply(void *self, const struct head *h)
{
    struct served *x = self;
    struct msg m;
    msg_init(&m, W_HOP_REPLY);
    msg_put_u32(&m, x->id);
    msg_put_u32(&m, h->status);
    msg_put_u8(&m, (uint8_t)h->body);
    msg_put_u64(&m, h->length);
    hop_put_fields(&m, h);
    ipc_send(x->server->ch, &m);
}

static void front_data(void *self, const void *p, size_t n)
{
    struct served *x = self;
    const char *at = p;
    while (n > 0) {
        size_t k = n < HOP_BODY_MAX ? n : HOP_BODY_MAX;
        struct msg m;
        msg_init(&m, W_HOP_BODY);
        msg_put_u32(&m, x->id);
        msg_put_bytes(&m, at, k);
        ipc_send(x->server->ch, &m);
        x->credit -= (uint32_t)(k < x->credit ? k : x->credit);
        at += k;
        n -= k;
    }
}

static void front_trailers(void *self, const struct head *fields)
{
    struct served *x = self;
    struct msg m;
    msg_init(&m, W_HOP_TRAILERS);
    msg_put_u32(&m, x->id);
    hop_put_fields(&m, fields);
    ipc_send(x->server->ch, &m);
}

static void front_end(void *self)
{
    send_id(self, W_HOP_END);
    drop(self);
}

static void front_fail(void *self, unsigned status, const char *code, const char *id)
{
    struct served *x = self;
    struct msg m;
    msg_init(&m, W_HOP_FAIL);
    msg_put_u32(&m, x->id);
    msg_put_u32(&m, status);
    msg_put_str(&m, code);
    msg_put_str(&m, id ? id : "-");
    msg_put_u32(&m, x->retry);
    ipc_send(x->server->ch, &m);
    drop(x);
}

static size_t front_room(void *self)
{
    struct served *x = self;
    return ipc_queued(x->server->ch) < HOP_WINDOW * 4 ? x->credit : 0;
}

/* Pass waiting request bytes on; what went is credited to the gate. */
static void pump(struct served *x)
{
    size_t sent = 0;
    while (buf_len(&x->waiting) > 0) {
        size_t room = x->back.ops->room(x->back.self);
        size_t n = buf_len(&x->waiting) < room ? buf_len(&x->waiting) : room;
        if (n == 0)
            break;
        x->back.ops->data(x->back.self, buf_data(&x->waiting), n);
        buf_drain(&x->waiting, n);
        sent += n;
    }
    buf_shrink(&x->waiting);
    if (sent > 0 && !x->ended) {
        if (buf_len(&x->waiting) == 0)
            sent += hop_window_grow(&x->window, &x->server->grown);
        struct msg m;
        msg_init(&m, W_HOP_CREDIT);
        msg_put_u32(&m, x->id);
        msg_put_u32(&m, (uint32_t)sent);
        ipc_send(x->server->ch, &m);
    }
    if (x->ended && !x->end_told && buf_len(&x->waiting) == 0) {
        x->end_told = true;
        x->back.ops->end(x->back.self);
    }
}

static void front_retry(void *self, unsigned seconds)
{
    ((struct served *)self)->retry = seconds;
}

static void front_wanted(void *self)
{
    pump(self);
}

static const struct front_ops front_ops = {
    .reply = front_reply,
    .data = front_data,
    .trailers = front_trailers,
    .end = front_end,
    .fail = front_fail,
    .room = front_room,
    .wanted = front_wanted,
    .retry = front_retry,
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
        if (len < HOP_MARK_MIN)
            return -1;
        for (size_t i = 0; i < len; i++)
            if (!ascii_is_alnum(text[i]) && text[i] != '_' && text[i] != '-')
                return -1;
    }
    return 0;
}

static int read_request(struct msg *m, struct grant_request *r)
{
    uint8_t scheme, has_query, body, te_trailers;
    uint32_t port;
    struct slice method, path, query;
    struct head *h = &r->head;
    if (msg_get_u32(m, &r->generation) < 0 || msg_get_u8(m, &scheme) < 0 ||
        msg_get_str(m, r->authority.host, sizeof r->authority.host) < 0 ||
        msg_get_u32(m, &port) < 0 || msg_get_slice(m, 32, &method) < 0 ||
        msg_get_slice(m, TARGET_MAX, &path) < 0 || msg_get_u8(m, &has_query) < 0 ||
        msg_get_slice(m, TARGET_MAX, &query) < 0 || msg_get_u8(m, &body) < 0 ||
        msg_get_u64(m, &h->length) < 0 || msg_get_u8(m, &te_trailers) < 0 ||
        msg_get_str(m, r->secret, sizeof r->secret) < 0 ||
        msg_get_str(m, r->entry, sizeof r->entry) < 0 ||
        msg_get_str(m, r->token, sizeof r->token) < 0 ||
        read_placeholders(m, HOP_MARKS_MAX, r->marks.text, &r->marks.n) < 0 ||
        read_placeholders(m, CAPTURES_MAX, r->blanks.text, &r->blanks.n) < 0 ||
        hop_get_fields(m, h) < 0 || msg_end(m) < 0)
        return -1;
    bool tunnel = body == BODY_TUNNEL;
    if (port == 0 || port > 65535 || (body > BODY_CHUNKED && !tunnel) || !http1_is_token(method) ||
        (tunnel && !slice_eq_str(method, "GET")) ||
        (scheme != SCHEME_HTTP && scheme != SCHEME_HTTPS))
        return -1;
    if ((h->length > 0) != (body == BODY_LENGTH))
        return -1;
    for (size_t i = 0; i < query.n; i++)
        if ((unsigned char)query.p[i] <= 0x20 || (unsigned char)query.p[i] >= 0x7f)
            return -1;
    r->authority.scheme = (enum scheme)scheme;
    r->authority.port = (uint16_t)port;
    h->method = method;
    h->path = path;
    h->query = query;
    h->has_query = has_query;
    h->te_trailers = te_trailers;
    h->body = (enum body_kind)body;
    h->upgrade = tunnel ? UPGRADE_WEBSOCKET : UPGRADE_NONE;
    h->form = TARGET_ORIGIN;
    h->minor = 1;
    return 0;
}

static int on_request(struct hop_server *s, uint32_t id, struct msg *m)
{
    struct grant_request r; /* large: its head is not cleared whole */
    struct head whole;
    memset(&r, 0, offsetof(struct grant_request, head));
    r.sandbox = s->sandbox;
    r.needs_token = s->needs_token;
    http_head_init(&r.head);
    int bad = find(s, id) || s->n >= HOP_EXCHANGES_MAX || read_request(m, &r) < 0;
    /* method, path and query still point into the message: own them */
    if (!bad && http_head_copy(&whole, &r.head) == 0) {
        http_head_free(&r.head);
        http_head_move(&r.head, &whole);
    } else {
        http_head_free(&r.head);
        return -1;
    }
    struct served *x = calloc(1, sizeof *x);
    struct front f = {&front_ops, x};
    struct grant *g = x ? grant_new(s->injector, f) : NULL;
    if (g == NULL) {
        free(x);
        http_head_free(&r.head);
        return -1;
    }
    x->server = s;
    x->id = id;
    x->credit = x->window = HOP_FIRST;
    x->body = r.head.body;
    x->left = r.head.length;
    buf_init_wiped(&x->waiting, HOP_WINDOW);
    x->back = grant_back(g);
    LIST_INSERT_HEAD(&s->list, x, link);
    s->n++;
    grant_start(g, &r);
    return 0;
}

/* A body longer or shorter than its head says would make the origin read its rest, or the next
 * request with that one's credential, as something else: no gate may do that. */
static int on_body(struct served *x, struct msg *m)
{
    struct slice b;
    if (msg_get_slice(m, HOP_BODY_MAX, &b) < 0 || msg_end(m) < 0 || x->ended ||
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
    uint32_t n;
    if (msg_get_u32(m, &n) < 0 || msg_end(m) < 0 || n > HOP_WINDOW || x->credit + n > HOP_WINDOW)
        return -1;
    x->credit += n;
    x->back.ops->resume(x->back.self);
    return 0;
}

static int on_abort(struct served *x, struct msg *m)
{
    char code[48];
    if (msg_get_str(m, code, sizeof code) < 0 || msg_end(m) < 0 || !http1_is_token(slice_str(code)))
        return -1;
    struct back b = x->back;
    char id[STREAM_ID] = "-";
    if (b.ops->id)
        b.ops->id(b.self, id);
    b.ops->cancel(b.self, code);
    front_fail(x, 400, code, id); /* the gate knows its answer: it wants the id */
    return 0;
}

static int on_message(struct ipc *ch UNUSED, struct msg *m, void *arg)
{
    struct hop_server *s = arg;
    uint32_t id;
    if (msg_get_u32(m, &id) < 0)
        return -1;
    if (m->type == W_HOP_REQUEST)
        return on_request(s, id, m);
    struct served *x = find(s, id);
    if (x == NULL)
        return 0; /* ended on our side meanwhile */
    switch (m->type) {
    case W_HOP_BODY:
        return on_body(x, m);
    case W_HOP_CREDIT:
        return on_credit(x, m);
    case W_HOP_END:
        if (msg_end(m) < 0 || x->ended || x->left > 0)
            return -1;
        x->ended = true;
        pump(x);
        return 0;
    case W_HOP_ABORT:
        return on_abort(x, m);
    default:
        return -1;
    }
}

static void on_drained(void *arg)
{
    struct hop_server *s = arg;
    struct served *x, *next;
    for (x = LIST_FIRST(&s->list); x; x = next) {
        next = LIST_NEXT(x, link);
        x->back.ops->resume(x->back.self); /* may end this one, never another */
    }
}

static void on_closed(struct ipc *ch UNUSED, const char *why UNUSED, void *arg)
{
    struct hop_server *s = arg;
    struct served *x;
    while ((x = LIST_FIRST(&s->list)) != NULL) {
        struct back b = x->back;
        drop(x);
        b.ops->cancel(b.self, "gate_gone");
    }
    ipc_free(s->ch);
    free(s);
}

struct hop_server *hop_server_new(struct injector *i, int fd, const char *sandbox, bool needs_token)
{
    struct hop_server *s = calloc(1, sizeof *s);
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
