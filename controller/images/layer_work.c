/* Does what W_LAYER asks for (layer_work.h), in a process of its own. A copy is made under a
 * name that no sandbox has, locked by its writer, so that the sweep can tell what killed
 * processes left. */
#define _GNU_SOURCE 1
#include "layer_work.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "archive_call.h"
#include "copy_tree.h"
#include "idmap.h"
#include "layer.h"
#include "proc.h"
#include "sandbox_spec.h"
#include "slice.h"
#include "tree.h"
#include "volume.h"

#define DIRECTORY (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

static const char *const parts[] = {"root", "usr"};
static const char *const work[] = {"root.work", "usr.work"};

struct job {                /* one copy */
    int source, all, fresh; /* the layer; the directory that gets the new one; the new one */
    char fresh_name[NAME_MAX];
    struct idmap map;
    const char *about;           /* of a volume, or NULL */
    int64_t most;                /* that a copy may hold */
    const char *origin;          /* the snapshot that replaces something, or NULL */
    struct layer_stream *stream; /* of an export or import */
    int archive;                 /* the program that does these */
    uint64_t bytes;              /* that an import may have */
    int say;                     /* in the namespace: where its end is told */
};

/* Whose the files are tells who we have to be. */
static int find_owner(struct job *j, struct err *err)
{
    struct stat st;
    if (fstatat(j->source, parts[0], &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISDIR(st.st_mode))
        return err_set(err, ERR_PARSE, "its files are not whole");
    if (geteuid() == 0 || st.st_uid == geteuid())
        idmap_same(&j->map, st.st_uid, st.st_gid);
    else
        idmap_root(&j->map);
    if (j->map.uid != st.st_uid)
        return err_set(err, ERR_DENIED, "its files are uid %u's, who is none of ours",
                       (unsigned)st.st_uid);
    return 0;
}

/* What is noted in a layer: "image", the one that its files lie above, and "snapshot", the one that
 * LAYER_REPLACE took them from. text: size bytes. */
static int read_note(int dir, const char *name, char *text, size_t size)
{
    int in = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    ssize_t n = in < 0 ? -1 : read(in, text, size - 1);
    if (in >= 0)
        close(in);
    text[n > 0 ? n : 0] = '\0';
    return n < 0 ? -1 : 0;
}

static int note(int dir, const char *name, const char *text, struct err *err)
{
    size_t n = strlen(text);
    int out = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    bool ok = out >= 0 && write(out, text, n) == (ssize_t)n;
    if (out >= 0)
        close(out);
    return ok ? 0 : err_sys(err, "cannot note the %s", name);
}

static int copy_notes(const struct job *j, struct err *err)
{
    char image[256];
    if (read_note(j->source, "image", image, sizeof image) < 0)
        return err_sys(err, "the image's name");
    if (note(j->fresh, "image", image, err) < 0)
        return -1;
    if (j->about && note(j->fresh, "about", j->about, err) < 0)
        return -1;
    return j->origin ? note(j->fresh, "snapshot", j->origin, err) : 0;
}

static int make(const struct job *j, const char *name, mode_t mode, struct err *err)
{
    if (mkdirat(j->fresh, name, mode) < 0 ||
        fchownat(j->fresh, name, j->map.inside_uid, j->map.inside_gid, AT_SYMLINK_NOFOLLOW) < 0)
        return err_sys(err, "cannot make %s", name);
    return 0;
}

/* A copy for a killed process is dropped. */
static int end_with(pid_t parent, struct err *err)
{
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent)
        return err_set(err, ERR_UNREADY, "the builder is gone");
    return 0;
}

static int make_parts(const struct job *j, struct err *err)
{
    for (size_t i = 0; i < ARRAY_LEN(parts); i++)
        if (make(j, parts[i], 0755, err) < 0 || make(j, work[i], 0700, err) < 0)
            return -1;
    return 0;
}

static int open_parts(int dir, int fds[ARRAY_LEN(parts)], struct err *err)
{
    for (size_t i = 0; i < ARRAY_LEN(parts); i++)
        if ((fds[i] = openat(dir, parts[i], DIRECTORY)) < 0)
            return err_sys(err, "%s", parts[i]);
    return 0;
}

/* In a process that becomes the files' owner and does nothing else. */
static int copy_as_owner(const struct job *j, struct err *err)
{
    int in[ARRAY_LEN(parts)], out[ARRAY_LEN(parts)];
    pid_t parent = getppid();
    if (make_parts(j, err) < 0 || open_parts(j->source, in, err) < 0 ||
        open_parts(j->fresh, out, err) < 0)
        return -1;
    if (idmap_become(&j->map, err) < 0 || end_with(parent, err) < 0)
        return -1;
    for (size_t i = 0; i < ARRAY_LEN(parts); i++)
        if (copy_tree(in[i], out[i], j->most, err) < 0)
            return -1;
    return 0;
}

/* ---- archives ---- */

static void close_but(const int *keep, size_t n)
{
    for (unsigned from = STDERR_FILENO + 1;;) {
        unsigned next = UINT32_MAX;
        for (size_t i = 0; i < n; i++)
            if ((unsigned)keep[i] >= from && (unsigned)keep[i] < next)
                next = (unsigned)keep[i];
        if (next > from)
            (void)close_range(from, next == UINT32_MAX ? next : next - 1, 0);
        if (next == UINT32_MAX)
            return;
        from = next + 1;
    }
}

/* Whoever reads a stranger's archive has no more than it needs. */
static int settle(const struct job *j, pid_t parent, const int fds[ARRAY_LEN(parts)],
                  struct err *err)
{
    enum { DATA_MAX = 1 << 30 };
    struct rlimit data = {DATA_MAX, DATA_MAX};
    const int keep[] = {j->say, j->archive, j->stream->fd, fds[0], fds[1]};
    if (idmap_become(&j->map, err) < 0 || end_with(parent, err) < 0)
        return -1;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || proc_no_core() < 0 ||
        (!SANITIZED && setrlimit(RLIMIT_DATA, &data) < 0)) /* a sanitizer's own needs more */
        return err_sys(err, "cannot confine what reads the archive");
    close_but(keep, ARRAY_LEN(keep));
    signal(SIGPIPE, SIG_IGN);
    umask(022);
    return 0;
}

static int export_as_owner(const struct job *j, struct err *err)
{
    int in[ARRAY_LEN(parts)];
    pid_t parent = getppid();
    if (open_parts(j->source, in, err) < 0 || settle(j, parent, in, err) < 0)
        return -1;
    if (layer_write_about(j->stream->fd, j->stream->about, err) < 0)
        return -1;
    archive_become(&(struct archive_call){.program = j->archive,
                                          .work = ARCHIVE_EXPORT,
                                          .stream = j->stream->fd,
                                          .first = in[0],
                                          .second = in[1],
                                          .say = j->say});
}

static int import_as_owner(const struct job *j, struct err *err)
{
    char bytes[24];
    int out[ARRAY_LEN(parts)];
    pid_t parent = getppid();
    if (make_parts(j, err) < 0 || open_parts(j->fresh, out, err) < 0 ||
        settle(j, parent, out, err) < 0)
        return -1;
    snprintf(bytes, sizeof bytes, "%llu", (unsigned long long)j->bytes);
    archive_become(&(struct archive_call){.program = j->archive,
                                          .work = ARCHIVE_IMPORT,
                                          .words = {bytes},
                                          .stream = j->stream->fd,
                                          .first = out[0],
                                          .second = out[1],
                                          .say = j->say});
}

static int in_namespace(const struct job *j, int (*fn)(const struct job *j, struct err *err),
                        struct err *err)
{
    int say[2], status;
    struct archive_report said = {.ok = false};
    if (pipe2(say, O_CLOEXEC) < 0)
        return err_sys(err, "pipe");
    pid_t self = getpid(), pid = fork();
    if (pid == 0) {
        struct job own = *j;
        own.say = say[1];
        int r = idmap_enter(&j->map, j->stream ? CLONE_NEWNET | CLONE_NEWIPC : 0, &said.err);
        if (r == 0)
            r = end_with(self, &said.err);
        if (r == 0)
            r = fn(&own, &said.err);
        said.ok = r == 0;
        _exit(write(say[1], &said, sizeof said) == sizeof said && r == 0 ? 0 : 1);
    }
    close(say[1]);
    ssize_t n = pid < 0 ? -1 : read(say[0], &said, sizeof said);
    close(say[0]);
    if (pid < 0 || waitpid(pid, &status, 0) != pid)
        return err_sys(err, "fork");
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return 0;
    const struct err *why = &said.err;
    said.err.text[sizeof said.err.text - 1] = '\0';
    return err_set(err, ERR_SYS, "%s",
                   n == (ssize_t)sizeof said && why->text[0] ? why->text
                                                             : "the copying was killed");
}

static int empty_fresh(const struct job *j, struct err *err)
{
    return tree_empty(j->fresh, err);
}

static int open_below(const char *state_dir, const char *name, bool make_it, struct err *err)
{
    int state = open(state_dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (state < 0)
        return err_sys(err, "%s", state_dir);
    if (make_it && mkdirat(state, name, 0700) < 0 && errno != EEXIST) {
        close(state);
        return err_sys(err, "cannot make %s", name);
    }
    int fd = openat(state, name, DIRECTORY);
    if (fd < 0)
        err_sys(err, "%s", name);
    close(state);
    return fd;
}

/* Under its name: in place of what had it, which then has the fresh one's, or as the first. */
static int put_in_place(const struct job *j, const char *to, bool replace, struct err *err)
{
    if (replace && renameat2(j->all, j->fresh_name, j->all, to, RENAME_EXCHANGE) == 0)
        return 0;
    if (replace && errno != ENOENT)
        return err_sys(err, "%s", to);
    return renameat2(j->all, j->fresh_name, j->all, to, RENAME_NOREPLACE) < 0
               ? err_sys(err, "%s", to)
               : 0;
}

static int copy_into(struct job *j, const char *to, bool replace, struct err *err)
{
    snprintf(j->fresh_name, sizeof j->fresh_name, ".new-%s-%d", to, (int)getpid());
    if (mkdirat(j->all, j->fresh_name, 0700) < 0 ||
        (j->fresh = openat(j->all, j->fresh_name, DIRECTORY)) < 0 || flock(j->fresh, LOCK_EX) < 0)
        return err_sys(err, "cannot make %s", to);
    if (find_owner(j, err) < 0 || copy_notes(j, err) < 0 || in_namespace(j, copy_as_owner, err) < 0)
        return -1;
    return put_in_place(j, to, replace, err);
}

/* A volume of the policy that asks; the copy is no larger than it says. */
static bool is_as_asked(struct job *j)
{
    struct volume_about wanted, is;
    if (volume_about_read(j->about, &wanted) < 0 || volume_about_of(j->source, &is) < 0 ||
        strcmp(wanted.policy, is.policy) != 0)
        return false;
    j->most = (int64_t)wanted.size;
    return true;
}

static enum layer_result copy_all(struct job *j, int from_all, const char *from, const char *to,
                                  bool replace, struct err *err)
{
    if (!replace && faccessat(j->all, to, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
        return LAYER_EXISTS;
    j->source = openat(from_all, from, DIRECTORY);
    if (j->source < 0 && errno == ENOENT)
        return LAYER_ABSENT;
    if (j->source >= 0 && j->about && !is_as_asked(j)) {
        close(j->source);
        return LAYER_ABSENT;
    }
    int r = j->source < 0 ? err_sys(err, "%s", from) : copy_into(j, to, replace, err);
    if (r < 0 && j->fresh >= 0) {
        (void)in_namespace(j, empty_fresh, NULL);
        unlinkat(j->all, j->fresh_name, AT_REMOVEDIR);
    }
    if (j->source >= 0)
        close(j->source);
    if (j->fresh >= 0)
        close(j->fresh);
    return r < 0 ? LAYER_FAILED : LAYER_DONE;
}

/* What has this name, which nobody else uses. */
static int clear(int all, const char *name, struct err *err)
{
    enum { TIMES = 5 };
    struct job j = {.source = -1, .all = all, .fresh = -1};
    j.fresh = j.source = openat(all, name, DIRECTORY);
    if (j.fresh < 0 && errno == ENOENT)
        return 0; /* it was put in place after all */
    int r = j.fresh < 0 ? err_sys(err, "%s cannot be removed", name) : 0;
    if (r == 0 && flock(j.fresh, LOCK_EX) < 0)
        r = err_sys(err, "%s", name);
    if (r == 0 && find_owner(&j, NULL) < 0)
        idmap_same(&j.map, geteuid(), getegid()); /* not whole: then nothing is a stranger's */
    bool gone = false;
    for (int i = 0; r == 0 && !gone && i < TIMES; i++) { /* its writer may be dying just now */
        r = in_namespace(&j, empty_fresh, err);
        gone = r == 0 && (unlinkat(all, name, AT_REMOVEDIR) == 0 || errno == ENOENT);
        if (r == 0 && !gone && errno != ENOTEMPTY)
            break;
    }
    if (r == 0 && !gone)
        r = err_sys(err, "%s", name);
    if (j.fresh >= 0)
        close(j.fresh);
    return r;
}

/* Its parent; 0 when it does not run (any more). */
static pid_t parent_of(pid_t pid)
{
    char path[64], text[512];
    int parent;
    char state;
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (fd >= 0)
        close(fd);
    text[n > 0 ? n : 0] = '\0';
    const char *end = strrchr(text, ')');
    if (end == NULL || sscanf(end, ") %c %d", &state, &parent) != 2 || strchr("ZX", state))
        return 0;
    return parent;
}

/* Whoever writes a directory that has no name yet, or empties one that has none any more, holds its
 * lock; a number in the name may be another process's by now. */
static bool is_held(int all, const char *name)
{
    int fd = openat(all, name, DIRECTORY);
    bool held = fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK;
    if (fd >= 0)
        close(fd);
    return held;
}

/* By somebody who is no child of this builder's? patient: after a moment, as one dies with its own.
 */
static bool is_held_for_another(int all, const char *name, pid_t pid, pid_t builder, bool patient)
{
    enum { MOMENTS = 100, MOMENT_US = 20000 };
    bool other = is_held(all, name) && parent_of(pid) != builder;
    for (unsigned i = 0; patient && other && i < MOMENTS; i++) {
        usleep(MOMENT_US);
        other = is_held(all, name) && parent_of(pid) != builder;
    }
    return other;
}

/* Does another builder's process still copy to this name, and would it be put in place? */
static bool being_copied(int all, const char *name, pid_t builder, bool patient)
{
    char begin[NAME_MAX];
    size_t n = (size_t)snprintf(begin, sizeof begin, ".new-%s-", name);
    int fd = openat(all, ".", DIRECTORY);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    bool found = false;
    for (struct dirent *e; d && (e = readdir(d)) != NULL;) {
        uint64_t pid = 0;
        if (strncmp(e->d_name, begin, n) != 0 ||
            slice_u64(slice_str(e->d_name + n), INT32_MAX, &pid) < 0)
            continue;
        found = found || is_held_for_another(all, e->d_name, (pid_t)pid, builder, patient);
    }
    if (d)
        closedir(d);
    return found;
}

/* It loses its name first, so that nobody uses what is half gone. */
static enum layer_result remove_all(int all, const char *name, struct err *err)
{
    char gone[NAME_MAX];
    if (being_copied(all, name, getppid(), true)) {
        err_set(err, ERR_UNREADY, "it is still being copied for a builder that is gone");
        return LAYER_FAILED;
    }
    snprintf(gone, sizeof gone, ".gone-%s-%d", name, (int)getpid());
    if (renameat(all, name, all, gone) < 0 && errno == ENOENT)
        return LAYER_DONE;
    return clear(all, gone, err) < 0 ? LAYER_FAILED : LAYER_DONE;
}

/* Where an operation finds `from`, and where it puts `to`. */
static const char *store_of(enum layer_op op, bool from)
{
    bool snapshots = from ? op == LAYER_RESTORE || op == LAYER_REPLACE || op == LAYER_EXPORT ||
                                op == LAYER_REMOVE_SNAPSHOT
                          : op == LAYER_SNAPSHOT || op == LAYER_IMPORT;
    return layer_is_volume(op) ? "volumes" : snapshots ? "snapshots" : "sandboxes";
}

enum layer_result layer_forget(const char *state_dir, enum layer_op op, const char *name)
{
    enum { CLAIM_MS = 0 };
    struct timespec now;
    char gone[NAME_MAX];
    clock_gettime(CLOCK_REALTIME, &now);
    snprintf(gone, sizeof gone, ".gone-%s-%lld.%09ld-0", name, (long long)now.tv_sec, now.tv_nsec);
    int all = open_below(state_dir, store_of(op, true), true, NULL);
    if (all < 0)
        return LAYER_FAILED;
    bool volume = op == LAYER_VOLUME_REMOVE;
    int claim = volume ? volume_claim(all, name, CLAIM_MS, NULL) : -1;
    bool busy =
        (volume && claim < 0 && errno != ENOENT) || being_copied(all, name, getpid(), false);
    int r = busy ? -1 : renameat2(all, name, all, gone, RENAME_NOREPLACE);
    int why = busy ? EBUSY : errno;
    close(all);
    if (claim >= 0)
        close(claim);
    return r == 0 || why == ENOENT ? LAYER_DONE : LAYER_FAILED;
}

/* ".new-NAME-PID" and ".gone-NAME-PID" that nobody writes or empties any more. */
static bool left_behind(int all, const char *name)
{
    const char *dash = strrchr(name, '-');
    uint64_t pid = 0;
    if ((strncmp(name, ".new-", 5) != 0 && strncmp(name, ".gone-", 6) != 0) ||
        slice_u64(slice_str(dash + 1), INT32_MAX, &pid) < 0)
        return false;
    /* between making it and locking it its writer, a child of our builder's as we are, has it too
     */
    if (name[1] == 'n' && pid != 0 && parent_of((pid_t)pid) == getppid())
        return false;
    return !is_held_for_another(all, name, (pid_t)pid, getppid(), true) && !is_held(all, name);
}

/* The first failure is told, when all was tried. No directory, nothing left. */
static int sweep(const char *state_dir, const char *below, struct err *err)
{
    int all = open_below(state_dir, below, false, NULL), r = 0;
    int fd = all < 0 ? -1 : openat(all, ".", DIRECTORY);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    for (struct dirent *e; d && (e = readdir(d)) != NULL;)
        if (left_behind(all, e->d_name) && clear(all, e->d_name, r == 0 ? err : NULL) < 0)
            r = -1;
    if (d)
        closedir(d);
    if (all >= 0)
        close(all);
    return r;
}

static enum layer_result copy_to(const char *state_dir, int from_all, enum layer_op op,
                                 const char *from, const char *to, const char *about,
                                 struct err *err)
{
    struct job j = {.source = -1, .fresh = -1, .about = about, .most = INT64_MAX};
    bool replace = op == LAYER_REPLACE || op == LAYER_VOLUME_REPLACE;
    j.origin = op == LAYER_REPLACE ? from : NULL;
    j.all = open_below(state_dir, store_of(op, false), true, err);
    if (j.all < 0)
        return LAYER_FAILED;
    int claim = op == LAYER_VOLUME_REPLACE ? volume_claim(j.all, to, VOLUME_WAIT_MS, err) : -1;
    bool free_to_go = op != LAYER_VOLUME_REPLACE || claim >= 0;
    enum layer_result r =
        free_to_go ? copy_all(&j, from_all, from, to, replace, err) : LAYER_FAILED;
    if (r == LAYER_DONE && replace && faccessat(j.all, j.fresh_name, F_OK, 0) == 0)
        (void)clear(j.all, j.fresh_name, NULL); /* what was there before; else it is swept */
    if (claim >= 0)
        close(claim);
    close(j.all);
    return r;
}

static bool is_of_policy(int dir, const char *description)
{
    struct volume_about is;
    json_t *about = json_loads(description, JSON_REJECT_DUPLICATES, NULL);
    const char *policy = json_string_value(json_object_get(about, "policy"));
    bool same = policy && volume_about_of(dir, &is) == 0 && strcmp(is.policy, policy) == 0;
    json_decref(about);
    return same;
}

static enum layer_result export_from(int all, int archive, const char *name, bool volume,
                                     struct layer_stream *stream, struct err *err)
{
    struct job j = {.all = all, .fresh = -1, .stream = stream, .archive = archive};
    j.source = openat(all, name, DIRECTORY);
    if (j.source < 0)
        return errno == ENOENT ? LAYER_ABSENT : (err_sys(err, "%s", name), LAYER_FAILED);
    if (volume && !is_of_policy(j.source, stream->about)) {
        close(j.source);
        return LAYER_ABSENT;
    }
    int r = find_owner(&j, err) < 0 ? -1 : in_namespace(&j, export_as_owner, err);
    close(j.source);
    stream->about[0] = '\0';
    return r < 0 ? LAYER_FAILED : LAYER_DONE;
}

static enum layer_result confirm(int all, const char *name, const char *snapshot, struct err *err)
{
    char was[SANDBOX_SPEC_NAME_MAX + 2];
    if (being_copied(all, name, getppid(), true)) {
        err_set(err, ERR_UNREADY, "its files are still being copied for a builder that is gone");
        return LAYER_FAILED;
    }
    int dir = openat(all, name, DIRECTORY);
    bool same =
        dir >= 0 && read_note(dir, "snapshot", was, sizeof was) == 0 && strcmp(was, snapshot) == 0;
    if (dir >= 0)
        close(dir);
    return same ? LAYER_DONE : LAYER_ABSENT;
}

static enum layer_result unmark(int all, const char *name, struct err *err)
{
    if (being_copied(all, name, getppid(), true)) {
        err_set(err, ERR_UNREADY, "its files are still being copied for a builder that is gone");
        return LAYER_FAILED;
    }
    int dir = openat(all, name, DIRECTORY);
    bool done = (dir < 0 ? errno == ENOENT : unlinkat(dir, "snapshot", 0) == 0 || errno == ENOENT);
    if (!done)
        err_sys(err, "%s", name);
    if (dir >= 0)
        close(dir);
    return done ? LAYER_DONE : LAYER_FAILED;
}

/* The image that the archive's files lie above, and so whose they are. */
static int find_image(struct job *j, const char *state_dir, char image[SANDBOX_SPEC_NAME_MAX + 1],
                      struct err *err)
{
    struct layer_stream *s = j->stream;
    if (layer_read_about(s->fd, s->about, err) < 0)
        return -1;
    json_t *about = json_loads(s->about, JSON_REJECT_DUPLICATES, NULL);
    const char *name = json_string_value(json_object_get(about, "image"));
    const json_t *format = json_object_get(about, "format");
    int r = 0;
    if (!json_is_integer(format) || !name || !sandbox_spec_name_ok(name))
        r = err_set(err, ERR_PARSE, "the snapshot's description is malformed");
    else if (json_integer_value(format) != LAYER_FORMAT)
        r = err_set(err, ERR_PARSE, "the archive's format is %lld, and %d is what is read here",
                    (long long)json_integer_value(format), LAYER_FORMAT);
    else
        snprintf(image, SANDBOX_SPEC_NAME_MAX + 1, "%s", name);
    json_decref(about);
    bool host = r == 0 && strcmp(image, "host") == 0;
    int fd = r < 0 || host ? -1 : layer_image(state_dir, image, err);
    if (fd >= 0)
        close(fd);
    if (host)
        idmap_caller(&j->map, s->uid, s->gid, false);
    else
        idmap_root(&j->map);
    return r < 0 || (!host && fd < 0) ? -1 : 0;
}

static int lay_out(struct job *j, const char *to, const char *image, struct err *err)
{
    struct statvfs fs;
    snprintf(j->fresh_name, sizeof j->fresh_name, ".new-%s-%d", to, (int)getpid());
    if (mkdirat(j->all, j->fresh_name, 0700) < 0 ||
        (j->fresh = openat(j->all, j->fresh_name, DIRECTORY)) < 0 || flock(j->fresh, LOCK_EX) < 0 ||
        fstatvfs(j->all, &fs) < 0)
        return err_sys(err, "cannot make %s", to);
    j->bytes = (uint64_t)fs.f_bavail * fs.f_frsize;
    if (note(j->fresh, "image", image, err) < 0)
        return -1;
    return in_namespace(j, import_as_owner, err) < 0 ? -1 : put_in_place(j, to, false, err);
}

static enum layer_result import_to(const char *state_dir, int archive, const char *to,
                                   struct layer_stream *stream, struct err *err)
{
    char image[SANDBOX_SPEC_NAME_MAX + 1];
    struct job j = {.source = -1, .fresh = -1, .stream = stream, .archive = archive};
    j.all = open_below(state_dir, "snapshots", true, err);
    if (j.all < 0)
        return LAYER_FAILED;
    int r = 0;
    bool exists = faccessat(j.all, to, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
    if (!exists)
        r = find_image(&j, state_dir, image, err) < 0 ? -1 : lay_out(&j, to, image, err);
    if (r < 0 && j.fresh >= 0) {
        (void)in_namespace(&j, empty_fresh, NULL);
        unlinkat(j.all, j.fresh_name, AT_REMOVEDIR);
    }
    if (j.fresh >= 0)
        close(j.fresh);
    close(j.all);
    return exists ? LAYER_EXISTS : r < 0 ? LAYER_FAILED : LAYER_DONE;
}

/* ---- volumes ---- */

static int make_empty(struct job *j, const char *to, struct err *err)
{
    snprintf(j->fresh_name, sizeof j->fresh_name, ".new-%s-%d", to, (int)getpid());
    if (mkdirat(j->all, j->fresh_name, 0700) < 0 ||
        (j->fresh = openat(j->all, j->fresh_name, DIRECTORY)) < 0 || flock(j->fresh, LOCK_EX) < 0)
        return err_sys(err, "cannot make %s", to);
    if (geteuid() == 0)
        idmap_root(&j->map);
    else
        idmap_same(&j->map, geteuid(), getegid());
    if (note(j->fresh, "image", "volume", err) < 0 || note(j->fresh, "about", j->about, err) < 0 ||
        in_namespace(j, make_parts, err) < 0)
        return -1;
    return put_in_place(j, to, false, err);
}

static enum layer_result make_volume(int all, const char *to, const char *about, struct err *err)
{
    struct job j = {.source = -1, .all = all, .fresh = -1, .about = about};
    if (faccessat(all, to, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
        return LAYER_EXISTS;
    int r = make_empty(&j, to, err);
    if (r < 0 && j.fresh >= 0)
        (void)clear(all, j.fresh_name, NULL);
    if (j.fresh >= 0)
        close(j.fresh);
    return r < 0 ? LAYER_FAILED : LAYER_DONE;
}

static enum layer_result remove_volume(int all, const char *name, struct err *err)
{
    int claim = volume_claim(all, name, VOLUME_WAIT_MS, err);
    if (claim < 0)
        return errno == ENOENT ? LAYER_DONE : errno == EBUSY ? LAYER_EXISTS : LAYER_FAILED;
    enum layer_result r = remove_all(all, name, err);
    close(claim);
    return r;
}

static enum layer_result tell_used(int all, const char *name, struct layer_stream *stream,
                                   struct err *err)
{
    int64_t used;
    if (volume_used(all, name, &used, err) < 0)
        return LAYER_FAILED;
    snprintf(stream->about, sizeof stream->about, "%lld", (long long)used);
    return LAYER_DONE;
}

static enum layer_result volume_work(const char *state_dir, int archive, enum layer_op op,
                                     const char *from, const char *to, struct layer_stream *stream,
                                     struct err *err)
{
    char about[LAYER_ABOUT_MAX + 1];
    int all = open_below(state_dir, "volumes", true, err);
    if (all < 0)
        return LAYER_FAILED;
    enum layer_result r;
    snprintf(about, sizeof about, "%s", layer_makes_volume(op) ? stream->about : "");
    if (op == LAYER_VOLUME_MAKE)
        r = make_volume(all, to, about, err);
    else if (op == LAYER_VOLUME_REMOVE)
        r = remove_volume(all, from, err);
    else if (op == LAYER_VOLUME_EXPORT)
        r = export_from(all, archive, from, true, stream, err);
    else if (op == LAYER_VOLUME_USED)
        r = tell_used(all, from, stream, err);
    else
        r = copy_to(state_dir, all, op, from, to, about, err);
    if (layer_makes_volume(op))
        stream->about[0] = '\0';
    close(all);
    return r;
}

static enum layer_result sweep_all(const char *state_dir, struct err *err)
{
    static const char *const stores[] = {"sandboxes", "snapshots", "volumes"};
    int r = 0;
    for (size_t i = 0; i < ARRAY_LEN(stores); i++)
        if (sweep(state_dir, stores[i], r < 0 ? NULL : err) < 0)
            r = -1;
    return r < 0 ? LAYER_FAILED : LAYER_DONE;
}

enum layer_result layer_work(const char *state_dir, int archive, enum layer_op op, const char *from,
                             const char *to, struct layer_stream *stream, struct err *err)
{
    if (op == LAYER_SWEEP)
        return sweep_all(state_dir, err);
    if (layer_is_volume(op))
        return volume_work(state_dir, archive, op, from, to, stream, err);
    if (op == LAYER_IMPORT)
        return import_to(state_dir, archive, to, stream, err);
    int from_all = open_below(state_dir, store_of(op, true), true, err);
    if (from_all < 0)
        return LAYER_FAILED;
    enum layer_result r;
    if (op == LAYER_REMOVE || op == LAYER_REMOVE_SNAPSHOT)
        r = remove_all(from_all, from, err);
    else if (op == LAYER_CONFIRM)
        r = confirm(from_all, from, to, err);
    else if (op == LAYER_UNMARK)
        r = unmark(from_all, from, err);
    else if (op == LAYER_EXPORT)
        r = export_from(from_all, archive, from, false, stream, err);
    else
        r = copy_to(state_dir, from_all, op, from, to, NULL, err);
    close(from_all);
    return r;
}
