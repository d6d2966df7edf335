/* A pod gets another network namespace, mounted over the runtime's own in the directory of
 * namespaces. That one, with the interface, outlives the plugin by a mount beside it; and the
 * environment is laid into the pod's volume before anything of the pod runs. */
#define _GNU_SOURCE 1
#include "cni.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/nsfs.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pod_link.h"

enum { PATH = 512 };

static int path_of(const struct cni_call *c, const char *container, char to[PATH], struct err *err)
{
    int n = snprintf(to, PATH, "%s/" POD_PIN "%s", c->netns, container);
    return n > 0 && n < PATH ? 0 : err_set(err, ERR_LIMIT, "the path of a namespace is too long");
}

/* The process is then in it. By no name in the directory: a mount that is made of another is its
 * peer, and gets what is mounted over that one. */
static int mount_netns(int netns, const char *path)
{
    return setns(netns, CLONE_NEWNET) < 0 ? -1
                                          : mount("/proc/self/ns/net", path, "none", MS_BIND, NULL);
}

static int open_netns(const char *path, struct err *err)
{
    int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    return fd < 0 ? err_sys(err, "%s", path) : fd;
}

static bool same(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* Of a pod in a user namespace of its own its network is, too. */
static bool is_ours(int owner)
{
    struct stat own, other;
    return owner < 0 || stat("/proc/self/ns/user", &own) < 0 || fstat(owner, &other) < 0 ||
           same(&own, &other);
}

/* A child makes it, and waits until it is opened. */
static int netns_of(int owner, struct err *err)
{
    char path[64], made;
    int ready[2];
    if (pipe2(ready, O_CLOEXEC) < 0)
        return err_sys(err, "a pipe");
    pid_t pid = fork();
    if (pid == 0) {
        if (setns(owner, CLONE_NEWUSER) == 0 && unshare(CLONE_NEWNET) == 0 &&
            write(ready[1], "", 1) == 1)
            pause();
        _exit(1);
    }
    close(ready[1]);
    int fd = -1;
    snprintf(path, sizeof path, "/proc/%d/ns/net", (int)pid);
    if (pid > 0 && read(ready[0], &made, 1) == 1)
        fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        err_sys(err, "a network namespace of the pod's user namespace");
    close(ready[0]);
    if (pid > 0) {
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
    }
    return fd;
}

/* For the pod, in place of the one that the runtime made. */
static int inner_of(int outer, struct err *err)
{
    int owner = ioctl(outer, NS_GET_USERNS);
    int fd;
    if (!is_ours(owner))
        fd = netns_of(owner, err);
    else if (unshare(CLONE_NEWNET) < 0 ||
             (fd = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC)) < 0)
        fd = err_sys(err, "a network namespace");
    if (owner >= 0)
        close(owner);
    return fd;
}

/* Over the runtime's, at its name. Whose the outer one is stands in it, where nobody changes it but
 * root of the node: so the daemon finds no other pod's. */
static int cover(const struct cni_call *c, int outer, int inner, struct err *err)
{
    if (setns(outer, CLONE_NEWNET) < 0)
        return err_sys(err, "cannot enter the pod's network");
    if (pod_link_tie(inner, err) < 0)
        return -1;
    return mount_netns(inner, c->pod_path) < 0
               ? err_sys(err, "cannot pin a network namespace at %s", c->pod_path)
               : 0;
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
    int outer = open_netns(c->pod_path, err);
    int inner = outer < 0 ? -1 : inner_of(outer, err);
    bool pinned = inner >= 0 && mount_netns(outer, path) == 0;
    if (inner >= 0 && !pinned)
        err_sys(err, "cannot pin a network namespace at %s", path);
    int r = pinned ? cover(c, outer, inner, err) : -1;
    if (inner >= 0)
        close(inner);
    if (outer >= 0)
        close(outer);
    if (r == 0)
        return 0;
    if (pinned)
        (void)umount2(path, MNT_DETACH);
    unlink(path);
    return -1;
}

/* The runtime's namespace is at its name again. What a version of before us has put under no other
 * is put back. */
static int uncover(const char *path, int outer, struct err *err)
{
    struct stat now, below;
    struct err why = {0};
    int inner = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (inner < 0)
        return 0;
    int r = fstat(inner, &now) < 0 || fstat(outer, &below) < 0 ? -1 : 0;
    if (r == 0 && !same(&now, &below) && pod_link_tied(inner, outer, &why) == 0) {
        if (umount2(path, MNT_DETACH) < 0)
            r = err_sys(err, "cannot unmount %s", path);
        else if (stat(path, &now) < 0 || !same(&now, &below))
            (void)mount_netns(inner, path);
    }
    close(inner);
    return r;
}

/* At whatever name: the runtime has not said which. */
static int uncover_any(const struct cni_call *c, int outer, struct err *err)
{
    char path[PATH];
    DIR *d = opendir(c->netns);
    int r = d == NULL ? err_sys(err, "%s", c->netns) : 0;
    for (const struct dirent *e; r == 0 && (e = readdir(d)) != NULL;) {
        int n = snprintf(path, sizeof path, "%s/%s", c->netns, e->d_name);
        if (e->d_name[0] != '.' && strncmp(e->d_name, POD_PIN, strlen(POD_PIN)) != 0 && n > 0 &&
            n < PATH)
            r = uncover(path, outer, err);
    }
    if (d)
        closedir(d);
    return r;
}

/* Who lives on in the pod has a namespace without an interface; the runtime's is as its plugins
 * left it. */
static int give_back(const struct cni_call *c, bool own, const char *pin, struct err *err)
{
    struct err why = {0};
    int outer = open(pin, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (outer < 0)
        return errno == ENOENT ? 0 : err_sys(err, "%s", pin);
    (void)pod_link_undo(outer, &why); /* a file that is no namespace (any more) has nothing */
    int r = own && c->pod_path[0] ? uncover(c->pod_path, outer, err) : uncover_any(c, outer, err);
    close(outer);
    return r;
}

int cni_unpin(const struct cni_call *c, const char *container, struct err *err)
{
    char path[PATH];
    struct stat st;
    if (path_of(c, container, path, err) < 0)
        return -1;
    if (lstat(path, &st) < 0)
        return errno == ENOENT ? 0 : err_sys(err, "%s", path);
    if (give_back(c, strcmp(container, c->q.container) == 0, path, err) < 0)
        return -1;
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
