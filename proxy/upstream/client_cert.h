/* The TLS client certificate of a credential, for a connection to an origin: its certificates are
 * here, its key is the vault's, which signs (vault_key.h). */
#ifndef DURWARD_CLIENT_CERT_H
#define DURWARD_CLIENT_CERT_H

#include "io.h"
#include "secret_client.h"

struct client_cert;
struct client_proof;

/* payer: whose handshakes they are. certificates: PEM, the client's own first. NULL: there are
 * none, or memory is out. */
struct client_cert *client_cert_new(struct event_base *base, struct secret_client *vault,
                                    const char *payer, const char *secret,
                                    struct slice certificates);
void client_cert_free(struct client_cert *c); /* proofs may then be freed only; NULL is fine */

/* For one handshake: before it begins. NULL: out of memory. */
struct client_proof *client_proof_new(struct client_cert *c, struct io *io, SSL *ssl);
/* The origin asked for it and got it. */
bool client_proof_given(const struct client_proof *p);
void client_proof_free(struct client_proof *p); /* before the io is closed; NULL is fine */

#endif
