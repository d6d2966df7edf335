/* What the first bytes of a connection say, which stay where they are: is it HTTP/2, and whose, by
 * the name in its first request? The latter for whoever only hands the connection on. */
#ifndef DURWARD_HTTP2_PEEK_H
#define DURWARD_HTTP2_PEEK_H

#include "slice.h"

/* What each such connection begins with. */
#define HTTP2_PREFACE "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

/* Does a connection that began with these bytes speak HTTP/2 by prior knowledge (RFC 9113 3.3)? 1:
 * all of the preface is there; 0: as far as it goes, more bytes are needed; -1: no. */
int http2_peek_preface(struct slice in);

/* in: what follows the preface. 1 with :authority of the first request in `to`; 0: more bytes are
 * needed; -1: it does not begin with a request that names one, in one frame. */
int http2_peek_authority(struct slice in, char *to, size_t size);

#endif
