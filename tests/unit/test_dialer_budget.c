/* What the dialer grants of budgets, and to whom: channels that ask, give back, lie and die. */
#include "dialer_bed.h"
#include "mcp.h"
#include "policy.h"
#include "sandbox_labels.h"
#include "tap_main.h"

#include <stdio.h>
#include <string.h>

void suite_dialer_budget(void);

enum { UPLOAD = 65536, LEASES = 2048 };

struct answer {
    uint32_t id, retry;
    uint8_t end;
    uint64_t up, down;
};

struct world {
    struct bed bed;
    char *json;
    uint64_t few, bytes, calls, each, team; /* the keys of the rules' budgets */
    uint64_t mail, move;                    /* and of two tools' */
};

static void open_world(struct world *w)
{
    struct err err = {0};
    static const char text[] = "version: 1\n"
                               "policies:\n"
                               "  coder:\n"
                               "    budget: { requests: 9000/h }\n"
                               "    rules:\n"
                               "      - { allow: few.example, budget: { requests: 2/h } }\n"
                               "      - { allow: up.example, budget: { upload: 65536B/h } }\n"
                               "      - { allow: model.example, llm: openai,\n"
                               "          budget: { tokens: 10K/h } }\n"
                               "      - { allow: each.example, llm: openai,\n"
                               "          budget: { tokens: 150/h per sandbox } }\n"
                               "      - { allow: tools.example/mcp, mcp: { tools: [\n"
                               "          { name: mail, calls: 3/h },\n"
                               "          { name: move, calls: 2/h per sandbox }, read ] } }\n"
                               "      - { allow: team.example, llm: openai,\n"
                               "          budget: { tokens: 10K/h per label team } }\n";
    bed_open(&w->bed, "", 5, NULL, false);
    struct config *c = config_parse(slice_str(text), "test", &err);
    CU_ASSERT_PTR_NOT_NULL_FATAL(c);
    w->json = config_policy_json(c, "coder");
    config_unref(c);
    CU_ASSERT_PTR_NOT_NULL_FATAL(w->json);
    struct policy *p = policy_parse(w->json, strlen(w->json), &err);
    CU_ASSERT_PTR_NOT_NULL_FATAL(p);
    w->few = policy_rule(p, 0)->budget->key;
    w->bytes = policy_rule(p, 1)->budget->key;
    w->calls = policy_rule(p, 2)->budget->key;
    w->each = policy_rule(p, 3)->budget->key;
    w->team = policy_rule(p, 5)->budget->key;
    w->mail = policy_rule(p, 4)->inspection->mcp->tools[0].budget->key;
    w->move = policy_rule(p, 4)->inspection->mcp->tools[1].budget->key;
    policy_free(p);
}

static void close_world(struct world *w)
{
    bed_close(&w->bed);
    free(w->json);
}

static int gate(struct world *w, uint32_t number)
{
    return bed_peer_json(&w->bed, ROLE_GATE, number, "box-1", w->json);
}

struct ask {
    uint32_t id;
    uint64_t key;
    uint8_t request;
    uint64_t need;
    uint8_t up, down;
    uint64_t tokens, cost;
    const char *sandbox;
    uint64_t tool;
};

static void put_ask(struct msg *m, const struct ask *a)
{
    msg_init(m, W_BUDGET_ASK);
    msg_put_u32(m, a->id);
    msg_put_u64(m, a->key);
    msg_put_u8(m, a->request);
    msg_put_u64(m, a->need);
    msg_put_u8(m, a->up);
    msg_put_u8(m, a->down);
    msg_put_u64(m, a->tokens);
    msg_put_u64(m, a->cost);
    msg_put_str(m, a->sandbox ? a->sandbox : "");
    msg_put_u64(m, a->tool);
}

static bool answered(struct world *w, int fd, struct answer *a)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    struct msg m;
    memset(a, 0, sizeof *a);
    for (int i = 0; i < 2000 && poll(&p, 1, i > 0) == 0; i++)
        bed_turn(&w->bed, 0);
    if (msg_recv(fd, &m) != 1)
        return false;
    bool ok = m.type == W_BUDGET && msg_get_u32(&m, &a->id) == 0 && msg_get_u8(&m, &a->end) == 0 &&
              msg_get_u64(&m, &a->up) == 0 && msg_get_u64(&m, &a->down) == 0 &&
              msg_get_u32(&m, &a->retry) == 0 && msg_end(&m) == 0;
    msg_done(&m);
    return ok;
}

static struct answer asked(struct world *w, int fd, struct ask ask)
{
    struct answer a;
    struct msg m;
    put_ask(&m, &ask);
    bed_send(fd, &m);
    bool ok = answered(w, fd, &a);
    CU_ASSERT(ok);
    CU_ASSERT_EQUAL(a.id, ask.id);
    return a;
}

static void give_back(int fd, uint32_t id, uint64_t up, uint64_t down)
{
    struct msg m;
    msg_init(&m, W_BUDGET_BACK);
    msg_put_u32(&m, id);
    msg_put_u64(&m, up);
    msg_put_u64(&m, down);
    bed_send(fd, &m);
}

static void test_requests(void)
{
    struct world w;
    open_world(&w);
    int fd = gate(&w, 1), other = gate(&w, 2);
    struct answer a = asked(&w, fd, (struct ask){.id = 1, .key = w.few, .request = 1});
    CU_ASSERT_EQUAL(a.end, BUDGET_GRANTED);
    CU_ASSERT(a.up == UINT64_MAX && a.down == UINT64_MAX); /* nothing limits them */
    a = asked(&w, other, (struct ask){.id = 1, .key = w.few, .request = 1});
    CU_ASSERT_EQUAL(a.end, BUDGET_GRANTED);
    a = asked(&w, fd, (struct ask){.id = 2, .key = w.few, .request = 1}); /* of both together */
    CU_ASSERT_EQUAL(a.end, BUDGET_SPENT);
    CU_ASSERT(a.retry > 0 && a.retry <= 3600 + 57);
    a = asked(&w, fd, (struct ask){.id = 3, .key = 0, .request = 1}); /* the policy's has more */
    CU_ASSERT_EQUAL(a.end, BUDGET_GRANTED);
    a = asked(&w, fd, (struct ask){.id = 4, .key = w.few + 1, .request = 1});
    CU_ASSERT_EQUAL(a.end, BUDGET_UNKNOWN);
    CU_ASSERT(a.up == 0 && a.down == 0);
    close(other);
    close(fd);
    close_world(&w);
}

static void test_without(void)
{
    struct world w;
    open_world(&w);
    int fd = bed_peer(&w.bed, ROLE_GATE, 1, "box-1"); /* its policy has no budget at all */
    struct answer a = asked(&w, fd, (struct ask){.id = 1, .key = 0, .request = 1});
    CU_ASSERT_EQUAL(a.end, BUDGET_UNKNOWN);
    a = asked(&w, fd, (struct ask){.id = 1, .key = w.few, .request = 1});
    CU_ASSERT_EQUAL(a.end, BUDGET_UNKNOWN);
    close(fd);
    close_world(&w);
}

/* What comes back was given, comes once, and from whom it was given to. */
static void test_back(void)
{
    struct world w;
    struct answer a;
    open_world(&w);
    int fd = gate(&w, 1), other = gate(&w, 2);
    const struct ask all = {.id = 1, .key = w.bytes, .need = UPLOAD};
    a = asked(&w, fd, all);
    CU_ASSERT_EQUAL(a.end, BUDGET_GRANTED);
    CU_ASSERT_EQUAL(a.up, UPLOAD);
    a = asked(&w, other, all);
    CU_ASSERT_EQUAL(a.end, BUDGET_SPENT);
    give_back(other, 1, UPLOAD, 0); /* it was given nothing: nothing comes of it */
    a = asked(&w, other, all);
    CU_ASSERT_EQUAL(a.end, BUDGET_SPENT);
    give_back(fd, 1, UPLOAD, 0);
    a = asked(&w, fd, all);
    CU_ASSERT_EQUAL(a.end, BUDGET_GRANTED); /* it was free again */
    give_back(fd, 1, 1024, 0);
    give_back(fd, 1, UPLOAD - 1024, 0); /* once more: the rest was used */
    a = asked(&w, fd, (struct ask){.id = 2, .key = w.bytes, .need = 1025});
    CU_ASSERT_EQUAL(a.end, BUDGET_SPENT);
    a = asked(&w, fd, (struct ask){.id = 2, .key = w.bytes, .need = 1024});
    CU_ASSERT_EQUAL(a.end, BUDGET_GRANTED);
    a = asked(&w, fd, (struct ask){.id = 2, .key = w.few, .need = 1}); /* a number with two keys */
    CU_ASSERT_EQUAL(a.end, BUDGET_FULL);
    close(fd);
    bed_turn(&w.bed, 5); /* its death leaves them spent */
    a = asked(&w, other, (struct ask){.id = 9, .key = w.bytes, .need = 1});
    CU_ASSERT_EQUAL(a.end, BUDGET_SPENT);
    close(other);
    close_world(&w);
}

/* More than it was ever given, of either: that channel ends, and nothing came back. */
static void test_back_too_much(void)
{
    static const uint64_t more[][2] = {
        {UPLOAD + 1, 0}, {0, 1}, {UINT64_MAX, 0}, {UPLOAD, UINT64_MAX}};
    for (size_t i = 0; i < ARRAY_LEN(more); i++) {
        struct world w;
        open_world(&w);
        int fd = gate(&w, 1), other = gate(&w, 2);
        struct answer a = asked(&w, fd, (struct ask){.id = 1, .key = w.bytes, .need = UPLOAD});
        CU_ASSERT_EQUAL(a.end, BUDGET_GRANTED);
        give_back(fd, 1, more[i][0], more[i][1]);
        CU_ASSERT(bed_closed(&w.bed, fd));
        a = asked(&w, other, (struct ask){.id = 1, .key = w.bytes, .need = 1});
        CU_ASSERT_EQUAL(a.end, BUDGET_SPENT);
        close(other);
        close(fd);
        close_world(&w);
    }
}

/* What a channel may hold at once is bounded; what holds no bytes does not count. */
static void test_leases(void)
{
    struct world w;
    unsigned granted = 0;
    open_world(&w);
    int fd = gate(&w, 1);
    for (uint32_t i = 0; i < LEASES + 100; i++)
        granted += asked(&w, fd, (struct ask){.id = i, .request = 1}).end == BUDGET_GRANTED;
    CU_ASSERT_EQUAL(granted, LEASES + 100);
    granted = 0;
    for (uint32_t i = 0; i < LEASES; i++)
        granted +=
            asked(&w, fd, (struct ask){.id = i, .key = w.bytes, .need = 1}).end == BUDGET_GRANTED;
    CU_ASSERT_EQUAL(granted, LEASES);
    struct answer a = asked(&w, fd, (struct ask){.id = LEASES, .key = w.bytes, .need = 1});
    CU_ASSERT_EQUAL(a.end, BUDGET_FULL);
    give_back(fd, 7, 0, 0);
    a = asked(&w, fd, (struct ask){.id = LEASES, .key = w.bytes, .need = 1});
    CU_ASSERT_EQUAL(a.end, BUDGET_GRANTED);
    close(fd);
    close_world(&w);
}

/* ---- calls to models ---- */

static int injector(struct world *w, uint32_t number)
{
    return bed_peer_json(&w->bed, ROLE_INJECTOR, number, "", w->json);
}

static void settle(int fd, uint32_t id, uint64_t key, const char *sandbox, uint64_t asked,
                   uint64_t took)
{
    struct msg m;
    msg_init(&m, W_BUDGET_SETTLE);
    msg_put_u32(&m, id);
    msg_put_u64(&m, key);
    msg_put_str(&m, sandbox);
    msg_put_u64(&m, asked);
    msg_put_u64(&m, 0);
    msg_put_u64(&m, took);
    msg_put_u64(&m, 0);
    bed_send(fd, &m);
    give_back(fd, id, 0, 0);
}

/* 10,000 tokens an hour; each call is estimated at 1,000. */
static void test_calls(void)
{
    struct world w;
    open_world(&w);
    int fd = injector(&w, 1);
    unsigned granted = 0;
    struct ask ask = {.key = w.calls, .request = 1, .tokens = 1000, .sandbox = "a"};
    for (uint32_t id = 1; id <= 64; id++) {
        ask.id = id;
        granted += asked(&w, fd, ask).end == BUDGET_GRANTED;
    }
    CU_ASSERT_EQUAL(granted, 10); /* 64 at once */
    for (uint32_t id = 1; id <= 10; id++)
        settle(fd, id, w.calls, "a", 1000, id == 1 ? 1900 : 100);
    granted = 0;
    for (uint32_t id = 101; id <= 164; id++) {
        ask.id = id;
        granted += asked(&w, fd, ask).end == BUDGET_GRANTED;
    }
    CU_ASSERT_EQUAL(granted, 7); /* 1,900 and nine times 100 were taken */
    settle(fd, 101, w.calls, "a", 1000, 5000);
    ask.id = 200;
    ask.tokens = 1;
    CU_ASSERT_EQUAL(asked(&w, fd, ask).end, BUDGET_SPENT);
    close(fd);
    close_world(&w);
}

/* A call that a dialer before this one was asked for: only what is beyond its estimate counts, so
 * that nobody gives back what he was never charged. */
static void test_calls_of_before(void)
{
    struct world w;
    open_world(&w);
    int fd = injector(&w, 1);
    struct ask ask = {.id = 9, .key = w.calls, .tokens = 6000, .sandbox = "a"};
    CU_ASSERT_EQUAL(asked(&w, fd, ask).end, BUDGET_GRANTED);
    settle(fd, 5, w.calls, "a", 9000, 0);
    ask.id = 10;
    CU_ASSERT_EQUAL(asked(&w, fd, ask).end, BUDGET_SPENT);
    settle(fd, 6, w.calls, "a", 1000, 5000);
    ask.id = 11;
    ask.tokens = 1;
    CU_ASSERT_EQUAL(asked(&w, fd, ask).end, BUDGET_SPENT);
    close(fd);
    close_world(&w);
}

static void test_calls_of_sandboxes(void)
{
    struct world w;
    open_world(&w);
    int fd = injector(&w, 1);
    struct ask ask = {.id = 1, .key = w.each, .tokens = 100, .sandbox = "a"};
    CU_ASSERT_EQUAL(asked(&w, fd, ask).end, BUDGET_GRANTED);
    ask.id = 2;
    CU_ASSERT_EQUAL(asked(&w, fd, ask).end, BUDGET_SPENT);
    ask.id = 3;
    ask.sandbox = "b";
    CU_ASSERT_EQUAL(asked(&w, fd, ask).end, BUDGET_GRANTED);
    close(fd);
    close_world(&w);
}

static void label(struct world *w, uint16_t type, const char *sandbox, const char *team)
{
    struct msg m;
    msg_init(&m, type);
    msg_put_str(&m, sandbox);
    if (type == W_LABELS)
        msg_put_u32(&m, team ? 2 : 0);
    if (type == W_LABELS && team) {
        sandbox_labels_put_one(&m, "name", sandbox);
        sandbox_labels_put_one(&m, "team", team);
    }
    bed_send(w->bed.control, &m);
    bed_turn(&w->bed, 2);
}

static unsigned ask_64(struct world *w, int fd, uint32_t first, const char *const sandboxes[2])
{
    struct ask ask = {.key = w->team, .request = 1, .tokens = 1000};
    unsigned granted = 0;
    for (uint32_t i = 0; i < 64; i++) {
        ask.id = first + i;
        ask.sandbox = sandboxes[i % 2];
        granted += asked(w, fd, ask).end == BUDGET_GRANTED;
    }
    return granted;
}

/* 10,000 tokens an hour of each team: 64 calls at once by two of its sandboxes, and what they took
 * is settled in what their labels were then. */
static void test_calls_of_labels(void)
{
    static const char *const red[] = {"sb-a", "sb-b"}, *const blue[] = {"sb-c", "sb-d"},
                             *const none[] = {"sb-e", "rt-x"};
    struct world w;
    open_world(&w);
    int fd = injector(&w, 1), other = injector(&w, 2);
    for (int i = 0; i < 2; i++) {
        label(&w, W_LABELS, red[i], "red");
        label(&w, W_LABELS, blue[i], "blue");
    }
    label(&w, W_LABELS, none[0], NULL);
    CU_ASSERT_EQUAL(ask_64(&w, fd, 1, red), 10);
    CU_ASSERT_EQUAL(ask_64(&w, other, 1, blue), 10); /* by another injector of the policy */
    CU_ASSERT_EQUAL(ask_64(&w, fd, 101, none), 10);  /* all without the label are one */
    label(&w, W_LABELS, "sb-a", "blue");
    for (uint32_t id = 1; id <= 10; id++)
        settle(fd, id, w.team, id % 2 ? "sb-a" : "sb-b", 1000, 100);
    CU_ASSERT_EQUAL(ask_64(&w, fd, 201, blue), 0); /* nothing came back to where it now is */
    label(&w, W_LABELS, "sb-a", "red");
    CU_ASSERT_EQUAL(ask_64(&w, fd, 301, red), 9);
    close(other);
    close(fd);
    close_world(&w);
}

/* Before the parent has said its labels, and when it is gone, a local sandbox has no part of any.
 */
static void test_labels_unknown(void)
{
    static const char *const both[] = {"sb-a", "sb-a"};
    struct world w;
    open_world(&w);
    int fd = injector(&w, 1);
    struct ask ask = {.id = 1, .key = w.team, .tokens = 1, .sandbox = "sb-a"};
    CU_ASSERT_EQUAL(asked(&w, fd, ask).end, BUDGET_UNKNOWN);
    ask.id = 2;
    ask.key = w.each; /* nothing goes by a label there */
    CU_ASSERT_EQUAL(asked(&w, fd, ask).end, BUDGET_GRANTED);
    label(&w, W_LABELS, "sb-a", "red");
    CU_ASSERT_EQUAL(ask_64(&w, fd, 100, both), 10);
    label(&w, W_SANDBOX_GONE, "sb-a", NULL);
    for (uint32_t id = 100; id < 110; id++) /* its calls that go on are settled in its team's */
        settle(fd, id, w.team, "sb-a", 1000, 500);
    ask.id = 3;
    ask.key = w.team;
    CU_ASSERT_EQUAL(asked(&w, fd, ask).end, BUDGET_UNKNOWN);
    label(&w, W_LABELS, "sb-a", "red");
    CU_ASSERT_EQUAL(ask_64(&w, fd, 400, both), 5);
    close(fd);
    close_world(&w);
}

/* Only the parent says labels: a channel that does is ended, and nothing of it holds. */
static void test_labels_by_others(void)
{
    static const uint16_t types[] = {W_LABELS, W_SANDBOX_GONE};
    struct world w;
    open_world(&w);
    int third = injector(&w, 9);
    label(&w, W_LABELS, "sb-a", "red");
    for (uint32_t i = 0; i < 4; i++) {
        int fd = i < 2 ? gate(&w, 20 + i) : injector(&w, 20 + i);
        struct msg m;
        msg_init(&m, types[i % 2]);
        msg_put_str(&m, "sb-a");
        if (types[i % 2] == W_LABELS)
            msg_put_u32(&m, 0);
        bed_send(fd, &m);
        CU_ASSERT(bed_closed(&w.bed, fd));
        close(fd);
    }
    struct ask ask = {.id = 1, .key = w.team, .tokens = 10000, .sandbox = "sb-a"};
    CU_ASSERT_EQUAL(asked(&w, third, ask).end, BUDGET_GRANTED);
    label(&w, W_LABELS, "sb-b", "red");
    ask = (struct ask){.id = 2, .key = w.team, .tokens = 1, .sandbox = "sb-b"};
    CU_ASSERT_EQUAL(asked(&w, third, ask).end, BUDGET_SPENT);
    close(third);
    close_world(&w);
}

/* Tools of MCP: each has its own count, of all sandboxes or of each, and one call takes of the
 * policy's budget too. */
static void test_calls_of_tools(void)
{
    struct world w;
    unsigned granted = 0;
    open_world(&w);
    CU_ASSERT(w.mail != w.move);
    int fd = injector(&w, 1);
    struct ask ask = {.request = 1, .tool = w.mail, .sandbox = "a"};
    for (uint32_t id = 1; id <= 64; id++) { /* 64 at once */
        ask.id = id;
        ask.sandbox = id % 2 ? "a" : "b";
        struct answer a = asked(&w, fd, ask);
        granted += a.end == BUDGET_GRANTED;
        CU_ASSERT(a.end == BUDGET_GRANTED || (a.end == BUDGET_SPENT_TOOL && a.retry > 0));
    }
    CU_ASSERT_EQUAL(granted, 3);
    granted = 0;
    ask.tool = w.move;
    for (uint32_t id = 101; id <= 106; id++) {
        ask.id = id;
        ask.sandbox = id % 2 ? "a" : "b";
        granted += asked(&w, fd, ask).end == BUDGET_GRANTED;
    }
    CU_ASSERT_EQUAL(granted, 4);
    ask.id = 200;
    ask.tool = w.mail + 1;
    CU_ASSERT_EQUAL(asked(&w, fd, ask).end, BUDGET_UNKNOWN);
    /* a tool's is not spent by who says that it is the rule's, nor the other way round */
    ask = (struct ask){.id = 300, .request = 1, .key = w.move, .sandbox = "a"};
    CU_ASSERT_EQUAL(asked(&w, fd, ask).end, BUDGET_UNKNOWN);
    give_back(fd, 1, 0, 0); /* the call is over: it was one */
    ask = (struct ask){.id = 201, .request = 1, .tool = w.mail, .sandbox = "a"};
    CU_ASSERT_EQUAL(asked(&w, fd, ask).end, BUDGET_SPENT_TOOL);
    close(fd);
    close_world(&w);
}

/* A gate neither spends tokens nor gives any back, and calls no tool. */
static void test_calls_of_gates(void)
{
    struct world w;
    open_world(&w);
    struct ask bad[] = {{.id = 1, .key = w.calls, .tokens = 1},
                        {.id = 1, .key = w.calls, .cost = 1},
                        {.id = 1, .key = w.calls, .sandbox = "a"},
                        {.id = 1, .tool = w.mail}};
    for (uint32_t i = 0; i <= ARRAY_LEN(bad); i++) {
        int fd = gate(&w, 20 + i);
        struct msg m;
        if (i < ARRAY_LEN(bad)) {
            put_ask(&m, &bad[i]);
            bed_send(fd, &m);
        } else {
            settle(fd, 1, w.calls, "a", 1000, 0);
        }
        CU_ASSERT(bed_closed(&w.bed, fd));
        close(fd);
    }
    int fd = injector(&w, 30);
    struct ask nobody = {.id = 1, .key = w.calls, .tokens = 1};
    struct msg m;
    put_ask(&m, &nobody);
    bed_send(fd, &m);
    CU_ASSERT(bed_closed(&w.bed, fd));
    close(fd);
    close_world(&w);
}

static void test_bad_messages(void)
{
    struct world w;
    open_world(&w);
    for (int kind = 0; kind < 7; kind++) {
        int fd = gate(&w, 10 + (uint32_t)kind);
        struct ask a = {.id = 1,
                        .request = kind == 0 ? 2 : 0,
                        .up = kind == 1 ? 2 : 0,
                        .down = kind == 2 ? 2 : 0};
        struct msg m;
        if (kind < 4) {
            put_ask(&m, &a);
            if (kind == 3)
                msg_put_u8(&m, 0); /* a byte after it */
        } else if (kind == 4) {
            msg_init(&m, W_BUDGET_ASK);
            msg_put_u32(&m, 1);
        } else {
            msg_init(&m, W_BUDGET_BACK);
            msg_put_u32(&m, 1);
            msg_put_u64(&m, 0);
            if (kind == 6) {
                msg_put_u64(&m, 0);
                msg_put_u8(&m, 0);
            }
        }
        bed_send(fd, &m);
        CU_ASSERT(bed_closed(&w.bed, fd));
        close(fd);
    }
    close_world(&w);
}

void suite_dialer_budget(void)
{
    CU_pSuite s = CU_add_suite("dialer_budget", NULL, NULL);
    CU_add_test(s, "requests, of all channels together", test_requests);
    CU_add_test(s, "a policy without budgets", test_without);
    CU_add_test(s, "bytes that come back", test_back);
    CU_add_test(s, "calls of tools", test_calls_of_tools);
    CU_add_test(s, "more than was given", test_back_too_much);
    CU_add_test(s, "how much a channel may hold", test_leases);
    CU_add_test(s, "tokens of calls, 64 at once", test_calls);
    CU_add_test(s, "tokens of calls that another dialer knew", test_calls_of_before);
    CU_add_test(s, "tokens of each sandbox", test_calls_of_sandboxes);
    CU_add_test(s, "tokens, by gates", test_calls_of_gates);
    CU_add_test(s, "tokens of each value of a label", test_calls_of_labels);
    CU_add_test(s, "labels that are not known", test_labels_unknown);
    CU_add_test(s, "labels by others than the parent", test_labels_by_others);
    CU_add_test(s, "bad messages", test_bad_messages);
}

void tap_suites(void)
{
    suite_dialer_budget();
}
