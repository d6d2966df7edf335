/* Reads `fleet`: the database by which hosts share what their budgets leave, what was revoked, and
 * what waits for somebody's word. */
#include "config_tree.h"

#include "authority.h"
#include "base64.h"
#include "postgres_rule.h"
#include "quantity.h"
#include "rule.h"

#include <stdlib.h>
#include <string.h>

enum { URL_MAX = 400, HOLD_MIN = 2, HOLD_STANDARD = 60, REVOCATIONS_STANDARD = 600 };

static const char mark[] = "postgres://";

static const struct key fleet_keys[] = {
    KEY("postgres", AS(database), "required",
        "`postgres://HOST[:PORT]/DATABASE`; TLS that is verified by `upstream.ca`, always"),
    KEY("login", AS(name), "required", "secret of the kind `postgres_login`: whom to log in as"),
    KEY("hold", AS(duration), "`60s`",
        "how long a host that is cut off goes on with the shares that it holds, from 2s on"),
    KEY("revocations", AS(duration), "`10m`",
        "how long a host that is cut off goes on taking tokens that other hosts may have revoked, "
        "from 2s on"),
    KEY("hosts", OWN, "none",
        "`NAME: KEY` for each other host whose people may answer what `ask` rules of this host "
        "hold; KEY is what `durward status` says there"),
    KEY("to", AS(ranges), "none", "addresses of the database that are not public, as of a rule"),
    KEY("host", AS(name), "none", "which of `logs` is this one's"),
    KEY("logs", OWN, "none", "each host by a name, and the public key of its audit log in hex"),
    KEY("every", AS(duration), "`10s`",
        "how often this host says how far its audit log goes, and what it is doing"),
    KEY("silent", AS(duration), "`5m`",
        "a host that has not been heard of for so long is found by `durward audit verify --fleet`; "
        "three times `every` or more"),
};

/* The authority of postgres://HOST[:PORT]/DATABASE, and the database. */
static int read_url(const struct node *n, struct config_fleet *f, struct err *err)
{
    const char *url;
    if (node_string(n, &url, err) < 0)
        return -1;
    struct slice rest = slice_str(url);
    if (rest.n > URL_MAX || !slice_starts(rest, slice_str(mark)))
        return node_fail(n, err, "'%.200s' is not postgres://HOST[:PORT]/DATABASE", url);
    rest.p += sizeof mark - 1;
    rest.n -= sizeof mark - 1;
    ssize_t slash = slice_find(rest, '/');
    if (slash < 0 ||
        !postgres_name_ok((struct slice){rest.p + slash + 1, rest.n - (size_t)slash - 1}) ||
        authority_parse(&f->at, SCHEME_POSTGRES, (struct slice){rest.p, (size_t)slash}) < 0)
        return node_fail(n, err, "'%.200s' is not postgres://HOST[:PORT]/DATABASE", url);
    f->url = url;
    f->database = rest.p + slash + 1;
    return 0;
}

static int read_span(const struct node *n, const char *key, unsigned *ret, struct err *err)
{
    struct node at;
    if (!node_get(n, key, &at))
        return 0;
    if (quantity_duration(&at, ret, err) < 0)
        return -1;
    return *ret < HOLD_MIN ? node_fail(&at, err, "must be 2s or more") : 0;
}

/* One key, one host: what is signed with it says whose word it is. */
static int read_host(struct config_fleet *f, const struct node *n, struct err *err)
{
    struct config_fleet_host *h = &f->hosts[f->n_hosts];
    const char *text;
    if (!node_name_ok(n->key))
        return node_fail(n, err, "'%.64s' is not the name of a host", n->key);
    if (node_string(n, &text, err) < 0)
        return -1;
    if (base64_read(slice_str(text), h->key, sizeof h->key) != FLEET_KEY)
        return node_fail(n, err, "this is not a key; 'durward status' on the other host prints it");
    for (size_t i = 0; i < f->n_hosts; i++)
        if (memcmp(f->hosts[i].key, h->key, FLEET_KEY) == 0)
            return node_fail(n, err, "has the key of '%.64s'", f->hosts[i].name);
    h->name = n->key;
    f->n_hosts++;
    return 0;
}

static int read_hosts(struct config *c, const struct node *n, struct config_fleet *f,
                      struct err *err)
{
    struct node all, one;
    const char *key;
    json_t *value;
    if (!node_get(n, "hosts", &all))
        return 0;
    if (node_is_object(&all, err) < 0)
        return -1;
    if (json_object_size(all.value) > FLEET_HOSTS_MAX)
        return node_fail(&all, err, "at most %d hosts", FLEET_HOSTS_MAX);
    f->hosts = arena_zalloc(c->arena, FLEET_HOSTS_MAX, sizeof *f->hosts);
    json_object_foreach(all.value, key, value)
    {
        (void)node_get(&all, key, &one);
        if (read_host(f, &one, err) < 0)
            return -1;
    }
    return 0;
}

int config_read_fleet(struct config *c, const struct node *n, struct err *err)
{
    struct node at, to;
    struct rule judged = {0};
    if (node_is_object(n, err) < 0 || node_keys(n, KEYS(fleet_keys), err) < 0)
        return -1;
    struct config_fleet *f = arena_zalloc(c->arena, 1, sizeof *f);
    if (config_read_fleet_logs(c, n, &f->logs, err) < 0)
        return -1;
    f->hold = HOLD_STANDARD;
    f->revocations = REVOCATIONS_STANDARD;
    if (!node_get(n, "postgres", &at))
        return node_fail(n, err, "'fleet' needs 'postgres'");
    if (read_url(&at, f, err) < 0)
        return -1;
    if (!node_get(n, "login", &at))
        return node_fail(n, err, "'fleet' needs 'login'");
    if (rule_secret_read(c->arena, &at, json_object_get(c->root, "secrets"), "postgres_login",
                         &f->login, err) < 0 ||
        rule_to_read(c->arena, n, &judged, err) < 0)
        return -1;
    f->to = node_get(n, "to", &to) ? to.value : NULL;
    if (read_span(n, "hold", &f->hold, err) < 0 ||
        read_span(n, "revocations", &f->revocations, err) < 0 || read_hosts(c, n, f, err) < 0)
        return -1;
    c->fleet = f;
    return 0;
}

static bool is_of_fleet(const json_t *budget)
{
    return json_is_true(json_object_get(budget, "fleet"));
}

/* Where nobody counts for the fleet, a budget of it would never be granted. */
int config_check_fleet(const struct config *c, const struct node *root, struct err *err)
{
    for (size_t i = 0; i < c->n_policies && c->fleet == NULL; i++) {
        const struct config_policy *p = &c->policies[i];
        bool has = is_of_fleet(p->budget);
        size_t k;
        json_t *rule;
        json_array_foreach(p->rules, k, rule) has =
            has || is_of_fleet(json_object_get(rule, "budget"));
        if (has)
            return node_fail(root, err,
                             "the policy '%.60s' has a budget with 'fleet: true', and no "
                             "'fleet' says where that is counted",
                             p->name);
    }
    return 0;
}

const struct config_fleet *config_fleet(const struct config *c)
{
    return c->fleet;
}

/* The dialer's policy for the role: that database and nothing else. An address that the URL names
 * is one that the operator wrote: no range need say so again. */
char *config_fleet_json(const struct config *c)
{
    const struct config_fleet *f = c->fleet;
    if (f == NULL)
        return NULL;
    json_t *to = json_is_array(f->to) ? json_copy(f->to) : json_array();
    if (json_is_string(f->to))
        json_array_append(to, f->to);
    if (f->at.kind != HOST_NAME)
        json_array_append_new(
            to, json_sprintf("%s/%d", f->at.host, f->at.kind == HOST_IPV4 ? 32 : 128));
    json_t *rule = json_pack("{s:s, s:{s:s}}", "allow", f->url, "with", "postgres_login", f->login);
    if (rule && json_array_size(to) > 0)
        json_object_set(rule, "to", to);
    json_decref(to);
    json_t *all = json_pack("{s:s, s:[o]}", "policy", "fleet", "rules", rule);
    char *text = all ? json_dumps(all, JSON_COMPACT) : NULL;
    json_decref(all);
    return text;
}
