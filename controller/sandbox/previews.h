/* Previews: HTTP from outside to services of sandboxes, each at a name of its own below the domain
 * of `controller.preview`: SERVICE--SANDBOX.DOMAIN, where SERVICE is one of the policy's `services`
 * or a port's number. Only where the policy says `previews: true`.
 *
 * The gate of the listener brings connections (W_PORTER); each goes on to the gate of its sandbox
 * (W_INBOUND), which asks whether tokens are good (W_PREVIEW), and for connections inside, on a
 * channel of its own that speaks as the dialer's does (W_DIAL). No byte of either side is read
 * here.
 *
 * Tokens are kept by their hash, in memory: those of a sandbox end with it, and all of them with
 * this process. */
#ifndef DURWARD_PREVIEWS_H
#define DURWARD_PREVIEWS_H

#include <jansson.h>

#include "managed_sandbox.h"
#include "wire.h"

struct previews;

enum {
    PREVIEW_TOKENS_MAX = 4096, /* in all, and */
    PREVIEW_TOKENS_EACH = 64,  /* of a sandbox: beyond, its oldest gives way */
    PREVIEW_WAITING_MAX = 256, /* connections whose sandbox is being resumed, and */
    PREVIEW_WAITING_EACH = 64, /* of one */
    PREVIEW_DIALS_MAX = 64,    /* connections inside of one sandbox being made */
    PREVIEW_TTL = 8 * 3600,
    PREVIEW_LINK_TTL = 600,
};

struct previews *previews_new(struct controller *c); /* NULL: out of memory */
void previews_free(struct previews *p);              /* NULL is fine; before the sandboxes */
/* The channel of the listener's gate, or of a sandbox's for connections inside; fd is taken. */
void previews_porter(struct previews *p, int fd);
void previews_inside(struct previews *p, const char *sandbox, int fd);
/* W_PREVIEW and W_PREVIEW_USED of a sandbox's gate; -1: bad. */
int previews_of_gate(void *controller, struct sandbox *s, struct ipc *gate, struct msg *m);
void previews_sandbox_gone(struct previews *p, const char *id);
/* A sandbox's gate is there: it hears what may be seen, before any connection. */
void previews_gate(struct previews *p, const char *id);
/* The configuration is another one: what may be seen no more, or is at another port, ends. */
void previews_reloaded(struct previews *p);
/* Links and tokens of a service, or (NULL) of all, are good no more, and whoever was let in by one
 * is sent away. -1 with err (ERR_UNREADY): not all of them are, it has to be tried again. */
int previews_revoke(struct previews *p, const struct managed_sandbox *r, const char *service,
                    struct err *err);
/* The port of a service that may be seen; 0: there is none. */
unsigned previews_port(const struct controller *c, const struct managed_sandbox *r,
                       const char *service);
/* Its address, "http://web--sb-x.preview.localhost:8088/"; false: previews are off. */
enum { PREVIEW_URL_MAX = 400 };
bool previews_url(const struct controller *c, const struct managed_sandbox *r, const char *service,
                  char url[PREVIEW_URL_MAX]);
/* A link that is good once and soon, and a token for so many seconds. NULL with err. */
json_t *previews_issue(struct previews *p, const struct managed_sandbox *r, const char *service,
                       unsigned seconds, struct err *err);

#endif
