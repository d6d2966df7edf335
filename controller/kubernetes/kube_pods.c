/* The listener where a node's CNI plugin asks what the API server says of a pod: one question a
 * connection, one after the other. A plugin that waits too long is run again by its runtime. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "kube_client.h"
#include "kube_pod.h"
#include "wire.h"

enum { WAITING_MAX = 64, ASK_MS = 2000 };

static int open_listener(const char *path, struct err *err)
{
    struct sockaddr_un sa = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof sa.sun_path)
        return err_set(err, ERR_LIMIT, "the socket's path %.100s is too long", path);
    memcpy(sa.sun_path, path, strlen(path) + 1);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    (void)unlink(path); /* of the process before */
    mode_t had = umask(0177);
    bool ok = fd >= 0 && bind(fd, (struct sockaddr *)&sa, sizeof sa) == 0;
    (void)umask(had);
    if (ok && listen(fd, WAITING_MAX) == 0)
        return fd;
    err_sys(err, "cannot listen at %s", path);
    if (fd >= 0)
        close(fd);
    return -1;
}

struct asked {
    char ns[POD_NAMESPACE_MAX + 1], name[POD_NAME_MAX + 1], uid[POD_UID_MAX + 1];
    char what[POD_TEXT_MAX]; /* of W_POD_BOUND */
};

/* Its names become a part of a path, so they are looked at as the plugin looked at them. */
static int read_asked(struct msg *m, struct asked *q, struct err *err)
{
    bool bound = m->type == W_POD_BOUND;
    return (m->type != W_POD_ASK && !bound) || msg_get_str(m, q->ns, sizeof q->ns) < 0 ||
                   msg_get_str(m, q->name, sizeof q->name) < 0 ||
                   msg_get_str(m, q->uid, sizeof q->uid) < 0 ||
                   (bound && msg_get_str(m, q->what, sizeof q->what) < 0) || msg_end(m) < 0 ||
                   !pod_word_ok(q->ns, POD_NAMESPACE_MAX) || !pod_word_ok(q->name, POD_NAME_MAX)
               ? err_set(err, ERR_PARSE, "the question is malformed")
               : 0;
}

static int look_up(const struct kube *k, const struct asked *a, struct pod_facts *ret,
                   struct err *err)
{
    char path[512];
    json_t *pod = NULL;
    snprintf(path, sizeof path, "/api/v1/namespaces/%s/pods/%s", a->ns, a->name);
    struct kube_request q = {.method = "GET", .path = path};
    int r = kube_must(k, &q, &pod, err) < 0 ? -1 : kube_pod_facts(pod, a->uid, ret, err);
    json_decref(pod);
    return r;
}

/* One that is lost is said: the pod has its gate all the same. */
static void make_event(const struct kube *k, const struct asked *a, const char *node)
{
    char path[512];
    struct err err = {0};
    json_t *said = NULL, *event = kube_pod_event(a->ns, a->name, a->uid, a->what, node);
    snprintf(path, sizeof path, "/api/v1/namespaces/%s/events", a->ns);
    struct kube_request q = {"POST", path, "application/json", event};
    if (event && kube_must(k, &q, &said, &err) < 0)
        fprintf(stderr, "durward-kubernetes: %s\n", err.text);
    json_decref(said);
    json_decref(event);
}

static void answer(const struct kube *k, int fd, const char *node)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    struct pod_facts facts = {.known = POD_NOT_ASKED};
    struct asked q;
    struct err err = {0};
    struct msg asked, said;
    if (poll(&p, 1, ASK_MS) <= 0 || msg_recv(fd, &asked) <= 0)
        return;
    int r = read_asked(&asked, &q, &err);
    bool bound = asked.type == W_POD_BOUND;
    msg_done(&asked);
    if (r == 0 && bound) {
        make_event(k, &q, node);
        return;
    }
    if (r == 0)
        r = look_up(k, &q, &facts, &err);
    msg_init(&said, W_POD_FACTS);
    msg_put_u8(&said, r == 0);
    if (r == 0)
        pod_facts_put(&facts, &said);
    else
        msg_put_str(&said, err.text);
    if (r < 0)
        fprintf(stderr, "durward-kubernetes: %s\n", err.text);
    (void)msg_send(fd, &said); /* who has gone is told nothing */
    msg_done(&said);
    pod_facts_done(&facts);
}

int kube_pods(const struct kube *k, const char *path, const char *node, struct err *err)
{
    int fd = open_listener(path, err);
    while (fd >= 0) {
        int got = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
        if (got >= 0) {
            answer(k, got, node);
            close(got);
        } else if (errno != EINTR && errno != ECONNABORTED) {
            err_sys(err, "%s", path);
            close(fd);
            fd = -1;
        }
    }
    return -1;
}
