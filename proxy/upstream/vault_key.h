/* A private key that is not in this process, as OpenSSL's handshake needs one: its public half is
 * here, each signature is asked for. Signing runs as an asynchronous job of OpenSSL's, so the
 * handshake waits (SSL_ERROR_WANT_ASYNC) and the event loop goes on. */
#ifndef DURWARD_VAULT_KEY_H
#define DURWARD_VAULT_KEY_H

#include "compiler.h"
#include "slice.h"

#include <openssl/ssl.h>

struct vault_key;

/* Once a process, before it is confined. -1: OpenSSL cannot. */
int vault_key_setup(void) WUNUSED;

/* wanted is called from within the handshake, on a small stack of its own: it may not do more than
 * make an event active. */
typedef void (*vault_key_fn)(void *arg);
/* Make ssl use this certificate with a key of that kind. Not freed before ssl's handshake is over
 * or was given up with vault_key_free. NULL: it cannot be used, or memory is out. */
struct vault_key *vault_key_new(SSL *ssl, STACK_OF(X509) * chain, vault_key_fn wanted, void *arg);
/* What is to be signed, after wanted; scheme: of RFC 8446 4.2.3. */
struct slice vault_key_text(const struct vault_key *k, uint16_t *scheme);
/* The signature (n 0: there is none): the handshake may go on. */
void vault_key_signed(struct vault_key *k, struct slice signature);
/* Was a signature given to a handshake? Then the origin had asked for the certificate. */
bool vault_key_used(const struct vault_key *k);
/* A handshake that waits is made to fail first. Before ssl is freed. NULL is fine. */
void vault_key_free(struct vault_key *k);

#endif
