/* Builds jansson values from libyaml's events, notes the line of each by its path, and refuses what
 * it does not take where it meets it. */
#include "yaml_tree.h"

#include <stdio.h>
#include <string.h>
#include <yaml.h>

#include "node.h"

struct loader {
    yaml_parser_t parser;
    struct slice text;
    struct source source;
    json_t *lines;
    unsigned depth;
    struct err *err;
};

static int fail_at(struct loader *l, size_t line, const char *what)
{
    return err_set(l->err, ERR_PARSE, "%s:%zu: %s", l->source.name, line + 1, what);
}

static int out_of_memory(struct loader *l)
{
    return err_set(l->err, ERR_INTERNAL, "%s: out of memory", l->source.name);
}

/* The line of a byte: libyaml reads ahead and has none for what is no text. */
static size_t line_of(const struct loader *l, size_t offset)
{
    size_t line = 1;
    for (size_t i = 0; i < offset && i < l->text.n; i++)
        line += l->text.p[i] == '\n';
    return line;
}

/* This line begins with blanks of which one is a tab. */
static bool at_tab(const struct loader *l, size_t line)
{
    size_t i = 0;
    for (; line > 0 && i < l->text.n; i++)
        line -= l->text.p[i] == '\n';
    while (i < l->text.n && l->text.p[i] == ' ')
        i++;
    return i < l->text.n && l->text.p[i] == '\t';
}

static int next(struct loader *l, yaml_event_t *ev)
{
    if (yaml_parser_parse(&l->parser, ev))
        return 0;
    const yaml_parser_t *p = &l->parser;
    if (p->error == YAML_MEMORY_ERROR)
        return out_of_memory(l);
    const char *problem = p->problem ? p->problem : "this is not YAML";
    size_t line = p->problem_mark.line;
    if (p->error == YAML_READER_ERROR)
        return err_set(l->err, ERR_PARSE, "%s:%zu: %s at byte %zu; the file must be UTF-8 text",
                       l->source.name, line_of(l, p->problem_offset), problem, p->problem_offset);
    bool tab = strstr(problem, "cannot start any token") != NULL;
    if (tab && at_tab(l, line))
        return fail_at(l, line, "a tab stands before the text; indent with spaces");
    return err_set(l->err, ERR_PARSE, "%s:%zu: %s%s%s%s", l->source.name, line + 1, problem,
                   p->context ? " " : "", p->context ? p->context : "",
                   tab ? "; indent with spaces, and quote text that starts with @ or `" : "");
}

/* Remember where the value at this node begins. */
static int note_line(struct loader *l, const struct node *at, size_t line)
{
    char path[512];
    node_path(at, path, sizeof path);
    if (json_object_set_new_nocheck(l->lines, path, json_integer((json_int_t)line + 1)) < 0)
        return out_of_memory(l);
    return 0;
}

static int refuse_properties(struct loader *l, const yaml_char_t *anchor, const yaml_char_t *tag,
                             size_t line)
{
    if (anchor)
        return fail_at(l, line, "anchors are not used here; write the value out");
    if (tag)
        return fail_at(l, line, "tags are not used here; quote text that starts with '!'");
    return 0;
}

static bool is_integer(struct slice s)
{
    size_t i = s.n && s.p[0] == '-' ? 1 : 0;
    if (s.n == i || s.n - i > 18 || (s.p[i] == '0' && s.n > i + 1))
        return false;
    for (; i < s.n; i++)
        if (s.p[i] < '0' || s.p[i] > '9')
            return false;
    return true;
}

static json_t *plain_value(struct slice s)
{
    if (slice_eq_str(s, "true"))
        return json_true();
    if (slice_eq_str(s, "false"))
        return json_false();
    if (s.n == 0 || slice_eq_str(s, "~") || slice_eq_str(s, "null"))
        return json_null();
    if (is_integer(s)) {
        uint64_t v = 0;
        bool minus = s.p[0] == '-';
        struct slice digits = {s.p + minus, s.n - minus};
        if (slice_u64(digits, INT64_MAX, &v) == 0)
            return json_integer(minus ? -(json_int_t)v : (json_int_t)v);
    }
    return json_stringn(s.p, s.n);
}

static int load_scalar(struct loader *l, const yaml_event_t *ev, json_t **ret)
{
    struct slice s = {(const char *)ev->data.scalar.value, ev->data.scalar.length};
    size_t line = ev->start_mark.line;
    if (refuse_properties(l, ev->data.scalar.anchor, ev->data.scalar.tag, line) < 0)
        return -1;
    if (slice_find(s, 0) >= 0)
        return fail_at(l, line, "a NUL byte in a value");
    bool plain = ev->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
    *ret = plain ? plain_value(s) : json_stringn(s.p, s.n);
    return *ret ? 0 : fail_at(l, line, "text that is not UTF-8");
}

static int load_value(struct loader *l, const yaml_event_t *ev, const struct node *at,
                      json_t **ret);

static int load_sequence(struct loader *l, const struct node *at, json_t *array)
{
    for (size_t i = 0;; i++) {
        yaml_event_t ev;
        if (next(l, &ev) < 0)
            return -1;
        if (ev.type == YAML_SEQUENCE_END_EVENT) {
            yaml_event_delete(&ev);
            return 0;
        }
        struct node item = {&l->source, at, NULL, i, NULL};
        json_t *v = NULL;
        int r = note_line(l, &item, ev.start_mark.line);
        if (r == 0)
            r = load_value(l, &ev, &item, &v);
        yaml_event_delete(&ev);
        if (r == 0 && json_array_append_new(array, v) < 0)
            r = out_of_memory(l);
        if (r < 0)
            return -1;
    }
}

/* One key and its value. The key event is the caller's to delete. */
static int load_pair(struct loader *l, const yaml_event_t *key, const struct node *at,
                     json_t *object)
{
    size_t line = key->start_mark.line;
    if (key->type == YAML_ALIAS_EVENT)
        return fail_at(l, line, "aliases are not used here; write the value out");
    if (key->type != YAML_SCALAR_EVENT)
        return fail_at(l, line,
                       "a key must be plain text; quote a text that begins with { or [, as in "
                       "\"{{placeholder NAME}}\"");
    if (refuse_properties(l, key->data.scalar.anchor, key->data.scalar.tag, line) < 0)
        return -1;
    const char *name = (const char *)key->data.scalar.value;
    if (strlen(name) != key->data.scalar.length)
        return fail_at(l, line, "a NUL byte in a key");
    struct node member = {&l->source, at, name, 0, NULL};
    if (json_object_get(object, name)) {
        char path[512], first[600];
        node_path(&member, path, sizeof path);
        node_where(&member, first, sizeof first);
        return err_set(l->err, ERR_PARSE, "%s:%zu: '%.60s' is given twice (first at %s)",
                       l->source.name, line + 1, name, first);
    }
    yaml_event_t ev;
    json_t *v = NULL;
    if (note_line(l, &member, line) < 0 || next(l, &ev) < 0)
        return -1;
    int r = load_value(l, &ev, &member, &v);
    yaml_event_delete(&ev);
    if (r == 0 && json_object_set_new(object, name, v) < 0)
        r = fail_at(l, line, "a key that is not UTF-8");
    return r;
}

static int load_mapping(struct loader *l, const struct node *at, json_t *object)
{
    for (;;) {
        yaml_event_t ev;
        if (next(l, &ev) < 0)
            return -1;
        if (ev.type == YAML_MAPPING_END_EVENT) {
            yaml_event_delete(&ev);
            return 0;
        }
        int r = load_pair(l, &ev, at, object);
        yaml_event_delete(&ev);
        if (r < 0)
            return -1;
    }
}

static int load_value(struct loader *l, const yaml_event_t *ev, const struct node *at, json_t **ret)
{
    size_t line = ev->start_mark.line;
    if (ev->type == YAML_SCALAR_EVENT)
        return load_scalar(l, ev, ret);
    if (ev->type == YAML_ALIAS_EVENT)
        return fail_at(l, line, "aliases are not used here; write the value out");
    bool map = ev->type == YAML_MAPPING_START_EVENT;
    if (!map && ev->type != YAML_SEQUENCE_START_EVENT)
        return fail_at(l, line, "a value is missing");
    int r =
        map ? refuse_properties(l, ev->data.mapping_start.anchor, ev->data.mapping_start.tag, line)
            : refuse_properties(l, ev->data.sequence_start.anchor, ev->data.sequence_start.tag,
                                line);
    if (r < 0)
        return -1;
    if (l->depth >= YAML_TREE_DEPTH)
        return fail_at(l, line, "nested deeper than 32 levels");
    json_t *v = map ? json_object() : json_array();
    if (v == NULL)
        return out_of_memory(l);
    l->depth++;
    r = map ? load_mapping(l, at, v) : load_sequence(l, at, v);
    l->depth--;
    if (r < 0) {
        json_decref(v);
        return -1;
    }
    *ret = v;
    return 0;
}

/* The document's own events; at most one document. */
static int load_document(struct loader *l, json_t **ret)
{
    struct node root = {&l->source, NULL, NULL, 0, NULL};
    for (;;) {
        yaml_event_t ev;
        if (next(l, &ev) < 0)
            return -1;
        yaml_event_type_t type = ev.type;
        size_t line = ev.start_mark.line;
        int r = 0;
        if (type == YAML_DOCUMENT_START_EVENT) {
            if (*ret)
                r = fail_at(l, line, "a second document; one file is one document");
            else if (ev.data.document_start.version_directive ||
                     ev.data.document_start.tag_directives.start !=
                         ev.data.document_start.tag_directives.end)
                r = fail_at(l, line, "% directives are not used here");
        } else if (type != YAML_STREAM_START_EVENT && type != YAML_DOCUMENT_END_EVENT &&
                   type != YAML_STREAM_END_EVENT && type != YAML_NO_EVENT) {
            r = note_line(l, &root, line);
            if (r == 0)
                r = load_value(l, &ev, &root, ret);
        }
        yaml_event_delete(&ev);
        if (r < 0 || type == YAML_STREAM_END_EVENT || type == YAML_NO_EVENT)
            return r;
    }
}

int yaml_tree_parse(struct slice text, const char *name, json_t **root, json_t **lines,
                    struct err *err)
{
    struct loader l = {.text = text, .source = {.name = name}, .err = err};
    json_t *tree = NULL;
    if (text.n > YAML_TREE_MAX)
        return err_set(err, ERR_LIMIT, "%s: larger than 1 MiB", name);
    if (slice_starts(text, SLICE("\xef\xbb\xbf"))) { /* libyaml counts it as a column */
        text = (struct slice){text.p + 3, text.n - 3};
        l.text = text;
    }
    l.lines = json_object();
    if (l.lines == NULL || !yaml_parser_initialize(&l.parser)) {
        json_decref(l.lines);
        return err_set(err, ERR_INTERNAL, "%s: out of memory", name);
    }
    l.source.lines = l.lines;
    yaml_parser_set_encoding(&l.parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&l.parser, (const unsigned char *)text.p, text.n);
    int r = load_document(&l, &tree);
    yaml_parser_delete(&l.parser);
    if (r < 0) {
        json_decref(tree);
        json_decref(l.lines);
        return -1;
    }
    *root = tree ? tree : json_null();
    *lines = l.lines;
    return 0;
}
