/* SCM_RIGHTS: the room for one descriptor is aligned, so that a second one fits in, too. */
#define _GNU_SOURCE 1
#include "network_message.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

union control {
    char room[CMSG_SPACE(sizeof(int))];
    struct cmsghdr align;
};

int network_message_send(int fd, const void *p, size_t n, int descriptor)
{
    union control control = {.room = {0}};
    struct iovec iov = {(void *)(uintptr_t)p, n};
    struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};
    if (descriptor >= 0) {
        m.msg_control = control.room;
        m.msg_controllen = sizeof control.room;
        struct cmsghdr *c = CMSG_FIRSTHDR(&m);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(c), &descriptor, sizeof descriptor);
    }
    return sendmsg(fd, &m, MSG_NOSIGNAL) == (ssize_t)n ? 0 : -1;
}

ssize_t network_message_receive(int fd, void *p, size_t size, int *descriptor)
{
    union control control;
    struct iovec iov = {p, size};
    struct msghdr m = {.msg_iov = &iov,
                       .msg_iovlen = 1,
                       .msg_control = control.room,
                       .msg_controllen = sizeof control.room};
    ssize_t n;
    *descriptor = -1;
    do
        n = recvmsg(fd, &m, MSG_CMSG_CLOEXEC);
    while (n < 0 && errno == EINTR);
    struct cmsghdr *c = n < 0 ? NULL : CMSG_FIRSTHDR(&m);
    if (c == NULL || c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
        return n;
    size_t came = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < came; i++) {
        int one;
        memcpy(&one, CMSG_DATA(c) + i * sizeof one, sizeof one);
        if (i == 0)
            *descriptor = one;
        else
            close(one);
    }
    return n;
}
