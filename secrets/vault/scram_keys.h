/* The keys that one login's password gives with the salts of its servers (RFC 5802 3). Making them
 * is slow by intent; so those of the last few salts are kept, in memory for secrets, and new ones
 * are made only so often: who asks for proofs chooses the salts. */
#ifndef DURWARD_SCRAM_KEYS_H
#define DURWARD_SCRAM_KEYS_H

#include "compiler.h"
#include "err.h"
#include "scram_text.h"
#include "slice.h"

#include <stdint.h>

enum {
    SCRAM_KEYS_MAX = 8, /* salts of a login that are kept; the one that was used last goes last */
    SCRAM_KEYS_BURST = 32, /* that are made at once, */
    SCRAM_KEYS_RATE = 1,   /* and a second later so many more */
};

struct scram_keys;

struct scram_pair {
    unsigned char client[SCRAM_HASH], server[SCRAM_HASH];
};

struct scram_keys *scram_keys_new(void);    /* NULL: memory is out */
void scram_keys_free(struct scram_keys *k); /* NULL is fine; wipes */
void scram_keys_forget(struct scram_keys *k);
/* salt: bytes; now: seconds of a clock that does not jump. *made: they were not there. The caller
 * wipes *ret. */
int scram_keys_get(struct scram_keys *k, struct slice password, struct slice salt,
                   uint32_t iterations, int64_t now, struct scram_pair *ret, bool *made,
                   struct err *err) WUNUSED;
/* The same without keeping any. 0 or -1. */
int scram_keys_make(struct slice password, struct slice salt, uint32_t iterations,
                    struct scram_pair *ret) WUNUSED;

#endif
