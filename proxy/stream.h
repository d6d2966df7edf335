/* The two sides of a request in motion, whatever protocol version or process is behind them.
 *
 *   http1_server ──► exchange ──► origin (pool, dial, TLS, http1_client)      uncredentialed
 *        front          │  back
 *                       └──────► hop ═══channel═══► hop_server ──► grant ──► origin   credentialed
 *
 * A back never calls its front from inside a call that the front made to it. After end or fail the
 * back is gone and must not be called; after cancel the front is not called again. */
#ifndef DURWARD_STREAM_H
#define DURWARD_STREAM_H

#include "http_head.h"

struct front_ops {
    /* The final reply head; the back keeps it, valid during the call. */
    void (*reply)(void *front, const struct head *reply);
    /* n is at most what room said. */
    void (*data)(void *front, const void *p, size_t n);
    void (*end)(void *front);
    /* No reply can be given, or (after reply) it cannot be completed. id: of the request, or NULL
     * for the front's own. code: constant text. */
    void (*fail)(void *front, unsigned status, const char *code, const char *id);
    size_t (*room)(void *front);
    void (*wanted)(void *front); /* the back has room for more of the request body */
};

struct back_ops {
    void (*data)(void *back, const void *p, size_t n);
    void (*end)(void *back);
    size_t (*room)(void *back);
    void (*resume)(void *back); /* the front has room again */
    void (*cancel)(void *back);
};

struct front {
    const struct front_ops *ops;
    void *self;
};

struct back {
    const struct back_ops *ops;
    void *self;
};

enum { STREAM_CHUNK = 16 * 1024, STREAM_OUT_MAX = 512 * 1024, STREAM_IN_MAX = 64 * 1024 };

#endif
