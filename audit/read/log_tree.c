/* Finds the directories of a log and goes on reading each from where it was left. The last lines of
 * a plain file are looked for from its end; a compressed one is read twice from its start. */
#include "log_tree.h"

#include "line_reader.h"

#include "render.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { DIRS_MAX = 1 << 16, BACK_BLOCK = 64 * 1024 };

int log_tree_open(struct log_tree *t, const char *path, struct err *err)
{
    memset(t, 0, sizeof *t);
    t->fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (t->fd < 0)
        return err_sys(err, "cannot open the audit directory %s", path);
    if (log_tree_refresh(t, err) < 0) {
        log_tree_done(t);
        return -1;
    }
    return 0;
}

void log_tree_done(struct log_tree *t)
{
    for (size_t i = 0; i < t->n; i++)
        free(t->dir[i]);
    free(t->dir);
    if (t->fd >= 0)
        close(t->fd);
    memset(t, 0, sizeof *t);
    t->fd = -1;
}

void log_tree_top(struct log_tree *t)
{
    size_t kept = 0;
    for (size_t i = 0; i < t->n; i++)
        if (t->dir[i]->name[0] == 0)
            t->dir[kept++] = t->dir[i];
        else
            free(t->dir[i]);
    t->n = kept;
}

static int open_dir(const struct log_tree *t, const struct log_tree_dir *d)
{
    return openat(t->fd, d->name[0] ? d->name : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static int add(struct log_tree *t, const char *name, struct err *err)
{
    for (size_t i = 0; i < t->n; i++)
        if (strcmp(t->dir[i]->name, name) == 0)
            return 0;
    struct log_tree_dir **more =
        t->n < DIRS_MAX ? realloc(t->dir, (t->n + 1) * sizeof *t->dir) : NULL;
    struct log_tree_dir *d = more ? calloc(1, sizeof *d) : NULL;
    if (more)
        t->dir = more;
    if (d == NULL)
        return err_set(err, ERR_LIMIT, "too many run-* directories");
    memcpy(d->name, name, strlen(name) + 1);
    d->tag = ++t->tags;
    d->watch = -1;
    t->dir[t->n++] = d;
    return 0;
}

/* A directory that vanished, or may not be read, has no files for us. */
static void look(struct log_tree *t, struct log_tree_dir *d)
{
    struct log_dir files;
    struct stat st;
    int fd = open_dir(t, d);
    d->newest = 0;
    if (fd < 0)
        return;
    if (log_dir_list(fd, &files, NULL) == 0) {
        if (files.n && fstatat(fd, files.name[files.n - 1], &st, AT_SYMLINK_NOFOLLOW) == 0)
            d->newest = (uint64_t)st.st_mtim.tv_sec * 1000000000U + (uint64_t)st.st_mtim.tv_nsec;
        log_dir_done(&files);
    }
    close(fd);
}

int log_tree_refresh(struct log_tree *t, struct err *err)
{
    struct log_dir runs;
    if (log_dir_runs(t->fd, &runs, err) < 0)
        return -1;
    int r = add(t, "", err);
    for (size_t i = 0; r == 0 && i < runs.n; i++)
        r = add(t, runs.name[i], err);
    log_dir_done(&runs);
    for (size_t i = 0; r == 0 && i < t->n; i++)
        look(t, t->dir[i]);
    return r;
}

static int latest_first(const void *a, const void *b)
{
    const struct log_tree_dir *x = *(struct log_tree_dir *const *)a,
                              *y = *(struct log_tree_dir *const *)b;
    return x->newest == y->newest ? strcmp(x->name, y->name) : x->newest < y->newest ? 1 : -1;
}

void log_tree_sort(struct log_tree *t)
{
    qsort(t->dir, t->n, sizeof(struct log_tree_dir *), latest_first);
}

/* The same of a compressed file, which reads forwards only. */
static int seek_packed(int fd, size_t keep, uint64_t *offset, size_t *found)
{
    struct line_reader *lr = line_reader_new(fd);
    struct slice line;
    enum line_state st = LINE_ERROR;
    size_t n = 0;
    while (lr && (st = line_reader_next(lr, &line)) != LINE_END && st != LINE_ERROR)
        n++;
    *found = n < keep ? n : keep;
    if (lr && st == LINE_END)
        line_reader_seek(lr, 0);
    for (size_t i = 0; lr && st != LINE_ERROR && i < n - *found; i++)
        st = line_reader_next(lr, &line);
    *offset = lr ? line_reader_after(lr) : 0;
    line_reader_free(lr);
    return lr == NULL || st == LINE_ERROR ? -1 : 0;
}

/* Where the last `keep` whole lines of a file begin; *found is how many there are. */
static int seek_back(int fd, size_t keep, uint64_t *offset, size_t *found)
{
    char block[BACK_BLOCK];
    struct stat st;
    if (fstat(fd, &st) < 0)
        return -1;
    uint64_t end = (uint64_t)st.st_size;
    bool any = false; /* the newline that ends the last whole line was met */
    *found = 0;
    while (end > 0) {
        size_t n = end < sizeof block ? (size_t)end : sizeof block;
        if (pread(fd, block, n, (off_t)(end - n)) != (ssize_t)n)
            return -1;
        for (size_t i = n; i > 0; i--) {
            if (block[i - 1] != '\n')
                continue;
            if (any)
                ++*found;
            any = true;
            if (*found == keep) {
                *offset = end - n + i;
                return 0;
            }
        }
        end -= n;
    }
    *found += any;
    *offset = 0;
    return 0;
}

int log_tree_seek(struct log_tree *t, struct log_tree_dir *d, size_t keep, struct err *err)
{
    struct log_dir files;
    int dirfd = open_dir(t, d), r = 0;
    if (dirfd < 0)
        return 0;
    if (log_dir_list(dirfd, &files, err) < 0) {
        close(dirfd);
        return -1;
    }
    for (size_t i = files.n; r == 0 && i > 0; i--) {
        size_t found = 0;
        int fd = openat(dirfd, files.name[i - 1], O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
        int (*seek)(int, size_t, uint64_t *, size_t *) =
            log_dir_packed(files.name[i - 1]) ? seek_packed : seek_back;
        if (fd < 0 || seek(fd, keep, &d->offset, &found) < 0)
            r = err_sys(err, "cannot read %s", files.name[i - 1]);
        if (fd >= 0)
            close(fd);
        memcpy(d->file, files.name[i - 1], sizeof d->file);
        keep -= found < keep ? found : keep;
        if (keep == 0)
            break;
    }
    log_dir_done(&files);
    close(dirfd);
    return r;
}

static int read_file(struct log_tree_dir *d, int fd, log_tree_fn fn, void *arg, struct err *err)
{
    struct line_reader *lr = line_reader_new(fd);
    struct slice line;
    enum line_state st;
    int r = 0;
    if (lr == NULL)
        return err_set(err, ERR_INTERNAL, "out of memory");
    line_reader_seek(lr, d->offset);
    while (r == 0 && (st = line_reader_next(lr, &line)) != LINE_END && st != LINE_TORN) {
        if (st == LINE_ERROR) {
            r = err_sys(err, "cannot read %s", d->file);
            break;
        }
        d->offset = line_reader_after(lr);
        r = fn(arg, d, line); /* a line that is too long comes as an empty one */
    }
    line_reader_free(lr);
    return r;
}

static bool unchanged_since(int fd, uint64_t since)
{
    struct stat st;
    return since && fstat(fd, &st) == 0 &&
           (uint64_t)st.st_mtim.tv_sec * 1000000000U + (uint64_t)st.st_mtim.tv_nsec < since;
}

int log_tree_read(struct log_tree *t, struct log_tree_dir *d, uint64_t since, log_tree_fn fn,
                  void *arg, struct err *err)
{
    struct log_dir files;
    int dirfd = open_dir(t, d), r = 0;
    if (dirfd < 0)
        return 0;
    if (log_dir_list(dirfd, &files, err) < 0) {
        close(dirfd);
        return -1;
    }
    for (size_t i = 0; r == 0 && i < files.n; i++) {
        int order = log_dir_order(files.name[i], d->file);
        if (order < 0)
            continue;
        if (order > 0)
            d->offset = 0;
        bool closed = i + 1 < files.n;
        if (closed && t->want && !t->want(t->want_arg, d, dirfd, files.name[i])) {
            memcpy(d->file, files.name[i], sizeof d->file);
            continue;
        }
        memcpy(d->file, files.name[i], sizeof d->file); /* it may have been compressed meanwhile */
        int fd = openat(dirfd, d->file, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
        if (fd < 0)
            r = err_sys(err, "cannot open %s", d->file);
        else if (!unchanged_since(fd, since))
            r = read_file(d, fd, fn, arg, err);
        if (fd >= 0)
            close(fd);
    }
    log_dir_done(&files);
    close(dirfd);
    return r;
}
