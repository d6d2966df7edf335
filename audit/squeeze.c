#include "squeeze.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zstd.h>

enum { LEVEL = 3, NAME_ROOM = LOG_NAME_MAX + 16 };

struct squeeze {
    int dirfd, in, out;
    char name[LOG_NAME_MAX], temporary[NAME_ROOM];
    ZSTD_CCtx *stream;
    bool ended;
    char plain[SQUEEZE_STEP], packed[SQUEEZE_STEP];
};

void squeeze_free(struct squeeze *s)
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
    free(s);
}

struct squeeze *squeeze_new(int dirfd, const char *name, struct err *err)
{
    struct squeeze *s = calloc(1, sizeof *s);
    if (s == NULL) {
        err_set(err, ERR_INTERNAL, "out of memory");
        return NULL;
    }
    s->dirfd = dirfd;
    s->in = s->out = -1;
    snprintf(s->name, sizeof s->name, "%s", name);
    snprintf(s->temporary, sizeof s->temporary, ".%s.zst.new", name);
    s->stream = ZSTD_createCCtx();
    s->in = openat(dirfd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (s->in >= 0)
        s->out = openat(dirfd, s->temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW,
                        0600);
    if (s->out < 0 || s->stream == NULL) {
        err_sys(err, "cannot compress %s", name);
        squeeze_free(s);
        return NULL;
    }
    ZSTD_CCtx_setParameter(s->stream, ZSTD_c_compressionLevel, LEVEL);
    ZSTD_CCtx_setParameter(s->stream, ZSTD_c_checksumFlag, 1);
    return s;
}

static int put(struct squeeze *s, size_t n, struct err *err)
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

/* Everything that comes of n plain bytes. */
static int pack(struct squeeze *s, size_t n, struct err *err)
{
    ZSTD_inBuffer in = {s->plain, n, 0};
    ZSTD_EndDirective how = n == 0 ? ZSTD_e_end : ZSTD_e_continue;
    size_t left;
    do {
        ZSTD_outBuffer out = {s->packed, sizeof s->packed, 0};
        left = ZSTD_compressStream2(s->stream, &out, &in, how);
        if (ZSTD_isError(left))
            return err_set(err, ERR_INTERNAL, "zstd: %s", ZSTD_getErrorName(left));
        if (put(s, out.pos, err) < 0)
            return -1;
    } while (how == ZSTD_e_end ? left != 0 : in.pos < in.size);
    return 0;
}

static int finish(struct squeeze *s, struct err *err)
{
    char final[NAME_ROOM];
    snprintf(final, sizeof final, "%s.zst", s->name);
    if (fdatasync(s->out) < 0 || renameat(s->dirfd, s->temporary, s->dirfd, final) < 0)
        return err_sys(err, "cannot finish %s", final);
    s->ended = true;
    /* were it left behind, readers would take it and leave the copy alone */
    if (fsync(s->dirfd) < 0 || unlinkat(s->dirfd, s->name, 0) < 0)
        return err_sys(err, "cannot remove %s", s->name);
    return 0;
}

int squeeze_step(struct squeeze *s, struct err *err)
{
    ssize_t n;
    do
        n = read(s->in, s->plain, sizeof s->plain);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return err_sys(err, "cannot read %s", s->name);
    if (pack(s, (size_t)n, err) < 0)
        return -1;
    if (n > 0)
        return 1;
    return finish(s, err);
}
