/* What an operator's proxy may answer to a CONNECT; it is played here. With TLS and a credential:
 * tests/functional/corporate.t. */
#include "proxy_connect.h"
#include "loop_bed.h"
#include "tap_main.h"
#include "upstream_proxy.h"

#include <event2/event.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

void suite_proxy_connect(void);

static struct upstream_proxy proxy = {
    .at = {.scheme = SCHEME_HTTP, .kind = HOST_NAME, .host = "proxy.example", .port = 3128}};

static struct {
    unsigned calls;
    int fd;
    char text[PROXY_CONNECT_TEXT_MAX];
} told;

static void turn(void)
{
    for (int i = 0; i < 10; i++)
        event_base_loop(base, EVLOOP_NONBLOCK);
}

static void done(void *arg, int fd, const char *text)
{
    CU_ASSERT_PTR_EQUAL(arg, &told);
    told.calls++;
    told.fd = fd;
    snprintf(told.text, sizeof told.text, "%s", text);
}

static struct proxy_connect *begin(int *far)
{
    int fds[2];
    struct proxy_connect_order o = {.base = base, .proxy = &proxy, .done = done, .arg = &told};
    CU_ASSERT_EQUAL_FATAL(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds),
                          0);
    o.target = (struct authority){
        .scheme = SCHEME_HTTPS, .kind = HOST_NAME, .host = "api.example", .port = 443};
    *far = fds[1];
    told.calls = 0;
    told.fd = -9;
    told.text[0] = 0;
    struct proxy_connect *p = proxy_connect_new(&o, fds[0]);
    CU_ASSERT_PTR_NOT_NULL_FATAL(p);
    return p;
}

/* step: bytes at once; 0: all. */
static void answered(const char *text, size_t n, size_t step, const char *want)
{
    int far;
    char asked[256] = "";
    struct proxy_connect *p = begin(&far);
    proxy_connect_run(p);
    turn();
    CU_ASSERT(recv(far, asked, sizeof asked - 1, 0) > 0);
    CU_ASSERT_STRING_EQUAL(asked,
                           "CONNECT api.example:443 HTTP/1.1\r\nHost: api.example:443\r\n\r\n");
    for (size_t at = 0; at < n && told.calls == 0; at += step ? step : n) {
        size_t some = step && step < n - at ? step : n - at;
        CU_ASSERT_EQUAL(send(far, text + at, some, MSG_NOSIGNAL), (ssize_t)some);
        turn();
    }
    if (told.calls == 0)
        shutdown(far, SHUT_WR);
    turn();
    if (strcmp(told.text, want) != 0)
        printf("# %.40s: %s, not %s\n", text, told.text, want);
    CU_ASSERT_EQUAL(told.calls, 1);
    CU_ASSERT_STRING_EQUAL(told.text, want);
    CU_ASSERT_EQUAL(told.fd >= 0, want[0] == 0);
    if (told.fd >= 0) { /* a stream of its own to the target */
        char got[8] = "";
        CU_ASSERT(fcntl(told.fd, F_GETFD) & FD_CLOEXEC);
        CU_ASSERT_EQUAL(send(far, "first", 5, MSG_NOSIGNAL), 5);
        CU_ASSERT_EQUAL(recv(told.fd, got, sizeof got, 0), 5);
        CU_ASSERT_STRING_EQUAL(got, "first");
        close(told.fd);
    }
    close(far);
}

#define ANSWERED(text, want)                       \
    do {                                           \
        answered(text, sizeof(text) - 1, 0, want); \
        answered(text, sizeof(text) - 1, 1, want); \
    } while (0)

static void test_answers(void)
{
    ANSWERED("HTTP/1.1 200 Connection established\r\n\r\n", "");
    ANSWERED("HTTP/1.0 200\r\nVia: x\r\n\r\n", "");
    ANSWERED("HTTP/1.1 204 None\r\n\r\n", "");
    ANSWERED("HTTP/1.1 407 No\r\nProxy-Authenticate: Basic\r\n\r\n",
             "the proxy wants a credential (407)");
    ANSWERED("HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n", "the proxy refuses (403)");
    ANSWERED("HTTP/1.1 302 Found\r\nLocation: /\r\n\r\n", "the proxy refuses (302)");
    ANSWERED("HTTP/1.1 100 Continue\r\n\r\n", "the proxy refuses (100)");
    ANSWERED("HTTP/1.1 101 Switching\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n",
             "the proxy's answer is malformed");
    ANSWERED("HTTP/2 200\r\n\r\n", "the proxy's answer is malformed");
    ANSWERED("HTTP/1.1 2000\r\n\r\n", "the proxy's answer is malformed");
    ANSWERED("HTTP/1.1 200 OK\r\nA b\r\n\r\n", "the proxy's answer is malformed");
    ANSWERED("HTTP/1.1 200 OK\r\nA: \0\r\n\r\n", "the proxy's answer is malformed");
    ANSWERED("SSH-2.0-x\r\n\r\n", "the proxy's answer is malformed");
    ANSWERED("HTTP/1.1 200 OK\r\n", "the proxy closed the connection");
    ANSWERED("", "the proxy closed the connection");
}

/* Nothing can come from the target yet: what stands behind the head is somebody's trick. */
static void test_more(void)
{
    static const char text[] = "HTTP/1.1 200 OK\r\n\r\nHTTP/1.1 200 OK\r\n\r\n";
    answered(text, sizeof text - 1, 0, "the proxy sends more than its answer");
    proxy.secret[0] = 'k'; /* one with a credential is told so; none is asked for here */
    int far;
    struct proxy_connect *p = begin(&far);
    proxy.secret[0] = 0;
    proxy_connect_run(p);
    turn();
    proxy.secret[0] = 'k';
    CU_ASSERT_EQUAL(send(far, "HTTP/1.1 407 No\r\n\r\n", 19, MSG_NOSIGNAL), 19);
    turn();
    CU_ASSERT_STRING_EQUAL(told.text, "the proxy refuses its credential (407)");
    proxy.secret[0] = 0;
    close(far);
}

static void test_large(void)
{
    size_t size = PROXY_CONNECT_HEAD_MAX + 100;
    char *text = malloc(size);
    CU_ASSERT_PTR_NOT_NULL_FATAL(text);
    memset(text, 'x', size);
    memcpy(text, "HTTP/1.1 200 OK\r\nA: ", 20);
    answered(text, size, 0, "the proxy's answer is too long");
    answered(text, size, 1000, "the proxy's answer is too long");
    memcpy(text + PROXY_CONNECT_HEAD_MAX - 4, "\r\n\r\n", 4);
    answered(text, PROXY_CONNECT_HEAD_MAX, 0, "");
    size_t n = (size_t)snprintf(text, size, "HTTP/1.1 200 OK\r\n");
    for (int i = 0; i < 513; i++)
        n += (size_t)snprintf(text + n, size - n, "A: b\r\n");
    n += (size_t)snprintf(text + n, size - n, "\r\n");
    answered(text, n, 0, "the proxy's answer is malformed"); /* too many fields */
    free(text);
}

static void test_ends(void)
{
    int far;
    struct proxy_connect *p = begin(&far);
    CU_ASSERT_EQUAL(send(far, "220 hello\r\n", 11, MSG_NOSIGNAL), 11);
    turn();
    CU_ASSERT_STRING_EQUAL(told.text, "the proxy speaks before it is asked");
    CU_ASSERT(told.calls == 1 && told.fd == -1);
    close(far);
    p = begin(&far);
    proxy_connect_run(p);
    turn();
    proxy_connect_cancel(p); /* then nothing is told, and the proxy is hung up on */
    turn();
    CU_ASSERT_EQUAL(told.calls, 0);
    char text[256];
    while (recv(far, text, sizeof text, 0) > 0)
        continue;
    CU_ASSERT_EQUAL(recv(far, text, sizeof text, 0), 0);
    close(far);
    proxy_connect_cancel(NULL);
    p = begin(&far);
    proxy_connect_run(p);
    close(far); /* before the request is written */
    turn();
    CU_ASSERT(told.calls == 1 && told.fd == -1);
    CU_ASSERT_STRING_EQUAL(told.text, "the proxy closed the connection");
}

void suite_proxy_connect(void)
{
    CU_pSuite s = CU_add_suite("proxy_connect", setup, teardown);
    CU_add_test(s, "answers", test_answers);
    CU_add_test(s, "more than an answer", test_more);
    CU_add_test(s, "bounds", test_large);
    CU_add_test(s, "ends", test_ends);
}

void tap_suites(void)
{
    suite_proxy_connect();
}
