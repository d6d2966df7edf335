/* Policies of a configuration: environment, presets, compiling. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cloud_identity.h"
#include "config_tree.h"
#include "nearest.h"
#include "ssh_rule.h"

/* Each "{{" must open a whole {{placeholder NAME}} of a declared secret. */
static int check_placeholders(const struct config *c, const struct node *n, const char *text,
                              struct err *err)
{
    const json_t *secrets = json_object_get(c->root, "secrets");
    static const char open[] = "{{placeholder ";
    json_t *none = secrets ? NULL : json_object();
    int r = 0;
    while (r == 0 && (text = strstr(text, "{{")) != NULL) {
        const char *close = strstr(text, "}}");
        size_t n_open = sizeof open - 1;
        char name[80] = "";
        size_t len = close ? (size_t)(close - text) : 0;
        if (len > n_open && len - n_open < sizeof name && strncmp(text, open, n_open) == 0) {
            memcpy(name, text + n_open, len - n_open);
            r = rule_secret_known(n, name, secrets ? secrets : none, err);
            text = close + 2;
        } else {
            r = node_fail(n, err, "'{{' begins a placeholder here: \"{{placeholder SECRET}}\"");
        }
    }
    json_decref(none);
    return r;
}

static int read_env(struct config *c, const struct node *n, struct config_policy *p,
                    struct err *err)
{
    if (node_is_object(n, err) < 0)
        return -1;
    size_t count = json_object_size(n->value);
    if (count > 1000)
        return node_fail(n, err, "more than 1000 variables");
    p->env = arena_zalloc(c->arena, count + 1, sizeof *p->env);
    for (void *it = json_object_iter(n->value); it; it = json_object_iter_next(n->value, it)) {
        struct node at;
        const char *value;
        node_get(n, json_object_iter_key(it), &at);
        if (!config_env_name_ok(at.key))
            return node_fail(&at, err, "'%.60s' is not the name of an environment variable",
                             at.key);
        if (node_text(&at, &value, err) < 0)
            return -1;
        if (strlen(value) > 8192)
            return node_fail(&at, err, "longer than 8192 bytes");
        if (check_placeholders(c, &at, value, err) < 0)
            return -1;
        p->env[p->n_env++] =
            (struct config_env){arena_str(c->arena, at.key), arena_str(c->arena, value)};
    }
    return 0;
}

/* What leads the clouds' libraries to the identity, where `env` does not say otherwise. */
static void add_variables(struct config *c, struct config_policy *p)
{
    const struct cloud_identity *who = policy_identity(p->compiled);
    const char *name;
    char value[CLOUD_VALUE_MAX];
    size_t given = p->n_env, n = 0;
    while (cloud_identity_variable(who, n, &name, value))
        n++;
    if (n > 0)
        p->env = arena_grow(c->arena, p->env, given, given + n, sizeof *p->env);
    for (size_t i = 0; i < n && cloud_identity_variable(who, i, &name, value); i++) {
        size_t k = 0;
        while (k < given && strcmp(p->env[k].name, name) != 0)
            k++;
        if (k == given)
            p->env[p->n_env++] =
                (struct config_env){arena_str(c->arena, name), arena_str(c->arena, value)};
    }
}

static const char *preset_word(size_t i, const void *arg)
{
    (void)arg;
    return preset_name(i);
}

static void give_kind(struct config *c, const char *secret, const char *kind)
{
    for (size_t i = 0; i < c->n_secrets; i++)
        if (strcmp(c->secrets[i].name, secret) == 0 && c->secrets[i].kind[0] == 0)
            c->secrets[i].kind = kind;
}

static const struct key use_keys[] = {
    KEY("use", OWN, "", ""),
    KEY("secret", AS(name), "the secret of the preset's own name", "the secret to send"),
    KEY("access", WORDS("read-only"), "everything",
        "`read-only`: narrows each rule so, git to `fetch`, and leaves WebSockets out"),
    KEY("preset_hosts", OWN, "the preset's own",
        "the hosts that the preset is used with instead of its own: a host or a list of them, or "
        "`{ ROLE: HOST, ... }` where the preset has several (`api`, `git`, ...). A role that is "
        "not named then has none, so that the secret never goes to where the preset would have "
        "sent it. A host may have a port, no path"),
};

/* { use: github, secret: NAME, access: read-only, preset_hosts: HOST } */
static json_t *expand(struct config *c, const struct node *rule, struct err *err)
{
    struct node use, secret, hosts;
    char names[PRESET_NAMES_MAX];
    const char *name, *text;
    size_t n = 0, word;
    while (preset_name(n))
        n++;
    for (void *it = json_object_iter(rule->value); it;
         it = json_object_iter_next(rule->value, it)) {
        const char *key = json_object_iter_key(it);
        bool known = false;
        for (size_t i = 0; i < ARRAY_LEN(use_keys); i++)
            known = known || strcmp(key, use_keys[i].name) == 0;
        if (!known) {
            struct node at;
            node_get(rule, key, &at);
            node_fail(&at, err,
                      "'%.60s' does not go with 'use'; beside it stand only 'secret', "
                      "'preset_hosts' and 'access: read-only'",
                      key);
            return NULL;
        }
    }
    node_get(rule, "use", &use);
    if (node_keys(rule, KEYS(use_keys), err) < 0 || node_string(&use, &name, err) < 0)
        return NULL;
    if (preset_kind(name) == NULL) {
        ssize_t best = nearest(name, n, preset_word, NULL);
        preset_names(names, sizeof names);
        node_fail(&use, err, "no preset '%.60s'; %s%s%sthere are %s", name,
                  best < 0 ? "" : "did you mean '", best < 0 ? "" : preset_name((size_t)best),
                  best < 0 ? "" : "'? ", names);
        return NULL;
    }
    bool given = node_get(rule, "preset_hosts", &hosts);
    if (preset_hosts_check(name, &use, given ? &hosts : NULL, err) < 0)
        return NULL;
    bool named = node_get(rule, "secret", &secret), narrow = json_object_get(rule->value, "access");
    text = name;
    if ((named && node_string(&secret, &text, err) < 0) ||
        node_key_word(rule, use_keys, "access", &word, err) < 0)
        return NULL;
    const json_t *secrets = json_object_get(c->root, "secrets");
    if (named && !preset_takes_secret(name)) {
        node_fail(&secret, err,
                  "preset '%s' sends no secret; for a registry that wants one see `durward login "
                  "ls`, or write a rule with `with`",
                  name);
        return NULL;
    }
    if (!named && preset_takes_secret(name) && !json_object_get(secrets, name)) {
        node_fail(&use, err,
                  "preset '%s' takes the secret '%s', which is not declared; name "
                  "another with 'secret: NAME'",
                  name, name);
        return NULL;
    }
    give_kind(c, text, preset_kind(name));
    return preset_rules(name, text, given ? hosts.value : NULL, narrow);
}

static int append(struct config_policy *p, json_t *rule)
{
    if (json_array_append(p->rules, rule) < 0)
        abort(); /* memory is out */
    return 0;
}

static int read_rule(struct config *c, const struct node *rule, struct config_policy *p,
                     struct err *err)
{
    struct node at = *rule;
    json_t *one;
    size_t i;
    if (!json_object_get(rule->value, "use")) {
        append(p, rule->value);
        return policy_add(p->compiled, rule, err);
    }
    json_t *rules = expand(c, rule, err);
    int r = rules ? 0 : -1;
    json_array_foreach(rules, i, one)
    {
        at.value = one;
        append(p, one);
        r = r < 0 ? -1 : policy_add(p->compiled, &at, err);
    }
    json_decref(rules);
    return r;
}

static bool listed(const char **list, size_t n, const char *s)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(list[i], s) == 0)
            return true;
    return false;
}

static bool is_broker(const struct rule_entry *e)
{
    return e->n_arms > 0 && !scheme_is_http(e->arms[0].pattern.scheme);
}

/* Those of the login and of the certificate beside it. */
static void add_broker_secrets(struct config *c, struct config_policy *p,
                               const struct rule_entry *e)
{
    enum scheme of = e->arms[0].pattern.scheme;
    for (const struct credential *k = e->rule.credential; k; k = k->other) {
        const char *name = config_secret(c, k->secret)->name;
        if (p->broker_secrets[of] == NULL)
            p->broker_secrets[of] = arena_zalloc(c->arena, c->n_secrets + 1, sizeof(char *));
        if (!listed(p->broker_secrets[of], p->n_broker_secrets[of], name))
            p->broker_secrets[of][p->n_broker_secrets[of]++] = name;
    }
}

/* A token for an MCP server goes to that server alone: another that got it could use it there. */
static int check_resource(const struct config_secret *s, const struct rule_entry *e,
                          struct arena *a, struct err *err)
{
    const char *resource = s->derived ? s->derived->text[SPEC_RESOURCE] : NULL;
    char text[PATTERN_MAX];
    struct pattern outer;
    if (resource == NULL || s->derived->kind != DERIVED_OAUTH_LOGIN)
        return 0;
    size_t n = strlen(resource);
    snprintf(text, sizeof text, "%.*s/**", (int)(resource[n - 1] == '/' ? n - 1 : n), resource);
    if (pattern_parse(a, text, &outer, err) < 0)
        return -1;
    for (size_t i = 0; i < e->n_arms; i++)
        if (!pattern_contains(&outer, &e->arms[i].pattern))
            return err_set(err, ERR_PARSE,
                           "%s: '%s' is a token for %s, and would be sent to %s; allow that server "
                           "alone in this rule",
                           e->where, s->name, resource, e->arms[i].pattern.text);
    return 0;
}

static void add_ssh_hosts(struct config *c, struct config_policy *p, const struct rule_entry *e)
{
    char name[300];
    for (size_t j = 0; e->rule.ssh && !e->rule.ssh->signs && j < e->n_arms; j++) {
        const struct pattern *at = &e->arms[j].pattern;
        if (at->kind != HOST_NAME || at->subdomains)
            continue;
        snprintf(name, sizeof name, at->port == 22 ? "%.*s" : "[%.*s]:%u", SL(at->host),
                 (unsigned)at->port);
        if (!listed(p->ssh_hosts, p->n_ssh_hosts, name))
            p->ssh_hosts[p->n_ssh_hosts++] = arena_str(c->arena, name);
    }
}

/* What others ask for: secrets granted, hosts whose ssh remotes become https. */
static int summarise(struct config *c, struct config_policy *p, struct err *err)
{
    const struct rule_entry *e;
    size_t n = 0, n_ssh = 0;
    for (size_t i = 0; (e = policy_entry(p->compiled, i)); i++) {
        n += e->git ? e->n_arms : 0;
        n_ssh += e->rule.ssh ? e->n_arms : 0;
    }
    p->secrets = arena_zalloc(c->arena, c->n_secrets + 1, sizeof *p->secrets);
    p->git_hosts = arena_zalloc(c->arena, n + 1, sizeof *p->git_hosts);
    p->ssh_hosts = arena_zalloc(c->arena, n_ssh + 1, sizeof *p->ssh_hosts);
    for (size_t i = 0; (e = policy_entry(p->compiled, i)); i++) {
        const struct credential *cred = e->rule.credential;
        if (cred && config_secret(c, cred->secret)->lines)
            return err_set(err, ERR_PARSE,
                           "%s: '%s' is the key of another secret and is never sent; use the "
                           "secret that is made of it",
                           e->where, cred->secret);
        if (cred && check_resource(config_secret(c, cred->secret), e, c->arena, err) < 0)
            return -1;
        if (is_broker(e))
            add_broker_secrets(c, p, e);
        else if (cred && !listed(p->secrets, p->n_secrets, cred->secret))
            p->secrets[p->n_secrets++] = config_secret(c, cred->secret)->name;
        for (size_t k = 0; k < e->rule.n_captures; k++)
            if (!listed(p->secrets, p->n_secrets, e->rule.captures[k].secret))
                p->secrets[p->n_secrets++] = config_secret(c, e->rule.captures[k].secret)->name;
        add_ssh_hosts(c, p, e);
        for (size_t j = 0; e->git && j < e->n_arms; j++) {
            const struct pattern *at = &e->arms[j].pattern;
            if (at->kind == HOST_NAME && !at->subdomains && at->scheme == SCHEME_HTTPS &&
                at->port == 443 && !listed(p->git_hosts, p->n_git_hosts, at->host.p))
                p->git_hosts[p->n_git_hosts++] = arena_slice(c->arena, at->host);
        }
    }
    return 0;
}

static const struct key policy_keys[] = {
    KEY("env", OWN, "none",
        "environment variables of the sandbox, at most 1000 of 8192 bytes. `{{placeholder NAME}}` "
        "becomes the sandbox's own placeholder for that secret; the secret itself is never there. "
        "Values are text: quote numbers"),
    KEY("rules", OWN, "required",
        "list of rules, at most 20000 with 65536 patterns. `[]` denies everything"),
    KEY("sandbox", OWN, "", "limits of a local sandbox, see *What a sandbox may use*"),
    KEY("budget", REF(budget), "none", "of all its rules together, see *Budgets*"),
    KEY("identity", OWN, "none",
        "who a sandbox is to AWS, Google Cloud and Azure: its gate answers their metadata services "
        "with placeholders, see *Identities of clouds*"),
    KEY("names", WORDS_OF(policy_names_words), "`refuse`",
        "what the DNS of a local sandbox says of a name that no rule names: `refuse` gives the "
        "address of a place that answers HTTP and HTTPS with 403 and the reason, `nxdomain` says "
        "that there is no such name. Nobody is asked for it in either case. Names without a dot, "
        "those of a network's own (`.local`, `.internal`, ...) and those set apart (`.test`, "
        "`.example`, example.com, ...) never exist"),
    KEY("guide", WORDS_OF(policy_guide_words), "`rules`",
        "what `http://durward.internal/` tells inside the sandbox beside its refusals: `rules` "
        "lists the rules that allow and which of them take a placeholder, and takes proposals "
        "(`durward proposals`); `none` does neither. In a local sandbox "
        "`http://durward.internal/mcp`, or `/run/durward/durward-mcp` without a name, is the same "
        "as an MCP server: its tools are `what_may_i_do`, `why_was_it_refused`, "
        "`list_placeholders` and `propose_rule`"),
};

static int read_policy(struct config *c, const struct node *n, struct config_policy *p,
                       struct err *err)
{
    char where[512];
    struct node at;
    if (!node_name_ok(n->key))
        return node_fail(n, err, "'%.60s' is not a policy's name (letters, digits, _ . -)", n->key);
    if (node_keys(n, KEYS(policy_keys), err) < 0)
        return -1;
    node_where(n, where, sizeof where);
    p->where = arena_str(c->arena, where);
    p->name = arena_str(c->arena, n->key);
    p->rules = json_array();
    /* an empty object, so that nothing is declared, not that nothing is checked */
    json_t *none = json_object(), *secrets = json_object_get(c->root, "secrets");
    p->compiled = policy_new(p->name, secrets ? secrets : none);
    p->sandbox = (struct config_sandbox)CONFIG_SANDBOX_DEFAULT;
    int r = node_get(n, "env", &at) ? read_env(c, &at, p, err) : 0;
    if (r == 0 && node_get(n, "sandbox", &at))
        r = config_read_sandbox(&at, &p->sandbox, err) < 0 ||
                    config_read_devices(&at, &p->sandbox, err) < 0
                ? -1
                : 0;
    if (r == 0 && node_get(n, "budget", &at)) {
        p->budget = at.value;
        r = policy_budget_read(p->compiled, &at, err);
    }
    if (r == 0 && c->prices && node_get(n->up->up, "prices", &at))
        r = policy_prices_read(p->compiled, &at, err);
    if (r == 0 && node_get(n, "identity", &at)) {
        p->identity = at.value;
        r = policy_identity_read(p->compiled, &at, err);
    }
    if (r == 0)
        add_variables(c, p);
    if (r == 0 && node_get(n, "names", &at))
        r = policy_names_read(p->compiled, &at, err);
    if (r == 0 && node_get(n, "guide", &at))
        r = policy_guide_read(p->compiled, &at, err);
    if (r == 0 && !node_get(n, "rules", &at))
        r = node_fail(n, err, "policy '%s' has no 'rules'; 'rules: []' denies everything", p->name);
    if (r == 0)
        r = node_is_array(&at, err);
    for (size_t i = 0; r == 0 && i < json_array_size(at.value); i++) {
        struct node rule = node_item(&at, i);
        r = json_is_object(rule.value)
                ? read_rule(c, &rule, p, err)
                : node_fail(&rule, err, "a rule is a mapping such as { allow: HOST/PATH }");
    }
    if (r == 0)
        r = policy_seal(p->compiled, err);
    json_decref(none);
    return r == 0 ? summarise(c, p, err) : r;
}

int config_read_policies(struct config *c, const struct node *n, struct err *err)
{
    if (node_is_object(n, err) < 0)
        return -1;
    if (json_object_size(n->value) > CONFIG_ENTRIES_MAX)
        return node_fail(n, err, "more than %d policies", CONFIG_ENTRIES_MAX);
    c->policies = arena_zalloc(c->arena, json_object_size(n->value) + 1, sizeof *c->policies);
    for (void *it = json_object_iter(n->value); it; it = json_object_iter_next(n->value, it)) {
        struct node at;
        node_get(n, json_object_iter_key(it), &at);
        if (read_policy(c, &at, &c->policies[c->n_policies++], err) < 0)
            return -1;
    }
    return 0;
}
