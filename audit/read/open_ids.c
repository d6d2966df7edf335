/* Holds the open ids in a hash table that grows up to its bound, and those begun lately in a ring
 * of bits that ends at the highest counter. */
#include "open_ids.h"

#include <stdlib.h>
#include <string.h>

enum { START = 64, SLOTS_MAX = OPEN_IDS_MAX * 2 };

/* Open addressing with linear probing, at most half full; 0 is an empty slot. */
struct open_ids {
    uint64_t *slot;
    size_t slots, count;
    size_t cursor;                           /* open_ids_any goes on from here */
    uint64_t highest;                        /* counter begun; the window ends here */
    unsigned char seen[OPEN_IDS_WINDOW / 8]; /* ring of bits, counter modulo the window */
};

struct open_ids *open_ids_new(void)
{
    struct open_ids *o = calloc(1, sizeof *o);
    if (o == NULL || (o->slot = calloc(START, sizeof *o->slot)) == NULL) {
        free(o);
        return NULL;
    }
    o->slots = START;
    return o;
}

void open_ids_free(struct open_ids *o)
{
    if (o == NULL)
        return;
    free(o->slot);
    free(o);
}

static size_t home(const struct open_ids *o, uint64_t counter)
{
    return (size_t)((counter * 0x9e3779b97f4a7c15ULL) >> 32) & (o->slots - 1);
}

/* The slot that holds it, or the empty one where it belongs. */
static size_t find(const struct open_ids *o, uint64_t counter)
{
    size_t i = home(o, counter);
    while (o->slot[i] && o->slot[i] != counter)
        i = (i + 1) & (o->slots - 1);
    return i;
}

static int grow(struct open_ids *o)
{
    struct open_ids old = *o;
    if (o->slots >= SLOTS_MAX)
        return -1;
    o->slots *= 2;
    o->slot = calloc(o->slots, sizeof *o->slot);
    if (o->slot == NULL) {
        o->slot = old.slot;
        o->slots = old.slots;
        return -1;
    }
    for (size_t i = 0; i < old.slots; i++)
        if (old.slot[i])
            o->slot[find(o, old.slot[i])] = old.slot[i];
    free(old.slot);
    o->cursor = 0;
    return 0;
}

/* Empties slot i and moves back what probed past it. */
static void drop(struct open_ids *o, size_t i)
{
    size_t mask = o->slots - 1;
    for (size_t j = (i + 1) & mask; o->slot[j]; j = (j + 1) & mask) {
        size_t h = home(o, o->slot[j]);
        if (((j - h) & mask) >= ((j - i) & mask)) {
            o->slot[i] = o->slot[j];
            i = j;
        }
    }
    o->slot[i] = 0;
    o->count--;
}

static bool was_seen(const struct open_ids *o, uint64_t counter)
{
    uint64_t bit = counter % OPEN_IDS_WINDOW;
    if (counter > o->highest)
        return false;
    if (o->highest - counter >= OPEN_IDS_WINDOW)
        return true;
    return o->seen[bit / 8] >> (bit % 8) & 1;
}

static void mark(struct open_ids *o, uint64_t counter)
{
    if (counter > o->highest) {
        if (counter - o->highest >= OPEN_IDS_WINDOW) {
            memset(o->seen, 0, sizeof o->seen);
        } else {
            for (uint64_t c = o->highest + 1; c <= counter; c++)
                o->seen[c % OPEN_IDS_WINDOW / 8] &= (unsigned char)~(1U << (c % 8));
        }
        o->highest = counter;
    }
    o->seen[counter % OPEN_IDS_WINDOW / 8] |= (unsigned char)(1U << (counter % 8));
}

enum open_ids_result open_ids_begin(struct open_ids *o, uint64_t counter, bool opens)
{
    if (was_seen(o, counter))
        return OPEN_IDS_SECOND;
    if (opens) {
        if (o->count >= OPEN_IDS_MAX || (o->count * 2 >= o->slots && grow(o) < 0))
            return OPEN_IDS_FULL;
        o->slot[find(o, counter)] = counter;
        o->count++;
    }
    mark(o, counter);
    return OPEN_IDS_OK;
}

enum open_ids_result open_ids_end(struct open_ids *o, uint64_t counter)
{
    size_t i = find(o, counter);
    if (o->slot[i] == counter && counter) {
        drop(o, i);
        return OPEN_IDS_OK;
    }
    return was_seen(o, counter) ? OPEN_IDS_SECOND : OPEN_IDS_UNKNOWN;
}

size_t open_ids_count(const struct open_ids *o)
{
    return o->count;
}

uint64_t open_ids_any(struct open_ids *o)
{
    if (o->count == 0)
        return 0;
    while (o->slot[o->cursor & (o->slots - 1)] == 0)
        o->cursor++;
    return o->slot[o->cursor & (o->slots - 1)];
}
