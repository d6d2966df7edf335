/* Makes the directory of the copies, has them made and brought back, and says what was not. */
#define _GNU_SOURCE 1
#include "work.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <unistd.h>

#include "mounts.h"
#include "out.h"
#include "paths.h"
#include "run_binds.h"
#include "run_notes.h"
#include "sandbox_spec.h"
#include "tree.h"
#include "work_in.h"
#include "work_out.h"

enum { DIR_FLAGS = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, NAME_BYTES = 24 };

struct piece {
    char *source;
    int host, copy;
    bool writable;
    struct work_list list;
};

struct work {
    char *folder; /* STATE/copies/NAME */
    char name[NAME_BYTES];
    int above, dir;
    struct piece v[RUN_BINDS_MAX];
    size_t n;
    struct work_count count;
};

static void work_free(struct work *w)
{
    for (size_t i = 0; i < w->n; i++) {
        close(w->v[i].host);
        close(w->v[i].copy);
        free(w->v[i].source);
        work_list_free(&w->v[i].list);
    }
    if (w->dir >= 0)
        close(w->dir);
    if (w->above >= 0)
        close(w->above);
    free(w->folder);
    free(w);
}

static void discard(struct work *w)
{
    struct err err = {0};
    if (w->dir >= 0 && tree_remove(w->above, w->name, &err) < 0)
        out_error("%s cannot be removed: %s", w->folder, err.text);
}

/* ---- what earlier runs left ---- */

static bool is_of(const json_t *about, const struct run_request *r)
{
    json_t *of = json_object_get(about, "of"), *v;
    size_t i;
    json_array_foreach(of, i, v)
    {
        for (size_t k = 0; k < r->n_binds; k++)
            if (json_is_string(v) && strcmp(json_string_value(v), r->binds[k].source) == 0)
                return true;
    }
    return false;
}

/* With the lock of `copies`, so that none is half made. */
static void look_at_left(int above, const char *folder, const char *name,
                         const struct run_request *r)
{
    int dir = openat(above, name, DIR_FLAGS);
    if (dir < 0 || flock(dir, LOCK_EX | LOCK_NB) < 0) {
        if (dir >= 0)
            close(dir); /* it is in use */
        return;
    }
    int fd = openat(dir, "about", O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    json_t *about = fd < 0 ? NULL : json_loadfd(fd, 0, NULL);
    if (fd < 0 && errno == ENOENT)
        (void)tree_remove(above, name, NULL); /* the next run tries again */
    else if (is_of(about, r))
        out_error("what an earlier run did here was not all brought back: it is in %s/%s; remove "
                  "that when you need it no more",
                  folder, name);
    json_decref(about);
    if (fd >= 0)
        close(fd);
    close(dir);
}

static void look_at_all_left(int above, const char *folder, const struct run_request *r)
{
    int fd = openat(above, ".", DIR_FLAGS);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    if (d == NULL && fd >= 0)
        close(fd);
    for (struct dirent *e; d && (e = readdir(d)) != NULL;)
        if (e->d_name[0] != '.')
            look_at_left(above, folder, e->d_name, r);
    if (d)
        closedir(d);
}

/* ---- the directory ---- */

static char *copies_folder(const struct config *c, struct err *err)
{
    const char *set = config_controller_state(c);
    char *state = set ? strdup(set) : paths_state_dir(err);
    char *folder = state ? paths_join(state, "copies") : NULL;
    free(state);
    return folder;
}

static int make_name(char name[NAME_BYTES], struct err *err)
{
    uint64_t r;
    if (getrandom(&r, sizeof r, 0) != sizeof r)
        return err_sys(err, "getrandom");
    snprintf(name, NAME_BYTES, "run-%016llx", (unsigned long long)r);
    return 0;
}

static int open_own(const struct config *c, const struct run_request *r, struct work *w,
                    struct err *err)
{
    char *copies = copies_folder(c, err);
    if (copies == NULL)
        return -1;
    int bad = paths_make_private(copies, err);
    if (bad == 0 && ((w->above = open(copies, DIR_FLAGS)) < 0 || flock(w->above, LOCK_EX) < 0))
        bad = err_sys(err, "%s", copies);
    if (bad == 0) {
        look_at_all_left(w->above, copies, r);
        bad = make_name(w->name, err);
    }
    w->folder = paths_join(copies, w->name);
    if (bad == 0 && (mkdirat(w->above, w->name, 0700) < 0 ||
                     (w->dir = openat(w->above, w->name, DIR_FLAGS)) < 0 ||
                     flock(w->dir, LOCK_EX | LOCK_NB) < 0 || flock(w->above, LOCK_UN) < 0))
        bad = err_sys(err, "%s", w->folder);
    free(copies);
    return bad;
}

/* Written last, under another name first: half of it says nothing. */
static int write_about(const struct work *w, struct err *err)
{
    json_t *of = json_array(), *about = json_pack("{s:o}", "of", of);
    for (size_t i = 0; i < w->n; i++)
        json_array_append_new(of, json_string(w->v[i].source));
    int fd =
        openat(w->dir, "about.new", O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    int r = fd < 0 || about == NULL || json_dumpfd(about, fd, JSON_COMPACT) < 0 ||
                    renameat(w->dir, "about.new", w->dir, "about") < 0
                ? err_sys(err, "%s/about", w->folder)
                : 0;
    json_decref(about);
    if (fd >= 0)
        close(fd);
    return r;
}

/* ---- copying in ---- */

static int may_copy(const struct run_request *r, const struct run_bind *b, struct err *err)
{
    const char *why = run_binds_refused(b->source, r->home);
    if (b->home)
        return err_set(err, ERR_DENIED, "the backend docker cannot keep a home");
    if (why)
        return err_set(err, ERR_DENIED, "%s is %s and is not copied into a container", b->source,
                       why);
    return 0;
}

static int open_source(const char *source, struct err *err)
{
    int at = mounts_open(source, err);
    if (at < 0)
        return -1;
    int fd = openat(at, ".", DIR_FLAGS);
    if (fd < 0 && errno == ENOTDIR)
        err_set(err, ERR_DENIED, "%s: a container is given copies of directories alone", source);
    else if (fd < 0)
        err_sys(err, "%s", source);
    close(at);
    return fd;
}

static int copy_one(struct work *w, struct run_request *r, size_t i, struct buf *notes,
                    struct err *err)
{
    struct run_bind *b = &r->binds[i];
    char number[24], *path = NULL;
    snprintf(number, sizeof number, "%zu", i);
    if (may_copy(r, b, err) < 0)
        return -1;
    int host = open_source(b->source, err);
    if (host < 0)
        return -1;
    int copy = mkdirat(w->dir, number, 0755) < 0 ? -1 : openat(w->dir, number, DIR_FLAGS);
    if (copy < 0 || fchmod(copy, 0755) < 0 || asprintf(&path, "%s/%s", w->folder, number) < 0) {
        err_sys(err, "%s", w->folder);
        close(host);
        if (copy >= 0)
            close(copy);
        return -1;
    }
    struct piece *p = &w->v[w->n++];
    *p = (struct piece){.source = b->source, .host = host, .copy = copy, .writable = b->writable};
    b->source = path;
    return work_copy_in(host, copy, p->source, &w->count, notes, &p->list, err);
}

static int copy_all(struct work *w, struct run_request *r, struct err *err)
{
    enum { NOTES = 8000 };
    struct buf notes;
    int bad = 0;
    buf_init(&notes, NOTES);
    for (size_t i = 0; i < r->n_binds && bad == 0; i++)
        bad = copy_one(w, r, i, &notes, err);
    if (bad == 0 && buf_append(&notes, "", 1) == 0)
        run_notes_print((const char *)buf_data(&notes));
    buf_free(&notes);
    if (bad == 0 && w->count.left_out)
        out_error("%u sockets, devices and files that cannot be read or lie too deep were not "
                  "copied into the container",
                  w->count.left_out);
    return bad;
}

int work_begin(const struct config *c, struct run_request *r, struct work **ret, struct err *err)
{
    struct sandbox_spec spec;
    *ret = NULL;
    if (r->n_binds == 0)
        return 0;
    if (sandbox_spec_of_policy(c, r->policy, r->backend, r->image, &spec, err) < 0)
        return -1;
    if (spec.limits.backend != BACKEND_DOCKER)
        return 0;
    struct work *w = calloc(1, sizeof *w);
    if (w == NULL)
        return err_set(err, ERR_INTERNAL, "out of memory");
    w->above = w->dir = -1;
    w->count.bytes_max = WORK_BYTES_MAX;
    w->count.entries_max = WORK_ENTRIES_MAX;
    if (open_own(c, r, w, err) < 0 || copy_all(w, r, err) < 0 || write_about(w, err) < 0) {
        discard(w);
        work_free(w);
        return -1;
    }
    *ret = w;
    return 0;
}

/* ---- copying back ---- */

static void say(const struct work_named *l, const char *what, const char *then)
{
    char clean[300], list[WORK_NAMED_MAX * 302 + 1] = "";
    if (l->n == 0)
        return;
    for (unsigned i = 0; i < l->n && i < WORK_NAMED_MAX; i++) {
        size_t at = strlen(list);
        snprintf(list + at, sizeof list - at, "%s%s", at ? ", " : "",
                 out_clean(l->v[i], clean, sizeof clean));
    }
    out_error("%u %s: %s%s%s", l->n, what, list, l->n > WORK_NAMED_MAX ? ", and more" : "", then);
}

static void add_names(json_t *to, const struct work_named *l)
{
    for (unsigned i = 0; i < l->n && i < WORK_NAMED_MAX; i++)
        json_array_append_new(to, json_string(l->v[i]));
}

static void add_to(json_t *o, const char *key, unsigned more)
{
    json_t *v = json_object_get(o, key);
    json_integer_set(v, json_integer_value(v) + more);
}

static bool bring_back(struct work *w, struct piece *p, json_t *sum)
{
    struct work_back back;
    char then[4200];
    if (!p->writable)
        return true;
    work_copy_out(p->host, p->copy, &p->list, WORK_BYTES_MAX, &back);
    snprintf(then, sizeof then, "; what the sandbox made of them is in %.4000s/%zu", w->folder,
             (size_t)(p - w->v));
    say(&back.kept, "changed or hidden here, and kept", then);
    say(&back.refused, "links that lead out of the directory, devices or sockets, left out", "");
    say(&back.failed, "not brought back", then);
    if (back.failed.n)
        out_error("%s", back.why.text);
    add_to(sum, "written", back.written);
    add_to(sum, "removed", back.removed);
    add_names(json_object_get(sum, "kept"), &back.kept);
    add_names(json_object_get(sum, "left_out"), &back.refused);
    add_names(json_object_get(sum, "failed"), &back.failed);
    bool all = back.kept.n == 0 && back.failed.n == 0;
    work_back_free(&back);
    return all;
}

bool work_end(struct work *w, bool started, bool whole, json_t **ret)
{
    bool all = true;
    *ret = NULL;
    if (w == NULL)
        return true;
    if (started) {
        *ret = json_pack("{s:i, s:i, s:[], s:[], s:[]}", "written", 0, "removed", 0, "kept",
                         "left_out", "failed");
        all = whole;
        for (size_t i = 0; whole && i < w->n; i++)
            all = bring_back(w, &w->v[i], *ret) && all;
        if (!whole)
            out_error("nothing was brought back, for the sandbox ended before its command: what it "
                      "wrote is in %s; remove that when you need it no more",
                      w->folder);
        if (!all)
            json_object_set_new(*ret, "where", json_string(w->folder));
    }
    if (all)
        discard(w);
    work_free(w);
    return all;
}
