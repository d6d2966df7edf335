/* Filters, ends that take over from their beginning, and the directories of runs. */
#include "tap_main.h"

#include "audit_fixture.h"
#include "log_tree.h"
#include "query.h"

#include <CUnit/CUnit.h>
#include <sys/stat.h>

void suite_query(void);

#define ZEROS "00000000000000000000000000000000"
#define LINE(kind, id, at, rest)                                                                  \
    "{\"seq\":1,\"prev\":\"" ZEROS ZEROS "\",\"kind\":\"" kind "\",\"id\":\"" id                  \
    "\",\"at\":1,\"time\":\"2026-11-21T0" at ":00:00.000000000Z\",\"received\":\"2026-11-21T0" at \
    ":00:00.000000000Z\",\"role\":\"gate\"" rest "}"

static const char *const lines[] = {
    LINE("admitted", "1-1", "1",
         ",\"sandbox\":\"a\",\"authority\":\"api.example.com\",\"method\":\"GET\",\"path\":\"/x\","
         "\"rule\":\"allow api.example.com\",\"credential\":\"github\""),
    LINE("denied", "1-2", "2",
         ",\"sandbox\":\"a\",\"authority\":\"evil.test:8443\",\"method\":\"POST\",\"status\":403,"
         "\"code\":\"no_rule\""),
    LINE("completed", "1-1", "3", ",\"sandbox\":\"a\",\"status\":200"),
    LINE("dns", "1-3", "4", ",\"sandbox\":\"b\",\"target\":\"tracker.evil.test\",\"count\":4"),
    "no json",
    "{\"kind\":\"nonsense\"}",
    LINE("aborted", "1-9", "5", ",\"sandbox\":\"b\",\"code\":\"writer_gone\""),
};

static char found[256];

static void collect(void *arg UNUSED, const struct query_row *r)
{
    size_t n = strlen(found);
    snprintf(found + n, sizeof found - n, "%s/%s ", record_kind_name(r->kind), r->authority);
}

static const char *run(const struct query_filter *f, uint64_t bad)
{
    struct query *q = query_new(f, collect, NULL);
    found[0] = 0;
    for (size_t i = 0; i < ARRAY_LEN(lines); i++)
        query_line(q, 1, slice_str(lines[i]), false);
    CU_ASSERT_EQUAL(query_bad(q), bad);
    query_free(q);
    return found;
}

static void test_filters(void)
{
    static const char all[] = "admitted/api.example.com denied/evil.test:8443 "
                              "completed/api.example.com dns/ aborted/ ";
    static const char pair[] = "admitted/api.example.com completed/api.example.com ";
    CU_ASSERT_STRING_EQUAL(run(&(struct query_filter){0}, 2), all);
    /* an end has what its beginning said; both conditions may be needed to find it */
    CU_ASSERT_STRING_EQUAL(run(&(struct query_filter){.method = "GET", .status = 200}, 2),
                           "completed/api.example.com ");
    CU_ASSERT_STRING_EQUAL(run(&(struct query_filter){.method = "POST", .status = 200}, 2), "");
    CU_ASSERT_STRING_EQUAL(
        run(&(struct query_filter){.kinds = query_kinds("completed"), .credential = "github"}, 2),
        "completed/api.example.com ");
    CU_ASSERT_STRING_EQUAL(run(&(struct query_filter){.host = "api.example.com"}, 2), pair);
    CU_ASSERT_STRING_EQUAL(run(&(struct query_filter){.host = ".example.com"}, 2), pair);
    CU_ASSERT_STRING_EQUAL(run(&(struct query_filter){.host = ".api.example.com"}, 2), "");
    CU_ASSERT_STRING_EQUAL(run(&(struct query_filter){.host = "example.com"}, 2), "");
    CU_ASSERT_STRING_EQUAL(run(&(struct query_filter){.host = "EVIL.test"}, 2),
                           "denied/evil.test:8443 ");
    CU_ASSERT_STRING_EQUAL(run(&(struct query_filter){.host = "evil.test:8443"}, 2),
                           "denied/evil.test:8443 ");
    CU_ASSERT_STRING_EQUAL(run(&(struct query_filter){.host = ".evil.test"}, 2), "dns/ ");
    CU_ASSERT_STRING_EQUAL(run(&(struct query_filter){.credential = "github"}, 2), pair);
    CU_ASSERT_STRING_EQUAL(run(&(struct query_filter){.rule = "allow api.example.com"}, 2), pair);
    CU_ASSERT_STRING_EQUAL(run(&(struct query_filter){.id = "1-1"}, 2), pair);
    CU_ASSERT_STRING_EQUAL(run(&(struct query_filter){.id = "1-1", .status = 200}, 2),
                           "completed/api.example.com ");
    CU_ASSERT_STRING_EQUAL(run(&(struct query_filter){.status = 403}, 2), "denied/evil.test:8443 ");
    CU_ASSERT_STRING_EQUAL(run(&(struct query_filter){.code = "no_rule"}, 2),
                           "denied/evil.test:8443 ");
    CU_ASSERT_STRING_EQUAL(run(&(struct query_filter){.sandbox = "b"}, 2), "dns/ aborted/ ");
    CU_ASSERT_STRING_EQUAL(run(&(struct query_filter){.text = "TRACKER"}, 2), "dns/ ");
    CU_ASSERT_STRING_EQUAL(run(&(struct query_filter){.kinds = query_kinds("deny,dns")}, 2),
                           "denied/evil.test:8443 dns/ ");
    CU_ASSERT_EQUAL(query_kinds("deny,what"), 0);
    CU_ASSERT_EQUAL(query_kinds(""), 0);
}

static void test_time(void)
{
    uint64_t hour = 3600ULL * 1000000000U, day = 1795219200ULL * 1000000000U; /* 2026-11-21 */
    CU_ASSERT_STRING_EQUAL(run(&(struct query_filter){.since = day + 4 * hour}, 2),
                           "dns/ aborted/ ");
    CU_ASSERT_STRING_EQUAL(run(&(struct query_filter){.until = day + 2 * hour}, 2),
                           "admitted/api.example.com ");
    CU_ASSERT_STRING_EQUAL(
        run(&(struct query_filter){.since = day + 2 * hour, .until = day + 3 * hour}, 2),
        "denied/evil.test:8443 ");
}

/* The same id in another directory is another request. */
static void test_directories_apart(void)
{
    struct query_filter f = {.host = "api.example.com"};
    struct query *q = query_new(&f, collect, NULL);
    found[0] = 0;
    query_line(q, 1, slice_str(lines[0]), true);
    query_line(q, 2, slice_str(lines[2]), false);
    CU_ASSERT_STRING_EQUAL(found, "");
    query_line(q, 1, slice_str(lines[2]), false);
    CU_ASSERT_STRING_EQUAL(found, "completed/api.example.com ");
    CU_ASSERT_EQUAL(query_matched(q), 1);
    query_free(q);
}

static void put(const char *dir, const char *sub, const char *name, const char *text)
{
    char path[768];
    snprintf(path, sizeof path, "%s/%s", dir, sub);
    mkdir(path, 0700);
    snprintf(path, sizeof path, "%s/%s/%s", dir, sub, name);
    FILE *f = fopen(path, "a");
    CU_ASSERT_PTR_NOT_NULL_FATAL(f);
    fputs(text, f);
    fclose(f);
}

static int append(void *arg UNUSED, const struct log_tree_dir *d, struct slice line)
{
    size_t n = strlen(found);
    snprintf(found + n, sizeof found - n, "%s%.*s ", d->name, SL(line));
    return 0;
}

static void test_tree(void)
{
    static const char a[] = "audit-20260101T000000Z.jsonl", b[] = "audit-20260102T000000Z.jsonl";
    char *dir = fixture_dir();
    struct log_tree t;
    struct err err = {0};
    put(dir, ".", a, "1\n2\n3\n");
    put(dir, ".", b, "4\n5\nhal");
    put(dir, "run-x", a, ":6\n");
    put(dir, ".", "notes.jsonl", "not ours\n");
    CU_ASSERT_EQUAL_FATAL(log_tree_open(&t, dir, &err), 0);
    CU_ASSERT_EQUAL_FATAL(t.n, 2);
    struct log_tree_dir *base = t.dir[0], *sub = t.dir[1];
    found[0] = 0;
    CU_ASSERT_EQUAL(log_tree_read(&t, base, 0, append, NULL, &err), 0);
    CU_ASSERT_STRING_EQUAL(found, "1 2 3 4 5 ");
    put(dir, ".", b, "f\n7\n"); /* the half line is whole now */
    found[0] = 0;
    CU_ASSERT_EQUAL(log_tree_read(&t, base, 0, append, NULL, &err), 0);
    CU_ASSERT_STRING_EQUAL(found, "half 7 ");
    static const struct {
        size_t keep;
        const char *want;
    } seeks[] = {{0, ""},
                 {1, "7 "},
                 {4, "4 5 half 7 "},
                 {5, "3 4 5 half 7 "},
                 {7, "1 2 3 4 5 half 7 "},
                 {99, "1 2 3 4 5 half 7 "}};
    for (size_t i = 0; i < ARRAY_LEN(seeks); i++) {
        found[0] = 0;
        CU_ASSERT_EQUAL(log_tree_seek(&t, base, seeks[i].keep, &err), 0);
        CU_ASSERT_EQUAL(log_tree_read(&t, base, 0, append, NULL, &err), 0);
        CU_ASSERT_STRING_EQUAL(found, seeks[i].want);
    }
    found[0] = 0;
    CU_ASSERT_EQUAL(log_tree_read(&t, sub, 0, append, NULL, &err), 0);
    CU_ASSERT_STRING_EQUAL(found, "run-x:6 ");
    put(dir, "run-y", a, "!8\n"); /* a run that begins while we look */
    CU_ASSERT_EQUAL(log_tree_refresh(&t, &err), 0);
    CU_ASSERT_EQUAL_FATAL(t.n, 3);
    log_tree_done(&t);
    CU_ASSERT_EQUAL(log_tree_open(&t, "/nonexistent", &err), -1);
    fixture_remove(dir);
}

void suite_query(void)
{
    CU_pSuite s = CU_add_suite("query", NULL, NULL);
    CU_add_test(s, "every filter", test_filters);
    CU_add_test(s, "since and until", test_time);
    CU_add_test(s, "directories are apart", test_directories_apart);
    CU_add_test(s, "positions in a tree of logs", test_tree);
}

void tap_suites(void)
{
    suite_query();
}
