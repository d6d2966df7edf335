/* The server's end: HTTP at a port of loopback on one side, a process that speaks MCP over its
 * standard input and output on the other, one for each session. It lives in the server's own
 * sandbox and is as little trusted as the server: whoever reads what it says reads it strictly. */
#define _GNU_SOURCE 1
#include "stdio_server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { LOOK_MS = 250, IDLE_MAX = 30 * 86400 };

int64_t stdio_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec;
}

/* ---- connections ---- */

static void conn_close(struct stdio_server *v, struct conn *c)
{
    if (c->fd >= 0)
        close(c->fd);
    buf_free(&c->in);
    buf_free(&c->body);
    buf_free(&c->out);
    *c = (struct conn){.fd = -1};
    v->used = stdio_now();
}

static void conn_open(struct stdio_server *v)
{
    int fd = accept4(v->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0)
        return;
    for (size_t i = 0; i < STDIO_CONNS; i++) {
        struct conn *c = &v->conns[i];
        if (c->fd >= 0)
            continue;
        *c = (struct conn){.fd = fd};
        buf_init(&c->in, STDIO_HEAD_MAX + STDIO_CHUNK);
        buf_init(&c->body, STDIO_BODY_MAX);
        buf_init(&c->out, STDIO_OUT_MAX + STDIO_LINE_MAX + STDIO_CHUNK);
        return;
    }
    close(fd);
}

static bool streams(const struct conn *c)
{
    return c->state == CONN_ANSWERS || c->state == CONN_LISTENS;
}

static void conn_answer(struct conn *c, const char *status, const char *type, const char *text)
{
    int r = buf_printf(&c->out, "HTTP/1.1 %s\r\nContent-Length: %zu\r\n%s%s%s\r\n%s", status,
                       strlen(text), *text ? "Content-Type: " : "", *text ? type : "",
                       *text ? "\r\n" : "", text);
    c->over = c->over || r < 0;
    c->state = CONN_HEAD;
}

static void conn_refuse(struct conn *c, const char *status, const char *why)
{
    char text[256];
    snprintf(text, sizeof text,
             "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32000,\"message\":\"%s\"}}",
             why);
    conn_answer(c, status, "application/json", text);
}

static void conn_stream(struct conn *c, enum conn_state state, struct session *s)
{
    c->state = state;
    c->session = s;
    if (buf_printf(&c->out,
                   "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: "
                   "no-store\r\nTransfer-Encoding: chunked\r\nMcp-Session-Id: %s\r\n\r\n",
                   s->id) < 0)
        c->over = true;
}

/* One event. -1: there is no room, and the connection ends. */
static int conn_event(struct conn *c, struct slice line)
{
    enum { AROUND = 8 }; /* "data: " and two line feeds */
    int r = buf_printf(&c->out, "%zx\r\ndata: ", line.n + AROUND) < 0 ||
                    buf_append_slice(&c->out, line) < 0 || buf_append_str(&c->out, "\n\n\r\n") < 0
                ? -1
                : 0;
    c->over = c->over || r < 0;
    return r;
}

static void conn_stream_end(struct conn *c)
{
    if (buf_append_str(&c->out, "0\r\n\r\n") < 0)
        c->over = true;
    c->state = CONN_HEAD;
    c->session = NULL;
    c->n_ids = 0;
}

/* ---- what a server says ---- */

static bool waits_for(struct conn *c, struct slice id)
{
    for (size_t i = 0; i < c->n_ids; i++)
        if (stdio_same_id(id, slice_str(c->ids[i]))) {
            memmove(&c->ids[i], &c->ids[i + 1], (c->n_ids - i - 1) * sizeof c->ids[0]);
            c->n_ids--;
            return true;
        }
    return false;
}

/* Whom the server tells what nobody asked for: who waits for an answer, else who listens. */
static struct conn *conn_listening(struct stdio_server *v, const struct session *s)
{
    struct conn *best = NULL;
    for (size_t i = 0; i < STDIO_CONNS; i++) {
        struct conn *c = &v->conns[i];
        if (c->fd < 0 || !streams(c) || c->session != s)
            continue;
        if (best == NULL || (best->state == CONN_LISTENS && c->state == CONN_ANSWERS))
            best = c;
    }
    return best;
}

static void answer_to(struct stdio_server *v, struct session *s, struct slice id, struct slice line)
{
    for (size_t i = 0; i < STDIO_CONNS; i++) {
        struct conn *c = &v->conns[i];
        if (c->fd < 0 || c->state != CONN_ANSWERS || c->session != s || !waits_for(c, id))
            continue;
        if (conn_event(c, line) == 0 && c->n_ids == 0)
            conn_stream_end(c);
        return;
    }
}

/* What is no message is what a program prints beside them: dropped. */
void stdio_said(struct stdio_server *v, struct session *s, struct slice line)
{
    struct stdio_message m[STDIO_MESSAGES_MAX];
    int n = stdio_scan(line, m, STDIO_MESSAGES_MAX);
    if (n <= 0)
        return;
    s->used = stdio_now();
    if (n == 1 && m[0].method.n == 0) {
        answer_to(v, s, m[0].id, line);
        return;
    }
    if (n > 1 && m[0].method.n == 0) { /* to a batch: whole, to who asked for the first of it */
        for (int i = 1; i < n; i++)
            for (size_t k = 0; k < STDIO_CONNS; k++)
                if (v->conns[k].fd >= 0 && v->conns[k].session == s)
                    (void)waits_for(&v->conns[k], m[i].id);
        answer_to(v, s, m[0].id, line);
        return;
    }
    struct conn *c = conn_listening(v, s);
    if (c)
        (void)conn_event(c, line);
    else if (buf_append_slice(&s->queue, line) < 0 || buf_append(&s->queue, "\n", 1) < 0)
        buf_clear(&s->queue); /* session_full keeps that from happening */
}

static void flush_queue(struct conn *c, struct session *s)
{
    while (buf_len(&s->queue) > 0) {
        struct slice all = buf_slice(&s->queue);
        ssize_t end = slice_find(all, '\n');
        if (end < 0 || conn_event(c, (struct slice){all.p, (size_t)end}) < 0)
            break;
        buf_drain(&s->queue, (size_t)end + 1);
    }
    buf_shrink(&s->queue);
}

/* Whoever waits for it is told, in the words of the protocol. */
void stdio_session_over(struct stdio_server *v, struct session *s, const char *why)
{
    char text[STDIO_ID_MAX + 256];
    for (size_t i = 0; i < STDIO_CONNS; i++) {
        struct conn *c = &v->conns[i];
        if (c->fd < 0 || c->session != s)
            continue;
        for (size_t k = 0; k < c->n_ids; k++) {
            snprintf(text, sizeof text,
                     "{\"jsonrpc\":\"2.0\",\"id\":%s,\"error\":{\"code\":-32000,\"message\":\"%s\"}"
                     "}",
                     c->ids[k], why);
            (void)conn_event(c, slice_str(text));
        }
        conn_stream_end(c);
    }
}

/* ---- requests ---- */

static bool wants_session(const struct stdio_message *m, int n)
{
    return n == 1 && slice_eq_str(m->method, "\"initialize\"");
}

static void note_ids(struct conn *c, const struct stdio_message *m, int n)
{
    c->n_ids = 0;
    for (int i = 0; i < n; i++)
        if (stdio_is_request(&m[i]))
            snprintf(c->ids[c->n_ids++], sizeof c->ids[0], "%.*s", SL(m[i].id));
}

static void on_post(struct stdio_server *v, struct conn *c)
{
    struct stdio_message m[STDIO_MESSAGES_MAX];
    int n = stdio_scan(buf_slice(&c->body), m, STDIO_MESSAGES_MAX);
    const char *why = "the session is over";
    if (n <= 0) {
        conn_refuse(c, "400 Bad Request", "that is no message of JSON-RPC");
        return;
    }
    bool fresh = c->head.session[0] == 0 && wants_session(m, n);
    struct session *s = fresh ? stdio_session_new(v, &why) : stdio_session_find(v, c->head.session);
    if (s == NULL) {
        conn_refuse(c,
                    fresh                ? "503 Service Unavailable"
                    : c->head.session[0] ? "404 Not Found"
                                         : "400 Bad Request",
                    fresh || c->head.session[0] ? why : "a session begins with initialize");
        return;
    }
    note_ids(c, m, n);
    s->used = stdio_now();
    if (stdio_line(&s->to, buf_slice(&c->body)) < 0)
        conn_refuse(c, "503 Service Unavailable", "the server does not read what it is sent");
    else if (c->n_ids > 0)
        conn_stream(c, CONN_ANSWERS, s);
    else
        conn_answer(c, "202 Accepted", "", "");
}

static void on_get(struct stdio_server *v, struct conn *c)
{
    struct session *s = stdio_session_find(v, c->head.session);
    if (s == NULL) {
        conn_refuse(c, c->head.session[0] ? "404 Not Found" : "405 Method Not Allowed",
                    "there is no such session");
        return;
    }
    for (size_t i = 0; i < STDIO_CONNS; i++) /* the newest listens */
        if (v->conns[i].fd >= 0 && v->conns[i].state == CONN_LISTENS && v->conns[i].session == s)
            conn_stream_end(&v->conns[i]);
    conn_stream(c, CONN_LISTENS, s);
    flush_queue(c, s);
}

static void on_request(struct stdio_server *v, struct conn *c)
{
    c->over = c->over || c->head.close;
    if (strcmp(c->head.path, "/mcp") != 0) {
        conn_refuse(c, "404 Not Found", "there is nothing here");
    } else if (strcmp(c->head.method, "POST") == 0) {
        on_post(v, c);
    } else if (strcmp(c->head.method, "GET") == 0) {
        on_get(v, c);
    } else if (strcmp(c->head.method, "DELETE") == 0) {
        struct session *s = stdio_session_find(v, c->head.session);
        if (s)
            stdio_session_end(v, s, "the session was ended");
        if (s)
            conn_answer(c, "200 OK", "", "");
        else
            conn_refuse(c, "404 Not Found", "there is no such session");
    } else {
        conn_refuse(c, "405 Method Not Allowed", "POST, GET or DELETE");
    }
    buf_clear(&c->body);
    buf_shrink(&c->body);
}

/* As many requests as are there; while one is answered the next waits. */
static void conn_take(struct stdio_server *v, struct conn *c)
{
    while (c->fd >= 0 && !c->over && buf_len(&c->in) > 0 && !streams(c)) {
        if (c->state == CONN_HEAD) {
            ssize_t n = stdio_head_read(buf_slice(&c->in), true, &c->head);
            if (n < 0) {
                conn_refuse(c, "400 Bad Request", "that is no request");
                c->over = true;
            }
            if (n <= 0)
                return;
            buf_drain(&c->in, (size_t)n);
            stdio_body_begin(&c->framing, &c->head, true);
            c->state = CONN_BODY;
        }
        enum stdio_body_end end = c->framing.left == 0 && !c->framing.chunked
                                      ? STDIO_BODY_WHOLE
                                      : stdio_body_take(&c->framing, &c->in, &c->body);
        if (end == STDIO_BODY_BAD) {
            conn_refuse(c, "413 Content Too Large", "the message is too large");
            c->over = true;
        }
        if (end != STDIO_BODY_WHOLE)
            return;
        on_request(v, c);
    }
}

static void conn_readable(struct stdio_server *v, struct conn *c)
{
    size_t room = buf_room(&c->in);
    unsigned char *to = buf_space(&c->in, room < STDIO_CHUNK ? room : STDIO_CHUNK);
    if (to == NULL || room == 0)
        return;
    ssize_t n = recv(c->fd, to, room < STDIO_CHUNK ? room : STDIO_CHUNK, 0);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        conn_close(v, c);
        return;
    }
    buf_commit(&c->in, (size_t)n);
    v->used = stdio_now();
    conn_take(v, c);
}

static void conn_writable(struct stdio_server *v, struct conn *c)
{
    while (buf_len(&c->out) > 0) {
        ssize_t n = send(c->fd, buf_data(&c->out), buf_len(&c->out), MSG_NOSIGNAL);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (n <= 0) {
            conn_close(v, c);
            return;
        }
        buf_drain(&c->out, (size_t)n);
        c->written = stdio_now();
    }
    buf_shrink(&c->out);
    if (c->over && !streams(c))
        conn_close(v, c);
    else
        conn_take(v, c);
}

/* ---- the loop ---- */

/* More of it would only lie here. */
static bool session_full(const struct stdio_server *v, const struct session *s)
{
    size_t held = buf_len(&s->queue);
    for (size_t i = 0; i < STDIO_CONNS; i++)
        if (v->conns[i].fd >= 0 && v->conns[i].session == s)
            held += buf_len(&v->conns[i].out);
    return held > STDIO_OUT_MAX;
}

static size_t watch_all(struct stdio_server *v, struct pollfd *p, size_t *sessions)
{
    size_t n = 0;
    p[n++] = (struct pollfd){.fd = v->listener, .events = POLLIN};
    for (size_t i = 0; i < STDIO_CONNS; i++) {
        struct conn *c = &v->conns[i];
        bool takes = c->fd >= 0 && !c->over && buf_room(&c->in) > 0;
        p[n++] = (struct pollfd){
            .fd = c->fd,
            .events = (short)((takes ? POLLIN : 0) | (buf_len(&c->out) > 0 ? POLLOUT : 0))};
    }
    *sessions = n;
    for (size_t i = 0; i < STDIO_SESSIONS; i++) {
        struct session *s = &v->sessions[i];
        p[n++] =
            (struct pollfd){.fd = s->pid && !session_full(v, s) ? s->out : -1, .events = POLLIN};
        p[n++] =
            (struct pollfd){.fd = s->pid && buf_len(&s->to) > 0 ? s->in : -1, .events = POLLOUT};
    }
    return n;
}

static bool busy(const struct stdio_server *v)
{
    for (size_t i = 0; i < STDIO_CONNS; i++)
        if (v->conns[i].fd >= 0 && streams(&v->conns[i]))
            return true;
    return false;
}

static void ping(struct conn *c)
{
    if (stdio_now() - c->written < STDIO_PING_S || buf_len(&c->out) > 0)
        return;
    c->written = stdio_now();
    if (buf_append_str(&c->out, "3\r\n:\n\n\r\n") < 0)
        c->over = true;
}

static void turn(struct stdio_server *v)
{
    struct pollfd p[1 + STDIO_CONNS + 2 * STDIO_SESSIONS];
    size_t sessions, n = watch_all(v, p, &sessions);
    if (poll(p, n, LOOK_MS) < 0)
        return;
    for (size_t i = 0; i < STDIO_SESSIONS; i++) {
        struct session *s = &v->sessions[i];
        if (s->pid && p[sessions + 2 * i + 1].revents)
            stdio_session_write(s);
        if (s->pid && p[sessions + 2 * i].revents)
            stdio_session_read(v, s);
    }
    for (size_t i = 0; i < STDIO_CONNS; i++) {
        struct conn *c = &v->conns[i];
        short got = p[1 + i].revents;
        if (c->fd >= 0 && got & (POLLIN | POLLHUP | POLLERR))
            conn_readable(v, c);
        if (c->fd >= 0 && streams(c))
            ping(c);
        if (c->fd >= 0 && buf_len(&c->out) > 0)
            conn_writable(v, c);
    }
    for (size_t i = 0; i < STDIO_SESSIONS; i++)
        if (v->sessions[i].pid)
            stdio_session_write(&v->sessions[i]);
    if (p[0].revents)
        conn_open(v);
    stdio_sessions_look(v);
}

static int listen_here(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(STDIO_PORT)};
    int yes = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) == 0 &&
        bind(fd, (struct sockaddr *)&at, sizeof at) == 0 && listen(fd, STDIO_CONNS) == 0)
        return fd;
    fprintf(stderr, STDIO_PROGRAM ": port %d: %s\n", STDIO_PORT, strerror(errno));
    return -1;
}

int stdio_server(int argc, char **argv)
{
    static struct stdio_server v;
    uint64_t idle;
    if (argc < 5 || slice_u64(slice_str(argv[2]), IDLE_MAX, &idle) < 0 || idle == 0 ||
        strcmp(argv[3], "--") != 0) {
        fprintf(stderr, "usage: " STDIO_PROGRAM " --serve SECONDS -- COMMAND [WORD...]\n");
        return 2;
    }
    signal(SIGPIPE, SIG_IGN);
    v.command = argv + 4;
    v.idle = (int64_t)idle;
    v.used = stdio_now();
    for (size_t i = 0; i < STDIO_CONNS; i++)
        v.conns[i].fd = -1;
    v.listener = listen_here();
    if (v.listener < 0 || write(STDOUT_FILENO, STDIO_READY, sizeof STDIO_READY - 1) < 0)
        return 1;
    while (busy(&v) || stdio_now() - v.used <= v.idle)
        turn(&v);
    return 0;
}
