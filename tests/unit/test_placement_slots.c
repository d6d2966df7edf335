/* Fields of bodies into which a secret may go: marks anywhere else, or where two readers could see
 * them in two places, are refused. */
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

/* What else has to stand there, once and as it is. */
static void test_beside(void)
{
    static const struct credential c = {.beside = "grant=refresh\nv=1"};
    static const struct {
        enum placement_body kind;
        const char *text;
        bool good;
    } rows[] = {
        {PLACEMENT_JSON,
         "{\"grant\":\"refresh\",\"v\":\"1\",\"token\":\"x\",\"n\":[{\"grant\":1}]}", true},
        {PLACEMENT_JSON, "{\"gr\\u0061nt\":\"refresh\",\"v\":\"\\u0031\"}",
         true}, /* the same to all */
        {PLACEMENT_JSON, "{\"grant\":\"refresh\"}", false},
        {PLACEMENT_JSON, "{\"grant\":\"refresh\",\"v\":1}", false},
        {PLACEMENT_JSON, "{\"grant\":\"refresh\",\"v\":\"12\"}", false},
        {PLACEMENT_JSON, "{\"grant\":\"code\",\"v\":\"1\"}", false},
        {PLACEMENT_JSON, "{\"grant\":\"code\",\"grant\":\"refresh\",\"v\":\"1\"}", false},
        {PLACEMENT_JSON, "{\"grant\":\"refresh\",\"gr\\u0061nt\":\"code\",\"v\":\"1\"}", false},
        {PLACEMENT_JSON, "{\"grant\":\"refresh\",\"Grant\":\"code\",\"v\":\"1\"}", false},
        {PLACEMENT_JSON, "{\"grant\":\"refresh\",\"v\":\"1\",\"token\":1,\"TOKEN\":2}", false},
        {PLACEMENT_JSON, "{\"grant\":\"refresh\",\"v\":\"1\"} x", false},
        {PLACEMENT_JSON, "[\"grant\",\"refresh\"]", false},
        {PLACEMENT_JSON, "", false},
        {PLACEMENT_FORM, "grant=refresh&v=1&token=a%20b+c", true},
        {PLACEMENT_FORM, "v=1&grant=refresh&", true},
        {PLACEMENT_FORM, "grant=refresh", false},
        {PLACEMENT_FORM, "grant=refresh&v=1&grant=code", false},
        {PLACEMENT_FORM, "grant=refresh&v=1&Grant=code", false},
        {PLACEMENT_FORM, "grant=refresh&v=1&gr%61nt=code", false},
        {PLACEMENT_FORM, "grant=refresh&v=1&grant+=code", false},
        {PLACEMENT_FORM, "grant=refresh&v=1;grant=code", false},
        {PLACEMENT_FORM, "grant=refresh&v=1&x=1;grant=code", false},
        {PLACEMENT_FORM, "grant=refresh&v=1&=x", false},
        {PLACEMENT_FORM, "grant=refresh&v=1&grant", false},
        {PLACEMENT_FORM, "", false},
        {PLACEMENT_NO_BODY, "grant=refresh&v=1", false},
    };
    char many[2000] = "grant=refresh&v=1";
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        bool r = placement_slots_beside(&c, rows[i].kind, slice_str(rows[i].text));
        if (r != rows[i].good)
            printf("# %s\n", rows[i].text);
        CU_ASSERT_EQUAL(r, rows[i].good);
    }
    for (int n = 2; n <= 65; n++) { /* of at most 64 fields */
        CU_ASSERT_EQUAL(placement_slots_beside(&c, PLACEMENT_FORM, slice_str(many)), n <= 64);
        snprintf(many + strlen(many), sizeof many - strlen(many), "&a%d=1", n);
    }
}

void suite_placement_slots(void)
{
    CU_pSuite s = CU_add_suite("fill_slots", NULL, NULL);
    CU_add_test(s, "JSON: one of the fields, and no other", test_json);
    CU_add_test(s, "forms: one of the fields, and no other", test_forms);
    CU_add_test(s, "what stands beside", test_beside);
    CU_add_test(s, "generated texts against another reader", test_random);
}

void tap_suites(void)
{
    suite_placement_slots();
}
