/* Counts of refusals that somebody can cause faster than a log can hold them: DNS names, packets,
 * who asks for previews. The first of a kind and target is recorded at once; those that follow
 * within so many seconds are counted and recorded together, exactly (promise P4: counted per
 * sandbox and target). */
#ifndef DURWARD_REFUSAL_COUNTERS_H
#define DURWARD_REFUSAL_COUNTERS_H

#include "record.h"

struct event_base;
struct refusal_counters;

enum {
    REFUSAL_COUNTERS_TARGETS = 256,
    REFUSAL_COUNTERS_SECONDS = 1,
    REFUSAL_COUNTERS_OUTSIDE = 10 /* seconds, of what nobody inside caused */
};

/* Told of every count that goes out: a record, and whoever sums up for the user. */
typedef void (*refusal_counters_fn)(void *arg, enum record_kind kind, const char *code,
                                    const char *target, uint64_t count);

struct refusal_counters *refusal_counters_new(struct event_base *base, unsigned seconds,
                                              refusal_counters_fn fn, void *arg);
void refusal_counters_free(struct refusal_counters *t); /* what is counted goes out first */
/* Beyond REFUSAL_COUNTERS_TARGETS different targets at once, the rest share the target "other". */
void refusal_counters_add(struct refusal_counters *t, enum record_kind kind, const char *code,
                          const char *target, uint64_t count);

#endif
