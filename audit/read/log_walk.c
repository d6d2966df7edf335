/* Finds a record's file and block by the numbers of their first lines, goes back to a block with a
 * checkpoint, and reads on from there. */
#include "log_walk.h"

#include "block_plan.h"
#include "line_reader.h"
#include "log_dir.h"
#include "render.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

struct log_walk {
    int dirfd;
    struct log_dir files;
    /* the file at hand */
    size_t file;
    int fd; /* -1: none */
    struct block_plan plan;
    struct block_source *source; /* NULL: it has no index, and is one block */
};

static void put_down(struct log_walk *w)
{
    block_source_free(w->source);
    block_plan_done(&w->plan);
    if (w->fd >= 0)
        close(w->fd);
    w->source = NULL;
    w->fd = -1;
}

struct log_walk *log_walk_new(int dirfd, struct err *err)
{
    struct log_walk *w = calloc(1, sizeof *w);
    if (w == NULL) {
        err_set(err, ERR_INTERNAL, "out of memory");
        return NULL;
    }
    w->dirfd = dirfd;
    w->fd = -1;
    if (log_dir_list(dirfd, &w->files, err) == 0)
        return w;
    free(w);
    return NULL;
}

void log_walk_free(struct log_walk *w)
{
    if (w == NULL)
        return;
    put_down(w);
    log_dir_done(&w->files);
    free(w);
}

/* PLAN_MATCH of its plan: a checkpoint may stand there. The newest file is being written and has no
 * index. */
static int take_up(struct log_walk *w, size_t i)
{
    static const struct query_filter checkpoints = {.kinds = 1u << RECORD_CHECKPOINT};
    const char *name = w->files.name[i];
    if (w->fd >= 0 && w->file == i)
        return 0;
    put_down(w);
    w->file = i;
    w->fd = openat(w->dirfd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (w->fd < 0)
        return -1;
    int r = block_plan_load(&w->plan, w->dirfd, name, log_dir_packed(name), &checkpoints);
    if (r > 0)
        w->source = block_source_new(w->fd);
    return r < 0 || (r > 0 && w->source == NULL) ? -1 : 0;
}

static size_t blocks(const struct log_walk *w)
{
    return w->source ? w->plan.n : 1;
}

/* ---- where ---- */

static int number_of(struct slice line, uint64_t *seq)
{
    struct render_head h;
    if (render_parse(line, &h) < 0)
        return -1;
    *seq = h.seq;
    return 0;
}

/* Of the first line of file i; 0: it has none. */
static int first_of_file(const struct log_walk *w, size_t i, uint64_t *seq)
{
    struct slice line;
    int fd = openat(w->dirfd, w->files.name[i], O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    struct line_reader *lr = fd < 0 ? NULL : line_reader_new(fd);
    enum line_state st = lr ? line_reader_next(lr, &line) : LINE_ERROR;
    int r = st == LINE_WHOLE ? number_of(line, seq) : st == LINE_ERROR || st == LINE_LONG ? -1 : 0;
    if (st == LINE_END || st == LINE_TORN)
        *seq = UINT64_MAX; /* nothing stands there yet */
    line_reader_free(lr);
    if (fd >= 0)
        close(fd);
    return r;
}

static int first_of_block(const struct log_walk *w, size_t b, uint64_t *seq)
{
    struct slice lines;
    if (block_source_read(w->source, &w->plan.at[b].where, &lines) < 0)
        return -1;
    ssize_t nl = slice_find(lines, '\n');
    return nl < 0 ? -1 : number_of((struct slice){lines.p, (size_t)nl}, seq);
}

/* The last file whose first line is not after it. -1: there is none. */
static int find_file(struct log_walk *w, uint64_t seq)
{
    size_t from = 0, to = w->files.n;
    while (from < to) {
        size_t middle = from + (to - from) / 2;
        uint64_t first = 0;
        if (first_of_file(w, middle, &first) < 0)
            return -1;
        if (first <= seq)
            from = middle + 1;
        else
            to = middle;
    }
    return from == 0 ? -1 : take_up(w, from - 1);
}

/* Likewise its block. */
static int find_block(const struct log_walk *w, uint64_t seq, size_t *block)
{
    size_t from = 1, to = blocks(w); /* the first one begins with the file */
    while (from < to) {
        size_t middle = from + (to - from) / 2;
        uint64_t first = 0;
        if (first_of_block(w, middle, &first) < 0)
            return -1;
        if (first <= seq)
            from = middle + 1;
        else
            to = middle;
    }
    *block = from - 1;
    return 0;
}

/* The block before this one that may have a checkpoint, in this file or one before. */
static int go_back(struct log_walk *w, size_t *block, bool *whole)
{
    for (;;) {
        while (*block > 0) {
            --*block;
            if (w->source == NULL || w->plan.at[*block].flags & PLAN_MATCH) {
                *whole = w->file == 0 && *block == 0;
                return 0;
            }
        }
        *whole = w->file == 0;
        if (*whole)
            return 0;
        if (take_up(w, w->file - 1) < 0)
            return -1;
        *block = blocks(w);
    }
}

/* ---- read ---- */

static int tell_lines(struct slice lines, log_walk_fn fn, void *arg)
{
    ssize_t nl;
    int r = 0;
    while (r == 0 && (nl = slice_find(lines, '\n')) >= 0) {
        r = fn(arg, (struct slice){lines.p, (size_t)nl});
        lines = (struct slice){lines.p + nl + 1, lines.n - (size_t)nl - 1};
    }
    return r;
}

static int read_plain(const struct log_walk *w, log_walk_fn fn, void *arg)
{
    struct line_reader *lr = line_reader_new(w->fd);
    struct slice line;
    enum line_state st = LINE_ERROR;
    int r = 0;
    while (r == 0 && lr && (st = line_reader_next(lr, &line)) == LINE_WHOLE)
        r = fn(arg, line);
    line_reader_free(lr);
    return r == 0 && (st == LINE_ERROR || st == LINE_LONG) ? -1 : r;
}

static int read_file(const struct log_walk *w, size_t block, log_walk_fn fn, void *arg)
{
    struct slice lines;
    int r = 0;
    if (w->source == NULL)
        return read_plain(w, fn, arg);
    for (; r == 0 && block < w->plan.n; block++)
        r = block_source_read(w->source, &w->plan.at[block].where, &lines) < 0
                ? -1
                : tell_lines(lines, fn, arg);
    return r;
}

int log_walk_from(struct log_walk *w, uint64_t seq, bool *whole, log_walk_fn fn, void *arg)
{
    size_t block;
    if (find_file(w, seq) < 0 || find_block(w, seq, &block) < 0 || go_back(w, &block, whole) < 0)
        return -1;
    int r = read_file(w, block, fn, arg);
    while (r == 0 && w->file + 1 < w->files.n)
        r = take_up(w, w->file + 1) < 0 ? -1 : read_file(w, 0, fn, arg);
    return r;
}
