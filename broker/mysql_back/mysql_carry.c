/* Bytes between a front's stream and the server: each command is judged again, each reply is
 * followed to its end, and what comes is counted. */
#include "mysql_back.h"

#include <event2/event.h>
#include <stdio.h>
#include <string.h>

enum { CUT_CODE = 1317 }; /* ER_QUERY_INTERRUPTED */

/* ---- to the front ---- */

/* True: all of it is with the front. */
static bool send_down(struct mysql_session *s)
{
    while (buf_len(&s->out) > 0) {
        struct slice some = buf_slice(&s->out);
        if (some.n > BROKER_PACKET_MAX)
            some.n = BROKER_PACKET_MAX;
        if (broker_stream_send(s->stream, BROKER_DATA, some) <= 0)
            return false;
        buf_drain(&s->out, some.n);
    }
    buf_shrink(&s->out);
    return true;
}

/* The session is over; its front gets what is left first. */
static void end_soon(struct mysql_session *s, enum record_kind kind, const char *code,
                     const char *detail)
{
    (void)send_down(s);
    (void)broker_stream_send(s->stream, BROKER_END, SLICE(""));
    mysql_session_end(s, kind, code, detail);
}

/* With a last word, in the place of the packet of that number. */
static void cut(struct mysql_session *s, unsigned char number, const char *code, const char *text)
{
    char words[200];
    snprintf(words, sizeof words, "durward: %s: %s", text, code);
    if (mysql_put_error(&s->out, number, CUT_CODE, "70100", slice_str(words)) < 0)
        text = "and there was no room to say why";
    end_soon(s, RECORD_ABORTED, code, text);
}

void mysql_carry_stop(struct mysql_session *s, const char *code, const char *text)
{
    if (s->state < SESSION_RUNNING) {
        mysql_session_refuse(s, code, text);
    } else if (s->state == SESSION_ASKING) { /* in the place of the answer that waits */
        buf_cut(&s->out, s->answer);
        cut(s, s->number, code, text);
    } else if (mysql_reader_between(&s->down) && !mysql_reply_over(&s->reply) && !s->reply.file) {
        cut(s, (unsigned char)(s->number + 1), code, text);
    } else { /* nobody waits for a word, or one would stand within another */
        end_soon(s, RECORD_ABORTED, code, text);
    }
}

static void on_clock(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
    mysql_carry_stop(arg, "mysql_seconds", "the session's time is over");
}

void mysql_carry_on(struct mysql_session *s)
{
    s->state = SESSION_RUNNING;
    mysql_reader_free(&s->down);
    mysql_reader_init(&s->down, MYSQL_REPLIES);
    mysql_reply_begin(&s->reply, MYSQL_REPLY_NONE, false);
}

int mysql_carry_begin(struct mysql_session *s)
{
    unsigned seconds = mysql_terms_of(s)->seconds;
    mysql_carry_on(s);
    io_deadline(s->login.link.io, s->of->back->limits.tunnel_seconds);
    if (seconds) {
        const struct timeval t = {.tv_sec = (time_t)seconds};
        s->clock = event_new(s->of->back->base, -1, 0, on_clock, s);
        if (s->clock == NULL || event_add(s->clock, &t) < 0) {
            mysql_session_refuse(s, "memory", "");
            return -1;
        }
    }
    (void)broker_stream_send(s->stream, BROKER_OPENED, SLICE(""));
    return 0;
}

/* ---- from the server ---- */

/* 0: it may go on; -1: the session is gone. */
static int count(struct mysql_session *s, const struct mysql_part *m)
{
    const struct mysql_terms *t = mysql_terms_of(s);
    if (!m->first)
        return 0;
    s->n_rows += s->reply.row;
    s->n_seen += (uint64_t)m->length + MYSQL_HEAD;
    if (t->rows && s->n_rows > t->rows) {
        cut(s, mysql_number(m), "mysql_rows",
            "the session has had all the rows that its rule allows");
        return -1;
    }
    if (t->megabytes && s->n_seen > (uint64_t)t->megabytes * 1000000) {
        cut(s, mysql_number(m), "mysql_megabytes",
            "the session has had all the bytes that its rule allows");
        return -1;
    }
    return 0;
}

static int on_part(struct mysql_session *s, const struct mysql_part *m)
{
    if (s->state != SESSION_RUNNING)
        return mysql_check_packet(s, m);
    if (mysql_reply_take(&s->reply, m) < 0) {
        end_soon(s, RECORD_ABORTED, "upstream_protocol", "a packet that has no place in a reply");
        return -1;
    }
    if (count(s, m) < 0)
        return -1;
    s->number = mysql_number(m);
    if (m->last && s->reply.file)
        s->up.phase = MYSQL_FILE;
    size_t before = buf_len(&s->out);
    if (mysql_put_part(&s->out, m) < 0) {
        end_soon(s, RECORD_ABORTED, "memory", "");
        return -1;
    }
    s->answer = buf_len(&s->out) - before;
    return s->restores && m->last && mysql_reply_over(&s->reply) ? mysql_check_again(s) : 0;
}

/* 1: budgets leave no more now; -1: the session is gone. */
static int read_server(struct mysql_session *s)
{
    struct buf *in = io_in(s->login.link.io);
    while (buf_len(in) > 0 && (s->state != SESSION_RUNNING || buf_len(&s->out) < MYSQL_IO)) {
        struct slice rest = buf_slice(in);
        struct mysql_part m;
        bool running = s->state == SESSION_RUNNING;
        if (running)
            rest.n = back_request_down_room(&s->request, rest.n);
        size_t had = rest.n;
        if (had == 0)
            return 1;
        enum mysql_event e = mysql_read(&s->down, &rest, &m);
        if (e == MYSQL_VIOLATION) {
            const char *why = s->down.why;
            if (running)
                end_soon(s, RECORD_ABORTED, "upstream_protocol", why);
            else
                mysql_session_refuse(s, "upstream_protocol", why);
            return -1;
        }
        if (e == MYSQL_PART && on_part(s, &m) < 0)
            return -1;
        if (running)
            back_request_down(&s->request, had - rest.n);
        buf_drain(in, had - rest.n);
    }
    io_consumed(s->login.link.io);
    return 0;
}

static void turn(struct mysql_session *s)
{
    struct io *io = s->login.link.io;
    do {
        int r = read_server(s);
        if (r < 0)
            return;
        if (s->state == SESSION_RUNNING && (!send_down(s) || r > 0)) {
            io_pause(io); /* until the front has room, or a budget */
            return;
        }
    } while (s->state == SESSION_RUNNING && buf_len(io_in(io)) > 0);
    io_resume(io);
    if (s->state == SESSION_RUNNING)
        io_deadline(io, s->of->back->limits.tunnel_seconds);
}

void mysql_carry_io(struct io *io, enum io_event ev, void *arg)
{
    struct mysql_session *s = arg;
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
        mysql_carry_stop(s, "timeout",
                         running ? "nothing went either way" : "the server took too long");
        return;
    default:
        break;
    }
    const char *why = ev == IO_ERROR ? io_why(io) : "the server closed the connection";
    if (s->quitting)
        end_soon(s, RECORD_COMPLETED, "ok", "");
    else
        mysql_carry_stop(s, "upstream_closed", why);
}

/* ---- from the front ---- */

static void note_statement(struct mysql_session *s, const char *print)
{
    size_t i = 0;
    s->n_statements++;
    while (i < s->n_prints && memcmp(s->prints[i].text, print, MYSQL_PRINT) != 0)
        i++;
    if (i == MYSQL_PRINTS)
        return;
    if (i == s->n_prints) {
        memcpy(s->prints[i].text, print, MYSQL_PRINT);
        s->n_prints++;
    }
    s->prints[i].n++;
}

/* -1: the front lies. */
static int judge_again(struct mysql_session *s, const struct mysql_part *m)
{
    struct mysql_judged j;
    if (!mysql_reply_over(&s->reply) || s->quitting || mysql_number(m) != 0)
        return -1;
    mysql_judge(mysql_terms_of(s), slice_str(s->database), m, &j);
    if (j.why || j.statement.kills)
        return -1;
    s->quitting = j.quits;
    s->restores = j.statement.restores;
    if (j.statement.print[0])
        note_statement(s, j.statement.print);
    mysql_reply_begin(&s->reply, j.reply, j.may_ask);
    return 0;
}

/* Some of a file that the server has asked for; what is empty is its end. */
static int take_file(struct mysql_session *s, const struct mysql_part *m)
{
    if (m->first && m->length == 0) {
        mysql_reply_sent(&s->reply);
        s->up.phase = MYSQL_COMMANDS;
        s->number = mysql_number(m);
    }
    return 0;
}

int mysql_carry_up(void *session, struct slice bytes)
{
    struct mysql_session *s = session;
    struct io *io = s->login.link.io;
    struct mysql_part m;
    enum mysql_event e;
    while ((e = mysql_read(&s->up, &bytes, &m)) == MYSQL_PART) {
        int r = s->up.phase == MYSQL_FILE ? take_file(s, &m) : m.first ? judge_again(s, &m) : 0;
        if (r < 0)
            break;
        if (mysql_put_part(io_out(io), &m) < 0) {
            mysql_carry_stop(s, "memory", "");
            return 0;
        }
        if (m.last)
            s->number = mysql_number(&m);
    }
    if (e != MYSQL_MORE) { /* on record, and its session ends */
        mysql_carry_stop(s, "mysql_command", "the front handed on what its rule does not allow");
        return 0;
    }
    io_flush_soon(io);
    if (io_out_len(io) >= MYSQL_IO)
        back_request_pause(&s->request, true);
    io_deadline(io, s->of->back->limits.tunnel_seconds);
    return 0;
}

static int on_packet(void *arg, enum broker_packet type, struct slice bytes)
{
    struct mysql_session *s = arg;
    if (s->state < SESSION_RUNNING || s->up_end)
        return -1;
    if (type == BROKER_DATA)
        return back_request_up(&s->request, bytes);
    if (type == BROKER_EVENT && slice_eq_str(bytes, "K")) {
        mysql_kill_begin(s);
        return 0;
    }
    if (type != BROKER_END)
        return -1;
    s->up_end = true;
    io_close_flushed(s->login.link.io);
    s->login.link.io = NULL;
    mysql_session_end(s, RECORD_COMPLETED, "ok", "");
    return 0;
}

void mysql_carry_more(void *session)
{
    struct mysql_session *s = session;
    if (s->state == SESSION_RUNNING)
        turn(s);
}

void mysql_carry_spent(void *session)
{
    mysql_carry_stop(session, "budget", "a budget of its rule or policy is used up");
}

static void on_writable(void *arg)
{
    struct mysql_session *s = arg;
    if (s->state == SESSION_RUNNING && send_down(s))
        turn(s);
}

static void on_closed(void *arg)
{
    mysql_session_end(arg, RECORD_ABORTED, "client_gone", "");
}

const struct broker_stream_ops mysql_carry_ops = {
    .packet = on_packet, .writable = on_writable, .closed = on_closed};
