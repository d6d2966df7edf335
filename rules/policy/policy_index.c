/* Builds the tables of hosts, sites and buckets, hangs arms and their shadows in them, and finds
 * the arms that one may overlap. */
#include "policy_index.h"

#include <stdlib.h>
#include <string.h>

#include "path.h"
#include "policy_hash.h"

static uint64_t bucket_root(const struct site *s)
{
    unsigned char tag = 1;
    return policy_mix(s->hash, &tag, 1);
}

static size_t table_size(size_t items)
{
    size_t n = 8;
    while (n < items * 2 + 2)
        n *= 2;
    return n;
}

static struct bucket *table_new(struct arena *a, size_t size)
{
    struct bucket *t = arena_zalloc(a, size, sizeof *t);
    for (size_t i = 0; i < size; i++)
        t[i].first = POLICY_NONE;
    return t;
}

/* The bucket of that hash, or the free one where it would be. */
static struct bucket *bucket_at(struct bucket *table, size_t mask, uint64_t h)
{
    size_t i = policy_hash_start(h, mask);
    while (table[i].first != POLICY_NONE && table[i].hash != h)
        i = (i + 1) & mask;
    return &table[i];
}

static bool same_host(const struct pattern *p, struct slice host, bool subdomains)
{
    return p->subdomains == subdomains && slice_eq(p->host, host);
}

static uint32_t find_site(const struct policy_index *x, struct slice host, bool subdomains,
                          enum scheme scheme, uint16_t port)
{
    uint64_t h = policy_site_hash(policy_host_hash(host, subdomains), scheme, port);
    for (size_t i = policy_hash_start(h, x->site_mask); x->site_table[i].first != POLICY_NONE;
         i = (i + 1) & x->site_mask) {
        const struct pattern *p = x->sites[x->site_table[i].first].pattern;
        if (x->site_table[i].hash == h && p->scheme == scheme && p->port == port &&
            same_host(p, host, subdomains))
            return x->site_table[i].first;
    }
    return POLICY_NONE;
}

static uint32_t find_host(const struct policy_index *x, struct slice host, bool subdomains)
{
    uint64_t h = policy_host_hash(host, subdomains);
    for (size_t i = policy_hash_start(h, x->site_mask); x->host_table[i].first != POLICY_NONE;
         i = (i + 1) & x->site_mask)
        if (x->host_table[i].hash == h &&
            same_host(x->sites[x->host_table[i].first].pattern, host, subdomains))
            return x->host_table[i].first;
    return POLICY_NONE;
}

static void table_put(struct bucket *table, size_t mask, uint64_t h, uint32_t value)
{
    size_t i = policy_hash_start(h, mask);
    while (table[i].first != POLICY_NONE)
        i = (i + 1) & mask;
    table[i] = (struct bucket){h, value};
}

static uint32_t make_site(struct policy_index *x, const struct pattern *p)
{
    uint32_t i = find_site(x, p->host, p->subdomains, p->scheme, p->port);
    if (i != POLICY_NONE)
        return i;
    uint64_t host = policy_host_hash(p->host, p->subdomains);
    uint32_t sibling = find_host(x, p->host, p->subdomains);
    i = x->n_sites++;
    x->sites[i] = (struct site){.pattern = p,
                                .hash = policy_site_hash(host, p->scheme, p->port),
                                .next_host = POLICY_NONE,
                                .first_way = {POLICY_NONE, POLICY_NONE},
                                .first_arm = POLICY_NONE};
    table_put(x->site_table, x->site_mask, x->sites[i].hash, i);
    if (sibling == POLICY_NONE) {
        table_put(x->host_table, x->site_mask, host, i);
    } else {
        x->sites[i].next_host = x->sites[sibling].next_host;
        x->sites[sibling].next_host = i;
    }
    x->subdomains = x->subdomains || p->subdomains;
    return i;
}

/* ---- ways ---- */

static const struct way no_way = {.next = POLICY_NONE};

static struct way way_of(const struct pattern *p)
{
    struct way w = no_way;
    for (; w.depth < POLICY_DEPTH && w.depth < p->n_segments; w.depth++) {
        const struct segment *s = &p->segments[w.depth];
        ssize_t star = s->kind == SEGMENT_GLOB ? slice_find(s->text, PATTERN_WILD) : 0;
        if (star > 0) {
            w.prefix = star < UINT8_MAX ? (uint8_t)star : UINT8_MAX;
            return w;
        }
        if (s->kind != SEGMENT_LITERAL)
            w.stars |= (uint8_t)(1u << w.depth);
    }
    while (w.depth > 0 && w.stars >> (w.depth - 1)) /* they tell nothing where they stand last */
        w.stars &= (uint8_t) ~(1u << --w.depth);
    return w;
}

/* The site knows the way afterwards. One with too many of them takes no more, but the way of every
 * path. */
static struct way way_add(struct policy_index *x, struct site *s, bool restricting, struct way w)
{
    for (uint32_t i = s->first_way[restricting]; i != POLICY_NONE; i = x->ways[i].next)
        if (x->ways[i].depth == w.depth && x->ways[i].stars == w.stars &&
            x->ways[i].prefix == w.prefix)
            return w;
    bool is_last = s->n_ways[restricting] + 1 >= POLICY_WAYS_MAX && (w.depth || w.prefix);
    if (is_last)
        return way_add(x, s, restricting, no_way);
    w.next = s->first_way[restricting];
    s->first_way[restricting] = x->n_ways;
    s->n_ways[restricting]++;
    x->ways[x->n_ways++] = w;
    return w;
}

static void hang_way(struct policy_index *x, uint32_t i)
{
    struct arm *arm = &x->arms[i];
    struct site *s = &x->sites[arm->site];
    struct slice segments[POLICY_DEPTH + 1];
    bool restricting = arm->kind != ARM_ALLOW;
    struct way w = way_add(x, s, restricting, way_of(&arm->pattern));
    for (unsigned d = 0; d < ARRAY_LEN(segments) && d < arm->pattern.n_segments; d++)
        segments[d] = arm->pattern.segments[d].text;
    uint64_t h = policy_way_hash(s->hash, restricting, &w, segments);
    struct bucket *b = bucket_at(x->way_buckets, x->bucket_mask, h);
    b->hash = h;
    arm->next_way = b->first;
    b->first = i;
    s->restricted = s->restricted || restricting;
    if (arm->kind == ARM_DENY)
        s->denied = s->denied || (arm->pattern.any_path && arm->methods == METHODS_ANY);
}

/* An allow, where others look for what overlaps it. */
static void hang(struct policy_index *x, uint32_t i)
{
    struct arm *arm = &x->arms[i];
    struct site *s = &x->sites[arm->site];
    uint64_t h = bucket_root(s);
    while (arm->depth < POLICY_DEPTH && arm->depth < arm->pattern.n_segments &&
           arm->pattern.segments[arm->depth].kind == SEGMENT_LITERAL)
        h = policy_segment_hash(h, arm->pattern.segments[arm->depth++].text);
    struct bucket *b = bucket_at(x->buckets, x->bucket_mask, h);
    b->hash = h;
    arm->next = b->first;
    b->first = i;
    x->tunnels = x->tunnels || arm->entry->rule.tunnel;
    x->needs_injector =
        x->needs_injector || arm->entry->rule.ask || rule_read_again(&arm->entry->rule);
    s->allow_depths |= 1u << arm->depth;
    s->kinds |= policy_rule_kind(&arm->entry->rule);
    arm->next_site = s->first_arm;
    s->first_arm = i;
}

/* What asks before what allows; narrower first; where neither contains the other, the rule that
 * stands first. */
static int by_rank(const void *pa, const void *pb)
{
    const struct arm *a = pa, *b = pb;
    if (a->entry->deny != b->entry->deny)
        return a->entry->deny ? 1 : -1;
    if (a->entry->rule.ask != b->entry->rule.ask)
        return a->entry->rule.ask ? -1 : 1;
    int r = pattern_order(&a->pattern, &b->pattern);
    if (r == 0)
        r = __builtin_popcount(a->methods) - __builtin_popcount(b->methods);
    if (r == 0)
        r = a->entry->rule.index < b->entry->rule.index
                ? -1
                : a->entry->rule.index > b->entry->rule.index;
    return r ? r : strcmp(a->pattern.text, b->pattern.text);
}

int policy_index_readings(struct arena *a, const struct pattern *p,
                          struct pattern ret[ARM_READINGS])
{
    int n = 0;
    ret[n++] = *p;
    for (int reading = PATH_SLASH_BYTE; reading <= PATH_SLASH_SPLIT; reading++)
        for (int trim = 0; trim <= 1; trim++) {
            bool same = false;
            if (pattern_fold(a, p, reading, trim, &ret[n]) < 0)
                return -1;
            for (int i = 0; i < n; i++)
                same = same || pattern_same_path(&ret[i], &ret[n]);
            n += !same;
        }
    return n;
}

/* Could a rule of other terms decide what this arm's rule should have, if the path were spelled in
 * another way? Only then it needs a shadow. */
static bool needs_shadow(const struct policy_index *x, const struct arm *arm)
{
    return arm->kind == ARM_ALLOW && !arm->entry->rule.tunnel &&
           (x->sites[arm->site].mixed || x->subdomains);
}

/* The shadows stand behind the arms that they belong to. */
static int add_shadows(struct policy_index *x, struct arena *a, struct err *err)
{
    uint32_t n = x->n_arms, total = n; /* sites go on showing patterns of the old table */
    for (uint32_t i = 0; i < n; i++)
        total += needs_shadow(x, &x->arms[i]) ? ARM_READINGS : 0;
    if (total == n)
        return 0;
    x->arms = arena_grow(a, x->arms, n, total, sizeof *x->arms);
    for (uint32_t i = 0; i < n; i++) {
        struct pattern readings[ARM_READINGS], *folded;
        if (!needs_shadow(x, &x->arms[i]))
            continue;
        int k = policy_index_readings(a, &x->arms[i].pattern, readings);
        if (k < 0)
            return err_set(err, ERR_PARSE,
                           "%s: '%.200s': more than 64 segments when %%2F is read as a slash",
                           x->arms[i].entry->where, x->arms[i].pattern.text);
        for (int j = 0; j < k; j++) {
            struct arm shadow = x->arms[i];
            shadow.kind = ARM_SHADOW;
            shadow.pattern = readings[j];
            pattern_pack(a, &shadow.pattern);
            x->arms[x->n_arms++] = shadow;
        }
        folded = arena_zalloc(a, 1, sizeof *folded);
        *folded = readings[k > 1 ? 1 : 0]; /* the plainest that is folded */
        x->arms[i].original = folded;
    }
    return 0;
}

static void note_terms(struct site *s, const struct rule_entry *e)
{
    s->mixed = s->mixed || e->read_only || (s->terms && s->terms != e->terms);
    s->terms = e->terms;
}

int policy_index_build(struct policy_index *x, struct arena *a, struct err *err)
{
    size_t size = table_size(x->n_arms);
    x->site_mask = size - 1;
    x->site_table = table_new(a, size);
    x->host_table = table_new(a, size);
    x->sites = arena_zalloc(a, x->n_arms + 1, sizeof *x->sites);
    if (x->n_arms)
        qsort(x->arms, x->n_arms, sizeof *x->arms, by_rank);
    for (uint32_t i = 0; i < x->n_arms; i++) {
        struct arm *arm = &x->arms[i];
        arm->rank = i;
        arm->kind = arm->entry->deny ? ARM_DENY : ARM_ALLOW;
        pattern_pack(a, &arm->pattern);
        arm->site = make_site(x, &arm->pattern);
        if (arm->kind == ARM_ALLOW)
            note_terms(&x->sites[arm->site], arm->entry);
    }
    if (x->mixed && add_shadows(x, a, err) < 0)
        return -1;
    size = table_size(x->n_arms);
    x->bucket_mask = size - 1;
    x->buckets = table_new(a, size);
    x->way_buckets = table_new(a, size);
    x->ways = arena_zalloc(a, x->n_arms * 2 + 1, sizeof *x->ways);
    for (uint32_t i = x->n_arms; i-- > 0;) {
        const struct pattern *p = &x->arms[i].pattern;
        if (x->arms[i].kind == ARM_ALLOW)
            hang(x, i);
        hang_way(x, i);
        if (x->arms[i].kind == ARM_ALLOW)
            policy_taint_add(a, &x->sites[find_host(x, p->host, p->subdomains)],
                             &x->arms[i].entry->rule);
    }
    return 0;
}

static void take(const struct bucket *table, size_t mask, uint64_t h, uint32_t *ret, size_t *n)
{
    size_t i = policy_hash_start(h, mask);
    while (table[i].first != POLICY_NONE && table[i].hash != h)
        i = (i + 1) & mask;
    if (table[i].first != POLICY_NONE)
        ret[(*n)++] = table[i].first;
}

size_t policy_index_probe_arm(const struct policy_index *x, const struct site *s,
                              const struct arm *arm, uint32_t *ret)
{
    uint64_t h = bucket_root(s);
    size_t n = 0;
    for (unsigned d = 0;; d++) {
        if (s->allow_depths & 1u << d)
            take(x->buckets, x->bucket_mask, h, ret, &n);
        if (d == arm->depth)
            return n;
        h = policy_segment_hash(h, arm->pattern.segments[d].text);
    }
}
