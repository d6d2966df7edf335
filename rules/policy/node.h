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

/* A key of a mapping. KEY(name, type, standard, meaning) stands in the table of its mapping, and
 * says all of it once: `tests/checks/schema --write` makes the schema's properties and the manual's
 * table of keys from these lines. `standard` and `meaning` are the manual's cells: the program does
 * not hold them; "required" there makes a key one that must be there in the schema, too, and a key
 * without a meaning has no row. */
struct key {
    const char *name;
    const char *const *words; /* of WORDS */
    size_t n_words;
    uint64_t standard, least, most; /* of COUNT, UINT, SIZE */
};

#define KEYS(table) table, ARRAY_LEN(table)
#define KEY(key, type, standard_text, meaning) \
    {                                          \
        .name = key, KEY_##type                \
    }
/* A whole number; with COUNT one that has a standard. SIZE: bytes, at least so many. */
#define KEY_UINT(from, to)         .least = from, .most = to
#define KEY_COUNT(value, from, to) .standard = value, .least = from, .most = to
#define KEY_SIZE(from)             .least = from
/* One of these words, or of a table of them. */
#define KEY_WORDS(...)                           \
    .words = (const char *const[]){__VA_ARGS__}, \
    .n_words = ARRAY_LEN(((const char *const[]){__VA_ARGS__}))
#define KEY_WORDS_OF(table) .words = table, .n_words = ARRAY_LEN(table)
/* What its own reader reads: a form that tests/checks/keys.py knows; a part of $defs of the schema;
 * something whose schema is written by hand, or comes from a table of its own. */
#define KEY_AS(form)  .least = 0
#define KEY_REF(part) .least = 0
#define KEY_OWN       .least = 0

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
/* The member of this name, held against what its table says of it. 0 also when it is absent, and
 * *ret stays. */
int node_key_bool(const struct node *n, const char *name, bool *ret, struct err *err);
int node_key_uint(const struct node *n, const struct key *table, const char *name, unsigned *ret,
                  struct err *err);
int node_key_word(const struct node *n, const struct key *table, const char *name, size_t *ret,
                  struct err *err);
/* The line of the table, where it stands. */
const struct key *node_key(const struct key *table, const char *name);
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
