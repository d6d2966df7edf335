/* A body of signed chunks, in one piece and in two: the same pieces, each with its digits inside
 * it, no byte left out or read past the end. First byte: where to cut; second: with a trailer. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "aws_chunks.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { PIECES = 64 };

struct reading {
    size_t n, end[PIECES], used;
    int last;
};

static void must(bool holds)
{
    if (!holds)
        abort();
}

/* As far as it goes with what is there up to `to`. */
static void read_on(struct aws_chunks *c, struct slice text, size_t to, struct reading *r)
{
    struct aws_piece piece;
    r->last = 0;
    while (r->n < PIECES) {
        struct slice rest = {text.p + r->used, to - r->used};
        r->last = aws_chunks_next(c, rest, &piece);
        if (r->last <= 0) {
            must(r->last < 0 || aws_chunks_over(c) || piece.n > rest.n);
            return;
        }
        must(piece.n <= rest.n && piece.hole + AWS_HEX <= piece.n);
        must(strspn(piece.hash, "0123456789abcdef") == AWS_HEX);
        must(piece.text == AWS_CHUNK || piece.text == AWS_TRAILER);
        r->used += piece.n;
        r->end[r->n++] = r->used;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    struct aws_chunks one, two;
    const char *names = data[1] & 1 ? "x-amz-checksum-crc32c" : NULL;
    uint64_t decoded = data[1] >> 1;
    struct slice text = {(const char *)data + 2, size - 2};
    struct reading a = {0}, b = {0};
    size_t cut = data[0] < text.n ? data[0] : text.n;
    must(aws_chunks_init(&one, decoded, names) == 0 && aws_chunks_init(&two, decoded, names) == 0);
    read_on(&one, text, text.n, &a);
    read_on(&two, text, cut, &b);
    if (b.last == 0)
        read_on(&two, text, text.n, &b);
    must(a.n == b.n && memcmp(a.end, b.end, a.n * sizeof a.end[0]) == 0);
    must((a.last < 0) == (b.last < 0));
    return 0;
}
