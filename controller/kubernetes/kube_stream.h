/* A program started in a pod by the API server (`exec`), as streams over a WebSocket
 * (v5.channel.k8s.io, of Kubernetes 1.30): the first byte of a message is its stream.
 *
 * Both ends of the pod's streams are the sandbox's: what comes is bytes, bounded, and nothing of it
 * is read but by who asked. */
#ifndef DURWARD_KUBE_STREAM_H
#define DURWARD_KUBE_STREAM_H

#include "kube_client.h"
#include "websocket.h"

#define KUBE_STREAM_PROTOCOL "v5.channel.k8s.io"

enum kube_channel {
    KUBE_STDIN = 0,
    KUBE_STDOUT,
    KUBE_STDERR,
    KUBE_STATUS, /* how it ended, as JSON */
    KUBE_RESIZE,
    KUBE_CLOSE = 255, /* with a stream's number: it has ended */
};

enum { KUBE_STREAM_OUT_MAX = 256 * 1024, KUBE_STATUS_MAX = 64 * 1024 };

struct kube_exec {
    struct kube_stream at;
    struct websocket_reader reader;
    struct buf in, out; /* frames as they came; as they are to go */
    int channel;        /* of the message under way; -1: none yet */
    bool over;          /* nothing more comes */
    /* of KUBE_STDOUT, _STDERR and _STATUS */
    void (*on)(void *arg, enum kube_channel c, const char *p, size_t n);
    void *arg;
};

/* what: the path of exec with its query. The socket does not block from then on. */
int kube_exec_open(const struct kube *k, const char *what, struct kube_exec *e, struct err *err);
void kube_exec_close(struct kube_exec *e);
/* Queues a message; -1: there is no room, ask again later. */
int kube_exec_put(struct kube_exec *e, enum kube_channel c, const void *p, size_t n) WUNUSED;
/* Sends what it can and, if `more`, takes what has come. -1 with err: the connection broke; `over`
 * is its end. */
int kube_exec_turn(struct kube_exec *e, bool more, struct err *err);
/* What to poll its descriptor for. */
short kube_exec_events(const struct kube_exec *e, bool more);

/* How the program ended, by what KUBE_STATUS says: its exit status, or -1 with what is wrong. */
int kube_exec_status(struct slice said, char *why, size_t size);

#endif
