/* Opens a policy's image, and reads what a rule says beyond where it stands when it is first asked
 * for. */
#include <stdlib.h>
#include <string.h>

#include "cloud_identity.h"
#include "mcp.h"
#include "policy_private.h"

static const struct rule_entry damaged; /* stands for a rule that cannot be read */

struct policy *policy_ref(struct policy *p)
{
    p->refs++;
    return p;
}

void policy_free(struct policy *p)
{
    if (p == NULL || --p->refs > 0)
        return;
    json_decref(p->credentials);
    json_decref(p->terms);
    json_decref(p->extras);
    if (p->release)
        p->release(p->bytes, p->n_bytes);
    arena_free(p->arena);
}

/* ---- opening ---- */

static int read_extras(struct policy *p, const char *text, struct err *err)
{
    struct source source = {.name = "policy"};
    struct node budget, prices, identity;
    json_t *all = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    struct node top = node_root(&source, all);
    int r = all ? 0 : err_set(err, ERR_PARSE, "the image of a policy is damaged: its terms");
    if (r == 0 && node_get(&top, "budget", &budget))
        r = budget_read(p->arena, &budget, NULL, &p->budget, err);
    if (r == 0 && node_get(&top, "prices", &prices))
        r = price_table_read(p->arena, &prices, &p->prices, err);
    if (r == 0 && node_get(&top, "identity", &identity))
        r = cloud_identity_read(p->arena, &identity, NULL, &p->identity, err);
    json_decref(all);
    return r;
}

struct policy *policy_open(void *bytes, size_t n, void (*release)(void *bytes, size_t n),
                           struct err *err)
{
    struct arena *a = arena_new();
    struct policy *p = arena_zalloc(a, 1, sizeof *p);
    p->arena = a;
    p->refs = 1;
    p->bytes = bytes;
    p->n_bytes = n;
    p->release = release;
    if (policy_image_check(bytes, n, &p->image, err) < 0)
        goto fail;
    const struct image_header *h = p->image.head;
    p->name = p->image.text + h->name;
    p->nxdomain = h->flags & IMAGE_NXDOMAIN;
    p->unguided = h->flags & IMAGE_UNGUIDED;
    p->n_rules = p->image.n_rules;
    p->read = arena_zalloc(a, p->n_rules / POLICY_BLOCK + 1, sizeof(void *));
    p->taints = arena_zalloc(a, p->image.n_sites / POLICY_BLOCK + 1, sizeof(void *));
    if (read_extras(p, p->image.text + h->extras, err) == 0)
        return p;
fail:
    policy_free(p);
    return NULL;
}

/* ---- rules ---- */

uint32_t policy_rule_flags(const struct rule_entry *e)
{
    const struct rule *r = &e->rule;
    const struct credential *c = r->credential;
    return (e->deny ? RULE_DENY : 0) | (r->ask ? RULE_ASK : 0) |
           (e->read_only ? RULE_READ_ONLY : 0) | (r->method_scoped ? RULE_METHOD_SCOPED : 0) |
           (r->tunnel ? RULE_TUNNEL : 0) | (rule_read_again(r) ? RULE_READ_AGAIN : 0) |
           (c ? RULE_CREDENTIAL : 0) | (c && c->captured ? RULE_CAPTURED : 0) |
           (r->websocket ? RULE_WEBSOCKET : 0) | (r->n_to ? RULE_TO : 0);
}

static unsigned kind(bool ask, bool served)
{
    return ask ? POLICY_HOST_ASK : served ? POLICY_HOST_CREDENTIALED : POLICY_HOST_PLAIN;
}

unsigned policy_rule_kind(const struct rule *r)
{
    return kind(r->ask, r->credential || rule_read_again(r));
}

unsigned policy_record_kind(const struct image_rule *r)
{
    return kind(r->flags & RULE_ASK, r->flags & (RULE_CREDENTIAL | RULE_READ_AGAIN));
}

const char *rule_all_said(struct arena *a, const struct node *rule)
{
    json_t *rest = json_copy(rule->value);
    json_object_del(rest, "allow");
    json_object_del(rest, "ask"); /* its patterns; that it asks is in the decision */
    char *text = json_dumps(rest, JSON_COMPACT | JSON_SORT_KEYS);
    if (text == NULL)
        abort(); /* memory is out, as in the arena */
    const char *said = arena_str(a, text);
    free(text);
    json_decref(rest);
    return said;
}

/* Does the rule say what its record says? A restriction's record must not become an allow. */
static bool is_as_recorded(const struct policy *p, const struct rule_entry *e,
                           const struct image_rule *r)
{
    const struct credential *c = e->rule.credential;
    if (policy_rule_flags(e) != r->flags || strcmp(e->rule.text, p->image.text + r->text) != 0)
        return false;
    return c ? r->secret != POLICY_NONE && strcmp(c->secret, p->image.text + r->secret) == 0
             : r->secret == POLICY_NONE;
}

/* NULL: there was no room to parse it, which may be otherwise the next time. */
static const struct rule_entry *read_rule(const struct policy *p, size_t i)
{
    const struct image_rule *r = &p->image.rules[i];
    struct source source = {.name = "policy"};
    json_t *value = json_loadb(p->image.text + r->json, r->json_n, JSON_REJECT_DUPLICATES, NULL);
    if (value == NULL)
        return NULL;
    struct node top = node_root(&source, NULL), list = {&source, &top, "rules", 0, NULL},
                one = {&source, &list, NULL, i, value};
    struct rule_entry *e = arena_zalloc(p->arena, 1, sizeof *e);
    struct err err;
    bool good = rule_read(p->arena, &one, NULL, e, &err) == 0;
    if (good) {
        e->rule.index = (unsigned)i;
        e->terms = r->terms;
        if (!e->deny && rule_is_of_broker(&e->rule))
            e->rule.said = rule_all_said(p->arena, &one);
        if (e->rule.credential && r->flags & RULE_CAPTURED)
            rule_capture_mark(p->arena, &e->rule);
        good = is_as_recorded(p, e, r);
    }
    json_decref(value);
    return good ? e : &damaged;
}

static const struct rule_entry *entry_of(const struct policy *p, size_t i)
{
    if (i >= p->n_rules)
        return NULL;
    if (p->rules)
        return p->rules[i];
    const struct rule_entry **block = p->read[i / POLICY_BLOCK];
    if (block == NULL)
        block = p->read[i / POLICY_BLOCK] = arena_zalloc(p->arena, POLICY_BLOCK, sizeof *block);
    if (block[i % POLICY_BLOCK] == NULL)
        block[i % POLICY_BLOCK] = read_rule(p, i);
    return block[i % POLICY_BLOCK] == &damaged ? NULL : block[i % POLICY_BLOCK];
}

const struct rule *policy_rule(const struct policy *p, size_t i)
{
    const struct rule_entry *e = entry_of(p, i);
    return e ? &e->rule : NULL;
}

const char *policy_rule_where(const struct policy *p, size_t i)
{
    const struct rule_entry *e = entry_of(p, i);
    return e ? e->where : NULL;
}

bool policy_rule_told(const struct policy *p, size_t i, struct rule_told *ret)
{
    const struct policy_image *x = &p->image;
    if (i >= x->n_rules)
        return false;
    const struct image_rule *r = &x->rules[i];
    *ret = (struct rule_told){.text = x->text + r->text,
                              .secret = r->secret == POLICY_NONE ? NULL : x->text + r->secret,
                              .deny = r->flags & RULE_DENY,
                              .ask = r->flags & RULE_ASK,
                              .websocket = r->flags & RULE_WEBSOCKET};
    return true;
}

const char *policy_secret(const struct policy *p, size_t i)
{
    const struct policy_image *x = &p->image;
    return i < x->n_secrets ? x->text + x->secrets[i] : NULL;
}

/* ---- what is said of the whole policy ---- */

const struct policy_image *policy_image_of(const struct policy *p)
{
    return &p->image;
}

struct slice policy_image_bytes(const struct policy *p)
{
    return (struct slice){p->bytes, p->n_bytes};
}

const char *policy_name(const struct policy *p)
{
    return p->name;
}

const struct cloud_identity *policy_identity(const struct policy *p)
{
    return p->identity;
}

const struct price_table *policy_prices(const struct policy *p)
{
    return p->prices;
}

const struct budget *policy_budget(const struct policy *p)
{
    return p->budget;
}

bool policy_guide_none(const struct policy *p)
{
    return p->unguided;
}

bool policy_nxdomain(const struct policy *p)
{
    return p->nxdomain;
}

bool rule_budget_at(const struct rule *r, size_t i, const struct budget **ret)
{
    const struct mcp_rules *m = rule_reads_messages(r) ? r->inspection->mcp : NULL;
    if (i == 0)
        *ret = r->budget;
    else if (m && i <= m->n_tools)
        *ret = m->tools[i - 1].budget;
    else
        return false;
    return true;
}

const struct budget *policy_budget_find(const struct policy *p, uint64_t key, bool of_tool)
{
    const struct policy_image *x = &p->image;
    size_t from = 0, to = x->n_budgets;
    while (from < to) {
        size_t mid = from + (to - from) / 2;
        if (x->budgets[mid].key < key)
            from = mid + 1;
        else
            to = mid;
    }
    const struct rule *r = from < x->n_budgets && x->budgets[from].key == key
                               ? policy_rule(p, x->budgets[from].rule)
                               : NULL;
    const struct budget *b;
    for (size_t i = 0; r && rule_budget_at(r, i, &b); i++)
        if (b && b->key == key && (i > 0) == of_tool)
            return b;
    return NULL;
}

/* ---- taints ---- */

static const struct taint *read_taints(const struct policy *p, const struct image_site *s)
{
    const struct policy_image *x = &p->image;
    const struct taint *list = NULL;
    for (uint32_t i = s->n_taints; i-- > 0;) {
        const struct image_taint *t = &x->taints[s->taint + i];
        struct taint *one = arena_zalloc(p->arena, 1, sizeof *one);
        one->secret = x->text + t->secret;
        one->user = t->user == POLICY_NONE ? NULL : x->text + t->user;
        one->captured = t->flags & IMAGE_TAINT_CAPTURED;
        one->aws = t->flags & IMAGE_TAINT_AWS;
        one->on_reflect = (enum on_reflect)t->on_reflect;
        one->next = (struct taint *)list;
        list = one;
    }
    return list;
}

const struct taint *policy_taints_at(const struct policy *p, const struct image_site *s)
{
    size_t i = (size_t)(s - p->image.sites);
    if (p->taints[i / POLICY_BLOCK] == NULL)
        p->taints[i / POLICY_BLOCK] = arena_zalloc(p->arena, POLICY_BLOCK, sizeof(struct taint *));
    const struct taint **at = &p->taints[i / POLICY_BLOCK][i % POLICY_BLOCK];
    if (*at == NULL && s->n_taints)
        *at = read_taints(p, s);
    return *at;
}
