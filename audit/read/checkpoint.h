/* Checkpoints: signed lines of the log itself. Each says the Merkle root over the lines from the
 * checkpoint before it (that line included; line 1 for the first) to the line before itself, so one
 * record can be proven without the rest of the log, and a copy kept elsewhere (the anchor) shows
 * any rollback.
 *
 * {"seq":N,"prev":…,"kind":"checkpoint",…,"first":F,"root":"hex","signature":"hex"}: the signature
 * (Ed25519) is over "durward audit checkpoint 1\n" and F, N-1, root, prev, time, each followed by a
 * newline. */
#ifndef DURWARD_CHECKPOINT_H
#define DURWARD_CHECKPOINT_H

#include "err.h"
#include "log_file.h"
#include "signing_key.h"

struct checkpoint {
    uint64_t first, last; /* the lines it covers */
    unsigned char root[CHAIN_HASH];
    unsigned char prev[CHAIN_HASH]; /* hash of line `last` */
    char time[TIMESTAMP_MAX];
    unsigned char signature[SIGNATURE_SIZE];
};

/* Put a checkpoint over what came since the last one. 1: put; 0: nothing new to cover; -1. */
int checkpoint_put(struct log_file *log, const struct signing_key *key, uint64_t now_ns);
/* Read one off a line of that kind. 0, or -1 when it is malformed. */
int checkpoint_parse(struct slice line, struct checkpoint *ret);
enum { CHECKPOINT_SIGNATURE_HEX = 2 * SIGNATURE_SIZE + 1 };
void checkpoint_signature_hex(const unsigned char sig[SIGNATURE_SIZE],
                              char out[CHECKPOINT_SIGNATURE_HEX]);
int checkpoint_signature_unhex(const char *hex, unsigned char sig[SIGNATURE_SIZE]);
bool checkpoint_signed_by(const struct checkpoint *c, const struct signing_key *key);

#endif
