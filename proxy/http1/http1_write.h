/* Canonical HTTP/1.1 serialisation: never a byte of the received head as it came. */
#ifndef DURWARD_HTTP1_WRITE_H
#define DURWARD_HTTP1_WRITE_H

#include "answer.h"
#include "http_head.h"

/* A body is usual with this method. With others an origin may leave it unread and take it for the
 * next request (attack B3): the connection carries no second one, and the request says so. */
bool http1_expects_body(struct slice method);
/* Request towards an origin: origin form, our Host, the fields of h (already cleaned), framing by
 * h->body. -1 when the buffer is too small. */
int http1_write_request(struct buf *out, const struct head *h, const struct authority *a);
/* Reply towards the sandbox. body: how it will be framed; close: Connection: close is said. */
int http1_write_reply(struct buf *out, const struct head *h, enum body_kind body, uint64_t length,
                      bool close, bool head_request);
/* The last chunk and the trailers behind it. */
/* A 101 that begins a WebSocket with our own accept value. */
int http1_write_upgrade(struct buf *out, const struct head *h, const char *accept) WUNUSED;
int http1_write_trailers(struct buf *out, const struct head *h);
/* Our own refusal. extra_field: a whole line, or "". */
int http1_write_refusal(struct buf *out, const struct answer *a, bool close, bool head_request,
                        const char *extra_field);
const char *http1_reason(unsigned status);

#endif
