/* Which messages a JSON text holds and which of their members count here: a walk over tokens, with
 * its depth bounded, that keeps nothing. What the text means is decided elsewhere. */
#include "stdio_mcp.h"

#include <string.h>

struct walk {
    const char *p, *end;
};

static void blanks(struct walk *w)
{
    while (w->p < w->end && (*w->p == ' ' || *w->p == '\t' || *w->p == '\n' || *w->p == '\r'))
        w->p++;
}

static bool next_is(struct walk *w, char c)
{
    blanks(w);
    if (w->p == w->end || *w->p != c)
        return false;
    w->p++;
    return true;
}

static bool skip_text(struct walk *w)
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

static bool skip_scalar(struct walk *w)
{
    const char *from = w->p;
    while (w->p < w->end && !ends_scalar(*w->p) && *w->p != '"' && *w->p != '{' && *w->p != '[')
        w->p++;
    return w->p > from;
}

/* Brackets are matched by kind. */
static bool skip_value(struct walk *w)
{
    char open[STDIO_DEPTH_MAX];
    size_t depth = 0;
    blanks(w);
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
            if (depth == STDIO_DEPTH_MAX)
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

/* A member that was there before makes it no message: readers would differ. */
static bool note(struct stdio_message *m, struct slice key, struct slice value)
{
    struct slice *to = slice_eq_str(key, "\"id\"")       ? &m->id
                       : slice_eq_str(key, "\"method\"") ? &m->method
                                                         : NULL;
    if (to) {
        bool first = to->n == 0;
        *to = value;
        return first && value.n <= STDIO_ID_MAX;
    }
    if (slice_eq_str(key, "\"result\"") || slice_eq_str(key, "\"error\""))
        m->answers = true;
    return true;
}

static bool take_members(struct walk *w, struct stdio_message *m)
{
    if (next_is(w, '}'))
        return true;
    do {
        blanks(w);
        const char *at = w->p;
        if (w->p == w->end || *w->p != '"' || !skip_text(w))
            return false;
        struct slice key = {at, (size_t)(w->p - at)};
        if (!next_is(w, ':'))
            return false;
        blanks(w);
        at = w->p;
        if (!skip_value(w) || !note(m, key, (struct slice){at, (size_t)(w->p - at)}))
            return false;
    } while (next_is(w, ','));
    return next_is(w, '}');
}

static bool take_message(struct walk *w, struct stdio_message *m)
{
    *m = (struct stdio_message){.answers = false};
    return next_is(w, '{') && take_members(w, m) && (m->method.n > 0 || m->answers);
}

int stdio_scan(struct slice text, struct stdio_message *ret, size_t max)
{
    struct walk w = {text.p, text.p + text.n};
    size_t n = 0;
    bool batch = next_is(&w, '[');
    do {
        if (n == max || !take_message(&w, &ret[n++]))
            return -1;
    } while (batch && next_is(&w, ','));
    if (batch && !next_is(&w, ']'))
        return -1;
    blanks(&w);
    return w.p == w.end ? (int)n : -1;
}

bool stdio_is_request(const struct stdio_message *m)
{
    return m->method.n > 0 && m->id.n > 0 && !slice_eq_str(m->id, "null");
}
