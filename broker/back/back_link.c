/* A connection to a server: dialled, asked for TLS, verified, shown a certificate. */
#include "back_link.h"

#include "origin.h"

#include <stdio.h>
#include <string.h>

static void finish(struct back_link *l, const char *code, const char *detail)
{
    l->up = code == NULL;
    l->done(l->arg, code, detail ? detail : "");
}

static void begin_tls(struct back_link *l)
{
    SSL *ssl = origin_ssl_for(l->back->tls, &l->at);
    if (ssl == NULL)
        finish(l, "upstream_tls", "out of memory");
    else if (back_certificate_begin(&l->certificate, l->io, ssl) == 0)
        io_tls_connect(l->io, ssl);
    else {
        SSL_free(ssl);
        finish(l, "secret_unavailable", "its certificate cannot be used");
    }
}

static void on_connected(struct back_link *l)
{
    bool shown = back_certificate_end(&l->certificate);
    finish(l, shown ? NULL : "upstream_tls",
           shown ? NULL : "the server asked for no client certificate");
}

/* The server's answer to the wish for TLS is one byte, and nothing may come behind it: what did
 * would be read as if it had come within TLS. */
static void on_answer(struct back_link *l)
{
    struct buf *in = io_in(l->io);
    if (buf_len(in) == 0)
        return;
    if (l->upgrading) {
        finish(l, "upstream_tls", "the server said more before TLS than it may");
        return;
    }
    if (*buf_data(in) != 'S') {
        finish(l, "upstream_tls", "the server does not speak TLS");
        return;
    }
    if (buf_len(in) != 1) {
        finish(l, "upstream_tls", "the server said more before TLS than it may");
        return;
    }
    buf_drain(in, 1);
    io_consumed(l->io);
    begin_tls(l);
}

static void on_drained(struct back_link *l)
{
    if (!l->upgrading || io_ssl(l->io))
        return;
    io_high_mark(l->io, BACK_LINK_IO);
    begin_tls(l);
}

static void on_io(struct io *io, enum io_event ev, void *arg)
{
    struct back_link *l = arg;
    switch (ev) {
    case IO_CONNECTED:
        on_connected(l);
        break;
    case IO_READABLE:
        if (l->tls && io_ssl(io) == NULL)
            on_answer(l);
        break;
    case IO_DRAINED:
        on_drained(l);
        break;
    case IO_TIMEOUT:
        finish(l, "timeout", "the server took too long");
        break;
    default:
        finish(l, io_ssl(io) ? "upstream_tls" : "upstream_closed",
               ev == IO_ERROR ? io_why(io) : "the server closed the connection");
        break;
    }
}

static void on_dialled(void *arg, int fd, const char *address, const char *code, const char *detail)
{
    struct back_link *l = arg;
    l->dial = NULL;
    if (fd < 0) {
        finish(l, code, detail);
        return;
    }
    snprintf(l->address, sizeof l->address, "%s", address);
    l->io = io_new(l->back->base, fd, BACK_LINK_IO, 4 * BACK_LINK_IO + l->longest, true);
    struct buf *out = l->io ? io_out(l->io) : NULL;
    if (out == NULL || buf_append_slice(out, l->ask) < 0) {
        finish(l, "memory", "");
        return;
    }
    io_callback(l->io, on_io, l);
    io_high_mark(l->io, BACK_LINK_IO);
    io_deadline(l->io, l->back->limits.dial_seconds);
    if (!l->tls)
        finish(l, NULL, NULL);
    else if (l->ask.n == 0)
        begin_tls(l);
    else
        io_flush_soon(l->io);
}

static void dial(struct back_link *l)
{
    l->dial =
        dial_client_get(l->back->dial, slice_str(l->sandbox), &l->at, l->id, "", on_dialled, l);
    if (l->dial == NULL)
        finish(l, "memory", "");
}

static void on_certificate(void *arg, const char *why)
{
    struct back_link *l = arg;
    if (why)
        finish(l, "secret_unavailable", why);
    else
        dial(l);
}

void back_link_begin(struct back_link *l, struct back *b, const struct authority *at,
                     const char *sandbox, const char *id, const char *certificate, bool tls,
                     struct slice ask, size_t longest,
                     void (*done)(void *arg, const char *code, const char *detail), void *arg)
{
    memset(l, 0, sizeof *l);
    l->back = b;
    l->at = *at;
    l->tls = tls;
    l->ask = ask;
    l->longest = longest;
    l->done = done;
    l->arg = arg;
    snprintf(l->id, sizeof l->id, "%s", id);
    snprintf(l->sandbox, sizeof l->sandbox, "%s", sandbox);
    if (certificate)
        back_certificate_get(&l->certificate, b, sandbox, certificate, on_certificate, l);
    else
        dial(l);
}

void back_link_upgrade(struct back_link *l)
{
    l->tls = l->upgrading = true;
    l->up = false;
    io_callback(l->io, on_io, l);
    io_deadline(l->io, l->back->limits.dial_seconds);
    if (io_out_len(l->io) == 0) {
        begin_tls(l);
        return;
    }
    io_high_mark(l->io, 1); /* it says when nothing is left */
    io_flush_soon(l->io);
}

void back_link_end(struct back_link *l)
{
    dial_client_cancel(l->dial);
    l->dial = NULL;
    back_certificate_free(&l->certificate);
    io_close(l->io);
    l->io = NULL;
}
