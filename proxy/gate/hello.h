/* What we read of a ClientHello ourselves; OpenSSL has parsed the rest. */
#ifndef DURWARD_HELLO_H
#define DURWARD_HELLO_H

#include "slice.h"

#include <openssl/ssl.h>

/* Inside the ClientHello callback: the one host name of its server_name extension (RFC 6066 3), its
 * bytes unchecked, valid during the callback. 1 there, 0 none, -1 malformed. */
int hello_name(SSL *ssl, struct slice *name);

/* How many bytes must have come before the ClientHello that begins `in` can be whole: more than
 * there are, while its records (RFC 8446 5.1) are not all there; else no more, also where it is
 * none. Only says when OpenSSL is worth asking. */
size_t hello_needs(struct slice in);

#endif
