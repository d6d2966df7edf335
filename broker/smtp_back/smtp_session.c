/* A message of a front's: decided anew, recorded, connected, and recorded at its end. */
#include "smtp_back.h"

#include "assertion.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- records ---- */

static void put_message(void *arg, struct record *r)
{
    const struct smtp_session *s = arg;
    struct buf b;
    buf_init(&b, RECORD_FIELD_MAX);
    record_put_str(r, RF_METHOD, "connect");
    record_put_str(r, RF_PATH, "/");
    record_put_str(r, RF_USER, s->login.user);
    smtp_facts_domains(&s->facts.envelope, &b);
    record_put(r, RF_STATEMENTS, buf_slice(&b));
    record_put_u64(r, RF_COUNT, s->facts.envelope.n);
    buf_free(&b);
}

static void put_end(void *arg, struct record *r)
{
    const struct smtp_session *s = arg;
    record_put_u64(r, RF_COUNT, s->facts.envelope.n);
}

static void session_free(struct smtp_session *s, const char *code)
{
    secret_client_cancel(s->secret);
    secret_client_sign_cancel(s->proof);
    back_request_free(&s->request, code);
    back_link_end(&s->link);
    back_login_forget(&s->login);
    broker_stream_free(s->stream);
    free(s->said);
    LIST_REMOVE(s, entry);
    free(s);
}

void smtp_session_end(struct smtp_session *s, enum record_kind kind, const char *code,
                      const char *detail)
{
    back_request_end(&s->request, kind, code, s->link.address, detail);
    session_free(s, code);
}

void smtp_session_refuse(struct smtp_session *s, const char *code, const char *text)
{
    broker_stream_refuse(s->stream, code, text);
    smtp_session_end(s, RECORD_ABORTED, code, text);
}

/* ---- steps towards the server ---- */

static void on_linked(void *arg, const char *code, const char *detail)
{
    struct smtp_session *s = arg;
    if (code)
        smtp_session_refuse(s, code, detail);
    else
        smtp_talk_begin(s);
}

static void on_admitted(void *arg, const char *code, const char *text)
{
    struct smtp_session *s = arg;
    char id[48];
    if (code) {
        smtp_session_refuse(s, code, text);
        return;
    }
    s->state = SESSION_LINKING;
    back_request_id(&s->request, id, sizeof id);
    back_link_begin(&s->link, s->of->back, &s->request.at, s->request.sandbox, id, NULL,
                    s->request.rule->smtp->implicit, SLICE(""), SMTP_WRITTEN_MAX, on_linked, s);
}

/* To whom it goes, since that is what somebody decides about; of a long list the first. */
static int show(void *arg, const char **verb, struct buf *path)
{
    const struct smtp_session *s = arg;
    const struct smtp_envelope *e = &s->facts.envelope;
    *verb = "connect";
    if (buf_append_str(path, "/") < 0)
        return -1;
    for (size_t i = 0; i < e->n; i++) {
        if (buf_room(path) < e->recipients[i].n + 32)
            return buf_printf(path, " and %zu more", e->n - i);
        if (buf_printf(path, "%s%.*s", i ? "," : "", SL(e->recipients[i])) < 0)
            return -1;
    }
    return 0;
}

static void decide(void *arg, const struct policy *p, struct decision *ret)
{
    const struct smtp_session *s = arg;
    policy_smtp_decide(p, &s->request.at, &s->facts.envelope, ret);
}

static const struct back_request_ops request_ops = {.put = put_message,
                                                    .put_end = put_end,
                                                    .show = show,
                                                    .decide = decide,
                                                    .admitted = on_admitted,
                                                    .up = smtp_talk_up,
                                                    .more = smtp_talk_more,
                                                    .spent = smtp_talk_spent};

static void on_secret(void *arg, struct secret *value, const struct err *err)
{
    struct smtp_session *s = arg;
    s->secret = NULL;
    if (back_login_read(&s->login, "smtp", value ? secret_slice(value) : SLICE("")) < 0) {
        smtp_session_refuse(s, "secret_unavailable", err ? err->text : "it is not a login");
        return;
    }
    s->state = SESSION_ADMITTING;
    back_request_admit(&s->request); /* it may be gone */
}

/* ---- from the front ---- */

static struct smtp_session *session_alloc(const struct back_asked *asked)
{
    struct smtp_session *s = calloc(1, sizeof *s);
    if (s && (s->said = malloc(asked->facts.n + 1)) == NULL) {
        free(s);
        return NULL;
    }
    return s;
}

/* Takes the stream. NULL: no room. */
static struct smtp_session *session_new(struct smtp_back *of, const struct back_asked *asked)
{
    struct smtp_session *s = session_alloc(asked);
    if (s == NULL) {
        close(asked->fd);
        return NULL;
    }
    if (back_request_begin(&s->request, of->back, asked, &smtp_talk_ops, &request_ops, s) < 0) {
        free(s->said);
        free(s);
        return NULL;
    }
    s->of = of;
    s->stream = s->request.stream;
    memcpy(s->said, asked->facts.p, asked->facts.n);
    bool read = smtp_facts_read((struct slice){s->said, asked->facts.n}, &s->facts) == 0;
    ASSERT(read); /* as it was before */
    LIST_INSERT_HEAD(&of->sessions, s, entry);
    return s;
}

/* A message that the server has whole is the server's. */
void smtp_sessions_again(struct smtp_back *of)
{
    struct smtp_session *s = LIST_FIRST(&of->sessions), *next;
    for (; s; s = next) {
        next = LIST_NEXT(s, entry);
        if (s->state != SESSION_ENDING && !back_request_goes_on(&s->request))
            smtp_talk_stop(s, "policy_changed", "the policy was changed meanwhile");
    }
}

int smtp_session_new(struct smtp_back *of, const struct back_asked *asked)
{
    struct smtp_facts facts;
    if (smtp_facts_read(asked->facts, &facts) < 0)
        return -1;
    struct smtp_session *s = session_new(of, asked);
    if (s == NULL)
        return 0;
    const char *code = back_request_decide(&s->request);
    if (code) {
        smtp_session_refuse(s, code, "the policy does not allow it");
        return 0;
    }
    struct secret_wait *w =
        secret_client_get(of->back->secrets, s->request.rule->credential->secret, on_secret, s);
    if (w)
        s->secret = w;
    return 0;
}
