/* Answers the node's CNI plugin, begins pods again whose listeners ended, and records who connected
 * to them. */
#include "pods.h"

#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "managed_sandbox.h"
#include "proc.h"
#include "wire.h"

enum {
    CLIENTS_MAX = 64, /* plugins that ask at a time */
    ASK_S = 10,       /* from connecting to asking */
    TICK_MS = 200,
    AGAIN_MS = 200, /* between attempts, doubled each time up to */
    AGAIN_DOUBLED = 6,
    FOR_EVER_S = 50 * 365 * 86400, /* a pod lives as long as its cluster says */
};

/* A plugin's connection: one request, one answer. */
struct pod_client {
    LIST_ENTRY(pod_client) link;
    struct pods *pods;
    struct ipc *ch; /* NULL: it has gone, and somebody still means to answer */
    struct event *timer;
    bool asked, waits;
};

struct pods {
    struct controller *controller;
    struct event *listening, *again;
    int fd;
    unsigned n;
    LIST_HEAD(, pod_client) clients;
};

static int64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* ---- plugins ---- */

static void client_free(struct pod_client *a)
{
    LIST_REMOVE(a, link);
    a->pods->n--;
    ipc_free(a->ch);
    if (a->timer)
        event_free(a->timer);
    free(a);
}

/* The environment but for what an image says of itself. */
static void put_env(struct msg *m, const struct strlist *env)
{
    static const char *const own[] = {"PATH=", "HOME=", "USER=", "LOGNAME="};
    struct strlist kept = {0};
    for (size_t i = 0; env && i < env->n; i++) {
        bool skip = false;
        for (size_t k = 0; k < ARRAY_LEN(own); k++)
            skip = skip || strncmp(env->v[i], own[k], strlen(own[k])) == 0;
        if (!skip && strlist_add(&kept, env->v[i]) < 0)
            m->bad = true;
    }
    strlist_put(&kept, m);
    strlist_done(&kept);
}

/* others: to GC, in place of an environment. */
static void answer_with(struct pod_client *a, enum pod_end end, const char *text,
                        const struct managed_sandbox *r, const struct strlist *others)
{
    struct msg m;
    char dir[POD_DIR_MAX] = "", said[POD_TEXT_MAX];
    const struct config_node *node = config_node(a->pods->controller->config);
    const char *uid = r ? json_string_value(json_object_get(r->pod, "uid")) : NULL;
    if (node && uid && *uid)
        snprintf(dir, sizeof dir, "%s/pods/%s/volumes/kubernetes.io~empty-dir/" POD_VOLUME,
                 node->kubelet, uid);
    snprintf(said, sizeof said, "%s", text);
    msg_init(&m, W_POD_DONE);
    msg_put_u8(&m, (uint8_t)end);
    msg_put_str(&m, said);
    msg_put_str(&m, dir);
    if (others)
        strlist_put(others, &m);
    else
        put_env(&m, r && r->sandbox ? sandbox_env(r->sandbox) : NULL);
    if (a->ch)
        (void)ipc_send(a->ch, &m); /* it closes the connection, and we hear of that */
    else
        msg_done(&m);
}

static void answer(struct pod_client *a, enum pod_end end, const char *text,
                   const struct managed_sandbox *r)
{
    answer_with(a, end, text, r, NULL);
}

static struct managed_sandbox *find(struct controller *c, const char *container)
{
    struct managed_sandbox *r;
    TAILQ_FOREACH(r, &c->managed_sandboxes, link)
    {
        const char *own = json_string_value(json_object_get(r->pod, "container"));
        if (own && strcmp(own, container) == 0)
            return r;
    }
    return NULL;
}

/* ---- ADD ---- */

static void on_added(void *arg, struct managed_sandbox *r, const char *why)
{
    struct pod_client *a = arg;
    char text[POD_TEXT_MAX];
    a->waits = false;
    if (r) /* for the pod's event */
        snprintf(text, sizeof text, "policy %s, gate %s", r->policy, r->id);
    answer(a, r ? POD_OK : POD_REFUSED, r ? text : why, r);
    if (a->ch == NULL)
        client_free(a);
}

/* What decides about the pod is kept with it, as it was when it began: a label that is changed
 * later changes nothing. */
static int keep_facts(json_t *pod, const struct pod_facts *f)
{
    json_t *labels = json_object();
    int bad = json_object_set_new(pod, "account", json_string(f->account));
    for (size_t i = 0; i < f->labels.n; i++) {
        const char *label = f->labels.v[i], *is = strchr(label, '=');
        char key[POD_LABEL_MAX + 1];
        snprintf(key, sizeof key, "%.*s", (int)(is - label), label);
        bad |= json_object_set_new(labels, key, json_string(is + 1));
    }
    return json_object_set_new(pod, "labels", labels) | bad;
}

static json_t *described(const struct pod_request *q)
{
    json_t *pod =
        json_pack("{s:s, s:s, s:s, s:s, s:s, s:s}", "netns", q->netns, "container", q->container,
                  "uid", q->uid, "namespace", q->ns, "name", q->name, "list", q->list);
    if (q->facts.known == POD_KNOWN && keep_facts(pod, &q->facts) < 0) {
        json_decref(pod);
        pod = NULL;
    }
    return pod;
}

/* By what is kept of it, and the configuration of now. */
static enum config_node_choice choose(const struct controller *c, const json_t *pod,
                                      const char *two[2])
{
    const char *ns = json_string_value(json_object_get(pod, "namespace"));
    struct config_node_pod facts = {json_string_value(json_object_get(pod, "account")),
                                    json_object_get(pod, "labels")};
    return config_node_choose(ns ? config_node_namespace(c->config, ns) : NULL, &facts, two);
}

static void why_not(enum config_node_choice got, const char *ns, const char *const two[2],
                    char text[POD_TEXT_MAX])
{
    if (got == CONFIG_NODE_AMBIGUOUS)
        snprintf(
            text, POD_TEXT_MAX,
            "bindings of the namespace %s give this pod the policies %s and %s: let its labels "
            "and its service account name one",
            ns, two[0], two[1]);
    else if (got == CONFIG_NODE_UNKNOWN)
        snprintf(text, POD_TEXT_MAX,
                 "pods of the namespace %s are bound by label or service account, and the API "
                 "server cannot be asked for this one's",
                 ns);
    else
        snprintf(text, POD_TEXT_MAX,
                 "the node's configuration has no policy for the namespace %s, or none for this "
                 "pod; name it under node.namespaces, or under node.unbound",
                 ns);
}

static struct managed_sandbox *add(struct controller *c, const struct pod_request *q, json_t *pod,
                                   const char *policy, struct err *err)
{
    if (find(c, q->container)) {
        err_set(err, ERR_DENIED, "the pod %s has its way out already", q->container);
        return NULL;
    }
    json_t *labels =
        json_pack("{s:s, s:s}", "kubernetes.namespace", q->ns, "kubernetes.pod", q->name);
    struct managed_sandbox_wish w = {.policy = policy,
                                     .labels = labels,
                                     .pod = pod,
                                     .ttl = FOR_EVER_S,
                                     .on_idle = IDLE_DELETE,
                                     .on_soft = IDLE_PAUSE};
    struct managed_sandbox *r = labels ? managed_sandbox_new(c, &w, err)
                                       : (err_set(err, ERR_INTERNAL, "out of memory"), NULL);
    json_decref(labels);
    return r;
}

/* Where a binding is an object, one by label may come later: what it will ask for is asked now. */
static bool is_asked_for(const struct controller *c, enum config_node_choice got)
{
    const struct config_node *node = config_node(c->config);
    return got == CONFIG_NODE_UNKNOWN || (got == CONFIG_NODE_BOUND && node->objects);
}

static void begin(struct pod_client *a, const struct pod_request *q, json_t *pod)
{
    struct controller *c = a->pods->controller;
    struct err err = {0};
    char text[POD_TEXT_MAX];
    const char *two[2];
    enum config_node_choice got = choose(c, pod, two);
    if (got == CONFIG_NODE_UNBOUND) {
        answer(a, POD_UNBOUND, "", NULL);
        return;
    }
    if (q->facts.known == POD_NOT_ASKED && is_asked_for(c, got)) {
        answer(a, POD_WHO, "", NULL);
        return;
    }
    if (got != CONFIG_NODE_BOUND) {
        why_not(got, q->ns, two, text);
        controller_record(c, q->name, "pod_refused", text);
        answer(a, POD_REFUSED, text, NULL);
        return;
    }
    struct managed_sandbox *r = add(c, q, pod, two[0], &err);
    if (r == NULL) {
        answer(a, POD_REFUSED, err.text, NULL);
        return;
    }
    a->waits = true;
    if (managed_sandbox_await(r, on_added, a) < 0) {
        a->waits = false;
        answer(a, POD_REFUSED, "out of memory", NULL);
    }
}

static void on_add(struct pod_client *a, const struct pod_request *q)
{
    json_t *pod = described(q);
    if (pod)
        begin(a, q, pod);
    else
        answer(a, POD_REFUSED, "out of memory", NULL);
    json_decref(pod);
}

/* ---- the others ---- */

static void on_deleted(void *arg, struct managed_sandbox *r, const char *why)
{
    struct pod_client *a = arg;
    a->waits = false;
    answer(a, r ? POD_OK : POD_REFUSED, r ? "" : why, NULL);
    if (a->ch == NULL)
        client_free(a);
}

static void on_del(struct pod_client *a, const struct pod_request *q)
{
    struct managed_sandbox *r = find(a->pods->controller, q->container);
    if (r == NULL) {
        answer(a, POD_OK, "", NULL);
        return;
    }
    a->waits = true;
    if (managed_sandbox_delete(r, POD_GONE, on_deleted, a) < 0) {
        a->waits = false;
        answer(a, POD_REFUSED, "out of memory", NULL);
    }
}

static void on_check(struct pod_client *a, const struct pod_request *q)
{
    const struct managed_sandbox *r = find(a->pods->controller, q->container);
    char text[POD_TEXT_MAX];
    if (r && r->state == MANAGED_SANDBOX_RUNNING) {
        answer(a, POD_OK, "", NULL);
        return;
    }
    snprintf(text, sizeof text, "the pod %s has no way out%s%s", q->container, r ? ": it is " : "",
             r ? managed_sandbox_state_name(r->state) : "");
    answer(a, POD_REFUSED, text, NULL);
}

static void on_status(struct pod_client *a)
{
    const struct controller *c = a->pods->controller;
    bool ready = c->owner.builder && c->owner.recording;
    answer(a, ready ? POD_OK : POD_REFUSED, ready ? "" : "the daemon is not ready yet", NULL);
}

static bool listed(const struct pod_request *q, const struct managed_sandbox *r)
{
    const char *own = json_string_value(json_object_get(r->pod, "container"));
    for (unsigned i = 0; i < q->n_listed; i++)
        if (own && strcmp(own, q->listed[i]) == 0)
            return true;
    return false;
}

/* The runtime lists what it has of this list of plugins. What others made is not its to end. */
static void on_gc(struct pod_client *a, const struct pod_request *q)
{
    struct controller *c = a->pods->controller;
    struct managed_sandbox *r, *next;
    struct strlist others = {0};
    int bad = 0;
    for (r = TAILQ_FIRST(&c->managed_sandboxes); r; r = next) {
        next = TAILQ_NEXT(r, link);
        const char *list = json_string_value(json_object_get(r->pod, "list"));
        const char *container = json_string_value(json_object_get(r->pod, "container"));
        if (list && container && strcmp(list, q->list) != 0)
            bad |= strlist_add(&others, container);
        else if (r->pod && !listed(q, r))
            (void)managed_sandbox_delete(r, POD_GONE, NULL, NULL);
    }
    answer_with(a, bad ? POD_REFUSED : POD_OK, bad ? "out of memory" : "", NULL, &others);
    strlist_done(&others);
}

static int on_message(struct ipc *ch UNUSED, struct msg *m, void *arg)
{
    struct pod_client *a = arg;
    struct pod_request q;
    if (m->type != W_POD || a->asked)
        return -1;
    a->asked = true;
    event_del(a->timer);
    int bad = pod_request_get(&q, m);
    if (bad == 0) {
        switch (q.op) {
        case POD_ADD:
            on_add(a, &q);
            break;
        case POD_DEL:
            on_del(a, &q);
            break;
        case POD_CHECK:
            on_check(a, &q);
            break;
        case POD_STATUS:
            on_status(a);
            break;
        case POD_GC:
            on_gc(a, &q);
            break;
        case POD_OPS:
            break;
        }
    }
    pod_request_done(&q);
    return bad;
}

static void on_closed(struct ipc *ch, const char *why UNUSED, void *arg)
{
    struct pod_client *a = arg;
    ipc_free(ch);
    a->ch = NULL;
    if (!a->waits)
        client_free(a);
}

static void on_silent(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
    client_free(arg);
}

/* The socket's mode lets only root connect. */
static void on_connection(evutil_socket_t fd, short what UNUSED, void *arg)
{
    static const struct timeval until = {ASK_S, 0};
    struct pods *p = arg;
    int got = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (got < 0)
        return;
    struct pod_client *a = p->n < CLIENTS_MAX ? calloc(1, sizeof *a) : NULL;
    if (a == NULL) {
        close(got); /* the runtime tries again */
        return;
    }
    a->pods = p;
    p->n++;
    LIST_INSERT_HEAD(&p->clients, a, link);
    a->timer = evtimer_new(p->controller->base, on_silent, a);
    a->ch = ipc_new(p->controller->base, got, on_message, on_closed, a);
    if (a->timer == NULL || a->ch == NULL)
        client_free(a);
    else
        event_add(a->timer, &until);
}

/* ---- listeners that ended ---- */

static void soon(struct pods *p)
{
    static const struct timeval tick = {0, TICK_MS * 1000};
    if (p->fd >= 0 && !evtimer_pending(p->again, NULL))
        event_add(p->again, &tick);
}

/* By the policy that its bindings give it now; where it has none any more it stays without a way
 * out, until its cluster ends it. */
static void begin_again(struct managed_sandbox *r)
{
    struct err err = {0};
    const char *two[2];
    enum config_node_choice got = choose(r->controller, r->pod, two);
    unsigned doubled = r->pod_tries < AGAIN_DOUBLED ? r->pod_tries : AGAIN_DOUBLED;
    r->pod_tries++;
    r->pod_due = now_ms() + ((int64_t)AGAIN_MS << doubled);
    if (got != CONFIG_NODE_BOUND)
        return;
    snprintf(r->policy, sizeof r->policy, "%s", two[0]);
    if (managed_sandbox_wake(r, &err) < 0)
        proc_log("%s: %s", r->id, err.text);
}

/* Do the bindings give it another policy, or none, since it began? */
static bool is_moved(const struct managed_sandbox *r)
{
    const char *two[2];
    return choose(r->controller, r->pod, two) != CONFIG_NODE_BOUND ||
           strcmp(two[0], r->policy) != 0;
}

/* One that is just being made, or taken over, is looked at again until it runs. */
static bool end_moved(struct managed_sandbox *r)
{
    if (!is_moved(r))
        return false;
    if (r->state == MANAGED_SANDBOX_RUNNING && r->sandbox)
        sandbox_end(r->sandbox, 0, "its bindings give it another policy, or none");
    return true;
}

static void on_again(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
    struct pods *p = arg;
    struct managed_sandbox *r, *next;
    bool more = false;
    for (r = TAILQ_FIRST(&p->controller->managed_sandboxes); r; r = next) {
        next = TAILQ_NEXT(r, link);
        if (r->pod == NULL)
            continue;
        if (r->state != MANAGED_SANDBOX_STOPPED) {
            more |= end_moved(r);
            continue;
        }
        more = true;
        if (now_ms() >= r->pod_due)
            begin_again(r);
    }
    if (more)
        soon(p);
}

void pods_reloaded(struct pods *p)
{
    struct managed_sandbox *r, *next;
    for (r = TAILQ_FIRST(&p->controller->managed_sandboxes); r; r = next) {
        next = TAILQ_NEXT(r, link);
        if (r->pod == NULL)
            continue;
        r->pod_tries = 0;
        r->pod_due = 0;
        (void)end_moved(r);
    }
    soon(p);
}

void pods_ended(struct pods *p, struct managed_sandbox *r)
{
    if (strcmp(r->reason, POD_GONE) == 0)
        (void)managed_sandbox_delete(r, POD_GONE, NULL, NULL);
    else
        soon(p);
}

void pods_spec(const json_t *pod, struct sandbox_spec *ret)
{
    const char *netns = json_string_value(json_object_get(pod, "netns"));
    const char *container = json_string_value(json_object_get(pod, "container"));
    const char *uid = json_string_value(json_object_get(pod, "uid"));
    *ret = (struct sandbox_spec){.root = SANDBOX_SPEC_READ_ONLY, .limits.backend = BACKEND_POD};
    snprintf(ret->pod.netns, sizeof ret->pod.netns, "%s", netns ? netns : "");
    snprintf(ret->pod.container, sizeof ret->pod.container, "%s", container ? container : "");
    snprintf(ret->pod.uid, sizeof ret->pod.uid, "%s", uid ? uid : "");
}

/* ---- who connected ---- */

static void note(struct controller *c, const struct sandbox *s, uint32_t address, uint32_t port,
                 uint32_t count, bool refused)
{
    char text[160];
    unsigned a = address >> 24, b = address >> 16 & 255, d = address >> 8 & 255, e = address & 255;
    if (refused)
        snprintf(text, sizeof text, "to %u.%u.%u.%u port %u, %u packets", a, b, d, e, port, count);
    else
        snprintf(text, sizeof text, "from %u.%u.%u.%u to port %u, %u connections", a, b, d, e, port,
                 count);
    controller_record(c, sandbox_id(s), refused ? "pod_outbound_refused" : "pod_inbound", text);
}

int pods_said(struct pods *p, struct sandbox *s, struct msg *m)
{
    uint32_t n, address, port, count;
    uint8_t refused;
    const struct managed_sandbox *r = p ? managed_sandbox_find(p->controller, sandbox_id(s)) : NULL;
    if (r == NULL || r->pod == NULL || msg_get_u32(m, &n) < 0 || n > 2 * POD_INBOUND_MAX)
        return -1;
    for (uint32_t i = 0; i < n; i++) {
        if (msg_get_u32(m, &address) < 0 || msg_get_u32(m, &port) < 0 || port > 65535 ||
            msg_get_u32(m, &count) < 0 || msg_get_u8(m, &refused) < 0 || refused > 1)
            return -1;
        note(p->controller, s, address, port, count, refused);
    }
    return msg_end(m);
}

/* ---- life ---- */

struct pods *pods_new(struct controller *c, int fd, struct err *err)
{
    struct pods *p = calloc(1, sizeof *p);
    if (p) {
        p->controller = c;
        p->fd = fd;
        LIST_INIT(&p->clients);
        p->again = evtimer_new(c->base, on_again, p);
        p->listening =
            fd >= 0 ? event_new(c->base, fd, EV_READ | EV_PERSIST, on_connection, p) : NULL;
    }
    if (p == NULL || p->again == NULL ||
        (fd >= 0 && (p->listening == NULL || event_add(p->listening, NULL) < 0))) {
        err_set(err, ERR_INTERNAL, "out of memory");
        pods_free(p);
        return NULL;
    }
    soon(p); /* what the registry has of pods that are stopped begins again */
    return p;
}

void pods_free(struct pods *p)
{
    struct pod_client *a;
    if (p == NULL)
        return;
    while ((a = LIST_FIRST(&p->clients)) != NULL)
        client_free(a);
    if (p->listening)
        event_free(p->listening);
    if (p->again)
        event_free(p->again);
    if (p->fd >= 0)
        close(p->fd);
    free(p);
}
