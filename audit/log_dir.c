#include "log_dir.h"

#include "render.h"
#include "stamp.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BLOCK = 256 * 1024, FILES_MAX = 1 << 20 };

static int by_name(const void *a, const void *b)
{
    return strcmp(a, b);
}

/* audit-YYYYmmddTHHMMSSZ.jsonl and nothing else */
static bool is_log(const char *name)
{
    static const char shape[] = "audit-00000000T000000Z.jsonl";
    if (strlen(name) != sizeof shape - 1)
        return false;
    for (size_t i = 0; i < sizeof shape - 1; i++)
        if (shape[i] == '0' ? name[i] < '0' || name[i] > '9' : name[i] != shape[i])
            return false;
    return true;
}

static bool is_run(const char *name)
{
    return slice_starts(slice_str(name), SLICE("run-")) && strlen(name) < LOG_NAME_MAX;
}

static int add(struct log_dir *d, size_t *cap, const char *name)
{
    if (d->n == *cap) {
        size_t more = *cap ? *cap * 2 : 16;
        void *p = more > FILES_MAX ? NULL : realloc(d->name, more * sizeof *d->name);
        if (p == NULL)
            return -1;
        d->name = p;
        *cap = more;
    }
    memcpy(d->name[d->n++], name, strlen(name) + 1);
    return 0;
}

static int list(int dirfd, bool (*wanted)(const char *), bool dirs, struct log_dir *ret,
                struct err *err)
{
    size_t cap = 0;
    *ret = (struct log_dir){0};
    int fd = openat(dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    if (d == NULL) {
        err_sys(err, "cannot read the audit directory");
        if (fd >= 0)
            close(fd);
        return -1;
    }
    int r = 0;
    for (struct dirent *e; r == 0 && (e = readdir(d)) != NULL;) {
        struct stat st;
        if (!wanted(e->d_name) || fstatat(dirfd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
            continue;
        if (dirs ? S_ISDIR(st.st_mode) : S_ISREG(st.st_mode))
            r = add(ret, &cap, e->d_name);
    }
    closedir(d);
    if (r < 0) {
        log_dir_done(ret);
        return err_set(err, ERR_LIMIT, "too many files in the audit directory");
    }
    if (ret->n)
        qsort(ret->name, ret->n, sizeof *ret->name, by_name);
    return 0;
}

int log_dir_list(int dirfd, struct log_dir *ret, struct err *err)
{
    return list(dirfd, is_log, false, ret, err);
}

int log_dir_runs(int dirfd, struct log_dir *ret, struct err *err)
{
    return list(dirfd, is_run, true, ret, err);
}

void log_dir_done(struct log_dir *d)
{
    free(d->name);
    *d = (struct log_dir){0};
}

void log_dir_next_name(uint64_t now_ns, const char *last, char name[LOG_NAME_MAX])
{
    char stamp[STAMP_MAX];
    uint64_t at = now_ns;
    /* the clock may stand behind the last name: then the second after that name */
    if (is_log(last)) {
        char text[STAMP_MAX];
        uint64_t then;
        snprintf(text, sizeof text, "%.4s-%.2s-%.2sT%.2s:%.2s:%.2sZ", last + 6, last + 10,
                 last + 12, last + 15, last + 17, last + 19);
        if (stamp_parse(text, 0, &then, NULL) == 0 && then / 1000000000U >= at / 1000000000U)
            at = then + 1000000000U;
    }
    snprintf(name, LOG_NAME_MAX, "audit-%s.jsonl", stamp_compact(at, stamp, sizeof stamp));
}

struct line_reader {
    int fd;
    uint64_t base;      /* file offset of block[0] */
    size_t start, end;  /* unread part of the block */
    uint64_t at, after; /* of the line given last */
    char block[BLOCK];
};

struct line_reader *line_reader_new(int fd)
{
    struct line_reader *r = malloc(sizeof *r);
    if (r) {
        r->fd = fd;
        line_reader_seek(r, 0);
    }
    return r;
}

void line_reader_free(struct line_reader *r)
{
    free(r);
}

void line_reader_seek(struct line_reader *r, uint64_t offset)
{
    r->base = r->at = r->after = offset;
    r->start = r->end = 0;
}

uint64_t line_reader_at(const struct line_reader *r)
{
    return r->at;
}

uint64_t line_reader_after(const struct line_reader *r)
{
    return r->after;
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
    ssize_t n;
    do
        n = pread(r->fd, r->block + r->end, sizeof r->block - r->end, (off_t)(r->base + r->end));
    while (n < 0 && errno == EINTR);
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
