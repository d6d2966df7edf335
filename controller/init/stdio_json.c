/* Which messages a JSON text holds and which of their members count here. What the text means is
 * decided elsewhere. */
#include "stdio_mcp.h"

#include <string.h>

#include "json_walk.h"

/* A member that was there before makes it no message: readers would differ. */
static bool note(struct stdio_message *m, struct slice key, struct slice value)
{
    struct slice *to = slice_eq_str(key, "\"id\"")       ? &m->id
                       : slice_eq_str(key, "\"method\"") ? &m->method
                                                         : NULL;
    if (to) {
        bool first = to->n == 0;
        *to = value;
        return first && value.n <= STDIO_ID_MAX;
    }
    if (slice_eq_str(key, "\"result\"") || slice_eq_str(key, "\"error\""))
        m->answers = true;
    return true;
}

static bool take_members(struct json_walk *w, struct stdio_message *m)
{
    struct slice key, value;
    if (json_next_is(w, '}'))
        return true;
    do {
        if (!json_member(w, &key, &value) || !note(m, key, value))
            return false;
    } while (json_next_is(w, ','));
    return json_next_is(w, '}');
}

static bool take_message(struct json_walk *w, struct stdio_message *m)
{
    *m = (struct stdio_message){.answers = false};
    return json_next_is(w, '{') && take_members(w, m) && (m->method.n > 0 || m->answers);
}

int stdio_scan(struct slice text, struct stdio_message *ret, size_t max)
{
    struct json_walk w = {text.p, text.p + text.n};
    size_t n = 0;
    bool batch = json_next_is(&w, '[');
    do {
        if (n == max || !take_message(&w, &ret[n++]))
            return -1;
    } while (batch && json_next_is(&w, ','));
    if (batch && !json_next_is(&w, ']'))
        return -1;
    json_blanks(&w);
    return w.p == w.end ? (int)n : -1;
}

bool stdio_is_request(const struct stdio_message *m)
{
    return m->method.n > 0 && m->id.n > 0 && !slice_eq_str(m->id, "null");
}

/* ---- ids ---- */

static bool hex4(const char *p, const char *end, uint32_t *ret)
{
    *ret = 0;
    if (end - p < 4)
        return false;
    for (int i = 0; i < 4; i++) {
        char c = ascii_lower(p[i]);
        if (!(c >= '0' && c <= '9') && !(c >= 'a' && c <= 'f'))
            return false;
        *ret = *ret * 16 + (uint32_t)(c <= '9' ? c - '0' : c - 'a' + 10);
    }
    return true;
}

static size_t put_utf8(uint32_t c, char *to)
{
    size_t more = c < 0x80 ? 0 : c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
    static const unsigned char first[] = {0, 0xc0, 0xe0, 0xf0};
    to[0] = (char)(first[more] | c >> 6 * more);
    for (size_t i = 1; i <= more; i++)
        to[i] = (char)(0x80 | (c >> 6 * (more - i) & 0x3f));
    return more + 1;
}

/* After the backslash and its letter u; two of them may be one letter. */
static bool take_unicode(const char **p, const char *end, uint32_t *ret)
{
    uint32_t low;
    if (!hex4(*p, end, ret))
        return false;
    *p += 4;
    if (*ret >= 0xd800 && *ret < 0xdc00 && end - *p >= 6 && (*p)[0] == '\\' && (*p)[1] == 'u' &&
        hex4(*p + 2, end, &low) && low >= 0xdc00 && low < 0xe000) {
        *ret = 0x10000 + ((*ret - 0xd800) << 10) + (low - 0xdc00);
        *p += 6;
    }
    return true;
}

/* A text with its quotes, at most STDIO_ID_MAX bytes. -1: it is none. */
static ssize_t decode(struct slice text, char to[STDIO_ID_MAX])
{
    static const char letters[] = "\"\\/bfnrt", means[] = "\"\\/\b\f\n\r\t";
    if (text.n < 2 || text.n > STDIO_ID_MAX || text.p[0] != '"' || text.p[text.n - 1] != '"')
        return -1;
    const char *p = text.p + 1, *end = text.p + text.n - 1;
    size_t n = 0;
    while (p < end) {
        uint32_t c;
        if (*p != '\\') {
            to[n++] = *p++;
            continue;
        }
        const char *l = ++p < end && *p ? strchr(letters, *p) : NULL;
        if (l) {
            to[n++] = means[l - letters];
            p++;
        } else if (p < end && *p++ == 'u' && take_unicode(&p, end, &c)) {
            n += put_utf8(c, to + n);
        } else {
            return -1;
        }
    }
    return (ssize_t)n;
}

bool stdio_same_id(struct slice a, struct slice b)
{
    char x[STDIO_ID_MAX], y[STDIO_ID_MAX];
    ssize_t n = decode(a, x), k = decode(b, y);
    return n < 0 || k < 0 ? slice_eq(a, b) : n == k && memcmp(x, y, (size_t)n) == 0;
}
