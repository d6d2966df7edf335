/* Reads heads byte by byte, judges each type by who may send it and when, and checks the form of
 * those that come whole; writes the messages that we send of our own. */
#include "postgres_message.h"

#include "assertion.h"

#include <string.h>

enum { INTEGER = 4, SHORT = 2, FIELD_CODE = 1, CANCEL_KEY = 8 };

/* ---- forms ---- */

typedef bool (*form_fn)(struct slice body);

static uint32_t u32_of(const char *p)
{
    const unsigned char *u = (const unsigned char *)p;
    return (uint32_t)u[0] << 24 | (uint32_t)u[1] << 16 | (uint32_t)u[2] << 8 | u[3];
}

static void skip(struct slice *in, size_t n)
{
    ASSERT(n <= in->n);
    in->p += n;
    in->n -= n;
}

int postgres_take_text(struct slice *in, struct slice *ret)
{
    ssize_t end = slice_find(*in, 0);
    if (end < 0)
        return -1;
    *ret = (struct slice){in->p, (size_t)end};
    skip(in, (size_t)end + 1);
    return 0;
}

int postgres_take_u16(struct slice *in, uint16_t *ret)
{
    if (in->n < SHORT)
        return -1;
    *ret = (uint16_t)((unsigned char)in->p[0] << 8 | (unsigned char)in->p[1]);
    skip(in, SHORT);
    return 0;
}

int postgres_take_u32(struct slice *in, uint32_t *ret)
{
    if (in->n < INTEGER)
        return -1;
    *ret = u32_of(in->p);
    skip(in, INTEGER);
    return 0;
}

static bool is_empty(struct slice b)
{
    return b.n == 0;
}

static bool is_text(struct slice b)
{
    struct slice text;
    return postgres_query_read(b, &text) == 0;
}

static bool is_parse(struct slice b)
{
    struct postgres_parse p;
    return postgres_parse_read(b, &p) == 0;
}

/* Describe and Close: of a statement or a portal. */
static bool is_target(struct slice b)
{
    struct slice name;
    if (b.n == 0 || (b.p[0] != 'S' && b.p[0] != 'P'))
        return false;
    skip(&b, 1);
    return postgres_take_text(&b, &name) == 0 && b.n == 0;
}

static bool is_execute(struct slice b)
{
    struct slice name;
    return postgres_take_text(&b, &name) == 0 && b.n == INTEGER;
}

static bool is_authentication(struct slice b)
{
    return b.n >= INTEGER;
}

static bool is_key(struct slice b)
{
    return b.n == CANCEL_KEY;
}

static bool is_status(struct slice b)
{
    return b.n == 1 && (*b.p == 'I' || *b.p == 'T' || *b.p == 'E');
}

static bool is_setting(struct slice b)
{
    struct slice name, value;
    return postgres_take_text(&b, &name) == 0 && postgres_take_text(&b, &value) == 0 && b.n == 0;
}

static bool is_notification(struct slice b)
{
    uint32_t process;
    return postgres_take_u32(&b, &process) == 0 && is_setting(b);
}

/* Fields, each a code and a text, and a zero byte at the end. */
static bool is_fields(struct slice b)
{
    struct slice text;
    while (b.n > 0 && *b.p != 0) {
        skip(&b, FIELD_CODE);
        if (postgres_take_text(&b, &text) < 0)
            return false;
    }
    return b.n == 1;
}

/* CopyInResponse, CopyOutResponse: how all is written, and how each column. */
static bool is_copy(struct slice b)
{
    uint16_t n;
    if (b.n == 0 || (unsigned char)*b.p > 1)
        return false;
    skip(&b, 1);
    return postgres_take_u16(&b, &n) == 0 && b.n == SHORT * (size_t)n;
}

/* NegotiateProtocolVersion: a version, a count, so many texts. */
static bool is_negotiation(struct slice b)
{
    uint32_t version, n;
    struct slice name;
    if (postgres_take_u32(&b, &version) < 0 || postgres_take_u32(&b, &n) < 0 || n > b.n)
        return false;
    for (uint32_t i = 0; i < n; i++)
        if (postgres_take_text(&b, &name) < 0)
            return false;
    return b.n == 0;
}

/* ---- types ---- */

enum { BOTH = POSTGRES_LOGIN | POSTGRES_SESSION, KINDS = 256 };

/* By its type; without phases: there is none of that type. */
struct kind {
    unsigned char phases;
    uint32_t max;
    form_fn form; /* NULL: it comes in pieces */
    uint32_t min; /* of those */
};

static const struct kind client_kinds[KINDS] = {
    ['p'] = {POSTGRES_LOGIN, POSTGRES_SMALL_MAX, is_text, 0},
    ['Q'] = {POSTGRES_SESSION, POSTGRES_WHOLE_MAX, is_text, 0},
    ['P'] = {POSTGRES_SESSION, POSTGRES_WHOLE_MAX, is_parse, 0},
    ['B'] = {POSTGRES_SESSION, POSTGRES_LONG_MAX, NULL, 8},
    ['D'] = {POSTGRES_SESSION, POSTGRES_SMALL_MAX, is_target, 0},
    ['C'] = {POSTGRES_SESSION, POSTGRES_SMALL_MAX, is_target, 0},
    ['E'] = {POSTGRES_SESSION, POSTGRES_SMALL_MAX, is_execute, 0},
    ['F'] = {POSTGRES_SESSION, POSTGRES_LONG_MAX, NULL, 10},
    ['H'] = {POSTGRES_SESSION, 0, is_empty, 0},
    ['S'] = {POSTGRES_SESSION, 0, is_empty, 0},
    ['d'] = {POSTGRES_SESSION, POSTGRES_LONG_MAX, NULL, 0},
    ['c'] = {POSTGRES_SESSION, 0, is_empty, 0},
    ['f'] = {POSTGRES_SESSION, POSTGRES_SMALL_MAX, is_text, 0},
    ['X'] = {BOTH, 0, is_empty, 0},
};

/* FunctionCallResponse ('V') and CopyBothResponse ('W') answer what is never asked: the first what
 * a front refuses, the second replication. */
static const struct kind server_kinds[KINDS] = {
    ['R'] = {POSTGRES_LOGIN, POSTGRES_SMALL_MAX, is_authentication, 0},
    ['K'] = {POSTGRES_LOGIN, POSTGRES_SMALL_MAX, is_key, 0},
    ['v'] = {POSTGRES_LOGIN, POSTGRES_SMALL_MAX, is_negotiation, 0},
    ['S'] = {BOTH, POSTGRES_WHOLE_MAX, is_setting, 0},
    ['E'] = {BOTH, POSTGRES_WHOLE_MAX, is_fields, 0},
    ['N'] = {BOTH, POSTGRES_WHOLE_MAX, is_fields, 0},
    ['Z'] = {BOTH, 1, is_status, 0},
    ['T'] = {POSTGRES_SESSION, POSTGRES_LONG_MAX, NULL, 2},
    ['D'] = {POSTGRES_SESSION, POSTGRES_LONG_MAX, NULL, 2},
    ['C'] = {POSTGRES_SESSION, POSTGRES_SMALL_MAX, is_text, 0},
    ['I'] = {POSTGRES_SESSION, 0, is_empty, 0},
    ['1'] = {POSTGRES_SESSION, 0, is_empty, 0},
    ['2'] = {POSTGRES_SESSION, 0, is_empty, 0},
    ['3'] = {POSTGRES_SESSION, 0, is_empty, 0},
    ['n'] = {POSTGRES_SESSION, 0, is_empty, 0},
    ['s'] = {POSTGRES_SESSION, 0, is_empty, 0},
    ['t'] = {POSTGRES_SESSION, POSTGRES_LONG_MAX, NULL, 2},
    ['A'] = {POSTGRES_SESSION, POSTGRES_SMALL_MAX, is_notification, 0},
    ['G'] = {POSTGRES_SESSION, POSTGRES_SMALL_MAX, is_copy, 0},
    ['H'] = {POSTGRES_SESSION, POSTGRES_SMALL_MAX, is_copy, 0},
    ['d'] = {POSTGRES_SESSION, POSTGRES_LONG_MAX, NULL, 0},
    ['c'] = {POSTGRES_SESSION, 0, is_empty, 0},
};

static const struct kind *kind_of(const struct postgres_reader *r)
{
    return (r->from == POSTGRES_CLIENT ? client_kinds : server_kinds) + r->head[0];
}

/* ---- reading ---- */

void postgres_reader_init(struct postgres_reader *r, enum postgres_side from,
                          enum postgres_phase phase)
{
    memset(r, 0, sizeof *r);
    r->from = from;
    r->phase = phase;
    buf_init_wiped(&r->whole, POSTGRES_WHOLE_MAX);
}

void postgres_reader_free(struct postgres_reader *r)
{
    buf_free(&r->whole);
}

bool postgres_reader_between(const struct postgres_reader *r)
{
    return r->have == 0;
}

static enum postgres_event broken(struct postgres_reader *r, const char *why)
{
    r->broken = true;
    r->why = why;
    return POSTGRES_VIOLATION;
}

/* 1: the head is whole; 0: more is needed; -1: it is a bad one. */
static int read_head(struct postgres_reader *r, struct slice *in)
{
    size_t n = POSTGRES_HEAD - r->have < in->n ? POSTGRES_HEAD - r->have : in->n;
    if (n == 0)
        return 0;
    memcpy(r->head + r->have, in->p, n);
    r->have += n;
    skip(in, n);
    const struct kind *k = kind_of(r);
    if (!(k->phases & (unsigned)r->phase)) {
        (void)broken(r, k->phases ? "a message that has no place here" : "an unknown message");
        return -1;
    }
    if (r->have < POSTGRES_HEAD)
        return 0;
    uint32_t length = u32_of((const char *)r->head + 1);
    if (length < INTEGER || length - INTEGER > k->max || length - INTEGER < k->min) {
        (void)broken(r, "a message of a length that it cannot have");
        return -1;
    }
    r->length = r->left = length - INTEGER;
    r->piecewise = k->form == NULL;
    return 1;
}

static enum postgres_event read_piece(struct postgres_reader *r, struct slice *in,
                                      struct postgres_part *ret)
{
    size_t n = in->n < r->left ? in->n : r->left;
    if (n == 0 && r->left > 0)
        return POSTGRES_MORE;
    *ret = (struct postgres_part){.type = (char)r->head[0],
                                  .first = r->left == r->length,
                                  .last = n == r->left,
                                  .length = r->length,
                                  .body = {in->p, n}};
    skip(in, n);
    r->left -= (uint32_t)n;
    if (r->left == 0)
        r->have = 0;
    return POSTGRES_PIECE;
}

static enum postgres_event read_whole(struct postgres_reader *r, struct slice *in,
                                      struct postgres_part *ret)
{
    struct slice body = {in->p, r->left};
    size_t n = in->n < r->left ? in->n : r->left;
    bool kept = buf_len(&r->whole) > 0 || n < r->left;
    if (kept && buf_append(&r->whole, in->p, n) < 0)
        return broken(r, "memory is out");
    skip(in, n);
    r->left -= (uint32_t)n;
    if (r->left > 0)
        return POSTGRES_MORE;
    if (kept)
        body = buf_slice(&r->whole);
    r->held = kept;
    r->have = 0;
    if (!kind_of(r)->form(body))
        return broken(r, "a message of another form than its type has");
    *ret = (struct postgres_part){
        .type = (char)r->head[0], .first = true, .last = true, .length = r->length, .body = body};
    return POSTGRES_MESSAGE;
}

enum postgres_event postgres_read(struct postgres_reader *r, struct slice *in,
                                  struct postgres_part *ret)
{
    const char *at = in->p;
    bool begun = r->have > 0;
    if (r->broken)
        return POSTGRES_VIOLATION;
    if (r->held) {
        buf_clear(&r->whole);
        r->held = false;
    }
    if (r->have < POSTGRES_HEAD) {
        int whole = read_head(r, in);
        if (whole <= 0)
            return whole == 0 ? POSTGRES_MORE : POSTGRES_VIOLATION;
    }
    enum postgres_event e = r->piecewise ? read_piece(r, in, ret) : read_whole(r, in, ret);
    if ((e == POSTGRES_MESSAGE || e == POSTGRES_PIECE) && !(begun && ret->first))
        ret->wire = (struct slice){at, (size_t)(in->p - at)};
    return e;
}

/* ---- what they hold ---- */

int postgres_query_read(struct slice body, struct slice *text)
{
    return postgres_take_text(&body, text) < 0 || body.n ? -1 : 0;
}

int postgres_parse_read(struct slice body, struct postgres_parse *ret)
{
    if (postgres_take_text(&body, &ret->name) < 0 || postgres_take_text(&body, &ret->text) < 0 ||
        postgres_take_u16(&body, &ret->n) < 0 || body.n != INTEGER * (size_t)ret->n)
        return -1;
    ret->types = body;
    return 0;
}

struct slice postgres_field(struct slice body, char code)
{
    struct slice text;
    while (body.n > 0 && *body.p != 0) {
        char c = *body.p;
        skip(&body, FIELD_CODE);
        if (postgres_take_text(&body, &text) < 0)
            break;
        if (c == code)
            return text;
    }
    return (struct slice){NULL, 0};
}

int postgres_only_value(struct slice body, struct slice *ret)
{
    uint16_t columns;
    uint32_t n;
    if (postgres_take_u16(&body, &columns) < 0 || columns != 1 || postgres_take_u32(&body, &n) < 0)
        return -1;
    *ret = n == UINT32_MAX ? (struct slice){NULL, 0} : body;
    return (n == UINT32_MAX ? 0 : n) == body.n ? 0 : -1;
}

uint64_t postgres_rows(struct slice body)
{
    struct slice tag;
    uint64_t rows = 0;
    if (postgres_query_read(body, &tag) < 0)
        return 0;
    size_t at = tag.n;
    while (at > 0 && tag.p[at - 1] != ' ')
        at--;
    return at > 0 && slice_u64((struct slice){tag.p + at, tag.n - at}, UINT64_MAX, &rows) == 0
               ? rows
               : 0;
}

/* ---- writing ---- */

int postgres_put_u32(struct buf *out, uint32_t v)
{
    const unsigned char b[INTEGER] = {(unsigned char)(v >> 24), (unsigned char)(v >> 16),
                                      (unsigned char)(v >> 8), (unsigned char)v};
    return buf_append(out, b, sizeof b);
}

int postgres_put_text(struct buf *out, struct slice text)
{
    if (slice_find(text, 0) >= 0 || buf_room(out) < text.n + 1)
        return -1;
    return buf_append_slice(out, text) < 0 || buf_append(out, "", 1) < 0 ? -1 : 0;
}

/* Everything behind `from` goes: the message did not fit. */
static int undo(struct buf *out, size_t from)
{
    buf_cut(out, buf_len(out) - from);
    return -1;
}

static int put_head(struct buf *out, char type, size_t n)
{
    if (n > POSTGRES_LONG_MAX || buf_room(out) < POSTGRES_HEAD + n)
        return -1;
    return buf_append(out, &type, 1) < 0 ? -1 : postgres_put_u32(out, (uint32_t)(n + INTEGER));
}

int postgres_put(struct buf *out, char type, struct slice body)
{
    size_t from = buf_len(out);
    return put_head(out, type, body.n) < 0 || buf_append_slice(out, body) < 0 ? undo(out, from) : 0;
}

int postgres_put_part(struct buf *out, const struct postgres_part *m)
{
    if (m->wire.p)
        return buf_append_slice(out, m->wire);
    size_t from = buf_len(out);
    if (m->first &&
        (buf_append(out, &m->type, 1) < 0 || postgres_put_u32(out, m->length + INTEGER) < 0))
        return undo(out, from);
    return buf_append_slice(out, m->body) < 0 ? undo(out, from) : 0;
}

int postgres_put_query(struct buf *out, struct slice text)
{
    size_t from = buf_len(out);
    return put_head(out, 'Q', text.n + 1) < 0 || postgres_put_text(out, text) < 0 ? undo(out, from)
                                                                                  : 0;
}

int postgres_put_parse(struct buf *out, struct slice name, struct slice text)
{
    size_t from = buf_len(out);
    static const char no_types[SHORT] = {0, 0};
    return put_head(out, 'P', name.n + 1 + text.n + 1 + SHORT) < 0 ||
                   postgres_put_text(out, name) < 0 || postgres_put_text(out, text) < 0 ||
                   buf_append(out, no_types, sizeof no_types) < 0
               ? undo(out, from)
               : 0;
}

static int put_field(struct buf *out, char code, struct slice text)
{
    return buf_append(out, &code, 1) < 0 ? -1 : postgres_put_text(out, text);
}

int postgres_put_error(struct buf *out, const char *severity, const char *code, struct slice text)
{
    size_t from = buf_len(out);
    struct slice s = slice_str(severity), c = slice_str(code);
    size_t n = 4 * (FIELD_CODE + 1) + 2 * s.n + c.n + text.n + 1;
    return put_head(out, 'E', n) < 0 || put_field(out, 'S', s) < 0 || put_field(out, 'V', s) < 0 ||
                   put_field(out, 'C', c) < 0 || put_field(out, 'M', text) < 0 ||
                   buf_append(out, "", 1) < 0
               ? undo(out, from)
               : 0;
}

int postgres_put_ready(struct buf *out, char status)
{
    return postgres_put(out, 'Z', (struct slice){&status, 1});
}

int postgres_put_parameter(struct buf *out, struct slice name, struct slice value)
{
    size_t from = buf_len(out);
    return put_head(out, 'S', name.n + value.n + 2) < 0 || postgres_put_text(out, name) < 0 ||
                   postgres_put_text(out, value) < 0
               ? undo(out, from)
               : 0;
}

int postgres_put_authentication(struct buf *out, uint32_t code, struct slice data)
{
    size_t from = buf_len(out);
    return put_head(out, 'R', INTEGER + data.n) < 0 || postgres_put_u32(out, code) < 0 ||
                   buf_append_slice(out, data) < 0
               ? undo(out, from)
               : 0;
}
