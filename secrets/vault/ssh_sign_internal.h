/* Keys of SSH as OpenSSL has them: what ssh_sign.c reads and writes, for certificates. */
#ifndef DURWARD_SSH_SIGN_INTERNAL_H
#define DURWARD_SSH_SIGN_INTERNAL_H

#include "buf.h"
#include "err.h"

#include <openssl/types.h>

/* The private key of a text; the caller's. NULL with err. */
EVP_PKEY *ssh_sign_key(struct slice text, struct err *err) WUNUSED;
/* Its public half, appended as SSH writes it. 0 or -1. */
int ssh_sign_public(struct buf *out, const EVP_PKEY *key) WUNUSED;
/* A signature by its own algorithm, for RSA rsa-sha2-512, appended as SSH writes it. What is signed
 * the vault has written itself. 0 or -1. */
int ssh_sign_as(EVP_PKEY *key, struct slice text, struct buf *out) WUNUSED;
/* What a login signs (RFC 4252 7), read whole: with which algorithm, and whose public half. 0 or
 * -1. */
int ssh_sign_login(struct slice text, struct slice *algorithm, struct slice *public) WUNUSED;

#endif
