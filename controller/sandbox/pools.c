/* Fills pools, hands out what is in them, and runs the warm-up of each sandbox that a template
 * makes.
 */
#include "pools.h"

#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <time.h>

#include "approvals.h"
#include "execution.h"
#include "proc.h"
#include "publication.h"
#include "sandbox_spec.h"
#include "snapshot.h"

enum {
    LOOK_MS = 1000,  /* at least so often, where there are pools */
    AGAIN_MS = 1000, /* after a failure, doubled each time up to */
    AGAIN_DOUBLED = 8,
    REST = 3, /* between two sandboxes, times what the last took, and at least */
    REST_MS = 50,
    QUIET_MS = 100,      /* since somebody asked for one */
    POSTPONED_MS = 2000, /* by what others want, at most */
    SPARE = 64,          /* sandboxes that there can be are left to others */
    WHY_MAX = 256,
    OUTPUT_MAX = 4096,
};

struct pool {
    LIST_ENTRY(pool) link;
    char template[CONFIG_TEMPLATE_NAME_MAX + 1];
    unsigned failures; /* in a row */
    int64_t due;       /* not before that, by CLOCK_MONOTONIC in ms */
    char why[WHY_MAX];
    uint64_t claimed, missed;
};

struct pools {
    struct controller *controller;
    struct event *timer;
    uint32_t generation;
    char making[CONFIG_TEMPLATE_NAME_MAX + 1]; /* whose sandbox is being made; "": none */
    int64_t next;                              /* look; ms, as the following */
    int64_t began, rested, asked, wanted;      /* ms; wanted 0: nothing is */
    LIST_HEAD(, pool) list;
};

/* A sandbox on its way to be had: made, then warmed up. */
struct warm_up {
    struct pools *pools;
    struct config *config; /* of the template */
    const struct config_template *template;
    struct managed_sandbox *r; /* while its command runs */
    managed_sandbox_fn fn;
    void *arg;
};

static int64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void look_in(struct pools *p, int64_t ms)
{
    struct timeval tv = {ms / 1000, (suseconds_t)(ms % 1000) * 1000};
    p->next = now_ms() + ms;
    event_add(p->timer, &tv);
}

void pools_look(struct pools *p)
{
    if (p)
        look_in(p, 0);
}

/* ---- warm-ups ---- */

static void warmed(struct warm_up *w, struct managed_sandbox *r, const char *why)
{
    struct warm_up done = *w;
    free(w);
    done.fn(done.arg, r, why);
    config_unref(done.config);
}

/* The end of what it said, as it can be shown. */
static void add_last_words(char *to, size_t size, struct slice said)
{
    enum { SHOWN = 120 };
    size_t at = strlen(to);
    while (said.n && (unsigned char)said.p[said.n - 1] <= ' ')
        said.n--;
    if (said.n > SHOWN)
        said = (struct slice){said.p + said.n - SHOWN, SHOWN};
    if (said.n == 0)
        return;
    snprintf(to + at, size - at, ": %.*s", SL(said));
    for (char *c = to + at; *c; c++)
        if ((unsigned char)*c < 0x20 || (unsigned char)*c >= 0x7f)
            *c = ' ';
}

/* The sandbox is not freed in here, from which there is a way back to what ended the command. */
static void on_warm_up_ended(void *arg, struct execution *e)
{
    struct warm_up *w = arg;
    char why[WHY_MAX];
    if (execution_status(e) == 0) {
        warmed(w, w->r, "");
        return;
    }
    if (execution_timed_out(e))
        snprintf(why, sizeof why, "its warm-up was not done in %us", w->template->warm_up_timeout);
    else
        snprintf(why, sizeof why, "its warm-up ended with status %u",
                 (unsigned)execution_status(e));
    w->r->unwanted = true;
    pools_look(w->pools);
    controller_note(w->pools->controller, w->r->id, "warm_up_failed", why);
    add_last_words(why, sizeof why, execution_output(e, 1));
    warmed(w, NULL, why);
}

static int add_words(struct strlist *argv, const char *const *words, struct err *err)
{
    for (size_t i = 0; words[i]; i++)
        if (strlist_add(argv, words[i]) < 0)
            return err_set(err, ERR_LIMIT, "its warm-up is too long");
    return 0;
}

static void on_made(void *arg, struct managed_sandbox *r, const char *why)
{
    static const struct execution_ops ops = {.ended = on_warm_up_ended};
    struct warm_up *w = arg;
    struct strlist argv = {0};
    struct err err = {0};
    if (r == NULL || w->template->warm_up == NULL) {
        warmed(w, r, why);
        return;
    }
    const struct execution_command c = {.id = "warm-up",
                                        .argv = &argv,
                                        .timeout = w->template->warm_up_timeout,
                                        .max_output = OUTPUT_MAX};
    w->r = r;
    bool ok = add_words(&argv, w->template->warm_up, &err) == 0 &&
              execution_command(r, &c, &ops, w, &err);
    strlist_done(&argv);
    if (ok)
        return;
    r->unwanted = true;
    pools_look(w->pools);
    warmed(w, NULL, err.text);
}

static int warm_up(struct pools *p, const struct config_template *t, struct managed_sandbox *r,
                   managed_sandbox_fn fn, void *arg)
{
    struct warm_up *w = malloc(sizeof *w);
    if (w == NULL)
        return -1;
    *w = (struct warm_up){p, config_ref(p->controller->config), t, NULL, fn, arg};
    if (managed_sandbox_await(r, on_made, w) == 0)
        return 0;
    config_unref(w->config);
    free(w);
    return -1;
}

/* ---- what a template stands for ---- */

static json_t *volumes_of(const struct config_template *t)
{
    json_t *list = t->sandbox.n_volumes ? json_array() : NULL;
    for (unsigned i = 0; i < t->sandbox.n_volumes; i++)
        json_array_append_new(list, json_string(t->sandbox.volumes[i]));
    return list;
}

/* Those of `over` in place of those of the same name. A new reference. */
static json_t *merged(const json_t *under, json_t *over)
{
    json_t *v = under ? json_copy((json_t *)under) : json_object();
    if (over)
        json_object_update(v, over);
    return v;
}

static int fill_in(struct controller *c, const struct config_template *t,
                   struct managed_sandbox_wish *w, struct err *err)
{
    w->policy = t->policy;
    w->template = t->name;
    if (t->snapshot) {
        w->snapshot = snapshot_find(c, t->snapshot);
        if (w->snapshot == NULL || w->snapshot->layer.state != LAYER_READY ||
            strcmp(w->snapshot->layer.policy, t->policy) != 0)
            return err_set(err, ERR_UNREADY, "there is no snapshot '%s' of the policy '%s'",
                           t->snapshot, t->policy);
    } else if (config_backend_lays_out(t->sandbox.backend)) {
        w->image = t->sandbox.image;
    }
    return 0;
}

/* ---- pools ---- */

static struct pool *find(const struct pools *p, const char *template)
{
    struct pool *o;
    LIST_FOREACH(o, &p->list, link)
    if (strcmp(o->template, template) == 0)
        return o;
    return NULL;
}

static struct pool *need(struct pools *p, const char *template)
{
    struct pool *o = find(p, template);
    if (o || (o = calloc(1, sizeof *o)) == NULL)
        return o;
    snprintf(o->template, sizeof o->template, "%s", template);
    LIST_INSERT_HEAD(&p->list, o, link);
    return o;
}

static bool stays(const struct pools *p, const struct managed_sandbox *r)
{
    return r->pooled && !r->unwanted && r->pool_generation == p->generation &&
           r->state != MANAGED_SANDBOX_STOPPED && r->state != MANAGED_SANDBOX_STOPPING;
}

/* Of those that are pooled by the present configuration: how many, and how many can be had. */
static size_t count(const struct pools *p, const char *template, size_t *ready)
{
    const struct managed_sandbox *r;
    size_t n = 0;
    *ready = 0;
    TAILQ_FOREACH(r, &p->controller->managed_sandboxes, link)
    if (stays(p, r) && strcmp(r->template, template) == 0) {
        n++;
        *ready += r->ready;
    }
    return n;
}

/* Nobody can have them. A deletion may free it at once. */
static void clear_away(struct pools *p)
{
    struct managed_sandbox *r, *next;
    for (r = TAILQ_FIRST(&p->controller->managed_sandboxes); r; r = next) {
        next = TAILQ_NEXT(r, link);
        if (r->state != MANAGED_SANDBOX_STOPPING && (r->pooled ? !stays(p, r) : r->unwanted))
            (void)managed_sandbox_delete(
                r, r->pooled ? "its pool has no use for it" : "its warm-up failed", NULL, NULL);
    }
}

static void failed(struct pools *p, const char *template, const char *why)
{
    struct pool *o = find(p, template);
    if (o == NULL)
        return;
    o->due = now_ms() +
             ((int64_t)AGAIN_MS << (o->failures < AGAIN_DOUBLED ? o->failures : AGAIN_DOUBLED));
    o->failures++;
    snprintf(o->why, sizeof o->why, "%.255s", why);
    proc_log("template %s: a sandbox could not be pooled: %s", template, o->why);
}

static void on_pooled(void *arg, struct managed_sandbox *r, const char *why)
{
    struct pools *p = arg;
    struct err err = {0};
    struct pool *o = find(p, p->making);
    int64_t now = now_ms(), rest = (now - p->began) * REST;
    p->rested = now + (rest > REST_MS ? rest : REST_MS);
    if (r == NULL)
        failed(p, p->making, why);
    p->making[0] = '\0';
    pools_look(p);
    if (r == NULL || !stays(p, r))
        return;
    r->ready = true;
    if (o) {
        o->failures = 0;
        o->why[0] = '\0';
    }
    const struct config_template *t = config_template(p->controller->config, r->template);
    if (t && t->warm_up && managed_sandbox_pause(r, NULL, NULL, &err) < 0)
        proc_log("%s: %s", r->id, err.text);
}

static int make(struct pools *p, const struct config_template *t, struct err *err)
{
    struct managed_sandbox_wish w = {.env = t->env,
                                     .ttl = CONFIG_TTL,
                                     .on_idle = IDLE_DELETE,
                                     .on_soft = IDLE_PAUSE,
                                     .auto_resume = true,
                                     .pooled = true};
    if (fill_in(p->controller, t, &w, err) < 0)
        return -1;
    json_t *volumes = w.volumes = volumes_of(t);
    struct managed_sandbox *r = managed_sandbox_new(p->controller, &w, err);
    json_decref(volumes);
    if (r == NULL)
        return -1;
    r->pool_generation = p->generation;
    snprintf(p->making, sizeof p->making, "%s", t->name);
    if (warm_up(p, t, r, on_pooled, p) == 0)
        return 0;
    p->making[0] = '\0';
    r->unwanted = true;
    return err_set(err, ERR_INTERNAL, "out of memory");
}

/* The emptiest that may be tried, in relation to what it is to hold. */
static const struct config_template *neediest(struct pools *p, int64_t now)
{
    size_t n, ready, least = 0;
    const struct config_template *list = config_templates(p->controller->config, &n), *ret = NULL;
    for (size_t i = 0; i < n; i++) {
        struct pool *o = list[i].pool ? need(p, list[i].name) : NULL;
        size_t have = o ? count(p, list[i].name, &ready) : 0;
        if (o == NULL || have >= list[i].pool || now < o->due)
            continue;
        size_t share = have * CONFIG_POOL_MAX / list[i].pool;
        if (ret == NULL || share < least)
            ret = &list[i];
        least = ret == &list[i] ? share : least;
    }
    return ret;
}

/* Somebody waits for a sandbox, or has just asked for one. */
static bool others_first(const struct pools *p, int64_t now)
{
    const struct managed_sandbox *r;
    if (now - p->asked < QUIET_MS)
        return true;
    TAILQ_FOREACH(r, &p->controller->managed_sandboxes, link)
    if (!r->pooled &&
        (r->state == MANAGED_SANDBOX_CREATING || r->state == MANAGED_SANDBOX_RESUMING))
        return true;
    return false;
}

/* In how many ms to look again. */
static int64_t fill(struct pools *p)
{
    const struct controller *c = p->controller;
    struct err err = {0};
    int64_t now = now_ms();
    if (p->making[0] || c->owner.builder == NULL || !c->owner.recording ||
        c->n_managed_sandboxes + SPARE >= MANAGED_SANDBOXES_MAX)
        return LOOK_MS;
    if (now < p->rested)
        return p->rested - now;
    const struct config_template *t = neediest(p, now);
    if (t == NULL) {
        p->wanted = 0;
        return LOOK_MS;
    }
    p->wanted = p->wanted ? p->wanted : now;
    if (others_first(p, now) && now - p->wanted < POSTPONED_MS)
        return QUIET_MS;
    p->wanted = 0;
    p->began = now;
    if (make(p, t, &err) < 0)
        failed(p, t->name, err.text);
    return LOOK_MS;
}

/* Those that the configuration still has keep what is known of them. */
static void forget_gone(struct pools *p)
{
    struct pool *o, *next;
    for (o = LIST_FIRST(&p->list); o; o = next) {
        const struct config_template *t = config_template(p->controller->config, o->template);
        next = LIST_NEXT(o, link);
        if (t && t->pool)
            continue;
        LIST_REMOVE(o, link);
        free(o);
    }
}

static void on_timer(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
    struct pools *p = arg;
    clear_away(p);
    forget_gone(p);
    int64_t next = fill(p);
    if (!LIST_EMPTY(&p->list))
        look_in(p, next);
}

void pools_reloaded(struct pools *p)
{
    struct pool *o;
    if (p == NULL)
        return;
    p->generation++;
    LIST_FOREACH(o, &p->list, link)
    {
        o->failures = 0;
        o->due = 0;
        o->why[0] = '\0';
    }
    pools_look(p);
}

/* ---- who asks ---- */

/* The one that has been ready for longest. Its warm-up's requests that somebody has yet to decide
 * on would be shown as its new owner's. */
static struct managed_sandbox *ready(const struct pools *p, const struct config_template *t)
{
    struct managed_sandbox *r;
    TAILQ_FOREACH(r, &p->controller->managed_sandboxes, link)
    if (stays(p, r) && r->ready && r->sandbox && strcmp(r->template, t->name) == 0 &&
        !approvals_wait_for(p->controller->approvals, r->id))
        return r;
    return NULL;
}

/* Somebody waits for it, and for its ports. */
struct handing {
    managed_sandbox_fn fn;
    void *arg;
};

static void on_had(void *arg, struct managed_sandbox *r, const char *why)
{
    struct handing h = *(struct handing *)arg;
    free(arg);
    if (r == NULL)
        h.fn(h.arg, NULL, why);
    else if (publications_await(r, h.fn, h.arg) < 0)
        h.fn(h.arg, NULL, "out of memory");
}

static int open_ports(struct managed_sandbox *r, const struct config_template *t,
                      const json_t *publish, struct err *err)
{
    json_t *list = publish ? json_copy((json_t *)publish) : json_array();
    for (unsigned i = 0; i < t->n_ports; i++)
        json_array_append_new(
            list, json_pack("{s:s, s:i}", "address", "127.0.0.1:0", "port", (int)t->ports[i]));
    int bad = json_array_size(list) > PUBLICATIONS_MAX
                  ? err_set(err, ERR_PARSE,
                            "a sandbox publishes %d ports at most, its template's "
                            "among them",
                            PUBLICATIONS_MAX)
                  : publications_open(r, list, err);
    json_decref(list);
    return bad;
}

static struct managed_sandbox *make_for(struct pools *p, const struct config_template *t,
                                        struct managed_sandbox_wish *w, struct err *err)
{
    if (fill_in(p->controller, t, w, err) < 0)
        return NULL;
    json_t *volumes = volumes_of(t);
    w->volumes = volumes;
    struct managed_sandbox *r = managed_sandbox_new(p->controller, w, err);
    json_decref(volumes);
    return r;
}

/* Let it run, or be made; h is taken over, unless it fails. */
static int hand_out(struct pools *p, const struct config_template *t, struct managed_sandbox *r,
                    bool pooled, struct handing *h, struct err *err)
{
    if (!pooled)
        return warm_up(p, t, r, on_had, h) < 0 ? err_set(err, ERR_INTERNAL, "out of memory") : 0;
    if (managed_sandbox_wake(r, err) < 0)
        return -1;
    return managed_sandbox_await(r, on_had, h) < 0 ? err_set(err, ERR_INTERNAL, "out of memory")
                                                   : 0;
}

static void note_asked(struct pools *p)
{
    p->asked = now_ms();
    if (p->next > p->asked + QUIET_MS)
        look_in(p, QUIET_MS);
}

struct managed_sandbox *pools_take(struct pools *p, const struct config_template *t,
                                   const struct pools_wish *w, managed_sandbox_fn fn, void *arg,
                                   struct err *err)
{
    struct managed_sandbox_wish own = w->wish;
    struct managed_sandbox *r = ready(p, t);
    struct pool *o = find(p, t->name);
    struct handing *h = malloc(sizeof *h);
    bool pooled = r != NULL;
    own.labels = merged(t->labels, own.labels);
    own.env = merged(t->env, own.env);
    if (h == NULL)
        r = (err_set(err, ERR_INTERNAL, "out of memory"), NULL);
    else if (r == NULL)
        r = make_for(p, t, &own, err);
    else if (managed_sandbox_claim(r, &own, err) < 0)
        r = NULL;
    json_decref(own.labels);
    json_decref(own.env);
    if (h)
        *h = (struct handing){fn, arg};
    if (r && (open_ports(r, t, w->publish, err) < 0 || hand_out(p, t, r, pooled, h, err) < 0)) {
        r->unwanted = true;
        pools_look(p);
        r = NULL;
    }
    if (r == NULL) {
        free(h);
        return NULL;
    }
    if (o)
        *(pooled ? &o->claimed : &o->missed) += 1;
    note_asked(p);
    return r;
}

json_t *pools_json(const struct pools *p, const struct config_template *t, bool whole)
{
    const struct pool *o = find(p, t->name);
    size_t can, n = count(p, t->name, &can);
    int64_t left = o && o->failures ? o->due - now_ms() : 0;
    json_t *v = json_pack("{s:I, s:I, s:I}", "pool", (json_int_t)t->pool, "ready", (json_int_t)can,
                          "making", (json_int_t)(n - can));
    if (whole && v)
        json_object_update_new(v, json_pack("{s:I, s:I, s:I, s:I, s:s}", "claimed",
                                            (json_int_t)(o ? o->claimed : 0), "missed",
                                            (json_int_t)(o ? o->missed : 0), "failures",
                                            (json_int_t)(o ? o->failures : 0), "retry_in",
                                            (json_int_t)(left > 0 ? (left + 999) / 1000 : 0),
                                            "reason", o ? o->why : ""));
    return v;
}

/* ---- life ---- */

struct pools *pools_new(struct controller *c)
{
    struct pools *p = calloc(1, sizeof *p);
    if (p == NULL)
        return NULL;
    p->controller = c;
    p->generation = 1;
    LIST_INIT(&p->list);
    p->timer = evtimer_new(c->base, on_timer, p);
    if (p->timer)
        return p;
    free(p);
    return NULL;
}

void pools_free(struct pools *p)
{
    struct pool *o;
    if (p == NULL)
        return;
    while ((o = LIST_FIRST(&p->list)) != NULL) {
        LIST_REMOVE(o, link);
        free(o);
    }
    event_free(p->timer);
    free(p);
}
