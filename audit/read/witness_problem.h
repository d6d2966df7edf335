/* What is wrong with a host of a fleet by what is known of its heads (witness.h), in words: the
 * same for whoever verifies and for whoever looks at the fleet. */
#ifndef DURWARD_WITNESS_PROBLEM_H
#define DURWARD_WITNESS_PROBLEM_H

#include "witness.h"

enum { WITNESS_PROBLEM_TEXT = 320 };

/* what: one word: unknown, missing, forked, rolled_back, changed, unsigned, silent, unseen. */
typedef void (*witness_problem_fn)(void *arg, size_t host, const char *what, const char *text);

/* Faults of its lines, and what the latest line of any host doubts of them. */
void witness_problems(const struct witness *w, size_t host, witness_problem_fn fn, void *arg);
/* It was not heard of for that time before now, or another one has not seen what it said. ns. */
void witness_silence(const struct witness *w, size_t host, uint64_t now, uint64_t silent,
                     witness_problem_fn fn, void *arg);

#endif
