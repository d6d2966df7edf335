/* Joins a connection with one end of a socket pair and carries bytes between them as each side has
 * room; whoever asked for the dial gets the other end. An owner has a bounded number of bridges. */
#include "bridge.h"

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
    struct bridges *all;
    uint32_t owner;
    struct bank near, far;
    LIST_ENTRY(bridge) link;
};

struct bridges {
    struct event_base *base;
    unsigned n;
    LIST_HEAD(, bridge) list;
};

static void bridge_end(struct bridge *g, bool flushed)
{
    LIST_REMOVE(g, link);
    g->all->n--;
    (flushed ? io_close_flushed : io_close)(g->near.io);
    (flushed ? io_close_flushed : io_close)(g->far.io);
    free(g);
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

static bool room_for(const struct bridges *b, uint32_t owner)
{
    const struct bridge *g;
    unsigned own = 0;
    LIST_FOREACH(g, &b->list, link)
    own += g->owner == owner;
    return b->n < BRIDGES_MAX && own < BRIDGES_OWNER_MAX;
}

int bridges_join(struct bridges *b, struct io *io, uint32_t owner)
{
    int fds[2] = {-1, -1};
    struct bridge *g = room_for(b, owner) ? calloc(1, sizeof *g) : NULL;
    if (g && socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) < 0) {
        free(g);
        g = NULL;
    }
    struct io *near = g ? io_new(b->base, fds[0], BRIDGE_BUFFER, BRIDGE_BUFFER, true) : NULL;
    if (near == NULL) {
        if (fds[1] >= 0)
            close(fds[1]);
        free(g);
        io_close(io);
        return -1;
    }
    io_deadline(io, 0);
    bank_init(g, &g->near, &g->far, near);
    bank_init(g, &g->far, &g->near, io);
    g->all = b;
    g->owner = owner;
    LIST_INSERT_HEAD(&b->list, g, link);
    b->n++;
    return fds[1];
}

struct bridges *bridges_new(struct event_base *base)
{
    struct bridges *b = calloc(1, sizeof *b);
    if (b == NULL)
        return NULL;
    b->base = base;
    LIST_INIT(&b->list);
    return b;
}

void bridges_free(struct bridges *b)
{
    struct bridge *g;
    if (b == NULL)
        return;
    while ((g = LIST_FIRST(&b->list)) != NULL)
        bridge_end(g, false);
    free(b);
}

unsigned bridges_count(const struct bridges *b)
{
    return b->n;
}
