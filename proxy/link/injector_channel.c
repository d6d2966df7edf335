/* The gate's end of the injector channel: exchanges by number as backs, their credit and windows.
 * The injector's end is injector_channel_server.c; the fields of messages are written and read here
 * for both. */
#include "injector_channel.h"

#include "http1_head.h"
#include "wire.h"
#include "peer.h"
#include "reply_length.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

enum { BUCKETS = 128 }; /* in which exchanges are found by their numbers */

struct injector_channel_exchange {
    struct injector_channel *injector_channel;
    uint32_t id;
    struct downstream downstream;
    struct quota_part part;
    uint32_t credit;               /* request bytes we may still send */
    uint32_t window;               /* reply bytes that may be on their way or unacked */
    uint32_t unacked;              /* reply bytes passed on and not yet credited */
    bool replied, trailed, tunnel; /* tunnel: an upgrade is asked for */
    bool head;                     /* HEAD is asked for */
    struct reply_length length;    /* the reply's */
    unsigned refused;              /* by our front, with this status and code; 0: it is not */
    const char *refused_code;
    LIST_ENTRY(injector_channel_exchange) link, same;
};

struct injector_channel {
    struct ipc *parent; /* told of a channel that ended; NULL: nobody is */
    struct event_base *base;
    struct ipc *ch;
    uint32_t number; /* of that channel */
    uint32_t next;
    struct quota exchanges; /* by sandbox */
    uint32_t grown;         /* bytes of all windows together, beyond INJECTOR_CHANNEL_FIRST each */
    LIST_HEAD(, injector_channel_exchange) list;
    LIST_HEAD(, injector_channel_exchange) by_id[BUCKETS];
};

void injector_channel_put_fields(struct msg *m, const struct head *h)
{
    msg_put_u32(m, (uint32_t)h->n);
    for (size_t i = 0; i < h->n; i++) {
        msg_put_slice(m, h->fields[i].name);
        msg_put_slice(m, h->fields[i].value);
    }
}

int injector_channel_get_fields(struct msg *m, struct head *h)
{
    uint32_t n;
    if (msg_get_u32(m, &n) < 0 || n > HEAD_FIELDS_MAX)
        return -1;
    /* one copy of all the bytes left: they hold every name and value; and of what stands already */
    struct slice *const front[] = {&h->method, &h->path, &h->query};
    size_t room = buf_len(&m->body) + h->method.n + h->path.n + h->query.n;
    char *at = malloc(room + 1);
    if (at == NULL)
        return -1;
    h->raw = at;
    h->raw_n = room;
    for (size_t i = 0; i < ARRAY_LEN(front); i++) {
        if (front[i]->n)
            memcpy(at, front[i]->p, front[i]->n);
        *front[i] = (struct slice){at, front[i]->n};
        at += front[i]->n;
    }
    for (uint32_t i = 0; i < n; i++) {
        struct slice name, value;
        if (msg_get_slice(m, IPC_MSG_MAX, &name) < 0 || msg_get_slice(m, IPC_MSG_MAX, &value) < 0)
            return -1;
        if (!http1_is_token(name) || !http1_is_value(value))
            return -1;
        for (size_t k = 0; k < name.n; k++)
            at[k] = ascii_lower(name.p[k]);
        h->fields[h->n].name = (struct slice){at, name.n};
        at += name.n;
        if (value.n)
            memcpy(at, value.p, value.n);
        h->fields[h->n++].value = (struct slice){at, value.n};
        at += value.n;
    }
    return 0;
}

static struct injector_channel_exchange *find(struct injector_channel *h, uint32_t id)
{
    struct injector_channel_exchange *x;
    LIST_FOREACH(x, &h->by_id[id % BUCKETS], same)
    if (x->id == id)
        return x;
    return NULL;
}

static struct downstream drop(struct injector_channel_exchange *x)
{
    struct downstream f = x->downstream;
    LIST_REMOVE(x, link);
    LIST_REMOVE(x, same);
    quota_leave(&x->part);
    x->injector_channel->grown -= x->window - INJECTOR_CHANNEL_FIRST;
    free(x);
    return f;
}

static void fail_all(struct injector_channel *h, const char *code)
{
    struct injector_channel_exchange *x;
    while ((x = LIST_FIRST(&h->list)) != NULL) {
        struct downstream f = drop(x);
        f.ops->fail(f.self, 503, code, NULL);
    }
}

/* Credit goes back in portions, while the downstream has room. Without room its output is over the
 * high mark, so it will say resume. A downstream's output holds its high mark (STREAM_OUT_MAX / 2)
 * and one whole window. */
static void acknowledge(struct injector_channel_exchange *x, uint32_t least)
{
    if (x->unacked < least || x->downstream.ops->room(x->downstream.self) == 0)
        return;
    uint32_t more = injector_channel_window_grow(&x->window, &x->injector_channel->grown);
    injector_channel_send_credit(x->injector_channel->ch, x->id, x->unacked + more);
    x->unacked = 0;
}

static int on_reply(struct injector_channel_exchange *x, struct msg *m)
{
    struct head h;
    uint32_t status;
    uint8_t body;
    http_head_init(&h);
    bool sane = msg_get_u32(m, &status) == 0 && msg_get_u8(m, &body) == 0 &&
                msg_get_u64(m, &h.length) == 0 && injector_channel_get_fields(m, &h) == 0 &&
                msg_end(m) == 0 && !x->replied;
    bool tunnel = sane && body == BODY_TUNNEL;
    sane = sane && (tunnel ? x->tunnel && status == 101 && h.length == 0
                           : status >= 200 && status <= 999 && body <= BODY_CLOSE);
    if (sane) {
        h.status = status;
        h.body = body;
        sane = reply_length_begin(&x->length, x->head, &h);
    }
    if (sane) {
        h.upgrade = tunnel ? UPGRADE_WEBSOCKET : UPGRADE_NONE;
        h.minor = 1;
        x->replied = true;
        x->downstream.ops->reply(x->downstream.self, &h);
    }
    http_head_free(&h);
    return sane ? 0 : -1;
}

static int on_body(struct injector_channel_exchange *x, struct msg *m)
{
    struct slice s;
    if (msg_get_slice(m, IPC_MSG_MAX, &s) < 0 || msg_end(m) < 0 || !x->replied || x->trailed)
        return -1;
    if (x->unacked + s.n > x->window)
        return -1; /* beyond its credit */
    if (!reply_length_take(&x->length, s.n))
        return -1;
    x->unacked += (uint32_t)s.n;
    x->downstream.ops->data(x->downstream.self, s.p, s.n);
    acknowledge(x, x->window / 4);
    return 0;
}

static int on_trailers(struct injector_channel_exchange *x, struct msg *m)
{
    struct head h;
    http_head_init(&h);
    bool sane =
        injector_channel_get_fields(m, &h) == 0 && msg_end(m) == 0 && x->replied && !x->trailed;
    if (sane) {
        x->trailed = true;
        x->downstream.ops->trailers(x->downstream.self, &h);
    }
    http_head_free(&h);
    return sane ? 0 : -1;
}

static int on_fail(struct injector_channel_exchange *x, struct msg *m)
{
    uint32_t status, retry;
    char code[64], id[48];
    if (msg_get_u32(m, &status) < 0 || msg_get_str(m, code, sizeof code) < 0 ||
        msg_get_str(m, id, sizeof id) < 0 || msg_get_u32(m, &retry) < 0 || msg_end(m) < 0 ||
        retry > 2 * 86400 || status < 400 || status > 599 || !http1_is_token(slice_str(code)) ||
        !http1_is_token(slice_str(id))) /* both stand in the answer's head */
        return -1;
    unsigned ours = x->refused;
    const char *why = ours ? x->refused_code : code;
    struct downstream f = drop(x);
    stream_retry(&f, ours ? 0 : retry);
    f.ops->fail(f.self, ours ? ours : status, why, id);
    return 0;
}

static int on_credit(struct injector_channel_exchange *x, struct msg *m)
{
    if (injector_channel_take_credit(m, &x->credit) < 0)
        return -1;
    x->downstream.ops->wanted(x->downstream.self);
    return 0;
}

/* Sent before it heard that we refuse the request; with an end it has forgotten it. */
static int on_late(struct injector_channel_exchange *x, const struct msg *m)
{
    if (m->type != W_INJECTOR_CHANNEL_END)
        return 0;
    unsigned status = x->refused;
    const char *code = x->refused_code;
    struct downstream f = drop(x);
    f.ops->fail(f.self, status, code, "-");
    return 0;
}

static int on_message(struct ipc *ch UNUSED, struct msg *m, void *arg)
{
    struct injector_channel *h = arg;
    uint32_t id;
    if (msg_get_u32(m, &id) < 0)
        return -1;
    struct injector_channel_exchange *x = find(h, id);
    if (x == NULL) /* cancelled meanwhile, if it is of an exchange at all */
        return m->type == W_INJECTOR_CHANNEL_REQUEST || m->type == W_INJECTOR_CHANNEL_ABORT ||
                       m->type < W_INJECTOR_CHANNEL_BODY || m->type > W_INJECTOR_CHANNEL_TRAILERS
                   ? -1
                   : 0;
    if (x->refused && m->type != W_INJECTOR_CHANNEL_FAIL)
        return on_late(x, m);
    switch (m->type) {
    case W_INJECTOR_CHANNEL_REPLY:
        return on_reply(x, m);
    case W_INJECTOR_CHANNEL_BODY:
        return on_body(x, m);
    case W_INJECTOR_CHANNEL_CREDIT:
        return on_credit(x, m);
    case W_INJECTOR_CHANNEL_TRAILERS:
        return on_trailers(x, m);
    case W_INJECTOR_CHANNEL_FAIL:
        return on_fail(x, m);
    case W_INJECTOR_CHANNEL_END: {
        if (msg_end(m) < 0 || !x->replied || !reply_length_whole(&x->length))
            return -1;
        struct downstream f = drop(x);
        f.ops->end(f.self);
        return 0;
    }
    default:
        return -1;
    }
}

static void on_closed(struct ipc *ch, const char *why UNUSED, void *arg)
{
    struct injector_channel *h = arg;
    ipc_free(ch);
    h->ch = NULL;
    fail_all(h, "injector_gone");
    peer_lost(h->parent, h->number);
}

struct injector_channel *injector_channel_new(struct event_base *base)
{
    struct injector_channel *h = calloc(1, sizeof *h);
    if (h == NULL)
        return NULL;
    h->base = base;
    h->exchanges = (struct quota){.total = INJECTOR_CHANNEL_EXCHANGES_MAX,
                                  .each = INJECTOR_CHANNEL_EXCHANGES_EACH};
    LIST_INIT(&h->list);
    return h;
}

void injector_channel_free(struct injector_channel *h)
{
    if (h == NULL)
        return;
    ipc_free(h->ch);
    h->ch = NULL; /* a downstream that is told of it cannot open another */
    fail_all(h, "shutdown");
    free(h);
}

void injector_channel_lost_to(struct injector_channel *h, struct ipc *parent)
{
    h->parent = parent;
}

void injector_channel_attach(struct injector_channel *h, int fd, uint32_t number)
{
    h->number = number;
    if (h->ch) {
        ipc_free(h->ch);
        h->ch = NULL;
        fail_all(h, "injector_gone");
    }
    h->ch = ipc_new(h->base, fd, on_message, on_closed, h);
    if (h->ch)
        ipc_gather(h->ch);
}

bool injector_channel_ready(const struct injector_channel *h)
{
    return h && h->ch != NULL;
}

/* ---- the upstream ---- */

static void upstream_data(void *self, const void *p, size_t n)
{
    struct injector_channel_exchange *x = self;
    injector_channel_send_body(x->injector_channel->ch, x->id, &x->credit, (struct slice){p, n});
}

static void upstream_end(void *self)
{
    struct injector_channel_exchange *x = self;
    injector_channel_send(x->injector_channel->ch, x->id, W_INJECTOR_CHANNEL_END);
}

static void upstream_found(void *self, const char *patterns)
{
    struct injector_channel_exchange *x = self;
    struct msg m;
    msg_init(&m, W_INJECTOR_CHANNEL_FOUND);
    msg_put_u32(&m, x->id);
    msg_put_str(&m, patterns);
    ipc_send(x->injector_channel->ch, &m);
}

static size_t upstream_room(void *self)
{
    struct injector_channel_exchange *x = self;
    return x->refused ? 0 : injector_channel_room(x->injector_channel->ch, x->credit);
}

static void upstream_resume(void *self)
{
    acknowledge(self, 1);
}

static void send_abort(struct injector_channel_exchange *x, const char *code)
{
    struct msg m;
    msg_init(&m, W_INJECTOR_CHANNEL_ABORT);
    msg_put_u32(&m, x->id);
    msg_put_str(&m, code);
    ipc_send(x->injector_channel->ch, &m);
}

static void upstream_cancel(void *self, const char *code)
{
    struct injector_channel_exchange *x = self;
    if (x->refused == 0)
        send_abort(x, code);
    drop(x);
}

static bool upstream_refuse(void *self, unsigned status, const char *code)
{
    struct injector_channel_exchange *x = self;
    if (x->refused || x->replied)
        return false;
    x->refused = status;
    x->refused_code = code;
    send_abort(x, code);
    return true;
}

static const struct upstream_ops upstream_ops = {
    .data = upstream_data,
    .end = upstream_end,
    .found = upstream_found,
    .room = upstream_room,
    .resume = upstream_resume,
    .refuse = upstream_refuse,
    .cancel = upstream_cancel,
};

bool injector_channel_share_used(const struct injector_channel *h, const char *owner)
{
    return quota_would(&h->exchanges, slice_str(owner), 1) == QUOTA_SHARE;
}

struct upstream injector_channel_open(struct injector_channel *h, struct downstream downstream,
                                      const struct injector_channel_request *r)
{
    struct injector_channel_exchange *x = NULL;
    struct upstream none = {NULL, NULL};
    if (!injector_channel_ready(h) || ipc_queued(h->ch) > INJECTOR_CHANNEL_WINDOW * 16 ||
        (x = calloc(1, sizeof *x)) == NULL)
        return none;
    if (quota_take(&h->exchanges, &x->part, slice_str(r->owner ? r->owner : ""), 1) !=
        QUOTA_TAKEN) {
        free(x);
        return none;
    }
    x->injector_channel = h;
    x->id = ++h->next;
    x->downstream = downstream;
    x->credit = INJECTOR_CHANNEL_FIRST;
    x->window = INJECTOR_CHANNEL_FIRST;
    x->tunnel = r->head->body == BODY_TUNNEL;
    x->head = slice_eq(r->head->method, SLICE("HEAD"));
    LIST_INSERT_HEAD(&h->list, x, link);
    LIST_INSERT_HEAD(&h->by_id[x->id % BUCKETS], x, same);
    const struct head *q = r->head;
    struct msg m;
    if (r->trace)
        trace_send(h->ch, x->id, r->trace);
    msg_init(&m, W_INJECTOR_CHANNEL_REQUEST);
    msg_put_u32(&m, x->id);
    msg_put_u32(&m, r->generation);
    msg_put_u8(&m, (uint8_t)r->authority.scheme);
    msg_put_str(&m, r->authority.host);
    msg_put_u32(&m, r->authority.port);
    msg_put_slice(&m, q->method);
    msg_put_slice(&m, q->path);
    msg_put_u8(&m, q->has_query);
    msg_put_slice(&m, q->query);
    msg_put_u8(&m, (uint8_t)q->body);
    msg_put_u64(&m, q->length);
    msg_put_u8(&m, (q->te_trailers ? INJECTOR_CHANNEL_TRAILERS : 0) |
                       (q->knows_http2 ? INJECTOR_CHANNEL_HTTP2 : 0));
    msg_put_str(&m, r->secret);
    msg_put_str(&m, r->entry);
    msg_put_str(&m, r->token);
    msg_put_u32(&m, r->marks ? r->marks->n : 0);
    for (unsigned i = 0; r->marks && i < r->marks->n; i++)
        msg_put_str(&m, r->marks->text[i]);
    msg_put_u32(&m, r->blanks ? r->blanks->n : 0);
    for (unsigned i = 0; r->blanks && i < r->blanks->n; i++)
        msg_put_str(&m, r->blanks->text[i]);
    injector_channel_put_fields(&m, q);
    if (ipc_send(h->ch, &m) < 0) {
        drop(x);
        return none;
    }
    return (struct upstream){&upstream_ops, x};
}
