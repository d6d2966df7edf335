/* An event loop of the suite's own. */
#ifndef DURWARD_TEST_LOOP_BED_H
#define DURWARD_TEST_LOOP_BED_H

#include <event2/event.h>

static struct event_base *base;

static int setup(void)
{
    base = event_base_new();
    return base ? 0 : -1;
}

static int teardown(void)
{
    event_base_free(base);
    return 0;
}

#endif
