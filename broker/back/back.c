/* The main of every back: its channels, its policy, and the fronts that ask it. */
#include "back.h"

#include "broker.h"
#include "crypto_text.h"
#include "io.h"
#include "ipc.h"
#include "peer.h"
#include "pending_approval.h"
#include "policy_message.h"
#include "proc.h"
#include "role_run.h"
#include "roots.h"
#include "wire.h"

#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FRONTS_MAX = 4096, FACTS_MAX = 32 * 1024 };

struct front_channel {
    struct back *back;
    struct ipc *ipc;
    uint32_t number;
    char sandbox[65];
};

static int load_policy(struct back *b, const struct policy_message *told)
{
    struct err err = {0};
    struct policy *p = policy_message_load(told, &err);
    if (p == NULL) {
        proc_log("policy %s: %s", b->name, err.text);
        return -1;
    }
    policy_free(b->policy); /* requests under way hold references */
    b->policy = p;
    b->generation = told->generation;
    return 0;
}

/* Servers whose protocol has TLS are verified by these. */
static int load_roots(struct back *b, int roots_fd, struct err *err)
{
    struct roots *roots = roots_load(roots_fd, err); /* as long as the process */
    close(roots_fd);
    b->tls = io_tls_client_ctx();
    if (roots == NULL || b->tls == NULL)
        return err_wrap(err, "the roots");
    SSL_CTX_set1_cert_store(b->tls, roots_store(roots));
    return 0;
}

static int back_load(void *self, struct msg *m, struct msg *ready UNUSED, struct err *err)
{
    struct back *b = self;
    struct policy_message told;
    uint8_t synced;
    int roots_fd;
    if (limits_get(m, &b->limits) < 0 || msg_get_u8(m, &synced) < 0 ||
        policy_message_get(m, &told) < 0)
        return -1;
    snprintf(b->name, sizeof b->name, "%s", told.name);
    if (msg_get_fd(m, &roots_fd) < 0 || msg_end(m) < 0) {
        close(told.fd);
        return -1;
    }
    if (load_roots(b, roots_fd, err) < 0) {
        close(told.fd);
        return -1;
    }
    b->journal = journal_new(b->base, synced);
    b->dial = dial_client_new(b->base, b->limits.dial_seconds);
    b->secrets = secret_client_new(b->base);
    b->approvals = pending_approvals_new(b->base, b->limits.approval_seconds, b->limits.approvals);
    secret_unref(secret_alloc(1)); /* what secret memory needs is tried before the filter */
    if (!b->journal || !b->dial || !b->secrets || !b->approvals || load_policy(b, &told) < 0)
        return err_set(err, ERR_INTERNAL, "no memory, or a policy that does not compile");
    b->requests = (struct quota){.total = BACK_REQUESTS_MAX, .each = BACK_REQUESTS_OF_ONE};
    LIST_INIT(&b->requests.owners);
    journal_lost_to(b->journal, b->parent);
    dial_client_lost_to(b->dial, b->parent);
    secret_client_lost_to(b->secrets, b->parent);
    return b->life->load(b, err);
}

/* One that cannot start is started again; the parent is not told that all have failed. */
static int back_confine(void *self, struct err *err)
{
    const struct back *b = self;
    if (proc_confine(b->life->role, err) < 0) {
        proc_log("%s", err->text);
        exit(1);
    }
    return 0;
}

static const struct role_start role_steps = {.load = back_load, .confine = back_confine};

/* ---- fronts ---- */

static int on_front(struct ipc *ch UNUSED, struct msg *m, void *arg)
{
    struct front_channel *c = arg;
    struct back_asked asked = {.sandbox = c->sandbox, .fd = -1};
    char host[HOST_TEXT_MAX], text[HOST_TEXT_MAX + 2];
    uint32_t port;
    if (m->type != W_BROKER_OPEN || msg_get_str(m, host, sizeof host) < 0 ||
        msg_get_u32(m, &port) < 0 || port == 0 || port > 65535 ||
        msg_get_slice(m, FACTS_MAX, &asked.facts) < 0)
        return -1;
    asked.at.scheme = c->back->life->scheme;
    asked.at.port = (uint16_t)port;
    snprintf(text, sizeof text, strchr(host, ':') ? "[%s]" : "%s", host);
    if (authority_host(&asked.at, slice_str(text)) < 0 || msg_get_fd(m, &asked.fd) < 0)
        return -1;
    if (msg_end(m) == 0 && c->back->life->open(c->back, &asked) == 0)
        return 0;
    close(asked.fd);
    return -1;
}

static void on_front_closed(struct ipc *ch, const char *why UNUSED, void *arg)
{
    struct front_channel *c = arg;
    peer_lost(c->back->parent, c->number);
    c->back->n_fronts--;
    ipc_free(ch);
    free(c);
}

static void front_new(struct back *b, const struct peer *far)
{
    struct front_channel *c = b->n_fronts < FRONTS_MAX ? calloc(1, sizeof *c) : NULL;
    if (c == NULL) {
        close(far->fd);
        return;
    }
    c->back = b;
    c->number = far->channel;
    snprintf(c->sandbox, sizeof c->sandbox, "%s", far->sandbox);
    c->ipc = ipc_new(b->base, far->fd, on_front, on_front_closed, c);
    if (c->ipc == NULL)
        free(c);
    else
        b->n_fronts++;
}

/* ---- control ---- */

static int on_peer(struct back *b, struct msg *m)
{
    struct peer far;
    if (peer_get(m, &far) < 0)
        return -1;
    if (far.kind == ROLE_LOGGER)
        journal_attach(b->journal, far.fd, far.channel);
    else if (far.kind == ROLE_DIALER)
        dial_client_attach(b->dial, far.fd, far.channel);
    else if (far.kind == ROLE_VAULT)
        secret_client_attach(b->secrets, far.fd, far.channel);
    else if (far.kind == ROLE_CONTROLLER)
        pending_approvals_attach(b->approvals, far.fd);
    else if (broker_is_front(far.kind))
        front_new(b, &far);
    else
        close(far.fd);
    return 0;
}

static int on_policy(struct back *b, struct msg *m)
{
    struct policy_message told;
    if (policy_message_get(m, &told) < 0)
        return -1;
    if (msg_end(m) < 0) {
        close(told.fd);
        return -1;
    }
    if (load_policy(b, &told) < 0)
        return -1;
    b->life->policy(b);
    return 0;
}

static int on_control(struct ipc *ch UNUSED, struct msg *m, void *arg)
{
    struct back *b = arg;
    if (m->type == W_INIT && b->policy == NULL)
        return role_start(&role_steps, b, b->parent, m);
    if (b->policy == NULL)
        return -1;
    if (m->type == W_PEER)
        return on_peer(b, m);
    return m->type == W_POLICY ? on_policy(b, m) : -1;
}

static void on_parent_closed(struct ipc *ch UNUSED, const char *why UNUSED, void *arg)
{
    struct back *b = arg;
    event_base_loopbreak(b->base);
}

static struct ipc *back_start(void *self, struct event_base *base, int control_fd,
                              struct err *err UNUSED)
{
    struct back *b = self;
    b->base = base;
    b->parent = ipc_new(base, control_fd, on_control, on_parent_closed, b);
    return b->parent;
}

static int back_leave(void *self, struct event_base *base UNUSED)
{
    struct back *b = self;
    journal_leave(b->journal);
    secret_client_free(b->secrets); /* wipes what it holds */
    return 0;
}

int back_main(const struct back_life *life)
{
    static struct back b; /* what it has when the process ends is still held then */
    b.life = life;
    const struct role_life own = {.role = life->role,
                                  .first = crypto_text_later,
                                  .counts = true,
                                  .open = back_start,
                                  .leave = back_leave};
    return role_run(&own, &b);
}
