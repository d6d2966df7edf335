/* Reads a configuration, and writes what others read: by a file of another name that takes its
 * place, so that nobody sees half of it. */
#include "kube_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TEXT_MAX = 1 << 20, PATH_BYTES = 512, PIECE = 65536 };

int kube_file_read_up_to(const char *path, size_t max, struct buf *b, struct err *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    ssize_t n = fd < 0 ? -1 : 1;
    buf_init(b, max + PIECE);
    while (n > 0) {
        unsigned char *to = buf_reserve(b, PIECE);
        if (to == NULL) {
            close(fd);
            return err_set(err, ERR_LIMIT, "%s is larger than %zu MiB", path, max >> 20);
        }
        n = read(fd, to, PIECE);
        if (n < 0 && errno == EINTR)
            n = 1;
        else if (n > 0)
            buf_commit(b, (size_t)n);
    }
    int r = n < 0 ? err_sys(err, "%s", path) : 0;
    if (fd >= 0)
        close(fd);
    return r;
}

int kube_file_read(const char *path, struct buf *b, struct err *err)
{
    return kube_file_read_up_to(path, TEXT_MAX, b, err);
}

static bool has(const char *path, struct slice text)
{
    struct buf b;
    struct err err = {0};
    bool same = kube_file_read(path, &b, &err) == 0 && slice_eq(buf_slice(&b), text);
    buf_free(&b);
    return same;
}

int kube_file_replace(const char *path, struct slice text, unsigned mode, struct err *err)
{
    char other[PATH_BYTES];
    unsigned own =
        0; /* two that write at once have a file each: none takes the other's for whole */
    if (getrandom(&own, sizeof own, 0) != sizeof own)
        return err_sys(err, "random bytes");
    int len = snprintf(other, sizeof other, "%s.%08x.new", path, own);
    if (len < 0 || (size_t)len >= sizeof other)
        return err_set(err, ERR_LIMIT, "%.200s: the path is too long", path);
    int fd = open(other, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    bool ok = fd >= 0 && fchmod(fd, mode) == 0;
    for (size_t at = 0; ok && at < text.n;) {
        ssize_t n = write(fd, text.p + at, text.n - at);
        ok = n > 0 || (n < 0 && errno == EINTR);
        at += n > 0 ? (size_t)n : 0;
    }
    ok = ok && fsync(fd) == 0;
    if (fd >= 0 && close(fd) < 0)
        ok = false;
    if (ok && rename(other, path) == 0)
        return 1;
    (void)err_sys(err, "%s", other);
    if (fd >= 0)
        (void)unlink(other);
    return -1;
}

int kube_file_write(const char *path, struct slice text, struct err *err)
{
    if (text.n > TEXT_MAX)
        return err_set(err, ERR_LIMIT, "the cluster's policies take more than 1 MiB together");
    return has(path, text) ? 0 : kube_file_replace(path, text, 0644, err);
}
