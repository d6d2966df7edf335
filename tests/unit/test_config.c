/* The configuration: YAML as strict as promised, every section. */
#include <CUnit/CUnit.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config.h"
#include "nearest.h"
#include "config_fixture.h"

static void empty(void)
{
    struct err e = {0};
    CU_ASSERT_PTR_NULL(parsed("", &e));
    CU_ASSERT_STRING_EQUAL(e.text,
                           "/etc/durward/t.yaml: this is empty; it begins with 'version: 1'");
    CU_ASSERT_PTR_NULL(parsed("# nothing\n", &e));
    says("~\n", 1, "this is empty");
}

static void yaml_strict(void)
{
    says(V "secrets: &a {}\n", 2, "anchors");
    says(V "secrets: {a: &x {env: A}, b: *x}\n", 2, "anchors");
    says(V "secrets: *x\n", 2, "");
    says(V "secrets: !!map {}\n", 2, "tags");
    says("version: !!int 1\n", 1, "tags");
    says("version: !int 1\n", 1, "tags");
    says(V "!x secrets: {}\n", 2, "tags");
    says(V "version: 1\n", 2, "'version' is given twice (first at /etc/durward/t.yaml:1)");
    says(V "secrets:\n  a: {env: A}\n  b: {env: B}\n  a: {env: C}\n", 5, "'a' is given twice");
    says(V "---\nversion: 1\n", 2, "second document");
    says(V "...\n---\nversion: 1\n", 3, "second document");
    says("%YAML 1.2\n---\nversion: 1\n", 1, "directives");
    says("%TAG ! tag:x,2000:\n---\nversion: 1\n", 1, "directives");
    says(V "{a: b}: c\n", 2, "");
    says(V "? [a]\n: c\n", 2, "plain text");
    says(V "secrets: {a: {env: \"A\\0B\"}}\n", 2, "NUL");
    says(V "\tsecrets: {}\n", 2, "");
    says(V "secrets: [\n", 3, "");
    says(V "secrets: {a: {env: \xff}}\n", 2, "UTF-8");
    says("- 1\n", 1, "must be a mapping");
    says("version\n", 1, "must be a mapping");
    char deep[400] = V "secrets: ";
    size_t n = strlen(deep);
    memset(deep + n, '[', 40);
    says(deep, 2, "deeper than 32");
    struct err e;
    char *big = malloc(1024 * 1024 + 2);
    memset(big, '#', 1024 * 1024 + 1);
    CU_ASSERT_PTR_NULL(config_parse((struct slice){big, 1024 * 1024 + 1}, "big", &e));
    CU_ASSERT_PTR_NOT_NULL(strstr(e.text, "1 MiB"));
    memcpy(big, V, strlen(V));
    struct config *c = config_parse((struct slice){big, 1024 * 1024}, "big", &e);
    CU_ASSERT_PTR_NOT_NULL(c);
    config_unref(c);
    free(big);
    /* JSON is the same thing, and a whole document may stand between markers */
    config_unref(good("{\"version\": 1, \"policies\": {\"p\": {\"rules\": []}}}"));
    config_unref(good("---\nversion: 1\n...\n"));
    config_unref(good("\xef\xbb\xbfversion: 1\n"));
    config_unref(good("\xef\xbb\xbfversion: 1\npolicies: {}\n"));
}

static void scalars(void)
{
    static const char *const words[] = {"yes",  "no", "on",       "off", "True",
                                        "TRUE", "y",  "\"true\"", "1",   "''"};
    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        char text[200];
        snprintf(text, sizeof text, V "listen:\n  - http: 127.0.0.1:3128\n    insecure: %s\n",
                 words[i]);
        says(text, 4, "must be true or false");
    }
    static const char *const numbers[] = {"0x400", "010",   "1e3", "1.0",
                                          "'5'",   "1_000", "+5",  "null",
                                          "~",     "true",  "[5]", "9999999999999999999"};
    for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
        char text[200];
        snprintf(text, sizeof text, V "limits:\n  connections: %s\n", numbers[i]);
        says(text, 3, "must be a whole decimal number");
    }
    says("version: 2\n", 1, "it must be 1");
    says("version: '1'\n", 1, "whole decimal number");
    says(V "secrets:\n", 2, "must be a mapping, not empty");
    says(V "policies:\n  p:\n    rules:\n", 4, "[] for none");
    /* text that looks like something else stays text */
    struct config *c = good(V "policies:\n  on:\n    rules: []\n    env: {A: yes, B: 'null'}\n");
    size_t n;
    const struct config_env *env = config_policy_env(c, "on", &n);
    CU_ASSERT_EQUAL_FATAL(n, 2);
    CU_ASSERT_STRING_EQUAL(env[0].value, "yes");
    CU_ASSERT_STRING_EQUAL(env[1].value, "null");
    config_unref(c);
}

static void keys(void)
{
    says(V "polices: {}\n", 2, "unknown key 'polices'; did you mean 'policies'?");
    says("verison: 1\n", 1, "did you mean 'version'?");
    says("secrets: {}\n", 1, "'version: 1' is missing");
    says(V "<<: {}\n", 2, "unknown key '<<'; known here: version, secrets");
    says(V "zzzzzzzzzzz: 1\n", 2, "known here");
    says(V "policies:\n  p:\n    rulez: []\n", 4, "did you mean 'rules'?");
    says(V "limits:\n  connection: 1\n", 3, "did you mean 'connections'?");
    says(V "audit:\n  durabilty: synced\n", 3, "did you mean 'durability'?");
    says(V "controller:\n\n  https: 0.0.0.0:1\n", 2, "say by what name they reach it");
    says(V "controller:\n  https: here\n", 3, "'here' is not ADDRESS:PORT");
    says(V "controller:\n  name: here.example\n", 3, "it goes with 'https'");
    says(V "controller:\n  https: 127.0.0.1:1\n  name: a b\n", 4, "not a host name or address");
    says(V "policies:\n  p:\n    rules:\n      - allow: a.com\n        budget: { requests: 1h }\n",
         6, "'1h' is no such limit; write 1000/h");
    says(V "policies:\n  p:\n    budget: { upload: 1/h }\n    rules: []\n", 4,
         "write 50MB/h: a number with B, KB, MB or GB");
    CU_ASSERT_EQUAL(nearest_distance("abc", "abc", 3), 0);
    CU_ASSERT_EQUAL(nearest_distance("abc", "acb", 3), 1);
    CU_ASSERT_EQUAL(nearest_distance("abc", "ab", 3), 1);
    CU_ASSERT_EQUAL(nearest_distance("abc", "xbcd", 3), 2);
    CU_ASSERT_EQUAL(nearest_distance("", "abcd", 3), 4);
    CU_ASSERT_EQUAL(nearest_distance("kitten", "sitting", 9), 3);
}

/* What people write at first, and what they are told to write. */
static void first_mistakes(void)
{
    says(V "secrets:\n  a: ghp_value\n", 3, "value never stands here; say where it is read from");
    says(V "secrets:\n  a: { value: ghp_value }\n", 3, "value never stands here; say where");
    says(V "secrets:\n  a: { password: hunter2 }\n", 3, "value never stands here; say where");
    says(V "secrets:\n  a: { zzzzzzzz: x }\n", 3, "oauth_login, ssh_agent");
    says(V "policies:\n\tp: { rules: [] }\n", 3, "a tab stands before the text");
    says(V "policies: { p: { env: { A: {{placeholder a}} }, rules: [] } }\n", 2,
         "as in \"{{placeholder NAME}}\"");
    says(V "policies: { p: { rules: [ { allow: \"caf\xc3\xa9.dev\" } ] } }\n", 2, "xn-- form");
}

static void secret_stores(void)
{
    struct config *c = good(V "secrets:\n"
                              "  a: { env: A_1, kind: github-pat }\n"
                              "  b: { file: rel/b.key }\n"
                              "  c: { file: /abs/c, ttl: 90s }\n"
                              "  d: { command: [pass, show, ''], ttl: 15m }\n"
                              "  e: { command: [./get], ttl: 0s }\n"
                              "  f: { command: [x], kind: openai }\n"
                              "  g.h-i_2: { file: x, ttl: 24h }\n");
    size_t n;
    const struct config_secret *s = config_secrets(c, &n);
    CU_ASSERT_EQUAL_FATAL(n, 7);
    CU_ASSERT_STRING_EQUAL(s[0].name, "a");
    CU_ASSERT_EQUAL(s[0].store, STORE_ENV);
    CU_ASSERT_STRING_EQUAL(s[0].source, "A_1");
    CU_ASSERT_STRING_EQUAL(s[0].kind, "github-pat");
    CU_ASSERT_EQUAL(s[1].store, STORE_FILE);
    CU_ASSERT_STRING_EQUAL(s[1].source, "/etc/durward/rel/b.key");
    CU_ASSERT_STRING_EQUAL(s[1].kind, "");
    CU_ASSERT_EQUAL(s[1].ttl, 0);
    CU_ASSERT_STRING_EQUAL(s[2].source, "/abs/c");
    CU_ASSERT_EQUAL(s[2].ttl, 90);
    CU_ASSERT_EQUAL(s[3].store, STORE_COMMAND);
    CU_ASSERT_EQUAL(s[3].ttl, 900);
    CU_ASSERT_STRING_EQUAL(s[3].command[0], "pass");
    CU_ASSERT_STRING_EQUAL(s[3].command[2], "");
    CU_ASSERT_PTR_NULL(s[3].command[3]);
    CU_ASSERT_STRING_EQUAL(s[4].command[0], "/etc/durward/get");
    CU_ASSERT_EQUAL(s[4].ttl, 0);
    CU_ASSERT_EQUAL(s[5].ttl, 300);
    CU_ASSERT_EQUAL(s[6].ttl, 86400);
    CU_ASSERT_PTR_EQUAL(config_secret(c, "d"), &s[3]);
    CU_ASSERT_PTR_NULL(config_secret(c, "z"));
    config_unref(c);
    says(V "secrets:\n  a: {}\n", 3, "exactly one of");
    says(V "secrets:\n  a: {env: A, file: b}\n", 3, "exactly one of");
    says(V "secrets:\n  a: {env: 'A-B'}\n", 3, "not the name of an environment variable");
    says(V "secrets:\n  a: {env: 1A}\n", 3, "not the name of an environment variable");
    says(V "secrets:\n  a: {env: A, ttl: 1m}\n", 3, "no meaning with 'env'");
    says(V "secrets:\n  a: {file: b, ttl: 90}\n", 3, "needs a unit: 90s");
    says(V "secrets:\n  a: {file: b, ttl: 25h}\n", 3, "at most 24h");
    says(V "secrets:\n  a: {file: b, ttl: 1d}\n", 3, "90s, 15m or 1h");
    says(V "secrets:\n  a: {file: b, ttl: s}\n", 3, "90s, 15m or 1h");
    says(V "secrets:\n  a: {file: b, ttl: -1s}\n", 3, "90s, 15m or 1h");
    says(V "secrets:\n  a: {file: b, ttl: 1.5h}\n", 3, "90s, 15m or 1h");
    says(V "secrets:\n  a: {file: ~/x}\n", 3, "whole path");
    says(V "secrets:\n  a: {command: pass show x}\n", 3, "no shell runs it");
    says(V "secrets:\n  a: {command: []}\n", 3, "empty list");
    says(V "secrets:\n  a: {command: ['']}\n", 3, "is empty");
    says(V "secrets:\n  a: {env: A, kind: github}\n", 3, "one of: github-pat");
    says(V "secrets:\n  a: {env: A, kind: github-pta}\n", 3, "it is one of: github-pat, openai");
    says(V "secrets:\n  'a b': {env: A}\n", 3, "not a secret's name");
    says(V "secrets:\n  .a: {env: A}\n", 3, "not a secret's name");
}

static void policies(void)
{
    says(V "policies:\n  p: {}\n", 3, "'rules: []' denies everything");
    says(V "policies:\n  'p q': {rules: []}\n", 3, "not a policy's name");
    says(V "secrets:\n  github: {env: A}\npolicies:\n  p:\n    rules:\n      - allow: a.com\n"
           "        with: { bearer: gihtub }\n",
         8, "did you mean 'github'?");
    says(V
         "policies:\n  p:\n    rules:\n      - allow: a.com\n        with:\n          bearer: x\n",
         7, "no secret 'x' is declared; add it under 'secrets'");
    says(V
         "policies:\n  p:\n    rules:\n      - allow:\n          - a.com\n          - '*.b.com'\n",
         7, "leading dot");
    says(V "policies:\n  p:\n    rules:\n      - text\n", 5, "a rule is a mapping");
    says(V "policies:\n  p:\n    env: { 'A=B': x }\n    rules: []\n", 4, "environment variable");
    says(V "policies:\n  p:\n    env: { A: 1 }\n    rules: []\n", 4, "quotes");
    says(V "policies:\n  p:\n    env:\n      A: '{{placeholder x}}'\n    rules: []\n", 5,
         "no secret 'x' is declared");
    says(V "policies:\n  p:\n    env:\n      A: '{{ placeholder x }}'\n    rules: []\n", 5,
         "begins a placeholder");
    says(V "policies:\n  p:\n    env:\n      A: 'x{{placeholder x'\n    rules: []\n", 5,
         "begins a placeholder");
    /* both places of an ambiguity, and a URL */
    says(V "secrets: { s: { env: S } }\npolicies:\n  p:\n    rules:\n      - allow: a.com/x/*\n"
           "        with: { bearer: s }\n      - deny: a.com/q\n      - allow: a.com/*/y\n",
         9, "the one at /etc/durward/t.yaml:6 both allow GET https://a.com/x/y");
    struct config *c = good(V "secrets: { s: { env: S }, t: { env: T } }\npolicies:\n  one:\n"
                              "    env: { A: 'x {{placeholder s}} y{{placeholder t}}' }\n"
                              "    rules:\n"
                              "      - { allow: git.com/a/b, git: push, with: { bearer: s } }\n"
                              "      - { allow: git.com/c/d, git: fetch, with: { bearer: s } }\n"
                              "      - { allow: 'git2.com:8443/c/d', git: fetch }\n"
                              "      - { allow: .git3.com/c/d, git: fetch }\n"
                              "  two: { rules: [] }\n");
    size_t n;
    CU_ASSERT_EQUAL(config_policies(c), 2);
    CU_ASSERT_STRING_EQUAL(config_policy_name(c, 0), "one");
    CU_ASSERT_STRING_EQUAL(config_policy_name(c, 1), "two");
    CU_ASSERT_PTR_NULL(config_policy_name(c, 2));
    const char *const *names = config_policy_secrets(c, "one", &n);
    CU_ASSERT_EQUAL_FATAL(n, 1);
    CU_ASSERT_STRING_EQUAL(names[0], "s");
    CU_ASSERT_PTR_NULL(names[1]);
    names = config_policy_git_hosts(c, "one", &n);
    CU_ASSERT_EQUAL_FATAL(n, 1); /* only what an ssh remote can be rewritten to */
    CU_ASSERT_STRING_EQUAL(names[0], "git.com");
    const struct config_env *env = config_policy_env(c, "one", &n);
    CU_ASSERT_EQUAL_FATAL(n, 1);
    CU_ASSERT_STRING_EQUAL(env[0].value, "x {{placeholder s}} y{{placeholder t}}");
    config_policy_secrets(c, "two", &n);
    CU_ASSERT_EQUAL(n, 0);
    CU_ASSERT_PTR_NULL(config_policy_secrets(c, "three", &n));
    CU_ASSERT_EQUAL(n, 0);
    CU_ASSERT_PTR_NULL(config_policy_json(c, "three"));
    CU_ASSERT_PTR_NULL(config_policy(c, "three"));
    CU_ASSERT_STRING_EQUAL(policy_rule_where(config_policy(c, "one"), 1), "/etc/durward/t.yaml:8");
    config_unref(c);
}

static void listen_section(void)
{
#define P "policies: { p: { rules: [] } }\n"
    struct config *c =
        good(V P "listen:\n  - { http: 127.0.0.1:3128, policy: p }\n  - { http: '[::1]:3129' }\n"
                 "  - { http: 0.0.0.0:80, insecure: true }\n"
                 "  - { http: 127.9.9.9:1, insecure: false }\n");
    size_t n;
    const struct config_listen *l = config_listens(c, &n);
    CU_ASSERT_EQUAL_FATAL(n, 4);
    CU_ASSERT_EQUAL(l[0].kind, LISTEN_HTTP);
    CU_ASSERT_STRING_EQUAL(l[0].address, "127.0.0.1:3128");
    CU_ASSERT_STRING_EQUAL(l[0].policy, "p");
    CU_ASSERT_FALSE(l[0].insecure);
    CU_ASSERT_STRING_EQUAL(l[1].address, "[::1]:3129");
    CU_ASSERT_PTR_NULL(l[1].policy);
    CU_ASSERT_STRING_EQUAL(l[2].address, "0.0.0.0:80");
    CU_ASSERT(l[2].insecure);
    config_unref(c);
    c = good(V P "listen:\n  - { https: 0.0.0.0:8443, name: Proxy.example. }\n"
                 "  - { https: 127.0.0.1:8444, policy: p }\n"
                 "  - { https: '[::1]:8445', policy: p }\n"
                 "  - { https: 10.0.0.1:8446, policy: p, insecure: true, name: 10.0.0.2 }\n");
    l = config_listens(c, &n);
    CU_ASSERT_EQUAL_FATAL(n, 4);
    CU_ASSERT_EQUAL(l[0].kind, LISTEN_HTTPS);
    CU_ASSERT_STRING_EQUAL(l[0].address, "0.0.0.0:8443");
    CU_ASSERT_STRING_EQUAL(l[0].name, "proxy.example");
    CU_ASSERT_STRING_EQUAL(l[0].reached_at, "proxy.example:8443");
    CU_ASSERT_STRING_EQUAL(l[1].name, "127.0.0.1");
    CU_ASSERT_STRING_EQUAL(l[1].reached_at, "127.0.0.1:8444");
    CU_ASSERT_STRING_EQUAL(l[2].name, "::1");
    CU_ASSERT_STRING_EQUAL(l[2].reached_at, "[::1]:8445");
    CU_ASSERT_STRING_EQUAL(l[3].reached_at, "10.0.0.2:8446");
    config_unref(c);
    says(V P "listen:\n  - { https: 0.0.0.0:8443 }\n", 4, "name: proxy.example.com");
    says(V P "listen:\n  - { https: '[::]:8443' }\n", 4, "name: proxy.example.com");
    says(V P "listen:\n  - { https: 10.0.0.1:1, policy: p }\n", 4, "without a token");
    says(V P "listen:\n  - { https: 127.0.0.1:1, name: 'a b' }\n", 4, "not a host name");
    says(V P "listen:\n  - { https: 127.0.0.1:1, name: 'a:1' }\n", 4, "not a host name");
    says(V P "listen:\n  - { http: 127.0.0.1:1, name: a }\n", 4, "goes with 'https'");
    says(V P "listen:\n  - { http: 127.0.0.1:1, https: 127.0.0.1:2 }\n", 4, "not both");
    says(V P "listen:\n  - { http: 127.0.0.1:1 }\n  - { https: 127.0.0.1:1 }\n", 5, "twice");
    says(V P "listen:\n  - { http: 10.0.0.1:3128, policy: p }\n", 4, "without a token");
    says(V P "listen:\n  - { http: 10.0.0.1:3128 }\n", 4, "in clear");
    says(V P "listen:\n  - { http: 0.0.0.0:3128 }\n", 4, "insecure: true");
    says(V P "listen:\n  - { http: '[::]:3128' }\n", 4, "insecure: true");
    says(V P "listen:\n  - { http: '[::2]:3128' }\n", 4, "insecure: true");
    says(V P "listen:\n  - { http: 128.0.0.1:3128 }\n", 4, "insecure: true");
    says(V P "listen:\n  - { http: 127.0.0.1:1, policy: q }\n", 4, "no policy 'q'");
    says(V P "listen:\n  - { http: localhost:3128 }\n", 4, "not ADDRESS:PORT");
    says(V P "listen:\n  - { http: 127.0.0.1 }\n", 4, "not ADDRESS:PORT");
    says(V P "listen:\n  - { http: 127.0.0.1:0 }\n", 4, "not ADDRESS:PORT");
    says(V P "listen:\n  - { http: 3128 }\n", 4, "must be a string");
    says(V P "listen:\n  - { policy: p }\n", 4, "has an address");
    says(V P "listen:\n  - { http: 127.0.0.1:1 }\n  - { http: 127.0.0.1:1 }\n", 5, "twice");
    says(V P "listen: { http: 127.0.0.1:1 }\n", 3, "must be a list");
}

/* As many entries as can be, and one more. */
static void many(const char *head, const char *entry, unsigned most)
{
    size_t size = (most + 1) * 40 + 200, used = 0;
    char *text = malloc(size), says_so[32];
    snprintf(says_so, sizeof says_so, "more than %u", most);
    for (unsigned n = most; n <= most + 1; n++) {
        used = (size_t)snprintf(text, size, V "%s", head);
        for (unsigned i = 0; i < n; i++)
            used += (size_t)snprintf(text + used, size - used, "    n%u: %s\n", i, entry);
        struct err e = {0};
        struct config *c = parsed(text, &e);
        CU_ASSERT_EQUAL(c != NULL, n == most);
        CU_ASSERT_EQUAL(strstr(e.text, says_so) != NULL, n > most);
        config_unref(c);
    }
    free(text);
}

#define LONG "0123456789012345678901234567890123456789012345678901234567890123456789012345678901234"

/* Fewer than can be, but of more bytes than there is room for: entries are text, a number, text. */
static void wide(const char *head, const char *before, int digits, const char *after, unsigned n,
                 const char *message)
{
    size_t size = n * 400 + 200, used;
    char *text = malloc(size);
    used = (size_t)snprintf(text, size, V "%s", head);
    for (unsigned i = 0; i < n; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%0*u%s\n", before, digits, i, after);
    struct err e = {0};
    struct config *c = parsed(text, &e);
    CU_ASSERT_PTR_NULL(c);
    CU_ASSERT_PTR_NOT_NULL(strstr(e.text, message));
    config_unref(c);
    free(text);
}

static void bounds(void)
{
    many("secrets:\n", "{ env: A }", 512);
    many("policies:\n", "{ rules: [] }", 4096);
    many("upstream:\n  resolve:\n", "127.0.0.1", 1024);
    wide("secrets:\n    k: { env: K }\n", "    n", 60,
         ": { signature_key: { key: k, algorithm: ed25519, key_id: x" LONG LONG " } }", 400,
         "what is said of secrets takes");
    wide("upstream:\n  resolve:\n", "    n", 60, ".com: 127.0.0.1", 700, "65536 bytes together");
    wide("upstream:\n  proxy: http://p:1\n  no_proxy:\n", "    - n", 60, ".com", 300,
         "16384 bytes together");
}

static void upstream(void)
{
    struct config *c = good(V "upstream:\n  ca: [a.pem, /b.pem]\n  resolve:\n"
                              "    API.github.com: 127.0.0.1:8443\n"
                              "    \"api.github.com:444\": \"[::1]:8444\"\n"
                              "    .example.com: 10.0.0.1\n    x.com:8080: 10.0.0.2\n");
    size_t n;
    const struct config_resolve *r = config_resolves(c, &n);
    CU_ASSERT_EQUAL_FATAL(n, 4);
    CU_ASSERT_STRING_EQUAL(r[0].host, "api.github.com");
    CU_ASSERT_EQUAL(r[0].port, 443);
    CU_ASSERT_STRING_EQUAL(r[0].address, "127.0.0.1:8443");
    CU_ASSERT_EQUAL(r[1].port, 444);
    CU_ASSERT_STRING_EQUAL(r[1].address, "[::1]:8444");
    CU_ASSERT_STRING_EQUAL(r[2].host, ".example.com");
    CU_ASSERT_STRING_EQUAL(r[2].address, "10.0.0.1:443");
    CU_ASSERT_STRING_EQUAL(r[3].address, "10.0.0.2:8080"); /* the port of the name */
    const char *const *ca = config_upstream_ca(c);
    CU_ASSERT_STRING_EQUAL(ca[0], "/etc/durward/a.pem");
    CU_ASSERT_STRING_EQUAL(ca[1], "/b.pem");
    CU_ASSERT_PTR_NULL(ca[2]);
    config_unref(c);
    c = good(V "upstream: { ca: one.pem }\n");
    CU_ASSERT_STRING_EQUAL(config_upstream_ca(c)[0], "/etc/durward/one.pem");
    config_unref(c);
    c = good(V);
    CU_ASSERT_PTR_NULL(config_upstream_ca(c)[0]);
    config_unref(c);
    says(V "upstream:\n  resolve:\n    a.com: b.com\n", 4, "not an address");
    says(V "upstream:\n  resolve:\n    a.com: 127.1\n", 4, "not an address");
    says(V "upstream:\n  resolve:\n    '*.com': 127.0.0.1\n", 4, "not HOST");
    says(V "upstream:\n  resolve:\n    a.com: 127.0.0.1\n    a.com:443: 127.0.0.2\n", 5, "twice");
    says(V "upstream:\n  resolve: []\n", 3, "must be a mapping");
}

static void upstream_proxy(void)
{
    struct config *c = good(V "secrets: { corp: { env: A } }\nupstream:\n"
                              "  proxy: { url: 'https://Proxy.example.:3128', user: u, "
                              "password: corp }\n"
                              "  no_proxy: [A.com., .B.com, 10.0.0.1, '2001:db8::1', 10.0.0.0/8,\n"
                              "    'fd00::/8']\n");
    static const char *const direct[] = {"a.com",       ".b.com",     "10.0.0.1",
                                         "2001:db8::1", "10.0.0.0/8", "fd00::/8"};
    size_t n;
    const struct config_proxy *p = config_upstream_proxy(c);
    CU_ASSERT_PTR_NOT_NULL_FATAL(p);
    CU_ASSERT_EQUAL(p->scheme, SCHEME_HTTPS);
    CU_ASSERT_STRING_EQUAL(p->host, "proxy.example");
    CU_ASSERT_EQUAL(p->port, 3128);
    CU_ASSERT_STRING_EQUAL(p->user, "u");
    CU_ASSERT_STRING_EQUAL(p->password, "corp");
    const char *const *list = config_no_proxy(c, &n);
    CU_ASSERT_EQUAL_FATAL(n, ARRAY_LEN(direct));
    for (size_t i = 0; i < n; i++)
        CU_ASSERT_STRING_EQUAL(list[i], direct[i]);
    config_unref(c);
    c = good(V "upstream: { proxy: 'http://[::1]:80' }\n");
    CU_ASSERT_STRING_EQUAL(config_upstream_proxy(c)->host, "::1");
    CU_ASSERT_EQUAL(config_upstream_proxy(c)->port, 80);
    CU_ASSERT_PTR_NULL(config_upstream_proxy(c)->password);
    config_unref(c);
    c = good(V "upstream: { ca: a.pem }\n");
    CU_ASSERT_PTR_NULL(config_upstream_proxy(c));
    config_unref(c);
#define U V "secrets: { s: { env: A } }\nupstream:\n"
    says(U "  proxy: x\n", 4, "is not http://HOST:PORT");
    says(U "  proxy: ftp://x:1\n", 4, "is not http://HOST:PORT");
    says(U "  proxy: http://x\n", 4, "is not http://HOST:PORT");
    says(U "  proxy: 'http://[::1]'\n", 4, "is not http://HOST:PORT");
    says(U "  proxy: 'http://x:'\n", 4, "is not http://HOST:PORT");
    says(U "  proxy: http://x:1/\n", 4, "is not http://HOST:PORT");
    says(U "  proxy: http://u:p@x:1\n", 4, "never stands here");
    says(U "  proxy: { user: u, password: s }\n", 4, "'url' is missing");
    says(U "  proxy: { url: 'http://x:1', user: u }\n", 4, "go together");
    says(U "  proxy: { url: 'http://x:1', password: s }\n", 4, "go together");
    says(U "  proxy: { url: 'http://x:1', user: u, password: t }\n", 4, "no secret 't'");
    says(U "  proxy: { url: 'http://x:1', user: 'u:v', password: s }\n", 4, "no blank, colon");
    says(U "  proxy: { url: 'http://x:1', passwort: s }\n", 4, "did you mean 'password'");
    says(U "  proxy: []\n", 4, "must be a mapping");
    says(U "  no_proxy: [a]\n", 4, "without 'proxy'");
    says(U "  proxy: http://x:1\n  no_proxy: ['*.a']\n", 5, "is not a host");
    says(U "  proxy: http://x:1\n  no_proxy: [10.0.0.1/8]\n", 5, "is not a host");
    says(U "  proxy: http://x:1\n  no_proxy: [.10.0.0.1]\n", 5, "is not a host");
}

static void other_sections(void)
{
    struct config *c = good(V "audit: { dir: log, durability: synced }\n"
                              "ca: { cert: c.pem, key: /k.pem }\n"
                              "controller: { socket: api.sock, state: ./s, https: 0.0.0.0:77, "
                              "name: a.example }\n");
    CU_ASSERT_STRING_EQUAL(config_audit_dir(c), "/etc/durward/log");
    CU_ASSERT_EQUAL(config_audit(c)->durability, AUDIT_SYNCED);
    CU_ASSERT_STRING_EQUAL(config_ca_cert(c), "/etc/durward/c.pem");
    CU_ASSERT_STRING_EQUAL(config_ca_key(c), "/k.pem");
    CU_ASSERT_PTR_NULL(config_ca_dir(c));
    CU_ASSERT_STRING_EQUAL(config_controller_socket(c), "/etc/durward/api.sock");
    CU_ASSERT_STRING_EQUAL(config_controller_state(c), "/etc/durward/s");
    CU_ASSERT_PTR_NOT_NULL_FATAL(config_api(c));
    CU_ASSERT_STRING_EQUAL(config_api(c)->address, "0.0.0.0:77");
    CU_ASSERT_STRING_EQUAL(config_api(c)->name, "a.example");
    config_unref(c);
    c = good(V "ca: { dir: d }\n");
    CU_ASSERT_STRING_EQUAL(config_ca_dir(c), "/etc/durward/d");
    CU_ASSERT_PTR_NULL(config_audit_dir(c));
    CU_ASSERT_EQUAL(config_audit(c)->durability, AUDIT_WRITTEN);
    CU_ASSERT_PTR_NULL(config_controller_socket(c));
    CU_ASSERT_PTR_NULL(config_api(c));
    config_unref(c);
    says(V "ca: { cert: c }\n", 2, "go together");
    says(V "ca: { key: c }\n", 2, "go together");
    says(V "ca: { dir: d, cert: c, key: k }\n", 2, "either");
    says(V "audit: { durability: sync }\n", 2, "it is one of: written, synced");
    c = good(V "audit:\n  rotate: { size: 2MB, every: 24h, compress: none }\n"
               "  retention: { for: 90d, size: 10GB }\n"
               "  anchor: { command: [keep, -a, ''], syslog: true }\n");
    const struct config_audit *a = config_audit(c);
    CU_ASSERT(a->rotate_bytes == 2000000 && a->rotate_seconds == 86400 && !a->compress);
    CU_ASSERT(a->keep_seconds == 90 * 86400 && a->keep_bytes == 10000000000);
    CU_ASSERT(a->anchor_syslog && strcmp(a->anchor_syslog, "/dev/log") == 0 &&
              strcmp(a->anchor_command[0], "/etc/durward/keep") == 0);
    config_unref(c);
    says(V "audit:\n  rotate: { size: 64 }\n", 3,
         "is a whole number with KB, MB, GB or TB behind it");
    says(V "audit:\n  rotate: { size: 10KB }\n", 3, "at least 1100KB");
    says(V "audit:\n  rotate: { size: 9999999999999999TB }\n", 3, "such as 64MB");
    says(V "audit:\n  rotate: { every: 24 }\n", 3, "a time such as");
    says(V "audit:\n  rotate: { compress: gzip }\n", 3, "none, zstd");
    says(V "audit:\n  retention: {}\n", 3, "'for', 'size' or both");
    says(V "audit:\n  anchor: { syslog: false }\n", 3, "'https' or 'syslog");
    says(V "audit:\n  anchor: { syslog: log }\n", 3, "absolute path of a socket");
    says(V "audit:\n  anchor: { syslog: 1 }\n", 3, "true or false");
    says(V "audit:\n  anchor: { command: keep }\n", 3, "is a list");
    says(V "audit:\n  anchor: { https: x }\n", 3, "not an https:// URL");
    char text[300];
    snprintf(text, sizeof text, V "controller:\n  socket: /%0107d\n", 1);
    says(text, 3, "107 bytes");
}

/* Several injectors only of a policy whose secrets never have another value. */
static void injectors(void)
{
    struct config *c = good(V "injectors: 3\nsecrets:\n  a: {env: A}\n  b: {file: /b}\npolicies:\n"
                              "  fixed:\n    rules:\n      - {allow: a.com, with: {bearer: a}}\n"
                              "  none:\n    rules:\n      - {ask: a.com}\n"
                              "  file:\n    rules:\n      - {allow: a.com, with: {bearer: a}}\n"
                              "      - {allow: b.com, with: {bearer: b}}\n");
    CU_ASSERT_EQUAL(config_policy_injectors(c, "fixed"), 3);
    CU_ASSERT_EQUAL(config_policy_injectors(c, "none"), 3);
    CU_ASSERT_EQUAL(config_policy_injectors(c, "file"), 1);
    config_unref(c);
    c = good(V "secrets:\n  a: {env: A}\npolicies:\n  fixed:\n    rules:\n"
               "      - {allow: a.com, with: {bearer: a}}\n");
    CU_ASSERT_EQUAL(config_policy_injectors(c, "fixed"), 1);
    config_unref(c);
    says(V "injectors: 0\n", 2, "");
    says(V "injectors: 17\n", 2, "");
}

static void limits(void)
{
    struct config *c = good(V);
    const struct limits *l = config_limits(c);
    CU_ASSERT_EQUAL(l->connections, 1024);
    CU_ASSERT_EQUAL(l->mints, 200);
    CU_ASSERT_EQUAL(l->head_bytes, 32768);
    CU_ASSERT_EQUAL(l->headers, 100);
    CU_ASSERT_EQUAL(l->target_bytes, 8192);
    CU_ASSERT_EQUAL(l->head_seconds, 10);
    CU_ASSERT_EQUAL(l->idle_seconds, 60);
    CU_ASSERT_EQUAL(l->dial_seconds, 15);
    CU_ASSERT_EQUAL(l->reply_seconds, 300);
    CU_ASSERT_EQUAL(l->pool_idle_seconds, 30);
    CU_ASSERT_EQUAL(l->pool, 128);
    CU_ASSERT_EQUAL(l->names, 4096);
    config_unref(c);
    static const struct {
        const char *name;
        unsigned min, max;
        size_t offset;
    } rows[] = {
        {"connections", 1, 65536, offsetof(struct limits, connections)},
        {"mints", 1, 10000, offsetof(struct limits, mints)},
        {"head_bytes", 4096, 1048576, offsetof(struct limits, head_bytes)},
        {"headers", 8, 1000, offsetof(struct limits, headers)},
        {"target_bytes", 256, 65536, offsetof(struct limits, target_bytes)},
        {"head_seconds", 1, 300, offsetof(struct limits, head_seconds)},
        {"idle_seconds", 1, 86400, offsetof(struct limits, idle_seconds)},
        {"dial_seconds", 1, 300, offsetof(struct limits, dial_seconds)},
        {"reply_seconds", 1, 86400, offsetof(struct limits, reply_seconds)},
        {"pool_idle_seconds", 1, 3600, offsetof(struct limits, pool_idle_seconds)},
        {"pool", 0, 4096, offsetof(struct limits, pool)},
        {"names", 1, 4096, offsetof(struct limits, names)},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        for (int k = 0; k < 4; k++) {
            static const char *const other[] = {"target_bytes: 300", "head_bytes: 1048576"};
            unsigned bound = k < 2 ? rows[i].min : rows[i].max;
            long value = (long)bound + (k == 1 ? -1 : k == 3 ? 1 : 0);
            bool head = strcmp(rows[i].name, "head_bytes") == 0;
            char text[200];
            snprintf(text, sizeof text, V "limits:\n  %s: %ld\n  %s\n", rows[i].name, value,
                     other[!head]);
            if (k % 2) {
                says(text, 3, "it must be");
                continue;
            }
            c = good(text);
            l = config_limits(c);
            CU_ASSERT_EQUAL(*(const unsigned *)((const char *)l + rows[i].offset), bound);
            config_unref(c);
        }
    says(V "limits:\n  head_bytes: 8192\n", 3, "less than 'head_bytes'");
    says(V "limits:\n  head_bytes: 9000\n  target_bytes: 9000\n", 4, "less than 'head_bytes'");
}

#define SANDBOX V "policies:\n  p:\n    rules: []\n    sandbox:\n      "

static void sandbox_section(void)
{
    static const struct {
        const char *text, *want;
    } bad[] = {
        {"memory: 1MiB", "at least 16MiB"},
        {"memory: 18446744073709551617KB", "as in 512MB"},
        {"cpu: 0%", "share of one processor"},
        {"files: 1048577", "it must be"},
        {"root: rw", "read-only"},
        {"memoy: 64MiB", "did you mean 'memory'"},
        {"memory: 2", "'memory' is a size with its unit, as in"},
        {"cpu: 2", "'cpu' is a share of one processor's time, as in 50%"},
    };
    char text[300];
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        snprintf(text, sizeof text, SANDBOX "%s\n", bad[i].text);
        says(text, 6, bad[i].want);
    }
    struct config *c =
        good(SANDBOX "memory: 64MiB\n      disk: 2GB\n      cpu: 150%\n      pids: 8\n"
                     "      files: 32\n      root: writable\n  q: { rules: [] }\n");
    const struct config_sandbox *s = config_policy_sandbox(c, "p");
    CU_ASSERT_EQUAL(s->memory, 64 << 20);
    CU_ASSERT_EQUAL(s->disk, 2000000000);
    CU_ASSERT_EQUAL(s->cpu, 150);
    CU_ASSERT_TRUE(s->pids == 8 && s->files == 32 && s->writable);
    s = config_policy_sandbox(c, "q");
    CU_ASSERT_TRUE(s->pids == CONFIG_PIDS && s->memory == 0 && !s->writable);
    CU_ASSERT_EQUAL(config_policy_sandbox(c, "none")->pids, CONFIG_PIDS);
    config_unref(c);
}

void suite_config(void);

#define FLEET                                                                          \
    V "secrets:\n  p: { env: P }\n  l: { postgres_login: { user: f, password: p } }\n" \
      "policies: { a: { rules: [ { allow: a.example } ] } }\n"                         \
      "fleet: { postgres: 'postgres://db.example/f', login: l"
#define KEY_OF_A "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="

static void test_fleet(void)
{
    struct config *c = good(FLEET " }\n");
    const struct config_fleet *f = config_fleet(c);
    CU_ASSERT(f->hold == 60 && f->revocations == 600 && f->n_hosts == 0);
    config_unref(c);
    c = good(FLEET ", revocations: 2m, hosts: { b: '" KEY_OF_A "' } }\n");
    f = config_fleet(c);
    CU_ASSERT(f->revocations == 120 && f->n_hosts == 1 && strcmp(f->hosts[0].name, "b") == 0 &&
              f->hosts[0].key[31] == 0);
    config_unref(c);
    says(FLEET ", revocations: 1s }\n", 6, "must be 2s or more");
    says(FLEET ", hosts: { b: 'AAAA' } }\n", 6, "is not a key");
    says(FLEET ", hosts: { 'b c': '" KEY_OF_A "' } }\n", 6, "is not the name of a host");
    says(FLEET ", hosts: { b: '" KEY_OF_A "', c: '" KEY_OF_A "' } }\n", 6, "has the key of 'b'");
}

void suite_config(void)
{
    CU_pSuite s = CU_add_suite("config", NULL, NULL);
    CU_add_test(s, "empty", empty);
    CU_add_test(s, "YAML is strict", yaml_strict);
    CU_add_test(s, "scalars", scalars);
    CU_add_test(s, "unknown keys", keys);
    CU_add_test(s, "secrets", secret_stores);
    CU_add_test(s, "first mistakes", first_mistakes);
    CU_add_test(s, "policies", policies);
    CU_add_test(s, "listen", listen_section);
    CU_add_test(s, "upstream", upstream);
    CU_add_test(s, "upstream.proxy and no_proxy", upstream_proxy);
    CU_add_test(s, "bounds", bounds);
    CU_add_test(s, "audit, ca, controller", other_sections);
    CU_add_test(s, "limits", limits);
    CU_add_test(s, "injectors", injectors);
    CU_add_test(s, "sandbox of a policy", sandbox_section);
    CU_add_test(s, "fleet", test_fleet);
}

void tap_suites(void)
{
    suite_config();
}
