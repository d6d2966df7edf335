/* W_PEER: a new channel to another role, as the parent tells both its ends. The one place that
 * knows the message's layout (lib/wire.h). */
#ifndef DURWARD_PEER_H
#define DURWARD_PEER_H

#include "ipc_msg.h"
#include "proc.h"

struct ipc;

enum { PEER_NAME_MAX = 64 };

/* In place of a policy's name, and none that a policy can have: the channel by which the vault
 * reaches token endpoints. */
#define PEER_TOKENS "(tokens)"
/* Likewise the one by which the exporter reaches where it carries to. */
#define PEER_EXPORTER "(exporter)"
#define PEER_FLEET    "(fleet)" /* and the fleet's role its database */
/* Between controller and gates: that of the listener of previews; that by which a sandbox's own
 * gate gets connections to the sandbox's services. */
#define PEER_PORTER "(porter)"
#define PEER_INSIDE "(inside)"

struct peer {
    enum role kind;   /* of the far end */
    uint32_t channel; /* the parent's number for it */
    uint32_t wire;    /* and for what it was made for: the same when it is made anew */
    uint32_t generation;
    char sandbox[PEER_NAME_MAX + 1]; /* whose gate it is of; "" for none */
    char policy[PEER_NAME_MAX + 1];  /* "" for none */
    struct slice extra;              /* what the receiver is told beside it; lies in the message */
    int fd;                          /* the channel */
};

/* Adds all fields; the message owns p->fd from here on. */
void peer_put(struct msg *m, const struct peer *p);
/* Reads the whole message. On success the caller owns p->fd; on -1 nothing was taken. */
int peer_get(struct msg *m, struct peer *p);

/* To the parent, that this channel (struct peer's number) ended here (W_LOST): where both ends
 * still live and have no newer one, they are wired anew. NULL is fine: nobody is told. */
void peer_lost(struct ipc *parent, uint32_t channel);

#endif
