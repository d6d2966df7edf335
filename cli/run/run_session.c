/* Runs the event loop of `durward run`: starts the command, forwards signals and window sizes,
 * prints notes, and ends when the exit status is known and all output is written. */
#include "run_session.h"

#include <event2/event.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "ipc.h"
#include "out.h"
#include "proc.h"
#include "run_ask.h"
#include "run_notes.h"
#include "run_stdio.h"
#include "terminal.h"
#include "peer.h"
#include "wire.h"

static const int forwarded[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};

enum { SIGNALS = ARRAY_LEN(forwarded) + 2 }; /* and SIGWINCH, SIGTSTP */

struct session {
    struct event_base *base;
    struct ipc *parent, *controller;
    struct run_request *request;
    struct run_result *result;
    struct run_stdio stdio;
    struct run_ask *ask;         /* NULL: nobody is asked */
    struct run_publish *publish; /* NULL: nothing is published */
    struct event *signals[SIGNALS];
    bool ended; /* W_RUN_EXIT, or a failure: only output is still to be written */
    double last_int;
};

static void stop_if_done(struct session *s)
{
    if (s->ended && run_stdio_drained(&s->stdio))
        event_base_loopbreak(s->base);
}

static void on_drained(void *arg)
{
    stop_if_done(arg);
}

static void fail(struct session *s, const char *text)
{
    if (!s->ended) {
        s->result->status = EXIT_DURWARD_FAILED;
        snprintf(s->result->text, sizeof s->result->text, "%s", text);
    }
    s->ended = true;
    event_base_loopbreak(s->base);
}

static double now(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static void send_numbers(struct session *s, uint16_t type, uint32_t a, uint32_t b, bool two)
{
    struct msg m;
    if (s->controller == NULL)
        return;
    msg_init(&m, type);
    msg_put_u32(&m, a);
    if (two)
        msg_put_u32(&m, b);
    ipc_send(s->controller, &m);
}

/* ---- signals ---- */

static void send_size(struct session *s)
{
    uint32_t rows, cols;
    terminal_size(STDOUT_FILENO, &rows, &cols);
    send_numbers(s, W_RUN_WINSIZE, rows, cols, true);
}

static void on_signal(evutil_socket_t sig, short what UNUSED, void *arg)
{
    struct session *s = arg;
    if (s->ended || s->controller == NULL) { /* nothing inside to tell: it is meant for us */
        if (!s->ended) {
            s->result->status = 128 + (uint32_t)sig;
            s->result->text[0] = '\0';
        }
        s->ended = true;
        event_base_loopbreak(s->base);
        return;
    }
    bool again = sig == SIGINT && now() - s->last_int < 1.0;
    if (sig == SIGINT)
        s->last_int = now();
    send_numbers(s, W_RUN_SIGNAL, again ? SIGKILL : (uint32_t)sig, 0, false);
}

static void on_winch(evutil_socket_t sig UNUSED, short what UNUSED, void *arg)
{
    send_size(arg);
}

/* Somebody stops us (^Z goes to the pty as a byte): leave the terminal usable meanwhile. */
static void on_stop(evutil_socket_t sig UNUSED, short what UNUSED, void *arg)
{
    struct session *s = arg;
    terminal_restore();
    raise(SIGSTOP);
    if (s->stdio.out[0] && terminal_raw(STDIN_FILENO, NULL) == 0)
        send_size(s);
}

static int watch(struct session *s, size_t i, int sig, event_callback_fn fn)
{
    s->signals[i] = evsignal_new(s->base, sig, fn, s);
    return s->signals[i] ? event_add(s->signals[i], NULL) : -1;
}

static int watch_signals(struct session *s)
{
    int bad = 0;
    size_t n = ARRAY_LEN(forwarded);
    for (size_t i = 0; i < n; i++) {
        struct sigaction was;
        /* what nohup or a shell's & told us to ignore, we go on ignoring */
        if (sigaction(forwarded[i], NULL, &was) == 0 && was.sa_handler == SIG_IGN)
            continue;
        bad |= watch(s, i, forwarded[i], on_signal);
    }
    if (s->request->tty)
        bad |= watch(s, n, SIGWINCH, on_winch) | watch(s, n + 1, SIGTSTP, on_stop);
    return bad;
}

/* ---- the controller's channel ---- */

static int on_started(struct session *s, struct msg *m)
{
    uint8_t tty;
    int pty = -1;
    char notes[8192];
    struct err err = {0};
    if (msg_get_str(m, s->result->sandbox, sizeof s->result->sandbox) < 0 ||
        msg_get_u8(m, &tty) < 0 || msg_get_str(m, notes, sizeof notes) < 0 ||
        (tty && msg_get_fd(m, &pty) < 0))
        return -1;
    if (msg_end(m) < 0 || (tty != 0) != s->request->tty) {
        if (pty >= 0)
            close(pty);
        return -1;
    }
    s->result->started = true;
    run_notes_print(notes);
    if (!tty)
        return 0;
    if (run_stdio_terminal(&s->stdio, s->base, pty, &err) < 0 ||
        terminal_raw(STDIN_FILENO, &err) < 0)
        fail(s, err.text);
    else
        send_size(s); /* it may have changed since W_RUN */
    return 0;
}

static int on_exit_message(struct session *s, struct msg *m)
{
    struct run_result *r = s->result;
    char id[sizeof r->sandbox];
    if (msg_get_u32(m, &r->status) < 0 || msg_get_str(m, r->text, sizeof r->text) < 0 ||
        denials_get(&r->denials, m) < 0 || msg_get_str(m, id, sizeof id) < 0 || msg_end(m) < 0)
        return -1;
    memcpy(r->sandbox, id, sizeof id);
    s->ended = true;
    run_ask_free(s->ask);
    s->ask = NULL;
    stop_if_done(s);
    return 0;
}

static int on_controller(struct ipc *ch, struct msg *m, void *arg)
{
    struct session *s = arg;
    if (s->ended)
        return 0;
    if (m->type == W_RUN_STARTED)
        return on_started(s, m);
    if (m->type == W_HELD || m->type == W_HELD_OVER)
        return s->ask ? run_ask_message(s->ask, ch, m) : -1;
    if (m->type == W_RUN_CONNECTED)
        return s->publish ? run_publish_message(s->publish, m) : -1;
    return m->type == W_RUN_EXIT ? on_exit_message(s, m) : -1;
}

static void on_controller_closed(struct ipc *ch, const char *why UNUSED, void *arg)
{
    struct session *s = arg;
    ipc_free(ch);
    s->controller = NULL;
    if (s->publish)
        run_publish_stop(s->publish);
    if (!s->ended)
        fail(s, "the controller is gone; the sandbox was ended");
}

static void send_run(struct session *s)
{
    struct msg m;
    struct err err = {0};
    s->stdio.drained = on_drained;
    s->stdio.arg = s;
    if (!s->request->tty && run_stdio_pass(&s->stdio, s->base, s->request, &err) < 0) {
        fail(s, err.text);
        return;
    }
    if (s->request->ask && (s->ask = run_ask_new(s->base, &s->stdio, &err)) == NULL) {
        fail(s, err.text);
        return;
    }
    if (s->request->tty)
        terminal_size(STDOUT_FILENO, &s->request->rows, &s->request->cols);
    msg_init(&m, W_RUN);
    run_request_put(s->request, &m);
    if (ipc_send(s->controller, &m) < 0)
        fail(s, "the command and its environment are too long (96 KiB together)");
    else if (s->publish && run_publish_begin(s->publish, s->base, s->controller) < 0)
        fail(s, "the ports cannot be published");
}

/* ---- the parent's channel ---- */

static int on_peer(struct session *s, struct msg *m)
{
    struct peer far;
    if (peer_get(m, &far) < 0)
        return -1;
    if (s->controller || far.kind != ROLE_CONTROLLER) {
        close(far.fd);
        return -1;
    }
    s->controller = ipc_new(s->base, far.fd, on_controller, on_controller_closed, s);
    if (s->controller == NULL)
        fail(s, "out of memory");
    else
        send_run(s);
    return 0;
}

static int on_parent(struct ipc *ch UNUSED, struct msg *m, void *arg)
{
    struct session *s = arg;
    char text[1024], clean[1024];
    uint8_t level;
    switch (m->type) {
    case W_READY:
        return 0;
    case W_PEER:
        return on_peer(s, m);
    case W_FAILED:
        if (msg_get_str(m, text, sizeof text) < 0)
            return -1;
        fail(s, text);
        return 0;
    case W_LOG:
        if (msg_get_u8(m, &level) < 0 || msg_get_str(m, text, sizeof text) < 0)
            return -1;
        out_error("%s", out_clean(text, clean, sizeof clean));
        return 0;
    default:
        return -1;
    }
}

static void on_parent_closed(struct ipc *ch, const char *why UNUSED, void *arg)
{
    struct session *s = arg;
    ipc_free(ch);
    s->parent = NULL;
    if (!s->ended)
        fail(s, "Durward's parent process ended unexpectedly");
}

/* epoll takes no regular files; poll takes everything that may be a standard descriptor. */
static struct event_base *make_base(void)
{
    struct event_config *cfg = event_config_new();
    struct event_base *base = NULL;
    if (cfg && event_config_avoid_method(cfg, "epoll") == 0)
        base = event_base_new_with_config(cfg);
    if (cfg)
        event_config_free(cfg);
    return base;
}

static void session_done(struct session *s)
{
    run_ask_free(s->ask);
    run_publish_free(s->publish);
    terminal_restore();
    run_stdio_done(&s->stdio);
    for (size_t i = 0; i < SIGNALS; i++)
        if (s->signals[i])
            event_free(s->signals[i]);
    ipc_free(s->controller);
    ipc_free(s->parent);
    if (s->base)
        event_base_free(s->base);
}

void run_session(int channel, struct run_request *r, struct run_publish *publish,
                 struct run_result *ret)
{
    struct session s = {.request = r, .result = ret, .publish = publish, .base = make_base()};
    signal(SIGPIPE, SIG_IGN);
    ret->status = EXIT_DURWARD_FAILED;
    snprintf(ret->text, sizeof ret->text, "cannot start");
    if (s.base == NULL) {
        close(channel);
        run_publish_free(publish);
        return;
    }
    r->tty = run_stdio_is_terminal();
    s.parent = ipc_new(s.base, channel, on_parent, on_parent_closed, &s);
    if (s.parent && watch_signals(&s) == 0)
        event_base_dispatch(s.base);
    session_done(&s);
}
