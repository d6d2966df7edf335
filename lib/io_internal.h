/* Shared by io.c and io_tls.c only. */
#ifndef DURWARD_IO_INTERNAL_H
#define DURWARD_IO_INTERNAL_H

#include "io.h"
#include "quota.h"

struct event;

enum io_state {
    IO_S_PLAIN = 0,
    IO_S_HANDSHAKE, /* TLS handshake under way */
    IO_S_SUSPENDED, /* handshake waits for io_tls_continue */
    IO_S_TLS,
    IO_S_FAILED,
    IO_S_CLOSING, /* flushing the last output; the owner is gone */
    IO_S_CLOSED,
};

struct io {
    int fd;
    enum io_state state;
    struct event_base *base;
    struct event *rd, *wr, *soon, *timer;
    bool reads, writes; /* rd and wr are with the loop */
    uint64_t due;       /* the deadline, monotonic ms; 0: none */
    uint64_t rings;     /* when timer does; 0: never. It is not moved for each new deadline: */
                        /* one that rings too early is set again for what is left */
    io_fn fn;
    void *arg;
    void (*closed)(void *arg); /* when its descriptor is; NULL */
    void *closed_arg;
    struct io *with; /* which has to be closed, too, before that is told; NULL */
    struct buf in, out;
    struct buf raw;     /* TLS bytes read before the handshake began */
    const char *no_tls; /* why the handshake that was asked for cannot be; NULL */
    SSL *ssl;
    SSL *under; /* TLS that the bytes of ssl travel in (io_tls_accept on an io that has TLS) */
    size_t pending_write; /* bytes SSL_write must be called with again */
    unsigned depth;
    bool paused, eof, ending, ended, want_write;
    bool awaits_end; /* of the socket, after TLS has ended (io_await_end) */
    bool breaks;     /* closing is to be a reset */
    char owner[65];
    struct quota_part stays; /* closing, with nobody who counts it */
    bool lingers;            /* closing: the peer's end is waited for, */
    bool drops;              /* and what it says is dropped */
    size_t dropped;
    bool dry;      /* TLS: the last read took all there was; the loop tells of more */
    size_t high;   /* mark of the output, in bytes */
    bool unsaid;   /* it failed outside of any frame, and the owner is to hear of it */
    bool was_high; /* output crossed the high mark since the last IO_DRAINED */
    char why[160];
};

void io_set_state(struct io *io, enum io_state s);
void io_fail(struct io *io, const char *fmt, ...) PRINTF(2, 3);
void io_emit(struct io *io, enum io_event ev);
void io_update(struct io *io); /* recompute event interest */
/* TLS half; each returns >0 progress, 0 would block, -1 failed (io_fail done), -2 end of file. */
int io_tls_step(struct io *io);
int io_tls_read(struct io *io);
int io_tls_write(struct io *io);
void io_tls_end(struct io *io);
/* OpenSSL holds bytes for which the socket may never become readable. */
bool io_tls_held(const struct io *io);

#endif
