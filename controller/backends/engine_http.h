/* One request to a container engine over its unix socket, and its answer: HTTP/1.1 by our own
 * grammar (proxy/http1/http1_head.h), one connection each. Blocking: for processes that do nothing
 * else.
 */
#ifndef DURWARD_ENGINE_HTTP_H
#define DURWARD_ENGINE_HTTP_H

#include "buf.h"
#include "err.h"

enum { ENGINE_REPLY_MAX = 4 << 20, ENGINE_REQUEST_S = 20 };

struct engine_request {
    const char *method, *path; /* the path with its query, escaped */
    struct slice body;         /* JSON, or empty */
};

/* The whole body of the answer is appended to reply, whose bound is the caller's (at most
 * ENGINE_REPLY_MAX). Each wait is at most ENGINE_REQUEST_S. -1 with err: ERR_UNREADY when nobody
 * answers at the socket, ERR_UPSTREAM for an answer that is none. */
int engine_exchange(const char *socket, const struct engine_request *q, unsigned *status,
                    struct buf *reply, struct err *err);

#endif
