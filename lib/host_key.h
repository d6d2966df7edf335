/* What brokers show a sandbox: a key of Ed25519 and, for clients that know none of these, one of
 * ECDSA, made from the sandbox's seed, so that they are the same for as long as the sandbox lives,
 * whoever is started again meanwhile. The controller writes the public halves into the sandbox, the
 * fronts have the private ones. */
#ifndef DURWARD_HOST_KEY_H
#define DURWARD_HOST_KEY_H

#include "buf.h"

enum { HOST_KEY_SEED = 32 };
enum host_key_kind { HOST_KEY_ED25519 = 0, HOST_KEY_ECDSA, HOST_KEY_KINDS };

/* What both are made of, from the sandbox's own seed. 0 or -1. */
int host_key_make(struct slice seed, unsigned char key[HOST_KEY_SEED]) WUNUSED;
/* "ssh-ed25519 BASE64", without a NUL, appended. 0 or -1. */
int host_key_public(const unsigned char key[HOST_KEY_SEED], enum host_key_kind kind,
                    struct buf *out) WUNUSED;
/* The private half as OpenSSH writes it into a file, appended; out is to be wiped. 0 or -1. */
int host_key_private(const unsigned char key[HOST_KEY_SEED], enum host_key_kind kind,
                     struct buf *out) WUNUSED;

#endif
