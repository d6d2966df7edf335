/* nghttp2's allocator: each piece has its length in front, so that it can be counted, and wiped
 * where that is asked for. */
#include "http2_memory.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* In front of each piece: how long it is. */
union piece {
    size_t n;
    max_align_t align;
};

static void *take(size_t n, void *user)
{
    struct http2_memory *m = user;
    if (n > m->max || m->used > m->max - n)
        return NULL;
    union piece *p = malloc(sizeof *p + n);
    if (p == NULL)
        return NULL;
    p->n = n;
    m->used += n;
    return p + 1;
}

static void give(void *at, void *user)
{
    struct http2_memory *m = user;
    if (at == NULL)
        return;
    union piece *p = (union piece *)at - 1;
    m->used -= p->n;
    if (m->wipe)
        explicit_bzero(at, p->n);
    free(p);
}

static void *take_zeroed(size_t k, size_t each, void *user)
{
    size_t n;
    if (__builtin_mul_overflow(k, each, &n))
        return NULL;
    void *at = take(n, user);
    if (at)
        memset(at, 0, n);
    return at;
}

static void *take_again(void *at, size_t n, void *user)
{
    if (at == NULL)
        return take(n, user);
    size_t before = ((union piece *)at - 1)->n;
    void *to = take(n, user);
    if (to == NULL)
        return NULL;
    memcpy(to, at, before < n ? before : n);
    give(at, user);
    return to;
}

void http2_memory_init(struct http2_memory *m, size_t max, bool wipe)
{
    m->mem = (nghttp2_mem){m, take, give, take_zeroed, take_again};
    m->used = 0;
    m->max = max;
    m->wipe = wipe;
}
