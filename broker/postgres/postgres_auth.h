/* A client's side of PostgreSQL's login: what the server asks for and what is answered, but for
 * proofs, which whoever has the password makes (the vault). Pure but for the connection's
 * certificate, to which SCRAM binds. */
#ifndef DURWARD_POSTGRES_AUTH_H
#define DURWARD_POSTGRES_AUTH_H

#include "buf.h"
#include "err.h"
#include "scram.h"

#include <openssl/ssl.h>

enum postgres_auth_end {
    POSTGRES_AUTH_FAILED = -1, /* `code` and `why` say so */
    POSTGRES_AUTH_MORE = 0,    /* the server has the word */
    POSTGRES_AUTH_SAY,         /* out is the body of a message of type 'p' */
    POSTGRES_AUTH_PROVE,       /* a proof of `text` is needed, of that scheme */
    POSTGRES_AUTH_DONE,
};

/* Zeroes: nothing was said yet. */
struct postgres_auth {
    struct scram scram;
    bool in_scram;
    bool proven;   /* SCRAM: the server has shown that it knows the password's hash */
    bool proving;  /* a proof is awaited */
    bool answered; /* a proof is with the server */
    unsigned char signature[SCRAM_HASH];
    const char *code, *why;
    struct err err;
    uint32_t scheme; /* as secrets/vault/scram_proof.h numbers them */
    struct slice text;
};

void postgres_auth_free(struct postgres_auth *a);
/* The body of a message of type 'R'. */
enum postgres_auth_end postgres_auth_read(struct postgres_auth *a, struct slice body, SSL *ssl,
                                          struct buf *out) WUNUSED;
/* The proof that was needed: the body of the message that carries it. -1: it is none. */
int postgres_auth_prove(struct postgres_auth *a, struct slice proof, struct buf *out) WUNUSED;

#endif
