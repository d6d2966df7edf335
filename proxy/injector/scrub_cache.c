/* Finds a set by its list of names and values, or makes it from all their forms; a timer drops what
 * was not used, and a full cache what was used longest ago. */
#include "scrub_cache.h"

#include <event2/event.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

struct entry {
    struct scrub_source *source;
    size_t n;
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
    while (e->n > 0) {
        struct scrub_source *s = &e->source[--e->n];
        free((char *)(uintptr_t)s->name);
        free((char *)(uintptr_t)s->user);
        secret_unref(s->value);
    }
    free(e->source);
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

static bool same_source(const struct scrub_source *a, const struct scrub_source *b)
{
    return strcmp(a->name, b->name) == 0 &&
           strcmp(a->user ? a->user : "", b->user ? b->user : "") == 0 &&
           (a->value == b->value || secret_eq(a->value, secret_slice(b->value)));
}

static struct entry *find(struct scrub_cache *c, const struct scrub_source *all, size_t n)
{
    struct entry *e;
    TAILQ_FOREACH(e, &c->list, link)
    {
        size_t i = 0;
        while (e->n == n && i < n && same_source(&e->source[i], &all[i]))
            i++;
        if (e->n == n && i == n)
            break;
    }
    return e;
}

static int copy_sources(struct entry *e, const struct scrub_source *all, size_t n)
{
    e->source = calloc(n + 1, sizeof *e->source);
    for (e->n = 0; e->source && e->n < n; e->n++) {
        struct scrub_source *s = &e->source[e->n];
        s->value = secret_ref(all[e->n].value);
        s->name = strdup(all[e->n].name);
        s->user = strdup(all[e->n].user ? all[e->n].user : "");
        if (s->name == NULL || s->user == NULL) {
            e->n++;
            return -1;
        }
    }
    return e->source ? 0 : -1;
}

static struct scrub_set *make_set(const struct scrub_source *all, size_t n)
{
    struct scrub_forms *forms = calloc(n + 1, sizeof *forms);
    struct scrub_part *part = calloc(n + 1, sizeof *part);
    bool ok = forms && part;
    size_t made = 0;
    while (ok && made < n) {
        part[made] = (struct scrub_part){&forms[made], all[made].name};
        ok = scrub_forms_make(&forms[made], secret_slice(all[made].value), all[made].user) == 0;
        made++;
    }
    struct scrub_set *set = ok ? scrub_set_join(part, n) : NULL;
    while (made > 0)
        scrub_forms_free(&forms[--made]);
    free(forms);
    free(part);
    return set;
}

static struct entry *make(const struct scrub_source *all, size_t n)
{
    struct entry *e = calloc(1, sizeof *e);
    if (e == NULL)
        return NULL;
    e->set = make_set(all, n);
    if (e->set == NULL || copy_sources(e, all, n) < 0) {
        entry_free(e);
        return NULL;
    }
    return e;
}

struct scrub_set *scrub_cache_get(struct scrub_cache *c, const struct scrub_source *all, size_t n)
{
    static const struct timeval period = {SCRUB_CACHE_IDLE_SECONDS / 2, 0};
    struct entry *e = find(c, all, n);
    if (e) {
        TAILQ_REMOVE(&c->list, e, link);
    } else {
        e = make(all, n);
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
