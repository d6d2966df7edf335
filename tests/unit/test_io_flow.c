/* Streams under pressure: single bytes, half closes, truncation, full buffers, deadlines, and
 * owners that leave in the middle of a callback. The same tests run plain, over TLS, and over TLS
 * in TLS. */
#include "io.h"
#include "tap_main.h"

#include <errno.h>
#include <event2/event.h>
#include <netinet/in.h>
#include <openssl/evp.h>
#include <openssl/x509.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static struct event_base *base;
static SSL_CTX *server_ctx, *client_ctx;
static bool tls; /* of the suite that runs */
static unsigned layers;

static int make_certificate(void)
{
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *x = X509_new();
    X509_NAME *name = X509_get_subject_name(x);
    X509_set_version(x, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(x), 1);
    X509_gmtime_adj(X509_getm_notBefore(x), -60);
    X509_gmtime_adj(X509_getm_notAfter(x), 3600);
    X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const unsigned char *)"t", -1, -1, 0);
    X509_set_issuer_name(x, name);
    X509_set_pubkey(x, key);
    X509_sign(x, key, EVP_sha256());
    int ok = SSL_CTX_use_certificate(server_ctx, x) == 1 &&
             SSL_CTX_use_PrivateKey(server_ctx, key) == 1 &&
             X509_STORE_add_cert(SSL_CTX_get_cert_store(client_ctx), x) == 1;
    X509_free(x);
    EVP_PKEY_free(key);
    return ok ? 0 : -1;
}

static int setup_plain(void)
{
    tls = false;
    layers = 0;
    base = event_base_new();
    server_ctx = io_tls_server_ctx(false);
    client_ctx = io_tls_client_ctx();
    return base && server_ctx && client_ctx ? make_certificate() : -1;
}

static int setup_tls(void)
{
    int r = setup_plain();
    tls = true;
    layers = 1;
    return r;
}

static int setup_twice(void)
{
    int r = setup_tls();
    layers = 2;
    return r;
}

static int teardown(void)
{
    SSL_CTX_free(server_ctx);
    SSL_CTX_free(client_ctx);
    event_base_free(base);
    return 0;
}

struct end {
    struct io *io;
    unsigned connected, readable, drained, eof, error, timeout;
    bool echo, hold; /* hold: leave the input where it is */
    int close_on;    /* an event, or -1 */
    size_t got;
    uint64_t sum;
};

static void on_io(struct io *io, enum io_event ev, void *arg)
{
    struct end *e = arg;
    unsigned *const counts[] = {&e->connected, &e->readable, &e->drained,
                                &e->eof,       &e->error,    &e->timeout};
    ++*counts[ev];
    if (ev == IO_READABLE && !e->hold) {
        struct buf *in = io_in(io);
        if (e->echo)
            CU_ASSERT_EQUAL(io_write(io, buf_data(in), buf_len(in)), 0);
        for (size_t i = 0; i < buf_len(in); i++)
            e->sum = e->sum * 31 + buf_data(in)[i];
        e->got += buf_len(in);
        buf_drain(in, buf_len(in));
        io_consumed(io);
    }
    if (e->close_on == (int)ev) {
        e->io = NULL;
        io_close(io);
    }
}

static void turn(unsigned n)
{
    while (n-- > 0)
        event_base_loop(base, EVLOOP_NONBLOCK);
}

static void on_moment(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
    *(bool *)arg = true;
}

/* Nothing runs by itself: the loop sleeps through a moment. */
static bool rests(void)
{
    struct timeval moment = {0, 30000};
    bool over = false;
    unsigned rounds = 0;
    struct event *ev = event_new(base, -1, 0, on_moment, &over);
    turn(5);
    event_add(ev, &moment);
    for (; !over && rounds < 20; rounds++)
        event_base_loop(base, EVLOOP_ONCE);
    event_free(ev);
    return rounds <= 3;
}

static void open_end(struct end *e, int fd, size_t in, size_t out)
{
    memset(e, 0, sizeof *e);
    e->close_on = -1;
    e->io = io_new(base, fd, in, out, true);
    CU_ASSERT_PTR_NOT_NULL_FATAL(e->io);
    io_callback(e->io, on_io, e);
}

/* Two ends, connected; over TLS when the suite says so. */
static void open_pair(struct end *a, struct end *b, size_t in, size_t out)
{
    int fds[2], small = 4608;
    CU_ASSERT_EQUAL_FATAL(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds),
                          0);
    for (int i = 0; i < 2; i++)
        setsockopt(fds[i], SOL_SOCKET, SO_SNDBUF, &small, sizeof small);
    open_end(a, fds[0], in, out);
    open_end(b, fds[1], in, out);
    for (unsigned layer = 1; layer <= layers; layer++) {
        io_tls_accept(a->io, SSL_new(server_ctx));
        io_tls_connect(b->io, SSL_new(client_ctx));
        turn(50);
        CU_ASSERT(a->connected == layer && b->connected == layer);
    }
}

static void close_pair(struct end *a, struct end *b)
{
    io_close(a->io);
    io_close(b->io);
    turn(5);
}

static void test_bytes(void)
{
    struct end a, b;
    open_pair(&a, &b, 4096, 4096);
    a.echo = true;
    for (unsigned i = 0; i < 500; i++) {
        unsigned char c = (unsigned char)i;
        CU_ASSERT_EQUAL(io_write(b.io, &c, 1), 0);
        turn(4);
    }
    turn(10);
    CU_ASSERT(a.got == 500 && b.got == 500 && a.sum == b.sum);
    close_pair(&a, &b);
}

/* One side ends, the other still answers: both ends are clean. */
static void test_half_close(void)
{
    struct end a, b;
    open_pair(&a, &b, 4096, 4096);
    CU_ASSERT_EQUAL(io_write(b.io, "last", 4), 0);
    io_end(b.io);
    turn(20);
    CU_ASSERT(a.got == 4 && a.eof == 1 && a.error == 0 && io_eof(a.io));
    CU_ASSERT_EQUAL(io_write(a.io, "answer", 6), 0);
    turn(20);
    CU_ASSERT(b.got == 6 && b.eof == 0);
    io_close_flushed(a.io);
    a.io = NULL;
    turn(20);
    CU_ASSERT(b.eof == 1 && b.error == 0);
    close_pair(&a, &b);
}

/* The socket ends without a close_notify: over TLS that is an error, never an end. */
static void test_truncated(void)
{
    struct end a, b;
    open_pair(&a, &b, 4096, 4096);
    CU_ASSERT_EQUAL(io_write(b.io, "part", 4), 0);
    turn(20);
    shutdown(io_fd(b.io), SHUT_WR);
    turn(20);
    CU_ASSERT_EQUAL(a.got, 4);
    CU_ASSERT_EQUAL(a.eof, !tls);
    CU_ASSERT_EQUAL(a.error, tls);
    if (tls)
        CU_ASSERT(io_why(a.io)[0] != 0);
    close_pair(&a, &b);
}

/* io_break: what the peer has is not whole, and it can tell. */
static void test_break(void)
{
    struct end a, b;
    open_pair(&a, &b, 4096, 4096);
    CU_ASSERT_EQUAL(io_write(b.io, "part", 4), 0);
    turn(20);
    io_break(b.io);
    io_close_flushed(b.io);
    b.io = NULL;
    turn(20);
    CU_ASSERT_EQUAL(a.got, 4);
    if (tls) /* a local socket knows no reset; http1_server's tests see it on TCP */
        CU_ASSERT(a.eof == 0 && a.error == 1);
    close_pair(&a, &b);
}

/* 1 MiB through buffers of 4 KiB and 1.5 KiB: nothing stalls, every pause is told of its end. */
static void bulk(size_t in, size_t out)
{
    static unsigned char data[1 << 20];
    struct end a, b;
    uint64_t sum = 0;
    size_t sent = 0;
    for (size_t i = 0; i < sizeof data; i++) {
        data[i] = (unsigned char)(i * 7 + i / 251);
        sum = sum * 31 + data[i];
    }
    open_pair(&a, &b, in, out);
    for (unsigned quiet = 0; quiet < 100; quiet++) {
        size_t room = io_out_room(b.io), before = sent + a.got;
        size_t n = sizeof data - sent < room ? sizeof data - sent : room;
        if (n > 0)
            CU_ASSERT_EQUAL(io_write(b.io, data + sent, n), 0);
        sent += n;
        turn(1);
        if (sent + a.got != before)
            quiet = 0;
    }
    CU_ASSERT_EQUAL(a.got, sizeof data);
    CU_ASSERT_EQUAL(a.sum, sum);
    CU_ASSERT(b.drained > 0);
    close_pair(&a, &b);
}

static void test_bulk(void)
{
    bulk(4096, 4096);
    bulk(1500, 65536);
    bulk(65536, 1500);
}

/* A reader that takes nothing: the input keeps to its maximum, the loop rests, and all of it comes
 * once it is taken. */
static void test_full(void)
{
    static unsigned char data[40000];
    struct end a, b;
    open_pair(&a, &b, 1000, 65536);
    a.hold = true;
    CU_ASSERT_EQUAL(io_write(b.io, data, sizeof data), 0);
    turn(200);
    CU_ASSERT_EQUAL(buf_len(io_in(a.io)), 1000);
    unsigned seen = a.readable;
    CU_ASSERT(rests());
    CU_ASSERT_EQUAL(a.readable, seen);
    a.hold = false;
    buf_clear(io_in(a.io));
    a.got = 1000;
    io_consumed(a.io);
    turn(500);
    CU_ASSERT_EQUAL(a.got, sizeof data);
    CU_ASSERT_EQUAL(io_out_len(b.io), 0);
    close_pair(&a, &b);
}

static void test_pause(void)
{
    struct end a, b;
    open_pair(&a, &b, 4096, 65536);
    io_pause(a.io);
    CU_ASSERT_EQUAL(io_write(b.io, "held", 4), 0);
    turn(50);
    CU_ASSERT_EQUAL(a.got, 0);
    io_resume(a.io);
    turn(50);
    CU_ASSERT_EQUAL(a.got, 4);
    close_pair(&a, &b);
}

/* Output: never over its maximum; told of room once for every time it was at half or more, at
 * exactly half too. */
static void test_output(void)
{
    static unsigned char data[65536];
    struct end a, b;
    for (int extra = -1; extra <= 1; extra++) {
        size_t n = (size_t)(32768 + extra);
        open_pair(&a, &b, 65536, 65536);
        io_pause(a.io);
        CU_ASSERT_EQUAL(io_write(b.io, data, n), 0);
        CU_ASSERT_EQUAL(io_write(b.io, data, 65536 - n + 1), -1);
        CU_ASSERT_EQUAL(io_out_len(b.io), n);
        turn(50);
        CU_ASSERT_EQUAL(b.drained, 0);
        io_resume(a.io);
        turn(200);
        CU_ASSERT_EQUAL(a.got, n);
        CU_ASSERT_EQUAL(b.drained, extra >= 0);
        close_pair(&a, &b);
    }
}

static void test_deadline(void)
{
    struct end a, b;
    struct timeval late = {1, 300000};
    open_pair(&a, &b, 4096, 4096);
    io_deadline(a.io, 1);
    io_deadline(b.io, 1);
    io_deadline(b.io, 0); /* taken off */
    event_base_loopexit(base, &late);
    event_base_dispatch(base);
    CU_ASSERT(a.timeout == 1 && b.timeout == 0 && a.error == 0);
    a.close_on = IO_TIMEOUT;
    io_deadline(a.io, 1);
    event_base_loopexit(base, &late);
    event_base_dispatch(base);
    CU_ASSERT(a.timeout == 2 && a.io == NULL);
    close_pair(&a, &b);
}

/* io_close from inside each kind of callback; the sanitizer watches. */
static void test_close_inside(void)
{
    static unsigned char data[60000];
    static const int events[] = {IO_READABLE, IO_DRAINED, IO_EOF, IO_ERROR};
    for (size_t i = 0; i < ARRAY_LEN(events); i++) {
        struct end a, b;
        open_pair(&a, &b, 65536, 65536);
        a.close_on = events[i];
        CU_ASSERT_EQUAL(io_write(a.io, data, sizeof data), 0);
        if (events[i] == IO_READABLE)
            CU_ASSERT_EQUAL(io_write(b.io, "x", 1), 0);
        if (events[i] == IO_EOF)
            io_end(b.io);
        if (events[i] == IO_ERROR) {
            shutdown(io_fd(b.io), SHUT_RDWR);
            shutdown(io_fd(a.io), SHUT_RDWR);
        }
        turn(300);
        CU_ASSERT_PTR_NULL(a.io);
        CU_ASSERT(a.error <= 1 && a.eof <= 1);
        close_pair(&a, &b);
    }
}

/* Output that is queued still leaves after io_close_flushed; a peer that never reads it does not
 * keep the stream for ever. */
static void test_flushed(void)
{
    static unsigned char data[50000];
    struct end a, b;
    open_pair(&a, &b, 4096, 65536);
    CU_ASSERT_EQUAL(io_write(b.io, data, sizeof data), 0);
    io_close_flushed(b.io);
    b.io = NULL;
    turn(300);
    CU_ASSERT(a.got == sizeof data && a.eof == 1 && a.error == 0);
    close_pair(&a, &b);
    open_pair(&a, &b, 4096, 65536);
    CU_ASSERT_EQUAL(io_write(b.io, data, sizeof data), 0);
    io_close_flushed(b.io);
    io_close(a.io); /* gone: the rest cannot be sent */
    turn(50);
    CU_ASSERT_EQUAL(event_base_get_num_events(base, EVENT_BASE_COUNT_ADDED), 0);
}

static bool nothing_waits(void)
{
    return event_base_get_num_events(base, EVENT_BASE_COUNT_ADDED) == 0;
}

/* Last words arrive although what the peer sends meanwhile is read by nobody; who closes there and
 * then resets the connection (TCP and local sockets alike), and the words with it. */
static void test_lingering(void)
{
    struct end a, b;
    open_pair(&a, &b, 4096, 4096);
    io_pause(b.io);
    CU_ASSERT_EQUAL(io_write(a.io, "unread", 6), 0);
    turn(5);
    CU_ASSERT_EQUAL(io_write(b.io, "bye", 3), 0);
    io_close_lingering(b.io);
    b.io = NULL;
    turn(20);
    CU_ASSERT(a.got == 3 && a.eof == 1 && a.error == 0);
    CU_ASSERT_EQUAL(io_write(a.io, "more", 4), 0);
    turn(20);
    CU_ASSERT(a.error == 0 && !nothing_waits());
    close_pair(&a, &b);
    turn(20);
    CU_ASSERT(nothing_waits());
}

/* Who has ended already, or is to see a reset, is not waited for. */
static void test_no_lingering(void)
{
    struct end a, b;
    for (unsigned i = 0; i < 2; i++) {
        open_pair(&a, &b, 4096, 4096);
        if (i == 0)
            io_end(a.io);
        turn(20);
        if (i == 1)
            io_break(b.io);
        io_close_lingering(b.io);
        b.io = NULL;
        io_pause(a.io);
        turn(5);
        CU_ASSERT(nothing_waits());
        io_close(a.io);
        turn(5);
    }
}

/* A TCP connection whose peer, which is returned, has not taken all of the last output. */
static int untaken(void)
{
    static char much[1 << 20];
    const int small = 4096;
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof at;
    int l = socket(AF_INET, SOCK_STREAM, 0), peer = socket(AF_INET, SOCK_STREAM, 0);
    setsockopt(peer, SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
    CU_ASSERT_EQUAL_FATAL(bind(l, (struct sockaddr *)&at, n), 0);
    CU_ASSERT_EQUAL_FATAL(listen(l, 1), 0);
    CU_ASSERT_EQUAL_FATAL(getsockname(l, (struct sockaddr *)&at, &n), 0);
    CU_ASSERT_EQUAL_FATAL(connect(peer, (struct sockaddr *)&at, n), 0);
    int fd = accept4(l, NULL, NULL, SOCK_NONBLOCK);
    close(l);
    setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &small, sizeof small);
    struct io *io = io_new(base, fd, 4096, sizeof much, true);
    io_owner(io, SLICE("slow")); /* which has a place to stay */
    CU_ASSERT_EQUAL(io_write(io, much, sizeof much), 0);
    io_close_flushed(io);
    return peer;
}

static bool ends_by_reset(int peer)
{
    char much[4096];
    ssize_t n;
    while ((n = read(peer, much, sizeof much)) > 0)
        continue;
    return n < 0 && errno == ECONNRESET;
}

/* No peer keeps a stream by going on, or by saying nothing for ever; and no more than 256 wait.
 * Whoever does not take the last output in that time sees that it was not all. */
static void test_lingering_ends(void)
{
    enum { ALL = 260, AT_ONCE = 256 };
    static char much[65536];
    int fds[ALL][2], other[2];
    unsigned ended = 0;
    if (tls)
        return; /* the same */
    CU_ASSERT_EQUAL_FATAL(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds[0]), 0);
    io_close_lingering(io_new(base, fds[0][1], 4096, 4096, true));
    for (unsigned i = 0; i < 200 && send(fds[0][0], much, sizeof much, MSG_NOSIGNAL) >= 0; i++)
        turn(10);
    CU_ASSERT(nothing_waits());
    close(fds[0][0]);
    for (unsigned i = 0; i < ALL; i++) {
        CU_ASSERT_EQUAL_FATAL(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds[i]), 0);
        io_close_lingering(io_new(base, fds[i][1], 4096, 4096, true));
    }
    turn(5);
    for (unsigned i = 0; i < ALL; i++)
        ended += send(fds[i][0], much, 1, MSG_NOSIGNAL) < 0;
    CU_ASSERT_EQUAL(ended, ALL - AT_ONCE);
    /* who has none yet finds a place, however many others have */
    CU_ASSERT_EQUAL_FATAL(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, other), 0);
    struct io *io = io_new(base, other[1], 4096, 4096, true);
    io_owner(io, SLICE("other"));
    io_close_lingering(io);
    turn(5);
    CU_ASSERT_EQUAL(send(other[0], much, 1, MSG_NOSIGNAL), 1);
    int peer = untaken();
    event_base_loop(base, 0); /* until nothing waits: each has its time */
    CU_ASSERT(nothing_waits());
    CU_ASSERT(ends_by_reset(peer));
    close(peer);
    for (unsigned i = 0; i < ALL; i++) {
        CU_ASSERT(send(fds[i][0], much, 1, MSG_NOSIGNAL) < 0);
        close(fds[i][0]);
    }
    close(other[0]);
}

static void on_closed(void *n)
{
    ++*(unsigned *)n;
}

/* Whoever bounds streams counts one until its descriptor is closed: also when its owner has let go
 * of it, while last bytes go out or the peer's end is waited for. */
static void test_counted(void)
{
    struct end a, b;
    unsigned closed = 0;
    size_t n = 0;
    io_when_closed(NULL, on_closed, &closed);
    CU_ASSERT_EQUAL(closed, 1);
    for (unsigned i = 0; i < 3; i++) {
        static char much[40000];
        open_pair(&a, &b, 65536, 65536);
        io_pause(a.io);
        io_counted(b.io, &n);
        CU_ASSERT_EQUAL(io_write(b.io, much, i == 2 ? 1 : sizeof much), 0);
        turn(5);
        (i == 0 ? io_close : i == 1 ? io_close_flushed : io_close_lingering)(b.io);
        b.io = NULL;
        turn(20);
        CU_ASSERT_EQUAL(n, i == 0 ? 0 : 1);
        io_close(a.io);
        turn(20);
        CU_ASSERT_EQUAL(n, 0);
    }
}

/* One whose last output its peer does not take, and then that peer has closed, or nothing more is
 * sent by it. Made of more than a local socket takes. */
static struct io *unsaid(int fds[2], struct slice owner)
{
    static char much[1 << 19];
    CU_ASSERT_EQUAL_FATAL(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
    struct io *io = io_new(base, fds[1], 4096, sizeof much, true);
    io_owner(io, owner);
    CU_ASSERT_EQUAL(io_write(io, much, sizeof much), 0);
    return io;
}

/* What came, and how it ended: 0 an end, -1 a reset, 1 none yet. */
static int ended(int fd)
{
    static char scrap[65536];
    ssize_t n;
    while ((n = recv(fd, scrap, sizeof scrap, MSG_DONTWAIT)) > 0)
        ;
    return n == 0 ? 0 : errno == EAGAIN ? 1 : -1;
}

/* Last output that is not taken keeps 256 streams of an owner, and a place is left for another's;
 * what somebody counts needs none. The rest is cut, and its reader sees that. */
static void test_unsaid(void)
{
    enum { ALL = 260, AT_ONCE = 256 };
    int fds[ALL][2], other[2], counted[2];
    unsigned cut = 0, closed = 0;
    if (tls)
        return; /* the same */
    for (unsigned i = 0; i < ALL; i++)
        io_close_flushed(unsaid(fds[i], SLICE("one")));
    turn(5);
    struct io *io = unsaid(counted, SLICE("one"));
    io_when_closed(io, on_closed, &closed);
    io_close_flushed(io);
    io_close_flushed(unsaid(other, SLICE("other")));
    turn(5);
    for (unsigned i = 0; i < ALL; i++) {
        struct pollfd p = {.fd = fds[i][0]};
        cut += poll(&p, 1, 0) == 1 && (p.revents & POLLHUP);
    }
    CU_ASSERT_EQUAL(cut, ALL - AT_ONCE);
    CU_ASSERT(ended(counted[0]) == 1 && closed == 0);
    CU_ASSERT_EQUAL(ended(other[0]), 1);
    for (unsigned i = 0; i < ALL; i++)
        close(fds[i][0]);
    close(other[0]);
    close(counted[0]);
    turn(20);
    CU_ASSERT(closed == 1 && nothing_waits());
}

/* Two that count as one, whichever goes first, are one until the second is closed. */
static void test_closed_with(void)
{
    for (unsigned i = 0; i < 2; i++) {
        int near[2], far[2];
        unsigned closed = 0;
        struct io *a = unsaid(near, SLICE("")), *b = unsaid(far, SLICE(""));
        io_closed_with(a, b);
        io_when_closed(a, on_closed, &closed);
        (i == 0 ? io_close : io_close_flushed)(a);
        (i == 0 ? io_close_flushed : io_close)(b);
        turn(5);
        CU_ASSERT_EQUAL(closed, 0);
        close(near[0]);
        close(far[0]);
        turn(20);
        CU_ASSERT(closed == 1 && nothing_waits());
    }
}

/* ---- handshakes ---- */

/* The socket is full when the handshake wants to write: it goes on when there is room. */
static void test_blocked_handshake(void)
{
    struct end a, b;
    int fds[2];
    static char junk[4096];
    size_t filled = 0;
    ssize_t n;
    CU_ASSERT_EQUAL_FATAL(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds),
                          0);
    while ((n = send(fds[0], junk, sizeof junk, MSG_DONTWAIT)) > 0)
        filled += (size_t)n;
    while ((n = send(fds[0], junk, 1, MSG_DONTWAIT)) > 0)
        filled += (size_t)n;
    open_end(&a, fds[0], 4096, 4096);
    io_tls_accept(a.io, SSL_new(server_ctx));
    open_end(&b, dup(fds[1]), 4096, 4096);
    io_pause(b.io); /* the junk is not TLS: it is taken off below */
    BIO *hello = BIO_new(BIO_s_mem());
    SSL *c = SSL_new(client_ctx);
    SSL_set_bio(c, BIO_new(BIO_s_mem()), hello);
    SSL_set_connect_state(c);
    SSL_do_handshake(c);
    int k = BIO_read(hello, junk, sizeof junk);
    CU_ASSERT_EQUAL(send(fds[1], junk, (size_t)k, 0), k);
    turn(20);
    CU_ASSERT(a.connected == 0 && a.error == 0);
    while (filled > 0 && (n = recv(fds[1], junk, filled < 4096 ? filled : 4096, 0)) > 0)
        filled -= (size_t)n;
    turn(20);
    n = recv(fds[1], junk, sizeof junk, MSG_DONTWAIT);
    CU_ASSERT(n > 100 && junk[0] == 0x16); /* the server's flight came */
    SSL_free(c);
    close(fds[1]);
    close_pair(&a, &b);
}

static bool minted;

static int hello_waits(SSL *ssl UNUSED, int *alert UNUSED, void *arg UNUSED)
{
    return minted ? SSL_CLIENT_HELLO_SUCCESS : SSL_CLIENT_HELLO_RETRY;
}

/* A suspended handshake costs nothing, can be closed, and goes on when told. */
static void test_suspended(void)
{
    for (int go = 0; go < 3; go++) {
        struct end a, b;
        int fds[2];
        minted = false;
        SSL_CTX_set_client_hello_cb(server_ctx, hello_waits, NULL);
        CU_ASSERT_EQUAL_FATAL(
            socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds), 0);
        open_end(&a, fds[0], 4096, 4096);
        open_end(&b, fds[1], 4096, 4096);
        io_tls_accept(a.io, SSL_new(server_ctx));
        io_tls_connect(b.io, SSL_new(client_ctx));
        turn(50);
        CU_ASSERT(a.connected == 0 && a.error == 0);
        CU_ASSERT(rests());
        io_tls_continue(b.io); /* not suspended: nothing */
        minted = go > 0;
        if (go == 1) {
            io_tls_continue(a.io);
            io_tls_continue(a.io);
            turn(50);
            CU_ASSERT(a.connected == 1 && b.connected == 1);
        } else if (go == 2) { /* the client leaves while it waits */
            io_close(b.io);
            b.io = NULL;
            turn(10);
            io_tls_continue(a.io);
            turn(50);
            CU_ASSERT(a.connected == 0 && a.error == 1);
        }
        close_pair(&a, &b);
    }
    SSL_CTX_set_client_hello_cb(server_ctx, NULL, NULL);
}

/* One layer more than any client needs. */
static void test_third_layer(void)
{
    struct end a, b;
    open_pair(&a, &b, 4096, 4096);
    CU_ASSERT_EQUAL(layers, 2);
    io_tls_accept(a.io, SSL_new(server_ctx));
    turn(20);
    CU_ASSERT(a.connected == 2 && a.error == 1);
    close_pair(&a, &b);
}

/* The inner handshake's first bytes come with the outer one's last, are read before anybody knew
 * that TLS would follow, and wait for a certificate: nothing is lost. */
static void test_layer_from_input(void)
{
    struct end a, b;
    int fds[2];
    CU_ASSERT_EQUAL_FATAL(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds),
                          0);
    open_end(&a, fds[0], 65536, 65536);
    open_end(&b, fds[1], 65536, 65536);
    a.hold = true;
    io_tls_accept(a.io, SSL_new(server_ctx));
    io_tls_connect(b.io, SSL_new(client_ctx));
    turn(50);
    io_tls_connect(b.io, SSL_new(client_ctx));
    turn(50);
    CU_ASSERT(a.readable > 0 && buf_len(io_in(a.io)) > 100 && buf_data(io_in(a.io))[0] == 0x16);
    minted = false;
    SSL_CTX_set_client_hello_cb(server_ctx, hello_waits, NULL);
    a.hold = false;
    a.echo = true;
    io_tls_accept(a.io, SSL_new(server_ctx));
    turn(50);
    CU_ASSERT(a.connected == 1 && rests());
    minted = true;
    io_tls_continue(a.io);
    turn(50);
    CU_ASSERT(a.connected == 2 && b.connected == 2);
    SSL_CTX_set_client_hello_cb(server_ctx, NULL, NULL);
    CU_ASSERT_EQUAL(io_write(b.io, "there and back", 14), 0);
    turn(50);
    CU_ASSERT(a.got == 14 && b.got == 14 && a.sum == b.sum);
    close_pair(&a, &b);
}

static void add_common(CU_pSuite s)
{
    CU_add_test(s, "single bytes, echoed", test_bytes);
    CU_add_test(s, "half closed", test_half_close);
    CU_add_test(s, "cut short", test_truncated);
    CU_add_test(s, "broken on purpose", test_break);
    CU_add_test(s, "1 MiB through small buffers", test_bulk);
    CU_add_test(s, "a full input rests", test_full);
    CU_add_test(s, "pause and resume", test_pause);
    CU_add_test(s, "output: maximum and low mark", test_output);
    CU_add_test(s, "deadline", test_deadline);
    CU_add_test(s, "closed inside callbacks", test_close_inside);
    CU_add_test(s, "closed after flushing", test_flushed);
    CU_add_test(s, "closed after the peer's end", test_lingering);
    CU_add_test(s, "closed at once where nobody is waited for", test_no_lingering);
    CU_add_test(s, "no peer is waited for without bounds", test_lingering_ends);
    CU_add_test(s, "it counts until it is closed", test_counted);
    CU_add_test(s, "last output that is not taken keeps so many", test_unsaid);
    CU_add_test(s, "two that count as one", test_closed_with);
}

void tap_suites(void)
{
    alarm(60); /* a stream that never rests keeps the loop, and so this test, for ever */
    add_common(CU_add_suite("io_flow", setup_plain, teardown));
    CU_pSuite s = CU_add_suite("io_flow_tls", setup_tls, teardown);
    add_common(s);
    CU_add_test(s, "a handshake that cannot write", test_blocked_handshake);
    CU_add_test(s, "a suspended handshake", test_suspended);
    s = CU_add_suite("io_flow_tls_in_tls", setup_twice, teardown);
    add_common(s);
    CU_add_test(s, "a third layer is refused", test_third_layer);
    CU_add_test(s, "a layer that begins in the input", test_layer_from_input);
}
