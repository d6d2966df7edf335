/* Bytes between a front's stream and the server's channel, and how the command ended. */
#include "sftp_session.h"
#include "ssh_back.h"

#include <string.h>

/* ---- from the front ---- */

/* A push whose rule has `refs`: what its front has decided is decided here again. False: it was
 * refused, and the request is gone. */
static bool judge_push(struct ssh_request *q, struct slice s, bool end)
{
    enum inspect_answer a = push_stream_take(q->push, s, end);
    if (a == INSPECT_REFUSED) {
        const struct inspect_result why = *push_stream_why(q->push);
        ssh_request_deny(q, why.code, why.detail);
        return false;
    }
    q->push_passes = a == INSPECT_PASS;
    return true;
}

/* What was held of it comes first. */
static void take_held(struct ssh_request *q)
{
    struct slice held;
    if (q->push == NULL || !q->push_passes || buf_len(&q->in) > 0)
        return;
    held = push_stream_held(q->push);
    size_t n = held.n < BROKER_PACKET_MAX ? held.n : BROKER_PACKET_MAX;
    if (n > 0 && buf_append(&q->in, held.p, n) == 0) {
        push_stream_sent(q->push, n);
    } else if (n == 0) {
        push_stream_free(q->push);
        q->push = NULL;
    }
}

/* Of a push that is not decided yet: 0. */
static int judge_part(struct ssh_request *q, struct slice s, bool end)
{
    q->in_end = end;
    if (!judge_push(q, s, end))
        return 0;
    if (q->push_passes)
        back_request_pause(&q->request, true); /* until that is with the server */
    if (q->pump)
        ssh_pump_soon(q->pump);
    return 0;
}

static bool is_undecided(const struct ssh_request *q)
{
    return q->push && !q->push_passes;
}

int ssh_carry_up(void *request, struct slice bytes)
{
    struct ssh_request *q = request;
    if (is_undecided(q))
        return judge_part(q, bytes, false);
    if (q->sftp)
        return sftp_session_take(q->sftp, bytes);
    if (buf_len(&q->in) > 0 || buf_append_slice(&q->in, bytes) < 0)
        return -1;
    ssh_recording_input(q->recording, bytes);
    back_request_pause(&q->request, true); /* until that is with the server */
    if (q->pump)
        ssh_pump_soon(q->pump);
    return 0;
}

void ssh_carry_more(void *request)
{
    struct ssh_request *q = request;
    if (q->pump)
        ssh_pump_soon(q->pump);
}

void ssh_carry_spent(void *request)
{
    ssh_request_refuse(request, "budget", "a budget of its rule or policy is used up");
}

static int on_packet(void *arg, enum broker_packet type, struct slice s)
{
    struct ssh_request *q = arg;
    uint32_t columns, rows;
    if (q->in_end && type != BROKER_EVENT)
        return -1;
    switch (type) {
    case BROKER_DATA:
        return back_request_up(&q->request, s);
    case BROKER_END:
        if (is_undecided(q))
            return judge_part(q, s, true);
        q->in_end = true;
        break;
    case BROKER_EVENT:
        if (ssh_window_get(s, &columns, &rows) < 0)
            return -1;
        if (q->state == REQUEST_RUNNING && q->facts.term[0])
            ssh_channel_change_pty_size(q->channel, (int)columns, (int)rows);
        if (q->facts.term[0])
            ssh_recording_window(q->recording, columns, rows);
        break;
    default:
        return -1;
    }
    if (q->pump)
        ssh_pump_soon(q->pump);
    return 0;
}

static void on_writable(void *arg)
{
    struct ssh_request *q = arg;
    if (q->pump)
        ssh_pump_soon(q->pump);
}

static bool is_forward(const struct ssh_request *q)
{
    return q->facts.verb == SSH_FORWARD;
}

/* A client of a forward may go once it has said all, as one of any connection. */
static void on_closed(void *arg)
{
    struct ssh_request *q = arg;
    if (!is_forward(q) || !q->in_end) {
        ssh_request_refuse(q, "client_gone", "");
        return;
    }
    q->left = true;
    if (q->pump)
        ssh_pump_soon(q->pump);
}

const struct broker_stream_ops ssh_carry_ops = {
    .packet = on_packet, .writable = on_writable, .closed = on_closed};

static void carry_up(struct ssh_request *q)
{
    take_held(q);
    while (buf_len(&q->in) > 0 && !ssh_pump_full(q->pump)) {
        int n = ssh_channel_write(q->channel, buf_data(&q->in), (uint32_t)buf_len(&q->in));
        if (n <= 0)
            return;
        buf_drain(&q->in, (size_t)n);
        take_held(q);
    }
    if (buf_len(&q->in) > 0)
        return;
    if (q->in_end && !q->in_end_sent) {
        ssh_channel_send_eof(q->channel);
        q->in_end_sent = true;
    }
    back_request_pause(&q->request, ssh_recording_waits(q->recording));
}

/* ---- to the front ---- */

static bool fill(struct ssh_request *q, int aside, size_t room)
{
    unsigned char *to = buf_reserve(&q->out, BROKER_PACKET_MAX);
    int n = to ? ssh_channel_read_nonblocking(q->channel, to, (uint32_t)room, aside) : 0;
    if (n <= 0)
        return false;
    buf_commit(&q->out, (size_t)n);
    q->aside = aside;
    back_request_down(&q->request, (size_t)n);
    ssh_recording_output(q->recording, buf_slice(&q->out));
    return true;
}

/* True: all that came is with the front. */
static bool carry_down(struct ssh_request *q)
{
    for (;;) {
        if (buf_len(&q->out) == 0 && ssh_recording_waits(q->recording))
            return false;
        size_t room = back_request_down_room(&q->request,
                                             q->recording ? SSH_RECORDING_READ : BROKER_PACKET_MAX);
        if (buf_len(&q->out) == 0 && room == 0)
            return false;
        if (buf_len(&q->out) == 0 && !fill(q, 0, room) && !fill(q, 1, room))
            return true;
        if (is_forward(q) && (q->left || q->aside))
            buf_clear(&q->out); /* nobody reads it; or it belongs to no connection */
        else if (broker_stream_send(q->stream, q->aside ? BROKER_ASIDE : BROKER_DATA,
                                    buf_slice(&q->out)) <= 0)
            return false;
        buf_clear(&q->out);
    }
}

/* Without a status where the server has said none. */
static bool say_end(struct ssh_request *q)
{
    struct buf b;
    buf_init(&b, 64);
    if (q->has_status && !q->status_sent && ssh_status_put(&q->status, &b) == 0)
        q->status_sent = broker_stream_send(q->stream, BROKER_STATUS, buf_slice(&b)) > 0;
    buf_free(&b);
    bool said = q->status_sent || !q->has_status;
    return said && broker_stream_send(q->stream, BROKER_END, SLICE("")) > 0;
}

/* Each end of a forward may end alone; once both have, it is closed, and over when the server has
 * closed it, too. */
static bool forward_over(struct ssh_request *q)
{
    if (!q->out_end && ssh_channel_is_eof(q->channel))
        q->out_end = q->left || broker_stream_send(q->stream, BROKER_END, SLICE("")) > 0;
    if ((q->out_end || q->left) && q->in_end_sent)
        ssh_channel_close(q->channel);
    return q->far_closed && (q->out_end || q->left);
}

bool ssh_carry(struct ssh_request *q)
{
    if (q->sftp)
        sftp_session_up(q->sftp);
    else
        carry_up(q);
    if (q->sftp ? !sftp_session_down(q->sftp) : !carry_down(q))
        return false;
    if (is_forward(q))
        return forward_over(q);
    bool over =
        ssh_channel_is_closed(q->channel) || (ssh_channel_is_eof(q->channel) && q->has_status);
    return over && ssh_recording_end(q->recording) && say_end(q);
}
