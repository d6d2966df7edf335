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

enum { STREAM_ID = 48 };

struct front_ops {
    /* The final reply head; the back keeps it, valid during the call. */
    void (*reply)(void *front, const struct head *reply);
    /* n is at most what room said, but for a tunnel's headers (tunnel.h). */
    void (*data)(void *front, const void *p, size_t n);
    /* At most once, after the last data and before end. A front whose client cannot take trailers
     * drops them. Valid during the call. */
    void (*trailers)(void *front, const struct head *fields);
    void (*end)(void *front);
    /* No reply can be given, or (after reply) it cannot be completed. id: of the request, or NULL
     * for the front's own. code: constant text. */
    void (*fail)(void *front, unsigned status, const char *code, const char *id);
    size_t (*room)(void *front);
    /* May be NULL. Before fail: it is worth trying again after so many seconds. */
    void (*retry)(void *front, unsigned seconds);
    void (*wanted)(void *front); /* the back has room for more of the request body */
};

/* What a back need not have is NULL: trailers, id, refuse. */
struct back_ops {
    void (*data)(void *back, const void *p, size_t n);
    /* Trailers of a request are never sent on. NULL: go on with end; else the front gives the
     * request up with that answer (cancel with its code). */
    const struct refusal *(*trailers)(void *back, const struct head *fields);
    void (*end)(void *back);
    size_t (*room)(void *back);
    void (*resume)(void *back); /* the front has room again */
    /* Which record a refusal of the front's own is to name: to be asked for right before cancel.
     * "-": nobody knows one. NULL stands for that. */
    void (*id)(void *back, char id[STREAM_ID]);
    /* The front refuses the rest of the request, and the record is another process's: the back has
     * it ended there as by cancel, then tells fail with this answer and the id. It takes no more
     * bytes; cancel is still due when the client leaves. false: not so; id and cancel. NULL stands
     * for that. */
    bool (*refuse)(void *back, unsigned status, const char *code);
    /* code: why, for the record; constant text ("client_gone" when the client simply left). */
    void (*cancel)(void *back, const char *code);
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

static inline void stream_retry(const struct front *f, unsigned seconds)
{
    if (seconds && f->ops->retry)
        f->ops->retry(f->self, seconds);
}

#endif
