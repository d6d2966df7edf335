/* Opens a volume for a sandbox, counts what it holds when nobody else has it, and keeps those who
 * would remove it away from those who use it. */
#define _GNU_SOURCE 1
#include "volume.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "slice.h"
#include "tree.h"

#define DIRECTORY (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
#define MAGIC     UINT64_C(0x6475727661727633)

/* Bytes of `usage` that locks are on. */
enum { LOCK_GATE, LOCK_WRITER, LOCK_USAGE, LOCK_SLOTS = 16 };

/* Where the slots' inodes begin in it. */
enum { TABLES = 4096, TABLE = VOLUME_OPEN_MAX * sizeof(uint64_t) };

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

int volume_about_of(int dir, struct volume_about *ret)
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

/* Is it still what has this name? */
static bool is_named(int all, const char *name, int dir)
{
    struct stat a, b;
    return fstatat(all, name, &a, AT_SYMLINK_NOFOLLOW) == 0 && fstat(dir, &b) == 0 &&
           a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

int volume_claim(int all, const char *name, unsigned ms, struct err *err)
{
    int dir = openat(all, name, DIRECTORY);
    int fd = dir < 0 ? -1 : openat(dir, "usage", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    int why = errno;
    bool ours = fd >= 0 && pass_gate(fd, ms) == 0 &&
                lock_within(fd, LOCK_SLOTS, VOLUME_MOUNTS_MAX,
                            ms < VOLUME_LEAVE_MS ? ms : VOLUME_LEAVE_MS) == 0;
    bool named = ours && is_named(all, name, dir); /* it may be another one's by now */
    if (dir >= 0)
        close(dir);
    if (named)
        return fd;
    errno = why;
    if (fd < 0)
        return err_sys(err, "the volume %s", name);
    close(fd);
    errno = EBUSY;
    return ours ? err_set(err, ERR_UNREADY, "the volume %s is being replaced or removed", name)
                : err_set(err, ERR_UNREADY, "the volume %s is mounted in a sandbox", name);
}

/* ---- counting ---- */

/* One name. A file of several counts a part of its length at each, a directory its own elsewhere.
 */
static int64_t count_one(const struct stat *st)
{
    int64_t links = st->st_nlink > 0 ? (int64_t)st->st_nlink : 1;
    if (S_ISLNK(st->st_mode))
        return 2 * (int64_t)VOLUME_BLOCK;
    if (!S_ISREG(st->st_mode))
        return VOLUME_BLOCK;
    return VOLUME_BLOCK + (volume_length(st->st_size) + links - 1) / links;
}

struct counting {
    struct timespec until; /* CLOCK_MONOTONIC */
    int64_t sum;           /* of what was seen */
    bool late;
};

/* By CLOCK_MONOTONIC. */
static bool is_over(const struct timespec *until)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec > until->tv_sec ||
           (now.tv_sec == until->tv_sec && now.tv_nsec >= until->tv_nsec);
}

static bool is_late(struct counting *c)
{
    c->late = is_over(&c->until);
    return c->late;
}

/* -1: it cannot be told, as it is too deep or cannot be read; or it takes too long. */
static int count(struct counting *c, int at, const char *name, unsigned depth)
{
    int fd = depth > TREE_DEPTH_MAX || is_late(c) ? -1 : openat(at, name, DIRECTORY);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    struct stat st;
    int r = d && fstat(fd, &st) == 0 &&
                    !__builtin_add_overflow(c->sum, volume_length(st.st_size), &c->sum)
                ? 0
                : -1;
    if (d == NULL && fd >= 0)
        close(fd);
    for (struct dirent *e; r == 0 && (e = readdir(d)) != NULL;) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0 ||
            fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
            continue;
        if (__builtin_add_overflow(c->sum, count_one(&st), &c->sum) || is_late(c))
            r = -1;
        else if (S_ISDIR(st.st_mode))
            r = count(c, dirfd(d), e->d_name, depth + 1);
    }
    if (d)
        closedir(d);
    return r;
}

/* ---- what is used ---- */

int volume_usage_open(const char *state_dir, const char *name)
{
    int fd = open(state_dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    const char *const way[] = {"volumes", name};
    for (unsigned i = 0; i < ARRAY_LEN(way) && fd >= 0; i++) {
        int next = openat(fd, way[i], DIRECTORY);
        close(fd);
        fd = next;
    }
    int usage = fd < 0 ? -1 : openat(fd, "usage", O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0)
        close(fd);
    return usage;
}

int volume_usage_lock(int usage, const struct timespec *until)
{
    struct timespec moment = {0, 20000};
    while (lock_bytes(usage, F_WRLCK, LOCK_USAGE, 1) < 0) {
        if ((errno != EAGAIN && errno != EACCES) || is_over(until))
            return -1;
        (void)clock_nanosleep(CLOCK_MONOTONIC, 0, &moment, NULL);
        if (moment.tv_nsec < 1000000)
            moment.tv_nsec *= 2;
    }
    return 0;
}

void volume_usage_unlock(int usage)
{
    (void)lock_bytes(usage, F_UNLCK, LOCK_USAGE, 1);
}

int volume_usage_read(int usage, uint64_t size, struct volume_usage *ret)
{
    if (pread(usage, ret, sizeof *ret, 0) != sizeof *ret || ret->magic != MAGIC)
        return -1;
    if (ret->used < 0 || ret->used > INT64_MAX / 2)
        ret->used = (int64_t)size;
    return 0;
}

int volume_usage_write(int usage, const struct volume_usage *u)
{
    return pwrite(usage, u, sizeof *u, 0) == sizeof *u ? 0 : -1;
}

int volume_usage_place(int usage, unsigned slot, unsigned at, uint64_t inode)
{
    off_t where = TABLES + (off_t)slot * TABLE + (off_t)at * (off_t)sizeof inode;
    return pwrite(usage, &inode, sizeof inode, where) == sizeof inode ? 0 : -1;
}

bool volume_usage_names(int usage, unsigned slot, uint64_t inode)
{
    uint64_t inodes[VOLUME_OPEN_MAX];
    if (pread(usage, inodes, sizeof inodes, TABLES + (off_t)slot * TABLE) != sizeof inodes)
        return true;
    for (unsigned i = 0; i < VOLUME_OPEN_MAX; i++)
        if (inodes[i] == inode)
            return true;
    return false;
}

/* ---- opening ---- */

int64_t volume_count(int dir, int64_t size, int64_t old, const struct timespec *until)
{
    struct counting c = {.until = *until};
    if (count(&c, dir, "root", 0) == 0)
        return c.sum;
    if (!c.late || old < 0)
        return size;
    return old > c.sum ? old : c.sum;
}

static int begin_usage(const struct volume *v, int dir, struct err *err)
{
    struct volume_usage old, u = {.magic = MAGIC};
    bool counted = volume_usage_read(v->lock, v->size, &old) == 0;
    struct timespec until = {.tv_sec = INT32_MAX}; /* the first count takes as long as it takes */
    if (counted) {
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_sec += VOLUME_COUNT_MS / 1000;
    }
    u.used = volume_count(dir, (int64_t)v->size, counted ? old.used : -1, &until);
    if (ftruncate(v->lock, 0) < 0 ||
        ftruncate(v->lock, TABLES + (off_t)VOLUME_MOUNTS_MAX * TABLE) < 0 ||
        volume_usage_write(v->lock, &u) < 0)
        return err_sys(err, "the volume's usage");
    return 0;
}

static int find_usage(const struct volume *v, int dir, struct err *err)
{
    struct volume_usage u;
    if (!is_locked(v->lock, LOCK_SLOTS, VOLUME_MOUNTS_MAX))
        return begin_usage(v, dir, err);
    return volume_usage_read(v->lock, v->size, &u) == 0
               ? 0
               : err_set(err, ERR_PARSE, "what is used of the volume cannot be read");
}

static int clear_slot(const struct volume *v)
{
    static const uint64_t none[VOLUME_OPEN_MAX];
    return pwrite(v->lock, none, sizeof none, TABLES + (off_t)v->slot * TABLE) == sizeof none ? 0
                                                                                              : -1;
}

static int take_slot(struct volume *v, const char *name, struct err *err)
{
    for (v->slot = 0; v->slot < VOLUME_MOUNTS_MAX; v->slot++)
        if (lock_bytes(v->lock, F_WRLCK, LOCK_SLOTS + (off_t)v->slot, 1) == 0)
            return clear_slot(v) < 0 ? err_sys(err, "the volume's usage") : 0;
    return err_set(err, ERR_LIMIT, "the volume %s is mounted in %d sandboxes already", name,
                   VOLUME_MOUNTS_MAX);
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
    if (find_usage(v, dir, err) < 0 || take_slot(v, w->name, err) < 0)
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
    bool found = dir >= 0 && volume_about_of(dir, &about) == 0 &&
                 strcmp(about.policy, policy) == 0 && about.access != VOLUME_SNAPSHOT;
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
    if (v->root >= 0)
        close(v->root);
    if (v->lock >= 0)
        close(v->lock);
    *v = (struct volume){.root = -1, .lock = -1};
}

int volume_used(int all, const char *name, int64_t *ret, struct err *err)
{
    struct volume_usage u;
    int dir = openat(all, name, DIRECTORY);
    int fd = dir < 0 ? -1 : openat(dir, "usage", O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    *ret = 0;
    if (dir < 0)
        return err_sys(err, "the volume %s", name);
    if (fd >= 0 && volume_usage_read(fd, INT64_MAX / 2, &u) == 0)
        *ret = u.used;
    if (fd >= 0)
        close(fd);
    close(dir);
    return 0;
}
