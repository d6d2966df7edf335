/* A connection of a program that waits for it and may connect by itself: of the command to a daemon
 * elsewhere, of durward-kubernetes to its API server. No role's, which asks the dialer. Blocking.
 */
#ifndef DURWARD_REACH_H
#define DURWARD_REACH_H

#include <openssl/ssl.h>

#include "authority.h"
#include "err.h"

/* By the host's resolver, each address in turn. seconds: for the connection, and from then on for
 * each read and write. who: what does not answer there, "daemon". The descriptor is the caller's;
 * -1 with err. */
int reach_tcp(const struct authority *at, unsigned seconds, const char *who, struct err *err);

enum reach_tls {
    REACH_TLS_GOOD = 0,
    REACH_TLS_UNTRUSTED, /* SSL_get_verify_result says why */
    REACH_TLS_NONE,      /* it does not speak TLS with us */
};
/* The client's handshake on fd, which stays the caller's. The certificate has to be good by ssl's
 * roots and for that very host or address (RFC 6125, 6.4; RFC 5280, 4.2.1.6). */
enum reach_tls reach_tls(SSL *ssl, int fd, const struct authority *at);

#endif
