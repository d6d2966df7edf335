/* Finds the few rules that can match a request without looking at the others. Internal to rules/.
 *
 * A site is one scheme, port and host (or leading-dot host) that rules name. Below it, arms hang in
 * buckets twice. For decisions by their way: what is given of their first POLICY_DEPTH segments,
 * past stars, and of one more the bytes before its star. A request probes its host and each of its
 * parent domains, and there only the ways that arms use. To find arms that overlap, by their
 * leading literal segments alone. What a bucket holds is matched whole: a bucket too many costs
 * time, nothing else. */
#ifndef DURWARD_POLICY_INDEX_H
#define DURWARD_POLICY_INDEX_H

#include "rule.h"

enum { POLICY_DEPTH = 4, POLICY_SITES_MAX = 130, POLICY_WAYS_MAX = 64 };
#define POLICY_NONE UINT32_MAX

struct arm {
    const struct rule_entry *entry;
    struct pattern pattern;         /* of a deny: folded */
    const struct pattern *original; /* as written */
    uint32_t methods;
    uint32_t rank;      /* of an allow: a narrower one has a smaller number */
    uint32_t next;      /* in the bucket of its literal segments, by rank */
    uint32_t next_way;  /* in the bucket of its way, by rank */
    uint32_t next_site; /* arm of the same site */
    uint32_t site;
    bool deny;
    unsigned depth; /* literal leading segments that its bucket is made of */
};

/* Which of the leading segments are given: `depth` of them but for those in `stars`, and `prefix`
 * bytes of the next. */
struct way {
    uint8_t depth, stars, prefix;
    uint32_t next; /* of the same site, allow or deny */
};

struct site {
    const struct pattern *pattern; /* its host, scheme, port */
    uint64_t hash;
    uint32_t next_host;                 /* another scheme or port of the same host */
    uint32_t first_arm;                 /* allow arms, by next_site */
    unsigned allow_depths, deny_depths; /* bit d: some arm has depth d */
    uint32_t first_way[2];              /* of allow arms, of deny arms */
    unsigned n_ways[2];
    unsigned kinds; /* POLICY_HOST_* */
    bool denied;    /* a deny covers all of it */
};

struct bucket {
    uint64_t hash;
    uint32_t first; /* POLICY_NONE: free */
};

struct policy_index {
    struct arm *arms;
    uint32_t n_arms;
    struct site *sites;
    uint32_t n_sites;
    struct way *ways;
    uint32_t n_ways;
    struct bucket *buckets, *way_buckets, *site_table, *host_table;
    size_t bucket_mask, site_mask;
    bool subdomains, denies, tunnels, asks;
};

const struct policy_index *policy_index_of(const struct policy *p); /* policy.c */
/* Ranks the arms, makes sites and buckets. */
void policy_index_build(struct policy_index *x, struct arena *a);
/* Sites that name this host at this scheme and port, its own and its parents': how many. */
size_t policy_index_sites(const struct policy_index *x, const struct authority *a,
                          const struct site **ret);
/* The first site of each host that names this one, whatever the scheme and port. */
size_t policy_index_hosts(const struct policy_index *x, const struct authority *a,
                          const struct site **ret);
/* Buckets of this site that a path can be in: first arms by next_way, at most POLICY_WAYS_MAX. */
size_t policy_index_probe(const struct policy_index *x, const struct site *s, bool deny,
                          struct slice path, uint32_t *ret);
/* The same for a pattern's leading literal segments, to find those that it may overlap. */
size_t policy_index_probe_arm(const struct policy_index *x, const struct site *s,
                              const struct arm *arm, uint32_t *ret);

#endif
