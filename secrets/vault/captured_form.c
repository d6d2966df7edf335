/* A reply in the form of a query (application/x-www-form-urlencoded), as GitHub's device flow gives
 * it. */
#include "captured_internal.h"

#include <string.h>

enum { PAIRS_MAX = 256 };

static int hex(char c)
{
    c = ascii_lower(c);
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Escapes undone, "+" a space. -1: a broken escape, or a byte that has to be escaped. */
static int decode(struct slice s, struct buf *out)
{
    for (size_t i = 0; i < s.n; i++) {
        unsigned char c = (unsigned char)s.p[i];
        if (c == '%') {
            if (s.n - i < 3 || hex(s.p[i + 1]) < 0 || hex(s.p[i + 2]) < 0)
                return -1;
            c = (unsigned char)(hex(s.p[i + 1]) * 16 + hex(s.p[i + 2]));
            i += 2;
        } else if (c == '+') {
            c = ' ';
        } else if (c <= 0x20 || c >= 0x7f) {
            return -1;
        }
        if (buf_append(out, &c, 1) < 0)
            return -1;
    }
    return 0;
}

static int encode(struct slice s, struct buf *out)
{
    int r = 0;
    for (size_t i = 0; i < s.n && r == 0; i++) {
        char c = s.p[i];
        bool plain = ascii_is_alnum(c) || (c && strchr("-._~*", c));
        r = plain ? buf_append(out, &c, 1) : buf_printf(out, "%%%02X", (unsigned char)c);
    }
    return r;
}

/* "NAME=VALUE" or "NAME" at the front of the text, which is then behind it. */
struct pair {
    struct slice whole;
    struct buf name, value; /* decoded */
};

static int next_pair(struct slice *text, struct pair *p)
{
    ssize_t amp = slice_find(*text, '&');
    size_t n = amp < 0 ? text->n : (size_t)amp;
    p->whole = (struct slice){text->p, n};
    ssize_t eq = slice_find(p->whole, '=');
    size_t name = eq < 0 ? n : (size_t)eq;
    *text = (struct slice){text->p + n + (amp >= 0), text->n - n - (amp >= 0)};
    buf_clear(&p->name);
    buf_clear(&p->value);
    if (name == 0 || decode((struct slice){p->whole.p, name}, &p->name) < 0)
        return -1;
    return eq < 0 ? 0 : decode((struct slice){p->whole.p + name + 1, n - name - 1}, &p->value);
}

static bool seen_before(struct slice body, struct slice upto, struct slice name, struct pair *other)
{
    while (body.p < upto.p) {
        if (next_pair(&body, other) < 0 || slice_eq(buf_slice(&other->name), name))
            return true;
    }
    return false;
}

/* Two readers would differ on a name that is there twice. */
static int take(struct slice body, const struct captured_search *s, struct pair *p,
                struct pair *other)
{
    struct slice rest = body;
    size_t pairs = 0;
    while (rest.n > 0) {
        if (++pairs > PAIRS_MAX || next_pair(&rest, p) < 0)
            return err_set(s->err, ERR_PARSE, "it is not a form");
        struct slice name = buf_slice(&p->name);
        if (seen_before(body, p->whole, name, other))
            return err_set(s->err, ERR_PARSE, "it has a field twice");
        bool named = false;
        for (size_t i = 0; i < s->n; i++) {
            bool it = slice_eq_str(name, s->fields[i].path);
            if (it && captured_take(s, &s->fields[i], buf_slice(&p->value)) < 0)
                return -1;
            named = named || it;
        }
        if (!named && captured_missed(s, name, buf_slice(&p->value)))
            return captured_say_missed(s, name);
    }
    return 0;
}

static int put(struct slice body, const struct captured_words *w, struct pair *p, struct buf *out)
{
    struct slice rest = body;
    struct buf text;
    int r = 0;
    buf_init_wiped(&text, CAPTURED_WRITTEN_MAX);
    while (r == 0 && rest.n > 0) {
        r = next_pair(&rest, p);
        if (r < 0 || captured_holds(w, buf_slice(&p->name)) ||
            (p->whole.p > body.p && buf_append_str(out, "&") < 0)) {
            r = -1;
        } else if (!captured_holds(w, buf_slice(&p->value))) {
            r = buf_append_slice(out, p->whole);
        } else {
            buf_clear(&text);
            r = encode(buf_slice(&p->name), out) | buf_append_str(out, "=") |
                captured_replace(w, buf_slice(&p->value), &text) | encode(buf_slice(&text), out);
        }
    }
    buf_free(&text);
    return r;
}

int captured_form(struct slice body, const struct captured_search *s, struct buf *out)
{
    struct captured_words words;
    struct pair p, other;
    buf_init_wiped(&p.name, body.n);
    buf_init_wiped(&p.value, body.n);
    buf_init_wiped(&other.name, body.n);
    buf_init_wiped(&other.value, body.n);
    int r = take(body, s, &p, &other);
    captured_words_of(s->fields, s->n, &words);
    /* nor may what is left of the escapes spell one ("%2" before it) */
    if (r == 0 && (put(body, &words, &p, out) < 0 || captured_holds(&words, buf_slice(out))))
        r = err_set(s->err, ERR_LIMIT, "it cannot be written with placeholders");
    buf_free(&p.name);
    buf_free(&p.value);
    buf_free(&other.name);
    buf_free(&other.value);
    return r;
}
