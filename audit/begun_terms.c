#include "begun_terms.h"

#include <stdlib.h>

enum { SLOTS = 16384, PLACES = 8 };

struct begun_terms {
    uint64_t puts;
    struct begun at[SLOTS];
};

struct begun_terms *begun_terms_new(void)
{
    return calloc(1, sizeof(struct begun_terms));
}

void begun_terms_free(struct begun_terms *t)
{
    free(t);
}

static struct begun *first_of(struct begun_terms *t, uint32_t channel, uint64_t counter)
{
    uint64_t n = (counter ^ (uint64_t)channel << 40) * UINT64_C(0x9e3779b97f4a7c15);
    return &t->at[n >> 32 & (SLOTS - PLACES)];
}

struct begun *begun_terms_find(struct begun_terms *t, uint32_t channel, uint64_t counter)
{
    struct begun *b = first_of(t, channel, counter);
    for (int i = 0; i < PLACES; i++)
        if (b[i].n && b[i].channel == channel && b[i].counter == counter)
            return &b[i];
    return NULL;
}

struct begun *begun_terms_put(struct begun_terms *t, uint32_t channel, uint64_t counter)
{
    struct begun *b = first_of(t, channel, counter), *best = b;
    for (int i = 0; i < PLACES; i++) {
        if (b[i].n == 0) {
            best = &b[i];
            break;
        }
        if (b[i].since < best->since)
            best = &b[i];
    }
    *best = (struct begun){.channel = channel, .counter = counter, .since = ++t->puts};
    return best;
}

void begun_terms_add(struct begun *b, uint64_t term)
{
    if (b->n < BEGUN_TERMS_MOST)
        b->term[b->n++] = term;
    else
        b->n = BEGUN_TERMS_MOST + 1;
}
