/* Builds a policy from its rules and refuses two allows that would send different credentials with
 * one request and of which neither is narrower. policy_decide.c decides. */
#include "policy.h"

#include <stdlib.h>
#include <string.h>

#include "cloud_identity.h"
#include "path.h"
#include "policy_private.h"

struct policy *policy_new(const char *name, const json_t *secrets)
{
    struct arena *a = arena_new();
    struct policy *p = arena_zalloc(a, 1, sizeof *p);
    p->arena = a;
    p->refs = 1;
    p->name = arena_str(a, name);
    p->secrets = secrets;
    p->credentials = json_object();
    p->terms = json_object();
    p->extras = json_object();
    return p;
}

/* Equal numbers for equal texts, from 1. */
static unsigned number_of(json_t *table, const char *text)
{
    json_int_t number = json_integer_value(json_object_get(table, text));
    if (number == 0) {
        number = (json_int_t)json_object_size(table) + 1;
        if (json_object_set_new(table, text, json_integer(number)) < 0)
            abort(); /* memory is out, as in the arena */
    }
    return (unsigned)number;
}

/* Equal numbers for rules that ask the same of a request and do the same with it: all keys but
 * those that say which requests. A budget is each rule's own. */
static unsigned terms_number(struct policy *p, const struct node *rule, const struct rule_entry *e)
{
    static const char *const which[] = {"allow", "methods", "access"};
    json_t *rest = json_copy(rule->value);
    for (size_t i = 0; i < ARRAY_LEN(which); i++)
        json_object_del(rest, which[i]);
    if (e->rule.ask)
        json_object_set_new(rest, "ask", json_true());
    if (e->rule.budget)
        json_object_set_new(rest, "budget", json_integer((json_int_t)p->n_rules));
    char *text = json_dumps(rest, JSON_COMPACT | JSON_SORT_KEYS);
    if (text == NULL)
        abort(); /* memory is out, as in the arena */
    unsigned number = number_of(p->terms, text);
    free(text);
    json_decref(rest);
    return number;
}

/* As its image has it. */
static const char *rule_json(struct arena *a, const struct node *rule)
{
    char *text = json_dumps(rule->value, JSON_COMPACT);
    if (text == NULL)
        abort(); /* memory is out, as in the arena */
    const char *ret = arena_str(a, text);
    free(text);
    return ret;
}

/* Equal numbers for equal credentials. */
static unsigned credential_number(struct policy *p, const struct credential *c)
{
    if (c == NULL)
        return 0;
    json_t *key = json_sprintf(
        "%d\n%s\n%s\n%s\n%s\n%s\n%s\n%u\n%s\n%s\n%u\n%s\n%s\n%u\n%d", (int)c->kind, c->secret,
        c->header, c->prefix, c->suffix, c->user ? c->user : "", c->name, c->places, c->slots,
        c->beside, c->count, c->region, c->service, credential_number(p, c->other), c->both);
    unsigned number = number_of(p->credentials, json_string_value(key));
    json_decref(key);
    return number;
}

int policy_add(struct policy *p, const struct node *rule, struct err *err)
{
    if (p->n_rules == POLICY_RULES_MAX)
        return node_fail(rule, err, "more than %d rules in policy '%s'", POLICY_RULES_MAX, p->name);
    struct rule_entry *e = arena_zalloc(p->arena, 1, sizeof *e);
    if (rule_read(p->arena, rule, p->secrets, e, err) < 0)
        return -1;
    if (p->n_arms + e->n_arms > POLICY_ARMS_MAX)
        return node_fail(rule, err, "more than %d patterns in policy '%s'", POLICY_ARMS_MAX,
                         p->name);
    if (p->n_rules == p->cap) {
        size_t cap = p->cap ? p->cap * 2 : 16;
        p->rules = arena_grow(p->arena, p->rules, p->n_rules, cap, sizeof(struct rule_entry *));
        p->cap = cap;
    }
    e->rule.index = (unsigned)p->n_rules;
    e->credential = credential_number(p, e->rule.credential);
    e->terms = e->deny ? 0 : terms_number(p, rule, e);
    if (!e->deny && rule_is_of_broker(&e->rule))
        e->rule.said = rule_all_said(p->arena, rule);
    p->index.mixed = p->index.mixed || e->read_only;
    e->json = rule_json(p->arena, rule);
    p->n_arms += e->n_arms;
    p->rules[p->n_rules++] = e;
    return 0;
}

/* Whoever opens the image reads it again. */
static void add_extra(struct policy *p, const char *key, const struct node *n)
{
    if (json_object_set(p->extras, key, n->value) < 0)
        abort(); /* memory is out, as in the arena */
}

int policy_budget_read(struct policy *p, const struct node *n, struct err *err)
{
    add_extra(p, "budget", n);
    return budget_read(p->arena, n, NULL, &p->budget, err);
}

int policy_prices_read(struct policy *p, const struct node *n, struct err *err)
{
    add_extra(p, "prices", n);
    return price_table_read(p->arena, n, &p->prices, err);
}

int policy_identity_read(struct policy *p, const struct node *n, struct err *err)
{
    add_extra(p, "identity", n);
    return cloud_identity_read(p->arena, n, p->secrets, &p->identity, err);
}

const char *const policy_names_words[2] = {"refuse", "nxdomain"};
const char *const policy_guide_words[2] = {"rules", "none"};

int policy_names_read(struct policy *p, const struct node *n, struct err *err)
{
    size_t word;
    if (node_word(n, policy_names_words, ARRAY_LEN(policy_names_words), &word, err) < 0)
        return -1;
    p->nxdomain = word == 1;
    return 0;
}

int policy_guide_read(struct policy *p, const struct node *n, struct err *err)
{
    size_t word;
    if (node_word(n, policy_guide_words, ARRAY_LEN(policy_guide_words), &word, err) < 0)
        return -1;
    p->unguided = word == 1;
    return 0;
}

/* Whether money can be counted at all. */
static int check_prices(const struct policy *p, struct err *err)
{
    bool wanted = budget_has(p->budget, BUDGET_COST);
    for (size_t i = 0; i < p->n_rules && !wanted; i++)
        wanted = budget_has(p->rules[i]->rule.budget, BUDGET_COST);
    return wanted && p->prices == NULL
               ? err_set(err, ERR_PARSE,
                         "policy '%s' has a budget of cost, and there is no table of prices; write "
                         "'prices' beside 'policies'",
                         p->name)
               : 0;
}

/* Nobody counts in a tunnel. */
static int check_budget(const struct policy *p, struct err *err)
{
    for (size_t i = 0; p->budget && i < p->n_rules; i++) {
        const struct rule_entry *e = p->rules[i];
        if (e->rule.tunnel)
            return err_set(err, ERR_PARSE,
                           "%s: a tunnel in a policy with a budget: what goes through it would not "
                           "be counted; put 'budget' on the other rules instead",
                           e->where);
    }
    return 0;
}

static bool is_sent(const struct policy *p, const char *secret, bool signs)
{
    for (size_t i = 0; i < p->n_rules; i++) {
        const struct credential *c = p->rules[i]->rule.credential;
        if (c && (c->kind == CREDENTIAL_AWS) == signs && strcmp(c->secret, secret) == 0)
            return true;
    }
    return false;
}

/* What an identity gives out has to be worth something, and no rule may lead to where it answers:
 * nobody could tell which of the two would. */
static int check_identity(const struct policy *p, struct err *err)
{
    static const char *const places[] = {CLOUD_ADDRESS, CLOUD_CONTAINER, CLOUD_GOOGLE};
    const char *secret;
    bool signs;
    for (size_t i = 0; (secret = cloud_identity_secret(p->identity, i, &signs)) != NULL; i++)
        if (!is_sent(p, secret, signs))
            return err_set(err, ERR_PARSE,
                           "policy '%s': its identity gives out a placeholder of '%s', which no "
                           "rule %s; add one, such as { allow: HOST, with: { %s: %s } }",
                           p->name, secret, signs ? "signs with" : "sends",
                           signs ? "aws" : "bearer", secret);
    for (size_t i = 0; i < ARRAY_LEN(places); i++) {
        struct authority a = {.scheme = SCHEME_HTTP, .port = 80};
        if (authority_host(&a, slice_str(places[i])) == 0 && cloud_identity_at(p->identity, &a) &&
            policy_host(p, &a) != 0)
            return err_set(err, ERR_PARSE,
                           "policy '%s': its identity answers at http://%s, and a rule allows that "
                           "place; take one of the two out",
                           p->name, places[i]);
    }
    return 0;
}

static bool arm_contains(const struct arm *outer, const struct arm *inner)
{
    return (inner->methods & ~outer->methods) == 0 &&
           pattern_contains(&outer->pattern, &inner->pattern);
}

/* Two allows may both match only if one is strictly narrower or both send the same credential. */
static int check_pair(const struct arm *a, const struct arm *b, struct err *err)
{
    char url[400];
    const struct rule_entry *first = a->entry, *second = b->entry;
    uint32_t methods = a->methods & b->methods;
    if (first == second || first->credential == second->credential || methods == 0 ||
        first->rule.ask != second->rule.ask) /* what asks goes first, however wide */
        return 0;
    if (arm_contains(a, b) != arm_contains(b, a) ||
        !pattern_intersects(&a->pattern, &b->pattern, url, sizeof url))
        return 0;
    if (first->rule.index > second->rule.index) {
        first = b->entry;
        second = a->entry;
    }
    return err_set(err, ERR_PARSE,
                   "%s: this rule and the one at %s both allow %s %s, and differ in their "
                   "credential; make one strictly narrower than the other",
                   second->where, first->where, method_first(methods), url);
}

/* The arms that one may overlap: below its own site those whose literal segments begin its own
 * (the rest find this one when their turn comes); of its parent domains all. */
static int check_arm(const struct policy *p, const struct arm *a, struct err *err)
{
    const struct policy_index *x = &p->index;
    const struct site *own = &x->sites[a->site];
    const struct image_site *sites[POLICY_SITES_MAX];
    uint32_t first[POLICY_DEPTH + 1];
    size_t n = policy_index_probe_arm(x, own, a, first);
    for (size_t i = 0; i < n; i++)
        for (uint32_t b = first[i]; b != POLICY_NONE; b = x->arms[b].next)
            if (check_pair(a, &x->arms[b], err) < 0)
                return -1;
    struct authority at = {
        .scheme = a->pattern.scheme, .port = a->pattern.port, .kind = a->pattern.kind};
    memcpy(at.host, a->pattern.host.p, a->pattern.host.n + 1);
    n = policy_image_sites(&p->image, &at, sites);
    for (size_t i = 0; i < n; i++) {
        const struct site *site = &x->sites[sites[i] - p->image.sites];
        if (site == own || !site->pattern->subdomains)
            continue;
        for (uint32_t b = site->first_arm; b != POLICY_NONE; b = x->arms[b].next_site)
            if (check_pair(a, &x->arms[b], err) < 0)
                return -1;
    }
    return 0;
}

static int add_deny_arms(struct policy *p, const struct rule_entry *e, const struct rule_arm *from,
                         struct err *err)
{
    struct policy_index *x = &p->index;
    struct pattern readings[ARM_READINGS];
    int n = policy_index_readings(p->arena, &from->pattern, readings);
    if (n < 0)
        return err_set(err, ERR_PARSE,
                       "%s: '%.200s': more than 64 segments when %%2F is read as a slash", e->where,
                       from->pattern.text);
    for (int i = 0; i < n; i++)
        x->arms[x->n_arms++] = (struct arm){.entry = e,
                                            .pattern = readings[i],
                                            .original = &from->pattern,
                                            .methods = from->methods};
    return 0;
}

static int add_arms(struct policy *p, struct err *err)
{
    struct policy_index *x = &p->index;
    x->arms = arena_zalloc(p->arena, p->n_arms * ARM_READINGS + 1, sizeof *x->arms);
    for (size_t i = 0; i < p->n_rules; i++) {
        const struct rule_entry *e = p->rules[i];
        for (size_t j = 0; j < e->n_arms; j++) {
            if (!e->deny)
                x->arms[x->n_arms++] = (struct arm){
                    .entry = e, .pattern = e->arms[j].pattern, .methods = e->arms[j].methods};
            else if (add_deny_arms(p, e, &e->arms[j], err) < 0)
                return -1;
        }
    }
    return 0;
}

static void free_bytes(void *bytes, size_t n UNUSED)
{
    free(bytes);
}

/* What is decided here is decided by the same bytes as in the roles. */
static int make_image(struct policy *p, struct err *err)
{
    p->bytes = policy_image_write(p, &p->n_bytes, err);
    p->release = free_bytes;
    if (p->bytes == NULL || policy_image_check(p->bytes, p->n_bytes, &p->image, err) < 0)
        return -1;
    p->taints = arena_zalloc(p->arena, p->image.n_sites / POLICY_BLOCK + 1, sizeof(void *));
    return 0;
}

int policy_seal(struct policy *p, struct err *err)
{
    struct policy_index *x = &p->index;
    if (check_budget(p, err) < 0 || check_prices(p, err) < 0 ||
        rule_tunnels_check(p->rules, p->n_rules, err) < 0 ||
        rule_captures_settle(p->arena, p->rules, p->n_rules, p->secrets, err) < 0 ||
        add_arms(p, err) < 0)
        return -1;
    x->mixed = x->mixed || json_object_size(p->terms) > 1;
    if (policy_index_build(x, p->arena, err) < 0)
        return -1;
    if (make_image(p, err) < 0)
        return -1;
    json_decref(p->credentials);
    json_decref(p->terms);
    json_decref(p->extras);
    p->credentials = p->terms = p->extras = NULL;
    p->secrets = NULL;
    for (uint32_t i = 0; i < x->n_arms; i++)
        if (x->arms[i].kind == ARM_ALLOW && check_arm(p, &x->arms[i], err) < 0)
            return -1;
    return check_identity(p, err);
}

/* Does it ask something of a request that `wide` does not? What is asked of the path and the method
 * is not meant. */
static bool asks_more(const struct rule_entry *e, const struct rule_entry *wide)
{
    const struct rule *a = &e->rule, *b = &wide->rule;
    if (e->deny)
        return true;
    return (a->ask && !b->ask) || (e->read_only && !wide->read_only) ||
           (a->query_limited && !b->query_limited) || a->n_headers > b->n_headers ||
           (a->inspection && !b->inspection && !e->git);
}

void policy_warnings(const struct policy *p,
                     void (*fn)(void *arg, const struct rule_entry *narrow,
                                const struct rule_entry *wide),
                     void *arg)
{
    const struct policy_index *x = &p->index;
    const struct rule_entry *told = NULL;
    for (uint32_t i = 0; i < x->n_arms; i++) {
        const struct arm *d = &x->arms[i];
        const struct pattern *narrow = d->kind == ARM_DENY ? d->original : &d->pattern;
        if (d->kind == ARM_SHADOW || d->entry == told)
            continue;
        for (uint32_t j = 0; d->entry != told && j < x->n_arms; j++) {
            const struct arm *a = &x->arms[j];
            if (a->kind != ARM_ALLOW || a->entry == d->entry || !asks_more(d->entry, a->entry) ||
                !pattern_contains(&a->pattern, narrow) || pattern_contains(narrow, &a->pattern))
                continue;
            fn(arg, d->entry, a->entry);
            told = d->entry;
        }
    }
}

static bool speaks_http(const struct pattern *p)
{
    return p->scheme == SCHEME_HTTPS || p->scheme == SCHEME_HTTP;
}

/* Does `a` decide before `d` whatever `d` allows? Of other protocols a rule has more to match by.
 */
static bool comes_before(const struct arm *a, const struct arm *d)
{
    const struct rule_entry *by = a->entry, *idle = d->entry;
    if (a->kind == ARM_SHADOW || by == idle || !speaks_http(&d->pattern))
        return false;
    if (by->deny) /* as written: its other readings are of other spellings */
        return a->kind == ARM_DENY && pattern_contains(a->original, &d->pattern) &&
               (d->methods & ~a->methods) == 0;
    if (by->git || idle->git)
        return false;
    if (by->rule.ask != idle->rule.ask)
        return by->rule.ask && arm_contains(a, d);
    return by->terms != idle->terms && by->rule.index < idle->rule.index &&
           a->methods == d->methods && strcmp(a->pattern.text, d->pattern.text) == 0;
}

static const struct rule_entry *decided_by(const struct policy_index *x, const struct arm *d)
{
    for (uint32_t j = 0; j < x->n_arms; j++)
        if (comes_before(&x->arms[j], d))
            return x->arms[j].entry;
    return NULL;
}

void policy_idle(const struct policy *p,
                 void (*fn)(void *arg, const struct rule_entry *idle, const struct rule_entry *by),
                 void *arg)
{
    for (size_t i = 0; i < p->n_rules; i++) {
        const struct rule_entry *e = p->rules[i], *by = NULL;
        bool idle = !e->deny;
        for (size_t k = 0; idle && k < e->n_arms; k++) {
            struct arm d = {
                .entry = e, .pattern = e->arms[k].pattern, .methods = e->arms[k].methods};
            idle = (by = decided_by(&p->index, &d)) != NULL;
        }
        if (by)
            fn(arg, e, by);
    }
}

const struct rule_entry *policy_entry(const struct policy *p, size_t i)
{
    return i < p->n_rules ? p->rules[i] : NULL;
}

struct policy *policy_parse(const char *json, size_t n, struct err *err)
{
    static const struct key keys[] = {{"policy", NULL},  {"rules", NULL}, {"budget", NULL},
                                      {"names", NULL},   {"guide", NULL}, {"prices", NULL},
                                      {"identity", NULL}};
    struct source source = {.name = "policy"};
    json_error_t why;
    struct node name, rules, budget, names, guide, prices, identity;
    const char *text;
    struct policy *p = NULL;
    json_t *root = json_loadb(json, n, JSON_REJECT_DUPLICATES, &why);
    if (root == NULL) {
        err_set(err, ERR_PARSE, "policy: %s", why.text);
        return NULL;
    }
    struct node top = node_root(&source, root);
    if (node_keys(&top, keys, ARRAY_LEN(keys), err) < 0)
        goto out;
    node_get(&top, "policy", &name);
    node_get(&top, "rules", &rules);
    if (node_string(&name, &text, err) < 0 || node_is_array(&rules, err) < 0)
        goto out;
    p = policy_new(text, NULL);
    if (node_get(&top, "budget", &budget) && policy_budget_read(p, &budget, err) < 0)
        goto fail;
    if (node_get(&top, "prices", &prices) && policy_prices_read(p, &prices, err) < 0)
        goto fail;
    if (node_get(&top, "guide", &guide) && policy_guide_read(p, &guide, err) < 0)
        goto fail;
    if (node_get(&top, "names", &names) && policy_names_read(p, &names, err) < 0)
        goto fail;
    if (node_get(&top, "identity", &identity) && policy_identity_read(p, &identity, err) < 0)
        goto fail;
    for (size_t i = 0; i < json_array_size(rules.value); i++) {
        struct node rule = node_item(&rules, i);
        if (policy_add(p, &rule, err) < 0)
            goto fail;
    }
    if (policy_seal(p, err) == 0)
        goto out;
fail:
    policy_free(p);
    p = NULL;
out:
    json_decref(root);
    return p;
}
