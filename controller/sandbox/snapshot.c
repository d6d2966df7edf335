/* The states of snapshots: taken of a managed sandbox or imported, exported, removed. What the
 * daemon's end finds half made or half removed is removed at its next start. */
#include "snapshot.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "proc.h"
#include "registry.h"

static void tell(struct snapshot_waits *q, struct snapshot *s, const char *why)
{
    struct snapshot_wait *w;
    while ((w = STAILQ_FIRST(q)) != NULL) {
        STAILQ_REMOVE_HEAD(q, link);
        w->fn(w->arg, s, why);
        free(w);
    }
}

static int wait_in(struct snapshot_waits *q, snapshot_fn fn, void *arg)
{
    struct snapshot_wait *w = malloc(sizeof *w);
    if (w == NULL)
        return -1;
    *w = (struct snapshot_wait){fn, arg, {NULL}};
    STAILQ_INSERT_TAIL(q, w, link);
    return 0;
}

static void release(struct snapshot *s)
{
    TAILQ_REMOVE(&s->controller->snapshots, s, link);
    s->controller->n_snapshots--;
    free(s);
}

static struct snapshot *blank(struct controller *c)
{
    struct snapshot *s = calloc(1, sizeof *s);
    if (s == NULL)
        return NULL;
    s->controller = c;
    STAILQ_INIT(&s->ready);
    STAILQ_INIT(&s->gone);
    TAILQ_INSERT_TAIL(&c->snapshots, s, link);
    c->n_snapshots++;
    return s;
}

/* ---- its end ---- */

static void on_removed(void *arg, enum layer_result result, const char *text)
{
    struct snapshot *s = arg;
    struct err err = {0};
    s->busy = false;
    if (result != LAYER_FAILED &&
        registry_snapshot_delete(s->controller->registry, s->name, &err) < 0)
        text = err.text;
    if (result == LAYER_FAILED || err.code != ERR_NONE) { /* until it is asked for again */
        proc_log("the snapshot %s is not removed: %s", s->name, text);
        tell(&s->gone, NULL, text);
        return;
    }
    tell(&s->gone, s, "");
    release(s);
}

static void dispose(struct snapshot *s, const char *why)
{
    s->state = SNAPSHOT_REMOVING;
    tell(&s->ready, NULL, why);
    if (s->busy)
        return;
    s->busy = true;
    if (layer_queue_add(s->controller->layers, LAYER_REMOVE_SNAPSHOT, s->name, "", on_removed, s) <
        0)
        on_removed(s, LAYER_FAILED, "out of memory");
}

int snapshot_delete(struct snapshot *s, snapshot_fn fn, void *arg)
{
    if (fn && wait_in(&s->gone, fn, arg) < 0)
        return -1;
    struct err err = {0};
    if (s->state == SNAPSHOT_READY) {
        controller_note(s->controller, s->sandbox, "snapshot_deleted", s->name);
        if (registry_snapshot_going(s->controller->registry, s->name, &err) < 0)
            proc_log("%s", err.text);
    }
    dispose(s, "it was deleted");
    return 0;
}

/* ---- making ---- */

static void on_made(void *arg, enum layer_result result, const char *text)
{
    struct snapshot *s = arg;
    struct err err = {0};
    s->busy = false;
    if (s->state == SNAPSHOT_REMOVING) {
        dispose(s, "it was deleted");
        return;
    }
    if (result == LAYER_DONE &&
        registry_snapshot_ready(s->controller->registry, s->name, s->sandbox, &err) == 0) {
        s->state = SNAPSHOT_READY;
        controller_note(s->controller, s->sandbox, "snapshot_created", s->name);
        tell(&s->ready, s, "");
        return;
    }
    if (result == LAYER_EXISTS) /* of no row: a registry that was lost */
        text = "there were files of this name, which are being removed; try again";
    else if (result == LAYER_ABSENT)
        text = "the sandbox has no files";
    dispose(s, err.code == ERR_NONE ? text : err.text);
}

struct snapshot *snapshot_find(struct controller *c, const char *name)
{
    struct snapshot *s;
    TAILQ_FOREACH(s, &c->snapshots, link)
    if (strcmp(s->name, name) == 0)
        return s;
    return NULL;
}

static int may_be_named(struct controller *c, const char *name, struct err *err)
{
    if (snapshot_find(c, name))
        return err_set(err, ERR_DENIED, "a snapshot named %s exists already", name);
    if (c->n_snapshots >= SNAPSHOTS_MAX)
        return err_set(err, ERR_UNREADY, "%d snapshots exist already", SNAPSHOTS_MAX);
    return 0;
}

/* ---- archives ---- */

/* What an archive says that it is. */
static int read_about(struct snapshot *s, const char *text, struct err *err)
{
    json_int_t created = 0;
    const char *sandbox = "", *policy = "", *image = "";
    json_t *about = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    bool ok = json_unpack(about, "{s:s, s:s, s:s, s:I}", "sandbox", &sandbox, "policy", &policy,
                          "image", &image, "created", &created) == 0 &&
              created >= 0 && strlen(sandbox) < sizeof s->sandbox &&
              sandbox[strspn(sandbox, "abcdefghijklmnopqrstuvwxyz0123456789-")] == '\0' &&
              strlen(policy) < sizeof s->policy && sandbox_spec_name_ok(image);
    if (ok) {
        snprintf(s->sandbox, sizeof s->sandbox, "%s", sandbox);
        snprintf(s->policy, sizeof s->policy, "%s", policy);
        snprintf(s->image, sizeof s->image, "%.64s", strcmp(image, "host") == 0 ? "" : image);
        s->created = created;
    }
    json_decref(about);
    return ok ? 0 : err_set(err, ERR_PARSE, "the snapshot's description is malformed");
}

static void on_imported(void *arg, enum layer_result result, const char *text)
{
    struct snapshot *s = arg;
    struct err err = {0};
    s->busy = false;
    if (result == LAYER_EXISTS)
        text = "there were files of this name, which are being removed; try again";
    if (s->state == SNAPSHOT_REMOVING || result != LAYER_DONE) {
        dispose(s, s->state == SNAPSHOT_REMOVING ? "it was deleted" : text);
        return;
    }
    struct registry_snapshot row = {s->name, s->sandbox, s->policy, s->image, s->created, 1};
    if (read_about(s, text, &err) < 0 ||
        (row.created = s->created,
         registry_snapshot_imported(s->controller->registry, &row, &err)) < 0) {
        dispose(s, err.text);
        return;
    }
    s->state = SNAPSHOT_READY;
    controller_note(s->controller, s->sandbox, "snapshot_imported", s->name);
    tell(&s->ready, s, "");
}

struct snapshot *snapshot_import(struct controller *c, const char *name, int fd, struct err *err)
{
    struct layer_stream stream = {fd, c->owner_uid, c->owner_gid, ""};
    struct snapshot *s = may_be_named(c, name, err) == 0 ? blank(c) : NULL;
    if (s == NULL) {
        close(fd);
        return NULL;
    }
    snprintf(s->name, sizeof s->name, "%s", name);
    s->created = (int64_t)time(NULL);
    struct registry_snapshot row = {s->name, s->sandbox, s->policy, s->image, s->created, 0};
    if (registry_snapshot_add(c->registry, &row, err) < 0) {
        close(fd);
        release(s);
        return NULL;
    }
    s->busy = true;
    if (layer_queue_archive(c->layers, LAYER_IMPORT, name, &stream, on_imported, s) == 0)
        return s;
    s->busy = false;
    dispose(s, "out of memory");
    err_set(err, ERR_INTERNAL, "out of memory");
    return NULL;
}

int snapshot_export(struct snapshot *s, int fd, layer_fn fn, void *arg)
{
    struct layer_stream stream = {.fd = fd};
    json_t *about = json_pack("{s:i, s:s, s:s, s:s, s:s, s:I}", "format", LAYER_FORMAT, "name",
                              s->name, "sandbox", s->sandbox, "policy", s->policy, "image",
                              s->image[0] ? s->image : "host", "created", (json_int_t)s->created);
    size_t n = about ? json_dumpb(about, stream.about, sizeof stream.about - 1,
                                  JSON_COMPACT | JSON_PRESERVE_ORDER)
                     : 0;
    json_decref(about);
    if (n == 0 || n >= sizeof stream.about) {
        close(fd);
        return -1;
    }
    stream.about[n] = '\0';
    return layer_queue_archive(s->controller->layers, LAYER_EXPORT, s->name, &stream, fn, arg);
}

struct snapshot *snapshot_new(struct managed_sandbox *r, const char *name, struct err *err)
{
    struct controller *c = r->controller;
    struct snapshot *s =
        may_be_named(c, name, err) == 0 && managed_sandbox_has_files(r, err) == 0 ? blank(c) : NULL;
    if (s == NULL)
        return NULL;
    snprintf(s->name, sizeof s->name, "%s", name);
    snprintf(s->image, sizeof s->image, "%.64s", r->image);
    memcpy(s->sandbox, r->id, sizeof s->sandbox);
    memcpy(s->policy, r->policy, sizeof s->policy);
    s->created = (int64_t)time(NULL);
    struct registry_snapshot row = {s->name, s->sandbox, s->policy, s->image, s->created, 0};
    if (registry_snapshot_add(c->registry, &row, err) < 0) {
        release(s);
        return NULL;
    }
    s->busy = true;
    if (layer_queue_add(c->layers, LAYER_SNAPSHOT, r->id, s->name, on_made, s) == 0)
        return s;
    s->busy = false;
    dispose(s, "out of memory");
    err_set(err, ERR_INTERNAL, "out of memory");
    return NULL;
}

int snapshot_await(struct snapshot *s, snapshot_fn fn, void *arg)
{
    if (s->state == SNAPSHOT_MAKING)
        return wait_in(&s->ready, fn, arg);
    fn(arg, s->state == SNAPSHOT_READY ? s : NULL, "it is being removed");
    return 0;
}

json_t *snapshot_json(const struct snapshot *s)
{
    static const char *const states[] = {"making", "ready", "removing"};
    return json_pack("{s:s, s:s, s:s, s:s, s:s, s:I}", "name", s->name, "state", states[s->state],
                     "sandbox", s->sandbox, "policy", s->policy, "image",
                     s->image[0] ? s->image : "host", "created_at", (json_int_t)s->created);
}

/* ---- start and end of the controller ---- */

static int load_row(void *arg, const struct registry_snapshot *row)
{
    struct snapshot *s = blank(arg);
    if (s == NULL)
        return -1;
    snprintf(s->name, sizeof s->name, "%.64s", row->name);
    snprintf(s->image, sizeof s->image, "%.64s", row->image);
    snprintf(s->sandbox, sizeof s->sandbox, "%.64s", row->sandbox);
    snprintf(s->policy, sizeof s->policy, "%.255s", row->policy);
    s->created = row->created;
    s->state = row->ready ? SNAPSHOT_READY : SNAPSHOT_REMOVING;
    return 0;
}

int snapshots_load(struct controller *c, struct err *err)
{
    struct snapshot *s, *next;
    if (registry_snapshot_each(c->registry, load_row, c, err) < 0)
        return -1;
    for (s = TAILQ_FIRST(&c->snapshots); s; s = next) {
        next = TAILQ_NEXT(s, link);
        if (s->state == SNAPSHOT_REMOVING)
            dispose(s, "the daemon ended while it was made");
    }
    return 0;
}

void snapshots_close(struct controller *c)
{
    struct snapshot *s;
    while ((s = TAILQ_FIRST(&c->snapshots)) != NULL) {
        tell(&s->ready, NULL, "the daemon ended");
        tell(&s->gone, NULL, "the daemon ended");
        release(s);
    }
}
