/* Snapshots: taken of a managed sandbox or imported, and their rows. */
#include "snapshot.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "proc.h"
#include "registry.h"

static struct snapshot *of(struct named_layer *l)
{
    return (struct snapshot *)l;
}

static json_t *snapshot_json(const struct named_layer *l)
{
    const struct snapshot *s = (const struct snapshot *)l;
    return json_pack("{s:s, s:s, s:s, s:s, s:s, s:I}", "name", l->name, "state",
                     named_layer_state(l), "sandbox", s->sandbox, "policy", l->policy, "image",
                     s->image[0] ? s->image : "host", "created_at", (json_int_t)l->created);
}

static json_t *about(const struct named_layer *l)
{
    const struct snapshot *s = (const struct snapshot *)l;
    return json_pack("{s:i, s:s, s:s, s:s, s:s, s:I}", "format", LAYER_FORMAT, "name", l->name,
                     "sandbox", s->sandbox, "policy", l->policy, "image",
                     s->image[0] ? s->image : "host", "created", (json_int_t)l->created);
}

static void note(const struct named_layer *l, const char *what)
{
    controller_note(l->controller, ((const struct snapshot *)l)->sandbox, what, l->name);
}

static void going(struct named_layer *l)
{
    struct err err = {0};
    note(l, "snapshot_deleted");
    if (registry_snapshot_going(l->controller->registry, l->name, &err) < 0)
        proc_log("%s", err.text);
}

static int forget(const struct named_layer *l, struct err *err)
{
    return registry_snapshot_delete(l->controller->registry, l->name, err);
}

static void release(struct named_layer *l)
{
    json_decref(of(l)->labels);
}

static const struct named_layer_kind kind = {
    .noun = "snapshot",
    .size = sizeof(struct snapshot),
    .most = SNAPSHOTS_MAX,
    .remove = LAYER_REMOVE_SNAPSHOT,
    .export = LAYER_EXPORT,
    .json = snapshot_json,
    .about = about,
    .note = note,
    .going = going,
    .forget = forget,
    .release = release,
};

struct snapshot *snapshot_find(struct controller *c, const char *name)
{
    return of(named_layer_find(&c->snapshots, name));
}

static struct registry_snapshot row_of(const struct snapshot *s, bool ready)
{
    return (struct registry_snapshot){.name = s->layer.name,
                                      .sandbox = s->sandbox,
                                      .policy = s->layer.policy,
                                      .image = s->image,
                                      .created = s->layer.created,
                                      .ready = ready};
}

/* With its row. */
static int add_row(struct snapshot *s, struct err *err)
{
    struct registry_snapshot row = row_of(s, false);
    char *labels = json_dumps(s->labels, JSON_COMPACT);
    row.labels = labels;
    int r = labels ? registry_snapshot_add(s->layer.controller->registry, &row, err)
                   : err_set(err, ERR_INTERNAL, "out of memory");
    free(labels);
    if (r < 0)
        named_layer_free(&s->layer);
    return r;
}

/* labels are taken. */
static struct snapshot *blank(struct controller *c, const char *name, const char *policy,
                              json_t *labels, struct err *err)
{
    struct named_layer *l = labels ? named_layer_new(c, &c->snapshots, &kind, name, policy) : NULL;
    if (l == NULL) {
        json_decref(labels);
        err_set(err, ERR_INTERNAL, "out of memory");
        return NULL;
    }
    of(l)->labels = labels;
    l->created = (int64_t)time(NULL);
    return of(l);
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
              strlen(policy) < sizeof s->layer.policy && sandbox_spec_name_ok(image);
    if (ok) {
        snprintf(s->sandbox, sizeof s->sandbox, "%s", sandbox);
        snprintf(s->layer.policy, sizeof s->layer.policy, "%s", policy);
        snprintf(s->image, sizeof s->image, "%.64s", strcmp(image, "host") == 0 ? "" : image);
        s->layer.created = created;
    }
    json_decref(about);
    return ok ? 0 : err_set(err, ERR_PARSE, "the snapshot's description is malformed");
}

static int now_imported(struct named_layer *l, const char *text, struct err *err)
{
    struct snapshot *s = of(l);
    if (read_about(s, text, err) < 0)
        return -1;
    struct registry_snapshot row = row_of(s, true);
    if (registry_snapshot_imported(l->controller->registry, &row, err) < 0)
        return -1;
    note(l, "snapshot_imported");
    return 0;
}

static void on_imported(void *arg, enum layer_result result, const char *text)
{
    named_layer_made(arg, result, text, text, now_imported);
}

struct snapshot *snapshot_import(struct controller *c, const char *name, int fd, struct err *err)
{
    struct layer_stream stream = {fd, c->owner_uid, c->owner_gid, ""};
    struct snapshot *s = named_layer_may_be(&c->snapshots, &kind, name, err) == 0
                             ? blank(c, name, "", json_object(), err)
                             : NULL;
    if (s == NULL || add_row(s, err) < 0) {
        close(fd);
        return NULL;
    }
    int queued = layer_queue_archive(c->layers, LAYER_IMPORT, name, &stream, on_imported, s);
    return named_layer_begin(&s->layer, queued, err) < 0 ? NULL : s;
}

/* ---- copies ---- */

static int now_ready(struct named_layer *l, const char *text UNUSED, struct err *err)
{
    if (registry_snapshot_ready(l->controller->registry, l->name, of(l)->sandbox, err) < 0)
        return -1;
    note(l, "snapshot_created");
    return 0;
}

static void on_made(void *arg, enum layer_result result, const char *text)
{
    named_layer_made(arg, result, text, "the sandbox has no files", now_ready);
}

struct snapshot *snapshot_new(struct managed_sandbox *r, const char *name, struct err *err)
{
    struct controller *c = r->controller;
    if (named_layer_may_be(&c->snapshots, &kind, name, err) < 0 ||
        managed_sandbox_has_files(r, err) < 0)
        return NULL;
    struct snapshot *s = blank(c, name, r->policy, json_deep_copy(r->labels), err);
    if (s == NULL)
        return NULL;
    snprintf(s->image, sizeof s->image, "%.64s", r->image);
    memcpy(s->sandbox, r->id, sizeof s->sandbox);
    if (add_row(s, err) < 0)
        return NULL;
    int queued = layer_queue_add(c->layers, LAYER_SNAPSHOT, r->id, name, on_made, s);
    return named_layer_begin(&s->layer, queued, err) < 0 ? NULL : s;
}

/* ---- start of the controller ---- */

static int load_row(void *arg, const struct registry_snapshot *row)
{
    struct controller *c = arg;
    struct err err = {0};
    json_t *labels = json_loads(row->labels, JSON_REJECT_DUPLICATES, NULL);
    if (!json_is_object(labels)) { /* else tokens with labels would not see it */
        json_decref(labels);
        return -1;
    }
    struct snapshot *s = blank(c, row->name, row->policy, labels, &err);
    if (s == NULL)
        return -1;
    snprintf(s->image, sizeof s->image, "%.64s", row->image);
    snprintf(s->sandbox, sizeof s->sandbox, "%.64s", row->sandbox);
    s->layer.created = row->created;
    s->layer.state = row->ready ? LAYER_READY : LAYER_REMOVING;
    return 0;
}

int snapshots_load(struct controller *c, struct err *err)
{
    if (registry_snapshot_each(c->registry, load_row, c, err) < 0)
        return -1;
    named_layers_settle(&c->snapshots);
    return 0;
}
