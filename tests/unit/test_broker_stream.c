/* Packets between a front and a back: whole and in order, back-pressure, and what becomes of a far
 * end that goes, while its reader pauses. */
#include "broker_stream.h"
#include "buf.h"
#include "tap_main.h"

#include <event2/event.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct end {
    struct broker_stream *stream;
    struct buf said; /* types and bytes */
    unsigned packets, closed, writable;
    bool pauses; /* at each packet */
};

static int on_packet(void *arg, enum broker_packet type, struct slice bytes)
{
    struct end *e = arg;
    CU_ASSERT(buf_printf(&e->said, "%d:%.*s ", (int)type, (int)bytes.n, bytes.p) == 0);
    e->packets++;
    if (e->pauses)
        broker_stream_pause(e->stream, true);
    return slice_eq_str(bytes, "bad") ? -1 : 0;
}

static void on_writable(void *arg)
{
    struct end *e = arg;
    e->writable++;
}

static void on_closed(void *arg)
{
    struct end *e = arg;
    e->closed++;
    broker_stream_free(e->stream);
    e->stream = NULL;
}

static const struct broker_stream_ops ops = {
    .packet = on_packet, .writable = on_writable, .closed = on_closed};

struct bed {
    struct event_base *base;
    struct end a;
    int far;
};

static void set_up(struct bed *b)
{
    int fds[2];
    memset(b, 0, sizeof *b);
    b->base = event_base_new();
    CU_ASSERT_PTR_NOT_NULL_FATAL(b->base);
    CU_ASSERT_EQUAL_FATAL(broker_stream_pair(fds), 0);
    buf_init(&b->a.said, 1 << 20);
    b->a.stream = broker_stream_new(b->base, fds[0], &ops, &b->a);
    CU_ASSERT_PTR_NOT_NULL_FATAL(b->a.stream);
    b->far = fds[1];
}

static void tear_down(struct bed *b)
{
    broker_stream_free(b->a.stream);
    buf_free(&b->a.said);
    if (b->far >= 0)
        close(b->far);
    event_base_free(b->base);
}

static void say(struct bed *b, enum broker_packet type, const char *text)
{
    char packet[64] = {(char)type};
    size_t n = strlen(text);
    memcpy(packet + 1, text, n);
    CU_ASSERT_EQUAL(send(b->far, packet, n + 1, MSG_NOSIGNAL), (ssize_t)(n + 1));
}

static void go(struct bed *b)
{
    close(b->far);
    b->far = -1;
}

/* Until nothing more happens by itself. */
static void run(struct bed *b)
{
    for (int i = 0; i < 50; i++)
        event_base_loop(b->base, EVLOOP_NONBLOCK);
}

static bool said(const struct bed *b, const char *text)
{
    bool same = slice_eq_str(buf_slice(&b->a.said), text);
    if (!same)
        printf("# '%.*s', not '%s'\n", SL(buf_slice(&b->a.said)), text);
    return same;
}

static void test_packets(void)
{
    struct bed b;
    set_up(&b);
    say(&b, BROKER_DATA, "one");
    say(&b, BROKER_ASIDE, "two");
    say(&b, BROKER_END, "");
    run(&b);
    CU_ASSERT(said(&b, "1:one 2:two 3: ") && b.a.closed == 0);
    go(&b);
    run(&b);
    CU_ASSERT_EQUAL(b.a.closed, 1);
    tear_down(&b);
}

static void test_bad(void)
{
    static const char *const bad[] = {"", "\0x", "\x08x",
                                      "\x01"
                                      "bad"};
    static const size_t n[] = {0, 2, 2, 4};
    for (size_t i = 1; i < 4; i++) {
        struct bed b;
        set_up(&b);
        CU_ASSERT_EQUAL(send(b.far, bad[i], n[i], 0), (ssize_t)n[i]);
        run(&b);
        CU_ASSERT_EQUAL(b.a.closed, 1);
        tear_down(&b);
    }
}

/* One packet at a time, as its reader has room. */
static void test_pauses(void)
{
    struct bed b;
    set_up(&b);
    b.a.pauses = true;
    say(&b, BROKER_DATA, "one");
    say(&b, BROKER_DATA, "two");
    run(&b);
    CU_ASSERT_EQUAL(b.a.packets, 1);
    broker_stream_pause(b.a.stream, false);
    run(&b);
    CU_ASSERT(said(&b, "1:one 1:two ") && b.a.closed == 0);
    tear_down(&b);
}

/* A far end that dies is seen at once, though nobody reads. */
static void test_death(void)
{
    struct bed b;
    set_up(&b);
    b.a.pauses = true;
    say(&b, BROKER_DATA, "one");
    say(&b, BROKER_DATA, "two");
    run(&b);
    go(&b);
    run(&b);
    CU_ASSERT(b.a.closed == 1 && said(&b, "1:one "));
    tear_down(&b);
}

/* One that has said its last word is heard to the end. */
static void test_last_word(void)
{
    static const enum broker_packet last[] = {BROKER_END, BROKER_REFUSED};
    for (size_t i = 0; i < 2; i++) {
        char all[64];
        struct bed b;
        set_up(&b);
        b.a.pauses = true;
        say(&b, BROKER_DATA, "one");
        run(&b);
        say(&b, BROKER_DATA, "two");
        say(&b, BROKER_STATUS, "s");
        say(&b, last[i], "");
        go(&b);
        run(&b);
        CU_ASSERT(said(&b, "1:one ") && b.a.closed == 0);
        CU_ASSERT_EQUAL(broker_stream_send(b.a.stream, BROKER_DATA, SLICE("x")), -1);
        for (int k = 0; k < 3; k++) {
            CU_ASSERT_EQUAL(b.a.closed, 0);
            broker_stream_pause(b.a.stream, false);
            run(&b);
        }
        snprintf(all, sizeof all, "1:one 1:two 6:s %d: ", (int)last[i]);
        CU_ASSERT(said(&b, all) && b.a.closed == 0);
        broker_stream_pause(b.a.stream, false);
        run(&b);
        CU_ASSERT_EQUAL(b.a.closed, 1);
        tear_down(&b);
    }
}

/* So it is when we find out by writing. */
static void test_written(void)
{
    struct bed b;
    set_up(&b);
    say(&b, BROKER_STATUS, "s");
    say(&b, BROKER_END, "");
    go(&b);
    CU_ASSERT_EQUAL(broker_stream_send(b.a.stream, BROKER_DATA, SLICE("x")), -1);
    run(&b);
    CU_ASSERT(said(&b, "6:s 3: ") && b.a.closed == 1);
    tear_down(&b);
}

/* A far end that goes and has not read all that it was sent. */
static void test_unread(void)
{
    for (int pauses = 0; pauses < 2; pauses++) {
        struct bed b;
        set_up(&b);
        broker_stream_pause(b.a.stream, pauses);
        CU_ASSERT_EQUAL(broker_stream_send(b.a.stream, BROKER_DATA, SLICE("x")), 1);
        say(&b, BROKER_STATUS, "s");
        say(&b, BROKER_END, "");
        go(&b);
        run(&b);
        if (pauses)
            broker_stream_pause(b.a.stream, false);
        run(&b);
        CU_ASSERT(said(&b, "6:s 3: ") && b.a.closed == 1);
        tear_down(&b);
    }
}

static void test_full(void)
{
    static char bytes[BROKER_PACKET_MAX];
    struct bed b;
    int n = 0;
    set_up(&b);
    while (n < 1000 &&
           broker_stream_send(b.a.stream, BROKER_DATA, (struct slice){bytes, sizeof bytes}) == 1)
        n++;
    CU_ASSERT(n > 0 && n < 1000);
    run(&b);
    CU_ASSERT_EQUAL(b.a.writable, 0);
    char waste[BROKER_PACKET_MAX + 1];
    for (int i = 0; i < n; i++)
        CU_ASSERT_EQUAL(recv(b.far, waste, sizeof waste, MSG_DONTWAIT), (ssize_t)sizeof waste);
    run(&b);
    CU_ASSERT_EQUAL(b.a.writable, 1);
    tear_down(&b);
}

void tap_suites(void)
{
    CU_pSuite s = CU_add_suite("broker stream", NULL, NULL);
    CU_add_test(s, "packets", test_packets);
    CU_add_test(s, "bad ones", test_bad);
    CU_add_test(s, "a reader that pauses", test_pauses);
    CU_add_test(s, "a far end that dies", test_death);
    CU_add_test(s, "a far end's last word", test_last_word);
    CU_add_test(s, "a far end that is found gone", test_written);
    CU_add_test(s, "a far end that has not read all", test_unread);
    CU_add_test(s, "a full socket", test_full);
}
