/* What stands in the log where retention took records of one sandbox out of a closed file: how many
 * there were and whose, the hash of the last one, from which the next line goes on, and the roots
 * of the subtrees that they were, so that every checkpoint's Merkle root can still be made. Signed:
 * only the logger can say that a record is missing rightly. */
#ifndef DURWARD_GAP_H
#define DURWARD_GAP_H

#include "merkle.h"
#include "render.h"
#include "signing_key.h"
#include "timestamp.h"

enum { GAP_NODES = 2 * MERKLE_LEVELS };

struct gap {
    uint64_t first, count;          /* records */
    unsigned char prev[CHAIN_HASH]; /* of the line before */
    unsigned char last[CHAIN_HASH]; /* of the last record */
    char sandbox[RENDER_NAME_MAX + 1];
    char time[TIMESTAMP_MAX];
    size_t n;
    struct merkle_part node[GAP_NODES]; /* `at` only while it is made */
    unsigned char signature[SIGNATURE_SIZE];
};

/* One of its records: the leaf `at` of its tree. The first one sets first and prev beforehand. */
int gap_add(struct gap *g, uint64_t at, const unsigned char line_hash[CHAIN_HASH]) WUNUSED;
/* Its line, signed, without a newline. 0 or -1. */
int gap_render(struct gap *g, const struct signing_key *key, uint64_t now_ns,
               struct buf *out) WUNUSED;
int gap_parse(struct slice line, struct gap *ret); /* 0, or -1: it is none */
bool gap_signed_by(const struct gap *g, const struct signing_key *key);
/* Its records become leaves of the tree. -1: they do not fit there. */
int gap_grow(const struct gap *g, struct merkle *m) WUNUSED;

#endif
