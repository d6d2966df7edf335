/* Sleeps 20 ms at a call and counts how long it has waited. */
#include "start_wait.h"

#include <time.h>

enum { STEP_MS = 20 };

bool start_wait_sleep(struct start_wait *p)
{
    static const struct timespec step = {.tv_nsec = STEP_MS * 1000000L};
    if (p->waited >= START_WAIT_MS)
        return false;
    p->waited += STEP_MS;
    nanosleep(&step, NULL);
    return true;
}
