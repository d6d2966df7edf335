/* Bytes carried between a stream of ours and a descriptor that somebody else gets: what an https
 * upstream proxy needs, since a TLS state cannot be handed over. It looks at none of them; they are
 * the origin's TLS, or plain HTTP where a rule allows that. Bounded: 2 × 2 × BRIDGE_BUFFER a
 * bridge. */
#ifndef DURWARD_BRIDGE_H
#define DURWARD_BRIDGE_H

#include "io.h"
#include "slice.h"

struct bridges;

enum {
    BRIDGE_BUFFER = 64 * 1024,
    BRIDGES_MAX = 4096,
    BRIDGES_WIRE_MAX = 2048, /* of one wire, */
    BRIDGES_PAYER_MAX = 512, /* and of one payer; neither more than are left for all others */
    BRIDGE_LINGER_SECONDS = 10
};

/* The bridges of one process. NULL when memory is out. */
struct bridges *bridges_new(struct event_base *base);
void bridges_free(struct bridges *b); /* ends them all; NULL is fine */
unsigned bridges_count(const struct bridges *b);
/* Takes the connected io. payer: whose it is, "WIRE|OWNER" (dial.h), so that neither one gate nor
 * one sandbox of an injector's can take all. Returns a non-blocking, close-on-exec stream
 * descriptor, the caller's, or -1 when payer or wire has its part, or no descriptor is left; then
 * the io is closed. The bridge ends by itself: when both sides have ended theirs, when either
 * fails, or BRIDGE_LINGER_SECONDS after the descriptor was closed. */
int bridges_join(struct bridges *b, struct io *io, struct slice payer);

#endif
