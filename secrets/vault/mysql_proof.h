/* Proofs of a password at a MySQL or MariaDB server, made where the password is. */
#ifndef DURWARD_MYSQL_PROOF_H
#define DURWARD_MYSQL_PROOF_H

#include "buf.h"
#include "err.h"

/* What a text to be signed is; W_SIGN_TEXT's scheme. */
enum mysql_scheme {
    MYSQL_NATIVE = 1, /* 20 bytes, the server's nonce; 20 bytes come of it */
    MYSQL_SHA2,       /* 20 bytes; 32 */
    MYSQL_ED25519,    /* 32 bytes; 64: MariaDB's client_ed25519 */
    MYSQL_CLEARTEXT,  /* no text: the password itself, for caching_sha2's full login in TLS */
};

enum { MYSQL_NONCE = 20, MYSQL_LONG_NONCE = 32, MYSQL_PASSWORD_MAX = 1024 };

/* auth: of the login's declaration, "caching_sha2", "ed25519" or "native", what is proven no weaker
 * way than. The proof is appended. */
int mysql_proof(struct slice password, const char *auth, uint32_t scheme, struct slice text,
                struct buf *out, struct err *err) WUNUSED;
/* MariaDB's signature: Ed25519 (RFC 8032) by a key that is the password of any length. */
int mysql_ed25519(struct slice password, struct slice text, struct buf *out) WUNUSED;

#endif
