/* Listening for the controller, which may not: ports of this host that lead into sandboxes. */
#include "parent.h"

#include "address.h"
#include "wire.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

static int listen_at(const char *ip, uint32_t port, struct address *at, struct err *err)
{
    unsigned char raw[16];
    int one = 1, family = strchr(ip, ':') ? AF_INET6 : AF_INET;
    if (port > 65535 || inet_pton(family, ip, raw) != 1)
        return err_set(err, ERR_PARSE, "no address");
    address_set(at, family, raw, (uint16_t)port);
    int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return err_sys(err, "socket");
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(fd, &at->sa, at->len) < 0 || listen(fd, 128) < 0 ||
        getsockname(fd, &at->sa, &at->len) < 0) {
        err_set(err, ERR_SYS, "%s", errno == EADDRINUSE ? "the port is in use" : strerror(errno));
        close(fd);
        return -1;
    }
    return fd;
}

int parent_port_open(struct child *controller, struct msg *m)
{
    struct msg answer;
    struct err err = {0};
    struct address at;
    char ip[64], text[ADDRESS_TEXT_MAX];
    uint32_t req, port;
    if (controller->role != ROLE_CONTROLLER || msg_get_u32(m, &req) < 0 ||
        msg_get_str(m, ip, sizeof ip) < 0 || msg_get_u32(m, &port) < 0 || msg_end(m) < 0)
        return -1;
    int fd = listen_at(ip, port, &at, &err);
    msg_init(&answer, W_PORT_OPENED);
    msg_put_u32(&answer, req);
    msg_put_u8(&answer, fd >= 0);
    msg_put_str(&answer, fd >= 0 ? address_text(&at.sa, text, sizeof text) : err.text);
    if (fd >= 0)
        msg_put_fd(&answer, fd);
    return ipc_send(controller->ch, &answer);
}
