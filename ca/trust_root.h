/* What the signer says of the root of a sandbox's own CA, for whoever lays the sandbox out
 * (trust_sandbox.h) without OpenSSL. */
#ifndef DURWARD_TRUST_ROOT_H
#define DURWARD_TRUST_ROOT_H

#include "buf.h"
#include "err.h"

#include <openssl/x509.h>

/* W_ROOT's bytes: pem:bytes, name:str (trust_hashed_next), java:bytes (trust_store_safe). */
int trust_root_put(X509 *root, struct buf *to, struct err *err);

#endif
