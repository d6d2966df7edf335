/* What a refusal says, and in which form. */
#include "answer.h"
#include "answer_words.h"
#include "http1_head.h"
#include "mcp_error.h"
#include "tap_main.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void suite_answer(void);

static const struct limits limits = {.head_bytes = 32768, .headers = 100, .target_bytes = 8192};

static void head_of(struct head *h, const char *fields)
{
    char text[1024];
    struct refusal why;
    snprintf(text, sizeof text, "POST / HTTP/1.1\r\nHost: a\r\n%s\r\n", fields);
    CU_ASSERT_EQUAL_FATAL(http1_parse_request(h, slice_str(text), &limits, &why), 0);
}

static enum answer_form form(const char *fields, bool framed)
{
    struct head h;
    head_of(&h, fields);
    struct answer_how how = answer_how(&h, framed);
    http_head_free(&h);
    CU_ASSERT_STRING_EQUAL(how.rpc_id, "");
    return how.form;
}

static void test_forms(void)
{
    static const struct {
        const char *fields;
        enum answer_form form;
    } rows[] = {
        {"", ANSWER_TEXT},
        {"Accept: */*\r\n", ANSWER_TEXT},
        {"Accept: */*\r\nUser-Agent: git/2.39\r\n", ANSWER_TEXT},
        {"Accept: */*\r\nContent-Type: application/json; charset=utf-8\r\n", ANSWER_JSON},
        {"Content-Type: application/x-amz-json-1.1\r\n", ANSWER_JSON},
        {"Content-Type: application/x-www-form-urlencoded\r\n", ANSWER_TEXT},
        {"Accept: application/json\r\n", ANSWER_JSON},
        {"Accept: application/json, text/event-stream\r\nContent-Type: application/json\r\n",
         ANSWER_RPC},
        {"Mcp-Protocol-Version: 2025-11-25\r\nContent-Type: application/json\r\n", ANSWER_RPC},
        {"Accept: application/json\r\nContent-Type: application/json\r\n", ANSWER_JSON},
        {"Accept: APPLICATION/vnd.github+JSON\r\n", ANSWER_JSON},
        {"Accept: application/json, text/event-stream\r\n", ANSWER_JSON},
        {"Accept: application/problem+json, application/json;q=0.9\r\n", ANSWER_PROBLEM},
        {"Accept: application/json, application/problem+json;q=0.9\r\n", ANSWER_JSON},
        {"Accept: application/json;q=0, text/html;q=0.01\r\n", ANSWER_HTML},
        {"Accept: application/json;q=0.25, text/html;q=0.3\r\n", ANSWER_HTML},
        {"Accept: text/plain, application/json;q=0.9\r\n", ANSWER_TEXT},
        {"Accept: text/plain\r\nContent-Type: application/json\r\n", ANSWER_TEXT},
        {"Accept: text/html,application/xhtml+xml,application/xml;q=0.9,image/webp,*/*;q=0.8\r\n",
         ANSWER_HTML},
        {"Accept: image/avif,image/webp,*/*\r\n", ANSWER_TEXT},
        {"Accept: application/vnd.npm.install-v1+json; q=1.0, application/json; q=0.8, */*\r\n",
         ANSWER_NPM},
        {"Npm-Command: install\r\nAccept: */*\r\n", ANSWER_NPM},
        {"Accept: application/vnd.oci.image.index.v1+json\r\n", ANSWER_REGISTRY},
        {"Accept: ,;,;;q=,q=1;, ;q=0.9\r\n", ANSWER_TEXT},
        {"Content-Type: application/grpc-web+proto\r\n", ANSWER_GRPC_WEB},
        {"Content-Type: application/grpc\r\n", ANSWER_TEXT}, /* HTTP/1 cannot carry it */
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (form(rows[i].fields, false) != rows[i].form) {
            printf("# %s\n", rows[i].fields);
            CU_FAIL("another form");
        }
    CU_ASSERT_EQUAL(form("Content-Type: application/grpc+proto\r\n", true), ANSWER_GRPC);
    CU_ASSERT_EQUAL(form("Accept: application/json\r\n", true), ANSWER_JSON);
}

static struct answer made(enum answer_form f, unsigned status, const char *code, const char *rpc)
{
    struct answer a;
    struct answer_how how = {f, ""};
    if (f == ANSWER_RPC)
        answer_rpc(&how, rpc);
    answer_make(&a, &how, status, code, "7-12", 0);
    CU_ASSERT(a.n < sizeof a.body && strlen(a.body) == a.n);
    return a;
}

static const char *text_at(json_t *root, const char *a, const char *b)
{
    json_t *v = json_object_get(root, a);
    const char *s = json_string_value(b ? json_object_get(v, b) : v);
    return s ? s : "";
}

static void test_json(void)
{
    struct answer a = made(ANSWER_JSON, 403, "no_rule", NULL);
    json_t *root = json_loads(a.body, JSON_REJECT_DUPLICATES, NULL);
    CU_ASSERT_PTR_NOT_NULL_FATAL(root);
    CU_ASSERT_STRING_EQUAL(text_at(root, "message", NULL), text_at(root, "error", "message"));
    CU_ASSERT_PTR_EQUAL(strstr(text_at(root, "message", NULL), "Durward denied"),
                        text_at(root, "message", NULL));
    CU_ASSERT_STRING_EQUAL(text_at(root, "error", "type"), "durward_denied");
    CU_ASSERT_STRING_EQUAL(text_at(root, "error", "code"), "no_rule");
    CU_ASSERT_STRING_EQUAL(text_at(root, "error", "id"), "7-12");
    CU_ASSERT_STRING_EQUAL(a.type, "application/json");
    json_decref(root);
    a = made(ANSWER_NPM, 403, "no_rule", NULL);
    root = json_loads(a.body, JSON_REJECT_DUPLICATES, NULL);
    CU_ASSERT_PTR_NOT_NULL(strstr(text_at(root, "error", NULL), "(no_rule 7-12)"));
    json_decref(root);
    a = made(ANSWER_PROBLEM, 403, "no_rule", NULL);
    root = json_loads(a.body, JSON_REJECT_DUPLICATES, NULL);
    CU_ASSERT_STRING_EQUAL(text_at(root, "type", NULL), "urn:durward:denied:no_rule");
    CU_ASSERT_EQUAL(json_integer_value(json_object_get(root, "status")), 403);
    CU_ASSERT_STRING_EQUAL(a.type, "application/problem+json");
    json_decref(root);
}

/* id: a number that is copied, or null. */
static void test_rpc(void)
{
    static const struct {
        const char *id;
        json_int_t number; /* -1: null */
    } rows[] = {{"7", 7}, {"0", 0},   {"9007199254740992", 9007199254740992},
                {"", -1}, {"-1", -1}, {"1,\"x\":2", -1}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct answer a = made(ANSWER_RPC, 403, "mcp", rows[i].id);
        json_t *root = json_loads(a.body, JSON_REJECT_DUPLICATES, NULL);
        CU_ASSERT_PTR_NOT_NULL_FATAL(root);
        json_t *id = json_object_get(root, "id");
        CU_ASSERT(rows[i].number < 0 ? json_is_null(id) : json_integer_value(id) == rows[i].number);
        CU_ASSERT_STRING_EQUAL(text_at(root, "jsonrpc", NULL), "2.0");
        json_int_t code =
            json_integer_value(json_object_get(json_object_get(root, "error"), "code"));
        CU_ASSERT_EQUAL(code, MCP_ERROR_REFUSED);
        CU_ASSERT(code > -32000 || code < -32768); /* those that JSON-RPC and MCP keep */
        CU_ASSERT_EQUAL(a.status, 403);
        json_decref(root);
    }
}

static void test_grpc(void)
{
    struct answer a = made(ANSWER_GRPC, 403, "no_rule", NULL);
    CU_ASSERT(a.status == 200 && a.n == 0);
    CU_ASSERT_STRING_EQUAL(a.grpc_status, "7");
    CU_ASSERT_STRING_EQUAL(a.type, "application/grpc");
    CU_ASSERT_PTR_NOT_NULL(strstr(a.grpc_message, "Durward denied"));
    CU_ASSERT_PTR_NULL(strchr(a.grpc_message, '%')); /* it needs no escapes */
    a = made(ANSWER_GRPC, 503, "overload", NULL);
    CU_ASSERT_STRING_EQUAL(a.grpc_status, "14");
    CU_ASSERT_EQUAL(a.retry, 2);
    a = made(ANSWER_GRPC, 407, "token_missing", NULL);
    CU_ASSERT_STRING_EQUAL(a.grpc_status, "16");
}

/* "denied" is what policy denied, "failed" what the origin or we could not do. */
static void test_classes(void)
{
    static const struct {
        unsigned status;
        const char *code, *error;
    } rows[] = {
        {403, "no_rule", "denied no_rule"},
        {403, "denied", "denied denied"},
        {429, "budget", "denied budget"},
        {405, "method", "refused method"},
        {403, "method", "denied method"},
        {400, "framing", "refused framing"},
        {408, "timeout", "refused timeout"},
        {504, "timeout", "failed timeout"},
        {502, "connect", "failed connect"},
        {503, "overload", "failed overload"},
        {501, "upgrade", "refused upgrade"},
        {502, "transfer_coding", "failed transfer_coding"},
        {403, "unheard_of", "denied unheard_of"},
        {400, "unheard_of", "refused unheard_of"},
        {502, "unheard_of", "failed unheard_of"},
        {403, "a\"b", "denied -"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct answer a = made(ANSWER_TEXT, rows[i].status, rows[i].code, NULL);
        CU_ASSERT_STRING_EQUAL(a.error, rows[i].error);
        CU_ASSERT_PTR_NULL(strchr(a.reason, '\n'));
        CU_ASSERT_EQUAL(a.retry > 0, rows[i].status == 503);
    }
}

/* Each code in the table of SPECIFICATION.md has a sentence of its own, in every form. */
static unsigned row_of(char *line)
{
    unsigned status = 0, n = 0;
    char *codes = strchr(line + 1, '|'), *end = codes ? strchr(codes + 1, '|') : NULL;
    if (sscanf(line, "| %u", &status) != 1 || status < 400 || end == NULL)
        return 0;
    *end = 0;
    for (char *at = strchr(codes, '`'); at; at = strchr(at, '`')) {
        size_t k = strcspn(at + 1, "`");
        char code[64];
        snprintf(code, sizeof code, "%.*s", (int)k, at + 1);
        at += k + 2;
        if (answer_words(status, code)->code[0] == 0) {
            printf("# %u %s has no sentence\n", status, code);
            CU_FAIL("a code without a sentence");
        }
        for (int f = ANSWER_TEXT; f <= ANSWER_GRPC_WEB; f++)
            made((enum answer_form)f, status, code, "1");
        n++;
    }
    return n;
}

static void test_specified(void)
{
    char path[512], line[2048];
    const char *src = getenv("srcdir");
    snprintf(path, sizeof path, "%s/SPECIFICATION.md", src ? src : ".");
    FILE *f = fopen(path, "re");
    CU_ASSERT_PTR_NOT_NULL_FATAL(f);
    unsigned n = 0;
    bool inside = false;
    while (fgets(line, sizeof line, f)) {
        if (strncmp(line, "## ", 3) == 0)
            inside = strncmp(line, "## The form of a refusal", 24) == 0;
        if (inside && line[0] == '|')
            n += row_of(line);
    }
    fclose(f);
    CU_ASSERT(n > 80);
}

void suite_answer(void)
{
    CU_pSuite s = CU_add_suite("answer", NULL, NULL);
    CU_add_test(s, "the form that the request asks for", test_forms);
    CU_add_test(s, "JSON as SDKs, npm and problem+json have it", test_json);
    CU_add_test(s, "JSON-RPC copies a number and nothing else", test_rpc);
    CU_add_test(s, "gRPC has a status of its own", test_grpc);
    CU_add_test(s, "denied, refused and failed", test_classes);
    CU_add_test(s, "every code of the specification has a sentence", test_specified);
}

void tap_suites(void)
{
    suite_answer();
}
