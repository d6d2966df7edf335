/* Bytes between a front's stream and the server, what is counted of them, and requests to cancel.
 */
#include "postgres_back.h"

#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- requests to cancel: a connection of their own, on which nothing is answered ---- */

struct postgres_cancelling {
    struct postgres_session *of;
    struct back_link link;
};

static void cancel_done(struct postgres_session *s)
{
    if (s->cancelling == NULL)
        return;
    back_link_end(&s->cancelling->link);
    free(s->cancelling);
    s->cancelling = NULL;
}

static void on_cancel_io(struct io *io UNUSED, enum io_event ev, void *arg)
{
    struct postgres_cancelling *c = arg;
    if (ev == IO_EOF || ev == IO_ERROR || ev == IO_TIMEOUT)
        cancel_done(c->of);
}

static void on_cancel_linked(void *arg, const char *code, const char *detail UNUSED)
{
    struct postgres_cancelling *c = arg;
    struct buf *out = code ? NULL : io_out(c->link.io);
    if (out == NULL || postgres_cancel_put(out, c->of->key) < 0) {
        cancel_done(c->of);
        return;
    }
    io_callback(c->link.io, on_cancel_io, c);
    io_deadline(c->link.io, POSTGRES_LOGIN_SECONDS);
    io_flush_soon(c->link.io);
}

static void cancel_begin(struct postgres_session *s)
{
    char id[48];
    if (s->cancelling || s->state != SESSION_RUNNING || s->key.process == 0)
        return;
    s->cancelling = calloc(1, sizeof *s->cancelling);
    if (s->cancelling == NULL)
        return;
    s->cancelling->of = s;
    back_request_id(&s->request, id, sizeof id);
    back_link_begin(&s->cancelling->link, s->of->back, &s->request.at, s->request.sandbox, id,
                    rule_certificate(s->request.rule), true, POSTGRES_ASK, 0, on_cancel_linked,
                    s->cancelling);
}

void postgres_carry_done(struct postgres_session *s)
{
    cancel_done(s);
}

/* ---- to the front ---- */

/* True: all of it is with the front. */
static bool send_down(struct postgres_session *s)
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
static void end_soon(struct postgres_session *s, enum record_kind kind, const char *code,
                     const char *detail)
{
    (void)send_down(s);
    (void)broker_stream_send(s->stream, BROKER_END, SLICE(""));
    postgres_session_end(s, kind, code, detail);
}

/* With a last word, in the place of what would come next. */
static void cut(struct postgres_session *s, const char *code, const char *sqlstate,
                const char *text)
{
    char words[200];
    snprintf(words, sizeof words, "durward: %s", text);
    if (postgres_put_error(&s->down, "FATAL", sqlstate, slice_str(words)) < 0)
        text = "and there was no room to say why";
    end_soon(s, RECORD_ABORTED, code, text);
}

void postgres_carry_stop(struct postgres_session *s, const char *code, const char *sqlstate,
                         const char *text)
{
    if (s->state < SESSION_RUNNING)
        postgres_session_refuse(s, code, text);
    else if (s->reader.have) /* within a message nothing can be said */
        end_soon(s, RECORD_ABORTED, code, text);
    else
        cut(s, code, sqlstate, text);
}

static void on_clock(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
    postgres_carry_stop(arg, "postgres_seconds", "57P05", "the session's time is over");
}

/* The server's number of the session, as bytes on the wire; empty: it has said none. */
static struct slice process_of(const struct postgres_session *s, unsigned char to[4])
{
    for (int i = 0; i < 4; i++)
        to[i] = (unsigned char)(s->key.process >> (24 - 8 * i));
    return (struct slice){(const char *)to, s->key.process ? 4 : 0};
}

int postgres_carry_begin(struct postgres_session *s)
{
    unsigned char number[4];
    unsigned seconds = s->request.rule->postgres->seconds;
    s->state = SESSION_RUNNING;
    s->reader.phase = POSTGRES_SESSION;
    io_deadline(s->link.io, s->of->back->limits.tunnel_seconds);
    if (seconds) {
        const struct timeval t = {.tv_sec = (time_t)seconds};
        s->clock = event_new(s->of->back->base, -1, 0, on_clock, s);
        if (s->clock == NULL || event_add(s->clock, &t) < 0) {
            postgres_session_refuse(s, "memory", "");
            return -1;
        }
    }
    if (postgres_put_ready(&s->down, 'I') < 0) { /* behind the settings */
        postgres_session_refuse(s, "memory", "");
        return -1;
    }
    (void)broker_stream_send(s->stream, BROKER_OPENED, process_of(s, number));
    (void)send_down(s);
    return 0;
}

/* 0: it may go on; -1: the session is gone. */
static int count(struct postgres_session *s, const struct postgres_part *m)
{
    const struct postgres_terms *t = s->request.rule->postgres;
    if ((m->type == 'D' || m->type == 'd') && m->first) { /* COPY: each is a row, too */
        s->n_rows++;
        if (t->rows && s->n_rows > t->rows) {
            cut(s, "postgres_rows", "53400",
                "the session has had all the rows that its rule allows");
            return -1;
        }
    }
    uint64_t more = m->first ? (uint64_t)m->length + POSTGRES_HEAD : 0;
    if (t->megabytes && m->first && s->n_seen + more > (uint64_t)t->megabytes * 1000000) {
        cut(s, "postgres_megabytes", "53400",
            "the session has had all the bytes that its rule allows");
        return -1;
    }
    s->n_seen += more;
    return 0;
}

static int on_message(struct postgres_session *s, const struct postgres_part *m)
{
    if (s->state < SESSION_RUNNING)
        return postgres_login_message(s, m);
    const char *why = m->type == 'S' ? postgres_login_reported(s, m->body) : NULL;
    if (why) {
        cut(s, "postgres_setting", "42501", why);
        return -1;
    }
    if (count(s, m) < 0)
        return -1;
    if (postgres_put_part(&s->down, m) < 0) {
        end_soon(s, RECORD_ABORTED, "memory", "");
        return -1;
    }
    return 0;
}

/* 1: budgets leave no more now; -1: the session is gone. */
static int read_server(struct postgres_session *s)
{
    struct buf *in = io_in(s->link.io);
    struct slice all = buf_slice(in);
    while (all.n > 0 && buf_len(&s->down) < POSTGRES_IO) {
        struct slice rest = all;
        struct postgres_part m;
        if (s->state == SESSION_RUNNING)
            rest.n = back_request_down_room(&s->request, rest.n);
        size_t had = rest.n;
        if (had == 0)
            break;
        enum postgres_event e = postgres_read(&s->reader, &rest, &m);
        if (e == POSTGRES_VIOLATION) {
            if (s->state < SESSION_RUNNING)
                postgres_session_refuse(s, "upstream_protocol", s->reader.why);
            else
                end_soon(s, RECORD_ABORTED, "upstream_protocol", s->reader.why);
            return -1;
        }
        if (e != POSTGRES_MORE && on_message(s, &m) < 0)
            return -1;
        if (s->state == SESSION_RUNNING)
            back_request_down(&s->request, had - rest.n);
        all.p += had - rest.n;
        all.n -= had - rest.n;
    }
    bool spent = all.n > 0 && buf_len(&s->down) < POSTGRES_IO;
    buf_drain(in, buf_len(in) - all.n);
    if (!spent)
        io_consumed(s->link.io);
    return spent;
}

static void turn(struct postgres_session *s)
{
    do {
        int r = read_server(s);
        if (r < 0)
            return;
        if (s->state == SESSION_RUNNING && (!send_down(s) || r > 0)) {
            io_pause(s->link.io); /* until the front has room, or a budget */
            return;
        }
    } while (s->state == SESSION_RUNNING && buf_len(io_in(s->link.io)) > 0);
    io_resume(s->link.io);
    if (s->state == SESSION_RUNNING)
        io_deadline(s->link.io, s->of->back->limits.tunnel_seconds);
}

void postgres_carry_io(struct io *io, enum io_event ev, void *arg)
{
    struct postgres_session *s = arg;
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
        if (running)
            end_soon(s, RECORD_ABORTED, "timeout", "nothing went either way");
        else
            postgres_session_refuse(s, "timeout", "the server took too long");
        return;
    default:
        break;
    }
    const char *why = ev == IO_ERROR ? io_why(io) : "the server closed the connection";
    if (!running) /* a certificate that the server refuses is told of after the handshake */
        postgres_session_refuse(s, ev == IO_ERROR ? "upstream_tls" : "upstream_closed", why);
    else if (s->up_end)
        end_soon(s, RECORD_COMPLETED, "ok", "");
    else
        end_soon(s, RECORD_ABORTED, "upstream_closed", why);
}

/* ---- from the front ---- */

static void count_statement(struct postgres_session *s, struct slice e)
{
    size_t i = 0;
    s->n_statements++;
    while (i < s->n_prints && memcmp(s->prints[i].text, e.p + 1, POSTGRES_PRINT) != 0)
        i++;
    if (i == POSTGRES_PRINTS)
        return;
    if (i == s->n_prints) {
        memcpy(s->prints[i].text, e.p + 1, POSTGRES_PRINT);
        s->n_prints++;
    }
    s->prints[i].n++;
}

/* "S" and a fingerprint: a statement that goes to the server, whose bytes may follow at once; "C":
 * cancel what runs. */
static int on_event(struct postgres_session *s, struct slice e)
{
    if (slice_eq_str(e, "C")) {
        cancel_begin(s);
        return 0;
    }
    if (e.n < 1 + POSTGRES_PRINT || e.p[0] != 'S' || s->up_end)
        return -1;
    for (size_t i = 1; i < 1 + POSTGRES_PRINT; i++)
        if (!strchr("0123456789abcdef", e.p[i]) || e.p[i] == 0)
            return -1;
    count_statement(s, e);
    struct slice rest = {e.p + 1 + POSTGRES_PRINT, e.n - 1 - POSTGRES_PRINT};
    return rest.n ? back_request_up(&s->request, rest) : 0;
}

static int on_packet(void *arg, enum broker_packet type, struct slice bytes)
{
    struct postgres_session *s = arg;
    if (type == BROKER_EVENT)
        return s->state == SESSION_RUNNING ? on_event(s, bytes) : -1;
    if (type == BROKER_END && !s->up_end) {
        s->up_end = true;
        if (s->state != SESSION_RUNNING)
            return -1;
        io_close_flushed(s->link.io);
        s->link.io = NULL;
        postgres_session_end(s, RECORD_COMPLETED, "ok", "");
        return 0;
    }
    if (type != BROKER_DATA || s->state != SESSION_RUNNING || s->up_end)
        return -1;
    return back_request_up(&s->request, bytes);
}

int postgres_carry_up(void *session, struct slice bytes)
{
    struct postgres_session *s = session;
    if (buf_append_slice(io_out(s->link.io), bytes) < 0)
        return -1;
    io_flush(s->link.io);
    if (io_out_len(s->link.io) >= POSTGRES_IO)
        back_request_pause(&s->request, true);
    io_deadline(s->link.io, s->of->back->limits.tunnel_seconds);
    return 0;
}

void postgres_carry_more(void *session)
{
    struct postgres_session *s = session;
    if (s->state == SESSION_RUNNING)
        turn(s);
}

void postgres_carry_spent(void *session)
{
    postgres_carry_stop(session, "budget", "53400", "a budget of its rule or policy is used up");
}

static void on_writable(void *arg)
{
    struct postgres_session *s = arg;
    if (s->state == SESSION_RUNNING && send_down(s))
        turn(s);
}

static void on_closed(void *arg)
{
    postgres_session_end(arg, RECORD_ABORTED, "client_gone", "");
}

const struct broker_stream_ops postgres_carry_ops = {
    .packet = on_packet, .writable = on_writable, .closed = on_closed};
