/* A push whose rule has `refs`: what the client says is held until its commands, and its pack where
 * that is asked, are decided. A refusal is git's own report, on a connection that goes on; the
 * server is told that there is nothing to push. */
#include "ssh_front.h"

#include <string.h>

int ssh_push_begin(struct ssh_channel_of *h, const struct rule *rule)
{
    struct ssh_front *of = h->connection->of;
    if (h->facts.verb != SSH_PUSH || rule->inspection == NULL)
        return 0;
    h->push = push_stream_new(rule->inspection, &of->pushes, of->front->name);
    if (h->push == NULL)
        return -1;
    h->policy = policy_ref(of->front->policy);
    h->rule = rule;
    h->push_state = PUSH_HELD;
    return 0;
}

void ssh_push_end(struct ssh_channel_of *h)
{
    push_stream_free(h->push);
    h->push = NULL;
    policy_free(h->policy);
    h->policy = NULL;
}

bool ssh_push_refused(const struct ssh_channel_of *h)
{
    return h->push_state >= PUSH_REFUSED;
}

/* Nothing of it has left, so there is room for this. */
static void refuse(struct ssh_channel_of *h)
{
    const struct inspect_result *why = push_stream_why(h->push);
    ssh_channel_note(h, why->code, h->rule, why->detail);
    h->push_state = PUSH_REFUSED;
    if (h->stream) {
        broker_stream_pause(h->stream, false); /* what comes is dropped */
        (void)broker_stream_send(h->stream, BROKER_DATA, SLICE("0000"));
        (void)broker_stream_send(h->stream, BROKER_END, SLICE(""));
    }
}

/* Once the client has what the server said before. */
static void answer(struct ssh_channel_of *h)
{
    if (h->push_state != PUSH_REFUSED || buf_len(&h->out) > 0)
        return;
    h->push_state = PUSH_ANSWERED;
    h->aside = false;
    if (push_stream_answer(h->push, &h->out) == 1)
        return;
    ssh_channel_say(h, push_stream_why(h->push)->code, "denied: this push", 128);
}

/* It sends its pack before it listens. */
static void waste(struct ssh_channel_of *h)
{
    unsigned char bytes[BROKER_PACKET_MAX];
    int n;
    while ((n = ssh_channel_read_nonblocking(h->channel, bytes, sizeof bytes, 0)) > 0)
        h->wasted += (size_t)n;
    bool over = ssh_channel_is_eof(h->channel) || h->wasted > SSH_WASTE_MAX;
    if (h->push_state != PUSH_ANSWERED || !over)
        return;
    h->status =
        (struct ssh_status){.status = 0}; /* as of git's own server: the report has it all */
    h->has_status = true;
    h->state = CHANNEL_ENDED;
}

static enum inspect_answer look(struct ssh_channel_of *h)
{
    enum inspect_answer a = INSPECT_MORE;
    while (a == INSPECT_MORE) {
        unsigned char bytes[BROKER_PACKET_MAX];
        int n = ssh_channel_read_nonblocking(h->channel, bytes, sizeof bytes, 0);
        bool end = n <= 0 && ssh_channel_is_eof(h->channel);
        if (n <= 0 && !end)
            break;
        a = push_stream_take(h->push, (struct slice){(const char *)bytes, n > 0 ? (size_t)n : 0},
                             end);
    }
    return a;
}

bool ssh_push_turn(struct ssh_channel_of *h)
{
    if (h->push_state == PUSH_HELD) {
        enum inspect_answer a = look(h);
        if (a == INSPECT_PASS)
            h->push_state = PUSH_PASSES;
        if (a == INSPECT_REFUSED)
            refuse(h);
    }
    if (!ssh_push_refused(h))
        return h->push_state != PUSH_HELD;
    answer(h);
    if (h->state == CHANNEL_RUNNING)
        waste(h);
    return false;
}
