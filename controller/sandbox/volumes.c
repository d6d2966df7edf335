/* Volumes: made empty or as a copy, restored, removed; and which sandboxes have them. */
#include "volumes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "meter.h"
#include "proc.h"
#include "sandbox_events.h"
#include "registry.h"

static struct managed_volume *of(struct named_layer *l)
{
    return (struct managed_volume *)l;
}

static const struct managed_volume *of_const(const struct named_layer *l)
{
    return (const struct managed_volume *)l;
}

static void measure(struct controller *c)
{
    const struct named_layer *l;
    uint64_t bytes = 0;
    TAILQ_FOREACH(l, &c->volumes.list, link)
    bytes += (uint64_t)of_const(l)->size;
    meter_set(METER_VOLUMES, c->volumes.n);
    meter_set(METER_VOLUME_BYTES, bytes);
}

static const char *word(const struct named_layer *l, const char *volume, const char *snapshot)
{
    return of_const(l)->snapshot_of[0] ? snapshot : volume;
}

/* The log says whose it is; an event, which has a sandbox or none, its name. */
static void note(const struct named_layer *l, const char *what)
{
    controller_record(l->controller, l->name, what, l->policy);
    sandbox_events_add(l->controller->sandbox_events, "", what, l->name);
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
    if (!config_backend_lays_out(config_backend_named(r->backend)) ||
        r->state == MANAGED_SANDBOX_STOPPING)
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
    if (v == NULL || strcmp(v->layer.policy, policy) != 0 || v->snapshot_of[0])
        return err_set(err, ERR_PARSE, "there is no volume '%s' of the policy '%s'", w.name,
                       policy);
    if (v->layer.state != LAYER_READY)
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

/* Somebody has it whom this daemon does not know, as a `durward run`; or the files of its name were
 * never its own, and may be anybody's. */
static enum layer_result mounted(struct named_layer *l)
{
    struct err err = {0};
    if (!of(l)->was_ready)
        return of(l)->others ? LAYER_ABSENT : LAYER_FAILED;
    if (registry_volume_ready(l->controller->registry, l->name, true, &err) < 0)
        proc_log("%s", err.text);
    return LAYER_EXISTS;
}

static void going(struct named_layer *l)
{
    struct err err = {0};
    of(l)->was_ready = true;
    if (registry_volume_ready(l->controller->registry, l->name, false, &err) < 0)
        proc_log("%s", err.text);
}

static int forget(const struct named_layer *l, struct err *err)
{
    if (registry_volume_delete(l->controller->registry, l->name, err) < 0)
        return -1;
    note(l, word(l, "volume_deleted", "volume_snapshot_deleted"));
    return 0;
}

static void release(struct named_layer *l)
{
    json_decref(of(l)->labels);
}

int managed_volume_delete(struct managed_volume *v, named_layer_fn fn, void *arg, struct err *err)
{
    struct named_layer *l = &v->layer;
    const struct managed_sandbox *r = holder(l->controller, l->name, true, false);
    if (r)
        return err_set(err, ERR_UNREADY, "the volume %s is in use: the sandbox %s has it", l->name,
                       r->id);
    if (l->state == LAYER_RESTORING)
        return err_set(err, ERR_UNREADY, "the volume %s is being restored", l->name);
    return named_layer_delete(l, fn, arg) < 0 ? err_set(err, ERR_INTERNAL, "out of memory") : 0;
}

/* ---- JSON ---- */

static json_t *mounts_json(const struct named_layer *l)
{
    const struct managed_sandbox *r;
    struct sandbox_spec_volume w;
    json_t *list = json_array();
    TAILQ_FOREACH(r, &l->controller->managed_sandboxes, link)
    if (!r->pooled && strcmp(r->policy, l->policy) == 0 && runs(r) && has(r, l->name, &w))
        json_array_append_new(list, json_pack("{s:s, s:s, s:b}", "sandbox", r->id, "path", w.target,
                                              "read_only", !w.writable));
    return list;
}

static json_t *volume_json(const struct named_layer *l)
{
    const struct managed_volume *v = of_const(l);
    return json_pack("{s:s, s:s, s:s, s:I, s:s, s:s?, s:O, s:I, s:o}", "name", l->name, "policy",
                     l->policy, "state", named_layer_state(l), "size", (json_int_t)v->size,
                     "access", v->many ? "many" : "one", "snapshot_of",
                     v->snapshot_of[0] ? v->snapshot_of : NULL, "labels", v->labels, "created_at",
                     (json_int_t)l->created, "mounted", mounts_json(l));
}

static json_t *about(const struct named_layer *l)
{
    return json_pack("{s:i, s:s, s:s, s:s, s:I, s:I}", "format", LAYER_FORMAT, "volume", l->name,
                     "policy", l->policy, "image", "volume", "size", (json_int_t)of_const(l)->size,
                     "created", (json_int_t)l->created);
}

static const struct named_layer_kind kind = {
    .noun = "volume",
    .size = sizeof(struct managed_volume),
    .most = MANAGED_VOLUMES_MAX,
    .remove = LAYER_VOLUME_REMOVE,
    .export = LAYER_VOLUME_EXPORT,
    .json = volume_json,
    .about = about,
    .note = note,
    .going = going,
    .forget = forget,
    .mounted = mounted,
    .release = release,
    .counted = measure,
};

/* ---- making ---- */

/* What the builder is told that it is. */
static void spell(const struct managed_volume *v, char *to, size_t size)
{
    snprintf(to, size, "%s %lld %s", v->layer.policy, (long long)v->size,
             v->snapshot_of[0] ? "snapshot"
             : v->many         ? "many"
                               : "one");
}

static int now_ready(struct named_layer *l, const char *text UNUSED, struct err *err)
{
    if (registry_volume_ready(l->controller->registry, l->name, true, err) < 0)
        return -1;
    note(l, word(l, "volume_created", "volume_snapshot_created"));
    return 0;
}

static void on_made(void *arg, enum layer_result result, const char *text)
{
    of(arg)->others = result == LAYER_EXISTS;
    named_layer_made(arg, result, text, "the files to begin with are not there", now_ready);
}

struct managed_volume *managed_volume_find(struct controller *c, const char *name)
{
    return of(named_layer_find(&c->volumes, name));
}

int64_t managed_volumes_of_token(const struct controller *c, const char *token)
{
    const struct named_layer *l;
    int64_t sum = 0;
    TAILQ_FOREACH(l, &c->volumes.list, link)
    if (strcmp(of_const(l)->token, token) == 0)
        sum += of_const(l)->size; /* at most MANAGED_VOLUMES_MAX << 50 */
    return sum;
}

static int may_be_made(struct controller *c, const struct managed_volume_wish *w, struct err *err)
{
    if (named_layer_may_be(&c->volumes, &kind, w->name, err) < 0)
        return -1;
    if (w->from && w->from->layer.state != LAYER_READY)
        return err_set(err, ERR_UNREADY, "the volume %s is being made, restored or removed",
                       w->from->layer.name);
    if (w->from && w->size < w->from->size)
        return err_set(err, ERR_PARSE, "the volume %s has %lld bytes: a copy must have as many",
                       w->from->layer.name, (long long)w->from->size);
    return 0;
}

static int add_row(const struct managed_volume *v, struct err *err)
{
    char *labels = json_dumps(v->labels, JSON_COMPACT);
    struct registry_volume row = {.name = v->layer.name,
                                  .policy = v->layer.policy,
                                  .labels = labels,
                                  .token = v->token,
                                  .snapshot_of = v->snapshot_of,
                                  .size = v->size,
                                  .created = v->layer.created,
                                  .many = v->many};
    int r = labels ? registry_volume_add(v->layer.controller->registry, &row, err)
                   : err_set(err, ERR_INTERNAL, "out of memory");
    free(labels);
    return r;
}

static struct managed_volume *announce(struct controller *c, const struct managed_volume_wish *w,
                                       struct err *err)
{
    struct managed_volume *v = of(named_layer_new(c, &c->volumes, &kind, w->name, w->policy));
    if (v == NULL) {
        err_set(err, ERR_INTERNAL, "out of memory");
        return NULL;
    }
    snprintf(v->token, sizeof v->token, "%s", w->token);
    snprintf(v->snapshot_of, sizeof v->snapshot_of, "%s", w->snapshot ? w->from->layer.name : "");
    v->labels = w->labels ? json_deep_copy(w->labels) : json_object();
    v->size = w->size;
    v->many = w->many;
    v->layer.created = (int64_t)time(NULL);
    if (v->labels && add_row(v, err) == 0) {
        measure(c);
        return v;
    }
    if (v->labels == NULL)
        err_set(err, ERR_INTERNAL, "out of memory");
    named_layer_free(&v->layer);
    return NULL;
}

struct managed_volume *managed_volume_new(struct controller *c, const struct managed_volume_wish *w,
                                          struct err *err)
{
    char told[RUN_NAME_MAX + 64];
    struct managed_volume *v = may_be_made(c, w, err) == 0 ? announce(c, w, err) : NULL;
    if (v == NULL)
        return NULL;
    spell(v, told, sizeof told);
    int queued = layer_queue_volume(c->layers, w->from ? LAYER_VOLUME_COPY : LAYER_VOLUME_MAKE,
                                    w->from ? w->from->layer.name : v->layer.name, v->layer.name,
                                    told, on_made, v);
    return named_layer_begin(&v->layer, queued, err) < 0 ? NULL : v;
}

/* ---- restoring ---- */

static void on_replaced(void *arg, enum layer_result result, const char *text)
{
    struct named_layer *l = arg;
    l->busy = false;
    l->state = LAYER_READY;
    if (result == LAYER_DONE) {
        note(l, "volume_restored");
        named_layer_tell(&l->ready, l, "");
    } else {
        named_layer_tell(&l->ready, NULL, result == LAYER_ABSENT ? "the snapshot is gone" : text);
    }
}

int managed_volume_restore(struct managed_volume *v, const struct managed_volume *from,
                           named_layer_fn fn, void *arg, struct err *err)
{
    char told[RUN_NAME_MAX + 64];
    struct named_layer *l = &v->layer;
    const struct managed_sandbox *r = holder(l->controller, l->name, false, false);
    if (r)
        return err_set(err, ERR_UNREADY, "the volume %s is in use: the sandbox %s has it", l->name,
                       r->id);
    if (l->state != LAYER_READY || from->layer.state != LAYER_READY || v->snapshot_of[0])
        return err_set(err, ERR_UNREADY, "the volume or its snapshot is being made or removed");
    if (from->size > v->size)
        return err_set(err, ERR_DENIED, "the snapshot may have more bytes than the volume");
    l->state = LAYER_RESTORING;
    if (named_layer_await(l, fn, arg) < 0) {
        l->state = LAYER_READY;
        return err_set(err, ERR_INTERNAL, "out of memory");
    }
    spell(v, told, sizeof told);
    l->busy = true;
    if (layer_queue_volume(l->controller->layers, LAYER_VOLUME_REPLACE, from->layer.name, l->name,
                           told, on_replaced, v) < 0)
        on_replaced(v, LAYER_FAILED, "out of memory");
    return 0;
}

/* ---- start of the controller ---- */

static int load_row(void *arg, const struct registry_volume *row)
{
    struct controller *c = arg;
    struct managed_volume *v = of(named_layer_new(c, &c->volumes, &kind, row->name, row->policy));
    if (v == NULL)
        return -1;
    snprintf(v->snapshot_of, sizeof v->snapshot_of, "%.64s", row->snapshot_of);
    snprintf(v->token, sizeof v->token, "%.64s", row->token);
    v->labels = json_loads(row->labels, JSON_REJECT_DUPLICATES, NULL);
    v->size = row->size;
    v->many = row->many != 0;
    v->layer.created = row->created;
    v->layer.state = row->ready ? LAYER_READY : LAYER_REMOVING;
    return json_is_object(v->labels) ? 0 : -1; /* else tokens with labels would not see it */
}

int managed_volumes_load(struct controller *c, struct err *err)
{
    if (registry_volume_each(c->registry, load_row, c, err) < 0)
        return -1;
    named_layers_settle(&c->volumes);
    return 0;
}
