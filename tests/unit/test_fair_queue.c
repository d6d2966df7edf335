/* Who waits, and whose turn it is: order, turns of owners and of their groups, bounds, who leaves.
 */
#include "fair_queue.h"
#include "tap_main.h"

#include <stdio.h>
#include <string.h>

enum { MANY = 64 };

/* An item, and what it may. */
struct one {
    struct fair_item place;
    const char *owner;
    bool blocked;
};

static unsigned looked;

static bool may(void *arg UNUSED, const struct fair_item *i)
{
    looked++;
    return !((const struct one *)i->self)->blocked;
}

static void add(struct fair_queue *q, struct one *o, const char *owner)
{
    o->owner = owner;
    CU_ASSERT_EQUAL(fair_queue_add(q, &o->place, slice_str(owner), o), QUOTA_TAKEN);
}

static struct one *next(struct fair_queue *q)
{
    struct fair_item *i = fair_queue_next(q, may, NULL);
    return i ? i->self : NULL;
}

static void test_order(void)
{
    struct fair_queue q;
    struct one o[3];
    memset(o, 0, sizeof o);
    fair_queue_init(&q, 10, 10);
    CU_ASSERT_PTR_NULL(next(&q));
    for (int i = 0; i < 3; i++)
        add(&q, &o[i], "a");
    CU_ASSERT(fair_queue_has(&q, SLICE("a")) && !fair_queue_has(&q, SLICE("b")));
    CU_ASSERT(!fair_queue_has(&q, SLICE("a|x")));
    fair_queue_leave(&o[1].place);
    fair_queue_leave(&o[1].place); /* it does not wait any more */
    CU_ASSERT_PTR_EQUAL(next(&q), &o[0]);
    CU_ASSERT_PTR_EQUAL(next(&q), &o[2]);
    CU_ASSERT_PTR_NULL(next(&q));
    CU_ASSERT(q.quota.used == 0 && TAILQ_EMPTY(&q.groups));
}

/* One that came after a crowd of another's waits for one of that crowd, not for all. */
static void test_turns(void)
{
    struct fair_queue q;
    struct one crowd[MANY], few[3];
    memset(crowd, 0, sizeof crowd);
    memset(few, 0, sizeof few);
    fair_queue_init(&q, 1000, 1000);
    for (int i = 0; i < MANY; i++)
        add(&q, &crowd[i], "hog");
    for (int i = 0; i < 3; i++)
        add(&q, &few[i], "neighbour");
    for (int i = 0; i < 3; i++) {
        CU_ASSERT_PTR_EQUAL(next(&q), &crowd[i]);
        CU_ASSERT_PTR_EQUAL(next(&q), &few[i]);
    }
    for (int i = 3; i < MANY; i++)
        CU_ASSERT_PTR_EQUAL(next(&q), &crowd[i]);
    CU_ASSERT_PTR_NULL(next(&q));
}

/* Who may not is passed over and keeps its turn. */
static void test_blocked(void)
{
    struct fair_queue q;
    struct one a = {.blocked = true}, b[2];
    memset(b, 0, sizeof b);
    fair_queue_init(&q, 10, 10);
    add(&q, &a, "a");
    add(&q, &b[0], "b");
    add(&q, &b[1], "b");
    CU_ASSERT_PTR_EQUAL(next(&q), &b[0]);
    a.blocked = false;
    CU_ASSERT_PTR_EQUAL(next(&q), &a);
    CU_ASSERT_PTR_EQUAL(next(&q), &b[1]);
}

/* Who names many owners of its own has one turn for all of them, and is not looked at for long. */
static void test_groups(void)
{
    struct fair_queue q;
    struct one crowd[MANY], few[3];
    char name[MANY][16];
    memset(crowd, 0, sizeof crowd);
    memset(few, 0, sizeof few);
    fair_queue_init(&q, 1000, 1000);
    for (int i = 0; i < MANY; i++) {
        snprintf(name[i], sizeof name[i], "1|%d", i);
        add(&q, &crowd[i], name[i]);
    }
    for (int i = 0; i < 3; i++)
        add(&q, &few[i], "2|box");
    CU_ASSERT_PTR_EQUAL(next(&q), &crowd[0]);
    CU_ASSERT_PTR_EQUAL(next(&q), &few[0]);
    CU_ASSERT_PTR_EQUAL(next(&q), &crowd[1]);
    CU_ASSERT_PTR_EQUAL(next(&q), &few[1]);
    for (int i = 2; i < MANY; i++)
        crowd[i].blocked = i != MANY - 1;
    looked = 0;
    CU_ASSERT_PTR_EQUAL(next(&q), &few[2]);
    CU_ASSERT_EQUAL(looked, 17);
    int tries = 0; /* the one that may is found all the same */
    while (tries < 8 && next(&q) != &crowd[MANY - 1])
        tries++;
    CU_ASSERT(tries < 8);
    for (int i = 2; i < MANY - 1; i++)
        fair_queue_leave(&crowd[i].place);
    CU_ASSERT(q.quota.used == 0 && TAILQ_EMPTY(&q.groups));
}

static void test_bounds(void)
{
    struct fair_queue q;
    struct one o[10], more = {.blocked = false}, other = {.blocked = false};
    memset(o, 0, sizeof o);
    fair_queue_init(&q, 20, 10);
    for (int i = 0; i < 10; i++)
        add(&q, &o[i], "a");
    CU_ASSERT_EQUAL(fair_queue_add(&q, &more.place, SLICE("a"), &more), QUOTA_SHARE);
    fair_queue_leave(&more.place); /* it never waited */
    add(&q, &other, "b");
    while (next(&q)) {
    }
    CU_ASSERT_EQUAL(q.quota.used, 0);
}

/* Names that an owner makes up get it no more places, and what it leaves is free again. */
static void test_group_bound(void)
{
    struct fair_queue q;
    struct one o[11], other;
    char name[11][16];
    memset(o, 0, sizeof o);
    memset(&other, 0, sizeof other);
    fair_queue_init(&q, 22, 10);
    for (int i = 0; i < 10; i++) {
        snprintf(name[i], sizeof name[i], "1|%d", i);
        add(&q, &o[i], name[i]);
    }
    CU_ASSERT_EQUAL(fair_queue_add(&q, &o[10].place, SLICE("1|new"), &o[10]), QUOTA_SHARE);
    add(&q, &other, "2|box");
    fair_queue_leave(&o[3].place);
    add(&q, &o[10], "1|new");
    for (int i = 0; i < 11; i++)
        fair_queue_leave(&o[i].place);
    fair_queue_leave(&other.place);
    CU_ASSERT(q.quota.used == 0 && TAILQ_EMPTY(&q.groups));
}

void tap_suites(void)
{
    CU_pSuite s = CU_add_suite("fair_queue", NULL, NULL);
    CU_add_test(s, "an owner's own are in order", test_order);
    CU_add_test(s, "owners by turns", test_turns);
    CU_add_test(s, "who may not is passed over", test_blocked);
    CU_add_test(s, "many owners of one", test_groups);
    CU_add_test(s, "bounds", test_bounds);
    CU_add_test(s, "many owners of one are bounded as one", test_group_bound);
}
