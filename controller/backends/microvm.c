/* The backend's `make`, in a launcher: root, network and consent as for bubblewrap, then QEMU and
 * virtiofsd, each in what bubblewrap makes for it, and the trunk between the guest and the keeper.
 */
#define _GNU_SOURCE 1
#include "microvm.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "backend.h"
#include "backend_here.h"
#include "bwrap.h"
#include "gvisor.h"
#include "guest.h"
#include "ipc.h"
#include "launcher_internal.h"
#include "proc.h"
#include "rlimits.h"
#include "sandbox_seccomp.h"
#include "words.h"

enum {
    START_WAIT_MS = 2000,
    READY_S = 120, /* a kernel starts, perhaps on a processor that is a program */
    PARKED = 64,
    FILTER_MAX = 4096 * 8, /* bytes */
    MACHINE_FILES = 1024,  /* descriptors of QEMU's */
};

/* Descriptors of a program's, by their numbers there; -1: none. */
struct given {
    int fds[6]; /* 3, 4, ... ; the last are read by bubblewrap */
};

enum { FIRST_GIVEN = 3 };

struct ends {
    int line[2], control[2], listening, files, files_filter, machine_filter, initrd;
};

/* ---- what they run in ---- */

/* A namespace of each kind, none below, the host's programs, and nothing else. */
static void add_place(struct words *w)
{
    WORDS_ADD(w, "bwrap", "--unshare-user", "--disable-userns", "--uid", "0", "--gid", "0",
              "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-net",
              "--unshare-cgroup-try", "--die-with-parent", "--new-session", "--clearenv",
              "--ro-bind", "/usr", "/usr", "--symlink", "usr/lib", "/lib", "--symlink", "usr/lib64",
              "/lib64", "--symlink", "usr/bin", "/bin", "--proc", "/proc", "--dev", "/dev",
              "--tmpfs", "/tmp", "--chdir", "/");
}

static void add_files_server(struct words *w, const struct microvm_program *p)
{
    add_place(w);
    WORDS_ADD(w, "--cap-add", "ALL", "--seccomp", "4", "--bind", ROOTFS_ROOT, MICROVM_ROOT, "--dir",
              "/var", "--dir", "/run", "--", p->files, "--fd=3", "-o", "source=" MICROVM_ROOT, "-o",
              "sandbox=chroot", "-o", p->cache, "--rlimit-nofile=0", "-f");
}

struct machine {
    char memory[16], backend[96], initrd[16];
};

static void add_machine(struct words *w, const struct microvm_program *p, const struct machine *m)
{
    add_place(w);
    WORDS_ADD(w, "--cap-drop", "ALL", "--info-fd", "5", "--ro-bind", p->kernel, MICROVM_KERNEL,
              "--ro-bind-data", "6", MICROVM_INITRD, "--seccomp", "7");
    if (p->kvm)
        WORDS_ADD(w, "--dev-bind", "/dev/kvm", "/dev/kvm");
    WORDS_ADD(w, "--", p->qemu, "-machine",
              "q35,usb=off,vmport=off,sata=off,smbus=off,memory-backend=memory");
    if (p->kvm)
        WORDS_ADD(w, "-accel", "kvm");
    WORDS_ADD(w, "-accel", "tcg,tb-size=128", "-cpu", "max", "-smp", "1", "-m", m->memory,
              "-object", m->backend, "-nodefaults", "-no-user-config", "-display", "none",
              "-serial", "stdio", "-no-reboot", "-kernel", MICROVM_KERNEL, "-initrd",
              MICROVM_INITRD, "-append",
              "console=ttyS0 quiet loglevel=2 panic=-1 reboot=t no_timer_check", "-device",
              "virtio-serial-pci", "-chardev", "socket,id=trunk,fd=3", "-device",
              "virtserialport,chardev=trunk,name=durward", "-chardev", "socket,id=files,fd=4",
              "-device", "vhost-user-fs-pci,chardev=files,tag=" GUEST_TAG, "-sandbox",
              "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny");
}

/* ---- processes ---- */

static int bound(const struct plan *plan, bool machine)
{
    struct rlimit files = {MACHINE_FILES, MACHINE_FILES};
    struct err err = {0};
    proc_files_restore();
    if (rlimits_tasks(plan, &err) < 0)
        return -1;
    return machine ? setrlimit(RLIMIT_NOFILE, &files) : rlimits_server(plan, &err);
}

/* Nothing is open in it but what is given and the two ends of nothing; its words go to errors, and
 * so does what the machine says on its console. */
static NORETURN void become(const struct plan *plan, const struct words *w, const struct given *g,
                            bool machine)
{
    char *const none[] = {NULL};
    int fds[ARRAY_LEN(g->fds)], errors = fcntl(LAUNCHER_ERRORS, F_DUPFD_CLOEXEC, PARKED);
    unsigned n = 0;
    for (; n < ARRAY_LEN(fds) && g->fds[n] >= 0; n++)
        if ((fds[n] = fcntl(g->fds[n], F_DUPFD_CLOEXEC, PARKED)) < 0)
            _exit(1);
    for (unsigned i = 0; i < n; i++)
        if (dup2(fds[i], FIRST_GIVEN + (int)i) < 0)
            _exit(1);
    if (w->full || errors < 0 || prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 ||
        dup2(errors, STDERR_FILENO) < 0 || (machine && dup2(errors, STDOUT_FILENO) < 0) ||
        syscall(SYS_close_range, FIRST_GIVEN + n, ~0U, 0) < 0 || bound(plan, machine) < 0)
        _exit(1);
    execve(BWRAP_PATH, (char *const *)w->v, none);
    _exit(1);
}

/* A socket that virtiofsd takes one connection on, and that connection. Its name is the kernel's
 * choice, in this network namespace, where nothing of the sandbox's runs. */
static int pair_by_name(int *listening, int *connected, struct err *err)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    socklen_t n = sizeof a;
    *listening = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    *connected = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (*listening < 0 || *connected < 0 ||
        bind(*listening, (struct sockaddr *)&a, sizeof a.sun_family) < 0 ||
        listen(*listening, 1) < 0 || getsockname(*listening, (struct sockaddr *)&a, &n) < 0 ||
        connect(*connected, (struct sockaddr *)&a, n) < 0)
        return err_sys(err, "a socket for files");
    return 0;
}

/* The guest's kernel may have been taken over: what a program of a sandbox may not make of a bound
 * file virtiofsd does not make of it either. */
static int files_filter(struct err *err)
{
    struct filter_program p;
    int fd = sandbox_seccomp_files(&p, err) < 0 ? -1 : sandbox_seccomp_memfd(&p, err);
    filter_program_free(&p);
    return fd;
}

static pid_t start_files(const struct plan *plan, const struct microvm_program *p, int listening,
                         int filter)
{
    static struct words w;
    const struct given g = {{listening, filter, -1}};
    add_files_server(&w, p);
    pid_t pid = fork();
    if (pid == 0)
        become(plan, &w, &g, false);
    return pid;
}

/* Whoever has taken QEMU over may ask the host's kernel for what a program under bubblewrap may,
 * and no more. The reader of one file and that of another would have one place in it. */
static int machine_filter(struct err *err)
{
    char *code;
    size_t n;
    if (ipc_memfd_read(LAUNCHER_FILTER, FILTER_MAX, &code, &n, err) < 0)
        return -1;
    int fd = ipc_memfd("filter", code, n, err);
    free(code);
    return fd;
}

static pid_t start_machine(const struct plan *plan, const struct microvm_program *p,
                           const struct ends *e)
{
    static struct words w;
    static struct machine m;
    const struct given g = {
        {e->line[1], e->files, LAUNCHER_INFO, e->initrd, e->machine_filter, -1}};
    unsigned long long mib = (unsigned long long)plan_machine_mib(plan);
    snprintf(m.memory, sizeof m.memory, "%lluM", mib);
    snprintf(m.backend, sizeof m.backend, "memory-backend-memfd,id=memory,size=%lluM,share=on",
             mib);
    add_machine(&w, p, &m);
    pid_t pid = fork();
    if (pid == 0)
        become(plan, &w, &g, true);
    return pid;
}

static pid_t start_trunk(int line, int control)
{
    pid_t pid = fork();
    if (pid != 0)
        return pid;
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || dup2(line, LAUNCHER_INIT) < 0 ||
        dup2(control, LAUNCHER_FILTER) < 0 ||
        syscall(SYS_close_range, LAUNCHER_FILTER + 1, ~0U, 0) < 0)
        _exit(1);
    microvm_carry(LAUNCHER_INIT, LAUNCHER_FILTER);
}

static int open_ends(struct ends *e, struct err *err)
{
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, e->line) < 0 ||
        socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, e->control) < 0)
        return err_sys(err, "socketpair");
    if ((e->files_filter = files_filter(err)) < 0 || (e->machine_filter = machine_filter(err)) < 0)
        return -1;
    return pair_by_name(&e->listening, &e->files, err);
}

static int start_all(const struct plan *plan, const struct microvm_program *p, struct ends *e,
                     struct keeper_children *c, struct err *err)
{
    if (open_ends(e, err) < 0)
        return -1;
    c->others[0] = start_files(plan, p, e->listening, e->files_filter);
    c->others[1] = start_trunk(e->line[0], e->control[1]);
    c->sandbox = start_machine(plan, p, e);
    close(e->line[0]);
    close(e->line[1]);
    close(e->control[1]);
    close(e->listening);
    close(e->files);
    close(e->files_filter);
    close(e->machine_filter);
    close(e->initrd);
    return c->sandbox < 0 || c->others[0] < 0 || c->others[1] < 0 ? err_sys(err, "fork") : 0;
}

static int microvm_make(const struct making *m, struct err *err)
{
    static struct netns_listeners l;
    struct microvm_program program;
    struct keeper_children children = {.connects_inside = true};
    struct ends ends;
    struct idmap map;
    struct buf notes;
    buf_init(&notes, LAUNCHER_NOTES_MAX - 1);
    int guest = microvm_find(&program, err) < 0 ? -1 : microvm_guest(err);
    if (guest < 0 || launcher_lay_out(m, &map, &l, &notes, err) < 0)
        return -1;
    if (!program.kvm &&
        buf_append_str(&notes, "note: no /dev/kvm can be used here: the machine's processor "
                               "is emulated, and slow\n") < 0)
        return err_set(err, ERR_INTERNAL, "out of memory");
    ends.initrd = microvm_initrd(m->plan, &program, guest, err);
    close(guest);
    if (ends.initrd < 0 || launcher_agree(m->plan, &l, &notes, err) < 0 ||
        start_all(m->plan, &program, &ends, &children, err) < 0)
        return -1;
    _exit(gvisor_keep(&children, ends.control[0]));
}

static int check(const struct plan *plan, struct err *err)
{
    (void)plan;
    return backend_here(BACKEND_MICROVM, err) < 0 ? -1 : bwrap_check(err);
}

const struct backend backend_microvm = {
    .name = "microvm",
    .check = check,
    .make = microvm_make,
    .remedy = bwrap_remedy,
    .ready_s = READY_S,
    .start_wait_ms = START_WAIT_MS,
};
