/* Makes, fills and removes the directory that a container's mounts come from. It is locked while
 * its launcher lives, so that the next launcher can tell which ones are left over. */
#define _GNU_SOURCE 1
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "docker.h"
#include "etcfiles.h"
#include "handover.h"
#include "stdio_program.h"
#include "tree.h"
#include "trust_sandbox.h"

/* A directory whose launcher is dead has no lock. */
static bool unlocked(int above, const char *name)
{
    int fd = openat(above, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT;
    bool r = flock(fd, LOCK_EX | LOCK_NB) == 0;
    close(fd);
    return r;
}

bool docker_parts_orphan(const struct docker_parts *p, const char *sandbox)
{
    return strchr(sandbox, '/') == NULL && sandbox[0] != '.' && unlocked(p->above, sandbox);
}

/* With the lock on the directory above, which each launcher holds until it has its own. */
static void sweep(int above)
{
    int fd = openat(above, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    if (d == NULL && fd >= 0)
        close(fd);
    for (struct dirent *e; d && (e = readdir(d)) != NULL;)
        if (e->d_name[0] != '.' && unlocked(above, e->d_name))
            (void)tree_remove(above, e->d_name, NULL); /* the next one tries again */
    if (d)
        closedir(d);
}

static int open_dirs(const struct making *m, struct docker_parts *p, struct err *err)
{
    char above[PATH_MAX];
    int n = snprintf(above, sizeof above, "%s/docker", m->parts.state_dir);
    if (n >= (int)sizeof above || snprintf(p->path, sizeof p->path, "%s/docker/%s",
                                           m->parts.state_dir, p->name) >= (int)sizeof p->path)
        return err_set(err, ERR_LIMIT, "the state directory has too long a path");
    if (mkdir(above, 0700) < 0 && errno != EEXIST)
        return err_sys(err, "%s", above);
    p->above = open(above, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (p->above < 0 || flock(p->above, LOCK_EX) < 0)
        return err_sys(err, "%s", above);
    sweep(p->above);
    if (mkdirat(p->above, p->name, 0755) < 0)
        return err_sys(err, "%s", p->path);
    p->dir = openat(p->above, p->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (p->dir < 0 || flock(p->dir, LOCK_EX | LOCK_NB) < 0 || flock(p->above, LOCK_UN) < 0)
        return err_sys(err, "%s", p->path);
    return 0;
}

static int write_init(int run, int program, struct err *err)
{
    struct stat st;
    int fd = openat(run, HANDOVER_INIT, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0755);
    int r = fd < 0 || fstat(program, &st) < 0 ? err_sys(err, "durward-init") : 0;
    for (off_t at = 0; r == 0 && at < st.st_size;)
        if (sendfile(fd, program, &at, (size_t)(st.st_size - at)) <= 0)
            r = err_sys(err, "cannot copy durward-init");
    if (fd >= 0)
        close(fd);
    if (r == 0 && symlinkat(HANDOVER_INIT, run, STDIO_PROGRAM) < 0)
        r = err_sys(err, STDIO_PROGRAM);
    return r;
}

/* Whatever the container's uid is outside, it may connect; who did is asked before it is given
 * anything. The name goes by the descriptor: a unix socket's path is short. */
static int listen_there(int run, struct err *err)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    snprintf(at.sun_path, sizeof at.sun_path, "/proc/self/fd/%d/" HANDOVER_SOCKET, run);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0 && bind(fd, (struct sockaddr *)&at, sizeof at) == 0 &&
        fchmodat(run, HANDOVER_SOCKET, 0666, 0) == 0 && listen(fd, 1) == 0)
        return fd;
    err_sys(err, "cannot listen for the container");
    if (fd >= 0)
        close(fd);
    return -1;
}

/* Files without content: they are mounted, and filled when the sandbox's CA is known. */
static int make_trust(const struct docker_parts *p, struct err *err)
{
    if (mkdirat(p->dir, DOCKER_TRUST, 0755) < 0)
        return err_sys(err, "%s/" DOCKER_TRUST, p->path);
    int fd = openat(p->dir, DOCKER_TRUST, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    int r = fd < 0                 ? err_sys(err, "%s/" DOCKER_TRUST, p->path)
            : fchmod(fd, 0755) < 0 ? err_sys(err, "%s/" DOCKER_TRUST, p->path)
                                   : trust_lay_empty(fd, err);
    if (fd >= 0)
        close(fd);
    return r;
}

int docker_parts_trust(const struct making *m, const struct docker_parts *p, struct err *err)
{
    struct slice root;
    if (launcher_await_root(&root, err) < 0)
        return -1;
    int roots = open(m->parts.roots_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int to = openat(p->dir, DOCKER_TRUST, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    int r = roots < 0 || to < 0 ? err_sys(err, "trust bundles") : trust_lay(roots, to, root, err);
    if (roots >= 0)
        close(roots);
    if (to >= 0)
        close(to);
    return r;
}

int docker_parts_make(const struct making *m, struct docker_parts *ret, struct err *err)
{
    *ret = (struct docker_parts){.name = m->plan->sandbox, .above = -1, .dir = -1, .listener = -1};
    if (open_dirs(m, ret, err) < 0)
        return -1;
    if (mkdirat(ret->dir, "run", 0755) < 0)
        return err_sys(err, "%s/run", ret->path);
    int run = openat(ret->dir, "run", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (run < 0)
        return err_sys(err, "%s/run", ret->path);
    int r = write_init(run, m->parts.init, err);
    if (r == 0)
        ret->listener = listen_there(run, err);
    close(run);
    return ret->listener < 0 || make_trust(ret, err) < 0
               ? -1
               : etcfiles_write_few(ret->dir, m->plan, err);
}

void docker_parts_remove(struct docker_parts *p)
{
    if (p->listener >= 0)
        close(p->listener);
    if (p->dir >= 0) {
        (void)tree_remove(p->above, p->name, NULL); /* else the next launcher does */
        close(p->dir);
    }
    if (p->above >= 0)
        close(p->above);
    p->above = p->dir = p->listener = -1;
}
