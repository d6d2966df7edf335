#include "scrub_cache.h"

#include <event2/event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

struct entry {
    char *name, *user; /* user "" for none */
    struct secret *value;
    struct scrub_set *set;
    bool used; /* since the last sweep */
    TAILQ_ENTRY(entry) link;
};

struct scrub_cache {
    struct event *sweep;
    unsigned n;
    TAILQ_HEAD(entries, entry) list; /* the one used last first */
};

static void entry_free(struct entry *e)
{
    free(e->name);
    free(e->user);
    secret_unref(e->value);
    scrub_set_unref(e->set);
    free(e);
}

static void drop(struct scrub_cache *c, struct entry *e)
{
    TAILQ_REMOVE(&c->list, e, link);
    c->n--;
    entry_free(e);
}

static void on_sweep(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
    struct scrub_cache *c = arg;
    struct entry *e, *next;
    for (e = TAILQ_FIRST(&c->list); e; e = next) {
        next = TAILQ_NEXT(e, link);
        if (!e->used)
            drop(c, e);
        else
            e->used = false;
    }
    if (c->n == 0)
        event_del(c->sweep);
}

struct scrub_cache *scrub_cache_new(struct event_base *base)
{
    struct scrub_cache *c = calloc(1, sizeof *c);
    if (c == NULL)
        return NULL;
    TAILQ_INIT(&c->list);
    c->sweep = event_new(base, -1, EV_PERSIST, on_sweep, c);
    if (c->sweep == NULL) {
        free(c);
        return NULL;
    }
    return c;
}

void scrub_cache_free(struct scrub_cache *c)
{
    struct entry *e;
    if (c == NULL)
        return;
    while ((e = TAILQ_FIRST(&c->list)) != NULL)
        drop(c, e);
    event_free(c->sweep);
    free(c);
}

static struct entry *find(struct scrub_cache *c, const char *name, const char *user)
{
    struct entry *e;
    TAILQ_FOREACH(e, &c->list, link)
    if (strcmp(e->name, name) == 0 && strcmp(e->user, user) == 0)
        return e;
    return NULL;
}

static struct entry *make(const char *name, struct secret *value, const char *user)
{
    struct scrub_forms forms;
    struct entry *e = calloc(1, sizeof *e);
    if (e == NULL)
        return NULL;
    e->name = strdup(name);
    e->user = strdup(user ? user : "");
    e->value = secret_ref(value);
    if (scrub_forms_make(&forms, secret_slice(value), user) == 0)
        e->set = scrub_set_new(&forms, name);
    scrub_forms_free(&forms);
    if (e->name == NULL || e->user == NULL || e->set == NULL) {
        entry_free(e);
        return NULL;
    }
    return e;
}

struct scrub_set *scrub_cache_get(struct scrub_cache *c, const char *name, struct secret *value,
                                  const char *user)
{
    static const struct timeval period = {SCRUB_CACHE_IDLE_SECONDS / 2, 0};
    struct entry *e = find(c, name, user ? user : "");
    if (e && e->value != value && !secret_eq(e->value, secret_slice(value))) {
        drop(c, e); /* rotated */
        e = NULL;
    }
    if (e) {
        TAILQ_REMOVE(&c->list, e, link);
    } else {
        e = make(name, value, user);
        if (e == NULL)
            return NULL;
        if (c->n == SCRUB_CACHE_MAX)
            drop(c, TAILQ_LAST(&c->list, entries));
        if (c->n++ == 0)
            event_add(c->sweep, &period);
    }
    TAILQ_INSERT_HEAD(&c->list, e, link);
    e->used = true;
    return scrub_set_ref(e->set);
}
