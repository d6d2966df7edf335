/* Computes leaves, nodes, roots and paths with SHA-256. A tree that grows holds one hash for each 1
 * bit of its size; paths are worked out, all at once, of the parts that their caller collected. */
#include "merkle.h"

#include <stdlib.h>
#include <string.h>

void merkle_clear(struct merkle *m)
{
    m->n = 0;
}

int merkle_leaf(const unsigned char line_hash[CHAIN_HASH], unsigned char out[CHAIN_HASH])
{
    unsigned char text[1 + CHAIN_HASH] = {0};
    memcpy(text + 1, line_hash, CHAIN_HASH);
    return chain_hash((struct slice){(const char *)text, sizeof text}, out);
}

int merkle_join(const unsigned char l[CHAIN_HASH], const unsigned char r[CHAIN_HASH],
                unsigned char out[CHAIN_HASH])
{
    unsigned char text[1 + 2 * CHAIN_HASH] = {1};
    memcpy(text + 1, l, CHAIN_HASH);
    memcpy(text + 1 + CHAIN_HASH, r, CHAIN_HASH);
    return chain_hash((struct slice){(const char *)text, sizeof text}, out);
}

int merkle_add_node(struct merkle *m, unsigned level, const unsigned char hash[CHAIN_HASH])
{
    unsigned char h[CHAIN_HASH];
    uint64_t size = UINT64_C(1) << level;
    unsigned at = level;
    if (level >= MERKLE_LEVELS - 1 || m->n % size || m->n > UINT64_MAX - size)
        return -1;
    memcpy(h, hash, sizeof h);
    for (uint64_t n = m->n >> level; n & 1; n >>= 1)
        if (merkle_join(m->level[at++], h, h) < 0)
            return -1;
    memcpy(m->level[at], h, CHAIN_HASH);
    m->n += size;
    return 0;
}

int merkle_add(struct merkle *m, const unsigned char line_hash[CHAIN_HASH])
{
    unsigned char h[CHAIN_HASH];
    return merkle_leaf(line_hash, h) < 0 ? -1 : merkle_add_node(m, 0, h);
}

int merkle_root(const struct merkle *m, unsigned char root[CHAIN_HASH])
{
    bool any = false;
    for (unsigned at = 0; at < MERKLE_LEVELS; at++) {
        if (!(m->n >> at & 1))
            continue;
        if (!any)
            memcpy(root, m->level[at], CHAIN_HASH);
        else if (merkle_join(m->level[at], root, root) < 0)
            return -1;
        any = true;
    }
    return any ? 0 : -1;
}

/* A part of the tree: which parts it is made of, and which leaves a path is wanted of. */
struct span {
    const struct merkle_part *part;
    size_t n_parts;
    struct merkle_want *want;
    size_t n_want;
    uint64_t at, n; /* its leaves */
};

static int root_of(const struct span *s, unsigned char root[CHAIN_HASH]);

static void step(struct merkle_want *w, size_t n, const unsigned char hash[CHAIN_HASH], bool left)
{
    for (size_t i = 0; i < n; i++) {
        struct merkle_step *to = &w[i].path[w[i].n++];
        memcpy(to->hash, hash, CHAIN_HASH);
        to->left = left;
    }
}

static int root_of_two(const struct span *s, unsigned char root[CHAIN_HASH])
{
    unsigned char left_root[CHAIN_HASH], right_root[CHAIN_HASH];
    struct span left = *s, right = *s;
    left.n = 1;
    while (left.n < s->n - left.n)
        left.n *= 2;
    right.at = s->at + left.n;
    right.n = s->n - left.n;
    left.n_parts = left.n_want = 0;
    while (left.n_parts < s->n_parts && s->part[left.n_parts].at < right.at)
        left.n_parts++;
    while (left.n_want < s->n_want && s->want[left.n_want].index < right.at)
        left.n_want++;
    right.part += left.n_parts;
    right.n_parts -= left.n_parts;
    right.want = s->n_want ? s->want + left.n_want : NULL;
    right.n_want -= left.n_want;
    if (root_of(&left, left_root) < 0 || root_of(&right, right_root) < 0)
        return -1;
    step(left.want, left.n_want, right_root, false);
    step(right.want, right.n_want, left_root, true);
    return merkle_join(left_root, right_root, root);
}

/* Each hash of the tree is made once, however many paths are wanted. */
static int root_of(const struct span *s, unsigned char root[CHAIN_HASH])
{
    if (s->n_parts == 0)
        return -1;
    if (s->n_parts > 1 || UINT64_C(1) << s->part->level != s->n)
        return s->n > 1 ? root_of_two(s, root) : -1;
    if (s->part->at != s->at || (s->n > 1 && s->n_want > 0))
        return -1; /* what a gap stands for has no path */
    memcpy(root, s->part->hash, CHAIN_HASH);
    return 0;
}

int merkle_paths(const struct merkle_part *p, size_t n_parts, struct merkle_want *want,
                 size_t n_want)
{
    unsigned char root[CHAIN_HASH];
    uint64_t n = n_parts ? p[n_parts - 1].at + (UINT64_C(1) << p[n_parts - 1].level) : 0;
    struct span all = {p, n_parts, want, n_want, 0, n};
    if (n == 0 || n_want == 0 || want[n_want - 1].index >= n)
        return -1;
    for (size_t i = 0; i < n_want; i++)
        want[i].n = 0;
    return root_of(&all, root);
}

int merkle_climb(const unsigned char line_hash[CHAIN_HASH], const struct merkle_step *path, int n,
                 unsigned char root[CHAIN_HASH])
{
    if (merkle_leaf(line_hash, root) < 0)
        return -1;
    for (int i = 0; i < n; i++)
        if ((path[i].left ? merkle_join(path[i].hash, root, root)
                          : merkle_join(root, path[i].hash, root)) < 0)
            return -1;
    return 0;
}
