/* Where a secret is looked for beside a body: fields of a head, messages and control frames of a
 * WebSocket; and how long what it is looked for with is kept. */
#include "http1_head.h"
#include "scrub_cache.h"
#include "scrub_places.h"
#include "tap_main.h"

#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void suite_scrub_places(void);

/* The set of one secret. */
static struct scrub_set *cached(struct scrub_cache *c, const char *name, struct secret *value,
                                const char *user)
{
    return scrub_cache_get(c, &(struct scrub_source){name, user, value}, 1);
}

static const char secret[] = "sk-proj-3fA9xLq0ZbT7mYw2Rk5Vd8", mark[] = "[REDACTED:key]";

static struct scrub_set *set_of(const char *value)
{
    struct scrub_forms f;
    CU_ASSERT_EQUAL_FATAL(scrub_forms_make(&f, slice_str(value), NULL), 0);
    struct scrub_set *s = scrub_set_new(&f, "key");
    CU_ASSERT_PTR_NOT_NULL_FATAL(s);
    scrub_forms_free(&f);
    return s;
}

/* ---- heads ---- */

static void reply(struct head *h, const char *fields)
{
    static const struct limits limits = {.head_bytes = 32768, .headers = 100, .target_bytes = 8192};
    char text[2048];
    struct refusal why = {0, ""};
    int n = snprintf(text, sizeof text, "HTTP/1.1 200 OK\r\n%sContent-Length: 0\r\n\r\n", fields);
    CU_ASSERT_EQUAL_FATAL(
        http1_parse_reply(h, (struct slice){text, (size_t)n}, SLICE("GET"), NULL, &limits, &why),
        0);
}

static void test_head(void)
{
    struct scrub_set *set = set_of(secret);
    struct head from, to;
    char fields[512];
    snprintf(fields, sizeof fields,
             "Set-Cookie: a=%s; b=%s\r\nX-Near: %.20s\r\nX-Hex: %s\r\nLocation: /?k=%s\r\n", secret,
             secret, secret, "736b2d70726f6a2d33664139784c71305a6254376d597732526b35566438",
             secret);
    reply(&from, fields);
    CU_ASSERT_EQUAL(scrub_head(set, &to, &from), 4);
    for (size_t i = 0; i < to.n; i++)
        CU_ASSERT_EQUAL(slice_find_slice(to.fields[i].value, slice_str(secret)), -1);
    CU_ASSERT(slice_ends(http_head_find(&to, "location")->value,
                         SLICE("/?k=[REDACTED:key]****************")));
    CU_ASSERT_EQUAL(slice_find_slice(http_head_find(&to, "set-cookie")->value, slice_str(mark)), 2);
    CU_ASSERT(slice_eq(http_head_find(&to, "x-near")->value, (struct slice){secret, 20}));
    CU_ASSERT_EQUAL(http_head_find(&to, "x-hex")->value.n, 2 * strlen(secret));
    CU_ASSERT(slice_starts(http_head_find(&to, "x-hex")->value, slice_str(mark)));
    /* the head that it was made from is as it was */
    CU_ASSERT(slice_find_slice(http_head_find(&from, "location")->value, slice_str(secret)) > 0);
    http_head_free(&to);
    http_head_free(&from);
    reply(&from, "X-A: nothing\r\n");
    CU_ASSERT_EQUAL(scrub_head(set, &to, &from), 0);
    CU_ASSERT(to.n == from.n && to.status == 200);
    http_head_free(&to);
    http_head_free(&from);
    scrub_set_unref(set);
}

static bool coded(const char *fields)
{
    struct head h;
    reply(&h, fields);
    bool r = scrub_head_coded(&h);
    http_head_free(&h);
    return r;
}

static void test_coded(void)
{
    CU_ASSERT_FALSE(coded(""));
    CU_ASSERT_FALSE(coded("Content-Encoding: identity\r\n"));
    CU_ASSERT_FALSE(coded("Content-Encoding: \tIDENTITY \r\nGrpc-Encoding: identity\r\n"));
    CU_ASSERT_FALSE(coded("Content-Type: gzip\r\nX-Content-Encoding: gzip\r\n"));
    CU_ASSERT_TRUE(coded("Content-Encoding: gzip\r\n"));
    CU_ASSERT_TRUE(coded("content-encoding: br\r\n"));
    CU_ASSERT_TRUE(coded("Content-Encoding: identity\r\nContent-Encoding: gzip\r\n"));
    CU_ASSERT_TRUE(coded("Content-Encoding: identity, gzip\r\n"));
    CU_ASSERT_TRUE(coded("Content-Encoding:\r\n"));
    CU_ASSERT_TRUE(coded("Grpc-Encoding: gzip\r\n"));
    CU_ASSERT_TRUE(coded("Connect-Content-Encoding: zstd\r\n"));
}

/* ---- frames ---- */

static size_t put(char *to, size_t at, struct slice s)
{
    memcpy(to + at, s.p, s.n);
    return at + s.n;
}

static void test_messages(void)
{
    struct scrub_set *set = set_of(secret);
    struct scrub_frames f = {.scrub = scrub_new(set)};
    CU_ASSERT_PTR_NOT_NULL_FATAL(f.scrub);
    struct tunnel_filter t = scrub_frames_filter(&f);
    struct slice out;
    char got[256];
    size_t n = 0;
    CU_ASSERT_PTR_EQUAL(t.self, &f);
    CU_ASSERT_PTR_EQUAL(scrub_set(f.scrub), set);
    /* one message in two fragments, the secret across them */
    CU_ASSERT_PTR_NULL(t.piece(t.self, SLICE("{\"k\":\"sk-proj-3fA9x"), &out));
    n = put(got, n, out);
    CU_ASSERT_EQUAL(n, 6);
    CU_ASSERT_EQUAL(t.held(t.self), 13);
    CU_ASSERT_PTR_NULL(t.piece(t.self, SLICE("Lq0ZbT7mYw2Rk5Vd8\"} sk-pro"), &out));
    n = put(got, n, out);
    CU_ASSERT_EQUAL(t.held(t.self), 6);
    CU_ASSERT_PTR_NULL(t.rest(t.self, &out));
    n = put(got, n, out);
    CU_ASSERT_EQUAL(t.held(t.self), 0);
    got[n] = 0;
    CU_ASSERT_STRING_EQUAL(got, "{\"k\":\"[REDACTED:key]****************\"} sk-pro");
    CU_ASSERT_EQUAL(scrub_hits(f.scrub), 1);
    /* the next message is another stream: what was held of the last does not reach into it */
    CU_ASSERT_PTR_NULL(t.piece(t.self, SLICE("j-3fA9xLq0ZbT7mYw2Rk5Vd8"), &out));
    CU_ASSERT(slice_eq_str(out, "j-3fA9xLq0ZbT7mYw2Rk5Vd8"));
    CU_ASSERT_PTR_NULL(t.rest(t.self, &out));
    CU_ASSERT_EQUAL(scrub_hits(f.scrub), 1);
    scrub_free(f.scrub);
    scrub_set_unref(set);
}

static void test_control(void)
{
    struct scrub_set *set = set_of(secret);
    struct scrub_frames f = {.scrub = scrub_new(set)};
    CU_ASSERT_PTR_NOT_NULL_FATAL(f.scrub);
    struct tunnel_filter t = scrub_frames_filter(&f);
    char close[125] = "\x03\xe8why: sk-proj-3fA9xLq0ZbT7mYw2Rk5Vd8!", ping[] = "sk-proj-3fA9x";
    size_t n = strlen(close);
    struct slice out;
    /* between the fragments of a message, which it leaves as it is */
    CU_ASSERT_PTR_NULL(t.piece(t.self, SLICE("a sk-proj-3f"), &out));
    CU_ASSERT_PTR_NULL(t.control(t.self, close, n));
    CU_ASSERT_EQUAL(memcmp(close, "\x03\xe8why: [REDACTED:key]****************!", n), 0);
    CU_ASSERT_PTR_NULL(t.control(t.self, ping, sizeof ping - 1));
    CU_ASSERT_STRING_EQUAL(ping, "sk-proj-3fA9x");
    CU_ASSERT_EQUAL(f.hits, 1);
    CU_ASSERT_EQUAL(t.held(t.self), 10);
    CU_ASSERT_PTR_NULL(t.control(t.self, NULL, 0));
    CU_ASSERT_PTR_NULL(t.piece(t.self, SLICE("A9xLq0ZbT7mYw2Rk5Vd8"), &out));
    CU_ASSERT(out.n == strlen(secret) && slice_starts(out, slice_str(mark)));
    CU_ASSERT_EQUAL(scrub_hits(f.scrub), 1);
    CU_ASSERT_EQUAL(f.hits, 1);
    scrub_free(f.scrub);
    scrub_set_unref(set);
}

/* ---- what is kept ---- */

static int now(const struct event_base *b UNUSED, const struct event *e, void *arg UNUSED)
{
    event_active((struct event *)(uintptr_t)e, EV_TIMEOUT, 1);
    return 0;
}

static void sweep(struct event_base *base)
{
    event_base_foreach_event(base, now, NULL);
    CU_ASSERT(event_base_loop(base, EVLOOP_NONBLOCK) >= 0);
}

/* One that was used since the last sweep stays, one that was not goes, and with the last of them
 * the timer. */
static void test_idle(void)
{
    struct event_base *base = event_base_new();
    struct scrub_cache *c = scrub_cache_new(base);
    struct secret *v = secret_new(secret, strlen(secret));
    CU_ASSERT_PTR_NOT_NULL_FATAL(c);
    CU_ASSERT_EQUAL(event_base_get_num_events(base, EVENT_BASE_COUNT_ADDED), 0);
    struct scrub_set *a = cached(c, "a", v, NULL), *b = cached(c, "b", v, NULL);
    CU_ASSERT_EQUAL(event_base_get_num_events(base, EVENT_BASE_COUNT_ADDED), 1);
    sweep(base);
    struct scrub_set *again = cached(c, "a", v, NULL);
    CU_ASSERT_PTR_EQUAL(again, a);
    scrub_set_unref(again);
    sweep(base);
    again = cached(c, "a", v, NULL);
    CU_ASSERT_PTR_EQUAL(again, a);
    scrub_set_unref(again);
    again = cached(c, "b", v, NULL); /* made anew: the old one is still ours */
    CU_ASSERT_PTR_NOT_EQUAL(again, b);
    scrub_set_unref(again);
    sweep(base);
    CU_ASSERT_EQUAL(event_base_get_num_events(base, EVENT_BASE_COUNT_ADDED), 1);
    sweep(base);
    CU_ASSERT_EQUAL(event_base_get_num_events(base, EVENT_BASE_COUNT_ADDED), 0);
    char text[sizeof secret];
    memcpy(text, secret, sizeof text); /* who holds a set has it whatever was swept */
    CU_ASSERT_EQUAL(scrub_whole(a, text, strlen(text)), 1);
    again = cached(c, "a", v, NULL);
    CU_ASSERT_PTR_NOT_NULL(again);
    CU_ASSERT_EQUAL(event_base_get_num_events(base, EVENT_BASE_COUNT_ADDED), 1);
    scrub_set_unref(again);
    scrub_set_unref(a);
    scrub_set_unref(b);
    secret_unref(v);
    scrub_cache_free(c);
    scrub_cache_free(NULL);
    event_base_free(base);
}

void suite_scrub_places(void)
{
    CU_pSuite s = CU_add_suite("scrub_places", NULL, NULL);
    CU_add_test(s, "the fields of a head", test_head);
    CU_add_test(s, "a coded body could hold anything (C13)", test_coded);
    CU_add_test(s, "messages of a WebSocket", test_messages);
    CU_add_test(s, "control frames between them", test_control);
    CU_add_test(s, "sets that are not used are given up", test_idle);
}

void tap_suites(void)
{
    suite_scrub_places();
}
