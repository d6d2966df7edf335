/* From what a client asks to what a sandbox is made of. */
#include "controller_internal.h"

#include <string.h>
#include <stdlib.h>
#include <sys/random.h>
#include <stdio.h>

#include "command.h"
#include "placeholders.h"
#include "policy.h"
#include "registry.h"
#include "ssh_rule.h"
#include "trust.h"

int sandbox_make_id(const char *prefix, char id[SANDBOX_ID_MAX + 1], struct err *err)
{
    static const char digits[] = "abcdefghijklmnopqrstuvwxyz234567";
    unsigned char r[16];
    if (getrandom(r, sizeof r, 0) != sizeof r)
        return err_sys(err, "getrandom");
    size_t at = (size_t)snprintf(id, SANDBOX_ID_MAX + 1, "%s-", prefix);
    unsigned bits = 0, held = 0;
    for (size_t i = 0; i < sizeof r; i++) {
        held = held << 8 | r[i];
        for (bits += 8; bits >= 5; bits -= 5)
            id[at++] = digits[held >> (bits - 5) & 31];
    }
    id[at++] = digits[held << (5 - bits) & 31];
    id[at] = 0;
    return 0;
}

static int add_all(struct strlist *to, char *const *pairs)
{
    for (; pairs && *pairs; pairs++)
        if (strlist_put_env(to, *pairs) < 0)
            return -1;
    return 0;
}

/* What specifications of its devices say, below everything else. */
static int add_device_env(const struct config *c, const char *policy, struct strlist *env)
{
    size_t i;
    json_t *text;
    json_array_foreach(json_object_get(config_policy_sandbox(c, policy)->devices, "env"), i,
                       text) if (!json_is_string(text) ||
                                 !device_variable_ok(json_string_value(text)) ||
                                 strlist_put_env(env, json_string_value(text)) < 0) return -1;
    return 0;
}

/* In rising order of who wins: what every process expects, what the caller's terminal needs, trust,
 * the policy's own, the user's -e. */
static int make_env(struct controller *c, const struct run_request *r, const struct placeholders *p,
                    bool signs, struct strlist *env, struct err *err)
{
    char **trust = trust_env(c->trust_inside, false, err);
    if (trust == NULL)
        return -1;
    int bad = add_device_env(c->config, r->policy, env) |
              strlist_set_env(env, "PATH", "/usr/local/bin:/usr/bin:/bin") |
              strlist_set_env(env, "HOME", r->home) | strlist_set_env(env, "USER", r->user) |
              strlist_set_env(env, "LOGNAME", r->user) | add_all(env, r->kept.v) |
              add_all(env, trust) |
              (signs ? strlist_set_env(env, "SSH_AUTH_SOCK", SSH_AGENT_SOCKET) : 0);
    trust_env_free(trust);
    if (bad == 0 && placeholders_env(c->config, r->policy, p, env, err) < 0)
        return -1;
    if (bad || add_all(env, r->env.v) < 0)
        return err_set(err, ERR_LIMIT, "the environment is too long");
    return 0;
}

/* In a pod of a cluster the node lays trust and the policy's own (controller/cni): only it knows
 * that gate's placeholders. */
static int make_pod_env(const struct run_request *r, struct strlist *env, struct err *err)
{
    int bad = strlist_set_env(env, "PATH",
                              "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin") |
              strlist_set_env(env, "HOME", r->home) | strlist_set_env(env, "USER", r->user) |
              strlist_set_env(env, "LOGNAME", r->user) | add_all(env, r->env.v);
    return bad ? err_set(err, ERR_LIMIT, "the environment is too long") : 0;
}

static int fill_steps(struct run_request *r, const struct placeholders *p, struct err *err)
{
    for (size_t i = 0; i < r->n_steps; i++) {
        char *text = placeholders_fill(p, r->steps[i].text);
        if (text == NULL)
            return err_set(err, ERR_PARSE, "%s: its placeholders cannot be filled in",
                           r->steps[i].path);
        free(r->steps[i].text);
        r->steps[i].text = text;
    }
    return 0;
}

static int add_port(struct sandbox_plan *p, uint16_t port, struct err *err)
{
    if (port == 53 || port == 80 || port == 443)
        return 0;
    if (p->n_ports == SANDBOX_PORTS_MAX)
        return err_set(err, ERR_LIMIT, "the rules name more than %d ports", SANDBOX_PORTS_MAX);
    p->ports[p->n_ports++] = port;
    return 0;
}

static int make_ports(const struct config *c, const char *policy, struct sandbox_plan *ret,
                      struct err *err)
{
    uint16_t ports[1024];
    const struct policy *p = config_policy(c, policy);
    if (p == NULL)
        return err_set(err, ERR_PARSE, "there is no policy '%s'", policy);
    size_t n = policy_ports(p, ports, ARRAY_LEN(ports));
    for (size_t i = 0; i < n && i < ARRAY_LEN(ports); i++)
        if (add_port(ret, ports[i], err) < 0)
            return -1;
    return 0;
}

static int make_git_hosts(const struct config *c, const char *policy, struct strlist *hosts,
                          struct err *err)
{
    size_t n;
    const char *const *h = config_policy_git_hosts(c, policy, &n);
    for (size_t i = 0; i < n; i++)
        if (strlist_add(hosts, h[i]) < 0)
            return err_set(err, ERR_LIMIT, "too many git hosts");
    return 0;
}

/* The first of them: a library that takes no "*" for a name finds these. */
static int make_ssh_hosts(const struct config *c, const char *policy, struct strlist *hosts,
                          struct err *err)
{
    size_t n;
    const char *const *h = config_policy_ssh_hosts(c, policy, &n);
    for (size_t i = 0; i < n && i < SANDBOX_SSH_HOSTS; i++)
        if (strlist_add(hosts, h[i]) < 0)
            return err_set(err, ERR_LIMIT, "too many hosts of ssh");
    return 0;
}

static int add_volumes(struct sandbox_spec *s, const struct strlist *volumes, struct err *err)
{
    for (size_t i = 0; i < volumes->n; i++)
        if (sandbox_spec_volume_add(s, volumes->v[i], err) < 0)
            return -1;
    return 0;
}

/* Whether or not its policy needs brokers: a reload may change that. */
static int make_host_key(struct sandbox_plan *p, struct err *err)
{
    struct buf line;
    buf_init(&line, HOST_KEY_TEXT - 1);
    int r = host_key_make((struct slice){(char *)p->seed, sizeof p->seed}, p->broker_key);
    for (int k = 0; r == 0 && k < HOST_KEY_KINDS; k++) {
        buf_clear(&line);
        r = host_key_public(p->broker_key, (enum host_key_kind)k, &line);
        snprintf(p->host_keys[k], HOST_KEY_TEXT, "%.*s", SL(buf_slice(&line)));
    }
    buf_free(&line);
    return r < 0 ? err_set(err, ERR_INTERNAL, "no host key could be made") : 0;
}

/* Some rule of ssh-agent:// names a namespace, and process 1 of its sandbox is ours. */
static bool has_agent(const struct config *c, const char *name, const struct sandbox_spec *spec)
{
    const struct policy *p = config_policy(c, name);
    struct authority at = {.scheme = SCHEME_SSH, .port = scheme_port(SCHEME_SSH)};
    return p && spec->limits.backend != BACKEND_POD && spec->limits.backend != BACKEND_KUBERNETES &&
           authority_host(&at, SLICE(SSH_AGENT_HOST)) == 0 && policy_host(p, &at) != 0;
}

static bool has_policy(const struct config *c, const char *name)
{
    for (size_t i = 0; i < config_policies(c); i++)
        if (strcmp(config_policy_name(c, i), name) == 0)
            return true;
    return false;
}

int sandbox_plan_make(struct controller *c, struct run_request *r,
                      const struct sandbox_known *known, struct sandbox_plan *ret, struct err *err)
{
    struct placeholders p = {0};
    memset(ret, 0, sizeof *ret);
    run_request_init(&ret->request);
    if (!has_policy(c->config, r->policy))
        return err_set(err, ERR_PARSE, "there is no policy '%s'", r->policy);
    int bad = 0;
    if (known) {
        memcpy(ret->id, known->id, sizeof ret->id);
        memcpy(ret->seed, known->seed, sizeof ret->seed);
    } else if (r->seeded) {
        memcpy(ret->seed, r->seed, sizeof ret->seed);
        bad = sandbox_make_id("sb", ret->id, err);
    } else if (getrandom(ret->seed, sizeof ret->seed, 0) != sizeof ret->seed) {
        return err_sys(err, "getrandom");
    } else {
        bad = sandbox_make_id("sb", ret->id, err);
    }
    if (bad == 0)
        bad = sandbox_spec_of_policy(c->config, r->policy, r->backend, r->image, &ret->sandbox_spec,
                                     err);
    if (bad == 0)
        bad = add_volumes(&ret->sandbox_spec, &r->volumes, err);
    bool pod = bad == 0 && ret->sandbox_spec.limits.backend == BACKEND_KUBERNETES;
    if (pod && known == NULL)
        bad = err_set(err, ERR_PARSE,
                      "pods of a cluster are made by the daemon: durward sandbox create");
    if (bad == 0 && !pod)
        bad = placeholders_make(c->config, r->policy, ret->seed, c->keys.tag, &p, err);
    ret->signs = bad == 0 && has_agent(c->config, r->policy, &ret->sandbox_spec);
    if (bad == 0)
        bad =
            pod ? make_pod_env(r, &ret->env, err) : make_env(c, r, &p, ret->signs, &ret->env, err);
    if (bad == 0)
        bad = fill_steps(r, &p, err);
    if (bad == 0)
        bad = make_ports(c->config, r->policy, ret, err);
    if (bad == 0)
        bad = make_git_hosts(c->config, r->policy, &ret->git_hosts, err);
    if (bad == 0)
        bad = make_ssh_hosts(c->config, r->policy, &ret->ssh_hosts, err);
    if (bad == 0)
        bad = make_host_key(ret, err);
    ret->placeholders = p.list;
    ret->n_placeholders = p.n;
    ret->names = config_limits(c->config)->names;
    if (bad) {
        sandbox_plan_done(ret);
        return -1;
    }
    ret->request = *r;
    run_request_init(r);
    return 0;
}
