/* The other way to judge a file when it is opened, for bench/masks: `masks_open CMD...` runs CMD
 * with every open(2) and openat(2) answered by this process, which opens the file itself and hands
 * the descriptor over (seccomp's user notification). It measures that way; it is not made to hold
 * anybody. */
#define _GNU_SOURCE 1
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

static void send_fd(int to, int fd)
{
    char one = 0;
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(sizeof(int))];
    } c = {.head = {CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS}};
    struct iovec iov = {&one, 1};
    struct msghdr m = {
        .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &c, .msg_controllen = sizeof c};
    memcpy(CMSG_DATA(&c.head), &fd, sizeof fd);
    if (sendmsg(to, &m, 0) != 1)
        _exit(1);
}

static int receive_fd(int from)
{
    char one;
    int fd = -1;
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(sizeof(int))];
    } c;
    struct iovec iov = {&one, 1};
    struct msghdr m = {
        .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &c, .msg_controllen = sizeof c};
    if (recvmsg(from, &m, 0) == 1 && CMSG_FIRSTHDR(&m))
        memcpy(&fd, CMSG_DATA(&c.head), sizeof fd);
    return fd;
}

static void command(int to, char **argv)
{
    scmp_filter_ctx f = seccomp_init(SCMP_ACT_ALLOW);
    if (f == NULL || seccomp_rule_add(f, SCMP_ACT_NOTIFY, SCMP_SYS(openat), 0) < 0 ||
        seccomp_rule_add(f, SCMP_ACT_NOTIFY, SCMP_SYS(open), 0) < 0 || seccomp_load(f) < 0)
        _exit(1);
    send_fd(to, seccomp_notify_fd(f));
    close(to);
    execvp(argv[0], argv);
    _exit(127);
}

/* The file as the caller means it; -errno. */
static int open_for(const struct seccomp_notif *n)
{
    char path[PATH_MAX] = "", at[64];
    bool plain = n->data.nr == SCMP_SYS(open);
    const __u64 *a = n->data.args + !plain;
    int dir = plain ? AT_FDCWD : (int)n->data.args[0];
    struct iovec to = {path, sizeof path - 1}, from = {(void *)(uintptr_t)a[0], sizeof path - 1};
    size_t page = 4096 - a[0] % 4096;
    from.iov_len = page < from.iov_len ? page : from.iov_len;
    if (process_vm_readv((pid_t)n->pid, &to, 1, &from, 1, 0) < 0)
        return -EFAULT;
    snprintf(at, sizeof at, dir == AT_FDCWD ? "/proc/%u/cwd" : "/proc/%u/fd/%d", n->pid, dir);
    int base = path[0] == '/' ? AT_FDCWD : open(at, O_PATH | O_CLOEXEC);
    int fd = openat(base, path, (int)a[1] | O_NOCTTY | O_CLOEXEC, (mode_t)a[2]);
    int r = fd < 0 ? -errno : fd;
    if (base >= 0)
        close(base);
    return r;
}

static void answer(int listener, const struct seccomp_notif *n)
{
    int fd = open_for(n);
    if (fd >= 0) {
        struct seccomp_notif_addfd add = {
            .id = n->id,
            .flags = SECCOMP_ADDFD_FLAG_SEND,
            .srcfd = (__u32)fd,
            .newfd_flags = n->data.args[n->data.nr == SCMP_SYS(open) ? 1 : 2] & O_CLOEXEC};
        (void)ioctl(listener, SECCOMP_IOCTL_NOTIF_ADDFD, &add);
        close(fd);
        return;
    }
    struct seccomp_notif_resp r = {.id = n->id, .error = fd};
    (void)ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &r);
}

int main(int argc, char **argv)
{
    int pair[2], status;
    if (argc < 2 || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return 2;
    pid_t pid = fork();
    if (pid == 0)
        command(pair[1], argv + 1);
    close(pair[1]);
    int listener = receive_fd(pair[0]);
    for (struct seccomp_notif n = {0}; listener >= 0; n = (struct seccomp_notif){0}) {
        if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &n) == 0)
            answer(listener, &n);
        else if (errno != EINTR && waitpid(pid, &status, WNOHANG) == pid)
            return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
    }
    return 2;
}
