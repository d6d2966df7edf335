/* Secrets that are made of others, as the configuration has them, and the rules that use them. */
#include <CUnit/CUnit.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config.h"
#include "tap_main.h"

void suite_config_made(void);

static struct config *parsed(const char *text, struct err *err)
{
    return config_parse(slice_str(text), "/etc/durward/t.yaml", err);
}

static struct config *good(const char *text)
{
    struct err e = {0};
    struct config *c = parsed(text, &e);
    if (c == NULL) {
        printf("# %s\n", e.text);
        CU_FAIL_FATAL("a configuration");
    }
    return c;
}

/* Refused with exactly this place and these words. */
static void says(const char *text, unsigned line, const char *want)
{
    struct err e = {0};
    char where[64];
    struct config *c = parsed(text, &e);
    snprintf(where, sizeof where, "/etc/durward/t.yaml:%u: ", line);
    if (c || strncmp(e.text, where, strlen(where)) != 0 || strstr(e.text, want) == NULL) {
        printf("# %s\n#   gives %s\n#   not %s%s\n", text, c ? "no error" : e.text, where, want);
        CU_FAIL("an error");
    }
    config_unref(c);
}

#define V "version: 1\n"

/* Secrets that are made of others, and keys. */
static void kinds(void)
{
#define S V "secrets:\n  k: { env: K }\n  m:\n    "
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
    says(S "jwt: { token_url: https://a.example/t, issuer: a, key: m }\n", 5, "made of others");
#undef S
#define RULE                                                                 \
    V "secrets:\n  k: { env: K }\n  i: { env: I }\n"                         \
      "  m: { github_app: { app_id: '1', installation_id: '2', key: k } }\n" \
      "  p: { aws_key: { access_key_id: i, secret_access_key: i } }\n"       \
      "policies:\n  x:\n    rules:\n      - { allow: a.com, with: { %s } }\n"
    static const char *const bad[][2] = {{"bearer: k", "never sent"},
                                         {"bearer: p", "signs requests"},
                                         {"aws: m", "not a signing key"},
                                         {"aws: { region: r }", "names its key"},
                                         {"aws: { key: p, region: 'a/b' }", "not a region"}};
    char text[1000];
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        snprintf(text, sizeof text, RULE, bad[i][0]);
        says(text, 10, bad[i][1]);
    }
    snprintf(text, sizeof text, RULE, "aws: { key: p, region: r, service: s3 }");
    config_unref(good(text));
    snprintf(text, sizeof text, RULE, "bearer: m");
    config_unref(good(text));
}

void suite_config_made(void)
{
    CU_pSuite s = CU_add_suite("config made", NULL, NULL);
    CU_add_test(s, "kinds, their fields and their uses", kinds);
}

void tap_suites(void)
{
    suite_config_made();
}
