/* The injector's main. */
#include "injector.h"

#include "dial_client.h"
#include "injection.h"
#include "pending_approval.h"
#include "meter.h"
#include "peer.h"
#include "policy.h"
#include "proc.h"
#include "revoked.h"
#include "roots.h"
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

enum { POLICY_JSON_MAX = 16 << 20 };

static NORETURN void die(const char *why)
{
    proc_log("%s", why);
    exit(1);
}

static int load_policy(struct injector *i, uint32_t generation, int fd)
{
    char *json;
    size_t n;
    struct err err = {0};
    int got = ipc_memfd_read(fd, POLICY_JSON_MAX, &json, &n, &err);
    close(fd);
    struct policy *p = got == 0 ? policy_parse(json, n, &err) : NULL;
    if (got == 0)
        free(json);
    if (p == NULL) {
        proc_log("policy %s: %s", i->name, err.text);
        return -1;
    }
    policy_free(i->policy); /* injections under way hold references */
    i->policy = p;
    i->generation = generation;
    if (i->pool)
        pool_drop(i->pool, "");
    return 0;
}

/* No request with the new value goes out on a connection that saw the old one: some origins decide
 * by connection. The epoch is part of the pool's keys, so that what is in use now is not taken
 * again when it comes back. */
static void on_stale(void *arg, struct slice name UNUSED)
{
    struct injector *i = arg;
    i->epoch++;
    pool_drop(i->pool, "");
}

static void start(struct injector *i, int roots_fd, bool synced)
{
    struct err err = {0};
    struct rlimit files = {.rlim_cur = 1024};
    struct roots *roots = roots_load(roots_fd, &err);
    i->journal = journal_new(i->base, synced);
    i->dial = dial_client_new(i->base, i->limits.dial_seconds);
    i->secrets = secret_client_new(i->base);
    i->scrubs = scrub_cache_new(i->base);
    i->recall = recall_new();
    LIST_INIT(&i->searching);
    (void)getrlimit(RLIMIT_NOFILE, &files);
    injection_shares(i, (size_t)files.rlim_cur);
    i->pool = pool_new(i->base, i->limits.pool, i->limits.pool_idle_seconds);
    i->origin.tls = io_tls_client_ctx();
    if (vault_key_setup() < 0)
        die("OpenSSL cannot sign elsewhere");
    i->pending_approvals =
        pending_approvals_new(i->base, i->limits.approval_seconds, i->limits.approvals);
    if (!roots || !i->pending_approvals || !i->journal || !i->dial || !i->secrets || !i->scrubs ||
        !i->recall || !i->pool || !i->origin.tls)
        die(err.text[0] ? err.text : "out of memory");
    secret_client_on_stale(i->secrets, on_stale, i);
    tls_sessions_setup(i->origin.tls);
    SSL_CTX_set1_cert_store(i->origin.tls, roots_store(roots));
    i->origin.base = i->base;
    i->origin.limits = &i->limits;
    i->origin.pool = i->pool;
    i->origin.wipe = true;
}

static int on_init(struct injector *i, struct msg *m)
{
    struct slice limits, token;
    uint32_t generation;
    uint8_t synced;
    int policy_fd, roots_fd;
    struct err err = {0};
    if (msg_get_slice(m, sizeof i->limits, &limits) < 0 || limits.n != sizeof i->limits ||
        msg_get_u8(m, &synced) < 0 || msg_get_str(m, i->name, sizeof i->name) < 0 ||
        msg_get_u32(m, &generation) < 0 || msg_get_slice(m, TOKEN_KEY, &token) < 0 ||
        msg_get_fd(m, &policy_fd) < 0 || msg_get_fd(m, &roots_fd) < 0 || msg_end(m) < 0)
        return -1;
    memcpy(&i->limits, limits.p, sizeof i->limits);
    if (token.n == TOKEN_KEY)
        i->token_public = token_public_key((const unsigned char *)token.p, NULL);
    if (load_policy(i, generation, policy_fd) < 0)
        die("its policy does not compile");
    start(i, roots_fd, synced);
    journal_lost_to(i->journal, i->parent);
    dial_client_lost_to(i->dial, i->parent);
    secret_client_lost_to(i->secrets, i->parent);
    if (proc_confine(ROLE_INJECTOR, &err) < 0)
        die(err.text);
    struct msg ready;
    msg_init(&ready, W_READY);
    return ipc_send(i->parent, &ready);
}

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
    char name[65];
    uint32_t generation;
    int fd;
    if (msg_get_str(m, name, sizeof name) < 0 || msg_get_u32(m, &generation) < 0 ||
        msg_get_fd(m, &fd) < 0 || msg_end(m) < 0)
        return -1;
    return load_policy(i, generation, fd);
}

static int on_revoked(struct injector *i, struct msg *m)
{
    if (i->revoked == NULL)
        i->revoked = revoked_new();
    if (i->revoked == NULL)
        die("out of memory");
    return revoked_get(i->revoked, m, (uint64_t)time(NULL));
}

static int on_control(struct ipc *ch, struct msg *m, void *arg)
{
    struct injector *i = arg;
    if (m->type == W_INIT && i->policy == NULL)
        return on_init(i, m);
    if (i->policy == NULL)
        return -1;
    if (m->type == W_PEER)
        return on_peer(i, m);
    if (m->type == W_REVOKED)
        return on_revoked(i, m);
    if (m->type == W_REVOKED_TAKEN)
        return revoked_taken(ch, m);
    return m->type == W_POLICY ? on_policy(i, m) : -1;
}

static void on_parent_closed(struct ipc *ch UNUSED, const char *why UNUSED, void *arg)
{
    struct injector *i = arg;
    event_base_loopbreak(i->base);
}

int injector_main(void);

int injector_main(void)
{
    static struct injector injector;
    struct injector *i = &injector;
    struct err err = {0};
    if (proc_enter(ROLE_INJECTOR, &err) < 0) {
        proc_log("%s", err.text);
        return 1;
    }
    i->base = event_base_new();
    i->parent = i->base ? ipc_new(i->base, PROC_CONTROL_FD, on_control, on_parent_closed, i) : NULL;
    if (i->parent == NULL)
        return 1;
    trace_report(i->parent);
    if (meter_report(i->base, i->parent) == 0)
        event_base_dispatch(i->base);
    meter_report_end();
    scrub_cache_free(i->scrubs);
    recall_free(i->recall);
    pending_approvals_free(i->pending_approvals);
    secret_client_free(i->secrets);
    revoked_free(i->revoked);
    ipc_free(i->parent);
    return 0;
}
