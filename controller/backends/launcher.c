/* Forks the launcher, lays out its descriptors where each backend looks for them, and speaks its
 * side of the channel to the builder for both backends. */
#define _GNU_SOURCE 1
#include "launcher.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/keyctl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "backend.h"
#include "ipc.h"
#include "launcher_internal.h"
#include "proc.h"
#include "trust_sandbox.h"
#include "wire.h"

enum { PARKED = 64 };

/* ---- the child ---- */

static int arrange(int fds[LAUNCHER_FDS], struct err *err)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null < 0 || dup2(null, 0) < 0 || dup2(null, 1) < 0)
        return err_sys(err, "/dev/null");
    /* first out of the way, as one may lie where another has to go */
    int n = fds[LAUNCHER_OWNERS] >= 0 ? LAUNCHER_FDS : LAUNCHER_OWNERS;
    for (int i = LAUNCHER_INIT; i < n; i++)
        if ((fds[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, PARKED)) < 0)
            return err_sys(err, "dup");
    for (int i = LAUNCHER_INIT; i < n; i++)
        if (dup3(fds[i], i, O_CLOEXEC) < 0)
            return err_sys(err, "dup");
    if (syscall(SYS_close_range, n, ~0U, 0) < 0)
        return err_sys(err, "close_range");
    return 0;
}

static int post(struct msg *m, struct err *err)
{
    int r = msg_send(LAUNCHER_CHANNEL, m);
    msg_done(m);
    return r == 0 ? 0
                  : err_set(err, ERR_UNREADY,
                            "the builder does not listen; try again, or see 'durward doctor'");
}

int launcher_offer(const struct plan *plan, const struct netns_listeners *l, struct err *err)
{
    struct msg m;
    msg_init(&m, W_LISTENERS);
    msg_put_str(&m, plan->sandbox);
    msg_put_u32(&m, l->n);
    for (unsigned i = 0; i < l->n; i++) {
        msg_put_u8(&m, l->at[i].kind);
        msg_put_u32(&m, l->at[i].port);
        msg_put_fd_dup(&m, l->at[i].fd);
    }
    return post(&m, err);
}

int launcher_built(const struct plan *plan, bool ok, const char *text, struct err *err)
{
    struct msg m;
    msg_init(&m, W_BUILT);
    msg_put_str(&m, plan->sandbox);
    msg_put_u8(&m, ok);
    msg_put_str(&m, text);
    return post(&m, err);
}

int launcher_await_root(struct slice *root, struct err *err)
{
    static char kept[2 * TRUST_ROOT_MAX];
    struct msg m;
    struct slice id, got;
    if (msg_recv(LAUNCHER_CHANNEL, &m) <= 0)
        return err_set(err, ERR_UNREADY, "the builder is gone");
    bool ok = m.type == W_ROOT && msg_get_slice(&m, PLAN_ID_MAX, &id) == 0 &&
              msg_get_slice(&m, sizeof kept, &got) == 0 && msg_end(&m) == 0;
    if (ok) {
        memcpy(kept, got.p, got.n);
        *root = (struct slice){kept, got.n};
    }
    msg_done(&m);
    return ok ? 0 : err_set(err, ERR_UNREADY, "the builder says something else");
}

int launcher_await_consent(struct err *err)
{
    struct msg m;
    if (msg_recv(LAUNCHER_CHANNEL, &m) <= 0)
        return err_set(err, ERR_UNREADY, "the builder is gone");
    bool ok = m.type == W_LISTENERS_OK;
    msg_done(&m);
    return ok ? 0 : err_set(err, ERR_UNREADY, "the builder says something else");
}

int launcher_note_network(const struct netns_listeners *l, struct buf *notes, struct err *err)
{
    if (!l->filtered &&
        buf_printf(notes,
                   "note: nf_tables cannot be used here (%s): TCP is taken on ports 80, "
                   "443 and those of the rules only, refused packets are not logged, and "
                   "there is no IPv6\n",
                   l->why_not) < 0)
        return err_set(err, ERR_INTERNAL, "out of memory");
    return 0;
}

/* What is the builder's alone stays behind. */
static int leave_the_builder(const struct plan *plan, struct err *err)
{
    /* nothing of the sandbox's runs here then, and a container's filter may refuse the call */
    bool elsewhere = backend_of(plan) == &backend_kubernetes;
    sigset_t empty;
    sigemptyset(&empty);
    /* ignored signals would stay ignored in the sandbox's commands */
    for (int sig = 1; sig < NSIG; sig++)
        signal(sig, SIG_DFL);
    sigprocmask(SIG_SETMASK, &empty, NULL);
    umask(022);
    if (proc_no_core() < 0)
        return err_sys(err, "RLIMIT_CORE");
    /* the caller's keys hang on the session keyring; ENOSYS: a kernel without keyrings */
    if (syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL) < 0 && errno != ENOSYS &&
        !(elsewhere && errno == EPERM))
        return err_sys(err, "cannot leave the session keyring");
    return 0;
}

static NORETURN void child(int fds[LAUNCHER_FDS], const struct rootfs_parts *parts,
                           const struct plan *plan, const struct cgroup *cgroup, pid_t builder)
{
    struct making m = {.parts = *parts, .plan = plan, .builder = builder};
    struct err err = {0};
    m.parts.init = LAUNCHER_PROGRAM;
    m.parts.owners = fds[LAUNCHER_OWNERS] >= 0 ? LAUNCHER_OWNERS : -1;
    if (setpgid(0, 0) < 0 || arrange(fds, &err) < 0)
        _exit(1); /* no channel to say it on */
    if (cgroup_enter(cgroup, &err) < 0 || leave_the_builder(plan, &err) < 0 ||
        backend_of(plan)->make(&m, &err) < 0)
        (void)launcher_built(plan, false, err.text, NULL);
    _exit(1);
}

/* ---- the builder's side ---- */

int launcher_load(const char *path, struct stat *of, struct err *err)
{
    int from = open(path, O_RDONLY | O_CLOEXEC);
    if (from < 0)
        return err_sys(err, "%s", path);
    int to = memfd_create("durward-init", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    int r = to < 0 || fstat(from, of) < 0 ? err_sys(err, "durward-init") : 0;
    for (off_t at = 0; r == 0 && at < of->st_size;)
        if (sendfile(to, from, &at, (size_t)(of->st_size - at)) <= 0)
            r = err_sys(err, "%s", path);
    if (r == 0 && fcntl(to, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK) < 0)
        r = err_sys(err, "durward-init");
    close(from);
    if (r == 0)
        return to;
    if (to >= 0)
        close(to);
    return -1;
}

static void close_all(int *fds, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (fds[i] >= 0)
            close(fds[i]);
}

static int open_all(const struct filter_program *filter, int ours[4], int theirs[LAUNCHER_FDS],
                    struct err *err)
{
    int pair[2];
    if ((theirs[LAUNCHER_FILTER] = sandbox_seccomp_memfd(filter, err)) < 0)
        return -1;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return err_sys(err, "socketpair");
    ours[0] = pair[0], theirs[LAUNCHER_CHANNEL] = pair[1];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return err_sys(err, "socketpair");
    ours[1] = pair[0], theirs[LAUNCHER_INIT] = pair[1];
    if (pipe2(pair, O_CLOEXEC) < 0)
        return err_sys(err, "pipe");
    ours[2] = pair[0], theirs[LAUNCHER_ERRORS] = pair[1];
    if (pipe2(pair, O_CLOEXEC) < 0)
        return err_sys(err, "pipe");
    ours[3] = pair[0], theirs[LAUNCHER_INFO] = pair[1];
    if (fcntl(ours[2], F_SETFL, O_NONBLOCK) < 0 || fcntl(ours[3], F_SETFL, O_NONBLOCK) < 0)
        return err_sys(err, "fcntl");
    return 0;
}

int launcher_start(const struct rootfs_parts *parts, const struct filter_program *filter,
                   const struct plan *plan, struct cgroup *cgroup, struct launcher *ret,
                   struct err *err)
{
    int ours[4] = {-1, -1, -1, -1};
    int theirs[LAUNCHER_FDS];
    for (int i = 0; i < LAUNCHER_FDS; i++)
        theirs[i] = -1;
    pid_t self = getpid(), pid = -1;
    if (open_all(filter, ours, theirs, err) == 0) {
        int given[LAUNCHER_FDS];
        memcpy(given, theirs, sizeof given);
        given[LAUNCHER_PROGRAM] = parts->init;
        given[LAUNCHER_OWNERS] = parts->owners;
        pid = cgroup_fork(cgroup);
        if (pid == 0)
            child(given, parts, plan, cgroup, self);
        if (pid < 0)
            err_sys(err, "fork");
    }
    close_all(theirs, LAUNCHER_FDS);
    if (pid < 0) {
        close_all(ours, 4);
        return -1;
    }
    *ret = (struct launcher){
        .pid = pid, .channel = ours[0], .init = ours[1], .errors = ours[2], .info = ours[3]};
    return 0;
}
