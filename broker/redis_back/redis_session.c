/* A session of a front's: decided anew, recorded, connected, and recorded at its end. */
#include "redis_back.h"

#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- records ---- */

static void put_session(void *arg, struct record *r)
{
    const struct redis_session *s = arg;
    record_put_str(r, RF_METHOD, "connect");
    record_put_str(r, RF_PATH, "/");
    record_put_str(r, RF_USER, s->user);
}

/* "get:12 hset:1": names of the table, and how often. */
static void put_commands(void *arg, struct record *r)
{
    const struct redis_session *s = arg;
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

static void session_free(struct redis_session *s, const char *code)
{
    secret_client_cancel(s->login);
    secret_client_sign_cancel(s->proof);
    back_request_free(&s->request, code);
    back_link_end(&s->link);
    resp_commands_free(&s->commands);
    broker_stream_free(s->stream);
    if (s->clock)
        event_free(s->clock);
    buf_free(&s->down);
    LIST_REMOVE(s, entry);
    free(s);
}

void redis_session_end(struct redis_session *s, enum record_kind kind, const char *code,
                       const char *detail)
{
    back_request_end(&s->request, kind, code, s->link.address, detail);
    session_free(s, code);
}

void redis_session_refuse(struct redis_session *s, const char *code, const char *text)
{
    broker_stream_refuse(s->stream, code, text);
    redis_session_end(s, RECORD_ABORTED, code, text);
}

bool redis_session_without_login(const struct redis_session *s)
{
    return s->request.rule->credential->kind == CREDENTIAL_CERTIFICATE;
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

static void on_admitted(void *arg, const char *code, const char *text)
{
    struct redis_session *s = arg;
    char id[48];
    if (code) {
        redis_session_refuse(s, code, text);
        return;
    }
    s->state = SESSION_LINKING;
    back_request_id(&s->request, id, sizeof id);
    back_link_begin(&s->link, s->of->back, &s->request.at, s->request.sandbox, id,
                    rule_certificate(s->request.rule), s->request.rule->redis->tls, SLICE(""),
                    REDIS_WRITTEN_MAX, on_linked, s);
}

static int show(void *arg UNUSED, const char **verb, struct buf *path)
{
    *verb = "connect";
    return buf_append_str(path, "/");
}

static void decide(void *arg, const struct policy *p, struct decision *ret)
{
    const struct redis_session *s = arg;
    policy_redis_decide(p, &s->request.at, ret);
}

static const struct back_request_ops request_ops = {.put = put_session,
                                                    .put_end = put_commands,
                                                    .show = show,
                                                    .decide = decide,
                                                    .admitted = on_admitted,
                                                    .up = redis_carry_up,
                                                    .more = redis_carry_more,
                                                    .spent = redis_carry_spent};

/* "redis NAME": the vault says of a login as whom it is, and no more. Whom a certificate alone is
 * to the server, the server knows. */
static void on_login(void *arg, struct secret *value, const struct err *err)
{
    struct redis_session *s = arg;
    s->login = NULL;
    if (value && redis_session_without_login(s)) {
        s->state = SESSION_ADMITTING;
        back_request_admit(&s->request); /* it may be gone */
        return;
    }
    struct slice name = secret_client_login_name(value, REDIS_USER_MAX);
    if (name.n == 0) {
        redis_session_refuse(s, "secret_unavailable", err ? err->text : "it is not a login");
        return;
    }
    memcpy(s->user, name.p, name.n);
    s->state = SESSION_ADMITTING;
    back_request_admit(&s->request); /* it may be gone */
}

/* ---- from the front ---- */

/* Takes the stream. NULL: no room. */
static struct redis_session *session_new(struct redis_back *of, const struct back_asked *asked)
{
    struct redis_session *s = calloc(1, sizeof *s);
    if (s == NULL) {
        close(asked->fd);
        return NULL;
    }
    if (back_request_begin(&s->request, of->back, asked, &redis_carry_ops, &request_ops, s) < 0) {
        free(s);
        return NULL;
    }
    s->of = of;
    s->stream = s->request.stream;
    resp_commands_init(&s->commands);
    buf_init_wiped(&s->down, REDIS_DOWN_MAX);
    LIST_INSERT_HEAD(&of->sessions, s, entry);
    return s;
}

void redis_sessions_again(struct redis_back *of)
{
    struct redis_session *s = LIST_FIRST(&of->sessions), *next;
    for (; s; s = next) {
        next = LIST_NEXT(s, entry);
        if (!back_request_goes_on(&s->request))
            redis_carry_stop(s, "policy_changed",
                             "the policy was changed, and this session is over");
    }
}

int redis_session_new(struct redis_back *of, const struct back_asked *asked)
{
    if (asked->facts.n > 0)
        return -1;
    struct redis_session *s = session_new(of, asked);
    if (s == NULL)
        return 0;
    const char *code = back_request_decide(&s->request);
    if (code) {
        redis_session_refuse(s, code, "the policy does not allow it");
        return 0;
    }
    struct secret_wait *w =
        secret_client_get(of->back->secrets, s->request.rule->credential->secret, on_login, s);
    if (w)
        s->login = w;
    return 0;
}
