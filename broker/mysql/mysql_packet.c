/* Packets: a length of three bytes, a number, a body. */
#include "mysql_packet.h"

#include <string.h>

enum { ERROR_TEXT = 512, STATUS_AUTOCOMMIT = 2 };

void mysql_reader_init(struct mysql_reader *r, enum mysql_phase phase)
{
    memset(r, 0, sizeof *r);
    r->phase = phase;
    buf_init_wiped(&r->start, MYSQL_WHOLE_MAX);
}

void mysql_reader_free(struct mysql_reader *r)
{
    buf_free(&r->start);
}

bool mysql_reader_between(const struct mysql_reader *r)
{
    return r->have == 0 && !r->full;
}

static enum mysql_event fail(struct mysql_reader *r, const char *why)
{
    r->broken = true;
    r->why = why;
    return MYSQL_VIOLATION;
}

static void take(struct slice *in, size_t n)
{
    in->p += n;
    in->n -= n;
}

/* NULL, or what is wrong with its length. */
static const char *check_length(const struct mysql_reader *r)
{
    bool client = r->phase == MYSQL_COMMANDS || r->phase == MYSQL_FILE;
    if (r->phase == MYSQL_LOGIN && r->length > MYSQL_LOGIN_MAX)
        return "a packet that is longer than one of a login may be";
    if (client && r->length == MYSQL_FULL)
        return "a packet of 16 MiB";
    if (r->length == 0 && r->phase != MYSQL_FILE && !r->continued)
        return "a packet with nothing in it";
    return NULL;
}

/* True: the head is there. */
static bool read_head(struct mysql_reader *r, struct slice *in)
{
    if (r->have == MYSQL_HEAD)
        return true;
    size_t n = MYSQL_HEAD - r->have;
    n = in->n < n ? in->n : n;
    memcpy(r->head + r->have, in->p, n);
    take(in, n);
    r->have += n;
    if (r->have < MYSQL_HEAD)
        return false;
    r->length = r->left = r->head[0] | (uint32_t)r->head[1] << 8 | (uint32_t)r->head[2] << 16;
    r->continued = r->full;
    r->full = r->length == MYSQL_FULL;
    return true;
}

static bool comes_whole(const struct mysql_reader *r, struct slice in)
{
    if (r->phase != MYSQL_COMMANDS)
        return r->phase == MYSQL_LOGIN;
    const struct slice start = buf_len(&r->start) ? buf_slice(&r->start) : in;
    unsigned char command = (unsigned char)start.p[0];
    return command != MYSQL_EXECUTE && command != MYSQL_LONG_DATA;
}

/* What there is of the packet is given out. */
static enum mysql_event give(struct mysql_reader *r, bool first, struct slice body,
                             struct mysql_part *ret)
{
    *ret = (struct mysql_part){.first = first,
                               .last = r->left == 0,
                               .continued = r->continued,
                               .length = r->length,
                               .body = body};
    memcpy(ret->head, r->head, MYSQL_HEAD);
    r->begun = !ret->last;
    if (ret->last)
        r->have = 0;
    return MYSQL_PART;
}

/* The whole packet, or its first piece. */
static enum mysql_event read_start(struct mysql_reader *r, struct slice *in, struct mysql_part *ret)
{
    if (r->length == 0) {
        r->begun = false;
        return give(r, true, SLICE(""), ret);
    }
    if (in->n == 0)
        return MYSQL_MORE;
    bool whole = comes_whole(r, *in);
    if (whole && r->length > MYSQL_WHOLE_MAX)
        return fail(r, "a command that is longer than it may be");
    size_t need = whole || r->length < MYSQL_FIRST ? r->length : MYSQL_FIRST;
    size_t n = need - buf_len(&r->start);
    n = in->n < n ? in->n : n;
    if (buf_append(&r->start, in->p, n) < 0)
        return fail(r, "memory");
    take(in, n);
    r->left -= (uint32_t)n;
    if (buf_len(&r->start) < need)
        return MYSQL_MORE;
    r->held = true;
    return give(r, true, buf_slice(&r->start), ret);
}

enum mysql_event mysql_read(struct mysql_reader *r, struct slice *in, struct mysql_part *ret)
{
    if (r->held) {
        buf_clear(&r->start);
        buf_shrink(&r->start);
        r->held = false;
    }
    if (r->broken)
        return MYSQL_VIOLATION;
    if (!read_head(r, in))
        return MYSQL_MORE;
    const char *why = r->begun ? NULL : check_length(r);
    if (why)
        return fail(r, why);
    if (!r->begun)
        return read_start(r, in, ret);
    if (in->n == 0)
        return MYSQL_MORE;
    size_t n = in->n < r->left ? in->n : r->left;
    struct slice piece = {in->p, n};
    take(in, n);
    r->left -= (uint32_t)n;
    return give(r, false, piece, ret);
}

/* ---- what packets hold ---- */

int mysql_take_bytes(struct slice *in, size_t n, struct slice *ret)
{
    if (in->n < n)
        return -1;
    *ret = (struct slice){in->p, n};
    take(in, n);
    return 0;
}

static int take_number(struct slice *in, size_t n, uint64_t *ret)
{
    struct slice s;
    if (mysql_take_bytes(in, n, &s) < 0)
        return -1;
    *ret = 0;
    for (size_t i = 0; i < n; i++)
        *ret |= (uint64_t)(unsigned char)s.p[i] << (8 * i);
    return 0;
}

int mysql_take_u16(struct slice *in, uint16_t *ret)
{
    uint64_t v;
    if (take_number(in, 2, &v) < 0)
        return -1;
    *ret = (uint16_t)v;
    return 0;
}

int mysql_take_u32(struct slice *in, uint32_t *ret)
{
    uint64_t v;
    if (take_number(in, 4, &v) < 0)
        return -1;
    *ret = (uint32_t)v;
    return 0;
}

int mysql_take_count(struct slice *in, uint64_t *ret)
{
    if (take_number(in, 1, ret) < 0 || *ret == 0xfb || *ret == 0xff)
        return -1;
    return *ret < 0xfb ? 0 : take_number(in, *ret == 0xfc ? 2 : *ret == 0xfd ? 3 : 8, ret);
}

int mysql_take_counted(struct slice *in, struct slice *ret)
{
    uint64_t n;
    return mysql_take_count(in, &n) < 0 || n > in->n ? -1 : mysql_take_bytes(in, (size_t)n, ret);
}

int mysql_take_text(struct slice *in, struct slice *ret)
{
    ssize_t end = slice_find(*in, 0);
    if (end < 0)
        return -1;
    *ret = (struct slice){in->p, (size_t)end};
    take(in, (size_t)end + 1);
    return 0;
}

struct slice mysql_error_text(struct slice body, uint16_t *code)
{
    if (body.n < 3 || (unsigned char)body.p[0] != 0xff)
        return SLICE("");
    take(&body, 1);
    if (mysql_take_u16(&body, code) < 0)
        return SLICE("");
    if (body.n >= 6 && body.p[0] == '#')
        take(&body, 6);
    return body;
}

/* ---- writing ---- */

int mysql_put(struct buf *out, unsigned char number, struct slice body)
{
    const unsigned char head[MYSQL_HEAD] = {(unsigned char)body.n, (unsigned char)(body.n >> 8),
                                            (unsigned char)(body.n >> 16), number};
    return body.n >= MYSQL_FULL || buf_room(out) < body.n + MYSQL_HEAD ||
                   buf_append(out, head, sizeof head) < 0 || buf_append_slice(out, body) < 0
               ? -1
               : 0;
}

int mysql_put_part(struct buf *out, const struct mysql_part *m)
{
    if (m->first && buf_append(out, m->head, MYSQL_HEAD) < 0)
        return -1;
    return buf_append_slice(out, m->body);
}

int mysql_put_u32(struct buf *out, uint32_t v)
{
    const unsigned char b[4] = {(unsigned char)v, (unsigned char)(v >> 8), (unsigned char)(v >> 16),
                                (unsigned char)(v >> 24)};
    return buf_append(out, b, sizeof b);
}

int mysql_put_counted(struct buf *out, struct slice s)
{
    const unsigned char b[3] = {0xfc, (unsigned char)s.n, (unsigned char)(s.n >> 8)};
    const unsigned char one = (unsigned char)s.n;
    if (s.n > 0xffff || (s.n < 0xfb ? buf_append(out, &one, 1) : buf_append(out, b, sizeof b)) < 0)
        return -1;
    return buf_append_slice(out, s);
}

int mysql_put_error(struct buf *out, unsigned char number, uint16_t code, const char *state,
                    struct slice text)
{
    unsigned char body[9 + ERROR_TEXT] = {0xff, (unsigned char)code, (unsigned char)(code >> 8),
                                          '#'};
    size_t n = text.n < ERROR_TEXT ? text.n : ERROR_TEXT;
    memcpy(body + 4, state, 5);
    memcpy(body + 9, text.p, n);
    return mysql_put(out, number, (struct slice){(const char *)body, 9 + n});
}

int mysql_put_ok(struct buf *out, unsigned char number)
{
    static const char body[] = {0, 0, 0, STATUS_AUTOCOMMIT, 0, 0, 0};
    return mysql_put(out, number, (struct slice){body, sizeof body});
}

int mysql_put_query(struct buf *out, struct slice text)
{
    const unsigned char head[MYSQL_HEAD + 1] = {
        (unsigned char)(text.n + 1), (unsigned char)((text.n + 1) >> 8),
        (unsigned char)((text.n + 1) >> 16), 0, MYSQL_QUERY};
    return text.n + 1 >= MYSQL_FULL || buf_append(out, head, sizeof head) < 0
               ? -1
               : buf_append_slice(out, text);
}
