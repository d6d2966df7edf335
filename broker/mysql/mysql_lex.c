/* Cuts a statement into words. */
#include "mysql_lex.h"

#include <string.h>

bool mysql_is_word(const struct mysql_token *t, const char *word)
{
    return t->kind == MYSQL_WORD && slice_ieq_str(t->text, word);
}

bool mysql_is_sign(const struct mysql_token *t, char c)
{
    return t->kind == MYSQL_SIGN && t->text.n == 1 && t->text.p[0] == c;
}

bool mysql_is_name(const struct mysql_token *t)
{
    return t->kind == MYSQL_WORD || t->kind == MYSQL_QUOTED;
}

static void unreadable(struct mysql_token *ret, const char *why)
{
    *ret = (struct mysql_token){MYSQL_UNREADABLE, SLICE(""), why};
}

static bool is_name_byte(char c)
{
    return ascii_is_alnum(c) || c == '_' || c == '$' || (unsigned char)c >= 0x80;
}

static void skip(struct slice *s, size_t n)
{
    s->p += n;
    s->n -= n;
}

static char at(struct slice s, size_t i)
{
    return i < s.n ? s.p[i] : 0;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_blank(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* MariaDB's dumps begin with a word to its own client, in a comment for servers of a version that
 * there will not be: to all of them it is a comment. */
static bool of_no_version(struct slice s)
{
    return slice_starts(s, SLICE("/*M!999999")) && !is_digit(at(s, 10));
}

/* A comment that one server runs and another does not. */
static bool versioned(struct slice *s, struct mysql_token *ret)
{
    size_t from = at(*s, 2) == 'M' ? 4 : 3, digits = 0;
    struct slice in = {s->p + from, s->n - from};
    ssize_t end = slice_find_slice(in, SLICE("*/"));
    if (end < 0) {
        unreadable(ret, "a comment without an end");
        return true;
    }
    in.n = (size_t)end;
    bool nobodys = of_no_version(*s);
    skip(s, from + (size_t)end + 2);
    while (digits < 6 && is_digit(at(in, digits)))
        digits++;
    bool other = (digits > 0 && digits < 5) ||
                 (digits > 0 && !nobodys && !is_blank(at(in, digits))) ||
                 slice_find_slice(in, SLICE("/*")) >= 0 || slice_find_slice(in, SLICE("--")) >= 0 ||
                 slice_find(in, '#') >= 0;
    if (other) {
        unreadable(ret, "a comment that servers read in different ways");
        return true;
    }
    if (nobodys)
        return false;
    skip(&in, digits);
    *ret = (struct mysql_token){MYSQL_VERSIONED, in, NULL};
    return true;
}

static bool has_setting(struct slice hint)
{
    for (size_t i = 0; i + 7 <= hint.n; i++)
        if (slice_istarts((struct slice){hint.p + i, hint.n - i}, SLICE("set_var")))
            return true;
    return false;
}

static bool is_comment(struct slice s)
{
    char third = at(s, 2);
    if (at(s, 0) == '#' || (at(s, 0) == '/' && at(s, 1) == '*'))
        return true;
    return at(s, 0) == '-' && at(s, 1) == '-' && (s.n == 2 || is_blank(third));
}

/* Blanks and comments. True: ret says something. */
static bool pass(struct slice *s, struct mysql_token *ret)
{
    while (s->n > 0) {
        if (is_blank(s->p[0])) {
            skip(s, 1);
        } else if (!is_comment(*s)) {
            return false;
        } else if (s->p[0] == '/') {
            if (at(*s, 2) == '!' || (at(*s, 2) == 'M' && at(*s, 3) == '!')) {
                if (versioned(s, ret))
                    return true;
                continue;
            }
            ssize_t end = slice_find_slice((struct slice){s->p + 2, s->n - 2}, SLICE("*/"));
            if (end < 0 || (at(*s, 2) == '+' && has_setting((struct slice){s->p, (size_t)end}))) {
                unreadable(ret,
                           end < 0 ? "a comment without an end" : "a hint that sets a setting");
                return true;
            }
            skip(s, (size_t)end + 4);
        } else {
            ssize_t end = slice_find(*s, '\n');
            skip(s, end < 0 ? s->n : (size_t)end + 1);
        }
    }
    return false;
}

/* Up to the same quote again; doubled, or behind a backslash, it is within. */
static bool quoted(struct slice *s, struct slice *ret)
{
    char q = s->p[0];
    for (size_t i = 1; i < s->n; i++) {
        if (s->p[i] == '\\' && q != '`') {
            i++;
        } else if (s->p[i] == q && at(*s, i + 1) == q) {
            i++;
        } else if (s->p[i] == q) {
            *ret = (struct slice){s->p + 1, i - 1};
            skip(s, i + 1);
            return true;
        }
    }
    return false;
}

static void lex_quoted(struct slice *s, struct mysql_token *ret)
{
    ret->kind = s->p[0] == '`' ? MYSQL_QUOTED : MYSQL_STRING;
    if (!quoted(s, &ret->text))
        unreadable(ret, "a quote without an end");
}

static size_t digits_end(struct slice s, size_t n)
{
    while (is_digit(at(s, n)))
        n++;
    return n;
}

/* Where a number ends as servers have it, 0: it is none, but a word. With a point or an exponent it
 * ends behind its digits, whatever follows: in "1.5from" and in "1e1from" there is a FROM. */
static size_t number_end(struct slice s, const char **why)
{
    size_t n = digits_end(s, 0);
    bool point = at(s, n) == '.';
    if (point)
        n = digits_end(s, n + 1);
    if (ascii_lower(at(s, n)) == 'e') {
        size_t from = n + 1 + (at(s, n + 1) == '+' || at(s, n + 1) == '-');
        if (is_digit(at(s, from)))
            return digits_end(s, from);
        if (point)
            *why = "an exponent without digits, over which servers pass";
    }
    return point || n == s.n || !is_name_byte(s.p[n]) ? n : 0;
}

static bool lex_number(struct slice *s, struct mysql_token *ret)
{
    const char *why = NULL;
    size_t n = number_end(*s, &why);
    *ret = (struct mysql_token){MYSQL_NUMBER, {s->p, n}, NULL};
    skip(s, n);
    if (why)
        unreadable(ret, why);
    return n > 0;
}

/* The byte is a blank in latin1, and a part of a letter elsewhere. */
static void check_blank(struct slice text, struct mysql_token *ret)
{
    if (slice_find(text, '\xa0') >= 0)
        unreadable(ret, "a letter that has a blank of latin1's in it, and no quotes around it");
}

static void lex_word(struct slice *s, struct mysql_token *ret)
{
    size_t n = 0;
    while (n < s->n && is_name_byte(s->p[n]))
        n++;
    if (s->p[0] == '$') {
        unreadable(ret, "a dollar before a word");
        return;
    }
    *ret = (struct mysql_token){MYSQL_WORD, {s->p, n}, NULL};
    skip(s, n);
    check_blank(ret->text, ret);
}

static void lex_variable(struct slice *s, struct mysql_token *ret)
{
    size_t n = 0;
    skip(s, 1);
    if (at(*s, 0) == '@') {
        skip(s, 1);
        *ret = (struct mysql_token){MYSQL_SYSTEM, SLICE("@@"), NULL};
        return;
    }
    ret->kind = MYSQL_VARIABLE;
    if (s->n > 0 && strchr("'\"`", s->p[0]) && s->p[0]) {
        struct slice name;
        if (!quoted(s, &name))
            unreadable(ret, "a quote without an end");
        return;
    }
    while (n < s->n && (is_name_byte(s->p[n]) || s->p[n] == '.'))
        n++;
    ret->text = (struct slice){s->p, n};
    skip(s, n);
    check_blank(ret->text, ret);
    if (n == 0)
        unreadable(ret, "a variable without a name");
}

static void lex_sign(struct slice *s, struct mysql_token *ret)
{
    size_t n = s->p[0] == ':' && at(*s, 1) == '=' ? 2 : 1;
    *ret = (struct mysql_token){MYSQL_SIGN, {s->p, n}, NULL};
    skip(s, n);
}

static void lex_other(struct slice *s, struct mysql_token *ret)
{
    char c = s->p[0];
    /* "--" before a control character is a comment to some */
    bool minus = slice_starts(*s, SLICE("--")),
         plain = minus && at(*s, 2) > ' ' && at(*s, 2) < 0x7f;
    if (c == '\'' || c == '"' || c == '`')
        lex_quoted(s, ret);
    else if (is_name_byte(c))
        lex_word(s, ret);
    else if (c == '@')
        lex_variable(s, ret);
    else if (c < ' ' || c == 0x7f || strchr("{}\\", c) || (minus && !plain))
        unreadable(ret, "a sign that servers read in different ways");
    else
        lex_sign(s, ret);
}

void mysql_lex(struct mysql_lexer *l, struct mysql_token *ret)
{
    struct slice *s = &l->rest;
    size_t before = s->n;
    *ret = (struct mysql_token){MYSQL_END, SLICE(""), NULL};
    if (pass(s, ret) || s->n == 0)
        return;
    bool name = l->name && s->n == before, dot = l->dot && s->n == before;
    bool begins = is_digit(s->p[0]) ? !dot : s->p[0] == '.' && !name && is_digit(at(*s, 1));
    if (!begins || !lex_number(s, ret))
        lex_other(s, ret);
    l->name = ret->kind == MYSQL_WORD;
    l->dot = name && mysql_is_sign(ret, '.');
}
