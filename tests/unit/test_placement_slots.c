/* Fields of bodies into which a secret may go: marks anywhere else, or where two readers could see
 * them in two places, are refused. */
#include "media_type.h"
#include "placement_slots.h"
#include "tap_main.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void suite_placement_slots(void);

/* Begins with a letter of an escape, on purpose. */
static const char mark[] = "n-dw-0123456789-abcdefghijkl";
static const struct credential at = {.kind = CREDENTIAL_PLACEHOLDER,
                                     .slots = "/token\n/a/1/k~1e~0y\n/0\ntoken\nrefresh_token"};

/* M stands for the mark. */
static bool holds(enum placement_body kind, const char *text)
{
    struct injector_channel_marks marks = {.n = 1};
    struct buf b;
    buf_init(&b, 1 << 20);
    snprintf(marks.text[0], sizeof marks.text[0], "%s", mark);
    for (; *text; text++)
        CU_ASSERT_EQUAL_FATAL(*text == 'M' ? buf_append_str(&b, mark) : buf_append(&b, text, 1), 0);
    bool r = placement_slots_hold(&at, kind, &marks, buf_slice(&b));
    buf_free(&b);
    return r;
}

static void test_json(void)
{
    static const struct {
        const char *text;
        bool good;
    } rows[] = {
        {"{\"token\":\"M\"}", true},
        {" {\r\n\t\"x\" : [1, -2.5e+7, true, null, {}, []], \"token\" : \"Bearer M.\" } ", true},
        {"{\"token\":\"MM\"}", true},
        {"{\"a\":[0,{\"k/e~y\":\"M\"}]}", true},
        {"[\"M\"]", true},
        {"{\"username\":\"x\"}", true}, /* none in it: nothing to judge */
        {"no JSON at all", true},
        {"{\"username\":\"M\"}", false},
        {"{\"token\":\"M\",\"username\":\"M\"}", false},
        {"{\"M\":1}", false},
        {"{\"token\":{\"token\":\"M\"}}", false},
        {"{\"token\":[\"M\"]}", false},
        {"{\"a\":{\"token\":\"M\"}}", false},
        {"{\"a\":[{\"k/e~y\":\"M\"}]}", false},
        {"{\"a\":[0,{\"k/e~y\":\"x\"},{\"k/e~y\":\"M\"}]}", false},
        {"{\"a\":{\"1\":{\"k/e~y\":\"M\"}}}", true},
        {"[0,\"M\"]", false},
        {"[[\"M\"]]", false},
        {"{\"Token\":\"M\"}", false},
        {"{\"\\u0074oken\":\"M\"}", false},
        {"{\"tok\":1,\"en\":\"M\"}", false},
        {"\"M\"", false},
        {"{\"username\":\"\\M\",\"token\":\"x\"}", false}, /* the escape eats its first letter */
        {"{\"token\":\"\\M\"}", false},
        {"{\"token\":\"x\\nM\"}", false},
        {"{\"token\":\"\\u00M\"}", false},
        {"{\"token\":\"M\"", false},
        {"{\"token\":\"M\"}}", false},
        {"{\"token\":\"M\"} {}", false},
        {"{\"token\":\"M\",}", false},
        {"{\"token\":\"M\" \"x\":1}", false},
        {"{token:\"M\"}", false},
        {"{'username':\"M\"}", false},
        {"{\"token\":M}", false},
        {"{\"token\":\"M\n\"}", false},
        {"{\"token\":\"M\",\"x\":/*\"*/1}", false},
        {"{\"x\":\"y\\\",\"token\":\"M\"}", false},
        {"", true},
        {"M", false},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        if (holds(PLACEMENT_JSON, rows[i].text) != rows[i].good)
            printf("# %s\n", rows[i].text);
        CU_ASSERT_EQUAL(holds(PLACEMENT_JSON, rows[i].text), rows[i].good);
    }
    char deep[200];
    snprintf(deep, sizeof deep, "%.*s", 40, "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[");
    snprintf(deep + 40, sizeof deep - 40, "\"M\"");
    CU_ASSERT_FALSE(holds(PLACEMENT_JSON, deep));
}

static void test_forms(void)
{
    static const struct {
        const char *text;
        bool good;
    } rows[] = {
        {"token=M", true},         {"a=1&refresh_token=xM&b=2", true},
        {"token=M&token=M", true}, {"a=1;b=2&token=M", true},
        {"user=M", false},         {"token=M&user=M", false},
        {"M=token", false},        {"M", false},
        {"Token=M", false},        {"%74oken=M", false},
        {"token =M", false},       {"user=x;token=M", false},
        {"token=x;user=M", false}, {"token=M;user=x", false},
        {"/token=M", false},       {"&&=M", false},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        if (holds(PLACEMENT_FORM, rows[i].text) != rows[i].good)
            printf("# %s\n", rows[i].text);
        CU_ASSERT_EQUAL(holds(PLACEMENT_FORM, rows[i].text), rows[i].good);
    }
}

/* ---- against another reader ---- */

static unsigned pick(unsigned *state, unsigned n)
{
    *state = *state * 1103515245u + 12345u;
    return (*state >> 16 & 0x7fff) % n;
}

static bool anywhere(const json_t *v)
{
    const char *key;
    json_t *one;
    size_t i;
    bool found = json_is_string(v) && strstr(json_string_value(v), mark);
    json_array_foreach(v, i, one) found = found || anywhere(one);
    json_object_foreach((json_t *)(uintptr_t)v, key, one) found =
        found || strstr(key, mark) || anywhere(one);
    return found;
}

/* Random pieces of JSON, whole or not: where it says yes, jansson reads the same text, and with
 * what stands at /token and /0 taken out there is no mark left. */
static void test_random(void)
{
    static const char *const pieces[] = {"{",
                                         "}",
                                         "[",
                                         "]",
                                         ",",
                                         ":",
                                         "\"token\"",
                                         "\"user\"",
                                         "\"M\"",
                                         "\"xM\"",
                                         "\"\\M\"",
                                         "1",
                                         "null",
                                         " ",
                                         "\"token\":\"M\"",
                                         "\"user\":\"y\"",
                                         "\"user\":\"M\"",
                                         "{\"token\":\"M\"",
                                         "}"};
    unsigned state = 3, good = 0, bad = 0;
    for (int round = 0; round < 400000; round++) {
        char text[400] = "", whole[2000] = "";
        for (unsigned k = pick(&state, 9) + 1; k > 0; k--)
            snprintf(text + strlen(text), sizeof text - strlen(text), "%s",
                     pieces[pick(&state, ARRAY_LEN(pieces))]);
        if (strchr(text, 'M') == NULL)
            continue;
        if (!holds(PLACEMENT_JSON, text)) {
            bad++;
            continue;
        }
        for (const char *p = text; *p; p++)
            snprintf(whole + strlen(whole), sizeof whole - strlen(whole), "%.*s",
                     *p == 'M' ? (int)strlen(mark) : 1, *p == 'M' ? mark : p);
        good++;
        json_t *v = json_loads(whole, JSON_DECODE_ANY, NULL);
        if (v == NULL)
            printf("# %s\n", text);
        CU_ASSERT_PTR_NOT_NULL_FATAL(v);
        if (json_is_object(v))
            json_object_del(v, "token");
        else
            json_array_remove(v, 0);
        if (anywhere(v))
            printf("# %s\n", text);
        CU_ASSERT_FALSE(anywhere(v));
        json_decref(v);
    }
    printf("# %u held, %u refused\n", good, bad);
    CU_ASSERT(good > 200 && bad > 10000);
}

/* M stands for the mark. */
static enum placement_described described(const struct credential *c, enum placement_body kind,
                                          const char *text)
{
    struct injector_channel_marks marks = {.n = 1};
    struct buf b;
    buf_init(&b, 1 << 20);
    snprintf(marks.text[0], sizeof marks.text[0], "%s", mark);
    for (; *text; text++)
        CU_ASSERT_EQUAL_FATAL(*text == 'M' ? buf_append_str(&b, mark) : buf_append(&b, text, 1), 0);
    enum placement_described r = placement_slots_beside(c, kind, &marks, buf_slice(&b));
    buf_free(&b);
    return r;
}

/* Nothing else stands there than what is named, once and as it is. */
struct beside_row {
    const char *text;
    enum placement_described want;
};

#define YES(text)                 \
    {                             \
        text, PLACEMENT_WITH_MARK \
    }
#define WITHOUT(text)           \
    {                           \
        text, PLACEMENT_WITHOUT \
    }
#define NO(text)                      \
    {                                 \
        text, PLACEMENT_NOT_DESCRIBED \
    }
#define FIRST "{\"grant\":\"refresh\",\"v\":\"1\",\"token\":\"M\""

static const struct beside_row json_rows[] = {
    YES(FIRST "}"),
    YES(FIRST ",\"scope\":\"a b:c\"}"),
    YES("{\"gr\\u0061nt\":\"refresh\",\"v\":\"\\u0031\",\"token\":\"M\"}"), /* one to all */
    WITHOUT("{\"grant\":\"code\"}"),
    WITHOUT("{\"grant\":\"code\",\"c\":\"https://a.b/c?d=e\"}"),
    NO("{\"grant\":\"code\",\"token\":\"M\"}"),
    NO("{\"grant\":\"code\",\"token\":\"theirs\"}"),
    NO("{\"grant\":\"code\",\"v\":\"1\"}"),
    NO("{\"grant\":\"refresh\",\"v\":\"1\"}"),
    NO("{\"grant\":\"refresh\",\"v\":\"1\",\"token\":\"theirs\"}"),
    NO("{\"grant\":\"refresh\",\"v\":\"1\",\"token\":\"theirs.M\"}"),
    NO("{\"grant\":\"refresh\",\"v\":\"1\",\"token\":\"M \"}"),
    NO("{\"grant\":\"refresh\",\"v\":\"1\",\"token\":null}"),
    NO("{\"grant\":\"refresh\",\"token\":\"M\"}"),
    NO("{\"grant\":\"refresh\",\"v\":1,\"token\":\"M\"}"),
    NO("{\"grant\":\"refresh\",\"v\":\"12\",\"token\":\"M\"}"),
    NO("{\"grant\":\"none\",\"v\":\"1\",\"token\":\"M\"}"),
    NO(FIRST ",\"grant\":\"refresh\"}"),
    NO(FIRST ",\"gr\\u0061nt\":\"code\"}"),
    NO(FIRST ",\"Grant\":\"code\"}"),
    NO(FIRST ",\"to\\u212aen\":\"x\"}"), /* some fold this K */
    NO(FIRST ",\"\u017fcope\":\"x\"}"),  /* and this s */
    NO(FIRST ",\"grant[type\":\"code\"}"),
    NO(FIRST ",\"grant.type\":\"code\"}"),
    NO(FIRST ",\"grant\\u0000\":\"code\"}"),
    NO(FIRST ",\"[]\":\"code\"}"),
    NO(FIRST ",\"\":\"code\"}"),
    NO(FIRST ",\"other\":\"x\"}"),
    NO(FIRST ",\"scope\":\"\\n\"}"),
    NO(FIRST ",\"scope\":\"\\u00e9\"}"),
    NO(FIRST ",\"scope\":[\"a\"]}"),
    NO(FIRST ",\"scope\":1}"),
    NO(FIRST "} x"),
    NO("[\"grant\",\"refresh\"]"),
    NO("{}"),
    NO(""),
};

static const struct beside_row form_rows[] = {
    YES("grant=refresh&v=1&token=M&scope=a%20b+c"),
    YES("&v=1&&token=M&grant=refresh&"),
    WITHOUT("grant=code&c=a%3Db"),
    NO("grant=refresh&v=1"),
    NO("grant=refresh&token=M"),
    NO("grant=refresh&v=1&token=theirs"),
    NO("grant=refresh&v=1&token=theirs.M"),
    NO("grant=refresh&v=1&token=M+"),
    NO("grant=refresh&v=1&token=M&grant=refresh"),
    NO("grant=refresh&v=1&token=M&token=M"),
    NO("grant=refresh&v=1&token=M&Grant=code"),
    NO("grant=refresh&v=1&token=M&gr%61nt=code"),
    NO("grant=refresh&v=1&token=M&grant+=code"),
    NO("grant=refresh&v=1&token=M;grant=code"),
    NO("grant=refresh&v=1&token=M&scope=1;grant=code"),
    NO("grant=refresh&v=1&token=M&scope=\n"),
    NO("grant=refresh&v=1&token=M&=x"),
    NO("grant=refresh&v=1&token=M&scope"),
    NO("grant=refresh&v=1&token=M&other=x"),
    NO(""),
};

#undef YES
#undef WITHOUT
#undef NO
#undef FIRST

static void all_described(enum placement_body kind, const struct beside_row *rows, size_t n)
{
    static const struct credential c = {.slots = "/token\ntoken",
                                        .beside = "grant=refresh\nv=1\n?scope\n|\ngrant=code\n?c"};
    for (size_t i = 0; i < n; i++) {
        enum placement_described r = described(&c, kind, rows[i].text);
        if (r != rows[i].want)
            printf("# %s\n", rows[i].text);
        CU_ASSERT_EQUAL(r, rows[i].want);
    }
}

static void test_beside(void)
{
    static const struct beside_row none = {"grant=refresh&v=1&token=M", PLACEMENT_NOT_DESCRIBED};
    all_described(PLACEMENT_JSON, json_rows, ARRAY_LEN(json_rows));
    all_described(PLACEMENT_FORM, form_rows, ARRAY_LEN(form_rows));
    all_described(PLACEMENT_NO_BODY, &none, 1);
}

/* Of at most 64 fields. */
static void test_beside_many(void)
{
    char many[2000] = "token=M&grant=refresh", names[2000] = "grant=refresh";
    for (int n = 3; n <= 65; n++) {
        snprintf(many + strlen(many), sizeof many - strlen(many), "&a%d=1", n);
        snprintf(names + strlen(names), sizeof names - strlen(names), "\n?a%d", n);
        const struct credential c = {.slots = "token", .beside = names};
        CU_ASSERT_EQUAL(described(&c, PLACEMENT_FORM, many),
                        n <= 64 ? PLACEMENT_WITH_MARK : PLACEMENT_NOT_DESCRIBED);
        CU_ASSERT_EQUAL(described(&c, PLACEMENT_FORM, "grant=refresh"), PLACEMENT_NOT_DESCRIBED);
    }
}

/* Where servers differ in what they take a type for, it is none. */
static void test_types(void)
{
    static const struct {
        const char *text;
        enum media_form want;
    } rows[] = {
        {"application/json", MEDIA_TYPE_JSON},
        {"Application/JSON ; charset=UTF-8", MEDIA_TYPE_JSON},
        {"application/json; charset=\"utf-8\"", MEDIA_TYPE_JSON},
        {"application/json;", MEDIA_TYPE_JSON},
        {"application/json; odata=verbose", MEDIA_TYPE_JSON},
        {"application/vnd.api+json", MEDIA_TYPE_JSON},
        {"application/x-www-form-urlencoded", MEDIA_TYPE_FORM},
        {"application/x-www-form-urlencoded; charset=utf-8", MEDIA_TYPE_FORM},
        {"application/x-www-form-urlencoded,x/y+json", MEDIA_TYPE_OTHER},
        {"application/x-www-form-urlencoded x/y+json", MEDIA_TYPE_OTHER},
        {"application/x-www-form-urlencoded+json", MEDIA_TYPE_OTHER},
        {"application/x-Form+json", MEDIA_TYPE_OTHER},
        {"multipart/form-data+json", MEDIA_TYPE_OTHER},
        {"multipart/x+json", MEDIA_TYPE_OTHER},
        {"application/json, text/plain", MEDIA_TYPE_OTHER},
        {"application/json text/plain", MEDIA_TYPE_OTHER},
        {"application/json; charset=utf-7", MEDIA_TYPE_OTHER},
        {"application/json; charset=utf-8; charset=utf-8", MEDIA_TYPE_OTHER},
        {"application/json; charset", MEDIA_TYPE_OTHER},
        {"application/json; charset*=utf-7", MEDIA_TYPE_OTHER},
        {"application/json; charset =utf-7", MEDIA_TYPE_OTHER},
        {"application/json; boundary=a", MEDIA_TYPE_OTHER},
        {"application/json; a=\"b; charset=utf-7\"", MEDIA_TYPE_OTHER},
        {"application/json; a=b c", MEDIA_TYPE_OTHER},
        {"a/b/c+json", MEDIA_TYPE_OTHER},
        {"/x+json", MEDIA_TYPE_OTHER},
        {"a/+json", MEDIA_TYPE_OTHER},
        {"a+json", MEDIA_TYPE_OTHER},
        {"+json", MEDIA_TYPE_OTHER},
        {"text/plain", MEDIA_TYPE_OTHER},
        {"", MEDIA_TYPE_OTHER},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        if (media_type_form(slice_str(rows[i].text)) != rows[i].want)
            printf("# %s\n", rows[i].text);
        CU_ASSERT_EQUAL(media_type_form(slice_str(rows[i].text)), rows[i].want);
    }
}

void suite_placement_slots(void)
{
    CU_pSuite s = CU_add_suite("fill_slots", NULL, NULL);
    CU_add_test(s, "JSON: one of the fields, and no other", test_json);
    CU_add_test(s, "forms: one of the fields, and no other", test_forms);
    CU_add_test(s, "what stands beside", test_beside);
    CU_add_test(s, "fields are bounded", test_beside_many);
    CU_add_test(s, "media types", test_types);
    CU_add_test(s, "generated texts against another reader", test_random);
}

void tap_suites(void)
{
    suite_placement_slots();
}
