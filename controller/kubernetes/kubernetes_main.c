/* durward-kubernetes: the objects of a cluster, brought to a node's daemon (`node`, which tells the
 * node's CNI plugin of pods as well), judged where they are applied (`review`), and told what
 * became of them (`status`); that plugin put into a node's list (`plugin`), and the nodes that have
 * it labelled (`nodes`). Started by the builder it is the keeper of one sandbox that is a pod
 * (kube_keeper.h). It has its service account's token; secrets, sandboxes and the
 * daemon's API it does not see. */
#define _GNU_SOURCE 1
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "cluster.h"
#include "config.h"
#include "kube_client.h"
#include "kube_file.h"
#include "kube_keeper.h"
#include "kube_mirror.h"
#include "kube_nodes.h"
#include "kube_objects.h"
#include "kube_plugin.h"
#include "kube_pod.h"
#include "kube_review.h"
#include "kube_status.h"

#define ACCOUNT "/var/run/secrets/kubernetes.io/serviceaccount/"

enum {
    WATCH_S = 240,     /* until the configuration is read anew */
    SETTLE_MS = 50,    /* after a change: others come with it */
    AGAIN_MS = 500,    /* where nobody answers, and as long again by chance */
    AGAIN_S = 1,       /* after another failure, doubled up to */
    AGAIN_DOUBLED = 4, /* times */
    PLUGIN_PATH = 4096,
    EVERY_S = 60, /* pods are counted: each count that is another one wakes all nodes */
};

struct options {
    const char *api, *ca, *token, *config, *listen, *name, *webhook, *pods, *node;
    unsigned every;
    struct kube_plugin plugin;
    const char *daemonset;
    bool check, remove;
};

struct keeper {
    struct kube kube;
    const struct options *options;
    bool status;              /* tell the objects what became of them, in place of writing */
    struct kube_teller told;  /* its policies and bindings are there without `status`, too */
    struct kube_nodes *nodes; /* label nodes, and nothing of this */
    char said[768];
};

static const char usage[] =
    "usage: durward-kubernetes node|status|review -c FILE [OPTION...]\n"
    "       durward-kubernetes plugin [--check|--remove] [OPTION...]\n"
    "       durward-kubernetes nodes [OPTION...]\n"
    "\n"
    "  node    keep node.objects of FILE as the cluster's Policies and PolicyBindings say, and\n"
    "          tell durward-cni what the API server says of a pod\n"
    "  status  write into each object's status what the compiler says of it\n"
    "  review  answer the API server whether a Policy is good\n"
    "  plugin  keep durward-cni in this node's list of CNI plugins\n"
    "  nodes   label the nodes whose daemon is ready\n"
    "\n"
    "  -c FILE          the daemon's configuration\n"
    "  --api HOST:PORT  of the API server (default: $KUBERNETES_SERVICE_HOST and _PORT)\n"
    "  --ca FILE, --token FILE  (default: the service account's)\n"
    "  --pods PATH      of node: the socket where durward-cni asks (default: "
    "/run/objects/pods.sock)\n"
    "  --node NAME      of node: what events say (default: $NODE_NAME, or the host's name)\n"
    "  --every SECONDS  of status: how often the pods of bindings are counted (default: 60)\n"
    "  --listen ADDRESS:PORT, --name NAME, --webhook NAME  of review (default: 0.0.0.0:8443,\n"
    "                   durward-policies.durward.svc, durward-policies)\n"
    "  --daemonset NAMESPACE/NAME  of plugin, nodes (default: durward-node/durward-node)\n"
    "  --bin DIR, --lists DIR  of plugin: the runtime's plugins and their lists (default:\n"
    "                   /opt/cni/bin, /etc/cni/net.d)\n"
    "  --socket PATH, --netns DIR, --kubelet DIR, --pods PATH, --plugin FILE  of plugin: what\n"
    "                   durward-cni is told, and where it is\n"
    "  --check          whether it is in place and the daemon answers\n"
    "  --remove         take it out\n";

static void on_end(int sig)
{
    (void)sig;
    _exit(0); /* what is written is written whole */
}

/* Whoever started the program starts it again, and with it its other processes. */
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

/* ---- mirrors ---- */

/* Of an object what the daemon is to know: a status that changes changes nothing here. */
static json_t *keep_spec(const json_t *object)
{
    const json_t *about = json_object_get(object, "metadata");
    return json_pack("{s:{s:O*, s:O*}, s:O*}", "metadata", "name", json_object_get(about, "name"),
                     "creationTimestamp", json_object_get(about, "creationTimestamp"), "spec",
                     json_object_get(object, "spec"));
}

static int make_mirrors(struct keeper *k, struct err *err)
{
    json_t *(*keep)(const json_t *) = k->status ? kube_tell_keep : keep_spec;
    const struct kube_mirror_of policies = {KUBE_API "/policies", keep, .wakes = true},
                                bindings = {KUBE_API "/policybindings", keep, .wakes = true},
                                pods = {"/api/v1/pods?fieldSelector=status.phase!%3DSucceeded,"
                                        "status.phase!%3DFailed",
                                        kube_status_pod, .wakes = false};
    k->told.every = k->options->every;
    k->told.policies = kube_mirror_new(&policies);
    k->told.bindings = kube_mirror_new(&bindings);
    k->told.pods = k->status ? kube_mirror_new(&pods) : NULL;
    return k->told.policies && k->told.bindings && (k->told.pods || !k->status)
               ? 0
               : err_set(err, ERR_INTERNAL, "out of memory");
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

/* What there is by now, and then what becomes of it. */
static int act(struct keeper *k, const struct kube_base *base, struct err *err)
{
    if (k->status)
        return kube_tell_all(&k->told, &k->kube, base, err);
    json_t *policies = kube_mirror_list(k->told.policies);
    json_t *bindings = kube_mirror_list(k->told.bindings);
    int r = policies && bindings ? write_objects(base, policies, bindings, err)
                                 : err_set(err, ERR_INTERNAL, "out of memory");
    json_decref(policies);
    json_decref(bindings);
    return r;
}

static int turn(struct keeper *k, struct err *err)
{
    static const struct timespec settle = {0, SETTLE_MS * 1000000};
    struct kube_mirror *list[] = {k->told.policies, k->told.bindings, k->told.pods};
    struct buf text;
    int r = kube_file_read(k->options->config, &text, err);
    struct kube_base base = {k->options->config, buf_slice(&text)};
    for (int i = 0; r == 0 && i < 2; i++)
        r = kube_mirror_sync(list[i], &k->kube, err);
    if (r == 0) { /* pods that cannot be had take their counts, and nothing else */
        k->told.pods_known = k->status && kube_mirror_sync(list[2], &k->kube, err) == 0;
        r = act(k, &base, err);
    }
    if (r == 0) {
        complain(k, err->text); /* what it did without */
        if (kube_mirror_wait(list, k->told.pods_known ? 3 : 2,
                             k->status ? k->options->every : WATCH_S))
            (void)clock_nanosleep(CLOCK_MONOTONIC, 0, &settle, NULL);
    }
    buf_free(&text);
    return r;
}

static void rest(unsigned ms)
{
    struct timespec t = {ms / 1000, (long)(ms % 1000) * 1000000};
    (void)clock_nanosleep(CLOCK_MONOTONIC, 0, &t, NULL);
}

/* So that nodes that lost it together do not all come back at once. */
static unsigned by_chance(unsigned below)
{
    unsigned n = 0;
    return getrandom(&n, sizeof n, GRND_NONBLOCK) == (ssize_t)sizeof n ? n % below : 0;
}

static void keep(struct keeper *k)
{
    unsigned failed = 0;
    for (;;) {
        struct err err = {0};
        if ((k->nodes ? kube_nodes_turn(k->nodes, &k->kube, &err) : turn(k, &err)) == 0) {
            failed = 0;
            complain(k, err.text);
            continue;
        }
        complain(k, err.text);
        if (err.code == ERR_UNREADY)
            rest(AGAIN_MS + by_chance(AGAIN_MS));
        else
            rest(((unsigned)AGAIN_S * 1000 << (failed < AGAIN_DOUBLED ? failed++ : failed)) +
                 by_chance(AGAIN_S * 1000));
    }
}

/* Processes of their own answer the plugin, so that nobody waits while all is listed anew. */
static int begin_pods(const struct keeper *k, struct err *err)
{
    signal(SIGCHLD, on_child);
    pid_t parent = getpid(), pid = fork();
    if (pid < 0)
        return err_sys(err, "fork");
    if (pid > 0)
        return 0;
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && getppid() == parent)
        (void)kube_pods(&k->kube, k->options->pods, k->options->node, err);
    fprintf(stderr, "durward-kubernetes: %s\n", err->text);
    _exit(1);
}

/* ---- words ---- */

/* Where the word of an option goes; NULL: it has none. */
static const char **place_of(struct options *o, int c)
{
    switch (c) {
    case 'c':
        return &o->config;
    case 'a':
        return &o->api;
    case 'r':
        return &o->ca;
    case 't':
        return &o->token;
    case 'l':
        return &o->listen;
    case 'n':
        return &o->name;
    case 'w':
        return &o->webhook;
    case 'p':
        return &o->pods;
    case 'o':
        return &o->node;
    case 'd':
        return &o->daemonset;
    case 'b':
        return &o->plugin.bin;
    case 'i':
        return &o->plugin.lists;
    case 's':
        return &o->plugin.socket;
    case 'N':
        return &o->plugin.netns;
    case 'k':
        return &o->plugin.kubelet;
    case 'P':
        return &o->plugin.from;
    default:
        return NULL;
    }
}

static int read_option(struct options *o, int c)
{
    uint64_t every;
    const char **to = place_of(o, c);
    if (to)
        *to = optarg;
    else if (c == 'C')
        o->check = true;
    else if (c == 'R')
        o->remove = true;
    else if (c == 'e' && slice_u64(slice_str(optarg), 3600, &every) == 0 && every > 0)
        o->every = (unsigned)every;
    else
        return -1;
    return 0;
}

static int read_options(int argc, char **argv, struct options *o)
{
    static const struct option table[] = {
        {"config", 1, NULL, 'c'},    {"api", 1, NULL, 'a'},    {"ca", 1, NULL, 'r'},
        {"token", 1, NULL, 't'},     {"listen", 1, NULL, 'l'}, {"name", 1, NULL, 'n'},
        {"webhook", 1, NULL, 'w'},   {"pods", 1, NULL, 'p'},   {"node", 1, NULL, 'o'},
        {"every", 1, NULL, 'e'},     {"bin", 1, NULL, 'b'},    {"lists", 1, NULL, 'i'},
        {"socket", 1, NULL, 's'},    {"netns", 1, NULL, 'N'},  {"kubelet", 1, NULL, 'k'},
        {"plugin", 1, NULL, 'P'},    {"check", 0, NULL, 'C'},  {"remove", 0, NULL, 'R'},
        {"daemonset", 1, NULL, 'd'}, {NULL, 0, NULL, 0},
    };
    int c;
    while ((c = getopt_long(argc, argv, "c:", table, NULL)) >= 0)
        if (read_option(o, c) < 0)
            return -1;
    return optind + 1 == argc ? 0 : -1;
}

static const char *api_of_cluster(char *to, size_t size)
{
    const char *host = getenv("KUBERNETES_SERVICE_HOST"), *port = getenv("KUBERNETES_SERVICE_PORT");
    bool six = host && strchr(host, ':');
    snprintf(to, size, "%s%s%s:%s", six ? "[" : "", host ? host : "", six ? "]" : "",
             port ? port : "443");
    return to;
}

/* ---- verbs ---- */

enum verb { NODE, STATUS, REVIEW, PLUGIN, NODES, VERBS };

static enum verb verb_of(const char *word)
{
    static const char *const words[] = {"node", "status", "review", "plugin", "nodes"};
    enum verb v = NODE;
    while (v < VERBS && strcmp(words[v], word) != 0)
        v++;
    return v;
}

static int run_plugin(struct keeper *k, struct err *err)
{
    const struct options *o = k->options;
    if (o->check)
        return kube_plugin_check(&o->plugin, err);
    if (o->remove)
        return kube_plugin_remove(&o->plugin, err);
    return kube_init(&k->kube, o->api, o->ca, o->token, err) < 0
               ? -1
               : kube_plugin_keep(&o->plugin, &k->kube, o->daemonset, err);
}

/* All but `plugin` go on until they are ended. */
static int run(struct keeper *k, enum verb verb, struct err *err)
{
    const struct options *o = k->options;
    struct kube_review listener = {&k->kube, o->config, o->listen, o->name, o->webhook};
    if (verb == PLUGIN)
        return run_plugin(k, err);
    if (kube_init(&k->kube, o->api, o->ca, o->token, err) < 0 ||
        (verb == NODE && begin_pods(k, err) < 0))
        return -1;
    if (verb == REVIEW)
        return kube_review(&listener, err);
    k->status = verb == STATUS;
    if (verb == NODES)
        k->nodes = kube_nodes_new(o->daemonset, err);
    if (verb == NODES ? k->nodes == NULL : make_mirrors(k, err) < 0)
        return -1;
    keep(k);
    return -1;
}

static void settle(struct options *o)
{
    static struct utsname host;
    static char from[PLUGIN_PATH];
    if (o->node == NULL)
        o->node = uname(&host) == 0 ? host.nodename : "";
    o->plugin.pods = o->pods;
    if (o->plugin.from == NULL) { /* beside this program */
        ssize_t n = readlink("/proc/self/exe", from, sizeof from - sizeof "durward-cni");
        char *slash = n > 0 ? memrchr(from, '/', (size_t)n) : NULL;
        if (slash)
            memcpy(slash + 1, "durward-cni", sizeof "durward-cni");
        o->plugin.from = from;
    }
}

int main(int argc, char **argv)
{
    char api[320];
    struct err err = {0};
    struct options o = {.api = api_of_cluster(api, sizeof api),
                        .ca = ACCOUNT "ca.crt",
                        .token = ACCOUNT "token",
                        .listen = "0.0.0.0:8443",
                        .name = "durward-policies.durward.svc",
                        .webhook = "durward-policies",
                        .pods = "/run/objects/pods.sock",
                        .node = getenv("NODE_NAME"),
                        .every = EVERY_S,
                        .daemonset = "durward-node/durward-node",
                        .plugin = {.bin = "/opt/cni/bin",
                                   .lists = "/etc/cni/net.d",
                                   .socket = "/run/durward/node.sock",
                                   .netns = "/run/netns",
                                   .kubelet = "/var/lib/kubelet"}};
    struct keeper k = {.options = &o};
    if (argc == 3 && strcmp(argv[2], CLUSTER_WORD) == 0)
        return kube_keeper_main(argc, argv);
    if (read_options(argc, argv, &o) < 0) {
        fputs(usage, stderr);
        return 2;
    }
    enum verb verb = verb_of(argv[optind]);
    if (verb == VERBS || (o.config == NULL && verb != PLUGIN && verb != NODES)) {
        fputs(usage, stderr);
        return 2;
    }
    settle(&o);
    signal(SIGTERM, on_end); /* process 1 of a container has no other way */
    signal(SIGINT, on_end);
    signal(SIGPIPE, SIG_IGN);
    int r = run(&k, verb, &err);
    if (r < 0)
        fprintf(stderr, "durward-kubernetes: %s\n", err.text);
    kube_done(&k.kube);
    return r < 0 ? 1 : 0;
}
