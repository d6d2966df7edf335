/* Counts of refusals that a sandbox can cause faster than a log can hold them: DNS names, packets.
 * The first of a kind and target is recorded at once; those that follow within TALLY_SECONDS are
 * counted and recorded together, exactly (promise P4: counted per sandbox and target). */
#ifndef DURWARD_TALLY_H
#define DURWARD_TALLY_H

#include "record.h"

struct event_base;
struct tally;

enum { TALLY_TARGETS = 256, TALLY_SECONDS = 1 };

/* Told of every count that goes out: a record, and whoever sums up for the user. */
typedef void (*tally_fn)(void *arg, enum record_kind kind, const char *code, const char *target,
                         uint64_t count);

struct tally *tally_new(struct event_base *base, tally_fn fn, void *arg);
void tally_free(struct tally *t); /* what is counted goes out first */
/* Beyond TALLY_TARGETS different targets at once, the rest share the target "other". */
void tally_add(struct tally *t, enum record_kind kind, const char *code, const char *target,
               uint64_t count);

#endif
