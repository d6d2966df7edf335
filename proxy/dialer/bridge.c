/* Joins a connection with one end of a socket pair and carries bytes between them as each side has
 * room; whoever asked for the dial gets the other end. How many a
 * wire has, and whoever it asks for, is bounded. */
#include "bridge.h"

#include "quota.h"

#include <stdlib.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <unistd.h>

struct bridge;

/* One direction begins at each bank. */
struct bank {
    struct bridge *bridge;
    struct bank *other;
    struct io *io;
    bool ended; /* said that nothing more comes from it */
    bool told;  /* and the other side was told */
};

struct bridge {
    struct bridges *all; /* NULL: gone before it */
    struct quota_part of_wire, part;
    struct bank near, far;
    unsigned open; /* of them */
    LIST_ENTRY(bridge) link;
};

struct bridges {
    struct event_base *base;
    struct quota wires, payers;
    LIST_HEAD(, bridge) list, ended;
};

static void forget(struct bridge *g)
{
    LIST_REMOVE(g, link);
    quota_leave(&g->of_wire);
    quota_leave(&g->part);
    g->all = NULL;
}

/* What is on its way out is kept as long as either end is open, and counts as before. */
static void on_closed(void *arg)
{
    struct bridge *g = arg;
    if (--g->open > 0)
        return;
    if (g->all)
        forget(g);
    free(g);
}

static void bridge_end(struct bridge *g, bool flushed)
{
    struct io *near = g->near.io, *far = g->far.io;
    LIST_REMOVE(g, link);
    LIST_INSERT_HEAD(&g->all->ended, g, link);
    g->open = 2;
    io_when_closed(near, on_closed, g);
    io_when_closed(far, on_closed, g);
    (flushed ? io_close_flushed : io_close)(near);
    (flushed ? io_close_flushed : io_close)(far);
}

/* As much as the other side takes. */
static void carry(struct bank *from)
{
    struct buf *in = io_in(from->io);
    size_t n = buf_len(in), room = io_out_room(from->other->io);
    if (n > room)
        n = room;
    if (n > 0 && io_write(from->other->io, buf_data(in), n) == 0) {
        buf_drain(in, n);
        io_consumed(from->io);
    }
    if (from->ended && !from->told && buf_len(in) == 0) {
        from->told = true;
        io_end(from->other->io);
    }
}

static void on_bank(struct io *io UNUSED, enum io_event ev, void *arg)
{
    struct bank *b = arg;
    switch (ev) {
    case IO_READABLE:
        carry(b);
        break;
    case IO_DRAINED:
        carry(b->other);
        break;
    case IO_EOF:
        b->ended = true;
        /* gates and injectors close, they do not half-close: a far side that then stays is stuck */
        if (b == &b->bridge->near)
            io_deadline(b->other->io, BRIDGE_LINGER_SECONDS);
        carry(b);
        break;
    case IO_ERROR:
    case IO_TIMEOUT:
        bridge_end(b->bridge, false);
        return;
    case IO_CONNECTED:
        break;
    }
    if (b->told && b->other->told)
        bridge_end(b->bridge, true);
}

static void bank_init(struct bridge *g, struct bank *b, struct bank *other, struct io *io)
{
    b->bridge = g;
    b->other = other;
    b->io = io;
    io_callback(io, on_bank, b);
}

/* NULL: payer or wire has its part. */
static struct bridge *bridge_new(struct bridges *b, struct slice payer)
{
    ssize_t bar = slice_find(payer, '|');
    struct slice wire = {payer.p, bar < 0 ? payer.n : (size_t)bar};
    struct bridge *g = calloc(1, sizeof *g);
    if (g && quota_take(&b->wires, &g->of_wire, wire, 1) == QUOTA_TAKEN &&
        quota_take(&b->payers, &g->part, payer, 1) == QUOTA_TAKEN)
        return g;
    if (g)
        quota_leave(&g->of_wire);
    free(g);
    return NULL;
}

int bridges_join(struct bridges *b, struct io *io, struct slice payer)
{
    int fds[2] = {-1, -1};
    struct bridge *g = bridge_new(b, payer);
    bool pair = g && socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) == 0;
    struct io *near = pair ? io_new(b->base, fds[0], BRIDGE_BUFFER, BRIDGE_BUFFER, true) : NULL;
    if (near == NULL) {
        if (fds[1] >= 0)
            close(fds[1]);
        if (g) {
            quota_leave(&g->of_wire);
            quota_leave(&g->part);
        }
        free(g);
        io_close(io);
        return -1;
    }
    io_deadline(io, 0);
    bank_init(g, &g->near, &g->far, near);
    bank_init(g, &g->far, &g->near, io);
    g->all = b;
    LIST_INSERT_HEAD(&b->list, g, link);
    return fds[1];
}

struct bridges *bridges_new(struct event_base *base)
{
    struct bridges *b = calloc(1, sizeof *b);
    if (b == NULL)
        return NULL;
    b->base = base;
    b->wires = (struct quota){.total = BRIDGES_MAX, .each = BRIDGES_WIRE_MAX};
    b->payers = (struct quota){.total = BRIDGES_MAX, .each = BRIDGES_PAYER_MAX};
    LIST_INIT(&b->list);
    LIST_INIT(&b->ended);
    return b;
}

void bridges_free(struct bridges *b)
{
    struct bridge *g;
    if (b == NULL)
        return;
    while ((g = LIST_FIRST(&b->list)) != NULL)
        bridge_end(g, false);
    while ((g = LIST_FIRST(&b->ended)) != NULL)
        forget(g);
    free(b);
}

unsigned bridges_count(const struct bridges *b)
{
    return (unsigned)b->payers.used;
}
