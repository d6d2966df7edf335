/* Connects, sends the request and waits for the whole answer, whose head and body are read by the
 * parsers of proxy/http1. */
#define _GNU_SOURCE 1
#include "engine_http.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "http1_body.h"
#include "http1_head.h"

enum { REQUEST_HEAD_MAX = 8192, ROOM = 64 * 1024, HEAD_MAX = 32 * 1024 };

static int dial(const char *path, struct err *err)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    struct timeval limit = {ENGINE_REQUEST_S, 0};
    size_t n = strlen(path);
    if (n >= sizeof to.sun_path)
        return err_set(err, ERR_LIMIT, "the engine's socket has too long a path");
    memcpy(to.sun_path, path, n + 1);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return err_sys(err, "socket");
    if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) == 0 &&
        setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit) == 0 &&
        connect(fd, (struct sockaddr *)&to, sizeof to) == 0)
        return fd;
    err_set(err, ERR_UNREADY,
            "no container engine answers at %s (%s): start it, or name its socket in the policy: "
            "sandbox: { docker: { socket: PATH } }",
            path, strerror(errno));
    close(fd);
    return -1;
}

static int send_all(int fd, struct slice s, struct err *err)
{
    while (s.n > 0) {
        ssize_t n = send(fd, s.p, s.n, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_sys(err, "the engine does not take our request");
        s.p += n;
        s.n -= (size_t)n;
    }
    return 0;
}

static int send_request(int fd, const struct engine_request *q, struct err *err)
{
    struct buf head;
    buf_init(&head, REQUEST_HEAD_MAX);
    int bad = buf_printf(&head, "%s %s HTTP/1.1\r\nHost: docker\r\nConnection: close\r\n",
                         q->method, q->path);
    if (bad == 0 && q->body.n > 0)
        bad = buf_printf(&head, "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n",
                         q->body.n);
    else if (bad == 0)
        bad = buf_append_str(&head, "Content-Length: 0\r\n\r\n");
    int r = bad ? err_set(err, ERR_LIMIT, "the request is too long")
                : send_all(fd, buf_slice(&head), err);
    buf_free(&head);
    return r < 0 ? -1 : send_all(fd, q->body, err);
}

/* 1 more came, 0 the end. */
static int fill(int fd, struct buf *in, struct err *err)
{
    unsigned char *to = buf_reserve(in, ROOM / 4);
    if (to == NULL)
        return err_set(err, ERR_UPSTREAM, "the engine's answer has too long a head or line");
    ssize_t n;
    do
        n = recv(fd, to, ROOM / 4, 0);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return errno == EAGAIN ? err_set(err, ERR_UNREADY, "the engine did not answer in %d s",
                                         ENGINE_REQUEST_S)
                               : err_sys(err, "the engine's answer");
    buf_commit(in, (size_t)n);
    return n > 0;
}

static int read_head(int fd, const char *method, struct buf *in, struct head *h, struct err *err)
{
    static const struct limits limits = {
        .head_bytes = HEAD_MAX, .headers = 100, .target_bytes = REQUEST_HEAD_MAX};
    struct refusal why;
    size_t scanned = 0;
    ssize_t end;
    while ((end = http1_head_end(buf_slice(in), HEAD_MAX, &scanned)) == HTTP1_MORE) {
        int more = fill(fd, in, err);
        if (more < 0)
            return -1;
        if (more == 0)
            return err_set(err, ERR_UPSTREAM, "the engine closed the connection");
    }
    if (end < 0)
        return err_set(err, ERR_UPSTREAM, "what is at the engine's socket does not speak HTTP");
    struct slice raw = {(const char *)buf_data(in), (size_t)end};
    if (http1_parse_reply(h, raw, slice_str(method), NULL, &limits, &why) < 0)
        return err_set(err, ERR_UPSTREAM, "the engine's answer is not understood (%s)", why.code);
    buf_drain(in, (size_t)end);
    return 0;
}

static int read_body(int fd, const struct head *h, struct buf *in, struct buf *reply,
                     struct err *err)
{
    struct http1_body body;
    int r = 0;
    http1_body_init(&body, h->body, h->length);
    while (r == 0 && !body.done) {
        struct slice out = {NULL, 0};
        ssize_t used = http1_body_read(&body, buf_slice(in), ROOM, &out);
        if (used < 0)
            r = err_set(err, ERR_UPSTREAM, "the engine's answer is badly framed");
        else if (out.n && buf_append_slice(reply, out) < 0)
            r = err_set(err, ERR_LIMIT, "the engine's answer is too long");
        else if (used > 0)
            buf_drain(in, (size_t)used);
        else if (!body.done) {
            int more = fill(fd, in, err);
            if (more == 0 && h->body == BODY_CLOSE)
                break;
            r = more > 0    ? 0
                : more == 0 ? err_set(err, ERR_UPSTREAM, "the engine's answer was cut off")
                            : -1;
        }
    }
    http1_body_free(&body);
    return r;
}

int engine_exchange(const char *socket, const struct engine_request *q, unsigned *status,
                    struct buf *reply, struct err *err)
{
    struct buf in;
    struct head h;
    int fd = dial(socket, err);
    if (fd < 0)
        return -1;
    buf_init(&in, ROOM);
    http_head_init(&h);
    int r = send_request(fd, q, err);
    if (r == 0)
        r = read_head(fd, q->method, &in, &h, err);
    if (r == 0) {
        *status = h.status;
        r = read_body(fd, &h, &in, reply, err);
    }
    http_head_free(&h);
    buf_free(&in);
    close(fd);
    return r;
}
