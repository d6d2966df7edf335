/* Opens a volume for a sandbox, counts what it holds when nobody else has it, and keeps those who
 * would remove it away from those who use it. */
#define _GNU_SOURCE 1
#include "volume.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "slice.h"
#include "tree.h"

#define DIRECTORY (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
#define MAGIC     UINT64_C(0x6475727661727632)

/* Bytes of `usage` that locks are on. */
enum { LOCK_GATE, LOCK_WRITER, LOCK_SLOTS = 16 };

static const char *const access_names[] = {"one", "many", "snapshot"};

/* ---- what it is ---- */

void volume_about_print(const struct volume_about *a, char *to)
{
    snprintf(to, VOLUME_ABOUT_MAX, "%s %llu %s", a->policy, (unsigned long long)a->size,
             access_names[a->access]);
}

int volume_about_read(const char *text, struct volume_about *ret)
{
    size_t n = strcspn(text, " ");
    const char *size = text[n] ? text + n + 1 : text + n;
    size_t digits = strcspn(size, " ");
    if (n == 0 || n >= sizeof ret->policy || size[digits] == '\0' ||
        slice_u64((struct slice){size, digits}, INT64_MAX / 2, &ret->size) < 0 || ret->size == 0)
        return -1;
    memcpy(ret->policy, text, n);
    ret->policy[n] = '\0';
    for (unsigned i = 0; i < ARRAY_LEN(access_names); i++)
        if (strcmp(size + digits + 1, access_names[i]) == 0) {
            ret->access = (enum volume_access)i;
            return 0;
        }
    return -1;
}

static int read_about(int dir, struct volume_about *ret)
{
    char text[VOLUME_ABOUT_MAX];
    int fd = openat(dir, "about", O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (fd >= 0)
        close(fd);
    text[n > 0 ? n : 0] = '\0';
    return n <= 0 ? -1 : volume_about_read(text, ret);
}

/* ---- locks ---- */

static int lock_bytes(int fd, short type, off_t from, off_t n)
{
    struct flock l = {.l_type = type, .l_whence = SEEK_SET, .l_start = from, .l_len = n};
    return fcntl(fd, F_OFD_SETLK, &l);
}

static bool is_locked(int fd, off_t from, off_t n)
{
    struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = from, .l_len = n};
    return fcntl(fd, F_OFD_GETLK, &l) < 0 || l.l_type != F_UNLCK;
}

bool volume_slot_lives(int lock, unsigned slot)
{
    return is_locked(lock, LOCK_SLOTS + (off_t)slot, 1);
}

static int lock_within(int fd, off_t from, off_t n, unsigned ms)
{
    const struct timespec moment = {0, 10000000};
    for (unsigned waited = 0; lock_bytes(fd, F_WRLCK, from, n) < 0; waited += 10) {
        if ((errno != EAGAIN && errno != EACCES) || waited >= ms)
            return -1;
        nanosleep(&moment, NULL);
    }
    return 0;
}

/* Whoever mounts, counts or removes it passes one at a time. */
static int pass_gate(int fd, unsigned ms)
{
    return lock_within(fd, LOCK_GATE, 1, ms);
}

int volume_claim(int all, const char *name, unsigned ms, struct err *err)
{
    int dir = openat(all, name, DIRECTORY);
    int fd = dir < 0 ? -1 : openat(dir, "usage", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    int why = errno;
    if (dir >= 0)
        close(dir);
    errno = why;
    if (fd < 0)
        return err_sys(err, "the volume %s", name);
    if (pass_gate(fd, ms) == 0 && lock_within(fd, LOCK_SLOTS, VOLUME_MOUNTS_MAX,
                                              ms < VOLUME_LEAVE_MS ? ms : VOLUME_LEAVE_MS) == 0)
        return fd;
    close(fd);
    errno = EBUSY;
    return err_set(err, ERR_UNREADY, "the volume %s is mounted in a sandbox", name);
}

/* ---- counting ---- */

int64_t volume_length(int64_t bytes)
{
    return (bytes + VOLUME_BLOCK - 1) / VOLUME_BLOCK * VOLUME_BLOCK;
}

/* One name. A file of several counts a part of its length at each. */
static int64_t count_one(const struct stat *st)
{
    int64_t links = st->st_nlink > 0 ? (int64_t)st->st_nlink : 1;
    if (S_ISLNK(st->st_mode))
        return 2 * (int64_t)VOLUME_BLOCK;
    if (!S_ISREG(st->st_mode))
        return VOLUME_BLOCK;
    return VOLUME_BLOCK + (volume_length(st->st_size) + links - 1) / links;
}

/* -1: it cannot be told, as it is too deep or cannot be read. */
static int64_t count(int at, const char *name, unsigned depth)
{
    int fd = depth > TREE_DEPTH_MAX ? -1 : openat(at, name, DIRECTORY);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    int64_t sum = d ? 0 : -1;
    if (d == NULL && fd >= 0)
        close(fd);
    for (struct dirent *e; sum >= 0 && (e = readdir(d)) != NULL;) {
        struct stat st;
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0 ||
            fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
            continue;
        int64_t below = S_ISDIR(st.st_mode) ? count(dirfd(d), e->d_name, depth + 1) : 0;
        if (below < 0 || __builtin_add_overflow(sum, below + count_one(&st), &sum))
            sum = -1;
    }
    if (d)
        closedir(d);
    return sum;
}

/* What cannot be counted is full: what is there can be read and removed. */
static int begin_usage(struct volume_usage *u, int dir, uint64_t size, struct err *err)
{
    pthread_mutexattr_t attr;
    int64_t sum = count(dir, "root", 0);
    u->magic = 0;
    u->used = sum < 0 ? (int64_t)size : sum;
    if (pthread_mutexattr_init(&attr) != 0)
        return err_set(err, ERR_INTERNAL, "out of memory");
    int bad = pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED) ||
              pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
    memset(&u->lock, 0, sizeof u->lock);
    bad = bad || pthread_mutex_init(&u->lock, &attr) != 0;
    pthread_mutexattr_destroy(&attr);
    if (bad)
        return err_set(err, ERR_INTERNAL, "a lock that processes share cannot be made");
    u->magic = MAGIC;
    return 0;
}

/* ---- opening ---- */

static int map_usage(struct volume *v, int dir, struct err *err)
{
    struct stat st;
    bool first = !is_locked(v->lock, LOCK_SLOTS, VOLUME_MOUNTS_MAX);
    if (first && (ftruncate(v->lock, 0) < 0 || ftruncate(v->lock, sizeof *v->usage) < 0))
        return err_sys(err, "the volume's usage");
    if (fstat(v->lock, &st) < 0 || st.st_size != sizeof *v->usage)
        return err_set(err, ERR_PARSE, "what is used of the volume cannot be read");
    void *p = mmap(NULL, sizeof *v->usage, PROT_READ | PROT_WRITE, MAP_SHARED, v->lock, 0);
    if (p == MAP_FAILED)
        return err_sys(err, "the volume's usage");
    v->usage = p;
    if (first)
        return begin_usage(v->usage, dir, v->size, err);
    return v->usage->magic == MAGIC
               ? 0
               : err_set(err, ERR_PARSE, "what is used of the volume cannot be read");
}

static int take_slot(struct volume *v, const char *name, struct err *err)
{
    for (v->slot = 0; v->slot < VOLUME_MOUNTS_MAX; v->slot++)
        if (lock_bytes(v->lock, F_WRLCK, LOCK_SLOTS + (off_t)v->slot, 1) == 0) {
            memset(v->usage->open[v->slot], 0, sizeof v->usage->open[v->slot]);
            v->usage->n_open[v->slot] = 0;
            return 0;
        }
    return err_set(err, ERR_LIMIT, "the volume %s is mounted in %d sandboxes already", name,
                   VOLUME_MOUNTS_MAX);
}

/* Is it still what has this name? */
static bool is_named(int all, const char *name, int dir)
{
    struct stat a, b;
    return fstatat(all, name, &a, AT_SYMLINK_NOFOLLOW) == 0 && fstat(dir, &b) == 0 &&
           a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

static int open_in(int all, int dir, const struct sandbox_spec_volume *w,
                   const struct volume_about *about, struct volume *v, struct err *err)
{
    struct stat st;
    v->size = about->size;
    v->root = openat(dir, "root", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    v->lock = openat(dir, "usage", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (v->root < 0 || v->lock < 0 || fstat(v->root, &st) < 0)
        return err_sys(err, "the volume %s", w->name);
    v->uid = st.st_uid;
    v->gid = st.st_gid;
    if (pass_gate(v->lock, VOLUME_WAIT_MS) < 0 || !is_named(all, w->name, dir))
        return err_set(err, ERR_UNREADY, "the volume %s is being replaced or removed", w->name);
    if (w->writable && about->access != VOLUME_MANY &&
        lock_within(v->lock, LOCK_WRITER, 1, VOLUME_LEAVE_MS) < 0)
        return err_set(err, ERR_UNREADY,
                       "the volume %s is mounted for writing in another sandbox; mount it "
                       "read-only, or make one with --access many",
                       w->name);
    if (map_usage(v, dir, err) < 0 || take_slot(v, w->name, err) < 0)
        return -1;
    return lock_bytes(v->lock, F_UNLCK, LOCK_GATE, 1) < 0 ? err_sys(err, "fcntl") : 0;
}

int volume_open(const char *state_dir, const struct sandbox_spec_volume *w, const char *policy,
                struct volume *ret, struct err *err)
{
    struct volume_about about;
    *ret = (struct volume){.root = -1, .lock = -1};
    int state = open(state_dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    int all = state < 0 ? -1 : openat(state, "volumes", DIRECTORY);
    int dir = all < 0 ? -1 : openat(all, w->name, DIRECTORY);
    bool found = dir >= 0 && read_about(dir, &about) == 0 && strcmp(about.policy, policy) == 0 &&
                 about.access != VOLUME_SNAPSHOT;
    int r = found ? open_in(all, dir, w, &about, ret, err)
                  : err_set(err, ERR_UNREADY,
                            "there is no volume '%s' of the policy '%s'; 'durward volume ls' lists "
                            "them, 'durward volume create' makes one",
                            w->name, policy);
    int used[] = {state, all, dir};
    for (size_t i = 0; i < ARRAY_LEN(used); i++)
        if (used[i] >= 0)
            close(used[i]);
    if (r < 0)
        volume_close(ret);
    return r;
}

void volume_close(struct volume *v)
{
    if (v->usage)
        munmap(v->usage, sizeof *v->usage);
    if (v->root >= 0)
        close(v->root);
    if (v->lock >= 0)
        close(v->lock);
    *v = (struct volume){.root = -1, .lock = -1};
}

int volume_used(int all, const char *name, int64_t *ret, struct err *err)
{
    struct volume_usage u;
    size_t n = offsetof(struct volume_usage, n_open);
    int dir = openat(all, name, DIRECTORY);
    int fd = dir < 0 ? -1 : openat(dir, "usage", O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    *ret = 0;
    if (dir < 0)
        return err_sys(err, "the volume %s", name);
    if (fd >= 0 && pread(fd, &u, n, 0) == (ssize_t)n && u.magic == MAGIC)
        *ret = u.used;
    if (fd >= 0)
        close(fd);
    close(dir);
    return 0;
}
