/* Signed sandbox tokens: how a remote sandbox says who it is, verified by each role on
 * its own with nothing but a public key.
 *
 * Text:    "dwt1." base64url(payload) "." base64url(Ed25519 signature)
 *          the signature is over the text before the second dot, "dwt1." included; base64url is
 *          RFC 4648 section 5, without padding, unused bits zero.
 * Payload: fields in ascending order, each once: u8 type, u8 length, bytes.
 *   1 sandbox  1..64 of [a-z0-9-]
 *   2 policy   1..64 of [A-Za-z0-9_.-]
 *   3 expiry   8 bytes, big-endian seconds since 1970
 *   4 seed     16 bytes, from which the sandbox's placeholders are made
 *   5 source   optional: prefix length in bits, then 4 or 16 bytes with the bits beyond it zero
 * Anything else is refused, so a token has one spelling. */
#ifndef DURWARD_TOKEN_H
#define DURWARD_TOKEN_H

#include "err.h"
#include "slice.h"

#include <openssl/evp.h>

struct sockaddr;

enum {
    TOKEN_TEXT_MAX = 512, /* with its terminator */
    TOKEN_NAME_MAX = 64,
    TOKEN_SEED = 16,
    TOKEN_KEY = 32,            /* raw Ed25519 key, either half */
    TOKEN_LIFE_SECONDS = 3600, /* a longer one is refused, whoever signed it */
    TOKEN_SKEW_SECONDS = 60    /* that the signer's clock may be ahead */
};

struct token {
    char sandbox[TOKEN_NAME_MAX + 1];
    char policy[TOKEN_NAME_MAX + 1];
    uint64_t expiry; /* seconds since 1970; valid while now < expiry */
    unsigned char seed[TOKEN_SEED];
    int source_family; /* AF_INET, AF_INET6, or 0: from anywhere */
    unsigned source_bits;
    unsigned char source[16];
};

/* An Ed25519 verifying key from its 32 raw bytes. To be made before a role is confined: OpenSSL
 * reads its configuration at first use. Free with EVP_PKEY_free. */
EVP_PKEY *token_public_key(const unsigned char raw[TOKEN_KEY], struct err *err);
/* out: TOKEN_TEXT_MAX bytes, NUL-terminated on success. Fields that a reader would refuse are
 * refused here. */
int token_sign(EVP_PKEY *key, const struct token *t, char *out, size_t size, struct err *err);
/* now: seconds since 1970. Error texts are constant. *ret is written only on success. */
int token_verify(EVP_PKEY *public_key, struct slice text, uint64_t now, struct token *ret,
                 struct err *err);
/* The peer is within the token's source prefix (v4-mapped counts as IPv4). */
bool token_from(const struct token *t, const struct sockaddr *peer);

#endif
