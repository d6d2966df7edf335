/* Redaction of a secret in streams: each form, every split, overlaps, near misses, bounds; against
 * a naive reference; sets kept by value. */
#include "scrub_cache.h"
#include "tap_main.h"

#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

void suite_scrub(void);

/* The set of one secret. */
static struct scrub_set *cached(struct scrub_cache *c, const char *name, struct secret *value,
                                const char *user)
{
    return scrub_cache_get(c, &(struct scrub_source){name, user, value}, 1);
}

static const char secret[] = "ghp_Zk3/x+Qw9&\"<v1~Tq8\\m5é='b7 c%K2";
static const char plain[] = "sk-proj-3fA9xLq0ZbT7mYw2Rk5Vd8";
static const char token[] =
    "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJtZUBkb29yLmV4YW1wbGUifQ.c2lnbmVkLWJ5LWl0cy12ZW5kb3I";

static struct scrub_set *set_of(const char *value, const char *user)
{
    struct scrub_forms f;
    CU_ASSERT_EQUAL_FATAL(scrub_forms_make(&f, slice_str(value), user), 0);
    struct scrub_set *s = scrub_set_new(&f, "key");
    CU_ASSERT_PTR_NOT_NULL_FATAL(s);
    scrub_forms_free(&f);
    return s;
}

/* in fed in pieces of `step` bytes, each in memory of its own; what is held is checked. */
static void feed_all(struct scrub_set *set, struct slice in, size_t step, struct buf *out,
                     uint64_t *hits)
{
    struct scrub *s = scrub_new(set);
    CU_ASSERT_PTR_NOT_NULL_FATAL(s);
    struct slice got;
    size_t fed = 0;
    while (fed < in.n) {
        size_t n = in.n - fed < step ? in.n - fed : step;
        char *piece = malloc(n);
        memcpy(piece, in.p + fed, n);
        size_t held = scrub_held(s);
        CU_ASSERT_EQUAL_FATAL(scrub_feed(s, (struct slice){piece, n}, &got), 0);
        CU_ASSERT_EQUAL_FATAL(got.n + scrub_held(s), held + n);
        CU_ASSERT_FATAL(scrub_held(s) < scrub_set_longest(set));
        CU_ASSERT_EQUAL_FATAL(buf_append_slice(out, got), 0);
        free(piece);
        fed += n;
    }
    CU_ASSERT_EQUAL_FATAL(scrub_end(s, &got), 0);
    CU_ASSERT_EQUAL_FATAL(buf_append_slice(out, got), 0);
    CU_ASSERT_EQUAL(scrub_held(s), 0);
    *hits = scrub_hits(s);
    scrub_free(s);
}

static void replace(char *p, size_t n, const char *text)
{
    for (size_t i = 0; i < n; i++)
        p[i] = i < strlen(text) ? text[i] : '*';
}

/* ---- each form, written here by hand or by what other programs print ---- */

struct shape {
    const char *what, *value, *user, *text;
};

static const struct shape shapes[] = {
    {"raw", plain, NULL, "sk-proj-3fA9xLq0ZbT7mYw2Rk5Vd8"},
    {"base64+0", plain, NULL, "c2stcHJvai0zZkE5eExxMFpiVDdtWXcyUms1VmQ4"},
    {"basic", plain, "x-access-token",
     "eC1hY2Nlc3MtdG9rZW46c2stcHJvai0zZkE5eExxMFpiVDdtWXcyUms1VmQ4"},
    {"basic url", "abc>>>???~~~xyz0123", "u", "dTphYmM-Pj4_Pz9-fn54eXowMTIz"},
    {"base64 in JSON", "abc>>>????~~xyz0123", "u", "dTphYmM+Pj4\\/Pz8\\/fn54eXowMTIz"},
    {"percent usual", "a/b+c=d e%f0123456", NULL, "a%2Fb%2Bc%3Dd%20e%25f0123456"},
    {"percent usual lower", "a/b+c=d e%f0123456", NULL, "a%2fb%2bc%3dd%20e%25f0123456"},
    {"percent of a path", "a/b+c=d e%f0123456", NULL, "a/b%2Bc%3Dd%20e%25f0123456"},
    {"percent of JavaScript", "a!b*c'd(e)f0123456", NULL, "a!b*c'd(e)f0123456"},
    {"form", "a/b+c=d e%f0123456", NULL, "a%2Fb%2Bc%3Dd+e%25f0123456"},
    {"form with ~", "a/b+c=d e~f0123456", NULL, "a%2Fb%2Bc%3Dd+e~f0123456"},
    {"form without ~", "a/b+c=d e~f0123456", NULL, "a%2Fb%2Bc%3Dd+e%7Ef0123456"},
    {"JSON", "a\"b\\c/d0123456789", NULL, "a\\\"b\\\\c/d0123456789"},
    {"JSON with slashes", "a\"b\\c/d0123456789", NULL, "a\\\"b\\\\c\\/d0123456789"},
    {"JSON for HTML", "a<b>c&d0123456789", NULL, "a\\u003cb\\u003ec\\u0026d0123456789"},
    {"HTML", "a<b>c&d\"e'0123456789", NULL, "a&lt;b&gt;c&amp;d&quot;e&#39;0123456789"},
    {"claims of a token", token, NULL, "eyJzdWIiOiJtZUBkb29yLmV4YW1wbGUifQ"},
    {"claims of a token whose head has lines",
     "ewogICJhbGciOiAiUlMyNTYiCn0.eyJzdWIiOiJtZUBkb29yLmV4YW1wbGUifQ.c2lnbmVkLWJ5LWl0cy12ZW5kb3I",
     NULL, "eyJzdWIiOiJtZUBkb29yLmV4YW1wbGUifQ"},
    {"signature of a token", token, NULL, "c2lnbmVkLWJ5LWl0cy12ZW5kb3I"},
    {"HTML hex quote", "a<b>c&d\"e'0123456789", NULL, "a&lt;b&gt;c&amp;d&quot;e&#x27;0123456789"},
    {"Go: a segment", "ab+cd/efgh1234567==", NULL, "ab+cd%2Fefgh1234567=="},
    {"Go: a password in a URL", "a@b:c;d0123456789", NULL, "a%40b%3Ac;d0123456789"},
    {"pchar", "a'b(c)/d0123456789", NULL, "a'b(c)%2Fd0123456789"},
    {"escape()", "ab+cd/efgh1234567==", NULL, "ab+cd/efgh1234567%3D%3D"},
    {"WHATWG: a password in a URL", "ab+cd/efgh1234567==", NULL, "ab+cd%2Fefgh1234567%3D%3D"},
    {"all but letters and digits", "sk-proj-aB3_x9.Qw~12345", NULL,
     "sk%2Dproj%2DaB3%5Fx9%2EQw%7E12345"},
    {"percent twice", "ab+cd/efgh1234567==", NULL, "ab%252Bcd%252Fefgh1234567%253D%253D"},
    {"\\x", "sk-proj-aB3_x9.Qw~12345", NULL,
     "\\x73\\x6b\\x2d\\x70\\x72\\x6f\\x6a\\x2d\\x61\\x42\\x33\\x5f\\x78\\x39\\x2e\\x51\\x77\\x7e\\x"
     "31\\x32\\x33\\x34\\x35"},
    {"OWASP: a script", "sk-proj-aB3_x9.Qw~12345", NULL, "sk\\x2Dproj\\x2DaB3_x9.Qw\\x7E12345"},
    {"Gson", "ab+cd/efgh1234567==", NULL, "ab+cd/efgh1234567\\u003d\\u003d"},
    {"Go: a script", "ab+cd/efgh1234567==", NULL, "ab\\u002bcd\\/efgh1234567=="},
    {".NET: JSON", "ab+cd/efgh1234567==", NULL, "ab\\u002Bcd/efgh1234567=="},
    {"Django: a script", "sk-proj-aB3_x9.Qw~12345", NULL, "sk\\u002Dproj\\u002DaB3_x9.Qw~12345"},
    {"Go: JSEscape", "ab+cd/efgh1234567==", NULL, "ab+cd/efgh1234567\\u003D\\u003D"},
    {"serialize-javascript", "ab+cd/efgh1234567==", NULL, "ab+cd\\u002Fefgh1234567=="},
    {"PHP: JSON for HTML", "a<b>'c/d0123456789", NULL, "a\\u003Cb\\u003E\\u0027c\\/d0123456789"},
    {"json_script", "a<b>'c/d0123456789", NULL, "a\\u003Cb\\u003E'c/d0123456789"},
    {"tojson", "a<b>'c/d0123456789", NULL, "a\\u003cb\\u003e\\u0027c/d0123456789"},
    {"addslashes", "a'b\"c\\d0123456789", NULL, "a\\'b\\\"c\\\\d0123456789"},
    {"repr", "a'b\"c\\d0123456789", NULL, "a\\'b\"c\\\\d0123456789"},
    {"a quote twice", "a'b\"c\\d0123456789", NULL, "a''b\"c\\d0123456789"},
    {"Go: HTML", "ab+cd/efgh1234567==", NULL, "ab&#43;cd/efgh1234567=="},
    {"Go: HTML without quotes", "ab+cd/efgh1234567==", NULL, "ab&#43;cd/efgh1234567&#61;&#61;"},
    {"Handlebars", "ab+cd/efgh1234567==", NULL, "ab+cd/efgh1234567&#x3D;&#x3D;"},
    {"Mustache", "ab+cd/efgh1234567==", NULL, "ab+cd&#x2F;efgh1234567&#x3D;&#x3D;"},
    {"validator", "ab+cd/efgh1234567==", NULL, "ab+cd&#x2F;efgh1234567=="},
    {".NET: HTML", "ab+cd/efgh1234567==", NULL, "ab&#x2B;cd/efgh1234567=="},
    {"PHP: HTML 5", "ab+cd/efgh1234567==", NULL, "ab&plus;cd&sol;efgh1234567&equals;&equals;"},
    {"entities", "sk-proj-aB3_x9.Qw~12345", NULL, "sk&#45;proj&#45;aB3&lowbar;x9&period;Qw~12345"},
    {"PHP: HTML", "a<b>c&d\"e'0123456789", NULL, "a&lt;b&gt;c&amp;d&quot;e&#039;0123456789"},
    {"XML", "a<b>c&d\"e'0123456789", NULL, "a&lt;b&gt;c&amp;d&quot;e&apos;0123456789"},
    {"XML: an attribute", "a<b>c&d\"e'0123456789", NULL, "a&lt;b&gt;c&amp;d&quot;e'0123456789"},
    {"HTML numbers for five", "a<b>c&d\"e'0123456789", NULL,
     "a&#60;b&#62;c&#38;d&#34;e&#39;0123456789"},
    {"AntiXSS", "ab+cd/efgh1234567==", NULL, "ab&#43;cd&#47;efgh1234567&#61;&#61;"},
    {"ESAPI", "ab+cd/efgh1234567==", NULL, "ab&#x2b;cd&#x2f;efgh1234567&#x3d;&#x3d;"},
    {"quoted-printable", "ab+cd/efgh1234567==", NULL, "ab+cd/efgh1234567=3D=3D"},
};

/* The whole text becomes the mark, in the same length, wherever it stands. */
static void check_hit(const char *what, const char *value, const char *user, struct slice form)
{
    struct scrub_set *set = set_of(value, user);
    char in[2048], want[2048];
    uint64_t hits;
    for (size_t lead = 0; lead < 20; lead++) {
        size_t n = 0;
        memset(in, '.', lead);
        n = lead;
        memcpy(in + n, form.p, form.n);
        n += form.n;
        memcpy(in + n, " tail", 5);
        n += 5;
        memcpy(want, in, n);
        replace(want + lead, form.n, "[REDACTED:key]");
        for (size_t step = 1; step <= n; step += step < 4 ? 1 : n) {
            struct buf out;
            buf_init(&out, sizeof in);
            feed_all(set, (struct slice){in, n}, step, &out, &hits);
            bool good = hits == 1 && slice_eq(buf_slice(&out), (struct slice){want, n});
            if (!good)
                printf("# %s, lead %zu, step %zu: %.*s\n", what, lead, step, SL(buf_slice(&out)));
            CU_ASSERT_FATAL(good);
            buf_free(&out);
        }
    }
    scrub_set_unref(set);
}

static void test_shapes(void)
{
    for (size_t i = 0; i < ARRAY_LEN(shapes); i++)
        check_hit(shapes[i].what, shapes[i].value, shapes[i].user, slice_str(shapes[i].text));
}

static void test_written(void)
{
    static const struct {
        const char *what, *format;
    } by_byte[] = {
        {"hex", "%02x"},       {"HEX", "%02X"},        {"percent", "%%%02x"},
        {"PERCENT", "%%%02X"}, {"JSON", "\\u%04x"},    {"JSON upper", "\\u%04X"},
        {"HTML", "&#%u;"},     {"HTML hex", "&#x%x;"}, {"HTML HEX", "&#x%X;"},
    };
    const char *values[] = {secret, plain};
    for (size_t v = 0; v < 2; v++) {
        char text[1024];
        size_t n;
        for (size_t i = 0; i < ARRAY_LEN(by_byte); i++) {
            n = 0;
            for (const char *p = values[v]; *p; p++) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
                n += (size_t)snprintf(text + n, sizeof text - n, by_byte[i].format,
                                      (unsigned)(unsigned char)*p);
#pragma GCC diagnostic pop
            }
            check_hit(by_byte[i].what, values[v], NULL, (struct slice){text, n});
        }
        n = strlen(values[v]) * 2; /* from the first byte to the last: in both byte orders */
        memset(text, 0, n);
        for (size_t i = 0; i < n / 2; i++)
            text[2 * i] = values[v][i];
        check_hit("UTF-16", values[v], NULL, (struct slice){text, n - 1});
        check_hit("raw", values[v], NULL, slice_str(values[v]));
    }
}

/* Base64 of anything that holds the value: no 16 characters in a row made of its bits are left. */
static void test_base64(void)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    struct scrub_set *set = set_of(secret, NULL);
    for (size_t lead = 0; lead < 7; lead++)
        for (size_t tail = 0; tail < 4; tail++) {
            unsigned char raw[128];
            char text[256];
            size_t n = lead + strlen(secret) + tail, k = 0;
            memset(raw, 'x', sizeof raw);
            memcpy(raw + lead, secret, strlen(secret));
            for (size_t bit = 0; bit < n * 8; bit += 6) {
                unsigned v = raw[bit / 8] << 8 | (bit / 8 + 1 < n ? raw[bit / 8 + 1] : 0);
                text[k++] = digits[v >> (10 - bit % 8) & 63];
            }
            size_t first = (lead * 8 + 5) / 6, end = (lead + strlen(secret)) * 8 / 6;
            char want[256];
            memcpy(want, text, k);
            replace(want + first, end - first, "[REDACTED:key]");
            CU_ASSERT_EQUAL(scrub_whole(set, text, k), 1);
            CU_ASSERT_EQUAL(memcmp(text, want, k), 0);
        }
    scrub_set_unref(set);
}

/* ---- splits, overlaps, near misses ---- */

static void test_splits(void)
{
    struct scrub_set *set = set_of(plain, NULL);
    char in[256], want[256];
    int n = snprintf(in, sizeof in, "{\"a\":\"sk-proj-3f%s\",\"b\":\"%ssk-\"}sk-proj-3fA9x", plain,
                     plain);
    memcpy(want, in, (size_t)n);
    replace(strstr(want, plain), strlen(plain), "[REDACTED:key]");
    replace(strstr(want, plain), strlen(plain), "[REDACTED:key]");
    for (size_t at = 0; at <= (size_t)n; at++)
        for (size_t to = at; to <= (size_t)n; to += 3) {
            struct scrub *s = scrub_new(set);
            struct slice out,
                in_parts[3] = {{in, at}, {in + at, to - at}, {in + to, (size_t)n - to}};
            char got[256];
            size_t k = 0;
            for (size_t i = 0; i < 3; i++) {
                CU_ASSERT_EQUAL_FATAL(scrub_feed(s, in_parts[i], &out), 0);
                memcpy(got + k, out.p, out.n);
                k += out.n;
            }
            CU_ASSERT_EQUAL_FATAL(scrub_end(s, &out), 0);
            memcpy(got + k, out.p, out.n);
            k += out.n;
            CU_ASSERT_FATAL(k == (size_t)n && memcmp(got, want, k) == 0 && scrub_hits(s) == 2);
            scrub_free(s);
        }
    scrub_set_unref(set);
}

static void whole(struct scrub_set *set, const char *in, const char *want, ssize_t hits)
{
    char text[256];
    size_t n = strlen(in);
    memcpy(text, in, n);
    CU_ASSERT_EQUAL(scrub_whole(set, text, n), hits);
    CU_ASSERT_EQUAL(memcmp(text, want, n), 0);
}

static void test_overlaps(void)
{
    struct scrub_set *set = set_of("abababababababab", NULL);
    whole(set, "xababababababababx", "x[REDACTED:key]**x", 1);
    whole(set, "xabababababababababx", "x[REDACTED:key]****x", 1);
    whole(set, "xabababababababax", "xabababababababax", 0);
    scrub_set_unref(set);
    set = set_of(plain, NULL);
    char twice[128], want[128];
    snprintf(twice, sizeof twice, "%s%s", plain, plain);
    snprintf(want, sizeof want, "%s%s", "[REDACTED:key]****************",
             "[REDACTED:key]****************");
    whole(set, twice, want, 2);
    scrub_set_unref(set);
    struct scrub_forms f; /* a name that is longer than the hit is cut */
    CU_ASSERT_EQUAL_FATAL(scrub_forms_make(&f, slice_str(plain), NULL), 0);
    set = scrub_set_new(&f, "a \"very\" long name of a secret\r\n");
    scrub_forms_free(&f);
    whole(set, plain, "[REDACTED:a__very__long_name_o", 1);
    scrub_set_unref(set);
}

/* The head of a token is that of many, and texts that only look like one have no parts. */
static void test_token_parts(void)
{
    struct scrub_set *set = set_of(token, NULL);
    whole(set, "eyJhbGciOiJSUzI1NiJ9", "eyJhbGciOiJSUzI1NiJ9", 0);
    scrub_set_unref(set);
    set = set_of("eyJhbGciOiJSUzI1NiJ9.no-claims-in-this-one", NULL);
    whole(set, "no-claims-in-this-one", "no-claims-in-this-one", 0);
    scrub_set_unref(set);
    set = set_of("sk-two.abcdefghijklmnopqrs.tuvwxyzabcdefghijk", NULL);
    whole(set, "abcdefghijklmnopqrs", "abcdefghijklmnopqrs", 0);
    scrub_set_unref(set);
}

static void test_near_misses(void)
{
    struct scrub_set *set = set_of(plain, "u");
    char text[4096], copy[4096];
    size_t n = strlen(plain);
    for (size_t i = 0; i < n; i++) { /* one byte off, anywhere */
        memset(text, '=', sizeof text);
        memcpy(text + 7, plain, n);
        text[7 + i] ^= 1;
        memcpy(copy, text, sizeof text);
        CU_ASSERT_EQUAL(scrub_whole(set, text, sizeof text), 0);
        CU_ASSERT_EQUAL(memcmp(text, copy, sizeof text), 0);
    }
    for (size_t i = 0; i < n; i++) /* reversed: no form of it */
        text[i] = plain[n - 1 - i];
    CU_ASSERT_EQUAL(scrub_whole(set, text, n), 0);
    struct scrub *s = scrub_new(set); /* what begins no form passes at once */
    struct slice out;
    const char *event = "data: {\"x\":1}\n\n";
    CU_ASSERT_EQUAL(scrub_feed(s, slice_str(event), &out), 0);
    CU_ASSERT(slice_eq_str(out, event) && scrub_held(s) == 0);
    CU_ASSERT_EQUAL(scrub_feed(s, slice_str("x: sk-pro"), &out), 0);
    CU_ASSERT(slice_eq_str(out, "x: ") && scrub_held(s) == 6);
    CU_ASSERT_EQUAL(scrub_feed(s, slice_str("j-3fA9xLq0ZbT7mYw2Rk5Vd8"), &out), 0);
    CU_ASSERT(out.n == n && scrub_held(s) == 0); /* and so does a hit that is whole */
    scrub_free(s);
    scrub_set_unref(set);
}

static void test_bounds(void)
{
    struct scrub_forms f;
    char *big = malloc(SCRUB_VALUE_MAX + 1);
    for (size_t i = 0; i <= SCRUB_VALUE_MAX; i++)
        big[i] = (char)('!' + i * 7 % 31 * (i % 3 + 1) % 90);
    CU_ASSERT_EQUAL(scrub_forms_make(&f, (struct slice){big, 15}, NULL), -1);
    scrub_forms_free(&f);
    CU_ASSERT_EQUAL(scrub_forms_make(&f, (struct slice){big, SCRUB_VALUE_MAX + 1}, NULL), -1);
    scrub_forms_free(&f);
    CU_ASSERT_EQUAL(scrub_forms_make(&f, (struct slice){big, SCRUB_VALUE_MAX}, "u"), 0);
    struct scrub_set *set = scrub_set_new(&f, "big");
    scrub_forms_free(&f);
    CU_ASSERT_PTR_NOT_NULL_FATAL(set);
    CU_ASSERT_EQUAL(scrub_set_longest(set), SCRUB_LONGEST);
    struct buf out;
    uint64_t hits;
    buf_init(&out, 1 << 20);
    feed_all(set, (struct slice){big, SCRUB_VALUE_MAX}, 1000, &out, &hits);
    CU_ASSERT(hits == 1 && buf_len(&out) == SCRUB_VALUE_MAX);
    buf_free(&out);
    scrub_set_unref(set);
    scrub_forms_init(&f);
    CU_ASSERT_PTR_NULL(scrub_set_new(&f, "none"));
    scrub_forms_free(&f);
    free(big);
}

/* ---- against a reference that looks everywhere ---- */

static uint32_t next_random(uint32_t *state)
{
    *state = *state * UINT32_C(1664525) + UINT32_C(1013904223);
    return *state >> 8;
}

static uint64_t reference(const struct scrub_forms *f, char *p, size_t n)
{
    struct {
        size_t start, end;
    } run[512];
    size_t runs = 0;
    for (size_t at = 0; at < n; at++) { /* by start; joined where they overlap */
        size_t len = 0;
        for (size_t i = 0; i < f->n; i++) {
            struct slice form = scrub_forms_get(f, i);
            if (form.n > len && form.n <= n - at && memcmp(p + at, form.p, form.n) == 0)
                len = form.n;
        }
        if (len == 0)
            continue;
        if (runs > 0 && at < run[runs - 1].end) {
            if (at + len > run[runs - 1].end)
                run[runs - 1].end = at + len;
        } else {
            run[runs].start = at;
            run[runs++].end = at + len;
        }
    }
    for (size_t r = 0; r < runs; r++)
        replace(p + run[r].start, run[r].end - run[r].start, "[REDACTED:r]");
    return runs;
}

static void random_text(uint32_t *seed, char *p, size_t n, unsigned letters)
{
    for (size_t i = 0; i < n; i++)
        p[i] = (char)('a' + next_random(seed) % letters);
}

/* Texts of few letters into which forms, and beginnings and ends of them, are put. */
static void random_round(uint32_t *seed)
{
    struct scrub_forms f;
    char form[64], in[600], want[600];
    unsigned letters = 1 + next_random(seed) % 3, many = 1 + next_random(seed) % 6;
    scrub_forms_init(&f);
    for (unsigned i = 0; i < many; i++) {
        size_t n = 16 + next_random(seed) % 30;
        random_text(seed, form, n, letters);
        CU_ASSERT_EQUAL_FATAL(scrub_forms_add(&f, (struct slice){form, n}), 0);
    }
    size_t n = next_random(seed) % sizeof in;
    random_text(seed, in, n, letters + next_random(seed) % 2);
    for (unsigned i = next_random(seed) % 12; i > 0; i--) {
        struct slice s = scrub_forms_get(&f, next_random(seed) % f.n);
        size_t cut = next_random(seed) % 3 ? 0 : next_random(seed) % s.n;
        s = (struct slice){s.p + cut, s.n - cut};
        size_t at = n ? next_random(seed) % n : 0;
        memcpy(in + at, s.p, s.n < n - at ? s.n : n - at);
    }
    memcpy(want, in, n);
    uint64_t expected = reference(&f, want, n);
    struct scrub_set *set = scrub_set_new(&f, "r");
    static const size_t steps[] = {1, 2, 7, 16, 33, 600};
    for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
        struct buf out;
        uint64_t hits;
        buf_init(&out, sizeof in);
        feed_all(set, (struct slice){in, n}, steps[i], &out, &hits);
        CU_ASSERT_FATAL(slice_eq(buf_slice(&out), (struct slice){want, n}));
        CU_ASSERT_EQUAL_FATAL(hits, expected);
        buf_free(&out);
    }
    scrub_set_unref(set);
    scrub_forms_free(&f);
}

static void test_random(void)
{
    uint32_t seed = 20;
    for (int i = 0; i < 1500; i++)
        random_round(&seed);
}

/* ---- speed: only what is far off fails ---- */

static double seconds_for(struct scrub_set *set, const char *unit, size_t total)
{
    enum { PIECE = 32 * 1024 };
    static char piece[PIECE];
    struct timespec a, b;
    struct scrub *s = scrub_new(set);
    struct slice out;
    for (size_t i = 0; i < PIECE; i++)
        piece[i] = unit[i % strlen(unit)];
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &a);
    for (size_t done = 0; done < total; done += PIECE)
        CU_ASSERT_EQUAL_FATAL(scrub_feed(s, (struct slice){piece, PIECE}, &out), 0);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &b);
    scrub_free(s);
    return (double)(b.tv_sec - a.tv_sec) + (double)(b.tv_nsec - a.tv_nsec) / 1e9;
}

static void test_speed(void)
{
    struct scrub_set *set = set_of(plain, "u"), *same = set_of("aaaaaaaaaaaaaaaaaaaaaaaaaab", "u");
    static const struct {
        const char *what, *unit;
        bool same;
    } cases[] = {
        {"JSON", "{\"id\":7,\"name\":\"a door is kept\",\"url\":\"https://example.com/x\"},",
         false},
        {"near hits", "sk-proj-3fA9xLq0ZbT7mYw2Rk5Vd9 736b2d70726f6a2d33664139784c7131", false},
        {"worst case", "aaaaaaaaaaaaaaaa", true},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        double t = seconds_for(cases[i].same ? same : set, cases[i].unit, 64 << 20);
        printf("# 64 MiB of %s: %.3f s\n", cases[i].what, t);
        CU_ASSERT(t < 20.0); /* sanitizers included; a quadratic search takes hours */
    }
    scrub_set_unref(set);
    scrub_set_unref(same);
}

/* ---- sets kept ---- */

static void test_cache(void)
{
    struct event_base *base = event_base_new();
    struct scrub_cache *c = scrub_cache_new(base);
    struct secret *a = secret_new(plain, strlen(plain)), *same = secret_new(plain, strlen(plain)),
                  *b = secret_new("another-value-0123456789", 24), *tiny = secret_new("short", 5);
    struct scrub_set *one = cached(c, "k", a, NULL);
    CU_ASSERT_PTR_NOT_NULL_FATAL(one);
    struct scrub_set *again = cached(c, "k", same, NULL);
    CU_ASSERT_PTR_EQUAL(again, one);
    struct scrub_set *pair = cached(c, "k", a, "user");
    CU_ASSERT(pair && pair != one);
    struct scrub_set *rotated = cached(c, "k", b, NULL);
    CU_ASSERT(rotated && rotated != one);
    whole(one, plain, "[REDACTED:k]******************", 1); /* requests under way keep theirs */
    whole(rotated, plain, plain, 0);
    CU_ASSERT_PTR_NULL(cached(c, "t", tiny, NULL));
    scrub_set_unref(one);
    scrub_set_unref(again);
    scrub_set_unref(pair);
    scrub_set_unref(rotated);
    for (int i = 0; i < SCRUB_CACHE_MAX + 10; i++) {
        char name[16];
        snprintf(name, sizeof name, "n%d", i);
        struct scrub_set *s = cached(c, name, a, NULL);
        CU_ASSERT_PTR_NOT_NULL_FATAL(s);
        scrub_set_unref(s);
    }
    secret_unref(a);
    secret_unref(same);
    secret_unref(b);
    secret_unref(tiny);
    scrub_cache_free(c);
    event_base_free(base);
}

/* The first bytes of a form may pass early; the rest of it is replaced wherever it comes. */
static void test_early(void)
{
    struct scrub_set *set = set_of(plain, NULL);
    for (size_t first = 1; first <= SCRUB_EARLY + 1; first++) {
        struct scrub *s = scrub_new(set);
        struct slice got;
        char want[sizeof plain], text[sizeof plain] = "";
        size_t at = 0;
        memcpy(want, plain, sizeof plain);
        replace(want, sizeof plain - 1, "[REDACTED:key]");
        CU_ASSERT_EQUAL_FATAL(scrub_feed(s, (struct slice){plain, first}, &got), 0);
        CU_ASSERT_EQUAL(got.n, 0);
        CU_ASSERT_EQUAL_FATAL(scrub_early(s, &got), 0);
        CU_ASSERT_EQUAL(got.n, first <= SCRUB_EARLY ? first : 0);
        if (got.n > 0)
            memcpy(want, plain, first);
        memcpy(text, got.p, got.n);
        at = got.n;
        for (size_t i = first; i < sizeof plain - 1; i++) { /* byte by byte */
            CU_ASSERT_EQUAL_FATAL(scrub_feed(s, (struct slice){plain + i, 1}, &got), 0);
            memcpy(text + at, got.p, got.n);
            at += got.n;
        }
        CU_ASSERT_EQUAL_FATAL(scrub_end(s, &got), 0);
        memcpy(text + at, got.p, got.n);
        CU_ASSERT_EQUAL(at + got.n, sizeof plain - 1);
        CU_ASSERT(memcmp(text, want, sizeof plain - 1) == 0);
        CU_ASSERT_EQUAL(scrub_hits(s), 1);
        scrub_free(s);
    }
    scrub_set_unref(set);
}

void suite_scrub(void)
{
    CU_pSuite s = CU_add_suite("scrub", NULL, NULL);
    CU_add_test(s, "forms as other programs write them", test_shapes);
    CU_add_test(s, "forms byte by byte", test_written);
    CU_add_test(s, "base64 at each alignment", test_base64);
    CU_add_test(s, "every split of a body with two hits", test_splits);
    CU_add_test(s, "overlaps", test_overlaps);
    CU_add_test(s, "the beginning of what may be a form passes early", test_early);
    CU_add_test(s, "parts of a token", test_token_parts);
    CU_add_test(s, "near misses and what is held", test_near_misses);
    CU_add_test(s, "lengths at the bounds", test_bounds);
    CU_add_test(s, "random texts against a reference", test_random);
    CU_add_test(s, "speed", test_speed);
    CU_add_test(s, "sets are kept by value", test_cache);
}

void tap_suites(void)
{
    suite_scrub();
}
