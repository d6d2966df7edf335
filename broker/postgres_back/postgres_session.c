/* A session of a front's: decided anew, recorded, connected, and recorded at its end. */
#include "postgres_back.h"

#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- records ---- */

static void put_session(const struct postgres_session *s, struct record *r)
{
    char text[HOST_TEXT_MAX + 16], path[POSTGRES_NAME_MAX + 2];
    snprintf(path, sizeof path, "/%s", s->database);
    record_put_str(r, RF_SCHEME, scheme_name(s->at.scheme));
    record_put_str(r, RF_AUTHORITY, authority_text(&s->at, text, sizeof text));
    record_put_str(r, RF_METHOD, "connect");
    record_put_str(r, RF_PATH, path);
    record_put_str(r, RF_USER, s->user);
    record_put_str(r, RF_ENTRY, "transparent");
    record_put_str(r, RF_RULE, s->rule ? s->rule->text : "");
    record_put_str(r, RF_SANDBOX, s->sandbox);
    if (s->rule && s->rule->credential)
        record_put_str(r, RF_CREDENTIAL, s->rule->credential->secret);
}

/* "6ef1…:12 81d1…:1": which statements, how often; the front says them. */
static void put_statements(const struct postgres_session *s, struct record *r)
{
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

static void end_record(struct postgres_session *s, enum record_kind kind, const char *code,
                       const char *detail)
{
    struct timespec now;
    struct record r;
    if (!s->admitted)
        return;
    s->admitted = false;
    clock_gettime(CLOCK_MONOTONIC, &now);
    record_init(&r, kind, s->counter);
    record_put_str(&r, RF_CODE, code);
    record_put_u64(&r, RF_UP, s->n_up);
    record_put_u64(&r, RF_DOWN, s->n_down);
    record_put_u64(&r, RF_MS,
                   (uint64_t)((now.tv_sec - s->begun.tv_sec) * 1000 +
                              (now.tv_nsec - s->begun.tv_nsec) / 1000000));
    put_statements(s, &r);
    record_put_str(&r, RF_ADDRESS, s->link.address);
    record_put_str(&r, RF_DETAIL, detail);
    journal_note(s->of->back->journal, &r);
}

static void session_free(struct postgres_session *s, const char *code)
{
    secret_client_cancel(s->login);
    secret_client_sign_cancel(s->proof);
    journal_cancel(s->wait, code);
    postgres_carry_done(s);
    back_link_end(&s->link);
    postgres_reader_free(&s->reader);
    scram_free(&s->scram);
    broker_stream_free(s->stream);
    if (s->clock)
        event_free(s->clock);
    policy_free(s->policy);
    buf_free(&s->settings);
    buf_free(&s->down);
    LIST_REMOVE(s, entry);
    s->of->n_sessions--;
    free(s);
}

void postgres_session_end(struct postgres_session *s, enum record_kind kind, const char *code,
                          const char *detail)
{
    end_record(s, kind, code, detail);
    session_free(s, code);
}

void postgres_session_refuse(struct postgres_session *s, const char *code, const char *text)
{
    struct buf b;
    buf_init(&b, 1024);
    if (buf_append(&b, code, strlen(code) + 1) == 0 && buf_printf(&b, "%.600s", text) == 0)
        (void)broker_stream_send(s->stream, BROKER_REFUSED, buf_slice(&b));
    buf_free(&b);
    postgres_session_end(s, RECORD_ABORTED, code, text);
}

/* A front that asks for what it may not: this is the last word. */
static void deny(struct postgres_session *s, const char *code)
{
    struct record r;
    record_init(&r, RECORD_DENIED, 0);
    put_session(s, &r);
    record_put_str(&r, RF_CODE, code);
    journal_note(s->of->back->journal, &r);
    postgres_session_refuse(s, code, "the policy does not allow it");
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

static void on_recorded(void *arg, bool ok)
{
    struct postgres_session *s = arg;
    char id[48];
    s->wait = NULL;
    if (!ok) {
        postgres_session_refuse(s, "audit_unwritable", "it could not be recorded");
        return;
    }
    s->admitted = true;
    s->state = SESSION_LINKING;
    journal_id(s->of->back->journal, s->counter, id, sizeof id);
    back_link_begin(&s->link, s->of->back, &s->at, s->sandbox, id, true, POSTGRES_ASK, 0, on_linked,
                    s);
}

static void record_begin(struct postgres_session *s)
{
    struct record r;
    struct journal *j = s->of->back->journal;
    s->state = SESSION_RECORDING;
    s->counter = journal_next(j);
    clock_gettime(CLOCK_MONOTONIC, &s->begun);
    record_init(&r, RECORD_ADMITTED, s->counter);
    put_session(s, &r);
    record_put_str(&r, RF_CODE, "ok");
    struct journal_wait *w = journal_append(j, &r, on_recorded, s);
    if (w)
        s->wait = w;
}

/* "scram-sha-256 NAME": the vault says of a login as whom it is, and no more. */
static void on_login(void *arg, struct secret *value, const struct err *err)
{
    struct postgres_session *s = arg;
    s->login = NULL;
    struct slice told = value ? secret_slice(value) : SLICE("");
    ssize_t blank = slice_find(told, ' ');
    size_t n = blank < 0 ? 0 : told.n - (size_t)blank - 1;
    if (n == 0 || n > POSTGRES_NAME_MAX) {
        postgres_session_refuse(s, "secret_unavailable", err ? err->text : "it is no login");
        return;
    }
    memcpy(s->user, told.p + blank + 1, n);
    record_begin(s);
}

/* ---- from the front ---- */

static size_t sessions_of(const struct postgres_back *of, const char *sandbox)
{
    const struct postgres_session *s;
    size_t n = 0;
    LIST_FOREACH(s, &of->sessions, entry)
    n += strcmp(s->sandbox, sandbox) == 0;
    return n;
}

/* Takes the stream. NULL: no room. */
static struct postgres_session *session_new(struct postgres_back *of,
                                            const struct back_asked *asked)
{
    struct postgres_session *s = of->n_sessions < POSTGRES_SESSIONS_MAX &&
                                         sessions_of(of, asked->sandbox) < POSTGRES_SESSIONS_OF_ONE
                                     ? calloc(1, sizeof *s)
                                     : NULL;
    if (s == NULL) {
        close(asked->fd);
        return NULL;
    }
    s->stream = broker_stream_new(of->back->base, asked->fd, &postgres_carry_ops, s);
    if (s->stream == NULL) {
        free(s);
        return NULL;
    }
    s->of = of;
    s->at = asked->at;
    s->policy = policy_ref(of->back->policy);
    snprintf(s->sandbox, sizeof s->sandbox, "%s", asked->sandbox);
    buf_init(&s->settings, POSTGRES_STARTUP_MAX);
    buf_init_wiped(&s->down, POSTGRES_DOWN_MAX);
    postgres_reader_init(&s->reader, POSTGRES_SERVER, POSTGRES_LOGIN);
    LIST_INSERT_HEAD(&of->sessions, s, entry);
    of->n_sessions++;
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
        struct decision d;
        next = LIST_NEXT(s, entry);
        policy_postgres_decide(of->back->policy, &s->at, slice_str(s->database), &d);
        if (!back_goes_on(s->rule, &d))
            postgres_carry_stop(s, "policy_changed", "57P01",
                                "the policy was changed, and this session is over");
    }
}

int postgres_session_new(struct postgres_back *of, const struct back_asked *asked)
{
    struct postgres_startup facts;
    struct decision d;
    if (postgres_startup_read(asked->facts, &facts, NULL) < 0 || !facts_ok(&facts))
        return -1;
    struct postgres_session *s = session_new(of, asked);
    if (s == NULL)
        return 0;
    memcpy(s->database, facts.database.p, facts.database.n);
    for (size_t i = 0; i < facts.n; i++)
        if (postgres_startup_put(&s->settings, facts.settings[i].name, facts.settings[i].value) <
            0) {
            deny(s, "postgres_settings");
            return 0;
        }
    policy_postgres_decide(s->policy, &s->at, facts.database, &d);
    s->rule = d.rule;
    if (d.verdict != VERDICT_ALLOW) {
        deny(s, d.code);
        return 0;
    }
    struct secret_wait *w =
        secret_client_get(of->back->secrets, d.rule->credential->secret, on_login, s);
    if (w)
        s->login = w;
    return 0;
}
