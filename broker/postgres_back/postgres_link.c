/* A connection to a server: dialled, asked for TLS, verified. There is none without TLS. */
#include "postgres_back.h"

#include "origin.h"

#include <stdio.h>
#include <string.h>

static void finish(struct postgres_link *l, const char *code, const char *detail)
{
    l->up = code == NULL;
    l->done(l->arg, code, detail ? detail : "");
}

/* The server's answer to the wish for TLS is one byte, and nothing may come behind it: what did
 * would be read as if it had come within TLS. */
static void on_answer(struct postgres_link *l)
{
    struct buf *in = io_in(l->io);
    if (buf_len(in) == 0)
        return;
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
    SSL *ssl = origin_ssl_for(l->back->tls, &l->at);
    if (ssl == NULL)
        finish(l, "upstream_tls", "out of memory");
    else
        io_tls_connect(l->io, ssl);
}

static void on_io(struct io *io, enum io_event ev, void *arg)
{
    struct postgres_link *l = arg;
    switch (ev) {
    case IO_CONNECTED:
        finish(l, NULL, NULL);
        break;
    case IO_READABLE:
        if (io_ssl(io) == NULL)
            on_answer(l);
        break;
    case IO_DRAINED:
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
    struct postgres_link *l = arg;
    l->dial = NULL;
    if (fd < 0) {
        finish(l, code, detail);
        return;
    }
    snprintf(l->address, sizeof l->address, "%s", address);
    l->io = io_new(l->back->base, fd, POSTGRES_IO, 4 * POSTGRES_IO, true);
    struct buf *out = l->io ? io_out(l->io) : NULL;
    if (out == NULL || postgres_request_put(out, POSTGRES_SSL) < 0) {
        finish(l, "memory", "");
        return;
    }
    io_callback(l->io, on_io, l);
    io_high_mark(l->io, POSTGRES_IO);
    io_deadline(l->io, l->back->limits.dial_seconds);
    io_flush_soon(l->io);
}

void postgres_link_begin(struct postgres_link *l, struct back *b, const struct authority *at,
                         const char *sandbox, const char *id,
                         void (*done)(void *arg, const char *code, const char *detail), void *arg)
{
    memset(l, 0, sizeof *l);
    l->back = b;
    l->at = *at;
    l->done = done;
    l->arg = arg;
    l->dial = dial_client_get(b->dial, slice_str(sandbox), &l->at, id, "", on_dialled, l);
    if (l->dial == NULL)
        finish(l, "memory", "");
}

void postgres_link_end(struct postgres_link *l)
{
    dial_client_cancel(l->dial);
    l->dial = NULL;
    io_close(l->io);
    l->io = NULL;
}
