/* Reads directories, files and blocks from the newest back, passes over what an index rules out,
 * and ends when nothing older is needed. Rows wait here until they can be given in order. */
#include "log_search.h"

#include "block_plan.h"
#include "line_reader.h"
#include "log_index.h"
#include "render.h"
#include "terms.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    PART_FIRST = 8,  /* blocks read at once, in their order; then twice as many, up to */
    PART_MOST = 64,  /* this */
    AFTER_MOST = 64, /* blocks gone back for the beginnings of ends that were found */
};

struct row {
    char received[TIMESTAMP_MAX];
    unsigned tag;
    uint64_t seq;
    char *line, *beginning; /* the latter behind the former */
    size_t n, beginning_n;
};

struct searching {
    const struct query_filter *f;
    const struct log_search *s;
    struct log_tree *t;
    struct query *query;
    unsigned tag; /* of the directory at hand */
    struct row *row;
    size_t n, room;
    bool over, failed; /* rows were given up; out of memory */
    /* of one directory */
    bool done; /* what is older cannot be a row */
    unsigned after;
    size_t part, mine; /* rows found in it */
};

/* ---- rows ---- */

static int in_order(const void *a, const void *b)
{
    const struct row *x = a, *y = b;
    int r = strcmp(x->received, y->received);
    if (r == 0)
        r = x->tag < y->tag ? -1 : x->tag > y->tag;
    return r ? r : x->seq < y->seq ? -1 : x->seq > y->seq;
}

/* A file that could not be read to its end by blocks was read once more. */
static void drop_doubles(struct searching *x)
{
    size_t to = 0;
    for (size_t i = 0; i < x->n; i++) {
        if (to && in_order(&x->row[to - 1], &x->row[i]) == 0)
            free(x->row[i].line);
        else
            x->row[to++] = x->row[i];
    }
    x->n = to;
}

/* Sorted, and the newest only. */
static void trim(struct searching *x)
{
    if (x->n)
        qsort(x->row, x->n, sizeof *x->row, in_order);
    drop_doubles(x);
    size_t over = x->n > x->s->rows ? x->n - x->s->rows : 0;
    for (size_t i = 0; i < over; i++)
        free(x->row[i].line);
    x->over |= over > 0;
    if (over)
        memmove(x->row, x->row + over, (x->n - over) * sizeof *x->row);
    x->n -= over;
}

static bool make_room(struct searching *x)
{
    if (x->n == x->room && x->n >= 2 * x->s->rows)
        trim(x);
    if (x->n < x->room)
        return true;
    size_t room = x->room ? 2 * x->room : 256;
    void *more = realloc(x->row, room * sizeof *x->row);
    if (more == NULL)
        return false;
    x->row = more;
    x->room = room;
    return true;
}

static void keep(void *arg, const struct query_row *found)
{
    struct searching *x = arg;
    struct render_head h;
    char *line = make_room(x) ? malloc(found->line.n + found->beginning.n + 1) : NULL;
    if (line == NULL || render_parse(found->line, &h) < 0) {
        x->failed = true;
        free(line);
        return;
    }
    struct row *r = &x->row[x->n++];
    x->mine++;
    *r = (struct row){.tag = x->tag,
                      .seq = h.seq,
                      .line = line,
                      .beginning = line + found->line.n,
                      .n = found->line.n,
                      .beginning_n = found->beginning.n};
    memcpy(r->line, found->line.p, found->line.n);
    if (r->beginning_n)
        memcpy(r->beginning, found->beginning.p, found->beginning.n);
    size_t n = strlen(found->received);
    memcpy(r->received, found->received, n < TIMESTAMP_MAX ? n : TIMESTAMP_MAX - 1);
}

/* ---- blocks ---- */

static void feed(struct searching *x, struct slice lines)
{
    const char *end = lines.p + lines.n, *nl;
    for (const char *p = lines.p; (nl = memchr(p, '\n', (size_t)(end - p))); p = nl + 1)
        query_line(x->query, x->tag, (struct slice){p, (size_t)(nl - p)}, false);
}

/* All that was received in a part before `since` says that no older part has a row. */
static void look_at_time(struct searching *x, struct slice lines)
{
    char since[TIMESTAMP_MAX];
    if (x->f->since == 0)
        return;
    struct slice at = terms_value(lines, ",\"received\":");
    timestamp_text(x->f->since, since, sizeof since);
    if (at.n && at.n < TIMESTAMP_MAX && strncmp(at.p, since, at.n) < 0)
        x->done = true;
}

/* Blocks of a plain file that were cut anywhere: what begins in the part [from, to) of it. */
static int read_cut(struct searching *x, int fd, uint64_t from, uint64_t to)
{
    struct line_reader *lr = line_reader_new(fd);
    struct slice line;
    enum line_state st = LINE_END;
    bool first = true;
    if (lr == NULL)
        return -1;
    line_reader_seek(lr, from ? from - 1 : 0);
    if (from)
        st = line_reader_next(lr, &line); /* the rest of one that began before */
    while (st != LINE_ERROR && line_reader_after(lr) < to &&
           (st = line_reader_next(lr, &line)) != LINE_END && st != LINE_TORN) {
        if (st == LINE_ERROR)
            break;
        if (first)
            look_at_time(x, line);
        first = false;
        query_line(x->query, x->tag, line, false);
    }
    line_reader_free(lr);
    return st == LINE_ERROR ? -1 : 0;
}

struct file {
    int fd;
    const char *name;
    struct block_source *source; /* NULL: read_cut */
    struct block_plan plan;
};

/* The blocks chosen, which are numbers of the plan from the last to the first. */
static int read_part(struct searching *x, struct file *f, const size_t *chosen, size_t n)
{
    const struct planned_block *at = f->plan.at;
    struct slice lines;
    if (f->source == NULL) { /* they follow each other */
        const struct span *last = &at[chosen[0]].where;
        return read_cut(x, f->fd, at[chosen[n - 1]].where.plain_at, last->plain_at + last->plain_n);
    }
    for (size_t i = n; i > 0; i--) {
        if (block_source_read(f->source, &at[chosen[i - 1]].where, &lines) < 0)
            return -1;
        feed(x, lines);
    }
    return 0;
}

static bool wanted(const struct searching *x, const struct planned_block *b)
{
    if (b->flags & PLAN_MATCH && !x->done)
        return true;
    return b->flags & PLAN_REQUEST && query_waits(x->query);
}

static int read_chosen(struct searching *x, struct file *f, const size_t *chosen, size_t *n)
{
    int r = *n ? read_part(x, f, chosen, *n) : 0;
    if (*n)
        x->part = x->part < PART_MOST ? 2 * x->part : PART_MOST;
    if (x->mine >= x->s->rows)
        x->done = true;
    *n = 0;
    return r;
}

/* The blocks of one file from its end. 1: nothing older is wanted. */
static int read_blocks(struct searching *x, struct file *f)
{
    size_t chosen[PART_MOST], n = 0;
    for (size_t i = f->plan.n; i > 0; i--) {
        const struct planned_block *b = &f->plan.at[i - 1];
        if (b->flags & PLAN_BEFORE && !x->done) {
            if (read_chosen(x, f, chosen, &n) < 0)
                return -1;
            x->done = true;
        }
        if (x->done && (x->after++ >= AFTER_MOST || !query_waits(x->query)))
            return 1;
        /* whether its beginnings are asked for is only known once what is newer was read */
        if (!(b->flags & PLAN_MATCH) && b->flags & PLAN_REQUEST && !query_waits(x->query) &&
            read_chosen(x, f, chosen, &n) < 0)
            return -1;
        if (wanted(x, b))
            chosen[n++] = i - 1;
        size_t most = b->flags & PLAN_MATCH ? x->part : PART_FIRST;
        if ((n >= most || i == 1) && read_chosen(x, f, chosen, &n) < 0)
            return -1;
    }
    return x->done && !query_waits(x->query);
}

/* All of a file at once: one that is compressed in other frames. */
static int read_whole(struct searching *x, int fd)
{
    struct line_reader *lr = line_reader_new(fd);
    struct slice line;
    enum line_state st = LINE_ERROR;
    bool first = true;
    while (lr && (st = line_reader_next(lr, &line)) != LINE_END && st != LINE_TORN &&
           st != LINE_ERROR) {
        if (first)
            look_at_time(x, line);
        first = false;
        query_line(x->query, x->tag, line, false);
    }
    line_reader_free(lr);
    if (x->mine >= x->s->rows)
        x->done = true;
    return st == LINE_ERROR ? -1 : 0;
}

/* ---- files ---- */

static int read_planned(struct searching *x, int dirfd, struct file *f, bool closed)
{
    struct stat st;
    bool packed = log_dir_packed(f->name);
    int r = 0;
    if ((closed || packed) && !x->s->no_index)
        r = block_plan_load(&f->plan, dirfd, f->name, packed, x->f);
    if (r > 0 && (f->source = block_source_new(f->fd)) == NULL)
        r = -1;
    if (r == 0 && packed)
        return read_whole(x, f->fd);
    if (r == 0)
        r = fstat(f->fd, &st) < 0 ? -1 : block_plan_all(&f->plan, (uint64_t)st.st_size);
    if (r > 0)
        r = read_blocks(x, f);
    return r < 0 && f->source ? read_whole(x, f->fd) : r; /* the file is not what the index says */
}

static bool unchanged_since(int fd, uint64_t since)
{
    struct stat st;
    return since && fstat(fd, &st) == 0 &&
           (uint64_t)st.st_mtim.tv_sec * 1000000000U + (uint64_t)st.st_mtim.tv_nsec < since;
}

/* 1: nothing older is wanted. */
static int read_file(struct searching *x, int dirfd, const char *name, bool closed, struct err *err)
{
    struct file f = {.name = name};
    f.fd = openat(dirfd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (f.fd < 0)
        return err_sys(err, "cannot open %s", name);
    int r = unchanged_since(f.fd, x->f->since) ? 0 : read_planned(x, dirfd, &f, closed);
    if (r < 0)
        err_sys(err, "cannot read %s", name);
    block_source_free(f.source);
    block_plan_done(&f.plan);
    close(f.fd);
    return r;
}

/* The index of a file says that neither it nor the ends of its requests in the next one match. */
static bool passed_over(const struct searching *x, int dirfd, const struct log_dir *files, size_t i)
{
    if (x->s->no_index || i + 1 == files->n || log_blocks_exists(dirfd, files->name[i]))
        return false;
    if (log_index_may(dirfd, files->name[i], x->f))
        return false;
    return !log_index_follows(x->f) || (i > 0 && !log_index_may(dirfd, files->name[i - 1], x->f));
}

static int read_dir(struct searching *x, const struct log_tree_dir *d, struct err *err)
{
    struct log_dir files;
    int dirfd = openat(x->t->fd, d->name[0] ? d->name : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dirfd < 0)
        return 0;
    int r = log_dir_list(dirfd, &files, err);
    x->tag = d->tag;
    x->done = false;
    x->after = 0;
    x->part = PART_FIRST;
    for (size_t i = r == 0 ? files.n : 0; r == 0 && i > 0; i--)
        if (!passed_over(x, dirfd, &files, i - 1))
            r = read_file(x, dirfd, files.name[i - 1], i < files.n, err);
    query_forget(x->query);
    log_dir_done(&files);
    close(dirfd);
    return r < 0 ? -1 : 0;
}

/* There are rows enough, and this directory was not written since the oldest of them. */
static bool older(struct searching *x, const struct log_tree_dir *d)
{
    char newest[TIMESTAMP_MAX];
    trim(x);
    timestamp_text(d->newest, newest, sizeof newest);
    return x->n == x->s->rows && strcmp(newest, x->row[0].received) < 0;
}

int log_search_newest(struct log_tree *t, const struct query_filter *f, const struct log_search *s,
                      query_fn fn, void *arg, bool *more, uint64_t *bad, struct err *err)
{
    struct searching x = {.f = f, .s = s, .t = t};
    x.query = query_backwards(f, keep, &x);
    int r = x.query ? 0 : err_set(err, ERR_INTERNAL, "out of memory");
    bool left = false;
    log_tree_sort(t);
    for (size_t i = 0; r == 0 && i < t->n; i++) {
        if (older(&x, t->dir[i])) {
            left = true;
            continue;
        }
        size_t before = x.n;
        r = read_dir(&x, t->dir[i], err);
        left |= x.n > before && x.done;
    }
    if (r == 0 && x.failed)
        r = err_set(err, ERR_INTERNAL, "out of memory");
    trim(&x);
    for (size_t i = 0; i < x.n; i++) {
        struct row *w = &x.row[i];
        if (r == 0)
            query_show((struct slice){w->line, w->n}, (struct slice){w->beginning, w->beginning_n},
                       fn, arg);
        free(w->line);
    }
    *more = x.over || (left && x.n >= s->rows);
    *bad = x.query ? query_bad(x.query) : 0;
    free(x.row);
    query_free(x.query);
    return r;
}
