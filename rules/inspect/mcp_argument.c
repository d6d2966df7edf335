/* Patterns of names, URIs and texts, and what a rule asks of the arguments of a call. A value that
 * two readers of JSON could take for different ones satisfies no condition. */
#include "mcp.h"

#include <math.h>
#include <string.h>

#include "body_json.h"

/* ---- patterns ---- */

/* Which prefixes of the pattern fit what was read so far: a bit each. */
enum { WORD = 64, WORDS = MCP_PATTERN_MAX / WORD + 1 };
struct states {
    size_t words; /* of them, as many as the pattern needs */
    uint64_t at[WORDS];
};

static size_t star_end(const char *pattern, size_t j, bool in_path)
{
    return j + (in_path && pattern[j + 1] == '*' ? 2 : 1);
}

/* So much of the pattern; a star behind it may stand for nothing. */
static void mcp_reach(const char *pattern, size_t j, bool in_path, struct states *s)
{
    for (;; j = star_end(pattern, j, in_path)) {
        s->at[j / WORD] |= UINT64_C(1) << j % WORD;
        if (pattern[j] != '*')
            return;
    }
}

static bool mcp_is_at(const struct states *s, size_t j)
{
    return s->at[j / WORD] >> j % WORD & 1;
}

/* Where a URL's host stands in a pattern, three bytes behind its scheme; none where there is no
 * "://", and where "**" alone is behind it, which is any URL of that scheme. */
struct host_part {
    size_t from, end;
};

static struct host_part host_of(const char *pattern)
{
    const char *at = strstr(pattern, "://");
    size_t from = at ? (size_t)(at - pattern) + 3 : 0;
    size_t n = at && strcmp(pattern + from, "**") != 0 ? strcspn(pattern + from, "/") : 0;
    return (struct host_part){from, from + n};
}

/* What ends a host, or begins another one: else "https://a.com#.example.com" were one of
 * "https://" and a star before ".example.com". */
static bool ends_host(char c)
{
    return (unsigned char)c <= ' ' || strchr("/\\?#@", c) != NULL;
}

static bool in_scheme(char c)
{
    return ascii_is_alnum(c) || (c && strchr("+.-", c));
}

/* What a star at j may stand for. One in a scheme stands for no more than a scheme: else
 * "https:a.com://b.example.com/" were one of "*://" and a star before ".example.com". */
static bool star_takes(const char *pattern, size_t j, const struct host_part *host, bool in_path,
                       char c)
{
    if (j + 3 < host->from)
        return in_scheme(c);
    if (j >= host->from && j < host->end)
        return !ends_host(c);
    return !in_path || star_end(pattern, j, in_path) == j + 2 || c != '/';
}

/* The star at the pattern's end, if it takes whatever comes; else one place beyond the end. */
static size_t open_end(const char *pattern, size_t n, const struct host_part *host, bool in_path)
{
    size_t j = n >= 2 && in_path ? n - 2 : n - 1;
    bool star = n > 0 && pattern[j] == '*' && star_end(pattern, j, in_path) == n;
    return star && star_takes(pattern, j, host, in_path, '/') ? j : n + 1;
}

/* One letter more. False: nothing fits any more. */
static bool mcp_step(const char *pattern, const struct host_part *host, bool in_path, char c,
                     struct states *s)
{
    struct states next = {.words = s->words};
    uint64_t some = 0;
    for (size_t w = 0; w < s->words; w++)
        for (uint64_t bits = s->at[w]; bits; bits &= bits - 1) {
            size_t j = w * WORD + (size_t)__builtin_ctzll(bits);
            if (pattern[j] == '*' && star_takes(pattern, j, host, in_path, c))
                mcp_reach(pattern, j, in_path, &next);
            else if (pattern[j] != '*' && pattern[j] && pattern[j] == c)
                mcp_reach(pattern, j + 1, in_path, &next);
        }
    for (size_t w = 0; w < s->words; w++)
        some |= next.at[w];
    *s = next;
    return some != 0;
}

/* Of each letter so much is asked as there are prefixes that fit: one or two, mostly. */
bool mcp_pattern_fits(const char *pattern, struct slice text, bool in_path)
{
    size_t n = strlen(pattern);
    struct host_part host = in_path ? host_of(pattern) : (struct host_part){0, 0};
    struct states now = {.words = n / WORD + 1};
    if (n > MCP_PATTERN_MAX)
        return false;
    if (strchr(pattern, '*') == NULL)
        return slice_eq_str(text, pattern);
    size_t open = open_end(pattern, n, &host, in_path);
    mcp_reach(pattern, 0, in_path, &now);
    for (size_t i = 0; i < text.n; i++) {
        if (open < n && mcp_is_at(&now, open))
            return true;
        if (!mcp_step(pattern, &host, in_path, text.p[i], &now))
            return false;
    }
    return mcp_is_at(&now, n);
}

bool mcp_name_allowed(const struct word_list *patterns, struct slice name)
{
    for (size_t i = 0; i < patterns->n; i++)
        if (name.n <= MCP_PATTERN_MAX && mcp_pattern_fits(patterns->list[i], name, false))
            return true;
    return false;
}

/* An escape that could be a dot or a slash. */
static bool mcp_has_escape(struct slice text)
{
    for (size_t i = 0; i + 2 < text.n; i++) {
        char high = text.p[i + 1], low = ascii_lower(text.p[i + 2]);
        if (text.p[i] == '%' && ((high == '2' && (low == 'e' || low == 'f' || low == '5')) ||
                                 (high == '5' && low == 'c')))
            return true;
    }
    return false;
}

/* "." or ".." between what ends a segment for some reader: slashes of either kind, and what begins
 * a query, a fragment or a parameter. Tabs and line ends are taken out by readers of URLs, and
 * blanks at both ends (WHATWG URL 4.4; Python's urlsplit), so they do not count; nor does a blank
 * behind dots, which some file systems take out. One before them does: " ." is a name. */
static bool mcp_has_dot_segment(struct slice text)
{
    size_t dots = 0, others = 0;
    while (text.n > 0 && (unsigned char)text.p[0] <= ' ')
        text = (struct slice){text.p + 1, text.n - 1};
    for (size_t i = 0; i <= text.n; i++) {
        char c = i < text.n ? text.p[i] : '/';
        if ((unsigned char)c < ' ' || (c == ' ' && dots > 0))
            continue;
        if (c && strchr("/\\?#;", c)) {
            if (others == 0 && (dots == 1 || dots == 2))
                return true;
            dots = others = 0;
        } else if (c == '.') {
            dots++;
        } else {
            others++;
        }
    }
    return mcp_has_escape(text);
}

bool mcp_text_allowed(const struct word_list *patterns, struct slice text)
{
    if (text.n > MCP_VALUE_MAX)
        return false;
    bool doubtful = mcp_has_dot_segment(text);
    for (size_t i = 0; i < patterns->n; i++) {
        const char *p = patterns->list[i];
        if (strchr(p, '*') ? !doubtful && mcp_pattern_fits(p, text, true) : slice_eq_str(text, p))
            return true;
    }
    return false;
}

const struct mcp_tool *mcp_tool_find(const struct mcp_rules *r, struct slice name)
{
    for (size_t i = 0; i < r->n_tools; i++)
        if (name.n <= MCP_PATTERN_MAX && mcp_pattern_fits(r->tools[i].name, name, false))
            return &r->tools[i];
    return NULL;
}

/* ---- pointers (RFC 6901) ---- */

enum found { FOUND_NOTHING = 0, FOUND, FOUND_DOUBTFUL };

/* The next reference token, unescaped, into name. */
static const char *mcp_token(const char *p, char name[MCP_POINTER_MAX + 1])
{
    size_t n = 0;
    for (p++; *p && *p != '/'; p++) {
        char c = *p;
        if (c == '~' && (p[1] == '0' || p[1] == '1'))
            c = *++p == '0' ? '~' : '/';
        name[n++] = c;
    }
    name[n] = 0;
    return p;
}

static const json_t *mcp_element(const json_t *array, const char *name)
{
    size_t n = strspn(name, "0123456789"), index = 0;
    if (n == 0 || n > 6 || name[n] != 0 || (name[0] == '0' && n > 1))
        return NULL;
    for (size_t i = 0; i < n; i++)
        index = index * 10 + (size_t)(name[i] - '0');
    return json_array_get(array, index);
}

/* Doubtful: a member's name differs from the one that is looked for by its case alone, or something
 * stands where a mapping should. */
static enum found mcp_find(const char *pointer, const json_t *from, const json_t **ret)
{
    char name[MCP_POINTER_MAX + 1];
    const json_t *at = from;
    while (*pointer) {
        pointer = mcp_token(pointer, name);
        if (at && !json_is_object(at) && !json_is_array(at))
            return FOUND_DOUBTFUL;
        if (json_is_object(at) && body_json_twisted(at, name))
            return FOUND_DOUBTFUL;
        at = json_is_array(at) ? mcp_element(at, name) : json_object_get(at, name);
        if (at == NULL)
            return FOUND_NOTHING;
    }
    *ret = at;
    return FOUND;
}

/* ---- conditions ---- */

static bool mcp_number(const json_t *v, double *ret)
{
    const json_int_t most = (json_int_t)1 << 53; /* beyond it readers differ */
    if (json_is_integer(v)) {
        json_int_t i = json_integer_value(v);
        *ret = (double)i;
        return i >= -most && i <= most;
    }
    *ret = json_is_real(v) ? json_real_value(v) : 0;
    return json_is_real(v) && isfinite(*ret) && fabs(*ret) <= (double)most;
}

static bool mcp_same(const json_t *v, const struct mcp_scalar *s)
{
    double number;
    switch (s->kind) {
    case MCP_TEXT:
        return json_is_string(v) && strcmp(json_string_value(v), s->text) == 0;
    case MCP_NUMBER:
        return mcp_number(v, &number) && number >= s->number && number <= s->number;
    case MCP_TRUE:
        return json_is_true(v);
    case MCP_FALSE:
        return json_is_false(v);
    case MCP_NULL:
        break;
    }
    return json_is_null(v);
}

static bool mcp_holds(const struct mcp_condition *c, const json_t *v)
{
    double number;
    switch (c->test) {
    case MCP_IS_ONE_OF:
        for (size_t i = 0; i < c->n_values; i++)
            if (mcp_same(v, &c->values[i]))
                return true;
        return false;
    case MCP_MATCHES:
        return json_is_string(v) &&
               mcp_text_allowed(&c->patterns,
                                (struct slice){json_string_value(v), json_string_length(v)});
    case MCP_IN_RANGE:
        return mcp_number(v, &number) && number >= c->least && number <= c->most;
    case MCP_IS_ABSENT:
        break;
    }
    return false; /* it is there */
}

const struct mcp_condition *mcp_unmet(const struct mcp_tool *t, const json_t *arguments)
{
    for (size_t i = 0; i < t->n_conditions; i++) {
        const struct mcp_condition *c = &t->conditions[i];
        const json_t *v = NULL;
        enum found f = mcp_find(c->pointer, arguments, &v);
        bool ok = f == FOUND           ? mcp_holds(c, v)
                  : f == FOUND_NOTHING ? c->test == MCP_IS_ABSENT || c->may_be_absent
                                       : false;
        if (!ok)
            return c;
    }
    return NULL;
}
