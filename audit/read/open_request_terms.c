/* Looks a request up in eight places of a table of fixed size. Where all eight are taken, the
 * request that was put first gives way. */
#include "open_request_terms.h"

#include <stdlib.h>

enum { SLOTS = 16384, PLACES = 8 };

struct open_request_terms {
    uint64_t puts;
    struct begun at[SLOTS];
};

struct open_request_terms *open_request_terms_new(void)
{
    return calloc(1, sizeof(struct open_request_terms));
}

void open_request_terms_free(struct open_request_terms *t)
{
    free(t);
}

static struct begun *first_of(struct open_request_terms *t, uint32_t channel, uint64_t counter)
{
    uint64_t n = (counter ^ (uint64_t)channel << 40) * UINT64_C(0x9e3779b97f4a7c15);
    return &t->at[n >> 32 & (SLOTS - PLACES)];
}

struct begun *open_request_terms_find(struct open_request_terms *t, uint32_t channel,
                                      uint64_t counter)
{
    struct begun *b = first_of(t, channel, counter);
    for (int i = 0; i < PLACES; i++)
        if (b[i].n && b[i].channel == channel && b[i].counter == counter)
            return &b[i];
    return NULL;
}

struct begun *open_request_terms_put(struct open_request_terms *t, uint32_t channel,
                                     uint64_t counter)
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

void open_request_terms_add(struct begun *b, uint64_t term)
{
    if (b->n < OPEN_REQUEST_TERMS_MOST)
        b->term[b->n++] = term;
    else
        b->n = OPEN_REQUEST_TERMS_MOST + 1;
}
