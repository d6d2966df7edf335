/* What asks for another method (attack A25): names, and bodies cut at every byte. */
#include <CUnit/CUnit.h>
#include <stdio.h>
#include <string.h>

#include "override.h"
#include "tap_main.h"

static void names(void)
{
    static const char *const bad[] = {
        "_method",
        "_METHOD",
        "%5fmethod",
        "%5F%6d%65thod",
        "_method[]",
        "_method[x]",
        ".method",
        "[method",
        "+method",
        " _method",
        "%20%20_method",
        "++_method",
        "_httpMethod",
        "_http_method",
        "x-http-method-override",
        "X_HTTP_Method_Override",
        "x-http-method",
        "%24httpMethod",
        "$httpMethod",
        "http-method-override",
        "x.method.override",
        "_method%5b%5d",
        "[_method]",
        "%5B_method%5D",
        "][[_method",
        "+[_method]]",
        "_method]",
        "_method%00",
        "_method%00.x",
        "%u005fmethod",
        "x%U002dhttp%u002Dmethod%u002doverride",
    };
    static const char *const good[] = {
        "method", "__method",   "_methods",       "a_method", "_metho",     "",           "_",
        "+",      "httpmethod", "payment_method", "%",        "x_method[]", "x[_method]", "[",
        "[]",     "%00_method", "%u015fmethod",   "%u005",    "_metho%64s"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        if (!override_parameter(slice_str(bad[i]))) {
            printf("# %s\n", bad[i]);
            CU_FAIL("passes");
        }
    for (size_t i = 0; i < ARRAY_LEN(good); i++)
        if (override_parameter(slice_str(good[i]))) {
            printf("# %s\n", good[i]);
            CU_FAIL("refused");
        }
}

#define FORM       "application/x-www-form-urlencoded"
#define PARTS      "multipart/form-data; boundary=xyz"
#define PART(name) "--xyz\r\nContent-Disposition: form-data; " name "\r\n\r\nDELETE\r\n--xyz--\r\n"

static const struct {
    const char *type, *body;
    bool found;
} bodies[] = {
    {FORM, "_method=DELETE", true},
    {FORM "; charset=utf-8", "a=b&%5Fmethod=DELETE&c=d", true},
    {FORM, "a=b;_method=PUT", true},
    {FORM, "a=_method=DELETE&b=c", false},
    {FORM, "a=b&method=_method&c", false},
    {FORM, "a=%26_method%3DDELETE", false},
    {"Application/JSON", "{\"_method\" : \"DELETE\"}", true},
    {"application/vnd.api+json", "{\"a\":{\"\\u005fmetho\\u0064\":1}}", true},
    {"application/json", "{\"a\":\"_method\", \"b\":[\"_method\",\"x\"]}", false},
    {"application/json", "{\"a\":\"\\\"_method\\\": x\"}", false},
    {"application/json", "{\"a\\\\\":1,\"_method\"\n:1}", true},
    {"application/json", "{\"_method\\u0000\":1}", true},
    {"application/json", "{\"_method\\u0061\":1}", false},
    {PARTS, PART("name=\"_method\""), true},
    {PARTS, PART("name=_method"), true},
    {PARTS, PART("NAME = \"_method\"; x=y"), true},
    {PARTS, PART("name*=UTF-8''%5Fmethod"), true},
    {PARTS, PART("name='_method'"), true},
    {PARTS, PART("name=\"a\"; filename=\"_method\""), false},
    {PARTS,
     "--xyz\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\nname=\"_method\"\r\n--xyz--",
     false},
    {PARTS, "--xyz\nContent-Disposition: form-data;\n name=\"_method\"\n\nPUT\n--xyz--", true},
    {"multipart/form-data; boundary=\"x y\"",
     "--x y\r\nContent-Disposition: form-data; name=\"_method\"\r\n\r\n", true},
    {"text/plain", "_method=DELETE", false},
    {"application/octet-stream", "{\"_method\":1}", false},
    {"multipart/mixed; boundary=xyz", PART("name=\"_method\""), true},
    {"multipart/related; boundary=xyz", PART("name=\"_method\""), true},
    {"multipart/alternative; boundary=xyz", PART("name=\"_method\""), false},
    {"multipart/related; boundary=xyz; type=a/b", PART("name=\"a\""), false},
    {"multipart/mixed; boundary=xyz", "--xyz\r\nContent-Type: Application/HTTP\r\n\r\nDELETE /a",
     true},
    {"multipart/mixed; boundary=xyz",
     "--xyz\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n", true},
    {PARTS, PART("name*0=\"_me\"; name*1=thod"), true},
    {"multipart/form-data; boundary=\"xyz\" ; charset=utf-8", PART("name=\"_method\""), true},
    {"multipart/form-data; boundary=xyz ; a=b", PART("name=\"_method\""), true},
    {"multipart/form-data; boundary=xyz ; a=b", PART("name=\"a\""), false},
    {"multipart/form-data; boundary=\"xyz\"; charset=UTF-8", PART("name=\"a\""), false},
    /* readers do not agree where these end */
    {"multipart/form-data; boundary =xyz", PART("name=\"a\""), true},
    {"multipart/form-data; boundary*=utf-8''xyz", PART("name=\"a\""), true},
    {"multipart/form-data; boundary=xyz,abc", PART("name=\"a\""), true},
    {"multipart/form-data; boundary=xyz; boundary=abc", PART("name=\"a\""), true},
    {"multipart/form-data; x=\"boundary=abc\"; boundary=xyz", PART("name=\"a\""), true},
    {"multipart/form-data; boundary=\"x\\yz\"", PART("name=\"a\""), true},
    {"multipart/form-data; boundary=\"xyz", PART("name=\"a\""), true},
    {"multipart/form-data", PART("name=\"a\""), true},
    {"multipart/form-data; boundary=", PART("name=\"a\""), true},
    /* the type ends where PHP and Rack end it */
    {FORM ",x", "_method=DELETE", true},
    {FORM " x", "_method=DELETE", true},
    {FORM "\tx", "_method=DELETE", true},
    {"  " FORM, "_method=DELETE", true},
    {FORM "x", "_method=DELETE", false},
    {FORM, "[_method]=DELETE", true},
    {"text/json", "{\"_method\":1}", true},
    {"text/plain; a=/JSON", "{\"_method\":1}", true},
    {"application/geo+json-seq", "{\"_method\":1}", true},
    {"application/x-ndjson", "{\"_method\":1}", false},
    /* names in other charsets cannot be looked for */
    {"application/json; charset=utf-16", "{}", true},
    {"application/json; charset=\"utf-7\"", "{}", true},
    {FORM "; charset=ibm037", "a=b", true},
    {FORM "; charset =ibm037", "a=b", true},
    {FORM "; charset=utf-8; charset=utf-16", "a=b", true},
    {"application/json; charset=UTF-8", "{\"a\":1}", false},
    {"application/json;charset=\"ISO-8859-1\"", "{\"a\":1}", false},
};

static bool scan(const char *type, const char *body, size_t cut)
{
    struct override_scan s;
    size_t n = strlen(body);
    if (!override_begin(&s, slice_str(type)))
        return false;
    bool found = override_data(&s, body, cut < n ? cut : n);
    if (cut < n)
        found = override_data(&s, body + cut, n - cut);
    return found;
}

static void in_bodies(void)
{
    for (size_t i = 0; i < ARRAY_LEN(bodies); i++)
        for (size_t cut = 0; cut <= strlen(bodies[i].body); cut++)
            if (scan(bodies[i].type, bodies[i].body, cut) != bodies[i].found) {
                printf("# %s cut at %zu: %s\n", bodies[i].type, cut, bodies[i].body);
                CU_FAIL("a body");
                break;
            }
}

/* Nothing grows, whatever comes. */
static void long_ones(void)
{
    struct override_scan s;
    static char many[200000];
    memset(many, 'a', sizeof many);
    CU_ASSERT_TRUE(override_begin(&s, SLICE(FORM)));
    CU_ASSERT_FALSE(override_data(&s, many, sizeof many));
    CU_ASSERT_TRUE(override_data(&s, "&_method=", 9));
    CU_ASSERT_TRUE(override_begin(&s, SLICE(PARTS)));
    CU_ASSERT_FALSE(override_data(&s, "--xyz\r\nx: ", 10));
    CU_ASSERT_FALSE(override_data(&s, many, sizeof many));
    CU_ASSERT_TRUE(override_data(&s, "\r\n", 2)); /* what is not read is not let through */
    /* what is left out at the beginning of a name is no place to hide behind */
    for (size_t lead = 0; lead < 400; lead += 7) {
        CU_ASSERT_TRUE(override_begin(&s, SLICE(FORM)));
        memset(many, '+', lead);
        memcpy(many + lead, "_method=", 8);
        CU_ASSERT_TRUE(override_data(&s, many, lead + 8));
    }
    CU_ASSERT_TRUE(override_begin(&s, SLICE("application/json")));
    CU_ASSERT_TRUE(override_data(&s, "{\0\"\0_\0", 6));
    memset(many, 'a', sizeof many);
    char type[200];
    snprintf(type, sizeof type, "multipart/form-data; boundary=%.*s", 71, many);
    CU_ASSERT_TRUE(override_begin(&s, slice_str(type)));
    CU_ASSERT_TRUE(override_data(&s, "-", 1));
}

void tap_suites(void)
{
    CU_pSuite s = CU_add_suite("override", NULL, NULL);
    CU_add_test(s, "A25: names of parameters that name a method", names);
    CU_add_test(s, "A25: forms, JSON and parts, cut at every byte", in_bodies);
    CU_add_test(s, "names and lines without end", long_ones);
}
