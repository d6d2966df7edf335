/* Finds where a group can be made, writes its limits, freezes it, and removes it; what a killed
 * builder left is swept, and thawed first if it waits to die. */
#define _GNU_SOURCE 1
#include "cgroup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#define MOUNT  "/sys/fs/cgroup"
#define PREFIX "durward-"

enum {
    PATH_SIZE = 512,
    CONTROLLERS = 4,
    PERIOD_US = 100000,
    ORPHAN_S = 60,
    OUR_OWN = 1,
    TRIES = 20,
    TRY_US = 1000
};

/* One directory a controller (version 1), or one for all (version 2). */
struct place {
    char path[PATH_SIZE];
    unsigned holds;
};

struct cgroup {
    struct place at[CONTROLLERS];
    unsigned n;
    bool v2;
    bool born;       /* what cgroup_fork() made began inside */
    uint64_t memory; /* what is asked for; 0: nothing */
    unsigned beside; /* tasks of ours */
};

static const struct {
    const char *name;
    unsigned bit;
} controllers[CONTROLLERS] = {
    {"memory", CGROUP_MEMORY},
    {"pids", CGROUP_PIDS},
    {"cpu", CGROUP_CPU},
    {"freezer", CGROUP_FREEZER},
};

/* ---- files ---- */

static int put(const char *dir, const char *file, const char *text)
{
    char path[PATH_SIZE + 64];
    snprintf(path, sizeof path, "%s/%s", dir, file);
    int fd = open(path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
    ssize_t n = fd < 0 ? -1 : write(fd, text, strlen(text));
    int saved = errno;
    if (fd >= 0)
        close(fd);
    errno = saved;
    return n < 0 ? -1 : 0;
}

static int put_number(const char *dir, const char *file, uint64_t v)
{
    char text[32];
    snprintf(text, sizeof text, "%llu", (unsigned long long)v);
    return put(dir, file, text);
}

static bool lists(const char *list, const char *word)
{
    size_t n = strlen(word);
    for (const char *p = list; *p; p += strcspn(p, ", \n"), p += *p != '\0')
        if (strncmp(p, word, n) == 0 && (p[n] == '\0' || strchr(", \n", p[n])))
            return true;
    return false;
}

/* Our own group in this controller's hierarchy ("" for version 2's), as a directory. */
static bool own_directory(const char *controller, char to[PATH_SIZE])
{
    char line[PATH_SIZE], *names, *path;
    FILE *f = fopen("/proc/self/cgroup", "re");
    bool found = false;
    while (f && !found && fgets(line, sizeof line, f)) {
        line[strcspn(line, "\n")] = '\0';
        names = strchr(line, ':');
        path = names ? strchr(++names, ':') : NULL;
        if (path == NULL)
            continue;
        *path++ = '\0';
        if (controller[0] ? !lists(names, controller) : names[0] != '\0')
            continue;
        found = snprintf(to, PATH_SIZE, MOUNT "%s%s%s", controller[0] ? "/" : "", controller,
                         strcmp(path, "/") == 0 ? "" : path) < PATH_SIZE;
    }
    if (f)
        fclose(f);
    return found;
}

static bool is_v2(void)
{
    struct statfs fs;
    return statfs(MOUNT, &fs) == 0 && (unsigned long)fs.f_type == CGROUP2_SUPER_MAGIC;
}

/* The number at the beginning of a file; UINT64_MAX: there is none, or it is "max". */
static uint64_t get_number(const char *dir, const char *file)
{
    char path[PATH_SIZE + 64];
    unsigned long long v = UINT64_MAX;
    snprintf(path, sizeof path, "%s/%s", dir, file);
    FILE *f = fopen(path, "re");
    if (f && fscanf(f, "%llu", &v) != 1)
        v = UINT64_MAX;
    if (f)
        fclose(f);
    return v;
}

/* ---- limits ---- */

/* Where nothing is said a sandbox may have much, and not all: of the machine's memory, or of what
 * the group that it is made below may have. */
static uint64_t part_of_memory(const struct cgroup *g, const char *dir)
{
    char above[PATH_SIZE];
    snprintf(above, sizeof above, "%s/..", dir);
    uint64_t all = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    uint64_t group = get_number(above, g->v2 ? "memory.max" : "memory.limit_in_bytes");
    return (group < all ? group : all) / 4 * 3;
}

/* Version 1 counts what lies in TCP's buffers apart from memory. All of it together is one number
 * for the host, and beyond that all of its connections get slow; so it is a part of that. */
static void limit_tcp(const char *dir)
{
    unsigned long long most = 0;
    FILE *f = fopen("/proc/sys/net/ipv4/tcp_mem", "re");
    if (f && fscanf(f, "%*u %*u %llu", &most) == 1)
        (void)put_number(dir, "memory.kmem.tcp.limit_in_bytes",
                         most / 4 * (uint64_t)sysconf(_SC_PAGESIZE));
    if (f)
        fclose(f);
}

static int limit_memory(const struct cgroup *g, const char *dir)
{
    uint64_t bytes = g->memory ? g->memory : part_of_memory(g, dir);
    if (!g->v2)
        limit_tcp(dir);
    if (put_number(dir, g->v2 ? "memory.max" : "memory.limit_in_bytes", bytes) < 0)
        return -1;
    /* where there is swap: none of it beside the limit; where there is no such file, no swap */
    if (g->v2)
        (void)put(dir, "memory.swap.max", "0");
    else
        (void)put_number(dir, "memory.memsw.limit_in_bytes", bytes);
    return 0;
}

static int limit_cpu(const struct cgroup *g, const char *dir, unsigned percent)
{
    char text[64];
    unsigned quota = percent * (PERIOD_US / 100);
    snprintf(text, sizeof text, "%u %u", quota, (unsigned)PERIOD_US);
    if (g->v2)
        return put(dir, "cpu.max", text);
    return put_number(dir, "cpu.cfs_period_us", PERIOD_US) < 0
               ? -1
               : put_number(dir, "cpu.cfs_quota_us", quota);
}

static int set(const struct cgroup *g, const char *dir, unsigned bit,
               const struct config_sandbox *l)
{
    switch (bit) {
    case CGROUP_MEMORY:
        return limit_memory(g, dir);
    case CGROUP_PIDS: /* bubblewrap's own process is one of them */
        return put_number(dir, "pids.max", (uint64_t)l->pids + OUR_OWN + g->beside);
    case CGROUP_CPU:
        return limit_cpu(g, dir, l->cpu);
    default:
        return 0;
    }
}

static bool make(struct place *p, const char *above, const char *id)
{
    if (snprintf(p->path, sizeof p->path, "%s/" PREFIX "%s", above, id) >= (int)sizeof p->path)
        return false;
    if (mkdir(p->path, 0755) == 0)
        return true;
    /* left of the same sandbox by a builder that was killed: its processes may just be dying */
    for (unsigned k = 0; k < TRIES && rmdir(p->path) < 0 && errno == EBUSY; k++)
        usleep(TRY_US);
    return mkdir(p->path, 0755) == 0;
}

static void make_v1(struct cgroup *g, const char *id, const struct config_sandbox *l, unsigned want)
{
    char above[PATH_SIZE];
    for (size_t i = 0; i < CONTROLLERS; i++) {
        struct place *p = &g->at[g->n];
        if ((want & controllers[i].bit) == 0 || !own_directory(controllers[i].name, above) ||
            !make(p, above, id))
            continue;
        p->holds = controllers[i].bit;
        if (set(g, p->path, p->holds, l) == 0)
            g->n++;
        else
            rmdir(p->path);
    }
}

/* A group with processes gives its children no controllers, so ours has to be a sibling of our own:
 * where we may write above it (a delegated unit that keeps its daemon in a sub-group, or root). */
static void make_v2(struct cgroup *g, const char *id, const struct config_sandbox *l, unsigned want)
{
    char above[PATH_SIZE];
    struct place *p = &g->at[0];
    if (!own_directory("", above))
        return;
    char *slash = strrchr(above, '/');
    if (strcmp(above, MOUNT) != 0 && slash && access(above, F_OK) == 0)
        *slash = '\0';
    for (size_t i = 0; i < CONTROLLERS - 1; i++)
        if (want & controllers[i].bit) {
            char text[16];
            snprintf(text, sizeof text, "+%s", controllers[i].name);
            (void)put(above, "cgroup.subtree_control", text); /* it may be there already */
        }
    if (!make(p, above, id))
        return;
    g->n = 1;
    for (size_t i = 0; i < CONTROLLERS; i++)
        if ((want & controllers[i].bit) && set(g, p->path, controllers[i].bit, l) == 0)
            p->holds |= controllers[i].bit;
}

/* ---- life ---- */

struct cgroup *cgroup_new(const char *id, const struct config_sandbox *limits, unsigned beside,
                          bool freezer)
{
    unsigned want = CGROUP_MEMORY | (limits->pids ? CGROUP_PIDS : 0) |
                    (limits->cpu ? CGROUP_CPU : 0) | (freezer ? CGROUP_FREEZER : 0);
    struct cgroup *g = calloc(1, sizeof *g);
    if (g == NULL)
        return NULL;
    g->memory = limits->memory;
    g->beside = beside;
    g->v2 = is_v2();
    if (g->v2)
        make_v2(g, id, limits, want);
    else
        make_v1(g, id, limits, want);
    if (cgroup_held(g))
        return g;
    cgroup_free(g);
    return NULL;
}

unsigned cgroup_held(const struct cgroup *g)
{
    unsigned held = 0;
    for (unsigned i = 0; g && i < g->n; i++)
        held |= g->at[i].holds;
    return held;
}

/* Begins inside, or -1 where the kernel or a filter around us does not do that. */
static pid_t fork_into(const char *group)
{
    int dir = open(group, O_PATH | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (dir < 0)
        return -1;
    struct clone_args how = {
        .flags = CLONE_INTO_CGROUP, .exit_signal = SIGCHLD, .cgroup = (uint64_t)dir};
    pid_t pid = (pid_t)syscall(SYS_clone3, &how, sizeof how);
    close(dir);
    return pid;
}

pid_t cgroup_fork(struct cgroup *g)
{
    if (g == NULL || !g->v2)
        return fork();
    g->born = true; /* as the child sees it */
    pid_t pid = fork_into(g->at[0].path);
    if (pid >= 0)
        return pid;
    g->born = false;
    return fork();
}

int cgroup_enter(const struct cgroup *g, struct err *err)
{
    for (unsigned i = 0; g && !g->born && i < g->n; i++)
        if (put(g->at[i].path, g->v2 ? "cgroup.procs" : "tasks", "0") < 0)
            return err_sys(err, "cannot put the sandbox into %s", g->at[i].path);
    return 0;
}

int cgroup_freeze(const struct cgroup *g, bool frozen, struct err *err)
{
    for (unsigned i = 0; g && i < g->n; i++) {
        if ((g->at[i].holds & CGROUP_FREEZER) == 0)
            continue;
        int r = g->v2 ? put(g->at[i].path, "cgroup.freeze", frozen ? "1" : "0")
                      : put(g->at[i].path, "freezer.state", frozen ? "FROZEN" : "THAWED");
        return r < 0 ? err_sys(err, "cannot %s the sandbox", frozen ? "freeze" : "thaw") : 0;
    }
    return err_set(
        err, ERR_UNREADY,
        "unsupported: pausing needs a cgroup freezer that this daemon may use (run it as "
        "root, or as a unit with Delegate=yes and DelegateSubgroup=daemon)");
}

bool cgroup_frozen(const struct cgroup *g)
{
    char path[PATH_MAX], text[256];
    for (unsigned i = 0; g && i < g->n; i++) {
        if ((g->at[i].holds & CGROUP_FREEZER) == 0)
            continue;
        snprintf(path, sizeof path, "%s/%s", g->at[i].path,
                 g->v2 ? "cgroup.events" : "freezer.state");
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        ssize_t n = fd >= 0 ? read(fd, text, sizeof text - 1) : -1;
        if (fd >= 0)
            close(fd);
        text[n > 0 ? n : 0] = '\0';
        return strstr(text, g->v2 ? "frozen 1" : "FROZEN") != NULL;
    }
    return false;
}

void cgroup_free(struct cgroup *g)
{
    for (unsigned i = 0; g && i < g->n; i++)
        /* its last process may not have left yet; if it takes longer, the next builder sweeps */
        for (unsigned k = 0; k < TRIES && rmdir(g->at[i].path) < 0 && errno == EBUSY; k++)
            usleep(TRY_US);
    free(g);
}

/* Does somebody wait for the thaw in order to die? Only the dead daemon's: SIGKILL is pending. */
static bool dies(pid_t pid)
{
    char path[64], line[128];
    unsigned long long pending = 0;
    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    FILE *f = fopen(path, "re");
    while (f && fgets(line, sizeof line, f)) {
        unsigned long long bits;
        if (sscanf(line, "SigPnd: %llx", &bits) == 1 || sscanf(line, "ShdPnd: %llx", &bits) == 1)
            pending |= bits;
    }
    if (f)
        fclose(f);
    return (pending & 1ull << (SIGKILL - 1)) != 0;
}

/* A frozen process of version 1 does not die, not even with its parent. */
static void thaw_the_dead(const char *dir)
{
    char path[PATH_SIZE + NAME_MAX + 32];
    int pid;
    bool any = false;
    snprintf(path, sizeof path, "%s/cgroup.procs", dir);
    FILE *f = fopen(path, "re");
    while (f && !any && fscanf(f, "%d", &pid) == 1)
        any = dies(pid);
    if (f)
        fclose(f);
    if (any)
        (void)put(dir, "freezer.state", "THAWED");
}

static void sweep(const char *above)
{
    DIR *d = opendir(above);
    for (struct dirent *e; d && (e = readdir(d)) != NULL;) {
        struct stat st;
        char dir[PATH_SIZE + NAME_MAX + 2];
        if (strncmp(e->d_name, PREFIX, sizeof PREFIX - 1) != 0)
            continue;
        snprintf(dir, sizeof dir, "%s/%s", above, e->d_name);
        thaw_the_dead(dir);
        if (fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
            time(NULL) - st.st_mtime < ORPHAN_S) /* somebody may be about to use it */
            continue;
        unlinkat(dirfd(d), e->d_name, AT_REMOVEDIR); /* not one with processes */
    }
    if (d)
        closedir(d);
}

void cgroup_sweep(void)
{
    char above[PATH_SIZE];
    if (is_v2()) {
        if (!own_directory("", above))
            return;
        char *slash = strrchr(above, '/');
        if (strcmp(above, MOUNT) != 0 && slash)
            *slash = '\0';
        sweep(above);
        return;
    }
    for (size_t i = 0; i < CONTROLLERS; i++)
        if (own_directory(controllers[i].name, above))
            sweep(above);
}
