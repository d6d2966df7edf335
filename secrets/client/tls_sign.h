/* TLS client certificates: the part that needs the private key. The vault holds certificates and
 * key as one value; whoever does the handshake gets the certificates, and a signature over what a
 * handshake signs and nothing else (RFC 8446 4.4.3, RFC 5246 7.4.8). */
#ifndef DURWARD_TLS_SIGN_H
#define DURWARD_TLS_SIGN_H

#include "buf.h"
#include "err.h"
#include "secret.h"

#include <stdint.h>

enum {
    TLS_SIGNED_MAX = 64 * 1024, /* TLS 1.2 signs every message of the handshake so far */
    TLS_SIGNATURE_MAX = 1024,
};

/* SignatureScheme of RFC 8446 4.2.3 for this key's type ("RSA", "EC", "ED25519"), digest and, for
 * RSA, padding; 0: none that we sign with. */
struct evp_pkey_st;
uint16_t tls_scheme(const struct evp_pkey_st *key, const char *digest, bool pss);

/* certificates: PEM, the client's own first; key: PEM without a passphrase, its. The value under
 * which the vault keeps both. NULL with err when they are not that. */
struct secret *tls_pack(struct slice certificates, struct slice key, struct err *err);
/* The certificates of such a value, in PEM; n 0 when it is none. */
struct slice tls_certificates(struct slice value);
/* text is checked to be what a client signs in a handshake. */
int tls_sign(struct slice value, uint16_t scheme, struct slice text, struct buf *out,
             struct err *err) WUNUSED;
/* Is it what a client signs in a TLS 1.3 or TLS 1.2 handshake? */
bool tls_is_signed_text(struct slice text);

#endif
