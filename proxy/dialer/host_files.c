/* Opens the files that c-ares reads, for Landlock's rules, and tells later by their inodes whether
 * one was replaced; then the dialer ends once it is idle, to be started again. */
#include "host_files.h"

#include "landlock.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

/* What c-ares reads. It takes randomness from the last. */
static const char *const names[] = {"/etc/resolv.conf", "/etc/hosts",    "/etc/nsswitch.conf",
                                    "/etc/host.conf",   "/etc/svc.conf", "/dev/urandom"};
_Static_assert(ARRAY_LEN(names) == HOST_FILES_MAX, "room for each");

size_t host_files_open(struct host_files *f, struct landlock_place *places)
{
    size_t n = 0;
    memset(f, 0, sizeof *f);
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        struct stat st;
        int fd = open(names[i], O_PATH | O_CLOEXEC);
        if (fd < 0)
            continue;
        places[n++] = (struct landlock_place){fd, LANDLOCK_READ};
        if (fstat(fd, &st) == 0) {
            f->seen[i].dev = st.st_dev;
            f->seen[i].ino = st.st_ino;
        }
    }
    return n;
}

bool host_files_replaced(const struct host_files *f)
{
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        struct stat st = {0};
        if (stat(names[i], &st) < 0)
            memset(&st, 0, sizeof st);
        if (st.st_ino != f->seen[i].ino || (st.st_ino && st.st_dev != f->seen[i].dev))
            return true;
    }
    return false;
}
