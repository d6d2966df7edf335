/* The first message of a role: what is answered when it can start, cannot, or does not understand,
 * and that the filter comes after what it would forbid and before W_READY. */
#include "tap_main.h"

#include "role_run.h"
#include "wire.h"

#include <event2/event.h>
#include <string.h>

struct bed {
    struct event_base *base;
    struct ipc *role, *parent;
    const struct role_start *start;
    char order[8]; /* which callbacks ran */
    bool bad, silent, unconfined;
    unsigned ready, failed;
    char text[64];
    bool role_closed, parent_closed;
};

static void mark(struct bed *b, char what)
{
    size_t n = strlen(b->order);
    CU_ASSERT_FATAL(n + 1 < sizeof b->order);
    b->order[n] = what;
}

static int load(void *self, struct msg *m, struct msg *ready, struct err *err)
{
    struct bed *b = self;
    mark(b, 'l');
    if (b->bad || msg_end(m) < 0)
        return b->silent ? -1 : err_set(err, ERR_PARSE, "no such key");
    msg_put_str(ready, "with this");
    return 0;
}

static int confine(void *self, struct err *err)
{
    struct bed *b = self;
    mark(b, 'c');
    return b->unconfined ? err_set(err, ERR_INTERNAL, "no filter") : 0;
}

static void begun(void *self)
{
    mark(self, 'b');
}

static const struct role_start steps = {load, confine, begun}, plain = {load, NULL, NULL};

static int on_role(struct ipc *ch, struct msg *m, void *arg)
{
    struct bed *b = arg;
    return role_start(b->start, b, ch, m);
}

static int on_parent(struct ipc *ch, struct msg *m, void *arg)
{
    struct bed *b = arg;
    (void)ch;
    b->ready += m->type == W_READY;
    b->failed += m->type == W_FAILED;
    return msg_get_str(m, b->text, sizeof b->text) < 0 ? -1 : msg_end(m);
}

static void on_role_closed(struct ipc *ch, const char *why, void *arg)
{
    struct bed *b = arg;
    (void)why;
    ipc_free(ch);
    b->role = NULL;
    b->role_closed = true;
}

static void on_parent_closed(struct ipc *ch, const char *why, void *arg)
{
    struct bed *b = arg;
    (void)why;
    ipc_free(ch);
    b->parent = NULL;
    b->parent_closed = true;
}

/* Sends W_INIT and lets both ends take what there is. */
static void run(struct bed *b, const struct role_start *start)
{
    int fds[2];
    struct err err;
    struct msg m;
    CU_ASSERT_EQUAL_FATAL(ipc_pair(fds, &err), 0);
    b->start = start;
    b->base = event_base_new();
    b->role = ipc_new(b->base, fds[0], on_role, on_role_closed, b);
    b->parent = ipc_new(b->base, fds[1], on_parent, on_parent_closed, b);
    CU_ASSERT_FATAL(b->role && b->parent);
    msg_init(&m, W_INIT);
    ipc_send(b->parent, &m);
    for (int i = 0; i < 50; i++)
        event_base_loop(b->base, EVLOOP_NONBLOCK);
    ipc_free(b->role);
    ipc_free(b->parent);
    event_base_free(b->base);
}

static void test_ready(void)
{
    struct bed b = {0};
    run(&b, &steps);
    CU_ASSERT_STRING_EQUAL(b.order, "lcb");
    CU_ASSERT(b.ready == 1 && b.failed == 0 && !b.role_closed);
    CU_ASSERT_STRING_EQUAL(b.text, "with this");
    struct bed other = {0};
    run(&other, &plain);
    CU_ASSERT_STRING_EQUAL(other.order, "l");
    CU_ASSERT(other.ready == 1 && !other.role_closed);
}

static void test_failed(void)
{
    struct bed b = {.bad = true};
    run(&b, &steps);
    CU_ASSERT_STRING_EQUAL(b.order, "l");
    CU_ASSERT(b.ready == 0 && b.failed == 1 && b.role_closed && b.parent_closed);
    CU_ASSERT_STRING_EQUAL(b.text, "no such key");
}

static void test_bad_message(void)
{
    struct bed b = {.bad = true, .silent = true};
    run(&b, &steps);
    CU_ASSERT_STRING_EQUAL(b.order, "l");
    CU_ASSERT(b.ready == 0 && b.failed == 0 && b.role_closed && b.parent_closed);
}

static void test_unconfined(void)
{
    struct bed b = {.unconfined = true};
    run(&b, &steps);
    CU_ASSERT_STRING_EQUAL(b.order, "lc");
    CU_ASSERT(b.ready == 0 && b.failed == 1 && b.role_closed);
    CU_ASSERT_STRING_EQUAL(b.text, "no filter");
}

void tap_suites(void)
{
    CU_pSuite s = CU_add_suite("role_run", NULL, NULL);
    CU_add_test(s, "loads, confines, then says it is ready with what it has", test_ready);
    CU_add_test(s, "what cannot be loaded is told, and the channel ends", test_failed);
    CU_add_test(s, "a bad message ends the channel without a word", test_bad_message);
    CU_add_test(s, "without its filter no role says that it is ready", test_unconfined);
}
