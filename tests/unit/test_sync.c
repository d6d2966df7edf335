/* What `durward sandbox sync` does with a path: all states of both sides, the names that it
 * carries, and what is ignored. */
#include <CUnit/CUnit.h>
#include <stdio.h>
#include <string.h>

#include "compiler.h"
#include "sync_decide.h"
#include "sync_ignore.h"
#include "sync_name.h"
#include "tap_main.h"

/* ---- deciding ---- */

#define NO   SYNC_NOTHING
#define SEND SYNC_SEND
#define TAKE SYNC_RECEIVE
#define DELI SYNC_DELETE_INSIDE
#define DELH SYNC_DELETE_HERE
#define NOTE SYNC_NOTE
#define GONE SYNC_FORGET
#define CONF SYNC_CONFLICT

/* [what was common][here][inside]: absent, same, changed; of bytes that differ. */
static const enum sync_action both[3][3][3] = {
    [SYNC_NONE] = {{NO, TAKE, TAKE}, {SEND, CONF, CONF}, {SEND, CONF, CONF}},
    [SYNC_COMMON] = {{GONE, DELI, TAKE}, {DELH, NO, TAKE}, {SEND, SEND, CONF}},
    [SYNC_DIVERGED] = {{GONE, TAKE, TAKE}, {SEND, CONF, CONF}, {SEND, CONF, CONF}}};
static const enum sync_action in[3][3][3] = {
    [SYNC_NONE] = {{NO, NO, NO}, {SEND, CONF, CONF}, {SEND, CONF, CONF}},
    [SYNC_COMMON] = {{GONE, DELI, NO}, {NO, NO, NO}, {SEND, SEND, CONF}},
    [SYNC_DIVERGED] = {{GONE, NO, NO}, {SEND, NO, CONF}, {SEND, CONF, CONF}}};
static const enum sync_action out[3][3][3] = {
    [SYNC_NONE] = {{NO, TAKE, TAKE}, {NO, CONF, CONF}, {NO, CONF, CONF}},
    [SYNC_COMMON] = {{GONE, NO, TAKE}, {DELH, NO, TAKE}, {NO, NO, CONF}},
    [SYNC_DIVERGED] = {{GONE, TAKE, TAKE}, {NO, NO, CONF}, {NO, NO, CONF}}};

/* Of bytes that are the same there is no conflict; but what diverged is noted anew only where it
 * changed again. */
static enum sync_action decide_equal(enum sync_action want)
{
    return want == CONF ? NOTE : want;
}

static void check(enum sync_direction d, const enum sync_action table[3][3][3])
{
    for (unsigned c = 0; c < 3; c++)
        for (unsigned h = 0; h < 3; h++)
            for (unsigned i = 0; i < 3; i++) {
                enum sync_action want = table[c][h][i];
                enum sync_action got = sync_decide(d, (enum sync_common)c, (enum sync_side_state)h,
                                                   (enum sync_side_state)i, false);
                if (got != want)
                    fprintf(stderr, "direction %d, common %u, here %u, inside %u: %d, not %d\n",
                            (int)d, c, h, i, (int)got, (int)want);
                CU_ASSERT_EQUAL(got, want);
                got = sync_decide(d, (enum sync_common)c, (enum sync_side_state)h,
                                  (enum sync_side_state)i, true);
                CU_ASSERT_EQUAL(got, want == NO ? got : decide_equal(want));
            }
}

static void test_decide(void)
{
    check(SYNC_BOTH, both);
    check(SYNC_IN, in);
    check(SYNC_OUT, out);
}

/* Whatever it is, no change is lost: what somebody changed is deleted or written over nowhere. */
static void test_nothing_lost(void)
{
    for (unsigned d = 0; d < 3; d++)
        for (unsigned c = 0; c < 3; c++)
            for (unsigned s = 0; s < 3; s++) {
                enum sync_action a = sync_decide((enum sync_direction)d, (enum sync_common)c,
                                                 SYNC_CHANGED, (enum sync_side_state)s, false);
                CU_ASSERT_TRUE(a != SYNC_RECEIVE && a != SYNC_DELETE_HERE);
                a = sync_decide((enum sync_direction)d, (enum sync_common)c,
                                (enum sync_side_state)s, SYNC_CHANGED, false);
                CU_ASSERT_TRUE(a != SYNC_SEND && a != SYNC_DELETE_INSIDE);
            }
}

/* ---- names ---- */

static void test_names(void)
{
    static const char *const good[] = {"a",      "a/b",  "...",        ".a/..b", "a b",
                                       "\u00e4", "日本", "x\u200dy/z", "-",      "a:b"};
    static const char *const bad[] = {"",
                                      "/a",
                                      "a/",
                                      "a//b",
                                      ".",
                                      "..",
                                      "a/..",
                                      "../a",
                                      "a/./b",
                                      "a/../b",
                                      "a\nb",
                                      "a\033b",
                                      "\x7f",
                                      "\xff",
                                      "a\xc2\x9b",
                                      "\xc0\xaf",
                                      "a\xe2\x80\xae"
                                      "b",
                                      "\xed\xa0\x80",
                                      "\xe2\x80\xa8"};
    char path[SYNC_PATH + 8];
    for (size_t i = 0; i < ARRAY_LEN(good); i++)
        CU_ASSERT_TRUE(sync_name_ok(good[i]));
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        CU_ASSERT_FALSE(sync_name_ok(bad[i]));
    memset(path, 'a', sizeof path);
    path[SYNC_NAME] = '\0';
    CU_ASSERT_TRUE(sync_name_ok(path));
    path[SYNC_NAME] = 'a';
    path[SYNC_NAME + 1] = '\0';
    CU_ASSERT_FALSE(sync_name_ok(path));
    for (size_t i = 0; i < 2 * (SYNC_DEPTH + 1); i++)
        path[i] = i % 2 ? '/' : 'a';
    path[2 * SYNC_DEPTH - 1] = '\0';
    CU_ASSERT_TRUE(sync_name_ok(path));
    path[2 * SYNC_DEPTH - 1] = '/';
    path[2 * SYNC_DEPTH + 1] = '\0';
    CU_ASSERT_FALSE(sync_name_ok(path));
}

static void test_kinds(void)
{
    static const char *const git[] = {".git/hooks/x", ".git", "a/.GIT/config", "HEAD", "b/head"};
    static const char *const no_git[] = {".gitignore", "a.git", "a/git/x", "HEADER", "x/AHEAD"};
    static const char *const own[] = {".durward-part-1", "a/.durward-sync-1/x", "a.conflict-sb-1",
                                      "b/a.c.conflict-sb-9f-12"};
    static const char *const no_own[] = {".durwardignore", "a.conflict", "a.conflict-x",
                                         ".conflict-1", "x-1"};
    for (size_t i = 0; i < ARRAY_LEN(git); i++) {
        CU_ASSERT_TRUE(sync_name_git(git[i]));
        CU_ASSERT_FALSE(sync_name_git(no_git[i]));
        CU_ASSERT_FALSE(sync_name_own(no_own[i]));
    }
    for (size_t i = 0; i < ARRAY_LEN(own); i++)
        CU_ASSERT_TRUE(sync_name_own(own[i]));
    CU_ASSERT_TRUE(sync_name_ignore_file(".durwardignore"));
    CU_ASSERT_TRUE(sync_name_ignore_file(".DurwardIgnore"));
    CU_ASSERT_FALSE(sync_name_ignore_file("a/.durwardignore"));
}

/* ---- ignoring ---- */

static void test_ignored(void)
{
    static const struct {
        const char *text, *path;
        bool directory, ignored;
    } rows[] = {
        {"*.o", "a/b.o", false, true},
        {"*.o", "b.c", false, false},
        {"/b", "b", false, true},
        {"/b", "a/b", false, false},
        {"a/b", "x/a/b", false, false},
        {"**/b", "x/y/b", false, true},
        {"**/b", "b", false, true},
        {"a/**", "a/x/y", false, true},
        {"a/**", "a", true, false},
        {"a/**/b", "a/b", false, true},
        {"a/**/b", "a/x/y/b", false, true},
        {"a/**/b", "a/x/y/c", false, false},
        {"dir/", "dir", true, true},
        {"dir/", "dir", false, false},
        {"dir/", "x/dir/y", false, true},
        {"*.log\n!keep.log", "keep.log", false, false},
        {"*.log\n!keep.log", "x.log", false, true},
        {"d\n!d/x", "d/x", false, true}, /* what lies in an ignored directory */
        {"# a\n\n  \nb", "a", false, false},
        {"# a\n\n  \nb", "b", false, true},
        {"\\#a", "#a", false, true},
        {"\\!a", "!a", false, true},
        {"[a-c]x", "bx", false, true},
        {"[!a-c]x", "bx", false, false},
        {"[!a-c]x", "dx", false, true},
        {"[a", "[a", false, true},
        {"[]]", "]", false, true},
        {"a?c", "abc", false, true},
        {"a*c*e", "abcde", false, true},
        {"a*c*e", "abcdf", false, false},
        {"*", "a", false, true},
        {"a/*", "a/b", false, true},
        {"a/*/c", "a/b/b/c", false, false},
        {"b ", "b", false, true},
        {"a\r\n", "a", false, true},
        {"", "a", false, false},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct sync_ignore g = {0};
        struct err err = {0};
        CU_ASSERT_EQUAL(sync_ignore_add_text(&g, rows[i].text, &err), 0);
        bool got = sync_ignored(&g, rows[i].path, rows[i].directory);
        if (got != rows[i].ignored)
            fprintf(stderr, "row %zu: %s, %s\n", i, rows[i].text, rows[i].path);
        CU_ASSERT_EQUAL(got, rows[i].ignored);
        sync_ignore_free(&g);
    }
}

static void test_patterns_bounded(void)
{
    struct sync_ignore g = {0};
    struct err err = {0};
    CU_ASSERT_EQUAL(sync_ignore_add(&g, "/", &err), -1);
    CU_ASSERT_EQUAL(sync_ignore_add(&g, "!", &err), -1);
    for (int i = 0; i < SYNC_PATTERNS; i++)
        CU_ASSERT_EQUAL(sync_ignore_add(&g, "x", &err), 0);
    CU_ASSERT_EQUAL(sync_ignore_add(&g, "x", &err), -1);
    sync_ignore_free(&g);
}

static void test_unwatched_names(void)
{
    struct sync_ignore g = {0};
    struct strlist l = {0};
    struct err err = {0};
    CU_ASSERT_EQUAL(sync_ignore_add_text(&g, "node_modules\ntarget/\n*.o\n/top\na/b\ncache", &err),
                    0);
    CU_ASSERT_EQUAL(sync_ignore_names(&g, 8, &l), 0);
    CU_ASSERT_EQUAL_FATAL(l.n, 2);
    CU_ASSERT_STRING_EQUAL(l.v[0], "node_modules");
    CU_ASSERT_STRING_EQUAL(l.v[1], "cache");
    strlist_done(&l);
    CU_ASSERT_EQUAL(sync_ignore_add(&g, "!cache", &err), 0);
    CU_ASSERT_EQUAL(sync_ignore_names(&g, 8, &l), 0);
    CU_ASSERT_EQUAL(l.n, 0);
    sync_ignore_free(&g);
}

void tap_suites(void)
{
    CU_pSuite s = CU_add_suite("sync", NULL, NULL);
    CU_add_test(s, "what is done, of all states", test_decide);
    CU_add_test(s, "no change is deleted or written over", test_nothing_lost);
    CU_add_test(s, "names that are carried", test_names);
    CU_add_test(s, "names that are ours, or git's", test_kinds);
    CU_add_test(s, "what is ignored", test_ignored);
    CU_add_test(s, "patterns are bounded", test_patterns_bounded);
    CU_add_test(s, "names that nobody need watch", test_unwatched_names);
}
