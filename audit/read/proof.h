/* That one record stands in the log, shown without the rest of it: the line, the path from it to
 * the Merkle root of the checkpoint that covers it, and that checkpoint's line. One JSON object:
 * {"line":"…","path":[{"side":"left"|"right","hash":"hex"},…],"checkpoint":"…"}. */
#ifndef DURWARD_PROOF_H
#define DURWARD_PROOF_H

#include "err.h"
#include "signing_key.h"

#include "merkle.h"

#include <jansson.h>

/* A record that was asked for; valid during the call. steps -1: no checkpoint covers it yet. */
struct proof_record {
    uint64_t seq;
    struct slice line;
    const struct merkle_step *path;
    int steps;
    struct slice checkpoint; /* its line */
};

typedef int (*proof_fn)(void *arg, const struct proof_record *p); /* not 0 ends it */

/* Those of these records, ascending, that the log has; where its files have indexes, little more is
 * read than from the checkpoint before a record to the one after it. */
int proof_each(int dirfd, const uint64_t *seq, size_t n, proof_fn fn, void *arg, struct err *err);
json_t *proof_path(const struct proof_record *p); /* [{"side","hash"},...] */
/* For the record with this seq. NULL with err (ERR_UNREADY: no checkpoint covers it yet). */
json_t *proof_make(int dirfd, uint64_t seq, struct err *err);
/* 0: it holds, *seq is the record's. -1 with err. */
int proof_check(const json_t *proof, const struct signing_key *key, uint64_t *seq, struct err *err);

#endif
