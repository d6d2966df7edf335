/* A connection to an origin that speaks HTTP/2, byte by byte: streams, windows, GOAWAY, cancelling
 * from within; the pool that it stands in. */
#include "http2_client_bed.h"

void suite_http2_client(void);

/* ---- how it should go ---- */

static void test_plain(void)
{
    struct bed b;
    open_bed(&b);
    ask(&b, 0, "GET", BODY_NONE);
    ask(&b, 1, "GET", BODY_NONE);
    settings(&b);
    listen_to(&b);
    CU_ASSERT(saw(&b, "PRI * HTTP/2.0", 14) && !saw(&b, "SECRET", 6)); /* Huffman-coded */
    CU_ASSERT(b.n_news == 1 && b.news[0] == HTTP2_SETTLED && http2_client_in_use(b.client) == 2);
    reply(&b, 3, 0, "200", "content-length", "5");
    reply(&b, 1, END_STREAM, "204", NULL, NULL);
    say(&b, NGHTTP2_DATA, END_STREAM, 3, "hello", 5);
    CU_ASSERT(b.a[0].ends == 1 && b.a[0].status == 204 && b.a[0].body == BODY_NONE);
    CU_ASSERT(b.a[1].ends == 1 && b.a[1].status == 200 && b.a[1].body == BODY_LENGTH);
    CU_ASSERT(slice_eq(buf_slice(&b.a[1].got), SLICE("hello")));
    CU_ASSERT(b.n_news == 2 && b.news[1] == HTTP2_IDLE && http2_client_takes(b.client));
    ask(&b, 2, "GET", BODY_NONE);
    reply(&b, 5, 0, "103", "link", "x"); /* an interim reply tells nobody anything */
    reply(&b, 5, 0, "200", "x-y", "z");
    say(&b, NGHTTP2_DATA, 0, 5, "ab", 2);
    reply(&b, 5, END_STREAM, NULL, "grpc-status", "0");
    CU_ASSERT(b.a[2].replies == 1 && b.a[2].ends == 1 && b.a[2].trailers == 1);
    CU_ASSERT_EQUAL(b.a[2].body, BODY_CHUNKED);
    close_bed(&b);
}

/* Servers leave blanks around values, and set many cookies: no client minds. */
static void test_fields(void)
{
    struct bed b;
    unsigned char f[8192];
    size_t n = put_field(f, ":status", "200");
    open_bed(&b);
    settings(&b);
    ask(&b, 0, "GET", BODY_NONE);
    ask(&b, 1, "GET", BODY_NONE);
    n += put_field(f + n, "x", " a b; \t");
    n += put_field(f + n, "content-length", "0");
    say(&b, NGHTTP2_HEADERS, HEADERS_END | END_STREAM, 1, f, n);
    CU_ASSERT(b.a[0].ends == 1 && b.a[0].fails == 0);
    CU_ASSERT_STRING_EQUAL(b.a[0].x, "a b;");
    n = put_field(f, ":status", "200");
    for (size_t i = 0; i < HEAD_FIELDS_MAX; i++)
        n += put_field(f + n, "x", "y");
    say(&b, NGHTTP2_HEADERS, HEADERS_END | END_STREAM, 3, f, n);
    CU_ASSERT(b.a[1].ends == 1 && b.a[1].n_fields == HEAD_FIELDS_MAX);
    close_bed(&b);
}

static void test_upload(void)
{
    struct bed b;
    static char block[HTTP2_CLIENT_UP];
    open_bed(&b);
    settings(&b);
    ask(&b, 0, "POST", BODY_CHUNKED);
    size_t sent = 0, room;
    const struct upstream_stream l = b.a[0].upstream_stream;
    for (int i = 0; i < 50 && (room = l.ops->room(l.self)) > 0; i++) {
        l.ops->data(l.self, block, room);
        sent += room;
        listen_to(&b);
    }
    /* the origin's window, and what a stream holds: no more is taken */
    CU_ASSERT_EQUAL(sent, 65535 + HTTP2_CLIENT_UP);
    CU_ASSERT_EQUAL(b.a[0].fails, 0);
    unsigned wanted = b.a[0].wanted;
    say(&b, NGHTTP2_WINDOW_UPDATE, 0, 0, "\0\2\0\0", 4);
    say(&b, NGHTTP2_WINDOW_UPDATE, 0, 1, "\0\2\0\0", 4);
    CU_ASSERT(b.a[0].wanted > wanted && l.ops->room(l.self) > 0);
    l.ops->end(l.self);
    reply(&b, 1, END_STREAM, "200", NULL, NULL);
    CU_ASSERT_EQUAL(b.a[0].ends, 1);
    ask(&b, 1, "POST",
        BODY_CHUNKED); /* answered before the request is whole: the stream is reset */
    reply(&b, 3, END_STREAM, "413", NULL, NULL);
    listen_to(&b);
    CU_ASSERT(b.a[1].ends == 1 && saw(&b, "\0\0\4\3\0\0\0\0\3", 9));
    close_bed(&b);
}

/* The end of a request that the origin's windows hold back is not waited for when its reply is
 * whole: the stream is reset, and gone. */
static void test_answered_before_the_end(void)
{
    struct bed b;
    static char block[HTTP2_CLIENT_UP];
    open_bed(&b);
    settings(&b);
    ask(&b, 0, "POST", BODY_CHUNKED);
    const struct upstream_stream l = b.a[0].upstream_stream;
    for (size_t sent = 0, room; sent < 65535; sent += room) {
        room = l.ops->room(l.self);
        room = room < 65535 - sent ? room : 65535 - sent;
        l.ops->data(l.self, block, room);
        listen_to(&b);
    }
    l.ops->end(l.self);
    turn();
    reply(&b, 1, END_STREAM, "200", NULL, NULL);
    turn();
    CU_ASSERT(b.a[0].ends == 1 && LIST_EMPTY(&b.client->streams));
    close_bed(&b);
}

/* A holder without room: no more comes than its window, and another stream is not held up. */
static void test_backpressure(void)
{
    struct bed b;
    static char block[16384];
    open_bed(&b);
    settings(&b);
    ask(&b, 0, "GET", BODY_NONE);
    ask(&b, 1, "GET", BODY_NONE);
    b.a[0].room = 0;
    reply(&b, 1, 0, "200", NULL, NULL);
    reply(&b, 3, 0, "200", NULL, NULL);
    for (int i = 0; i < 3; i++)
        say(&b, NGHTTP2_DATA, 0, 1, block, sizeof block);
    say(&b, NGHTTP2_DATA, 0, 1, block, 16383);
    listen_to(&b);
    CU_ASSERT(buf_len(&b.a[0].got) == 0 && !saw(&b, "\0\0\4\10\0\0\0\0\1", 9));
    for (int i = 0; i < 100; i++) /* far more than both windows: it is given back as it is taken */
        say(&b, NGHTTP2_DATA, 0, 3, block, sizeof block);
    CU_ASSERT_EQUAL(buf_len(&b.a[1].got), 100 * sizeof block);
    b.a[0].room = 65536;
    b.a[0].upstream_stream.ops->resume(b.a[0].upstream_stream.self);
    listen_to(&b);
    CU_ASSERT(buf_len(&b.a[0].got) == 65535 && saw(&b, "\0\0\4\10\0\0\0\0\1", 9));
    b.a[0].room = 0;
    for (int i = 0; i < 40 && b.a[0].fails == 0;
         i++) /* beyond its window: that stream or all end */
        say(&b, NGHTTP2_DATA, 0, 1, block, sizeof block);
    CU_ASSERT(b.a[0].fails == 1 && buf_len(&b.a[0].got) <= 65535);
    CU_ASSERT_STRING_EQUAL(b.a[0].code, "upstream_protocol");
    close_bed(&b);
}

/* Its last reply came whole: the holder gets all of it after the connection is gone. */
static void test_closed_after_end(void)
{
    struct bed b;
    open_bed(&b);
    settings(&b);
    ask(&b, 0, "GET", BODY_NONE);
    ask(&b, 1, "GET", BODY_NONE);
    ask(&b, 2, "GET", BODY_NONE);
    b.a[0].room = 0;
    reply(&b, 1, 0, "200", NULL, NULL);
    reply(&b, 3, 0, "200", NULL, NULL);
    say(&b, NGHTTP2_DATA, END_STREAM, 1, "hello", 5);
    shutdown(b.fd, SHUT_WR);
    turn();
    CU_ASSERT(left(&b) && b.a[0].fails == 0 && b.a[0].ends == 0);
    CU_ASSERT_STRING_EQUAL(b.a[1].code, "upstream_truncated");
    CU_ASSERT_STRING_EQUAL(b.a[2].code, "upstream_closed");
    b.a[0].room = 100;
    b.a[0].upstream_stream.ops->resume(b.a[0].upstream_stream.self);
    CU_ASSERT(b.a[0].ends == 1 && slice_eq(buf_slice(&b.a[0].got), SLICE("hello")));
    close_bed(&b);
}

static void test_within(void)
{
    struct bed b;
    open_bed(&b);
    settings(&b);
    b.a[0].drop_on_reply = b.a[1].drop_on_data = b.a[2].again_on_end = true;
    for (unsigned i = 0; i < 3; i++)
        ask(&b, i, "GET", BODY_NONE);
    for (uint32_t i = 1; i <= 5; i += 2) {
        reply(&b, i, 0, "200", NULL, NULL);
        if (i == 5) { /* asks once more from within its end, in the place of the second */
            CU_ASSERT(b.a[0].replies == 1 && b.a[1].ends == 0 &&
                      b.a[1].upstream_stream.ops == NULL);
            b.a[1].drop_on_data = false;
        }
        say(&b, NGHTTP2_DATA, END_STREAM, i, "hello", 5);
    }
    CU_ASSERT(b.a[2].ends == 1 && http2_client_in_use(b.client) == 1);
    reply(&b, 7, END_STREAM, "200", NULL, NULL);
    CU_ASSERT(b.a[1].ends == 1 && b.a[0].ends == 0 && !left(&b));
    ask(&b, 3, "GET", BODY_NONE); /* given up before anything of it is out, and at once */
    drop(&b.a[3]);
    turn();
    CU_ASSERT(http2_client_in_use(b.client) == 0 && http2_client_takes(b.client));
    close_bed(&b);
}

/* More than the origin takes at once: they wait; dropped while they wait, nothing is left of them.
 */
static void test_waiting(void)
{
    struct bed b;
    open_bed(&b);
    say(&b, NGHTTP2_SETTINGS, 0, 0, "\0\3\0\0\0\1", 6);
    CU_ASSERT(http2_client_takes(b.client));
    ask(&b, 0, "GET", BODY_NONE);
    CU_ASSERT_FALSE(http2_client_takes(b.client));
    ask(&b, 1, "GET", BODY_NONE);
    ask(&b, 2, "GET", BODY_NONE);
    drop(&b.a[1]);
    turn();
    reply(&b, 1, END_STREAM, "200", NULL, NULL);
    reply(&b, 5, END_STREAM, "201", NULL, NULL);
    CU_ASSERT(b.a[0].status == 200 && b.a[2].status == 201 && b.a[1].replies == 0);
    CU_ASSERT_EQUAL(http2_client_in_use(b.client), 0);
    close_bed(&b);
}

/* ---- ends ---- */

static void test_goaway(void)
{
    struct bed b;
    open_bed(&b);
    settings(&b);
    ask(&b, 0, "GET", BODY_NONE);
    ask(&b, 1, "POST", BODY_CHUNKED);
    say(&b, NGHTTP2_GOAWAY, 0, 0, "\0\0\0\1\0\0\0\0", 8);
    CU_ASSERT(left(&b) && b.a[0].fails == 0);
    CU_ASSERT_STRING_EQUAL(b.a[1].code, "upstream_refused");
    reply(&b, 1, END_STREAM, "200", NULL, NULL);
    CU_ASSERT_EQUAL(b.a[0].ends, 1);
    char c;
    turn();
    listen_to(&b);
    CU_ASSERT_EQUAL(recv(b.fd, &c, 1, MSG_DONTWAIT), 0); /* nothing is left to do: it hangs up */
    close_bed(&b);
}

static void resets(uint32_t error, const char *code, bool takes)
{
    struct bed b;
    char text[4] = {(char)(error >> 24), (char)(error >> 16), (char)(error >> 8), (char)error};
    open_bed(&b);
    settings(&b);
    ask(&b, 0, "POST", BODY_CHUNKED);
    ask(&b, 1, "GET", BODY_NONE);
    say(&b, NGHTTP2_RST_STREAM, 0, 1, text, 4);
    CU_ASSERT_STRING_EQUAL(b.a[0].code, code);
    CU_ASSERT_EQUAL(http2_client_takes(b.client), takes);
    reply(&b, 3, END_STREAM, "200", NULL, NULL);
    CU_ASSERT(b.a[1].ends == 1 && b.a[1].fails == 0);
    close_bed(&b);
}

static void test_resets(void)
{
    resets(NGHTTP2_REFUSED_STREAM, "upstream_refused", false);
    resets(NGHTTP2_CANCEL, "upstream_reset", true);
    resets(NGHTTP2_INTERNAL_ERROR, "upstream_reset", true);
    resets(NGHTTP2_NO_ERROR, "upstream_reset", true);
    resets(99, "upstream_reset", true);
}

static void test_silent(void)
{
    struct bed b;
    open_bed(&b);
    settings(&b);
    ask(&b, 0, "GET", BODY_NONE);
    for (int i = 0; i < 40 && b.a[0].fails == 0; i++) {
        usleep(100000);
        turn();
    }
    CU_ASSERT_STRING_EQUAL(b.a[0].code, "upstream_timeout");
    CU_ASSERT_FALSE(left(&b)); /* that stream only */
    close_bed(&b);
}

/* An answer in HTTP/1.1, or a TLS alert: nothing of it is a reply, and nobody waits. */
static void test_another_protocol(void)
{
    static const struct slice said[] = {SLICE("HTTP/1.1 400 Bad Request\r\n\r\n"), SLICE("H"),
                                        SLICE("\x15\x03\x01\0\2\2\x46"), SLICE("SSH-2.0-x\r\n")};
    for (size_t i = 0; i < ARRAY_LEN(said); i++) {
        struct bed b;
        open_bed(&b);
        ask(&b, 0, "GET", BODY_NONE);
        ask(&b, 1, "GET", BODY_NONE);
        CU_ASSERT_EQUAL(write(b.fd, said[i].p, said[i].n), (ssize_t)said[i].n);
        turn();
        CU_ASSERT_STRING_EQUAL(b.a[0].code, "upstream_no_h2");
        CU_ASSERT_STRING_EQUAL(b.a[1].code, "upstream_no_h2");
        CU_ASSERT(left(&b) && b.a[0].replies == 0);
        close_bed(&b);
    }
}

/* Within TLS the origin has chosen HTTP/2: what is wrong then is not its client's protocol. */
static void test_chosen_and_not_spoken(void)
{
    struct bed b;
    open_bed(&b);
    b.client->unproven = false; /* as within TLS */
    ask(&b, 0, "GET", BODY_NONE);
    say_n(&b, "HTTP/1.1 400 Bad Request\r\n\r\n", 28);
    CU_ASSERT(left(&b) && b.a[0].replies == 0);
    CU_ASSERT_STRING_EQUAL(b.a[0].code, "upstream_protocol");
    close_bed(&b);
}

/* The frames that came to the origin, as a set of their types; behind the preface. */
static unsigned types_seen(const struct bed *b)
{
    struct slice s = buf_slice(&b->seen);
    unsigned types = 0;
    for (size_t at = 24; at + 9 <= s.n;) {
        const unsigned char *p = (const unsigned char *)s.p + at;
        types |= 1u << p[3];
        at += 9 + ((size_t)p[0] << 16 | (size_t)p[1] << 8 | p[2]);
    }
    return types;
}

/* In clear no byte that a request says goes to who has not said that it speaks HTTP/2. */
static void test_unproven(void)
{
    enum { FIXED = 1 << NGHTTP2_SETTINGS | 1 << NGHTTP2_WINDOW_UPDATE };
    struct bed b;
    open_bed(&b);
    ask(&b, 0, "POST", BODY_CHUNKED);
    b.a[0].upstream_stream.ops->data(b.a[0].upstream_stream.self, "GET /evil HTTP/1.1", 18);
    listen_to(&b);
    CU_ASSERT(b.client->unproven && types_seen(&b) == FIXED && !saw(&b, "/evil", 5));
    drop(&b.a[0]); /* not even that it is given up */
    listen_to(&b);
    CU_ASSERT(types_seen(&b) == FIXED && !saw(&b, "/evil", 5));
    ask(&b, 1, "POST", BODY_CHUNKED);
    b.a[1].upstream_stream.ops->data(b.a[1].upstream_stream.self, "GET /good HTTP/1.1", 18);
    settings(&b);
    listen_to(&b);
    CU_ASSERT(!b.client->unproven && (types_seen(&b) & 1 << NGHTTP2_HEADERS) &&
              saw(&b, "/good", 5));
    CU_ASSERT_FALSE(saw(&b, "/evil", 5));
    close_bed(&b);
    open_bed(&b); /* nor when it ends */
    ask(&b, 0, "POST", BODY_CHUNKED);
    b.a[0].upstream_stream.ops->data(b.a[0].upstream_stream.self, "GET /evil HTTP/1.1", 18);
    CU_ASSERT_EQUAL(write(b.fd, "HTTP/1.1 200 OK\r\n\r\n", 19), 19);
    listen_to(&b);
    CU_ASSERT(left(&b) && (types_seen(&b) & ~FIXED) == 0 && !saw(&b, "/evil", 5));
    close_bed(&b);
}

/* What was given up before the origin's SETTINGS leaves no body behind, and is counted until it is
 * gone. */
static void test_unproven_given_up(void)
{
    static char body[48 * 1024];
    struct bed b;
    struct http2_client_stream *s;
    size_t held = 0;
    open_bed(&b);
    for (unsigned i = 0; i < HTTP2_CLIENT_STREAMS_MAX; i++) {
        CU_ASSERT(http2_client_takes(b.client));
        ask(&b, 0, "POST", BODY_CHUNKED);
        b.a[0].upstream_stream.ops->data(b.a[0].upstream_stream.self, body, sizeof body);
        drop(&b.a[0]);
    }
    turn();
    LIST_FOREACH(s, &b.client->streams, link)
    held += s->up.cap;
    CU_ASSERT(held == 0 && http2_client_in_use(b.client) == 0);
    CU_ASSERT_FALSE(http2_client_takes(b.client));
    settings(&b);
    listen_to(&b);
    CU_ASSERT(http2_client_takes(b.client) && LIST_EMPTY(&b.client->streams));
    CU_ASSERT_FALSE(types_seen(&b) & 1 << NGHTTP2_HEADERS);
    close_bed(&b);
}

/* ---- the pool ---- */

static struct connection add_one(struct pool *p, const char *key, struct bed *b)
{
    open_bed(b);
    b->client->owner_fn = NULL;
    CU_ASSERT_EQUAL(pool_add(p, key, b->client), 0);
    settings(b);
    return pool_take(p, key, POOL_HTTP2);
}

static unsigned waited, waited_again;

static void on_waited(void *arg UNUSED, bool again)
{
    waited++;
    waited_again += again;
}

static void test_pool(void)
{
    struct bed b;
    struct pool *p = pool_new(base, 4, 5);
    CU_ASSERT_PTR_NOT_NULL(add_one(p, "a|x", &b).http2);
    CU_ASSERT_PTR_NULL(pool_take(p, "a|y", POOL_ANY).http2);
    CU_ASSERT_PTR_NULL(pool_take(p, "a|x", POOL_SOCKET).http2);
    ask(&b, 0, "GET", BODY_NONE);
    CU_ASSERT_PTR_EQUAL(pool_take(p, "a|x", POOL_ANY).http2, b.client); /* stands there in use */
    CU_ASSERT_EQUAL(pool_idle(p), 0);
    reply(&b, 1, END_STREAM, "200", NULL, NULL);
    CU_ASSERT_EQUAL(pool_idle(p), 1);
    ask(&b, 1, "GET", BODY_NONE);
    pool_drop(p, "a|"); /* what is under way is finished */
    CU_ASSERT_PTR_NULL(pool_take(p, "a|x", POOL_ANY).http2);
    reply(&b, 3, END_STREAM, "200", NULL, NULL);
    CU_ASSERT_EQUAL(b.a[1].ends, 1);
    b.client = NULL;
    turn();
    CU_ASSERT_PTR_NULL(
        pool_wait(p, "w", false, on_waited, NULL)); /* nobody dials, nothing is known */
    struct pool_dial *d = pool_dial(p, "w");
    CU_ASSERT_PTR_NULL(pool_wait(p, "w", false, on_waited, NULL));
    pool_spoke(p, "w", true);
    CU_ASSERT_PTR_NULL(pool_wait(p, "v", false, on_waited, NULL));
    CU_ASSERT_PTR_NOT_NULL(pool_wait(p, "w", false, on_waited, NULL));
    struct pool_wait *w = pool_wait(p, "w", false, on_waited, NULL);
    pool_wait_cancel(w);
    pool_dial_over(d, false);
    CU_ASSERT_EQUAL(waited, 0); /* never from within */
    turn();
    CU_ASSERT(waited == 1 && waited_again == 1);
    d = pool_dial(p, "w");
    CU_ASSERT_PTR_NOT_NULL(pool_wait(p, "w", false, on_waited, NULL));
    pool_dial_over(d, true);
    turn();
    CU_ASSERT(waited == 2 && waited_again == 1);
    pool_free(p);
    close_bed(&b);
}

/* Where nothing but HTTP/2 is spoken nobody has to learn it, and what others learned stays. */
static void test_pool_known(void)
{
    struct pool *p = pool_new(base, 4, 5);
    char key[16];
    waited = waited_again = 0;
    pool_spoke(p, "a|learned", true);
    for (int i = 0; i < 300; i++) {
        snprintf(key, sizeof key, "b|%d", i);
        struct pool_dial *d = pool_dial(p, key);
        CU_ASSERT_PTR_NULL(pool_wait(p, key, false, on_waited, NULL));
        CU_ASSERT_PTR_NOT_NULL(pool_wait(p, key, true, on_waited, NULL));
        pool_dial_over(d, false);
        CU_ASSERT_PTR_NULL(pool_wait(p, key, true, on_waited, NULL)); /* nobody dials */
    }
    turn();
    CU_ASSERT(waited == 300 && waited_again == 300);
    struct pool_dial *d = pool_dial(p, "a|learned");
    CU_ASSERT_PTR_NOT_NULL(pool_wait(p, "a|learned", false, on_waited, NULL));
    pool_dial_over(d, false);
    pool_free(p);
}

/* A pool with a connection that has not settled, and one who waits for it. */
static struct pool *open_unsettled(struct bed *b)
{
    struct pool *p = pool_new(base, 4, 5);
    waited = waited_again = 0;
    open_bed(b);
    b->client->owner_fn = NULL;
    CU_ASSERT_EQUAL(pool_add(p, "a|x", b->client), 0);
    pool_spoke(p, "a|x", true);
    CU_ASSERT_PTR_NOT_NULL(pool_wait(p, "a|x", false, on_waited, NULL));
    return p;
}

/* A connection that ends before it has settled: who waits for it would fail the same way. */
static void test_pool_unsettled(void)
{
    struct bed b;
    struct pool *p = open_unsettled(&b);
    CU_ASSERT_EQUAL(write(b.fd, "HTTP/1.1", 8), 8);
    turn();
    CU_ASSERT(waited == 1 && waited_again == 0);
    b.client = NULL;
    pool_free(p);
    close_bed(&b);
}

/* One that is dropped before it has settled, for a new credential: nothing failed, and who waits
 * for it does not dial for itself at once. */
static void test_pool_dropped_unsettled(void)
{
    struct bed b;
    struct pool *p = open_unsettled(&b);
    pool_drop(p, "a|");
    turn();
    CU_ASSERT(waited == 1 && waited_again == 1);
    b.client = NULL;
    pool_free(p);
    close_bed(&b);
}

/* Secret bytes are wiped, and no more is taken than allowed. */
static void test_memory(void)
{
    struct http2_memory m;
    http2_memory_init(&m, 1000, true);
    char *p = m.mem.malloc(400, &m), *q = m.mem.realloc(p, 500, &m);
    CU_ASSERT_PTR_NOT_NULL_FATAL(q);
    CU_ASSERT(m.used == 500 && m.mem.malloc(501, &m) == NULL);
    CU_ASSERT_PTR_NULL(m.mem.calloc(SIZE_MAX / 2, 4, &m));
    CU_ASSERT_PTR_NULL(m.mem.malloc(SIZE_MAX, &m));
    char *z = m.mem.calloc(10, 10, &m);
    CU_ASSERT(z && z[99] == 0 && m.used == 600);
    m.mem.free(z, &m);
    m.mem.free(q, &m);
    m.mem.free(NULL, &m);
    CU_ASSERT_EQUAL(m.used, 0);
}

void suite_http2_client(void)
{
    CU_pSuite s = CU_add_suite("http2_client", setup, teardown);
    CU_add_test(s, "replies, interim ones, trailers", test_plain);
    CU_add_test(s, "replies' fields: blanks, and many", test_fields);
    CU_add_test(s, "a body within the origin's window; an early answer", test_upload);
    CU_add_test(s, "a holder without room", test_backpressure);
    CU_add_test(s, "the connection goes when the reply is whole", test_closed_after_end);
    CU_add_test(s, "given up, and asked again, from within", test_within);
    CU_add_test(s, "more than the origin takes", test_waiting);
    CU_add_test(s, "GOAWAY", test_goaway);
    CU_add_test(s, "RST_STREAM", test_resets);
    CU_add_test(s, "a silent origin", test_silent);
    CU_add_test(s, "an answer in another protocol", test_another_protocol);
    CU_add_test(s, "an answer in another protocol than the origin chose",
                test_chosen_and_not_spoken);
    CU_add_test(s, "nothing of a request before SETTINGS, in clear", test_unproven);
    CU_add_test(s, "given up before SETTINGS, in clear: no body stays", test_unproven_given_up);
    CU_add_test(s, "answered before the end of its request is out", test_answered_before_the_end);
    CU_add_test(s, "pool: shared, dropped, waited for", test_pool);
    CU_add_test(s, "pool: HTTP/2 by definition is not learned", test_pool_known);
    CU_add_test(s, "pool: one that never settles", test_pool_unsettled);
    CU_add_test(s, "pool: one that is dropped before it settles", test_pool_dropped_unsettled);
    CU_add_test(s, "memory: bounded", test_memory);
}

void tap_suites(void)
{
    suite_http2_client();
}
