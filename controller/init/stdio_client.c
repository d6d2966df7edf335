/* The client's end: lines of standard input are POSTed to our gate, what comes back is written to
 * standard output as lines. A request waits for its answer on a connection of its own; what is no
 * request is sent alone, so that nothing overtakes it. */
#define _GNU_SOURCE 1
#include "stdio_mcp.h"

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

#include "synthetic.h"

enum {
    CALLS = 32,
    CHUNK = 64 * 1024,
    EVENT_MAX = STDIO_LINE_MAX + CHUNK,
    AGAIN_S = 2,   /* until it listens once more */
    LAST_MS = 5000 /* for answers after the end of the input */
};

enum call_kind { CALL_NONE = 0, CALL_REQUEST, CALL_NOTE, CALL_LISTEN, CALL_DELETE };

struct call {
    enum call_kind kind;
    int fd;
    bool initializes, in_body;
    struct stdio_head head;
    struct stdio_body framing;
    struct buf out, in, body;
    char ids[STDIO_MESSAGES_MAX][STDIO_ID_MAX + 1]; /* not answered */
    size_t n_ids;
};

struct client {
    const char *name; /* NULL: the guide, http://durward.internal/mcp */
    char session[STDIO_SESSION_MAX + 1];
    struct call calls[CALLS];
    struct buf in;
    bool eof, failed, may_listen;
    time_t listen_at;
};

static time_t seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec;
}

/* ---- to our client ---- */

static void put(struct client *k, const char *p, size_t n)
{
    while (n > 0) {
        ssize_t w = write(STDOUT_FILENO, p, n);
        if (w < 0 && errno == EINTR)
            continue;
        if (w <= 0) {
            k->eof = k->failed = true;
            return;
        }
        p += w;
        n -= (size_t)w;
    }
}

static void answered(struct call *c, struct slice id)
{
    for (size_t i = 0; i < c->n_ids; i++)
        if (stdio_same_id(id, slice_str(c->ids[i]))) {
            memmove(&c->ids[i], &c->ids[i + 1], (c->n_ids - i - 1) * sizeof c->ids[0]);
            c->n_ids--;
            return;
        }
}

/* A message of the server, on one line. */
static void give(struct client *k, struct call *c, struct slice text)
{
    struct stdio_message m[STDIO_MESSAGES_MAX];
    struct buf line;
    int n = stdio_scan(text, m, STDIO_MESSAGES_MAX);
    if (n <= 0)
        return;
    for (int i = 0; i < n; i++)
        if (m[i].method.n == 0)
            answered(c, m[i].id);
    buf_init(&line, EVENT_MAX);
    if (stdio_line(&line, text) == 0)
        put(k, (const char *)buf_data(&line), buf_len(&line));
    buf_free(&line);
}

/* What no JSON text would bear is left out of a sentence of others. */
static void plain(char *to, size_t size, struct slice from)
{
    size_t n = 0;
    for (size_t i = 0; i < from.n && n + 1 < size; i++) {
        unsigned char b = (unsigned char)from.p[i];
        if (b >= 0x20 && b < 0x7f && b != '"' && b != '\\')
            to[n++] = (char)b;
        else if (b == '\n' && n > 0 && to[n - 1] != ' ')
            to[n++] = ' ';
    }
    to[n] = 0;
}

static void give_errors(struct client *k, struct call *c, const char *why)
{
    char text[STDIO_ID_MAX + 800];
    while (c->n_ids > 0) {
        char id[STDIO_ID_MAX + 1];
        memcpy(id, c->ids[0], sizeof id);
        snprintf(text, sizeof text,
                 "{\"jsonrpc\":\"2.0\",\"id\":%s,\"error\":{\"code\":-32000,\"message\":\"%s\"}}",
                 id, why);
        give(k, c, slice_str(text));
        answered(c, slice_str(id));
    }
}

/* ---- calls ---- */

static void call_free(struct client *k, struct call *c, const char *why)
{
    give_errors(k, c, why);
    if (c->kind == CALL_LISTEN)
        k->listen_at = seconds() + AGAIN_S;
    if (c->fd >= 0)
        close(c->fd);
    buf_free(&c->out);
    buf_free(&c->in);
    buf_free(&c->body);
    *c = (struct call){.fd = -1};
}

static struct call *call_place(struct client *k)
{
    for (size_t i = 0; i < CALLS; i++)
        if (k->calls[i].kind == CALL_NONE)
            return &k->calls[i];
    return NULL;
}

static bool call_of(const struct client *k, enum call_kind kind)
{
    for (size_t i = 0; i < CALLS; i++)
        if (k->calls[i].kind == kind)
            return true;
    return false;
}

/* The gate of this sandbox, by the address that its name always has. */
static int dial(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(80)};
    unsigned char ip[4];
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || synthetic_v4(NAMES_SELF, ip) < 0)
        return fd;
    memcpy(&at.sin_addr, ip, sizeof ip);
    if (connect(fd, (struct sockaddr *)&at, sizeof at) == 0 && fcntl(fd, F_SETFL, O_NONBLOCK) == 0)
        return fd;
    close(fd);
    return -1;
}

static int put_head(const struct client *k, struct call *c, const char *method, size_t length)
{
    bool body = strcmp(method, "POST") == 0;
    int r = buf_printf(&c->out,
                       "%s /mcp%s%s HTTP/1.1\r\nHost: durward.internal\r\nAccept: %s"
                       "text/event-stream\r\nConnection: close\r\n",
                       method, k->name ? "/" : "", k->name ? k->name : "",
                       body ? "application/json, " : "");
    if (r >= 0 && k->session[0])
        r = buf_printf(&c->out, "Mcp-Session-Id: %s\r\n", k->session);
    if (r >= 0 && body)
        r = buf_printf(&c->out, "Content-Type: application/json\r\nContent-Length: %zu\r\n",
                       length);
    return r < 0 ? -1 : buf_append_str(&c->out, "\r\n");
}

static struct call *call_new(struct client *k, enum call_kind kind, const char *method,
                             struct slice body)
{
    struct call *c = call_place(k);
    if (c == NULL)
        return NULL;
    *c = (struct call){.kind = kind, .fd = dial()};
    buf_init(&c->out, STDIO_BODY_MAX + STDIO_HEAD_MAX);
    buf_init(&c->in, STDIO_HEAD_MAX + CHUNK);
    buf_init(&c->body, EVENT_MAX);
    if (put_head(k, c, method, body.n) < 0 || buf_append_slice(&c->out, body) < 0) {
        if (c->fd >= 0)
            close(c->fd);
        c->fd = -1;
    }
    return c;
}

/* ---- what comes back ---- */

/* One of a type that is not a message's is none, whatever is in it. */
static void take_event(struct client *k, struct call *c, struct slice event)
{
    struct buf data;
    struct slice type = {"", 0};
    buf_init(&data, EVENT_MAX);
    while (event.n > 0) {
        ssize_t end = slice_find(event, '\n');
        struct slice line = {event.p, end < 0 ? event.n : (size_t)end};
        size_t step = end < 0 ? event.n : (size_t)end + 1;
        event = (struct slice){event.p + step, event.n - step};
        if (line.n > 0 && line.p[line.n - 1] == '\r')
            line.n--;
        if (slice_starts(line, SLICE("event:")))
            type = slice_trim((struct slice){line.p + 6, line.n - 6});
        if (slice_starts(line, SLICE("data:")) && buf_append(&data, line.p + 5, line.n - 5) < 0)
            break;
    }
    if (buf_len(&data) > 0 && (type.n == 0 || slice_eq_str(type, "message")))
        give(k, c, slice_trim(buf_slice(&data)));
    buf_free(&data);
}

/* Events end in an empty line. */
static void take_events(struct client *k, struct call *c)
{
    for (;;) {
        struct slice all = buf_slice(&c->body);
        ssize_t lf = slice_find_slice(all, SLICE("\n\n")),
                crlf = slice_find_slice(all, SLICE("\n\r\n"));
        bool first = lf >= 0 && (crlf < 0 || lf < crlf);
        ssize_t end = first ? lf : crlf;
        if (end < 0)
            return;
        take_event(k, c, (struct slice){all.p, (size_t)end});
        buf_drain(&c->body, (size_t)end + (first ? 2 : 3));
    }
}

/* Its answer is whole. */
static void call_over(struct client *k, struct call *c)
{
    char why[512], text[640] = "the MCP server did not answer";
    if (c->head.status / 100 != 2) {
        plain(why, sizeof why, buf_slice(&c->body));
        snprintf(text, sizeof text, "HTTP %u: %s", c->head.status, why);
        k->may_listen = k->may_listen && c->kind != CALL_LISTEN;
        k->failed =
            k->failed || (c->head.status == 404 && c->kind == CALL_REQUEST && k->session[0]);
    } else if (c->head.json && buf_len(&c->body) > 0) {
        give(k, c, slice_trim(buf_slice(&c->body)));
    }
    call_free(k, c, text);
}

static void head_known(struct client *k, struct call *c)
{
    if (c->initializes && c->head.status == 200)
        memcpy(k->session, c->head.session, sizeof k->session);
    stdio_body_begin(&c->framing, &c->head, false);
    c->in_body = true;
}

/* False: the call is over. */
static bool call_take(struct client *k, struct call *c)
{
    if (!c->in_body) {
        ssize_t n = stdio_head_read(buf_slice(&c->in), false, &c->head);
        if (n < 0)
            call_free(k, c, "the answer cannot be read");
        if (n <= 0)
            return n == 0;
        buf_drain(&c->in, (size_t)n);
        head_known(k, c);
    }
    enum stdio_body_end end = stdio_body_take(&c->framing, &c->in, &c->body);
    if (end == STDIO_BODY_BAD) {
        call_free(k, c, "the answer cannot be read, or is too large");
        return false;
    }
    if (c->head.events && c->head.status == 200)
        take_events(k, c);
    if (end == STDIO_BODY_WHOLE)
        call_over(k, c);
    return end == STDIO_BODY_MORE;
}

static void call_readable(struct client *k, struct call *c)
{
    unsigned char *to = buf_space(&c->in, CHUNK);
    ssize_t n = to ? recv(c->fd, to, CHUNK, 0) : -1;
    if (to && n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        if (n == 0 && c->in_body && c->framing.until_end)
            call_over(k, c);
        else
            call_free(k, c, "the connection to the MCP server was cut");
        return;
    }
    buf_commit(&c->in, (size_t)n);
    (void)call_take(k, c);
}

static void call_writable(struct client *k, struct call *c)
{
    ssize_t n = send(c->fd, buf_data(&c->out), buf_len(&c->out), MSG_NOSIGNAL);
    if (n > 0)
        buf_drain(&c->out, (size_t)n);
    else if (n == 0 || (errno != EAGAIN && errno != EINTR))
        buf_clear(&c->out); /* a refusal may have been read meanwhile */
    (void)k;
}

/* ---- from our client ---- */

/* Nothing else goes out meanwhile: the session is not known, or the next could overtake it. */
static bool held(const struct client *k)
{
    for (size_t i = 0; i < CALLS; i++)
        if (k->calls[i].kind == CALL_NOTE || k->calls[i].initializes)
            return true;
    return false;
}

enum {
    KEPT = 2,
    KEPT_FOR_ANSWERS = 4
}; /* to listen, and to end the session; and for what follows */

static bool has_place(const struct client *k, size_t kept)
{
    size_t n = 0;
    for (size_t i = 0; i < CALLS; i++)
        n += k->calls[i].kind == CALL_NONE;
    return n > kept;
}

static void take_line(struct client *k, struct slice line)
{
    static const char bad[] = "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32700,"
                              "\"message\":\"that is no message of JSON-RPC\"}}\n";
    struct stdio_message m[STDIO_MESSAGES_MAX];
    line = slice_trim(line);
    int n = line.n > 0 ? stdio_scan(line, m, STDIO_MESSAGES_MAX) : 0;
    if (n < 0)
        put(k, bad, sizeof bad - 1);
    if (n <= 0)
        return;
    bool asks = false, begins = n == 1 && slice_eq_str(m[0].method, "\"initialize\"");
    for (int i = 0; i < n; i++)
        asks = asks || stdio_is_request(&m[i]);
    if (begins)
        k->session[0] = 0;
    struct call *c = call_new(k, asks ? CALL_REQUEST : CALL_NOTE, "POST", line);
    if (c == NULL)
        return; /* has_place was asked */
    c->initializes = begins;
    for (int i = 0; i < n; i++)
        if (stdio_is_request(&m[i]))
            snprintf(c->ids[c->n_ids++], sizeof c->ids[0], "%.*s", SL(m[i].id));
    k->may_listen = k->may_listen || (!asks && k->session[0]);
    if (c->fd < 0)
        call_free(k, c, "the gate of this sandbox cannot be reached");
}

/* An answer to what the server asked, or a notification: nothing waits for it. */
static bool asks_nothing(struct slice line)
{
    struct stdio_message m[STDIO_MESSAGES_MAX];
    int n = stdio_scan(slice_trim(line), m, STDIO_MESSAGES_MAX);
    for (int i = 0; i < n; i++)
        if (stdio_is_request(&m[i]))
            return false;
    return true;
}

/* Requests that have no place yet wait, and what answers the server goes before them: it may be
 * what those under way wait for. */
static bool take_next(struct client *k)
{
    unsigned char *p = buf_data(&k->in);
    size_t len = buf_len(&k->in), at = 0;
    while (at < len) {
        struct slice rest = {(const char *)p + at, len - at};
        ssize_t end = slice_find(rest, '\n');
        if (end < 0)
            return false;
        struct slice line = {rest.p, (size_t)end};
        size_t n = (size_t)end + 1;
        if (has_place(k, KEPT_FOR_ANSWERS) || asks_nothing(line)) {
            take_line(k, line);
            memmove(p + at, p + at + n, len - at - n);
            buf_cut(&k->in, n);
            return true;
        }
        at += n;
    }
    return false;
}

static void too_long(struct client *k)
{
    static const char text[] = "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32600,"
                               "\"message\":\"a message is longer than 4 MiB\"}}\n";
    put(k, text, sizeof text - 1);
    k->eof = k->failed = true;
}

static void take_lines(struct client *k)
{
    while (!held(k) && has_place(k, KEPT) && take_next(k))
        continue;
    if (buf_room(&k->in) == 0 && slice_find(buf_slice(&k->in), '\n') < 0)
        too_long(k);
    buf_shrink(&k->in);
}

static void read_input(struct client *k)
{
    size_t room = buf_room(&k->in);
    unsigned char *to = buf_space(&k->in, room < CHUNK ? room : CHUNK);
    ssize_t n = to && room ? read(STDIN_FILENO, to, room < CHUNK ? room : CHUNK) : -1;
    if (n < 0 && to && room && errno == EINTR)
        return;
    k->eof = n <= 0;
    if (n > 0)
        buf_commit(&k->in, (size_t)n);
}

/* ---- the loop ---- */

static void listen_again(struct client *k)
{
    if (!k->may_listen || k->eof || k->session[0] == 0 || held(k) || call_of(k, CALL_LISTEN) ||
        seconds() < k->listen_at)
        return;
    struct call *c = call_new(k, CALL_LISTEN, "GET", SLICE(""));
    if (c && c->fd < 0)
        call_free(k, c, "");
}

static void turn(struct client *k, int ms)
{
    struct pollfd p[1 + CALLS];
    bool takes = !k->eof && buf_room(&k->in) > 0 && !held(k);
    p[0] = (struct pollfd){.fd = takes ? STDIN_FILENO : -1, .events = POLLIN};
    for (size_t i = 0; i < CALLS; i++) {
        struct call *c = &k->calls[i];
        p[1 + i] = (struct pollfd){
            .fd = c->kind ? c->fd : -1,
            .events = (short)(POLLIN | (c->kind && buf_len(&c->out) > 0 ? POLLOUT : 0))};
    }
    if (poll(p, 1 + CALLS, ms) < 0)
        return;
    for (size_t i = 0; i < CALLS; i++) {
        struct call *c = &k->calls[i];
        if (c->kind && p[1 + i].revents & POLLOUT)
            call_writable(k, c);
        if (c->kind && p[1 + i].revents & (POLLIN | POLLHUP | POLLERR))
            call_readable(k, c);
    }
    if (p[0].revents)
        read_input(k);
    take_lines(k);
    listen_again(k);
}

static bool under_way(const struct client *k)
{
    return call_of(k, CALL_REQUEST) || call_of(k, CALL_NOTE) || call_of(k, CALL_DELETE);
}

/* The input is at its end: what was asked is answered, and the session ended. */
static void leave(struct client *k)
{
    time_t until = seconds() + LAST_MS / 1000;
    while (!k->failed && seconds() < until &&
           (under_way(k) || slice_find(buf_slice(&k->in), '\n') >= 0))
        turn(k, 100);
    if (k->session[0] == 0 || k->failed)
        return;
    struct call *c = call_new(k, CALL_DELETE, "DELETE", SLICE(""));
    if (c && c->fd < 0)
        call_free(k, c, "");
    until = seconds() + LAST_MS / 1000;
    while (call_of(k, CALL_DELETE) && seconds() < until)
        turn(k, 100);
}

static bool name_ok(const char *s)
{
    size_t n = strlen(s);
    for (size_t i = 0; i < n; i++)
        if (!ascii_is_alnum(s[i]) && s[i] != '-')
            return false;
    return n > 0 && n <= 32;
}

int stdio_client(int argc, char **argv)
{
    static struct client k;
    if (argc > 2 || (argc == 2 && !name_ok(argv[1]))) {
        fprintf(stderr, "usage: " STDIO_PROGRAM " [NAME]\n"
                        "speaks MCP on its standard input and output, with the server NAME of "
                        "this sandbox, or with the guide: what may be done, why was it refused\n");
        return 2;
    }
    signal(SIGPIPE, SIG_IGN);
    k.name = argc == 2 ? argv[1] : NULL;
    for (size_t i = 0; i < CALLS; i++)
        k.calls[i].fd = -1;
    buf_init(&k.in, STDIO_BODY_MAX);
    while (!k.eof && !k.failed)
        turn(&k, 1000);
    leave(&k);
    return k.failed;
}

bool stdio_main(int argc, char **argv, int *status)
{
    const char *slash = argc > 0 ? strrchr(argv[0], '/') : NULL;
    const char *base = slash ? slash + 1 : argc > 0 ? argv[0] : "";
    if (strcmp(base, STDIO_PROGRAM) != 0)
        return false;
    bool serves = argc > 1 && strcmp(argv[1], "--serve") == 0;
    *status = serves ? stdio_server(argc, argv) : stdio_client(argc, argv);
    return true;
}
