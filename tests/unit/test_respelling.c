/* No spelling of a request is worth more than the plain one (promise P7): policies and paths by
 * chance, every way to respell one, and what the two decisions may be. */
#include <CUnit/CUnit.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "buf.h"
#include "policy.h"
#include "tap_main.h"

enum { POLICIES = 4200, REQUESTS = 40, SPELLINGS = 6, RULES_MAX = 7 };

static unsigned state = 20261122;

static unsigned pick(unsigned n)
{
    state = state * 1103515245u + 12345u;
    return (state >> 16 & 0x7fff) % n;
}

static const char *one_of(const char *const *list, size_t n)
{
    return list[pick((unsigned)n)];
}

#define ONE_OF(...)                            \
    one_of((const char *const[]){__VA_ARGS__}, \
           sizeof((const char *const[]){__VA_ARGS__}) / sizeof(const char *))

static __attribute__((format(printf, 2, 3))) void put(struct buf *b, const char *fmt, ...)
{
    char text[128];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    if (buf_append_str(b, text) < 0)
        CU_FAIL_FATAL("room");
}

/* In lower case and without an escape: what a rule's author writes. */
static void put_path(struct buf *b, bool pattern)
{
    unsigned n = pick(4) + 1;
    for (unsigned i = 0; i < n; i++)
        put(b, "/%s",
            pattern && pick(4) == 0 ? ONE_OF("*", "a*", "*b")
                                    : ONE_OF("a", "b", "ab", "admin", "merge"));
    if (pattern && pick(3) == 0)
        put(b, "%s", "/**");
}

static void put_rule(struct buf *b)
{
    const char *verb = ONE_OF("allow", "allow", "allow", "ask", "deny");
    put(b, "{\"%s\":\"%s", verb, ONE_OF("ok.com", "ok.com", "ok.com", ".com"));
    if (pick(4))
        put_path(b, true);
    put(b, "%s", "\"");
    if (pick(4) == 0)
        put(b, ",\"methods\":[\"%s\"]", ONE_OF("GET", "PUT", "POST"));
    else if (verb[0] != 'd' && pick(4) == 0)
        put(b, "%s", ",\"access\":\"read-only\"");
    if (verb[0] != 'd' && pick(3) == 0)
        put(b, "%s", ",\"with\":{\"bearer\":\"s\"}");
    if (verb[0] != 'd' && pick(4) == 0)
        put(b, "%s", ",\"headers\":{\"x-a\":\"1\"}");
    if (verb[0] != 'd' && pick(6) == 0)
        put(b, "%s", ",\"budget\":{\"requests\":\"5/m\"}");
    put(b, "%s", "}");
}

/* A policy that loads, or NULL. */
static struct policy *some_policy(struct buf *text)
{
    struct err err = {0};
    unsigned n = pick(RULES_MAX) + 1;
    buf_clear(text);
    put(text, "%s", "{\"policy\":\"p\",\"rules\":[");
    for (unsigned i = 0; i < n; i++) {
        if (i)
            put(text, "%s", ",");
        put_rule(text);
    }
    put(text, "%s", "]}");
    return policy_parse((const char *)buf_data(text), buf_len(text), &err);
}

/* One byte of a path in another way of writing. */
static void put_byte(struct buf *b, char c)
{
    switch (pick(5)) {
    case 0:
        put(b, "%%%02x", (unsigned)c);
        break;
    case 1:
        put(b, "%%%02X", (unsigned)c);
        break;
    case 2:
        put(b, "%%25%02x", (unsigned)c);
        break;
    case 3:
        c = (char)(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
        put(b, "%c", c);
        break;
    default:
        put(b, "%c", c);
    }
}

/* The same path as an origin might read it, spelled in another way. */
static void respell(struct slice path, struct buf *to)
{
    unsigned where = pick((unsigned)path.n);
    buf_clear(to);
    for (size_t i = 0; i < path.n; i++) {
        bool ends = i > 0 && (i + 1 == path.n || path.p[i + 1] == '/');
        if (path.p[i] != '/' && (i == where || pick(6) == 0))
            put_byte(to, path.p[i]);
        else
            put(to, "%c", path.p[i]);
        if (ends && pick(6) == 0)
            put(to, "%s", ONE_OF(";", ";x=1", ".", "%20", "%2e", "%3Bx"));
    }
    if (pick(5) == 0)
        put(to, "%s", ONE_OF("/", "%2f", "%3fx", "%23x"));
}

/* A slash as a byte of its segment is a path of its own, which a narrower rule may name; a wider
 * one must not decide where the plain path has a narrower one that asks for more. */
static struct decision decide(const struct policy *p, const char *method, struct slice path)
{
    struct authority a;
    struct decision d;
    (void)authority_parse(&a, SCHEME_HTTPS, SLICE("ok.com"));
    struct policy_request r = {&a, slice_str(method), path};
    policy_decide(p, &r, &d);
    return d;
}

static bool no_more(const struct decision *plain, const struct decision *other)
{
    if (other->verdict == VERDICT_DENY)
        return true;
    if (plain->verdict == VERDICT_DENY)
        return false;
    const struct rule *a = plain->rule, *b = other->rule;
    bool same_credential = (a->credential == NULL) == (b->credential == NULL);
    bool same_terms = a->ask == b->ask && same_credential && a->n_headers == b->n_headers;
    return a == b || (same_terms && a->budget == NULL && b->budget == NULL);
}

static void try_one(const struct policy *p, const struct buf *rules, struct buf *path,
                    struct buf *other, unsigned *seen)
{
    const char *method = ONE_OF("GET", "PUT", "POST", "DELETE");
    buf_clear(path);
    put_path(path, false);
    struct slice plain = buf_slice(path);
    struct decision d = decide(p, method, plain);
    for (unsigned i = 0; i < SPELLINGS; i++) {
        respell(plain, other);
        struct decision e = decide(p, method, buf_slice(other));
        seen[e.verdict]++;
        seen[3] += strcmp(e.code, "respelled") == 0;
        if (no_more(&d, &e))
            continue;
        printf("# %s %.*s is %s by %d, %.*s is %s by %d: %.*s\n", method, SL(plain), d.code,
               d.rule ? (int)d.rule->index : -1, SL(buf_slice(other)), e.code,
               e.rule ? (int)e.rule->index : -1, SL(buf_slice(rules)));
        CU_FAIL("a spelling is worth more than the plain one");
    }
}

static void respellings(void)
{
    struct buf rules, path, other;
    unsigned seen[4] = {0}, policies = 0;
    buf_init(&rules, 8192);
    buf_init(&path, 1024);
    buf_init(&other, 4096);
    while (policies < POLICIES) {
        struct policy *p = some_policy(&rules);
        if (p == NULL)
            continue; /* two of its rules differ in their credential and overlap */
        policies++;
        for (unsigned i = 0; i < REQUESTS; i++)
            try_one(p, &rules, &path, &other, seen);
        policy_free(p);
    }
    printf("# %u respelled requests: %u denied (%u as respelled), %u allowed, %u asked\n",
           seen[0] + seen[1] + seen[2], seen[VERDICT_DENY], seen[3], seen[VERDICT_ALLOW],
           seen[VERDICT_ASK]);
    CU_ASSERT(seen[0] + seen[1] + seen[2] >= 1000000);
    CU_ASSERT(seen[VERDICT_ALLOW] > 10000 && seen[VERDICT_ASK] > 1000 && seen[3] > 1000);
    buf_free(&rules);
    buf_free(&path);
    buf_free(&other);
}

/* A rule that asks, in the spelling of its author, beside one of the same reach that does not. */
static void asks_in_any_case(void)
{
    static const char text[] = "{\"policy\":\"p\",\"rules\":[{\"ask\":\"ok.com/X/**\"},"
                               "{\"allow\":\"ok.com/x/**\"}]}";
    struct err err = {0};
    struct policy *p = policy_parse(text, sizeof text - 1, &err);
    CU_ASSERT_PTR_NOT_NULL_FATAL(p);
    CU_ASSERT_EQUAL(decide(p, "GET", SLICE("/X/1")).verdict, VERDICT_ASK);
    CU_ASSERT_NOT_EQUAL(decide(p, "GET", SLICE("/x/1")).verdict, VERDICT_ALLOW);
    CU_ASSERT_NOT_EQUAL(decide(p, "GET", SLICE("/%58/1")).verdict, VERDICT_ALLOW);
    policy_free(p);
}

void tap_suites(void)
{
    CU_pSuite s = CU_add_suite("respelling", NULL, NULL);
    CU_add_test(s, "P7: no spelling is worth more than the plain one", respellings);
    CU_add_test(s, "a rule that asks beside one of the same reach", asks_in_any_case);
}
