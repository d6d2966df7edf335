/* Reads a document by recursive descent and tells the visitor of operations and fields as it meets
 * them; no tree is built. */
#include "graphql.h"

#include <string.h>

enum token { T_END = 0, T_NAME, T_NUMBER, T_STRING, T_SPREAD, T_BAD };
/* any other token is its own byte, one of ! $ & ( ) : = @ [ ] { | } */

struct reader {
    const char *p, *end;
    int token;
    struct slice text; /* of T_NAME */
    const struct graphql_visitor *v;
    unsigned depth, n_operations;
    bool anonymous, stopped;
};

/* ---- tokens ---- */

static bool name_start(char c)
{
    return c == '_' || (ascii_is_alnum(c) && !(c >= '0' && c <= '9'));
}

static bool digit(char c)
{
    return c >= '0' && c <= '9';
}

static char peek(const struct reader *r, size_t at)
{
    return (size_t)(r->end - r->p) > at ? r->p[at] : 0;
}

/* U+2028 and U+2029 end a comment for readers of the first drafts. */
static bool line_separator(const struct reader *r)
{
    return peek(r, 0) == '\xe2' && peek(r, 1) == '\x80' && (unsigned char)peek(r, 2) >= 0xa8 &&
           (unsigned char)peek(r, 2) <= 0xa9;
}

static bool source_byte(char c)
{
    return (unsigned char)c >= 0x20 || c == '\t' || c == '\n' || c == '\r';
}

/* Past white space, commas and comments. False: a byte that no source text may have. */
static bool skip_ignored(struct reader *r)
{
    while (r->p < r->end) {
        char c = *r->p;
        if (c == '#') {
            while (r->p < r->end && *r->p != '\n' && *r->p != '\r') {
                if (!source_byte(*r->p) || line_separator(r))
                    return false;
                r->p++;
            }
        } else if (c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == ',') {
            r->p++;
        } else {
            return true;
        }
    }
    return true;
}

static int hex_value(char c)
{
    if (digit(c))
        return c - '0';
    c = ascii_lower(c);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* \uXXXX; no surrogates, which readers pair differently. */
static bool skip_unicode(struct reader *r)
{
    unsigned code = 0;
    for (size_t i = 0; i < 4; i++) {
        int v = hex_value(peek(r, i));
        if (v < 0)
            return false;
        code = code * 16 + (unsigned)v;
    }
    r->p += 4;
    return code < 0xd800 || code > 0xdfff;
}

static bool skip_escape(struct reader *r)
{
    char c = peek(r, 0);
    if (c == 0 || !strchr("\"\\/bfnrtu", c))
        return false;
    r->p++;
    return c != 'u' || skip_unicode(r);
}

/* Behind the first quote. */
static bool skip_string(struct reader *r)
{
    while (r->p < r->end) {
        char c = *r->p++;
        if (c == '"')
            return true;
        if (c == '\n' || c == '\r' || !source_byte(c))
            return false;
        if (c == '\\' && !skip_escape(r))
            return false;
    }
    return false;
}

/* Behind the three first quotes. */
static bool skip_block(struct reader *r)
{
    while (r->p < r->end) {
        if (peek(r, 0) == '"' && peek(r, 1) == '"' && peek(r, 2) == '"') {
            r->p += 3;
            return true;
        }
        if (peek(r, 0) == '\\' && peek(r, 1) == '"' && peek(r, 2) == '"' && peek(r, 3) == '"')
            r->p += 4;
        else if (!source_byte(*r->p++))
            return false;
    }
    return false;
}

static bool skip_digits(struct reader *r)
{
    if (!digit(peek(r, 0)))
        return false;
    while (digit(peek(r, 0)))
        r->p++;
    return true;
}

static bool skip_number(struct reader *r)
{
    if (peek(r, 0) == '-')
        r->p++;
    if (peek(r, 0) == '0')
        r->p++; /* and no digit behind it */
    else if (!skip_digits(r))
        return false;
    if (digit(peek(r, 0)))
        return false;
    if (peek(r, 0) == '.') {
        r->p++;
        if (!skip_digits(r))
            return false;
    }
    if (peek(r, 0) == 'e' || peek(r, 0) == 'E') {
        r->p++;
        if (peek(r, 0) == '+' || peek(r, 0) == '-')
            r->p++;
        if (!skip_digits(r))
            return false;
    }
    return !name_start(peek(r, 0)) && peek(r, 0) != '.';
}

static int read_string(struct reader *r)
{
    bool block = peek(r, 1) == '"' && peek(r, 2) == '"';
    r->p += block ? 3 : 1;
    return (block ? skip_block(r) : skip_string(r)) ? T_STRING : T_BAD;
}

static int read_token(struct reader *r)
{
    if (!skip_ignored(r))
        return T_BAD;
    if (r->p == r->end)
        return T_END;
    char c = *r->p;
    if (name_start(c)) {
        const char *from = r->p;
        while (name_start(peek(r, 0)) || digit(peek(r, 0)))
            r->p++;
        r->text = (struct slice){from, (size_t)(r->p - from)};
        return T_NAME;
    }
    if (c == '-' || digit(c))
        return skip_number(r) ? T_NUMBER : T_BAD;
    if (c == '"')
        return read_string(r);
    if (c == '.' && peek(r, 1) == '.' && peek(r, 2) == '.') {
        r->p += 3;
        return T_SPREAD;
    }
    r->p++;
    return c != 0 && strchr("!$&():=@[]{|}", c) ? c : T_BAD;
}

static void next(struct reader *r)
{
    r->token = r->token == T_BAD ? T_BAD : read_token(r);
}

/* ---- grammar: each true, or the text is no document ---- */

static bool take(struct reader *r, int token)
{
    if (r->token != token)
        return false;
    next(r);
    return true;
}

static bool at_word(const struct reader *r, const char *word)
{
    return r->token == T_NAME && slice_eq_str(r->text, word);
}

static bool deeper(struct reader *r)
{
    return ++r->depth <= GRAPHQL_DEPTH;
}

static bool value(struct reader *r);

/* "(" or "{" has been taken: name: value, up to `close`; at least one when asked. */
static bool named_values(struct reader *r, int close, bool some)
{
    if (some && r->token == close)
        return false;
    while (r->token != close)
        if (!take(r, T_NAME) || !take(r, ':') || !value(r))
            return false;
    next(r);
    return true;
}

static bool list_value(struct reader *r)
{
    while (r->token != ']')
        if (!value(r))
            return false;
    next(r);
    return true;
}

static bool value(struct reader *r)
{
    bool ok;
    if (!deeper(r))
        return false;
    if (take(r, '$'))
        ok = take(r, T_NAME);
    else if (take(r, '['))
        ok = list_value(r);
    else if (take(r, '{'))
        ok = named_values(r, '}', false);
    else
        ok = take(r, T_NAME) || take(r, T_NUMBER) || take(r, T_STRING);
    r->depth--;
    return ok;
}

static bool arguments(struct reader *r)
{
    return !take(r, '(') || named_values(r, ')', true);
}

static bool directives(struct reader *r)
{
    while (take(r, '@'))
        if (!take(r, T_NAME) || !arguments(r))
            return false;
    return true;
}

static bool type(struct reader *r)
{
    unsigned lists = 0;
    while (take(r, '['))
        if (++lists > GRAPHQL_DEPTH)
            return false;
    if (!take(r, T_NAME))
        return false;
    take(r, '!');
    for (; lists > 0; lists--) {
        if (!take(r, ']'))
            return false;
        take(r, '!');
    }
    return true;
}

static bool variables(struct reader *r)
{
    if (!take(r, '('))
        return true;
    do {
        if (!take(r, '$') || !take(r, T_NAME) || !take(r, ':') || !type(r) ||
            (take(r, '=') && !value(r)) || !directives(r))
            return false;
    } while (r->token != ')');
    next(r);
    return true;
}

static bool selections(struct reader *r, bool top);

static bool tell_field(struct reader *r, struct slice name)
{
    r->stopped = r->v->field && !r->v->field(r->v->arg, name);
    return !r->stopped;
}

/* "..." has been taken. */
static bool fragment(struct reader *r)
{
    if (r->token == T_NAME && !at_word(r, "on")) {
        next(r);
        return directives(r);
    }
    if (at_word(r, "on")) {
        next(r);
        if (!take(r, T_NAME))
            return false;
    }
    return directives(r) && selections(r, false);
}

static bool field(struct reader *r, bool top)
{
    struct slice name = r->text;
    if (!take(r, T_NAME))
        return false;
    if (take(r, ':')) {
        name = r->text;
        if (!take(r, T_NAME))
            return false;
    }
    if (top && !tell_field(r, name))
        return false;
    return arguments(r) && directives(r) && (r->token != '{' || selections(r, false));
}

static bool selections(struct reader *r, bool top)
{
    if (!deeper(r) || !take(r, '{'))
        return false;
    do {
        bool ok = take(r, T_SPREAD) ? (!top || tell_field(r, (struct slice){"", 0})) && fragment(r)
                                    : field(r, top);
        if (!ok)
            return false;
    } while (r->token != '}');
    next(r);
    r->depth--;
    return true;
}

static bool tell_operation(struct reader *r, enum graphql_type t, struct slice name)
{
    r->anonymous = r->anonymous || name.n == 0;
    if (++r->n_operations > GRAPHQL_OPERATIONS || (r->anonymous && r->n_operations > 1))
        return false;
    r->stopped = !r->v->operation(r->v->arg, t, name);
    return !r->stopped;
}

static bool operation(struct reader *r, enum graphql_type t)
{
    struct slice name = {"", 0};
    next(r);
    if (r->token == T_NAME) {
        name = r->text;
        next(r);
    }
    return tell_operation(r, t, name) && variables(r) && directives(r) && selections(r, true);
}

static bool definition(struct reader *r)
{
    static const char *const words[] = {"query", "mutation", "subscription"};
    if (r->token == '{')
        return tell_operation(r, GRAPHQL_QUERY, (struct slice){"", 0}) && selections(r, true);
    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        if (at_word(r, words[i]))
            return operation(r, (enum graphql_type)(GRAPHQL_QUERY + i));
    if (!at_word(r, "fragment"))
        return false;
    next(r);
    if (at_word(r, "on") || !take(r, T_NAME) || !at_word(r, "on"))
        return false;
    next(r);
    return take(r, T_NAME) && directives(r) && selections(r, false);
}

int graphql_read(struct slice text, const struct graphql_visitor *v)
{
    struct reader r = {.p = text.p, .end = text.p + text.n, .v = v, .token = T_END};
    if (text.n > GRAPHQL_MAX)
        return -1;
    next(&r);
    while (r.token != T_END)
        if (!definition(&r))
            return r.stopped ? 1 : -1;
    return r.n_operations > 0 ? 0 : -1;
}
