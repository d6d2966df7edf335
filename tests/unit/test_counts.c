/* What roles count: histograms, reports, sums of processes; the logger's bounded table. */
#include "counts.h"
#include "meter.h"
#include "tap_main.h"

#include <stdio.h>
#include <string.h>

static void note(struct counts *c, enum record_kind kind, const char *policy, const char *code,
                 const char *status)
{
    struct record_view v = {.kind = kind};
    struct render_source from = {.role = "gate", .sandbox = "", .policy = ""};
    v.field[RF_POLICY] = slice_str(policy);
    v.field[RF_CODE] = slice_str(code);
    v.field[RF_STATUS] = slice_str(status);
    v.field[RF_UP] = SLICE("10");
    v.field[RF_DOWN] = SLICE("5");
    v.field[RF_COUNT] = SLICE("3");
    counts_note(c, &v, &from);
}

static void table(void)
{
    static struct counts c, back;
    struct msg m;
    note(&c, RECORD_COMPLETED, "p", "", "204");
    note(&c, RECORD_COMPLETED, "p", "", "200");
    note(&c, RECORD_DENIED, "p", "no_rule", "403");
    note(&c, RECORD_DENIED, "p\"\n{}", "a b\xff", "403");
    CU_ASSERT_EQUAL_FATAL(c.n, 3);
    CU_ASSERT_STRING_EQUAL(c.list[0].code, "2xx");
    CU_ASSERT_EQUAL(c.list[0].records, 2);
    CU_ASSERT_EQUAL(c.list[0].up, 20);
    CU_ASSERT_EQUAL(c.list[0].down, 10);
    CU_ASSERT_EQUAL(c.list[0].count, 6);
    CU_ASSERT_STRING_EQUAL(c.list[1].code, "no_rule");
    CU_ASSERT_STRING_EQUAL(c.list[2].policy, "p____");
    CU_ASSERT_STRING_EQUAL(c.list[2].code, "a_b_");
    msg_init(&m, 1);
    counts_put(&m, &c);
    CU_ASSERT_EQUAL(counts_get(&m, &back), 0);
    CU_ASSERT_EQUAL(msg_end(&m), 0);
    CU_ASSERT_EQUAL(back.n, 3);
    CU_ASSERT_EQUAL(back.list[0].up, 20);
    msg_done(&m);
}

static const struct count *of(const struct counts *c, const char *policy, const char *code)
{
    for (size_t i = 0; i < c->n; i++)
        if (strcmp(c->list[i].policy, policy) == 0 && strcmp(c->list[i].code, code) == 0)
            return &c->list[i];
    return NULL;
}

/* No two series have the same labels: Prometheus would refuse or mix them. */
static void each_is_one(const struct counts *c)
{
    unsigned twins = 0;
    for (size_t i = 0; i < c->n; i++)
        for (size_t k = 0; k < i; k++)
            twins += c->list[i].kind == c->list[k].kind && c->list[i].owner == c->list[k].owner &&
                     strcmp(c->list[i].code, c->list[k].code) == 0;
    CU_ASSERT_EQUAL(twins, 0);
}

/* A conquered writer invents codes: the table ends, the counts do not. */
static void bounded(void)
{
    static struct counts c, back;
    struct msg m;
    char code[40];
    uint64_t total = 0;
    for (int i = 0; i < 5000; i++) {
        snprintf(code, sizeof code, "invented-%d-0123456789012345678901", i);
        note(&c, i % 2 ? RECORD_DENIED : RECORD_ABORTED, "p", code, "");
    }
    CU_ASSERT(c.n <= COUNTS_MAX + RECORD_KINDS);
    for (size_t i = 0; i < c.n; i++)
        total += c.list[i].records;
    CU_ASSERT_EQUAL(total, 5000);
    CU_ASSERT_PTR_NOT_NULL(of(&c, "p", "other"));
    each_is_one(&c);
    msg_init(&m, 1);
    counts_put(&m, &c);
    CU_ASSERT_FALSE(m.bad);
    CU_ASSERT_EQUAL(counts_get(&m, &back), 0);
    msg_done(&m);
    msg_init(&m, 1);
    msg_put_u32(&m, 1);
    msg_put_u8(&m, RECORD_KINDS);
    CU_ASSERT_EQUAL(counts_get(&m, &back), -1);
    msg_done(&m);
}

/* What one policy's writers invent takes no other's place, before them or after; nor do names. */
static void shared(void)
{
    static struct counts c;
    char code[40], policy[40];
    uint64_t noisy = 0;
    note(&c, RECORD_DENIED, "early", "no_rule", "403");
    for (int i = 0; i < 5000; i++) {
        snprintf(code, sizeof code, "invented-%d", i);
        note(&c, RECORD_DENIED, "noisy", code, "");
    }
    for (int i = 0; i < 50; i++) {
        snprintf(code, sizeof code, "code-%d", i);
        note(&c, i % 2 ? RECORD_DENIED : RECORD_ABORTED, "late", code, "403");
    }
    note(&c, RECORD_DENIED, "early", "no_rule", "403");
    CU_ASSERT_PTR_NOT_NULL_FATAL(of(&c, "early", "no_rule"));
    CU_ASSERT_EQUAL(of(&c, "early", "no_rule")->records, 2);
    CU_ASSERT_PTR_NOT_NULL(of(&c, "late", "code-0"));
    CU_ASSERT_PTR_NOT_NULL(of(&c, "late", "code-49"));
    CU_ASSERT_PTR_NULL(of(&c, "other", "other"));
    for (size_t i = 0; i < c.n; i++)
        noisy += strcmp(c.list[i].policy, "noisy") == 0 ? c.list[i].records : 0;
    CU_ASSERT_EQUAL(noisy, 5000);
    each_is_one(&c);
    for (int i = 0; i < 5000; i++) {
        snprintf(policy, sizeof policy, "invented-%d", i);
        note(&c, RECORD_DENIED, policy, "no_rule", "");
    }
    note(&c, RECORD_DENIED, "early", "no_rule", "403");
    CU_ASSERT_EQUAL(of(&c, "early", "no_rule")->records, 3);
    CU_ASSERT_PTR_NOT_NULL(of(&c, "other", "other"));
    CU_ASSERT(c.n <= COUNTS_MAX + RECORD_KINDS);
    CU_ASSERT(c.n_policies <= COUNTS_NAMED);
    each_is_one(&c);
}

static void sums(void)
{
    static struct meters a, b, back;
    struct msg m;
    a.count[METER_MINTS] = 2;
    a.count[METER_POOL_IDLE] = 7;
    a.span[SPAN_DIAL].bucket[3] = 1;
    a.span[SPAN_DIAL].us = 4000;
    b.count[METER_MINTS] = UINT64_MAX; /* what a conquered role may say */
    meters_sum(&b, &a, false);
    CU_ASSERT_EQUAL(b.count[METER_MINTS], UINT64_MAX);
    CU_ASSERT_EQUAL(b.count[METER_POOL_IDLE], 7);
    meters_sum(&b, &a, true); /* it ended: its idle connections are gone */
    CU_ASSERT_EQUAL(b.count[METER_POOL_IDLE], 7);
    CU_ASSERT_EQUAL(b.span[SPAN_DIAL].bucket[3], 2);
    CU_ASSERT_EQUAL(b.span[SPAN_DIAL].us, 8000);
    msg_init(&m, 1);
    meters_put(&m, &b);
    CU_ASSERT_EQUAL(meters_get(&m, &back), 0);
    CU_ASSERT_EQUAL(msg_end(&m), 0);
    CU_ASSERT_EQUAL(memcmp(&b, &back, sizeof b), 0);
    CU_ASSERT(meters_get(&m, &back) < 0);
    msg_done(&m);
    for (size_t i = 0; i < METER_COUNT; i++)
        CU_ASSERT_PTR_NOT_NULL(meter_about[i].name);
    for (size_t i = 0; i < SPAN_COUNT; i++)
        CU_ASSERT_PTR_NOT_NULL(meter_span_about[i].name);
    for (size_t i = 1; i < METER_BUCKETS - 1; i++)
        CU_ASSERT(meter_bound_us[i] > meter_bound_us[i - 1]);
}

void tap_suites(void)
{
    CU_pSuite s = CU_add_suite("counts", NULL, NULL);
    CU_add_test(s, "records are counted by kind, policy and code", table);
    CU_add_test(s, "the table is bounded, whatever codes come", bounded);
    CU_add_test(s, "no policy takes another's place", shared);
    CU_add_test(s, "reports go over and are added up", sums);
}
