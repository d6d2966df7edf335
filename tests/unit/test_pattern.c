/* Patterns: grammar, matching (row A12), algebra against brute force. */
#include <CUnit/CUnit.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "pattern.h"
#include "policy.h"
#include "segment.h"
#include "tap_main.h"

static struct arena *arena;

static struct pattern parsed(const char *text)
{
    struct pattern p;
    struct err e = {0};
    if (pattern_parse(arena, text, &p, &e) < 0) {
        printf("# %s: %s\n", text, e.text);
        CU_FAIL_FATAL("a pattern");
    }
    return p;
}

static bool matches(const char *pattern, const char *url)
{
    struct pattern p = parsed(pattern);
    struct authority a;
    enum scheme s = strncmp(url, "http://", 7) == 0 ? SCHEME_HTTP : SCHEME_HTTPS;
    const char *host = strstr(url, "://") + 3, *path = strchr(host, '/');
    CU_ASSERT_EQUAL_FATAL(authority_parse(&a, s, (struct slice){host, (size_t)(path - host)}), 0);
    return pattern_matches(&p, &a, slice_str(path));
}

/* A12: a matcher with any of these off by one is wrong. */
static const struct {
    const char *pattern, *url;
    bool want;
} match_rows[] = {
    {"github.com", "https://github.com/", true},
    {"github.com", "https://github.com/any/thing", true},
    {"GitHub.com.", "https://github.com/", true},
    {"github.com", "https://evilgithub.com/", false},
    {"github.com", "https://github.com.evil.com/", false},
    {"github.com", "https://api.github.com/", false},
    {"github.com", "https://github.co/", false},
    {"github.com", "https://ithub.com/", false},
    {"github.com", "http://github.com/", false},
    {"github.com", "https://github.com:8443/", false},
    {"http://github.com", "http://github.com/", true},
    {"http://github.com", "https://github.com/", false},
    {"http://github.com:443", "https://github.com/", false},
    {"https://github.com:443", "https://github.com/", true},
    {"github.com:8443", "https://github.com:8443/", true},
    {"github.com:8443", "https://github.com/", false},
    {".github.com", "https://github.com/", false},
    {".github.com", "https://api.github.com/", true},
    {".github.com", "https://a.b.api.github.com/", true},
    {".github.com", "https://evilgithub.com/", false},
    {".github.com", "https://github.com.evil.com/", false},
    {".github.com", "https://api.github.com.evil.com/", false},
    {".github.com", "https://api.github.com:444/", false},
    {".github.com", "https://xgithub.com/", false},
    {"192.0.2.1", "https://192.0.2.1/", true},
    {"192.0.2.1", "https://192.0.2.10/", false},
    {"192.0.2.1:8080", "https://192.0.2.1:8080/x", true},
    {"[2001:db8::1]", "https://[2001:db8::1]/", true},
    {"[2001:db8::1]", "https://[2001:db8::2]/", false},
    {"ok.com/", "https://ok.com/", true},
    {"ok.com/", "https://ok.com/a", false},
    {"ok.com/a", "https://ok.com/a", true},
    {"ok.com/a", "https://ok.com/a/", false},
    {"ok.com/a", "https://ok.com/A", false},
    {"ok.com/a", "https://ok.com/ab", false},
    {"ok.com/a", "https://ok.com/a/b", false},
    {"ok.com/a", "https://ok.com/", false},
    {"ok.com/a/", "https://ok.com/a/", true},
    {"ok.com/a/", "https://ok.com/a", false},
    {"ok.com/a/", "https://ok.com/a/b", false},
    {"ok.com/**", "https://ok.com/", true},
    {"ok.com/**", "https://ok.com/a/b", true},
    {"ok.com/x/**", "https://ok.com/x", true},
    {"ok.com/x/**", "https://ok.com/x/", true},
    {"ok.com/x/**", "https://ok.com/x/y/z", true},
    {"ok.com/x/**", "https://ok.com/xy", false},
    {"ok.com/x/**", "https://ok.com/", false},
    {"ok.com/x/**", "https://ok.com/y/x", false},
    {"ok.com/x/*", "https://ok.com/x/y", true},
    {"ok.com/x/*", "https://ok.com/x/", false}, /* a segment is not nothing */
    {"ok.com/x/*", "https://ok.com/x", false},
    {"ok.com/x/*", "https://ok.com/x/y/", false},
    {"ok.com/x/*", "https://ok.com/x/y/z", false},
    {"ok.com/x/*/z", "https://ok.com/x/y/z", true},
    {"ok.com/x/*/z", "https://ok.com/x/y/y/z", false},
    {"ok.com/x/*/z", "https://ok.com/x/z", false},
    {"ok.com/*/**", "https://ok.com/", false},
    {"ok.com/*/**", "https://ok.com/a", true},
    {"ok.com/*/**", "https://ok.com/a/b/c", true},
    {"ok.com/a*", "https://ok.com/a", true},
    {"ok.com/a*", "https://ok.com/abc", true},
    {"ok.com/a*", "https://ok.com/ba", false},
    {"ok.com/a*", "https://ok.com/a/b", false},
    {"ok.com/*a", "https://ok.com/ba", true},
    {"ok.com/*a", "https://ok.com/ab", false},
    {"ok.com/a*b", "https://ok.com/ab", true},
    {"ok.com/a*b", "https://ok.com/axxb", true},
    {"ok.com/a*b", "https://ok.com/a", false},
    {"ok.com/a*a", "https://ok.com/a", false}, /* the two may not share a byte */
    {"ok.com/a*a", "https://ok.com/aa", true},
    {"ok.com/ab*ba", "https://ok.com/aba", false},
    {"ok.com/ab*ba", "https://ok.com/abba", true},
    {"ok.com/a*b*c", "https://ok.com/abc", true},
    {"ok.com/a*b*c", "https://ok.com/axbybzc", true},
    {"ok.com/a*b*c", "https://ok.com/acb", false},
    {"ok.com/a*b*c", "https://ok.com/acbc", true},
    {"ok.com/a*bb*c", "https://ok.com/abcbc", false},
    {"ok.com/*b*", "https://ok.com/b", true},
    {"ok.com/*b*", "https://ok.com/a", false},
    {"ok.com/*ab*ab*", "https://ok.com/xabxabx", true},
    {"ok.com/*ab*ab*", "https://ok.com/xabx", false},
    {"ok.com/*ab*ab*", "https://ok.com/abab", true},
    {"ok.com/v1/a%2Fb", "https://ok.com/v1/a%2Fb", true},
    {"ok.com/v1/a%2Fb", "https://ok.com/v1/a/b", false},
    {"ok.com/v1/*", "https://ok.com/v1/a%2Fb", true}, /* %2F is a byte of its segment */
    {"ok.com/v1/a/b", "https://ok.com/v1/a%2Fb", false},
};

static void matching(void)
{
    for (size_t i = 0; i < ARRAY_LEN(match_rows); i++)
        if (matches(match_rows[i].pattern, match_rows[i].url) != match_rows[i].want) {
            printf("# %s on %s\n", match_rows[i].pattern, match_rows[i].url);
            CU_FAIL("a match");
        }
}

static const struct {
    const char *pattern, *says;
} refused_rows[] = {
    {"", "host is missing"},
    {"/a", "host is missing"},
    {"https://", "host is missing"},
    {"*.github.com", "leading dot"},
    {"*", "leading dot"},
    {"**", "leading dot"},
    {"git*.com/x", "leading dot"},
    {"..github.com", "plain form"},
    {".", "plain form"},
    {".1.2.3.4", "no subdomains"},
    {".[::1]", "no subdomains"},
    {".127.0.0.1", "no subdomains"},
    {"ftp://ok.com", "scheme"},
    {"wss://ok.com", "scheme"},
    {"HTTPS://ok.com", "scheme"},
    {"://ok.com", "scheme"},
    {"user@ok.com", "user name"},
    {"user:pw@ok.com/x", "user name"},
    {"@ok.com", "user name"},
    {"ok.com:0", "plain form"},
    {"ok.com:", "plain form"},
    {"ok.com:65536", "plain form"},
    {"ok com", "plain form"},
    {"127.1", "plain form"},
    {"0x7f000001", "plain form"},
    {"[2001:DB8::1]", "[2001:db8::1]"},
    {"[2001:db8:0::1]:8443/x", "[2001:db8::1]"},
    {"[::ffff:1.2.3.4]", "plain form"},
    {"2001:db8::1", "plain form"},
    {"ok.com?x=1", "plain form"},
    {"ok.com/a?x=1", "query"},
    {"ok.com/a#b", "fragment"},
    {"ok.com//a", "empty segment"},
    {"ok.com/a/../b", "dot segment"},
    {"ok.com/a/%2e%2e/b", "dot segment"},
    {"ok.com/.", "dot segment"},
    {"ok.com/a%", "percent"},
    {"ok.com/a%2*f", "percent"},
    {"ok.com/\xc3\xa9", "0x7f"},
    {"ok.com/a b", "space"},
    {"ok.com/**/a", "last segment"},
    {"ok.com/a**", "last segment"},
    {"ok.com/**a", "last segment"},
    {"ok.com/***", "last segment"},
    {"ok.com/a/**/", "last segment"},
    {"ok.com/**/**", "last segment"},
};

static void refused(void)
{
    for (size_t i = 0; i < ARRAY_LEN(refused_rows); i++) {
        struct pattern p;
        struct err e = {0};
        int r = pattern_parse(arena, refused_rows[i].pattern, &p, &e);
        if (r == 0 || strstr(e.text, refused_rows[i].says) == NULL) {
            printf("# %s: %s\n", refused_rows[i].pattern, r ? e.text : "accepted");
            CU_FAIL("a refusal");
        }
    }
    char text[PATTERN_MAX + 10];
    struct pattern p;
    memset(text, 'a', sizeof text);
    memcpy(text, "ok.com/", 7);
    text[PATTERN_MAX] = 0;
    CU_ASSERT_EQUAL(pattern_parse(arena, text, &p, NULL), 0);
    text[PATTERN_MAX] = 'a';
    text[PATTERN_MAX + 1] = 0;
    CU_ASSERT_EQUAL(pattern_parse(arena, text, &p, NULL), -1);
    memcpy(text, "ok.com", 6);
    for (int i = 0; i < 65; i++)
        memcpy(text + 6 + i * 2, "/a", 3);
    CU_ASSERT_EQUAL(pattern_parse(arena, text, &p, NULL), -1);
    text[6 + 64 * 2] = 0;
    CU_ASSERT_EQUAL(pattern_parse(arena, text, &p, NULL), 0);
    memcpy(text + 6 + 64 * 2, "/**", 4);
    CU_ASSERT_EQUAL(pattern_parse(arena, text, &p, NULL), 0);
    CU_ASSERT_EQUAL(p.n_segments, 64);
    /* below the longest dotted host one label of one byte must still fit */
    memset(text, 'a', 255);
    for (size_t i = 0; i < 252; i += 50)
        text[i] = '.';
    text[1 + HOST_MAX - 2] = 0;
    CU_ASSERT_EQUAL(pattern_parse(arena, text, &p, NULL), 0);
    text[1 + HOST_MAX - 2] = 'a';
    text[1 + HOST_MAX - 1] = 0;
    CU_ASSERT_EQUAL(pattern_parse(arena, text, &p, NULL), -1);
}

static void suffixes_allowed(void)
{
    static const char *const good[] = {".github.com",     ".example.co.uk", ".acme.github.io",
                                       ".internal",       ".corp",          ".x.dev",
                                       ".googleapis.com", ".a.b.c.d",       "com",
                                       "github.io",       "co.uk",          "localhost"};
    for (size_t i = 0; i < ARRAY_LEN(good); i++)
        (void)parsed(good[i]);
}

struct relation {
    const char *a, *b;
    bool a_in_b, b_in_a, meet;
    const char *url; /* when they meet; NULL: any */
};

static void algebra(void)
{
    static const struct relation rows[] = {
        {"a.com", "a.com", true, true, true, "https://a.com/"},
        {"a.com", "a.com/**", true, true, true, "https://a.com/"},
        {"a.com/x", "a.com", true, false, true, "https://a.com/x"},
        {"a.com/x", "a.com/x/**", true, false, true, "https://a.com/x"},
        {"a.com/x/", "a.com/x/**", true, false, true, "https://a.com/x/"},
        {"a.com/x", "a.com/x/", false, false, false, NULL},
        {"a.com/x/**", "a.com/x/*", false, true, true, "https://a.com/x/x"},
        {"a.com/x/*", "a.com/x/**", true, false, true, "https://a.com/x/x"},
        {"a.com/*/y", "a.com/x/*", false, false, true, "https://a.com/x/y"},
        {"a.com/a*", "a.com/*b", false, false, true, "https://a.com/axb"},
        {"a.com/a*c", "a.com/ab*", false, false, true, "https://a.com/abxc"},
        {"a.com/a*", "a.com/b*", false, false, false, NULL},
        {"a.com/*a", "a.com/*b", false, false, false, NULL},
        {"a.com/a*b*c", "a.com/a*c", true, false, true, NULL},
        {"a.com/a*b", "a.com/*", true, false, true, NULL},
        {"a.com/*", "a.com/*b*", false, true, true, NULL},
        {"a.com/", "a.com/*", false, false, false, NULL},
        {"a.com/", "a.com/**", true, false, true, "https://a.com/"},
        {"a.com/*/**", "a.com/**", true, false, true, NULL},
        {"a.com/*/**", "a.com/*", false, true, true, NULL},
        {"a.com", "b.com", false, false, false, NULL},
        {"a.com", "a.com:444", false, false, false, NULL},
        {"a.com", "http://a.com", false, false, false, NULL},
        {"a.com:8443/x", "a.com:8443", true, false, true, "https://a.com:8443/x"},
        {"x.a.com", ".a.com", true, false, true, "https://x.a.com/"},
        {"a.com", ".a.com", false, false, false, NULL},
        {"xa.com", ".a.com", false, false, false, NULL},
        {".b.a.com", ".a.com", true, false, true, "https://x.b.a.com/"},
        {".b.a.com", ".c.a.com", false, false, false, NULL},
        {".a.com/x", "b.a.com", false, false, true, "https://b.a.com/x"},
        {"[::1]:9/x", "[::1]:9", true, false, true, "https://[::1]:9/x"},
        {"http://192.0.2.1/x", "http://192.0.2.1", true, false, true, "http://192.0.2.1/x"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct pattern a = parsed(rows[i].a), b = parsed(rows[i].b);
        char url[300];
        bool ok = pattern_contains(&b, &a) == rows[i].a_in_b &&
                  pattern_contains(&a, &b) == rows[i].b_in_a &&
                  pattern_intersects(&a, &b, url, sizeof url) == rows[i].meet &&
                  pattern_intersects(&b, &a, NULL, 0) == rows[i].meet;
        if (ok && rows[i].url)
            ok = strcmp(url, rows[i].url) == 0;
        if (!ok) {
            printf("# %s and %s (%s)\n", rows[i].a, rows[i].b, url);
            CU_FAIL("a relation");
        }
    }
}

/* An example is cut to the room there is for it. */
static void cut_examples(void)
{
    char tiny[8];
    struct pattern a = parsed("a.com/x");
    CU_ASSERT(pattern_intersects(&a, &a, tiny, sizeof tiny));
    CU_ASSERT_STRING_EQUAL(tiny, "https:/");
    tiny[0] = 'q';
    CU_ASSERT(pattern_intersects(&a, &a, tiny, 0));
    CU_ASSERT_EQUAL(tiny[0], 'q');
    a = parsed("a.com/abcdefgh");
    segment_example(&a.segments[0], tiny, sizeof tiny);
    CU_ASSERT_STRING_EQUAL(tiny, "abcdefg");
    a = parsed("a.com/abcdefg");
    segment_example(&a.segments[0], tiny, sizeof tiny);
    CU_ASSERT_STRING_EQUAL(tiny, "abcdefg");
}

/* Every pattern of a small world against every path of it: containment, intersection and order are
 * what the sets say. 'z' is in no pattern, as some byte always is. */
enum { WORLD = 9, PATTERNS = 2 * (1 + WORLD + WORLD * WORLD) };

static size_t make_patterns(struct pattern *ret)
{
    static const char *const segments[WORLD] = {"",   "a",   "b",   "*",   "a*",
                                                "*b", "a*b", "*a*", "b*a*"};
    char text[64];
    size_t n = 0;
    for (int i = -1; i < WORLD; i++)
        for (int j = -1; j < WORLD; j++)
            for (int tail = 0; tail < 2; tail++) {
                if ((i < 0 && j >= 0) || (i == 0 && (j >= 0 || tail)) || (j == 0 && tail))
                    continue; /* an empty segment is the last or none */
                snprintf(text, sizeof text, "a.com%s%s%s%s%s", i < 0 ? "" : "/",
                         i < 0 ? "" : segments[i], j < 0 ? "" : "/", j < 0 ? "" : segments[j],
                         tail ? "/**" : "");
                ret[n++] = parsed(text);
            }
    return n;
}

static size_t make_paths(char (*ret)[24], size_t max)
{
    static const char letters[] = "abz";
    char words[121][5];
    size_t n_words = 0, n = 0, from = 0;
    words[n_words++][0] = 0;
    for (int len = 1; len <= 4; len++) {
        size_t to = n_words;
        for (size_t i = from; i < to; i++)
            for (int c = 0; c < 3; c++, n_words++) {
                memcpy(words[n_words], words[i], 5);
                words[n_words][len - 1] = letters[c];
                words[n_words][len] = 0;
            }
        from = to;
    }
    for (size_t i = 0; i < n_words && n < max; i++) {
        snprintf(ret[n++], 24, "/%.4s", words[i]);
        for (size_t j = 0; i > 0 && j < n_words && n < max; j++)
            snprintf(ret[n++], 24, "/%.4s/%.4s", words[i], words[j]);
        for (size_t j = 1; i > 0 && i < 13 && j < 13 && n + 1 < max; j++) {
            snprintf(ret[n++], 24, "/%.4s/%.4s/z", words[i], words[j]);
            snprintf(ret[n++], 24, "/%.4s/%.4s/", words[i], words[j]);
        }
    }
    return n;
}

static bool url_in(const struct pattern *p, const char *url)
{
    const char *why, *path = strchr(url + 8, '/');
    return path_check(slice_str(path), &why) == 0 && pattern_matches_path(p, slice_str(path));
}

static void brute_force(void)
{
    enum { PATHS = 16000 };
    static char paths[PATHS][24];
    static struct pattern patterns[PATTERNS];
    size_t n = make_patterns(patterns), m = make_paths(paths, PATHS), words = (m + 63) / 64;
    uint64_t *sets = calloc(n * words, sizeof *sets);
    unsigned wrong = 0, contained = 0, apart = 0;
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < m; k++)
            if (pattern_matches_path(&patterns[i], slice_str(paths[k])))
                sets[i * words + k / 64] |= (uint64_t)1 << k % 64;
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++) {
            const struct pattern *a = &patterns[i], *b = &patterns[j];
            bool in = true, out = true, meet = false;
            char url[100];
            for (size_t k = 0; k < words; k++) {
                uint64_t x = sets[i * words + k], y = sets[j * words + k];
                in = in && !(x & ~y);
                out = out && !(y & ~x);
                meet = meet || (x & y);
            }
            contained += in;
            apart += !meet;
            bool met = pattern_intersects(a, b, url, sizeof url);
            if (pattern_contains(b, a) != in || met != meet ||
                (met && !(url_in(a, url) && url_in(b, url))) ||
                (in && !out && pattern_order(a, b) >= 0) ||
                (in && out && pattern_order(a, b) != 0) ||
                pattern_order(a, b) != -pattern_order(b, a)) {
                if (wrong++ < 10)
                    printf("# %s %s: in %d meet %d %s order %d\n", a->text, b->text, in, meet, url,
                           pattern_order(a, b));
            }
        }
    free(sets);
    CU_ASSERT_EQUAL(wrong, 0);
    CU_ASSERT(n > 120 && m > 12000);
    CU_ASSERT(contained > 500 && apart > 5000);
}

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* A glob made to send a backtracking matcher into the woods: twice the input, about twice the time.
 * 16 times the input may cost at most 64 times (a quadratic one costs 256). */
static void linear(void)
{
    struct pattern p = parsed("a.com/*aaaaaaaab*aaaaaaaab*aaaaaaaab*aaaaaaaab*aaaaaaaab*c");
    size_t big = 1 << 18;
    char *path = malloc(big);
    memset(path, 'a', big);
    path[0] = '/';
    double took[2];
    for (int round = 0; round < 2; round++) {
        size_t n = round ? big : big / 16;
        double start = seconds();
        for (int i = 0; i < 50; i++)
            CU_ASSERT_FALSE(pattern_matches_path(&p, (struct slice){path, n}));
        took[round] = seconds() - start;
    }
    CU_ASSERT(took[1] <= took[0] * 64 + 0.05);
    free(path);
}

static void folded(void)
{
    struct pattern p = parsed("a.com/Gists/%41*/x%2Fy/**"), f;
    CU_ASSERT_EQUAL(pattern_fold(arena, &p, 1, false, &f), 0);
    CU_ASSERT_EQUAL(f.n_segments, 3);
    CU_ASSERT(pattern_matches_path(&f, SLICE("/gists/a/x%2fy/z")));
    CU_ASSERT_FALSE(pattern_matches_path(&f, SLICE("/gists/a/x/y/z")));
    CU_ASSERT_EQUAL(pattern_fold(arena, &p, 2, false, &f), 0);
    CU_ASSERT_EQUAL(f.n_segments, 4);
    CU_ASSERT(pattern_matches_path(&f, SLICE("/gists/abc/x/y/z")));
    CU_ASSERT_FALSE(pattern_matches_path(&f, SLICE("/gists/bc/x/y/z")));
    /* an escaped star is a star of the path, not of the pattern */
    p = parsed("a.com/x%2Ay");
    CU_ASSERT_EQUAL(pattern_fold(arena, &p, 1, false, &f), 0);
    CU_ASSERT(pattern_matches_path(&f, SLICE("/x*y")));
    CU_ASSERT_FALSE(pattern_matches_path(&f, SLICE("/xzy")));
}

static int begin(void)
{
    arena = arena_new();
    return 0;
}

static int end(void)
{
    arena_free(arena);
    return 0;
}

void suite_pattern(void);

void suite_pattern(void)
{
    CU_pSuite s = CU_add_suite("pattern", begin, end);
    CU_add_test(s, "A12: matching", matching);
    CU_add_test(s, "A13: refused, with a hint", refused);
    CU_add_test(s, "leading dots that are allowed", suffixes_allowed);
    CU_add_test(s, "containment and intersection", algebra);
    CU_add_test(s, "an example in little room", cut_examples);
    CU_add_test(s, "the algebra against brute force", brute_force);
    CU_add_test(s, "matching is linear", linear);
    CU_add_test(s, "folded for deny rules", folded);
}

void tap_suites(void)
{
    suite_pattern();
}
