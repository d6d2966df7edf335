/* Whose a connection of HTTP/2 is, before anybody speaks to it: the name in its first request, out
 * of bytes that stay where they are. For whoever only hands the connection on. */
#ifndef DURWARD_HTTP2_PEEK_H
#define DURWARD_HTTP2_PEEK_H

#include "slice.h"

/* What each such connection begins with. */
#define HTTP2_PREFACE "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

/* in: what follows the preface. 1 with :authority of the first request in `to`; 0: more bytes are
 * needed; -1: it does not begin with a request that names one, in one frame. */
int http2_peek_authority(struct slice in, char *to, size_t size);

#endif
