/* The store: imports into a directory without a name until it is whole, lists, holds and removes.
 * What touches an image's files is in image_work.c. */
#define _GNU_SOURCE 1
#include "image.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "image_internal.h"
#include "paths.h"
#include "sandbox_spec.h"

#define DIRECTORY (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

enum { ABOUT_MAX = 4096, IMAGES_MAX = 4096 };

/* images/ of the state directory; made when asked for. -1 with errno ENOENT and no err: none. */
static int open_store(const char *state_dir, bool make, struct err *err)
{
    char *path = paths_join(state_dir, "images");
    int fd = -1;
    if (!make || (paths_make_private(state_dir, err) == 0 && paths_make_private(path, err) == 0)) {
        fd = open(path, DIRECTORY);
        if (fd < 0 && (make || errno != ENOENT))
            err_sys(err, "%s", path);
    }
    free(path);
    return fd;
}

static int not_there(const char *name, struct err *err)
{
    return err_set(err, ERR_UNREADY,
                   "there is no image '%.64s'; 'durward image ls' lists them, 'durward image "
                   "import' makes one",
                   name);
}

static int open_image(int store, const char *name, struct err *err)
{
    int fd = sandbox_spec_name_ok(name) ? openat(store, name, DIRECTORY) : -1;
    if (fd < 0 && (errno == ENOENT || !sandbox_spec_name_ok(name)))
        return not_there(name, err);
    return fd < 0 ? err_sys(err, "image '%s'", name) : fd;
}

/* ---- about ---- */

static int write_about(int dir, const struct image *i, struct err *err)
{
    json_t *v =
        json_pack("{s:i, s:s, s:s, s:s, s:I, s:I, s:I, s:I, s:I}", "version", 1, "id", i->id,
                  "source", i->source, "kind", i->kind, "created", (json_int_t)i->created, "bytes",
                  (json_int_t)i->bytes, "entries", (json_int_t)i->entries, "special",
                  (json_int_t)i->special, "set_id", (json_int_t)i->set_id);
    char *text = v ? json_dumps(v, JSON_COMPACT) : NULL;
    int fd = text ? openat(dir, "about", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600) : -1;
    bool ok = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
    int r = ok ? 0 : err_sys(err, "cannot write what the image is");
    if (fd >= 0)
        close(fd);
    free(text);
    json_decref(v);
    return r;
}

static int read_about(int dir, const char *name, struct image *i, struct err *err)
{
    char text[ABOUT_MAX];
    const char *id, *source, *kind;
    json_int_t created, bytes, entries, special, set_id;
    int fd = openat(dir, "about", O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text);
    if (fd >= 0)
        close(fd);
    json_t *v = n > 0 ? json_loadb(text, (size_t)n, JSON_REJECT_DUPLICATES, NULL) : NULL;
    int r = json_unpack(v, "{s:s, s:s, s:s, s:I, s:I, s:I, s:I, s:I}", "id", &id, "source", &source,
                        "kind", &kind, "created", &created, "bytes", &bytes, "entries", &entries,
                        "special", &special, "set_id", &set_id);
    if (r == 0) {
        *i = (struct image){.created = created,
                            .bytes = (uint64_t)bytes,
                            .entries = (uint64_t)entries,
                            .special = (uint64_t)special,
                            .set_id = (uint64_t)set_id};
        snprintf(i->name, sizeof i->name, "%s", name);
        snprintf(i->id, sizeof i->id, "%s", id);
        snprintf(i->source, sizeof i->source, "%s", source);
        snprintf(i->kind, sizeof i->kind, "%s", kind);
    } else {
        err_set(err, ERR_PARSE, "image '%s' is broken; remove it and import it again", name);
    }
    json_decref(v);
    return r;
}

/* ---- import ---- */

struct source {
    int stream;
    pid_t packer; /* 0: the stream is a file */
};

static int open_source(const struct image_import *how, struct source *s, struct err *err)
{
    struct stat st;
    int pair[2];
    const char *path = how->source;
    *s = (struct source){.stream = -1};
    int fd = strcmp(path, "-") == 0 ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3)
                                    : open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0 || fstat(fd, &st) < 0) {
        err_sys(err, "%s", path);
        if (fd >= 0)
            close(fd);
        return -1;
    }
    if (!S_ISDIR(st.st_mode)) {
        s->stream = fd;
        return 0;
    }
    int r = pipe2(pair, O_CLOEXEC) < 0 ? err_sys(err, "pipe") : 0;
    if (r == 0) {
        s->packer = image_pack(how->archive, fd, pair[1], err);
        close(pair[1]);
        s->stream = pair[0];
        r = s->packer < 0 ? -1 : 0;
    }
    close(fd);
    return r;
}

static int close_source(struct source *s, struct err *err)
{
    int status = 0;
    if (s->stream >= 0)
        close(s->stream);
    if (s->packer > 0 && waitpid(s->packer, &status, 0) == s->packer && status != 0)
        return err_set(err, ERR_DENIED, "the directory could not be read to its end");
    return 0;
}

static int follow(int from, const struct image_import *how, struct image *ret, struct err *err)
{
    struct archive_report said = {0}, last = {0};
    bool done = false;
    for (;;) {
        ssize_t n = read(from, &said, sizeof said);
        if (n < 0 && errno == EINTR)
            continue;
        if (n != sizeof said)
            break;
        said.err.text[sizeof said.err.text - 1] = '\0';
        if (said.err.code != ERR_NONE)
            break;
        done = said.done && said.ok;
        if (said.done)
            continue; /* which counts nothing */
        last = said;
        if (how->progress)
            how->progress(how->arg, &last.count);
    }
    if (said.err.code != ERR_NONE)
        return err_set(err, said.err.code, "%s", said.err.text);
    if (!done)
        return err_set(err, ERR_INTERNAL, "the unpacking ended early");
    ret->bytes = last.count.bytes;
    ret->entries = last.count.entries;
    ret->special = last.count.special;
    ret->set_id = last.count.set_id;
    snprintf(ret->kind, sizeof ret->kind, "%.15s", last.kind);
    return 0;
}

static int fill(int dir, const struct image_import *how, struct image *ret, struct err *err)
{
    struct source s;
    int pair[2], r = -1;
    if (open_source(how, &s, err) < 0) {
        close_source(&s, NULL);
        return -1;
    }
    if (pipe2(pair, O_CLOEXEC) < 0) {
        err_sys(err, "pipe");
    } else {
        pid_t pid = image_unpack(dir, s.stream, how, pair[1], err);
        close(pair[1]);
        if (pid > 0) {
            r = follow(pair[0], how, ret, err);
            close(pair[0]);
            waitpid(pid, NULL, 0);
        } else {
            close(pair[0]);
        }
    }
    if (r < 0 && s.packer > 0)
        kill(s.packer, SIGKILL);
    int packed = close_source(&s, r == 0 ? err : NULL);
    return r == 0 ? packed : -1;
}

static int make_id(struct image *i, struct err *err)
{
    unsigned char r[(IMAGE_ID_SIZE - 1) / 2];
    if (getrandom(r, sizeof r, 0) != sizeof r)
        return err_sys(err, "getrandom");
    for (size_t k = 0; k < sizeof r; k++)
        snprintf(i->id + 2 * k, 3, "%02x", r[k]);
    return 0;
}

/* Into a directory with a name that no image can have; it gets its own when it is whole. */
static int import_into(int store, const struct image_import *how, struct image *ret,
                       struct err *err)
{
    char fresh[NAME_MAX];
    snprintf(fresh, sizeof fresh, ".new-%s", ret->id);
    if (mkdirat(store, fresh, 0700) < 0)
        return err_sys(err, "cannot make the image's directory");
    int dir = openat(store, fresh, DIRECTORY);
    int r = dir < 0 ? err_sys(err, "%s", fresh) : fill(dir, how, ret, err);
    if (r == 0)
        r = write_about(dir, ret, err);
    if (r == 0 && renameat2(store, fresh, store, how->name, RENAME_NOREPLACE) < 0)
        r = err_sys(err, "image '%s'", how->name);
    if (r < 0 && dir >= 0)
        (void)image_clear(dir, NULL);
    if (r < 0)
        unlinkat(store, fresh, AT_REMOVEDIR);
    if (dir >= 0)
        close(dir);
    return r;
}

int image_import(const char *state_dir, const struct image_import *how, struct image *ret,
                 struct err *err)
{
    *ret = (struct image){.created = time(NULL)};
    if (!sandbox_spec_name_ok(how->name))
        return err_set(err, ERR_PARSE,
                       "'%.64s' is not the name of an image: 1 to 64 of the letters, digits, _ . - "
                       "with neither . nor - first",
                       how->name);
    if (strcmp(how->name, "host") == 0)
        return err_set(err, ERR_DENIED, "'host' is the host's own /usr; choose another name");
    if (make_id(ret, err) < 0)
        return -1;
    snprintf(ret->name, sizeof ret->name, "%s", how->name);
    snprintf(ret->source, sizeof ret->source, "%s", how->source);
    int store = open_store(state_dir, true, err);
    if (store < 0)
        return -1;
    int r = faccessat(store, how->name, F_OK, AT_SYMLINK_NOFOLLOW) == 0
                ? err_set(err, ERR_DENIED,
                          "there is an image '%s' already; 'durward image rm %s' removes it",
                          how->name, how->name)
                : import_into(store, how, ret, err);
    close(store);
    return r;
}

/* ---- the store ---- */

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static size_t names(int store, char **list, size_t max)
{
    size_t n = 0;
    int fd = openat(store, ".", DIRECTORY);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    for (struct dirent *e; d && n < max && (e = readdir(d)) != NULL;)
        if (sandbox_spec_name_ok(e->d_name) && (list[n] = strdup(e->d_name)) != NULL)
            n++;
    if (d)
        closedir(d);
    else if (fd >= 0)
        close(fd);
    qsort(list, n, sizeof *list, by_name);
    return n;
}

int image_list(const char *state_dir, int (*fn)(void *arg, const struct image *i), void *arg,
               struct err *err)
{
    static char *list[IMAGES_MAX];
    struct err none = {0};
    int store = open_store(state_dir, false, &none);
    if (store < 0 && none.code == ERR_NONE)
        return 0;
    if (store < 0)
        return err_set(err, none.code, "%s", none.text);
    size_t n = names(store, list, IMAGES_MAX);
    int r = 0;
    for (size_t i = 0; i < n; i++) {
        struct image image;
        int dir = r < 0 ? -1 : open_image(store, list[i], err);
        if (dir < 0 || read_about(dir, list[i], &image, err) < 0 || fn(arg, &image) < 0)
            r = -1;
        if (dir >= 0)
            close(dir);
        free(list[i]);
    }
    close(store);
    return r;
}

/* A layer that lies above it: its name, or "". */
static void find_user(int store, const char *below, const char *name, char id[NAME_MAX + 1])
{
    int all = openat(store, below, DIRECTORY);
    DIR *d = all < 0 ? NULL : fdopendir(all);
    id[0] = '\0';
    for (struct dirent *e; d && id[0] == '\0' && (e = readdir(d)) != NULL;) {
        char path[NAME_MAX + 8], text[128];
        snprintf(path, sizeof path, "%s/image", e->d_name);
        int fd = e->d_name[0] == '.' ? -1 : openat(all, path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
        ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
        if (fd >= 0)
            close(fd);
        if (n > 0 && (size_t)n == strlen(name) && memcmp(text, name, (size_t)n) == 0)
            memcpy(id, e->d_name, strlen(e->d_name) + 1);
    }
    if (d)
        closedir(d);
    else if (all >= 0)
        close(all);
}

static int remove_open(int store, int dir, const char *name, struct err *err)
{
    char user[NAME_MAX + 1], gone[NAME_MAX];
    if (flock(dir, LOCK_EX | LOCK_NB) < 0)
        return err_set(err, ERR_DENIED, "image '%s' is in use by a sandbox", name);
    find_user(store, "../snapshots", name, user);
    if (user[0])
        return err_set(err, ERR_DENIED, "image '%s' is in use by the snapshot %s", name, user);
    find_user(store, "../sandboxes", name, user);
    if (user[0])
        return err_set(err, ERR_DENIED, "image '%s' is in use by the stopped sandbox %s", name,
                       user);
    /* from here on nobody finds it */
    snprintf(gone, sizeof gone, ".gone-%s-%d", name, (int)getpid());
    if (renameat(store, name, store, gone) < 0)
        return err_sys(err, "image '%s'", name);
    if (image_clear(dir, err) < 0)
        return -1;
    return unlinkat(store, gone, AT_REMOVEDIR) < 0 ? err_sys(err, "image '%s'", name) : 0;
}

int image_remove(const char *state_dir, const char *name, struct err *err)
{
    if (strcmp(name, "host") == 0)
        return err_set(err, ERR_DENIED, "'host' is the host's own /usr and cannot be removed");
    int store = open_store(state_dir, false, err);
    if (store < 0)
        return not_there(name, err);
    int dir = open_image(store, name, err);
    int r = dir < 0 ? -1 : remove_open(store, dir, name, err);
    if (dir >= 0)
        close(dir);
    close(store);
    return r;
}

int image_hold(const char *state_dir, const char *name, struct err *err)
{
    int store = open_store(state_dir, false, err);
    if (store < 0)
        return not_there(name, err);
    int dir = open_image(store, name, err);
    close(store);
    if (dir >= 0 && flock(dir, LOCK_SH | LOCK_NB) < 0) {
        close(dir);
        return err_set(err, ERR_UNREADY, "image '%s' is being removed", name);
    }
    return dir;
}
