/* Profiles: those built in compile, what is wrong in one is told with its line, and what becomes of
 * one in a configuration. */
#include <CUnit/CUnit.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config.h"
#include "derived_spec.h"
#include "profile.h"
#include "tap_main.h"

#define HEAD  "command: toy\n"
#define MODEL "model: [{ use: openai, env: TOY_KEY }]\n"

static void bad(const char *text, const char *why)
{
    struct err err = {0};
    struct profile *p = profile_read("toy", slice_str(text), "toy.yaml", &err);
    if (p || strstr(err.text, why) == NULL)
        fprintf(stderr, "of\n%s wanted '%s', said '%s'\n", text, why, p ? "it is good" : err.text);
    CU_ASSERT_PTR_NULL(p);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, why));
    profile_free(p);
}

static struct profile *good(const char *text)
{
    struct err err = {0};
    struct profile *p = profile_read("toy", slice_str(text), "toy.yaml", &err);
    if (p == NULL)
        fprintf(stderr, "%s\n", err.text);
    CU_ASSERT_PTR_NOT_NULL_FATAL(p);
    return p;
}

static void built_in(void)
{
    size_t n = 0;
    for (const char *name; (name = profile_builtin(n)) != NULL; n++) {
        struct err err = {0};
        struct profile *p = profile_read(name, slice_str(profile_text(name)), name, &err);
        if (p == NULL)
            fprintf(stderr, "%s\n", err.text);
        CU_ASSERT_PTR_NOT_NULL_FATAL(p);
        CU_ASSERT_STRING_EQUAL(profile_name(p), name);
        CU_ASSERT_STRING_EQUAL(profile_word(p, 0), name);
        CU_ASSERT_TRUE(profile_about(p)[0] != 0);
        profile_free(p);
    }
    CU_ASSERT_EQUAL(n, 12);
    CU_ASSERT_PTR_NULL(profile_text("none"));
}

static void refused(void)
{
    bad("", "toy.yaml: the file must be a mapping");
    bad(MODEL, "'command'");
    bad(HEAD "comand: x\n", "toy.yaml:2: ");
    bad(HEAD "command: y\n", "toy.yaml:2");
    bad(HEAD "model: []\n", "toy.yaml:2: 'model'");
    bad(HEAD "model:\n  - { use: openai }\n", "toy.yaml:3: 'env'");
    bad(HEAD "model:\n  - { env: K }\n", "toy.yaml:3: 'use: PRESET'");
    bad(HEAD "model:\n  - { use: opnai, env: K }\n", "toy.yaml:3: no preset 'opnai'");
    bad(HEAD "model:\n  - { use: openai, env: K-1 }\n", "toy.yaml:3: 'K-1' is not the name");
    bad(HEAD "model:\n  - { env: K, rules: [] }\n", "toy.yaml:3: 'secret'");
    bad(HEAD "model:\n  - { secret: a b, env: K, rules: [] }\n", "toy.yaml:3: 'a b'");
    bad(HEAD "rules:\n  - allow: a.example\n  - allow: '*.b.example'\n", "toy.yaml:4: ");
    bad(HEAD "rules:\n  - a.example\n", "toy.yaml:3: a rule is a mapping");
    bad(HEAD "telemetry:\n  rules:\n    - { allow: 'x y' }\n", "toy.yaml:4: ");
    bad(HEAD "telemetry:\n  on: {}\n", "toy.yaml:3: ");
    bad(HEAD "env:\n  A: \"{{placeholder none}}\"\n", "toy.yaml:3: ");
    bad(HEAD "env:\n  1A: b\n", "toy.yaml:3: ");
    bad(HEAD "files:\n  /etc/x: y\n", "toy.yaml:3: '/etc/x' is not a path below the home");
    bad(HEAD "files:\n  a/../../x: y\n", "toy.yaml:3: ");
    bad(HEAD "files:\n  ./x: y\n", "toy.yaml:3: ");
    bad(HEAD "files:\n  x/: y\n", "toy.yaml:3: ");
    bad(HEAD "files:\n  x: '{{secret}}'\n", "toy.yaml:3: '{{'");
    bad(HEAD "files:\n  x: '{{placeholder a last}}'\n", "toy.yaml:3: '{{'");
    bad(HEAD "inside: {}\n", "toy.yaml:2: 'inside' needs 'secrets'");
    bad(HEAD "inside: { secrets: {}, login: [], rules: [] }\n",
        "toy.yaml:2: 'inside' needs 'kept'");
    bad(HEAD "inside: { secrets: {}, login: [], kept: [], rules: [], more: 1 }\n", "toy.yaml:2: ");
    bad(HEAD "inside:\n  rules: []\n  secrets:\n    a: { env: A }\n", "toy.yaml:5: 'a' is {");
    bad(HEAD "inside:\n  rules: []\n  secrets:\n    a b: { captured: {} }\n", "toy.yaml:5: 'a b'");
    bad(HEAD "inside:\n  rules: []\n  login: []\n  kept: [{ allow: 'x y' }]\n  secrets: {}\n",
        "toy.yaml:5: ");
    bad(HEAD "inside:\n  login: []\n  kept: []\n  rules: []\n  secrets: {}\n  files:\n    /x: y\n",
        "toy.yaml:8: '/x'");
    bad(HEAD "forget: [a, ..]\n", "toy.yaml:2: '..'");
    bad(HEAD "about: |\n  two\n  lines\n", "one short line");
    bad(HEAD "a: &x 1\n", "toy.yaml:2");
}

static void read_back(void)
{
    const char *path, *text;
    struct profile *p = good("command: [toy, --fast]\nabout: A toy\nfiles:\n"
                             "  .toy/a.json: '{{placeholder x}} {{placeholder x last 20}}'\n"
                             "  b: '{{project}}'\nforget: .cache\n");
    CU_ASSERT_STRING_EQUAL(profile_about(p), "A toy");
    CU_ASSERT_STRING_EQUAL(profile_word(p, 1), "--fast");
    CU_ASSERT_PTR_NULL(profile_word(p, 2));
    CU_ASSERT_TRUE(profile_file(p, 1, &path, &text));
    CU_ASSERT_STRING_EQUAL(path, "b");
    CU_ASSERT_STRING_EQUAL(text, "{{project}}");
    CU_ASSERT_FALSE(profile_file(p, 2, &path, &text));
    CU_ASSERT_STRING_EQUAL(profile_forgotten(p, 0), ".cache");
    CU_ASSERT_PTR_NULL(profile_forgotten(p, 1));
    profile_free(p);
}

/* ---- in a configuration ---- */

static const char whole[] =
    "command: toy\nmodel:\n  - { use: openai, env: [TOY_KEY, TOY_OTHER] }\n"
    "  - { secret: own, env: OWN_KEY, from: OWN_OLD, rules: [{ allow: own.example, with: { bearer: "
    "\"{{secret}}\" } }] }\n"
    "rules: [{ allow: docs.example }]\nenv: { A: profile, B: profile }\n"
    "telemetry: { rules: [{ allow: t.example }], quiet: { QUIET: '1' } }\n";

static struct config *with(const char *base, bool telemetry, const char *policy,
                           const char **ret_policy, struct err *err)
{
    struct profile *p = good(whole);
    struct config *c = base ? config_parse(slice_str(base), "test.yaml", err) : NULL;
    struct config_flags f = {
        .profile = p, .telemetry = telemetry, .policy = policy, .ret_policy = ret_policy};
    struct config *made = config_with_flags(c, &f, err);
    config_unref(c);
    profile_free(p);
    return made;
}

static bool allows(const struct config *c, const char *policy, const char *host)
{
    struct authority a;
    struct decision d;
    CU_ASSERT_EQUAL_FATAL(authority_parse(&a, SCHEME_HTTPS, slice_str(host)), 0);
    struct policy_request r = {&a, SLICE("GET"), SLICE("/v1/x")};
    policy_decide(config_policy(c, policy), &r, &d);
    return d.verdict == VERDICT_ALLOW;
}

static const char *variable(const struct config *c, const char *policy, const char *name)
{
    size_t n;
    const struct config_env *e = config_policy_env(c, policy, &n);
    for (size_t i = 0; i < n; i++)
        if (strcmp(e[i].name, name) == 0)
            return e[i].value;
    return "";
}

static void clear(void)
{
    unsetenv("TOY_KEY");
    unsetenv("TOY_OTHER");
    unsetenv("OWN_KEY");
    unsetenv("OWN_OLD");
}

static void no_key(void)
{
    struct err err = {0};
    const char *policy = NULL;
    clear();
    CU_ASSERT_PTR_NULL(with(NULL, false, NULL, &policy, &err));
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "export TOY_KEY or OWN_KEY"));
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "secrets: { openai: { file: /PATH } }"));
}

static void by_variables(void)
{
    struct err err = {0};
    const char *policy = NULL;
    clear();
    setenv("OWN_OLD", "x", 1);
    struct config *c = with(NULL, false, NULL, &policy, &err);
    CU_ASSERT_PTR_NOT_NULL_FATAL(c);
    CU_ASSERT_STRING_EQUAL(policy, "toy");
    CU_ASSERT_TRUE(allows(c, "toy", "own.example") && allows(c, "toy", "docs.example"));
    CU_ASSERT_FALSE(allows(c, "toy", "api.openai.com") || allows(c, "toy", "t.example"));
    CU_ASSERT_STRING_EQUAL(config_secret(c, "own")->source, "OWN_OLD");
    CU_ASSERT_PTR_NULL(config_secret(c, "openai"));
    CU_ASSERT_STRING_EQUAL(variable(c, "toy", "OWN_KEY"), "{{placeholder own}}");
    CU_ASSERT_STRING_EQUAL(variable(c, "toy", "TOY_KEY"), "");
    CU_ASSERT_STRING_EQUAL(variable(c, "toy", "QUIET"), "1");
    config_unref(c);
    setenv("TOY_OTHER", "x", 1);
    c = with(NULL, true, NULL, &policy, &err);
    CU_ASSERT_PTR_NOT_NULL_FATAL(c);
    CU_ASSERT_TRUE(allows(c, "toy", "api.openai.com") && allows(c, "toy", "t.example"));
    CU_ASSERT_STRING_EQUAL(config_secret(c, "openai")->source, "TOY_OTHER");
    CU_ASSERT_STRING_EQUAL(config_secret(c, "openai")->kind, "openai");
    CU_ASSERT_STRING_EQUAL(variable(c, "toy", "TOY_KEY"), "{{placeholder openai}}");
    CU_ASSERT_STRING_EQUAL(variable(c, "toy", "QUIET"), "");
    config_unref(c);
    clear();
}

/* What its program logs in with takes the place of its keys, where the flag says so. */
static void logs_in_inside(void)
{
    static const char text[] =
        "command: toy\nmodel:\n  - { use: openai, env: TOY_KEY }\n"
        "rules: [{ allow: docs.example }]\ninside:\n"
        "  secrets: { got: { captured: { keep: home } }, own: { captured: {} } }\n"
        "  login:\n    - { allow: auth.example, with: { bearer: got }, capture: { a: got, b: own } "
        "}\n"
        "  kept:\n    - { allow: kept.example, with: { bearer: got }, capture: { a: got, b: own } "
        "}\n  rules: [{ allow: api.example }]\n"
        "  files: { .toy: 'x {{placeholder got}}' }\nfiles: { .other: y }\n";
    static const char base[] = "version: 1\nsecrets: { own: { captured: { keep: home } } }\n";
    struct err err = {0};
    const char *policy = NULL, *path, *said;
    clear();
    struct profile *p = good(text), *plain = good(whole);
    struct config *c = config_parse(slice_str(base), "test.yaml", &err);
    struct config_flags f = {.profile = p, .ret_policy = &policy};
    CU_ASSERT_TRUE(profile_inside(p) && !profile_inside(plain));
    CU_ASSERT_TRUE(profile_inside_file(p, 0, &path, &said) && strcmp(path, ".toy") == 0);
    CU_ASSERT_FALSE(profile_inside_file(p, 1, &path, &said) ||
                    profile_inside_file(plain, 0, &path, &said));
    CU_ASSERT_PTR_NULL(config_with_flags(c, &f, &err));
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "export TOY_KEY"));
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "run --login-inside toy"));
    f.inside = PROFILE_LOGIN;
    setenv("TOY_KEY", "x", 1);
    struct config *made = config_with_flags(c, &f, &err);
    clear();
    CU_ASSERT_PTR_NOT_NULL_FATAL(made);
    CU_ASSERT_TRUE(allows(made, "toy", "auth.example") && allows(made, "toy", "docs.example"));
    CU_ASSERT_TRUE(allows(made, "toy", "api.example"));
    CU_ASSERT_FALSE(allows(made, "toy", "api.openai.com") || allows(made, "toy", "kept.example"));
    CU_ASSERT_STRING_EQUAL(config_secret(made, "got")->derived->text[SPEC_KEEP], "home");
    CU_ASSERT_STRING_EQUAL(config_secret(made, "own")->derived->text[SPEC_KEEP], "home");
    CU_ASSERT_STRING_EQUAL(variable(made, "toy", "TOY_KEY"), "");
    config_unref(made);
    f.inside = PROFILE_KEPT;
    made = config_with_flags(c, &f, &err);
    CU_ASSERT_PTR_NOT_NULL_FATAL(made);
    CU_ASSERT_TRUE(allows(made, "toy", "kept.example") && allows(made, "toy", "api.example"));
    CU_ASSERT_FALSE(allows(made, "toy", "auth.example"));
    config_unref(made);
    config_unref(c);
    profile_free(plain);
    profile_free(p);
}

static void beside_a_configuration(void)
{
    static const char base[] =
        "version: 1\nsecrets: { own: { file: /own } }\npolicies:\n  dev:\n    env: { A: mine }\n"
        "    rules: [ { allow: dev.example } ]\n";
    struct err err = {0};
    const char *policy = NULL;
    clear();
    struct config *c = with(base, false, NULL, &policy, &err);
    CU_ASSERT_PTR_NOT_NULL_FATAL(c);
    CU_ASSERT_STRING_EQUAL(policy, "toy");
    CU_ASSERT_EQUAL(config_secret(c, "own")->store, STORE_FILE);
    CU_ASSERT_TRUE(allows(c, "toy", "own.example"));
    CU_ASSERT_FALSE(allows(c, "toy", "dev.example") || allows(c, "dev", "own.example"));
    config_unref(c);
    c = with(base, false, "dev", &policy, &err);
    CU_ASSERT_PTR_NOT_NULL_FATAL(c);
    CU_ASSERT_STRING_EQUAL(policy, "dev");
    CU_ASSERT_TRUE(allows(c, "dev", "own.example") && allows(c, "dev", "dev.example"));
    CU_ASSERT_STRING_EQUAL(variable(c, "dev", "A"), "mine");
    CU_ASSERT_STRING_EQUAL(variable(c, "dev", "B"), "profile");
    config_unref(c);
}

static void suite_profile(void)
{
    CU_pSuite s = CU_add_suite("profile", NULL, NULL);
    CU_add_test(s, "built_in", built_in);
    CU_add_test(s, "refused", refused);
    CU_add_test(s, "read_back", read_back);
    CU_add_test(s, "no_key", no_key);
    CU_add_test(s, "by_variables", by_variables);
    CU_add_test(s, "logs_in_inside", logs_in_inside);
    CU_add_test(s, "beside_a_configuration", beside_a_configuration);
}

void tap_suites(void)
{
    suite_profile();
}
