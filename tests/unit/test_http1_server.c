/* The connection towards the sandbox: order, framing, back-pressure, and endings that cannot be
 * mistaken. The session and the upstream behind it are played here. */
#include "http1_server.h"
#include "loop_bed.h"
#include "tap_main.h"

#include <arpa/inet.h>
#include <errno.h>
#include <event2/event.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

void suite_http1_server(void);

static struct limits limits = {.head_bytes = 32768,
                               .headers = 100,
                               .target_bytes = 8192,
                               .head_seconds = 5,
                               .idle_seconds = 5};

struct bed {
    int fd; /* the client's end */
    struct io *io;
    struct http1_server *server;
    struct downstream downstream;
    unsigned requests, refused, ends, cancels, resumes;
    bool closed, hold, large;
    size_t room;  /* of the upstream */
    size_t reply; /* bytes of a large reply still to give */
    struct buf body;
    char code[64], path[64];
    struct buf got; /* what the client read */
    bool eof, reset;
    struct faults *faults;
};

static void give_large(struct bed *b)
{
    static const char data[65536];
    while (b->large && b->reply > 0) {
        size_t room = b->downstream.ops->room(b->downstream.self);
        size_t n = b->reply < room ? b->reply : room;
        if (n == 0)
            return;
        b->downstream.ops->data(b->downstream.self, data, n);
        b->reply -= n;
    }
    if (b->large) {
        b->large = false;
        b->downstream.ops->end(b->downstream.self);
    }
}

static void upstream_data(void *self, const void *p, size_t n)
{
    struct bed *b = self;
    CU_ASSERT(n <= b->room);
    CU_ASSERT_EQUAL(buf_append(&b->body, p, n), 0);
}

static void answer(struct bed *b, const char *text)
{
    struct head h;
    http_head_init(&h);
    h.status = 200;
    h.body = BODY_LENGTH;
    h.length = strlen(text);
    b->downstream.ops->reply(b->downstream.self, &h);
    b->downstream.ops->data(b->downstream.self, text, strlen(text));
    b->downstream.ops->end(b->downstream.self);
}

static void upstream_end(void *self)
{
    struct bed *b = self;
    b->ends++;
    if (!b->hold)
        answer(b, b->path);
}

static size_t upstream_room(void *self)
{
    return ((struct bed *)self)->room;
}

static void upstream_resume(void *self)
{
    struct bed *b = self;
    b->resumes++;
    give_large(b);
}

static void upstream_id(void *self, char id[STREAM_ID])
{
    CU_ASSERT_EQUAL(((struct bed *)self)->cancels, 0);
    snprintf(id, STREAM_ID, "7-3");
}

static void upstream_cancel(void *self, const char *code UNUSED)
{
    ((struct bed *)self)->cancels++;
}

static const struct refusal *upstream_trailers(void *self UNUSED, const struct head *fields)
{
    static const struct refusal bad = {403, "secret_blocked"};
    CU_ASSERT_EQUAL(fields->n, 1);
    return http_head_find(fields, "x-bad") ? &bad : NULL;
}

static const struct upstream_ops upstream_ops = {
    .data = upstream_data,
    .trailers = upstream_trailers,
    .end = upstream_end,
    .room = upstream_room,
    .resume = upstream_resume,
    .cancel = upstream_cancel,
    .id = upstream_id,
};

static void on_request(void *session, struct http1_server *s, struct head *h,
                       struct downstream downstream)
{
    struct bed *b = session;
    b->requests++;
    b->downstream = downstream;
    snprintf(b->path, sizeof b->path, "%.*s", SL(h->path));
    if (slice_starts(h->path, SLICE("/denied")))
        downstream.ops->fail(downstream.self, 403, "no_rule", "7-1");
    else
        http1_server_set_upstream(s, (struct upstream){&upstream_ops, b});
}

static void on_refused(void *session, struct http1_server *s UNUSED, const struct head *h UNUSED,
                       struct downstream downstream, const struct refusal *why)
{
    struct bed *b = session;
    b->refused++;
    snprintf(b->code, sizeof b->code, "%s", why->code);
    downstream.ops->fail(downstream.self, why->status, why->code, "7-2");
}

static void on_closed(void *session)
{
    struct bed *b = session;
    b->closed = true;
    b->server = NULL;
    io_close_flushed(b->io);
    b->io = NULL;
}

static struct faults_book book;
static const char *sandbox = "one";

static unsigned unread_heads;

static struct faults *faults_of(void *session, bool unread)
{
    struct bed *b = session;
    unread_heads += unread;
    if (b->faults == NULL)
        b->faults = faults_join(&book, sandbox, faults_now());
    return b->faults;
}

static const struct http1_server_ops ops = {
    .request = on_request, .refused = on_refused, .faults = faults_of, .closed = on_closed};

/* A connected pair of TCP sockets: resets show. */
static void tcp_pair(int fds[2])
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof at;
    int l = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), small = 8192;
    CU_ASSERT_EQUAL_FATAL(bind(l, (struct sockaddr *)&at, n) | listen(l, 1) |
                              getsockname(l, (struct sockaddr *)&at, &n),
                          0);
    fds[1] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    setsockopt(fds[1], SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
    CU_ASSERT_EQUAL_FATAL(connect(fds[1], (struct sockaddr *)&at, n), 0);
    fds[0] = accept4(l, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    setsockopt(fds[0], SOL_SOCKET, SO_SNDBUF, &small, sizeof small);
    close(l);
    CU_ASSERT_FATAL(fds[0] >= 0);
}

static void open_bed(struct bed *b)
{
    int fds[2];
    memset(b, 0, sizeof *b);
    tcp_pair(fds);
    b->fd = fds[1];
    b->room = 65536;
    buf_init(&b->body, 1 << 20);
    buf_init(&b->got, 8 << 20);
    b->io = io_new(base, fds[0], STREAM_IN_MAX, STREAM_OUT_MAX, false);
    b->server = http1_server_new(base, b->io, &limits, &ops, b);
    CU_ASSERT_PTR_NOT_NULL_FATAL(b->server);
}

static void turn(void)
{
    for (int i = 0; i < 20; i++)
        event_base_loop(base, EVLOOP_NONBLOCK);
}

static void close_bed(struct bed *b)
{
    http1_server_free(b->server);
    io_close(b->io);
    faults_leave(b->faults);
    turn();
    close(b->fd);
    buf_free(&b->body);
    buf_free(&b->got);
}

/* What the client has by now. The loop may need a moment for the kernel to carry bytes over. */
static void body_buffer(struct bed *b, unsigned ms)
{
    char data[4096];
    struct pollfd p = {.fd = b->fd, .events = POLLIN};
    for (unsigned quiet = 0; quiet < ms && !b->eof && !b->reset; quiet++) {
        turn();
        ssize_t n = recv(b->fd, data, sizeof data, MSG_DONTWAIT);
        if (n > 0) {
            CU_ASSERT_EQUAL(buf_append(&b->got, data, (size_t)n), 0);
            quiet = 0;
            continue;
        }
        b->eof = n == 0;
        b->reset = n < 0 && errno == ECONNRESET;
        if (n < 0 && errno == EAGAIN)
            poll(&p, 1, 1);
    }
}

static void say(struct bed *b, const char *text)
{
    CU_ASSERT_EQUAL(send(b->fd, text, strlen(text), MSG_NOSIGNAL), (ssize_t)strlen(text));
}

static bool has(const struct bed *b, const char *text)
{
    return slice_find_slice(buf_slice(&b->got), slice_str(text)) >= 0;
}

#define H "Host: a\r\n"

static void test_pipeline(void)
{
    struct bed b;
    char text[128], want[64];
    open_bed(&b);
    for (int i = 0; i < 100; i++) {
        snprintf(text, sizeof text, "GET /%s%02d HTTP/1.1\r\n" H "\r\n", i & 1 ? "denied" : "ok",
                 i);
        say(&b, text);
    }
    body_buffer(&b, 30);
    CU_ASSERT_EQUAL(b.requests, 100);
    CU_ASSERT_EQUAL(b.ends, 50); /* the denied ones reached no upstream */
    size_t at = 0;
    for (int i = 0; i < 100; i++) { /* in order */
        snprintf(want, sizeof want, i & 1 ? "denied no_rule 7-1\n" : "\r\n\r\n/ok%02d", i);
        struct slice rest = {(const char *)buf_data(&b.got) + at, buf_len(&b.got) - at};
        ssize_t p = slice_find_slice(rest, slice_str(want));
        CU_ASSERT_FATAL(p >= 0);
        at += (size_t)p + strlen(want);
    }
    CU_ASSERT(!b.closed);
    close_bed(&b);
}

static void test_bodies(void)
{
    struct bed b;
    open_bed(&b);
    say(&b, "POST /a HTTP/1.1\r\n" H "Content-Length: 5\r\n\r\nhelloPOST /b HTTP/1.1\r\n" H
            "Transfer-Encoding: chunked\r\n\r\n3;x\r\nabc\r\n0\r\nX: y\r\n\r\n"
            "GET /c HTTP/1.1\r\n" H "\r\n");
    body_buffer(&b, 30);
    CU_ASSERT(b.requests == 3 && b.ends == 3);
    CU_ASSERT(slice_eq(buf_slice(&b.body), SLICE("helloabc")));
    CU_ASSERT(has(&b, "\r\n\r\n/c") && !b.closed);
    close_bed(&b);
}

/* 100-continue is said when there is room for the body, once, and not when the client went on. */
static void test_continue(void)
{
    struct bed b;
    open_bed(&b);
    b.room = 0;
    say(&b, "POST /a HTTP/1.1\r\n" H "Content-Length: 5\r\nExpect: 100-continue\r\n\r\n");
    body_buffer(&b, 20);
    CU_ASSERT_EQUAL(buf_len(&b.got), 0);
    b.room = 65536;
    b.downstream.ops->wanted(b.downstream.self);
    body_buffer(&b, 20);
    CU_ASSERT(slice_eq(buf_slice(&b.got), SLICE("HTTP/1.1 100 Continue\r\n\r\n")));
    b.downstream.ops->wanted(b.downstream.self);
    say(&b, "hello");
    body_buffer(&b, 20);
    CU_ASSERT(b.ends == 1 && has(&b, "\r\n\r\n/a"));
    CU_ASSERT_EQUAL(
        slice_find_slice((struct slice){(const char *)buf_data(&b.got) + 25, buf_len(&b.got) - 25},
                         SLICE("100 Continue")),
        -1);
    close_bed(&b);
}

/* Our side has ended with the answer; the connection is over as soon as the client's has. */
static bool over(struct bed *b)
{
    bool ours = b->eof && !b->reset;
    shutdown(b->fd, SHUT_WR);
    turn();
    return ours && b->closed;
}

/* Refused, with the code, and the connection ends whatever follows. */
static void refused(const char *text, const char *code, unsigned cancels)
{
    struct bed b;
    open_bed(&b);
    b.hold = true;
    say(&b, text);
    body_buffer(&b, 100);
    CU_ASSERT(over(&b));
    if (!has(&b, code))
        printf("# %s: %.*s\n", code, SL(buf_slice(&b.got)));
    CU_ASSERT(has(&b, code) && has(&b, "connection: close\r\n"));
    CU_ASSERT_EQUAL(b.cancels, cancels);
    CU_ASSERT_EQUAL(b.ends, 0);
    close_bed(&b);
}

static void test_refused(void)
{
    refused("\r\nGET / HTTP/1.1\r\n" H "\r\n", "refused bad_request_line 7-2\n", 0);
    refused("GET / HTTP/1.1\r\n" H "X\n\r\n", "refused bad_header 7-2\n", 0);
    refused("POST / HTTP/1.1\r\n" H "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
            "refused framing 7-2\n", 0);
    refused("POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n0x1\r\n",
            "refused framing 7-3\n", 1);
    refused("POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n1\r\nab\r\n",
            "refused framing 7-3\n", 1);
    refused("POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nX-Bad: "
            "1\r\n\r\n",
            "denied secret_blocked 7-3\n", 1);
    refused("POST /denied HTTP/1.1\r\n" H "Content-Length: 9\r\n\r\nGET /", "denied no_rule 7-1\n",
            0);
}

/* A large reply to a slow reader: it is told of room, all arrives, and what comes after the reply
 * (the next request, or the end) does not wait for anything else. */
static void large_reply(const char *version, enum body_kind kind, bool next)
{
    struct bed b;
    char text[256];
    size_t total = 3 << 20;
    struct head h;
    open_bed(&b);
    b.hold = true;
    snprintf(text, sizeof text, "GET /large HTTP/%s\r\n" H "\r\n%s", version,
             next ? "GET /denied HTTP/1.1\r\n" H "\r\n" : "");
    say(&b, text);
    body_buffer(&b, 20);
    CU_ASSERT_EQUAL_FATAL(b.ends, 1);
    b.large = true;
    b.reply = total;
    http_head_init(&h);
    h.status = 200;
    h.body = kind;
    h.length = kind == BODY_LENGTH ? total : 0;
    b.downstream.ops->reply(b.downstream.self, &h);
    give_large(&b);
    CU_ASSERT(b.reply > 0); /* it had to wait */
    body_buffer(&b, 200);
    CU_ASSERT(b.resumes > 0 && !b.large);
    CU_ASSERT(buf_len(&b.got) > total);
    CU_ASSERT_EQUAL(has(&b, "denied no_rule"), next);
    CU_ASSERT_EQUAL(b.eof, version[2] == '0');
    CU_ASSERT_FALSE(b.reset);
    close_bed(&b);
}

static void test_large(void)
{
    large_reply("1.1", BODY_LENGTH, false);
    large_reply("1.1", BODY_LENGTH, true);
    large_reply("1.1", BODY_CHUNKED, true);
    large_reply("1.0", BODY_CLOSE, false);
    large_reply("1.0", BODY_LENGTH, false);
}

/* A reply that breaks off must not look whole: neither with a length, nor in chunks, nor to an
 * HTTP/1.0 client that reads to the end. */
static void breaks_off(const char *version, enum body_kind kind)
{
    struct bed b;
    char text[128];
    struct head h;
    open_bed(&b);
    b.hold = true;
    snprintf(text, sizeof text, "GET / HTTP/%s\r\n" H "\r\n", version);
    say(&b, text);
    body_buffer(&b, 20);
    http_head_init(&h);
    h.status = 200;
    h.body = kind;
    h.length = kind == BODY_LENGTH ? 100 : 0;
    b.downstream.ops->reply(b.downstream.self, &h);
    b.downstream.ops->data(b.downstream.self, "part", 4);
    body_buffer(&b, 20);
    CU_ASSERT(has(&b, "part"));
    b.downstream.ops->fail(b.downstream.self, 502, "upstream_truncated", "7-1");
    body_buffer(&b, 100);
    CU_ASSERT(b.closed && b.reset && !b.eof);
    CU_ASSERT(!has(&b, "\r\n0\r\n\r\n") && !has(&b, "upstream_truncated"));
    close_bed(&b);
}

static void test_truncated(void)
{
    breaks_off("1.1", BODY_LENGTH);
    breaks_off("1.1", BODY_CHUNKED);
    breaks_off("1.0", BODY_CLOSE);
}

/* The client leaves: the exchange is cancelled once, whatever it was doing. */
static void test_gone(void)
{
    static const char *const at[] = {
        "POST / HTTP/1.1\r\n" H "Content-Length: 9\r\n\r\nhalf",
        "POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n5\r\nhe",
    };
    struct bed b;
    for (size_t i = 0; i < ARRAY_LEN(at); i++) {
        open_bed(&b);
        say(&b, at[i]);
        body_buffer(&b, 10);
        CU_ASSERT_EQUAL(b.requests, 1);
        shutdown(b.fd, SHUT_WR);
        body_buffer(&b, 100);
        CU_ASSERT(b.closed && b.cancels == 1 && b.ends == 0);
        close_bed(&b);
    }
    open_bed(&b); /* half closed after a whole request: it is answered, then the end */
    b.hold = true;
    say(&b, "GET /x HTTP/1.1\r\n" H "\r\n");
    shutdown(b.fd, SHUT_WR);
    body_buffer(&b, 10);
    CU_ASSERT(!b.closed && b.ends == 1);
    answer(&b, "late");
    body_buffer(&b, 100);
    CU_ASSERT(has(&b, "late") && b.eof && b.cancels == 0);
    close_bed(&b);
    open_bed(&b); /* in the middle of a head */
    say(&b, "GET / HT");
    shutdown(b.fd, SHUT_WR);
    body_buffer(&b, 100);
    CU_ASSERT(b.closed && b.requests == 0 && b.refused == 0);
    close_bed(&b);
}

/* One more connection, which says this; true: it was answered at once. */
static bool answered(const char *text, unsigned ms)
{
    struct bed b;
    open_bed(&b);
    say(&b, text);
    body_buffer(&b, ms);
    bool any = buf_len(&b.got) > 0;
    close_bed(&b);
    return any;
}

static void test_faults(void)
{
    static const char *const bad[] = {
        "GET / HTTP/1.1\r\nHost : a\r\n\r\n", "GET /\x7f HTTP/1.1\r\n" H "\r\n", "\r\n\nGET",
        "POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\nx\r\n"};
    static const char good[] = "GET /denied HTTP/1.1\r\n" H "\r\n";
    unsigned n = 0;
    sandbox = "unread";
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) { /* the last's head is whole: it says who asks */
        unsigned before = unread_heads;
        CU_ASSERT(answered(bad[i], 20));
        CU_ASSERT_EQUAL(unread_heads - before, i + 1 < ARRAY_LEN(bad));
    }
    sandbox = "bad";
    while (n < 200 && answered(bad[n % ARRAY_LEN(bad)], 20))
        n++;
    printf("# %u heads at fault were answered at once\n", n);
    CU_ASSERT(n > FAULTS_SLOW / FAULTS_FAULT && n < 200);
    struct faults *f = faults_join(&book, sandbox, faults_now());
    CU_ASSERT(!faults_take(f, FAULTS_SLOW / 4, faults_now())); /* for 1.25 s, however slow we are */
    faults_leave(f);
    CU_ASSERT(!answered(good, 20)); /* on any connection of its own */
    sandbox = "good";
    CU_ASSERT(answered(good, 20));
    sandbox = "bad"; /* and it is only slower */
    CU_ASSERT(answered(good, 5000));
    faults_book_free(&book);
    sandbox = "one";
}

static void test_slow(void)
{
    struct bed b;
    struct limits usual = limits;
    limits.head_seconds = limits.idle_seconds = 1;
    open_bed(&b); /* slow head */
    say(&b, "GET / HTTP/1.1\r\nHo");
    body_buffer(&b, 1500);
    CU_ASSERT(over(&b) && has(&b, "HTTP/1.1 408 ") && has(&b, "refused timeout 7-2\n"));
    close_bed(&b);
    open_bed(&b); /* slow body */
    say(&b, "POST / HTTP/1.1\r\n" H "Content-Length: 9\r\n\r\nhalf");
    body_buffer(&b, 1500);
    CU_ASSERT(over(&b) && has(&b, "HTTP/1.1 408 ") && b.cancels == 1);
    close_bed(&b);
    limits = usual;
}

/* An early answer while the body still comes: answered, then the connection ends. */
static void test_early(void)
{
    struct bed b;
    open_bed(&b);
    say(&b, "POST /x HTTP/1.1\r\n" H "Content-Length: 100\r\n\r\nhalf");
    body_buffer(&b, 10);
    answer(&b, "enough");
    body_buffer(&b, 100);
    CU_ASSERT(has(&b, "connection: close\r\n") && has(&b, "enough") && over(&b));
    close_bed(&b);
}

/* Refused at its head, while n bytes of its body are still to be sent. */
static void refuse_early(struct bed *b, size_t n)
{
    static const char data[4096];
    open_bed(b);
    say(b, "POST /denied HTTP/1.1\r\n" H "Content-Length: 9000000\r\n\r\n");
    turn();
    for (size_t sent = 0; sent < n && !b->closed;) {
        ssize_t k = send(b->fd, data, sizeof data, MSG_NOSIGNAL | MSG_DONTWAIT);
        sent += k > 0 ? (size_t)k : 0;
        turn();
    }
    if (n > 0)
        return;
    for (int i = 0; i < 30 && !b->closed; i++) {
        usleep(50000);
        turn();
    }
}

/* The client that still sends a body reads why it is refused. */
static void test_linger(void)
{
    struct bed b;
    refuse_early(&b, 1000 * 1024);
    CU_ASSERT_FALSE(b.closed);
    body_buffer(&b, 100);
    CU_ASSERT(has(&b, "HTTP/1.1 403 ") && has(&b, "denied no_rule 7-1\n"));
    CU_ASSERT(over(&b) && b.requests == 1);
    close_bed(&b);
    refuse_early(&b, 8u << 20); /* not for ever: 1 MiB, */
    CU_ASSERT(b.closed);
    close_bed(&b);
    refuse_early(&b, 0); /* and a second */
    CU_ASSERT(b.closed);
    close_bed(&b);
}

void suite_http1_server(void)
{
    CU_pSuite s = CU_add_suite("http1_server", setup, teardown);
    CU_add_test(s, "a pipeline of 100, each decided alone (B15)", test_pipeline);
    CU_add_test(s, "bodies", test_bodies);
    CU_add_test(s, "100-continue (B27)", test_continue);
    CU_add_test(s, "refusals end the connection", test_refused);
    CU_add_test(s, "large replies to a slow reader", test_large);
    CU_add_test(s, "a reply that breaks off is reset", test_truncated);
    CU_add_test(s, "the client leaves", test_gone);
    CU_add_test(s, "heads at fault slow down all of a sandbox, and nobody else", test_faults);
    CU_add_test(s, "slow clients (F1)", test_slow);
    CU_add_test(s, "an answer before the body's end", test_early);
    CU_add_test(s, "a refusal before the body's end is read", test_linger);
}

void tap_suites(void)
{
    suite_http1_server();
}
