/* Directories, the CA's files, roots, the API socket; reading the configuration again. */
#include "parent.h"

#include "program.h"

#include "budget_ledger.h"
#include "file_look.h"
#include "parent_objects.h"
#include "paths.h"
#include "start_wait.h"
#include "peer.h"
#include "roots.h"
#include "sandbox_ca.h"
#include "tcp_listen.h"
#include "wire.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static char *given_or(const char *given, char *(*fallback)(struct err *), struct err *err)
{
    return given ? strdup(given) : fallback(err);
}

/* Make it ours (or, as root, the role's that writes in it) and open it. */
static int open_dir_for(const char *path, enum role r, struct err *err)
{
    if (paths_make_private(path, err) < 0)
        return -1;
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return err_sys(err, "cannot open %s", path);
    uid_t uid = proc_role_uid(r);
    if (uid != geteuid() && (fchown(fd, uid, uid) < 0 || fchmod(fd, 0700) < 0)) {
        err_sys(err, "cannot give %s to the %s", path, role_name(r));
        close(fd);
        return -1;
    }
    return fd;
}

static int open_audit(struct parent *p, struct err *err)
{
    char *audit = given_or(config_audit_dir(p->config), paths_audit_dir, err);
    int fd = audit ? open_dir_for(audit, ROLE_LOGGER, err) : -1;
    free(audit);
    return fd;
}

void parent_keep_audit(struct parent *p)
{
    struct file_look look;
    struct err err = {0};
    if (file_look(p->audit_dir_fd, &look) < 0 || !look.removed)
        return;
    int fd = open_audit(p, &err);
    if (fd < 0) {
        proc_log("the audit directory was removed: %s", err.text);
        return;
    }
    proc_log("the audit directory was removed, and is made anew");
    close(p->audit_dir_fd);
    p->audit_dir_fd = fd;
}

static int setup_dirs(struct parent *p, struct err *err)
{
    p->state_dir = given_or(config_controller_state(p->config), paths_state_dir, err);
    p->cache_dir = paths_cache_dir(err);
    if (p->state_dir == NULL || p->cache_dir == NULL)
        return -1;
    char *keys = paths_join(p->state_dir, "controller");
    int r = paths_make_private(p->state_dir, err);
    if (r == 0)
        r = paths_make_private(p->cache_dir, err);
    /* as root the controller's own directory and what lies above it: it must be able to get there
     * by descriptor only, so modes of the way down do not matter */
    p->state_dir_fd = r == 0 ? open_dir_for(keys, ROLE_CONTROLLER, err) : -1;
    p->audit_dir_fd = p->state_dir_fd >= 0 ? open_audit(p, err) : -1;
    free(keys);
    return p->audit_dir_fd < 0 ? -1 : 0;
}

static int setup_ca(struct parent *p, struct err *err)
{
    const char *given = config_ca_dir(p->config);
    char *dir = given ? strdup(given) : paths_ca_dir(err);
    if (dir == NULL)
        return -1;
    int r = ca_files_open(dir, config_ca_cert(p->config), config_ca_key(p->config), &p->ca, err);
    free(dir);
    return r;
}

static bool is_answered(const struct sockaddr_un *at, int type)
{
    int fd = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    bool yes = fd >= 0 && (connect(fd, (const struct sockaddr *)at, sizeof *at) == 0 ||
                           errno == EAGAIN); /* its queue is full */
    if (fd >= 0)
        close(fd);
    return yes;
}

static int unix_socket(const char *path, int type, const char *key, struct err *err)
{
    struct sockaddr_un sa = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof sa.sun_path)
        return err_set(err, ERR_LIMIT, "the socket path %s is too long (107 bytes at most)", path);
    memcpy(sa.sun_path, path, strlen(path) + 1);
    struct start_wait start_wait = {0};
    bool answers;
    while ((answers = is_answered(&sa, type)) && start_wait_sleep(&start_wait)) {
    }
    if (answers)
        return err_set(err, ERR_UNREADY, "another daemon answers at %s; stop it first, or set %s",
                       path, key);
    int fd = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    unlink(path);
    mode_t old = umask(0177);
    int r = fd < 0 ? -1 : bind(fd, (struct sockaddr *)&sa, sizeof sa);
    umask(old);
    if (r < 0 || listen(fd, 1024) < 0) {
        err_sys(err, "cannot listen on %s", path);
        if (fd >= 0)
            close(fd);
        return -1;
    }
    return fd;
}

/* A socket, in a directory that is made for it where there is none. */
static int setup_socket(char *path, int type, const char *key, struct err *err)
{
    char *slash = strrchr(path, '/');
    int r = 0;
    if (slash && slash != path) {
        *slash = 0;
        struct stat st;
        if (stat(path, &st) < 0)
            r = paths_make_private(path, err);
        *slash = '/';
    }
    return r == 0 ? unix_socket(path, type, key, err) : -1;
}

static int setup_api(struct parent *p, struct err *err)
{
    const char *given = config_controller_socket(p->config);
    char *path = given ? strdup(given) : paths_api_socket(err);
    if (path == NULL)
        return -1;
    p->api_fd = setup_socket(path, SOCK_STREAM, "controller.socket", err);
    snprintf(p->api_path, sizeof p->api_path, "%s", path);
    free(path);
    return p->api_fd < 0 ? -1 : 0;
}

/* Namespaces of pods are entered, and moved between, by root alone. */
static int setup_node(struct parent *p, struct err *err)
{
    const struct config_node *n = config_node(p->config);
    if (n == NULL)
        return 0;
    if (geteuid() != 0)
        return err_set(err, ERR_DENIED, "`node`: only root makes the way out of a node's pods");
    if (strcmp(n->socket, p->api_path) == 0) /* also where controller.socket is not said */
        return err_set(err, ERR_PARSE, "node.socket is the API's socket %.200s", p->api_path);
    char *path = strdup(n->socket);
    if (path == NULL)
        return err_set(err, ERR_INTERNAL, "out of memory");
    p->objects = parent_objects_new(p);
    p->node_fd = setup_socket(path, SOCK_SEQPACKET, "node.socket", err);
    free(path);
    return p->node_fd < 0 ? -1 : 0;
}

/* What the controller serves beside its socket. */
static int setup_pages(struct parent *p, struct err *err)
{
    const char *metrics = config_metrics(p->config), *console = config_console(p->config);
    if (metrics && (p->metrics_fd = tcp_listen(metrics, err)) < 0)
        return -1;
    if (console && (p->console_fd = tcp_listen(console, err)) < 0)
        return -1;
    const struct config_listen *tls = config_api(p->config);
    if (tls && (p->https_fd = tcp_listen(tls->address, err)) < 0)
        return -1;
    return 0;
}

/* What we start, from now on by descriptor, and what the builder mounts into sandboxes. */
static int setup_programs(struct parent *p, struct err *err)
{
    static const enum role roles[] = {
        ROLE_SIGNER,        ROLE_VAULT,       ROLE_DIALER,     ROLE_GATE,
        ROLE_INJECTOR,      ROLE_LOGGER,      ROLE_CONTROLLER, ROLE_BUILDER,
        ROLE_EXPORTER,      ROLE_SSH_FRONT,   ROLE_SSH_BACK,   ROLE_POSTGRES_FRONT,
        ROLE_POSTGRES_BACK, ROLE_REDIS_FRONT, ROLE_REDIS_BACK, ROLE_MYSQL_FRONT,
        ROLE_MYSQL_BACK,    ROLE_SMTP_FRONT,  ROLE_SMTP_BACK,  ROLE_IMAP_FRONT,
        ROLE_IMAP_BACK,     ROLE_FLEET};
    char path[PATH_MAX + 64];
    for (size_t i = 0; i < ARRAY_LEN(roles); i++)
        if ((p->programs[roles[i]] = program_open(role_name(roles[i]), err)) < 0)
            return -1;
    if ((p->archive_fd = program_open("archive", err)) < 0)
        return -1;
    if (program_path("durward-init", path, sizeof path, err) < 0)
        return -1;
    p->init_path = strdup(path);
    return p->init_path ? 0 : err_set(err, ERR_INTERNAL, "out of memory");
}

static void make_run_id(struct parent *p)
{
    unsigned char raw[8];
    if (getrandom(raw, sizeof raw, 0) != sizeof raw)
        abort();
    for (size_t i = 0; i < sizeof raw; i++)
        snprintf(p->run_id + 2 * i, 3, "%02x", raw[i]);
}

/* What budgets have been used up outlives a dialer, not us. */
static int setup_budgets(struct parent *p, struct err *err)
{
    p->budgets_fd = memfd_create("durward-budgets", MFD_CLOEXEC);
    if (p->budgets_fd < 0 || ftruncate(p->budgets_fd, (off_t)budget_ledger_size()) < 0)
        return err_sys(err, "memory for budgets");
    return 0;
}

int parent_setup(struct parent *p, struct err *err)
{
    make_run_id(p);
    if ((p->secret_fd = sandbox_ca_memfd(err)) < 0 || setup_budgets(p, err) < 0 ||
        parent_check_forwarded(p->config, err) < 0 || setup_programs(p, err) < 0 ||
        setup_dirs(p, err) < 0 || setup_ca(p, err) < 0)
        return -1;
    if (p->mode != PARENT_SERVE)
        return 0;
    return setup_api(p, err) < 0 || setup_node(p, err) < 0 ? -1 : setup_pages(p, err);
}

int parent_setup_roots(struct parent *p, struct err *err)
{
    p->roots_fd = roots_pack(config_upstream_ca(p->config), err);
    return p->roots_fd < 0 ? -1 : 0;
}

/* ---- reload ---- */

static void push_config(struct parent *p)
{
    struct msg m;
    struct err err = {0};
    char *json = config_json(p->config);
    if (json && p->controller && p->controller->ch) {
        msg_init(&m, W_POLICY);
        msg_put_str(&m, "");
        msg_put_u32(&m, p->generation);
        msg_put_fd(&m, ipc_memfd("config", json, strlen(json), &err));
        ipc_send(p->controller->ch, &m);
    }
    free(json);
}

/* Several injectors of one policy do not learn of another at the same moment: a secret that one of
 * them sends to a new place, another might not look for in what comes from there. */
static bool same_policy(const struct config *was, const char *name, const char *json)
{
    char *old = config_policy_json(was, name);
    bool same = old && json && strcmp(old, json) == 0;
    free(old);
    return same;
}

/* What a reload cannot change: said, never half-done. */
static int check_reload(const struct parent *p, const struct config *c, struct err *err)
{
    if (!config_same(p->config, c, "listen"))
        return err_set(err, ERR_UNREADY, "`listen` changed: that needs a restart of the daemon");
    if (!config_same(p->config, c, "controller"))
        return err_set(err, ERR_UNREADY,
                       "`controller` changed: that needs a restart of the daemon");
    if (!config_same(p->config, c, "secrets")) /* the vault has read them once */
        return err_set(err, ERR_UNREADY, "`secrets` changed: that needs a restart of the daemon");
    if (!config_same(p->config, c, "ca"))
        return err_set(err, ERR_UNREADY, "`ca` changed: that needs a restart of the daemon");
    if (!config_same(p->config, c, "upstream"))
        return err_set(err, ERR_UNREADY, "`upstream` changed: that needs a restart of the daemon");
    if (parent_check_forwarded(c, err) < 0)
        return -1;
    if (!config_same(p->config, c, "audit"))
        return err_set(err, ERR_UNREADY, "`audit` changed: that needs a restart of the daemon");
    if (!config_same(p->config, c, "tracing"))
        return err_set(err, ERR_UNREADY, "`tracing` changed: that needs a restart of the daemon");
    if (!config_same(p->config, c, "mcp_servers")) /* the builder has their files once */
        return err_set(err, ERR_UNREADY,
                       "`mcp_servers` changed: that needs a restart of the daemon");
    if (!config_same(p->config, c, "cluster")) /* likewise */
        return err_set(err, ERR_UNREADY, "`cluster` changed: that needs a restart of the daemon");
    if (!config_same(p->config, c, "fleet"))
        return err_set(err, ERR_UNREADY, "`fleet` changed: that needs a restart of the daemon");
    if (!config_node_same(p->config, c)) /* the builder is told of it once */
        return err_set(err, ERR_UNREADY,
                       "`node` changed, and more than its namespaces: that needs a restart of the "
                       "daemon");
    if (!config_same(p->config, c, "injectors"))
        return err_set(err, ERR_UNREADY, "`injectors` changed: that needs a restart of the daemon");
    for (size_t i = 0; i < config_policies(p->config); i++) {
        const char *name = config_policy_name(p->config, i);
        char *json = config_policy_json(c, name);
        bool same = same_policy(p->config, name, json);
        free(json);
        if (json == NULL)
            return err_set(err, ERR_UNREADY, "policy %s is gone: that needs a restart", name);
        if (!same &&
            (config_policy_injectors(p->config, name) > 1 || config_policy_injectors(c, name) > 1))
            return err_set(err, ERR_UNREADY,
                           "policy %s changed, and may have several injectors: that needs a "
                           "restart of the daemon",
                           name);
    }
    return 0;
}

static bool same_secrets(const struct config *a, const struct config *b, const char *policy)
{
    size_t n, m;
    const char *const *was = config_policy_secrets(a, policy, &n);
    const char *const *now = config_policy_secrets(b, policy, &m);
    bool same = n == m;
    for (size_t i = 0; same && i < n; i++)
        same = strcmp(was[i], now[i]) == 0;
    return same;
}

/* Before the policies themselves: no gate decides by one whose channels it does not have. */
static void wire_reloaded(struct parent *p, const struct config *was)
{
    struct sandbox *s;
    struct child *k;
    TAILQ_FOREACH(s, &p->sandboxes, link)
    if (s->gate) {
        parent_wire_policies(p, s); /* one that had no credential may have one now */
        parent_wire_brokers(p, s);
    }
    TAILQ_FOREACH(k, &p->children, link)
    if ((k->role == ROLE_INJECTOR && !same_secrets(was, p->config, k->policy)) ||
        broker_is_back(k->role))
        parent_wire_secrets(k);
}

/* With the image of each of its policies, which is made now: else p is as it was, and no role has
 * heard of c. */
static int take_config(struct parent *p, struct config *c, struct err *err)
{
    struct config *was = p->config;
    p->config = c;
    p->generation++;
    parent_policies_forget(p);
    for (size_t i = 0; i < config_policies(c); i++)
        if (parent_policy_fd(p, config_policy_name(c, i)) < 0) {
            parent_policies_forget(p);
            p->config = was;
            p->generation--;
            return err_set(err, ERR_UNREADY, "there is no room for the policies' images");
        }
    return 0;
}

int parent_reload(struct parent *p, struct err *err)
{
    parent_ca_look(p);
    if (p->config_path == NULL)
        return err_set(err, ERR_UNREADY, "there is no configuration file to read again");
    struct config *c = config_load(p->config_path, err);
    if (c == NULL)
        return -1;
    struct config *was = p->config;
    if (check_reload(p, c, err) < 0 || take_config(p, c, err) < 0) {
        config_unref(c);
        return -1;
    }
    wire_reloaded(p, was);
    config_unref(was);
    push_config(p);
    struct child *gate;
    TAILQ_FOREACH(gate, &p->children, link)
    if (gate->role == ROLE_GATE && gate->sandbox)
        parent_tell_forwarded(gate);
    for (size_t i = 0; i < config_policies(c); i++) {
        const char *name = config_policy_name(c, i);
        struct child *k;
        if (p->signer) /* first: a gate may ask for a new name as soon as it knows it */
            parent_push_policy(p->signer, name);
        TAILQ_FOREACH(k, &p->children, link)
        if ((k->role == ROLE_GATE && k->sandbox) || k->role == ROLE_DIALER ||
            (k->role == ROLE_INJECTOR && strcmp(k->policy, name) == 0) ||
            parent_is_broker_of(k, name))
            parent_push_policy(k, name);
    }
    return 0;
}
