/* A connection to what listens on the loopback of the network namespace that the caller is in. */
#define _GNU_SOURCE 1
#include "inside.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

enum { CONNECT_S = 5 };

static int try_connect(const struct sockaddr *to, socklen_t n)
{
    struct timeval limit = {CONNECT_S, 0};
    int fd = socket(to->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit); /* bounds connect */
    if (connect(fd, to, n) == 0)
        return fd;
    int e = errno;
    close(fd);
    errno = e == EINPROGRESS ? ETIMEDOUT : e;
    return -1;
}

int inside_connect(unsigned port)
{
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    struct sockaddr_in6 in6 = {
        .sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port), .sin6_addr = in6addr_loopback};
    in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = try_connect((struct sockaddr *)&in, sizeof in);
    return fd < 0 && errno == ECONNREFUSED ? try_connect((struct sockaddr *)&in6, sizeof in6) : fd;
}
