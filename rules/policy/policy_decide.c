/* The one decision function, and what else is asked of a compiled policy. */
#include <stddef.h>
#include <string.h>

#include "cloud_identity.h"
#include "mcp_host.h"
#include "path.h"
#include "policy.h"
#include "policy_private.h"

/* A decision in the making. */
struct weighing {
    const struct policy *p;
    const struct policy_image *x;
    const struct policy_request *r;
    uint32_t method;
    const struct image_site *sites[POLICY_SITES_MAX];
    size_t n_sites;
    struct path_readings readings;
    const struct image_arm *allow; /* by the plain reading; NULL: none */
    const struct image_arm *other; /* the same, were the method another one */
    const struct image_arm *deny;
    const struct image_arm *respelled, *read_only; /* what a wider rule must not pass over */
    bool methods_matter;
};

/* An MCP server of ours is named itself or not at all, and at its own scheme and port: a rule for
 * a whole domain of the network's does not mean it. */
static bool may_allow(const struct image_site *s, const struct authority *a)
{
    return !mcp_host_is(a) || (!s->subdomains && a->scheme == SCHEME_HTTP && a->port == 80);
}

/* The narrowest ask that matches, else the narrowest allow; where only the method is wrong, other
 * is that. */
static void find_allow(struct weighing *w)
{
    uint32_t first[POLICY_WAYS_MAX];
    struct slice path = w->readings.text[0];
    for (size_t i = 0; i < w->n_sites; i++) {
        if (!may_allow(w->sites[i], w->r->authority))
            continue;
        size_t buckets = policy_image_probe(w->x, w->sites[i], false, path, first);
        for (size_t b = 0; b < buckets; b++)
            for (uint32_t j = first[b]; j != POLICY_NONE; j = w->x->arms[j].next_way) {
                const struct image_arm *a = &w->x->arms[j];
                const struct image_arm **to = a->methods & w->method ? &w->allow : &w->other;
                if (w->allow && w->allow->rank < a->rank)
                    break; /* the rest of the bucket is wider still */
                if (*to && (*to)->rank < a->rank)
                    continue;
                if (policy_image_matches(w->x, a, w->r->authority, path))
                    *to = a;
            }
    }
}

static void meet_deny(struct weighing *w, const struct image_arm *d)
{
    if (!(d->methods & w->method))
        w->methods_matter = true;
    else if (w->deny == NULL || d->rule < w->deny->rule)
        w->deny = d;
}

static const struct image_rule *rule_of(const struct weighing *w, const struct image_arm *a)
{
    return &w->x->rules[a->rule];
}

/* The rule that decides is no wider than this shadow's, once both are folded: neither in its paths
 * nor, where those are the same, in its methods. */
static bool is_no_wider(const struct weighing *w, const struct image_arm *a,
                        const struct image_arm *s)
{
    struct segment segments[2][PATTERN_SEGMENTS];
    struct pattern shadow, folded;
    if (a->original.n == IMAGE_NO_PATH || (rule_of(w, s)->flags ^ rule_of(w, a)->flags) & RULE_ASK)
        return false;
    policy_image_pattern(w->x, s, &s->path, segments[0], &shadow);
    policy_image_pattern(w->x, a, &a->original, segments[1], &folded);
    if (!pattern_contains(&shadow, &folded))
        return false;
    bool fewer_methods = (s->methods & ~a->methods) == 0 && s->methods != a->methods;
    return !fewer_methods || !pattern_contains(&folded, &shadow);
}

/* The shadow of a rule that another reading of the path meets, or another method. It counts where
 * its rule would go first and says something else. */
static void meet_shadow(struct weighing *w, const struct image_arm *s)
{
    const struct image_arm *a = w->allow;
    if (a == NULL || s->rule == a->rule || s->rank > a->rank || is_no_wider(w, a, s))
        return;
    bool same = rule_of(w, s)->terms == rule_of(w, a)->terms;
    if (s->methods & w->method) {
        if (!same && (w->respelled == NULL || s->rank < w->respelled->rank))
            w->respelled = s;
        return;
    }
    w->methods_matter = w->methods_matter || !same;
    if (rule_of(w, s)->flags & RULE_READ_ONLY &&
        (w->read_only == NULL || s->rank < w->read_only->rank))
        w->read_only = s;
}

/* All that restricts, at one site and in one reading. */
static void find_restrictions(struct weighing *w, const struct image_site *s, struct slice path)
{
    uint32_t first[POLICY_WAYS_MAX];
    size_t n = policy_image_probe(w->x, s, true, path, first);
    for (size_t i = 0; i < n; i++)
        for (uint32_t j = first[i]; j != POLICY_NONE; j = w->x->arms[j].next_way) {
            const struct image_arm *a = &w->x->arms[j];
            if (policy_image_matches(w->x, a, w->r->authority, path))
                (a->kind == ARM_DENY ? meet_deny : meet_shadow)(w, a);
        }
}

/* What the rule decides. One that cannot be read decides nothing. */
static void conclude_by(const struct weighing *w, const struct image_arm *a, enum verdict verdict,
                        const char *code, struct decision *ret)
{
    const struct rule *r = policy_rule(w->p, a->rule);
    if (r)
        *ret = (struct decision){verdict, r, code, ret->methods_matter};
}

static void conclude(const struct weighing *w, struct decision *ret)
{
    const struct image_arm *a = w->allow;
    if (w->deny)
        conclude_by(w, w->deny, VERDICT_DENY, "denied_by_rule", ret);
    else if (a && w->respelled)
        conclude_by(w, w->respelled, VERDICT_DENY, "respelled", ret);
    else if (a && w->read_only)
        conclude_by(w, w->read_only, VERDICT_DENY, "method", ret);
    else {
        ret->methods_matter = w->methods_matter || (a && rule_of(w, a)->flags & RULE_METHOD_SCOPED);
        if (a)
            conclude_by(w, a, rule_of(w, a)->flags & RULE_ASK ? VERDICT_ASK : VERDICT_ALLOW, "ok",
                        ret);
        else if (w->other)
            conclude_by(w, w->other, VERDICT_DENY, "method", ret);
    }
}

void policy_decide(const struct policy *p, const struct policy_request *r, struct decision *ret)
{
    struct weighing w;
    const char *why;
    bool restricted = false;
    uint32_t bit =
        scheme_is_http(r->authority->scheme) ? method_bit(r->method) : verb_bit(r->method);
    memset(&w, 0, offsetof(struct weighing, sites));
    w.allow = w.other = w.deny = w.respelled = w.read_only = NULL;
    w.methods_matter = false;
    w.p = p;
    w.x = policy_image_of(p);
    w.r = r;
    w.method = bit ? bit : METHODS_ANY & ~METHODS_ALL & ~VERBS_ALL;
    *ret = (struct decision){VERDICT_DENY, NULL, "no_rule", false};
    w.n_sites = policy_image_sites(w.x, r->authority, w.sites);
    if (w.n_sites == 0)
        return;
    bool http = scheme_is_http(r->authority->scheme); /* a repository's path has one spelling */
    if ((http ? path_check_asked : path_check)(r->path, &why) < 0) {
        ret->code = "path_ambiguous";
        return;
    }
    for (size_t i = 0; i < w.n_sites; i++)
        restricted = restricted || w.sites[i]->restrains & IMAGE_RESTRICTED;
    if (path_readings(r->path, restricted, &w.readings) < 0)
        return; /* memory is out */
    find_allow(&w);
    for (size_t i = 0; restricted && i < w.n_sites; i++)
        for (size_t k = 0; w.sites[i]->restrains & IMAGE_RESTRICTED && k < w.readings.n; k++)
            find_restrictions(&w, w.sites[i], w.readings.text[k]);
    conclude(&w, ret);
    path_readings_free(&w.readings);
}

bool policy_injects(const struct policy *p, const struct policy_request *r, const char *secret)
{
    struct decision d;
    policy_decide(p, r, &d);
    return d.verdict != VERDICT_DENY && d.rule->credential &&
           (r->authority->scheme == SCHEME_HTTPS || d.rule->allow_plaintext) &&
           strcmp(d.rule->credential->secret, secret) == 0;
}

unsigned policy_host(const struct policy *p, const struct authority *a)
{
    const struct image_site *sites[POLICY_SITES_MAX];
    size_t n = policy_image_sites(policy_image_of(p), a, sites);
    unsigned kinds = 0;
    for (size_t i = 0; i < n; i++) {
        if (sites[i]->restrains & IMAGE_DENIED)
            return 0;
        if (may_allow(sites[i], a))
            kinds |= sites[i]->kinds;
    }
    return kinds;
}

bool policy_has_tunnels(const struct policy *p)
{
    return policy_image_of(p)->head->flags & IMAGE_TUNNELS;
}

bool policy_needs_injector(const struct policy *p)
{
    return policy_image_of(p)->head->flags & IMAGE_NEEDS_INJECTOR;
}

const struct rule *policy_tunnel(const struct policy *p, const struct authority *a)
{
    const struct policy_image *x = policy_image_of(p);
    const struct image_site *sites[POLICY_SITES_MAX];
    if (!policy_has_tunnels(p) || policy_host(p, a) == 0)
        return NULL;
    size_t n = policy_image_sites(x, a, sites);
    for (size_t i = 0; i < n; i++)
        for (uint32_t j = sites[i]->first_arm; j != POLICY_NONE; j = x->arms[j].next_site)
            if (x->rules[x->arms[j].rule].flags & RULE_TUNNEL)
                return policy_rule(p, x->arms[j].rule);
    return NULL;
}

static bool rule_leads_to(const struct policy *p, uint32_t i, unsigned kinds,
                          const struct authority *at)
{
    const struct image_rule *record = &policy_image_of(p)->rules[i];
    if (!(record->flags & RULE_TO) || !(kinds & policy_record_kind(record)))
        return false;
    const struct rule *r = policy_rule(p, i);
    for (size_t k = 0; r && k < r->n_to; k++)
        if (cidr_contains(&r->to[k], at))
            return true;
    return false;
}

bool policy_leads_to(const struct policy *p, const struct authority *a, unsigned kinds,
                     const struct authority *at)
{
    const struct policy_image *x = policy_image_of(p);
    const struct image_site *sites[POLICY_SITES_MAX];
    size_t n = policy_image_sites(x, a, sites);
    for (size_t i = 0; i < n; i++)
        for (uint32_t j = sites[i]->first_arm; j != POLICY_NONE; j = x->arms[j].next_site)
            if (rule_leads_to(p, x->arms[j].rule, kinds, at))
                return true;
    return false;
}

struct slice policy_only_segment(const struct policy *p, const struct authority *a)
{
    const struct policy_image *x = policy_image_of(p);
    const struct image_site *sites[POLICY_SITES_MAX];
    struct slice only = SLICE("");
    size_t n = policy_image_sites(x, a, sites);
    for (size_t i = 0; i < n; i++)
        for (uint32_t j = sites[i]->first_arm; j != POLICY_NONE; j = x->arms[j].next_site) {
            const struct image_path *path = &x->arms[j].path;
            const struct image_segment *g = &x->segments[path->first];
            struct slice s = {x->text + g->at, g->n};
            if (path->tail || path->n != 1 || g->kind != SEGMENT_LITERAL ||
                (only.n > 0 && !slice_eq(only, s)))
                return SLICE("");
            only = s;
        }
    return only;
}

static bool names_host(const struct policy *p, const struct authority *host, bool tls)
{
    const struct policy_image *x = policy_image_of(p);
    const struct image_site *sites[POLICY_SITES_MAX];
    size_t n = policy_image_hosts(x, host, sites);
    for (size_t i = 0; i < n; i++) {
        const struct image_site *s = sites[i];
        for (uint32_t k = 0; k < x->n_sites; k++) { /* a chain that has no end is left, too */
            struct authority at = *host;
            at.scheme = (enum scheme)s->scheme;
            at.port = s->port;
            if (s->kinds && (!tls || at.scheme == SCHEME_HTTPS) && policy_host(p, &at))
                return true;
            if (s->next_host == POLICY_NONE)
                break;
            s = &x->sites[s->next_host];
        }
    }
    return false;
}

bool policy_names_host(const struct policy *p, const struct authority *host)
{
    return names_host(p, host, false) || cloud_identity_names(policy_identity(p), host->host);
}

bool policy_serves_tls(const struct policy *p, const struct authority *host)
{
    return names_host(p, host, true);
}

bool policy_speaks(const struct policy *p, enum scheme scheme)
{
    const struct policy_image *x = policy_image_of(p);
    for (uint32_t i = 0; i < x->n_sites; i++)
        if (x->sites[i].kinds && x->sites[i].scheme == scheme)
            return true;
    return false;
}

size_t policy_ports(const struct policy *p, uint16_t *ports, size_t max)
{
    const struct policy_image *x = policy_image_of(p);
    unsigned char seen[65536 / 8] = {0};
    size_t n = 0;
    for (uint32_t i = 0; i < x->n_sites; i++) {
        uint16_t port = x->sites[i].port;
        if (port == 80 || port == 443 || !x->sites[i].kinds || seen[port / 8] & 1u << port % 8)
            continue;
        seen[port / 8] = (unsigned char)(seen[port / 8] | 1u << port % 8);
        if (ports && n < max)
            ports[n] = port;
        n++;
    }
    return n;
}
