/* A message at a server: each step waits for the server's reply to the one before, and nothing of
 * it is anybody's words but ours and the envelope's addresses. */
#include "smtp_back.h"

#include "base64.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int smtp_tell(struct smtp_session *s, const char *fmt, ...)
{
    char line[2 * (BACK_LOGIN_PASSWORD_MAX + BACK_LOGIN_USER_MAX)];
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(line, sizeof line - 2, fmt, ap);
    va_end(ap);
    bool fits = n >= 0 && (size_t)n < sizeof line - 2;
    int e = -1;
    if (fits) {
        memcpy(line + n, "\r\n", 2);
        e = io_write(s->link.io, line, (size_t)n + 2);
    }
    explicit_bzero(line, sizeof line);
    if (e < 0)
        smtp_talk_stop(s, "memory", "");
    return e;
}

/* Its words in one line; a text of at most size bytes. */
static void words_of(const struct smtp_reply *r, char *text, size_t size)
{
    struct buf b;
    buf_init(&b, SMTP_REPLY_MAX);
    text[0] = 0;
    if (smtp_reply_text(r, &b) == 0 && buf_len(&b) > 0) {
        struct slice all = buf_slice(&b);
        snprintf(text, size, "%.*s", all.n < size ? (int)all.n : (int)size - 1, all.p);
    }
    buf_free(&b);
}

/* The front hears what the server said, in its form; the session is over. By now the login is
 * forgotten. */
static void conclude(struct smtp_session *s, const struct smtp_reply *r, const char *whose)
{
    char text[SMTP_SAID_MAX], status[SMTP_SAID_MAX + 8], detail[SMTP_SAID_MAX + 200];
    bool good = r->code < 300;
    words_of(r, text, sizeof text);
    int n = snprintf(status, sizeof status, "%u %s", r->code, text);
    (void)broker_stream_send(s->stream, BROKER_STATUS, (struct slice){status, (size_t)n});
    (void)broker_stream_send(s->stream, BROKER_END, SLICE(""));
    snprintf(detail, sizeof detail, "the server answers %u to %s", r->code, whose);
    if (io_write(s->link.io, "QUIT\r\n", 6) == 0) {
        io_close_flushed(s->link.io);
        s->link.io = NULL;
    }
    smtp_session_end(s, good ? RECORD_COMPLETED : RECORD_ABORTED, good ? "ok" : "smtp_refused",
                     good ? "" : detail);
}

void smtp_talk_stop(struct smtp_session *s, const char *code, const char *text)
{
    smtp_session_refuse(s, code, text);
}

/* ---- steps ---- */

static void mail(struct smtp_session *s)
{
    const struct smtp_facts *f = &s->facts;
    char size[40] = "";
    if ((f->eight && !s->server.eight) || (f->utf8 && !s->server.utf8)) {
        smtp_talk_stop(s, "smtp_extension",
                       f->utf8
                           ? "the server does not take addresses and headers in UTF-8 (SMTPUTF8)"
                           : "the server does not take text of 8 bits (8BITMIME)");
        return;
    }
    if (s->server.size && f->envelope.size)
        snprintf(size, sizeof size, " SIZE=%llu", (unsigned long long)f->envelope.size);
    s->state = SESSION_MAIL;
    (void)smtp_tell(s, "MAIL FROM:<%.*s>%s%s%s", (int)f->envelope.sender.n,
                    f->envelope.sender.n ? f->envelope.sender.p : "", size,
                    f->eight ? " BODY=8BITMIME" : "", f->utf8 ? " SMTPUTF8" : "");
}

static void rcpt(struct smtp_session *s)
{
    if (s->recipient < s->facts.envelope.n) {
        s->state = SESSION_RCPT;
        (void)smtp_tell(s, "RCPT TO:<%.*s>", SL(s->facts.envelope.recipients[s->recipient]));
        return;
    }
    s->state = SESSION_DATA;
    (void)smtp_tell(s, "DATA");
}

static void begin_text(struct smtp_session *s)
{
    s->state = SESSION_TEXT;
    io_deadline(s->link.io, s->of->back->limits.tunnel_seconds);
    (void)broker_stream_send(s->stream, BROKER_OPENED, SLICE(""));
}

static void on_ehlo(struct smtp_session *s, const struct smtp_reply *r)
{
    const struct smtp_terms *t = s->request.rule->smtp;
    smtp_server_read(r, &s->server);
    if (s->state == SESSION_SECURE_EHLO || t->implicit || t->plain) {
        smtp_login_ask(s);
        return;
    }
    if (!s->server.starttls) {
        smtp_talk_stop(s, "upstream_tls", "the server does not speak TLS (STARTTLS)");
        return;
    }
    s->state = SESSION_STARTTLS;
    (void)smtp_tell(s, "STARTTLS");
}

/* What the server refuses before any of the message is the login's or ours. */
static void fail(struct smtp_session *s, const struct smtp_reply *r)
{
    char text[SMTP_SAID_MAX], detail[SMTP_SAID_MAX + 40], domain[300];
    bool login = s->state >= SESSION_USER && s->state <= SESSION_AUTH;
    if (s->state == SESSION_RCPT) {
        struct slice at = smtp_address_domain(s->facts.envelope.recipients[s->recipient]);
        snprintf(domain, sizeof domain, "a recipient at %.*s", SL(at));
        conclude(s, r, domain);
    } else if (s->state >= SESSION_MAIL && r->code >= 400) {
        conclude(s, r, s->state == SESSION_MAIL ? "the sender" : "the message");
    } else if (s->state >= SESSION_MAIL) {
        smtp_talk_stop(s, "upstream_protocol", "the server's reply is none to what was said");
    } else {
        if (login)
            smtp_login_code(r, text, sizeof text);
        else
            words_of(r, text, sizeof text);
        snprintf(detail, sizeof detail, "the server says %u%s%s", r->code, text[0] ? " " : "",
                 text);
        smtp_talk_stop(s,
                       login                          ? "upstream_login"
                       : s->state == SESSION_STARTTLS ? "upstream_tls"
                                                      : "upstream_protocol",
                       detail);
    }
}

/* The reply that each state waits for, as its first digits. */
static bool is_wanted(enum session_state state, unsigned code)
{
    switch (state) {
    case SESSION_GREETING:
    case SESSION_STARTTLS:
        return code == 220;
    case SESSION_USER:
    case SESSION_PROOF:
        return code == 334;
    case SESSION_AUTH:
        return code == 235;
    case SESSION_DATA:
        return code == 354;
    default:
        return code / 100 == 2;
    }
}

static void tell_user(struct smtp_session *s)
{
    struct buf coded;
    buf_init(&coded, 2 * BACK_LOGIN_USER_MAX);
    s->state = SESSION_PROOF;
    if (base64_append(&coded, slice_str(s->login.user)) < 0) {
        buf_free(&coded);
        smtp_talk_stop(s, "memory", "");
        return;
    }
    (void)smtp_tell(s, "%.*s", SL(buf_slice(&coded)));
    buf_free(&coded);
}

static void on_reply(struct smtp_session *s, const struct smtp_reply *r)
{
    if (!is_wanted(s->state, r->code)) {
        fail(s, r);
        return;
    }
    switch (s->state) {
    case SESSION_GREETING:
        s->state = SESSION_EHLO;
        (void)smtp_tell(s, "EHLO [127.0.0.1]");
        break;
    case SESSION_EHLO:
    case SESSION_SECURE_EHLO:
        on_ehlo(s, r);
        break;
    case SESSION_STARTTLS:
        back_link_upgrade(&s->link); /* it may be gone */
        break;
    case SESSION_USER:
        tell_user(s);
        break;
    case SESSION_PROOF:
        s->state = SESSION_AUTH;
        smtp_login_proof(s);
        break;
    case SESSION_AUTH:
        back_login_forget(&s->login);
        mail(s);
        break;
    case SESSION_RCPT:
        s->recipient++;
        rcpt(s);
        break;
    case SESSION_MAIL:
        rcpt(s);
        break;
    case SESSION_DATA:
        begin_text(s);
        break;
    default:
        conclude(s, r, "the message");
        break;
    }
}

/* ---- from the server ---- */

/* One reply to one command, and nothing behind it: what came there would be taken for the answer
 * to the next. */
static void turn(struct smtp_session *s)
{
    struct buf *in = io_in(s->link.io), own;
    struct smtp_reply r;
    struct slice said = buf_slice(in);
    ssize_t n = said.n ? smtp_reply_read(said, &r) : 0;
    if (n == 0) {
        io_consumed(s->link.io);
        return;
    }
    bool early =
        s->state == SESSION_PASSWORD || (s->state == SESSION_TEXT && n > 0 && r.code < 400);
    if (n < 0 || (size_t)n != said.n || early) {
        smtp_talk_stop(s, "upstream_protocol", "the server's reply cannot be read");
        return;
    }
    buf_init_wiped(&own, SMTP_REPLY_MAX);
    if (buf_append_slice(&own, r.lines) < 0) {
        buf_free(&own);
        smtp_talk_stop(s, "memory", "");
        return;
    }
    r.lines = buf_slice(&own);
    buf_drain(in, (size_t)n);
    io_consumed(s->link.io);
    back_request_down(&s->request, (size_t)n);
    on_reply(s, &r);
    buf_free(&own);
}

static void on_io(struct io *io, enum io_event ev, void *arg)
{
    struct smtp_session *s = arg;
    switch (ev) {
    case IO_READABLE:
        turn(s);
        return;
    case IO_DRAINED:
        if (!s->front_gone)
            back_request_pause(&s->request, false);
        return;
    case IO_CONNECTED:
        return;
    case IO_TIMEOUT:
        smtp_talk_stop(s, "timeout", "the server took too long");
        return;
    default:
        break;
    }
    smtp_talk_stop(s, "upstream_closed",
                   ev == IO_ERROR ? io_why(io) : "the server closed the connection");
}

/* At first, and once more when TLS is there: then what the server said before counts for nothing.
 */
void smtp_talk_begin(struct smtp_session *s)
{
    bool secured = s->state == SESSION_STARTTLS;
    io_callback(s->link.io, on_io, s);
    io_high_mark(s->link.io, SMTP_IO);
    io_deadline(s->link.io, SMTP_LOGIN_SECONDS);
    memset(&s->server, 0, sizeof s->server);
    s->state = secured ? SESSION_SECURE_EHLO : SESSION_GREETING;
    if (secured)
        (void)smtp_tell(s, "EHLO [127.0.0.1]");
    else if (buf_len(io_in(s->link.io)) > 0)
        turn(s);
}

/* ---- from the front ---- */

/* What a front that lies handed on: on record, and its session ends. */
static int on_lie(struct smtp_session *s, const char *code, const char *text)
{
    smtp_talk_stop(s, code, text);
    return 0;
}

int smtp_talk_up(void *session, struct slice bytes)
{
    struct smtp_session *s = session;
    struct buf out;
    if (s->request.n_up > s->request.rule->smtp->most_bytes)
        return on_lie(s, "smtp_size", "the front handed on more than its rule allows");
    buf_init_wiped(&out, SMTP_WRITTEN_MAX);
    int e = smtp_message_write(&s->writer, bytes, &out);
    if (e == 0 && io_write(s->link.io, buf_data(&out), buf_len(&out)) < 0)
        e = -2;
    buf_free(&out);
    if (e == -1)
        return on_lie(s, "smtp_message", "the front handed on what is not a message");
    if (e < 0) {
        smtp_talk_stop(s, "memory", "");
        return 0;
    }
    if (io_out_len(s->link.io) >= SMTP_IO)
        back_request_pause(&s->request, true);
    io_deadline(s->link.io, s->of->back->limits.tunnel_seconds);
    return 0;
}

static int on_end(struct smtp_session *s)
{
    if (smtp_message_end(&s->writer, io_out(s->link.io)) < 0)
        return on_lie(s, "smtp_message", "the front ended a message within a line");
    s->state = SESSION_ENDING;
    io_flush_soon(s->link.io);
    io_deadline(s->link.io, SMTP_END_SECONDS);
    return 0;
}

static int on_packet(void *arg, enum broker_packet type, struct slice bytes)
{
    struct smtp_session *s = arg;
    if (s->state != SESSION_TEXT)
        return -1;
    if (type == BROKER_DATA)
        return back_request_up(&s->request, bytes);
    return type == BROKER_END ? on_end(s) : -1;
}

void smtp_talk_more(void *session UNUSED)
{
}

void smtp_talk_spent(void *session)
{
    struct smtp_session *s = session;
    if (s->state != SESSION_ENDING)
        smtp_talk_stop(s, "budget", "a budget of its rule or policy is used up");
}

static void on_writable(void *arg UNUSED)
{
}

/* A message that the server has whole is sent, whether somebody waits for its answer or not. */
static void on_closed(void *arg)
{
    struct smtp_session *s = arg;
    s->front_gone = true;
    if (s->state != SESSION_ENDING)
        smtp_session_end(s, RECORD_ABORTED, "client_gone", "");
}

const struct broker_stream_ops smtp_talk_ops = {
    .packet = on_packet, .writable = on_writable, .closed = on_closed};
