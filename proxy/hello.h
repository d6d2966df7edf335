/* What we read of a ClientHello ourselves; OpenSSL has parsed the rest. */
#ifndef DURWARD_HELLO_H
#define DURWARD_HELLO_H

#include "slice.h"

#include <openssl/ssl.h>

/* Inside the ClientHello callback: the one host name of its server_name extension (RFC 6066 3), its
 * bytes unchecked, valid during the callback. 1 there, 0 none, -1 malformed. */
int hello_name(SSL *ssl, struct slice *name);

#endif
