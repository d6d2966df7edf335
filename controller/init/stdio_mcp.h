/* MCP over stdio, and over HTTP to our gate: what both ends inside of sandboxes share. durward-init
 * is both when it is called by the name `durward-mcp`:
 *
 *   durward-mcp NAME                      the client's end: standard input and output are a client
 *                                         of MCP; its messages go to durward.internal/mcp/NAME
 *   durward-mcp --serve IDLE -- COMMAND   the server's end, in the sandbox of the server: answers
 *                                         HTTP at STDIO_PORT of loopback, starts COMMAND for each
 *                                         session and passes messages to it
 *
 * Neither decides anything: gate and injector of the client's sandbox do. What a message is worth
 * knowing for here is which of them wait for an answer. */
#ifndef DURWARD_STDIO_MCP_H
#define DURWARD_STDIO_MCP_H

#include "buf.h"
#include "slice.h"
#include "stdio_program.h"

enum {
    STDIO_HEAD_MAX = 16 * 1024,
    STDIO_BODY_MAX = 4 << 20, /* of a request */
    STDIO_LINE_MAX = 8 << 20, /* of a server's message */
    STDIO_MESSAGES_MAX = 64,  /* of a batch */
    STDIO_ID_MAX = 160,
    STDIO_SESSION_MAX = 64
};

/* ---- stdio_json.c ---- */

/* The top level of a message. Slices lie in the text. */
struct stdio_message {
    struct slice id, method; /* as written, a text with its quotes; n 0: there is none */
    bool answers;            /* it has a result or an error */
};

/* The message that a text is, or those of a batch. How many; -1: it is none, or too many. */
int stdio_scan(struct slice text, struct stdio_message *ret, size_t max);
bool stdio_is_request(const struct stdio_message *m);
/* Texts however they are escaped; numbers as they are written. */
bool stdio_same_id(struct slice a, struct slice b);

/* ---- stdio_http.c ---- */

struct stdio_head {
    unsigned status;          /* of a reply */
    char method[8], path[64]; /* of a request */
    bool chunked, has_length, close;
    bool events, json; /* of a reply: its type */
    uint64_t length;
    char session[STDIO_SESSION_MAX + 1];
};

/* How many bytes the head takes; 0: it is not whole yet; -1: it is none. */
ssize_t stdio_head_read(struct slice in, bool request, struct stdio_head *ret);

enum stdio_body_end { STDIO_BODY_MORE = 0, STDIO_BODY_WHOLE, STDIO_BODY_BAD };

struct stdio_body {
    bool chunked, until_end;
    bool in_chunk, trailers;
    uint64_t left;
};

void stdio_body_begin(struct stdio_body *b, const struct stdio_head *h, bool request);
/* Takes what it can of `in` into `out`. */
enum stdio_body_end stdio_body_take(struct stdio_body *b, struct buf *in, struct buf *out);

/* One line: newlines, which JSON has between its tokens only, become spaces, and one ends it. */
int stdio_line(struct buf *to, struct slice text);

/* ---- stdio_server.c, stdio_client.c ---- */

int stdio_server(int argc, char **argv);
int stdio_client(int argc, char **argv);
/* argv[0] is that name: *status is the process's. */
bool stdio_main(int argc, char **argv, int *status);

#endif
