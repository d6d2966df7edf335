/* Synthetic addresses: what the gate's DNS answers for an allowed name. A name has an
 * index, given by the controller, for its sandbox's life; index i is 198.18.0.0 + i (RFC 2544
 * range, 198.18.0.0/15) and fd64:7572:7761:7264::i. Pure arithmetic; no state. */
#ifndef DURWARD_SYNTHETIC_H
#define DURWARD_SYNTHETIC_H

#include "compiler.h"

struct sockaddr;

/* 198.18.0.0 and 198.19.255.255 are never given: some stacks take them for a network's own. */
enum { SYNTHETIC_MAX = 131070 };
/* Index 1 is the gate itself: its explicit proxy, for clients that insist on one. */
enum { NAMES_SELF = 1 };
/* The last is that of every name which no rule names: its ports 80 and 443 say so. */
enum { NAMES_REFUSED = SYNTHETIC_MAX };

/* index 1..SYNTHETIC_MAX. 0 or -1. */
int synthetic_v4(uint32_t index, unsigned char ip[4]);
int synthetic_v6(uint32_t index, unsigned char ip[16]);
/* The index behind a destination address (v4-mapped too), 0 when it is none. */
uint32_t synthetic_index(const struct sockaddr *sa);
/* The address lies in a synthetic range, whether or not it can be an index: such a destination is
 * never taken for a real one. */
bool synthetic_contains(const struct sockaddr *sa);

#endif
