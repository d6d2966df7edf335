/* Keeps a token bucket for each sandbox. What was written may take a bucket below zero, but never
 * so far that the sandbox stays silent for good. */
#include "shares.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

enum { BUCKETS = 1024, OWED_MIN = 8 << 20 };

struct share {
    LIST_ENTRY(share) same; /* bucket */
    struct shares *all;
    unsigned holders, times;
    int64_t left; /* below 0: owed */
    uint64_t at_ms;
    char name[SHARE_NAME_MAX];
};

struct shares {
    int64_t burst, rate;
    size_t n; /* that nobody holds */
    LIST_HEAD(, share) bucket[BUCKETS];
};

static int64_t most(const struct share *x)
{
    return x->all->burst * (int64_t)x->times;
}

struct shares *shares_new(uint64_t burst, uint64_t rate)
{
    struct shares *s = calloc(1, sizeof *s);
    if (s == NULL)
        return NULL;
    /* so that no product of them overflows */
    s->burst = (int64_t)(burst < INT64_C(1) << 50 ? burst : UINT64_C(1) << 50);
    s->rate = (int64_t)(rate < INT64_C(1) << 40 ? rate : UINT64_C(1) << 40);
    for (size_t i = 0; i < BUCKETS; i++)
        LIST_INIT(&s->bucket[i]);
    return s;
}

void shares_free(struct shares *s)
{
    struct share *x;
    if (s == NULL)
        return;
    for (size_t i = 0; i < BUCKETS; i++)
        while ((x = LIST_FIRST(&s->bucket[i])) != NULL) {
            LIST_REMOVE(x, same);
            free(x);
        }
    free(s);
}

/* What came in since the last look. */
static void refill(struct share *x, uint64_t now_ms)
{
    uint64_t ms = now_ms > x->at_ms ? now_ms - x->at_ms : 0;
    int64_t room = most(x) - x->left, rate = x->all->rate * (int64_t)x->times;
    x->at_ms = now_ms > x->at_ms ? now_ms : x->at_ms;
    if (rate == 0 || ms == 0)
        return;
    if (ms / 1000 > (uint64_t)(room / rate))
        x->left = most(x);
    else
        x->left += rate / 1000 * (int64_t)ms + rate % 1000 * (int64_t)ms / 1000;
    if (x->left > most(x))
        x->left = most(x);
}

static size_t bucket_of(const char *name)
{
    uint32_t h = 2166136261U;
    for (; *name; name++)
        h = (h ^ (unsigned char)*name) * 16777619U;
    return h % BUCKETS;
}

static void make_room(struct shares *s, uint64_t now_ms)
{
    struct share *x, *least = NULL;
    for (size_t i = 0; i < BUCKETS; i++)
        LIST_FOREACH(x, &s->bucket[i], same)
        {
            if (x->holders)
                continue;
            refill(x, now_ms);
            if (least == NULL || most(x) - x->left < most(least) - least->left)
                least = x;
        }
    if (least == NULL)
        return;
    LIST_REMOVE(least, same);
    free(least);
    s->n--;
}

struct share *shares_get(struct shares *s, const char *name, unsigned times, uint64_t now_ms)
{
    struct share *x;
    size_t at = bucket_of(name);
    LIST_FOREACH(x, &s->bucket[at], same)
    if (strncmp(x->name, name, sizeof x->name - 1) == 0)
        return x;
    if (s->n >= SHARES_MAX)
        make_room(s, now_ms);
    if ((x = calloc(1, sizeof *x)) == NULL)
        return NULL;
    snprintf(x->name, sizeof x->name, "%s", name);
    x->all = s;
    x->times = times;
    x->left = most(x);
    x->at_ms = now_ms;
    LIST_INSERT_HEAD(&s->bucket[at], x, same);
    s->n++;
    return x;
}

void share_hold(struct share *x)
{
    if (x->holders++ == 0)
        x->all->n--;
}

void share_drop(struct share *x)
{
    if (x && --x->holders == 0)
        x->all->n++;
}

uint64_t shares_burst(const struct shares *s)
{
    return (uint64_t)s->burst;
}

size_t shares_count(const struct shares *s)
{
    return s->n;
}

void share_times(struct share *x, unsigned times, uint64_t now_ms)
{
    refill(x, now_ms);
    if (times > x->times) /* what there is more of is had at once */
        x->left += x->all->burst * (int64_t)(times - x->times);
    x->times = times;
    if (x->left > most(x))
        x->left = most(x);
}

void share_charge(struct share *x, uint64_t bytes, uint64_t now_ms)
{
    refill(x, now_ms);
    if (bytes < SHARE_RECORD)
        bytes = SHARE_RECORD;
    /* what is owed is bounded too: whoever wrote far too much is heard again some day */
    int64_t least = -most(x) - OWED_MIN;
    if (x->left < least + (int64_t)bytes)
        x->left = least;
    else
        x->left -= (int64_t)bytes;
}

uint64_t share_left(struct share *x, uint64_t used, uint64_t now_ms)
{
    refill(x, now_ms);
    int64_t left = x->left;
    if (used < (uint64_t)x->all->burst)
        left -= (x->all->burst - (int64_t)used) * (int64_t)x->times;
    return left > 0 ? (uint64_t)left : 0;
}
