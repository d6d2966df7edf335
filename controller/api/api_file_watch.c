/* Events below a directory of a sandbox, as lines of JSON without an end. What comes from inside is
 * an adversary's: each entry is bounded and looked at, and a name is one below the directory. */
#include "api_internal.h"

#include <event2/buffer.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "file_event.h"

enum { HELD_MAX = FILE_EVENT_MAX + 64 * 1024 };

struct file_watch {
    struct api *api;
    struct evhttp_request *req; /* until it is answered */
    struct stream *stream;      /* NULL before, and once it is gone */
    struct execution *e;
    bool bare; /* lines alone, else in chunks */
    bool nonsense;
    char token[BEARER_ID_MAX + 1]; /* that it was asked with; "": none */
    struct buf held;
};

static void watch_free(struct file_watch *w)
{
    buf_free(&w->held);
    free(w);
}

/* ---- out ---- */

/* Takes the reference. */
static void put_line(struct file_watch *w, json_t *v)
{
    char *text = v ? json_dumps(v, JSON_COMPACT | JSON_PRESERVE_ORDER) : NULL;
    json_decref(v);
    if (text && w->stream && w->bare)
        evbuffer_add_printf(stream_out(w->stream), "%s\n", text);
    else if (text && w->stream)
        evbuffer_add_printf(stream_out(w->stream), "%zx\r\n%s\n\r\n", strlen(text) + 1, text);
    free(text);
}

static void watch_room(void *arg)
{
    struct file_watch *w = arg;
    execution_pause(w->e, false);
}

static void watch_gone(void *arg)
{
    struct file_watch *w = arg;
    execution_abandon(w->e);
    watch_free(w);
}

static void ignore_bytes(void *arg UNUSED, struct evbuffer *in)
{
    evbuffer_drain(in, SIZE_MAX);
}

/* It is watched: now it is answered. */
static int begin(struct file_watch *w)
{
    static const struct stream_ops ops = {ignore_bytes, watch_room, watch_gone};
    const char *head = w->bare ? "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n"
                                 "Upgrade: durward-watch\r\n\r\n"
                               : "HTTP/1.1 200 OK\r\nContent-Type: application/x-ndjson\r\n"
                                 "Cache-Control: no-store\r\nConnection: close\r\n"
                                 "Transfer-Encoding: chunked\r\n\r\n";
    if (w->token[0] && bearer_find(w->api->bearers, w->token) == NULL) {
        api_refuse(w->req, 401, "token", "the token is not good any more");
        w->req = NULL;
        return -1;
    }
    w->stream = stream_take(w->api, w->req, head, &ops, w);
    if (w->stream == NULL)
        return -1;
    w->req = NULL;
    put_line(w, json_pack("{s:s}", "type", "ready"));
    return 0;
}

/* ---- what comes from inside ---- */

static json_t *named_json(const struct file_event *e)
{
    json_t *text = asked_encode(slice_str(e->path), false);
    bool plain = text != NULL;
    if (!plain)
        text = asked_encode(slice_str(e->path), true);
    return json_pack("{s:s, s:o, s:s, s:b}", "type", file_event_name(e->kind), "path", text,
                     "encoding", plain ? "utf-8" : "base64", "directory", e->directory);
}

/* -1: nonsense. */
static int take_entry(struct file_watch *w, const char *text)
{
    struct file_event e;
    if (file_event_read(text, &e) < 0 || (e.kind == INSIDE_READY) != (w->stream == NULL))
        return -1;
    if (e.kind == INSIDE_READY)
        return begin(w);
    if (e.path[0])
        put_line(w, named_json(&e));
    else
        put_line(w, json_pack("{s:s, s:s}", "type", "overflow", "reason",
                              e.kind == INSIDE_MISSED_EVENTS ? "events" : "directories"));
    return 0;
}

static void watch_output(void *arg, struct execution *e, int which UNUSED, const void *p, size_t n)
{
    struct file_watch *w = arg;
    size_t done = 0;
    const char *end;
    if (w->nonsense)
        return;
    w->nonsense = buf_append(&w->held, p, n) < 0;
    while (!w->nonsense && (end = memchr(buf_data(&w->held) + done, 0, buf_len(&w->held) - done))) {
        const char *text = (const char *)buf_data(&w->held) + done;
        done += (size_t)(end - text) + 1;
        w->nonsense = take_entry(w, text) < 0;
    }
    buf_drain(&w->held, done);
    w->nonsense = w->nonsense || buf_len(&w->held) > FILE_EVENT_MAX;
    if (w->nonsense)
        execution_signal(e, 9);
    else if (w->stream && stream_full(w->stream))
        execution_pause(e, true);
}

static void watch_ended(void *arg, struct execution *e)
{
    struct file_watch *w = arg;
    uint32_t status = execution_status(e);
    const char *code = "unavailable", *text = execution_text(e);
    if (w->req) {
        if (*text || w->nonsense)
            api_refuse(w->req, 503, code, *text ? text : "it was ended");
        else
            api_refuse_errno(w->req, status);
    }
    if (w->stream) {
        if (!*text && !w->nonsense)
            (void)api_errno(status, &code);
        put_line(w, json_pack("{s:s, s:s, s:s}", "type", "end", "code", code, "message",
                              *text          ? text
                              : w->nonsense  ? "what came from inside is not an event"
                              : status < 128 ? strerror((int)status)
                                             : "it was ended"));
        if (!w->bare)
            evbuffer_add_printf(stream_out(w->stream), "0\r\n\r\n");
        stream_close(w->stream);
    }
    watch_free(w);
}

/* ---- asking ---- */

/* Names of one component each. */
static int read_skip(const json_t *body, struct strlist *ret, struct err *err)
{
    size_t i;
    json_t *name, *list = json_object_get(body, "skip");
    if (list && (!json_is_array(list) || json_array_size(list) > INSIDE_SKIPPED))
        return err_set(err, ERR_PARSE, "skip is a list of at most %d names", INSIDE_SKIPPED);
    json_array_foreach(list, i, name)
    {
        const char *s = json_string_value(name);
        if (s == NULL || *s == '\0' || strlen(s) > 255 || strlen(s) != json_string_length(name) ||
            strchr(s, '/'))
            return err_set(err, ERR_PARSE, "skip: each is the name of a file, without /");
        if (strlist_add(ret, s) < 0)
            return err_set(err, ERR_LIMIT, "skip is too long");
    }
    return 0;
}

static int go(struct file_watch *w, struct managed_sandbox *r, const json_t *body, struct err *err)
{
    static const struct execution_ops ops = {.output = watch_output, .ended = watch_ended};
    const char *path = MANAGED_SANDBOX_WORKDIR;
    struct strlist skip = {0};
    int bad = asked_text(body, "path", INSIDE_PATH - 1, &path, err);
    if (bad == 0)
        bad = asked_path(path, err);
    if (bad == 0)
        bad = read_skip(body, &skip, err);
    if (bad == 0)
        w->e = execution_watch(r, path, &skip, &ops, w, err);
    strlist_done(&skip);
    return w->e ? 0 : -1;
}

HANDLER_IN(api_file_watch)
{
    struct err err = {0};
    json_t *body = asked_body(req, "path skip", &err);
    struct file_watch *w = body ? calloc(1, sizeof *w) : NULL;
    (void)q;
    if (body && w == NULL)
        err_set(&err, ERR_INTERNAL, "out of memory");
    if (w) {
        w->api = a;
        w->req = req;
        w->bare = stream_wanted(req, "durward-watch");
        buf_init(&w->held, HELD_MAX);
        if (a->bearer)
            memcpy(w->token, a->bearer->id, sizeof w->token);
        if (go(w, r, body, &err) < 0) {
            watch_free(w);
            w = NULL;
        }
    }
    if (w == NULL)
        api_refuse_err(req, &err);
    json_decref(body);
}
