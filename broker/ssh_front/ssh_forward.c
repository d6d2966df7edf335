/* A channel by which a client has its server connect to somewhere (direct-tcpip): decided when it
 * is asked for, and then bytes both ways, each end of which may end alone.
 *
 * libssh answers such a request in the callback or never. So what the policy allows is open at
 * once, and where the server then does not connect, it is closed. Why, a message says that clients
 * show with `ssh -v` (SSH_MSG_DEBUG); a refusal has no room for words in libssh. */
#include "ssh_front.h"

#include <stdio.h>
#include <string.h>

static void say(struct ssh_connection *c, const char *code, const char *words)
{
    snprintf(c->why, sizeof c->why, "durward: %s: %s", words, code);
    ssh_pump_soon(c->pump);
}

static void deny(struct ssh_connection *c, const struct ssh_facts *f, const char *code,
                 const struct rule *rule)
{
    char words[200];
    ssh_facts_note(c, f, code, rule, "");
    snprintf(words, sizeof words, "denied: %s", ssh_channel_words(code));
    say(c, code, words);
}

/* 0, or -1: it was refused. */
static int read_target(struct ssh_connection *c, ssh_message m, struct ssh_facts *ret)
{
    struct authority at;
    const char *host = ssh_message_channel_request_open_destination(m);
    int port = ssh_message_channel_request_open_destination_port(m);
    memset(ret, 0, sizeof *ret);
    memcpy(ret->user, c->user, sizeof c->user);
    ret->verb = SSH_FORWARD;
    if (host && ssh_target_asked(slice_str(host), port > 0 ? (unsigned)port : 0, &at) == 0) {
        authority_text_port(&at, ret->text, sizeof ret->text);
        return 0;
    }
    snprintf(ret->text, sizeof ret->text, "%.300s:%d", host ? host : "", port);
    deny(c, ret, "ssh_target_form", NULL);
    return -1;
}

static struct broker_stream *ask_back(struct ssh_channel_of *h)
{
    struct buf facts;
    struct ssh_connection *c = h->connection;
    buf_init(&facts, SSH_FACTS_MAX);
    if (ssh_facts_put(&h->facts, &facts) == 0)
        h->stream = front_open(c->of->front, &c->at, buf_slice(&facts), &ssh_channel_stream_ops, h);
    buf_free(&facts);
    return h->stream;
}

int ssh_forward_open(struct ssh_connection *c, ssh_message m)
{
    struct decision d;
    struct ssh_facts f;
    if (c->n_channels >= SSH_CHANNELS_MAX || read_target(c, m, &f) < 0)
        return -1;
    const struct ssh_asked asked = ssh_facts_asked(&f);
    policy_ssh_decide(c->of->front->policy, &c->at, &asked, &d);
    if (d.verdict == VERDICT_DENY) {
        deny(c, &f, d.code, d.rule);
        return -1;
    }
    ssh_channel channel = ssh_channel_new_of(c);
    if (channel == NULL)
        return -1;
    struct ssh_channel_of *h = TAILQ_LAST(&c->channels, ssh_channels);
    h->facts = f;
    if (ask_back(h) == NULL) {
        deny(c, &f, "broker_gone", d.rule);
        ssh_channel_drop(h);
        return -1;
    }
    h->state = CHANNEL_RUNNING;
    if (ssh_message_channel_request_open_reply_accept_channel(m, channel) == SSH_OK)
        return 0;
    h->state = CHANNEL_CLOSED;
    return 0;
}

bool ssh_forward_is(const struct ssh_channel_of *h)
{
    return h->facts.verb == SSH_FORWARD;
}

/* Nothing more comes from the server's end; why, unless that is all that there was. */
void ssh_forward_over(struct ssh_channel_of *h, const char *code, const char *words)
{
    if (code)
        say(h->connection, code, words);
    h->state = CHANNEL_ENDED;
}

/* What is on its way is there: the end of it, and of a client that closed. */
void ssh_forward_turn(struct ssh_channel_of *h)
{
    if (h->down_end && !h->down_end_sent && buf_len(&h->out) == 0) {
        ssh_channel_send_eof(h->channel);
        h->down_end_sent = true;
    }
    if (h->leaving && (h->eof_sent || h->state == CHANNEL_ENDED))
        h->state = CHANNEL_CLOSED;
}
