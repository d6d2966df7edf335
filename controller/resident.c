#include "resident.h"

#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "execution.h"
#include "happenings.h"
#include "proc.h"
#include "registry.h"

static const char *const state_names[] = {NULL, "creating", "running", "stopping", "stopped"};

const char *resident_state_name(enum resident_state s)
{
    return state_names[s];
}

/* ---- the row ---- */

static struct registry_sandbox row_of(const struct resident *r, char *labels, char *env)
{
    struct registry_sandbox row = {
        .id = r->id,
        .name = r->name,
        .policy = r->policy,
        .labels = labels ? labels : "{}",
        .env = env ? env : "{}",
        .reason = r->reason,
        .state = r->state,
        .generation = r->generation,
        .created = r->created,
        .expires = r->expires,
        .ttl = r->ttl,
        .idle_ttl = r->idle_ttl,
    };
    memcpy(row.seed, r->seed, sizeof row.seed);
    return row;
}

static int add_row(struct resident *r, struct err *err)
{
    char *labels = json_dumps(r->labels, JSON_COMPACT), *env = json_dumps(r->env, JSON_COMPACT);
    struct registry_sandbox row = row_of(r, labels, env);
    int bad = labels && env ? registry_sandbox_add(r->controller->registry, &row, err)
                            : err_set(err, ERR_INTERNAL, "out of memory");
    r->seq = row.seq;
    free(labels);
    free(env);
    return bad;
}

static int save_row(struct resident *r, struct err *err)
{
    char *labels = json_dumps(r->labels, JSON_COMPACT);
    struct registry_sandbox row = row_of(r, labels, NULL);
    int bad = labels ? registry_sandbox_update(r->controller->registry, &row, err)
                     : err_set(err, ERR_INTERNAL, "out of memory");
    free(labels);
    return bad;
}

static void save(struct resident *r)
{
    struct err err = {0};
    r->generation++;
    if (save_row(r, &err) < 0)
        proc_log("%s: %s", r->id, err.text);
}

/* ---- time ---- */

static int64_t idle_end(const struct resident *r)
{
    bool idles = r->state == RESIDENT_RUNNING && r->idle_ttl > 0 && r->n_executions == 0;
    return idles ? r->used + r->idle_ttl : INT64_MAX;
}

static void arm(struct resident *r)
{
    int64_t idle = idle_end(r), end = idle < r->expires ? idle : r->expires;
    int64_t left = end - (int64_t)time(NULL);
    struct timeval tv = {left > 0 ? left : 0, 0};
    event_add(r->timer, &tv);
}

static void on_timer(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
    struct resident *r = arg;
    int64_t now = (int64_t)time(NULL);
    if (now >= r->expires)
        resident_delete(r, "its time to live is over", NULL, NULL);
    else if (now >= idle_end(r))
        resident_delete(r, "it was idle too long", NULL, NULL);
    else
        arm(r);
}

void resident_used(struct resident *r)
{
    r->used = (int64_t)time(NULL);
    arm(r);
}

/* ---- states ---- */

/* The one setter; the row first. */
static void set_state(struct resident *r, enum resident_state to)
{
    bool may = (r->state == RESIDENT_CREATING && to != RESIDENT_CREATING) ||
               (r->state == RESIDENT_RUNNING && to > RESIDENT_RUNNING);
    if (!may)
        abort();
    r->state = to;
    save(r);
    arm(r);
}

static void tell(struct resident_waits *q, struct resident *r, const char *why)
{
    struct resident_wait *w;
    while ((w = STAILQ_FIRST(q)) != NULL) {
        STAILQ_REMOVE_HEAD(q, link);
        w->fn(w->arg, r, why);
        free(w);
    }
}

static int wait_in(struct resident_waits *q, resident_fn fn, void *arg)
{
    struct resident_wait *w = malloc(sizeof *w);
    if (w == NULL)
        return -1;
    *w = (struct resident_wait){fn, arg, {NULL}};
    STAILQ_INSERT_TAIL(q, w, link);
    return 0;
}

static void release(struct resident *r)
{
    TAILQ_REMOVE(&r->controller->residents, r, link);
    r->controller->n_residents--;
    json_decref(r->labels);
    json_decref(r->env);
    if (r->timer)
        event_free(r->timer);
    free(r);
}

/* Its row, itself, and whoever waited for that. */
static void forget(struct resident *r, const char *why)
{
    struct err err = {0};
    if (registry_sandbox_delete(r->controller->registry, r->id, &err) < 0)
        proc_log("%s: %s", r->id, err.text);
    happenings_add(r->controller->happenings, r->id, "sandbox_deleted", why);
    tell(&r->running, NULL, why);
    tell(&r->gone, r, why);
    release(r);
}

static struct resident *blank(struct controller *c)
{
    struct resident *r = calloc(1, sizeof *r);
    if (r == NULL)
        return NULL;
    r->controller = c;
    LIST_INIT(&r->executions);
    STAILQ_INIT(&r->running);
    STAILQ_INIT(&r->gone);
    TAILQ_INSERT_TAIL(&c->residents, r, link);
    c->n_residents++;
    r->timer = evtimer_new(c->base, on_timer, r);
    if (r->timer)
        return r;
    release(r);
    return NULL;
}

/* ---- its sandbox ---- */

static int fill_request(struct resident *r, struct run_request *q, struct err *err)
{
    const char *key;
    json_t *value;
    run_request_init(q);
    snprintf(q->policy, sizeof q->policy, "%s", r->policy);
    snprintf(q->backend, sizeof q->backend, "%s", r->backend);
    snprintf(q->image, sizeof q->image, "%s", r->image);
    snprintf(q->cwd, sizeof q->cwd, RESIDENT_WORKDIR);
    snprintf(q->home, sizeof q->home, RESIDENT_WORKDIR);
    q->uid = r->controller->owner_uid;
    q->gid = r->controller->owner_gid;
    snprintf(q->user, sizeof q->user, "%s", q->uid ? "sandbox" : "root");
    json_object_foreach(r->env, key, value)
    {
        if (strlist_set_env(&q->env, key, json_string_value(value)) < 0)
            return err_set(err, ERR_LIMIT, "the environment is too long");
    }
    return 0;
}

static int begin(struct resident *r, const struct sandbox_known *known, struct err *err)
{
    struct run_request q;
    struct sandbox_plan plan;
    int bad = fill_request(r, &q, err);
    if (bad == 0)
        bad = sandbox_plan_make(r->controller, &q, known, &plan, err);
    run_request_done(&q);
    if (bad)
        return -1;
    plan.kept = true;
    plan.adopt = known != NULL;
    memcpy(r->id, plan.id, sizeof r->id);
    memcpy(r->seed, plan.seed, sizeof r->seed);
    if (known == NULL && add_row(r, err) < 0) {
        sandbox_plan_done(&plan);
        return -1;
    }
    r->sandbox = sandbox_new(&r->controller->owner, &plan, NULL);
    if (r->sandbox)
        return 0;
    sandbox_plan_done(&plan);
    return err_set(err, ERR_INTERNAL, "out of memory");
}

static struct resident *of(struct controller *c, const struct sandbox *s)
{
    struct resident *r;
    TAILQ_FOREACH(r, &c->residents, link)
    if (r->sandbox == s)
        return r;
    return NULL;
}

void residents_running(void *controller, struct sandbox *s)
{
    struct resident *r = of(controller, s);
    if (r == NULL)
        return;
    if (r->state == RESIDENT_STOPPING) { /* since before the controller's restart */
        sandbox_end(s, 0, "it was being deleted");
        return;
    }
    r->used = (int64_t)time(NULL);
    set_state(r, RESIDENT_RUNNING);
    if (r->adopted)
        proc_log("sandbox %s is taken over", r->id);
    tell(&r->running, r, "");
}

int residents_said(void *controller, struct sandbox *s, struct msg *m)
{
    struct resident *r = of(controller, s);
    return r ? execution_message(r, m) : -1;
}

void residents_named(void *controller, struct sandbox *s, const char *host, uint32_t index)
{
    struct controller *c = controller;
    struct err err = {0};
    if (registry_name_add(c->registry, sandbox_id(s), index, host, &err) < 0)
        proc_log("%s: %s", sandbox_id(s), err.text);
}

void residents_sandbox_gone(struct controller *c, struct sandbox *s)
{
    struct resident *r = of(c, s);
    char why[256];
    if (r == NULL)
        return;
    snprintf(why, sizeof why, "%.255s", sandbox_why(s));
    r->sandbox = NULL;
    execution_end_all(r, "the sandbox ended");
    if (r->state == RESIDENT_STOPPING || (r->state == RESIDENT_CREATING && !r->adopted)) {
        forget(r, why);
        return;
    }
    snprintf(r->reason, sizeof r->reason, "%s",
             r->state == RESIDENT_CREATING ? "it ended with the daemon or its builder" : why);
    set_state(r, RESIDENT_STOPPED);
    proc_log("sandbox %s is stopped: %s", r->id, r->reason);
    tell(&r->running, NULL, r->reason);
}

/* ---- what others want ---- */

struct resident *resident_find(struct controller *c, const char *id)
{
    struct resident *r;
    TAILQ_FOREACH(r, &c->residents, link)
    if (strcmp(r->id, id) == 0)
        return r;
    return NULL;
}

bool resident_has_labels(const struct resident *r, const json_t *labels)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)labels, key, value)
    {
        if (!json_equal(json_object_get(r->labels, key), value))
            return false;
    }
    return true;
}

static bool lives(const struct resident *r)
{
    return r->state == RESIDENT_CREATING || r->state == RESIDENT_RUNNING;
}

struct resident *resident_by_labels(struct controller *c, const json_t *labels)
{
    struct resident *r;
    TAILQ_FOREACH(r, &c->residents, link)
    if (lives(r) && resident_has_labels(r, labels))
        return r;
    return NULL;
}

static bool name_is_taken(struct controller *c, const char *name)
{
    struct resident *r;
    TAILQ_FOREACH(r, &c->residents, link)
    if (r->state != RESIDENT_STOPPED && strcmp(r->name, name) == 0)
        return true;
    return false;
}

struct resident *resident_new(struct controller *c, const struct resident_wish *w, struct err *err)
{
    bool named = w->name && *w->name;
    if (named && name_is_taken(c, w->name)) {
        err_set(err, ERR_DENIED, "a sandbox named %s exists already", w->name);
        return NULL;
    }
    struct resident *r = c->n_residents < RESIDENTS_MAX ? blank(c) : NULL;
    if (r == NULL) {
        err_set(err, ERR_UNREADY, "%d sandboxes exist already, or memory is out", RESIDENTS_MAX);
        return NULL;
    }
    snprintf(r->name, sizeof r->name, "%s", named ? w->name : "");
    snprintf(r->policy, sizeof r->policy, "%s", w->policy);
    snprintf(r->backend, sizeof r->backend, "%s", w->backend ? w->backend : "");
    snprintf(r->image, sizeof r->image, "%s", w->image ? w->image : "");
    r->labels = w->labels ? json_incref(w->labels) : json_object();
    r->env = w->env ? json_incref(w->env) : json_object();
    r->state = RESIDENT_CREATING;
    r->generation = 1;
    r->created = r->used = (int64_t)time(NULL);
    r->ttl = w->ttl;
    r->idle_ttl = w->idle_ttl;
    r->expires = r->created + r->ttl;
    if (begin(r, NULL, err) == 0) {
        arm(r);
        return r;
    }
    if (r->seq)
        forget(r, err->text);
    else
        release(r);
    return NULL;
}

int resident_await(struct resident *r, resident_fn fn, void *arg)
{
    if (r->state == RESIDENT_CREATING)
        return wait_in(&r->running, fn, arg);
    fn(arg, r->state == RESIDENT_RUNNING ? r : NULL, r->reason);
    return 0;
}

int resident_delete(struct resident *r, const char *why, resident_fn fn, void *arg)
{
    if (fn && wait_in(&r->gone, fn, arg) < 0)
        return -1;
    if (r->sandbox == NULL) {
        forget(r, why);
    } else if (r->state != RESIDENT_STOPPING) {
        set_state(r, RESIDENT_STOPPING);
        sandbox_end(r->sandbox, 0, why);
    }
    return 0;
}

int resident_change(struct resident *r, json_t *labels, int64_t ttl, int64_t idle_ttl,
                    struct err *err)
{
    if (labels) {
        json_decref(r->labels);
        r->labels = json_incref(labels);
    }
    if (ttl >= 0) {
        r->ttl = ttl;
        r->expires = (int64_t)time(NULL) + ttl;
    }
    if (idle_ttl >= 0)
        r->idle_ttl = idle_ttl;
    r->generation++;
    arm(r);
    return save_row(r, err);
}

static json_t *denials_json(const struct sandbox *s)
{
    json_t *list = json_array();
    const struct denials *d = s ? sandbox_denials(s) : NULL;
    for (size_t i = 0; d && i < d->n; i++)
        json_array_append_new(list,
                              json_pack("{s:s, s:s, s:I}", "code", d->list[i].code, "target",
                                        d->list[i].target, "count", (json_int_t)d->list[i].count));
    return list;
}

json_t *resident_json(const struct resident *r)
{
    int64_t idle = idle_end(r);
    return json_pack("{s:s, s:s?, s:s, s:s, s:s, s:I, s:O, s:s, s:I, s:I, s:I, s:I, s:o, s:o}",
                     "id", r->id, "name", r->name[0] ? r->name : NULL, "policy", r->policy, "state",
                     resident_state_name(r->state), "reason", r->reason, "generation",
                     (json_int_t)r->generation, "labels", r->labels, "workdir", RESIDENT_WORKDIR,
                     "created_at", (json_int_t)r->created, "expires_at", (json_int_t)r->expires,
                     "ttl", (json_int_t)r->ttl, "idle_ttl", (json_int_t)r->idle_ttl,
                     "idle_expires_at", idle == INT64_MAX ? json_null() : json_integer(idle),
                     "denied", denials_json(r->sandbox));
}

/* ---- start and end of the controller ---- */

static void restore_name(void *arg, const char *host)
{
    sandbox_restore_name(arg, host);
}

/* What runs is asked for again. It says no when the daemon was started anew; then the row of one
 * that ran stays as stopped, and others were not whole yet or were going. */
static int adopt(struct resident *r, struct err *err)
{
    struct sandbox_known known;
    struct err why = {0};
    memcpy(known.id, r->id, sizeof known.id);
    memcpy(known.seed, r->seed, sizeof known.seed);
    r->adopted = r->state == RESIDENT_RUNNING;
    if (r->state == RESIDENT_RUNNING)
        r->state = RESIDENT_CREATING;
    else
        r->state = RESIDENT_STOPPING;
    if (begin(r, &known, &why) < 0) { /* its policy is gone, for one */
        proc_log("sandbox %s cannot be taken over: %s", r->id, why.text);
        snprintf(r->reason, sizeof r->reason, "%.255s", why.text);
        r->state = RESIDENT_STOPPED;
        return save_row(r, err);
    }
    return registry_name_each(r->controller->registry, r->id, restore_name, r->sandbox, err);
}

static int load_row(void *arg, const struct registry_sandbox *row)
{
    struct controller *c = arg;
    struct resident *r = blank(c);
    if (r == NULL)
        return -1;
    r->seq = row->seq;
    snprintf(r->id, sizeof r->id, "%s", row->id);
    snprintf(r->name, sizeof r->name, "%.63s", row->name);
    snprintf(r->policy, sizeof r->policy, "%s", row->policy);
    snprintf(r->reason, sizeof r->reason, "%.255s", row->reason);
    r->labels = json_loads(row->labels, JSON_REJECT_DUPLICATES, NULL);
    r->env = json_loads(row->env, JSON_REJECT_DUPLICATES, NULL);
    if (r->labels == NULL)
        r->labels = json_object();
    if (r->env == NULL)
        r->env = json_object();
    memcpy(r->seed, row->seed, sizeof r->seed);
    bool known = row->state >= RESIDENT_CREATING && row->state <= RESIDENT_STOPPED;
    r->state = known ? (enum resident_state)row->state : RESIDENT_STOPPED;
    r->generation = row->generation;
    r->created = row->created;
    r->used = (int64_t)time(NULL);
    r->expires = row->expires;
    r->ttl = row->ttl;
    r->idle_ttl = row->idle_ttl;
    arm(r);
    return 0;
}

int residents_load(struct controller *c, struct err *err)
{
    struct resident *r;
    if (registry_sandbox_each(c->registry, load_row, c, err) < 0)
        return -1;
    TAILQ_FOREACH(r, &c->residents, link)
    if (r->state != RESIDENT_STOPPED && adopt(r, err) < 0)
        return -1;
    return 0;
}

void residents_close(struct controller *c)
{
    struct resident *r;
    while ((r = TAILQ_FIRST(&c->residents)) != NULL) {
        r->sandbox = NULL;
        execution_end_all(r, "the daemon ended");
        if (r->state == RESIDENT_RUNNING) {
            snprintf(r->reason, sizeof r->reason, "the daemon ended");
            set_state(r, RESIDENT_STOPPED);
        }
        tell(&r->running, NULL, "the daemon ended");
        tell(&r->gone, NULL, "the daemon ended");
        release(r);
    }
}
