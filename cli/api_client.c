#include "api_client.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "buf.h"
#include "paths.h"

enum { REPLY_MAX = 1 << 20 };

static int check_peer(int fd, const char *path, struct err *err)
{
    struct ucred who;
    socklen_t len = sizeof who;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &len) < 0)
        return err_sys(err, "%s: peer credentials", path);
    if (who.uid != 0 && who.uid != geteuid())
        return err_set(err, ERR_DENIED, "%s is served by uid %u, neither you nor root", path,
                       (unsigned)who.uid);
    return 0;
}

static int api_connect(const char *path, struct err *err)
{
    struct sockaddr_un sa = {.sun_family = AF_UNIX};
    struct timeval limit = {.tv_sec = API_TIMEOUT_SECONDS};
    if (strlen(path) >= sizeof sa.sun_path)
        return err_set(err, ERR_LIMIT, "the socket's path is too long: %s", path);
    memcpy(sa.sun_path, path, strlen(path) + 1);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return err_sys(err, "socket");
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    if (connect(fd, (struct sockaddr *)&sa, sizeof sa) < 0) {
        if (errno == ENOENT || errno == ECONNREFUSED)
            err_set(err, ERR_UNREADY, "no daemon answers at %s; start one with 'durward serve'",
                    path);
        else
            err_sys(err, "%s", path);
    } else if (check_peer(fd, path, err) == 0) {
        return fd;
    }
    close(fd);
    return -1;
}

static int send_request(int fd, const char *method, const char *path, const json_t *body,
                        struct err *err)
{
    struct buf b;
    char *text = body ? json_dumps(body, JSON_COMPACT) : strdup("");
    int r = -1;
    buf_init(&b, REPLY_MAX);
    if (text == NULL)
        err_set(err, ERR_INTERNAL, "out of memory");
    else if (buf_printf(&b,
                        "%s %s HTTP/1.1\r\nHost: durward\r\nConnection: close\r\n"
                        "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
                        method, path, strlen(text), text) < 0)
        err_set(err, ERR_LIMIT, "the request is too long");
    else
        r = 0;
    while (r == 0 && buf_len(&b)) {
        ssize_t n = send(fd, buf_data(&b), buf_len(&b), MSG_NOSIGNAL);
        if (n < 0)
            r = err_sys(err, "asking the daemon");
        else
            buf_drain(&b, (size_t)n);
    }
    buf_free(&b);
    free(text);
    return r;
}

static int read_all(int fd, struct buf *b, struct err *err)
{
    for (;;) {
        unsigned char *p = buf_reserve(b, 4096);
        if (p == NULL)
            return err_set(err, ERR_LIMIT, "the daemon's answer is too long");
        ssize_t n = recv(fd, p, 4096, 0);
        if (n == 0)
            return 0;
        if (n < 0 && errno == EAGAIN)
            return err_set(err, ERR_UNREADY, "the daemon did not answer within %d s",
                           API_TIMEOUT_SECONDS);
        if (n < 0 && errno != EINTR)
            return err_sys(err, "the daemon's answer");
        if (n > 0)
            buf_commit(b, (size_t)n);
    }
}

/* "HTTP/1.1 NNN …" CRLF headers CRLF CRLF body-until-end. */
static int parse_reply(struct slice all, int *status, json_t **ret, struct err *err)
{
    ssize_t end = slice_find_slice(all, SLICE("\r\n\r\n"));
    uint64_t code;
    if (end < 0 || !slice_starts(all, SLICE("HTTP/1.1 ")) || all.n < 12 ||
        slice_u64((struct slice){all.p + 9, 3}, 599, &code) < 0)
        return err_set(err, ERR_UPSTREAM, "what answers at the socket is not Durward's API");
    json_error_t why;
    *status = (int)code;
    *ret = json_loadb(all.p + end + 4, all.n - (size_t)end - 4, JSON_REJECT_DUPLICATES, &why);
    if (*ret == NULL)
        return err_set(err, ERR_UPSTREAM, "the daemon's answer is not JSON: %s", why.text);
    return 0;
}

static int exchange(int fd, const char *method, const char *path, const json_t *body, json_t **ret,
                    struct err *err)
{
    struct buf in;
    json_t *v = NULL;
    int status = 0;
    buf_init_wiped(&in, REPLY_MAX);
    int r = send_request(fd, method, path, body, err);
    if (r == 0)
        r = read_all(fd, &in, err);
    if (r == 0)
        r = parse_reply(buf_slice(&in), &status, &v, err);
    buf_free(&in);
    if (r == 0 && status / 100 == 2) {
        *ret = v;
        return 0;
    }
    if (r == 0) {
        const char *text =
            json_string_value(json_object_get(json_object_get(v, "error"), "message"));
        r = err_set(err, ERR_DENIED, "%s", text ? text : "the daemon refused without saying why");
    }
    json_decref(v);
    return r;
}

int api_call(const char *sock, const char *method, const char *path, const json_t *body,
             json_t **ret, struct err *err)
{
    char *own = NULL;
    if (sock == NULL && (sock = own = paths_api_socket(err)) == NULL)
        return -1;
    int fd = api_connect(sock, err);
    int r = fd < 0 ? -1 : exchange(fd, method, path, body, ret, err);
    if (fd >= 0)
        close(fd);
    free(own);
    return r;
}
