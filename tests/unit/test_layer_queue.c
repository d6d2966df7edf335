/* The order in which the builder is asked for sandboxes' files, and a builder that dies. */
#include <CUnit/CUnit.h>
#include <event2/event.h>
#include <string.h>
#include <unistd.h>

#include "ipc.h"
#include "layer_queue.h"
#include "tap_main.h"
#include "wire.h"

struct world {
    struct event_base *base;
    struct layer_queue *q;
    struct ipc *near;
    int far;
    char log[256]; /* what the tasks came to, in order */
};

struct task {
    struct world *w;
    char name;
};

static int ignore(struct ipc *ch UNUSED, struct msg *m UNUSED, void *arg UNUSED)
{
    return 0;
}

static void closed(struct ipc *ch UNUSED, const char *why UNUSED, void *arg UNUSED)
{
}

static void done(void *arg, enum layer_result result, const char *text UNUSED)
{
    struct task *t = arg;
    size_t n = strlen(t->w->log);
    t->w->log[n] = t->name;
    t->w->log[n + 1] = (char)('0' + (int)result);
}

static void attach(struct world *w)
{
    int p[2];
    CU_ASSERT_EQUAL_FATAL(ipc_pair(p, NULL), 0);
    w->near = ipc_new(w->base, p[0], ignore, closed, w);
    w->far = p[1];
    layer_queue_builder(w->q, w->near);
}

static void detach(struct world *w)
{
    layer_queue_builder(w->q, NULL);
    ipc_free(w->near);
    close(w->far);
}

static void begin(struct world *w)
{
    memset(w, 0, sizeof *w);
    w->base = event_base_new();
    w->q = layer_queue_new();
    CU_ASSERT_PTR_NOT_NULL_FATAL(w->q);
}

static void end(struct world *w)
{
    layer_queue_free(w->q);
    event_base_free(w->base);
}

/* The next question at the builder: its number, 0 when there is none; its op and `from` are
 * checked.
 */
static uint32_t asked(struct world *w, enum layer_op op, const char *from)
{
    struct msg m;
    uint32_t req = 0;
    uint8_t got = 0;
    char text[80] = "";
    for (int i = 0; i < 10; i++)
        event_base_loop(w->base, EVLOOP_NONBLOCK);
    if (msg_recv(w->far, &m) != 1)
        return 0;
    CU_ASSERT_EQUAL(msg_get_u32(&m, &req), 0);
    CU_ASSERT_EQUAL(msg_get_u8(&m, &got), 0);
    CU_ASSERT_EQUAL(msg_get_str(&m, text, sizeof text), 0);
    CU_ASSERT_EQUAL(got, op);
    CU_ASSERT_STRING_EQUAL(text, from);
    msg_done(&m);
    return req;
}

static int answer(struct world *w, uint32_t req, enum layer_result result)
{
    struct msg m;
    msg_init(&m, W_LAYERED);
    msg_put_u32(&m, req);
    msg_put_u8(&m, (uint8_t)result);
    msg_put_str(&m, "");
    int r = layer_queue_answer(w->q, &m);
    msg_done(&m);
    return r;
}

static void test_order(void)
{
    struct world w;
    begin(&w);
    struct task a = {&w, 'a'}, b = {&w, 'b'}, c = {&w, 'c'}, d = {&w, 'd'};
    CU_ASSERT_EQUAL(layer_queue_add(w.q, LAYER_SNAPSHOT, "sb-1", "s", done, &a), 0);
    attach(&w);
    CU_ASSERT_EQUAL(layer_queue_add(w.q, LAYER_FORK, "sb-1", "sb-2", done, &b), 0);
    CU_ASSERT_EQUAL(layer_queue_add(w.q, LAYER_REMOVE, "sb-1", "", done, &c), 0);
    CU_ASSERT_EQUAL(layer_queue_add(w.q, LAYER_RESTORE, "s", "sb-3", done, &d), 0);
    uint32_t first = asked(&w, LAYER_SNAPSHOT, "sb-1"), second = asked(&w, LAYER_FORK, "sb-1");
    CU_ASSERT_TRUE(first && second);
    CU_ASSERT_EQUAL(asked(&w, LAYER_REMOVE, "sb-1"), 0); /* it is being read, twice */
    CU_ASSERT_EQUAL(answer(&w, second, LAYER_DONE), 0);
    CU_ASSERT_EQUAL(asked(&w, LAYER_REMOVE, "sb-1"), 0);
    CU_ASSERT_EQUAL(answer(&w, first, LAYER_DONE), 0);
    uint32_t third = asked(&w, LAYER_REMOVE, "sb-1"), fourth = asked(&w, LAYER_RESTORE, "s");
    CU_ASSERT_EQUAL(answer(&w, fourth, LAYER_ABSENT), 0);
    CU_ASSERT_EQUAL(answer(&w, third, LAYER_DONE), 0);
    CU_ASSERT_STRING_EQUAL(w.log, "b1a1d3c1");
    CU_ASSERT_EQUAL(answer(&w, 0, LAYER_FAILED), 0); /* nobody asked to be told */
    CU_ASSERT_EQUAL(answer(&w, third, LAYER_DONE), -1);
    CU_ASSERT_EQUAL(answer(&w, 77, LAYER_DONE), -1);
    detach(&w);
    end(&w);
}

static void test_builder_dies(void)
{
    struct world w;
    begin(&w);
    struct task a = {&w, 'a'}, b = {&w, 'b'}, c = {&w, 'c'};
    CU_ASSERT_EQUAL(layer_queue_freeze(w.q, "sb-1", true, done, &c), -1); /* there is none */
    attach(&w);
    CU_ASSERT_EQUAL(layer_queue_add(w.q, LAYER_REMOVE, "sb-1", "", done, &a), 0);
    CU_ASSERT_EQUAL(layer_queue_add(w.q, LAYER_FORK, "sb-2", "sb-3", done, &b), 0);
    uint32_t first = asked(&w, LAYER_REMOVE, "sb-1");
    CU_ASSERT_TRUE(first && asked(&w, LAYER_FORK, "sb-2"));
    detach(&w);
    CU_ASSERT_STRING_EQUAL(w.log, "b0"); /* what was copied has failed */
    attach(&w);
    uint32_t again = asked(&w, LAYER_REMOVE, "sb-1"); /* what was removed is asked for again */
    CU_ASSERT_TRUE(again != 0 && again != first);
    CU_ASSERT_EQUAL(answer(&w, again, LAYER_DONE), 0);
    CU_ASSERT_STRING_EQUAL(w.log, "b0a1");
    detach(&w);
    end(&w);
}

static void test_few_at_once(void)
{
    struct world w;
    struct task t[10];
    char id[10][8];
    uint32_t req[10];
    begin(&w);
    attach(&w);
    for (int i = 0; i < 10; i++) {
        t[i] = (struct task){&w, (char)('a' + i)};
        snprintf(id[i], sizeof id[i], "sb-%d", i);
        CU_ASSERT_EQUAL(layer_queue_add(w.q, LAYER_REMOVE, id[i], "", done, &t[i]), 0);
    }
    for (int i = 0; i < 6; i++)
        CU_ASSERT_TRUE((req[i] = asked(&w, LAYER_REMOVE, id[i])) != 0);
    CU_ASSERT_EQUAL(asked(&w, LAYER_REMOVE, id[6]), 0);
    for (int i = 0; i < 10; i++) {
        CU_ASSERT_EQUAL(answer(&w, req[i], LAYER_DONE), 0);
        if (i < 4)
            CU_ASSERT_TRUE((req[i + 6] = asked(&w, LAYER_REMOVE, id[i + 6])) != 0);
    }
    CU_ASSERT_EQUAL(strlen(w.log), 20);
    detach(&w);
    end(&w);
}

void tap_suites(void)
{
    CU_pSuite s = CU_add_suite("layer queue", NULL, NULL);
    CU_add_test(s, "nothing is read while it is written", test_order);
    CU_add_test(s, "a builder that dies", test_builder_dies);
    CU_add_test(s, "a few at once", test_few_at_once);
}
