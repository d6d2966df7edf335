/* Connections into a sandbox for its own gate's previews: asked for as of the dialer, made by a
 * child of durward-init. A gate that was taken over reaches services of its own sandbox by it and
 * nothing else. */
#include "execution.h"
#include "previews_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "wire.h"

/* A sandbox's gate. */
struct preview_inside {
    struct previews *previews;
    char sandbox[SANDBOX_ID_MAX + 1];
    struct ipc *ch;
    unsigned n_dials;
    LIST_HEAD(, preview_dial) dials;
    LIST_ENTRY(preview_inside) link;
};

struct preview_dial {
    struct preview_inside *inside; /* NULL: cancelled, and managed_sandbox_await will still call */
    uint32_t req;
    unsigned port;
    bool awaited;
    struct execution *execution;
    LIST_ENTRY(preview_dial) link;
};

static void dial_free(struct preview_dial *d)
{
    if (d->execution)
        execution_abandon(d->execution);
    d->execution = NULL;
    if (d->inside) {
        LIST_REMOVE(d, link);
        d->inside->n_dials--;
        d->inside = NULL;
    }
    if (!d->awaited)
        free(d);
}

static void fail(struct preview_inside *i, uint32_t req, const char *code, const char *text)
{
    struct msg m;
    msg_init(&m, W_DIAL_FAIL);
    msg_put_u32(&m, req);
    msg_put_str(&m, code);
    msg_put_str(&m, text);
    ipc_send(i->ch, &m);
}

static void fail_dial(struct preview_dial *d, const char *text)
{
    fail(d->inside, d->req, "connect", text);
    dial_free(d);
}

static void on_connected(void *arg, struct execution *e UNUSED, int fd)
{
    struct preview_dial *d = arg;
    char text[32];
    struct msg m;
    snprintf(text, sizeof text, "inside:%u", d->port);
    msg_init(&m, W_DIALED);
    msg_put_u32(&m, d->req);
    msg_put_str(&m, text);
    msg_put_fd(&m, fd);
    ipc_send(d->inside->ch, &m);
    dial_free(d);
}

static void on_not_connected(void *arg, struct execution *e UNUSED)
{
    struct preview_dial *d = arg;
    d->execution = NULL;
    fail_dial(d, "nothing in the sandbox listens on that port");
}

static void connect_inside(struct preview_dial *d, struct managed_sandbox *r)
{
    static const struct execution_ops ops = {.started = on_connected, .ended = on_not_connected};
    struct err err = {0};
    d->execution = execution_connect(r, d->port, &ops, d, &err);
    if (d->execution == NULL)
        fail_dial(d, err.text);
}

static void on_awake(void *arg, struct managed_sandbox *r, const char *why)
{
    struct preview_dial *d = arg;
    d->awaited = false;
    if (d->inside == NULL)
        free(d);
    else if (r)
        connect_inside(d, r);
    else
        fail_dial(d, why);
}

static void begin(struct preview_dial *d, struct managed_sandbox *r)
{
    struct err err = {0};
    if (managed_sandbox_awake(r)) {
        connect_inside(d, r);
        return;
    }
    d->awaited = r->auto_resume && managed_sandbox_wake(r, &err) == 0;
    if (d->awaited && managed_sandbox_await(r, on_awake, d) == 0)
        return;
    d->awaited = false;
    fail_dial(d, "the sandbox does not run");
}

static struct preview_dial *find(struct preview_inside *i, uint32_t req)
{
    struct preview_dial *d;
    LIST_FOREACH(d, &i->dials, link)
    if (d->req == req)
        return d;
    return NULL;
}

/* The host says which service: of this very sandbox, whatever its gate says. */
static int on_dial(struct preview_inside *i, struct msg *m)
{
    uint32_t req, number;
    uint8_t scheme;
    char host[HOST_TEXT_MAX], skip[512], service[WIRE_SERVICE_MAX + 1];
    unsigned port = 0;
    if (msg_get_u32(m, &req) < 0 || msg_get_u8(m, &scheme) < 0 ||
        msg_get_str(m, host, sizeof host) < 0 || msg_get_u32(m, &number) < 0 ||
        msg_get_str(m, skip, sizeof skip) < 0 || msg_get_str(m, skip, sizeof skip) < 0 ||
        msg_get_str(m, skip, sizeof skip) < 0 || msg_end(m) < 0 || find(i, req))
        return -1;
    struct managed_sandbox *r = previews_named(i->previews->controller, host, service, &port);
    if (r == NULL || strcmp(r->id, i->sandbox) != 0) {
        fail(i, req, "denied", "it is not a preview of this sandbox");
        return 0;
    }
    struct preview_dial *d = i->n_dials < PREVIEW_DIALS_MAX ? calloc(1, sizeof *d) : NULL;
    if (d == NULL) {
        fail(i, req, "overload", "too many connections are being made");
        return 0;
    }
    *d = (struct preview_dial){.inside = i, .req = req, .port = port};
    LIST_INSERT_HEAD(&i->dials, d, link);
    i->n_dials++;
    begin(d, r);
    return 0;
}

static int on_message(struct ipc *ch UNUSED, struct msg *m, void *arg)
{
    struct preview_inside *i = arg;
    uint32_t req;
    if (m->type == W_DIAL)
        return on_dial(i, m);
    if (m->type == W_TRACING)
        return 0; /* steps in here are not told */
    if (m->type != W_DIAL_CANCEL || msg_get_u32(m, &req) < 0 || msg_end(m) < 0)
        return -1;
    struct preview_dial *d = find(i, req);
    if (d) /* else it has ended meanwhile */
        dial_free(d);
    return 0;
}

static void inside_free(struct preview_inside *i)
{
    while (!LIST_EMPTY(&i->dials))
        dial_free(LIST_FIRST(&i->dials));
    LIST_REMOVE(i, link);
    ipc_free(i->ch);
    free(i);
}

static void on_closed(struct ipc *ch UNUSED, const char *why UNUSED, void *arg)
{
    inside_free(arg);
}

void previews_inside(struct previews *p, const char *sandbox, int fd)
{
    struct preview_inside *i, *next;
    for (i = LIST_FIRST(&p->insides); i; i = next) { /* of a gate that died */
        next = LIST_NEXT(i, link);
        if (strcmp(i->sandbox, sandbox) == 0)
            inside_free(i);
    }
    i = calloc(1, sizeof *i);
    if (i == NULL) {
        close(fd);
        return;
    }
    i->previews = p;
    snprintf(i->sandbox, sizeof i->sandbox, "%s", sandbox);
    LIST_INSERT_HEAD(&p->insides, i, link);
    i->ch = ipc_new(p->controller->base, fd, on_message, on_closed, i);
    if (i->ch == NULL) {
        LIST_REMOVE(i, link);
        free(i);
    }
}

void previews_inside_free(struct previews *p)
{
    while (!LIST_EMPTY(&p->insides))
        inside_free(LIST_FIRST(&p->insides));
}
