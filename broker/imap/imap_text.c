/* Words of IMAP's grammar, strictly: what two readers could take apart differently is none. */
#include "imap_text.h"

#include <string.h>

bool imap_take(struct slice *s, char c)
{
    if (s->n == 0 || s->p[0] != c)
        return false;
    *s = (struct slice){s->p + 1, s->n - 1};
    return true;
}

static bool atom_char(char c, const char *also)
{
    return c > 0x20 && c < 0x7f && (strchr("(){%*\"\\]", c) == NULL || strchr(also, c) != NULL);
}

static bool take_chars(struct slice *s, const char *also, struct slice *ret)
{
    size_t n = 0;
    while (n < s->n && atom_char(s->p[n], also))
        n++;
    *ret = (struct slice){s->p, n};
    *s = (struct slice){s->p + n, s->n - n};
    return n > 0;
}

bool imap_take_atom(struct slice *s, struct slice *ret)
{
    return take_chars(s, "", ret);
}

bool imap_take_word(struct slice *s, const char *word)
{
    struct slice w = slice_str(word);
    if (!slice_istarts(*s, w) || (s->n > w.n && (ascii_is_alnum(s->p[w.n]) || s->p[w.n] == '-')))
        return false;
    *s = (struct slice){s->p + w.n, s->n - w.n};
    return true;
}

bool imap_take_number(struct slice *s, uint64_t most, uint64_t *ret)
{
    size_t n = 0;
    while (n < s->n && s->p[n] >= '0' && s->p[n] <= '9')
        n++;
    struct slice digits = {s->p, n};
    *s = (struct slice){s->p + n, s->n - n};
    return slice_u64(digits, most, ret) == 0;
}

static bool take_set_end(struct slice *s)
{
    uint64_t number;
    return imap_take(s, '*') || (imap_take_number(s, UINT32_MAX, &number) && number > 0);
}

bool imap_take_set(struct slice *s, struct slice *ret)
{
    const char *from = s->p;
    do {
        if (!take_set_end(s) || (imap_take(s, ':') && !take_set_end(s)))
            return false;
    } while (imap_take(s, ','));
    *ret = (struct slice){from, (size_t)(s->p - from)};
    return true;
}

static bool take_quoted(struct slice *s, struct buf *to)
{
    while (s->n > 0 && s->p[0] != '"') {
        if (s->p[0] == '\\') {
            *s = (struct slice){s->p + 1, s->n - 1};
            if (s->n == 0 || (s->p[0] != '\\' && s->p[0] != '"'))
                return false;
        }
        if (s->p[0] == '\r' || s->p[0] == '\n' || s->p[0] == 0 || buf_append(to, s->p, 1) < 0)
            return false;
        *s = (struct slice){s->p + 1, s->n - 1};
    }
    return imap_take(s, '"');
}

static bool take_literal(struct slice *s, struct buf *to)
{
    uint64_t n;
    if (!imap_take_number(s, IMAP_STRING_MAX, &n))
        return false;
    (void)imap_take(s, '+');
    if (!imap_take(s, '}') || !imap_take(s, '\r') || !imap_take(s, '\n') || s->n < n)
        return false;
    struct slice bytes = {s->p, n};
    *s = (struct slice){s->p + n, s->n - n};
    return slice_find(bytes, '\r') < 0 && slice_find(bytes, '\n') < 0 && slice_find(bytes, 0) < 0 &&
           buf_append_slice(to, bytes) == 0;
}

bool imap_take_string(struct slice *s, struct buf *to)
{
    if (imap_take(s, '"'))
        return take_quoted(s, to);
    return imap_take(s, '{') && take_literal(s, to);
}

static bool take_either(struct slice *s, const char *also, struct buf *to)
{
    struct slice atom;
    if (s->n > 0 && (s->p[0] == '"' || s->p[0] == '{'))
        return imap_take_string(s, to);
    return take_chars(s, also, &atom) && buf_append_slice(to, atom) == 0;
}

bool imap_take_astring(struct slice *s, struct buf *to)
{
    return take_either(s, "]", to);
}

bool imap_take_list_pattern(struct slice *s, struct buf *to)
{
    return take_either(s, "]%*", to);
}

int imap_put_string(struct buf *out, struct slice s)
{
    bool plain = s.n < 1000;
    for (size_t i = 0; i < s.n && plain; i++)
        plain = (unsigned char)s.p[i] >= 0x20 && (unsigned char)s.p[i] < 0x7f;
    if (!plain)
        return buf_printf(out, "{%zu}\r\n", s.n) < 0 ? -1 : buf_append_slice(out, s);
    if (buf_append(out, "\"", 1) < 0)
        return -1;
    for (size_t i = 0; i < s.n; i++)
        if (((s.p[i] == '"' || s.p[i] == '\\') && buf_append(out, "\\", 1) < 0) ||
            buf_append(out, s.p + i, 1) < 0)
            return -1;
    return buf_append(out, "\"", 1);
}
