#include "merkle.h"

#include <stdlib.h>
#include <string.h>

void merkle_clear(struct merkle *m)
{
    m->n = 0;
}

static int leaf(const unsigned char line_hash[CHAIN_HASH], unsigned char out[CHAIN_HASH])
{
    unsigned char text[1 + CHAIN_HASH] = {0};
    memcpy(text + 1, line_hash, CHAIN_HASH);
    return chain_hash((struct slice){(const char *)text, sizeof text}, out);
}

static int node(const unsigned char l[CHAIN_HASH], const unsigned char r[CHAIN_HASH],
                unsigned char out[CHAIN_HASH])
{
    unsigned char text[1 + 2 * CHAIN_HASH] = {1};
    memcpy(text + 1, l, CHAIN_HASH);
    memcpy(text + 1 + CHAIN_HASH, r, CHAIN_HASH);
    return chain_hash((struct slice){(const char *)text, sizeof text}, out);
}

int merkle_add(struct merkle *m, const unsigned char line_hash[CHAIN_HASH])
{
    unsigned char h[CHAIN_HASH];
    unsigned at = 0;
    if (m->n == UINT64_MAX || leaf(line_hash, h) < 0)
        return -1;
    for (uint64_t n = m->n; n & 1; n >>= 1)
        if (node(m->level[at++], h, h) < 0)
            return -1;
    memcpy(m->level[at], h, CHAIN_HASH);
    m->n++;
    return 0;
}

int merkle_root(const struct merkle *m, unsigned char root[CHAIN_HASH])
{
    bool any = false;
    for (unsigned at = 0; at < MERKLE_LEVELS; at++) {
        if (!(m->n >> at & 1))
            continue;
        if (!any)
            memcpy(root, m->level[at], CHAIN_HASH);
        else if (node(m->level[at], root, root) < 0)
            return -1;
        any = true;
    }
    return any ? 0 : -1;
}

static int subtree(const unsigned char (*h)[CHAIN_HASH], uint64_t n, unsigned char root[CHAIN_HASH])
{
    struct merkle m = {0};
    for (uint64_t i = 0; i < n; i++)
        if (merkle_add(&m, h[i]) < 0)
            return -1;
    return merkle_root(&m, root);
}

int merkle_path(const unsigned char (*h)[CHAIN_HASH], uint64_t n, uint64_t index,
                struct merkle_step path[MERKLE_LEVELS])
{
    int steps = 0;
    if (index >= n)
        return -1;
    while (n > 1) { /* from the root down; turned round at the end */
        uint64_t left = 1;
        while (left < n - left)
            left *= 2;
        bool in_left = index < left;
        struct merkle_step *s = &path[steps++];
        s->left = !in_left;
        if (subtree(in_left ? h + left : h, in_left ? n - left : left, s->hash) < 0)
            return -1;
        if (in_left) {
            n = left;
        } else {
            h += left;
            n -= left;
            index -= left;
        }
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
    if (leaf(line_hash, root) < 0)
        return -1;
    for (int i = 0; i < n; i++)
        if ((path[i].left ? node(path[i].hash, root, root) : node(root, path[i].hash, root)) < 0)
            return -1;
    return 0;
}
