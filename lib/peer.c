/* Puts and gets the fields of W_PEER in their order. A message with an unknown role has its
 * descriptor closed. */
#include "peer.h"

#include "ipc.h"
#include "wire.h"

#include <unistd.h>

void peer_put(struct msg *m, const struct peer *p)
{
    msg_put_u8(m, (uint8_t)p->kind);
    msg_put_u32(m, p->channel);
    msg_put_str(m, p->sandbox);
    msg_put_str(m, p->policy);
    msg_put_u32(m, p->generation);
    msg_put_u32(m, p->wire);
    msg_put_slice(m, p->extra);
    msg_put_fd(m, p->fd);
}

int peer_get(struct msg *m, struct peer *p)
{
    uint8_t kind;
    p->fd = -1;
    if (msg_get_u8(m, &kind) < 0 || msg_get_u32(m, &p->channel) < 0 ||
        msg_get_str(m, p->sandbox, sizeof p->sandbox) < 0 ||
        msg_get_str(m, p->policy, sizeof p->policy) < 0 || msg_get_u32(m, &p->generation) < 0 ||
        msg_get_u32(m, &p->wire) < 0 || msg_get_slice(m, IPC_MSG_MAX, &p->extra) < 0 ||
        msg_get_fd(m, &p->fd) < 0)
        return -1;
    if (msg_end(m) < 0 || kind == ROLE_NONE || kind >= ROLE_COUNT) {
        close(p->fd);
        p->fd = -1;
        return -1;
    }
    p->kind = (enum role)kind;
    return 0;
}

void peer_lost(struct ipc *parent, uint32_t channel)
{
    struct msg m;
    if (parent == NULL)
        return;
    msg_init(&m, W_LOST);
    msg_put_u32(&m, channel);
    ipc_send(parent, &m);
}
