/* TLS towards the sandbox. OpenSSL parses the ClientHello; we take the name out of it, decide,
 * mint, and only then let the handshake go on. */
#include "session_internal.h"

#include "hello.h"
#include "meter.h"
#include "policy.h"

#include <openssl/err.h>
#include <stdio.h>
#include <string.h>

void session_hello_refuse(struct session *s, unsigned char alert, const char *code,
                          const char *detail)
{
    s->hello = -1;
    s->alert = alert;
    session_note_denied(s, code, detail);
}

/* SNI, CONNECT target and original destination make one authority, or none. */
int session_hello_authority(const struct session *s, SSL *ssl, struct authority *a,
                            unsigned char *alert, const char **code, const char **detail)
{
    struct slice name;
    int there = hello_name(ssl, &name);
    *a = s->outer;
    a->scheme = SCHEME_HTTPS;
    *code = "malformed_host";
    *detail = "server_name";
    *alert = SSL_AD_DECODE_ERROR;
    if (there < 0)
        return -1;
    *alert = SSL_AD_UNRECOGNIZED_NAME;
    if (there == 0)
        return 0;
    struct authority sni = *a;
    if (authority_host(&sni, name) < 0 || sni.kind != HOST_NAME)
        return -1;
    if (s->outer_binds_name && !authority_same_host(a, &sni)) {
        *code = "authority_mismatch";
        *detail = NULL;
        return -1;
    }
    *a = sni;
    return 0;
}

static bool settle_authority(struct session *s, SSL *ssl)
{
    struct authority a;
    unsigned char alert;
    const char *code, *detail;
    if (session_hello_authority(s, ssl, &a, &alert, &code, &detail) < 0) {
        struct authority sni = a;
        struct slice name;
        if (detail == NULL) { /* another name than asked for: both are told */
            s->authority = a;
            if (hello_name(ssl, &name) > 0)
                (void)authority_host(&sni, name);
        }
        session_hello_refuse(s, alert, code, detail ? detail : sni.host);
        return false;
    }
    s->authority = a;
    if (s->refusing) { /* to say so there has to be a certificate; not for who is somewhere else */
        bool known = session_host_allowed(s, &a);
        if (a.kind == HOST_NAME && !known)
            return true;
        session_hello_refuse(s, SSL_AD_UNRECOGNIZED_NAME, known ? "authority_mismatch" : "no_rule",
                             NULL);
        return false;
    }
    if (!session_host_allowed(s, &a)) {
        session_hello_refuse(s, SSL_AD_UNRECOGNIZED_NAME, "no_rule", NULL);
        return false;
    }
    return true;
}

static void on_minted(void *arg, const struct leaf *leaf, const struct err *err)
{
    struct session *s = arg;
    s->mint = NULL;
    if (leaf && leaf_use(leaf, io_ssl(s->io)) == 0)
        s->hello = 1;
    else
        session_hello_refuse(s, SSL_AD_INTERNAL_ERROR, "mint", err ? err->text : "certificate");
    if (s->state == SESSION_MINTING) {
        session_set_state(s, SESSION_HANDSHAKE);
        io_tls_continue(s->io);
    }
}

int session_hello_leaf(struct session *s, const char *host, int *alert)
{
    if (s->hello == 0) {
        session_set_state(s, SESSION_HANDSHAKE);
        struct mint_wait *w = mint_client_get(s->gate->mint, host, on_minted, s);
        if (s->hello == 0) {
            s->mint = w;
            session_set_state(s, SESSION_MINTING);
            return SSL_CLIENT_HELLO_RETRY;
        }
    }
    if (s->hello == 1)
        return SSL_CLIENT_HELLO_SUCCESS;
    *alert = s->alert;
    return SSL_CLIENT_HELLO_ERROR;
}

static int on_hello(SSL *ssl, int *alert, void *arg UNUSED)
{
    struct session *s = SSL_get_app_data(ssl);
    if (s == NULL)
        return SSL_CLIENT_HELLO_ERROR;
    if (s->hello == 0)
        settle_authority(s, ssl); /* refuses by itself */
    return session_hello_leaf(s, s->authority.host, alert);
}

bool session_chose_http2(const struct session *s)
{
    const unsigned char *name;
    unsigned n;
    SSL *ssl = io_ssl(s->io);
    if (ssl == NULL)
        return false; /* in clear its first bytes say so (session_inner), and no upgrade */
    SSL_get0_alpn_selected(ssl, &name, &n);
    return slice_eq((struct slice){(const char *)name, n}, SLICE("h2"));
}

void session_tls_setup(SSL_CTX *ctx)
{
    SSL_CTX_set_client_hello_cb(ctx, on_hello, NULL);
    io_tls_choose(ctx, IO_TLS_HTTP2_OR_1);
}

void session_note_tls_refused(struct session *s, const char *why)
{
    struct record r;
    char target[HOST_TEXT_MAX + 16];
    record_init(&r, RECORD_TLS_REFUSED, 0);
    meter_add(METER_HANDSHAKES_REFUSED, 1);
    record_put_str(&r, RF_CODE, "client_tls_refused");
    authority_text(s->authority.host[0] ? &s->authority : &s->outer, target, sizeof target);
    record_put_str(&r, RF_TARGET, target);
    record_put_str(&r, RF_DETAIL, why);
    journal_note(s->gate->journal, &r);
    gate_denied(s->gate, "client_tls_refused", target, 1);
}

static void on_handshake(struct io *io, enum io_event ev, void *arg)
{
    struct session *s = arg;
    switch (ev) {
    case IO_CONNECTED:
        meter_add(METER_HANDSHAKES, 1);
        io_deadline(io, 0);
        session_start_http(s);
        return;
    case IO_ERROR:
        if (s->hello >= 0)
            session_note_tls_refused(s, io_why(io));
        session_close(s, "handshake");
        return;
    case IO_TIMEOUT:
        session_note_tls_refused(s, "handshake time-out");
        session_close(s, "handshake time-out");
        return;
    case IO_EOF:
        session_close(s, "closed in the handshake");
        return;
    case IO_READABLE:
    case IO_DRAINED:
        return;
    }
}

void session_start_tls(struct session *s)
{
    SSL *ssl = SSL_new(s->gate->server_tls);
    if (ssl == NULL) {
        session_note_denied(s, "memory", NULL);
        session_close(s, "out of memory");
        return;
    }
    SSL_set_app_data(ssl, s);
    session_set_state(s, SESSION_HANDSHAKE);
    io_callback(s->io, on_handshake, s);
    io_deadline(s->io, s->gate->limits.head_seconds);
    io_tls_accept(s->io, ssl);
}
