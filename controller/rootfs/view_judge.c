/* What of a bound directory may be shown. Whatever cannot be told is masked. */
#define _GNU_SOURCE 1
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "view_internal.h"

/* ---- names ---- */

static bool host_path(const struct view *v, const char *path, char *to, size_t size)
{
    size_t n = strlen(path);
    if (v->nsource + n >= size)
        return false;
    memcpy(to, v->source, v->nsource);
    memcpy(to + v->nsource, path, n + 1);
    return true;
}

/* Where in a host path, after what is bound, a directory ends that is masked as a whole and holds
 * the rest; 0: there is none. */
static size_t masked_above(const struct view *v, char *full)
{
    for (size_t i = v->nsource + 1; i <= v->nsource || full[i]; i++) {
        if (full[i] != '/')
            continue;
        full[i] = '\0';
        bool masked = mask_match(full, true) == MASK_YES;
        full[i] = '/';
        if (masked)
            return i;
    }
    return 0;
}

enum mask_verdict judge_name(const struct view *v, const char *path, bool directory)
{
    char full[VIEW_PATH];
    if (v->bound) /* all that it holds sandboxes wrote: README.md */
        return MASK_NO;
    if (!host_path(v, path, full, sizeof full))
        return MASK_YES;
    if (path[0] == '/' && path[1] && masked_above(v, full))
        return MASK_YES;
    return mask_match(full, directory);
}

bool judge_closed(struct view *v, const char *path)
{
    char full[VIEW_PATH];
    if (v->bound)
        return false;
    if (path[1] == '\0')
        return false;
    if (!host_path(v, path, full, sizeof full))
        return true;
    size_t end = masked_above(v, full);
    if (end == 0)
        return false;
    full[end] = '\0';
    int fd = view_open_at(v, full + v->nsource, O_PATH);
    bool own = fd >= 0 && own_state(&v->owns, fd) == OWN_HELD;
    if (fd >= 0)
        close(fd);
    return !own;
}

/* ---- files ---- */

/* The name that an open file has now, below what is bound. A file that was removed has its last. */
static bool name_now(int fd, char *to, size_t size)
{
    static const char gone[] = " (deleted)";
    char link[32];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, to, size);
    if (n <= 0 || (size_t)n >= size || to[0] != '/')
        return false;
    to[n] = '\0';
    size_t g = sizeof gone - 1;
    if ((size_t)n > g && strcmp(to + n - g, gone) == 0)
        to[(size_t)n - g] = '\0';
    return true;
}

/* It may have been opened for writing only. */
static bool holds_key(int fd)
{
    char link[32];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    if ((fcntl(fd, F_GETFL) & O_ACCMODE) != O_WRONLY)
        return mask_holds_key(fd);
    int again = open(link, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    bool key = again < 0 || mask_holds_key(again);
    if (again >= 0)
        close(again);
    return key;
}

/* Does a link beside the file, with a credential's name, lead to it? The content is the
 * credential's then, whatever the file is called. */
static bool linked_beside(const struct view *v, const char *path)
{
    char link[VIEW_PATH], to[NAME_MAX + 2], full[VIEW_PATH];
    const char *name = strrchr(path, '/') + 1, *candidate;
    size_t above = (size_t)(name - path), len = strlen(name);
    if (!host_path(v, path, full, sizeof full))
        return true;
    size_t end = v->nsource + above - 1, at = end;
    while (at > 0 && full[at - 1] != '/')
        at--;
    memcpy(link, path, above);
    for (size_t i = 0; (candidate = mask_link_name(i, full + at, end - at)) != NULL; i++) {
        size_t n = strlen(candidate);
        if (above + n >= sizeof link)
            return true;
        memcpy(link + above, candidate, n + 1);
        ssize_t got = readlinkat(v->root, link + 1, to, sizeof to);
        const char *t = got > 2 && memcmp(to, "./", 2) == 0 ? to + 2 : to;
        if (got > 0 && (size_t)(got - (t - to)) == len && memcmp(t, name, len) == 0)
            return true;
    }
    return false;
}

bool judge_linked(struct view *v, int fd)
{
    char name[VIEW_PATH];
    if (v->bound)
        return false;
    return !name_now(fd, name, sizeof name) || linked_beside(v, name);
}

enum judged judge_open(struct view *v, int fd)
{
    char name[VIEW_PATH];
    if (v->bound)
        return JUDGED_SHOWN;
    enum own_state own = own_state(&v->owns, fd);
    if (own != OWN_NOT)
        return own == OWN_HELD ? JUDGED_OWN : JUDGED_MASKED;
    if (!name_now(fd, name, sizeof name))
        return JUDGED_MASKED;
    switch (judge_name(v, name, false)) {
    case MASK_NO:
        return JUDGED_SHOWN;
    case MASK_IF_KEY:
        return holds_key(fd) ? JUDGED_MASKED : JUDGED_SHOWN;
    case MASK_YES:
        break;
    }
    return JUDGED_MASKED;
}

static enum own_state whose(struct view *v, const char *path)
{
    int fd = view_open_at(v, path, O_PATH);
    enum own_state s = fd < 0 ? OWN_SPOILED : own_state(&v->owns, fd);
    if (fd >= 0)
        close(fd);
    return s;
}

static enum judged judge_file(struct view *v, const char *path, const char *as)
{
    enum mask_verdict verdict = judge_name(v, as, false);
    enum own_state own = verdict == MASK_NO && v->owns.n == 0 ? OWN_NOT : whose(v, path);
    if (own != OWN_NOT)
        return own == OWN_HELD ? JUDGED_OWN : JUDGED_MASKED;
    if (verdict != MASK_IF_KEY)
        return verdict == MASK_NO ? JUDGED_SHOWN : JUDGED_MASKED;
    int fd = view_open_at(v, path, O_RDONLY | O_NONBLOCK);
    enum judged j = fd < 0 || mask_holds_key(fd) ? JUDGED_MASKED : JUDGED_SHOWN;
    if (fd >= 0)
        close(fd);
    return j;
}

/* ---- directories ---- */

typedef int look_fn(struct view *v, const char *path, const char *as, const struct stat *st);

static bool join(char *to, size_t size, const char *path, const char *name)
{
    return (size_t)snprintf(to, size, "%s/%s", path, name) < size;
}

/* 0, or what `look` says of one of its entries, as if the directory were at the path `as`; -EACCES
 * where they cannot be seen. */
static int each_entry(struct view *v, const char *path, const char *as, look_fn *look)
{
    int fd = view_open_at(v, path, O_RDONLY | O_DIRECTORY);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    int r = d ? 0 : -EACCES;
    if (d == NULL && fd >= 0)
        close(fd);
    for (struct dirent *e; r == 0 && (e = readdir(d)) != NULL;) {
        char child[VIEW_PATH], named[VIEW_PATH];
        struct stat st;
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
            continue;
        if (!join(child, sizeof child, path, e->d_name) ||
            !join(named, sizeof named, as, e->d_name))
            r = -EACCES;
        else if (fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0)
            r = look(v, child, named, &st);
    }
    if (d)
        closedir(d);
    return r;
}

static enum judged judge_directory(struct view *v, const char *path, const char *as)
{
    if (judge_name(v, as, true) != MASK_YES)
        return JUDGED_SHOWN;
    return whose(v, path) == OWN_HELD ? JUDGED_OWN : JUDGED_MASKED;
}

static int masked_child(struct view *v, const char *path, const char *as, const struct stat *st)
{
    enum judged j = S_ISREG(st->st_mode)   ? judge_file(v, path, as)
                    : S_ISDIR(st->st_mode) ? judge_directory(v, path, as)
                                           : JUDGED_SHOWN;
    return j == JUDGED_MASKED ? -EACCES : 0;
}

enum judged judge_as(struct view *v, const char *path, const char *as, const struct stat *st)
{
    if (v->bound)
        return JUDGED_SHOWN;
    if (S_ISREG(st->st_mode))
        return judge_file(v, path, as);
    if (!S_ISDIR(st->st_mode))
        return JUDGED_SHOWN;
    enum judged j = judge_directory(v, path, as);
    if (j != JUDGED_SHOWN || !mask_names_children(strrchr(as, '/') + 1))
        return j;
    return each_entry(v, path, as, masked_child) < 0 ? JUDGED_MASKED : JUDGED_SHOWN;
}

enum judged judge_at(struct view *v, const char *path, const struct stat *st)
{
    return judge_as(v, path, path, st);
}

/* ---- new names ---- */

/* A directory gets a name that makes one of what lies in it a credential. */
static int becomes_credential(struct view *v, const char *path, const char *as,
                              const struct stat *st)
{
    bool directory = S_ISDIR(st->st_mode);
    (void)path;
    bool alone = directory || (S_ISREG(st->st_mode) && st->st_nlink == 1);
    return alone || judge_name(v, as, directory) == MASK_NO ? 0 : -EPERM;
}

static int judge_link(const struct view *v, const char *at, const char *to)
{
    char target[PATH_MAX];
    struct place p;
    int r = place_open(v, at, &p);
    if (r < 0)
        return r;
    ssize_t n = readlinkat(p.dir, p.name, target, sizeof target - 1);
    place_close(v, &p);
    if (n < 0)
        return -errno;
    target[n] = '\0';
    return judge_linking(v, target, to);
}

int judge_linking(const struct view *v, const char *target, const char *to)
{
    const char *name = strrchr(to, '/') + 1;
    if (v->bound)
        return 0;
    bool credential = judge_name(v, to, false) != MASK_NO || judge_name(v, to, true) != MASK_NO ||
                      (name[0] == '.' && mask_names_children(name));
    return !credential || mask_match(target, false) == MASK_YES ? 0 : -EPERM;
}

int judge_naming(struct view *v, const char *from, const char *to, const struct stat *st)
{
    if (v->bound)
        return 0;
    if (S_ISLNK(st->st_mode))
        return judge_link(v, from, to);
    if (S_ISREG(st->st_mode))
        return judge_name(v, to, false) != MASK_NO && st->st_nlink > 1 ? -EPERM : 0;
    if (!S_ISDIR(st->st_mode))
        return 0;
    if (judge_name(v, to, true) == MASK_YES)
        return whose(v, from) == OWN_HELD ? 0 : -EPERM;
    return mask_names_children(strrchr(to, '/') + 1) ? each_entry(v, from, to, becomes_credential)
                                                     : 0;
}
