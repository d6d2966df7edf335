/* A cursor into configuration values that knows where it stands, so that every error reads
 * "FILE:LINE: what; hint" without anybody carrying line numbers about.
 *
 * The values are jansson's. Lines are kept beside them, by path ("policies.coder.rules[3].with"),
 * because jansson's true, false and null are single objects that cannot be told apart. */
#ifndef DURWARD_NODE_H
#define DURWARD_NODE_H

#include <jansson.h>

#include "err.h"
#include "slice.h"

struct source {
    const char *name; /* file name, or what the text is */
    json_t *lines; /* object: path → line number, or a text such as "--allow HOST"; NULL: none */
};

struct node {
    const struct source *source;
    const struct node *up; /* NULL: the root */
    const char *key;       /* in an object; else NULL and */
    size_t index;          /* in an array */
    json_t *value;         /* borrowed */
};

/* A key of a mapping. One with `planned` is specified for a later milestone: a load error. */
struct key {
    const char *name;
    const char *planned; /* "M3"; NULL: built */
};

struct node node_root(const struct source *s, json_t *value);
/* The member of that name; false (and ret->value NULL) when it is absent. */
bool node_get(const struct node *n, const char *key, struct node *ret);
struct node node_item(const struct node *array, size_t i);
/* Path as in lines: "" for the root. Cut when it does not fit. */
void node_path(const struct node *n, char *buf, size_t size);
/* "FILE:LINE", or "NAME: path" when the source has no lines. */
void node_where(const struct node *n, char *buf, size_t size);
/* Error "where: message". Always returns -1. */
int node_fail(const struct node *n, struct err *err, const char *fmt, ...) PRINTF(3, 4);

/* All below: 0, or -1 with err. `n` is the value itself; its name in messages is its own key. */
int node_is_object(const struct node *n, struct err *err);
int node_is_array(const struct node *n, struct err *err);
/* An object that has no key but these. An unknown one is answered with the nearest known. */
int node_keys(const struct node *n, const struct key *keys, size_t n_keys, struct err *err);
int node_string(const struct node *n, const char **ret, struct err *err); /* not empty */
int node_text(const struct node *n, const char **ret, struct err *err);   /* may be empty */
int node_bool(const struct node *n, bool *ret, struct err *err);
int node_uint(const struct node *n, unsigned min, unsigned max, unsigned *ret, struct err *err);
/* One of the words; *ret is its index. */
int node_word(const struct node *n, const char *const *words, size_t n_words, size_t *ret,
              struct err *err);
/* A string, or a list of at least one: how many, and each of them. */
int node_strings(const struct node *n, size_t *count, struct err *err);
int node_strings_at(const struct node *n, size_t i, struct node *item, const char **ret,
                    struct err *err);
/* A name of a secret or policy: [A-Za-z0-9_][A-Za-z0-9_.-]{0,63}. */
bool node_name_ok(const char *s);

#endif
