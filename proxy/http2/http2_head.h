/* A request's field block of HTTP/2 (RFC 9113 8.2, 8.3), gathered field by field and then written
 * out as the HTTP/1.1 head that says the same, which http1_parse_request judges: one grammar, one
 * set of limits, for both versions. What only HTTP/2 has is checked here.
 *
 * One block is under way on a connection at a time (RFC 9113 4.3), so its buffers are reused. */
#ifndef DURWARD_HTTP2_HEAD_H
#define DURWARD_HTTP2_HEAD_H

#include "request_limits.h"
#include "http1_head.h"

enum http2_pseudo {
    PSEUDO_METHOD = 0,
    PSEUDO_SCHEME,
    PSEUDO_AUTHORITY,
    PSEUDO_PATH,
    PSEUDO_PROTOCOL, /* RFC 8441 */
    PSEUDO_COUNT,
};

/* What :scheme may be: what the connection is, or either where somebody else ends its TLS. */
enum http2_schemes { HTTP2_IN_TLS = 0, HTTP2_IN_CLEAR, HTTP2_EITHER };

/* A list that goes on beyond this many times the limit is no mistake. */
enum { HTTP2_LIST_FLOOD = 8 };

struct http2_head {
    const struct limits *limits;
    struct buf pseudo[PSEUDO_COUNT];
    bool has[PSEUDO_COUNT];
    struct buf fields; /* "name: value\r\n" each, but host and cookie */
    struct buf host, cookie;
    bool has_host, has_cookie;
    size_t n;       /* fields, cookie crumbs included */
    uint64_t bytes; /* RFC 9113 10.5.1: with 32 for each */
    bool trailers;  /* no pseudo-fields */
    enum http2_schemes schemes;
    struct refusal why; /* the first thing wrong; code NULL: none */
};

void http2_head_init(struct http2_head *b, const struct limits *l);
void http2_head_free(struct http2_head *b);
void http2_head_begin(struct http2_head *b, bool trailers);
/* The next field. What is wrong with it is remembered, not said. -1: the list is far beyond its
 * limit, a flood. */
int http2_head_field(struct http2_head *b, struct slice name, struct slice value);
/* The block is complete. end: no body follows. 0, or -1 with the refusal; h is initialised either
 * way, holds what could be read (for the record), and must be http_head_free'd. */
int http2_head_finish(struct http2_head *b, bool end, struct head *h, struct refusal *why);
/* A block of trailers is complete: as http1_parse_trailers reads it, into out. 0 or -1. */
int http2_head_trailers(struct http2_head *b, struct buf *out, struct refusal *why);

/* Between the two ends of one connection only: never in an HTTP/2 message (RFC 9113 8.2.2). */
bool http2_connection_field(struct slice name);

#endif
