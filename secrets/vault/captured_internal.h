/* Shared by vault_captured.c and the readers of replies (captured_rewrite.c, captured_form.c,
 * captured_xml.c) only. */
#ifndef DURWARD_CAPTURED_INTERNAL_H
#define DURWARD_CAPTURED_INTERNAL_H

#include "captured.h"

/* What one reader looks for, and where it tells what it found. */
struct captured_search {
    struct captured_field *fields;
    size_t n;
    struct err *err;
};

/* Texts that are taken out, the longest first, as one may hold another. */
struct captured_words {
    struct {
        struct slice value, by;
    } word[CAPTURED_VALUES_MAX];
    size_t n;
};

/* text: of the place that the field names; p NULL: there is none, and something else stands there.
 */
int captured_take(const struct captured_search *s, struct captured_field *f,
                  struct slice text) WUNUSED;
/* The three texts of an AWS key, where the field names what holds them. */
int captured_take_pair(const struct captured_search *s, struct captured_field *f,
                       const struct slice part[CAPTURED_PARTS]) WUNUSED;
extern const char *const captured_parts[CAPTURED_PARTS]; /* their names */

/* A value under the name that some field's path ends with, though not at that path: the reply is in
 * another form, or nested otherwise, than the rule's author knew. Or one under the name that OAuth
 * gives a token. Such a reply is not passed on. */
bool captured_missed(const struct captured_search *s, struct slice name, struct slice value);
int captured_say_missed(const struct captured_search *s, struct slice name); /* -1, with err */

void captured_words_of(const struct captured_field *fields, size_t n, struct captured_words *ret);
bool captured_holds(const struct captured_words *w, struct slice text);
/* Each word once, in that order. */
int captured_replace(const struct captured_words *w, struct slice text, struct buf *out) WUNUSED;

/* Each reads the body, takes what the fields name, and writes it with the placeholders. */
int captured_json(struct slice body, const struct captured_search *s, struct buf *out) WUNUSED;
int captured_form(struct slice body, const struct captured_search *s, struct buf *out) WUNUSED;
int captured_xml(struct slice body, const struct captured_search *s, struct buf *out) WUNUSED;

#endif
