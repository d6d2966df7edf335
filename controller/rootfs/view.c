/* Mounts the view and starts the process that serves it, confined to a list of system calls. Its
 * operations are in view_read.c and view_change.c, what it may show in view_judge.c. */
#define _GNU_SOURCE 1
#include "view.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <pthread.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "filter.h"
#include "plan.h"
#include "view_bound.h"
#include "view_internal.h"

#include <fuse_lowlevel.h>

/* linux/mount.h, which does not go together with older libcs */
enum { CONFIG_FLAG = 0, CONFIG_STRING = 1, CONFIG_CREATE = 6, ATTR_RDONLY = 1, ATTR_QUIET = 6 };

int view_device(struct err *err)
{
    int fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);
    return fd < 0 ? err_sys(err, "/dev/fuse") : fd;
}

static int configure(int fs, int device)
{
    char fd[16], uid[16], gid[16];
    snprintf(fd, sizeof fd, "%d", device);
    snprintf(uid, sizeof uid, "%u", (unsigned)geteuid());
    snprintf(gid, sizeof gid, "%u", (unsigned)getegid());
    const char *const set[][2] = {{"source", "durward"},
                                  {"fd", fd},
                                  {"rootmode", "40000"},
                                  {"user_id", uid},
                                  {"group_id", gid}};
    for (size_t i = 0; i < ARRAY_LEN(set); i++)
        if (syscall(SYS_fsconfig, fs, CONFIG_STRING, set[i][0], set[i][1], 0) < 0)
            return -1;
    if (syscall(SYS_fsconfig, fs, CONFIG_FLAG, "allow_other", NULL, 0) < 0)
        return -1;
    return (int)syscall(SYS_fsconfig, fs, CONFIG_CREATE, NULL, NULL, 0);
}

int view_mount(int device, bool readonly, struct err *err)
{
    int tree = -1, fs = (int)syscall(SYS_fsopen, "fuse", 1 /* FSOPEN_CLOEXEC */);
    if (fs < 0)
        return err_sys(err, "FUSE cannot be used (as root: modprobe fuse)");
    if (configure(fs, device) < 0)
        err_sys(err, "FUSE cannot be mounted in a user namespace (Linux 4.18 is needed)");
    else if ((tree = (int)syscall(SYS_fsmount, fs, 1 /* CLOEXEC */,
                                  ATTR_QUIET | (readonly ? ATTR_RDONLY : 0))) < 0)
        err_sys(err, "fsmount fuse");
    close(fs);
    return tree;
}

/* ---- the process ---- */

enum { READY_FD = 3, DEVICE_FD, ROOT_FD, LOCK_FD, SERVE_FDS };

/* A name that libseccomp has not does not compile. */
#define SC(name) (&#name[0 * SCMP_SYS(name)])

static const char *const calls[] = {
    SC(read),         SC(write),
    SC(writev),       SC(pread64),
    SC(pwrite64),     SC(openat),
    SC(openat2),      SC(close),
    SC(fstat),        SC(newfstatat),
    SC(statx),        SC(readlink),
    SC(readlinkat),   SC(getdents64),
    SC(lseek),        SC(mkdirat),
    SC(unlinkat),     SC(renameat2),
    SC(renameat),     SC(linkat),
    SC(symlinkat),    SC(mknodat),
    SC(chmod),        SC(fchmodat),
    SC(fchownat),     SC(utimensat),
    SC(ftruncate),    SC(fallocate),
    SC(fsync),        SC(fdatasync),
    SC(fstatfs),      SC(faccessat),
    SC(faccessat2),   SC(fcntl),
    SC(brk),          SC(munmap),
    SC(mremap),       SC(madvise),
    SC(futex),        SC(set_robust_list),
    SC(rseq),         SC(rt_sigprocmask),
    SC(rt_sigreturn), SC(sched_yield),
    SC(getrandom),    SC(clock_gettime),
    SC(gettimeofday), SC(gettid),
    SC(getpid),       SC(getuid),
    SC(getgid),       SC(geteuid),
    SC(getegid),      SC(exit),
    SC(exit_group),   SC(restart_syscall),
    SC(open),         SC(clock_nanosleep),
};

static int confine(struct err *err)
{
    struct scmp_arg_cmp plain[] = {SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0)};
    struct scmp_arg_cmp thread[] = {
        SCMP_A0(SCMP_CMP_MASKED_EQ, CLONE_THREAD | CLONE_NEWUSER, CLONE_THREAD)};
    struct filter *f = filter_new(FILTER_NATIVE, SCMP_ACT_ERRNO(EPERM));
    for (size_t i = 0; i < ARRAY_LEN(calls); i++)
        filter_rule(f, SCMP_ACT_ALLOW, calls[i], 0, NULL);
    filter_rule(f, SCMP_ACT_ALLOW, SC(mmap), 1, plain);
    filter_rule(f, SCMP_ACT_ALLOW, SC(mprotect), 1, plain);
    filter_rule(f, SCMP_ACT_ALLOW, SC(clone), 1, thread);
    /* its flags lie in memory; libc falls back to clone */
    filter_rule(f, SCMP_ACT_ERRNO(ENOSYS), SC(clone3), 0, NULL);
    int r = SANITIZED ? 0 : filter_load(f, err);
    filter_free(f);
    return r;
}

static int drop_capabilities(struct err *err)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {{0}};
    if (syscall(SYS_capset, &head, none) < 0)
        return err_sys(err, "capabilities");
    return 0;
}

struct serving { /* what the process begins with */
    int ready, device, tree;
    const char *source;
    pid_t launcher;
    const struct volume *volume; /* or NULL */
    const struct view_owner *owner;
};

/* What was the launcher's stays behind. */
static int leave_the_launcher(const struct serving *s, struct err *err)
{
    int from[] = {s->ready, s->device, s->tree, s->volume ? s->volume->lock : -1};
    int n = s->volume ? LOCK_FD : ROOT_FD;
    for (int i = 0; i <= n - READY_FD; i++)
        if ((from[i] = fcntl(from[i], F_DUPFD_CLOEXEC, 64)) < 0)
            return err_sys(err, "dup");
    for (int i = 0; i <= n - READY_FD; i++)
        if (dup3(from[i], READY_FD + i, O_CLOEXEC) < 0)
            return err_sys(err, "dup");
    if (syscall(SYS_close_range, n + 1, ~0U, 0) < 0)
        return err_sys(err, "close_range");
    umask(0);
    if (prctl(PR_SET_NAME, "durward-view") < 0 || prctl(PR_SET_DUMPABLE, 0) < 0 ||
        drop_capabilities(err) < 0)
        return err_sys(err, "the view's process");
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != s->launcher)
        return err_set(err, ERR_UNREADY, "the launcher is gone");
    return 0;
}

static void *on_init(struct fuse_conn_info *conn, struct fuse_config *c)
{
    conn->want &= ~(unsigned)(FUSE_CAP_SPLICE_READ | FUSE_CAP_SPLICE_WRITE | FUSE_CAP_SPLICE_MOVE);
    c->use_ino = 1;
    c->hard_remove = 1;
    c->nullpath_ok = 1;
    c->auto_cache = 1;
    c->entry_timeout = 1.0; /* how long a change by the host may go unseen */
    c->attr_timeout = 1.0;
    return fuse_get_context()->private_data;
}

/* Until the mount is gone. */
static void *answer(void *arg)
{
    struct fuse_session *se = arg;
    struct fuse_buf b = {.mem = NULL};
    while (!fuse_session_exited(se)) {
        int n = fuse_session_receive_buf(se, &b);
        if (n == -EINTR)
            continue;
        if (n <= 0)
            break;
        fuse_session_process_buf(se, &b);
    }
    _exit(0);
}

static struct fuse *set_up(struct view *v, struct err *err)
{
    static struct fuse_operations ops = {.init = on_init};
    static char name[] = "durward";
    char *argv[] = {name, NULL}, at[32];
    struct fuse_args args = FUSE_ARGS_INIT(1, argv);
    view_add_reads(&ops);
    view_add_changes(&ops);
    if (v->bound)
        view_add_bound(&ops);
    struct fuse *f = fuse_new(&args, &ops, sizeof ops, v);
    snprintf(at, sizeof at, "/dev/fd/%d", DEVICE_FD);
    if (f == NULL || fuse_mount(f, at) < 0) {
        err_set(err, ERR_INTERNAL, "libfuse does not start");
        return NULL;
    }
    return f;
}

static int serve(struct view *v, struct err *err)
{
    pthread_t thread;
    struct fuse *f = set_up(v, err);
    if (f == NULL || confine(err) < 0)
        return -1;
    for (int i = 1; i < PLAN_SERVER_THREADS; i++)
        if (pthread_create(&thread, NULL, answer, fuse_get_session(f)) != 0)
            return err_set(err, ERR_UNREADY, "no thread for a view");
    if (write(READY_FD, "", 1) != 1 || close(READY_FD) < 0)
        return err_sys(err, "the launcher");
    answer(fuse_get_session(f));
    return 0;
}

static NORETURN void run(const struct serving *s)
{
    static struct view v;
    static struct bound bound;
    struct err err = {0};
    v = (struct view){.root = ROOT_FD, .source = s->source, .nsource = strlen(s->source)};
    v.uid = s->owner ? s->owner->uid : geteuid();
    v.gid = s->owner ? s->owner->gid : getegid();
    own_init(&v.owns);
    if (s->volume) {
        bound_init(&bound, s->volume, LOCK_FD);
        v.bound = &bound;
    }
    if ((s->owner && s->owner->become && idmap_become(s->owner->become, &err) < 0) ||
        leave_the_launcher(s, &err) < 0 || serve(&v, &err) < 0)
        (void)!write(READY_FD, err.text, strlen(err.text));
    _exit(1);
}

static int start(struct serving *s, struct err *err)
{
    int p[2];
    char said[256] = "";
    s->launcher = getpid();
    if (pipe2(p, O_CLOEXEC) < 0)
        return err_sys(err, "pipe");
    s->ready = p[1];
    pid_t pid = fork();
    if (pid == 0)
        run(s);
    close(p[1]);
    ssize_t n = pid < 0 ? -1 : read(p[0], said, sizeof said - 1);
    close(p[0]);
    if (pid < 0)
        return err_sys(err, "fork");
    if (n == 1 && said[0] == '\0')
        return 0;
    return err_set(err, ERR_UNREADY, "what shows %s does not start: %s", s->source,
                   n > 0 ? said : "it ended");
}

int view_serve(int device, int tree, const char *source, struct err *err)
{
    struct serving s = {.device = device, .tree = tree, .source = source};
    return start(&s, err);
}

int view_serve_volume(int device, const struct volume *v, const struct view_owner *owner,
                      const char *name, struct err *err)
{
    struct serving s = {
        .device = device, .tree = v->root, .source = name, .volume = v, .owner = owner};
    return start(&s, err);
}
