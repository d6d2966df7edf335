/* What roles say on their control channels. */
#include "notice_queue.h"

#include "home_logins.h"
#include "refresh_tokens.h"
#include "store_broker.h"
#include "token.h"
#include "wire.h"

#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* ---- readiness ---- */

static int signer_ready(struct parent *p, struct msg *m)
{
    struct slice pem;
    struct err err = {0};
    if (msg_get_slice(m, 16384, &pem) < 0 || msg_end(m) < 0)
        return -1;
    /* else it was there before, or this one is started again: the same certificate */
    if (p->ca_pem == NULL && parent_ca_ready(p, &err) < 0) {
        proc_log("%s", err.text);
        parent_stop(p, 1);
        return 0;
    }
    if (p->ca.lock_fd >= 0) { /* the CA is there now: let other starters in */
        close(p->ca.lock_fd);
        p->ca.lock_fd = -1;
    }
    p->ca.create = false;
    parent_init_waiting(p);
    return 0;
}

static int controller_is_ready(struct parent *p, struct msg *m)
{
    struct slice tag, token;
    if (msg_get_slice(m, 32, &tag) < 0 || msg_get_slice(m, TOKEN_KEY, &token) < 0 || tag.n != 32 ||
        token.n != TOKEN_KEY || msg_end(m) < 0)
        return -1;
    memcpy(p->tag_key, tag.p, 32);
    memcpy(p->token_public, token.p, TOKEN_KEY);
    bool first = !p->controller_ready;
    p->controller_ready = true;
    parent_init_waiting(p);
    if (first && p->mode == PARENT_SERVE) {
        struct err err = {0};
        if (parent_listen_all(p, &err) < 0) {
            proc_log("%s", err.text);
            parent_stop(p, 1);
        }
    }
    return 0;
}

static int on_ready(struct child *c, struct msg *m)
{
    struct parent *p = c->parent;
    int r = 0;
    if (c->state != CHILD_INITED)
        return -1;
    parent_set_state(c, CHILD_READY);
    if (c->role == ROLE_SIGNER)
        r = signer_ready(p, m);
    else if (c->role == ROLE_CONTROLLER)
        r = controller_is_ready(p, m);
    if (c->role == ROLE_CONTROLLER) {
        parent_acts_again(p);
        parent_tell_ended(p);
    } else if (c->role == ROLE_EXPORTER) {
        notice_queue_exporter_ready(p);
    } else if (c->role == ROLE_LOGGER) {
        parent_tell_suppressed(p);
    }
    if (r == 0)
        parent_maybe_ready(p);
    return r;
}

static int on_failed(struct child *c, struct msg *m)
{
    char text[768];
    struct parent *p = c->parent;
    /* only a role that is starting can fail to; a gate must not be able to say it for all of us */
    if (c->state != CHILD_INITED || msg_get_str(m, text, sizeof text) < 0)
        return -1;
    proc_log("the %s cannot start: %s", role_name(c->role), text);
    if (p->starter && !p->told_ready) {
        struct msg f;
        msg_init(&f, W_FAILED);
        msg_put_str(&f, text);
        ipc_send(p->starter, &f);
        ipc_flush(p->starter, 1000);
    }
    /* `run` starts its dialer late: what needs it is refused, and it is started again */
    if (c->role != ROLE_DIALER || !p->told_ready)
        parent_stop(p, 1);
    return 0;
}

/* The vault's files and commands. */
static int on_store_open(struct child *vault, struct msg *m)
{
    struct parent *p = vault->parent;
    size_t n;
    const struct config_secret *list = config_secrets(p->config, &n);
    if (vault->role != ROLE_VAULT)
        return -1;
    return store_broker_message(p->store_broker, vault->ch, m, list, n);
}

/* For the log: the controller has a journal. */
static int on_store_state(struct child *vault, struct msg *m)
{
    struct slice name, text;
    uint8_t ok;
    struct msg told;
    struct child *controller = vault->parent->controller;
    if (vault->role != ROLE_VAULT || msg_get_slice(m, 128, &name) < 0 || msg_get_u8(m, &ok) < 0 ||
        ok > 1 || msg_get_slice(m, 1024, &text) < 0 || msg_end(m) < 0)
        return -1;
    if (controller == NULL || controller->ch == NULL)
        return 0;
    msg_init(&told, W_STORE_STATE);
    msg_put_slice(&told, name);
    msg_put_u8(&told, ok);
    msg_put_slice(&told, text);
    ipc_send(controller->ch, &told);
    return 0;
}

/* `durward secret test` asks through the parent that it started. */
int parent_try_secret(struct parent *p, struct msg *m)
{
    uint32_t req;
    struct slice name;
    struct msg asked;
    if (msg_get_u32(m, &req) < 0 || msg_get_slice(m, 128, &name) < 0 || msg_end(m) < 0)
        return -1;
    if (p->vault == NULL || p->vault->ch == NULL)
        return -1;
    msg_init(&asked, W_SECRET_TRY);
    msg_put_u32(&asked, req);
    msg_put_slice(&asked, name);
    return ipc_send(p->vault->ch, &asked);
}

static int on_tried(struct child *vault, struct msg *m)
{
    struct ipc *starter = vault->parent->starter;
    uint32_t req, bytes;
    uint8_t ok;
    struct slice text;
    struct msg told;
    if (vault->role != ROLE_VAULT || starter == NULL || msg_get_u32(m, &req) < 0 ||
        msg_get_u8(m, &ok) < 0 || ok > 1 || msg_get_u32(m, &bytes) < 0 ||
        msg_get_slice(m, 1024, &text) < 0 || msg_end(m) < 0)
        return -1;
    msg_init(&told, W_SECRET_TRIED);
    msg_put_u32(&told, req);
    msg_put_u8(&told, ok);
    msg_put_u32(&told, bytes);
    msg_put_slice(&told, text);
    ipc_send(starter, &told);
    return 0;
}

static int on_kept(struct child *vault, struct msg *m)
{
    return vault->role == ROLE_VAULT
               ? refresh_tokens_message(vault->parent->state_dir, vault->ch, m)
               : -1;
}

/* Captured secrets that stay with the home, and their record. */
static int on_home_keep(struct child *vault, struct msg *m)
{
    struct msg told;
    struct parent *p = vault->parent;
    if (vault->role != ROLE_VAULT || home_logins_message(p->home_logins, vault->ch, m, &told) < 0)
        return -1;
    if (told.type && p->controller && p->controller->ch)
        ipc_send(p->controller->ch, &told);
    else if (told.type)
        msg_done(&told);
    return 0;
}

/* ---- controller ---- */

static int on_status(struct child *controller, struct msg *m)
{
    struct parent *p = controller->parent;
    struct child *c;
    uint32_t n = 0;
    struct msg a;
    char link[64], audit[PATH_MAX];
    if (msg_end(m) < 0)
        return -1;
    TAILQ_FOREACH(c, &p->children, link)
    n++;
    snprintf(link, sizeof link, "/proc/self/fd/%d", p->audit_dir_fd);
    ssize_t length = readlink(link, audit, sizeof audit - 1);
    audit[length < 0 ? 0 : length] = 0;
    msg_init(&a, W_STATUS);
    msg_put_str(&a, audit);
    msg_put_str(&a, p->api_path);
    msg_put_u32(&a, n + 1);
    msg_put_str(&a, "parent");
    msg_put_u32(&a, (uint32_t)getpid());
    msg_put_str(&a, "");
    TAILQ_FOREACH(c, &p->children, link)
    {
        msg_put_str(&a, role_name(c->role));
        msg_put_u32(&a, (uint32_t)c->pid);
        msg_put_str(&a, c->tag);
    }
    return ipc_send(controller->ch, &a);
}

static int on_reload(struct child *controller, struct msg *m)
{
    struct err err = {0};
    struct msg a;
    if (msg_end(m) < 0)
        return -1;
    int r = parent_reload(controller->parent, &err);
    msg_init(&a, W_RELOAD);
    msg_put_u8(&a, r == 0);
    msg_put_str(&a, r == 0 ? "" : err.text);
    return ipc_send(controller->ch, &a);
}

static int on_sandbox_gone(struct parent *p, struct msg *m)
{
    char id[65];
    if (msg_get_str(m, id, sizeof id) < 0 || msg_end(m) < 0)
        return -1;
    parent_sandbox_gone(p, id);
    if (p->vault && p->vault->ch) {
        struct msg gone;
        msg_init(&gone, W_CAPTURED_GONE);
        msg_put_str(&gone, id);
        parent_tell(p->vault, &gone);
    }
    return 0;
}

static int on_log(struct child *c, struct msg *m)
{
    uint8_t level;
    char text[768];
    if (msg_get_u8(m, &level) < 0 || msg_get_str(m, text, sizeof text) < 0 || msg_end(m) < 0)
        return -1;
    uint64_t told;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    bool may = log_bound_take(&c->log, now.tv_sec, &told);
    if (told)
        proc_log("%s: %llu lines were left out", parent_child_name(c), (unsigned long long)told);
    if (may)
        proc_log("%s: %s", parent_child_name(c), text);
    else if (c->log.left_out == 1)
        proc_log("%s: more than %d lines in a second: the rest of it is left out",
                 parent_child_name(c), LOG_LINES_A_SECOND);
    return 0;
}

/* ---- connections to MCP servers: the dialer asks, the controller has them made ---- */

enum { MCP_DIALS_UNREAD = 256 * 1024 };

static int mcp_refused(struct child *dialer, uint32_t req, const char *why)
{
    struct msg m;
    msg_init(&m, W_MCP_DIALED);
    msg_put_u32(&m, req);
    msg_put_u8(&m, 0);
    msg_put_str(&m, why);
    return ipc_send(dialer->ch, &m);
}

static int on_mcp_dial(struct child *dialer, struct msg *m)
{
    struct child *controller = dialer->parent->controller;
    struct slice sandbox, policy, server;
    uint32_t req;
    struct msg ask;
    if (dialer->role != ROLE_DIALER || msg_get_u32(m, &req) < 0 ||
        msg_get_slice(m, 64, &sandbox) < 0 || msg_get_slice(m, 64, &policy) < 0 ||
        msg_get_slice(m, 64, &server) < 0 || msg_end(m) < 0)
        return -1;
    if (controller == NULL || controller->ch == NULL)
        return mcp_refused(dialer, req, "the controller is not there");
    if (ipc_queued(controller->ch) > MCP_DIALS_UNREAD) /* it serves others too */
        return mcp_refused(dialer, req, "the controller has too much to do");
    msg_init(&ask, W_MCP_DIAL);
    msg_put_u32(&ask, (uint32_t)dialer->pid);
    msg_put_u32(&ask, req);
    msg_put_slice(&ask, sandbox);
    msg_put_slice(&ask, policy);
    msg_put_slice(&ask, server);
    ipc_send(controller->ch, &ask);
    return 0;
}

/* A dialer that was started since has asked for other things by the same numbers. */
static int on_mcp_dialed(struct child *controller, struct msg *m)
{
    struct child *dialer = controller->parent->dialer;
    struct slice text;
    uint32_t who, req;
    uint8_t ok;
    int fd = -1;
    struct msg answer;
    if (msg_get_u32(m, &who) < 0 || msg_get_u32(m, &req) < 0 || msg_get_u8(m, &ok) < 0 || ok > 1 ||
        msg_get_slice(m, 256, &text) < 0 || (ok && msg_get_fd(m, &fd) < 0))
        return -1;
    if (msg_end(m) < 0 || dialer == NULL || dialer->ch == NULL || (uint32_t)dialer->pid != who) {
        if (fd >= 0)
            close(fd);
        return m->bad ? -1 : 0;
    }
    msg_init(&answer, W_MCP_DIALED);
    msg_put_u32(&answer, req);
    msg_put_u8(&answer, ok);
    msg_put_slice(&answer, text);
    if (ok)
        msg_put_fd(&answer, fd);
    ipc_send(dialer->ch, &answer);
    return 0;
}

static int controller_message(struct child *c, struct msg *m)
{
    switch (m->type) {
    case W_SANDBOX:
        return parent_sandbox_new(c->parent, m);
    case W_SANDBOX_GONE:
        return on_sandbox_gone(c->parent, m);
    case W_LABELS:
        return parent_labels(c->parent, m);
    case W_REVOKED:
        return parent_revoked(c->parent, m);
    case W_REVOKED_UNTIL:
        return parent_revoked_until(c->parent, m);
    case W_SUPPRESS:
        return parent_suppress(c->parent, m);
    case W_PORT_OPEN:
        return parent_port_open(c, m);
    case W_PORT_OWN:
        return parent_port_own(c, m);
    case W_ACTED:
        return parent_acted(c, m);
    case W_STATUS:
        return on_status(c, m);
    case W_MCP_DIALED:
        return on_mcp_dialed(c, m);
    case W_TRACE:
        return parent_trace(c, m);
    case W_METERS_ALL:
        return parent_meters_all(c, m);
    case W_VERIFY:
        return parent_verify(c, m);
    case W_LOG_ASK:
        return parent_log_ask(c, m);
    case W_RELOAD:
        return on_reload(c, m);
    default:
        return -1;
    }
}

int parent_message(struct ipc *ch UNUSED, struct msg *m, void *arg)
{
    struct child *c = arg;
    switch (m->type) {
    case W_READY:
        return on_ready(c, m);
    case W_FAILED:
        return on_failed(c, m);
    case W_LOG:
        return on_log(c, m);
    case W_LOST:
        return parent_lost(c, m);
    case W_REVOKED_TAKEN:
        return parent_revoked_taken(c, m);
    case W_CORRUPT:
        return parent_corrupt(c, m);
    case W_METERS:
        return parent_meters(c, m);
    case W_COUNTS:
        return parent_counts(c, m);
    case W_TRACED:
        return parent_traced(c, m);
    case W_LOGIN_LOCK:
    case W_LOGIN_SAVE:
    case W_LOGIN_UNLOCK:
        return on_store_open(c, m);
    case W_TOKEN_SAVE:
    case W_TOKEN_GET:
        return on_kept(c, m);
    case W_STORE_OPEN:
        return on_store_open(c, m);
    case W_HOME_KEEP:
        return on_home_keep(c, m);
    case W_STORE_STATE:
        return on_store_state(c, m);
    case W_SECRET_TRIED:
        return on_tried(c, m);
    case W_BOUND:
        if (c->role != ROLE_GATE || msg_end(m) < 0)
            return -1;
        parent_sandbox_bound(c);
        return 0;
    case W_MCP_DIAL:
        return on_mcp_dial(c, m);
    case W_NOTICE:
        return parent_notice(c, m);
    case W_CARRIED:
        return notice_queue_carried(c, m);
    case W_ANCHOR:
        return c->role == ROLE_LOGGER ? parent_anchor(c->parent, m) : -1;
    case W_ROOT:
        return c->role == ROLE_SIGNER ? parent_sandbox_root(c, m) : -1;
    case W_LISTENERS:
        return c->role == ROLE_BUILDER ? parent_sandbox_listeners(c->parent, m) : -1;
    default:
        return c->role == ROLE_CONTROLLER ? controller_message(c, m) : -1;
    }
}
