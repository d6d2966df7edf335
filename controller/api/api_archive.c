/* Snapshots and volumes as archives of any size: frames over an upgraded connection, as those of
 * exec. To the client 1 (bytes of the archive) and 3 (the last: what came of it, as JSON); from it
 * 0 (bytes; none: that was all). In between bytes go to and from the process of the builder's that
 * has the files. */
#include "api_internal.h"

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "snapshot.h"
#include "volumes.h"

enum { FRAME_HEAD = 5, FRAME_MAX = 64 * 1024, FRAME_BYTES = 1, FRAME_LAST = 3 };
enum { TRANSFERS_MAX = 4, TRANSFER_IDLE_SECONDS = 60 };

struct transfer {
    LIST_ENTRY(transfer) link;
    struct api *api;
    struct stream *stream;      /* NULL once it is gone */
    struct bufferevent *inside; /* NULL once it ended */
    struct event *idle;
    bool all_in;                   /* of an import: the client has said that that was all */
    bool waiting;                  /* somebody is to call back still */
    json_t *last;                  /* what came of it, until it is sent */
    const struct named_layers *of; /* where it has its name */
    char name[SANDBOX_SPEC_NAME_MAX + 1];
};

static const char upgrade_head[] = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n"
                                   "Upgrade: durward-archive\r\n\r\n";
static const struct timeval idle_time = {TRANSFER_IDLE_SECONDS, 0};

static void put_frame(struct evbuffer *out, unsigned char type, const void *p, size_t n)
{
    const unsigned char head[FRAME_HEAD] = {type, (unsigned char)(n >> 24),
                                            (unsigned char)(n >> 16), (unsigned char)(n >> 8),
                                            (unsigned char)n};
    evbuffer_add(out, head, sizeof head);
    evbuffer_add(out, p, n);
}

static void close_inside(struct transfer *p)
{
    if (p->inside)
        bufferevent_free(p->inside);
    p->inside = NULL;
}

static void transfer_free(struct transfer *p)
{
    close_inside(p);
    if (p->idle)
        event_free(p->idle);
    LIST_REMOVE(p, link);
    json_decref(p->last);
    free(p);
}

void transfers_free(struct api *a)
{
    while (!LIST_EMPTY(&a->transfers))
        transfer_free(LIST_FIRST(&a->transfers));
}

/* The client went. What is inside sees the end of its stream, and says so. */
static void on_gone(void *arg)
{
    struct transfer *p = arg;
    p->stream = NULL;
    close_inside(p);
    if (!p->waiting)
        transfer_free(p);
}

static void on_idle(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
    struct transfer *p = arg;
    if (p->stream)
        stream_drop(p->stream); /* on_gone */
}

/* The last frame, once there is nothing before it. The client closes when it has it: bytes that it
 * is still sending would take the frame away from it. */
static void finish(struct transfer *p)
{
    static const struct timeval linger = {10, 0};
    char *text = p->last && !p->waiting && p->inside == NULL && p->stream
                     ? json_dumps(p->last, JSON_COMPACT)
                     : NULL;
    if (text) {
        put_frame(stream_out(p->stream), FRAME_LAST, text, strlen(text));
        stream_pause(p->stream, false);
        json_decref(p->last);
        p->last = NULL;
        event_add(p->idle, &linger);
    }
    free(text);
    if (p->stream == NULL && !p->waiting)
        transfer_free(p);
}

static json_t *failure(const char *why)
{
    char text[512];
    size_t n = 0;
    for (; n < sizeof text - 1 && why[n]; n++) /* it may name a file of a stranger's */
        text[n] = why[n] >= ' ' && why[n] < 0x7f ? why[n] : '?';
    text[n] = '\0';
    return json_pack("{s:{s:s, s:s}}", "error", "code", "snapshot_failed", "message", text);
}

/* ---- inside ---- */

static void from_inside(struct bufferevent *bev, void *arg)
{
    struct transfer *p = arg;
    struct evbuffer *in = bufferevent_get_input(bev);
    size_t n;
    while (p->stream && (n = evbuffer_get_length(in)) > 0) {
        n = n < FRAME_MAX ? n : FRAME_MAX;
        put_frame(stream_out(p->stream), FRAME_BYTES, evbuffer_pullup(in, (ssize_t)n), n);
        evbuffer_drain(in, n);
    }
    event_add(p->idle, &idle_time);
    if (p->stream && stream_full(p->stream))
        bufferevent_disable(bev, EV_READ);
}

static void inside_room(struct bufferevent *bev, void *arg)
{
    struct transfer *p = arg;
    event_add(p->idle, &idle_time);
    if (p->all_in && evbuffer_get_length(bufferevent_get_output(bev)) == 0)
        shutdown(bufferevent_getfd(bev), SHUT_WR);
    else if (p->stream)
        stream_pause(p->stream, false);
}

static void inside_event(struct bufferevent *bev, short what UNUSED, void *arg)
{
    struct transfer *p = arg;
    from_inside(bev, p);
    close_inside(p);
    if (p->stream)
        stream_pause(p->stream, false); /* what still comes is thrown away */
    finish(p);
}

/* ---- outside ---- */

static void on_room(void *arg)
{
    struct transfer *p = arg;
    event_add(p->idle, &idle_time);
    if (p->inside)
        bufferevent_enable(p->inside, EV_READ);
}

/* One frame of the client's. */
static void take_frame(struct transfer *p, struct evbuffer *in, size_t n)
{
    if (p->inside == NULL || p->all_in) {
        evbuffer_drain(in, n);
        return;
    }
    if (n > 0) {
        evbuffer_remove_buffer(in, bufferevent_get_output(p->inside), n);
        return;
    }
    p->all_in = true;
    bufferevent_setwatermark(p->inside, EV_WRITE, 0, 0);
    bufferevent_trigger(p->inside, EV_WRITE, BEV_TRIG_DEFER_CALLBACKS);
}

static void on_frames(void *arg, struct evbuffer *in)
{
    struct transfer *p = arg;
    unsigned char head[FRAME_HEAD];
    event_add(p->idle, &idle_time);
    while (evbuffer_copyout(in, head, sizeof head) == sizeof head) {
        size_t n = (size_t)head[1] << 24 | (size_t)head[2] << 16 | (size_t)head[3] << 8 | head[4];
        if (head[0] != 0 || n > FRAME_MAX) {
            stream_drop(p->stream);
            return;
        }
        if (evbuffer_get_length(in) < sizeof head + n)
            return;
        evbuffer_drain(in, sizeof head);
        take_frame(p, in, n);
        if (p->inside && evbuffer_get_length(bufferevent_get_output(p->inside)) > STREAM_HIGH) {
            stream_pause(p->stream, true);
            return;
        }
    }
}

static void ignore(void *arg UNUSED, struct evbuffer *in)
{
    evbuffer_drain(in, SIZE_MAX);
}

/* ---- both ---- */

/* *far: the builder's end, the caller's. NULL: refused already. */
static struct transfer *transfer_new(struct api *a, struct evhttp_request *req, const char *name,
                                     int *far)
{
    int pair[2];
    unsigned n = 0;
    struct transfer *p;
    LIST_FOREACH(p, &a->transfers, link)
    n++;
    if (!stream_wanted(req, "durward-archive")) {
        api_refuse(req, 400, "bad_request", "this needs `Upgrade: durward-archive`");
        return NULL;
    }
    if (n >= TRANSFERS_MAX) {
        api_refuse(req, 503, "unavailable", "4 archives are being exported or imported already");
        return NULL;
    }
    p = calloc(1, sizeof *p);
    if (p == NULL || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0) {
        free(p);
        api_refuse(req, 503, "unavailable", "out of memory");
        return NULL;
    }
    p->api = a;
    memcpy(p->name, name, strlen(name) + 1);
    LIST_INSERT_HEAD(&a->transfers, p, link);
    evutil_make_socket_nonblocking(pair[0]);
    p->inside = bufferevent_socket_new(a->controller->base, pair[0], BEV_OPT_CLOSE_ON_FREE);
    p->idle = evtimer_new(a->controller->base, on_idle, p);
    *far = pair[1];
    if (p->inside && p->idle)
        return p;
    close(pair[1]);
    if (p->inside == NULL)
        close(pair[0]);
    transfer_free(p);
    api_refuse(req, 503, "unavailable", "out of memory");
    return NULL;
}

static void start(struct transfer *p, struct evhttp_request *req, const struct stream_ops *ops)
{
    p->stream = stream_take(p->api, req, upgrade_head, ops, p);
    if (p->stream == NULL) {
        api_refuse(req, 503, "unavailable", "out of memory");
        on_gone(p);
        return;
    }
    bufferevent_setcb(p->inside, from_inside, inside_room, inside_event, p);
    bufferevent_setwatermark(p->inside, EV_WRITE, STREAM_LOW, 0);
    bufferevent_setwatermark(p->inside, EV_READ, 0, STREAM_HIGH);
    bufferevent_enable(p->inside, EV_READ | EV_WRITE);
    event_add(p->idle, &idle_time);
}

/* {"snapshot": what it is} */
static json_t *outcome(const struct named_layer *l)
{
    return json_pack("{s:o}", l->kind->noun, l->kind->json(l));
}

static void on_exported(void *arg, enum layer_result result, const char *text)
{
    char what[64];
    struct transfer *p = arg;
    const struct named_layer *l = named_layer_find(p->of, p->name);
    p->waiting = false;
    if (result == LAYER_DONE && l) {
        snprintf(what, sizeof what, "%s_exported", l->kind->noun);
        l->kind->note(l, what);
        p->last = outcome(l);
    } else {
        p->last = failure(result == LAYER_ABSENT || !text[0] ? "there are no files of it" : text);
    }
    finish(p);
}

/* l NULL: answered already. */
static void export(struct api *a, struct evhttp_request *req, struct named_layer *l)
{
    static const struct stream_ops ops = {ignore, on_room, on_gone};
    int far;
    struct transfer *p = l ? transfer_new(a, req, l->name, &far) : NULL;
    if (p == NULL)
        return;
    p->of = l->list;
    if (named_layer_export(l, far, on_exported, p) < 0) {
        transfer_free(p);
        api_refuse(req, 503, "unavailable", "out of memory");
        return;
    }
    p->waiting = true;
    start(p, req, &ops);
}

HANDLER(api_export)
{
    export(a, req, (struct named_layer *)api_find_snapshot(a, req, q->args[0]));
}

HANDLER(api_volume_export)
{
    export(a, req, (struct named_layer *)api_find_volume(a, req, q->args[0]));
}

static void on_imported(void *arg, struct named_layer *l, const char *why)
{
    struct transfer *p = arg;
    p->waiting = false;
    p->last = l ? outcome(l) : failure(why);
    finish(p);
}

HANDLER(api_import)
{
    static const struct stream_ops ops = {on_frames, on_room, on_gone};
    struct err err = {0};
    int far;
    if (!sandbox_spec_name_ok(q->args[0])) {
        api_refuse(req, 400, "bad_request", "name must be of A-Z, a-z, 0-9, '_', '.' and '-'");
        return;
    }
    struct transfer *p = transfer_new(a, req, q->args[0], &far);
    if (p == NULL)
        return;
    struct snapshot *s = snapshot_import(a->controller, p->name, far, &err);
    if (s == NULL) {
        transfer_free(p);
        api_refuse_err(req, &err);
        return;
    }
    p->waiting = named_layer_await(&s->layer, on_imported, p) == 0;
    if (p->waiting) {
        start(p, req, &ops);
        return;
    }
    transfer_free(p); /* which ends what it would have come from */
    api_refuse(req, 503, "unavailable", "out of memory");
}
