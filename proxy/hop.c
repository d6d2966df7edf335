#include "hop.h"

#include "http1_head.h"
#include "wire.h"
#include "peer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

struct hop_exchange {
    struct hop *hop;
    uint32_t id;
    struct front front;
    uint32_t credit;               /* request bytes we may still send */
    uint32_t window;               /* reply bytes that may be on their way or unacked */
    uint32_t unacked;              /* reply bytes passed on and not yet credited */
    bool replied, trailed, tunnel; /* tunnel: an upgrade is asked for */
    unsigned refused;              /* by our front, with this status and code; 0: it is not */
    const char *refused_code;
    LIST_ENTRY(hop_exchange) link;
};

struct hop {
    struct ipc *parent; /* told of a channel that ended; NULL: nobody is */
    struct event_base *base;
    struct ipc *ch;
    uint32_t number; /* of that channel */
    uint32_t next, n;
    uint32_t grown; /* bytes of all windows together, beyond HOP_FIRST each */
    LIST_HEAD(, hop_exchange) list;
};

void hop_put_fields(struct msg *m, const struct head *h)
{
    msg_put_u32(m, (uint32_t)h->n);
    for (size_t i = 0; i < h->n; i++) {
        msg_put_slice(m, h->fields[i].name);
        msg_put_slice(m, h->fields[i].value);
    }
}

int hop_get_fields(struct msg *m, struct head *h)
{
    uint32_t n;
    if (msg_get_u32(m, &n) < 0 || n > HEAD_FIELDS_MAX)
        return -1;
    /* one copy of all the bytes left: they hold every name and value */
    size_t room = buf_len(&m->body);
    char *at = malloc(room + 1);
    if (at == NULL)
        return -1;
    h->raw = at;
    h->raw_n = room;
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

static struct hop_exchange *find(struct hop *h, uint32_t id)
{
    struct hop_exchange *x;
    LIST_FOREACH(x, &h->list, link)
    if (x->id == id)
        return x;
    return NULL;
}

static struct front drop(struct hop_exchange *x)
{
    struct front f = x->front;
    LIST_REMOVE(x, link);
    x->hop->n--;
    x->hop->grown -= x->window - HOP_FIRST;
    free(x);
    return f;
}

static void fail_all(struct hop *h, const char *code)
{
    struct hop_exchange *x;
    while ((x = LIST_FIRST(&h->list)) != NULL) {
        struct front f = drop(x);
        f.ops->fail(f.self, 503, code, NULL);
    }
}

uint32_t hop_window_grow(uint32_t *window, uint32_t *grown)
{
    uint32_t left = HOP_GROWTH - *grown, more = *window;
    if (more > HOP_WINDOW - *window)
        more = HOP_WINDOW - *window;
    if (more > left)
        more = left;
    *window += more;
    *grown += more;
    return more;
}

/* Credit goes back in portions, while the front has room. Without room its output is over the high
 * mark, so it will say resume. A front's output holds its high mark (STREAM_OUT_MAX / 2) and one
 * whole window. */
static void acknowledge(struct hop_exchange *x, uint32_t least)
{
    if (x->unacked < least || x->front.ops->room(x->front.self) == 0)
        return;
    uint32_t more = hop_window_grow(&x->window, &x->hop->grown);
    struct msg m;
    msg_init(&m, W_HOP_CREDIT);
    msg_put_u32(&m, x->id);
    msg_put_u32(&m, x->unacked + more);
    x->unacked = 0;
    ipc_send(x->hop->ch, &m);
}

static int on_reply(struct hop_exchange *x, struct msg *m)
{
    struct head h;
    uint32_t status;
    uint8_t body;
    http_head_init(&h);
    bool sane = msg_get_u32(m, &status) == 0 && msg_get_u8(m, &body) == 0 &&
                msg_get_u64(m, &h.length) == 0 && hop_get_fields(m, &h) == 0 && msg_end(m) == 0 &&
                !x->replied;
    bool tunnel = sane && body == BODY_TUNNEL;
    sane = sane && (tunnel ? x->tunnel && status == 101 && h.length == 0
                           : status >= 200 && status <= 999 && body <= BODY_CLOSE);
    if (sane) {
        h.upgrade = tunnel ? UPGRADE_WEBSOCKET : UPGRADE_NONE;
        h.status = status;
        h.minor = 1;
        h.body = body;
        x->replied = true;
        x->front.ops->reply(x->front.self, &h);
    }
    http_head_free(&h);
    return sane ? 0 : -1;
}

static int on_body(struct hop_exchange *x, struct msg *m)
{
    struct slice s;
    if (msg_get_slice(m, IPC_MSG_MAX, &s) < 0 || msg_end(m) < 0 || !x->replied || x->trailed)
        return -1;
    if (x->unacked + s.n > x->window)
        return -1; /* beyond its credit */
    x->unacked += (uint32_t)s.n;
    x->front.ops->data(x->front.self, s.p, s.n);
    acknowledge(x, x->window / 4);
    return 0;
}

static int on_trailers(struct hop_exchange *x, struct msg *m)
{
    struct head h;
    http_head_init(&h);
    bool sane = hop_get_fields(m, &h) == 0 && msg_end(m) == 0 && x->replied && !x->trailed;
    if (sane) {
        x->trailed = true;
        x->front.ops->trailers(x->front.self, &h);
    }
    http_head_free(&h);
    return sane ? 0 : -1;
}

static int on_fail(struct hop_exchange *x, struct msg *m)
{
    uint32_t status, retry;
    char code[64], id[48];
    if (msg_get_u32(m, &status) < 0 || msg_get_str(m, code, sizeof code) < 0 ||
        msg_get_str(m, id, sizeof id) < 0 || msg_get_u32(m, &retry) < 0 || msg_end(m) < 0 ||
        retry > 2 * 86400 || status < 400 || status > 599)
        return -1;
    unsigned ours = x->refused;
    const char *why = ours ? x->refused_code : code;
    struct front f = drop(x);
    stream_retry(&f, ours ? 0 : retry);
    f.ops->fail(f.self, ours ? ours : status, why, id);
    return 0;
}

static int on_credit(struct hop_exchange *x, struct msg *m)
{
    uint32_t n;
    if (msg_get_u32(m, &n) < 0 || msg_end(m) < 0 || n > HOP_WINDOW || x->credit + n > HOP_WINDOW)
        return -1;
    x->credit += n;
    x->front.ops->wanted(x->front.self);
    return 0;
}

/* Sent before it heard that we refuse the request; with an end it has forgotten it. */
static int on_late(struct hop_exchange *x, const struct msg *m)
{
    if (m->type != W_HOP_END)
        return 0;
    unsigned status = x->refused;
    const char *code = x->refused_code;
    struct front f = drop(x);
    f.ops->fail(f.self, status, code, "-");
    return 0;
}

static int on_message(struct ipc *ch UNUSED, struct msg *m, void *arg)
{
    struct hop *h = arg;
    uint32_t id;
    if (msg_get_u32(m, &id) < 0)
        return -1;
    struct hop_exchange *x = find(h, id);
    if (x == NULL)
        return 0; /* cancelled meanwhile */
    if (x->refused && m->type != W_HOP_FAIL)
        return on_late(x, m);
    switch (m->type) {
    case W_HOP_REPLY:
        return on_reply(x, m);
    case W_HOP_BODY:
        return on_body(x, m);
    case W_HOP_CREDIT:
        return on_credit(x, m);
    case W_HOP_TRAILERS:
        return on_trailers(x, m);
    case W_HOP_FAIL:
        return on_fail(x, m);
    case W_HOP_END: {
        if (msg_end(m) < 0 || !x->replied)
            return -1;
        struct front f = drop(x);
        f.ops->end(f.self);
        return 0;
    }
    default:
        return -1;
    }
}

static void on_closed(struct ipc *ch, const char *why UNUSED, void *arg)
{
    struct hop *h = arg;
    ipc_free(ch);
    h->ch = NULL;
    fail_all(h, "injector_gone");
    peer_lost(h->parent, h->number);
}

struct hop *hop_new(struct event_base *base)
{
    struct hop *h = calloc(1, sizeof *h);
    if (h == NULL)
        return NULL;
    h->base = base;
    LIST_INIT(&h->list);
    return h;
}

void hop_free(struct hop *h)
{
    if (h == NULL)
        return;
    ipc_free(h->ch);
    h->ch = NULL; /* a front that is told of it cannot open another */
    fail_all(h, "shutdown");
    free(h);
}

void hop_lost_to(struct hop *h, struct ipc *parent)
{
    h->parent = parent;
}

void hop_attach(struct hop *h, int fd, uint32_t number)
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

bool hop_ready(const struct hop *h)
{
    return h && h->ch != NULL;
}

/* ---- the back ---- */

static void back_data(void *self, const void *p, size_t n)
{
    struct hop_exchange *x = self;
    const char *at = p;
    while (n > 0) {
        size_t k = n < HOP_BODY_MAX ? n : HOP_BODY_MAX;
        struct msg m;
        msg_init(&m, W_HOP_BODY);
        msg_put_u32(&m, x->id);
        msg_put_bytes(&m, at, k);
        ipc_send(x->hop->ch, &m);
        at += k;
        n -= k;
        x->credit -= (uint32_t)(k < x->credit ? k : x->credit);
    }
}

static void send_id(struct hop_exchange *x, uint16_t type)
{
    struct msg m;
    msg_init(&m, type);
    msg_put_u32(&m, x->id);
    ipc_send(x->hop->ch, &m);
}

static void back_end(void *self)
{
    send_id(self, W_HOP_END);
}

static size_t back_room(void *self)
{
    struct hop_exchange *x = self;
    return x->hop->ch && x->refused == 0 && ipc_queued(x->hop->ch) < HOP_WINDOW * 4 ? x->credit : 0;
}

static void back_resume(void *self)
{
    acknowledge(self, 1);
}

static void send_abort(struct hop_exchange *x, const char *code)
{
    struct msg m;
    msg_init(&m, W_HOP_ABORT);
    msg_put_u32(&m, x->id);
    msg_put_str(&m, code);
    ipc_send(x->hop->ch, &m);
}

static void back_cancel(void *self, const char *code)
{
    struct hop_exchange *x = self;
    if (x->refused == 0)
        send_abort(x, code);
    drop(x);
}

static bool back_refuse(void *self, unsigned status, const char *code)
{
    struct hop_exchange *x = self;
    if (x->refused || x->replied)
        return false;
    x->refused = status;
    x->refused_code = code;
    send_abort(x, code);
    return true;
}

static const struct back_ops back_ops = {
    .data = back_data,
    .end = back_end,
    .room = back_room,
    .resume = back_resume,
    .refuse = back_refuse,
    .cancel = back_cancel,
};

struct back hop_open(struct hop *h, struct front front, const struct hop_request *r)
{
    struct hop_exchange *x = NULL;
    struct back none = {NULL, NULL};
    if (!hop_ready(h) || h->n >= HOP_EXCHANGES_MAX || ipc_queued(h->ch) > HOP_WINDOW * 16 ||
        (x = calloc(1, sizeof *x)) == NULL)
        return none;
    x->hop = h;
    x->id = ++h->next;
    x->front = front;
    x->credit = HOP_FIRST;
    x->window = HOP_FIRST;
    x->tunnel = r->head->body == BODY_TUNNEL;
    LIST_INSERT_HEAD(&h->list, x, link);
    h->n++;
    const struct head *q = r->head;
    struct msg m;
    msg_init(&m, W_HOP_REQUEST);
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
    msg_put_u8(&m, q->te_trailers);
    msg_put_str(&m, r->secret);
    msg_put_str(&m, r->entry);
    msg_put_str(&m, r->token);
    msg_put_u32(&m, r->marks ? r->marks->n : 0);
    for (unsigned i = 0; r->marks && i < r->marks->n; i++)
        msg_put_str(&m, r->marks->text[i]);
    msg_put_u32(&m, r->blanks ? r->blanks->n : 0);
    for (unsigned i = 0; r->blanks && i < r->blanks->n; i++)
        msg_put_str(&m, r->blanks->text[i]);
    hop_put_fields(&m, q);
    if (ipc_send(h->ch, &m) < 0) {
        drop(x);
        return none;
    }
    return (struct back){&back_ops, x};
}
