/* What an open file holds, and whether it has a name yet. It is asked without its times: since
 * Linux 6.13 a file whose times somebody asked for has them marked on the disk again by its next
 * write, and that costs as much as the write itself. */
#ifndef DURWARD_FILE_LOOK_H
#define DURWARD_FILE_LOOK_H

#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

struct file_look {
    uint64_t size; /* bytes */
    bool removed;  /* from every directory */
};

/* 0, or -1 with errno. */
static inline int file_look(int fd, struct file_look *look)
{
    struct statx st;
    if (statx(fd, "", AT_EMPTY_PATH, STATX_NLINK | STATX_SIZE, &st) < 0)
        return -1;
    *look = (struct file_look){.size = st.stx_size, .removed = st.stx_nlink == 0};
    return 0;
}

#endif
