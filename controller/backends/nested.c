/* Makes the two user namespaces by a child that enters the one and has a child that enters the
 * other; the maps are written, and we keep a descriptor of each. */
#define _GNU_SOURCE 1
#include "nested.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rlimits.h"

enum { NAMESPACES = 256, TEXT = 64 };

static const char *const capabilities[] = {
    "CAP_CHOWN",   "CAP_DAC_OVERRIDE",     "CAP_DAC_READ_SEARCH", "CAP_FOWNER",    "CAP_FSETID",
    "CAP_KILL",    "CAP_SETGID",           "CAP_SETUID",          "CAP_SETPCAP",   "CAP_NET_ADMIN",
    "CAP_NET_RAW", "CAP_NET_BIND_SERVICE", "CAP_SYS_CHROOT",      "CAP_SYS_ADMIN", "CAP_MKNOD",
    "CAP_SETFCAP", "CAP_AUDIT_WRITE",
};

const char *nested_capability(size_t i)
{
    return i < ARRAY_LEN(capabilities) ? capabilities[i] : NULL;
}

int nested_bound(struct err *err)
{
    static const char *const kinds[] = {"user", "mnt", "pid", "net", "ipc", "uts", "cgroup"};
    char path[TEXT];
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        snprintf(path, sizeof path, "/proc/sys/user/max_%s_namespaces", kinds[i]);
        if (rlimits_lower_shared(path, NAMESPACES) < 0)
            return err_sys(err, "%s", path);
    }
    /* mapped ports of containers, as 80: the gate's own are bound, and shared with nobody */
    (void)rlimits_lower_shared("/proc/sys/net/ipv4/ip_unprivileged_port_start", 0);
    return 0;
}

/* ---- the namespaces ---- */

static int map(pid_t pid, const char *text)
{
    return idmap_put(pid, "uid_map", text) < 0 || idmap_put(pid, "gid_map", text) < 0 ? -1 : 0;
}

/* Into a namespace below, and says so to whoever is to map it, with a number. What it may have of
 * processes is what all of its namespace may have together. */
static bool enter_below(const struct plan *plan, int fd, pid_t number)
{
    char c;
    return rlimits_tasks(plan, NULL) == 0 && unshare(CLONE_NEWUSER) == 0 &&
           prctl(PR_SET_DUMPABLE, 1) == 0 &&
           send(fd, &number, sizeof number, MSG_NOSIGNAL) == sizeof number &&
           recv(fd, &c, 1, 0) == 1;
}

static NORETURN void be_inner(const struct plan *plan, int fd)
{
    (void)enter_below(plan, fd, getpid());
    _exit(0);
}

/* A map is written from the namespace above: that of the inner one by us, who are in the outer. */
static NORETURN void be_outer(const struct plan *plan, int fd)
{
    char text[TEXT], c = 1;
    int pair[2];
    pid_t said;
    /* two ranges above are two here */
    snprintf(text, sizeof text, "0 0 1\n1 1 %d\n", IDMAP_OTHERS_N);
    if (!enter_below(plan, fd, getpid()) ||
        socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
        _exit(0);
    pid_t pid = fork();
    if (pid == 0) {
        close(pair[0]);
        close(fd);
        be_inner(plan, pair[1]);
    }
    close(pair[1]);
    if (pid > 0 && recv(pair[0], &said, sizeof said, 0) == sizeof said && map(pid, text) == 0 &&
        send(fd, &pid, sizeof pid, MSG_NOSIGNAL) == sizeof pid)
        (void)recv(fd, &c, 1, 0);
    _exit(0);
}

/* Waits until somebody is in the next namespace, maps it unless that was done, and opens it. */
static int take(int fd, const char *text, struct err *err)
{
    char path[TEXT], c = 1;
    pid_t pid;
    if (recv(fd, &pid, sizeof pid, 0) != sizeof pid)
        return err_set(err, ERR_UNREADY, "a user namespace for containers inside cannot be made");
    if (text && map(pid, text) < 0)
        return err_sys(err, "cannot map the uids of containers inside");
    snprintf(path, sizeof path, "/proc/%d/ns/user", (int)pid);
    int ns = open(path, O_RDONLY | O_CLOEXEC);
    if (ns < 0)
        return err_sys(err, "%s", path);
    if (send(fd, &c, 1, MSG_NOSIGNAL) != 1) {
        close(ns);
        return err_sys(err, "send");
    }
    return ns;
}

int nested_make(const struct plan *plan, struct nested_namespaces *ret, struct err *err)
{
    char text[TEXT];
    int pair[2], status;
    /* root inside is 1 in the launcher's (idmap_nest) */
    snprintf(text, sizeof text, "0 1 1\n1 %d %d\n", IDMAP_OTHERS, IDMAP_OTHERS_N);
    *ret = (struct nested_namespaces){-1, -1};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
        return err_sys(err, "socketpair");
    pid_t pid = fork();
    if (pid == 0) {
        close(pair[0]);
        be_outer(plan, pair[1]);
    }
    close(pair[1]);
    int r = pid < 0 ? err_sys(err, "fork") : 0;
    if (r == 0 && ((ret->outer = take(pair[0], text, err)) < 0 ||
                   (ret->inner = take(pair[0], NULL, err)) < 0))
        r = -1;
    close(pair[0]);
    if (pid > 0)
        (void)waitpid(pid, &status, 0);
    if (r < 0 && ret->outer >= 0)
        close(ret->outer);
    return r;
}
