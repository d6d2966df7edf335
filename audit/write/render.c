/* Writes a record as a line of JSON and parses the keys at the front of one. What the channel says
 * of sandbox and policy goes before what the record says. */
#include "render.h"

#include "timestamp.h"

#include <string.h>

/* Appends s as the inside of a JSON string. */
static int escape(struct buf *out, struct slice s)
{
    static const char digit[] = "0123456789abcdef";
    size_t plain = 0;
    for (size_t i = 0; i < s.n; i++) {
        unsigned char c = (unsigned char)s.p[i];
        if (c >= 0x20 && c <= 0x7e && c != '"' && c != '\\')
            continue;
        char u[6] = {'\\', 'u', '0', '0', digit[c >> 4], digit[c & 15]};
        if (buf_append(out, s.p + plain, i - plain) < 0 || buf_append(out, u, sizeof u) < 0)
            return -1;
        plain = i + 1;
    }
    return buf_append(out, s.p + plain, s.n - plain);
}

static int put_text(struct buf *out, const char *key, struct slice v)
{
    int r = buf_append_str(out, ",\"");
    r |= buf_append_str(out, key);
    r |= buf_append_str(out, "\":\"");
    r |= escape(out, v);
    return r | buf_append_str(out, "\"");
}

static int put_number(struct buf *out, const char *key, struct slice v)
{
    int r = buf_append_str(out, ",\"");
    r |= buf_append_str(out, key);
    r |= buf_append_str(out, "\":");
    return r | buf_append_slice(out, v);
}

static int put_start(struct buf *out, const struct chain *prev, const struct record_view *v,
                     const struct render_source *from, uint64_t at)
{
    char hex[CHAIN_HEX];
    return buf_printf(
        out, "{\"seq\":%llu,\"prev\":\"%s\",\"kind\":\"%s\",\"id\":\"%u-%llu\",\"at\":%llu",
        (unsigned long long)prev->seq + 1, chain_hex(prev->hash, hex), record_kind_name(v->kind),
        (unsigned)from->channel, (unsigned long long)v->counter, (unsigned long long)at);
}

/* The channel's own name wins; a field may only fill the gap of a channel that has none. */
static struct slice owner(const char *channel, struct slice field)
{
    return channel[0] ? slice_str(channel) : field;
}

int render_line(struct buf *out, const struct chain *prev, const struct record_view *v,
                const struct render_source *from, uint64_t at, uint64_t received_ns)
{
    char timestamp[TIMESTAMP_MAX];
    size_t before = buf_len(out);
    int r = put_start(out, prev, v, from, at);
    r |= put_text(out, "time", slice_str(timestamp_text(v->wall_ns, timestamp, sizeof timestamp)));
    r |= put_text(out, "received",
                  slice_str(timestamp_text(received_ns, timestamp, sizeof timestamp)));
    r |= put_text(out, "role", slice_str(from->role));
    struct slice sandbox = owner(from->sandbox, v->field[RF_SANDBOX]);
    struct slice policy = owner(from->policy, v->field[RF_POLICY]);
    if (sandbox.n)
        r |= put_text(out, "sandbox", sandbox);
    if (policy.n)
        r |= put_text(out, "policy", policy);
    for (int f = 1; f < RF_FIELDS; f++) {
        const char *key = record_field_name((enum record_field)f);
        if (v->field[f].n == 0 || f == RF_SANDBOX || f == RF_POLICY)
            continue;
        r |= record_field_is_number((enum record_field)f) ? put_number(out, key, v->field[f])
                                                          : put_text(out, key, v->field[f]);
    }
    r |= buf_append_str(out, v->cut ? ",\"cut\":true}" : "}");
    if (r == 0 && buf_len(out) - before <= RENDER_LINE_MAX)
        return 0;
    out->len = before; /* all or nothing */
    return -1;
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
