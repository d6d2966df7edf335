/* Who puts a request to a session: a downstream without an upstream yet, whichever version of HTTP
 * its connection speaks. */
#ifndef DURWARD_REQUESTER_H
#define DURWARD_REQUESTER_H

#include "stream.h"

struct requester {
    struct downstream downstream;
    /* To be called while the request is put, unless the downstream was told fail. */
    void (*set_upstream)(void *downstream, struct upstream upstream);
    /* The connection is to end after this reply; NULL where streams end by themselves. */
    void (*close_after)(void *downstream);
};

#endif
