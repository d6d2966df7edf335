/* Whose a connection is, by the first bytes of it: proxy/gate/porter.c and
 * proxy/http2/http2_peek.c.
 */
#include "porter.h"
#include "http2_peek.h"
#include "tap_main.h"

#include <stdio.h>
#include <string.h>

static enum porter_said look(const void *p, size_t n, struct porter_name *name)
{
    memset(name, 0, sizeof *name);
    return porter_look((struct slice){p, n}, name);
}

static void each_length(const char *text, size_t n, enum porter_said end, const char *want)
{
    struct porter_name name;
    for (size_t i = 1; i < n; i++)
        CU_ASSERT_EQUAL(look(text, i, &name), PORTER_MORE);
    CU_ASSERT_EQUAL(look(text, n, &name), end);
    CU_ASSERT_STRING_EQUAL(name.text, want);
}

static void http1(void)
{
    static const char plain[] =
        "GET / HTTP/1.1\r\nX: host: no\r\nhOsT: \t web--sb-x.p.localhost:80 \r\n";
    static const char first[] = "Host: a HTTP/1.1\r\nHost: b\r\n";
    static const char twice[] = "GET / HTTP/1.1\r\nHost: a\r\n";
    each_length(plain, sizeof plain - 1, PORTER_NAMED, "web--sb-x.p.localhost:80");
    each_length(first, sizeof first - 1, PORTER_NAMED, "b"); /* the first line is no field */
    each_length(twice, sizeof twice - 1, PORTER_NAMED, "a");
}

static void http1_bad(void)
{
    static const char none[] = "GET / HTTP/1.1\r\nX: y\r\n\r\n",
                      empty[] = "GET / HTTP/1.1\r\nHost: \r\n",
                      nul[] = "GET / HTTP/1.1\r\nHost: a\0b\r\n";
    char longer[1000] = "GET / HTTP/1.1\r\nHost: ";
    struct porter_name name;
    size_t n = strlen(longer);
    each_length(none, sizeof none - 1, PORTER_BAD, "");
    CU_ASSERT_EQUAL(look(empty, sizeof empty - 1, &name), PORTER_BAD);
    CU_ASSERT_EQUAL(look(nul, sizeof nul - 1, &name), PORTER_BAD);
    memset(longer + n, 'a', PORTER_NAME_MAX);
    memcpy(longer + n + PORTER_NAME_MAX, "\r\n", 3);
    CU_ASSERT_EQUAL(look(longer, n + PORTER_NAME_MAX + 2, &name), PORTER_BAD);
    CU_ASSERT_EQUAL(look("", 0, &name), PORTER_MORE);
}

/* A preface, SETTINGS, WINDOW_UPDATE, then HEADERS with these flags and this block. */
static size_t frames(char *to, unsigned flags, const void *block, size_t n)
{
    static const char before[] = HTTP2_PREFACE "\0\0\6\4\0\0\0\0\0\0\3\0\0\0\x64"
                                               "\0\0\4\x08\0\0\0\0\0\0\1\0\0";
    size_t at = sizeof before - 1;
    memcpy(to, before, at);
    memcpy(to + at, "\0\0\0\1\0\0\0\0\1", 9);
    to[at + 1] = (char)(n >> 8);
    to[at + 2] = (char)n;
    to[at + 4] = (char)flags;
    memcpy(to + at + 9, block, n);
    return at + 9 + n;
}

enum { END_HEADERS = 4, PADDED = 8, PRIORITY = 0x20 };

/* All of it, or as far as it goes; one byte that differs is enough. */
static void preface(void)
{
    char text[] = HTTP2_PREFACE "x";
    const size_t n = sizeof HTTP2_PREFACE - 1;
    for (size_t i = 0; i <= n + 1; i++)
        CU_ASSERT_EQUAL(http2_peek_preface((struct slice){text, i}), i < n ? 0 : 1);
    for (size_t at = 0; at < n; at++) {
        text[at] ^= 0x20;
        for (size_t i = 0; i <= n + 1; i++)
            CU_ASSERT_EQUAL(http2_peek_preface((struct slice){text, i}), i <= at ? 0 : -1);
        text[at] ^= 0x20;
    }
}

static void http2(void)
{
    static const char block[] = "\x82\x86\x84\x41\x01"
                                "a";
    static const char padded[] = "\2\x82\x86\x84\x41\x01"
                                 "a\0\0";
    static const char weighed[] = "\0\0\0\0\7\x82\x86\x84\x41\x01"
                                  "a";
    char text[256];
    each_length(text, frames(text, END_HEADERS, block, sizeof block - 1), PORTER_NAMED, "a");
    each_length(text, frames(text, END_HEADERS | PADDED, padded, sizeof padded - 1), PORTER_NAMED,
                "a");
    each_length(text, frames(text, END_HEADERS | PRIORITY, weighed, sizeof weighed - 1),
                PORTER_NAMED, "a");
}

static void http2_bad(void)
{
    static const struct {
        unsigned flags;
        const char *block;
        size_t n;
    } bad[] = {
        {0,
         "\x82\x86\x84\x41\x01"
         "a",
         6},                              /* goes on in another frame */
        {END_HEADERS, "\x82\x86\x84", 3}, /* no name */
        {END_HEADERS,
         "\x82\x40\1x\1y\x41\x01"
         "a",
         9},                                              /* behind a field */
        {END_HEADERS, "\xff\xff\xff\xff\xff\xff\xff", 7}, /* no index */
        {END_HEADERS, "\x41\x00", 2},                     /* an empty name */
        {END_HEADERS,
         "\x41\x03"
         "a\0b",
         5}, /* one with a NUL */
        {END_HEADERS, "", 0},
        {END_HEADERS | PADDED, "", 0},
        {END_HEADERS | PADDED,
         "\x09\x41\x01"
         "a",
         4}, /* more padding than frame */
        {END_HEADERS | PRIORITY, "\0\0\0", 3},
    };
    char text[256];
    struct porter_name name;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        CU_ASSERT_EQUAL(look(text, frames(text, bad[i].flags, bad[i].block, bad[i].n), &name),
                        PORTER_BAD);
    size_t n = frames(text, END_HEADERS,
                      "\x41\x01"
                      "a",
                      3);
    text[sizeof HTTP2_PREFACE - 1 + 3] = 0; /* DATA first */
    CU_ASSERT_EQUAL(look(text, n, &name), PORTER_BAD);
    CU_ASSERT_EQUAL(look(HTTP2_PREFACE, 20, &name), PORTER_MORE);
    CU_ASSERT_FALSE(name.http1);
}

void tap_suites(void)
{
    CU_pSuite s = CU_add_suite("whose a connection is", NULL, NULL);
    CU_add_test(s, "HTTP/1.1", http1);
    CU_add_test(s, "HTTP/1.1 that names nobody", http1_bad);
    CU_add_test(s, "HTTP/2's preface", preface);
    CU_add_test(s, "HTTP/2", http2);
    CU_add_test(s, "HTTP/2 that names nobody", http2_bad);
}
