/* A body of signed chunks ("aws-chunked" of AWS Signature Version 4, S3 alone): read piece by
 * piece, each with the place where its signature stands. A piece goes on as it came but for those
 * 64 digits, so that the body's length and its pieces stay what the client said. Pure: no events,
 * no keys.
 *
 *   SIZE;chunk-signature=HEX CRLF data CRLF … 0;chunk-signature=HEX CRLF CRLF
 *
 * or, with a signed trailer, after the line of size 0:
 *
 *   name:value LF …, each perhaps CRLF, x-amz-trailer-signature:HEX CRLF CRLF */
#ifndef DURWARD_AWS_CHUNKS_H
#define DURWARD_AWS_CHUNKS_H

#include "aws_sign.h"

enum {
    AWS_CHUNK_MAX = 1 << 20, /* bytes of data of a chunk; what SDKs send has 64 or 128 KiB */
    AWS_CHUNK_MIN = 8192, /* of all but the last, as S3 wants it (InvalidChunkSizeError); each costs
                             the vault a signature, and they cannot be joined: the length of the
                             body is in its head */
    AWS_CHUNK_LINE = 128,
    AWS_TRAILER_MAX = 2048,
    AWS_TRAILER_NAMES = 256,
};

enum aws_chunk_state { CHUNKS_DATA = 0, CHUNKS_TRAILER, CHUNKS_OVER };

struct aws_chunks {
    enum aws_chunk_state state;
    bool trailer;                  /* a signed one is to come */
    char names[AWS_TRAILER_NAMES]; /* of its fields, as x-amz-trailer says them */
    uint64_t left;                 /* data that is still to come */
};

/* What is signed next, in a text that begins with it. */
struct aws_piece {
    size_t n;    /* bytes of the text that are it */
    size_t hole; /* where the 64 digits of its signature stand */
    enum aws_text text;
    char hash[AWS_HEX + 1];
};

/* decoded: of all data, as the client says; names: NULL for no trailer. -1: too long. */
int aws_chunks_init(struct aws_chunks *c, uint64_t decoded, const char *names) WUNUSED;
/* text: all that is there and not yet used. 1: *ret is the next piece, and the reader is behind it.
 * 0: *ret.n bytes at least must be there first. -1: it is no such body, or more than was said. */
int aws_chunks_next(struct aws_chunks *c, struct slice text, struct aws_piece *ret) WUNUSED;
bool aws_chunks_over(const struct aws_chunks *c); /* the last piece was read */

#endif
