/* Opens a TLS connection and starts a thread that carries bytes between it and a socket pair, so
 * that callers read and write a plain descriptor. Every thread is joined before the process
 * ends. */
#include "api_remote.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api_client.h"
#include "authority.h"
#include "io.h"
#include "reach.h"

static const char scheme[] = "https://";
enum { TOKEN_MAX = 1024, PIECE = 16 * 1024, CONNECT_SECONDS = 10 };

bool remote_is(const char *where)
{
    return where && strncmp(where, scheme, sizeof scheme - 1) == 0;
}

static int parse(const char *where, struct authority *a, struct err *err)
{
    struct slice rest = slice_str(where + sizeof scheme - 1);
    if (rest.n && rest.p[rest.n - 1] == '/')
        rest.n--;
    if (authority_parse(a, SCHEME_HTTPS, rest) < 0)
        return err_set(err, ERR_PARSE, "'%.200s' is not https://HOST[:PORT]", where);
    return 0;
}

/* ---- who we are ---- */

static int read_token(const char *path, char *to, struct err *err)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0)
        return err_sys(err, "%s", path);
    int bad = 0;
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        bad = err_set(err, ERR_PARSE, "%s is not a regular file", path);
    else if (st.st_mode & 077)
        bad = err_set(err, ERR_DENIED, "%s can be read by others; chmod 600 it", path);
    ssize_t n = bad ? -1 : read(fd, to, TOKEN_MAX);
    close(fd);
    if (n < 0)
        return bad ? bad : err_sys(err, "%s", path);
    to[n] = 0;
    to[strcspn(to, "\r\n")] = 0;
    return 0;
}

static int token(char to[TOKEN_MAX + 1], struct err *err)
{
    const char *said = getenv("DURWARD_TOKEN"), *path = getenv("DURWARD_TOKEN_FILE");
    if (said && *said)
        snprintf(to, TOKEN_MAX + 1, "%s", said);
    else if (path == NULL || *path == 0)
        return err_set(err, ERR_UNREADY,
                       "a daemon elsewhere wants a token: set DURWARD_TOKEN_FILE or DURWARD_TOKEN "
                       "('durward token create' makes one)");
    else if (read_token(path, to, err) < 0)
        return -1;
    for (const char *p = to; *p; p++)
        if (!ascii_is_alnum(*p) && strchr("-._~", *p) == NULL)
            return err_set(err, ERR_PARSE, "what is set as the token cannot be one");
    return *to ? 0 : err_set(err, ERR_PARSE, "the token is empty");
}

int remote_head(const char *where, struct buf *b, struct err *err)
{
    struct authority a;
    char text[TOKEN_MAX + 1], host[HOST_TEXT_MAX + 16];
    if (parse(where, &a, err) < 0 || token(text, err) < 0)
        return -1;
    int r = buf_printf(b, "Host: %s\r\nAuthorization: Bearer %s\r\n",
                       authority_text(&a, host, sizeof host), text);
    explicit_bzero(text, sizeof text);
    return r;
}

/* ---- the connection ---- */

static SSL *client(const struct authority *a, int fd, struct err *err)
{
    SSL_CTX *ctx = io_tls_client_ctx();
    const char *ca = getenv("DURWARD_CA");
    SSL *ssl = NULL;
    if (ctx == NULL)
        err_set(err, ERR_INTERNAL, "out of memory");
    else if (ca && *ca ? SSL_CTX_load_verify_locations(ctx, ca, NULL) != 1
                       : SSL_CTX_set_default_verify_paths(ctx) != 1)
        err_set(err, ERR_PARSE, "%s: no certificates there", ca && *ca ? ca : "the system's roots");
    else
        ssl = SSL_new(ctx);
    SSL_CTX_free(ctx);
    if (ssl == NULL)
        return NULL;
    enum reach_tls got = reach_tls(ssl, fd, a);
    if (got == REACH_TLS_GOOD)
        return ssl;
    if (got == REACH_TLS_UNTRUSTED)
        err_set(err, ERR_DENIED, "the certificate of %s is not good: %s%s", a->host,
                X509_verify_cert_error_string(SSL_get_verify_result(ssl)),
                ca && *ca ? "" : "; DURWARD_CA names the file of the daemon's CA");
    else
        err_set(err, ERR_UNREADY,
                "%s does not speak TLS with us; its name or address must be the one of the "
                "daemon's 'controller: { https, name }'",
                a->host);
    SSL_free(ssl);
    return NULL;
}

/* ---- carrying bytes ---- */

struct carrier {
    struct carrier *next;
    pthread_t thread;
    _Atomic bool ending; /* the process does, and waits for it */
    bool over;           /* only its thread is left, at its end */
    SSL *ssl;
    int net, local; /* owned */
    unsigned char in[PIECE], out[PIECE];
    size_t in_at, in_n, out_at, out_n;
    bool net_ended, local_ended, broken;
};

/* From the daemon. true: something moved. */
static bool carry_in(struct carrier *c)
{
    bool moved = false;
    if (c->in_n == 0 && !c->net_ended) {
        ERR_clear_error();
        int n = SSL_read(c->ssl, c->in, sizeof c->in);
        int why = n > 0 ? 0 : SSL_get_error(c->ssl, n);
        moved = n > 0;
        c->in_at = 0;
        c->in_n = n > 0 ? (size_t)n : 0;
        c->net_ended = n <= 0 && why != SSL_ERROR_WANT_READ && why != SSL_ERROR_WANT_WRITE;
    }
    if (c->in_n) {
        ssize_t n = send(c->local, c->in + c->in_at, c->in_n, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n > 0) {
            c->in_at += (size_t)n;
            c->in_n -= (size_t)n;
            return true;
        }
        c->broken |= errno != EAGAIN && errno != EINTR;
    }
    return moved;
}

static bool carry_out(struct carrier *c)
{
    bool moved = false;
    if (c->out_n == 0 && !c->local_ended) {
        ssize_t n = recv(c->local, c->out, sizeof c->out, MSG_DONTWAIT);
        moved = n > 0;
        c->out_at = 0;
        c->out_n = n > 0 ? (size_t)n : 0;
        c->local_ended = n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR);
        if (c->local_ended)
            (void)SSL_shutdown(c->ssl);
    }
    if (c->out_n) {
        ERR_clear_error();
        int n = SSL_write(c->ssl, c->out + c->out_at, (int)c->out_n);
        int why = n > 0 ? 0 : SSL_get_error(c->ssl, n);
        if (n > 0) {
            c->out_at += (size_t)n;
            c->out_n -= (size_t)n;
            return true;
        }
        c->broken |= why != SSL_ERROR_WANT_READ && why != SSL_ERROR_WANT_WRITE;
    }
    return moved;
}

/* Each thread is waited for, by the next connection or by the end of the process: OpenSSL frees
 * what it keeps for a thread when that ends, and its own end must not come between. */
static pthread_mutex_t carriers_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t carriers_once = PTHREAD_ONCE_INIT;
static struct carrier *carriers;

/* The first carrier, or the first that is over; it is out of the list then. */
static struct carrier *take(bool over)
{
    struct carrier **at = &carriers, *c;
    pthread_mutex_lock(&carriers_lock);
    while (*at && over && !(*at)->over)
        at = &(*at)->next;
    c = *at;
    if (c) {
        *at = c->next;
        if (!c->over) {
            c->ending = true;
            shutdown(c->net, SHUT_RDWR); /* wakes it up */
            shutdown(c->local, SHUT_RDWR);
        }
    }
    pthread_mutex_unlock(&carriers_lock);
    return c;
}

static void join(bool over)
{
    struct carrier *c;
    while ((c = take(over)) != NULL) {
        pthread_join(c->thread, NULL);
        explicit_bzero(c, sizeof *c);
        free(c);
    }
}

static void end_all(void)
{
    join(false);
}

static void at_end(void)
{
    (void)atexit(end_all);
}

static void leave(struct carrier *c)
{
    pthread_mutex_lock(&carriers_lock);
    SSL_free(c->ssl);
    close(c->net);
    close(c->local);
    c->over = true;
    pthread_mutex_unlock(&carriers_lock);
}

static void *carry(void *arg)
{
    struct carrier *c = arg;
    while (!c->broken && !c->ending && !(c->net_ended && c->in_n == 0)) {
        bool in = carry_in(c), out = carry_out(c);
        if (in || out)
            continue;
        struct pollfd p[2] = {{c->net, POLLIN, 0}, {c->local, 0, 0}};
        if (c->out_n)
            p[0].events |= POLLOUT;
        if (c->in_n)
            p[0].events = (short)(p[0].events & ~POLLIN), p[1].events |= POLLOUT;
        if (c->out_n == 0 && !c->local_ended)
            p[1].events |= POLLIN;
        if (p[1].events == 0)
            p[1].fd = -1;
        if (poll(p, 2, -1) < 0 && errno != EINTR)
            break;
    }
    leave(c);
    return NULL;
}

static int start(SSL *ssl, int net, struct err *err)
{
    struct carrier *c = calloc(1, sizeof *c);
    struct timeval limit = {.tv_sec = API_TIMEOUT_SECONDS};
    int pair[2] = {-1, -1};
    pthread_once(&carriers_once, at_end);
    join(true);
    if (c && socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0 &&
        fcntl(net, F_SETFL, O_NONBLOCK) == 0) {
        c->ssl = ssl;
        c->net = net;
        c->local = pair[1];
        setsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
        setsockopt(pair[0], SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
        pthread_mutex_lock(&carriers_lock);
        int bad = pthread_create(&c->thread, NULL, carry, c);
        if (bad == 0) {
            c->next = carriers;
            carriers = c;
        }
        pthread_mutex_unlock(&carriers_lock);
        if (bad == 0)
            return pair[0];
    }
    err_set(err, ERR_INTERNAL, "no thread for the connection");
    free(c);
    if (pair[0] >= 0) {
        close(pair[0]);
        close(pair[1]);
    }
    SSL_free(ssl);
    close(net);
    return -1;
}

int remote_open(const char *where, struct err *err)
{
    struct authority a;
    if (parse(where, &a, err) < 0)
        return -1;
    int fd = reach_tcp(&a, CONNECT_SECONDS, "daemon", err);
    SSL *ssl = fd < 0 ? NULL : client(&a, fd, err);
    if (ssl)
        return start(ssl, fd, err);
    if (fd >= 0)
        close(fd);
    return -1;
}
