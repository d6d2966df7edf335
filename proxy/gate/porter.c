/* Accepts, looks at what has come without taking it, and hands over. */
#include "porter.h"

#include "http2_peek.h"
#include "ipc_msg.h"
#include "meter.h"
#include "refusal_counters.h"
#include "wire.h"

#include <errno.h>
#include <event2/event.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { BATCH = 32, AGAIN_MS = 20, PAUSE_S = 1 };

struct caller {
    struct porter *porter;
    int fd;
    struct event *ev;    /* bytes, or it has waited long enough */
    struct event *again; /* part of a head is there */
    uint64_t until;      /* us, monotonic */
    TAILQ_ENTRY(caller) link;
};

struct porter {
    struct gate *gate;
    int fd;
    struct event *ev, *again; /* again: none could be accepted */
    unsigned n;
    TAILQ_HEAD(, caller) callers; /* the oldest first */
};

/* ---- the name ---- */

static enum porter_said http1_name(struct slice in, struct porter_name *ret)
{
    ssize_t end;
    for (bool first = true; (end = slice_find_slice(in, SLICE("\r\n"))) >= 0; first = false) {
        struct slice line = {in.p, (size_t)end};
        in = (struct slice){in.p + end + 2, in.n - (size_t)end - 2};
        if (line.n == 0)
            return PORTER_BAD; /* a head without one */
        if (first || !slice_istarts(line, SLICE("host:")))
            continue;
        struct slice value = slice_trim((struct slice){line.p + 5, line.n - 5});
        if (value.n == 0 || value.n >= sizeof ret->text || memchr(value.p, 0, value.n))
            return PORTER_BAD;
        snprintf(ret->text, sizeof ret->text, "%.*s", SL(value));
        return PORTER_NAMED;
    }
    return PORTER_MORE;
}

enum porter_said porter_look(struct slice in, struct porter_name *ret)
{
    const size_t skip = sizeof HTTP2_PREFACE - 1;
    int r = http2_peek_preface(in);
    ret->http1 = r < 0;
    if (ret->http1)
        return http1_name(in, ret);
    if (r == 0)
        return PORTER_MORE;
    r = http2_peek_authority((struct slice){in.p + skip, in.n - skip}, ret->text, sizeof ret->text);
    return r > 0 ? PORTER_NAMED : r == 0 ? PORTER_MORE : PORTER_BAD;
}

/* ---- a connection that nobody takes ---- */

static const struct {
    const char *code, *kind, *status, *text;
} answers[] = {
    {"preview_unknown", "denied", "404 Not Found", "There is no preview of this name."},
    {"preview_asleep", "failed", "503 Service Unavailable",
     "The sandbox of this preview does not run."},
    {"preview_busy", "failed", "503 Service Unavailable",
     "Too many previews are being opened; try again."},
    {"malformed_host", "refused", "400 Bad Request", "The request names no host."},
};

/* Takes fd. A client of HTTP/2 sees its connection end. */
static void turn_away(struct porter *d, int fd, bool http1, const char *name, size_t which)
{
    char text[512], room[4096];
    refusal_counters_add(d->gate->refusal_counters, RECORD_DENIED, answers[which].code, name, 1);
    int n = snprintf(text, sizeof text,
                     "HTTP/1.1 %s\r\ncontent-type: text/plain\r\nX-Proxy-Error: %s %s\r\n"
                     "cache-control: no-store\r\nconnection: close\r\ncontent-length: %zu\r\n\r\n"
                     "%s\n",
                     answers[which].status, answers[which].kind, answers[which].code,
                     strlen(answers[which].text) + 1, answers[which].text);
    if (http1 && send(fd, text, (size_t)n, MSG_NOSIGNAL | MSG_DONTWAIT) == n)
        shutdown(fd, SHUT_WR);
    for (int i = 0; i < 4 && recv(fd, room, sizeof room, MSG_DONTWAIT) > 0; i++)
        ; /* what lies unread would turn the end into a reset */
    close(fd);
}

static size_t which_code(const char *code)
{
    size_t i = 0;
    while (i < ARRAY_LEN(answers) && strcmp(answers[i].code, code) != 0)
        i++;
    return i;
}

int porter_refused(struct porter *d, struct msg *m)
{
    uint8_t http1;
    char name[PORTER_NAME_MAX], code[32];
    int fd = -1;
    if (msg_get_u8(m, &http1) < 0 || msg_get_str(m, name, sizeof name) < 0 ||
        msg_get_str(m, code, sizeof code) < 0 || msg_get_fd(m, &fd) < 0)
        return m->lost && !m->bad ? 0 : -1;
    size_t which = which_code(code);
    if (d == NULL || msg_end(m) < 0 || which == ARRAY_LEN(answers)) {
        close(fd);
        return -1;
    }
    turn_away(d, fd, http1 != 0, name, which);
    return 0;
}

/* ---- connections ---- */

/* -> its descriptor */
static int caller_free(struct caller *c)
{
    int fd = c->fd;
    TAILQ_REMOVE(&c->porter->callers, c, link);
    c->porter->n--;
    if (c->ev)
        event_free(c->ev);
    if (c->again)
        event_free(c->again);
    free(c);
    return fd;
}

static void hand_over(struct caller *c, const struct porter_name *name)
{
    struct msg m;
    struct porter *d = c->porter;
    int fd = caller_free(c);
    if (d->gate->controller == NULL) {
        turn_away(d, fd, name->http1, name->text, which_code("preview_busy"));
        return;
    }
    msg_init(&m, W_PORTER);
    msg_put_u8(&m, name->http1);
    msg_put_str(&m, name->text);
    msg_put_fd(&m, fd);
    ipc_send(d->gate->controller, &m); /* a dead controller closes it */
}

static void wait_for_more(struct caller *c, bool some)
{
    struct timeval soon = {0, AGAIN_MS * 1000}, limit = {PORTER_SECONDS, 0};
    if (some) /* it would be told of the same bytes at once */
        event_add(c->again, &soon);
    else
        event_add(c->ev, &limit);
}

static void look(struct caller *c)
{
    char room[PORTER_PEEK];
    struct porter_name name = {.text = ""};
    ssize_t n = recv(c->fd, room, sizeof room, MSG_PEEK | MSG_DONTWAIT);
    bool nothing = n < 0 && (errno == EAGAIN || errno == EINTR);
    if (meter_now() >= c->until || (n <= 0 && !nothing)) {
        close(caller_free(c));
        return;
    }
    enum porter_said said =
        nothing ? PORTER_MORE : porter_look((struct slice){room, (size_t)n}, &name);
    if (said == PORTER_MORE && n == PORTER_PEEK)
        said = PORTER_BAD;
    if (said == PORTER_MORE) {
        wait_for_more(c, !nothing);
    } else if (said == PORTER_NAMED) {
        hand_over(c, &name);
    } else {
        struct porter *d = c->porter;
        turn_away(d, caller_free(c), name.http1, "-", which_code("malformed_host"));
    }
}

static void on_bytes(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
    look(arg);
}

static void admit(struct porter *d, int fd)
{
    int one = 1;
    if (d->n >= PORTER_CALLERS)
        close(caller_free(TAILQ_FIRST(&d->callers)));
    struct caller *c = calloc(1, sizeof *c);
    if (c == NULL) {
        close(fd);
        return;
    }
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    c->porter = d;
    c->fd = fd;
    c->until = meter_now() + PORTER_SECONDS * UINT64_C(1000000);
    TAILQ_INSERT_TAIL(&d->callers, c, link);
    d->n++;
    c->ev = event_new(d->gate->base, fd, EV_READ, on_bytes, c);
    c->again = event_new(d->gate->base, -1, 0, on_bytes, c);
    if (c->ev == NULL || c->again == NULL)
        close(caller_free(c));
    else
        wait_for_more(c, false);
}

static void on_accept(evutil_socket_t fd, short what UNUSED, void *arg)
{
    struct porter *d = arg;
    struct timeval later = {PAUSE_S, 0};
    for (int i = 0; i < BATCH; i++) {
        int client = accept4(fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (client >= 0) {
            admit(d, client);
            continue;
        }
        if (errno == EAGAIN || errno == EWOULDBLOCK)
            return;
        if (errno == ECONNABORTED || errno == EINTR || errno == EPROTO)
            continue;
        event_del(d->ev); /* out of descriptors: who waits stays in the kernel's queue */
        event_add(d->again, &later);
        return;
    }
}

static void on_again(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
    event_add(((struct porter *)arg)->ev, NULL);
}

struct porter *porter_new(struct gate *g, int fd)
{
    struct porter *d = calloc(1, sizeof *d);
    if (d == NULL) {
        close(fd);
        return NULL;
    }
    d->gate = g;
    d->fd = fd;
    TAILQ_INIT(&d->callers);
    d->ev = event_new(g->base, fd, EV_READ | EV_PERSIST, on_accept, d);
    d->again = event_new(g->base, -1, 0, on_again, d);
    if (d->ev == NULL || d->again == NULL || event_add(d->ev, NULL) < 0) {
        porter_free(d);
        return NULL;
    }
    return d;
}

void porter_free(struct porter *d)
{
    if (d == NULL)
        return;
    while (!TAILQ_EMPTY(&d->callers))
        close(caller_free(TAILQ_FIRST(&d->callers)));
    if (d->ev)
        event_free(d->ev);
    if (d->again)
        event_free(d->again);
    close(d->fd);
    free(d);
}
