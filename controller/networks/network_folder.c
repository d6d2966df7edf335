/* A name in the sandbox's network would be anybody's to take, as containers can have that network;
 * this is in the sandbox's /run, where root alone makes folders. */
#define _GNU_SOURCE 1
#include "network_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

enum { OTHERS = 077 };

int network_folder_open(struct err *err)
{
    struct stat st;
    if (mkdir(NETWORK_FOLDER, 0700) < 0 && errno != EEXIST)
        return err_set(err, ERR_SYS,
                       "%s cannot be made: networks of containers are for podman as root, others "
                       "have --network host",
                       NETWORK_FOLDER);
    int fd = open(NETWORK_FOLDER, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0 && fstat(fd, &st) == 0 && st.st_uid == getuid() && (st.st_mode & OTHERS) == 0)
        return fd;
    if (fd >= 0)
        close(fd);
    return err_set(err, ERR_DENIED, "%s is another user's, or open to others", NETWORK_FOLDER);
}
