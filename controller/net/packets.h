/* Between the log of a sandbox's packet rules and its gate: datagrams, read here and passed on as
 * they are. The gate gets the end of a pair of ours and no socket of the kernel's, which would take
 * orders too: whoever has the uid that a network belongs to may change its rules over any netlink
 * socket that was made by somebody who might. */
#ifndef DURWARD_PACKETS_H
#define DURWARD_PACKETS_H

#include "err.h"

struct event_base;
struct packets;

enum {
    PACKETS_BATCH = 64,   /* datagrams read at once, of one sandbox */
    PACKETS_PAUSE_MS = 5, /* after that many; what overruns the socket meanwhile is counted lost */
};

/* log: as nft_install gives it; owned, closed on failure too. *ret: what the gate reads, one
 * datagram a message, non-blocking, the caller's. */
struct packets *packets_new(struct event_base *base, int log, int *ret, struct err *err);
/* The same for one that has no such thing yet: the reader's descriptor, or -1. */
int packets_keep(struct packets **p, struct event_base *base, int log, struct err *err);
void packets_free(struct packets *p);

#endif
