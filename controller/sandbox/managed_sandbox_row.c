/* A managed sandbox as a row of the registry, and as JSON. */
#include "managed_sandbox_internal.h"

#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "proc.h"
#include "publication.h"
#include "registry.h"

static const char *const state_names[] = {NULL,      "creating", "running", "stopping",
                                          "stopped", "paused",   "resuming"};

const char *managed_sandbox_state_name(enum managed_sandbox_state s)
{
    return state_names[s];
}

int managed_sandbox_state_of(const char *name)
{
    for (size_t i = 1; i < ARRAY_LEN(state_names); i++)
        if (strcmp(state_names[i], name) == 0)
            return (int)i;
    return -1;
}

/* ---- the row ---- */

static struct registry_sandbox row_of(struct managed_sandbox *r, char *labels, char *env,
                                      char *volumes, const char *pod)
{
    struct registry_sandbox row = {
        .id = r->id,
        .name = r->name,
        .policy = r->policy,
        .labels = labels ? labels : "{}",
        .env = env ? env : "{}",
        .volumes = volumes ? volumes : "[]",
        .reason = r->reason,
        .backend = r->backend,
        .image = r->image,
        .parent = r->parent,
        .snapshot = r->snapshot,
        .restoring = r->restoring,
        .state = r->state,
        .on_idle = r->on_idle,
        .on_soft = r->on_soft,
        .token = r->token,
        .template = r->template,
        .pooled = r->pooled,
        .pod = pod ? pod : "",
        .auto_resume = r->auto_resume,
        .kept = r->kept,
        .generation = r->generation,
        .created = r->created,
        .ttl = r->ttl,
        .idle_ttl = r->idle_ttl,
        .soft_ttl = r->soft_ttl,
    };
    managed_sandbox_row_times(r, &row);
    memcpy(row.seed, r->seed, sizeof row.seed);
    return row;
}

int managed_sandbox_row_add(struct managed_sandbox *r, struct err *err)
{
    char *labels = json_dumps(r->labels, JSON_COMPACT), *env = json_dumps(r->env, JSON_COMPACT);
    char *volumes = json_dumps(r->volumes, JSON_COMPACT);
    char *pod = r->pod ? json_dumps(r->pod, JSON_COMPACT) : NULL;
    struct registry_sandbox row = row_of(r, labels, env, volumes, pod);
    int bad = labels && env && volumes && !pod == !r->pod
                  ? registry_sandbox_add(r->controller->registry, &row, err)
                  : err_set(err, ERR_INTERNAL, "out of memory");
    r->seq = row.seq;
    free(pod);
    free(volumes);
    free(labels);
    free(env);
    return bad;
}

int managed_sandbox_row_save(struct managed_sandbox *r, struct err *err)
{
    char *labels = json_dumps(r->labels, JSON_COMPACT), *env = json_dumps(r->env, JSON_COMPACT);
    struct registry_sandbox row = row_of(r, labels, env, NULL, NULL);
    int bad = labels && env ? registry_sandbox_update(r->controller->registry, &row, err)
                            : err_set(err, ERR_INTERNAL, "out of memory");
    free(labels);
    free(env);
    return bad;
}

void managed_sandbox_row_note(struct managed_sandbox *r)
{
    struct err err = {0};
    r->generation++;
    if (managed_sandbox_row_save(r, &err) < 0)
        proc_log("%s: %s", r->id, err.text);
}

static json_t *object_of(const char *text)
{
    json_t *v = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    return v ? v : json_object();
}

/* Texts alone, as they were asked for. */
static json_t *volumes_of(const char *text)
{
    size_t i;
    json_t *one, *v = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    bool ok = json_is_array(v);
    json_array_foreach(v, i, one) ok = ok && json_is_string(one);
    if (ok)
        return v;
    json_decref(v);
    return json_array();
}

int managed_sandbox_row_load(void *controller, const struct registry_sandbox *row)
{
    struct managed_sandbox *r = managed_sandbox_blank(controller);
    if (r == NULL)
        return -1;
    r->seq = row->seq;
    snprintf(r->id, sizeof r->id, "%s", row->id);
    snprintf(r->name, sizeof r->name, "%.63s", row->name);
    snprintf(r->policy, sizeof r->policy, "%s", row->policy);
    snprintf(r->reason, sizeof r->reason, "%.255s", row->reason);
    snprintf(r->backend, sizeof r->backend, "%.15s", row->backend);
    snprintf(r->image, sizeof r->image, "%.255s", row->image);
    snprintf(r->parent, sizeof r->parent, "%.64s", row->parent);
    snprintf(r->snapshot, sizeof r->snapshot, "%.64s", row->snapshot);
    snprintf(r->restoring, sizeof r->restoring, "%.64s", row->restoring);
    snprintf(r->token, sizeof r->token, "%.64s", row->token);
    snprintf(r->template, sizeof r->template, "%.63s", row->template);
    r->pooled = row->pooled != 0;
    r->labels = object_of(row->labels);
    r->env = object_of(row->env);
    r->volumes = volumes_of(row->volumes);
    r->pod = row->pod[0] ? object_of(row->pod) : NULL;
    memcpy(r->seed, row->seed, sizeof r->seed);
    bool known = row->state >= MANAGED_SANDBOX_CREATING && row->state <= MANAGED_SANDBOX_RESUMING;
    r->state = known ? (enum managed_sandbox_state)row->state : MANAGED_SANDBOX_STOPPED;
    known = row->on_idle >= 0 && row->on_idle < IDLE_KINDS;
    r->on_idle = known ? (enum config_idle)row->on_idle : IDLE_DELETE;
    r->on_soft = row->on_soft == IDLE_PAUSE ? IDLE_PAUSE : IDLE_STOP;
    r->auto_resume = row->auto_resume != 0;
    r->kept = row->kept != 0;
    r->generation = row->generation;
    r->created = row->created;
    r->ttl = row->ttl;
    r->idle_ttl = row->idle_ttl;
    r->soft_ttl = row->soft_ttl;
    managed_sandbox_load_times(r, row);
    managed_sandbox_arm(r);
    return 0;
}

/* ---- JSON ---- */

static json_t *denials_json(const struct sandbox *s, bool failed)
{
    json_t *list = json_array();
    const struct denials *d = s ? sandbox_denials(s) : NULL;
    for (size_t i = 0; d && i < d->n; i++)
        if (d->list[i].failed == failed)
            json_array_append_new(list, json_pack("{s:s, s:s, s:I}", "code", d->list[i].code,
                                                  "target", d->list[i].target, "count",
                                                  (json_int_t)d->list[i].count));
    return list;
}

static json_t *date_or_null(int64_t at)
{
    return at == INT64_MAX ? json_null() : json_integer(managed_sandbox_date(at));
}

static const char *or_null(const char *text)
{
    return text[0] ? text : NULL;
}

json_t *managed_sandbox_json(struct managed_sandbox *r)
{
    json_t *v = json_pack(
        "{s:s, s:s?, s:s, s:s, s:s, s:I, s:O, s:s, s:I, s:I, s:I, s:I, s:o, s:o}", "id", r->id,
        "name", or_null(r->name), "policy", r->policy, "state",
        managed_sandbox_state_name(r->state), "reason", r->reason, "generation",
        (json_int_t)r->generation, "labels", r->labels, "workdir", MANAGED_SANDBOX_WORKDIR,
        "created_at", (json_int_t)r->created, "expires_at", (json_int_t)managed_sandbox_expires(r),
        "ttl", (json_int_t)r->ttl, "idle_ttl", (json_int_t)r->idle_ttl, "idle_expires_at",
        date_or_null(managed_sandbox_idle_end(r)), "denied", denials_json(r->sandbox, false));
    json_t *more =
        json_pack("{s:I, s:o, s:s, s:o, s:I, s:s, s:s, s:b, s:s, s:b, s:s?, s:s?, s:s?, s:o, s:O}",
                  "soft_ttl", (json_int_t)r->soft_ttl, "soft_expires_at",
                  date_or_null(managed_sandbox_soft_end(r)), "on_soft_ttl",
                  config_idle_name(r->on_soft), "failed", denials_json(r->sandbox, true), "used_at",
                  (json_int_t)managed_sandbox_date(r->used), "backend", r->backend, "image",
                  r->image[0] ? r->image : "host", "kept", r->kept, "on_idle",
                  config_idle_name(r->on_idle), "auto_resume", r->auto_resume, "parent",
                  or_null(r->parent), "snapshot", or_null(r->snapshot), "template",
                  or_null(r->template), "published", publications_json(r), "volumes", r->volumes);
    if (v == NULL || more == NULL || json_object_update(v, more) < 0) {
        json_decref(v);
        v = NULL;
    }
    json_decref(more);
    return v;
}
