/* The states of asking a proxy: password, handshake, answer. Anything but a success with nothing
 * behind its head becomes a text that says why. */
#include "proxy_connect.h"

#include "bridge.h"
#include "http1_head.h"
#include "io.h"
#include "origin.h"
#include "secret_client.h"
#include "upstream_proxy.h"

#include <fcntl.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PAIR_MAX = 1500, FIELDS_MAX = 100 };

enum ask_state { ASK_NEW, ASK_SECRET, ASK_HANDSHAKE, ASK_ANSWER, ASK_OVER };

struct proxy_connect {
    struct proxy_connect_order order;
    enum ask_state state;
    struct io *io;
    struct secret_wait *wait; /* ASK_SECRET */
    struct secret *password;  /* until it is sent */
    size_t scanned;
};

static void ask_enter(struct proxy_connect *p, enum ask_state state)
{
    p->state = state;
}

static void ask_free(struct proxy_connect *p)
{
    ask_enter(p, ASK_OVER);
    secret_client_cancel(p->wait);
    secret_unref(p->password);
    io_close(p->io);
    free(p);
}

/* The one way out. */
static void ask_tell(struct proxy_connect *p, int fd, const char *text)
{
    struct proxy_connect_order o = p->order;
    char copy[PROXY_CONNECT_TEXT_MAX];
    snprintf(copy, sizeof copy, "%s", text);
    ask_free(p);
    o.done(o.arg, fd, copy);
}

/* ---- the answer ---- */

/* The tunnel is there. In clear the descriptor itself is handed over, else one end of a bridge. */
static void hand_over(struct proxy_connect *p)
{
    int fd;
    if (io_ssl(p->io)) {
        struct io *io = p->io;
        p->io = NULL;
        fd = bridges_join(p->order.bridges, io, p->order.payer);
    } else {
        fd = fcntl(io_fd(p->io), F_DUPFD_CLOEXEC, 0);
    }
    if (fd < 0)
        ask_tell(p, PROXY_CONNECT_NO_ROOM, "no room for a connection through the proxy");
    else
        ask_tell(p, fd, "");
}

static void judge(struct proxy_connect *p, size_t end)
{
    static const struct limits limits = {.head_bytes = PROXY_CONNECT_HEAD_MAX,
                                         .headers = FIELDS_MAX};
    struct buf *in = io_in(p->io);
    struct slice raw = {(const char *)buf_data(in), end};
    struct refusal why;
    struct head h;
    char text[PROXY_CONNECT_TEXT_MAX];
    bool more = buf_len(in) > end;
    int bad = http1_parse_reply(&h, raw, SLICE("CONNECT"), NULL, &limits, &why);
    unsigned status = bad < 0 ? 0 : h.status;
    http_head_free(&h);
    if (bad < 0) {
        ask_tell(p, -1, "the proxy's answer is malformed");
    } else if (status == 407) {
        ask_tell(p, -1,
                 p->order.proxy->secret[0] ? "the proxy refuses its credential (407)"
                                           : "the proxy wants a credential (407)");
    } else if (status < 200 || status > 299) {
        snprintf(text, sizeof text, "the proxy refuses (%u)", status);
        ask_tell(p, -1, text);
    } else if (more) { /* before anything was sent to the target, nothing can come from it */
        ask_tell(p, -1, "the proxy sends more than its answer");
    } else {
        buf_drain(in, end);
        hand_over(p);
    }
}

static void read_answer(struct proxy_connect *p)
{
    ssize_t end = http1_head_end(buf_slice(io_in(p->io)), PROXY_CONNECT_HEAD_MAX, &p->scanned);
    if (end > 0)
        judge(p, (size_t)end);
    else if (end == HTTP1_LARGE)
        ask_tell(p, -1, "the proxy's answer is too long");
    else if (end < 0)
        ask_tell(p, -1, "the proxy's answer is malformed");
}

/* ---- the request ---- */

static int put_credential(struct proxy_connect *p, struct buf *out)
{
    const struct upstream_proxy *to = p->order.proxy;
    struct slice password = secret_slice(p->password);
    unsigned char pair[PAIR_MAX], coded[PAIR_MAX * 4 / 3 + 8];
    size_t user_n = strlen(to->user), n = user_n + 1 + password.n;
    if (n > sizeof pair)
        return -1;
    memcpy(pair, to->user, user_n);
    pair[user_n] = ':';
    memcpy(pair + user_n + 1, password.p, password.n);
    int coded_n = EVP_EncodeBlock(coded, pair, (int)n);
    int r = buf_append_str(out, "Proxy-Authorization: Basic ");
    r |= buf_append(out, coded, (size_t)coded_n);
    r |= buf_append_str(out, "\r\n");
    explicit_bzero(pair, sizeof pair);
    explicit_bzero(coded, sizeof coded);
    return r;
}

static void send_request(struct proxy_connect *p)
{
    struct buf *out = io_out(p->io);
    char target[HOST_TEXT_MAX + 16];
    authority_text_port(&p->order.target, target, sizeof target);
    int r = buf_printf(out, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n", target, target);
    if (p->password)
        r |= put_credential(p, out);
    r |= buf_append_str(out, "\r\n");
    secret_unref(p->password);
    p->password = NULL;
    if (r < 0) {
        ask_tell(p, -1, "the proxy's credential is too long");
        return;
    }
    ask_enter(p, ASK_ANSWER);
    io_flush_soon(p->io);
}

static void on_io(struct io *io, enum io_event ev, void *arg)
{
    struct proxy_connect *p = arg;
    char text[PROXY_CONNECT_TEXT_MAX];
    bool handshake = p->state == ASK_HANDSHAKE;
    switch (ev) {
    case IO_CONNECTED:
        send_request(p);
        return;
    case IO_READABLE:
        if (p->state == ASK_ANSWER)
            read_answer(p);
        else if (!handshake)
            ask_tell(p, -1, "the proxy speaks before it is asked");
        return;
    case IO_EOF:
    case IO_ERROR:
        snprintf(text, sizeof text, "%s%s",
                 handshake ? "TLS with the proxy: " : "the proxy closed the connection",
                 handshake ? io_why(io) : "");
        ask_tell(p, -1, text);
        return;
    case IO_DRAINED:
    case IO_TIMEOUT:
        return;
    }
}

static void speak(struct proxy_connect *p)
{
    const struct upstream_proxy *to = p->order.proxy;
    if (to->at.scheme == SCHEME_HTTP) {
        send_request(p);
        return;
    }
    SSL *ssl = origin_ssl(to->tls, &to->at, true);
    if (ssl == NULL) {
        ask_tell(p, -1, "out of memory");
        return;
    }
    ask_enter(p, ASK_HANDSHAKE);
    io_tls_connect(p->io, ssl);
}

static void on_secret(void *arg, struct secret *value, const struct err *err UNUSED)
{
    struct proxy_connect *p = arg;
    p->wait = NULL;
    if (value == NULL) {
        ask_tell(p, -1, "the proxy's credential cannot be read");
        return;
    }
    p->password = secret_ref(value);
    speak(p);
}

struct proxy_connect *proxy_connect_new(const struct proxy_connect_order *order, int fd)
{
    struct proxy_connect *p = calloc(1, sizeof *p);
    if (p == NULL) {
        close(fd);
        return NULL;
    }
    p->order = *order;
    p->io = io_new(order->base, fd, BRIDGE_BUFFER, BRIDGE_BUFFER, true);
    if (p->io == NULL) {
        free(p);
        return NULL;
    }
    io_callback(p->io, on_io, p);
    return p;
}

void proxy_connect_run(struct proxy_connect *p)
{
    if (p->order.proxy->secret[0] == 0) {
        speak(p);
        return;
    }
    ask_enter(p, ASK_SECRET);
    struct secret_wait *w =
        secret_client_get(p->order.secrets, p->order.proxy->secret, on_secret, p);
    if (w) /* else on_secret has run and p may be gone */
        p->wait = w;
}

void proxy_connect_cancel(struct proxy_connect *p)
{
    if (p)
        ask_free(p);
}
