/* A session of a front's: decided anew, recorded, connected, and recorded at its end. */
#include "redis_back.h"

#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- records ---- */

static void put_session(const struct redis_session *s, struct record *r)
{
    char text[HOST_TEXT_MAX + 16];
    record_put_str(r, RF_SCHEME, scheme_name(s->at.scheme));
    record_put_str(r, RF_AUTHORITY, authority_text(&s->at, text, sizeof text));
    record_put_str(r, RF_METHOD, "connect");
    record_put_str(r, RF_PATH, "/");
    record_put_str(r, RF_USER, s->user);
    record_put_str(r, RF_ENTRY, "transparent");
    record_put_str(r, RF_RULE, s->rule ? s->rule->text : "");
    record_put_str(r, RF_SANDBOX, s->sandbox);
    if (s->rule && s->rule->credential)
        record_put_str(r, RF_CREDENTIAL, s->rule->credential->secret);
}

/* "get:12 hset:1": names of the table, and how often. */
static void put_commands(const struct redis_session *s, struct record *r)
{
    struct buf b;
    buf_init(&b, RECORD_FIELD_MAX);
    for (size_t i = 0; i < s->n_names; i++)
        if (buf_printf(&b, "%s%s:%llu", i ? " " : "", s->names[i].command->name,
                       (unsigned long long)s->names[i].n) < 0)
            break;
    record_put(r, RF_STATEMENTS, buf_slice(&b));
    record_put_u64(r, RF_COUNT, s->n_commands);
    buf_free(&b);
}

static void end_record(struct redis_session *s, enum record_kind kind, const char *code,
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
    put_commands(s, &r);
    record_put_str(&r, RF_ADDRESS, s->link.address);
    record_put_str(&r, RF_DETAIL, detail);
    journal_note(s->of->back->journal, &r);
}

static void session_free(struct redis_session *s, const char *code)
{
    secret_client_cancel(s->login);
    secret_client_sign_cancel(s->proof);
    journal_cancel(s->wait, code);
    back_link_end(&s->link);
    resp_commands_free(&s->commands);
    redis_scrub_end(&s->scrub);
    broker_stream_free(s->stream);
    if (s->clock)
        event_free(s->clock);
    policy_free(s->policy);
    buf_free(&s->up);
    buf_free(&s->down);
    LIST_REMOVE(s, entry);
    s->of->n_sessions--;
    free(s);
}

void redis_session_end(struct redis_session *s, enum record_kind kind, const char *code,
                       const char *detail)
{
    end_record(s, kind, code, detail);
    session_free(s, code);
}

void redis_session_refuse(struct redis_session *s, const char *code, const char *text)
{
    struct buf b;
    buf_init(&b, 1024);
    if (buf_append(&b, code, strlen(code) + 1) == 0 && buf_printf(&b, "%.600s", text) == 0)
        (void)broker_stream_send(s->stream, BROKER_REFUSED, buf_slice(&b));
    buf_free(&b);
    redis_session_end(s, RECORD_ABORTED, code, text);
}

/* A front that asks for what it may not: this is the last word. */
static void deny(struct redis_session *s, const char *code)
{
    struct record r;
    record_init(&r, RECORD_DENIED, 0);
    put_session(s, &r);
    record_put_str(&r, RF_CODE, code);
    journal_note(s->of->back->journal, &r);
    redis_session_refuse(s, code, "the policy does not allow it");
}

/* ---- steps towards the server ---- */

static void on_linked(void *arg, const char *code, const char *detail)
{
    struct redis_session *s = arg;
    if (code)
        redis_session_refuse(s, code, detail);
    else
        redis_carry_begin(s);
}

static void on_recorded(void *arg, bool ok)
{
    struct redis_session *s = arg;
    char id[48];
    s->wait = NULL;
    if (!ok) {
        redis_session_refuse(s, "audit_unwritable", "it could not be recorded");
        return;
    }
    s->admitted = true;
    s->state = SESSION_LINKING;
    journal_id(s->of->back->journal, s->counter, id, sizeof id);
    back_link_begin(&s->link, s->of->back, &s->at, s->sandbox, id, s->rule->redis->tls, SLICE(""),
                    REDIS_COMMAND_MAX, on_linked, s);
}

static void record_begin(struct redis_session *s)
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

/* "redis NAME": the vault says of a login as whom it is, and no more. */
static void on_login(void *arg, struct secret *value, const struct err *err)
{
    struct redis_session *s = arg;
    s->login = NULL;
    struct slice told = value ? secret_slice(value) : SLICE("");
    ssize_t blank = slice_find(told, ' ');
    size_t n = blank < 0 ? 0 : told.n - (size_t)blank - 1;
    if (n == 0 || n > REDIS_USER_MAX) {
        redis_session_refuse(s, "secret_unavailable", err ? err->text : "it is no login");
        return;
    }
    memcpy(s->user, told.p + blank + 1, n);
    record_begin(s);
}

/* ---- from the front ---- */

static size_t sessions_of(const struct redis_back *of, const char *sandbox)
{
    const struct redis_session *s;
    size_t n = 0;
    LIST_FOREACH(s, &of->sessions, entry)
    n += strcmp(s->sandbox, sandbox) == 0;
    return n;
}

/* Takes the stream. NULL: no room. */
static struct redis_session *session_new(struct redis_back *of, const struct back_asked *asked)
{
    struct redis_session *s = of->n_sessions < REDIS_SESSIONS_MAX &&
                                      sessions_of(of, asked->sandbox) < REDIS_SESSIONS_OF_ONE
                                  ? calloc(1, sizeof *s)
                                  : NULL;
    if (s == NULL) {
        close(asked->fd);
        return NULL;
    }
    s->stream = broker_stream_new(of->back->base, asked->fd, &redis_carry_ops, s);
    if (s->stream == NULL) {
        free(s);
        return NULL;
    }
    s->of = of;
    s->at = asked->at;
    s->policy = policy_ref(of->back->policy);
    snprintf(s->sandbox, sizeof s->sandbox, "%s", asked->sandbox);
    resp_commands_init(&s->commands);
    buf_init_wiped(&s->up, REDIS_COMMAND_MAX);
    buf_init_wiped(&s->down, REDIS_DOWN_MAX);
    LIST_INSERT_HEAD(&of->sessions, s, entry);
    of->n_sessions++;
    return s;
}

void redis_sessions_again(struct redis_back *of)
{
    struct redis_session *s = LIST_FIRST(&of->sessions), *next;
    for (; s; s = next) {
        struct decision d;
        next = LIST_NEXT(s, entry);
        policy_redis_decide(of->back->policy, &s->at, &d);
        if (!back_goes_on(s->rule, &d))
            redis_carry_stop(s, "policy_changed",
                             "the policy was changed, and this session is over");
    }
}

int redis_session_new(struct redis_back *of, const struct back_asked *asked)
{
    struct decision d;
    if (asked->facts.n > 0)
        return -1;
    struct redis_session *s = session_new(of, asked);
    if (s == NULL)
        return 0;
    policy_redis_decide(s->policy, &s->at, &d);
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
