/* A connection that the porter handed over, by way of the controller: HTTP/1.1, or HTTP/2 by prior
 * knowledge, in clear, since TLS ends where browsers reach it. */
#include "session_internal.h"

#include "http2_peek.h"
#include "inbound.h"
#include "ipc_msg.h"
#include "listener.h"
#include "preview_sessions.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void on_closed(void *arg)
{
    struct gate *g = arg;
    g->n_inbound--;
}

static void on_first(struct io *io, enum io_event ev, void *arg)
{
    struct session *s = arg;
    if (ev == IO_DRAINED || ev == IO_CONNECTED)
        return;
    if (ev != IO_READABLE) {
        session_close(s, "closed before its first request");
        return;
    }
    int preface = http2_peek_preface(buf_slice(io_in(io)));
    if (preface == 0)
        return; /* more of it */
    io_callback(io, NULL, NULL);
    s->knows_http2 = preface > 0;
    session_start_http(s);
}

static int read_inbound(struct msg *m, struct inbound *in, int *fd)
{
    uint8_t tls;
    uint32_t port;
    char host[HOST_TEXT_MAX];
    memset(in, 0, sizeof *in);
    *fd = -1;
    if (msg_get_str(m, host, sizeof host) < 0 || msg_get_u32(m, &port) < 0 ||
        msg_get_u8(m, &tls) < 0 || msg_get_str(m, in->service, sizeof in->service) < 0)
        return -1;
    if (msg_get_fd(m, fd) < 0)
        return m->lost && !m->bad ? 0 : -1; /* our table is full: that connection is lost */
    if (msg_end(m) < 0 || port == 0 || port > 65535 || tls > 1 || in->service[0] == 0 ||
        authority_host(&in->at, slice_str(host)) < 0) {
        close(*fd);
        return -1;
    }
    in->at.scheme = tls ? SCHEME_HTTPS : SCHEME_HTTP;
    in->at.port = (uint16_t)port;
    return 0;
}

int session_inbound(struct gate *g, struct msg *m)
{
    int fd;
    struct inbound in;
    if (read_inbound(m, &in, &fd) < 0)
        return -1;
    if (fd < 0)
        return 0;
    in.port = preview_sessions_port(g->previews, in.service);
    if (g->draining || g->n_inbound >= INBOUND_SESSIONS || g->n_routes == 0 || in.port == 0) {
        close(fd);
        return 0;
    }
    g->n_inbound++;
    struct session *s = session_make(g, fd, ENTRY_INBOUND, on_closed, g);
    if (s == NULL)
        return 0;
    s->inbound = malloc(sizeof *s->inbound);
    if (s->inbound == NULL) {
        session_close(s, "out of memory");
        return 0;
    }
    *s->inbound = in;
    s->authority = in.at;
    s->entry_name = "inbound";
    io_callback(s->io, on_first, s);
    io_deadline(s->io, g->limits.head_seconds);
    return 0;
}

static void end_some(struct gate *g, bool (*ends)(const struct inbound *in, const void *arg),
                     const void *arg)
{
    struct session *s, *next;
    for (s = LIST_FIRST(&g->sessions); s; s = next) {
        next = LIST_NEXT(s, link);
        if (s->inbound && ends(s->inbound, arg))
            session_close(s, "its preview may be seen no more");
    }
}

static bool is_elsewhere(const struct inbound *in, const void *previews)
{
    return preview_sessions_port(previews, in->service) != in->port;
}

int session_inbound_may(struct gate *g, struct msg *m)
{
    if (preview_sessions_may(g->previews, m) < 0)
        return -1;
    end_some(g, is_elsewhere, g->previews);
    return 0;
}

struct ended {
    char service[WIRE_SERVICE_MAX + 1];
    unsigned port; /* 0: it has none */
};

static bool is_of(const struct inbound *in, const void *arg)
{
    const struct ended *e = arg;
    return e->service[0] == 0 || strcmp(in->service, e->service) == 0 || in->port == e->port;
}

int session_inbound_end(struct gate *g, struct msg *m)
{
    struct ended e;
    if (msg_get_str(m, e.service, sizeof e.service) < 0 || msg_end(m) < 0)
        return -1;
    e.port = preview_sessions_port(g->previews, e.service);
    preview_sessions_forget(g->previews, e.service);
    end_some(g, is_of, &e);
    return 0;
}

void session_inbound_request(struct session *s, const struct requester *by, struct head *h)
{
    unsigned status = h->form == TARGET_ORIGIN ? session_host_refused(s, h) : 400;
    if (status == 0 && http_head_find(h, "host") == NULL)
        status = 400; /* of HTTP/1.0: here the name says who asks whom */
    if (status) {
        bool form = h->form != TARGET_ORIGIN;
        if (by->close_after)
            by->close_after(by->downstream.self);
        session_refuse(s, by, h, &s->authority, status,
                       form            ? "bad_target"
                       : status == 421 ? "authority_mismatch"
                                       : "malformed_host");
        return;
    }
    struct exchange *x = session_open_exchange(s, by);
    if (x)
        exchange_inbound(x, h, s->inbound);
}
