/* What the CNI plugin (controller/cni) asks a node's controller for, and what builder and
 * controller say of a pod.
 *
 * A pod is made by the cluster's container runtime. Of Durward it has its listeners, in its own
 * network namespace, and behind them a gate of its namespace's policy. Its interface lies in
 * another namespace, the `outer` one, which the plugin made and pinned beside the pod's: what
 * stands there no process of the pod reaches, whatever its capabilities in its own network are. */
#ifndef DURWARD_POD_H
#define DURWARD_POD_H

#include "strlist.h"

enum {
    POD_NAME_MAX = 253,     /* of a pod: a name of DNS */
    POD_NAMESPACE_MAX = 63, /* of the cluster */
    POD_UID_MAX = 63,
    POD_CONTAINER_MAX = 100, /* the runtime's id of the pod's sandbox: a file's name with POD_PIN */
    POD_NETNS_MAX = 128,     /* a file's name in the directory of namespaces */
    POD_TEXT_MAX = 1024,
    POD_DIR_MAX = 512,
    POD_LISTED_MAX = 1024, /* containers that GC names */
    POD_INBOUND_MAX = 32,  /* entries of one W_POD_INBOUND, of each of its two sorts */
    POD_LIST_MAX = 128,    /* the name of a list of plugins: of the configuration */
    POD_IFNAME_MAX = 16,
    POD_ACCOUNT_MAX = 253,
    POD_LABELS_MAX = 64, /* of a pod that is bound by its labels */
    POD_LABEL_MAX = 384, /* KEY=VALUE */
};

#define POD_PIN    "durward-" /* the outer namespace is pinned as this and the container's id */
#define POD_VOLUME "durward"  /* the emptyDir that gets trust and environment */
#define POD_GONE   "the pod is gone"

enum pod_op { POD_ADD = 1, POD_DEL, POD_CHECK, POD_STATUS, POD_GC, POD_OPS };

enum pod_end {
    POD_OK = 0,  /* to ADD text says which policy and gate */
    POD_UNBOUND, /* of a namespace that is left as it is */
    POD_REFUSED, /* text says why */
    POD_WHO,     /* ask the API server about the pod, and then again */
    POD_ENDS
};

/* What the API server says of a pod. The pod itself is not asked. */
enum pod_known { POD_NOT_ASKED, POD_ASKED_IN_VAIN, POD_KNOWN, POD_KNOWNS };
struct pod_facts {
    enum pod_known known;
    char account[POD_ACCOUNT_MAX + 1]; /* its service account */
    struct strlist labels;             /* KEY=VALUE */
};
bool pod_facts_ok(const struct pod_facts *f);
/* account:str n × label:str. */
void pod_facts_put(const struct pod_facts *f, struct msg *m);
/* Those of a pod that is known; -1: malformed. pod_facts_done in either case. */
int pod_facts_get(struct pod_facts *f, struct msg *m) WUNUSED;
void pod_facts_done(struct pod_facts *f);

/* W_POD, plugin → controller: op:u8; of all but STATUS and GC then container:str; of ADD then
 * namespace:str name:str uid:str netns:str list:str known:u8 and, if it is POD_KNOWN, facts; of GC
 * list:str n × container:str.
 * To GC the answer's words are the containers of other lists. */
struct pod_request {
    enum pod_op op;
    char container[POD_CONTAINER_MAX + 1];
    char ns[POD_NAMESPACE_MAX + 1], name[POD_NAME_MAX + 1], uid[POD_UID_MAX + 1];
    char netns[POD_NETNS_MAX + 1];
    char list[POD_LIST_MAX + 1]; /* whose plugin it is: GC is of one list's pods alone */
    struct pod_facts facts;
    unsigned n_listed;
    char (*listed)[POD_CONTAINER_MAX + 1]; /* malloc'd */
};

/* A file's name: [A-Za-z0-9_][A-Za-z0-9_.-]*, at most max bytes. */
bool pod_word_ok(const char *s, size_t max);
/* Are the strings what they may be? Both ends ask. */
bool pod_request_ok(const struct pod_request *r);
void pod_request_put(const struct pod_request *r, struct msg *m);
/* -1: it is malformed. pod_request_done in either case. */
int pod_request_get(struct pod_request *r, struct msg *m) WUNUSED;
void pod_request_done(struct pod_request *r);

/* The part of W_BUILD that says which pod (sandbox_spec.h). */
struct pod_spec {
    char netns[POD_NETNS_MAX + 1];
    char container[POD_CONTAINER_MAX + 1];
    char uid[POD_UID_MAX + 1]; /* "": it has no volume of ours */
};
void pod_spec_put(const struct pod_spec *s, struct msg *m);
int pod_spec_get(struct pod_spec *s, struct msg *m) WUNUSED;

/* What the builder is told of them once, with W_INIT: netns_dir:str ("": no pods are made here)
 * kubelet:str n × range:str. */
enum { POD_RANGE_TEXT = 24, POD_RANGES_MAX = 64 };
struct pod_place {
    char netns_dir[128], kubelet[128];
    char ranges[POD_RANGES_MAX][POD_RANGE_TEXT]; /* of IPv4, that may connect to pods */
    unsigned n_ranges;
};
void pod_place_put(const struct pod_place *p, struct msg *m);
int pod_place_get(struct pod_place *p, struct msg *m) WUNUSED;

/* What a pod's keeper has seen: who connected to the pod, and what of the pod's was refused. Each
 * is counted apart, so that a pod that has a lot refused hides nobody who connects. */
struct pod_seen_entry {
    uint32_t address, count; /* of IPv4, in the host's order */
    uint16_t port;
};
struct pod_seen {
    struct pod_seen_entry entries[2][POD_INBOUND_MAX]; /* [1]: refused */
    unsigned n[2];
};
/* The last place of each is for all that have none: address and port 0. */
void pod_seen_count(struct pod_seen *s, uint32_t address, uint16_t port, bool refused);
/* The fields of W_POD_INBOUND. None are left. */
void pod_seen_put(struct pod_seen *s, struct msg *m);

#endif
