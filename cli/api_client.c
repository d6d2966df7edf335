/* Connects to the daemon, sends one HTTP/1.1 request and reads the reply to the end of the
 * connection. For a daemon elsewhere api_remote.c makes the connection. */
#include "api_client.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "api_remote.h"
#include "out.h"
#include "paths.h"
#include "which.h"

enum { REPLY_MAX = 160 << 20, HEAD_MAX = 16 * 1024 };

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

static int connect_to(const char *path, struct err *err)
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

int api_push(int fd, const void *p, size_t n, struct err *err)
{
    const char *at = p;
    while (n > 0) {
        ssize_t w = send(fd, at, n, MSG_NOSIGNAL);
        if (w < 0 && errno == EINTR)
            continue;
        if (w < 0)
            return err_sys(err, "asking the daemon");
        at += w;
        n -= (size_t)w;
    }
    return 0;
}

int api_ask(const char *sock, int fd, const struct api_request *q, struct err *err)
{
    struct buf b;
    buf_init_wiped(&b, HEAD_MAX);
    int r = buf_printf(&b, "%s %s HTTP/1.1\r\nContent-Length: %zu\r\n", q->method, q->path, q->n);
    r |= remote_is(sock) ? remote_head(sock, &b, err) : buf_printf(&b, "Host: durward\r\n");
    r |= q->upgrade ? buf_printf(&b, "Connection: Upgrade\r\nUpgrade: %s\r\n", q->upgrade)
                    : buf_printf(&b, "Connection: close\r\n");
    r |= buf_printf(&b, "Content-Type: %s\r\n\r\n", q->type ? q->type : "application/json");
    if (r && err->code == ERR_NONE)
        err_set(err, ERR_LIMIT, "the request is too long");
    if (r == 0)
        r = api_push(fd, buf_data(&b), buf_len(&b), err);
    buf_free(&b);
    return r ? -1 : api_push(fd, q->body, q->n, err);
}

static void wait_without_end(int fd)
{
    static const struct timeval none = {0};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &none, sizeof none);
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

/* Is the body as long as the head says? TLS may end without a word. */
static bool is_whole(struct slice head, size_t n)
{
    static const struct slice name = SLICE("\r\nContent-Length: ");
    uint64_t said;
    ssize_t at = slice_find_slice(head, name);
    if (at < 0)
        return true;
    struct slice rest = {head.p + at + name.n, head.n - (size_t)at - name.n};
    ssize_t end = slice_find(rest, '\r');
    if (end >= 0)
        rest.n = (size_t)end;
    return slice_u64(rest, REPLY_MAX, &said) == 0 && said == n;
}

/* "HTTP/1.1 NNN …" CRLF headers CRLF CRLF body-until-end. */
static int parse_reply(struct slice all, int *status, struct slice *body, struct err *err)
{
    ssize_t end = slice_find_slice(all, SLICE("\r\n\r\n"));
    uint64_t code;
    if (end < 0 || !slice_starts(all, SLICE("HTTP/1.1 ")) || all.n < 12 ||
        slice_u64((struct slice){all.p + 9, 3}, 599, &code) < 0)
        return err_set(err, ERR_UPSTREAM, "what answers at the socket is not Durward's API");
    *status = (int)code;
    *body = (struct slice){all.p + end + 4, all.n - (size_t)end - 4};
    if (!is_whole((struct slice){all.p, (size_t)end}, body->n))
        return err_set(err, ERR_UPSTREAM, "the daemon's answer ended early");
    return 0;
}

int api_open(const char *sock, struct err *err)
{
    char *own = NULL;
    if (remote_is(sock))
        return remote_open(sock, err);
    if (sock == NULL && (sock = own = paths_api_socket(err)) == NULL)
        return -1;
    if (strstr(sock, "://")) {
        err_set(err, ERR_PARSE,
                "'%.200s': the daemon's API is spoken over a unix socket or https only, "
                "never in clear; say the socket's path, or https://HOST[:PORT] where the "
                "daemon's configuration has controller.https",
                sock);
        free(own);
        return -1;
    }
    int fd = connect_to(sock, err);
    free(own);
    return fd;
}

int api_refused(int status, const char *path, struct slice body, struct err *err)
{
    json_t *v = json_loadb(body.n ? body.p : "", body.n, JSON_REJECT_DUPLICATES, NULL);
    const json_t *said = json_object_get(v, "error");
    const char *text = json_string_value(json_object_get(said, "message"));
    const char *lister = status == 404 ? which_lister(path, out_member(said, "code")) : NULL;
    err_set(err, status == 404 ? ERR_UNREADY : ERR_DENIED, "%s%s%s%s",
            text ? text : "the daemon refused without saying why", lister ? "; '" : "",
            lister ? lister : "", lister ? "' lists what there is" : "");
    json_decref(v);
    return -1;
}

int api_exchange(const char *sock, const struct api_request *q, size_t max, struct buf *in,
                 int *status, struct slice *body, struct err *err)
{
    int fd = api_open(sock, err);
    *status = 0;
    buf_init_wiped(in, max + HEAD_MAX);
    int r = fd < 0 ? -1 : api_ask(sock, fd, q, err);
    if (r == 0 && q->patient)
        wait_without_end(fd);
    if (r == 0)
        r = read_all(fd, in, err);
    if (r == 0)
        r = parse_reply(buf_slice(in), status, body, err);
    if (fd >= 0)
        close(fd);
    return r;
}

int api_bytes(const char *sock, const struct api_request *q, size_t max, struct buf *in,
              struct slice *body, struct err *err)
{
    int status;
    int r = api_exchange(sock, q, max, in, &status, body, err);
    if (r == 0 && status / 100 != 2)
        r = api_refused(status, q->path, *body, err);
    return r;
}

static int call(const char *sock, const char *method, const char *path, const json_t *body,
                bool patient, json_t **ret, struct err *err)
{
    char *text = body ? json_dumps(body, JSON_COMPACT) : strdup("");
    struct api_request q = {.method = method, .path = path, .body = text, .patient = patient};
    struct buf in;
    struct slice reply;
    json_error_t why;
    if (text == NULL)
        return err_set(err, ERR_INTERNAL, "out of memory");
    q.n = strlen(text);
    int r = api_bytes(sock, &q, REPLY_MAX, &in, &reply, err);
    if (r == 0) {
        *ret = reply.n ? json_loadb(reply.p, reply.n, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &why)
                       : json_null();
        if (*ret == NULL)
            r = err_set(err, ERR_UPSTREAM, "the daemon's answer is not JSON: %s", why.text);
    }
    buf_free(&in);
    free(text);
    return r;
}

int api_call(const char *sock, const char *method, const char *path, const json_t *body,
             json_t **ret, struct err *err)
{
    return call(sock, method, path, body, false, ret, err);
}

/* Those there are, where another was named. */
static void say_policies(const char *sock)
{
    struct err err = {0};
    char text[1200] = "", clean[80];
    size_t i, at = 0;
    const json_t *o;
    json_t *list = which_list(sock, WHICH_POLICY, &err);
    json_array_foreach(list, i, o) if (at < sizeof text - sizeof clean) at +=
        (size_t)snprintf(text + at, sizeof text - at, "%s%s", at ? ", " : "",
                         out_clean(out_member(o, "name"), clean, sizeof clean));
    json_decref(list);
    if (at)
        out_error("the policies of its configuration are: %s", text);
}

int api_print(const struct args *a, const char *method, const char *path, const json_t *body,
              void (*print)(const json_t *reply))
{
    struct err err = {0};
    json_t *reply = NULL;
    if (api_call(a->socket, method, path, body, &reply, &err) < 0) {
        (void)out_fail(&err);
        if (slice_starts(slice_str(err.text), SLICE("there is no policy '")))
            say_policies(a->socket);
        return EXIT_NO;
    }
    if (a->json) /* an answer without a body */
        return out_json(reply ? reply : json_object()) < 0 ? EXIT_NO : EXIT_OK;
    if (print)
        print(reply);
    json_decref(reply);
    return out_flush() < 0 ? EXIT_NO : EXIT_OK;
}

int api_await(const char *sock, const char *method, const char *path, const json_t *body,
              json_t **ret, struct err *err)
{
    return call(sock, method, path, body, true, ret, err);
}

void api_print_id(const json_t *reply)
{
    printf("%s\n", out_member(reply, "id"));
}

void api_print_name(const json_t *reply)
{
    printf("%s\n", out_member(reply, "name"));
}

void api_quote(struct buf *to, const char *text)
{
    static const char hex[] = "0123456789ABCDEF";
    int bad = 0;
    for (const unsigned char *p = (const unsigned char *)text; *p; p++) {
        char c[3] = {'%', hex[*p >> 4], hex[*p & 15]};
        bool plain = ascii_is_alnum((char)*p) || strchr("-._~/", *p);
        bad |= plain ? buf_append(to, p, 1) : buf_append(to, c, 3);
    }
    if (bad)
        buf_clear(to); /* out of memory: an empty target is refused */
}
