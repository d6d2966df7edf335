/* Restoring, when whoever did it dies in its middle: what the row says and what the files are is
 * made to agree, by asking the builder which files there are. */
#include "managed_sandbox_fixture.h"

#include "snapshot.h"

static struct snapshot snap = {.layer = {.name = "snap", .state = LAYER_READY}};

struct row {
    char snapshot[65], restoring[65];
    unsigned char seed[IDENTITY_SEED];
    int state;
};

static int see_row(void *arg, const struct registry_sandbox *row)
{
    struct row *r = arg;
    snprintf(r->snapshot, sizeof r->snapshot, "%s", row->snapshot);
    snprintf(r->restoring, sizeof r->restoring, "%s", row->restoring);
    memcpy(r->seed, row->seed, sizeof r->seed);
    r->state = row->state;
    return 0;
}

static struct row the_row(struct world *w)
{
    struct row r = {.state = -1};
    CU_ASSERT_EQUAL(registry_sandbox_each(w->c.registry, see_row, &r, NULL), 0);
    return r;
}

/* It ran, with files of that snapshot, is stopped, and the builder is asked to replace its files.
 * -> the row as it is then */
static struct row to_replacing_what(struct world *w, const char *former)
{
    struct err err = {0};
    to_running(w);
    w->ran = w->failed = 0;
    snprintf(w->r->snapshot, sizeof w->r->snapshot, "%s", former);
    CU_ASSERT_EQUAL(managed_sandbox_restore(w->r, &snap, on_running, w, &err), 0);
    CU_ASSERT_TRUE(got(w, w->builder, W_TEARDOWN));
    sandbox_torn(w->r->sandbox);
    turn(w);
    shut(&w->init);
    if (strcmp(former, snap.layer.name) ==
        0) { /* the note of the earlier restoring has the same name */
        CU_ASSERT_STRING_EQUAL(the_row(w).restoring, "");
        do_layer(w, LAYER_UNMARK, LAYER_DONE);
    }
    return the_row(w);
}

static struct row to_replacing(struct world *w)
{
    return to_replacing_what(w, "");
}

/* A controller over that registry which knows nothing else. */
static void next_controller(struct world *w)
{
    end(w, true);
    begin(w);
    CU_ASSERT_EQUAL(managed_sandboxes_load(&w->c, NULL), 0);
    w->r = TAILQ_FIRST(&w->c.managed_sandboxes);
    CU_ASSERT_PTR_NOT_NULL_FATAL(w->r);
    CU_ASSERT_EQUAL(w->r->state, MANAGED_SANDBOX_STOPPED);
    w->ran = w->failed = 0;
}

static void test_next_controller(void)
{
    static const enum layer_result answers[] = {LAYER_DONE, LAYER_ABSENT};
    for (size_t i = 0; i < ARRAY_LEN(answers); i++) {
        struct world w;
        world_new(&w);
        struct row before = to_replacing(&w);
        CU_ASSERT_STRING_EQUAL(before.restoring, "snap");
        CU_ASSERT_STRING_EQUAL(before.snapshot, "");
        CU_ASSERT_TRUE(got(&w, w.builder, W_LAYER)); /* done or not: the controller dies */
        int64_t generation = rows(&w).generation;
        next_controller(&w);
        do_layer(&w, LAYER_CONFIRM, answers[i]);
        struct row after = the_row(&w);
        bool replaced = answers[i] == LAYER_DONE;
        CU_ASSERT_STRING_EQUAL(after.restoring, "");
        CU_ASSERT_STRING_EQUAL(after.snapshot, replaced ? "snap" : "");
        CU_ASSERT_EQUAL(memcmp(after.seed, before.seed, sizeof after.seed) != 0, replaced);
        CU_ASSERT_TRUE(rows(&w).generation >= generation + replaced);
        CU_ASSERT_EQUAL(after.state, MANAGED_SANDBOX_STOPPED);
        next_controller(&w); /* and that is the end of it */
        CU_ASSERT_EQUAL(w.r->restoring[0], '\0');
        end(&w, false);
        world_remove(&w);
    }
}

static void test_wanted_meanwhile(void)
{
    struct world w;
    struct err err = {0};
    world_new(&w);
    to_replacing(&w);
    CU_ASSERT_TRUE(got(&w, w.builder, W_LAYER));
    next_controller(&w);
    CU_ASSERT_EQUAL(managed_sandbox_has_files(w.r, &err), -1); /* whose would they be? */
    CU_ASSERT_EQUAL(managed_sandbox_wake(w.r, &err), 0);
    CU_ASSERT_EQUAL(managed_sandbox_await(w.r, on_running, &w), 0);
    CU_ASSERT_EQUAL(w.r->state, MANAGED_SANDBOX_RESUMING);
    CU_ASSERT_PTR_NULL(w.r->sandbox);
    /* nobody can say: it does not run, and the next who wants it to asks again */
    do_layer(&w, LAYER_CONFIRM, LAYER_FAILED);
    CU_ASSERT_EQUAL(w.failed, 1);
    CU_ASSERT_EQUAL(w.r->state, MANAGED_SANDBOX_STOPPED);
    CU_ASSERT_EQUAL(managed_sandbox_has_files(w.r, &err), -1);
    CU_ASSERT_STRING_EQUAL(the_row(&w).restoring, "snap");
    CU_ASSERT_EQUAL(managed_sandbox_wake(w.r, &err), 0);
    CU_ASSERT_EQUAL(managed_sandbox_await(w.r, on_running, &w), 0);
    do_layer(&w, LAYER_CONFIRM, LAYER_DONE);
    CU_ASSERT_STRING_EQUAL(the_row(&w).snapshot, "snap");
    CU_ASSERT_TRUE(got(&w, w.builder, W_BUILD) && got(&w, w.builder, W_KEEP));
    answer_built(&w, true);
    self_test(&w);
    CU_ASSERT_EQUAL(w.ran, 1);
    CU_ASSERT_EQUAL(w.r->state, MANAGED_SANDBOX_RUNNING);
    CU_ASSERT_EQUAL(managed_sandbox_has_files(w.r, &err), 0);
    end(&w, false);
    world_remove(&w);
}

static void test_last_word_lost(void)
{
    static const struct {
        enum layer_result answer;
        const char *former;
        bool replaced;
    } cases[] = {{LAYER_DONE, "", true},
                 {LAYER_ABSENT, "", false},
                 {LAYER_DONE, "snap", true},
                 {LAYER_ABSENT, "snap", false}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct world w;
        world_new(&w);
        to_replacing_what(&w, cases[i].former);
        do_layer(&w, LAYER_REPLACE, LAYER_FAILED); /* the process that copies was killed */
        CU_ASSERT_EQUAL(w.failed, 0);
        do_layer(&w, LAYER_CONFIRM, cases[i].answer);
        struct row after = the_row(&w);
        CU_ASSERT_STRING_EQUAL(after.restoring, "");
        if (cases[i].replaced) {
            CU_ASSERT_STRING_EQUAL(after.snapshot, "snap");
            CU_ASSERT_TRUE(got(&w, w.builder, W_BUILD) && got(&w, w.builder, W_KEEP));
            answer_built(&w, true);
            self_test(&w);
            CU_ASSERT_EQUAL(w.ran, 1);
        } else {
            CU_ASSERT_STRING_EQUAL(after.snapshot, cases[i].former);
            CU_ASSERT_EQUAL(w.failed, 1);
            CU_ASSERT_EQUAL(w.r->state, MANAGED_SANDBOX_STOPPED);
        }
        end(&w, false);
        world_remove(&w);
    }
}

/* It is not begun then. */
static void test_not_unmarked(void)
{
    struct world w;
    struct err err = {0};
    world_new(&w);
    to_running(&w);
    w.ran = w.failed = 0;
    snprintf(w.r->snapshot, sizeof w.r->snapshot, "snap");
    CU_ASSERT_EQUAL(managed_sandbox_restore(w.r, &snap, on_running, &w, &err), 0);
    CU_ASSERT_TRUE(got(&w, w.builder, W_TEARDOWN));
    sandbox_torn(w.r->sandbox);
    turn(&w);
    shut(&w.init);
    CU_ASSERT_EQUAL(managed_sandbox_wake(w.r, &err), -1); /* its files are being replaced */
    do_layer(&w, LAYER_UNMARK, LAYER_FAILED);
    CU_ASSERT_EQUAL(w.failed, 1);
    CU_ASSERT_STRING_EQUAL(the_row(&w).restoring, "");
    CU_ASSERT_EQUAL(managed_sandbox_has_files(w.r, &err), 0);
    end(&w, false);
    world_remove(&w);
}

static void test_deleted_meanwhile(void)
{
    struct world w;
    world_new(&w);
    to_replacing(&w);
    CU_ASSERT_TRUE(got(&w, w.builder, W_LAYER));
    next_controller(&w);
    CU_ASSERT_EQUAL(managed_sandbox_delete(w.r, "deleted", NULL, NULL), 0);
    do_layer(&w, LAYER_CONFIRM, LAYER_DONE);
    do_layer(&w, LAYER_REMOVE, LAYER_DONE);
    CU_ASSERT_EQUAL(rows(&w).n, 0);
    end(&w, false);
    world_remove(&w);
}

void tap_suites(void)
{
    CU_pSuite s = CU_add_suite("managed_sandbox_restore", NULL, NULL);
    CU_add_test(s, "the next controller asks whether it came to be", test_next_controller);
    CU_add_test(s, "who wants it to run waits for that", test_wanted_meanwhile);
    CU_add_test(s, "a copier whose last word was lost", test_last_word_lost);
    CU_add_test(s, "a note that cannot be taken away", test_not_unmarked);
    CU_add_test(s, "deleted meanwhile", test_deleted_meanwhile);
}
