/* The main of every front: its channels, its policy, and what it says to its back. */
#include "front.h"

#include "crypto_text.h"
#include "io.h"
#include "ipc.h"
#include "meter.h"
#include "mint_client.h"
#include "peer.h"
#include "policy_message.h"
#include "proc.h"
#include "role_run.h"
#include "broker.h"
#include "wire.h"

#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LEAVES_MAX = 64, BACK_SECONDS = 120 };

static int load_policy(struct front *f, const struct policy_message *told)
{
    struct err err = {0};
    struct policy *p = policy_message_load(told, &err);
    if (p == NULL) {
        proc_log("policy %s: %s", f->name, err.text);
        return -1;
    }
    policy_free(f->policy); /* requests under way hold references */
    f->policy = p;
    f->generation = told->generation;
    return 0;
}

/* One key for all its certificates. */
static int load_tls(struct front *f, struct err *err)
{
    if (!f->life->tls)
        return 0;
    f->mint = mint_client_new(f->base, f->limits.mints, LEAVES_MAX, err);
    f->tls = io_tls_server_ctx(false);
    if (f->mint == NULL || f->tls == NULL)
        return err_wrap(err, "TLS towards the sandbox");
    mint_client_lost_to(f->mint, f->parent);
    if (f->life->protocols)
        io_tls_choose(f->tls, f->life->protocols);
    return 0;
}

static int front_load(void *self, struct msg *m, struct msg *ready UNUSED, struct err *err)
{
    struct front *f = self;
    struct policy_message told;
    struct slice key;
    uint8_t synced;
    if (limits_get(m, &f->limits) < 0 || msg_get_u8(m, &synced) < 0 ||
        msg_get_slice(m, BROKER_KEY_MAX, &key) < 0 || policy_message_get(m, &told) < 0)
        return -1;
    snprintf(f->name, sizeof f->name, "%s", told.name);
    if (msg_end(m) < 0) {
        close(told.fd);
        return -1;
    }
    f->journal = journal_new(f->base, synced);
    if (f->journal == NULL || load_policy(f, &told) < 0)
        return err_set(err, ERR_INTERNAL, "no journal, or a policy that does not compile");
    journal_lost_to(f->journal, f->parent);
    if (load_tls(f, err) < 0)
        return -1;
    return f->life->load(f, key, err);
}

/* One that cannot start is started again; the parent is not told that all have failed. */
static int front_confine(void *self, struct err *err)
{
    const struct front *f = self;
    if (proc_confine(f->life->role, err) < 0) {
        proc_log("%s", err->text);
        exit(1);
    }
    return 0;
}

static const struct role_start role_steps = {.load = front_load, .confine = front_confine};

/* ---- the gate ---- */

static int on_gate(struct ipc *ch UNUSED, struct msg *m, void *arg)
{
    struct front *f = arg;
    struct authority at;
    char host[HOST_TEXT_MAX];
    uint32_t port;
    int fd;
    if (m->type != W_BROKER_ACCEPT || msg_get_str(m, host, sizeof host) < 0 ||
        msg_get_u32(m, &port) < 0 || port == 0 || port > 65535 || msg_get_fd(m, &fd) < 0)
        return -1;
    memset(&at, 0, sizeof at);
    at.scheme = f->life->scheme;
    at.port = (uint16_t)port;
    char text[HOST_TEXT_MAX + 2];
    snprintf(text, sizeof text, strchr(host, ':') ? "[%s]" : "%s", host);
    if (msg_end(m) < 0 || authority_host(&at, slice_str(text)) < 0) {
        close(fd);
        return -1;
    }
    meter_add(METER_SESSIONS, 1);
    f->life->accept(f, &at, fd);
    return 0;
}

static void on_gate_closed(struct ipc *ch, const char *why UNUSED, void *arg)
{
    struct front *f = arg;
    ipc_free(ch);
    if (f->gate != ch)
        return;
    f->gate = NULL;
    peer_lost(f->parent, f->gate_channel);
}

/* ---- the back: it only ever closes; what it says of a request is on that request's stream ---- */

static int on_back(struct ipc *ch UNUSED, struct msg *m UNUSED, void *arg UNUSED)
{
    return -1;
}

static void on_back_closed(struct ipc *ch, const char *why UNUSED, void *arg)
{
    struct front *f = arg;
    ipc_free(ch);
    if (f->back != ch)
        return;
    f->back = NULL;
    peer_lost(f->parent, f->back_channel);
}

unsigned front_wait_seconds(const struct front *f, const struct rule *rule)
{
    return BACK_SECONDS + (rule->ask ? f->limits.approval_seconds : 0);
}

struct broker_stream *front_open(struct front *f, const struct authority *at, struct slice facts,
                                 const struct broker_stream_ops *ops, void *arg)
{
    int fds[2];
    struct msg m;
    if (f->back == NULL || broker_stream_pair(fds) < 0)
        return NULL;
    msg_init(&m, W_BROKER_OPEN);
    msg_put_str(&m, at->host);
    msg_put_u32(&m, at->port);
    msg_put_slice(&m, facts);
    msg_put_fd(&m, fds[1]);
    struct broker_stream *s = broker_stream_new(f->base, fds[0], ops, arg);
    if (s == NULL) {
        msg_done(&m);
        return NULL;
    }
    if (ipc_send(f->back, &m) == 0)
        return s;
    broker_stream_free(s);
    return NULL;
}

void front_denied(struct front *f, struct record *r, const struct authority *at, const char *code)
{
    char text[HOST_TEXT_MAX + 16];
    record_put_str(r, RF_CODE, code);
    record_put_str(r, RF_SCHEME, scheme_name(at->scheme));
    record_put_str(r, RF_AUTHORITY, authority_text(at, text, sizeof text));
    record_put_str(r, RF_ENTRY, "transparent");
    if (journal_note(f->journal, r) < 0)
        proc_log("a refusal could not be recorded");
}

/* ---- control ---- */

static int on_peer(struct front *f, struct msg *m)
{
    struct peer far;
    if (peer_get(m, &far) < 0)
        return -1;
    if (far.kind == ROLE_LOGGER) {
        journal_attach(f->journal, far.fd, far.channel);
    } else if (far.kind == ROLE_GATE) {
        ipc_free(f->gate);
        f->gate_channel = far.channel;
        f->gate = ipc_new(f->base, far.fd, on_gate, on_gate_closed, f);
    } else if (far.kind == ROLE_SIGNER && f->mint) {
        mint_client_attach(f->mint, far.fd, far.channel);
    } else if (broker_is_back(far.kind)) {
        ipc_free(f->back);
        f->back_channel = far.channel;
        f->back = ipc_new(f->base, far.fd, on_back, on_back_closed, f);
    } else {
        close(far.fd);
    }
    return 0;
}

static int on_policy(struct front *f, struct msg *m)
{
    struct policy_message told;
    if (policy_message_get(m, &told) < 0)
        return -1;
    if (msg_end(m) == 0)
        return load_policy(f, &told);
    close(told.fd);
    return -1;
}

static int on_control(struct ipc *ch UNUSED, struct msg *m, void *arg)
{
    struct front *f = arg;
    if (m->type == W_INIT && f->policy == NULL)
        return role_start(&role_steps, f, f->parent, m);
    if (f->policy == NULL)
        return -1;
    if (m->type == W_PEER)
        return on_peer(f, m);
    return m->type == W_POLICY ? on_policy(f, m) : -1;
}

static void on_parent_closed(struct ipc *ch UNUSED, const char *why UNUSED, void *arg)
{
    struct front *f = arg;
    event_base_loopbreak(f->base);
}

static struct ipc *front_start(void *self, struct event_base *base, int control_fd,
                               struct err *err UNUSED)
{
    struct front *f = self;
    f->base = base;
    f->parent = ipc_new(base, control_fd, on_control, on_parent_closed, f);
    return f->parent;
}

static int front_leave(void *self, struct event_base *base UNUSED)
{
    journal_leave(((struct front *)self)->journal);
    return 0; /* what else it has goes with the process */
}

int front_main(const struct front_life *life)
{
    static struct front f; /* what it has when the process ends is still held then */
    f.life = life;
    const struct role_life own = {.role = life->role,
                                  .first = crypto_text_later,
                                  .counts = true,
                                  .open = front_start,
                                  .leave = front_leave};
    return role_run(&own, &f);
}
