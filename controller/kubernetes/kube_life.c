/* Asks for the pod, follows it, and removes what nobody keeps. */
#define _GNU_SOURCE 1
#include "kube_life.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cluster.h"
#include "kube_manifest.h"
#include "kube_owned.h"
#include "proc.h"

enum {
    PATH_SIZE = 512,
    RUN_S = 100, /* until it runs */
    WATCH_S = 240,
    GONE_S = 15, /* until its node says that it is gone */
    SWEEP_S = 60,
};

static const struct timespec moment = {0, 200000000};

static int64_t seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec;
}

static void path_of(const struct kube_place *at, char path[PATH_SIZE])
{
    snprintf(path, PATH_SIZE, "/api/v1/namespaces/%s/pods/%s", at->ns, at->pod);
}

/* ---- what others left ---- */

/* -1: it is not ours, or the API server does not take that. */
static int remove_pod(const struct kube_place *at, const json_t *pod, const char *name)
{
    struct err ignored = {0};
    char path[PATH_SIZE];
    json_t *said = NULL, *body = kube_removal(pod, at->daemon);
    struct kube_place one = {at->kube, at->ns, name, at->daemon};
    path_of(&one, path);
    struct kube_request q = {
        .method = "DELETE", .path = path, .type = "application/json", .body = body};
    int r = body ? kube_must(at->kube, &q, &said, &ignored) : -1;
    json_decref(body);
    json_decref(said);
    return r;
}

static int sweep_page(const json_t *page, void *arg, struct err *err)
{
    const struct kube_place *at = arg;
    const json_t *pod;
    size_t i;
    (void)err;
    json_array_foreach(json_object_get(page, "items"), i, pod)
    {
        const char *name =
            json_string_value(json_object_get(json_object_get(pod, "metadata"), "name"));
        if (name == NULL || strchr(name, '/') || strlen(name) > 100 ||
            kube_is_kept(CLUSTER_LOCKS, name))
            continue;
        if (remove_pod(at, pod, name) == 0)
            (void)unlinkat(CLUSTER_LOCKS, name, 0);
    }
    return 0;
}

/* Now and then: each look is a list of all. */
static void sweep(const struct kube_place *at)
{
    struct stat st;
    struct err err = {0};
    char path[PATH_SIZE];
    int fd = openat(CLUSTER_LOCKS, ".swept", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    bool due = fd >= 0 && fstat(fd, &st) == 0 && flock(fd, LOCK_EX | LOCK_NB) == 0 &&
               (st.st_size == 0 || st.st_mtime + SWEEP_S < time(NULL));
    snprintf(path, sizeof path,
             "/api/v1/namespaces/%s/pods?labelSelector=durward.internal%%2Fdaemon%%3D%s", at->ns,
             at->daemon);
    if (due && kube_pages(at->kube, path, NULL, sweep_page, (void *)at, &err) == 0 &&
        pwrite(fd, "x", 1, 0) == 1)
        (void)futimens(fd, NULL);
    if (fd >= 0)
        close(fd);
}

/* ---- what becomes of it ---- */

/* version: of what was seen, so that a watch from there misses nothing. */
static enum kube_pod_state look(const struct kube_place *at, char version[40], char *why,
                                size_t size, struct err *err)
{
    char path[PATH_SIZE];
    json_t *said;
    int status;
    path_of(at, path);
    struct kube_request q = {.method = "GET", .path = path};
    version[0] = why[0] = '\0';
    if (kube_ask(at->kube, &q, &status, &said, err) < 0)
        return KUBE_POD_COMES; /* err says that it is not known */
    enum kube_pod_state r = KUBE_POD_OVER;
    if (status == 404)
        snprintf(why, size, "the pod was deleted");
    else if (status != 200)
        err_set(err, ERR_UPSTREAM, "the API server does not tell of the pod: %d", status);
    else
        r = kube_pod_state(said, why, size);
    const char *text =
        json_string_value(json_object_get(json_object_get(said, "metadata"), "resourceVersion"));
    if (text && strspn(text, "0123456789") == strlen(text))
        snprintf(version, 40, "%.39s", text);
    json_decref(said);
    return err->code == ERR_NONE ? r : KUBE_POD_COMES;
}

static void wait_for_change(const struct kube_place *at, const char *version, unsigned limit)
{
    char path[PATH_SIZE];
    struct kube_stream s = {.fd = -1};
    struct err ignored = {0};
    snprintf(path, sizeof path,
             "/api/v1/namespaces/%s/pods?watch=1&fieldSelector=metadata.name%%3D%s"
             "&timeoutSeconds=%u&resourceVersion=%s",
             at->ns, at->pod, limit, version);
    if (version[0] && kube_watch(at->kube, path, &s, &ignored) == 0) {
        bool told = kube_wait(&s, 1, limit);
        kube_unwatch(&s);
        if (told)
            return;
    }
    (void)clock_nanosleep(CLOCK_MONOTONIC, 0, &moment, NULL); /* one that only ends is asked less */
}

/* The last warning that the cluster has of it, where we may ask for that. */
static void last_warning(const struct kube_place *at, char *why, size_t size)
{
    char path[PATH_SIZE];
    json_t *all = NULL, *one;
    struct err ignored = {0};
    size_t i;
    snprintf(path, sizeof path,
             "/api/v1/namespaces/%s/events?fieldSelector=involvedObject.name%%3D%s", at->ns,
             at->pod);
    struct kube_request q = {.method = "GET", .path = path};
    if (kube_must(at->kube, &q, &all, &ignored) < 0)
        return;
    json_array_foreach(json_object_get(all, "items"), i, one)
    {
        const char *type = json_string_value(json_object_get(one, "type"));
        const char *text = json_string_value(json_object_get(one, "message"));
        if (type && text && strcmp(type, "Warning") == 0)
            snprintf(why, size, "%.600s", text);
    }
    json_decref(all);
}

static int await_running(const struct kube_place *at, struct err *err)
{
    char version[40], why[640];
    int64_t end = seconds() + RUN_S;
    for (;;) {
        struct err here = {0};
        enum kube_pod_state is = look(at, version, why, sizeof why, &here);
        if (is == KUBE_POD_RUNS)
            return 0;
        if (is == KUBE_POD_OVER && here.code == ERR_NONE)
            return err_set(err, ERR_UPSTREAM, "%.600s", why);
        int64_t left = end - seconds();
        if (left <= 0) {
            snprintf(why, sizeof why, "%.600s", here.text);
            last_warning(at, why, sizeof why);
            return err_set(err, ERR_UNREADY, "the pod does not run after %d s%s%.600s", RUN_S,
                           why[0] ? ": " : "", why);
        }
        wait_for_change(at, version, left > WATCH_S ? WATCH_S : (unsigned)left);
    }
}

/* However long the API server is away, the pod goes on. */
static void await_end(const struct kube_place *at)
{
    char version[40], why[640];
    for (;;) {
        struct err here = {0};
        if (look(at, version, why, sizeof why, &here) == KUBE_POD_OVER && here.code == ERR_NONE) {
            proc_log("%s: %s", at->pod, why);
            return;
        }
        wait_for_change(at, version, WATCH_S);
    }
}

/* ---- life and death ---- */

int kube_make(const struct kube_place *at, const json_t *plan, int ready, struct err *err)
{
    char path[PATH_SIZE];
    json_t *manifest = kube_manifest(plan), *said;
    if (manifest == NULL)
        return err_set(err, ERR_INTERNAL, "out of memory");
    sweep(at);
    snprintf(path, sizeof path, "/api/v1/namespaces/%s/pods", at->ns);
    struct kube_request q = {
        .method = "POST", .path = path, .type = "application/json", .body = manifest};
    int r = kube_must(at->kube, &q, &said, err);
    json_decref(manifest);
    if (r < 0)
        return -1;
    json_decref(said);
    if (await_running(at, err) < 0)
        return -1;
    if (write(ready, "", 1) != 1)
        return err_set(err, ERR_UNREADY, "nobody waits for the pod");
    await_end(at);
    return 0;
}

/* 1: it is gone, or another one's that has its name; 0: not yet. */
static int take_away(const struct kube_place *at, bool *asked, int *status, struct err *err)
{
    char path[PATH_SIZE];
    json_t *pod;
    path_of(at, path);
    struct kube_request q = {.method = "GET", .path = path};
    if (kube_ask(at->kube, &q, status, &pod, err) < 0)
        return -1;
    json_t *ours = *status == 200 ? kube_removal(pod, at->daemon) : NULL;
    int r = *status == 404 || (*status == 200 && ours == NULL);
    if (r == 0 && ours && !*asked)
        *asked = remove_pod(at, pod, at->pod) == 0; /* now it goes */
    json_decref(ours);
    json_decref(pod);
    return r;
}

int kube_unmake(const struct kube_place *at, struct err *err)
{
    int64_t end = seconds() + GONE_S;
    bool asked = false;
    for (;;) {
        int status = 0, r = take_away(at, &asked, &status, err);
        if (r > 0)
            return 0;
        if (seconds() > end)
            return r < 0 ? -1
                         : err_set(err, ERR_UPSTREAM,
                                   "the pod is to be deleted and is still there (%d)", status);
        (void)clock_nanosleep(CLOCK_MONOTONIC, 0, &moment, NULL);
    }
}
