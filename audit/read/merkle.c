/* Computes leaves, nodes, roots and paths with SHA-256. A tree that grows holds one hash for each 1
 * bit of its size; a path is worked out of the parts that its caller collected. */
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

/* The root of n leaves from `at` on, where they are, or are part of, some of these. */
static int subtree(const struct merkle_part *p, size_t n_parts, uint64_t at, uint64_t n,
                   unsigned char root[CHAIN_HASH])
{
    struct merkle m = {0};
    for (size_t i = 0; i < n_parts; i++) {
        uint64_t size = UINT64_C(1) << p[i].level;
        if (p[i].at < at || p[i].at >= at + n)
            continue;
        if (p[i].at != at + m.n || size > n - m.n || merkle_add_node(&m, p[i].level, p[i].hash) < 0)
            return -1;
    }
    return m.n == n ? merkle_root(&m, root) : -1;
}

int merkle_path(const struct merkle_part *p, size_t n_parts, uint64_t index,
                struct merkle_step path[MERKLE_LEVELS])
{
    int steps = 0;
    uint64_t at = 0, n = n_parts ? p[n_parts - 1].at + (UINT64_C(1) << p[n_parts - 1].level) : 0;
    if (index >= n)
        return -1;
    while (n > 1) { /* from the root down; turned round at the end */
        uint64_t left = 1;
        while (left < n - left)
            left *= 2;
        bool in_left = index < at + left;
        struct merkle_step *s = &path[steps++];
        s->left = !in_left;
        if (subtree(p, n_parts, in_left ? at + left : at, in_left ? n - left : left, s->hash) < 0)
            return -1;
        if (!in_left)
            at += left;
        n = in_left ? left : n - left;
    }
    for (int i = 0; i < steps / 2; i++) {
        struct merkle_step s = path[i];
        path[i] = path[steps - 1 - i];
        path[steps - 1 - i] = s;
    }
    return steps;
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
