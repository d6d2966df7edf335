/* A note that says whose it is: an object of JSON, signed with the key of a host (Ed25519), for one
 * kind and id of a note. A host knows the keys of the others from its own configuration; nobody
 * tells it one.
 *
 * Text: KEY "." base64url(JSON) "." base64url(signature): KEY the first half of the public key's
 * hash in hex; the signature is over "durward-fleet-1", kind, id and the text before the second
 * dot, each with a line feed behind it. */
#ifndef DURWARD_FLEET_SEAL_H
#define DURWARD_FLEET_SEAL_H

#include <jansson.h>
#include <openssl/evp.h>

#include "buf.h"
#include "config.h"
#include "err.h"

enum { FLEET_SEAL_KEY = 17 }; /* KEY with its end */

struct fleet_seal;

/* own: this host's private key, which lives longer. NULL with err. */
struct fleet_seal *fleet_seal_new(EVP_PKEY *own, const struct config_fleet *f, struct err *err);
void fleet_seal_free(struct fleet_seal *s);             /* NULL is fine */
const char *fleet_seal_key(const struct fleet_seal *s); /* KEY of this host */
/* Appends the text. -1: it is too long, or memory is out. */
int fleet_seal_put(const struct fleet_seal *s, const char *kind, const char *id, const json_t *v,
                   struct buf *out);
/* The object, and the name of the host that said it; "": this one. NULL: it is nobody's that is
 * known here. */
json_t *fleet_seal_get(const struct fleet_seal *s, const char *kind, const char *id,
                       struct slice body, const char **host);

#endif
