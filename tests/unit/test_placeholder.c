#include "placeholder.h"
#include "tap_main.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void suite_placeholder(void);

static const unsigned char seed_a[PLACEHOLDER_SEED] = {1, 2, 3}, seed_b[PLACEHOLDER_SEED] = {4};
static const unsigned char tag[PLACEHOLDER_TAG_KEY] = {7, 7, 7}, tag2[PLACEHOLDER_TAG_KEY] = {8};
static const char *const kinds[] = {"github-pat", "openai", "anthropic", "anthropic-oauth",
                                    "",           "bearer", NULL};
static struct placeholder_key *key, *other;

static int setup(void)
{
    key = placeholder_key_new(tag);
    other = placeholder_key_new(tag2);
    return key && other ? 0 : -1;
}

static int teardown(void)
{
    placeholder_key_free(key);
    placeholder_key_free(other);
    placeholder_key_free(NULL);
    return 0;
}

static void make(const unsigned char *seed, const char *name, const char *kind, char *to)
{
    CU_ASSERT_EQUAL_FATAL(placeholder_make(key, seed, name, kind, to), 0);
}

static void test_shapes(void)
{
    static const struct {
        const char *prefix;
        size_t length;
    } want[] = {{"ghp_", 40},
                {"sk-proj-", 56},
                {"sk-ant-api03-", 108},
                {"sk-ant-oat01-", 108},
                {"dwd_", 36},
                {"dwd_", 36},
                {"dwd_", 36}};
    char p[PLACEHOLDER_MAX];
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        make(seed_a, "github", kinds[i], p);
        CU_ASSERT_EQUAL(strlen(p), want[i].length);
        CU_ASSERT_EQUAL(strncmp(p, want[i].prefix, strlen(want[i].prefix)), 0);
        for (const char *c = p + strlen(want[i].prefix); *c; c++)
            CU_ASSERT(ascii_is_alnum(*c));
        CU_ASSERT(placeholder_is(key, slice_str(p)));
        CU_ASSERT(!placeholder_is(other, slice_str(p)));
    }
}

static void test_distinct(void)
{
    char a[PLACEHOLDER_MAX], b[PLACEHOLDER_MAX];
    make(seed_a, "github", "github-pat", a);
    make(seed_a, "github", "github-pat", b);
    CU_ASSERT_STRING_EQUAL(a, b); /* the same after a restart */
    make(seed_b, "github", "github-pat", b);
    CU_ASSERT_STRING_NOT_EQUAL(a, b);
    CU_ASSERT(placeholder_is(key, slice_str(b))); /* a stranger's, known without a list */
    make(seed_a, "gitlab", "github-pat", b);
    CU_ASSERT_STRING_NOT_EQUAL(a, b);
    CU_ASSERT(strncmp(a + 4, b + 4, 10) != 0);
}

static uint32_t crc(const char *p, size_t n) /* bit by bit, from RFC 1952's definition */
{
    uint32_t c = 0xffffffffu;
    for (size_t i = 0; i < n * 8; i++) {
        uint32_t bit = ((unsigned char)p[i / 8] >> (i % 8)) & 1;
        c = (c & 1) != bit ? (c >> 1) ^ 0xedb88320u : c >> 1;
    }
    return ~c;
}

static uint32_t base62(const char *p, size_t n)
{
    static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    uint64_t v = 0;
    for (size_t i = 0; i < n; i++)
        v = v * 62 + (uint64_t)(strchr(digits, p[i]) - digits);
    return (uint32_t)v;
}

static void test_checksum(void)
{
    char p[PLACEHOLDER_MAX], name[16];
    CU_ASSERT_EQUAL(crc("123456789", 9), 0xcbf43926u);
    for (int i = 0; i < 50; i++) {
        snprintf(name, sizeof name, "s%d", i);
        make(seed_a, name, "github-pat", p);
        uint32_t sum = base62(p + 34, 6);
        CU_ASSERT_NOT_EQUAL(sum, crc(p + 4, 30));
        CU_ASSERT_NOT_EQUAL(sum, crc(p, 34));
    }
}

struct found {
    char text[8][PLACEHOLDER_MAX];
    size_t n;
};

static void on_found(void *arg, struct slice s)
{
    struct found *f = arg;
    if (f->n < 8 && s.n < PLACEHOLDER_MAX) {
        memcpy(f->text[f->n], s.p, s.n);
        f->text[f->n++][s.n] = 0;
    }
}

static void test_scan(void)
{
    char a[PLACEHOLDER_MAX], b[PLACEHOLDER_MAX], text[1024];
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        make(seed_a, "one", kinds[i], a);
        make(seed_b, "two", kinds[i], b);
        struct found f = {.n = 0};
        int n = snprintf(text, sizeof text, "Bearer %s, x=%s&dwd_ghp_%s\xff", a, b, a);
        struct slice s = {text, (size_t)n};
        CU_ASSERT_EQUAL(placeholder_scan(key, s, on_found, &f), 3);
        CU_ASSERT_EQUAL_FATAL(f.n, 3);
        CU_ASSERT_STRING_EQUAL(f.text[0], a);
        CU_ASSERT_STRING_EQUAL(f.text[1], b);
        CU_ASSERT_STRING_EQUAL(f.text[2], a);
        CU_ASSERT_EQUAL(placeholder_scan(key, s, NULL, NULL), 3);
        CU_ASSERT_EQUAL(placeholder_scan(other, s, NULL, NULL), 0);
    }
}

/* Cut, changed, split: what still has bits and tag is found, anything less is worthless text. */
static void test_damaged(void)
{
    char a[PLACEHOLDER_MAX], b[PLACEHOLDER_MAX];
    struct found f = {.n = 0};
    make(seed_a, "one", "", a);
    for (size_t n = 0; n <= strlen(a); n++) {
        size_t found = placeholder_scan(key, (struct slice){a, n}, NULL, NULL);
        CU_ASSERT_EQUAL(found, n >= 4 + 27);
        CU_ASSERT_EQUAL(placeholder_is(key, (struct slice){a, n}), n == strlen(a));
    }
    memcpy(b, a, sizeof b);
    b[35] = b[35] == 'x' ? 'y' : 'x'; /* filler: found, but not what was handed out */
    CU_ASSERT_EQUAL(placeholder_scan(key, slice_str(b), on_found, &f), 1);
    CU_ASSERT_STRING_EQUAL(f.text[0], b);
    for (size_t i = 0; i < 31; i++) { /* prefix, bits, tag: each byte counts */
        memcpy(b, a, sizeof b);
        b[i] = b[i] == '7' ? '8' : '7';
        CU_ASSERT_EQUAL(placeholder_scan(key, slice_str(b), NULL, NULL), 0);
        b[i] = '-';
        CU_ASSERT_EQUAL(placeholder_scan(key, slice_str(b), NULL, NULL), 0);
    }
    CU_ASSERT(!placeholder_is(key, SLICE("")));
    CU_ASSERT_EQUAL(placeholder_scan(key, SLICE(""), NULL, NULL), 0);
    CU_ASSERT_EQUAL(placeholder_scan(key, SLICE("dwd_zzzzzzzzzzzzzzzzzzzzzzzzzzz"), NULL, NULL), 0);
}

static void test_large(void)
{
    /* a whole head of candidates: one HMAC each, no more */
    enum { SIZE = 256 * 1024 };
    char *p = malloc(SIZE);
    CU_ASSERT_PTR_NOT_NULL_FATAL(p);
    for (size_t i = 0; i < SIZE; i++)
        p[i] = "dwd_0123456789abcdefghijklmnopq"[i % 31];
    CU_ASSERT_EQUAL(placeholder_scan(key, (struct slice){p, SIZE}, NULL, NULL), 0);
    char a[PLACEHOLDER_MAX];
    make(seed_a, "one", "openai", a);
    memcpy(p + SIZE - strlen(a), a, strlen(a));
    CU_ASSERT_EQUAL(placeholder_scan(key, (struct slice){p, SIZE}, NULL, NULL), 1);
    free(p);
}

void suite_placeholder(void)
{
    CU_pSuite s = CU_add_suite("placeholder", setup, teardown);
    CU_add_test(s, "shapes of the kinds", test_shapes);
    CU_add_test(s, "stable, and distinct by sandbox and name", test_distinct);
    CU_add_test(s, "the checksum of a github-pat is wrong", test_checksum);
    CU_add_test(s, "found in any text", test_scan);
    CU_add_test(s, "cut and changed", test_damaged);
    CU_add_test(s, "a large text", test_large);
}

void tap_suites(void)
{
    suite_placeholder();
}
