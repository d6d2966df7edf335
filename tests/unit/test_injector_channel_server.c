/* The injector's end of the injector channel, against a gate that this test plays: a compromised
 * gate must not get a body past the length that the head told (promises P2, P5). The grant behind
 * it is played here too. */
#include "injection.h"
#include "injector_channel_bed.h"

void suite_injector_channel_server(void);

static struct injector injector;

struct injection {
    struct downstream downstream;
    struct head head;
    size_t room;
    uint64_t bytes;
    unsigned ends, cancels;
};

static struct injection *last; /* the newest one */
static unsigned granted, cancelled;
static char why[64];

struct injection *injection_new(struct injector *i, struct downstream downstream)
{
    CU_ASSERT_PTR_EQUAL(i, &injector);
    last = calloc(1, sizeof *last);
    last->downstream = downstream;
    last->room = SIZE_MAX;
    return last;
}

void injection_start(struct injection *g, struct injection_request *r)
{
    g->head = r->head;
    http_head_init(&r->head);
    granted++;
}

static void over(struct injection *g)
{
    http_head_free(&g->head);
    free(g);
    last = NULL;
}

static void injection_data(void *self, const void *p UNUSED, size_t n)
{
    struct injection *g = self;
    g->bytes += n;
    g->room -= n;
}

static void injection_end(void *self)
{
    ((struct injection *)self)->ends++;
}

static size_t injection_room(void *self)
{
    return ((struct injection *)self)->room;
}

static void injection_resume(void *self UNUSED)
{
}

static void injection_cancel(void *self, const char *code)
{
    cancelled++;
    snprintf(why, sizeof why, "%s", code);
    over(self);
}

struct upstream injection_upstream(struct injection *g)
{
    static const struct upstream_ops ops = {.data = injection_data,
                                            .end = injection_end,
                                            .room = injection_room,
                                            .resume = injection_resume,
                                            .cancel = injection_cancel};
    return (struct upstream){&ops, g};
}

static int open_server(void)
{
    int fds[2];
    CU_ASSERT_EQUAL_FATAL(ipc_pair(fds, NULL), 0);
    injector.base = base;
    granted = cancelled = 0;
    last = NULL;
    CU_ASSERT_PTR_NOT_NULL_FATAL(injector_channel_server_new(&injector, fds[0], "s", false));
    return fds[1];
}

static void close_server(int fd)
{
    close(fd);
    turn(); /* it frees itself, and what was granted */
    CU_ASSERT_PTR_NULL(last);
}

/* What a request message says; the fields are valid unless a test makes one bad. */
struct said {
    uint32_t id, port;
    unsigned scheme, body;
    uint64_t length;
    unsigned client;
    struct slice method, path, query, name, value;
    unsigned marks;
    const char *mark;
};

static const struct said usual = {.id = 1,
                                  .port = 443,
                                  .scheme = SCHEME_HTTPS,
                                  .method = SLICE("POST"),
                                  .path = SLICE("/p"),
                                  .query = SLICE("q=1"),
                                  .name = SLICE("x-a"),
                                  .value = SLICE("v")};

static void request(int fd, const struct said *s)
{
    struct msg m;
    bed_put_id(&m, W_INJECTOR_CHANNEL_REQUEST, s->id);
    msg_put_u32(&m, 1);
    msg_put_u8(&m, (uint8_t)s->scheme);
    msg_put_str(&m, "a.example");
    msg_put_u32(&m, s->port);
    msg_put_slice(&m, s->method);
    msg_put_slice(&m, s->path);
    msg_put_u8(&m, 1);
    msg_put_slice(&m, s->query);
    msg_put_u8(&m, (uint8_t)s->body);
    msg_put_u64(&m, s->length);
    msg_put_u8(&m, (uint8_t)s->client);
    msg_put_str(&m, "k");
    msg_put_str(&m, "connect");
    msg_put_str(&m, "");
    msg_put_u32(&m, s->marks);
    for (unsigned i = 0; i < s->marks; i++)
        msg_put_str(&m, s->mark);
    msg_put_u32(&m, 0); /* blanks */
    msg_put_u32(&m, 1);
    msg_put_slice(&m, s->name);
    msg_put_slice(&m, s->value);
    bed_send(fd, &m);
    turn();
}

/* A placeholder to look for is long, of plain bytes, and one of few. */
static void test_marks(void)
{
    static const struct {
        unsigned n;
        const char *mark;
        bool good;
    } rows[] = {
        {0, "", true},
        {1, "dwd_0123456789abcdefghijklmnop", true},
        {INJECTOR_CHANNEL_MARKS_MAX, "sk-proj-0123456789abcdefghij", true},
        {INJECTOR_CHANNEL_MARKS_MAX + 1, "dwd_0123456789abcdefghijklmnop", false},
        {1, "", false},
        {1, "a", false},
        {1, "dwd_0123456789abcdefghi", false},
        {1, "dwd_0123456789abcdefghij/klmnop", false},
        {1, "dwd_0123456789abcdefghij\"klmnop", false},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct said s = usual;
        int fd = open_server();
        s.marks = rows[i].n;
        s.mark = rows[i].mark;
        request(fd, &s);
        CU_ASSERT_EQUAL(bed_closed(fd), !rows[i].good);
        CU_ASSERT_EQUAL(granted, rows[i].good ? 1 : 0);
        close_server(fd);
    }
}

/* HTTP/2 by prior knowledge is for what goes in clear. */
static void test_client(void)
{
    static const struct {
        unsigned client, scheme;
        bool good, trailers, http2;
    } rows[] = {
        {0, SCHEME_HTTPS, true, false, false},   {1, SCHEME_HTTPS, true, true, false},
        {2, SCHEME_HTTPS, false, false, false},  {3, SCHEME_HTTPS, false, false, false},
        {4, SCHEME_HTTPS, false, false, false},  {0, SCHEME_HTTP, true, false, false},
        {1, SCHEME_HTTP, true, true, false},     {2, SCHEME_HTTP, true, false, true},
        {3, SCHEME_HTTP, true, true, true},      {4, SCHEME_HTTP, false, false, false},
        {255, SCHEME_HTTP, false, false, false},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct said s = usual;
        int fd = open_server();
        s.client = rows[i].client;
        s.scheme = rows[i].scheme;
        request(fd, &s);
        CU_ASSERT_EQUAL(granted, rows[i].good ? 1 : 0);
        CU_ASSERT(last == NULL || (last->head.te_trailers == rows[i].trailers &&
                                   last->head.knows_http2 == rows[i].http2));
        CU_ASSERT_EQUAL(bed_closed(fd), !rows[i].good);
        close_server(fd);
    }
}

static void start(int fd, enum body_kind body, uint64_t length)
{
    struct said s = usual;
    s.body = body;
    s.length = length;
    request(fd, &s);
    CU_ASSERT_PTR_NOT_NULL_FATAL(last);
}

static void test_whole(void)
{
    int fd = open_server();
    struct msg m;
    start(fd, BODY_LENGTH, 70000);
    CU_ASSERT(slice_eq(last->head.method, SLICE("POST")) && last->head.length == 70000);
    CU_ASSERT(slice_eq(last->head.path, SLICE("/p")) && last->head.has_query);
    bed_body(fd, 1, INJECTOR_CHANNEL_BODY_MAX);
    bed_body(fd, 1, INJECTOR_CHANNEL_BODY_MAX);
    bed_body(fd, 1, 70000 - 2 * INJECTOR_CHANNEL_BODY_MAX);
    bed_id(fd, W_INJECTOR_CHANNEL_END, 1);
    turn();
    CU_ASSERT(last->bytes == 70000 && last->ends == 1);
    for (int i = 0; i < 3; i++) {
        CU_ASSERT(bed_take(fd, W_INJECTOR_CHANNEL_CREDIT, &m));
        msg_done(&m);
    }
    struct injection *g = last;
    g->downstream.ops->fail(g->downstream.self, 403, "grant_denied", "7-1");
    over(g);
    CU_ASSERT(bed_take(fd, W_INJECTOR_CHANNEL_FAIL, &m));
    msg_done(&m);
    CU_ASSERT_FALSE(bed_closed(fd));
    close_server(fd);
    CU_ASSERT_EQUAL(cancelled, 0);
}

/* The channel ends, and the request under way is cancelled, not completed. */
static void ends_channel(int fd)
{
    unsigned open = last != NULL;
    CU_ASSERT(last == NULL || last->ends == 0);
    CU_ASSERT(bed_closed(fd));
    CU_ASSERT_EQUAL(cancelled, open);
    close_server(fd);
}

static void test_framing(void)
{
    int fd = open_server(); /* one byte more than the length */
    start(fd, BODY_LENGTH, 10);
    bed_body(fd, 1, 11);
    ends_channel(fd);

    fd = open_server(); /* the same in two pieces */
    start(fd, BODY_LENGTH, 10);
    bed_body(fd, 1, 10);
    bed_body(fd, 1, 1);
    CU_ASSERT(bed_closed(fd));
    CU_ASSERT_EQUAL(cancelled, 1);
    close_server(fd);

    fd = open_server(); /* an end before the length is full: the next request would fill it */
    start(fd, BODY_LENGTH, 10);
    bed_body(fd, 1, 9);
    bed_id(fd, W_INJECTOR_CHANNEL_END, 1);
    ends_channel(fd);

    fd = open_server(); /* a body where none was announced */
    start(fd, BODY_NONE, 0);
    bed_body(fd, 1, 1);
    ends_channel(fd);

    fd = open_server(); /* more after the end */
    start(fd, BODY_CHUNKED, 0);
    bed_body(fd, 1, 9);
    bed_id(fd, W_INJECTOR_CHANNEL_END, 1);
    bed_body(fd, 1, 1);
    CU_ASSERT(bed_closed(fd));
    close_server(fd);

    fd = open_server(); /* two ends */
    start(fd, BODY_CHUNKED, 0);
    bed_id(fd, W_INJECTOR_CHANNEL_END, 1);
    bed_id(fd, W_INJECTOR_CHANNEL_END, 1);
    CU_ASSERT(bed_closed(fd));
    close_server(fd);
}

static void refuses(const struct said *s)
{
    int fd = open_server();
    request(fd, s);
    CU_ASSERT_EQUAL(granted, 0);
    ends_channel(fd);
}

static void test_requests(void)
{
    struct said s;
#define BAD(field, v)  \
    do {               \
        s = usual;     \
        s.field = (v); \
        refuses(&s);   \
    } while (0)
    BAD(port, 0);
    BAD(port, 65536);
    BAD(scheme, 0);
    BAD(scheme, 3);
    BAD(body, BODY_CLOSE);
    BAD(body, 255);
    BAD(body, BODY_TUNNEL); /* with POST */
    BAD(length, 5);         /* with no body: a length that is never filled */
    BAD(body, BODY_LENGTH); /* of nothing */
    BAD(method, SLICE(""));
    BAD(method, SLICE("GET / HTTP/1.1\r\nX:"));
    BAD(method, SLICE("GETGETGETGETGETGETGETGETGETGETGET"));
    BAD(query, SLICE("a b"));
    BAD(query, SLICE("a HTTP/1.1\r\nX: y"));
    BAD(query, SLICE("\0"));
    BAD(query, SLICE("\xff"));
    BAD(name, SLICE(""));
    BAD(name, SLICE("x\r\ny"));
    BAD(name, SLICE("x: y"));
    BAD(value, SLICE("v\r\nhost: evil"));
    BAD(value, SLICE("v\0"));
#undef BAD
    int fd = open_server(); /* a number that is taken */
    start(fd, BODY_NONE, 0);
    request(fd, &usual);
    CU_ASSERT_EQUAL(granted, 1);
    CU_ASSERT(bed_closed(fd));
    close_server(fd);
}

/* An upgrade asked for: the head says it as http1_head would. */
static void test_tunnel(void)
{
    struct said s = usual;
    s.method = SLICE("GET");
    s.body = BODY_TUNNEL;
    int fd = open_server();
    request(fd, &s);
    CU_ASSERT_PTR_NOT_NULL_FATAL(last);
    CU_ASSERT(last->head.upgrade == UPGRADE_WEBSOCKET && last->head.body == BODY_TUNNEL);
    bed_body(fd, 1, 1000); /* of any length: nothing is promised */
    bed_body(fd, 1, 1000);
    turn();
    CU_ASSERT_EQUAL(last->bytes, 2000);
    bed_id(fd, W_INJECTOR_CHANNEL_END, 1);
    turn();
    CU_ASSERT_EQUAL(last->ends, 1);
    bed_body(fd, 1, 1); /* but not after its end */
    CU_ASSERT(bed_closed(fd));
    CU_ASSERT_EQUAL(cancelled, 1);
    close_server(fd);
    s.length = 5;
    refuses(&s);
    s = usual;
    s.method = SLICE("GET");
    request(fd = open_server(), &s);
    CU_ASSERT(last && last->head.upgrade == UPGRADE_NONE);
    close_server(fd);
}

static void test_credit(void)
{
    int fd = open_server(); /* an upstream that takes nothing: no more than the window is held */
    start(fd, BODY_CHUNKED, 0);
    last->room = 0;
    for (int i = 0; i < INJECTOR_CHANNEL_FIRST / INJECTOR_CHANNEL_BODY_MAX; i++) {
        bed_body(fd, 1, INJECTOR_CHANNEL_BODY_MAX);
        turn();
    }
    CU_ASSERT(last && last->bytes == 0);
    last->room = 1000; /* as much as there is room for, and not a byte more */
    last->downstream.ops->wanted(last->downstream.self);
    CU_ASSERT_EQUAL(last->bytes, 1000);
    last->room = SIZE_MAX;
    last->downstream.ops->wanted(last->downstream.self);
    CU_ASSERT_EQUAL(last->bytes, INJECTOR_CHANNEL_FIRST);
    close_server(fd);

    fd = open_server();
    start(fd, BODY_CHUNKED, 0);
    last->room = 0;
    for (int i = 0; i < INJECTOR_CHANNEL_FIRST / INJECTOR_CHANNEL_BODY_MAX; i++) {
        bed_body(fd, 1, INJECTOR_CHANNEL_BODY_MAX);
        turn();
    }
    bed_body(fd, 1, 1);
    ends_channel(fd);

    fd = open_server(); /* credit beyond any window */
    start(fd, BODY_NONE, 0);
    bed_credit(fd, 1, INJECTOR_CHANNEL_WINDOW - INJECTOR_CHANNEL_FIRST + 1);
    ends_channel(fd);

    fd = open_server();
    start(fd, BODY_NONE, 0);
    CU_ASSERT_EQUAL(last->downstream.ops->room(last->downstream.self), INJECTOR_CHANNEL_FIRST);
    static const char data[60000];
    last->downstream.ops->data(last->downstream.self, data, sizeof data);
    CU_ASSERT_EQUAL(last->downstream.ops->room(last->downstream.self),
                    INJECTOR_CHANNEL_FIRST - sizeof data);
    bed_credit(fd, 1,
               INJECTOR_CHANNEL_WINDOW - INJECTOR_CHANNEL_FIRST + 20000); /* the window has grown */
    turn();
    CU_ASSERT_EQUAL(last->downstream.ops->room(last->downstream.self),
                    INJECTOR_CHANNEL_WINDOW - 40000);
    bed_credit(fd, 1, 40001);
    ends_channel(fd);
}

/* Many requests whose backs take each byte: their windows grow, all together by
 * INJECTOR_CHANNEL_GROWTH. */
static void test_windows(void)
{
    enum { MANY = 40 };
    int fd = open_server();
    struct msg m;
    uint32_t n;
    size_t credited = 0, sent = 0;
    struct said s = usual;
    s.body = BODY_CHUNKED;
    s.length = 0;
    for (uint32_t i = 1; i <= MANY; i++) {
        s.id = i;
        request(fd, &s);
    }
    for (int k = 0; k < 2 * INJECTOR_CHANNEL_WINDOW / INJECTOR_CHANNEL_BODY_MAX; k++) {
        for (uint32_t i = 1; i <= MANY; i++) {
            bed_body(fd, i, INJECTOR_CHANNEL_BODY_MAX);
            sent += INJECTOR_CHANNEL_BODY_MAX;
            while (bed_take(fd, W_INJECTOR_CHANNEL_CREDIT, &m)) {
                CU_ASSERT(msg_get_u32(&m, &n) == 0 && msg_end(&m) == 0);
                credited += n;
                msg_done(&m);
            }
        }
    }
    CU_ASSERT_EQUAL(credited, sent + INJECTOR_CHANNEL_GROWTH);
    close_server(fd);
}

static void test_messages(void)
{
    int fd = open_server();
    struct msg m;
    start(fd, BODY_NONE, 0);
    bed_id(fd, 999, 1);
    ends_channel(fd);

    static const uint16_t others[] = {W_INJECTOR_CHANNEL_REPLY, W_INJECTOR_CHANNEL_FAIL,
                                      W_SECRET_GET, W_PEER, 999};
    for (size_t i = 0; i < ARRAY_LEN(others); i++) {
        fd = open_server();
        bed_id(fd, others[i], 7); /* of no exchange */
        ends_channel(fd);
    }

    fd = open_server();
    msg_init(&m, W_INJECTOR_CHANNEL_REQUEST);
    bed_send(fd, &m);
    ends_channel(fd);

    fd = open_server(); /* of a number that is not there: it may have ended meanwhile */
    bed_body(fd, 7, 100);
    bed_id(fd, W_INJECTOR_CHANNEL_END, 7);
    bed_abort(fd, 7, "timeout");
    CU_ASSERT_FALSE(bed_closed(fd));
    start(fd, BODY_CHUNKED, 0);
    bed_abort(fd, 1, "timeout");
    turn();
    CU_ASSERT(cancelled == 1 && last == NULL);
    CU_ASSERT_STRING_EQUAL(why, "timeout");
    CU_ASSERT_FALSE(bed_closed(fd));
    close_server(fd);

    fd = open_server(); /* longer than one message may be */
    start(fd, BODY_CHUNKED, 0);
    bed_body(fd, 1, INJECTOR_CHANNEL_BODY_MAX + 1);
    ends_channel(fd);
}

/* A field more than there is, in each message of an exchange that goes on; credit that wraps. */
static void test_leftovers(void)
{
    static const uint16_t types[] = {W_INJECTOR_CHANNEL_BODY, W_INJECTOR_CHANNEL_CREDIT,
                                     W_INJECTOR_CHANNEL_END, W_INJECTOR_CHANNEL_ABORT};
    for (size_t i = 0; i < ARRAY_LEN(types); i++) {
        int fd = open_server();
        struct msg m;
        start(fd, BODY_CHUNKED, 0);
        bed_put_id(&m, types[i], 1);
        if (types[i] == W_INJECTOR_CHANNEL_BODY || types[i] == W_INJECTOR_CHANNEL_ABORT)
            msg_put_str(&m, "timeout");
        else if (types[i] == W_INJECTOR_CHANNEL_CREDIT)
            msg_put_u32(&m, 1);
        msg_put_u8(&m, 0);
        bed_send(fd, &m);
        ends_channel(fd);
    }
    int fd = open_server();
    start(fd, BODY_CHUNKED, 0);
    bed_credit(fd, 1, UINT32_MAX);
    ends_channel(fd);
}

/* The reply's trailers come over after the body; a code that would not stand in a record does not.
 */
static void test_trailers(void)
{
    int fd = open_server();
    struct msg m;
    struct head h;
    char name[64], value[64];
    uint32_t n;
    start(fd, BODY_NONE, 0);
    http_head_init(&h);
    CU_ASSERT_EQUAL(http_head_add(&h, "grpc-status", SLICE("0")), 0);
    last->downstream.ops->trailers(last->downstream.self, &h);
    http_head_free(&h);
    CU_ASSERT(bed_take(fd, W_INJECTOR_CHANNEL_TRAILERS, &m));
    CU_ASSERT(msg_get_u32(&m, &n) == 0 && n == 1);
    CU_ASSERT(msg_get_str(&m, name, sizeof name) == 0 && strcmp(name, "grpc-status") == 0);
    CU_ASSERT(msg_get_str(&m, value, sizeof value) == 0 && strcmp(value, "0") == 0);
    msg_done(&m);
    bed_abort(fd, 1, "two words");
    ends_channel(fd);
}

void suite_injector_channel_server(void)
{
    CU_pSuite s = CU_add_suite("hop_server", bed_setup, bed_teardown);
    CU_add_test(s, "a whole request", test_whole);
    CU_add_test(s, "a body is as long as its head says", test_framing);
    CU_add_test(s, "heads that no gate sends", test_requests);
    CU_add_test(s, "what its client takes and speaks", test_client);
    CU_add_test(s, "credit", test_credit);
    CU_add_test(s, "windows", test_windows);
    CU_add_test(s, "placeholders to look for", test_marks);
    CU_add_test(s, "other messages", test_messages);
    CU_add_test(s, "messages with more behind", test_leftovers);
    CU_add_test(s, "trailers, and why a request is given up", test_trailers);
    CU_add_test(s, "tunnels", test_tunnel);
}

void tap_suites(void)
{
    suite_injector_channel_server();
}
