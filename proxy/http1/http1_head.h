/* HTTP/1.x heads: a strict grammar check of the raw bytes (RFC 9112; what is not listed is
 * refused), then http-parser's own reading of the same bytes must agree. */
#ifndef DURWARD_HTTP1_HEAD_H
#define DURWARD_HTTP1_HEAD_H

#include "request_limits.h"
#include "http_head.h"

enum { HTTP1_MORE = 0, HTTP1_BAD = -1, HTTP1_LARGE = -2 };

/* Where the head at the front of the buffer ends (bytes, CRLFCRLF included); HTTP1_MORE when it is
 * not all there; HTTP1_BAD on a bare LF, an empty first line or a NUL; HTTP1_LARGE when it exceeds
 * max. *scanned is where the last call stopped (start with 0); on HTTP1_BAD, the byte at fault. */
ssize_t http1_head_end(struct slice in, size_t max, size_t *scanned);
/* What to answer to HTTP1_BAD or HTTP1_LARGE. */
struct refusal http1_head_refusal(ssize_t end, struct slice in, size_t scanned);

/* Parse raw[0..n), a whole head. 0, or -1 with the refusal; h is initialised either way and must be
 * http_head_free'd. */
int http1_parse_request(struct head *h, struct slice raw, const struct limits *l,
                        struct refusal *why);
/* The target that a request was sent on for, in origin form, instead of its own: path and query are
 * read anew. text must live as long as the head. 0, or -1 with the refusal. */
int http1_retarget(struct head *h, struct slice text, const struct limits *l, struct refusal *why);
/* A reply to a request with this method. accept: what answers the upgrade that was asked
 * for (upgrade_accept), or NULL; without one a 101 is refused. What a proxy may mend is mended
 * first (h->repaired), and the connection not used again. Refusals carry status 502. */
int http1_parse_reply(struct head *h, struct slice raw, struct slice method, const char *accept,
                      const struct limits *l, struct refusal *why);
/* http1_repair.c: a reply's head as a proxy is to pass it on: a blank in front of a colon, equal
 * Content-Lengths, a coding of 204 and 304. What was mended (enum repair), and *out is that head;
 * 0: there is nothing to mend; -1: out of memory. out: room for four bytes more than each line has.
 */
int http1_repair_reply(struct slice raw, struct buf *out);
/* "name, length"; "": nothing. to: REPAIR_TEXT bytes. */
enum { REPAIR_TEXT = 24 };
const char *repair_text(unsigned repaired, char to[REPAIR_TEXT]);
/* Field lines alone (chunked trailers), at most max bytes. */
int http1_parse_trailers(struct head *h, struct slice raw, const struct limits *l);

/* http1_parser.c: the second opinion. True when http-parser reads the same head. */
bool http1_parser_agrees_request(const struct head *h, struct slice raw);
/* The method is one http-parser can read at all. */
bool http1_parser_knows(struct slice method);
bool http1_parser_agrees_reply(const struct head *h, struct slice raw, struct slice method);

bool http1_is_token(struct slice s);
/* Field value: no control byte but HTAB. */
bool http1_is_value(struct slice s);

#endif
