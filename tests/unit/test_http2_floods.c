/* HTTP/2 towards the sandbox: what a hostile client does. Floods (B30): one breach, GOAWAY, the
 * end. */
#include "http2_bed.h"

void suite_http2_floods(void);

/* The error of a GOAWAY among the frames that were kept. */
static void find_goaway(struct bed *b)
{
    const uint8_t *p = buf_data(&b->got);
    size_t left = buf_len(&b->got);
    while (left >= 9) {
        size_t n = 9 + ((size_t)p[0] << 16 | (size_t)p[1] << 8 | p[2]);
        if (n > left)
            return;
        if (p[3] == NGHTTP2_GOAWAY && n >= 17) {
            b->gone = true;
            b->goaway = p[16];
        }
        p += n;
        left -= n;
    }
}

static void flooded(struct bed *b, const char *what)
{
    body_buffer(b, 30);
    if (b->raw)
        find_goaway(b);
    if (!b->gone || b->goaway != NGHTTP2_ENHANCE_YOUR_CALM || !b->closed || b->breaches != 1)
        printf("# %s: goaway %d %u closed %d breaches %u %s\n", what, b->gone, b->goaway, b->closed,
               b->breaches, b->detail);
    CU_ASSERT(b->gone && b->goaway == NGHTTP2_ENHANCE_YOUR_CALM && b->closed);
    CU_ASSERT(b->breaches == 1);
    CU_ASSERT_STRING_EQUAL(b->breach, "h2_flood");
    for (size_t i = 0; i < b->n_asked; i++)
        CU_ASSERT(b->asked[i].cancelled || b->asked[i].ended);
    close_bed(b);
}

static void frame(struct bed *b, unsigned type, unsigned flags, uint32_t stream, const void *body,
                  size_t n)
{
    uint8_t head[9] = {(uint8_t)(n >> 16),      (uint8_t)(n >> 8),      (uint8_t)n,
                       (uint8_t)type,           (uint8_t)flags,         (uint8_t)(stream >> 24),
                       (uint8_t)(stream >> 16), (uint8_t)(stream >> 8), (uint8_t)stream};
    b->raw = true;
    send_all(b, head, sizeof head);
    send_all(b, body, n);
}

/* Go's gRPC names the highest stream there is when it goes: that is a goodbye. With an error, or on
 * a stream, it is none. */
static void test_goodbye(void)
{
    static const unsigned char last[8] = {0x7f, 0xff, 0xff, 0xff};
    static const struct {
        uint32_t stream;
        unsigned char body[8];
    } bad[] = {{0, {0x7f, 0xff, 0xff, 0xff, 0, 0, 0, 1}}, /* an error */
               {0, {0x7f, 0xff, 0xff, 0xfd}},             /* no stream of ours */
               {3, {0x7f, 0xff, 0xff, 0xff}}};
    struct bed *b = open_bed(false);
    int32_t id = get(b, "/x");
    body_buffer(b, 10);
    CU_ASSERT(b->answers[id].status == 200);
    frame(b, NGHTTP2_GOAWAY, 0, 0, last, sizeof last);
    body_buffer(b, 20);
    CU_ASSERT(b->breaches == 0 && b->shared->used == 0);
    close_bed(b);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        b = open_bed(false);
        id = get(b, "/x");
        body_buffer(b, 10);
        CU_ASSERT(b->answers[id].status == 200 && b->breaches == 0);
        frame(b, NGHTTP2_GOAWAY, 0, bad[i].stream, bad[i].body, sizeof bad[i].body);
        body_buffer(b, 20);
        CU_ASSERT(b->breaches > 0);
        close_bed(b);
    }
}

static void test_rapid_reset(void)
{
    struct bed *b = open_bed(false);
    b->hold = true;
    for (int i = 0; i < 250 && !b->gone; i++) {
        int32_t id = get(b, "/x");
        body_buffer(b, 1);
        nghttp2_submit_rst_stream(b->h2, 0, id, NGHTTP2_CANCEL);
        body_buffer(b, 1);
    }
    for (int i = 0; i < 50 && !b->gone; i++) /* not read for a while, then ended */
        body_buffer(b, 40);
    CU_ASSERT(b->n_asked < 250); /* 200, and what time gave back */
    flooded(b, "rapid reset");
}

static void reset_one(struct bed *b)
{
    int32_t id = get(b, "/x");
    body_buffer(b, 1);
    nghttp2_submit_rst_stream(b->h2, 0, id, NGHTTP2_CANCEL);
    body_buffer(b, 1);
}

/* So many streams are open, and all are cancelled, three times; begun: their answers have. */
static void cancel_many(bool begun)
{
    enum { OPEN = 80, TIMES = 3 };
    struct bed *b = open_bed(false);
    int32_t ids[OPEN];
    b->hold = true;
    for (int i = 0; i < TIMES; i++) {
        unsigned had = b->shared->used;
        for (size_t k = 0; k < OPEN; k++)
            ids[k] = get(b, "/x");
        body_buffer(b, 2);
        CU_ASSERT_EQUAL(b->n_asked, (size_t)(i + 1) * OPEN);
        for (size_t k = 0; begun && k < OPEN; k++)
            reply_head(&b->asked[(size_t)i * OPEN + k], BODY_CHUNKED, 0);
        body_buffer(b, begun ? 1 : FAULTS_EARLY_MS + 10); /* what tells them from a flood */
        for (size_t k = 0; k < OPEN; k++)
            nghttp2_submit_rst_stream(b->h2, 0, ids[k], NGHTTP2_CANCEL);
        body_buffer(b, 2);
        CU_ASSERT(b->shared->used > 0 && b->shared->used <= had + OPEN * FAULTS_CANCEL);
    }
    for (size_t i = 0; i < b->n_asked; i++)
        CU_ASSERT(b->asked[i].cancelled);
    CU_ASSERT(!b->gone && !b->closed && b->breaches == 0);
    b->hold = false;
    int32_t id = get(b, "/next");
    body_buffer(b, 5);
    CU_ASSERT(b->answers[id].status == 200);
    close_bed(b);
}

/* A page that is closed, calls whose deadline is over: the client may, and the connection goes on.
 */
static void test_cancelled(void)
{
    cancel_many(true);
    cancel_many(false);
}

/* A cancellation that crosses the end of its answer has cost nothing. */
static void test_cancelled_late(void)
{
    static const unsigned char cancel[4] = {0, 0, 0, NGHTTP2_CANCEL};
    struct bed *b = open_bed(false);
    int32_t id = get(b, "/x");
    body_buffer(b, 5);
    CU_ASSERT(b->answers[id].closed);
    for (int i = 0; i < 250; i++)
        frame(b, NGHTTP2_RST_STREAM, 0, (uint32_t)id, cancel, sizeof cancel);
    body_buffer(b, 5);
    CU_ASSERT(b->shared->used == 0 && !b->closed && b->breaches == 0);
    close_bed(b);
}

/* A sandbox that is at fault too often is not read from, however much it sends in that time; the
 * connection at fault ends after a second of it, its neighbour is answered. */
static void test_pauses(void)
{
    struct bed *b = open_bed_of("slow", false), *other = open_bed_of("slow", false);
    uint64_t since;
    b->hold = true;
    body_buffer(other, 5);
    for (int i = 0; i < 150 && b->shared->used <= FAULTS_SLOW; i++)
        reset_one(b);
    CU_ASSERT(b->shared->used > FAULTS_SLOW && !b->gone);
    since = faults_now();
    int32_t id = get(other, "/next");
    body_buffer(other, 5);
    for (int i = 0; i < 90 && !b->gone; i++) {
        reset_one(b);
        if (b->shared->used > FAULTS_SLOW) /* enough to stay there, too few to end at once */
            body_buffer(b, 15);
    }
    for (int i = 0; i < 50 && !b->gone; i++)
        body_buffer(b, 40);
    printf("# ended after %u ms\n", (unsigned)(faults_now() - since));
    CU_ASSERT(faults_now() - since >= (FAULTS_PAUSES - 1) * FAULTS_PAUSE_MS);
    flooded(b, "faults, slowly");
    for (int i = 0; i < 100 && !other->answers[id].closed; i++)
        body_buffer(other, 40);
    CU_ASSERT(other->answers[id].status == 200 && !other->gone && other->breaches == 0);
    close_bed(other);
}

static void test_frame_floods(void)
{
    static const char ping[8], settings[6] = {0, 3, 0, 0, 0, 99};
    static const struct flood {
        const char *name;
        unsigned type, stream;
        const char *body;
        size_t n;
    } floods[] = {{"PING", 6, 0, ping, 8},
                  {"SETTINGS", 4, 0, settings, 6},
                  {"SETTINGS, empty", 4, 0, settings, 0},
                  {"PRIORITY", 2, 1, ping, 5},
                  {"unknown", 0x42, 0, ping, 8},
                  {"empty DATA", 0, 1, ping, 0}};
    for (size_t i = 0; i < ARRAY_LEN(floods); i++) {
        const struct flood *f = &floods[i];
        struct bed *b = open_bed(false);
        b->hold = true;
        nghttp2_nv nv[] = {NV(":method", "POST"), NV(":scheme", "https"), NV(":authority", "a"),
                           NV(":path", "/half")};
        nghttp2_submit_headers(b->h2, NGHTTP2_FLAG_NONE, -1, NULL, nv, 4, NULL);
        body_buffer(b, 5);
        for (int k = 0; k < 1500 && !b->closed; k++)
            frame(b, f->type, 0, f->stream, f->body, f->n);
        flooded(b, f->name);
    }
}

static void test_continuation_flood(void)
{
    struct bed *b = open_bed(false);
    static const uint8_t block[] = {0x82, 0x87, 0x84}; /* GET, https, / */
    body_buffer(b, 5);
    frame(b, 1, 0x1, 1, block, sizeof block);
    for (int i = 0; i < 100 && !b->closed; i++)
        frame(b, 9, 0, 1, "", 0);
    flooded(b, "CONTINUATION");
}

/* One large field in the table, named by one byte each: a bomb. */
static void test_hpack_bomb(void)
{
    struct bed *b = open_bed(false);
    static uint8_t block[16000];
    size_t n = 0;
    block[n++] = 0x82;
    block[n++] = 0x87;
    block[n++] = 0x84;
    block[n++] = 0x40; /* literal with incremental indexing, a new name */
    block[n++] = 1;
    block[n++] = 'x';
    block[n++] = 0x7f; /* a value of 4000 bytes */
    block[n++] = 0xa1;
    block[n++] = 0x1e;
    memset(block + n, 'v', 4000);
    n += 4000;
    memset(block + n, 0xbe, sizeof block - n); /* dynamic table, first entry */
    body_buffer(b, 5);
    frame(b, 1, 0x5, 1, block, sizeof block);
    flooded(b, "HPACK bomb");
}

/* A field block that is begun and not ended. */
static void test_slow_block(void)
{
    struct bed *b = open_bed(false);
    static const uint8_t block[] = {0x82};
    body_buffer(b, 5);
    frame(b, 1, 0, 1, block, sizeof block);
    for (int i = 0; i < 100 && !b->closed; i++)
        body_buffer(b, 40);
    CU_ASSERT(b->closed && b->breaches == 1 && b->n_asked == 0);
    CU_ASSERT_STRING_EQUAL(b->breach, "timeout");
    close_bed(b);
}

/* h2 was negotiated, something else is spoken (E15). */
static void test_not_h2(void)
{
    struct bed *b = open_bed(false);
    send_all(b, (const uint8_t *)"GET / HTTP/1.1\r\nHost: a\r\n\r\n", 27);
    for (int i = 0; i < 20 && !b->closed; i++)
        event_base_loop(base, EVLOOP_NONBLOCK);
    CU_ASSERT(b->closed && b->breaches == 1 && b->n_asked == 0);
    CU_ASSERT_STRING_EQUAL(b->breach, "h2_protocol");
    close_bed(b);
}

/* Malformed requests: an answer, then a reset, no exchange; the connection goes on. */
static void test_malformed(void)
{
    struct bed *b = open_bed(false);
    nghttp2_nv upper[] = {NV(":method", "GET"), NV(":scheme", "https"), NV(":authority", "a"),
                          NV(":path", "/"), NV("x", "a\rb")};
    int32_t id = nghttp2_submit_request(b->h2, NULL, upper, 5, NULL, NULL);
    body_buffer(b, 10);
    CU_ASSERT(b->n_asked == 0 && b->refused == 1 && b->breaches == 0);
    CU_ASSERT(refused_and_reset(&b->answers[id], "bad_header 7-2"));
    CU_ASSERT(b->shared->used <= FAULTS_FAULT); /* charged once; time gives back */
    id = get(b, "/a b"); /* nghttp2 lets this through; the grammar does not */
    int32_t next = get(b, "/next");
    body_buffer(b, 10);
    CU_ASSERT(b->n_asked == 1 && b->answers[next].status == 200);
    CU_ASSERT(b->refused == 2 && b->breaches == 0 && !b->gone && !b->closed);
    CU_ASSERT(refused_and_reset(&b->answers[id], "bad_target 7-2"));
    close_bed(b);
}

void suite_http2_floods(void)
{
    CU_pSuite s = CU_add_suite("http2_floods", setup, teardown);
    CU_add_test(s, "a goodbye of Go's gRPC", test_goodbye);
    CU_add_test(s, "rapid reset (B30)", test_rapid_reset);
    CU_add_test(s, "calls that are cancelled (B30 twin)", test_cancelled);
    CU_add_test(s, "a call that is cancelled as it ends (B30 twin)", test_cancelled_late);
    CU_add_test(s, "a sandbox at fault is slowed, then one connection ends (B30)", test_pauses);
    CU_add_test(s, "floods of frames (B30)", test_frame_floods);
    CU_add_test(s, "CONTINUATION flood (B30)", test_continuation_flood);
    CU_add_test(s, "HPACK bomb (B30)", test_hpack_bomb);
    CU_add_test(s, "a field block that never ends", test_slow_block);
    CU_add_test(s, "h2 chosen, something else spoken (E15)", test_not_h2);
    CU_add_test(s, "malformed requests (B28)", test_malformed);
}

void tap_suites(void)
{
    suite_http2_floods();
}
