/* A message on its way: to the back with its envelope, then its text, then what the server says. */
#include "smtp_front.h"

#include <stdio.h>
#include <string.h>

/* The message goes no further. While its text still comes it is read to its end, and answered
 * there: that is where a client looks. */
static int answer(struct smtp_client *c, const char *text)
{
    broker_stream_free(c->stream);
    c->stream = NULL;
    buf_clear(&c->up);
    c->blocked = false;
    io_resume(c->io);
    io_deadline(c->io, c->of->front->limits.tunnel_seconds);
    if (c->state == CLIENT_TEXT) {
        snprintf(c->answer, sizeof c->answer, "%s", text);
        c->state = CLIENT_DROPPING;
        return 0;
    }
    bool before = c->state == CLIENT_OPENING && buf_len(io_in(c->io)) > 0;
    c->state = CLIENT_COMMANDS;
    smtp_forget(c);
    if ((text[0] == '2' ? smtp_say(c, text) : smtp_refuse(c, text)) < 0)
        return -1;
    if (!before)
        return 0;
    smtp_client_free(c, true); /* what it has sent is text, and would be read as commands */
    return -1;
}

/* True: all of it is with the back, its end too where it has come. */
static bool send_all(struct smtp_client *c)
{
    if (!broker_stream_send_buf(c->stream, &c->up))
        return false;
    if (!c->ended)
        return true;
    if (broker_stream_send(c->stream, BROKER_END, SLICE("")) <= 0)
        return false;
    c->state = CLIENT_ENDED;
    io_deadline(c->io, SMTP_END_SECONDS);
    return true;
}

static int refuse_text(struct smtp_client *c, bool size)
{
    char text[SMTP_ANSWER];
    const char *code = size ? "smtp_size" : "smtp_message";
    smtp_denied(c, code, size ? "as it came" : c->text.why);
    snprintf(text, sizeof text, "%s durward: refused: %s: %s", size ? "552 5.3.4" : "554 5.6.0",
             size ? "the message is too large" : c->text.why, code);
    return answer(c, text);
}

static int drop_text(struct smtp_client *c)
{
    struct buf *in = io_in(c->io), out;
    struct slice rest = buf_slice(in);
    size_t had = rest.n;
    char text[SMTP_ANSWER];
    buf_init(&out, SMTP_IO);
    c->text.why = "dropped";
    int e = smtp_message_read(&c->text, &rest, &out);
    buf_drain(in, had - rest.n);
    io_consumed(c->io);
    if (e == 0)
        return 0;
    memcpy(text, c->answer, sizeof text);
    c->state = CLIENT_COMMANDS;
    smtp_forget(c);
    return smtp_refuse(c, text);
}

int smtp_text(struct smtp_client *c)
{
    if (c->state == CLIENT_DROPPING)
        return drop_text(c);
    struct buf *in = io_in(c->io);
    struct slice rest = buf_slice(in), some;
    if (rest.n > SMTP_IO / 2)
        rest.n = SMTP_IO / 2; /* twice as much may come of it: of newlines */
    some = rest;
    int e = smtp_message_read(&c->text, &rest, &c->up);
    buf_drain(in, some.n - rest.n);
    io_consumed(c->io);
    io_deadline(c->io, c->of->front->limits.tunnel_seconds);
    bool large = c->text.n > c->rule->smtp->most_bytes;
    if (e < 0)
        return answer(c, "451 4.3.0 durward: out of memory");
    if (c->text.why || large) {
        if (refuse_text(c, large && c->text.why == NULL) < 0)
            return -1;
        if (e == 0)
            return 0;
        c->state = CLIENT_COMMANDS;
        smtp_forget(c);
        return smtp_refuse(c, c->answer);
    }
    c->ended = e > 0;
    if (!send_all(c)) {
        c->blocked = true;
        io_pause(c->io);
    }
    return 0;
}

/* ---- the back's stream ---- */

/* "550 text" of the server's. */
static int on_status(struct smtp_client *c, struct slice s)
{
    char text[SMTP_ANSWER];
    if (s.n < 4 || s.p[0] < '2' || s.p[0] > '5' || s.p[3] != ' ')
        return -1;
    snprintf(text, sizeof text, "%.*s", s.n < sizeof text ? (int)s.n : (int)sizeof text - 1, s.p);
    bool taken = c->state == CLIENT_ENDED;
    if (text[0] == '2' && !taken)
        return -1;
    if (answer(c, text) == 0)
        smtp_turn(c);
    return 0;
}

static const char *reply_of(const char *code)
{
    static const char *const ours[] = {"no_rule",        "denied",          "smtp_sender",
                                       "smtp_recipient", "smtp_recipients", "smtp_size",
                                       "smtp_extension", "approval_denied", "policy_changed"};
    for (size_t i = 0; i < ARRAY_LEN(ours); i++)
        if (strcmp(code, ours[i]) == 0)
            return "554 5.7.1";
    return "451 4.3.0"; /* it may be tried again */
}

static int on_refused(struct smtp_client *c, struct slice s)
{
    char code[64], text[SMTP_ANSWER];
    ssize_t nul = slice_find(s, 0);
    if (nul < 0 || nul >= (ssize_t)sizeof code)
        return -1;
    snprintf(code, sizeof code, "%.*s", (int)nul, s.p);
    snprintf(text, sizeof text, "%s durward: %.*s: %s", reply_of(code),
             s.n - (size_t)nul - 1 < 380 ? (int)(s.n - (size_t)nul - 1) : 380, s.p + nul + 1, code);
    if (answer(c, text) == 0)
        smtp_turn(c);
    return 0;
}

static int on_packet(void *arg, enum broker_packet type, struct slice s)
{
    struct smtp_client *c = arg;
    if (type == BROKER_STATUS)
        return on_status(c, s);
    if (type == BROKER_REFUSED)
        return on_refused(c, s);
    if (type != BROKER_OPENED || c->state != CLIENT_OPENING)
        return -1;
    c->state = CLIENT_TEXT;
    if (smtp_say(c, "354 End with a line of one dot") == 0)
        smtp_turn(c);
    return 0;
}

static void on_writable(void *arg)
{
    struct smtp_client *c = arg;
    if (!c->blocked || !send_all(c))
        return;
    c->blocked = false;
    io_resume(c->io);
    smtp_turn(c);
}

static void on_closed(void *arg)
{
    struct smtp_client *c = arg;
    if (answer(c, "451 4.3.0 durward: failed: the broker is being started again: broker_gone") == 0)
        smtp_turn(c);
}

static const struct broker_stream_ops stream_ops = {
    .packet = on_packet, .writable = on_writable, .closed = on_closed};

int smtp_deliver(struct smtp_client *c)
{
    struct buf facts;
    const char *code;
    if (c->facts.envelope.n == 0)
        return smtp_refuse(c,
                           c->has_sender ? "554 5.5.1 No recipient" : "503 5.5.1 MAIL goes first");
    if (buf_len(io_in(c->io)) > 0) {
        /* A reader that did not know DATA would take the text for commands. */
        smtp_denied(c, "smtp_protocol", "more behind DATA");
        if (smtp_refuse(c, "503 5.5.0 durward: refused: more behind DATA: smtp_protocol") == 0)
            smtp_client_free(c, true);
        return -1;
    }
    if (!smtp_decide(c, &c->facts.envelope, &code)) {
        char text[SMTP_ANSWER];
        snprintf(text, sizeof text, "554 5.7.1 durward: refused: %s", code);
        smtp_denied(c, code, "");
        smtp_forget(c);
        return smtp_refuse(c, text);
    }
    buf_init(&facts, SMTP_FACTS_MAX);
    if (smtp_facts_put(&facts, &c->facts) == 0)
        c->stream = front_open(c->of->front, &c->at, buf_slice(&facts), &stream_ops, c);
    buf_free(&facts);
    memset(&c->text, 0, sizeof c->text);
    c->ended = false;
    c->state = CLIENT_OPENING;
    io_deadline(c->io, front_wait_seconds(c->of->front, c->rule));
    if (c->stream == NULL)
        return answer(c,
                      "451 4.3.0 durward: failed: the broker is being started again: broker_gone");
    return 0;
}
