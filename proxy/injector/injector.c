/* The injector's main. */
#include "injector.h"

#include "crypto_text.h"
#include "dial_client.h"
#include "injection.h"
#include "pending_approval.h"
#include "mcp_pins.h"
#include "meter.h"
#include "peer.h"
#include "policy_message.h"
#include "proc.h"
#include "revoked.h"
#include "role_run.h"
#include "tls_sessions.h"
#include "token.h"
#include "vault_key.h"
#include "wire.h"

#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

static NORETURN void die(const char *why)
{
    proc_log("%s", why);
    exit(1);
}

static int load_policy(struct injector *i, const struct policy_message *told)
{
    struct err err = {0};
    struct policy *p = policy_message_load(told, &err);
    if (p == NULL) {
        proc_log("policy %s: %s", i->name, err.text);
        return -1;
    }
    policy_free(i->policy); /* injections under way hold references */
    i->policy = p;
    i->generation = told->generation;
    if (i->origin.pool)
        pool_drop(i->origin.pool, "");
    return 0;
}

/* No request with the new value goes out on a connection that saw the old one: some origins decide
 * by connection. The epoch is part of the pool's keys, so that what is in use now is not taken
 * again when it comes back. */
static void on_stale(void *arg, struct slice name UNUSED)
{
    struct injector *i = arg;
    i->epoch++;
    pool_drop(i->origin.pool, "");
}

static void start(struct injector *i, int roots_fd, bool synced)
{
    struct err err = {0};
    struct rlimit files = {.rlim_cur = 1024};
    i->journal = journal_new(i->base, synced);
    i->dial = dial_client_new(i->base, i->limits.dial_seconds);
    i->secrets = secret_client_new(i->base);
    i->scrubs = scrub_cache_new(i->base);
    i->recall = recall_new();
    LIST_INIT(&i->searching);
    (void)getrlimit(RLIMIT_NOFILE, &files);
    injection_shares(i, (size_t)files.rlim_cur);
    int r = origin_env_init(&i->origin, i->base, &i->limits, i->limits.pool,
                            i->limits.pool_idle_seconds);
    r = r < 0 ? -1 : origin_env_trust(&i->origin, roots_fd, &err);
    if (vault_key_setup() < 0)
        die("OpenSSL cannot sign elsewhere");
    i->pending_approvals =
        pending_approvals_new(i->base, i->limits.approval_seconds, i->limits.approvals);
    if (r < 0 || !i->pending_approvals || !i->journal || !i->dial || !i->secrets || !i->scrubs ||
        !i->recall)
        die(err.text[0] ? err.text : "out of memory");
    secret_client_on_stale(i->secrets, on_stale, i);
    tls_sessions_setup(i->origin.tls);
    i->origin.wipe = true;
}

static int injector_load(void *self, struct msg *m, struct msg *ready UNUSED,
                         struct err *err UNUSED)
{
    struct injector *i = self;
    struct policy_message told;
    struct slice token;
    uint8_t synced, several;
    int roots_fd;
    if (limits_get(m, &i->limits) < 0 || msg_get_u8(m, &synced) < 0 ||
        msg_get_u8(m, &several) < 0 || policy_message_get(m, &told) < 0 ||
        msg_get_slice(m, TOKEN_KEY, &token) < 0 || msg_get_fd(m, &roots_fd) < 0 || msg_end(m) < 0)
        return -1;
    i->several = several != 0;
    snprintf(i->name, sizeof i->name, "%s", told.name);
    if (token.n == TOKEN_KEY)
        i->token_public = token_public_key((const unsigned char *)token.p, NULL);
    if (load_policy(i, &told) < 0)
        die("its policy does not compile");
    start(i, roots_fd, synced);
    journal_lost_to(i->journal, i->parent);
    dial_client_lost_to(i->dial, i->parent);
    secret_client_lost_to(i->secrets, i->parent);
    return 0;
}

/* One that cannot start is started again; the parent is not told that all have failed. */
static int injector_confine(void *self UNUSED, struct err *err)
{
    if (proc_confine(ROLE_INJECTOR, err) < 0)
        die(err->text);
    return 0;
}

static const struct role_start role_steps = {.load = injector_load, .confine = injector_confine};

static int on_peer(struct injector *i, struct msg *m)
{
    struct peer far;
    if (peer_get(m, &far) < 0)
        return -1;
    switch (far.kind) {
    case ROLE_VAULT:
        secret_client_attach(i->secrets, far.fd, far.channel);
        return 0;
    case ROLE_DIALER:
        dial_client_attach(i->dial, far.fd, far.channel);
        return 0;
    case ROLE_LOGGER:
        journal_attach(i->journal, far.fd, far.channel);
        return 0;
    case ROLE_CONTROLLER:
        pending_approvals_attach(i->pending_approvals, far.fd);
        return 0;
    case ROLE_GATE:
        injector_channel_server_new(i, far.fd, far.sandbox, slice_eq(far.extra, SLICE("token")));
        return 0;
    default:
        close(far.fd);
        return 0;
    }
}

static int on_policy(struct injector *i, struct msg *m)
{
    struct policy_message told;
    if (policy_message_get(m, &told) < 0)
        return -1;
    if (msg_end(m) == 0)
        return load_policy(i, &told);
    close(told.fd);
    return -1;
}

static int on_control(struct ipc *ch, struct msg *m, void *arg)
{
    struct injector *i = arg;
    if (m->type == W_INIT && i->policy == NULL)
        return role_start(&role_steps, i, i->parent, m);
    if (i->policy == NULL)
        return -1;
    if (m->type == W_PEER)
        return on_peer(i, m);
    if (m->type == W_REVOKED)
        return revoked_take(&i->revoked, m, (uint64_t)time(NULL));
    if (m->type == W_REVOKED_UNTIL)
        return revoked_take_until(&i->revoked, m);
    if (m->type == W_REVOKED_TAKEN)
        return revoked_taken(ch, m);
    return m->type == W_POLICY ? on_policy(i, m) : -1;
}

static void on_parent_closed(struct ipc *ch UNUSED, const char *why UNUSED, void *arg)
{
    struct injector *i = arg;
    event_base_loopbreak(i->base);
}

static struct ipc *injector_open(void *self, struct event_base *base, int control_fd,
                                 struct err *err UNUSED)
{
    struct injector *i = self;
    i->base = base;
    i->parent = ipc_new(base, control_fd, on_control, on_parent_closed, i);
    return i->parent;
}

static int injector_leave(void *self, struct event_base *base UNUSED)
{
    struct injector *i = self;
    journal_leave(i->journal);
    scrub_cache_free(i->scrubs);
    recall_free(i->recall);
    mcp_pins_free(i->pins);
    pending_approvals_free(i->pending_approvals);
    secret_client_free(i->secrets);
    revoked_free(i->revoked);
    ipc_free(i->parent);
    return 0;
}

int injector_main(void);

int injector_main(void)
{
    static const struct role_life life = {.role = ROLE_INJECTOR,
                                          .first = crypto_text_later,
                                          .counts = true,
                                          .traces = true,
                                          .open = injector_open,
                                          .leave = injector_leave};
    static struct injector injector;
    return role_run(&life, &injector);
}
