/* The hash chain of audit lines. Each line starts {"seq":N,"prev":"H": N counts lines of a
 * directory from 1 on over all its files, H is the SHA-256, in hex, of the line before (its bytes
 * without the newline); 64 zeros before the first. */
#ifndef DURWARD_CHAIN_H
#define DURWARD_CHAIN_H

#include "slice.h"

enum { CHAIN_HASH = 32, CHAIN_HEX = 2 * CHAIN_HASH + 1 };

struct chain { /* where the chain stands: its last line */
    uint64_t seq;
    unsigned char hash[CHAIN_HASH];
};

void chain_genesis(struct chain *c);
/* Hash of a line. 0, or -1 when the library failed. */
int chain_hash(struct slice line, unsigned char hash[CHAIN_HASH]) WUNUSED;
/* The line becomes the last one: seq + 1, its hash. */
int chain_step(struct chain *c, struct slice line) WUNUSED;
char *chain_hex(const unsigned char hash[CHAIN_HASH], char out[CHAIN_HEX]); /* returns out */
/* 64 lower-case hex digits. 0 or -1. */
int chain_unhex(struct slice hex, unsigned char hash[CHAIN_HASH]);
/* seq and prev off the front of a line; *rest is what follows (from the comma on). 0 or -1. */
int chain_parse(struct slice line, uint64_t *seq, unsigned char prev[CHAIN_HASH],
                struct slice *rest);

#endif
