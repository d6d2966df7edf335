/* A connection of the sandbox's: greeting, TLS, and its end. */
#include "imap_front.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void imap_client_free(struct imap_client *c, bool flushed)
{
    front_tls_end(&c->tls);
    if (flushed)
        io_close_lingering(c->io);
    else
        io_close(c->io);
    broker_stream_free(c->stream);
    imap_command_free(&c->command);
    policy_free(c->policy);
    buf_free(&c->up);
    buf_free(&c->status);
    LIST_REMOVE(c, link);
    free(c);
}

int imap_tell(struct imap_client *c, const char *fmt, ...)
{
    char line[BROKER_PACKET_MAX + IMAP_TAG_MAX];
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(line, sizeof line - 2, fmt, ap);
    va_end(ap);
    if (n < 0 || (size_t)n >= sizeof line - 2) {
        imap_client_free(c, false);
        return -1;
    }
    memcpy(line + n, "\r\n", 2);
    if (buf_append(io_out(c->io), line, (size_t)n + 2) < 0) {
        imap_client_free(c, false); /* it reads nothing */
        return -1;
    }
    io_flush_soon(c->io);
    return 0;
}

void imap_bye(struct imap_client *c, const char *code, const char *text)
{
    if (imap_tell(c, "* BYE durward: %s: %s", text, code) == 0)
        imap_client_free(c, true);
}

int imap_no(struct imap_client *c, const char *status, const char *text, const char *code)
{
    if (++c->refusals >= IMAP_REFUSALS_MAX) {
        imap_bye(c, code, "too many of its commands were refused");
        return -1;
    }
    return imap_tell(c, "%s %s durward: %s%s%s", c->tag, status, text, code[0] ? ": " : "", code);
}

void imap_denied(struct imap_client *c, const char *code, const char *detail)
{
    struct record r;
    struct buf b, name;
    record_init(&r, RECORD_DENIED, 0);
    record_put_str(&r, RF_METHOD, "connect");
    record_put_str(&r, RF_PATH, "/");
    record_put_str(&r, RF_DETAIL, detail);
    if (c->rule)
        record_put_str(&r, RF_RULE, c->rule->text);
    buf_init(&b, RECORD_FIELD_MAX);
    buf_init(&name, RECORD_FIELD_MAX / 2);
    const struct imap_command *d = &c->command;
    bool named = d->code == code && d->n_folders > 0 &&
                 imap_name_show(buf_slice(&d->folder[d->n_folders - 1]), &name) == 0;
    if (d->code == code && imap_command_show(d, named ? buf_slice(&name) : SLICE(""), &b) == 0)
        record_put(&r, RF_STATEMENTS, buf_slice(&b));
    buf_free(&name);
    buf_free(&b);
    front_denied(c->of->front, &r, &c->at, code);
}

void imap_violation(struct imap_client *c, const char *why)
{
    imap_denied(c, "imap_protocol", why);
    imap_bye(c, "imap_protocol", why);
}

static void on_no_tls(void *arg)
{
    imap_client_free(arg, false);
}

static void begin_tls(struct imap_client *c)
{
    c->secure = true;
    front_tls_begin(&c->tls, c->of->front, c->io, &c->at, on_no_tls, c);
}

static int greet(struct imap_client *c)
{
    c->state = CLIENT_COMMANDS;
    io_deadline(c->io, IMAP_QUIET_SECONDS);
    return imap_capability(c, "* OK [", "] durward");
}

void imap_turn(struct imap_client *c)
{
    int e = 1;
    while (e > 0) {
        if (c->state == CLIENT_SILENT || c->wants_tls || c->blocked || buf_len(io_in(c->io)) == 0) {
            io_consumed(c->io);
            return;
        }
        e = c->state == CLIENT_COMMANDS ? imap_next_command(c)
            : c->state == CLIENT_AUTH   ? imap_next_answer(c)
                                        : imap_next_bytes(c);
    }
    if (e == 0)
        io_consumed(c->io);
}

static void on_readable(struct imap_client *c)
{
    bool tls = c->wants_tls || (c->state == CLIENT_SILENT && !c->tls.begun);
    if (front_tls_pending(&c->tls) || buf_len(io_in(c->io)) == 0)
        return;
    if (!tls) {
        imap_turn(c);
    } else if (front_tls_is_hello(buf_slice(io_in(c->io)))) {
        c->wants_tls = false;
        begin_tls(c);
    } else {
        imap_denied(c, "imap_protocol", "what should begin TLS does not");
        imap_client_free(c, false);
    }
}

static void on_timeout(struct imap_client *c)
{
    if (front_tls_pending(&c->tls))
        front_tls_refused(&c->tls, "handshake time-out");
    if (c->state == CLIENT_SILENT || front_tls_pending(&c->tls))
        imap_client_free(c, false);
    else
        imap_bye(c, "timeout", "nothing went either way");
}

static void on_io(struct io *io, enum io_event ev, void *arg)
{
    struct imap_client *c = arg;
    switch (ev) {
    case IO_READABLE:
        on_readable(c);
        break;
    case IO_CONNECTED:
        if (c->state != CLIENT_SILENT || greet(c) == 0)
            imap_turn(c);
        break;
    case IO_DRAINED:
        if (c->stream)
            broker_stream_pause(c->stream, false);
        break;
    case IO_TIMEOUT:
        on_timeout(c);
        break;
    default:
        if (ev == IO_ERROR && front_tls_pending(&c->tls))
            front_tls_refused(&c->tls, io_why(io));
        if (c->stream)
            (void)broker_stream_send(c->stream, BROKER_END, SLICE(""));
        imap_client_free(c, false);
        break;
    }
}

/* Who may not speak to that server is told so in place of a greeting. */
static void begin(struct imap_client *c)
{
    struct decision d;
    policy_imap_decide(c->of->front->policy, &c->at, &d);
    if (d.verdict == VERDICT_DENY) {
        imap_denied(c, d.code, "");
        imap_bye(c, d.code, "refused");
        return;
    }
    c->policy = policy_ref(c->of->front->policy);
    c->rule = d.rule;
    if (c->rule->imap->implicit)
        io_deadline(c->io, c->of->front->limits.head_seconds);
    else
        (void)greet(c);
}

void imap_client_new(struct imap_front *of, const struct authority *at, int fd)
{
    struct imap_client *c = of->n_clients < IMAP_CLIENTS_MAX ? calloc(1, sizeof *c) : NULL;
    if (c == NULL) {
        close(fd);
        return;
    }
    c->io = io_new(of->front->base, fd, IMAP_IO, IMAP_DOWN_MAX, true);
    if (c->io == NULL) {
        free(c);
        return;
    }
    c->of = of;
    c->at = *at;
    buf_init_wiped(&c->up, IMAP_UP_MAX);
    buf_init_wiped(&c->status, IMAP_RESPONSE_MAX + 64);
    imap_command_init(&c->command);
    LIST_INSERT_HEAD(&of->clients, c, link);
    io_counted(c->io, &of->n_clients);
    io_high_mark(c->io, IMAP_IO);
    io_callback(c->io, on_io, c);
    begin(c);
}
