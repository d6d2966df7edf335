/* The TLS half of io: a BIO that serves bytes read before the handshake first, then the socket, or
 * the TLS underneath. */
#include "crypto_text.h"
#include "io_internal.h"

#include <errno.h>
#include <openssl/err.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

enum { TLS_READ_CHUNK = 16 * 1024 };

/* The TLS that this BIO's bytes travel in; NULL: the socket itself. */
static SSL *carrier(const BIO *b, const struct io *io)
{
    return io->under && SSL_get_rbio(io->under) != b ? io->under : NULL;
}

/* The carrier waits, has ended or has failed: the same for who is carried. */
static int carrier_outcome(BIO *b, SSL *under, int r)
{
    switch (SSL_get_error(under, r)) {
    case SSL_ERROR_WANT_READ:
        BIO_set_retry_read(b);
        return -1;
    case SSL_ERROR_WANT_WRITE:
        BIO_set_retry_write(b);
        return -1;
    case SSL_ERROR_ZERO_RETURN:
        BIO_set_flags(b, BIO_FLAGS_IN_EOF);
        return 0;
    default:
        return -1;
    }
}

static int bio_read(BIO *b, char *to, int n)
{
    struct io *io = BIO_get_data(b);
    BIO_clear_retry_flags(b);
    if (n <= 0)
        return 0;
    SSL *under = carrier(b, io);
    size_t have = under || io->under == NULL ? buf_len(&io->raw) : 0, got;
    if (have) {
        size_t k = have < (size_t)n ? have : (size_t)n;
        memcpy(to, buf_data(&io->raw), k);
        buf_drain(&io->raw, k);
        buf_shrink(&io->raw);
        return (int)k;
    }
    if (under) {
        int u = SSL_read_ex(under, to, (size_t)n, &got);
        return u == 1 ? (int)got : carrier_outcome(b, under, u);
    }
    if (io->dry) {
        BIO_set_retry_read(b);
        return -1;
    }
    ssize_t r = recv(io->fd, to, (size_t)n, MSG_DONTWAIT);
    io->dry = r > 0 && r < n;
    if (r < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) {
        BIO_set_retry_read(b);
        return -1;
    }
    if (r == 0)
        BIO_set_flags(b, BIO_FLAGS_IN_EOF);
    return (int)r;
}

static int bio_write(BIO *b, const char *from, int n)
{
    struct io *io = BIO_get_data(b);
    BIO_clear_retry_flags(b);
    SSL *under = carrier(b, io);
    size_t sent;
    if (under) {
        int u = SSL_write_ex(under, from, (size_t)n, &sent);
        return u == 1 ? (int)sent : carrier_outcome(b, under, u);
    }
    ssize_t r = send(io->fd, from, (size_t)n, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (r < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) {
        BIO_set_retry_write(b);
        return -1;
    }
    return (int)r;
}

static long bio_ctrl(BIO *b, int cmd, long num UNUSED, void *ptr UNUSED)
{
    switch (cmd) {
    case BIO_CTRL_FLUSH:
        return 1;
    case BIO_CTRL_EOF:
        return BIO_test_flags(b, BIO_FLAGS_IN_EOF) != 0;
    default:
        return 0;
    }
}

static const BIO_METHOD *method(void)
{
    static BIO_METHOD *m;
    if (m == NULL) {
        m = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "durward io");
        BIO_meth_set_read(m, bio_read);
        BIO_meth_set_write(m, bio_write);
        BIO_meth_set_ctrl(m, bio_ctrl);
    }
    return m;
}

static bool attach(struct io *io)
{
    if (SSL_get_rbio(io->ssl))
        return true;
    BIO *b = BIO_new(method());
    if (b == NULL)
        return false;
    BIO_set_data(b, io);
    BIO_set_init(b, 1);
    SSL_set_bio(io->ssl, b, b);
    return true;
}

/* What an earlier call left must not be taken for this one's; mostly there is nothing. */
static void no_errors(void)
{
    if (ERR_peek_error())
        ERR_clear_error();
}

static void tls_why(struct io *io, const char *what)
{
    unsigned long e = ERR_peek_error();
    long verify = SSL_get_verify_result(io->ssl);
    const char *reason = crypto_text(e);
    if (!SSL_is_server(io->ssl) && verify != X509_V_OK)
        io_fail(io, "%s: %s", what, X509_verify_cert_error_string(verify));
    else
        io_fail(io, "%s: %s", what, reason ? reason : errno ? strerror(errno) : "closed");
    ERR_clear_error();
}

/* What an SSL call's failure means: 0 wait, -1 failed, -2 end of file. */
static int tls_outcome(struct io *io, int r, const char *what)
{
    switch (SSL_get_error(io->ssl, r)) {
    case SSL_ERROR_WANT_READ:
        return 0;
    case SSL_ERROR_WANT_WRITE:
        io->want_write = true;
        return 0;
    case SSL_ERROR_WANT_CLIENT_HELLO_CB:
    case SSL_ERROR_WANT_ASYNC: /* for a signature */
        io_set_state(io, IO_S_SUSPENDED);
        return 0;
    case SSL_ERROR_ZERO_RETURN:
        return -2;
    default:
        tls_why(io, what);
        return -1;
    }
}

int io_tls_step(struct io *io)
{
    if (io->no_tls || !attach(io)) {
        io_fail(io, "%s", io->no_tls ? io->no_tls : "out of memory");
        return -1;
    }
    no_errors();
    errno = 0;
    int r = SSL_do_handshake(io->ssl);
    if (r == 1) {
        io_set_state(io, IO_S_TLS);
        return 1;
    }
    r = tls_outcome(io, r, "handshake");
    if (r == -2) {
        io_fail(io, "handshake: closed");
        return -1;
    }
    return r;
}

int io_tls_read(struct io *io)
{
    size_t want = buf_room(&io->in);
    if (want > TLS_READ_CHUNK)
        want = TLS_READ_CHUNK;
    unsigned char *to = want ? buf_space(&io->in, want) : NULL;
    if (to == NULL)
        return 0;
    size_t got = 0;
    no_errors();
    errno = 0;
    int r = SSL_read_ex(io->ssl, to, want, &got);
    if (r == 1) {
        buf_commit(&io->in, got);
        return 1;
    }
    return tls_outcome(io, r, "TLS read");
}

/* Nothing can be written. Who refuses us says why before it goes: a server of TLS 1.3 whom a
 * client's certificate does not please, after the handshake. */
static void write_failed(struct io *io)
{
    char byte;
    size_t got;
    int e = errno;
    io->dry = false;
    no_errors();
    int r = SSL_peek_ex(io->ssl, &byte, 1, &got);
    if (r == 0 && SSL_get_error(io->ssl, r) == SSL_ERROR_SSL) {
        tls_why(io, "TLS read");
        return;
    }
    no_errors();
    errno = e;
    tls_why(io, "TLS write");
}

int io_tls_write(struct io *io)
{
    size_t done = 0;
    no_errors();
    errno = 0;
    int r = SSL_write_ex(io->ssl, buf_data(&io->out), buf_len(&io->out), &done);
    if (r == 1) {
        buf_drain(&io->out, done);
        return 1;
    }
    if (SSL_get_error(io->ssl, r) == SSL_ERROR_SYSCALL) {
        write_failed(io);
        return -1;
    }
    r = tls_outcome(io, r, "TLS write");
    if (r == -2) {
        io_fail(io, "TLS write: closed");
        return -1;
    }
    if (r == 0)
        io->want_write = true;
    return r;
}

void io_tls_end(struct io *io)
{
    no_errors();
    SSL_shutdown(io->ssl);
    no_errors();
    if (io->under)
        SSL_shutdown(io->under);
    no_errors();
}

bool io_tls_held(const struct io *io)
{
    return SSL_has_pending(io->ssl) || (io->under && SSL_has_pending(io->under));
}

static void common(SSL_CTX *ctx)
{
    SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION);
    SSL_CTX_set_options(ctx, SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION);
    SSL_CTX_set_mode(ctx, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                              SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_read_ahead(ctx, 1);
}

/* Key exchange with clients: OpenSSL's own list, X25519 first. From 3.5 on its first is one with
 * ML-KEM, which would add half to what an idle connection takes, between a sandbox and its own
 * gate: here it is the last, for a client that offers nothing else. What the operator's openssl.cnf
 * says comes after it, and counts. */
static void choose_groups(SSL_CTX *ctx)
{
#define CLASSIC "X25519:P-256:X448:P-521:P-384:ffdhe2048:ffdhe3072:ffdhe4096:ffdhe6144:ffdhe8192"
    if (SSL_CTX_set1_groups_list(ctx, CLASSIC "/X25519MLKEM768") != 1) /* 3.5's form of a list */
        (void)SSL_CTX_set1_groups_list(ctx, CLASSIC); /* else OpenSSL's own, as a FIPS provider's */
    (void)SSL_CTX_config(ctx, "system_default");      /* mostly there is no such section */
    ERR_clear_error();
}

SSL_CTX *io_tls_server_ctx(bool tickets)
{
    SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
    if (ctx == NULL)
        return NULL;
    choose_groups(ctx);
    common(ctx);
    /* TLS 1.2: forward secrecy and AEAD only; those of 1.3 are all so */
    if (SSL_CTX_set_cipher_list(ctx, "ECDHE+AESGCM:ECDHE+CHACHA20") != 1) {
        SSL_CTX_free(ctx);
        return NULL;
    }
    SSL_CTX_set_max_early_data(ctx, 0);
    SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_options(ctx, SSL_OP_CIPHER_SERVER_PREFERENCE);
    if (!tickets) {
        SSL_CTX_set_options(ctx, SSL_OP_NO_TICKET);
        SSL_CTX_set_num_tickets(ctx, 0);
    }
    return ctx;
}

SSL_CTX *io_tls_client_ctx(void)
{
    SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
    if (ctx == NULL)
        return NULL;
    common(ctx);
    SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);
    return ctx;
}

static int on_alpn(SSL *ssl UNUSED, const unsigned char **out, unsigned char *outlen,
                   const unsigned char *in, unsigned inlen, void *ours)
{
    if (SSL_select_next_proto((unsigned char **)(uintptr_t)out, outlen, ours,
                              (unsigned)strlen(ours), in, inlen) != OPENSSL_NPN_NEGOTIATED)
        return SSL_TLSEXT_ERR_ALERT_FATAL;
    return SSL_TLSEXT_ERR_OK;
}

void io_tls_choose(SSL_CTX *server, const char *constant)
{
    SSL_CTX_set_alpn_select_cb(server, on_alpn, (void *)(uintptr_t)constant);
}
