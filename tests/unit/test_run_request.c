/* W_RUN: what a client asks for survives the way, and what is malformed is refused. */
#include <CUnit/CUnit.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "run.h"
#include "tap_main.h"

void suite_run_request(void);

static void sample(struct run_request *r, bool tty)
{
    run_request_init(r);
    snprintf(r->policy, sizeof r->policy, "coder");
    snprintf(r->cwd, sizeof r->cwd, "/src/x");
    snprintf(r->home, sizeof r->home, "/home/me");
    snprintf(r->user, sizeof r->user, "me");
    snprintf(r->backend, sizeof r->backend, "docker");
    snprintf(r->image, sizeof r->image, "a/b:1");
    CU_ASSERT_EQUAL(strlist_add(&r->argv, "ls") | strlist_add(&r->argv, "-l"), 0);
    CU_ASSERT_EQUAL(strlist_put_env(&r->kept, "TERM=xterm"), 0);
    CU_ASSERT_EQUAL(strlist_put_env(&r->env, "A=b"), 0);
    CU_ASSERT_EQUAL(run_request_bind(r, "/src/x", "/src/x", true), 0);
    CU_ASSERT_EQUAL(run_request_bind(r, "/k/home", "/home/me", true), 0);
    r->binds[1].home = true;
    r->seeded = true;
    memcpy(r->seed,
           "\x00\xff"
           "fourteen bytes",
           RUN_SEED);
    CU_ASSERT_EQUAL(run_request_step(r, INSIDE_DELETE_TREE, "/home/me/.cache", ""), 0);
    CU_ASSERT_EQUAL(run_request_step(r, INSIDE_WRITE_NEW, "/home/me/a", "text"), 0);
    r->uid = 1000;
    r->gid = 100;
    r->tty = tty;
    r->rows = 24;
    r->cols = 80;
    for (int i = 0; i < 3 && !tty; i++)
        r->fds[i] = open("/dev/null", O_RDWR | O_CLOEXEC);
}

/* 0 when the reader takes what the writer made. */
static int pass(struct run_request *r, struct run_request *back)
{
    struct msg m;
    msg_init(&m, 1);
    run_request_put(r, &m);
    int got = run_request_get(back, &m);
    msg_done(&m);
    run_request_done(r);
    return got;
}

static void test_round_trip(void)
{
    static struct run_request r, back;
    for (int tty = 0; tty < 2; tty++) {
        struct stat st;
        sample(&r, tty);
        CU_ASSERT_EQUAL_FATAL(pass(&r, &back), 0);
        CU_ASSERT_STRING_EQUAL(back.policy, "coder");
        CU_ASSERT_STRING_EQUAL(back.backend, "docker");
        CU_ASSERT_STRING_EQUAL(back.image, "a/b:1");
        CU_ASSERT_EQUAL(back.argv.n, 2);
        CU_ASSERT_STRING_EQUAL(back.argv.v[1], "-l");
        CU_ASSERT_STRING_EQUAL(strlist_get_env(&back.kept, "TERM"), "xterm");
        CU_ASSERT_STRING_EQUAL(strlist_get_env(&back.env, "A"), "b");
        CU_ASSERT_EQUAL(back.n_binds, 2);
        CU_ASSERT_TRUE(back.binds[1].home && !back.binds[0].home);
        CU_ASSERT_TRUE(back.seeded);
        CU_ASSERT_EQUAL(memcmp(back.seed,
                               "\x00\xff"
                               "fourteen bytes",
                               RUN_SEED),
                        0);
        CU_ASSERT_EQUAL_FATAL(back.n_steps, 2);
        CU_ASSERT_EQUAL(back.steps[0].op, INSIDE_DELETE_TREE);
        CU_ASSERT_STRING_EQUAL(back.steps[1].path, "/home/me/a");
        CU_ASSERT_STRING_EQUAL(back.steps[1].text, "text");
        CU_ASSERT_TRUE(back.binds[0].writable);
        CU_ASSERT_EQUAL(back.uid, 1000);
        CU_ASSERT_EQUAL(back.tty, tty);
        CU_ASSERT_EQUAL(fstat(back.fds[2], &st) == 0, !tty);
        run_request_done(&back);
    }
}

static void refused(struct run_request *r, const char *why)
{
    static struct run_request back;
    int got = pass(r, &back);
    if (got == 0)
        fprintf(stderr, "taken: %s\n", why);
    CU_ASSERT_EQUAL(got, -1);
    run_request_done(&back);
}

static void test_steps(void)
{
    static struct run_request r;
    sample(&r, true);
    CU_ASSERT_EQUAL(run_request_step(&r, INSIDE_READ, "/home/me/a", ""), 0);
    refused(&r, "a step that reads");
    sample(&r, true);
    CU_ASSERT_EQUAL(run_request_step(&r, INSIDE_WRITE, "home/me/a", ""), 0);
    refused(&r, "a step of a path that is not absolute");
    sample(&r, true);
    CU_ASSERT_EQUAL(run_request_step(&r, INSIDE_DELETE_TREE, "/home/me/../..", ""), 0);
    refused(&r, "a step of a path that leads upwards");
    sample(&r, true);
    for (size_t i = r.n_steps; i < RUN_STEPS_MAX; i++)
        CU_ASSERT_EQUAL(run_request_step(&r, INSIDE_WRITE, "/a", ""), 0);
    CU_ASSERT_EQUAL(run_request_step(&r, INSIDE_WRITE, "/a", ""), -1);
    run_request_done(&r);
}

static void test_paths(void)
{
    static const char *const bad[] = {"", "relative", "/a/../b", "/..", "/a/.", "/a/./b", "."};
    static struct run_request r;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        sample(&r, true);
        snprintf(r.cwd, sizeof r.cwd, "%s", bad[i]);
        refused(&r, bad[i]);
        sample(&r, true);
        snprintf(r.home, sizeof r.home, "%s", bad[i]);
        refused(&r, bad[i]);
        sample(&r, true);
        CU_ASSERT_EQUAL(run_request_bind(&r, "/x", bad[i], false), 0);
        refused(&r, bad[i]);
        sample(&r, true);
        CU_ASSERT_EQUAL(run_request_bind(&r, bad[i], "/x", false), 0);
        refused(&r, bad[i]);
    }
}

static void test_other_fields(void)
{
    static const char *const users[] = {"",    "a:b", "a\nroot::0:0",
                                        "a/b", "-x",  "a234567890123456789012345678901234"};
    static struct run_request r;
    for (size_t i = 0; i < ARRAY_LEN(users); i++) {
        sample(&r, true);
        snprintf(r.user, sizeof r.user, "%s", users[i]);
        refused(&r, users[i]);
    }
    sample(&r, true);
    strlist_done(&r.argv);
    refused(&r, "no command");
    sample(&r, true);
    CU_ASSERT_EQUAL(strlist_add(&r.env, "novalue"), 0);
    refused(&r, "a variable without a value");
    sample(&r, true);
    r.rows = 70000;
    refused(&r, "70000 rows");
}

static void test_missing_descriptor(void)
{
    static struct run_request r, back;
    struct msg m;
    sample(&r, true);
    msg_init(&m, 1);
    run_request_put(&r, &m);
    size_t tty = buf_len(&m.body) - 9; /* tty:u8 rows:u32 cols:u32 stand last */
    buf_data(&m.body)[tty] = 0;
    CU_ASSERT_EQUAL(run_request_get(&back, &m), -1);
    msg_done(&m);
    run_request_done(&r);
    run_request_done(&back);
}

void suite_run_request(void)
{
    CU_pSuite s = CU_add_suite("run request", NULL, NULL);
    CU_add_test(s, "round trip", test_round_trip);
    CU_add_test(s, "paths", test_paths);
    CU_add_test(s, "steps", test_steps);
    CU_add_test(s, "other fields", test_other_fields);
    CU_add_test(s, "a missing descriptor", test_missing_descriptor);
}

void tap_suites(void)
{
    suite_run_request();
}
