#include "shed.h"

#include "compiler.h"

#include <event2/event.h>
#include <malloc.h>
#include <stdlib.h>

enum { SHED_MIN = 32, SHED_SECONDS = 5 };

struct shed {
    struct event *soon;
    unsigned n; /* since it was last given back */
};

static void on_soon(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
    struct shed *s = arg;
    s->n = 0;
    (void)malloc_trim(0);
}

struct shed *shed_new(struct event_base *base)
{
    struct shed *s = calloc(1, sizeof *s);
    if (s == NULL || (s->soon = event_new(base, -1, 0, on_soon, s)) == NULL) {
        free(s);
        return NULL;
    }
    return s;
}

void shed_free(struct shed *s)
{
    if (s)
        event_free(s->soon);
    free(s);
}

void shed_note(struct shed *s)
{
    static const struct timeval soon = {SHED_SECONDS, 0};
    if (s && ++s->n == SHED_MIN)
        event_add(s->soon, &soon);
}
