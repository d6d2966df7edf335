/* What a request of the API asks for: targets in parts, bodies that are read strictly. */
#include <CUnit/CUnit.h>
#include <event2/buffer.h>
#include <event2/http.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api_asked.h"
#include "tap_main.h"

void suite_api_asked(void);

static struct err err;

static void good(struct asked *q, const char *uri)
{
    CU_ASSERT_EQUAL_FATAL(asked_read(q, uri, &err), 0);
}

static void test_targets(void)
{
    static const char *const bad[] = {"",       "x",       "*",        "http://a/", "/a#b",    "#",
                                      "/a?b=%", "/a?b=%4", "/a?b=%zz", "/a?b=%00",  "/a?%00=b"};
    struct asked q;
    char text[700];
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        int r = asked_read(&q, bad[i], &err);
        if (r == 0)
            printf("# %s is taken\n", bad[i]);
        CU_ASSERT_EQUAL(r, -1);
        asked_done(&q);
    }
    text[0] = '/';
    memset(text + 1, 'a', ASKED_PATH_MAX);
    text[ASKED_PATH_MAX] = 0;
    CU_ASSERT_EQUAL(asked_read(&q, text, &err), -1);
    asked_done(&q);
    text[ASKED_PATH_MAX - 1] = 0;
    good(&q, text);
    asked_done(&q);
    size_t n = (size_t)snprintf(text, sizeof text, "/a?");
    for (unsigned i = 0; i <= ASKED_PARAMS; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "p%u=1&", i);
    CU_ASSERT_EQUAL(asked_read(&q, text, &err), -1); /* too many */
    CU_ASSERT(q.n_params <= ASKED_PARAMS);
    asked_done(&q);
    good(&q, "/a?label=x%3Dy&label=z&n=7&e=&f%20g=%2b");
    CU_ASSERT_STRING_EQUAL(asked_param(&q, "label"), "x=y");
    CU_ASSERT_STRING_EQUAL(asked_param(&q, "e"), "");
    CU_ASSERT_STRING_EQUAL(asked_param(&q, "f g"), "+");
    CU_ASSERT_PTR_NULL(asked_param(&q, "abe"));
    CU_ASSERT_EQUAL(asked_only(&q, "n label e", &err), -1);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "unknown parameter 'f g'"));
    asked_done(&q);
    good(&q, "/a?label=x&label=z&n=7");
    CU_ASSERT_EQUAL(asked_only(&q, "n label", &err), 0);
    CU_ASSERT_EQUAL(asked_only(&q, "nn labels n labe", &err), -1);
    CU_ASSERT_EQUAL(asked_only(&q, "", &err), -1);
    asked_done(&q);
    good(&q, "/a?n=7&n=7");
    CU_ASSERT_EQUAL(asked_only(&q, "n", &err), -1);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "comes twice"));
    asked_done(&q);
}

static bool fits(const char *uri, const char *pattern, const char *first)
{
    struct asked q;
    good(&q, uri);
    bool r = asked_fits(&q, pattern);
    CU_ASSERT(!r || first == NULL || strcmp(q.args[0], first) == 0);
    asked_done(&q);
    return r;
}

static void test_patterns(void)
{
    char uri[100] = "/v1/s/";
    CU_ASSERT_TRUE(fits("/v1/s", "/v1/s", NULL));
    CU_ASSERT_TRUE(fits("/v1/s/a-1?x=/", "/v1/s/{}", "a-1"));
    CU_ASSERT_TRUE(fits("/v1/s/a/e/b", "/v1/s/{}/e/{}", "a"));
    CU_ASSERT_FALSE(fits("/v1/s/", "/v1/s/{}", NULL));
    CU_ASSERT_FALSE(fits("/v1/s/a/", "/v1/s/{}", NULL));
    CU_ASSERT_FALSE(fits("/v1/s/a/b", "/v1/s/{}", NULL));
    CU_ASSERT_FALSE(fits("/v1/s/a", "/v1/s", NULL));
    CU_ASSERT_FALSE(fits("/v1", "/v1/s", NULL));
    CU_ASSERT_FALSE(fits("/v1/t/a", "/v1/s/{}", NULL));
    CU_ASSERT_FALSE(fits("/a/b/c", "/{}/{}/{}", NULL));
    memset(uri + 6, 'x', 64);
    CU_ASSERT_TRUE(fits(uri, "/v1/s/{}", NULL));
    uri[70] = 'x';
    CU_ASSERT_FALSE(fits(uri, "/v1/s/{}", NULL));
}

static void test_values(void)
{
    static const char *const numbers[] = {"",    "-1",  "+1", "0",  "11",
                                          "1.5", "0x1", " 1", "1 ", "99999999999999999999"};
    struct asked q;
    int64_t v = 0;
    bool flag = true;
    unsigned mode = 7;
    char uri[200], *path = malloc(5000);
    good(&q, "/a?n=10&t=true&f=false&x=TRUE");
    CU_ASSERT(asked_number(&q, "n", 1, 10, 3, &v, &err) == 0 && v == 10);
    CU_ASSERT(asked_number(&q, "m", 1, 10, 3, &v, &err) == 0 && v == 3);
    CU_ASSERT(asked_bool(&q, "t", &flag, &err) == 0 && flag);
    CU_ASSERT(asked_bool(&q, "f", &flag, &err) == 0 && !flag);
    flag = true;
    CU_ASSERT(asked_bool(&q, "none", &flag, &err) == 0 && !flag);
    CU_ASSERT_EQUAL(asked_bool(&q, "x", &flag, &err), -1);
    asked_done(&q);
    for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
        snprintf(uri, sizeof uri, "/a?n=%s", numbers[i]);
        if (strchr(numbers[i], ' '))
            snprintf(uri, sizeof uri, "/a?n=%%20%s", numbers[i]);
        good(&q, uri);
        CU_ASSERT_EQUAL(asked_number(&q, "n", 1, 10, 3, &v, &err), -1);
        asked_done(&q);
    }
    CU_ASSERT(asked_mode(NULL, &mode, &err) == 0 && mode == 7);
    CU_ASSERT(asked_mode("644", &mode, &err) == 0 && mode == 0644);
    CU_ASSERT(asked_mode("0755", &mode, &err) == 0 && mode == 0755);
    static const char *const modes[] = {"", "0", "64", "4644", "00644", "648", "0x1", "+44", "rw-"};
    for (size_t i = 0; i < ARRAY_LEN(modes); i++)
        CU_ASSERT_EQUAL(asked_mode(modes[i], &mode, &err), -1);
    memset(path, '/', 5000);
    path[4096] = 0;
    CU_ASSERT_EQUAL(asked_path(path, &err), -1);
    path[4095] = 0;
    CU_ASSERT_EQUAL(asked_path(path, &err), 0);
    CU_ASSERT(asked_path(NULL, &err) == -1 && asked_path("", &err) == -1 &&
              asked_path("a/b", &err) == -1);
    char id[66];
    memset(id, 'a', 65);
    id[65] = 0;
    CU_ASSERT_EQUAL(asked_id(id, &err), -1);
    CU_ASSERT(asked_id(id + 1, &err) == 0 && asked_id("sb-1", &err) == 0);
    CU_ASSERT(asked_id("", &err) == -1 && asked_id("A", &err) == -1 &&
              asked_id("a/b", &err) == -1 && asked_id("..", &err) == -1 &&
              asked_id("a\n", &err) == -1);
    free(path);
}

/* ---- bodies ---- */

static json_t *body(const char *text, size_t n, const char *allowed)
{
    struct evhttp_request *r = evhttp_request_new(NULL, NULL);
    CU_ASSERT_PTR_NOT_NULL_FATAL(r);
    evbuffer_add(evhttp_request_get_input_buffer(r), text, n);
    json_t *v = asked_body(r, allowed, &err);
    evhttp_request_free(r);
    return v;
}

#define BODY(text, allowed) body(text, strlen(text), allowed)

static void test_bodies(void)
{
    static const char *const bad[] = {"",
                                      "[]",
                                      "null",
                                      "{",
                                      "{\"a\":1,}",
                                      "{\"a\":1} x",
                                      "{\"a\":1}{\"a\":2}",
                                      "{\"a\":1,\"a\":2}",
                                      "{\"a\":1,\"b\":2}",
                                      "{\"A\":1}",
                                      "{\"a \":1}",
                                      "{\"\":1}",
                                      "{\"a\":\"\xff\"}",
                                      "{'a':1}"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        json_t *v = BODY(bad[i], "a c");
        if (v)
            printf("# %s is taken\n", bad[i]);
        CU_ASSERT_PTR_NULL(v);
        json_decref(v);
    }
    json_t *v = BODY(" {\"a\":1,\"c\":[]} ", "a c");
    CU_ASSERT_PTR_NOT_NULL(v);
    CU_ASSERT_EQUAL(asked_keys(json_object_get(v, "c"), "", &err), -1);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "an object is expected"));
    json_decref(v);
    v = BODY("{}", "");
    CU_ASSERT_PTR_NOT_NULL(v);
    json_decref(v);
}

static void test_members(void)
{
    const char *text = "kept";
    int64_t n = 5;
    bool flag = true;
    json_t *v = BODY("{\"t\":\"abc\",\"z\":\"a\\u0000b\",\"n\":7,\"r\":7.0,\"b\":false,\"x\":null}",
                     "t z n r b x");
    CU_ASSERT_PTR_NOT_NULL_FATAL(v);
    CU_ASSERT(asked_text(v, "none", 9, &text, &err) == 0 && strcmp(text, "kept") == 0);
    CU_ASSERT(asked_text(v, "t", 3, &text, &err) == 0 && strcmp(text, "abc") == 0);
    CU_ASSERT_EQUAL(asked_text(v, "t", 2, &text, &err), -1);
    CU_ASSERT_EQUAL(asked_text(v, "z", 9, &text, &err), -1); /* a NUL would hide the rest */
    CU_ASSERT_EQUAL(asked_text(v, "n", 9, &text, &err), -1);
    CU_ASSERT(asked_integer(v, "none", 0, 9, &n, &err) == 0 && n == 5);
    CU_ASSERT(asked_integer(v, "n", 7, 7, &n, &err) == 0 && n == 7);
    CU_ASSERT(asked_integer(v, "n", 8, 9, &n, &err) == -1 &&
              asked_integer(v, "n", 0, 6, &n, &err) == -1 &&
              asked_integer(v, "r", 0, 9, &n, &err) == -1 &&
              asked_integer(v, "t", 0, 9, &n, &err) == -1);
    CU_ASSERT(asked_flag(v, "none", &flag, &err) == 0 && flag);
    CU_ASSERT(asked_flag(v, "b", &flag, &err) == 0 && !flag);
    CU_ASSERT(asked_flag(v, "x", &flag, &err) == -1 && asked_flag(v, "n", &flag, &err) == -1);
    json_decref(v);
}

static const char *bytes(const char *text, const char *encoding)
{
    static char got[64];
    char json[200], *p = NULL;
    size_t n = 0;
    snprintf(json, sizeof json, "{\"d\":%s%s%s}", text, encoding ? ",\"e\":" : "",
             encoding ? encoding : "");
    json_t *v = BODY(json, "d e");
    CU_ASSERT_PTR_NOT_NULL_FATAL(v);
    int r = asked_bytes(v, "d", "e", &p, &n, &err);
    CU_ASSERT(r == 0 ? p != NULL : p == NULL);
    snprintf(got, sizeof got, "%zu:%.*s", n, (int)n, p ? p : "");
    free(p);
    json_decref(v);
    return r < 0 ? "no" : got;
}

static void test_bytes(void)
{
    static const char *const bad[] = {"\"YQ\"",
                                      "\"YQ=\"",
                                      "\"====\"",
                                      "\"Y===\"",
                                      "\"YQ==YQ==\"",
                                      "\" YQ=\"",
                                      "\"YQ=\\n\"",
                                      "\"YW-_\"",
                                      "\"    YQ==\"",
                                      "\"YQ==\\n\\n\\n\\n\"",
                                      "\"YWJj\\u0000\\u0000\\u0000\\u0000\"",
                                      "\"-\"",
                                      "7",
                                      "\"YWJ\xc3\xa9\""};
    char *p;
    size_t n;
    CU_ASSERT_STRING_EQUAL(bytes("\"a\xc3\xbc\"", NULL), "3:a\xc3\xbc");
    CU_ASSERT_STRING_EQUAL(bytes("\"ab\"", "\"utf-8\""), "2:ab");
    CU_ASSERT_STRING_EQUAL(bytes("\"\"", "\"base64\""), "0:");
    CU_ASSERT_STRING_EQUAL(bytes("\"YWI=\"", "\"base64\""), "2:ab");
    CU_ASSERT_STRING_EQUAL(bytes("\"YQ==\"", "\"base64\""), "1:a");
    CU_ASSERT_STRING_EQUAL(bytes("\"YWJj\"", "\"base64\""), "3:abc");
    CU_ASSERT_STRING_EQUAL(bytes("\"a\\u0000b\"", NULL), "3:a"); /* a file may hold it */
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        const char *got = bytes(bad[i], "\"base64\"");
        if (strcmp(got, "no") != 0)
            printf("# %s: %s\n", bad[i], got);
        CU_ASSERT_STRING_EQUAL(got, "no");
    }
    CU_ASSERT_STRING_EQUAL(bytes("\"a\"", "\"latin1\""), "no");
    CU_ASSERT_STRING_EQUAL(bytes("\"a\"", "1"), "no");
    CU_ASSERT_STRING_EQUAL(bytes("[]", NULL), "no");
    json_t *v = BODY("{}", "");
    CU_ASSERT(asked_bytes(v, "d", "e", &p, &n, &err) == 0 && p == NULL && n == 0);
    json_decref(v);
}

static void test_maps(void)
{
    static const struct {
        const char *json;
        bool label, env;
    } rows[] = {
        {"{}", true, true},
        {"{\"A_1\":\"x\"}", true, true},
        {"{\"a.b/c-d\":\"x\"}", true, false},
        {"{\"1a\":\"x\"}", true, false},
        {"{\"\":\"x\"}", false, false},
        {"{\"a b\":\"x\"}", false, false},
        {"{\"a=b\":\"x\"}", false, false},
        {"{\"a\":1}", false, false},
        {"{\"a\":\"x\\u0000y\"}", false, false},
        {"{\"a\":\"x\\ny\"}", false, true},
        {"{\"a\":\"\\u007f\"}", false, true},
        {"[]", false, false},
        {"\"a\"", false, false},
    };
    char text[12000];
    json_t *ret;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        snprintf(text, sizeof text, "{\"m\":%s}", rows[i].json);
        json_t *v = BODY(text, "m");
        CU_ASSERT_PTR_NOT_NULL_FATAL(v);
        int label = asked_labels(v, "m", &ret, &err), env = asked_env(v, "m", &ret, &err);
        if ((label == 0) != rows[i].label || (env == 0) != rows[i].env)
            printf("# %s: %d %d\n", rows[i].json, label, env);
        CU_ASSERT((label == 0) == rows[i].label && (env == 0) == rows[i].env);
        json_decref(v);
    }
    for (unsigned many = 32; many <= 257; many++) {
        size_t n = (size_t)snprintf(text, sizeof text, "{\"m\":{");
        for (unsigned i = 0; i < many; i++)
            n += (size_t)snprintf(text + n, sizeof text - n, "%s\"k%u\":\"\"", i ? "," : "", i);
        snprintf(text + n, sizeof text - n, "}}");
        json_t *v = BODY(text, "m");
        CU_ASSERT_EQUAL(asked_labels(v, "m", &ret, &err), many > 32 ? -1 : 0);
        CU_ASSERT_EQUAL(asked_env(v, "m", &ret, &err), many > 256 ? -1 : 0);
        json_decref(v);
    }
    memset(text, 'k', 200);
    text[63] = 0;
    CU_ASSERT_TRUE(asked_label_ok(text, ""));
    text[63] = 'k';
    text[64] = 0;
    CU_ASSERT_FALSE(asked_label_ok(text, ""));
    memset(text, 'v', 1100);
    text[1020] = 0;
    CU_ASSERT_TRUE(asked_label_ok("k", text));
    text[1020] = 'v';
    text[1021] = 0;
    CU_ASSERT_FALSE(asked_label_ok("k", text));
}

static void test_encode(void)
{
    static char zeros[3000];
    static const struct {
        struct slice in;
        const char *plain, *base64; /* NULL: none */
    } rows[] = {{SLICE_INIT("a\xc3\xbc\n"), "a\xc3\xbc\n", "YcO8Cg=="},
                {SLICE_INIT("\xff"), NULL, "/w=="},
                {{NULL, 0}, "", ""}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        json_t *plain = asked_encode(rows[i].in, false), *coded = asked_encode(rows[i].in, true);
        CU_ASSERT(rows[i].plain ? strcmp(json_string_value(plain), rows[i].plain) == 0
                                : plain == NULL);
        CU_ASSERT_STRING_EQUAL(json_string_value(coded), rows[i].base64);
        json_decref(plain);
        json_decref(coded);
    }
    /* some control characters are text, many are not */
    json_t *v = asked_encode((struct slice){zeros, 64}, false);
    CU_ASSERT_EQUAL(json_string_length(v), 64);
    json_decref(v);
    CU_ASSERT_PTR_NULL(asked_encode((struct slice){zeros, sizeof zeros}, false));
}

void suite_api_asked(void)
{
    CU_pSuite s = CU_add_suite("api_asked", NULL, NULL);
    CU_add_test(s, "targets", test_targets);
    CU_add_test(s, "patterns", test_patterns);
    CU_add_test(s, "values", test_values);
    CU_add_test(s, "bodies", test_bodies);
    CU_add_test(s, "members", test_members);
    CU_add_test(s, "bytes", test_bytes);
    CU_add_test(s, "labels and variables", test_maps);
    CU_add_test(s, "bytes as JSON", test_encode);
}

void tap_suites(void)
{
    suite_api_asked();
}
