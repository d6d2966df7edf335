#include "api_internal.h"

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

static void add_headers(struct evhttp_request *req)
{
    struct evkeyvalq *h = evhttp_request_get_output_headers(req);
    evhttp_add_header(h, "Content-Type", "application/json");
    evhttp_add_header(h, "Cache-Control", "no-store");
    evhttp_add_header(h, "X-Content-Type-Options", "nosniff");
}

void api_reply(struct evhttp_request *req, int status, json_t *v)
{
    char *text = v ? json_dumps(v, JSON_COMPACT | JSON_PRESERVE_ORDER) : NULL;
    json_decref(v);
    add_headers(req);
    if (text == NULL) {
        evhttp_send_reply(req, 500, NULL, NULL);
        return;
    }
    struct evbuffer *body = evbuffer_new();
    if (body)
        evbuffer_add_printf(body, "%s\n", text);
    evhttp_send_reply(req, body ? status : 500, NULL, body);
    if (body)
        evbuffer_free(body);
    explicit_bzero(text, strlen(text)); /* it may hold a token */
    free(text);
}

void api_refuse(struct evhttp_request *req, int status, const char *code, const char *message)
{
    api_reply(req, status, json_pack("{s:{s:s, s:s}}", "error", "code", code, "message", message));
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

static void on_request(struct evhttp_request *req, void *arg)
{
    struct api *a = arg;
    if (!peer_ok(a, req))
        api_refuse(req, 403, "forbidden", "this socket is for its owner and root");
    else if (!from_a_client(req))
        api_refuse(req, 403, "forbidden", "the Host header must be 'durward' or 'localhost'");
    else
        api_route(a, req);
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
    a->http = evhttp_new(c->base);
    evutil_make_socket_nonblocking(listen_fd);
    if (a->http == NULL || evhttp_accept_socket(a->http, listen_fd) < 0) {
        close(listen_fd);
        api_free(a);
        err_set(err, ERR_INTERNAL, "cannot serve the API");
        return NULL;
    }
    evhttp_set_max_body_size(a->http, API_BODY_MAX);
    evhttp_set_max_headers_size(a->http, API_HEAD_MAX);
    /* all, so that a wrong one is refused by our own table, in JSON */
    evhttp_set_allowed_methods(a->http, EVHTTP_REQ_GET | EVHTTP_REQ_POST | EVHTTP_REQ_DELETE |
                                            EVHTTP_REQ_HEAD | EVHTTP_REQ_PUT | EVHTTP_REQ_OPTIONS |
                                            EVHTTP_REQ_PATCH);
    evhttp_set_timeout(a->http, API_IDLE_SECONDS);
    evhttp_set_gencb(a->http, on_request, a);
    return a;
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
    if (a->http)
        evhttp_free(a->http);
    free(a);
}
