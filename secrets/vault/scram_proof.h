/* Proofs of a database's password, made where the password is: SCRAM-SHA-256 (RFC 5802, 7677) and
 * PostgreSQL's older "md5". */
#ifndef DURWARD_SCRAM_PROOF_H
#define DURWARD_SCRAM_PROOF_H

#include "buf.h"
#include "err.h"
#include "scram_keys.h"

/* What a text to be signed is; W_SIGN_TEXT's scheme. */
enum scram_scheme {
    SCRAM_SHA_256 = 1, /* the text of an exchange (scram_text.h) */
    SCRAM_MD5,         /* 4 bytes, the salt */
    SCRAM_CLEARTEXT,   /* no text: the password itself, where its declaration allows that */
};

/* The proof and the server's signature, SCRAM_SIGNED bytes, are appended. password: as it is
 * stored; one that is printable ASCII is its own SASLprep (RFC 4013), another is taken as its
 * bytes, as PostgreSQL does with what cannot be prepared. now: see scram_keys.h. */
int scram_proof(struct scram_keys *keys, struct slice password, struct slice text, int64_t now,
                struct buf *out, struct err *err) WUNUSED;
/* The same of a text that need not be one of PostgreSQL's. salt: bytes. */
int scram_compute(struct slice password, struct slice salt, uint32_t iterations, struct slice text,
                  struct buf *out) WUNUSED;
/* "md5" and 32 digits are appended. salt: 4 bytes. */
int scram_md5(struct slice password, struct slice user, struct slice salt, struct buf *out,
              struct err *err) WUNUSED;

#endif
