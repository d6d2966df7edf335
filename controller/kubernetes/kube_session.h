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

/* In memory that a session and its keeper share; of both each field has one writer. */
struct kube_shared {
    int32_t inside; /* its process in the pod; 0: not started yet */
    bool ended;     /* W_INIT_EXIT is on its way */
};

/* From the keeper, on `control`. */
struct kube_order {
    uint16_t type; /* W_INIT_SIGNAL: signal a; W_INIT_WINSIZE: a rows, b columns */
    uint32_t a, b;
};

/* m: W_INIT_EXEC, _FILE, _WATCH or _CONNECT after its number. Answers go to CLUSTER_INIT. */
NORETURN void kube_session(const struct kube_place *at, struct msg *m, uint32_t number, int control,
                           struct kube_shared *shared);
/* To a process in the pod, and waits until it was sent. */
int kube_session_signal(const struct kube_place *at, int32_t inside, unsigned sig, struct err *err);

#endif
