/* The login, and what goes between a front's stream and the server: commands argument by argument,
 * judged again; replies as they are. */
#include "redis_back.h"

#include <event2/event.h>
#include <stdio.h>
#include <string.h>

/* As secrets/vault/scram_proof.h numbers it. */
enum { PROOF_CLEARTEXT = 3 };
enum { ANSWER_MAX = 1024 };

/* ---- to the front ---- */

/* True: all of it is with the front. */
static bool send_down(struct redis_session *s)
{
    while (buf_len(&s->down) > 0) {
        struct slice some = buf_slice(&s->down);
        if (some.n > BROKER_PACKET_MAX)
            some.n = BROKER_PACKET_MAX;
        if (broker_stream_send(s->stream, BROKER_DATA, some) <= 0)
            return false;
        buf_drain(&s->down, some.n);
    }
    return true;
}

/* The session is over; its front gets what is left first. */
static void end_soon(struct redis_session *s, enum record_kind kind, const char *code,
                     const char *detail)
{
    (void)send_down(s);
    (void)broker_stream_send(s->stream, BROKER_END, SLICE(""));
    redis_session_end(s, kind, code, detail);
}

void redis_carry_stop(struct redis_session *s, const char *code, const char *text)
{
    if (s->state < SESSION_RUNNING)
        redis_session_refuse(s, code, text);
    else
        end_soon(s, RECORD_ABORTED, code, text);
}

static void on_clock(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
    redis_carry_stop(arg, "redis_seconds", "the session's time is over");
}

/* ---- the login ---- */

static void open_session(struct redis_session *s)
{
    unsigned seconds = s->request.rule->redis->seconds;
    s->state = SESSION_RUNNING;
    io_deadline(s->link.io, s->of->back->limits.tunnel_seconds);
    if (seconds) {
        const struct timeval t = {.tv_sec = (time_t)seconds};
        s->clock = event_new(s->of->back->base, -1, 0, on_clock, s);
        if (s->clock == NULL || event_add(s->clock, &t) < 0) {
            redis_session_refuse(s, "memory", "");
            return;
        }
    }
    (void)broker_stream_send(s->stream, BROKER_OPENED, SLICE(""));
}

static void select_database(struct redis_session *s)
{
    char digits[SLICE_U64_TEXT];
    struct buf *out = io_out(s->link.io);
    if (!s->request.rule->redis->has_database || s->request.rule->redis->database == 0) {
        open_session(s);
        return;
    }
    s->state = SESSION_SELECTING;
    if (resp_put_array(out, 2) < 0 || resp_put_bulk(out, SLICE("SELECT")) < 0 ||
        resp_put_bulk(out, slice_of_u64(s->request.rule->redis->database, digits)) < 0)
        redis_session_refuse(s, "memory", "");
    else
        io_flush_soon(s->link.io);
}

/* Of an error that answers the login its first word ("WRONGPASS"), where it is a code: what else it
 * says may be that login, as servers have it that do not know AUTH. */
static void refused(struct redis_session *s, struct slice line)
{
    char text[80];
    size_t n = 0;
    while (n < line.n && n < 32 && line.p[n] >= 'A' && line.p[n] <= 'Z')
        n++;
    if (n < line.n && line.p[n] != ' ')
        n = 0;
    snprintf(text, sizeof text, "the server says %.*s", n ? (int)n : 8, n ? line.p : "an error");
    redis_session_refuse(s, "upstream_login", text);
}

/* One line, and nothing behind it: what came there would be an answer to the sandbox. */
static void on_answer(struct redis_session *s)
{
    struct buf *in = io_in(s->link.io);
    struct slice said = buf_slice(in);
    ssize_t end = slice_find_slice(said, SLICE("\r\n"));
    if (end < 0 && said.n < ANSWER_MAX) {
        io_consumed(s->link.io);
        return;
    }
    if (end < 0 || (size_t)end + 2 != said.n || (said.p[0] != '-' && said.p[0] != '+')) {
        redis_session_refuse(s, "upstream_protocol", "the server's answer cannot be read");
        return;
    }
    if (said.p[0] == '-') {
        refused(s, (struct slice){said.p + 1, (size_t)end - 1});
        return;
    }
    buf_drain(in, said.n);
    io_consumed(s->link.io);
    if (s->state == SESSION_ANSWER)
        select_database(s);
    else
        open_session(s);
}

static void on_password(void *arg, struct slice password, const struct err *err)
{
    struct redis_session *s = arg;
    struct buf *out = io_out(s->link.io);
    s->proof = NULL;
    if (password.n == 0 || password.n > REDIS_PASSWORD_MAX) {
        redis_session_refuse(s, "secret_unavailable",
                             err ? err->text : "the vault gave no password");
        return;
    }
    bool named = strcmp(s->user, "default") != 0; /* whom servers before Redis 6 do not know */
    if (resp_put_array(out, named ? 3 : 2) < 0 || resp_put_bulk(out, SLICE("AUTH")) < 0 ||
        (named && resp_put_bulk(out, slice_str(s->user)) < 0) || resp_put_bulk(out, password) < 0) {
        redis_session_refuse(s, "memory", "");
        return;
    }
    s->state = SESSION_ANSWER;
    io_flush_soon(s->link.io);
}

/* TLS 1.3 tells of a certificate that a server refuses only with what it says next. */
static void ask_in(struct redis_session *s)
{
    struct buf *out = io_out(s->link.io);
    s->state = SESSION_ANSWER;
    if (resp_put_array(out, 1) < 0 || resp_put_bulk(out, SLICE("PING")) < 0)
        redis_session_refuse(s, "memory", "");
    else
        io_flush_soon(s->link.io);
}

/* ---- from the server ---- */

/* 1: budgets leave no more now; -1: the session is gone. */
static int read_server(struct redis_session *s)
{
    const struct redis_terms *t = s->request.rule->redis;
    struct buf *in = io_in(s->link.io);
    size_t n = buf_len(in);
    if (n == 0 || buf_len(&s->down) >= REDIS_IO)
        return 0;
    n = back_request_down_room(&s->request, n);
    if (n == 0)
        return 1;
    if (t->megabytes && s->request.n_down + n > (uint64_t)t->megabytes * 1000000) {
        end_soon(s, RECORD_ABORTED, "redis_megabytes",
                 "the session has had all the bytes that its rule allows");
        return -1;
    }
    if (buf_append(&s->down, buf_data(in), n) < 0) {
        end_soon(s, RECORD_ABORTED, "memory", "");
        return -1;
    }
    back_request_down(&s->request, n);
    buf_drain(in, n);
    io_consumed(s->link.io);
    return 0;
}

/* The server is gone, and all that it said is with the front. */
static void over(struct redis_session *s)
{
    if (broker_stream_send(s->stream, BROKER_END, SLICE("")) > 0) /* else once there is room */
        redis_session_end(s, RECORD_COMPLETED, "ok", "the server closed the connection");
}

static void turn(struct redis_session *s)
{
    if (s->state == SESSION_ANSWER || s->state == SESSION_SELECTING) {
        on_answer(s);
        return;
    }
    if (s->state != SESSION_RUNNING) {
        redis_session_refuse(s, "upstream_protocol", "the server speaks before it is asked");
        return;
    }
    do {
        int r = read_server(s);
        if (r < 0)
            return;
        if (!send_down(s) || r > 0) {
            io_pause(s->link.io); /* until the front has room, or a budget */
            return;
        }
    } while (buf_len(io_in(s->link.io)) > 0);
    if (s->server_gone) {
        over(s);
        return;
    }
    io_resume(s->link.io);
    io_deadline(s->link.io, s->of->back->limits.tunnel_seconds);
}

static void on_io(struct io *io, enum io_event ev, void *arg)
{
    struct redis_session *s = arg;
    bool running = s->state == SESSION_RUNNING;
    switch (ev) {
    case IO_READABLE:
        turn(s);
        return;
    case IO_DRAINED:
        back_request_pause(&s->request, false);
        return;
    case IO_CONNECTED:
        return;
    case IO_TIMEOUT:
        redis_carry_stop(s, "timeout",
                         running ? "nothing went either way" : "the server took too long");
        return;
    default:
        break;
    }
    if (running && ev == IO_EOF) { /* as after QUIT */
        s->server_gone = true;
        turn(s);
        return;
    }
    redis_carry_stop(s, "upstream_closed",
                     ev == IO_ERROR ? io_why(io) : "the server closed the connection");
}

void redis_carry_begin(struct redis_session *s)
{
    io_callback(s->link.io, on_io, s);
    io_deadline(s->link.io, REDIS_LOGIN_SECONDS);
    if (redis_session_without_login(s)) {
        ask_in(s);
        return;
    }
    s->state = SESSION_PASSWORD;
    struct sign_wait *w = secret_client_sign_text(s->of->back->secrets, s->request.sandbox,
                                                  s->request.rule->credential->secret,
                                                  PROOF_CLEARTEXT, SLICE(""), on_password, s);
    if (w)
        s->proof = w; /* else on_password ran, and may have ended the session */
}

/* ---- from the front ---- */

static void count(struct redis_session *s, const struct redis_command *command)
{
    size_t i = 0;
    s->n_commands++;
    while (i < s->n_names && s->names[i].command != command)
        i++;
    if (i == REDIS_NAMES)
        return;
    if (i == s->n_names)
        s->names[s->n_names++].command = command;
    s->names[i].n++;
}

/* What was read, judged again, for the server, which does nothing before it has a command whole. A
 * front says nothing of its own but the word that no server knows. -1: the front lies. */
static int judge_again(struct redis_session *s, enum resp_event e)
{
    const struct resp_commands *c = &s->commands;
    struct redis_judged *j = &s->judged;
    bool over = (e == RESP_ARGUMENT || e == RESP_LONG_END) && resp_command_over(c);
    if (e == RESP_BEGUN) {
        redis_judge_begin(j, s->request.rule->redis, c->n);
        s->word = false;
        return 0;
    }
    if (e == RESP_ARGUMENT && c->n == 1 && slice_starts(c->said, SLICE(REDIS_WORD)))
        s->word = true;
    else if (e == RESP_ARGUMENT || e == RESP_LONG)
        redis_judge_argument(j, c->i, e == RESP_ARGUMENT ? &c->said : NULL);
    if (over && !s->word) {
        redis_judge_end(j);
        if (j->command && !j->why)
            count(s, j->command);
    }
    return j->why || j->login || j->hello.has_login ? -1 : 0;
}

/* How many there are is said with the first of them. */
static int put_up(struct redis_session *s, enum resp_event e)
{
    struct buf *out = io_out(s->link.io);
    const struct resp_commands *c = &s->commands;
    if (e == RESP_BEGUN || (e == RESP_ARGUMENT && c->i == 0 && resp_put_array(out, c->n) < 0))
        return e == RESP_BEGUN ? 0 : -1;
    return resp_put_read(out, c, e);
}

/* What a front that lies asked for: on record, and its session ends. */
static int on_lie(struct redis_session *s)
{
    redis_carry_stop(s, "redis_command", "the front handed on what its rule does not allow");
    return 0;
}

int redis_carry_up(void *session, struct slice bytes)
{
    struct redis_session *s = session;
    if (s->server_gone)
        return 0; /* nobody hears it */
    while (bytes.n > 0) {
        enum resp_event e = resp_commands_read(&s->commands, &bytes);
        if (e == RESP_VIOLATION || (e != RESP_MORE && judge_again(s, e) < 0))
            return on_lie(s);
        if (put_up(s, e) < 0) {
            redis_carry_stop(s, "memory", "");
            return 0;
        }
    }
    io_flush_soon(s->link.io);
    if (io_out_len(s->link.io) >= REDIS_IO)
        back_request_pause(&s->request, true);
    io_deadline(s->link.io, s->of->back->limits.tunnel_seconds);
    return 0;
}

static int on_packet(void *arg, enum broker_packet type, struct slice bytes)
{
    struct redis_session *s = arg;
    if (s->state != SESSION_RUNNING || s->up_end)
        return -1;
    if (type == BROKER_DATA)
        return back_request_up(&s->request, bytes);
    if (type != BROKER_END)
        return -1;
    s->up_end = true;
    io_close_flushed(s->link.io);
    s->link.io = NULL;
    redis_session_end(s, RECORD_COMPLETED, "ok", "");
    return 0;
}

void redis_carry_more(void *session)
{
    struct redis_session *s = session;
    if (s->state == SESSION_RUNNING)
        turn(s);
}

void redis_carry_spent(void *session)
{
    redis_carry_stop(session, "budget", "a budget of its rule or policy is used up");
}

static void on_writable(void *arg)
{
    struct redis_session *s = arg;
    if (s->state == SESSION_RUNNING && send_down(s))
        turn(s);
}

static void on_closed(void *arg)
{
    redis_session_end(arg, RECORD_ABORTED, "client_gone", "");
}

const struct broker_stream_ops redis_carry_ops = {
    .packet = on_packet, .writable = on_writable, .closed = on_closed};
