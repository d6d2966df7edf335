/* The memory of one nghttp2 session: counted, bounded, and wiped on release where it may hold
 * secrets. What crosses the bound fails like memory that is out, and with it the session. */
#ifndef DURWARD_HTTP2_MEMORY_H
#define DURWARD_HTTP2_MEMORY_H

#include "compiler.h"

#include <nghttp2/nghttp2.h>

struct http2_memory {
    nghttp2_mem mem; /* for nghttp2_session_*_new3 */
    size_t used, max;
    bool wipe;
};

/* m must stay where it is for as long as the session lives. */
void http2_memory_init(struct http2_memory *m, size_t max, bool wipe);

#endif
