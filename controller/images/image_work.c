/* Unpacks and clears an image's files, in children inside the user namespace: the one that reads an
 * archive has no network, no new privileges and bounded memory. A directory to import is packed by
 * a child that stays outside. */
#define _GNU_SOURCE 1
#include "image_internal.h"

#include <archive.h>
#include <archive_entry.h>
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
#include "oci.h"
#include "proc.h"
#include "tree.h"

enum { REPORT_MS = 100, DATA_MAX = 1 << 30, BLOCK = 65536 };

/* ---- in the namespace ---- */

/* Whoever reads a stranger's archive has no more than it needs: no network, no new privileges, no
 * other program, no endless memory. */
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

struct worker {
    int report;
    struct image_report said;
    struct timespec last;
};

static void say(struct worker *w)
{
    const struct image_report said = w->said;
    ssize_t n = write(w->report, &said, sizeof said);
    if (n != sizeof said)
        _exit(1); /* nobody listens any more */
}

static void on_progress(void *arg, const struct unpack_count *done)
{
    struct worker *w = arg;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    w->said.count = *done;
    if ((now.tv_sec - w->last.tv_sec) * 1000 + (now.tv_nsec - w->last.tv_nsec) / 1000000 <
        REPORT_MS)
        return;
    w->last = now;
    say(w);
}

static int apply_layers(struct unpack *u, int from, const struct oci_layers *l, struct err *err)
{
    for (unsigned i = 0; i < l->n; i++) {
        int fd = oci_open(from, l->path[i], err);
        int r = fd < 0 ? -1 : unpack_layer(u, fd, err);
        if (fd >= 0)
            close(fd);
        if (r < 0)
            return err_wrap(err, "layer %u of %u", i + 1, l->n);
    }
    return 0;
}

/* What came is either the files themselves or an image of layers that are unpacked in turn. */
static int lay_out(struct worker *w, int root, int fresh, int stream,
                   const struct image_import *how, struct err *err)
{
    static struct oci_layers layers;
    struct unpack u = {.root = fresh,
                       .bytes_left = how->max_bytes,
                       .entries_left = how->max_entries,
                       .progress = on_progress,
                       .arg = w};
    if (unpack_stream(&u, stream, err) < 0)
        return -1;
    w->said.count = u.done;
    if (u.done.entries == 0)
        return err_set(err, ERR_PARSE, "there is nothing in it");
    int r = oci_layers(fresh, &layers, err);
    if (r <= 0) {
        snprintf(w->said.kind, sizeof w->said.kind, "files");
        return r;
    }
    snprintf(w->said.kind, sizeof w->said.kind, "layers");
    u.root = root;
    u.done = (struct unpack_count){0};
    u.bytes_left = how->max_bytes;
    u.entries_left = how->max_entries;
    if (apply_layers(&u, fresh, &layers, err) < 0)
        return -1;
    w->said.count = u.done;
    return tree_empty(fresh, err);
}

/* Files as they are become the root by taking its place. */
static int put_in_place(int dir, const char *kind, struct err *err)
{
    if (strcmp(kind, "files") != 0)
        return unlinkat(dir, "new", AT_REMOVEDIR) < 0 ? err_sys(err, "cannot tidy up") : 0;
    if (unlinkat(dir, "root", AT_REMOVEDIR) < 0 || renameat(dir, "new", dir, "root") < 0)
        return err_sys(err, "cannot put the image into its place");
    return 0;
}

static int unpack_inside(struct worker *w, int dir, int stream, const struct image_import *how,
                         struct err *err)
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
        int r = settle(&m, err);
        if (r == 0)
            r = lay_out(w, root, fresh, stream, how, err);
        w->said.err = *err;
        w->said.ok = r == 0;
        say(w);
        _exit(r == 0 ? (strcmp(w->said.kind, "files") == 0 ? 0 : 2) : 1);
    }
    int status;
    if (pid < 0 || waitpid(pid, &status, 0) != pid)
        return err_sys(err, "fork");
    if (!WIFEXITED(status))
        return err_set(err, ERR_INTERNAL, "the unpacking was killed by signal %d",
                       WTERMSIG(status));
    if (WEXITSTATUS(status) == 1)
        return 1; /* it has said why */
    return put_in_place(dir, WEXITSTATUS(status) == 0 ? "files" : "layers", err);
}

pid_t image_unpack(int dir, int stream, const struct image_import *how, int report, struct err *err)
{
    pid_t pid = fork();
    if (pid != 0)
        return pid < 0 ? err_sys(err, "fork") : pid;
    struct err why = {0};
    /* shared: who unpacks counts, who puts it into its place has the last word */
    struct worker *w =
        mmap(NULL, sizeof *w, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (w == MAP_FAILED || prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
        _exit(1);
    w->report = report;
    int r = unpack_inside(w, dir, stream, how, &why);
    if (r == 1)
        _exit(1);
    w->said.done = true;
    w->said.ok = r == 0;
    w->said.err = why;
    say(w);
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

static int pack_data(struct archive *out, const char *path, int at)
{
    char room[BLOCK];
    int fd = openat(at, path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    ssize_t n = fd < 0 ? -1 : 0;
    while (n >= 0 && (n = read(fd, room, sizeof room)) > 0)
        if (archive_write_data(out, room, (size_t)n) < 0)
            n = -1;
    if (fd >= 0)
        close(fd);
    return n < 0 ? -1 : 0;
}

static int pack_entry(struct archive *out, struct archive_entry *e,
                      struct archive_entry_linkresolver *links, int at)
{
    struct archive_entry *spare = NULL;
    const char *path = archive_entry_pathname(e);
    archive_entry_linkify(links, &e, &spare);
    if (e == NULL)
        return 0;
    if (archive_write_header(out, e) < ARCHIVE_WARN)
        return -1;
    if (archive_entry_filetype(e) != AE_IFREG || archive_entry_hardlink(e) ||
        archive_entry_size(e) <= 0)
        return 0;
    return pack_data(out, path, at);
}

static int pack(int dir, int to)
{
    struct archive *in = archive_read_disk_new(), *out = archive_write_new();
    struct archive_entry_linkresolver *links = archive_entry_linkresolver_new();
    struct archive_entry *e = archive_entry_new();
    int r = -1, got = ARCHIVE_OK;
    if (in && out && links && e && fchdir(dir) == 0 &&
        archive_write_set_format_pax_restricted(out) == ARCHIVE_OK &&
        archive_write_open_fd(out, to) == ARCHIVE_OK &&
        archive_read_disk_set_symlink_physical(in) == ARCHIVE_OK &&
        archive_read_disk_set_behavior(in, ARCHIVE_READDISK_NO_XATTR | ARCHIVE_READDISK_NO_ACL |
                                               ARCHIVE_READDISK_NO_FFLAGS) == ARCHIVE_OK &&
        archive_read_disk_open(in, ".") == ARCHIVE_OK)
        r = 0;
    archive_entry_linkresolver_set_strategy(links, ARCHIVE_FORMAT_TAR_PAX_RESTRICTED);
    while (r == 0 && (got = archive_read_next_header2(in, e)) != ARCHIVE_EOF) {
        if (got < ARCHIVE_WARN) { /* what cannot be read cannot be had */
            fprintf(stderr, "durward: %s\n", archive_error_string(in));
            r = -1;
            break;
        }
        archive_read_disk_descend(in);
        r = pack_entry(out, e, links, dir);
    }
    if (r == 0)
        r = archive_write_close(out) == ARCHIVE_OK ? 0 : -1;
    return r;
}

pid_t image_pack(int dir, int to, struct err *err)
{
    pid_t pid = fork();
    if (pid == 0) {
        signal(SIGPIPE, SIG_DFL);
        if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
            _exit(1);
        _exit(pack(dir, to) == 0 ? 0 : 1);
    }
    return pid < 0 ? err_sys(err, "fork") : pid;
}
