/* Is the body of a reply as long as its head says? Both ends of the injector channel ask: the
 * injector of what an origin sent, the gate of what an injector does. A client would read what is
 * too much as the answer to its next request, of another host perhaps. */
#ifndef DURWARD_REPLY_LENGTH_H
#define DURWARD_REPLY_LENGTH_H

#include "http_head.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct reply_length {
    enum body_kind body;
    uint64_t left; /* of BODY_LENGTH */
};

/* head: HEAD was asked for. False: by h a client awaits another body than h->body. */
bool reply_length_begin(struct reply_length *r, bool head, const struct head *h) WUNUSED;
/* So many bytes come. False: they are too many, and r is as before. */
bool reply_length_take(struct reply_length *r, size_t n) WUNUSED;
/* The body may end here. */
bool reply_length_whole(const struct reply_length *r) WUNUSED;

#endif
