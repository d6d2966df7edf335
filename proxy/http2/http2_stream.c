/* One stream of HTTP/2 as the front of an exchange. Nothing here runs nghttp2's input or output:
 * what is submitted leaves in the connection's next turn, so no upstream is entered from within
 * another's call. */
#include "http2_server_internal.h"

#include "http1_write.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TRAILERS_MAX = 8192, REFUSAL_FIELDS = 9, LINGER_MAX = 1024 * 1024 };

struct refusal_text {
    char status[12], length[24], retry[12];
};

static nghttp2_nv pair(struct slice name, struct slice value)
{
    return (nghttp2_nv){(uint8_t *)(uintptr_t)name.p, (uint8_t *)(uintptr_t)value.p, name.n,
                        value.n, NGHTTP2_NV_FLAG_NONE};
}

void http2_stream_reset(struct http2_stream *st, uint32_t code)
{
    st->ours = true;
    nghttp2_submit_rst_stream(st->server->h2, NGHTTP2_FLAG_NONE, st->id, code);
    http2_server_soon(st->server);
}

/* ---- the reply's body, as nghttp2 asks for it ---- */

static void drop_out(struct http2_stream *st)
{
    st->server->out_total -= buf_len(&st->out);
    buf_free(&st->out);
}

static void submit_trailers(struct http2_stream *st)
{
    nghttp2_nv nv[HEAD_FIELDS_MAX];
    const struct head *h = st->trailers_out;
    for (size_t i = 0; i < h->n; i++)
        nv[i] = pair(h->fields[i].name, h->fields[i].value);
    if (nghttp2_submit_trailer(st->server->h2, st->id, nv, h->n) < 0)
        http2_stream_reset(st, NGHTTP2_INTERNAL_ERROR);
}

static ssize_t on_read(nghttp2_session *h2 UNUSED, int32_t id UNUSED, uint8_t *to, size_t room,
                       uint32_t *flags, nghttp2_data_source *source, void *arg UNUSED)
{
    struct http2_stream *st = source->ptr;
    size_t have = buf_len(&st->out), n = have < room ? have : room;
    if (st->cut)
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE; /* resets the stream */
    if (n > 0) {
        memcpy(to, buf_data(&st->out), n);
        buf_drain(&st->out, n);
        st->server->out_total -= n;
        st->written_at = http2_server_now();
    }
    if (n == have && st->reply_ended) {
        *flags |= NGHTTP2_DATA_FLAG_EOF;
        if (st->trailers_out) {
            *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
            submit_trailers(st);
        }
        return (ssize_t)n;
    }
    if (buf_len(&st->out) <= HTTP2_OUT_MAX / 2)
        st->resume = st->server->bodies = true;
    if (n == 0) {
        buf_shrink(&st->out);
        return NGHTTP2_ERR_DEFERRED;
    }
    return (ssize_t)n;
}

/* The upstream is gone: what waited for it is dropped, and its window given back. */
static void drop_in(struct http2_stream *st)
{
    st->upstream = (struct upstream){NULL, NULL};
    if (buf_len(&st->in) > 0)
        nghttp2_session_consume(st->server->h2, st->id, buf_len(&st->in));
    buf_free(&st->in);
}

void http2_stream_linger(struct http2_stream *st)
{
    st->linger_at = http2_server_now();
}

void http2_stream_linger_over(struct http2_stream *st)
{
    st->linger_at = 0;
    http2_stream_reset(st, NGHTTP2_NO_ERROR); /* RFC 9113 8.1 */
}

/* ---- as the front of an exchange ---- */

static size_t reply_fields(const struct head *h, const char *status, const char *length,
                           nghttp2_nv *nv)
{
    size_t n = 0;
    nv[n++] = pair(SLICE(":status"), slice_str(status));
    for (size_t i = 0; i < h->n; i++)
        if (!http2_connection_field(h->fields[i].name))
            nv[n++] = pair(h->fields[i].name, h->fields[i].value);
    if (length[0])
        nv[n++] = pair(SLICE("content-length"), slice_str(length));
    return n;
}

static int submit(struct http2_stream *st, const nghttp2_nv *nv, size_t n, bool body)
{
    nghttp2_data_provider from = {{.ptr = st}, on_read};
    st->replied = true;
    st->written_at = http2_server_now();
    http2_server_soon(st->server);
    return nghttp2_submit_response(st->server->h2, st->id, nv, n, body ? &from : NULL);
}

static void downstream_reply(void *self, const struct head *h)
{
    struct http2_stream *st = self;
    nghttp2_nv nv[HEAD_FIELDS_MAX + 2];
    char status[8], length[24] = "";
    st->tunnel = h->body == BODY_TUNNEL;
    snprintf(status, sizeof status, "%u", st->tunnel ? 200 : h->status); /* RFC 8441 5 */
    if (h->body == BODY_LENGTH)
        snprintf(length, sizeof length, "%" PRIu64, h->length);
    size_t n = reply_fields(h, status, length, nv);
    if (submit(st, nv, n, h->body != BODY_NONE) < 0)
        http2_stream_reset(st, NGHTTP2_INTERNAL_ERROR);
}

static void downstream_data(void *self, const void *p, size_t n)
{
    struct http2_stream *st = self;
    if (!st->replied || n == 0 || st->why)
        return;
    if (buf_len(&st->out) == 0)
        st->written_at = http2_server_now();
    if (buf_append(&st->out, p, n) < 0) {
        st->why = "overload"; /* an upstream that ignored room(): cut it, never truncate silently */
        http2_stream_reset(st, NGHTTP2_INTERNAL_ERROR);
        return;
    }
    st->server->out_total += n;
    nghttp2_session_resume_data(st->server->h2, st->id);
    http2_server_soon(st->server);
}

static void downstream_trailers(void *self, const struct head *h)
{
    struct http2_stream *st = self;
    if (!st->replied || st->trailers_out)
        return;
    st->trailers_out = calloc(1, sizeof *st->trailers_out);
    if (st->trailers_out == NULL || http_head_copy(st->trailers_out, h) < 0) {
        st->why = "memory";
        http2_stream_reset(st, NGHTTP2_INTERNAL_ERROR);
    }
}

static void downstream_end(void *self)
{
    struct http2_stream *st = self;
    drop_in(st);
    st->reply_ended = true;
    nghttp2_session_resume_data(st->server->h2, st->id);
    http2_server_soon(st->server);
}

static size_t refusal_fields(const struct answer *a, struct refusal_text *t, nghttp2_nv *nv)
{
    size_t n = 0;
    snprintf(t->status, sizeof t->status, "%u", a->status);
    snprintf(t->length, sizeof t->length, "%zu", a->n);
    snprintf(t->retry, sizeof t->retry, "%u", a->retry);
    nv[n++] = pair(SLICE(":status"), slice_str(t->status));
    nv[n++] = pair(SLICE("content-type"), slice_str(a->type));
    nv[n++] = pair(SLICE("durward-denied"), slice_str(a->denied));
    nv[n++] = pair(SLICE("x-proxy-error"), slice_str(a->error));
    nv[n++] = pair(SLICE("cache-control"), SLICE("no-store"));
    if (a->retry)
        nv[n++] = pair(SLICE("retry-after"), slice_str(t->retry));
    if (a->grpc_status[0]) {
        nv[n++] = pair(SLICE("grpc-status"), slice_str(a->grpc_status));
        nv[n++] = pair(SLICE("grpc-message"), slice_str(a->grpc_message));
    } else {
        nv[n++] = pair(SLICE("content-length"), slice_str(t->length));
    }
    return n;
}

static void downstream_fail(void *self, unsigned status, const char *code, const char *id)
{
    struct http2_stream *st = self;
    struct answer a;
    struct refusal_text text;
    nghttp2_nv nv[REFUSAL_FIELDS];
    drop_in(st);
    st->reply_ended = true;
    http2_server_soon(st->server);
    if (st->replied) {
        drop_out(st);
        st->cut = !st->head_sent; /* a reset would go first, and the head not at all */
        if (st->head_sent)
            http2_stream_reset(st, NGHTTP2_INTERNAL_ERROR);
        return;
    }
    answer_make(&a, &st->how, status, code, id, st->retry);
    bool body = a.n > 0 && !st->head_request && buf_append(&st->out, a.body, a.n) == 0;
    if (body)
        st->server->out_total += a.n;
    if (submit(st, nv, refusal_fields(&a, &text, nv), body) < 0)
        http2_stream_reset(st, NGHTTP2_INTERNAL_ERROR);
}

void http2_stream_head_sent(struct http2_stream *st)
{
    st->head_sent = true;
    if (st->cut)
        http2_stream_reset(st, NGHTTP2_INTERNAL_ERROR);
}

static void downstream_retry(void *self, unsigned seconds)
{
    ((struct http2_stream *)self)->retry = seconds;
}

static void downstream_kube(void *self)
{
    ((struct http2_stream *)self)->how.form = ANSWER_KUBE;
}

static void downstream_rpc(void *self, const char *id)
{
    answer_rpc(&((struct http2_stream *)self)->how, id);
}

void http2_stream_continue(struct http2_stream *st)
{
    const nghttp2_nv nv = pair(SLICE(":status"), SLICE("100"));
    nghttp2_submit_headers(st->server->h2, NGHTTP2_FLAG_NONE, st->id, NULL, &nv, 1, NULL);
}

/* Each stream has its least, so that readers which stand still leave room for the others. */
static size_t downstream_room(void *self)
{
    struct http2_stream *st = self;
    size_t have = buf_len(&st->out), total = st->server->out_total;
    size_t shared = total < HTTP2_OUT_TOTAL ? HTTP2_OUT_TOTAL - total : 0;
    size_t own = have < HTTP2_OUT_LEAST ? HTTP2_OUT_LEAST - have : 0;
    size_t most = have < HTTP2_OUT_MAX ? HTTP2_OUT_MAX - have : 0,
           room = shared > own ? shared : own;
    return room < most ? room : most;
}

static void downstream_wanted(void *self)
{
    struct http2_stream *st = self;
    st->push = st->server->bodies = true;
    http2_server_soon(st->server);
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

static void set_upstream(void *self, struct upstream upstream)
{
    ((struct http2_stream *)self)->upstream = upstream;
}

struct requester http2_stream_requester(struct http2_stream *st)
{
    return (struct requester){.downstream = {&downstream_ops, st}, .set_upstream = set_upstream};
}

/* ---- the request's body ---- */

void http2_stream_cancel(struct http2_stream *st, const char *code)
{
    struct upstream b = st->upstream;
    st->upstream = (struct upstream){NULL, NULL};
    if (b.ops)
        b.ops->cancel(b.self, code);
}

void http2_stream_give_up(struct http2_stream *st, unsigned status, const char *code)
{
    char id[STREAM_ID] = "-";
    st->given_up = true;
    if (status < 500)
        http2_receive_fault(st, "refused bodies");
    if (st->upstream.ops && st->upstream.ops->refuse &&
        st->upstream.ops->refuse(st->upstream.self, status, code))
        return;
    if (st->upstream.ops && st->upstream.ops->id)
        st->upstream.ops->id(st->upstream.self, id);
    http2_stream_cancel(st, code);
    downstream_fail(st, status, code, id);
}

/* Bytes that left our buffer: the client may send as many again. */
static void consumed(struct http2_stream *st, size_t n)
{
    nghttp2_session_consume(st->server->h2, st->id, n);
}

/* 0, or -1: more than was declared. */
static int pass(struct http2_stream *st, const uint8_t *p, size_t n)
{
    if (st->counted && n > st->left) {
        http2_stream_give_up(st, 400, "framing");
        return -1;
    }
    st->left -= st->counted ? n : 0;
    st->upstream.ops->data(st->upstream.self, p, n);
    return 0;
}

static size_t upstream_room(const struct http2_stream *st)
{
    return st->upstream.ops && !st->request_done ? st->upstream.ops->room(st->upstream.self) : 0;
}

/* A body that is taken as it comes is not held up by its window. Git before 2.44 is held up for
 * good where its last bytes meet a closed one: libcurl asks it for more than there is
 * (remote-curl.c). */
static void widen(struct http2_stream *st)
{
    struct http2_server *s = st->server;
    if (st->wide || st->received < HTTP2_STREAM_WINDOW || s->n_wide >= HTTP2_WIDE_MAX ||
        buf_len(&st->in) > HTTP2_STREAM_WINDOW / 2 || st->given_up)
        return;
    if (nghttp2_session_set_local_window_size(s->h2, NGHTTP2_FLAG_NONE, st->id,
                                              HTTP2_STREAM_WIDE) == 0) {
        st->wide = true;
        s->n_wide++;
    }
}

/* The first bytes of a body whose head is held: 0 it goes on, 1 they wait for the frame's end. */
static int take_held(struct http2_stream *st, const uint8_t *p, size_t n, bool last)
{
    if (n > st->length - st->received) {
        http2_receive_refuse_held(st, 400, "framing");
        return 0;
    }
    if (!last) {
        http2_receive_begin_held(st);
        return 0;
    }
    if (buf_append(&st->in, p, n) == 0)
        return 1;
    http2_receive_refuse_held(st, 503, "memory");
    return 0;
}

void http2_stream_data(struct http2_stream *st, const uint8_t *p, size_t n, bool last)
{
    st->read_at = http2_server_now();
    if (st->held && take_held(st, p, n, last) > 0) {
        st->received += n;
        return;
    }
    if (st->server->freed)
        return;
    if (st->counted && !st->given_up && n > st->length - st->received)
        http2_stream_give_up(st, 400, "framing");
    size_t room = buf_len(&st->in) == 0 && !st->given_up ? upstream_room(st) : 0;
    size_t now = n < room ? n : room;
    if (now > 0 && pass(st, p, now) < 0)
        now = n;
    if (st->upstream.ops == NULL || st->given_up) {
        now = n; /* nobody wants it */
    } else if (buf_append(&st->in, p + now, n - now) < 0) {
        http2_stream_give_up(st, 503, "memory"); /* a body goes on whole or not */
        now = n;
    }
    if (now > 0)
        consumed(st, now);
    st->received += n;
    widen(st);
    if (st->linger_at && (st->lingered += n) > LINGER_MAX)
        http2_stream_linger_over(st);
}

static void end_request(struct http2_stream *st)
{
    struct head h;
    const struct refusal *why = NULL;
    static const struct refusal framing = {400, "framing"}, grammar = {400, "bad_header"};
    const struct limits *l = st->server->limits;
    if (st->counted && st->left > 0) {
        why = &framing;
    } else if (buf_len(&st->trailers_in) > 0) {
        if (http1_parse_trailers(&h, buf_slice(&st->trailers_in), l) < 0)
            why = &grammar;
        else if (h.n > 0)
            why = st->upstream.ops->trailers(st->upstream.self, &h);
        http_head_free(&h);
    }
    if (why) {
        http2_stream_give_up(st, why->status, why->code);
        return;
    }
    st->request_done = true;
    st->upstream.ops->end(st->upstream.self);
}

void http2_stream_push(struct http2_stream *st)
{
    size_t room;
    if (st->given_up)
        return;
    while (buf_len(&st->in) > 0 && (room = upstream_room(st)) > 0) {
        size_t have = buf_len(&st->in), n = have < room ? have : room;
        if (pass(st, buf_data(&st->in), n) < 0)
            return;
        buf_drain(&st->in, n);
        consumed(st, n);
    }
    if (buf_len(&st->in) > 0)
        return;
    buf_shrink(&st->in);
    if (st->request_ended && !st->request_done && st->upstream.ops)
        end_request(st);
}

/* ---- birth and end ---- */

int http2_stream_hold(struct http2_stream *st, struct head *h)
{
    st->held = malloc(sizeof *st->held);
    if (st->held == NULL)
        return -1;
    http_head_move(st->held, h);
    return 0;
}

void http2_stream_drop(struct head **h)
{
    if (*h)
        http_head_free(*h);
    free(*h);
    *h = NULL;
}

struct http2_stream *http2_stream_new(struct http2_server *s, int32_t id)
{
    struct http2_stream *st = calloc(1, sizeof *st);
    if (st == NULL)
        return NULL;
    st->server = s;
    st->id = id;
    st->begun = faults_now();
    st->read_at = st->written_at = http2_server_now();
    buf_init(&st->in, HTTP2_STREAM_WIDE);
    buf_init(&st->out, HTTP2_OUT_MAX + s->ops->ahead);
    buf_init(&st->trailers_in, TRAILERS_MAX);
    LIST_INSERT_HEAD(&s->streams, st, link);
    s->n_streams++;
    return st;
}

void http2_stream_free(struct http2_stream *st)
{
    struct http2_server *s = st->server;
    http2_stream_cancel(st, st->client_reset || st->why == NULL ? "client_gone" : st->why);
    if (buf_len(&st->in) > 0)
        nghttp2_session_consume_connection(s->h2, buf_len(&st->in));
    drop_out(st);
    buf_free(&st->in);
    buf_free(&st->trailers_in);
    http2_stream_drop(&st->trailers_out);
    http2_stream_drop(&st->held);
    LIST_REMOVE(st, link);
    s->n_wide -= st->wide;
    s->n_streams--;
    s->idle_at = http2_server_now();
    free(st);
}
