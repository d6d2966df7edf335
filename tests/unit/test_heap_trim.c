/* Memory goes back after a crowd: not for a few, once for many, and again for the next crowd. */
#include <CUnit/CUnit.h>
#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "compiler.h"
#include "loop_bed.h"
#include "heap_trim.h"
#include "tap_main.h"

void suite_heap_trim(void);

enum { CROWD = 8, THINGS = 400, THING = 50 * 1024 };

static int waiting(void)
{
    return event_base_get_num_events(base, EVENT_BASE_COUNT_ADDED);
}

static int now(const struct event_base *b UNUSED, const struct event *e, void *left)
{
    CU_ASSERT(event_pending(e, EV_TIMEOUT, left));
    event_active((struct event *)(uintptr_t)e, EV_TIMEOUT, 1);
    return 0;
}

/* What is planned is done at once. *left: when it would have been, from the epoch. */
static void pass(struct timeval *left)
{
    CU_ASSERT_EQUAL(event_base_foreach_event(base, now, left), 0);
    CU_ASSERT(event_base_loop(base, EVLOOP_NONBLOCK) >= 0);
}

static void notes(struct heap_trim *s, int n)
{
    for (int i = 0; i < n; i++)
        heap_trim_note(s);
}

static void test_when(void)
{
    struct timeval due, t;
    struct heap_trim *s = heap_trim_new(base);
    CU_ASSERT_PTR_NOT_NULL_FATAL(s);
    for (int round = 0; round < 3; round++) { /* each crowd is counted from nothing */
        notes(s, CROWD - 1);
        CU_ASSERT_EQUAL(waiting(), 0);
        notes(s, 1);
        CU_ASSERT_EQUAL(waiting(), 1);
        notes(s, 10 * CROWD); /* more of them wait no longer */
        CU_ASSERT_EQUAL(waiting(), 1);
        event_base_gettimeofday_cached(base, &t);
        pass(&due);
        CU_ASSERT(due.tv_sec >= t.tv_sec && due.tv_sec <= t.tv_sec + 6);
        CU_ASSERT_EQUAL(waiting(), 0);
    }
    notes(s, CROWD);
    heap_trim_free(s); /* with it goes what was planned */
    CU_ASSERT_EQUAL(waiting(), 0);
    notes(NULL, CROWD);
    heap_trim_free(NULL);
    CU_ASSERT_EQUAL(waiting(), 0);
}

static long managed_sandbox(void)
{
    long all = 0, pages = 0;
    FILE *f = fopen("/proc/self/statm", "re");
    CU_ASSERT_PTR_NOT_NULL_FATAL(f);
    CU_ASSERT_EQUAL(fscanf(f, "%ld %ld", &all, &pages), 2);
    fclose(f);
    return pages * sysconf(_SC_PAGESIZE);
}

/* A small thing that stands behind them holds the heap's end up. */
static void test_memory(void)
{
#ifdef __SANITIZE_ADDRESS__
    tap_skip("the sanitizer's heap is not the C library's");
    return;
#endif
    struct timeval due;
    struct heap_trim *s = heap_trim_new(base);
    static void *thing[THINGS];
    for (size_t i = 0; i < THINGS; i++) {
        thing[i] = malloc(THING);
        CU_ASSERT_PTR_NOT_NULL_FATAL(thing[i]);
        memset(thing[i], 1, THING);
    }
    void *behind = malloc(100);
    CU_ASSERT_PTR_NOT_NULL_FATAL(behind);
    memset(behind, 1, 100);
    for (size_t i = 0; i < THINGS; i++) {
        free(thing[i]);
        heap_trim_note(s);
    }
    long before = managed_sandbox();
    pass(&due);
    long after = managed_sandbox();
    printf("# %ld KiB before, %ld KiB after\n", before / 1024, after / 1024);
    CU_ASSERT(before - after > (long)THINGS * THING / 2);
    free(behind);
    heap_trim_free(s);
}

void suite_heap_trim(void)
{
    CU_pSuite s = CU_add_suite("heap_trim", setup, teardown);
    CU_add_test(s, "for a crowd, and once for each", test_when);
    CU_add_test(s, "the host has it back", test_memory);
}

void tap_suites(void)
{
    suite_heap_trim();
}
