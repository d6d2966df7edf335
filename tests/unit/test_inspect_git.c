/* What a git rule lets through: which references a push may name, what may be deleted or rewritten,
 * and which way a git-lfs batch goes. */
#include <CUnit/CUnit.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "buf.h"
#include "inspect.h"
#include "policy.h"
#include "tap_main.h"

void suite_inspect_git(void);

#define A40   "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define B40   "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define Z40   "0000000000000000000000000000000000000000"
#define PUSH  "/a/b.git/git-receive-pack"
#define BATCH "/a/b.git/info/lfs/objects/batch"
#define LFS   "application/vnd.git-lfs+json"

static const char fetch[] = "\"git\":\"fetch\"", push[] = "\"git\":\"push\"",
                  narrow[] = "\"git\":\"push\",\"refs\":[\"refs/heads/agent/**\","
                             "\"refs/tags/v*\"]",
                  forced[] = "\"git\":\"push\",\"refs\":{\"names\":\"refs/heads/x\","
                             "\"force\":true}",
                  deletes[] = "\"git\":\"push\",\"refs\":{\"names\":\"refs/heads/x\","
                              "\"delete\":true}";

static struct policy *policy_with(const char *rule)
{
    struct err err = {0};
    char text[512];
    int n = snprintf(text, sizeof text,
                     "{\"policy\":\"p\",\"rules\":[{\"allow\":\"a.com/a/b\",%s}]}", rule);
    struct policy *p = policy_parse(text, (size_t)n, &err);
    if (p == NULL)
        printf("# %s: %s\n", rule, err.text);
    CU_ASSERT_PTR_NOT_NULL_FATAL(p);
    CU_ASSERT_PTR_NOT_NULL_FATAL(policy_rule(p, 0)->inspection);
    return p;
}

static struct inspect_request request(const char *path, const char *type, bool has_body)
{
    return (struct inspect_request){.method = has_body ? SLICE("POST") : SLICE("GET"),
                                    .path = slice_str(path),
                                    .n_types = type != NULL,
                                    .type = slice_str(type),
                                    .has_body = has_body};
}

/* "pass", "more" or the code; pack: what inspect_result says of it. */
static const char *answer(const char *rule, const char *path, const char *type, struct slice body,
                          bool whole, struct inspect_result *ret)
{
    struct policy *p = policy_with(rule);
    struct inspect_request r = request(path, type, true);
    *ret = (struct inspect_result){0};
    enum inspect_answer a = inspect_head(policy_rule(p, 0)->inspection, &r, ret);
    if (a == INSPECT_MORE)
        a = inspect_body(policy_rule(p, 0)->inspection, &r, body, whole, ret);
    policy_free(p);
    return a == INSPECT_PASS ? "pass" : a == INSPECT_MORE ? "more" : ret->code;
}

static void command(struct buf *b, const char *old_id, const char *new_id, const char *ref)
{
    static const char caps[] = "report-status";
    bool first = buf_len(b) == 0;
    size_t n = 4 + strlen(old_id) + strlen(new_id) + 2 + strlen(ref) + (first ? sizeof caps : 0);
    CU_ASSERT_EQUAL_FATAL(buf_printf(b, "%04zx%s %s %s", n, old_id, new_id, ref), 0);
    if (first)
        CU_ASSERT(buf_append(b, "", 1) == 0 && buf_append_str(b, caps) == 0);
}

static void pushes(const char *rule, const char *old_id, const char *new_id, const char *ref,
                   const char *want, bool pack)
{
    struct inspect_result why;
    struct buf b;
    buf_init(&b, 4096);
    command(&b, old_id, new_id, ref);
    CU_ASSERT_EQUAL(buf_append_str(&b, "0000PACK"), 0);
    const char *got = answer(rule, PUSH, NULL, buf_slice(&b), false, &why);
    if (strcmp(got, want) != 0 || why.pack != pack) {
        printf("# %s of %s: %s %d %s\n", rule, ref, got, why.pack, why.detail);
        CU_FAIL("a push");
    }
    buf_free(&b);
}

static void test_refs(void)
{
    pushes(narrow, Z40, A40, "refs/heads/agent/a/b", "pass", false);
    pushes(narrow, Z40, A40, "refs/tags/v1.2", "pass", false);
    pushes(narrow, A40, B40, "refs/heads/agent/a", "pass", true); /* if its pack shows descent */
    pushes(narrow, A40, B40, "refs/heads/main", "ref", false);
    pushes(narrow, A40, B40, "refs/heads/agent", "ref", false);
    pushes(narrow, Z40, A40, "refs/tags/v1/2", "ref", false);
    pushes(narrow, A40, Z40, "refs/heads/agent/a", "ref", false); /* a deletion */
    pushes(narrow, A40, Z40, "refs/heads/main", "ref", false);
    pushes(forced, A40, B40, "refs/heads/x", "pass", false);
    pushes(forced, A40, Z40, "refs/heads/x", "ref", false);
    pushes(deletes, A40, Z40, "refs/heads/x", "pass", false);
    pushes(deletes, A40, B40, "refs/heads/x", "pass", true);
    pushes(deletes, A40, Z40, "refs/heads/y", "ref", false);
}

/* One that is not allowed among many spoils them all, wherever it stands. */
static void test_among(void)
{
    for (int at = 0; at < 5; at++) {
        struct inspect_result why;
        struct buf b;
        buf_init(&b, 4096);
        for (int i = 0; i < 5; i++)
            command(&b, A40, B40, i == at ? "refs/heads/main" : "refs/heads/agent/a");
        CU_ASSERT_EQUAL(buf_append_str(&b, "0000"), 0);
        CU_ASSERT_STRING_EQUAL(answer(narrow, PUSH, NULL, buf_slice(&b), true, &why), "ref");
        CU_ASSERT_EQUAL(why.status, 403);
        CU_ASSERT_STRING_EQUAL(why.detail, "not allowed: refs/heads/main");
        for (size_t n = 0; n < buf_len(&b); n++) { /* before its end: more, or what ends too soon */
            struct slice some = {(char *)buf_data(&b), n};
            CU_ASSERT_STRING_EQUAL(answer(narrow, PUSH, NULL, some, false, &why), "more");
            CU_ASSERT_STRING_EQUAL(answer(narrow, PUSH, NULL, some, true, &why), "body_ambiguous");
            CU_ASSERT_EQUAL(why.status, 400);
        }
        buf_free(&b);
    }
}

static void test_malformed(void)
{
    struct inspect_result why;
    CU_ASSERT_STRING_EQUAL(answer(narrow, PUSH, NULL, SLICE("zzzz"), false, &why),
                           "body_ambiguous");
    CU_ASSERT_STRING_EQUAL(answer(narrow, PUSH, NULL, SLICE("0000"), true, &why), "pass");
    CU_ASSERT_FALSE(why.pack);
    char ref[300] = "refs/heads/", want[160];
    memset(ref + 11, 'n', 200); /* a long name is cut in what is told of it */
    snprintf(want, sizeof want, "not allowed: %.100s", ref);
    struct buf b;
    buf_init(&b, 4096);
    command(&b, Z40, A40, ref);
    CU_ASSERT_EQUAL(buf_append_str(&b, "0000"), 0);
    CU_ASSERT_STRING_EQUAL(answer(narrow, PUSH, NULL, buf_slice(&b), true, &why), "ref");
    CU_ASSERT_STRING_EQUAL(why.detail, want);
    buf_free(&b);
}

/* What needs no body, and what may not come without one. */
static void test_heads(void)
{
    static const struct {
        const char *rule, *path, *type;
        bool body, coded;
        enum inspect_answer want;
        const char *code;
    } rows[] = {
        {narrow, "/a/b.git/info/refs", NULL, false, false, INSPECT_PASS, ""},
        {narrow, "/a/b.git/git-upload-pack", NULL, true, false, INSPECT_PASS, ""},
        {narrow, PUSH, NULL, true, false, INSPECT_MORE, ""},
        {narrow, PUSH, NULL, false, false, INSPECT_REFUSED, "ref"},
        {narrow, PUSH, NULL, true, true, INSPECT_REFUSED, "content_coding"},
        {push, PUSH, NULL, true, false, INSPECT_PASS, ""}, /* nothing is asked about it */
        {fetch, BATCH, LFS, true, false, INSPECT_MORE, ""},
        {fetch, BATCH, "text/plain", true, false, INSPECT_REFUSED, "content_type"},
        {fetch, BATCH, NULL, true, false, INSPECT_REFUSED, "content_type"},
        {fetch, BATCH, LFS, false, false, INSPECT_REFUSED, "lfs"},
        {fetch, BATCH, LFS, true, true, INSPECT_REFUSED, "content_coding"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct policy *p = policy_with(rows[i].rule);
        struct inspect_request r = request(rows[i].path, rows[i].type, rows[i].body);
        struct inspect_result why = {.code = ""};
        r.coded = rows[i].coded;
        CU_ASSERT_EQUAL(inspect_head(policy_rule(p, 0)->inspection, &r, &why), rows[i].want);
        CU_ASSERT_STRING_EQUAL(why.code, rows[i].code);
        policy_free(p);
    }
}

static void batch(const char *rule, const char *body, const char *want)
{
    struct inspect_result why;
    const char *got = answer(rule, BATCH, LFS, slice_str(body), true, &why);
    if (strcmp(got, want) != 0) {
        printf("# %s: %s: %s (%s), not %s\n", rule, body, got, why.detail, want);
        CU_FAIL("a batch");
    }
    CU_ASSERT_STRING_EQUAL(answer(rule, BATCH, LFS, slice_str(body), false, &why), "more");
}

static void test_lfs(void)
{
    batch(fetch, "{\"operation\":\"download\",\"objects\":[]}", "pass");
    batch(push, "{\"operation\":\"download\"}", "pass");
    batch(push, "{\"operation\":\"upload\"}", "pass");
    batch(fetch, "{\"operation\":\"upload\"}", "lfs");
    batch(push, "{\"operation\":\"verify\"}", "lfs");
    batch(fetch, "{\"operation\":\"Download\"}", "lfs");
    batch(fetch, "{\"operation\":1}", "lfs");
    batch(fetch, "{}", "lfs");
    batch(fetch, "[]", "lfs");
    /* what another reader could take for the other way */
    batch(fetch, "{\"operation\":\"download\",\"Operation\":\"upload\"}", "lfs");
    batch(fetch, "{\"operation\":\"download\",\"operation\":\"upload\"}", "body_ambiguous");
    batch(fetch, "{\"operation\":\"download\"} {\"operation\":\"upload\"}", "body_ambiguous");
    batch(fetch, "{\"operation\":\"download\"", "body_ambiguous");
    batch(fetch, "", "body_ambiguous");
}

static void test_words(void)
{
    static const char *const rules[] = {fetch, push, narrow, forced, deletes};
    for (size_t i = 0; i < ARRAY_LEN(rules); i++) {
        char text[256];
        struct policy *p = policy_with(rules[i]);
        const struct inspection *in = policy_rule(p, 0)->inspection;
        CU_ASSERT_PTR_EQUAL(inspection_text(in, text, sizeof text), text);
        CU_ASSERT_EQUAL(strncmp(text, "git", 3), 0);
        CU_ASSERT_EQUAL(strstr(text, "no uploads of git-lfs") != NULL, i == 0);
        CU_ASSERT_EQUAL(inspect_bound(in), INSPECT_LARGE);
        policy_free(p);
    }
}

void suite_inspect_git(void)
{
    CU_pSuite s = CU_add_suite("inspect_git", NULL, NULL);
    CU_add_test(s, "which references", test_refs);
    CU_add_test(s, "each command counts, and all of it has to be there", test_among);
    CU_add_test(s, "what is no push", test_malformed);
    CU_add_test(s, "heads", test_heads);
    CU_add_test(s, "batches of git-lfs", test_lfs);
    CU_add_test(s, "in words", test_words);
}

void tap_suites(void)
{
    suite_inspect_git();
}
