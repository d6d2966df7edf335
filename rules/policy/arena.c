/* Hands out memory from blocks of 8 KiB, or from a block of its own for a larger piece, and frees
 * all blocks at once. */
#include "arena.h"

#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

struct block {
    struct block *next;
    size_t used, size;
    alignas(max_align_t) unsigned char data[];
};

struct arena {
    struct block *blocks; /* the first one is being filled */
};

enum { BLOCK_SIZE = 8192 };

struct arena *arena_new(void)
{
    struct arena *a = calloc(1, sizeof *a);
    if (a == NULL)
        abort();
    return a;
}

void arena_free(struct arena *a)
{
    if (a == NULL)
        return;
    while (a->blocks) {
        struct block *b = a->blocks;
        a->blocks = b->next;
        free(b);
    }
    free(a);
}

void *arena_zalloc(struct arena *a, size_t count, size_t size)
{
    size_t want, align = alignof(max_align_t);
    if (__builtin_mul_overflow(count, size, &want) || want > SIZE_MAX / 2)
        abort();
    want = (want + align - 1) / align * align;
    struct block *b = a->blocks;
    if (b == NULL || b->size - b->used < want) {
        size_t room = want > BLOCK_SIZE ? want : BLOCK_SIZE;
        struct block *fresh = calloc(1, sizeof *fresh + room);
        if (fresh == NULL)
            abort();
        fresh->size = room;
        fresh->next = b;
        a->blocks = b = fresh;
    }
    void *p = b->data + b->used;
    b->used += want;
    return p;
}

char *arena_slice(struct arena *a, struct slice s)
{
    char *p = arena_zalloc(a, s.n + 1, 1);
    if (s.n)
        memcpy(p, s.p, s.n);
    return p;
}

char *arena_str(struct arena *a, const char *s)
{
    return s ? arena_slice(a, slice_str(s)) : NULL;
}

void *arena_grow(struct arena *a, const void *old, size_t count, size_t want, size_t size)
{
    void *p = arena_zalloc(a, want, size);
    if (count)
        memcpy(p, old, count * size);
    return p;
}
