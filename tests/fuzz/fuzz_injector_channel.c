/* Whatever messages a conquered gate may send to its injector, in any order: pieces of the input,
 * each a length of two bytes and a datagram. The grant behind is played here: a body is never
 * longer nor shorter than its head says, fields keep to the grammar, nobody is called after its
 * end. */
#include "injection.h"
#include "injector_channel.h"
#include "http1_head.h"

#include <event2/event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct injection {
    struct downstream downstream;
    struct head head;
    uint64_t bytes;
    bool ended;
};

static struct event_base *base;
static struct injector injector;
static unsigned alive;

static void require(bool right)
{
    if (!right)
        abort();
}

struct injection *injection_new(struct injector *i, struct downstream downstream)
{
    struct injection *g = calloc(1, sizeof *g);
    require(i == &injector && g != NULL);
    g->downstream = downstream;
    alive++;
    return g;
}

void injection_start(struct injection *g, struct injection_request *r)
{
    g->head = r->head;
    http_head_init(&r->head);
    require(http1_is_token(g->head.method) && g->head.n <= HEAD_FIELDS_MAX);
    require((g->head.length > 0) == (g->head.body == BODY_LENGTH) && g->head.body <= BODY_CHUNKED);
    require(r->authority.port != 0 && strlen(r->secret) < sizeof r->secret);
    for (size_t i = 0; i < g->head.n; i++)
        require(http1_is_token(g->head.fields[i].name) && http1_is_value(g->head.fields[i].value));
}

static void upstream_data(void *self, const void *p, size_t n)
{
    struct injection *g = self;
    (void)p;
    g->bytes += n;
    require(!g->ended && g->head.body != BODY_NONE);
    require(g->head.body != BODY_LENGTH || g->bytes <= g->head.length);
}

static void upstream_end(void *self)
{
    struct injection *g = self;
    require(!g->ended && (g->head.body != BODY_LENGTH || g->bytes == g->head.length));
    g->ended = true;
}

static size_t upstream_room(void *self)
{
    (void)self;
    return 32768;
}

static void upstream_resume(void *self)
{
    (void)self;
}

static void upstream_cancel(void *self, const char *code)
{
    struct injection *g = self;
    require(http1_is_token(slice_str(code)));
    http_head_free(&g->head);
    free(g);
    alive--;
}

struct upstream injection_upstream(struct injection *g)
{
    static const struct upstream_ops ops = {.data = upstream_data,
                                            .end = upstream_end,
                                            .room = upstream_room,
                                            .resume = upstream_resume,
                                            .cancel = upstream_cancel};
    return (struct upstream){&ops, g};
}

static void turn(void)
{
    for (int i = 0; i < 4; i++)
        event_base_loop(base, EVLOOP_NONBLOCK);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int fds[2];
    char drain[4096];
    if (base == NULL)
        base = event_base_new();
    require(base && ipc_pair(fds, NULL) == 0);
    injector.base = base;
    require(injector_channel_server_new(&injector, fds[0], "s", false) != NULL);
    while (size >= 2) {
        size_t n = (size_t)data[0] << 8 | data[1];
        n = n < size - 2 ? n : size - 2;
        if (send(fds[1], data + 2, n, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
            break;
        turn();
        while (recv(fds[1], drain, sizeof drain, MSG_DONTWAIT) > 0)
            continue;
        data += 2 + n;
        size -= 2 + n;
    }
    close(fds[1]);
    turn();
    require(alive == 0);
    return 0;
}
