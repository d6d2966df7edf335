/* Shares of the fleet's limits: what is asked for, what is given back, and what a ledger grants. */
#include <CUnit/CUnit.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "budget_ledger.h"
#include "budget_share.h"
#include "tap_main.h"

enum { SECOND = 1000000, BEGIN = 77 * SECOND };

static struct budget_ledger *book(void)
{
    struct err err = {0};
    int fd = memfd_create("book", MFD_CLOEXEC);
    CU_ASSERT_FATAL(fd >= 0 && ftruncate(fd, (off_t)budget_ledger_size()) == 0);
    struct budget_ledger *b = budget_ledger_open(fd, &err);
    CU_ASSERT_PTR_NOT_NULL_FATAL(b);
    close(fd);
    return b;
}

static enum budget_end ask(struct budget_ledger *b, const struct budget *own, uint64_t now,
                           bool leased)
{
    struct budget_grant g;
    struct budget_wish w = {.policy = "p", .own = own, .request = true, .leased = leased};
    budget_ledger_ask(b, &w, now, &g);
    return g.end;
}

static struct budget of_fleet(unsigned seconds, uint64_t amount)
{
    return (struct budget){
        .key = 7, .n = 1, .limits = {{BUDGET_REQUESTS, seconds, amount}}, .fleet = true};
}

static struct budget_share *only(struct budget_ledger *b, const struct budget *own)
{
    return budget_share_get(budget_ledger_shares(b), "p", 7, 0, &own->limits[0]);
}

/* Two ledgers, shares that move between them at odd times: never more in any window. */
static void test_moving(void)
{
    enum { N = 24, TIMES = 3000 };
    static uint64_t at[TIMES];
    struct budget own = of_fleet(2, N);
    struct budget_ledger *b[2] = {book(), book()};
    struct budget_share *s[2] = {only(b[0], &own), only(b[1], &own)};
    uint64_t now = BEGIN;
    unsigned n = 0, most = 0;
    uint32_t turn = 5;
    for (unsigned i = 0; i < TIMES * 3 && n < TIMES; i++) {
        turn = turn * 1664525 + 1013904223;
        now += turn % 60000;
        unsigned who = turn >> 30 & 1;
        enum budget_end end = ask(b[who], &own, now, true);
        if (end == BUDGET_GRANTED)
            at[n++] = now;
        for (unsigned k = 0; k < 2; k++) /* one asks, the other gives back */
            if (budget_share_trim(s[k], budget_ledger_used(b[k], s[k], now), k == who))
                CU_ASSERT(s[k]->held >= budget_ledger_used(b[k], s[k], now));
        uint64_t left = N - s[!who]->held;
        if (s[who]->want > s[who]->held)
            budget_share_answer(s[who], s[who]->want < left ? s[who]->want : left, now);
        CU_ASSERT_FATAL(s[0]->held + s[1]->held <= N);
    }
    for (unsigned i = 0, from = 0; i < n; i++) {
        while (at[i] - at[from] > 2 * SECOND)
            from++;
        most = i - from + 1 > most ? i - from + 1 : most;
    }
    CU_ASSERT(most <= N);
    CU_ASSERT(n > N);
    budget_ledger_close(b[0]);
    budget_ledger_close(b[1]);
}

static void test_ledger(void)
{
    struct budget own = of_fleet(3600, 32);
    struct budget_ledger *b = book();
    struct budget_share *s = only(b, &own);
    CU_ASSERT_EQUAL(ask(b, &own, BEGIN, true), BUDGET_SHORT);
    CU_ASSERT_EQUAL(s->need, 1);
    CU_ASSERT_EQUAL(s->want, 3); /* two ahead */
    budget_share_answer(s, 2, BEGIN);
    CU_ASSERT_EQUAL(ask(b, &own, BEGIN, false), BUDGET_SHORT); /* no lease */
    budget_share_answer(s, 2, BEGIN);
    CU_ASSERT_EQUAL(ask(b, &own, BEGIN, true), BUDGET_GRANTED);
    CU_ASSERT_EQUAL(ask(b, &own, BEGIN, true), BUDGET_GRANTED);
    CU_ASSERT_EQUAL(s->want, 4);
    CU_ASSERT_EQUAL(ask(b, &own, BEGIN, true), BUDGET_SHORT);
    budget_share_answer(s, 1000, BEGIN); /* whatever the role says */
    CU_ASSERT_EQUAL(s->held, 32);
    for (int i = 2; i < 32; i++)
        CU_ASSERT_EQUAL(ask(b, &own, BEGIN, true), BUDGET_GRANTED);
    CU_ASSERT_EQUAL(ask(b, &own, BEGIN, true), BUDGET_SPENT);
    budget_ledger_close(b);
}

/* What was not to be had is not asked for again at once. */
static void test_dry(void)
{
    struct budget own = of_fleet(3600, 32);
    struct budget_ledger *b = book();
    struct budget_share *s = only(b, &own);
    for (int i = 0; i < BUDGET_SHARE_TRIES; i++) {
        CU_ASSERT_EQUAL(ask(b, &own, BEGIN, true), BUDGET_SHORT);
        budget_share_answer(s, 0, BEGIN);
    }
    CU_ASSERT_EQUAL(ask(b, &own, BEGIN, true), BUDGET_SPENT);
    CU_ASSERT_EQUAL(ask(b, &own, BEGIN + BUDGET_SHARE_DRY_US, true), BUDGET_SHORT);
    budget_ledger_close(b);
}

static void test_trim(void)
{
    struct budget own = of_fleet(3600, 32);
    struct budget_ledger *b = book();
    struct budget_share *s = only(b, &own);
    s->held = 20;
    CU_ASSERT(budget_share_trim(s, 5, true));
    CU_ASSERT_EQUAL(s->held, 7);
    CU_ASSERT(budget_share_trim(s, 5, false));
    CU_ASSERT_EQUAL(s->held, 5);
    CU_ASSERT_FALSE(budget_share_trim(s, 9, false)); /* more is used than held */
    s->held = 20;
    s->need = 6;
    CU_ASSERT_FALSE(budget_share_trim(s, 5, false)); /* somebody waits */
    budget_ledger_close(b);
}

/* A limit of each sandbox is the host's own; and there is room for so many. */
static void test_room(void)
{
    struct budget own = of_fleet(60, 9);
    struct budget_ledger *b = book();
    own.limits[0].each = true;
    CU_ASSERT_EQUAL(ask(b, &own, BEGIN, false), BUDGET_GRANTED);
    own.limits[0].each = false;
    for (uint64_t i = 1; i <= BUDGET_SHARES_MAX; i++) {
        own.key = i;
        CU_ASSERT_EQUAL(ask(b, &own, BEGIN, true), BUDGET_SHORT);
    }
    own.key = BUDGET_SHARES_MAX + 1;
    CU_ASSERT_EQUAL(ask(b, &own, BEGIN, true), BUDGET_FULL);
    budget_ledger_close(b);
}

/* Many values of a label leave room for other policies, and for limits of all. */
static void test_room_of_labels(void)
{
    struct budget own = of_fleet(60, 9);
    struct budget_ledger *b = book();
    struct budget_shares *s = budget_ledger_shares(b);
    uint64_t n = 0;
    while (n < BUDGET_SHARES_MAX && budget_share_get(s, "p", 7, n + 1, &own.limits[0]))
        n++;
    CU_ASSERT_EQUAL(n, BUDGET_SHARES_MAX / 2);
    for (n = 0; n < BUDGET_SHARES_MAX && budget_share_get(s, "q", 7, n + 1, &own.limits[0]);)
        n++;
    CU_ASSERT_EQUAL(n, BUDGET_SHARES_MAX / 4);
    CU_ASSERT_PTR_NOT_NULL(budget_share_get(s, "p", 7, 1, &own.limits[0]));
    CU_ASSERT_PTR_NOT_NULL(budget_share_get(s, "r", 7, 0, &own.limits[0]));
    budget_ledger_close(b);
}

/* A call took more than was thought: a share for it is asked for. And what nobody could have is. */
static void test_amounts(void)
{
    struct budget calls = {
        .key = 7, .n = 1, .limits = {{BUDGET_TOKENS, 3600, 1600}}, .fleet = true};
    struct budget bytes = {
        .key = 8, .n = 1, .limits = {{BUDGET_UPLOAD, 3600, 1600}}, .fleet = true};
    struct budget_ledger *b = book();
    struct budget_share *s = only(b, &calls);
    struct budget_wish w = {
        .policy = "p", .own = &calls, .tokens = 10, .sandbox = "sb-1", .leased = true};
    struct budget_grant g;
    s->held = 100;
    budget_ledger_ask(b, &w, BEGIN, &g);
    CU_ASSERT_EQUAL(g.end, BUDGET_GRANTED);
    s->want = 0;
    budget_ledger_settle(b, &w, BEGIN, BEGIN, 500, 0);
    CU_ASSERT_EQUAL(s->want, 600);
    w = (struct budget_wish){.policy = "p", .own = &bytes, .need = 5, .leased = true};
    s = budget_share_get(budget_ledger_shares(b), "p", 8, 0, &bytes.limits[0]);
    s->held = 100;
    budget_ledger_ask(b, &w, BEGIN, &g);
    CU_ASSERT_EQUAL(g.end, BUDGET_GRANTED);
    w.need = UINT64_MAX;
    budget_ledger_ask(b, &w, BEGIN, &g);
    CU_ASSERT_EQUAL(g.end, BUDGET_SPENT);
    budget_ledger_close(b);
}

void tap_suites(void)
{
    CU_pSuite s = CU_add_suite("budget share", NULL, NULL);
    CU_add_test(s, "shares that move", test_moving);
    CU_add_test(s, "what a ledger grants", test_ledger);
    CU_add_test(s, "what was not to be had", test_dry);
    CU_add_test(s, "what is given back", test_trim);
    CU_add_test(s, "room", test_room);
    CU_add_test(s, "room of labels", test_room_of_labels);
    CU_add_test(s, "more than was thought, and than there is", test_amounts);
}
