/* Listening on an address that somebody wrote, for the parent and for the command that looks first.
 */
#include "tcp_listen.h"

#include "authority.h"
#include "start_wait.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int tcp_listen(const char *text, struct err *err)
{
    struct authority a;
    union {
        struct sockaddr sa;
        struct sockaddr_in in;
        struct sockaddr_in6 in6;
    } u = {.in = {0}};
    int one = 1;
    if (authority_parse(&a, SCHEME_HTTP, slice_str(text)) < 0 || a.kind == HOST_NAME)
        return err_set(err, ERR_PARSE, "listen: %s is not ADDRESS:PORT", text);
    socklen_t len;
    if (a.kind == HOST_IPV4) {
        u.in.sin_family = AF_INET;
        u.in.sin_port = htons(a.port);
        memcpy(&u.in.sin_addr, a.ip, 4);
        len = sizeof u.in;
    } else {
        u.in6.sin6_family = AF_INET6;
        u.in6.sin6_port = htons(a.port);
        memcpy(&u.in6.sin6_addr, a.ip, 16);
        len = sizeof u.in6;
    }
    int fd = socket(u.sa.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return err_sys(err, "listen %s", text);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    struct start_wait start_wait = {0};
    int bound;
    while ((bound = bind(fd, &u.sa, len)) < 0 && errno == EADDRINUSE &&
           start_wait_sleep(&start_wait)) {
    }
    if (bound < 0 || listen(fd, 1024) < 0) {
        bool taken = errno == EADDRINUSE;
        err_sys(err, "cannot listen on %s", text);
        if (taken)
            err_wrap(err, "the port is in use (another durward? see 'ss -ltnp')");
        close(fd);
        return -1;
    }
    return fd;
}
