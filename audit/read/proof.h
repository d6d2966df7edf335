/* That one record stands in the log, shown without the rest of it: the line, the path from it to
 * the Merkle root of the checkpoint that covers it, and that checkpoint's line. One JSON object:
 * {"line":"…","path":[{"side":"left"|"right","hash":"hex"},…],"checkpoint":"…"}. */
#ifndef DURWARD_PROOF_H
#define DURWARD_PROOF_H

#include "err.h"
#include "signing_key.h"

#include <jansson.h>

/* For the record with this seq. NULL with err (ERR_UNREADY: no checkpoint covers it yet). */
json_t *proof_make(int dirfd, uint64_t seq, struct err *err);
/* 0: it holds, *seq is the record's. -1 with err. */
int proof_check(const json_t *proof, const struct signing_key *key, uint64_t *seq, struct err *err);

#endif
