/* Copies of checkpoints that were kept elsewhere, to be found again: of a daemon's log and of those
 * of runs beside it, which have its key and may share the anchor. */
#ifndef DURWARD_VERIFY_ANCHOR_H
#define DURWARD_VERIFY_ANCHOR_H

#include "err.h"
#include "signing_key.h"

struct verify_anchor;

/* An anchor file: lines that hold a checkpoint's JSON object from the first '{' on; the word before
 * it is the log's name if it begins with "run-", else the log is the daemon's (syslog may put its
 * own text before either). Other lines are passed over. Those not signed by the key are an error.
 */
struct verify_anchor *verify_anchor_read(int fd, const struct signing_key *key, struct err *err);
void verify_anchor_free(struct verify_anchor *a);
/* A checkpoint line of the log: 1 when the anchor has this very line, else 0. */
unsigned verify_anchor_seen(struct verify_anchor *a, uint64_t seq, struct slice line);
/* How many there are of this log ("": the daemon's). */
size_t verify_anchor_of(const struct verify_anchor *a, const char *log);
/* One of this log's, not before `first`, was seen in none of those that were walked. After this,
 * nothing more is told of the log. */
bool verify_anchor_missing(struct verify_anchor *a, const char *log, uint64_t first, uint64_t *seq);
/* The next log of which nothing was told, and the first checkpoint of it that was not seen; it is
 * told by that. NULL: none. */
const char *verify_anchor_absent(struct verify_anchor *a, uint64_t *seq);

#endif
