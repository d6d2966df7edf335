/* A client's messages of SCRAM-SHA-256 and SCRAM-SHA-256-PLUS (RFC 5802, 7677) as PostgreSQL speaks
 * them: no user name, which its startup has said. Everything but what needs the password: whoever
 * has that turns `scram_text` into a proof and what the server must answer (the vault,
 * secrets/vault/scram_proof.h). */
#ifndef DURWARD_SCRAM_H
#define DURWARD_SCRAM_H

#include "buf.h"
#include "scram_text.h"

enum { SCRAM_BINDING_MAX = 64 }; /* bytes of a certificate's hash */

/* How the exchange is bound to the channel (RFC 5802 6). */
enum scram_channel {
    SCRAM_UNBOUND,   /* we cannot */
    SCRAM_UNOFFERED, /* we could, but the server does not offer it; it notices if it did */
    SCRAM_BOUND,     /* SCRAM-SHA-256-PLUS */
};

struct scram {
    char nonce[SCRAM_NONCE + 1];
    enum scram_channel channel;
    unsigned char binding[SCRAM_BINDING_MAX]; /* of "tls-server-end-point" */
    size_t n_binding;
    struct buf text; /* the AuthMessage (RFC 5802 3), once the server has answered */
    size_t final;    /* from where on it is the client's last message, without proof */
};

/* nonce: SCRAM_NONCE printable characters, no comma, never used before. binding, for SCRAM_BOUND:
 * the hash of the server's certificate (RFC 5929 4), at most SCRAM_BINDING_MAX bytes. */
void scram_init(struct scram *s, const char *nonce, enum scram_channel channel,
                struct slice binding);
void scram_free(struct scram *s);
/* client-first-message. */
int scram_first(const struct scram *s, struct buf *out) WUNUSED;
/* server-first-message: the text to be signed is made. */
int scram_server_first(struct scram *s, struct slice message, struct err *err) WUNUSED;
struct slice scram_text(const struct scram *s);
/* client-final-message. proof: SCRAM_HASH bytes. */
int scram_final(const struct scram *s, const unsigned char *proof, struct buf *out) WUNUSED;
/* server-final-message: is it by who knows the password's hash? */
int scram_server_final(struct slice message, const unsigned char *signature,
                       struct err *err) WUNUSED;

#endif
