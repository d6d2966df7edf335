/* Listens on the published ports, asks for a connection inside for each that comes, and carries
 * bytes between the two with libevent, in bounded buffers. */
#include "run_publish.h"

#include <arpa/inet.h>
#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/listener.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/stat.h>
#include <unistd.h>

#include "address.h"
#include "out.h"
#include "wire.h"

enum { PORTS_MAX = 16, FORWARDS_MAX = 256, BYTES_HIGH = 256 << 10, BYTES_LOW = 64 << 10 };

/* A connection: asked for inside, then joined. */
struct forward {
    LIST_ENTRY(forward) link;
    struct run_publish *publish;
    uint32_t number;
    struct bufferevent *outside, *inside;
    bool closing; /* one side ended: what waits for the other is still written */
};

struct port_listener {
    struct run_publish *publish;
    int fd; /* until it is listen's */
    unsigned port;
    char address[ADDRESS_TEXT_MAX];
    struct evconnlistener *listen;
};

struct run_publish {
    struct event_base *base;
    struct ipc *controller; /* NULL: gone */
    struct port_listener port_listener[PORTS_MAX];
    size_t n, n_forwards;
    uint32_t last;
    LIST_HEAD(, forward) forwards;
};

/* ---- listening ---- */

/* "80", "8080:80", "127.0.0.2:8080:80", "[::1]:8080:80" */
static int parse(const char *text, struct address *at, unsigned *inside)
{
    char host[64] = "127.0.0.1";
    unsigned char ip[16];
    uint64_t port, outer = 0;
    const char *last = strrchr(text, ':');
    if (slice_u64(slice_str(last ? last + 1 : text), 65535, &port) < 0 || port == 0 || last == text)
        return -1;
    struct slice rest = {text, last ? (size_t)(last - text) : 0};
    if (rest.n) {
        size_t colon = rest.n;
        while (colon > 0 && rest.p[colon - 1] != ':')
            colon--;
        if (slice_u64((struct slice){rest.p + colon, rest.n - colon}, 65535, &outer) < 0)
            return -1;
        rest.n = colon ? colon - 1 : 0;
        if (colon && (rest.n == 0 || rest.n >= sizeof host))
            return -1;
        bool six = rest.n > 2 && rest.p[0] == '[' && rest.p[rest.n - 1] == ']';
        if (colon)
            snprintf(host, sizeof host, "%.*s", (int)(six ? rest.n - 2 : rest.n),
                     (const char *)rest.p + six);
    }
    int family = strchr(host, ':') ? AF_INET6 : AF_INET;
    if (inet_pton(family, host, ip) != 1)
        return -1;
    address_set(at, family, ip, (uint16_t)outer);
    *inside = (unsigned)port;
    return 0;
}

static int open_port_listener(struct port_listener *d, const char *text, struct err *err)
{
    struct address at;
    int one = 1;
    if (parse(text, &at, &d->port) < 0)
        return err_set(err, ERR_PARSE, "--publish: %.80s is not [[ADDRESS:]PORT:]PORT", text);
    d->fd = socket(at.sa.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (d->fd < 0)
        return err_sys(err, "socket");
    setsockopt(d->fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(d->fd, &at.sa, at.len) < 0 || listen(d->fd, 128) < 0 ||
        getsockname(d->fd, &at.sa, &at.len) < 0)
        return err_sys(err, "--publish %.80s", text);
    address_text(&at.sa, d->address, sizeof d->address);
    return 0;
}

struct run_publish *run_publish_open(const struct strlist *list, struct err *err)
{
    struct run_publish *p = list->n ? calloc(1, sizeof *p) : NULL;
    if (list->n > PORTS_MAX)
        err_set(err, ERR_LIMIT, "--publish: at most %d", PORTS_MAX);
    else if (list->n && p == NULL)
        err_set(err, ERR_INTERNAL, "out of memory");
    if (p == NULL || err->code) {
        free(p);
        return NULL;
    }
    LIST_INIT(&p->forwards);
    for (size_t i = 0; i < list->n; i++) {
        struct port_listener *d = &p->port_listener[p->n++];
        d->publish = p;
        d->fd = -1;
        if (open_port_listener(d, list->v[i], err) < 0) {
            run_publish_free(p);
            return NULL;
        }
    }
    return p;
}

/* ---- connections ---- */

static void forward_end(struct forward *c)
{
    LIST_REMOVE(c, link);
    c->publish->n_forwards--;
    if (c->outside)
        bufferevent_free(c->outside);
    if (c->inside)
        bufferevent_free(c->inside);
    free(c);
}

static struct bufferevent *other(const struct forward *c, const struct bufferevent *bev)
{
    return bev == c->outside ? c->inside : c->outside;
}

static void on_bytes(struct bufferevent *bev, void *arg)
{
    struct evbuffer *to = bufferevent_get_output(other(arg, bev));
    evbuffer_add_buffer(to, bufferevent_get_input(bev));
    if (evbuffer_get_length(to) > BYTES_HIGH)
        bufferevent_disable(bev, EV_READ);
}

static void on_room(struct bufferevent *bev, void *arg)
{
    struct forward *c = arg;
    if (c->closing && evbuffer_get_length(bufferevent_get_output(bev)) == 0)
        forward_end(c);
    else if (!c->closing)
        bufferevent_enable(other(c, bev), EV_READ);
}

static void on_end(struct bufferevent *bev, short what, void *arg)
{
    struct forward *c = arg;
    struct bufferevent *to = other(c, bev);
    struct timeval limit = {10, 0};
    if (c->closing || (what & BEV_EVENT_TIMEOUT)) {
        forward_end(c);
        return;
    }
    evbuffer_add_buffer(bufferevent_get_output(to), bufferevent_get_input(bev));
    c->closing = true;
    bufferevent_disable(bev, EV_READ | EV_WRITE);
    bufferevent_disable(to, EV_READ);
    bufferevent_setwatermark(to, EV_WRITE, 0, 0);
    bufferevent_set_timeouts(to, NULL, &limit);
    bufferevent_trigger(to, EV_WRITE, BEV_TRIG_DEFER_CALLBACKS);
}

static void join(struct forward *c, struct bufferevent *bev)
{
    bufferevent_setcb(bev, on_bytes, on_room, on_end, c);
    bufferevent_setwatermark(bev, EV_WRITE, BYTES_LOW, 0);
    bufferevent_setwatermark(bev, EV_READ, 0, BYTES_HIGH);
    bufferevent_enable(bev, EV_READ | EV_WRITE);
}

static void on_accept(struct evconnlistener *l UNUSED, evutil_socket_t fd,
                      struct sockaddr *sa UNUSED, int n UNUSED, void *arg)
{
    struct port_listener *d = arg;
    struct run_publish *p = d->publish;
    struct msg m;
    struct forward *c = p->controller && p->n_forwards < FORWARDS_MAX ? calloc(1, sizeof *c) : NULL;
    if (c)
        c->outside = bufferevent_socket_new(p->base, fd, BEV_OPT_CLOSE_ON_FREE);
    if (c == NULL || c->outside == NULL) {
        close(fd);
        free(c);
        return;
    }
    c->publish = p;
    c->number = p->last = p->last % UINT32_MAX + 1; /* 0 is the command */
    LIST_INSERT_HEAD(&p->forwards, c, link);
    p->n_forwards++;
    msg_init(&m, W_RUN_CONNECT);
    msg_put_u32(&m, c->number);
    msg_put_u32(&m, d->port);
    if (ipc_send(p->controller, &m) < 0)
        forward_end(c);
}

/* What comes from inside is a socket and nothing else. */
static bool is_socket(int fd)
{
    struct stat st;
    return fstat(fd, &st) == 0 && S_ISSOCK(st.st_mode);
}

int run_publish_message(struct run_publish *p, struct msg *m)
{
    uint32_t number;
    uint8_t ok;
    int fd = -1;
    struct forward *c;
    if (msg_get_u32(m, &number) < 0 || msg_get_u8(m, &ok) < 0 || ok > 1 ||
        (ok && msg_get_fd(m, &fd) < 0) || msg_end(m) < 0) {
        if (fd >= 0)
            close(fd);
        return -1;
    }
    LIST_FOREACH(c, &p->forwards, link)
    if (c->number == number && c->inside == NULL)
        break;
    if (c && fd >= 0 && is_socket(fd) && evutil_make_socket_nonblocking(fd) == 0)
        c->inside = bufferevent_socket_new(p->base, fd, BEV_OPT_CLOSE_ON_FREE);
    if (fd >= 0 && (c == NULL || c->inside == NULL))
        close(fd);
    if (c && c->inside) {
        join(c, c->inside);
        join(c, c->outside);
    } else if (c) {
        forward_end(c); /* nothing listens there */
    }
    return 0;
}

/* ---- from beginning to end ---- */

int run_publish_begin(struct run_publish *p, struct event_base *base, struct ipc *controller)
{
    p->base = base;
    p->controller = controller;
    for (size_t i = 0; i < p->n; i++) {
        struct port_listener *d = &p->port_listener[i];
        struct msg m;
        msg_init(&m, W_RUN_PUBLISHED);
        msg_put_str(&m, d->address);
        msg_put_u32(&m, d->port);
        d->listen = evconnlistener_new(base, on_accept, d,
                                       LEV_OPT_CLOSE_ON_EXEC | LEV_OPT_CLOSE_ON_FREE, 0, d->fd);
        if (d->listen == NULL || ipc_send(controller, &m) < 0)
            return -1;
        d->fd = -1;
        fprintf(stderr, "durward: port %u is published at %s\n", d->port, d->address);
    }
    return 0;
}

void run_publish_stop(struct run_publish *p)
{
    p->controller = NULL;
}

void run_publish_free(struct run_publish *p)
{
    if (p == NULL)
        return;
    while (!LIST_EMPTY(&p->forwards))
        forward_end(LIST_FIRST(&p->forwards));
    for (size_t i = 0; i < p->n; i++) {
        if (p->port_listener[i].listen)
            evconnlistener_free(p->port_listener[i].listen);
        if (p->port_listener[i].fd >= 0)
            close(p->port_listener[i].fd);
    }
    free(p);
}
