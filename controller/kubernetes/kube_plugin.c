/* Copies the plugin, writes the list, waits for changes of the folder; asks at its end whether
 * Durward is being taken away. */
#include "kube_plugin.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "kube_client.h"
#include "kube_file.h"
#include "kube_list.h"
#include "pod.h"
#include "wire.h"

enum {
    PROGRAM_MAX = 64 << 20,
    PATH_BYTES = 768,
    NAME_BYTES = 256,
    AGAIN_MS = 300,   /* while it is not in place */
    LOOK_MS = 10000,  /* while it is */
    ANSWER_MS = 5000, /* of the daemon */
    HEAR_MS = 5000,   /* of what takes Durward away, at the end */
    WITNESS_S = 1800, /* until it watches anew */
    DOUBLED = 4,      /* times: a witness' rest where it fails */
    LASTED_S = 60,    /* what lasted so long has not failed */
};

enum { HERE = '+', GONE = '-' };

/* ---- the daemon ---- */

static int ask_status(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    struct pod_request q = {.op = POD_STATUS};
    struct msg m;
    uint8_t end;
    msg_init(&m, W_POD);
    pod_request_put(&q, &m);
    int r = msg_send(fd, &m);
    msg_done(&m);
    if (r != 0 || poll(&p, 1, ANSWER_MS) <= 0 || msg_recv(fd, &m) <= 0)
        return -1;
    r = m.type == W_POD_DONE && msg_get_u8(&m, &end) == 0 && end == POD_OK ? 0 : -1;
    msg_done(&m);
    return r;
}

static int daemon_answers(const struct kube_plugin *p, struct err *err)
{
    struct sockaddr_un sa = {.sun_family = AF_UNIX};
    if (strlen(p->socket) >= sizeof sa.sun_path)
        return err_set(err, ERR_LIMIT, "the socket's path %.100s is too long", p->socket);
    memcpy(sa.sun_path, p->socket, strlen(p->socket) + 1);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    int r = fd >= 0 && connect(fd, (struct sockaddr *)&sa, sizeof sa) == 0 ? ask_status(fd) : -1;
    if (fd >= 0)
        close(fd);
    return r < 0 ? err_set(err, ERR_UNREADY, "the node's Durward does not answer at %s", p->socket)
                 : 0;
}

/* ---- the program ---- */

static int program_path(const struct kube_plugin *p, char to[PATH_BYTES], struct err *err)
{
    int n = snprintf(to, PATH_BYTES, "%s/" KUBE_LIST_TYPE, p->bin);
    return n > 0 && n < PATH_BYTES ? 0 : err_set(err, ERR_LIMIT, "%.200s: too long", p->bin);
}

/* 1: it is there already. */
static int program_same(const char *path, struct slice text)
{
    struct buf b;
    struct stat st;
    struct err err = {0};
    int same = kube_file_read_up_to(path, PROGRAM_MAX, &b, &err) == 0 &&
               slice_eq(buf_slice(&b), text) && stat(path, &st) == 0 && (st.st_mode & 0111) == 0111;
    buf_free(&b);
    return same;
}

static int program(const struct kube_plugin *p, bool write, struct err *err)
{
    char path[PATH_BYTES];
    struct buf b;
    int r = program_path(p, path, err);
    if (r < 0)
        return -1;
    r = kube_file_read_up_to(p->from, PROGRAM_MAX, &b, err);
    if (r == 0 && !program_same(path, buf_slice(&b)))
        r = write ? kube_file_replace(path, buf_slice(&b), 0755, err)
                  : err_set(err, ERR_UNREADY, "%s is not the one of this version", path);
    buf_free(&b);
    return r < 0 ? -1 : 0;
}

/* Whether it stood here before: its program is laid there once the daemon has answered, and goes
 * when the entry goes. */
static bool is_known(const struct kube_plugin *p)
{
    char path[PATH_BYTES];
    struct err err = {0};
    return program_path(p, path, &err) == 0 && access(path, F_OK) == 0;
}

/* ---- the list ---- */

static bool has_end(const char *name, const char *end)
{
    size_t n = strlen(name), k = strlen(end);
    return n > k && strcmp(name + n - k, end) == 0;
}

/* The network's, which a runtime would use without us: the first by name but ours. */
static int find(const struct kube_plugin *p, char to[PATH_BYTES], struct err *err)
{
    char first[NAME_BYTES] = "";
    DIR *d = opendir(p->lists);
    if (d == NULL)
        return err_sys(err, "%s", p->lists);
    for (const struct dirent *e; (e = readdir(d)) != NULL;)
        if ((has_end(e->d_name, ".conflist") || has_end(e->d_name, ".conf") ||
             has_end(e->d_name, ".json")) &&
            strcmp(e->d_name, KUBE_LIST_FILE) != 0 && strlen(e->d_name) < NAME_BYTES &&
            (!first[0] || strcmp(e->d_name, first) < 0))
            memcpy(first, e->d_name, strlen(e->d_name) + 1);
    closedir(d);
    if (!first[0])
        return err_set(err, ERR_UNREADY, "%s has no list of plugins yet", p->lists);
    if (strcmp(first, KUBE_LIST_FILE) < 0)
        return err_set(
            err, ERR_PARSE,
            "%s/%.100s is what the runtime uses: by name it comes before " KUBE_LIST_FILE, p->lists,
            first);
    if (!has_end(first, ".conflist"))
        return err_set(err, ERR_PARSE,
                       "%s/%.100s is what the runtime uses, and it is one plugin: a list of "
                       "plugins is wanted (.conflist)",
                       p->lists, first);
    int n = snprintf(to, PATH_BYTES, "%s/%s", p->lists, first);
    return n > 0 && n < PATH_BYTES ? 0 : err_set(err, ERR_LIMIT, "%.200s: too long", p->lists);
}

static int list_path(const struct kube_plugin *p, char to[PATH_BYTES], struct err *err)
{
    int n = snprintf(to, PATH_BYTES, "%s/" KUBE_LIST_FILE, p->lists);
    return n > 0 && n < PATH_BYTES ? 0 : err_set(err, ERR_LIMIT, "%.200s: too long", p->lists);
}

static json_t *load(const char *path, struct err *err)
{
    struct buf b;
    json_t *v = NULL;
    if (kube_file_read(path, &b, err) == 0) {
        v = json_loadb((const char *)buf_data(&b), buf_len(&b), JSON_REJECT_DUPLICATES, NULL);
        if (v == NULL)
            err_set(err, ERR_PARSE, "%s is not whole", path);
    }
    buf_free(&b);
    return v;
}

/* like: whose mode it has. */
static int store(const char *path, const char *like, const json_t *v, struct err *err)
{
    struct stat st;
    char *text = json_dumps(v, JSON_INDENT(2));
    int r = stat(like, &st) < 0 ? err_sys(err, "%s", like)
            : text == NULL      ? err_set(err, ERR_INTERNAL, "out of memory")
                                : kube_file_replace(path, slice_str(text), st.st_mode & 0777, err);
    free(text);
    return r < 0 ? -1 : 0;
}

static json_t *entry(const struct kube_plugin *p)
{
    return json_pack("{s:s, s:s, s:s, s:s, s:s}", "type", KUBE_LIST_TYPE, "socket", p->socket,
                     "netns", p->netns, "kubelet", p->kubelet, "pods", p->pods);
}

/* The network's own as it is without us: an earlier version, or somebody by hand, put us there. */
static int restore(const char *path, struct err *err)
{
    json_t *had = load(path, err), *want = had ? kube_list_without(had, err) : NULL;
    int r = want ? 0 : -1;
    if (r == 0 && !json_equal(had, want))
        r = store(path, path, want, err);
    json_decref(had);
    json_decref(want);
    return r;
}

static int list(const struct kube_plugin *p, bool write, struct err *err)
{
    char path[PATH_BYTES], ours[PATH_BYTES];
    struct err none = {0};
    if (find(p, path, err) < 0 || list_path(p, ours, err) < 0)
        return -1;
    json_t *network = load(path, err), *had = load(ours, &none), *own = entry(p);
    json_t *want = network ? kube_list_made_of(network, had, own, err) : NULL;
    int r = want ? 0 : -1;
    if (r == 0 && !json_equal(had, want)) {
        r = write
                ? store(ours, path, want, err)
                : err_set(err, ERR_UNREADY, "%s is not %s with durward-cni behind it", ours, path);
        if (r == 0)
            fprintf(stderr, "durward-kubernetes: durward-cni stands in %s, which is %s else\n",
                    ours, path);
    } else if (r < 0 && err->code == ERR_PARSE) {
        err_wrap(err, "%s", path);
    }
    json_decref(network);
    json_decref(had);
    json_decref(own);
    json_decref(want);
    return r == 0 && write ? restore(path, err) : r;
}

/* Nobody's pods are held up for a daemon that has never answered. Where it has, the list does not
 * wait for it: without its daemon the plugin refuses what would have no gate without the plugin. */
static int put_in(const struct kube_plugin *p, struct err *err)
{
    if (!is_known(p) && daemon_answers(p, err) < 0)
        return -1;
    return program(p, true, err) < 0 ? -1 : list(p, true, err);
}

int kube_plugin_check(const struct kube_plugin *p, struct err *err)
{
    return program(p, false, err) < 0 || list(p, false, err) < 0 || daemon_answers(p, err) < 0 ? -1
                                                                                               : 0;
}

int kube_plugin_remove(const struct kube_plugin *p, struct err *err)
{
    char path[PATH_BYTES];
    struct err none = {0};
    if (list_path(p, path, err) < 0)
        return -1;
    if (unlink(path) < 0 && errno != ENOENT)
        return err_sys(err, "%s", path);
    if (find(p, path, &none) == 0 && restore(path, err) < 0)
        return -1; /* in a list without its file it stops all pods */
    if (program_path(p, path, err) < 0)
        return -1;
    return unlink(path) == 0 || errno == ENOENT ? 0 : err_sys(err, "%s", path);
}

/* ---- until the end ---- */

/* Durward is taken away where both are gone. A DaemonSet alone is deleted to be made anew as well,
 * and until it is no pod may start without its gate. */
enum { DAEMONSET, RIGHTS, SIGNS };

struct sign {
    char path[PATH_BYTES];       /* of the object, at the API server */
    char watch[PATH_BYTES + 96]; /* of what becomes of it */
    int from;                    /* where its witness says what it has heard */
    char said;
};

static int sign_init(struct sign *s, int which, const char *daemonset, struct err *err)
{
    static const char *const kinds[SIGNS][2] = {{"apps/v1", "daemonsets"},
                                                {"rbac.authorization.k8s.io/v1", "rolebindings"}};
    const char *slash = strchr(daemonset, '/');
    if (slash == NULL)
        return err_set(err, ERR_PARSE, "'%.100s' is not NAMESPACE/NAME", daemonset);
    char base[PATH_BYTES - 256]; /* a name has 253 at most */
    int n = snprintf(base, sizeof base, "/apis/%s/namespaces/%.*s/%s", kinds[which][0],
                     (int)(slash - daemonset), daemonset, kinds[which][1]);
    if (n < 0 || (size_t)n >= sizeof base)
        return err_set(err, ERR_LIMIT, "'%.100s' is too long", daemonset);
    snprintf(s->path, sizeof s->path, "%s/%.253s", base, slash + 1);
    snprintf(s->watch, sizeof s->watch,
             "%s?fieldSelector=metadata.name%%3D%.253s&watch=1&timeoutSeconds=%d"
             "&resourceVersion=0", /* as the API server has it: of what seldom changes it may have
                                      nothing newer to say when it is to be up to date */
             base, slash + 1, WITNESS_S);
    s->from = -1;
    s->said = '\0';
    return 0;
}

static bool ends(const json_t *object)
{
    return json_object_get(json_object_get(object, "metadata"), "deletionTimestamp");
}

struct witness {
    int to;
    char said;
};

static void on_event(const json_t *event, void *arg)
{
    struct witness *w = arg;
    const char *type = json_string_value(json_object_get(event, "type"));
    bool gone = type && strcmp(type, "DELETED") == 0;
    if (!gone && (type == NULL || (strcmp(type, "ADDED") != 0 && strcmp(type, "MODIFIED") != 0)))
        return;
    char now = gone || ends(json_object_get(event, "object")) ? GONE : HERE;
    if (now != w->said && write(w->to, &now, 1) == 1)
        w->said = now;
}

static int64_t milliseconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* In a process of its own, for it may wait long and the list may not. It began to watch while it
 * was allowed to: whoever takes Durward away takes the account with it, and it still hears of it.
 * What fails is tried again less and less often. */
static void witness(const struct kube *k, const char *path, int to)
{
    struct witness w = {to, '\0'};
    struct timespec again = {.tv_nsec = 50 * 1000000};
    for (unsigned failed = 0;;) {
        struct err err = {0};
        int64_t began = milliseconds();
        bool bad = kube_follow(k, path, WITNESS_S + 30, on_event, &w, &err) < 0;
        if (!bad || milliseconds() - began > LASTED_S * 1000)
            failed = 0;
        again.tv_sec = bad ? 1 << failed : 0;
        failed += bad && failed < DOUBLED;
        (void)clock_nanosleep(CLOCK_MONOTONIC, 0, &again, NULL);
    }
}

static int begin_witness(struct sign *s, const struct kube *k, struct err *err)
{
    int ends_of[2];
    if (pipe2(ends_of, O_CLOEXEC | O_NONBLOCK) < 0)
        return err_sys(err, "a pipe");
    pid_t parent = getpid(), pid = fork();
    if (pid == 0) {
        close(ends_of[0]);
        if (prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && getppid() == parent)
            witness(k, s->watch, ends_of[1]);
        _exit(1);
    }
    close(ends_of[1]);
    s->from = ends_of[0];
    return pid > 0 ? 0 : err_sys(err, "fork");
}

/* HERE or GONE; '\0': nobody says. That we may not ask is no sign: it is also so where rights or
 * keys of the cluster are changed, and then pods would start without a gate. */
static char ask_of(const struct kube *k, const char *path)
{
    struct err err = {0};
    json_t *said = NULL;
    int status = 0;
    struct kube_request q = {.method = "GET", .path = path};
    if (kube_ask(k, &q, &status, &said, &err) < 0)
        return '\0';
    char now = status == 404 ? GONE : status != 200 ? '\0' : ends(said) ? GONE : HERE;
    json_decref(said);
    return now;
}

/* Whoever deletes the namespace deletes both signs, but not yet: pods go first, and the DaemonSet
 * is there while they end. */
static bool is_space_ending(const struct kube *k, const char *daemonset)
{
    char path[PATH_BYTES];
    struct err err = {0};
    json_t *said = NULL;
    int status = 0, n = (int)strcspn(daemonset, "/");
    struct kube_request q = {.method = "GET", .path = path};
    snprintf(path, sizeof path, "/api/v1/namespaces/%.*s", n, daemonset);
    bool ending = kube_ask(k, &q, &status, &said, &err) == 0 && status == 200 && ends(said);
    json_decref(said);
    return ending;
}

/* What its witness has heard last. */
static char heard(struct sign *s)
{
    char text[4096];
    for (ssize_t n; (n = read(s->from, text, sizeof text)) > 0;)
        s->said = text[n - 1];
    return s->said;
}

static const char *word_of(char now)
{
    return now == GONE ? "is gone" : now == HERE ? "is there" : "cannot be asked for";
}

/* The witnesses may hear it a little later than we are told to end, and one of the two is gone
 * before the other. */
static bool is_taken_away(const struct kube *k, struct sign *signs, const char *daemonset)
{
    static const struct timespec again = {0, AGAIN_MS * 1000000};
    int64_t end = milliseconds() + HEAR_MS;
    char now[SIGNS];
    do {
        for (int i = 0; i < SIGNS; i++) {
            now[i] = ask_of(k, signs[i].path);
            if (i == DAEMONSET && now[i] == HERE)
                return is_space_ending(k, daemonset); /* else it is an update */
            if (now[i] == '\0')
                now[i] = heard(&signs[i]);
        }
        if (now[DAEMONSET] == GONE && now[RIGHTS] == GONE)
            return true;
        (void)clock_nanosleep(CLOCK_MONOTONIC, 0, &again, NULL);
    } while (milliseconds() < end);
    fprintf(stderr, "durward-kubernetes: durward-cni stays: the DaemonSet %s, its RoleBinding %s\n",
            word_of(now[DAEMONSET]), word_of(now[RIGHTS]));
    return false;
}

static int watch(const struct kube_plugin *p)
{
    int fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    if (fd >= 0 && inotify_add_watch(fd, p->lists,
                                     IN_CLOSE_WRITE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE) < 0)
        fprintf(stderr, "durward-kubernetes: %s: %s\n", p->lists, strerror(errno));
    return fd;
}

static void drain(int fd)
{
    char text[4096];
    while (read(fd, text, sizeof text) > 0)
        ;
}

static void keep(const struct kube_plugin *p, int ended)
{
    char said[256] = "";
    struct pollfd on[2] = {{.fd = ended, .events = POLLIN}, {.fd = watch(p), .events = POLLIN}};
    for (;;) {
        struct err err = {0};
        int r = put_in(p, &err);
        if (r < 0 && strcmp(said, err.text) != 0)
            fprintf(stderr, "durward-kubernetes: %s\n", err.text);
        snprintf(said, sizeof said, "%.255s", r < 0 ? err.text : "");
        (void)poll(on, 2, r < 0 ? AGAIN_MS : LOOK_MS);
        if (on[0].revents)
            break;
        drain(on[1].fd);
    }
    close(on[1].fd);
}

int kube_plugin_keep(const struct kube_plugin *p, const struct kube *k, const char *daemonset,
                     struct err *err)
{
    struct sign signs[SIGNS];
    sigset_t ends;
    sigemptyset(&ends);
    sigaddset(&ends, SIGTERM);
    sigaddset(&ends, SIGINT);
    sigprocmask(SIG_BLOCK, &ends, NULL);
    int fd = signalfd(-1, &ends, SFD_CLOEXEC | SFD_NONBLOCK), r = 0;
    if (fd < 0)
        return err_sys(err, "signals");
    for (int i = 0; r == 0 && i < SIGNS; i++)
        r = sign_init(&signs[i], i, daemonset, err) < 0 || begin_witness(&signs[i], k, err) < 0 ? -1
                                                                                                : 0;
    bool gone = r == 0 && (keep(p, fd), is_taken_away(k, signs, daemonset));
    close(fd);
    if (!gone)
        return r;
    fprintf(stderr, "durward-kubernetes: %s is gone, and durward-cni goes with it\n", daemonset);
    return kube_plugin_remove(p, err);
}
