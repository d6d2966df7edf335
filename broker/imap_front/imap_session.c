/* A session with the back: one command at a time goes there, and what the server says of it comes.
 */
#include "imap_front.h"

#include <stdio.h>
#include <string.h>

static void over(struct imap_client *c)
{
    broker_stream_free(c->stream);
    c->stream = NULL;
    buf_clear(&c->up);
    c->blocked = false;
    io_resume(c->io);
}

/* True: the back has it all. */
static bool flush(struct imap_client *c)
{
    bool sent = broker_stream_send_buf(c->stream, &c->up);
    if (!sent && !c->blocked)
        io_pause(c->io);
    else if (sent && c->blocked)
        io_resume(c->io);
    c->blocked = !sent;
    return sent;
}

int imap_send(struct imap_client *c)
{
    c->verb = c->command.verb;
    c->came = false;
    c->state = CLIENT_WAITING;
    io_deadline(c->io, IMAP_QUIET_SECONDS);
    if (buf_append_slice(&c->up, buf_slice(&c->command.out)) < 0 ||
        buf_append(&c->up, "\r\n", 2) < 0) {
        imap_bye(c, "memory", "out of memory");
        return -1;
    }
    (void)flush(c);
    return 0;
}

/* ---- what a client says while a command is under way ---- */

static int next_message(struct imap_client *c)
{
    struct buf *in = io_in(c->io);
    struct slice some = buf_slice(in);
    if (some.n > c->left)
        some.n = (size_t)c->left;
    if (some.n > BROKER_PACKET_MAX)
        some.n = BROKER_PACKET_MAX;
    if (slice_find(some, 0) >= 0) {
        imap_violation(c, "a byte 0 in a message");
        return -1;
    }
    if (buf_append_slice(&c->up, some) < 0) {
        imap_bye(c, "memory", "out of memory");
        return -1;
    }
    buf_drain(in, some.n);
    c->left -= some.n;
    if (c->left == 0)
        c->state = CLIENT_TAIL;
    (void)flush(c);
    return 1;
}

/* 1: there is a line's end, and it is gone; -1: the client is, too. */
static int take_end(struct imap_client *c)
{
    struct buf *in = io_in(c->io);
    struct slice s = buf_slice(in);
    if (s.p[0] != '\r' || (s.n > 1 && s.p[1] != '\n')) {
        imap_violation(c, "more behind a message");
        return -1;
    }
    if (s.n < 2)
        return 0;
    buf_drain(in, 2);
    return 1;
}

static int next_tail(struct imap_client *c)
{
    int e = take_end(c);
    if (e <= 0)
        return e;
    c->state = CLIENT_WAITING;
    if (buf_append(&c->up, "\r\n", 2) < 0) {
        imap_bye(c, "memory", "out of memory");
        return -1;
    }
    (void)flush(c);
    return 1;
}

static int next_dropped(struct imap_client *c)
{
    struct buf *in = io_in(c->io);
    size_t n = buf_len(in) < c->left ? buf_len(in) : (size_t)c->left;
    if (n) {
        buf_drain(in, n);
        c->left -= n;
        return 1;
    }
    int e = take_end(c);
    if (e > 0)
        c->state = CLIENT_COMMANDS;
    return e;
}

static int next_done(struct imap_client *c)
{
    struct slice s = buf_slice(io_in(c->io)), word = SLICE("DONE\r\n");
    size_t n = s.n < word.n ? s.n : word.n;
    if (!slice_istarts(word, (struct slice){s.p, n})) {
        imap_violation(c, "IDLE ends with DONE");
        return -1;
    }
    if (n < word.n)
        return 0;
    buf_drain(io_in(c->io), n);
    c->state = CLIENT_WAITING;
    if (buf_append_slice(&c->up, word) < 0) {
        imap_bye(c, "memory", "out of memory");
        return -1;
    }
    (void)flush(c);
    return 1;
}

int imap_next_bytes(struct imap_client *c)
{
    io_deadline(c->io, IMAP_QUIET_SECONDS);
    switch (c->state) {
    case CLIENT_MESSAGE:
        return next_message(c);
    case CLIENT_TAIL:
        return next_tail(c);
    case CLIENT_DROPPING:
        return next_dropped(c);
    case CLIENT_IDLE:
        return next_done(c);
    default:
        return 0; /* the next command waits for this one's end */
    }
}

/* ---- the back's stream ---- */

static int on_opened(struct imap_client *c, struct slice s)
{
    if (c->state != CLIENT_OPENING || s.n != 2)
        return -1;
    c->has = ((unsigned)(unsigned char)s.p[0] << 8 | (unsigned char)s.p[1]) & IMAP_HAS_ALL;
    c->logged = true;
    c->state = CLIENT_COMMANDS;
    char before[IMAP_TAG_MAX + 8];
    snprintf(before, sizeof before, "%s OK [", c->tag);
    if (imap_capability(c, before, "] nobody is asked for a login here") == 0)
        imap_turn(c);
    return 0;
}

/* The server may be told more: of a message, or nothing until DONE. */
static int on_go_on(struct imap_client *c)
{
    if (c->state != CLIENT_WAITING || (c->verb != IMAP_VERB_IDLE && c->verb != IMAP_VERB_APPEND))
        return -1;
    bool idle = c->verb == IMAP_VERB_IDLE;
    if (c->came)
        return -1;
    c->came = true;
    c->state = idle ? CLIENT_IDLE : c->left ? CLIENT_MESSAGE : CLIENT_TAIL;
    if ((idle || c->waits) && imap_tell(c, idle ? "+ idling" : "+ go on") < 0)
        return 0;
    imap_turn(c);
    return 0;
}

/* -1: it is gone. */
static int tell_status(struct imap_client *c, struct slice s)
{
    struct buf *out = io_out(c->io);
    int e = buf_printf(out, "%s ", c->tag) < 0 || buf_append_slice(out, s) < 0 ||
                    buf_append(out, "\r\n", 2) < 0
                ? -1
                : 0;
    buf_free(&c->status);
    if (e < 0)
        imap_client_free(c, false); /* it reads nothing */
    else
        io_flush_soon(c->io);
    return e;
}

/* "OK text", "NO text" or "BAD text" of the server's, or "+". */
static int on_status(struct imap_client *c, struct slice s)
{
    if (slice_eq_str(s, "+") && buf_len(&c->status) == 0)
        return on_go_on(c);
    if (buf_len(&c->status) > 0) {
        if (buf_append_slice(&c->status, s) < 0)
            return -1;
        s = buf_slice(&c->status);
    }
    bool idle = c->state == CLIENT_IDLE; /* the server has ended it */
    if ((c->state != CLIENT_WAITING && !idle) ||
        (!slice_starts(s, SLICE("OK ")) && !slice_starts(s, SLICE("NO ")) &&
         !slice_starts(s, SLICE("BAD "))))
        return -1;
    if (idle) {
        imap_bye(c, "upstream_protocol", "the server ended IDLE by itself");
        return 0;
    }
    /* A message that the server does not take comes all the same where its client does not wait. */
    bool drops = c->verb == IMAP_VERB_APPEND && !c->waits && !c->came;
    c->state = drops ? CLIENT_DROPPING : CLIENT_COMMANDS;
    if (tell_status(c, s) == 0)
        imap_turn(c);
    return 0;
}

static int on_data(struct imap_client *c, struct slice bytes)
{
    if (!c->logged || buf_append_slice(io_out(c->io), bytes) < 0)
        return -1;
    io_flush_soon(c->io);
    io_deadline(c->io, IMAP_QUIET_SECONDS);
    if (io_out_len(c->io) >= IMAP_IO)
        broker_stream_pause(c->stream, true);
    return 0;
}

static int on_refused(struct imap_client *c, struct slice s)
{
    char code[64], text[IMAP_ANSWER];
    ssize_t nul = slice_find(s, 0);
    if (nul < 0 || nul >= (ssize_t)sizeof code || c->state != CLIENT_OPENING)
        return -1;
    snprintf(code, sizeof code, "%.*s", (int)nul, s.p);
    size_t n = s.n - (size_t)nul - 1 < 500 ? s.n - (size_t)nul - 1 : 500;
    for (size_t i = 0; i < n; i++)
        text[i] = (unsigned char)s.p[(size_t)nul + 1 + i] < 0x20 ? ' ' : s.p[(size_t)nul + 1 + i];
    text[n] = 0;
    over(c);
    c->state = CLIENT_COMMANDS;
    if (imap_no(c, "NO", text[0] ? text : "failed", code) == 0)
        imap_turn(c);
    return 0;
}

static int on_packet(void *arg, enum broker_packet type, struct slice s)
{
    struct imap_client *c = arg;
    switch (type) {
    case BROKER_OPENED:
        return on_opened(c, s);
    case BROKER_STATUS:
        return on_status(c, s);
    case BROKER_ASIDE:
        return c->state == CLIENT_WAITING ? buf_append_slice(&c->status, s) : -1;
    case BROKER_DATA:
        return on_data(c, s);
    case BROKER_REFUSED:
        return on_refused(c, s);
    case BROKER_END:
        imap_client_free(c, true);
        return 0;
    default:
        return -1;
    }
}

static void on_writable(void *arg)
{
    struct imap_client *c = arg;
    if (c->blocked && flush(c))
        imap_turn(c);
}

static void on_closed(void *arg)
{
    imap_bye(arg, "broker_gone", "failed: the broker is being started again");
}

static const struct broker_stream_ops stream_ops = {
    .packet = on_packet, .writable = on_writable, .closed = on_closed};

int imap_open(struct imap_client *c)
{
    c->stream = front_open(c->of->front, &c->at, SLICE(""), &stream_ops, c);
    if (c->stream == NULL)
        return imap_no(c, "NO", "failed: the broker is being started again", "broker_gone");
    c->state = CLIENT_OPENING;
    io_deadline(c->io, front_wait_seconds(c->of->front, c->rule));
    return 0;
}
