/* One byte stream on the event loop: a socket, plain or TLS, with an input and an output buffer.
 * Plain and TLS look the same to the owner. Written on raw events because a handshake must be able
 * to wait (for a leaf to be minted) and secret bytes must be wiped; libevent's bufferevents can do
 * neither.
 *
 * Callbacks may call any function here on the same io, io_close included: freeing waits until the
 * io is off the stack. Output is sent when the running callback returns, so that several writes
 * leave in one system call. */
#ifndef DURWARD_IO_H
#define DURWARD_IO_H

#include "buf.h"
#include <openssl/ssl.h>

struct event_base;
struct io;

enum io_event {
    IO_CONNECTED, /* TLS: the handshake is complete */
    IO_READABLE,  /* bytes were added to the input buffer */
    IO_DRAINED,   /* output was at its high mark and went below half of that */
    IO_EOF,       /* the peer ended its side, cleanly (TLS: with close_notify) */
    IO_ERROR,     /* io_why() says what; only io_close makes sense now */
    IO_TIMEOUT,   /* the deadline set by io_deadline passed; it is off now */
};

typedef void (*io_fn)(struct io *io, enum io_event ev, void *arg);

/* Takes the non-blocking fd over. wipe: clear buffer memory on release. */
struct io *io_new(struct event_base *base, int fd, size_t in_max, size_t out_max, bool wipe);
void io_callback(struct io *io, io_fn fn, void *arg); /* may change hands between owners */
void io_close(struct io *io);                         /* drops unsent output; NULL is fine */
/* Sends what is queued first (10 s at most); no more callbacks after this call. What its peer does
 * not take at once keeps it where somebody counts it (io_when_closed), or it has one of the places
 * below; else it is cut. */
void io_close_flushed(struct io *io);
/* The same, and the peer's end is waited for (2 s and 1 MiB at most, and 256 streams of an owner,
 * never more than are left of 512 for all others): for last words that are to arrive while the peer
 * may still be sending (RFC 9112 9.6, RFC 6455 7.1.1). */
void io_close_lingering(struct io *io);
void io_owner(struct io *io, struct slice owner); /* whose it is, in a process that has several's */
/* fn(arg) when its descriptor is closed, which is later than its owner has let go of it where last
 * bytes go out or the peer's end is waited for: until then it takes memory and counts. NULL: now.
 */
void io_when_closed(struct io *io, void (*fn)(void *arg), void *arg);
void io_counted(struct io *io, size_t *n); /* *n is one more until then */
/* Two that count as one: fn of either is told when both are closed. */
void io_closed_with(struct io *io, struct io *other);
/* What was sent is not whole, and its reader must see that: closing will say no close_notify and
 * will be a reset. */
void io_break(struct io *io);
int io_fd(const struct io *io);
struct buf *io_in(struct io *io); /* drain what was used, then io_consumed */
void io_consumed(struct io *io);  /* input was drained: reading goes on if it was full */
int io_write(struct io *io, const void *p, size_t n) WUNUSED; /* -1: would cross the maximum */
/* In bytes; half the output's maximum until this is called. */
void io_high_mark(struct io *io, size_t high);
size_t io_out_room(struct io *io);
size_t io_out_len(struct io *io);
void io_flush_soon(struct io *io); /* after writing into io_out directly */
/* The same, at once where it can be; no callback comes from within. For whoever passes on what came
 * elsewhere: what is behind it in this turn of the loop need not wait in memory. */
void io_flush(struct io *io);
struct buf *io_out(struct io *io);
void io_pause(struct io *io); /* stop reading */
void io_resume(struct io *io);
/* End our side: TLS close_notify and shutdown(SHUT_WR) once the output is out. */
void io_end(struct io *io);
/* One deadline, replaced by each call; 0 takes it off. */
void io_deadline(struct io *io, unsigned seconds);
const char *io_why(const struct io *io);
bool io_eof(const struct io *io);
/* After IO_EOF of TLS: its peer may still read (RFC 8446 6.1). When it has ended the socket, too,
 * that is told as IO_ERROR. */
void io_await_end(struct io *io);

/* TLS. The io owns ssl from here on. Bytes already in the input buffer are the start of the TLS
 * stream and are fed to it first. On an io that has TLS already the new one travels inside it (a
 * client that speaks TLS to us as its proxy, and through us to an origin); two layers at most. */
void io_tls_accept(struct io *io, SSL *ssl);
void io_tls_connect(struct io *io, SSL *ssl);
/* What the handshake waited for (a client_hello callback that returned RETRY, a signature) is
 * there: go on. */
void io_tls_continue(struct io *io);
SSL *io_ssl(struct io *io); /* the innermost; NULL while plain */
/* A server context with our defaults: TLS 1.2+, no renegotiation, no compression, no early data,
 * session tickets as given, key exchange by X25519 where the client can. NULL on failure. */
SSL_CTX *io_tls_server_ctx(bool tickets);
SSL_CTX *io_tls_client_ctx(void);

/* What clients may speak (RFC 7301), the first that both have. One that names protocols, and none
 * of these, is refused; one that names none speaks HTTP/1.1. */
#define IO_TLS_HTTP1      "\x08http/1.1"
#define IO_TLS_HTTP2_OR_1 "\x02h2" IO_TLS_HTTP1
void io_tls_choose(SSL_CTX *server, const char *constant);

#endif
