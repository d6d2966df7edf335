/* Registers a client, makes the URL that asks the user, reads what comes back, and asks for tokens.
 */
#include "login_flow.h"

#include <openssl/crypto.h>
#include <openssl/rand.h>
#include <openssl/sha.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base64.h"
#include "secret.h"

static int random_text(char to[LOGIN_RANDOM])
{
    unsigned char raw[32];
    struct buf b;
    buf_init_wiped(&b, 64);
    int r = RAND_bytes(raw, sizeof raw) == 1 &&
                    base64url_append(&b, (struct slice){(char *)raw, sizeof raw}) == 0
                ? 0
                : -1;
    if (r == 0)
        snprintf(to, LOGIN_RANDOM, "%.*s", SL(buf_slice(&b)));
    buf_free(&b);
    explicit_bzero(raw, sizeof raw);
    return r;
}

int login_attempt_begin(struct login_attempt *a, unsigned port, struct err *err)
{
    snprintf(a->redirect, sizeof a->redirect, "http://127.0.0.1:%u/callback", port);
    return random_text(a->state) < 0 || random_text(a->verifier) < 0
               ? err_set(err, ERR_INTERNAL, "no random bytes")
               : 0;
}

static bool printable(const char *s, size_t most)
{
    size_t n = strlen(s);
    for (size_t i = 0; i < n; i++)
        if (s[i] < 0x20 || s[i] >= 0x7f)
            return false;
    return n > 0 && n <= most;
}

/* An error code of theirs, where it is one (RFC 6749, 5.2): no text of a stranger is shown. */
static int refused(const char *who, unsigned status, const json_t *v, struct err *err)
{
    const char *word = json_string_value(json_object_get(v, "error"));
    size_t n = word ? strlen(word) : 0;
    bool plain = n > 0 && n <= 40 && strspn(word, "abcdefghijklmnopqrstuvwxyz_") == n;
    return err_set(err, ERR_DENIED, "%s answered %u%s%s", who, status, plain ? " " : "",
                   plain ? word : "");
}

/* ---- who we are ---- */

static enum login_auth first_auth(const struct login_server *s, bool secret)
{
    for (unsigned i = secret ? LOGIN_AUTH_POST : LOGIN_AUTH_NONE; i <= LOGIN_AUTH_BASIC; i++)
        if (s->auths & (1u << i))
            return (enum login_auth)i;
    return 0;
}

int login_client_known(const struct login_server *s, struct login_client *c, struct err *err)
{
    c->auth = c->secret[0] ? first_auth(s, true) : LOGIN_AUTH_NONE;
    return c->auth ? 0
                   : err_set(err, ERR_UPSTREAM,
                             "the token endpoint takes the client's secret in no way that is known "
                             "here (client_secret_post, client_secret_basic)");
}

static bool has_redirect(const json_t *v, const char *redirect)
{
    const json_t *list = json_object_get(v, "redirect_uris"), *one;
    size_t i;
    bool has = list == NULL;
    json_array_foreach(list, i, one) has =
        has || (json_is_string(one) && strcmp(json_string_value(one), redirect) == 0);
    return has;
}

int login_take_client(const struct login_server *s, const struct login_attempt *a, const json_t *v,
                      struct login_client *c, struct err *err)
{
    const char *id = json_string_value(json_object_get(v, "client_id"));
    const char *secret = json_string_value(json_object_get(v, "client_secret"));
    const char *auth = json_string_value(json_object_get(v, "token_endpoint_auth_method"));
    if (id == NULL || !printable(id, LOGIN_CLIENT_MAX) ||
        (secret && *secret && !printable(secret, LOGIN_CLIENT_MAX)))
        return err_set(err, ERR_UPSTREAM, "the registration gave no client that can be used");
    if (!has_redirect(v, a->redirect))
        return err_set(err, ERR_DENIED,
                       "the registration has another redirect than this machine's loopback");
    snprintf(c->id, sizeof c->id, "%s", id);
    snprintf(c->secret, sizeof c->secret, "%s", secret ? secret : "");
    if (auth == NULL)
        return login_client_known(s, c, err);
    c->auth = login_auth_read(auth);
    if (c->auth == 0 || (c->auth != LOGIN_AUTH_NONE && c->secret[0] == 0))
        return err_set(err, ERR_UPSTREAM,
                       "the registration wants a client to prove itself in a "
                       "way that is not known here");
    return 0;
}

int login_register(struct login_net *n, const struct login_server *s, const struct login_attempt *a,
                   struct login_client *c, struct err *err)
{
    enum login_auth auth = first_auth(s, false);
    struct login_answer answer;
    if (!s->registers)
        return err_set(err, ERR_UNREADY,
                       "%s registers no clients by itself: register one there, with the redirect "
                       "http://127.0.0.1:PORT/callback, and say --client-id ID --port PORT",
                       s->issuer);
    if (auth == 0)
        return login_client_known(s, c, err);
    json_t *v = json_pack("{s:s, s:[s], s:[s, s], s:[s], s:s, s:s}", "client_name", "Durward",
                          "redirect_uris", a->redirect, "grant_types", "authorization_code",
                          "refresh_token", "response_types", "code", "token_endpoint_auth_method",
                          login_auth_name(auth), "application_type", "native");
    if (v && s->scope[0])
        json_object_set_new(v, "scope", json_string(s->scope));
    char *body = v ? json_dumps(v, JSON_COMPACT) : NULL;
    json_decref(v);
    if (body == NULL)
        return err_set(err, ERR_INTERNAL, "out of memory");
    struct login_ask q = {.method = "POST",
                          .at = &s->registration,
                          .type = "application/json",
                          .body = slice_str(body)};
    int r = login_http(n, &q, &answer, err);
    free(body);
    if (r == 0)
        r = answer.status / 100 == 2 ? login_take_client(s, a, answer.json, c, err)
                                     : refused("the registration", answer.status, answer.json, err);
    login_answer_done(&answer);
    return r;
}

/* ---- asking the user ---- */

static int put_challenge(struct buf *to, const char *verifier)
{
    unsigned char hash[SHA256_DIGEST_LENGTH];
    struct buf text;
    buf_init(&text, 64);
    SHA256((const unsigned char *)verifier, strlen(verifier), hash);
    int bad = base64url_append(&text, (struct slice){(char *)hash, sizeof hash}) |
              login_form(to, "code_challenge", buf_slice(&text)) |
              login_form(to, "code_challenge_method", SLICE("S256"));
    buf_free(&text);
    return bad;
}

int login_ask_url(const struct login_server *s, const struct login_client *c,
                  const struct login_attempt *a, struct buf *to, struct err *err)
{
    struct buf query;
    buf_init(&query, 16 * 1024);
    int bad = login_form(&query, "response_type", SLICE("code")) |
              login_form(&query, "client_id", slice_str(c->id)) |
              login_form(&query, "redirect_uri", slice_str(a->redirect)) |
              login_form(&query, "state", slice_str(a->state)) |
              put_challenge(&query, a->verifier) |
              login_form(&query, "resource", slice_str(s->resource.text));
    if (s->scope[0])
        bad |= login_form(&query, "scope", slice_str(s->scope));
    bad |= buf_append_str(to, s->authorize.text) |
           buf_append_str(to, strchr(s->authorize.text, '?') ? "&" : "?") |
           buf_append_slice(to, buf_slice(&query));
    buf_free(&query);
    return bad ? err_set(err, ERR_LIMIT, "the URL of the login is too long") : 0;
}

int login_take_answer(const struct login_server *s, const struct login_attempt *a,
                      struct slice query, char code[LOGIN_CODE_MAX + 1], struct err *err)
{
    char state[LOGIN_RANDOM + 1], issuer[LOGIN_URL_MAX + 1], error[64];
    size_t n = strlen(a->state);
    if (login_query(query, "state", state, sizeof state) != 1 || strlen(state) != n ||
        CRYPTO_memcmp(state, a->state, n) != 0)
        return 0;
    int who = login_query(query, "iss", issuer, sizeof issuer);
    if (who < 0 || (who == 0 && s->says_issuer) || (who == 1 && !login_url_same(issuer, s->issuer)))
        return err_set(err, ERR_DENIED,
                       "the answer came from another authorization server than the one that was "
                       "asked (RFC 9207)");
    if (who == 0 && !s->one_origin && !s->chosen)
        return err_set(
            err, ERR_DENIED,
            "the code would go to another host, %s, than the one that was agreed at, and "
            "the answer does not say who gave it (RFC 9700, 4.4). Where both are the "
            "authorization server's, say so with --issuer %s",
            s->token.text, s->issuer);
    int failed = login_query(query, "error", error, sizeof error);
    if (failed != 0) {
        bool plain = failed == 1 && strspn(error, "abcdefghijklmnopqrstuvwxyz_") == strlen(error);
        return err_set(err, ERR_DENIED, "the authorization server refused%s%s", plain ? ": " : "",
                       plain ? error : "");
    }
    if (login_query(query, "code", code, LOGIN_CODE_MAX + 1) != 1 || code[0] == 0)
        return err_set(err, ERR_UPSTREAM, "the authorization server's answer has no code");
    return 1;
}

/* ---- tokens ---- */

static bool is_token(const json_t *v)
{
    const char *s = json_string_value(v);
    size_t n = json_string_length(v);
    for (size_t i = 0; i < n; i++)
        if (s[i] <= 0x20 || s[i] >= 0x7f)
            return false;
    return s && n > 0 && n <= SECRET_MAX / 4;
}

enum { LIFE_MOST = 1000000000 };

int64_t login_life(const json_t *tokens)
{
    const json_t *life = json_object_get(tokens, "expires_in");
    const char *text = json_string_value(life);
    double number = json_number_value(life);
    uint64_t n;
    if (life == NULL || json_is_null(life))
        return 0;
    if (text)
        return slice_u64(slice_str(text), LIFE_MOST, &n) == 0 && n > 0 ? (int64_t)n : -1;
    return json_is_number(life) && number >= 1 && number <= LIFE_MOST ? (int64_t)number : -1;
}

int login_take_tokens(const json_t *v, struct err *err)
{
    const char *type = json_string_value(json_object_get(v, "token_type"));
    const json_t *refresh = json_object_get(v, "refresh_token");
    if (type == NULL || !slice_ieq_str(slice_str(type), "bearer") || login_life(v) < 0 ||
        !is_token(json_object_get(v, "access_token")) ||
        (refresh && !json_is_null(refresh) && !is_token(refresh)))
        return err_set(err, ERR_UPSTREAM,
                       "the token endpoint gave no bearer token that can be "
                       "used");
    return 0;
}

/* RFC 6749, 2.3.1: both parts form-encoded, then Basic. */
static char *basic(const struct login_client *c)
{
    struct buf pair, text;
    buf_init_wiped(&pair, 8 * LOGIN_CLIENT_MAX);
    buf_init_wiped(&text, 16 * LOGIN_CLIENT_MAX);
    int bad = login_form(&pair, "", slice_str(c->id));
    size_t colon = buf_len(&pair);
    bad |= login_form(&pair, "", slice_str(c->secret));
    struct slice both = buf_slice(&pair);
    char *p = (char *)buf_data(&pair);
    if (!bad) { /* "=ID&=SECRET" */
        p[colon] = ':';
        memmove(p + colon + 1, p + colon + 2, both.n - colon - 2);
        both = (struct slice){p + 1, both.n - 2};
        bad = buf_append_str(&text, "Basic ") | base64_append(&text, both);
    }
    char *ret = bad ? NULL : slice_dup(buf_slice(&text));
    buf_free(&pair);
    buf_free(&text);
    return ret;
}

static int put_code(const struct login_server *s, const struct login_client *c,
                    const struct login_attempt *a, const char *code, struct buf *to)
{
    int bad = login_form(to, "grant_type", SLICE("authorization_code")) |
              login_form(to, "code", slice_str(code)) |
              login_form(to, "redirect_uri", slice_str(a->redirect)) |
              login_form(to, "code_verifier", slice_str(a->verifier)) |
              login_form(to, "resource", slice_str(s->resource.text));
    if (c->auth != LOGIN_AUTH_BASIC)
        bad |= login_form(to, "client_id", slice_str(c->id));
    if (c->auth == LOGIN_AUTH_POST)
        bad |= login_form(to, "client_secret", slice_str(c->secret));
    return bad;
}

int login_exchange(struct login_net *n, const struct login_server *s, const struct login_client *c,
                   const struct login_attempt *a, const char *code, json_t **ret, struct err *err)
{
    struct buf body;
    struct login_answer answer = {0};
    char *proof = c->auth == LOGIN_AUTH_BASIC ? basic(c) : NULL;
    buf_init_wiped(&body, 8 * LOGIN_CODE_MAX);
    int bad = (c->auth == LOGIN_AUTH_BASIC && proof == NULL) | put_code(s, c, a, code, &body);
    struct login_ask q = {.method = "POST",
                          .at = &s->token,
                          .type = "application/x-www-form-urlencoded",
                          .body = buf_slice(&body),
                          .authorization = proof};
    int r = bad ? err_set(err, ERR_LIMIT, "the request for a token is too long")
                : login_http(n, &q, &answer, err);
    if (r == 0)
        r = answer.status != 200 ? refused("the token endpoint", answer.status, answer.json, err)
                                 : login_take_tokens(answer.json, err);
    *ret = r == 0 ? json_incref(answer.json) : NULL;
    login_answer_done(&answer);
    buf_free(&body);
    if (proof)
        explicit_bzero(proof, strlen(proof));
    free(proof);
    return r;
}
