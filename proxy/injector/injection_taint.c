/* What the reply of an injection is searched for: all that its policy sends to that host by any
 * rule, or has captured there, whoever asks (promise P1). Every value is at hand before the request
 * leaves; one that gets another value meanwhile is searched for in both. */
#include "injection_internal.h"

#include "policy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct wanted {
    struct injection *injection;
    const struct taint *taint;
    struct secret_wait *wait;
    struct sign_wait *list;
};

/* Calls fn for each taint of the injection's host, by its own policy, and by a newer one. */
static void each_taint(const struct injection *g, void (*fn)(void *arg, const struct taint *t),
                       void *arg)
{
    const struct policy *by[] = {g->decided.policy, g->injector->policy};
    const struct taint *lists[POLICY_TAINTS_MAX];
    for (size_t k = 0; k < (by[0] == by[1] ? 1 : ARRAY_LEN(by)); k++) {
        size_t n = policy_taints(by[k], &g->authority, lists);
        for (size_t i = 0; i < n; i++)
            for (const struct taint *t = lists[i]; t; t = t->next)
                fn(arg, t);
    }
}

static void note(void *arg, const struct taint *t)
{
    struct injection *g = arg;
    g->searched = true;
    if (g->decided.rule->credential == NULL && t->on_reflect > g->on_reflect)
        g->on_reflect = t->on_reflect;
}

void injection_taint_begin(struct injection *g)
{
    g->on_reflect = g->decided.rule->on_reflect;
    each_taint(g, note, g);
}

/* ---- values ---- */

struct sources {
    const struct injection *of;
    struct scrub_source *all; /* NULL: they are counted */
    size_t n;
    bool too_short;
};

static void add_value(struct sources *s, const struct taint *t, struct secret *v)
{
    size_t n = secret_slice(v).n;
    s->too_short = s->too_short || n < SCRUB_VALUE_MIN;
    if (n < SCRUB_VALUE_MIN || n > SCRUB_VALUE_MAX) /* longer ones are never sent */
        return;
    if (s->all)
        s->all[s->n] = (struct scrub_source){t->secret, t->user, v};
    s->n++;
}

/* What the request goes with, or went, is kept by itself: so many others may have come since it was
 * got that it is recalled no more, and a sandbox may bring them about. */
static void add_source(void *arg, const struct taint *t)
{
    struct sources *s = arg;
    const struct recalled *at = NULL;
    struct secret *v, *own = s->of->own ? s->of->own : s->of->value;
    if (own && strcmp(t->secret, s->of->decided.credential->secret) != 0)
        own = NULL;
    while ((v = recall_next(s->of->injector->recall, t->secret, &at)) != NULL) {
        add_value(s, t, v);
        if (own && secret_eq(own, secret_slice(v)))
            own = NULL;
    }
    if (own)
        add_value(s, t, own);
}

static struct scrub_set *set_of(struct injection *g)
{
    struct sources s = {.of = g};
    each_taint(g, add_source, &s);
    s.all = calloc(s.n + 1, sizeof *s.all);
    if (s.all == NULL)
        return NULL;
    s.n = 0;
    each_taint(g, add_source, &s);
    g->unsearched = g->unsearched || s.too_short;
    struct scrub_set *set = scrub_cache_get(g->injector->scrubs, s.all, s.n);
    free(s.all);
    return set;
}

int injection_scrub_begin(struct injection *g)
{
    struct scrub_set *set = set_of(g);
    g->scrub = set ? scrub_new(set) : NULL;
    scrub_set_unref(set);
    if (g->scrub == NULL)
        return -1;
    LIST_INSERT_HEAD(&g->injector->searching, g, link);
    g->linked = true;
    return 0;
}

struct name_asked {
    const char *name;
    bool found;
};

static void find_name(void *arg, const struct taint *t)
{
    struct name_asked *a = arg;
    a->found = a->found || strcmp(t->secret, a->name) == 0;
}

/* -1: its reply cannot be searched for the new value. */
static int search_anew(struct injection *g, const char *name)
{
    struct name_asked asked = {name, false};
    each_taint(g, find_name, &asked);
    if (!asked.found)
        return 0;
    struct scrub_set *set = set_of(g);
    int r = set ? scrub_switch(g->scrub, set) : -1;
    scrub_set_unref(set);
    return r;
}

int injection_remember(struct injector *i, const char *name, const char *sandbox,
                       struct secret *value)
{
    struct injection *g, *next;
    int r = recall_put(i->recall, name, sandbox, value);
    for (g = LIST_FIRST(&i->searching); r > 0 && g; g = next) {
        next = LIST_NEXT(g, link);
        if (search_anew(g, name) < 0)
            return -1; /* the value does not go out */
    }
    return r < 0 ? -1 : 0;
}

static void cancel_wanted(struct injection *g)
{
    for (; g->n_wanted > 0; g->n_wanted--) {
        secret_client_cancel(g->wanted[g->n_wanted - 1].wait);
        secret_client_sign_cancel(g->wanted[g->n_wanted - 1].list);
    }
}

void injection_taint_end(struct injection *g)
{
    cancel_wanted(g);
    free(g->wanted);
    g->wanted = NULL;
    secret_unref(g->own);
    g->own = NULL;
    if (g->linked)
        LIST_REMOVE(g, link);
    g->linked = false;
}

/* ---- before the request leaves ---- */

static void settle(struct injection *g)
{
    if (g->refuse_code) {
        cancel_wanted(g);
        injection_deny(g, g->refuse_status, g->refuse_code, g->refuse_detail);
    } else if (g->left == 0)
        injection_admit(g);
}

/* One less to wait for; why: it cannot be had. */
static void answered(struct injection *g, const char *code, const char *why)
{
    g->left--;
    if (code && g->refuse_code == NULL) {
        g->refuse_status = 503;
        g->refuse_code = code;
        snprintf(g->refuse_detail, sizeof g->refuse_detail, "%.120s", why);
    }
    if (!g->asking)
        settle(g);
}

/* A value that cannot be had, and was not had before, has not been sent from here: there is nothing
 * to search for, and a broken secret does not take its host from the others. Where another injector
 * of the policy may have sent it, nothing goes there without it. */
static void on_value(void *arg, struct secret *value, const struct err *err)
{
    struct wanted *w = arg;
    struct injection *g = w->injection;
    const struct taint *t = w->taint;
    w->wait = NULL;
    if (value == NULL) {
        const struct recalled *at = NULL;
        bool missed = g->injector->several && err->code != ERR_DENIED && /* nobody can have it */
                      recall_next(g->injector->recall, t->secret, &at) == NULL;
        answered(g, missed ? "secret_unavailable" : NULL, missed ? err->text : "");
        return;
    }
    struct slice v = secret_slice(value);
    ssize_t blank = t->aws ? slice_find(v, ' ') : -1;
    struct secret *sent = !t->aws     ? secret_ref(value)
                          : blank < 0 ? NULL
                                      : secret_new(v.p + blank + 1, v.n - (size_t)blank - 1);
    bool ok = sent ? injection_remember(g->injector, t->secret, NULL, sent) == 0 : blank < 0;
    secret_unref(sent);
    answered(g, ok ? NULL : "memory", "");
}

/* What other sandboxes of the policy have captured; an injector that was started again asks. */
static void on_list(void *arg, struct slice body UNUSED, const struct slice *values, size_t n,
                    const struct err *err)
{
    struct wanted *w = arg;
    struct injection *g = w->injection;
    const char *name = w->taint->secret;
    bool ok = true;
    w->list = NULL;
    if (err && err->code != ERR_NONE) {
        answered(g, err->code == ERR_LIMIT ? "share_used" : "secret_unavailable", err->text);
        return;
    }
    for (size_t i = n; i > 0 && ok; i--) { /* the vault names first what was used last */
        struct secret *v = secret_new(values[i - 1].p, values[i - 1].n);
        ok = v && injection_remember(g->injector, name, "", v) == 0;
        secret_unref(v);
    }
    if (ok)
        ok = recall_mark_listed(g->injector->recall, name) == 0;
    answered(g, ok ? NULL : "memory", "");
}

/* What this request itself is filled with is here already. */
static bool is_own(const struct injection *g, const struct taint *t)
{
    const struct credential *c = g->decided.credential;
    return c && !c->captured && strcmp(c->secret, t->secret) == 0 &&
           (c->kind == CREDENTIAL_AWS) == t->aws;
}

static void want(void *arg, const struct taint *t)
{
    struct injection *g = arg;
    if (is_own(g, t) || (t->captured && recall_is_listed(g->injector->recall, t->secret)))
        return;
    for (size_t i = 0; g->wanted && i < g->n_wanted; i++)
        if (strcmp(g->wanted[i].taint->secret, t->secret) == 0 && g->wanted[i].taint->aws == t->aws)
            return;
    if (g->wanted)
        g->wanted[g->n_wanted] = (struct wanted){.injection = g, .taint = t};
    g->n_wanted++;
}

void injection_search(struct injection *g)
{
    struct secret_client *c = g->injector->secrets;
    if (g->searched) {
        each_taint(g, want, g);
        g->wanted = calloc(g->n_wanted + 1, sizeof *g->wanted);
        g->n_wanted = 0;
        if (g->wanted == NULL) {
            injection_deny(g, 503, "memory", "");
            return;
        }
        each_taint(g, want, g);
    }
    injection_set_state(g, G_SECRET);
    g->left = g->n_wanted;
    g->asking = true;
    for (size_t i = 0; i < g->n_wanted; i++) {
        struct wanted *w = &g->wanted[i];
        if (w->taint->captured)
            w->list =
                secret_client_captured_all(c, g->decided.sandbox, w->taint->secret, on_list, w);
        else
            w->wait = secret_client_look(c, w->taint->secret, on_value, w);
    }
    g->asking = false;
    settle(g);
}
