/* A client of the agent inside: its messages are read, judged and handed to the back one at a time.
 * No key is here, and no secret. Whatever is not a list of keys or an allowed signature is answered
 * as agents answer what they do not do: "failure". */
#include "ssh_front.h"

#include "io.h"
#include "ssh_agent.h"
#include "ssh_wire.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct ssh_agent_client {
    struct ssh_front *of;
    struct authority at;
    struct io *io;
    struct broker_stream *stream; /* of the request under way; NULL: there is none */
    uint8_t type;                 /* of that */
    bool answered;
    unsigned refused;
    LIST_ENTRY(ssh_agent_client) link;
};

static void client_free(struct ssh_agent_client *c, bool flushed)
{
    if (flushed)
        io_close_lingering(c->io);
    else
        io_close(c->io);
    broker_stream_free(c->stream);
    LIST_REMOVE(c, link);
    free(c);
}

/* ---- answers. -1: the client is gone ---- */

static int say(struct ssh_agent_client *c, uint8_t type, struct slice body)
{
    struct buf *out = io_out(c->io);
    c->answered = true;
    if (ssh_wire_put_u32(out, (uint32_t)body.n + 1) == 0 && ssh_wire_put_u8(out, type) == 0 &&
        buf_append_slice(out, body) == 0) {
        io_flush_soon(c->io);
        return 0;
    }
    client_free(c, false);
    return -1;
}

/* Of refusals a connection has so many. */
static int fail(struct ssh_agent_client *c)
{
    if (say(c, SSH_AGENT_FAILURE, SLICE("")) < 0)
        return -1;
    if (++c->refused <= SSH_AGENT_REFUSALS_MAX)
        return 0;
    client_free(c, true);
    return -1;
}

static int deny(struct ssh_agent_client *c, const char *code, const struct rule *rule,
                const struct ssh_agent_facts *f, const char *detail)
{
    struct record r;
    record_init(&r, RECORD_DENIED, 0);
    if (f)
        ssh_agent_record(f, &r);
    if (rule)
        record_put_str(&r, RF_RULE, rule->text);
    record_put_str(&r, RF_DETAIL, detail);
    front_denied(c->of->front, &r, &c->at, code);
    return fail(c);
}

/* ---- the back's stream ---- */

static void turn(struct ssh_agent_client *c);

static int on_data(struct ssh_agent_client *c, struct slice s)
{
    struct buf b;
    if (c->answered)
        return -1;
    buf_init(&b, s.n + 4);
    bool list = c->type == SSH_AGENT_LIST;
    int r = (list ? buf_append_slice(&b, s) : ssh_wire_put_string(&b, s)) < 0 ? -1 : 0;
    if (r == 0) /* it may be gone after this, and the stream with it */
        (void)say(c, list ? SSH_AGENT_LISTED : SSH_AGENT_SIGNED, buf_slice(&b));
    buf_free(&b);
    return r;
}

/* The request is over; the next one of the client's has its turn. */
static void over(struct ssh_agent_client *c)
{
    broker_stream_free(c->stream);
    c->stream = NULL;
    if (!c->answered && fail(c) < 0)
        return;
    io_deadline(c->io, c->of->front->limits.idle_seconds);
    turn(c);
}

static int on_packet(void *arg, enum broker_packet type, struct slice s)
{
    struct ssh_agent_client *c = arg;
    switch (type) {
    case BROKER_DATA:
        return on_data(c, s);
    case BROKER_REFUSED:
    case BROKER_END:
        over(c);
        return 0;
    default:
        return -1;
    }
}

static void on_writable(void *arg UNUSED)
{
}

static void on_closed(void *arg)
{
    over(arg);
}

static const struct broker_stream_ops stream_ops = {
    .packet = on_packet, .writable = on_writable, .closed = on_closed};

/* ---- messages. -1: the client is gone ---- */

static int open_stream(struct ssh_agent_client *c, uint8_t type, const struct ssh_agent_facts *f,
                       unsigned seconds)
{
    struct buf facts;
    c->type = type;
    c->answered = false;
    buf_init(&facts, SSH_AGENT_FACTS_MAX);
    if (ssh_agent_facts_put(f, &facts) == 0)
        c->stream = front_open(c->of->front, &c->at, buf_slice(&facts), &stream_ops, c);
    buf_free(&facts);
    if (c->stream == NULL)
        return deny(c, "broker_gone", NULL, f->key.n ? f : NULL, "");
    io_deadline(c->io, seconds);
    return 0;
}

static int sign(struct ssh_agent_client *c, const struct ssh_agent_asked *asked)
{
    struct ssh_agent_facts f = {.key = asked->key, .flags = asked->flags};
    struct decision d;
    if (sshsig_read(asked->text, &f.what) < 0)
        return deny(c, "ssh_agent_text", NULL, NULL,
                    "what is to be signed is not a text of SSHSIG (a login is none)");
    policy_ssh_decide_signature(c->of->front->policy, &c->at, f.what.space, &d);
    if (d.verdict == VERDICT_DENY)
        return deny(c, d.code, d.rule, &f, "");
    return open_stream(c, SSH_AGENT_SIGN, &f, front_wait_seconds(c->of->front, d.rule));
}

static int handle(struct ssh_agent_client *c, struct slice body)
{
    static const struct ssh_agent_facts list = {.key = {"", 0}};
    struct ssh_agent_asked asked;
    char what[32];
    if (ssh_agent_read(body, &asked) < 0)
        return deny(c, "ssh_agent_request", NULL, NULL, "a message that cannot be read");
    if (asked.type == SSH_AGENT_SIGN)
        return sign(c, &asked);
    if (asked.type == SSH_AGENT_LIST)
        return open_stream(c, SSH_AGENT_LIST, &list, SSH_AGENT_LIST_SECONDS);
    snprintf(what, sizeof what, "message %u", asked.type);
    return deny(c, "ssh_agent_request", NULL, NULL, what);
}

/* One after another: while a request is under way nothing more is read than the buffer holds. */
static void turn(struct ssh_agent_client *c)
{
    unsigned char message[SSH_AGENT_MESSAGE_MAX];
    while (c->stream == NULL) {
        struct buf *in = io_in(c->io);
        struct slice s = buf_slice(in);
        uint32_t n;
        if (ssh_wire_u32(&s, &n) < 0)
            break;
        if (n == 0 || n > sizeof message) {
            if (deny(c, "ssh_agent_request", NULL, NULL,
                     "a message of no length that is allowed") == 0)
                client_free(c, true);
            return;
        }
        if (s.n < n)
            break;
        memcpy(message, s.p, n);
        buf_drain(in, 4 + n);
        io_consumed(c->io);
        if (handle(c, (struct slice){(char *)message, n}) < 0)
            return;
    }
}

static void on_io(struct io *io UNUSED, enum io_event ev, void *arg)
{
    struct ssh_agent_client *c = arg;
    if (ev == IO_READABLE)
        turn(c);
    else if (ev != IO_DRAINED && ev != IO_CONNECTED)
        client_free(c, false);
}

void ssh_agent_client_new(struct ssh_front *of, const struct authority *at, int fd)
{
    struct ssh_agent_client *c =
        of->n_agent_clients < SSH_AGENT_CLIENTS_MAX ? calloc(1, sizeof *c) : NULL;
    if (c == NULL) {
        close(fd);
        return;
    }
    c->io =
        io_new(of->front->base, fd, 4 + SSH_AGENT_MESSAGE_MAX, 4 * SSH_AGENT_MESSAGE_MAX, false);
    if (c->io == NULL) {
        free(c);
        return;
    }
    c->of = of;
    c->at = *at;
    LIST_INSERT_HEAD(&of->agent_clients, c, link);
    io_counted(c->io, &of->n_agent_clients);
    io_callback(c->io, on_io, c);
    io_deadline(c->io, of->front->limits.idle_seconds);
}
