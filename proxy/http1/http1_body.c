/* Reads a body to its length or through its chunks, whose lines are read byte by byte: what two
 * readers could take in two ways, in extensions and trailers too, is refused. */
#include "http1_body.h"

#include "http1_head.h"

#include <string.h>

enum { TRAILERS_COUNT = 100 };

void http1_body_init(struct http1_body *b, enum body_kind kind, uint64_t length)
{
    memset(b, 0, sizeof *b);
    b->kind = kind;
    b->left = kind == BODY_LENGTH ? length : 0;
    b->done = kind == BODY_NONE || (kind == BODY_LENGTH && length == 0);
    buf_init(&b->trailers, HTTP1_TRAILERS_MAX);
}

void http1_body_free(struct http1_body *b)
{
    buf_free(&b->trailers);
}

static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = ascii_lower(c);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static int size_byte(struct http1_body *b, char c)
{
    int v = hex_value(c);
    if (v >= 0) {
        if (++b->digits > 8)
            return -1;
        b->left = b->left << 4 | (unsigned)v;
        return 0;
    }
    if (b->digits == 0)
        return -1;
    if (c == ';') {
        b->chunk = CHUNK_EXTENSION;
        b->in_extension = EXTENSION_NAME_FIRST;
        return 0;
    }
    if (c != '\r')
        return -1;
    b->chunk = CHUNK_SIZE_LF;
    return 0;
}

/* The state after c, or -1. What one reader takes for an extension and another does not is where
 * two disagree on the rest (attack B11). */
static int extension_next(enum extension_state in, char c)
{
    bool token = http1_is_token((struct slice){&c, 1});
    switch (in) {
    case EXTENSION_NAME_FIRST:
        return token ? EXTENSION_NAME : -1;
    case EXTENSION_NAME:
        if (c == '=')
            return EXTENSION_VALUE_FIRST;
        break;
    case EXTENSION_VALUE_FIRST:
        if (c == '"')
            return EXTENSION_QUOTED;
        return token ? EXTENSION_VALUE : -1;
    case EXTENSION_QUOTED:
        if (c == '"')
            return EXTENSION_QUOTED_END;
        return c == '\\' ? EXTENSION_ESCAPED : EXTENSION_QUOTED;
    case EXTENSION_ESCAPED:
        return EXTENSION_QUOTED;
    case EXTENSION_VALUE:
        break;
    case EXTENSION_QUOTED_END:
        return c == ';' ? EXTENSION_NAME_FIRST : -1;
    }
    if (c == ';')
        return EXTENSION_NAME_FIRST;
    return token ? (int)in : -1;
}

static bool extension_may_end(enum extension_state in)
{
    return in == EXTENSION_NAME || in == EXTENSION_VALUE || in == EXTENSION_QUOTED_END;
}

static int extension_byte(struct http1_body *b, char c)
{
    if (c == '\r') {
        b->chunk = CHUNK_SIZE_LF;
        return extension_may_end(b->in_extension) ? 0 : -1;
    }
    unsigned char u = (unsigned char)c;
    if (++b->extension > HTTP1_EXTENSION_MAX || u < 0x20 || u >= 0x7f)
        return -1;
    int next = extension_next(b->in_extension, c);
    b->in_extension = next < 0 ? b->in_extension : (enum extension_state)next;
    return next < 0 ? -1 : 0;
}

static const struct limits trailer_limits = {.headers = TRAILERS_COUNT};

static int check_trailers(struct slice raw)
{
    struct head h;
    int r = http1_parse_trailers(&h, raw, &trailer_limits);
    if (http_head_count(&h, "transfer-encoding") || http_head_count(&h, "content-length") ||
        http_head_count(&h, "host"))
        r = -1; /* nobody may frame or route by what comes behind the body (RFC 9110 6.5.1) */
    http_head_free(&h);
    return r;
}

size_t http1_body_trailers(const struct http1_body *b, struct head *h)
{
    http_head_init(h);
    if (b->kind != BODY_CHUNKED || buf_len(&b->trailers) <= 2 ||
        http1_parse_trailers(h, buf_slice(&b->trailers), &trailer_limits) < 0)
        h->n = 0;
    return h->n;
}

static int trailer_byte(struct http1_body *b, char c)
{
    if (c == 0 || buf_append(&b->trailers, &c, 1) < 0)
        return -1;
    struct slice t = buf_slice(&b->trailers);
    if (c == '\n' && (t.n < 2 || t.p[t.n - 2] != '\r'))
        return -1;
    if (slice_eq(t, SLICE("\r\n")) || slice_ends(t, SLICE("\r\n\r\n"))) {
        b->chunk = CHUNK_DONE;
        b->done = true;
        return check_trailers(t);
    }
    return 0;
}

static int expect_byte(struct http1_body *b, char got, char want, enum chunk_state next)
{
    b->chunk = next;
    return got == want ? 0 : -1;
}

static int chunk_byte(struct http1_body *b, char c)
{
    switch (b->chunk) {
    case CHUNK_SIZE:
        return size_byte(b, c);
    case CHUNK_EXTENSION:
        return extension_byte(b, c);
    case CHUNK_SIZE_LF:
        return expect_byte(b, c, '\n', b->left ? CHUNK_DATA : CHUNK_TRAILER);
    case CHUNK_DATA_CR:
        return expect_byte(b, c, '\r', CHUNK_DATA_LF);
    case CHUNK_DATA_LF:
        b->left = b->digits = b->extension = 0;
        return expect_byte(b, c, '\n', CHUNK_SIZE);
    case CHUNK_TRAILER:
        return trailer_byte(b, c);
    case CHUNK_DATA:
    case CHUNK_DONE:
        break;
    }
    return -1;
}

static ssize_t take_data(struct http1_body *b, struct slice in, size_t at, size_t max,
                         struct slice *out)
{
    size_t n = in.n - at;
    if (n > max)
        n = max;
    bool counted = b->kind == BODY_LENGTH || b->kind == BODY_CHUNKED;
    if (counted && n > b->left)
        n = (size_t)b->left;
    *out = (struct slice){in.p + at, n};
    if (counted)
        b->left -= n;
    return (ssize_t)(at + n);
}

ssize_t http1_body_read(struct http1_body *b, struct slice in, size_t max, struct slice *out)
{
    *out = (struct slice){in.p, 0};
    if (b->done || in.n == 0)
        return 0;
    if (b->kind != BODY_CHUNKED) {
        ssize_t used = take_data(b, in, 0, max, out);
        b->done = b->kind == BODY_LENGTH && b->left == 0;
        return used;
    }
    size_t at = 0;
    while (at < in.n && !b->done && b->chunk != CHUNK_DATA)
        if (chunk_byte(b, in.p[at++]) < 0)
            return -1;
    if (b->chunk != CHUNK_DATA || at == in.n)
        return (ssize_t)at;
    ssize_t used = take_data(b, in, at, max, out);
    if (b->left == 0)
        b->chunk = CHUNK_DATA_CR;
    return used;
}
