/* Rules of ssh://: what they allow, what a spelling cannot get past, and what is no rule. */
#include "inspect.h"
#include "ssh_facts.h"
#include "ssh_rule.h"

#include <stdio.h>
#include <string.h>

#include "tap_main.h"

#define KEY                        \
    "\"host_keys\":\"ssh-ed25519 " \
    "AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl\""
#define WITH "\"with\":{\"ssh_key\":\"k\"}"

static struct policy *parse(const char *rules, struct err *err)
{
    char json[8192];
    snprintf(json, sizeof json, "{\"policy\":\"p\",\"rules\":[%s]}", rules);
    err->text[0] = 0;
    return policy_parse(json, strlen(json), err);
}

static struct policy *good(const char *rules)
{
    struct err err = {0};
    struct policy *p = parse(rules, &err);
    if (p == NULL)
        fprintf(stderr, "# %s\n", err.text);
    CU_ASSERT_PTR_NOT_NULL_FATAL(p);
    return p;
}

static const char *decide(const struct policy *p, const char *at, const char *user,
                          enum ssh_verb verb, const char *text)
{
    struct authority a;
    struct decision d;
    const struct ssh_asked asked = {slice_str(user), verb, slice_str(text), false};
    CU_ASSERT_FATAL(authority_parse(&a, SCHEME_SSH, slice_str(at)) == 0);
    policy_ssh_decide(p, &a, &asked, &d);
    CU_ASSERT((d.verdict == VERDICT_ALLOW) == (strcmp(d.code, "ok") == 0));
    return d.code;
}

static void test_repositories(void)
{
    static const struct {
        const char *at, *user;
        enum ssh_verb verb;
        const char *path, *code;
    } rows[] = {
        {"github.com", "git", SSH_FETCH, "/acme/app", "ok"},
        {"github.com", "git", SSH_PUSH, "/acme/app.git", "ok"},
        {"github.com", "git", SSH_PUSH, "/acme/deep/app", "ok"},
        {"github.com", "git", SSH_FETCH, "/acme/secret", "denied_by_rule"},
        {"github.com", "git", SSH_FETCH, "/acme/secret.git", "denied_by_rule"},
        {"github.com", "git", SSH_FETCH, "/acme/SECRET", "denied_by_rule"},
        {"github.com", "git", SSH_FETCH, "/acme/../other/app", "path_ambiguous"},
        {"github.com", "git", SSH_FETCH, "/acme//app", "path_ambiguous"},
        {"github.com", "git", SSH_FETCH, "/acmes/app", "no_rule"},
        {"github.com", "git", SSH_FETCH, "/other/app", "no_rule"},
        {"github.com", "root", SSH_FETCH, "/acme/app", "no_rule"},
        {"github.com", "-oProxyCommand=x", SSH_FETCH, "/acme/app", "ssh_user"},
        {"github.com", "a/b", SSH_FETCH, "/acme/app", "ssh_user"},
        {"github.com:2222", "git", SSH_FETCH, "/acme/app", "no_rule"},
        {"gitlab.com", "git", SSH_FETCH, "/acme/app", "no_rule"},
        {"github.com", "git", SSH_FETCH, "/read/app", "ok"},
        {"github.com", "git", SSH_FETCH, "/read/app.git", "ok"},
        {"github.com", "git", SSH_PUSH, "/read/app", "method"},
        {"github.com", "git", SSH_FETCH, "/read/app.git.git", "no_rule"},
        {"github.com", "git", SSH_FETCH, "~/acme/app", "no_rule"},
        {"github.com", "git", SSH_FETCH, "~root/acme/app", "ssh_path"},
        {"github.com", "git", SSH_FETCH, "/~root/app", "ssh_path"},
        {"github.com", "git", SSH_FETCH, "acme/app", "ssh_path"},
        {"github.com", "git", SSH_FETCH, "--upload-pack=x", "ssh_path"},
        {"github.com", "git", SSH_FETCH, "/acme/a-b_c.d+e@f=g:h,i~j", "ok"},
        {"github.com", "git", SSH_FETCH, "/acme/$(id)", "ssh_path"},
        {"github.com", "git", SSH_FETCH, "/acme/`id`", "ssh_path"},
        {"github.com", "git", SSH_FETCH, "/acme/a b", "ssh_path"},
        {"github.com", "git", SSH_FETCH, "/acme/it's", "ssh_path"},
        {"github.com", "git", SSH_FETCH, "/acme/a;id", "ssh_path"},
        {"github.com", "git", SSH_FETCH, "/acme/a\\b", "ssh_path"},
        {"github.com", "git", SSH_FETCH, "/acme/a*", "ssh_path"},
        {"github.com", "git", SSH_FETCH, "/acme/secret/.git", "ssh_path"},
        {"github.com", "git", SSH_FETCH, "/acme/secret/.GIT", "ssh_path"},
        {"github.com", "git", SSH_FETCH, "/acme/secret/.git/modules/x", "ssh_path"},
        {"github.com", "git", SSH_FETCH, "~/.git", "ssh_path"},
        {"github.com", "git", SSH_FETCH, "/acme/app/.github", "ok"},
        {"github.com", "git", SSH_EXEC, "/acme/app", "no_rule"},
        {"github.com", "git", SSH_SHELL, "", "no_rule"},
    };
    struct policy *p =
        good("{\"allow\":\"ssh://git@github.com/acme/**\"," WITH "},"
             "{\"deny\":\"ssh://git@github.com/acme/secret\"},"
             "{\"allow\":\"ssh://git@github.com/read/app\",\"access\":\"read-only\"," WITH "}");
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const char *code = decide(p, rows[i].at, rows[i].user, rows[i].verb, rows[i].path);
        if (strcmp(code, rows[i].code) != 0)
            fprintf(stderr, "# %s@%s %s: %s, not %s\n", rows[i].user, rows[i].at, rows[i].path,
                    code, rows[i].code);
        CU_ASSERT_STRING_EQUAL(code, rows[i].code);
    }
    policy_free(p);
}

/* What else git asks for is a fetch or a push to the rules. */
static void test_more_of_git(void)
{
    static const struct {
        enum ssh_verb verb;
        const char *path, *code;
    } rows[] = {
        {SSH_ARCHIVE, "/read/app", "ok"},        {SSH_LFS_FETCH, "/read/app", "ok"},
        {SSH_LFS_PUSH, "/read/app", "method"},   {SSH_LFS_PUSH, "/acme/app", "ok"},
        {SSH_ARCHIVE, "/other/app", "no_rule"},  {SSH_LFS_FETCH, "/other/app", "no_rule"},
        {SSH_ARCHIVE, "/acme/.git", "ssh_path"}, {SSH_LFS_PUSH, "/acme/$(id)", "ssh_path"},
    };
    struct policy *p =
        good("{\"allow\":\"ssh://git@github.com/acme/**\"," WITH "},"
             "{\"allow\":\"ssh://git@github.com/read/app\",\"access\":\"read-only\"," WITH "}");
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        CU_ASSERT_STRING_EQUAL(decide(p, "github.com", "git", rows[i].verb, rows[i].path),
                               rows[i].code);
    policy_free(p);
}

static void test_commands(void)
{
    static const struct {
        const char *command, *code;
    } rows[] = {
        {"uptime", "ok"},         {"uptime ", "command"},     {"uptime; id", "command"},
        {"up", "command"},        {"show app", "ok"},         {"show app.service", "ok"},
        {"show -h", "command"},   {"show a b", "command"},    {"show a/b", "command"},
        {"show ..", "command"},   {"show a..b", "command"},   {"show $(id)", "command"},
        {"show a;id", "command"}, {"show a|id", "command"},   {"show a\nid", "command"},
        {"show 'a'", "command"},  {"show \\a", "command"},    {"show", "command"},
        {"show ", "command"},     {"tail -n 10 x.log", "ok"}, {"tail -n 10 .log", "command"},
        {"", "command"},          {"grep 'a' f", "ok"},       {"grep '-f' f", "command"},
        {"find \"a\"", "ok"},     {"find \"-a\"", "command"}, {"see /x/-a", "ok"},
    };
    struct policy *p = good(
        "{\"allow\":\"ssh://ops@h.example\",\"commands\":[\"uptime\",\"show *\","
        "\"tail -n * *.log\",\"grep '*' f\",\"find \\\"*\\\"\",\"see /x/*\"]," KEY "," WITH "}");
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const char *code = decide(p, "h.example", "ops", SSH_EXEC, rows[i].command);
        if (strcmp(code, rows[i].code) != 0)
            fprintf(stderr, "# '%s': %s, not %s\n", rows[i].command, code, rows[i].code);
        CU_ASSERT_STRING_EQUAL(code, rows[i].code);
    }
    CU_ASSERT_STRING_EQUAL(decide(p, "h.example", "ops", SSH_SHELL, ""), "method");
    CU_ASSERT_STRING_EQUAL(decide(p, "h.example", "root", SSH_EXEC, "uptime"), "no_rule");
    CU_ASSERT_STRING_EQUAL(decide(p, "h.example", "ops", SSH_FETCH, "/uptime"), "no_rule");
    policy_free(p);
}

/* On a terminal a pager is a shell: a command has none, unless its rule says so. */
static void test_terminals(void)
{
    static const struct {
        const char *keys;
        enum ssh_verb verb;
        const char *text, *code;
    } rows[] = {
        {"\"commands\":\"log\"", SSH_EXEC, "log", "ssh_terminal"},
        {"\"commands\":\"log\",\"terminal\":false", SSH_EXEC, "log", "ssh_terminal"},
        {"\"commands\":\"log\",\"terminal\":true", SSH_EXEC, "log", "ok"},
        {"\"commands\":\"log\",\"terminal\":true", SSH_EXEC, "id", "command"},
        {"\"commands\":\"log\",\"shell\":true", SSH_EXEC, "log", "ok"},
        {"\"shell\":true", SSH_SHELL, "", "ok"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char rule[512];
        struct authority a;
        struct decision d;
        struct ssh_asked asked = {SLICE("ops"), rows[i].verb, slice_str(rows[i].text), true};
        snprintf(rule, sizeof rule, "{\"allow\":\"ssh://ops@h.example\",%s," KEY "," WITH "}",
                 rows[i].keys);
        struct policy *p = good(rule);
        CU_ASSERT_FATAL(authority_parse(&a, SCHEME_SSH, SLICE("h.example")) == 0);
        policy_ssh_decide(p, &a, &asked, &d);
        CU_ASSERT_STRING_EQUAL(d.code, rows[i].code);
        policy_free(p);
    }
    struct policy *p = good("{\"allow\":\"ssh://git@github.com/acme/**\"," WITH "}");
    struct authority a;
    struct decision d;
    const struct ssh_asked fetch = {SLICE("git"), SSH_FETCH, SLICE("/acme/app"), true};
    CU_ASSERT_FATAL(authority_parse(&a, SCHEME_SSH, SLICE("github.com")) == 0);
    policy_ssh_decide(p, &a, &fetch, &d);
    CU_ASSERT_STRING_EQUAL(d.code, "ssh_terminal");
    policy_free(p);
}

/* A host's rules of one scheme say nothing of the other. */
static void test_schemes(void)
{
    struct policy *p = good("{\"allow\":\"ssh://git@github.com/acme/**\"," WITH "},"
                            "{\"allow\":\"other.example:22\"}");
    struct authority a;
    const struct policy_request r = {&a, SLICE("fetch"), SLICE("/git/acme/app")};
    struct decision d;
    CU_ASSERT_FATAL(authority_parse(&a, SCHEME_HTTPS, SLICE("github.com:22")) == 0);
    CU_ASSERT_EQUAL(policy_host(p, &a), 0);
    policy_decide(p, &r, &d);
    CU_ASSERT_EQUAL(d.verdict, VERDICT_DENY);
    CU_ASSERT_STRING_EQUAL(decide(p, "other.example", "git", SSH_FETCH, "/acme/app"), "no_rule");
    CU_ASSERT(policy_speaks(p, SCHEME_SSH) && policy_names_host(p, &a));
    CU_ASSERT(!policy_serves_tls(p, &a));
    CU_ASSERT(!policy_tainted(p, &a)); /* the key is sent nowhere */
    policy_free(p);
}

static void test_wrong(void)
{
    static const struct {
        const char *rule, *why;
    } rows[] = {
        {"{\"allow\":\"ssh://github.com/acme/**\"," WITH "}", "USER@HOST"},
        {"{\"allow\":\"ssh://git@github.com\"," WITH "}", "say what is allowed"},
        {"{\"allow\":\"ssh://git@github.com/acme/**\"}", "needs 'with"},
        {"{\"allow\":\"ssh://git@github.com/acme/**\",\"with\":{\"bearer\":\"k\"}}", "ssh_key"},
        {"{\"allow\":\"github.com\"," WITH "}", "goes with patterns of ssh://"},
        {"{\"allow\":\"github.com\",\"shell\":true}", "goes with patterns of ssh://"},
        {"{\"allow\":[\"github.com\",\"ssh://git@github.com/a/b\"]," WITH "}", "either patterns"},
        {"{\"allow\":\"ssh://git@own.example/acme/**\"," WITH "}", "host_keys"},
        {"{\"allow\":\"ssh://git@github.com:2222/acme/**\"," WITH "}", "host_keys"},
        {"{\"allow\":\"ssh://git@own.example/a/b\",\"host_keys\":\"ssh-rsa "
         "AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl\"," WITH "}",
         "is not a host key"},
        {"{\"allow\":\"ssh://git@own.example/a/b\",\"host_keys\":\"ssh-ed25519 "
         "AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJ\"," WITH "}",
         "is not a host key"},
        {"{\"allow\":\"ssh://git@own.example/a/b\",\"host_keys\":\"ecdsa-sha2-nistp384 "
         "AAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAIbmlzdHAyNTYAAABBBAAAAAAAAAAAAAAAAAAA"
         "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\"," WITH "}",
         "is not a host key"},
        {"{\"allow\":\"ssh://git@own.example/a/b\",\"host_keys\":\"ssh-dss AAAA\"," WITH "}",
         "not a host key"},
        {"{\"allow\":\"ssh://git@github.com/acme/**\",\"budget\":{\"cost\":\"2/d\"}," WITH "}",
         "'tokens' and 'cost' have no meaning for ssh://"},
        {"{\"ask\":\"ssh://git@github.com/acme/**\",\"allow\":\"a.com\"," WITH "}", "one of"},
        {"{\"allow\":\"ssh://git@github.com/a/b\",\"methods\":\"GET\"," WITH "}", "no meaning"},
        {"{\"allow\":\"ssh://o@h.example/x\",\"shell\":true," KEY "," WITH "}", "leave it out"},
        {"{\"allow\":\"ssh://o@h.example\",\"commands\":\"* x\"," KEY "," WITH "}", "first word"},
        {"{\"allow\":\"ssh://o@h.example\",\"commands\":\"ls **\"," KEY "," WITH "}", "one word"},
        {"{\"allow\":\"ssh://git@github.com/a/b\",\"terminal\":true," WITH "}", "'commands'"},
        {"{\"allow\":\"ssh://-o@h.example/x\"," KEY "," WITH "}", "USER@HOST"},
        {"{\"allow\":\"ssh://git@github.com/a/b\",\"access\":\"read-only\","
         "\"refs\":\"refs/heads/x\"," WITH "}",
         "narrows pushes"},
        {"{\"allow\":\"ssh://o@h.example\",\"commands\":\"ls\",\"refs\":\"refs/heads/x\"," KEY
         "," WITH "}",
         "narrows pushes"},
        {"{\"allow\":\"ssh://git@github.com/a/b\",\"refs\":\"main\"," WITH "}", "refs/"},
    };
    static const char budgeted[] =
        "{\"policy\":\"p\",\"budget\":{\"requests\":\"10/h\"},\"rules\":["
        "{\"allow\":\"ssh://git@github.com/acme/**\"," WITH "}]}";
    struct err over = {0};
    struct policy *counted = policy_parse(budgeted, sizeof budgeted - 1, &over);
    CU_ASSERT_PTR_NOT_NULL(counted); /* its back counts */
    policy_free(counted);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct err err = {0};
        struct policy *p = parse(rows[i].rule, &err);
        if (p || strstr(err.text, rows[i].why) == NULL)
            fprintf(stderr, "# %s: '%s'\n", rows[i].rule, p ? "taken" : err.text);
        CU_ASSERT(p == NULL && strstr(err.text, rows[i].why) != NULL);
        policy_free(p);
    }
}

/* What goes with which patterns. */
static void test_wrong_logins(void)
{
    static const struct {
        const char *rule, *why;
    } rows[] = {
        {"{\"allow\":\"ssh://git@github.com/acme/**\",\"with\":{\"bearer\":\"k\"}}",
         "'with: { ssh_certificate: SECRET }'"},
        {"{\"allow\":\"ssh://git@github.com/acme/**\",\"with\":{\"ssh_signing_key\":\"k\"}}",
         "what goes with ssh:// is"},
        {"{\"allow\":\"github.com\",\"with\":{\"ssh_certificate\":\"k\"}}",
         "'ssh_certificate' goes with patterns of ssh://"},
        {"{\"allow\":\"github.com\",\"with\":{\"ssh_password\":\"k\"}}",
         "'ssh_password' goes with patterns of ssh://"},
        {"{\"allow\":\"ssh-agent://git\",\"with\":{\"ssh_password\":\"k\"}}",
         "what goes with ssh-agent:// is"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct err err = {0};
        struct policy *p = parse(rows[i].rule, &err);
        if (p || strstr(err.text, rows[i].why) == NULL)
            fprintf(stderr, "# %s: '%s'\n", rows[i].rule, p ? "taken" : err.text);
        CU_ASSERT(p == NULL && strstr(err.text, rows[i].why) != NULL);
        policy_free(p);
    }
}

/* What a rule says of references both ends find in the rule that was decided by. */
static void test_refs(void)
{
    struct policy *p = good("{\"allow\":\"ssh://git@github.com/acme/**\","
                            "\"refs\":{\"names\":\"refs/heads/a/*\",\"delete\":true}," WITH "},"
                            "{\"allow\":\"ssh://git@github.com/open/**\"," WITH "}");
    struct authority a;
    struct decision d;
    struct ssh_asked push = {SLICE("git"), SSH_PUSH, SLICE("/acme/app"), false};
    CU_ASSERT_FATAL(authority_parse(&a, SCHEME_SSH, SLICE("github.com")) == 0);
    policy_ssh_decide(p, &a, &push, &d);
    CU_ASSERT_EQUAL_FATAL(d.verdict, VERDICT_ALLOW);
    const struct inspection *in = d.rule->inspection;
    CU_ASSERT_PTR_NOT_NULL_FATAL(in);
    CU_ASSERT(in->kind == INSPECT_GIT && in->refs_given && in->deletes && !in->force);
    CU_ASSERT(in->refs.n == 1 && strcmp(in->refs.list[0], "refs/heads/a/*") == 0);
    push.text = SLICE("/open/app");
    policy_ssh_decide(p, &a, &push, &d);
    CU_ASSERT(d.verdict == VERDICT_ALLOW && d.rule->inspection == NULL);
    policy_free(p);
}

static void test_git_commands(void)
{
    static const struct {
        const char *command;
        int verb; /* 0: it is no command at all */
        const char *text;
        bool relative;
    } rows[] = {
        {"git-upload-pack '/acme/app.git'", SSH_FETCH, "/acme/app.git", false},
        {"git upload-pack 'acme/app'", SSH_FETCH, "/acme/app", true},
        {"git-receive-pack '~/app/'", SSH_PUSH, "~/app", false},
        {"git-upload-pack '/it'\\''s'", SSH_FETCH, "/it's", false},
        {"git-upload-pack '/a'\\!'b'", SSH_FETCH, "/a!b", false},
        {"git-upload-pack '/a' '/b'", SSH_EXEC, "git-upload-pack '/a' '/b'", false},
        {"git-upload-pack /a", SSH_EXEC, "git-upload-pack /a", false},
        {"git-upload-pack '/a", SSH_EXEC, "git-upload-pack '/a", false},
        {"git-upload-pack '~root/a'", SSH_EXEC, "git-upload-pack '~root/a'", false},
        {"git-upload-pack '/a'; id", SSH_EXEC, "git-upload-pack '/a'; id", false},
        {"git-upload-archive '/acme/app.git'", SSH_ARCHIVE, "/acme/app.git", false},
        {"git-lfs-transfer '/acme/app.git' download", SSH_LFS_FETCH, "/acme/app.git", false},
        {"git-lfs-transfer acme/app.git upload", SSH_LFS_PUSH, "/acme/app.git", true},
        {"git-lfs-transfer ~/app upload", SSH_LFS_PUSH, "~/app", false},
        {"git-lfs-transfer /a", SSH_EXEC, "git-lfs-transfer /a", false},
        {"git-lfs-transfer /a delete", SSH_EXEC, "git-lfs-transfer /a delete", false},
        {"git-lfs-transfer /a /b upload", SSH_EXEC, "git-lfs-transfer /a /b upload", false},
        {"git-lfs-transfer /a;id upload", SSH_EXEC, "git-lfs-transfer /a;id upload", false},
        {"git-lfs-transfer  upload", SSH_EXEC, "git-lfs-transfer  upload", false},
        {"git-lfs-transfer upload", SSH_EXEC, "git-lfs-transfer upload", false},
        {"git-lfs-authenticate /a upload", SSH_EXEC, "git-lfs-authenticate /a upload", false},
        {"", 0, "", false},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct ssh_facts f = {.verb = 0};
        bool relative;
        int r = ssh_command_read(slice_str(rows[i].command), &f, &relative);
        CU_ASSERT_EQUAL(r, rows[i].verb ? 0 : -1);
        CU_ASSERT_EQUAL((int)f.verb, rows[i].verb);
        CU_ASSERT_STRING_EQUAL(f.text, rows[i].text);
        CU_ASSERT_EQUAL(relative, rows[i].relative);
        if (r < 0)
            continue;
        struct buf line;
        buf_init(&line, SSH_LINE_MAX);
        CU_ASSERT_EQUAL(ssh_command_write(&f, &line), 0);
        struct ssh_facts again = {.verb = 0};
        CU_ASSERT_EQUAL(ssh_command_read(buf_slice(&line), &again, &relative), 0);
        CU_ASSERT(again.verb == f.verb && strcmp(again.text, f.text) == 0);
        buf_free(&line);
    }
}

/* The longest path that a client may say is one that the other end reads, too. */
static void test_longest(void)
{
    char line[SSH_TEXT_MAX + 64], name[SSH_TEXT_MAX + 1];
    for (size_t n = SSH_TEXT_MAX - 6; n < SSH_TEXT_MAX; n++) {
        struct ssh_facts f = {.verb = 0}, again = {.verb = 0};
        struct buf made;
        bool relative;
        memset(name, 'a', n);
        name[n] = 0;
        snprintf(line, sizeof line, "git-upload-pack '%s'", name);
        if (ssh_command_read(slice_str(line), &f, &relative) < 0 || f.verb != SSH_FETCH)
            continue;
        buf_init(&made, SSH_LINE_MAX);
        CU_ASSERT_EQUAL(ssh_command_write(&f, &made), 0);
        CU_ASSERT_EQUAL(ssh_command_read(buf_slice(&made), &again, &relative), 0);
        CU_ASSERT(again.verb == f.verb && strcmp(again.text, f.text) == 0);
        buf_free(&made);
    }
}

static void test_facts(void)
{
    struct ssh_facts f = {.user = "git",
                          .verb = SSH_FETCH,
                          .text = "/a",
                          .git_protocol = 3,
                          .term = "xterm-256color",
                          .columns = 80,
                          .rows = 24},
                     back;
    struct buf b;
    buf_init(&b, SSH_FACTS_MAX);
    CU_ASSERT_EQUAL_FATAL(ssh_facts_put(&f, &b), 0);
    struct slice whole = buf_slice(&b);
    CU_ASSERT_EQUAL(ssh_facts_get(whole, &back), 0);
    CU_ASSERT(memcmp(&f, &back, sizeof f) == 0);
    for (size_t n = 0; n < whole.n; n++)
        CU_ASSERT_EQUAL(ssh_facts_get((struct slice){whole.p, n}, &back), -1);
    CU_ASSERT_EQUAL(buf_append(&b, "x", 1), 0);
    CU_ASSERT_EQUAL(ssh_facts_get(buf_slice(&b), &back), -1);
    f.verb = SSH_SHELL; /* with a text: no front says so */
    buf_clear(&b);
    CU_ASSERT(ssh_facts_put(&f, &b) == 0 && ssh_facts_get(buf_slice(&b), &back) < 0);
    f.verb = SSH_FORWARD; /* nor of one with a terminal */
    buf_clear(&b);
    CU_ASSERT(ssh_facts_put(&f, &b) == 0 && ssh_facts_get(buf_slice(&b), &back) < 0);
    f.verb = SSH_SHELL;
    f.text[0] = 0;
    f.term[0] = ';';
    buf_clear(&b);
    CU_ASSERT(ssh_facts_put(&f, &b) == 0 && ssh_facts_get(buf_slice(&b), &back) < 0);
    buf_free(&b);
}

static const char *decide_signature(const struct policy *p, const char *at, struct slice space)
{
    struct authority a;
    struct decision d;
    CU_ASSERT_FATAL(authority_parse(&a, SCHEME_SSH, slice_str(at)) == 0);
    policy_ssh_decide_signature(p, &a, space, &d);
    CU_ASSERT((d.verdict == VERDICT_ALLOW) == (strcmp(d.code, "ok") == 0));
    return d.code;
}

#define SIGNS "\"with\":{\"ssh_signing_key\":\"k\"}"

static void test_signatures(void)
{
    struct policy *p =
        good("{\"allow\":[\"ssh-agent://git\",\"ssh-agent://r@x.example\"]," SIGNS "},"
             "{\"deny\":\"ssh-agent://bad\"},"
             "{\"allow\":\"ssh://git@.durward.internal/**\"," KEY "," WITH "},"
             "{\"allow\":\"ssh://git@gate.durward.internal/**\"," KEY "," WITH "}");
    static const struct {
        struct slice space;
        const char *code;
    } rows[] = {
        {SLICE_INIT("git"), "ok"},
        {SLICE_INIT("r@x.example"), "ok"},
        {SLICE_INIT("file"), "no_rule"},
        {SLICE_INIT("Git"), "no_rule"},
        {SLICE_INIT("git2"), "no_rule"},
        {SLICE_INIT("bad"), "denied_by_rule"},
        {SLICE_INIT("BAD"), "denied_by_rule"},
        {SLICE_INIT(""), "ssh_agent_namespace"},
        {SLICE_INIT("a/b"), "ssh_agent_namespace"},
        {SLICE_INIT("git\0"), "ssh_agent_namespace"},
        {SLICE_INIT("%67it"), "ssh_agent_namespace"},
        {SLICE_INIT(".."), "path_ambiguous"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const char *code = decide_signature(p, SSH_AGENT_HOST, rows[i].space);
        if (strcmp(code, rows[i].code) != 0)
            fprintf(stderr, "# %.*s: %s\n", SL(rows[i].space), code);
        CU_ASSERT_STRING_EQUAL(code, rows[i].code);
    }
    CU_ASSERT_STRING_EQUAL(decide_signature(p, "github.com", SLICE("git")), "no_rule");
    CU_ASSERT_STRING_EQUAL(decide_signature(p, SSH_AGENT_HOST ":2222", SLICE("git")), "no_rule");
    /* a rule of signatures allows nothing else, at whatever host */
    CU_ASSERT(strcmp(decide(p, SSH_AGENT_HOST, "git", SSH_EXEC, "id"), "ok") != 0);
    CU_ASSERT(!policy_tainted(p, &(struct authority){.scheme = SCHEME_HTTPS, .host = "x.example"}));
    policy_free(p);
}

static void test_wrong_signatures(void)
{
    static const struct {
        const char *rule, *why;
    } rows[] = {
        {"{\"allow\":\"ssh-agent://*\"," SIGNS "}", "NAMESPACE"},
        {"{\"allow\":\"ssh-agent://git/x\"," SIGNS "}", "NAMESPACE"},
        {"{\"allow\":\"ssh-agent://\"," SIGNS "}", "NAMESPACE"},
        {"{\"allow\":\"ssh-agent://git\"}", "ssh_signing_key"},
        {"{\"allow\":\"ssh-agent://git\"," WITH "}", "ssh_signing_key"},
        {"{\"allow\":\"ssh://git@github.com/a/b\"," SIGNS "}", "ssh_key"},
        {"{\"allow\":\"github.com\"," SIGNS "}", "ssh-agent://"},
        {"{\"allow\":\"ssh-agent://git\",\"access\":\"read-only\"," SIGNS "}", "no meaning"},
        {"{\"allow\":\"ssh-agent://git\",\"to\":\"10.0.0.0/8\"," SIGNS "}", "no meaning"},
        {"{\"allow\":[\"ssh-agent://git\",\"github.com\"]," SIGNS "}", "either"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct err err = {0};
        struct policy *p = parse(rows[i].rule, &err);
        if (p || strstr(err.text, rows[i].why) == NULL)
            fprintf(stderr, "# %s: %s\n", rows[i].rule, err.text);
        CU_ASSERT(p == NULL && strstr(err.text, rows[i].why));
        policy_free(p);
    }
}

/* What the server may connect to: each name and address in its one form. */
static void test_targets(void)
{
    static const struct {
        const char *target, *code;
    } rows[] = {
        {"db.internal:5432", "ok"},
        {"db.internal:5433", "ssh_target"},
        {"x.db.internal:5432", "ssh_target"},
        {"a.apps.internal:443", "ok"},
        {"a.b.apps.internal:443", "ok"},
        {"apps.internal:443", "ssh_target"},
        {"aapps.internal:443", "ssh_target"},
        {".apps.internal:443", "ssh_target"},
        {"10.1.2.3:22", "ok"},
        {"11.1.2.3:22", "ssh_target"},
        {"10.1.2.3:23", "ssh_target"},
        {"[fd00::1]:22", "ok"},
        {"[fe00::1]:22", "ssh_target"},
        {"[2001:db8::5]:1", "ok"},
        {"[2001:db8::5]:65535", "ok"},
        {"[2001:db8::6]:1", "ssh_target"},
        {"192.0.2.7:80", "ok"},
        {"10.1.2.3.internal:22", "ssh_target"},
        {"DB.internal:5432", "ssh_target"},
        {"db.internal.:5432", "ssh_target"},
        {"db.internal:05432", "ssh_target"},
        {"db.internal", "ssh_target"},
        {"db.internal:0", "ssh_target"},
        {"db.internal:65536", "ssh_target"},
        {"10.1.515:22", "ssh_target"},
        {"0x0a.1.2.3:22", "ssh_target"},
        {"[FD00::1]:22", "ssh_target"},
        {"[::ffff:10.1.2.3]:22", "ssh_target"},
        {"fd00::1:22", "ssh_target"},
        {"", "ssh_target"},
    };
    struct policy *p = good("{\"allow\":\"ssh://ops@github.com\",\"forward\":[\"db.internal:5432\","
                            "\".apps.internal:443\",\"10.0.0.0/8:22\",\"[fd00::/8]:22\","
                            "\"[2001:DB8::5]:*\",\"192.0.2.7:80\"]," WITH "},"
                            "{\"allow\":\"ssh://dev@github.com\",\"commands\":\"id\"," WITH "},"
                            "{\"deny\":\"ssh://no@github.com\"}");
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const char *code = decide(p, "github.com", "ops", SSH_FORWARD, rows[i].target);
        if (strcmp(code, rows[i].code) != 0)
            fprintf(stderr, "# %s: %s\n", rows[i].target, code);
        CU_ASSERT_STRING_EQUAL(code, rows[i].code);
    }
    const char *const one = "db.internal:5432";
    CU_ASSERT_STRING_EQUAL(decide(p, "github.com", "dev", SSH_FORWARD, one), "ssh_forwarding");
    CU_ASSERT_STRING_EQUAL(decide(p, "github.com", "no", SSH_FORWARD, one), "denied_by_rule");
    CU_ASSERT_STRING_EQUAL(decide(p, "github.com", "git", SSH_FORWARD, one), "no_rule");
    CU_ASSERT_STRING_EQUAL(decide(p, "gitlab.com", "ops", SSH_FORWARD, one), "no_rule");
    CU_ASSERT_STRING_EQUAL(decide(p, "github.com", "ops", SSH_EXEC, "id"), "method");
    CU_ASSERT_STRING_EQUAL(decide(p, "github.com", "ops", SSH_SHELL, ""), "method");
    policy_free(p);
}

/* As a client names it: case and one dot at the end are folded, what two parsers read differently
 * is none. */
static void test_asked(void)
{
    static const struct {
        const char *host;
        unsigned port;
        const char *is; /* NULL: refused */
    } rows[] = {
        {"DB.Internal", 5432, "db.internal:5432"},
        {"db.internal.", 5432, "db.internal:5432"},
        {"localhost", 1, "localhost:1"},
        {"10.1.2.3", 65535, "10.1.2.3:65535"},
        {"FD00:0::1", 22, "[fd00::1]:22"},
        {"::1", 22, "[::1]:22"},
        {"[::1]", 22, NULL},
        {"[db.internal]", 22, NULL},
        {"db.internal", 0, NULL},
        {"db.internal", 65536, NULL},
        {"", 22, NULL},
        {"db.internal..", 22, NULL},
        {".db.internal", 22, NULL},
        {"10.1.515", 22, NULL},
        {"0x7f.1", 22, NULL},
        {"127.1", 22, NULL},
        {"2130706433", 22, NULL},
        {"010.0.0.1", 22, NULL},
        {"::ffff:10.1.2.3", 22, NULL},
        {"fe80::1%eth0", 22, NULL},
        {"db internal", 22, NULL},
        {"db.internal\n", 22, NULL},
        {"user@db.internal", 22, NULL},
        {"*", 22, NULL},
        {"/run/socket", 22, NULL},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char text[SSH_TARGET_TEXT_MAX];
        struct authority at, again;
        int r = ssh_target_asked(slice_str(rows[i].host), rows[i].port, &at);
        if ((r == 0) != (rows[i].is != NULL))
            fprintf(stderr, "# %s: %d\n", rows[i].host, r);
        CU_ASSERT_EQUAL(r, rows[i].is ? 0 : -1);
        if (r < 0)
            continue;
        authority_text_port(&at, text, sizeof text);
        CU_ASSERT_STRING_EQUAL(text, rows[i].is);
        CU_ASSERT(ssh_target_read(slice_str(text), &again) == 0 && authority_eq(&at, &again));
    }
}

static void test_wrong_targets(void)
{
    static const char *const rows[] = {
        "db.internal",       "db.internal:",   ":5432",           "db.internal:0",  "db.internal:x",
        "db.internal:65536", "db.internal:01", "*:5432",          "*.internal:22",  "10.0.0.1/8:22",
        "fd00::/8:22",       "fd00::1:22",     "[10.0.0.0/8]:22", "10.0.0.0/33:22", "127.1:22",
        ".10.0.0.1:22",      ".:22",           "ssh://db:22",     "db.internal:**",
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char rule[512];
        struct err err = {0};
        snprintf(rule, sizeof rule,
                 "{\"allow\":\"ssh://ops@github.com\",\"forward\":\"%s\"," WITH "}", rows[i]);
        struct policy *p = parse(rule, &err);
        if (p || strstr(err.text, "target") == NULL)
            fprintf(stderr, "# %s: %s\n", rows[i], err.text);
        CU_ASSERT(p == NULL && strstr(err.text, "is not a target"));
        policy_free(p);
    }
    static const struct {
        const char *rule, *why;
    } others[] = {
        {"{\"allow\":\"ssh://ops@github.com\",\"forward\":\".com:22\"," WITH "}", "anyone"},
        {"{\"allow\":\"ssh://ops@github.com\",\"forward\":[]," WITH "}", "forward"},
        {"{\"allow\":\"ssh://git@github.com/a/b\",\"forward\":\"db:22\"," WITH "}", "'forward'"},
        {"{\"deny\":\"ssh://ops@github.com\",\"forward\":\"db:22\"}", "no meaning"},
        {"{\"allow\":\"ssh://ops@github.com\",\"forward\":\"db:22\",\"terminal\":true," WITH "}",
         "'terminal'"},
        {"{\"allow\":\"github.com\",\"forward\":\"db:22\"}", "ssh://"},
        {"{\"allow\":\"ssh://git@github.com/a/b\",\"record\":\"all\"," WITH "}", "'record'"},
        {"{\"allow\":\"ssh://ops@github.com\",\"forward\":\"db:22\",\"record\":\"all\"," WITH "}",
         "'record'"},
        {"{\"allow\":\"ssh://ops@github.com\",\"shell\":true,\"record\":\"input\"," WITH "}",
         "output"},
        {"{\"allow\":\"ssh://ops@github.com\",\"shell\":true,\"record_megabytes\":2," WITH "}",
         "'record'"},
    };
    for (size_t i = 0; i < ARRAY_LEN(others); i++) {
        struct err err = {0};
        struct policy *p = parse(others[i].rule, &err);
        if (p || strstr(err.text, others[i].why) == NULL)
            fprintf(stderr, "# %s: %s\n", others[i].rule, err.text);
        CU_ASSERT(p == NULL && strstr(err.text, others[i].why));
        policy_free(p);
    }
}

void tap_suites(void)
{
    CU_pSuite s = CU_add_suite("ssh rules", NULL, NULL);
    CU_add_test(s, "repositories, in every spelling", test_repositories);
    CU_add_test(s, "what else git asks for", test_more_of_git);
    CU_add_test(s, "commands", test_commands);
    CU_add_test(s, "terminals", test_terminals);
    CU_add_test(s, "targets of the server's", test_targets);
    CU_add_test(s, "targets as clients name them", test_asked);
    CU_add_test(s, "what is no target", test_wrong_targets);
    CU_add_test(s, "schemes are apart", test_schemes);
    CU_add_test(s, "what is no rule", test_wrong);
    CU_add_test(s, "what goes with no such pattern", test_wrong_logins);
    CU_add_test(s, "references of pushes", test_refs);
    CU_add_test(s, "git's commands", test_git_commands);
    CU_add_test(s, "facts", test_facts);
    CU_add_test(s, "the longest path", test_longest);
    CU_add_test(s, "signatures", test_signatures);
    CU_add_test(s, "no rule of signatures", test_wrong_signatures);
}
