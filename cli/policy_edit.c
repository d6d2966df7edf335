/* Finds the list of a policy's rules by the events of libyaml, whose marks say where it stands, and
 * writes the rule above its first item, in the style of the list. */
#include "policy_edit.h"

#include <string.h>
#include <yaml.h>

enum { DEPTH_MAX = 16 };

/* Where the list begins, and the word before it ends, in characters; empty: "[]"; null: the key has
 * no value, or one that says so, up to `end`. braces: it stands in braces or brackets itself. */
struct place {
    bool found, flow, empty, null, braces;
    size_t at, end, column, key_end;
};

/* The keys that lead to where the parser is; a mapping's key is kept until its value has ended. */
struct walk {
    yaml_parser_t parser;
    const char *policy;
    size_t depth;   /* of open collections */
    size_t key_end; /* of the key that was read last */
    struct {
        bool mapping, want_key, flow;
        char key[80];
    } open[DEPTH_MAX];
};

static bool here(const struct walk *w)
{
    return w->depth == 3 && w->open[0].mapping && strcmp(w->open[0].key, "policies") == 0 &&
           w->open[1].mapping && strcmp(w->open[1].key, w->policy) == 0 && w->open[2].mapping &&
           strcmp(w->open[2].key, "rules") == 0 && !w->open[2].want_key;
}

/* A node of the mapping above has been read whole. */
static void value_ended(struct walk *w)
{
    if (w->depth > 0 && w->depth <= DEPTH_MAX && w->open[w->depth - 1].mapping)
        w->open[w->depth - 1].want_key = true;
}

static bool in_braces(const struct walk *w)
{
    for (size_t i = 0; i < w->depth && i < DEPTH_MAX; i++)
        if (w->open[i].flow)
            return true;
    return false;
}

/* "rules:", "rules: null", "rules: ~": an empty list that was not written. */
static bool is_null(const yaml_event_t *e)
{
    struct slice s = {(const char *)e->data.scalar.value, e->data.scalar.length};
    return e->data.scalar.style == YAML_PLAIN_SCALAR_STYLE &&
           (s.n == 0 || slice_eq_str(s, "~") || slice_eq_str(s, "null"));
}

static void on_scalar(struct walk *w, const yaml_event_t *e)
{
    if (w->depth == 0 || w->depth > DEPTH_MAX || !w->open[w->depth - 1].mapping)
        return;
    if (!w->open[w->depth - 1].want_key) {
        value_ended(w);
        return;
    }
    snprintf(w->open[w->depth - 1].key, sizeof w->open[0].key, "%.*s", (int)e->data.scalar.length,
             (const char *)e->data.scalar.value);
    w->open[w->depth - 1].want_key = false;
    w->key_end = e->end_mark.index;
}

static void on_open(struct walk *w, bool mapping, bool flow)
{
    if (w->depth < DEPTH_MAX) {
        w->open[w->depth].flow = flow;
        w->open[w->depth].mapping = mapping;
        w->open[w->depth].want_key = mapping;
        w->open[w->depth].key[0] = 0;
    }
    w->depth++;
}

/* What follows the list's beginning is its end. */
static int is_empty(struct walk *w, struct place *p)
{
    yaml_event_t e;
    if (!yaml_parser_parse(&w->parser, &e))
        return -1;
    p->empty = e.type == YAML_SEQUENCE_END_EVENT;
    yaml_event_delete(&e);
    return 0;
}

/* 1: done. */
static int on_event(struct walk *w, const yaml_event_t *e, struct place *p)
{
    switch (e->type) {
    case YAML_SEQUENCE_START_EVENT:
        if (here(w)) {
            *p = (struct place){
                .found = true,
                .flow = e->data.sequence_start.style == YAML_FLOW_SEQUENCE_STYLE,
                .braces = in_braces(w),
                .at = e->start_mark.index,
                .column = e->start_mark.column,
                .key_end = w->key_end,
            };
            return is_empty(w, p) < 0 ? -1 : 1;
        }
        on_open(w, false, e->data.sequence_start.style == YAML_FLOW_SEQUENCE_STYLE);
        return 0;
    case YAML_MAPPING_START_EVENT:
        on_open(w, true, e->data.mapping_start.style == YAML_FLOW_MAPPING_STYLE);
        return 0;
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
        w->depth--;
        value_ended(w);
        return 0;
    case YAML_SCALAR_EVENT:
        if (here(w) && is_null(e)) {
            *p = (struct place){
                .found = true,
                .null = true,
                .braces = in_braces(w),
                .at = e->start_mark.index,
                .end = e->end_mark.index,
            };
            return 1;
        }
        on_scalar(w, e);
        return 0;
    case YAML_ALIAS_EVENT:
        value_ended(w);
        return 0;
    default:
        return e->type == YAML_STREAM_END_EVENT;
    }
}

static int find(struct slice text, const char *policy, struct place *p)
{
    struct walk w = {.policy = policy};
    int end = 0;
    if (!yaml_parser_initialize(&w.parser))
        return -1;
    yaml_parser_set_input_string(&w.parser, (const unsigned char *)text.p, text.n);
    while (end == 0) {
        yaml_event_t e;
        if (!yaml_parser_parse(&w.parser, &e))
            break;
        end = on_event(&w, &e, p);
        yaml_event_delete(&e);
    }
    yaml_parser_delete(&w.parser);
    return end == 1 && p->found ? 0 : -1;
}

/* libyaml counts characters. */
static size_t byte_of(struct slice text, size_t characters)
{
    size_t at = 0;
    while (at < text.n && (characters > 0 || ((unsigned char)text.p[at] & 0xc0) == 0x80)) {
        if (((unsigned char)text.p[at] & 0xc0) != 0x80)
            characters--;
        at++;
    }
    return at;
}

static size_t line_start(struct slice text, size_t at)
{
    while (at > 0 && text.p[at - 1] != '\n')
        at--;
    return at;
}

/* How deep the line is indented on which the list's key stands. */
static size_t indent_of(struct slice text, size_t at)
{
    size_t from = line_start(text, at), n = 0;
    while (from + n < at && text.p[from + n] == ' ')
        n++;
    return n;
}

static int put_item(struct buf *out, size_t column, const char *target, const char *method)
{
    return buf_printf(out, "%*s- allow: \"%s\"\n%*smethods: [%s]", (int)column, "", target,
                      (int)column + 2, "", method);
}

/* Below the line of the key, so that a comment above the first rule stays that rule's. */
static int put_block(struct slice text, const struct place *p, const char *target,
                     const char *method, struct buf *out)
{
    size_t at = byte_of(text, p->key_end);
    while (at < text.n && text.p[at] != '\n')
        at++;
    if (at == text.n || buf_append(out, text.p, at + 1) < 0 ||
        put_item(out, p->column, target, method) < 0)
        return -1;
    return buf_append(out, text.p + at, text.n - at);
}

/* A list of this one, where none or an empty one stands: in braces on its line, else below it. */
static int put_first(struct slice text, const struct place *p, size_t at, const char *target,
                     const char *method, struct buf *out)
{
    if (p->braces)
        return buf_printf(out, "[{ allow: \"%s\", methods: [%s] }]", target, method);
    if (buf_append_str(out, "\n") < 0)
        return -1;
    return put_item(out, indent_of(text, at) + 2, target, method);
}

static int put_flow(struct slice text, const struct place *p, const char *target,
                    const char *method, struct buf *out)
{
    size_t at = byte_of(text, p->at);
    struct slice rest = {text.p + at, text.n - at};
    if (buf_append(out, text.p, at) < 0)
        return -1;
    if (!p->empty)
        return buf_printf(out, "[{ allow: \"%s\", methods: [%s] }, ", target, method) < 0
                   ? -1
                   : buf_append(out, rest.p + 1, rest.n - 1);
    ssize_t close = slice_find(rest, ']');
    if (close < 0 || put_first(text, p, at, target, method, out) < 0)
        return -1;
    return buf_append(out, rest.p + close + 1, rest.n - (size_t)close - 1);
}

static int put_null(struct slice text, const struct place *p, const char *target,
                    const char *method, struct buf *out)
{
    size_t at = byte_of(text, p->at), end = byte_of(text, p->end);
    bool spaced = at > 0 && text.p[at - 1] == ' ';
    if (buf_append(out, text.p, at) < 0 || (p->braces && !spaced && buf_append_str(out, " ") < 0) ||
        put_first(text, p, at, target, method, out) < 0 ||
        (end < text.n && text.p[end] == '}' && buf_append_str(out, " ") < 0))
        return -1;
    return buf_append(out, text.p + end, text.n - end);
}

int policy_edit_add(struct slice text, const char *policy, const char *target, const char *method,
                    struct buf *out, struct err *err)
{
    struct place p = {.found = false};
    if (strpbrk(target, "\"\\\n") || strpbrk(method, "\"\\\n,]"))
        return err_set(err, ERR_PARSE, "that cannot be written as a rule");
    if (find(text, policy, &p) < 0)
        return err_set(err, ERR_PARSE,
                       "there is no list policies.%.64s.rules in it that a rule can be put into",
                       policy);
    int r = p.null   ? put_null(text, &p, target, method, out)
            : p.flow ? put_flow(text, &p, target, method, out)
                     : put_block(text, &p, target, method, out);
    return r < 0 ? err_set(err, ERR_LIMIT, "the configuration is too large") : 0;
}
