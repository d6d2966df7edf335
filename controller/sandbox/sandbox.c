/* A sandbox's states, each with its timer, and the messages that lead from one to the next; what
 * durward-init and gates may say is checked in sandbox_peers.c. */
#include "sandbox_internal.h"

#include "assertion.h"

#include <event2/event.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "command.h"
#include "layer_work.h"
#include "sandbox_labels.h"
#include "wire.h"

/* How long a state may last. A build that takes this long will not come; the gate's last counts
 * are a courtesy for the summary. */
enum {
    BUILD_MS = 30000,
    LONG_BUILD_MS = 130000, /* images are pulled for a pod; or a kernel starts */
    READY_MS = 15000,
    TEARDOWN_MS = 10000,
    LAST_WORDS_MS = 300
};

static const char *const state_names[] = {"new", "building", "ready", "running", "ending", "gone"};

const char *sandbox_state_name(enum sandbox_state st)
{
    return (unsigned)st < ARRAY_LEN(state_names) ? state_names[st] : "unknown";
}

bool sandbox_state_may(enum sandbox_state from, enum sandbox_state to)
{
    if (to == SANDBOX_ENDING)
        return from < SANDBOX_ENDING;
    return to == from + 1;
}

/* The one setter. Each state begins with a fresh timer (0: none). */
static void set_state(struct sandbox *s, enum sandbox_state to, unsigned ms)
{
    struct timeval tv = {ms / 1000, (suseconds_t)(ms % 1000) * 1000};
    ASSERT(sandbox_state_may(s->state, to));
    s->state = to;
    event_del(s->timer);
    if (ms)
        event_add(s->timer, &tv);
}

static void restart_timer(struct sandbox *s, unsigned ms)
{
    struct timeval tv = {ms / 1000, (suseconds_t)(ms % 1000) * 1000};
    event_add(s->timer, &tv);
}

static void tell(struct sandbox *s, const char *what, const char *detail)
{
    if (s->owner->event)
        s->owner->event(s->owner->arg, s, what, detail);
}

static void finish(struct sandbox *s);
static void leave(struct sandbox *s);

static void on_timer(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
    struct sandbox *s = arg;
    switch (s->state) {
    case SANDBOX_NEW:
    case SANDBOX_BUILDING:
        sandbox_end(s, EXIT_DURWARD_FAILED, "the sandbox was not built in time");
        break;
    case SANDBOX_READY:
        sandbox_end(s, EXIT_DURWARD_FAILED, "the sandbox did not start in time");
        break;
    case SANDBOX_ENDING:
        if (s->torn)
            finish(s);
        else
            leave(s);
        break;
    case SANDBOX_RUNNING:
    case SANDBOX_GONE:
        break;
    }
}

void sandbox_plan_done(struct sandbox_plan *p)
{
    run_request_done(&p->request);
    strlist_done(&p->env);
    strlist_done(&p->git_hosts);
    strlist_done(&p->ssh_hosts);
    for (size_t i = 0; i < p->n_placeholders; i++) {
        free(p->placeholders[i].placeholder);
        free(p->placeholders[i].secret);
    }
    free(p->placeholders);
    json_decref(p->labels);
    memset(p, 0, sizeof *p);
}

struct sandbox *sandbox_new(struct sandbox_owner *owner, struct sandbox_plan *plan,
                            struct ipc *client)
{
    struct sandbox *s = calloc(1, sizeof *s);
    if (s == NULL)
        return NULL;
    s->owner = owner;
    LIST_INSERT_HEAD(&owner->list, s, link);
    s->client = client;
    s->names = name_table_new(plan->names);
    s->timer = evtimer_new(owner->base, on_timer, s);
    if (s->names == NULL || s->timer == NULL) {
        sandbox_free(s);
        return NULL;
    }
    s->plan = *plan;
    memset(plan, 0, sizeof *plan);
    run_request_init(&plan->request);
    restart_timer(s, BUILD_MS);
    sandbox_begin(s);
    return s;
}

void sandbox_free(struct sandbox *s)
{
    if (s == NULL)
        return;
    LIST_REMOVE(s, link);
    ipc_free(s->init);
    ipc_free(s->gate);
    name_table_free(s->names);
    if (s->timer)
        event_free(s->timer);
    if (s->plan.id[0])
        sandbox_plan_done(&s->plan);
    free(s);
}

struct sandbox *sandbox_find(struct sandbox_owner *owner, const char *id)
{
    struct sandbox *s;
    LIST_FOREACH(s, &owner->list, link)
    if (strcmp(s->plan.id, id) == 0)
        return s;
    return NULL;
}

struct sandbox *sandbox_next(struct sandbox_owner *owner, const struct sandbox *s)
{
    return s ? LIST_NEXT(s, link) : LIST_FIRST(&owner->list);
}

enum sandbox_state sandbox_state(const struct sandbox *s)
{
    return s->state;
}

const char *sandbox_id(const struct sandbox *s)
{
    return s->plan.id;
}

const struct run_request *sandbox_request(const struct sandbox *s)
{
    return &s->plan.request;
}

const char *sandbox_policy(const struct sandbox *s)
{
    return s->plan.request.policy;
}

void sandbox_called(struct sandbox *s, const struct denial_calls *calls)
{
    denials_call(&s->denials, calls);
}

const struct denials *sandbox_denials(const struct sandbox *s)
{
    return &s->denials;
}

const struct strlist *sandbox_env(const struct sandbox *s)
{
    return &s->plan.env;
}

int sandbox_taken(struct sandbox *s, json_t *env, struct err *err)
{
    struct strlist fresh = {0};
    const char *key;
    json_t *value;
    int bad = 0;
    for (size_t i = 0; i < s->plan.env.n && !bad; i++)
        bad = strlist_add(&fresh, s->plan.env.v[i]);
    json_object_foreach(env, key, value) bad =
        bad ? bad : strlist_set_env(&fresh, key, json_string_value(value));
    if (bad) {
        strlist_done(&fresh);
        return err_set(err, ERR_LIMIT, "the environment is too long");
    }
    strlist_done(&s->plan.env);
    s->plan.env = fresh;
    memset(&s->denials, 0, sizeof s->denials);
    return 0;
}

const char *sandbox_why(const struct sandbox *s)
{
    return s->text;
}

void sandbox_restore_name(struct sandbox *s, const char *host)
{
    (void)name_table_index(s->names, host); /* a full table gave no more in its day either */
}

int sandbox_tell(struct sandbox *s, struct msg *m)
{
    if (s->state != SANDBOX_RUNNING || s->init == NULL) {
        msg_done(m);
        return -1;
    }
    return ipc_send(s->init, m);
}

static void put_labels(const struct sandbox *s, struct msg *m)
{
    const char *key;
    json_t *value;
    msg_put_u32(m, (uint32_t)json_object_size(s->plan.labels));
    json_object_foreach(s->plan.labels, key, value)
        sandbox_labels_put_one(m, key, json_string_value(value));
}

static int send_sandbox(const struct sandbox *s)
{
    struct msg m;
    msg_init(&m, W_SANDBOX);
    msg_put_str(&m, s->plan.id);
    msg_put_str(&m, s->plan.request.policy);
    msg_put_u32(&m, (uint32_t)s->plan.n_placeholders);
    for (size_t i = 0; i < s->plan.n_placeholders; i++) {
        msg_put_str(&m, s->plan.placeholders[i].placeholder);
        msg_put_str(&m, s->plan.placeholders[i].secret);
    }
    msg_put_bytes(&m, s->plan.broker_key, sizeof s->plan.broker_key);
    put_labels(s, &m);
    return ipc_send(s->owner->parent, &m);
}

static int send_labels(const struct sandbox *s)
{
    struct msg m;
    msg_init(&m, W_LABELS);
    msg_put_str(&m, s->plan.id);
    put_labels(s, &m);
    return ipc_send(s->owner->parent, &m);
}

void sandbox_label(struct sandbox *s, json_t *labels)
{
    json_decref(s->plan.labels);
    s->plan.labels = json_incref(labels);
    if (s->state != SANDBOX_NEW && s->owner->parent) /* else W_SANDBOX says them */
        (void)send_labels(s);
}

static int send_build(const struct sandbox *s)
{
    const struct run_request *r = &s->plan.request;
    struct msg m;
    char host[12]; /* "sb-" and eight characters: enough for a prompt */
    msg_init(&m, W_BUILD);
    msg_put_str(&m, s->plan.id);
    msg_put_str(&m, r->policy);
    snprintf(host, sizeof host, "%.11s", s->plan.id);
    msg_put_str(&m, host);
    msg_put_u32(&m, r->uid);
    msg_put_u32(&m, r->gid);
    msg_put_u32(&m, (uint32_t)s->plan.n_ports);
    for (size_t i = 0; i < s->plan.n_ports; i++)
        msg_put_u32(&m, s->plan.ports[i]);
    msg_put_u32(&m, (uint32_t)r->n_binds);
    for (size_t i = 0; i < r->n_binds; i++) {
        msg_put_str(&m, r->binds[i].source);
        msg_put_str(&m, r->binds[i].target);
        msg_put_u8(&m, run_bind_mode(r, i));
    }
    msg_put_str(&m, r->home);
    msg_put_str(&m, r->user);
    strlist_put(&s->plan.git_hosts, &m);
    strlist_put(&s->plan.ssh_hosts, &m);
    for (int k = 0; k < HOST_KEY_KINDS; k++)
        msg_put_str(&m, s->plan.host_keys[k]);
    msg_put_u8(&m, s->plan.signs);
    sandbox_spec_put(&s->plan.sandbox_spec, &m);
    return ipc_send(s->owner->builder, &m);
}

static int send_id(struct ipc *to, uint16_t type, const struct sandbox *s)
{
    struct msg m;
    msg_init(&m, type);
    msg_put_str(&m, s->plan.id);
    return ipc_send(to, &m);
}

static int ask_for(struct sandbox *s)
{
    if (s->plan.adopt) /* it may have been paused; nobody waits for the answer */
        return send_labels(s) < 0 || send_id(s->owner->builder, W_ADOPT, s) < 0
                   ? -1
                   : layer_freeze(s->owner->builder, 0, s->plan.id, false);
    tell(s, "sandbox_created", s->plan.request.policy);
    if (send_sandbox(s) < 0 || send_build(s) < 0)
        return -1;
    bool keep = s->plan.kept && !s->plan.serves;
    return keep ? send_id(s->owner->builder, W_KEEP, s) : 0;
}

/* The parent first: the gate that the listeners will be given to must know its policy and its
 * placeholders before the first packet can come. */
void sandbox_begin(struct sandbox *s)
{
    if (s->state != SANDBOX_NEW || s->owner->builder == NULL || !s->owner->recording)
        return;
    if (s->unwanted) {
        char text[256];
        snprintf(text, sizeof text, "%.255s", s->text);
        sandbox_end(s, s->status, text);
        return;
    }
    enum config_backend backend = s->plan.sandbox_spec.limits.backend;
    bool takes_long = backend == BACKEND_KUBERNETES || backend == BACKEND_MICROVM;
    set_state(s, SANDBOX_BUILDING, takes_long ? LONG_BUILD_MS : BUILD_MS);
    if (ask_for(s) < 0)
        sandbox_end(s, EXIT_DURWARD_FAILED, "the sandbox could not be asked for");
}

void sandbox_builder_down(struct sandbox *s)
{
    if (s->state == SANDBOX_BUILDING)
        sandbox_end(s, EXIT_DURWARD_FAILED, "the builder died while it made the sandbox");
    else if (s->state == SANDBOX_ENDING && !s->torn)
        leave(s);
}

/* What init says before its answer was meant for the controller that died. */
static void ask_reset(struct sandbox *s)
{
    struct msg m;
    msg_init(&m, W_INIT_RESET);
    ipc_send(s->init, &m); /* if that fails, READY lasts too long and ends */
}

int sandbox_built(struct sandbox *s, struct msg *m)
{
    uint8_t ok;
    int fd = -1;
    char text[SANDBOX_TEXT_MAX];
    if (msg_get_u8(m, &ok) < 0 || msg_get_str(m, text, sizeof text) < 0 ||
        (ok && msg_get_fd(m, &fd) < 0) || msg_end(m) < 0) {
        if (fd >= 0)
            close(fd);
        return -1;
    }
    if (s->state != SANDBOX_BUILDING) { /* ended meanwhile: W_TEARDOWN is on its way */
        if (fd >= 0)
            close(fd);
        return 0;
    }
    if (!ok) {
        sandbox_end(s, EXIT_DURWARD_FAILED, text);
        return 0;
    }
    memcpy(s->masked, text, sizeof s->masked);
    set_state(s, SANDBOX_READY, READY_MS);
    s->init = ipc_new(s->owner->base, fd, sandbox_on_init, sandbox_on_init_closed, s);
    if (s->init == NULL)
        sandbox_end(s, EXIT_DURWARD_FAILED, "out of memory");
    else if (s->plan.adopt)
        ask_reset(s);
    return 0;
}

/* The self-test passed: now, and not before, the command. */
int sandbox_exec(struct sandbox *s)
{
    struct run_request *r = &s->plan.request;
    struct msg m;
    msg_init(&m, W_INIT_EXEC);
    msg_put_u32(&m, 0); /* the only one */
    strlist_put(&r->argv, &m);
    strlist_put(&s->plan.env, &m);
    msg_put_str(&m, r->cwd);
    msg_put_u8(&m, r->tty ? COMMAND_TERMINAL : COMMAND_GIVEN);
    msg_put_u32(&m, r->rows);
    msg_put_u32(&m, r->cols);
    msg_put_u8(&m, 0);
    for (int i = 0; i < 3 && !r->tty; i++) {
        msg_put_fd(&m, r->fds[i]);
        r->fds[i] = -1;
    }
    return ipc_send(s->init, &m);
}

void sandbox_running(struct sandbox *s)
{
    set_state(s, SANDBOX_RUNNING, 0);
    tell(s, s->plan.adopt ? "sandbox_adopted" : "sandbox_started", s->plan.request.policy);
    if (s->owner->running)
        s->owner->running(s->owner->arg, s);
}

void sandbox_started(struct sandbox *s, int pty)
{
    struct msg m;
    set_state(s, SANDBOX_RUNNING, 0);
    tell(s, "sandbox_started", s->plan.request.policy);
    msg_init(&m, W_RUN_STARTED);
    msg_put_str(&m, s->plan.id);
    msg_put_u8(&m, pty >= 0);
    msg_put_str(&m, s->masked);
    if (pty >= 0)
        msg_put_fd(&m, pty);
    if (s->client)
        ipc_send(s->client, &m);
    else
        msg_done(&m);
}

static int forward(struct sandbox *s, uint16_t type, uint32_t a, uint32_t b, bool two)
{
    struct msg m;
    msg_init(&m, type);
    msg_put_u32(&m, 0);
    msg_put_u32(&m, a);
    if (two)
        msg_put_u32(&m, b);
    ipc_send(s->init, &m); /* a dead init ends the sandbox by its closed channel */
    return 0;
}

static bool signal_ok(uint32_t sig)
{
    static const uint32_t known[] = {SIGINT,  SIGTERM, SIGHUP,  SIGQUIT, SIGUSR1,
                                     SIGUSR2, SIGKILL, SIGTSTP, SIGCONT};
    for (size_t i = 0; i < ARRAY_LEN(known); i++)
        if (known[i] == sig)
            return true;
    return false;
}

/* SIGKILL means the whole sandbox: the command's descendants may have left its process group. */
static int client_signal(struct sandbox *s, uint32_t sig)
{
    if (!signal_ok(sig))
        return -1;
    if (s->state == SANDBOX_RUNNING && sig != SIGKILL)
        return forward(s, W_INIT_SIGNAL, sig, 0, false);
    if (s->state < SANDBOX_RUNNING && (sig == SIGUSR1 || sig == SIGUSR2))
        return 0;
    if (s->state < SANDBOX_ENDING && sig != SIGTSTP && sig != SIGCONT)
        sandbox_end(s, 128 + sig, "");
    return 0;
}

void sandbox_connected(struct sandbox *s, uint32_t number, int fd)
{
    struct msg m;
    if (s->client == NULL) {
        if (fd >= 0)
            close(fd);
        return;
    }
    msg_init(&m, W_RUN_CONNECTED);
    msg_put_u32(&m, number);
    msg_put_u8(&m, fd >= 0);
    if (fd >= 0)
        msg_put_fd(&m, fd);
    ipc_send(s->client, &m);
}

static int client_connect(struct sandbox *s, struct msg *m)
{
    uint32_t number, port;
    struct msg ask;
    if (msg_get_u32(m, &number) < 0 || msg_get_u32(m, &port) < 0 || msg_end(m) < 0 || number == 0 ||
        port == 0 || port > 65535)
        return -1;
    if (s->state != SANDBOX_RUNNING) {
        sandbox_connected(s, number, -1);
        return 0;
    }
    msg_init(&ask, W_INIT_CONNECT);
    msg_put_u32(&ask, number);
    msg_put_u32(&ask, port);
    ipc_send(s->init, &ask);
    return 0;
}

void sandbox_port_own(const struct sandbox_owner *owner, unsigned port, bool on)
{
    struct msg m;
    if (owner->parent == NULL || port == 0)
        return;
    msg_init(&m, W_PORT_OWN);
    msg_put_u32(&m, port);
    msg_put_u8(&m, on);
    ipc_send(owner->parent, &m);
}

static int client_published(struct sandbox *s, struct msg *m)
{
    uint32_t port;
    uint64_t outside;
    char address[64], text[96];
    if (msg_get_str(m, address, sizeof address) < 0 || msg_get_u32(m, &port) < 0 ||
        msg_end(m) < 0 || port > 65535)
        return -1;
    const char *colon = strrchr(address, ':');
    if (colon == NULL || slice_u64(slice_str(colon + 1), 65535, &outside) < 0 || outside == 0)
        return -1;
    sandbox_port_own(s->owner, (unsigned)outside, true);
    snprintf(text, sizeof text, "%s to %u", address, (unsigned)port);
    tell(s, "port_published", text);
    return 0;
}

int sandbox_client_message(struct sandbox *s, struct msg *m)
{
    uint32_t a, b;
    switch (m->type) {
    case W_RUN_CONNECT:
        return client_connect(s, m);
    case W_RUN_PUBLISHED:
        return client_published(s, m);
    case W_RUN_SIGNAL:
        if (msg_get_u32(m, &a) < 0 || msg_end(m) < 0)
            return -1;
        return client_signal(s, a);
    case W_RUN_WINSIZE:
        if (msg_get_u32(m, &a) < 0 || msg_get_u32(m, &b) < 0 || msg_end(m) < 0 || a > UINT16_MAX ||
            b > UINT16_MAX || !s->plan.request.tty)
            return -1;
        if (s->state == SANDBOX_RUNNING)
            return forward(s, W_INIT_WINSIZE, a, b, true);
        s->plan.request.rows = a; /* in time for W_INIT_EXEC, if that is still to come */
        s->plan.request.cols = b;
        return 0;
    default:
        return -1;
    }
}

void sandbox_client_gone(struct sandbox *s)
{
    s->client = NULL;
    sandbox_end(s, EXIT_DURWARD_FAILED, "its client is gone");
}

void sandbox_gate(struct sandbox *s, int fd)
{
    ipc_free(s->gate);
    s->told = false;
    s->gate = ipc_new(s->owner->base, fd, sandbox_on_gate, sandbox_on_gate_closed, s);
}

int sandbox_tell_gate(struct sandbox *s, struct msg *m)
{
    if (s->gate)
        return ipc_send(s->gate, m);
    msg_done(m);
    return -1;
}

/* Closing init's channel ends init, and with it everything inside; W_TEARDOWN removes the rest. */
void sandbox_end(struct sandbox *s, uint32_t status, const char *text)
{
    if (s->state >= SANDBOX_ENDING)
        return;
    bool asked = s->state != SANDBOX_NEW || s->plan.adopt;
    bool first = !s->unwanted;
    s->status = status;
    snprintf(s->text, sizeof s->text, "%s", text);
    s->unwanted = true;
    if (s->state == SANDBOX_NEW && asked && s->owner->builder == NULL && first)
        return; /* it may run, and nobody is there yet to end it */
    set_state(s, SANDBOX_ENDING, TEARDOWN_MS);
    ipc_free(s->init);
    s->init = NULL;
    if (asked && s->owner->builder)
        (void)send_id(s->owner->builder, W_TEARDOWN, s); /* a dead one has nothing to take down */
    else
        leave(s);
}

void sandbox_torn(struct sandbox *s)
{
    if (s->state == SANDBOX_ENDING && !s->torn)
        leave(s);
}

/* Nothing of it runs any more. The parent closes its gate, whose last counts are still wanted. */
static void leave(struct sandbox *s)
{
    s->torn = true;
    (void)send_id(s->owner->parent, W_SANDBOX_GONE, s);
    restart_timer(s, s->gate && s->client ? LAST_WORDS_MS : 0);
}

void sandbox_last_words(struct sandbox *s)
{
    if (s->state == SANDBOX_ENDING && s->torn)
        restart_timer(s, 0);
}

static void finish(struct sandbox *s)
{
    struct msg m;
    set_state(s, SANDBOX_GONE, 0);
    tell(s, "sandbox_ended", s->text);
    msg_init(&m, W_RUN_EXIT);
    msg_put_u32(&m, s->status);
    msg_put_str(&m, s->text);
    denials_put(&s->denials, &m);
    msg_put_str(&m, s->plan.id);
    if (s->client)
        ipc_send(s->client, &m);
    else
        msg_done(&m);
    if (s->owner->gone)
        s->owner->gone(s->owner->arg, s);
}
