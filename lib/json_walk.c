/* A walk over the tokens of a JSON text, with its depth bounded, that keeps nothing. */
#include "json_walk.h"

void json_blanks(struct json_walk *w)
{
    while (w->p < w->end && (*w->p == ' ' || *w->p == '\t' || *w->p == '\n' || *w->p == '\r'))
        w->p++;
}

bool json_next_is(struct json_walk *w, char c)
{
    json_blanks(w);
    if (w->p == w->end || *w->p != c)
        return false;
    w->p++;
    return true;
}

static bool skip_text(struct json_walk *w)
{
    for (w->p++; w->p < w->end; w->p++)
        if (*w->p == '\\')
            w->p++;
        else if (*w->p == '"') {
            w->p++;
            return true;
        }
    w->p = w->end; /* an escape may have stood at the very end */
    return false;
}

static bool ends_scalar(char c)
{
    return c == ',' || c == ']' || c == '}' || c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static bool skip_scalar(struct json_walk *w)
{
    const char *from = w->p;
    while (w->p < w->end && !ends_scalar(*w->p) && *w->p != '"' && *w->p != '{' && *w->p != '[')
        w->p++;
    return w->p > from;
}

/* Brackets are matched by kind. */
static bool skip_value(struct json_walk *w)
{
    char open[JSON_DEPTH_MAX];
    size_t depth = 0;
    json_blanks(w);
    if (w->p < w->end && *w->p == '"')
        return skip_text(w);
    if (w->p == w->end || (*w->p != '{' && *w->p != '['))
        return skip_scalar(w);
    while (w->p < w->end) {
        char c = *w->p;
        if (c == '"') {
            if (!skip_text(w))
                return false;
            continue;
        }
        w->p++;
        if (c == '{' || c == '[') {
            if (depth == JSON_DEPTH_MAX)
                return false;
            open[depth++] = c;
        } else if (c == '}' || c == ']') {
            if (open[--depth] != (c == '}' ? '{' : '['))
                return false;
            if (depth == 0)
                return true;
        }
    }
    return false;
}

bool json_value(struct json_walk *w, struct slice *ret)
{
    json_blanks(w);
    const char *at = w->p;
    if (!skip_value(w))
        return false;
    *ret = (struct slice){at, (size_t)(w->p - at)};
    return true;
}

bool json_member(struct json_walk *w, struct slice *key, struct slice *value)
{
    json_blanks(w);
    const char *at = w->p;
    if (w->p == w->end || *w->p != '"' || !skip_text(w))
        return false;
    *key = (struct slice){at, (size_t)(w->p - at)};
    return json_next_is(w, ':') && json_value(w, value);
}

struct slice json_find(struct slice object, const char *name)
{
    struct json_walk w = {object.p, object.p + object.n};
    struct slice key, value, got = {0};
    if (!json_next_is(&w, '{') || json_next_is(&w, '}'))
        return got;
    do {
        if (!json_member(&w, &key, &value))
            return (struct slice){0};
        if (slice_eq_str(key, name))
            got = value;
    } while (json_next_is(&w, ','));
    return json_next_is(&w, '}') ? got : (struct slice){0};
}
