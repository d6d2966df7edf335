/* The gate's end of the injector channel, against an injector that this test plays: what a bad one
 * says ends the channel, never the gate; credit is neither exceeded nor lost. */
#include "injector_channel_bed.h"

void suite_injector_channel(void);

struct bed {
    struct injector_channel *injector_channel;
    int far;
    struct noted downstream;
    struct upstream upstream;
};

static void open_bed_of(struct bed *b, const char *method, enum body_kind body, uint64_t length)
{
    int fds[2];
    struct head h;
    CU_ASSERT_EQUAL_FATAL(ipc_pair(fds, NULL), 0);
    noted_init(&b->downstream, 64 * 1024);
    b->injector_channel = injector_channel_new(base);
    b->far = fds[1];
    injector_channel_attach(b->injector_channel, fds[0], 1);
    bed_head(&h, body, length);
    h.method = slice_str(method);
    struct injector_channel_request q = {
        .secret = "k", .entry = "connect", .token = "", .generation = 3, .head = &h};
    CU_ASSERT_EQUAL(authority_parse(&q.authority, SCHEME_HTTPS, SLICE("a.example:8443")), 0);
    b->upstream = injector_channel_open(b->injector_channel, noted_downstream(&b->downstream), &q);
    CU_ASSERT_PTR_NOT_NULL_FATAL(b->upstream.ops);
    http_head_free(&h);
}

static void open_bed(struct bed *b, enum body_kind body, uint64_t length)
{
    open_bed_of(b, "POST", body, length);
}

static void close_bed(struct bed *b)
{
    injector_channel_free(b->injector_channel);
    noted_free(&b->downstream);
    if (b->far >= 0)
        close(b->far);
}

static void send_reply_of(struct bed *b, unsigned status, unsigned body, uint64_t length,
                          struct slice name, struct slice value)
{
    struct msg m;
    bed_put_id(&m, W_INJECTOR_CHANNEL_REPLY, 1);
    msg_put_u32(&m, status);
    msg_put_u8(&m, (uint8_t)body);
    msg_put_u64(&m, length);
    msg_put_u32(&m, 1);
    msg_put_slice(&m, name);
    msg_put_slice(&m, value);
    bed_send(b->far, &m);
}

static void send_reply(struct bed *b, unsigned status, unsigned body, struct slice name,
                       struct slice value)
{
    send_reply_of(b, status, body, 0, name, value);
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
    CU_ASSERT_FATAL(bed_take(b.far, W_INJECTOR_CHANNEL_REQUEST, &m));
    CU_ASSERT(msg_get_u32(&m, &v) == 0 && v == 3);
    CU_ASSERT(msg_get_u8(&m, &kind) == 0 && kind == SCHEME_HTTPS);
    CU_ASSERT(msg_get_str(&m, host, sizeof host) == 0 && strcmp(host, "a.example") == 0);
    CU_ASSERT(msg_get_u32(&m, &v) == 0 && v == 8443);
    CU_ASSERT(msg_get_slice(&m, 32, &s) == 0 && slice_eq(s, SLICE("POST")));
    CU_ASSERT(msg_get_slice(&m, 32, &s) == 0 && slice_eq(s, SLICE("/p")));
    msg_done(&m);
    b.upstream.ops->data(b.upstream.self, "hello", 5);
    b.upstream.ops->end(b.upstream.self);
    CU_ASSERT_FATAL(bed_take(b.far, W_INJECTOR_CHANNEL_BODY, &m));
    CU_ASSERT(msg_get_slice(&m, 99, &s) == 0 && slice_eq(s, SLICE("hello")) && msg_end(&m) == 0);
    msg_done(&m);
    CU_ASSERT_FATAL(bed_take(b.far, W_INJECTOR_CHANNEL_END, &m));
    msg_done(&m);
    good_reply(&b);
    bed_body(b.far, 1, 7);
    bed_id(b.far, W_INJECTOR_CHANNEL_END, 1);
    turn();
    CU_ASSERT(b.downstream.replies == 1 && b.downstream.status == 200 && b.downstream.bytes == 7);
    CU_ASSERT(b.downstream.ends == 1 && b.downstream.fails == 0);
    CU_ASSERT(slice_eq(http_head_find(&b.downstream.reply, "x-a")->value, SLICE("v")));
    close_bed(&b);
}

/* Each ends the channel and fails the exchange once, with 503, and the injector channel lives on.
 */
static void bad_after(void (*say)(struct bed *b), bool replied)
{
    struct bed b;
    open_bed(&b, BODY_NONE, 0);
    if (replied)
        good_reply(&b);
    say(&b);
    CU_ASSERT(bed_closed(b.far));
    CU_ASSERT(b.downstream.fails == 1 && b.downstream.ends == 0 && b.downstream.status == 503);
    CU_ASSERT_STRING_EQUAL(b.downstream.code, "injector_gone");
    CU_ASSERT(!injector_channel_ready(b.injector_channel));
    close_bed(&b);
}

static void say_unknown_type(struct bed *b)
{
    bed_id(b->far, 999, 1);
}

static void say_short(struct bed *b)
{
    struct msg m;
    msg_init(&m, W_INJECTOR_CHANNEL_END);
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
    bed_put_id(&m, W_INJECTOR_CHANNEL_REPLY, 1);
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
    bed_put_id(&m, W_INJECTOR_CHANNEL_TRAILERS, 1);
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
    bed_id(b->far, W_INJECTOR_CHANNEL_END, 1);
}

static void say_failure(struct bed *b, uint32_t status, const char *code, const char *id,
                        uint32_t retry)
{
    struct msg m;
    bed_put_id(&m, W_INJECTOR_CHANNEL_FAIL, 1);
    msg_put_u32(&m, status);
    msg_put_str(&m, code);
    msg_put_str(&m, id);
    msg_put_u32(&m, retry);
    bed_send(b->far, &m);
}

static void say_fail_200(struct bed *b)
{
    say_failure(b, 200, "x", "y", 0);
}

static void say_fail_600(struct bed *b)
{
    say_failure(b, 600, "x", "y", 0);
}

/* These stand in a field of the answer. */
static void say_fail_code(struct bed *b)
{
    say_failure(b, 502, "x\r\nx-evil: 1", "y", 0);
}

static void say_fail_id(struct bed *b)
{
    say_failure(b, 502, "x", "1-2\r\nx-evil: 1", 0);
}

static void say_fail_retry(struct bed *b)
{
    say_failure(b, 503, "x", "y", 1u << 31);
}

static void say_request(struct bed *b)
{
    bed_id(b->far, W_INJECTOR_CHANNEL_REQUEST, 99); /* of no exchange */
}

static void say_bind(struct bed *b)
{
    bed_id(b->far, W_BIND, 99);
}

static void say_credit(struct bed *b)
{
    bed_credit(b->far, 1,
               INJECTOR_CHANNEL_WINDOW - INJECTOR_CHANNEL_FIRST + 1); /* beyond any window */
}

static void say_credit_wrap(struct bed *b)
{
    bed_credit(b->far, 1, UINT32_MAX);
}

static void say_leftover(struct bed *b)
{
    struct msg m;
    bed_put_id(&m, W_INJECTOR_CHANNEL_END, 1);
    msg_put_u8(&m, 0);
    bed_send(b->far, &m);
}

static void say_body_and_more(struct bed *b)
{
    struct msg m;
    bed_put_id(&m, W_INJECTOR_CHANNEL_BODY, 1);
    msg_put_bytes(&m, "x", 1);
    msg_put_u8(&m, 0);
    bed_send(b->far, &m);
}

static void say_credit_and_more(struct bed *b)
{
    struct msg m;
    bed_put_id(&m, W_INJECTOR_CHANNEL_CREDIT, 1);
    msg_put_u32(&m, 1);
    msg_put_u8(&m, 0);
    bed_send(b->far, &m);
}

static void say_body_behind_trailers(struct bed *b)
{
    struct msg m;
    bed_put_id(&m, W_INJECTOR_CHANNEL_TRAILERS, 1);
    msg_put_u32(&m, 0);
    bed_send(b->far, &m);
    bed_body(b->far, 1, 1);
}

static void say_descriptor(struct bed *b)
{
    struct msg m;
    bed_put_id(&m, W_INJECTOR_CHANNEL_END, 1);
    msg_put_fd_dup(&m, 0);
    bed_send(b->far, &m);
}

static void test_bad_injector(void)
{
    static void (*const before[])(struct bed *) = {
        say_tunnel,        say_unknown_type, say_short,      say_status_100, say_status_1000,
        say_bad_body_kind, say_bad_name,     say_bad_value,  say_trailers,   say_trailers_twice,
        say_bad_trailer,   say_many_fields,  say_body,       say_end,        say_fail_200,
        say_fail_600,      say_fail_code,    say_fail_id,    say_fail_retry, say_request,
        say_bind,          say_credit,       say_credit_wrap};
    static void (*const after[])(struct bed *) = {
        say_unknown_type,        say_reply,         say_leftover,
        say_descriptor,          say_body_and_more, say_credit_and_more,
        say_body_behind_trailers};
    for (size_t i = 0; i < ARRAY_LEN(before); i++)
        bad_after(before[i], false);
    for (size_t i = 0; i < ARRAY_LEN(after); i++)
        bad_after(after[i], true);
}

/* What a client is told of a body, and what it is sent: where they differ, it would read the rest
 * as the answer to its next request, of another host perhaps. */
static void test_framing(void)
{
    static const struct {
        const char *method;
        unsigned status;
        enum body_kind body;
        uint64_t length;
        const char *said; /* by a field */
        size_t bytes;
        bool good;
    } rows[] = {{"POST", 206, BODY_LENGTH, 5, NULL, 5, true},
                {"POST", 206, BODY_LENGTH, 5, NULL, 6, false},
                {"POST", 206, BODY_LENGTH, 5, NULL, 4, false},
                {"POST", 206, BODY_LENGTH, 5, NULL, 0, false},
                {"POST", 206, BODY_CHUNKED, 5, "9", 7, true}, /* nobody is told of a length */
                {"POST", 200, BODY_NONE, 0, NULL, 0, true},
                {"POST", 200, BODY_NONE, 0, NULL, 1, false},
                {"POST", 200, BODY_NONE, 0, "0", 0, true},
                {"POST", 200, BODY_NONE, 0, "5", 0, false},
                {"POST", 200, BODY_NONE, 0, "x", 0, false},
                {"POST", 304, BODY_NONE, 0, "5", 0, true},
                {"POST", 304, BODY_LENGTH, 5, NULL, 5, false},
                {"POST", 204, BODY_CHUNKED, 0, NULL, 0, false},
                {"HEAD", 200, BODY_NONE, 0, "5", 0, true},
                {"HEAD", 200, BODY_NONE, 0, "5", 5, false},
                {"HEAD", 200, BODY_LENGTH, 5, NULL, 5, false},
                {"HEAD", 200, BODY_CHUNKED, 0, NULL, 0, false}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct bed b;
        open_bed_of(&b, rows[i].method, BODY_NONE, 0);
        send_reply_of(&b, rows[i].status, rows[i].body, rows[i].length,
                      rows[i].said ? SLICE("content-length") : SLICE("x"),
                      slice_str(rows[i].said ? rows[i].said : "y"));
        if (rows[i].bytes)
            bed_body(b.far, 1, rows[i].bytes);
        bed_id(b.far, W_INJECTOR_CHANNEL_END, 1);
        turn();
        if (b.downstream.ends != rows[i].good || b.downstream.fails == rows[i].good)
            printf("# row %zu\n", i);
        CU_ASSERT(b.downstream.ends == rows[i].good && b.downstream.fails != rows[i].good);
        CU_ASSERT(injector_channel_ready(b.injector_channel) == rows[i].good);
        CU_ASSERT(rows[i].body != BODY_LENGTH || b.downstream.bytes <= rows[i].length);
        close_bed(&b);
    }
}

/* A head that fits is one that a message takes. */
static void test_fits(void)
{
    static char value[IPC_MSG_MAX];
    memset(value, 'a', sizeof value);
    for (size_t n = IPC_MSG_MAX - 128; n < IPC_MSG_MAX; n++) {
        struct head h;
        struct msg m;
        http_head_init(&h);
        CU_ASSERT_EQUAL_FATAL(http_head_add(&h, "x", (struct slice){value, n}), 0);
        bed_put_id(&m, W_INJECTOR_CHANNEL_REPLY, 1);
        msg_put_u32(&m, 200);
        msg_put_u8(&m, BODY_NONE);
        msg_put_u64(&m, 0);
        injector_channel_put_fields(&m, &h);
        CU_ASSERT(!injector_channel_fits(&h) || !m.bad);
        CU_ASSERT(injector_channel_fits(&h) == (n <= IPC_MSG_MAX - 64 - 9));
        msg_done(&m);
        http_head_free(&h);
    }
}

/* More reply bytes than were credited end the channel; a downstream that takes them gets all. */
static void test_reply_credit(void)
{
    struct bed b;
    struct msg m;
    uint32_t n;
    size_t sent = 0, credit = INJECTOR_CHANNEL_FIRST;
    open_bed(&b, BODY_NONE, 0);
    CU_ASSERT(bed_take(b.far, W_INJECTOR_CHANNEL_REQUEST, &m));
    msg_done(&m);
    good_reply(&b);
    while (sent < 4 * INJECTOR_CHANNEL_WINDOW && credit >= INJECTOR_CHANNEL_BODY_MAX) {
        bed_body(b.far, 1, INJECTOR_CHANNEL_BODY_MAX);
        sent += INJECTOR_CHANNEL_BODY_MAX;
        credit -= INJECTOR_CHANNEL_BODY_MAX;
        while (bed_take(b.far, W_INJECTOR_CHANNEL_CREDIT, &m)) {
            CU_ASSERT(msg_get_u32(&m, &n) == 0 && msg_end(&m) == 0);
            credit += n;
            msg_done(&m);
        }
        CU_ASSERT(credit <= INJECTOR_CHANNEL_WINDOW);
    }
    CU_ASSERT(credit > INJECTOR_CHANNEL_FIRST);         /* it has grown */
    CU_ASSERT_EQUAL(sent, 4 * INJECTOR_CHANNEL_WINDOW); /* it never stood still */
    CU_ASSERT_EQUAL(b.downstream.bytes, sent);
    b.downstream.room = 0; /* now the downstream takes nothing on */
    while (credit >= INJECTOR_CHANNEL_BODY_MAX) {
        bed_body(b.far, 1, INJECTOR_CHANNEL_BODY_MAX);
        credit -= INJECTOR_CHANNEL_BODY_MAX;
    }
    CU_ASSERT_FALSE(bed_take(b.far, W_INJECTOR_CHANNEL_CREDIT, &m));
    b.downstream.room = 64 * 1024;
    b.upstream.ops->resume(b.upstream.self);
    CU_ASSERT(bed_take(b.far, W_INJECTOR_CHANNEL_CREDIT, &m));
    msg_done(&m);
    b.downstream.room = 0;
    for (int i = 0; i <= INJECTOR_CHANNEL_WINDOW / INJECTOR_CHANNEL_BODY_MAX; i++)
        bed_body(b.far, 1, INJECTOR_CHANNEL_BODY_MAX);
    CU_ASSERT(bed_closed(b.far));
    CU_ASSERT_EQUAL(b.downstream.fails, 1);
    close_bed(&b);
}

static void test_request_credit(void)
{
    static const char data[INJECTOR_CHANNEL_FIRST];
    struct bed b;
    open_bed(&b, BODY_CHUNKED, 0);
    CU_ASSERT_EQUAL(b.upstream.ops->room(b.upstream.self), INJECTOR_CHANNEL_FIRST);
    b.upstream.ops->data(b.upstream.self, data, INJECTOR_CHANNEL_FIRST - 10);
    CU_ASSERT_EQUAL(b.upstream.ops->room(b.upstream.self), 10);
    b.upstream.ops->data(b.upstream.self, data, 10);
    CU_ASSERT_EQUAL(b.upstream.ops->room(b.upstream.self), 0);
    turn();
    bed_credit(b.far, 1, 1000);
    turn();
    CU_ASSERT_EQUAL(b.upstream.ops->room(b.upstream.self), 1000);
    CU_ASSERT_EQUAL(b.downstream.wanted, 1);
    bed_credit(b.far, 1, INJECTOR_CHANNEL_WINDOW - 999); /* one too many */
    CU_ASSERT(bed_closed(b.far));
    CU_ASSERT_EQUAL(b.downstream.fails, 1);
    close_bed(&b);
}

/* Refused by the gate in its body: the answer waits for the id of the injector's record. */
static void test_refuse(void)
{
    struct bed b;
    struct msg m;
    open_bed(&b, BODY_CHUNKED, 0);
    CU_ASSERT(bed_take(b.far, W_INJECTOR_CHANNEL_REQUEST, &m));
    msg_done(&m);
    CU_ASSERT(b.upstream.ops->refuse(b.upstream.self, 400, "framing"));
    CU_ASSERT_EQUAL(b.upstream.ops->room(b.upstream.self), 0);
    CU_ASSERT(bed_take(b.far, W_INJECTOR_CHANNEL_ABORT, &m));
    msg_done(&m);
    good_reply(&b); /* was on its way */
    bed_body(b.far, 1, 100);
    turn();
    CU_ASSERT(b.downstream.bytes == 0 && b.downstream.fails == 0);
    CU_ASSERT_FALSE(b.upstream.ops->refuse(b.upstream.self, 408, "timeout"));
    bed_put_id(&m, W_INJECTOR_CHANNEL_FAIL, 1);
    msg_put_u32(&m, 500);
    msg_put_str(&m, "other");
    msg_put_str(&m, "9-41");
    msg_put_u32(&m, 0);
    bed_send(b.far, &m);
    turn();
    CU_ASSERT(b.downstream.fails == 1 && b.downstream.status == 400);
    CU_ASSERT_STRING_EQUAL(b.downstream.code, "framing");
    close_bed(&b);
}

static void test_cancel(void)
{
    struct bed b;
    struct msg m;
    open_bed(&b, BODY_NONE, 0);
    CU_ASSERT(bed_take(b.far, W_INJECTOR_CHANNEL_REQUEST, &m));
    msg_done(&m);
    b.upstream.ops->cancel(b.upstream.self, "timeout");
    CU_ASSERT(bed_take(b.far, W_INJECTOR_CHANNEL_ABORT, &m));
    msg_done(&m);
    good_reply(&b); /* was on its way: nobody's any more */
    bed_body(b.far, 1, 100);
    bed_id(b.far, W_INJECTOR_CHANNEL_END, 1);
    turn();
    CU_ASSERT(injector_channel_ready(b.injector_channel) && b.downstream.replies == 0 &&
              b.downstream.ends == 0);
    close_bed(&b);
}

/* A new channel replaces the old one; what was under way fails, what comes works. */
static void test_attach(void)
{
    struct bed b;
    int fds[2];
    struct head h;
    struct injector_channel_request q = {.secret = "", .entry = "", .token = "", .head = &h};
    open_bed(&b, BODY_NONE, 0);
    CU_ASSERT_EQUAL_FATAL(ipc_pair(fds, NULL), 0);
    injector_channel_attach(b.injector_channel, fds[0], 1);
    CU_ASSERT(b.downstream.fails == 1 && injector_channel_ready(b.injector_channel));
    CU_ASSERT(bed_closed(b.far));
    close(fds[1]);
    turn();
    CU_ASSERT(!injector_channel_ready(b.injector_channel));
    bed_head(&h, BODY_NONE, 0);
    CU_ASSERT_PTR_NULL(
        injector_channel_open(b.injector_channel, noted_downstream(&b.downstream), &q).ops);
    CU_ASSERT_EQUAL(b.downstream.fails, 1);
    http_head_free(&h);
    close_bed(&b);
}

/* A head that no message can hold is refused before it is sent, and the channel lives. */
static void test_large(void)
{
    static char big[IPC_MSG_MAX];
    struct bed b;
    struct head h;
    struct injector_channel_request q = {.secret = "", .entry = "", .token = "", .head = &h};
    open_bed(&b, BODY_NONE, 0);
    memset(big, 'x', sizeof big);
    bed_head(&h, BODY_NONE, 0);
    CU_ASSERT_EQUAL(http_head_add(&h, "x-big", (struct slice){big, sizeof big}), 0);
    CU_ASSERT_PTR_NULL(
        injector_channel_open(b.injector_channel, noted_downstream(&b.downstream), &q).ops);
    http_head_free(&h);
    turn();
    CU_ASSERT(injector_channel_ready(b.injector_channel) && b.downstream.fails == 0);
    close_bed(&b);
    CU_ASSERT_EQUAL(b.downstream.fails,
                    1); /* injector_channel_free tells the one that was under way */
}

void suite_injector_channel(void)
{
    CU_pSuite s = CU_add_suite("hop", bed_setup, bed_teardown);
    CU_add_test(s, "refused by the gate", test_refuse);
    CU_add_test(s, "a request and its reply", test_request);
    CU_add_test(s, "a bad injector loses its channel", test_bad_injector);
    CU_add_test(s, "bodies of a bad injector", test_framing);
    CU_add_test(s, "a head that is too large", test_fits);
    CU_add_test(s, "credit of the reply", test_reply_credit);
    CU_add_test(s, "credit of the request", test_request_credit);
    CU_add_test(s, "cancelled", test_cancel);
    CU_add_test(s, "another channel", test_attach);
    CU_add_test(s, "too large for a message", test_large);
}

void tap_suites(void)
{
    suite_injector_channel();
}
