/* TLS sessions of origins, for resumption: kept in the process that made them and found again by
 * the very key of the pool only, so a resumption never crosses sandbox, policy, authority or
 * credential (attack E12). Not after an hour: certificates are verified anew then. */
#ifndef DURWARD_TLS_SESSIONS_H
#define DURWARD_TLS_SESSIONS_H

#include "slice.h"
#include <openssl/ssl.h>

struct tls_sessions;

struct tls_sessions *tls_sessions_new(size_t max);
void tls_sessions_free(struct tls_sessions *t); /* its connections may outlive it */
/* Let connections of this client context give their sessions to the t they were begun with. */
void tls_sessions_setup(SSL_CTX *ctx);
/* Before the handshake: offer what is kept for key, and keep what the origin gives. -1: out of
 * memory. */
int tls_sessions_begin(struct tls_sessions *t, const char *key, SSL *ssl) WUNUSED;
/* Whose a connection is that was begun so: what its key says before the first '|'. It is the
 * connection's. */
bool tls_sessions_owner(const SSL *ssl, struct slice *ret);
/* Forget those whose key starts with prefix. */
void tls_sessions_drop(struct tls_sessions *t, const char *prefix);
size_t tls_sessions_count(const struct tls_sessions *t);

#endif
