/* Where the injector puts a secret, and what it refuses to put anywhere: bytes that would end a
 * field or a cookie, a slot that a gate left filled, placeholders that are not as many as the rule
 * says. */
#include "placement.h"
#include "http1_head.h"
#include "tap_main.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MARK "dwp0123456789abcdefghijklmnop"

static struct policy *policy;
static const struct rule *rule;

static void use(const char *with)
{
    struct err err = {0};
    char *json = NULL;
    policy_free(policy);
    CU_ASSERT_FATAL(
        asprintf(&json, "{\"policy\":\"p\",\"rules\":[{'allow':'a.com','with':{%s}}]}", with) > 0);
    for (char *c = json; *c; c++)
        if (*c == '\'')
            *c = '"';
    policy = policy_parse(json, strlen(json), &err);
    free(json);
    if (policy == NULL)
        printf("# %s: %s\n", with, err.text);
    CU_ASSERT_PTR_NOT_NULL_FATAL(policy);
    rule = policy_rule(policy, 0);
}

struct filled {
    struct placement placement;
    struct head head;
    struct body_buffer body;
    struct quota gathered;
    const char *begun; /* what placement_begin said, or placement_check; NULL: nothing */
    int applied;
};

static void parse(struct head *h, const char *target, const char *fields, size_t body)
{
    static const struct limits limits = {.head_bytes = 32768, .headers = 100, .target_bytes = 8192};
    char text[2048], length[64] = "";
    struct refusal why;
    if (body)
        snprintf(length, sizeof length, "Content-Length: %zu\r\n", body);
    snprintf(text, sizeof text, "POST %s HTTP/1.1\r\nHost: a.com\r\n%s%s\r\n", target, length,
             fields);
    CU_ASSERT_EQUAL_FATAL(http1_parse_request(h, slice_str(text), &limits, &why), 0);
}

static void run(struct filled *f, const char *target, const char *fields, const char *body,
                struct slice secret)
{
    static struct injector_channel_marks marks = {.n = 1, .text = {MARK}};
    memset(f, 0, offsetof(struct filled, head));
    memset(&f->body, 0, sizeof f->body);
    parse(&f->head, target, fields, strlen(body));
    f->applied = 1;
    f->gathered = (struct quota)BODY_BUFFER_QUOTA;
    f->begun = placement_begin(&f->placement, rule->credential, &marks, &f->head);
    if (f->begun)
        return;
    size_t max = placement_body_limit(&f->placement, &f->head);
    if (max) {
        body_buffer_begin(&f->body, max, &f->gathered, "");
        body_buffer_data(&f->body, body, strlen(body));
        body_buffer_end(&f->body);
    }
    f->begun = placement_check(&f->placement, &f->head, &f->body);
    if (f->begun == NULL)
        f->applied = placement_apply(&f->placement, &f->head, &f->body, secret);
}

static void done(struct filled *f)
{
    placement_free(&f->placement);
    body_buffer_free(&f->body);
    http_head_free(&f->head);
}

static void refuses(const char *target, const char *fields, const char *body, struct slice secret,
                    const char *code)
{
    struct filled f;
    run(&f, target, fields, body, secret);
    if (code)
        CU_ASSERT_STRING_EQUAL(f.begun ? f.begun : "begun", code);
    if (code == NULL && f.applied != -1)
        printf("# %s %s: %.*s goes in\n", target, fields, SL(secret));
    if (code == NULL)
        CU_ASSERT_EQUAL(f.applied, -1);
    done(&f);
}

static void field_is(struct filled *f, const char *name, const char *value)
{
    const struct field *x = http_head_find(&f->head, name);
    CU_ASSERT_EQUAL(http_head_count(&f->head, name), 1);
    CU_ASSERT_EQUAL(f->applied, 0);
    if (x == NULL || !slice_eq_str(x->value, value))
        printf("# %s: %.*s, not %s\n", name, x ? (int)x->value.n : 0, x ? x->value.p : "", value);
    CU_ASSERT(x && slice_eq_str(x->value, value));
}

/* A secret of two fields goes where the gate left them, into both only where the rule has both. */
static void two_fields(void)
{
    static const char *const words[] = {"or", "and"};
    for (int both = 0; both < 2; both++) {
        char with[200];
        struct filled f;
        snprintf(with, sizeof with, "'header':{'name':'x-key','secret':'k','%s':'bearer'}",
                 words[both]);
        use(with);
        run(&f, "/", "X-Key: \r\nAuthorization: \r\n", "", SLICE("s3cret"));
        field_is(&f, "authorization", "Bearer s3cret");
        if (both)
            field_is(&f, "x-key", "s3cret");
        else
            CU_ASSERT_EQUAL(http_head_count(&f.head, "x-key"), 0);
        done(&f);
        run(&f, "/", "", "", SLICE("s3cret"));
        field_is(&f, "x-key", "s3cret");
        CU_ASSERT_EQUAL(http_head_count(&f.head, "authorization"), 0);
        done(&f);
    }
}

/* Every byte that is none of a field's value, in a secret for a field. */
static void test_field(void)
{
    struct filled f;
    use("'bearer':'s'");
    run(&f, "/", "Authorization: Bearer gate\r\nAuthorization: x\r\n", "", SLICE("tok"));
    field_is(&f, "authorization", "Bearer tok");
    done(&f);
    for (int c = 0; c < 256; c++) {
        char secret[3] = {'a', (char)c, 'b'};
        bool bad = (c < 0x20 && c != '\t') || c == 0x7f;
        if (bad)
            refuses("/", "", "", (struct slice){secret, 3}, NULL);
    }
    use("'header':{'name':'x-key','secret':'s'}");
    run(&f, "/", "X-Key: gate\r\n", "", SLICE("tok"));
    field_is(&f, "x-key", "tok");
    done(&f);
    refuses("/", "", "", SLICE("a\r\nx-evil: 1"), NULL);
    use("'basic':{'user':'u','password':'s'}");
    run(&f, "/", "", "", SLICE("a\r\nb"));
    field_is(&f, "authorization", "Basic dTphDQpi");
    done(&f);
}

static void test_cookie(void)
{
    struct filled f;
    use("'cookie':{'name':'sid','secret':'s'}");
    run(&f, "/", "", "", SLICE("v"));
    field_is(&f, "cookie", "sid=v");
    done(&f);
    run(&f, "/", "Cookie: a=b\r\n", "", SLICE("v"));
    field_is(&f, "cookie", "a=b; sid=v");
    done(&f);
    refuses("/", "Cookie: a=b; sid=gate\r\n", "", SLICE("v"), "grant_request");
    refuses("/", "Cookie: sid=gate\r\n", "", SLICE("v"), "grant_request");
    for (int c = 0; c < 256; c++) {
        char secret[3] = {'a', (char)c, 'b'};
        bool good = c > 0x20 && c < 0x7f && !strchr("\",;\\", c);
        run(&f, "/", "", "", (struct slice){secret, 3});
        CU_ASSERT_EQUAL(f.applied, good ? 0 : -1);
        done(&f);
    }
}

static void query_is(const char *target, const char *want, struct slice secret)
{
    struct filled f;
    run(&f, target, "", "", secret);
    CU_ASSERT_EQUAL(f.applied, 0);
    CU_ASSERT(slice_eq_str(f.head.query, want));
    done(&f);
}

static void test_query(void)
{
    use("'query':{'name':'key','secret':'s'}");
    query_is("/", "key=v", SLICE("v"));
    query_is("/?a=b", "a=b&key=v", SLICE("v"));
    query_is("/", "key=%26x%3D1%23%20%0D%0A%00", (struct slice){"&x=1# \r\n\0", 9});
    refuses("/?key=gate", "", "", SLICE("v"), "grant_request");
    refuses("/?a=b&key=gate", "", "", SLICE("v"), "grant_request");
    refuses("/?%6bey=gate", "", "", SLICE("v"), "grant_request");
}

static void test_marks(void)
{
    struct filled f;
    use("'placeholder':{'secret':'s','in':'header','name':'x-key'}");
    run(&f, "/", "X-Key: a " MARK " b\r\n", "", SLICE("v"));
    field_is(&f, "x-key", "a v b");
    done(&f);
    refuses("/", "X-Key: " MARK "\r\n", "", SLICE("v\r\nx-evil: 1"), NULL);
    refuses("/", "X-Key: none\r\n", "", SLICE("v"), "placeholder_count");
    refuses("/", "X-Key: " MARK MARK "\r\n", "", SLICE("v"), "placeholder_count");
    refuses("/", "X-Other: " MARK "\r\n", "", SLICE("v"), "placeholder_count");
    use("'placeholder':{'secret':'s','in':'path'}");
    run(&f, "/bot" MARK "/send", "", "", SLICE("12:ab/c"));
    CU_ASSERT(f.applied == 0 && slice_eq_str(f.head.path, "/bot12:ab%2Fc/send"));
    done(&f);
    refuses("/" MARK "/x", "", "", SLICE(".."), NULL);
    refuses("/x?" MARK, "", "", SLICE("v"), "placeholder_count");
    use("'placeholder':{'secret':'s','in':'query','name':'k'}");
    query_is("/?a=1&k=" MARK "&b=2", "a=1&k=v%26x%3D1&b=2", SLICE("v&x=1"));
    refuses("/?other=" MARK, "", "", SLICE("v"), "placeholder_count");
}

static void body_is(const char *type, const char *body, struct slice secret, const char *want)
{
    struct filled f;
    run(&f, "/", type, body, secret);
    CU_ASSERT_EQUAL(f.applied, 0);
    if (f.applied == 0) {
        CU_ASSERT(slice_eq_str(buf_slice(&f.body.body), want));
        CU_ASSERT_EQUAL(f.head.length, strlen(want));
    }
    done(&f);
}

static void test_body(void)
{
    static const char json[] = "Content-Type: application/json\r\n";
    use("'placeholder':{'secret':'s','in':{'body':['/k','k']}}");
    body_is(json, "{\"k\":\"" MARK "\"}", SLICE("a\"\\b"), "{\"k\":\"a\\\"\\\\b\"}");
    body_is("Content-Type: application/vnd.x+json; charset=utf-8\r\n", "{\"k\":\"" MARK "\"}",
            SLICE("v"), "{\"k\":\"v\"}");
    body_is("Content-Type: application/x-www-form-urlencoded\r\n", "k=" MARK "&b=1", SLICE("v&x=1"),
            "k=v%26x%3D1&b=1");
    refuses("/", "Content-Type: text/plain\r\n", MARK, SLICE("v"), "placeholder_count");
    body_is("", "{\"k\":\"" MARK "\"}", SLICE("v"), "{\"k\":\"v\"}");
    refuses("/", "", "k=" MARK, SLICE("v"), "secret_blocked");
    refuses("/", "Content-Encoding: gzip\r\n", "{\"k\":\"" MARK "\"}", SLICE("v"),
            "placeholder_count");
    refuses("/", "Content-Type: application/json\r\nContent-Encoding: gzip\r\n", MARK, SLICE("v"),
            "placeholder_count");
    refuses("/", "Content-Type: application/json\r\nContent-Type: text/plain\r\n", MARK, SLICE("v"),
            "placeholder_count");
    use("'placeholder':{'secret':'s','in':{'body':'k'}}");
    refuses("/", "", "k=" MARK, SLICE("v"), "placeholder_count");
    use("'placeholder':{'secret':'s','in':{'body':['k','/k']}}");
    body_is("", "{\"k\":\"" MARK "\"}", SLICE("v"), "{\"k\":\"v\"}");
}

/* What the vault answers stands in a field: hexadecimal digits, as many as there are. */
static void test_signature(void)
{
    struct filled f;
    char hex[AWS_HEX + 1];
    use("'aws':'s'");
    memset(&f, 0, offsetof(struct filled, head));
    parse(&f.head, "/", "", 0);
    f.placement.credential = rule->credential;
    memset(hex, 'a', sizeof hex);
    CU_ASSERT_EQUAL(placement_signed(&f.placement, &f.head, (struct slice){hex, AWS_HEX - 1}), -1);
    CU_ASSERT_EQUAL(placement_signed(&f.placement, &f.head, (struct slice){hex, AWS_HEX + 1}), -1);
    hex[9] = '\n';
    CU_ASSERT_EQUAL(placement_signed(&f.placement, &f.head, (struct slice){hex, AWS_HEX}), -1);
    http_head_free(&f.head);
}

static size_t room_of(void *self UNUSED)
{
    return 100;
}

static void take_data(void *self, const void *p UNUSED, size_t n)
{
    *(size_t *)self += n;
}

static void take_end(void *self)
{
    *(size_t *)self += 1000;
}

static void test_again(void)
{
    static const struct upstream_ops ops = {.room = room_of, .data = take_data, .end = take_end};
    struct quota total = BODY_BUFFER_QUOTA;
    struct body_buffer b;
    size_t came = 0;
    struct upstream up = {&ops, &came};
    body_buffer_begin(&b, 100, &total, "s");
    body_buffer_data(&b, "0123456789", 10);
    body_buffer_end(&b);
    body_buffer_keep(&b);
    CU_ASSERT_TRUE(body_buffer_pump(&b, up));
    CU_ASSERT_EQUAL(came, 1010);
    CU_ASSERT_EQUAL(total.used, 10); /* for a second time */
    body_buffer_again(&b);
    CU_ASSERT_TRUE(body_buffer_pump(&b, up));
    CU_ASSERT_EQUAL(came, 2020);
    CU_ASSERT_EQUAL(total.used, 0);
    body_buffer_free(&b);
}

static int teardown(void)
{
    policy_free(policy);
    return 0;
}

void tap_suites(void)
{
    CU_pSuite s = CU_add_suite("fill", NULL, teardown);
    CU_add_test(s, "a field", test_field);
    CU_add_test(s, "a cookie", test_cookie);
    CU_add_test(s, "a parameter", test_query);
    CU_add_test(s, "placeholders in the head", test_marks);
    CU_add_test(s, "placeholders in a body", test_body);
    CU_add_test(s, "two fields", two_fields);
    CU_add_test(s, "a signature", test_signature);
    CU_add_test(s, "a body that is sent twice", test_again);
}
