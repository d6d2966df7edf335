/* The fleet's role, conquered: whatever it says, the dialer grants no more than a limit, and no
 * longer than a lease by its own clock. */
#include "budget_ledger.h"
#include "dialer_bed.h"
#include "policy.h"
#include "tap_main.h"

#include <stdio.h>
#include <string.h>

/* SHORT: of a lease that ends in its test, or whose second beat is waited for; no other test may
 * take as long as its lease. */
enum { AMOUNT = 16, HOLD = 60, SHORT = 2, SOON_MS = 2000 };

static const char json[] = "{\"policy\":\"coder\",\"rules\":[{\"allow\":\"few.example\","
                           "\"budget\":{\"requests\":\"16/h\",\"fleet\":true}}]}";

struct world {
    struct bed bed;
    uint64_t key;
    int gate, fleet;
    char holder[40];
    uint32_t id;
};

/* The next message of that type, others passed over. */
static bool heard(struct world *w, int fd, uint16_t type, struct msg *m, int ms)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    for (int i = 0; i < ms; i++) {
        bed_turn(&w->bed, 0);
        if (poll(&p, 1, 1) == 0 || msg_recv(fd, m) != 1)
            continue;
        if (m->type == type)
            return true;
        msg_done(m);
    }
    return false;
}

static void say(struct world *w, uint16_t type, uint32_t number, uint64_t share)
{
    struct msg m;
    msg_init(&m, type);
    if (type == W_FLEET_BEATEN || type == W_FLEET_SHARE)
        msg_put_u32(&m, number);
    if (type == W_FLEET_SHARE)
        msg_put_u64(&m, share);
    bed_send(w->fleet, &m);
    bed_turn(&w->bed, 2);
}

static void hear_holder(struct world *w)
{
    struct msg m;
    uint8_t known;
    uint32_t hold;
    CU_ASSERT_FATAL(heard(w, w->fleet, W_FLEET_HOLDER, &m, 1000));
    CU_ASSERT(msg_get_str(&m, w->holder, sizeof w->holder) == 0 && msg_get_u8(&m, &known) == 0 &&
              msg_get_u32(&m, &hold) == 0 && msg_end(&m) == 0);
    CU_ASSERT(known == 0 && hold == bed_hold && strlen(w->holder) == 32);
    msg_done(&m);
}

static uint32_t hear_beat(struct world *w)
{
    struct msg m;
    uint32_t number = 0;
    CU_ASSERT(heard(w, w->fleet, W_FLEET_BEAT, &m, 3000));
    CU_ASSERT(msg_get_u32(&m, &number) == 0);
    msg_done(&m);
    return number;
}

static void open_for(struct world *w, uint32_t hold)
{
    struct err err = {0};
    memset(w, 0, sizeof *w);
    bed_hold = hold;
    bed_open(&w->bed, "", 5, NULL, false);
    struct policy *p = policy_parse(json, strlen(json), &err);
    CU_ASSERT_PTR_NOT_NULL_FATAL(p);
    w->key = policy_rule(p, 0)->budget->key;
    policy_free(p);
    w->gate = bed_peer_json(&w->bed, ROLE_GATE, 1, "box-1", json);
    w->fleet = bed_peer_json(&w->bed, ROLE_FLEET, 2, "", "");
    hear_holder(w);
}

static void open_world(struct world *w)
{
    open_for(w, HOLD);
}

static void close_world(struct world *w)
{
    close(w->gate);
    close(w->fleet);
    bed_close(&w->bed);
    bed_hold = 0;
}

static void wish(struct world *w)
{
    struct msg m;
    msg_init(&m, W_BUDGET_ASK);
    msg_put_u32(&m, ++w->id);
    msg_put_u64(&m, w->key);
    msg_put_u8(&m, 1);
    msg_put_u64(&m, 0);
    msg_put_u8(&m, 0);
    msg_put_u8(&m, 0);
    msg_put_u64(&m, 0);
    msg_put_u64(&m, 0);
    msg_put_str(&m, "");
    msg_put_u64(&m, 0);
    bed_send(w->gate, &m);
    bed_turn(&w->bed, 2);
}

/* The answer to a wish: its end; -1: none came. */
static int answered(struct world *w, int ms)
{
    struct msg m;
    uint32_t id;
    uint8_t end;
    if (!heard(w, w->gate, W_BUDGET, &m, ms))
        return -1;
    CU_ASSERT(msg_get_u32(&m, &id) == 0 && msg_get_u8(&m, &end) == 0);
    msg_done(&m);
    return end;
}

struct heard_ask {
    uint32_t number;
    uint64_t held, need, want;
};

static struct heard_ask hear_ask(struct world *w)
{
    struct heard_ask a = {0};
    struct msg m;
    char policy[80];
    uint64_t key, whose, amount;
    uint8_t kind;
    uint32_t seconds;
    CU_ASSERT_FATAL(heard(w, w->fleet, W_FLEET_ASK, &m, 3000));
    CU_ASSERT(msg_get_u32(&m, &a.number) == 0 && msg_get_str(&m, policy, sizeof policy) == 0 &&
              msg_get_u64(&m, &key) == 0 && msg_get_u64(&m, &whose) == 0 &&
              msg_get_u8(&m, &kind) == 0 && msg_get_u32(&m, &seconds) == 0 &&
              msg_get_u64(&m, &amount) == 0 && msg_get_u64(&m, &a.held) == 0 &&
              msg_get_u64(&m, &a.need) == 0 && msg_get_u64(&m, &a.want) == 0 && msg_end(&m) == 0);
    CU_ASSERT(key == w->key && whose == 0 && kind == BUDGET_REQUESTS && seconds == 3600);
    CU_ASSERT_EQUAL(amount, AMOUNT);
    msg_done(&m);
    return a;
}

/* Nothing is granted before there is a share and a lease; then what waited is. */
static void test_first(void)
{
    struct world w;
    open_for(&w, SHORT); /* a beat that was passed over is said again */
    wish(&w);
    CU_ASSERT_EQUAL(answered(&w, 50), -1); /* it waits */
    say(&w, W_FLEET_UP, 0, 0);
    struct heard_ask a = hear_ask(&w);
    CU_ASSERT(a.held == 0 && a.need == 1 && a.want == 2);
    say(&w, W_FLEET_SHARE, a.number, 2);
    CU_ASSERT_EQUAL(answered(&w, SOON_MS), BUDGET_SPENT); /* no lease, and its second is over */
    say(&w, W_FLEET_BEATEN, hear_beat(&w), 0);
    wish(&w);
    CU_ASSERT_EQUAL(answered(&w, SOON_MS), BUDGET_GRANTED);
    close_world(&w);
}

/* The database is there, and one wish was granted by a share of n. */
static void open_with(struct world *w, uint64_t n)
{
    open_world(w);
    say(w, W_FLEET_UP, 0, 0);
    say(w, W_FLEET_BEATEN, hear_beat(w), 0);
    wish(w);
    say(w, W_FLEET_SHARE, hear_ask(w).number, n);
    CU_ASSERT_EQUAL(answered(w, SOON_MS), BUDGET_GRANTED);
}

static void test_too_much(void)
{
    struct world w;
    open_world(&w);
    say(&w, W_FLEET_UP, 0, 0);
    say(&w, W_FLEET_BEATEN, hear_beat(&w), 0);
    wish(&w);
    struct heard_ask a = hear_ask(&w);
    say(&w, W_FLEET_SHARE, a.number + 1, 1000); /* nobody asked that */
    CU_ASSERT_EQUAL(answered(&w, 20), -1);
    say(&w, W_FLEET_SHARE, a.number, 1000);
    CU_ASSERT_EQUAL(answered(&w, SOON_MS), BUDGET_GRANTED);
    for (int i = 1; i < AMOUNT; i++) {
        wish(&w);
        CU_ASSERT_EQUAL(answered(&w, SOON_MS), BUDGET_GRANTED);
    }
    wish(&w);
    CU_ASSERT_EQUAL(answered(&w, SOON_MS), BUDGET_SPENT);
    close_world(&w);
}

/* Beats that were never said, or were answered long ago, make no lease longer. */
static void test_lease(void)
{
    struct world w;
    struct msg m;
    open_for(&w, SHORT);
    say(&w, W_FLEET_UP, 0, 0);
    uint32_t beat = hear_beat(&w);
    say(&w, W_FLEET_BEATEN, beat, 0);
    wish(&w);
    say(&w, W_FLEET_SHARE, hear_ask(&w).number, AMOUNT);
    CU_ASSERT_EQUAL(answered(&w, SOON_MS), BUDGET_GRANTED);
    for (int i = 0; i < (SHORT * 1000 + 300) / 50; i++) {
        say(&w, W_FLEET_BEATEN, beat, 0);
        say(&w, W_FLEET_BEATEN, UINT32_MAX, 0);
        (void)heard(&w, w.fleet, W_FLEET_LEAVE, &m, 50); /* 50 ms */
    }
    wish(&w);
    CU_ASSERT_EQUAL(answered(&w, SOON_MS), BUDGET_SPENT);
    close_world(&w);
}

static void test_given_back(void)
{
    struct world w;
    char was[40];
    open_with(&w, 8);
    say(&w, W_FLEET_WANTED, 0, 0);
    struct heard_ask a = hear_ask(&w);
    CU_ASSERT(a.held == 1 && a.want == 1 && a.need == 0);
    memcpy(was, w.holder, sizeof was);
    say(&w, W_FLEET_LOST, 0, 0);
    hear_holder(&w);
    CU_ASSERT_STRING_NOT_EQUAL(was, w.holder);
    wish(&w);
    CU_ASSERT_EQUAL(answered(&w, SOON_MS), BUDGET_SPENT); /* it holds nothing under that name */
    close_world(&w);
}

/* The database's connection is another one: what is held is said again, though it is as it was. */
static void test_again(void)
{
    struct world w;
    open_with(&w, 8);
    say(&w, W_FLEET_UP, 0, 0);
    struct heard_ask a = hear_ask(&w);
    CU_ASSERT(a.held == 8 && a.want == 8 && a.need == 0);
    close_world(&w);
}

/* Nothing is kept for a wish that has gone. */
static void test_gone(void)
{
    struct world w;
    struct msg m;
    open_for(&w, SHORT);
    say(&w, W_FLEET_UP, 0, 0);
    wish(&w);
    struct heard_ask a = hear_ask(&w);
    CU_ASSERT_EQUAL(a.need, 1);
    close(w.gate);
    w.gate = -1;
    (void)heard(&w, w.fleet, W_FLEET_LEAVE, &m, 50); /* which does not come: the loop turns */
    say(&w, W_FLEET_SHARE, a.number, 0);
    (void)heard(&w, w.fleet, W_FLEET_LEAVE, &m, 800);
    say(&w, W_FLEET_UP, 0, 0);
    CU_ASSERT_FALSE(heard(&w, w.fleet, W_FLEET_ASK, &m, 50));
    close_world(&w);
}

/* Nor for one to which the lease alone was missing. */
static void test_no_lease(void)
{
    struct world w;
    open_world(&w);
    say(&w, W_FLEET_UP, 0, 0);
    wish(&w);
    say(&w, W_FLEET_SHARE, hear_ask(&w).number, 8);
    CU_ASSERT_EQUAL(answered(&w, SOON_MS), BUDGET_SPENT);
    struct heard_ask a = hear_ask(&w);
    CU_ASSERT(a.held == 1 && a.want == 1 && a.need == 0);
    close_world(&w);
}

static void test_bad(void)
{
    static const uint16_t types[] = {W_FLEET_UP,    W_FLEET_LOST, W_FLEET_WANTED, W_FLEET_BEATEN,
                                     W_FLEET_SHARE, W_FLEET_BEAT, W_BUDGET_ASK};
    for (size_t i = 0; i < ARRAY_LEN(types); i++) {
        struct world w;
        struct msg m;
        open_world(&w);
        msg_init(&m, types[i]);
        msg_put_u8(&m, 1);
        bed_send(w.fleet, &m);
        CU_ASSERT(bed_closed(&w.bed, w.fleet));
        close_world(&w);
    }
}

void tap_suites(void)
{
    CU_pSuite s = CU_add_suite("dialer fleet", NULL, NULL);
    CU_add_test(s, "nothing before a share and a lease", test_first);
    CU_add_test(s, "more than the limit", test_too_much);
    CU_add_test(s, "a lease that is over", test_lease);
    CU_add_test(s, "what is given back, and lost", test_given_back);
    CU_add_test(s, "another connection", test_again);
    CU_add_test(s, "a wish that has gone", test_gone);
    CU_add_test(s, "a wish without a lease", test_no_lease);
    CU_add_test(s, "bad messages", test_bad);
}
