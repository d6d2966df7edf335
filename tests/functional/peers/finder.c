/* Which of some byte strings lie in a buffer, in one pass over it; loaded by harness/scan.py.
 *
 * Of each string the four bytes at its first STEP places are in a table; of the buffer only every
 * STEP-th place is looked up, since one of those falls on one of these wherever the string lies. A
 * string has at least SHORTEST bytes. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { STEP = 8, NGRAM = 4, SHORTEST = STEP + NGRAM - 1, BITS = 16, MANY = 1024 };

struct entry {
    uint16_t needle, offset;
    int32_t next; /* in the same bucket; -1: none */
};

struct finder {
    uint32_t count;
    const uint8_t *needle[MANY];
    size_t size[MANY];
    int32_t bucket[1 << BITS];
    struct entry entry[MANY * STEP];
};

static uint32_t bucket_of(const uint8_t *p)
{
    uint32_t v;
    memcpy(&v, p, NGRAM);
    return (v * 2654435761U) >> (32 - BITS);
}

void finder_free(struct finder *f)
{
    for (uint32_t i = 0; f && i < f->count; i++)
        free((void *)f->needle[i]);
    free(f);
}

/* NULL: too many strings, one is too short, or no memory. */
struct finder *finder_new(const uint8_t *const *needles, const size_t *sizes, size_t count)
{
    struct finder *f = calloc(1, sizeof *f);
    if (f == NULL || count > MANY) {
        free(f);
        return NULL;
    }
    memset(f->bucket, 0xff, sizeof f->bucket);
    for (uint32_t i = 0; i < count; i++) {
        uint8_t *copy = sizes[i] < SHORTEST ? NULL : malloc(sizes[i]);
        if (copy == NULL) {
            finder_free(f);
            return NULL;
        }
        memcpy(copy, needles[i], sizes[i]);
        f->needle[i] = copy;
        f->size[i] = sizes[i];
        f->count = i + 1;
        for (uint32_t k = 0; k < STEP; k++) {
            uint32_t b = bucket_of(copy + k);
            struct entry e = {(uint16_t)i, (uint16_t)k, f->bucket[b]};
            f->entry[i * STEP + k] = e;
            f->bucket[b] = (int32_t)(i * STEP + k);
        }
    }
    return f;
}

/* found[i] becomes 1 where needle i is in data; -> how many of them are. */
size_t finder_search(const struct finder *f, const uint8_t *data, size_t n, uint8_t *found)
{
    size_t many = 0;
    memset(found, 0, f->count);
    for (size_t at = 0; at + NGRAM <= n; at += STEP)
        for (int32_t x = f->bucket[bucket_of(data + at)]; x >= 0; x = f->entry[x].next) {
            const struct entry *e = &f->entry[x];
            size_t size = f->size[e->needle];
            if (found[e->needle] || at < e->offset || size > n - (at - e->offset) ||
                memcmp(data + at - e->offset, f->needle[e->needle], size) != 0)
                continue;
            found[e->needle] = 1;
            many++;
        }
    return many;
}
