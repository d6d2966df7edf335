/* The parent's main: start everything, hand over, wait, stop. */
#include "derived_spec.h"
#include "crypto_text.h"
#include "home_logins.h"
#include "log_command.h"
#include "notice_queue.h"
#include "parent_objects.h"
#include "peer.h"
#include "role_run.h"
#include "store_broker.h"
#include "wire.h"

#include <event2/event.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    CONFIG_JSON_MAX = 64 << 20,
    STOP_MS = 3000,
    DRAIN_SECONDS = 10,
    SETTLE_MS = 300,
    FINISH_MS = 3000,
    TOKENS_SECONDS = 3,
    ANCHOR_SECONDS = 5,
    KEEP_FD = 4
};

/* ---- stopping ---- */

/* A command may end now, too, and who started it waits for that. (A store's command does not: the
 * vault that asked is among those who end.) */
static void reap(struct parent *p)
{
    struct child *c;
    pid_t pid;
    int status;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        if (parent_anchor_reaped(p, pid, status) || notice_queue_reaped(p, pid, status))
            continue;
        TAILQ_FOREACH(c, &p->children, link)
        if (c->pid == pid)
            c->pid = 0;
    }
}

static uint64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* SIGCHLD is blocked, so that none is lost between the look and the wait. */
static bool wait_for(struct parent *p, bool (*pick)(const struct child *), unsigned ms)
{
    uint64_t end = now_ms() + ms;
    for (;;) {
        bool left = false;
        struct child *c;
        reap(p);
        TAILQ_FOREACH(c, &p->children, link)
        left |= c->pid > 0 && pick(c);
        uint64_t now = now_ms();
        if (!left || now >= end)
            return !left;
        struct timespec t = {(time_t)((end - now) / 1000), (long)((end - now) % 1000) * 1000000};
        sigset_t child;
        sigemptyset(&child);
        sigaddset(&child, SIGCHLD);
        (void)sigtimedwait(&child, NULL, &t); /* or time is over, or another signal came */
    }
}

static bool not_logger(const struct child *c)
{
    return c->role != ROLE_LOGGER;
}

/* Who can neither record what they know nor tell anybody. */
static bool not_telling(const struct child *c)
{
    return c->role != ROLE_LOGGER && c->role != ROLE_EXPORTER && c->role != ROLE_DIALER &&
           c->role != ROLE_FLEET;
}

/* The builder has a sandbox's mounts to wait for, and nothing to record. */
static bool records(const struct child *c)
{
    return c->role != ROLE_LOGGER && c->role != ROLE_BUILDER;
}

static bool any(const struct child *c UNUSED)
{
    return true;
}

/* The channels of some are closed, and the end of some of these awaited. */
static void end_children(struct parent *p, bool (*pick)(const struct child *),
                         bool (*awaited)(const struct child *))
{
    struct child *c;
    sigset_t child, before;
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    sigprocmask(SIG_BLOCK, &child, &before);
    TAILQ_FOREACH(c, &p->children, link)
    if (pick(c)) {
        ipc_free(c->ch);
        c->ch = NULL;
    }
    if (!wait_for(p, awaited, STOP_MS)) {
        TAILQ_FOREACH(c, &p->children, link)
        if (c->pid > 0 && awaited(c))
            kill(c->pid, SIGKILL);
        wait_for(p, awaited, STOP_MS);
    }
    sigprocmask(SIG_SETMASK, &before, NULL);
}

void parent_stop(struct parent *p, int status)
{
    if (p->stopping)
        return;
    p->stopping = true;
    p->exit_status = status;
    event_base_loopbreak(p->base);
}

static void on_drain_over(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
    parent_stop(arg, 0);
}

void parent_drain(struct parent *p)
{
    struct timeval tv = {DRAIN_SECONDS, 0};
    struct child *c;
    bool gates = false;
    if (p->draining || p->stopping)
        return;
    p->draining = true;
    parent_retire(p->spare); /* it has nothing to drain */
    p->spare = NULL;
    TAILQ_FOREACH(c, &p->children, link)
    {
        struct msg m;
        if (c->role != ROLE_GATE || c->ch == NULL || c->state == CHILD_RETIRED)
            continue;
        msg_init(&m, W_DRAIN);
        ipc_send(c->ch, &m);
        gates = true;
    }
    if (!gates || event_base_once(p->base, -1, EV_TIMEOUT, on_drain_over, p, &tv) < 0)
        parent_stop(p, 0);
}

/* ---- starting ---- */

/* Only where there is something to carry. */
static void start_exporter(struct parent *p)
{
    char *places = config_exporter_json(p->config);
    if (places && (p->exporter = parent_start(p, ROLE_EXPORTER, NULL)) == NULL)
        parent_stop(p, 1);
    if (p->exporter)
        parent_wire(p, p->exporter, p->dialer, "", PEER_EXPORTER, false);
    if (p->exporter && (config_exporter_url(p->config, EXPORTER_LOGS) ||
                        config_exporter_url(p->config, EXPORTER_TRACES)))
        parent_wire(p, p->exporter, p->logger, "", "", false);
    free(places);
}

/* Where something is shared with other hosts. */
static void start_fleet(struct parent *p)
{
    if (config_fleet(p->config) == NULL)
        return;
    if (parent_revoked_begin(p) < 0 || (p->fleet = parent_start(p, ROLE_FLEET, NULL)) == NULL) {
        parent_stop(p, 1);
        return;
    }
    parent_wire(p, p->fleet, p->dialer, "", PEER_FLEET, false);
    if (p->mode == PARENT_SERVE && config_fleet(p->config)->logs.host)
        parent_wire(p, p->fleet, p->logger, "", "", false);
    parent_wire(p, p->fleet, p->dialer, "", "", false);
    parent_wire(p, p->fleet, p->vault, "", "", false);
    if (p->mode == PARENT_SERVE)
        parent_wire(p, p->fleet, p->controller, "", "", false);
}

/* `run` without a secret has none, until a policy needs an injector (parent_sandbox.c). A daemon's
 * is always there. */
static bool needs_vault(const struct parent *p)
{
    size_t n;
    (void)config_secrets(p->config, &n);
    return p->mode == PARENT_SERVE || n > 0;
}

/* It reads its W_INIT as soon as it can, while we start the next. */
static struct child *start(struct parent *p, enum role r)
{
    struct child *c = parent_start(p, r, NULL);
    if (c)
        parent_init_child(c);
    return c;
}

static void start_roles(struct parent *p)
{
    bool run = p->mode == PARENT_RUN; /* which waits for these in this order */
    p->signer = start(p, ROLE_SIGNER);
    p->controller = start(p, ROLE_CONTROLLER);
    p->builder = start(p, ROLE_BUILDER);
    p->logger = start(p, ROLE_LOGGER);
    p->vault = needs_vault(p) ? start(p, ROLE_VAULT) : NULL;
    p->dialer = run ? parent_start_later(p, ROLE_DIALER) : start(p, ROLE_DIALER);
    p->spare = run ? start(p, ROLE_GATE) : NULL;
    if (!p->logger || !p->signer || (!p->vault && needs_vault(p)) || !p->dialer || !p->controller ||
        !p->builder) {
        parent_stop(p, 1);
        return;
    }
    parent_wire(p, p->dialer, p->logger, "", "", false);
    parent_wire(p, p->controller, p->logger, "", "", false);
    char *endpoints = config_endpoints_json(p->config);
    if (endpoints)
        parent_wire(p, p->vault, p->dialer, "", PEER_TOKENS, false);
    free(endpoints);
    start_exporter(p);
    start_fleet(p);
    const struct config_proxy *proxy = config_upstream_proxy(p->config);
    if (proxy && proxy->password)
        parent_wire(p, p->dialer, p->vault, "", "", false);
    parent_wire(p, p->controller, p->builder, "", "", false);
    if (p->https_fd >= 0)
        parent_wire(p, p->controller, p->signer, "", "", false);
    if (p->mode == PARENT_RUN && config_policies(p->config) == 1)
        parent_injector(p, config_policy_name(p->config, 0), NULL);
    parent_init_waiting(p);
}

static bool all_ready(const struct parent *p)
{
    const struct child *c;
    const struct sandbox *s;
    TAILQ_FOREACH(c, &p->children, link)
    if (c->state != CHILD_READY && c->state != CHILD_ASLEEP && c->role != ROLE_GATE &&
        c->role != ROLE_INJECTOR)
        return false;
    TAILQ_FOREACH(s, &p->sandboxes, link)
    if (s->mode != 1 /* a local one is waited for by the builder */ && !s->answered)
        return false;
    return true;
}

static void hand_over_controller(struct parent *p)
{
    int fds[2];
    struct err err = {0};
    struct msg m;
    if (ipc_pair(fds, &err) < 0)
        return;
    struct peer client = {.kind = ROLE_CLIENT,
                          .channel = ++p->next_channel,
                          .generation = p->generation,
                          .fd = fds[0]};
    struct peer controller = client;
    controller.kind = ROLE_CONTROLLER;
    controller.fd = fds[1];
    msg_init(&m, W_PEER);
    peer_put(&m, &client);
    ipc_send(p->controller->ch, &m);
    msg_init(&m, W_PEER);
    peer_put(&m, &controller);
    ipc_send(p->starter, &m);
}

static void say_listeners(const struct parent *p)
{
    size_t n;
    const struct config_listen *l = config_listens(p->config, &n);
    for (size_t i = 0; i < n; i++)
        proc_log("listening on %s, %s%s", l[i].address, l[i].policy ? "policy " : "by token",
                 l[i].policy ? l[i].policy : "");
}

void parent_maybe_ready(struct parent *p)
{
    if (p->told_ready || !p->controller_ready || !all_ready(p))
        return;
    p->told_ready = true;
    if (p->starter) {
        struct msg m;
        msg_init(&m, W_READY);
        ipc_send(p->starter, &m);
        hand_over_controller(p);
    } else {
        if (SANITIZED)
            proc_log("%s", proc_relaxations());
        else if (landlock_abi() == 0)
            proc_log("this kernel has no Landlock: system-call filters%s alone keep roles from "
                     "files; see 'durward doctor'",
                     geteuid() ? "" : " and uids");
        say_listeners(p);
        proc_log("ready");
        parent_sandbox_spare(p);
    }
}

/* ---- signals ---- */

static void on_child(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
    struct parent *p = arg;
    int status;
    pid_t pid;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        if (!store_broker_reaped(p->store_broker, pid, status) &&
            !parent_anchor_reaped(p, pid, status) && !notice_queue_reaped(p, pid, status) &&
            !log_command_reaped(p, pid, status))
            parent_reaped(p, pid, status);
    }
}

static void on_term(evutil_socket_t sig, short what UNUSED, void *arg)
{
    struct parent *p = arg;
    if (sig == SIGINT && p->mode == PARENT_RUN)
        return; /* the terminal's ^C is the command's; the CLI passes it on */
    if (p->mode == PARENT_SERVE)
        parent_drain(p);
    else
        parent_stop(p, 0);
}

static void on_hup(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
    struct parent *p = arg;
    struct err err = {0};
    struct child *logger = p->logger;
    if (logger && logger->ch) {
        struct msg m;
        msg_init(&m, W_ROTATE);
        ipc_send(logger->ch, &m);
    }
    if (parent_reload(p, &err) < 0)
        proc_log("reload refused, the old configuration stays: %s", err.text);
    else
        proc_log("configuration reloaded (generation %u)", p->generation);
}

/* ---- the starter ---- */

static void fail_start(struct parent *p, const struct err *err)
{
    if (p->mode == PARENT_RUN && p->starter) {
        struct msg m;
        msg_init(&m, W_FAILED);
        msg_put_str(&m, err->text);
        ipc_send(p->starter, &m);
        ipc_flush(p->starter, 1000);
    } else {
        proc_log("%s", err->text);
    }
    parent_stop(p, 1);
}

/* "K=V" settings that say where things live, and what `command` stores are given. */
static int take_environment(struct msg *m)
{
    uint32_t n;
    if (msg_get_u32(m, &n) < 0 || n > 256)
        return -1;
    for (uint32_t i = 0; i < n; i++) {
        struct slice s;
        if (msg_get_slice(m, 32768, &s) < 0)
            return -1;
        char *kv = slice_dup(s); /* kept: putenv borrows it */
        if (kv == NULL || putenv(kv) != 0)
            return -1;
    }
    return 0;
}

static int take_init(struct parent *p, struct msg *m, struct err *err)
{
    uint8_t mode;
    char path[4096];
    int config_fd, env_fd, command_fd, home_fd = -1, lock_fd = -1;
    uint8_t home;
    char *json;
    size_t n;
    if (msg_get_u8(m, &mode) < 0 || msg_get_str(m, path, sizeof path) < 0 ||
        take_environment(m) < 0 || msg_get_fd(m, &config_fd) < 0 || msg_get_fd(m, &env_fd) < 0 ||
        msg_get_fd(m, &command_fd) < 0 || msg_get_u8(m, &home) < 0 || home > 1 ||
        (home && (msg_get_fd(m, &home_fd) < 0 || msg_get_fd(m, &lock_fd) < 0)) || msg_end(m) < 0 ||
        (mode != PARENT_RUN && mode != PARENT_SERVE))
        return err_set(err, ERR_PARSE, "bad start-up message");
    p->mode = mode;
    p->home_logins = home_logins_new(home_fd, lock_fd);
    p->env_fd = env_fd;
    p->command_fd = command_fd;
    p->config_path = path[0] ? strdup(path) : NULL;
    int r = ipc_memfd_read(config_fd, CONFIG_JSON_MAX, &json, &n, err);
    close(config_fd);
    if (r < 0)
        return -1;
    p->config = config_from_json(json, n, err);
    free(json);
    return p->config ? 0 : -1;
}

static int on_starter(struct ipc *ch UNUSED, struct msg *m, void *arg)
{
    struct parent *p = arg;
    struct err err = {0};
    if (m->type == W_SECRET_TRY && p->told_ready)
        return parent_try_secret(p, m);
    if (m->type != W_INIT || p->config)
        return -1;
    if (take_init(p, m, &err) < 0 || parent_setup(p, &err) < 0) {
        fail_start(p, &err);
        return 0;
    }
    if (p->mode == PARENT_SERVE) {
        ipc_free(p->starter);
        p->starter = NULL;
        close(KEEP_FD);
    }
    start_roles(p);
    parent_ca_known(p);
    if (!p->stopping && parent_setup_roots(p, &err) < 0) {
        fail_start(p, &err);
        return 0;
    }
    parent_tell_vault_roots(p);
    parent_init_waiting(p);
    return 0;
}

static void on_starter_closed(struct ipc *ch UNUSED, const char *why UNUSED, void *arg)
{
    parent_stop(arg, 0);
}

static void add_signal(struct parent *p, int sig, event_callback_fn fn)
{
    struct event *ev = evsignal_new(p->base, sig, fn, p);
    if (ev == NULL || event_add(ev, NULL) < 0) {
        proc_log("cannot watch signal %d", sig);
        exit(1);
    }
}

/* What the log still learns may reach a threshold, and somebody is to be told. */
static void finish_notices(struct parent *p)
{
    struct timeval tv = {0, SETTLE_MS * 1000};
    if (p->config == NULL || p->logger == NULL || config_audit(p->config)->notify.n == 0)
        return;
    end_children(p, not_telling, not_telling);
    event_base_loopexit(p->base, &tv);
    event_base_dispatch(p->base);
    notice_queue_finish(p, FINISH_MS);
}

static void on_late(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
    ((struct parent *)arg)->late = true;
}

static bool keeps_tokens(const struct config *c)
{
    size_t n = 0;
    const struct config_secret *s = c ? config_secrets(c, &n) : NULL;
    for (size_t i = 0; i < n; i++)
        if (s[i].derived &&
            (s[i].derived->text[SPEC_REFRESH_TOKEN] || s[i].derived->text[SPEC_KEEP] ||
             s[i].derived->kind == DERIVED_OAUTH_LOGIN))
            return true;
    return false;
}

/* An endpoint that was just asked may have replaced the refresh token. Who ends before the new one
 * is in its file has lost the login, so the vault ends first, and keeps it. So it is with the file
 * of another program's login, and with what was captured for a home. */
static void finish_tokens(struct parent *p)
{
    struct msg m;
    struct timeval tv = {TOKENS_SECONDS, 0};
    if (!keeps_tokens(p->config) || p->vault == NULL || p->vault->ch == NULL ||
        p->vault->state != CHILD_READY)
        return;
    msg_init(&m, W_VAULT_FINISH);
    if (ipc_send(p->vault->ch, &m) < 0 ||
        event_base_once(p->base, -1, EV_TIMEOUT, on_late, p, &tv) < 0)
        return;
    while (p->vault->ch && !p->late)
        event_base_loop(p->base, EVLOOP_ONCE);
}

/* The log's last checkpoint goes to whoever keeps a copy: who closes the logger's channel learns of
 * none any more. The others have ended by then, so that a copy by https is not among them. */
static void finish_log(struct parent *p)
{
    struct msg m;
    struct timeval tv = {ANCHOR_SECONDS, 0};
    const struct config_audit *a = p->config ? config_audit(p->config) : NULL;
    if (a == NULL || (a->anchor_command == NULL && a->anchor_syslog == NULL) || p->logger == NULL ||
        p->logger->ch == NULL || p->logger->state != CHILD_READY)
        return;
    p->late = false;
    msg_init(&m, W_LOGGER_FINISH);
    if (ipc_send(p->logger->ch, &m) < 0 ||
        event_base_once(p->base, -1, EV_TIMEOUT, on_late, p, &tv) < 0)
        return;
    while (!p->late && (p->logger->ch || p->anchor_pid > 0))
        event_base_loop(p->base, EVLOOP_ONCE);
    if (p->late)
        proc_log("audit anchor: the last checkpoint may not have arrived");
}

static struct ipc *parent_open(void *self, struct event_base *base, int control_fd,
                               struct err *err UNUSED)
{
    struct parent *p = self;
    p->secret_fd = p->env_fd = p->roots_fd = p->budgets_fd = p->audit_dir_fd = p->state_dir_fd =
        p->api_fd = -1;
    p->node_fd = p->metrics_fd = p->console_fd = p->https_fd = p->command_fd = p->archive_fd = -1;
    for (size_t i = 0; i < ARRAY_LEN(p->programs); i++)
        p->programs[i] = -1;
    p->ca.lock_fd = p->ca.key_fd = p->ca.cert_fd = p->ca.next_fd = -1;
    p->generation = 1;
    TAILQ_INIT(&p->children);
    TAILQ_INIT(&p->wires);
    TAILQ_INIT(&p->sandboxes);
    TAILQ_INIT(&p->acts);
    STAILQ_INIT(&p->revocations);
    p->base = base;
    p->store_broker = store_broker_new(base);
    if (p->store_broker == NULL)
        return NULL;
    add_signal(p, SIGCHLD, on_child);
    add_signal(p, SIGTERM, on_term);
    add_signal(p, SIGINT, on_term);
    add_signal(p, SIGHUP, on_hup);
    p->starter = ipc_new(base, control_fd, on_starter, on_starter_closed, p);
    return p->starter;
}

static int parent_leave(void *self, struct event_base *base UNUSED)
{
    struct parent *p = self;
    finish_tokens(p);
    finish_notices(p);
    end_children(p, not_logger, records); /* what they still record, the logger still takes */
    finish_log(p);
    end_children(p, any, any);
    parent_objects_free(p->objects);
    store_broker_free(p->store_broker);
    home_logins_free(p->home_logins);
    return p->exit_status;
}

int parent_main(void);

int parent_main(void)
{
    static const struct role_life life = {.role = ROLE_PARENT,
                                          .first = crypto_text_later,
                                          .open = parent_open,
                                          .leave = parent_leave};
    static struct parent parent;
    return role_run(&life, &parent);
}
