/* TLS of an explicit port itself: the client verifies its proxy before it shows a token. Inside it
 * speaks what it would speak on a port in clear. */
#include "session_internal.h"

#include "address.h"
#include "hello.h"

#include <string.h>

/* Our certificate is for one name; a client that wants another has not come to us. */
static void check_name(struct session *s, SSL *ssl)
{
    struct slice name;
    struct authority a = s->outer;
    int there = hello_name(ssl, &name);
    if (there < 0)
        session_hello_refuse(s, SSL_AD_DECODE_ERROR, "malformed_host", "server_name");
    else if (there && authority_host(&a, name) < 0)
        session_hello_refuse(s, SSL_AD_UNRECOGNIZED_NAME, "malformed_host", "server_name");
    else if (there && strcmp(a.host, s->port_name) != 0)
        session_hello_refuse(s, SSL_AD_UNRECOGNIZED_NAME, "authority_mismatch", a.host);
}

static int on_port_hello(SSL *ssl, int *alert, void *arg UNUSED)
{
    struct session *s = SSL_get_app_data(ssl);
    if (s == NULL)
        return SSL_CLIENT_HELLO_ERROR;
    if (s->hello == 0)
        check_name(s, ssl);
    return session_hello_leaf(s, s->port_name, alert);
}

void session_port_setup(SSL_CTX *ctx)
{
    SSL_CTX_set_client_hello_cb(ctx, on_port_hello, NULL);
    io_tls_choose(ctx, IO_TLS_HTTP1);
}

/* What was said of the port's own name is not said of what follows. */
static void port_reached(struct session *s)
{
    SSL_set_app_data(io_ssl(s->io), NULL);
    memset(&s->outer, 0, sizeof s->outer);
    s->hello = 0;
    s->alert = 0;
    session_explicit(s);
}

static void on_port_handshake(struct io *io, enum io_event ev, void *arg)
{
    struct session *s = arg;
    switch (ev) {
    case IO_CONNECTED:
        port_reached(s);
        return;
    case IO_ERROR:
    case IO_TIMEOUT:
        if (s->hello >= 0)
            session_note_tls_refused(s, ev == IO_ERROR ? io_why(io) : "handshake time-out");
        session_close(s, "handshake of the port");
        return;
    case IO_EOF:
        session_close(s, "closed in the handshake of the port");
        return;
    case IO_READABLE:
    case IO_DRAINED:
        return;
    }
}

void session_start_port(struct session *s)
{
    struct address own = {.len = sizeof own.in6};
    SSL *ssl = SSL_new(s->gate->port_tls);
    if (ssl == NULL) {
        session_note_denied(s, "memory", NULL);
        session_close(s, "out of memory");
        return;
    }
    if (getsockname(io_fd(s->io), &own.sa, &own.len) == 0)
        s->outer.port = address_port(&own.sa);
    s->outer.scheme = SCHEME_HTTPS;
    memcpy(s->outer.host, s->port_name, strlen(s->port_name) + 1);
    SSL_set_app_data(ssl, s);
    session_set_state(s, SESSION_HANDSHAKE);
    io_callback(s->io, on_port_handshake, s);
    io_deadline(s->io, s->gate->limits.head_seconds);
    io_tls_accept(s->io, ssl);
}
