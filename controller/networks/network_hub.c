/* Both ends: what the keeper asks, and the process that answers. A namespace that was left cannot
 * be entered again by who has no rights over the sandbox's; so there are two processes. */
#define _GNU_SOURCE 1
#include "network_hub.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "bridge_request.h"
#include "network_message.h"
#include "pod_request.h"
#include "rtnl.h"

enum { CHANNEL = 3, MTU = 1500, BACKLOG = 128 };

enum what { BEGIN, SOCKET, ATTACH, DETACH };

/* Both ends are one program: a message is a struct as it lies in memory. */
struct ask {
    enum what what;
    enum network_socket kind;
    uint16_t port;
    struct network_part part;
};

struct answer {
    int number; /* errno's; 0: it is done */
    char text[256];
};

/* ---- in the network's namespace ---- */

static int own = -1, bridge; /* that namespace, and the bridge's index */

static void pair_name(const unsigned char ip[4], char to[IFNAMSIZ])
{
    snprintf(to, IFNAMSIZ, "v%02x%02x%02x%02x", ip[0], ip[1], ip[2], ip[3]);
}

static int index_of(const char *name, struct err *err)
{
    int index = (int)if_nametoindex(name);
    return index > 0 ? index : err_sys(err, "interface %s", name);
}

static int begin(const struct network_part *p, struct err *err)
{
    unsigned char mac[NETWORK_MAC] = {0x02, 0x43}; /* 02:42 begins those of containers */
    memcpy(mac + 2, p->gateway, 4);
    if (unshare(CLONE_NEWNET) < 0)
        return err_sys(err, "cannot make a network namespace");
    own = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    if (own < 0)
        return err_sys(err, "/proc/self/ns/net");
    if (rtnl_loopback_up(err) < 0 || bridge_request_make(p->bridge, mac, err) < 0 ||
        (bridge = index_of(p->bridge, err)) < 0 || pod_request_no_ipv6(bridge, err) < 0 ||
        bridge_request_no_forward(bridge, err) < 0 ||
        (network_part_has_gateway(p) &&
         pod_request_address(bridge, p->gateway, p->bits, false, err) < 0) ||
        pod_request_flags(bridge, true, err) < 0)
        return -1;
    return p->internal ? 0 : bridge_request_rest_local(err);
}

static int inside_container(const struct network_part *p, struct err *err)
{
    int index;
    if (rtnl_loopback_up(err) < 0 || (index = index_of(p->interface, err)) < 0 ||
        pod_request_no_ipv6(index, err) < 0 ||
        pod_request_address(index, p->ip, p->bits, false, err) < 0 ||
        pod_request_flags(index, true, err) < 0)
        return -1;
    return p->internal || !network_part_has_gateway(p)
               ? 0
               : bridge_request_way_out(index, p->gateway, err);
}

static void detach(const struct network_part *p)
{
    char name[IFNAMSIZ];
    pair_name(p->ip, name);
    int index = (int)if_nametoindex(name);
    if (index > 0)
        (void)pod_request_delete(index, NULL);
}

static int attach(const struct network_part *p, int netns, struct err *err)
{
    char name[IFNAMSIZ];
    int index;
    pair_name(p->ip, name);
    detach(p); /* whose address this was has gone unseen */
    if (pod_request_pair(name, p->interface, p->mac, MTU, netns, err) < 0)
        return -1;
    int r = (index = index_of(name, err)) < 0 || pod_request_no_ipv6(index, err) < 0 ||
                    bridge_request_no_forward(index, err) < 0 ||
                    bridge_request_join(index, bridge, err) < 0 ||
                    pod_request_flags(index, true, err) < 0
                ? -1
                : 0;
    if (r == 0)
        r = setns(netns, CLONE_NEWNET) < 0 ? err_sys(err, "cannot enter the container's network")
                                           : inside_container(p, err);
    if (setns(own, CLONE_NEWNET) < 0)
        _exit(1);
    if (r < 0)
        detach(p);
    return r;
}

static bool set_on(int fd, int name)
{
    int on = 1;
    return setsockopt(fd, IPPROTO_IP, name, &on, sizeof on) == 0;
}

static int open_socket(const struct ask *a)
{
    bool stream = a->kind == NETWORK_SOCKET_LISTENER || a->kind == NETWORK_SOCKET_STREAM;
    bool bound = a->kind == NETWORK_SOCKET_LISTENER || a->kind == NETWORK_SOCKET_DNS;
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(a->port)};
    int on = 1;
    int fd = socket(AF_INET, (stream ? SOCK_STREAM : SOCK_DGRAM) | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    bool ok = fd >= 0;
    /* answers come from whatever address was asked */
    if (ok && bound)
        ok = set_on(fd, IP_TRANSPARENT) && (stream || set_on(fd, IP_PKTINFO)) &&
             setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0 &&
             bind(fd, (struct sockaddr *)&to, sizeof to) == 0 &&
             (!stream || listen(fd, BACKLOG) == 0);
    if (fd >= 0 && !ok) {
        int saved = errno;
        close(fd);
        errno = saved;
    }
    return ok ? fd : -1;
}

static int serve_one(const struct ask *a, int given, struct err *err)
{
    switch (a->what) {
    case BEGIN:
        return begin(&a->part, err);
    case SOCKET:
        return open_socket(a);
    case ATTACH:
        return attach(&a->part, given, err);
    case DETACH:
        detach(&a->part);
    }
    return 0;
}

static NORETURN void serve(void)
{
    static struct ask a;
    int given;
    (void)prctl(PR_SET_NAME, "durward-net");
    while (network_message_receive(CHANNEL, &a, sizeof a, &given) == sizeof a) {
        struct err err = {0};
        struct answer answer = {0};
        int r = serve_one(&a, given, &err);
        if (r < 0) {
            answer.number = errno ? errno : EINVAL;
            snprintf(answer.text, sizeof answer.text, "%.255s", err.text);
        }
        bool made = a.what == SOCKET && r >= 0;
        if (network_message_send(CHANNEL, &answer, sizeof answer, made ? r : -1) < 0)
            break;
        if (made)
            close(r);
        if (given >= 0)
            close(given);
    }
    _exit(0);
}

/* ---- the keeper's end ---- */

/* The descriptor that came, or 0; -1 with err, whose errno is the far end's. */
static int ask(struct network_hub *hub, const struct ask *a, int given, struct err *err)
{
    struct answer answer;
    int fd;
    if (network_message_send(hub->fd, a, sizeof *a, given) < 0 ||
        network_message_receive(hub->fd, &answer, sizeof answer, &fd) != sizeof answer) {
        network_hub_end(hub);
        errno = EPIPE;
        return err_set(err, ERR_UNREADY, "the network's process is gone");
    }
    answer.text[sizeof answer.text - 1] = '\0';
    errno = answer.number;
    if (answer.number)
        return err_set(err, ERR_SYS, "%s", answer.text);
    return fd >= 0 ? fd : 0;
}

static int ask_part(struct network_hub *hub, enum what what, const struct network_part *part,
                    int given, struct err *err)
{
    struct ask a = {.what = what, .part = *part};
    return ask(hub, &a, given, err);
}

int network_hub_begin(struct network_hub *hub, const struct network_part *part, struct err *err)
{
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return err_sys(err, "socketpair");
    pid_t pid = fork();
    if (pid == 0) {
        if (pair[1] != CHANNEL && dup2(pair[1], CHANNEL) < 0)
            _exit(1);
        if (syscall(SYS_close_range, CHANNEL + 1, ~0U, 0) < 0)
            _exit(1);
        serve();
    }
    close(pair[1]);
    hub->fd = pair[0];
    int r = pid < 0 ? err_sys(err, "fork") : ask_part(hub, BEGIN, part, -1, err);
    if (r < 0)
        network_hub_end(hub);
    return r;
}

void network_hub_end(struct network_hub *hub)
{
    if (hub->fd >= 0)
        close(hub->fd);
    hub->fd = -1;
}

int network_hub_socket(struct network_hub *hub, enum network_socket kind, uint16_t port)
{
    struct ask a = {.what = SOCKET, .kind = kind, .port = port};
    int fd = ask(hub, &a, -1, NULL);
    return fd > 0 ? fd : -1;
}

int network_hub_attach(struct network_hub *hub, const struct network_part *part, int netns,
                       struct err *err)
{
    return ask_part(hub, ATTACH, part, netns, err) < 0 ? -1 : 0;
}

void network_hub_detach(struct network_hub *hub, const struct network_part *part)
{
    (void)ask_part(hub, DETACH, part, -1, NULL);
}
