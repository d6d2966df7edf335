/* The trunk's far end: in the sandbox's network namespace, it makes anew what programs in the guest
 * connect to. It has no capability, no descriptor but the trunk's, and a filter: the launcher's
 * files and processes lie before it, which are the host's. */
#define _GNU_SOURCE 1
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <netinet/in.h>
#include <poll.h>
#include <seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "filter.h"
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

/* ---- what is left to it ---- */

/* TCP and UDP, and no socket that a service of the host's listens on. */
static void allow_sockets(struct filter *f)
{
    static const scmp_datum_t families[] = {AF_INET, AF_INET6}, types[] = {SOCK_STREAM, SOCK_DGRAM};
    for (size_t i = 0; i < ARRAY_LEN(families) * ARRAY_LEN(types); i++) {
        const struct scmp_arg_cmp made[] = {FILTER_IS(0, families[i / 2]),
                                            FILTER_HAS(1, FILTER_SOCKET_TYPE, types[i % 2]),
                                            FILTER_IS(2, 0)};
        filter_rule(f, SCMP_ACT_ALLOW, "socket", ARRAY_LEN(made), made);
    }
    const struct scmp_arg_cmp reset[] = {FILTER_IS(1, SOL_SOCKET), FILTER_IS(2, SO_LINGER)};
    filter_rule(f, SCMP_ACT_ALLOW, "setsockopt", ARRAY_LEN(reset), reset);
}

/* Whoever takes it over by its frames opens no file, sees no process and runs no program. */
static int confine(void)
{
    static const char *const calls[] = {
        "read",       "write",     "poll",   "recvmsg", "sendmsg",       "recvfrom",
        "sendto",     "connect",   "close",  "fstat",   "newfstatat",    "getsockopt",
        "brk",        "munmap",    "mremap", "madvise", "clock_gettime", "shutdown",
        "exit_group", "getrandom", "futex",  "exit",    "rt_sigreturn",  "restart_syscall"};
    const struct scmp_arg_cmp plain = FILTER_HAS(2, PROT_EXEC, 0), flags = FILTER_IS(1, F_GETFL);
    struct err err = {0};
    struct filter *f = SANITIZED ? NULL : filter_new(FILTER_NATIVE, SCMP_ACT_ERRNO(EPERM));
    for (size_t i = 0; i < ARRAY_LEN(calls); i++)
        filter_rule(f, SCMP_ACT_ALLOW, calls[i], 0, NULL);
    filter_rule(f, SCMP_ACT_ALLOW, "mmap", 1, &plain);
    filter_rule(f, SCMP_ACT_ALLOW, "fcntl", 1, &flags);
    allow_sockets(f);
    int r = SANITIZED ? 0 : filter_load(f, &err);
    filter_free(f);
    return r;
}

void microvm_carry(int line, int control)
{
    static const struct trunk_ops ops = {.open = open_there, .refused = refuse_here};
    static struct pollfd p[TRUNK_POLLED];
    if (fcntl(line, F_SETFL, O_NONBLOCK) < 0 || fcntl(control, F_SETFL, O_NONBLOCK) < 0 ||
        give_up_rights() < 0 || confine() < 0)
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
