/* Walks a directory from descriptor to descriptor, follows no link, and leaves out what holds
 * credentials and what is neither a file, a directory nor a link. */
#define _GNU_SOURCE 1
#include "work_in.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "mask.h"

enum { CHUNK = 256 * 1024, LINK_MAX_BYTES = PATH_MAX };

struct copying {
    struct work_count *count;
    struct buf *notes;
    uint64_t left; /* bytes */
    dev_t device;  /* of the directory being read */
    const char *source;
    size_t n; /* of path, which names what is being copied */
    char path[PATH_MAX + (WORK_DEPTH_MAX + 2) * (NAME_MAX + 1)];
};

/* Files beside a link with a credential's name that leads to them. */
struct given_away {
    char **v;
    size_t n, room;
};

static int too_large(const struct copying *c, struct err *err)
{
    return err_set(err, ERR_LIMIT,
                   "%.400s is too large to be copied into a container (at most %llu MiB in %llu "
                   "files): take a narrower directory (--workdir), or --no-bind",
                   c->source, (unsigned long long)(c->count->bytes_max >> 20),
                   (unsigned long long)c->count->entries_max);
}

int work_copy_bytes(int from, int to, uint64_t *left, const char *what, struct err *err)
{
    static unsigned char room[CHUNK];
    for (;;) {
        ssize_t n = read(from, room, sizeof room);
        if (n == 0)
            return 0;
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_sys(err, "%.300s", what);
        if ((uint64_t)n > *left)
            return err_set(err, ERR_LIMIT, "%.300s: too large", what);
        *left -= (uint64_t)n;
        for (ssize_t at = 0; at < n;) {
            ssize_t w = write(to, room + at, (size_t)(n - at));
            if (w < 0 && errno != EINTR)
                return err_sys(err, "the copy of %.300s", what);
            at += w > 0 ? w : 0;
        }
    }
}

static void note_masked(struct copying *c)
{
    enum { SPARE = 64 };
    if (buf_room(c->notes) < strlen(c->path) + SPARE ||
        buf_printf(c->notes, "masked: %s\n", c->path) < 0)
        (void)!buf_append_str(c->notes, "masked: and others\n"); /* it is left out all the same */
}

/* ---- one entry ---- */

/* What cannot be opened may have gone, or be somebody else's. */
static int open_entry(struct copying *c, int from, const char *name, int flags, int *fd,
                      struct err *err)
{
    *fd = openat(from, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC | flags);
    if (*fd >= 0)
        return 0;
    if (errno == EMFILE || errno == ENFILE || errno == ENOMEM)
        return err_sys(err, "%.400s", c->path);
    c->count->left_out += errno != ENOENT;
    return 0;
}

/* Opens a file that may be copied; -1 in *fd where it may not. The bytes that are judged are those
 * that are copied: the descriptor is the same. */
static int open_file(struct copying *c, int from, const char *name, int *fd, struct stat *st,
                     struct err *err)
{
    enum mask_verdict v = mask_match(c->path, false);
    *fd = -1;
    if (v == MASK_YES) {
        note_masked(c);
        return 0;
    }
    if (open_entry(c, from, name, 0, fd, err) < 0)
        return -1;
    if (*fd < 0)
        return 0;
    bool file = fstat(*fd, st) == 0 && S_ISREG(st->st_mode);
    bool key = file && v == MASK_IF_KEY && mask_holds_key(*fd);
    if (key)
        note_masked(c);
    if (file && !key)
        return 0;
    close(*fd);
    *fd = -1;
    return 0;
}

static int fill(struct copying *c, int fd, int out, const struct stat *st, struct stat *made,
                struct err *err)
{
    const struct timespec times[2] = {st->st_atim, st->st_mtim};
    uint64_t before = c->left;
    int r = (uint64_t)st->st_size > c->left ? too_large(c, err)
                                            : work_copy_bytes(fd, out, &c->left, c->path, err);
    c->count->bytes += before - c->left;
    if (r < 0)
        return err->code == ERR_LIMIT ? too_large(c, err) : -1;
    if (fchmod(out, (st->st_mode & 0777) | 0600) < 0 || futimens(out, times) < 0 ||
        fstat(out, made) < 0)
        return err_sys(err, "the copy of %.400s", c->path);
    return 0;
}

static int copy_file(struct copying *c, int from, int to, const char *name, struct work_list *list,
                     struct err *err)
{
    struct stat st, made;
    int fd;
    if (open_file(c, from, name, &fd, &st, err) < 0)
        return -1;
    if (fd < 0)
        return 0;
    int out = openat(to, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    int r =
        out < 0 ? err_sys(err, "the copy of %.400s", c->path) : fill(c, fd, out, &st, &made, err);
    struct work_entry *e = r == 0 ? work_list_add(list, name) : NULL;
    if (r == 0 && e == NULL)
        r = err_set(err, ERR_INTERNAL, "out of memory");
    if (e) {
        e->host = st;
        e->copy = made;
    }
    close(fd);
    if (out >= 0)
        close(out);
    return r;
}

static int copy_link(struct copying *c, int from, int to, const char *name, struct work_list *list,
                     struct err *err)
{
    char text[LINK_MAX_BYTES];
    struct stat st;
    ssize_t n = readlinkat(from, name, text, sizeof text - 1);
    if (n <= 0 || fstatat(from, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISLNK(st.st_mode))
        return 0;
    text[n] = '\0';
    struct work_entry *e = work_list_add(list, name);
    if (e == NULL)
        return err_set(err, ERR_INTERNAL, "out of memory");
    e->host = st;
    if (symlinkat(text, to, name) < 0 || fstatat(to, name, &e->copy, AT_SYMLINK_NOFOLLOW) < 0)
        return err_sys(err, "the copy of %.400s", c->path);
    return 0;
}

/* ---- directories ---- */

static int copy_dir(struct copying *c, int from, int to, unsigned depth, struct work_list *list,
                    struct err *err);

/* File systems of the kernel's own are nobody's work. */
static bool is_kernels(int fd)
{
    static const unsigned long kernels[] = {
        PROC_SUPER_MAGIC,   SYSFS_MAGIC,   CGROUP_SUPER_MAGIC, CGROUP2_SUPER_MAGIC,
        DEVPTS_SUPER_MAGIC, DEBUGFS_MAGIC, TRACEFS_MAGIC,      SECURITYFS_MAGIC,
        BPF_FS_MAGIC,       EFIVARFS_MAGIC};
    struct statfs fs;
    if (fstatfs(fd, &fs) < 0)
        return true;
    for (size_t i = 0; i < ARRAY_LEN(kernels); i++)
        if ((unsigned long)fs.f_type == kernels[i])
            return true;
    return false;
}

static int enter_dir(struct copying *c, int from, int to, const char *name, unsigned depth,
                     struct work_list *list, struct err *err)
{
    struct stat st;
    int fd, out = -1;
    if (mask_match(c->path, true) == MASK_YES) {
        note_masked(c);
        return 0;
    }
    if (depth == WORK_DEPTH_MAX) {
        c->count->left_out++;
        return 0;
    }
    if (open_entry(c, from, name, O_DIRECTORY, &fd, err) < 0)
        return -1;
    if (fd < 0)
        return 0;
    if (fstat(fd, &st) < 0 || (st.st_dev != c->device && is_kernels(fd))) {
        c->count->left_out++;
        close(fd);
        return 0;
    }
    struct work_list below = {0};
    dev_t above = c->device;
    c->device = st.st_dev;
    int r = mkdirat(to, name, 0700) < 0 ||
                    (out = openat(to, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)) < 0 ||
                    fchmod(out, (st.st_mode & 0777) | 0700) < 0
                ? err_sys(err, "the copy of %.400s", c->path)
                : copy_dir(c, fd, out, depth + 1, &below, err);
    c->device = above;
    struct work_entry *e = r == 0 ? work_list_add(list, name) : NULL;
    if (r == 0 && e == NULL)
        r = err_set(err, ERR_INTERNAL, "out of memory");
    if (e) {
        e->host = st;
        e->copy.st_mode = st.st_mode;
        e->below = below;
    } else {
        work_list_free(&below);
    }
    close(fd);
    if (out >= 0)
        close(out);
    return r;
}

static bool is_given_away(const struct given_away *g, const char *name)
{
    for (size_t i = 0; i < g->n; i++)
        if (strcmp(g->v[i], name) == 0)
            return true;
    return false;
}

static int copy_entry(struct copying *c, int from, int to, const char *name, unsigned depth,
                      const struct given_away *g, struct work_list *list, struct err *err)
{
    struct stat st;
    if (++c->count->entries > c->count->entries_max)
        return too_large(c, err);
    out_progress(&c->count->progress, "copying %.60s: %llu files, %llu MiB", c->source,
                 (unsigned long long)c->count->entries,
                 (unsigned long long)(c->count->bytes >> 20));
    if (fstatat(from, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return 0; /* it has gone */
    switch (st.st_mode & S_IFMT) {
    case S_IFDIR:
        return enter_dir(c, from, to, name, depth, list, err);
    case S_IFREG:
        if (!is_given_away(g, name))
            return copy_file(c, from, to, name, list, err);
        note_masked(c);
        return 0;
    case S_IFLNK:
        return copy_link(c, from, to, name, list, err);
    default:
        c->count->left_out++;
        return 0;
    }
}

/* path is dir's; on return it is again. */
static int push(struct copying *c, const char *name, size_t *was)
{
    size_t len = strlen(name);
    *was = c->n;
    if (c->n + 1 + len >= sizeof c->path)
        return -1;
    c->path[c->n] = '/';
    memcpy(c->path + c->n + 1, name, len + 1);
    c->n += 1 + len;
    return 0;
}

static void pop(struct copying *c, size_t was)
{
    c->n = was;
    c->path[was] = '\0';
}

static bool is_dots(const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

static int give_away(struct given_away *g, const char *name)
{
    if (g->n == g->room) {
        size_t room = g->room ? 2 * g->room : 4;
        char **v = reallocarray(g->v, room, sizeof *v);
        if (v == NULL)
            return -1;
        g->v = v;
        g->room = room;
    }
    return (g->v[g->n] = strdup(name)) ? (g->n++, 0) : -1;
}

static void given_away_free(struct given_away *g)
{
    for (size_t i = 0; i < g->n; i++)
        free(g->v[i]);
    free(g->v);
}

/* Links of a credential's name tell of another file beside them (mask.c does the same). */
static int find_given_away(struct copying *c, DIR *d, struct given_away *g)
{
    char to[NAME_MAX + 1];
    size_t was;
    int bad = 0;
    for (struct dirent *e; bad == 0 && (e = readdir(d)) != NULL;) {
        if ((e->d_type != DT_LNK && e->d_type != DT_UNKNOWN) || push(c, e->d_name, &was) < 0)
            continue;
        ssize_t n = mask_match(c->path, false) == MASK_YES
                        ? readlinkat(dirfd(d), e->d_name, to, sizeof to)
                        : -1;
        pop(c, was);
        if (n <= 0 || n == sizeof to || memchr(to, '/', (size_t)n))
            continue;
        to[n] = '\0';
        bad = give_away(g, to);
    }
    rewinddir(d);
    return bad;
}

static int copy_dir(struct copying *c, int from, int to, unsigned depth, struct work_list *list,
                    struct err *err)
{
    struct given_away g = {0};
    size_t was;
    int fd = openat(from, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    if (d == NULL) {
        err_sys(err, "%.400s", c->path);
        if (fd >= 0)
            close(fd);
        return -1;
    }
    int r = find_given_away(c, d, &g) < 0 ? err_set(err, ERR_INTERNAL, "out of memory") : 0;
    for (struct dirent *e; r == 0 && (e = readdir(d)) != NULL;) {
        if (is_dots(e->d_name))
            continue;
        if (push(c, e->d_name, &was) < 0) {
            c->count->left_out++;
            continue;
        }
        r = copy_entry(c, from, to, e->d_name, depth, &g, list, err);
        pop(c, was);
    }
    closedir(d);
    given_away_free(&g);
    work_list_sort(list);
    return r;
}

int work_copy_in(int from, int to, const char *source, struct work_count *count, struct buf *notes,
                 struct work_list *ret, struct err *err)
{
    struct copying *c = calloc(1, sizeof *c);
    struct stat st;
    if (c == NULL || fstat(from, &st) < 0 ||
        snprintf(c->path, sizeof c->path, "%s", source) >= PATH_MAX) {
        free(c);
        return err_set(err, ERR_INTERNAL, "%.400s cannot be copied", source);
    }
    c->count = count;
    c->notes = notes;
    c->source = source;
    c->device = st.st_dev;
    c->n = strlen(c->path);
    c->left = count->bytes_max - count->bytes;
    int r = copy_dir(c, from, to, 0, ret, err);
    out_progress_end(&count->progress);
    free(c);
    return r;
}
