/* Asks the controller for connections to MCP servers and gives each to who waits for it. */
#include "mcp_dial.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/queue.h>
#include <unistd.h>

#include "wire.h"

struct mcp_dial {
    struct mcp_dials *all;
    uint32_t req;
    mcp_dial_fn fn;
    void *arg;
    LIST_ENTRY(mcp_dial) link;
};

struct mcp_dials {
    struct ipc *parent;
    uint32_t last;
    LIST_HEAD(, mcp_dial) list;
};

struct mcp_dials *mcp_dials_new(struct ipc *parent)
{
    struct mcp_dials *m = calloc(1, sizeof *m);
    if (m)
        m->parent = parent;
    return m;
}

void mcp_dials_free(struct mcp_dials *m)
{
    free(m);
}

struct mcp_dial *mcp_dial_new(struct mcp_dials *all, const char *sandbox, const char *policy,
                              const char *server, mcp_dial_fn fn, void *arg)
{
    struct mcp_dial *d = calloc(1, sizeof *d);
    struct msg m;
    if (d == NULL)
        return NULL;
    *d = (struct mcp_dial){.all = all, .req = ++all->last, .fn = fn, .arg = arg};
    msg_init(&m, W_MCP_DIAL);
    msg_put_u32(&m, d->req);
    msg_put_str(&m, sandbox);
    msg_put_str(&m, policy);
    msg_put_str(&m, server);
    if (ipc_send(all->parent, &m) < 0) {
        free(d);
        return NULL;
    }
    LIST_INSERT_HEAD(&all->list, d, link);
    return d;
}

void mcp_dial_cancel(struct mcp_dial *d)
{
    if (d == NULL)
        return;
    LIST_REMOVE(d, link);
    free(d);
}

int mcp_dials_message(struct mcp_dials *all, struct msg *m)
{
    struct mcp_dial *d;
    uint32_t req;
    uint8_t ok;
    int fd = -1;
    char text[257];
    if (msg_get_u32(m, &req) < 0 || msg_get_u8(m, &ok) < 0 || ok > 1 ||
        msg_get_str(m, text, sizeof text) < 0 || (ok && msg_get_fd(m, &fd) < 0))
        return -1;
    bool whole = msg_end(m) == 0;
    LIST_FOREACH(d, &all->list, link)
    if (d->req == req)
        break;
    if (!whole || d == NULL) { /* whoever asked has left */
        if (fd >= 0)
            close(fd);
        return whole ? 0 : -1;
    }
    mcp_dial_fn fn = d->fn;
    void *arg = d->arg;
    mcp_dial_cancel(d);
    fn(arg, fd, text);
    return 0;
}
