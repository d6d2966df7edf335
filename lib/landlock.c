/* Makes Landlock's system calls by their numbers and with its own constants, and asks of each
 * version of the kernel only what that version knows. */
#include "landlock.h"

#include <stdint.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Numbers of the kernel's interface: headers to build with may be older than the kernel. */
enum {
    CALL_CREATE = 444, /* the same on every architecture */
    CALL_ADD_RULE = 445,
    CALL_RESTRICT = 446,
    CREATE_VERSION = 1,
    RULE_PATH_BENEATH = 1,
};

#define FS_WRITE_FILE  (1ULL << 1)
#define FS_READ_FILE   (1ULL << 2)
#define FS_READ_DIR    (1ULL << 3)
#define FS_REMOVE_DIR  (1ULL << 4)
#define FS_REMOVE_FILE (1ULL << 5)
#define FS_MAKE_DIR    (1ULL << 7)
#define FS_MAKE_REG    (1ULL << 8)
#define FS_REFER       (1ULL << 13)
#define FS_TRUNCATE    (1ULL << 14)
#define NET_BIND       (1ULL << 0)
#define NET_CONNECT    (1ULL << 1)
#define SCOPED         3ULL /* abstract unix sockets, signals */

/* What a rule of a file may name. */
#define FS_OF_FILES (FS_WRITE_FILE | FS_READ_FILE | FS_TRUNCATE)

#define FS_READ (FS_READ_FILE | FS_READ_DIR)
#define FS_KEEP                                                                             \
    (FS_READ | FS_WRITE_FILE | FS_REMOVE_DIR | FS_REMOVE_FILE | FS_MAKE_DIR | FS_MAKE_REG | \
     FS_REFER | FS_TRUNCATE)

struct ruleset {
    uint64_t fs, net, scoped;
};

struct path_beneath {
    uint64_t allowed;
    int32_t parent;
} __attribute__((packed));

int landlock_abi(void)
{
    long abi = syscall(CALL_CREATE, NULL, 0, CREATE_VERSION);
    return abi > 0 ? (int)abi : 0;
}

/* Every right by path that this version knows. */
static uint64_t known_fs(int abi)
{
    static const int bits[] = {13, 14, 15, 15, 16}; /* refer, truncate, –, ioctl */
    return (1ULL << bits[abi > 5 ? 4 : abi - 1]) - 1;
}

static int allow(int set, const struct landlock_place *place, int abi)
{
    struct stat st;
    struct path_beneath rule = {.parent = place->fd};
    rule.allowed = (place->right == LANDLOCK_KEEP ? FS_KEEP : FS_READ) & known_fs(abi);
    if (fstat(place->fd, &st) < 0)
        return -1;
    if (!S_ISDIR(st.st_mode))
        rule.allowed &= FS_OF_FILES;
    return syscall(CALL_ADD_RULE, set, RULE_PATH_BENEATH, &rule, 0) < 0 ? -1 : 0;
}

int landlock_enter(const struct landlock_reach *reach, struct err *err)
{
    int abi = landlock_abi();
    if (abi == 0)
        return 0;
    struct ruleset refused = {.fs = known_fs(abi)};
    size_t size = sizeof refused.fs;
    if (abi >= 4) {
        refused.net = NET_BIND | (reach->connects ? 0 : NET_CONNECT);
        size += sizeof refused.net;
    }
    if (abi >= 6) {
        refused.scoped = SCOPED;
        size += sizeof refused.scoped;
    }
    int set = (int)syscall(CALL_CREATE, &refused, size, 0);
    if (set < 0)
        return err_sys(err, "Landlock");
    int r = 0;
    for (size_t i = 0; r == 0 && i < reach->n; i++)
        r = allow(set, &reach->places[i], abi);
    if (r < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || syscall(CALL_RESTRICT, set, 0) < 0)
        r = err_sys(err, "Landlock");
    close(set);
    return r;
}
