#include "patience.h"

#include <time.h>

enum { STEP_MS = 20 };

bool patience_wait(struct patience *p)
{
    static const struct timespec step = {.tv_nsec = STEP_MS * 1000000L};
    if (p->waited >= PATIENCE_MS)
        return false;
    p->waited += STEP_MS;
    nanosleep(&step, NULL);
    return true;
}
