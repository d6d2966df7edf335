/* Reads, adds to and thins the file of lines. */
#include "fleet_file.h"

#include "file_look.h"
#include "line_reader.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { COPY_MAX = 256 * 1024 };

static const char fresh[] = ".fleet.heads.new";

struct fleet_file {
    int dirfd, fd;
    uint64_t size;
    uint64_t thinned; /* its size when it was thinned last */
};

/* *size: of the whole lines. */
static int read_all(int fd, struct witness *w, bool check, fleet_file_fn fn, void *arg,
                    uint64_t *size, struct err *err)
{
    struct line_reader *lr = line_reader_new(fd);
    struct fleet_head *head = malloc(sizeof *head);
    enum line_state st = LINE_END;
    struct slice line;
    int r = lr && head ? 0 : err_set(err, ERR_INTERNAL, "out of memory");
    *size = 0;
    for (uint64_t n = 1; r == 0 && (st = line_reader_next(lr, &line)) != LINE_END; n++) {
        if (st == LINE_ERROR)
            r = err_sys(err, "cannot read " FLEET_FILE);
        if (st == LINE_ERROR || st == LINE_TORN)
            break;
        enum witness_taken taken =
            st == LINE_WHOLE ? witness_take(w, line, check, head) : WITNESS_MALFORMED;
        if (fn)
            fn(arg, n, line, taken, head);
        *size = line_reader_after(lr);
    }
    free(head);
    line_reader_free(lr);
    return r;
}

int fleet_file_read(int fd, struct witness *w, bool check, fleet_file_fn fn, void *arg,
                    struct err *err)
{
    uint64_t size;
    return read_all(fd, w, check, fn, arg, &size, err);
}

struct fleet_file *fleet_file_open(int dirfd, struct witness *w, fleet_file_fn fn, void *arg,
                                   struct err *err)
{
    struct fleet_file *f = calloc(1, sizeof *f);
    if (f == NULL) {
        err_set(err, ERR_INTERNAL, "out of memory");
        return NULL;
    }
    f->dirfd = dirfd;
    f->fd = openat(dirfd, FLEET_FILE, O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    int r = f->fd < 0 ? err_sys(err, "cannot open " FLEET_FILE " in the audit directory")
                      : read_all(f->fd, w, false, fn, arg, &f->size, err);
    if (r == 0 && ftruncate(f->fd, (off_t)f->size) < 0)
        r = err_sys(err, "cannot cut the torn end off " FLEET_FILE);
    if (r == 0)
        return f;
    fleet_file_free(f);
    return NULL;
}

void fleet_file_free(struct fleet_file *f)
{
    if (f && f->fd >= 0)
        close(f->fd);
    free(f);
}

int fleet_file_add(struct fleet_file *f, struct slice lines, struct err *err)
{
    struct file_look look;
    if (lines.n == 0)
        return 0;
    if (file_look(f->fd, &look) < 0 || look.removed)
        return err_set(err, ERR_UNREADY, FLEET_FILE " was removed from the audit directory");
    if (write(f->fd, lines.p, lines.n) != (ssize_t)lines.n || fdatasync(f->fd) < 0) {
        err_sys(err, "cannot write " FLEET_FILE);
        if (ftruncate(f->fd, (off_t)f->size) < 0)
            err_sys(err, "cannot cut the torn end off " FLEET_FILE);
        return -1;
    }
    f->size += lines.n;
    return 0;
}

static bool is_kept(const struct witness *w, struct slice line)
{
    char host[FLEET_LINE_NAME + 1];
    uint64_t number;
    size_t i = fleet_head_peek(line, host, &number) == 0 ? witness_find(w, host) : SIZE_MAX;
    const struct fleet_head *latest = i == SIZE_MAX ? NULL : witness_latest(w, i);
    return latest && witness_keeps(witness_keep(w), number, latest->number);
}

static int flush(int fd, struct buf *b, struct err *err)
{
    bool all = write(fd, buf_data(b), buf_len(b)) == (ssize_t)buf_len(b);
    buf_clear(b);
    return all ? 0 : err_sys(err, "cannot write " FLEET_FILE);
}

/* *size: of what was written. */
static int copy_kept(const struct fleet_file *f, const struct witness *w, int to, uint64_t *size,
                     struct err *err)
{
    struct line_reader *lr = line_reader_new(f->fd);
    enum line_state st = LINE_END;
    struct slice line;
    struct buf out;
    int r = lr ? 0 : err_set(err, ERR_INTERNAL, "out of memory");
    buf_init(&out, COPY_MAX);
    *size = 0;
    while (r == 0 && (st = line_reader_next(lr, &line)) != LINE_END && st != LINE_ERROR) {
        if (st != LINE_WHOLE || !is_kept(w, line))
            continue;
        *size += line.n + 1;
        if (buf_append_slice(&out, line) < 0 || buf_append(&out, "\n", 1) < 0)
            r = err_set(err, ERR_INTERNAL, "out of memory");
        else if (buf_len(&out) >= COPY_MAX / 2)
            r = flush(to, &out, err);
    }
    if (r == 0 && st == LINE_ERROR)
        r = err_sys(err, "cannot read " FLEET_FILE);
    if (r == 0)
        r = flush(to, &out, err);
    line_reader_free(lr);
    buf_free(&out);
    return r;
}

int fleet_file_thin(struct fleet_file *f, const struct witness *w, uint64_t size, struct err *err)
{
    uint64_t kept = 0;
    if (f->size <= size || f->size / 2 <= f->thinned)
        return 0;
    int fd = openat(f->dirfd, fresh, O_RDWR | O_APPEND | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW,
                    0600);
    if (fd < 0)
        return err_sys(err, "cannot thin " FLEET_FILE);
    int r = copy_kept(f, w, fd, &kept, err);
    if (r == 0 && (fdatasync(fd) < 0 || renameat(f->dirfd, fresh, f->dirfd, FLEET_FILE) < 0))
        r = err_sys(err, "cannot replace " FLEET_FILE);
    if (r < 0) {
        close(fd);
        return -1;
    }
    close(f->fd);
    f->fd = fd;
    f->size = f->thinned = kept;
    return 0;
}
