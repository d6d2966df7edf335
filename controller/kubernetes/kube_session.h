/* One command, file or connection in a sandbox's pod: a process of the keeper's own for each
 * (kube_keeper.h), which asks the API server for it (kube_stream.h), hands out pipes, a terminal or
 * a socket as durward-init would, and carries bytes between the two until it ends. */
#ifndef DURWARD_KUBE_SESSION_H
#define DURWARD_KUBE_SESSION_H

#include "ipc_msg.h"
#include "kube_client.h"

struct kube_place {
    const struct kube *kube;
    const char *ns, *pod, *daemon;
};

/* In memory that a session and its keeper share. Signals are here, and not in an order: however
 * many come, and whenever they are looked at, none is lost. */
struct kube_shared {
    int32_t inside;   /* its process in the pod; 0: not started yet; the session's to write */
    bool ended;       /* W_INIT_EXIT is on its way; the session's to write */
    uint64_t signals; /* a bit each: the keeper sets them, the session takes them */
};

/* From the keeper, on `control`. One that finds no room is dropped: there are others to be read. */
struct kube_order {
    uint16_t type; /* W_INIT_SIGNAL: look at the signals; W_INIT_WINSIZE: rows, columns */
    uint32_t rows, cols;
};

/* m: W_INIT_EXEC, _FILE, _WATCH or _CONNECT after its number. Answers go to CLUSTER_INIT. */
NORETURN void kube_session(const struct kube_place *at, struct msg *m, uint32_t number, int control,
                           struct kube_shared *shared);
/* To a process in the pod. Waits until it was sent, so that the next one comes behind it. */
int kube_session_signal(const struct kube_place *at, int32_t inside, unsigned sig, struct err *err);

#endif
