/* What both ends of the injector channel do alike: bodies in pieces within credit, and windows that
 * grow while their bytes are taken. */
#include "injector_channel.h"

#include "wire.h"

static void msg_of(struct msg *m, uint16_t type, uint32_t exchange)
{
    msg_init(m, type);
    msg_put_u32(m, exchange);
}

void injector_channel_send(struct ipc *ch, uint32_t exchange, uint16_t type)
{
    struct msg m;
    msg_of(&m, type, exchange);
    ipc_send(ch, &m);
}

bool injector_channel_fits(const struct head *h)
{
    size_t n = 64; /* what is not fields */
    for (size_t i = 0; i < h->n; i++)
        n += 8 + h->fields[i].name.n + h->fields[i].value.n;
    return n <= IPC_MSG_MAX;
}

void injector_channel_send_body(struct ipc *ch, uint32_t exchange, uint32_t *credit, struct slice s)
{
    while (s.n > 0) {
        struct msg m;
        size_t k = s.n < INJECTOR_CHANNEL_BODY_MAX ? s.n : INJECTOR_CHANNEL_BODY_MAX;
        msg_of(&m, W_INJECTOR_CHANNEL_BODY, exchange);
        msg_put_bytes(&m, s.p, k);
        ipc_send(ch, &m);
        *credit -= (uint32_t)(k < *credit ? k : *credit);
        s = (struct slice){s.p + k, s.n - k};
    }
}

void injector_channel_send_credit(struct ipc *ch, uint32_t exchange, uint32_t bytes)
{
    struct msg m;
    msg_of(&m, W_INJECTOR_CHANNEL_CREDIT, exchange);
    msg_put_u32(&m, bytes);
    ipc_send(ch, &m);
}

int injector_channel_take_credit(struct msg *m, uint32_t *credit)
{
    uint32_t n;
    if (msg_get_u32(m, &n) < 0 || msg_end(m) < 0 || n > INJECTOR_CHANNEL_WINDOW ||
        *credit + n > INJECTOR_CHANNEL_WINDOW)
        return -1;
    *credit += n;
    return 0;
}

size_t injector_channel_room(const struct ipc *ch, uint32_t credit)
{
    return ch && ipc_queued(ch) < INJECTOR_CHANNEL_WINDOW * 4 ? credit : 0;
}

uint32_t injector_channel_window_grow(uint32_t *window, uint32_t *grown)
{
    uint32_t left = INJECTOR_CHANNEL_GROWTH - *grown, more = *window;
    if (more > INJECTOR_CHANNEL_WINDOW - *window)
        more = INJECTOR_CHANNEL_WINDOW - *window;
    if (more > left)
        more = left;
    *window += more;
    *grown += more;
    return more;
}
