/* The gate's side of minting: a leaf cache over the channel to the signer. One request in flight a
 * host; waiters share it. */
#ifndef DURWARD_MINT_CLIENT_H
#define DURWARD_MINT_CLIENT_H

#include "err.h"
#include <openssl/ssl.h>

struct event_base;
struct ipc;
struct mint_client;
struct mint_wait;

/* A leaf ready to serve: certificate and chain; the key is the gate's own. Refcounted by OpenSSL's
 * own X509 counts; valid until the callback returns unless up-ref'd. */
struct leaf {
    X509 *cert;
    X509 *issuer;
    EVP_PKEY *key;
};
/* leaf is NULL on failure (err says why). */
typedef void (*mint_fn)(void *arg, const struct leaf *leaf, const struct err *err);

/* Makes the process's leaf key (EC P-256). mints: new certificates a second at most, beyond which a
 * request fails with ERR_LIMIT. cache: leaves kept (least recently used go). */
struct mint_client *mint_client_new(struct event_base *base, unsigned mints, unsigned cache,
                                    struct err *err);
void mint_client_free(struct mint_client *c);
/* The channel to the signer, owned from here on; a new one replaces a dead one. Requests while
 * there is none fail with ERR_UNREADY after 2 s. */
void mint_client_attach(struct mint_client *c, int signer_fd, uint32_t number);
/* Who is told of the number when that channel ends (peer_lost). */
void mint_client_lost_to(struct mint_client *c, struct ipc *parent);
/* Calls fn at once on a cache hit (and returns NULL), else later. */
struct mint_wait *mint_client_get(struct mint_client *c, const char *host, mint_fn fn, void *arg);
void mint_client_cancel(struct mint_wait *w); /* fn will not run */
/* The handshake of this connection goes on with that leaf. -1: it cannot. */
int leaf_use(const struct leaf *leaf, SSL *ssl);
size_t mint_client_cached(const struct mint_client *c);

#endif
