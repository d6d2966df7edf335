/* HTTP/2 towards the sandbox: many streams, flow control both ways, endings that cannot be
 * mistaken.
 */
#include "http2_bed.h"

#include <time.h>

void suite_http2_server(void);

static void test_many(void)
{
    struct bed *b = open_bed(false);
    char path[32], want[32];
    int32_t ids[100];
    for (int i = 0; i < 100; i++) {
        snprintf(path, sizeof path, "/%s%02d", i & 1 ? "denied" : "ok", i);
        ids[i] = get(b, path);
    }
    body_buffer(b, 20);
    CU_ASSERT(b->n_asked == 100 && !b->closed && b->breaches == 0);
    for (int i = 0; i < 100; i++) {
        struct answer *a = &b->answers[ids[i]];
        snprintf(want, sizeof want, "/ok%02d", i);
        CU_ASSERT(a->closed && a->error == 0);
        CU_ASSERT_EQUAL(a->status, i & 1 ? 403 : 200);
        if (i & 1)
            snprintf(want, sizeof want, "\ndenied no_rule 7-1\n");
        CU_ASSERT(slice_ends(slice_str(a->text), slice_str(want)));
        CU_ASSERT_STRING_EQUAL(a->denied, i & 1 ? "no_rule 7-1" : "");
    }
    close_bed(b);
}

static void test_bodies(void)
{
    struct bed *b = open_bed(false);
    b->upload = 1 << 20;
    int32_t id = ask(b, "POST", "/up", NULL, true, "x-fine");
    body_buffer(b, 20);
    CU_ASSERT(b->asked[0].taken == 1 << 20 && b->asked[0].ended);
    CU_ASSERT(b->answers[id].status == 200 && b->answers[id].closed);
    b->upload = 5; /* as declared */
    id = ask(b, "POST", "/five", "5", true, NULL);
    body_buffer(b, 20);
    CU_ASSERT(b->asked[1].taken == 5 && b->answers[id].status == 200);
    id = ask(b, "HEAD", "/denied", NULL, false, NULL);
    body_buffer(b, 20);
    CU_ASSERT(b->answers[id].status == 403 && b->answers[id].bytes == 0 && b->answers[id].ended);
    close_bed(b);
}

/* The client may send only what the upstream has taken: no more than the stream's window waits
 * here, and the neighbour's bytes go on. */
static void test_upload_waits(void)
{
    struct bed *b = open_bed(false);
    b->room = 0;
    b->hold = true;
    b->upload = 1 << 20;
    ask(b, "POST", "/slow", NULL, true, NULL);
    body_buffer(b, 20);
    CU_ASSERT(b->upload == (1 << 20) - 65535 || b->upload == (1 << 20) - 65536);
    b->room = 65536;
    int32_t next = get(b, "/next");
    b->hold = false;
    body_buffer(b, 20);
    CU_ASSERT_EQUAL(b->answers[next].status, 200);
    b->asked[0].room = 65536;
    b->asked[0].downstream.ops->wanted(b->asked[0].downstream.self);
    body_buffer(b, 20);
    CU_ASSERT(b->asked[0].taken == 1 << 20 && b->asked[0].ended);
    close_bed(b);
}

/* A large reply to a client that opens no window waits within its bound; the others do not. */
static void test_reply_waits(void)
{
    struct bed *b = open_bed(true);
    b->hold = true;
    int32_t id = get(b, "/large");
    body_buffer(b, 10);
    struct asked *a = &b->asked[0];
    reply_head(a, BODY_LENGTH, 8 << 20);
    a->reply = 8 << 20;
    a->open = true;
    give(a);
    body_buffer(b, 20);
    CU_ASSERT_EQUAL(b->answers[id].bytes, 65535);
    CU_ASSERT((8 << 20) - a->reply - 65535 <= HTTP2_OUT_MAX);
    nghttp2_session_consume_connection(b->h2, 65535);
    b->hold = false;
    int32_t next = get(b, "/next");
    body_buffer(b, 20);
    CU_ASSERT_EQUAL(b->answers[next].status, 200);
    CU_ASSERT_STRING_EQUAL(b->answers[next].text, "/next");
    while (b->answers[id].bytes < 8 << 20 && !b->closed) {
        size_t before = b->answers[id].bytes;
        nghttp2_submit_window_update(b->h2, 0, id, 1 << 20);
        nghttp2_submit_window_update(b->h2, 0, 0, 1 << 20);
        body_buffer(b, 5);
        CU_ASSERT_FATAL(b->answers[id].bytes > before);
    }
    CU_ASSERT(b->answers[id].ended && b->answers[id].error == 0 && !a->open);
    close_bed(b);
}

/* A client that opens no window is cut off after idle_seconds, with the exchange. */
static void test_stall(void)
{
    struct bed *b = open_bed(true);
    b->hold = true;
    int32_t id = get(b, "/large");
    body_buffer(b, 10);
    struct asked *a = &b->asked[0];
    reply_head(a, BODY_LENGTH, 1 << 20);
    a->reply = 1 << 20;
    a->open = true;
    give(a);
    for (int i = 0; i < 100 && !a->cancelled; i++)
        body_buffer(b, 40);
    CU_ASSERT(a->cancelled && b->answers[id].closed && b->answers[id].error == NGHTTP2_CANCEL);
    CU_ASSERT_STRING_EQUAL(a->cancel, "timeout");
    close_bed(b);
    /* nor does one that never sends the body it began */
    b = open_bed(false);
    nghttp2_nv nv[] = {NV(":method", "POST"), NV(":scheme", "https"), NV(":authority", "a"),
                       NV(":path", "/half")};
    id = nghttp2_submit_headers(b->h2, NGHTTP2_FLAG_NONE, -1, NULL, nv, 4, NULL);
    for (int i = 0; i < 100 && !b->answers[id].closed; i++)
        body_buffer(b, 40);
    CU_ASSERT(b->asked[0].cancelled && b->answers[id].status == 408);
    close_bed(b);
}

/* A reply that breaks off must not look whole. */
static void test_truncated(void)
{
    struct bed *b = open_bed(false);
    b->hold = true;
    int32_t id = get(b, "/x");
    body_buffer(b, 10);
    struct asked *a = &b->asked[0];
    reply_head(a, BODY_CHUNKED, 0);
    a->downstream.ops->data(a->downstream.self, "part", 4);
    body_buffer(b, 10);
    a->downstream.ops->fail(a->downstream.self, 502, "upstream_truncated", "7-1");
    body_buffer(b, 10);
    CU_ASSERT(b->answers[id].bytes == 4 && b->answers[id].closed && !b->answers[id].ended);
    CU_ASSERT(b->answers[id].error == NGHTTP2_INTERNAL_ERROR && !b->closed);
    close_bed(b);
}

static void test_trailers(void)
{
    struct bed *b = open_bed(false);
    struct head h;
    b->hold = true;
    int32_t id = get(b, "/x");
    body_buffer(b, 10);
    struct asked *a = &b->asked[0];
    reply_head(a, BODY_CHUNKED, 0);
    a->downstream.ops->data(a->downstream.self, "body", 4);
    http_head_init(&h);
    h.fields[h.n++] = (struct field){SLICE("x-sum"), SLICE("42")};
    a->downstream.ops->trailers(a->downstream.self, &h);
    a->downstream.ops->end(a->downstream.self);
    body_buffer(b, 10);
    CU_ASSERT(b->answers[id].ended && b->answers[id].bytes == 4);
    CU_ASSERT_STRING_EQUAL(b->answers[id].trailer, "42");
    /* a request's are judged by its upstream */
    b->upload = 3;
    id = ask(b, "POST", "/up", NULL, true, "x-bad");
    body_buffer(b, 10);
    CU_ASSERT(b->asked[1].cancelled && b->answers[id].status == 403);
    CU_ASSERT_STRING_EQUAL(b->answers[id].denied, "secret_blocked -");
    close_bed(b);
}

/* The client resets, or leaves: each exchange is cancelled once. */
static void test_gone(void)
{
    struct bed *b = open_bed(false);
    b->hold = true;
    int32_t id = get(b, "/a");
    get(b, "/b");
    body_buffer(b, 10);
    nghttp2_submit_rst_stream(b->h2, 0, id, NGHTTP2_CANCEL);
    body_buffer(b, 10);
    CU_ASSERT(b->asked[0].cancelled && !b->asked[1].cancelled);
    CU_ASSERT_STRING_EQUAL(b->asked[0].cancel, "client_gone");
    shutdown(b->fd, SHUT_WR);
    body_buffer(b, 10);
    CU_ASSERT(b->asked[1].cancelled && b->closed);
    close_bed(b);
}

/* content-length that is not what comes (B29): nobody is asked, where that is seen at once; */
static void lies_at_once(const char *length)
{
    struct bed *b = open_bed(false);
    b->upload = 5;
    int32_t id = ask(b, "POST", "/x", length, true, NULL);
    body_buffer(b, 10);
    CU_ASSERT(b->n_asked == 0 && b->refused == 1 && b->breaches == 0 && !b->gone);
    CU_ASSERT(refused_and_reset(&b->answers[id], "framing 7-2"));
    CU_ASSERT(b->shared->used <= FAULTS_FAULT); /* charged once; time gives back */
    close_bed(b);
}

/* an exchange that has begun is cancelled, and nothing of it is ended. */
static void lies_later(const char *length)
{
    struct bed *b = open_bed(false);
    b->upload = 20000; /* more than a frame */
    int32_t id = ask(b, "POST", "/x", length, true, NULL);
    body_buffer(b, 10);
    CU_ASSERT_FATAL(b->n_asked == 1);
    CU_ASSERT(!b->asked[0].ended && b->asked[0].cancelled && b->asked[0].taken > 0);
    CU_ASSERT(b->asked[0].taken <= strtoul(length, NULL, 10) && b->asked[0].taken <= 20000);
    CU_ASSERT_STRING_EQUAL(b->asked[0].cancel, "framing");
    CU_ASSERT(b->answers[id].status == 400 && b->answers[id].ended && b->answers[id].closed);
    CU_ASSERT_STRING_EQUAL(b->answers[id].denied, "framing -");
    CU_ASSERT(b->refused == 0 && b->breaches == 0 && !b->gone);
    CU_ASSERT(b->shared->used <= FAULTS_FAULT); /* charged once; time gives back */
    close_bed(b);
}

static void test_length(void)
{
    lies_at_once("4");
    lies_at_once("6");
    lies_at_once("0");
    lies_later("19999");
    lies_later("20001");
    struct bed *b = open_bed(false); /* none declared, none comes: a request at its end */
    int32_t id = ask(b, "POST", "/none", "0", true, NULL);
    body_buffer(b, 10);
    CU_ASSERT(b->n_asked == 1 && b->asked[0].ended && b->answers[id].status == 200);
    nghttp2_nv nv[] = {NV(":method", "POST"), NV(":scheme", "https"), NV(":authority", "a"),
                       NV(":path", "/none"), NV("content-length", "0")};
    id = nghttp2_submit_headers(b->h2, NGHTTP2_FLAG_NONE, -1, NULL, nv, 5, NULL);
    for (int i = 0; i < 100 && !b->answers[id].closed; i++)
        body_buffer(b, 40);
    CU_ASSERT(b->n_asked == 1 && b->refused == 1 && b->answers[id].status == 408);
    close_bed(b);
}

/* A client that waits for 100 before its body gets it, once, unless it is answered at once (B27).
 */
static void test_continue(void)
{
    struct bed *b = open_bed(false);
    nghttp2_nv nv[] = {NV(":method", "POST"), NV(":scheme", "https"), NV(":authority", "a"),
                       NV(":path", "/up"), NV("expect", "100-continue")};
    nghttp2_data_provider from = {{.ptr = NULL}, client_body};
    int32_t id = nghttp2_submit_headers(b->h2, NGHTTP2_FLAG_NONE, -1, NULL, nv, 5, NULL);
    body_buffer(b, 10);
    CU_ASSERT(b->answers[id].status == 100 && !b->answers[id].ended);
    b->upload = 5;
    nghttp2_submit_data(b->h2, NGHTTP2_FLAG_END_STREAM, id, &from);
    body_buffer(b, 10);
    CU_ASSERT(b->answers[id].status == 200 && b->asked[0].taken == 5);
    nv[3] = (nghttp2_nv)NV(":path", "/denied");
    id = nghttp2_submit_headers(b->h2, NGHTTP2_FLAG_NONE, -1, NULL, nv, 5, NULL);
    body_buffer(b, 10);
    CU_ASSERT(b->answers[id].status == 403 && !b->answers[id].continued);
    nv[4] = (nghttp2_nv)NV("expect", "more");
    id = nghttp2_submit_headers(b->h2, NGHTTP2_FLAG_NONE, -1, NULL, nv, 5, NULL);
    body_buffer(b, 10);
    CU_ASSERT(b->answers[id].status == 417 && !b->answers[id].continued);
    close_bed(b);
}

/* An answer before the body's end: whole, then the rest is waved off. */
static void test_early(void)
{
    struct bed *b = open_bed(false);
    b->upload = 10 << 20;
    b->room = 0;
    int32_t id = ask(b, "POST", "/denied", NULL, true, NULL);
    body_buffer(b, 20);
    CU_ASSERT(b->answers[id].status == 403 && b->answers[id].ended && b->answers[id].closed);
    CU_ASSERT(b->answers[id].error == NGHTTP2_NO_ERROR && b->upload > 0);
    b->upload = 200000; /* a small one is taken to its end: some clients would lose the reply */
    id = ask(b, "POST", "/denied", NULL, true, NULL);
    body_buffer(b, 20);
    CU_ASSERT(b->answers[id].status == 403 && b->answers[id].closed && b->upload == 0);
    b->hold = true; /* as one is that waited for its upstream */
    b->upload = 200000;
    id = ask(b, "POST", "/late", NULL, true, NULL);
    body_buffer(b, 20);
    CU_ASSERT(b->upload > 100000);
    b->asked[b->n_asked - 1].downstream.ops->fail(b->asked[b->n_asked - 1].downstream.self, 502,
                                                  "resolve", "7-3");
    body_buffer(b, 20);
    CU_ASSERT(b->answers[id].status == 502 && b->answers[id].closed && b->upload == 0);
    b->hold = false;
    b->room = 65536;
    id = get(b, "/next");
    body_buffer(b, 10);
    CU_ASSERT(b->answers[id].status == 200);
    close_bed(b);
}

static int64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void test_drain(void)
{
    struct bed *b = open_bed(false);
    b->hold = true;
    int32_t id = get(b, "/slow");
    body_buffer(b, 10);
    http2_server_drain(b->server);
    body_buffer(b, 10);
    CU_ASSERT(b->gone && b->goaway == NGHTTP2_NO_ERROR && !b->closed);
    answer(&b->asked[0]);
    body_buffer(b, 20);
    CU_ASSERT(b->answers[id].status == 200 && b->answers[id].ended && b->closed);
    close_bed(b);
    b = open_bed(false); /* one that is used now and then is kept */
    for (int used = 0, late = 0; used < 8 && late < 20; used++) {
        int64_t since = now_ms();
        id = get(b, "/again");
        body_buffer(b, 300);
        if (now_ms() - since > 900) { /* too busy a machine to tell: begin again */
            close_bed(b);
            b = open_bed(false);
            used = -1;
            late++;
            continue;
        }
        CU_ASSERT(b->answers[id].status == 200 && !b->gone);
    }
    close_bed(b);
    b = open_bed(false); /* an idle one is ended in time */
    for (int i = 0; i < 100 && !b->closed; i++)
        body_buffer(b, 40);
    CU_ASSERT(b->gone && b->goaway == NGHTTP2_NO_ERROR && b->closed && b->breaches == 0);
    close_bed(b);
}

void suite_http2_server(void)
{
    CU_pSuite s = CU_add_suite("http2_server", setup, teardown);
    CU_add_test(s, "100 streams, each decided alone", test_many);
    CU_add_test(s, "bodies", test_bodies);
    CU_add_test(s, "an upload waits for its back", test_upload_waits);
    CU_add_test(s, "a reply waits for its client, its neighbour does not", test_reply_waits);
    CU_add_test(s, "stalls end (F1, B30)", test_stall);
    CU_add_test(s, "a reply that breaks off is reset", test_truncated);
    CU_add_test(s, "trailers, both ways", test_trailers);
    CU_add_test(s, "the client leaves", test_gone);
    CU_add_test(s, "a length that lies (B29)", test_length);
    CU_add_test(s, "100-continue (B27)", test_continue);
    CU_add_test(s, "an answer before the body's end", test_early);
    CU_add_test(s, "draining and idleness", test_drain);
}

void tap_suites(void)
{
    suite_http2_server();
}
