/* W_INIT of each role. Some wait for others: builder and controller for the CA's certificate, the
 * rest for the keys that the controller holds. */
#include "parent.h"

#include "derived_spec.h"
#include "home_logins.h"
#include "token.h"
#include "wire.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* An exported CA is trusted for years, so what it signed is good for hours; whoever keeps a leaf
 * asks for the next one before (ca/mint_client.c). */
enum { LEAF_HOURS = 24 };

/* A run's own log is none of those that the fleet's hosts hold against one another. */
static void put_fleet_logs(const struct parent *p, struct msg *m)
{
    const struct config_fleet *fleet = p->mode == PARENT_SERVE ? config_fleet(p->config) : NULL;
    const struct config_fleet_logs *f = fleet ? &fleet->logs : NULL;
    bool says = f && f->host;
    msg_put_str(m, says ? f->host : "");
    msg_put_u32(m, says ? f->every : 0);
    msg_put_u32(m, says ? (uint32_t)f->n : 0);
    for (size_t i = 0; says && i < f->n; i++) {
        msg_put_str(m, f->all[i].name);
        msg_put_bytes(m, f->all[i].key, sizeof f->all[i].key);
    }
}

static void put_limits(struct parent *p, struct msg *m)
{
    const struct limits *l = config_limits(p->config);
    msg_put_bytes(m, l, sizeof *l);
    msg_put_u8(m, config_audit(p->config)->durability == AUDIT_SYNCED);
}

static void init_signer(struct parent *p, struct msg *m)
{
    parent_ca_again(p); /* a key that is destroyed cannot be given to a new one */
    const struct config_listen *api = config_api(p->config);
    msg_put_u8(m, p->ca.create);
    msg_put_u32(m, LEAF_HOURS);
    msg_put_u32(m, config_limits(p->config)->mints);
    msg_put_str(m, api ? api->name : "");
    msg_put_fd_dup(m, p->ca.key_fd);
    msg_put_fd_dup(m, p->ca.cert_fd);
    msg_put_fd_dup(m, p->secret_fd);
}

static void init_vault(struct parent *p, struct msg *m)
{
    size_t n;
    const struct config_secret *s = config_secrets(p->config, &n);
    msg_put_u32(m, (uint32_t)n);
    for (size_t i = 0; i < n; i++) {
        msg_put_str(m, s[i].name);
        msg_put_u8(m, (uint8_t)(s[i].store == STORE_LOGIN ? STORE_FILE : s[i].store));
        msg_put_u32(m, s[i].ttl);
        msg_put_u8(m, s[i].lines);
        if (s[i].derived)
            derived_spec_put(m, s[i].derived);
    }
    msg_put_fd_dup(m, p->env_fd);
}

/* With what token endpoints are verified: once the roots are packed. */
void parent_tell_vault_roots(struct parent *p)
{
    struct msg m;
    struct child *c = p->vault;
    if (p->roots_fd < 0 || c == NULL || (c->state != CHILD_INITED && c->state != CHILD_READY))
        return;
    const struct limits *l = config_limits(p->config);
    msg_init(&m, W_VAULT_ROOTS);
    msg_put_bytes(&m, l, sizeof *l);
    msg_put_fd_dup(&m, p->roots_fd);
    ipc_send(c->ch, &m);
}

/* Whose captured secrets go into the kept home: once that is known. */
void parent_tell_vault_home(struct parent *p)
{
    struct child *c = p->vault;
    if (c && c->ch && (c->state == CHILD_INITED || c->state == CHILD_READY))
        home_logins_tell(p->home_logins, c->ch);
}

static void put_upstream_proxy(struct parent *p, struct msg *m)
{
    size_t n;
    const struct config_proxy *proxy = config_upstream_proxy(p->config);
    const char *const *direct = config_no_proxy(p->config, &n);
    msg_put_u8(m, proxy ? (uint8_t)proxy->scheme : 0);
    if (proxy == NULL)
        return;
    msg_put_str(m, proxy->host);
    msg_put_u32(m, proxy->port);
    msg_put_str(m, proxy->user ? proxy->user : "");
    msg_put_str(m, proxy->password ? proxy->password : "");
    msg_put_u32(m, (uint32_t)n);
    for (size_t i = 0; i < n; i++)
        msg_put_str(m, direct[i]);
}

static void put_port(struct msg *m, const char *address)
{
    const char *colon = strrchr(address, ':');
    uint64_t port = 0;
    if (colon)
        (void)slice_u64(slice_str(colon + 1), 65535, &port);
    msg_put_u32(m, (uint32_t)port);
}

/* What no rule may lead a sandbox to: other policies' listeners, the API, the pages. */
static void put_own_ports(struct parent *p, struct msg *m)
{
    size_t n, k = 0;
    const struct config_listen *l = config_listens(p->config, &n), *api = config_api(p->config);
    const struct config_preview *preview = config_preview(p->config);
    const char *more[4] = {api ? api->address : NULL, config_metrics(p->config),
                           config_console(p->config), preview ? preview->address : NULL};
    for (size_t i = 0; i < ARRAY_LEN(more); i++)
        k += more[i] != NULL;
    msg_put_u32(m, (uint32_t)(p->mode == PARENT_SERVE ? n + k : 0));
    for (size_t i = 0; p->mode == PARENT_SERVE && i < n; i++)
        put_port(m, l[i].address);
    for (size_t i = 0; p->mode == PARENT_SERVE && i < ARRAY_LEN(more); i++)
        if (more[i])
            put_port(m, more[i]);
}

static void init_dialer(struct parent *p, struct msg *m)
{
    size_t n;
    const struct config_resolve *r = config_resolves(p->config, &n);
    msg_put_u32(m, (uint32_t)n);
    for (size_t i = 0; i < n; i++) {
        msg_put_str(m, r[i].host);
        msg_put_u32(m, r[i].port);
        msg_put_str(m, r[i].address);
    }
    msg_put_u32(m, 0); /* the guard denies every address of this host by itself */
    put_own_ports(p, m);
    put_upstream_proxy(p, m);
    msg_put_u32(m, config_limits(p->config)->dial_seconds);
    msg_put_bytes(m, p->token_public, TOKEN_KEY);
    msg_put_u8(m, config_audit(p->config)->durability == AUDIT_SYNCED);
    const struct config_fleet *fleet = config_fleet(p->config);
    msg_put_u32(m, fleet ? fleet->hold : 0);
    const struct config_proxy *proxy = config_upstream_proxy(p->config);
    if (proxy && proxy->scheme == SCHEME_HTTPS)
        msg_put_fd_dup(m, p->roots_fd);
    msg_put_fd_dup(m, p->budgets_fd);
}

static void init_logger(struct parent *p, struct msg *m)
{
    char sub[64] = "";
    const struct config_audit *a = config_audit(p->config);
    parent_keep_audit(p);
    if (p->mode == PARENT_RUN)
        snprintf(sub, sizeof sub, "run-%s", p->run_id);
    msg_put_u8(m, (uint8_t)config_audit(p->config)->durability);
    msg_put_str(m, sub);
    msg_put_u64(m, a->rotate_bytes);
    msg_put_u64(m, a->rotate_seconds);
    msg_put_u8(m, a->compress);
    msg_put_u64(m, a->keep_bytes);
    msg_put_u64(m, a->keep_seconds);
    msg_put_u64(m, a->share_burst);
    msg_put_u64(m, a->share_rate);
    msg_put_u8(m, a->anchor_command || a->anchor_syslog ||
                      config_exporter_url(p->config, EXPORTER_ANCHOR));
    msg_put_u32(m, (uint32_t)a->notify.n);
    for (size_t i = 0; i < a->notify.n; i++) {
        msg_put_u8(m, (uint8_t)a->notify.when[i].measure);
        msg_put_u64(m, a->notify.when[i].limit);
        msg_put_u32(m, a->notify.when[i].seconds);
        msg_put_u8(m, (uint8_t)a->notify.when[i].then);
    }
    put_fleet_logs(p, m);
    msg_put_fd_dup(m, p->audit_dir_fd);
}

static void init_controller(struct parent *p, struct msg *m)
{
    struct err err = {0};
    char *json = config_json(p->config);
    msg_put_u8(m, p->mode == PARENT_RUN);
    msg_put_u32(m, geteuid());
    msg_put_str(m, p->ca_pem);
    msg_put_str(m, "/etc/durward");
    msg_put_str(m, p->trust.dir);
    msg_put_fd(m, json ? ipc_memfd("config", json, strlen(json), &err) : -1);
    msg_put_fd_dup(m, p->state_dir_fd);
    msg_put_u8(m, p->metrics_fd >= 0);
    msg_put_u8(m, p->console_fd >= 0);
    msg_put_u8(m, p->https_fd >= 0);
    msg_put_u8(m, p->node_fd >= 0);
    if (p->mode == PARENT_SERVE)
        msg_put_fd_dup(m, p->api_fd);
    if (p->metrics_fd >= 0)
        msg_put_fd_dup(m, p->metrics_fd);
    if (p->console_fd >= 0)
        msg_put_fd_dup(m, p->console_fd);
    if (p->https_fd >= 0)
        msg_put_fd_dup(m, p->https_fd);
    if (p->node_fd >= 0)
        msg_put_fd_dup(m, p->node_fd);
    free(json);
}

static void init_exporter(struct parent *p, struct msg *m)
{
    const struct limits *l = config_limits(p->config);
    msg_put_bytes(m, l, sizeof *l);
    for (size_t i = 0; i < EXPORTER_PLACES; i++) {
        const char *url = config_exporter_url(p->config, (enum exporter_place)i);
        msg_put_str(m, url ? url : "");
    }
    msg_put_u8(m, p->starts[ROLE_EXPORTER] > 1);
    msg_put_fd_dup(m, p->roots_fd);
}

static void init_fleet(struct parent *p, struct msg *m)
{
    const struct config_fleet *f = config_fleet(p->config);
    const struct limits *l = config_limits(p->config);
    msg_put_bytes(m, l, sizeof *l);
    msg_put_str(m, f->at.host);
    msg_put_u32(m, f->at.port);
    msg_put_str(m, f->database);
    msg_put_str(m, f->login);
    msg_put_fd_dup(m, p->roots_fd);
}

/* What the configuration shows of the host to MCP servers: a daemon binds nothing else. */
static void put_mcp_files(const struct parent *p, struct msg *m)
{
    size_t n;
    uint32_t files = 0;
    const struct config_mcp_server *all = config_mcp_servers(p->config, &n);
    for (size_t i = 0; i < n; i++)
        files += (uint32_t)all[i].n_files;
    msg_put_u32(m, files);
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < all[i].n_files; k++) {
            msg_put_str(m, all[i].files[k].path);
            msg_put_u8(m, all[i].files[k].writable);
        }
}

/* What the builder knows of a node's pods (pod_place_get). */
static void put_pods(const struct parent *p, struct msg *m)
{
    static const struct config_node none = {.netns = "", .kubelet = ""};
    const struct config_node *n = p->mode == PARENT_SERVE ? config_node(p->config) : NULL;
    if (n == NULL)
        n = &none;
    msg_put_str(m, n->netns);
    msg_put_str(m, n->kubelet);
    msg_put_u32(m, (uint32_t)n->n_inbound);
    for (size_t i = 0; i < n->n_inbound; i++)
        msg_put_str(m, n->inbound[i]);
}

/* And of the cluster where it has pods made (cluster_place_get). */
static void put_cluster(const struct parent *p, struct msg *m)
{
    static const struct config_cluster none = {"", "", "", ""};
    const struct config_cluster *c = p->mode == PARENT_SERVE ? config_cluster(p->config) : NULL;
    if (c == NULL)
        c = &none;
    msg_put_str(m, c->api);
    msg_put_str(m, c->ca);
    msg_put_str(m, c->token);
    msg_put_str(m, c->image);
}

static void init_builder(struct parent *p, struct msg *m)
{
    msg_put_str(m, p->state_dir);
    msg_put_str(m, p->roots.dir);
    msg_put_str(m, p->init_path);
    msg_put_u8(m, p->mode == PARENT_RUN);
    put_mcp_files(p, m);
    put_pods(p, m);
    put_cluster(p, m);
    msg_put_fd_dup(m, p->archive_fd);
}

static void init_gate(struct parent *p, struct msg *m)
{
    put_limits(p, m);
    msg_put_fd_dup(m, p->roots_fd);
}

static void init_injector(struct parent *p, const struct child *c, struct msg *m)
{
    put_limits(p, m);
    msg_put_u8(m, config_policy_injectors(p->config, c->policy) > 1);
    parent_put_policy(p, c->policy, m);
    msg_put_bytes(m, p->token_public, TOKEN_KEY);
    msg_put_fd_dup(m, p->roots_fd);
}

static void init_broker(struct parent *p, const struct child *c, struct msg *m)
{
    put_limits(p, m);
    if (broker_is_front(c->role))
        msg_put_bytes(m, c->front_of ? c->front_of->key : NULL,
                      c->front_of ? c->front_of->key_len : 0);
    parent_put_policy(p, c->policy, m);
    if (broker_is_back(c->role))
        msg_put_fd_dup(m, p->roots_fd);
}

static bool may_init(const struct parent *p, enum role r)
{
    switch (r) {
    case ROLE_SIGNER:
    case ROLE_VAULT:
    case ROLE_LOGGER:
        return true;
    case ROLE_BUILDER:
    case ROLE_CONTROLLER:
        return p->ca_pem != NULL;
    case ROLE_GATE:
        return p->roots_fd >= 0;
    case ROLE_FLEET:
        return p->roots_fd >= 0 && p->controller_ready;
    default:
        return p->controller_ready;
    }
}

void parent_init_child(struct child *c)
{
    struct parent *p = c->parent;
    struct msg m;
    if (c->state != CHILD_STARTED || !may_init(p, c->role))
        return;
    msg_init(&m, W_INIT);
    switch (c->role) {
    case ROLE_SIGNER:
        init_signer(p, &m);
        break;
    case ROLE_VAULT:
        init_vault(p, &m);
        break;
    case ROLE_DIALER:
        init_dialer(p, &m);
        break;
    case ROLE_LOGGER:
        init_logger(p, &m);
        break;
    case ROLE_CONTROLLER:
        init_controller(p, &m);
        break;
    case ROLE_BUILDER:
        init_builder(p, &m);
        break;
    case ROLE_EXPORTER:
        init_exporter(p, &m);
        break;
    case ROLE_FLEET:
        init_fleet(p, &m);
        break;
    case ROLE_GATE:
        init_gate(p, &m);
        break;
    case ROLE_INJECTOR:
        init_injector(p, c, &m);
        break;
    default:
        if (broker_of(c->role))
            init_broker(p, c, &m);
        break;
    }
    if (parent_tell(c, &m) < 0)
        return;
    parent_set_state(c, CHILD_INITED);
    if (c->role == ROLE_VAULT) {
        parent_tell_vault_roots(p);
        parent_tell_vault_home(p);
    }
    parent_tell_revoked(c);
    if (c->role == ROLE_DIALER) {
        parent_tell_ports(c->parent);
        parent_labels_tell_all(c->parent);
    }
    parent_rewire(c);
    if (c->role == ROLE_SIGNER)
        parent_ask_roots(p);
    if (c->role == ROLE_GATE && c->sandbox)
        parent_bind_gate(c);
}

void parent_init_waiting(struct parent *p)
{
    struct child *c, *next;
    for (c = TAILQ_FIRST(&p->children); c; c = next) {
        next = TAILQ_NEXT(c, link);
        parent_init_child(c);
    }
}
