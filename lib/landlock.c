#include "landlock.h"

#include <fcntl.h>
#include <stdint.h>
#include <sys/prctl.h>
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

#define FS_EXECUTE    (1ULL << 0)
#define FS_READ_FILE  (1ULL << 2)
#define FS_READ_DIR   (1ULL << 3)
#define FS_MAKE_CHAR  (1ULL << 6)
#define FS_MAKE_SOCK  (1ULL << 9)
#define FS_MAKE_FIFO  (1ULL << 10)
#define FS_MAKE_BLOCK (1ULL << 11)
#define FS_MAKE_SYM   (1ULL << 12)
#define FS_REFER      (1ULL << 13)
#define NET_TCP       3ULL /* bind, connect */
#define SCOPED        3ULL /* abstract unix sockets, signals */

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

static uint64_t refused_fs(enum landlock_reach reach, int abi)
{
    switch (reach) {
    case LANDLOCK_NOTHING:
        return known_fs(abi);
    case LANDLOCK_READS:
        return known_fs(abi) & ~(FS_READ_FILE | FS_READ_DIR);
    case LANDLOCK_KEEPS:
        break;
    }
    /* to rename from one directory to another must be allowed by a rule, or it is refused always */
    return (FS_EXECUTE | FS_MAKE_CHAR | FS_MAKE_SOCK | FS_MAKE_FIFO | FS_MAKE_BLOCK | FS_MAKE_SYM |
            FS_REFER) &
           known_fs(abi);
}

static int allow_renames(int set)
{
    int root = open("/", O_PATH | O_CLOEXEC);
    if (root < 0)
        return -1;
    struct path_beneath rule = {.allowed = FS_REFER, .parent = root};
    long r = syscall(CALL_ADD_RULE, set, RULE_PATH_BENEATH, &rule, 0);
    close(root);
    return r < 0 ? -1 : 0;
}

int landlock_enter(enum landlock_reach reach, struct err *err)
{
    int abi = landlock_abi();
    if (abi == 0)
        return 0;
    struct ruleset refused = {.fs = refused_fs(reach, abi)};
    size_t size = sizeof refused.fs;
    if (abi >= 4) {
        refused.net = reach == LANDLOCK_READS ? 0 : NET_TCP;
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
    if (reach == LANDLOCK_KEEPS && (refused.fs & FS_REFER))
        r = allow_renames(set);
    if (r < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || syscall(CALL_RESTRICT, set, 0) < 0)
        r = err_sys(err, "Landlock");
    close(set);
    return r;
}
