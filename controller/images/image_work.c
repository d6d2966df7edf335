/* Unpacks and clears an image's files, in children inside the user namespace: the one that reads an
 * archive has no network, no new privileges and bounded memory, and becomes the program `archive`.
 * A directory to import is packed by a child that stays outside. */
#define _GNU_SOURCE 1
#include "image_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "idmap.h"
#include "proc.h"
#include "tree.h"

enum { DATA_MAX = 1 << 30 };

/* ---- in the namespace ---- */

/* Whoever reads a stranger's archive has no more than it needs: no network, no new privileges, no
 * endless memory. */
static int settle(const struct idmap *m, struct err *err)
{
    struct rlimit data = {DATA_MAX, DATA_MAX};
    if (idmap_become(m, err) < 0)
        return -1;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || proc_no_core() < 0 ||
        prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 ||
        (!SANITIZED && setrlimit(RLIMIT_DATA, &data) < 0)) /* a sanitizer's own needs more */
        return err_sys(err, "cannot confine the unpacking");
    umask(022);
    return 0;
}

static int make_owned(int dir, const char *name, const struct idmap *m, struct err *err)
{
    if (mkdirat(dir, name, 0755) < 0 ||
        fchownat(dir, name, m->inside_uid, m->inside_gid, AT_SYMLINK_NOFOLLOW) < 0)
        return err_sys(err, "cannot make the image's directory");
    int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return fd < 0 ? err_sys(err, "%s", name) : fd;
}

/* When nothing more comes. */
static void say(int report, bool ok, const struct err *err)
{
    struct archive_report said = {.done = true, .ok = ok, .err = *err};
    ssize_t n = write(report, &said, sizeof said);
    (void)n; /* then nobody listens any more */
}

/* Files as they are become the root by taking its place. */
static int put_in_place(int dir, bool layers, struct err *err)
{
    if (layers)
        return unlinkat(dir, "new", AT_REMOVEDIR) < 0 ? err_sys(err, "cannot tidy up") : 0;
    if (unlinkat(dir, "root", AT_REMOVEDIR) < 0 || renameat(dir, "new", dir, "root") < 0)
        return err_sys(err, "cannot put the image into its place");
    return 0;
}

/* 0; 1: it has said why not; -1. */
static int unpack_inside(const struct archive_call *call, int dir, struct err *err)
{
    struct idmap m;
    idmap_root(&m);
    if (idmap_enter(&m, CLONE_NEWNET | CLONE_NEWIPC, err) < 0)
        return -1;
    int root = make_owned(dir, "root", &m, err);
    int fresh = root < 0 ? -1 : make_owned(dir, "new", &m, err);
    if (fresh < 0)
        return -1;
    /* the directory around them stays the caller's; a child puts the result in place as that one */
    pid_t pid = fork();
    if (pid == 0) {
        struct archive_call own = *call;
        own.first = root;
        own.second = fresh;
        if (settle(&m, err) == 0)
            archive_become(&own);
        say(call->say, false, err);
        _exit(ARCHIVED_NOT);
    }
    int status;
    if (pid < 0 || waitpid(pid, &status, 0) != pid)
        return err_sys(err, "fork");
    if (!WIFEXITED(status))
        return err_set(err, ERR_INTERNAL, "the unpacking was killed by signal %d",
                       WTERMSIG(status));
    if (WEXITSTATUS(status) == ARCHIVED_NOT)
        return 1; /* it has said why */
    if (WEXITSTATUS(status) != ARCHIVED_WELL && WEXITSTATUS(status) != ARCHIVED_LAYERS)
        return err_set(err, ERR_INTERNAL, "the program that unpacks is of another build");
    return put_in_place(dir, WEXITSTATUS(status) == ARCHIVED_LAYERS, err);
}

pid_t image_unpack(int dir, int stream, const struct image_import *how, int report, struct err *err)
{
    pid_t pid = fork();
    if (pid != 0)
        return pid < 0 ? err_sys(err, "fork") : pid;
    char bytes[24], entries[24];
    struct err why = {0};
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
        _exit(1);
    snprintf(bytes, sizeof bytes, "%llu", (unsigned long long)how->max_bytes);
    snprintf(entries, sizeof entries, "%llu", (unsigned long long)how->max_entries);
    const struct archive_call call = {.program = how->archive,
                                      .work = ARCHIVE_UNPACK,
                                      .words = {bytes, entries},
                                      .stream = stream,
                                      .say = report};
    int r = unpack_inside(&call, dir, &why);
    if (r != 1)
        say(report, r == 0, &why); /* the last word is of who puts it into its place */
    _exit(r == 0 ? 0 : 1);
}

int image_clear(int dir, struct err *err)
{
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        struct idmap m;
        idmap_root(&m);
        /* not root inside, but with its rights over both owners' files */
        _exit(idmap_enter(&m, CLONE_NEWNET, NULL) == 0 && tree_empty(dir, NULL) == 0 ? 0 : 1);
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid)
        return err_sys(err, "fork");
    return WIFEXITED(status) && WEXITSTATUS(status) == 0
               ? 0
               : err_set(err, ERR_DENIED, "not all of its files could be removed");
}

/* ---- a directory as a stream ---- */

pid_t image_pack(int program, int dir, int to, struct err *err)
{
    pid_t pid = fork();
    if (pid == 0) {
        signal(SIGPIPE, SIG_DFL);
        if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
            _exit(1);
        archive_become(&(struct archive_call){.program = program,
                                              .work = ARCHIVE_PACK,
                                              .stream = to,
                                              .first = dir,
                                              .second = -1,
                                              .say = -1});
    }
    return pid < 0 ? err_sys(err, "fork") : pid;
}
