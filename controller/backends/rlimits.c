/* Lowers the limits of the process that becomes the sandbox, and writes the notes about limits that
 * are held less strictly so, or not at all. */
#define _GNU_SOURCE 1
#include "rlimits.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "cgroup.h"
#include "proc.h"

enum { OUR_OWN = 1 }; /* bubblewrap's process counts too */

static int lower(int what, uint64_t to, const char *name, struct err *err)
{
    struct rlimit r;
    if (getrlimit(what, &r) < 0)
        return err_sys(err, "%s", name);
    if (r.rlim_max > to)
        r.rlim_max = to;
    if (r.rlim_cur > r.rlim_max)
        r.rlim_cur = r.rlim_max;
    return setrlimit(what, &r) < 0 ? err_sys(err, "%s", name) : 0;
}

/* The kernel counts processes by user and user namespace (Linux 5.14), so that this is the
 * sandbox's own number. It does not count those of the host's root. */
int rlimits_tasks(const struct plan *plan, struct err *err)
{
    const struct config_sandbox *l = &plan->sandbox_spec.limits;
    return l->pids && !(plan->held & CGROUP_PIDS)
               ? lower(RLIMIT_NPROC, (uint64_t)l->pids + OUR_OWN + plan_server_tasks(plan),
                       "RLIMIT_NPROC", err)
               : 0;
}

/* One of a file that is kept. */
static int lower_size(const struct plan *plan, struct err *err)
{
    uint64_t disk = plan->sandbox_spec.limits.disk;
    return disk && plan->sandbox_spec.root == SANDBOX_SPEC_KEPT
               ? lower(RLIMIT_FSIZE, disk, "RLIMIT_FSIZE", err)
               : 0;
}

int rlimits_set(const struct plan *plan, struct err *err)
{
    const struct config_sandbox *l = &plan->sandbox_spec.limits;
    proc_files_restore(); /* durward-init sets that of its commands */
    if (l->memory && !(plan->held & CGROUP_MEMORY) &&
        lower(RLIMIT_DATA, l->memory, "RLIMIT_DATA", err) < 0)
        return -1;
    return rlimits_tasks(plan, err) < 0 ? -1 : lower_size(plan, err);
}

/* ---- who serves a virtual machine's files ---- */

uint64_t rlimits_server_files(const struct plan *plan)
{
    enum { A_FILE = 1024 }; /* bytes of the machine's kernel, at least */
    uint64_t most = plan_machine_mib(plan) * PLAN_MIB / A_FILE;
    struct rlimit r;
    return getrlimit(RLIMIT_NOFILE, &r) == 0 && r.rlim_max < most ? r.rlim_max : most;
}

/* What is too large is an error of the write, not its end. */
int rlimits_server(const struct plan *plan, struct err *err)
{
    rlim_t files = rlimits_server_files(plan);
    const struct rlimit r = {files, files};
    (void)signal(SIGXFSZ, SIG_IGN);
    return setrlimit(RLIMIT_NOFILE, &r) < 0 ? err_sys(err, "RLIMIT_NOFILE") : lower_size(plan, err);
}

enum { INOTIFY_INSTANCES = 32, INOTIFY_WATCHES = 16384 };

int rlimits_lower_shared(const char *path, unsigned long to)
{
    char text[32] = "";
    int fd = open(path, O_RDWR | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (n > 0 && strtoul(text, NULL, 10) > to) {
        int k = snprintf(text, sizeof text, "%lu\n", to);
        n = pwrite(fd, text, (size_t)k, 0);
    }
    if (fd >= 0)
        close(fd);
    return n > 0 ? 0 : -1;
}

void rlimits_shared(void)
{
    (void)rlimits_lower_shared("/proc/sys/user/max_inotify_instances", INOTIFY_INSTANCES);
    (void)rlimits_lower_shared("/proc/sys/user/max_inotify_watches", INOTIFY_WATCHES);
}

/* A hard limit of 0 cannot become the 1 that it takes. */
static bool host_takes_dumps(void)
{
    char first = 0;
    struct rlimit r;
    int fd = open("/proc/sys/kernel/core_pattern", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, &first, 1);
    if (fd >= 0)
        close(fd);
    return n == 1 && first == '|' && getrlimit(RLIMIT_CORE, &r) == 0 && r.rlim_max == 0;
}

int rlimits_note(const struct plan *plan, bool uncounted, struct buf *notes)
{
    const struct config_sandbox *l = &plan->sandbox_spec.limits;
    int bad = 0;
    if (l->memory && !(plan->held & CGROUP_MEMORY) && l->backend != BACKEND_MICROVM)
        bad |= buf_append_str(notes, l->backend == BACKEND_GVISOR
                                         ? "note: limit memory: not held, as no control group can "
                                           "be used here\n"
                                         : "note: limit memory: held for each process by itself, "
                                           "as no control group can be used here\n");
    if (l->cpu && !(plan->held & CGROUP_CPU))
        bad |= buf_append_str(notes, "note: limit cpu: not held, as no control group can be used "
                                     "here\n");
    if (l->pids && !(plan->held & CGROUP_PIDS) && uncounted)
        bad |= buf_append_str(notes, "note: limit pids: not held, as the kernel does not count "
                                     "root's processes and no control group can be used here\n");
    if (l->disk && plan->sandbox_spec.root == SANDBOX_SPEC_KEPT)
        bad |= buf_append_str(notes, "note: limit disk: below the root held for each file by "
                                     "itself; together only in /tmp and the like\n");
    if (host_takes_dumps())
        bad |= buf_append_str(notes, "note: a crash in the sandbox starts the host's core dump "
                                     "program; start durward with a hard core limit of 1 or more "
                                     "(ulimit -Hc)\n");
    return bad;
}
