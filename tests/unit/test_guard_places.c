/* Placeholders in other places than the slot's field: query, cookie, path, marks, trailers. */
#include "guard_bed.h"

void suite_guard_places(void);

/* Slots that are no header field (C9): where the placeholder may be, how often, and what is left.
 */
static const struct {
    size_t rule;
    const char *target, *fields, *want; /* M: mine, O: of another slot, S: a stranger's */
    const char *left;                   /* of the query; NULL: not looked at */
} places[] = {
    {R_QUERY, "/", "", "ok", ""},
    {R_QUERY, "/?a=1&api_key=M&b=2", "", "ok", "a=1&b=2"},
    {R_QUERY, "/?API%5FKEY=M", "", "ok", ""},
    {R_QUERY, "/?api_key=xM", "", "secret_blocked", NULL},
    {R_QUERY, "/?api_key=O", "", "secret_blocked", NULL},
    {R_QUERY, "/?api_key=S", "", "cross_sandbox", NULL},
    {R_QUERY, "/?api_key=mine", "", "foreign_credential", NULL},
    {R_QUERY, "/?api_key=M&api_key=M", "", "foreign_credential", NULL},
    {R_QUERY, "/?api_key=M;api_key=x", "", "foreign_credential", NULL},
    {R_QUERY, "/?b=M", "", "secret_blocked", NULL},
    {R_QUERY, "/", "X-Api-Key: M\r\n", "secret_blocked", NULL},
    {R_QUERY, "/", "Authorization: x\r\n", "foreign_credential", NULL},
    {R_QUERY, "/?access_token=x", "", "foreign_credential", NULL},
    {R_QUERY_PASS, "/?api_key=mine", "", "pass", "api_key=mine"},
    {R_QUERY_PASS, "/?api_key=M", "", "ok", ""},
    {R_COOKIE, "/", "Cookie: a=1; sid=M; b=2\r\n", "ok", NULL},
    {R_COOKIE, "/", "Cookie: a=1\r\nCookie: sid=S\r\n", "cross_sandbox", NULL},
    {R_COOKIE, "/", "Cookie: sid=mine\r\n", "foreign_credential", NULL},
    {R_COOKIE, "/", "Cookie: a=M\r\n", "secret_blocked", NULL},
    {R_PATH, "/botM/send", "", "ok", NULL},
    {R_PATH, "/bot/send", "", "placeholder_count", NULL},
    {R_PATH, "/M/M", "", "placeholder_count", NULL},
    {R_PATH, "/O", "", "secret_blocked", NULL},
    {R_PATH, "/S", "", "cross_sandbox", NULL},
    {R_PATH, "/M?q=M", "", "secret_blocked", NULL},
    {R_PATH, "/M", "X-A: M\r\n", "secret_blocked", NULL},
    {R_PATH, "/M", "Authorization: Bearer M\r\n", "secret_blocked", NULL},
    {R_MARK, "/?x-tok=M", "X-Tok: a M\r\n", "ok", NULL},
    {R_MARK, "/?X-Tok=M,M", "", "ok", NULL},
    {R_MARK, "/?x-tok=M", "", "placeholder_count", NULL},
    {R_MARK, "/?x-tok=M&other=M", "", "secret_blocked", NULL},
    {R_MARK, "/?x-tok=M", "X-Tok: mine\r\n", "foreign_credential", NULL},
    {R_MARK, "/?x-tok=mine", "X-Tok: M M\r\n", "foreign_credential", NULL},
    {R_MARK, "/M", "X-Tok: M\r\n", "secret_blocked", NULL},
};

static void test_places(void)
{
    for (size_t i = 0; i < ARRAY_LEN(places); i++) {
        char said[2][1200];
        const char *from[2] = {places[i].target, places[i].fields};
        struct head h;
        for (int k = 0; k < 2; k++) {
            char *to = said[k];
            for (const char *p = from[k]; *p; p++) {
                const char *word = *p == 'M' ? mine : *p == 'O' ? other_slot : stranger;
                bool is_word = *p == 'M' || *p == 'O' || *p == 'S';
                to += snprintf(to, sizeof said[k] - (size_t)(to - said[k]), "%.*s",
                               is_word ? PLACEHOLDER_MAX : 1, is_word ? word : p);
            }
            *to = 0;
        }
        const char *got = judge(places[i].rule, said[0], said[1], &h);
        if (strcmp(got, places[i].want) != 0)
            printf("# row %zu: %s, wanted %s\n", i, got, places[i].want);
        CU_ASSERT_STRING_EQUAL(got, places[i].want);
        if (places[i].left) {
            CU_ASSERT(slice_eq_str(h.query, places[i].left));
            CU_ASSERT_EQUAL(h.has_query, places[i].left[0] != 0);
        }
        if (i == 15)
            CU_ASSERT(slice_eq(http_head_find(&h, "cookie")->value, SLICE("a=1; b=2")));
        http_head_free(&h);
    }
    struct injector_channel_marks marks;
    struct injector_channel_blanks blanks;
    guard_marks(&gate, &who, rule(R_PATH), true, &marks, &blanks);
    CU_ASSERT_EQUAL_FATAL(marks.n, 1);
    CU_ASSERT_STRING_EQUAL(marks.text[0], mine);
    guard_marks(&gate, &who, rule(R_QUERY), true, &marks, &blanks);
    CU_ASSERT_EQUAL(marks.n, 0);
    guard_marks(&gate, &who, rule(R_PATH), false, &marks, &blanks);
    CU_ASSERT(marks.n == 0 && blanks.n == 0);
}

static const char *trailer_code(const char *name, const char *value)
{
    struct head h;
    http_head_init(&h);
    CU_ASSERT_EQUAL(http_head_add(&h, name, slice_str(value)), 0);
    const struct refusal *why = guard_request_trailers(&gate, &who, &h);
    http_head_free(&h);
    return why ? why->code : "none";
}

static void test_trailers(void)
{
    struct head h;
    CU_ASSERT_STRING_EQUAL(trailer_code("x-checksum", "1"), "none");
    CU_ASSERT_STRING_EQUAL(trailer_code("authorization", "Bearer x"), "trailer");
    CU_ASSERT_STRING_EQUAL(trailer_code("content_length", "1"), "trailer");
    CU_ASSERT_STRING_EQUAL(trailer_code("host", "a.example"), "trailer");
    CU_ASSERT_STRING_EQUAL(trailer_code("cookie", "a=b"), "trailer");
    CU_ASSERT_STRING_EQUAL(trailer_code("x-checksum", mine), "secret_blocked");
    CU_ASSERT_STRING_EQUAL(trailer_code("x-checksum", stranger), "cross_sandbox");
    http_head_init(&h);
    CU_ASSERT_EQUAL(http_head_add(&h, "grpc-status", SLICE("0")), 0);
    CU_ASSERT_EQUAL(http_head_add(&h, "transfer-encoding", SLICE("chunked")), 0);
    CU_ASSERT_EQUAL(http_head_add(&h, "set-cookie", SLICE("a=b")), 0);
    guard_clean_trailers(&h);
    CU_ASSERT(h.n == 1 && http_head_find(&h, "grpc-status"));
    http_head_free(&h);
}

void suite_guard_places(void)
{
    CU_pSuite s = CU_add_suite("guard_places", setup, teardown);
    CU_add_test(s, "trailers (B14)", test_trailers);
    CU_add_test(s, "slots that are no header field (C9)", test_places);
}

void tap_suites(void)
{
    suite_guard_places();
}
