/* Keeps output as the frames that a client gets, so that it is told again as it was written. */
#include "command_sessions.h"

#include <event2/buffer.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "exec_frames.h"
#include "quota.h"

struct command_session {
    struct command_sessions *of;
    LIST_ENTRY(command_session) link;
    char sandbox[SANDBOX_ID_MAX + 1], id[EXECUTION_ID_MAX + 1];
    int64_t started_at;
    struct execution *e; /* NULL: it has ended, */
    json_t *exit;        /* like this, */
    time_t ended;        /* then (CLOCK_MONOTONIC) */
    bool tty;
    bool running;          /* it was started: whoever attaches is told so */
    bool unwanted;         /* it is forgotten when it ends */
    bool lost;             /* of what it wrote not all is kept */
    struct stream *stream; /* of the client that is attached; NULL: none is */
    bool frames;           /* it gets those, else lines */
    struct evbuffer *tail;
    struct quota_part part;
};

struct command_sessions {
    struct api *api;
    struct quota quota;
    LIST_HEAD(, command_session) list; /* the youngest first */
};

static time_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
    return t.tv_sec;
}

struct command_sessions *command_sessions_new(struct api *a)
{
    struct command_sessions *k = calloc(1, sizeof *k);
    if (k == NULL)
        return NULL;
    k->api = a;
    k->quota = (struct quota){.total = COMMAND_SESSIONS_BYTES, .each = COMMAND_SESSIONS_BYTES_EACH};
    LIST_INIT(&k->quota.owners);
    LIST_INIT(&k->list);
    return k;
}

static void drop(struct command_session *x)
{
    LIST_REMOVE(x, link);
    quota_leave(&x->part);
    evbuffer_free(x->tail);
    json_decref(x->exit);
    free(x);
}

void command_sessions_free(struct command_sessions *k)
{
    struct command_session *x;
    while (k && (x = LIST_FIRST(&k->list)) != NULL) {
        if (x->e)
            execution_abandon(x->e);
        drop(x);
    }
    free(k);
}

/* ---- which ---- */

static void forget_old(struct command_sessions *k)
{
    struct command_session *x, *next;
    for (x = LIST_FIRST(&k->list); x; x = next) {
        next = LIST_NEXT(x, link);
        if (x->e == NULL && now() - x->ended >= COMMAND_SESSION_ENDED_S)
            drop(x);
    }
}

static struct command_session *find(struct command_sessions *k, const struct managed_sandbox *r,
                                    const char *id)
{
    struct command_session *x;
    LIST_FOREACH(x, &k->list, link)
    if (strcmp(x->sandbox, r->id) == 0 && strcmp(x->id, id) == 0)
        return x;
    return NULL;
}

bool command_sessions_has(const struct command_sessions *k, const struct execution *e)
{
    struct command_session *x;
    LIST_FOREACH(x, &k->list, link)
    if (x->e == e)
        return true;
    return false;
}

/* Room for one more of this sandbox: its oldest that has ended goes. */
static int make_room(struct command_sessions *k, const struct managed_sandbox *r, struct err *err)
{
    struct command_session *x, *oldest = NULL;
    unsigned n = 0;
    forget_old(k);
    LIST_FOREACH(x, &k->list, link)
    if (strcmp(x->sandbox, r->id) == 0) {
        n++;
        oldest = x->e ? oldest : x;
    }
    if (n < COMMAND_SESSIONS_EACH)
        return 0;
    if (oldest == NULL)
        return err_set(err, ERR_UNREADY, "%d kept commands run in it already",
                       COMMAND_SESSIONS_EACH);
    drop(oldest);
    return 0;
}

/* ---- what it wrote ---- */

static void drop_first(struct command_session *x)
{
    unsigned char head[EXEC_FRAME_HEAD];
    if (evbuffer_copyout(x->tail, head, sizeof head) != sizeof head)
        return;
    size_t n = exec_frame_size(head);
    evbuffer_drain(x->tail, sizeof head + n);
    quota_give(&x->part, sizeof head + n);
    x->lost = true;
}

/* What it wrote last stays, as much as there is room for. */
static void keep(struct command_session *x, enum exec_frame type, const void *p, size_t n)
{
    size_t whole = EXEC_FRAME_HEAD + n;
    while (evbuffer_get_length(x->tail) > 0 &&
           evbuffer_get_length(x->tail) + whole > COMMAND_SESSION_TAIL_MAX)
        drop_first(x);
    while (quota_take(&x->of->quota, &x->part, slice_str(x->sandbox), whole) != QUOTA_TAKEN) {
        if (evbuffer_get_length(x->tail) == 0) {
            x->lost = true;
            return;
        }
        drop_first(x);
    }
    exec_frame_put(x->tail, type, p, n);
}

/* ---- the command ---- */

static void put_started(const struct command_session *x)
{
    exec_put(stream_out(x->stream), x->frames, EXEC_STARTED,
             json_pack("{s:s, s:s, s:b}", "type", "started", "id", x->id, "lost", x->lost));
}

static void on_started(void *arg, struct execution *e UNUSED, int fd UNUSED)
{
    struct command_session *x = arg;
    x->running = true;
    if (x->stream)
        put_started(x);
}

static void on_output(void *arg, struct execution *e, int which, const void *p, size_t n)
{
    struct command_session *x = arg;
    enum exec_frame type = which == 1 ? EXEC_OUT : EXEC_ERR;
    keep(x, type, p, n);
    if (x->stream == NULL)
        return;
    exec_put_output(stream_out(x->stream), x->frames, type, p, n);
    if (stream_full(x->stream))
        execution_pause(e, true);
}

static void on_fed(void *arg, struct execution *e UNUSED)
{
    struct command_session *x = arg;
    if (x->stream)
        stream_pause(x->stream, false);
}

/* Its client is told its end, and nobody else will be. */
static void tell_end(struct command_session *x)
{
    exec_put(stream_out(x->stream), x->frames, EXEC_EXIT, json_incref(x->exit));
    exec_put_end(stream_out(x->stream), x->frames);
    stream_close(x->stream);
    drop(x);
}

static void on_ended(void *arg, struct execution *e)
{
    struct command_session *x = arg;
    x->e = NULL;
    x->ended = now();
    x->exit = exec_exit_json(e);
    if (x->stream)
        tell_end(x);
    else if (x->unwanted || x->exit == NULL)
        drop(x);
}

/* ---- its client ---- */

static void on_frames(void *arg, struct evbuffer *in)
{
    struct command_session *x = arg;
    int r = exec_frames_take(in, x->e);
    if (r < 0)
        stream_drop(x->stream);
    else if (r > 0)
        stream_pause(x->stream, true);
}

static void on_room(void *arg)
{
    struct command_session *x = arg;
    if (x->e)
        execution_pause(x->e, false);
}

/* The client left, the command stays. */
static void on_gone(void *arg)
{
    struct command_session *x = arg;
    x->stream = NULL;
    on_room(x);
}

static void ignore_bytes(void *arg UNUSED, struct evbuffer *in)
{
    evbuffer_drain(in, SIZE_MAX);
}

static json_t *session_json(const struct command_session *x)
{
    return json_pack("{s:s, s:I, s:b, s:b, s:b}", "id", x->id, "started_at",
                     (json_int_t)x->started_at, "kept", 1, "attached", x->stream != NULL, "tty",
                     x->tty);
}

static int take_client(struct command_session *x, struct evhttp_request *req, bool frames)
{
    static const struct stream_ops framed = {on_frames, on_room, on_gone};
    static const struct stream_ops lines = {ignore_bytes, on_room, on_gone};
    x->frames = frames;
    x->stream = stream_take(x->of->api, req, frames ? EXEC_HEAD_FRAMES : EXEC_HEAD_LINES,
                            frames ? &framed : &lines, x);
    return x->stream ? 0 : -1;
}

void command_sessions_start(struct command_sessions *k, struct evhttp_request *req,
                            struct managed_sandbox *r, const struct execution_command *wanted,
                            bool frames)
{
    static const struct execution_ops ops = {on_started, on_output, on_fed, on_ended};
    struct execution_command c = *wanted;
    struct err err = {0};
    struct command_session *x = make_room(k, r, &err) == 0 ? calloc(1, sizeof *x) : NULL;
    struct evbuffer *tail = x ? evbuffer_new() : NULL;
    c.more_input = frames || c.tty;
    if (tail)
        x->e = execution_command(r, &c, &ops, x, &err);
    if (tail == NULL || x->e == NULL) {
        if (tail)
            evbuffer_free(tail);
        free(x);
        api_refuse_err(req, &err);
        return;
    }
    x->of = k;
    x->tail = tail;
    x->tty = c.tty;
    x->started_at = execution_started_at(x->e);
    snprintf(x->sandbox, sizeof x->sandbox, "%s", r->id);
    snprintf(x->id, sizeof x->id, "%s", execution_id(x->e));
    struct command_session *was = find(k, r, x->id);
    if (was) /* of that name, and ended: what runs has another id */
        drop(was);
    LIST_INSERT_HEAD(&k->list, x, link);
    if (!frames) {
        api_reply(req, 201, session_json(x));
    } else if (take_client(x, req, true) < 0) {
        execution_abandon(x->e);
        drop(x);
        api_refuse(req, 503, "unavailable", "out of memory");
    }
}

/* Another client takes the place of the one that is there. */
static void send_away(struct command_session *x)
{
    exec_put(stream_out(x->stream), x->frames, EXEC_DETACHED,
             json_pack("{s:s}", "type", "detached"));
    exec_put_end(stream_out(x->stream), x->frames);
    stream_close(x->stream);
    x->stream = NULL;
    on_room(x);
}

static void note_attached(const struct command_session *x, struct evhttp_request *req)
{
    char who[256], text[EXECUTION_ID_MAX + sizeof who + 8];
    api_who(x->of->api, req, who, sizeof who);
    snprintf(text, sizeof text, "%s by %s", x->id, who);
    controller_note(x->of->api->controller, x->sandbox, "exec_attached", text);
}

void command_sessions_attach(struct command_sessions *k, struct evhttp_request *req,
                             struct managed_sandbox *r, const char *id)
{
    struct command_session *x = find(k, r, id);
    bool frames = stream_wanted(req, "durward-exec");
    if (x == NULL) {
        bool runs = execution_find(r, id) != NULL;
        api_refuse(req, runs ? 409 : 404, runs ? "conflict" : "not_found",
                   runs ? "it was not started with keep: it is its client's alone"
                        : "there is no such command");
        return;
    }
    if (x->stream)
        send_away(x);
    note_attached(x, req); /* before the request is no more */
    if (take_client(x, req, frames) < 0) {
        api_refuse(req, 503, "unavailable", "out of memory");
        return;
    }
    struct evbuffer *out = stream_out(x->stream);
    if (x->running)
        put_started(x);
    exec_put_kept(out, x->frames, x->tail);
    if (x->e == NULL)
        tell_end(x);
}

void command_sessions_forget(struct command_sessions *k, const struct managed_sandbox *r,
                             const char *id)
{
    struct command_session *x = find(k, r, id);
    if (x && x->e)
        x->unwanted = true;
    else if (x)
        drop(x);
}

void command_sessions_list(struct command_sessions *k, const struct managed_sandbox *r,
                           json_t *list)
{
    struct command_session *x;
    forget_old(k);
    LIST_FOREACH(x, &k->list, link)
    {
        if (strcmp(x->sandbox, r->id) != 0)
            continue;
        json_t *v = session_json(x);
        if (v && x->exit)
            json_object_set(v, "exit_code", json_object_get(x->exit, "exit_code"));
        json_array_append_new(list, v);
    }
}
