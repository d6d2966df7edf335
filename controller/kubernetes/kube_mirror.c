/* Holds a list and applies what a watch tells of it. */
#include "kube_mirror.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kube_client.h"

#define META "g=meta.k8s.io;v=v1"

enum {
    WATCH_S = 240,     /* then the watch is begun again where it was, */
    LATE_S = 5,        /* by us where the API server did not end it */
    LIST_S = 3600,     /* a list so old is made anew: the API server's data may have gone back */
    SHORT_S = 2,       /* one that ends sooner is not begun again at once */
    LASTED_S = 60,     /* one that lasted so long was in order, whatever was before */
    DOUBLED = 4,       /* times: the rest before one that could not be read is begun again */
    MIRRORS_MAX = 4,   /* waited for together */
    VERSION_MAX = 32,  /* bytes of a resourceVersion */
    KEY_MAX = 320,     /* NAMESPACE/NAME */
    WATCH_PATH = 1024, /* bytes */
};

struct kube_mirror {
    struct kube_mirror_of of;
    json_t *items, *fresh;     /* fresh: of a list that is being read */
    size_t bytes;              /* of texts in the one that is filled */
    char version[VERSION_MAX]; /* "": all has to be listed */
    struct kube_stream stream;
    struct buf in;
    int64_t began, listed;
    int64_t again;   /* milliseconds: nothing is asked before */
    unsigned failed; /* so often what came could not be read */
    bool changed;
};

static int64_t milliseconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static int64_t seconds(void)
{
    return milliseconds() / 1000;
}

struct kube_mirror *kube_mirror_new(const struct kube_mirror_of *of)
{
    struct kube_mirror *m = calloc(1, sizeof *m);
    if (m == NULL)
        return NULL;
    m->of = *of;
    m->stream.fd = -1;
    buf_init(&m->in, KUBE_ANSWER_MAX);
    m->items = json_object();
    if (m->items)
        return m;
    free(m);
    return NULL;
}

void kube_mirror_free(struct kube_mirror *m)
{
    if (m == NULL)
        return;
    kube_unwatch(&m->stream);
    buf_free(&m->in);
    json_decref(m->items);
    free(m);
}

const json_t *kube_mirror_items(const struct kube_mirror *m)
{
    return m->items;
}

json_t *kube_mirror_list(const struct kube_mirror *m)
{
    json_t *all = json_array(), *one;
    const char *key;
    json_object_foreach(m->items, key, one)
    {
        if (all && json_array_append(all, one) < 0) {
            json_decref(all);
            all = NULL;
        }
    }
    return all;
}

static bool is_listed(const struct kube_mirror *m)
{
    return m->version[0] != '\0';
}

/* ---- objects ---- */

static const char *text_of(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(json_object_get(object, "metadata"), key));
}

static int key_of(const json_t *object, char key[KEY_MAX])
{
    const char *ns = text_of(object, "namespace"), *name = text_of(object, "name");
    int n = name ? snprintf(key, KEY_MAX, "%s%s%s", ns ? ns : "", ns ? "/" : "", name) : -1;
    return n > 0 && n < KEY_MAX ? 0 : -1;
}

static int take_version(struct kube_mirror *m, const char *text)
{
    size_t n = text ? strlen(text) : 0;
    if (n == 0 || n >= VERSION_MAX || strspn(text, "0123456789") != n)
        return -1;
    memcpy(m->version, text, n + 1);
    return 0;
}

static int drop(struct kube_mirror *m, json_t *from, const char *key)
{
    m->bytes -= json_string_length(json_object_get(from, key)); /* 0 of what is no text */
    if (json_object_del(from, key) == 0)
        m->changed = true;
    return 0;
}

static int put(struct kube_mirror *m, json_t *to, const json_t *object)
{
    char key[KEY_MAX];
    if (key_of(object, key) < 0)
        return -1;
    json_t *kept = m->of.keep(object), *had = json_object_get(to, key);
    if (kept == NULL)
        return drop(m, to, key);
    if (had && json_equal(had, kept)) {
        json_decref(kept);
        return 0;
    }
    m->changed = true;
    size_t bytes = m->bytes - json_string_length(had) + json_string_length(kept);
    if ((had == NULL && json_object_size(to) >= KUBE_MIRROR_MAX) || bytes > KUBE_MIRROR_BYTES) {
        json_decref(kept);
        return -1;
    }
    m->bytes = bytes;
    return json_object_set_new(to, key, kept);
}

/* Of what is kept of an object; 0 where that is not kept. */
static json_int_t generation_of(const struct kube_mirror *m, const json_t *object)
{
    char key[KEY_MAX];
    const json_t *kept = key_of(object, key) == 0 ? json_object_get(m->items, key) : NULL;
    return json_integer_value(json_object_get(json_object_get(kept, "metadata"), "generation"));
}

void kube_mirror_put(struct kube_mirror *m, const json_t *object)
{
    bool had = m->changed;
    json_int_t before = generation_of(m, object);
    (void)put(m, m->items, object);
    m->changed = had || generation_of(m, object) != before;
}

static int apply(struct kube_mirror *m, const char *type, const json_t *object)
{
    char key[KEY_MAX];
    if (strcmp(type, "ADDED") == 0 || strcmp(type, "MODIFIED") == 0)
        return put(m, m->items, object);
    if (strcmp(type, "DELETED") == 0)
        return key_of(object, key) < 0 ? -1 : drop(m, m->items, key);
    return strcmp(type, "BOOKMARK") == 0 ? 0 : -1; /* ERROR: what was asked for is too old */
}

/* What is in doubt is listed anew, and so is all that comes behind it. */
static void on_event(const json_t *event, void *arg)
{
    struct kube_mirror *m = arg;
    const char *type = json_string_value(json_object_get(event, "type"));
    const json_t *object = json_object_get(event, "object");
    if (is_listed(m) && (type == NULL || apply(m, type, object) < 0 ||
                         take_version(m, text_of(object, "resourceVersion")) < 0))
        m->version[0] = '\0';
}

/* ---- lists ---- */

static int take_page(const json_t *page, void *arg, struct err *err)
{
    struct kube_mirror *m = arg;
    const json_t *one;
    size_t i;
    json_array_foreach(json_object_get(page, "items"), i, one)
    {
        if (put(m, m->fresh, one) < 0)
            return err_set(err, ERR_LIMIT, "the list of %.200s is too long, or malformed",
                           m->of.path);
    }
    return take_version(m, text_of(page, "resourceVersion")) < 0
               ? err_set(err, ERR_UPSTREAM, "the list of %.200s is malformed", m->of.path)
               : 0;
}

static int list_all(struct kube_mirror *m, const struct kube *k, struct err *err)
{
    size_t had = m->bytes;
    m->fresh = json_object();
    m->bytes = 0;
    int r = m->fresh ? kube_pages(k, m->of.path,
                                  m->of.names_only ? "PartialObjectMetadataList;" META : NULL,
                                  take_page, m, err)
                     : err_set(err, ERR_INTERNAL, "out of memory");
    if (r == 0) {
        json_decref(m->items);
        m->items = m->fresh;
        m->listed = seconds();
    } else {
        m->version[0] = '\0';
        m->bytes = had;
        json_decref(m->fresh);
    }
    m->fresh = NULL;
    return r;
}

/* ---- watches ---- */

/* bad: by what nobody can read. What comes next may be the same, so it is asked for less and less
 * often; the other mirrors go on meanwhile, and what is held stays. */
static void end(struct kube_mirror *m, bool bad)
{
    int64_t lasted = seconds() - m->began;
    kube_unwatch(&m->stream);
    buf_free(&m->in);
    if (bad || seconds() - m->listed >= LIST_S)
        m->version[0] = '\0';
    if (lasted >= LASTED_S)
        m->failed = 0;
    unsigned rest = bad && m->failed ? 1u << m->failed : lasted < SHORT_S;
    m->again = milliseconds() + (int64_t)rest * 1000;
    if (!bad || m->failed == DOUBLED)
        return;
    m->failed++;
    fprintf(stderr,
            "durward-kubernetes: what comes of %.200s cannot be read: it is asked for again in %u "
            "s\n",
            m->of.path, rest);
}

/* It stays as it is until then. */
static bool is_resting(const struct kube_mirror *m)
{
    return m->stream.fd < 0 && milliseconds() < m->again;
}

static int begin(struct kube_mirror *m, const struct kube *k, struct err *err)
{
    char path[WATCH_PATH];
    int status;
    snprintf(path, sizeof path,
             "%s%cwatch=1&allowWatchBookmarks=true&timeoutSeconds=%d&resourceVersion=%s",
             m->of.path, strchr(m->of.path, '?') ? '&' : '?', WATCH_S, m->version);
    struct kube_request q = {.method = "GET",
                             .path = path,
                             .as = m->of.names_only ? "PartialObjectMetadata;" META : NULL};
    if (kube_listen(k, &q, &m->stream, &m->in, &status, err) < 0)
        return -1;
    m->began = seconds();
    if (status == 200)
        return 0;
    kube_unwatch(&m->stream);
    buf_free(&m->in);
    m->version[0] = '\0'; /* 410: too old */
    return err_set(err, ERR_UPSTREAM, "the API server lets nobody watch %.200s: %d", m->of.path,
                   status);
}

/* When it is begun again, whether or not the API server has ended it: one that hangs says nothing,
 * and its kernel, or what stands before it, answers for it all the same. */
static int64_t over(const struct kube_mirror *m)
{
    return m->began + WATCH_S + LATE_S;
}

/* Whether it goes on. */
static bool hear(struct kube_mirror *m)
{
    int more = kube_heard(&m->stream, &m->in, on_event, m);
    if (more > 0 && is_listed(m) && seconds() < over(m))
        return true;
    end(m, more < 0 || !is_listed(m));
    return false;
}

int kube_mirror_sync(struct kube_mirror *m, const struct kube *k, struct err *err)
{
    if (m->stream.fd >= 0)
        (void)hear(m); /* whoever failed with what was there has not waited */
    m->changed = m->changed && !is_resting(m); /* who asks looks at all that is there */
    if (is_resting(m))
        return 0;
    if (m->stream.fd < 0 && !is_listed(m) && list_all(m, k, err) < 0)
        return -1;
    if (m->stream.fd < 0 && begin(m, k, err) < 0)
        return -1;
    m->changed = false;
    return 0;
}

bool kube_mirror_wait(struct kube_mirror *const *list, size_t n, unsigned limit)
{
    struct pollfd p[MIRRORS_MAX];
    int64_t last = milliseconds() + (int64_t)limit * 1000;
    for (;;) {
        bool woken = false, all = true;
        for (size_t i = 0; i < n && i < MIRRORS_MAX; i++) {
            struct kube_mirror *m = list[i];
            all = ((m->stream.fd >= 0 && hear(m)) || is_resting(m)) && all;
            int64_t until = m->stream.fd >= 0 ? over(m) * 1000 : m->again;
            last = until < last ? until : last;
            woken = woken || (m->of.wakes && m->changed);
            m->changed = m->changed && !m->of.wakes;
            p[i] = (struct pollfd){.fd = m->stream.fd, .events = POLLIN};
        }
        int64_t left = last - milliseconds();
        if (woken || !all || left <= 0)
            return woken;
        (void)poll(p, n, (int)left);
    }
}
