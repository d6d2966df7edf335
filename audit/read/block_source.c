/* Reads one block at a time with pread: of a plain file a step that is cut at its last newline, of
 * a compressed one a whole zstd frame. */
#include "block_source.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zstd.h>

enum { PACKED_MAX = BLOCK_MAX + BLOCK_MAX / 64 + 1024 };

struct block_source {
    int fd;
    bool packed;
    ZSTD_DCtx *unpack;
    uint64_t plain_at, at; /* of what is read next: in the text, in the file */
    char plain[BLOCK_MAX], frame[PACKED_MAX];
};

size_t block_cut(struct slice read, bool whole)
{
    const char *nl = whole || read.n == 0 ? NULL : memrchr(read.p, '\n', read.n);
    return nl ? (size_t)(nl - read.p) + 1 : read.n;
}

static ssize_t read_at(int fd, char *to, size_t n, uint64_t at)
{
    size_t have = 0;
    while (have < n) {
        ssize_t k = pread(fd, to + have, n - have, (off_t)(at + have));
        if (k < 0 && errno == EINTR)
            continue;
        if (k < 0)
            return -1;
        if (k == 0)
            break;
        have += (size_t)k;
    }
    return (ssize_t)have;
}

struct block_source *block_source_new(int fd)
{
    struct block_source *s = malloc(sizeof *s);
    unsigned char m[4];
    if (s == NULL)
        return NULL;
    s->fd = fd;
    s->plain_at = s->at = 0;
    s->packed = read_at(fd, (char *)m, sizeof m, 0) == (ssize_t)sizeof m &&
                (m[0] | (uint32_t)m[1] << 8 | (uint32_t)m[2] << 16 | (uint32_t)m[3] << 24) ==
                    ZSTD_MAGICNUMBER;
    s->unpack = s->packed ? ZSTD_createDCtx() : NULL;
    if (!s->packed || s->unpack)
        return s;
    free(s);
    return NULL;
}

void block_source_free(struct block_source *s)
{
    if (s)
        ZSTD_freeDCtx(s->unpack);
    free(s);
}

static int unpack(struct block_source *s, size_t packed_n, struct slice *lines)
{
    size_t n = ZSTD_decompressDCtx(s->unpack, s->plain, sizeof s->plain, s->frame, packed_n);
    if (ZSTD_isError(n))
        return -1;
    *lines = (struct slice){s->plain, n};
    return 0;
}

static int next_frame(struct block_source *s, struct slice *lines, struct span *where)
{
    ssize_t n = read_at(s->fd, s->frame, sizeof s->frame, s->at);
    if (n <= 0)
        return (int)n;
    size_t packed_n = ZSTD_findFrameCompressedSize(s->frame, (size_t)n);
    if (ZSTD_isError(packed_n) || unpack(s, packed_n, lines) < 0)
        return -1;
    *where = (struct span){s->plain_at, s->at, (uint32_t)lines->n, (uint32_t)packed_n};
    s->at += packed_n;
    s->plain_at += lines->n;
    return 1;
}

int block_source_next(struct block_source *s, struct slice *lines, struct span *where)
{
    if (s->packed)
        return next_frame(s, lines, where);
    ssize_t n = read_at(s->fd, s->plain, BLOCK_STEP, s->plain_at);
    if (n <= 0)
        return (int)n;
    size_t cut = block_cut((struct slice){s->plain, (size_t)n}, n < BLOCK_STEP);
    *lines = (struct slice){s->plain, cut};
    *where = (struct span){s->plain_at, 0, (uint32_t)cut, 0};
    s->plain_at += cut;
    return 1;
}

int block_source_read(struct block_source *s, const struct span *where, struct slice *lines)
{
    if (where->plain_n > sizeof s->plain || where->packed_n > sizeof s->frame)
        return -1;
    if (s->packed)
        return where->packed_n &&
                       read_at(s->fd, s->frame, where->packed_n, where->packed_at) ==
                           (ssize_t)where->packed_n &&
                       unpack(s, where->packed_n, lines) == 0 && lines->n == where->plain_n
                   ? 0
                   : -1;
    *lines = (struct slice){s->plain, where->plain_n};
    return read_at(s->fd, s->plain, where->plain_n, where->plain_at) == (ssize_t)where->plain_n
               ? 0
               : -1;
}
