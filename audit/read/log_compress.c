/* Compresses one block at each step into a temporary file, which is renamed once it is synced. An
 * index of blocks that cannot be made is given up; the compression goes on without it. */
#include "log_compress.h"

#include "log_blocks.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zstd.h>

/* Logs are small with level 1 already: level 3 makes them larger, and takes twice as long. */
enum { LEVEL = 1, NAME_ROOM = LOG_NAME_MAX + 16 };

struct log_compress {
    int dirfd, in, out;
    char name[LOG_NAME_MAX], temporary[NAME_ROOM];
    ZSTD_CCtx *stream;
    struct log_blocks *blocks; /* NULL: that index could not be made; the log itself goes on */
    bool ended;
    size_t have;       /* bytes of `plain` */
    struct span where; /* of the block at hand */
    char plain[BLOCK_MAX], packed[BLOCK_MAX + BLOCK_MAX / 64 + 1024];
};

void log_compress_free(struct log_compress *s)
{
    if (s == NULL)
        return;
    if (s->out >= 0) {
        close(s->out);
        if (!s->ended)
            unlinkat(s->dirfd, s->temporary, 0);
    }
    if (s->in >= 0)
        close(s->in);
    ZSTD_freeCCtx(s->stream);
    log_blocks_free(s->blocks);
    free(s);
}

struct log_compress *log_compress_new(int dirfd, const char *name, struct open_request_terms *begun,
                                      struct err *err)
{
    struct log_compress *s = calloc(1, sizeof *s);
    if (s == NULL) {
        err_set(err, ERR_INTERNAL, "out of memory");
        return NULL;
    }
    s->dirfd = dirfd;
    s->in = s->out = -1;
    snprintf(s->name, sizeof s->name, "%s", name);
    snprintf(s->temporary, sizeof s->temporary, ".%s.zst.new", name);
    s->stream = ZSTD_createCCtx();
    s->blocks = begun ? log_blocks_new(dirfd, name, begun, NULL) : NULL;
    s->in = openat(dirfd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (s->in >= 0)
        s->out = openat(dirfd, s->temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW,
                        0600);
    if (s->out < 0 || s->stream == NULL) {
        err_sys(err, "cannot compress %s", name);
        log_compress_free(s);
        return NULL;
    }
    ZSTD_CCtx_setParameter(s->stream, ZSTD_c_compressionLevel, LEVEL);
    ZSTD_CCtx_setParameter(s->stream, ZSTD_c_checksumFlag, 1);
    return s;
}

static int put(struct log_compress *s, size_t n, struct err *err)
{
    for (size_t at = 0; at < n;) {
        ssize_t k = write(s->out, s->packed + at, n - at);
        if (k < 0 && errno == EINTR)
            continue;
        if (k <= 0)
            return err_sys(err, "cannot write %s", s->temporary);
        at += (size_t)k;
    }
    return 0;
}

/* A frame of its own for the first n bytes. */
static int pack(struct log_compress *s, size_t n, struct err *err)
{
    size_t packed = ZSTD_compress2(s->stream, s->packed, sizeof s->packed, s->plain, n);
    if (ZSTD_isError(packed))
        return err_set(err, ERR_INTERNAL, "zstd: %s", ZSTD_getErrorName(packed));
    if (put(s, packed, err) < 0)
        return -1;
    s->where.plain_n = (uint32_t)n;
    s->where.packed_n = (uint32_t)packed;
    return 0;
}

/* The block that was packed last goes into the index and away. */
static void note(struct log_compress *s)
{
    size_t n = s->where.plain_n;
    if (s->blocks && log_blocks_add(s->blocks, (struct slice){s->plain, n}, &s->where, NULL) < 0) {
        log_blocks_free(s->blocks);
        s->blocks = NULL;
    }
    memmove(s->plain, s->plain + n, s->have - n);
    s->have -= n;
    s->where.plain_at += n;
    s->where.packed_at += s->where.packed_n;
    s->where.plain_n = 0;
}

static int finish(struct log_compress *s, struct err *err)
{
    char final[NAME_ROOM];
    snprintf(final, sizeof final, "%s.zst", s->name);
    if (fdatasync(s->out) < 0 || renameat(s->dirfd, s->temporary, s->dirfd, final) < 0)
        return err_sys(err, "cannot finish %s", final);
    s->ended = true;
    if (s->blocks)
        log_blocks_finish(s->blocks, NULL); /* it can be made again at any time */
    /* were it left behind, readers would take it and leave the copy alone */
    if (fsync(s->dirfd) < 0 || unlinkat(s->dirfd, s->name, 0) < 0)
        return err_sys(err, "cannot remove %s", s->name);
    return 0;
}

int log_compress_step(struct log_compress *s, struct err *err)
{
    ssize_t n;
    size_t room = sizeof s->plain - s->have;
    if (s->where.plain_n) {
        note(s);
        return 1;
    }
    do
        n = read(s->in, s->plain + s->have, room < LOG_COMPRESS_STEP ? room : LOG_COMPRESS_STEP);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return err_sys(err, "cannot read %s", s->name);
    s->have += (size_t)n;
    size_t cut = block_cut((struct slice){s->plain, s->have}, n == 0);
    if (cut && pack(s, cut, err) < 0)
        return -1;
    if (n > 0 || cut)
        return 1;
    return finish(s, err);
}
