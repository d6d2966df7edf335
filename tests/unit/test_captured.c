/* Replies with new secrets in them, and the values that are kept of them. */
#include "captured.h"
#include "base64.h"
#include "captured_token.h"
#include "tap_main.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void suite_captured(void);

#define T1 "tok-0123456789"
#define T2 "ref-0123456789"

struct seen {
    char text[2000], why[300];
    char values[3][200];
    int r;
};

/* Secrets of fields are named x and y. */
static struct seen run(enum captured_form form, const char *body, struct captured_field *f,
                       size_t n)
{
    struct seen s = {.r = 0};
    struct err err = {0};
    struct buf out;
    buf_init(&out, CAPTURED_WRITTEN_MAX);
    s.r = captured_rewrite(slice_str(body), form, f, n, &out, &err);
    snprintf(s.text, sizeof s.text, "%.*s", SL(buf_slice(&out)));
    snprintf(s.why, sizeof s.why, "%.299s", err.text);
    for (size_t i = 0; i < n; i++) {
        if (f[i].value)
            snprintf(s.values[f[i].secret[0] - 'x'], sizeof s.values[0], "%.*s",
                     SL(secret_slice(f[i].value)));
        secret_unref(f[i].value);
    }
    buf_free(&out);
    return s;
}

/* Fields "a" and "b" become the secrets x and y; "l.*.k" becomes x too. */
static struct seen rewrite_as(enum captured_form form, const char *body)
{
    struct captured_field f[] = {{"a", "<PX>", "x", NULL},
                                 {"b.c", "<PLACEHOLDER Y>", "y", NULL},
                                 {"l.*.k", "<PX>", "x", NULL}};
    return run(form, body, f, ARRAY_LEN(f));
}

static void gives_as(enum captured_form form, const char *body, const char *want, const char *x,
                     const char *y)
{
    struct seen s = rewrite_as(form, body);
    CU_ASSERT_EQUAL(s.r, 0);
    CU_ASSERT_STRING_EQUAL(s.text, want);
    CU_ASSERT_STRING_EQUAL(s.values[0], x);
    CU_ASSERT_STRING_EQUAL(s.values[1], y);
}

static void gives(const char *json, const char *want, const char *x, const char *y)
{
    gives_as(CAPTURED_JSON, json, want, x, y);
}

static void fails_as(enum captured_form form, const char *body, const char *why)
{
    struct seen s = rewrite_as(form, body);
    CU_ASSERT_EQUAL(s.r, -1);
    CU_ASSERT_PTR_NOT_NULL(strstr(s.why, why));
    CU_ASSERT(strstr(s.why, "0123456789") == NULL);
}

static void fails(const char *json, const char *why)
{
    fails_as(CAPTURED_JSON, json, why);
}

static void test_found(void)
{
    gives("{\"a\": \"" T1 "\", \"z\": [1, true, null, 1.5, \"\\u00e4\"]}",
          "{\"a\":\"<PX>\",\"z\":[1,true,null,1.5,\"\xc3\xa4\"]}", T1, "");
    gives("{\"b\":{\"c\":\"" T2 "\"},\"a\":\"" T1 "\"}",
          "{\"b\":{\"c\":\"<PLACEHOLDER Y>\"},\"a\":\"<PX>\"}", T1, T2);
    gives("{\"l\":[{\"k\":\"" T1 "\"},{\"k\":\"" T1 "\"},3],\"a\":\"" T1 "\"}",
          "{\"l\":[{\"k\":\"<PX>\"},{\"k\":\"<PX>\"},3],\"a\":\"<PX>\"}", T1, "");
    gives("{\"l\":{\"o\":{\"k\":\"" T1 "\"}}}", "{\"l\":{\"o\":{\"k\":\"<PX>\"}}}", T1, "");
    /* elsewhere, too; escapes in the reply are none in the value */
    gives("{\"a\":\"tok-012345678\\u0039\",\"url\":\"https://h/?t=" T1 "&u=" T1 "\"}",
          "{\"a\":\"<PX>\",\"url\":\"https://h/?t=<PX>&u=<PX>\"}", T1, "");
    /* one value within the other */
    gives("{\"a\":\"" T1 "\",\"b\":{\"c\":\"" T1 "-more\"},\"d\":\"" T1 "-more " T1 "\"}",
          "{\"a\":\"<PX>\",\"b\":{\"c\":\"<PLACEHOLDER Y>\"},\"d\":\"<PLACEHOLDER Y> <PX>\"}", T1,
          T1 "-more");
    /* a value that is in the placeholder itself */
    gives("{\"b\":{\"c\":\"PLACEHOLDER\"}}", "{\"b\":{\"c\":\"<PLACEHOLDER Y>\"}}", "",
          "PLACEHOLDER");
    /* nothing of it */
    gives("[]", "[]", "", "");
    gives("\"" T1 "\"", "\"" T1 "\"", "", "");
    gives("{\"access_token\":\"short\",\"token_type\":\"" T1 "\"}",
          "{\"access_token\":\"short\",\"token_type\":\"" T1 "\"}", "", "");
    gives("{\"a\":\"" T1 "\",\"access_token\":\"" T1 "\"}",
          "{\"a\":\"<PX>\",\"access_token\":\"<PX>\"}", T1, "");
    gives("{\"a\":\"short\",\"aa\":\"" T1 "\"}", "{\"a\":\"short\",\"aa\":\"" T1 "\"}", "", "");
}

static void test_refused(void)
{
    char text[CAPTURED_VALUE_MAX + 100];
    fails("", "not JSON");
    fails("{\"a\":\"tok-012345678\x7f\"}", "not the text");
    fails("{\"a\":\"" T1 "\"", "not JSON");
    fails("{\"x\":{\"_A-\":\"" T2 "\"}}", "no path"); /* the same word */
    fails("{\"x\":{\"A_\":\"" T2 "\"}}", "no path");
    fails("{\"a\":\"" T1 "\"} x", "not JSON");
    fails("{\"a\":\"" T1 "\",\"a\":\"b\"}", "not JSON");
    fails("{\"a\":null,\"A\":\"" T1 "\"}", "where no path");
    fails("{\"q\":{\"a\":\"" T1 "\"}}", "where no path");
    fails("[[{\"q.a\":[\"" T1 "\"]}]]", "where no path");
    fails("{\"q\":{\"c\":{\"SecretAccessKey\":\"" T1 "\"}}}", "where no path");
    fails("{\"a\":\"" T1 "\",\"refresh_token\":\"" T2 "\"}", "no path"); /* of OAuth's */
    fails("{\"x\":{\"idToken\":\"" T2 "\"}}", "no path");
    fails("{\"x\":{\"access-token\":[\"" T2 "\"]}}", "no path");
    fails("{\"a\":1234567890123}", "'a' is not the text");
    fails("{\"a\":[\"" T1 "\"]}", "'a' is not the text");
    fails("{\"a\":{\"x\":\"" T1 "\"}}", "'a' is not the text");
    fails("{\"a\":true}", "'a' is not the text");
    fails("{\"a\":\"" T1 "\\r\\nx: y\"}", "'a' is not the text");
    fails("{\"a\":\"" T1 "\\u0000\"}", "");
    fails("{\"a\":\"" T1 "\\u00e4\"}", "'a' is not the text");
    fails("{\"a\":\" " T1 "\"}", "'a' is not the text");
    fails("{\"a\":\"" T1 "\",\"l\":[{\"k\":\"" T2 "\"}]}", "two values for 'x'");
    fails("{\"l\":[{\"k\":\"" T1 "\"},{\"k\":\"" T2 "\"}]}", "two values for 'x'");
    fails("{\"a\":\"" T1 "\",\"" T1 "\":1}", "cannot be written");
    int n = snprintf(text, sizeof text, "{\"a\":\"");
    memset(text + n, 'x', CAPTURED_VALUE_MAX + 1);
    snprintf(text + n + CAPTURED_VALUE_MAX + 1, 10, "\"}");
    fails(text, "'a' is not the text");
    /* placeholders that make it too long */
    char *long_text = malloc(CAPTURED_REPLY_MAX);
    size_t at = (size_t)snprintf(long_text, 100, "{\"b\":{\"c\":\"12345678\"},\"l\":[\"1\"");
    while (at < CAPTURED_REPLY_MAX - 100)
        at += (size_t)snprintf(long_text + at, 20, ",\"12345678\"");
    snprintf(long_text + at, 10, "]}");
    fails(long_text, "cannot be written");
    free(long_text);
}

static void test_form(void)
{
    /* what GitHub's device flow answers */
    gives_as(CAPTURED_FORM, "a=" T1 "&scope=repo%2Cgist&token_type=bearer",
             "a=%3CPX%3E&scope=repo%2Cgist&token_type=bearer", T1, "");
    gives_as(CAPTURED_FORM, "x=%41+b&a=tok%2D0123456789&u=https%3A%2F%2Fh%2F%3Ft%3D" T1,
             "x=%41+b&a=%3CPX%3E&u=https%3A%2F%2Fh%2F%3Ft%3D%3CPX%3E", T1, "");
    fails_as(CAPTURED_FORM, "A=" T1 "&a=short", "where no path");
    fails_as(CAPTURED_FORM, "x%5Ba%5D=" T1, "where no path");
    fails_as(CAPTURED_FORM, "a=" T1 "&refresh_token=" T2, "where no path");
    gives_as(CAPTURED_FORM, "error=x&c", "error=x&c", "", "");
    gives_as(CAPTURED_FORM, "a", "a", "", "");
    fails_as(CAPTURED_FORM, "a=" T1 "&a=" T1, "twice");
    fails_as(CAPTURED_FORM, "a=" T1 "&%61=" T2, "twice");
    fails_as(CAPTURED_FORM, "a=" T1 "%", "not a form");
    fails_as(CAPTURED_FORM, "a=" T1 "%4", "not a form");
    fails_as(CAPTURED_FORM, "a=" T1 "%4z", "not a form");
    fails_as(CAPTURED_FORM, "a=" T1 "%z4", "not a form");
    fails_as(CAPTURED_FORM, "a=" T1 "\x80", "not a form");
    fails_as(CAPTURED_FORM, "a=" T1 "%0A", "'a' is not the text");
    fails_as(CAPTURED_FORM, "a=" T1 "+", "'a' is not the text");
    fails_as(CAPTURED_FORM, "a=\n" T1, "not a form");
    fails_as(CAPTURED_FORM, "&a=" T1, "not a form");
    fails_as(CAPTURED_FORM, "=" T1, "not a form");
    fails_as(CAPTURED_FORM, "a=" T1 "&" T1 "=1", "cannot be written");
    fails_as(CAPTURED_FORM, "a=0123456789&u=tok%20123456789", "cannot be written");
    fails_as(CAPTURED_FORM, "{\"a\":\"" T1 "\" }", "not a form");
}

#define KEY_ID "ASIAEXAMPLE123456"
#define KEY    "wJalrXUtnFEMI/K7MDENG+bPxRfiCY"
#define TOKEN  "FwoGZXIvYXdzEXAMPLETOKEN//+=="
#define PAIR   KEY_ID "\n" KEY "\n" TOKEN
#define STS(id, key, token)                                                           \
    "<b xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\"><c>\n <AccessKeyId>" id   \
    "</AccessKeyId>\n <SecretAccessKey>" key "</SecretAccessKey><SessionToken>" token \
    "</SessionToken><Expiration>2026-01-01T00:00:00Z</Expiration></c><d>" id ":s</d></b>"

static struct seen rewrite(const char *json)
{
    return rewrite_as(CAPTURED_JSON, json);
}

static struct seen xml(const char *by, const char *body)
{
    struct captured_field f[] = {{"r.a", by, "x", NULL}, {"*.c", by, "y", NULL}};
    return run(CAPTURED_XML, body, f, ARRAY_LEN(f));
}

static void xml_gives(const char *body, const char *want, const char *x, const char *y)
{
    struct seen s = xml("PX", body);
    CU_ASSERT_EQUAL(s.r, 0);
    CU_ASSERT_STRING_EQUAL(s.why, "");
    CU_ASSERT_STRING_EQUAL(s.text, want);
    CU_ASSERT_STRING_EQUAL(s.values[0], x);
    CU_ASSERT_STRING_EQUAL(s.values[1], y);
}

static void xml_fails(const char *body, const char *why)
{
    struct seen s = xml("PX", body);
    CU_ASSERT_EQUAL(s.r, -1);
    if (strstr(s.why, why) == NULL)
        printf("# %s: %s, not %s\n", body, s.why, why);
    CU_ASSERT_PTR_NOT_NULL(strstr(s.why, why));
}

static void test_xml(void)
{
    xml_gives("<?xml version='1.0' encoding='UTF-8'?>\n<r><a>" T1 "</a><u v='" T1 "'>" T1
              "</u></r>",
              "<?xml version='1.0' encoding='UTF-8'?>\n<r><a>PX</a><u v='PX'>PX</u></r>", T1, "");
    xml_gives("<r><a>short</a><q><a>short</a></q></r>", "<r><a>short</a><q><a>short</a></q></r>",
              "", "");
    xml_gives("<r><a/></r>", "<r><a/></r>", "", "");
    /* under a name that is captured, but not there: another form than the rule's author knew */
    xml_fails("<r><A>" T1 "</A></r>", "where no path");
    xml_fails("<r><q><a>" T1 "</a></q></r>", "where no path");
    xml_fails("<a>" T1 "</a>", "where no path");
    xml_fails("<r><q x:a='" T1 "'/></r>", "where no path");
    xml_fails("<r><q><a>" T1 "<u/></a></q></r>", "where no path");
    xml_fails("<r><q><c><SecretAccessKey>" KEY "</SecretAccessKey></c></q></r>", "where no path");
    /* an AWS key: its three parts, wherever they stand */
    xml_gives(STS(KEY_ID, KEY, TOKEN), STS("PX", "PX", "PX"), "", PAIR);
    xml_gives("<r><a><![CDATA[" T1 "]]></a></r>", "<r><a><![CDATA[PX]]></a></r>", T1, "");
    xml_fails("", "not XML");
    xml_fails("<r><a>" T1 "</a>", "not XML");
    xml_fails("<r><a>" T1 "</a></r><r/>", "not XML");
    xml_fails("{\"a\": 1}", "not XML");
    xml_fails("<!DOCTYPE r [<!ENTITY e 'x'>]><r><a>&e;</a></r>", "document type");
    xml_fails("<!DOCTYPE r SYSTEM 'http://h/'><r/>", "document type");
    xml_fails("<?xml version='1.0' encoding='UTF-7'?><r><a>" T1 "</a></r>", "encoding");
    xml_fails("<r><a>tok-012345678&#57;</a></r>", "cannot be written"); /* it would stay */
    xml_fails("<r><a>" T1 "</a><u v='tok-012345678&#57;'/></r>", "cannot be written");
    xml_fails("<r><a>" T1
              "</a><!-- &#57; tok-01234567<![CDATA[89]]> --><b>tok-<![CDATA[0123456789]]></b></r>",
              "cannot be written");
    xml_fails("<r><a>" T1 "</a><a>" T2 "</a></r>", "two values for 'x'");
    xml_fails("<r><a><b>" T1 "</b></a></r>", "nor an AWS key");
    xml_fails("<r><a>" T1 "\n</a></r>", "'r.a' is not the text");
    xml_fails("<b><c><AccessKeyId>" KEY_ID "</AccessKeyId></c></b>", "nor an AWS key");
    xml_fails("<b><c><AccessKeyId>" KEY_ID "</AccessKeyId><AccessKeyId>" KEY_ID
              "</AccessKeyId></c></b>",
              "twice");
    xml_fails("<b><c><AccessKeyId>" KEY_ID "</AccessKeyId><o><AccessKeyId>" KEY_ID
              "</AccessKeyId></o></c></b>",
              "twice");
    CU_ASSERT_EQUAL(xml("<p>", "<r><a>" T1 "</a></r>").r, -1);
    char deep[121] = "";
    for (size_t i = 0; i < 40; i++)
        memcpy(deep + 3 * i, "<r>", 3);
    xml_fails(deep, "nested too deeply");
}

/* The same in JSON, as STS gives it to who asks for that. */
static void test_pair(void)
{
    struct seen s =
        rewrite("{\"b\":{\"c\":{\"AccessKeyId\":\"" KEY_ID "\",\"SecretAccessKey\":\"" KEY
                "\",\"SessionToken\":\"" TOKEN "\",\"Expiration\":1}}}");
    CU_ASSERT_EQUAL(s.r, 0);
    CU_ASSERT_STRING_EQUAL(s.values[1], PAIR);
    CU_ASSERT_STRING_EQUAL(s.text, "{\"b\":{\"c\":{\"AccessKeyId\":\"<PLACEHOLDER Y>\","
                                   "\"SecretAccessKey\":\"<PLACEHOLDER Y>\","
                                   "\"SessionToken\":\"<PLACEHOLDER Y>\",\"Expiration\":1}}}");
}

static struct secret *value(const char *s)
{
    return secret_new(s, strlen(s));
}

static void put(struct captured *c, const char *owner, const char *secret, const char *text)
{
    struct secret *s = value(text);
    CU_ASSERT_EQUAL(captured_put(c, owner, secret, s), 0);
    secret_unref(s);
}

static bool has(struct captured *c, const char *owner, const char *secret, const char *text)
{
    struct secret *s = captured_get(c, owner, secret);
    return text ? s && secret_eq(s, slice_str(text)) : s == NULL;
}

static void test_kept(void)
{
    struct captured *c = captured_new();
    char owner[40];
    put(c, "p|a", "x", "one");
    put(c, "p|b", "x", "two");
    put(c, "p|a", "y", "three");
    put(c, "q|", "x", "four");
    CU_ASSERT(has(c, "p|a", "x", "one") && has(c, "p|b", "x", "two") &&
              has(c, "p|a", "y", "three"));
    CU_ASSERT(has(c, "q|", "x", "four") && has(c, "p|", "x", NULL) && has(c, "p|c", "x", NULL));
    put(c, "p|a", "x", "newer");
    CU_ASSERT(has(c, "p|a", "x", "newer") && has(c, "p|b", "x", "two"));
    captured_forget(c, "a");
    CU_ASSERT(has(c, "p|a", "x", NULL) && has(c, "p|a", "y", NULL) && has(c, "p|b", "x", "two"));
    for (int i = 0; i < CAPTURED_MAX - 1; i++) {
        snprintf(owner, sizeof owner, "p|s%d", i);
        put(c, owner, "x", "v");
        CU_ASSERT(has(c, "p|b", "x", "two")); /* used all the time */
    }
    CU_ASSERT(has(c, "p|s0", "x", NULL) && has(c, "p|s2", "x", "v"));
    captured_free(c);
}

/* However many values one policy's replies bring, others keep theirs: those of a kept home are what
 * its next file is made of. */
static void test_shares(void)
{
    struct captured *c = captured_new();
    char owner[40];
    put(c, "home|a", "x", "one");
    put(c, "home|a", "y", "two");
    put(c, "pp|a", "x", "three"); /* another policy */
    for (int i = 0; i < 2 * CAPTURED_MAX; i++) {
        snprintf(owner, sizeof owner, "p|s%d", i);
        put(c, owner, "x", "v");
    }
    CU_ASSERT(has(c, "home|a", "x", "one") && has(c, "home|a", "y", "two"));
    CU_ASSERT(has(c, "pp|a", "x", "three"));
    snprintf(owner, sizeof owner, "p|s%d", CAPTURED_MAX + 2); /* the last that went */
    CU_ASSERT(has(c, owner, "x", NULL));
    snprintf(owner, sizeof owner, "p|s%d", CAPTURED_MAX + 3);
    CU_ASSERT(has(c, owner, "x", "v"));
    captured_free(c);
}

/* No more of one name are told together than the answer holds, the newest of them. */
static void test_list_bounds(void)
{
    static char large[8192];
    struct secret *got[CAPTURED_LIST_MAX];
    struct captured *c = captured_new();
    char owner[40];
    for (int i = 0; i < CAPTURED_LIST_MAX + 3; i++) {
        snprintf(owner, sizeof owner, "p|s%d", i);
        put(c, owner, "x", i == 2 ? "third" : "v");
    }
    CU_ASSERT_EQUAL(captured_list(c, "p", "x", got), CAPTURED_LIST_MAX);
    for (size_t i = 0; i < CAPTURED_LIST_MAX; i++)
        CU_ASSERT(secret_eq(got[i], SLICE("v"))); /* the oldest three are not told */
    CU_ASSERT_EQUAL(captured_list(c, "p", "y", got), 0);
    CU_ASSERT_EQUAL(captured_list(c, "q", "x", got), 0);
    CU_ASSERT_EQUAL(captured_list(c, "", "x", got), 0);
    memset(large, 'x', sizeof large - 1);
    for (int i = 0; i < 6; i++) {
        snprintf(owner, sizeof owner, "r|s%d", i);
        put(c, owner, "x", large);
    }
    CU_ASSERT_EQUAL(captured_list(c, "r", "x", got), CAPTURED_LIST_BYTES / (sizeof large - 1));
    captured_free(c);
}

/* A token of these claims, and of these three parts. */
static const char *token_of(const char *claims)
{
    static char text[4096];
    struct buf b;
    buf_init(&b, sizeof text);
    CU_ASSERT_EQUAL_FATAL(base64url_append(&b, SLICE("{\"alg\":\"RS256\"}")) |
                              buf_append_str(&b, ".") | base64url_append(&b, slice_str(claims)) |
                              buf_append_str(&b, ".c2ln"),
                          0);
    snprintf(text, sizeof text, "%.*s", SL(buf_slice(&b)));
    buf_free(&b);
    return text;
}

static bool holds_text(void *arg, struct slice text)
{
    return slice_find_slice(text, slice_str(arg)) >= 0;
}

/* What stands inside for it: its claims, or "" when that is the placeholder alone. */
static const char *inside(const char *value, const char *claims)
{
    static char said[CAPTURED_TOKEN_MAX];
    static const char head[] = "eyJhbGciOiJub25lIiwidHlwIjoiSldUIn0.";
    char made[CAPTURED_TOKEN_MAX] = "";
    struct buf b;
    if (!captured_token(slice_str(value), claims, "dwd_X", holds_text, (char[]){T1}, made))
        return "";
    struct slice s = slice_str(made);
    CU_ASSERT(slice_starts(s, slice_str(head)) && slice_ends(s, SLICE(".dwd_X")));
    s = (struct slice){s.p + sizeof head - 1, s.n - sizeof head + 1 - strlen(".dwd_X")};
    buf_init(&b, sizeof said);
    CU_ASSERT_EQUAL(base64url_decode(&b, s), 0);
    snprintf(said, sizeof said, "%.*s", SL(buf_slice(&b)));
    buf_free(&b);
    return said;
}

static void test_token(void)
{
    char text[1000], many[3000];
    const char *value =
        token_of("{\"exp\":5,\"jti\":\"secret\",\"ok\":true,\"f\":1.5,\"x/y\":{\"plan\":"
                 "\"pro plus\",\"more\":\"hidden\",\"l\":[1]},\"plan\":\"a.b@c\"}");
    CU_ASSERT_STRING_EQUAL(inside(value, "exp"), "{\"exp\":5}");
    CU_ASSERT_STRING_EQUAL(
        inside(value, "exp ok /x~1y/plan plan"),
        "{\"exp\":5,\"ok\":true,\"x/y\":{\"plan\":\"pro plus\"},\"plan\":\"a.b@c\"}");
    /* no object or list as a whole, no other number, nothing that is not there */
    CU_ASSERT_STRING_EQUAL(inside(value, "x/y /x~1y/l /x~1y f none /exp/a"), "{\"x/y\":{}}");
    CU_ASSERT_STRING_EQUAL(inside(value, ""), "{}");
    /* what is no plain text, or too long a one */
    CU_ASSERT_STRING_EQUAL(
        inside(token_of("{\"a\":\"x\\ny\",\"b\":\"<\",\"c\":\"\\u00e4\",\"d\":\"\"}"), "a b c d"),
        "{\"d\":\"\"}");
    memset(many, 'x', sizeof many);
    for (int n = CAPTURED_CLAIM_MAX; n <= CAPTURED_CLAIM_MAX + 1; n++) {
        snprintf(text, sizeof text, "{\"a\":\"%.*s\"}", n, many);
        CU_ASSERT_STRING_EQUAL(inside(token_of(text), "a"), n == CAPTURED_CLAIM_MAX ? text : "{}");
    }
    /* a claim that holds a captured value: the placeholder alone */
    CU_ASSERT_STRING_EQUAL(inside(token_of("{\"a\":\"" T1 "\"}"), "a"), "");
    CU_ASSERT_STRING_EQUAL(inside(token_of("{\"a\":\"" T1 "\"}"), "b"), "{}");
    /* what is no token */
    static const char *const none[] = {"opaque-0123456789",
                                       "a.b.c",
                                       "a..c",
                                       ".e30.c",
                                       "a.e30.",
                                       "a.e30",
                                       "a.e30.c.d",
                                       "a.W10.c",
                                       "a.eyJhIjoxLCJhIjoyfQ.c"};
    for (size_t i = 0; i < ARRAY_LEN(none); i++)
        CU_ASSERT_STRING_EQUAL(inside(none[i], "a exp"), "");
    CU_ASSERT_STRING_EQUAL(inside("a.e30.c", "a"), "{}");
    /* more than fits */
    int n = snprintf(many, sizeof many, "{");
    for (int i = 0; i < 9; i++)
        n +=
            snprintf(many + n, sizeof many - (size_t)n, "%s\"a%d\":\"%0190d\"", i ? "," : "", i, 1);
    snprintf(many + n, sizeof many - (size_t)n, "}");
    CU_ASSERT_STRING_EQUAL(inside(token_of(many), "a0 a1 a2 a3 a4 a5 a6 a7 a8"), "");
    CU_ASSERT_EQUAL(strlen(inside(token_of(many), "a0 a1 a2")), 3 * 197 + 4);
}

void suite_captured(void)
{
    CU_pSuite s = CU_add_suite("captured", NULL, NULL);
    CU_add_test(s, "what is found and written", test_found);
    CU_add_test(s, "what is refused", test_refused);
    CU_add_test(s, "forms", test_form);
    CU_add_test(s, "XML", test_xml);
    CU_add_test(s, "AWS keys", test_pair);
    CU_add_test(s, "tokens with claims", test_token);
    CU_add_test(s, "what is kept", test_kept);
    CU_add_test(s, "shares of policies", test_shares);
    CU_add_test(s, "how much of it is told together", test_list_bounds);
}

void tap_suites(void)
{
    suite_captured();
}
