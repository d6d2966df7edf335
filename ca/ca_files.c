/* Opens the CA's files. In our own directory this happens under a lock: shared where there is a CA,
 * exclusive to have one made or to carry out a rotation that is due. */
#include "ca_files.h"

#include "buf.h"
#include "ca_key.h"
#include "paths.h"
#include "rotation.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static const struct ca_files none = {.key_fd = -1, .cert_fd = -1, .lock_fd = -1, .next_fd = -1};

static void close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

void ca_files_close(struct ca_files *f)
{
    if (f->key_path == NULL) /* zeroed: its descriptors are not ours */
        return;
    close_fd(&f->key_fd);
    close_fd(&f->cert_fd);
    close_fd(&f->lock_fd);
    close_fd(&f->next_fd);
    free(f->key_path);
    free(f->cert_path);
    free(f->next_path);
    *f = none;
}

/* Bytes in the file; 0 when it is not there; -1 on error. */
static int64_t size_of(const char *path, struct err *err)
{
    struct stat st;
    if (stat(path, &st) < 0)
        return errno == ENOENT ? 0 : err_sys(err, "%s", path);
    if (!S_ISREG(st.st_mode))
        return err_set(err, ERR_DENIED, "%s is not a regular file", path);
    return st.st_size;
}

/* 1: a CA is to be made; 0: there is one; -1. A key without a certificate is what a crash in the
 * middle leaves behind, and nothing was ever signed with it. */
static int is_missing(const struct ca_files *f, struct err *err)
{
    int64_t key = size_of(f->key_path, err), cert = key < 0 ? -1 : size_of(f->cert_path, err);
    if (key < 0 || cert < 0)
        return -1;
    if (key == 0 && cert > 0)
        return err_set(err, ERR_DENIED,
                       "%s is there but its key %s is not; restore the key, or remove the "
                       "certificate to have a new CA made",
                       f->cert_path, f->key_path);
    return cert == 0;
}

static int lock_dir(int fd, int how, const char *dir, struct err *err)
{
    int r;
    do
        r = flock(fd, how);
    while (r < 0 && errno == EINTR);
    return r < 0 ? err_sys(err, "cannot lock %s", dir) : 0;
}

static int open_one(const char *path, bool create, mode_t mode, int *ret, struct err *err)
{
    int flags = O_CLOEXEC | O_NONBLOCK | (create ? O_RDWR | O_CREAT | O_NOFOLLOW : O_RDONLY);
    *ret = open(path, flags, mode);
    return *ret < 0 ? err_sys(err, "cannot open %s", path) : 0;
}

static int open_both(struct ca_files *f, struct err *err)
{
    struct stat st;
    if (open_one(f->key_path, f->create, 0600, &f->key_fd, err) < 0 ||
        paths_check_private_fd(f->key_fd, f->key_path, err) < 0 ||
        open_one(f->cert_path, f->create, 0644, &f->cert_fd, err) < 0)
        return -1;
    if (fstat(f->cert_fd, &st) < 0)
        return err_sys(err, "%s", f->cert_path);
    if (!S_ISREG(st.st_mode))
        return err_set(err, ERR_DENIED, "%s is not a regular file", f->cert_path);
    return 0;
}

/* The certificate of the CA to come, if there is one. */
static int open_next(const char *dir, struct ca_files *f, struct err *err)
{
    struct rotation r;
    int under_way = rotation_read(f->lock_fd, &r, err);
    if (under_way <= 0)
        return under_way;
    f->next_path = paths_join(dir, "next-cert.pem");
    if (open_one(f->next_path, false, 0, &f->next_fd, err) < 0)
        return -1;
    f->since = r.since;
    f->until = r.until;
    return 0;
}

/* Under the exclusive lock. */
static int settle(const struct ca_files *f, struct err *err)
{
    return rotation_settle(f->lock_fd, time(NULL), err) < 0 ? -1 : is_missing(f, err);
}

/* Under a shared lock nobody is making a CA; under an exclusive one, held until ca_files_close, we
 * are the one who does. */
static int open_in_dir(const char *dir, struct ca_files *f, struct err *err)
{
    if (paths_make_private(dir, err) < 0)
        return -1;
    f->key_path = paths_join(dir, "key.pem");
    f->cert_path = paths_join(dir, "cert.pem");
    f->lock_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (f->lock_fd < 0)
        return err_sys(err, "cannot open %s", dir);
    if (lock_dir(f->lock_fd, LOCK_SH, dir, err) < 0)
        return -1;
    int due = rotation_due(f->lock_fd, time(NULL), err);
    int missing = due == 0 ? is_missing(f, err) : due;
    if (missing == 1) {
        if (lock_dir(f->lock_fd, LOCK_EX, dir, err) < 0)
            return -1;
        missing = settle(f, err);
    }
    if (missing < 0)
        return -1;
    f->create = missing == 1;
    if (open_both(f, err) < 0 || (!f->create && open_next(dir, f, err) < 0))
        return -1;
    if (!f->create)
        close_fd(&f->lock_fd);
    return 0;
}

int ca_files_open(const char *dir, const char *cert, const char *key, struct ca_files *ret,
                  struct err *err)
{
    struct ca_files f = none;
    char *own = NULL;
    int r = -1;
    *ret = none;
    if ((cert == NULL) != (key == NULL))
        return err_set(err, ERR_PARSE, "ca.cert and ca.key go together; %s is missing",
                       cert ? "ca.key" : "ca.cert");
    if (cert) {
        f.cert_path = strdup(cert);
        f.key_path = strdup(key);
        if (f.cert_path && f.key_path)
            r = open_both(&f, err);
        else
            err_set(err, ERR_INTERNAL, "out of memory");
    } else {
        own = dir ? strdup(dir) : paths_ca_dir(err);
        if (own)
            r = open_in_dir(own, &f, err);
    }
    free(own);
    if (r < 0) {
        err_wrap(err, "the CA");
        close_fd(&f.key_fd);
        close_fd(&f.cert_fd);
        close_fd(&f.lock_fd);
        close_fd(&f.next_fd);
        free(f.key_path);
        free(f.cert_path);
        free(f.next_path);
        return -1;
    }
    *ret = f;
    return 0;
}

int ca_files_lock(const char *dir, struct err *err)
{
    char *own = dir ? strdup(dir) : paths_ca_dir(err);
    int fd = own ? open(own, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    int r = fd < 0 ? err_sys(err, "cannot open %s", own ? own : "the CA's directory")
                   : lock_dir(fd, LOCK_EX, own, err);
    if (r == 0)
        r = rotation_settle(fd, time(NULL), err);
    free(own);
    if (r < 0)
        close_fd(&fd);
    return r < 0 ? -1 : fd;
}

static int add_pem(int fd, const char *path, struct buf *to, struct err *err)
{
    char text[CA_FILE_MAX];
    ssize_t n = pread(fd, text, sizeof text, 0);
    if (n < 0)
        return err_sys(err, "reading %s", path);
    if (n == 0 || buf_append(to, text, (size_t)n) < 0)
        return err_set(err, ERR_PARSE, "%s holds no certificate", path);
    return 0;
}

char *ca_files_trusted(const struct ca_files *f, struct err *err)
{
    struct buf b;
    char *text = NULL;
    buf_init(&b, 2 * CA_FILE_MAX);
    int r = add_pem(f->cert_fd, f->cert_path, &b, err);
    if (r == 0 && f->next_fd >= 0)
        r = add_pem(f->next_fd, f->next_path, &b, err);
    if (r == 0 && (text = slice_dup(buf_slice(&b))) == NULL)
        err_set(err, ERR_INTERNAL, "out of memory");
    buf_free(&b);
    return text;
}
