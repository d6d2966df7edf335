/* The gate's end of the hop, against an injector that this test plays: what a bad one says ends the
 * channel, never the gate; credit is neither exceeded nor lost. */
#include "hop_bed.h"

void suite_hop(void);

struct bed {
    struct hop *hop;
    int far;
    struct noted front;
    struct back back;
};

static void open_bed(struct bed *b, enum body_kind body, uint64_t length)
{
    int fds[2];
    struct head h;
    CU_ASSERT_EQUAL_FATAL(ipc_pair(fds, NULL), 0);
    noted_init(&b->front, 64 * 1024);
    b->hop = hop_new(base);
    b->far = fds[1];
    hop_attach(b->hop, fds[0], 1);
    bed_head(&h, body, length);
    struct hop_request q = {
        .secret = "k", .entry = "connect", .token = "", .generation = 3, .head = &h};
    CU_ASSERT_EQUAL(authority_parse(&q.authority, SCHEME_HTTPS, SLICE("a.example:8443")), 0);
    b->back = hop_open(b->hop, noted_front(&b->front), &q);
    CU_ASSERT_PTR_NOT_NULL_FATAL(b->back.ops);
    http_head_free(&h);
}

static void close_bed(struct bed *b)
{
    hop_free(b->hop);
    noted_free(&b->front);
    if (b->far >= 0)
        close(b->far);
}

static void send_reply(struct bed *b, unsigned status, unsigned body, struct slice name,
                       struct slice value)
{
    struct msg m;
    bed_put_id(&m, W_HOP_REPLY, 1);
    msg_put_u32(&m, status);
    msg_put_u8(&m, (uint8_t)body);
    msg_put_u64(&m, 0);
    msg_put_u32(&m, 1);
    msg_put_slice(&m, name);
    msg_put_slice(&m, value);
    bed_send(b->far, &m);
}

static void good_reply(struct bed *b)
{
    send_reply(b, 200, BODY_CHUNKED, SLICE("X-A"), SLICE("v"));
}

static void test_request(void)
{
    struct bed b;
    struct msg m;
    uint32_t v;
    uint8_t kind;
    char host[64];
    struct slice s;
    open_bed(&b, BODY_LENGTH, 5);
    CU_ASSERT_FATAL(bed_take(b.far, W_HOP_REQUEST, &m));
    CU_ASSERT(msg_get_u32(&m, &v) == 0 && v == 3);
    CU_ASSERT(msg_get_u8(&m, &kind) == 0 && kind == SCHEME_HTTPS);
    CU_ASSERT(msg_get_str(&m, host, sizeof host) == 0 && strcmp(host, "a.example") == 0);
    CU_ASSERT(msg_get_u32(&m, &v) == 0 && v == 8443);
    CU_ASSERT(msg_get_slice(&m, 32, &s) == 0 && slice_eq(s, SLICE("POST")));
    CU_ASSERT(msg_get_slice(&m, 32, &s) == 0 && slice_eq(s, SLICE("/p")));
    msg_done(&m);
    b.back.ops->data(b.back.self, "hello", 5);
    b.back.ops->end(b.back.self);
    CU_ASSERT_FATAL(bed_take(b.far, W_HOP_BODY, &m));
    CU_ASSERT(msg_get_slice(&m, 99, &s) == 0 && slice_eq(s, SLICE("hello")) && msg_end(&m) == 0);
    msg_done(&m);
    CU_ASSERT_FATAL(bed_take(b.far, W_HOP_END, &m));
    msg_done(&m);
    good_reply(&b);
    bed_body(b.far, 1, 7);
    bed_id(b.far, W_HOP_END, 1);
    turn();
    CU_ASSERT(b.front.replies == 1 && b.front.status == 200 && b.front.bytes == 7);
    CU_ASSERT(b.front.ends == 1 && b.front.fails == 0);
    CU_ASSERT(slice_eq(http_head_find(&b.front.reply, "x-a")->value, SLICE("v")));
    close_bed(&b);
}

/* Each ends the channel and fails the exchange once, with 503, and the hop lives on. */
static void bad_after(void (*say)(struct bed *b), bool replied)
{
    struct bed b;
    open_bed(&b, BODY_NONE, 0);
    if (replied)
        good_reply(&b);
    say(&b);
    CU_ASSERT(bed_closed(b.far));
    CU_ASSERT(b.front.fails == 1 && b.front.ends == 0 && b.front.status == 503);
    CU_ASSERT_STRING_EQUAL(b.front.code, "injector_gone");
    CU_ASSERT(!hop_ready(b.hop));
    close_bed(&b);
}

static void say_unknown_type(struct bed *b)
{
    bed_id(b->far, 999, 1);
}

static void say_short(struct bed *b)
{
    struct msg m;
    msg_init(&m, W_HOP_END);
    msg_put_u8(&m, 1);
    bed_send(b->far, &m);
}

static void say_status_100(struct bed *b)
{
    send_reply(b, 101, BODY_NONE, SLICE("x"), SLICE("v"));
}

static void say_status_1000(struct bed *b)
{
    send_reply(b, 1000, BODY_NONE, SLICE("x"), SLICE("v"));
}

static void say_bad_body_kind(struct bed *b)
{
    send_reply(b, 200, BODY_CLOSE + 1, SLICE("x"), SLICE("v"));
}

static void say_tunnel(struct bed *b)
{
    send_reply(b, 101, BODY_TUNNEL, SLICE("x"), SLICE("v")); /* which nobody asked for */
}

static void say_bad_name(struct bed *b)
{
    send_reply(b, 200, BODY_NONE, SLICE("x y"), SLICE("v"));
}

static void say_bad_value(struct bed *b)
{
    send_reply(b, 200, BODY_NONE, SLICE("x"), SLICE("v\r\nset-cookie: a"));
}

static void say_many_fields(struct bed *b)
{
    struct msg m;
    bed_put_id(&m, W_HOP_REPLY, 1);
    msg_put_u32(&m, 200);
    msg_put_u8(&m, BODY_NONE);
    msg_put_u64(&m, 0);
    msg_put_u32(&m, UINT32_MAX);
    bed_send(b->far, &m);
}

static void say_reply(struct bed *b)
{
    good_reply(b);
}

static void send_trailers(struct bed *b, const char *name)
{
    struct msg m;
    bed_put_id(&m, W_HOP_TRAILERS, 1);
    msg_put_u32(&m, 1);
    msg_put_str(&m, name);
    msg_put_str(&m, "0");
    bed_send(b->far, &m);
}

/* Before a reply, twice, with a bad name. */
static void say_trailers(struct bed *b)
{
    send_trailers(b, "grpc-status");
}

static void say_trailers_twice(struct bed *b)
{
    good_reply(b);
    send_trailers(b, "grpc-status");
    send_trailers(b, "grpc-status");
}

static void say_bad_trailer(struct bed *b)
{
    good_reply(b);
    send_trailers(b, "grpc status");
}

static void say_body(struct bed *b)
{
    bed_body(b->far, 1, 1);
}

static void say_end(struct bed *b)
{
    bed_id(b->far, W_HOP_END, 1);
}

static void say_fail_200(struct bed *b)
{
    struct msg m;
    bed_put_id(&m, W_HOP_FAIL, 1);
    msg_put_u32(&m, 200);
    msg_put_str(&m, "x");
    msg_put_str(&m, "y");
    bed_send(b->far, &m);
}

static void say_credit(struct bed *b)
{
    bed_credit(b->far, 1, HOP_WINDOW - HOP_FIRST + 1); /* beyond any window */
}

static void say_credit_wrap(struct bed *b)
{
    bed_credit(b->far, 1, UINT32_MAX);
}

static void say_leftover(struct bed *b)
{
    struct msg m;
    bed_put_id(&m, W_HOP_END, 1);
    msg_put_u8(&m, 0);
    bed_send(b->far, &m);
}

static void say_descriptor(struct bed *b)
{
    struct msg m;
    bed_put_id(&m, W_HOP_END, 1);
    msg_put_fd_dup(&m, 0);
    bed_send(b->far, &m);
}

static void test_bad_injector(void)
{
    static void (*const before[])(struct bed *) = {
        say_tunnel,        say_unknown_type, say_short,     say_status_100, say_status_1000,
        say_bad_body_kind, say_bad_name,     say_bad_value, say_trailers,   say_trailers_twice,
        say_bad_trailer,   say_many_fields,  say_body,      say_end,        say_fail_200,
        say_credit,        say_credit_wrap};
    static void (*const after[])(struct bed *) = {say_unknown_type, say_reply, say_leftover,
                                                  say_descriptor};
    for (size_t i = 0; i < ARRAY_LEN(before); i++)
        bad_after(before[i], false);
    for (size_t i = 0; i < ARRAY_LEN(after); i++)
        bad_after(after[i], true);
}

/* More reply bytes than were credited end the channel; a front that takes them gets all. */
static void test_reply_credit(void)
{
    struct bed b;
    struct msg m;
    uint32_t n;
    size_t sent = 0, credit = HOP_FIRST;
    open_bed(&b, BODY_NONE, 0);
    CU_ASSERT(bed_take(b.far, W_HOP_REQUEST, &m));
    msg_done(&m);
    good_reply(&b);
    while (sent < 4 * HOP_WINDOW && credit >= HOP_BODY_MAX) {
        bed_body(b.far, 1, HOP_BODY_MAX);
        sent += HOP_BODY_MAX;
        credit -= HOP_BODY_MAX;
        while (bed_take(b.far, W_HOP_CREDIT, &m)) {
            CU_ASSERT(msg_get_u32(&m, &n) == 0 && msg_end(&m) == 0);
            credit += n;
            msg_done(&m);
        }
        CU_ASSERT(credit <= HOP_WINDOW);
    }
    CU_ASSERT(credit > HOP_FIRST);         /* it has grown */
    CU_ASSERT_EQUAL(sent, 4 * HOP_WINDOW); /* it never stood still */
    CU_ASSERT_EQUAL(b.front.bytes, sent);
    b.front.room = 0; /* now the front takes nothing on */
    while (credit >= HOP_BODY_MAX) {
        bed_body(b.far, 1, HOP_BODY_MAX);
        credit -= HOP_BODY_MAX;
    }
    CU_ASSERT_FALSE(bed_take(b.far, W_HOP_CREDIT, &m));
    b.front.room = 64 * 1024;
    b.back.ops->resume(b.back.self);
    CU_ASSERT(bed_take(b.far, W_HOP_CREDIT, &m));
    msg_done(&m);
    b.front.room = 0;
    for (int i = 0; i <= HOP_WINDOW / HOP_BODY_MAX; i++)
        bed_body(b.far, 1, HOP_BODY_MAX);
    CU_ASSERT(bed_closed(b.far));
    CU_ASSERT_EQUAL(b.front.fails, 1);
    close_bed(&b);
}

static void test_request_credit(void)
{
    static const char data[HOP_FIRST];
    struct bed b;
    open_bed(&b, BODY_CHUNKED, 0);
    CU_ASSERT_EQUAL(b.back.ops->room(b.back.self), HOP_FIRST);
    b.back.ops->data(b.back.self, data, HOP_FIRST - 10);
    CU_ASSERT_EQUAL(b.back.ops->room(b.back.self), 10);
    b.back.ops->data(b.back.self, data, 10);
    CU_ASSERT_EQUAL(b.back.ops->room(b.back.self), 0);
    turn();
    bed_credit(b.far, 1, 1000);
    turn();
    CU_ASSERT_EQUAL(b.back.ops->room(b.back.self), 1000);
    CU_ASSERT_EQUAL(b.front.wanted, 1);
    bed_credit(b.far, 1, HOP_WINDOW - 999); /* one too many */
    CU_ASSERT(bed_closed(b.far));
    CU_ASSERT_EQUAL(b.front.fails, 1);
    close_bed(&b);
}

/* Refused by the gate in its body: the answer waits for the id of the injector's record. */
static void test_refuse(void)
{
    struct bed b;
    struct msg m;
    open_bed(&b, BODY_CHUNKED, 0);
    CU_ASSERT(bed_take(b.far, W_HOP_REQUEST, &m));
    msg_done(&m);
    CU_ASSERT(b.back.ops->refuse(b.back.self, 400, "framing"));
    CU_ASSERT_EQUAL(b.back.ops->room(b.back.self), 0);
    CU_ASSERT(bed_take(b.far, W_HOP_ABORT, &m));
    msg_done(&m);
    good_reply(&b); /* was on its way */
    bed_body(b.far, 1, 100);
    turn();
    CU_ASSERT(b.front.bytes == 0 && b.front.fails == 0);
    CU_ASSERT_FALSE(b.back.ops->refuse(b.back.self, 408, "timeout"));
    bed_put_id(&m, W_HOP_FAIL, 1);
    msg_put_u32(&m, 500);
    msg_put_str(&m, "other");
    msg_put_str(&m, "9-41");
    msg_put_u32(&m, 0);
    bed_send(b.far, &m);
    turn();
    CU_ASSERT(b.front.fails == 1 && b.front.status == 400);
    CU_ASSERT_STRING_EQUAL(b.front.code, "framing");
    close_bed(&b);
}

static void test_cancel(void)
{
    struct bed b;
    struct msg m;
    open_bed(&b, BODY_NONE, 0);
    CU_ASSERT(bed_take(b.far, W_HOP_REQUEST, &m));
    msg_done(&m);
    b.back.ops->cancel(b.back.self, "timeout");
    CU_ASSERT(bed_take(b.far, W_HOP_ABORT, &m));
    msg_done(&m);
    good_reply(&b); /* was on its way: nobody's any more */
    bed_body(b.far, 1, 100);
    bed_id(b.far, W_HOP_END, 1);
    turn();
    CU_ASSERT(hop_ready(b.hop) && b.front.replies == 0 && b.front.ends == 0);
    close_bed(&b);
}

/* A new channel replaces the old one; what was under way fails, what comes works. */
static void test_attach(void)
{
    struct bed b;
    int fds[2];
    struct head h;
    struct hop_request q = {.secret = "", .entry = "", .token = "", .head = &h};
    open_bed(&b, BODY_NONE, 0);
    CU_ASSERT_EQUAL_FATAL(ipc_pair(fds, NULL), 0);
    hop_attach(b.hop, fds[0], 1);
    CU_ASSERT(b.front.fails == 1 && hop_ready(b.hop));
    CU_ASSERT(bed_closed(b.far));
    close(fds[1]);
    turn();
    CU_ASSERT(!hop_ready(b.hop));
    bed_head(&h, BODY_NONE, 0);
    CU_ASSERT_PTR_NULL(hop_open(b.hop, noted_front(&b.front), &q).ops);
    CU_ASSERT_EQUAL(b.front.fails, 1);
    http_head_free(&h);
    close_bed(&b);
}

/* A head that no message can hold is refused before it is sent, and the channel lives. */
static void test_large(void)
{
    static char big[IPC_MSG_MAX];
    struct bed b;
    struct head h;
    struct hop_request q = {.secret = "", .entry = "", .token = "", .head = &h};
    open_bed(&b, BODY_NONE, 0);
    memset(big, 'x', sizeof big);
    bed_head(&h, BODY_NONE, 0);
    CU_ASSERT_EQUAL(http_head_add(&h, "x-big", (struct slice){big, sizeof big}), 0);
    CU_ASSERT_PTR_NULL(hop_open(b.hop, noted_front(&b.front), &q).ops);
    http_head_free(&h);
    turn();
    CU_ASSERT(hop_ready(b.hop) && b.front.fails == 0);
    close_bed(&b);
    CU_ASSERT_EQUAL(b.front.fails, 1); /* hop_free tells the one that was under way */
}

void suite_hop(void)
{
    CU_pSuite s = CU_add_suite("hop", bed_setup, bed_teardown);
    CU_add_test(s, "refused by the gate", test_refuse);
    CU_add_test(s, "a request and its reply", test_request);
    CU_add_test(s, "a bad injector loses its channel", test_bad_injector);
    CU_add_test(s, "credit of the reply", test_reply_credit);
    CU_add_test(s, "credit of the request", test_request_credit);
    CU_add_test(s, "cancelled", test_cancel);
    CU_add_test(s, "another channel", test_attach);
    CU_add_test(s, "too large for a message", test_large);
}

void tap_suites(void)
{
    suite_hop();
}
