/* Decides which uid is whose, and writes the maps: itself, by a process that stays outside and may
 * map other ids, or by newuidmap(1). */
#define _GNU_SOURCE 1
#include "idmap.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "proc.h"

#define NEWUIDMAP "/usr/bin/newuidmap"
#define NEWGIDMAP "/usr/bin/newgidmap"

/* The first id that a line of /etc/subuid or /etc/subgid ("NAME-OR-UID:FIRST:COUNT") gives us, with
 * so many. */
static bool first_id(const char *file, const char *name, uid_t uid, unsigned need, unsigned *ret)
{
    char line[512], number[16], who[64];
    unsigned first, count;
    FILE *f = fopen(file, "re");
    bool found = false;
    snprintf(number, sizeof number, "%u", (unsigned)uid);
    while (f && !found && fgets(line, sizeof line, f))
        if (sscanf(line, "%63[^:]:%u:%u", who, &first, &count) == 3 && count >= need && first > 0 &&
            first <= UINT32_MAX - need && (strcmp(who, name) == 0 || strcmp(who, number) == 0)) {
            *ret = first;
            found = true;
        }
    if (f)
        fclose(f);
    return found;
}

void idmap_same(struct idmap *m, uid_t uid, gid_t gid)
{
    *m = (struct idmap){.inside_uid = uid, .uid = uid, .inside_gid = gid, .gid = gid};
    m->own = uid == geteuid() && gid == getegid();
}

void idmap_root(struct idmap *m)
{
    unsigned uid, gid;
    *m = (struct idmap){.uid = geteuid(), .gid = getegid(), .own = true};
    if (geteuid() == 0) {
        uid_t ours = proc_role_uid(ROLE_CLIENT);
        if (ours != 0)
            *m = (struct idmap){.uid = ours, .gid = ours};
        return;
    }
    const struct passwd *pw = getpwuid(geteuid());
    const char *name = pw ? pw->pw_name : "";
    if (access(NEWUIDMAP, X_OK) == 0 && access(NEWGIDMAP, X_OK) == 0 &&
        first_id("/etc/subuid", name, geteuid(), 1, &uid) &&
        first_id("/etc/subgid", name, geteuid(), 1, &gid))
        *m = (struct idmap){.uid = uid, .gid = gid, .helper = true};
}

/* Is every uid here the host's? */
static bool of_the_host(void)
{
    unsigned inside = 1, outside = 1, count = 0;
    FILE *f = fopen("/proc/self/uid_map", "re");
    bool all = f && fscanf(f, "%u %u %u", &inside, &outside, &count) == 3 && inside == 0 &&
               outside == 0 && count == UINT32_MAX;
    if (f)
        fclose(f);
    return all;
}

void idmap_caller(struct idmap *m, uid_t uid, gid_t gid, bool binds)
{
    if (uid == 0 && geteuid() == 0 && (!binds || of_the_host()))
        idmap_root(m);
    else
        idmap_same(m, uid, gid);
}

/* Root's come from a line of ours: whoever has an uid of the host's else would be in the sandbox.
 * A user's are the rest of his own. */
int idmap_nest(struct idmap *m, struct err *err)
{
    enum { ROOT = 1, NEED = IDMAP_OTHERS_N + 1 };
    const struct passwd *pw = geteuid() == 0 ? NULL : getpwuid(geteuid());
    const char *name = geteuid() == 0 ? "durward" : pw ? pw->pw_name : "";
    uid_t who = geteuid() == 0 ? proc_role_uid(ROLE_CLIENT) : geteuid();
    unsigned uid, gid;
    if (m->own || m->uid == 0 || m->inside_uid != 0)
        return err_set(
            err, ERR_UNREADY,
            "nested: true: who is root inside must be nobody on the host: take an image, "
            "and as an ordinary user install uidmap and have a line in /etc/subuid");
    if (!first_id("/etc/subuid", name, who, NEED, &uid) ||
        !first_id("/etc/subgid", name, who, NEED, &gid))
        return err_set(err, ERR_UNREADY,
                       "nested: true needs 65536 uids and gids of its own: as root, usermod "
                       "--add-subuids, or a line '%s:FIRST:65536' in /etc/subuid and /etc/subgid",
                       name);
    m->first_uid = uid + 1;
    m->first_gid = gid + 1;
    m->inside_uid = m->inside_gid = ROOT;
    return 0;
}

/* ---- maps ---- */

int idmap_put(pid_t pid, const char *file, const char *text)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, file);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : write(fd, text, strlen(text));
    if (fd >= 0)
        close(fd);
    return n < 0 ? -1 : 0;
}

/* The caller has a number inside too, any other, as it goes on to own what it opens. */
static unsigned other_number(unsigned inside)
{
    return inside == 1 ? 2 : 1;
}

struct triple {
    unsigned inside, outside, count;
};

/* What a map says, of uids or of gids; the caller has its own. */
static unsigned make_map(const struct idmap *m, bool gids, unsigned caller, struct triple t[3])
{
    unsigned inside = gids ? m->inside_gid : m->inside_uid, outside = gids ? m->gid : m->uid;
    unsigned others = gids ? m->first_gid : m->first_uid, n = 0;
    t[n++] = (struct triple){inside, outside, 1};
    if (outside != caller)
        t[n++] = (struct triple){other_number(inside), caller, 1};
    if (others)
        t[n++] = (struct triple){IDMAP_OTHERS, others, IDMAP_OTHERS_N};
    return n;
}

static int call_helper(const char *program, pid_t pid, const struct triple *t, unsigned n)
{
    char text[1 + 3 * 3][16];
    const char *argv[3 + 3 * 3] = {program, text[0]};
    char *const none[] = {NULL};
    int status;
    snprintf(text[0], sizeof text[0], "%d", (int)pid);
    for (unsigned i = 0; i < n; i++) {
        const unsigned of[3] = {t[i].inside, t[i].outside, t[i].count};
        for (unsigned k = 0; k < 3; k++) {
            char *at = text[1 + 3 * i + k];
            snprintf(at, sizeof text[0], "%u", of[k]);
            argv[2 + 3 * i + k] = at;
        }
    }
    pid_t child = fork();
    if (child == 0) {
        execve(program, (char *const *)argv, none);
        _exit(127);
    }
    if (child < 0 || waitpid(child, &status, 0) != child)
        return -1;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -1;
}

static int put_map(pid_t pid, const char *file, const struct triple *t, unsigned n)
{
    char map[128] = "";
    for (unsigned i = 0, at = 0; i < n; i++)
        at += (unsigned)snprintf(map + at, sizeof map - at, "%u %u %u\n", t[i].inside, t[i].outside,
                                 t[i].count);
    return idmap_put(pid, file, map);
}

static int put_maps(const struct idmap *m, pid_t pid, uid_t uid, gid_t gid)
{
    struct triple u[3], g[3];
    unsigned nu = make_map(m, false, uid, u), ng = make_map(m, true, gid, g);
    if (m->helper)
        return call_helper(NEWUIDMAP, pid, u, nu) == 0 && call_helper(NEWGIDMAP, pid, g, ng) == 0
                   ? 0
                   : -1;
    return put_map(pid, "uid_map", u, nu) < 0 ? -1 : put_map(pid, "gid_map", g, ng);
}

/* A process that stays outside, where it has the right to map ids that are not its own. */
static NORETURN void outside(const struct idmap *m, pid_t who, int hear, int say)
{
    char c;
    uid_t uid = geteuid();
    gid_t gid = getegid();
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || read(hear, &c, 1) != 1)
        _exit(1);
    c = put_maps(m, who, uid, gid) == 0;
    _exit(write(say, &c, 1) == 1 && c ? 0 : 1);
}

static int map_by_other(const struct idmap *m, int flags, struct err *err)
{
    int to[2], from[2], status;
    char c = 1;
    pid_t self = getpid();
    if (pipe2(to, O_CLOEXEC) < 0 || pipe2(from, O_CLOEXEC) < 0)
        return err_sys(err, "pipe");
    pid_t pid = fork();
    if (pid == 0) {
        close(to[1]);
        outside(m, self, to[0], from[1]);
    }
    close(to[0]);
    close(from[1]);
    int r = pid < 0 ? err_sys(err, "fork") : 0;
    if (r == 0 && (unshare(CLONE_NEWUSER | flags) < 0 || prctl(PR_SET_DUMPABLE, 1) < 0))
        r = err_sys(err, "cannot make a user namespace");
    if (r == 0 && m->first_gid == 0 && idmap_put(getpid(), "setgroups", "deny") < 0)
        r = err_sys(err, "cannot write the user namespace's setgroups");
    if (r == 0 && (write(to[1], &c, 1) != 1 || read(from[0], &c, 1) != 1 || c != 1))
        r = err_set(err, ERR_UNREADY, "%s",
                    m->helper ? "newuidmap or newgidmap refuses: see /etc/subuid and /etc/subgid"
                              : "the user namespace's maps cannot be written");
    close(to[1]);
    close(from[0]);
    if (pid > 0)
        waitpid(pid, &status, 0);
    return r;
}

static int map_own(const struct idmap *m, int flags, struct err *err)
{
    char map[48];
    if (unshare(CLONE_NEWUSER | flags) < 0 || prctl(PR_SET_DUMPABLE, 1) < 0)
        return err_sys(err, "cannot make a user namespace");
    snprintf(map, sizeof map, "%u %u 1\n", (unsigned)m->inside_uid, (unsigned)m->uid);
    if (idmap_put(getpid(), "setgroups", "deny") < 0 || idmap_put(getpid(), "uid_map", map) < 0)
        return err_sys(err, "cannot write the user namespace's uid_map");
    snprintf(map, sizeof map, "%u %u 1\n", (unsigned)m->inside_gid, (unsigned)m->gid);
    if (idmap_put(getpid(), "gid_map", map) < 0)
        return err_sys(err, "cannot write the user namespace's gid_map");
    return 0;
}

/* A process that is only the namespace's first one. */
static NORETURN void stand_still(int hear)
{
    char c;
    (void)!read(hear, &c, 1);
    _exit(0);
}

static int put_everybody(pid_t pid, uid_t ours)
{
    static const char *const files[] = {"uid_map", "gid_map"};
    char map[128];
    snprintf(map, sizeof map, "0 %u 1\n1 1 %u\n%u %u %u\n", (unsigned)ours, (unsigned)ours - 1,
             (unsigned)ours + 1, (unsigned)ours + 1, UINT32_MAX - ours - 1);
    for (size_t i = 0; i < ARRAY_LEN(files); i++)
        if (idmap_put(pid, files[i], map) < 0)
            return -1;
    return 0;
}

int idmap_mounts(struct err *err)
{
    char path[64];
    int hold[2], status, fd = -1;
    uid_t ours = proc_role_uid(ROLE_CLIENT);
    if (ours == 0 || !of_the_host())
        return err_set(err, ERR_DENIED, "not the host's root");
    if (pipe2(hold, O_CLOEXEC) < 0)
        return err_sys(err, "pipe");
    pid_t pid = (pid_t)syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, NULL, NULL, NULL, NULL);
    if (pid == 0) {
        close(hold[1]);
        stand_still(hold[0]);
    }
    close(hold[0]);
    if (pid > 0 && put_everybody(pid, ours) == 0) {
        snprintf(path, sizeof path, "/proc/%d/ns/user", (int)pid);
        fd = open(path, O_RDONLY | O_CLOEXEC);
    }
    if (fd < 0)
        err_sys(err, "cannot make a user namespace");
    close(hold[1]);
    if (pid > 0)
        (void)waitpid(pid, &status, 0);
    return fd;
}

int idmap_enter(const struct idmap *m, int flags, struct err *err)
{
    if ((m->own ? map_own(m, flags, err) : map_by_other(m, flags, err)) < 0)
        return -1;
    return prctl(PR_SET_DUMPABLE, 0) < 0 ? err_sys(err, "PR_SET_DUMPABLE") : 0;
}

int idmap_become(const struct idmap *m, struct err *err)
{
    uid_t u = m->inside_uid;
    gid_t g = m->inside_gid;
    if (setresgid(g, g, g) < 0 || setresuid(u, u, u) < 0)
        return err_sys(err, "cannot become uid %u of the user namespace", (unsigned)u);
    return 0;
}
