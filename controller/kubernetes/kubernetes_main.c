/* durward-kubernetes: the objects of a cluster, brought to a node's daemon (`node`, which tells the
 * node's CNI plugin of pods as well), judged where they are applied (`review`), and told what
 * became of them (`status`). It has its service account's token; secrets, sandboxes and the
 * daemon's API it does not see. */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "config.h"
#include "kube_client.h"
#include "kube_file.h"
#include "kube_objects.h"
#include "kube_pod.h"
#include "kube_review.h"
#include "kube_status.h"

#define ACCOUNT "/var/run/secrets/kubernetes.io/serviceaccount/"

enum {
    WATCH_S = 240,     /* until all is asked for anew */
    SETTLE_MS = 50,    /* after a change: others come with it */
    AGAIN_S = 1,       /* after a failure, doubled up to */
    AGAIN_DOUBLED = 4, /* times */
    EVERY_S = 60,      /* pods are counted: each count that is another one wakes all nodes */
};

struct options {
    const char *api, *ca, *token, *config, *listen, *name, *webhook, *pods, *node;
    unsigned every;
};

struct keeper {
    struct kube kube;
    const struct options *options;
    bool status; /* tell the objects what became of them, in place of writing */
    char said[768];
};

static const char usage[] =
    "usage: durward-kubernetes node|status|review -c FILE [OPTION...]\n"
    "\n"
    "  node    keep node.objects of FILE as the cluster's Policies and PolicyBindings say, and\n"
    "          tell durward-cni what the API server says of a pod\n"
    "  status  write into each object's status what the compiler says of it\n"
    "  review  answer the API server whether a Policy is good\n"
    "\n"
    "  -c FILE          the daemon's configuration\n"
    "  --api HOST:PORT  of the API server (default: $KUBERNETES_SERVICE_HOST and _PORT)\n"
    "  --ca FILE, --token FILE  (default: the service account's)\n"
    "  --pods PATH      of node: the socket where durward-cni asks (default: "
    "/run/objects/pods.sock)\n"
    "  --node NAME      of node: what events say (default: $NODE_NAME, or the host's name)\n"
    "  --every SECONDS  of status: how often the pods of bindings are counted (default: 60)\n"
    "  --listen ADDRESS:PORT, --name NAME, --webhook NAME  of review (default: 0.0.0.0:8443,\n"
    "                   durward-policies.durward.svc, durward-policies)\n";

static void on_end(int sig)
{
    (void)sig;
    _exit(0); /* what is written is written whole */
}

/* Whoever started the program starts it again, and with it the other process. */
static void on_child(int sig)
{
    (void)sig;
    _exit(1);
}

/* The same thing once. */
static void complain(struct keeper *k, const char *text)
{
    if (strcmp(k->said, text) == 0)
        return;
    snprintf(k->said, sizeof k->said, "%s", text);
    if (text[0])
        fprintf(stderr, "durward-kubernetes: %s\n", text);
}

/* ---- lists ---- */

static int list(const struct kube *k, const char *plural, json_t **items, char *watch, size_t size,
                struct err *err)
{
    char path[128];
    json_t *all;
    snprintf(path, sizeof path, KUBE_API "/%s", plural);
    struct kube_request q = {.method = "GET", .path = path};
    if (kube_must(k, &q, &all, err) < 0)
        return -1;
    const char *version =
        json_string_value(json_object_get(json_object_get(all, "metadata"), "resourceVersion"));
    *items = json_incref(json_object_get(all, "items"));
    bool ok = json_is_array(*items) && version &&
              strspn(version, "0123456789") == strlen(version) && strlen(version) < 32;
    if (ok)
        snprintf(watch, size, "%s?watch=1&timeoutSeconds=%d&resourceVersion=%s", path, WATCH_S,
                 version);
    json_decref(all);
    return ok ? 0 : err_set(err, ERR_UPSTREAM, "the list of %s is malformed", plural);
}

/* ---- what becomes of them ---- */

static const char *objects_path(const struct config *c)
{
    const struct config_node *n = config_node(c);
    return n ? n->objects : NULL;
}

/* To node.objects. Never less than what was there, if the API server is away: then nobody comes
 * here. */
static int write_objects(const struct kube_base *base, const json_t *policies,
                         const json_t *bindings, struct err *err)
{
    json_t *none = json_object();
    struct config *c = config_parse_with(base->text, base->path, none, err);
    const char *path = c ? objects_path(c) : NULL;
    json_t *verdicts = json_array(), *last = NULL, *objects = NULL;
    struct err other = {0};
    char *text = NULL;
    int r = -1;
    if (c && path == NULL)
        err_set(err, ERR_PARSE, "%s has no node.objects", base->path);
    if (path) {
        last = config_load_objects(path, &other);
        objects = kube_objects(base, policies, bindings, last, verdicts);
        text = objects ? json_dumps(objects, JSON_INDENT(1) | JSON_SORT_KEYS) : NULL;
        r = text ? kube_file_write(path, slice_str(text), err)
                 : err_set(err, ERR_INTERNAL, "out of memory");
    }
    if (r > 0)
        fprintf(stderr, "durward-kubernetes: %zu policies, %zu namespaces\n",
                json_object_size(json_object_get(objects, "policies")),
                json_object_size(json_object_get(objects, "namespaces")));
    free(text);
    json_decref(none);
    json_decref(objects);
    json_decref(last);
    json_decref(verdicts);
    config_unref(c);
    return r < 0 ? -1 : 0;
}

static const json_t *named(const json_t *items, const char *name)
{
    const json_t *one;
    size_t i;
    json_array_foreach(items, i, one)
    {
        const char *own =
            json_string_value(json_object_get(json_object_get(one, "metadata"), "name"));
        if (own && strcmp(own, name) == 0)
            return one;
    }
    return NULL;
}

static json_t *status_of(const json_t *object, const json_t *verdict)
{
    return json_pack("{s:s, s:O, s:O}", "accepted",
                     json_is_true(json_object_get(verdict, "accepted")) ? "True" : "False",
                     "message", json_object_get(verdict, "message"), "observedGeneration",
                     json_object_get(json_object_get(object, "metadata"), "generation"));
}

/* The pods of these namespaces, so many of each as a status can do with. From the API server's
 * memory, whatever it is there: the next count is not far. */
static json_t *list_pods(const struct kube *k, const json_t *namespaces, struct err *err)
{
    json_t *found = json_array(), *ns;
    size_t i;
    json_array_foreach(namespaces, i, ns)
    {
        char path[256];
        json_t *all;
        snprintf(path, sizeof path, "/api/v1/namespaces/%.63s/pods?limit=%d&resourceVersion=0",
                 json_string_value(ns), KUBE_STATUS_LISTED);
        struct kube_request q = {.method = "GET", .path = path};
        if (kube_must(k, &q, &all, err) < 0) {
            json_decref(found);
            return NULL;
        }
        json_array_extend(found, json_object_get(all, "items"));
        json_decref(all);
    }
    return found;
}

static json_t *count_pods(const struct kube *k, const json_t *bindings, const json_t *verdicts,
                          struct err *err)
{
    json_t *namespaces = kube_status_namespaces(bindings, verdicts);
    json_t *pods = list_pods(k, namespaces, err);
    json_t *counts = pods ? kube_status_count(bindings, verdicts, pods) : NULL;
    json_decref(pods);
    json_decref(namespaces);
    return counts;
}

static int tell(const struct kube *k, const char *plural, const json_t *items,
                const json_t *verdict, json_t *count, struct err *err)
{
    const char *name = json_string_value(json_object_get(verdict, "name"));
    const json_t *object = name ? named(items, name) : NULL;
    json_t *status = object ? status_of(object, verdict) : NULL, *said = NULL;
    char path[512];
    int r = 0;
    if (status && count)
        json_object_update(status, count);
    if (status && !json_equal(status, json_object_get(object, "status"))) {
        json_t *body = json_pack("{s:O}", "status", status);
        snprintf(path, sizeof path, KUBE_API "/%s/%s/status", plural, name);
        struct kube_request q = {"PATCH", path, "application/merge-patch+json", body};
        r = kube_must(k, &q, &said, err);
        json_decref(said);
        json_decref(body);
    }
    json_decref(status);
    return r;
}

static int tell_all(const struct kube *k, const struct kube_base *base, const json_t *policies,
                    const json_t *bindings, struct err *err)
{
    json_t *verdicts = json_array(), *one;
    json_t *objects = kube_objects(base, policies, bindings, NULL, verdicts);
    json_t *counts = count_pods(k, bindings, verdicts, err);
    size_t i;
    int r = objects == NULL ? err_set(err, ERR_INTERNAL, "out of memory") : counts ? 0 : -1;
    json_array_foreach(verdicts, i, one)
    {
        const char *kind = json_string_value(json_object_get(one, "kind"));
        bool policy = kind && strcmp(kind, "Policy") == 0;
        json_t *count =
            policy ? NULL
                   : json_object_get(counts, json_string_value(json_object_get(one, "name")));
        r |= tell(k, policy ? "policies" : "policybindings", policy ? policies : bindings, one,
                  count, err);
    }
    json_decref(counts);
    json_decref(objects);
    json_decref(verdicts);
    return r;
}

/* ---- turns ---- */

/* What was listed is the truth; a watch only says that it is so no more. */
static int turn(struct keeper *k, struct err *err)
{
    static const struct timespec settle = {0, SETTLE_MS * 1000000};
    json_t *policies = NULL, *bindings = NULL;
    char paths[2][256];
    struct kube_stream s[2] = {{.fd = -1}, {.fd = -1}};
    struct buf text;
    int r = kube_file_read(k->options->config, &text, err);
    struct kube_base base = {k->options->config, buf_slice(&text)};
    if (r == 0 && (list(&k->kube, "policies", &policies, paths[0], sizeof paths[0], err) < 0 ||
                   list(&k->kube, "policybindings", &bindings, paths[1], sizeof paths[1], err) < 0))
        r = -1;
    if (r == 0)
        r = k->status ? tell_all(&k->kube, &base, policies, bindings, err)
                      : write_objects(&base, policies, bindings, err);
    for (int i = 0; r == 0 && i < 2; i++)
        r = kube_watch(&k->kube, paths[i], &s[i], err);
    if (r == 0 && kube_wait(s, 2, k->status ? k->options->every : WATCH_S))
        (void)clock_nanosleep(CLOCK_MONOTONIC, 0, &settle, NULL);
    for (int i = 0; i < 2; i++)
        kube_unwatch(&s[i]);
    json_decref(policies);
    json_decref(bindings);
    buf_free(&text);
    return r;
}

static void keep(struct keeper *k)
{
    unsigned failed = 0;
    for (;;) {
        struct err err = {0};
        if (turn(k, &err) == 0) {
            failed = 0;
            complain(k, "");
            continue;
        }
        complain(k, err.text);
        struct timespec wait = {AGAIN_S << (failed < AGAIN_DOUBLED ? failed++ : failed), 0};
        (void)clock_nanosleep(CLOCK_MONOTONIC, 0, &wait, NULL);
    }
}

/* A process of its own answers the plugin, so that nobody waits while all is listed anew. */
static int begin_pods(const struct keeper *k, struct err *err)
{
    signal(SIGCHLD, on_child);
    pid_t parent = getpid(), pid = fork();
    if (pid < 0)
        return err_sys(err, "fork");
    if (pid > 0)
        return 0;
    signal(SIGCHLD, SIG_DFL);
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && getppid() == parent)
        (void)kube_pods(&k->kube, k->options->pods, k->options->node, err);
    fprintf(stderr, "durward-kubernetes: %s\n", err->text);
    _exit(1);
}

/* ---- words ---- */

static int read_options(int argc, char **argv, struct options *o)
{
    static const struct option table[] = {
        {"config", 1, NULL, 'c'},  {"api", 1, NULL, 'a'},    {"ca", 1, NULL, 'r'},
        {"token", 1, NULL, 't'},   {"listen", 1, NULL, 'l'}, {"name", 1, NULL, 'n'},
        {"webhook", 1, NULL, 'w'}, {"pods", 1, NULL, 'p'},   {"node", 1, NULL, 'o'},
        {"every", 1, NULL, 'e'},   {NULL, 0, NULL, 0},
    };
    int c;
    while ((c = getopt_long(argc, argv, "c:", table, NULL)) >= 0) {
        if (c == 'e') {
            uint64_t every;
            if (slice_u64(slice_str(optarg), 3600, &every) < 0 || every == 0)
                return -1;
            o->every = (unsigned)every;
            continue;
        }
        const char **to = c == 'c'   ? &o->config
                          : c == 'a' ? &o->api
                          : c == 'r' ? &o->ca
                          : c == 't' ? &o->token
                          : c == 'l' ? &o->listen
                          : c == 'n' ? &o->name
                          : c == 'w' ? &o->webhook
                          : c == 'p' ? &o->pods
                          : c == 'o' ? &o->node
                                     : NULL;
        if (to == NULL)
            return -1;
        *to = optarg;
    }
    return o->config && optind + 1 == argc ? 0 : -1;
}

static const char *api_of_cluster(char *to, size_t size)
{
    const char *host = getenv("KUBERNETES_SERVICE_HOST"), *port = getenv("KUBERNETES_SERVICE_PORT");
    bool six = host && strchr(host, ':');
    snprintf(to, size, "%s%s%s:%s", six ? "[" : "", host ? host : "", six ? "]" : "",
             port ? port : "443");
    return to;
}

int main(int argc, char **argv)
{
    char api[320];
    struct utsname host;
    struct err err = {0};
    struct options o = {.api = api_of_cluster(api, sizeof api),
                        .ca = ACCOUNT "ca.crt",
                        .token = ACCOUNT "token",
                        .listen = "0.0.0.0:8443",
                        .name = "durward-policies.durward.svc",
                        .webhook = "durward-policies",
                        .pods = "/run/objects/pods.sock",
                        .node = getenv("NODE_NAME"),
                        .every = EVERY_S};
    struct keeper k = {.options = &o};
    if (read_options(argc, argv, &o) < 0) {
        fputs(usage, stderr);
        return 2;
    }
    if (o.node == NULL)
        o.node = uname(&host) == 0 ? host.nodename : "";
    signal(SIGTERM, on_end); /* process 1 of a container has no other way */
    signal(SIGINT, on_end);
    signal(SIGPIPE, SIG_IGN);
    const char *verb = argv[optind];
    int r = kube_init(&k.kube, o.api, o.ca, o.token, &err);
    struct kube_review listener = {&k.kube, o.config, o.listen, o.name, o.webhook};
    k.status = strcmp(verb, "status") == 0;
    if (r == 0 && strcmp(verb, "review") == 0)
        r = kube_review(&listener, &err);
    else if (r == 0 && strcmp(verb, "node") == 0 && begin_pods(&k, &err) < 0)
        r = -1;
    else if (r == 0 && (k.status || strcmp(verb, "node") == 0))
        keep(&k);
    else if (r == 0)
        r = err_set(&err, ERR_PARSE, "'%.40s' is none of node, status, review", verb);
    fprintf(stderr, "durward-kubernetes: %s\n", err.text);
    kube_done(&k.kube);
    return r < 0 ? 1 : 0;
}
