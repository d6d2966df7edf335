/* Residents that are paused, stopped and resumed, and taken over while they are. */
#include "managed_sandbox_fixture.h"

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

void tap_suites(void)
{
    CU_pSuite s = CU_add_suite("sleep", NULL, NULL);
    CU_add_test(s, "paused, wanted meanwhile, not to be paused", test_paused);
    CU_add_test(s, "a paused one is taken over, and paused again", test_paused_taken_over);
    CU_add_test(s, "stopped, and made again", test_stopped_and_resumed);
}
