/* A command line that has no room for a word says so, whatever the word was. */
#include "words.h"

#include <string.h>

#include "tap_main.h"

void suite_words(void);

static void test_added(void)
{
    static struct words w;
    WORDS_ADD(&w, "bwrap", "--new-session");
    words_add(&w, "true");
    CU_ASSERT_EQUAL(w.n, 3);
    CU_ASSERT_STRING_EQUAL(w.v[1], "--new-session");
    CU_ASSERT_STRING_EQUAL(w.v[2], "true");
    CU_ASSERT_PTR_NULL(w.v[3]);
    CU_ASSERT_FALSE(w.full);
}

static void test_full(void)
{
    static struct words w;
    for (unsigned i = 0; i < WORDS_MAX - 1; i++)
        words_add(&w, "x");
    CU_ASSERT(w.n == WORDS_MAX - 1 && !w.full);
    WORDS_ADD(&w, "--cap-drop", "ALL");
    CU_ASSERT(w.n == WORDS_MAX - 1 && w.full);
    CU_ASSERT_PTR_NULL(w.v[w.n]);
}

void suite_words(void)
{
    CU_pSuite s = CU_add_suite("words", NULL, NULL);
    CU_add_test(s, "added", test_added);
    CU_add_test(s, "no room", test_full);
}

void tap_suites(void)
{
    suite_words();
}
