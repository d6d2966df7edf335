#include "origin.h"

#include "dial_client.h"
#include "http1_write.h"

#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum origin_state { O_DIALLING = 0, O_HANDSHAKE, O_ACTIVE, O_DONE };

struct origin {
    struct origin_env env;
    struct dial_client *dial;
    struct front front;
    struct authority authority;
    enum origin_state state;
    struct buf head; /* serialised, kept for a retry */
    char method[16];
    enum body_kind body;
    char *key, *id, *token;
    struct dial_wait *wait;
    struct io *io; /* HANDSHAKE */
    struct http1_client *client;
    struct origin_facts facts;
    bool request_done, body_begun, replied, retried;
};

static void set_state(struct origin *o, enum origin_state s)
{
    o->state = s;
}

static void origin_free(struct origin *o)
{
    dial_client_cancel(o->wait);
    io_close(o->io);
    buf_free(&o->head);
    free(o->key);
    free(o->id);
    free(o->token);
    free(o);
}

static void origin_fail(struct origin *o, unsigned status, const char *code, const char *detail)
{
    set_state(o, O_DONE);
    snprintf(o->facts.detail, sizeof o->facts.detail, "%s", detail ? detail : "");
    o->front.ops->fail(o->front.self, status, code, NULL);
    origin_free(o);
}

SSL *origin_ssl(SSL_CTX *ctx, const struct authority *a)
{
    static const unsigned char alpn[] = "\x08http/1.1";
    SSL *ssl = SSL_new(ctx);
    if (ssl == NULL)
        return NULL;
    X509_VERIFY_PARAM *param = SSL_get0_param(ssl);
    X509_VERIFY_PARAM_set_hostflags(param, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS |
                                               X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
    int ok;
    if (a->kind == HOST_NAME)
        ok = SSL_set_tlsext_host_name(ssl, a->host) &&
             X509_VERIFY_PARAM_set1_host(param, a->host, strlen(a->host));
    else
        ok = X509_VERIFY_PARAM_set1_ip(param, a->ip, a->kind == HOST_IPV4 ? 4 : 16);
    ok = ok && SSL_set_alpn_protos(ssl, alpn, sizeof alpn - 1) == 0;
    SSL_set_verify(ssl, SSL_VERIFY_PEER, NULL);
    if (!ok) {
        SSL_free(ssl);
        return NULL;
    }
    return ssl;
}

static int dial(struct origin *o);
static const struct http1_client_ops client_ops;

static void start(struct origin *o, struct http1_client *c)
{
    o->client = c;
    set_state(o, O_ACTIVE);
    http1_client_start(c, &client_ops, o, buf_slice(&o->head), slice_str(o->method), o->body);
    if (o->request_done)
        http1_client_request_end(c);
}

static void connected(struct origin *o)
{
    struct io *io = o->io;
    o->io = NULL;
    io_deadline(io, 0);
    struct http1_client *c = http1_client_new(io, o->env.limits);
    if (c == NULL) {
        origin_fail(o, 503, "memory", NULL);
        return;
    }
    start(o, c);
    if (!o->request_done)
        o->front.ops->wanted(o->front.self);
}

static void on_handshake(struct io *io, enum io_event ev, void *arg)
{
    struct origin *o = arg;
    switch (ev) {
    case IO_CONNECTED:
        connected(o);
        return;
    case IO_ERROR:
        origin_fail(o, 502, "upstream_tls", io_why(io));
        return;
    case IO_EOF:
        origin_fail(o, 502, "upstream_tls", "the origin closed during the handshake");
        return;
    case IO_TIMEOUT:
        origin_fail(o, 504, "upstream_timeout", "TLS handshake with the origin");
        return;
    case IO_READABLE:
    case IO_DRAINED:
        return;
    }
}

static void on_dialled(void *arg, int fd, const char *address, const char *code, const char *detail)
{
    struct origin *o = arg;
    o->wait = NULL;
    if (fd < 0) {
        bool policy = strcmp(code, "denied") == 0 || strcmp(code, "blocked_ip") == 0;
        bool ours = strcmp(code, "overload") == 0 || strcmp(code, "dialer_gone") == 0 ||
                    strcmp(code, "audit") == 0;
        bool late = strcmp(code, "timeout") == 0;
        origin_fail(o, policy ? 403 : ours ? 503 : late ? 504 : 502, code, detail);
        return;
    }
    snprintf(o->facts.address, sizeof o->facts.address, "%s", address);
    o->io = io_new(o->env.base, fd, STREAM_IN_MAX, STREAM_OUT_MAX, o->env.wipe);
    if (o->io == NULL) {
        origin_fail(o, 503, "memory", NULL);
        return;
    }
    if (o->authority.scheme == SCHEME_HTTP) {
        connected(o);
        return;
    }
    SSL *ssl = origin_ssl(o->env.tls, &o->authority);
    if (ssl == NULL) {
        origin_fail(o, 503, "memory", NULL);
        return;
    }
    set_state(o, O_HANDSHAKE);
    io_callback(o->io, on_handshake, o);
    io_deadline(o->io, o->env.limits->dial_seconds);
    io_tls_connect(o->io, ssl);
}

static int dial(struct origin *o)
{
    set_state(o, O_DIALLING);
    o->wait = dial_client_get(o->dial, &o->authority, o->id, o->token, on_dialled, o);
    return o->wait ? 0 : -1;
}

/* ---- what the connection tells ---- */

static void on_reply(void *arg, const struct head *h)
{
    struct origin *o = arg;
    o->replied = true;
    o->front.ops->reply(o->front.self, h);
}

static void on_data(void *arg, const void *p, size_t n)
{
    struct origin *o = arg;
    o->front.ops->data(o->front.self, p, n);
}

static void on_trailers(void *arg, const struct head *fields)
{
    struct origin *o = arg;
    o->front.ops->trailers(o->front.self, fields);
}

static void on_end(void *arg)
{
    struct origin *o = arg;
    struct http1_client *c = o->client;
    o->client = NULL;
    set_state(o, O_DONE);
    if (o->request_done && http1_client_reusable(c))
        pool_give(o->env.pool, o->key, c);
    else
        http1_client_close(c);
    o->front.ops->end(o->front.self);
    origin_free(o);
}

/* Sent again, once, only when it failed on a reused connection before any reply byte, no body was
 * begun, and the method is safe (DESIGN §3). */
static bool may_retry(const struct origin *o)
{
    bool safe = strcmp(o->method, "GET") == 0 || strcmp(o->method, "HEAD") == 0 ||
                strcmp(o->method, "OPTIONS") == 0;
    return safe && o->facts.reused && !o->replied && !o->body_begun && !o->retried;
}

static void on_fail(void *arg, const char *code, const char *detail)
{
    struct origin *o = arg;
    o->client = NULL;
    if (may_retry(o) && strcmp(code, "upstream_closed") == 0) {
        o->retried = true;
        o->facts.reused = false;
        if (dial(o) < 0)
            origin_fail(o, 503, "memory", NULL);
        return;
    }
    origin_fail(o, strcmp(code, "upstream_timeout") == 0 ? 504 : 502, code, detail);
}

static size_t on_room(void *arg)
{
    struct origin *o = arg;
    return o->front.ops->room(o->front.self);
}

static void on_wanted(void *arg)
{
    struct origin *o = arg;
    if (!o->request_done)
        o->front.ops->wanted(o->front.self);
}

static const struct http1_client_ops client_ops = {
    .reply = on_reply,
    .data = on_data,
    .trailers = on_trailers,
    .end = on_end,
    .fail = on_fail,
    .room = on_room,
    .wanted = on_wanted,
};

/* ---- what the front asks ---- */

static void back_data(void *self, const void *p, size_t n)
{
    struct origin *o = self;
    o->body_begun = true;
    if (o->state == O_ACTIVE)
        http1_client_data(o->client, p, n);
}

static void back_end(void *self)
{
    struct origin *o = self;
    o->request_done = true;
    if (o->state == O_ACTIVE)
        http1_client_request_end(o->client);
}

static size_t back_room(void *self)
{
    struct origin *o = self;
    return o->state == O_ACTIVE ? http1_client_room(o->client) : 0;
}

static void back_resume(void *self)
{
    struct origin *o = self;
    if (o->state == O_ACTIVE)
        http1_client_resume(o->client);
}

static void back_cancel(void *self, const char *code UNUSED)
{
    struct origin *o = self;
    set_state(o, O_DONE);
    http1_client_close(o->client);
    origin_free(o);
}

static const struct back_ops back_ops = {
    .data = back_data,
    .end = back_end,
    .room = back_room,
    .resume = back_resume,
    .cancel = back_cancel,
};

struct back origin_back(struct origin *o)
{
    return (struct back){&back_ops, o};
}

const struct origin_facts *origin_facts(const struct origin *o)
{
    return &o->facts;
}

struct origin *origin_open(const struct origin_env *env, struct dial_client *dialer,
                           struct front front, const struct authority *a, const struct head *h,
                           const char *key, const char *id, const char *token)
{
    struct origin *o = calloc(1, sizeof *o);
    if (o == NULL)
        return NULL;
    o->env = *env;
    o->dial = dialer;
    o->front = front;
    o->authority = *a;
    buf_init(&o->head, STREAM_OUT_MAX / 2);
    o->head.wipe = env->wipe;
    o->key = strdup(key);
    o->id = strdup(id);
    o->token = strdup(token);
    o->body = h->body;
    snprintf(o->method, sizeof o->method, "%.*s", SL(h->method));
    if (!o->key || !o->id || !o->token || http1_write_request(&o->head, h, a) < 0) {
        origin_free(o);
        return NULL;
    }
    struct http1_client *c = pool_take(env->pool, key);
    if (c) {
        o->facts.reused = true;
        start(o, c);
    } else if (dial(o) < 0) {
        origin_free(o);
        return NULL;
    }
    return o;
}
