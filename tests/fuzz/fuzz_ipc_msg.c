/* msg_recv and every getter on whatever a hostile peer may send. The first byte chooses the order
 * in which fields are asked for; the rest is the datagram. */
#include "ipc_msg.h"

#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_fields(struct msg *m, unsigned order)
{
    for (unsigned i = 0; i < 64 && !m->bad; i++, order = order * 5 + 1) {
        uint8_t v8;
        uint32_t v32;
        uint64_t v64;
        struct slice s;
        char text[64];
        int fd;
        switch (order % 6) {
        case 0:
            (void)msg_get_u8(m, &v8);
            break;
        case 1:
            (void)msg_get_u32(m, &v32);
            break;
        case 2:
            (void)msg_get_u64(m, &v64);
            break;
        case 3:
            if (msg_get_slice(m, 1000, &s) == 0 && s.n > 1000)
                abort();
            break;
        case 4:
            (void)msg_get_str(m, text, sizeof text);
            break;
        default:
            if (msg_get_fd(m, &fd) == 0)
                abort(); /* none was sent */
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int pair[2];
    if (size < 1 || size > 64 * 1024)
        return 0;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        abort();
    struct msg m;
    if (send(pair[0], data + 1, size - 1, MSG_NOSIGNAL) == (ssize_t)(size - 1)) {
        close(pair[0]);
        if (msg_recv(pair[1], &m) == 1) {
            read_fields(&m, data[0]);
            if (msg_end(&m) == 0 && m.bad)
                abort();
            msg_done(&m);
        }
    } else {
        close(pair[0]);
    }
    close(pair[1]);
    return 0;
}
