/* The installation's keys, in the state directory, made at first use, mode 0600:
 *   tag.key    32 random bytes: placeholders carry a tag under it, so that any gate knows a
 *              stranger's placeholder without a list
 *   token.key  32 bytes, an Ed25519 private key: signs the tokens of remote sandboxes
 *   fleet.key  the same: signs what this host says to others of its fleet (fleet_seal.h) */
#ifndef DURWARD_KEYS_H
#define DURWARD_KEYS_H

#include <openssl/evp.h>

#include "err.h"

enum { KEY_BYTES = 32 };

struct keys {
    unsigned char tag[KEY_BYTES];
    unsigned char token_public[KEY_BYTES];
    unsigned char fleet_public[KEY_BYTES];
    EVP_PKEY *token;
    EVP_PKEY *fleet; /* NULL: there is no fleet */
};

/* dirfd: the state directory. A key file that others can read, or of a wrong length, is refused. */
int keys_load(int dirfd, struct keys *ret, struct err *err);
/* And that of a fleet's host. */
int keys_load_fleet(int dirfd, struct keys *ret, struct err *err);
void keys_done(struct keys *k); /* wipes */

#endif
