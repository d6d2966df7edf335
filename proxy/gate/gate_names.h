/* The synthetic names of a local sandbox: which allowed host name stands behind which synthetic
 * address. The controller assigns the numbers and keeps them, so that they survive a gate; this is
 * the gate's copy, and its DNS answers. */
#ifndef DURWARD_GATE_NAMES_H
#define DURWARD_GATE_NAMES_H

#include "gate.h"
#include "synthetic.h"

struct sockaddr;
struct dns_query;
struct msg;

enum { NAMES_FIRST = 2, NAMES_PROXY_PORT = 3128 };
/* The name behind NAMES_SELF. */
#define NAMES_SELF_HOST "gate.durward.internal"

struct gate_names *gate_names_new(struct gate *g);
void gate_names_free(struct gate_names *n);
/* A name known from before (a replaced gate). */
int gate_names_put(struct gate_names *n, const char *host, uint32_t index);
/* The host behind a synthetic destination, NULL when it is none that was given out. */
const char *gate_names_host(const struct gate_names *n, const struct sockaddr *sa);
/* DNS: decide, and answer q now or when the controller has given a number. */
void gate_names_lookup(struct gate_names *n, struct slice host, uint16_t type, struct dns_query *q);
/* W_NAME from the controller. 0 or -1 (bad message). */
int gate_names_message(struct gate_names *n, struct msg *m);
/* Ask the controller for all names that were given out before (a gate that replaces another). */
void gate_names_ask_all(struct gate_names *n);
/* The controller's channel is gone: those who wait are told to try again (SERVFAIL). */
void gate_names_controller_gone(struct gate_names *n);

#endif
