/* The connection to an origin, and the pool that keeps it: what an evil origin says never makes a
 * connection that is used again (B3, B18, B19, B25, B26). */
#include "http1_client.h"
#include "loop_bed.h"
#include "pool.h"
#include "stream.h"
#include "tap_main.h"
#include "upgrade.h"

#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

void suite_http1_client(void);

static struct limits limits = {.head_bytes = 32768,
                               .headers = 100,
                               .target_bytes = 8192,
                               .idle_seconds = 5,
                               .reply_seconds = 5};

struct bed {
    int fd; /* the origin's end */
    struct http1_client *client;
    size_t room;
    unsigned replies, ends, fails, wanted, status, trailers;
    char code[64];
    struct buf body;
};

static void on_reply(void *arg, const struct head *h)
{
    struct bed *b = arg;
    b->replies++;
    b->status = h->status;
}

static void on_data(void *arg, const void *p, size_t n)
{
    struct bed *b = arg;
    CU_ASSERT(n <= b->room);
    CU_ASSERT_EQUAL(buf_append(&b->body, p, n), 0);
}

static void on_trailers(void *arg, const struct head *fields)
{
    struct bed *b = arg;
    const struct field *f = http_head_find(fields, "grpc-status");
    CU_ASSERT_EQUAL(b->ends, 0);
    b->trailers += (unsigned)fields->n;
    CU_ASSERT(f && slice_eq_str(f->value, "7"));
}

static void on_end(void *arg)
{
    ((struct bed *)arg)->ends++;
}

static void on_fail(void *arg, const char *code, const char *detail)
{
    struct bed *b = arg;
    b->fails++;
    b->client = NULL;
    CU_ASSERT_PTR_NOT_NULL(detail);
    snprintf(b->code, sizeof b->code, "%s", code);
}

static size_t on_room(void *arg)
{
    return ((struct bed *)arg)->room;
}

static void on_wanted(void *arg)
{
    ((struct bed *)arg)->wanted++;
}

static const struct client_ops ops = {
    .reply = on_reply,
    .data = on_data,
    .trailers = on_trailers,
    .end = on_end,
    .fail = on_fail,
    .room = on_room,
    .wanted = on_wanted,
};

static void turn(void)
{
    for (int i = 0; i < 20; i++)
        event_base_loop(base, EVLOOP_NONBLOCK);
}

static struct http1_client *connect_one(int *far)
{
    int fds[2];
    CU_ASSERT_EQUAL_FATAL(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds),
                          0);
    *far = fds[1];
    return http1_client_new(io_new(base, fds[0], STREAM_IN_MAX, STREAM_OUT_MAX, false), &limits);
}

static void open_bed(struct bed *b)
{
    memset(b, 0, sizeof *b);
    b->room = 65536;
    buf_init(&b->body, 1 << 20);
    b->client = connect_one(&b->fd);
}

static void ask(struct bed *b, const char *method, enum body_kind body)
{
    http1_client_start(b->client, &ops, b, SLICE("HEAD\r\n\r\n"), slice_str(method), body);
    if (body == BODY_NONE)
        http1_client_request_end(b->client);
    turn();
}

static void say(struct bed *b, const char *text)
{
    CU_ASSERT_EQUAL(send(b->fd, text, strlen(text), MSG_NOSIGNAL), (ssize_t)strlen(text));
    turn();
}

static void close_bed(struct bed *b)
{
    http1_client_close(b->client);
    turn();
    if (b->fd >= 0)
        close(b->fd);
    buf_free(&b->body);
}

#define OK5 "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"

static void test_again(void)
{
    struct bed b;
    open_bed(&b);
    for (unsigned i = 1; i <= 3; i++) {
        ask(&b, "GET", BODY_NONE);
        say(&b, OK5);
        CU_ASSERT(b.ends == i && b.fails == 0);
        CU_ASSERT(http1_client_reusable(b.client) && http1_client_alive(b.client));
        CU_ASSERT_EQUAL(http1_client_served(b.client), i);
    }
    CU_ASSERT(slice_eq(buf_slice(&b.body), SLICE("hellohellohello")));
    ask(&b, "HEAD", BODY_NONE);
    say(&b, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n");
    CU_ASSERT(b.ends == 4 && http1_client_reusable(b.client));
    close_bed(&b);
}

/* The client's side of a WebSocket ends, before the origin has agreed to it or after: the origin is
 * told then and there. */
static void test_tunnel_end(void)
{
    static const char field[] = "sec-websocket-key: ";
    for (int early = 0; early < 2; early++) {
        struct bed b;
        char text[1024] = "", accept[UPGRADE_ACCEPT_TEXT], reply[256];
        open_bed(&b);
        ask(&b, "GET", BODY_TUNNEL);
        CU_ASSERT_TRUE_FATAL(recv(b.fd, text, sizeof text - 1, 0) > 0);
        const char *key = strstr(text, field);
        CU_ASSERT_PTR_NOT_NULL_FATAL(key);
        struct slice k = {key + sizeof field - 1, UPGRADE_KEY_TEXT - 1};
        CU_ASSERT_EQUAL(upgrade_accept(k, accept), 0);
        snprintf(reply, sizeof reply,
                 "HTTP/1.1 101 x\r\nUpgrade: websocket\r\nConnection: upgrade\r\n"
                 "Sec-WebSocket-Accept: %s\r\n\r\n",
                 accept);
        if (early)
            http1_client_request_end(b.client);
        turn();
        CU_ASSERT_EQUAL(recv(b.fd, text, sizeof text, 0), -1); /* it is still to agree */
        say(&b, reply);
        CU_ASSERT(b.replies == 1 && b.status == 101 && b.fails == 0);
        if (!early)
            http1_client_request_end(b.client);
        turn();
        CU_ASSERT_EQUAL(recv(b.fd, text, sizeof text, 0), 0);
        say(&b, "bye");
        CU_ASSERT(slice_eq(buf_slice(&b.body), SLICE("bye")));
        close_bed(&b);
    }
}

/* Ends well, and is never used again. */
static void once(const char *method, enum body_kind body, const char *reply)
{
    struct bed b;
    open_bed(&b);
    ask(&b, method, body);
    if (body != BODY_NONE) {
        http1_client_data(b.client, "x", 1);
        http1_client_request_end(b.client);
    }
    say(&b, reply);
    if (b.ends != 1 || http1_client_reusable(b.client))
        printf("# %s %d: %s\n", method, (int)body, reply);
    CU_ASSERT(b.ends == 1 && b.fails == 0 && !http1_client_reusable(b.client));
    close_bed(&b);
}

static void test_not_again(void)
{
    struct bed b;
    static const char *const bodyless[] = {"GET", "HEAD", "DELETE", "OPTIONS", "COPY", "MOVE"};
    for (size_t i = 0; i < ARRAY_LEN(bodyless); i++) {
        once(bodyless[i], BODY_LENGTH, "HTTP/1.1 204 No\r\n\r\n"); /* B3 */
        once(bodyless[i], BODY_CHUNKED, "HTTP/1.1 204 No\r\n\r\n");
    }
    once("GET", BODY_NONE, OK5 "x");
    once("GET", BODY_NONE, OK5 OK5);
    once("HEAD", BODY_NONE, OK5);
    once("GET", BODY_NONE, "HTTP/1.1 204 No\r\n\r\nx");
    once("GET", BODY_NONE, "HTTP/1.1 304 Not\r\nContent-Length: 5\r\n\r\nhello");
    once("GET", BODY_NONE, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
    once("GET", BODY_NONE, "HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n");
    once("GET", BODY_NONE,
         "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n0\r\n\r\n");
    open_bed(&b); /* with a method that has one, the body changes nothing */
    ask(&b, "POST", BODY_LENGTH);
    http1_client_data(b.client, "x", 1);
    http1_client_request_end(b.client);
    say(&b, OK5);
    CU_ASSERT(http1_client_reusable(b.client));
    ask(&b, "POST", BODY_LENGTH); /* answered before the request was whole */
    say(&b, OK5);
    CU_ASSERT(b.ends == 2 && !http1_client_reusable(b.client));
    close_bed(&b);
}

static void fails(const char *reply, bool end, const char *code)
{
    struct bed b;
    open_bed(&b);
    ask(&b, "GET", BODY_NONE);
    say(&b, reply);
    if (end) {
        close(b.fd);
        b.fd = -1;
        turn();
    }
    if (b.fails != 1 || strcmp(b.code, code) != 0)
        printf("# %s: %u %s\n", reply, b.fails, b.code);
    CU_ASSERT(b.fails == 1 && b.ends == 0);
    CU_ASSERT_STRING_EQUAL(b.code, code);
    close_bed(&b);
}

static void test_fails(void)
{
    static const char chunked[] = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    char text[256];
    fails("", true, "upstream_closed");
    fails("HTTP/1.1 20", true, "upstream_closed");
    fails("HTTP/1.1 100 C\r\n\r\n", true, "upstream_closed");
    fails("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell", true, "upstream_truncated");
    fails("HTTP/1.1 101 S\r\nUpgrade: x\r\n\r\n", false, "upstream_protocol");
    fails("garbage\r\n\r\n", false, "upstream_protocol");
    fails("HTTP/1.1 200 OK\nX: y\n\n", false, "upstream_protocol");
    fails("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", false,
          "upstream_protocol");
    snprintf(text, sizeof text, "%s5\r\nhello\r\n", chunked);
    fails(text, true, "upstream_truncated");
    snprintf(text, sizeof text, "%s1\r\nab", chunked);
    fails(text, false, "upstream_protocol");
    snprintf(text, sizeof text, "%s0\r\nX Y: z\r\n\r\n", chunked);
    fails(text, false, "upstream_protocol");
}

static void test_interim(void)
{
    for (unsigned n = 7; n <= 9; n++) {
        struct bed b;
        open_bed(&b);
        ask(&b, "GET", BODY_NONE);
        for (unsigned i = 0; i < n; i++)
            CU_ASSERT_EQUAL(send(b.fd, "HTTP/1.1 103 E\r\nLink: x\r\n\r\n", 27, MSG_NOSIGNAL), 27);
        turn();
        CU_ASSERT_EQUAL(b.replies, 0);
        if (n <= 8)
            say(&b, OK5);
        CU_ASSERT_EQUAL(b.ends, n <= 8);
        CU_ASSERT_EQUAL(b.fails, n > 8);
        close_bed(&b);
    }
}

/* A downstream without room: reading stops, and goes on; a body to the connection's end too. */
static void test_pressure(void)
{
    struct bed b;
    open_bed(&b);
    b.room = 0;
    ask(&b, "GET", BODY_NONE);
    say(&b, "HTTP/1.1 200 OK\r\n\r\nuntil");
    say(&b, " the end");
    shutdown(b.fd, SHUT_WR);
    turn();
    CU_ASSERT(b.replies == 1 && b.ends == 0 && b.fails == 0 && buf_len(&b.body) == 0);
    b.room = 3;
    http1_client_resume(b.client);
    turn();
    CU_ASSERT(b.ends == 1 && b.fails == 0);
    CU_ASSERT(slice_eq(buf_slice(&b.body), SLICE("until the end")));
    CU_ASSERT_FALSE(http1_client_reusable(b.client));
    close_bed(&b);
}

/* A large upload to an origin that reads slowly goes on when it reads. */
static void test_upload(void)
{
    static char data[65536];
    struct bed b;
    size_t sent = 0, got = 0;
    open_bed(&b);
    ask(&b, "PUT", BODY_LENGTH);
    for (int rounds = 0; sent < (4u << 20) && rounds < 100000; rounds++) {
        size_t room = http1_client_room(b.client);
        size_t n = room < sizeof data ? room : sizeof data;
        unsigned told = b.wanted;
        if (n > 0) {
            http1_client_data(b.client, data, n);
            sent += n;
            continue;
        }
        while (b.wanted == told) { /* it must be told of room by itself */
            ssize_t r = recv(b.fd, data, sizeof data, MSG_DONTWAIT);
            got += r > 0 ? (size_t)r : 0;
            turn();
            if (r <= 0 && b.wanted == told)
                break;
        }
        CU_ASSERT_FATAL(b.wanted > told);
    }
    CU_ASSERT(sent >= 4u << 20 && got > 0);
    close_bed(&b);
}

/* ---- the pool ---- */

static struct http1_client *served_once(int *far)
{
    struct bed b = {.room = 65536};
    buf_init(&b.body, 100);
    b.client = connect_one(&b.fd);
    ask(&b, "GET", BODY_NONE);
    say(&b, OK5);
    CU_ASSERT(http1_client_reusable(b.client));
    buf_free(&b.body);
    *far = b.fd;
    return b.client;
}

/* Until the pool has let go of what is too much. */
static void rest(const struct pool *p, size_t left)
{
    for (int i = 0; i < 400 && pool_idle(p) > left; i++) {
        struct timeval t = {0, 10000};
        event_base_loopexit(base, &t);
        event_base_dispatch(base);
    }
}

/* A crowd of one owner's goes by its own number: what the others have stays, and a crowd that works
 * keeps its connections though they are more than may rest. */
static void test_pool_shares(void)
{
    enum { CROWD = 15 };
    int far[CROWD + 1];
    struct pool *p = pool_new(base, 2, 60);
    struct http1_client *c;
    pool_give(p, "one|a", served_once(&far[CROWD]));
    for (int i = 0; i < CROWD; i++)
        pool_give(p, i % 2 ? "many|a" : "many|b", served_once(&far[i]));
    CU_ASSERT_EQUAL(pool_idle(p), CROWD + 1);
    int extra;
    pool_give(p, "many|c", served_once(&extra)); /* beyond eight times as many: at once */
    CU_ASSERT_EQUAL(pool_idle(p), CROWD + 1);
    CU_ASSERT_PTR_NOT_NULL_FATAL(c = pool_take(p, "many|c", POOL_ANY).http1);
    http1_client_close(c);
    rest(p, 2);
    CU_ASSERT_EQUAL(pool_idle(p), 2);
    CU_ASSERT_PTR_NOT_NULL_FATAL(c = pool_take(p, "one|a", POOL_ANY).http1);
    http1_client_close(c);
    pool_free(p);
    for (int i = 0; i <= CROWD; i++)
        close(far[i]);
    close(extra);
    turn();
}

static void test_pool(void)
{
    int far[4];
    struct pool *p = pool_new(base, 2, 5);
    struct http1_client *c[4];
    for (int i = 0; i < 4; i++)
        c[i] = served_once(&far[i]);
    pool_give(p, "a|x", c[0]);
    CU_ASSERT_PTR_NULL(pool_take(p, "a|", POOL_ANY).http1);
    CU_ASSERT_PTR_NULL(pool_take(p, "a|xy", POOL_ANY).http1);
    CU_ASSERT_PTR_EQUAL(pool_take(p, "a|x", POOL_ANY).http1, c[0]);
    CU_ASSERT_PTR_NULL(pool_take(p, "a|x", POOL_ANY).http1);
    pool_give(p, "a|x", c[0]);
    pool_give(p, "a|x", c[1]);
    pool_give(p, "b|x", c[2]); /* of who has the most the longest idle goes, when it has rested */
    CU_ASSERT_EQUAL(pool_idle(p), 3);
    rest(p, 2);
    CU_ASSERT_EQUAL(pool_idle(p), 2);
    CU_ASSERT_PTR_EQUAL(pool_take(p, "a|x", POOL_ANY).http1, c[1]);
    pool_give(p, "a|x", c[1]);
    CU_ASSERT_EQUAL(send(far[1], "HTTP/1.1 200 OK\r\n", 17, 0), 17); /* unasked: not to be used */
    CU_ASSERT_PTR_NULL(pool_take(p, "a|x", POOL_ANY).http1);
    close(far[2]); /* its end is seen by the loop, and by a look before use */
    CU_ASSERT_PTR_NULL(pool_take(p, "b|x", POOL_ANY).http1);
    CU_ASSERT_EQUAL(pool_idle(p), 0);
    pool_give(p, "c", c[3]);
    close(far[3]);
    turn();
    CU_ASSERT_EQUAL(pool_idle(p), 0);
    pool_free(p);
    close(far[0]);
    close(far[1]);
}

static void test_pool_drop(void)
{
    int far[4];
    struct pool *p = pool_new(base, 8, 5), *none = pool_new(base, 0, 5);
    struct http1_client *c[4];
    for (int i = 0; i < 4; i++)
        c[i] = served_once(&far[i]);
    pool_give(p, "a|1", c[0]);
    pool_give(p, "a|2", c[1]);
    pool_give(p, "b|1", c[2]);
    pool_give(none, "a|1", c[3]); /* keeps nothing: closed */
    CU_ASSERT_EQUAL(pool_idle(none), 0);
    pool_drop(p, "a|");
    CU_ASSERT_EQUAL(pool_idle(p), 1);
    pool_free(p); /* and what it holds */
    pool_free(none);
    for (int i = 0; i < 4; i++)
        close(far[i]);
    turn();
}

static void test_trailers(void)
{
    struct bed b;
    open_bed(&b);
    ask(&b, "GET", BODY_NONE);
    say(&b, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nGrpc-Status: "
            "7\r\n\r\n");
    CU_ASSERT(b.ends == 1 && b.trailers == 1 && http1_client_reusable(b.client));
    close_bed(&b);
}

void suite_http1_client(void)
{
    CU_pSuite s = CU_add_suite("http1_client", setup, teardown);
    CU_add_test(s, "one request after another", test_again);
    CU_add_test(s, "the end of a tunnel", test_tunnel_end);
    CU_add_test(s, "used no second time (B3, B25)", test_not_again);
    CU_add_test(s, "broken replies (B18, B25)", test_fails);
    CU_add_test(s, "interim replies (B19)", test_interim);
    CU_add_test(s, "trailers", test_trailers);
    CU_add_test(s, "a front without room", test_pressure);
    CU_add_test(s, "an origin that reads slowly", test_upload);
    CU_add_test(s, "pool: keys, age, what came unasked (B26)", test_pool);
    CU_add_test(s, "pool: a crowd of one owner's", test_pool_shares);
    CU_add_test(s, "pool: dropped", test_pool_drop);
}

void tap_suites(void)
{
    suite_http1_client();
}
