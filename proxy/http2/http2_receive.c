/* What nghttp2 says of a client's frames: which become requests and bodies, which are a breach, and
 * how much of it we put up with. */
#include "http2_server_internal.h"

/* Flood allowance: what a client does that costs us and brings nobody forward uses it up, time and
 * useful frames give it back. A browser or a gRPC client stays far below; a flood is over it at
 * once. */
enum {
    CALM_MAX = 1000,
    CALM_SECOND = 100,     /* comes back each second */
    CALM_FRAME = 1,        /* PING, SETTINGS, PRIORITY, WINDOW_UPDATE, empty DATA, unknown types,
                            * RST_STREAM where there is none */
    CALM_USEFUL = 2,       /* DATA with bytes, either way */
    CALM_REPLY = 10,       /* a request that was answered to its end */
    CONTINUATIONS_MAX = 7, /* nghttp2 would break off without a word at its own 8 */
};

/* ---- flood allowance ---- */

static void give_back(unsigned *used, unsigned n)
{
    *used = *used > n ? *used - n : 0;
}

static void budget_client(struct http2_server *s, unsigned n, const char *on)
{
    time_t now = http2_server_now(), gone = now - s->calm_at;
    if (gone > 0) {
        give_back(&s->calm, gone > CALM_MAX ? CALM_MAX : (unsigned)gone * CALM_SECOND);
        s->calm_at = now;
    }
    s->calm += n;
    if (s->calm > CALM_MAX)
        http2_server_end(s, NGHTTP2_ENHANCE_YOUR_CALM, "h2_flood", on);
}

/* A stream that ends badly has cost a decision, a dial, records: bytes of DATA do not pay for it,
 * and another connection begins where this one ended. */
static void charge(struct http2_server *s, unsigned points, const char *on)
{
    if (s->told)
        return;
    s->faults += points;
    if (faults_take(s->shared, points, faults_now()))
        http2_server_end(s, NGHTTP2_ENHANCE_YOUR_CALM, "h2_flood", on);
}

/* A client may cancel: its page is closed, its deadline is over. Of requests that were under way
 * for some time, or had an answer, no more can be begun than streams may be open: each has cost
 * what one that ends well costs, and at most a connection to its origin. Those that are begun only
 * to be cancelled have no such bound (rapid reset, CVE-2023-44487). */
static void charge_reset(struct http2_stream *st)
{
    bool lived = st->replied || faults_now() - st->begun >= FAULTS_EARLY_MS;
    charge(st->server, lived ? FAULTS_CANCEL : FAULTS_FAULT, "RST_STREAM");
}

void http2_receive_fault(struct http2_stream *st, const char *on)
{
    if (!st->fault)
        charge(st->server, FAULTS_FAULT, on);
    st->fault = true;
}

static void earn(struct http2_server *s, unsigned n)
{
    give_back(&s->calm, n);
}

/* ---- what nghttp2 tells ---- */

static struct http2_stream *stream_of(struct http2_server *s, int32_t id)
{
    return id ? nghttp2_session_get_stream_user_data(s->h2, id) : NULL;
}

static int on_begin_frame(nghttp2_session *h2 UNUSED, const nghttp2_frame_hd *hd, void *arg)
{
    struct http2_server *s = arg;
    if (hd->type == NGHTTP2_CONTINUATION) {
        if (++s->continuations > CONTINUATIONS_MAX)
            http2_server_end(s, NGHTTP2_ENHANCE_YOUR_CALM, "h2_flood", "CONTINUATION");
        return 0;
    }
    s->continuations = 0;
    if (hd->type > NGHTTP2_CONTINUATION)
        budget_client(s, CALM_FRAME, "unknown frames");
    return 0;
}

/* Frames of a type that we do not know are counted (on_begin_frame), not read. */
static int on_extension(nghttp2_session *h2 UNUSED, void **payload UNUSED,
                        const nghttp2_frame_hd *hd UNUSED, void *arg UNUSED)
{
    return NGHTTP2_ERR_CANCEL;
}

static int on_begin_headers(nghttp2_session *h2, const nghttp2_frame *f, void *arg)
{
    struct http2_server *s = arg;
    bool request = f->headers.cat == NGHTTP2_HCAT_REQUEST;
    http2_head_begin(&s->head, !request);
    s->block_at = http2_server_now();
    if (!request)
        return 0;
    struct http2_stream *st = http2_stream_new(s, f->hd.stream_id);
    if (st == NULL)
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    nghttp2_session_set_stream_user_data(h2, st->id, st);
    if (s->n_streams == 1)
        http2_server_arm(s); /* from the long look to the short */
    return 0;
}

static int on_header(nghttp2_session *h2 UNUSED, const nghttp2_frame *f UNUSED, const uint8_t *name,
                     size_t name_n, const uint8_t *value, size_t value_n, uint8_t flags UNUSED,
                     void *arg)
{
    struct http2_server *s = arg;
    if (s->told)
        return 0;
    if (http2_head_field(&s->head, (struct slice){(const char *)name, name_n},
                         (struct slice){(const char *)value, value_n}) < 0)
        http2_server_end(s, NGHTTP2_ENHANCE_YOUR_CALM, "h2_flood", "field list");
    return 0;
}

static void put(struct http2_stream *st, struct head *h)
{
    struct http2_server *s = st->server;
    struct requester by = http2_stream_requester(st);
    s->ops->request(s->session, &by, h);
    if (!s->freed)
        http2_stream_push(st);
}

static void refuse(struct http2_stream *st, const struct head *h, const struct refusal *why)
{
    struct requester by = http2_stream_requester(st);
    if (why->status < 500)
        http2_receive_fault(st, "refused requests");
    st->malformed = why->status == 400;
    st->given_up = true;
    st->server->ops->refused(st->server->session, &by, h, why);
}

void http2_receive_begin_held(struct http2_stream *st)
{
    struct head *h = st->held;
    st->held = NULL;
    put(st, h);
    http2_stream_drop(&h);
}

void http2_receive_refuse_held(struct http2_stream *st, unsigned status, const char *code)
{
    struct head *h = st->held;
    struct refusal why = {status, code};
    st->held = NULL;
    refuse(st, h, &why);
    http2_stream_drop(&h);
}

/* The end of the client's side: a head that was held is a request now, if all of it came. */
static void on_end(struct http2_stream *st)
{
    st->request_ended = true;
    bool fits = !st->counted || st->received == st->length;
    if (!fits && st->held)
        http2_receive_refuse_held(st, 400, "framing");
    else if (!fits && !st->given_up)
        http2_stream_give_up(st, 400, "framing");
    else if (st->held)
        http2_receive_begin_held(st);
    else
        http2_stream_push(st);
}

static void on_request(struct http2_server *s, struct http2_stream *st, bool end)
{
    struct head h;
    struct refusal why;
    st->request_ended = end;
    int r = http2_head_finish(&s->head, end, &h, &why);
    st->head_request = slice_eq(h.method, SLICE("HEAD"));
    st->how = answer_how(&h, true);
    st->counted = h.body == BODY_NONE || h.body == BODY_LENGTH;
    st->left = st->length = h.length;
    /* nobody is dialled for a length that nothing agrees with yet; and without a body the origin
     * would have the request whole before we know that none comes */
    bool hold = r == 0 && !end && st->counted, expects = h.expect_continue;
    if (hold && http2_stream_hold(st, &h) < 0) {
        why = (struct refusal){503, "memory"};
        r = -1;
    }
    if (r < 0)
        refuse(st, &h, &why);
    else if (!hold)
        put(st, &h);
    http_head_free(&h);
    if (r == 0 && expects && !st->replied && !s->freed)
        http2_stream_continue(st);
}

static void on_trailers(struct http2_server *s, struct http2_stream *st, bool end)
{
    struct refusal why = {400, "framing"}; /* they end a stream, or are none */
    if (st->given_up) {
        st->request_ended |= end;
        return;
    }
    if (end && http2_head_trailers(&s->head, &st->trailers_in, &why) == 0) {
        on_end(st);
        return;
    }
    st->request_ended = true; /* by what is no trailers: nothing is awaited behind it */
    st->malformed = why.status == 400;
    if (st->held)
        http2_receive_refuse_held(st, why.status, why.code);
    else
        http2_stream_give_up(st, why.status, why.code);
}

static void on_frame(struct http2_server *s, const nghttp2_frame *f)
{
    struct http2_stream *st = stream_of(s, f->hd.stream_id);
    bool end = f->hd.flags & NGHTTP2_FLAG_END_STREAM;
    switch (f->hd.type) {
    case NGHTTP2_HEADERS:
        s->block_at = 0;
        if (st && f->headers.cat == NGHTTP2_HCAT_REQUEST)
            on_request(s, st, end);
        else if (st)
            on_trailers(s, st, end);
        return;
    case NGHTTP2_DATA:
        if (f->hd.length > f->data.padlen)
            earn(s, CALM_USEFUL);
        else if (!end)
            budget_client(s, CALM_FRAME, "empty DATA");
        if (st && end)
            on_end(st);
        return;
    case NGHTTP2_RST_STREAM:
        if (st) {
            st->client_reset = st->fault = true;
            charge_reset(st);
        } else { /* of one that has just ended */
            budget_client(s, CALM_FRAME, "control frames");
        }
        return;
    case NGHTTP2_GOAWAY:
        return;
    default:
        if (!(f->hd.flags & NGHTTP2_FLAG_ACK))
            budget_client(s, CALM_FRAME, "control frames");
    }
}

static int on_frame_recv(nghttp2_session *h2 UNUSED, const nghttp2_frame *f, void *arg)
{
    struct http2_server *s = arg;
    if (!s->told)
        on_frame(s, f);
    return s->freed ? NGHTTP2_ERR_CALLBACK_FAILURE : 0;
}

/* Go's gRPC says goodbye with the highest number there is, as if it were of a stream of ours.
 * nghttp2 ends the connection for it; its client has done nothing wrong. */
static bool is_goodbye(const nghttp2_frame *f)
{
    return f->hd.type == NGHTTP2_GOAWAY && f->hd.stream_id == 0 &&
           f->goaway.error_code == NGHTTP2_NO_ERROR && f->goaway.last_stream_id == INT32_MAX;
}

static int on_invalid_frame(nghttp2_session *h2 UNUSED, const nghttp2_frame *f, int error,
                            void *arg)
{
    struct http2_server *s = arg;
    struct http2_stream *st = stream_of(s, f->hd.stream_id);
    s->block_at = 0;
    if (is_goodbye(f)) {
        s->told = true;
        return 0;
    }
    if (error == NGHTTP2_ERR_REFUSED_STREAM) {
        charge(s, FAULTS_FAULT, "streams beyond the limit");
        return 0;
    }
    if (st && (st->upstream.ops || st->held))
        st->why = "framing"; /* its exchange ends with that; a held head is told when it closes */
    else if (!s->told)
        s->ops->breach(s->session, "h2_malformed", nghttp2_strerror(error));
    if (!s->freed && st)
        http2_receive_fault(st, "malformed frames");
    else if (!s->freed)
        charge(s, FAULTS_FAULT, "malformed frames");
    return s->freed ? NGHTTP2_ERR_CALLBACK_FAILURE : 0;
}

static int on_data(nghttp2_session *h2, uint8_t flags, int32_t id, const uint8_t *p, size_t n,
                   void *arg)
{
    struct http2_server *s = arg;
    struct http2_stream *st = stream_of(s, id);
    if (st)
        http2_stream_data(st, p, n, flags & NGHTTP2_FLAG_END_STREAM);
    else
        nghttp2_session_consume(h2, id, n);
    return s->freed ? NGHTTP2_ERR_CALLBACK_FAILURE : 0;
}

static int on_stream_close(nghttp2_session *h2 UNUSED, int32_t id, uint32_t error, void *arg)
{
    struct http2_server *s = arg;
    struct http2_stream *st = stream_of(s, id);
    if (st == NULL)
        return 0;
    bool found = error != NGHTTP2_NO_ERROR && !st->client_reset && !st->ours;
    if (error == NGHTTP2_NO_ERROR && !st->fault) {
        earn(s, CALM_REPLY);
        faults_give(s->shared, FAULTS_FAULT);
    } else if (!st->client_reset && st->why == NULL) {
        st->why = "framing";
    }
    if (st->held && !st->client_reset && !s->told)
        s->ops->breach(s->session, "h2_malformed", "stream error");
    if (found && !s->freed && !s->told)
        http2_receive_fault(st, "stream errors");
    s->block_at = 0; /* it was this one's, or there is none */
    http2_stream_free(st);
    return 0;
}

static int on_frame_send(nghttp2_session *h2 UNUSED, const nghttp2_frame *f, void *arg)
{
    struct http2_server *s = arg;
    struct http2_stream *st = stream_of(s, f->hd.stream_id);
    bool end = f->hd.flags & NGHTTP2_FLAG_END_STREAM;
    if (f->hd.type == NGHTTP2_GOAWAY && f->goaway.error_code != NGHTTP2_NO_ERROR)
        http2_server_tell(s, "h2_protocol", "GOAWAY");
    if (f->hd.type == NGHTTP2_DATA && f->hd.length > 0)
        earn(s, CALM_USEFUL);
    if (f->hd.type == NGHTTP2_HEADERS && f->headers.cat == NGHTTP2_HCAT_RESPONSE && st)
        http2_stream_head_sent(st);
    if ((f->hd.type == NGHTTP2_DATA || f->hd.type == NGHTTP2_HEADERS) && end && st &&
        !st->request_ended)
        http2_stream_linger(st);
    else if ((f->hd.type == NGHTTP2_DATA || f->hd.type == NGHTTP2_HEADERS) && end && st &&
             st->malformed)
        http2_stream_reset(st, NGHTTP2_PROTOCOL_ERROR); /* RFC 9113 8.1.1: an answer, then this */
    return 0;
}

nghttp2_session_callbacks *http2_receive_callbacks(void)
{
    nghttp2_session_callbacks *cb;
    if (nghttp2_session_callbacks_new(&cb) < 0)
        return NULL;
    nghttp2_session_callbacks_set_on_begin_frame_callback(cb, on_begin_frame);
    nghttp2_session_callbacks_set_unpack_extension_callback(cb, on_extension);
    nghttp2_session_callbacks_set_on_begin_headers_callback(cb, on_begin_headers);
    nghttp2_session_callbacks_set_on_header_callback(cb, on_header);
    nghttp2_session_callbacks_set_on_frame_recv_callback(cb, on_frame_recv);
    nghttp2_session_callbacks_set_on_invalid_frame_recv_callback(cb, on_invalid_frame);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(cb, on_data);
    nghttp2_session_callbacks_set_on_stream_close_callback(cb, on_stream_close);
    nghttp2_session_callbacks_set_on_frame_send_callback(cb, on_frame_send);
    return cb;
}
