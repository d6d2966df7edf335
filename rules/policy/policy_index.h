/* How a policy is laid out so that the few rules that can match a request are found without looking
 * at the others: as it is built. What is asked is its image (policy_image.h). Internal to rules/.
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

/* A shadow is an allow or ask once more, folded as a deny is: what it asks of a request must hold
 * however the request is spelled. */
enum arm_kind { ARM_ALLOW = 0, ARM_DENY, ARM_SHADOW };

struct arm {
    const struct rule_entry *entry;
    struct pattern pattern;         /* of a deny or shadow: in one of its readings */
    const struct pattern *original; /* of a deny: as written; of an allow: folded, or NULL when no
                                     * shadow can meet it */
    uint32_t methods;
    uint32_t rank;      /* of an allow or its shadow: a narrower one has a smaller number */
    uint32_t next;      /* in the bucket of its literal segments, by rank */
    uint32_t next_way;  /* in the bucket of its way, by rank */
    uint32_t next_site; /* arm of the same site */
    uint32_t site;
    enum arm_kind kind;
    unsigned depth; /* literal leading segments that its bucket is made of */
};

/* The readings in which a restriction's pattern is hung: as written, and folded four ways. */
enum { ARM_READINGS = 5 };

/* Which of the leading segments are given: `depth` of them but for those in `stars`, and `prefix`
 * bytes of the next. */
struct way {
    uint8_t depth, stars, prefix;
    uint32_t next; /* of the same site, allow or deny */
};

struct site {
    const struct pattern *pattern; /* its host, scheme, port */
    uint64_t hash;
    uint32_t next_host;    /* another scheme or port of the same host */
    uint32_t first_arm;    /* allow arms, by next_site */
    unsigned allow_depths; /* bit d: some allow arm has depth d */
    uint32_t first_way[2]; /* of allow arms, of what restricts */
    unsigned n_ways[2];
    unsigned kinds;      /* POLICY_HOST_* */
    unsigned terms;      /* of its allow arms, while they are all the same */
    bool mixed;          /* they are not, or one is read-only */
    bool restricted;     /* some deny or shadow stands here */
    bool denied;         /* a deny covers all of it */
    struct taint *taint; /* of the first site of a host: all that goes to it (policy_taint.c) */
};

struct bucket {
    uint64_t hash;
    uint32_t first; /* POLICY_NONE: free */
};

struct policy_index {
    struct arm *arms;
    uint32_t n_arms;
    bool mixed; /* its rules differ in more than patterns and methods, or one is read-only */
    struct site *sites;
    uint32_t n_sites;
    struct way *ways;
    uint32_t n_ways;
    struct bucket *buckets, *way_buckets, *site_table, *host_table;
    size_t bucket_mask, site_mask;
    bool subdomains, tunnels, needs_injector;
};

/* What this rule sends to the host of that site, or captures there (policy_taint.c). */
void policy_taint_add(struct arena *a, struct site *first, const struct rule *r);

/* Ranks the arms, gives allows their shadows where rules differ, makes sites and buckets. */
int policy_index_build(struct policy_index *x, struct arena *a, struct err *err);
/* A pattern in each of the readings that a restriction is hung in; how many, or -1 when one has too
 * many segments. The first is the pattern as it stands. */
int policy_index_readings(struct arena *a, const struct pattern *p,
                          struct pattern ret[ARM_READINGS]);
/* Buckets that hold allow arms of this site whose leading literal segments begin this one's: first
 * arms by `next`. */
size_t policy_index_probe_arm(const struct policy_index *x, const struct site *s,
                              const struct arm *arm, uint32_t *ret);

#endif
