/* Answers the API server by what the compiler says: a Policy that would not load is refused where
 * it is applied, with the place and the reason. */
#include "kube_review.h"

#include <event2/buffer.h>
#include <event2/bufferevent_ssl.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/util.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base64.h"
#include "io.h"
#include "kube_file.h"

enum {
    BODY_MAX = 3 << 20, /* etcd's own bound is 1.5 MiB, and the old object comes along */
    HEAD_MAX = 16 * 1024,
    TIMEOUT_S = 10,
    CONNECTIONS_MAX = 64,
    RENEW_S = 30 * 86400, /* of the 90 days that a certificate lasts */
    AGAIN_S = 10,
    CERT_TEXT_MAX = 8192,
};

struct listener {
    const struct kube_review *asked;
    struct event_base *base;
    struct evhttp *http;
    SSL_CTX *tls;
    struct event *renew;
};

/* ---- the question ---- */

static json_t *read_body(struct evhttp_request *req)
{
    struct evbuffer *in = evhttp_request_get_input_buffer(req);
    size_t n = evbuffer_get_length(in);
    const unsigned char *p = evbuffer_pullup(in, -1);
    return p ? json_loadb((const char *)p, n, JSON_REJECT_DUPLICATES, NULL) : NULL;
}

static void send_answer(struct evhttp_request *req, json_t *answer)
{
    char *text = answer ? json_dumps(answer, JSON_COMPACT) : NULL;
    struct evbuffer *out = text ? evbuffer_new() : NULL;
    evhttp_add_header(evhttp_request_get_output_headers(req), "Content-Type", "application/json");
    if (out && evbuffer_add(out, text, strlen(text)) == 0)
        evhttp_send_reply(req, 200, "OK", out);
    else
        evhttp_send_reply(req, 400, "Bad Request", NULL);
    if (out)
        evbuffer_free(out);
    free(text);
    json_decref(answer);
}

/* Whoever reaches the listener learns what the compiler says of a text of his own, and nothing
 * else. */
static void on_request(struct evhttp_request *req, void *arg)
{
    const struct listener *d = arg;
    struct err err = {0};
    struct buf text;
    if (evhttp_request_get_command(req) != EVHTTP_REQ_POST) {
        evhttp_send_reply(req, 405, "Method Not Allowed", NULL);
        return;
    }
    json_t *asked = read_body(req);
    int bad = kube_file_read(d->asked->config, &text, &err);
    struct kube_base base = {d->asked->config, buf_slice(&text)};
    send_answer(req, kube_review_answer(bad ? NULL : &base, asked));
    buf_free(&text);
    json_decref(asked);
}

/* ---- the listener ---- */

static struct bufferevent *on_accept(struct event_base *base, void *arg)
{
    const struct listener *d = arg;
    SSL *ssl = SSL_new(d->tls);
    struct bufferevent *b =
        ssl ? bufferevent_openssl_socket_new(base, -1, ssl, BUFFEREVENT_SSL_ACCEPTING,
                                             BEV_OPT_CLOSE_ON_FREE)
            : NULL;
    if (b)
        bufferevent_openssl_set_allow_dirty_shutdown(b, 1);
    else
        SSL_free(ssl);
    return b; /* NULL: in clear, which no API server speaks and on_request tells nobody anything by
               */
}

/* A new certificate counts as soon as the API server knows it; until then it has none to ask by. */
static int introduce(struct listener *d, struct err *err)
{
    const struct kube_review *r = d->asked;
    char path[512];
    struct buf ca;
    json_t *said = NULL;
    char *pem = kube_cert(d->tls, r->name, err);
    if (pem == NULL)
        return -1;
    buf_init(&ca, CERT_TEXT_MAX);
    int n = base64_append(&ca, slice_str(pem));
    free(pem);
    snprintf(path, sizeof path,
             "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/%s",
             r->webhook);
    json_t *body = n < 0 ? NULL
                         : json_pack("[{s:s, s:s, s:s%}]", "op", "add", "path",
                                     "/webhooks/0/clientConfig/caBundle", "value",
                                     (const char *)buf_data(&ca), buf_len(&ca));
    struct kube_request q = {"PATCH", path, "application/json-patch+json", body};
    int bad = body ? kube_must(r->kube, &q, &said, err)
                   : err_set(err, ERR_INTERNAL, "the certificate is too long");
    json_decref(said);
    json_decref(body);
    buf_free(&ca);
    return bad;
}

static void on_renew(evutil_socket_t fd, short what, void *arg)
{
    struct listener *d = arg;
    struct err err = {0};
    struct timeval next = {RENEW_S, 0};
    (void)fd;
    (void)what;
    if (introduce(d, &err) < 0) {
        fprintf(stderr, "durward-kubernetes: %s\n", err.text);
        next.tv_sec = AGAIN_S;
    } else {
        fprintf(stderr, "durward-kubernetes: policies are judged at %s\n", d->asked->listen);
    }
    event_add(d->renew, &next);
}

static int open_socket(const char *where, struct err *err)
{
    struct sockaddr_storage at = {0};
    int n = sizeof at, one = 1;
    if (evutil_parse_sockaddr_port(where, (struct sockaddr *)&at, &n) < 0)
        return err_set(err, ERR_PARSE, "'%.100s' is not ADDRESS:PORT", where);
    int fd = socket(at.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) == 0 &&
        bind(fd, (struct sockaddr *)&at, (socklen_t)n) == 0 && listen(fd, CONNECTIONS_MAX) == 0)
        return fd;
    err_sys(err, "cannot listen at %s", where);
    if (fd >= 0)
        evutil_closesocket(fd);
    return -1;
}

static int make(struct listener *d, struct err *err)
{
    int fd = open_socket(d->asked->listen, err);
    if (fd < 0)
        return -1;
    d->base = event_base_new();
    d->tls = io_tls_server_ctx(false);
    d->http = d->base ? evhttp_new(d->base) : NULL;
    d->renew = d->base ? evtimer_new(d->base, on_renew, d) : NULL;
    if (!d->http || !d->tls || !d->renew || evhttp_accept_socket(d->http, fd) < 0) {
        evutil_closesocket(fd);
        return err_set(err, ERR_INTERNAL, "out of memory");
    }
    SSL_CTX_set_read_ahead(d->tls, 0); /* libevent would not ask for a record that is here */
    io_tls_choose(d->tls, IO_TLS_HTTP1);
    evhttp_set_bevcb(d->http, on_accept, d);
    evhttp_set_max_body_size(d->http, BODY_MAX);
    evhttp_set_max_headers_size(d->http, HEAD_MAX);
    evhttp_set_timeout(d->http, TIMEOUT_S);
    evhttp_set_allowed_methods(d->http, EVHTTP_REQ_POST);
    evhttp_set_gencb(d->http, on_request, d);
    return 0;
}

int kube_review(const struct kube_review *r, struct err *err)
{
    struct listener d = {.asked = r};
    int bad = make(&d, err);
    if (bad == 0) {
        on_renew(-1, 0, &d);
        event_base_dispatch(d.base);
        bad = err_set(err, ERR_INTERNAL, "the listener is shut");
    }
    if (d.renew)
        event_free(d.renew);
    if (d.http)
        evhttp_free(d.http);
    SSL_CTX_free(d.tls);
    if (d.base)
        event_base_free(d.base);
    return bad;
}
