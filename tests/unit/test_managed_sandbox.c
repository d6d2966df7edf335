/* Managed sandboxes: the row comes first, a new controller takes over, and a durward-init that lies
 * about commands ends its sandbox and nothing else. Parent, builder and init are socket ends held
 * here; the registry is a real one. */
#include "managed_sandbox_fixture.h"

/* ---- life ---- */

static void test_row_comes_first(void)
{
    struct world w;
    world_new(&w);
    make(&w, 600);
    CU_ASSERT_EQUAL(rows(&w).n, 1);
    CU_ASSERT_EQUAL(rows(&w).state, MANAGED_SANDBOX_CREATING);
    CU_ASSERT_TRUE(got(&w, w.parent, W_SANDBOX));
    CU_ASSERT_TRUE(got(&w, w.builder, W_BUILD) && got(&w, w.builder, W_KEEP));
    answer_built(&w, false);
    CU_ASSERT_TRUE(got(&w, w.builder, W_TEARDOWN));
    sandbox_torn(w.r->sandbox);
    turn(&w);
    CU_ASSERT_EQUAL(w.failed, 1);
    CU_ASSERT_EQUAL(rows(&w).state, MANAGED_SANDBOX_STOPPING);
    do_layer(&w, LAYER_REMOVE, LAYER_DONE);
    CU_ASSERT_EQUAL(rows(&w).n, 0);
    CU_ASSERT_EQUAL(w.c.n_managed_sandboxes, 0);
    end(&w, false);
    world_remove(&w);
}

static void test_expires(void)
{
    struct world w;
    world_new(&w);
    make(&w, 1);
    CU_ASSERT_TRUE(got(&w, w.builder, W_BUILD) && got(&w, w.builder, W_KEEP));
    answer_built(&w, true);
    self_test(&w);
    CU_ASSERT_TRUE(got(&w, w.builder, W_TEARDOWN));
    CU_ASSERT_EQUAL(rows(&w).state, MANAGED_SANDBOX_STOPPING);
    sandbox_torn(w.r->sandbox);
    do_layer(&w, LAYER_REMOVE, LAYER_FAILED);
    CU_ASSERT_EQUAL(rows(&w).state, MANAGED_SANDBOX_STOPPING);
    CU_ASSERT_EQUAL(managed_sandbox_delete(w.r, "deleted", NULL, NULL), 0); /* tried again */
    do_layer(&w, LAYER_REMOVE, LAYER_DONE);
    CU_ASSERT_EQUAL(rows(&w).n, 0);
    end(&w, false);
    world_remove(&w);
}

static void test_names_are_taken_once(void)
{
    struct world w;
    struct err err = {0};
    struct managed_sandbox_wish wish = {.policy = "p", .name = "one", .ttl = 600};
    world_new(&w);
    CU_ASSERT_PTR_NOT_NULL(managed_sandbox_new(&w.c, &wish, &err));
    CU_ASSERT_PTR_NULL(managed_sandbox_new(&w.c, &wish, &err));
    CU_ASSERT_EQUAL(err.code, ERR_DENIED);
    wish.name = NULL;
    wish.policy = "none";
    CU_ASSERT_PTR_NULL(managed_sandbox_new(&w.c, &wish, &err));
    CU_ASSERT_EQUAL(rows(&w).n, 1);
    end(&w, false);
    world_remove(&w);
}

/* ---- a new controller ---- */

static void test_taken_over(void)
{
    struct world w;
    struct msg m;
    world_new(&w);
    to_running(&w);
    managed_sandboxes_named(&w.c, w.r->sandbox, "a.example.com", 2);
    unsigned char seed[SANDBOX_SEED];
    char id[SANDBOX_ID_MAX + 1];
    memcpy(seed, w.r->seed, sizeof seed);
    memcpy(id, w.r->id, sizeof id);
    int64_t generation = w.r->generation;
    end(&w, true);
    begin(&w);
    CU_ASSERT_EQUAL(managed_sandboxes_load(&w.c, NULL), 0);
    w.r = managed_sandbox_find(&w.c, id);
    CU_ASSERT_PTR_NOT_NULL_FATAL(w.r);
    CU_ASSERT_EQUAL(memcmp(w.r->seed, seed, sizeof seed), 0);
    CU_ASSERT_TRUE(got(&w, w.builder, W_ADOPT));
    CU_ASSERT_TRUE(got(&w, w.builder, W_FREEZE)); /* it may have been paused */
    answer_built(&w, true);
    CU_ASSERT_TRUE(got(&w, w.init, W_INIT_RESET));
    msg_init(&m, W_INIT_EXIT); /* for the one that died */
    msg_put_u32(&m, 1);
    msg_put_u32(&m, 0);
    msg_put_str(&m, "");
    send_to(&w, w.init, &m);
    CU_ASSERT_EQUAL(w.r->state, MANAGED_SANDBOX_RESUMING);
    msg_init(&m, W_INIT_RESET);
    send_to(&w, w.init, &m);
    CU_ASSERT_EQUAL(w.r->state, MANAGED_SANDBOX_RUNNING);
    CU_ASSERT_TRUE(w.r->generation > generation);
    end(&w, false);
    world_remove(&w);
}

/* The parent hears of labels that change, and of the change alone. */
static void test_labels(void)
{
    struct world w;
    struct err err = {0};
    struct managed_sandbox_times same = {-1, -1, -1};
    json_t *labels = json_pack("{s:s}", "team", "red");
    world_new(&w);
    to_running(&w);
    CU_ASSERT_EQUAL(managed_sandbox_change(w.r, labels, &same, &err), 0);
    CU_ASSERT_TRUE(got(&w, w.parent, W_LABELS));
    CU_ASSERT_EQUAL(managed_sandbox_change(w.r, NULL, &same, &err), 0);
    CU_ASSERT_FALSE(got(&w, w.parent, W_LABELS));
    json_decref(labels);
    end(&w, false);
    world_remove(&w);
}

static void on_stopped(void *arg, struct managed_sandbox *r, const char *why UNUSED)
{
    struct world *w = arg;
    w->ended += r != NULL;
}

static void test_ended_meanwhile(void)
{
    struct world w;
    world_new(&w);
    to_running(&w);
    end(&w, true);
    begin(&w);
    CU_ASSERT_EQUAL(managed_sandboxes_load(&w.c, NULL), 0);
    w.r = TAILQ_FIRST(&w.c.managed_sandboxes);
    CU_ASSERT_TRUE(got(&w, w.parent, W_LABELS)); /* it may not have been told of the last change */
    CU_ASSERT_TRUE(got(&w, w.builder, W_ADOPT));
    CU_ASSERT_TRUE(got(&w, w.builder, W_FREEZE));
    answer_built(&w, false);
    CU_ASSERT_TRUE(got(&w, w.builder, W_TEARDOWN));
    sandbox_torn(w.r->sandbox);
    CU_ASSERT_TRUE(got(&w, w.parent, W_SANDBOX_GONE));
    turn(&w);
    CU_ASSERT_EQUAL(w.r->state, MANAGED_SANDBOX_STOPPED);
    CU_ASSERT_EQUAL(rows(&w).state, MANAGED_SANDBOX_STOPPED);
    managed_sandbox_delete(w.r, "deleted", NULL, NULL);
    do_layer(&w, LAYER_REMOVE, LAYER_DONE);
    CU_ASSERT_EQUAL(rows(&w).n, 0);
    end(&w, false);
    world_remove(&w);
}

/* Somebody waited for it to be taken over: he gets it made anew. */
static void ended_meanwhile(struct world *w, bool stop)
{
    struct err err = {0};
    world_new(w);
    to_running(w);
    end(w, true);
    begin(w);
    CU_ASSERT_EQUAL(managed_sandboxes_load(&w->c, NULL), 0);
    w->r = TAILQ_FIRST(&w->c.managed_sandboxes);
    w->ran = w->failed = 0;
    CU_ASSERT_EQUAL(managed_sandbox_wake(w->r, &err), 0);
    CU_ASSERT_EQUAL(managed_sandbox_await(w->r, on_running, w), 0);
    CU_ASSERT_TRUE(got(w, w->builder, W_ADOPT));
    CU_ASSERT_TRUE(got(w, w->builder, W_FREEZE));
    if (stop) {
        CU_ASSERT_EQUAL(managed_sandbox_stop(w->r, "stopped", on_stopped, w, &err), 0);
    } else {
        answer_built(w, false);
    }
    CU_ASSERT_TRUE(got(w, w->builder, W_TEARDOWN));
    sandbox_torn(w->r->sandbox);
    turn(w);
}

static void test_wanted_meanwhile(void)
{
    struct world w;
    ended_meanwhile(&w, false);
    CU_ASSERT_EQUAL(rows(&w).state, MANAGED_SANDBOX_RESUMING);
    CU_ASSERT_TRUE(got(&w, w.builder, W_BUILD));
    CU_ASSERT_TRUE(got(&w, w.builder, W_KEEP));
    CU_ASSERT_EQUAL(w.ran + w.failed, 0);
    answer_built(&w, true);
    self_test(&w);
    CU_ASSERT_EQUAL(w.r->state, MANAGED_SANDBOX_RUNNING);
    CU_ASSERT_EQUAL(w.ran, 1);
    CU_ASSERT_EQUAL(w.failed, 0);
    CU_ASSERT_FALSE(w.r->wanted); /* else it could not be paused */
    end(&w, false);
    world_remove(&w);
    ended_meanwhile(&w, true);
    CU_ASSERT_EQUAL(w.r->state, MANAGED_SANDBOX_STOPPED);
    CU_ASSERT_EQUAL(w.failed, 1);
    CU_ASSERT_EQUAL(w.ended, 1);
    end(&w, false);
    world_remove(&w);
}

/* ---- commands ---- */

static void on_ended(void *arg, struct execution *e)
{
    struct world *w = arg;
    struct slice s = execution_output(e, 1);
    w->ended++;
    w->status = execution_status(e);
    snprintf(w->out, sizeof w->out, "%.*s%s", (int)s.n, s.n ? s.p : "",
             execution_truncated(e) ? "!" : "");
}

static struct execution *command(struct world *w)
{
    static const struct execution_ops ops = {.ended = on_ended};
    struct execution_command c = {.command = "x", .max_output = 8};
    struct err err = {0};
    w->ended = 0;
    struct execution *e = execution_command(w->r, &c, &ops, w, &err);
    CU_ASSERT_PTR_NOT_NULL_FATAL(e);
    CU_ASSERT_TRUE(got(w, w->init, W_INIT_EXEC));
    return e;
}

static void say_started(struct world *w, uint32_t number, uint32_t n, const int *fds)
{
    struct msg m;
    msg_init(&m, W_INIT_STARTED);
    msg_put_u32(&m, number);
    msg_put_u32(&m, n);
    for (uint32_t i = 0; i < n; i++)
        msg_put_fd_dup(&m, fds[i]);
    send_to(w, w->init, &m);
}

static void say_exit(struct world *w, uint32_t number, uint32_t status)
{
    struct msg m;
    msg_init(&m, W_INIT_EXIT);
    msg_put_u32(&m, number);
    msg_put_u32(&m, status);
    msg_put_str(&m, "");
    send_to(w, w->init, &m);
}

static void test_output_is_bounded(void)
{
    struct world w;
    int p[2];
    world_new(&w);
    to_running(&w);
    command(&w);
    CU_ASSERT_EQUAL_FATAL(pipe2(p, O_CLOEXEC), 0);
    say_started(&w, 1, 1, p);
    CU_ASSERT_EQUAL(write(p[1], "0123456789", 10), 10);
    say_exit(&w, 1, 3); /* the other end stays open: it is not waited for */
    CU_ASSERT_EQUAL(w.ended, 1);
    CU_ASSERT_EQUAL(w.status, 3);
    CU_ASSERT_STRING_EQUAL(w.out, "01234567!");
    CU_ASSERT_EQUAL(w.r->n_executions, 0);
    close(p[0]);
    close(p[1]);
    end(&w, false);
    world_remove(&w);
}

/* What is wrong in each; the sandbox ends, the command with 125, the managed sandbox is stopped. */
static void lie(struct world *w, unsigned which, const int *pipe_end)
{
    int dir = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    int two[3] = {pipe_end[0], null, null};
    struct msg m;
    switch (which) {
    case 0:
        say_started(w, 9, 1, pipe_end); /* nobody's: taken and dropped */
        say_exit(w, 9, 0);
        break;
    case 1:
        say_started(w, 1, 1, &dir);
        break;
    case 2:
        say_started(w, 1, 1, &null);
        break;
    case 3:
        say_started(w, 1, 3, two);
        break;
    case 4:
        say_started(w, 1, 0, two);
        break;
    case 5:
        say_started(w, 1, 1, pipe_end);
        say_started(w, 1, 1, pipe_end);
        break;
    case 6:
        say_exit(w, 1, 256);
        break;
    case 7:
        msg_init(&m, W_INIT_READY);
        send_to(w, w->init, &m);
        break;
    default:
        msg_init(&m, W_INIT_RESET);
        send_to(w, w->init, &m);
    }
    close(dir);
    close(null);
}

static void test_init_that_lies(void)
{
    for (unsigned i = 0; i < 9; i++) {
        struct world w;
        int p[2];
        world_new(&w);
        to_running(&w);
        command(&w);
        CU_ASSERT_EQUAL_FATAL(pipe2(p, O_CLOEXEC), 0);
        lie(&w, i, p);
        CU_ASSERT_TRUE(got(&w, w.builder, W_TEARDOWN));
        sandbox_torn(w.r->sandbox);
        turn(&w);
        CU_ASSERT_EQUAL(w.ended, 1);
        CU_ASSERT_EQUAL(w.status, EXIT_DURWARD_FAILED);
        CU_ASSERT_EQUAL(w.r->state, MANAGED_SANDBOX_STOPPED);
        CU_ASSERT_EQUAL(w.r->n_executions, 0);
        close(p[0]);
        close(p[1]);
        end(&w, false);
        world_remove(&w);
    }
}

static void ask_again(void *arg, struct execution *e UNUSED)
{
    static const struct execution_ops ops = {.ended = on_ended};
    struct world *w = arg;
    struct execution_command c = {.command = "x", .max_output = 8};
    struct err err = {0};
    w->ended++;
    CU_ASSERT_PTR_NULL(execution_command(w->r, &c, &ops, w, &err));
    CU_ASSERT_EQUAL(err.code, ERR_UNREADY);
    CU_ASSERT_PTR_NULL(execution_file(w->r, INSIDE_READ, "/x", 0, NULL, 0, 8, &ops, w, &err));
}

/* Whoever asks for the next thing when the last one has ended with the sandbox is refused. */
static void test_asked_at_the_end(void)
{
    static const struct execution_ops ops = {.ended = ask_again};
    struct execution_command c = {.command = "x", .max_output = 8};
    for (int i = 0; i < 2; i++) {
        struct world w;
        struct err err = {0};
        world_new(&w);
        to_running(&w);
        w.ended = 0;
        CU_ASSERT_PTR_NOT_NULL(execution_command(w.r, &c, &ops, &w, &err));
        if (i == 0) {
            shut(&w.init); /* durward-init died */
            CU_ASSERT_TRUE(got(&w, w.builder, W_TEARDOWN));
            sandbox_torn(w.r->sandbox);
            turn(&w);
        }
        end(&w, false); /* or the daemon ends */
        CU_ASSERT_EQUAL(w.ended, 1);
        world_remove(&w);
    }
}

static void test_abandoned(void)
{
    struct world w;
    int p[2];
    world_new(&w);
    to_running(&w);
    struct execution *e = command(&w);
    CU_ASSERT_EQUAL_FATAL(pipe2(p, O_CLOEXEC), 0);
    execution_abandon(e);
    CU_ASSERT_TRUE(got(&w, w.init, W_INIT_SIGNAL));
    say_started(&w, 1, 1, p); /* crossed it on the way */
    say_exit(&w, 1, 137);
    CU_ASSERT_EQUAL(w.ended, 0);
    CU_ASSERT_EQUAL(w.r->state, MANAGED_SANDBOX_RUNNING);
    CU_ASSERT_EQUAL(w.r->n_executions, 0);
    close(p[0]);
    close(p[1]);
    end(&w, false);
    world_remove(&w);
}

static void test_sandbox_events(void)
{
    struct sandbox_events *h = sandbox_events_new();
    for (int i = 0; i < 1500; i++)
        sandbox_events_add(h, "sb-x", "sandbox_created", "a\033b");
    json_t *v = sandbox_events_json(h, 0, 10);
    CU_ASSERT_EQUAL(json_array_size(json_object_get(v, "events")), 10);
    json_t *first = json_array_get(json_object_get(v, "events"), 0);
    CU_ASSERT_EQUAL(json_integer_value(json_object_get(first, "sequence")), 501);
    CU_ASSERT_STRING_EQUAL(json_string_value(json_object_get(first, "detail")), "a?b");
    CU_ASSERT_EQUAL(json_integer_value(json_object_get(v, "next")), 510);
    json_decref(v);
    v = sandbox_events_json(h, 99999, 10); /* from another life */
    CU_ASSERT_EQUAL(json_array_size(json_object_get(v, "events")), 0);
    CU_ASSERT_EQUAL(json_integer_value(json_object_get(v, "next")), 1500);
    json_decref(v);
    sandbox_events_free(h);
}

void tap_suites(void)
{
    CU_pSuite s = CU_add_suite("managed_sandbox", NULL, NULL);
    CU_add_test(s, "the row comes first, and goes when it fails", test_row_comes_first);
    CU_add_test(s, "its time to live ends it", test_expires);
    CU_add_test(s, "a name is taken once; a policy must be there", test_names_are_taken_once);
    CU_add_test(s, "a new controller takes it over", test_taken_over);
    CU_add_test(s, "labels that change", test_labels);
    CU_add_test(s, "one that ended meanwhile is stopped", test_ended_meanwhile);
    CU_add_test(s, "or made anew, for whoever waits for it", test_wanted_meanwhile);
    CU_add_test(s, "output is bounded, and not waited for", test_output_is_bounded);
    CU_add_test(s, "an init that lies ends its sandbox", test_init_that_lies);
    CU_add_test(s, "nothing can be asked at the end", test_asked_at_the_end);
    CU_add_test(s, "an abandoned command calls nobody", test_abandoned);
    CU_add_test(s, "the last events", test_sandbox_events);
}
