/* Waits for what a browser brings back, at a listener of loopback. Other users of this machine are
 * not heard there. Any page in the user's browser can send something: only what has this attempt's
 * `state` ends the wait, and that stands in no argument list, for the browser is opened at our own
 * listener, which sends it on. */
#define _GNU_SOURCE 1
#include "login_consent.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "http1_head.h"
#include "login_peer.h"

static const char begin[] = "/begin";

enum { WAIT_SECONDS = 600, PEER_SECONDS = 5, HEAD_MAX = 16 * 1024, PEERS_MAX = 256 };

int login_listen(unsigned *port, struct err *err)
{
    struct sockaddr_in sa = {.sin_family = AF_INET, .sin_port = htons((uint16_t)*port)};
    socklen_t len = sizeof sa;
    int on = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sa.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (fd >= 0)
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (fd < 0 || bind(fd, (struct sockaddr *)&sa, sizeof sa) < 0 || listen(fd, 8) < 0 ||
        getsockname(fd, (struct sockaddr *)&sa, &len) < 0) {
        err_sys(err, "a listener at 127.0.0.1:%u", *port);
        if (fd >= 0)
            close(fd);
        return -1;
    }
    *port = ntohs(sa.sin_port);
    return fd;
}

/* Nobody waits for the browser; it says nothing on this terminal. */
static void open_browser(const char *url)
{
    pid_t pid = fork();
    if (pid == 0) {
        int null = open("/dev/null", O_RDWR);
        if (null >= 0) {
            dup2(null, 0);
            dup2(null, 1);
            dup2(null, 2);
        }
        if (fork() == 0) {
            execlp("xdg-open", "xdg-open", url, (char *)NULL);
            _exit(127);
        }
        _exit(0);
    }
    if (pid > 0)
        while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
            ;
}

/* ---- the listener ---- */

/* to: where it is sent on, or NULL. */
static void answer(int fd, const char *status, const char *to, const char *text)
{
    struct buf page;
    buf_init_wiped(&page, 3 * HEAD_MAX);
    int bad =
        buf_printf(&page, "HTTP/1.1 %s\r\nContent-Type: text/plain; charset=utf-8\r\n", status);
    if (to)
        bad |= buf_printf(&page, "Location: %s\r\n", to);
    bad |= buf_printf(&page,
                      "Content-Length: %zu\r\nConnection: close\r\nCache-Control: no-store\r\n"
                      "Referrer-Policy: no-referrer\r\nX-Content-Type-Options: nosniff\r\n\r\n%s",
                      strlen(text), text);
    ssize_t sent = bad ? 0 : send(fd, buf_data(&page), buf_len(&page), MSG_NOSIGNAL);
    (void)sent; /* a browser that has gone is none of ours */
    buf_free(&page);
}

/* The head of a request, read within its time. */
static int read_head(int fd, struct buf *in)
{
    size_t scanned = 0;
    ssize_t end = 0;
    time_t till = time(NULL) + PEER_SECONDS;
    while (end == 0 && time(NULL) <= till) {
        unsigned char *to = buf_reserve(in, 1024);
        ssize_t n = to ? recv(fd, to, 1024, 0) : -1;
        if (n <= 0)
            return -1;
        buf_commit(in, (size_t)n);
        end = http1_head_end(buf_slice(in), HEAD_MAX, &scanned);
    }
    return end > 0 ? (int)end : -1;
}

/* Is it the browser that asks for this path? A name that was led to loopback is not believed. */
static bool is_ours(const struct head *h, const struct login_attempt *a, const char *path)
{
    const struct field *host = http_head_find(h, "host");
    struct slice whole = slice_str(a->redirect);
    struct slice rest = {whole.p + strlen("http://"), whole.n - strlen("http://")};
    ssize_t slash = slice_find(rest, '/');
    return slice_eq_str(h->method, "GET") && host &&
           slice_eq(host->value, (struct slice){rest.p, (size_t)slash}) &&
           slice_eq_str(h->path, path ? path : rest.p + slash);
}

static int serve(int fd, const char *url, const struct login_server *s,
                 const struct login_attempt *a, char code[LOGIN_CODE_MAX + 1], struct err *err)
{
    bool begins = false;
    static const struct limits bounds = {
        .head_bytes = HEAD_MAX, .headers = 100, .target_bytes = HEAD_MAX};
    struct timeval limit = {.tv_sec = PEER_SECONDS};
    struct refusal why;
    struct head h;
    struct buf in;
    int r = 0;
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    buf_init_wiped(&in, HEAD_MAX);
    http_head_init(&h);
    int end = read_head(fd, &in);
    if (end > 0 && http1_parse_request(&h, (struct slice){(char *)buf_data(&in), (size_t)end},
                                       &bounds, &why) == 0) {
        begins = is_ours(&h, a, begin) && !h.has_query;
        if (is_ours(&h, a, NULL))
            r = login_take_answer(s, a, h.query, code, err);
    }
    if (begins)
        answer(fd, "302 Found", url, "");
    else if (r == 1)
        answer(fd, "200 OK", NULL, "Durward has the answer. You may close this window.\n");
    else if (r < 0)
        answer(fd, "400 Bad Request", NULL, "The login failed: see the terminal.\n");
    else
        answer(fd, "404 Not Found", NULL, "This is not the answer that Durward waits for.\n");
    http_head_free(&h);
    buf_free(&in);
    return r;
}

/* ---- standard input ---- */

static int pasted(const struct login_server *s, const struct login_attempt *a,
                  char code[LOGIN_CODE_MAX + 1], struct err *err)
{
    char line[HEAD_MAX];
    size_t n = 0;
    ssize_t got;
    while (n + 1 < sizeof line && (got = read(STDIN_FILENO, line + n, 1)) == 1 && line[n] != '\n')
        n++;
    line[n] = 0;
    struct slice text = slice_trim((struct slice){line, n - (n > 0 && line[n - 1] == '\r')});
    struct slice head = slice_str(a->redirect);
    int r = slice_starts(text, head) && text.n > head.n && text.p[head.n] == '?'
                ? login_take_answer(s, a, (struct slice){text.p + head.n + 1, text.n - head.n - 1},
                                    code, err)
                : 0;
    explicit_bzero(line, sizeof line);
    return r != 0 ? r
                  : err_set(err, ERR_DENIED,
                            "that is not the address that this login's answer leads to (it begins "
                            "with %s?)",
                            a->redirect);
}

/* ---- both ---- */

/* Another user's connection is closed unread, and counts for nothing: it is told of once. */
static bool is_stranger(int fd, bool *told)
{
    if (login_peer_ours(fd))
        return false;
    if (!*told)
        fprintf(stderr,
                "A connection of another user of this machine was not heard. If it was your "
                "browser's,\nlog in with --no-browser.\n");
    *told = true;
    return true;
}

static int wait_for(int listener, bool paste, const char *url, const struct login_server *s,
                    const struct login_attempt *a, char code[LOGIN_CODE_MAX + 1], struct err *err)
{
    bool told = false;
    time_t till = time(NULL) + WAIT_SECONDS;
    for (int peers = 0; peers < PEERS_MAX;) {
        struct pollfd p[2] = {{listener, POLLIN, 0}, {paste ? STDIN_FILENO : -1, POLLIN, 0}};
        time_t left = till - time(NULL);
        int n = left > 0 ? poll(p, 2, (int)left * 1000) : 0;
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return err_set(err, ERR_UNREADY, "nobody answered within %d minutes",
                           WAIT_SECONDS / 60);
        if (p[1].revents)
            return pasted(s, a, code, err);
        int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        bool stranger = fd >= 0 && is_stranger(fd, &told);
        int r = fd < 0 || stranger ? 0 : serve(fd, url, s, a, code, err);
        if (fd >= 0)
            close(fd);
        if (r != 0)
            return r;
        peers += !stranger;
    }
    return err_set(err, ERR_LIMIT, "others than the browser came %d times", PEERS_MAX);
}

int login_consent(int listener, bool browser, const char *url, const struct login_server *s,
                  const struct login_attempt *a, char code[LOGIN_CODE_MAX + 1], struct err *err)
{
    fprintf(stderr, "Open this address in a browser and agree:\n\n%s\n\n", url);
    if (browser) {
        char at[sizeof a->redirect + sizeof begin];
        int n = (int)(strrchr(a->redirect, '/') - a->redirect);
        snprintf(at, sizeof at, "%.*s%s", n, a->redirect, begin);
        open_browser(at);
        fprintf(stderr, "Waiting for the answer at 127.0.0.1.\n");
    } else {
        fprintf(stderr,
                "At the end the browser goes to %s?..., which it may not reach.\n"
                "Copy that address from it, and paste it here: ",
                a->redirect);
    }
    fflush(stderr);
    return wait_for(listener, !browser, url, s, a, code, err) == 1 ? 0 : -1;
}
