/* The states of volumes: made empty or as a copy, restored, exported, removed; and which sandboxes
 * have them. What the daemon's end finds half made or half removed is removed at its next start. */
#include "volumes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "meter.h"
#include "proc.h"
#include "sandbox_events.h"
#include "registry.h"

static void tell(struct managed_volume_waits *q, struct managed_volume *v, const char *why)
{
    struct managed_volume_wait *w;
    struct managed_volume_waits now = STAILQ_HEAD_INITIALIZER(now);
    STAILQ_CONCAT(&now, q);
    while ((w = STAILQ_FIRST(&now)) != NULL) {
        STAILQ_REMOVE_HEAD(&now, link);
        w->fn(w->arg, v, why);
        free(w);
    }
}

static int wait_in(struct managed_volume_waits *q, managed_volume_fn fn, void *arg)
{
    struct managed_volume_wait *w = malloc(sizeof *w);
    if (w == NULL)
        return -1;
    *w = (struct managed_volume_wait){fn, arg, {NULL}};
    STAILQ_INSERT_TAIL(q, w, link);
    return 0;
}

static void measure(const struct controller *c)
{
    const struct managed_volume *v;
    uint64_t bytes = 0;
    TAILQ_FOREACH(v, &c->volumes, link)
    bytes += (uint64_t)v->size;
    meter_set(METER_VOLUMES, c->n_volumes);
    meter_set(METER_VOLUME_BYTES, bytes);
}

static void release(struct managed_volume *v)
{
    struct controller *c = v->controller;
    TAILQ_REMOVE(&c->volumes, v, link);
    c->n_volumes--;
    json_decref(v->labels);
    free(v);
    measure(c);
}

static struct managed_volume *blank(struct controller *c)
{
    struct managed_volume *v = calloc(1, sizeof *v);
    if (v == NULL)
        return NULL;
    v->controller = c;
    STAILQ_INIT(&v->ready);
    STAILQ_INIT(&v->gone);
    TAILQ_INSERT_TAIL(&c->volumes, v, link);
    c->n_volumes++;
    return v;
}

static const char *word(const struct managed_volume *v, const char *volume, const char *snapshot)
{
    return v->snapshot_of[0] ? snapshot : volume;
}

/* The log says whose it is; an event, which has a sandbox or none, its name. */
static void note(const struct managed_volume *v, const char *what)
{
    controller_record(v->controller, v->name, what, v->policy);
    sandbox_events_add(v->controller->sandbox_events, "", what, v->name);
}

/* ---- who has it ---- */

static bool reads(const char *text, const char *name, struct sandbox_spec_volume *ret)
{
    return sandbox_spec_volume_read(text, ret, NULL) == 0 && strcmp(ret->name, name) == 0;
}

/* How this sandbox mounts it, by its own wish or its policy's. */
static bool has(const struct managed_sandbox *r, const char *name, struct sandbox_spec_volume *ret)
{
    const struct config_sandbox *s = config_policy_sandbox(r->controller->config, r->policy);
    size_t i;
    json_t *text;
    if (strcmp(r->backend, "docker") == 0 || r->state == MANAGED_SANDBOX_STOPPING)
        return false;
    for (unsigned k = 0; k < s->n_volumes; k++)
        if (reads(s->volumes[k], name, ret))
            return true;
    json_array_foreach(r->volumes, i, text)
    {
        if (json_is_string(text) && reads(json_string_value(text), name, ret))
            return true;
    }
    return false;
}

static bool runs(const struct managed_sandbox *r)
{
    return r->state != MANAGED_SANDBOX_STOPPED && r->state != MANAGED_SANDBOX_STOPPING;
}

/* Somebody who has it, who runs or, with `any`, could again; NULL: nobody. */
static const struct managed_sandbox *holder(struct controller *c, const char *name, bool any,
                                            bool writes)
{
    const struct managed_sandbox *r;
    struct sandbox_spec_volume w;
    TAILQ_FOREACH(r, &c->managed_sandboxes, link)
    if ((runs(r) || (any && r->kept)) && has(r, name, &w) && (w.writable || !writes))
        return r;
    return NULL;
}

int managed_volume_wanted(struct controller *c, const char *text, const char *policy,
                          const struct managed_volume **ret, struct err *err)
{
    struct sandbox_spec_volume w;
    if (sandbox_spec_volume_read(text, &w, err) < 0)
        return -1;
    const struct managed_volume *v = managed_volume_find(c, w.name);
    *ret = v;
    if (v == NULL || strcmp(v->policy, policy) != 0 || v->snapshot_of[0])
        return err_set(err, ERR_PARSE, "there is no volume '%s' of the policy '%s'", w.name,
                       policy);
    if (v->state != VOLUME_READY)
        return err_set(err, ERR_UNREADY, "the volume '%s' is being made, restored or removed",
                       w.name);
    const struct managed_sandbox *r =
        w.writable && !v->many ? holder(c, w.name, false, true) : NULL;
    return r ? err_set(err, ERR_DENIED,
                       "the volume '%s' is mounted for writing in %s; mount it read-only, or make "
                       "one that several may write",
                       w.name, r->id)
             : 0;
}

/* ---- its end ---- */

/* Somebody has it whom this daemon does not know: a `durward run`. */
static void remain(struct managed_volume *v)
{
    struct err err = {0};
    if (registry_volume_ready(v->controller->registry, v->name, true, &err) < 0)
        proc_log("%s", err.text);
    v->state = VOLUME_READY;
    tell(&v->gone, NULL, "it is mounted in a sandbox");
}

static void on_removed(void *arg, enum layer_result result, const char *text)
{
    struct managed_volume *v = arg;
    struct err err = {0};
    v->busy = false;
    if (result == LAYER_EXISTS && v->was_ready) {
        remain(v);
        return;
    }
    if (result == LAYER_EXISTS) { /* what is mounted may be anybody's: never ours to mount */
        text = "it is mounted in a sandbox";
        result = v->others ? LAYER_ABSENT : LAYER_FAILED;
    }
    if (result != LAYER_FAILED &&
        registry_volume_delete(v->controller->registry, v->name, &err) == 0) {
        note(v, word(v, "volume_deleted", "volume_snapshot_deleted"));
        tell(&v->gone, v, "");
        release(v);
        return;
    }
    text = err.code == ERR_NONE ? text : err.text; /* until it is asked for again */
    proc_log("the volume %s is not removed: %s", v->name, text);
    tell(&v->gone, NULL, text);
}

static void dispose(struct managed_volume *v, const char *why)
{
    v->state = VOLUME_REMOVING;
    tell(&v->ready, NULL, why);
    if (v->busy)
        return;
    v->busy = true;
    if (layer_queue_add(v->controller->layers, LAYER_VOLUME_REMOVE, v->name, "", on_removed, v) < 0)
        on_removed(v, LAYER_FAILED, "out of memory");
}

int managed_volume_delete(struct managed_volume *v, managed_volume_fn fn, void *arg,
                          struct err *err)
{
    const struct managed_sandbox *r = holder(v->controller, v->name, true, false);
    if (r)
        return err_set(err, ERR_UNREADY, "the volume %s is in use: the sandbox %s has it", v->name,
                       r->id);
    if (v->state == VOLUME_RESTORING)
        return err_set(err, ERR_UNREADY, "the volume %s is being restored", v->name);
    if (fn && wait_in(&v->gone, fn, arg) < 0)
        return err_set(err, ERR_INTERNAL, "out of memory");
    if (v->state == VOLUME_READY &&
        registry_volume_ready(v->controller->registry, v->name, false, err) < 0)
        proc_log("%s", err->text);
    err->code = ERR_NONE;
    v->was_ready = v->was_ready || v->state == VOLUME_READY;
    dispose(v, "it was deleted");
    return 0;
}

/* ---- making ---- */

static void about_of(const struct managed_volume *v, char *to, size_t size)
{
    snprintf(to, size, "%s %lld %s", v->policy, (long long)v->size,
             v->snapshot_of[0] ? "snapshot"
             : v->many         ? "many"
                               : "one");
}

static void on_made(void *arg, enum layer_result result, const char *text)
{
    struct managed_volume *v = arg;
    struct err err = {0};
    v->busy = false;
    v->others = result == LAYER_EXISTS;
    if (v->state == VOLUME_REMOVING) {
        dispose(v, "it was deleted");
        return;
    }
    if (result == LAYER_DONE &&
        registry_volume_ready(v->controller->registry, v->name, true, &err) == 0) {
        v->state = VOLUME_READY;
        note(v, word(v, "volume_created", "volume_snapshot_created"));
        tell(&v->ready, v, "");
        return;
    }
    if (v->others) /* of no row: a registry that was lost */
        text = "there were files of this name, which are being removed; try again";
    else if (result == LAYER_ABSENT)
        text = "the files to begin with are not there";
    dispose(v, err.code == ERR_NONE ? text : err.text);
}

struct managed_volume *managed_volume_find(struct controller *c, const char *name)
{
    struct managed_volume *v;
    TAILQ_FOREACH(v, &c->volumes, link)
    if (strcmp(v->name, name) == 0)
        return v;
    return NULL;
}

int64_t managed_volumes_of_token(const struct controller *c, const char *token)
{
    const struct managed_volume *v;
    int64_t sum = 0;
    TAILQ_FOREACH(v, &c->volumes, link)
    if (strcmp(v->token, token) == 0)
        sum += v->size; /* at most MANAGED_VOLUMES_MAX << 50 */
    return sum;
}

static int may_be_made(struct controller *c, const struct managed_volume_wish *w, struct err *err)
{
    if (managed_volume_find(c, w->name))
        return err_set(err, ERR_DENIED, "a volume named %s exists already", w->name);
    if (c->n_volumes >= MANAGED_VOLUMES_MAX)
        return err_set(err, ERR_UNREADY, "%d volumes exist already", MANAGED_VOLUMES_MAX);
    if (w->from && w->from->state != VOLUME_READY)
        return err_set(err, ERR_UNREADY, "the volume %s is being made, restored or removed",
                       w->from->name);
    if (w->from && w->size < w->from->size)
        return err_set(err, ERR_PARSE, "the volume %s has %lld bytes: a copy must have as many",
                       w->from->name, (long long)w->from->size);
    return 0;
}

static int add_row(const struct managed_volume *v, struct err *err)
{
    char *labels = json_dumps(v->labels, JSON_COMPACT);
    struct registry_volume row = {.name = v->name,
                                  .policy = v->policy,
                                  .labels = labels,
                                  .token = v->token,
                                  .snapshot_of = v->snapshot_of,
                                  .size = v->size,
                                  .created = v->created,
                                  .many = v->many};
    int r = labels ? registry_volume_add(v->controller->registry, &row, err)
                   : err_set(err, ERR_INTERNAL, "out of memory");
    free(labels);
    return r;
}

struct managed_volume *managed_volume_new(struct controller *c, const struct managed_volume_wish *w,
                                          struct err *err)
{
    char about[RUN_NAME_MAX + 64];
    struct managed_volume *v = may_be_made(c, w, err) == 0 ? blank(c) : NULL;
    if (v == NULL)
        return NULL;
    snprintf(v->name, sizeof v->name, "%s", w->name);
    snprintf(v->policy, sizeof v->policy, "%s", w->policy);
    snprintf(v->token, sizeof v->token, "%s", w->token);
    snprintf(v->snapshot_of, sizeof v->snapshot_of, "%s", w->snapshot ? w->from->name : "");
    v->labels = w->labels ? json_deep_copy(w->labels) : json_object();
    v->size = w->size;
    v->many = w->many;
    v->created = (int64_t)time(NULL);
    if (v->labels == NULL || add_row(v, err) < 0) {
        release(v);
        return NULL;
    }
    measure(c);
    about_of(v, about, sizeof about);
    v->busy = true;
    if (layer_queue_volume(c->layers, w->from ? LAYER_VOLUME_COPY : LAYER_VOLUME_MAKE,
                           w->from ? w->from->name : v->name, v->name, about, on_made, v) == 0)
        return v;
    v->busy = false;
    dispose(v, "out of memory");
    err_set(err, ERR_INTERNAL, "out of memory");
    return NULL;
}

int managed_volume_await(struct managed_volume *v, managed_volume_fn fn, void *arg)
{
    if (v->state == VOLUME_MAKING || v->state == VOLUME_RESTORING)
        return wait_in(&v->ready, fn, arg);
    fn(arg, v->state == VOLUME_READY ? v : NULL, "it is being removed");
    return 0;
}

/* ---- restoring, exporting ---- */

static void on_replaced(void *arg, enum layer_result result, const char *text)
{
    struct managed_volume *v = arg;
    v->busy = false;
    v->state = VOLUME_READY;
    if (result == LAYER_DONE) {
        note(v, "volume_restored");
        tell(&v->ready, v, "");
    } else {
        tell(&v->ready, NULL, result == LAYER_ABSENT ? "the snapshot is gone" : text);
    }
}

int managed_volume_restore(struct managed_volume *v, const struct managed_volume *from,
                           managed_volume_fn fn, void *arg, struct err *err)
{
    char about[RUN_NAME_MAX + 64];
    const struct managed_sandbox *r = holder(v->controller, v->name, false, false);
    if (r)
        return err_set(err, ERR_UNREADY, "the volume %s is in use: the sandbox %s has it", v->name,
                       r->id);
    if (v->state != VOLUME_READY || from->state != VOLUME_READY || v->snapshot_of[0])
        return err_set(err, ERR_UNREADY, "the volume or its snapshot is being made or removed");
    if (from->size > v->size)
        return err_set(err, ERR_DENIED, "the snapshot may have more bytes than the volume");
    if (wait_in(&v->ready, fn, arg) < 0)
        return err_set(err, ERR_INTERNAL, "out of memory");
    about_of(v, about, sizeof about);
    v->state = VOLUME_RESTORING;
    v->busy = true;
    if (layer_queue_volume(v->controller->layers, LAYER_VOLUME_REPLACE, from->name, v->name, about,
                           on_replaced, v) < 0)
        on_replaced(v, LAYER_FAILED, "out of memory");
    return 0;
}

int managed_volume_export(struct managed_volume *v, int fd, layer_fn fn, void *arg)
{
    struct layer_stream stream = {.fd = fd};
    json_t *about = json_pack("{s:i, s:s, s:s, s:s, s:I, s:I}", "format", LAYER_FORMAT, "volume",
                              v->name, "policy", v->policy, "image", "volume", "size",
                              (json_int_t)v->size, "created", (json_int_t)v->created);
    size_t n = about ? json_dumpb(about, stream.about, sizeof stream.about - 1,
                                  JSON_COMPACT | JSON_PRESERVE_ORDER)
                     : 0;
    json_decref(about);
    if (n == 0 || n >= sizeof stream.about) {
        close(fd);
        return -1;
    }
    stream.about[n] = '\0';
    return layer_queue_archive(v->controller->layers, LAYER_VOLUME_EXPORT, v->name, &stream, fn,
                               arg);
}

/* ---- JSON ---- */

static json_t *mounts_json(const struct managed_volume *v)
{
    const struct managed_sandbox *r;
    struct sandbox_spec_volume w;
    json_t *list = json_array();
    TAILQ_FOREACH(r, &v->controller->managed_sandboxes, link)
    if (strcmp(r->policy, v->policy) == 0 && runs(r) && has(r, v->name, &w))
        json_array_append_new(list, json_pack("{s:s, s:s, s:b}", "sandbox", r->id, "path", w.target,
                                              "read_only", !w.writable));
    return list;
}

json_t *managed_volume_json(const struct managed_volume *v)
{
    static const char *const states[] = {"making", "ready", "restoring", "removing"};
    return json_pack("{s:s, s:s, s:s, s:I, s:s, s:s?, s:O, s:I, s:o}", "name", v->name, "policy",
                     v->policy, "state", states[v->state], "size", (json_int_t)v->size, "access",
                     v->many ? "many" : "one", "snapshot_of",
                     v->snapshot_of[0] ? v->snapshot_of : NULL, "labels", v->labels, "created_at",
                     (json_int_t)v->created, "mounted", mounts_json(v));
}

/* ---- start and end of the controller ---- */

static int load_row(void *arg, const struct registry_volume *row)
{
    struct managed_volume *v = blank(arg);
    if (v == NULL)
        return -1;
    snprintf(v->name, sizeof v->name, "%.64s", row->name);
    snprintf(v->policy, sizeof v->policy, "%.255s", row->policy);
    snprintf(v->snapshot_of, sizeof v->snapshot_of, "%.64s", row->snapshot_of);
    snprintf(v->token, sizeof v->token, "%.64s", row->token);
    v->labels = json_loads(row->labels, JSON_REJECT_DUPLICATES, NULL);
    v->size = row->size;
    v->many = row->many != 0;
    v->created = row->created;
    v->state = row->ready ? VOLUME_READY : VOLUME_REMOVING;
    return json_is_object(v->labels) ? 0 : -1; /* else tokens with labels would not see it */
}

int managed_volumes_load(struct controller *c, struct err *err)
{
    struct managed_volume *v, *next;
    if (registry_volume_each(c->registry, load_row, c, err) < 0)
        return -1;
    measure(c);
    for (v = TAILQ_FIRST(&c->volumes); v; v = next) {
        next = TAILQ_NEXT(v, link);
        if (v->state == VOLUME_REMOVING)
            dispose(v, "the daemon ended while it was made or removed");
    }
    return 0;
}

void managed_volumes_close(struct controller *c)
{
    struct managed_volume *v;
    while ((v = TAILQ_FIRST(&c->volumes)) != NULL) {
        tell(&v->ready, NULL, "the daemon ended");
        tell(&v->gone, NULL, "the daemon ended");
        release(v);
    }
}
