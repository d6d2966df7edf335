/* The listener on the unix socket: asks the kernel who the peer is, refuses what a browser was led
 * to send, and routes the rest. How every listener writes answers and errors is here too. */
#include "api_internal.h"

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/keyvalq_struct.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "command_sessions.h"
#include "fleet_revocations.h"

void api_send(struct evhttp_request *req, int status, const char *type, const void *p, size_t n)
{
    struct evkeyvalq *h = evhttp_request_get_output_headers(req);
    struct evbuffer *body = evbuffer_new();
    evhttp_add_header(h, "Content-Type", type);
    evhttp_add_header(h, "Cache-Control", "no-store");
    evhttp_add_header(h, "X-Content-Type-Options", "nosniff");
    if (body && evbuffer_add(body, p, n) < 0)
        status = 500;
    evhttp_send_reply(req, body ? status : 500, NULL, body);
    if (body)
        evbuffer_free(body);
}

void api_no_content(struct evhttp_request *req)
{
    evhttp_send_reply(req, 204, NULL, NULL);
}

void api_reply(struct evhttp_request *req, int status, json_t *v)
{
    char *text = v ? json_dumps(v, JSON_COMPACT | JSON_PRESERVE_ORDER) : NULL;
    json_decref(v);
    if (text == NULL) {
        api_send(req, 500, "text/plain", "", 0);
        return;
    }
    size_t n = strlen(text);
    text[n] = '\n'; /* in place of its end: it is not read as a string again */
    api_send(req, status, "application/json", text, n + 1);
    explicit_bzero(text, n + 1); /* it may hold a token */
    free(text);
}

void api_refuse(struct evhttp_request *req, int status, const char *code, const char *message)
{
    json_t *v = json_pack("{s:{s:s, s:s}}", "error", "code", code, "message", message);
    if (v == NULL) /* a message with a part of the request that is no UTF-8 */
        v = json_pack("{s:{s:s, s:s}}", "error", "code", code, "message", "not accepted");
    api_reply(req, status, v);
}

void api_refuse_err(struct evhttp_request *req, const struct err *err)
{
    static const struct {
        enum err_code of;
        int status;
        const char *code;
    } known[] = {{ERR_PARSE, 400, "bad_request"},
                 {ERR_UNREADY, 409, "not_running"},
                 {ERR_FULL, 503, "limit"},
                 {ERR_DENIED, 409, "conflict"},
                 {ERR_LIMIT, 413, "too_large"}};
    for (size_t i = 0; i < ARRAY_LEN(known); i++)
        if (known[i].of == err->code) {
            api_refuse(req, known[i].status, known[i].code, err->text);
            return;
        }
    api_refuse(req, 500, "internal", err->text);
}

/* Whoever could open the socket is still asked who it is. */
static bool peer_ok(const struct api *a, struct evhttp_request *req)
{
    struct ucred who;
    socklen_t len = sizeof who;
    struct evhttp_connection *conn = evhttp_request_get_connection(req);
    int fd = conn ? bufferevent_getfd(evhttp_connection_get_bufferevent(conn)) : -1;
    if (fd < 0 || getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &len) < 0)
        return false;
    return who.uid == 0 || who.uid == a->controller->owner_uid;
}

/* A browser that was led here sends another name or an Origin; our clients send neither. */
static bool from_a_client(struct evhttp_request *req)
{
    struct evkeyvalq *h = evhttp_request_get_input_headers(req);
    const char *host = evhttp_find_header(h, "Host");
    if (evhttp_find_header(h, "Origin") || host == NULL)
        return false;
    return strcasecmp(host, "durward") == 0 || strcasecmp(host, "localhost") == 0;
}

static bool digits(const char *s)
{
    return *s && s[strspn(s, "0123456789")] == 0;
}

/* evhttp takes the first of two, and no body where it does not know the encoding: what another
 * reader of the same bytes takes for a body would be a request here. */
bool api_head_clear(struct evhttp_request *req)
{
    static const char *const once[] = {"Content-Length", "Transfer-Encoding", "Host",
                                       "Authorization"};
    unsigned seen[ARRAY_LEN(once)] = {0};
    bool clear = true;
    struct evkeyval *f;
    TAILQ_FOREACH(f, evhttp_request_get_input_headers(req), next)
    {
        for (size_t i = 0; i < ARRAY_LEN(once); i++)
            if (strcasecmp(f->key, once[i]) == 0)
                clear &= ++seen[i] == 1 && (i != 0 || digits(f->value)) &&
                         (i != 1 || strcasecmp(f->value, "chunked") == 0);
    }
    if (clear)
        return true;
    evhttp_add_header(evhttp_request_get_output_headers(req), "Connection", "close");
    api_refuse(req, 400, "bad_request",
               "the head is ambiguous: Content-Length (digits), Transfer-Encoding (chunked), Host "
               "and Authorization may come once each");
    return false;
}

static void on_request(struct evhttp_request *req, void *arg)
{
    struct api *a = arg;
    if (!api_head_clear(req))
        return;
    if (!peer_ok(a, req))
        api_refuse(req, 403, "forbidden", "this socket is for its owner and root");
    else if (!from_a_client(req))
        api_refuse(req, 403, "forbidden", "the Host header must be 'durward' or 'localhost'");
    else
        api_route(a, req, LISTENER_SOCKET);
}

struct api *api_new(struct controller *c, int listen_fd, struct err *err)
{
    struct api *a = calloc(1, sizeof *a);
    if (a == NULL) {
        close(listen_fd);
        err_set(err, ERR_INTERNAL, "out of memory");
        return NULL;
    }
    a->controller = c;
    STAILQ_INIT(&a->status);
    STAILQ_INIT(&a->reload);
    STAILQ_INIT(&a->metrics);
    STAILQ_INIT(&a->verify);
    STAILQ_INIT(&a->revoked);
    LIST_INIT(&a->streams);
    LIST_INIT(&a->transfers);
    a->feed = feed_new(a);
    a->history = history_new();
    a->kept = command_sessions_new(a);
    a->bearers = bearers_load(c->registry, err);
    if (a->bearers && c->fleet) {
        bearers_fleet(a->bearers, c->fleet);
        fleet_revocations_on_api(c->revocations, api_fleet_revoked, a);
    }
    a->http = a->feed && a->history && a->kept && a->bearers ? evhttp_new(c->base) : NULL;
    evutil_make_socket_nonblocking(listen_fd);
    if (a->http == NULL || evhttp_accept_socket(a->http, listen_fd) < 0) {
        close(listen_fd);
        api_free(a);
        if (!err->code)
            err_set(err, ERR_INTERNAL, "cannot serve the API");
        return NULL;
    }
    evhttp_set_max_body_size(a->http, API_BODY_MAX);
    evhttp_set_max_headers_size(a->http, API_HEAD_MAX);
    evhttp_set_allowed_methods(a->http, API_METHODS);
    evhttp_set_timeout(a->http, API_IDLE_SECONDS);
    evhttp_set_gencb(a->http, on_request, a);
    return a;
}

void api_signer(struct api *a, int fd, uint32_t channel)
{
    if (a->tls)
        tls_listener_signer(a->tls, fd, channel);
    else
        close(fd);
}

static void drop_waits(struct api_waits *q)
{
    struct api_wait *w;
    while ((w = STAILQ_FIRST(q)) != NULL) {
        STAILQ_REMOVE_HEAD(q, link);
        free(w); /* the request goes with its connection */
    }
}

void api_free(struct api *a)
{
    if (a == NULL)
        return;
    drop_waits(&a->status);
    drop_waits(&a->reload);
    drop_waits(&a->metrics);
    drop_waits(&a->verify);
    drop_waits(&a->revoked);
    while (!LIST_EMPTY(&a->streams))
        stream_drop(LIST_FIRST(&a->streams));
    transfers_free(a);
    feed_free(a->feed);
    history_free(a->history);
    command_sessions_free(a->kept);
    console_free(a->console);
    tls_listener_free(a->tls);
    if (a->metrics_http)
        evhttp_free(a->metrics_http);
    if (a->http)
        evhttp_free(a->http);
    bearers_free(a->bearers);
    free(a);
}
