/* A managed sandbox's states and waits, and what its sandbox tells of itself. Rows, times, sleep
 * and copies are in managed_sandbox_row.c, managed_sandbox_time.c, managed_sandbox_sleep.c and
 * managed_sandbox_copy.c. */
#include "managed_sandbox_internal.h"

#include "assertion.h"

#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "execution.h"
#include "sandbox_events.h"
#include "layer_queue.h"
#include "pods.h"
#include "proc.h"
#include "proposals.h"
#include "publication.h"
#include "registry.h"
#include "snapshot.h"

/* ---- states ---- */

static bool may_become(enum managed_sandbox_state from, enum managed_sandbox_state to)
{
    switch (from) {
    case MANAGED_SANDBOX_CREATING:
        return to == MANAGED_SANDBOX_RUNNING || to == MANAGED_SANDBOX_STOPPING;
    case MANAGED_SANDBOX_RUNNING:
        return to == MANAGED_SANDBOX_PAUSED || to == MANAGED_SANDBOX_STOPPED ||
               to == MANAGED_SANDBOX_STOPPING;
    case MANAGED_SANDBOX_STOPPED:
        return to == MANAGED_SANDBOX_RESUMING || to == MANAGED_SANDBOX_STOPPING;
    case MANAGED_SANDBOX_PAUSED:
        return to == MANAGED_SANDBOX_RESUMING || to == MANAGED_SANDBOX_STOPPED ||
               to == MANAGED_SANDBOX_STOPPING;
    case MANAGED_SANDBOX_RESUMING:
        return to == MANAGED_SANDBOX_RUNNING || to == MANAGED_SANDBOX_PAUSED ||
               to == MANAGED_SANDBOX_STOPPED || to == MANAGED_SANDBOX_STOPPING;
    case MANAGED_SANDBOX_STOPPING:
        return false;
    }
    return false;
}

void managed_sandbox_set_state(struct managed_sandbox *r, enum managed_sandbox_state to)
{
    ASSERT(may_become(r->state, to));
    if (r->state == MANAGED_SANDBOX_CREATING && to == MANAGED_SANDBOX_RUNNING)
        managed_sandbox_live(r);
    r->state = to;
    if (to == MANAGED_SANDBOX_RUNNING) {
        r->reason[0] = '\0';
        if (!r->adopted || r->pause_again) /* else it ran before, and goes on */
            managed_sandbox_live_soft(r);
    }
    managed_sandbox_row_note(r);
    managed_sandbox_arm(r);
}

void managed_sandbox_tell(struct managed_sandbox_waits *q, struct managed_sandbox *r,
                          const char *why)
{
    struct managed_sandbox_wait *w;
    struct managed_sandbox_waits now = STAILQ_HEAD_INITIALIZER(now);
    STAILQ_CONCAT(&now, q); /* who waits anew waits for the next time */
    while ((w = STAILQ_FIRST(&now)) != NULL) {
        STAILQ_REMOVE_HEAD(&now, link);
        w->fn(w->arg, r, why);
        free(w);
    }
}

int managed_sandbox_wait_in(struct managed_sandbox_waits *q, managed_sandbox_fn fn, void *arg)
{
    struct managed_sandbox_wait *w = malloc(sizeof *w);
    if (w == NULL)
        return -1;
    *w = (struct managed_sandbox_wait){fn, arg, {NULL}};
    STAILQ_INSERT_TAIL(q, w, link);
    return 0;
}

static void release(struct managed_sandbox *r)
{
    TAILQ_REMOVE(&r->controller->managed_sandboxes, r, link);
    r->controller->n_managed_sandboxes--;
    publications_close(r);
    json_decref(r->labels);
    json_decref(r->env);
    json_decref(r->volumes);
    json_decref(r->pod);
    if (r->timer)
        event_free(r->timer);
    free(r);
}

/* Whoever waits for anything but its end. */
static void disappoint(struct managed_sandbox *r, const char *why)
{
    managed_sandbox_tell(&r->running, NULL, why);
    managed_sandbox_tell(&r->paused, NULL, why);
    managed_sandbox_tell(&r->stopped, NULL, why);
    managed_sandbox_tell(&r->published, NULL, why);
}

/* Its row, itself, and whoever waited for that. */
static void forget(struct managed_sandbox *r)
{
    struct err err = {0};
    if (registry_sandbox_delete(r->controller->registry, r->id, &err) < 0)
        proc_log("%s: %s", r->id, err.text);
    sandbox_events_add(r->controller->sandbox_events, r->id, "sandbox_deleted", r->reason);
    proposals_sandbox_ended(r->controller->proposals, r->id);
    disappoint(r, r->reason);
    managed_sandbox_tell(&r->gone, r, r->reason);
    release(r);
}

static void on_removed(void *arg, enum layer_result result, const char *text)
{
    struct managed_sandbox *r = arg;
    r->busy = false;
    if (result != LAYER_FAILED) {
        forget(r);
        return;
    }
    proc_log("%s: its files are not removed yet: %s", r->id, text);
    managed_sandbox_tell(&r->gone, NULL, text);
    managed_sandbox_arm(r); /* and again */
}

void managed_sandbox_dispose(struct managed_sandbox *r)
{
    if (!r->kept) {
        forget(r);
        return;
    }
    r->busy = true;
    if (layer_queue_add(r->controller->layers, LAYER_REMOVE, r->id, "", on_removed, r) < 0)
        on_removed(r, LAYER_FAILED, "out of memory");
}

struct managed_sandbox *managed_sandbox_blank(struct controller *c)
{
    struct managed_sandbox *r = calloc(1, sizeof *r);
    if (r == NULL)
        return NULL;
    r->controller = c;
    r->state = MANAGED_SANDBOX_CREATING;
    LIST_INIT(&r->executions);
    LIST_INIT(&r->publications);
    STAILQ_INIT(&r->running);
    STAILQ_INIT(&r->paused);
    STAILQ_INIT(&r->stopped);
    STAILQ_INIT(&r->gone);
    STAILQ_INIT(&r->published);
    TAILQ_INSERT_TAIL(&c->managed_sandboxes, r, link);
    c->n_managed_sandboxes++;
    r->timer = managed_sandbox_timer(r);
    if (r->timer)
        return r;
    release(r);
    return NULL;
}

/* ---- its sandbox ---- */

/* In an image everybody is root, who is nobody outside; under gVisor and in a microVM too. */
static int fill_request(struct managed_sandbox *r, struct run_request *q, struct err *err)
{
    const char *key;
    json_t *value;
    run_request_init(q);
    snprintf(q->policy, sizeof q->policy, "%s", r->policy);
    snprintf(q->backend, sizeof q->backend, "%s",
             r->pod ? config_backend_name(BACKEND_BWRAP) : r->backend);
    snprintf(q->image, sizeof q->image, "%s", r->image);
    snprintf(q->cwd, sizeof q->cwd, MANAGED_SANDBOX_WORKDIR);
    snprintf(q->home, sizeof q->home, MANAGED_SANDBOX_WORKDIR);
    q->uid = r->controller->owner_uid;
    q->gid = r->controller->owner_gid;
    enum config_backend b = config_backend_named(r->backend);
    bool root = b == BACKEND_GVISOR || b == BACKEND_MICROVM ||
                (b != BACKEND_KUBERNETES && (q->uid == 0 || (r->image[0] && b != BACKEND_DOCKER)));
    snprintf(q->user, sizeof q->user, "%s", root ? "root" : "sandbox");
    json_object_foreach(r->env, key, value)
    {
        if (strlist_set_env(&q->env, key, json_string_value(value)) < 0)
            return err_set(err, ERR_LIMIT, "the environment is too long");
    }
    size_t i;
    json_array_foreach(r->volumes, i, value)
    {
        if (strlist_add(&q->volumes, json_string_value(value)) < 0)
            return err_set(err, ERR_LIMIT, "too many volumes");
    }
    return 0;
}

static void restore_name(void *arg, const char *host)
{
    sandbox_restore_name(arg, host);
}

int managed_sandbox_begin(struct managed_sandbox *r, bool adopt, struct err *err)
{
    struct run_request q;
    struct sandbox_plan plan;
    struct sandbox_known known;
    memcpy(known.id, r->id, sizeof known.id);
    memcpy(known.seed, r->seed, sizeof known.seed);
    int bad = fill_request(r, &q, err);
    if (bad == 0)
        bad = sandbox_plan_make(r->controller, &q, &known, &plan, err);
    run_request_done(&q);
    if (bad)
        return -1;
    plan.kept = true;
    plan.adopt = adopt;
    plan.labels = json_incref(r->labels);
    if (r->pod)
        pods_spec(r->pod, &plan.sandbox_spec);
    else if (config_backend_lays_out(plan.sandbox_spec.limits.backend))
        plan.sandbox_spec.root = r->kept ? SANDBOX_SPEC_KEPT : SANDBOX_SPEC_MEMORY;
    r->sandbox = sandbox_new(&r->controller->owner, &plan, NULL);
    if (r->sandbox)
        return registry_name_each(r->controller->registry, r->id, restore_name, r->sandbox, err);
    sandbox_plan_done(&plan);
    return err_set(err, ERR_INTERNAL, "out of memory");
}

void managed_sandbox_fail(struct managed_sandbox *r, const char *why)
{
    snprintf(r->reason, sizeof r->reason, "%.255s", why);
    if (r->state == MANAGED_SANDBOX_CREATING)
        managed_sandbox_set_state(r, MANAGED_SANDBOX_STOPPING);
    disappoint(r, r->reason);
    managed_sandbox_dispose(r);
}

static struct managed_sandbox *of(struct controller *c, const struct sandbox *s)
{
    struct managed_sandbox *r;
    TAILQ_FOREACH(r, &c->managed_sandboxes, link)
    if (r->sandbox == s)
        return r;
    return NULL;
}

void managed_sandboxes_running(void *controller, struct sandbox *s)
{
    struct managed_sandbox *r = of(controller, s);
    struct err err = {0};
    if (r == NULL)
        return;
    if (r->state == MANAGED_SANDBOX_STOPPING) { /* since before the controller's restart */
        sandbox_end(s, 0, "it was being deleted");
        return;
    }
    if (!r->adopted || r->pause_again)
        managed_sandbox_used(r);
    managed_sandbox_set_state(r, MANAGED_SANDBOX_RUNNING);
    if (r->adopted)
        proc_log("sandbox %s is taken over", r->id);
    bool pause = r->pause_again && STAILQ_EMPTY(&r->running);
    r->adopted = r->pause_again = r->wanted = false;
    r->pod_tries = 0;
    managed_sandbox_tell(&r->running, r, "");
    if (pause && managed_sandbox_pause(r, NULL, NULL, &err) < 0)
        proc_log("%s: %s", r->id, err.text);
}

int managed_sandboxes_said(void *controller, struct sandbox *s, struct msg *m)
{
    struct managed_sandbox *r = of(controller, s);
    return r ? execution_message(r, m) : -1;
}

void managed_sandboxes_named(void *controller, struct sandbox *s, const char *host, uint32_t index)
{
    struct controller *c = controller;
    struct err err = {0};
    if (registry_name_add(c->registry, sandbox_id(s), index, host, &err) < 0)
        proc_log("%s: %s", sandbox_id(s), err.text);
}

/* Who waits for one to run that was to be taken over, or thawed, waits for it to be made anew: that
 * it was gone already is what he would have met a moment later. Unless somebody stopped it. */
static bool is_awaited(const struct managed_sandbox *r)
{
    return r->state == MANAGED_SANDBOX_RESUMING && r->wanted && r->pod == NULL &&
           !STAILQ_EMPTY(&r->running) && STAILQ_EMPTY(&r->stopped);
}

void managed_sandboxes_gone(struct controller *c, struct sandbox *s)
{
    struct managed_sandbox *r = of(c, s);
    struct err err = {0};
    char why[256], ended[sizeof why + sizeof "the sandbox ended: "];
    if (r == NULL)
        return;
    bool again = is_awaited(r);
    snprintf(why, sizeof why, "%.255s", sandbox_why(s));
    r->sandbox = NULL;
    r->pausing = r->wanted = false;
    snprintf(ended, sizeof ended, "the sandbox ended%s%s", why[0] ? ": " : "", why);
    execution_end_all(r, ended);
    snprintf(r->reason, sizeof r->reason, "%s",
             r->adopted ? "it ended with the daemon or its builder" : why);
    r->adopted = r->pause_again = false;
    if (r->state == MANAGED_SANDBOX_CREATING || r->state == MANAGED_SANDBOX_STOPPING) {
        managed_sandbox_fail(r, why);
        return;
    }
    managed_sandbox_set_state(r, MANAGED_SANDBOX_STOPPED);
    proc_log("sandbox %s is stopped: %s", r->id, r->reason);
    managed_sandbox_tell(&r->paused, NULL, r->reason);
    if (!again || managed_sandbox_wake(r, &err) < 0)
        managed_sandbox_tell(&r->running, NULL, r->reason);
    managed_sandbox_tell(&r->stopped, r, r->reason);
    if (r->pod)
        pods_ended(c->pods, r);
}

/* ---- what others want ---- */

struct managed_sandbox *managed_sandbox_find(struct controller *c, const char *id)
{
    struct managed_sandbox *r;
    TAILQ_FOREACH(r, &c->managed_sandboxes, link)
    if (strcmp(r->id, id) == 0)
        return r;
    return NULL;
}

bool managed_sandbox_has_labels(const struct managed_sandbox *r, const json_t *labels)
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

/* Does it run, or can it again? */
static bool lives(const struct managed_sandbox *r)
{
    return r->state != MANAGED_SANDBOX_STOPPING && (r->state != MANAGED_SANDBOX_STOPPED || r->kept);
}

struct managed_sandbox *managed_sandbox_by_labels(struct controller *c, const json_t *labels,
                                                  const struct managed_sandbox_sight *sight)
{
    struct managed_sandbox *r;
    TAILQ_FOREACH(r, &c->managed_sandboxes, link)
    if (lives(r) && managed_sandbox_has_labels(r, labels) && managed_sandbox_seen(sight, r))
        return r;
    return NULL;
}

static bool name_is_taken(struct controller *c, const struct managed_sandbox_wish *w)
{
    struct managed_sandbox *r;
    TAILQ_FOREACH(r, &c->managed_sandboxes, link)
    if (strcmp(r->name, w->name) == 0 && managed_sandbox_seen(w->sight, r))
        return true;
    return false;
}

/* What makes a sandbox of a snapshot: files are the same to all that lay them out. */
static const char *laying_out(const struct config *c, const struct managed_sandbox_wish *w)
{
    enum config_backend b = w->backend ? config_backend_named(w->backend)
                                       : config_policy_sandbox(c, w->policy)->backend;
    return config_backend_name(config_backend_lays_out(b) ? b : BACKEND_BWRAP);
}

static int sandbox_spec_wanted(const struct managed_sandbox *r,
                               const struct managed_sandbox_wish *w, struct sandbox_spec *ret,
                               struct err *err)
{
    const struct config *c = r->controller->config;
    if (w->snapshot)
        return sandbox_spec_of_policy(c, w->policy, laying_out(c, w), w->snapshot->image, ret, err);
    if (w->parent)
        return sandbox_spec_of_policy(c, w->policy, w->parent->backend, w->parent->image, ret, err);
    if (w->pod)
        return sandbox_spec_of_policy(c, w->policy, "bwrap", "", ret, err);
    return sandbox_spec_of_policy(c, w->policy, w->backend, w->image, ret, err);
}

/* What its soft time to live ends must be there afterwards. */
static int soft_ok(const struct managed_sandbox *r, int64_t seconds, struct err *err)
{
    if (seconds <= 0 || r->kept || r->on_soft != IDLE_STOP)
        return 0;
    return err_set(err, ERR_PARSE,
                   "soft_ttl: its files end with its processes (its policy bounds them by `disk`, "
                   "or it is a container): on_soft_ttl must be pause");
}

static int fill(struct managed_sandbox *r, const struct managed_sandbox_wish *w, struct err *err)
{
    struct sandbox_spec sandbox_spec;
    if (sandbox_spec_wanted(r, w, &sandbox_spec, err) < 0)
        return -1;
    snprintf(r->name, sizeof r->name, "%s", w->name ? w->name : "");
    snprintf(r->policy, sizeof r->policy, "%s", w->policy);
    snprintf(r->parent, sizeof r->parent, "%s", w->parent ? w->parent->id : "");
    snprintf(r->snapshot, sizeof r->snapshot, "%s", w->snapshot ? w->snapshot->layer.name : "");
    snprintf(r->token, sizeof r->token, "%s", w->token ? w->token : "");
    snprintf(r->template, sizeof r->template, "%s", w->template ? w->template : "");
    r->pooled = w->pooled;
    r->labels = w->labels ? json_incref(w->labels) : json_object();
    r->env = w->env ? json_incref(w->env) : json_object();
    r->volumes = w->volumes ? json_deep_copy(w->volumes) : json_array();
    r->generation = 1;
    r->created = (int64_t)time(NULL);
    r->ttl = w->ttl;
    r->idle_ttl = w->idle_ttl;
    r->soft_ttl = w->soft_ttl;
    managed_sandbox_live(r);
    managed_sandbox_used(r);
    r->on_idle = w->on_idle;
    r->on_soft = w->on_soft;
    r->auto_resume = w->auto_resume;
    /* only memory can be bounded, and a container's files are its engine's or cluster's */
    enum config_backend b = sandbox_spec.limits.backend;
    bool elsewhere = b == BACKEND_DOCKER || b == BACKEND_KUBERNETES;
    r->kept = !elsewhere && !sandbox_spec.limits.nested && sandbox_spec.limits.disk == 0;
    snprintf(r->backend, sizeof r->backend, "%s", config_backend_name(b));
    snprintf(r->image, sizeof r->image, "%s",
             b == BACKEND_DOCKER       ? sandbox_spec.limits.docker.image
             : b == BACKEND_KUBERNETES ? sandbox_spec.limits.kubernetes.image
                                       : sandbox_spec.image);
    if (w->pod) {
        r->pod = json_incref(w->pod);
        r->kept = false;
        r->image[0] = '\0';
        snprintf(r->backend, sizeof r->backend, "%s", config_backend_name(BACKEND_POD));
    }
    if (soft_ok(r, r->soft_ttl, err) < 0)
        return -1;
    if (getrandom(r->seed, sizeof r->seed, 0) != sizeof r->seed)
        return err_sys(err, "getrandom");
    return sandbox_make_id("sb", r->id, err);
}

enum { LABELS_NOTED_MAX = 1000 /* bytes */ };

/* Budgets are counted by them, and so they are on record. */
static void note_labels(struct managed_sandbox *r)
{
    char *text = json_dumps(r->labels, JSON_COMPACT | JSON_SORT_KEYS | JSON_ENSURE_ASCII);
    char detail[LABELS_NOTED_MAX + 1];
    snprintf(detail, sizeof detail, "%s", text ? text : "");
    free(text);
    controller_note(r->controller, r->id, "sandbox_labelled", detail);
}

/* From now on it is counted with others that have these. */
static void label(struct managed_sandbox *r, json_t *labels)
{
    bool differ = !json_equal(r->labels, labels);
    json_decref(r->labels);
    r->labels = json_incref(labels);
    if (r->sandbox)
        sandbox_label(r->sandbox, labels);
    if (differ)
        note_labels(r);
}

struct managed_sandbox *managed_sandbox_new(struct controller *c,
                                            const struct managed_sandbox_wish *w, struct err *err)
{
    if (w->name && *w->name && name_is_taken(c, w)) {
        err_set(err, ERR_DENIED, "a sandbox named %s exists already", w->name);
        return NULL;
    }
    struct managed_sandbox *r =
        c->n_managed_sandboxes < MANAGED_SANDBOXES_MAX ? managed_sandbox_blank(c) : NULL;
    if (r == NULL) {
        err_set(err, ERR_UNREADY, "%d sandboxes exist already, or memory is out",
                MANAGED_SANDBOXES_MAX);
        return NULL;
    }
    if (fill(r, w, err) < 0 || managed_sandbox_row_add(r, err) < 0) {
        release(r);
        return NULL;
    }
    bool copies = w->snapshot || w->parent;
    if ((copies ? managed_sandbox_copy(r, w, err) : managed_sandbox_begin(r, false, err)) == 0) {
        managed_sandbox_arm(r);
        if (r->name[0])
            controller_note(c, r->id, "sandbox_named", r->name);
        if (r->pooled)
            controller_note(c, r->id, "sandbox_pooled", r->template);
        if (json_object_size(r->labels) > 0)
            note_labels(r);
        return r;
    }
    snprintf(r->reason, sizeof r->reason, "%.255s", err->text);
    forget(r);
    return NULL;
}

static void take(struct managed_sandbox *r, const struct managed_sandbox_wish *w)
{
    snprintf(r->name, sizeof r->name, "%s", w->name ? w->name : "");
    snprintf(r->token, sizeof r->token, "%s", w->token ? w->token : "");
    json_t *none = json_object();
    label(r, w->labels ? w->labels : none);
    json_decref(none);
    json_decref(r->env);
    r->env = w->env ? json_incref(w->env) : json_object();
    r->created = (int64_t)time(NULL);
    r->ttl = w->ttl;
    r->idle_ttl = w->idle_ttl;
    r->soft_ttl = w->soft_ttl;
    r->on_idle = w->on_idle;
    r->on_soft = w->on_soft;
    r->auto_resume = w->auto_resume;
    managed_sandbox_live(r);
    managed_sandbox_live_soft(r);
}

int managed_sandbox_claim(struct managed_sandbox *r, const struct managed_sandbox_wish *w,
                          struct err *err)
{
    struct controller *c = r->controller;
    char by[CONFIG_TEMPLATE_NAME_MAX + SANDBOX_ID_MAX + 16];
    ASSERT(r->pooled && r->sandbox);
    r->on_soft = w->on_soft;
    if (w->name && *w->name && name_is_taken(c, w))
        return err_set(err, ERR_DENIED, "a sandbox named %s exists already", w->name);
    if (soft_ok(r, w->soft_ttl, err) < 0 || sandbox_taken(r->sandbox, w->env, err) < 0)
        return -1;
    take(r, w);
    r->pooled = r->ready = false;
    if (registry_sandbox_renew(c->registry, r->id, &r->seq, err) < 0 ||
        managed_sandbox_row_save(r, err) < 0) {
        r->pooled = r->unwanted = true;
        return -1;
    }
    TAILQ_REMOVE(&c->managed_sandboxes, r, link);
    TAILQ_INSERT_TAIL(&c->managed_sandboxes, r, link);
    proposals_sandbox_ended(c->proposals, r->id); /* the warm-up's */
    managed_sandbox_used(r);
    snprintf(by, sizeof by, "%s%s%s", r->template, r->token[0] ? " by " : "", r->token);
    controller_note(c, r->id, "sandbox_claimed", by);
    if (r->name[0])
        controller_note(c, r->id, "sandbox_named", r->name);
    return 0;
}

size_t managed_sandboxes_of_token(const struct controller *c, const char *token)
{
    const struct managed_sandbox *r;
    size_t n = 0;
    TAILQ_FOREACH(r, &c->managed_sandboxes, link)
    n += strcmp(r->token, token) == 0;
    return n;
}

int managed_sandbox_await(struct managed_sandbox *r, managed_sandbox_fn fn, void *arg)
{
    if (r->state == MANAGED_SANDBOX_CREATING || r->state == MANAGED_SANDBOX_RESUMING || r->pausing)
        return managed_sandbox_wait_in(&r->running, fn, arg);
    fn(arg, r->state == MANAGED_SANDBOX_RUNNING ? r : NULL, r->reason);
    return 0;
}

int managed_sandbox_delete(struct managed_sandbox *r, const char *why, managed_sandbox_fn fn,
                           void *arg)
{
    if (fn && managed_sandbox_wait_in(&r->gone, fn, arg) < 0)
        return -1;
    if (r->state != MANAGED_SANDBOX_STOPPING) {
        snprintf(r->reason, sizeof r->reason, "%.255s", why);
        managed_sandbox_set_state(r, MANAGED_SANDBOX_STOPPING);
        publications_close(r);
        if (r->sandbox)
            sandbox_end(r->sandbox, 0, why);
    }
    if (r->sandbox == NULL && !r->busy)
        managed_sandbox_dispose(r);
    return 0;
}

int managed_sandbox_change(struct managed_sandbox *r, json_t *labels,
                           const struct managed_sandbox_times *t, struct err *err)
{
    if (soft_ok(r, t->soft_ttl, err) < 0)
        return -1;
    if (labels)
        label(r, labels);
    if (t->ttl >= 0) {
        r->ttl = t->ttl;
        managed_sandbox_live(r);
    }
    if (t->idle_ttl >= 0)
        r->idle_ttl = t->idle_ttl;
    if (t->soft_ttl >= 0) {
        r->soft_ttl = t->soft_ttl;
        managed_sandbox_live_soft(r);
    }
    r->generation++;
    managed_sandbox_arm(r);
    return managed_sandbox_row_save(r, err);
}

/* ---- start and end of the controller ---- */

/* What runs is asked for again. It says no when the daemon was started anew; then the row of one
 * that ran stays as stopped, and others were not whole yet or were going. */
static int adopt(struct managed_sandbox *r, struct err *err)
{
    struct err why = {0};
    bool ends = r->state == MANAGED_SANDBOX_CREATING || r->state == MANAGED_SANDBOX_STOPPING ||
                r->pooled; /* pools are made anew */
    r->adopted = true;
    r->pause_again = r->state == MANAGED_SANDBOX_PAUSED;
    r->state =
        ends ? MANAGED_SANDBOX_STOPPING : MANAGED_SANDBOX_RESUMING; /* the row says it otherwise */
    if (managed_sandbox_begin(r, true, &why) == 0)
        return 0;
    proc_log("sandbox %s cannot be taken over: %s", r->id, why.text); /* its policy is gone? */
    snprintf(r->reason, sizeof r->reason, "%.255s", why.text);
    r->adopted = r->pause_again = false;
    if (!ends)
        r->state = MANAGED_SANDBOX_STOPPED;
    managed_sandbox_arm(r);
    return managed_sandbox_row_save(r, err);
}

/* It was stopped for that, so nothing of it runs, whatever the row says. */
static void take_up_restoring(struct managed_sandbox *r)
{
    r->state = MANAGED_SANDBOX_STOPPED;
    managed_sandbox_confirm(r);
}

int managed_sandboxes_load(struct controller *c, struct err *err)
{
    struct managed_sandbox *r;
    if (registry_sandbox_each(c->registry, managed_sandbox_row_load, c, err) < 0)
        return -1;
    TAILQ_FOREACH(r, &c->managed_sandboxes, link)
    {
        if (r->restoring[0] && r->state != MANAGED_SANDBOX_STOPPING)
            take_up_restoring(r);
        else if (r->state != MANAGED_SANDBOX_STOPPED && adopt(r, err) < 0)
            return -1;
        if (r->state != MANAGED_SANDBOX_STOPPING)
            publications_again(r);
    }
    return 0;
}

void managed_sandboxes_close(struct controller *c)
{
    struct managed_sandbox *r;
    while ((r = TAILQ_FIRST(&c->managed_sandboxes)) != NULL) {
        r->sandbox = NULL;
        execution_end_all(r, "the daemon ended");
        if (r->state == MANAGED_SANDBOX_RUNNING || r->state == MANAGED_SANDBOX_PAUSED ||
            r->state == MANAGED_SANDBOX_RESUMING) {
            snprintf(r->reason, sizeof r->reason, "the daemon ended");
            managed_sandbox_set_state(r, MANAGED_SANDBOX_STOPPED);
        }
        disappoint(r, "the daemon ended");
        managed_sandbox_tell(&r->gone, NULL, "the daemon ended");
        release(r);
    }
}
