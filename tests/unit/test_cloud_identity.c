/* `identity` of a policy: what is taken, what is refused and where, what follows from it. */
#include "cloud_identity.h"

#include "config_fixture.h"
#include "policy.h"

#include <stdlib.h>

#define SECRETS                                                              \
    V "secrets:\n"                                                           \
      "  id: { env: ID }\n"                                                  \
      "  key: { env: KEY }\n"                                                \
      "  pair: { aws_key: { access_key_id: id, secret_access_key: key } }\n" \
      "  token: { env: TOKEN }\n"                                            \
      "  run: { env: RUN }\n"                                                \
      "policies:\n"                                                          \
      "  p:\n"
#define RULES                                                     \
    "    rules:\n"                                                \
    "      - { allow: sts.amazonaws.com, with: { aws: pair } }\n" \
    "      - { allow: a.example, with: { bearer: token } }\n"     \
    "      - { allow: r.example, with: { bearer: run } }\n"
#define GOOGLE "    identity: { gcp: { secret: token, project: acme"

static const char whole[] = SECRETS
    "    env: { AWS_REGION: mine }\n"
    "    identity:\n"
    "      aws: { secret: pair, region: eu-west-1, via: container }\n"
    "      gcp: { secret: token, project: acme, id_tokens: { \"https://r.example/\": run } }\n"
    "      azure: { tokens: { \"https://v.example\": token }, via: app-service }\n" RULES;

static struct authority at(const char *host, enum scheme scheme, uint16_t port)
{
    struct authority a = {.scheme = scheme, .port = port};
    CU_ASSERT_EQUAL_FATAL(authority_host(&a, slice_str(host)), 0);
    return a;
}

static void places(void)
{
    static const struct {
        const char *host;
        enum scheme scheme;
        uint16_t port;
        bool all, aws, google;
    } rows[] = {
        {"169.254.169.254", SCHEME_HTTP, 80, true, true, true},
        {"169.254.170.2", SCHEME_HTTP, 80, true, true, false},
        {"metadata.google.internal", SCHEME_HTTP, 80, true, false, true},
        {"169.254.169.254", SCHEME_HTTPS, 80, false, false, false},
        {"169.254.169.254", SCHEME_HTTP, 8080, false, false, false},
        {"169.254.169.253", SCHEME_HTTP, 80, false, false, false},
        {"[fd00:ec2::254]", SCHEME_HTTP, 80, false, false, false},
        {"x.metadata.google.internal", SCHEME_HTTP, 80, false, false, false},
    };
    struct config *all = good(whole),
                  *aws = good(SECRETS "    identity: { aws: { secret: pair } }\n" RULES),
                  *google = good(SECRETS GOOGLE " } }\n" RULES), *none = good(SECRETS RULES);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct authority a = at(rows[i].host, rows[i].scheme, rows[i].port);
        CU_ASSERT_EQUAL(cloud_identity_at(policy_identity(config_policy(all, "p")), &a),
                        rows[i].all);
        CU_ASSERT_EQUAL(cloud_identity_at(policy_identity(config_policy(aws, "p")), &a),
                        rows[i].aws);
        CU_ASSERT_EQUAL(cloud_identity_at(policy_identity(config_policy(google, "p")), &a),
                        rows[i].google);
        CU_ASSERT_FALSE(cloud_identity_at(policy_identity(config_policy(none, "p")), &a));
    }
    struct authority name = at("metadata.google.internal", SCHEME_HTTPS, 443);
    CU_ASSERT_TRUE(policy_names_host(config_policy(google, "p"), &name));
    CU_ASSERT_FALSE(policy_names_host(config_policy(aws, "p"), &name));
    config_unref(all);
    config_unref(aws);
    config_unref(google);
    config_unref(none);
}

/* As the roles get it. */
static void told(void)
{
    struct config *c = good(whole);
    struct err err = {0};
    char *json = config_policy_json(c, "p");
    struct policy *p = policy_parse(json, strlen(json), &err);
    CU_ASSERT_PTR_NOT_NULL_FATAL(p);
    const struct cloud_identity *who = policy_identity(p);
    CU_ASSERT_STRING_EQUAL(who->aws->role, "durward");
    CU_ASSERT_STRING_EQUAL(who->aws->region, "eu-west-1");
    CU_ASSERT_STRING_EQUAL(who->google->email, "default@acme.iam.gserviceaccount.com");
    const struct cloud_token *t =
        cloud_token_find(who->google->ids, who->google->n_ids, SLICE("https://r.example"));
    CU_ASSERT_PTR_NOT_NULL_FATAL(t);
    CU_ASSERT_STRING_EQUAL(t->secret, "run");
    CU_ASSERT_PTR_NULL(
        cloud_token_find(who->google->ids, who->google->n_ids, SLICE("https://r.example//")));
    CU_ASSERT_PTR_NULL(cloud_token_find(who->google->ids, who->google->n_ids, SLICE("")));
    policy_free(p);
    free(json);
    config_unref(c);
}

static void variables(void)
{
    static const char *const want[][2] = {
        {"AWS_REGION", "mine"}, /* `env` says so */
        {"AWS_DEFAULT_REGION", "eu-west-1"},
        {"AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://169.254.170.2/v1/credentials"},
        {"AWS_CONTAINER_AUTHORIZATION_TOKEN", "{{placeholder pair}}"},
        {"IDENTITY_ENDPOINT", "http://169.254.169.254/msi/token"},
        {"IDENTITY_HEADER", "{{placeholder token}}"},
    };
    size_t n;
    struct config *c = good(whole);
    const struct config_env *env = config_policy_env(c, "p", &n);
    CU_ASSERT_EQUAL_FATAL(n, ARRAY_LEN(want));
    for (size_t i = 0; i < n; i++) {
        CU_ASSERT_STRING_EQUAL(env[i].name, want[i][0]);
        CU_ASSERT_STRING_EQUAL(env[i].value, want[i][1]);
    }
    config_unref(c);
    c = good(SECRETS "    identity: { aws: { secret: pair } }\n" RULES);
    config_policy_env(c, "p", &n);
    CU_ASSERT_EQUAL(n, 0);
    config_unref(c);
}

static void refused(void)
{
    static const struct {
        const char *text;
        unsigned line;
        const char *want;
    } rows[] = {
        {SECRETS "    identity: { aws: { secret: token } }\n" RULES, 10, "is not a signing key"},
        {SECRETS "    identity: { gcp: { secret: pair, project: x } }\n" RULES, 10, "signs"},
        {SECRETS "    identity: { gcp: { secret: nobody, project: x } }\n" RULES, 10, "nobody"},
        {SECRETS "    identity: { gcp: { project: x } }\n" RULES, 10, "needs 'secret'"},
        {SECRETS "    identity: { aws: { role: x } }\n" RULES, 10, "needs 'secret'"},
        {SECRETS "    identity: { aws: { secret: pair, role: \"a/b\" } }\n" RULES, 10, "letters"},
        {SECRETS "    identity: { aws: { secret: pair, role: \"a\\nb\" } }\n" RULES, 10, "letters"},
        {SECRETS "    identity: { azure: { client_id: x } }\n" RULES, 10, "needs 'tokens'"},
        {SECRETS "    identity: { azure: { tokens: {} } }\n" RULES, 10, "from 1 to 32"},
        {SECRETS "    identity: { azure: { tokens: { \"a b\": token } } }\n" RULES, 10,
         "not an audience"},
        {SECRETS "    identity: { azure: { tokens: { \"/\": token } } }\n" RULES, 10,
         "not an audience"},
        {SECRETS
         "    identity: { azure: { tokens: { \"h://a\": token, \"h://a/\": token } } }\n" RULES,
         10, "twice"},
        {SECRETS "    identity: { oracle: {} }\n" RULES, 10, "oracle"},
        {SECRETS GOOGLE ", scopes: [\"a b\"] } }\n" RULES, 10, "not a scope"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        says(rows[i].text, rows[i].line, rows[i].want);
}

static void no_config(const char *text, const char *want)
{
    struct err e = {0};
    struct config *c = parsed(text, &e);
    CU_ASSERT_PTR_NULL(c);
    CU_ASSERT_PTR_NOT_NULL(strstr(e.text, want));
    config_unref(c);
}

/* What it gives out is sent by a rule, and no rule leads to where it answers. */
static void beside_rules(void)
{
    no_config(SECRETS GOOGLE " } }\n    rules: []\n", "gives out a placeholder of 'token'");
    no_config(SECRETS "    identity: { aws: { secret: pair } }\n    rules:\n"
                      "      - { allow: a.example, with: { bearer: token } }\n",
              "no rule signs with");
    no_config(SECRETS GOOGLE ", id_tokens: { \"https://x\": run } } }\n    rules:\n"
                             "      - { allow: a.example, with: { bearer: token } }\n",
              "gives out a placeholder of 'run'");
    no_config(SECRETS GOOGLE " } }\n" RULES "      - allow: http://169.254.169.254/latest/**\n"
                             "        to: 169.254.0.0/16\n",
              "a rule allows that place");
    no_config(SECRETS GOOGLE " } }\n" RULES "      - allow: http://metadata.google.internal\n",
              "a rule allows that place");
    struct config *c =
        good(SECRETS GOOGLE " } }\n" RULES "      - deny: http://169.254.169.254/latest/**\n");
    config_unref(c);
}

void tap_suites(void)
{
    CU_pSuite s = CU_add_suite("cloud_identity", NULL, NULL);
    CU_add_test(s, "places", places);
    CU_add_test(s, "told", told);
    CU_add_test(s, "variables", variables);
    CU_add_test(s, "refused", refused);
    CU_add_test(s, "beside_rules", beside_rules);
}
