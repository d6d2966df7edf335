/* Streams: plain and TLS over a socket pair, both ends in one process. The client is OpenSSL on
 * memory, so that the test chooses which of its bytes arrive together. */
#include "tap_main.h"

#include "io.h"

#include <event2/event.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { START_WAIT = 2 /* seconds until a test is given up */ };

static struct event_base *base;
static SSL_CTX *server_ctx;

static X509 *self_signed(EVP_PKEY *key)
{
    X509 *x = X509_new();
    X509_NAME *name = X509_get_subject_name(x);
    X509_set_version(x, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(x), 1);
    X509_gmtime_adj(X509_getm_notBefore(x), 0);
    X509_gmtime_adj(X509_getm_notAfter(x), 3600);
    X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const unsigned char *)"t", -1, -1, 0);
    X509_set_issuer_name(x, name);
    X509_set_pubkey(x, key);
    X509_sign(x, key, EVP_sha256());
    return x;
}

static int setup(void)
{
    EVP_PKEY *key = EVP_EC_gen("P-256");
    base = event_base_new();
    server_ctx = io_tls_server_ctx(false);
    if (base == NULL || server_ctx == NULL || key == NULL)
        return -1;
    X509 *cert = self_signed(key);
    int ok = SSL_CTX_use_certificate(server_ctx, cert) == 1 &&
             SSL_CTX_use_PrivateKey(server_ctx, key) == 1;
    X509_free(cert);
    EVP_PKEY_free(key);
    return ok ? 0 : -1;
}

static int teardown(void)
{
    SSL_CTX_free(server_ctx);
    event_base_free(base);
    return 0;
}

/* ---- the client ---- */

struct client {
    int fd;
    SSL_CTX *ctx;
    SSL *ssl;
    const char *request; /* sent in one segment with the end of the handshake */
    bool asked;
};

static void client_open(struct client *c, int fd, const char *request, int version)
{
    *c = (struct client){.fd = fd, .request = request};
    c->ctx = SSL_CTX_new(TLS_client_method());
    SSL_CTX_set_min_proto_version(c->ctx, version);
    SSL_CTX_set_max_proto_version(c->ctx, version);
    c->ssl = SSL_new(c->ctx);
    SSL_set_bio(c->ssl, BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
    SSL_set_connect_state(c->ssl);
}

static void client_close(struct client *c)
{
    SSL_free(c->ssl);
    SSL_CTX_free(c->ctx);
    close(c->fd);
}

/* Takes what came, goes on, and sends all that it has to say at once. */
static void client_step(struct client *c)
{
    char data[16384];
    ssize_t n;
    while ((n = recv(c->fd, data, sizeof data, MSG_DONTWAIT)) > 0)
        BIO_write(SSL_get_rbio(c->ssl), data, (int)n);
    if (SSL_do_handshake(c->ssl) == 1 && !c->asked)
        c->asked = SSL_write(c->ssl, c->request, (int)strlen(c->request)) > 0;
    int m = BIO_read(SSL_get_wbio(c->ssl), data, sizeof data);
    if (m > 0)
        CU_ASSERT_EQUAL(send(c->fd, data, (size_t)m, 0), m);
}

/* ---- the server's side ---- */

struct seen {
    struct client *client;
    const char *want;
    bool connected, readable, drained, eof, error, hello_asked;
};

static void on_io(struct io *io, enum io_event ev, void *arg)
{
    struct seen *s = arg;
    s->connected |= ev == IO_CONNECTED;
    s->eof |= ev == IO_EOF;
    s->error |= ev == IO_ERROR;
    s->drained |= ev == IO_DRAINED;
    if (ev == IO_READABLE && slice_eq_str(buf_slice(io_in(io)), s->want))
        s->readable = true;
    if (s->readable || s->eof || s->error)
        event_base_loopbreak(base);
}

static void run(void)
{
    struct timeval limit = {START_WAIT, 0};
    event_base_loopexit(base, &limit);
    event_base_dispatch(base);
}

static int pair(int fds[2])
{
    return socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds);
}

static void test_plain(void)
{
    int fds[2];
    struct seen s = {.want = "hello"};
    CU_ASSERT_EQUAL_FATAL(pair(fds), 0);
    struct io *io = io_new(base, fds[0], 4096, 4096, false);
    io_callback(io, on_io, &s);
    CU_ASSERT_EQUAL(write(fds[1], "hello", 5), 5);
    run();
    CU_ASSERT(s.readable && !s.eof);
    close(fds[1]);
    s.readable = false;
    buf_clear(io_in(io));
    run();
    CU_ASSERT(s.eof && !s.error);
    io_close(io);
}

/* What is passed on goes at once; what becomes of it is said from the loop, never from within. */
static void test_flush(void)
{
    char got[8];
    int fds[2];
    struct seen s = {.want = "?"};
    CU_ASSERT_EQUAL_FATAL(pair(fds), 0);
    struct io *io = io_new(base, fds[0], 4096, 4096, false);
    io_callback(io, on_io, &s);
    CU_ASSERT_EQUAL(buf_append_str(io_out(io), "hello"), 0);
    io_flush(io);
    CU_ASSERT_EQUAL(read(fds[1], got, sizeof got), 5);
    close(fds[1]);
    CU_ASSERT_EQUAL(buf_append_str(io_out(io), "lost"), 0);
    io_pause(io); /* it hears of the end by its own writing alone */
    io_flush(io);
    CU_ASSERT(!s.error);
    run();
    CU_ASSERT(s.error && !s.eof);
    io_close(io);
}

/* Far more than a socket takes: the loop sends the rest, and says when there is little left. */
static void test_flush_full(void)
{
    static char much[512 * 1024], got[64 * 1024];
    int fds[2];
    struct seen s = {.want = "?"};
    size_t sum = 0;
    ssize_t n;
    CU_ASSERT_EQUAL_FATAL(pair(fds), 0);
    struct io *io = io_new(base, fds[0], 4096, sizeof much, false);
    io_callback(io, on_io, &s);
    io_high_mark(io, 1024);
    CU_ASSERT_EQUAL(buf_append(io_out(io), much, sizeof much), 0);
    io_flush(io);
    CU_ASSERT(io_out_len(io) > 0 && io_out_len(io) < sizeof much);
    for (int i = 0; i < 1000 && sum < sizeof much; i++) {
        while ((n = read(fds[1], got, sizeof got)) > 0)
            sum += (size_t)n;
        event_base_loop(base, EVLOOP_NONBLOCK);
    }
    CU_ASSERT_EQUAL(sum, sizeof much);
    CU_ASSERT(s.drained && !s.error);
    io_close(io);
    close(fds[1]);
}

/* Whoever else has the socket may make it a blocking one. The alarm ends a test that hangs. */
static void test_blocking(void)
{
    static char much[512 * 1024];
    int fds[2];
    struct seen s = {.want = "hello"};
    struct timeval moment = {0, 20000};
    CU_ASSERT_EQUAL_FATAL(pair(fds), 0);
    struct io *io = io_new(base, fds[0], 64 * 1024, sizeof much, false);
    io_callback(io, on_io, &s);
    CU_ASSERT_EQUAL(fcntl(fds[0], F_SETFL, fcntl(fds[0], F_GETFL) & ~O_NONBLOCK), 0);
    alarm(START_WAIT);
    CU_ASSERT_EQUAL(write(fds[1], much, 16 * 1024), 16 * 1024); /* all of a read, and no more */
    CU_ASSERT_EQUAL(io_write(io, much, sizeof much), 0);        /* nobody takes it */
    event_base_loopexit(base, &moment);
    event_base_dispatch(base);
    alarm(0);
    CU_ASSERT_EQUAL(buf_len(io_in(io)), 16 * 1024);
    CU_ASSERT(io_out_len(io) > 0);
    io_close(io);
    close(fds[1]);
}

/* While the server is inside SSL_do_handshake the client answers each flight at once. So the end of
 * its handshake and its request come in the server's last read of the handshake. */
static void answer_at_once(const SSL *ssl, int where, int ret UNUSED)
{
    struct seen *s = SSL_get_app_data(ssl);
    if (where & SSL_CB_LOOP)
        client_step(s->client);
}

static int ask_to_wait(SSL *ssl, int *alert UNUSED, void *arg UNUSED)
{
    struct seen *s = SSL_get_app_data(ssl);
    if (s->hello_asked)
        return SSL_CLIENT_HELLO_SUCCESS;
    s->hello_asked = true;
    return SSL_CLIENT_HELLO_RETRY;
}

static void request_with_the_handshake(int version, bool suspended)
{
    int fds[2];
    struct client c;
    struct seen s = {.client = &c, .want = "GET / HTTP/1.1\r\n\r\n"};
    CU_ASSERT_EQUAL_FATAL(pair(fds), 0);
    client_open(&c, fds[1], s.want, version);
    struct io *io = io_new(base, fds[0], 4096, 4096, false);
    io_callback(io, on_io, &s);
    SSL *ssl = SSL_new(server_ctx);
    SSL_set_app_data(ssl, &s);
    SSL_set_info_callback(ssl, answer_at_once);
    SSL_CTX_set_client_hello_cb(server_ctx, suspended ? ask_to_wait : NULL, NULL);
    client_step(&c);
    io_tls_accept(io, ssl);
    struct timeval moment = {0, 20000};
    event_base_loopexit(base, &moment);
    event_base_dispatch(base);
    if (suspended) {
        CU_ASSERT(s.hello_asked && !s.connected);
        io_tls_continue(io);
    }
    for (int i = 0; i < 3 && !s.readable; i++)
        run();
    CU_ASSERT(s.connected);
    CU_ASSERT(s.readable);
    CU_ASSERT_FALSE(s.error);
    io_close(io);
    client_close(&c);
    SSL_CTX_set_client_hello_cb(server_ctx, NULL, NULL);
}

static void test_request_with_the_handshake(void)
{
    request_with_the_handshake(TLS1_3_VERSION, false);
    request_with_the_handshake(TLS1_2_VERSION, false);
}

static void test_request_after_suspension(void)
{
    request_with_the_handshake(TLS1_3_VERSION, true);
    request_with_the_handshake(TLS1_2_VERSION, true);
}

/* How a client ends: its TLS, and then nothing, its socket, or something that is no TLS. */
enum then { THEN_WAITS, THEN_GOES, THEN_TALKS };

static void end_of_tls(enum then then)
{
    int fds[2];
    struct client c;
    struct seen s = {.client = &c, .want = "GET / HTTP/1.1\r\n\r\n"};
    CU_ASSERT_EQUAL_FATAL(pair(fds), 0);
    client_open(&c, fds[1], s.want, TLS1_3_VERSION);
    struct io *io = io_new(base, fds[0], 4096, 4096, false);
    io_callback(io, on_io, &s);
    SSL *ssl = SSL_new(server_ctx);
    SSL_set_app_data(ssl, &s);
    SSL_set_info_callback(ssl, answer_at_once);
    client_step(&c);
    io_tls_accept(io, ssl);
    for (int i = 0; i < 3 && !s.readable; i++)
        run();
    CU_ASSERT_FATAL(s.readable);
    s.readable = false;
    SSL_shutdown(c.ssl);
    client_step(&c);
    run();
    CU_ASSERT(s.eof && !s.error && io_eof(io));
    s.eof = false;
    io_await_end(io);
    if (then == THEN_GOES)
        shutdown(c.fd, SHUT_WR);
    if (then == THEN_TALKS)
        CU_ASSERT_EQUAL(write(c.fd, "x", 1), 1);
    struct timeval moment = {0, 20000};
    event_base_loopexit(base, &moment);
    event_base_dispatch(base);
    CU_ASSERT_EQUAL(s.error, then != THEN_WAITS);
    CU_ASSERT(!s.eof && !s.readable);
    if (then == THEN_WAITS) { /* it still reads */
        char text[16];
        CU_ASSERT_EQUAL(io_write(io, "late", 4), 0);
        event_base_loopexit(base, &moment);
        event_base_dispatch(base);
        client_step(&c);
        CU_ASSERT_EQUAL(SSL_read(c.ssl, text, sizeof text), 4);
        CU_ASSERT_FALSE(s.error);
    }
    io_close(io);
    client_close(&c);
}

static void test_end_of_tls(void)
{
    end_of_tls(THEN_WAITS);
    end_of_tls(THEN_GOES);
    end_of_tls(THEN_TALKS);
}

/* A server that wants a certificate says so after the client's handshake is over, and is gone when
 * the client writes. */
struct refusal {
    SSL *server;
    int fd;
    char why[128];
};

static void on_refused(struct io *io, enum io_event ev, void *arg)
{
    struct refusal *r = arg;
    if (ev == IO_CONNECTED) {
        SSL_set_verify_result(io_ssl(io), X509_V_OK); /* of whom nothing is asked here */
        CU_ASSERT(SSL_accept(r->server) <= 0);
        close(r->fd);
        CU_ASSERT_EQUAL(io_write(io, "x", 1), 0);
        io_flush(io);
    } else if (ev == IO_ERROR) {
        snprintf(r->why, sizeof r->why, "%s", io_why(io));
    }
}

static void test_refused_while_writing(void)
{
    struct timeval moment = {0, 20000};
    struct refusal r = {.why = ""};
    int fds[2];
    SSL_CTX *ctx = io_tls_client_ctx();
    CU_ASSERT_EQUAL_FATAL(pair(fds), 0);
    CU_ASSERT_PTR_NOT_NULL_FATAL(ctx);
    SSL_CTX_set_verify(ctx, SSL_VERIFY_NONE, NULL);
    r.fd = fds[1];
    r.server = SSL_new(server_ctx);
    SSL_set_verify(r.server, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
    SSL_set_fd(r.server, r.fd);
    struct io *io = io_new(base, fds[0], 4096, 4096, true);
    io_callback(io, on_refused, &r);
    io_tls_connect(io, SSL_new(ctx));
    for (int i = 0; i < 3 && r.why[0] == 0; i++) {
        event_base_loopexit(base, &moment);
        event_base_dispatch(base);
        if (i == 0)
            CU_ASSERT(SSL_accept(r.server) <= 0);
    }
    if (strstr(r.why, "certificate required") == NULL)
        fprintf(stderr, "# %s\n", r.why);
    CU_ASSERT_PTR_NOT_NULL(strstr(r.why, "certificate required"));
    ERR_clear_error();
    io_close(io);
    SSL_free(r.server);
    SSL_CTX_free(ctx);
}

static void test_garbage(void)
{
    int fds[2];
    struct seen s = {.want = ""};
    CU_ASSERT_EQUAL_FATAL(pair(fds), 0);
    struct io *io = io_new(base, fds[0], 4096, 4096, false);
    io_callback(io, on_io, &s);
    io_tls_accept(io, SSL_new(server_ctx));
    CU_ASSERT_EQUAL(write(fds[1], "GET / HTTP/1.1\r\n\r\n", 18), 18);
    run();
    CU_ASSERT(s.error && !s.connected);
    io_close(io);
    close(fds[1]);
}

/* A client that knows this list of groups, or OpenSSL's own (NULL) -> the name of the group that
 * was chosen, "" where there is none, NULL where this library does not know the list. */
static const char *group_chosen(const char *list)
{
    BIO *left, *right;
    SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
    const char *name = NULL;
    int c = 0, s = 0;
    if (list == NULL || SSL_CTX_set1_groups_list(ctx, list) == 1) {
        SSL *client = SSL_new(ctx), *server = SSL_new(server_ctx);
        CU_ASSERT_EQUAL_FATAL(BIO_new_bio_pair(&left, 0, &right, 0), 1);
        SSL_set_bio(client, left, left);
        SSL_set_bio(server, right, right);
        SSL_set_connect_state(client);
        SSL_set_accept_state(server);
        for (int i = 0; i < 20 && !(c == 1 && s == 1); i++) {
            c = SSL_do_handshake(client);
            s = SSL_do_handshake(server);
        }
        name = s == 1 ? SSL_group_to_name(server, (int)SSL_get_negotiated_group(server)) : "";
        SSL_free(client);
        SSL_free(server);
    }
    SSL_CTX_free(ctx);
    ERR_clear_error();
    return name;
}

/* Whatever a client can do by itself serves; who can do more than one has X25519. */
static void test_groups(void)
{
    static const char *const single[] = {"X25519",    "P-256",     "X448",      "P-521",
                                         "P-384",     "ffdhe2048", "ffdhe3072", "ffdhe4096",
                                         "ffdhe6144", "ffdhe8192"};
    const char *x25519 = group_chosen("X25519"), *hybrid = group_chosen("X25519MLKEM768");
    CU_ASSERT_FATAL(x25519 && x25519[0]);
    for (size_t i = 0; i < ARRAY_LEN(single); i++) {
        const char *got = group_chosen(single[i]);
        if (got == NULL || got[0] == 0)
            printf("# no handshake by %s\n", single[i]);
        CU_ASSERT(got && got[0]);
    }
    const char *all = group_chosen(NULL);
    CU_ASSERT(all && strcmp(all, x25519) == 0);
    if (hybrid == NULL) {
        printf("# SKIP ML-KEM: this OpenSSL does not know it\n");
        return;
    }
    const char *both = group_chosen("X25519MLKEM768:X25519");
    CU_ASSERT(strcmp(hybrid, "") != 0 && both && strcmp(both, x25519) == 0);
}

void tap_suites(void)
{
    CU_pSuite suite = CU_add_suite("io", setup, teardown);
    CU_add_test(suite, "plain: bytes and the end", test_plain);
    CU_add_test(suite, "what is passed on at once", test_flush);
    CU_add_test(suite, "the same, more than a socket takes", test_flush_full);
    CU_add_test(suite, "a socket that was made to block", test_blocking);
    CU_add_test(suite, "TLS: a request in one segment with the handshake's end",
                test_request_with_the_handshake);
    CU_add_test(suite, "TLS: the same after the handshake was suspended",
                test_request_after_suspension);
    CU_add_test(suite, "TLS: it ends, and its socket later", test_end_of_tls);
    CU_add_test(suite, "TLS: a refusal that comes before a write", test_refused_while_writing);
    CU_add_test(suite, "TLS: garbage is an error", test_garbage);
    CU_add_test(suite, "TLS: groups", test_groups);
}
