/* Modified UTF-7, both ways: what does not come back as it was is in another form than its one. */
#include "imap_name.h"

#include <string.h>

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+,";

static int put_point(struct buf *to, uint32_t c)
{
    unsigned char b[4];
    size_t n = 0;
    if (c < 0x80) {
        b[n++] = (unsigned char)c;
    } else if (c < 0x800) {
        b[n++] = (unsigned char)(0xc0 | c >> 6);
    } else if (c < 0x10000) {
        b[n++] = (unsigned char)(0xe0 | c >> 12);
        b[n++] = (unsigned char)(0x80 | (c >> 6 & 0x3f));
    } else {
        b[n++] = (unsigned char)(0xf0 | c >> 18);
        b[n++] = (unsigned char)(0x80 | (c >> 12 & 0x3f));
        b[n++] = (unsigned char)(0x80 | (c >> 6 & 0x3f));
    }
    if (c >= 0x80)
        b[n++] = (unsigned char)(0x80 | (c & 0x3f));
    return buf_append(to, b, n);
}

/* Units of 16 bits, of which two may be one character. high: the first of these, or 0. */
static int put_unit(struct buf *to, uint32_t unit, uint32_t *high)
{
    uint32_t was = *high;
    *high = 0;
    if (unit >= 0xdc00 && unit < 0xe000)
        return was ? put_point(to, 0x10000 + ((was - 0xd800) << 10) + (unit - 0xdc00)) : -1;
    if (was)
        return -1;
    if (unit >= 0xd800 && unit < 0xdc00) {
        *high = unit;
        return 0;
    }
    return unit < 0xa0 ? -1 : put_point(to, unit); /* ASCII is itself; controls are nobody's */
}

/* What stands between '&' and '-'. */
static int put_section(struct buf *to, struct slice s)
{
    uint32_t bits = 0, n_bits = 0, high = 0;
    if (s.n == 0)
        return buf_append(to, "&", 1);
    for (size_t i = 0; i < s.n; i++) {
        const char *at = s.p[i] ? strchr(digits, s.p[i]) : NULL;
        if (at == NULL)
            return -1;
        bits = bits << 6 | (uint32_t)(at - digits);
        n_bits += 6;
        if (n_bits < 16)
            continue;
        n_bits -= 16;
        if (put_unit(to, bits >> n_bits & 0xffff, &high) < 0)
            return -1;
        bits &= (1u << n_bits) - 1;
    }
    return high || n_bits >= 6 || bits ? -1 : 0;
}

/* wild: '%' and '*' may stand in it. */
static int decode(struct slice s, bool wild, struct buf *to)
{
    bool behind = false; /* a section, which another one right behind would go on */
    for (size_t i = 0; i < s.n; i++) {
        unsigned char c = (unsigned char)s.p[i];
        if (c < 0x20 || c >= 0x7f || (!wild && (c == '%' || c == '*')))
            return -1;
        if (c != '&') {
            behind = false;
            if (buf_append(to, &c, 1) < 0)
                return -1;
            continue;
        }
        struct slice rest = {s.p + i + 1, s.n - i - 1};
        ssize_t end = slice_find(rest, '-');
        if (end < 0 || (end > 0 && behind) || put_section(to, (struct slice){rest.p, (size_t)end}))
            return -1;
        behind = end > 0;
        i += (size_t)end + 1;
    }
    return 0;
}

static bool parts(char c)
{
    return c == '/' || c == '\\'; /* as servers have it where their files are so */
}

/* What servers that keep mailboxes as files take for elsewhere. */
static bool is_place(struct slice s)
{
    if (s.n == 0 || s.p[0] == '~' || s.p[0] == '#')
        return true;
    for (;;) {
        size_t end = 0;
        while (end < s.n && !parts(s.p[end]))
            end++;
        struct slice part = {s.p, end};
        if (part.n == 0 || slice_eq_str(part, ".") || slice_eq_str(part, ".."))
            return true;
        if (end == s.n)
            return false;
        s = (struct slice){s.p + end + 1, s.n - end - 1};
    }
}

int imap_name_read(struct slice said, struct buf *name)
{
    if (slice_ieq_str(said, "INBOX"))
        return buf_append_str(name, "INBOX");
    size_t had = buf_len(name);
    if (said.n > IMAP_NAME_MAX || decode(said, false, name) < 0)
        return -1;
    struct slice all = buf_slice(name);
    return is_place((struct slice){all.p + had, all.n - had}) ? -1 : 0;
}

bool imap_name_pattern_ok(struct slice said)
{
    struct buf b;
    buf_init(&b, IMAP_NAME_MAX * 4);
    bool ok = said.n <= IMAP_NAME_MAX && decode(said, true, &b) == 0;
    buf_free(&b);
    return ok;
}

int imap_name_show(struct slice name, struct buf *out)
{
    for (size_t i = 0; i < name.n; i++) {
        unsigned char c = (unsigned char)name.p[i];
        bool plain = ascii_is_alnum((char)c) || (c && strchr("-_./@+&", c));
        if ((plain ? buf_append(out, &c, 1) : buf_printf(out, "%%%02X", c)) < 0)
            return -1;
    }
    return 0;
}
