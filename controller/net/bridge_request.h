/* The requests of rtnetlink that a network of containers needs beside those of pod_request.h, each
 * sent in the caller's namespace. */
#ifndef DURWARD_BRIDGE_REQUEST_H
#define DURWARD_BRIDGE_REQUEST_H

#include "err.h"

/* Without an address of its own it takes those of its ports, and neighbours lose it each time. */
int bridge_request_make(const char *name, const unsigned char mac[6], struct err *err);
/* The interface becomes a port of the bridge. */
int bridge_request_join(int index, int bridge, struct err *err);
/* Every address that no other route leads to is this namespace's own. */
int bridge_request_rest_local(struct err *err);
/* The way out, by a gateway that is on the link. One that is there already is fine. */
int bridge_request_way_out(int index, const unsigned char gateway[4], struct err *err);
/* Nothing that comes in by it goes on to another interface. */
int bridge_request_no_forward(int index, struct err *err);

#endif
