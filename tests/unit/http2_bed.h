/* What the tests of HTTP/2 towards the sandbox share: nghttp2 plays the client; the session and the
 * backs are played here. */
#ifndef DURWARD_TEST_HTTP2_BED_H
#define DURWARD_TEST_HTTP2_BED_H
#include "faults.h"
#include "http2_server.h"
#include "tap_main.h"

#include <event2/event.h>
#include <nghttp2/nghttp2.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { STREAMS_MAX = 256 };

static struct event_base *base;
static struct faults_book faults;
static const struct limits limits = {.head_bytes = 32768,
                                     .headers = 100,
                                     .target_bytes = 8192,
                                     .head_seconds = 1,
                                     .idle_seconds = 1};

/* An exchange as the bed plays it, in order of arrival. */
struct asked {
    struct bed *bed;
    struct downstream downstream;
    char path[32];
    size_t room, taken, reply; /* reply: bytes still to give */
    bool ended, cancelled, open;
    char cancel[32];
};

/* A stream as the client sees it, by its id. */
struct answer {
    unsigned status;
    size_t bytes;
    char denied[64], text[512], trailer[32];
    bool closed, ended, continued, reset; /* reset: by the server, with reset_error */
    uint32_t error, reset_error;
};

struct bed {
    struct faults *shared; /* what its sandbox has used up */
    int fd;
    struct io *io;
    struct http2_server *server;
    nghttp2_session *h2;
    struct asked asked[STREAMS_MAX];
    size_t n_asked, room;
    unsigned refused, breaches;
    char breach[32], detail[64];
    bool closed, hold, eof, no_window;
    struct answer answers[2 * STREAMS_MAX];
    uint32_t goaway;
    bool gone;
    size_t upload; /* bytes of body a request of ours sends */
    bool raw;      /* what comes is only kept: our nghttp2 would not bear it */
    struct buf got;
};

static UNUSED int setup(void)
{
    base = event_base_new();
    return base ? 0 : -1;
}

static UNUSED int teardown(void)
{
    event_base_free(base);
    faults_book_free(&faults);
    return 0;
}

/* ---- the upstream ---- */

static UNUSED void reply_head(struct asked *a, enum body_kind kind, uint64_t length)
{
    struct head h;
    http_head_init(&h);
    h.status = 200;
    h.body = kind;
    h.length = length;
    h.fields[h.n++] = (struct field){SLICE("x-path"), slice_str(a->path)};
    h.fields[h.n++] = (struct field){SLICE("connection"), SLICE("x")}; /* never sent on */
    a->downstream.ops->reply(a->downstream.self, &h);
}

static UNUSED void give(struct asked *a)
{
    static const char data[65536];
    while (a->open && a->reply > 0) {
        size_t room = a->downstream.ops->room(a->downstream.self),
               n = a->reply < room ? a->reply : room;
        if (n == 0)
            return;
        a->downstream.ops->data(a->downstream.self, data, n);
        a->reply -= n;
    }
    if (a->open) {
        a->open = false;
        a->downstream.ops->end(a->downstream.self);
    }
}

static UNUSED void answer(struct asked *a)
{
    reply_head(a, BODY_LENGTH, strlen(a->path));
    a->downstream.ops->data(a->downstream.self, a->path, strlen(a->path));
    a->downstream.ops->end(a->downstream.self);
}

static UNUSED void upstream_data(void *self, const void *p UNUSED, size_t n)
{
    struct asked *a = self;
    CU_ASSERT(n <= a->room && !a->cancelled && !a->ended);
    a->taken += n;
    if (a->bed->room == 0)
        a->room = 0;
}

static UNUSED void upstream_end(void *self)
{
    struct asked *a = self;
    CU_ASSERT(!a->ended && !a->cancelled);
    a->ended = true;
    if (!a->bed->hold)
        answer(a);
}

static UNUSED size_t upstream_room(void *self)
{
    return ((struct asked *)self)->room;
}

static UNUSED void upstream_resume(void *self)
{
    give(self);
}

static UNUSED void upstream_cancel(void *self, const char *code)
{
    struct asked *a = self;
    CU_ASSERT(!a->cancelled);
    a->cancelled = true;
    a->open = false;
    snprintf(a->cancel, sizeof a->cancel, "%s", code);
}

static UNUSED const struct refusal *upstream_trailers(void *self UNUSED, const struct head *fields)
{
    static const struct refusal bad = {403, "secret_blocked"};
    return http_head_find(fields, "x-bad") ? &bad : NULL;
}

static const struct upstream_ops upstream_ops = {
    .data = upstream_data,
    .trailers = upstream_trailers,
    .end = upstream_end,
    .room = upstream_room,
    .resume = upstream_resume,
    .cancel = upstream_cancel,
};

/* ---- the session ---- */

static UNUSED void on_request(void *session, const struct requester *by, struct head *h)
{
    struct bed *b = session;
    CU_ASSERT_FATAL(b->n_asked < STREAMS_MAX);
    struct asked *a = &b->asked[b->n_asked++];
    a->bed = b;
    a->downstream = by->downstream;
    a->room = b->room;
    snprintf(a->path, sizeof a->path, "%.*s", SL(h->path));
    if (slice_starts(h->path, SLICE("/denied")))
        by->downstream.ops->fail(by->downstream.self, 403, "no_rule", "7-1");
    else
        by->set_upstream(by->downstream.self, (struct upstream){&upstream_ops, a});
}

static UNUSED void on_refused(void *session, const struct requester *by,
                              const struct head *h UNUSED, const struct refusal *why)
{
    ((struct bed *)session)->refused++;
    by->downstream.ops->fail(by->downstream.self, why->status, why->code, "7-2");
}

static UNUSED void on_breach(void *session, const char *code, const char *detail)
{
    struct bed *b = session;
    b->breaches++;
    snprintf(b->breach, sizeof b->breach, "%s", code);
    snprintf(b->detail, sizeof b->detail, "%s", detail);
}

static UNUSED void on_closed(void *session)
{
    struct bed *b = session;
    b->closed = true;
    b->server = NULL;
    io_close_flushed(b->io);
    b->io = NULL;
}

static const struct http2_server_ops ops = {.ahead = 192 * 1024,
                                            .request = on_request,
                                            .refused = on_refused,
                                            .breach = on_breach,
                                            .closed = on_closed};

/* ---- the client ---- */

static UNUSED int client_header(nghttp2_session *h2 UNUSED, const nghttp2_frame *f,
                                const uint8_t *name, size_t n, const uint8_t *value, size_t vn,
                                uint8_t flags UNUSED, void *arg)
{
    struct bed *b = arg;
    struct answer *a = &b->answers[f->hd.stream_id];
    struct slice name_s = {(const char *)name, n}, v = {(const char *)value, vn};
    uint64_t status;
    if (slice_eq(name_s, SLICE(":status")) && slice_u64(v, 999, &status) == 0) {
        a->continued |= status == 100;
        a->status = (unsigned)status;
    }
    if (slice_eq(name_s, SLICE("durward-denied")))
        snprintf(a->denied, sizeof a->denied, "%.*s", SL(v));
    if (slice_eq(name_s, SLICE("x-sum")))
        snprintf(a->trailer, sizeof a->trailer, "%.*s", SL(v));
    CU_ASSERT(!slice_eq(name_s, SLICE("connection")));
    return 0;
}

static UNUSED int client_data(nghttp2_session *h2 UNUSED, uint8_t flags UNUSED, int32_t id,
                              const uint8_t *p, size_t n, void *arg)
{
    struct bed *b = arg;
    struct answer *a = &b->answers[id];
    if (a->bytes + n < sizeof a->text)
        memcpy(a->text + a->bytes, p, n);
    a->bytes += n;
    return 0;
}

static UNUSED int client_frame(nghttp2_session *h2 UNUSED, const nghttp2_frame *f, void *arg)
{
    struct bed *b = arg;
    if (f->hd.type == NGHTTP2_GOAWAY) {
        b->gone = true;
        b->goaway = f->goaway.error_code;
    }
    if ((f->hd.type == NGHTTP2_DATA || f->hd.type == NGHTTP2_HEADERS) &&
        f->hd.flags & NGHTTP2_FLAG_END_STREAM)
        b->answers[f->hd.stream_id].ended = true;
    if (f->hd.type == NGHTTP2_RST_STREAM) {
        b->answers[f->hd.stream_id].reset = true;
        b->answers[f->hd.stream_id].reset_error = f->rst_stream.error_code;
    }
    return 0;
}

static UNUSED int client_close(nghttp2_session *h2 UNUSED, int32_t id, uint32_t error, void *arg)
{
    struct bed *b = arg;
    b->answers[id].closed = true;
    b->answers[id].error = error;
    return 0;
}

static UNUSED ssize_t client_body(nghttp2_session *h2, int32_t id, uint8_t *to, size_t room,
                                  uint32_t *flags, nghttp2_data_source *source, void *arg)
{
    struct bed *b = arg;
    size_t n = b->upload < room ? b->upload : room;
    memset(to, 'u', n);
    b->upload -= n;
    if (b->upload == 0)
        *flags |= NGHTTP2_DATA_FLAG_EOF;
    if (b->upload == 0 && source->ptr) { /* the name of a trailer */
        const char *name = source->ptr;
        nghttp2_nv nv = {(uint8_t *)(uintptr_t)name, (uint8_t *)(uintptr_t) "1", strlen(name), 1,
                         0};
        *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
        nghttp2_submit_trailer(h2, id, &nv, 1);
    }
    return (ssize_t)n;
}

static UNUSED void open_client(struct bed *b)
{
    nghttp2_session_callbacks *cb;
    nghttp2_option *o;
    CU_ASSERT_EQUAL_FATAL(nghttp2_session_callbacks_new(&cb) | nghttp2_option_new(&o), 0);
    nghttp2_option_set_no_auto_window_update(o, b->no_window);
    nghttp2_session_callbacks_set_on_header_callback(cb, client_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(cb, client_data);
    nghttp2_session_callbacks_set_on_frame_recv_callback(cb, client_frame);
    nghttp2_session_callbacks_set_on_stream_close_callback(cb, client_close);
    nghttp2_session_client_new2(&b->h2, cb, b, o);
    nghttp2_session_callbacks_del(cb);
    nghttp2_option_del(o);
    nghttp2_submit_settings(b->h2, 0, NULL, 0);
}

/* A connection of this sandbox. */
static UNUSED struct bed *open_bed_of(const char *sandbox, bool no_window)
{
    int fds[2];
    struct bed *b = calloc(1, sizeof *b);
    CU_ASSERT_PTR_NOT_NULL_FATAL(b);
    CU_ASSERT_EQUAL_FATAL(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds),
                          0);
    b->fd = fds[1];
    b->room = 65536;
    b->no_window = no_window;
    buf_init(&b->got, 1 << 20);
    b->io = io_new(base, fds[0], STREAM_IN_MAX, STREAM_OUT_MAX, false);
    b->shared = faults_join(&faults, sandbox, faults_now());
    CU_ASSERT_PTR_NOT_NULL_FATAL(b->shared);
    b->server = http2_server_new(base, b->io, &limits, b->shared, &ops, b);
    CU_ASSERT_PTR_NOT_NULL_FATAL(b->server);
    http2_server_start(b->server);
    open_client(b);
    return b;
}

/* Each its own: what one has used up is not the next one's. */
static UNUSED struct bed *open_bed(bool no_window)
{
    static unsigned n;
    char sandbox[16];
    snprintf(sandbox, sizeof sandbox, "bed%u", n++);
    return open_bed_of(sandbox, no_window);
}

/* It was answered with 400 and this code, and then reset. */
static UNUSED bool refused_and_reset(const struct answer *a, const char *denied)
{
    return a->status == 400 && strcmp(a->denied, denied) == 0 && a->ended && a->reset &&
           a->reset_error == NGHTTP2_PROTOCOL_ERROR;
}

static UNUSED void close_bed(struct bed *b)
{
    http2_server_free(b->server);
    faults_leave(b->shared);
    io_close(b->io);
    for (int i = 0; i < 20; i++)
        event_base_loop(base, EVLOOP_NONBLOCK);
    close(b->fd);
    nghttp2_session_del(b->h2);
    buf_free(&b->got);
    for (size_t i = 0; i < b->n_asked; i++)
        CU_ASSERT(!b->asked[i].open);
    free(b);
}

static UNUSED void send_all(struct bed *b, const uint8_t *p, size_t n)
{
    while (n > 0) {
        ssize_t k = send(b->fd, p, n, MSG_NOSIGNAL);
        if (k > 0) {
            p += k;
            n -= (size_t)k;
            continue;
        }
        event_base_loop(base, EVLOOP_NONBLOCK);
        if (b->closed)
            return;
    }
}

/* Both sides until nothing moves for so many milliseconds. */
static UNUSED void body_buffer(struct bed *b, unsigned ms)
{
    uint8_t data[16384];
    const uint8_t *p;
    struct pollfd poller = {.fd = b->fd, .events = POLLIN};
    for (unsigned quiet = 0; quiet < ms && !b->eof; quiet++) {
        ssize_t n;
        while ((n = nghttp2_session_mem_send(b->h2, &p)) > 0) {
            send_all(b, p, (size_t)n);
            quiet = 0;
        }
        for (int i = 0; i < 5; i++)
            event_base_loop(base, EVLOOP_NONBLOCK);
        n = recv(b->fd, data, sizeof data, 0);
        if (n > 0 && b->raw) {
            CU_ASSERT_EQUAL(buf_append(&b->got, data, (size_t)n), 0);
            continue;
        }
        if (n > 0) {
            CU_ASSERT_EQUAL(nghttp2_session_mem_recv(b->h2, data, (size_t)n), n);
            quiet = 0;
            continue;
        }
        b->eof = n == 0;
        poll(&poller, 1, 1);
    }
}

#define NV(n, v)                                                                      \
    {                                                                                 \
        (uint8_t *)(uintptr_t)(n), (uint8_t *)(uintptr_t)(v), strlen(n), strlen(v), 0 \
    }

static UNUSED int32_t ask(struct bed *b, const char *method, const char *path, const char *length,
                          bool body, const char *trailer)
{
    nghttp2_nv nv[] = {NV(":method", method), NV(":scheme", "https"), NV(":authority", "a.example"),
                       NV(":path", path), NV("content-length", length ? length : "")};
    nghttp2_data_provider from = {{.ptr = (void *)(uintptr_t)trailer}, client_body};
    return nghttp2_submit_request(b->h2, NULL, nv, length ? 5 : 4, body ? &from : NULL, NULL);
}

static UNUSED int32_t get(struct bed *b, const char *path)
{
    return ask(b, "GET", path, NULL, false, NULL);
}

#endif
