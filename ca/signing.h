/* Who signs in the signer: the exported CA, and those of sandboxes that run or are being made. */
#ifndef DURWARD_SIGNING_H
#define DURWARD_SIGNING_H

#include "err.h"
#include "mint.h"
#include "peer.h"
#include "sandbox_ca.h"

#include <sys/queue.h>

struct signing {
    char sandbox[PEER_NAME_MAX + 1]; /* "" of the exported one */
    struct mint_issuer issuer;
    unsigned char *der; /* its certificate */
    size_t len;
    unsigned channels; /* that it signs for */
    TAILQ_ENTRY(signing) link;
};

struct signings {
    unsigned char secret[SANDBOX_CA_SECRET];
    TAILQ_HEAD(signing_list, signing) list;
    unsigned idle; /* of which no channel came yet; the oldest goes beyond 64 */
};

void signings_init(struct signings *all);
void signings_clear(struct signings *all);
/* The CA of this sandbox, found or made; NULL with err. */
struct signing *signing_of(struct signings *all, const char *sandbox, struct err *err);
/* A channel more, or less. With its last one a sandbox's CA goes; a gate that comes in another's
 * place has it made again. The exported one stays. */
void signing_hold(struct signings *all, struct signing *g);
void signing_drop(struct signings *all, struct signing *g);
/* When the issuer is there. */
int signing_encode(struct signing *g, struct err *err);
void signing_clear(struct signing *g);

#endif
