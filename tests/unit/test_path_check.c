/* Ambiguous paths (rows A18 to A23) and the folded form that deny rules see. */
#include <CUnit/CUnit.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "path.h"
#include "tap_main.h"

static int check(const char *p, size_t n, const char **why)
{
    char *copy = malloc(n ? n : 1);
    if (n)
        memcpy(copy, p, n);
    int r = path_check((struct slice){copy, n}, why);
    free(copy);
    return r;
}

static bool passes(const char *path)
{
    const char *why = "unset";
    int r = check(path, strlen(path), &why);
    if (r == 0 ? why != NULL : why == NULL)
        return !r; /* never: makes the caller fail */
    return r == 0;
}

static void expect(bool want, const char *const *rows, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (passes(rows[i]) != want) {
            printf("# %s\n", rows[i]);
            CU_FAIL("a path");
        }
}

static void plain(void)
{
    static const char *const good[] = {
        "/",      "/a",         "/a/",      "/a/b/c",    "/.well-known/x",
        "/a.b",   "/a..b",      "/a../b",   "/..a/b",    "/...",
        "/.../x", "/a;x=1",     "/a;x/b",   "/;x",       "/a%20b",
        "/%41",   "/a%2Fb",     "/a%2fb",   "/a%2F%2Fb", "/@scope%2Fname",
        "/a:b",   "/a@b",       "/~x",      "/a*b",      "/a+b",
        "/a,b",   "/(a)",       "/a'b",     "/a|b",      "/%C3%A9",
        "/%25",   "/%252F",     "/a%3Fb",   "/a%23b",    "/x.git/info/refs",
        "/a%A0b", "/%ef%bc%8e", "/%2e%2ea", "/a%2e",     "/%2ex",
        "/a.%2e", "/a=..",      "/a=.;",    "/\"a\"",    "/<a>",
        "/^",     "/`",         "/{a}",
    };
    expect(true, good, ARRAY_LEN(good));
}

/* A request's path may have empty segments behind its first one, and nothing else that a pattern's
 * may not have. */
static void asked(void)
{
    static const struct {
        const char *path;
        bool good, empty;
    } rows[] = {
        {"/a//b", true, true},     {"/a/b//", true, true},
        {"/a///b", true, true},    {"/web/https://example.com/", true, true},
        {"/a/b", true, false},     {"/a%2F%2Fb", true, false},
        {"//", false, true},       {"//a", false, true},
        {"///a", false, true},     {"/a//../b", false, true},
        {"/a//.", false, true},    {"/a//%2e%2e/b", false, true},
        {"/a//b%00", false, true}, {"/a//b\\", false, true},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct slice p = slice_str(rows[i].path);
        const char *why;
        CU_ASSERT_EQUAL(path_check_asked(p, &why), rows[i].good ? 0 : -1);
        CU_ASSERT_EQUAL(path_has_empty(p), rows[i].empty);
        CU_ASSERT(!rows[i].empty || path_check(p, &why) < 0);
    }
}

/* What is said of a path goes into records: an escape is not called the byte that it stands for. */
static void says(void)
{
    static const struct {
        const char *path, *why;
    } rows[] = {{"/a\x01", "a control byte or a space in the path"},
                {"/a%01", "an encoded control byte in the path"},
                {"/a%7F", "an encoded control byte in the path"},
                {"/a%00", "an encoded NUL in the path"},
                {"/a%5c", "an encoded backslash in the path"}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const char *why = NULL;
        CU_ASSERT_EQUAL(check(rows[i].path, strlen(rows[i].path), &why), -1);
        CU_ASSERT(why && strcmp(why, rows[i].why) == 0);
    }
}

static void shapes(void)
{
    static const char *const bad[] = {
        "",       "a",          "*",         "a/b",     "//",        "//a",      "/a//b",
        "/a//",   "///",        "/a?b",      "/a#b",    "/a\\b",     "/a%5Cb",   "/a%5cb",
        "/%",     "/%2",        "/%zz",      "/%2g",    "/%g2",      "/a%",      "/a%2",
        "/%%20",  "/% 20",      "/%00",      "/a%00b",  "/%2500",    "/%252500", "/a b",
        "/a\tb",  "/a\x7f",     "/\xc3\xa9", "/%u002e", "http://x/", "%2f",      "\\a",
        "/%+f",   "/%-1",       "/%0x",      "/a%0Ab",  "/%7f",      "/%01",     "/a%1F",
        "/%2509", "/%25%30%39", "/%c0%89",
    };
    expect(false, bad, ARRAY_LEN(bad));
}

/* A23: every byte, raw. */
static void every_byte(void)
{
    for (int c = 0; c < 256; c++) {
        char path[] = "/ax/b";
        const char *why;
        path[2] = (char)c;
        bool bad = c <= 0x20 || c >= 0x7f || c == '#' || c == '?' || c == '\\' || c == '%';
        if ((check(path, 5, &why) < 0) != (bad || c == '/')) {
            printf("# byte %02x\n", (unsigned)c);
            CU_FAIL("a byte");
        }
        /* at the very end nothing may be read beyond it */
        path[4] = (char)c;
        path[2] = 'x';
        CU_ASSERT_EQUAL(check(path, 5, &why) < 0, bad || c == '/' || c == '.');
    }
    const char *why;
    CU_ASSERT_EQUAL(check("/a\0b", 4, &why), -1);
    CU_ASSERT_EQUAL(check("/%4", 3, &why), -1);
}

/* A18, A19, A21, A22: each way to write a dot, times each way to write a separator, at each depth.
 */
static void dot_segments(void)
{
    static const char *const dots[] = {".",         "%2e",          "%2E",     "%252e",
                                       "%252E",     "%25252e",      "%%32%65", "%c0%ae",
                                       "%e0%80%ae", "%f0%80%80%ae", "%C0%AE",  "%25c0%25ae"};
    static const char *const slashes[] = {"/",      "%2f",   "%2F",       "%252f",
                                          "%c0%af", "%255c", "%e0%80%af", "%c1%9c"};
    static const char *const ends[] = {"", ";", ";x=1", "%3b", "%253bx"};
    unsigned tried = 0;
    for (size_t i = 0; i < ARRAY_LEN(dots); i++)
        for (size_t j = 0; j <= ARRAY_LEN(dots); j++) /* the last: one dot only */
            for (size_t k = 0; k < ARRAY_LEN(slashes); k++)
                for (size_t e = 0; e < ARRAY_LEN(ends); e++)
                    for (int depth = 0; depth < 5; depth++) {
                        char path[200] = "", one[64];
                        snprintf(one, sizeof one, "%s%s%s", dots[i],
                                 j < ARRAY_LEN(dots) ? dots[j] : "", ends[e]);
                        size_t n = (size_t)depth * 2;
                        for (size_t d = 0; d < n; d++)
                            path[d] = "/a"[d % 2];
                        snprintf(path + n, sizeof path - n, "%s%s%sadmin", depth ? slashes[k] : "/",
                                 one, slashes[k]);
                        tried++;
                        if (passes(path)) {
                            printf("# %s\n", path);
                            CU_FAIL("a dot segment");
                        }
                        path[strlen(path) - 5 - strlen(slashes[k])] = 0; /* at the end */
                        if (passes(path)) {
                            printf("# %s\n", path);
                            CU_FAIL("a dot segment at the end");
                        }
                    }
    CU_ASSERT(tried > 30000);
    static const char *const bad[] = {"/.",     "/..",      "/./a",      "/../a",   "/a/.",
                                      "/a/..",  "/a/../b",  "/a;x/../b", "/..;/b",  "/.;x/b",
                                      "/a/..;", "/a/%2e./", "/a%2f..",   "/..%2fa", "/a%2f..%2fb"};
    expect(false, bad, ARRAY_LEN(bad));
}

static void long_paths(void)
{
    size_t n = 60000;
    char *path = malloc(n + 1);
    const char *why;
    memset(path, 'a', n);
    path[0] = '/';
    path[n] = 0;
    CU_ASSERT_EQUAL(path_check((struct slice){path, n}, &why), 0);
    memcpy(path + 10, "%41", 3);
    CU_ASSERT_EQUAL(path_check((struct slice){path, n}, &why), 0);
    memcpy(path + n - 4, "/%2e", 4);
    CU_ASSERT_EQUAL(path_check((struct slice){path, n}, &why), -1);
    /* nested escapes: decoding stays linear, so this ends at once */
    for (size_t i = 1; i + 2 < n; i += 2)
        memcpy(path + i, "25", 2);
    path[1] = '%';
    path[n - 1] = '5';
    (void)path_check((struct slice){path, n}, &why);
    free(path);
}

static bool folds(enum path_reading reading, const char *path, const char *want)
{
    char to[200];
    size_t n = path_fold(slice_str(path), reading, to);
    bool same = n == strlen(want) && memcmp(to, want, n) == 0 && n <= strlen(path);
    if (!same)
        printf("# %s: %.*s, not %s\n", path, (int)n, to, want);
    return same;
}

static void folding(void)
{
    static const struct {
        const char *path, *byte, *split;
    } rows[] = {
        {"/Gists/ABC", "/gists/abc", "/gists/abc"},
        {"/%67ists", "/gists", "/gists"},
        {"/%47ists", "/gists", "/gists"},
        {"/%2567ists", "/gists", "/gists"},
        {"/%25%36%37ists", "/gists", "/gists"},
        {"/a%2Fb", "/a%2fb", "/a/b"},
        {"/a%2fb", "/a%2fb", "/a/b"},
        {"/a%252Fb", "/a%2fb", "/a/b"},
        {"/a%2F%2Fb", "/a%2f%2fb", "/a/b"},
        {"/a%2F/b", "/a%2f/b", "/a/b"},
        {"/a/%2Fb", "/a/%2fb", "/a/b"},
        {"/%2Fadmin", "/%2fadmin", "/admin"},
        {"/a%c1%81", "/aa", "/aa"},
        {"/a%c0%afb", "/a/b", "/a/b"},
        {"/a%e0%81%81", "/aa", "/aa"},
        {"/a%e0%80%ae", "/a.", "/a."},
        {"/a%f0%80%81%81", "/aa", "/aa"},
        {"/a%e0%82%81", "/a\xe0\x82\x81", "/a\xe0\x82\x81"},
        {"/a%e1%80%81", "/a\xe1\x80\x81", "/a\xe1\x80\x81"},
        {"/%c3%a9", "/\xc3\xa9", "/\xc3\xa9"},
        {"/%C3%89", "/\xc3\xa9", "/\xc3\xa9"},
        {"/\xc3\x97%C3%9F", "/\xc3\x97\xc3\x9f", "/\xc3\x97\xc3\x9f"},
        {"/%C4%B0%C4%b1%c5%bf%E2%84%AA", "/iisk", "/iisk"},
        {"/%25C4%25B0", "/i", "/i"},
        {"/%C5%B8%C4%BD%C4%BE", "/\xc3\xbf\xc4\xbe\xc4\xbe", "/\xc3\xbf\xc4\xbe\xc4\xbe"},
        {"/%D0%96%D0%81%CE%A3%CF%82", "/\xd0\xb6\xd1\x91\xcf\x83\xcf\x83",
         "/\xd0\xb6\xd1\x91\xcf\x83\xcf\x83"},
        {"/%E1%BA%A4%EF%BC%A1", "/\xe1\xba\xa5\xef\xbd\x81", "/\xe1\xba\xa5\xef\xbd\x81"},
        {"/a%2%C5%BF", "/a%2s", "/a%2s"},
        {"/a%", "/a%", "/a%"},
        {"/", "/", "/"},
        {"", "", ""},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        CU_ASSERT(folds(PATH_SLASH_BYTE, rows[i].path, rows[i].byte));
        CU_ASSERT(folds(PATH_SLASH_SPLIT, rows[i].path, rows[i].split));
    }
}

/* Folding what is folded changes nothing, whatever the bytes. */
static void fold_is_stable(void)
{
    static const char bytes[] =
        "%%%%2225fF/aA0cCe8\xc0\xaf\xe0\x80.\xc3\xc4\xb0\xc5\xbf\xe2\x84\xaa\xe1";
    unsigned seed = 1;
    for (int round = 0; round < 20000; round++) {
        char path[24], once[24], twice[24];
        size_t n = (size_t)(round % 23) + 1;
        for (size_t i = 0; i < n; i++) {
            seed = seed * 1103515245u + 12345u;
            path[i] = bytes[(seed >> 16) % (sizeof bytes - 1)];
        }
        for (int reading = PATH_SLASH_BYTE; reading <= PATH_SLASH_SPLIT; reading++) {
            size_t a = path_fold((struct slice){path, n}, (enum path_reading)reading, once);
            size_t b = path_fold((struct slice){once, a}, (enum path_reading)reading, twice);
            if (a > n || a != b || memcmp(once, twice, a) != 0) {
                printf("# round %d reading %d: %.*s\n", round, reading, (int)n, path);
                CU_FAIL_FATAL("not stable");
            }
        }
    }
}

void suite_path_check(void);

void suite_path_check(void)
{
    CU_pSuite s = CU_add_suite("path", NULL, NULL);
    CU_add_test(s, "a request's empty segments (A20)", asked);
    CU_add_test(s, "ordinary paths pass", plain);
    CU_add_test(s, "A20-A23: shapes that do not", shapes);
    CU_add_test(s, "A23: every byte", every_byte);
    CU_add_test(s, "A18, A19, A21, A22: dot segments however encoded", dot_segments);
    CU_add_test(s, "long paths", long_paths);
    CU_add_test(s, "folding for deny rules", folding);
    CU_add_test(s, "what is said of them", says);
    CU_add_test(s, "folding is stable", fold_is_stable);
}

void tap_suites(void)
{
    suite_path_check();
}
