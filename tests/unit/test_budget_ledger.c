/* What budgets have been used up: exact over any window, portions, giving back, another mapping. */
#include <CUnit/CUnit.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "budget_ledger.h"
#include "ipc_msg.h"
#include "sandbox_labels.h"
#include "tap_main.h"

enum { SECOND = 1000000, BEGIN = 77 * SECOND };

static int memory(void)
{
    int fd = memfd_create("book", MFD_CLOEXEC);
    CU_ASSERT_FATAL(fd >= 0 && ftruncate(fd, (off_t)budget_ledger_size()) == 0);
    return fd;
}

static struct budget_ledger *book_of(int fd)
{
    struct err err = {0};
    struct budget_ledger *b = budget_ledger_open(fd, &err);
    CU_ASSERT_PTR_NOT_NULL_FATAL(b);
    return b;
}

static struct budget limit(enum budget_kind kind, unsigned seconds, uint64_t amount)
{
    return (struct budget){.key = 7, .n = 1, .limits = {{kind, seconds, amount}}};
}

static struct budget_grant ask(struct budget_ledger *b, const struct budget *own, uint64_t now,
                               bool request, uint64_t need, bool up, bool down)
{
    struct budget_grant g;
    struct budget_wish w = {
        .policy = "p", .own = own, .request = request, .need = need, .up = up, .down = down};
    budget_ledger_ask(b, &w, now, &g);
    return g;
}

/* Whenever they are asked for: never more than N in any window, however it lies. */
static void test_any_window(void)
{
    enum { N = 20, TIMES = 4000 };
    static uint64_t at[TIMES];
    struct budget own = limit(BUDGET_REQUESTS, 2, N);
    int fd = memory();
    struct budget_ledger *b = book_of(fd);
    uint64_t now = BEGIN;
    unsigned n = 0, most = 0;
    uint32_t turn = 11;
    for (unsigned i = 0; i < TIMES * 3 && n < TIMES; i++) {
        turn = turn * 1664525 + 1013904223; /* any will do, but the same each time */
        now += turn % 120000;
        if (ask(b, &own, now, true, 0, false, false).end == BUDGET_GRANTED)
            at[n++] = now;
    }
    for (unsigned i = 0, first = 0; i < n; i++) {
        while (at[i] - at[first] > 2 * SECOND)
            first++;
        most = i - first + 1 > most ? i - first + 1 : most;
    }
    printf("# at most %u in any 2 s, %u granted in %.0f s\n", most, n,
           (double)(now - BEGIN) / SECOND);
    CU_ASSERT_EQUAL(most, N);
    CU_ASSERT(n > 0.9 * (double)(now - BEGIN) / (2 * SECOND) * N);
    budget_ledger_close(b);
    close(fd);
}

static void test_retry(void)
{
    struct budget own = limit(BUDGET_REQUESTS, 60, 2);
    int fd = memory();
    struct budget_ledger *b = book_of(fd);
    CU_ASSERT_EQUAL(ask(b, &own, BEGIN, true, 0, false, false).end, BUDGET_GRANTED);
    CU_ASSERT_EQUAL(ask(b, &own, BEGIN + 10 * SECOND, true, 0, false, false).end, BUDGET_GRANTED);
    struct budget_grant g = ask(b, &own, BEGIN + 20 * SECOND, true, 0, false, false);
    CU_ASSERT(g.end == BUDGET_SPENT && g.retry >= 40 && g.retry <= 42);
    g = ask(b, &own, BEGIN + 20 * SECOND + (uint64_t)g.retry * SECOND, true, 0, false, false);
    CU_ASSERT_EQUAL(g.end, BUDGET_GRANTED); /* what it says is true */
    g = ask(b, &own, BEGIN + 100000 * (uint64_t)SECOND, true, 0, false, false);
    CU_ASSERT_EQUAL(g.end, BUDGET_GRANTED);
    budget_ledger_close(b);
    close(fd);
}

static void test_bytes(void)
{
    struct budget own = {
        .key = 9, .n = 2, .limits = {{BUDGET_UPLOAD, 60, 100000}, {BUDGET_DOWNLOAD, 60, 160000}}};
    int fd = memory();
    struct budget_ledger *b = book_of(fd);
    struct budget_grant g = ask(b, &own, BEGIN, true, 0, true, true);
    CU_ASSERT(g.end == BUDGET_GRANTED && g.up == 100000 / 16 && g.down == 10000);
    g = ask(b, &own, BEGIN, true, 95000, false, true);
    CU_ASSERT_EQUAL(g.end, BUDGET_SPENT); /* all that is needed, or nothing at all */
    g = ask(b, &own, BEGIN, true, 90000, false, false);
    CU_ASSERT(g.end == BUDGET_GRANTED && g.up == 90000 && g.down == 0);
    g = ask(b, &own, BEGIN, false, 0, true, false);
    CU_ASSERT(g.end == BUDGET_GRANTED && g.up == 100000 - 90000 - 6250); /* what is left of it */
    g = ask(b, &own, BEGIN, false, 0, true, false);
    CU_ASSERT_EQUAL(g.end, BUDGET_SPENT);
    struct budget_wish of = {.policy = "p", .own = &own};
    budget_ledger_back(b, &of, BEGIN, BEGIN + SECOND, 90000, 0);
    g = ask(b, &own, BEGIN + SECOND, false, 90000, false, false);
    CU_ASSERT_EQUAL(g.end, BUDGET_GRANTED);
    budget_ledger_back(b, &of, BEGIN, BEGIN + 70 * SECOND, UINT64_MAX, UINT64_MAX);
    g = ask(b, &own, BEGIN + 70 * SECOND, false, 100000, false, false);
    CU_ASSERT_EQUAL(g.end, BUDGET_GRANTED); /* never more than there is */
    g = ask(b, &own, BEGIN + 70 * SECOND, false, 1, false, false);
    CU_ASSERT_EQUAL(g.end, BUDGET_SPENT);
    budget_ledger_close(b);
    close(fd);
}

/* A rule's and its policy's: both, or neither is charged. */
static void test_both(void)
{
    struct budget own = limit(BUDGET_REQUESTS, 60, 5), whole = limit(BUDGET_REQUESTS, 60, 3);
    whole.key = 1;
    int fd = memory();
    struct budget_ledger *b = book_of(fd);
    struct budget_wish w = {.policy = "p", .own = &own, .whole = &whole, .request = true};
    struct budget_grant g;
    for (int i = 0; i < 6; i++)
        budget_ledger_ask(b, &w, BEGIN, &g);
    CU_ASSERT_EQUAL(g.end, BUDGET_SPENT_WHOLE); /* the rule's own is not */
    w.whole = NULL;
    budget_ledger_ask(b, &w, BEGIN, &g);
    CU_ASSERT_EQUAL(g.end, BUDGET_GRANTED); /* its fourth: the refused ones were not charged */
    budget_ledger_ask(b, &w, BEGIN, &g);
    w.whole = &whole;
    budget_ledger_ask(b, &w, BEGIN, &g);
    CU_ASSERT_EQUAL(g.end, BUDGET_SPENT); /* both are: the rule's is named */
    w.own = NULL;
    budget_ledger_ask(b, &w, BEGIN, &g);
    CU_ASSERT_EQUAL(g.end, BUDGET_SPENT); /* the only one */
    w.own = &own;
    w.policy = "q"; /* another policy's are its own */
    w.whole = &whole;
    budget_ledger_ask(b, &w, BEGIN, &g);
    CU_ASSERT_EQUAL(g.end, BUDGET_GRANTED);
    budget_ledger_close(b);
    close(fd);
}

/* The next dialer goes on where the last one was. */
static void test_again(void)
{
    struct budget own = limit(BUDGET_REQUESTS, 3600, 2);
    int fd = memory();
    struct budget_ledger *b = book_of(fd);
    CU_ASSERT_EQUAL(ask(b, &own, BEGIN, true, 0, false, false).end, BUDGET_GRANTED);
    CU_ASSERT_EQUAL(ask(b, &own, BEGIN, true, 0, false, false).end, BUDGET_GRANTED);
    budget_ledger_close(b);
    b = book_of(fd);
    CU_ASSERT_EQUAL(ask(b, &own, BEGIN + SECOND, true, 0, false, false).end, BUDGET_SPENT);
    budget_ledger_close(b);
    close(fd);
}

/* More budgets than there is room for: what is in use stays, others are refused. */
static void test_full(void)
{
    int fd = memory();
    struct budget_ledger *b = book_of(fd);
    unsigned granted = 0, full = 0;
    for (unsigned i = 1; i <= 200000; i++) {
        struct budget own = limit(BUDGET_REQUESTS, 60, 1);
        own.key = i;
        struct budget_grant g = ask(b, &own, BEGIN, true, 0, false, false);
        granted += g.end == BUDGET_GRANTED;
        full += g.end == BUDGET_FULL;
    }
    CU_ASSERT(granted > 60000 && granted <= 65536 && granted + full == 200000);
    struct budget own = limit(BUDGET_REQUESTS, 60, 1);
    own.key = 1;
    CU_ASSERT_EQUAL(ask(b, &own, BEGIN, true, 0, false, false).end, BUDGET_SPENT);
    own.key = 999999;
    CU_ASSERT_EQUAL(ask(b, &own, BEGIN + 70 * SECOND, true, 0, false, false).end, BUDGET_GRANTED);
    budget_ledger_close(b);
    close(fd);
    struct err err = {0};
    CU_ASSERT_PTR_NULL(budget_ledger_open(-1, &err));
}

static enum budget_end call_of(struct budget_ledger *b, const char *policy, bool each,
                               uint64_t tokens, unsigned number)
{
    struct budget own = {.key = 7, .n = 1, .limits = {{BUDGET_TOKENS, 3600, 100, each}}};
    char sandbox[32];
    struct budget_grant g;
    snprintf(sandbox, sizeof sandbox, "box-%u", number);
    struct budget_wish w = {.policy = policy, .own = &own, .tokens = tokens, .sandbox = sandbox};
    budget_ledger_ask(b, &w, BEGIN, &g);
    return g.end;
}

/* One policy's sandboxes, as many as anybody names, and then another's: budgets of a neighbour have
 * room, and count. */
static void test_shares(void)
{
    enum { BOXES = 400000 };
    int fd = memory();
    struct budget_ledger *b = book_of(fd);
    unsigned granted = 0, wholes = 0, eaches = 0, most = 0;
    for (unsigned i = 0; i < BOXES; i++)
        granted += call_of(b, "crowd", true, 60, i) == BUDGET_GRANTED;
    CU_ASSERT(granted > 30000 && granted <= 8 * 4096);
    for (unsigned i = 0; i < 1000; i++) {
        eaches += call_of(b, "next", true, 60, i) == BUDGET_GRANTED;
        most += call_of(b, "next", true, 60, i) == BUDGET_SPENT;
    }
    CU_ASSERT(eaches == 1000 && most == 1000);
    for (unsigned i = 0; i < BOXES; i++)
        (void)call_of(b, "other", true, 60, i);
    for (unsigned i = 0; i < 1000; i++) {
        char policy[32];
        snprintf(policy, sizeof policy, "whole-%u", i);
        wholes += call_of(b, policy, false, 60, 0) == BUDGET_GRANTED &&
                  call_of(b, policy, false, 60, 0) == BUDGET_SPENT;
    }
    CU_ASSERT_EQUAL(wholes, 1000);
    budget_ledger_close(b);
    close(fd);
}

/* "team=red env=prod"; the caller's. */
static struct sandbox_labels *labels_of(const char *text)
{
    struct msg m;
    char key[64], value[64];
    int n, at = 0, count = 0;
    msg_init(&m, 0);
    for (int i = 0; sscanf(text + i, " %63[^=]=%63s%n", key, value, &n) == 2; i += n)
        count++;
    msg_put_u32(&m, (uint32_t)count);
    for (; sscanf(text + at, " %63[^=]=%63s%n", key, value, &n) == 2; at += n)
        sandbox_labels_put_one(&m, key, value);
    struct sandbox_labels *l = sandbox_labels_get(&m);
    CU_ASSERT_PTR_NOT_NULL_FATAL(l);
    CU_ASSERT_EQUAL(msg_end(&m), 0);
    msg_done(&m);
    return l;
}

static enum budget_end call_with(struct budget_ledger *b, const struct budget *own,
                                 const char *labels, const char *sandbox)
{
    struct sandbox_labels *l = labels ? labels_of(labels) : NULL;
    struct budget_wish w = {
        .policy = "p", .own = own, .tokens = 40, .sandbox = sandbox, .labels = l};
    struct budget_grant g;
    budget_ledger_ask(b, &w, BEGIN, &g);
    sandbox_labels_unref(l);
    return g.end;
}

/* 100 tokens for each value of a label, 40 a call: two calls each, whoever makes them. */
static void test_labels(void)
{
    static const struct {
        const char *labels, *sandbox;
        enum budget_end end;
    } rows[] = {
        {"team=red", "a", BUDGET_GRANTED},  {"n=1 team=red", "b", BUDGET_GRANTED},
        {"team=red", "c", BUDGET_SPENT},    {"team=blue", "c", BUDGET_GRANTED},
        {"team=blue", "a", BUDGET_GRANTED}, {"team=blue", "d", BUDGET_SPENT},
        {"env=red", "e", BUDGET_GRANTED},   {NULL, "f", BUDGET_GRANTED},
        {"n=1", "g", BUDGET_SPENT},         {"Team=red", "h", BUDGET_SPENT},
        {"team=Red", "h", BUDGET_GRANTED},  {"team=red,", "h", BUDGET_GRANTED},
    };
    struct budget own = {.key = 7, .n = 1, .limits = {{BUDGET_TOKENS, 3600, 100, false, "team"}}};
    int fd = memory();
    struct budget_ledger *b = book_of(fd);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        enum budget_end end = call_with(b, &own, rows[i].labels, rows[i].sandbox);
        if (end != rows[i].end)
            printf("# %s of %s: %d\n", rows[i].labels ? rows[i].labels : "none", rows[i].sandbox,
                   end);
        CU_ASSERT_EQUAL(end, rows[i].end);
    }
    /* two labels' limits of one budget are two counts, though the values are the same */
    own = (struct budget){.key = 8,
                          .n = 2,
                          .limits = {{BUDGET_TOKENS, 3600, 100, false, "team"},
                                     {BUDGET_TOKENS, 3600, 100, false, "env"}}};
    CU_ASSERT_EQUAL(call_with(b, &own, "team=x env=x", "a"), BUDGET_GRANTED);
    CU_ASSERT_EQUAL(call_with(b, &own, "team=x env=x", "a"), BUDGET_GRANTED);
    CU_ASSERT_EQUAL(call_with(b, &own, "team=y env=x", "a"), BUDGET_SPENT);
    CU_ASSERT_EQUAL(call_with(b, &own, "team=x env=y", "a"), BUDGET_SPENT);
    CU_ASSERT_EQUAL(call_with(b, &own, "team=y env=y", "a"), BUDGET_GRANTED);
    CU_ASSERT_EQUAL(call_with(b, &own, NULL, "a"), BUDGET_GRANTED);
    budget_ledger_close(b);
    close(fd);
}

/* As many values as anybody may choose leave room for a limit that is none's own. */
static void test_labels_share(void)
{
    struct budget own = {.key = 7, .n = 1, .limits = {{BUDGET_TOKENS, 3600, 100, false, "n"}}};
    char text[32];
    unsigned granted = 0, wholes = 0;
    int fd = memory();
    struct budget_ledger *b = book_of(fd);
    for (unsigned i = 0; i < 100000; i++) {
        snprintf(text, sizeof text, "n=%u", i);
        granted += call_with(b, &own, text, "a") == BUDGET_GRANTED;
    }
    CU_ASSERT(granted > 30000 && granted <= 8 * 4096);
    for (unsigned i = 0; i < 1000; i++) {
        snprintf(text, sizeof text, "whole-%u", i);
        wholes += call_of(b, text, false, 60, 0) == BUDGET_GRANTED;
    }
    CU_ASSERT_EQUAL(wholes, 1000);
    budget_ledger_close(b);
    close(fd);
}

/* What is no list of labels is none. */
static void test_labels_bad(void)
{
    static const struct {
        uint32_t n;
        const char *key[2];
        uint64_t number[2];
    } bad[] = {
        {2, {"a", "a"}, {1, 2}},
        {1, {"", NULL}, {1, 0}},
        {1, {"a", NULL}, {0, 0}},
        {2, {"a", NULL}, {1, 0}},
        {SANDBOX_LABELS_MAX + 1, {"a", "b"}, {1, 2}},
        {1, {"0123456789012345678901234567890123456789012345678901234567890123", NULL}, {1, 0}}};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct msg m;
        msg_init(&m, 0);
        msg_put_u32(&m, bad[i].n);
        for (size_t k = 0; k < 2 && bad[i].key[k]; k++) {
            msg_put_str(&m, bad[i].key[k]);
            msg_put_u64(&m, bad[i].number[k]);
        }
        CU_ASSERT_PTR_NULL(sandbox_labels_get(&m));
        msg_done(&m);
    }
    CU_ASSERT(sandbox_labels_number("a", "bc") != sandbox_labels_number("ab", "c"));
    CU_ASSERT(sandbox_labels_number("a", "b") != sandbox_labels_number("a", ""));
}

void tap_suites(void)
{
    CU_pSuite s = CU_add_suite("budget ledger", NULL, NULL);
    CU_add_test(s, "never more in any window", test_any_window);
    CU_add_test(s, "when to come again", test_retry);
    CU_add_test(s, "bytes", test_bytes);
    CU_add_test(s, "of a rule and of its policy", test_both);
    CU_add_test(s, "another dialer", test_again);
    CU_add_test(s, "no room", test_full);
    CU_add_test(s, "room for others", test_shares);
    CU_add_test(s, "of each value of a label", test_labels);
    CU_add_test(s, "as many values as there may be", test_labels_share);
    CU_add_test(s, "no labels", test_labels_bad);
}
