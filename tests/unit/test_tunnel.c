/* A WebSocket between two ends that this test plays: framed anew both ways, rooms, filters that
 * hold back, faults that end both sides from the event loop, and what the records say of each end.
 */
#include "message_judge.h"
#include "relay.h"

#include "tap_main.h"
#include "websocket.h"

#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void suite_tunnel(void);

struct end {
    struct buf got;
    size_t room;
    unsigned ends, wanted;
};

static struct event_base *base;
static struct end client, server;
static struct relay relay;
static const char *over_code;
static unsigned overs;
static bool inside; /* a call of ours into the tunnel is on the stack */

static void take(void *self, const void *p, size_t n)
{
    struct end *e = self;
    CU_ASSERT_EQUAL(buf_append(&e->got, p, n), 0);
}

static size_t room_of(void *self)
{
    return ((struct end *)self)->room;
}

static void on_end(void *self)
{
    ((struct end *)self)->ends++;
}

static void on_wanted(void *self)
{
    ((struct end *)self)->wanted++;
}

static const struct downstream_ops downstream = {
    .data = take, .room = room_of, .wanted = on_wanted};
static const struct upstream_ops upstream = {.data = take, .room = room_of, .end = on_end};

static void on_over(void *owner, const char *code)
{
    CU_ASSERT(!inside && owner == &relay);
    over_code = code;
    overs++;
}

static void end_init(struct end *e)
{
    memset(e, 0, sizeof *e);
    e->room = 100000;
    buf_init(&e->got, 1 << 20);
}

static struct tunnel *begin(enum tunnel_strict strict, const struct tunnel_filter *up,
                            const struct tunnel_filter *down)
{
    struct tunnel_owner owner = {on_over, &relay};
    end_init(&client);
    end_init(&server);
    over_code = NULL;
    overs = 0;
    relay_init(&relay, (struct downstream){&downstream, &client});
    relay_open(&relay, (struct upstream){&upstream, &server});
    base = event_base_new();
    struct tunnel *t = tunnel_new(base, &relay, owner, strict, up, down);
    CU_ASSERT_PTR_NOT_NULL_FATAL(t);
    return t;
}

static void finish(struct tunnel *t)
{
    tunnel_free(t);
    event_base_free(base);
    buf_free(&client.got);
    buf_free(&server.got);
}

static void up(struct tunnel *t, enum websocket_opcode o, bool fin, const char *text)
{
    static const unsigned char mask[4] = {5, 6, 7, 8};
    char f[WEBSOCKET_HEADER_MAX + 256];
    size_t n = strlen(text), h = websocket_header((unsigned char *)f, o, fin, n, mask);
    memcpy(f + h, text, n);
    websocket_mask(f + h, n, mask, 0);
    inside = true;
    tunnel_up(t, f, h + n);
    inside = false;
}

static void down(struct tunnel *t, enum websocket_opcode o, bool fin, const char *text)
{
    char f[WEBSOCKET_HEADER_MAX + 256];
    size_t n = strlen(text), h = websocket_header((unsigned char *)f, o, fin, n, NULL);
    memcpy(f + h, text, n);
    inside = true;
    tunnel_down(t, f, h + n);
    inside = false;
}

/* What an end got, as "opcode:payload" with a "+" before the parts of a message that goes on. */
static const char *read_back(struct end *e, bool masked)
{
    static char text[1024];
    struct websocket_reader r;
    struct websocket_part part;
    char scratch[WEBSOCKET_PIECE_MAX];
    struct slice in = buf_slice(&e->got);
    enum websocket_event ev;
    size_t at = 0;
    websocket_reader_init(&r, masked);
    while ((ev = websocket_read(&r, &in, scratch, &part)) != WEBSOCKET_MORE) {
        CU_ASSERT_FATAL(ev != WEBSOCKET_VIOLATION);
        int n = part.opcode == WEBSOCKET_CLOSE
                    ? snprintf(text + at, sizeof text - at, "%u;", part.code)
                    : snprintf(text + at, sizeof text - at, "%s%.*s;", part.last ? "" : "+",
                               (int)part.n, part.p);
        at += (size_t)n;
    }
    text[at] = 0;
    buf_clear(&e->got);
    return text;
}

static void test_both_ways(void)
{
    struct tunnel *t = begin(TUNNEL_STRICT_NONE, NULL, NULL);
    up(t, WEBSOCKET_TEXT, false, "he");
    up(t, WEBSOCKET_CONTINUATION, false, "");
    up(t, WEBSOCKET_PING, true, "p");
    up(t, WEBSOCKET_CONTINUATION, true, "llo");
    CU_ASSERT_STRING_EQUAL(read_back(&server, true), "+he;p;llo;");
    down(t, WEBSOCKET_BINARY, true, "hi");
    down(t, WEBSOCKET_PONG, true, "");
    CU_ASSERT_STRING_EQUAL(read_back(&client, false), "hi;;");
    CU_ASSERT(relay.up == 6 && relay.down == 2); /* payload, of control frames too */
    finish(t);
}

/* The mask that goes on is not the client's. */
static void test_mask(void)
{
    struct tunnel *t = begin(TUNNEL_STRICT_NONE, NULL, NULL);
    bool other = false;
    for (int i = 0; i < 3; i++) {
        up(t, WEBSOCKET_TEXT, true, "x");
        other |= memcmp(buf_data(&server.got) + 2, "\5\6\7\10", 4) != 0;
        buf_clear(&server.got);
    }
    CU_ASSERT(other);
    finish(t);
}

/* An injector channel gets not one byte beyond its window; a connection's own room is its own
 * matter, for it says that it has drained only when it was full. */
static void test_room(void)
{
    struct tunnel *t = begin(TUNNEL_STRICT_UP, NULL, NULL);
    server.room = 300;
    CU_ASSERT(tunnel_up_room(t) > 0 && tunnel_up_room(t) < 100);
    server.room = 200;
    CU_ASSERT_EQUAL(tunnel_up_room(t), 0);
    client.room = 1;
    CU_ASSERT_EQUAL(tunnel_down_room(t), 1);
    client.room = 0;
    CU_ASSERT_EQUAL(tunnel_down_room(t), 0);
    finish(t);
    t = begin(TUNNEL_STRICT_DOWN, NULL, NULL);
    client.room = 200;
    server.room = 200;
    CU_ASSERT(tunnel_down_room(t) == 0 && tunnel_up_room(t) == 200);
    size_t before = 5000, n;
    client.room = before; /* as much as it allows, in the worst of pieces */
    n = tunnel_down_room(t);
    unsigned char header[WEBSOCKET_HEADER_MAX];
    char *body = calloc(1, n);
    size_t h = websocket_header(header, WEBSOCKET_BINARY, true, 1000000, NULL);
    tunnel_down(t, header, h);
    tunnel_down(t, body, n);
    CU_ASSERT(buf_len(&client.got) >= n && buf_len(&client.got) <= before);
    free(body);
    finish(t);
}

static void turn(void)
{
    event_base_loop(base, EVLOOP_NONBLOCK);
}

static void judged(const struct tunnel *t, enum record_kind given, const char *why,
                   enum record_kind want, const char *code)
{
    tunnel_verdict(t, &given, &why);
    CU_ASSERT_EQUAL(given, want);
    CU_ASSERT_STRING_EQUAL(why, code);
}

static void test_fault(void)
{
    struct tunnel *t = begin(TUNNEL_STRICT_NONE, NULL, NULL);
    up(t, WEBSOCKET_TEXT, true, "ok");
    tunnel_up(t, "\xc1\x80", 2);
    CU_ASSERT(overs == 0 && tunnel_up_room(t) == 0 && tunnel_down_room(t) == 0);
    up(t, WEBSOCKET_TEXT, true, "no more");
    down(t, WEBSOCKET_TEXT, true, "nor that");
    turn();
    CU_ASSERT_EQUAL(overs, 1);
    CU_ASSERT_STRING_EQUAL(over_code, "websocket_protocol");
    CU_ASSERT_STRING_EQUAL(read_back(&server, true), "ok;1002;");
    CU_ASSERT_STRING_EQUAL(read_back(&client, false), "1002;");
    judged(t, RECORD_COMPLETED, "ok", RECORD_ABORTED, "websocket_protocol");
    finish(t);
    t = begin(TUNNEL_STRICT_NONE, NULL, NULL); /* from the origin */
    down(t, WEBSOCKET_TEXT, true, "\xff");
    turn();
    CU_ASSERT_STRING_EQUAL(over_code, "websocket_text");
    CU_ASSERT_STRING_EQUAL(read_back(&client, false), "1007;");
    CU_ASSERT_STRING_EQUAL(read_back(&server, true), "1007;");
    finish(t);
    t = begin(TUNNEL_STRICT_UP, NULL,
              NULL); /* before an injector channel: the other process says it */
    tunnel_up(t, "\xc1\x80", 2);
    turn();
    CU_ASSERT_STRING_EQUAL(read_back(&server, true), "");
    finish(t);
    t = begin(TUNNEL_STRICT_DOWN, NULL, NULL); /* that one */
    tunnel_cancelled(t, "client_gone");
    CU_ASSERT_STRING_EQUAL(read_back(&server, true), "");
    tunnel_cancelled(t, "secret_blocked");
    CU_ASSERT_STRING_EQUAL(read_back(&server, true), "1008;");
    judged(t, RECORD_ABORTED, "secret_blocked", RECORD_ABORTED, "secret_blocked");
    finish(t);
}

static void test_closing(void)
{
    struct tunnel *t = begin(TUNNEL_STRICT_NONE, NULL, NULL);
    judged(t, RECORD_COMPLETED, "ok", RECORD_ABORTED, "upstream_closed");
    judged(t, RECORD_ABORTED, "client_gone", RECORD_ABORTED, "client_gone");
    up(t, WEBSOCKET_CLOSE, true, "\x0f\xa1");
    CU_ASSERT(!tunnel_down_closed(t) && server.ends == 0);
    judged(t, RECORD_ABORTED, "client_gone", RECORD_COMPLETED, "ok");
    judged(t, RECORD_ABORTED, "writer_gone", RECORD_ABORTED, "writer_gone");
    up(t, WEBSOCKET_TEXT, true, "after");
    down(t, WEBSOCKET_CLOSE, true, "\x0f\xa2");
    CU_ASSERT(tunnel_down_closed(t) && server.ends == 1);
    down(t, WEBSOCKET_TEXT, true, "after");
    up(t, WEBSOCKET_TEXT, true, "after");
    CU_ASSERT_EQUAL(server.ends, 1);
    CU_ASSERT_STRING_EQUAL(read_back(&server, true), "4001;");
    CU_ASSERT_STRING_EQUAL(read_back(&client, false), "4002;");
    judged(NULL, RECORD_COMPLETED, "ok", RECORD_COMPLETED, "ok");
    finish(t);
}

/* ---- messages of one frame ---- */

enum { LONG = 40000 };

/* A frame of LONG bytes, all of them its place in the payload, in pieces of `step` bytes. */
static void send_long(struct tunnel *t, bool upwards, size_t from, size_t to, size_t step)
{
    static const unsigned char mask[4] = {5, 6, 7, 8};
    static char f[WEBSOCKET_HEADER_MAX + LONG];
    size_t h =
        websocket_header((unsigned char *)f, WEBSOCKET_BINARY, true, LONG, upwards ? mask : NULL);
    for (size_t i = 0; i < LONG; i++)
        f[h + i] = (char)(i * 7);
    if (upwards)
        websocket_mask(f + h, LONG, mask, 0);
    for (size_t at = from; at < h + to; at += step) {
        size_t n = h + to - at < step ? h + to - at : step;
        inside = true;
        if (upwards)
            tunnel_up(t, f + at, n);
        else
            tunnel_down(t, f + at, n);
        inside = false;
    }
}

/* It is one frame there, with its whole length in the header, and the same bytes. */
static void is_long(struct end *e, bool masked, size_t payload)
{
    unsigned char want[WEBSOCKET_HEADER_MAX], mask[4] = {0};
    const unsigned char *got = buf_data(&e->got);
    size_t h = websocket_header(want, WEBSOCKET_BINARY, true, LONG, masked ? mask : NULL);
    CU_ASSERT_EQUAL_FATAL(buf_len(&e->got), h + payload);
    if (masked)
        memcpy(mask, got + h - 4, sizeof mask);
    h = websocket_header(want, WEBSOCKET_BINARY, true, LONG, masked ? mask : NULL);
    CU_ASSERT_EQUAL(memcmp(got, want, h), 0);
    size_t wrong = 0;
    for (size_t i = 0; i < payload; i++)
        wrong += (got[h + i] ^ mask[i % 4]) != (unsigned char)(i * 7);
    CU_ASSERT_EQUAL(wrong, 0);
    buf_clear(&e->got);
}

/* Servers are about that take each frame for a message. */
static void test_single(void)
{
    static const size_t steps[] = {1, 7, 1000, 16384, 16385, 100000};
    for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
        struct tunnel *t = begin(TUNNEL_STRICT_NONE, NULL, NULL);
        send_long(t, true, 0, LONG, steps[i]);
        is_long(&server, true, LONG);
        send_long(t, false, 0, LONG, steps[i]);
        is_long(&client, false, LONG);
        up(t, WEBSOCKET_TEXT, true, "next");
        CU_ASSERT_STRING_EQUAL(read_back(&server, true), "next;");
        finish(t);
    }
}

/* A close frame within a frame would be payload: that side gets none. */
static void test_single_ends(void)
{
    struct tunnel *t = begin(TUNNEL_STRICT_NONE, NULL, NULL);
    send_long(t, false, 0, 100, 1000);
    up(t, WEBSOCKET_TEXT, true, "\xff");
    turn();
    CU_ASSERT_EQUAL(overs, 1);
    CU_ASSERT(!tunnel_down_closed(t));
    is_long(&client, false, 100);
    CU_ASSERT_STRING_EQUAL(read_back(&server, true), "1007;");
    finish(t);
}

/* A message that begins within another of several frames ends both sides with a close frame. */
static void test_within(void)
{
    struct tunnel *t = begin(TUNNEL_STRICT_NONE, NULL, NULL);
    up(t, WEBSOCKET_TEXT, true, "before");
    up(t, WEBSOCKET_TEXT, false, "a");
    up(t, WEBSOCKET_TEXT, true, "b");
    turn();
    CU_ASSERT_STRING_EQUAL(read_back(&server, true), "before;+a;1002;");
    CU_ASSERT_STRING_EQUAL(read_back(&client, false), "1002;");
    finish(t);
}

/* ---- filters ---- */

/* Holds every "?" until something else comes or the message ends; refuses "!". */
static size_t questions;

static const char *piece(void *self, struct slice in, struct slice *out)
{
    static char text[512];
    size_t n = 0;
    CU_ASSERT_PTR_EQUAL(self, &questions);
    for (size_t i = 0; i < in.n; i++) {
        if (in.p[i] == '!')
            return "secret_blocked";
        if (in.p[i] == '?') {
            questions++;
            continue;
        }
        for (; questions > 0; questions--)
            text[n++] = '?';
        text[n++] = in.p[i];
    }
    *out = (struct slice){text, n};
    return NULL;
}

static const char *rest(void *self UNUSED, struct slice *out)
{
    *out = (struct slice){"????????", questions};
    questions = 0;
    return NULL;
}

static const char *control(void *self UNUSED, char *p, size_t n)
{
    memset(p, '#', n);
    return NULL;
}

static size_t held(const void *self UNUSED)
{
    return questions;
}

static void test_filter(void)
{
    struct tunnel_filter f = {piece, rest, control, held, &questions, NULL};
    struct tunnel *t = begin(TUNNEL_STRICT_DOWN, NULL, &f);
    questions = 0;
    client.room = 300;
    size_t before = tunnel_down_room(t);
    down(t, WEBSOCKET_TEXT, false, "a??");
    CU_ASSERT_EQUAL(tunnel_down_room(t), before - 2);
    CU_ASSERT_STRING_EQUAL(read_back(&client, false), "+a;");
    down(t, WEBSOCKET_CONTINUATION, false, "?");
    down(t, WEBSOCKET_PING, true, "ping");
    CU_ASSERT_STRING_EQUAL(read_back(&client, false), "####;");
    finish(t);

    t = begin(TUNNEL_STRICT_DOWN, NULL, &f);
    questions = 0;
    down(t, WEBSOCKET_TEXT, false, "a?");
    down(t, WEBSOCKET_CONTINUATION, true, "b?");
    down(t, WEBSOCKET_BINARY, true, "?");
    down(t, WEBSOCKET_TEXT, true, "");
    CU_ASSERT_STRING_EQUAL(read_back(&client, false), "+a;+?b;?;?;;");
    up(t, WEBSOCKET_TEXT, true, "up!");
    CU_ASSERT_STRING_EQUAL(read_back(&server, true), "up!;"); /* the other way is not looked at */
    down(t, WEBSOCKET_TEXT, true, "no!");
    turn();
    CU_ASSERT(overs == 1 && strcmp(over_code, "secret_blocked") == 0);
    CU_ASSERT_STRING_EQUAL(read_back(&client, false), "1008;");
    finish(t);
}

/* ---- messages that are judged whole ---- */

static char seen[256];
static const char *verdict;
static bool waits;

static const char *judge(void *arg, struct slice message, bool *wait)
{
    CU_ASSERT_PTR_EQUAL(arg, &waits);
    snprintf(seen, sizeof seen, "%.*s", SL(message));
    *wait = waits;
    return verdict;
}

static struct message_judge *judge_new(struct quota *total, const struct tunnel_filter *inner,
                                       struct tunnel_filter *ret)
{
    struct message_judge_order o = {
        .total = total, .owner = "a", .max = 40, .judge = judge, .arg = &waits, .inner = inner};
    struct message_judge *h = message_judge_new(&o);
    CU_ASSERT_PTR_NOT_NULL_FATAL(h);
    *ret = message_judge_filter(h);
    verdict = NULL;
    waits = false;
    questions = 0;
    return h;
}

/* Nobody has a message's end before it was judged; what is held inside comes with it. */
static void test_hold(void)
{
    struct quota total = {.total = 1000, .each = 1000};
    struct tunnel_filter inner = {piece, rest, control, held, &questions, NULL}, f;
    struct message_judge *h = judge_new(&total, &inner, &f);
    struct tunnel *t = begin(TUNNEL_STRICT_UP, &f, NULL);
    up(t, WEBSOCKET_TEXT, false, "ab?");
    size_t begun = buf_len(&server.got);
    up(t, WEBSOCKET_CONTINUATION, false, "?");
    CU_ASSERT(begun > 2 && buf_len(&server.got) == begun);
    up(t, WEBSOCKET_PING, true, "x");
    CU_ASSERT_EQUAL(total.used, 4);
    up(t, WEBSOCKET_CONTINUATION, true, "");
    CU_ASSERT_STRING_EQUAL(read_back(&server, true), "+ab;#;\?\?;");
    CU_ASSERT_STRING_EQUAL(seen, "ab\?\?");
    CU_ASSERT_EQUAL(total.used, 0);
    up(t, WEBSOCKET_TEXT, true, "c");
    up(t, WEBSOCKET_TEXT, true, "");
    CU_ASSERT_STRING_EQUAL(read_back(&server, true), "c;;");
    CU_ASSERT_STRING_EQUAL(seen, "");
    verdict = "llm";
    up(t, WEBSOCKET_TEXT, true, "def");
    up(t, WEBSOCKET_TEXT, true, "ghi");
    turn();
    CU_ASSERT_STRING_EQUAL(seen, "def");
    CU_ASSERT_STRING_EQUAL(read_back(&server, true), "+de;");
    CU_ASSERT(buf_len(&client.got) == 7 && memcmp(buf_data(&client.got) + 4, "llm", 3) == 0);
    CU_ASSERT_STRING_EQUAL(read_back(&client, false), "1008;");
    CU_ASSERT_STRING_EQUAL(over_code, "llm");
    finish(t);
    message_judge_free(h);
    CU_ASSERT_EQUAL(total.used, 0);
}

/* While one message waits, nothing behind it goes, and no more is taken; all of it goes on. */
static void test_hold_waits(void)
{
    struct quota total = {.total = 1000, .each = 1000};
    struct tunnel_filter f;
    struct message_judge *h = judge_new(&total, NULL, &f);
    struct tunnel *t = begin(TUNNEL_STRICT_NONE, &f, NULL);
    waits = true;
    up(t, WEBSOCKET_TEXT, true, "one");
    CU_ASSERT_EQUAL(tunnel_up_room(t), 0);
    up(t, WEBSOCKET_TEXT, true, "two"); /* it was on its way */
    up(t, WEBSOCKET_PING, true, "p");
    size_t sent = buf_len(&server.got);
    CU_ASSERT_STRING_EQUAL(seen, "one");
    down(t, WEBSOCKET_TEXT, true, "down"); /* the other way goes on */
    CU_ASSERT_STRING_EQUAL(read_back(&client, false), "down;");
    unsigned wanted = client.wanted;
    tunnel_go_on(t);
    CU_ASSERT(buf_len(&server.got) > sent);
    CU_ASSERT(client.wanted == wanted && tunnel_up_room(t) == 0); /* the second waits */
    waits = false;
    tunnel_go_on(t);
    CU_ASSERT_STRING_EQUAL(read_back(&server, true), "one;two;p;");
    CU_ASSERT(client.wanted == wanted + 1 && tunnel_up_room(t) > 0);
    tunnel_go_on(t); /* nothing waits */
    CU_ASSERT_STRING_EQUAL(read_back(&server, true), "");
    waits = true;
    up(t, WEBSOCKET_TEXT, true, "three");
    tunnel_end(t, "budget");
    tunnel_go_on(t);
    turn();
    CU_ASSERT_STRING_EQUAL(read_back(&server, true), "+thre;");
    CU_ASSERT_STRING_EQUAL(over_code, "budget");
    finish(t);
    message_judge_free(h);
}

static void test_hold_bounds(void)
{
    static const char *const codes[] = {"too_large_to_inspect", "overload"};
    for (int i = 0; i < 2; i++) {
        struct quota total = {.total = i ? 30 : 1000, .each = 1000};
        struct tunnel_filter f;
        struct message_judge *h = judge_new(&total, NULL, &f);
        struct tunnel *t = begin(TUNNEL_STRICT_NONE, &f, NULL);
        up(t, WEBSOCKET_TEXT, false, "0123456789012345678901234567890123456789");
        if (i == 0)
            up(t, WEBSOCKET_CONTINUATION, false, "x");
        turn();
        CU_ASSERT_EQUAL(overs, 1);
        CU_ASSERT_STRING_EQUAL(over_code ? over_code : "", codes[i]);
        CU_ASSERT_STRING_EQUAL(read_back(&client, false), i ? "1008;" : "1009;");
        finish(t);
        message_judge_free(h);
        CU_ASSERT(total.used == 0);
    }
}

void suite_tunnel(void)
{
    CU_pSuite s = CU_add_suite("tunnel", NULL, NULL);
    CU_add_test(s, "framed anew both ways", test_both_ways);
    CU_add_test(s, "a message of one frame leaves as one", test_single);
    CU_add_test(s, "and ends without a close frame", test_single_ends);
    CU_add_test(s, "a message within a message", test_within);
    CU_add_test(s, "masks are ours", test_mask);
    CU_add_test(s, "rooms", test_room);
    CU_add_test(s, "faults end both sides, from the loop (C20)", test_fault);
    CU_add_test(s, "closing, and its verdicts", test_closing);
    CU_add_test(s, "filters", test_filter);
    CU_add_test(s, "messages that are judged whole", test_hold);
    CU_add_test(s, "messages that wait", test_hold_waits);
    CU_add_test(s, "messages beyond their bounds", test_hold_bounds);
}

void tap_suites(void)
{
    suite_tunnel();
}
