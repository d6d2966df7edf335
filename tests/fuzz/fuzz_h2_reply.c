/* Frames of whatever bytes from an origin that speaks HTTP/2. First byte: what is asked and who has
 * room; then the origin's bytes, in pieces. What is told to a lease's holder is in order and well
 * formed, everybody is told an end, and memory is bounded. */
#include "http1_head.h"
#include "http2_client.h"
#include "stream.h"

#include <event2/event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { LEASES = 3, INPUT_MAX = 64 * 1024 };

static struct limits limits = {.head_bytes = 8192,
                               .headers = 50,
                               .target_bytes = 8192,
                               .idle_seconds = 5,
                               .reply_seconds = 5,
                               .dial_seconds = 5,
                               .pool_idle_seconds = 5};

struct asked {
    struct upstream_stream upstream_stream;
    bool head, replied, trailed, over, drops;
    size_t room;
    uint64_t got, length;
    enum body_kind body;
};

static void require(bool right)
{
    if (!right)
        abort();
}

static void check_fields(const struct head *h)
{
    for (size_t i = 0; i < h->n; i++)
        require(http1_is_token(h->fields[i].name) && http1_is_value(h->fields[i].value));
}

static void on_reply(void *arg, const struct head *h)
{
    struct asked *a = arg;
    require(!a->replied && !a->over && h->status >= 200 && h->status <= 999);
    require(h->body == BODY_NONE || !a->head);
    check_fields(h);
    a->replied = true;
    a->body = h->body;
    a->length = h->length;
    if (a->drops) {
        a->over = true;
        a->upstream_stream.ops->drop(a->upstream_stream.self);
    }
}

static void on_data(void *arg, const void *p UNUSED, size_t n)
{
    struct asked *a = arg;
    a->got += n;
    require(a->replied && !a->over && !a->trailed && n <= a->room && a->body != BODY_NONE);
    require(a->body != BODY_LENGTH || a->got <= a->length);
}

static void on_trailers(void *arg, const struct head *fields)
{
    struct asked *a = arg;
    require(a->replied && !a->over && !a->trailed);
    check_fields(fields);
    a->trailed = true;
}

static void on_end(void *arg)
{
    struct asked *a = arg;
    require(a->replied && !a->over);
    require(a->body != BODY_LENGTH || a->got == a->length);
    a->over = true;
}

static void on_fail(void *arg, const char *code, const char *detail)
{
    struct asked *a = arg;
    require(!a->over && http1_is_token(slice_str(code)) && detail != NULL);
    a->over = true;
}

static size_t on_room(void *arg)
{
    struct asked *a = arg;
    return a->room;
}

static void on_wanted(void *arg)
{
    struct asked *a = arg;
    char block[512] = {0};
    size_t room =
        a->upstream_stream.ops ? a->upstream_stream.ops->room(a->upstream_stream.self) : 0;
    a->upstream_stream.ops->data(a->upstream_stream.self, block,
                                 room < sizeof block ? room : sizeof block);
}

static const struct client_ops ops = {
    .reply = on_reply,
    .data = on_data,
    .trailers = on_trailers,
    .end = on_end,
    .fail = on_fail,
    .room = on_room,
    .wanted = on_wanted,
};

static void ask(struct http2_client *c, struct asked *a, unsigned i, uint8_t how)
{
    static const char *const methods[LEASES] = {"GET", "POST", "HEAD"};
    struct authority to = {
        .scheme = SCHEME_HTTPS, .kind = HOST_NAME, .host = "a.example", .port = 443};
    struct head h;
    http_head_init(&h);
    h.method = slice_str(methods[i]);
    h.path = SLICE("/");
    h.body = i == 1 ? BODY_CHUNKED : BODY_NONE;
    *a = (struct asked){.head = i == 2, .room = (how >> i) & 1 ? 65536 : 7};
    a->drops = i == 1 && (how & 8);
    a->upstream_stream = http2_client_open_stream(c, &ops, a, &h, &to);
    require(a->upstream_stream.ops != NULL);
    if (i == 1)
        on_wanted(a);
    else
        a->upstream_stream.ops->end(a->upstream_stream.self);
}

static void drain(int fd)
{
    char text[65536];
    while (recv(fd, text, sizeof text, MSG_DONTWAIT) > 0)
        ;
}

static void on_news(void *arg, enum http2_news news)
{
    struct http2_client **c = arg;
    if (news == HTTP2_LEFT)
        *c = NULL;
}

static void play(struct event_base *base, int fd, const uint8_t *p, size_t n, size_t piece)
{
    while (n > 0) {
        size_t k = n < piece ? n : piece;
        if (send(fd, p, k, MSG_NOSIGNAL | MSG_DONTWAIT) <= 0)
            break;
        p += k;
        n -= k;
        for (int i = 0; i < 3; i++)
            event_base_loop(base, EVLOOP_NONBLOCK);
        drain(fd);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint8_t hello[] = "\0\0\0\4\0\0\0\0\0\0\0\0\4\1\0\0\0\0";
    struct asked a[LEASES];
    int fds[2];
    if (size < 1 || size > INPUT_MAX)
        return 0;
    uint8_t how = data[0];
    struct event_base *base = event_base_new();
    require(base && socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds) == 0);
    struct http2_client *c = http2_client_new(
        base, io_new(base, fds[0], STREAM_IN_MAX, STREAM_OUT_MAX, true), &limits, true, "");
    require(c != NULL);
    http2_client_owner(c, 5, on_news, &c);
    for (unsigned i = 0; i < LEASES; i++)
        ask(c, &a[i], i, how);
    if (how & 16)
        play(base, fds[1], hello, sizeof hello - 1, sizeof hello);
    play(base, fds[1], data + 1, size - 1, how & 32 ? 13 : 16384);
    shutdown(fds[1], SHUT_WR);
    for (int i = 0; i < 4; i++)
        event_base_loop(base, EVLOOP_NONBLOCK);
    http2_client_close(c);
    for (unsigned i = 0; i < LEASES; i++) {
        a[i].room = 65536;
        if (!a[i].over) /* it came whole: only room was wanting */
            a[i].upstream_stream.ops->resume(a[i].upstream_stream.self);
        require(a[i].over);
    }
    close(fds[1]);
    for (int i = 0; i < 4; i++)
        event_base_loop(base, EVLOOP_NONBLOCK);
    event_base_free(base);
    return 0;
}
