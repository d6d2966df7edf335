/* Makes a journal's file, reads it, cuts it and gives its space back. A read lease (F_SETLEASE),
 * which the kernel grants only while nobody has the file open for writing, tells whether its writer
 * is gone. */
#include "journal_file.h"

#include "buf.h"
#include "file_look.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { HEADER_MAX = 1024, PUNCH_STEP = 1 << 20, BLOCK = 4096 };

static const char magic[8] = {'D', 'U', 'R', 'W', 'A', 'R', 'D', '1'};

char *journal_file_name(uint32_t channel, char *buf, size_t size)
{
    snprintf(buf, size, "%u.j", (unsigned)channel);
    return buf;
}

static int put_be(struct buf *b, uint64_t v, unsigned n)
{
    unsigned char t[8];
    for (unsigned i = 0; i < n; i++)
        t[i] = (unsigned char)(v >> (8 * (n - 1 - i)));
    return buf_append(b, t, n);
}

static uint64_t get_be(const unsigned char *p, unsigned n)
{
    uint64_t v = 0;
    for (unsigned i = 0; i < n; i++)
        v = v << 8 | p[i];
    return v;
}

static int put_header(const struct journal_file *f, struct buf *b)
{
    size_t s = strlen(f->sandbox), p = strlen(f->policy);
    int r = buf_append(b, magic, sizeof magic);
    r |= put_be(b, 1 + 8 + 2 + s + 2 + p, 4);
    r |= put_be(b, f->role, 1);
    r |= put_be(b, f->birth, 8);
    r |= put_be(b, s, 2) | buf_append(b, f->sandbox, s);
    return r | put_be(b, p, 2) | buf_append(b, f->policy, p);
}

/* The header goes in through a descriptor that is closed again, in append mode like the rest. */
static int write_header(struct journal_file *f, const char *name, struct err *err)
{
    struct buf b;
    buf_init(&b, HEADER_MAX);
    if (put_header(f, &b) < 0) {
        buf_free(&b);
        return err_set(err, ERR_INTERNAL, "a journal's header is too long");
    }
    int r = -1;
    int fd = openat(f->dirfd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        err_sys(err, "cannot make a journal");
    else if (write(fd, buf_data(&b), buf_len(&b)) != (ssize_t)buf_len(&b))
        err_sys(err, "cannot write a journal's header");
    else
        r = 0;
    f->start = f->pos = f->punched = buf_len(&b);
    buf_free(&b);
    if (fd >= 0) {
        close(fd);
        if (r < 0)
            unlinkat(f->dirfd, name, 0);
    }
    return r;
}

int journal_file_make(struct journal_file *f, int dirfd, int *writer, struct err *err)
{
    char name[24];
    journal_file_name(f->channel, name, sizeof name);
    f->dirfd = dirfd;
    f->fd = *writer = -1;
    if (write_header(f, name, err) < 0)
        return -1;
    f->fd = openat(dirfd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    *writer = openat(dirfd, name, O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW);
    if (f->fd >= 0 && *writer >= 0)
        return 0;
    err_sys(err, "cannot open a journal");
    if (*writer >= 0)
        close(*writer);
    *writer = -1;
    journal_file_done(f);
    unlinkat(dirfd, name, 0);
    return -1;
}

static int get_name(const unsigned char *p, size_t n, size_t *at, char *to)
{
    if (n - *at < 2)
        return -1;
    size_t len = (size_t)get_be(p + *at, 2);
    if (len > RENDER_NAME_MAX || len > n - *at - 2 || memchr(p + *at + 2, 0, len))
        return -1;
    memcpy(to, p + *at + 2, len);
    to[len] = 0;
    *at += 2 + len;
    return 0;
}

/* 0, 1 not finished, -1 malformed. */
static int get_header(struct journal_file *f, const unsigned char *p, size_t n)
{
    if (n < 12)
        return memcmp(p, magic, n < sizeof magic ? n : sizeof magic) == 0 ? 1 : -1;
    size_t rest = (size_t)get_be(p + 8, 4);
    if (memcmp(p, magic, sizeof magic) != 0 || rest < 13 || rest > HEADER_MAX - 12)
        return -1;
    if (n - 12 < rest)
        return 1;
    size_t at = 12 + 9, end = 12 + rest;
    f->role = p[12];
    f->birth = get_be(p + 13, 8);
    if (get_name(p, end, &at, f->sandbox) < 0 || get_name(p, end, &at, f->policy) < 0 || at != end)
        return -1;
    f->start = f->pos = f->punched = end;
    return 0;
}

int journal_file_load(struct journal_file *f, int dirfd, const char *name, struct err *err)
{
    unsigned char head[HEADER_MAX];
    uint64_t channel;
    struct slice s = slice_str(name);
    memset(f, 0, sizeof *f);
    f->fd = -1;
    if (!slice_ends(s, SLICE(".j")) ||
        slice_u64((struct slice){s.p, s.n - 2}, UINT32_MAX, &channel) < 0 || channel == 0)
        return err_set(err, ERR_PARSE, "%s is not a journal's name", name);
    f->dirfd = dirfd;
    f->channel = (uint32_t)channel;
    f->fd = openat(dirfd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (f->fd < 0)
        return err_sys(err, "cannot open the journal %s", name);
    ssize_t n = pread(f->fd, head, sizeof head, 0);
    if (n < 0) {
        err_sys(err, "cannot read the journal %s", name);
        journal_file_done(f);
        return -1;
    }
    int r = get_header(f, head, (size_t)n);
    if (r < 0) {
        journal_file_done(f);
        err_set(err, ERR_PARSE, "the journal %s has a malformed header", name);
    }
    return r;
}

void journal_file_done(struct journal_file *f)
{
    if (f->fd >= 0)
        close(f->fd);
    f->fd = -1;
}

int journal_file_remove(struct journal_file *f, struct err *err)
{
    char name[24];
    journal_file_done(f);
    if (unlinkat(f->dirfd, journal_file_name(f->channel, name, sizeof name), 0) < 0 &&
        errno != ENOENT)
        return err_sys(err, "cannot remove a journal");
    return 0;
}

ssize_t journal_file_read(const struct journal_file *f, unsigned char *buf, size_t size)
{
    ssize_t n;
    do
        n = pread(f->fd, buf, size, (off_t)f->pos);
    while (n < 0 && errno == EINTR);
    return n;
}

struct journal_look journal_file_look(const struct journal_file *f)
{
    struct journal_look look = {.size = f->pos};
    struct file_look is;
    if (f->fd < 0 || file_look(f->fd, &is) < 0)
        return look;
    if (is.size > f->pos)
        look.size = is.size;
    look.removed = is.removed;
    return look;
}

/* The kernel gives out a read lease only on a file that nobody has open for writing; it counts a
 * descriptor that is still on its way through a socket, too. */
int journal_file_held(const struct journal_file *f)
{
    if (fcntl(f->fd, F_SETLEASE, F_RDLCK) == 0) {
        fcntl(f->fd, F_SETLEASE, F_UNLCK);
        return 0;
    }
    return errno == EAGAIN ? 1 : -1;
}

static int open_writable(const struct journal_file *f)
{
    char name[24];
    return openat(f->dirfd, journal_file_name(f->channel, name, sizeof name),
                  O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
}

int journal_file_cut(struct journal_file *f, struct err *err)
{
    int fd = open_writable(f);
    if (fd < 0)
        return err_sys(err, "cannot open a journal");
    int r = ftruncate(fd, (off_t)f->pos) < 0 ? err_sys(err, "cannot cut a journal") : 0;
    close(fd);
    return r;
}

void journal_file_punch(struct journal_file *f)
{
    uint64_t from = f->punched & ~(uint64_t)(BLOCK - 1), to = f->pos & ~(uint64_t)(BLOCK - 1);
    if (from == 0)
        from = BLOCK; /* the header stays */
    if (to < from + PUNCH_STEP)
        return;
    int fd = open_writable(f);
    if (fd < 0)
        return;
    /* best effort: without it the journal only takes more room until its channel ends */
    if (fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)from,
                  (off_t)(to - from)) == 0)
        f->punched = to;
    close(fd);
}
