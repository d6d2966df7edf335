/* A channel of a sandbox's connection: reads what is asked, decides, hands it to the back, and
 * carries bytes both ways. */
#include "ssh_front.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REFUSED_STATUS = 128, LOST_STATUS = 255 };

/* ---- records and words ---- */

void ssh_refuse_other(struct ssh_connection *c, const char *code, const char *what)
{
    struct record r;
    record_init(&r, RECORD_DENIED, 0);
    record_put_str(&r, RF_USER, c->user);
    record_put_str(&r, RF_DETAIL, what);
    front_denied(c->of->front, &r, &c->at, code);
}

const char *ssh_channel_words(const char *code)
{
    static const struct {
        const char *code, *words;
    } table[] = {
        {"no_rule", "no rule of the policy allows it"},
        {"denied_by_rule", "a rule of the policy denies it"},
        {"method", "the policy allows something else here"},
        {"command", "the policy allows other commands here, not this one"},
        {"ssh_terminal", "the policy allows this command without a terminal (ssh -T)"},
        {"ssh_path", "this is not a repository's path in its plain form"},
        {"path_ambiguous", "this is not a repository's path in its plain form"},
        {"ssh_command", "this command cannot be read"},
        {"ssh_forwarding", "the policy lets this server connect to nowhere"},
        {"ssh_target", "the policy lets this server connect to other places, not to this one"},
        {"ssh_target_form", "this is not a host and a port in their plain form"},
        {"ref", "the policy does not allow this change of a reference"},
        {"broker_gone", "the broker is being started again; try once more"},
    };
    for (size_t i = 0; i < ARRAY_LEN(table); i++)
        if (strcmp(table[i].code, code) == 0)
            return table[i].words;
    return code;
}

void ssh_channel_say(struct ssh_channel_of *h, const char *code, const char *words, uint32_t status)
{
    char text[600];
    if (ssh_forward_is(h)) {
        ssh_forward_over(h, code, words);
        return;
    }
    int n = snprintf(text, sizeof text, "durward: %s: %s\n", words, code);
    buf_clear(&h->out);
    h->aside = true;
    if (n > 0 &&
        buf_append(&h->out, text, (size_t)n < sizeof text ? (size_t)n : sizeof text - 1) < 0)
        buf_clear(&h->out);
    h->status = (struct ssh_status){.status = status};
    h->has_status = true;
    h->state = CHANNEL_ENDED;
    broker_stream_free(h->stream);
    h->stream = NULL;
}

void ssh_facts_note(struct ssh_connection *c, const struct ssh_facts *f, const char *code,
                    const struct rule *rule, const char *detail)
{
    struct record r;
    record_init(&r, RECORD_DENIED, 0);
    ssh_facts_record(f, &r);
    if (rule)
        record_put_str(&r, RF_RULE, rule->text);
    record_put_str(&r, RF_DETAIL, detail);
    front_denied(c->of->front, &r, &c->at, code);
}

void ssh_channel_note(struct ssh_channel_of *h, const char *code, const struct rule *rule,
                      const char *detail)
{
    ssh_facts_note(h->connection, &h->facts, code, rule, detail);
}

static void deny(struct ssh_channel_of *h, const char *code, const struct rule *rule)
{
    char words[200];
    ssh_channel_note(h, code, rule, "");
    snprintf(words, sizeof words, "denied: %s", ssh_channel_words(code));
    ssh_channel_say(h, code, words, REFUSED_STATUS);
}

/* ---- the back's stream ---- */

static int on_packet(void *arg, enum broker_packet type, struct slice s)
{
    struct ssh_channel_of *h = arg;
    ssize_t nul;
    if (ssh_push_refused(h))
        return 0; /* what the server says of nothing to push */
    switch (type) {
    case BROKER_OPENED:
        if (h->sftp && ssh_sftp_opened(h, s) < 0)
            return -1;
        break;
    case BROKER_DATA:
    case BROKER_ASIDE:
        if (h->sftp)
            return type == BROKER_DATA ? ssh_sftp_down(h, s) : -1;
        h->aside = type == BROKER_ASIDE && !ssh_forward_is(h);
        if (buf_len(&h->out) > 0 || buf_append_slice(&h->out, s) < 0)
            return -1;
        broker_stream_pause(h->stream, true); /* until that is with the client */
        break;
    case BROKER_STATUS:
        if (ssh_status_get(s, &h->status) < 0)
            return -1;
        ssh_sftp_status(h);
        h->has_status = true;
        break;
    case BROKER_REFUSED:
        nul = slice_find(s, 0);
        if (nul < 0 || (size_t)nul + 1 >= s.n || s.n > 500 || s.p[s.n - 1] != 0)
            return -1;
        ssh_channel_say(h, s.p, s.p + nul + 1, LOST_STATUS);
        break;
    case BROKER_END:
        h->down_end = true;
        if (ssh_forward_is(h))
            break;
        if (!h->has_status)
            ssh_sftp_status(h);
        h->state = CHANNEL_ENDED;
        break;
    default:
        return -1;
    }
    ssh_pump_soon(h->connection->pump);
    return 0;
}

static void on_writable(void *arg)
{
    struct ssh_channel_of *h = arg;
    ssh_pump_soon(h->connection->pump);
}

static void on_closed(void *arg)
{
    struct ssh_channel_of *h = arg;
    broker_stream_free(h->stream);
    h->stream = NULL;
    if (ssh_push_refused(h) || h->state == CHANNEL_ENDED)
        return;
    if (ssh_forward_is(h)) {
        ssh_forward_over(h, h->down_end || h->state == CHANNEL_ENDED ? NULL : "broker_gone",
                         "the connection to the server was lost");
        ssh_pump_soon(h->connection->pump);
        return;
    }
    if (!h->has_status && buf_len(&h->out) == 0)
        ssh_channel_say(h, "broker_gone", "the connection to the server was lost", LOST_STATUS);
    if (!h->has_status) {
        h->has_status = true;
        h->status.status = LOST_STATUS;
    }
    h->state = CHANNEL_ENDED;
    ssh_pump_soon(h->connection->pump);
}

const struct broker_stream_ops ssh_channel_stream_ops = {
    .packet = on_packet, .writable = on_writable, .closed = on_closed};

/* ---- what is asked ---- */

static void decide(const struct ssh_channel_of *h, struct decision *ret)
{
    const struct ssh_asked asked = ssh_facts_asked(&h->facts);
    policy_ssh_decide(h->connection->of->front->policy, &h->connection->at, &asked, ret);
}

/* A path without "/" in front is the repository's from the top, as forges have it, and else one in
 * the user's home: what is sent on is what was decided. */
static void decide_path(struct ssh_channel_of *h, struct decision *ret)
{
    struct decision home;
    char path[sizeof h->facts.text];
    decide(h, ret);
    if (ret->verdict != VERDICT_DENY || !h->relative || strlen(h->facts.text) + 2 > sizeof path)
        return;
    memcpy(path, h->facts.text, sizeof path);
    snprintf(h->facts.text, sizeof h->facts.text, "~%.*s", (int)sizeof h->facts.text - 2, path);
    decide(h, &home);
    if (home.verdict != VERDICT_DENY)
        *ret = home;
    else
        memcpy(h->facts.text, path, sizeof path);
}

/* A command that scp gives its server is none to us: what it asks for is files. */
static bool decide_scp(struct ssh_channel_of *h, struct scp_command *scp, struct decision *ret)
{
    struct decision files;
    const struct ssh_facts asked = h->facts;
    if (h->facts.verb != SSH_EXEC || h->facts.term[0] ||
        scp_command_read(slice_str(h->facts.text), scp) < 0)
        return false;
    h->facts.verb = SSH_SFTP;
    h->facts.text[0] = 0;
    decide(h, &files);
    if (files.verdict == VERDICT_DENY)
        h->facts = asked;
    else
        *ret = files;
    return files.verdict != VERDICT_DENY;
}

static void ask(struct ssh_channel_of *h)
{
    struct decision d;
    struct scp_command scp;
    struct buf facts;
    bool old = false;
    if (h->facts.verb == 0) {
        h->facts.verb = SSH_EXEC;
        deny(h, "ssh_command", NULL);
        return;
    }
    decide_path(h, &d);
    if (d.verdict == VERDICT_DENY)
        old = decide_scp(h, &scp, &d);
    if (d.verdict == VERDICT_DENY) {
        deny(h, d.code, d.rule);
        return;
    }
    buf_init(&facts, SSH_FACTS_MAX);
    if (ssh_push_begin(h, d.rule) == 0 && ssh_sftp_begin(h, d.rule, old ? &scp : NULL) == 0 &&
        ssh_facts_put(&h->facts, &facts) == 0)
        h->stream = front_open(h->connection->of->front, &h->connection->at, buf_slice(&facts),
                               &ssh_channel_stream_ops, h);
    buf_free(&facts);
    if (h->stream == NULL)
        deny(h, "broker_gone", d.rule);
    else
        h->state = CHANNEL_RUNNING;
}

static int on_exec(ssh_session session UNUSED, ssh_channel channel UNUSED, const char *command,
                   void *arg)
{
    struct ssh_channel_of *h = arg;
    if (h->state != CHANNEL_OPEN)
        return 1;
    if (ssh_command_read(slice_str(command), &h->facts, &h->relative) < 0)
        h->facts.verb = 0;
    h->state = CHANNEL_ASKED;
    return 0;
}

static int on_shell(ssh_session session UNUSED, ssh_channel channel UNUSED, void *arg)
{
    struct ssh_channel_of *h = arg;
    if (h->state != CHANNEL_OPEN)
        return 1;
    h->facts.verb = SSH_SHELL;
    h->state = CHANNEL_ASKED;
    return 0;
}

static int on_pty(ssh_session session UNUSED, ssh_channel channel UNUSED, const char *term, int x,
                  int y, int px UNUSED, int py UNUSED, void *arg)
{
    struct ssh_channel_of *h = arg;
    size_t n = strlen(term);
    if (n == 0) { /* a client that has none has a terminal nevertheless */
        term = "dumb";
        n = 4;
    }
    if (h->state != CHANNEL_OPEN || n > SSH_TERM_MAX || x < 0 || y < 0)
        return -1;
    for (size_t i = 0; i < n; i++)
        if (!ascii_is_alnum(term[i]) && strchr("-_.+", term[i]) == NULL)
            return -1;
    memcpy(h->facts.term, term, n + 1);
    h->facts.columns = x < 10000 ? (uint32_t)x : 0;
    h->facts.rows = y < 10000 ? (uint32_t)y : 0;
    return 0;
}

static int on_window(ssh_session session UNUSED, ssh_channel channel UNUSED, int x, int y,
                     int px UNUSED, int py UNUSED, void *arg)
{
    struct ssh_channel_of *h = arg;
    struct buf b;
    if (h->stream == NULL || x < 0 || y < 0 || x >= 10000 || y >= 10000)
        return 0;
    buf_init(&b, 16);
    if (ssh_window_put((uint32_t)x, (uint32_t)y, &b) == 0)
        (void)broker_stream_send(h->stream, BROKER_EVENT, buf_slice(&b));
    buf_free(&b);
    return 0;
}

/* The one variable that git needs; a server has its own for the rest. */
static int on_env(ssh_session session UNUSED, ssh_channel channel UNUSED, const char *name,
                  const char *value, void *arg)
{
    struct ssh_channel_of *h = arg;
    static const char *const versions[] = {"version=0", "version=1", "version=2"};
    for (uint8_t i = 0; i < ARRAY_LEN(versions); i++)
        if (strcmp(name, "GIT_PROTOCOL") == 0 && strcmp(value, versions[i]) == 0) {
            h->facts.git_protocol = (uint8_t)(i + 1);
            return 0;
        }
    return 1;
}

static int on_subsystem(ssh_session session UNUSED, ssh_channel channel UNUSED, const char *name,
                        void *arg)
{
    struct ssh_channel_of *h = arg;
    char what[64];
    if (strcmp(name, "sftp") == 0 && h->state == CHANNEL_OPEN) {
        h->facts.verb = SSH_SFTP;
        h->facts.term[0] = 0;
        h->state = CHANNEL_ASKED;
        return 0;
    }
    snprintf(what, sizeof what, "the subsystem %.32s", name);
    ssh_refuse_other(h->connection, "ssh_subsystem", what);
    return 1;
}

/* Its answer is silence: the server is never asked for one either. */
static void on_agent(ssh_session session UNUSED, ssh_channel channel UNUSED, void *arg)
{
    struct ssh_channel_of *h = arg;
    ssh_refuse_other(h->connection, "ssh_forwarding", "forwarding of an agent");
}

static void on_close(ssh_session session UNUSED, ssh_channel channel UNUSED, void *arg)
{
    struct ssh_channel_of *h = arg;
    h->leaving = ssh_forward_is(h) && h->state == CHANNEL_RUNNING;
    if (!h->leaving)
        h->state = CHANNEL_CLOSED;
}

ssh_channel ssh_channel_new_of(struct ssh_connection *c)
{
    struct ssh_channel_of *h = calloc(1, sizeof *h);
    if (h == NULL)
        return NULL;
    h->connection = c;
    h->channel = ssh_channel_new(c->session);
    h->callbacks =
        (struct ssh_channel_callbacks_struct){.userdata = h,
                                              .channel_exec_request_function = on_exec,
                                              .channel_shell_request_function = on_shell,
                                              .channel_pty_request_function = on_pty,
                                              .channel_pty_window_change_function = on_window,
                                              .channel_env_request_function = on_env,
                                              .channel_subsystem_request_function = on_subsystem,
                                              .channel_auth_agent_req_function = on_agent,
                                              .channel_close_function = on_close};
    ssh_callbacks_init(&h->callbacks);
    if (h->channel == NULL || ssh_set_channel_callbacks(h->channel, &h->callbacks) != SSH_OK) {
        if (h->channel)
            ssh_channel_free(h->channel);
        free(h);
        return NULL;
    }
    memcpy(h->facts.user, c->user, sizeof c->user);
    buf_init(&h->in, BROKER_PACKET_MAX);
    buf_init(&h->out, PUSH_STREAM_ANSWER_MAX); /* else one packet */
    TAILQ_INSERT_TAIL(&c->channels, h, link);
    c->n_channels++;
    return h->channel;
}

/* Its library's part is freed with the session's, unless the client closed it. */
void ssh_channel_drop(struct ssh_channel_of *h)
{
    struct ssh_connection *c = h->connection;
    broker_stream_free(h->stream);
    ssh_push_end(h);
    ssh_sftp_end(h);
    ssh_remove_channel_callbacks(h->channel, &h->callbacks);
    ssh_channel_free(h->channel);
    buf_free(&h->in);
    buf_free(&h->out);
    TAILQ_REMOVE(&c->channels, h, link);
    c->n_channels--;
    free(h);
}

/* ---- bytes ---- */

/* What was held of a push comes first. */
static void take_held(struct ssh_channel_of *h)
{
    struct slice held = h->push ? push_stream_held(h->push) : SLICE("");
    size_t n = held.n < BROKER_PACKET_MAX ? held.n : BROKER_PACKET_MAX;
    if (h->push == NULL || buf_len(&h->in) > 0)
        return;
    if (n == 0)
        ssh_push_end(h);
    else if (buf_append(&h->in, held.p, n) == 0)
        push_stream_sent(h->push, n);
}

/* From the client to the back, as long as that takes them. */
static void carry_up(struct ssh_channel_of *h)
{
    if (h->sftp) {
        ssh_sftp_up(h);
        return;
    }
    if (!ssh_push_turn(h))
        return;
    take_held(h);
    while (h->stream && !h->eof_sent) {
        unsigned char *to = buf_len(&h->in) ? NULL : buf_reserve(&h->in, BROKER_PACKET_MAX);
        int n = to ? ssh_channel_read_nonblocking(h->channel, to, BROKER_PACKET_MAX, 0) : 0;
        if (n > 0)
            buf_commit(&h->in, (size_t)n);
        if (buf_len(&h->in) > 0) {
            if (broker_stream_send(h->stream, BROKER_DATA, buf_slice(&h->in)) <= 0)
                return;
            buf_clear(&h->in);
            take_held(h);
        } else if (ssh_channel_is_eof(h->channel)) {
            h->eof_sent = broker_stream_send(h->stream, BROKER_END, SLICE("")) > 0;
            return;
        } else {
            return;
        }
    }
}

static void carry_down(struct ssh_channel_of *h)
{
    while (buf_len(&h->out) > 0 && !ssh_pump_full(h->connection->pump)) {
        uint32_t n = (uint32_t)buf_len(&h->out);
        int r = h->aside ? ssh_channel_write_stderr(h->channel, buf_data(&h->out), n)
                         : ssh_channel_write(h->channel, buf_data(&h->out), n);
        if (r <= 0)
            return;
        buf_drain(&h->out, (size_t)r);
    }
    if (buf_len(&h->out) == 0 && h->stream)
        broker_stream_pause(h->stream, false);
}

/* A command that the server cut off has no status, and its client is not told of one: none is not
 * success. */
static void finish(struct ssh_channel_of *h)
{
    if (ssh_forward_is(h))
        ; /* it has no status */
    else if (h->status.signalled)
        ssh_channel_request_send_exit_signal(h->channel, h->status.signal, 0, "", "");
    else if (h->has_status)
        ssh_channel_request_send_exit_status(h->channel, (int)h->status.status);
    ssh_channel_send_eof(h->channel);
    ssh_channel_close(h->channel);
    h->state = CHANNEL_CLOSED;
}

void ssh_channel_turn(struct ssh_channel_of *h)
{
    if (h->state == CHANNEL_ASKED)
        ask(h);
    if (h->state == CHANNEL_RUNNING)
        carry_up(h);
    if (h->state == CHANNEL_RUNNING || h->state == CHANNEL_ENDED)
        carry_down(h);
    if (h->sftp && h->state == CHANNEL_RUNNING)
        ssh_sftp_again(h);
    if (ssh_forward_is(h))
        ssh_forward_turn(h);
    if (h->state == CHANNEL_ENDED && buf_len(&h->out) == 0)
        finish(h);
}
