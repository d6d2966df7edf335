/* Writes a record as a line of JSON and parses the keys at the front of one. What the channel says
 * of sandbox and policy goes before what the record says. */
#include "render.h"

#include "timestamp.h"

#include <string.h>

/* Where a line is being written. Each takes little: a field is some bytes, and a request has two
 * records of twenty fields. */
struct line {
    char *at, *end;
    bool full;
};

static inline void put(struct line *l, const char *p, size_t n)
{
    if ((size_t)(l->end - l->at) < n) {
        l->full = true;
        return;
    }
    memcpy(l->at, p, n);
    l->at += n;
}

static inline void put_str(struct line *l, const char *s)
{
    put(l, s, strlen(s));
}

static void put_u64(struct line *l, uint64_t v)
{
    char text[SLICE_U64_TEXT];
    struct slice s = slice_of_u64(v, text);
    put(l, s.p, s.n);
}

static inline bool stands_for_itself(unsigned char c)
{
    return c >= 0x20 && c <= 0x7e && c != '"' && c != '\\';
}

/* s as the inside of a JSON string. */
static void put_escaped(struct line *l, struct slice s)
{
    static const char digit[] = "0123456789abcdef";
    for (size_t i = 0, from = 0; i <= s.n; i++) {
        if (i < s.n && stands_for_itself((unsigned char)s.p[i]))
            continue;
        put(l, s.p + from, i - from);
        if (i == s.n)
            return;
        unsigned char c = (unsigned char)s.p[i];
        const char u[] = {'\\', 'u', '0', '0', digit[c >> 4], digit[c & 15]};
        put(l, u, sizeof u);
        from = i + 1;
    }
}

static void put_key(struct line *l, const char *key)
{
    put(l, ",\"", 2);
    put_str(l, key);
    put(l, "\":", 2);
}

static void put_text(struct line *l, const char *key, struct slice v)
{
    put_key(l, key);
    put(l, "\"", 1);
    put_escaped(l, v);
    put(l, "\"", 1);
}

static void put_time(struct line *l, const char *key, uint64_t ns)
{
    char text[TIMESTAMP_MAX];
    put_text(l, key, slice_str(timestamp_text(ns, text, sizeof text)));
}

static void put_start(struct line *l, const struct chain *prev, const struct record_view *v,
                      const struct render_source *from, uint64_t at)
{
    char hex[CHAIN_HEX];
    put_str(l, "{\"seq\":");
    put_u64(l, prev->seq + 1);
    put_text(l, "prev", slice_str(chain_hex(prev->hash, hex)));
    put_text(l, "kind", slice_str(record_kind_name(v->kind)));
    put_str(l, ",\"id\":\"");
    put_u64(l, from->channel);
    put(l, "-", 1);
    put_u64(l, v->counter);
    put_str(l, "\",\"at\":");
    put_u64(l, at);
}

/* The channel's own name wins; a field may only fill the gap of a channel that has none. */
static struct slice owner(const char *channel, struct slice field)
{
    return channel[0] ? slice_str(channel) : field;
}

static void put_fields(struct line *l, const struct record_view *v)
{
    for (int f = 1; f < RF_FIELDS; f++) {
        struct slice field = v->field[f];
        const char *key = record_field_name((enum record_field)f);
        if (field.n == 0 || f == RF_SANDBOX || f == RF_POLICY)
            continue;
        if (record_field_is_number((enum record_field)f)) {
            put_key(l, key);
            put(l, field.p, field.n);
        } else {
            put_text(l, key, field);
        }
    }
}

/* Bytes that the line takes at most: each of a value may become an escape. */
static size_t most(const struct record_view *v, const struct render_source *from)
{
    enum { ESCAPE = 6, FIXED = 512, KEY = 32 };
    size_t values = strlen(from->sandbox) + strlen(from->policy), n = 0;
    for (int f = 1; f < RF_FIELDS; f++) {
        values += v->field[f].n;
        n += v->field[f].n > 0;
    }
    return FIXED + n * KEY + values * ESCAPE;
}

int render_line(struct buf *out, const struct chain *prev, const struct record_view *v,
                const struct render_source *from, uint64_t at, uint64_t received_ns)
{
    size_t need = most(v, from), room = buf_room(out);
    room = room < RENDER_LINE_MAX ? room : RENDER_LINE_MAX;
    room = room < need ? room : need;
    char *begin = (char *)buf_space(out, room);
    struct line l = {begin, begin + room, false};
    struct slice sandbox = owner(from->sandbox, v->field[RF_SANDBOX]);
    struct slice policy = owner(from->policy, v->field[RF_POLICY]);
    if (begin == NULL)
        return -1;
    put_start(&l, prev, v, from, at);
    put_time(&l, "time", v->wall_ns);
    put_time(&l, "received", received_ns);
    put_text(&l, "role", slice_str(from->role));
    if (sandbox.n)
        put_text(&l, "sandbox", sandbox);
    if (policy.n)
        put_text(&l, "policy", policy);
    put_fields(&l, v);
    put_str(&l, v->cut ? ",\"cut\":true}" : "}");
    if (l.full)
        return -1; /* all or nothing */
    buf_commit(out, (size_t)(l.at - begin));
    return 0;
}

enum record_kind render_kind(struct slice name)
{
    for (int k = 1; k < RECORD_KINDS; k++)
        if (slice_eq_str(name, record_kind_name((enum record_kind)k)))
            return (enum record_kind)k;
    return (enum record_kind)0;
}

static int skip(struct slice *s, struct slice literal)
{
    if (!slice_starts(*s, literal))
        return -1;
    s->p += literal.n;
    s->n -= literal.n;
    return 0;
}

/* Up to and without the stop byte, which is eaten too. */
static int until(struct slice *s, char stop, struct slice *ret)
{
    ssize_t i = slice_find(*s, stop);
    if (i < 0)
        return -1;
    *ret = (struct slice){s->p, (size_t)i};
    s->p += i + 1;
    s->n -= (size_t)i + 1;
    return 0;
}

int render_parse(struct slice line, struct render_head *h)
{
    struct slice s, kind, channel, counter, at;
    uint64_t number;
    if (chain_parse(line, &h->seq, h->prev, &s) < 0)
        return -1;
    if (skip(&s, SLICE(",\"kind\":\"")) < 0 || until(&s, '"', &kind) < 0 ||
        skip(&s, SLICE(",\"id\":\"")) < 0 || until(&s, '-', &channel) < 0 ||
        until(&s, '"', &counter) < 0 || skip(&s, SLICE(",\"at\":")) < 0 || until(&s, ',', &at) < 0)
        return -1;
    h->kind = render_kind(kind);
    if (h->kind == 0 || slice_u64(channel, UINT32_MAX, &number) < 0 ||
        slice_u64(counter, UINT64_MAX, &h->counter) < 0 || slice_u64(at, INT64_MAX, &h->at) < 0)
        return -1;
    h->channel = (uint32_t)number;
    return 0;
}
