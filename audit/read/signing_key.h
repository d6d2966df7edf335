/* The Ed25519 key that signs the head of an audit log: DIR/key (0600, the logger's) and DIR/key.pub
 * (PEM). Made on first use; never made anew beside a public key that is already there. */
#ifndef DURWARD_SIGNING_KEY_H
#define DURWARD_SIGNING_KEY_H

#include "err.h"
#include "slice.h"

enum { SIGNATURE_SIZE = 64 };

struct signing_key;

struct signing_key *signing_key_open(int dirfd, struct err *err); /* private, made if absent */
struct signing_key *signing_key_public(int dirfd, const char *path, struct err *err);
struct signing_key *signing_key_from_raw(const unsigned char raw[32], struct err *err); /* public */
void signing_key_free(struct signing_key *k);
/* The public key, 32 bytes. */
int signing_key_raw(const struct signing_key *k, unsigned char raw[32]) WUNUSED;
int signing_key_sign(const struct signing_key *k, struct slice text,
                     unsigned char sig[SIGNATURE_SIZE]) WUNUSED;
bool signing_key_verify(const struct signing_key *k, struct slice text,
                        const unsigned char sig[SIGNATURE_SIZE]);

#endif
