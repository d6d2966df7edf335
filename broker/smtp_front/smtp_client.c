/* A connection of the sandbox's: greeting, TLS, and lines one by one. */
#include "smtp_front.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void smtp_client_free(struct smtp_client *c, bool flushed)
{
    front_tls_end(&c->tls);
    if (flushed)
        io_close_lingering(c->io);
    else
        io_close(c->io);
    broker_stream_free(c->stream);
    smtp_forget(c);
    policy_free(c->policy);
    buf_free(&c->up);
    LIST_REMOVE(c, link);
    free(c);
}

int smtp_say(struct smtp_client *c, const char *text)
{
    struct buf *out = io_out(c->io);
    if (buf_append_str(out, text) < 0 || buf_append(out, "\r\n", 2) < 0) {
        smtp_client_free(c, false); /* it reads nothing */
        return -1;
    }
    io_flush_soon(c->io);
    return 0;
}

int smtp_refuse(struct smtp_client *c, const char *text)
{
    if (++c->errors < SMTP_ERRORS_MAX)
        return smtp_say(c, text);
    if (smtp_say(c, "421 4.7.0 durward: too many of its commands were refused") == 0)
        smtp_client_free(c, true);
    return -1;
}

void smtp_denied(struct smtp_client *c, const char *code, const char *detail)
{
    struct record r;
    record_init(&r, RECORD_DENIED, 0);
    record_put_str(&r, RF_METHOD, "connect");
    record_put_str(&r, RF_PATH, "/");
    record_put_str(&r, RF_DETAIL, detail);
    if (c->rule)
        record_put_str(&r, RF_RULE, c->rule->text);
    front_denied(c->of->front, &r, &c->at, code);
}

/* By the policy as it is now, of which a reference is kept for its rule's sake. Where no rule of
 * mail's decides the connection keeps the one that it had. */
bool smtp_decide(struct smtp_client *c, const struct smtp_envelope *e, const char **code)
{
    struct decision d;
    policy_smtp_decide(c->of->front->policy, &c->at, e, &d);
    *code = d.code;
    if (d.rule && d.rule->smtp) {
        struct policy *was = c->policy;
        c->policy = policy_ref(c->of->front->policy);
        c->rule = d.rule;
        policy_free(was);
    }
    return d.verdict != VERDICT_DENY;
}

static int greet(struct smtp_client *c)
{
    char text[SMTP_ANSWER];
    c->state = CLIENT_COMMANDS;
    snprintf(text, sizeof text, "220 %s ESMTP durward", c->at.host);
    io_deadline(c->io, c->of->front->limits.tunnel_seconds);
    return smtp_say(c, text);
}

static void on_no_tls(void *arg)
{
    smtp_client_free(arg, false);
}

static void begin_tls(struct smtp_client *c)
{
    c->secure = true;
    front_tls_begin(&c->tls, c->of->front, c->io, &c->at, on_no_tls, c);
}

/* One line. 0: there is none; 1: go on; -1: the client is gone. */
static int turn_line(struct smtp_client *c)
{
    struct slice line;
    struct buf *in = io_in(c->io);
    char own[SMTP_AUTH_LINE_MAX];
    bool login = c->state == CLIENT_AUTH || slice_istarts(buf_slice(in), SLICE("AUTH "));
    ssize_t n = buf_len(in) == 0
                    ? 0
                    : smtp_line(buf_slice(in), login ? SMTP_AUTH_LINE_MAX : SMTP_LINE_MAX, &line);
    if (n == 0) {
        io_consumed(c->io);
        return 0;
    }
    if (n < 0) {
        smtp_denied(c, "smtp_protocol", "no line of SMTP");
        if (smtp_say(c, "500 5.5.2 durward: refused: no line of SMTP: smtp_protocol") == 0)
            smtp_client_free(c, true);
        return -1;
    }
    memcpy(own, line.p, line.n);
    line.p = own;
    buf_drain(in, (size_t)n);
    io_deadline(c->io, c->of->front->limits.tunnel_seconds);
    bool was = c->state == CLIENT_AUTH;
    int e = was ? smtp_answer(c, line) : smtp_command(c, line);
    if (e <= 0)
        return e < 0 ? -1 : 1;
    c->wants_tls = true; /* the reply goes out in clear */
    return 0;
}

void smtp_turn(struct smtp_client *c)
{
    for (;;) {
        int e = 0;
        if (c->state == CLIENT_COMMANDS || c->state == CLIENT_AUTH)
            e = turn_line(c);
        else if ((c->state == CLIENT_TEXT || c->state == CLIENT_DROPPING) && !c->blocked &&
                 buf_len(io_in(c->io)) > 0)
            e = smtp_text(c) < 0 ? -1 : 1;
        if (e <= 0)
            return;
    }
}

static void on_readable(struct smtp_client *c)
{
    bool tls = c->wants_tls || (c->state == CLIENT_SILENT && !c->tls.begun);
    if (front_tls_pending(&c->tls) || buf_len(io_in(c->io)) == 0)
        return;
    if (!tls) {
        smtp_turn(c);
    } else if (front_tls_is_hello(buf_slice(io_in(c->io)))) {
        c->wants_tls = false;
        begin_tls(c);
    } else {
        smtp_denied(c, "smtp_protocol", "what should begin TLS does not");
        smtp_client_free(c, false);
    }
}

static void on_connected(struct smtp_client *c)
{
    if (c->state != CLIENT_SILENT || greet(c) == 0)
        smtp_turn(c);
}

static void on_io(struct io *io, enum io_event ev, void *arg)
{
    struct smtp_client *c = arg;
    switch (ev) {
    case IO_READABLE:
        on_readable(c);
        break;
    case IO_CONNECTED:
        on_connected(c);
        break;
    case IO_DRAINED:
        break;
    case IO_TIMEOUT:
        if (front_tls_pending(&c->tls))
            front_tls_refused(&c->tls, "handshake time-out");
        if (c->state == CLIENT_SILENT || front_tls_pending(&c->tls))
            smtp_client_free(c, false);
        else if (smtp_say(c, "421 4.4.2 durward: nothing went either way: timeout") == 0)
            smtp_client_free(c, true);
        break;
    default:
        if (ev == IO_ERROR && front_tls_pending(&c->tls))
            front_tls_refused(&c->tls, io_why(io));
        smtp_client_free(c, false);
        break;
    }
}

/* Who may not speak to that server is told so in place of a greeting. */
static void begin(struct smtp_client *c)
{
    const char *code;
    char text[SMTP_ANSWER];
    if (!smtp_decide(c, NULL, &code)) {
        smtp_denied(c, code, "");
        snprintf(text, sizeof text, "554 5.7.1 durward: refused: %s", code);
        if (smtp_say(c, text) == 0)
            smtp_client_free(c, true);
        return;
    }
    if (!c->rule->smtp->implicit && greet(c) < 0)
        return;
    if (c->rule->smtp->implicit)
        io_deadline(c->io, c->of->front->limits.head_seconds);
}

void smtp_client_new(struct smtp_front *of, const struct authority *at, int fd)
{
    struct smtp_client *c = of->n_clients < SMTP_CLIENTS_MAX ? calloc(1, sizeof *c) : NULL;
    if (c == NULL) {
        close(fd);
        return;
    }
    c->io = io_new(of->front->base, fd, SMTP_IO, SMTP_DOWN_MAX, true);
    if (c->io == NULL) {
        free(c);
        return;
    }
    c->of = of;
    c->at = *at;
    buf_init_wiped(&c->up, SMTP_UP_MAX);
    LIST_INSERT_HEAD(&of->clients, c, link);
    io_counted(c->io, &of->n_clients);
    io_callback(c->io, on_io, c);
    begin(c);
}
