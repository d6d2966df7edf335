/* A table of REFUSAL_COUNTERS_TARGETS targets and one place for all others, told once a period; a
 * period in which nothing was refused empties it. */
#include "refusal_counters.h"

#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TARGET_MAX = 272 };

struct entry {
    enum record_kind kind;
    const char *code; /* constant */
    char target[TARGET_MAX];
    uint64_t count; /* not told yet */
};

struct refusal_counters {
    struct event *flush;
    unsigned seconds;
    refusal_counters_fn fn;
    void *arg;
    size_t n;
    bool armed;
    struct entry entries[REFUSAL_COUNTERS_TARGETS + 1]; /* the last one is "other" */
};

static void tell_all(struct refusal_counters *t)
{
    bool any = false;
    for (size_t i = 0; i < t->n; i++) {
        struct entry *e = &t->entries[i];
        if (e->count == 0)
            continue;
        uint64_t count = e->count;
        e->count = 0;
        any = true;
        t->fn(t->arg, e->kind, e->code, e->target, count);
    }
    if (!any)
        t->n = 0; /* a quiet period: forget the targets, the next of each is told at once */
}

static void arm(struct refusal_counters *t)
{
    struct timeval tv = {t->seconds, 0};
    event_add(t->flush, &tv);
    t->armed = true;
}

static void on_flush(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
    struct refusal_counters *t = arg;
    t->armed = false;
    tell_all(t);
    if (t->n > 0)
        arm(t);
}

struct refusal_counters *refusal_counters_new(struct event_base *base, unsigned seconds,
                                              refusal_counters_fn fn, void *arg)
{
    struct refusal_counters *t = calloc(1, sizeof *t);
    if (t == NULL)
        return NULL;
    t->seconds = seconds;
    t->fn = fn;
    t->arg = arg;
    t->flush = event_new(base, -1, 0, on_flush, t);
    if (t->flush == NULL) {
        free(t);
        return NULL;
    }
    return t;
}

void refusal_counters_free(struct refusal_counters *t)
{
    if (t == NULL)
        return;
    tell_all(t);
    event_free(t->flush);
    free(t);
}

static struct entry *find(struct refusal_counters *t, enum record_kind kind, const char *code,
                          const char *target)
{
    for (size_t i = 0; i < t->n; i++) {
        struct entry *e = &t->entries[i];
        if (e->kind == kind && strcmp(e->code, code) == 0 && strcmp(e->target, target) == 0)
            return e;
    }
    return NULL;
}

void refusal_counters_add(struct refusal_counters *t, enum record_kind kind, const char *code,
                          const char *target, uint64_t count)
{
    struct entry *e = find(t, kind, code, target);
    if (e == NULL && t->n >= REFUSAL_COUNTERS_TARGETS) {
        target = "other";
        e = find(t, kind, code, target);
        if (e == NULL && t->n > REFUSAL_COUNTERS_TARGETS) {
            /* several kinds overflow at once: they share the one place there is, still counted */
            e = &t->entries[REFUSAL_COUNTERS_TARGETS];
        }
    }
    if (e) {
        e->count += count;
        return;
    }
    e = &t->entries[t->n++];
    e->kind = kind;
    e->code = code;
    e->count = 0;
    snprintf(e->target, sizeof e->target, "%s", target);
    if (!t->armed)
        arm(t);
    t->fn(t->arg, kind, code, e->target, count);
}
