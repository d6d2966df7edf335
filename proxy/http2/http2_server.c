/* The connection's turns: input in slices, bodies moved, output while there is room, and the
 * deadlines. Frames are judged in http2_receive.c, one stream is in http2_stream.c. */
#include "http2_server_internal.h"

#include <event2/event.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    FEED_SLICE = 8192, /* input between two looks at the output */
    QUEUE_MAX = 256,   /* frames that wait to be sent: no more input before they are gone */
    OUT_HIGH = STREAM_OUT_MAX / 2,
    TICK = 1,
    LINGER_SECONDS = 5,
};

time_t http2_server_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return now.tv_sec;
}

void http2_server_arm(struct http2_server *s)
{
    bool busy = s->n_streams > 0 || s->block_at != 0;
    struct timeval tv = {.tv_sec = busy ? TICK : s->limits->idle_seconds};
    event_add(s->tick, &tv);
}

void http2_server_soon(struct http2_server *s)
{
    static const struct timeval now = {0, 0};
    if (s->depth == 0 && !s->freed)
        event_add(s->soon, &now);
}

/* ---- ends ---- */

static void server_destroy(struct http2_server *s)
{
    while (!LIST_EMPTY(&s->streams))
        http2_stream_free(LIST_FIRST(&s->streams));
    nghttp2_session_del(s->h2);
    if (s->soon)
        event_free(s->soon);
    if (s->tick)
        event_free(s->tick);
    http2_head_free(&s->head);
    free(s);
}

static void leave(struct http2_server *s)
{
    if (--s->depth == 0 && s->freed)
        server_destroy(s);
}

static void cancel_all(struct http2_server *s, const char *code)
{
    struct http2_stream *st;
    LIST_FOREACH(st, &s->streams, link)
    http2_stream_cancel(st, code);
}

void http2_server_free(struct http2_server *s)
{
    if (s == NULL || s->freed)
        return;
    s->freed = true;
    cancel_all(s, "client_gone");
    if (s->depth == 0)
        server_destroy(s);
}

/* The connection is over: tell the session, which closes the io. */
static void shut(struct http2_server *s)
{
    if (s->freed)
        return;
    const struct http2_server_ops *ops = s->ops;
    void *session = s->session;
    http2_server_free(s);
    ops->closed(session);
}

void http2_server_tell(struct http2_server *s, const char *code, const char *detail)
{
    if (s->told || s->freed)
        return;
    s->told = true;
    if (strcmp(code, "h2_protocol") == 0) /* the next one is another connection */
        faults_take(s->shared, FAULTS_FAULT, faults_now());
    s->ops->breach(s->session, code, detail);
}

void http2_server_end(struct http2_server *s, uint32_t error, const char *code, const char *detail)
{
    if (s->told)
        return;
    http2_server_tell(s, code, detail);
    cancel_all(s, code);
    nghttp2_session_terminate_session(s->h2, error);
}

/* ---- the connection's turn ---- */

/* What is to be sent, while the io has room: 0, or why it cannot go on. */
static ssize_t send_out(struct http2_server *s)
{
    const uint8_t *p;
    while (!s->freed && io_out_len(s->io) < OUT_HIGH) {
        ssize_t n = nghttp2_session_mem_send(s->h2, &p);
        if (n <= 0)
            return n;
        if (io_write(s->io, p, (size_t)n) < 0)
            return NGHTTP2_ERR_NOMEM;
        s->written += (uint64_t)n;
    }
    return 0;
}

/* What nghttp2 cannot go on from. A last GOAWAY is tried. */
static void broken(struct http2_server *s, ssize_t error)
{
    if (s->freed)
        return;
    bool memory = error == NGHTTP2_ERR_NOMEM;
    http2_server_tell(s, memory ? "memory" : "h2_protocol", nghttp2_strerror((int)error));
    if (!memory && nghttp2_session_terminate_session(s->h2, NGHTTP2_PROTOCOL_ERROR) == 0)
        send_out(s);
    shut(s);
}

static void flush(struct http2_server *s)
{
    ssize_t error = send_out(s);
    if (error < 0)
        broken(s, error);
}

/* Its sandbox is at fault too often: nothing is read for a moment. A connection that has a part in
 * it is not waited for long; the others wait. */
static bool paused(struct http2_server *s)
{
    uint64_t now = faults_now();
    if (!faults_slow(s->shared, now)) {
        if (faults_fresh(s->shared, now))
            s->faults = s->pauses = 0;
        return s->paused = false;
    }
    s->paused = true;
    if (now >= s->pause_until) { /* else bytes that come in it would count as further ones */
        s->pauses++;
        s->pause_until = now + FAULTS_PAUSE_MS;
    }
    if (s->pauses > FAULTS_PAUSES && s->faults * 10 > FAULTS_SLOW) {
        http2_server_end(s, NGHTTP2_ENHANCE_YOUR_CALM, "h2_flood", "requests at fault");
        return true;
    }
    struct timeval later = {0, (suseconds_t)(s->pause_until - now) * 1000};
    event_add(s->soon, &later);
    return true;
}

static bool feed(struct http2_server *s)
{
    if (paused(s))
        return false;
    struct buf *in = io_in(s->io);
    size_t n = buf_len(in) < FEED_SLICE ? buf_len(in) : FEED_SLICE;
    if (n == 0 || nghttp2_session_get_outbound_queue_size(s->h2) > QUEUE_MAX)
        return false;
    ssize_t used = nghttp2_session_mem_recv(s->h2, buf_data(in), n);
    if (used < 0) {
        broken(s, used);
        return false;
    }
    if (s->freed)
        return false;
    buf_drain(in, (size_t)used);
    return used > 0;
}

static void move_bodies(struct http2_server *s)
{
    struct http2_stream *st;
    s->bodies = false;
    LIST_FOREACH(st, &s->streams, link)
    {
        bool push = st->push, resume = st->resume;
        st->push = st->resume = false;
        if (resume && st->upstream.ops)
            st->upstream.ops->resume(st->upstream.self);
        if (push && !s->freed)
            http2_stream_push(st);
        if (s->freed)
            return;
    }
}

static bool over(struct http2_server *s)
{
    return !nghttp2_session_want_read(s->h2) && !nghttp2_session_want_write(s->h2);
}

static void turn(struct http2_server *s)
{
    bool again = true;
    s->depth++;
    while (again && !s->freed) {
        again = feed(s);
        if (s->bodies && !s->freed)
            move_bodies(s);
        if (!s->freed)
            flush(s);
        again |= s->bodies;
    }
    if (!s->freed) {
        io_consumed(s->io);
        if (over(s))
            shut(s);
    }
    leave(s);
}

static void on_soon(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
    turn(arg);
}

static void on_io(struct io *io UNUSED, enum io_event ev, void *arg)
{
    struct http2_server *s = arg;
    switch (ev) {
    case IO_READABLE:
    case IO_DRAINED:
        turn(s);
        return;
    case IO_EOF: /* nobody half-closes TLS */
    case IO_ERROR:
        shut(s);
        return;
    case IO_TIMEOUT:
    case IO_CONNECTED:
        return;
    }
}

/* ---- deadlines ---- */

/* The client has stood still for too long, where the next step is its own. */
static void judge_stream(struct http2_stream *st, time_t now)
{
    time_t idle = st->server->limits->idle_seconds;
    if (buf_len(&st->out) > 0 && now - st->written_at > idle) {
        http2_stream_cancel(st, "timeout"); /* a reader that opens no window */
        st->why = "timeout";
        http2_stream_reset(st, NGHTTP2_CANCEL);
        st->written_at = now;
        return;
    }
    time_t moved = st->read_at > st->written_at ? st->read_at : st->written_at;
    if (st->tunnel && st->upstream.ops &&
        now - moved > (time_t)st->server->limits->tunnel_seconds) {
        http2_stream_cancel(st, "timeout");
        st->why = "timeout";
        http2_stream_reset(st, NGHTTP2_CANCEL);
    }
    if (st->linger_at && now - st->linger_at > LINGER_SECONDS)
        http2_stream_linger_over(st);
    bool owes = !st->request_ended && !st->replied && buf_len(&st->in) == 0 &&
                (st->held || (st->upstream.ops && st->upstream.ops->room(st->upstream.self) > 0));
    if (!owes && !st->tunnel)
        st->read_at = now;
    else if (owes && now - st->read_at > idle && st->held)
        http2_receive_refuse_held(st, 408, "timeout");
    else if (owes && now - st->read_at > idle)
        http2_stream_give_up(st, 408, "timeout");
}

/* We do not read: nobody is late by that. */
static void excuse(struct http2_server *s, time_t now)
{
    struct http2_stream *st;
    s->idle_at = now;
    s->block_at = s->block_at ? now : 0;
    LIST_FOREACH(st, &s->streams, link)
    st->read_at = now;
}

static void judge(struct http2_server *s, time_t now)
{
    struct http2_stream *st;
    uint64_t gone = s->written - io_out_len(s->io);
    if (gone != s->sent || io_out_len(s->io) == 0) {
        s->sent = gone;
        s->sent_at = now;
    } else if (now - s->sent_at > s->limits->idle_seconds) {
        io_break(s->io); /* it takes nothing at all */
        shut(s);
        return;
    }
    if (s->block_at && now - s->block_at > s->limits->head_seconds)
        http2_server_end(s, NGHTTP2_PROTOCOL_ERROR, "timeout", "field block");
    LIST_FOREACH(st, &s->streams, link)
    {
        if (!s->freed && !s->told)
            judge_stream(st, now);
    }
}

/* GOAWAY first; a client that does not take it is not waited for. */
static void end_idle(struct http2_server *s)
{
    if (s->draining || s->told || io_out_len(s->io) > 0)
        shut(s);
    else
        http2_server_drain(s);
}

static void on_tick(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
    struct http2_server *s = arg;
    s->depth++;
    time_t now = http2_server_now();
    if (s->paused)
        excuse(s, now);
    if (s->n_streams > 0 || s->block_at != 0)
        judge(s, now);
    else if (now - s->idle_at >= s->limits->idle_seconds)
        end_idle(s);
    if (!s->freed) {
        http2_server_arm(s);
        turn(s);
    }
    leave(s);
}

void http2_server_drain(struct http2_server *s)
{
    s->draining = true;
    nghttp2_submit_goaway(s->h2, NGHTTP2_FLAG_NONE, nghttp2_session_get_last_proc_stream_id(s->h2),
                          NGHTTP2_NO_ERROR, NULL, 0);
    http2_server_soon(s);
}

/* ---- birth ---- */

static int announce(struct http2_server *s)
{
    const nghttp2_settings_entry set[] = {
        {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, HTTP2_STREAMS},
        {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, HTTP2_STREAM_WINDOW},
        {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, s->limits->head_bytes},
        {NGHTTP2_SETTINGS_ENABLE_CONNECT_PROTOCOL, 1}, /* RFC 8441 */
    };
    if (nghttp2_submit_settings(s->h2, NGHTTP2_FLAG_NONE, set, ARRAY_LEN(set)) < 0)
        return -1;
    return nghttp2_session_set_local_window_size(s->h2, NGHTTP2_FLAG_NONE, 0, HTTP2_WINDOW);
}

static int speak(struct http2_server *s)
{
    nghttp2_option *o = NULL;
    nghttp2_session_callbacks *cb = http2_receive_callbacks();
    if (cb == NULL || nghttp2_option_new(&o) < 0) {
        nghttp2_session_callbacks_del(cb);
        return -1;
    }
    nghttp2_option_set_no_auto_window_update(o, 1); /* only as the backs take bytes */
    /* what a request may be is judged here (http2_head.c, http2_stream.c), and answered */
    nghttp2_option_set_no_http_messaging(o, 1);
    for (unsigned type = NGHTTP2_CONTINUATION + 1; type <= UINT8_MAX; type++)
        nghttp2_option_set_user_recv_extension_type(o, (uint8_t)type);
    int r = nghttp2_session_server_new2(&s->h2, cb, s, o);
    nghttp2_option_del(o);
    nghttp2_session_callbacks_del(cb);
    return r < 0 ? -1 : announce(s);
}

struct http2_server *http2_server_new(struct event_base *base, struct io *io,
                                      const struct limits *l, struct faults *shared,
                                      const struct http2_server_ops *ops, void *session)
{
    struct http2_server *s = calloc(1, sizeof *s);
    if (s == NULL)
        return NULL;
    s->io = io;
    s->limits = l;
    s->shared = shared;
    s->ops = ops;
    s->session = session;
    LIST_INIT(&s->streams);
    http2_head_init(&s->head, l);
    s->head.schemes = ops->schemes;
    s->calm_at = s->sent_at = s->idle_at = http2_server_now();
    s->soon = event_new(base, -1, 0, on_soon, s);
    s->tick = event_new(base, -1, 0, on_tick, s);
    if (s->soon == NULL || s->tick == NULL || speak(s) < 0) {
        server_destroy(s);
        return NULL;
    }
    io_callback(io, on_io, s);
    io_deadline(io, 0);
    http2_server_arm(s);
    return s;
}

void http2_server_start(struct http2_server *s)
{
    turn(s);
}
