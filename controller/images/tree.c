/* Opens a path's parent, component by component, and walks a directory to remove, empty or give
 * away what lies below it. */
#define _GNU_SOURCE 1
#include "tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int step(int at, const char *name, bool make, const char *path, struct err *err)
{
    const int flags = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    int fd = openat(at, name, flags);
    if (fd < 0 && errno == ENOENT && make) {
        if (mkdirat(at, name, 0755) < 0 && errno != EEXIST)
            return err_sys(err, "%.200s", path);
        fd = openat(at, name, flags);
    }
    if (fd < 0 && (errno == ENOTDIR || errno == ELOOP))
        return err_set(err, ERR_PARSE, "%.200s: a component is not a directory", path);
    return fd < 0 ? err_sys(err, "%.200s", path) : fd;
}

/* The next component of *path into name; 0 at the end, -1 when it may not be. */
static int component(const char **path, char name[NAME_MAX + 1])
{
    for (;;) {
        *path += strspn(*path, "/");
        size_t n = strcspn(*path, "/");
        if (n == 0)
            return 0;
        if (n > NAME_MAX || (n == 2 && memcmp(*path, "..", 2) == 0))
            return -1;
        memcpy(name, *path, n);
        name[n] = '\0';
        *path += n;
        if (strcmp(name, ".") != 0)
            return 1;
    }
}

int tree_parent(int root, const char *path, bool make, char name[NAME_MAX + 1], struct err *err)
{
    char next[NAME_MAX + 1];
    const char *p = path;
    unsigned depth = 0;
    name[0] = '\0';
    int at = fcntl(root, F_DUPFD_CLOEXEC, 0);
    if (at < 0)
        return err_sys(err, "dup");
    for (;;) {
        int got = component(&p, next);
        if (got == 0)
            return at;
        if (got < 0 || ++depth > TREE_DEPTH_MAX) {
            close(at);
            return err_set(err, ERR_PARSE, "%.200s: '..', too long a name or too deep", path);
        }
        if (name[0]) {
            int down = step(at, name, make, path, err);
            close(at);
            if (down < 0)
                return -1;
            at = down;
        }
        memcpy(name, next, sizeof next);
    }
}

/* A removal goes on past what it cannot remove. A directory that lies too deep for one walk is
 * moved to the top, for the next. */
struct removal {
    int top;
    unsigned n; /* numbers of what was moved */
    bool moved; /* in this walk */
    int r;
    struct err *err; /* of the first failure */
};

static void fail(struct removal *w, const char *name)
{
    if (w->r == 0)
        w->r = err_sys(w->err, "cannot remove %.200s", name);
}

static void lift(struct removal *w, int at, const char *name)
{
    char to[32];
    for (bool opened = false;;) {
        snprintf(to, sizeof to, ".deep-%u", w->n);
        if (renameat2(at, name, w->top, to, RENAME_NOREPLACE) == 0) {
            w->n++;
            w->moved = true;
            return;
        }
        if (errno == EEXIST && w->n < UINT_MAX) {
            w->n++;
        } else if (errno == EACCES && !opened) { /* its owner may do that */
            opened = fchmod(at, 0700) == 0 && fchmodat(at, name, 0700, 0) == 0;
            errno = EACCES;
            if (!opened)
                break;
        } else {
            break;
        }
    }
    fail(w, name);
}

static void remove_below(struct removal *w, int at, const char *name, unsigned depth);

/* Takes fd. */
static void empty(struct removal *w, int fd, unsigned depth)
{
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    if (d == NULL) {
        fail(w, "what a directory holds");
        if (fd >= 0)
            close(fd);
        return;
    }
    for (struct dirent *e; (e = readdir(d)) != NULL;)
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
            remove_below(w, dirfd(d), e->d_name, depth + 1);
    closedir(d);
}

static int open_to_read(int at, const char *name)
{
    return openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

static int open_to_empty(int at, const char *name)
{
    int fd = open_to_read(at, name);
    if (fd < 0 && errno == EACCES && fchmodat(at, name, 0700, 0) == 0)
        fd = open_to_read(at, name); /* its owner may do that */
    return fd;
}

/* 1: it is gone, 0: it is a directory, -1: it cannot be removed. */
static int unlink_one(int at, const char *name, bool ours)
{
    if (unlinkat(at, name, 0) == 0 || errno == ENOENT)
        return 1;
    if (errno == EACCES && ours && fchmod(at, 0700) == 0) { /* its owner may do that */
        if (unlinkat(at, name, 0) == 0 || errno == ENOENT)
            return 1;
    }
    return errno == EISDIR || errno == EPERM ? 0 : -1;
}

static void remove_below(struct removal *w, int at, const char *name, unsigned depth)
{
    int gone = unlink_one(at, name, true);
    if (gone > 0)
        return;
    if (gone == 0 && depth > TREE_DEPTH_MAX) {
        lift(w, at, name);
        return;
    }
    int fd = gone < 0 ? -1 : open_to_empty(at, name);
    if (fd < 0) {
        fail(w, name);
        return;
    }
    empty(w, fd, depth);
    if (unlinkat(at, name, AT_REMOVEDIR) < 0 && errno != ENOENT)
        fail(w, name);
}

int tree_empty(int dir, struct err *err)
{
    struct removal w = {.top = dir, .err = err};
    do {
        w.moved = false;
        empty(&w, open_to_read(dir, "."), 0);
    } while (w.moved);
    return w.r;
}

int tree_remove(int at, const char *name, struct err *err)
{
    int gone = unlink_one(at, name, false);
    if (gone > 0)
        return 0;
    int fd = gone < 0 ? -1 : open_to_empty(at, name);
    if (fd < 0)
        return err_sys(err, "cannot remove %.200s", name);
    int r = tree_empty(fd, err);
    close(fd);
    if (r < 0)
        return -1;
    return unlinkat(at, name, AT_REMOVEDIR) < 0 ? err_sys(err, "cannot remove %.200s", name) : 0;
}

/* Takes fd. */
static int give(int fd, uid_t uid, gid_t gid, unsigned depth, struct err *err)
{
    struct stat st;
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    int r = d == NULL ? err_sys(err, "cannot read a directory") : 0;
    if (d == NULL && fd >= 0)
        close(fd);
    for (struct dirent *e; r == 0 && (e = readdir(d)) != NULL;) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
            continue;
        if (depth > 2 * TREE_DEPTH_MAX)
            r = err_set(err, ERR_LIMIT, "%.200s lies too deep", e->d_name);
        else if (fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
            r = err_sys(err, "%.200s", e->d_name);
        else if (S_ISDIR(st.st_mode))
            r = give(open_to_read(dirfd(d), e->d_name), uid, gid, depth + 1, err);
        else if (fchownat(dirfd(d), e->d_name, uid, gid, AT_SYMLINK_NOFOLLOW) < 0)
            r = err_sys(err, "%.200s", e->d_name);
    }
    if (r == 0 && fchown(dirfd(d), uid, gid) < 0)
        r = err_sys(err, "cannot give a directory away");
    if (d)
        closedir(d);
    return r;
}

int tree_give(int dir, uid_t uid, gid_t gid, struct err *err)
{
    return give(open_to_read(dir, "."), uid, gid, 0, err);
}
