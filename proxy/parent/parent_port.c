/* Listening for the controller, which may not: ports of this host that lead into sandboxes. */
#include "parent.h"

#include "address.h"
#include "published.h"
#include "wire.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
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

/* ---- no rule leads to what is published ---- */

static struct port *find(struct parent *p, uint32_t number)
{
    for (size_t i = 0; i < p->n_ports; i++)
        if (p->ports[i].number == number)
            return &p->ports[i];
    return NULL;
}

void parent_tell_ports(struct parent *p)
{
    struct child *d = p->dialer;
    struct msg m;
    if (d == NULL || d->ch == NULL || (d->state != CHILD_INITED && d->state != CHILD_READY))
        return; /* it is told with its start */
    msg_init(&m, W_PORT_OWN);
    msg_put_u32(&m, (uint32_t)p->n_ports);
    for (size_t i = 0; i < p->n_ports; i++)
        msg_put_u32(&m, p->ports[i].number);
    parent_tell(d, &m);
}

static int port_add(struct parent *p, uint32_t number, struct err *err)
{
    struct port *one = find(p, number);
    if (one == NULL) {
        struct port *list =
            p->n_ports < PUBLISHED_MAX ? realloc(p->ports, (p->n_ports + 1) * sizeof *list) : NULL;
        if (list == NULL)
            return err_set(err, ERR_LIMIT, "too many ports are published");
        p->ports = list;
        one = &list[p->n_ports++];
        *one = (struct port){.number = (uint16_t)number};
        parent_tell_ports(p);
    }
    one = find(p, number);
    one->n++;
    return 0;
}

static void port_remove(struct parent *p, uint32_t number)
{
    struct port *one = find(p, number);
    if (one == NULL || --one->n > 0)
        return;
    *one = p->ports[--p->n_ports];
    parent_tell_ports(p);
}

int parent_port_own(struct child *controller, struct msg *m)
{
    struct err err = {0};
    uint32_t number;
    uint8_t on;
    if (msg_get_u32(m, &number) < 0 || msg_get_u8(m, &on) < 0 || msg_end(m) < 0 || on > 1 ||
        number == 0 || number > 65535)
        return -1;
    if (!on)
        port_remove(controller->parent, number);
    else if (port_add(controller->parent, number, &err) < 0)
        proc_log("%s: rules may lead to port %u", err.text, (unsigned)number);
    return 0;
}

/* What it listened on ended with it. */
void parent_ports_gone(struct parent *p)
{
    free(p->ports);
    p->ports = NULL;
    p->n_ports = 0;
    parent_tell_ports(p);
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
    struct parent *p = controller->parent;
    /* a port that is known is ours before it listens, one that the kernel chooses right after */
    bool ours = port != 0 && port <= UINT16_MAX && port_add(p, port, &err) == 0;
    int fd = ours || port == 0 || port > UINT16_MAX ? listen_at(ip, port, &at, &err) : -1;
    if (fd < 0 && ours) {
        port_remove(p, port);
    } else if (fd >= 0 && !ours && port_add(p, address_port(&at.sa), &err) < 0) {
        close(fd);
        fd = -1;
    }
    msg_init(&answer, W_PORT_OPENED);
    msg_put_u32(&answer, req);
    msg_put_u8(&answer, fd >= 0);
    msg_put_str(&answer, fd >= 0 ? address_text(&at.sa, text, sizeof text) : err.text);
    if (fd >= 0)
        msg_put_fd(&answer, fd);
    if (ipc_send(controller->ch, &answer) == 0)
        return 0;
    if (fd >= 0)
        port_remove(p, address_port(&at.sa));
    return -1;
}
