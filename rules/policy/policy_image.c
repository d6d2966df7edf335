/* Holds the image of a policy against its bounds, and finds in it the few rules that can match a
 * request without looking at the others. */
#include "policy_image.h"

#include <stddef.h>
#include <string.h>

#include "policy_build.h"
#include "policy_hash.h"

_Static_assert(sizeof(struct image_header) % 8 == 0, "parts begin at multiples of eight");
_Static_assert(sizeof(struct image_arm) == 48 && sizeof(struct image_site) == 48, "no padding");
_Static_assert(sizeof(struct way) == 8, "as in the file");

/* ---- checking ---- */

static const size_t records[IMAGE_PARTS] = {
    [IMAGE_RULES] = sizeof(struct image_rule),
    [IMAGE_ARMS] = sizeof(struct image_arm),
    [IMAGE_SITES] = sizeof(struct image_site),
    [IMAGE_WAYS] = sizeof(struct way),
    [IMAGE_WAY_TABLE] = sizeof(struct image_bucket),
    [IMAGE_SITE_TABLE] = sizeof(struct image_bucket),
    [IMAGE_HOST_TABLE] = sizeof(struct image_bucket),
    [IMAGE_SEGMENTS] = sizeof(struct image_segment),
    [IMAGE_TAINTS] = sizeof(struct image_taint),
    [IMAGE_BUDGETS] = sizeof(struct image_budget),
    [IMAGE_SECRETS] = sizeof(uint32_t),
    [IMAGE_TEXT] = 1,
};

size_t policy_image_record(enum image_part part)
{
    return records[part];
}

uint64_t policy_image_digest(const void *image, size_t n)
{
    const size_t from = offsetof(struct image_header, digest) + sizeof(uint64_t);
    const unsigned char *p = (const unsigned char *)image + from;
    n -= from;
    uint64_t lane[4] = {n, 1, 2, 3}, h = 0xcbf29ce484222325u, word[4];
    for (; n >= sizeof word; p += sizeof word, n -= sizeof word) {
        memcpy(word, p, sizeof word);
        for (size_t i = 0; i < ARRAY_LEN(lane); i++)
            lane[i] = ((lane[i] ^ word[i]) * 0x9e3779b97f4a7c15u) ^ lane[i] >> 32;
    }
    h = policy_mix(h, p, n);
    for (size_t i = 0; i < ARRAY_LEN(lane); i++)
        h = (h ^ lane[i] ^ lane[i] >> 29) * 0x9e3779b97f4a7c15u;
    return h;
}

/* What the tables are held against. */
struct checked {
    struct policy_image *x;
    uint64_t text, segments, taints;
};

static bool is_text(const struct checked *c, uint32_t at)
{
    return at < c->text;
}

static bool is_none_or_below(uint32_t i, uint32_t n)
{
    return i == POLICY_NONE || i < n;
}

/* Chains lead onwards alone, so each ends. */
static bool is_onwards(uint32_t next, uint32_t i, uint32_t n)
{
    return next == POLICY_NONE || (next > i && next < n);
}

static bool has_room(uint64_t at, uint64_t n, uint64_t whole)
{
    return at <= whole && n <= whole - at;
}

static const char *check_rules(const struct checked *c)
{
    const struct policy_image *x = c->x;
    for (uint32_t i = 0; i < x->n_rules; i++) {
        const struct image_rule *r = &x->rules[i];
        if (!is_text(c, r->text) || !has_room(r->json, r->json_n, c->text) ||
            !(r->secret == POLICY_NONE || is_text(c, r->secret)) || r->flags & ~RULE_FLAGS)
            return "a rule";
    }
    for (uint32_t i = 0; i < x->n_budgets; i++)
        if (x->budgets[i].rule >= x->n_rules)
            return "a budget";
    for (uint32_t i = 0; i < x->n_secrets; i++)
        if (!is_text(c, x->secrets[i]))
            return "a secret";
    return NULL;
}

static bool is_path(const struct checked *c, const struct image_path *p)
{
    return p->n <= PATTERN_SEGMENTS && has_room(p->first, p->n, c->segments);
}

static const char *check_arms(const struct checked *c)
{
    const struct policy_image *x = c->x;
    for (uint32_t i = 0; i < x->n_arms; i++) {
        const struct image_arm *a = &x->arms[i];
        if (a->rule >= x->n_rules || a->site >= x->n_sites || a->kind > ARM_SHADOW ||
            (a->kind == ARM_DENY) != !!(x->rules[a->rule].flags & RULE_DENY))
            return "an arm";
        if (!is_path(c, &a->path) || !(a->original.n == IMAGE_NO_PATH || is_path(c, &a->original)))
            return "a path";
        if (!is_onwards(a->next_way, i, x->n_arms) || !is_onwards(a->next_site, i, x->n_arms))
            return "a chain of arms";
    }
    for (uint64_t i = 0; i < c->segments; i++)
        if (x->segments[i].kind > SEGMENT_GLOB ||
            !has_room(x->segments[i].at, x->segments[i].n, c->text))
            return "a segment";
    return NULL;
}

static bool is_short(const struct policy_image *x, uint32_t way)
{
    unsigned n = 0;
    for (; way != POLICY_NONE; way = x->ways[way].next)
        if (++n > POLICY_WAYS_MAX)
            return false;
    return true;
}

static bool is_site(const struct checked *c, const struct image_site *s)
{
    const struct policy_image *x = c->x;
    if (!has_room(s->host, (uint64_t)s->host_n + 1, c->text) || s->host_n >= HOST_TEXT_MAX ||
        x->text[s->host + s->host_n] != 0 || s->scheme < SCHEME_HTTP || s->scheme >= SCHEME_ENDS ||
        s->kind < HOST_NAME || s->kind > HOST_IPV6 || s->subdomains > 1)
        return false;
    return is_none_or_below(s->next_host, x->n_sites) &&
           is_none_or_below(s->first_arm, x->n_arms) &&
           is_none_or_below(s->first_way[0], x->n_ways) &&
           is_none_or_below(s->first_way[1], x->n_ways) &&
           has_room(s->taint, s->n_taints, c->taints);
}

static const char *check_sites(const struct checked *c)
{
    const struct policy_image *x = c->x;
    for (uint32_t i = 0; i < x->n_ways; i++)
        if (x->ways[i].depth > POLICY_DEPTH ||
            !(x->ways[i].next == POLICY_NONE || x->ways[i].next < i))
            return "a way";
    for (uint32_t i = 0; i < x->n_sites; i++)
        if (!is_site(c, &x->sites[i]) || !is_short(x, x->sites[i].first_way[0]) ||
            !is_short(x, x->sites[i].first_way[1]))
            return "a site";
    for (uint64_t i = 0; i < c->taints; i++)
        if (!is_text(c, x->taints[i].secret) || x->taints[i].on_reflect > REFLECT_KILL ||
            !(x->taints[i].user == POLICY_NONE || is_text(c, x->taints[i].user)))
            return "a taint";
    return NULL;
}

static bool is_table(const struct image_bucket *t, size_t mask, uint32_t n)
{
    for (size_t i = 0; i <= mask; i++)
        if (!is_none_or_below(t[i].first, n))
            return false;
    return true;
}

static const char *check_tables(const struct policy_image *x)
{
    return is_table(x->way_table, x->way_mask, x->n_arms) &&
                   is_table(x->site_table, x->site_mask, x->n_sites) &&
                   is_table(x->host_table, x->site_mask, x->n_sites)
               ? NULL
               : "a table";
}

static bool is_power(uint32_t n)
{
    return n >= 8 && (n & (n - 1)) == 0;
}

/* Where the parts lie. */
static const char *find_parts(struct checked *c)
{
    struct policy_image *x = c->x;
    const struct image_header *h = x->head;
    const unsigned char *at[IMAGE_PARTS];
    for (unsigned i = 0; i < IMAGE_PARTS; i++) {
        if (h->part[i].at % 8 || h->part[i].at < sizeof *h ||
            !has_room(h->part[i].at, (uint64_t)h->part[i].n * records[i], h->size))
            return "a part";
        at[i] = x->base + h->part[i].at;
    }
    uint32_t ways = h->part[IMAGE_WAY_TABLE].n, sites = h->part[IMAGE_SITE_TABLE].n;
    if (!is_power(ways) || !is_power(sites) || h->part[IMAGE_HOST_TABLE].n != sites ||
        h->part[IMAGE_RULES].n > POLICY_RULES_MAX)
        return "the size of a table";
    x->rules = (const void *)at[IMAGE_RULES];
    x->arms = (const void *)at[IMAGE_ARMS];
    x->sites = (const void *)at[IMAGE_SITES];
    x->ways = (const void *)at[IMAGE_WAYS];
    x->way_table = (const void *)at[IMAGE_WAY_TABLE];
    x->site_table = (const void *)at[IMAGE_SITE_TABLE];
    x->host_table = (const void *)at[IMAGE_HOST_TABLE];
    x->segments = (const void *)at[IMAGE_SEGMENTS];
    x->taints = (const void *)at[IMAGE_TAINTS];
    x->budgets = (const void *)at[IMAGE_BUDGETS];
    x->secrets = (const void *)at[IMAGE_SECRETS];
    x->text = (const char *)at[IMAGE_TEXT];
    x->n_rules = h->part[IMAGE_RULES].n;
    x->n_arms = h->part[IMAGE_ARMS].n;
    x->n_sites = h->part[IMAGE_SITES].n;
    x->n_ways = h->part[IMAGE_WAYS].n;
    x->n_budgets = h->part[IMAGE_BUDGETS].n;
    x->n_secrets = h->part[IMAGE_SECRETS].n;
    x->way_mask = ways - 1;
    x->site_mask = sites - 1;
    c->segments = h->part[IMAGE_SEGMENTS].n;
    c->taints = h->part[IMAGE_TAINTS].n;
    c->text = h->part[IMAGE_TEXT].n;
    return c->text == 0 || x->text[c->text - 1] ? "the texts" : NULL;
}

static const char *check_header(const struct image_header *h, size_t n)
{
    if (n < sizeof *h || memcmp(h->magic, POLICY_IMAGE_MAGIC, sizeof h->magic) != 0)
        return "its first bytes";
    if (h->version != POLICY_IMAGE_VERSION)
        return "its version";
    if (n > POLICY_IMAGE_MAX || h->size != n || h->flags & ~(uint32_t)IMAGE_FLAGS)
        return "its header";
    return policy_image_digest(h, n) == h->digest ? NULL : "its digest";
}

int policy_image_check(const void *p, size_t n, struct policy_image *ret, struct err *err)
{
    *ret = (struct policy_image){.base = p, .head = p};
    struct checked c = {.x = ret};
    const char *bad = check_header(p, n);
    if (bad == NULL)
        bad = find_parts(&c);
    if (bad == NULL && !(is_text(&c, ret->head->name) && is_text(&c, ret->head->extras)))
        bad = "its name";
    if (bad == NULL)
        bad = check_rules(&c);
    if (bad == NULL)
        bad = check_arms(&c);
    if (bad == NULL)
        bad = check_sites(&c);
    if (bad == NULL)
        bad = check_tables(ret);
    return bad ? err_set(err, ERR_PARSE, "the image of a policy is damaged: %s", bad) : 0;
}

/* ---- patterns ---- */

void policy_image_pattern(const struct policy_image *x, const struct image_arm *a,
                          const struct image_path *path, struct segment *segments,
                          struct pattern *ret)
{
    const struct image_site *s = &x->sites[a->site];
    *ret = (struct pattern){.text = x->text + x->rules[a->rule].text,
                            .scheme = (enum scheme)s->scheme,
                            .port = s->port,
                            .subdomains = s->subdomains,
                            .kind = (enum host_kind)s->kind,
                            .host = {x->text + s->host, s->host_n},
                            .tail = path->tail,
                            .n_segments = path->n,
                            .segments = segments};
    for (unsigned i = 0; i < path->n; i++) {
        const struct image_segment *g = &x->segments[path->first + i];
        segments[i] = (struct segment){{x->text + g->at, g->n}, (enum segment_kind)g->kind};
    }
}

bool policy_image_matches(const struct policy_image *x, const struct image_arm *a,
                          const struct authority *to, struct slice path)
{
    struct segment segments[PATTERN_SEGMENTS];
    struct pattern p;
    policy_image_pattern(x, a, &a->path, segments, &p);
    return pattern_matches(&p, to, path);
}

/* ---- finding ---- */

static bool is_host(const struct policy_image *x, const struct image_site *s, struct slice host,
                    bool subdomains)
{
    return s->subdomains == subdomains &&
           slice_eq((struct slice){x->text + s->host, s->host_n}, host);
}

/* What stands in a table under this hash and after `from` steps from its place; its step. The walk
 * ends at a free bucket, or when all were seen. */
static uint32_t table_next(const struct image_bucket *t, size_t mask, uint64_t h, size_t *step)
{
    while (*step <= mask) {
        const struct image_bucket *b = &t[(policy_hash_start(h, mask) + (*step)++) & mask];
        if (b->first == POLICY_NONE)
            break;
        if (b->hash == h)
            return b->first;
    }
    return POLICY_NONE;
}

static const struct image_site *find_site(const struct policy_image *x, struct slice host,
                                          bool subdomains, const struct authority *a)
{
    uint64_t h = policy_site_hash(policy_host_hash(host, subdomains), a->scheme, a->port);
    size_t step = 0;
    uint32_t i;
    while ((i = table_next(x->site_table, x->site_mask, h, &step)) != POLICY_NONE) {
        const struct image_site *s = &x->sites[i];
        if (s->scheme == a->scheme && s->port == a->port && is_host(x, s, host, subdomains))
            return s;
    }
    return NULL;
}

static const struct image_site *find_host(const struct policy_image *x, struct slice host,
                                          bool subdomains)
{
    uint64_t h = policy_host_hash(host, subdomains);
    size_t step = 0;
    uint32_t i;
    while ((i = table_next(x->host_table, x->site_mask, h, &step)) != POLICY_NONE)
        if (is_host(x, &x->sites[i], host, subdomains))
            return &x->sites[i];
    return NULL;
}

/* The host itself, then each parent domain with its dot. */
static size_t walk(const struct policy_image *x, const struct authority *a, bool any_port,
                   const struct image_site **ret)
{
    struct slice host = slice_str(a->host);
    size_t n = 0;
    bool subdomains = false;
    while (n < POLICY_SITES_MAX) {
        const struct image_site *s =
            any_port ? find_host(x, host, subdomains) : find_site(x, host, subdomains, a);
        if (s && s->kind == a->kind)
            ret[n++] = s;
        if (!(x->head->flags & IMAGE_SUBDOMAINS) || a->kind != HOST_NAME)
            break;
        ssize_t dot = slice_find(host, '.');
        if (dot < 0)
            break;
        host = (struct slice){host.p + dot + 1, host.n - (size_t)dot - 1};
        subdomains = true;
    }
    return n;
}

size_t policy_image_sites(const struct policy_image *x, const struct authority *a,
                          const struct image_site *ret[POLICY_SITES_MAX])
{
    return walk(x, a, false, ret);
}

size_t policy_image_hosts(const struct policy_image *x, const struct authority *a,
                          const struct image_site *ret[POLICY_SITES_MAX])
{
    return walk(x, a, true, ret);
}

/* What stands behind each of the first slashes; how many. */
static size_t split(struct slice path, struct slice segments[POLICY_DEPTH + 1])
{
    size_t n = 0, i = 0;
    while (n < POLICY_DEPTH + 1 && i < path.n) {
        size_t from = ++i;
        while (i < path.n && path.p[i] != '/')
            i++;
        segments[n++] = (struct slice){path.p + from, i - from};
    }
    return n;
}

size_t policy_image_probe(const struct policy_image *x, const struct image_site *s,
                          bool restricting, struct slice path, uint32_t ret[POLICY_WAYS_MAX])
{
    struct slice segments[POLICY_DEPTH + 1];
    size_t n = 0, have = split(path, segments);
    for (uint32_t i = s->first_way[restricting]; i != POLICY_NONE; i = x->ways[i].next) {
        const struct way *w = &x->ways[i];
        if (w->depth > have ||
            (w->prefix && (w->depth == have || segments[w->depth].n < w->prefix)))
            continue;
        size_t step = 0;
        uint32_t first = table_next(x->way_table, x->way_mask,
                                    policy_way_hash(s->hash, restricting, w, segments), &step);
        if (first != POLICY_NONE)
            ret[n++] = first;
    }
    return n;
}
