/* What an evil HTTP/2 origin says costs bounded memory, and ends what it must and nothing else. */
#include "http2_client_bed.h"

void suite_http2_evil(void);

/* ---- evil replies: that stream ends, another one does not notice ---- */

static void bad_reply(const char *what, void (*play)(struct bed *b))
{
    struct bed b;
    open_bed(&b);
    settings(&b);
    ask(&b, 0, "GET", BODY_NONE);
    ask(&b, 1, "GET", BODY_NONE);
    play(&b);
    bool good = b.a[0].fails == 1 && b.a[0].ends == 0 &&
                strcmp(b.a[0].code, "upstream_protocol") == 0 && b.a[1].fails == 0 && !left(&b);
    if (!good)
        printf("# %s: %u %s, the other %u\n", what, b.a[0].fails, b.a[0].code, b.a[1].fails);
    CU_ASSERT(good);
    if (!left(&b))
        reply(&b, 3, END_STREAM, "200", NULL, NULL);
    CU_ASSERT_EQUAL(b.a[1].ends, 1);
    close_bed(&b);
}

#define BAD(name, ...)                     \
    static void play_##name(struct bed *b) \
    {                                      \
        __VA_ARGS__                        \
    }
BAD(switching, reply(b, 1, 0, "101", "x", "y");)
BAD(no_status, reply(b, 1, 0, NULL, "x", "y");)
BAD(odd_status, reply(b, 1, 0, "20", "x", "y");)
BAD(low_status, reply(b, 1, 0, "099", "x", "y");)
BAD(connection, reply(b, 1, 0, "200", "connection", "close");)
BAD(coding, reply(b, 1, 0, "200", "transfer-encoding", "chunked");)
BAD(upper, reply(b, 1, 0, "200", "X-Y", "z");)
BAD(space, reply(b, 1, 0, "200", "x y", "z");)
BAD(newline, reply(b, 1, 0, "200", "x", "a\r\nset-cookie: b");)
BAD(twin, reply(b, 1, 0, "200", "content_length", "5");)
BAD(pseudo, reply(b, 1, 0, "200", ":path", "/");)
BAD(length, reply(b, 1, 0, "200", "content-length", "+5");)
BAD(none_204, reply(b, 1, 0, "204", "content-length", "5");)
BAD(short_body, reply(b, 1, 0, "200", "content-length", "5");
    say(b, NGHTTP2_DATA, END_STREAM, 1, "hell", 4);)
BAD(long_body, reply(b, 1, 0, "200", "content-length", "5");
    say(b, NGHTTP2_DATA, END_STREAM, 1, "hello!", 6);)
BAD(no_body, reply(b, 1, END_STREAM, "200", "content-length", "5");)
BAD(data_204, reply(b, 1, 0, "204", NULL, NULL); say(b, NGHTTP2_DATA, END_STREAM, 1, "x", 1);)
BAD(trailers_open, reply(b, 1, 0, "200", NULL, NULL); reply(b, 1, 0, NULL, "x", "y");)
BAD(trailers_pseudo, reply(b, 1, 0, "200", NULL, NULL); reply(b, 1, END_STREAM, "200", NULL, NULL);)
BAD(interim_end, reply(b, 1, END_STREAM, "103", NULL, NULL);)
BAD(interims, for (int i = 0; i < 10; i++) reply(b, 1, 0, "103", NULL, NULL);)
BAD(large, unsigned char f[16384]; size_t n = put_field(f, ":status", "200");
    while (n < 9000) n +=
    put_field(f + n, "x-filling", "0123456789012345678901234567890123456789012345678901234567890");
    say(b, NGHTTP2_HEADERS, HEADERS_END, 1, f, n);)
BAD(many, unsigned char f[16384]; size_t n = put_field(f, ":status", "200");
    for (int i = 0; i <= HEAD_FIELDS_MAX; i++) n += put_field(f + n, "a", "b");
    say(b, NGHTTP2_HEADERS, HEADERS_END, 1, f, n);)
/* HPACK: one entry of 4 kB, then named by one byte each */
BAD(bomb, unsigned char f[16384]; size_t n = put_field(f, ":status", "200"); f[n++] = 0x40;
    f[n++] = 1; f[n++] = 'a'; f[n++] = 0x7f; f[n++] = 0x81; f[n++] = 0x1e; memset(f + n, 'b', 3968);
    n += 3968; memset(f + n, 0xbe, 12000); n += 12000;
    say(b, NGHTTP2_HEADERS, HEADERS_END, 1, f, n);)

static void test_bad_replies(void)
{
#define PLAY(name) bad_reply(#name, play_##name)
    PLAY(switching), PLAY(no_status), PLAY(odd_status), PLAY(low_status), PLAY(connection);
    PLAY(coding), PLAY(upper), PLAY(space), PLAY(newline), PLAY(twin), PLAY(pseudo), PLAY(length);
    PLAY(none_204), PLAY(short_body), PLAY(long_body), PLAY(no_body), PLAY(data_204);
    PLAY(trailers_open), PLAY(trailers_pseudo), PLAY(interim_end);
    PLAY(interims), PLAY(large), PLAY(many), PLAY(bomb);
}

/* ---- evil connections: all of it ends, in bounded memory ---- */

static void bad_connection(const char *what, void (*play)(struct bed *b), const char *code)
{
    struct bed b;
    open_bed(&b);
    settings(&b);
    ask(&b, 0, "GET", BODY_NONE);
    ask(&b, 1, "POST", BODY_CHUNKED);
    size_t most = 0;
    for (int i = 0; i < 5000 && b.client; i++) {
        play(&b);
        if (b.client && b.client->memory.used > most)
            most = b.client->memory.used;
        if (i % 100 == 0)
            listen_to(&b);
    }
    bool good = left(&b) && b.a[0].fails == 1 && b.a[1].fails == 1 &&
                strcmp(b.a[0].code, code) == 0 && most < 256 * 1024;
    if (!good)
        printf("# %s: left %d, %s, %s, %zu bytes\n", what, left(&b), b.a[0].code, b.a[1].code,
               most);
    CU_ASSERT(good);
    close_bed(&b);
}

BAD(pings, say(b, NGHTTP2_PING, 0, 0, "12345678", 8);)
BAD(ping_acks, say(b, NGHTTP2_PING, 1, 0, "12345678", 8);)
BAD(settings_flood, say(b, NGHTTP2_SETTINGS, 0, 0, "\0\1\0\0\20\0", 6);)
BAD(acks, say(b, NGHTTP2_SETTINGS, 1, 0, "", 0);)
BAD(windows, say(b, NGHTTP2_WINDOW_UPDATE, 0, 0, "\0\0\0\1", 4);)
BAD(window_over, say(b, NGHTTP2_WINDOW_UPDATE, 0, 0, "\x7f\xff\xff\xff", 4);)
BAD(empties, if (b->a[1].replies == 0) reply(b, 3, 0, "200", NULL, NULL);
    say(b, NGHTTP2_DATA, 0, 3, "", 0);)
BAD(padded, if (b->a[1].replies == 0) reply(b, 3, 0, "200", NULL, NULL);
    say(b, NGHTTP2_DATA, 8, 3, "", 1);)
BAD(priorities, say(b, NGHTTP2_PRIORITY, 0, 77, "\0\0\0\0\0", 5);)
BAD(unknown, say(b, 0xbb, 0, 0, "x", 1);)
BAD(
    continuations, if (b->a[0].status == 0) {
        say(b, NGHTTP2_HEADERS, 0, 1, "\x88", 1);
        b->a[0].status = 1;
    } say(b, NGHTTP2_CONTINUATION, 0, 1, "\0\1a\1b", 5);)
BAD(push, unsigned char f[64] = {0, 0, 0, 2}; size_t n = 4 + put_field(f + 4, ":method", "GET");
    say(b, NGHTTP2_PUSH_PROMISE, HEADERS_END, 1, f, n);)
BAD(data_first, say(b, NGHTTP2_DATA, END_STREAM, 1, "x", 1);)
BAD(idle_stream, reply(b, 99, END_STREAM, "200", NULL, NULL);)
BAD(even_stream, reply(b, 2, END_STREAM, "200", NULL, NULL);)
BAD(garbage, say_n(b, "HTTP/1.1 200 OK\r\n\r\n", 19);)
BAD(large_frame, say_n(b, "\1\0\1\0\0\0\0\0\1", 9);)
BAD(hpack, say(b, NGHTTP2_HEADERS, HEADERS_END, 1, "\xff\xff\xff\xff\xff\xff", 6);)
BAD(table, say(b, NGHTTP2_SETTINGS, 0, 0, "\0\5\0\0\0\1", 6);)

static void test_bad_connections(void)
{
#define PLAY_ALL(name) bad_connection(#name, play_##name, "upstream_protocol")
    unsigned usual = limits.reply_seconds;
    limits.reply_seconds = 60; /* however slow this machine is: not the reason */
    PLAY_ALL(pings), PLAY_ALL(ping_acks), PLAY_ALL(settings_flood), PLAY_ALL(acks);
    PLAY_ALL(windows), PLAY_ALL(window_over), PLAY_ALL(empties), PLAY_ALL(padded);
    PLAY_ALL(priorities), PLAY_ALL(unknown), PLAY_ALL(continuations), PLAY_ALL(push);
    PLAY_ALL(data_first), PLAY_ALL(idle_stream), PLAY_ALL(even_stream), PLAY_ALL(garbage),
        PLAY_ALL(large_frame);
    PLAY_ALL(hpack), PLAY_ALL(table);
    limits.reply_seconds = usual;
}

/* ---- what an origin may say to an extended CONNECT (RFC 8441) ---- */

static void ask_tunnel(struct bed *b, unsigned i)
{
    struct authority to = {
        .scheme = SCHEME_HTTPS, .kind = HOST_NAME, .host = "a.example", .port = 443};
    struct head h;
    http_head_init(&h);
    h.method = SLICE("GET");
    h.path = SLICE("/x");
    h.upgrade = UPGRADE_WEBSOCKET;
    b->a[i].upstream_stream = http2_client_open_stream(b->client, &ops, &b->a[i], &h, &to);
    CU_ASSERT_PTR_NOT_NULL_FATAL(b->a[i].upstream_stream.ops);
    http_head_free(&h);
}

static void test_tunnel(void)
{
    static const struct {
        const char *status, *name, *value;
        unsigned flags, want; /* 0: the stream fails */
    } rows[] = {
        {"200", NULL, NULL, 0, 101},
        {"299", NULL, NULL, 0, 101},
        {"403", NULL, NULL, END_STREAM, 403},
        {"200", NULL, NULL, END_STREAM, 0},
        {"200", "content-length", "5", 0, 101}, /* of no meaning here: RFC 9110 9.3.6 */
        {"200", "sec-websocket-extensions", "permessage-deflate", 0, 0},
        {"101", NULL, NULL, 0, 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct bed b;
        open_bed(&b);
        say(&b, NGHTTP2_SETTINGS, 0, 0, "\0\10\0\0\0\1", 6);
        say(&b, NGHTTP2_SETTINGS, 1, 0, "", 0);
        ask_tunnel(&b, 0);
        reply(&b, 1, rows[i].flags, rows[i].status, rows[i].name, rows[i].value);
        struct asked *a = &b.a[0];
        if (a->status != rows[i].want)
            printf("# row %zu: %u %s\n", i, a->status, a->code);
        CU_ASSERT_EQUAL(a->status, rows[i].want);
        CU_ASSERT_EQUAL(a->fails, rows[i].want == 0);
        CU_ASSERT_EQUAL(a->ends, rows[i].want == 403);
        CU_ASSERT_EQUAL(a->body == BODY_TUNNEL, rows[i].want == 101);
        CU_ASSERT_STRING_EQUAL(a->code, rows[i].want ? "" : "upstream_protocol");
        if (rows[i].want == 101)
            say(&b, NGHTTP2_DATA, 0, 1, "frames", 6);
        CU_ASSERT_EQUAL(buf_len(&a->got), rows[i].want == 101 ? 6 : 0);
        drop(a);
        close_bed(&b);
    }
}

void suite_http2_evil(void)
{
    CU_pSuite s = CU_add_suite("http2_evil", setup, teardown);
    CU_add_test(s, "evil replies end their stream only (B25, B28, B31)", test_bad_replies);
    CU_add_test(s, "what an origin says to an extended CONNECT", test_tunnel);
    CU_add_test(s, "evil connections end in bounded memory", test_bad_connections);
}

void tap_suites(void)
{
    suite_http2_evil();
}
