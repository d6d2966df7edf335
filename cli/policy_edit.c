/* Finds the list of a policy's rules by the events of libyaml, whose marks say where it stands, and
 * writes the rule above its first item, in the style of the list. */
#include "policy_edit.h"

#include <string.h>
#include <yaml.h>

enum { DEPTH_MAX = 16 };

/* Where the list begins, and the word before it ends, in characters; empty: "[]". */
struct place {
    bool found, flow, empty;
    size_t at, column, key_end;
};

/* The keys that lead to where the parser is; a mapping's key is kept until its value has ended. */
struct walk {
    yaml_parser_t parser;
    const char *policy;
    size_t depth;   /* of open collections */
    size_t key_end; /* of the key that was read last */
    struct {
        bool mapping, want_key;
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

static void on_open(struct walk *w, bool mapping)
{
    if (w->depth < DEPTH_MAX) {
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
                .at = e->start_mark.index,
                .column = e->start_mark.column,
                .key_end = w->key_end,
            };
            return is_empty(w, p) < 0 ? -1 : 1;
        }
        on_open(w, false);
        return 0;
    case YAML_MAPPING_START_EVENT:
        on_open(w, true);
        return 0;
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
        w->depth--;
        value_ended(w);
        return 0;
    case YAML_SCALAR_EVENT:
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
    if (close < 0 || buf_append_str(out, "\n") < 0 ||
        put_item(out, indent_of(text, at) + 2, target, method) < 0)
        return -1;
    return buf_append(out, rest.p + close + 1, rest.n - (size_t)close - 1);
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
    int r =
        p.flow ? put_flow(text, &p, target, method, out) : put_block(text, &p, target, method, out);
    return r < 0 ? err_set(err, ERR_LIMIT, "the configuration is too large") : 0;
}
