/* The injector's end of the hop, against a gate that this test plays: a compromised gate must not
 * get a body past the length that the head told (promises P2, P5). The grant behind it is played
 * here too. */
#include "grant.h"
#include "hop_bed.h"

void suite_hop_server(void);

static struct injector injector;

struct grant {
    struct front front;
    struct head head;
    size_t room;
    uint64_t bytes;
    unsigned ends, cancels;
};

static struct grant *last; /* the newest one */
static unsigned granted, cancelled;
static char why[64];

struct grant *grant_new(struct injector *i, struct front front)
{
    CU_ASSERT_PTR_EQUAL(i, &injector);
    last = calloc(1, sizeof *last);
    last->front = front;
    last->room = SIZE_MAX;
    return last;
}

void grant_start(struct grant *g, struct grant_request *r)
{
    g->head = r->head;
    http_head_init(&r->head);
    granted++;
}

static void over(struct grant *g)
{
    http_head_free(&g->head);
    free(g);
    last = NULL;
}

static void grant_data(void *self, const void *p UNUSED, size_t n)
{
    struct grant *g = self;
    g->bytes += n;
    g->room -= n;
}

static void grant_end(void *self)
{
    ((struct grant *)self)->ends++;
}

static size_t grant_room(void *self)
{
    return ((struct grant *)self)->room;
}

static void grant_resume(void *self UNUSED)
{
}

static void grant_cancel(void *self, const char *code)
{
    cancelled++;
    snprintf(why, sizeof why, "%s", code);
    over(self);
}

struct back grant_back(struct grant *g)
{
    static const struct back_ops ops = {.data = grant_data,
                                        .end = grant_end,
                                        .room = grant_room,
                                        .resume = grant_resume,
                                        .cancel = grant_cancel};
    return (struct back){&ops, g};
}

static int open_server(void)
{
    int fds[2];
    CU_ASSERT_EQUAL_FATAL(ipc_pair(fds, NULL), 0);
    injector.base = base;
    granted = cancelled = 0;
    last = NULL;
    CU_ASSERT_PTR_NOT_NULL_FATAL(hop_server_new(&injector, fds[0], "s", false));
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
    bed_put_id(&m, W_HOP_REQUEST, s->id);
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
    msg_put_u8(&m, 0);
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
        {HOP_MARKS_MAX, "sk-proj-0123456789abcdefghij", true},
        {HOP_MARKS_MAX + 1, "dwd_0123456789abcdefghijklmnop", false},
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
    bed_body(fd, 1, HOP_BODY_MAX);
    bed_body(fd, 1, HOP_BODY_MAX);
    bed_body(fd, 1, 70000 - 2 * HOP_BODY_MAX);
    bed_id(fd, W_HOP_END, 1);
    turn();
    CU_ASSERT(last->bytes == 70000 && last->ends == 1);
    for (int i = 0; i < 3; i++) {
        CU_ASSERT(bed_take(fd, W_HOP_CREDIT, &m));
        msg_done(&m);
    }
    struct grant *g = last;
    g->front.ops->fail(g->front.self, 403, "grant_denied", "7-1");
    over(g);
    CU_ASSERT(bed_take(fd, W_HOP_FAIL, &m));
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
    bed_id(fd, W_HOP_END, 1);
    ends_channel(fd);

    fd = open_server(); /* a body where none was announced */
    start(fd, BODY_NONE, 0);
    bed_body(fd, 1, 1);
    ends_channel(fd);

    fd = open_server(); /* more after the end */
    start(fd, BODY_CHUNKED, 0);
    bed_body(fd, 1, 9);
    bed_id(fd, W_HOP_END, 1);
    bed_body(fd, 1, 1);
    CU_ASSERT(bed_closed(fd));
    close_server(fd);

    fd = open_server(); /* two ends */
    start(fd, BODY_CHUNKED, 0);
    bed_id(fd, W_HOP_END, 1);
    bed_id(fd, W_HOP_END, 1);
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
    bed_id(fd, W_HOP_END, 1);
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
    int fd = open_server(); /* a back that takes nothing: no more than the window is held */
    start(fd, BODY_CHUNKED, 0);
    last->room = 0;
    for (int i = 0; i < HOP_FIRST / HOP_BODY_MAX; i++) {
        bed_body(fd, 1, HOP_BODY_MAX);
        turn();
    }
    CU_ASSERT(last && last->bytes == 0);
    bed_body(fd, 1, 1);
    ends_channel(fd);

    fd = open_server(); /* credit beyond any window */
    start(fd, BODY_NONE, 0);
    bed_credit(fd, 1, HOP_WINDOW - HOP_FIRST + 1);
    ends_channel(fd);

    fd = open_server();
    start(fd, BODY_NONE, 0);
    CU_ASSERT_EQUAL(last->front.ops->room(last->front.self), HOP_FIRST);
    static const char data[60000];
    last->front.ops->data(last->front.self, data, sizeof data);
    CU_ASSERT_EQUAL(last->front.ops->room(last->front.self), HOP_FIRST - sizeof data);
    bed_credit(fd, 1, HOP_WINDOW - HOP_FIRST + 20000); /* the window has grown */
    turn();
    CU_ASSERT_EQUAL(last->front.ops->room(last->front.self), HOP_WINDOW - 40000);
    bed_credit(fd, 1, 40001);
    ends_channel(fd);
}

/* Many requests whose backs take each byte: their windows grow, all together by HOP_GROWTH. */
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
    for (int k = 0; k < 2 * HOP_WINDOW / HOP_BODY_MAX; k++) {
        for (uint32_t i = 1; i <= MANY; i++) {
            bed_body(fd, i, HOP_BODY_MAX);
            sent += HOP_BODY_MAX;
            while (bed_take(fd, W_HOP_CREDIT, &m)) {
                CU_ASSERT(msg_get_u32(&m, &n) == 0 && msg_end(&m) == 0);
                credited += n;
                msg_done(&m);
            }
        }
    }
    CU_ASSERT_EQUAL(credited, sent + HOP_GROWTH);
    close_server(fd);
}

static void test_messages(void)
{
    int fd = open_server();
    struct msg m;
    start(fd, BODY_NONE, 0);
    bed_id(fd, 999, 1);
    ends_channel(fd);

    fd = open_server();
    msg_init(&m, W_HOP_REQUEST);
    bed_send(fd, &m);
    ends_channel(fd);

    fd = open_server(); /* of a number that is not there: it may have ended meanwhile */
    bed_body(fd, 7, 100);
    bed_id(fd, W_HOP_END, 7);
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
    bed_body(fd, 1, HOP_BODY_MAX + 1);
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
    last->front.ops->trailers(last->front.self, &h);
    http_head_free(&h);
    CU_ASSERT(bed_take(fd, W_HOP_TRAILERS, &m));
    CU_ASSERT(msg_get_u32(&m, &n) == 0 && n == 1);
    CU_ASSERT(msg_get_str(&m, name, sizeof name) == 0 && strcmp(name, "grpc-status") == 0);
    CU_ASSERT(msg_get_str(&m, value, sizeof value) == 0 && strcmp(value, "0") == 0);
    msg_done(&m);
    bed_abort(fd, 1, "two words");
    ends_channel(fd);
}

void suite_hop_server(void)
{
    CU_pSuite s = CU_add_suite("hop_server", bed_setup, bed_teardown);
    CU_add_test(s, "a whole request", test_whole);
    CU_add_test(s, "a body is as long as its head says", test_framing);
    CU_add_test(s, "heads that no gate sends", test_requests);
    CU_add_test(s, "credit", test_credit);
    CU_add_test(s, "windows", test_windows);
    CU_add_test(s, "placeholders to look for", test_marks);
    CU_add_test(s, "other messages", test_messages);
    CU_add_test(s, "trailers, and why a request is given up", test_trailers);
    CU_add_test(s, "tunnels", test_tunnel);
}

void tap_suites(void)
{
    suite_hop_server();
}
