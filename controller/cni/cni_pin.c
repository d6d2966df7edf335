/* The namespace before a pod outlives the plugin by a mount in the directory of namespaces, as the
 * runtime's own do; and the environment is laid into the pod's volume before anything of the pod
 * runs. */
#define _GNU_SOURCE 1
#include "cni.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pod_link.h"

enum { PATH = 512 };

static int path_of(const struct cni_call *c, const char *container, char to[PATH], struct err *err)
{
    int n = snprintf(to, PATH, "%s/" POD_PIN "%s", c->netns, container);
    return n > 0 && n < PATH ? 0 : err_set(err, ERR_LIMIT, "the path of a namespace is too long");
}

/* Whose it is stands in it, where nobody changes it but root of the node: so the daemon finds no
 * other pod's. */
static int tie(const struct cni_call *c, struct err *err)
{
    int pod = open(c->pod_path, O_RDONLY | O_CLOEXEC);
    int r = pod < 0 ? err_sys(err, "%s", c->pod_path) : pod_link_tie(pod, err);
    if (pod >= 0)
        close(pod);
    return r;
}

int cni_pin(const struct cni_call *c, struct err *err)
{
    char path[PATH];
    if (path_of(c, c->q.container, path, err) < 0)
        return -1;
    int fd = open(path, O_RDONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444);
    if (fd < 0)
        return err_sys(err, "cannot make %s", path);
    close(fd);
    int r = unshare(CLONE_NEWNET) < 0 ? err_sys(err, "a network namespace") : tie(c, err);
    if (r == 0 && mount("/proc/self/ns/net", path, "none", MS_BIND, NULL) == 0)
        return 0;
    if (r == 0)
        err_sys(err, "cannot pin a network namespace at %s", path);
    unlink(path);
    return -1;
}

/* Whether a thread is in this namespace, of one process. */
static bool is_in(int proc, const char *pid, const struct stat *netns)
{
    char path[PATH];
    struct stat st;
    bool found = false;
    snprintf(path, sizeof path, "%.20s/task", pid);
    int at = openat(proc, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = at < 0 ? NULL : fdopendir(at);
    if (d == NULL && at >= 0)
        close(at);
    for (const struct dirent *e; d && !found && (e = readdir(d)) != NULL;) {
        snprintf(path, sizeof path, "%.20s/ns/net", e->d_name);
        found = fstatat(dirfd(d), path, &st, 0) == 0 && st.st_dev == netns->st_dev &&
                st.st_ino == netns->st_ino;
    }
    if (d)
        closedir(d);
    return found;
}

/* Whether anybody lives on in the pod. What cannot be looked at counts. */
static bool has_survivors(int pod)
{
    struct stat netns;
    DIR *d = opendir("/proc");
    bool found = d == NULL || fstat(pod, &netns) < 0;
    for (const struct dirent *e; !found && (e = readdir(d)) != NULL;)
        found = e->d_name[0] >= '1' && e->d_name[0] <= '9' && is_in(dirfd(d), e->d_name, &netns);
    if (d)
        closedir(d);
    return found;
}

/* The pod's own namespace may be gone, with all that is in it. Where somebody lives on in it, who
 * could switch the interface on, it is not given back, and ends with the outer one. */
static int give_back(const struct cni_call *c, const char *pin, struct err *err)
{
    int outer = open(pin, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    int pod = c->pod_path[0] ? open(c->pod_path, O_RDONLY | O_CLOEXEC) : -1;
    int r = outer >= 0 && pod >= 0 && !has_survivors(pod) ? pod_link_undo(pod, outer, err) : 0;
    if (outer >= 0)
        close(outer);
    if (pod >= 0)
        close(pod);
    return r;
}

int cni_unpin(const struct cni_call *c, const char *container, struct err *err)
{
    char path[PATH];
    struct stat st;
    struct err why = {0};
    if (path_of(c, container, path, err) < 0)
        return -1;
    if (lstat(path, &st) < 0)
        return errno == ENOENT ? 0 : err_sys(err, "%s", path);
    if (strcmp(container, c->q.container) == 0)
        (void)give_back(c, path, &why); /* else the interface ends with the namespace */
    if (umount2(path, MNT_DETACH) < 0 && errno != EINVAL)
        return err_sys(err, "cannot unmount %s", path);
    return unlink(path) == 0 || errno == ENOENT ? 0 : err_sys(err, "cannot remove %s", path);
}

/* kept: a line each. */
static bool is_kept(const char *kept, const char *container)
{
    size_t n = strlen(container);
    for (; *kept; kept += strcspn(kept, "\n"), kept += *kept == '\n')
        if (strcspn(kept, "\n") == n && memcmp(kept, container, n) == 0)
            return true;
    return false;
}

static bool listed(const struct cni_call *c, const char *container)
{
    for (unsigned i = 0; i < c->q.n_listed; i++)
        if (strcmp(c->q.listed[i], container) == 0)
            return true;
    return false;
}

int cni_unpin_others(const struct cni_call *c, const char *kept, struct err *err)
{
    DIR *d = opendir(c->netns);
    int r = 0;
    if (d == NULL)
        return err_sys(err, "%s", c->netns);
    for (const struct dirent *e; r == 0 && (e = readdir(d)) != NULL;) {
        const char *container = e->d_name + strlen(POD_PIN);
        if (strncmp(e->d_name, POD_PIN, strlen(POD_PIN)) == 0 &&
            pod_word_ok(container, POD_CONTAINER_MAX) && !listed(c, container) &&
            !is_kept(kept, container))
            r = cni_unpin(c, container, err);
    }
    closedir(d);
    return r;
}

int cni_lay_env(const struct cni_call *c, const struct cni_answer *a, struct err *err)
{
    char path[POD_DIR_MAX];
    if (a->dir[0] == '\0' || c->q.uid[0] == '\0')
        return 0;
    int len = snprintf(path, sizeof path, "%s/pods/%s/volumes/kubernetes.io~empty-dir/" POD_VOLUME,
                       c->kubelet, c->q.uid);
    if (len < 0 || (size_t)len >= sizeof path || strcmp(path, a->dir) != 0)
        return err_set(
            err, ERR_DENIED,
            "the daemon says that the pod's volume is %.200s, and the plugin %.200s; let "
            "'kubelet' be the same in the configurations of both",
            a->dir, path);
    int dir = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir < 0)
        return errno == ENOENT ? 0 : err_sys(err, "%s", path); /* it has no such volume */
    size_t n = strlen(a->env);
    (void)unlinkat(dir, "env", 0); /* of the sandbox that the pod had before */
    int fd = openat(dir, "env", O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
    int r = fd < 0 || fchmod(fd, 0644) < 0 || write(fd, a->env, n) != (ssize_t)n
                ? err_sys(err, "%s/env", path)
                : 0;
    if (fd >= 0)
        close(fd);
    close(dir);
    return r;
}
