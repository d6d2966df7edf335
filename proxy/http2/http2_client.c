/* The connection itself: its session, its one timer, its end, and what its owner may ask. Streams
 * are in http2_client_stream.c, requests in http2_request.c, replies in http2_reply.c. */
#include "http2_client_internal.h"

#include "assertion.h"
#include "stream.h"

#include <errno.h>
#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

enum {
    PING_AFTER_MS = 15000, /* of silence, before a request is trusted to the connection */
    PING_SECONDS = 10,
    TABLE_MAX = 4096, /* compression table towards the origin, whatever it would like */
    ACKS_MAX = 200,
    EARLY_MS = 50,           /* a timer may be that much before its time */
    GOODBYE_MAX = 64 * 1024, /* output that is still worth sending when it closes */
};

uint64_t http2_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static void set_state(struct http2_client *c, enum http2_state s)
{
    ASSERT(s >= c->state); /* no way back */
    c->state = s;
}

/* ---- deadlines: one timer, the earliest ---- */

static void arm(struct http2_client *c, uint64_t due)
{
    if (due == 0 || c->io == NULL || (c->armed != 0 && c->armed <= due))
        return;
    uint64_t now = http2_now(), wait = due > now ? due - now : 0;
    c->armed = due;
    io_deadline(c->io, wait > 1000 ? (unsigned)((wait + 999) / 1000) : 1);
}

void http2_client_due(struct http2_client *c, uint64_t *due, unsigned seconds)
{
    *due = seconds ? http2_now() + (uint64_t)seconds * 1000 : 0;
    arm(c, *due);
}

/* ---- what happens later ---- */

static void soon(struct http2_client *c)
{
    static const struct timeval now = {0, 0};
    if (c->depth == 0)
        event_add(c->soon, &now);
}

void http2_client_broken(struct http2_client *c, const char *code, const char *why)
{
    if (c->broken)
        return;
    c->broken = code;
    snprintf(c->why, sizeof c->why, "%s", why);
    soon(c);
}

static void news(struct http2_client *c, enum http2_news n)
{
    http2_owner_fn fn = c->owner_fn;
    if (n == HTTP2_LEFT)
        c->owner_fn = NULL;
    if (fn)
        fn(c->owner_arg, n);
}

void http2_client_idle(struct http2_client *c)
{
    if (c->state != H2_OPEN)
        return;
    http2_client_due(c, &c->idle_due, c->idle_seconds);
    news(c, HTTP2_IDLE);
}

/* ---- the connection's end ---- */

static void destroy(struct http2_client *c)
{
    nghttp2_session_del(c->session);
    struct http2_client_stream *s;
    while ((s = LIST_FIRST(&c->streams)) != NULL)
        http2_client_stream_free(s);
    event_free(c->soon);
    buf_free(&c->block);
    free(c);
}

static void pump(struct http2_client *c)
{
    while (c->io && !c->unproven && io_out_len(c->io) < STREAM_OUT_MAX / 2) {
        const uint8_t *p;
        ssize_t n = nghttp2_session_mem_send(c->session, &p);
        if (n == 0)
            return;
        if (n < 0 || io_write(c->io, p, (size_t)n) < 0) {
            http2_client_broken(c, "upstream_protocol", n < 0 ? nghttp2_strerror((int)n) : "room");
            return;
        }
    }
}

/* The socket goes; a last word (GOAWAY) is sent where the origin takes it. */
static void hang_up(struct http2_client *c)
{
    struct io *io = c->io;
    if (io == NULL)
        return;
    pump(c);
    c->io = NULL;
    set_state(c, H2_LOST);
    if (io_out_len(io) <= GOODBYE_MAX)
        io_close_flushed(io);
    else
        io_close(io);
}

static void lose(struct http2_client *c, const char *code)
{
    struct http2_client_stream *s;
    bool closed = strcmp(code, "upstream_closed") == 0;
    news(c, HTTP2_LEFT);
    hang_up(c);
    LIST_FOREACH(s, &c->streams, link)
    if (!s->ended)
        http2_client_stream_fail(s, closed && s->final ? "upstream_truncated" : code, c->why);
}

static void deliver(struct http2_client *c)
{
    struct http2_client_stream *s;
    while ((s = TAILQ_FIRST(&c->ready)) != NULL) {
        TAILQ_REMOVE(&c->ready, s, ready_link);
        s->ready = false;
        http2_client_stream_tell(s);
    }
}

/* Everything that callbacks noted. The caller holds c by its depth. */
static void work(struct http2_client *c)
{
    do {
        deliver(c);
        pump(c);
        if (c->broken && c->io)
            lose(c, c->broken);
        if (c->goaway && c->state == H2_OPEN) {
            set_state(c, H2_DRAINING);
            news(c, HTTP2_LEFT);
        }
    } while (!TAILQ_EMPTY(&c->ready));
    if (c->io && c->in_use == 0 && c->state == H2_DRAINING) {
        (void)nghttp2_session_terminate_session(c->session, NGHTTP2_NO_ERROR);
        hang_up(c);
    } else if (c->io && nghttp2_session_want_read(c->session) == 0 &&
               nghttp2_session_want_write(c->session) == 0) {
        http2_client_broken(c, "upstream_closed", "the origin said goodbye");
        lose(c, c->broken);
        deliver(c);
    }
}

void http2_client_leave(struct http2_client *c)
{
    if (c->depth > 1) {
        c->depth--;
        return;
    }
    work(c);
    c->depth--;
    if (c->state == H2_LOST && c->in_use == 0)
        destroy(c);
}

/* ---- what the socket and the clock say ---- */

/* HTTP/2 begins with SETTINGS, which are shorter than 64 KiB: what begins otherwise in clear is an
 * answer in another protocol. */
static bool begins_well(const struct http2_client *c)
{
    return !c->unproven || c->heard || buf_len(io_in(c->io)) == 0 || buf_data(io_in(c->io))[0] == 0;
}

static void take_input(struct http2_client *c)
{
    struct buf *in = io_in(c->io);
    if (!begins_well(c)) {
        http2_client_broken(c, "upstream_no_h2", "the origin answered in another protocol");
        return;
    }
    c->heard = http2_now();
    c->ping_due = 0; /* it lives, whatever it says */
    while (!c->broken && buf_len(in) > 0) {
        ssize_t n = nghttp2_session_mem_recv(c->session, buf_data(in), buf_len(in));
        if (n < 0) {
            http2_client_broken(c, "upstream_protocol", nghttp2_strerror((int)n));
            return;
        }
        buf_drain(in, (size_t)n);
    }
    io_consumed(c->io);
}

static bool past(uint64_t due, uint64_t now)
{
    return due != 0 && due <= now + EARLY_MS;
}

static void on_clock(struct http2_client *c)
{
    uint64_t now = http2_now();
    struct http2_client_stream *s;
    c->armed = 0;
    if (past(c->settings_due, now))
        http2_client_broken(c, "upstream_timeout", "the origin sent no SETTINGS");
    if (past(c->ping_due, now))
        http2_client_broken(c, "upstream_timeout", "the origin did not answer a PING");
    if (past(c->idle_due, now) && c->in_use == 0 && c->state == H2_OPEN) {
        set_state(c, H2_DRAINING);
        news(c, HTTP2_LEFT);
    }
    arm(c, c->settings_due);
    arm(c, c->ping_due);
    if (c->in_use == 0)
        arm(c, c->idle_due);
    LIST_FOREACH(s, &c->streams, link)
    {
        if (past(s->due, now)) {
            s->due = 0;
            http2_client_stream_fail(s, "upstream_timeout", "the origin was silent too long");
        }
        arm(c, s->due);
    }
}

static void on_io(struct io *io, enum io_event ev, void *arg)
{
    struct http2_client *c = arg;
    c->depth++;
    switch (ev) {
    case IO_READABLE:
        take_input(c);
        break;
    case IO_EOF:
        http2_client_broken(c, "upstream_closed",
                            c->heard ? "the origin closed" : "the origin closed, and said nothing");
        break;
    case IO_ERROR:
        http2_client_broken(c, "upstream_closed", io_why(io));
        break;
    case IO_TIMEOUT:
        on_clock(c);
        break;
    case IO_DRAINED:
    case IO_CONNECTED:
        break;
    }
    http2_client_leave(c);
}

static void on_soon(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
    struct http2_client *c = arg;
    c->depth++;
    http2_client_leave(c);
}

/* Send what was submitted, now if nothing of this connection is on the stack; tell later. */
void http2_client_kick(struct http2_client *c)
{
    if (c->depth > 0)
        return;
    c->depth++;
    pump(c);
    c->depth--;
    if (!TAILQ_EMPTY(&c->ready) || c->broken || c->io == NULL || c->in_use == 0)
        soon(c);
}

struct upstream_stream http2_client_open_stream(struct http2_client *c,
                                                const struct client_ops *ops, void *arg,
                                                const struct head *h, const struct authority *a)
{
    static const struct upstream_stream none;
    struct http2_client_stream *s = http2_client_stream_new(c, ops, arg, h->method);
    if (s == NULL)
        return none;
    if (http2_request_submit(s, h, a) < 0) {
        s->ops = NULL;
        http2_client_stream_over(s);
        return none;
    }
    s->open = true;
    s->tunnel = h->upgrade != UPGRADE_NONE;
    if (s->tunnel) /* it has no end to wait for */
        http2_client_stream_due(s, c->limits->reply_seconds);
    c->in_use++;
    c->idle_due = 0;
    if (c->ping_due == 0 && c->heard != 0 && http2_now() - c->heard > PING_AFTER_MS &&
        nghttp2_submit_ping(c->session, NGHTTP2_FLAG_NONE, NULL) == 0)
        http2_client_due(c, &c->ping_due, PING_SECONDS);
    http2_client_kick(c);
    return http2_client_stream_handle(s);
}

/* ---- for its owner ---- */

bool http2_client_takes(struct http2_client *c)
{
    char b;
    uint32_t theirs =
        nghttp2_session_get_remote_settings(c->session, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS);
    bool full = c->in_use >= theirs || c->kept >= HTTP2_CLIENT_STREAMS_MAX;
    if (c->state != H2_OPEN || c->broken || c->goaway || full || http2_now() < c->refused_until ||
        !nghttp2_session_check_request_allowed(c->session))
        return false;
    if (c->in_use > 0)
        return true;
    ssize_t n = recv(io_fd(c->io), &b, 1, MSG_PEEK | MSG_DONTWAIT);
    /* what it says while nobody asks is most often that it goes */
    return n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
}

bool http2_client_connects(const struct http2_client *c)
{
    return nghttp2_session_get_remote_settings(c->session,
                                               NGHTTP2_SETTINGS_ENABLE_CONNECT_PROTOCOL) == 1;
}

unsigned http2_client_in_use(const struct http2_client *c)
{
    return c->in_use;
}

const char *http2_client_address(const struct http2_client *c)
{
    return c->address;
}

void http2_client_owner(struct http2_client *c, unsigned idle_seconds, http2_owner_fn fn, void *arg)
{
    c->owner_fn = fn;
    c->owner_arg = arg;
    c->idle_seconds = idle_seconds;
    if (c->in_use == 0)
        http2_client_due(c, &c->idle_due, idle_seconds);
}

void http2_client_drain(struct http2_client *c)
{
    c->owner_fn = NULL;
    if (c->state == H2_OPEN)
        set_state(c, H2_DRAINING);
    if (c->depth == 0) {
        c->depth++;
        http2_client_leave(c);
    }
}

void http2_client_close(struct http2_client *c)
{
    if (c == NULL)
        return;
    c->owner_fn = NULL;
    http2_client_broken(c, "upstream_closed", "given up");
    if (c->depth == 0) {
        c->depth++;
        http2_client_leave(c);
    }
}

static int settle(struct http2_client *c)
{
    const nghttp2_settings_entry ours[] = {
        {NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
        {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, HTTP2_CLIENT_WINDOW},
        {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, c->limits->head_bytes},
    };
    return nghttp2_submit_settings(c->session, NGHTTP2_FLAG_NONE, ours, ARRAY_LEN(ours)) != 0 ||
                   nghttp2_session_set_local_window_size(c->session, NGHTTP2_FLAG_NONE, 0,
                                                         HTTP2_CLIENT_WINDOW_ALL) != 0
               ? -1
               : 0;
}

static nghttp2_option *options(void)
{
    nghttp2_option *o;
    if (nghttp2_option_new(&o) != 0)
        return NULL;
    nghttp2_option_set_no_auto_window_update(o, 1);
#if NGHTTP2_VERSION_NUM >= 0x013200 /* until then it did not look for them */
    /* blanks around a value, which servers leave there and every client takes off */
    nghttp2_option_set_no_rfc9113_leading_and_trailing_ws_validation(o, 1);
#endif
    nghttp2_option_set_no_closed_streams(o, 1);
    for (unsigned type = NGHTTP2_CONTINUATION + 1; type <= UINT8_MAX; type++)
        nghttp2_option_set_user_recv_extension_type(o, (uint8_t)type); /* else nobody counts them */
    nghttp2_option_set_max_deflate_dynamic_table_size(o, TABLE_MAX);
    nghttp2_option_set_max_outbound_ack(o, ACKS_MAX);
    nghttp2_option_set_max_send_header_block_length(o, STREAM_OUT_MAX / 2);
    return o;
}

static int open_session(struct http2_client *c)
{
    nghttp2_session_callbacks *cb = http2_reply_callbacks();
    nghttp2_option *o = options();
    http2_memory_init(&c->memory, HTTP2_CLIENT_SESSION_MAX, c->wipe);
    int r = cb && o ? nghttp2_session_client_new3(&c->session, cb, c, o, &c->memory.mem) : -1;
    nghttp2_option_del(o);
    nghttp2_session_callbacks_del(cb);
    return r == 0 ? settle(c) : -1;
}

struct http2_client *http2_client_new(struct event_base *base, struct io *io,
                                      const struct limits *l, bool wipe, const char *address)
{
    struct http2_client *c = calloc(1, sizeof *c);
    if (c == NULL || (c->soon = event_new(base, -1, 0, on_soon, c)) == NULL) {
        free(c);
        io_close(io);
        return NULL;
    }
    c->limits = l;
    c->wipe = wipe;
    snprintf(c->address, sizeof c->address, "%s", address);
    LIST_INIT(&c->streams);
    TAILQ_INIT(&c->ready);
    buf_init(&c->block, (size_t)l->head_bytes);
    c->block.wipe = wipe;
    if (open_session(c) < 0) {
        io_close(io);
        destroy(c);
        return NULL;
    }
    c->io = io;
    c->idle_seconds = l->pool_idle_seconds;
    io_deadline(io, 0);
    io_callback(io, on_io, c);
    http2_client_due(c, &c->settings_due, l->dial_seconds);
    http2_client_kick(c);
    c->unproven = io_ssl(io) == NULL;
    if (buf_len(io_in(io)) > 0)
        soon(c);
    return c;
}
