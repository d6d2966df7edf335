/* What a host gets of secrets, and which replies are searched for it: over generated policies, in
 * sets of several secrets, across new values. */
#include "policy.h"
#include "recall.h"
#include "scrub_cache.h"
#include "tap_main.h"

#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void suite_taint(void);

/* Rules are written with single quotes, which keeps C readable. */
static struct policy *good(const char *rules)
{
    char *json = NULL;
    struct err err = {0};
    CU_ASSERT_FATAL(asprintf(&json, "{\"policy\":\"p\",\"rules\":[%s]}", rules) > 0);
    for (char *c = json; *c; c++)
        if (*c == '\'')
            *c = '"';
    struct policy *p = policy_parse(json, strlen(json), &err);
    if (p == NULL)
        printf("# %s: %s\n", rules, err.text);
    free(json);
    return p;
}

static struct authority at(const char *url)
{
    struct authority a;
    enum scheme s = strncmp(url, "http://", 7) == 0 ? SCHEME_HTTP : SCHEME_HTTPS;
    const char *host = strstr(url, "://");
    CU_ASSERT_EQUAL_FATAL(authority_parse(&a, s, slice_str(host ? host + 3 : url)), 0);
    return a;
}

/* ---- which hosts ---- */

static void test_names(void)
{
    static const struct {
        const char *url, *names;
    } rows[] = {
        {"ok.com", "a, b"},
        {"ok.com:8443", "a, b"},
        {"http://ok.com", "a, b"},
        {"www.ok.com", NULL},
        {"com", NULL},
        {"sub.com", NULL},
        {"x.sub.com", "c"},
        {"x.y.sub.com:81", "c"},
        {"d.sub.com", "c, d"},
        {"signed.com", NULL},
        {"aws.com", "k"},
        {"login.com", "b, m"},
        {"use.com", "m"},
        {"[2001:db8::1]:99", "a"},
        {"[2001:db8::2]", NULL},
        {"asked.com", "a"},
    };
    char names[200];
    struct policy *p =
        good("{'allow':'ok.com/a','with':{'bearer':'a'}},{'allow':'http://ok.com:81/b',"
             "'allow_plaintext':true,'with':{'header':{'name':'X-K','secret':'b'}}},{'allow':'ok."
             "com/c'},"
             "{'allow':'.sub.com/c','with':{'query':{'k':'c'}}},{'allow':'d.sub.com/d','with':{"
             "'basic':{'user':'u','password':'d'}}},"
             "{'allow':'signed.com','with':{'client_certificate':'s'}},{'allow':'aws.com','with':{"
             "'aws':'k'}},"
             "{'allow':'login.com/t','with':{'bearer':'b'},'capture':{'token':'m'}},{'allow':'use."
             "com','with':{'bearer':'m'}},"
             "{'allow':'[2001:db8::1]','with':{'bearer':'a'}},{'ask':'asked.com/x','with':{'bearer'"
             ":'a'}},{'deny':'ok.com/z'}");
    CU_ASSERT_PTR_NOT_NULL_FATAL(p);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct authority a = at(rows[i].url);
        const char *got = policy_taint_text(p, &a, names, sizeof names);
        if (strcmp(got ? got : "", rows[i].names ? rows[i].names : "") != 0)
            printf("# %s: %s\n", rows[i].url, got ? got : "none");
        CU_ASSERT_STRING_EQUAL(got ? got : "", rows[i].names ? rows[i].names : "");
        CU_ASSERT_EQUAL(policy_tainted(p, &a), rows[i].names != NULL);
    }
    policy_free(p);
}

static void test_kinds(void)
{
    struct policy *p = good("{'allow':'ok.com/t','with':{'bearer':'b'},'on_reflect':'block',"
                            "'capture':{'token':'m'}},{'allow':'ok.com/b','with':{'basic':{'user':"
                            "'u','password':'b'}}},"
                            "{'allow':'ok.com/k','on_reflect':'kill','with':{'bearer':'b'}}");
    const struct taint *lists[POLICY_TAINTS_MAX];
    struct authority a = at("ok.com");
    unsigned bearer = 0, basic = 0, captured = 0;
    CU_ASSERT_PTR_NOT_NULL_FATAL(p);
    CU_ASSERT_EQUAL_FATAL(policy_taints(p, &a, lists), 1);
    for (const struct taint *t = lists[0]; t; t = t->next) {
        captured += t->captured && strcmp(t->secret, "m") == 0;
        basic += t->user && strcmp(t->user, "u") == 0 && t->on_reflect == REFLECT_REDACT;
        bearer += !t->user && !t->captured && t->on_reflect == REFLECT_KILL;
    }
    CU_ASSERT(bearer == 1 && basic == 1 && captured == 1);
    policy_free(p);
}

static unsigned pick(unsigned *state, unsigned n)
{
    *state = *state * 1103515245u + 12345u;
    return (*state >> 16 & 0x7fff) % n;
}

static const char *const hosts[] = {"a.com",       "b.com",  "x.a.com", "y.x.a.com",
                                    "z.y.x.a.com", "xa.com", "c.net",   "x.c.net"};
static const char *const ports[] = {"", ":8443", ":81"};

/* Does a pattern of that host name this one? Written without a look at the index. */
static bool names(const char *pattern, const char *host)
{
    size_t n = strlen(pattern), h = strlen(host);
    return pattern[0] == '.' ? h > n && strcmp(host + h - n, pattern) == 0
                             : strcmp(pattern, host) == 0;
}

/* No rule without a credential is a gate's to serve where a credential reaches its host. */
static void test_generated(void)
{
    enum { RULES = 8, ROUNDS = 4000 };
    unsigned state = 11, tainted = 0, free_of_it = 0, made = 0;
    for (unsigned round = 0; round < ROUNDS; round++) {
        char all[RULES * 120] = "", sends[RULES][40];
        size_t n = 0, n_sends = 0;
        for (unsigned i = 0; i < RULES; i++) {
            char host[40];
            bool keyed = pick(&state, 4) == 0, http = !keyed && pick(&state, 4) == 0;
            snprintf(host, sizeof host, "%s%s", pick(&state, 3) ? "" : ".",
                     hosts[pick(&state, ARRAY_LEN(hosts))]);
            n += (size_t)snprintf(all + n, sizeof all - n, "%s{'allow':'%s%s%s/r%u'%s}",
                                  i ? "," : "", http ? "http://" : "", host,
                                  ports[pick(&state, ARRAY_LEN(ports))], i,
                                  keyed ? ",'with':{'bearer':'s'}" : "");
            if (keyed)
                snprintf(sends[n_sends++], sizeof sends[0], "%s", host);
        }
        struct policy *p = good(all);
        if (p == NULL)
            continue;
        made++;
        for (size_t h = 0; h < ARRAY_LEN(hosts); h++)
            for (size_t k = 0; k < 2 * ARRAY_LEN(ports); k++) {
                char url[80];
                bool reached = false;
                snprintf(url, sizeof url, "%s%s%s", k % 2 ? "http://" : "https://", hosts[h],
                         ports[k / 2]);
                struct authority a = at(url);
                for (size_t i = 0; i < n_sends; i++)
                    reached = reached || names(sends[i], hosts[h]);
                unsigned gate = policy_host(p, &a) & policy_served(p, &a, false),
                         injector = policy_host(p, &a) & policy_served(p, &a, true);
                if (reached && gate)
                    printf("# %s by %s\n", url, all);
                CU_ASSERT(!reached || gate == 0);
                CU_ASSERT_EQUAL(gate | injector, policy_host(p, &a)); /* somebody serves it */
                CU_ASSERT_EQUAL(gate & injector, 0);
                CU_ASSERT_EQUAL(policy_tainted(p, &a), reached);
                tainted += reached && policy_host(p, &a) & POLICY_HOST_PLAIN;
                free_of_it += gate != 0;
            }
        policy_free(p);
    }
    printf("# %u policies: %u plain authorities get a secret, %u do not\n", made, tainted,
           free_of_it);
    CU_ASSERT(made == ROUNDS && tainted > 1000 && free_of_it > 1000);
}

/* ---- sets of several ---- */

static const char one[] = "sk-proj-3fA9xLq0ZbT7mYw2Rk5Vd8", two[] = "ghp_x9Qm2Lr7Vt4Kd1Ws8Nb5",
                  shared[] = "sk-proj-3fA9xLq0ZbT7mYw2Rk5Vd8-and-more-0123";

static struct scrub_set *set_of(struct scrub_cache *c, const char *const *value, size_t n)
{
    static const char *const name[] = {"one", "two", "three", "four"};
    struct scrub_source all[4] = {{0}};
    for (size_t i = 0; i < n; i++)
        all[i] = (struct scrub_source){name[i], i == 1 ? "user" : NULL,
                                       secret_new(value[i], strlen(value[i]))};
    struct scrub_set *s = scrub_cache_get(c, all, n);
    CU_ASSERT_PTR_NOT_NULL_FATAL(s);
    struct scrub_set *again = scrub_cache_get(c, all, n);
    CU_ASSERT_PTR_EQUAL(again, s);
    scrub_set_unref(again);
    for (size_t i = 0; i < n; i++)
        secret_unref(all[i].value);
    return s;
}

static void expect(const struct scrub_set *s, const char *in, const char *out, ssize_t hits)
{
    char text[400];
    snprintf(text, sizeof text, "%s", in);
    CU_ASSERT_EQUAL(scrub_whole(s, text, strlen(text)), hits);
    CU_ASSERT_STRING_EQUAL(text, out);
}

static void test_several(void)
{
    struct event_base *base = event_base_new();
    struct scrub_cache *c = scrub_cache_new(base);
    struct scrub_set *none = set_of(c, NULL, 0),
                     *both = set_of(c, (const char *const[]){one, two}, 2),
                     *within = set_of(c, (const char *const[]){one, shared}, 2),
                     *same = set_of(c, (const char *const[]){one, one}, 2);
    expect(none, one, one, 0);
    expect(both, "<sk-proj-3fA9xLq0ZbT7mYw2Rk5Vd8ghp_x9Qm2Lr7Vt4Kd1Ws8Nb5>",
           "<[REDACTED:one]****************[REDACTED:two]**********>", 2);
    expect(both, "dXNlcjpnaHBfeDlRbTJMcjdWdDRLZDFXczhOYjU=", /* user:two */
           "[REDACTED:two]**************************", 1);
    expect(within, shared, "[REDACTED:two]******************************", 1);
    expect(same, one, "[REDACTED:one]****************", 1);
    scrub_set_unref(none);
    scrub_set_unref(both);
    scrub_set_unref(within);
    scrub_set_unref(same);
    scrub_cache_free(c);
    event_base_free(base);
}

/* ---- another set while a reply is on its way ---- */

static size_t take(char *to, size_t at, struct slice s)
{
    memcpy(to + at, s.p, s.n);
    return at + s.n;
}

/* At each place in a text that holds both values, the search goes over to the wider set. */
static void test_switch(void)
{
    static const char text[] = "begin sk-proj-3fA9xLq0ZbT7mYw2Rk5Vd8 ghp_x9Qm2Lr7Vt4Kd1Ws8Nb5 "
                               "sk-proj-3fA9sk-proj-3fA9xLq0ZbT7mYw2Rk5Vd8 end";
    static const char want[] = "begin [REDACTED:one]**************** [REDACTED:two]********** "
                               "sk-proj-3fA9[REDACTED:one]**************** end";
    static const char *const values[] = {one, two};
    struct event_base *base = event_base_new();
    struct scrub_cache *c = scrub_cache_new(base);
    struct scrub_set *narrow = set_of(c, values, 1), *wide = set_of(c, values, 2);
    const size_t n = strlen(text), second = (size_t)(strstr(text, "ghp_") - text);
    for (size_t cut = 0; cut <= second; cut++) { /* the new value cannot come before it is known */
        char out[200] = "";
        struct slice got;
        struct scrub *s = scrub_new(narrow);
        CU_ASSERT_EQUAL(scrub_feed(s, (struct slice){text, cut}, &got), 0);
        size_t m = take(out, 0, got);
        CU_ASSERT_EQUAL(scrub_switch(s, wide), 0);
        CU_ASSERT_EQUAL(scrub_feed(s, (struct slice){text + cut, n - cut}, &got), 0);
        m = take(out, m, got);
        CU_ASSERT_EQUAL(scrub_end(s, &got), 0);
        m = take(out, m, got);
        CU_ASSERT_EQUAL(m, n);
        if (strcmp(out, want) != 0)
            printf("# %zu: %s\n", cut, out);
        CU_ASSERT_STRING_EQUAL(out, want);
        CU_ASSERT_EQUAL(scrub_hits(s), 3);
        scrub_free(s);
    }
    scrub_set_unref(narrow);
    scrub_set_unref(wide);
    scrub_cache_free(c);
    event_base_free(base);
}

/* What a message's end let pass early is remembered. */
static void test_switch_early(void)
{
    static const char *const values[] = {one, two};
    struct event_base *base = event_base_new();
    struct scrub_cache *c = scrub_cache_new(base);
    struct scrub_set *narrow = set_of(c, values, 1), *wide = set_of(c, values, 2);
    struct scrub *s = scrub_new(narrow);
    struct slice got;
    char out[100] = "";
    CU_ASSERT_EQUAL(scrub_feed(s, (struct slice){one, 2}, &got), 0);
    CU_ASSERT_EQUAL(scrub_early(s, &got), 0);
    size_t m = take(out, 0, got);
    CU_ASSERT_EQUAL(m, 2);
    CU_ASSERT_EQUAL(scrub_switch(s, wide), 0);
    CU_ASSERT_EQUAL(scrub_feed(s, (struct slice){one + 2, strlen(one) - 2}, &got), 0);
    m = take(out, m, got);
    CU_ASSERT_EQUAL(scrub_end(s, &got), 0);
    m = take(out, m, got);
    CU_ASSERT_STRING_EQUAL(out, "skEDACTED:one]****************");
    CU_ASSERT_EQUAL(scrub_hits(s), 1);
    scrub_free(s);
    scrub_set_unref(narrow);
    scrub_set_unref(wide);
    scrub_cache_free(c);
    event_base_free(base);
}

/* ---- what is remembered ---- */

static int put(struct recall *r, const char *name, const char *sandbox, const char *text)
{
    struct secret *v = secret_new(text, strlen(text));
    int got = recall_put(r, name, sandbox, v);
    secret_unref(v);
    return got;
}

static bool has(const struct recall *r, const char *name, const char *text)
{
    const struct recalled *i = NULL;
    struct secret *v;
    while ((v = recall_next(r, name, &i)) != NULL)
        if (secret_eq(v, slice_str(text)))
            return true;
    return false;
}

static void test_recall(void)
{
    struct recall *r = recall_new();
    char text[64];
    CU_ASSERT_EQUAL(put(r, "a", NULL, "first value of it"), 1);
    CU_ASSERT_EQUAL(put(r, "a", NULL, "first value of it"), 0);
    CU_ASSERT_EQUAL(put(r, "b", NULL, "first value of it"), 1);
    for (int i = 0; i < RECALL_VALUES; i++) {
        CU_ASSERT(has(r, "a", "first value of it")); /* one that was changed is searched for */
        snprintf(text, sizeof text, "value number %d of it", i);
        CU_ASSERT_EQUAL(put(r, "a", NULL, text), 1);
    }
    CU_ASSERT_FALSE(has(r, "a", "first value of it"));
    CU_ASSERT_TRUE(has(r, "a", text));
    CU_ASSERT_TRUE(has(r, "b", "first value of it"));
    for (int i = 0; i < 4 * RECALL_VALUES;
         i++) { /* of as many sandboxes: the vault lists them so */
        snprintf(text, sizeof text, "token of sandbox %d", i);
        CU_ASSERT_EQUAL(put(r, "a", "", text), 1);
    }
    for (int i = 0; i < 4 * RECALL_VALUES; i++) {
        snprintf(text, sizeof text, "token of sandbox %d", i);
        CU_ASSERT_TRUE(has(r, "a", text));
    }
    CU_ASSERT_FALSE(recall_is_listed(r, "a"));
    CU_ASSERT_EQUAL(recall_mark_listed(r, "a"), 0);
    CU_ASSERT_TRUE(recall_is_listed(r, "a"));
    recall_free(r);
}

/* A sandbox that gathers values pushes out its own, whatever their names. */
static void test_gatherer(void)
{
    struct recall *r = recall_new();
    char text[64], name[16];
    CU_ASSERT_EQUAL(put(r, "t", "quiet", "a token of the quiet one"), 1);
    for (int i = 0; i < 4 * RECALL_CAPTURED; i++) {
        snprintf(text, sizeof text, "one more token, of number %d", i);
        snprintf(name, sizeof name, "n%d", i / 2);
        CU_ASSERT_EQUAL_FATAL(put(r, name, "greedy", text), 1);
    }
    CU_ASSERT_TRUE(has(r, "t", "a token of the quiet one"));
    CU_ASSERT_TRUE(has(r, name, text));
    CU_ASSERT_FALSE(has(r, "n0", "one more token, of number 0"));
    size_t n = 0;
    for (int i = 0; i < 2 * RECALL_CAPTURED; i++) {
        const struct recalled *x = NULL;
        snprintf(name, sizeof name, "n%d", i);
        while (recall_next(r, name, &x))
            n++;
    }
    CU_ASSERT_EQUAL(n, RECALL_CAPTURED - 1);
    recall_free(r);
    recall_free(NULL);
}

void suite_taint(void)
{
    CU_pSuite s = CU_add_suite("taint", NULL, NULL);
    CU_add_test(s, "by host, whatever scheme, port and path", test_names);
    CU_add_test(s, "what is told of each", test_kinds);
    CU_add_test(s, "no gate serves a host that gets a secret: generated policies", test_generated);
    CU_add_test(s, "several secrets in one search", test_several);
    CU_add_test(s, "a wider search in the middle of a reply", test_switch);
    CU_add_test(s, "and behind what passed early", test_switch_early);
    CU_add_test(s, "values that were", test_recall);
    CU_add_test(s, "captured values have a bound", test_gatherer);
}

void tap_suites(void)
{
    suite_taint();
}
