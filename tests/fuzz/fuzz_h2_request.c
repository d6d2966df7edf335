/* Frames of whatever bytes behind a right beginning, into the gate's end of an HTTP/2 connection.
 * What becomes a request keeps to the grammar of HTTP/1 and to its declared length; each exchange
 * is ended or cancelled once; and the connection lets go of everything. */
#include "http1_head.h"
#include "faults.h"
#include "http2_server.h"

#include <event2/event.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct limits limits = {.head_bytes = 32768,
                                     .headers = 100,
                                     .target_bytes = 8192,
                                     .head_seconds = 60,
                                     .idle_seconds = 60};

enum { EXCHANGES_MAX = 1024, INPUT_MAX = 60000, TURNS = 40 };

struct exchange {
    struct downstream downstream;
    uint64_t length, taken;
    bool declared, open, ended;
};

static struct {
    struct event_base *base;
    struct io *io;
    struct http2_server *server;
    struct exchange exchanges[EXCHANGES_MAX];
    size_t n;
    bool closed;
} bed;

static void require(bool right)
{
    if (!right)
        abort();
}

static void upstream_data(void *self, const void *p UNUSED, size_t n)
{
    struct exchange *x = self;
    require(x->open && !x->ended && n > 0 && n <= 1000);
    x->taken += n;
    require(!x->declared || x->taken <= x->length);
}

static void upstream_end(void *self)
{
    struct exchange *x = self;
    struct head h;
    require(x->open && !x->ended && (!x->declared || x->taken == x->length));
    x->ended = true;
    x->open = false;
    http_head_init(&h);
    h.status = 200;
    h.body = BODY_LENGTH;
    h.length = 4;
    x->downstream.ops->reply(x->downstream.self, &h);
    x->downstream.ops->data(x->downstream.self, "fuzz", 4);
    x->downstream.ops->end(x->downstream.self);
}

static size_t upstream_room(void *self UNUSED)
{
    return 1000;
}

static void upstream_resume(void *self UNUSED)
{
}

static void upstream_cancel(void *self, const char *code)
{
    struct exchange *x = self;
    require(x->open && code[0] != 0);
    x->open = false;
}

static const struct refusal *upstream_trailers(void *self UNUSED, const struct head *fields)
{
    static const struct refusal named = {400, "trailer"};
    for (size_t i = 0; i < fields->n; i++)
        require(http1_is_token(fields->fields[i].name) && http1_is_value(fields->fields[i].value));
    return http_head_find(fields, "host") ? &named : NULL;
}

static const struct upstream_ops upstream_ops = {
    .data = upstream_data,
    .trailers = upstream_trailers,
    .end = upstream_end,
    .room = upstream_room,
    .resume = upstream_resume,
    .cancel = upstream_cancel,
};

static void check_head(const struct head *h)
{
    require(http1_is_token(h->method) && h->target.n > 0 && h->n <= limits.headers + 2);
    require(http_head_count(h, "host") == 1 && http_head_count(h, "cookie") <= 1);
    require(http_head_count(h, "upgrade") + http_head_count(h, "connection") +
                http_head_count(h, "transfer-encoding") ==
            0);
    require(h->form != TARGET_ABSOLUTE && (h->form != TARGET_ORIGIN || h->path.p[0] == '/'));
    require((h->body == BODY_LENGTH) == (h->length > 0));
    for (size_t i = 0; i < h->n; i++) {
        struct slice name = h->fields[i].name, value = h->fields[i].value;
        require(http1_is_token(name) && http1_is_value(value));
        require(slice_eq(slice_trim(value), value));
        for (size_t k = 0; k < name.n; k++)
            require(ascii_lower(name.p[k]) == name.p[k]);
    }
}

static void on_request(void *session UNUSED, const struct requester *by, struct head *h)
{
    check_head(h);
    if (bed.n == EXCHANGES_MAX || slice_starts(h->path, SLICE("/denied"))) {
        by->downstream.ops->fail(by->downstream.self, 403, "no_rule", "1-1");
        return;
    }
    struct exchange *x = &bed.exchanges[bed.n++];
    *x = (struct exchange){.downstream = by->downstream,
                           .length = h->length,
                           .declared = h->body != BODY_CHUNKED,
                           .open = true};
    by->set_upstream(by->downstream.self, (struct upstream){&upstream_ops, x});
}

static void on_refused(void *session UNUSED, const struct requester *by,
                       const struct head *h UNUSED, const struct refusal *why)
{
    require(why->status >= 400 && why->code[0] != 0);
    by->downstream.ops->fail(by->downstream.self, why->status, why->code, "1-2");
}

static void on_breach(void *session UNUSED, const char *code, const char *detail)
{
    require(code[0] != 0 && detail[0] != 0);
}

static void on_closed(void *session UNUSED)
{
    bed.closed = true;
    bed.server = NULL;
    io_close(bed.io);
    bed.io = NULL;
}

static const struct http2_server_ops ops = {.ahead = 192 * 1024,
                                            .request = on_request,
                                            .refused = on_refused,
                                            .breach = on_breach,
                                            .closed = on_closed};

static void feed(int fd, const uint8_t *data, size_t size)
{
    static const char begin[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0";
    char sink[65536];
    require(send(fd, begin, sizeof begin, MSG_NOSIGNAL) == sizeof begin);
    for (int i = 0; i < TURNS && !bed.closed; i++) {
        size_t n = size < INPUT_MAX / 2 ? size : INPUT_MAX / 2;
        ssize_t k = n ? send(fd, data, n, MSG_NOSIGNAL | MSG_DONTWAIT) : 0;
        if (k > 0) {
            data += k;
            size -= (size_t)k;
        }
        event_base_loop(bed.base, EVLOOP_NONBLOCK);
        while (recv(fd, sink, sizeof sink, MSG_DONTWAIT) == sizeof sink)
            ;
        if (size == 0 && i > 3 && i < TURNS - 3)
            i = TURNS - 3;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int fds[2];
    if (bed.base == NULL)
        bed.base = event_base_new();
    require(bed.base &&
            socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds) == 0);
    bed.n = 0;
    bed.closed = false;
    bed.io = io_new(bed.base, fds[0], STREAM_IN_MAX, STREAM_OUT_MAX, false);
    require(bed.io != NULL);
    struct faults faults = {.used = 0};
    bed.server = http2_server_new(bed.base, bed.io, &limits, &faults, &ops, NULL);
    require(bed.server != NULL);
    http2_server_start(bed.server);
    feed(fds[1], data, size);
    http2_server_free(bed.server);
    bed.server = NULL;
    io_close(bed.io);
    event_base_loop(bed.base, EVLOOP_NONBLOCK);
    close(fds[1]);
    for (size_t i = 0; i < bed.n; i++)
        require(!bed.exchanges[i].open);
    return 0;
}
