/* What the signer agrees to certify, whoever asks (attacks E8, E9, E10).
 *
 * The requester is a gate, which may be in the hands of a sandbox. So the signer signs nothing that
 * it was given: it takes a host name and a public key, checks both here, and builds the certificate
 * by itself. */
#ifndef DURWARD_MINT_POLICY_H
#define DURWARD_MINT_POLICY_H

#include "authority.h"
#include "err.h"

#include <openssl/evp.h>

enum { MINT_SPKI_LEN = 91 }; /* a SubjectPublicKeyInfo of an uncompressed EC P-256 point */

/* The host must be canonical already, byte for byte (lower case, no trailing dot, no wildcard, IPv6
 * without brackets); the key EC P-256 on its named curve, DER and nothing after it, the caller's to
 * free. ERR_DENIED otherwise. */
int mint_policy_host(struct slice host, struct authority *ret, struct err *err);
EVP_PKEY *mint_policy_key(struct slice spki, struct err *err);
/* Both. */
int mint_policy_check(struct slice host, struct slice spki, struct authority *ret_host,
                      EVP_PKEY **ret_key, struct err *err);

#endif
