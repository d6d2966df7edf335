/* Reads datagrams and streams and keeps each query's place until lookup has decided; a stream is
 * not read while its query is undecided. */
#include "dns_server.h"

#include <errno.h>
#include <event2/event.h>
#include <event2/util.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

enum { BATCH = 32, STREAM_QUERY_MAX = 1024 };
static const struct timeval stream_idle = {5, 0}, accept_again = {0, 500000};

struct dns_socket {
    struct dns_server *server;
    int fd;
    int family;
    struct event *readable;
};

enum stream_state { STREAM_READING, STREAM_WAITING, STREAM_WRITING };

struct dns_stream {
    struct dns_server *server;
    int fd;
    enum stream_state state;
    struct event *io;        /* of the present state's direction, with the idle time-out */
    struct dns_query *query; /* STREAM_WAITING */
    unsigned char in[2 + STREAM_QUERY_MAX]; /* length and message, perhaps with what follows */
    size_t in_n;
    unsigned char out[2 + DNS_UDP_MAX];
    size_t out_n, out_at;
    LIST_ENTRY(dns_stream) link;
};

struct dns_server {
    struct event_base *base;
    struct dns_server_ops ops;
    void *arg;
    struct dns_socket sockets[DNS_SERVER_SOCKETS];
    unsigned n_sockets;
    unsigned n_streams;
    unsigned waiting;
    struct event *retry; /* sockets that were left alone for want of descriptors */
    LIST_HEAD(, dns_stream) streams;
    LIST_HEAD(, dns_query) queries;
};

/* Where a datagram came from and was sent to. */
struct route {
    struct sockaddr_storage peer;
    socklen_t peer_n;
    bool known; /* the kernel said what the destination was */
    union {
        struct in_pktinfo v4;
        struct in6_pktinfo v6;
    };
};

struct dns_query {
    struct dns_server *server; /* NULL: gone */
    struct dns_socket *socket; /* a datagram's */
    struct dns_stream *stream; /* a stream's; NULL when that has ended */
    struct route route;
    struct dns_question question;
    LIST_ENTRY(dns_query) link;
};

static void stream_enter(struct dns_stream *t, enum stream_state state);
static void stream_advance(struct dns_stream *t);

/* ---- datagrams ---- */

static void read_control(struct msghdr *mh, struct route *r)
{
    r->known = false;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(mh); c; c = CMSG_NXTHDR(mh, c)) {
        if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_PKTINFO &&
            c->cmsg_len == CMSG_LEN(sizeof r->v4)) {
            memcpy(&r->v4, CMSG_DATA(c), sizeof r->v4);
            r->v4.ipi_spec_dst = r->v4.ipi_addr;
            r->v4.ipi_ifindex = 0;
            r->known = true;
        } else if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_PKTINFO &&
                   c->cmsg_len == CMSG_LEN(sizeof r->v6)) {
            memcpy(&r->v6, CMSG_DATA(c), sizeof r->v6);
            r->known = true;
        }
    }
}

static void datagram_send(const struct dns_socket *s, struct route *r, unsigned char *p, size_t n)
{
    union {
        struct cmsghdr align;
        char room[CMSG_SPACE(sizeof(struct in6_pktinfo))];
    } control;
    struct iovec iov = {p, n};
    struct msghdr mh = {.msg_name = &r->peer,
                        .msg_namelen = r->peer_n,
                        .msg_iov = &iov,
                        .msg_iovlen = 1,
                        .msg_control = &control};
    bool v4 = s->family == AF_INET;
    size_t info_n = v4 ? sizeof r->v4 : sizeof r->v6;
    memset(&control, 0, sizeof control);
    mh.msg_controllen = CMSG_SPACE(info_n);
    struct cmsghdr *c = CMSG_FIRSTHDR(&mh);
    c->cmsg_level = v4 ? IPPROTO_IP : IPPROTO_IPV6;
    c->cmsg_type = v4 ? IP_PKTINFO : IPV6_PKTINFO;
    c->cmsg_len = CMSG_LEN(info_n);
    if (v4)
        memcpy(CMSG_DATA(c), &r->v4, sizeof r->v4);
    else
        memcpy(CMSG_DATA(c), &r->v6, sizeof r->v6);
    /* A datagram that cannot leave now is lost, as datagrams may be; the client asks again. */
    while (sendmsg(s->fd, &mh, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 && errno == EINTR)
        ;
}

/* ---- queries ---- */

static void query_answer(struct dns_query *q, unsigned char *p, size_t n)
{
    struct dns_server *s = q->server;
    struct dns_stream *t = q->stream;
    if (s) {
        LIST_REMOVE(q, link);
        s->waiting--;
        if (q->socket)
            datagram_send(q->socket, &q->route, p, n);
    }
    free(q);
    if (t == NULL)
        return;
    t->query = NULL;
    t->out[0] = (unsigned char)(n >> 8);
    t->out[1] = (unsigned char)n;
    memcpy(t->out + 2, p, n);
    t->out_n = n + 2;
    t->out_at = 0;
    stream_enter(t, STREAM_WRITING);
}

static void query_code(struct dns_query *q, enum dns_code code)
{
    unsigned char out[DNS_UDP_MAX];
    query_answer(q, out, dns_write_code(&q->question, code, out, sizeof out));
}

void dns_query_answer_addr(struct dns_query *q, const unsigned char *v4, const unsigned char *v6)
{
    unsigned char out[DNS_UDP_MAX];
    const unsigned char *ip = q->question.type == DNS_TYPE_A ? v4 : v6;
    query_answer(q, out, dns_write_address(&q->question, ip, out, sizeof out));
}

void dns_query_nxdomain(struct dns_query *q)
{
    query_code(q, DNS_NXDOMAIN);
}

void dns_query_nodata(struct dns_query *q)
{
    query_code(q, DNS_NOERROR);
}

void dns_query_refuse(struct dns_query *q)
{
    query_code(q, DNS_REFUSED);
}

void dns_query_fail(struct dns_query *q)
{
    query_code(q, DNS_SERVFAIL);
}

/* Takes what is common to both transports. Returns the size of an answer to be sent at once, or 0:
 * with *ret NULL there is none, else the query has its place and is to be handed to lookup. */
static size_t query_begin(struct dns_server *s, const unsigned char *p, size_t n,
                          unsigned char out[DNS_UDP_MAX], struct dns_query **ret)
{
    struct dns_question question;
    enum dns_code code;
    enum dns_parse what = dns_parse(p, n, &question, &code);
    *ret = NULL;
    if (what == DNS_IGNORE)
        return 0;
    if (what == DNS_PARSED) {
        struct dns_query *q = s->waiting < DNS_SERVER_QUERIES ? calloc(1, sizeof *q) : NULL;
        if (q) {
            q->server = s;
            q->question = question;
            LIST_INSERT_HEAD(&s->queries, q, link);
            s->waiting++;
            *ret = q;
            return 0;
        }
        code = DNS_SERVFAIL;
    }
    if (s->ops.refused)
        s->ops.refused(s->arg, code);
    return dns_write_code(&question, code, out, DNS_UDP_MAX);
}

static void query_lookup(struct dns_query *q)
{
    struct dns_server *s = q->server;
    s->ops.lookup(s->arg, slice_str(q->question.host), q->question.type, q);
}

/* One datagram. Returns false when there is none. */
static bool datagram_read(struct dns_socket *s)
{
    static unsigned char in[DNS_QUERY_MAX + 1];
    unsigned char out[DNS_UDP_MAX];
    union {
        struct cmsghdr align;
        char room[256];
    } control;
    struct route r;
    struct iovec iov = {in, sizeof in};
    struct msghdr mh = {.msg_name = &r.peer,
                        .msg_namelen = sizeof r.peer,
                        .msg_iov = &iov,
                        .msg_iovlen = 1,
                        .msg_control = &control,
                        .msg_controllen = sizeof control};
    ssize_t n = recvmsg(s->fd, &mh, MSG_DONTWAIT);
    if (n < 0) /* a queued ICMP error is read like a datagram and is no reason to stop */
        return errno != EAGAIN && errno != EWOULDBLOCK;
    r.peer_n = mh.msg_namelen;
    read_control(&mh, &r);
    if (!r.known)
        return true; /* an answer from a wrong address would be worse than none */
    struct dns_query *q;
    size_t out_n = query_begin(s->server, in, (size_t)n, out, &q);
    if (q) {
        q->socket = s;
        q->route = r;
        query_lookup(q);
    } else if (out_n) {
        datagram_send(s, &r, out, out_n);
    }
    return true;
}

static void on_datagram(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
    for (int i = 0; i < BATCH && datagram_read(arg); i++)
        ;
}

/* ---- streams ---- */

static void stream_free(struct dns_stream *t)
{
    if (t->query)
        t->query->stream = NULL;
    t->server->n_streams--;
    LIST_REMOVE(t, link);
    event_free(t->io);
    close(t->fd);
    free(t);
}

/* A whole message has arrived: n bytes after the length. */
static void stream_query(struct dns_stream *t, size_t n)
{
    struct dns_query *q;
    size_t out_n = query_begin(t->server, t->in + 2, n, t->out + 2, &q);
    t->in_n -= n + 2;
    memmove(t->in, t->in + 2 + n, t->in_n);
    if (q) {
        q->stream = t;
        t->query = q;
        stream_enter(t, STREAM_WAITING);
        query_lookup(q); /* may answer at once: that only changes the state */
        return;
    }
    if (out_n == 0) { /* not a query: nothing to wait for on this stream */
        stream_free(t);
        return;
    }
    t->out[0] = (unsigned char)(out_n >> 8);
    t->out[1] = (unsigned char)out_n;
    t->out_n = out_n + 2;
    t->out_at = 0;
    stream_enter(t, STREAM_WRITING);
}

/* Looks at what has been read; ends the stream when that can be no message. */
static void stream_advance(struct dns_stream *t)
{
    if (t->in_n < 2)
        return;
    size_t n = (size_t)t->in[0] << 8 | t->in[1];
    if (n > STREAM_QUERY_MAX || n == 0)
        stream_free(t);
    else if (t->in_n >= 2 + n)
        stream_query(t, n);
}

static void stream_read(struct dns_stream *t)
{
    ssize_t n = recv(t->fd, t->in + t->in_n, sizeof t->in - t->in_n, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
        return;
    if (n <= 0) {
        stream_free(t);
        return;
    }
    t->in_n += (size_t)n;
    stream_advance(t);
}

static void stream_write(struct dns_stream *t)
{
    ssize_t n = send(t->fd, t->out + t->out_at, t->out_n - t->out_at, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
        return;
    if (n <= 0) {
        stream_free(t);
        return;
    }
    t->out_at += (size_t)n;
    if (t->out_at < t->out_n)
        return;
    stream_enter(t, STREAM_READING);
    stream_advance(t);
}

static void on_stream(evutil_socket_t fd UNUSED, short what, void *arg)
{
    struct dns_stream *t = arg;
    if (what & EV_TIMEOUT)
        stream_free(t);
    else if (t->state == STREAM_READING)
        stream_read(t);
    else if (t->state == STREAM_WRITING)
        stream_write(t);
}

static void stream_enter(struct dns_stream *t, enum stream_state state)
{
    t->state = state;
    event_del(t->io);
    if (state == STREAM_WAITING) /* nothing is read meanwhile: one query at a time */
        return;
    short what = state == STREAM_READING ? EV_READ : EV_WRITE;
    event_assign(t->io, t->server->base, t->fd, what | EV_PERSIST, on_stream, t);
    event_add(t->io, &stream_idle);
}

static void stream_new(struct dns_server *s, int fd)
{
    struct dns_stream *t = s->n_streams < DNS_SERVER_CONNECTIONS ? calloc(1, sizeof *t) : NULL;
    struct event *io = t ? event_new(s->base, fd, EV_READ | EV_PERSIST, on_stream, t) : NULL;
    if (io == NULL) {
        free(t);
        close(fd);
        return;
    }
    t->server = s;
    t->fd = fd;
    t->io = io;
    s->n_streams++;
    LIST_INSERT_HEAD(&s->streams, t, link);
    stream_enter(t, STREAM_READING);
}

static void on_connection(evutil_socket_t fd, short what UNUSED, void *arg)
{
    struct dns_socket *s = arg;
    for (int i = 0; i < BATCH; i++) {
        int c = accept4(fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (c >= 0) {
            stream_new(s->server, c);
        } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
            return;
        } else if (errno != ECONNABORTED && errno != EINTR) {
            event_del(s->readable); /* out of descriptors or memory: do not spin */
            event_add(s->server->retry, &accept_again);
            return;
        }
    }
}

static void on_retry(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
    struct dns_server *s = arg;
    for (unsigned i = 0; i < s->n_sockets; i++)
        event_add(s->sockets[i].readable, NULL);
}

/* ---- the server ---- */

struct dns_server *dns_server_new(struct event_base *base, const struct dns_server_ops *ops,
                                  void *arg)
{
    struct dns_server *s = calloc(1, sizeof *s);
    if (s == NULL)
        return NULL;
    s->retry = event_new(base, -1, 0, on_retry, s);
    if (s->retry == NULL) {
        free(s);
        return NULL;
    }
    s->base = base;
    s->ops = *ops;
    s->arg = arg;
    LIST_INIT(&s->streams);
    LIST_INIT(&s->queries);
    return s;
}

void dns_server_free(struct dns_server *s)
{
    if (s == NULL)
        return;
    struct dns_stream *t;
    struct dns_query *q;
    while ((t = LIST_FIRST(&s->streams)) != NULL)
        stream_free(t);
    while ((q = LIST_FIRST(&s->queries)) != NULL) {
        LIST_REMOVE(q, link);
        q->server = NULL;
        q->socket = NULL;
    }
    for (unsigned i = 0; i < s->n_sockets; i++) {
        event_free(s->sockets[i].readable);
        close(s->sockets[i].fd);
    }
    event_free(s->retry);
    free(s);
}

static int add(struct dns_server *s, int fd, event_callback_fn fn, int family, struct err *err)
{
    if (s->n_sockets >= DNS_SERVER_SOCKETS) {
        close(fd);
        return err_set(err, ERR_LIMIT, "more than %d DNS sockets", DNS_SERVER_SOCKETS);
    }
    struct dns_socket *k = &s->sockets[s->n_sockets];
    *k = (struct dns_socket){.server = s, .fd = fd, .family = family};
    if (evutil_make_socket_nonblocking(fd) == 0) /* a confined gate can only check it */
        k->readable = event_new(s->base, fd, EV_READ | EV_PERSIST, fn, k);
    if (k->readable == NULL || event_add(k->readable, NULL) < 0) {
        if (k->readable)
            event_free(k->readable);
        close(fd);
        return err_set(err, ERR_INTERNAL, "watching a DNS socket failed");
    }
    s->n_sockets++;
    return 0;
}

/* A socket option that its launcher may have set already (then nothing is asked of the kernel). */
static int ensure(int fd, int level, int option)
{
    int on = 0, yes = 1;
    socklen_t n = sizeof on;
    if (getsockopt(fd, level, option, &on, &n) == 0 && on)
        return 0;
    return setsockopt(fd, level, option, &yes, sizeof yes);
}

int dns_server_add_udp(struct dns_server *s, int fd, struct err *err)
{
    int family = 0;
    socklen_t n = sizeof family;
    if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &family, &n) < 0) {
        err_sys(err, "a DNS socket");
        close(fd);
        return -1;
    }
    int r = family == AF_INET ? ensure(fd, IPPROTO_IP, IP_PKTINFO)
                              : ensure(fd, IPPROTO_IPV6, IPV6_RECVPKTINFO);
    if (r < 0) {
        err_sys(err, "asking a DNS socket for destination addresses");
        close(fd);
        return -1;
    }
    /* IPv6 lets nobody send from an address that only a route makes local, unless asked to. Where
     * this fails, answers to such addresses are lost and nothing worse. */
    if (family == AF_INET6)
        (void)ensure(fd, IPPROTO_IPV6, IPV6_FREEBIND);
    return add(s, fd, on_datagram, family, err);
}

int dns_server_add_tcp(struct dns_server *s, int fd, struct err *err)
{
    return add(s, fd, on_connection, 0, err);
}

unsigned dns_server_waiting(const struct dns_server *s)
{
    return s->waiting;
}
