/* Carries standard input, output and signals over the connection in frames, in a loop of poll and a
 * signalfd. A second ^C within a second is sent as SIGKILL. */
#include "exec_session.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "api_client.h"
#include "buf.h"
#include "run.h"
#include "terminal.h"

enum {
    HEAD = 5,
    FRAME_MAX = 64 * 1024,
    OUT_HIGH = 256 * 1024,
    CHUNK = 16 * 1024,
    HEAD_LINES_MAX = 16 * 1024,
};
enum { TO_INPUT = 0, TO_SIGNAL, TO_SIZE };
enum { FROM_STARTED = 0, FROM_OUT, FROM_ERR, FROM_EXIT, FROM_DETACHED };
enum { KEY_P = 0x10, KEY_Q = 0x11 }; /* ^P ^Q, as docker attach has them */

struct session {
    int sock, signals;
    bool input, raw, ended, kept;
    bool key_p;         /* the last key was ^P, which is held back */
    struct buf in, out; /* from and to the daemon */
    struct exec_result *result;
    time_t last_int;
};

static void finish(struct session *s, int status, const char *text)
{
    s->result->status = status;
    snprintf(s->result->text, sizeof s->result->text, "%s", text);
    s->ended = true;
}

static void detach(struct session *s, const char *text)
{
    s->result->detached = true;
    finish(s, 0, text);
}

static void put_frame(struct session *s, unsigned char type, const void *p, size_t n)
{
    const unsigned char head[HEAD] = {type, (unsigned char)(n >> 24), (unsigned char)(n >> 16),
                                      (unsigned char)(n >> 8), (unsigned char)n};
    if (buf_append(&s->out, head, HEAD) < 0 || (n && buf_append(&s->out, p, n) < 0))
        finish(s, EXIT_DURWARD_FAILED, "out of memory");
}

/* ---- from the daemon ---- */

static int write_all(int fd, const unsigned char *p, size_t n)
{
    while (n > 0) {
        ssize_t w = write(fd, p, n);
        if (w < 0 && errno == EAGAIN) { /* somebody made our terminal non-blocking */
            struct pollfd wait = {.fd = fd, .events = POLLOUT};
            (void)poll(&wait, 1, 1000);
            continue;
        }
        if (w < 0 && errno != EINTR)
            return -1;
        p += w > 0 ? w : 0;
        n -= w > 0 ? (size_t)w : 0;
    }
    return 0;
}

static void on_exit_frame(struct session *s, const unsigned char *p, size_t n)
{
    json_t *v = json_loadb((const char *)p, n, JSON_REJECT_DUPLICATES, NULL);
    const json_t *code = json_object_get(v, "exit_code");
    const char *text = json_string_value(json_object_get(v, "message"));
    if (!json_is_integer(code) || json_integer_value(code) < 0 || json_integer_value(code) > 255)
        finish(s, EXIT_DURWARD_FAILED, "the daemon's answer is malformed");
    else if (json_is_true(json_object_get(v, "timed_out")))
        finish(s, (int)json_integer_value(code), "the command was ended: its time was over");
    else
        finish(s, (int)json_integer_value(code), text ? text : "");
    json_decref(v);
}

static void on_started(struct session *s, const unsigned char *p, size_t n)
{
    json_t *v = json_loadb((const char *)p, n, JSON_REJECT_DUPLICATES, NULL);
    const char *id = json_string_value(json_object_get(v, "id"));
    if (id)
        snprintf(s->result->id, sizeof s->result->id, "%s", id);
    json_decref(v);
}

static void take_frame(struct session *s, unsigned char type, const unsigned char *p, size_t n)
{
    switch (type) {
    case FROM_STARTED:
        on_started(s, p, n);
        break;
    case FROM_EXIT:
        on_exit_frame(s, p, n);
        break;
    case FROM_DETACHED:
        detach(s, "another client has attached to it");
        break;
    default:
        if (write_all(type == FROM_OUT ? 1 : 2, p, n) < 0)
            finish(s, 128 + SIGPIPE, "");
        break;
    }
}

static void take_frames(struct session *s)
{
    while (!s->ended && buf_len(&s->in) >= HEAD) {
        const unsigned char *p = buf_data(&s->in);
        size_t n = (size_t)p[1] << 24 | (size_t)p[2] << 16 | (size_t)p[3] << 8 | p[4];
        if (n > FRAME_MAX || p[0] > FROM_DETACHED) {
            finish(s, EXIT_DURWARD_FAILED, "the daemon's answer is malformed");
            return;
        }
        if (buf_len(&s->in) < HEAD + n)
            return;
        take_frame(s, p[0], p + HEAD, n);
        buf_drain(&s->in, HEAD + n);
    }
}

static void receive(struct session *s)
{
    unsigned char *p = buf_reserve(&s->in, CHUNK);
    ssize_t n = p ? recv(s->sock, p, CHUNK, MSG_DONTWAIT) : -1;
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        finish(s, EXIT_DURWARD_FAILED, "the daemon is gone");
        return;
    }
    buf_commit(&s->in, (size_t)n);
    take_frames(s);
}

/* ---- to the daemon ---- */

static void deliver(struct session *s)
{
    ssize_t n = send(s->sock, buf_data(&s->out), buf_len(&s->out), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n > 0)
        buf_drain(&s->out, (size_t)n);
    else if (n < 0 && errno != EAGAIN && errno != EINTR)
        receive(s); /* it may have had a last word */
}

/* Takes ^P ^Q out of what was typed. How many bytes are left to send. room: one more than n. */
static size_t look_for_keys(struct session *s, unsigned char *room, size_t n)
{
    size_t at = 0;
    unsigned char typed[CHUNK];
    memcpy(typed, room, n);
    for (size_t i = 0; i < n && !s->ended; i++) {
        if (s->key_p && typed[i] == KEY_Q)
            detach(s, "");
        if (s->key_p && !s->ended)
            room[at++] = KEY_P;
        s->key_p = !s->ended && typed[i] == KEY_P;
        if (!s->ended && !s->key_p)
            room[at++] = typed[i];
    }
    explicit_bzero(typed, n);
    return at;
}

static void read_input(struct session *s)
{
    unsigned char room[CHUNK + 1];
    ssize_t n = read(STDIN_FILENO, room, CHUNK);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0)
        s->input = false;
    size_t left = n > 0 ? (size_t)n : 0;
    if (left > 0 && s->raw && s->kept)
        left = look_for_keys(s, room, left);
    if (left > 0 || n <= 0)
        put_frame(s, TO_INPUT, room, left);
    explicit_bzero(room, sizeof room); /* keystrokes may be a password */
}

static void send_size(struct session *s)
{
    uint32_t rows, cols;
    terminal_size(STDOUT_FILENO, &rows, &cols);
    const unsigned char size[4] = {(unsigned char)(rows >> 8), (unsigned char)rows,
                                   (unsigned char)(cols >> 8), (unsigned char)cols};
    put_frame(s, TO_SIZE, size, sizeof size);
}

static void on_signal(struct session *s)
{
    struct signalfd_siginfo info;
    if (read(s->signals, &info, sizeof info) != sizeof info)
        return;
    unsigned char sig = (unsigned char)info.ssi_signo;
    if (sig == SIGWINCH) {
        send_size(s);
    } else if (sig == SIGTSTP) { /* leave the terminal usable meanwhile */
        terminal_restore();
        raise(SIGSTOP);
        if (s->raw && terminal_raw(STDIN_FILENO, NULL) == 0)
            send_size(s);
    } else if (s->kept && (sig == SIGHUP || sig == SIGTERM)) {
        detach(s, "");
    } else {
        bool again = sig == SIGINT && time(NULL) - s->last_int < 1;
        if (sig == SIGINT)
            s->last_int = time(NULL);
        sig = again ? SIGKILL : sig;
        put_frame(s, TO_SIGNAL, &sig, 1);
    }
}

static int watch_signals(bool tty)
{
    static const int forwarded[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};
    sigset_t set;
    sigemptyset(&set);
    for (size_t i = 0; i < ARRAY_LEN(forwarded); i++) {
        struct sigaction was;
        if (sigaction(forwarded[i], NULL, &was) == 0 && was.sa_handler != SIG_IGN)
            sigaddset(&set, forwarded[i]);
    }
    if (tty) {
        sigaddset(&set, SIGWINCH);
        sigaddset(&set, SIGTSTP);
    }
    signal(SIGPIPE, SIG_IGN);
    if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
        return -1;
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

static void loop(struct session *s)
{
    while (!s->ended) {
        bool more = s->input && buf_len(&s->out) < OUT_HIGH;
        struct pollfd p[3] = {{.fd = s->sock, .events = POLLIN},
                              {.fd = s->signals, .events = POLLIN},
                              {.fd = more ? STDIN_FILENO : -1, .events = POLLIN}};
        if (buf_len(&s->out))
            p[0].events |= POLLOUT;
        if (poll(p, 3, -1) < 0 && errno != EINTR) {
            finish(s, EXIT_DURWARD_FAILED, strerror(errno));
            return;
        }
        if (p[1].revents)
            on_signal(s);
        if (p[2].revents)
            read_input(s);
        if (p[0].revents & POLLOUT)
            deliver(s);
        if (!s->ended && p[0].revents & (POLLIN | POLLHUP | POLLERR))
            receive(s);
    }
}

void exec_session(int sock, const void *ahead, size_t n, const struct exec_wishes *wishes,
                  struct exec_result *ret)
{
    struct session s = {.sock = sock, .input = wishes->input, .kept = wishes->kept, .result = ret};
    buf_init(&s.in, FRAME_MAX + HEAD + CHUNK + n);
    buf_init_wiped(&s.out, OUT_HIGH + 2 * CHUNK);
    s.signals = watch_signals(wishes->tty);
    if (s.signals < 0 || (n && buf_append(&s.in, ahead, n) < 0))
        finish(&s, EXIT_DURWARD_FAILED, "cannot start");
    s.raw = wishes->tty && isatty(STDIN_FILENO) && terminal_raw(STDIN_FILENO, NULL) == 0;
    if (!s.ended && !wishes->input && !wishes->later)
        put_frame(&s, TO_INPUT, "", 0);
    if (!s.ended && wishes->later && wishes->tty)
        send_size(&s); /* its screen is drawn anew */
    take_frames(&s);
    loop(&s);
    terminal_restore();
    buf_free(&s.in);
    buf_free(&s.out);
    if (s.signals >= 0)
        close(s.signals);
    close(sock);
}

/* ---- the upgrade ---- */

/* 1: the head is whole in `in`. */
static int read_head(int sock, struct buf *in, struct err *err)
{
    while (slice_find_slice(buf_slice(in), SLICE("\r\n\r\n")) < 0) {
        unsigned char *p = buf_reserve(in, 4096);
        ssize_t n = p ? recv(sock, p, 4096, 0) : -1;
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return err_set(err, ERR_UPSTREAM, "the daemon did not answer");
        buf_commit(in, (size_t)n);
    }
    return 1;
}

static void refused(int sock, const char *path, struct buf *in, struct err *err)
{
    shutdown(sock, SHUT_WR); /* then it closes when it has said all */
    for (unsigned char *p; (p = buf_reserve(in, 4096)) != NULL;) {
        ssize_t n = recv(sock, p, 4096, 0);
        if (n <= 0)
            break;
        buf_commit(in, (size_t)n);
    }
    struct slice all = buf_slice(in);
    ssize_t end = slice_find_slice(all, SLICE("\r\n\r\n"));
    api_refused(all.n > 12 && all.p[9] == '4' ? 404 : 500, path,
                (struct slice){all.p + end + 4, all.n - (size_t)end - 4}, err);
}

int exec_upgrade(const char *socket, const char *path, const char *protocol, const json_t *body,
                 struct buf *ahead, struct err *err)
{
    char *text = body ? json_dumps(body, JSON_COMPACT) : strdup("");
    int sock = text ? api_open(socket, err) : -1;
    struct api_request q = {.method = "POST",
                            .path = path,
                            .upgrade = protocol,
                            .body = text,
                            .n = text ? strlen(text) : 0};
    buf_init(ahead, HEAD_LINES_MAX + FRAME_MAX);
    int r = sock < 0 ? -1 : api_ask(socket, sock, &q, err);
    free(text);
    if (r == 0)
        r = read_head(sock, ahead, err);
    if (r == 1 && slice_starts(buf_slice(ahead), SLICE("HTTP/1.1 101 "))) {
        buf_drain(ahead, (size_t)slice_find_slice(buf_slice(ahead), SLICE("\r\n\r\n")) + 4);
        return sock;
    }
    if (r == 1)
        refused(sock, path, ahead, err);
    if (sock >= 0)
        close(sock);
    return -1;
}
