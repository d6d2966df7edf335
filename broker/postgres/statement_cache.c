/* Keeps what was read of the last statements. The same text means the same, and so does one in
 * which only numbers differ, where it is of a kind whose judgement and fingerprint no number can
 * change: then all numbers are written as 0, and that is what is remembered. */
#include "statement_cache.h"

#include <stdlib.h>
#include <string.h>

enum { TEXT_MAX = 2048, SLOTS = 256, DIGITS_MAX = 9 /* a number of 32 bits, whichever it is */ };

struct judged {
    struct statement said;
    size_t n;
    char text[];
};

struct statement_cache {
    struct judged *slots[SLOTS]; /* by a hash of the text: whoever comes later has the place */
};

/* ---- a text without its numbers ---- */

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Of a name, of a parameter, or of a number of another form. */
static bool is_joined(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$' || c == '.' ||
           is_digit(c) || (unsigned char)c >= 0x80;
}

static bool is_blank(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* Before the bracket at `at` stands a type whose precision is no constant. */
static bool is_precision(struct slice text, size_t at)
{
    static const char *const types[] = {"float", "current_time", "current_timestamp", "localtime",
                                        "localtimestamp"};
    while (at > 0 && is_blank(text.p[at - 1]))
        at--;
    for (size_t i = 0; i < ARRAY_LEN(types); i++) {
        size_t n = strlen(types[i]);
        if (n <= at && slice_ieq_str((struct slice){text.p + at - n, n}, types[i]))
            return true;
    }
    return false;
}

/* Kinds in whose trees a number is a constant. */
static bool is_of_kind(struct slice text)
{
    static const char *const kinds[] = {"select", "insert", "update", "delete", "with"};
    size_t at = 0, n = 0;
    bool is = false;
    while (at < text.n && is_blank(text.p[at]))
        at++;
    while (at + n < text.n && is_joined(text.p[at + n]))
        n++;
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
        is = is || slice_ieq_str((struct slice){text.p + at, n}, kinds[i]);
    return is;
}

/* All others are copied as they are. */
static const bool looked_at[256] = {
    ['0'] = true,  ['1'] = true, ['2'] = true, ['3'] = true,  ['4'] = true,
    ['5'] = true,  ['6'] = true, ['7'] = true, ['8'] = true,  ['9'] = true,
    ['('] = true,  ['$'] = true, [';'] = true, ['['] = true,  ['-'] = true,
    ['\\'] = true, ['/'] = true, ['"'] = true, ['\''] = true,
};

/* Bounds of arrays, and what a quote or a comment could be read otherwise by. */
static bool is_unsure(struct slice text, size_t at)
{
    char c = text.p[at], next = at + 1 < text.n ? text.p[at + 1] : 0;
    return c == '[' || c == '\\' || (c == '-' && next == '-') || (c == '/' && next == '*');
}

/* How long the number at `at` is; 0: what stands there is none, or not only that. */
static size_t number_at(struct slice text, size_t at)
{
    size_t n = 0;
    if (at > 0 && is_joined(text.p[at - 1]))
        return 0;
    while (at + n < text.n && is_digit(text.p[at + n]))
        n++;
    return n <= DIGITS_MAX && (at + n == text.n || !is_joined(text.p[at + n])) ? n : 0;
}

/* A dollar that no number follows may begin a quote; a semicolon, another statement. */
static bool is_plain(struct slice text, size_t at)
{
    if (text.p[at] == '(')
        return !is_precision(text, at);
    if (text.p[at] == '$')
        return at + 1 < text.n && is_digit(text.p[at + 1]);
    if (text.p[at] != ';')
        return true;
    while (++at < text.n && is_blank(text.p[at]))
        ;
    return at == text.n;
}

/* Its length; 0: it is remembered as it is. to: as long as text. */
static size_t without_numbers(struct slice text, char *to)
{
    size_t n = 0;
    char quote = 0;
    if (!is_of_kind(text))
        return 0;
    for (size_t i = 0; i < text.n; i++) {
        if (!looked_at[(unsigned char)text.p[i]]) {
            to[n++] = text.p[i];
            continue;
        }
        size_t digits = quote ? 0 : number_at(text, i);
        if (is_unsure(text, i) || (!quote && !is_plain(text, i)))
            return 0;
        to[n++] = digits ? '0' : text.p[i];
        i += digits ? digits - 1 : 0;
        if (quote ? text.p[i] == quote : text.p[i] == '\'' || text.p[i] == '"')
            quote = quote ? 0 : text.p[i];
    }
    return quote ? 0 : n;
}

/* ---- what is kept ---- */

static struct judged **slot_of(struct statement_cache *of, struct slice text)
{
    uint64_t h = UINT64_C(14695981039346656037);
    for (size_t i = 0; i < text.n; i++)
        h = (h ^ (unsigned char)text.p[i]) * UINT64_C(1099511628211);
    return &of->slots[(h >> 32) % SLOTS];
}

struct statement_cache *statement_cache_new(void)
{
    return calloc(1, sizeof(struct statement_cache));
}

void statement_cache_free(struct statement_cache *of)
{
    for (size_t i = 0; of && i < SLOTS; i++)
        free(of->slots[i]);
    free(of);
}

bool statement_cache_read(struct statement_cache *of, struct slice text, struct statement *ret)
{
    char plain[TEXT_MAX];
    if (text.n > TEXT_MAX) {
        statement_read(text, ret);
        return false;
    }
    size_t n = without_numbers(text, plain);
    struct slice key = n ? (struct slice){plain, n} : text;
    struct judged **at = slot_of(of, key), *k = *at;
    if (k && slice_eq((struct slice){k->text, k->n}, key)) {
        *ret = k->said;
        return true;
    }
    statement_read(text, ret);
    k = ret->fingerprint[0] ? malloc(sizeof *k + key.n) : NULL;
    if (k == NULL)
        return false;
    k->said = *ret;
    k->n = key.n;
    memcpy(k->text, key.p, key.n);
    free(*at);
    *at = k;
    return false;
}
