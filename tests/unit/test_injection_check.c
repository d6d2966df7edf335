/* The injector's own decision over what a gate sends: each thing that a conquered gate could say
 * otherwise than it is (promise P5). The policy, the tokens and the list of revoked ones are the
 * real ones. */
#include "injection.h"
#include "http1_head.h"
#include "revoked.h"
#include "tap_main.h"
#include "token.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char rules[] =
    "{'allow':'api.github.com/user','with':{'bearer':'github'}},"
    "{'allow':'api.github.com/read/**','methods':['GET'],'with':{'bearer':'github'}},"
    "{'allow':'api.github.com/repos/acme/**','with':{'bearer':'github'}},"
    "{'deny':'api.github.com/repos/acme/secret/**'},"
    "{'allow':'api.github.com/ws','websocket':true,'with':{'bearer':'github'}},"
    "{'allow':'http://plain.example.com','allow_plaintext':true,'with':{'bearer':'github'}},"
    "{'allow':'pass.example.com','client_credential':'pass','with':{'bearer':'github'}},"
    "{'allow':'tenant.example.com','headers':{'x-tenant':'a'},'with':{'bearer':'github'}},"
    "{'allow':'login.example.com/oauth/token','with':{'bearer':'github'},"
    "'capture':{'access_token':'made'}},"
    "{'allow':'free.example.com','with':{'placeholder':{'secret':'made','in':{'body':'/r'}}},"
    "'capture':{'r':'made'}},"
    "{'allow':'kept.example.com','with':{'placeholder':{'secret':'made','in':{'body':'/r'},"
    "'beside':{'g':'r'}}},'capture':{'r':'made'}},"
    "{'ask':'asked.example.com/**'},"
    "{'allow':'v6.example.com','with':{'bearer':'github'}},"
    "{'allow':'[2001:db8::1]','with':{'bearer':'github'}},"
    "{'allow':'deps.example.com'}";

static struct injector injector;

static EVP_PKEY *signing_key(unsigned char first)
{
    unsigned char half[TOKEN_KEY] = {first, 7, 7};
    return EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, NULL, half, sizeof half);
}

static int setup(void)
{
    struct err err = {0};
    char *json = NULL;
    unsigned char raw[TOKEN_KEY];
    size_t n = sizeof raw;
    if (asprintf(&json, "{\"policy\":\"coder\",\"rules\":[%s]}", rules) < 0)
        return -1;
    for (char *c = json; *c; c++)
        if (*c == '\'')
            *c = '"';
    snprintf(injector.name, sizeof injector.name, "coder");
    injector.policy = policy_parse(json, strlen(json), &err);
    free(json);
    EVP_PKEY *key = signing_key(1);
    if (key && EVP_PKEY_get_raw_public_key(key, raw, &n) == 1)
        injector.token_public = token_public_key(raw, NULL);
    EVP_PKEY_free(key);
    if (injector.policy == NULL)
        printf("# %s\n", err.text);
    return injector.policy && injector.token_public ? 0 : -1;
}

static int teardown(void)
{
    policy_free(injector.policy);
    EVP_PKEY_free(injector.token_public);
    revoked_free(injector.revoked);
    memset(&injector, 0, sizeof injector);
    return 0;
}

/* What the gate says; `usual` is a request that is granted. */
struct said {
    enum scheme scheme;
    const char *host;
    uint16_t port;
    const char *method, *path, *query, *secret, *token, *field; /* field: "name: value" beside */
    bool needs_token, websocket;
    unsigned blanks;
};

static const struct said usual = {.scheme = SCHEME_HTTPS,
                                  .host = "api.github.com",
                                  .port = 443,
                                  .method = "GET",
                                  .path = "/user",
                                  .secret = "github",
                                  .token = ""};

static const char *check(const struct said *s, struct injection_decided *d)
{
    static struct injection_request r;
    struct head h;
    char name[64];
    memset(&r, 0, sizeof r);
    http_head_init(&h);
    r.authority.scheme = s->scheme;
    r.authority.port = s->port;
    snprintf(r.authority.host, sizeof r.authority.host, "%s", s->host);
    snprintf(r.secret, sizeof r.secret, "%s", s->secret);
    snprintf(r.token, sizeof r.token, "%s", s->token);
    r.sandbox = "box";
    r.needs_token = s->needs_token;
    r.blanks.n = s->blanks;
    h.method = slice_str(s->method);
    h.path = slice_str(s->path);
    h.has_query = s->query != NULL;
    h.query = slice_str(s->query ? s->query : "");
    h.upgrade = s->websocket ? UPGRADE_WEBSOCKET : UPGRADE_NONE;
    if (s->field) {
        const char *colon = strchr(s->field, ':');
        snprintf(name, sizeof name, "%.*s", (int)(colon - s->field), s->field);
        CU_ASSERT_EQUAL_FATAL(http_head_add(&h, name, slice_str(colon + 2)), 0);
    }
    memset(d, 0, sizeof *d);
    struct authority a = r.authority;
    struct placement placement;
    placement_init(&placement);
    int ok = injection_check(&injector, &r, &h, &a, &placement, d);
    CU_ASSERT_PTR_EQUAL(placement.credential, ok == 0 ? d->credential : placement.credential);
    placement_free(&placement);
    http_head_free(&h);
    return ok < 0 ? d->answer.code : "ok";
}

static void is(const struct said *s, const char *code)
{
    struct injection_decided d;
    const char *got = check(s, &d);
    if (strcmp(got, code) != 0)
        printf("# %s %s %s %s: %s, not %s\n", s->method, s->host, s->path, s->secret, got, code);
    CU_ASSERT_STRING_EQUAL(got, code);
    policy_free(d.policy);
}

/* The usual request but for what is written in the braces. */
#define SAYS(code, ...)            \
    do {                           \
        struct said said_ = usual; \
        struct said *s = &said_;   \
        __VA_ARGS__;               \
        is(s, code);               \
    } while (0)

static void test_granted(void)
{
    struct injection_decided d;
    CU_ASSERT_STRING_EQUAL(check(&usual, &d), "ok");
    CU_ASSERT_STRING_EQUAL(d.sandbox, "box");
    CU_ASSERT_PTR_NOT_NULL_FATAL(d.credential);
    CU_ASSERT_STRING_EQUAL(d.credential->secret, "github");
    policy_free(d.policy);
    SAYS("ok", s->path = "/read/x");
    SAYS("ok", s->host = "2001:db8::1", s->path = "/");
    SAYS("ok", s->path = "/ws", s->websocket = true);
}

/* What the policy does not allow has the code that a gate's refusal has. */
static void test_rules(void)
{
    SAYS("no_rule", s->path = "/gists/1");
    SAYS("no_rule", s->path = "/");
    SAYS("denied_by_rule", s->path = "/repos/acme/secret/x");
    SAYS("denied_by_rule", s->path = "/repos/acme/%73ecret/x");
    SAYS("method", s->path = "/read/x", s->method = "DELETE");
    SAYS("method", s->path = "/read/x", s->method = "POST");
    SAYS("no_rule", s->host = "api.openai.com");
    SAYS("no_rule", s->host = "x.api.github.com");
    SAYS("no_rule", s->port = 8443);
    SAYS("no_rule", s->scheme = SCHEME_HTTP, s->port = 80);
    SAYS("websocket", s->websocket = true);
    SAYS("header", s->host = "tenant.example.com", s->path = "/");
    SAYS("header", s->host = "tenant.example.com", s->path = "/", s->field = "x-tenant: b");
    SAYS("ok", s->host = "tenant.example.com", s->path = "/", s->field = "x-tenant: a");
    SAYS("method_override", s->path = "/read/x", s->query = "_method=DELETE");
    SAYS("foreign_credential", s->field = "x-api-key: sk-abc");
    SAYS("foreign_credential", s->query = "access_token=abc");
    SAYS("destination", s->method = "COPY", s->path = "/repos/acme/x",
         s->field = "destination: /repos/acme/secret/x");
    SAYS("destination", s->method = "PUT", s->path = "/repos/acme/x",
         s->field = "x-amz-copy-source: repos/acme/secret/x");
}

/* What a gate may not say whatever the request is: only a gate that lies comes so far. */
static void test_secrets(void)
{
    SAYS("grant_denied", s->secret = "openai");
    SAYS("grant_denied", s->secret = "githu");
    SAYS("grant_denied", s->secret = "github2");
    SAYS("grant_denied", s->secret = "");
    SAYS("grant_denied", s->host = "deps.example.com", s->path = "/", s->secret = "github");
    SAYS("grant_denied", s->host = "deps.example.com", s->path = "/", s->secret = "");
    SAYS("grant_denied", s->host = "asked.example.com", s->path = "/", s->secret = "github");
    SAYS("ok", s->host = "asked.example.com", s->path = "/", s->secret = "");
    SAYS("ok", s->host = "pass.example.com", s->path = "/", s->secret = "");
    SAYS("ok", s->host = "pass.example.com", s->path = "/");
}

static void test_captures(void)
{
    SAYS("grant_request", s->host = "login.example.com", s->path = "/oauth/token");
    SAYS("grant_request", s->host = "login.example.com", s->path = "/oauth/token", s->blanks = 2);
    SAYS("ok", s->host = "login.example.com", s->path = "/oauth/token", s->blanks = 1);
    SAYS("grant_request", s->blanks = 1);
    /* without it the request goes as it is, but where something has to stand beside it */
    SAYS("ok", s->host = "free.example.com", s->secret = "", s->blanks = 1);
    SAYS("ok", s->host = "kept.example.com", s->secret = "made", s->blanks = 1);
    SAYS("grant_denied", s->host = "kept.example.com", s->secret = "", s->blanks = 1);
}

/* What has another reading is none that a gate may send. */
static void test_spelling(void)
{
    SAYS("grant_authority", s->host = "API.github.com");
    SAYS("grant_authority", s->host = "api.github.com.");
    SAYS("grant_authority", s->host = "");
    SAYS("grant_authority", s->host = "api.github.com:443");
    SAYS("grant_authority", s->host = "api.github.com@evil.example");
    SAYS("grant_authority", s->host = "2001:DB8::1", s->path = "/");
    SAYS("grant_authority", s->host = "[2001:db8::1]", s->path = "/");
    SAYS("path_ambiguous", s->path = "/x/../user");
    SAYS("path_ambiguous", s->path = "//user");
    SAYS("path_ambiguous", s->path = "/user/%2e%2e/user");
    SAYS("path_ambiguous", s->path = "user");
    SAYS("path_ambiguous", s->path = "");
    SAYS("path_ambiguous", s->path = "/user%00");
    SAYS("path_ambiguous", s->path = "/us er");
    SAYS("path_ambiguous", s->path = "/user#x");
    SAYS("method", s->method = "CONNECT");
    SAYS("method", s->method = "TRACE");
    SAYS("method", s->method = "get");
}

static void test_plaintext(void)
{
    SAYS("ok", s->host = "plain.example.com", s->scheme = SCHEME_HTTP, s->port = 80, s->path = "/");
    SAYS("no_rule", s->host = "plain.example.com", s->path = "/");
}

/* ---- tokens ---- */

static const char *token(const char *sandbox, const char *policy, int64_t life, unsigned char key)
{
    static char text[TOKEN_TEXT_MAX];
    struct token t = {.expiry = (uint64_t)((int64_t)time(NULL) + life)};
    struct err err;
    EVP_PKEY *k = signing_key(key);
    snprintf(t.sandbox, sizeof t.sandbox, "%s", sandbox);
    snprintf(t.policy, sizeof t.policy, "%s", policy);
    CU_ASSERT_EQUAL_FATAL(token_sign(k, &t, text, sizeof text, &err), 0);
    EVP_PKEY_free(k);
    return text;
}

static void test_tokens(void)
{
    struct injection_decided d;
    struct said with = usual;
    with.needs_token = true;
    with.token = token("rt-1", "coder", 600, 1);
    CU_ASSERT_STRING_EQUAL(check(&with, &d), "ok");
    CU_ASSERT_STRING_EQUAL(d.sandbox, "rt-1"); /* the token's, not what the channel says */
    policy_free(d.policy);
    SAYS("token_invalid", s->needs_token = true);
    SAYS("token_invalid", s->needs_token = true, s->token = "dwt1.x.y");
    SAYS("token_invalid", s->needs_token = true, s->token = token("rt-1", "coder", 600, 2));
    SAYS("token_invalid", s->needs_token = true, s->token = token("rt-1", "coder", -1, 1));
    SAYS("token_invalid", s->needs_token = true, s->token = token("rt-1", "coder", 9000, 1));
    SAYS("token_policy", s->needs_token = true, s->token = token("rt-1", "other", 600, 1));
    SAYS("token_policy", s->needs_token = true, s->token = token("rt-1", "code", 600, 1));
    SAYS("token_policy", s->needs_token = true, s->token = token("rt-1", "coder2", 600, 1));
}

static void test_revoked(void)
{
    uint64_t now = (uint64_t)time(NULL);
    injector.revoked = revoked_new();
    CU_ASSERT_PTR_NOT_NULL_FATAL(injector.revoked);
    revoked_add(injector.revoked, "rt-1", now + 900, now);
    SAYS("token_revoked", s->needs_token = true, s->token = token("rt-1", "coder", 600, 1));
    SAYS("token_revoked", s->needs_token = true, s->token = token("rt-1", "other", 600, 1));
    SAYS("ok", s->needs_token = true, s->token = token("rt-2", "coder", 600, 1));
    revoked_raise(injector.revoked, now + 700);
    SAYS("token_revoked", s->needs_token = true, s->token = token("rt-2", "coder", 600, 1));
}

/* A listener's clients need tokens, and there is no key: nobody gets in. */
static void test_no_key(void)
{
    EVP_PKEY *key = injector.token_public;
    injector.token_public = NULL;
    SAYS("token_invalid", s->needs_token = true, s->token = token("rt-2", "coder", 600, 1));
    injector.token_public = key;
}

void tap_suites(void)
{
    CU_pSuite s = CU_add_suite("grant_check", setup, teardown);
    CU_add_test(s, "what is granted", test_granted);
    CU_add_test(s, "rules, methods, hosts, ports, conditions", test_rules);
    CU_add_test(s, "the secret is the rule's", test_secrets);
    CU_add_test(s, "placeholders for captures", test_captures);
    CU_add_test(s, "one spelling", test_spelling);
    CU_add_test(s, "plaintext", test_plaintext);
    CU_add_test(s, "tokens", test_tokens);
    CU_add_test(s, "a token that would do, without a key", test_no_key);
    CU_add_test(s, "revoked tokens", test_revoked);
}
