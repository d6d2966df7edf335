/* The listener where a node's CNI plugin asks what the API server says of a pod: one question a
 * connection, in some processes that take turns, so that one that waits for the API server delays
 * no other. Events go by a queue to a process of their own, which nobody waits for. A plugin that
 * waits too long is run again by its runtime. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "kube_client.h"
#include "kube_pod.h"
#include "wire.h"

enum {
    WAITING_MAX = 64,
    ASK_MS = 2000,
    ANSWERING = 4,         /* processes */
    EVENT_S = 5,           /* for each step of making one */
    QUEUE_BYTES = 1 << 16, /* of events that wait; the kernel counts twice */
};

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

/* ---- events ---- */

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

static void make_events(const struct kube *k, int queue, const char *node)
{
    struct kube own = *k;
    struct asked q;
    struct msg m;
    struct err err;
    own.seconds = EVENT_S;
    while (msg_recv(queue, &m) > 0) {
        err = (struct err){0};
        if (read_asked(&m, &q, &err) == 0)
            make_event(&own, &q, node);
        msg_done(&m);
    }
}

static void put_off(const struct asked *a, int queue)
{
    struct msg m;
    msg_init(&m, W_POD_BOUND);
    msg_put_str(&m, a->ns);
    msg_put_str(&m, a->name);
    msg_put_str(&m, a->uid);
    msg_put_str(&m, a->what);
    if (msg_send(queue, &m) != 0)
        fprintf(stderr, "durward-kubernetes: no event of %s/%s: too many wait\n", a->ns, a->name);
    msg_done(&m);
}

/* ---- answers ---- */

struct answering {
    const struct kube *kube;
    const char *path, *node;
    int listener, queue;
};

static void answer_facts(const struct answering *h, const struct asked *q, int bad, int fd,
                         struct err *err)
{
    struct pod_facts facts = {.known = POD_NOT_ASKED};
    struct msg said;
    int r = bad ? -1 : look_up(h->kube, q, &facts, err);
    msg_init(&said, W_POD_FACTS);
    msg_put_u8(&said, r == 0);
    if (r == 0)
        pod_facts_put(&facts, &said);
    else
        msg_put_str(&said, err->text);
    if (r < 0)
        fprintf(stderr, "durward-kubernetes: %s\n", err->text);
    (void)msg_send(fd, &said); /* who has gone is told nothing */
    msg_done(&said);
    pod_facts_done(&facts);
}

static void answer(const struct answering *h, int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    struct asked q;
    struct err err = {0};
    struct msg asked;
    if (poll(&p, 1, ASK_MS) <= 0 || msg_recv(fd, &asked) <= 0)
        return;
    int bad = read_asked(&asked, &q, &err);
    bool bound = asked.type == W_POD_BOUND;
    msg_done(&asked);
    if (bound && bad == 0)
        put_off(&q, h->queue);
    else
        answer_facts(h, &q, bad, fd, &err);
}

static int answer_all(const struct answering *h, struct err *err)
{
    for (;;) {
        int got = accept4(h->listener, NULL, NULL, SOCK_CLOEXEC);
        if (got >= 0) {
            answer(h, got);
            close(got);
        } else if (errno != EINTR && errno != ECONNABORTED) {
            return err_sys(err, "%s", h->path);
        }
    }
}

/* ---- processes ---- */

/* In a process of its own (0), which ends with this one, as this one does with it: SIGCHLD is the
 * caller's. */
static int divide(struct err *err)
{
    pid_t parent = getpid(), pid = fork();
    if (pid < 0)
        return err_sys(err, "fork");
    if (pid > 0)
        return 1;
    signal(SIGCHLD, SIG_DFL);
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent)
        _exit(1);
    return 0;
}

/* The queue's end for those who answer; -1 with err. */
static int begin_events(const struct kube *k, const char *node, struct err *err)
{
    int ends[2], size = QUEUE_BYTES;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
        return err_sys(err, "a queue of events");
    int r = fcntl(ends[0], F_SETFL, O_NONBLOCK) < 0 ||
                    setsockopt(ends[0], SOL_SOCKET, SO_SNDBUF, &size, sizeof size) < 0
                ? err_sys(err, "a queue of events")
                : divide(err);
    if (r == 0) {
        close(ends[0]);
        make_events(k, ends[1], node);
        _exit(1);
    }
    close(ends[1]);
    if (r > 0)
        return ends[0];
    close(ends[0]);
    return -1;
}

int kube_pods(const struct kube *k, const char *path, const char *node, struct err *err)
{
    struct answering h = {k, path, node, open_listener(path, err), -1};
    int r = h.listener < 0 ? -1 : 1;
    if (r > 0)
        r = h.queue = begin_events(k, node, err);
    r = r < 0 ? -1 : 1;
    for (int i = 1; r > 0 && i < ANSWERING; i++)
        r = divide(err);
    return r < 0 ? -1 : answer_all(&h, err);
}
