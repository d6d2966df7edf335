/* Commands: answered whole, as lines, or as frames in both directions; and forwarded ports. */
#include "api_internal.h"
#include "exec_frames.h"
#include "command_sessions.h"

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char keys[] = "command argv cwd env timeout stdin stdin_encoding split max_output "
                           "encoding id stream tty rows cols keep";

/* A wish, and what its pointers point to. */
struct exec_wish {
    struct execution_command c;
    struct strlist argv, env;
    char *input;
    bool stream, base64, keep;
    json_t *body;
};

static void wish_done(struct exec_wish *w)
{
    strlist_done(&w->argv);
    strlist_done(&w->env);
    free(w->input);
    json_decref(w->body);
}

static int read_argv(struct exec_wish *w, struct err *err)
{
    json_t *list = json_object_get(w->body, "argv"), *word;
    size_t i;
    if (asked_text(w->body, "command", 1 << 20, &w->c.command, err) < 0)
        return -1;
    if (!list == !w->c.command || (w->c.command && *w->c.command == 0))
        return err_set(err, ERR_PARSE, "exactly one of command and argv is needed");
    if (list == NULL)
        return 0;
    if (!json_is_array(list) || json_array_size(list) == 0 || json_array_size(list) > STRLIST_MAX)
        return err_set(err, ERR_PARSE, "argv must be a list of 1 to %d texts", STRLIST_MAX);
    json_array_foreach(list, i, word)
    {
        const char *s = json_string_value(word);
        if (s == NULL || strlen(s) != json_string_length(word))
            return err_set(err, ERR_PARSE, "argv must be texts without NUL");
        if (strlist_add(&w->argv, s) < 0)
            return err_set(err, ERR_LIMIT, "argv is too long; `command` may be 1 MiB");
    }
    w->c.argv = &w->argv;
    return 0;
}

static int read_env(struct exec_wish *w, struct err *err)
{
    const char *key;
    json_t *value, *env = NULL;
    if (asked_env(w->body, "env", &env, err) < 0)
        return -1;
    json_object_foreach(env, key, value)
    {
        if (strlist_set_env(&w->env, key, json_string_value(value)) < 0)
            return err_set(err, ERR_LIMIT, "env is too long");
    }
    w->c.env = &w->env;
    return 0;
}

static int read_numbers(struct exec_wish *w, struct err *err)
{
    int64_t timeout = EXECUTION_TIMEOUT_DEFAULT, max = EXECUTION_OUTPUT_DEFAULT, rows = 24,
            cols = 80;
    if (asked_integer(w->body, "timeout", 0, MANAGED_SANDBOX_TTL_MAX, &timeout, err) < 0 ||
        asked_integer(w->body, "max_output", 0, EXECUTION_OUTPUT_MAX, &max, err) < 0 ||
        asked_integer(w->body, "rows", 1, UINT16_MAX, &rows, err) < 0 ||
        asked_integer(w->body, "cols", 1, UINT16_MAX, &cols, err) < 0 ||
        asked_flag(w->body, "split", &w->c.split, err) < 0 ||
        asked_flag(w->body, "stream", &w->stream, err) < 0 ||
        asked_flag(w->body, "tty", &w->c.tty, err) < 0 ||
        asked_flag(w->body, "keep", &w->keep, err) < 0)
        return -1;
    w->c.timeout = (unsigned)timeout;
    w->c.max_output = (size_t)max;
    w->c.rows = (uint32_t)rows;
    w->c.cols = (uint32_t)cols;
    return 0;
}

static int wish_read(struct exec_wish *w, struct evhttp_request *req, struct err *err)
{
    const char *encoding = "utf-8";
    memset(w, 0, sizeof *w);
    w->body = asked_body(req, keys, err);
    if (w->body == NULL || read_argv(w, err) < 0 || read_env(w, err) < 0 ||
        read_numbers(w, err) < 0 || asked_text(w->body, "cwd", 4095, &w->c.cwd, err) < 0 ||
        asked_text(w->body, "id", EXECUTION_ID_MAX, &w->c.id, err) < 0 ||
        asked_text(w->body, "encoding", 16, &encoding, err) < 0 ||
        asked_bytes(w->body, "stdin", "stdin_encoding", &w->input, &w->c.n_input, err) < 0)
        return -1;
    w->c.input = w->input;
    w->base64 = strcmp(encoding, "base64") == 0;
    if (!w->base64 && strcmp(encoding, "utf-8") != 0)
        return err_set(err, ERR_PARSE, "encoding must be utf-8 or base64");
    if (w->c.cwd && asked_path(w->c.cwd, err) < 0)
        return -1;
    return w->c.id ? asked_id(w->c.id, err) : 0;
}

/* ---- answered whole ---- */

struct whole {
    struct evhttp_request *req;
    bool base64, split;
};

static json_t *whole_json(const struct whole *w, const struct execution *e, bool base64)
{
    json_t *out = asked_encode(execution_output(e, 1), base64);
    json_t *error = asked_encode(execution_output(e, 2), base64);
    json_t *v = NULL;
    if (out && error)
        v = json_pack("{s:s, s:I, s:o, s:s, s:b, s:b, s:s, s:I}", "id", execution_id(e),
                      "exit_code", (json_int_t)execution_status(e), w->split ? "stdout" : "output",
                      json_incref(out), "encoding", base64 ? "base64" : "utf-8", "truncated",
                      execution_truncated(e), "timed_out", execution_timed_out(e), "message",
                      execution_text(e), "duration_ms", (json_int_t)execution_ms(e));
    if (v && w->split) {
        json_object_set(v, "stderr", error);
        json_object_set_new(v, "output", json_string(""));
    }
    json_decref(out);
    json_decref(error);
    return v;
}

static void whole_ended(void *arg, struct execution *e)
{
    struct whole *w = arg;
    json_t *v = w->base64 ? NULL : whole_json(w, e, false);
    if (v == NULL)
        v = whole_json(w, e, true);
    api_reply(w->req, 200, v);
    free(w);
}

static void exec_whole(struct evhttp_request *req, struct managed_sandbox *r,
                       const struct exec_wish *x)
{
    static const struct execution_ops ops = {.ended = whole_ended};
    struct err err = {0};
    struct whole *w = malloc(sizeof *w);
    if (x->c.tty)
        err_set(&err, ERR_PARSE, "tty needs stream or an upgraded connection");
    else if (w) {
        *w = (struct whole){req, x->base64, x->c.split};
        if (execution_command(r, &x->c, &ops, w, &err))
            return;
    }
    free(w);
    api_refuse_err(req, &err);
}

/* ---- as lines, and as frames ---- */

struct talk {
    struct stream *stream; /* NULL once it is gone */
    struct execution *e;   /* NULL once it ended */
    bool frames;
};

static void talk_started(void *arg, struct execution *e, int fd UNUSED)
{
    struct talk *t = arg;
    if (t->stream)
        exec_put(stream_out(t->stream), t->frames, EXEC_STARTED, exec_started_json(e));
}

static void talk_output(void *arg, struct execution *e, int which, const void *p, size_t n)
{
    struct talk *t = arg;
    if (t->stream == NULL)
        return;
    exec_put_output(stream_out(t->stream), t->frames, which == 1 ? EXEC_OUT : EXEC_ERR, p, n);
    if (stream_full(t->stream))
        execution_pause(e, true);
}

static void talk_fed(void *arg, struct execution *e UNUSED)
{
    struct talk *t = arg;
    if (t->stream)
        stream_pause(t->stream, false);
}

static void talk_ended(void *arg, struct execution *e)
{
    struct talk *t = arg;
    if (t->stream) {
        exec_put(stream_out(t->stream), t->frames, EXEC_EXIT, exec_exit_json(e));
        exec_put_end(stream_out(t->stream), t->frames);
        stream_close(t->stream);
    }
    free(t);
}

static void on_gone(void *arg)
{
    struct talk *t = arg;
    t->stream = NULL;
    execution_abandon(t->e);
    free(t);
}

static void on_room(void *arg)
{
    struct talk *t = arg;
    execution_pause(t->e, false);
}

static void on_frames(void *arg, struct evbuffer *in)
{
    struct talk *t = arg;
    int r = exec_frames_take(in, t->e);
    if (r < 0)
        stream_drop(t->stream);
    else if (r > 0)
        stream_pause(t->stream, true);
}

static void ignore_bytes(void *arg UNUSED, struct evbuffer *in)
{
    evbuffer_drain(in, SIZE_MAX);
}

static void exec_talk(struct api *a, struct evhttp_request *req, struct managed_sandbox *r,
                      struct exec_wish *x, bool frames)
{
    static const struct execution_ops ops = {talk_started, talk_output, talk_fed, talk_ended};
    static const struct stream_ops framed = {on_frames, on_room, on_gone};
    static const struct stream_ops lines = {ignore_bytes, on_room, on_gone};
    struct err err = {0};
    struct talk *t = calloc(1, sizeof *t);
    x->c.more_input = frames;
    if (t)
        t->e = execution_command(r, &x->c, &ops, t, &err);
    if (t && t->e) {
        t->frames = frames;
        t->stream = stream_take(a, req, frames ? EXEC_HEAD_FRAMES : EXEC_HEAD_LINES,
                                frames ? &framed : &lines, t);
        if (t->stream)
            return;
        execution_abandon(t->e);
    }
    free(t);
    api_refuse_err(req, &err);
}

HANDLER_IN(api_exec)
{
    struct exec_wish w;
    struct err err = {0};
    bool frames = stream_wanted(req, "durward-exec");
    (void)q;
    if (wish_read(&w, req, &err) < 0)
        api_refuse_err(req, &err);
    else if (w.keep && w.stream)
        api_refuse(req, 400, "bad_request", "keep goes without stream: upgrade, or attach later");
    else if (w.keep)
        command_sessions_start(a->kept, req, r, &w.c, frames);
    else if (frames || w.stream)
        exec_talk(a, req, r, &w, frames);
    else
        exec_whole(req, r, &w);
    wish_done(&w);
}

/* ---- what runs ---- */

struct running {
    const struct command_sessions *kept;
    json_t *list;
};

static void add_running(void *arg, struct execution *e)
{
    const struct running *x = arg;
    if (!command_sessions_has(x->kept, e))
        json_array_append_new(x->list, json_pack("{s:s, s:I}", "id", execution_id(e), "started_at",
                                                 (json_int_t)execution_started_at(e)));
}

HANDLER_IN(api_execs)
{
    struct running x = {a->kept, json_array()};
    (void)q;
    execution_each(r, add_running, &x);
    command_sessions_list(a->kept, r, x.list);
    api_reply(req, 200, json_pack("{s:o}", "execs", x.list));
}

HANDLER_IN(api_attach)
{
    struct err err = {0};
    if (asked_id(q->args[1], &err) < 0)
        api_refuse(req, 404, "not_found", err.text);
    else
        command_sessions_attach(a->kept, req, r, q->args[1]);
}

HANDLER_IN(api_cancel)
{
    struct err err = {0};
    if (asked_id(q->args[1], &err) < 0) {
        api_refuse(req, 404, "not_found", err.text);
        return;
    }
    struct execution *e = execution_find(r, q->args[1]);
    if (e)
        execution_signal(e, 9);
    command_sessions_forget(a->kept, r, q->args[1]);
    api_no_content(req);
}

/* ---- a port inside ---- */

struct forward {
    struct api *api;
    struct evhttp_request *req; /* until it is connected */
    struct stream *stream;
    struct bufferevent *inside;
};

static void forward_end(struct forward *f)
{
    if (f->stream)
        stream_close(f->stream);
    if (f->inside)
        bufferevent_free(f->inside);
    free(f);
}

static void forward_gone(void *arg)
{
    struct forward *f = arg;
    f->stream = NULL;
    forward_end(f);
}

static void pass_in(void *arg, struct evbuffer *in)
{
    struct forward *f = arg;
    bufferevent_write_buffer(f->inside, in);
    if (evbuffer_get_length(bufferevent_get_output(f->inside)) > STREAM_HIGH)
        stream_pause(f->stream, true);
}

static void room_outside(void *arg)
{
    struct forward *f = arg;
    bufferevent_enable(f->inside, EV_READ);
}

static void pass_out(struct bufferevent *bev, void *arg)
{
    struct forward *f = arg;
    evbuffer_add_buffer(stream_out(f->stream), bufferevent_get_input(bev));
    if (stream_full(f->stream))
        bufferevent_disable(bev, EV_READ);
}

static void room_inside(struct bufferevent *bev UNUSED, void *arg)
{
    struct forward *f = arg;
    stream_pause(f->stream, false);
}

static void inside_event(struct bufferevent *bev, short what UNUSED, void *arg)
{
    struct forward *f = arg;
    evbuffer_add_buffer(stream_out(f->stream), bufferevent_get_input(bev));
    forward_end(f);
}

static void forward_started(void *arg, struct execution *e, int fd)
{
    static const struct stream_ops ops = {pass_in, room_outside, forward_gone};
    struct forward *f = arg;
    f->inside = bufferevent_socket_new(f->api->controller->base, fd, BEV_OPT_CLOSE_ON_FREE);
    if (f->inside == NULL) {
        close(fd);
        return; /* forward_ended says so */
    }
    f->stream = stream_take(f->api, f->req,
                            "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n"
                            "Upgrade: durward-forward\r\n\r\n",
                            &ops, f);
    if (f->stream == NULL)
        return;
    f->req = NULL;
    bufferevent_setcb(f->inside, pass_out, room_inside, inside_event, f);
    bufferevent_setwatermark(f->inside, EV_WRITE, STREAM_LOW, 0);
    bufferevent_setwatermark(f->inside, EV_READ, 0, STREAM_HIGH);
    bufferevent_enable(f->inside, EV_READ | EV_WRITE);
    execution_abandon(e); /* it has done its work, and f may not live until its last word */
}

static void forward_ended(void *arg, struct execution *e)
{
    struct forward *f = arg;
    if (execution_status(e) == 0 || f->inside)
        api_refuse(f->req, 503, "unavailable", "out of memory");
    else
        api_refuse(f->req, 503, "not_listening", "nothing in the sandbox listens on that port");
    forward_end(f);
}

HANDLER_IN(api_forward)
{
    static const struct execution_ops ops = {.started = forward_started, .ended = forward_ended};
    struct err err = {0};
    int64_t port;
    if (asked_number(q, "port", 1, 65535, 0, &port, &err) < 0 || port == 0 ||
        !stream_wanted(req, "durward-forward")) {
        if (err.code == ERR_NONE)
            err_set(&err, ERR_PARSE,
                    port ? "this needs `Upgrade: durward-forward`" : "port is missing");
        api_refuse_err(req, &err);
        return;
    }
    struct forward *f = calloc(1, sizeof *f);
    if (f) {
        *f = (struct forward){.api = a, .req = req};
        if (execution_connect(r, (unsigned)port, &ops, f, &err))
            return;
    }
    free(f);
    api_refuse_err(req, &err);
}
