/* Reads requests from a client and is the front of each one's exchange; a refusal that is the last
 * answer is followed by dropping input for a while, so that the client can read it. */
#include "http1_server.h"

#include "assertion.h"
#include "http1_body.h"
#include "http1_write.h"
#include "upgrade.h"

#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum server_state {
    S_HEAD = 0, /* between requests, or reading a head */
    S_EXCHANGE, /* a request is under way */
    S_CLOSING,  /* the last reply is being flushed */
    S_LINGER,   /* it is, and what the client still sends is dropped */
    S_DEAD,
};

/* A socket that is closed with input unread resets, and the client loses the answer. */
enum { LINGER_SECONDS = 1, LINGER_MAX = 1024 * 1024, FLUSH_SECONDS = 10 };

struct http1_server {
    struct io *io;
    const struct limits *limits;
    const struct http1_server_ops *ops;
    void *session;
    enum server_state state;
    struct event *later; /* after a pause */
    struct upstream upstream;
    struct http1_body body;
    size_t scanned;
    bool head_begun, request_done, expect_continue, minor0, head_request, te_trailers;
    bool replied, reply_chunked, trailed, close_after, released;
    bool tunnel;                      /* the reply began one */
    char accept[UPGRADE_ACCEPT_TEXT]; /* what a WebSocket is answered; "": none is asked for */
    const char *refusal_field;
    size_t lingered;   /* bytes dropped in S_LINGER */
    unsigned flushing; /* seconds that the answer has taken to leave */
    unsigned retry;    /* seconds, told with a refusal; 0: nothing is known */
    struct answer_how how;
    int depth;
    bool freed;
};

static void set_state(struct http1_server *s, enum server_state st)
{
    ASSERT(s->state != S_DEAD || st == S_DEAD);
    s->state = st;
}

static void server_destroy(struct http1_server *s)
{
    http1_body_free(&s->body);
    event_free(s->later);
    free(s);
}

static void leave(struct http1_server *s)
{
    if (--s->depth == 0 && s->freed)
        server_destroy(s);
}

void http1_server_free(struct http1_server *s)
{
    if (s == NULL || s->freed)
        return;
    s->freed = true;
    set_state(s, S_DEAD);
    struct upstream b = s->upstream;
    s->upstream = (struct upstream){NULL, NULL};
    if (b.ops)
        b.ops->cancel(b.self, "client_gone");
    if (s->depth == 0)
        server_destroy(s);
}

/* The connection is over: tell the session, which closes the io. */
static void shut(struct http1_server *s)
{
    if (s->freed)
        return;
    const struct http1_server_ops *ops = s->ops;
    void *session = s->session;
    http1_server_free(s);
    ops->closed(session);
}

/* The reply cannot be completed: the client must not take what it has for all of it. */
static void cut(struct http1_server *s)
{
    if (s->freed)
        return;
    io_break(s->io);
    shut(s);
}

/* A reply is out. Next request, or close. */
static void exchange_over(struct http1_server *s)
{
    s->upstream = (struct upstream){NULL, NULL};
    if (!s->request_done)
        s->close_after = true; /* the rest of its body is of no use to anyone */
    http1_body_free(&s->body);
    if (s->close_after || io_eof(s->io)) {
        set_state(s, S_CLOSING);
        return;
    }
    set_state(s, S_HEAD);
    s->head_begun = false;
    s->scanned = 0;
    io_deadline(s->io, s->limits->idle_seconds);
}

/* How long nothing may move either way. */
static unsigned quiet_seconds(const struct http1_server *s)
{
    return s->tunnel ? s->limits->tunnel_seconds : s->limits->idle_seconds;
}

/* A request at fault counts against all that its sandbox says, one that was answered for it. Of a
 * head that could not be read nobody knows whose it is: `unread`. */
static void charge(struct http1_server *s, bool unread)
{
    struct faults *f = s->ops->faults(s->session, unread);
    if (f) /* the connection ends by the refusal: beyond FAULTS_MAX there is no more to do */
        (void)faults_take(f, FAULTS_FAULT, faults_now());
}

static void credit(struct http1_server *s)
{
    struct faults *f = s->ops->faults(s->session, false);
    if (f)
        faults_give(f, FAULTS_FAULT);
}

/* Its sandbox is at fault too often: no further head is read for a moment. */
static bool paused(struct http1_server *s)
{
    struct faults *f = s->ops->faults(s->session, false);
    struct timeval later = {0, FAULTS_PAUSE_MS * 1000};
    if (f == NULL || !faults_slow(f, faults_now()))
        return false;
    if (!evtimer_pending(s->later, NULL))
        evtimer_add(s->later, &later);
    io_deadline(s->io, s->limits->idle_seconds); /* it waits for us, not we for it */
    return true;
}

/* ---- as the front of an exchange ---- */

static void begin_tunnel(struct http1_server *s, const struct head *h)
{
    s->tunnel = true;
    io_deadline(s->io, quiet_seconds(s));
    if (s->accept[0] == 0 || http1_write_upgrade(io_out(s->io), h, s->accept) < 0)
        io_deadline(s->io, 1); /* cannot happen: nobody else makes a tunnel */
    io_flush_soon(s->io);
}

static void downstream_reply(void *self, const struct head *h)
{
    struct http1_server *s = self;
    struct buf *out = io_out(s->io);
    enum body_kind kind = h->body;
    if (kind == BODY_CLOSE || kind == BODY_CHUNKED) {
        kind = s->minor0 ? BODY_CLOSE : BODY_CHUNKED;
        s->close_after |= s->minor0;
    }
    s->reply_chunked = kind == BODY_CHUNKED;
    s->replied = true;
    if (!s->request_done)
        s->close_after = true;
    if (kind == BODY_TUNNEL) {
        begin_tunnel(s, h);
        return;
    }
    if (http1_write_reply(out, h, kind, h->length, s->close_after, s->head_request) < 0)
        s->close_after = true;
    io_deadline(s->io, s->limits->idle_seconds);
    io_flush_soon(s->io);
}

static void downstream_data(void *self, const void *p, size_t n)
{
    struct http1_server *s = self;
    int r = 0;
    if (!s->replied || n == 0)
        return;
    if (s->reply_chunked) {
        char size[16];
        int k = snprintf(size, sizeof size, "%zx\r\n", n);
        r = io_write(s->io, size, (size_t)k);
    }
    r |= io_write(s->io, p, n);
    if (s->reply_chunked)
        r |= io_write(s->io, "\r\n", 2);
    if (r < 0)
        io_deadline(s->io,
                    1); /* an upstream that ignored room(): cut it, never truncate silently */
    else
        io_deadline(s->io, quiet_seconds(s));
}

static void downstream_trailers(void *self, const struct head *h)
{
    struct http1_server *s = self;
    if (!s->replied || !s->reply_chunked || !s->te_trailers)
        return;
    s->trailed = true;
    if (http1_write_trailers(io_out(s->io), h) < 0)
        s->close_after = true;
    io_flush_soon(s->io);
}

static void run(struct http1_server *s);

static void go_on(struct http1_server *s)
{
    if (s->depth > 0)
        return; /* run() is on the stack and looks again */
    run(s);
}

static void downstream_end(void *self)
{
    struct http1_server *s = self;
    s->depth++;
    credit(s);
    if (s->replied && s->reply_chunked && !s->trailed && io_write(s->io, "0\r\n\r\n", 5) < 0)
        s->close_after = true;
    exchange_over(s);
    s->depth--;
    go_on(s);
}

/* A refusal by policy alone says nothing against the connection (SPECIFICATION, "The form of a
 * refusal"). */
static bool refusal_keeps(unsigned status, const char *code)
{
    return status == 403 && (strcmp(code, "no_rule") == 0 || strcmp(code, "denied_by_rule") == 0 ||
                             strcmp(code, "method") == 0);
}

static void downstream_fail(void *self, unsigned status, const char *code, const char *id)
{
    struct http1_server *s = self;
    s->depth++;
    if (s->replied) {
        s->upstream = (struct upstream){NULL, NULL};
        cut(s);
        leave(s);
        return;
    }
    bool close = s->close_after || !s->request_done || !refusal_keeps(status, code);
    struct answer a;
    answer_make(&a, &s->how, status, code, id, s->retry);
    if (http1_write_refusal(io_out(s->io), &a, close, s->head_request, s->refusal_field) < 0)
        close = true;
    s->refusal_field = "";
    s->close_after = close;
    io_flush_soon(s->io);
    exchange_over(s);
    s->depth--;
    go_on(s);
}

static size_t downstream_room(void *self)
{
    struct http1_server *s = self;
    size_t have = io_out_len(s->io), max = STREAM_OUT_MAX / 2;
    size_t room = have >= max ? 0 : max - have;
    return room > STREAM_IN_MAX ? STREAM_IN_MAX : room;
}

static void downstream_retry(void *self, unsigned seconds)
{
    ((struct http1_server *)self)->retry = seconds;
}

static void downstream_kube(void *self)
{
    ((struct http1_server *)self)->how.form = ANSWER_KUBE;
}

static void downstream_rpc(void *self, const char *id)
{
    answer_rpc(&((struct http1_server *)self)->how, id);
}

static void downstream_wanted(void *self)
{
    struct http1_server *s = self;
    if (s->depth == 0)
        run(s);
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
    .rpc = downstream_rpc,
    .kube = downstream_kube,
};

/* ---- the last answer ---- */

static void drop_input(struct http1_server *s)
{
    struct buf *in = io_in(s->io);
    s->lingered += buf_len(in);
    buf_clear(in);
    if (s->lingered > LINGER_MAX)
        shut(s);
}

/* Our side ends with the answer; the client's goes on until it has seen that, within bounds. */
static void finish(struct http1_server *s)
{
    bool more = !s->request_done || buf_len(io_in(s->io)) > 0;
    if (!more || io_eof(s->io)) {
        shut(s);
        return;
    }
    set_state(s, S_LINGER);
    io_end(s->io);
    io_deadline(s->io, LINGER_SECONDS);
    drop_input(s);
}

static void linger_timeout(struct http1_server *s)
{
    if (io_out_len(s->io) > 0 && ++s->flushing < FLUSH_SECONDS)
        io_deadline(s->io, LINGER_SECONDS);
    else
        shut(s);
}

/* ---- the request side ---- */

static void begin_exchange(struct http1_server *s, const struct head *h, bool done)
{
    set_state(s, S_EXCHANGE);
    s->minor0 = h->minor == 0;
    s->head_request = slice_eq(h->method, SLICE("HEAD"));
    s->close_after |= !h->keep_alive;
    s->expect_continue = h->expect_continue;
    s->request_done = done;
    s->replied = s->reply_chunked = s->trailed = s->tunnel = false;
    s->accept[0] = 0;
    if (h->upgrade != UPGRADE_NONE && upgrade_accept(upgrade_key(h), s->accept) < 0)
        s->accept[0] = 0;
    s->te_trailers = h->te_trailers;
    s->refusal_field = "";
    s->retry = 0;
    s->how = answer_how(h, false);
    s->upstream = (struct upstream){NULL, NULL};
    http1_body_init(&s->body, h->body, h->length);
    io_deadline(s->io, 0);
}

static void take_request(struct http1_server *s, size_t n)
{
    struct buf *in = io_in(s->io);
    struct head h;
    struct refusal why;
    struct downstream f = {&downstream_ops, s};
    int r = http1_parse_request(&h, (struct slice){(const char *)buf_data(in), n}, s->limits, &why);
    buf_drain(in, n);
    begin_exchange(s, &h, r == 0 && h.body == BODY_NONE);
    if (r < 0) {
        s->close_after = true;
        if (why.status < 500)
            charge(s, true);
        s->ops->refused(s->session, s, &h, f, &why);
    } else {
        s->ops->request(s->session, s, &h, f);
    }
    http_head_free(&h);
    if (!s->freed && !s->released && s->upstream.ops && s->request_done)
        s->upstream.ops->end(s->upstream.self);
}

static void bad_start(struct http1_server *s, ssize_t n)
{
    struct head h;
    struct downstream f = {&downstream_ops, s};
    struct refusal why = http1_head_refusal(n, buf_slice(io_in(s->io)), s->scanned);
    http_head_init(&h);
    h.minor = 1;
    begin_exchange(s, &h, false);
    s->close_after = true;
    charge(s, true);
    s->ops->refused(s->session, s, &h, f, &why);
}

/* 1: something was done; 0: needs more input. */
static int read_head(struct http1_server *s)
{
    struct buf *in = io_in(s->io);
    if (buf_len(in) == 0)
        return 0;
    if (!s->head_begun) {
        if (paused(s))
            return 0;
        s->head_begun = true;
        io_deadline(s->io, s->limits->head_seconds);
    }
    ssize_t n = http1_head_end(buf_slice(in), s->limits->head_bytes, &s->scanned);
    if (n == HTTP1_MORE)
        return 0;
    if (n < 0)
        bad_start(s, n);
    else
        take_request(s, (size_t)n);
    return 1;
}

static void send_continue(struct http1_server *s)
{
    s->expect_continue = false;
    if (io_write(s->io, "HTTP/1.1 100 Continue\r\n\r\n", 25) < 0)
        s->close_after = true;
}

/* The request cannot go on: its upstream is told why, and the client. */
static void give_up(struct http1_server *s, unsigned status, const char *code)
{
    struct upstream b = s->upstream;
    char id[STREAM_ID] = "-";
    s->close_after = true;
    if (b.ops && b.ops->refuse && b.ops->refuse(b.self, status, code)) {
        io_deadline(s->io, s->limits->idle_seconds);
        return;
    }
    s->upstream = (struct upstream){NULL, NULL};
    if (b.ops && b.ops->id)
        b.ops->id(b.self, id);
    if (b.ops)
        b.ops->cancel(b.self, code);
    downstream_fail(s, status, code, id);
}

static void end_request(struct http1_server *s)
{
    struct head h;
    const struct refusal *why = NULL;
    if (http1_body_trailers(&s->body, &h) > 0 && s->upstream.ops)
        why = s->upstream.ops->trailers(s->upstream.self, &h);
    http_head_free(&h);
    if (why) {
        charge(s, false);
        give_up(s, why->status, why->code);
        return;
    }
    s->request_done = true;
    io_deadline(s->io, 0);
    if (s->upstream.ops)
        s->upstream.ops->end(s->upstream.self);
}

/* Pass body bytes on as far as the upstream has room. 1: again; 0: wait. */
static int push_body(struct http1_server *s)
{
    struct buf *in = io_in(s->io);
    size_t room = s->upstream.ops ? s->upstream.ops->room(s->upstream.self) : 0;
    if (s->request_done || room == 0)
        return 0;
    if (s->expect_continue && buf_len(in) == 0)
        send_continue(s);
    struct slice out;
    ssize_t used = http1_body_read(&s->body, buf_slice(in), room, &out);
    if (used < 0) {
        charge(s, false);
        give_up(s, 400, "framing");
        return 1;
    }
    if (used == 0)
        return 0;
    io_deadline(s->io, quiet_seconds(s));
    if (out.n)
        s->upstream.ops->data(s->upstream.self, out.p, out.n);
    buf_drain(in, (size_t)used);
    if (s->body.done)
        end_request(s);
    return 1;
}

static void run(struct http1_server *s)
{
    int again = 1;
    s->depth++;
    while (again && !s->freed && !s->released) {
        if (s->state == S_HEAD)
            again = read_head(s);
        else if (s->state == S_EXCHANGE)
            again = push_body(s);
        else
            again = 0;
    }
    if (s->released) {
        s->freed = true;
        leave(s);
        return;
    }
    if (s->state == S_CLOSING)
        finish(s);
    else if (s->state == S_LINGER)
        drop_input(s);
    if (!s->freed)
        io_consumed(s->io);
    leave(s);
}

static void on_eof(struct http1_server *s)
{
    /* a client that ended its side after a whole request still gets its reply; within TLS, where
     * most that say close_notify are done, until it ends the socket as well */
    if (s->state != S_EXCHANGE || !s->request_done) {
        shut(s);
        return;
    }
    s->close_after = true;
    if (io_ssl(s->io))
        io_await_end(s->io);
}

static void on_timeout(struct http1_server *s)
{
    if (s->state == S_LINGER) {
        linger_timeout(s);
        return;
    }
    if (s->state == S_HEAD && !s->head_begun) {
        shut(s); /* idle keep-alive */
        return;
    }
    if (s->replied) {
        cut(s); /* a reader that takes nothing */
        return;
    }
    if (s->state == S_HEAD) {
        struct downstream f = {&downstream_ops, s};
        struct head h;
        struct refusal why = {408, "timeout"};
        http_head_init(&h);
        h.minor = 1;
        begin_exchange(s, &h, false);
        s->close_after = true;
        s->ops->refused(s->session, s, &h, f, &why);
    } else {
        give_up(s, 408, "timeout");
    }
    if (!s->freed && s->state == S_CLOSING)
        finish(s);
}

static void on_io(struct io *io UNUSED, enum io_event ev, void *arg)
{
    struct http1_server *s = arg;
    s->depth++;
    switch (ev) {
    case IO_READABLE:
        s->depth--;
        run(s);
        return;
    case IO_DRAINED:
        if (s->upstream.ops)
            s->upstream.ops->resume(s->upstream.self);
        if (!s->freed)
            run(s); /* the reply may have ended in that */
        break;
    case IO_EOF:
        on_eof(s);
        break;
    case IO_TIMEOUT:
        on_timeout(s);
        break;
    case IO_ERROR:
        shut(s);
        break;
    case IO_CONNECTED:
        break;
    }
    leave(s);
}

static void on_later(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
    struct http1_server *s = arg;
    if (s->state == S_HEAD)
        run(s);
}

struct http1_server *http1_server_new(struct event_base *base, struct io *io,
                                      const struct limits *l, const struct http1_server_ops *ops,
                                      void *session)
{
    struct http1_server *s = calloc(1, sizeof *s);
    if (s == NULL || (s->later = evtimer_new(base, on_later, s)) == NULL) {
        free(s);
        return NULL;
    }
    s->io = io;
    s->limits = l;
    s->ops = ops;
    s->session = session;
    s->refusal_field = "";
    io_callback(io, on_io, s);
    io_deadline(io, l->idle_seconds);
    return s;
}

void http1_server_set_upstream(struct http1_server *s, struct upstream upstream)
{
    s->upstream = upstream;
}

void http1_server_release(struct http1_server *s)
{
    s->released = true;
    set_state(s, S_DEAD);
}

bool http1_server_idle(const struct http1_server *s)
{
    return s->state == S_HEAD && !s->head_begun;
}

void http1_server_close_after(struct http1_server *s)
{
    s->close_after = true;
}

void http1_server_refusal_field(struct http1_server *s, const char *line)
{
    s->refusal_field = line;
}

void http1_server_start(struct http1_server *s)
{
    run(s);
}
