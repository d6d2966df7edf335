/* Where messages end in a body of gRPC, whatever its pieces, and which bodies have such messages.
 */
#include <CUnit/CUnit.h>
#include <stdio.h>
#include <string.h>

#include "grpc_message.h"
#include "tap_main.h"

void suite_grpc_message(void);

static bool has(const char *type, bool (*is)(const struct head *h))
{
    struct head h;
    http_head_init(&h);
    if (type)
        CU_ASSERT_EQUAL(http_head_add(&h, "content-type", slice_str(type)), 0);
    bool r = is(&h);
    http_head_free(&h);
    return r;
}

static void test_types(void)
{
    static const struct {
        const char *type;
        bool grpc, messages;
    } rows[] = {
        {"application/grpc", true, true},
        {"Application/gRPC+proto", true, true},
        {"application/grpc; x=y", true, true},
        {"application/grpc ;x", true, true},
        {"application/grpc-web", false, true},
        {"application/grpc-web+proto", false, true},
        {"application/connect+json", false, true},
        {"application/connect", false, true},
        {"application/grpcx", false, false},
        {"application/grp", false, false},
        {"application/json", false, false},
        {"x application/grpc", false, false},
        {"", false, false},
        {NULL, false, false},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        bool grpc = has(rows[i].type, grpc_is), messages = has(rows[i].type, grpc_has_messages);
        if (grpc != rows[i].grpc || messages != rows[i].messages)
            printf("# %s: %d %d\n", rows[i].type ? rows[i].type : "none", grpc, messages);
        CU_ASSERT(grpc == rows[i].grpc && messages == rows[i].messages);
    }
}

/* Three messages, of 3, 0 and 300 bytes; what they hold looks like prefixes. */
static void test_ends(void)
{
    unsigned char text[5 + 3 + 5 + 5 + 300] = {0, 0, 0, 0, 3, 0, 0, 0, 1,
                                               0, 0, 0, 0, 0, 0, 0, 1, 44};
    bool end[sizeof text + 1] = {0};
    end[0] = end[8] = end[13] = end[sizeof text] = true;
    for (size_t cut = 0; cut <= sizeof text; cut++) {
        struct grpc_message m = {.n = 0};
        struct slice first = {(char *)text, cut}, rest = {(char *)text + cut, sizeof text - cut};
        CU_ASSERT_EQUAL(grpc_message_over(&m, first), end[cut]);
        CU_ASSERT_TRUE(grpc_message_over(&m, rest));
        CU_ASSERT_TRUE(grpc_message_over(&m, (struct slice){"", 0}));
    }
    struct grpc_message m = {.n = 0};
    for (size_t i = 0; i < sizeof text; i++)
        CU_ASSERT_EQUAL(grpc_message_over(&m, (struct slice){(char *)text + i, 1}), end[i + 1]);
    CU_ASSERT_FALSE(grpc_message_over(&m, SLICE("\1\xff\xff\xff\xff"))); /* the longest */
    CU_ASSERT_EQUAL(m.left, UINT32_MAX);
    CU_ASSERT_FALSE(grpc_message_over(&m, SLICE("some of it")));
}

void suite_grpc_message(void)
{
    CU_pSuite s = CU_add_suite("grpc_message", NULL, NULL);
    CU_add_test(s, "types of bodies", test_types);
    CU_add_test(s, "ends of messages", test_ends);
}

void tap_suites(void)
{
    suite_grpc_message();
}
