/* The far end of an HTTP/2 connection to an origin, which says any bytes, and those who open
 * streams. Used by test_http2_client.c and test_http2_evil.c. */
#ifndef DURWARD_HTTP2_CLIENT_BED_H
#define DURWARD_HTTP2_CLIENT_BED_H

#include "http2_client.h"
#include "http2_client_internal.h"
#include "pool.h"
#include "stream.h"
#include "tap_main.h"

#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { MOST = 4, HEADERS_END = 4, END_STREAM = 1 };

static struct event_base *base;
static struct limits limits = {.head_bytes = 8192,
                               .headers = 50,
                               .target_bytes = 8192,
                               .idle_seconds = 5,
                               .reply_seconds = 1,
                               .dial_seconds = 5,
                               .pool_idle_seconds = 5};

struct asked {
    struct upstream_stream upstream_stream;
    size_t room;
    unsigned replies, ends, fails, wanted, status, trailers;
    bool drop_on_reply, drop_on_data, again_on_end;
    struct bed *bed;
    enum body_kind body;
    char code[64];
    char x[16];      /* of the field of that name */
    size_t n_fields; /* of the reply */
    struct buf got;
};

struct bed {
    int fd; /* the origin's end */
    struct http2_client *client;
    struct asked a[MOST];
    struct buf seen; /* what came to the origin */
    enum http2_news news[8];
    unsigned n_news;
};

static inline int setup(void)
{
    base = event_base_new();
    return base ? 0 : -1;
}

static inline int teardown(void)
{
    event_base_free(base);
    return 0;
}

static inline void turn(void)
{
    for (int i = 0; i < 20; i++)
        event_base_loop(base, EVLOOP_NONBLOCK);
}

static inline void drop(struct asked *a)
{
    struct upstream_stream l = a->upstream_stream;
    a->upstream_stream.ops = NULL;
    if (l.ops)
        l.ops->drop(l.self);
}

static inline void on_reply(void *arg, const struct head *h)
{
    struct asked *a = arg;
    a->replies++;
    a->status = h->status;
    a->body = h->body;
    a->n_fields = h->n;
    const struct field *x = http_head_find(h, "x");
    snprintf(a->x, sizeof a->x, "%.*s", x ? (int)x->value.n : 0, x ? x->value.p : "");
    if (a->drop_on_reply)
        drop(a);
}

static inline void on_data(void *arg, const void *p, size_t n)
{
    struct asked *a = arg;
    CU_ASSERT(n <= a->room);
    CU_ASSERT_EQUAL(buf_append(&a->got, p, n), 0);
    if (a->drop_on_data)
        drop(a);
}

static inline void on_trailers(void *arg, const struct head *fields)
{
    struct asked *a = arg;
    CU_ASSERT_EQUAL(a->ends, 0);
    a->trailers += (unsigned)fields->n;
}

static inline void ask(struct bed *b, unsigned i, const char *method, enum body_kind body);

static inline void on_end(void *arg)
{
    struct asked *a = arg;
    a->ends++;
    a->upstream_stream.ops = NULL;
    if (a->again_on_end) {
        a->again_on_end = false;
        ask(a->bed, 1, "GET", BODY_NONE);
    }
}

static inline void on_fail(void *arg, const char *code, const char *detail)
{
    struct asked *a = arg;
    a->fails++;
    a->upstream_stream.ops = NULL;
    CU_ASSERT_PTR_NOT_NULL(detail);
    snprintf(a->code, sizeof a->code, "%s", code);
}

static inline size_t on_room(void *arg)
{
    return ((struct asked *)arg)->room;
}

static inline void on_wanted(void *arg)
{
    ((struct asked *)arg)->wanted++;
}

static const struct client_ops ops = {
    .reply = on_reply,
    .data = on_data,
    .trailers = on_trailers,
    .end = on_end,
    .fail = on_fail,
    .room = on_room,
    .wanted = on_wanted,
};

static inline void on_news(void *arg, enum http2_news news)
{
    struct bed *b = arg;
    if (b->n_news < ARRAY_LEN(b->news))
        b->news[b->n_news++] = news;
    if (news == HTTP2_LEFT)
        b->client = NULL;
}

static inline bool left(const struct bed *b)
{
    return b->client == NULL;
}

static inline struct http2_client *connect_one(int *far)
{
    int fds[2];
    CU_ASSERT_EQUAL_FATAL(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds),
                          0);
    *far = fds[1];
    return http2_client_new(base, io_new(base, fds[0], STREAM_IN_MAX, STREAM_OUT_MAX, true),
                            &limits, true, "192.0.2.1:443");
}

static inline void open_bed(struct bed *b)
{
    memset(b, 0, sizeof *b);
    for (size_t i = 0; i < MOST; i++) {
        b->a[i].room = 65536;
        b->a[i].bed = b;
        buf_init(&b->a[i].got, 4 << 20);
    }
    buf_init(&b->seen, 4 << 20);
    b->client = connect_one(&b->fd);
    CU_ASSERT_PTR_NOT_NULL_FATAL(b->client);
    http2_client_owner(b->client, 5, on_news, b);
}

static inline void ask(struct bed *b, unsigned i, const char *method, enum body_kind body)
{
    struct authority to = {
        .scheme = SCHEME_HTTPS, .kind = HOST_NAME, .host = "a.example", .port = 443};
    struct head h;
    http_head_init(&h);
    h.method = slice_str(method);
    h.path = SLICE("/x");
    h.body = body;
    h.length = body == BODY_LENGTH ? 5 : 0;
    CU_ASSERT_EQUAL(http_head_add(&h, "authorization", SLICE("Bearer SECRET")), 0);
    struct asked *a = &b->a[i];
    a->upstream_stream = http2_client_open_stream(b->client, &ops, a, &h, &to);
    CU_ASSERT_PTR_NOT_NULL_FATAL(a->upstream_stream.ops);
    if (body == BODY_NONE)
        a->upstream_stream.ops->end(a->upstream_stream.self);
    http_head_free(&h);
}

/* What the origin gets, all of it. */
static inline void listen_to(struct bed *b)
{
    char text[65536];
    ssize_t n;
    turn();
    while ((n = recv(b->fd, text, sizeof text, MSG_DONTWAIT)) > 0) {
        CU_ASSERT_EQUAL_FATAL(buf_append(&b->seen, text, (size_t)n), 0);
        turn();
    }
}

static inline void say_n(struct bed *b, const void *p, size_t n)
{
    const char *at = p;
    while (n > 0) {
        ssize_t k = send(b->fd, at, n, MSG_NOSIGNAL);
        turn();
        if (k < 0)
            return; /* hung up on, or full: the test looks at what came of it */
        at += k;
        n -= (size_t)k;
    }
    turn();
}

static inline void say(struct bed *b, unsigned type, unsigned flags, uint32_t stream, const void *p,
                       size_t n)
{
    unsigned char f[9 + 16384] = {
        (unsigned char)(n >> 16),      (unsigned char)(n >> 8),      (unsigned char)n,
        (unsigned char)type,           (unsigned char)flags,         (unsigned char)(stream >> 24),
        (unsigned char)(stream >> 16), (unsigned char)(stream >> 8), (unsigned char)stream};
    CU_ASSERT_FATAL(n <= 16384);
    if (n)
        memcpy(f + 9, p, n);
    say_n(b, f, n + 9);
}

static inline void settings(struct bed *b)
{
    say(b, NGHTTP2_SETTINGS, 0, 0, "", 0);
    say(b, NGHTTP2_SETTINGS, 1, 0, "", 0);
}

/* ":status: 200" is entry 8 of the table; other fields as literals. */
static inline size_t put_text(unsigned char *to, const char *text)
{
    size_t n = 0;
    for (; text[n] && n < 127; n++)
        to[1 + n] = (unsigned char)text[n];
    to[0] = (unsigned char)n;
    return 1 + n;
}

static inline size_t put_field(unsigned char *to, const char *name, const char *value)
{
    to[0] = 0;
    size_t n = 1 + put_text(to + 1, name);
    return n + put_text(to + n, value);
}

static inline void reply(struct bed *b, uint32_t stream, unsigned flags, const char *status,
                         const char *name, const char *value)
{
    unsigned char f[512];
    size_t n = status ? put_field(f, ":status", status) : 0;
    if (name)
        n += put_field(f + n, name, value);
    say(b, NGHTTP2_HEADERS, flags | HEADERS_END, stream, f, n);
}

static inline void close_bed(struct bed *b)
{
    for (size_t i = 0; i < MOST; i++)
        drop(&b->a[i]);
    if (b->client)
        http2_client_close(b->client);
    turn();
    close(b->fd);
    for (int i = 0; i < 3; i++)
        turn();
    for (size_t i = 0; i < MOST; i++)
        buf_free(&b->a[i].got);
    buf_free(&b->seen);
}

static inline bool saw(const struct bed *b, const void *p, size_t n)
{
    return slice_find_slice(buf_slice(&b->seen), (struct slice){p, n}) >= 0;
}

#endif
