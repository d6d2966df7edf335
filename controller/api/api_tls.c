/* The API over TLS, for clients elsewhere: a certificate of our CA, and with each request a token
 * (bearer.h).
 *
 * libevent's HTTP server holds a whole body before anybody may look at its head. So the first head
 * of each connection is read here as it comes in: without a good token in it no body is taken
 * that is larger than a refusal needs. */
#include "api_internal.h"

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/bufferevent_ssl.h>
#include <event2/listener.h>
#include <openssl/ssl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <netinet/in.h>
#include <strings.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <time.h>

#include "bearer.h"
#include "buf.h"
#include "fleet_notes.h"
#include "io.h"
#include "mint_client.h"

enum {
    CONNECTIONS_MAX = 512,
    UNKNOWN_SECONDS = 10, /* from accept to a head with a good token, */
    UNKNOWN_SHARE =
        128, /* and so many connections of one address (IPv6: /64) that have shown none */
    BODY_UNKNOWN_MAX = 64 * 1024, /* of who shows no good token */
    MINTS = 10,
};

struct tls_listener {
    struct api *api;
    struct evhttp *http;
    struct evconnlistener *listener;
    SSL_CTX *tls;
    struct mint_client *mint;
    struct mint_wait *waits; /* NULL: nothing is asked for */
    struct event *beat, *look;
    LIST_HEAD(, tls_client) tls_clients; /* the newest first */
    char *name;
    int place;  /* of a knock in its SSL */
    unsigned n; /* connections */
    bool has_leaf;
    unsigned refused; /* requests without a good token that are not recorded yet */
};

/* A connection; it lives as long as its SSL. */
struct tls_client {
    struct tls_listener *listener; /* NULL: gone before it; libevent frees its connections later */
    struct bufferevent *bev;
    struct buf head; /* the first, as it comes in */
    bool done;
    bool unknown; /* it has shown no good token */
    bool shut;
    time_t since;          /* monotonic */
    unsigned char from[8]; /* see address_of; zeros: not looked at */
    LIST_ENTRY(tls_client) link;
    char token[BEARER_ID_MAX + 1]; /* of the last request */
};

static void settle(struct tls_listener *d)
{
    if (d->has_leaf && d->n < CONNECTIONS_MAX)
        evconnlistener_enable(d->listener);
    else
        evconnlistener_disable(d->listener);
}

/* ---- the certificate ---- */

static void on_leaf(void *arg, const struct leaf *leaf, const struct err *err UNUSED)
{
    struct tls_listener *d = arg;
    d->waits = NULL;
    d->has_leaf = leaf != NULL;
    settle(d);
}

static void use_leaf(void *arg, const struct leaf *leaf, const struct err *err UNUSED)
{
    SSL **ssl = arg;
    if (leaf && leaf_use(leaf, *ssl) == 0)
        *ssl = NULL;
}

/* 1: go on; 0: not with us. The leaf is there before anybody is let in. */
static int on_cert(SSL *ssl, void *arg)
{
    struct tls_listener *d = arg;
    const char *wanted = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);
    if (wanted && strcasecmp(wanted, d->name) != 0)
        return 0;
    struct mint_wait *w = mint_client_get(d->mint, d->name, use_leaf, &ssl);
    if (w)
        mint_client_cancel(w);
    return ssl == NULL;
}

/* ---- the first head ---- */

static struct slice slice_from(struct slice s, size_t n)
{
    return (struct slice){s.p + n, s.n - n};
}

static bool is_field(struct slice line, const char *name)
{
    size_t n = strlen(name);
    return line.n > n && strncasecmp((const char *)line.p, name, n) == 0 && line.p[n] == ':';
}

static bool is_good_token(const struct tls_listener *d, struct slice value)
{
    char text[BEARER_TEXT_MAX];
    value = slice_trim(value);
    if (!slice_starts(value, SLICE("Bearer ")) || value.n - 7 >= sizeof text ||
        memchr(value.p, 0, value.n))
        return false;
    memcpy(text, value.p + 7, value.n - 7);
    text[value.n - 7] = 0;
    bool good = bearer_check(d->api->bearers, text) != NULL;
    explicit_bzero(text, sizeof text);
    return good;
}

/* ---- who has shown none ---- */

static time_t seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec;
}

static void shut(struct tls_client *k)
{
    k->shut = true;
    (void)shutdown(bufferevent_getfd(k->bev), SHUT_RDWR); /* its end is seen at once */
}

/* What one that wants to hold many connections has one of: an IPv4 address, half an IPv6 one. */
static void address_of(struct tls_client *k)
{
    struct sockaddr_storage ss = {0};
    socklen_t n = sizeof ss;
    const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)&ss;
    const struct sockaddr_in *four = (const struct sockaddr_in *)&ss;
    if (getpeername(bufferevent_getfd(k->bev), (struct sockaddr *)&ss, &n) < 0)
        memset(k->from, 0xff, sizeof k->from);
    else if (ss.ss_family == AF_INET6 && !IN6_IS_ADDR_V4MAPPED(&six->sin6_addr))
        memcpy(k->from, &six->sin6_addr, sizeof k->from);
    else {
        memcpy(k->from, "v4->", 4);
        memcpy(k->from + 4,
               ss.ss_family == AF_INET6 ? (const void *)&six->sin6_addr.s6_addr[12]
                                        : (const void *)&four->sin_addr,
               4);
    }
}

/* Those that came since we looked last: libevent tells of a connection before it has its socket. */
static void on_look(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
    static const unsigned char none[sizeof(struct tls_client){0}.from];
    struct tls_listener *d = arg;
    struct tls_client *k, *other;
    LIST_FOREACH(k, &d->tls_clients, link)
    {
        unsigned n = 0;
        if (!k->unknown || memcmp(k->from, none, sizeof none) != 0)
            continue;
        address_of(k);
        LIST_FOREACH(other, &d->tls_clients, link)
        n += other->unknown && !other->shut && memcmp(other->from, k->from, sizeof none) == 0;
        if (n > UNKNOWN_SHARE)
            shut(k);
    }
}

static void end_late(struct tls_listener *d)
{
    struct tls_client *k;
    time_t now = seconds();
    LIST_FOREACH(k, &d->tls_clients, link)
    if (k->unknown && !k->shut && now - k->since >= UNKNOWN_SECONDS)
        shut(k);
}

/* May the request behind this head come in? head: without its last two line ends. */
static bool may_come_in(struct tls_client *k, struct slice head)
{
    const struct tls_listener *d = k->listener;
    unsigned tokens = 0;
    bool good = false, large = false;
    uint64_t length;
    while (head.n > 0) {
        ssize_t end = slice_find(head, '\n');
        struct slice line = {head.p, end < 0 ? head.n : (size_t)end};
        head = slice_from(head, end < 0 ? head.n : (size_t)end + 1);
        if (line.n && line.p[line.n - 1] == '\r')
            line.n--;
        if (is_field(line, "authorization")) {
            tokens++;
            good = is_good_token(d, slice_from(line, strlen("authorization:")));
        } else if (is_field(line, "content-length")) {
            large |= slice_u64(slice_trim(slice_from(line, strlen("content-length:"))),
                               BODY_UNKNOWN_MAX, &length) < 0;
        } else if (is_field(line, "transfer-encoding") ||
                   (line.n && (line.p[0] == ' ' || line.p[0] == '\t'))) {
            large = true;
        }
    }
    if (tokens == 1 && good)
        k->unknown = false;
    return !k->unknown || !large;
}

static void on_bytes(struct evbuffer *in, const struct evbuffer_cb_info *info, void *arg)
{
    struct tls_client *k = arg;
    struct evbuffer_ptr at;
    size_t n = info->n_added;
    if (k->done || n == 0 || k->listener == NULL)
        return;
    unsigned char *p = buf_reserve(&k->head, n);
    bool ok = p && evbuffer_ptr_set(in, &at, evbuffer_get_length(in) - n, EVBUFFER_PTR_SET) == 0 &&
              evbuffer_copyout_from(in, &at, p, n) == (ssize_t)n;
    ssize_t end = -1;
    if (ok) {
        buf_commit(&k->head, n);
        end = slice_find_slice(buf_slice(&k->head), SLICE("\r\n\r\n"));
        if (end < 0 && buf_len(&k->head) < API_HEAD_MAX)
            return;
    }
    k->done = true;
    if (end < 0 || !may_come_in(k, (struct slice){buf_slice(&k->head).p, (size_t)end}))
        shut(k);
    buf_free(&k->head);
}

/* ---- connections ---- */

static void on_ssl_free(void *parent UNUSED, void *p, CRYPTO_EX_DATA *ad UNUSED, int idx UNUSED,
                        long argl UNUSED, void *argp UNUSED)
{
    struct tls_client *k = p;
    if (k == NULL)
        return;
    if (k->listener) {
        LIST_REMOVE(k, link);
        k->listener->n--;
        if (k->listener->listener)
            settle(k->listener);
    }
    buf_free(&k->head);
    free(k);
}

/* Without a bufferevent of ours libevent would go on in clear: on_request refuses such. */
static struct bufferevent *on_accept(struct event_base *base, void *arg)
{
    struct tls_listener *d = arg;
    struct tls_client *k = calloc(1, sizeof *k);
    SSL *ssl = k ? SSL_new(d->tls) : NULL;
    if (ssl == NULL || SSL_set_ex_data(ssl, d->place, k) != 1) {
        SSL_free(ssl);
        free(k);
        return NULL;
    }
    k->listener = d;
    k->since = seconds();
    k->unknown = true;
    LIST_INSERT_HEAD(&d->tls_clients, k, link);
    event_active(d->look, EV_TIMEOUT, 0);
    buf_init_wiped(&k->head, API_HEAD_MAX + 64 * 1024);
    d->n++; /* until on_ssl_free */
    settle(d);
    k->bev = bufferevent_openssl_socket_new(base, -1, ssl, BUFFEREVENT_SSL_ACCEPTING,
                                            BEV_OPT_CLOSE_ON_FREE);
    if (k->bev == NULL) {
        SSL_free(ssl);
        return NULL;
    }
    bufferevent_openssl_set_allow_dirty_shutdown(k->bev, 1);
    if (evbuffer_add_cb(bufferevent_get_input(k->bev), on_bytes, k) == NULL) {
        bufferevent_free(k->bev);
        return NULL;
    }
    return k->bev;
}

/* ---- requests ---- */

/* Our name, with or without a port: it may be reached through another one. */
static bool from_a_client(const struct tls_listener *d, struct evhttp_request *req)
{
    struct evkeyvalq *h = evhttp_request_get_input_headers(req);
    const char *host = evhttp_find_header(h, "Host");
    bool six = strchr(d->name, ':') != NULL;
    size_t n = strlen(d->name);
    if (evhttp_find_header(h, "Origin") || evhttp_find_header(h, "Sec-Fetch-Mode") || host == NULL)
        return false;
    if (six && *host++ != '[')
        return false;
    if (strncasecmp(host, d->name, n) != 0)
        return false;
    host += n;
    if (six && *host++ != ']')
        return false;
    return *host == 0 || (*host == ':' && strspn(host + 1, "0123456789") == strlen(host + 1));
}

static const struct bearer *bearer_of(const struct tls_listener *d, struct evhttp_request *req)
{
    const char *said = evhttp_find_header(evhttp_request_get_input_headers(req), "Authorization");
    return said && strncmp(said, "Bearer ", 7) == 0 ? bearer_check(d->api->bearers, said + 7)
                                                    : NULL;
}

static struct tls_client *tls_client_of(const struct tls_listener *d, struct bufferevent *bev)
{
    SSL *ssl = bufferevent_openssl_get_ssl(bev);
    return d && ssl ? SSL_get_ex_data(ssl, d->place) : NULL;
}

const char *tls_listener_token(const struct api *a, struct bufferevent *bev)
{
    const struct tls_client *k = tls_client_of(a->tls, bev);
    return k ? k->token : "";
}

static void refuse(struct tls_listener *d, struct evhttp_request *req)
{
    struct evkeyvalq *h = evhttp_request_get_output_headers(req);
    if (fleet_notes_stale(d->api->controller->fleet)) {
        evhttp_add_header(h, "Connection", "close");
        api_refuse(req, 503, "fleet_unread",
                   "this host cannot see which tokens its fleet has revoked: try again");
        return;
    }
    d->refused++;
    evhttp_add_header(h, "WWW-Authenticate", "Bearer realm=\"durward\"");
    evhttp_add_header(h, "Connection", "close");
    api_refuse(req, 401, "token", "no token, or one that is not good (any more)");
}

static void let_in(struct tls_listener *d, struct evhttp_request *req, struct tls_client *k)
{
    snprintf(k->token, sizeof k->token, "%s", d->api->bearer->id);
    api_route(d->api, req, LISTENER_TLS);
}

static void on_request(struct evhttp_request *req, void *arg)
{
    struct tls_listener *d = arg;
    struct evhttp_connection *conn = evhttp_request_get_connection(req);
    struct tls_client *k = conn ? tls_client_of(d, evhttp_connection_get_bufferevent(conn)) : NULL;
    if (!api_head_clear(req))
        return;
    if (k == NULL)
        api_refuse(req, 403, "forbidden", "TLS only");
    else if (!from_a_client(d, req))
        api_refuse(req, 403, "forbidden", "the Host header must be the name of the certificate");
    else if ((d->api->bearer = bearer_of(d, req)) == NULL)
        refuse(d, req);
    else
        let_in(d, req, k);
    d->api->bearer = NULL;
}

/* ---- the listener ---- */

/* Each second: the certificate is kept fresh, streams end with their token, refusals are recorded
 * (counted, so that nobody fills the log). */
static void on_beat(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
    struct tls_listener *d = arg;
    char text[64];
    end_late(d);
    if (d->waits == NULL)
        d->waits = mint_client_get(d->mint, d->name, on_leaf, d);
    streams_check(d->api);
    if (d->refused) {
        snprintf(text, sizeof text, "%u requests", d->refused);
        controller_record(d->api->controller, "api", "token_refused", text);
    }
    d->refused = 0;
}

void tls_listener_signer(struct tls_listener *d, int fd, uint32_t channel)
{
    mint_client_attach(d->mint, fd, channel);
    on_beat(-1, 0, d);
}

static int make(struct tls_listener *d, int fd, struct err *err)
{
    struct event_base *base = d->api->controller->base;
    struct timeval second = {1, 0};
    d->place = SSL_get_ex_new_index(0, NULL, NULL, NULL, on_ssl_free);
    d->tls = io_tls_server_ctx(false);
    d->http = evhttp_new(base);
    d->mint = mint_client_new(base, MINTS, MINTS, err);
    d->listener = evconnlistener_new(
        base, NULL, NULL, LEV_OPT_CLOSE_ON_EXEC | LEV_OPT_CLOSE_ON_FREE | LEV_OPT_DISABLED, 0, fd);
    d->beat = event_new(base, -1, EV_PERSIST, on_beat, d);
    d->look = event_new(base, -1, 0, on_look, d);
    LIST_INIT(&d->tls_clients);
    if (d->place < 0 || !d->look || !d->tls || !d->http || !d->mint || !d->listener || !d->beat ||
        event_add(d->beat, &second) < 0 || !evhttp_bind_listener(d->http, d->listener)) {
        if (d->listener)
            evconnlistener_free(d->listener);
        else
            evutil_closesocket(fd);
        d->listener = NULL;
        return err_set(err, ERR_INTERNAL, "cannot serve the API over TLS");
    }
    SSL_CTX_set_read_ahead(d->tls,
                           0); /* libevent would not ask for a record that is here already */
    SSL_CTX_set_cert_cb(d->tls, on_cert, d);
    io_tls_choose(d->tls, IO_TLS_HTTP1);
    evhttp_set_bevcb(d->http, on_accept, d);
    evhttp_set_max_body_size(d->http, API_BODY_MAX);
    evhttp_set_max_headers_size(d->http, API_HEAD_MAX);
    evhttp_set_allowed_methods(d->http, API_METHODS);
    evhttp_set_timeout(d->http, API_IDLE_SECONDS);
    evhttp_set_gencb(d->http, on_request, d);
    return 0;
}

int api_serve_tls(struct api *a, int fd, struct err *err)
{
    struct tls_listener *d = calloc(1, sizeof *d);
    const struct config_listen *l = config_api(a->controller->config);
    if (d == NULL || l == NULL) {
        free(d);
        evutil_closesocket(fd);
        return err_set(err, ERR_INTERNAL, "cannot serve the API over TLS");
    }
    d->api = a;
    a->tls = d;
    d->name = strdup(l->name); /* the configuration may be replaced */
    evutil_make_socket_nonblocking(fd);
    return d->name ? make(d, fd, err) : err_set(err, ERR_INTERNAL, "out of memory");
}

void tls_listener_free(struct tls_listener *d)
{
    if (d == NULL)
        return;
    if (d->waits)
        mint_client_cancel(d->waits);
    d->listener = NULL; /* http's, if it was given to it */
    struct tls_client *k;
    while ((k = LIST_FIRST(&d->tls_clients)) != NULL) {
        LIST_REMOVE(k, link);
        k->listener = NULL;
    }
    if (d->http)
        evhttp_free(d->http);
    mint_client_free(d->mint);
    SSL_CTX_free(d->tls);
    if (d->beat)
        event_free(d->beat);
    if (d->look)
        event_free(d->look);
    free(d->name);
    free(d);
}
