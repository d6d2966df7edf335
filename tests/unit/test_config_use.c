/* What a configuration becomes: presets, flags of run, JSON and back, warnings, files. */
#include <CUnit/CUnit.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config.h"
#include "config_fixture.h"

#define V "version: 1\n"

static enum verdict decide(const struct policy *p, const char *method, const char *host,
                           const char *path, const char **secret)
{
    struct authority a;
    struct decision d;
    CU_ASSERT_EQUAL_FATAL(authority_parse(&a, SCHEME_HTTPS, slice_str(host)), 0);
    struct policy_request r = {&a, slice_str(method), slice_str(path)};
    policy_decide(p, &r, &d);
    *secret = d.verdict == VERDICT_ALLOW && d.rule->credential ? d.rule->credential->secret : "";
    return d.verdict;
}

static void presets(void)
{
    struct config *c = good(
        V
        "secrets: { gh: { env: G }, openai: { env: O }, an: { env: A, kind: openai } }\npolicies:\n"
        "  p:\n    rules:\n      - { use: github, secret: gh }\n      - use: openai\n"
        "      - { use: anthropic, secret: an }\n      - deny: api.github.com/gists/**\n"
        "  r:\n    rules: [ { use: github, secret: gh, access: read-only } ]\n");
    const struct policy *p = config_policy(c, "p");
    const char *s;
    size_t n;
    CU_ASSERT_EQUAL(decide(p, "POST", "api.github.com", "/graphql", &s), VERDICT_ALLOW);
    CU_ASSERT_STRING_EQUAL(s, "gh");
    CU_ASSERT_EQUAL(decide(p, "POST", "uploads.github.com", "/x", &s), VERDICT_ALLOW);
    CU_ASSERT_STRING_EQUAL(s, "gh");
    CU_ASSERT_EQUAL(decide(p, "POST", "github.com", "/a/b.git/git-receive-pack", &s),
                    VERDICT_ALLOW);
    CU_ASSERT_STRING_EQUAL(s, "gh");
    CU_ASSERT_EQUAL(decide(p, "GET", "codeload.github.com", "/a/b/zip/x", &s), VERDICT_ALLOW);
    CU_ASSERT_STRING_EQUAL(s, "");
    CU_ASSERT_EQUAL(decide(p, "POST", "codeload.github.com", "/a", &s), VERDICT_DENY);
    CU_ASSERT_EQUAL(decide(p, "GET", "github.com", "/login", &s), VERDICT_DENY);
    CU_ASSERT_EQUAL(decide(p, "GET", "api.github.com", "/gists/1", &s), VERDICT_DENY);
    CU_ASSERT_EQUAL(decide(p, "POST", "api.openai.com", "/v1/responses", &s), VERDICT_ALLOW);
    CU_ASSERT_STRING_EQUAL(s, "openai");
    CU_ASSERT_EQUAL(decide(p, "POST", "api.openai.com", "/v2", &s), VERDICT_DENY);
    CU_ASSERT_EQUAL(decide(p, "POST", "api.anthropic.com", "/v1/messages", &s), VERDICT_ALLOW);
    CU_ASSERT_STRING_EQUAL(s, "an");
    p = config_policy(c, "r");
    CU_ASSERT_EQUAL(decide(p, "GET", "api.github.com", "/user", &s), VERDICT_ALLOW);
    CU_ASSERT_EQUAL(decide(p, "POST", "api.github.com", "/graphql", &s), VERDICT_DENY);
    CU_ASSERT_EQUAL(decide(p, "POST", "github.com", "/a/b/git-upload-pack", &s), VERDICT_ALLOW);
    CU_ASSERT_EQUAL(decide(p, "POST", "github.com", "/a/b/git-receive-pack", &s), VERDICT_DENY);
    CU_ASSERT_STRING_EQUAL(config_secret(c, "gh")->kind, "github-pat"); /* from the preset */
    CU_ASSERT_STRING_EQUAL(config_secret(c, "openai")->kind, "openai");
    CU_ASSERT_STRING_EQUAL(config_secret(c, "an")->kind, "openai"); /* the user's word stands */
    config_policy_secrets(c, "p", &n);
    CU_ASSERT_EQUAL(n, 3);
    const char *const *hosts = config_policy_git_hosts(c, "p", &n);
    CU_ASSERT_EQUAL_FATAL(n, 1);
    CU_ASSERT_STRING_EQUAL(hosts[0], "github.com");
    config_unref(c);
}

static void preset_errors(void)
{
    says(V "policies:\n  p:\n    rules:\n      - use: github\n", 5, "takes the secret 'github'");
    says(V "policies:\n  p:\n    rules:\n      - use: github\n        secret: gh\n", 5,
         "no secret 'gh' is declared");
    says(V "policies:\n  p:\n    rules:\n      - use: gihub\n", 5, "did you mean 'github'?");
    says(V "policies:\n  p:\n    rules:\n      - use: slack-thing\n", 5,
         "there are anthropic, apt, azure-openai, ");
    says(V "secrets: { github: { env: G } }\npolicies:\n  p:\n    rules:\n      - use: github\n"
           "        cookies: pass\n",
         7, "does not go with 'use'");
    says(V "policies:\n  p:\n    rules:\n      - allow: a.com\n        secret: s\n", 6, "preset");
    /* a preset's rule that clashes is told by the line of its `use` */
    says(V "secrets: { openai: { env: G } }\npolicies:\n  p:\n    rules:\n"
           "      - allow: api.openai.com/*/models\n\n      - use: openai\n",
         8, "/etc/durward/t.yaml:6 both allow GET https://api.openai.com/v1/models");
    static const char *const names[] = {"github", "openai", "anthropic"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        CU_ASSERT_PTR_NOT_NULL(preset_text(names[i]));
    CU_ASSERT_PTR_NULL(preset_text("git"));
    CU_ASSERT_STRING_EQUAL(preset_kind_for_host("api.github.com"), "github-pat");
    CU_ASSERT_STRING_EQUAL(preset_kind_for_host("GitHub.com"), "github-pat");
    CU_ASSERT_STRING_EQUAL(preset_kind_for_host("api.openai.com"), "openai");
    CU_ASSERT_STRING_EQUAL(preset_kind_for_host("api.anthropic.com"), "anthropic");
    CU_ASSERT_STRING_EQUAL(preset_kind_for_host("codeload.github.com"), "");
    CU_ASSERT_STRING_EQUAL(preset_kind_for_host("evil.com"), "");
}

static enum verdict asked(const char *preset, const char *hosts, const char *method,
                          const char *host, const char *path, const struct rule **rule)
{
    char text[1000];
    struct authority a;
    struct decision d;
    snprintf(text, sizeof text,
             V "secrets: { k: { env: K }, i: { env: I }, v: { env: V }, a: { aws_key: { "
               "access_key_id: i, secret_access_key: v } } }\npolicies: { p: { rules: [ { use: %s, "
               "secret: %s%s%s } ] } }\n",
             preset, strcmp(preset, "bedrock") == 0 ? "a" : "k", hosts ? ", preset_hosts: " : "",
             hosts ? hosts : "");
    struct config *c = good(text);
    CU_ASSERT_EQUAL_FATAL(authority_parse(&a, SCHEME_HTTPS, slice_str(host)), 0);
    struct policy_request r = {&a, slice_str(method), slice_str(path)};
    policy_decide(config_policy(c, "p"), &r, &d);
    static struct rule seen;
    static struct credential cred;
    static char header[100], user[100];
    seen = d.rule ? *d.rule : (struct rule){0};
    if (seen.credential) {
        cred = *seen.credential;
        snprintf(header, sizeof header, "%s", cred.header);
        snprintf(user, sizeof user, "%s", cred.user ? cred.user : "");
        cred.header = header;
        cred.user = user;
        seen.credential = &cred;
    }
    *rule = &seen;
    config_unref(c);
    return d.verdict;
}

/* Where each preset sends the secret, and where it does not. */
static const struct {
    const char *preset, *hosts, *method, *host, *path;
    const char *want; /* header, or header and user; "-": allowed without; NULL: denied */
} sent[] = {
    {"gemini", NULL, "POST", "generativelanguage.googleapis.com", "/v1beta/models/x:y",
     "x-goog-api-key"},
    {"gemini", NULL, "GET", "generativelanguage.googleapis.com", "/ws/x", "x-goog-api-key"},
    {"anthropic", NULL, "POST", "api.anthropic.com", "/v1/messages", "x-api-key"},
    {"anthropic", NULL, "GET", "api.anthropic.com", "/api/claude_code/settings", "x-api-key"},
    {"anthropic", NULL, "GET", "api.anthropic.com", "/api/claude_code/policy_limits", "x-api-key"},
    {"anthropic", NULL, "POST", "api.anthropic.com", "/api/claude_code/settings", NULL},
    {"anthropic", NULL, "GET", "api.anthropic.com", "/api/oauth/profile", NULL},
    {"azure-openai", "r.openai.azure.com", "POST", "r.openai.azure.com", "/openai/v1/responses",
     "api-key"},
    {"azure-openai", "r.openai.azure.com", "POST", "s.openai.azure.com", "/openai/v1/responses",
     NULL},
    {"azure-openai", "[r.openai.azure.com, s.openai.azure.com]", "POST", "s.openai.azure.com",
     "/openai/deployments/d/chat/completions", "api-key"},
    {"azure-openai", "r.openai.azure.com", "POST", "r.openai.azure.com", "/x", NULL},
    {"vertex", NULL, "POST", "aiplatform.googleapis.com", "/v1/projects/p", "authorization"},
    {"vertex", "eu-aiplatform.googleapis.com", "POST", "aiplatform.googleapis.com", "/v1/x", NULL},
    {"bedrock", "bedrock-runtime.eu-west-1.amazonaws.com", "POST",
     "bedrock-runtime.eu-west-1.amazonaws.com", "/model/m/converse", "authorization"},
    {"openrouter", NULL, "POST", "openrouter.ai", "/api/v1/chat/completions", "authorization"},
    {"openrouter", NULL, "POST", "openrouter.ai", "/settings", NULL},
    {"mistral", NULL, "POST", "api.mistral.ai", "/v1/chat/completions", "authorization"},
    {"groq", NULL, "POST", "api.groq.com", "/openai/v1/models", "authorization"},
    {"cerebras", NULL, "POST", "api.cerebras.ai", "/v1/chat/completions", "authorization"},
    {"cerebras", NULL, "POST", "api.cerebras.ai", "/x", NULL},
    {"together", NULL, "POST", "api.together.ai", "/v1/chat/completions", "authorization"},
    {"together", NULL, "POST", "api.together.xyz", "/v1/chat/completions", "authorization"},
    {"together", NULL, "POST", "www.together.ai", "/v1/chat/completions", NULL},
    {"xai", NULL, "POST", "api.x.ai", "/v1/chat/completions", "authorization"},
    {"deepseek", NULL, "POST", "api.deepseek.com", "/chat/completions", "authorization"},
    {"deepseek", NULL, "POST", "api.deepseek.com", "/anthropic/v1/messages", "x-api-key"},
    {"cohere", NULL, "POST", "api.cohere.com", "/v2/chat", "authorization"},
    {"huggingface", NULL, "GET", "huggingface.co", "/api/whoami-v2", "authorization"},
    {"huggingface", NULL, "POST", "router.huggingface.co", "/v1/chat/completions", "authorization"},
    {"huggingface", NULL, "GET", "cdn-lfs.hf.co", "/x", "-"},
    {"huggingface", NULL, "PUT", "cdn-lfs.hf.co", "/x", NULL},
    {"gitlab", NULL, "GET", "gitlab.com", "/api/v4/projects/1", "private-token"},
    {"gitlab", NULL, "GET", "gitlab.com", "/api/v4/user", "private-token"},
    {"gitlab", NULL, "GET", "gitlab.com", "/a/b.git/info/refs", "authorization oauth2"},
    {"gitlab", NULL, "GET", "gitlab.com", "/a/b", NULL},
    {"gitlab", "git.corp.example:8443", "GET", "git.corp.example:8443", "/api/v4/user",
     "private-token"},
    {"gitlab", "git.corp.example", "GET", "gitlab.com", "/api/v4/user", NULL},
    {"bitbucket", NULL, "GET", "api.bitbucket.org", "/2.0/user", "authorization"},
    {"bitbucket", NULL, "POST", "bitbucket.org", "/a/b.git/git-receive-pack",
     "authorization x-token-auth"},
    {"github", NULL, "GET", "raw.githubusercontent.com", "/a/b/main/x", "authorization"},
    {"github", NULL, "PUT", "raw.githubusercontent.com", "/a/b/main/x", NULL},
    {"github", NULL, "GET", "media.githubusercontent.com", "/media/a/b", "-"},
    {"github", NULL, "POST", "github.com", "/a/b.git/info/lfs/objects/batch",
     "authorization x-access-token"},
    {"github", "git.corp.example", "GET", "git.corp.example", "/api/v3/user",
     "authorization x-access-token"},
    {"github", "git.corp.example", "POST", "git.corp.example", "/a/b/git-receive-pack",
     "authorization x-access-token"},
    {"github", "git.corp.example", "GET", "git.corp.example", "/login", NULL},
    {"github", "git.corp.example", "GET", "api.github.com", "/user", NULL},
    {"github", "{ api: [a.example, b.example] }", "GET", "b.example", "/user", "authorization"},
    {"github", "{ api: a.example }", "GET", "github.com", "/a/b/info/refs", NULL},
};

static void preset_files_all(void)
{
    for (size_t i = 0; i < ARRAY_LEN(sent); i++) {
        const struct rule *rule;
        char got[256] = "-";
        enum verdict said =
            asked(sent[i].preset, sent[i].hosts, sent[i].method, sent[i].host, sent[i].path, &rule);
        const struct credential *c = rule->credential;
        if (c)
            snprintf(got, sizeof got, "%s%s%s", c->header, c->user[0] ? " " : "", c->user);
        bool right = sent[i].want ? said == VERDICT_ALLOW && strcmp(got, sent[i].want) == 0
                                  : said == VERDICT_DENY;
        if (!right)
            printf("# %s %s%s: %s\n", sent[i].preset, sent[i].host, sent[i].path, got);
        CU_ASSERT(right);
    }
    for (size_t i = 0; preset_name(i + 1); i++)
        CU_ASSERT(strcmp(preset_name(i), preset_name(i + 1)) < 0);
}

static void preset_hosts_errors(void)
{
#define USE(more)                                                                                \
    V "secrets: { k: { env: K } }\npolicies:\n  p:\n    rules:\n      - { secret: k, use: " more \
      " }\n"
    says(USE("azure-openai"), 6, "needs 'preset_hosts'");
    says(USE("bitbucket, preset_hosts: a.example"), 6, "has several hosts");
    says(USE("github, preset_hosts: [a.example]"), 6, "has several hosts");
    says(USE("github, preset_hosts: { apis: a.example }"), 6, "no host called 'apis'");
    says(USE("gitlab, preset_hosts: a.example/x"), 6, "is not a host");
    says(USE("gitlab, preset_hosts: '{{host}}'"), 6, "is not a host");
    says(USE("gitlab, preset_hosts: 'http://a.example'"), 6, "is not a host");
    says(USE("gitlab, preset_hosts: []"), 6, "empty list");
    says(USE("gitlab, preset_hosts: { host: '*' }"), 6, "is not a host");
    says(USE("openai, preset_hosts: .com"), 6, "anyone can get a name");
}

#define FULL                                                                                    \
    V "secrets:\n  gh: { env: GITHUB_TOKEN }\n  f: { file: rel }\n  c: { command: [./x, y] }\n" \
      "policies:\n  a:\n    env: { T: '{{placeholder gh}}' }\n    rules:\n"                     \
      "      - { use: github, secret: gh }\n      - deny: api.github.com/gists/**\n"            \
      "      - allow: [x.com/a/*, .y.x.com]\n        methods: [GET, POST]\n"                    \
      "        with: { header: { x-key: f } }\n        set_headers: { x-a: b }\n"               \
      "  b: { rules: [] }\nlisten: [ { http: 127.0.0.1:3128, policy: a } ]\n"                   \
      "upstream: { ca: [r.pem], resolve: { x.com: 127.0.0.1 } }\naudit: { dir: l }\n"           \
      "limits: { pool: 3 }\n"

static void round_trip(void)
{
    struct err e = {0};
    struct config *c = good(FULL);
    char *json = config_json(c);
    struct config *d = config_from_json(json, strlen(json), &e);
    CU_ASSERT_PTR_NOT_NULL_FATAL(d);
    char *again = config_json(d);
    CU_ASSERT_STRING_EQUAL(json, again);
    CU_ASSERT_STRING_EQUAL(config_secret(d, "f")->source, "/etc/durward/rel");
    CU_ASSERT_STRING_EQUAL(config_secret(d, "c")->command[0], "/etc/durward/x");
    CU_ASSERT_STRING_EQUAL(config_secret(d, "gh")->kind, "github-pat");
    CU_ASSERT_STRING_EQUAL(config_upstream_ca(d)[0], "/etc/durward/r.pem");
    CU_ASSERT_EQUAL(config_limits(d)->pool, 3);
    CU_ASSERT_PTR_NOT_NULL(strstr(json, "\"use\":\"github\"")); /* presets stay as written */
    char *pc = config_policy_json(c, "a"), *pd = config_policy_json(d, "a");
    CU_ASSERT_STRING_EQUAL(pc, pd);
    CU_ASSERT_PTR_NULL(strstr(pc, "\"use\""));
    struct policy *p = policy_parse(pc, strlen(pc), &e);
    CU_ASSERT_PTR_NOT_NULL_FATAL(p);
    CU_ASSERT_STRING_EQUAL(policy_name(p), "a");
    const struct policy *q = config_policy(c, "a");
    size_t n = 0;
    for (; policy_rule(p, n) && policy_rule(q, n); n++)
        CU_ASSERT_STRING_EQUAL(policy_rule(p, n)->text, policy_rule(q, n)->text);
    CU_ASSERT_EQUAL(n, 6);
    CU_ASSERT_PTR_NULL(policy_rule(p, n));
    CU_ASSERT_PTR_NULL(policy_rule(q, n));
    policy_free(p);
    /* relative files cannot come without a file's directory */
    static const char relative[] = "{\"version\":1,\"audit\":{\"dir\":\"x\"}}";
    CU_ASSERT_PTR_NULL(config_from_json(relative, strlen(relative), &e));
    CU_ASSERT_STRING_EQUAL(e.text,
                           "configuration: audit.dir: 'x': an absolute path is needed here");
    static const char twice[] = "{\"version\":1,\"version\":1}";
    CU_ASSERT_PTR_NULL(config_from_json(twice, strlen(twice), &e));
    CU_ASSERT_PTR_EQUAL(config_ref(c), c);
    config_unref(c);
    CU_ASSERT_EQUAL(config_policies(c), 2);
    config_unref(c);
    config_unref(d);
    config_unref(NULL);
    free(json);
    free(again);
    free(pc);
    free(pd);
}

static struct config *flagged(const struct config *c, const char *policy, const char *allow,
                              const char *secret, const char **name, struct err *e)
{
    struct config_flags f = {policy, &allow, allow != NULL, &secret, secret != NULL, name};
    return config_with_flags(c, &f, e);
}

static void flag_error(const struct config *c, const char *policy, const char *allow,
                       const char *secret, const char *want)
{
    struct err e = {0};
    struct config *made = flagged(c, policy, allow, secret, NULL, &e);
    if (made || strstr(e.text, want) == NULL) {
        printf("# %s, not %s\n", made ? "accepted" : e.text, want);
        CU_FAIL("a flag");
    }
    config_unref(made);
}

static void flags_alone(void)
{
    struct err e = {0};
    const char *name = NULL, *s;
    size_t n;
    struct config *c = flagged(NULL, NULL, "pkg.example/simple/**",
                               "GITHUB_TOKEN@api.github.com,github.com", &name, &e);
    CU_ASSERT_PTR_NOT_NULL_FATAL(c);
    CU_ASSERT_STRING_EQUAL(name, "default");
    const struct policy *p = config_policy(c, name);
    CU_ASSERT_EQUAL(decide(p, "GET", "pkg.example", "/simple/x", &s), VERDICT_ALLOW);
    CU_ASSERT_EQUAL(decide(p, "GET", "pkg.example", "/x", &s), VERDICT_DENY);
    CU_ASSERT_EQUAL(decide(p, "POST", "api.github.com", "/x", &s), VERDICT_ALLOW);
    CU_ASSERT_STRING_EQUAL(s, "GITHUB_TOKEN");
    CU_ASSERT_EQUAL(decide(p, "GET", "github.com", "/a/b/info/refs", &s), VERDICT_ALLOW);
    CU_ASSERT_STRING_EQUAL(s, "GITHUB_TOKEN");
    CU_ASSERT_EQUAL(decide(p, "POST", "uploads.github.com", "/x", &s), VERDICT_DENY);
    CU_ASSERT_EQUAL(decide(p, "GET", "codeload.github.com", "/x", &s), VERDICT_DENY);
    CU_ASSERT_STRING_EQUAL(config_secret(c, "GITHUB_TOKEN")->kind, "github-pat");
    CU_ASSERT_EQUAL(config_secret(c, "GITHUB_TOKEN")->store, STORE_ENV);
    CU_ASSERT_STRING_EQUAL(config_secret(c, "GITHUB_TOKEN")->source, "GITHUB_TOKEN");
    const struct config_env *env = config_policy_env(c, name, &n);
    CU_ASSERT_EQUAL_FATAL(n, 1);
    CU_ASSERT_STRING_EQUAL(env[0].name, "GITHUB_TOKEN");
    CU_ASSERT_STRING_EQUAL(env[0].value, "{{placeholder GITHUB_TOKEN}}");
    config_unref(c);
    c = flagged(NULL, "mine", NULL, "KEY@api.openai.com", &name, &e);
    CU_ASSERT_PTR_NOT_NULL_FATAL(c);
    CU_ASSERT_STRING_EQUAL(name, "mine");
    CU_ASSERT_EQUAL(decide(config_policy(c, "mine"), "POST", "api.openai.com", "/v1/x", &s),
                    VERDICT_ALLOW);
    CU_ASSERT_EQUAL(decide(config_policy(c, "mine"), "POST", "api.openai.com", "/x", &s),
                    VERDICT_DENY);
    config_unref(c);
    c = flagged(NULL, NULL, NULL, "KEY@x.example.com:8443", &name, &e);
    CU_ASSERT_PTR_NOT_NULL_FATAL(c);
    p = config_policy(c, name);
    CU_ASSERT_EQUAL(decide(p, "PUT", "x.example.com:8443", "/", &s), VERDICT_ALLOW);
    CU_ASSERT_STRING_EQUAL(s, "KEY");
    CU_ASSERT_EQUAL(policy_rule(p, 0)->credential->kind, CREDENTIAL_BEARER);
    CU_ASSERT_STRING_EQUAL(config_secret(c, "KEY")->kind, "");
    config_unref(c);
    c = flagged(NULL, NULL, NULL, NULL, &name, &e); /* nothing given: nothing allowed */
    CU_ASSERT_PTR_NOT_NULL_FATAL(c);
    CU_ASSERT_PTR_NULL(policy_rule(config_policy(c, name), 0));
    config_unref(c);
}

/* Where a value goes: as the flag says, or as the host's API takes it. */
static void flags_places(void)
{
    struct err e = {0};
    const char *name = NULL, *s;
    const struct policy *p;
    struct config *c;
    c = flagged(NULL, NULL, NULL,
                "KEY@a.example.com:X-Goog-Api-Key,b.example.com:8443:x-key,api.openai.com:bearer",
                &name, &e);
    CU_ASSERT_PTR_NOT_NULL_FATAL(c);
    p = config_policy(c, name);
    CU_ASSERT_EQUAL(decide(p, "PUT", "a.example.com", "/", &s), VERDICT_ALLOW);
    CU_ASSERT_STRING_EQUAL(policy_rule(p, 0)->credential->header, "x-goog-api-key");
    CU_ASSERT_STRING_EQUAL(policy_rule(p, 0)->credential->prefix, "");
    CU_ASSERT_EQUAL(decide(p, "PUT", "b.example.com:8443", "/", &s), VERDICT_ALLOW);
    CU_ASSERT_STRING_EQUAL(policy_rule(p, 1)->credential->header, "x-key");
    CU_ASSERT_EQUAL(decide(p, "PUT", "api.openai.com", "/any", &s), VERDICT_ALLOW);
    CU_ASSERT_EQUAL(policy_rule(p, 2)->credential->kind, CREDENTIAL_BEARER);
    config_unref(c);
    c = flagged(NULL, NULL, NULL,
                "KEY@r.openai.azure.com,generativelanguage.googleapis.com,gitlab.com", &name, &e);
    CU_ASSERT_PTR_NOT_NULL_FATAL(c); /* the places of known APIs */
    p = config_policy(c, name);
    static const char *const places[] = {"api-key", "api-key", "x-goog-api-key", "x-goog-api-key",
                                         "private-token"};
    for (size_t i = 0; i < ARRAY_LEN(places); i++) {
        CU_ASSERT_STRING_EQUAL(policy_rule(p, i)->credential->header, places[i]);
        CU_ASSERT_STRING_EQUAL(policy_rule(p, i)->credential->other->header, "authorization");
    }
    CU_ASSERT_EQUAL(decide(p, "POST", "s.openai.azure.com", "/openai/x", &s), VERDICT_DENY);
    config_unref(c);
    c = good(V "secrets: { k: { env: K } }\n"
               "policies: { p: { rules: [ { use: openai, secret: k, access: read-only } ] } }\n");
    CU_ASSERT_EQUAL(decide(config_policy(c, "p"), "GET", "api.openai.com", "/v1/realtime", &s),
                    VERDICT_ALLOW);
    CU_ASSERT_FALSE(policy_rule(config_policy(c, "p"), 0)->websocket);
    CU_ASSERT_PTR_NULL(policy_rule(config_policy(c, "p"), 1));
    config_unref(c);
}

static void flags_on_file(void)
{
    struct err e = {0};
    const char *name = NULL, *s;
    struct config *c, *base = good(FULL);
    c = flagged(base, "b", "z.com", "K@k.com", &name, &e);
    CU_ASSERT_PTR_NOT_NULL_FATAL(c);
    CU_ASSERT_STRING_EQUAL(name, "b");
    CU_ASSERT_EQUAL(decide(config_policy(c, "b"), "GET", "z.com", "/", &s), VERDICT_ALLOW);
    CU_ASSERT_EQUAL(decide(config_policy(c, "a"), "GET", "z.com", "/", &s), VERDICT_DENY);
    CU_ASSERT_EQUAL(decide(config_policy(base, "b"), "GET", "z.com", "/", &s), VERDICT_DENY);
    CU_ASSERT_EQUAL(config_limits(c)->pool, 3);
    config_unref(c);
    config_unref(base);
    base = good(V "policies: { only: { rules: [] } }\n");
    c = flagged(base, NULL, "z.com", NULL, &name, &e);
    CU_ASSERT_PTR_NOT_NULL_FATAL(c);
    CU_ASSERT_STRING_EQUAL(name, "only");
    config_unref(c);
    config_unref(base);
}

static void flag_errors(void)
{
    struct config *base = good(FULL);
    flag_error(base, NULL, "z.com", NULL, "name one with --policy: a, b");
    flag_error(base, "aa", "z.com", NULL,
               "--policy aa: /etc/durward/t.yaml has no such policy; it has: ");
    flag_error(base, "a", "api.github.com", NULL,
               "--allow api.github.com: this rule and the one at "
               "/etc/durward/t.yaml:10");
    flag_error(base, "a", "*.x.com", NULL, "--allow *.x.com: '*.x.com': no '*' in a host");
    flag_error(base, "a", NULL, "gh@x.com", "already");
    flag_error(NULL, "a b", NULL, NULL, "not a policy's name");
    flag_error(NULL, NULL, "a.com\xff", NULL, "UTF-8");
    flag_error(NULL, NULL, "", NULL, "--allow");
    flag_error(NULL, NULL, NULL, "KEY=value@x.com", "does not belong on a command line");
    flag_error(NULL, NULL, NULL, "KEY", "NAME@host");
    flag_error(NULL, NULL, NULL, "@x.com", "NAME@host");
    flag_error(NULL, NULL, NULL, "K-E@x.com", "environment variable");
    flag_error(NULL, NULL, NULL, "KEY@", "after '@' stand hosts");
    flag_error(NULL, NULL, NULL, "KEY@a.com,", "after '@' stand hosts");
    flag_error(NULL, NULL, NULL, "KEY@a.com:cookie", "--secret KEY@a.com:cookie: a cookie is not");
    flag_error(NULL, NULL, NULL, "KEY@a.com:x-forwarded-for", "frames or routes");
    flag_error(NULL, NULL, NULL, "KEY@a.com:x y", "'x y' is not a header's name");
    flag_error(NULL, NULL, NULL, "KEY@:x-key", "after '@' stand hosts");
    flag_error(NULL, NULL, NULL, "KEY@a.com/x", "after '@' stand hosts");
    flag_error(NULL, NULL, NULL, "KEY@http://a.com", "after '@' stand hosts");
    flag_error(NULL, NULL, NULL, "KEY@.com", "anyone can get a name");
    config_unref(base);
}

static void count_warning(void *arg, const char *text)
{
    static const char *const want[] = {
        "t.yaml:8: \"deny a.com/x\" stands inside the wider \"allow a.com\"", "placeholder of 's'",
        "no rule uses the secret 's'", "lets the client send 'x-foo-api-key', which is a key's"};
    unsigned *seen = arg;
    for (unsigned i = 0; i < ARRAY_LEN(want); i++)
        if (strstr(text, want[i]))
            *seen += 1u << i * 8;
}

static void warnings(void)
{
    unsigned seen = 0;
    struct config *c = good(V "secrets: { s: { env: S } }\npolicies:\n  p:\n"
                              "    env: { A: '{{placeholder s}}' }\n    rules:\n"
                              "      - allow: a.com\n      - deny: a.com/x\n      - deny: b.com\n");
    config_warnings(c, count_warning, &seen);
    CU_ASSERT_EQUAL(seen, 0x010101);
    config_unref(c);
    c = good(V "secrets: { s: { env: S } }\npolicies: { p: { rules: [ { allow: a.com, with: { "
               "bearer: s }, not_credentials: [x-foo-token, x-trace-id, x-foo-key] } ] } }\n");
    seen = 0;
    config_warnings(c, count_warning, &seen);
    CU_ASSERT_EQUAL(seen, 0);
    config_unref(c);
    c = good(V "secrets: { s: { env: S } }\npolicies: { p: { rules: [ { allow: a.com, with: { "
               "bearer: s }, not_credentials: [x-foo-token, x-foo-api-key] } ] } }\n");
    seen = 0;
    config_warnings(c, count_warning, &seen);
    CU_ASSERT_EQUAL(seen, 1u << 24);
    config_unref(c);
    c = good(V "policies: { p: { rules: [ { allow: a.com/x }, { deny: a.com } ] } }\n");
    seen = 0;
    config_warnings(c, count_warning, &seen);
    CU_ASSERT_EQUAL(seen, 0);
    config_unref(c);
    c = good(V "secrets: { p: { env: P }, s: { postgres_login: { user: u, password: p } } }\n"
               "fleet: { postgres: 'postgres://db.example/fleet', login: s }\n"
               "policies: { p: { rules: [ { allow: a.com } ] } }\n");
    seen = 0;
    config_warnings(c, count_warning, &seen);
    CU_ASSERT_EQUAL(seen, 0);
    config_unref(c);
}

static void count_idle(void *arg, const char *text)
{
    unsigned line = 0;
    const char *at = strstr(text, "t.yaml:");
    if (at && strstr(text, "never decides") && sscanf(at, "t.yaml:%u", &line) == 1)
        *(unsigned *)arg |= 1u << line;
}

/* Rules that decide no request, and others that look like it. */
static void idle_rules(void)
{
    unsigned seen = 0;
    struct config *c = good(V "secrets: { s: { env: S } }\npolicies:\n  p:\n    rules:\n"
                              "      - deny: a.com/**\n"
                              "      - allow: a.com/x\n" /* 7 */
                              "      - allow: [a.com/y, b.com]\n"
                              "      - ask: c.com\n"
                              "      - allow: c.com/x\n" /* 10 */
                              "      - { deny: d.com, methods: [GET] }\n"
                              "      - { allow: d.com, methods: [GET, PUT] }\n"
                              "      - { allow: e.com/**, budget: { requests: 1/h } }\n"
                              "      - { allow: e.com/**, budget: { requests: 2/h } }\n" /* 14 */
                              "      - allow: f.com/**\n"
                              "      - allow: f.com/**\n"
                              "      - deny: .g.com\n"
                              "      - ask: [www.g.com, x.g.com/y]\n" /* 18 */
                              "      - allow: g.com\n");
    config_warnings(c, count_idle, &seen);
    CU_ASSERT_EQUAL(seen, 1u << 7 | 1u << 10 | 1u << 14 | 1u << 18);
    config_unref(c);
}

static void keep_last(void *arg, const char *text)
{
    snprintf(arg, 400, "%s", text);
}

/* Entries of `kubernetes` that let nothing pass. */
static void idle_entries(void)
{
    static const struct {
        const char *rule, *warned;
    } rows[] = {
        {"kubernetes: { verbs: create, resources: pods/exec }",
         "entry 1 of 'kubernetes' is of streams"},
        {"kubernetes: { verbs: '*', resources: [pods, pods/attach] }", "need 'websocket: true'"},
        {"websocket: true, kubernetes: { verbs: create, resources: pods/exec }", ""},
        {"kubernetes: { verbs: get, resources: pods/portforward }", ""},
        {"kubernetes: [ { verbs: get, resources: pods }, { verbs: create, resources: pods, names: "
         "x } ]",
         "entry 2 of 'kubernetes' has 'names'"},
        {"kubernetes: { verbs: [create, get], resources: pods, names: x }", ""},
        {"kubernetes: { verbs: create, resources: pods/eviction, names: x }", ""},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char text[400], last[400] = "";
        snprintf(text, sizeof text, V "policies: { p: { rules: [ { allow: a.com, %s } ] } }\n",
                 rows[i].rule);
        struct config *c = good(text);
        config_warnings(c, keep_last, last);
        CU_ASSERT(rows[i].warned[0] ? strstr(last, rows[i].warned) != NULL : last[0] == 0);
        config_unref(c);
    }
}

/* A login that a broker's rule uses is used. */
static void logins_are_used(void)
{
    static const char *const kinds[][2] = {{"smtp://a.com", "smtp_login"},
                                           {"imap://a.com", "imap_login"},
                                           {"rediss://a.com", "redis_login"},
                                           {"mysql://a.com/b", "mysql_login"},
                                           {"postgres://a.com/b", "postgres_login"}};
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        unsigned seen = 0;
        char text[400];
        snprintf(text, sizeof text,
                 V
                 "secrets: { w: { env: W }, s: { %s: { user: u, password: w } } }\npolicies: { p: "
                 "{ rules: [ { allow: '%s', with: { %s: s } } ] } }\n",
                 kinds[i][1], kinds[i][0], kinds[i][1]);
        struct config *c = good(text);
        config_warnings(c, count_warning, &seen);
        CU_ASSERT_EQUAL(seen, 0);
        config_unref(c);
    }
}

/* So is the certificate beside it, and the back of its broker may have it. */
static void certificates_are_used(void)
{
    unsigned seen = 0;
    size_t n;
    struct config *c =
        good(V "secrets: { w: { env: W }, s: { postgres_login: { user: u, password: w } },"
               " c: { client_certificate: { certificate: w, key: w } } }\n"
               "policies: { p: { rules: [ { allow: 'postgres://a.com/b', with: { postgres_login: s,"
               " client_certificate: c } } ] } }\n");
    config_warnings(c, count_warning, &seen);
    CU_ASSERT_EQUAL(seen, 0);
    const char *const *names = config_policy_broker_secrets(c, "p", SCHEME_POSTGRES, &n);
    CU_ASSERT(n == 2 && strcmp(names[0], "s") == 0 && strcmp(names[1], "c") == 0);
    config_unref(c);
}

static void write_file(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    CU_ASSERT_FATAL(fd >= 0);
    CU_ASSERT_EQUAL(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
}

static void files(void)
{
    char dir[] = "/tmp/durward-test-XXXXXX", path[200], sub[200];
    struct err e = {0};
    CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(dir));
    snprintf(sub, sizeof sub, "%s/durward", dir);
    CU_ASSERT_EQUAL(mkdir(sub, 0700), 0);
    snprintf(path, sizeof path, "%s/durward/durward.yaml", dir);
    write_file(path, V "audit: { dir: here }\n");
    struct config *c = config_load(path, &e);
    CU_ASSERT_PTR_NOT_NULL_FATAL(c);
    char want[220];
    snprintf(want, sizeof want, "%s/here", sub);
    CU_ASSERT_STRING_EQUAL(config_audit_dir(c), want);
    config_unref(c);
    CU_ASSERT_PTR_NULL(config_load(sub, &e));
    CU_ASSERT_PTR_NOT_NULL(strstr(e.text, "not a file"));
    CU_ASSERT_PTR_NULL(config_load("/nonexistent/x.yaml", &e));
    CU_ASSERT_EQUAL(e.code, ERR_SYS);
    unsetenv("DURWARD_CONFIG");
    setenv("XDG_CONFIG_HOME", dir, 1);
    char *found = config_find(&e);
    CU_ASSERT_PTR_NOT_NULL_FATAL(found);
    CU_ASSERT_STRING_EQUAL(found, path);
    free(found);
    setenv("DURWARD_CONFIG", "/nonexistent/x.yaml", 1);
    CU_ASSERT_PTR_NULL(config_find(&e)); /* named and missing: nothing else instead */
    setenv("DURWARD_CONFIG", "durward.yaml", 1);
    CU_ASSERT_PTR_NULL(config_find(&e));
    CU_ASSERT_PTR_NOT_NULL(strstr(e.text, "absolute"));
    setenv("DURWARD_CONFIG", path, 1);
    found = config_find(&e);
    CU_ASSERT_PTR_NOT_NULL_FATAL(found);
    CU_ASSERT_STRING_EQUAL(found, path);
    free(found);
    unsetenv("DURWARD_CONFIG");
    unsetenv("XDG_CONFIG_HOME");
    unlink(path);
    rmdir(sub);
    rmdir(dir);
    /* the current directory counts only for the relative paths of a file that is named so */
    c = config_parse(SLICE(V "audit: { dir: x }\n"), "t.yaml", &e);
    CU_ASSERT_PTR_NOT_NULL_FATAL(c);
    CU_ASSERT_EQUAL(config_audit_dir(c)[0], '/');
    config_unref(c);
}

#define P "policies: { p: { rules: [] } }\n"
#define FORWARDED(MORE) \
    V P "listen:\n  - { https: 10.0.0.1:1, policy: p, forwarded: { " MORE " } }\n"
#define URLS "url: 'https://gate.example/in', issuer: 'https://oidc.vercel.com/acme', "

static void listen_forwarded(void)
{
    size_t n;
    struct config *c = good(FORWARDED(URLS "team: t, project: q, keys: /k.json"));
    const struct config_listen *l = config_listens(c, &n);
    CU_ASSERT_EQUAL_FATAL(n, 1);
    CU_ASSERT_PTR_NOT_NULL_FATAL(l[0].forwarded);
    CU_ASSERT_STRING_EQUAL(l[0].forwarded->url, "https://gate.example/in");
    CU_ASSERT_STRING_EQUAL(l[0].forwarded->issuer, "https://oidc.vercel.com/acme");
    CU_ASSERT_STRING_EQUAL(l[0].forwarded->team, "t");
    CU_ASSERT_STRING_EQUAL(l[0].forwarded->project, "q");
    CU_ASSERT_STRING_EQUAL(l[0].forwarded->keys, "/k.json");
    config_unref(c);
    says(FORWARDED(URLS "keys: /k.json"), 4, "whose sandboxes");
    says(FORWARDED(URLS "team: t"), 4, "key set");
    says(FORWARDED("url: 'https://a/', issuer: 'https://b', team: t, keys: /k"), 4, "slash at its");
    says(FORWARDED("url: 'http://a', issuer: 'https://b', team: t, keys: /k"), 4,
         "not an https:// URL");
    says(FORWARDED("url: 'https://a?b', issuer: 'https://b', team: t, keys: /k"), 4,
         "not https://");
    says(FORWARDED("url: 'https://u@a', issuer: 'https://b', team: t, keys: /k"), 4,
         "not https://");
    says(FORWARDED("url: 'https://a', team: t, keys: /k"), 4, "'issuer' is missing");
    says(FORWARDED(URLS "team: t, keys: /k, jwks: x"), 4, "jwks");
    says(V P "listen:\n  - { https: 127.0.0.1:1, forwarded: { " URLS "team: t, keys: /k } }\n", 4,
         "needs a 'policy'");
    says(V P "listen:\n  - { http: 10.0.0.1:1, policy: p, forwarded: { " URLS
             "team: t, keys: /k } }\n",
         4, "in clear");
}

#define W V "audit:\n  notify:\n    when: [{ denied: 3, within: 1m }]\n    "

static void notify(void)
{
    struct config *c =
        good(V "audit:\n  anchor: { https: https://keep.example/x }\n"
               "  notify:\n    webhook: { url: \"https://hooks.example/in?k=1\", to: "
               "10.0.0.0/8 }\n    command: [tell, -x]\n    syslog: /run/log/in\n"
               "    when:\n      - { bytes_up: 5MB, within: 10m }\n"
               "      - { hosts: 30, within: 1h, then: pause }\n"
               "      - { reflected: 1, within: 24h, then: kill }\n");
    const struct config_notify *n = &config_audit(c)->notify;
    CU_ASSERT(n->n == 3 && strcmp(n->syslog, "/run/log/in") == 0 &&
              strcmp(n->command[0], "/etc/durward/tell") == 0);
    CU_ASSERT(n->when[0].measure == NOTIFY_BYTES_UP && n->when[0].limit == 5000000);
    CU_ASSERT(n->when[0].seconds == 600 && n->when[0].then == NOTIFY_ONLY);
    CU_ASSERT(n->when[1].measure == NOTIFY_HOSTS && n->when[1].then == NOTIFY_PAUSE);
    CU_ASSERT(n->when[2].measure == NOTIFY_REFLECTED && n->when[2].then == NOTIFY_KILL);
    CU_ASSERT_STRING_EQUAL(config_exporter_url(c, EXPORTER_WEBHOOK),
                           "https://hooks.example/in?k=1");
    char *json = config_exporter_json(c);
    CU_ASSERT_STRING_EQUAL(
        json, "{\"policy\":\"exporter\",\"rules\":[{\"allow\":\"https://hooks.example/in\","
              "\"methods\":[\"POST\"],\"to\":[\"10.0.0.0/8\"]},{\"allow\":"
              "\"https://keep.example/x\",\"methods\":[\"POST\"]}]}");
    free(json);
    config_unref(c);
    c = good(W "webhook: http://127.0.0.1:8080/x\n");
    json = config_exporter_json(c);
    CU_ASSERT_PTR_NOT_NULL(strstr(json, "\"to\":[\"127.0.0.1/32\"]"));
    free(json);
    config_unref(c);
    says(W "webhook: http://hooks.example/x\n", 5, "in clear only to an address of this machine");
    says(W "webhook: { to: 10.0.0.0/8 }\n", 5, "needs 'url'");
    says(W "webhook: { url: \"https://x/\", to: 0.0.0.0/0 }\n", 5, "too wide");
    says(W "webhook: https://a:b@c/x\n", 5, "not a plain");
    says(W "command: tell\n", 5, "is a list");
    says(W "mail: x\n", 5, "mail");
    says(V "audit:\n  notify: { syslog: true }\n", 3, "needs 'when'");
    says(V "audit:\n  notify: { when: [] }\n", 3, "1 to 16 entries");
    says(V "audit:\n  notify:\n    when: [{ within: 1m }]\n", 4, "what is counted");
    says(V "audit:\n  notify:\n    when: [{ denied: 3 }]\n", 4, "needs 'within'");
    says(V "audit:\n  notify:\n    when: [{ denied: 3, within: 1s }]\n", 4, "at least 10s");
    says(V "audit:\n  notify:\n    when: [{ denied: 3, hosts: 2, within: 1m }]\n", 4,
         "one measure an entry");
    says(V "audit:\n  notify:\n    when: [{ hosts: 1001, within: 1m }]\n", 4, "1000");
    says(V "audit:\n  notify:\n    when: [{ bytes_up: 5, within: 1m }]\n", 4, "such as 64MB");
    says(V "audit:\n  notify:\n    when: [{ denied: 3, within: 1m, then: stop }]\n", 4,
         "notify, pause, kill");
    says(V "notify: {}\n", 2, "notify");
    c = good(V "tracing: { otlp: \"http://127.0.0.1:4318/\", logs: false }\n");
    CU_ASSERT_STRING_EQUAL(config_exporter_url(c, EXPORTER_TRACES),
                           "http://127.0.0.1:4318/v1/traces");
    CU_ASSERT_PTR_NULL(config_exporter_url(c, EXPORTER_LOGS));
    config_unref(c);
    says(V "tracing: { logs: true }\n", 2, "needs 'otlp'");
    says(V "tracing: { otlp: http://collector:4318 }\n", 2, "in clear only");
    says(V "tracing: { otlp: \"https://x/?a\" }\n", 2, "the URL below which");
    says(V "tracing: { otlp: \"https://x\", logs: false, spans: false }\n", 2, "sends nothing");
}

#undef W

void suite_config_use(void);

/* What the controller serves: no way out of a sandbox. */
static void pages(void)
{
    size_t n;
    struct config *c =
        good(V P "listen:\n  - { metrics: 127.0.0.1:9464 }\n  - { console: '[::1]:9465' }\n"
                 "  - { http: 127.0.0.1:1, policy: p }\n");
    const struct config_listen *l = config_listens(c, &n);
    CU_ASSERT_EQUAL(n, 1);
    CU_ASSERT_STRING_EQUAL(l[0].address, "127.0.0.1:1");
    CU_ASSERT_STRING_EQUAL(config_metrics(c), "127.0.0.1:9464");
    CU_ASSERT_STRING_EQUAL(config_console(c), "[::1]:9465");
    config_unref(c);
    c = good(V P "listen: [{ metrics: '0.0.0.0:9464', insecure: true }]\n");
    CU_ASSERT_STRING_EQUAL(config_metrics(c), "0.0.0.0:9464");
    CU_ASSERT_PTR_NULL(config_console(c));
    config_unref(c);
    says(V P "listen:\n  - { metrics: 0.0.0.0:1 }\n", 4, "could read the metrics");
    says(V P "listen:\n  - { console: 0.0.0.0:1, insecure: true }\n", 4, "ssh -L");
    says(V P "listen:\n  - { metrics: 127.0.0.1:1, console: 127.0.0.1:2 }\n", 4, "two entries");
    says(V P "listen:\n  - { metrics: 127.0.0.1:1 }\n  - { metrics: 127.0.0.1:2 }\n", 5,
         "already: 127.0.0.1:1");
    says(V P "listen:\n  - { metrics: 127.0.0.1:1, policy: p }\n", 4, "unknown key 'policy'");
    says(V P "listen:\n  - { console: localhost:1 }\n", 4, "not ADDRESS:PORT");
}

void suite_config_use(void)
{
    CU_pSuite s = CU_add_suite("config use", NULL, NULL);
    CU_add_test(s, "presets", presets);
    CU_add_test(s, "presets: where each sends the secret", preset_files_all);
    CU_add_test(s, "presets: preset_hosts", preset_hosts_errors);
    CU_add_test(s, "presets: errors and names", preset_errors);
    CU_add_test(s, "round trip", round_trip);
    CU_add_test(s, "flags of run, without a file", flags_alone);
    CU_add_test(s, "flags of run: places", flags_places);
    CU_add_test(s, "flags of run, on a file", flags_on_file);
    CU_add_test(s, "flags of run: errors", flag_errors);
    CU_add_test(s, "warnings", warnings);
    CU_add_test(s, "logins of brokers are used", logins_are_used);
    CU_add_test(s, "certificates beside logins are used", certificates_are_used);
    CU_add_test(s, "warnings: entries of kubernetes that let nothing pass", idle_entries);
    CU_add_test(s, "rules that decide nothing", idle_rules);
    CU_add_test(s, "files", files);
    CU_add_test(s, "listeners that the controller serves", pages);
    CU_add_test(s, "audit: notify, and places", notify);
    CU_add_test(s, "listen: forwarded", listen_forwarded);
}

void tap_suites(void)
{
    suite_config_use();
}
