/* Writes and reads files of the parent's that hold secrets, by a descriptor of their directory. */
#include "private_file.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/* A name as the configuration allows it: no slash, no leading dot. */
bool file_name_ok(const char *s)
{
    if (*s == 0 || *s == '.' || *s == '-')
        return false;
    for (; *s; s++)
        if (!ascii_is_alnum(*s) && *s != '_' && *s != '.' && *s != '-')
            return false;
    return true;
}

/* Whole or not at all: a new file, on disk before it takes the name. */
bool private_file_write(int dir, const char *name, struct slice value)
{
    char fresh[NAME_MAX + 8];
    snprintf(fresh, sizeof fresh, ".%s.new", name);
    unlinkat(dir, fresh, 0);
    int fd = openat(dir, fresh, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return false;
    bool ok = write(fd, value.p, value.n) == (ssize_t)value.n && fsync(fd) == 0;
    ok = close(fd) == 0 && ok && renameat(dir, fresh, dir, name) == 0 && fsync(dir) == 0;
    if (!ok)
        unlinkat(dir, fresh, 0);
    return ok;
}

size_t private_file_read(int dir, const char *name, char *to, size_t size)
{
    struct stat st;
    int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return 0;
    ssize_t n = -1;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid() &&
        (st.st_mode & 077) == 0)
        n = read(fd, to, size);
    close(fd);
    return n > 0 && (size_t)n < size ? (size_t)n : 0;
}
