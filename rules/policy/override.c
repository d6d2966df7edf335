/* Looks for names that override the method in parameters, and in forms, multipart bodies and JSON
 * byte by byte as they pass. */
#include "override.h"

#include <string.h>

static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = ascii_lower(c);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

char parameter_byte(struct slice name, size_t *i)
{
    char c = name.p[*i];
    int high = c == '%' && name.n - *i > 2 ? hex_value(name.p[*i + 1]) : -1;
    int low = high >= 0 ? hex_value(name.p[*i + 2]) : -1;
    *i += low >= 0 ? 3 : 1;
    return ascii_lower(low >= 0 ? (char)(high * 16 + low) : c);
}

/* The value of "%uXYZW" at the beginning, as ASP.NET reads it, or -1. */
static int wide_escape(struct slice s)
{
    int v = 0;
    if (s.n < 6 || s.p[0] != '%' || ascii_lower(s.p[1]) != 'u')
        return -1;
    for (size_t i = 2; i < 6; i++) {
        int h = hex_value(s.p[i]);
        if (h < 0)
            return -1;
        v = v * 16 + h;
    }
    return v < 0x80 ? v : -1;
}

/* The next byte, and what readers of names take for an underscore made one. */
static char name_byte(struct slice name, size_t *i)
{
    int wide = wide_escape((struct slice){name.p + *i, name.n - *i});
    *i += wide >= 0 ? 6 : 0;
    char c = wide >= 0 ? ascii_lower((char)wide) : parameter_byte(name, i);
    return c == '-' || c == '.' || c == ' ' || c == '+' ? '_' : c;
}

/* The name, or one with an index behind it, a bracket that closes nothing, or a NUL, at which PHP
 * stops reading. */
static bool is_known(struct slice name, const char *known)
{
    size_t k = 0, n = strlen(known);
    for (size_t i = 0; i < name.n; k++) {
        char c = name_byte(name, &i);
        if (k == 0 && c == '[')
            c = '_';
        if (k == n)
            return c == '[' || c == ']' || c == 0;
        if (c != known[k])
            return false;
    }
    return k == n;
}

static bool is_override(struct slice name)
{
    static const char *const known[] = {
        "_method",           "_httpmethod",          "_http_method",
        "x_http_method",     "$httpmethod",          "x_http_method_override",
        "x_method_override", "http_method_override",
    };
    for (size_t i = 0; i < ARRAY_LEN(known); i++)
        if (is_known(name, known[i]))
            return true;
    return false;
}

/* Takes off what readers leave out at the beginning: a blank (PHP), a bracket (Rack, Express). */
static bool skip_lead(struct slice *name)
{
    size_t i = 0;
    char c = name->n ? name_byte(*name, &i) : 'x';
    if ((c != '_' || name->p[0] == '_') && c != '[' && c != ']')
        return false;
    *name = (struct slice){name->p + i, name->n - i};
    return true;
}

bool override_parameter(struct slice name)
{
    while (!is_override(name))
        if (!skip_lead(&name))
            return false;
    return true;
}

/* ---- what kind of body ---- */

/* Where it is in the text, whatever the case of letters; -1: nowhere. */
static ssize_t find_word(struct slice text, struct slice word)
{
    for (size_t i = 0; i + word.n <= text.n; i++)
        if (slice_istarts((struct slice){text.p + i, text.n - i}, word))
            return (ssize_t)i;
    return -1;
}

/* PHP and Rack end the type at a comma or a blank as well. */
static struct slice type_of(struct slice content_type)
{
    struct slice t = slice_trim(content_type);
    size_t n = 0;
    while (n < t.n && t.p[n] != ';' && t.p[n] != ',' && t.p[n] != ' ' && t.p[n] != '\t')
        n++;
    return (struct slice){t.p, n};
}

/* The value of the first parameter of that name, and what is behind it. -1: it cannot be read as
 * every reader reads it, 0: there is none. */
static int next_parameter(struct slice *rest, struct slice name, struct slice *ret)
{
    ssize_t at = find_word(*rest, name);
    if (at < 0)
        return 0;
    struct slice v = {rest->p + at + name.n, rest->n - (size_t)at - name.n};
    if (v.n == 0 || v.p[0] != '=')
        return -1; /* "name =", "name*=", "name*0=" */
    v = (struct slice){v.p + 1, v.n - 1};
    bool quoted = v.n && v.p[0] == '"';
    if (quoted)
        v = (struct slice){v.p + 1, v.n - 1};
    ssize_t stop = slice_find(v, quoted ? '"' : ';');
    if (quoted && stop < 0)
        return -1;
    size_t n = stop < 0 ? v.n : (size_t)stop;
    *ret = quoted ? (struct slice){v.p, n} : slice_trim((struct slice){v.p, n});
    *rest = (struct slice){v.p + n, v.n - n};
    for (size_t i = 0; i < ret->n; i++)
        if (ret->p[i] == '\\' || ret->p[i] == ',' || ret->p[i] == '"' ||
            (!quoted && (ret->p[i] == ' ' || ret->p[i] == '\t')))
            return -1;
    return 1;
}

/* The parameter "boundary" of the type, once, with "--" before it. */
static bool take_boundary(struct override_scan *s, struct slice parameters)
{
    struct slice value, other;
    if (next_parameter(&parameters, SLICE("boundary"), &value) <= 0 || value.n == 0 ||
        value.n > OVERRIDE_BOUNDARY_MAX ||
        next_parameter(&parameters, SLICE("boundary"), &other) != 0)
        return false;
    memcpy(s->boundary, "--", 2);
    memcpy(s->boundary + 2, value.p, value.n);
    s->boundary_n = value.n + 2;
    return true;
}

/* In these an ASCII byte is that character: names of other ones (UTF-16, UTF-7, EBCDIC) cannot be
 * looked for. */
static bool charset_is_plain(struct slice parameters)
{
    static const char *const known[] = {"utf-8",     "utf8",   "us-ascii",    "ascii",
                                        "iso-8859-", "latin1", "windows-125", "euc-",
                                        "gb",        "big5",   "koi8-",       "shift_jis"};
    struct slice v;
    int r;
    while ((r = next_parameter(&parameters, SLICE("charset"), &v)) > 0) {
        bool plain = false;
        for (size_t i = 0; i < ARRAY_LEN(known); i++)
            plain = plain || slice_istarts(v, slice_str(known[i]));
        if (!plain)
            return false;
    }
    return r == 0;
}

static enum override_form form_of(struct slice content_type)
{
    static const char *const parts[] = {"multipart/form-data", "multipart/mixed",
                                        "multipart/related"}; /* the latter two by Rack */
    struct slice type = type_of(content_type);
    if (slice_ieq_str(type, "application/x-www-form-urlencoded"))
        return OVERRIDE_URLENCODED;
    for (size_t i = 0; i < ARRAY_LEN(parts); i++)
        if (slice_ieq_str(type, parts[i]))
            return OVERRIDE_MULTIPART;
    /* Laravel looks for these anywhere in the value */
    if (find_word(content_type, SLICE("/json")) >= 0 ||
        find_word(content_type, SLICE("+json")) >= 0)
        return OVERRIDE_JSON;
    return OVERRIDE_NONE;
}

bool override_begin(struct override_scan *s, struct slice content_type)
{
    memset(s, 0, sizeof *s);
    s->form = form_of(content_type);
    if (s->form == OVERRIDE_NONE)
        return false;
    /* what cannot be read is not let through */
    s->found = !charset_is_plain(content_type) ||
               (s->form == OVERRIDE_MULTIPART && !take_boundary(s, content_type));
    return true;
}

/* ---- bodies ---- */

static void keep(struct override_scan *s, char c, size_t max)
{
    if (s->n < max)
        s->text[s->n++] = c;
}

/* Of a name that does not fit, what is left out may be all that is known. */
static bool names_override(const struct override_scan *s)
{
    struct slice name = {s->text, s->n};
    if (override_parameter(name))
        return true;
    while (skip_lead(&name))
        continue;
    return s->n == OVERRIDE_NAME_MAX && name.n < OVERRIDE_KNOWN_MAX;
}

static void urlencoded(struct override_scan *s, char c)
{
    bool ends = c == '&' || c == ';' || c == '=';
    if (!ends) {
        if (!s->in_value)
            keep(s, c, OVERRIDE_NAME_MAX);
        return;
    }
    if (!s->in_value)
        s->found = s->found || names_override(s);
    s->in_value = c == '=';
    s->n = 0;
}

/* A character of a JSON string, its escapes decoded; what is no ASCII stands for itself as 0x80. */
static void json_string_byte(struct override_scan *s, char c)
{
    static const char escapes[] = "nrtbf", values[] = "\n\r\t\b\f";
    if (s->hex > 0) {
        int v = hex_value(c);
        s->code = s->code * 16 + (unsigned)(v < 0 ? 0 : v);
        if (--s->hex == 0)
            keep(s, s->code < 0x80 ? (char)s->code : (char)0x80, OVERRIDE_NAME_MAX);
    } else if (s->escaped) {
        const char *e = strchr(escapes, c);
        s->escaped = false;
        s->hex = c == 'u' ? 4 : 0;
        s->code = 0;
        if (c != 'u')
            keep(s, e && c ? values[e - escapes] : c, OVERRIDE_NAME_MAX);
    } else if (c == '\\') {
        s->escaped = true;
    } else if (c == '"') {
        s->in_string = false;
        s->at_key = override_parameter((struct slice){s->text, s->n});
    } else {
        keep(s, c, OVERRIDE_NAME_MAX);
    }
}

static void json(struct override_scan *s, char c)
{
    if (s->in_string) {
        json_string_byte(s, c);
    } else if (c == '"') {
        s->in_string = true;
        s->n = 0;
    } else if (c == 0) { /* UTF-16 or UTF-32 without saying so */
        s->found = true;
    } else if (c == ':') {
        s->found = s->found || s->at_key;
        s->at_key = false;
    } else if (c != ' ' && c != '\t' && c != '\r' && c != '\n') {
        s->at_key = false;
    }
}

/* The value of each "name" of a part's head, quoted or not (RFC 7578, 4.2; name* by RFC 5987). */
static bool names_method(struct slice line)
{
    for (size_t i = 0; i + 4 < line.n; i++) {
        struct slice v = {line.p + i + 4, line.n - i - 4};
        char before = i ? ascii_lower(line.p[i - 1]) : ' ';
        if (!slice_istarts((struct slice){line.p + i, 4}, SLICE("name")) ||
            (before >= 'a' && before <= 'z'))
            continue;
        while (v.n && (v.p[0] == ' ' || v.p[0] == '\t' || v.p[0] == '*'))
            v = (struct slice){v.p + 1, v.n - 1};
        if (v.n && v.p[-1] == '*' && v.p[0] >= '0' && v.p[0] <= '9')
            return true; /* a name in pieces (RFC 2231, 3): no form writes one */
        if (v.n == 0 || v.p[0] != '=')
            continue;
        v = slice_trim((struct slice){v.p + 1, v.n - 1});
        ssize_t charset = slice_find_slice(v, SLICE("''"));
        char end = v.n && (v.p[0] == '"' || v.p[0] == '\'') ? v.p[0] : ';';
        if (end != ';')
            v = (struct slice){v.p + 1, v.n - 1};
        else if (charset >= 0)
            v = (struct slice){v.p + charset + 2, v.n - (size_t)charset - 2};
        ssize_t stop = slice_find(v, end);
        if (override_parameter(slice_trim((struct slice){v.p, stop < 0 ? v.n : (size_t)stop})))
            return true;
    }
    return false;
}

/* A part that is itself a request (batches of OData and of Google's APIs), or may hold such parts.
 */
static bool holds_request(struct slice line)
{
    return slice_istarts(line, SLICE("content-type")) &&
           (find_word(line, SLICE("application/http")) >= 0 ||
            find_word(line, SLICE("multipart/")) >= 0);
}

/* By lines: a delimiter begins a part's head, an empty line ends it. */
static void multipart(struct override_scan *s, char c)
{
    if (c != '\n') {
        if (s->n == OVERRIDE_LINE_MAX)
            s->line_long = true;
        keep(s, c, OVERRIDE_LINE_MAX);
        return;
    }
    struct slice line = {s->text, s->n};
    if (line.n && line.p[line.n - 1] == '\r')
        line.n--;
    if (slice_starts(line, (struct slice){s->boundary, s->boundary_n}))
        s->in_head = true;
    else if (line.n == 0)
        s->in_head = false;
    else if (s->in_head) /* a head whose line does not fit is no browser's */
        s->found = s->found || s->line_long || names_method(line) || holds_request(line);
    s->n = 0;
    s->line_long = false;
}

bool override_data(struct override_scan *s, const char *p, size_t n)
{
    for (size_t i = 0; i < n && !s->found; i++) {
        if (s->form == OVERRIDE_URLENCODED)
            urlencoded(s, p[i]);
        else if (s->form == OVERRIDE_JSON)
            json(s, p[i]);
        else if (s->form == OVERRIDE_MULTIPART)
            multipart(s, p[i]);
    }
    return s->found;
}
