/* Names, writes and removes the files that lie beside a closed file of the log. */
#include "index_file.h"

#include "log_dir.h"
#include "terms.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void index_file_name(const char *log, const char *ending, char name[INDEX_NAME_MAX])
{
    size_t n = strlen(log);
    if (log_dir_packed(log))
        n -= strlen(".zst");
    snprintf(name, INDEX_NAME_MAX, "%.*s%s", (int)(n < 60 ? n : 60), log, ending);
}

bool index_file_exists(int dirfd, const char *log, const char *ending, const char *magic)
{
    char name[INDEX_NAME_MAX], begins[INDEX_MAGIC];
    index_file_name(log, ending, name);
    int fd = openat(dirfd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    bool there = fd >= 0 && read(fd, begins, sizeof begins) == (ssize_t)sizeof begins &&
                 memcmp(begins, magic, sizeof begins) == 0;
    if (fd >= 0)
        close(fd);
    return there;
}

void index_file_remove(int dirfd, const char *log, const char *ending)
{
    char name[INDEX_NAME_MAX];
    index_file_name(log, ending, name);
    unlinkat(dirfd, name, 0);
}

int index_file_begin(struct index_file *f, int dirfd, const char *log, const char *ending,
                     struct err *err)
{
    f->dirfd = dirfd;
    index_file_name(log, ending, f->name);
    snprintf(f->pending, sizeof f->pending, "%s.new", f->name);
    f->fd = openat(dirfd, f->pending, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    return f->fd < 0 ? err_sys(err, "cannot write %s", f->name) : 0;
}

int index_file_put(struct index_file *f, const void *bytes, size_t n, struct err *err)
{
    for (size_t at = 0; at < n;) {
        ssize_t k = write(f->fd, (const char *)bytes + at, n - at);
        if (k < 0 && errno == EINTR)
            continue;
        if (k <= 0)
            return err_sys(err, "cannot write %s", f->name);
        at += (size_t)k;
    }
    return 0;
}

int index_file_finish(struct index_file *f, struct err *err)
{
    if (renameat(f->dirfd, f->pending, f->dirfd, f->name) < 0)
        return err_sys(err, "cannot write %s", f->name);
    close(f->fd);
    f->fd = -1;
    return 0;
}

void index_file_close(struct index_file *f)
{
    if (f->fd < 0)
        return;
    close(f->fd);
    unlinkat(f->dirfd, f->pending, 0);
    f->fd = -1;
}

void index_file_times(char first[TIMESTAMP_MAX], char last[TIMESTAMP_MAX], struct slice at)
{
    if (at.n == 0 || at.n >= TIMESTAMP_MAX)
        return;
    if (first[0] == 0 || memcmp(at.p, first, at.n) < 0)
        memcpy(first, at.p, at.n);
    if (memcmp(at.p, last, at.n) > 0)
        memcpy(last, at.p, at.n);
}
