/* The streams of an HTTP/2 connection: what is told to the request of one, and what it asks. */
#include "http2_client_internal.h"
#include "stream.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    REFUSED_MS = 1000,       /* so long an origin that refused a stream is asked for no more */
    TUNNEL_END_SECONDS = 10, /* both sides have ended a tunnel; the origin is to end the stream */
};

void http2_client_stream_ready(struct http2_client_stream *s)
{
    if (s->ready || s->ops == NULL)
        return;
    s->ready = true;
    TAILQ_INSERT_TAIL(&s->client->ready, s, ready_link);
}

void http2_client_stream_due(struct http2_client_stream *s, unsigned seconds)
{
    http2_client_due(s->client, &s->due, seconds);
}

/* ---- streams ---- */

void http2_client_stream_moved(struct http2_client_stream *s)
{
    const struct limits *l = s->client->limits;
    http2_client_stream_due(s, s->tunnel ? l->tunnel_seconds : l->idle_seconds);
}

void http2_client_stream_free(struct http2_client_stream *s)
{
    struct http2_client *c = s->client;
    LIST_REMOVE(s, link);
    c->kept--;
    if (s->ready)
        TAILQ_REMOVE(&c->ready, s, ready_link);
    if (c->gathering == s)
        c->gathering = NULL;
    if (s->wide)
        c->wide--;
    for (int i = 0; i < 2; i++) {
        struct head *h = i ? s->trailers : s->reply;
        if (h)
            http_head_free(h);
        free(h);
    }
    buf_free(&s->up);
    buf_free(&s->down);
    free(s);
}

void http2_client_stream_over(struct http2_client_stream *s)
{
    if (!s->open && s->ops == NULL && s->depth == 0)
        http2_client_stream_free(s);
}

void http2_client_stream_closed(struct http2_client_stream *s)
{
    s->open = false;
    http2_client_stream_over(s);
}

void http2_client_stream_fail(struct http2_client_stream *s, const char *code, const char *detail)
{
    if (s->code || s->ops == NULL)
        return;
    s->code = code;
    s->detail = detail;
    if (strcmp(code, "upstream_refused") == 0)
        s->client->refused_until = http2_now() + REFUSED_MS;
    http2_client_stream_ready(s);
}

void http2_client_stream_reset(struct http2_client_stream *s, uint32_t error)
{
    struct http2_client *c = s->client;
    if (s->open && nghttp2_submit_rst_stream(c->session, NGHTTP2_FLAG_NONE, s->id, error) != 0)
        http2_client_broken(c, "upstream_protocol", "out of memory for a reset");
}

/* Its request is over from here on. */
static void release(struct http2_client_stream *s)
{
    struct http2_client *c = s->client;
    s->ops = NULL;
    http2_client_stream_reset(s, NGHTTP2_CANCEL); /* where the end of the request is not out yet */
    buf_free(&s->up); /* until its reset is sent, which may take a while, nothing asks for it */
    if (s->wide) {
        s->wide = false;
        c->wide--;
    }
    c->in_use--;
    if (c->in_use == 0)
        http2_client_idle(c);
}

/* ---- telling the request ---- */

static void push_data(struct http2_client_stream *s)
{
    struct http2_client *c = s->client;
    if (s->pushing)
        return;
    s->pushing = true;
    while (s->ops && s->code == NULL && buf_len(&s->down) > 0) {
        size_t n = buf_len(&s->down), room = s->ops->room(s->arg);
        if (room == 0) {
            s->due = 0; /* it is not the origin who keeps us waiting */
            break;
        }
        n = n < room ? n : room;
        n = n < STREAM_CHUNK ? n : STREAM_CHUNK;
        s->ops->data(s->arg, buf_data(&s->down), n);
        buf_drain(&s->down, n);
        if (s->open && nghttp2_session_consume_stream(c->session, s->id, n) != 0)
            http2_client_broken(c, "upstream_protocol", "out of memory for a window");
        if (buf_len(&s->down) == 0 && !s->ended)
            http2_client_stream_moved(s);
    }
    if (buf_len(&s->down) == 0)
        buf_shrink(&s->down);
    s->pushing = false;
}

static void tell_reply(struct http2_client_stream *s)
{
    struct head *h = s->reply;
    s->reply = NULL;
    s->told = true;
    http2_client_stream_moved(s);
    s->ops->reply(s->arg, h);
    http_head_free(h);
    free(h);
}

static void tell_end(struct http2_client_stream *s)
{
    const struct client_ops *ops = s->ops;
    void *arg = s->arg;
    if (s->trailers)
        ops->trailers(arg, s->trailers);
    if (s->ops == NULL)
        return; /* given up in that */
    release(s);
    ops->end(arg);
}

static void tell_fail(struct http2_client_stream *s)
{
    const struct client_ops *ops = s->ops;
    void *arg = s->arg;
    release(s);
    ops->fail(arg, s->code, s->detail);
}

void http2_client_stream_tell(struct http2_client_stream *s)
{
    s->depth++;
    if (s->ops && s->code)
        tell_fail(s);
    if (s->ops && s->reply)
        tell_reply(s);
    if (s->ops && s->told)
        push_data(s);
    if (s->ops && s->told && s->ended && !s->pushing && buf_len(&s->down) == 0)
        tell_end(s);
    if (s->ops && s->want && !s->request_done) {
        s->want = false;
        s->ops->wanted(s->arg);
    }
    s->depth--;
    http2_client_stream_over(s);
}

/* ---- what the holder asks ---- */

static void go_on_sending(struct http2_client_stream *s)
{
    if (s->deferred && s->open) {
        s->deferred = false;
        (void)nghttp2_session_resume_data(s->client->session, s->id);
    }
    http2_client_kick(s->client);
}

static void upstream_stream_data(void *self, const void *p, size_t n)
{
    struct http2_client_stream *s = self;
    if (s->ops == NULL || s->code || n == 0)
        return;
    if (s->tunnel && s->told)
        http2_client_stream_moved(s);
    if (buf_append(&s->up, p, n) < 0)
        http2_client_stream_fail(s, "upstream_protocol", "more than there was room for");
    go_on_sending(s);
}

static void upstream_stream_end(void *self)
{
    struct http2_client_stream *s = self;
    s->request_done = true;
    if (!s->final)
        http2_client_stream_due(s, s->client->limits->reply_seconds);
    else if (s->tunnel)
        http2_client_stream_due(s, TUNNEL_END_SECONDS);
    go_on_sending(s);
}

static size_t upstream_stream_room(void *self)
{
    struct http2_client_stream *s = self;
    size_t have = buf_len(&s->up);
    bool able = s->ops && s->code == NULL && s->client->io && !s->request_done;
    return able && have < HTTP2_CLIENT_UP ? HTTP2_CLIENT_UP - have : 0;
}

static void upstream_stream_resume(void *self)
{
    struct http2_client_stream *s = self;
    struct http2_client *c = s->client;
    c->depth++;
    http2_client_stream_tell(s);
    http2_client_leave(c);
}

static void upstream_stream_drop(void *self)
{
    struct http2_client_stream *s = self;
    struct http2_client *c = s->client;
    c->depth++;
    release(s);
    http2_client_stream_over(s);
    c->depth--;
    http2_client_kick(c);
}

static const struct upstream_stream_ops upstream_stream_ops = {
    .data = upstream_stream_data,
    .end = upstream_stream_end,
    .room = upstream_stream_room,
    .resume = upstream_stream_resume,
    .drop = upstream_stream_drop,
};

struct http2_client_stream *http2_client_stream_new(struct http2_client *c,
                                                    const struct client_ops *ops, void *arg,
                                                    struct slice method)
{
    struct http2_client_stream *s = calloc(1, sizeof *s);
    if (s == NULL)
        return NULL;
    s->client = c;
    s->ops = ops;
    s->arg = arg;
    snprintf(s->method, sizeof s->method, "%.*s", SL(method));
    buf_init(&s->up, 2 * HTTP2_CLIENT_UP); /* the headers of a tunnel come on top (tunnel.h) */
    buf_init(&s->down, HTTP2_CLIENT_WINDOW_WIDE);
    s->up.wipe = s->down.wipe = c->wipe;
    LIST_INSERT_HEAD(&c->streams, s, link);
    c->kept++;
    return s;
}

struct upstream_stream http2_client_stream_handle(struct http2_client_stream *s)
{
    return (struct upstream_stream){&upstream_stream_ops, s};
}
