/* Asks the controller for connections to MCP servers and gives each to who waits for it. */
#include "mcp_dial.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/queue.h>
#include <time.h>
#include <unistd.h>

#include "quota.h"
#include "wire.h"

enum { DIALS_MAX = 1024, DIALS_EACH = 128, LOST_S = 120 };

struct mcp_dial {
    struct mcp_dials *all;
    uint32_t req;
    mcp_dial_fn fn; /* NULL: cancelled; the controller still has it */
    void *arg;
    time_t begun;
    struct quota_part part;
    LIST_ENTRY(mcp_dial) link;
};

struct mcp_dials {
    struct ipc *parent;
    uint32_t last;
    struct quota quota; /* of what was asked for and not answered, by who pays */
    LIST_HEAD(, mcp_dial) list;
};

struct mcp_dials *mcp_dials_new(struct ipc *parent)
{
    struct mcp_dials *m = calloc(1, sizeof *m);
    if (m) {
        m->parent = parent;
        m->quota = (struct quota){.total = DIALS_MAX, .each = DIALS_EACH};
    }
    return m;
}

static void drop(struct mcp_dial *d)
{
    LIST_REMOVE(d, link);
    quota_leave(&d->part);
    free(d);
}

void mcp_dials_free(struct mcp_dials *m)
{
    struct mcp_dial *d;
    while (m && (d = LIST_FIRST(&m->list)) != NULL)
        drop(d);
    free(m);
}

static time_t seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec;
}

/* A controller that was started again answers nothing that the last one was asked. */
static void drop_lost(struct mcp_dials *all)
{
    struct mcp_dial *d, *next;
    for (d = LIST_FIRST(&all->list); d; d = next) {
        next = LIST_NEXT(d, link);
        if (d->fn == NULL && seconds() - d->begun > LOST_S)
            drop(d);
    }
}

struct mcp_dial *mcp_dial_new(struct mcp_dials *all, const char *payer, const char *sandbox,
                              const char *policy, const char *server, mcp_dial_fn fn, void *arg)
{
    struct mcp_dial *d = calloc(1, sizeof *d);
    struct msg m;
    if (d == NULL)
        return NULL;
    *d =
        (struct mcp_dial){.all = all, .req = ++all->last, .fn = fn, .arg = arg, .begun = seconds()};
    drop_lost(all);
    if (quota_take(&all->quota, &d->part, slice_str(payer), 1) != QUOTA_TAKEN) {
        free(d);
        return NULL;
    }
    msg_init(&m, W_MCP_DIAL);
    msg_put_u32(&m, d->req);
    msg_put_str(&m, sandbox);
    msg_put_str(&m, policy);
    msg_put_str(&m, server);
    if (ipc_send(all->parent, &m) < 0) {
        quota_leave(&d->part);
        free(d);
        return NULL;
    }
    LIST_INSERT_HEAD(&all->list, d, link);
    return d;
}

/* Nothing takes back what the controller was asked: it counts until that has answered. */
void mcp_dial_cancel(struct mcp_dial *d)
{
    if (d)
        d->fn = NULL;
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
    drop(d);
    if (fn)
        fn(arg, fd, text);
    else if (fd >= 0)
        close(fd);
    return 0;
}
