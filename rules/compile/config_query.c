/* What a configuration answers. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config_tree.h"
#include "header_name.h"
#include "kube_rule.h"

const struct config_secret *config_secrets(const struct config *c, size_t *n)
{
    *n = c->n_secrets;
    return c->secrets;
}

const struct config_secret *config_secret(const struct config *c, const char *name)
{
    for (size_t i = 0; i < c->n_secrets; i++)
        if (strcmp(c->secrets[i].name, name) == 0)
            return &c->secrets[i];
    return NULL;
}

const struct config_listen *config_listens(const struct config *c, size_t *n)
{
    *n = c->n_listens;
    return c->listens;
}

bool config_same(const struct config *a, const struct config *b, const char *section)
{
    json_t *x = json_object_get(a->root, section), *y = json_object_get(b->root, section);
    return x == y || (x && y && json_equal(x, y));
}

const struct config_resolve *config_resolves(const struct config *c, size_t *n)
{
    *n = c->n_resolves;
    return c->resolves;
}

const struct config_proxy *config_upstream_proxy(const struct config *c)
{
    return c->proxy;
}

const char *const *config_no_proxy(const struct config *c, size_t *n)
{
    *n = c->n_no_proxy;
    return c->no_proxy;
}

const struct limits *config_limits(const struct config *c)
{
    return &c->limits;
}

size_t config_policies(const struct config *c)
{
    return c->n_policies;
}

const char *config_policy_name(const struct config *c, size_t i)
{
    return i < c->n_policies ? c->policies[i].name : NULL;
}

struct config_policy *config_policy_find(const struct config *c, const char *name)
{
    for (size_t i = 0; i < c->n_policies; i++)
        if (strcmp(c->policies[i].name, name) == 0)
            return &c->policies[i];
    return NULL;
}

int config_policy_named(const struct config *c, const struct node *n,
                        const struct config_policy **ret, struct err *err)
{
    const char *name;
    if (node_string(n, &name, err) < 0)
        return -1;
    *ret = config_policy_find(c, name);
    if (*ret == NULL)
        return node_fail(n, err, "there is no policy '%.60s'; add it under 'policies'", name);
    return 0;
}

const struct policy *config_policy(const struct config *c, const char *name)
{
    const struct config_policy *p = config_policy_find(c, name);
    return p ? p->compiled : NULL;
}

char *config_policy_json(const struct config *c, const char *name)
{
    const struct config_policy *p = config_policy_find(c, name);
    if (p == NULL)
        return NULL;
    json_t *all = json_pack("{s:s, s:O}", "policy", p->name, "rules", p->rules);
    bool names = policy_nxdomain(p->compiled), guide = policy_guide_none(p->compiled);
    if (all && ((c->prices && json_object_set(all, "prices", c->prices) < 0) ||
                (p->budget && json_object_set(all, "budget", p->budget) < 0) ||
                (p->identity && json_object_set(all, "identity", p->identity) < 0) ||
                (names && json_object_set_new(all, "names", json_string("nxdomain")) < 0) ||
                (guide && json_object_set_new(all, "guide", json_string("none")) < 0))) {
        json_decref(all);
        return NULL;
    }
    char *text = all ? json_dumps(all, JSON_COMPACT) : NULL;
    json_decref(all);
    return text;
}

const struct config_env *config_policy_env(const struct config *c, const char *name, size_t *n)
{
    const struct config_policy *p = config_policy_find(c, name);
    *n = p ? p->n_env : 0;
    return p ? p->env : NULL;
}

const char *const *config_policy_secrets(const struct config *c, const char *name, size_t *n)
{
    const struct config_policy *p = config_policy_find(c, name);
    *n = p ? p->n_secrets : 0;
    return p ? p->secrets : NULL;
}

const char *const *config_policy_broker_secrets(const struct config *c, const char *name,
                                                enum scheme scheme, size_t *n)
{
    const struct config_policy *p = config_policy_find(c, name);
    *n = p ? p->n_broker_secrets[scheme] : 0;
    return p ? p->broker_secrets[scheme] : NULL;
}

unsigned config_policy_injectors(const struct config *c, const char *policy)
{
    size_t n;
    const char *const *names = config_policy_secrets(c, policy, &n);
    for (size_t i = 0; i < n; i++) {
        const struct config_secret *s = config_secret(c, names[i]);
        if (s == NULL || s->store != STORE_ENV)
            return 1;
    }
    return c->injectors ? c->injectors : 1;
}

const char *const *config_policy_ssh_hosts(const struct config *c, const char *name, size_t *n)
{
    const struct config_policy *p = config_policy_find(c, name);
    *n = p ? p->n_ssh_hosts : 0;
    return p ? p->ssh_hosts : NULL;
}

const char *const *config_policy_git_hosts(const struct config *c, const char *name, size_t *n)
{
    const struct config_policy *p = config_policy_find(c, name);
    *n = p ? p->n_git_hosts : 0;
    return p ? p->git_hosts : NULL;
}

const char *config_ca_dir(const struct config *c)
{
    return c->ca_dir;
}

const char *config_ca_cert(const struct config *c)
{
    return c->ca_cert;
}

const char *config_ca_key(const struct config *c)
{
    return c->ca_key;
}

const char *config_metrics(const struct config *c)
{
    return c->metrics;
}

const char *config_console(const struct config *c)
{
    return c->console;
}

const struct config_listen *config_api(const struct config *c)
{
    return c->api.address ? &c->api : NULL;
}

const struct config_preview *config_preview(const struct config *c)
{
    return c->preview.address ? &c->preview : NULL;
}

const char *config_controller_socket(const struct config *c)
{
    return c->socket;
}

const char *config_controller_state(const struct config *c)
{
    return c->state;
}

const char *config_audit_dir(const struct config *c)
{
    return c->audit_dir;
}

const char *const *config_upstream_ca(const struct config *c)
{
    return c->upstream_ca;
}

struct warner {
    config_warning_fn fn;
    void *arg;
};

static void stands_inside(void *arg, const struct rule_entry *narrow, const struct rule_entry *wide)
{
    const struct warner *w = arg;
    char text[1200];
    snprintf(
        text, sizeof text,
        "%s: \"%s\" stands inside the wider \"%s\" (%s): other spellings of its paths are refused, "
        "but the origin may know the same resource by another name, so prefer to allow only what "
        "is "
        "needed",
        narrow->where, narrow->rule.text, wide->rule.text, wide->where);
    w->fn(w->arg, text);
}

static void decides_nothing(void *arg, const struct rule_entry *idle, const struct rule_entry *by)
{
    const struct warner *w = arg;
    char text[1200];
    snprintf(text, sizeof text,
             "%s: \"%s\" never decides: \"%s\" (%s) decides all of its requests first%s",
             idle->where, idle->rule.text, by->rule.text, by->where,
             by->deny                          ? "; a deny goes before any allow, however narrow"
             : by->rule.ask && !idle->rule.ask ? "; an ask goes before any allow, however narrow"
                                               : "; make one of them narrower, or take one out");
    w->fn(w->arg, text);
}

/* A field that a rule calls no credential, whose name says key or password. */
static void opened_fields(const struct config_policy *p, const struct warner *w)
{
    const struct rule_entry *e;
    char text[1200];
    for (size_t i = 0; (e = policy_entry(p->compiled, i)); i++)
        for (size_t k = 0; k < e->rule.n_not_credentials; k++) {
            struct slice name = slice_str(e->rule.not_credentials[k]);
            if (!header_name_is_credential(name) || slice_ends(name, SLICE("-token")))
                continue;
            snprintf(text, sizeof text,
                     "%s: 'not_credentials' lets the client send '%s', which is a key's name: an "
                     "origin that takes it for one acts for whoever's it is",
                     e->where, e->rule.not_credentials[k]);
            w->fn(w->arg, text);
        }
}

/* Entries of `kubernetes` that let nothing pass. */
static void idle_entries(const struct config_policy *p, const struct warner *w)
{
    const struct rule_entry *e;
    char text[1200];
    for (size_t i = 0; (e = policy_entry(p->compiled, i)); i++) {
        const struct kube_terms *t = e->rule.kubernetes;
        for (size_t k = 0; t && k < t->n_entries; k++) {
            const char *why = NULL;
            if (!e->rule.websocket && kube_streams(&t->entries[k]))
                why = "is of streams into pods, which need 'websocket: true' beside it";
            else if (kube_names_new(&t->entries[k]))
                why = "has 'names', but a request that makes something has none";
            if (why == NULL)
                continue;
            snprintf(text, sizeof text, "%s: entry %zu of 'kubernetes' %s", e->where, k + 1, why);
            w->fn(w->arg, text);
        }
    }
}

static void unused_placeholders(const struct config *c, const struct config_policy *p,
                                const struct warner *w)
{
    char text[400], mark[100];
    for (size_t i = 0; i < p->n_env; i++)
        for (size_t j = 0; j < c->n_secrets; j++) {
            bool granted = false;
            snprintf(mark, sizeof mark, "{{placeholder %s}}", c->secrets[j].name);
            for (size_t k = 0; k < p->n_secrets; k++)
                granted = granted || strcmp(p->secrets[k], c->secrets[j].name) == 0;
            if (granted || strstr(p->env[i].value, mark) == NULL)
                continue;
            snprintf(text, sizeof text,
                     "%s: policy '%s' hands out a placeholder of '%s', but no rule of it uses that "
                     "secret",
                     p->where, p->name, c->secrets[j].name);
            w->fn(w->arg, text);
        }
}

static bool is_of(const char *const *names, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

/* By a rule of any policy, whatever protocol it speaks of. */
static bool is_granted(const struct config *c, const char *secret)
{
    for (size_t i = 0; i < c->n_policies; i++) {
        const struct config_policy *p = &c->policies[i];
        if (is_of(p->secrets, p->n_secrets, secret))
            return true;
        for (size_t of = 0; of < SCHEME_ENDS; of++)
            if (is_of(p->broker_secrets[of], p->n_broker_secrets[of], secret))
                return true;
    }
    return false;
}

/* By another secret, by what is no policy's, or by a rule. */
static bool is_used(const struct config *c, const struct config_secret *s)
{
    const struct config_fleet *f = config_fleet(c);
    const char *const others[] = {c->proxy ? c->proxy->password : NULL, f ? f->login : NULL};
    bool used = s->used || is_granted(c, s->name);
    for (size_t i = 0; i < ARRAY_LEN(others); i++)
        used = used || (others[i] && strcmp(others[i], s->name) == 0);
    return used;
}

void config_warnings(const struct config *c, config_warning_fn fn, void *arg)
{
    struct warner w = {fn, arg};
    char text[400];
    for (size_t i = 0; i < c->n_policies; i++) {
        policy_warnings(c->policies[i].compiled, stands_inside, &w);
        policy_idle(c->policies[i].compiled, decides_nothing, &w);
        unused_placeholders(c, &c->policies[i], &w);
        opened_fields(&c->policies[i], &w);
        idle_entries(&c->policies[i], &w);
    }
    for (size_t i = 0; i < c->n_secrets; i++) {
        if (is_used(c, &c->secrets[i]))
            continue;
        snprintf(text, sizeof text, "%s: no rule uses the secret '%s'", c->source.name,
                 c->secrets[i].name);
        fn(arg, text);
    }
}
