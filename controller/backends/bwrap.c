#define _GNU_SOURCE 1
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif
#include "bwrap.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "slice.h"

#ifndef BWRAP_PATH
#define BWRAP_PATH "/usr/bin/bwrap"
#endif

enum { NUMBER = 16 };

const char *bwrap_program(void)
{
    return BWRAP_PATH;
}

int bwrap_check(struct err *err)
{
    if (access(BWRAP_PATH, X_OK) < 0)
        return err_set(err, ERR_UNREADY,
                       "%s cannot be run (%s): install bubblewrap 0.8 or newer, for instance with "
                       "apt install bubblewrap",
                       BWRAP_PATH, strerror(errno));
    return 0;
}

int bwrap_exec(const char *root, const char *init, const struct plan *plan,
               const struct bwrap_fds *fds, struct err *err)
{
    char uid[NUMBER], gid[NUMBER], filter[NUMBER], info[NUMBER];
    snprintf(uid, sizeof uid, "%u", (unsigned)plan->uid);
    snprintf(gid, sizeof gid, "%u", (unsigned)plan->gid);
    snprintf(filter, sizeof filter, "%d", fds->filter);
    snprintf(info, sizeof info, "%d", fds->info);
    const char *const argv[] = {
        "bwrap", "--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts",
        "--unshare-cgroup-try", "--disable-userns", "--uid", uid, "--gid", gid,
        /* the sandbox dies with bubblewrap and bubblewrap with the builder */
        "--die-with-parent", "--new-session", "--as-pid-1", "--cap-drop", "ALL", "--clearenv",
        "--hostname", plan->hostname, "--seccomp", filter, "--info-fd", info,
        /* everything but /proc and /dev lies ready, with the restrictions it is to have */
        "--bind", root, "/", "--proc", "/proc", "--dev", "/dev",
        "--perms", "1777", "--tmpfs", "/dev/shm", "--remount-ro", "/dev",
        "--chdir", "/", "--", init, NULL,
    };
    char *const none[] = {NULL};
    execve(BWRAP_PATH, (char *const *)argv, none);
    return err_sys(err, "cannot start %s", BWRAP_PATH);
}

pid_t bwrap_child(const char *text, size_t n)
{
    struct slice s = {text, n}, key = SLICE("\"child-pid\"");
    ssize_t at = slice_find_slice(s, key);
    uint64_t pid = 0;
    if (at < 0)
        return 0;
    size_t i = (size_t)at + key.n;
    while (i < n && (text[i] == ':' || text[i] == ' '))
        i++;
    size_t end = i;
    while (end < n && text[end] >= '0' && text[end] <= '9')
        end++;
    if (end == i || slice_u64((struct slice){text + i, end - i}, INT32_MAX, &pid) < 0)
        return 0;
    return (pid_t)pid;
}

const char *bwrap_remedy(const char *message)
{
    if (strstr(message, "nknown option"))
        return "bubblewrap 0.8 or newer is needed";
    if (strstr(message, "mount proc"))
        return "in a container, /proc must not be masked there (docker: --security-opt "
               "systempaths=unconfined)";
    if (strstr(message, "max_user_namespaces") || strstr(message, "ENOSPC"))
        return "as root: sysctl -w user.max_user_namespaces=15000";
    if (strstr(message, "uid map") || strstr(message, "new namespace"))
        return "user namespaces are restricted on this host (AppArmor: as root, sysctl -w "
               "kernel.apparmor_restrict_unprivileged_userns=0)";
    return "";
}
