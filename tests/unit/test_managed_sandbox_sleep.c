/* Managed sandboxes that are paused, stopped and resumed, and taken over while they are. */
#include "managed_sandbox_fixture.h"

#include "registry_internal.h"

static void do_freeze(struct world *w, enum layer_result result)
{
    struct msg m;
    uint32_t req;
    turn(w);
    CU_ASSERT_EQUAL_FATAL(msg_recv(w->builder, &m), 1);
    CU_ASSERT_EQUAL(m.type, W_FREEZE);
    CU_ASSERT_EQUAL(msg_get_u32(&m, &req), 0);
    msg_done(&m);
    msg_init(&m, W_LAYERED);
    msg_put_u32(&m, req);
    msg_put_u8(&m, (uint8_t)result);
    msg_put_str(&m, "unsupported");
    CU_ASSERT_EQUAL(layer_queue_answer(w->c.layers, &m), 0);
    msg_done(&m);
    turn(w);
}

static void to_paused(struct world *w)
{
    struct err err = {0};
    to_running(w);
    w->ran = w->failed = 0;
    CU_ASSERT_EQUAL(managed_sandbox_pause(w->r, on_running, w, &err), 0);
    CU_ASSERT_FALSE(managed_sandbox_awake(w->r));
    do_freeze(w, LAYER_DONE);
    CU_ASSERT_EQUAL(w->r->state, MANAGED_SANDBOX_PAUSED);
    CU_ASSERT_EQUAL(rows(w).state, MANAGED_SANDBOX_PAUSED);
    CU_ASSERT_EQUAL(w->ran, 1);
}

static void test_paused(void)
{
    struct world w;
    struct err err = {0};
    world_new(&w);
    to_paused(&w);
    CU_ASSERT_EQUAL(managed_sandbox_wake(w.r, &err), 0);
    CU_ASSERT_EQUAL(managed_sandbox_await(w.r, on_running, &w), 0);
    CU_ASSERT_EQUAL(w.r->state, MANAGED_SANDBOX_RESUMING);
    do_freeze(&w, LAYER_DONE);
    CU_ASSERT_EQUAL(w.r->state, MANAGED_SANDBOX_RUNNING);
    CU_ASSERT_EQUAL(w.ran, 2);
    /* somebody wants it while it is being paused */
    CU_ASSERT_EQUAL(managed_sandbox_pause(w.r, NULL, NULL, &err), 0);
    CU_ASSERT_EQUAL(managed_sandbox_wake(w.r, &err), 0);
    CU_ASSERT_EQUAL(managed_sandbox_await(w.r, on_running, &w), 0);
    do_freeze(&w, LAYER_DONE);
    CU_ASSERT_EQUAL(w.r->state, MANAGED_SANDBOX_RESUMING);
    do_freeze(&w, LAYER_DONE);
    CU_ASSERT_EQUAL(w.ran, 3);
    /* no freezer */
    CU_ASSERT_EQUAL(managed_sandbox_pause(w.r, on_running, &w, &err), 0);
    do_freeze(&w, LAYER_FAILED);
    CU_ASSERT_EQUAL(w.failed, 1);
    CU_ASSERT_EQUAL(w.r->state, MANAGED_SANDBOX_RUNNING);
    end(&w, false);
    world_remove(&w);
}

static void test_paused_taken_over(void)
{
    struct world w;
    struct msg m;
    world_new(&w);
    to_paused(&w);
    end(&w, true);
    begin(&w);
    CU_ASSERT_EQUAL(managed_sandboxes_load(&w.c, NULL), 0);
    w.r = TAILQ_FIRST(&w.c.managed_sandboxes);
    CU_ASSERT_TRUE(got(&w, w.builder, W_ADOPT));
    CU_ASSERT_TRUE(got(&w, w.builder, W_FREEZE));
    answer_built(&w, true);
    CU_ASSERT_TRUE(got(&w, w.init, W_INIT_RESET));
    msg_init(&m, W_INIT_RESET);
    send_to(&w, w.init, &m);
    CU_ASSERT_EQUAL(w.r->state, MANAGED_SANDBOX_RUNNING);
    do_freeze(&w, LAYER_DONE);
    CU_ASSERT_EQUAL(w.r->state, MANAGED_SANDBOX_PAUSED);
    end(&w, false);
    world_remove(&w);
}

static void test_stopped_and_resumed(void)
{
    struct world w;
    struct err err = {0};
    world_new(&w);
    to_running(&w);
    unsigned char seed[SANDBOX_SEED];
    memcpy(seed, w.r->seed, sizeof seed);
    w.ran = w.failed = 0;
    CU_ASSERT_EQUAL(managed_sandbox_stop(w.r, "stopped", on_running, &w, &err), 0);
    CU_ASSERT_TRUE(got(&w, w.builder, W_TEARDOWN));
    sandbox_torn(w.r->sandbox);
    turn(&w);
    CU_ASSERT_EQUAL(w.r->state, MANAGED_SANDBOX_STOPPED);
    CU_ASSERT_EQUAL(w.ran, 1);
    shut(&w.init);
    CU_ASSERT_EQUAL(managed_sandbox_wake(w.r, &err), 0);
    CU_ASSERT_EQUAL(rows(&w).state, MANAGED_SANDBOX_RESUMING);
    CU_ASSERT_TRUE(got(&w, w.builder, W_BUILD));
    CU_ASSERT_TRUE(got(&w, w.builder, W_KEEP));
    answer_built(&w, true);
    self_test(&w);
    CU_ASSERT_EQUAL(w.r->state, MANAGED_SANDBOX_RUNNING);
    CU_ASSERT_EQUAL(memcmp(w.r->seed, seed, sizeof seed), 0);
    CU_ASSERT_EQUAL(managed_sandbox_delete(w.r, "deleted", NULL, NULL), 0);
    CU_ASSERT_TRUE(got(&w, w.builder, W_TEARDOWN));
    sandbox_torn(w.r->sandbox);
    do_layer(&w, LAYER_REMOVE, LAYER_DONE);
    CU_ASSERT_EQUAL(rows(&w).n, 0);
    end(&w, false);
    world_remove(&w);
}

/* It has run for its soft time to live. */
static void run_out(struct world *w)
{
    struct managed_sandbox_times times = {-1, -1, 100};
    struct err err = {0};
    CU_ASSERT_EQUAL(managed_sandbox_change(w->r, NULL, &times, &err), 0);
    int64_t left = w->r->soft_ends - (w->r->ends - w->r->ttl);
    CU_ASSERT_TRUE(left >= 99 && left <= 110);
    w->r->soft_ends -= 200;
    managed_sandbox_used(w->r); /* which helps it nothing */
    turn(w);
}

static void test_soft_stopped(void)
{
    struct world w;
    struct err err = {0};
    world_new(&w);
    to_running(&w);
    w.r->on_soft = IDLE_STOP;
    run_out(&w);
    CU_ASSERT_TRUE(got(&w, w.builder, W_TEARDOWN));
    sandbox_torn(w.r->sandbox);
    turn(&w);
    CU_ASSERT_EQUAL(w.r->state, MANAGED_SANDBOX_STOPPED);
    CU_ASSERT_STRING_EQUAL(w.r->reason, "its soft time to live is over");
    shut(&w.init);
    w.r->soft_ends -= 1000; /* it runs again for as long as at first */
    CU_ASSERT_EQUAL(managed_sandbox_wake(w.r, &err), 0);
    CU_ASSERT_TRUE(got(&w, w.builder, W_BUILD));
    CU_ASSERT_TRUE(got(&w, w.builder, W_KEEP));
    answer_built(&w, true);
    self_test(&w);
    turn(&w);
    CU_ASSERT_EQUAL(w.r->state, MANAGED_SANDBOX_RUNNING);
    end(&w, false);
    world_remove(&w);
}

static void test_soft_paused(void)
{
    struct world w;
    struct err err = {0};
    struct managed_sandbox_times times = {-1, -1, 100};
    world_new(&w);
    to_running(&w);
    w.r->kept = false;
    w.r->on_soft = IDLE_STOP;
    CU_ASSERT_EQUAL(managed_sandbox_change(w.r, NULL, &times, &err), -1);
    CU_ASSERT_EQUAL(err.code, ERR_PARSE); /* it would lose its files */
    w.r->on_soft = IDLE_PAUSE;
    run_out(&w);
    do_freeze(&w, LAYER_DONE);
    CU_ASSERT_EQUAL(w.r->state, MANAGED_SANDBOX_PAUSED);
    CU_ASSERT_EQUAL(managed_sandbox_wake(w.r, &err), 0);
    do_freeze(&w, LAYER_DONE);
    turn(&w);
    CU_ASSERT_EQUAL(w.r->state, MANAGED_SANDBOX_RUNNING);
    end(&w, false);
    world_remove(&w);
}

/* What a controller that follows knows of a row written so long ago; the wall clock was put forward
 * by `forward` seconds meanwhile. */
static void load_again(struct world *w, const char *boot, int64_t ago, int64_t forward)
{
    char sql[256];
    end(w, true);
    begin(w);
    snprintf(w->c.boot, sizeof w->c.boot, "%s", boot);
    snprintf(sql, sizeof sql,
             "UPDATE sandbox SET ends = ends - %lld, soft_ends = soft_ends - %lld,"
             " used = used - %lld, expires = expires - %lld",
             (long long)ago, (long long)ago, (long long)ago, (long long)(ago + forward));
    CU_ASSERT_EQUAL(sqlite3_exec(w->c.registry->db, sql, NULL, NULL, NULL), SQLITE_OK);
    CU_ASSERT_EQUAL(managed_sandboxes_load(&w->c, NULL), 0);
    w->r = TAILQ_FIRST(&w->c.managed_sandboxes);
    CU_ASSERT_TRUE(got(w, w->builder, W_ADOPT));
}

static int64_t boottime(void)
{
    struct timespec t;
    clock_gettime(CLOCK_BOOTTIME, &t);
    return (int64_t)t.tv_sec;
}

static bool near(int64_t a, int64_t b)
{
    return a - b <= 2 && b - a <= 2;
}

static void test_times_taken_over(void)
{
    enum { TTL = 600, SOFT = 300, IDLE = 400, AGO = 100 };
    static const struct {
        const char *boot;
        int64_t forward, left; /* of its time to live */
        bool same;
    } rows[] = {
        {"one", 0, TTL - AGO, true},
        {"one", 100000, TTL - AGO, true}, /* the wall clock is nobody's business */
        {"one", -100000, TTL - AGO, true},
        {"two", 0, TTL - AGO, false},
        {"two", -100000, TTL, false}, /* as much as it had at most */
        {"", 0, TTL - AGO, false},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct world w;
        struct managed_sandbox_times times = {TTL, IDLE, SOFT};
        world_new(&w);
        snprintf(w.c.boot, sizeof w.c.boot, "%s", rows[i].boot[0] ? "one" : "");
        to_running(&w);
        w.r->on_soft = IDLE_STOP;
        CU_ASSERT_EQUAL(managed_sandbox_change(w.r, NULL, &times, NULL), 0);
        load_again(&w, rows[i].boot, AGO, rows[i].forward);
        int64_t now = boottime();
        CU_ASSERT_TRUE(near(w.r->ends - now, rows[i].left));
        CU_ASSERT_TRUE(near(w.r->soft_ends - now, SOFT - (rows[i].same ? AGO : 0)));
        CU_ASSERT_TRUE(near(now - w.r->used, rows[i].same ? AGO : 0));
        answer_built(&w, true);
        CU_ASSERT_TRUE(got(&w, w.init, W_INIT_RESET));
        struct msg m;
        msg_init(&m, W_INIT_RESET);
        send_to(&w, w.init, &m);
        CU_ASSERT_EQUAL(w.r->state, MANAGED_SANDBOX_RUNNING);
        CU_ASSERT_TRUE(near(w.r->soft_ends - now, SOFT - (rows[i].same ? AGO : 0)));
        CU_ASSERT_TRUE(near(now - w.r->used, rows[i].same ? AGO : 0));
        end(&w, false);
        world_remove(&w);
    }
}

/* A command that runs for longer than the idle time is no idleness, to the next controller either.
 */
static void test_busy_taken_over(void)
{
    struct world w;
    struct managed_sandbox_times times = {-1, 8, -1};
    world_new(&w);
    snprintf(w.c.boot, sizeof w.c.boot, "one");
    to_running(&w);
    CU_ASSERT_EQUAL(managed_sandbox_change(w.r, NULL, &times, NULL), 0);
    w.r->n_executions = 1;
    w.r->noted -= 10; /* the row is ten seconds old */
    managed_sandbox_used(w.r);
    turn(&w);
    w.r->n_executions = 0;
    load_again(&w, "one", 60, 0); /* a machine may have begun minutes ago */
    CU_ASSERT_TRUE(near(w.r->used, boottime()));
    end(&w, false);
    world_remove(&w);
}

void tap_suites(void)
{
    CU_pSuite s = CU_add_suite("sleep", NULL, NULL);
    CU_add_test(s, "stopped when its soft time to live is over", test_soft_stopped);
    CU_add_test(s, "paused then, where stopping would lose its files", test_soft_paused);
    CU_add_test(s, "times hold when it is taken over, whatever the clock", test_times_taken_over);
    CU_add_test(s, "one that is busy then was not idle", test_busy_taken_over);
    CU_add_test(s, "paused, wanted meanwhile, not to be paused", test_paused);
    CU_add_test(s, "a paused one is taken over, and paused again", test_paused_taken_over);
    CU_add_test(s, "stopped, and made again", test_stopped_and_resumed);
}
