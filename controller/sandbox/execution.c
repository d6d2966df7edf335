/* Asks durward-init for commands, file operations and connections, and follows each to its end. The
 * bytes in and out are in execution_flow.c, records in execution_note.c. */
#define _GNU_SOURCE 1
#include "execution_internal.h"

#include <errno.h>
#include <event2/event.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "command.h"
#include "wire.h"

/* A command longer than that goes in as a file: one word of argv has 128 KiB at most, and a message
 * less. */
enum { INLINE_COMMAND = 32 * 1024 };

/* ---- birth ---- */

static struct execution *find_number(struct managed_sandbox *r, uint32_t number)
{
    struct execution *e;
    LIST_FOREACH(e, &r->executions, link)
    if (e->number == number)
        return e;
    return NULL;
}

struct execution *execution_find(struct managed_sandbox *r, const char *id)
{
    struct execution *e;
    LIST_FOREACH(e, &r->executions, link)
    if (e->kind == EXECUTION_COMMAND && strcmp(e->id, id) == 0)
        return e;
    return NULL;
}

static void release(struct execution *e)
{
    LIST_REMOVE(e, link);
    e->managed_sandbox->n_executions--;
    e->managed_sandbox->n_watches -= e->kind == EXECUTION_FILE && e->op == INSIDE_WATCH;
    flow_close(e);
    if (e->timer)
        event_free(e->timer);
    buf_free(&e->kept[0]);
    buf_free(&e->kept[1]);
    redact_free(e);
    free(e->path);
    free(e);
}

static void on_timeout(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
    struct execution *e = arg;
    e->timed_out = true;
    execution_signal(e, SIGKILL);
}

static struct execution *begin(struct managed_sandbox *r, enum execution_kind kind,
                               const struct execution_ops *ops, void *arg, struct err *err)
{
    if (r->state != MANAGED_SANDBOX_RUNNING || r->sandbox == NULL) { /* NULL: it has just ended */
        err_set(err, ERR_UNREADY, "the sandbox is %s",
                r->sandbox ? managed_sandbox_state_name(r->state) : "stopped");
        return NULL;
    }
    if (r->n_executions >= EXECUTIONS_MAX) {
        err_set(err, ERR_FULL,
                "%d commands, transfers and watches run in it already, and no more may",
                EXECUTIONS_MAX);
        return NULL;
    }
    struct execution *e = calloc(1, sizeof *e);
    if (e == NULL) {
        err_set(err, ERR_INTERNAL, "out of memory");
        return NULL;
    }
    e->managed_sandbox = r;
    e->kind = kind;
    e->ops = ops;
    e->arg = arg;
    e->number = ++r->last_number;
    e->in = e->out[0] = e->out[1] = -1;
    clock_gettime(CLOCK_MONOTONIC, &e->began);
    e->started_at = (int64_t)time(NULL);
    buf_init(&e->input, EXECUTION_INPUT_MAX);
    buf_init(&e->kept[0], EXECUTION_OUTPUT_MAX);
    buf_init(&e->kept[1], EXECUTION_OUTPUT_MAX);
    LIST_INSERT_HEAD(&r->executions, e, link);
    r->n_executions++;
    managed_sandbox_used(r);
    return e;
}

/* Sends what was asked; NULL, and e freed, when it cannot be. */
static struct execution *go(struct execution *e, struct msg *m, struct err *err)
{
    bool whole = !m->bad;
    if (sandbox_tell(e->managed_sandbox->sandbox, m) == 0)
        return e;
    if (whole)
        err_set(err, ERR_UNREADY, "the sandbox has ended just now");
    else
        err_set(err, ERR_LIMIT, "the command and its environment are too long");
    release(e);
    return NULL;
}

static int give_input(struct execution *e, const void *p, size_t n, struct err *err)
{
    if (n && buf_append(&e->input, p, n) < 0)
        return err_set(err, ERR_LIMIT, "the input is too long");
    return 0;
}

/* ---- commands ---- */

/* Read by sh from descriptor COMMAND_SCRIPT_FD, which the script closes first. */
static int make_script(const char *command, struct err *err)
{
    static const char head[] = "exec 9<&-; ";
    int fd = memfd_create("command", MFD_CLOEXEC);
    size_t n = strlen(command);
    bool bad = fd < 0 || write(fd, head, sizeof head - 1) != sizeof head - 1;
    for (size_t at = 0; !bad && at < n;) {
        ssize_t w = write(fd, command + at, n - at);
        bad = w <= 0;
        at += bad ? 0 : (size_t)w;
    }
    if (!bad && lseek(fd, 0, SEEK_SET) == 0)
        return fd;
    err_sys(err, "cannot hold the command");
    if (fd >= 0)
        close(fd);
    return -1;
}

static int put_argv(const struct execution_command *c, struct msg *m, int *script, struct err *err)
{
    *script = -1;
    if (c->command == NULL) {
        strlist_put(c->argv, m);
        return 0;
    }
    bool file = strlen(c->command) > INLINE_COMMAND;
    msg_put_u32(m, file ? 2 : 3);
    msg_put_str(m, "/bin/sh");
    msg_put_str(m, file ? "/dev/fd/9" : "-c");
    if (!file)
        msg_put_str(m, c->command);
    else if ((*script = make_script(c->command, err)) < 0)
        return -1;
    return 0;
}

static int put_env(const struct managed_sandbox *r, const struct execution_command *c,
                   struct msg *m, struct err *err)
{
    struct strlist env = {0};
    const struct strlist *own = sandbox_env(r->sandbox);
    int bad = 0;
    for (size_t i = 0; i < own->n && !bad; i++)
        bad = strlist_put_env(&env, own->v[i]);
    if (c->tty && !bad)
        bad = strlist_set_env(&env, "TERM", "xterm-256color");
    for (size_t i = 0; c->env && i < c->env->n && !bad; i++)
        bad = strlist_put_env(&env, c->env->v[i]);
    strlist_put(&env, m);
    strlist_done(&env);
    return bad ? err_set(err, ERR_LIMIT, "the environment is too long") : 0;
}

static uint8_t stdio_of(const struct execution *e)
{
    if (e->tty)
        return COMMAND_TERMINAL;
    return (uint8_t)(COMMAND_PIPES | (e->wants_input ? COMMAND_INPUT : 0) |
                     (e->split ? COMMAND_SPLIT : 0));
}

static int put_command(struct execution *e, const struct execution_command *c, struct msg *m,
                       struct err *err)
{
    int script;
    msg_init(m, W_INIT_EXEC);
    msg_put_u32(m, e->number);
    if (put_argv(c, m, &script, err) < 0)
        return -1;
    int bad = put_env(e->managed_sandbox, c, m, err);
    msg_put_str(m, c->cwd ? c->cwd : MANAGED_SANDBOX_WORKDIR);
    msg_put_u8(m, stdio_of(e));
    msg_put_u32(m, c->rows);
    msg_put_u32(m, c->cols);
    msg_put_u8(m, script >= 0);
    if (script >= 0)
        msg_put_fd(m, script);
    return bad;
}

static void set_timeout(struct execution *e, unsigned seconds)
{
    struct timeval tv = {seconds, 0};
    e->timer = seconds ? evtimer_new(e->managed_sandbox->controller->base, on_timeout, e) : NULL;
    if (e->timer)
        event_add(e->timer, &tv);
}

struct execution *execution_command(struct managed_sandbox *r, const struct execution_command *c,
                                    const struct execution_ops *ops, void *arg, struct err *err)
{
    struct msg m;
    bool named = c->id && *c->id;
    if (named && execution_find(r, c->id)) {
        err_set(err, ERR_DENIED, "a command with the id %s runs already", c->id);
        return NULL;
    }
    struct execution *e = begin(r, EXECUTION_COMMAND, ops, arg, err);
    if (e == NULL)
        return NULL;
    if (named)
        snprintf(e->id, sizeof e->id, "%s", c->id);
    else
        snprintf(e->id, sizeof e->id, "ex-%lld-%u", (long long)r->generation, e->number);
    e->tty = c->tty;
    e->split = c->split && !c->tty;
    e->wants_input = c->tty || c->more_input || c->n_input > 0;
    e->input_ended = !c->more_input;
    e->max_output = c->max_output;
    e->whole = c->whole;
    if (give_input(e, c->input, c->n_input, err) < 0 ||
        redact_begin(e, c->tty || c->more_input, err) < 0) {
        release(e);
        return NULL;
    }
    if (put_command(e, c, &m, err) < 0) {
        msg_done(&m);
        release(e);
        return NULL;
    }
    set_timeout(e, c->timeout);
    if (go(e, &m, err) == NULL)
        return NULL;
    execution_note_started(e, c);
    return e;
}

/* ---- files and connections ---- */

struct execution *execution_file(struct managed_sandbox *r, enum inside_op op, const char *path,
                                 unsigned mode, const void *input, size_t n, size_t max_output,
                                 const struct execution_ops *ops, void *arg, struct err *err)
{
    const struct execution_file f = {op, path, "", mode, input, n, max_output};
    return execution_file_version(r, &f, ops, arg, err);
}

struct execution *execution_file_version(struct managed_sandbox *r, const struct execution_file *f,
                                         const struct execution_ops *ops, void *arg,
                                         struct err *err)
{
    struct msg m;
    struct execution *e = begin(r, EXECUTION_FILE, ops, arg, err);
    if (e == NULL)
        return NULL;
    e->op = f->op;
    e->whole = true;
    e->input_ended = true;
    e->max_output = f->max_output;
    e->path = strdup(f->path);
    e->n_written = f->n;
    if (e->path == NULL || give_input(e, f->input, f->n, err) < 0 ||
        (f->op == INSIDE_READ && redact_begin(e, false, err) < 0)) {
        release(e);
        return NULL;
    }
    msg_init(&m, W_INIT_FILE);
    msg_put_u32(&m, e->number);
    msg_put_u8(&m, (uint8_t)f->op);
    msg_put_str(&m, f->path);
    msg_put_u32(&m, f->mode);
    msg_put_str(&m, f->version);
    set_timeout(e, EXECUTION_TIMEOUT_DEFAULT);
    return go(e, &m, err);
}

struct execution *execution_watch(struct managed_sandbox *r, const char *path,
                                  const struct strlist *skip, const struct execution_ops *ops,
                                  void *arg, struct err *err)
{
    struct msg m;
    if (r->n_watches >= WATCHES_MAX) {
        err_set(err, ERR_FULL, "%d watch its files already", WATCHES_MAX);
        return NULL;
    }
    struct execution *e = begin(r, EXECUTION_FILE, ops, arg, err);
    if (e == NULL)
        return NULL;
    e->op = INSIDE_WATCH;
    r->n_watches++;
    e->input_ended = true;
    e->path = strdup(path);
    if (e->path == NULL) {
        err_set(err, ERR_INTERNAL, "out of memory");
        release(e);
        return NULL;
    }
    msg_init(&m, W_INIT_WATCH);
    msg_put_u32(&m, e->number);
    msg_put_str(&m, path);
    strlist_put(skip, &m);
    return go(e, &m, err);
}

struct execution *execution_connect(struct managed_sandbox *r, unsigned port,
                                    const struct execution_ops *ops, void *arg, struct err *err)
{
    struct msg m;
    struct execution *e = begin(r, EXECUTION_CONNECT, ops, arg, err);
    if (e == NULL)
        return NULL;
    msg_init(&m, W_INIT_CONNECT);
    msg_put_u32(&m, e->number);
    msg_put_u32(&m, port);
    return go(e, &m, err);
}

/* ---- while it runs ---- */

static void tell_numbers(struct execution *e, uint16_t type, uint32_t a, uint32_t b, bool two)
{
    struct msg m;
    msg_init(&m, type);
    msg_put_u32(&m, e->number);
    msg_put_u32(&m, a);
    if (two)
        msg_put_u32(&m, b);
    (void)sandbox_tell(e->managed_sandbox->sandbox, &m); /* a sandbox that ended ends it too */
}

void execution_signal(struct execution *e, unsigned sig)
{
    if (e->state != EXECUTION_ENDED && e->managed_sandbox->sandbox)
        tell_numbers(e, W_INIT_SIGNAL, sig, 0, false);
}

/* By our own end of the terminal, so that input sent afterwards finds the new size. */
void execution_winsize(struct execution *e, unsigned rows, unsigned cols)
{
    struct winsize size = {.ws_row = (unsigned short)rows, .ws_col = (unsigned short)cols};
    if (!e->tty || e->state == EXECUTION_ENDED || e->managed_sandbox->sandbox == NULL)
        return;
    if (e->in >= 0)
        (void)ioctl(e->in, TIOCSWINSZ, &size); /* a terminal takes any size */
    else
        tell_numbers(e, W_INIT_WINSIZE, rows, cols, true);
}

int execution_input(struct execution *e, const void *p, size_t n)
{
    if (!e->wants_input || e->input_ended || (e->state == EXECUTION_RUNNING && e->in < 0))
        return -1;
    if (n == 0)
        e->input_ended = true;
    else if (buf_append(&e->input, p, n) < 0)
        return -1;
    if (n == 0 && e->tty && buf_append(&e->input, "\004", 1) < 0) /* ^D: a terminal has no end */
        return -1;
    flow_write(e);
    return 0;
}

size_t execution_input_waiting(const struct execution *e)
{
    return buf_len(&e->input);
}

void execution_pause(struct execution *e, bool pause)
{
    if (e->paused == pause)
        return;
    e->paused = pause;
    flow_pause(e);
}

void execution_abandon(struct execution *e)
{
    e->ops = NULL;
    e->arg = NULL;
    if (e->state == EXECUTION_ENDED)
        return;
    execution_signal(e, SIGKILL);
    flow_close(e);
}

/* ---- its end ---- */

static void end(struct execution *e, uint32_t status, const char *text)
{
    struct managed_sandbox *r = e->managed_sandbox;
    struct timespec now;
    flow_drain(e);
    for (int i = 0; i < 2; i++)
        redact_end(e, i);
    bool unreadable = redact_unreadable(e);
    e->state = EXECUTION_ENDED;
    e->status = e->timed_out ? EXECUTION_TIMED_OUT : status;
    snprintf(e->text, sizeof e->text, "%s", unreadable ? EXECUTION_UNREADABLE : text);
    if (unreadable && e->kind == EXECUTION_FILE) {
        e->status = EBADMSG;
        e->truncated = false;
    }
    clock_gettime(CLOCK_MONOTONIC, &now);
    e->ms = (uint64_t)((now.tv_sec - e->began.tv_sec) * INT64_C(1000) +
                       (now.tv_nsec - e->began.tv_nsec) / 1000000);
    flow_close(e);
    execution_note_ended(e);
    if (e->ops && e->ops->ended)
        e->ops->ended(e->arg, e);
    release(e);
    managed_sandbox_used(r);
}

static int on_started(struct managed_sandbox *r, struct msg *m)
{
    uint32_t number, n;
    int fds[3] = {-1, -1, -1}, bad = 0;
    if (msg_get_u32(m, &number) < 0 || msg_get_u32(m, &n) < 0 || n > 3)
        return -1;
    struct execution *e = find_number(r, number);
    for (unsigned i = 0; i < n && !bad; i++)
        bad = msg_get_fd(m, &fds[i]);
    if (bad == 0)
        bad = msg_end(m);
    if (bad == 0 && e && e->state == EXECUTION_ASKED) {
        e->state = EXECUTION_RUNNING;
        if (e->ops) /* else abandoned: it is being killed */
            bad = flow_attach(e, fds, n);
        if (bad == 0 && e->kind != EXECUTION_CONNECT && e->ops && e->ops->started)
            e->ops->started(e->arg, e, -1);
    } else if (e) {
        bad = -1;
    }
    for (unsigned i = 0; i < 3; i++)
        if (fds[i] >= 0)
            close(fds[i]);
    return bad;
}

static int on_exit_message(struct managed_sandbox *r, struct msg *m)
{
    uint32_t number, status;
    char text[sizeof(((struct execution *)NULL)->text)];
    if (msg_get_u32(m, &number) < 0 || msg_get_u32(m, &status) < 0 ||
        msg_get_str(m, text, sizeof text) < 0 || msg_end(m) < 0 || status > 255)
        return -1;
    struct execution *e = find_number(r, number);
    if (e)
        end(e, status, text);
    return e ? 0 : -1;
}

int execution_message(struct managed_sandbox *r, struct msg *m)
{
    switch (m->type) {
    case W_INIT_STARTED:
        return on_started(r, m);
    case W_INIT_EXIT:
        return on_exit_message(r, m);
    default:
        return -1;
    }
}

void execution_end_all(struct managed_sandbox *r, const char *why)
{
    struct execution *e;
    while ((e = LIST_FIRST(&r->executions)) != NULL) {
        e->timed_out = false;
        end(e, EXIT_DURWARD_FAILED, why);
    }
}

void execution_each(struct managed_sandbox *r, void (*fn)(void *arg, struct execution *e),
                    void *arg)
{
    struct execution *e;
    LIST_FOREACH(e, &r->executions, link)
    if (e->kind == EXECUTION_COMMAND)
        fn(arg, e);
}

/* ---- what is known of it ---- */

const char *execution_id(const struct execution *e)
{
    return e->id;
}

int64_t execution_started_at(const struct execution *e)
{
    return e->started_at;
}

struct slice execution_output(const struct execution *e, int which)
{
    return buf_slice(&e->kept[which - 1]);
}

bool execution_truncated(const struct execution *e)
{
    return e->truncated;
}

bool execution_unreadable(const struct execution *e)
{
    return redact_unreadable(e);
}

bool execution_timed_out(const struct execution *e)
{
    return e->timed_out;
}

uint32_t execution_status(const struct execution *e)
{
    return e->status;
}

const char *execution_text(const struct execution *e)
{
    return e->text;
}

uint64_t execution_ms(const struct execution *e)
{
    return e->ms;
}
