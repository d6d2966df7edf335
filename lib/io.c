/* Runs the state machine of a stream: reading, writing, pausing, deadlines, closing, and freeing
 * only once it is off the stack. Its TLS half is io_tls.c. */
#include "io_internal.h"

#include "assertion.h"

#include <errno.h>
#include <event2/event.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { IO_READ_CHUNK = 16 * 1024, IO_CLOSE_SECONDS = 10, IO_READS_A_TURN = 8, IO_CLOCK_MS = 10 };

/* How many of a process linger at once, or wait for a peer that does not take their last output and
 * are counted by nobody; and of one owner: descriptors and memory are the process's. */
enum { IO_STAYING_MAX = 512, IO_STAYING_OF_ONE = 256 };
enum { IO_LINGER_SECONDS = 2, IO_LINGER_BYTES = 1 << 20 };
static struct quota staying = {.total = IO_STAYING_MAX, .each = IO_STAYING_OF_ONE};

void io_set_state(struct io *io, enum io_state s)
{
    /* FAILED, CLOSING and CLOSED are only left for a later one */
    if (s < io->state && io->state >= IO_S_FAILED)
        return;
    io->state = s;
}

void io_fail(struct io *io, const char *fmt, ...)
{
    if (io->state == IO_S_FAILED || io->state == IO_S_CLOSED)
        return;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(io->why, sizeof io->why, fmt, ap);
    va_end(ap);
    io_set_state(io, IO_S_FAILED);
}

/* Look at this io again in the next round of the loop: not in this one, or a busy stream would keep
 * every other from its turn. */
static void io_soon(struct io *io)
{
    static const struct timeval now = {0, 0};
    event_add(io->soon, &now);
}

void io_emit(struct io *io, enum io_event ev)
{
    if (io->fn && io->state < IO_S_CLOSING)
        io->fn(io, ev, io->arg);
}

/* Whose closing is to be told is told by the other of two, while that is open. */
static void leave_to_other(struct io *io)
{
    struct io *with = io->with;
    if (with == NULL)
        return;
    ASSERT(io->closed == NULL || with->closed == NULL);
    with->with = NULL;
    if (io->closed) {
        with->closed = io->closed;
        with->closed_arg = io->closed_arg;
        io->closed = NULL;
    }
}

static void io_destroy(struct io *io)
{
    leave_to_other(io);
    void (*closed)(void *arg) = io->closed;
    void *closed_arg = io->closed_arg;
    quota_leave(&io->stays);
    event_free(io->rd);
    event_free(io->wr);
    event_free(io->soon);
    event_free(io->timer);
    SSL_free(io->ssl);
    SSL_free(io->under);
    if (io->fd >= 0)
        close(io->fd);
    buf_free(&io->in);
    buf_free(&io->out);
    buf_free(&io->raw);
    free(io);
    if (closed)
        closed(closed_arg);
}

static void io_want(struct event *ev, bool *is, bool wanted)
{
    if (*is == wanted)
        return;
    *is = (wanted ? event_add(ev, NULL) : event_del(ev)) == 0 && wanted;
}

void io_update(struct io *io)
{
    bool live = io->state < IO_S_FAILED || io->state == IO_S_CLOSING;
    bool hs = io->state == IO_S_HANDSHAKE;
    bool hears = io->state == IO_S_CLOSING ? io->drops && !io->eof
                 : io->eof                 ? io->awaits_end
                                           : hs || (!io->paused && buf_room(&io->in) > 0);
    bool read = live && io->state != IO_S_SUSPENDED && hears;
    bool write = live && io->want_write && io->state != IO_S_SUSPENDED;
    io_want(io->rd, &io->reads, read);
    io_want(io->wr, &io->writes, write);
}

static int plain_read(struct io *io)
{
    size_t want = buf_room(&io->in);
    if (want > IO_READ_CHUNK)
        want = IO_READ_CHUNK;
    unsigned char *to = want ? buf_space(&io->in, want) : NULL;
    if (to == NULL)
        return 0;
    ssize_t n = recv(io->fd, to, want, MSG_DONTWAIT);
    if (n > 0) {
        buf_commit(&io->in, (size_t)n);
        return (size_t)n == want ? 2 : 1;
    }
    if (n == 0)
        return -2;
    if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)
        return 0;
    io_fail(io, "read: %s", strerror(errno));
    return -1;
}

static int plain_write(struct io *io)
{
    ssize_t n = send(io->fd, buf_data(&io->out), buf_len(&io->out), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n >= 0) {
        buf_drain(&io->out, (size_t)n);
        return 1;
    }
    if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)
        return 0;
    io_fail(io, "write: %s", strerror(errno));
    return -1;
}

static bool is_tls(const struct io *io)
{
    return io->ssl != NULL;
}

static void send_out(struct io *io)
{
    if (io->state == IO_S_HANDSHAKE || io->state == IO_S_SUSPENDED || io->state == IO_S_FAILED)
        return; /* a handshake that waits to write goes on waiting */
    io->want_write = false;
    while (buf_len(&io->out) > 0) {
        int r = is_tls(io) ? io_tls_write(io) : plain_write(io);
        if (r == 0)
            io->want_write = true;
        if (r <= 0)
            break;
    }
    if (buf_len(&io->out) == 0) {
        buf_shrink(&io->out);
        if (io->ending && !io->ended && io->state != IO_S_FAILED) {
            io->ended = true;
            if (is_tls(io))
                io_tls_end(io);
            shutdown(io->fd, SHUT_WR);
        }
    }
}

static void enter(struct io *io)
{
    io->depth++;
}

/* The last output of a stream without an owner is out, or cannot be sent. */
static void said_all(struct io *io)
{
    if (!io->lingers || io->why[0]) {
        io_set_state(io, IO_S_CLOSED);
    } else if (!io->drops) {
        io->drops = true;
        io_deadline(io, IO_LINGER_SECONDS);
    }
}

static bool take_place(struct io *io)
{
    return io->stays.n > 0 ||
           quota_take(&staying, &io->stays, slice_str(io->owner), 1) == QUOTA_TAKEN;
}

/* Its peer does not take the last output: it stays for it, or is cut. */
static void stay(struct io *io)
{
    if (io->closed || io->with || take_place(io))
        return;
    io_break(io);
    io_set_state(io, IO_S_CLOSED);
}

/* Leave a frame: send what callbacks queued, tell about failures, recompute interest, free. */
static void leave(struct io *io)
{
    if (io->depth > 1) {
        io->depth--;
        return;
    }
    enum io_state before = io->unsaid ? IO_S_TLS : io->state;
    io->unsaid = false;
    if (io->state < IO_S_FAILED || io->state == IO_S_CLOSING)
        send_out(io);
    if (io->was_high && io->state < IO_S_FAILED && buf_len(&io->out) <= io->high / 2) {
        io->was_high = false;
        io_emit(io, IO_DRAINED);
        if (io->state < IO_S_FAILED)
            send_out(io);
        /* what the callback wrote may be gone already: it is to hear of that too */
        if (io->was_high && buf_len(&io->out) <= io->high / 2)
            io_soon(io);
    }
    if (before < IO_S_FAILED && io->state == IO_S_FAILED)
        io_emit(io, IO_ERROR);
    if (io->state == IO_S_CLOSING && (buf_len(&io->out) == 0 || io->why[0]))
        said_all(io);
    else if (io->state == IO_S_CLOSING)
        stay(io);
    io->depth--;
    if (io->state == IO_S_CLOSED)
        io_destroy(io);
    else
        io_update(io);
}

static void handshake(struct io *io)
{
    int r = io_tls_step(io);
    if (r > 0)
        io_emit(io, IO_CONNECTED);
    else if (r < 0)
        io_emit(io, IO_ERROR);
}

static void read_in(struct io *io)
{
    size_t before = buf_len(&io->in);
    int r = 1;
    for (int i = 0; i < IO_READS_A_TURN && r > 0 && buf_room(&io->in) > 0; i++) {
        r = is_tls(io) ? io_tls_read(io) : plain_read(io);
        if (r == 1 && (is_tls(io) ? io->dry && !io_tls_held(io) : true))
            break; /* a short read: nothing more is there */
    }
    if (r > 0 && is_tls(io) && buf_room(&io->in) > 0 && io_tls_held(io))
        io_soon(io); /* the socket may not become readable for these */
    if (buf_len(&io->in) > before)
        io_emit(io, IO_READABLE);
    if (r == -2 && io->state < IO_S_FAILED && !io->eof) {
        io->eof = true;
        io_emit(io, IO_EOF);
    } else if (r == -1) {
        io_emit(io, IO_ERROR);
    }
}

/* What comes when all is said: of a socket that is closed with bytes unread the kernel says a
 * reset, for which the peer's drops what it has not read yet. */
static void drop_in(struct io *io)
{
    char scrap[IO_READ_CHUNK];
    ssize_t n = recv(io->fd, scrap, sizeof scrap, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
        return;
    if (n > 0)
        explicit_bzero(scrap, (size_t)n);
    io->dropped += n > 0 ? (size_t)n : 0;
    if (n <= 0 || io->dropped > IO_LINGER_BYTES)
        io_set_state(io, IO_S_CLOSED);
}

/* After its close_notify a peer says nothing: what comes is the end of the socket, or no TLS. */
static void hear_end(struct io *io)
{
    char b;
    if (recv(io->fd, &b, 1, MSG_PEEK | MSG_DONTWAIT) < 0 &&
        (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
        return;
    io_fail(io, "the peer has gone");
    io_emit(io, IO_ERROR);
}

static void on_read(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
    struct io *io = arg;
    enter(io);
    io->dry = false;
    if (io->state == IO_S_CLOSING)
        drop_in(io);
    else if (io->eof && io->state == IO_S_TLS)
        hear_end(io);
    if (io->state == IO_S_HANDSHAKE)
        handshake(io);
    if ((io->state == IO_S_PLAIN || io->state == IO_S_TLS) && !io->paused && !io->eof)
        read_in(io);
    leave(io);
}

/* Bytes that OpenSSL holds already: the socket may never become readable for them. They are there
 * when the input was full, and when a handshake ended outside on_read (a fast peer answers within
 * the very call that sent our flight). */
static void read_held(struct io *io)
{
    if (io->state == IO_S_TLS && !io->paused && io_tls_held(io))
        read_in(io);
}

static void on_write(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
    struct io *io = arg;
    enter(io);
    io->want_write = false;
    if (io->state == IO_S_HANDSHAKE) {
        handshake(io);
        read_held(io);
    }
    leave(io);
}

static void on_soon(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
    struct io *io = arg;
    enter(io);
    if (io->state == IO_S_HANDSHAKE)
        handshake(io);
    read_held(io);
    leave(io);
}

/* The coarse clock steps by a tick of the kernel's, as the loop's does. */
static uint64_t io_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static void io_ring(struct io *io, uint64_t now)
{
    uint64_t left = io->due > now ? io->due - now : 0;
    struct timeval t = {(time_t)(left / 1000), (suseconds_t)(left % 1000 * 1000)};
    io->rings = event_add(io->timer, &t) == 0 ? now + left : 0;
}

static void on_timer(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
    struct io *io = arg;
    uint64_t now = io_now();
    io->rings = 0;
    if (io->due == 0)
        return;
    if (now + IO_CLOCK_MS < io->due) {
        io_ring(io, now);
        return;
    }
    io->due = 0;
    if (io->state == IO_S_CLOSING) {
        if (buf_len(&io->out) > 0) /* the peer has not all of it, and is to see that */
            io_break(io);
        io_set_state(io, IO_S_CLOSED);
        io_destroy(io);
        return;
    }
    enter(io);
    io_emit(io, IO_TIMEOUT);
    leave(io);
}

struct io *io_new(struct event_base *base, int fd, size_t in_max, size_t out_max, bool wipe)
{
    struct io *io = calloc(1, sizeof *io);
    if (io == NULL) {
        close(fd);
        return NULL;
    }
    io->fd = fd;
    io->base = base;
    buf_init(&io->in, in_max);
    buf_init(&io->out, out_max);
    io->high = out_max / 2;
    buf_init(&io->raw, in_max);
    io->in.wipe = io->out.wipe = io->raw.wipe = wipe;
    io->rd = event_new(base, fd, EV_READ | EV_PERSIST, on_read, io);
    io->wr = event_new(base, fd, EV_WRITE | EV_PERSIST, on_write, io);
    io->soon = event_new(base, -1, 0, on_soon, io);
    io->timer = event_new(base, -1, 0, on_timer, io);
    if (!io->rd || !io->wr || !io->soon || !io->timer) {
        struct event *made[] = {io->rd, io->wr, io->soon, io->timer};
        for (size_t i = 0; i < ARRAY_LEN(made); i++)
            if (made[i])
                event_free(made[i]);
        free(io);
        close(fd);
        return NULL;
    }
    io_want(io->rd, &io->reads, true);
    return io;
}

void io_callback(struct io *io, io_fn fn, void *arg)
{
    io->fn = fn;
    io->arg = arg;
}

void io_owner(struct io *io, struct slice owner)
{
    if (io == NULL || owner.n >= sizeof io->owner)
        return;
    memcpy(io->owner, owner.p, owner.n);
    io->owner[owner.n] = 0;
}

void io_when_closed(struct io *io, void (*fn)(void *arg), void *arg)
{
    if (io == NULL) {
        fn(arg);
        return;
    }
    io->closed = fn;
    io->closed_arg = arg;
}

static void one_less(void *n)
{
    --*(size_t *)n;
}

void io_counted(struct io *io, size_t *n)
{
    ++*n;
    io_when_closed(io, one_less, n);
}

void io_closed_with(struct io *io, struct io *other)
{
    ASSERT(io->with == NULL && other->with == NULL);
    io->with = other;
    other->with = io;
}

void io_close(struct io *io)
{
    if (io == NULL || io->state == IO_S_CLOSED)
        return;
    io->fn = NULL;
    if (io->ssl && io->state == IO_S_TLS && !io->ended)
        io_tls_end(io);
    io_set_state(io, IO_S_CLOSED);
    event_del(io->rd);
    event_del(io->wr);
    event_del(io->soon);
    event_del(io->timer);
    if (io->depth == 0)
        io_destroy(io);
}

void io_close_flushed(struct io *io)
{
    if (io == NULL || io->state >= IO_S_CLOSING)
        return;
    if (io->state == IO_S_FAILED || io->state == IO_S_HANDSHAKE || io->state == IO_S_SUSPENDED) {
        io_close(io);
        return;
    }
    io->fn = NULL;
    io_deadline(io, IO_CLOSE_SECONDS);
    io->ending = true;
    io_set_state(io, IO_S_CLOSING);
    io_soon(io);
}

void io_close_lingering(struct io *io)
{
    if (io == NULL || io->state >= IO_S_CLOSING)
        return;
    if (!io->eof && !io->breaks) /* without a place it is closed as any other */
        io->lingers = take_place(io);
    io_close_flushed(io);
}

void io_break(struct io *io)
{
    struct linger now = {1, 0};
    io->ended = io->breaks = true;
    setsockopt(io->fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
}

int io_fd(const struct io *io)
{
    return io->fd;
}

struct buf *io_in(struct io *io)
{
    return &io->in;
}

struct buf *io_out(struct io *io)
{
    return &io->out;
}

void io_consumed(struct io *io)
{
    if (buf_len(&io->in) == 0)
        buf_shrink(&io->in);
    if (io->state == IO_S_TLS && !io->paused && buf_room(&io->in) > 0 && io_tls_held(io))
        io_soon(io);
    if (io->depth == 0)
        io_update(io);
}

void io_high_mark(struct io *io, size_t high)
{
    io->high = high;
}

void io_flush_soon(struct io *io)
{
    if (buf_len(&io->out) >= io->high)
        io->was_high = true;
    /* in this turn of the loop, once the running callback is done: no poll in between */
    if (io->depth == 0 && io->state < IO_S_FAILED && !io->want_write)
        event_active(io->soon, EV_TIMEOUT, 0);
}

void io_flush(struct io *io)
{
    if (io->depth > 0 || io->state >= IO_S_FAILED || io->want_write) {
        io_flush_soon(io);
        return;
    }
    send_out(io);
    if (buf_len(&io->out) >= io->high)
        io->was_high = true;
    io->unsaid = io->state == IO_S_FAILED;
    if (io->unsaid || io->want_write || io->was_high)
        event_active(io->soon, EV_TIMEOUT, 0);
}

int io_write(struct io *io, const void *p, size_t n)
{
    if (io->state >= IO_S_FAILED)
        return 0; /* the owner hears of it by IO_ERROR; bytes go nowhere */
    if (buf_append(&io->out, p, n) < 0)
        return -1;
    io_flush_soon(io);
    return 0;
}

size_t io_out_room(struct io *io)
{
    return buf_room(&io->out);
}

size_t io_out_len(struct io *io)
{
    return buf_len(&io->out);
}

void io_pause(struct io *io)
{
    io->paused = true;
    if (io->depth == 0)
        io_update(io);
}

void io_resume(struct io *io)
{
    if (!io->paused)
        return;
    io->paused = false;
    if (io->state == IO_S_TLS && buf_room(&io->in) > 0 && io_tls_held(io))
        io_soon(io);
    if (io->depth == 0)
        io_update(io);
}

void io_end(struct io *io)
{
    io->ending = true;
    if (io->depth == 0 && io->state < IO_S_FAILED)
        io_soon(io);
}

void io_deadline(struct io *io, unsigned seconds)
{
    uint64_t now = seconds ? io_now() : 0;
    io->due = seconds ? now + seconds * UINT64_C(1000) : 0;
    if (seconds && (io->rings == 0 || io->rings > io->due))
        io_ring(io, now);
}

const char *io_why(const struct io *io)
{
    return io->why;
}

bool io_eof(const struct io *io)
{
    return io->eof;
}

void io_await_end(struct io *io)
{
    io->awaits_end = true;
    if (io->depth == 0)
        io_update(io);
}

SSL *io_ssl(struct io *io)
{
    return io->ssl;
}

/* What there is already becomes the layer underneath, and what it has brought the first bytes of
 * the new one. */
static void tls_start(struct io *io, SSL *ssl)
{
    bool deeper = io->under != NULL || buf_len(&io->raw) > 0;
    if (io->ssl && !deeper)
        io->under = io->ssl;
    else
        SSL_free(io->ssl);
    io->ssl = ssl;
    io_set_state(io, IO_S_HANDSHAKE);
    if (deeper || buf_append(&io->raw, buf_data(&io->in), buf_len(&io->in)) < 0)
        io->no_tls = deeper ? "TLS in more than two layers" : "too much before TLS";
    buf_clear(&io->in);
    io_soon(io);
}

void io_tls_accept(struct io *io, SSL *ssl)
{
    SSL_set_accept_state(ssl);
    tls_start(io, ssl);
}

void io_tls_connect(struct io *io, SSL *ssl)
{
    SSL_set_connect_state(ssl);
    tls_start(io, ssl);
}

void io_tls_continue(struct io *io)
{
    if (io->state != IO_S_SUSPENDED)
        return;
    io_set_state(io, IO_S_HANDSHAKE);
    io_soon(io);
}
