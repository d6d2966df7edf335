/* A server's replies (RESP2 and RESP3) on their way to the client: what ends where, so that an
 * error at the top can be given another text. All else goes on as it came, in pieces. */
#ifndef DURWARD_RESP_REPLY_H
#define DURWARD_RESP_REPLY_H

#include "buf.h"

enum {
    RESP_DEPTH_MAX = 32,
    RESP_LINE_MAX = 64 * 1024,         /* of a simple string or a number */
    RESP_ERROR_MAX = 4096,             /* of an error that may get another text */
    RESP_BULK_MAX = 512 * 1024 * 1024, /* Redis' own bound */
};

struct resp_replies {
    uint64_t left[RESP_DEPTH_MAX]; /* values that are to come, of each aggregate that is open */
    unsigned depth;
    int at;
    char type;
    uint64_t number;
    unsigned digits;
    bool minus;
    size_t length; /* of the line so far */
    struct buf error;
    bool in_error;
    const char *why;
};

/* The text of an error line ("-ERR ..." without its end), to be put into out with its end. */
typedef int (*resp_error_fn)(void *arg, struct slice line, struct buf *out);

void resp_replies_init(struct resp_replies *r);
void resp_replies_free(struct resp_replies *r);
/* All of in, onto out. -1: the server says what is no reply (r->why), or out is full. */
int resp_replies_read(struct resp_replies *r, struct slice in, struct buf *out, resp_error_fn fn,
                      void *arg);

#endif
