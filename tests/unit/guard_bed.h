/* What the tests of the guard share: a policy, a gate with two placeholders, a request's head. */
#ifndef DURWARD_TEST_GUARD_BED_H
#define DURWARD_TEST_GUARD_BED_H
#include "config.h"
#include "guard_placeholder.h"
#include "http1_head.h"
#include "placeholder.h"
#include "policy.h"
#include "tap_main.h"

#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct limits limits = {.head_bytes = 32768, .headers = 100, .target_bytes = 8192};
static struct gate gate;
static struct identity who;
static char mine[PLACEHOLDER_MAX], other_slot[PLACEHOLDER_MAX], stranger[PLACEHOLDER_MAX];

enum {
    R_BEARER,
    R_KEY,
    R_BASIC,
    R_REPLACE,
    R_PASS,
    R_COOKIES,
    R_PLAIN,
    R_QUERY,
    R_QUERY_PASS,
    R_COOKIE,
    R_PATH,
    R_MARK,
    R_TENANT,
    R_TENANT_PLAIN,
    R_EITHER,
    R_EITHER_REPLACE,
    R_EITHER_PASS,
    R_EACH,
    R_NONE_OF_THESE,
    R_AFFIXES,
};

static const char text[] =
    "version: 1\n"
    "secrets: { k: { env: K }, other: { env: O } }\n"
    "policies:\n"
    "  p:\n"
    "    rules:\n"
    "      - { allow: bearer.example, with: { bearer: k } }\n"
    "      - { allow: key.example, with: { header: { name: X-My-Key, secret: k } } }\n"
    "      - { allow: basic.example, with: { basic: { user: u, password: k } } }\n"
    "      - { allow: replace.example, with: { bearer: k }, client_credential: replace }\n"
    "      - { allow: pass.example, with: { bearer: k }, client_credential: pass }\n"
    "      - { allow: cookies.example, with: { bearer: k }, cookies: pass }\n"
    "      - { allow: plain.example, set_headers: { X-Set: one, X-Both: two },"
    " remove_headers: [X-Gone] }\n"
    "      - { allow: query.example, with: { query: { api_key: k } } }\n"
    "      - { allow: qpass.example, with: { query: { api_key: k } }, client_credential: pass }\n"
    "      - { allow: cookie.example, with: { cookie: { sid: k } }, cookies: pass }\n"
    "      - { allow: path.example, with: { placeholder: { secret: k, in: path } } }\n"
    "      - { allow: mark.example, with: { placeholder: { secret: k, in: [header, query], name: "
    "X-Tok, count: 2 } } }\n"
    "      - { allow: tenant.example, with: { bearer: k }, headers: { X-Tenant: [a], Range: '*' },"
    " set_headers: { X-Set: one }, remove_headers: [X-Gone], ranges: true }\n"
    "      - { allow: tenants.example, headers: { X-Tenant: [a] }, set_headers: { X-Set: one },"
    " remove_headers: [X-Gone] }\n"
    "      - { allow: either.example, with: { header: { name: x-api-key, secret: k, or: bearer } } "
    "}\n"
    "      - { allow: eitherr.example, client_credential: replace,"
    " with: { header: { name: x-api-key, secret: k, or: bearer } } }\n"
    "      - { allow: eitherp.example, client_credential: pass,"
    " with: { header: { name: x-api-key, secret: k, or: bearer } } }\n"
    "      - { allow: each.example, with: { header: { name: x-api-key, secret: k, and: bearer } } "
    "}\n"
    "      - { allow: none.example, with: { bearer: k }, not_credentials: [X-Foo-Token] }\n"
    "      - { allow: affixes.example, with: { header: { name: Authorization, secret: k,"
    " prefix: 'Token token=', suffix: '=' } } }\n";

static UNUSED int setup(void)
{
    static const unsigned char key[PLACEHOLDER_TAG_KEY] = {1, 2, 3};
    static const unsigned char seed[PLACEHOLDER_SEED] = {4}, far[PLACEHOLDER_SEED] = {5};
    static struct placeholder_entry entries[2];
    struct err err = {0};
    struct config *c = config_parse(slice_str(text), "test", &err);
    char *json = c ? config_policy_json(c, "p") : NULL;
    if (json == NULL) {
        printf("# %s\n", err.text);
        return -1;
    }
    gate.mode = GATE_LOCAL;
    gate.tag = placeholder_key_new(key);
    gate.routes[0].policy = policy_parse(json, strlen(json), &err);
    gate.n_routes = 1;
    who.route = &gate.routes[0];
    config_unref(c);
    free(json);
    if (!gate.routes[0].policy || placeholder_make(gate.tag, seed, "k", "", mine) < 0 ||
        placeholder_make(gate.tag, seed, "other", "openai", other_slot) < 0 ||
        placeholder_make(gate.tag, far, "k", "", stranger) < 0)
        return -1;
    entries[0] = (struct placeholder_entry){mine, (char *)(uintptr_t) "k"};
    entries[1] = (struct placeholder_entry){other_slot, (char *)(uintptr_t) "other"};
    memcpy(gate.placeholders, entries, sizeof entries);
    gate.n_placeholders = 2;
    return 0;
}

static UNUSED int teardown(void)
{
    policy_free(gate.routes[0].policy);
    placeholder_key_free(gate.tag);
    return 0;
}

static UNUSED const struct rule *rule(size_t i)
{
    const struct rule *r = policy_rule(gate.routes[0].policy, i);
    CU_ASSERT_PTR_NOT_NULL_FATAL(r);
    return r;
}

/* A head with these field lines, as the parser reads it. */
static UNUSED void parse(struct head *h, const char *target, const char *fields)
{
    char all[8192];
    struct refusal why = {0, ""};
    int n = snprintf(all, sizeof all, "GET %s HTTP/1.1\r\nHost: x\r\n%s\r\n", target, fields);
    int r = http1_parse_request(h, (struct slice){all, (size_t)n}, &limits, &why);
    if (r < 0)
        printf("# %s: %s\n", fields, why.code);
    CU_ASSERT_EQUAL_FATAL(r, 0);
}

static UNUSED char where[sizeof((struct guard_answer *)0)->where]; /* as judge() was told */

/* "ok", "pass" (nothing is to be injected) or the refusal's code. */
static UNUSED const char *judge(size_t r, const char *target, const char *fields, struct head *h)
{
    struct guard_answer a = {.code = "none"};
    parse(h, target, fields);
    CU_ASSERT_EQUAL_FATAL(guard_fields(h, rule(r), false), 0);
    const char *code = guard_conditions(h, rule(r), h->query, h->has_query, &a);
    if (code == NULL && guard_credentials(&gate, &who, h, rule(r), &a) < 0)
        code = a.code;
    if (code == NULL && rule(r)->credential && guard_foreign(h, rule(r), &a))
        code = "foreign_credential";
    memcpy(where, a.where, sizeof where);
    if (code)
        return code;
    return a.inject || rule(r)->credential == NULL ? "ok" : "pass";
}

static UNUSED void expect(size_t r, const char *target, const char *fields, const char *want)
{
    struct head h;
    const char *got = judge(r, target, fields, &h);
    if (strcmp(got, want) != 0)
        printf("# rule %zu %s %s: %s, wanted %s\n", r, target, fields, got, want);
    CU_ASSERT_STRING_EQUAL(got, want);
    if (strcmp(got, "ok") == 0 && rule(r)->credential) {
        CU_ASSERT_PTR_NULL(http_head_find(&h, rule(r)->credential->header));
        CU_ASSERT_EQUAL(http_head_count(&h, "accept-encoding"), 1);
    }
    http_head_free(&h);
}

static UNUSED const char *line(const char *name, const char *prefix, const char *value)
{
    static char buf[6][2048];
    static unsigned at;
    char *to = buf[at++ % 6];
    snprintf(to, sizeof buf[0], "%s: %s%s\r\n", name, prefix, value);
    return to;
}

static UNUSED const char *basic(const char *user, const char *password)
{
    static char out[1024];
    char pair[512];
    int n = snprintf(pair, sizeof pair, "%s:%s", user, password);
    EVP_EncodeBlock((unsigned char *)out, (unsigned char *)pair, n);
    return line("Authorization", "Basic ", out);
}

#endif
