/* The two sides of a request in motion, whatever protocol version or process is behind them.
 *
 *   http1_server ──► exchange ──► origin (pool, dial, TLS, http1_client)      uncredentialed
 *      downstream       │  upstream
 *                       └──────► injector channel ═══channel═══► injector_channel_server ──►
 *                              injection ──► origin                            credentialed
 *
 * An upstream never calls its downstream from inside a call that the downstream made to it. After
 * end or fail the upstream is gone and must not be called; after cancel the downstream is not
 * called again. */
#ifndef DURWARD_STREAM_H
#define DURWARD_STREAM_H

#include "http_head.h"

enum { STREAM_ID = 48 };

struct downstream_ops {
    /* The final reply head; the upstream keeps it, valid during the call. */
    void (*reply)(void *downstream, const struct head *reply);
    /* n is at most what room said, but for a tunnel's headers (tunnel.h). */
    void (*data)(void *downstream, const void *p, size_t n);
    /* At most once, after the last data and before end. A downstream whose client cannot take
     * trailers drops them. Valid during the call. */
    void (*trailers)(void *downstream, const struct head *fields);
    void (*end)(void *downstream);
    /* No reply can be given, or (after reply) it cannot be completed. id: of the request, or NULL
     * for the downstream's own. code: constant text. */
    void (*fail)(void *downstream, unsigned status, const char *code, const char *id);
    size_t (*room)(void *downstream);
    /* May be NULL. Before fail: it is worth trying again after so many seconds. */
    void (*retry)(void *downstream, unsigned seconds);
    /* May be NULL. Before fail: the request is a message of JSON-RPC with this number, or "". */
    void (*rpc)(void *downstream, const char *id);
    /* A client of Kubernetes: refusals are a Status. */
    void (*kube)(void *downstream);
    void (*wanted)(void *downstream); /* the upstream has room for more of the request body */
};

/* What an upstream need not have is NULL: trailers, found, id, refuse. */
struct upstream_ops {
    void (*data)(void *upstream, const void *p, size_t n);
    /* Trailers of a request are never sent on. NULL: go on with end; else the downstream gives the
     * request up with that answer (cancel with its code). */
    const struct refusal *(*trailers)(void *upstream, const struct head *fields);
    void (*end)(void *upstream);
    /* What detectors found in the body, for a record that another process writes; before end,
     * refuse or cancel. NULL: the record is the downstream's. */
    void (*found)(void *upstream, const char *patterns);
    size_t (*room)(void *upstream);
    void (*resume)(void *upstream); /* the downstream has room again */
    /* Which record a refusal of the downstream's own is to name: to be asked for right before
     * cancel.
     * "-": nobody knows one. NULL stands for that. */
    void (*id)(void *upstream, char id[STREAM_ID]);
    /* The downstream refuses the rest of the request, and the record is another process's: the
     * upstream has it ended there as by cancel, then tells fail with this answer and the id. It
     * takes no more bytes; cancel is still due when the client leaves. false: not so; id and
     * cancel. NULL stands for that. */
    bool (*refuse)(void *upstream, unsigned status, const char *code);
    /* code: why, for the record; constant text ("client_gone" when the client simply left). */
    void (*cancel)(void *upstream, const char *code);
};

struct downstream {
    const struct downstream_ops *ops;
    void *self;
};

struct upstream {
    const struct upstream_ops *ops;
    void *self;
};

enum { STREAM_CHUNK = 16 * 1024, STREAM_OUT_MAX = 512 * 1024, STREAM_IN_MAX = 64 * 1024 };

/* As much of it as the upstream has room for; how many bytes went. */
static inline size_t stream_send(const struct upstream *to, struct slice s)
{
    size_t room, sent = 0;
    while (sent < s.n && (room = to->ops->room(to->self)) > 0) {
        size_t n = s.n - sent < room ? s.n - sent : room;
        to->ops->data(to->self, s.p + sent, n);
        sent += n;
    }
    return sent;
}

static inline void stream_retry(const struct downstream *f, unsigned seconds)
{
    if (seconds && f->ops->retry)
        f->ops->retry(f->self, seconds);
}

#endif
