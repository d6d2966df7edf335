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

/* The same, and what readers of names take for an underscore made one. */
static char name_byte(struct slice name, size_t *i)
{
    char c = parameter_byte(name, i);
    return c == '-' || c == '.' || c == ' ' || c == '+' ? '_' : c;
}

/* The name, or one with an index behind it. */
static bool is_known(struct slice name, const char *known)
{
    size_t k = 0, n = strlen(known);
    for (size_t i = 0; i < name.n; k++) {
        char c = name_byte(name, &i);
        if (k == 0 && c == '[')
            c = '_';
        if (k == n)
            return c == '[';
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

bool override_parameter(struct slice name)
{
    while (!is_override(name)) {
        /* PHP leaves blanks at the beginning out */
        size_t i = 0;
        if (name.n == 0 || name_byte(name, &i) != '_' || name.p[0] == '_')
            return false;
        name = (struct slice){name.p + i, name.n - i};
    }
    return true;
}

/* ---- what kind of body ---- */

static bool type_is(struct slice type, const char *wanted)
{
    return slice_ieq_str(slice_trim(type), wanted);
}

/* The parameter "boundary" of the type, with "--" before it. */
static bool take_boundary(struct override_scan *s, struct slice parameters)
{
    for (size_t i = 0; i + 9 <= parameters.n; i++) {
        struct slice rest = {parameters.p + i, parameters.n - i};
        if (!slice_istarts(rest, SLICE("boundary=")))
            continue;
        rest = (struct slice){rest.p + 9, rest.n - 9};
        char end = ';';
        if (rest.n && rest.p[0] == '"') {
            rest = (struct slice){rest.p + 1, rest.n - 1};
            end = '"';
        }
        ssize_t stop = slice_find(rest, end);
        size_t n = stop < 0 ? rest.n : (size_t)stop;
        if (n == 0)
            return false;
        s->found = n > OVERRIDE_BOUNDARY_MAX; /* what cannot be read is not let through */
        if (s->found)
            return true;
        memcpy(s->boundary, "--", 2);
        memcpy(s->boundary + 2, rest.p, n);
        s->boundary_n = n + 2;
        return true;
    }
    return false;
}

bool override_begin(struct override_scan *s, struct slice content_type)
{
    ssize_t semicolon = slice_find(content_type, ';');
    struct slice type = content_type, parameters = {"", 0};
    if (semicolon >= 0) {
        type.n = (size_t)semicolon;
        parameters = (struct slice){content_type.p + semicolon, content_type.n - type.n};
    }
    type = slice_trim(type);
    memset(s, 0, sizeof *s);
    if (type_is(type, "application/x-www-form-urlencoded"))
        s->form = OVERRIDE_URLENCODED;
    else if (type_is(type, "application/json") ||
             (type.n > 5 && slice_ieq_str((struct slice){type.p + type.n - 5, 5}, "+json")))
        s->form = OVERRIDE_JSON;
    else if (type_is(type, "multipart/form-data") && take_boundary(s, parameters))
        s->form = OVERRIDE_MULTIPART;
    return s->form != OVERRIDE_NONE;
}

/* ---- bodies ---- */

static void keep(struct override_scan *s, char c, size_t max)
{
    if (s->n < max)
        s->text[s->n++] = c;
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
        s->found = s->found || override_parameter((struct slice){s->text, s->n});
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
        s->found = s->found || s->line_long || names_method(line);
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
