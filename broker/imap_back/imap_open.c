/* A session of a front's: decided anew, recorded, connected, and recorded at its end. */
#include "imap_back.h"

#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- records ---- */

static void put_session(void *arg, struct record *r)
{
    const struct imap_session *s = arg;
    record_put_str(r, RF_METHOD, "connect");
    record_put_str(r, RF_PATH, "/");
    record_put_str(r, RF_USER, s->login.user);
}

static void put_end(void *arg, struct record *r)
{
    const struct imap_session *s = arg;
    struct buf b;
    buf_init(&b, RECORD_FIELD_MAX);
    if (imap_did_put(&s->did, &b) == 0)
        record_put(r, RF_STATEMENTS, buf_slice(&b));
    record_put_u64(r, RF_COUNT, s->n_commands);
    buf_free(&b);
}

static void session_free(struct imap_session *s, const char *code)
{
    secret_client_cancel(s->secret);
    secret_client_sign_cancel(s->proof);
    back_request_free(&s->request, code);
    back_link_end(&s->link);
    back_login_forget(&s->login);
    imap_command_free(&s->command);
    imap_responses_free(&s->responses);
    broker_stream_free(s->stream);
    if (s->clock)
        event_free(s->clock);
    buf_free(&s->said);
    buf_free(&s->up);
    buf_free(&s->came);
    buf_free(&s->down);
    buf_free(&s->status);
    if (s->gone)
        *s->gone = true;
    LIST_REMOVE(s, entry);
    free(s);
}

void imap_session_end(struct imap_session *s, enum record_kind kind, const char *code,
                      const char *detail)
{
    back_request_end(&s->request, kind, code, s->link.address, detail);
    session_free(s, code);
}

void imap_session_refuse(struct imap_session *s, const char *code, const char *text)
{
    broker_stream_refuse(s->stream, code, text);
    imap_session_end(s, RECORD_ABORTED, code, text);
}

/* ---- steps towards the server ---- */

static void on_linked(void *arg, const char *code, const char *detail)
{
    struct imap_session *s = arg;
    if (code)
        imap_session_refuse(s, code, detail);
    else
        imap_login_begin(s);
}

static void on_admitted(void *arg, const char *code, const char *text)
{
    struct imap_session *s = arg;
    char id[48];
    if (code) {
        imap_session_refuse(s, code, text);
        return;
    }
    s->state = SESSION_LINKING;
    back_request_id(&s->request, id, sizeof id);
    back_link_begin(&s->link, s->of->back, &s->request.at, s->request.sandbox, id, NULL,
                    s->request.rule->imap->implicit, SLICE(""), IMAP_WRITTEN_MAX, on_linked, s);
}

static int show(void *arg UNUSED, const char **verb, struct buf *path)
{
    *verb = "connect";
    return buf_append_str(path, "/");
}

static void decide(void *arg, const struct policy *p, struct decision *ret)
{
    const struct imap_session *s = arg;
    policy_imap_decide(p, &s->request.at, ret);
}

static const struct back_request_ops request_ops = {.put = put_session,
                                                    .put_end = put_end,
                                                    .show = show,
                                                    .decide = decide,
                                                    .admitted = on_admitted,
                                                    .up = imap_say_up,
                                                    .more = imap_carry_more,
                                                    .spent = imap_carry_spent};

static void on_secret(void *arg, struct secret *value, const struct err *err)
{
    struct imap_session *s = arg;
    s->secret = NULL;
    if (back_login_read(&s->login, "imap", value ? secret_slice(value) : SLICE("")) < 0) {
        imap_session_refuse(s, "secret_unavailable", err ? err->text : "it is not a login");
        return;
    }
    s->state = SESSION_ADMITTING;
    back_request_admit(&s->request); /* it may be gone */
}

/* ---- from the front ---- */

/* Takes the stream. NULL: no room. */
static struct imap_session *session_new(struct imap_back *of, const struct back_asked *asked)
{
    struct imap_session *s = calloc(1, sizeof *s);
    if (s == NULL) {
        close(asked->fd);
        return NULL;
    }
    if (back_request_begin(&s->request, of->back, asked, &imap_carry_ops, &request_ops, s) < 0) {
        free(s);
        return NULL;
    }
    s->of = of;
    s->stream = s->request.stream;
    imap_command_init(&s->command);
    imap_responses_init(&s->responses);
    buf_init_wiped(&s->said, IMAP_OUT_MAX + BROKER_PACKET_MAX);
    buf_init_wiped(&s->up, IMAP_OUT_MAX + 64);
    buf_init_wiped(&s->came, IMAP_CAME_MAX);
    buf_init_wiped(&s->down, IMAP_DOWN_MAX);
    buf_init_wiped(&s->status, IMAP_SAID_MAX + 64);
    LIST_INSERT_HEAD(&of->sessions, s, entry);
    return s;
}

void imap_sessions_again(struct imap_back *of)
{
    struct imap_session *s = LIST_FIRST(&of->sessions), *next;
    for (; s; s = next) {
        next = LIST_NEXT(s, entry);
        if (!back_request_goes_on(&s->request))
            imap_carry_stop(s, "policy_changed",
                            "the policy was changed, and this session is over");
    }
}

int imap_session_new(struct imap_back *of, const struct back_asked *asked)
{
    if (asked->facts.n > 0)
        return -1;
    struct imap_session *s = session_new(of, asked);
    if (s == NULL)
        return 0;
    const char *code = back_request_decide(&s->request);
    if (code) {
        imap_session_refuse(s, code, "the policy does not allow it");
        return 0;
    }
    struct secret_wait *w =
        secret_client_get(of->back->secrets, s->request.rule->credential->secret, on_secret, s);
    if (w)
        s->secret = w;
    return 0;
}
