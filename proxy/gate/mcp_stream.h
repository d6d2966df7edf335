/* Streams of the older transport of the Model Context Protocol (HTTP+SSE): a client asks for events
 * by GET, hears there where to post its messages, and awaits the answer to each among the events.
 * An answer of ours goes there as well, between two events of the server's. */
#ifndef DURWARD_MCP_STREAM_H
#define DURWARD_MCP_STREAM_H

#include <sys/queue.h>

#include "authority.h"
#include "stream.h"

enum { MCP_STREAM_ENDPOINT = 1024, MCP_STREAM_WAITING = 64 * 1024 };

struct mcp_stream;
LIST_HEAD(mcp_streams, mcp_stream);

/* Where it is, and whose; what is kept by its exchange. */
struct mcp_stream_at {
    const struct authority *authority;
    const char *sandbox; /* NULL: there is only one */
};

/* NULL: memory is out. */
struct mcp_stream *mcp_stream_new(struct mcp_streams *all, const struct mcp_stream_at *at,
                                  const struct downstream *to);
void mcp_stream_free(struct mcp_stream *s); /* NULL is fine */
/* These bytes of the server's have gone to the downstream. */
void mcp_stream_saw(struct mcp_stream *s, struct slice bytes);
/* The one whose client posts its messages there, or NULL. */
struct mcp_stream *mcp_stream_of(const struct mcp_streams *all, const struct mcp_stream_at *at,
                                 const struct head *post);
/* An event of ours: now, or when the server's is over and the client has read. False: too much
 * waits. */
bool mcp_stream_put(struct mcp_stream *s, struct slice event) WUNUSED;

#endif
