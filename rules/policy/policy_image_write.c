/* Lays a policy that was compiled out as its image. */
#include <stdlib.h>
#include <string.h>

#include "buf.h"
#include "policy_private.h"

struct writer {
    const struct policy *p;
    struct buf part[IMAGE_PARTS];
    uint32_t n[IMAGE_PARTS];
    json_t *secrets; /* name → its text's offset */
    bool full;
};

/* Its number, or of a text's bytes their offset. */
static uint32_t put(struct writer *w, enum image_part part, const void *record, size_t n)
{
    uint32_t at = w->n[part];
    if (n > POLICY_IMAGE_MAX || buf_append(&w->part[part], record, n) < 0) {
        w->full = true;
        return 0;
    }
    w->n[part] += (uint32_t)(n / policy_image_record(part));
    return at;
}

static uint32_t put_text(struct writer *w, struct slice s)
{
    uint32_t at = s.n ? put(w, IMAGE_TEXT, s.p, s.n) : w->n[IMAGE_TEXT];
    put(w, IMAGE_TEXT, "", 1);
    return at;
}

static uint32_t put_secret(struct writer *w, const char *name)
{
    const json_t *had = json_object_get(w->secrets, name);
    if (had)
        return (uint32_t)json_integer_value(had);
    uint32_t at = put_text(w, slice_str(name));
    if (json_object_set_new(w->secrets, name, json_integer(at)) < 0)
        abort(); /* memory is out, as in the arena */
    return at;
}

static void put_rule(struct writer *w, const struct rule_entry *e)
{
    const struct credential *c = e->rule.credential;
    struct slice json = slice_str(e->json);
    struct image_rule r = {.text = put_text(w, slice_str(e->rule.text)),
                           .json_n = (uint32_t)json.n,
                           .secret = POLICY_NONE,
                           .terms = e->terms,
                           .flags = policy_rule_flags(e)};
    r.json = put_text(w, json);
    if (c) {
        size_t known = json_object_size(w->secrets);
        r.secret = put_secret(w, c->secret);
        if (json_object_size(w->secrets) > known)
            put(w, IMAGE_SECRETS, &r.secret, sizeof r.secret);
    }
    put(w, IMAGE_RULES, &r, sizeof r);
}

/* Of one key the first rule's comes first: it is the one that is found. */
static int by_key(const void *a, const void *b)
{
    const struct image_budget *x = a, *y = b;
    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return x->rule < y->rule ? -1 : x->rule > y->rule;
}

static void put_rules(struct writer *w)
{
    const struct policy *p = w->p;
    for (size_t i = 0; i < p->n_rules; i++) {
        const struct rule *r = &p->rules[i]->rule;
        const struct budget *b;
        put_rule(w, p->rules[i]);
        for (size_t k = 0; rule_budget_at(r, k, &b); k++)
            if (b)
                put(w, IMAGE_BUDGETS, &(struct image_budget){.key = b->key, .rule = (uint32_t)i},
                    sizeof(struct image_budget));
    }
    if (w->n[IMAGE_BUDGETS])
        qsort(buf_data(&w->part[IMAGE_BUDGETS]), w->n[IMAGE_BUDGETS], sizeof(struct image_budget),
              by_key);
}

static struct image_path put_path(struct writer *w, const struct pattern *p)
{
    struct image_path ret = {w->n[IMAGE_SEGMENTS], (uint16_t)p->n_segments, p->tail};
    for (unsigned i = 0; i < p->n_segments; i++) {
        const struct segment *s = &p->segments[i];
        struct image_segment g = {w->n[IMAGE_TEXT], (uint16_t)s->text.n, (uint16_t)s->kind};
        if (s->text.n)
            g.at = put(w, IMAGE_TEXT, s->text.p, s->text.n);
        put(w, IMAGE_SEGMENTS, &g, sizeof g);
    }
    return ret;
}

/* What a deny was as written only its builder asks (policy_warnings). */
static void put_arm(struct writer *w, const struct arm *from)
{
    const struct image_path none = {.n = IMAGE_NO_PATH};
    bool hung = from->kind == ARM_ALLOW;
    struct image_arm a = {.path = put_path(w, &from->pattern),
                          .rule = from->entry->rule.index,
                          .site = from->site,
                          .methods = from->methods,
                          .rank = from->rank,
                          .next_way = from->next_way,
                          .next_site = hung ? from->next_site : POLICY_NONE,
                          .kind = from->kind};
    a.original = hung && from->original ? put_path(w, from->original) : none;
    put(w, IMAGE_ARMS, &a, sizeof a);
}

static uint32_t put_taints(struct writer *w, const struct taint *list)
{
    uint32_t n = 0;
    for (const struct taint *t = list; t; t = t->next, n++) {
        struct image_taint it = {.secret = put_secret(w, t->secret),
                                 .user = t->user ? put_text(w, slice_str(t->user)) : POLICY_NONE,
                                 .flags = (t->captured ? IMAGE_TAINT_CAPTURED : 0) |
                                          (t->aws ? IMAGE_TAINT_AWS : 0),
                                 .on_reflect = t->on_reflect};
        put(w, IMAGE_TAINTS, &it, sizeof it);
    }
    return n;
}

static void put_site(struct writer *w, const struct site *from)
{
    const struct pattern *p = from->pattern;
    struct image_site s = {.hash = from->hash,
                           .host = put_text(w, p->host),
                           .next_host = from->next_host,
                           .first_arm = from->first_arm,
                           .first_way = {from->first_way[0], from->first_way[1]},
                           .kinds = from->kinds,
                           .taint = w->n[IMAGE_TAINTS],
                           .host_n = (uint16_t)p->host.n,
                           .port = p->port,
                           .scheme = (uint8_t)p->scheme,
                           .kind = (uint8_t)p->kind,
                           .subdomains = p->subdomains,
                           .restrains = (from->restricted ? IMAGE_RESTRICTED : 0) |
                                        (from->denied ? IMAGE_DENIED : 0)};
    s.n_taints = put_taints(w, from->taint);
    put(w, IMAGE_SITES, &s, sizeof s);
}

static void put_table(struct writer *w, enum image_part part, const struct bucket *t, size_t mask)
{
    for (size_t i = 0; i <= mask; i++) {
        struct image_bucket b = {.first = t[i].first};
        if (b.first != POLICY_NONE)
            b.hash = t[i].hash;
        put(w, part, &b, sizeof b);
    }
}

static void put_index(struct writer *w)
{
    const struct policy_index *x = &w->p->index;
    for (uint32_t i = 0; i < x->n_arms; i++)
        put_arm(w, &x->arms[i]);
    for (uint32_t i = 0; i < x->n_sites; i++)
        put_site(w, &x->sites[i]);
    for (uint32_t i = 0; i < x->n_ways; i++) {
        struct way way;
        memset(&way, 0, sizeof way); /* with what lies between its members */
        way.depth = x->ways[i].depth;
        way.stars = x->ways[i].stars;
        way.prefix = x->ways[i].prefix;
        way.next = x->ways[i].next;
        put(w, IMAGE_WAYS, &way, sizeof way);
    }
    put_table(w, IMAGE_WAY_TABLE, x->way_buckets, x->bucket_mask);
    put_table(w, IMAGE_SITE_TABLE, x->site_table, x->site_mask);
    put_table(w, IMAGE_HOST_TABLE, x->host_table, x->site_mask);
}

static uint32_t put_extras(struct writer *w)
{
    char *text = json_dumps(w->p->extras, JSON_COMPACT);
    if (text == NULL)
        abort(); /* memory is out, as in the arena */
    uint32_t at = put_text(w, slice_str(text));
    free(text);
    return at;
}

static uint32_t flags_of(const struct policy *p)
{
    return (p->nxdomain ? IMAGE_NXDOMAIN : 0) | (p->unguided ? IMAGE_UNGUIDED : 0) |
           (p->index.subdomains ? IMAGE_SUBDOMAINS : 0) | (p->index.tunnels ? IMAGE_TUNNELS : 0) |
           (p->index.needs_injector ? IMAGE_NEEDS_INJECTOR : 0);
}

static size_t aligned(size_t n)
{
    return (n + 7) / 8 * 8;
}

/* The header, and behind it the parts. */
static void *assemble(struct writer *w, struct image_header *h, size_t *n)
{
    size_t size = sizeof *h;
    for (unsigned i = 0; i < IMAGE_PARTS; i++)
        size += aligned(buf_len(&w->part[i]));
    unsigned char *all = size <= POLICY_IMAGE_MAX ? calloc(1, size) : NULL;
    if (all == NULL)
        return NULL;
    *n = sizeof *h;
    for (unsigned i = 0; i < IMAGE_PARTS; i++) {
        size_t len = buf_len(&w->part[i]);
        h->part[i].at = (uint32_t)*n;
        h->part[i].n = w->n[i];
        if (len)
            memcpy(all + *n, buf_data(&w->part[i]), len);
        *n += aligned(len);
    }
    h->size = (uint32_t)size;
    memcpy(all, h, sizeof *h);
    ((struct image_header *)(void *)all)->digest = policy_image_digest(all, size);
    return all;
}

void *policy_image_write(const struct policy *p, size_t *n, struct err *err)
{
    struct writer w = {.p = p, .secrets = json_object()};
    struct image_header h = {.magic = POLICY_IMAGE_MAGIC, .version = POLICY_IMAGE_VERSION};
    void *ret = NULL;
    for (unsigned i = 0; i < IMAGE_PARTS; i++)
        buf_init(&w.part[i], POLICY_IMAGE_MAX);
    h.flags = flags_of(p);
    h.name = put_text(&w, slice_str(p->name));
    h.extras = put_extras(&w);
    put_rules(&w);
    put_index(&w);
    if (w.full || (ret = assemble(&w, &h, n)) == NULL)
        err_set(err, ERR_LIMIT, "policy '%s' is larger than %d MiB when compiled", p->name,
                POLICY_IMAGE_MAX >> 20);
    for (unsigned i = 0; i < IMAGE_PARTS; i++)
        buf_free(&w.part[i]);
    json_decref(w.secrets);
    return ret;
}
