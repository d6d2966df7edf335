/* HTTP/1.1 body framing (RFC 9112 6, 7): a strict incremental reader. */
#ifndef DURWARD_HTTP1_BODY_H
#define DURWARD_HTTP1_BODY_H

#include "http_head.h"

enum { HTTP1_TRAILERS_MAX = 8192, HTTP1_EXTENSION_MAX = 256 };

enum chunk_state {
    CHUNK_SIZE = 0,
    CHUNK_EXTENSION,
    CHUNK_SIZE_LF,
    CHUNK_DATA,
    CHUNK_DATA_CR,
    CHUNK_DATA_LF,
    CHUNK_TRAILER,
    CHUNK_DONE,
};

/* Where in ";name[=value]" (RFC 9112 7.1.1, without its blanks). */
enum extension_state {
    EXTENSION_NAME_FIRST = 0,
    EXTENSION_NAME,
    EXTENSION_VALUE_FIRST,
    EXTENSION_VALUE,
    EXTENSION_QUOTED,
    EXTENSION_ESCAPED,
    EXTENSION_QUOTED_END,
};

struct http1_body {
    enum body_kind kind;
    uint64_t left; /* of the length, or of the chunk */
    enum chunk_state chunk;
    unsigned digits, extension; /* seen of the chunk's line */
    enum extension_state in_extension;
    struct buf trailers; /* raw field lines, CRLFCRLF at the end */
    bool done;
};

void http1_body_init(struct http1_body *b, enum body_kind kind, uint64_t length);
void http1_body_free(struct http1_body *b);
/* Look at input; set *out to body bytes inside it (maybe none); return how many input bytes were
 * used (out included), or -1 on bad framing. Call again while it uses something and !done. `max`
 * bounds out. */
ssize_t http1_body_read(struct http1_body *b, struct slice in, size_t max, struct slice *out);

/* After done: the field lines behind the last chunk, in h, which must be freed either way. Returns
 * how many. */
size_t http1_body_trailers(const struct http1_body *b, struct head *h);

#endif
