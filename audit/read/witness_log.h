/* A host's log held against what it said to its fleet: every line of its that is known must be one
 * of that log. */
#ifndef DURWARD_WITNESS_LOG_H
#define DURWARD_WITNESS_LOG_H

#include "verify.h"
#include "witness.h"

struct witness_log {
    uint64_t held;    /* of its heads, that stand in the log */
    uint64_t removed; /* whose records retention took out */
    /* the first head that does not: its number and the record that it says; 0: there is none */
    uint64_t forked, forked_seq; /* that record is another one */
    uint64_t cut, cut_seq;       /* the log does not go so far, */
    uint64_t end;                /* but to this record */
};

/* Reads the whole log; the key is the one that the fleet knows. -1: out of memory. */
int witness_log_verify(int dirfd, const struct witness *w, size_t host, struct verify_result *v,
                       struct witness_log *ret) WUNUSED;

#endif
