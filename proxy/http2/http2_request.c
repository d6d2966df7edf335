/* A request's head as HTTP/2 fields, and its body as nghttp2 asks for it. */
#include "field_name.h"
#include "http1_write.h"
#include "http2_client_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PSEUDO_FIELDS = 5, ADDED_FIELDS = 2 /* te or sec-websocket-version, content-length */ };

struct fields {
    nghttp2_nv *nv;
    size_t n;
};

/* What the compression tables of both ends may keep. Anything else may be a secret or hold one
 * (attack: CRIME on HPACK), and tables are not wiped. */
static bool may_index(struct slice name)
{
    static const char *const names[] = {
        ":method",         ":scheme",         ":authority",           "accept",
        "accept-encoding", "accept-language", "user-agent",           "te",
        "accept-charset",  "content-type",    "grpc-accept-encoding",
    };
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (slice_eq_str(name, names[i]))
            return true;
    return false;
}

/* nghttp2 copies; it does not write into what it is given. */
static void add(struct fields *f, struct slice name, struct slice value)
{
    f->nv[f->n++] = (nghttp2_nv){
        .name = (uint8_t *)(uintptr_t)name.p,
        .value = (uint8_t *)(uintptr_t)value.p,
        .namelen = name.n,
        .valuelen = value.n,
        .flags = may_index(name) ? NGHTTP2_NV_FLAG_NONE : NGHTTP2_NV_FLAG_NO_INDEX,
    };
}

/* Between two ends only, or said otherwise here (RFC 9113 8.2.2, 8.3.1). */
static bool left_out(struct slice name)
{
    return (field_kinds(name) & FIELD_HOP) || slice_eq(name, SLICE("host")) ||
           slice_eq(name, SLICE("content-length"));
}

static void add_framing(struct fields *f, const struct head *h, char *text, size_t size)
{
    bool zero = h->body == BODY_NONE && http1_expects_body(h->method);
    if (h->body != BODY_LENGTH && !zero)
        return;
    snprintf(text, size, "%" PRIu64, zero ? 0 : h->length);
    add(f, SLICE("content-length"), slice_str(text));
}

/* nghttp2 asks for body bytes. */
static ssize_t on_read(nghttp2_session *session UNUSED, int32_t id UNUSED, uint8_t *to, size_t max,
                       uint32_t *flags, nghttp2_data_source *source, void *arg UNUSED)
{
    struct http2_client_stream *s = source->ptr;
    size_t n = buf_len(&s->up) < max ? buf_len(&s->up) : max;
    if (s->ops == NULL || (n == 0 && !s->request_done)) {
        s->deferred = true;
        return NGHTTP2_ERR_DEFERRED;
    }
    if (n > 0) {
        memcpy(to, buf_data(&s->up), n);
        buf_drain(&s->up, n);
    }
    if (buf_len(&s->up) == 0)
        buf_shrink(&s->up);
    if (s->request_done && buf_len(&s->up) == 0)
        *flags |= NGHTTP2_DATA_FLAG_EOF;
    if (!s->request_done && buf_len(&s->up) <= HTTP2_CLIENT_UP / 2) {
        s->want = true;
        http2_client_stream_ready(s);
    }
    return (ssize_t)n;
}

static int32_t submit(struct http2_client_stream *s, const struct head *h, struct slice authority,
                      struct slice path, const char *scheme, nghttp2_nv *room)
{
    char length[24];
    struct fields f = {room, 0};
    nghttp2_data_provider body = {.source.ptr = s, .read_callback = on_read};
    bool tunnel = h->upgrade != UPGRADE_NONE;
    add(&f, SLICE(":method"), tunnel ? SLICE("CONNECT") : h->method);
    if (tunnel)
        add(&f, SLICE(":protocol"), SLICE("websocket"));
    add(&f, SLICE(":scheme"), slice_str(scheme));
    add(&f, SLICE(":authority"), authority);
    add(&f, SLICE(":path"), path);
    for (size_t i = 0; i < h->n; i++)
        if (!left_out(h->fields[i].name))
            add(&f, h->fields[i].name, h->fields[i].value);
    if (tunnel)
        add(&f, SLICE("sec-websocket-version"), SLICE("13"));
    else if (h->te_trailers)
        add(&f, SLICE("te"), SLICE("trailers"));
    add_framing(&f, h, length, sizeof length);
    return nghttp2_submit_request(s->client->session, NULL, f.nv, f.n,
                                  h->body == BODY_NONE ? NULL : &body, s);
}

int http2_request_submit(struct http2_client_stream *s, const struct head *h,
                         const struct authority *a)
{
    char authority[HOST_TEXT_MAX + 16];
    struct buf path;
    authority_text(a, authority, sizeof authority);
    buf_init(&path, h->path.n + h->query.n + 1);
    path.wipe = s->client->wipe;
    nghttp2_nv *room = calloc(h->n + PSEUDO_FIELDS + ADDED_FIELDS, sizeof *room);
    int32_t id = -1;
    if (room && buf_append_slice(&path, h->path) == 0 &&
        (!h->has_query ||
         (buf_append(&path, "?", 1) == 0 && buf_append_slice(&path, h->query) == 0)))
        id = submit(s, h, slice_str(authority), buf_slice(&path), scheme_name(a->scheme), room);
    free(room);
    buf_free(&path);
    s->id = id;
    return id < 0 ? -1 : 0;
}
