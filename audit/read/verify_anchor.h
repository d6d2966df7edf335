/* Copies of a log's checkpoints that were kept elsewhere, to be found in it again. */
#ifndef DURWARD_VERIFY_ANCHOR_H
#define DURWARD_VERIFY_ANCHOR_H

#include "err.h"
#include "signing_key.h"

struct verify_anchor;

/* An anchor file: lines that hold a checkpoint's JSON object from the first '{' on (syslog may put
 * its own text before it); other lines are passed over. Those not signed by the key are an error.
 */
struct verify_anchor *verify_anchor_read(int fd, const struct signing_key *key, struct err *err);
void verify_anchor_free(struct verify_anchor *a);
/* A checkpoint line of the log: 1 when the anchor has this very line, else 0. */
unsigned verify_anchor_seen(struct verify_anchor *a, uint64_t seq, struct slice line);
/* One of the anchor's, not before `first`, was not seen. */
bool verify_anchor_missing(const struct verify_anchor *a, uint64_t first, uint64_t *seq);

#endif
