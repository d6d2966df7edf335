/* What comes from the server: taken apart, and what the rule leaves of it handed to the front. */
#include "imap_back.h"

#include <stdio.h>
#include <string.h>

/* ---- to the front ---- */

/* True: all of it is with the front. */
static bool send_down(struct imap_session *s)
{
    if (!broker_stream_send_buf(s->stream, &s->down))
        return false;
    while (buf_len(&s->status) > BROKER_PACKET_MAX) { /* its end is the packet that counts */
        struct slice some = {buf_slice(&s->status).p, BROKER_PACKET_MAX};
        if (broker_stream_send(s->stream, BROKER_ASIDE, some) <= 0)
            return false;
        buf_drain(&s->status, some.n);
    }
    if (buf_len(&s->status) > 0) {
        if (broker_stream_send(s->stream, BROKER_STATUS, buf_slice(&s->status)) <= 0)
            return false;
        buf_clear(&s->status);
    }
    return true;
}

/* The session is over; its front gets what is left first. */
static void end_soon(struct imap_session *s, enum record_kind kind, const char *code,
                     const char *detail)
{
    (void)send_down(s);
    (void)broker_stream_send(s->stream, BROKER_END, SLICE(""));
    imap_session_end(s, kind, code, detail);
}

void imap_carry_stop(struct imap_session *s, const char *code, const char *text)
{
    if (s->state < SESSION_RUNNING) {
        imap_session_refuse(s, code, text);
        return;
    }
    /* Within a response the words would be part of it. */
    if (!s->responses.begun && buf_printf(&s->down, "* BYE durward: %s: %s\r\n", text, code) < 0)
        buf_clear(&s->down);
    end_soon(s, RECORD_ABORTED, code, text);
}

/* ---- from the server ---- */

static int put_status(struct imap_session *s, const struct imap_answer *a)
{
    return buf_printf(&s->status, "%s ", a->status) < 0 || imap_answer_text(a, &s->status) < 0 ? -1
                                                                                               : 0;
}

/* A command's that may end now. */
static bool is_end(const struct imap_session *s, struct slice tag)
{
    return imap_say_is_tag(s, tag) && (s->turn == TURN_WORDS || s->turn == TURN_MESSAGE ||
                                       s->turn == TURN_LISTEN || s->turn == TURN_END);
}

static const char *on_running(struct imap_session *s, const struct imap_answer *a)
{
    switch (a->kind) {
    case IMAP_ANSWER_GO_ON:
        return imap_say_more(s) ? NULL : "the server waits for what nobody says";
    case IMAP_ANSWER_TAGGED:
        if (!is_end(s, a->tag) || put_status(s, a) < 0)
            return "the server answers what nobody asked";
        imap_say_ended(s, strcmp(a->status, "OK") == 0);
        return NULL;
    case IMAP_ANSWER_BYE:
        return buf_append_str(&s->down, "* BYE ") < 0 || imap_answer_text(a, &s->down) < 0 ||
                       buf_append(&s->down, "\r\n", 2) < 0
                   ? "the server says too much"
                   : NULL;
    case IMAP_ANSWER_STATUS:
    case IMAP_ANSWER_DATA:
        return imap_answer_put(a, s->request.rule->imap, &s->down) < 0
                   ? "an answer of the server's cannot be read"
                   : NULL;
    default:
        return NULL; /* what is between it and us */
    }
}

/* -1: the session is gone. */
static int on_whole(struct imap_session *s)
{
    struct imap_answer a;
    bool gone = false;
    const char *why = NULL;
    s->gone = &gone;
    if (imap_answer_read(buf_slice(&s->responses.line), &a) < 0)
        why = "an answer of the server's cannot be read";
    else if (s->state < SESSION_RUNNING)
        imap_login_answer(s, &a);
    else
        why = on_running(s, &a);
    if (gone)
        return -1;
    if (why) {
        imap_carry_stop(s, "upstream_protocol", why);
        return -1;
    }
    s->gone = NULL;
    imap_responses_next(&s->responses);
    return 0;
}

/* Until nothing is left, or the front has to take some first. -1: the session is gone. */
static int read_came(struct imap_session *s)
{
    while (buf_len(&s->came) > 0 && buf_len(&s->down) < IMAP_IO && buf_len(&s->status) == 0) {
        struct slice in = buf_slice(&s->came);
        if (in.n > IMAP_IO / 2)
            in.n = IMAP_IO / 2;
        size_t had = in.n;
        enum imap_part part = imap_responses_read(&s->responses, &in, &s->down);
        buf_drain(&s->came, had - in.n);
        if (part == IMAP_PART_BAD || (s->responses.passing && s->state < SESSION_RUNNING)) {
            imap_carry_stop(s, "upstream_protocol", "an answer of the server's cannot be read");
            return -1;
        }
        if (part == IMAP_PART_WHOLE && on_whole(s) < 0)
            return -1;
    }
    return 0;
}

/* 1: budgets leave no more now; -1: the session is gone. */
static int read_server(struct imap_session *s)
{
    const struct imap_terms *t = s->request.rule->imap;
    struct buf *in = io_in(s->link.io);
    size_t n = buf_len(in);
    if (n == 0 || buf_len(&s->came) >= IMAP_IO || buf_len(&s->down) >= IMAP_IO)
        return 0;
    n = back_request_down_room(&s->request, n);
    if (n == 0)
        return 1;
    if (t->megabytes && s->request.n_down + n > (uint64_t)t->megabytes * 1000000) {
        imap_carry_stop(s, "imap_megabytes",
                        "the session has had all the bytes that its rule allows");
        return -1;
    }
    if (buf_append(&s->came, buf_data(in), n) < 0) {
        imap_carry_stop(s, "memory", "");
        return -1;
    }
    back_request_down(&s->request, n);
    buf_drain(in, n);
    io_consumed(s->link.io);
    return 0;
}

static void turn(struct imap_session *s)
{
    do {
        int r = read_server(s);
        if (r < 0 || read_came(s) < 0 || !s->link.up)
            return;
        if (!send_down(s) || r > 0) {
            io_pause(s->link.io); /* until the front has room, or a budget */
            return;
        }
    } while (buf_len(io_in(s->link.io)) > 0 || buf_len(&s->came) > 0);
    io_resume(s->link.io);
    if (s->state == SESSION_RUNNING)
        io_deadline(s->link.io, IMAP_QUIET_SECONDS);
}

static void on_io(struct io *io, enum io_event ev, void *arg)
{
    struct imap_session *s = arg;
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
        imap_carry_stop(s, "timeout",
                        running ? "nothing went either way" : "the server took too long");
        return;
    default:
        break;
    }
    const char *why = ev == IO_ERROR ? io_why(io) : "the server closed the connection";
    if (running && ev == IO_EOF && s->turn == TURN_IDLE)
        end_soon(s, RECORD_COMPLETED, "ok", why); /* as after BYE */
    else
        imap_carry_stop(s, "upstream_closed", why);
}

void imap_carry_begin(struct imap_session *s)
{
    io_callback(s->link.io, on_io, s);
}

/* ---- from the front ---- */

static int on_packet(void *arg, enum broker_packet type, struct slice bytes)
{
    struct imap_session *s = arg;
    if (s->state != SESSION_RUNNING)
        return -1;
    if (type == BROKER_DATA)
        return back_request_up(&s->request, bytes);
    if (type != BROKER_END)
        return -1;
    if (s->turn == TURN_IDLE && imap_say_line(s, "LOGOUT") < 0)
        return 0;
    io_close_flushed(s->link.io);
    s->link.io = NULL;
    imap_session_end(s, RECORD_COMPLETED, "ok", "");
    return 0;
}

void imap_carry_more(void *session)
{
    struct imap_session *s = session;
    if (s->link.up)
        turn(s);
}

void imap_carry_spent(void *session)
{
    imap_carry_stop(session, "budget", "a budget of its rule or policy is used up");
}

static void on_writable(void *arg)
{
    struct imap_session *s = arg;
    if (s->state == SESSION_RUNNING && send_down(s))
        turn(s);
}

static void on_closed(void *arg)
{
    imap_session_end(arg, RECORD_ABORTED, "client_gone", "");
}

const struct broker_stream_ops imap_carry_ops = {
    .packet = on_packet, .writable = on_writable, .closed = on_closed};
