/* A request of a front's: decided anew, recorded, dialled, logged in, asked of the server, and
 * recorded at its end. */
#include "ssh_back.h"

#include "meter.h"
#include "sftp_session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- records ---- */

static void put_request(void *arg, struct record *r)
{
    const struct ssh_request *q = arg;
    ssh_facts_record(&q->facts, r);
}

static void put_end(void *arg, struct record *r)
{
    const struct ssh_request *q = arg;
    if (q->has_status && !q->status.signalled)
        record_put_u64(r, RF_EXIT, q->status.status);
    if (q->has_status && q->status.signalled)
        record_put_str(r, RF_DETAIL, q->status.signal);
    record_put_str(r, RF_DETAIL, ssh_recording_note(q->recording)); /* if there is none yet */
}

static void request_free(struct ssh_request *q, const char *code)
{
    secret_client_cancel(q->key);
    back_request_free(&q->request, code);
    dial_client_cancel(q->dial);
    ssh_login_done(q);
    ssh_pump_free(q->pump);
    if (q->session) { /* libssh leaves open what it was given, unless it has forgotten that */
        (void)ssh_options_set(q->session, SSH_OPTIONS_FD, NULL);
        ssh_disconnect(q->session);
        ssh_free(q->session);
    }
    broker_stream_free(q->stream);
    push_stream_free(q->push);
    sftp_session_free(q->sftp, code);
    ssh_recording_free(q->recording);
    buf_free(&q->in);
    buf_free(&q->out);
    LIST_REMOVE(q, link);
    free(q);
}

void ssh_request_refuse(struct ssh_request *q, const char *code, const char *text)
{
    struct buf b;
    (void)ssh_recording_end(q->recording);
    back_request_end(&q->request, RECORD_ABORTED, code, q->address, text);
    buf_init(&b, 512);
    if (buf_append(&b, code, strlen(code) + 1) == 0 && buf_printf(&b, "%.300s", text) == 0 &&
        buf_append(&b, "", 1) == 0)
        (void)broker_stream_send(q->stream, BROKER_REFUSED, buf_slice(&b));
    buf_free(&b);
    request_free(q, code);
}

/* This is the last word. */
void ssh_request_deny(struct ssh_request *q, const char *code, const char *detail)
{
    back_request_deny(&q->request, code, detail);
    ssh_request_refuse(q, code, "the policy does not allow it");
}

/* ---- steps towards the server ---- */

static void on_dialled(void *arg, int fd, const char *address, const char *code, const char *detail)
{
    struct ssh_request *q = arg;
    q->dial = NULL;
    if (fd < 0) {
        ssh_request_refuse(q, code, detail ? detail : "");
        return;
    }
    snprintf(q->address, sizeof q->address, "%s", address);
    q->state = REQUEST_EXCHANGE;
    if (ssh_login_begin(q, fd) < 0) {
        ssh_request_refuse(q, "upstream_ssh", q->session ? ssh_get_error(q->session) : "memory");
        return;
    }
    ssh_pump_deadline(q->pump, SSH_LOGIN_SECONDS);
    ssh_pump_soon(q->pump);
}

static void on_admitted(void *arg, const char *code, const char *text)
{
    struct ssh_request *q = arg;
    char id[48];
    if (code) {
        ssh_request_refuse(q, code, text);
        return;
    }
    q->state = REQUEST_DIALLING;
    back_request_id(&q->request, id, sizeof id);
    q->dial = dial_client_get(q->of->back->dial, slice_str(q->request.sandbox), &q->request.at, id,
                              "", on_dialled, q);
    if (q->dial == NULL)
        ssh_request_refuse(q, "memory", "");
}

/* "/git/acme/app.git", as in a rule's pattern; "/deploy: uptime -p". */
static int show(void *arg, const char **verb, struct buf *path)
{
    const struct ssh_request *q = arg;
    const struct ssh_facts *f = &q->facts;
    *verb = ssh_verb_name(f->verb);
    if (f->verb == SSH_EXEC || f->verb == SSH_FORWARD)
        return buf_printf(path, "/%s: %s", f->user, f->text);
    return buf_printf(path, "/%s%s%s", f->user, f->text[0] == '~' ? "/" : "", f->text);
}

static void decide(void *arg, const struct policy *p, struct decision *ret)
{
    const struct ssh_request *q = arg;
    const struct ssh_asked what = ssh_facts_asked(&q->facts);
    policy_ssh_decide(p, &q->request.at, &what, ret);
}

static const struct back_request_ops request_ops = {.put = put_request,
                                                    .put_end = put_end,
                                                    .show = show,
                                                    .decide = decide,
                                                    .admitted = on_admitted,
                                                    .up = ssh_carry_up,
                                                    .more = ssh_carry_more,
                                                    .spent = ssh_carry_spent};

static void on_key(void *arg, struct secret *value, const struct err *err)
{
    struct ssh_request *q = arg;
    q->key = NULL;
    bool key = q->request.rule->credential->kind == CREDENTIAL_SSH_KEY;
    if (value == NULL || (key && buf_append_slice(&q->agent.public, secret_slice(value)) < 0)) {
        ssh_request_refuse(q, "secret_unavailable", err ? err->text : "out of memory");
        return;
    }
    q->state = REQUEST_ADMITTING;
    back_request_admit(&q->request); /* it may be gone */
}

/* ---- the server ---- */

static void on_exit_status(ssh_session session UNUSED, ssh_channel channel UNUSED, int status,
                           void *arg)
{
    struct ssh_request *q = arg;
    q->status.status = (uint32_t)status;
    q->has_status = true;
}

static void on_exit_signal(ssh_session session UNUSED, ssh_channel channel UNUSED, const char *name,
                           int core UNUSED, const char *text UNUSED, const char *lang UNUSED,
                           void *arg)
{
    struct ssh_request *q = arg;
    q->status.signalled = true;
    q->has_status = true;
    snprintf(q->status.signal, sizeof q->status.signal, "%s", name);
}

static void on_close(ssh_session session UNUSED, ssh_channel channel UNUSED, void *arg)
{
    struct ssh_request *q = arg;
    q->far_closed = true;
}

/* The server is told a host and a port that were decided; who asks is nobody's address. */
static int open_forward(const struct ssh_request *q)
{
    struct authority at;
    return ssh_target_read(slice_str(q->facts.text), &at) < 0
               ? SSH_ERROR
               : ssh_channel_open_forward(q->channel, at.host, at.port, "127.0.0.1", 0);
}

static int open_channel(struct ssh_request *q)
{
    if (q->channel == NULL) {
        q->channel = ssh_channel_new(q->session);
        q->callbacks =
            (struct ssh_channel_callbacks_struct){.userdata = q,
                                                  .channel_exit_status_function = on_exit_status,
                                                  .channel_exit_signal_function = on_exit_signal,
                                                  .channel_close_function = on_close};
        ssh_callbacks_init(&q->callbacks);
        if (q->channel == NULL || ssh_set_channel_callbacks(q->channel, &q->callbacks) != SSH_OK)
            return SSH_ERROR;
    }
    return q->facts.verb == SSH_FORWARD ? open_forward(q) : ssh_channel_open_session(q->channel);
}

static int ask_terminal(struct ssh_request *q)
{
    char version[] = "version=0";
    if (q->facts.git_protocol) {
        version[8] = (char)('0' + q->facts.git_protocol - 1);
        int r = ssh_channel_request_env(q->channel, "GIT_PROTOCOL", version);
        if (r == SSH_AGAIN)
            return r;
        q->facts.git_protocol = 0; /* a server that takes none speaks the oldest */
    }
    if (q->facts.term[0] == 0)
        return SSH_OK;
    return ssh_channel_request_pty_size(q->channel, q->facts.term, (int)q->facts.columns,
                                        (int)q->facts.rows);
}

static int ask_command(struct ssh_request *q)
{
    struct buf line;
    if (q->facts.verb == SSH_FORWARD)
        return SSH_OK; /* it is asked for by its being opened */
    if (q->facts.verb == SSH_SHELL)
        return ssh_channel_request_shell(q->channel);
    if (q->facts.verb == SSH_SFTP)
        return ssh_channel_request_subsystem(q->channel, "sftp");
    buf_init(&line, SSH_LINE_MAX);
    int r = ssh_command_write(&q->facts, &line) < 0 || buf_append(&line, "", 1) < 0
                ? SSH_ERROR
                : ssh_channel_request_exec(q->channel, (const char *)buf_data(&line));
    buf_free(&line);
    return r;
}

/* A server that has been given a password may say it, and words of its are on record and shown. */
static const char *said(const struct ssh_request *q)
{
    return q->password.given ? "the server ended it" : ssh_get_error(q->session);
}

/* One step that libssh takes, perhaps in several turns. 1: done. */
static int step(int r, const struct ssh_request *q, const char **code, const char **text)
{
    if (r == SSH_OK || r == SSH_AGAIN)
        return r == SSH_OK;
    *code = q->facts.verb == SSH_FORWARD && q->state == REQUEST_OPENING ? "ssh_target_refused"
                                                                        : "upstream_ssh";
    *text = said(q);
    return -1;
}

/* 1: to the next state; 0: go on later; 2: the request is gone; -1: refused. */
static int advance(struct ssh_request *q, const char **code, const char **text)
{
    switch (q->state) {
    case REQUEST_EXCHANGE:
        return ssh_login_exchange(q, code, text);
    case REQUEST_LOGIN:
        return ssh_login_log_in(q, code, text);
    case REQUEST_OPENING:
        return step(open_channel(q), q, code, text);
    case REQUEST_TERMINAL:
        return step(ask_terminal(q), q, code, text);
    case REQUEST_ASKING:
        return step(ask_command(q), q, code, text);
    default:
        return 0;
    }
}

/* Before the server is asked for anything: what is to be recorded does not run without. */
static int begin_recording(struct ssh_request *q, const char **code, const char **text)
{
    bool failed;
    q->recording =
        ssh_recording_new(&q->request, &q->facts, &q->of->looking, ssh_carry_more, q, &failed);
    if (!failed)
        return 1;
    *code = "overload";
    *text = "there is no memory for a recording: end one that runs";
    return -1;
}

/* 1, or -1: memory is out. Of sftp the front is told once the server has said where it begins. */
static int begun(struct ssh_request *q)
{
    ssh_recording_input(q->recording, buf_slice(&q->in)); /* what came before */
    if (q->facts.verb == SSH_SFTP)
        q->sftp = sftp_session_new(q);
    else
        (void)broker_stream_send(q->stream, BROKER_OPENED, SLICE(""));
    ssh_login_done(q);
    return q->facts.verb == SSH_SFTP && q->sftp == NULL ? -1 : 1;
}

void ssh_request_turn(void *request, bool late)
{
    struct ssh_request *q = request;
    const char *code = "timeout", *text = "the server took too long";
    int r = late ? -1 : 1;
    bool alive = late || ssh_pump_run(q->pump) == 0;
    while (r == 1 && q->state < REQUEST_RUNNING) {
        r = advance(q, &code, &text);
        if (r == 1 && ++q->state == REQUEST_OPENING)
            r = begin_recording(q, &code, &text);
        if (r == 1 && q->state == REQUEST_RUNNING)
            r = begun(q);
    }
    if (r == 2)
        return;
    if (r < 0) {
        ssh_request_refuse(q, code, text);
        return;
    }
    bool over = q->state == REQUEST_RUNNING && ssh_carry(q);
    const char *failed = sftp_session_failed(q->sftp);
    if (failed) {
        ssh_request_refuse(q, "upstream_sftp", failed);
        return;
    }
    if (over && (alive || q->has_status || q->facts.verb == SSH_FORWARD)) {
        bool cut = !q->has_status && q->facts.verb != SSH_FORWARD;
        back_request_end(&q->request, RECORD_COMPLETED, "ok", q->address,
                         cut ? "the server cut it off, and said no status" : "");
        request_free(q, "ok");
        return;
    }
    if (!alive || ssh_pump_run(q->pump) < 0) {
        ssh_request_refuse(q, "upstream_closed", said(q));
        return;
    }
    if (q->state == REQUEST_RUNNING && (q->sftp == NULL || sftp_session_ready(q->sftp)))
        ssh_pump_deadline(q->pump, q->of->back->limits.tunnel_seconds);
}

/* ---- from the front ---- */

/* Takes the stream, also where there is no room (NULL). */
static struct ssh_request *request_new(struct ssh_back *of, const struct back_asked *asked)
{
    struct ssh_request *q = calloc(1, sizeof *q);
    if (q == NULL) {
        close(asked->fd);
        return NULL;
    }
    if (back_request_begin(&q->request, of->back, asked, &ssh_carry_ops, &request_ops, q) < 0) {
        free(q);
        return NULL;
    }
    q->of = of;
    q->stream = q->request.stream;
    q->agent.fd = q->agent.theirs = -1;
    buf_init(&q->in, BROKER_PACKET_MAX);
    buf_init(&q->out, BROKER_PACKET_MAX);
    buf_init(&q->agent.public, SECRET_CLIENT_SIGNATURE_MAX);
    buf_init(&q->agent.signature, 4096);
    LIST_INSERT_HEAD(&of->requests, q, link);
    return q;
}

void ssh_requests_again(struct ssh_back *of)
{
    struct ssh_request *q = LIST_FIRST(&of->requests), *next;
    for (; q; q = next) {
        next = LIST_NEXT(q, link);
        if (!back_request_goes_on(&q->request))
            ssh_request_refuse(q, "policy_changed", "the policy was changed, and this is over");
    }
}

int ssh_request_new(struct ssh_back *of, const struct back_asked *asked)
{
    struct ssh_facts facts;
    if (ssh_facts_get(asked->facts, &facts) < 0)
        return -1;
    struct ssh_request *q = request_new(of, asked);
    if (q == NULL)
        return 0;
    q->facts = facts;
    const char *code = back_request_decide(&q->request);
    if (code) {
        ssh_request_refuse(q, code, "the policy does not allow it");
        return 0;
    }
    const struct rule *rule = q->request.rule;
    if (q->facts.verb == SSH_PUSH && rule->inspection) {
        q->push = push_stream_new(rule->inspection, &of->pushes, q->request.sandbox);
        if (q->push == NULL) {
            ssh_request_refuse(q, "memory", "");
            return 0;
        }
    }
    struct secret_wait *w =
        secret_client_get(of->back->secrets, rule->credential->secret, on_key, q);
    if (w)
        q->key = w;
    return 0;
}
