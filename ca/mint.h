/* The X.509 part of minting: pure functions over keys and certificates, no files and no events.
 *
 * A leaf is built from scratch: nothing of it comes from a request but the checked host and the
 * checked public key (RFC 5280, RFC 6125; CA/B baseline's shape). */
#ifndef DURWARD_MINT_H
#define DURWARD_MINT_H

#include "authority.h"
#include "err.h"

#include <openssl/x509.h>
#include <time.h>

enum {
    MINT_HOURS_MAX = 24,      /* life of a leaf, at most */
    MINT_SKEW_SECONDS = 3600, /* leaves begin that long before now: clocks in sandboxes differ */
    MINT_CA_DAYS = 10 * 365,
    MINT_CN_MAX = 64, /* ub-common-name; a longer host is in the subjectAltName only */
};

/* Who signs. Both owned; zero-initialise. */
struct mint_issuer {
    X509 *cert;
    EVP_PKEY *key;
};

/* A new CA: EC P-256, self-signed, CA:TRUE with path length 0, keyCertSign, ten years from now. */
int mint_issuer_make(struct mint_issuer *ret, time_t now, struct err *err);
/* The same of this key, which it takes over, also on -1; cn: its name, MINT_CN_MAX at most. */
int mint_issuer_of(struct mint_issuer *ret, EVP_PKEY *key, const char *cn, time_t now,
                   struct err *err);
/* Can this pair sign leaves now? A CA certificate with keyCertSign (where it says), in its life,
 * and the key that belongs to it: EC on a named curve, or RSA of 2048 bits and more. */
int mint_issuer_check(const struct mint_issuer *issuer, time_t now, struct err *err);
void mint_issuer_clear(struct mint_issuer *issuer);

/* A certificate with this public key and nothing else, for mint_into(): OpenSSL takes several times
 * as long to encode and decode a key as to sign. The caller frees. NULL with err. */
X509 *mint_form(EVP_PKEY *key, struct err *err);
/* Make the form a server certificate for this host: as mint_leaf(). What it was before is gone,
 * also on -1. */
int mint_into(X509 *form, const struct mint_issuer *issuer, const struct authority *host,
              unsigned hours, time_t now, struct err *err);
/* A server certificate for this host and key: life from an hour ago to `hours` (1..MINT_HOURS_MAX)
 * from now, never beyond the issuer's. The caller frees. NULL with err. */
X509 *mint_leaf(const struct mint_issuer *issuer, const struct authority *host, EVP_PKEY *key,
                unsigned hours, time_t now, struct err *err);

#endif
