/* What a client is told of a command (doc/openapi.json, POST …/exec), as lines of JSON in chunks or
 * as frames of an upgraded connection, and what its frames do. A frame is type:u8, length:u32 (big
 * endian), length bytes. */
#ifndef DURWARD_EXEC_FRAMES_H
#define DURWARD_EXEC_FRAMES_H

#include <event2/buffer.h>
#include <jansson.h>

#include "execution.h"

enum { EXEC_FRAME_HEAD = 5, EXEC_FRAME_MAX = 64 * 1024 };
/* To the client. EXEC_DETACHED: another client has taken its place. */
enum exec_frame { EXEC_STARTED = 0, EXEC_OUT, EXEC_ERR, EXEC_EXIT, EXEC_DETACHED };

#define EXEC_HEAD_FRAMES                                          \
    "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n" \
    "Upgrade: durward-exec\r\n\r\n"
#define EXEC_HEAD_LINES                                                                    \
    "HTTP/1.1 200 OK\r\nContent-Type: application/x-ndjson\r\nCache-Control: no-store\r\n" \
    "Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n"

/* As frames or as lines. put: takes the reference; output: of an enum exec_frame. */
void exec_put(struct evbuffer *out, bool frames, enum exec_frame type, json_t *v);
void exec_put_output(struct evbuffer *out, bool frames, enum exec_frame type, const void *p,
                     size_t n);
void exec_put_end(struct evbuffer *out, bool frames); /* behind the last of them */
/* What lies in `kept` as frames of output. */
void exec_put_kept(struct evbuffer *out, bool frames, struct evbuffer *kept);

/* How many bytes are behind this head. */
static inline size_t exec_frame_size(const unsigned char head[EXEC_FRAME_HEAD])
{
    return (size_t)head[1] << 24 | (size_t)head[2] << 16 | (size_t)head[3] << 8 | head[4];
}

/* n: at most EXEC_FRAME_MAX. */
void exec_frame_put(struct evbuffer *out, enum exec_frame type, const void *p, size_t n);
/* ExecLine of its start and of its end; new references. */
json_t *exec_started_json(const struct execution *e);
json_t *exec_exit_json(const struct execution *e);

/* All whole frames that a client sent. 0; 1: nothing more is to be read until the command has read
 * (execution_ops.fed); -1: nonsense. e NULL: it has ended, and they go nowhere. */
int exec_frames_take(struct evbuffer *in, struct execution *e);

#endif
