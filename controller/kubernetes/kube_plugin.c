/* Copies the plugin, writes the list, waits for changes of the folder; asks at its end whether the
 * DaemonSet is still there. */
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
    HEAR_MS = 3000,   /* of the DaemonSet, at the end */
    WITNESS_S = 1800, /* until it watches anew */
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

/* The one that a runtime uses: the first by name. */
static int find(const struct kube_plugin *p, char to[PATH_BYTES], struct err *err)
{
    char first[NAME_BYTES] = "";
    DIR *d = opendir(p->lists);
    if (d == NULL)
        return err_sys(err, "%s", p->lists);
    for (const struct dirent *e; (e = readdir(d)) != NULL;)
        if ((has_end(e->d_name, ".conflist") || has_end(e->d_name, ".conf") ||
             has_end(e->d_name, ".json")) &&
            strlen(e->d_name) < NAME_BYTES && (!first[0] || strcmp(e->d_name, first) < 0))
            memcpy(first, e->d_name, strlen(e->d_name) + 1);
    closedir(d);
    if (!first[0])
        return err_set(err, ERR_UNREADY, "%s has no list of plugins yet", p->lists);
    if (!has_end(first, ".conflist"))
        return err_set(err, ERR_PARSE,
                       "%s/%.100s is what the runtime uses, and it is one plugin: a list of "
                       "plugins is wanted (.conflist)",
                       p->lists, first);
    int n = snprintf(to, PATH_BYTES, "%s/%s", p->lists, first);
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

static int store(const char *path, const json_t *v, struct err *err)
{
    struct stat st;
    char *text = json_dumps(v, JSON_INDENT(2));
    int r = stat(path, &st) < 0 ? err_sys(err, "%s", path)
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

static int list(const struct kube_plugin *p, bool write, struct err *err)
{
    char path[PATH_BYTES];
    if (find(p, path, err) < 0)
        return -1;
    json_t *had = load(path, err), *own = entry(p);
    json_t *want = had ? kube_list_with(had, own, err) : NULL;
    int r = want ? 0 : -1;
    if (r == 0 && !json_equal(had, want)) {
        r = write ? store(path, want, err)
                  : err_set(err, ERR_UNREADY, "%s has no durward-cni at its end", path);
        if (r == 0)
            fprintf(stderr, "durward-kubernetes: durward-cni stands in %s\n", path);
    } else if (r < 0 && err->code == ERR_PARSE) {
        err_wrap(err, "%s", path);
    }
    json_decref(had);
    json_decref(own);
    json_decref(want);
    return r;
}

/* Nobody's pods are held up for a daemon that has never answered. Where it has, the entry does not
 * wait for it: after the node's start a network writes its list anew, and without its daemon the
 * plugin refuses what would have no gate without the plugin. */
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
    json_t *had = NULL, *want = NULL;
    int r = find(p, path, err);
    if (r == 0)
        r = (had = load(path, err)) && (want = kube_list_without(had, err)) ? 0 : -1;
    if (r == 0 && !json_equal(had, want))
        r = store(path, want, err);
    json_decref(had);
    json_decref(want);
    if (r < 0 || program_path(p, path, err) < 0) /* in a list without its file it stops all pods */
        return -1;
    return unlink(path) == 0 || errno == ENOENT ? 0 : err_sys(err, "%s", path);
}

/* ---- until the end ---- */

static int path_of(const char *daemonset, const char *one, char to[PATH_BYTES], struct err *err)
{
    const char *slash = strchr(daemonset, '/');
    if (slash == NULL)
        return err_set(err, ERR_PARSE, "'%.100s' is not NAMESPACE/NAME", daemonset);
    snprintf(to, PATH_BYTES, "/apis/apps/v1/namespaces/%.*s/daemonsets%s%.253s",
             (int)(slash - daemonset), daemonset, one, slash + 1);
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

/* In a process of its own, for it may wait long and the list may not. It began to watch while it
 * was allowed to: whoever takes Durward away takes the account with it, and it still hears of it.
 */
static void witness(const struct kube *k, const char *path, int to)
{
    struct witness w = {to, '\0'};
    struct timespec again = {.tv_nsec = 50 * 1000000};
    for (;;) {
        struct err err = {0};
        again.tv_sec = kube_follow(k, path, WITNESS_S + 30, on_event, &w, &err) < 0;
        (void)clock_nanosleep(CLOCK_MONOTONIC, 0, &again, NULL);
    }
}

/* Where it says what it has heard. */
static int begin_witness(const struct kube *k, const char *daemonset, struct err *err)
{
    char one[PATH_BYTES], path[PATH_BYTES + 64];
    int ends_of[2];
    if (path_of(daemonset, "?fieldSelector=metadata.name%3D", one, err) < 0)
        return -1;
    snprintf(path, sizeof path, "%s&watch=1&timeoutSeconds=%d", one, WITNESS_S);
    if (pipe2(ends_of, O_CLOEXEC | O_NONBLOCK) < 0)
        return err_sys(err, "a pipe");
    pid_t parent = getpid(), pid = fork();
    if (pid == 0) {
        close(ends_of[0]);
        if (prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && getppid() == parent)
            witness(k, path, ends_of[1]);
        _exit(1);
    }
    close(ends_of[1]);
    if (pid > 0)
        return ends_of[0];
    close(ends_of[0]);
    return err_sys(err, "fork");
}

/* What the witness has heard last. It may hear it a little later than we are told to end. */
static bool has_heard(int from)
{
    struct pollfd p = {.fd = from, .events = POLLIN};
    char said = '\0', text[4096];
    for (int left = HEAR_MS; said != GONE && left > 0; left -= AGAIN_MS) {
        ssize_t n = poll(&p, 1, AGAIN_MS) > 0 ? read(from, text, sizeof text) : 0;
        if (n > 0)
            said = text[n - 1];
        else if (p.revents)
            break;
    }
    return said == GONE;
}

/* That we may not ask is no sign: it is also so where rights or keys of the cluster are changed,
 * and then pods would start without a gate. */
static bool is_taken_away(const struct kube *k, const char *daemonset, int from)
{
    char path[PATH_BYTES];
    struct err err = {0};
    json_t *said = NULL;
    int status = 0;
    struct kube_request q = {.method = "GET", .path = path};
    if (path_of(daemonset, "/", path, &err) < 0 || kube_ask(k, &q, &status, &said, &err) < 0)
        return false;
    bool gone = status == 404 || (status == 200 && ends(said));
    json_decref(said);
    if (status != 401 && status != 403)
        return gone;
    gone = has_heard(from);
    if (!gone)
        fprintf(stderr, "durward-kubernetes: nobody says whether %s is there: durward-cni stays\n",
                daemonset);
    return gone;
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
    sigset_t ends;
    sigemptyset(&ends);
    sigaddset(&ends, SIGTERM);
    sigaddset(&ends, SIGINT);
    sigprocmask(SIG_BLOCK, &ends, NULL);
    int fd = signalfd(-1, &ends, SFD_CLOEXEC | SFD_NONBLOCK);
    if (fd < 0)
        return err_sys(err, "signals");
    int from = begin_witness(k, daemonset, err);
    bool gone = from >= 0 && (keep(p, fd), is_taken_away(k, daemonset, from));
    close(fd);
    if (from >= 0)
        close(from);
    if (!gone)
        return from < 0 ? -1 : 0;
    fprintf(stderr, "durward-kubernetes: %s is gone, and durward-cni goes with it\n", daemonset);
    return kube_plugin_remove(p, err);
}
