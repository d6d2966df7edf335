/* A Merkle tree over the hashes of audit lines, as RFC 9162 2.1 defines it: a leaf is
 * SHA-256(0x00 | line hash), a node SHA-256(0x01 | left | right). Grown leaf by leaf in constant
 * memory; a path needs the leaves themselves. */
#ifndef DURWARD_MERKLE_H
#define DURWARD_MERKLE_H

#include "chain.h"

enum { MERKLE_LEVELS = 64 };

struct merkle {
    uint64_t n;                                     /* leaves */
    unsigned char level[MERKLE_LEVELS][CHAIN_HASH]; /* of whole subtrees: where n has a 1 bit */
};

/* One step from a leaf to the root: the other child, and on which side it stands. */
struct merkle_step {
    unsigned char hash[CHAIN_HASH];
    bool left;
};

/* A leaf (level 0), or a subtree of which no more is known. */
struct merkle_part {
    uint64_t at; /* its first leaf */
    unsigned level;
    unsigned char hash[CHAIN_HASH];
};

void merkle_clear(struct merkle *m);
int merkle_add(struct merkle *m, const unsigned char line_hash[CHAIN_HASH]) WUNUSED; /* 0 or -1 */
int merkle_leaf(const unsigned char line_hash[CHAIN_HASH], unsigned char out[CHAIN_HASH]) WUNUSED;
int merkle_join(
    const unsigned char left[CHAIN_HASH], const unsigned char right[CHAIN_HASH],
    unsigned char out[CHAIN_HASH]) WUNUSED; /* of two of the same size; out may be one */
/* A whole subtree of 2^level leaves; the tree must have a multiple of that many. */
int merkle_add_node(struct merkle *m, unsigned level, const unsigned char h[CHAIN_HASH]) WUNUSED;
/* -1 when the tree is empty or the library failed. */
int merkle_root(const struct merkle *m, unsigned char root[CHAIN_HASH]) WUNUSED;
/* A leaf whose path is wanted. */
struct merkle_want {
    uint64_t index;
    int n; /* steps of its path */
    struct merkle_step path[MERKLE_LEVELS];
};

/* The paths of these leaves, in ascending order, where the whole tree is these parts. 0 or -1. */
int merkle_paths(const struct merkle_part *p, size_t n_parts, struct merkle_want *want,
                 size_t n_want) WUNUSED;
/* The root that a line hash and its path lead to. */
int merkle_climb(const unsigned char line_hash[CHAIN_HASH], const struct merkle_step *path, int n,
                 unsigned char root[CHAIN_HASH]) WUNUSED;

#endif
