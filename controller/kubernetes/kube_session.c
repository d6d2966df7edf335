/* What the keeper is asked for becomes words of durward-init's (pod_inside.h), started in the pod;
 * then bytes both ways. */
#define _GNU_SOURCE 1
#include "kube_session.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "cluster.h"
#include "command.h"
#include "inside.h"
#include "kube_confine.h"
#include "kube_ends.h"
#include "kube_stream.h"
#include "pod_inside.h"
#include "wire.h"

enum {
    WORDS_MAX = 8192,
    PATH_BYTES = 768 * 1024, /* the API server takes a mebibyte */
    SCRIPT_MAX = 120 * 1024, /* one word of argv has 128 KiB at most */
    KEPT_MAX = 512 * 1024,
    KEPT_HIGH = 256 * 1024,
    READ_MAX = 32 * 1024,
    HEAD_MAX = 400,
    FAILED = 125,
};

enum {
    SENT_MS = 10000, /* until a signal was sent */
    AGAIN_MS = 500,  /* until one that the API server did not take is tried again, and */
    AGAIN_MAX_MS = 16000,
};

/* Between a session and its signaller. */
struct wanted {
    uint64_t signals; /* a bit each */
    int32_t inside;   /* to whom */
};

struct session {
    const struct kube_place *at;
    struct wanted *wanted;
    int signaller; /* a byte to it: look there */
    struct kube_shared *shared;
    uint32_t number;
    int control, resized;
    struct buf path; /* what is asked for */
    struct kube_wish wish;
    struct kube_ends ends;
    struct kube_exec exec;
    struct buf kept[2]; /* waits for ends.output */
    struct buf head;    /* how far it came, until it has started */
    struct buf status;
    bool started, file;
};

/* ---- answers ---- */

static void post(struct msg *m)
{
    (void)msg_send(CLUSTER_INIT, m); /* whoever listens no more ends us all */
    msg_done(m);
}

static void post_exit(struct session *s, uint32_t status, const char *text)
{
    struct msg m;
    if (s->shared->ended)
        return;
    s->shared->ended = true;
    msg_init(&m, W_INIT_EXIT);
    msg_put_u32(&m, s->number);
    msg_put_u32(&m, status);
    msg_put_str(&m, text);
    post(&m);
}

static NORETURN void give_up(struct session *s, const char *text)
{
    post_exit(s, s->file ? EIO : FAILED, text);
    _exit(0);
}

/* ---- what is asked for ---- */

static int put_encoded(struct buf *b, struct slice text)
{
    static const char hex[] = "0123456789ABCDEF";
    for (size_t i = 0; i < text.n; i++) {
        unsigned char c = (unsigned char)text.p[i];
        char coded[3] = {'%', hex[c >> 4], hex[c & 15]};
        bool plain = ascii_is_alnum((char)c) || strchr("-._~/", c) != NULL;
        if (c == 0 || buf_append(b, plain ? text.p + i : coded, plain ? 1 : 3) < 0)
            return -1;
    }
    return 0;
}

static int put_word(struct buf *b, struct slice word)
{
    return buf_append_str(b, "&command=") < 0 ? -1 : put_encoded(b, word);
}

static int put_number(struct buf *b, unsigned long n, bool octal)
{
    char text[24];
    snprintf(text, sizeof text, octal ? "%lo" : "%lu", n);
    return put_word(b, slice_str(text));
}

/* exec, of one of durward-init's words. */
static int begin_path(struct buf *b, const struct kube_place *at, const char *word,
                      const struct kube_wish *w)
{
    int r = buf_printf(b,
                       "/api/v1/namespaces/%s/pods/%s/exec?container=" CLUSTER_CONTAINER
                       "&stdout=true&stdin=%s&stderr=%s&tty=%s",
                       at->ns, at->pod, w->in ? "true" : "false", w->split ? "true" : "false",
                       w->tty ? "true" : "false");
    return r < 0 || put_word(b, SLICE(POD_INSIDE_PROGRAM)) < 0 ||
                   put_word(b, SLICE(POD_INSIDE_WORD)) < 0 || put_word(b, slice_str(word)) < 0
               ? -1
               : 0;
}

/* A command that was too long for one word of a message comes as a file, of which sh is to read:
 * `exec 9<&-; ` and the command. */
static int put_script(struct buf *b, int fd)
{
    static char text[SCRIPT_MAX + 1];
    size_t n = 0;
    ssize_t got = 0;
    while (n < sizeof text && (got = pread(fd, text + n, sizeof text - n, (off_t)n)) > 0)
        n += (size_t)got;
    struct slice all = {text, n}, before = SLICE("exec 9<&-; ");
    if (got < 0 || n == sizeof text || !slice_starts(all, before))
        return -1;
    return put_word(b, SLICE("-c")) < 0
               ? -1
               : put_word(b, (struct slice){text + before.n, n - before.n});
}

/* W_INIT_EXEC has argv, env, cwd, stdio, rows, cols, script; the words have CWD HOW N ENV ARGV:
 * in HOW `m` where both outputs are one, and the size of the terminal, which the API server's own
 * message may bring after the command has looked. */
static int read_exec(struct session *s, struct msg *m)
{
    static struct slice words[2][WORDS_MAX];
    uint32_t n[2];
    struct slice cwd;
    uint8_t stdio, script;
    int fd = -1;
    for (int i = 0; i < 2; i++) {
        if (msg_get_u32(m, &n[i]) < 0 || n[i] > WORDS_MAX)
            return -1;
        for (uint32_t k = 0; k < n[i]; k++)
            if (msg_get_slice(m, IPC_MSG_MAX, &words[i][k]) < 0)
                return -1;
    }
    if (msg_get_slice(m, PATH_MAX - 1, &cwd) < 0 || msg_get_u8(m, &stdio) < 0 ||
        msg_get_u32(m, &s->wish.rows) < 0 || msg_get_u32(m, &s->wish.cols) < 0 ||
        msg_get_u8(m, &script) < 0 || (script && msg_get_fd(m, &fd) < 0) || msg_end(m) < 0 ||
        n[0] == 0 || (script && n[0] != 2))
        return -1;
    if (stdio != COMMAND_TERMINAL && !(stdio & COMMAND_PIPES))
        return -1;
    s->wish.tty = stdio == COMMAND_TERMINAL;
    s->wish.in = s->wish.tty || stdio & COMMAND_INPUT;
    s->wish.out = true;
    s->wish.split = !s->wish.tty && stdio & COMMAND_SPLIT;
    char how[32];
    snprintf(how, sizeof how, "%c%ux%u", s->wish.split ? '-' : 'm', s->wish.rows, s->wish.cols);
    int bad = begin_path(&s->path, s->at, "exec", &s->wish) | put_word(&s->path, cwd) |
              put_word(&s->path, slice_str(how)) | put_number(&s->path, n[1], false);
    for (uint32_t k = 0; k < n[1]; k++)
        bad |= put_word(&s->path, words[1][k]);
    for (uint32_t k = 0; k < n[0] - script; k++)
        bad |= put_word(&s->path, words[0][k]);
    return bad || (script && put_script(&s->path, fd) < 0) ? -1 : 0;
}

static int read_file(struct session *s, struct msg *m)
{
    struct slice path, version;
    uint8_t op;
    uint32_t mode;
    s->file = true;
    if (msg_get_u8(m, &op) < 0 || op == 0 || op >= INSIDE_END ||
        msg_get_slice(m, INSIDE_PATH - 1, &path) < 0 || msg_get_u32(m, &mode) < 0 ||
        msg_get_slice(m, INSIDE_VERSION - 1, &version) < 0 || msg_end(m) < 0)
        return -1;
    s->wish.in = op == INSIDE_WRITE || op == INSIDE_WRITE_NEW;
    s->wish.out = !s->wish.in;
    return begin_path(&s->path, s->at, "file", &s->wish) | put_number(&s->path, op, false) |
           put_word(&s->path, path) | put_number(&s->path, mode & 0777, true) |
           put_word(&s->path, version);
}

static int read_watch(struct session *s, struct msg *m)
{
    struct slice word;
    uint32_t n;
    s->file = s->wish.out = true;
    if (msg_get_slice(m, INSIDE_PATH - 1, &word) < 0 ||
        begin_path(&s->path, s->at, "watch", &s->wish) < 0 || put_word(&s->path, word) < 0 ||
        msg_get_u32(m, &n) < 0 || n > INSIDE_SKIPPED)
        return -1;
    for (uint32_t i = 0; i < n; i++)
        if (msg_get_slice(m, NAME_MAX, &word) < 0 || put_word(&s->path, word) < 0)
            return -1;
    return msg_end(m);
}

static int read_connect(struct session *s, struct msg *m)
{
    uint32_t port;
    s->file = s->wish.in = s->wish.out = s->wish.socket = true;
    if (msg_get_u32(m, &port) < 0 || port == 0 || port > 65535 || msg_end(m) < 0)
        return -1;
    return begin_path(&s->path, s->at, "connect", &s->wish) | put_number(&s->path, port, false);
}

static int read_ask(struct session *s, struct msg *m)
{
    int r = -1;
    buf_init(&s->path, PATH_BYTES);
    if (m->type == W_INIT_EXEC)
        r = read_exec(s, m);
    else if (m->type == W_INIT_FILE)
        r = read_file(s, m);
    else if (m->type == W_INIT_WATCH)
        r = read_watch(s, m);
    else if (m->type == W_INIT_CONNECT)
        r = read_connect(s, m);
    return r < 0 || buf_append(&s->path, "", 1) < 0 ? -1 : 0;
}

/* ---- signals ---- */

static int64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * INT64_C(1000) + t.tv_nsec / 1000000;
}

static void on_sent(void *arg, enum kube_channel c, const char *p, size_t n)
{
    if (c == KUBE_STATUS && buf_append(arg, p, n) < 0)
        buf_clear(arg); /* none that is read */
}

/* Until the API server says how it ended. It says other things before: an empty message as soon as
 * there is a connection, when the kubelet knows nothing of it yet. Who still works on it when the
 * time is over has it, and is not asked a second time. */
static int await_sent(struct kube_exec *e, const struct buf *said, struct err *err)
{
    int64_t left, end = now_ms() + SENT_MS;
    char why[256];
    do {
        if (kube_exec_turn(e, true, err) < 0)
            return -1;
        if (kube_exec_status(buf_slice(said), why, sizeof why) >= 0)
            return 0; /* whatever it ended with: who is gone takes no signal */
        if (e->over)
            return err_set(err, ERR_UPSTREAM, "%s", why);
        struct pollfd p = {.fd = e->at.fd, .events = kube_exec_events(e, true)};
        left = end - now_ms();
        if (left > 0 && poll(&p, 1, (int)left) < 0 && errno != EINTR)
            return err_sys(err, "poll");
    } while (left > 0);
    return 0;
}

int kube_session_signal(const struct kube_place *at, int32_t inside, unsigned sig, struct err *err)
{
    static const struct kube_wish none = {.out = true};
    struct buf path, said;
    struct kube_exec e = {.on = on_sent, .arg = &said};
    buf_init(&path, PATH_BYTES);
    buf_init(&said, KUBE_STATUS_MAX);
    int r = begin_path(&path, at, "signal", &none) |
            put_number(&path, (unsigned long)inside, false) | put_number(&path, sig, false) |
            buf_append(&path, "", 1);
    if (r == 0 && (r = kube_exec_open(at->kube, (const char *)buf_data(&path), &e, err)) == 0) {
        r = await_sent(&e, &said, err);
        kube_exec_close(&e);
    }
    buf_free(&path);
    buf_free(&said);
    return r;
}

/* Somebody rings, or it is time to try again: whether there is anybody left. */
static bool await_bell(int wait_ms)
{
    char rung[64];
    struct pollfd p = {.fd = STDIN_FILENO, .events = POLLIN};
    int n = poll(&p, 1, wait_ms);
    return n == 0 || (n < 0 && errno == EINTR) ||
           (n > 0 && read(STDIN_FILENO, rung, sizeof rung) > 0);
}

/* Sends what is wanted, as long as its session lives. A signal that is wanted twice meanwhile is
 * sent once, as a kernel would have it. */
static NORETURN void be_signaller(const struct kube_place *at, struct wanted *w, int bell)
{
    struct err err = {0};
    uint64_t left = 0; /* not taken */
    int again = AGAIN_MS;
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || dup2(bell, STDIN_FILENO) < 0 ||
        syscall(SYS_close_range, STDERR_FILENO + 1, ~0U, 0) < 0 ||
        kube_confine(at->kube->token, -1, &err) < 0)
        _exit(1);
    while (await_bell(left ? again : -1)) {
        uint64_t all = left | __atomic_exchange_n(&w->signals, 0, __ATOMIC_SEQ_CST);
        again = left && again < AGAIN_MAX_MS ? 2 * again : AGAIN_MS;
        left = 0;
        for (unsigned sig = 1; sig < NSIG; sig++)
            if (all >> (sig - 1) & 1 && kube_session_signal(at, w->inside, sig, &err) < 0)
                left |= UINT64_C(1) << (sig - 1);
    }
    _exit(0);
}

/* One process for all signals of this command, which knows nothing of what the pod says: this one
 * has bytes to carry, and gives up the token before the first of them. */
static int start_signaller(struct session *s, struct err *err)
{
    int p[2];
    s->wanted =
        mmap(NULL, sizeof *s->wanted, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (s->wanted == MAP_FAILED || pipe2(p, O_CLOEXEC | O_NONBLOCK) < 0 ||
        fcntl(p[0], F_SETFL, 0) < 0)
        return err_sys(err, "its signals");
    pid_t parent = getpid(), pid = fork();
    if (pid == 0) {
        if (getppid() != parent)
            _exit(1);
        be_signaller(s->at, s->wanted, p[0]);
    }
    close(p[0]);
    s->signaller = p[1];
    return pid < 0 ? err_sys(err, "its signals") : 0;
}

/* What is wanted before the command has started is sent when it has. */
static void ring(struct session *s)
{
    if (s->shared->inside == 0 || __atomic_load_n(&s->wanted->signals, __ATOMIC_SEQ_CST) == 0)
        return;
    s->wanted->inside = s->shared->inside;
    ssize_t n = write(s->signaller, "", 1);
    (void)n; /* where there is no room it is to look already */
}

static void take_signals(struct session *s)
{
    uint64_t all = __atomic_exchange_n(&s->shared->signals, 0, __ATOMIC_SEQ_CST);
    (void)__atomic_fetch_or(&s->wanted->signals, all, __ATOMIC_SEQ_CST);
    ring(s);
}

static void tell_size(struct session *s, unsigned rows, unsigned cols)
{
    char text[64];
    int n = snprintf(text, sizeof text, "{\"Width\":%u,\"Height\":%u}", cols, rows);
    if (s->wish.tty && rows && cols && kube_exec_put(&s->exec, KUBE_RESIZE, text, (size_t)n) < 0)
        return; /* the next size comes */
}

static void take_order(struct session *s)
{
    struct kube_order o;
    ssize_t n = read(s->control, &o, sizeof o);
    if (n == 0) {
        close(s->control);
        s->control = -1;
    }
    if (n != sizeof o)
        return;
    take_signals(s); /* whatever this is: a later order may have found no room */
    if (o.type == W_INIT_WINSIZE)
        tell_size(s, o.rows, o.cols);
}

/* By whoever has the other end of the terminal. */
static void take_resize(struct session *s)
{
    struct signalfd_siginfo info;
    struct winsize size;
    if (read(s->resized, &info, sizeof info) == sizeof info && s->ends.input >= 0 &&
        ioctl(s->ends.input, TIOCGWINSZ, &size) == 0)
        tell_size(s, size.ws_row, size.ws_col);
}

/* ---- what comes of it ---- */

static void start(struct session *s, long pid)
{
    struct msg m;
    s->started = true;
    s->shared->inside = (int32_t)pid;
    msg_init(&m, W_INIT_STARTED);
    msg_put_u32(&m, s->number);
    msg_put_u32(&m, s->ends.n_given);
    for (unsigned i = 0; i < s->ends.n_given; i++)
        msg_put_fd(&m, s->ends.given[i]);
    s->ends.n_given = 0;
    post(&m);
    if (s->wish.socket)
        post_exit(s, 0, ""); /* as one that was made inside: it is whoever's it was handed to */
    ring(s);
}

/* How far it came; what is left of p is its output. */
static void take_head(struct session *s, const char **p, size_t *n)
{
    while (*n > 0 && !s->started) {
        const char c = **p;
        struct slice had = buf_slice(&s->head);
        bool may = had.n > 0 && had.p[0] == POD_INSIDE_STARTED;
        (*p)++;
        (*n)--;
        if (may && c == POD_INSIDE_ENDS) {
            uint64_t pid;
            if (slice_u64((struct slice){had.p + 1, had.n - 1}, INT32_MAX, &pid) == 0 && pid > 1)
                start(s, (long)pid);
        }
        if (!s->started && buf_append(&s->head, &c, 1) < 0)
            return; /* too long for a reason; the rest of it is not needed */
    }
}

static void on_data(void *arg, enum kube_channel c, const char *p, size_t n)
{
    struct session *s = arg;
    int i = c == KUBE_STDERR && s->wish.split;
    if (c == KUBE_STATUS) {
        if (buf_append(&s->status, p, n) < 0)
            buf_clear(&s->status); /* none that is read */
        return;
    }
    if (c == KUBE_STDOUT && !s->started)
        take_head(s, &p, &n);
    bool may = s->started || i == 1; /* the two outputs come in no order */
    if (n > 0 && may && s->ends.output[i] >= 0 && buf_append(&s->kept[i], p, n) < 0)
        give_up(s, "the API server sends too much at once");
}

static bool has_room(const struct session *s)
{
    return buf_len(&s->kept[0]) < KEPT_HIGH && buf_len(&s->kept[1]) < KEPT_HIGH;
}

static bool takes_input(const struct session *s)
{
    return s->started && s->ends.input >= 0 && buf_len(&s->exec.out) < KUBE_STREAM_OUT_MAX / 2;
}

static void take_input(struct session *s)
{
    static char room[READ_MAX];
    static const char ended[] = {KUBE_STDIN};
    ssize_t n = read(s->ends.input, room, sizeof room);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n > 0 && kube_exec_put(&s->exec, KUBE_STDIN, room, (size_t)n) == 0)
        return;
    if (!s->wish.tty && kube_exec_put(&s->exec, KUBE_CLOSE, ended, sizeof ended) < 0)
        give_up(s, "the API server takes no input");
    close(s->ends.input);
    s->ends.input = -1;
}

static void give_output(struct session *s)
{
    for (int i = 0; i < 2; i++)
        while (s->ends.output[i] >= 0 && buf_len(&s->kept[i]) > 0) {
            ssize_t n = write(s->ends.output[i], buf_data(&s->kept[i]), buf_len(&s->kept[i]));
            if (n < 0 && (errno == EAGAIN || errno == EINTR))
                break;
            if (n < 0) { /* nobody reads it any more */
                close(s->ends.output[i]);
                s->ends.output[i] = -1;
                buf_clear(&s->kept[i]);
                break;
            }
            buf_drain(&s->kept[i], (size_t)n);
        }
}

/* One wait and what it brings. */
static int turn(struct session *s, bool over, struct err *err)
{
    bool more = has_room(s) && !over;
    struct pollfd p[6] = {
        {.fd = over ? -1 : s->exec.at.fd, .events = kube_exec_events(&s->exec, more)},
        {.fd = s->control, .events = POLLIN},
        {.fd = s->resized, .events = POLLIN},
        {.fd = takes_input(s) && !over ? s->ends.input : -1, .events = POLLIN},
        {.fd = buf_len(&s->kept[0]) ? s->ends.output[0] : -1, .events = POLLOUT},
        {.fd = buf_len(&s->kept[1]) ? s->ends.output[1] : -1, .events = POLLOUT}};
    if (p[0].fd >= 0 && p[0].events == 0)
        p[0].fd = -1; /* else its end would be told over and over */
    if (poll(p, 6, -1) < 0 && errno != EINTR)
        return err_sys(err, "poll");
    if (p[1].revents)
        take_order(s);
    if (p[2].revents)
        take_resize(s);
    if (p[3].revents)
        take_input(s);
    int r = over ? 0 : kube_exec_turn(&s->exec, more, err);
    give_output(s);
    return r;
}

/* ---- its end ---- */

static NORETURN void finish(struct session *s, int code, const char *why)
{
    struct err err = {0};
    struct slice head = buf_slice(&s->head);
    static char text[COMMAND_TEXT];
    while ((buf_len(&s->kept[0]) && s->ends.output[0] >= 0) ||
           (buf_len(&s->kept[1]) && s->ends.output[1] >= 0))
        if (turn(s, true, &err) < 0)
            break;
    kube_ends_close(&s->ends);
    snprintf(text, sizeof text, "%s", why);
    if (!s->started && head.n > 1 && head.p[0] == POD_INSIDE_FAILED) {
        ssize_t end = slice_find(head, POD_INSIDE_ENDS);
        uint64_t said;
        if (end > 1 && slice_u64((struct slice){head.p + 1, (size_t)end - 1}, 255, &said) == 0) {
            code = (int)said;
            snprintf(text, sizeof text, "%.*s", (int)(head.n - (size_t)end - 1), head.p + end + 1);
        }
    }
    if (code < 0)
        code = s->file ? EIO : FAILED;
    post_exit(s, (uint32_t)code, text);
    _exit(0);
}

static NORETURN void serve(struct session *s)
{
    static char why[256];
    struct err err = {0};
    int code = -1, r = kube_exec_turn(&s->exec, true, &err); /* what came with the head */
    for (;; r = turn(s, false, &err)) {
        if (r < 0)
            finish(s, -1, err.text);
        if (buf_len(&s->status) || s->exec.over)
            code = kube_exec_status(buf_slice(&s->status), why, sizeof why);
        if (code >= 0 || s->exec.over)
            finish(s, code, why);
    }
}

static void heed_signals(struct session *s)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGWINCH);
    (void)sigprocmask(SIG_SETMASK, &set, NULL);
    s->resized = s->wish.tty ? signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK) : -1;
    signal(SIGCHLD, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    signal(SIGPIPE, SIG_IGN);
}

/* Nothing of the keeper's but the way to say how it goes: no lock, no other session's orders. */
static int hold_own(struct session *s, struct err *err)
{
    if (dup2(s->control, CLUSTER_PLAN) < 0 ||
        syscall(SYS_close_range, CLUSTER_PLAN + 1, ~0U, 0) < 0)
        return err_sys(err, "a command's descriptors");
    s->control = CLUSTER_PLAN;
    return 0;
}

void kube_session(const struct kube_place *at, struct msg *m, uint32_t number, int control,
                  struct kube_shared *shared)
{
    static struct session s;
    struct err err = {0};
    s = (struct session){
        .at = at, .shared = shared, .number = number, .control = control, .resized = -1};
    buf_init(&s.kept[0], KEPT_MAX);
    buf_init(&s.kept[1], KEPT_MAX);
    buf_init(&s.head, HEAD_MAX);
    buf_init(&s.status, KUBE_STATUS_MAX);
    if (read_ask(&s, m) < 0)
        give_up(&s, "this is too long for a pod's command, or nothing that a pod can do");
    (void)setsid(); /* for its terminal; it leads no group that could have more in it */
    if (hold_own(&s, &err) < 0)
        give_up(&s, err.text);
    heed_signals(&s);
    if (start_signaller(&s, &err) < 0 || kube_ends_make(&s.wish, &s.ends, &err) < 0 ||
        kube_confine(at->kube->token, -1, &err) < 0)
        give_up(&s, err.text);
    s.exec.on = on_data;
    s.exec.arg = &s;
    if (kube_exec_open(at->kube, (const char *)buf_data(&s.path), &s.exec, &err) < 0 ||
        kube_confine_carrier(&err) < 0)
        give_up(&s, err.text);
    tell_size(&s, s.wish.rows, s.wish.cols);
    serve(&s);
}
