/* The backend's `make`, in a launcher: root, network and consent as for bubblewrap, then runsc in
 * what bubblewrap makes for it. */
#define _GNU_SOURCE 1
#include "gvisor.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "backend.h"
#include "backend_here.h"
#include "bwrap.h"
#include "launcher_internal.h"
#include "proc.h"
#include "rlimits.h"
#include "words.h"

enum { START_WAIT_MS = 2000 };

/* ---- what it runs in ---- */

/* Nothing of the host's but runsc, so that there is nothing to be had by who takes over runsc. */
static void add_place(struct words *w, const struct gvisor_program *p, const char *info,
                      const char *config)
{
    WORDS_ADD(w, "bwrap", "--unshare-user", "--uid", "0", "--gid", "0", "--unshare-pid",
              "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try", "--die-with-parent",
              "--new-session", "--cap-add", "ALL", "--clearenv", "--info-fd", info);
    WORDS_ADD(w, "--bind", ROOTFS_ROOT, GVISOR_ROOT, "--ro-bind", p->path, "/runsc", "--proc",
              "/proc", "--dev-bind", "/dev/null", "/dev/null", "--tmpfs", "/tmp", "--dir", "/state",
              "--ro-bind-data", config, GVISOR_BUNDLE "/config.json", "--remount-ro", "/",
              "--chdir", "/", "--");
}

static void add_runsc(struct words *w, const struct gvisor_program *p, const char *platform)
{
    WORDS_ADD(w, "/runsc", "--root=/tmp/state", platform, "--network=host", "--file-access=shared",
              "--ignore-cgroups");
    if (p->newer)
        WORDS_ADD(w, "--overlay2=none", "--directfs=false", "--host-uds=none", "--host-fifo=none");
    WORDS_ADD(w, "run", "--bundle=" GVISOR_BUNDLE, "sandbox");
}

static NORETURN void become(const struct plan *plan, const struct gvisor_program *p, int inner,
                            int config)
{
    static struct words w;
    struct err err = {0};
    char info[16], data[16], platform[32];
    char *const none[] = {NULL};
    snprintf(info, sizeof info, "%d", LAUNCHER_INFO);
    snprintf(data, sizeof data, "%d", LAUNCHER_PROGRAM);
    snprintf(platform, sizeof platform, "--platform=%s", p->platform);
    add_place(&w, p, info, data);
    add_runsc(&w, p, platform);
    proc_files_restore();
    if (w.full || prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || dup2(inner, STDIN_FILENO) < 0 ||
        dup2(LAUNCHER_ERRORS, STDERR_FILENO) < 0 || dup2(config, LAUNCHER_PROGRAM) < 0 ||
        fcntl(LAUNCHER_INFO, F_SETFD, 0) < 0 || rlimits_tasks(plan, &err) < 0)
        _exit(1);
    close(LAUNCHER_INIT);
    close(LAUNCHER_FILTER);
    close(LAUNCHER_CHANNEL);
    if (syscall(SYS_close_range, LAUNCHER_PROGRAM + 1, ~0U, 0) < 0)
        _exit(1);
    execve(BWRAP_PATH, (char *const *)w.v, none);
    _exit(1);
}

static int start(const struct plan *plan, const struct gvisor_program *p, int config, int *inner,
                 struct err *err)
{
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return err_sys(err, "socketpair");
    pid_t pid = fork();
    if (pid == 0)
        become(plan, p, pair[1], config);
    close(pair[1]);
    *inner = pair[0];
    return pid < 0 ? err_sys(err, "fork") : pid;
}

static int note(const struct plan *plan, struct buf *notes)
{
    int bad = 0;
    if (plan->sandbox_spec.limits.pids)
        bad |= buf_append_str(notes, "note: limit pids: gVisor's threads count too; a sandbox that "
                                     "reaches it may end as a whole\n");
    return bad;
}

static int gvisor_make(const struct making *m, struct err *err)
{
    static struct netns_listeners l;
    struct gvisor_program program;
    struct idmap map;
    struct buf notes;
    int inner = -1;
    buf_init(&notes, LAUNCHER_NOTES_MAX - 1);
    if (gvisor_find(&program, err) < 0 || launcher_lay_out(m, &map, &l, &notes, err) < 0)
        return -1;
    if (note(m->plan, &notes) < 0)
        return err_set(err, ERR_INTERNAL, "out of memory");
    int config = gvisor_spec(m->plan, err);
    if (config < 0 || launcher_agree(m->plan, &l, &notes, err) < 0)
        return -1;
    pid_t pid = start(m->plan, &program, config, &inner, err);
    if (pid < 0)
        return -1;
    const struct keeper_children children = {.sandbox = pid};
    _exit(gvisor_keep(&children, inner));
}

static int check(const struct plan *plan, struct err *err)
{
    (void)plan;
    return backend_here(BACKEND_GVISOR, err) < 0 ? -1 : bwrap_check(err);
}

static const char *remedy(const char *said)
{
    return bwrap_remedy(said);
}

const struct backend backend_gvisor = {
    .name = "gvisor",
    .check = check,
    .make = gvisor_make,
    .remedy = remedy,
    .start_wait_ms = START_WAIT_MS,
};
