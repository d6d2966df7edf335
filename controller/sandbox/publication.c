/* Asks the parent to listen, takes connections, waits for the sandbox if it sleeps, and passes
 * bytes between each connection and its other half inside. */
#include "publication.h"

#include <arpa/inet.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/listener.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api_asked.h"
#include "execution.h"
#include "proc.h"
#include "registry.h"
#include "wire.h"

enum { UNPRIVILEGED = 1024 }; /* below, a port of this host is its administrator's to give */
enum { BYTES_HIGH = 256 << 10, BYTES_LOW = 64 << 10 }; /* waiting to be written */

struct publication {
    LIST_ENTRY(publication) link; /* of its managed sandbox */
    struct managed_sandbox *managed_sandbox;
    char address[PUBLICATION_ADDRESS]; /* as it was asked for, then where it is */
    unsigned port;                     /* inside */
    unsigned outside;                  /* 0: not open */
    uint32_t req;
    bool again;                    /* it was open before the controller's start */
    struct evconnlistener *listen; /* NULL until it is open */
    unsigned n;
    LIST_HEAD(, forward) forwards;
};

/* A connection: waiting for its sandbox, then for the one inside, then joined with it. */
struct forward {
    LIST_ENTRY(forward) link;
    struct publication *publication; /* NULL: it ended while somebody still has it in mind */
    struct bufferevent *outside, *inside;
    struct execution *execution; /* that connects */
    bool awaited;                /* managed_sandbox_await will call */
    bool closing;                /* one side ended: what waits for the other is still written */
};

/* ---- connections ---- */

static void forward_end(struct forward *p)
{
    if (p->execution)
        execution_abandon(p->execution);
    p->execution = NULL;
    if (p->outside)
        bufferevent_free(p->outside);
    if (p->inside)
        bufferevent_free(p->inside);
    p->outside = p->inside = NULL;
    if (p->publication) {
        LIST_REMOVE(p, link);
        p->publication->n--;
        if (p->publication->managed_sandbox->state == MANAGED_SANDBOX_RUNNING)
            managed_sandbox_used(p->publication->managed_sandbox);
        p->publication = NULL;
    }
    if (!p->awaited)
        free(p);
}

static struct bufferevent *other(const struct forward *p, const struct bufferevent *bev)
{
    return bev == p->outside ? p->inside : p->outside;
}

static void on_bytes(struct bufferevent *bev, void *arg)
{
    struct forward *p = arg;
    struct managed_sandbox *r = p->publication->managed_sandbox;
    struct evbuffer *to = bufferevent_get_output(other(p, bev));
    if (r->state == MANAGED_SANDBOX_RUNNING)
        managed_sandbox_used(r); /* an open connection that says nothing is no use */
    evbuffer_add_buffer(to, bufferevent_get_input(bev));
    if (evbuffer_get_length(to) > BYTES_HIGH)
        bufferevent_disable(bev, EV_READ);
}

static void on_room(struct bufferevent *bev, void *arg)
{
    struct forward *p = arg;
    if (p->closing && evbuffer_get_length(bufferevent_get_output(bev)) == 0)
        forward_end(p);
    else if (!p->closing)
        bufferevent_enable(other(p, bev), EV_READ);
}

/* The end of one side's words is the end of both, when what was said is written. */
static void on_end(struct bufferevent *bev, short what, void *arg)
{
    struct forward *p = arg;
    struct bufferevent *to = p->inside ? other(p, bev) : NULL;
    struct timeval limit = {10, 0};
    if (to == NULL || p->closing || (what & BEV_EVENT_TIMEOUT)) {
        forward_end(p);
        return;
    }
    evbuffer_add_buffer(bufferevent_get_output(to), bufferevent_get_input(bev));
    p->closing = true;
    bufferevent_disable(bev, EV_READ | EV_WRITE);
    bufferevent_disable(to, EV_READ);
    bufferevent_setwatermark(to, EV_WRITE, 0, 0);
    bufferevent_set_timeouts(to, NULL, &limit);
    bufferevent_trigger(to, EV_WRITE, BEV_TRIG_DEFER_CALLBACKS);
}

static void join(struct forward *p, struct bufferevent *bev)
{
    bufferevent_setcb(bev, on_bytes, on_room, on_end, p);
    bufferevent_setwatermark(bev, EV_WRITE, BYTES_LOW, 0);
    bufferevent_setwatermark(bev, EV_READ, 0, BYTES_HIGH);
    bufferevent_enable(bev, EV_READ | EV_WRITE);
}

static void on_connected(void *arg, struct execution *e, int fd)
{
    struct forward *p = arg;
    struct event_base *base = p->publication->managed_sandbox->controller->base;
    p->inside = bufferevent_socket_new(base, fd, BEV_OPT_CLOSE_ON_FREE);
    if (p->inside == NULL) {
        close(fd);
        return; /* on_not_connected ends it */
    }
    p->execution = NULL;
    execution_abandon(e); /* it has done its work */
    join(p, p->inside);
    join(p, p->outside);
}

static void on_not_connected(void *arg, struct execution *e UNUSED)
{
    struct forward *p = arg;
    p->execution = NULL;
    forward_end(p);
}

static void connect_inside(struct forward *p)
{
    static const struct execution_ops ops = {.started = on_connected, .ended = on_not_connected};
    struct publication *pub = p->publication;
    struct err err = {0};
    p->execution = execution_connect(pub->managed_sandbox, pub->port, &ops, p, &err);
    if (p->execution == NULL)
        forward_end(p);
}

static void on_awake(void *arg, struct managed_sandbox *r, const char *why UNUSED)
{
    struct forward *p = arg;
    p->awaited = false;
    if (r && p->publication)
        connect_inside(p);
    else
        forward_end(p);
}

static void begin(struct forward *p)
{
    struct managed_sandbox *r = p->publication->managed_sandbox;
    struct err err = {0};
    if (managed_sandbox_awake(r)) {
        connect_inside(p);
    } else if (r->auto_resume && managed_sandbox_wake(r, &err) == 0) {
        p->awaited = true;
        if (managed_sandbox_await(r, on_awake, p) < 0) {
            p->awaited = false;
            forward_end(p);
        }
    } else {
        forward_end(p);
    }
}

static void on_accept(struct evconnlistener *l UNUSED, evutil_socket_t fd,
                      struct sockaddr *sa UNUSED, int n UNUSED, void *arg)
{
    struct publication *pub = arg;
    struct forward *p = pub->n < FORWARDS_MAX ? calloc(1, sizeof *p) : NULL;
    if (p == NULL) {
        close(fd);
        return;
    }
    p->publication = pub;
    LIST_INSERT_HEAD(&pub->forwards, p, link);
    pub->n++;
    p->outside =
        bufferevent_socket_new(pub->managed_sandbox->controller->base, fd, BEV_OPT_CLOSE_ON_FREE);
    if (p->outside == NULL) {
        close(fd);
        forward_end(p);
        return;
    }
    begin(p);
}

/* ---- what is published ---- */

/* "127.0.0.1:80" or "[::1]:80"; the port may be 0. */
static int split(const char *text, char ip[PUBLICATION_ADDRESS], uint64_t *port)
{
    struct in6_addr at;
    const char *colon = strrchr(text, ':');
    if (colon == NULL || strlen(text) >= PUBLICATION_ADDRESS ||
        slice_u64(slice_str(colon + 1), 65535, port) < 0)
        return -1;
    size_t n = (size_t)(colon - text);
    bool six = n > 2 && text[0] == '[' && text[n - 1] == ']';
    snprintf(ip, PUBLICATION_ADDRESS, "%.*s", (int)(six ? n - 2 : n), text + six);
    return inet_pton(six ? AF_INET6 : AF_INET, ip, &at) == 1 ? 0 : -1;
}

int publications_read(json_t *list, enum publisher by, struct err *err)
{
    bool far = by == PUBLISHER_OWNER;
    size_t i;
    json_t *item;
    if (!json_is_array(list) || json_array_size(list) > PUBLICATIONS_MAX)
        return err_set(err, ERR_PARSE, "publish is a list of at most %d", PUBLICATIONS_MAX);
    json_array_foreach(list, i, item)
    {
        const char *address = "127.0.0.1:0";
        char ip[PUBLICATION_ADDRESS];
        int64_t port = 0;
        uint64_t outside;
        if (!json_is_object(item) || asked_keys(item, "address port", err) < 0 ||
            asked_integer(item, "port", 1, 65535, &port, err) < 0 ||
            asked_text(item, "address", PUBLICATION_ADDRESS - 1, &address, err) < 0 || port == 0)
            return err->code ? -1 : err_set(err, ERR_PARSE, "publish: each has a port");
        if (split(address, ip, &outside) < 0)
            return err_set(err, ERR_PARSE, "publish: '%.63s' is not ADDRESS:PORT", address);
        /* a published port is closed to rules at all addresses: no token closes a service's */
        if (!far && strcmp(ip, "127.0.0.1") != 0 && strcmp(ip, "::1") != 0)
            return err_set(err, ERR_PARSE, "publish: a token is good for 127.0.0.1 and ::1 only");
        if (!far && outside > 0 && outside < UNPRIVILEGED)
            return err_set(err, ERR_PARSE, "publish: a token is good for ports from %d on",
                           UNPRIVILEGED);
        if (by == PUBLISHER_NARROW && outside > 0)
            return err_set(err, ERR_PARSE,
                           "publish: a token for some sandboxes gets a free port: say %s:0", ip);
        if (json_object_set_new(item, "address", json_string(address)) < 0)
            return err_set(err, ERR_INTERNAL, "out of memory");
    }
    return 0;
}

static void publication_free(struct publication *p)
{
    LIST_REMOVE(p, link);
    while (!LIST_EMPTY(&p->forwards))
        forward_end(LIST_FIRST(&p->forwards));
    if (p->listen)
        evconnlistener_free(p->listen);
    if (p->outside)
        sandbox_port_own(&p->managed_sandbox->controller->owner, p->outside, false);
    free(p);
}

static int ask(struct managed_sandbox *r, const char *address, unsigned port, bool again,
               struct err *err)
{
    struct controller *c = r->controller;
    struct publication *p = calloc(1, sizeof *p);
    char ip[PUBLICATION_ADDRESS];
    uint64_t outside;
    struct msg m;
    if (p == NULL || split(address, ip, &outside) < 0) {
        free(p);
        return err_set(err, ERR_INTERNAL, "out of memory");
    }
    p->managed_sandbox = r;
    p->port = port;
    p->again = again;
    p->req = ++c->last_publication;
    snprintf(p->address, sizeof p->address, "%s", address);
    LIST_INIT(&p->forwards);
    LIST_INSERT_HEAD(&r->publications, p, link);
    msg_init(&m, W_PORT_OPEN);
    msg_put_u32(&m, p->req);
    msg_put_str(&m, ip);
    msg_put_u32(&m, (uint32_t)outside);
    return ipc_send(c->owner.parent, &m) < 0 ? err_set(err, ERR_UNREADY, "the parent is gone") : 0;
}

int publications_open(struct managed_sandbox *r, const json_t *list, struct err *err)
{
    size_t i;
    json_t *item;
    json_array_foreach(list, i,
                       item) if (ask(r, json_string_value(json_object_get(item, "address")),
                                     (unsigned)json_integer_value(json_object_get(item, "port")),
                                     false, err) < 0) return -1;
    return 0;
}

static void ask_again(void *arg, const char *address, unsigned port)
{
    struct err err = {0};
    struct managed_sandbox *r = arg;
    if (ask(r, address, port, true, &err) < 0)
        proc_log("%s: %s is not published again: %s", r->id, address, err.text);
}

void publications_again(struct managed_sandbox *r)
{
    struct err err = {0};
    if (registry_port_each(r->controller->registry, r->id, ask_again, r, &err) < 0)
        proc_log("%s: %s", r->id, err.text);
}

static unsigned port_of(const char *address)
{
    uint64_t port = 0;
    char ip[PUBLICATION_ADDRESS];
    return split(address, ip, &port) == 0 ? (unsigned)port : 0;
}

static void opened(struct publication *p, int fd, const char *address)
{
    struct managed_sandbox *r = p->managed_sandbox;
    struct err err = {0};
    char text[PUBLICATION_ADDRESS + 16];
    snprintf(p->address, sizeof p->address, "%.63s", address);
    p->outside = port_of(p->address);
    p->listen = evconnlistener_new(r->controller->base, on_accept, p,
                                   LEV_OPT_CLOSE_ON_EXEC | LEV_OPT_CLOSE_ON_FREE, 0, fd);
    if (p->listen == NULL)
        close(fd);
    if (p->again)
        return;
    if (registry_port_add(r->controller->registry, r->id, address, p->port, &err) < 0)
        proc_log("%s: %s", r->id, err.text);
    snprintf(text, sizeof text, "%s to %u", p->address, p->port);
    controller_note(r->controller, r->id, "port_published", text);
}

static void not_opened(struct publication *p, const char *why)
{
    struct managed_sandbox *r = p->managed_sandbox;
    char text[300];
    snprintf(text, sizeof text, "cannot publish at %s: %.200s", p->address, why);
    if (p->again)
        proc_log("%s: %s", r->id, text);
    bool fresh = !p->again;
    publication_free(p);
    if (fresh)
        (void)managed_sandbox_delete(r, text, NULL, NULL);
}

static bool all_answered(const struct managed_sandbox *r)
{
    const struct publication *p;
    LIST_FOREACH(p, &r->publications, link)
    if (p->listen == NULL && p->outside == 0)
        return false;
    return true;
}

int publications_await(struct managed_sandbox *r, managed_sandbox_fn fn, void *arg)
{
    if (!all_answered(r))
        return managed_sandbox_wait_in(&r->published, fn, arg);
    fn(arg, r, "");
    return 0;
}

int publications_message(struct controller *c, struct msg *m)
{
    uint32_t req;
    uint8_t ok;
    int fd = -1;
    char text[256];
    struct managed_sandbox *r;
    if (msg_get_u32(m, &req) < 0 || msg_get_u8(m, &ok) < 0 || ok > 1 ||
        msg_get_str(m, text, sizeof text) < 0 || (ok && msg_get_fd(m, &fd) < 0) || msg_end(m) < 0) {
        if (fd >= 0)
            close(fd);
        return -1;
    }
    TAILQ_FOREACH(r, &c->managed_sandboxes, link)
    {
        struct publication *p;
        LIST_FOREACH(p, &r->publications, link)
        if (p->req == req && p->listen == NULL) {
            if (ok)
                opened(p, fd, text);
            else
                not_opened(p, text);
            if (ok && all_answered(r))
                managed_sandbox_tell(&r->published, r, "");
            return 0;
        }
    }
    if (fd >= 0) { /* its sandbox is gone meanwhile */
        close(fd);
        sandbox_port_own(&c->owner, port_of(text), false);
    }
    return 0;
}

void publications_close(struct managed_sandbox *r)
{
    while (!LIST_EMPTY(&r->publications))
        publication_free(LIST_FIRST(&r->publications));
}

const char *publications_at(const struct managed_sandbox *r, unsigned port)
{
    const struct publication *p;
    LIST_FOREACH(p, &r->publications, link)
    if (p->listen && p->port == port)
        return p->address;
    return NULL;
}

json_t *publications_json(const struct managed_sandbox *r)
{
    const struct publication *p;
    json_t *list = json_array();
    LIST_FOREACH(p, &r->publications, link)
    if (p->listen)
        json_array_insert_new(
            list, 0, json_pack("{s:s, s:I}", "address", p->address, "port", (json_int_t)p->port));
    return list;
}
