/* The labels of a sandbox, as whoever counts by them needs them: each key as it is, of its value
 * only a number that another value of that key does not have. The controller says them (W_SANDBOX,
 * W_LABELS), the parent keeps them for the next dialer, and the dialer counts by them (`per label`
 * of a budget). What reads a sandbox's bytes never hears of them, and says nothing about them. */
#ifndef DURWARD_SANDBOX_LABELS_H
#define DURWARD_SANDBOX_LABELS_H

#include "compiler.h"

#include <stdint.h>

struct msg;
struct sandbox_labels;

enum { SANDBOX_LABELS_MAX = 32, SANDBOX_LABEL_KEY_MAX = 63 };

/* Of the controller: the number of this value of that key, never 0. */
uint64_t sandbox_labels_number(const char *key, const char *value);
/* One, as a message has them after how many there are (u32). */
void sandbox_labels_put_one(struct msg *m, const char *key, const char *value);

/* n:u32, n × (key:str, number:u64), each key once. NULL: the message is bad, or memory is out. */
struct sandbox_labels *sandbox_labels_get(struct msg *m);
void sandbox_labels_put(const struct sandbox_labels *l, struct msg *m); /* NULL: none */
struct sandbox_labels *sandbox_labels_ref(struct sandbox_labels *l);
void sandbox_labels_unref(struct sandbox_labels *l); /* NULL is fine */
/* Which count of those by this key is its own. All that do not have the label, and who has none at
 * all (l NULL), share one. Never 0. */
uint64_t sandbox_labels_count(const struct sandbox_labels *l, const char *key);

#endif
