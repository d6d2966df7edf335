#include "tap_main.h"

#include <CUnit/TestDB.h>
#include <CUnit/TestRun.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static unsigned done;
static const char *skip_reason;

void tap_skip(const char *reason)
{
    skip_reason = reason;
}

/* A '#' in a name would begin a TAP directive, a newline another line. */
static void put_text(const char *s)
{
    for (; s && *s; s++)
        putchar(*s == '#' || *s == '\n' || *s == '\r' ? ' ' : *s);
}

static void test_started(const CU_pTest test, const CU_pSuite suite)
{
    (void)test;
    (void)suite;
    skip_reason = NULL;
}

static void test_done(const CU_pTest test, const CU_pSuite suite, const CU_pFailureRecord failures)
{
    printf("%sok %u - ", failures ? "not " : "", ++done);
    put_text(suite->pName);
    fputs(": ", stdout);
    put_text(test->pName);
    if (skip_reason && failures == NULL) {
        fputs(" # SKIP ", stdout);
        put_text(skip_reason);
    }
    putchar('\n');
    for (CU_pFailureRecord f = failures; f; f = f->pNext) {
        printf("# %s:%u: ", f->strFileName ? f->strFileName : "?", f->uiLineNumber);
        put_text(f->strCondition);
        putchar('\n');
    }
    fflush(stdout);
}

static void suite_init_failed(const CU_pSuite suite)
{
    fputs("Bail out! the setup of suite ", stdout);
    put_text(suite->pName);
    fputs(" failed\n", stdout);
    fflush(stdout);
}

static void suite_cleanup_failed(const CU_pSuite suite)
{
    fputs("Bail out! the cleanup of suite ", stdout);
    put_text(suite->pName);
    fputs(" failed\n", stdout);
    fflush(stdout);
}

static int bail_out(const char *why)
{
    printf("Bail out! %s: %s\n", why, CU_get_error_msg());
    return 1;
}

/* Leaves out what has `wanted` neither in its own name nor in its suite's. -> how many are left */
static unsigned choose(const char *wanted)
{
    unsigned left = 0;
    CU_set_fail_on_inactive(CU_FALSE);
    for (CU_pSuite s = CU_get_registry()->pSuite; s; s = s->pNext) {
        unsigned of_suite = 0;
        for (CU_pTest t = s->pTest; t; t = t->pNext) {
            bool on = strstr(s->pName, wanted) || strstr(t->pName, wanted);
            CU_set_test_active(t, on ? CU_TRUE : CU_FALSE);
            of_suite += on;
        }
        CU_set_suite_active(s, of_suite ? CU_TRUE : CU_FALSE);
        left += of_suite;
    }
    return left;
}

/* TAP_CASE in the environment: only tests, or suites, that have this in their names (tests/one).
 * Exits 0 after a complete run, whatever the results: the results are in the TAP stream. */
int main(void)
{
    if (CU_initialize_registry() != CUE_SUCCESS)
        return bail_out("no test registry");
    tap_suites();
    if (CU_get_error() != CUE_SUCCESS)
        return bail_out("a suite or test could not be registered");
    const char *wanted = getenv("TAP_CASE");
    unsigned planned = choose(wanted ? wanted : "");
    if (planned == 0)
        return bail_out(wanted && *wanted ? "no test has that in its name"
                                          : "no test is registered");
    printf("1..%u\n", planned);
    fflush(stdout);
    CU_set_test_start_handler(test_started);
    CU_set_test_complete_handler(test_done);
    CU_set_suite_init_failure_handler(suite_init_failed);
    CU_set_suite_cleanup_failure_handler(suite_cleanup_failed);
    CU_ErrorCode code = CU_run_all_tests();
    CU_cleanup_registry();
    return code == CUE_SUCCESS && done == planned ? 0 : 1;
}
