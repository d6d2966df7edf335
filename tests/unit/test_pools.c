/* Pools: filled one at a time and after others, handed out to one only, tried later and later when
 * they fail, and made anew by another configuration and another controller. */
#include "managed_sandbox_fixture.h"

#include "approvals.h"
#include "pools.h"

static const char templates_text[] =
    "{\"version\": 1, \"policies\": {\"p\": {\"rules\": [{\"allow\": \"a.example.com\"}]}},"
    " \"templates\": {\"t\": {\"policy\": \"p\", \"pool\": 2, \"labels\": {\"a\": \"1\"},"
    "  \"env\": {\"FROM\": \"template\", \"BOTH\": \"template\"}, \"ttl\": \"500s\"}}}";

static void pools_begin(struct world *w)
{
    config_unref(w->c.config);
    w->c.config = config_from_json(templates_text, sizeof templates_text - 1, NULL);
    CU_ASSERT_PTR_NOT_NULL_FATAL(w->c.config);
    w->c.approvals = approvals_new(&w->c);
    w->c.pools = pools_new(&w->c);
    pools_look(w->c.pools);
}

/* killed: the rows stay as they are. */
static void pools_end(struct world *w, bool killed)
{
    struct managed_sandbox *r;
    TAILQ_FOREACH(r, &w->c.managed_sandboxes, link)
    if (killed && r->state == MANAGED_SANDBOX_RUNNING)
        r->state = MANAGED_SANDBOX_STOPPED;
    managed_sandboxes_close(&w->c);
    pools_free(w->c.pools);
    w->c.pools = NULL;
    approvals_free(w->c.approvals);
    w->c.approvals = NULL;
    end(w, false);
}

static const struct config_template *of(struct world *w)
{
    return config_template(w->c.config, "t");
}

static json_int_t told(struct world *w, const char *key)
{
    json_t *v = pools_json(w->c.pools, of(w), true);
    json_int_t n = json_integer_value(json_object_get(v, key));
    json_decref(v);
    return n;
}

/* The next one that the builder is asked for, made. */
static struct managed_sandbox *pooled(struct world *w)
{
    CU_ASSERT_TRUE_FATAL(got(w, w->builder, W_BUILD) && got(w, w->builder, W_KEEP));
    struct managed_sandbox *r;
    TAILQ_FOREACH(r, &w->c.managed_sandboxes, link)
    w->r = r; /* the last one */
    answer_built(w, true);
    self_test(w);
    return w->r;
}

static struct managed_sandbox *take(struct world *w, const char *name, json_t *env, struct err *err)
{
    struct pools_wish asked = {.wish = {.name = name, .env = env, .ttl = 77, .token = "tk-1"}};
    return pools_take(w->c.pools, of(w), &asked, on_running, w, err);
}

static void test_claims(void)
{
    struct world w;
    struct err err = {0};
    world_new(&w);
    pools_begin(&w);
    struct managed_sandbox *one = pooled(&w);
    CU_ASSERT_TRUE(one->pooled && one->ready && one->ttl == CONFIG_TTL);
    CU_ASSERT_EQUAL(told(&w, "ready"), 1);
    struct managed_sandbox *two = pooled(&w);
    CU_ASSERT_EQUAL(told(&w, "ready"), 2);
    CU_ASSERT_EQUAL(managed_sandboxes_of_token(&w.c, "tk-1"), 0);
    CU_ASSERT_NOT_EQUAL(memcmp(one->seed, two->seed, sizeof one->seed), 0);
    sandbox_called(one->sandbox, &(struct denial_calls){.n = 1});
    int64_t last = two->seq;
    json_t *env = json_pack("{s:s, s:s}", "OWN", "1", "BOTH", "own");
    CU_ASSERT_PTR_EQUAL(take(&w, "mine", env, &err), one);
    CU_ASSERT_EQUAL(w.ran, 1);
    CU_ASSERT_TRUE(!one->pooled && !one->ready && one->ttl == 77 && one->seq > last);
    CU_ASSERT_STRING_EQUAL(one->name, "mine");
    CU_ASSERT_STRING_EQUAL(json_string_value(json_object_get(one->labels, "a")), "1");
    CU_ASSERT_STRING_EQUAL(strlist_get_env(sandbox_env(one->sandbox), "FROM"), "template");
    CU_ASSERT_STRING_EQUAL(strlist_get_env(sandbox_env(one->sandbox), "BOTH"), "own");
    CU_ASSERT_EQUAL(sandbox_denials(one->sandbox)->calls.n, 0);
    CU_ASSERT_EQUAL(managed_sandboxes_of_token(&w.c, "tk-1"), 1);
    CU_ASSERT_PTR_NULL(take(&w, "mine", env, &err)); /* the name is taken: the other one stays */
    CU_ASSERT_EQUAL(err.code, ERR_DENIED);
    CU_ASSERT_TRUE(two->pooled && two->ready);
    CU_ASSERT_PTR_EQUAL(take(&w, NULL, env, &err), two); /* the same is never had twice */
    json_decref(env);
    CU_ASSERT_EQUAL(told(&w, "claimed"), 2);
    CU_ASSERT_EQUAL(rows(&w).n, 2);
    pools_end(&w, false);
    world_remove(&w);
}

static void test_fails(void)
{
    struct world w;
    world_new(&w);
    pools_begin(&w);
    CU_ASSERT_TRUE(got(&w, w.builder, W_BUILD) && got(&w, w.builder, W_KEEP));
    w.r = TAILQ_FIRST(&w.c.managed_sandboxes);
    answer_built(&w, false);
    CU_ASSERT_TRUE(got(&w, w.builder, W_TEARDOWN));
    sandbox_torn(w.r->sandbox);
    do_layer(&w, LAYER_REMOVE, LAYER_DONE);
    CU_ASSERT_EQUAL(told(&w, "failures"), 1);
    CU_ASSERT_EQUAL(told(&w, "retry_in"), 1);
    CU_ASSERT_EQUAL(w.c.n_managed_sandboxes, 0);
    turn(&w);
    CU_ASSERT_EQUAL(w.c.n_managed_sandboxes, 0); /* not at once */
    CU_ASSERT_TRUE(got(&w, w.builder, W_BUILD)); /* but then */
    pools_end(&w, false);
    world_remove(&w);
}

/* Who waits for a sandbox comes first, and then it is one at a time. */
static void test_others_first(void)
{
    struct world w;
    world_new(&w);
    make(&w, 600);
    CU_ASSERT_TRUE(got(&w, w.builder, W_BUILD) && got(&w, w.builder, W_KEEP));
    pools_begin(&w);
    turn(&w);
    CU_ASSERT_EQUAL(w.c.n_managed_sandboxes, 1);
    answer_built(&w, true);
    self_test(&w);
    CU_ASSERT_TRUE(got(&w, w.builder, W_BUILD) && got(&w, w.builder, W_KEEP));
    CU_ASSERT_EQUAL(w.c.n_managed_sandboxes, 2);
    pools_look(w.c.pools);
    turn(&w);
    CU_ASSERT_EQUAL(w.c.n_managed_sandboxes, 2);
    pools_end(&w, false);
    world_remove(&w);
}

static void test_reloaded(void)
{
    struct world w;
    struct err err = {0};
    world_new(&w);
    to_running(&w);
    struct managed_sandbox *somebodys = w.r;
    pools_begin(&w);
    struct managed_sandbox *old = pooled(&w);
    pools_reloaded(w.c.pools);
    CU_ASSERT_EQUAL(told(&w, "ready"), 0);
    struct managed_sandbox *fresh = take(&w, NULL, NULL, &err);
    CU_ASSERT_TRUE(fresh && fresh != old && !fresh->pooled);
    turn(&w);
    CU_ASSERT_EQUAL(old->state, MANAGED_SANDBOX_STOPPING);
    CU_ASSERT_EQUAL(somebodys->state, MANAGED_SANDBOX_RUNNING);
    pools_end(&w, false);
    world_remove(&w);
}

/* Of the next controller they are none: it ends them, whether they still run or not. */
static void another_controller(bool killed)
{
    struct world w;
    char id[SANDBOX_ID_MAX + 1];
    world_new(&w);
    pools_begin(&w);
    memcpy(id, pooled(&w)->id, sizeof id);
    pools_end(&w, killed);
    begin(&w);
    CU_ASSERT_EQUAL(managed_sandboxes_load(&w.c, NULL), 0);
    w.r = managed_sandbox_find(&w.c, id);
    CU_ASSERT_PTR_NOT_NULL_FATAL(w.r);
    CU_ASSERT_TRUE(w.r->pooled && !w.r->ready);
    CU_ASSERT_EQUAL(w.r->state, killed ? MANAGED_SANDBOX_STOPPING : MANAGED_SANDBOX_STOPPED);
    pools_begin(&w);
    event_base_loop(w.c.base, EVLOOP_NONBLOCK);
    CU_ASSERT_EQUAL(w.r->state, MANAGED_SANDBOX_STOPPING);
    pools_end(&w, false);
    world_remove(&w);
}

static void test_another_controller(void)
{
    another_controller(true);
    another_controller(false);
}

void tap_suites(void)
{
    CU_pSuite s = CU_add_suite("pools", NULL, NULL);
    CU_add_test(s, "what is pooled is had once, as who asks says", test_claims);
    CU_add_test(s, "what fails is tried again later", test_fails);
    CU_add_test(s, "others come first, and one is made at a time", test_others_first);
    CU_add_test(s, "another configuration throws it away", test_reloaded);
    CU_add_test(s, "another controller ends it", test_another_controller);
}
