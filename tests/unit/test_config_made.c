/* Secrets that are made of others, as the configuration has them, and the rules that use them. */
#include <CUnit/CUnit.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config.h"
#include "config_fixture.h"
#include "derived_spec.h"

void suite_config_made(void);

#define S V "secrets:\n  k: { env: K }\n  m:\n    "

/* What a certificate of SSH may say. */
static void certificates(void)
{
#define M S "ssh_certificate: { ca: k, principals: ops"
    static const struct {
        const char *text, *why;
    } bad[] = {
        {S "ssh_certificate: { ca: k }\n", "needs 'principals'"},
        {S "ssh_certificate: { principals: ops }\n", "needs 'ca'"},
        {S "ssh_certificate: { ca: k, principals: [] }\n", ""},
        {S "ssh_certificate: { ca: k, principals: ['a,b'] }\n", "a principal is a name"},
        {S "ssh_certificate: { ca: k, principals: ['a b'] }\n", "a principal is a name"},
        {S "ssh_certificate: { ca: k, principals: ['a\"b'] }\n", "a principal is a name"},
        {S "ssh_certificate: { ca: k, principals: [a, b, a] }\n", "twice"},
        {S "ssh_certificate: { ca: k, principals: [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, "
           "q] }\n",
         "more than 16"},
        {M ", minutes: 0 }\n", "minutes"},
        {M ", minutes: 1441 }\n", "minutes"},
        {M ", source_address: 192.0.2.1 }\n", "is not a range"},
        {M ", source_address: 192.0.2.1/24 }\n", "is not a range"},
        {M ", source_address: [192.0.2.0/24, '2001:db8::1/32'] }\n", "is not a range"},
        {M ", extensions: permit-all }\n", "an extension is"},
        {M ", extensions: permit-agent-forwarding }\n", "agents and X11 are not"},
        {M ", extensions: permit-pty=yes }\n", "an extension is"},
        {M ", extensions: '@b' }\n", "an extension is"},
        {M ", extensions: 'a@' }\n", "an extension is"},
        {M ", extensions: 'a@=b@c' }\n", "an extension is"},
        {M ", extensions: 'a@b=c d' }\n", "an extension is"},
        {M ", extensions: [a@b=c, a@b] }\n", "twice"},
        {S "ssh_key: { key: k }\n  n: { ssh_certificate: { ca: m, principals: a } }\n", ""}};
    size_t n;
    struct config *c = good(M ", minutes: 10, source_address: [192.0.2.0/24, '2001:db8::/32'], "
                              "force_command: 'uptime -p', extensions: [permit-pty, "
                              "permit-user-rc, login@github.com=alice, a@b] }\n");
    const struct config_secret *s = config_secrets(c, &n);
    CU_ASSERT_FATAL(n == 2 && s[1].derived != NULL);
    CU_ASSERT(s[0].lines && s[0].used && s[1].endpoint == NULL);
    CU_ASSERT_STRING_EQUAL(s[1].derived->text[SPEC_SOURCE_ADDRESS], "192.0.2.0/24 2001:db8::/32");
    CU_ASSERT_STRING_EQUAL(s[1].derived->text[SPEC_MINUTES], "10");
    config_unref(c);
    c = good(M " }\n");
    CU_ASSERT_STRING_EQUAL(config_secrets(c, &n)[1].derived->text[SPEC_MINUTES], "5");
    config_unref(c);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        says(bad[i].text, i + 1 < ARRAY_LEN(bad) ? 5 : 6, bad[i].why);
#undef M
}

/* Secrets that are made of others, and keys. */
static void kinds(void)
{
    struct config *c = good(S "github_app: { app_id: '1', installation_id: '2', key: k }\n");
    size_t n;
    const struct config_secret *s = config_secrets(c, &n);
    CU_ASSERT(n == 2 && s[0].lines && s[0].used && s[1].store == STORE_MINT);
    CU_ASSERT_STRING_EQUAL(s[1].endpoint,
                           "https://api.github.com/app/installations/2/access_tokens");
    char *json = config_endpoints_json(c);
    CU_ASSERT_STRING_EQUAL(json, "{\"policy\":\"vault\",\"rules\":[{\"allow\":"
                                 "\"https://api.github.com/app/installations/2/access_tokens\","
                                 "\"methods\":[\"POST\"]}]}");
    free(json);
    config_unref(c);
    c = good(S "aws_role: { key: p, role_arn: a, region: eu-west-1 }\n"
               "  p: { aws_key: { access_key_id: k, secret_access_key: k } }\n");
    s = config_secrets(c, &n);
    CU_ASSERT_STRING_EQUAL(s[1].endpoint, "https://sts.eu-west-1.amazonaws.com/");
    CU_ASSERT(!s[0].lines && s[2].endpoint == NULL);
    config_unref(c);
    says(S "oauth2: { token_url: https://a.example/t }\n", 5, "'oauth2' needs 'client_id'");
    says(S "oauth2: { token_url: https://a.example/t, client_id: a }\n", 5, "'client_secret'");
    says(S "oauth2: { token_url: http://a.example/t, client_id: a }\n", 5, "https://HOST/PATH");
    says(S "oauth2: { token_url: 'https://a.example/t?x', client_id: a }\n", 5, "plain https");
    says(S "oauth2: { token_url: https://a.example/t, client_id: a, client_secret: z }\n", 5,
         "no secret 'z'");
    says(S "oauth2: { token_url: https://a.example/t, client_id: a, auth: digest }\n", 5,
         "one of: basic, post");
    says(S "oauth2: { tokn_url: x }\n", 5, "did you mean 'token_url'?");
    says(S "google: { service_account: k }\n", 5, "either 'scope'");
    says(S "google: { service_account: k, scope: a, audience: b }\n", 5, "either 'scope'");
    says(S "aws_role: { key: k, role_arn: a, region: b }\n", 5, "not an 'aws_key'");
    says(S "aws_role: { key: k, role_arn: a, region: b, duration: 5 }\n", 5, "");
    says(S "oauth2: {}\n    env: X\n", 4, "one source");
    says(S "ttl: 5m\n    aws_key: { access_key_id: k, secret_access_key: k }\n", 5, "no meaning");
    says(S "hmac_key: { key: k, algorithm: md5 }\n", 5, "one of: sha256");
    says(S "hmac_key: { key: k, encoding: base32 }\n", 5, "one of: text");
    says(S "signature_key: { key: k, key_id: a }\n", 5, "needs 'algorithm'");
    says(S "signature_key: { key: k, key_id: 'a b', algorithm: ed25519 }\n", 5, "no blank");
    says(S "azure_key: { key: k, account: 'a:b' }\n", 5, "name of a storage account");
    certificates();
    c = good(S "client_certificate: { certificate: k, key: k }\n");
    s = config_secrets(c, &n);
    CU_ASSERT(s[0].lines && s[1].endpoint == NULL);
    config_unref(c);
    says(S "client_certificate: { certificate: k }\n", 5, "'client_certificate' needs 'key'");
    says(S "jwt: { token_url: https://a.example/t, issuer: a, key: m }\n", 5, "made of others");
#undef S
}

/* What a rule may do with each of them. */
static void uses(void)
{
#define RULE                                                                 \
    V "secrets:\n  k: { env: K }\n  i: { env: I }\n"                         \
      "  m: { github_app: { app_id: '1', installation_id: '2', key: k } }\n" \
      "  p: { aws_key: { access_key_id: i, secret_access_key: i } }\n"       \
      "  c: { client_certificate: { certificate: k, key: k } }\n"            \
      "policies:\n  x:\n    rules:\n      - { allow: a.com, with: { %s } }\n"
    static const char *const bad[][2] = {
        {"bearer: k", "never sent"},
        {"bearer: p", "signs requests"},
        {"aws: m", "not a signing key"},
        {"client_certificate: p", "'with: { aws: p }'"},
        {"client_certificate: i", "client_certificate: { cert"},
        {"hmac: { key: k, text: a, headers: { a: '{signature}' } }", "hmac_key: { key: SECRET }"},
        {"azure: p", "'with: { aws: p }'"},
        {"bearer: c", "'with: { client_certificate: c }'"},
        {"aws: { region: r }", "names its key"},
        {"aws: { key: p, region: 'a/b' }", "not a region"}};
    char text[1000];
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        snprintf(text, sizeof text, RULE, bad[i][0]);
        says(text, 11, bad[i][1]);
    }
    snprintf(text, sizeof text, RULE, "aws: { key: p, region: r, service: s3 }");
    config_unref(good(text));
    snprintf(text, sizeof text, RULE, "bearer: m");
    config_unref(good(text));
#define CAPTURE                                                       \
    V "secrets:\n  k: { env: K }\n  x: { captured: {} }\npolicies:\n" \
      "  p:\n    rules:\n      - { allow: a.com, with: { %s }, capture: { t: %s } }\n"
    snprintf(text, sizeof text, CAPTURE, "bearer: x", "x");
    struct config *c = good(text);
    size_t n;
    config_policy_secrets(c, "p", &n);
    CU_ASSERT_EQUAL(n, 1);
    CU_ASSERT(policy_rule(config_policy(c, "p"), 0)->credential->captured);
    config_unref(c);
    snprintf(text, sizeof text, CAPTURE, "bearer: k", "x"); /* it has a placeholder all the same */
    c = good(text);
    config_policy_secrets(c, "p", &n);
    CU_ASSERT_EQUAL(n, 2);
    CU_ASSERT(!policy_rule(config_policy(c, "p"), 0)->credential->captured);
    config_unref(c);
    snprintf(text, sizeof text, CAPTURE, "bearer: k", "k");
    says(text, 8, "declare 'k-token: { captured: {} }'");
    snprintf(text, sizeof text, CAPTURE, "query: { q: x }", "x");
    says(text, 8, "goes as bearer, basic, header, aws or placeholder");
    says(V "secrets:\n  x: { captured: {} }\npolicies:\n  p:\n    rules:\n      - { allow: a.com, "
           "with: { bearer: x } }\n",
         7, "no rule of this policy captures it");
#undef CAPTURE
}

static void captured_claims(void)
{
    char text[1000];
#define CLAIMS                                                                       \
    V "secrets:\n  x: { captured: { claims: [%s] } }\npolicies:\n  p:\n    rules:\n" \
      "      - { allow: a.com, with: { bearer: x }, capture: { t: x } }\n"
    snprintf(text, sizeof text, CLAIMS, "exp, \"/https:~1~1a.com~1auth/plan\"");
    struct config *c = good(text);
    CU_ASSERT_STRING_EQUAL(config_secret(c, "x")->derived->text[SPEC_CLAIMS],
                           "exp /https:~1~1a.com~1auth/plan");
    config_unref(c);
    static const char *const claims[] = {"/",
                                         "\"/a~\"",
                                         "\"a~2\"",
                                         "'a\"b'",
                                         "'a\\b'",
                                         "\"\xc3\xa4\"",
                                         "a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q"};
    for (size_t i = 0; i < ARRAY_LEN(claims); i++) {
        snprintf(text, sizeof text, CLAIMS, claims[i]);
        says(text, 3, "");
    }
    snprintf(text, sizeof text, CLAIMS, "a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p");
    config_unref(good(text));
#undef CLAIMS
    says(V "secrets:\n  x: { captured: { claims: [exp] } }\npolicies:\n  p:\n    rules:\n"
           "      - { allow: a.com, with: { placeholder: { secret: x, in: { body: /t } } }, "
           "capture: { t: x } }\n",
         7, "holds more than its placeholder");
}

/* A login at an MCP server: its token goes there alone. */
static void resources(void)
{
#define LOGIN                                                                        \
    V "secrets:\n  f: { login: { format: mcp, file: /x, part: session } }\n"         \
      "  m: { oauth_login: { session: f, token_url: 'https://i.example/t', %s } }\n" \
      "policies:\n  x:\n    rules:\n      - { allow: '%s', with: { bearer: m } }\n"
    static const char *const good_ones[] = {"a.example/mcp", "a.example/mcp/**", "a.example/mcp/x",
                                            "https://a.example:443/mcp"};
    static const char *const bad[] = {"a.example",     "a.example/mcpx",      "a.example/**",
                                      "b.example/mcp", "a.example:8443/mcp",  ".a.example/mcp",
                                      "a.example/*",   "http://a.example/mcp"};
    char text[1000];
    for (size_t i = 0; i < ARRAY_LEN(good_ones); i++) {
        snprintf(text, sizeof text, LOGIN, "resource: 'https://a.example/mcp/'", good_ones[i]);
        config_unref(good(text));
    }
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        snprintf(text, sizeof text, LOGIN, "resource: 'https://a.example/mcp'", bad[i]);
        says(text, 8, i == 7 ? "" : "is a token for https://a.example/mcp");
    }
    snprintf(text, sizeof text, LOGIN, "refresh: 'yes'", "a.example/mcp");
    says(text, 4, "either 'client_id' or");
    snprintf(text, sizeof text, LOGIN, "client_id: c, resource: 'https://a.example/mcp'",
             "a.example/mcp");
    says(text, 4, "either 'client_id' or");
    snprintf(text, sizeof text, LOGIN, "resource: 'http://a.example/mcp'", "a.example/mcp");
    says(text, 4, "https://");
#undef LOGIN
}

/* What is kept behind an endpoint, and how that lets us in. */
#define R V "secrets:\n  k: { env: K }\n  m:\n    "
#define A "vault: { address: https://v.example:8200, path: a/b, key: x, "

static void remote(void)
{
    size_t n;
    struct config *c =
        good(R A "auth: { approle: { role_id: r, secret_id: k } } }\n    ttl: 1m\n"
                 "  o: { openbao: { address: https://v.example:8200, path: c, key: "
                 "y, mount: kv, auth: { approle: { role_id: r, secret_id: k } } } }\n");
    const struct config_secret *s = config_secrets(c, &n);
    CU_ASSERT_EQUAL_FATAL(n, 4); /* one login for both */
    CU_ASSERT(s[0].used && !s[0].lines && !s[1].hidden && s[3].hidden && s[3].used);
    CU_ASSERT_STRING_EQUAL(s[1].endpoint, "https://v.example:8200/v1/secret/data/a/b");
    CU_ASSERT_STRING_EQUAL(s[2].endpoint, "https://v.example:8200/v1/kv/data/c");
    CU_ASSERT_STRING_EQUAL(s[3].endpoint, "https://v.example:8200/v1/auth/approle/login");
    CU_ASSERT_EQUAL(s[1].derived->ttl, 60);
    CU_ASSERT_STRING_EQUAL(s[2].derived->text[SPEC_AUTH], "(login 1)");
    config_unref(c);
    config_unref(good(R A "auth: { token: k } }\n"));
    c = good(R A "to: [10.0.0.0/8, 'fd00::/8'], auth: { token: k } }\n");
    char *json = config_endpoints_json(c);
    CU_ASSERT_STRING_EQUAL(
        json,
        "{\"policy\":\"vault\",\"rules\":["
        "{\"allow\":\"https://v.example:8200/v1/secret/data/a/b\",\"methods\":[\"GET\","
        "\"POST\"],\"to\":[\"10.0.0.0/8\",\"fd00::/8\"]},"
        "{\"allow\":\"https://v.example:8200/v1/auth/token/renew-self\",\"methods\":[\"POST\"],"
        "\"to\":[\"10.0.0.0/8\",\"fd00::/8\"]}]}");
    struct err err = {0};
    struct policy *p = policy_parse(json, strlen(json), &err); /* the dialer takes it */
    CU_ASSERT_PTR_NOT_NULL(p);
    policy_free(p);
    free(json);
    CU_ASSERT(config_secret_asks(config_secret(c, "m")) &&
              !config_secret_asks(config_secret(c, "k")));
    config_unref(c);
}

static void remote_errors(void)
{
    says(R A "to: 10.0.0.1/8, auth: { token: k } }\n", 5, "not a range of addresses");
    says(R A "to: 0.0.0.0/0, auth: { token: k } }\n", 5, "too wide");
    says(R A "auth: { approle: { role_id: r, secret_id: k, to: 10.0.0.0/8 } } }\n", 5,
         "beside 'auth'");
    config_unref(good(R A "auth: { kubernetes: { role: r, jwt: k, mount: k8s } } }\n"));
    config_unref(
        good(R "onepassword: { address: https://o.example, token: k, vault: v, item: i }\n"));
    config_unref(good(R "aws_secret: { key: p, region: eu-west-1, name: n }\n"
                        "  p: { aws_key: { access_key_id: k, secret_access_key: k } }\n"));
    says(R A "auth: { token: z } }\n", 5, "'z'");
    says(R A "auth: {} }\n", 5, "one of 'token', 'approle' and 'kubernetes'");
    says(R A "auth: { token: k, approle: {} } }\n", 5, "one of 'token'");
    says(R A "auth: { tokne: k } }\n", 5, "did you mean 'token'?");
    says(R A "auth: { approle: { secret_id: k } } }\n", 5, "needs 'role_id'");
    says(R A "auth: { approle: { role_id: r, secret_id: k, address: x } } }\n", 5, "beside 'auth'");
    says(R A "auth: { approle: k } }\n", 5, "must be a mapping");
    says(R "vault: { address: http://v.example, path: a, key: x, auth: { token: k } }\n", 5,
         "https://HOST/PATH");
    says(R "vault: { address: https://v.example, path: a/../b, key: x, auth: { token: k } }\n", 5,
         "plain https");
    says(R "vault: { address: https://v.example, path: a, auth: { token: k } }\n", 5,
         "needs 'key'");
    says(R "vault: { address: https://v.example, path: a, key: x }\n", 5, "needs 'auth'");
    says(R "vault: kv/x\n", 5, "must be a mapping");
    says(R A "auth: { token: k } }\n    ttl: 5\n", 6, "needs a unit");
    says(R A "auth: { token: k } }\n    env: X\n", 4, "one source");
    says(R "aws_parameter: { key: k, region: r, name: n }\n", 5, "is not an AWS key");
    says(R "vault_token: { address: https://v.example, token: k }\n", 5, "unknown key");
}

#undef A
#undef R

/* What is read from a folder that others fill, or looked up. */
static void stores(void)
{
#define T V "secrets:\n  s:\n    "
    size_t n;
    struct config *c = good(T "kubernetes: { path: mnt/app, key: api-token }\n    ttl: 1h\n");
    const struct config_secret *s = config_secrets(c, &n);
    CU_ASSERT(s->store == STORE_FILE && s->ttl == 3600 && s->folder == NULL);
    CU_ASSERT_STRING_EQUAL(s->source, "/etc/durward/mnt/app/api-token");
    char *json = config_json(c); /* as the daemon gets it */
    struct err e = {0};
    struct config *again = json ? config_from_json(json, strlen(json), &e) : NULL;
    CU_ASSERT_FATAL(again != NULL);
    CU_ASSERT_STRING_EQUAL(config_secrets(again, &n)->source, "/etc/durward/mnt/app/api-token");
    config_unref(again);
    free(json);
    config_unref(c);
    c = good(T "systemd: api.token\n");
    s = config_secrets(c, &n);
    CU_ASSERT(s->store == STORE_FILE && s->ttl == 0);
    CU_ASSERT_STRING_EQUAL(s->folder, "CREDENTIALS_DIRECTORY");
    CU_ASSERT_STRING_EQUAL(s->source, "api.token");
    config_unref(c);
    c = good(T "secret_service: { service: api, account: 'me too' }\n");
    s = config_secrets(c, &n);
    static const char *const argv[] = {"secret-tool", "lookup",  "service",
                                       "api",         "account", "me too"};
    CU_ASSERT(s->store == STORE_COMMAND && s->ttl == 300 && s->command[6] == NULL);
    for (size_t i = 0; i < ARRAY_LEN(argv); i++)
        CU_ASSERT_STRING_EQUAL(s->command[i], argv[i]);
    config_unref(c);
    says(T "kubernetes: { path: /m }\n", 4, "needs 'path'");
    says(T "kubernetes: { path: /m, key: ../x }\n", 4, "not a key of a Secret");
    says(T "kubernetes: { path: /m, key: ..data }\n", 4, "not a key of a Secret");
    says(T "kubernetes: { paht: /m, key: a }\n", 4, "did you mean 'path'?");
    says(T "kubernetes: /m/a\n", 4, "must be a mapping");
    says(T "systemd: a/b\n", 4, "not the name of a credential");
    says(T "systemd: ..\n", 4, "not the name of a credential");
    says(T "systemd: ''\n", 4, "empty");
    says(T "systemd: a\n    file: b\n", 3, "exactly one of");
    says(T "secret_service: {}\n", 4, "1 to 16 attributes");
    says(T "secret_service: { --clear: x }\n", 4, "do not begin with '-'");
    says(T "secret_service: { a: -x }\n", 4, "do not begin with '-'");
    says(T "secret_service: { a: [x] }\n", 4, "");
#undef T
}

void suite_config_made(void)
{
    CU_pSuite s = CU_add_suite("config made", NULL, NULL);
    CU_add_test(s, "a login at an MCP server", resources);
    CU_add_test(s, "stores behind endpoints", remote);
    CU_add_test(s, "stores behind endpoints: errors", remote_errors);
    CU_add_test(s, "stores in folders, and looked up", stores);
    CU_add_test(s, "kinds, their fields and their uses", kinds);
    CU_add_test(s, "what a rule may do with made secrets", uses);
    CU_add_test(s, "claims of captured ones", captured_claims);
}

void tap_suites(void)
{
    suite_config_made();
}
