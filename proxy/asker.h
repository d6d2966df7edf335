/* Who puts a request to a session: a front without a back yet, whichever version of HTTP its
 * connection speaks. */
#ifndef DURWARD_ASKER_H
#define DURWARD_ASKER_H

#include "stream.h"

struct asker {
    struct front front;
    /* To be called while the request is put, unless the front was told fail. */
    void (*set_back)(void *front, struct back back);
    /* The connection is to end after this reply; NULL where streams end by themselves. */
    void (*close_after)(void *front);
};

#endif
