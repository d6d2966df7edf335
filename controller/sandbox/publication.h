/* Ports of sandboxes that are reached at addresses of this host, for as long as the sandbox is
 * there: the parent listens (W_PORT_OPEN), connections are taken here and each is joined with one
 * that a child of durward-init makes inside. One that sleeps is resumed for it, if it may be. They
 * are kept in the registry, so that they outlive the controller and the daemon. */
#ifndef DURWARD_PUBLICATION_H
#define DURWARD_PUBLICATION_H

#include <jansson.h>

#include "managed_sandbox.h"

enum {
    PUBLICATIONS_MAX = 16,   /* of a sandbox */
    FORWARDS_MAX = 256,      /* connections of one at a time */
    PUBLICATION_ADDRESS = 64 /* text of an address and port, with its end */
};

/* Who publishes: the socket's owner and a token with admin anywhere; another token at loopback,
 * from port 1024 on; one that is for some sandboxes at loopback, at a free port that it is told. */
enum publisher { PUBLISHER_OWNER, PUBLISHER_TOKEN, PUBLISHER_NARROW };

/* A list of {"port": inside, "address": "ADDRESS:PORT"?}: checked, with the default
 * "127.0.0.1:0" (any free port) filled in. */
int publications_read(json_t *list, enum publisher by, struct err *err);
/* Ask for all of a list that was read. What cannot be had deletes the sandbox, with the reason
 * beginning "cannot publish". */
int publications_open(struct managed_sandbox *r, const json_t *list, struct err *err);
/* fn runs when none of them is asked for any more (at once if none is), or r goes. -1: out of
 * memory. */
int publications_await(struct managed_sandbox *r, managed_sandbox_fn fn, void *arg);
/* Those of its rows; what cannot be had any more is said. */
void publications_again(struct managed_sandbox *r);
/* W_PORT_OPENED. -1: bad. */
int publications_message(struct controller *c, struct msg *m);
void publications_close(struct managed_sandbox *r);
/* Where this port of it is reached; NULL: nowhere. */
const char *publications_at(const struct managed_sandbox *r, unsigned port);
/* Those that are open: [{"address", "port"}]. */
json_t *publications_json(const struct managed_sandbox *r);

#endif
