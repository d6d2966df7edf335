/* A session of a front's: decided anew, recorded, connected, and recorded at its end. */
#include "mysql_back.h"

#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- records ---- */

static void put_session(void *arg, struct record *r)
{
    const struct mysql_session *s = arg;
    char path[MYSQL_NAME_MAX + 2];
    snprintf(path, sizeof path, "/%s", s->database);
    record_put_str(r, RF_METHOD, "connect");
    record_put_str(r, RF_PATH, path);
    record_put_str(r, RF_USER, s->user);
}

/* "6ef1…:12 81d1…:1": which statements, how often. */
static void put_statements(void *arg, struct record *r)
{
    const struct mysql_session *s = arg;
    struct buf b;
    buf_init(&b, RECORD_FIELD_MAX);
    for (size_t i = 0; i < s->n_prints; i++)
        if (buf_printf(&b, "%s%.*s:%llu", i ? " " : "", MYSQL_PRINT, s->prints[i].text,
                       (unsigned long long)s->prints[i].n) < 0)
            break;
    record_put(r, RF_STATEMENTS, buf_slice(&b));
    record_put_u64(r, RF_COUNT, s->n_statements);
    buf_free(&b);
}

static void session_free(struct mysql_session *s, const char *code)
{
    secret_client_cancel(s->secret);
    back_request_free(&s->request, code);
    mysql_kill_end(s);
    mysql_login_end(&s->login);
    mysql_reader_free(&s->up);
    mysql_reader_free(&s->down);
    broker_stream_free(s->stream);
    if (s->clock)
        event_free(s->clock);
    buf_free(&s->out);
    LIST_REMOVE(s, entry);
    free(s);
}

void mysql_session_end(struct mysql_session *s, enum record_kind kind, const char *code,
                       const char *detail)
{
    back_request_end(&s->request, kind, code, s->login.link.address, detail);
    session_free(s, code);
}

void mysql_session_refuse(struct mysql_session *s, const char *code, const char *text)
{
    broker_stream_refuse(s->stream, code, text);
    mysql_session_end(s, RECORD_ABORTED, code, text);
}

/* ---- steps towards the server ---- */

static void on_in(void *arg, const char *code, const char *detail)
{
    struct mysql_session *s = arg;
    if (code) {
        mysql_session_refuse(s, code, detail);
        return;
    }
    io_callback(s->login.link.io, mysql_carry_io, s);
    io_deadline(s->login.link.io, MYSQL_LOGIN_SECONDS);
    (void)mysql_check_begin(s);
}

static void on_admitted(void *arg, const char *code, const char *text)
{
    struct mysql_session *s = arg;
    struct mysql_login *l = &s->login;
    char id[48];
    if (code) {
        mysql_session_refuse(s, code, text);
        return;
    }
    s->state = SESSION_LOGIN;
    l->back = s->of->back;
    l->sandbox = s->request.sandbox;
    l->secret = s->request.rule->credential->secret;
    l->certificate = rule_certificate(s->request.rule);
    l->user = s->user;
    l->facts.capabilities = mysql_capabilities(mysql_terms_of(s), s->capabilities);
    l->facts.charset = s->charset;
    l->facts.database = slice_str(s->database);
    l->done = on_in;
    l->arg = s;
    back_request_id(&s->request, id, sizeof id);
    mysql_login_begin(l, &s->request.at, id);
}

static int show(void *arg, const char **verb, struct buf *path)
{
    const struct mysql_session *s = arg;
    *verb = "connect";
    return buf_printf(path, "/%s", s->database);
}

static void decide(void *arg, const struct policy *p, struct decision *ret)
{
    const struct mysql_session *s = arg;
    policy_mysql_decide(p, &s->request.at, slice_str(s->database), ret);
}

static const struct back_request_ops request_ops = {.put = put_session,
                                                    .put_end = put_statements,
                                                    .show = show,
                                                    .decide = decide,
                                                    .admitted = on_admitted,
                                                    .up = mysql_carry_up,
                                                    .more = mysql_carry_more,
                                                    .spent = mysql_carry_spent};

/* "mysql NAME": the vault says of a login as whom it is, and no more. */
static void on_secret(void *arg, struct secret *value, const struct err *err)
{
    struct mysql_session *s = arg;
    s->secret = NULL;
    struct slice name = secret_client_login_name(value, MYSQL_USER_MAX);
    if (name.n == 0) {
        mysql_session_refuse(s, "secret_unavailable", err ? err->text : "it is not a login");
        return;
    }
    memcpy(s->user, name.p, name.n);
    s->state = SESSION_ADMITTING;
    back_request_admit(&s->request); /* it may be gone */
}

/* ---- from the front ---- */

/* Takes the stream. NULL: no room. */
static struct mysql_session *session_new(struct mysql_back *of, const struct back_asked *asked)
{
    struct mysql_session *s = calloc(1, sizeof *s);
    if (s == NULL) {
        close(asked->fd);
        return NULL;
    }
    if (back_request_begin(&s->request, of->back, asked, &mysql_carry_ops, &request_ops, s) < 0) {
        free(s);
        return NULL;
    }
    s->of = of;
    s->stream = s->request.stream;
    buf_init_wiped(&s->out, MYSQL_DOWN_MAX);
    mysql_reader_init(&s->up, MYSQL_COMMANDS);
    LIST_INSERT_HEAD(&of->sessions, s, entry);
    return s;
}

void mysql_sessions_again(struct mysql_back *of)
{
    struct mysql_session *s = LIST_FIRST(&of->sessions), *next;
    for (; s; s = next) {
        next = LIST_NEXT(s, entry);
        if (!back_request_goes_on(&s->request))
            mysql_carry_stop(s, "policy_changed",
                             "the policy was changed, and this session is over");
    }
}

int mysql_session_new(struct mysql_back *of, const struct back_asked *asked)
{
    struct mysql_facts facts;
    if (mysql_facts_read(asked->facts, &facts) < 0 ||
        memchr(facts.database.p ? facts.database.p : "", 0, facts.database.n))
        return -1;
    struct mysql_session *s = session_new(of, asked);
    if (s == NULL)
        return 0;
    memcpy(s->database, facts.database.p, facts.database.n);
    s->capabilities = facts.capabilities;
    s->charset = facts.charset;
    const char *code = back_request_decide(&s->request);
    if (code) {
        mysql_session_refuse(s, code, "the policy does not allow it");
        return 0;
    }
    struct secret_wait *w =
        secret_client_get(of->back->secrets, s->request.rule->credential->secret, on_secret, s);
    if (w)
        s->secret = w;
    return 0;
}
