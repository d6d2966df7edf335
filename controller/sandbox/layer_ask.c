/* The controller's side of layer_work.h: writes W_LAYER and W_FREEZE and reads the answers. The
 * work itself is controller/images/layer_work.c, in the builder. */
#include "layer_work.h"

#include "wire.h"

int layer_ask(struct ipc *builder, uint32_t req, enum layer_op op, const char *from, const char *to,
              const struct layer_stream *stream)
{
    struct msg m;
    if (builder == NULL)
        return -1;
    msg_init(&m, W_LAYER);
    msg_put_u32(&m, req);
    msg_put_u8(&m, (uint8_t)op);
    msg_put_str(&m, from);
    msg_put_str(&m, to);
    if (stream)
        msg_put_str(&m, stream->about);
    if (stream && layer_streams(op)) {
        msg_put_u32(&m, stream->uid);
        msg_put_u32(&m, stream->gid);
        msg_put_fd(&m, stream->fd);
    }
    return ipc_send(builder, &m);
}

int layer_freeze(struct ipc *builder, uint32_t req, const char *sandbox, bool frozen)
{
    struct msg m;
    if (builder == NULL)
        return -1;
    msg_init(&m, W_FREEZE);
    msg_put_u32(&m, req);
    msg_put_str(&m, sandbox);
    msg_put_u8(&m, frozen);
    return ipc_send(builder, &m);
}

int layer_answer(struct msg *m, uint32_t *req, enum layer_result *result, char *text, size_t size)
{
    uint8_t r;
    if (msg_get_u32(m, req) < 0 || msg_get_u8(m, &r) < 0 || r > LAYER_ABSENT ||
        msg_get_str(m, text, size) < 0 || msg_end(m) < 0)
        return -1;
    *result = (enum layer_result)r;
    return 0;
}
