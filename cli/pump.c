/* Copies between descriptors that may block. It writes at most PIPE_BUF at once, which a pipe that
 * polls as writable takes without blocking. */
#include "pump.h"

#include <errno.h>
#include <event2/event.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#include "buf.h"

enum { PUMP_MAX = 64 * 1024, PUMP_READ = 16 * 1024, PUMP_WRITE = PIPE_BUF };

struct pump {
    int from, to; /* -1 once ended */
    bool own_from, own_to;
    bool eof; /* nothing more to read */
    struct buf buf;
    struct event *rd, *wr;
    pump_done_fn done;
    void *arg;
};

static void close_ends(struct pump *p)
{
    event_del(p->rd);
    event_del(p->wr);
    if (p->own_from && p->from >= 0)
        close(p->from);
    if (p->own_to && p->to >= 0)
        close(p->to);
    p->from = p->to = -1;
}

static void end(struct pump *p)
{
    close_ends(p);
    p->done(p->arg, p); /* may free it */
}

static void on_readable(evutil_socket_t fd, short what UNUSED, void *arg)
{
    struct pump *p = arg;
    size_t room = buf_room(&p->buf) < PUMP_READ ? buf_room(&p->buf) : PUMP_READ;
    unsigned char *at = room ? buf_reserve(&p->buf, room) : NULL;
    if (at == NULL) {
        event_del(p->rd); /* the writer starts it again */
        return;
    }
    ssize_t n = read(fd, at, room);
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    if (n > 0) {
        buf_commit(&p->buf, (size_t)n);
        event_add(p->wr, NULL);
        return;
    }
    p->eof = true; /* EIO is how a pty says that its other side is closed */
    event_del(p->rd);
    if (buf_len(&p->buf) == 0)
        end(p);
}

static void on_writable(evutil_socket_t fd, short what UNUSED, void *arg)
{
    struct pump *p = arg;
    size_t n = buf_len(&p->buf) < PUMP_WRITE ? buf_len(&p->buf) : PUMP_WRITE;
    ssize_t w = write(fd, buf_data(&p->buf), n);
    if (w < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    if (w < 0) {
        end(p);
        return;
    }
    buf_drain(&p->buf, (size_t)w);
    if (buf_len(&p->buf) == 0) {
        event_del(p->wr);
        if (p->eof) {
            end(p);
            return;
        }
    }
    if (!p->eof)
        event_add(p->rd, NULL);
}

struct pump *pump_new(struct event_base *base, int from, bool own_from, int to, bool own_to,
                      pump_done_fn done, void *arg)
{
    struct pump *p = calloc(1, sizeof *p);
    if (p == NULL)
        return NULL;
    *p = (struct pump){
        .from = from, .to = to, .own_from = own_from, .own_to = own_to, .done = done, .arg = arg};
    buf_init_wiped(&p->buf, PUMP_MAX); /* keystrokes may be a password */
    p->rd = event_new(base, from, EV_READ | EV_PERSIST, on_readable, p);
    p->wr = event_new(base, to, EV_WRITE | EV_PERSIST, on_writable, p);
    if (p->rd == NULL || p->wr == NULL || event_add(p->rd, NULL) < 0) {
        p->own_from = p->own_to = false; /* the caller keeps what it gave */
        pump_free(p);
        return NULL;
    }
    return p;
}

void pump_free(struct pump *p)
{
    if (p == NULL)
        return;
    if (p->rd && p->wr)
        close_ends(p);
    if (p->rd)
        event_free(p->rd);
    if (p->wr)
        event_free(p->wr);
    buf_free(&p->buf);
    free(p);
}

void pump_pause(struct pump *p)
{
    if (p == NULL)
        return;
    event_del(p->rd);
    event_del(p->wr);
}

void pump_resume(struct pump *p)
{
    if (p == NULL)
        return;
    if (!p->eof && buf_room(&p->buf) > 0)
        event_add(p->rd, NULL);
    if (buf_len(&p->buf) > 0)
        event_add(p->wr, NULL);
}
