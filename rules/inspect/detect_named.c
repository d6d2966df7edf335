/* Detector of values behind a name that says what they are: `api_token = "m1rp3cugt03p"`,
 * `"secret": "…"`, `Authorization: Bearer …`. Looked for at the sign between the two, whatever the
 * language; what is behind it must look as if a machine had made it. */
#include "detector_internal.h"

#include <string.h>

enum {
    NAME_MAX = 64,
    BEFORE_MAX = 6, /* quotes and blanks between a name and its sign */
    BEHIND_MAX = 8, /* the same, and the rest of the sign, between it and the value */
    VALUE_MIN = 10,
    VALUE_MAX = 256,
    DIGITS_MIN = 2,
    QUOTED_MIN = 2800, /* thousandths of a bit a byte */
    BARE_MIN = 3300,
};

/* Each makes a name one of a secret, wherever it stands in it, in either case. */
static const struct slice words[] = {
    SLICE_INIT("secret"),        SLICE_INIT("token"),      SLICE_INIT("passw"),
    SLICE_INIT("passphrase"),    SLICE_INIT("credential"), SLICE_INIT("apikey"),
    SLICE_INIT("api_key"),       SLICE_INIT("api-key"),    SLICE_INIT("api.key"),
    SLICE_INIT("access_key"),    SLICE_INIT("access-key"), SLICE_INIT("accesskey"),
    SLICE_INIT("authorization"),
};
/* A name that ends in one of these is one as well, if something stands before it. */
static const struct slice ends[] = {SLICE_INIT("key"), SLICE_INIT("_pwd"), SLICE_INIT("_pat")};
/* What ends in "key" and is none. */
static const struct slice open_keys[] = {
    SLICE_INIT("publickey"),   SLICE_INIT("public_key"),  SLICE_INIT("public-key"),
    SLICE_INIT("primarykey"),  SLICE_INIT("primary_key"), SLICE_INIT("foreignkey"),
    SLICE_INIT("foreign_key"), SLICE_INIT("sortkey"),     SLICE_INIT("cachekey"),
    SLICE_INIT("cache_key"),   SLICE_INIT("cache-key"),
};
static const struct slice schemes[] = {SLICE_INIT("bearer "), SLICE_INIT("basic "),
                                       SLICE_INIT("token ")};

static struct slice text_at(const struct detect_scan *s, size_t from, size_t to)
{
    return (struct slice){s->text.p + from, to - from};
}

static bool begins_like(struct slice t, struct slice word)
{
    return t.n >= word.n && slice_ieq((struct slice){t.p, word.n}, word);
}

static bool holds_word(struct slice name)
{
    for (; name.n > 1; name.p++, name.n--) {
        char first = (char)(*name.p | 0x20), second = (char)(name.p[1] | 0x20); /* lower case */
        for (size_t k = 0; k < ARRAY_LEN(words); k++)
            if (first == words[k].p[0] && second == words[k].p[1] && begins_like(name, words[k]))
                return true;
    }
    return false;
}

static bool ends_like(struct slice name, struct slice word)
{
    return name.n >= word.n && begins_like((struct slice){name.p + name.n - word.n, word.n}, word);
}

static bool says_secret(struct slice name)
{
    if (holds_word(name))
        return true;
    if (memchr("ydt", name.p[name.n - 1] | 0x20, 3) == NULL) /* none of the ends ends so */
        return false;
    for (size_t k = 0; k < ARRAY_LEN(open_keys); k++)
        if (ends_like(name, open_keys[k]))
            return false;
    for (size_t k = 0; k < ARRAY_LEN(ends); k++)
        if (name.n > ends[k].n && ends_like(name, ends[k]))
            return true;
    return false;
}

static bool is_between(char c)
{
    return c == ' ' || c == '\t' || c == '"' || c == '\'' || c == '`' || c == '\\';
}

bool detect_named_between(char c)
{
    return is_between(c) || c == ':' || c == '=' || c == '>';
}

void detect_named_beginnings(void (*add)(void *arg, const char *begin, bool name), void *arg)
{
    for (size_t k = 0; k < ARRAY_LEN(words); k++)
        add(arg, words[k].p, true);
    for (size_t k = 0; k < ARRAY_LEN(ends); k++)
        add(arg, ends[k].p, true);
    for (size_t k = 0; k < ARRAY_LEN(schemes); k++)
        add(arg, schemes[k].p, false);
}

static bool is_value(char c)
{
    return detect_is(c, CLASS_DOTTED | CLASS_ENTROPY) || c == '~';
}

/* The name whose sign stands at i, without what is between them: [*begin, *end). */
static bool name_before(const struct detect_scan *s, size_t i, size_t *begin, size_t *end)
{
    size_t e = i;
    while (e > s->from && i - e < BEFORE_MAX &&
           (is_between(s->text.p[e - 1]) || s->text.p[e - 1] == ':'))
        e--;
    size_t b = e;
    while (b > s->from && e - b < NAME_MAX && detect_is(s->text.p[b - 1], CLASS_DOTTED))
        b--;
    *begin = b;
    *end = e;
    return b < e;
}

/* Where the value begins behind the sign at i; *quote: the sign of quotation it stands in, or 0. */
static size_t value_behind(const struct detect_scan *s, size_t i, char *quote)
{
    size_t k = i + 1;
    *quote = 0;
    while (k < s->text.n && k - i <= BEHIND_MAX &&
           (is_between(s->text.p[k]) || s->text.p[k] == '=' || s->text.p[k] == '>')) {
        char c = s->text.p[k++];
        *quote = c == '"' || c == '\'' || c == '`' ? c : *quote;
    }
    if (k >= s->text.n || memchr("bt", s->text.p[k] | 0x20, 2) == NULL) /* as a scheme begins */
        return k;
    for (size_t w = 0; w < ARRAY_LEN(schemes); w++)
        if (begins_like(text_at(s, k, s->text.n), schemes[w]))
            return k + schemes[w].n;
    return k;
}

/* A machine made it: letters beside its digits, and as many different ones as chance gives. */
static bool is_made(struct slice v, bool quoted)
{
    unsigned digits = 0, letters = 0;
    for (size_t i = 0; i < v.n; i++) {
        digits += detect_is(v.p[i], CLASS_DIGIT);
        letters += detect_is(v.p[i], CLASS_ALNUM);
    }
    letters -= digits;
    return letters > 0 && !memchr("/.-=", *v.p, 4) &&
           detect_entropy(v) >= (quoted ? QUOTED_MIN : BARE_MIN);
}

void detect_named_at(struct detect_scan *s, size_t i)
{
    size_t name, end;
    char quote;
    if (s->text.p[i] == ':' && i + 1 < s->text.n && s->text.p[i + 1] == '=')
        return; /* of ":=", at whose "=" it is looked for */
    size_t at = value_behind(s, i, &quote), stop = at, digits = 0;
    if (at < s->text.n && s->text.p[at] == '=')
        return; /* of a longer row of signs, also where that is not all there */
    for (; stop < s->text.n && stop - at <= VALUE_MAX && is_value(s->text.p[stop]); stop++)
        digits += detect_is(s->text.p[stop], CLASS_DIGIT);
    bool cut = detect_cut(s, stop);
    if (stop - at > VALUE_MAX || (!cut && (stop - at < VALUE_MIN || digits < DIGITS_MIN)) ||
        !name_before(s, i, &name, &end) || !says_secret(text_at(s, name, end)))
        return;
    if (cut) {
        detect_open(s, name);
        return;
    }
    if (stop < s->text.n && quote && s->text.p[stop] != quote && s->text.p[stop] != '\\')
        return;
    if (stop < s->text.n && !quote && strchr("([{:*$%@!<", s->text.p[stop]))
        return; /* a call, a format, the beginning of something else */
    while (stop > at && (s->text.p[stop - 1] == '.' || (!quote && s->text.p[stop - 1] == '=')))
        stop--;
    if (stop - at >= VALUE_MIN && is_made(text_at(s, at, stop), quote != 0))
        detect_found_behind(s, DETECT_NAMED, name, at, stop);
}

void detect_named_tail(struct detect_scan *s)
{
    size_t begin, end;
    if (name_before(s, s->text.n, &begin, &end))
        detect_open(s, begin);
}
