/* Connections that were an HTTP request and go on as frames, lines or plain bytes. libevent's HTTP
 * server knows no upgrade: the connection's bufferevent is taken from it, and given back only to be
 * freed. */
#include "api_internal.h"

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct stream {
    struct api *api;
    LIST_ENTRY(stream) link;
    struct evhttp_connection *conn;
    struct bufferevent *bev;
    const struct stream_ops *ops; /* NULL once closed */
    void *arg;
    char token[BEARER_ID_MAX + 1]; /* that it was asked with; "": none */
    bool closing;                  /* only what waits is still to be written */
};

enum { CLOSE_SECONDS = 10 };

void stream_drop(struct stream *s)
{
    const struct stream_ops *ops = s->ops;
    s->ops = NULL;
    LIST_REMOVE(s, link);
    evhttp_connection_free(s->conn); /* its bufferevent too */
    if (ops)
        ops->gone(s->arg);
    free(s);
}

static void on_read(struct bufferevent *bev, void *arg)
{
    struct stream *s = arg;
    if (s->ops)
        s->ops->read(s->arg, bufferevent_get_input(bev));
    else
        evbuffer_drain(bufferevent_get_input(bev), SIZE_MAX);
}

static void on_write(struct bufferevent *bev, void *arg)
{
    struct stream *s = arg;
    if (s->closing && evbuffer_get_length(bufferevent_get_output(bev)) == 0)
        stream_drop(s);
    else if (s->ops && s->ops->room)
        s->ops->room(s->arg);
}

static void on_event(struct bufferevent *bev UNUSED, short what UNUSED, void *arg)
{
    stream_drop(arg); /* the end of what the far end says is its end: nothing here is half-open */
}

bool stream_wanted(struct evhttp_request *req, const char *protocol)
{
    struct evkeyvalq *h = evhttp_request_get_input_headers(req);
    const char *upgrade = evhttp_find_header(h, "Upgrade");
    const char *connection = evhttp_find_header(h, "Connection");
    return upgrade && connection && strcasecmp(connection, "upgrade") == 0 &&
           strcmp(upgrade, protocol) == 0;
}

struct stream *stream_take(struct api *a, struct evhttp_request *req, const char *head,
                           const struct stream_ops *ops, void *arg)
{
    struct stream *s = calloc(1, sizeof *s);
    if (s == NULL)
        return NULL;
    s->api = a;
    s->conn = evhttp_request_get_connection(req);
    s->bev = evhttp_connection_get_bufferevent(s->conn);
    s->ops = ops;
    s->arg = arg;
    snprintf(s->token, sizeof s->token, "%s", tls_listener_token(a, s->bev));
    if (bufferevent_write(s->bev, head, strlen(head)) < 0) {
        free(s);
        return NULL;
    }
    LIST_INSERT_HEAD(&a->streams, s, link);
    bufferevent_setcb(s->bev, on_read, on_write, on_event, s);
    bufferevent_setwatermark(s->bev, EV_WRITE, STREAM_LOW, 0);
    bufferevent_setwatermark(s->bev, EV_READ, 0, STREAM_HIGH);
    bufferevent_enable(s->bev, EV_READ | EV_WRITE);
    /* behind that: of an event that waits for nothing libevent keeps the time, and sets it again
     * when the event has come once */
    bufferevent_set_timeouts(s->bev, NULL, NULL);
    /* what came with the request is here already, and no event would say so */
    if (evbuffer_get_length(bufferevent_get_input(s->bev)))
        bufferevent_trigger(s->bev, EV_READ, BEV_TRIG_DEFER_CALLBACKS);
    return s;
}

void streams_check(struct api *a)
{
    struct stream *s, *next;
    for (s = LIST_FIRST(&a->streams); s; s = next) {
        next = LIST_NEXT(s, link);
        if (s->token[0] && bearer_find(a->bearers, s->token) == NULL)
            stream_drop(s);
    }
}

struct evbuffer *stream_out(struct stream *s)
{
    return bufferevent_get_output(s->bev);
}

bool stream_full(struct stream *s)
{
    return evbuffer_get_length(stream_out(s)) > STREAM_HIGH;
}

void stream_pause(struct stream *s, bool pause)
{
    if (pause)
        bufferevent_disable(s->bev, EV_READ);
    else
        bufferevent_enable(s->bev, EV_READ);
    if (!pause && evbuffer_get_length(bufferevent_get_input(s->bev)))
        bufferevent_trigger(s->bev, EV_READ, BEV_TRIG_DEFER_CALLBACKS);
}

void stream_close(struct stream *s)
{
    struct timeval limit = {CLOSE_SECONDS, 0};
    s->ops = NULL;
    s->closing = true;
    bufferevent_setwatermark(s->bev, EV_WRITE, 0, 0);
    bufferevent_set_timeouts(s->bev, NULL, &limit);
    bufferevent_trigger(s->bev, EV_WRITE, BEV_TRIG_DEFER_CALLBACKS);
}
