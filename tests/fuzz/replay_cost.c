/* The allocator is wrapped at link time (--wrap), so that only what the target itself asks for
 * counts. */
#include "replay_cost.h"

#include <malloc.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ROUNDS = 7, ROUND_NS = 100000 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
void *__real_malloc(size_t n);
void *__real_calloc(size_t k, size_t n);
void *__real_realloc(void *p, size_t n);
void __real_free(void *p);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t k, size_t n);
void *__wrap_realloc(void *p, size_t n);
void __wrap_free(void *p);

/* What the target holds beside what it held at first; below zero once it has freed what a library
 * allocated, whose own calls are not wrapped. */
static ptrdiff_t held, most;

static ptrdiff_t size_of(void *p)
{
    return p ? (ptrdiff_t)malloc_usable_size(p) : 0;
}

static void *took(void *p)
{
    held += size_of(p);
    most = held > most ? held : most;
    return p;
}

void *__wrap_malloc(size_t n)
{
    return took(__real_malloc(n));
}

void *__wrap_calloc(size_t k, size_t n)
{
    return took(__real_calloc(k, n));
}

void *__wrap_realloc(void *p, size_t n)
{
    held -= size_of(p);
    return took(__real_realloc(p, n));
}

void __wrap_free(void *p)
{
    held -= size_of(p);
    __real_free(p);
}

static uint64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

void replay_cost(const uint8_t *data, size_t n, struct replay_cost *c)
{
    LLVMFuzzerTestOneInput(data, n); /* what is made once is made now */
    ptrdiff_t before = held;
    most = held;
    LLVMFuzzerTestOneInput(data, n);
    *c = (struct replay_cost){UINT64_MAX, (size_t)(most - before)};
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t begun = now(), spent = 0, times = 0;
        while (spent < ROUND_NS) {
            LLVMFuzzerTestOneInput(data, n);
            times++;
            spent = now() - begun;
        }
        c->ns = spent / times < c->ns ? spent / times : c->ns;
    }
}
