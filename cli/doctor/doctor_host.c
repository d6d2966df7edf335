/* Checks the kernel, namespaces, overlays, FUSE, bubblewrap, memory and limits. What changes the
 * process that tries it runs in a child. */
#define _GNU_SOURCE 1
#include "doctor.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cgroup.h"
#include "gvisor.h"
#include "microvm.h"
#include "landlock.h"
#include "mounts.h"
#include "netns.h"
#include "secret.h"

enum { FILES_WANTED = 65536, LINE = 512, TRIAL_MS = 10000, BWRAP_MAJOR = 0, BWRAP_MINOR = 8 };

/* ---- what must run in a process of its own ---- */

/* Runs fn in a child and gives what it wrote; the exit status, or -1 when it died or took too
 * long. */
static int in_child(void (*fn)(int out), char *said, size_t size)
{
    int p[2], status = 0;
    size_t n = 0;
    said[0] = 0;
    if (pipe(p) < 0)
        return -1;
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        close(p[0]);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        fn(p[1]);
        _exit(1);
    }
    close(p[1]);
    struct pollfd w = {.fd = p[0], .events = POLLIN};
    while (pid > 0 && n + 1 < size && poll(&w, 1, TRIAL_MS) > 0) {
        ssize_t k = read(p[0], said + n, size - 1 - n);
        if (k <= 0)
            break;
        n += (size_t)k;
    }
    said[n] = 0;
    said[strcspn(said, "\n")] = 0;
    close(p[0]);
    if (pid < 0)
        return -1;
    kill(pid, SIGKILL);
    if (waitpid(pid, &status, 0) != pid)
        return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : n > 0 ? 0 : -1;
}

/* ---- kernel ---- */

static void kernel(struct findings *f)
{
    struct utsname u;
    unsigned major = 0, minor = 0;
    if (uname(&u) < 0 || sscanf(u.release, "%u.%u", &major, &minor) != 2)
        findings_add(f, "kernel", FINDING_WARN, "run Linux 6.1 or later",
                     "the kernel does not say its version");
    else if (major < 6 || (major == 6 && minor < 1))
        findings_add(f, "kernel", FINDING_WARN, "run Linux 6.1 or later", "Linux %s is not tested",
                     u.release);
    else
        findings_add(f, "kernel", FINDING_OK, NULL, "Linux %s", u.release);
    unsigned action = SECCOMP_RET_ERRNO;
    if (syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) == 0)
        findings_add(f, "seccomp", FINDING_OK, NULL, "filters serve");
    else
        findings_add(f, "seccomp", FINDING_FAIL, "use a kernel with CONFIG_SECCOMP_FILTER=y",
                     "no system-call filters: %s", strerror(errno));
}

/* Beside the filters it is what keeps a role from the files of a user whose uid it has. */
static void paths(struct findings *f)
{
    int abi = landlock_abi();
    if (abi > 0)
        findings_add(f, "landlock", FINDING_OK, NULL, "version %d", abi);
    else
        findings_add(f, "landlock", FINDING_WARN,
                     "use a kernel with CONFIG_SECURITY_LANDLOCK=y, and \"landlock\" in the boot "
                     "parameter lsm=",
                     "no Landlock: a dialer, logger or controller that is taken over has all files "
                     "of its uid");
}

/* A sandbox's network, made as the builder makes it; the first character is the verdict. */
static void make_network(int out)
{
    static const uint16_t ports[] = {8443};
    struct netns_listeners l = {0};
    struct err err = {0};
    if (netns_enter(geteuid(), getegid(), &err) < 0)
        dprintf(out, "U%s\n", err.text);
    else if (netns_listen(&l, ports, ARRAY_LEN(ports), &err) < 0)
        dprintf(out, "N%s\n", err.text);
    else
        dprintf(out, "%c%s\n", l.filtered ? '+' : '-', l.why_not);
    _exit(0);
}

static void network(struct findings *f)
{
    char said[LINE];
    if (in_child(make_network, said, sizeof said) < 0 || said[0] == 0) {
        findings_add(f, "userns", FINDING_FAIL,
                     "try again; the kernel's log (dmesg) says who ended it",
                     "the trial of a namespace died");
        return;
    }
    /* netns.c ends its text with the remedy: "what: why: remedy" */
    char *fix = strstr(said, "as root: ");
    if (said[0] == 'U') {
        findings_add(f, "userns", FINDING_FAIL,
                     fix ? fix : "let this user make user namespaces (user_namespaces(7))", "%s",
                     said + 1);
        return;
    }
    findings_add(f, "userns", FINDING_OK, NULL, "user, network and mount namespaces can be made");
    if (said[0] == 'N')
        findings_add(f, "network", FINDING_FAIL,
                     fix ? fix : "allow netlink in a namespace of one's own", "%s", said + 1);
    else if (said[0] == '-')
        findings_add(f, "nftables", FINDING_WARN,
                     "as root: modprobe -a nf_tables nft_tproxy nfnetlink_log",
                     "no packet rules: only ports 80, 443 and those of rules are served, refused "
                     "packets are not counted (%s)",
                     said + 1);
    else
        findings_add(f, "nftables", FINDING_OK, NULL,
                     "packet rules and their log serve: every TCP port is taken");
}

/* An overlay as a sandbox's root is one, on memory; says nothing when it can be had. */
static void make_overlay(int out)
{
    static const char *const names[] = {"lower", "upper", "work"};
    struct err err = {0};
    int d[3], at = -1, tmp = -1;
    if (netns_enter(geteuid(), getegid(), &err) == 0 && mounts_private(&err) == 0 &&
        (tmp = mounts_tmpfs("0700", "1m", NULL, &err)) >= 0 &&
        (at = mounts_open("/tmp", &err)) >= 0 && mounts_attach(tmp, at, &err) == 0) {
        for (size_t i = 0; i < ARRAY_LEN(names); i++) {
            mkdirat(tmp, names[i], 0700);
            d[i] = openat(tmp, names[i], O_PATH | O_DIRECTORY | O_CLOEXEC);
        }
        mounts_overlay(&d[0], 1, d[1], d[2], &err);
    }
    dprintf(out, "%s\n", err.text);
    _exit(0);
}

/* Where there is no namespace to try it in, the remedy is that of netns.c. */
static const char *own_remedy(const char *said, const char *usual)
{
    const char *fix = strstr(said, "as root: ");
    return fix ? fix : usual;
}

static void overlay(struct findings *f)
{
    char said[LINE];
    if (in_child(make_overlay, said, sizeof said) < 0)
        snprintf(said, sizeof said, "the trial died");
    if (said[0])
        findings_add(f, "overlay", FINDING_WARN,
                     own_remedy(said, "as root: modprobe overlay; Linux 6.1 or later"),
                     "no images, no writable root, no snapshots: %s", said);
    else
        findings_add(f, "overlay", FINDING_OK, NULL, "overlays can be mounted in a user namespace");
}

/* What a view (`run --view`) is made of, in a namespace as its sandbox has one. */
static void make_fuse(int out)
{
    enum { FUSE_MAJOR = 10, FUSE_MINOR = 229 };
    struct err err = {0};
    struct stat st;
    int fd = -1;
    if (netns_enter(geteuid(), getegid(), &err) == 0 &&
        ((fd = open("/dev/fuse", O_RDWR | O_CLOEXEC)) < 0 || fstat(fd, &st) < 0))
        err_sys(&err, "/dev/fuse");
    else if (fd >= 0 && (!S_ISCHR(st.st_mode) || st.st_rdev != makedev(FUSE_MAJOR, FUSE_MINOR)))
        err_set(&err, ERR_DENIED, "/dev/fuse is another device");
    else if (fd >= 0 && syscall(SYS_fsopen, "fuse", 0) < 0)
        err_sys(&err, "a FUSE file system");
    dprintf(out, "%s\n", err.text);
    _exit(0);
}

static void fuse(struct findings *f)
{
    char said[LINE];
    if (in_child(make_fuse, said, sizeof said) < 0)
        snprintf(said, sizeof said, "the trial died");
    if (said[0])
        findings_add(f, "fuse", FINDING_NOTE,
                     own_remedy(said, "as root: modprobe fuse; chmod 0666 /dev/fuse"),
                     "no views (`run --view`): %s", said);
    else
        findings_add(f, "fuse", FINDING_OK, NULL, "/dev/fuse serves: `run --view` can be had");
}

/* ---- memory, limits ---- */

static void memory(struct findings *f)
{
    struct secret *s = secret_new("x", 1);
    const char *backing = s ? secret_backing() : "none";
    if (strcmp(backing, "memfd_secret") == 0)
        findings_add(f, "memory", FINDING_OK, NULL, "secrets lie in memfd_secret pages");
    else if (strcmp(backing, "mlock") == 0)
        findings_add(f, "memory", FINDING_OK, NULL,
                     "secrets lie in locked pages without dumps (no memfd_secret here)");
    else
        findings_add(f, "memory", FINDING_WARN,
                     "raise the limit: ulimit -l 65536, LimitMEMLOCK=64M in the unit",
                     "memory for secrets cannot be locked: it may be swapped out");
    secret_unref(s);
}

static void limits(struct findings *f)
{
    struct rlimit r;
    if (getrlimit(RLIMIT_NOFILE, &r) < 0)
        return;
    if (r.rlim_max < FILES_WANTED)
        findings_add(f, "files", FINDING_WARN, "ulimit -Hn 65536, LimitNOFILE=65536 in the unit",
                     "at most %llu open files a process: about %llu connections a listener",
                     (unsigned long long)r.rlim_max, (unsigned long long)r.rlim_max / 3);
    else
        findings_add(f, "files", FINDING_OK, NULL, "up to %d open files a process", FILES_WANTED);
}

static void groups(struct findings *f)
{
    static const struct config_sandbox ask = {.memory = 1 << 26, .pids = 64, .cpu = 100};
    static const struct {
        unsigned bit;
        const char *name;
    } kinds[] = {{CGROUP_MEMORY, " memory"},
                 {CGROUP_PIDS, " pids"},
                 {CGROUP_CPU, " cpu"},
                 {CGROUP_FREEZER, " freezer"}};
    char id[32], held[64] = "", missing[64] = "";
    snprintf(id, sizeof id, "doctor-%d", (int)getpid());
    struct cgroup *g = cgroup_new(id, &ask, 0, true);
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        char *to = cgroup_held(g) & kinds[i].bit ? held : missing;
        size_t n = strlen(to);
        snprintf(to + n, sizeof held - n, "%s", kinds[i].name);
    }
    cgroup_free(g);
    if (missing[0] == 0)
        findings_add(f, "cgroups", FINDING_OK, NULL, "control groups hold%s", held);
    else
        findings_add(f, "cgroups", FINDING_WARN,
                     "run the daemon as root or as a unit with Delegate=yes",
                     "no control group for%s: limits of a sandbox are a process's, and without a "
                     "freezer there is no pause",
                     missing);
}

/* ---- bubblewrap ---- */

static void run_bwrap(int out)
{
    dup2(out, STDOUT_FILENO);
    dup2(out, STDERR_FILENO);
    execl(BWRAP_PATH, BWRAP_PATH, "--version", (char *)NULL);
    _exit(errno == ENOENT ? 127 : 126);
}

static void bubblewrap(struct findings *f)
{
    char said[LINE];
    unsigned major = 0, minor = 0;
    int r = in_child(run_bwrap, said, sizeof said);
    if (r == 127)
        findings_add(f, "bwrap", FINDING_FAIL, "apt-get install bubblewrap", "%s is not there",
                     BWRAP_PATH);
    else if (sscanf(said, "bubblewrap %u.%u", &major, &minor) != 2)
        findings_add(f, "bwrap", FINDING_FAIL, "apt-get install --reinstall bubblewrap",
                     "%s does not run: %s", BWRAP_PATH, said);
    else if (major == BWRAP_MAJOR && minor < BWRAP_MINOR)
        findings_add(f, "bwrap", FINDING_FAIL, "install bubblewrap 0.8 or later",
                     "%s is too old: it lacks --disable-userns", said);
    else
        findings_add(f, "bwrap", FINDING_OK, NULL, "%s", said);
}

/* ---- gVisor ---- */

/* Nobody needs it who does not ask for it (doctor_files.c). */
static void gvisor(struct findings *f)
{
    struct gvisor_program p;
    struct err err = {0};
    if (gvisor_find(&p, &err) < 0)
        findings_add(f, "gvisor", FINDING_NOTE, NULL, "backend: gvisor cannot run here: %s",
                     err.text);
    else if (!p.newer)
        findings_add(f, "gvisor", FINDING_NOTE, NULL,
                     "%s is runsc %s, platform %s: one this old lacks calls that today's programs "
                     "make (statx's flags: ls)",
                     p.path, p.version, p.platform);
    else
        findings_add(f, "gvisor", FINDING_OK, NULL, "%s is runsc %s, platform %s", p.path,
                     p.version, p.platform);
}

static void microvm(struct findings *f)
{
    struct microvm_program p;
    struct err err = {0};
    if (microvm_find(&p, &err) < 0)
        findings_add(f, "microvm", FINDING_NOTE, NULL, "backend: microvm cannot run here: %s",
                     err.text);
    else
        findings_add(f, "microvm", FINDING_OK, NULL, "%s, %s, the kernel %s%s", p.qemu, p.files,
                     p.kernel, p.kvm ? ", /dev/kvm" : "; no /dev/kvm can be used, so it is slow");
}

void doctor_host(struct findings *f)
{
    kernel(f);
    paths(f);
    network(f);
    overlay(f);
    fuse(f);
    bubblewrap(f);
    gvisor(f);
    microvm(f);
    memory(f);
    limits(f);
    groups(f);
}
