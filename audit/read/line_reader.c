/* Reads a file in blocks with pread, unpacks it where it is compressed, and splits it at newlines.
 * Seeking in a compressed file unpacks it once more from its first byte. */
#include "line_reader.h"

#include "render.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zstd.h>

enum { BLOCK = 256 * 1024, PACKED_BLOCK = 64 * 1024 };

struct unpack {
    ZSTD_DCtx *stream;
    uint64_t from; /* file offset behind `block` */
    uint64_t skip; /* plain bytes to drop: a seek */
    bool open;     /* inside a frame */
    ZSTD_inBuffer in;
    char block[PACKED_BLOCK];
};

struct line_reader {
    int fd;
    struct unpack *unpack; /* of a compressed file, else NULL */
    uint64_t base;         /* file offset of block[0] */
    size_t start, end;     /* unread part of the block */
    uint64_t at, after;    /* of the line given last */
    char block[BLOCK];
};

static bool is_packed(int fd)
{
    unsigned char magic[4];
    return pread(fd, magic, sizeof magic, 0) == (ssize_t)sizeof magic &&
           (magic[0] | (uint32_t)magic[1] << 8 | (uint32_t)magic[2] << 16 |
            (uint32_t)magic[3] << 24) == ZSTD_MAGICNUMBER;
}

static struct unpack *unpack_new(void)
{
    struct unpack *u = calloc(1, sizeof *u);
    if (u && (u->stream = ZSTD_createDCtx()) != NULL)
        return u;
    free(u);
    return NULL;
}

struct line_reader *line_reader_new(int fd)
{
    struct line_reader *r = calloc(1, sizeof *r);
    if (r == NULL)
        return NULL;
    r->fd = fd;
    if (is_packed(fd) && (r->unpack = unpack_new()) == NULL) {
        free(r);
        return NULL;
    }
    return r;
}

void line_reader_free(struct line_reader *r)
{
    if (r && r->unpack) {
        ZSTD_freeDCtx(r->unpack->stream);
        free(r->unpack);
    }
    free(r);
}

void line_reader_seek(struct line_reader *r, uint64_t offset)
{
    r->base = r->at = r->after = offset;
    r->start = r->end = 0;
    if (r->unpack == NULL)
        return;
    ZSTD_DCtx_reset(r->unpack->stream, ZSTD_reset_session_only);
    r->unpack->from = 0;
    r->unpack->in = (ZSTD_inBuffer){r->unpack->block, 0, 0};
    r->unpack->skip = offset;
    r->unpack->open = false;
}

uint64_t line_reader_at(const struct line_reader *r)
{
    return r->at;
}

uint64_t line_reader_after(const struct line_reader *r)
{
    return r->after;
}

static ssize_t read_at(int fd, void *p, size_t n, uint64_t at)
{
    ssize_t got;
    do
        got = pread(fd, p, n, (off_t)at);
    while (got < 0 && errno == EINTR);
    return got;
}

/* The next plain bytes of a compressed file. A frame that is cut off is an error, not an end. */
static ssize_t unpack(struct line_reader *r, char *to, size_t room)
{
    struct unpack *u = r->unpack;
    for (;;) {
        if (u->in.pos == u->in.size) {
            ssize_t n = read_at(r->fd, u->block, sizeof u->block, u->from);
            if (n <= 0) {
                errno = n < 0 ? errno : EIO;
                return n < 0 || u->open ? -1 : 0;
            }
            u->from += (uint64_t)n;
            u->in = (ZSTD_inBuffer){u->block, (size_t)n, 0};
        }
        ZSTD_outBuffer out = {to, room, 0};
        size_t left = ZSTD_decompressStream(u->stream, &out, &u->in);
        if (ZSTD_isError(left)) {
            errno = EIO;
            return -1;
        }
        u->open = left != 0;
        size_t drop = out.pos < u->skip ? out.pos : (size_t)u->skip;
        u->skip -= drop;
        if (out.pos > drop) {
            memmove(to, to + drop, out.pos - drop);
            return (ssize_t)(out.pos - drop);
        }
    }
}

/* More bytes behind the unread part. 1 some, 0 end of file, -1 error. */
static int fill(struct line_reader *r)
{
    if (r->start) {
        memmove(r->block, r->block + r->start, r->end - r->start);
        r->base += r->start;
        r->end -= r->start;
        r->start = 0;
    }
    char *to = r->block + r->end;
    size_t room = sizeof r->block - r->end;
    ssize_t n = r->unpack ? unpack(r, to, room) : read_at(r->fd, to, room, r->base + r->end);
    if (n > 0)
        r->end += (size_t)n;
    return n > 0 ? 1 : (int)n;
}

/* The rest of a line whose beginning was too long. */
static enum line_state skip_long(struct line_reader *r)
{
    for (;;) {
        int got = fill(r);
        if (got <= 0)
            return got < 0 ? LINE_ERROR : LINE_LONG;
        char *nl = memchr(r->block, '\n', r->end);
        r->start = nl ? (size_t)(nl - r->block) + 1 : r->end;
        r->after = r->base + r->start;
        if (nl)
            return LINE_LONG;
    }
}

enum line_state line_reader_next(struct line_reader *r, struct slice *line)
{
    size_t searched = 0;
    for (;;) {
        char *from = r->block + r->start;
        size_t n = r->end - r->start;
        char *nl = n > searched ? memchr(from + searched, '\n', n - searched) : NULL;
        *line = (struct slice){from, nl ? (size_t)(nl - from) : n};
        r->at = r->base + r->start;
        if (nl) {
            r->start += line->n + 1;
            r->after = r->base + r->start;
            return line->n > RENDER_LINE_MAX ? LINE_LONG : LINE_WHOLE;
        }
        r->after = r->at + n;
        if (n > RENDER_LINE_MAX) {
            line->n = 0; /* its bytes are given up */
            r->start = r->end;
            return skip_long(r);
        }
        searched = n;
        int got = fill(r);
        if (got < 0)
            return LINE_ERROR;
        if (got == 0) {
            *line = (struct slice){r->block + r->start, n};
            r->start = r->end;
            return n ? LINE_TORN : LINE_END;
        }
    }
}
