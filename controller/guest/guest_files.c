/* Forgets files. The host's server has a descriptor for each file that was looked at here and is
 * still known, and has so many and no more; this kernel, which forgets when it needs memory, knows
 * nothing of that. */
#define _GNU_SOURCE 1
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "guest_internal.h"

#define COUNT "/proc/sys/fs/inode-nr"
#define DROP  "/proc/sys/vm/drop_caches"

enum { SOON_MS = 100, SLOW_MIN = 1000 * 1000 };

int guest_files_open(struct guest_files *k, unsigned long most)
{
    *k = (struct guest_files){.most = most, .count = open(COUNT, O_RDONLY | O_CLOEXEC)};
    return k->count < 0 ? guest_fail(COUNT) : 0;
}

static unsigned long count(const struct guest_files *k)
{
    char text[64] = "";
    ssize_t n = pread(k->count, text, sizeof text - 1, 0);
    return n <= 0 ? 0 : strtoul(text, NULL, 10);
}

/* Their pages too: a file with one is not forgotten. */
static void drop(void)
{
    int fd = open(DROP, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    (void)!write(fd, "3", 1);
    close(fd);
}

int guest_files_turn(struct guest_files *k)
{
    unsigned long n = count(k);
    /* those that are in use stay: not again before there are many more */
    if (n > k->most / 2 && n > k->left + k->most / 8) {
        drop();
        k->left = n = count(k);
    }
    if (n < k->left)
        k->left = n;
    /* in TRUNK_TURN_MS a walk could pass all that the host serves, where that is little */
    return n > k->most / 8 || k->most < SLOW_MIN ? SOON_MS : TRUNK_TURN_MS;
}
