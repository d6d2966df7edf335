/* Counts what is freed and, five seconds after the eighth, gives the heap's free pages back with
 * malloc_trim. */
#include "heap_trim.h"

#include "compiler.h"

#include <event2/event.h>
#include <malloc.h>
#include <stdlib.h>

enum { HEAP_TRIM_MIN = 8, HEAP_TRIM_SECONDS = 5 };

struct heap_trim {
    struct event *soon;
    unsigned n; /* since it was last given back */
};

static void on_soon(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
    struct heap_trim *s = arg;
    s->n = 0;
    (void)malloc_trim(0);
}

struct heap_trim *heap_trim_new(struct event_base *base)
{
    struct heap_trim *s = calloc(1, sizeof *s);
    if (s == NULL || (s->soon = event_new(base, -1, 0, on_soon, s)) == NULL) {
        free(s);
        return NULL;
    }
    return s;
}

void heap_trim_free(struct heap_trim *s)
{
    if (s)
        event_free(s->soon);
    free(s);
}

void heap_trim_note(struct heap_trim *s)
{
    static const struct timeval soon = {HEAP_TRIM_SECONDS, 0};
    if (s && ++s->n == HEAP_TRIM_MIN)
        event_add(s->soon, &soon);
}
