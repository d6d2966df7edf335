/* Reads headers, payload and UTF-8 byte by byte, each with its own state, and writes headers, masks
 * and close codes. */
#include "websocket.h"

#include "assertion.h"

#include <string.h>

void websocket_reader_init(struct websocket_reader *r, bool masked)
{
    memset(r, 0, sizeof *r);
    r->masked = masked;
    r->need = 2;
}

static void set_state(struct websocket_reader *r, enum websocket_reader_state s)
{
    ASSERT(r->state != WEBSOCKET_BROKEN || s == WEBSOCKET_BROKEN);
    r->state = s;
}

static enum websocket_event broken(struct websocket_reader *r, unsigned code)
{
    set_state(r, WEBSOCKET_BROKEN);
    r->code = code;
    return WEBSOCKET_VIOLATION;
}

static bool is_control(enum websocket_opcode o)
{
    return o >= WEBSOCKET_CLOSE;
}

/* ---- UTF-8 ---- */

/* The first byte of a character: how many follow, and what the second may be. */
static int utf8_first(struct websocket_utf8 *u, unsigned char c)
{
    u->least = 0x80;
    u->most = 0xbf;
    if (c < 0x80) {
        u->due = 0;
    } else if (c >= 0xc2 && c <= 0xdf) {
        u->due = 1;
    } else if (c >= 0xe0 && c <= 0xef) {
        u->due = 2;
        if (c == 0xe0)
            u->least = 0xa0; /* else it were written too long */
        if (c == 0xed)
            u->most = 0x9f; /* surrogates */
    } else if (c >= 0xf0 && c <= 0xf4) {
        u->due = 3;
        if (c == 0xf0)
            u->least = 0x90;
        if (c == 0xf4)
            u->most = 0x8f; /* beyond U+10FFFF */
    } else {
        return -1;
    }
    return 0;
}

static int utf8_feed(struct websocket_utf8 *u, const char *p, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)p[i];
        if (u->due == 0) {
            if (c >= 0x80 && utf8_first(u, c) < 0)
                return -1;
            continue;
        }
        if (c < u->least || c > u->most)
            return -1;
        u->least = 0x80;
        u->most = 0xbf;
        u->due--;
    }
    return 0;
}

bool websocket_is_utf8(struct slice s)
{
    struct websocket_utf8 u = {0};
    return utf8_feed(&u, s.p, s.n) == 0 && u.due == 0;
}

/* ---- headers ---- */

/* The first two bytes say what is wrong at once, and how long the header is. */
static int check_start(struct websocket_reader *r)
{
    unsigned char a = r->header[0], b = r->header[1];
    unsigned n = b & 0x7f;
    r->fin = a & 0x80;
    r->frame = (enum websocket_opcode)(a & 0x0f);
    if (a & 0x70 || ((b & 0x80) != 0) != r->masked)
        return -1;
    switch (r->frame) {
    case WEBSOCKET_CONTINUATION:
        if (r->message == WEBSOCKET_CONTINUATION)
            return -1;
        break;
    case WEBSOCKET_TEXT:
    case WEBSOCKET_BINARY:
        if (r->message != WEBSOCKET_CONTINUATION)
            return -1;
        break;
    case WEBSOCKET_CLOSE:
    case WEBSOCKET_PING:
    case WEBSOCKET_PONG:
        if (!r->fin || n > WEBSOCKET_CONTROL_MAX)
            return -1;
        break;
    default:
        return -1;
    }
    r->need = 2u + (n == 126 ? 2u : n == 127 ? 8u : 0u) + (r->masked ? 4u : 0u);
    return 0;
}

static int check_length(struct websocket_reader *r)
{
    unsigned n = r->header[1] & 0x7f, bytes = n == 126 ? 2 : n == 127 ? 8 : 0;
    uint64_t v = bytes ? 0 : n;
    for (unsigned i = 0; i < bytes; i++)
        v = v << 8 | r->header[2 + i];
    if ((bytes == 2 && v < 126) || (bytes == 8 && (v <= UINT16_MAX || v > INT64_MAX)))
        return -1; /* not the shortest form, or the top bit is set */
    r->left = v;
    r->at = 0;
    if (r->masked)
        memcpy(r->mask, r->header + 2 + bytes, sizeof r->mask);
    if (!is_control(r->frame)) {
        r->single = r->fin && r->frame != WEBSOCKET_CONTINUATION;
        if (r->frame != WEBSOCKET_CONTINUATION)
            r->message = r->frame;
    }
    return 0;
}

/* 1: the header is whole; 0: more is needed; -1: it is a bad one. */
static int read_header(struct websocket_reader *r, struct slice *in)
{
    while (in->n > 0 && r->have < r->need) {
        r->header[r->have++] = (unsigned char)*in->p;
        in->p++;
        in->n--;
        if (r->have == 2 && check_start(r) < 0)
            return -1;
    }
    if (r->have < r->need)
        return 0;
    if (check_length(r) < 0)
        return -1;
    set_state(r, WEBSOCKET_IN_PAYLOAD);
    return 1;
}

static void next_frame(struct websocket_reader *r)
{
    set_state(r, WEBSOCKET_IN_HEADER);
    r->have = 0;
    r->need = 2;
}

/* ---- payload ---- */

static size_t take(struct websocket_reader *r, struct slice *in, char *to, size_t max)
{
    size_t n = in->n < max ? in->n : max;
    if (n > r->left)
        n = (size_t)r->left;
    if (n)
        memcpy(to, in->p, n);
    if (r->masked)
        websocket_mask(to, n, r->mask, r->at);
    in->p += n;
    in->n -= n;
    r->left -= n;
    r->at += n;
    return n;
}

/* Codes that an endpoint may put into a frame (7.4): the registered ones and those for others. */
static bool code_sendable(unsigned c)
{
    return (c >= 1000 && c <= 1003) || (c >= 1007 && c <= 1014) || (c >= 3000 && c <= 4999);
}

static enum websocket_event close_frame(struct websocket_reader *r, struct websocket_part *ret)
{
    const unsigned char *p = (const unsigned char *)ret->p;
    ret->code = WEBSOCKET_NO_CODE;
    if (ret->n == 1)
        return broken(r, WEBSOCKET_PROTOCOL);
    if (ret->n >= 2) {
        ret->code = (unsigned)p[0] << 8 | p[1];
        if (!code_sendable(ret->code))
            return broken(r, WEBSOCKET_PROTOCOL);
        if (!websocket_is_utf8((struct slice){ret->p + 2, ret->n - 2}))
            return broken(r, WEBSOCKET_NOT_UTF8);
    }
    set_state(r, WEBSOCKET_CLOSED);
    return WEBSOCKET_CONTROL;
}

static enum websocket_event read_control(struct websocket_reader *r, struct slice *in,
                                         char *scratch, struct websocket_part *ret)
{
    size_t had = (size_t)r->at; /* at most 125 in all */
    (void)take(r, in, r->control + had, WEBSOCKET_CONTROL_MAX - had);
    if (r->left > 0)
        return WEBSOCKET_MORE;
    memcpy(scratch, r->control, (size_t)r->at);
    *ret =
        (struct websocket_part){.opcode = r->frame, .last = true, .p = scratch, .n = (size_t)r->at};
    next_frame(r);
    return r->frame == WEBSOCKET_CLOSE ? close_frame(r, ret) : WEBSOCKET_CONTROL;
}

static enum websocket_event read_message(struct websocket_reader *r, struct slice *in,
                                         char *scratch, struct websocket_part *ret)
{
    if (in->n == 0 && r->left > 0)
        return WEBSOCKET_MORE;
    size_t n = take(r, in, scratch, WEBSOCKET_PIECE_MAX);
    bool last = r->fin && r->left == 0;
    *ret = (struct websocket_part){.opcode = r->message,
                                   .last = last,
                                   .p = scratch,
                                   .n = n,
                                   .single = r->single,
                                   .total = r->at + r->left};
    if (r->message == WEBSOCKET_TEXT &&
        (utf8_feed(&r->utf8, scratch, n) < 0 || (last && r->utf8.due)))
        return broken(r, WEBSOCKET_NOT_UTF8);
    if (last)
        r->message = WEBSOCKET_CONTINUATION;
    if (r->left == 0)
        next_frame(r);
    return WEBSOCKET_PIECE;
}

enum websocket_event websocket_read(struct websocket_reader *r, struct slice *in, char *scratch,
                                    struct websocket_part *ret)
{
    if (r->state == WEBSOCKET_BROKEN)
        return WEBSOCKET_VIOLATION;
    if (r->state == WEBSOCKET_CLOSED) {
        in->p += in->n;
        in->n = 0;
        return WEBSOCKET_MORE;
    }
    if (r->state == WEBSOCKET_IN_HEADER) {
        int whole = read_header(r, in);
        if (whole <= 0)
            return whole == 0 ? WEBSOCKET_MORE : broken(r, WEBSOCKET_PROTOCOL);
    }
    return is_control(r->frame) ? read_control(r, in, scratch, ret)
                                : read_message(r, in, scratch, ret);
}

/* ---- writing ---- */

size_t websocket_header(unsigned char to[WEBSOCKET_HEADER_MAX], enum websocket_opcode opcode,
                        bool fin, uint64_t n, const unsigned char *mask)
{
    unsigned bytes = n < 126 ? 0 : n <= UINT16_MAX ? 2 : 8;
    unsigned char length = bytes == 0 ? (unsigned char)n : bytes == 2 ? 126 : 127;
    size_t at = 2;
    to[0] = (unsigned char)((fin ? 0x80u : 0u) | (unsigned)opcode);
    to[1] = (unsigned char)((mask ? 0x80u : 0u) | length);
    for (unsigned i = bytes; i-- > 0;)
        to[at++] = (unsigned char)(n >> (8 * i));
    if (mask) {
        memcpy(to + at, mask, 4);
        at += 4;
    }
    return at;
}

void websocket_mask(char *p, size_t n, const unsigned char mask[4], uint64_t at)
{
    uint32_t word;
    unsigned char turned[4];
    for (unsigned i = 0; i < 4; i++)
        turned[i] = mask[(at + i) & 3];
    memcpy(&word, turned, sizeof word);
    size_t i = 0;
    for (; i + 4 <= n; i += 4) {
        uint32_t v;
        memcpy(&v, p + i, sizeof v);
        v ^= word;
        memcpy(p + i, &v, sizeof v);
    }
    for (; i < n; i++)
        p[i] = (char)((unsigned char)p[i] ^ turned[i & 3]);
}

size_t websocket_close(char to[2], unsigned code)
{
    if (code == WEBSOCKET_NO_CODE)
        return 0;
    to[0] = (char)(code >> 8);
    to[1] = (char)code;
    return 2;
}
