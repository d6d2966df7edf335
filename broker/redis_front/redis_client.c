/* A connection of the sandbox's: the decision, and commands and replies both ways. */
#include "redis_front.h"

#include <openssl/rand.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void client_free(struct redis_client *c, bool flushed)
{
    front_tls_end(&c->tls);
    if (flushed)
        io_close_lingering(c->io);
    else
        io_close(c->io);
    broker_stream_free(c->stream);
    resp_commands_free(&c->commands);
    resp_replies_free(&c->replies);
    policy_free(c->policy);
    c->of->held -= c->held;
    buf_free(&c->up);
    LIST_REMOVE(c, link);
    free(c);
}

/* The last word to the client. */
static void say_and_end(struct redis_client *c, const char *kind, const char *code,
                        const char *text)
{
    char words[800];
    int n = snprintf(words, sizeof words, "-%s durward: %.600s: %s\r\n", kind, text, code);
    for (int i = 0; i < n - 2; i++)
        if (words[i] == '\r' || words[i] == '\n')
            words[i] = ' ';
    client_free(c, io_write(c->io, words, (size_t)n) == 0);
}

static void deny(struct redis_client *c, const char *kind, const char *code, const char *detail)
{
    struct record r;
    record_init(&r, RECORD_DENIED, 0);
    record_put_str(&r, RF_METHOD, "connect");
    record_put_str(&r, RF_PATH, "/");
    record_put_str(&r, RF_DETAIL, detail);
    if (c->rule)
        record_put_str(&r, RF_RULE, c->rule->text);
    front_denied(c->of->front, &r, &c->at, code);
    say_and_end(c, kind, code, detail[0] ? detail : "denied: no rule of the policy allows it");
}

/* ---- the back's stream ---- */

/* What may go, goes. False: the stream is full. */
static bool send_up(struct redis_client *c)
{
    while (buf_len(&c->up) > c->held) {
        struct slice some = buf_slice(&c->up);
        some.n -= c->held;
        if (some.n > BROKER_PACKET_MAX)
            some.n = BROKER_PACKET_MAX;
        if (broker_stream_send(c->stream, BROKER_DATA, some) <= 0)
            return false;
        buf_drain(&c->up, some.n);
    }
    buf_shrink(&c->up);
    return true;
}

/* True: c is gone. */
static bool ended(struct redis_client *c, enum resp_event e)
{
    const char *code = NULL;
    if (e == RESP_VIOLATION) {
        deny(c, "ERR Protocol error:", "redis_protocol", c->commands.why);
        return true;
    }
    if (e != RESP_MORE)
        code = redis_answer_up(c, e);
    if (code && c->judged.why)
        say_and_end(c, "NOPERM", code, c->judged.why);
    else if (code)
        say_and_end(c, "ERR", code, "out of memory");
    return code != NULL;
}

static void turn(struct redis_client *c)
{
    struct buf *in = io_in(c->io);
    while (buf_len(in) > 0) {
        struct slice rest = buf_slice(in);
        size_t had = rest.n;
        enum resp_event e = resp_commands_read(&c->commands, &rest);
        if (ended(c, e))
            return;
        buf_drain(in, had - rest.n);
        if ((buf_len(&c->up) - c->held >= BROKER_PACKET_MAX || buf_len(in) == 0) && !send_up(c)) {
            c->blocked = true;
            io_pause(c->io);
            return;
        }
    }
    io_consumed(c->io);
    io_deadline(c->io, c->of->front->limits.tunnel_seconds);
}

static int on_data(struct redis_client *c, struct slice bytes)
{
    if (!c->running ||
        resp_replies_read(&c->replies, bytes, io_out(c->io), redis_answer_down, c) < 0)
        return -1;
    io_flush_soon(c->io);
    io_deadline(c->io, c->of->front->limits.tunnel_seconds);
    if (io_out_len(c->io) >= REDIS_IO)
        broker_stream_pause(c->stream, true);
    return 0;
}

static int on_refused(struct redis_client *c, struct slice s)
{
    char code[64], text[700];
    ssize_t nul = slice_find(s, 0);
    if (nul < 0 || nul >= (ssize_t)sizeof code)
        return -1;
    snprintf(code, sizeof code, "%.*s", (int)nul, s.p);
    snprintf(text, sizeof text, "%.*s", (int)(s.n - (size_t)nul - 1), s.p + nul + 1);
    say_and_end(c, "ERR", code, text[0] ? text : "failed");
    return 0;
}

static int on_packet(void *arg, enum broker_packet type, struct slice s)
{
    struct redis_client *c = arg;
    switch (type) {
    case BROKER_OPENED:
        if (c->running)
            return -1;
        c->running = true;
        turn(c); /* what it has sent meanwhile; it may be gone */
        return 0;
    case BROKER_DATA:
        return on_data(c, s);
    case BROKER_REFUSED:
        return on_refused(c, s);
    case BROKER_END:
        client_free(c, true);
        return 0;
    default:
        return -1;
    }
}

static void on_writable(void *arg)
{
    struct redis_client *c = arg;
    if (!c->blocked || !send_up(c))
        return;
    c->blocked = false;
    io_resume(c->io);
    turn(c);
}

static void on_closed(void *arg)
{
    struct redis_client *c = arg;
    if (!c->running)
        say_and_end(c, "ERR", "broker_gone", "failed: the broker is being started again");
    else
        client_free(c, true);
}

static const struct broker_stream_ops stream_ops = {
    .packet = on_packet, .writable = on_writable, .closed = on_closed};

/* ---- the connection ---- */

static void start(struct redis_client *c)
{
    struct decision d;
    policy_redis_decide(c->of->front->policy, &c->at, &d);
    if (d.verdict == VERDICT_DENY) {
        deny(c, "NOPERM", d.code, "");
        return;
    }
    c->policy = policy_ref(c->of->front->policy);
    c->rule = d.rule;
    c->begun = true;
    io_deadline(c->io, front_wait_seconds(c->of->front, c->rule));
    c->stream = front_open(c->of->front, &c->at, SLICE(""), &stream_ops, c);
    if (c->stream == NULL)
        say_and_end(c, "ERR", "broker_gone", "failed: the broker is being started again");
}

static void on_no_tls(void *arg)
{
    client_free(arg, false);
}

/* Its first bytes are TLS or a command. */
static void on_first(struct redis_client *c)
{
    if (front_tls_pending(&c->tls))
        return;
    if (!c->tls.begun && front_tls_is_hello(buf_slice(io_in(c->io))))
        front_tls_begin(&c->tls, c->of->front, c->io, &c->at, on_no_tls, c);
    else
        start(c);
}

static void on_io(struct io *io, enum io_event ev, void *arg)
{
    struct redis_client *c = arg;
    switch (ev) {
    case IO_READABLE:
        if (!c->begun)
            on_first(c);
        else if (c->running && !c->blocked)
            turn(c);
        break;
    case IO_DRAINED:
        if (c->stream)
            broker_stream_pause(c->stream, false);
        break;
    case IO_CONNECTED:
        break;
    case IO_TIMEOUT:
        if (front_tls_pending(&c->tls))
            front_tls_refused(&c->tls, "handshake time-out");
        if (c->running)
            say_and_end(c, "ERR", "timeout", "nothing went either way");
        else
            client_free(c, false);
        break;
    default:
        if (ev == IO_ERROR && front_tls_pending(&c->tls))
            front_tls_refused(&c->tls, io_why(io));
        if (c->stream)
            (void)broker_stream_send(c->stream, BROKER_END, SLICE(""));
        client_free(c, false);
        break;
    }
}

void redis_client_new(struct redis_front *of, const struct authority *at, int fd)
{
    struct redis_client *c = of->n_clients < REDIS_CLIENTS_MAX ? calloc(1, sizeof *c) : NULL;
    if (c == NULL || RAND_bytes((unsigned char *)&c->mark, sizeof c->mark) != 1) {
        free(c);
        close(fd);
        return;
    }
    c->io = io_new(of->front->base, fd, REDIS_IO, REDIS_DOWN_MAX, false);
    if (c->io == NULL) {
        free(c);
        return;
    }
    c->of = of;
    c->at = *at;
    buf_init(&c->up, REDIS_UP_MAX);
    resp_commands_init(&c->commands);
    resp_replies_init(&c->replies);
    LIST_INSERT_HEAD(&of->clients, c, link);
    io_counted(c->io, &of->n_clients);
    io_high_mark(c->io, REDIS_IO);
    io_callback(c->io, on_io, c);
    io_deadline(c->io, of->front->limits.head_seconds);
}
