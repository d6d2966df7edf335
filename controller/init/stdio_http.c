/* The little of HTTP/1.1 that stands between two programs of ours and the gate: heads, lengths and
 * chunks. */
#include "stdio_mcp.h"

#include <stdlib.h>
#include <string.h>

/* ---- heads ---- */

static bool take_word(struct slice *line, char *to, size_t size)
{
    ssize_t end = slice_find(*line, ' ');
    size_t n = end < 0 ? line->n : (size_t)end;
    if (n == 0 || n >= size)
        return false;
    memcpy(to, line->p, n);
    to[n] = 0;
    line->p += end < 0 ? n : n + 1;
    line->n -= end < 0 ? n : n + 1;
    return true;
}

static bool take_first(struct slice line, bool request, struct stdio_head *h)
{
    char word[16];
    uint64_t status;
    if (request)
        return take_word(&line, h->method, sizeof h->method) &&
               take_word(&line, h->path, sizeof h->path) && slice_eq_str(line, "HTTP/1.1");
    if (!take_word(&line, word, sizeof word) || strcmp(word, "HTTP/1.1") != 0 ||
        !take_word(&line, word, sizeof word) || slice_u64(slice_str(word), 999, &status) < 0)
        return false;
    h->status = (unsigned)status;
    return true;
}

static bool take_field(struct slice line, struct stdio_head *h)
{
    ssize_t colon = slice_find(line, ':');
    if (colon <= 0)
        return false;
    struct slice name = {line.p, (size_t)colon};
    struct slice value = slice_trim((struct slice){line.p + colon + 1, line.n - (size_t)colon - 1});
    if (slice_ieq_str(name, "content-length")) {
        if (h->has_length || slice_u64(value, STDIO_LINE_MAX * 4, &h->length) < 0)
            return false;
        h->has_length = true;
    } else if (slice_ieq_str(name, "transfer-encoding")) {
        h->chunked = slice_ieq_str(value, "chunked");
        return h->chunked;
    } else if (slice_ieq_str(name, "connection")) {
        h->close = slice_ieq_str(value, "close");
    } else if (slice_ieq_str(name, "content-type")) {
        ssize_t semicolon = slice_find(value, ';');
        struct slice type =
            slice_trim((struct slice){value.p, semicolon < 0 ? value.n : (size_t)semicolon});
        h->events = slice_ieq_str(type, "text/event-stream");
        h->json = slice_ieq_str(type, "application/json");
    } else if (slice_ieq_str(name, "mcp-session-id")) {
        if (value.n == 0 || value.n > STDIO_SESSION_MAX)
            return false;
        memcpy(h->session, value.p, value.n);
        h->session[value.n] = 0;
    }
    return true;
}

ssize_t stdio_head_read(struct slice in, bool request, struct stdio_head *ret)
{
    ssize_t end = slice_find_slice(in, SLICE("\r\n\r\n"));
    *ret = (struct stdio_head){.status = 0};
    if (end < 0)
        return in.n > STDIO_HEAD_MAX ? -1 : 0;
    if (end > STDIO_HEAD_MAX)
        return -1;
    struct slice rest = {in.p, (size_t)end};
    for (bool first = true; rest.n > 0 || first; first = false) {
        ssize_t at = slice_find_slice(rest, SLICE("\r\n"));
        struct slice line = {rest.p, at < 0 ? rest.n : (size_t)at};
        size_t step = at < 0 ? rest.n : (size_t)at + 2;
        rest = (struct slice){rest.p + step, rest.n - step};
        if (first ? !take_first(line, request, ret) : !take_field(line, ret))
            return -1;
    }
    return ret->chunked && ret->has_length ? -1 : end + 4;
}

/* ---- bodies ---- */

void stdio_body_begin(struct stdio_body *b, const struct stdio_head *h, bool request)
{
    bool none = !request && (h->status == 204 || h->status == 304 || h->status / 100 == 1);
    *b = (struct stdio_body){.chunked = h->chunked && !none,
                             .until_end = !request && !none && !h->chunked && !h->has_length,
                             .left = none ? 0 : h->length};
}

static bool is_hex(char c, unsigned *v)
{
    if (c >= '0' && c <= '9')
        *v = (unsigned)(c - '0');
    else if (ascii_lower(c) >= 'a' && ascii_lower(c) <= 'f')
        *v = (unsigned)(ascii_lower(c) - 'a') + 10;
    else
        return false;
    return true;
}

/* "1a4\r\n"; an extension is nothing that our gate writes. */
static bool chunk_size(struct slice line, uint64_t *ret)
{
    unsigned v;
    *ret = 0;
    if (line.n == 0 || line.n > 7)
        return false;
    for (size_t i = 0; i < line.n; i++) {
        if (!is_hex(line.p[i], &v))
            return false;
        *ret = *ret * 16 + v;
    }
    return true;
}

/* A line without its end, taken off; false: it is not whole. */
static bool pull_line(struct buf *in, char *to, size_t size, size_t *n, bool *bad)
{
    ssize_t at = slice_find_slice(buf_slice(in), SLICE("\r\n"));
    if (at < 0) {
        *bad = buf_len(in) > STDIO_HEAD_MAX;
        return false;
    }
    *n = (size_t)at;
    memcpy(to, buf_data(in), *n < size ? *n : size);
    buf_drain(in, *n + 2);
    return true;
}

static enum stdio_body_end take_chunk_line(struct stdio_body *b, struct buf *in)
{
    char line[16];
    size_t n;
    bool bad = false;
    if (!pull_line(in, line, sizeof line, &n, &bad))
        return bad ? STDIO_BODY_BAD : STDIO_BODY_MORE;
    if (b->trailers)
        return n == 0 ? STDIO_BODY_WHOLE : STDIO_BODY_MORE;
    if (b->in_chunk) { /* the end of its data */
        b->in_chunk = false;
        return n == 0 ? STDIO_BODY_MORE : STDIO_BODY_BAD;
    }
    if (n > sizeof line || !chunk_size((struct slice){line, n}, &b->left))
        return STDIO_BODY_BAD;
    b->in_chunk = b->left > 0;
    b->trailers = b->left == 0;
    return STDIO_BODY_MORE;
}

static int move(struct stdio_body *b, struct buf *in, struct buf *out)
{
    size_t n = buf_len(in);
    if (!b->until_end && n > b->left)
        n = (size_t)b->left;
    if (buf_append(out, buf_data(in), n) < 0)
        return -1;
    buf_drain(in, n);
    b->left -= b->until_end ? 0 : n;
    return 0;
}

enum stdio_body_end stdio_body_take(struct stdio_body *b, struct buf *in, struct buf *out)
{
    for (;;) {
        size_t before = buf_len(in);
        if (!b->chunked || (b->in_chunk && b->left > 0)) {
            if (move(b, in, out) < 0)
                return STDIO_BODY_BAD;
            if (!b->chunked)
                return b->left == 0 && !b->until_end ? STDIO_BODY_WHOLE : STDIO_BODY_MORE;
            if (b->left > 0)
                return STDIO_BODY_MORE;
        }
        enum stdio_body_end end = take_chunk_line(b, in);
        if (end != STDIO_BODY_MORE || buf_len(in) == before || buf_len(in) == 0)
            return end;
    }
}

int stdio_line(struct buf *to, struct slice text)
{
    unsigned char *room = buf_reserve(to, text.n + 1);
    if (room == NULL)
        return -1;
    for (size_t i = 0; i < text.n; i++)
        room[i] = (unsigned char)(text.p[i] == '\n' || text.p[i] == '\r' ? ' ' : text.p[i]);
    room[text.n] = '\n';
    buf_commit(to, text.n + 1);
    return 0;
}
