/* Compares the copy with the list of what was copied, and puts in its place on the host what
 * differs: written beside it under another name, then exchanged with it, and looked at: what was
 * there is what was copied, or it goes back. What lies in the copy is a sandbox's: it is walked
 * from descriptor to descriptor, and nothing in it decides where anything goes. */
#define _GNU_SOURCE 1
#include "work_out.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "mask.h"

enum { TEMPORARY = 32, COMPARED = 64 * 1024 };

struct bringing {
    struct work_back *back;
    uint64_t left;                                    /* bytes */
    uint64_t entries;                                 /* met so far */
    size_t n;                                         /* of path */
    char path[(WORK_DEPTH_MAX + 2) * (NAME_MAX + 1)]; /* below the directory, "" of itself */
};

/* One name, at both sides. host -1: the host has no such directory any more. */
struct place {
    int host, copy;
    const char *name;
    struct work_entry *was; /* NULL: the sandbox made it */
};

static void name_one(struct bringing *b, struct work_named *l)
{
    if (l->n < WORK_NAMED_MAX && (l->v[l->n] = strdup(b->path)) == NULL)
        return;
    l->n++;
}

static void fail(struct bringing *b, const char *what)
{
    if (b->back->failed.n == 0)
        err_sys(&b->back->why, "%s", what);
    name_one(b, &b->back->failed);
}

static void temporary(char name[TEMPORARY])
{
    uint64_t r = 0;
    if (getrandom(&r, sizeof r, 0) != sizeof r)
        r = (uint64_t)getpid(); /* O_EXCL keeps it from meeting another */
    snprintf(name, TEMPORARY, ".durward-%016llx", (unsigned long long)r);
}

/* ---- what there is ---- */

static bool host_has(const struct place *p, struct stat *st)
{
    return p->host >= 0 && fstatat(p->host, p->name, st, AT_SYMLINK_NOFOLLOW) == 0;
}

static bool host_untouched(const struct place *p)
{
    struct stat st;
    return p->was && host_has(p, &st) && work_same_host(&p->was->host, &st, false);
}

static int open_plain(int at, const char *name)
{
    struct stat st;
    int fd = openat(at, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd >= 0 && (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))) {
        close(fd);
        errno = EINVAL;
        return -1;
    }
    return fd;
}

static bool same_bytes(int a, int b)
{
    static char x[COMPARED], y[COMPARED];
    for (off_t at = 0;;) {
        ssize_t n = pread(a, x, sizeof x, at), m = pread(b, y, sizeof y, at);
        if (n < 0 || n != m || memcmp(x, y, (size_t)n) != 0)
            return false;
        if (n == 0)
            return true;
        at += n;
    }
}

/* Somebody made the same of it on the host: then there is nothing to be told. */
static bool same_already(const struct place *p)
{
    struct stat x, y;
    int a = p->host < 0 ? -1 : open_plain(p->host, p->name), b = open_plain(p->copy, p->name);
    bool same = a >= 0 && b >= 0 && fstat(a, &x) == 0 && fstat(b, &y) == 0 &&
                x.st_size == y.st_size && same_bytes(a, b);
    if (a >= 0)
        close(a);
    if (b >= 0)
        close(b);
    return same;
}

static void keep(struct bringing *b, const struct place *p)
{
    if (!same_already(p))
        name_one(b, &b->back->kept);
}

/* ---- one file ---- */

/* What was put beside under another name takes its place. 0; 1: the host's was changed, and stays;
 * -1 with errno. The other name is free again in any case. */
static int settle(const struct place *p, const char *beside)
{
    struct stat st;
    int r;
    if (!host_untouched(p)) {
        r = p->was ? 1 : renameat2(p->host, beside, p->host, p->name, RENAME_NOREPLACE);
        r = r < 0 && errno == EEXIST ? 1 : r;
    } else if (renameat2(p->host, beside, p->host, p->name, RENAME_EXCHANGE) < 0) {
        r = errno == ENOENT ? 1 : -1;
    } else if (fstatat(p->host, beside, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
               work_same_host(&p->was->host, &st, true)) {
        r = 0;
    } else { /* changed between two looks */
        r = renameat2(p->host, beside, p->host, p->name, RENAME_EXCHANGE) < 0 ? -1 : 1;
        if (r < 0)
            return -1; /* both are there, under one name or the other */
    }
    int e = errno;
    if (unlinkat(p->host, beside, 0) < 0 && errno != ENOENT && r >= 0)
        return -1;
    errno = e;
    return r;
}

static void settled(struct bringing *b, const struct place *p, int r)
{
    if (r < 0)
        fail(b, "renaming");
    else if (r > 0)
        keep(b, p);
    else
        b->back->written++;
}

/* Neither owner, nor set-uid bits, nor attributes are a sandbox's to say. As root a file keeps
 * whose it was. */
static int dress(const struct place *p, int fd, const struct stat *st)
{
    const struct timespec times[2] = {st->st_atim, st->st_mtim};
    if (p->was && geteuid() == 0 && fchown(fd, p->was->host.st_uid, p->was->host.st_gid) < 0)
        return -1;
    return fchmod(fd, st->st_mode & 0777) < 0 || futimens(fd, times) < 0 ? -1 : 0;
}

static void put_file(struct bringing *b, const struct place *p, const struct stat *st)
{
    char beside[TEMPORARY];
    struct err err = {0};
    int from = open_plain(p->copy, p->name), to = -1;
    temporary(beside);
    if (from < 0) {
        fail(b, "reading the copy");
        return;
    }
    if ((uint64_t)st->st_size > b->left) {
        errno = EFBIG;
        fail(b, "at most 4096 MiB are brought back");
    } else if ((to = openat(p->host, beside, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                            0600)) < 0) {
        fail(b, "writing beside it");
    } else if (work_copy_bytes(from, to, &b->left, b->path, &err) < 0 || dress(p, to, st) < 0) {
        fail(b, err.code ? err.text : "writing beside it");
        unlinkat(p->host, beside, 0);
    } else {
        settled(b, p, settle(p, beside));
    }
    close(from);
    if (to >= 0)
        close(to);
}

/* Only what leads to below the directory, whatever is a link on its way: any "..", and not more of
 * them than there are directories above, come first. */
static bool stays_inside(const char *to, size_t depth)
{
    bool begun = false;
    if (*to == '/')
        return false;
    for (const char *s = to; *s;) {
        size_t n = strcspn(s, "/");
        bool up = n == 2 && s[0] == '.' && s[1] == '.';
        if (up && (begun || depth-- == 0))
            return false;
        begun = begun || (n > 0 && !up && !(n == 1 && s[0] == '.'));
        s += n + (s[n] == '/');
    }
    return true;
}

static size_t depth_of(const char *path)
{
    size_t n = 0;
    for (; (path = strchr(path, '/')) != NULL; path++)
        n++;
    return n;
}

static void put_link(struct bringing *b, const struct place *p)
{
    char text[PATH_MAX], beside[TEMPORARY], there[PATH_MAX];
    ssize_t n = readlinkat(p->copy, p->name, text, sizeof text - 1);
    if (n <= 0) {
        fail(b, "reading the copy");
        return;
    }
    text[n] = '\0';
    ssize_t m = p->host < 0 ? -1 : readlinkat(p->host, p->name, there, sizeof there);
    if (m == n && memcmp(text, there, (size_t)n) == 0)
        return;
    if (!stays_inside(text, depth_of(b->path))) {
        name_one(b, &b->back->refused);
        return;
    }
    temporary(beside);
    if (symlinkat(text, p->host, beside) < 0)
        fail(b, "writing beside it");
    else
        settled(b, p, settle(p, beside));
}

/* ---- what the sandbox removed ---- */

static void descend(struct bringing *b, const char *name, size_t *was)
{
    *was = b->n;
    b->n += (size_t)snprintf(b->path + b->n, sizeof b->path - b->n, "%s%s", b->n ? "/" : "", name);
}

static void ascend(struct bringing *b, size_t was)
{
    b->n = was;
    b->path[was] = '\0';
}

/* A file or a link: taken aside, looked at, and only then removed. True: the name is free. */
static bool take_away(struct bringing *b, const struct place *p)
{
    char aside[TEMPORARY];
    struct stat st;
    if (!host_has(p, &st))
        return true;
    temporary(aside);
    if (!host_untouched(p)) {
        name_one(b, &b->back->kept);
        return false;
    }
    if (renameat2(p->host, p->name, p->host, aside, RENAME_NOREPLACE) < 0) {
        fail(b, "removing it");
        return false;
    }
    if (fstatat(p->host, aside, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
        work_same_host(&p->was->host, &st, true) && unlinkat(p->host, aside, 0) == 0) {
        b->back->removed++;
        return true;
    }
    name_one(b, &b->back->kept);
    if (renameat2(p->host, aside, p->host, p->name, RENAME_NOREPLACE) < 0)
        fail(b, "putting it back");
    return false;
}

static int open_dir(int at, const char *name)
{
    return at < 0 ? -1 : openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* What was copied of a directory goes; what else lies in it stays, and the directory with it. True:
 * the name is free. */
static bool remove_dir(struct bringing *b, const struct place *p)
{
    struct stat st;
    size_t was;
    if (!host_has(p, &st))
        return true;
    int fd = S_ISDIR(st.st_mode) ? open_dir(p->host, p->name) : -1;
    if (fd < 0) {
        name_one(b, &b->back->kept);
        return false;
    }
    for (size_t i = 0; i < p->was->below.n; i++) {
        struct work_entry *e = &p->was->below.v[i];
        const struct place child = {fd, -1, e->name, e};
        descend(b, e->name, &was);
        (void)(S_ISDIR(e->host.st_mode) ? remove_dir(b, &child) : take_away(b, &child));
        ascend(b, was);
    }
    close(fd);
    bool gone = unlinkat(p->host, p->name, AT_REMOVEDIR) == 0;
    b->back->removed += gone;
    return gone;
}

/* The name's former kind of thing makes way for another. */
static bool make_way(struct bringing *b, struct place *p, mode_t type)
{
    if (p->was == NULL || (p->was->host.st_mode & S_IFMT) == type || p->host < 0)
        return true;
    bool dir = S_ISDIR(p->was->host.st_mode);
    bool free = dir ? remove_dir(b, p) : take_away(b, p);
    if (free)
        p->was = NULL;
    else if (dir) /* files in it are hidden, or were changed */
        name_one(b, &b->back->kept);
    return free;
}

/* ---- directories ---- */

static void bring_dir(struct bringing *b, int host, int copy, struct work_list *list,
                      unsigned depth);

/* A directory that the host's user hides is none that a sandbox fills. */
static bool hidden_there(const struct bringing *b, const struct place *p)
{
    return p->was == NULL && mask_match(b->path, true) == MASK_YES;
}

static void enter_dir(struct bringing *b, struct place *p, const struct stat *st, unsigned depth)
{
    struct work_list none = {0};
    struct stat there;
    if (depth == WORK_DEPTH_MAX) {
        name_one(b, &b->back->refused);
        return;
    }
    if (!make_way(b, p, S_IFDIR))
        return;
    bool has = host_has(p, &there);
    if (p->host >= 0 && has && (!S_ISDIR(there.st_mode) || hidden_there(b, p))) {
        name_one(b, &b->back->kept);
        return;
    }
    if (p->host >= 0 && !has && p->was == NULL && mkdirat(p->host, p->name, 0700) < 0) {
        fail(b, "making it");
        return;
    }
    int host = open_dir(p->host, p->name), copy = open_dir(p->copy, p->name);
    if (copy < 0 && errno == EACCES && fchmodat(p->copy, p->name, 0700, 0) == 0)
        copy = open_dir(p->copy, p->name);
    if (copy < 0) {
        fail(b, "reading the copy");
    } else {
        bring_dir(b, host, copy, p->was ? &p->was->below : &none, depth + 1);
        if (host >= 0 && !has && fchmod(host, (st->st_mode & 0777) | 0700) < 0)
            fail(b, "its mode");
    }
    if (host >= 0)
        close(host);
    if (copy >= 0)
        close(copy);
}

static void bring_entry(struct bringing *b, struct place *p, unsigned depth)
{
    struct stat st;
    if (fstatat(p->copy, p->name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
        fail(b, "reading the copy");
        return;
    }
    mode_t type = st.st_mode & S_IFMT;
    out_progress(&b->back->progress, "copying back: %u files, %.60s", b->back->written, b->path);
    if (type == S_IFDIR) {
        enter_dir(b, p, &st, depth);
        return;
    }
    if (p->was && work_same_copy(&p->was->copy, &st))
        return;
    if (type != S_IFREG && type != S_IFLNK) {
        name_one(b, &b->back->refused);
        return;
    }
    if (p->host < 0) { /* its directory has gone on the host */
        name_one(b, &b->back->kept);
        return;
    }
    if (!make_way(b, p, type))
        return;
    if (type == S_IFREG)
        put_file(b, p, &st);
    else
        put_link(b, p);
}

static void bring_dir(struct bringing *b, int host, int copy, struct work_list *list,
                      unsigned depth)
{
    size_t was;
    int fd = openat(copy, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    if (d == NULL) {
        fail(b, "reading the copy");
        if (fd >= 0)
            close(fd);
        return;
    }
    errno = 0;
    for (struct dirent *e; (e = readdir(d)) != NULL; errno = 0) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
            continue;
        if (++b->entries > WORK_BACK_ENTRIES_MAX) {
            errno = EFBIG; /* nothing that was not met is taken for removed */
            break;
        }
        struct work_entry *known = work_list_find(list, e->d_name);
        struct place p = {host, copy, e->d_name, known};
        if (known)
            known->seen = true;
        descend(b, e->d_name, &was);
        bring_entry(b, &p, depth);
        ascend(b, was);
    }
    bool whole = errno == 0;
    if (!whole)
        fail(b, errno == EFBIG ? "at most 600000 files are brought back" : "reading the copy");
    closedir(d);
    for (size_t i = 0; whole && host >= 0 && i < list->n; i++) {
        struct work_entry *e = &list->v[i];
        const struct place p = {host, -1, e->name, e};
        if (e->seen)
            continue;
        descend(b, e->name, &was);
        (void)(S_ISDIR(e->host.st_mode) ? remove_dir(b, &p) : take_away(b, &p));
        ascend(b, was);
    }
}

void work_copy_out(int host, int copy, struct work_list *list, uint64_t bytes,
                   struct work_back *ret)
{
    struct bringing *b = calloc(1, sizeof *b);
    *ret = (struct work_back){0};
    if (b == NULL) {
        ret->failed.n = 1;
        err_set(&ret->why, ERR_INTERNAL, "out of memory");
        return;
    }
    b->back = ret;
    b->left = bytes;
    bring_dir(b, host, copy, list, 0);
    out_progress_end(&ret->progress);
    free(b);
}

void work_back_free(struct work_back *b)
{
    struct work_named *all[] = {&b->kept, &b->refused, &b->failed};
    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        for (unsigned k = 0; k < all[i]->n && k < WORK_NAMED_MAX; k++)
            free(all[i]->v[k]);
    *b = (struct work_back){0};
}
