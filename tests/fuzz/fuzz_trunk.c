/* What a guest may send over its trunk: in two parts, to an end that opens whatever is asked for.
 */
#define _GNU_SOURCE 1
#include "trunk.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int open_there(enum trunk_kind kind, const struct trunk_address *to)
{
    if ((kind != TRUNK_TCP && kind != TRUNK_UDP) || to->port == 0)
        abort();
    return open("/dev/null", O_RDWR | O_CLOEXEC);
}

static void refused(const struct trunk_address *to)
{
    if (to->port == 0 || (to->family != 4 && to->family != 6))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct trunk_ops ops = {open_there, refused};
    const char *p = (const char *)data;
    int pair[2], line[2];
    if (size > 64 * 1024 || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, pair) < 0)
        return 0;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, line) < 0)
        abort();
    struct trunk *t = trunk_new(line[0], pair[0], &ops);
    if (t && trunk_take(t, (struct slice){p, size / 2}) == 0)
        (void)trunk_take(t, (struct slice){p + size / 2, size - size / 2});
    trunk_free(t);
    close(pair[1]);
    close(line[1]);
    return 0;
}
