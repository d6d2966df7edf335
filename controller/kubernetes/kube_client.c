/* Connects to the API server, sends one request, and reads what it says to its end. */
#include "kube_client.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base64.h"
#include "io.h"
#include "reach.h"

enum { TOKEN_MAX = 16 * 1024, HEAD_MAX = 64 * 1024, TIMEOUT_S = 20, STREAMS_MAX = 4 };
enum { UPGRADE_MAX = 800 * 1024 }; /* a command is in it */
enum {
    CONNECT_S = 2, /* to be there again soon after a link is */
    ALIVE_S = 1,   /* of silence, and between two of */
    ALIVE_TIMES = 2,
};
enum {
    PAGE = 500,      /* objects */
    PAGE_LEAST = 4,  /* where they are large: four of etcd's largest fit an answer */
    PAGES_MAX = 800, /* of a list: more pods than a cluster may have */
    NEXT_MAX = 1024,
};

/* ---- where it is ---- */

int kube_init(struct kube *k, const char *where, const char *ca, const char *token, struct err *err)
{
    *k = (struct kube){.token = token};
    if (authority_parse(&k->at, SCHEME_HTTPS, slice_str(where)) < 0)
        return err_set(err, ERR_PARSE, "'%.200s' is not HOST:PORT of an API server", where);
    k->tls = io_tls_client_ctx();
    if (k->tls == NULL)
        return err_set(err, ERR_INTERNAL, "out of memory");
    if (SSL_CTX_load_verify_locations(k->tls, ca, NULL) != 1)
        return err_set(err, ERR_PARSE, "%s: no certificates there", ca);
    SSL_CTX_set_read_ahead(k->tls, 0); /* poll would not tell of a record that is here already */
    return 0;
}

void kube_done(struct kube *k)
{
    SSL_CTX_free(k->tls);
    k->tls = NULL;
}

static int greet(const struct kube *k, struct kube_stream *s, struct err *err)
{
    s->ssl = SSL_new(k->tls);
    if (s->ssl == NULL)
        return err_set(err, ERR_INTERNAL, "out of memory");
    enum reach_tls got = reach_tls(s->ssl, s->fd, &k->at);
    if (got == REACH_TLS_GOOD)
        return 0;
    return got == REACH_TLS_UNTRUSTED
               ? err_set(err, ERR_DENIED, "the API server's certificate is not good: %s",
                         X509_verify_cert_error_string(SSL_get_verify_result(s->ssl)))
               : err_set(err, ERR_UNREADY, "%s:%u does not speak TLS with us", k->at.host,
                         (unsigned)k->at.port);
}

/* ---- a request ---- */

static int put_token(const struct kube *k, struct buf *b, struct err *err)
{
    char text[TOKEN_MAX];
    int fd = open(k->token, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (n < 0)
        err_sys(err, "%s", k->token);
    if (fd >= 0)
        close(fd);
    if (n < 0)
        return -1;
    text[n] = '\0';
    text[strcspn(text, "\r\n")] = '\0';
    bool good = text[0] != '\0';
    for (const char *p = text; *p; p++)
        good = good && (ascii_is_alnum(*p) || strchr("-._~", *p));
    int r = good ? buf_printf(b, "Authorization: Bearer %s\r\n", text)
                 : err_set(err, ERR_PARSE, "%s holds no token", k->token);
    explicit_bzero(text, sizeof text);
    return r;
}

static int push(SSL *ssl, struct slice s, struct err *err)
{
    while (s.n > 0) {
        int n = SSL_write(ssl, s.p, s.n > 1 << 20 ? 1 << 20 : (int)s.n);
        if (n <= 0)
            return err_set(err, ERR_UNREADY, "the API server hung up");
        s.p += n;
        s.n -= (size_t)n;
    }
    return 0;
}

static int send_request(const struct kube *k, struct kube_stream *s, const struct kube_request *q,
                        struct err *err)
{
    struct buf head;
    char host[HOST_TEXT_MAX + 16];
    char *body = q->body ? json_dumps(q->body, JSON_COMPACT) : NULL;
    buf_init_wiped(&head, HEAD_MAX);
    int r =
        q->body && body == NULL
            ? -1
            : buf_printf(&head, "%s %s HTTP/1.0\r\nHost: %s\r\nAccept: application/json%s%s\r\n",
                         q->method, q->path, authority_text(&k->at, host, sizeof host),
                         q->as ? ";as=" : "", q->as ? q->as : "");
    if (r == 0)
        r = put_token(k, &head, err);
    if (r == 0 && body)
        r = buf_printf(&head, "Content-Type: %s\r\nContent-Length: %zu\r\n", q->type, strlen(body));
    if (r == 0)
        r = buf_append_str(&head, "\r\n");
    if (r < 0 && err->code == ERR_NONE)
        err_set(err, ERR_INTERNAL, "out of memory");
    if (r == 0)
        r = push(s->ssl, buf_slice(&head), err);
    if (r == 0 && body)
        r = push(s->ssl, slice_str(body), err);
    buf_free(&head);
    free(body);
    return r;
}

/* ---- its answer ---- */

/* 1: more came; 0: the end. */
static int take(SSL *ssl, struct buf *b, struct err *err)
{
    unsigned char *to = buf_reserve(b, 16 * 1024);
    if (to == NULL)
        return err_set(err, ERR_LIMIT, "the API server's answer is too long");
    ERR_clear_error();
    int n = SSL_read(ssl, to, 16 * 1024);
    if (n > 0) {
        buf_commit(b, (size_t)n);
        return 1;
    }
    if (SSL_get_error(ssl, n) == SSL_ERROR_WANT_READ)
        return err_set(err, ERR_UNREADY, "the API server did not answer in time");
    return 0; /* whether it is whole is seen by what came */
}

/* The head stays in the buffer: its status, or -1. end: how many bytes it has. */
static int await_head(SSL *ssl, struct buf *b, size_t *size, struct err *err)
{
    ssize_t end;
    uint64_t status;
    int r = 1;
    while ((end = slice_find_slice(buf_slice(b), SLICE("\r\n\r\n"))) < 0 && r == 1 &&
           buf_len(b) < HEAD_MAX)
        r = take(ssl, b, err);
    struct slice all = buf_slice(b);
    if (r < 0)
        return -1;
    if (end < 12 || !slice_starts(all, SLICE("HTTP/1.")) ||
        slice_u64((struct slice){all.p + 9, 3}, 599, &status) < 0)
        return err_set(err, ERR_UPSTREAM, "what answers is not an API server");
    *size = (size_t)end + 4;
    return (int)status;
}

/* It is taken out of the buffer. */
static int take_head(SSL *ssl, struct buf *b, struct err *err)
{
    size_t size;
    int status = await_head(ssl, b, &size, err);
    if (status > 0)
        buf_drain(b, size);
    return status;
}

static void hang_up(struct kube_stream *s)
{
    SSL_free(s->ssl);
    if (s->fd >= 0)
        close(s->fd);
    *s = (struct kube_stream){.fd = -1};
}

static int set(int fd, int level, int option, int value)
{
    return setsockopt(fd, level, option, &value, sizeof value);
}

/* Whether the other end is there the kernel asks it where nothing is said: a watch that a cut link
 * has ended is not waited for, and what was taken away meanwhile is known soon after its return. */
static int connected(const struct kube *k, struct err *err)
{
    struct timeval limit = {.tv_sec = k->seconds ? k->seconds : TIMEOUT_S};
    int fd = reach_tcp(&k->at, CONNECT_S, "API server", err);
    if (fd < 0 || (setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit) == 0 &&
                   setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) == 0 &&
                   set(fd, SOL_SOCKET, SO_KEEPALIVE, 1) == 0 &&
                   set(fd, IPPROTO_TCP, TCP_KEEPIDLE, ALIVE_S) == 0 &&
                   set(fd, IPPROTO_TCP, TCP_KEEPINTVL, ALIVE_S) == 0 &&
                   set(fd, IPPROTO_TCP, TCP_KEEPCNT, ALIVE_TIMES) == 0))
        return fd;
    close(fd);
    return err_sys(err, "a connection to the API server");
}

static int begin(const struct kube *k, const struct kube_request *q, struct kube_stream *s,
                 struct buf *b, struct err *err)
{
    *s = (struct kube_stream){.fd = connected(k, err)};
    int r = s->fd < 0 || greet(k, s, err) < 0 || send_request(k, s, q, err) < 0
                ? -1
                : take_head(s->ssl, b, err);
    if (r < 0)
        hang_up(s);
    return r;
}

int kube_ask(const struct kube *k, const struct kube_request *q, int *status, json_t **ret,
             struct err *err)
{
    struct kube_stream s;
    struct buf b;
    int more = 1;
    *ret = NULL;
    buf_init(&b, KUBE_ANSWER_MAX);
    *status = begin(k, q, &s, &b, err);
    while (*status > 0 && more == 1)
        more = take(s.ssl, &b, err);
    if (*status > 0 && more == 0) {
        *ret = json_loadb((const char *)buf_data(&b), buf_len(&b),
                          JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);
        if (*ret == NULL)
            err_set(err, ERR_UPSTREAM, "the API server's answer to %s is not whole", q->path);
    }
    if (*status > 0)
        hang_up(&s);
    buf_free(&b);
    return *ret ? 0 : -1;
}

int kube_must(const struct kube *k, const struct kube_request *q, json_t **ret, struct err *err)
{
    int status;
    if (kube_ask(k, q, &status, ret, err) < 0)
        return -1;
    if (status / 100 == 2)
        return 0;
    const char *said = json_string_value(json_object_get(*ret, "message"));
    err_set(err, status == 401 || status == 403 ? ERR_DENIED : ERR_UPSTREAM, "%s %s: %d %.400s",
            q->method, q->path, status, said ? said : "");
    json_decref(*ret);
    *ret = NULL;
    return -1;
}

/* ---- lists ---- */

/* What the next page is asked by; "" after the last one. */
static int read_next(const json_t *page, const char *path, char next[NEXT_MAX], struct err *err)
{
    static const char may[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_=";
    const char *said =
        json_string_value(json_object_get(json_object_get(page, "metadata"), "continue"));
    size_t n = said ? strlen(said) : 0;
    if (n >= NEXT_MAX || (said && strspn(said, may) != n) ||
        !json_is_array(json_object_get(page, "items")))
        return err_set(err, ERR_UPSTREAM, "the list of %s is malformed", path);
    snprintf(next, NEXT_MAX, "%s", said ? said : "");
    return 0;
}

int kube_pages(const struct kube *k, const char *path, const char *as,
               int (*on)(const json_t *page, void *arg, struct err *err), void *arg,
               struct err *err)
{
    char next[NEXT_MAX] = "", at[NEXT_MAX + 768];
    unsigned limit = PAGE;
    for (unsigned i = 0; i < PAGES_MAX; i++) {
        json_t *page;
        snprintf(at, sizeof at, "%s%climit=%u%s%s", path, strchr(path, '?') ? '&' : '?', limit,
                 next[0] ? "&continue=" : "", next);
        struct kube_request q = {.method = "GET", .path = at, .as = as};
        if (kube_must(k, &q, &page, err) < 0) {
            if (err->code != ERR_LIMIT || limit <= PAGE_LEAST)
                return -1;
            limit = limit / 4 > PAGE_LEAST ? limit / 4 : PAGE_LEAST;
            *err = (struct err){0};
            continue;
        }
        int r = read_next(page, path, next, err) < 0 ? -1 : on(page, arg, err);
        json_decref(page);
        if (r < 0 || next[0] == '\0')
            return r;
    }
    return err_set(err, ERR_LIMIT, "the list of %.200s is too long", path);
}

/* ---- watches ---- */

int kube_watch(const struct kube *k, const char *path, struct kube_stream *s, struct err *err)
{
    struct kube_request q = {.method = "GET", .path = path};
    struct buf b;
    buf_init(&b, HEAD_MAX + 64 * 1024);
    int status = begin(k, &q, s, &b, err);
    if (status > 0) {
        s->said = buf_len(&b) > 0 || SSL_pending(s->ssl) > 0;
        if (status != 200 || fcntl(s->fd, F_SETFL, O_NONBLOCK) < 0) {
            hang_up(s);
            status = err_set(err, ERR_UPSTREAM, "the API server lets nobody watch: %d", status);
        }
    }
    buf_free(&b);
    return status < 0 ? -1 : 0;
}

void kube_unwatch(struct kube_stream *s)
{
    hang_up(s);
}

static int64_t seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec;
}

/* 1: it said something; 0: nothing yet; -1: it has ended. */
static int heard(struct kube_stream *s)
{
    char text[4096];
    if (s->said)
        return 1;
    ERR_clear_error();
    int n = SSL_read(s->ssl, text, sizeof text);
    if (n > 0)
        return 1;
    return SSL_get_error(s->ssl, n) == SSL_ERROR_WANT_READ ? 0 : -1;
}

bool kube_wait(struct kube_stream *list, size_t n, unsigned limit)
{
    struct pollfd p[STREAMS_MAX];
    int64_t end = seconds() + limit;
    for (;;) {
        for (size_t i = 0; i < n && i < STREAMS_MAX; i++) {
            int r = heard(&list[i]);
            if (r != 0)
                return r > 0;
            p[i] = (struct pollfd){.fd = list[i].fd, .events = POLLIN};
        }
        int64_t left = end - seconds();
        if (left <= 0 || (poll(p, n, (int)left * 1000) < 0 && errno != EINTR))
            return false;
    }
}

/* ---- WebSockets ---- */

static int send_upgrade(const struct kube *k, SSL *ssl, const char *path, const char *protocol,
                        struct err *err)
{
    struct buf head;
    char host[HOST_TEXT_MAX + 16];
    unsigned char nonce[16];
    buf_init_wiped(&head, UPGRADE_MAX);
    int r = RAND_bytes(nonce, sizeof nonce) != 1
                ? -1
                : buf_printf(&head,
                             "GET %s HTTP/1.1\r\nHost: %s\r\nConnection: Upgrade\r\n"
                             "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
                             "Sec-WebSocket-Protocol: %s\r\nSec-WebSocket-Key: ",
                             path, authority_text(&k->at, host, sizeof host), protocol);
    if (r == 0)
        r = base64_append(&head, (struct slice){(char *)nonce, sizeof nonce});
    if (r == 0)
        r = buf_append_str(&head, "\r\n");
    if (r < 0)
        err_set(err, ERR_LIMIT, "the request is too long");
    if (r == 0)
        r = put_token(k, &head, err);
    if (r == 0 && buf_append_str(&head, "\r\n") < 0)
        r = err_set(err, ERR_LIMIT, "the request is too long");
    if (r == 0)
        r = push(ssl, buf_slice(&head), err);
    buf_free(&head);
    return r;
}

/* A line of the head: the subprotocol that the server has chosen. */
static bool has_protocol(struct slice head, const char *protocol)
{
    static const struct slice name = SLICE_INIT("sec-websocket-protocol:");
    while (head.n > 0) {
        ssize_t end = slice_find(head, '\n');
        struct slice line = {head.p, end < 0 ? head.n : (size_t)end};
        if (line.n > 0 && line.p[line.n - 1] == '\r')
            line.n--;
        if (line.n > name.n && slice_ieq((struct slice){line.p, name.n}, name))
            return slice_eq_str(slice_trim((struct slice){line.p + name.n, line.n - name.n}),
                                protocol);
        size_t used = end < 0 ? head.n : (size_t)end + 1;
        head.p += used;
        head.n -= used;
    }
    return false;
}

/* What a Status says, wherever it lies in what came. */
static int refuse_upgrade(SSL *ssl, int status, struct buf *b, struct err *err)
{
    struct err ignored = {0};
    ssize_t at;
    json_t *v = NULL;
    for (int more = 1; more == 1 && v == NULL;) {
        struct slice came = buf_slice(b);
        at = slice_find(came, '{');
        if (at >= 0)
            v = json_loadb(came.p + at, came.n - (size_t)at, JSON_DISABLE_EOF_CHECK, NULL);
        if (v == NULL)
            more = take(ssl, b, &ignored);
    }
    const char *said = json_string_value(json_object_get(v, "message"));
    err_set(err, status == 401 || status == 403 ? ERR_DENIED : ERR_UPSTREAM,
            "the cluster does not let us into the pod: %d %.300s", status, said ? said : "");
    json_decref(v);
    return -1;
}

int kube_upgrade(const struct kube *k, const char *path, const char *protocol,
                 struct kube_stream *s, struct buf *rest, struct err *err)
{
    size_t size = 0;
    *s = (struct kube_stream){
        .fd = reach_tcp(&k->at, k->seconds ? k->seconds : TIMEOUT_S, "API server", err)};
    int status =
        s->fd < 0 || greet(k, s, err) < 0 || send_upgrade(k, s->ssl, path, protocol, err) < 0
            ? -1
            : await_head(s->ssl, rest, &size, err);
    struct slice head = {(const char *)buf_data(rest), size};
    bool ours = status == 101 && has_protocol(head, protocol);
    if (status > 0)
        buf_drain(rest, size);
    if (status > 0 && status != 101)
        status = refuse_upgrade(s->ssl, status, rest, err);
    else if (status > 0 && !ours)
        status = err_set(err, ERR_UPSTREAM, "the API server does not speak %s (Kubernetes 1.30)",
                         protocol);
    if (status < 0)
        hang_up(s);
    return status < 0 ? -1 : 0;
}

/* ---- events ---- */

static void read_events(struct buf *b, void (*on)(const json_t *event, void *arg), void *arg)
{
    ssize_t end;
    while ((end = slice_find(buf_slice(b), '\n')) >= 0) {
        json_t *event = json_loadb((const char *)buf_data(b), (size_t)end,
                                   JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);
        on(event, arg);
        json_decref(event);
        buf_drain(b, (size_t)end + 1);
    }
}

int kube_listen(const struct kube *k, const struct kube_request *q, struct kube_stream *s,
                struct buf *b, int *status, struct err *err)
{
    *status = begin(k, q, s, b, err);
    if (*status < 0 || fcntl(s->fd, F_SETFL, O_NONBLOCK) == 0)
        return *status < 0 ? -1 : 0;
    hang_up(s);
    return err_sys(err, "a watch");
}

int kube_heard(struct kube_stream *s, struct buf *b, void (*on)(const json_t *event, void *arg),
               void *arg)
{
    for (;;) {
        read_events(b, on, arg);
        unsigned char *to = buf_reserve(b, 16 * 1024);
        if (to == NULL)
            return -1;
        ERR_clear_error();
        int n = SSL_read(s->ssl, to, 16 * 1024);
        if (n <= 0) {
            buf_shrink(b);
            return SSL_get_error(s->ssl, n) == SSL_ERROR_WANT_READ;
        }
        buf_commit(b, (size_t)n);
    }
}

int kube_follow(const struct kube *k, const char *path, unsigned seconds,
                void (*on)(const json_t *event, void *arg), void *arg, struct err *err)
{
    struct kube_request q = {.method = "GET", .path = path};
    struct timeval limit = {.tv_sec = seconds};
    struct kube_stream s;
    struct buf b;
    buf_init(&b, KUBE_ANSWER_MAX);
    int status = begin(k, &q, &s, &b, err), more = status == 200;
    if (status > 0 && status != 200)
        err_set(err, ERR_UPSTREAM, "the API server lets nobody watch: %d", status);
    if (more && setsockopt(s.fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) < 0)
        more = err_sys(err, "a watch");
    while (more == 1) {
        read_events(&b, on, arg);
        more = take(s.ssl, &b, err);
    }
    if (status > 0)
        hang_up(&s);
    buf_free(&b);
    return status == 200 && more == 0 ? 0 : -1;
}
