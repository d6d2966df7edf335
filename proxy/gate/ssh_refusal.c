/* Writes the version line and the message, in clear and padded as an SSH packet has to be. */
#include "ssh_refusal.h"

#include <string.h>

enum { SSH_MSG_DISCONNECT = 1, SSH_DISCONNECT_BY_APPLICATION = 11, SSH_PAD = 8 };

static void put32(struct buf *b, uint32_t v, int *bad)
{
    unsigned char n[4] = {v >> 24, v >> 16, v >> 8, v};
    *bad |= buf_append(b, n, 4);
}

void ssh_refusal_write(struct io *io)
{
    static const char text[] = "Durward: ssh does not leave this sandbox; use an https:// remote "
                               "(git rewrites it for hosts that have a git rule)";
    static const unsigned char zero[SSH_PAD * 2] = {0};
    size_t payload = 1 + 4 + 4 + sizeof text - 1 + 4;
    size_t pad = SSH_PAD - (4 + 1 + payload) % SSH_PAD;
    if (pad < 4)
        pad += SSH_PAD;
    struct buf b;
    int bad = 0;
    unsigned char head[2] = {(unsigned char)pad, SSH_MSG_DISCONNECT};
    buf_init(&b, 512);
    bad |= buf_append_str(&b, "SSH-2.0-Durward\r\n");
    put32(&b, (uint32_t)(1 + payload + pad), &bad);
    bad |= buf_append(&b, head, 2);
    put32(&b, SSH_DISCONNECT_BY_APPLICATION, &bad);
    put32(&b, sizeof text - 1, &bad);
    bad |= buf_append(&b, text, sizeof text - 1);
    put32(&b, 0, &bad); /* empty language tag */
    bad |= buf_append(&b, zero, pad);
    if (!bad && io_write(io, buf_data(&b), buf_len(&b)) == 0)
        io_flush_soon(io);
    buf_free(&b);
}
