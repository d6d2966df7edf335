/* The CNI plugin durward-cni: what the container runtime of a Kubernetes node says of one pod, by
 * the Container Network Interface (specification 1.0 and 1.1), is asked of the node's daemon. */
#ifndef DURWARD_CNI_H
#define DURWARD_CNI_H

#include <jansson.h>

#include "err.h"
#include "pod.h"

/* Error codes of the specification. */
enum {
    CNI_VERSION = 1,
    CNI_ENVIRONMENT = 4,
    CNI_DECODE = 6,
    CNI_CONFIG = 7,
    CNI_AGAIN = 11,
    CNI_NOT_AVAILABLE = 50,
    CNI_REFUSED = 100, /* and of ours: Durward gives this pod no way out */
};

struct cni_call {
    json_t *config;       /* standard input */
    const char *version;  /* its cniVersion */
    const char *socket;   /* of the daemon */
    const char *netns;    /* the directory of network namespaces */
    const char *kubelet;  /* the kubelet's root directory */
    const char *pods;     /* the socket where durward-kubernetes says what a pod is */
    const char *pod_path; /* CNI_NETNS; "" */
    struct pod_request q;
};

/* What the daemon said. */
struct cni_answer {
    bool met; /* there is a daemon, whatever it answers */
    enum pod_end end;
    char text[POD_TEXT_MAX], dir[POD_DIR_MAX];
    char *env; /* a text for a shell; to GC the containers of other lists, a line each; malloc'd */
};

/* cni_call.c: the environment's and the input's words. 0, or a code with err. */
int cni_read(struct cni_call *c, struct err *err);
/* Ask the daemon. -1 with err: it does not answer. */
int cni_ask(const struct cni_call *c, struct cni_answer *ret, struct err *err);

/* What the API server says of the pod, into the request: known, or asked in vain, then with why. */
void cni_ask_who(struct cni_call *c, struct err *why);
/* What has become of the pod, for an event. Whether anybody hears it changes nothing. */
void cni_say_bound(const struct cni_call *c, const char *what);

/* cni_pin.c: a network namespace for the pod, over the runtime's own at its name, which is pinned
 * beside it. */
int cni_pin(const struct cni_call *c, struct err *err);
/* The runtime's namespace is at its name again, and the pin goes. What is absent is fine. */
int cni_unpin(const struct cni_call *c, const char *container, struct err *err);
/* All pins but those of the containers that the call lists, and of the ones that are other lists'
 * of plugins: kept, a line each. */
int cni_unpin_others(const struct cni_call *c, const char *kept, struct err *err);
/* The environment into the pod's volume, if it has one. Where that is the plugin says itself: it is
 * root, and whoever answers for the daemon must not choose what it writes to. */
int cni_lay_env(const struct cni_call *c, const struct cni_answer *a, struct err *err);

#endif
