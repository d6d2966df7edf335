/* Looks at the services of a sandbox, all at once: each has a connection made inside, and for HTTP
 * a request on it. What comes back is an adversary's: a few bytes of it are read, and no more. */
#include "services.h"

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "execution.h"
#include "previews.h"
#include "publication.h"

enum { LINE_MAX_BYTES = 512, DETAIL_MAX = 96 };

struct look;

struct looked {
    struct look *look;
    struct config_service service; /* as it was when it was asked */
    struct execution *execution;   /* that connects */
    struct bufferevent *bev;
    const char *state; /* constant; NULL: not known yet */
    char detail[DETAIL_MAX];
};

struct look {
    char sandbox[SANDBOX_ID_MAX + 1];
    struct controller *controller;
    services_fn fn;
    void *arg;
    struct event *limit; /* also its first turn, where there is nothing to wait for */
    unsigned n;
    struct looked list[CONFIG_SERVICES_MAX];
};

static void let_go(struct looked *l)
{
    if (l->execution)
        execution_abandon(l->execution);
    l->execution = NULL;
    if (l->bev)
        bufferevent_free(l->bev);
    l->bev = NULL;
}

static json_t *service_json(const struct looked *l, struct managed_sandbox *r)
{
    char url[PREVIEW_URL_MAX];
    bool seen = r && previews_url(l->look->controller, r, l->service.name, url);
    const char *at = r ? publications_at(r, l->service.port) : NULL;
    return json_pack("{s:s, s:I, s:s, s:s, s:s, s:s?, s:s?}", "name", l->service.name, "port",
                     (json_int_t)l->service.port, "health",
                     l->service.health[0] ? l->service.health : "tcp", "state", l->state, "detail",
                     l->detail, "published", at, "preview", seen ? url : NULL);
}

static void finish(struct look *k)
{
    json_t *list = json_array();
    struct managed_sandbox *r = managed_sandbox_find(k->controller, k->sandbox);
    for (unsigned i = 0; i < k->n; i++) {
        let_go(&k->list[i]);
        json_array_append_new(list, service_json(&k->list[i], r));
    }
    k->controller->n_looks--;
    services_fn fn = k->fn;
    void *arg = k->arg;
    event_free(k->limit);
    free(k);
    fn(arg, list);
}

/* From the loop, since who settles the last one is in the midst of it. */
static void finish_soon(struct look *k)
{
    static const struct timeval now = {0, 0};
    for (unsigned i = 0; i < k->n; i++)
        if (k->list[i].state == NULL)
            return;
    event_add(k->limit, &now);
}

static void settle(struct looked *l, const char *state, const char *detail)
{
    if (l->state == NULL) {
        l->state = state;
        snprintf(l->detail, sizeof l->detail, "%s", detail);
    }
    finish_soon(l->look);
}

static void on_limit(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
    struct look *k = arg;
    for (unsigned i = 0; i < k->n; i++)
        if (k->list[i].state == NULL)
            settle(&k->list[i], "unhealthy", "no answer in time");
    finish(k);
}

/* "HTTP/1.1 200 ..." */
static void judge(struct looked *l, const char *line)
{
    unsigned status = 0;
    char detail[DETAIL_MAX];
    if (strncmp(line, "HTTP/1.", 7) == 0 && line[7] != 0 && line[8] == ' ')
        for (int i = 9; i < 12 && line[i] >= '0' && line[i] <= '9'; i++)
            status = status * 10 + (unsigned)(line[i] - '0');
    snprintf(detail, sizeof detail, status >= 100 ? "status %u" : "it does not speak HTTP", status);
    settle(l, status >= 200 && status < 400 ? "healthy" : "unhealthy", detail);
}

static void on_line(struct bufferevent *bev, void *arg)
{
    struct looked *l = arg;
    char line[LINE_MAX_BYTES + 1] = "";
    struct evbuffer *in = bufferevent_get_input(bev);
    ev_ssize_t n = evbuffer_copyout(in, line, LINE_MAX_BYTES);
    if (n <= 0 || (memchr(line, '\n', (size_t)n) == NULL && n < LINE_MAX_BYTES))
        return;
    bufferevent_disable(bev, EV_READ);
    judge(l, line);
}

static void on_end(struct bufferevent *bev UNUSED, short what UNUSED, void *arg)
{
    settle(arg, "unhealthy", "it closed the connection without an answer");
}

static void on_connected(void *arg, struct execution *e, int fd)
{
    struct looked *l = arg;
    l->execution = NULL;
    execution_abandon(e); /* it has done its work */
    if (l->service.health[0] == 0) {
        close(fd);
        settle(l, "healthy", "it listens");
        return;
    }
    l->bev = bufferevent_socket_new(l->look->controller->base, fd, BEV_OPT_CLOSE_ON_FREE);
    if (l->bev == NULL) {
        close(fd);
        settle(l, "unhealthy", "out of memory");
        return;
    }
    bufferevent_setcb(l->bev, on_line, NULL, on_end, l);
    bufferevent_setwatermark(l->bev, EV_READ, 0, LINE_MAX_BYTES);
    evbuffer_add_printf(bufferevent_get_output(l->bev),
                        "GET %s HTTP/1.1\r\nhost: localhost:%u\r\nuser-agent: durward-health\r\n"
                        "accept: */*\r\nconnection: close\r\n\r\n",
                        l->service.health, l->service.port);
    bufferevent_enable(l->bev, EV_READ | EV_WRITE);
}

static void on_not_connected(void *arg, struct execution *e UNUSED)
{
    struct looked *l = arg;
    l->execution = NULL;
    settle(l, "closed", "nothing listens on its port");
}

static void begin(struct looked *l, struct managed_sandbox *r)
{
    static const struct execution_ops ops = {.started = on_connected, .ended = on_not_connected};
    struct err err = {0};
    if (!managed_sandbox_awake(r)) {
        settle(l, "asleep", managed_sandbox_state_name(r->state));
        return;
    }
    l->execution = execution_connect(r, l->service.port, &ops, l, &err);
    if (l->execution == NULL)
        settle(l, "unhealthy", err.text);
}

int services_look(struct managed_sandbox *r, services_fn fn, void *arg, struct err *err)
{
    struct controller *c = r->controller;
    const struct config_sandbox *s = config_policy_sandbox(c->config, r->policy);
    struct timeval limit = {s->n_services ? SERVICE_LOOK_SECONDS : 0, 0};
    if (c->n_looks >= SERVICE_LOOKS_MAX)
        return err_set(err, ERR_UNREADY, "too many services are being looked at; try again");
    struct look *k = calloc(1, sizeof *k);
    if (k == NULL || (k->limit = evtimer_new(c->base, on_limit, k)) == NULL) {
        free(k);
        return err_set(err, ERR_INTERNAL, "out of memory");
    }
    snprintf(k->sandbox, sizeof k->sandbox, "%s", r->id);
    k->controller = c;
    k->fn = fn;
    k->arg = arg;
    k->n = s->n_services;
    c->n_looks++;
    event_add(k->limit, &limit);
    for (unsigned i = 0; i < k->n; i++) {
        k->list[i].look = k;
        k->list[i].service = s->services[i];
    }
    for (unsigned i = 0; i < k->n; i++)
        begin(&k->list[i], r);
    return 0;
}
