/* What an origin sends on HTTP/2, as nghttp2 reads it. nghttp2 judges framing, states and lengths;
 * each reply's head is then written out as the HTTP/1.1 head that says the same, and judged by the
 * parser of those: one grammar, one set of limits.
 *
 * Nothing here calls a stream's request: it is noted, and told when nghttp2 is off the stack. */
#include "http1_head.h"
#include "http2_client_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    INTERIM_MAX = 8,
    /* Frames that carry no body bytes: so many at once, and so many more a second, for a request
     * and for a DATA frame of ours (answered by window updates). */
    SPARE_MAX = 2000,
    SPARE_SECOND = 100,
    SPARE_REQUEST = 32,
    SPARE_DATA = 4,
};

/* ---- the meter ---- */

static void earn(struct http2_client *c, uint64_t n)
{
    uint64_t sum = c->spare + n;
    c->spare = sum < SPARE_MAX ? (unsigned)sum : SPARE_MAX;
}

static int on_begin_frame(nghttp2_session *session UNUSED, const nghttp2_frame_hd *hd UNUSED,
                          void *arg)
{
    struct http2_client *c = arg;
    uint64_t now = http2_now(), more = (now - c->spare_at) * SPARE_SECOND / 1000;
    if (c->spare_at == 0)
        more = SPARE_MAX;
    if (more > 0) {
        c->spare_at = now;
        earn(c, more);
    }
    if (c->spare == 0) {
        http2_client_broken(c, "upstream_protocol", "a flood of frames that carry nothing");
        return NGHTTP2_ERR_CALLBACK_FAILURE;
    }
    c->spare--; /* what carries bytes gets it back */
    return 0;
}

/* A frame of a type that RFC 9113 does not name: counted, else ignored. */
static int on_unknown(nghttp2_session *session UNUSED, void **payload UNUSED,
                      const nghttp2_frame_hd *hd UNUSED, void *arg UNUSED)
{
    return NGHTTP2_ERR_CANCEL;
}

static int on_frame_send(nghttp2_session *session UNUSED, const nghttp2_frame *f, void *arg)
{
    struct http2_client *c = arg;
    if (f->hd.type == NGHTTP2_HEADERS)
        earn(c, SPARE_REQUEST);
    else if (f->hd.type == NGHTTP2_DATA)
        earn(c, SPARE_DATA);
    else if (f->hd.type == NGHTTP2_GOAWAY && f->goaway.error_code != NGHTTP2_NO_ERROR)
        http2_client_broken(c, "upstream_protocol", nghttp2_http2_strerror(f->goaway.error_code));
    return 0;
}

/* ---- heads ---- */

static int bad_block(struct http2_client *c, const char *why)
{
    struct http2_client_stream *s = c->gathering;
    c->gathering = NULL;
    http2_client_stream_fail(s, "upstream_protocol", why);
    return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE; /* the stream is reset */
}

static int on_begin_headers(nghttp2_session *session, const nghttp2_frame *f, void *arg)
{
    struct http2_client *c = arg;
    if (f->hd.type == NGHTTP2_PUSH_PROMISE) {
        http2_client_broken(c, "upstream_protocol", "a push was promised");
        return NGHTTP2_ERR_CALLBACK_FAILURE;
    }
    struct http2_client_stream *s = nghttp2_session_get_stream_user_data(session, f->hd.stream_id);
    c->gathering = s && s->ops && s->code == NULL ? s : NULL;
    buf_clear(&c->block);
    c->fields = c->status = 0;
    return 0;
}

static int status(struct http2_client *c, struct slice v)
{
    uint64_t n;
    if (v.n != 3 || slice_u64(v, 999, &n) < 0 || n < 100 || c->status || c->gathering->final)
        return bad_block(c, "bad status");
    c->status = (unsigned)n;
    return 0;
}

static int on_header(nghttp2_session *session UNUSED, const nghttp2_frame *f UNUSED,
                     const uint8_t *name_p, size_t name_n, const uint8_t *value_p, size_t value_n,
                     uint8_t flags UNUSED, void *arg)
{
    struct http2_client *c = arg;
    struct slice name = {(const char *)name_p, name_n}, value = {(const char *)value_p, value_n};
    if (c->gathering == NULL)
        return 0;
    if (slice_eq(name, SLICE(":status")))
        return status(c, value);
    value = slice_trim(value);
    if (!http1_is_token(name) || !http1_is_value(value))
        return bad_block(c, "bad field in the reply");
    if (++c->fields > HEAD_FIELDS_MAX || buf_append_slice(&c->block, name) < 0 ||
        buf_append_str(&c->block, ": ") < 0 || buf_append_slice(&c->block, value) < 0 ||
        buf_append_str(&c->block, "\r\n") < 0)
        return bad_block(c, "reply head too large");
    return 0;
}

static int on_invalid_header(nghttp2_session *session UNUSED, const nghttp2_frame *f UNUSED,
                             const uint8_t *name UNUSED, size_t name_n UNUSED,
                             const uint8_t *value UNUSED, size_t value_n UNUSED,
                             uint8_t flags UNUSED, void *arg)
{
    struct http2_client *c = arg;
    if (c->gathering)
        return bad_block(c, "bad field in the reply");
    return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
}

/* Here a body's end is END_STREAM; a length says how much there is before it. */
static void body_kind(struct head *h, bool end)
{
    if (end)
        h->body = BODY_NONE;
    else if (h->body == BODY_CLOSE || h->body == BODY_NONE)
        h->body = BODY_CHUNKED; /* of none, an empty DATA frame may still come */
}

static struct head *parse_reply(const struct http2_client *c, const struct http2_client_stream *s)
{
    struct buf text;
    struct refusal why;
    struct head *h = malloc(sizeof *h);
    if (h == NULL)
        return NULL;
    http_head_init(h);
    buf_init(&text, buf_len(&c->block) + 64);
    text.wipe = c->wipe;
    int r = buf_printf(&text, "HTTP/1.1 %u -\r\n", c->status);
    if (r == 0 &&
        (buf_append_slice(&text, buf_slice(&c->block)) < 0 || buf_append_str(&text, "\r\n") < 0))
        r = -1;
    if (r == 0)
        r = http1_parse_reply(h, buf_slice(&text), slice_str(s->method), NULL, c->limits, &why);
    buf_free(&text);
    if (r == 0)
        return h;
    http_head_free(h);
    free(h);
    return NULL;
}

static void drop_head(struct head *h)
{
    if (h)
        http_head_free(h);
    free(h);
}

/* The origin has agreed to a WebSocket: as if by a 101. */
static int begin_tunnel(struct head *h, bool end)
{
    if (end || http_head_count(h, "content-length") > 0 ||
        http_head_count(h, "sec-websocket-extensions") > 0)
        return -1;
    h->status = 101;
    h->body = BODY_TUNNEL;
    h->upgrade = UPGRADE_WEBSOCKET;
    return 0;
}

static int end_reply(struct http2_client *c, struct http2_client_stream *s, bool end)
{
    struct head *h = c->status ? parse_reply(c, s) : NULL;
    if (h == NULL || (h->status < 200 && (end || ++s->interim > INTERIM_MAX))) {
        const char *why = h ? "interim replies" : "bad reply head";
        drop_head(h);
        return bad_block(c, why);
    }
    if (h->status < 200) {
        drop_head(h);
        return 0;
    }
    if (s->tunnel && h->status < 300 && begin_tunnel(h, end) < 0) {
        drop_head(h);
        return bad_block(c, "bad reply to an extended CONNECT");
    }
    if (s->tunnel && h->status >= 300 && http_head_remove(h, "content-length") > 0 &&
        h->body == BODY_LENGTH)
        h->body = BODY_CLOSE; /* nghttp2 does not count what follows a CONNECT */
    bool bodyless = h->body == BODY_NONE && !end &&
                    (slice_eq_str(SLICE("HEAD"), s->method) || h->status == 204 ||
                     h->status == 304 || http_head_find(h, "content-length"));
    if (!bodyless && h->body != BODY_TUNNEL)
        body_kind(h, end);
    s->final = true;
    s->reply = h;
    http2_client_stream_ready(s);
    return 0;
}

static int end_trailers(struct http2_client *c, struct http2_client_stream *s)
{
    struct head *h = malloc(sizeof *h);
    if (h == NULL)
        return NGHTTP2_ERR_CALLBACK_FAILURE;
    if (buf_append_str(&c->block, "\r\n") < 0 ||
        http1_parse_trailers(h, buf_slice(&c->block), c->limits) < 0) {
        drop_head(h);
        return bad_block(c, "bad trailers");
    }
    s->trailers = h;
    return 0;
}

static int on_block(struct http2_client *c, bool end)
{
    struct http2_client_stream *s = c->gathering;
    int r = s->final ? end_trailers(c, s) : end_reply(c, s, end);
    c->gathering = NULL;
    if (buf_len(&c->block) > 0)
        buf_clear(&c->block);
    if (r == NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE) { /* of no effect where a frame is complete */
        http2_client_stream_reset(s, NGHTTP2_PROTOCOL_ERROR);
        return 0;
    }
    return r;
}

/* ---- bodies and ends ---- */

/* A stream whose bytes are taken as they come is not held up by its window. */
static void widen(struct http2_client_stream *s)
{
    struct http2_client *c = s->client;
    if (s->wide || s->received < HTTP2_CLIENT_WINDOW ||
        buf_len(&s->down) > HTTP2_CLIENT_WINDOW / 2 || c->wide >= HTTP2_CLIENT_WIDE_MAX)
        return;
    if (nghttp2_session_set_local_window_size(c->session, NGHTTP2_FLAG_NONE, s->id,
                                              HTTP2_CLIENT_WINDOW_WIDE) == 0) {
        s->wide = true;
        c->wide++;
    }
}

static int on_data(nghttp2_session *session, uint8_t flags UNUSED, int32_t id, const uint8_t *p,
                   size_t n, void *arg)
{
    struct http2_client *c = arg;
    struct http2_client_stream *s = nghttp2_session_get_stream_user_data(session, id);
    if (n > 0)
        earn(c, 1);
    /* what a stream holds its own window bounds; no slow one stops the others */
    if (nghttp2_session_consume_connection(session, n) != 0)
        return NGHTTP2_ERR_CALLBACK_FAILURE;
    if (s == NULL || s->ops == NULL || s->code)
        return 0;
    s->received += n;
    if (buf_append(&s->down, p, n) < 0) {
        http2_client_broken(c, "upstream_protocol", "more than the window");
        return NGHTTP2_ERR_CALLBACK_FAILURE;
    }
    http2_client_stream_moved(s);
    widen(s);
    http2_client_stream_ready(s);
    return 0;
}

static void on_settings(struct http2_client *c)
{
    c->settings_due = 0;
    c->unproven = false;
    if (!c->settled) {
        c->settled = true;
        if (c->owner_fn)
            c->owner_fn(c->owner_arg, HTTP2_SETTLED);
    }
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *f, void *arg)
{
    struct http2_client *c = arg;
    struct http2_client_stream *s = NULL;
    bool end = f->hd.flags & NGHTTP2_FLAG_END_STREAM;
    int r = 0;
    if (f->hd.stream_id > 0)
        s = nghttp2_session_get_stream_user_data(session, f->hd.stream_id);
    switch (f->hd.type) {
    case NGHTTP2_HEADERS:
        if (c->gathering && c->gathering == s)
            r = on_block(c, end);
        break;
    case NGHTTP2_RST_STREAM:
        if (s)
            s->reset = true;
        break;
    case NGHTTP2_SETTINGS:
        if (!(f->hd.flags & NGHTTP2_FLAG_ACK))
            on_settings(c);
        break;
    case NGHTTP2_GOAWAY:
        c->goaway = true;
        break;
    default:
        break;
    }
    bool last = f->hd.type == NGHTTP2_HEADERS || f->hd.type == NGHTTP2_DATA;
    if (r == 0 && last && end && s && s->final && s->code == NULL) {
        s->ended = true;
        http2_client_stream_ready(s);
    }
    return r;
}

static int on_close(nghttp2_session *session, int32_t id, uint32_t error, void *arg UNUSED)
{
    struct http2_client_stream *s = nghttp2_session_get_stream_user_data(session, id);
    if (s == NULL)
        return 0;
    if (s->ops && !s->ended && s->code == NULL) {
        if (error == NGHTTP2_REFUSED_STREAM && !s->final)
            http2_client_stream_fail(s, "upstream_refused", "the origin refused the stream");
        else if (s->reset)
            http2_client_stream_fail(s, "upstream_reset", nghttp2_http2_strerror(error));
        else
            http2_client_stream_fail(s, "upstream_protocol", nghttp2_http2_strerror(error));
    }
    http2_client_stream_closed(s);
    return 0;
}

nghttp2_session_callbacks *http2_reply_callbacks(void)
{
    nghttp2_session_callbacks *cb;
    if (nghttp2_session_callbacks_new(&cb) != 0)
        return NULL;
    nghttp2_session_callbacks_set_on_begin_frame_callback(cb, on_begin_frame);
    nghttp2_session_callbacks_set_unpack_extension_callback(cb, on_unknown);
    nghttp2_session_callbacks_set_on_frame_send_callback(cb, on_frame_send);
    nghttp2_session_callbacks_set_on_begin_headers_callback(cb, on_begin_headers);
    nghttp2_session_callbacks_set_on_header_callback(cb, on_header);
    nghttp2_session_callbacks_set_on_invalid_header_callback(cb, on_invalid_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(cb, on_data);
    nghttp2_session_callbacks_set_on_frame_recv_callback(cb, on_frame);
    nghttp2_session_callbacks_set_on_stream_close_callback(cb, on_close);
    return cb;
}
