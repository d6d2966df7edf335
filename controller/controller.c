/* The controller's main: reads its start from the parent, owns the channels to parent and builder,
 * takes reloads, and writes what all its parts have to record. */
#include "controller.h"

#include <event2/event.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "api.h"
#include "approvals.h"
#include "crypto_text.h"
#include "proposals.h"
#include "backlog.h"
#include "broker.h"
#include "controller_internal.h"
#include "execution.h"
#include "fleet_approvals.h"
#include "fleet_hosts.h"
#include "fleet_notes.h"
#include "fleet_revocations.h"
#include "sandbox_events.h"
#include "identities.h"
#include "journal.h"
#include "layer_queue.h"
#include "mcp_servers.h"
#include "peer.h"
#include "pods.h"
#include "pools.h"
#include "previews.h"
#include "proc.h"
#include "publication.h"
#include "registry.h"
#include "role_run.h"
#include "managed_sandbox.h"
#include "snapshot.h"
#include "suppressions.h"
#include "volumes.h"
#include "wire.h"

enum { CA_PEM_MAX = 64 * 1024 };

/* ---- what is recorded ---- */

void controller_put(const struct controller *c, const struct record *r)
{
    if (backlog_note(c->backlog, r) < 0)
        proc_log("a record was lost: there is no journal, and too many wait for one");
}

void controller_record(struct controller *c, const char *target, const char *what,
                       const char *detail)
{
    struct record r;
    record_init(&r, RECORD_LIFECYCLE, 0);
    record_put_str(&r, RF_EVENT, what);
    record_put_str(&r, RF_TARGET, target);
    record_put_str(&r, RF_DETAIL, detail);
    controller_put(c, &r);
}

void controller_note(struct controller *c, const char *target, const char *what, const char *detail)
{
    controller_record(c, target, what, detail);
    sandbox_events_add(c->sandbox_events, target, what, detail);
}

static void on_sandbox_event(void *arg, const struct sandbox *s, const char *what,
                             const char *detail)
{
    controller_note(arg, sandbox_id(s), what, detail);
}

/* A store of secrets that cannot be read, or can again. */
static int on_store_state(struct controller *c, struct msg *m)
{
    char name[129], text[1025];
    uint8_t ok;
    struct record r;
    if (msg_get_str(m, name, sizeof name) < 0 || msg_get_u8(m, &ok) < 0 || ok > 1 ||
        msg_get_str(m, text, sizeof text) < 0 || msg_end(m) < 0)
        return -1;
    const char *event = ok ? "store_recovered" : "store_failed";
    record_init(&r, RECORD_LIFECYCLE, 0);
    record_put_str(&r, RF_EVENT, event);
    record_put_str(&r, RF_CREDENTIAL, name);
    if (!ok)
        record_put_str(&r, RF_DETAIL, text);
    controller_put(c, &r);
    return 0;
}

/* A login was made inside, and stays with the home. */
static int on_login_captured(struct controller *c, struct msg *m)
{
    char sandbox[65], name[129];
    uint32_t n;
    if (msg_get_str(m, sandbox, sizeof sandbox) < 0 || msg_get_u32(m, &n) < 0)
        return -1;
    for (; n > 0; n--) {
        struct record r;
        if (msg_get_str(m, name, sizeof name) < 0)
            return -1;
        record_init(&r, RECORD_LIFECYCLE, 0);
        record_put_str(&r, RF_EVENT, "login_captured");
        record_put_str(&r, RF_TARGET, sandbox);
        record_put_str(&r, RF_CREDENTIAL, name);
        controller_put(c, &r);
    }
    return msg_end(m);
}

/* A role that nobody told to end; the parent starts another. */
static int on_role_ended(struct controller *c, struct msg *m)
{
    char sandbox[65], text[128];
    if (msg_get_str(m, sandbox, sizeof sandbox) < 0 || msg_get_str(m, text, sizeof text) < 0 ||
        msg_end(m) < 0)
        return -1;
    controller_record(c, sandbox, "role_ended", text);
    return 0;
}

static void on_sandbox_running(void *arg, struct sandbox *s)
{
    struct controller *c = arg;
    if (!mcp_servers_running(c->mcp_servers, s))
        managed_sandboxes_running(c, s);
}

static int on_sandbox_said(void *arg, struct sandbox *s, struct msg *m)
{
    struct controller *c = arg;
    int bad = 0;
    if (m->type == W_POD_INBOUND)
        return pods_said(c->pods, s, m);
    return mcp_servers_said(c->mcp_servers, s, m, &bad) ? bad : managed_sandboxes_said(c, s, m);
}

/* Names of an MCP server's sandbox are in no registry: no other controller takes it over. */
static void on_sandbox_named(void *arg, struct sandbox *s, const char *host, uint32_t index)
{
    struct controller *c = arg;
    if (!mcp_servers_have(c->mcp_servers, s))
        managed_sandboxes_named(c, s, host, index);
}

static void on_sandbox_gone(void *arg, struct sandbox *s)
{
    struct controller *c = arg;
    mcp_servers_gone(c->mcp_servers, s);
    client_sandbox_gone(arg, s);
    managed_sandboxes_gone(arg, s);
    if (managed_sandbox_find(c, sandbox_id(s)) == NULL)
        previews_sandbox_gone(c->previews, sandbox_id(s));
    if (managed_sandbox_find(c, sandbox_id(s)) == NULL)
        proposals_sandbox_ended(c->proposals, sandbox_id(s));
    sandbox_free(s);
}

void controller_kill(struct controller *c, struct sandbox *s, const char *why)
{
    struct managed_sandbox *r = managed_sandbox_find(c, sandbox_id(s));
    on_sandbox_event(c, s, "killed", why);
    if (r == NULL)
        sandbox_end(s, EXIT_DURWARD_FAILED, why);
    else
        (void)managed_sandbox_delete(r, why, NULL, NULL);
}

/* ---- the builder's channel ---- */

static int on_builder(struct ipc *ch UNUSED, struct msg *m, void *arg)
{
    struct controller *c = arg;
    char id[SANDBOX_ID_MAX + 1];
    if (m->type == W_LAYERED)
        return layer_queue_answer(c->layers, m);
    if (msg_get_str(m, id, sizeof id) < 0)
        return -1;
    struct sandbox *s = sandbox_find(&c->owner, id);
    if (m->type == W_BUILT)
        return s ? sandbox_built(s, m) : 0;
    if (m->type != W_TORN || msg_end(m) < 0)
        return -1;
    if (s)
        sandbox_torn(s);
    return 0;
}

static void on_builder_closed(struct ipc *ch, const char *why UNUSED, void *arg)
{
    struct controller *c = arg;
    c->owner.builder = NULL;
    ipc_free(ch);
    layer_queue_builder(c->layers, NULL);
    for (struct sandbox *s = NULL; (s = sandbox_next(&c->owner, s)) != NULL;)
        sandbox_builder_down(s);
}

static void begin_all(struct controller *c)
{
    for (struct sandbox *s = NULL; (s = sandbox_next(&c->owner, s)) != NULL;)
        sandbox_begin(s);
    pools_look(c->pools);
}

static void on_journal(void *arg)
{
    struct controller *c = arg;
    c->owner.recording = true;
    backlog_write(c->backlog);
    if (c->api)
        api_logger_here(c->api);
    begin_all(c);
}

static void attach_builder(struct controller *c, int fd)
{
    if (c->owner.builder)
        on_builder_closed(c->owner.builder, "replaced", c);
    c->owner.builder = ipc_new(c->base, fd, on_builder, on_builder_closed, c);
    begin_all(c);
    layer_queue_builder(c->layers, c->owner.builder);
}

/* ---- the parent's channel ---- */

static void attach_own_gate(struct controller *c, struct sandbox *s, int fd)
{
    sandbox_gate(s, fd);
    previews_gate(c->previews, sandbox_id(s));
}

static void attach_gate(struct controller *c, const char *sandbox, const char *what, int fd)
{
    struct sandbox *s = sandbox_find(&c->owner, sandbox);
    if (c->previews && strcmp(what, PEER_PORTER) == 0)
        previews_porter(c->previews, fd);
    else if (c->previews && s && strcmp(what, PEER_INSIDE) == 0)
        previews_inside(c->previews, sandbox, fd);
    else if (s && what[0] == 0)
        attach_own_gate(c, s, fd);
    else
        close(fd); /* a remote listener's gate, or a sandbox that ended meanwhile */
}

static int on_peer(struct controller *c, struct msg *m)
{
    struct peer far;
    if (peer_get(m, &far) < 0)
        return -1;
    switch (far.kind) {
    case ROLE_BUILDER:
        attach_builder(c, far.fd);
        return 0;
    case ROLE_GATE:
        attach_gate(c, far.sandbox, far.policy, far.fd);
        return 0;
    case ROLE_INJECTOR:
        approvals_holder(c->approvals, far.policy, true, far.fd);
        return 0;
    case ROLE_LOGGER:
        c->owner.recording = false; /* until the new journal is here */
        journal_attach(c->journal, far.fd, far.channel);
        return 0;
    case ROLE_SIGNER:
        if (c->api)
            api_signer(c->api, far.fd, far.channel);
        else
            close(far.fd);
        return 0;
    case ROLE_CLIENT:
        client_new(c, far.fd);
        return 0;
    case ROLE_FLEET:
        if (c->fleet)
            fleet_notes_attach(c->fleet, far.fd);
        else
            close(far.fd);
        return 0;
    default:
        if (broker_is_back(far.kind)) {
            approvals_holder(c->approvals, far.policy, false, far.fd);
            return 0;
        }
        close(far.fd);
        return -1;
    }
}

static struct config *read_config(int fd, struct err *err)
{
    char *json = NULL;
    size_t n = 0;
    if (ipc_memfd_read(fd, CONTROLLER_CONFIG_MAX, &json, &n, err) < 0)
        return NULL;
    struct config *c = config_from_json(json, n, err);
    free(json);
    return c;
}

/* Each policy that is another now, or new. */
static void note_policies(struct controller *c, const struct config *fresh, uint32_t generation)
{
    char detail[64];
    snprintf(detail, sizeof detail, "generation %u", (unsigned)generation);
    controller_note(c, "", "config_reloaded", detail);
    for (size_t i = 0; i < config_policies(fresh); i++) {
        const char *name = config_policy_name(fresh, i);
        char *was = config_policy_json(c->config, name), *now = config_policy_json(fresh, name);
        struct record r;
        if (was == NULL || now == NULL || strcmp(was, now) != 0) {
            record_init(&r, RECORD_LIFECYCLE, 0);
            record_put_str(&r, RF_EVENT, was ? "policy_changed" : "policy_added");
            record_put_str(&r, RF_POLICY, name);
            record_put_str(&r, RF_DETAIL, detail);
            controller_put(c, &r);
        }
        free(was);
        free(now);
    }
}

static bool same_text(const struct config *a, const struct config *b)
{
    char *of_a = config_json(a), *of_b = config_json(b);
    bool same = of_a && of_b && strcmp(of_a, of_b) == 0;
    free(of_a);
    free(of_b);
    return same;
}

static int on_policy(struct controller *c, struct msg *m)
{
    char name[RUN_NAME_MAX];
    uint32_t generation;
    int fd = -1;
    struct err err = {0};
    if (msg_get_str(m, name, sizeof name) < 0 || msg_get_u32(m, &generation) < 0 ||
        msg_get_fd(m, &fd) < 0)
        return -1;
    struct config *fresh = read_config(fd, &err);
    close(fd);
    if (fresh == NULL) {
        proc_log("a new configuration was not taken: %s", err.text);
        return 0;
    }
    note_policies(c, fresh, generation);
    bool same = same_text(c->config, fresh);
    config_unref(c->config);
    c->config = fresh;
    if (!same) {
        pools_reloaded(c->pools);
        previews_reloaded(c->previews);
    }
    if (!same && c->pods)
        pods_reloaded(c->pods);
    proposals_reloaded(c->proposals);
    if (identities_announce(c, &err) < 0)
        proc_log("identities: %s", err.text);
    return 0;
}

/* What clients elsewhere are told from now on; what became of the CA is recorded. */
static int on_trust(struct controller *c, struct msg *m)
{
    struct slice pem;
    char dir[sizeof c->trust_outside], event[64], detail[512];
    if (msg_get_slice(m, CA_PEM_MAX, &pem) < 0 || msg_get_str(m, dir, sizeof dir) < 0 ||
        msg_get_str(m, event, sizeof event) < 0 || msg_get_str(m, detail, sizeof detail) < 0 ||
        msg_end(m) < 0)
        return -1;
    char *copy = slice_dup(pem);
    if (copy == NULL)
        return -1;
    free(c->ca_pem);
    c->ca_pem = copy;
    memcpy(c->trust_outside, dir, sizeof dir);
    controller_record(c, "ca", event, detail);
    return 0;
}

static int on_parent(struct ipc *ch UNUSED, struct msg *m, void *arg)
{
    struct controller *c = arg;
    switch (m->type) {
    case W_PEER:
        return on_peer(c, m);
    case W_PEER_GONE:
        return 0; /* each channel's own end says the same */
    case W_POLICY:
        return on_policy(c, m);
    case W_ROLE_ENDED:
        return on_role_ended(c, m);
    case W_TRACED:
        return c->api ? api_traced(c->api, m) : 0;
    case W_STORE_STATE:
        return on_store_state(c, m);
    case W_LOGIN_CAPTURED:
        return on_login_captured(c, m);
    case W_TRUST:
        return on_trust(c, m);
    case W_PORT_OPENED:
        return publications_message(c, m);
    case W_MCP_DIAL:
        return mcp_servers_message(c->mcp_servers, m);
    case W_ACT:
        return controller_act(c, m);
    case W_NOTIFIED:
        return controller_notified(c, m);
    case W_STATUS:
    case W_RELOAD:
    case W_METERS_ALL:
    case W_VERIFIED:
    case W_REVOKED_TAKEN:
    case W_LOG_SAID:
        return c->api ? api_answer(c->api, m) : -1;
    default:
        return -1;
    }
}

static void on_parent_closed(struct ipc *ch UNUSED, const char *why UNUSED, void *arg)
{
    struct controller *c = arg;
    event_base_loopbreak(c->base);
}

/* ---- start ---- */

struct listening { /* -1: none */
    int api, metrics, console, tls, node;
};

static int take_init(struct controller *c, struct msg *m, struct listening *fd, struct err *err)
{
    struct slice pem;
    uint8_t private, metrics, console, tls, node;
    uint32_t uid;
    int config_fd = -1;
    *fd = (struct listening){-1, -1, -1, -1, -1};
    if (msg_get_u8(m, &private) < 0 || msg_get_u32(m, &uid) < 0 ||
        msg_get_slice(m, CA_PEM_MAX, &pem) < 0 ||
        msg_get_str(m, c->trust_inside, sizeof c->trust_inside) < 0 ||
        msg_get_str(m, c->trust_outside, sizeof c->trust_outside) < 0 ||
        msg_get_fd(m, &config_fd) < 0 || msg_get_fd(m, &c->state_dir) < 0 ||
        msg_get_u8(m, &metrics) < 0 || msg_get_u8(m, &console) < 0 || msg_get_u8(m, &tls) < 0 ||
        msg_get_u8(m, &node) < 0 || (!private && msg_get_fd(m, &fd->api) < 0) ||
        (metrics && msg_get_fd(m, &fd->metrics) < 0) ||
        (console && msg_get_fd(m, &fd->console) < 0) || (tls && msg_get_fd(m, &fd->tls) < 0) ||
        (node && msg_get_fd(m, &fd->node) < 0) || msg_end(m) < 0)
        return err_set(err, ERR_PARSE, "W_INIT is malformed");
    c->private = private != 0;
    c->owner_uid = uid;
    c->ca_pem = slice_dup(pem);
    c->config = read_config(config_fd, err);
    close(config_fd);
    if (c->ca_pem == NULL)
        return err_set(err, ERR_PARSE, "the CA's certificate is missing");
    return c->config ? 0 : -1;
}

static int64_t monotonic_seconds(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return ts.tv_sec;
}

/* The boot, and the time namespace, that CLOCK_BOOTTIME counts in. What is not known is "", which
 * is like no other. */
static void read_boot(char *ret, size_t cap)
{
    char id[40] = "", space[32] = "";
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, id, sizeof id - 1) : -1;
    if (fd >= 0)
        close(fd);
    id[n > 0 ? n : 0] = '\0';
    id[strcspn(id, "\n")] = '\0';
    n = readlink("/proc/self/ns/time", space, sizeof space - 1); /* kernels before 5.6 have none */
    space[n > 0 ? n : 0] = '\0';
    if (id[0])
        snprintf(ret, cap, "%s %s", id, space);
}

/* What hosts of a fleet tell one another. */
static int load_fleet(struct controller *c, struct err *err)
{
    c->fleet = fleet_notes_new(c, err);
    if (c->fleet == NULL)
        return -1;
    c->revocations = fleet_revocations_new(c);
    if (c->revocations == NULL)
        return err_set(err, ERR_INTERNAL, "out of memory");
    if (keys_load_fleet(c->state_dir, &c->keys, err) < 0)
        return -1;
    c->fleet_hosts = fleet_hosts_new(c, err);
    if (c->fleet_hosts == NULL)
        return -1;
    if (config_fleet(c->config)->n_hosts == 0)
        return 0;
    c->fleet_approvals = fleet_approvals_new(c, err);
    return c->fleet_approvals ? 0 : -1;
}

static int controller_load(void *self, struct msg *m, struct msg *ready, struct err *err)
{
    struct controller *c = self;
    struct listening fd;
    if (take_init(c, m, &fd, err) < 0 || keys_load(c->state_dir, &c->keys, err) < 0)
        return -1;
    msg_put_bytes(ready, c->keys.tag, sizeof c->keys.tag);
    msg_put_bytes(ready, c->keys.token_public, sizeof c->keys.token_public);
    c->started = monotonic_seconds();
    c->journal = journal_new(c->base, config_audit(c->config)->durability == AUDIT_SYNCED);
    c->backlog = c->journal ? backlog_new(c->base, c->journal) : NULL;
    c->approvals = approvals_new(c);
    c->proposals = proposals_new(c);
    c->mcp_servers = mcp_servers_new(c);
    if (c->backlog == NULL || c->approvals == NULL || c->proposals == NULL ||
        c->mcp_servers == NULL)
        return err_set(err, ERR_INTERNAL, "out of memory");
    journal_on_ready(c->journal, on_journal, c);
    c->layers = layer_queue_new();
    if (c->layers == NULL)
        return err_set(err, ERR_INTERNAL, "out of memory");
    c->owner.base = c->base;
    c->owner.event = on_sandbox_event;
    c->owner.gone = on_sandbox_gone;
    c->owner.running = on_sandbox_running;
    c->owner.said = on_sandbox_said;
    c->owner.named = on_sandbox_named;
    c->owner.proposed = proposals_of_gate;
    c->owner.preview = previews_of_gate;
    c->owner.arg = c;
    c->owner_gid = c->owner_uid ? getgid() : 0;
    if (!c->private) {
        read_boot(c->boot, sizeof c->boot);
        c->registry = registry_open(c->state_dir, err);
        if (c->registry == NULL)
            return -1;
        if (config_fleet(c->config) && load_fleet(c, err) < 0)
            return -1;
        c->sandbox_events = sandbox_events_new();
        c->suppressing = suppressing_new(c);
        if (c->suppressing == NULL)
            return err_set(err, ERR_INTERNAL, "out of memory");
        c->api = api_new(c, fd.api, err);
        if (c->api == NULL)
            return -1;
        if ((fd.metrics >= 0 && api_serve_metrics(c->api, fd.metrics, err) < 0) ||
            (fd.console >= 0 && api_serve_console(c->api, fd.console, err) < 0) ||
            (fd.tls >= 0 && api_serve_tls(c->api, fd.tls, err) < 0))
            return -1;
        c->previews = previews_new(c);
        c->pools = pools_new(c);
        if (c->pools == NULL || c->previews == NULL)
            return err_set(err, ERR_INTERNAL, "out of memory");
        c->pods = pods_new(c, fd.node, err);
        if (c->pods == NULL)
            return -1;
    }
    return 0;
}

/* What the registry holds is restored by what can do no more than the role. */
static int controller_confine(void *self, struct err *err)
{
    struct controller *c = self;
    const struct landlock_place own = {c->state_dir, LANDLOCK_KEEP}; /* where the registry is */
    if (proc_confine_to(ROLE_CONTROLLER, &own, c->private ? 0 : 1, err) < 0)
        return -1;
    if (c->private)
        return 0;
    if (managed_sandboxes_load(c, err) < 0 || snapshots_load(c, err) < 0 ||
        suppressing_load(c->suppressing, err) < 0)
        return -1;
    return managed_volumes_load(c, err); /* which may remove some, as that of snapshots */
}

static void controller_begun(void *self)
{
    struct controller *c = self;
    struct err err = {0};
    c->ready = true;
    if (identities_announce(c, &err) < 0)
        proc_log("identities: %s", err.text);
    if (c->suppressing)
        suppressing_announce(c->suppressing);
    pools_look(c->pools);
}

static const struct role_start role_steps = {
    .load = controller_load, .confine = controller_confine, .begun = controller_begun};

static int on_control(struct ipc *ch, struct msg *m, void *arg)
{
    struct controller *c = arg;
    if (c->ready)
        return on_parent(ch, m, c);
    return m->type == W_INIT && c->config == NULL ? role_start(&role_steps, c, c->owner.parent, m)
                                                  : -1;
}

static struct ipc *controller_open(void *self, struct event_base *base, int control_fd,
                                   struct err *err UNUSED)
{
    struct controller *c = self;
    c->base = base;
    c->owner.parent = ipc_new(base, control_fd, on_control, on_parent_closed, c);
    return c->owner.parent;
}

static int controller_leave(void *self, struct event_base *base)
{
    struct controller *c = self;
    struct sandbox *s;
    managed_sandboxes_close(c);
    pods_free(c->pods);
    pools_free(c->pools);
    previews_free(c->previews);
    c->previews = NULL;
    mcp_servers_free(c->mcp_servers);
    named_layers_close(&c->snapshots);
    named_layers_close(&c->volumes);
    while ((s = sandbox_next(&c->owner, NULL)) != NULL)
        sandbox_free(s);
    approvals_free(c->approvals);
    fleet_approvals_free(c->fleet_approvals);
    fleet_hosts_free(c->fleet_hosts);
    fleet_revocations_free(c->revocations);
    fleet_notes_free(c->fleet);
    proposals_free(c->proposals);
    suppressing_free(c->suppressing);
    client_drop_all(c);
    api_free(c->api);
    ipc_free(c->owner.builder);
    ipc_free(c->owner.parent);
    backlog_free(c->backlog);
    journal_free(c->journal);
    registry_close(c->registry);
    sandbox_events_free(c->sandbox_events);
    layer_queue_free(c->layers);
    keys_done(&c->keys);
    config_unref(c->config);
    free(c->ca_pem);
    if (c->state_dir >= 0)
        close(c->state_dir);
    event_base_free(base);
    return c->ready ? 0 : 1;
}

int controller_main(void)
{
    static const struct role_life life = {.role = ROLE_CONTROLLER,
                                          .first = crypto_text_later,
                                          .open = controller_open,
                                          .leave = controller_leave};
    struct controller c = {.state_dir = -1};
    c.redacting =
        (struct quota){.total = EXECUTION_REDACT_BYTES, .each = EXECUTION_REDACT_BYTES / 2};
    LIST_INIT(&c.clients);
    LIST_INIT(&c.owner.list);
    TAILQ_INIT(&c.managed_sandboxes);
    TAILQ_INIT(&c.snapshots.list);
    TAILQ_INIT(&c.volumes.list);
    return role_run(&life, &c);
}
