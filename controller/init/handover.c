/* durward-init's end of the handover: connects to the launcher, takes its socket and the filter,
 * waits until the launcher has closed its side, and loads the filter. */
#define _GNU_SOURCE 1
#include "handover.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "ipc_msg.h"
#include "wire.h"

enum { INSTRUCTIONS_MAX = 4096 };

static int bad_message(void)
{
    errno = EBADMSG;
    return -1;
}

static int load_filter(int fd)
{
    static struct sock_filter code[INSTRUCTIONS_MAX];
    size_t n = 0;
    ssize_t got;
    while (n < sizeof code && (got = read(fd, (char *)code + n, sizeof code - n)) > 0)
        n += (size_t)got;
    if (n == 0 || n == sizeof code || n % sizeof code[0] != 0)
        return bad_message();
    struct sock_fprog program = {.len = (unsigned short)(n / sizeof code[0]), .filter = code};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return -1;
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

/* The two descriptors, and the far end's farewell: only when that is closed is nothing left. */
static int receive(int sock, int *control, int *filter)
{
    struct msg m;
    char end;
    if (msg_recv(sock, &m) <= 0)
        return bad_message();
    int r = m.type == W_INIT_HANDOVER ? msg_get_fd(&m, control) : -1;
    if (r == 0)
        r = msg_get_fd(&m, filter);
    if (r == 0)
        r = msg_end(&m);
    msg_done(&m);
    return r == 0 && recv(sock, &end, 1, 0) == 0 ? 0 : bad_message();
}

int handover_filter(int control)
{
    struct msg m;
    int filter = -1;
    if (msg_recv(control, &m) <= 0)
        return bad_message();
    int r = m.type == W_INIT_HANDOVER ? msg_get_fd(&m, &filter) : -1;
    if (r == 0)
        r = msg_end(&m);
    msg_done(&m);
    r = r < 0 ? bad_message() : load_filter(filter);
    if (filter >= 0)
        close(filter);
    return r;
}

int handover_take(int control)
{
    static const struct sockaddr_un to = {.sun_family = AF_UNIX,
                                          .sun_path = HANDOVER_DIR "/" HANDOVER_SOCKET};
    int given = -1, filter = -1;
    int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (sock < 0 || connect(sock, (const struct sockaddr *)&to, sizeof to) < 0 ||
        receive(sock, &given, &filter) < 0)
        return -1;
    close(sock);
    if (given != control && (dup2(given, control) < 0 || close(given) < 0))
        return -1;
    int r = load_filter(filter);
    if (filter != control)
        close(filter);
    return r;
}
