/* The trunk's far end: in the sandbox's network namespace, it makes anew what programs in the guest
 * connect to. It has no capability, and no descriptor but the trunk's. */
#define _GNU_SOURCE 1
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "microvm.h"
#include "trunk.h"

static int open_there(enum trunk_kind kind, const struct trunk_address *to)
{
    struct sockaddr_storage a;
    socklen_t n;
    int type = kind == TRUNK_TCP ? SOCK_STREAM : SOCK_DGRAM;
    trunk_address_to(to, (struct sockaddr *)&a, &n);
    int fd = socket(to->family == 4 ? AF_INET : AF_INET6, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&a, n) < 0 && errno != EINPROGRESS) {
        close(fd);
        return -1;
    }
    return fd;
}

/* One here, so that it is refused here, where that is recorded. */
static void refuse_here(const struct trunk_address *to)
{
    int fd = open_there(TRUNK_UDP, to);
    if (fd < 0)
        return;
    (void)!send(fd, "", 0, MSG_NOSIGNAL | MSG_DONTWAIT);
    close(fd);
}

static int give_up_rights(void)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {{0}};
    return prctl(PR_SET_NAME, "durward-trunk") < 0 || syscall(SYS_capset, &head, none) < 0 ||
                   prctl(PR_SET_DUMPABLE, 0) < 0
               ? -1
               : 0;
}

void microvm_carry(int line, int control)
{
    static const struct trunk_ops ops = {.open = open_there, .refused = refuse_here};
    static struct pollfd p[TRUNK_POLLED];
    if (fcntl(line, F_SETFL, O_NONBLOCK) < 0 || fcntl(control, F_SETFL, O_NONBLOCK) < 0 ||
        give_up_rights() < 0)
        _exit(1);
    struct trunk *t = trunk_new(line, control, &ops);
    while (t) {
        unsigned n = trunk_watch(t, p);
        if (poll(p, n, TRUNK_TURN_MS) < 0 && errno != EINTR)
            break;
        if (trunk_turn(t, p, n) < 0)
            break;
    }
    _exit(0);
}
