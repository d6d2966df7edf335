/* The one decision function, and what else is asked of a compiled policy. */
#include <stdlib.h>
#include <string.h>

#include "path.h"
#include "policy.h"
#include "policy_build.h"
#include "policy_index.h"

/* The first matching deny of one site, in one reading of the folded path. */
static const struct arm *deny_at(const struct policy_index *x, const struct site *s,
                                 const struct policy_request *r, struct slice folded,
                                 uint32_t method)
{
    uint32_t first[POLICY_WAYS_MAX];
    const struct arm *best = NULL;
    size_t n = policy_index_probe(x, s, true, folded, first);
    for (size_t i = 0; i < n; i++)
        for (uint32_t j = first[i]; j != POLICY_NONE; j = x->arms[j].next_way) {
            const struct arm *a = &x->arms[j];
            if (!a->deny || !(a->methods & method) ||
                !pattern_matches(&a->pattern, r->authority, folded))
                continue;
            if (best == NULL || a->entry->rule.index < best->entry->rule.index)
                best = a;
        }
    return best;
}

/* The same of all sites, and *best. */
static const struct arm *deny_in(const struct policy_index *x, const struct site *const *sites,
                                 size_t n, const struct policy_request *r, struct slice folded,
                                 uint32_t method, const struct arm *best)
{
    for (size_t i = 0; i < n; i++) {
        const struct arm *a =
            sites[i]->deny_depths ? deny_at(x, sites[i], r, folded, method) : NULL;
        if (a && (best == NULL || a->entry->rule.index < best->entry->rule.index))
            best = a;
    }
    return best;
}

/* 1 a deny matches (*ret), 0 none does, -1 it cannot be told. An origin may read %2F as a byte or
 * as a slash, and ";…" as bytes or as parameters of no account: a deny holds in each reading. */
static int find_deny(const struct policy_index *x, const struct site *const *sites, size_t n,
                     const struct policy_request *r, uint32_t method, const struct rule **ret)
{
    enum { ON_STACK = 2048 };
    char small[ON_STACK];
    const struct arm *best = NULL;
    bool any = false;
    for (size_t i = 0; i < n; i++)
        any = any || sites[i]->deny_depths;
    if (!any)
        return 0;
    char *to = r->path.n > sizeof small ? malloc(r->path.n) : small;
    if (to == NULL)
        return -1;
    bool two = slice_find(r->path, '%') >= 0;
    for (int reading = PATH_SLASH_BYTE; reading <= PATH_SLASH_SPLIT; reading++) {
        struct slice folded = {to, path_fold(r->path, reading, to)};
        best = deny_in(x, sites, n, r, folded, method, best);
        if (slice_find(folded, ';') >= 0) {
            folded.n = path_drop_parameters(to, folded.n);
            best = deny_in(x, sites, n, r, folded, method, best);
        }
        if (!two)
            break;
    }
    if (to != small)
        free(to);
    *ret = best ? &best->entry->rule : NULL;
    return best != NULL;
}

/* The narrowest ask that matches, else the narrowest allow; where only the method is wrong, *other
 * is that. */
static const struct arm *find_allow(const struct policy_index *x, const struct site *const *sites,
                                    size_t n, const struct policy_request *r, uint32_t method,
                                    const struct arm **other)
{
    uint32_t first[POLICY_WAYS_MAX];
    const struct arm *best = NULL;
    *other = NULL;
    for (size_t i = 0; i < n; i++) {
        size_t buckets = policy_index_probe(x, sites[i], false, r->path, first);
        for (size_t b = 0; b < buckets; b++)
            for (uint32_t j = first[b]; j != POLICY_NONE; j = x->arms[j].next_way) {
                const struct arm *a = &x->arms[j], **to = a->methods & method ? &best : other;
                if (*to && (*to)->rank < a->rank)
                    break; /* the rest of the bucket is wider still */
                if (!a->deny && pattern_matches(&a->pattern, r->authority, r->path))
                    *to = a;
            }
    }
    return best;
}

void policy_decide(const struct policy *p, const struct policy_request *r, struct decision *ret)
{
    const struct policy_index *x = policy_index_of(p);
    const struct site *sites[POLICY_SITES_MAX];
    const struct arm *other;
    const char *why;
    uint32_t bit = method_bit(r->method), method = bit ? bit : METHODS_ANY & ~METHODS_ALL;
    *ret = (struct decision){VERDICT_DENY, NULL, "no_rule"};
    size_t n = policy_index_sites(x, r->authority, sites);
    if (n == 0)
        return;
    if (path_check(r->path, &why) < 0) {
        ret->code = "path_ambiguous";
        return;
    }
    int denied = find_deny(x, sites, n, r, method, &ret->rule);
    if (denied) {
        ret->code = denied > 0 ? "denied_by_rule" : "no_rule";
        return;
    }
    const struct arm *a = find_allow(x, sites, n, r, method, &other);
    if (a == NULL && other == NULL)
        return;
    ret->verdict = a == NULL ? VERDICT_DENY : a->entry->rule.ask ? VERDICT_ASK : VERDICT_ALLOW;
    ret->rule = a ? &a->entry->rule : &other->entry->rule;
    ret->code = a ? "ok" : "method";
}

bool policy_grants(const struct policy *p, const struct policy_request *r, const char *secret)
{
    struct decision d;
    policy_decide(p, r, &d);
    return d.verdict != VERDICT_DENY && d.rule->credential &&
           (r->authority->scheme == SCHEME_HTTPS || d.rule->allow_plaintext) &&
           strcmp(d.rule->credential->secret, secret) == 0;
}

unsigned policy_host(const struct policy *p, const struct authority *a)
{
    const struct site *sites[POLICY_SITES_MAX];
    size_t n = policy_index_sites(policy_index_of(p), a, sites);
    unsigned kinds = 0;
    for (size_t i = 0; i < n; i++) {
        if (sites[i]->denied)
            return 0;
        kinds |= sites[i]->kinds;
    }
    return kinds;
}

bool policy_has_tunnels(const struct policy *p)
{
    return policy_index_of(p)->tunnels;
}

bool policy_asks(const struct policy *p)
{
    return policy_index_of(p)->asks;
}

const struct rule *policy_tunnel(const struct policy *p, const struct authority *a)
{
    const struct policy_index *x = policy_index_of(p);
    const struct site *sites[POLICY_SITES_MAX];
    if (!x->tunnels || policy_host(p, a) == 0)
        return NULL;
    size_t n = policy_index_sites(x, a, sites);
    for (size_t i = 0; i < n; i++)
        for (uint32_t j = sites[i]->first_arm; j != POLICY_NONE; j = x->arms[j].next_site)
            if (!x->arms[j].deny && x->arms[j].entry->rule.tunnel)
                return &x->arms[j].entry->rule;
    return NULL;
}

static bool rule_leads_to(const struct rule *r, unsigned kinds, const struct authority *at)
{
    if (!(kinds & policy_rule_kind(r)))
        return false;
    for (size_t i = 0; i < r->n_to; i++)
        if (cidr_contains(&r->to[i], at))
            return true;
    return false;
}

bool policy_leads_to(const struct policy *p, const struct authority *a, unsigned kinds,
                     const struct authority *at)
{
    const struct policy_index *x = policy_index_of(p);
    const struct site *sites[POLICY_SITES_MAX];
    size_t n = policy_index_sites(x, a, sites);
    for (size_t i = 0; i < n; i++)
        for (uint32_t j = sites[i]->first_arm; j != POLICY_NONE; j = x->arms[j].next_site)
            if (!x->arms[j].deny && rule_leads_to(&x->arms[j].entry->rule, kinds, at))
                return true;
    return false;
}

bool policy_names_host(const struct policy *p, const struct authority *host)
{
    const struct policy_index *x = policy_index_of(p);
    const struct site *sites[POLICY_SITES_MAX];
    size_t n = policy_index_hosts(x, host, sites);
    for (size_t i = 0; i < n; i++)
        for (const struct site *s = sites[i];; s = &x->sites[s->next_host]) {
            struct authority at = *host;
            at.scheme = s->pattern->scheme;
            at.port = s->pattern->port;
            if (s->kinds && policy_host(p, &at))
                return true;
            if (s->next_host == POLICY_NONE)
                break;
        }
    return false;
}

size_t policy_ports(const struct policy *p, uint16_t *ports, size_t max)
{
    const struct policy_index *x = policy_index_of(p);
    unsigned char seen[65536 / 8] = {0};
    size_t n = 0;
    for (uint32_t i = 0; i < x->n_sites; i++) {
        uint16_t port = x->sites[i].pattern->port;
        if (port == 80 || port == 443 || !x->sites[i].kinds || seen[port / 8] & 1u << port % 8)
            continue;
        seen[port / 8] = (unsigned char)(seen[port / 8] | 1u << port % 8);
        if (ports && n < max)
            ports[n] = port;
        n++;
    }
    return n;
}
