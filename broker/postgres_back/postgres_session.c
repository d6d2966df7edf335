/* A session of a front's: decided anew, recorded, connected, and recorded at its end. */
#include "postgres_back.h"

#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- records ---- */

static void put_session(void *arg, struct record *r)
{
    const struct postgres_session *s = arg;
    char path[POSTGRES_NAME_MAX + 2];
    snprintf(path, sizeof path, "/%s", s->database);
    record_put_str(r, RF_METHOD, "connect");
    record_put_str(r, RF_PATH, path);
    record_put_str(r, RF_USER, s->user);
}

/* "6ef1…:12 81d1…:1": which statements, how often; the front says them. */
static void put_statements(void *arg, struct record *r)
{
    const struct postgres_session *s = arg;
    struct buf b;
    buf_init(&b, RECORD_FIELD_MAX);
    for (size_t i = 0; i < s->n_prints; i++)
        if (buf_printf(&b, "%s%.*s:%llu", i ? " " : "", POSTGRES_PRINT, s->prints[i].text,
                       (unsigned long long)s->prints[i].n) < 0)
            break;
    record_put(r, RF_STATEMENTS, buf_slice(&b));
    record_put_u64(r, RF_COUNT, s->n_statements);
    buf_free(&b);
}

static void session_free(struct postgres_session *s, const char *code)
{
    secret_client_cancel(s->login);
    secret_client_sign_cancel(s->proof);
    back_request_free(&s->request, code);
    postgres_carry_done(s);
    back_link_end(&s->link);
    postgres_reader_free(&s->reader);
    postgres_auth_free(&s->auth);
    broker_stream_free(s->stream);
    if (s->clock)
        event_free(s->clock);
    buf_free(&s->settings);
    buf_free(&s->down);
    LIST_REMOVE(s, entry);
    free(s);
}

void postgres_session_end(struct postgres_session *s, enum record_kind kind, const char *code,
                          const char *detail)
{
    back_request_end(&s->request, kind, code, s->link.address, detail);
    session_free(s, code);
}

void postgres_session_refuse(struct postgres_session *s, const char *code, const char *text)
{
    broker_stream_refuse(s->stream, code, text);
    postgres_session_end(s, RECORD_ABORTED, code, text);
}

bool postgres_session_without_login(const struct postgres_session *s)
{
    return s->request.rule->credential->kind == CREDENTIAL_CERTIFICATE;
}

/* ---- steps towards the server ---- */

static void on_linked(void *arg, const char *code, const char *detail)
{
    struct postgres_session *s = arg;
    if (code) {
        postgres_session_refuse(s, code, detail);
        return;
    }
    io_deadline(s->link.io, POSTGRES_LOGIN_SECONDS);
    io_callback(s->link.io, postgres_carry_io, s);
    s->state = SESSION_AUTHENTICATING;
    (void)postgres_login_begin(s);
}

static void on_admitted(void *arg, const char *code, const char *text)
{
    struct postgres_session *s = arg;
    char id[48];
    if (code) {
        postgres_session_refuse(s, code, text);
        return;
    }
    s->state = SESSION_LINKING;
    back_request_id(&s->request, id, sizeof id);
    back_link_begin(&s->link, s->of->back, &s->request.at, s->request.sandbox, id,
                    rule_certificate(s->request.rule), true, POSTGRES_ASK, 0, on_linked, s);
}

static int show(void *arg, const char **verb, struct buf *path)
{
    const struct postgres_session *s = arg;
    *verb = "connect";
    return buf_printf(path, "/%s", s->database);
}

static void decide(void *arg, const struct policy *p, struct decision *ret)
{
    const struct postgres_session *s = arg;
    policy_postgres_decide(p, &s->request.at, slice_str(s->database), ret);
}

static const struct back_request_ops request_ops = {.put = put_session,
                                                    .put_end = put_statements,
                                                    .show = show,
                                                    .decide = decide,
                                                    .admitted = on_admitted,
                                                    .up = postgres_carry_up,
                                                    .more = postgres_carry_more,
                                                    .spent = postgres_carry_spent};

/* A certificate logs in as its rule says, or as whom it names. */
static int take_certificate_user(struct postgres_session *s, struct slice told)
{
    const char *user = s->request.rule->postgres->user;
    if (user == NULL)
        return back_certificate_user(told, s->user, sizeof s->user);
    snprintf(s->user, sizeof s->user, "%s", user);
    return 0;
}

/* NULL, or why there is nobody to log in as. "scram-sha-256 NAME": the vault says of a login as
 * whom it is, and no more; of a certificate it tells all but the key. */
static const char *take_user(struct postgres_session *s, const struct secret *value)
{
    if (postgres_session_without_login(s))
        return take_certificate_user(s, secret_slice(value)) == 0
                   ? NULL
                   : "its certificate names nobody: say 'user' in the rule";
    struct slice name = secret_client_login_name(value, POSTGRES_NAME_MAX);
    if (name.n == 0)
        return "it is not a login";
    memcpy(s->user, name.p, name.n);
    return NULL;
}

static void on_login(void *arg, struct secret *value, const struct err *err)
{
    struct postgres_session *s = arg;
    s->login = NULL;
    const char *why = value ? take_user(s, value) : err ? err->text : "it is not a login";
    if (why) {
        postgres_session_refuse(s, "secret_unavailable", why);
        return;
    }
    s->state = SESSION_ADMITTING;
    back_request_admit(&s->request); /* it may be gone */
}

/* ---- from the front ---- */

/* Takes the stream. NULL: no room. */
static struct postgres_session *session_new(struct postgres_back *of,
                                            const struct back_asked *asked)
{
    struct postgres_session *s = calloc(1, sizeof *s);
    if (s == NULL) {
        close(asked->fd);
        return NULL;
    }
    if (back_request_begin(&s->request, of->back, asked, &postgres_carry_ops, &request_ops, s) <
        0) {
        free(s);
        return NULL;
    }
    s->of = of;
    s->stream = s->request.stream;
    buf_init(&s->settings, POSTGRES_STARTUP_MAX);
    buf_init_wiped(&s->down, POSTGRES_DOWN_MAX);
    postgres_reader_init(&s->reader, POSTGRES_SERVER, POSTGRES_LOGIN);
    LIST_INSERT_HEAD(&of->sessions, s, entry);
    return s;
}

/* What a front may say of a session: a database, and settings that decide nothing. */
static bool facts_ok(const struct postgres_startup *facts)
{
    if (facts->code != POSTGRES_PROTOCOL_3 || facts->extensions || facts->user.p ||
        facts->database.p == NULL || facts->database.n > POSTGRES_NAME_MAX)
        return false;
    for (size_t i = 0; i < facts->n; i++)
        if (postgres_setting_kind(facts->settings[i].name) != POSTGRES_SETTING_FREE ||
            slice_ieq_str(facts->settings[i].name, "options"))
            return false;
    return true;
}

void postgres_sessions_again(struct postgres_back *of)
{
    struct postgres_session *s = LIST_FIRST(&of->sessions), *next;
    for (; s; s = next) {
        next = LIST_NEXT(s, entry);
        if (!back_request_goes_on(&s->request))
            postgres_carry_stop(s, "policy_changed", "57P01",
                                "the policy was changed, and this session is over");
    }
}

int postgres_session_new(struct postgres_back *of, const struct back_asked *asked)
{
    struct postgres_startup facts;
    if (postgres_startup_read(asked->facts, &facts, NULL) < 0 || !facts_ok(&facts))
        return -1;
    struct postgres_session *s = session_new(of, asked);
    if (s == NULL)
        return 0;
    memcpy(s->database, facts.database.p, facts.database.n);
    for (size_t i = 0; i < facts.n; i++)
        if (postgres_startup_put(&s->settings, facts.settings[i].name, facts.settings[i].value) <
            0) {
            postgres_session_refuse(s, "memory", "");
            return 0;
        }
    const char *code = back_request_decide(&s->request);
    if (code) {
        postgres_session_refuse(s, code, "the policy does not allow it");
        return 0;
    }
    struct secret_wait *w =
        secret_client_get(of->back->secrets, s->request.rule->credential->secret, on_login, s);
    if (w)
        s->login = w;
    return 0;
}
