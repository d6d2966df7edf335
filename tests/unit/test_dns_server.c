/* The gate's DNS server, over loopback: where answers leave from, codes, bounds, streams. */
#include "dns_server.h"
#include "tap_main.h"

#include <arpa/inet.h>
#include <event2/event.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

void suite_dns_server(void);

struct packet {
    unsigned char p[8192];
    size_t n;
};

static void put(struct packet *k, const void *p, size_t n)
{
    CU_ASSERT_FATAL(k->n + n <= sizeof k->p);
    memcpy(k->p + k->n, p, n);
    k->n += n;
}

static void put16(struct packet *k, unsigned v)
{
    unsigned char b[2] = {(unsigned char)(v >> 8), (unsigned char)v};
    put(k, b, 2);
}

static void put_name(struct packet *k, const char *name)
{
    while (*name) {
        size_t n = strcspn(name, ".");
        unsigned char len = (unsigned char)n;
        put(k, &len, 1);
        put(k, name, n);
        name += n + (name[n] == '.');
    }
    put(k, "", 1);
}

static void header(struct packet *k, unsigned flags, unsigned qd, unsigned an, unsigned ns,
                   unsigned ar)
{
    k->n = 0;
    put16(k, 0x1234);
    put16(k, flags);
    put16(k, qd);
    put16(k, an);
    put16(k, ns);
    put16(k, ar);
}

static void query(struct packet *k, const char *name, unsigned type)
{
    header(k, 0x0100, 1, 0, 0, 0);
    put_name(k, name);
    put16(k, type);
    put16(k, 1);
}

static unsigned get16(const unsigned char *p)
{
    return (unsigned)p[0] << 8 | p[1];
}

/* The answer's code, extended by its OPT if there is one. */
static unsigned answer_code(const unsigned char *p, size_t n)
{
    unsigned code = p[3] & 15;
    if (get16(p + 10) == 1)
        code |= (unsigned)p[n - 6] << 4;
    return code;
}

struct bed {
    struct event_base *base;
    struct dns_server *server;
    int udp4, udp6; /* clients */
    struct sockaddr_in udp4_at, tcp_at;
    struct sockaddr_in6 udp6_at;
    bool hold; /* lookup keeps queries */
    struct dns_query *held[DNS_SERVER_QUERIES + 1];
    unsigned n_held, lookups, refused;
    char last[HOST_TEXT_MAX];
    uint16_t last_type;
};

static void answer(struct dns_query *q, const char *host, uint16_t type)
{
    static const unsigned char v4[4] = {198, 18, 0, 1}, v6[16] = {0xfd, 0x64, [15] = 1};
    if (strcmp(host, "refuse.example") == 0)
        dns_query_refuse(q);
    else if (strcmp(host, "fail.example") == 0)
        dns_query_fail(q);
    else if (strncmp(host, "ok", 2) != 0)
        dns_query_nxdomain(q);
    else if (type == DNS_TYPE_A || type == DNS_TYPE_AAAA)
        dns_query_answer_addr(q, v4, v6);
    else
        dns_query_nodata(q);
}

static void lookup(void *arg, struct slice host, uint16_t type, struct dns_query *q)
{
    struct bed *b = arg;
    b->lookups++;
    b->last_type = type;
    snprintf(b->last, sizeof b->last, "%.*s", SL(host));
    if (b->hold)
        b->held[b->n_held++] = q;
    else
        answer(q, b->last, type);
}

static void refused(void *arg, enum dns_code code UNUSED)
{
    ((struct bed *)arg)->refused++;
}

static int bind_any(int family, int type, void *at, socklen_t n)
{
    int fd = socket(family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    CU_ASSERT_FATAL(fd >= 0 && bind(fd, at, n) == 0);
    CU_ASSERT_FATAL(getsockname(fd, at, &n) == 0);
    return fd;
}

static void bed_open(struct bed *b)
{
    static const struct dns_server_ops ops = {lookup, refused};
    struct err err = {0};
    memset(b, 0, sizeof *b);
    b->base = event_base_new();
    b->server = dns_server_new(b->base, &ops, b);
    CU_ASSERT_FATAL(b->base && b->server);
    b->udp4_at = b->tcp_at = (struct sockaddr_in){.sin_family = AF_INET};
    b->udp6_at = (struct sockaddr_in6){.sin6_family = AF_INET6};
    int u4 = bind_any(AF_INET, SOCK_DGRAM, &b->udp4_at, sizeof b->udp4_at);
    int u6 = bind_any(AF_INET6, SOCK_DGRAM, &b->udp6_at, sizeof b->udp6_at);
    int t4 = bind_any(AF_INET, SOCK_STREAM, &b->tcp_at, sizeof b->tcp_at);
    CU_ASSERT_FATAL(listen(t4, 64) == 0);
    CU_ASSERT_FATAL(dns_server_add_udp(b->server, u4, &err) == 0);
    CU_ASSERT_FATAL(dns_server_add_udp(b->server, u6, &err) == 0);
    CU_ASSERT_FATAL(dns_server_add_tcp(b->server, t4, &err) == 0);
    b->udp4 = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    b->udp6 = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
}

static void bed_close(struct bed *b)
{
    dns_server_free(b->server);
    for (unsigned i = 0; i < b->n_held; i++)
        dns_query_nxdomain(b->held[i]); /* after the server: goes nowhere, frees itself */
    event_base_free(b->base);
    close(b->udp4);
    close(b->udp6);
}

/* Runs the loop until the descriptor can be read (true) or nothing came for ms. */
static bool wait_readable(struct bed *b, int fd, int ms)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    for (int spent = 0; spent <= ms; spent += 5) {
        event_base_loop(b->base, EVLOOP_NONBLOCK);
        if (poll(&p, 1, 5) > 0)
            return true;
    }
    return false;
}

static void test_udp(void)
{
    struct bed b;
    struct packet k;
    unsigned char in[600];
    struct sockaddr_in from;
    bed_open(&b);
    /* every address of 127/8 is local, as every address at all is in a sandbox */
    static const char *const targets[] = {"127.0.0.1", "127.8.8.8", "127.255.0.3"};
    for (size_t i = 0; i < ARRAY_LEN(targets); i++) {
        struct sockaddr_in to = b.udp4_at;
        socklen_t n = sizeof from;
        inet_pton(AF_INET, targets[i], &to.sin_addr);
        query(&k, "OK.example", DNS_TYPE_A);
        CU_ASSERT(sendto(b.udp4, k.p, k.n, 0, (struct sockaddr *)&to, sizeof to) == (ssize_t)k.n);
        CU_ASSERT_FATAL(wait_readable(&b, b.udp4, 2000));
        ssize_t r = recvfrom(b.udp4, in, sizeof in, 0, (struct sockaddr *)&from, &n);
        CU_ASSERT_EQUAL(r, (ssize_t)k.n + 16);
        CU_ASSERT_EQUAL(from.sin_addr.s_addr, to.sin_addr.s_addr);
        CU_ASSERT_EQUAL(from.sin_port, to.sin_port);
    }
    CU_ASSERT_STRING_EQUAL(b.last, "ok.example");
    struct sockaddr_in6 to6 = b.udp6_at, from6;
    socklen_t n6 = sizeof from6;
    to6.sin6_addr = in6addr_loopback;
    query(&k, "ok.example", DNS_TYPE_AAAA);
    if (sendto(b.udp6, k.p, k.n, 0, (struct sockaddr *)&to6, sizeof to6) == (ssize_t)k.n) {
        CU_ASSERT_FATAL(wait_readable(&b, b.udp6, 2000));
        ssize_t r = recvfrom(b.udp6, in, sizeof in, 0, (struct sockaddr *)&from6, &n6);
        CU_ASSERT_EQUAL(r, (ssize_t)k.n + 28);
        CU_ASSERT(memcmp(&from6.sin6_addr, &to6.sin6_addr, 16) == 0);
    }
    bed_close(&b);
}

static unsigned ask(struct bed *b, const char *name, unsigned type)
{
    struct packet k;
    unsigned char in[600];
    query(&k, name, type);
    struct sockaddr_in to = b->udp4_at;
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    CU_ASSERT(sendto(b->udp4, k.p, k.n, 0, (struct sockaddr *)&to, sizeof to) == (ssize_t)k.n);
    if (!wait_readable(b, b->udp4, 2000))
        return 999;
    ssize_t n = recv(b->udp4, in, sizeof in, 0);
    return n < 12 ? 999 : answer_code(in, (size_t)n) + 100 * get16(in + 6);
}

static void test_codes(void)
{
    struct bed b;
    bed_open(&b);
    CU_ASSERT_EQUAL(ask(&b, "ok.example", DNS_TYPE_A), 100);
    CU_ASSERT_EQUAL(ask(&b, "ok.example", DNS_TYPE_HTTPS), 0);
    CU_ASSERT_EQUAL(ask(&b, "ok.example", DNS_TYPE_SVCB), 0);
    CU_ASSERT_EQUAL(ask(&b, "no.example", DNS_TYPE_A), DNS_NXDOMAIN);
    CU_ASSERT_EQUAL(ask(&b, "refuse.example", DNS_TYPE_A), DNS_REFUSED);
    CU_ASSERT_EQUAL(ask(&b, "fail.example", DNS_TYPE_A), DNS_SERVFAIL);
    CU_ASSERT_EQUAL(ask(&b, "1.0.18.198.in-addr.arpa", DNS_TYPE_PTR), DNS_NXDOMAIN);
    CU_ASSERT_EQUAL(b.lookups, 7);
    CU_ASSERT_EQUAL(b.refused, 0);
    CU_ASSERT_EQUAL(ask(&b, "-.example", DNS_TYPE_A), DNS_FORMERR);
    CU_ASSERT_EQUAL(b.lookups, 7);
    CU_ASSERT_EQUAL(b.refused, 1);
    bed_close(&b);
}

static void test_bound(void)
{
    struct bed b;
    struct packet k;
    bed_open(&b);
    b.hold = true;
    struct sockaddr_in to = b.udp4_at;
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    query(&k, "ok.example", DNS_TYPE_A);
    for (unsigned i = 0; i < DNS_SERVER_QUERIES; i++) {
        CU_ASSERT(sendto(b.udp4, k.p, k.n, 0, (struct sockaddr *)&to, sizeof to) == (ssize_t)k.n);
        event_base_loop(b.base, EVLOOP_NONBLOCK);
    }
    CU_ASSERT(!wait_readable(&b, b.udp4, 50));
    CU_ASSERT_EQUAL_FATAL(b.n_held, DNS_SERVER_QUERIES);
    CU_ASSERT_EQUAL(dns_server_waiting(b.server), DNS_SERVER_QUERIES);
    CU_ASSERT_EQUAL(ask(&b, "ok.example", DNS_TYPE_A), DNS_SERVFAIL);
    dns_query_nxdomain(b.held[--b.n_held]);
    b.hold = false;
    unsigned char in[600];
    CU_ASSERT(wait_readable(&b, b.udp4, 1000));
    CU_ASSERT(recv(b.udp4, in, sizeof in, 0) > 0 && (in[3] & 15) == DNS_NXDOMAIN);
    CU_ASSERT_EQUAL(ask(&b, "ok.example", DNS_TYPE_A), 100);
    bed_close(&b); /* with DNS_SERVER_QUERIES - 1 unanswered */
}

static int stream_open(struct bed *b)
{
    struct sockaddr_in to = b->tcp_at;
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CU_ASSERT_FATAL(fd >= 0 && connect(fd, (struct sockaddr *)&to, sizeof to) == 0);
    return fd;
}

static ssize_t stream_read(struct bed *b, int fd, unsigned char *to, size_t n)
{
    size_t got = 0;
    while (got < n && wait_readable(b, fd, 2000)) {
        ssize_t r = recv(fd, to + got, n - got, 0);
        if (r <= 0)
            return r < 0 ? -1 : (ssize_t)got;
        got += (size_t)r;
    }
    return (ssize_t)got;
}

static void framed(struct packet *f, const char *name)
{
    struct packet k;
    query(&k, name, DNS_TYPE_A);
    put16(f, (unsigned)k.n);
    put(f, k.p, k.n);
}

static void test_tcp(void)
{
    struct bed b;
    struct packet f = {.n = 0};
    unsigned char in[600];
    bed_open(&b);
    int fd = stream_open(&b);
    framed(&f, "ok1.example");
    framed(&f, "no.example");
    framed(&f, "ok22.example"); /* three in one go, and then byte by byte */
    size_t expected = f.n + 2 * 16;
    CU_ASSERT(send(fd, f.p, f.n, 0) == (ssize_t)f.n);
    CU_ASSERT_EQUAL(stream_read(&b, fd, in, expected), (ssize_t)expected);
    CU_ASSERT_EQUAL(b.lookups, 3);
    for (size_t i = 0; i < f.n; i++) {
        CU_ASSERT(send(fd, f.p + i, 1, 0) == 1);
        event_base_loop(b.base, EVLOOP_NONBLOCK);
    }
    CU_ASSERT_EQUAL(stream_read(&b, fd, in, expected), (ssize_t)expected);
    CU_ASSERT_EQUAL(b.lookups, 6);
    CU_ASSERT_STRING_EQUAL(b.last, "ok22.example");
    close(fd);
    bed_close(&b);
}

/* One query at a time: the next is not looked at before the first has its answer; and a client that
 * goes away while it waits leaves a query that may still be answered. */
static void test_tcp_waits(void)
{
    struct bed b;
    struct packet f = {.n = 0};
    unsigned char in[600];
    bed_open(&b);
    b.hold = true;
    int fd = stream_open(&b);
    framed(&f, "ok1.example");
    size_t one = f.n;
    framed(&f, "ok2.example");
    CU_ASSERT(send(fd, f.p, f.n, 0) == (ssize_t)f.n);
    CU_ASSERT(!wait_readable(&b, fd, 60));
    CU_ASSERT_EQUAL_FATAL(b.n_held, 1);
    dns_query_nxdomain(b.held[--b.n_held]);
    CU_ASSERT_EQUAL(stream_read(&b, fd, in, one), (ssize_t)one);
    CU_ASSERT(!wait_readable(&b, fd, 60));
    CU_ASSERT_EQUAL_FATAL(b.n_held, 1);
    close(fd);
    event_base_loop(b.base, EVLOOP_NONBLOCK);
    dns_query_nxdomain(b.held[--b.n_held]);
    for (int i = 0; i < 3; i++)
        event_base_loop(b.base, EVLOOP_NONBLOCK);
    bed_close(&b);
}

static void test_tcp_bad(void)
{
    struct bed b;
    unsigned char in[16];
    bed_open(&b);
    static const unsigned char bad[][16] = {
        {0, 0},                                         /* length nought */
        {0xff, 0xff},                                   /* too long */
        {0, 12, 1, 2, 0x81, 0, 0, 1, 0, 0, 0, 0, 0, 0}, /* an answer, not a query */
    };
    static const size_t n[] = {2, 2, 14};
    for (size_t i = 0; i < ARRAY_LEN(n); i++) {
        int fd = stream_open(&b);
        CU_ASSERT(send(fd, bad[i], n[i], 0) == (ssize_t)n[i]);
        CU_ASSERT(wait_readable(&b, fd, 2000));
        CU_ASSERT(recv(fd, in, sizeof in, 0) == 0); /* closed, nothing said */
        close(fd);
    }
    bed_close(&b);
}

static void test_tcp_bound(void)
{
    struct bed b;
    unsigned char in[4];
    int fds[DNS_SERVER_CONNECTIONS + 1];
    bed_open(&b);
    for (unsigned i = 0; i <= DNS_SERVER_CONNECTIONS; i++)
        fds[i] = stream_open(&b);
    CU_ASSERT(wait_readable(&b, fds[DNS_SERVER_CONNECTIONS], 2000));
    CU_ASSERT(recv(fds[DNS_SERVER_CONNECTIONS], in, sizeof in, 0) == 0);
    CU_ASSERT(!wait_readable(&b, fds[0], 20));
    for (unsigned i = 0; i <= DNS_SERVER_CONNECTIONS; i++)
        close(fds[i]);
    for (int i = 0; i < 3; i++)
        event_base_loop(b.base, EVLOOP_NONBLOCK);
    int fd = stream_open(&b); /* room again */
    CU_ASSERT(!wait_readable(&b, fd, 20));
    close(fd);
    bed_close(&b);
}

void suite_dns_server(void)
{
    CU_pSuite s = CU_add_suite("dns_server", NULL, NULL);
    CU_add_test(s, "answers leave from where the query was sent", test_udp);
    CU_add_test(s, "codes", test_codes);
    CU_add_test(s, "queries in flight are bounded", test_bound);
    CU_add_test(s, "streams, pipelined and in single bytes", test_tcp);
    CU_add_test(s, "one query at a time on a stream", test_tcp_waits);
    CU_add_test(s, "streams that say nothing useful", test_tcp_bad);
    CU_add_test(s, "streams are bounded", test_tcp_bound);
}

void tap_suites(void)
{
    suite_dns_server();
}
