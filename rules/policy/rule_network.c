/* `to` of a rule, where its name may lead to that other names may not, and `tunnel`. */
#include "rule.h"

#include <string.h>

enum { TUNNELS_MAX = 256, TO_MAX = 64, TO_BITS_V4 = 8, TO_BITS_V6 = 7 };

static int read_range(const struct node *at, const char *text, struct cidr *ret, struct err *err)
{
    if (cidr_parse(ret, slice_str(text)) < 0)
        return node_fail(at, err,
                         "'%.80s' is not a range of addresses; write 10.0.0.0/8 or fd00::/8, with "
                         "no bit set beyond the prefix",
                         text);
    if (ret->bits < (ret->kind == HOST_IPV4 ? TO_BITS_V4 : TO_BITS_V6))
        return node_fail(at, err,
                         "'%.80s' is too wide; at most a /%d here, better the very addresses", text,
                         ret->kind == HOST_IPV4 ? TO_BITS_V4 : TO_BITS_V6);
    return 0;
}

int rule_to_read(struct arena *a, const struct node *rule, struct rule *ret, struct err *err)
{
    struct node n;
    size_t count;
    if (!node_get(rule, "to", &n))
        return 0;
    if (node_strings(&n, &count, err) < 0)
        return -1;
    if (count > TO_MAX)
        return node_fail(&n, err, "more than %d ranges", TO_MAX);
    struct cidr *list = arena_zalloc(a, count, sizeof *list);
    for (size_t i = 0; i < count; i++) {
        struct node item;
        const char *text;
        if (node_strings_at(&n, i, &item, &text, err) < 0 ||
            read_range(&item, text, &list[i], err) < 0)
            return -1;
    }
    ret->to = list;
    ret->n_to = count;
    return 0;
}

int rule_tunnel_read(const struct node *rule, struct rule *ret, struct err *err)
{
    static const char *const beside[] = {"allow", "tunnel", "to"};
    struct node n;
    if (!node_get(rule, "tunnel", &n))
        return 0;
    if (node_bool(&n, &ret->tunnel, err) < 0)
        return -1;
    if (!ret->tunnel)
        return 0;
    for (void *it = json_object_iter(rule->value); it;
         it = json_object_iter_next(rule->value, it)) {
        size_t i = 0;
        while (i < ARRAY_LEN(beside) && strcmp(json_object_iter_key(it), beside[i]) != 0)
            i++;
        if (i < ARRAY_LEN(beside))
            continue;
        node_get(rule, json_object_iter_key(it), &n);
        return node_fail(&n, err, "'%s' cannot hold in a tunnel, which nobody reads; only 'to' can",
                         n.key);
    }
    return 0;
}

int rule_tunnel_pattern(const struct node *n, const struct pattern *p, struct err *err)
{
    if (p->scheme == SCHEME_HTTPS && !p->subdomains && p->any_path && !strstr(p->text, "/**"))
        return 0;
    return node_fail(n, err,
                     "'%.200s': a tunnel is for one host over TLS: HOST or HOST:PORT, without a "
                     "leading dot and without a path",
                     p->text);
}

/* NULL, or what is wrong with this rule's pattern beside that tunnel. */
static const char *tunnel_clash(const struct rule_entry *e, const struct rule_arm *arm,
                                const struct pattern *tunnel)
{
    const struct pattern *p = &arm->pattern;
    bool all = p->any_path && arm->methods == METHODS_ANY;
    struct authority host = {.scheme = SCHEME_HTTPS, .kind = tunnel->kind, .port = tunnel->port};
    memcpy(host.host, tunnel->host.p, tunnel->host.n);
    if (!pattern_matches_host(p, &host))
        return NULL;
    if (!e->deny && e->rule.credential)
        return "a rule here sends a credential to the same host, and what is asked of it would "
               "pass "
               "unread beside it";
    bool same_port = p->scheme == SCHEME_HTTPS && p->port == tunnel->port;
    if (e->rule.ask && same_port)
        return "a rule here asks before anything goes to that host and port, which a tunnel would "
               "get past";
    if (!same_port || (e->deny && all) || (!e->deny && p->subdomains))
        return NULL;
    return "another rule is about paths or methods of the same host and port, which a tunnel hides";
}

static int check_tunnel(struct rule_entry *const *rules, size_t n, const struct rule_entry *e,
                        struct err *err)
{
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; rules[i] != e && !rules[i]->rule.tunnel && j < rules[i]->n_arms; j++)
            for (size_t k = 0; k < e->n_arms; k++) {
                const char *why = tunnel_clash(rules[i], &rules[i]->arms[j], &e->arms[k].pattern);
                if (why)
                    return err_set(err, ERR_PARSE, "%s: 'tunnel' for %s: %s (%s)", e->where,
                                   e->arms[k].pattern.text, why, rules[i]->where);
            }
    return 0;
}

int rule_tunnels_check(struct rule_entry *const *rules, size_t n, struct err *err)
{
    size_t tunnels = 0;
    for (size_t i = 0; i < n; i++) {
        if (!rules[i]->rule.tunnel)
            continue;
        tunnels += rules[i]->n_arms;
        if (tunnels > TUNNELS_MAX)
            return err_set(err, ERR_LIMIT, "%s: more than %d tunnels", rules[i]->where,
                           TUNNELS_MAX);
        if (check_tunnel(rules, n, rules[i], err) < 0)
            return -1;
    }
    return 0;
}
