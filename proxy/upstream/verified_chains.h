/* Which chains of certificates a client context found good a short while ago, so that neither their
 * signatures nor their way to a root are worked out again for the next connection: by their bytes,
 * for the same owner and the same roots. What depends on who was asked for, the name or address,
 * is checked each time, and that the origin holds the leaf's key is proved in each handshake. */
#ifndef DURWARD_VERIFIED_CHAINS_H
#define DURWARD_VERIFIED_CHAINS_H

#include "compiler.h"
#include <openssl/ssl.h>

enum {
    VERIFIED_CHAINS_MAX = 128,     /* a context; the one that was verified first goes */
    VERIFIED_CHAINS_SECONDS = 300, /* after which a chain is verified anew */
};

/* Connections of this context that tls_sessions_begin was told of use what it found good, for so
 * many seconds at most. It is the context's from here on. -1: out of memory. */
int verified_chains_setup(SSL_CTX *ctx, unsigned seconds) WUNUSED;
/* Nothing is known any more: the roots are others. */
void verified_chains_forget(SSL_CTX *ctx);
/* How many verifications were spared. */
size_t verified_chains_spared(const SSL_CTX *ctx);

#endif
