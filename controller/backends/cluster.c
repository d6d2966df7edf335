/* kubernetes: a pod of a cluster. The backend's `make`, in a launcher: it has no network to make,
 * since the gate is that of the pod's node; it says which pod is wanted and becomes
 * durward-kubernetes, which speaks to the API server (controller/proto/cluster.h). */
#define _GNU_SOURCE 1
#include "cluster.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <jansson.h>

#include "backend.h"
#include "launcher_internal.h"
#include "program.h"

enum { READY_S = 120, START_WAIT_MS = 20000, ID_BYTES = 8, ID_TEXT = 2 * ID_BYTES + 1 };

/* ---- whose pods they are ---- */

/* A random name of this state directory, which its pods have as a label. */
static int read_id(int dir, char id[ID_TEXT], struct err *err)
{
    unsigned char r[ID_BYTES];
    int fd = openat(dir, ".id", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0 || flock(fd, LOCK_EX) < 0 || getrandom(r, sizeof r, 0) != sizeof r) {
        err_sys(err, "the cluster's directory");
        if (fd >= 0)
            close(fd);
        return -1;
    }
    ssize_t n = read(fd, id, ID_TEXT - 1);
    if (n != ID_TEXT - 1) {
        for (size_t i = 0; i < sizeof r; i++)
            snprintf(id + 2 * i, 3, "%02x", r[i]);
        n = pwrite(fd, id, ID_TEXT - 1, 0);
    }
    id[ID_TEXT - 1] = '\0';
    close(fd);
    return n == ID_TEXT - 1 ? 0 : err_set(err, ERR_INTERNAL, "the cluster's directory");
}

/* Its locks. This pod's stays open for as long as its keeper lives. */
static int open_locks(const struct making *m, int *lock, struct err *err)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/cluster", m->parts.state_dir);
    if (mkdir(path, 0700) < 0 && errno != EEXIST)
        return err_sys(err, "%s", path);
    int dir = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    *lock = dir < 0
                ? -1
                : openat(dir, m->plan->sandbox, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (*lock >= 0 && flock(*lock, LOCK_EX | LOCK_NB) == 0)
        return dir;
    return err_sys(err, "%s", path);
}

/* ---- which pod it is to be ---- */

static json_t *make_plan(const struct making *m, const char *daemon)
{
    const struct plan *plan = m->plan;
    const struct config_sandbox *l = &plan->sandbox_spec.limits;
    const struct cluster_place *c = m->parts.cluster;
    return json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:I, s:I, s:I, s:b}", "sandbox",
                     plan->sandbox, "policy", plan->policy, "namespace", l->kubernetes.ns, "image",
                     l->kubernetes.image, "init", c->image, "api", c->api, "ca", c->ca, "token",
                     c->token, "daemon", daemon, "memory", (json_int_t)l->memory, "cpu",
                     (json_int_t)l->cpu, "disk", (json_int_t)l->disk, "writable", l->writable);
}

static int write_plan(const struct making *m, const char *daemon, struct err *err)
{
    json_t *v = make_plan(m, daemon);
    char *text = v ? json_dumps(v, JSON_COMPACT) : NULL;
    int fd = text ? memfd_create("pod", MFD_CLOEXEC) : -1;
    size_t n = text ? strlen(text) : 0;
    if (fd < 0 || write(fd, text, n) != (ssize_t)n) {
        err_set(err, ERR_INTERNAL, "cannot say which pod is wanted");
        if (fd >= 0)
            close(fd);
        fd = -1;
    }
    free(text);
    json_decref(v);
    return fd;
}

/* ---- becoming its keeper ---- */

static int become(int plan, int locks, int lock, int program, struct err *err)
{
    static char name[] = "durward: cluster", word[] = CLUSTER_WORD;
    enum { PARKED = 32 };
    char *none[] = {NULL}, build[64] = "", *argv[] = {name, build, word, NULL};
    int from[CLUSTER_FDS] = {
        -1, -1, -1, LAUNCHER_INIT, plan, LAUNCHER_INFO, LAUNCHER_ERRORS, LAUNCHER_CHANNEL, locks};
    snprintf(build, sizeof build, "%s", program_build);
    for (int i = CLUSTER_INIT; i < CLUSTER_FDS; i++) /* first out of the way */
        if ((from[i] = fcntl(from[i], F_DUPFD_CLOEXEC, PARKED)) < 0)
            return err_sys(err, "dup");
    int moved = fcntl(program, F_DUPFD_CLOEXEC, PARKED), held = fcntl(lock, F_DUPFD, PARKED);
    if (moved < 0 || held < 0)
        return err_sys(err, "dup");
    for (int i = CLUSTER_INIT; i < CLUSTER_FDS; i++)
        if (dup2(from[i], i) < 0)
            return err_sys(err, "dup");
    program_exec(moved, argv, none);
    return err_sys(err, "cannot start " CLUSTER_PROGRAM);
}

static int cluster_make(const struct making *m, struct err *err)
{
    static const struct netns_listeners none;
    char daemon[ID_TEXT];
    int lock = -1, locks;
    prctl(PR_SET_NAME, "durward-cluster");
    if (m->parts.cluster == NULL)
        return err_set(err, ERR_DENIED,
                       "the configuration names no cluster: see 'cluster' in durward.yaml(5)");
    locks = open_locks(m, &lock, err);
    if (locks < 0 || read_id(locks, daemon, err) < 0)
        return -1;
    int plan = write_plan(m, daemon, err), program = program_open(CLUSTER_PROGRAM, err);
    if (plan < 0 || program < 0 || launcher_offer(m->plan, &none, err) < 0 ||
        launcher_built(m->plan, true, "", err) < 0 || launcher_await_consent(err) < 0)
        return -1;
    if (become(plan, locks, lock, program, err) < 0) /* the builder knows it as built: */
        dprintf(LAUNCHER_ERRORS, "%s", err->text);
    _exit(1);
}

static int check(const struct plan *plan, struct err *err)
{
    return plan->nbinds == 0
               ? 0
               : err_set(err, ERR_DENIED, "nothing of this host can be bound in a cluster's pod");
}

static const char *remedy(const char *said)
{
    (void)said;
    return "";
}

const struct backend backend_kubernetes = {
    .name = "kubernetes",
    .check = check,
    .make = cluster_make,
    .remedy = remedy,
    .stays = true,
    .ready_s = READY_S,
    .start_wait_ms = START_WAIT_MS,
};
