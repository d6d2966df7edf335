/* The states of a connection to an origin: request out, reply in, idle or dead; also as an
 * upstream stream (upstream_stream.h), and as a tunnel once a reply has begun one. */
#include "http1_client.h"

#include "assertion.h"
#include "http1_body.h"
#include "http1_head.h"
#include "http1_write.h"
#include "stream.h"
#include "upgrade.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum client_state { C_IDLE = 0, C_HEAD, C_BODY, C_DEAD };

enum {
    INTERIM_MAX = 8,
    UP_MAX = 48 * 1024,      /* request bytes that wait for the origin */
    TUNNEL_END_SECONDS = 10, /* both sides have ended a tunnel; the origin is to close */
};

struct http1_client {
    struct io *io;
    const struct limits *limits;
    enum client_state state;
    const struct client_ops *ops;
    void *arg;
    char method[16];
    char accept[UPGRADE_ACCEPT_TEXT]; /* what answers our upgrade; "": none is asked for */
    enum body_kind request_body;
    bool request_done, plain_body; /* plain: none, or with a method that has one */
    bool reply_keeps;              /* the reply allows another request */
    unsigned interim, served;
    size_t scanned;
    struct http1_body body;
    void (*idle_fn)(void *arg);
    void *idle_arg;
    int depth;
    bool freed;
};

static void set_state(struct http1_client *c, enum client_state s)
{
    ASSERT(c->state != C_DEAD || s == C_DEAD);
    c->state = s;
}

static void destroy(struct http1_client *c)
{
    http1_body_free(&c->body);
    free(c);
}

static void leave(struct http1_client *c)
{
    if (--c->depth == 0 && c->freed)
        destroy(c);
}

void http1_client_close(struct http1_client *c)
{
    if (c == NULL || c->freed)
        return;
    if (c->body.kind == BODY_TUNNEL && c->state == C_BODY)
        io_close_lingering(c->io); /* a last close frame arrives */
    else
        io_close(c->io);
    set_state(c, C_DEAD);
    c->io = NULL;
    c->freed = true;
    if (c->depth == 0)
        destroy(c);
}

static void fail(struct http1_client *c, const char *code, const char *detail)
{
    const struct client_ops *ops = c->ops;
    char copy[192];
    snprintf(copy, sizeof copy, "%s", detail);
    void *arg = c->arg;
    c->depth++;
    bool under_way = c->state == C_HEAD || c->state == C_BODY;
    http1_client_close(c);
    if (under_way)
        ops->fail(arg, code, copy);
    leave(c);
}

/* How long neither side may be silent in the middle of what it says. */
static unsigned quiet_seconds(const struct http1_client *c)
{
    return c->body.kind == BODY_TUNNEL ? c->limits->tunnel_seconds : c->limits->idle_seconds;
}

static void push_trailers(struct http1_client *c)
{
    struct head h;
    if (http1_body_trailers(&c->body, &h) > 0)
        c->ops->trailers(c->arg, &h);
    http_head_free(&h);
}

static void finish(struct http1_client *c)
{
    push_trailers(c);
    if (c->freed)
        return; /* given up in that */
    http1_body_free(&c->body);
    set_state(c, C_IDLE);
    io_deadline(c->io, 0);
    c->ops->end(c->arg);
}

/* Nothing more goes up. */
static void end_tunnel(struct http1_client *c)
{
    if (c->state != C_BODY || c->body.kind != BODY_TUNNEL)
        return;
    io_end(c->io);
    io_deadline(c->io, TUNNEL_END_SECONDS);
}

/* One whole reply head at the front of the input; 1 taken, 0 more needed, -1 failed. */
static int take_head(struct http1_client *c)
{
    struct buf *in = io_in(c->io);
    ssize_t n = http1_head_end(buf_slice(in), c->limits->head_bytes, &c->scanned);
    if (n == HTTP1_MORE)
        return 0;
    if (n < 0) {
        fail(c, "upstream_protocol", n == HTTP1_LARGE ? "reply head too large" : "bad reply head");
        return -1;
    }
    struct head h;
    struct refusal why;
    c->scanned = 0;
    int r =
        http1_parse_reply(&h, (struct slice){(const char *)buf_data(in), (size_t)n},
                          slice_str(c->method), c->accept[0] ? c->accept : NULL, c->limits, &why);
    buf_drain(in, (size_t)n);
    if (r < 0) {
        http_head_free(&h);
        fail(c, "upstream_protocol", why.code);
        return -1;
    }
    if (h.status < 200 && h.body != BODY_TUNNEL) {
        http_head_free(&h);
        if (++c->interim > INTERIM_MAX) {
            fail(c, "upstream_protocol", "too many interim replies");
            return -1;
        }
        return 1;
    }
    http1_body_init(&c->body, h.body, h.length);
    c->reply_keeps = h.keep_alive && h.body != BODY_CLOSE && c->plain_body;
    set_state(c, C_BODY);
    io_deadline(c->io, quiet_seconds(c));
    c->ops->reply(c->arg, &h);
    http_head_free(&h);
    if (!c->freed && c->request_done)
        end_tunnel(c); /* its sender had said all before there was one */
    return 1;
}

static void push_body(struct http1_client *c)
{
    while (c->state == C_BODY && !c->freed) {
        struct buf *in = io_in(c->io);
        if (c->body.done) {
            finish(c);
            return;
        }
        size_t room = c->ops->room(c->arg);
        if (room == 0) {
            io_pause(c->io);
            return;
        }
        struct slice out;
        ssize_t used = http1_body_read(&c->body, buf_slice(in), room, &out);
        if (used < 0) {
            fail(c, "upstream_protocol", "bad chunk framing in the reply");
            return;
        }
        if (used == 0)
            break;
        if (out.n)
            c->ops->data(c->arg, out.p, out.n);
        if (c->freed)
            return;
        buf_drain(in, (size_t)used);
        io_deadline(c->io, quiet_seconds(c));
    }
}

static void run(struct http1_client *c)
{
    int r = 1;
    while (c->state == C_HEAD && !c->freed && r > 0)
        r = take_head(c);
    if (!c->freed && c->state == C_BODY)
        push_body(c);
    if (!c->freed)
        io_consumed(c->io);
}

static void on_eof(struct http1_client *c)
{
    if (c->state == C_BODY && (c->body.kind == BODY_CLOSE || c->body.kind == BODY_TUNNEL)) {
        run(c);
        if (c->freed || c->state != C_BODY)
            return;
        if (buf_len(io_in(c->io)) == 0) {
            c->body.done = true;
            push_body(c);
        }
        return;
    }
    if (c->state == C_BODY && buf_len(io_in(c->io)) > 0)
        return; /* what came is still being delivered; a short body fails when it runs dry */
    fail(c, c->state == C_BODY ? "upstream_truncated" : "upstream_closed", "the origin closed");
}

static void idle_event(struct http1_client *c)
{
    void (*fn)(void *) = c->idle_fn;
    c->idle_fn = NULL;
    if (fn)
        fn(c->idle_arg);
}

static void on_io(struct io *io, enum io_event ev, void *arg)
{
    struct http1_client *c = arg;
    c->depth++;
    if (c->state == C_IDLE) {
        if (ev != IO_DRAINED)
            idle_event(c);
    } else if (ev == IO_READABLE) {
        run(c);
        if (!c->freed && io_eof(io) && c->state == C_BODY)
            on_eof(c);
    } else if (ev == IO_EOF) {
        on_eof(c);
    } else if (ev == IO_DRAINED) {
        if (!c->request_done)
            c->ops->wanted(c->arg);
    } else if (ev == IO_TIMEOUT) {
        fail(c, "upstream_timeout", "the origin was silent too long");
    } else if (ev == IO_ERROR) {
        fail(c, c->state == C_BODY ? "upstream_truncated" : "upstream_closed", io_why(io));
    }
    leave(c);
}

struct http1_client *http1_client_new(struct io *io, const struct limits *l)
{
    struct http1_client *c = calloc(1, sizeof *c);
    if (c == NULL) {
        io_close(io);
        return NULL;
    }
    c->io = io;
    c->limits = l;
    io_callback(io, on_io, c);
    io_high_mark(io, UP_MAX);
    return c;
}

/* The head's last CRLF makes room for a handshake of our own (RFC 6455 4.1). */
static void ask_upgrade(struct http1_client *c, struct slice *head)
{
    char lines[192], key[UPGRADE_KEY_TEXT];
    int n = -1;
    if (upgrade_make_key(key) == 0 && upgrade_accept(slice_str(key), c->accept) == 0)
        n = snprintf(lines, sizeof lines,
                     "connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n"
                     "sec-websocket-key: %s\r\n\r\n",
                     key);
    head->n -= 2;
    io_deadline(c->io, c->limits->reply_seconds);
    if (n < 0 || io_write(c->io, head->p, head->n) < 0 || io_write(c->io, lines, (size_t)n) < 0)
        io_deadline(c->io, 1);
    *head = (struct slice){"", 0};
}

void http1_client_start(struct http1_client *c, const struct client_ops *ops, void *arg,
                        struct slice head, struct slice method, enum body_kind body)
{
    c->ops = ops;
    c->arg = arg;
    c->idle_fn = NULL;
    snprintf(c->method, sizeof c->method, "%.*s", SL(method));
    c->request_body = body;
    c->request_done = false;
    c->plain_body = body == BODY_NONE || http1_expects_body(method);
    c->interim = 0;
    c->scanned = 0;
    c->served++;
    set_state(c, C_HEAD);
    c->accept[0] = 0;
    io_deadline(c->io, 0); /* until the request is whole, its sender's time-outs count */
    if (body == BODY_TUNNEL)
        ask_upgrade(c, &head);
    if (io_write(c->io, head.p, head.n) < 0)
        io_deadline(c->io, 1); /* cannot happen: an idle connection's buffer holds any head */
    io_resume(c->io);
}

void http1_client_data(struct http1_client *c, const void *p, size_t n)
{
    int r = 0;
    if (c->state == C_DEAD || n == 0)
        return;
    if (c->request_body == BODY_CHUNKED) {
        char size[16];
        int k = snprintf(size, sizeof size, "%zx\r\n", n);
        r = io_write(c->io, size, (size_t)k);
    }
    r |= io_write(c->io, p, n);
    if (c->request_body == BODY_CHUNKED)
        r |= io_write(c->io, "\r\n", 2);
    if (c->body.kind == BODY_TUNNEL)
        io_deadline(c->io, quiet_seconds(c));
    if (r < 0)
        io_deadline(c->io, 1); /* the caller ignored room(): end the request, never the process */
}

void http1_client_request_end(struct http1_client *c)
{
    if (c->state == C_DEAD)
        return;
    c->request_done = true;
    if (c->state == C_HEAD)
        io_deadline(c->io, c->limits->reply_seconds);
    if (c->request_body == BODY_CHUNKED && io_write(c->io, "0\r\n\r\n", 5) < 0)
        io_deadline(c->io, 1);
    end_tunnel(c);
}

size_t http1_client_room(const struct http1_client *c)
{
    if (c->state == C_DEAD)
        return 0;
    size_t have = io_out_len(c->io);
    return have >= UP_MAX ? 0 : UP_MAX - have;
}

void http1_client_resume(struct http1_client *c)
{
    if (c->state != C_BODY)
        return;
    c->depth++;
    io_resume(c->io);
    push_body(c);
    if (!c->freed && c->state == C_BODY && io_eof(c->io))
        on_eof(c);
    if (!c->freed)
        io_consumed(c->io);
    leave(c);
}

static void upstream_stream_data(void *self, const void *p, size_t n)
{
    http1_client_data(self, p, n);
}

static void upstream_stream_end(void *self)
{
    http1_client_request_end(self);
}

static size_t upstream_stream_room(void *self)
{
    return http1_client_room(self);
}

static void upstream_stream_resume(void *self)
{
    http1_client_resume(self);
}

static void upstream_stream_drop(void *self)
{
    http1_client_close(self);
}

static const struct upstream_stream_ops upstream_stream_ops = {
    .data = upstream_stream_data,
    .end = upstream_stream_end,
    .room = upstream_stream_room,
    .resume = upstream_stream_resume,
    .drop = upstream_stream_drop,
};

struct upstream_stream http1_client_open_stream(struct http1_client *c)
{
    return (struct upstream_stream){&upstream_stream_ops, c};
}

/* Bytes came that nobody asked for; OpenSSL may hold them. */
static bool has_more(const struct http1_client *c)
{
    const SSL *ssl = io_ssl(c->io);
    return buf_len(io_in(c->io)) > 0 || (ssl && SSL_has_pending(ssl));
}

bool http1_client_reusable(const struct http1_client *c)
{
    return c->state == C_IDLE && c->request_done && c->reply_keeps && !io_eof(c->io) &&
           !has_more(c) && io_out_len(c->io) == 0;
}

void http1_client_idle(struct http1_client *c, unsigned seconds, void (*fn)(void *arg), void *arg)
{
    c->idle_fn = fn;
    c->idle_arg = arg;
    io_deadline(c->io, seconds);
    io_resume(c->io);
}

bool http1_client_alive(const struct http1_client *c)
{
    char b;
    if (c->state != C_IDLE || io_eof(c->io) || has_more(c))
        return false;
    ssize_t n = recv(io_fd(c->io), &b, 1, MSG_PEEK | MSG_DONTWAIT);
    /* TLS 1.3 tickets may wait unread; they are data, not an end */
    return n > 0 ? io_ssl(c->io) != NULL : n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
}

unsigned http1_client_served(const struct http1_client *c)
{
    return c->served;
}
