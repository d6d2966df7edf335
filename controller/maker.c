#define _GNU_SOURCE 1
#include "maker.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/keyctl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "backends/bwrap.h"
#include "ipc.h"
#include "netns.h"
#include "proc.h"
#include "rlimits.h"
#include "wire.h"

/* Where the child's descriptors lie; nothing else stays open. The first three go on to bubblewrap,
 * FD_INIT further to durward-init, which expects it there. */
enum child_fd {
    FD_INIT = 3,
    FD_FILTER,
    FD_INFO,
    FD_ERRORS,
    FD_CHANNEL,
    FD_PROGRAM,
    FD_END,
};

enum { NOTES_MAX = 8000, PARKED = 64 }; /* notes: what a controller takes of W_BUILT's text */

/* ---- the child ---- */

static int arrange(int fds[FD_END], struct err *err)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null < 0 || dup2(null, 0) < 0 || dup2(null, 1) < 0)
        return err_sys(err, "/dev/null");
    /* first out of the way, as one may lie where another has to go */
    for (int i = FD_INIT; i < FD_END; i++)
        if ((fds[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, PARKED)) < 0)
            return err_sys(err, "dup");
    for (int i = FD_INIT; i < FD_END; i++)
        if (dup3(fds[i], i, O_CLOEXEC) < 0)
            return err_sys(err, "dup");
    if (syscall(SYS_close_range, FD_END, ~0U, 0) < 0)
        return err_sys(err, "close_range");
    return 0;
}

/* The caller himself, in a namespace that maps nobody else. */
static int enter_as_caller(const struct stage_parts *parts, const struct plan *plan,
                           struct stage_dirs *dirs, struct err *err)
{
    if (geteuid() == 0) {
        if (setgroups(0, NULL) < 0 || setresgid(plan->gid, plan->gid, plan->gid) < 0 ||
            setresuid(plan->uid, plan->uid, plan->uid) < 0)
            return err_sys(err, "cannot become uid %u", (unsigned)plan->uid);
    } else if (plan->uid != geteuid() || plan->gid != getegid()) {
        return err_set(err, ERR_DENIED, "a sandbox of uid %u cannot be made by uid %u",
                       (unsigned)plan->uid, (unsigned)geteuid());
    }
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return err_sys(err, "no_new_privs");
    if (netns_enter(plan->uid, plan->gid, err) < 0)
        return -1;
    return stage_open(parts, plan, NULL, dirs, err);
}

/* With files of our own: the image and the kept layer are opened by the builder's user, in the
 * namespace, before we become who the command is. */
static int enter_with_layers(const struct stage_parts *parts, const struct plan *plan,
                             struct stage_dirs *dirs, struct err *err)
{
    struct idmap map;
    if (geteuid() == 0 && setgroups(0, NULL) < 0)
        return err_sys(err, "setgroups");
    if (geteuid() != 0 && (plan->uid != geteuid() || plan->gid != getegid()))
        return err_set(err, ERR_DENIED, "a sandbox of uid %u cannot be made by uid %u",
                       (unsigned)plan->uid, (unsigned)geteuid());
    if (plan_root_inside(plan))
        idmap_root(&map);
    else
        idmap_same(&map, plan->uid, plan->gid);
    if (idmap_enter(&map, CLONE_NEWNET | CLONE_NEWNS, err) < 0)
        return -1;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return err_sys(err, "no_new_privs");
    return stage_open(parts, plan, &map, dirs, err) < 0 ? -1 : idmap_become(&map, err);
}

static int leave_the_builder(const struct stage_parts *parts, const struct plan *plan,
                             pid_t builder, struct stage_dirs *dirs, struct err *err)
{
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
    if (syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL) < 0 && errno != ENOSYS)
        return err_sys(err, "cannot leave the session keyring");
    bool layers = plan->shape.image[0] || plan->shape.root == SHAPE_KEPT;
    if ((layers ? enter_with_layers(parts, plan, dirs, err)
                : enter_as_caller(parts, plan, dirs, err)) < 0)
        return -1;
    /* after the change of credentials, which would have taken it back */
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != builder)
        return err_set(err, ERR_UNREADY, "the builder is gone");
    return 0;
}

static int post(struct msg *m, struct err *err)
{
    int r = msg_send(FD_CHANNEL, m);
    msg_done(m);
    return r == 0 ? 0 : err_set(err, ERR_UNREADY, "the builder does not listen");
}

static int offer_listeners(const struct plan *plan, const struct netns_listeners *l,
                           struct err *err)
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

static int post_built(const struct plan *plan, bool ok, const char *text, struct err *err)
{
    struct msg m;
    msg_init(&m, W_BUILT);
    msg_put_str(&m, plan->sandbox);
    msg_put_u8(&m, ok);
    msg_put_str(&m, text);
    return post(&m, err);
}

static int await_consent(struct err *err)
{
    struct msg m;
    if (msg_recv(FD_CHANNEL, &m) <= 0)
        return err_set(err, ERR_UNREADY, "the builder is gone");
    bool ok = m.type == W_LISTENERS_OK;
    msg_done(&m);
    return ok ? 0 : err_set(err, ERR_UNREADY, "the builder says something else");
}

/* From here on only what bubblewrap is to have stays open. */
static int become_bwrap(const struct plan *plan, struct err *err)
{
    const struct bwrap_fds fds = {.filter = FD_FILTER, .info = FD_INFO};
    const struct bwrap_root root = {
        .directory = STAGE_ROOT, .empty_file = STAGE_EMPTY, .init = STAGE_INIT};
    if (dup2(FD_ERRORS, STDERR_FILENO) < 0)
        return err_sys(err, "dup");
    for (int fd = FD_INIT; fd <= FD_INFO; fd++)
        if (fcntl(fd, F_SETFD, 0) < 0)
            return err_sys(err, "fcntl");
    if (syscall(SYS_close_range, FD_END, ~0U, 0) < 0)
        return err_sys(err, "close_range");
    if (rlimits_set(plan, err) < 0)
        return -1;
    return bwrap_exec(&root, plan, &fds, err);
}

static int make(const struct stage_parts *given, const struct plan *plan, pid_t builder,
                struct err *err)
{
    static struct netns_listeners l;
    static char text[NOTES_MAX];
    struct stage_parts parts = *given;
    struct stage_dirs dirs;
    struct buf notes;
    parts.init = FD_PROGRAM;
    buf_init(&notes, sizeof text - 1);
    if (leave_the_builder(given, plan, builder, &dirs, err) < 0 ||
        netns_listen(&l, plan->ports, plan->nports, err) < 0 || offer_listeners(plan, &l, err) < 0)
        return -1;
    if (!l.filtered &&
        buf_printf(&notes,
                   "note: nf_tables cannot be used here (%s): TCP is taken on ports 80, "
                   "443 and those of the rules only, and refused packets are not logged\n",
                   l.why_not) < 0)
        return err_set(err, ERR_INTERNAL, "out of memory");
    if (rlimits_note(plan, &notes) < 0)
        return err_set(err, ERR_INTERNAL, "out of memory");
    if (stage_build(&parts, plan, &dirs, &notes, err) < 0)
        return -1;
    stage_close(&dirs);
    memcpy(text, buf_len(&notes) ? (const char *)buf_data(&notes) : "", buf_len(&notes));
    buf_free(&notes);
    if (post_built(plan, true, text, err) < 0 || await_consent(err) < 0)
        return -1;
    netns_close(&l);
    return become_bwrap(plan, err);
}

static NORETURN void child(int fds[FD_END], const struct stage_parts *parts,
                           const struct plan *plan, pid_t builder)
{
    struct err err = {0};
    if (setpgid(0, 0) < 0 || arrange(fds, &err) < 0)
        _exit(1); /* no channel to say it on */
    if (make(parts, plan, builder, &err) < 0)
        (void)post_built(plan, false, err.text, NULL);
    _exit(1);
}

/* ---- the builder's side ---- */

static void close_all(int *fds, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (fds[i] >= 0)
            close(fds[i]);
}

static int open_all(const struct sandbox_seccomp *filter, int ours[4], int theirs[FD_END],
                    struct err *err)
{
    int pair[2];
    if ((theirs[FD_FILTER] = sandbox_seccomp_memfd(filter, err)) < 0)
        return -1;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return err_sys(err, "socketpair");
    ours[0] = pair[0], theirs[FD_CHANNEL] = pair[1];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return err_sys(err, "socketpair");
    ours[1] = pair[0], theirs[FD_INIT] = pair[1];
    if (pipe2(pair, O_CLOEXEC) < 0)
        return err_sys(err, "pipe");
    ours[2] = pair[0], theirs[FD_ERRORS] = pair[1];
    if (pipe2(pair, O_CLOEXEC) < 0)
        return err_sys(err, "pipe");
    ours[3] = pair[0], theirs[FD_INFO] = pair[1];
    if (fcntl(ours[2], F_SETFL, O_NONBLOCK) < 0 || fcntl(ours[3], F_SETFL, O_NONBLOCK) < 0)
        return err_sys(err, "fcntl");
    return 0;
}

int maker_start(const struct stage_parts *parts, const struct sandbox_seccomp *filter,
                const struct plan *plan, struct maker *ret, struct err *err)
{
    int ours[4] = {-1, -1, -1, -1};
    int theirs[FD_END];
    for (int i = 0; i < FD_END; i++)
        theirs[i] = -1;
    pid_t self = getpid(), pid = -1;
    if (open_all(filter, ours, theirs, err) == 0) {
        int given[FD_END];
        memcpy(given, theirs, sizeof given);
        given[FD_PROGRAM] = parts->init;
        pid = fork();
        if (pid == 0)
            child(given, parts, plan, self);
        if (pid < 0)
            err_sys(err, "fork");
    }
    close_all(theirs, FD_END);
    if (pid < 0) {
        close_all(ours, 4);
        return -1;
    }
    *ret = (struct maker){
        .pid = pid, .channel = ours[0], .init = ours[1], .errors = ours[2], .info = ours[3]};
    return 0;
}
