/* A broker's back: the part that every protocol has. It believes nothing of what its front says:
 * whose sandbox it is says the channel, and whether it may, its own policy. */
#ifndef DURWARD_BACK_H
#define DURWARD_BACK_H

#include "authority.h"
#include "broker_stream.h"
#include "dial_client.h"
#include "journal.h"
#include "policy.h"
#include "proc.h"
#include "quota.h"
#include "request_limits.h"
#include "secret_client.h"

#include <openssl/ssl.h>

enum {
    BACK_REQUESTS_MAX = 512,    /* of a policy, */
    BACK_REQUESTS_OF_ONE = 128, /* of one sandbox, and never more than are left for all others */
};

struct back;
struct event_base;
struct ipc;
struct pending_approvals;

/* A request of a front's, as it came. */
struct back_asked {
    struct authority at; /* scheme: the broker's own */
    const char *sandbox; /* by the channel */
    struct slice facts;  /* the protocol's; lies in the message */
    int fd;              /* the stream (broker_stream_new); owned by who takes the request */
};

struct back_life {
    enum role role;
    enum scheme scheme;
    int (*load)(struct back *b, struct err *err);
    /* A front asks. 0, or -1: the message is bad (nothing was taken), and that front's channel
     * ends. */
    int (*open)(struct back *b, const struct back_asked *asked);
    /* Another policy is there: what is open is decided again (back_request_goes_on). */
    void (*policy)(struct back *b);
};

struct back {
    const struct back_life *life;
    struct event_base *base;
    struct ipc *parent;
    struct journal *journal;
    struct dial_client *dial;
    struct secret_client *secrets;
    struct pending_approvals *approvals; /* asked of the controller */
    SSL_CTX *tls;                        /* client context with the roots */
    struct policy *policy;
    uint32_t generation;
    struct limits limits;
    struct quota requests; /* under way, by sandbox */
    char name[65];
    size_t n_fronts;
    void *self;
};

int back_main(const struct back_life *life);

#endif
