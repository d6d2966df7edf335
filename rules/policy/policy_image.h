/* A compiled policy as one block of bytes without a pointer: a header, and tables that name one
 * another by number and their texts by offset. It is made once, where the policy is compiled, lies
 * in one sealed file, and every role that decides maps that file. Internal to rules/.
 *
 * A reader holds the whole image against its bounds before anything is asked of it, once: what is
 * behind policy_image_check is in range, and each chain ends. What a rule says beyond where it
 * stands is its JSON, which policy_open.c reads when a request first needs the rule. */
#ifndef DURWARD_POLICY_IMAGE_H
#define DURWARD_POLICY_IMAGE_H

#include "err.h"
#include "pattern.h"
#include "policy_index.h"

enum { POLICY_IMAGE_VERSION = 1, POLICY_IMAGE_MAX = 64 << 20 };
#define POLICY_IMAGE_MAGIC "durwpol" /* with its NUL: eight bytes */

/* What an image consists of, in this order, each part at a multiple of eight bytes. */
enum image_part {
    IMAGE_RULES,
    IMAGE_ARMS,
    IMAGE_SITES,
    IMAGE_WAYS,
    IMAGE_WAY_TABLE,
    IMAGE_SITE_TABLE,
    IMAGE_HOST_TABLE,
    IMAGE_SEGMENTS,
    IMAGE_TAINTS,
    IMAGE_BUDGETS,
    IMAGE_SECRETS, /* u32: the names of secrets that rules send, each once */
    IMAGE_TEXT,    /* bytes; the last is NUL, so that each offset into them begins a text */
    IMAGE_PARTS
};

enum image_flag {
    IMAGE_NXDOMAIN = 1,
    IMAGE_UNGUIDED = 2,
    IMAGE_SUBDOMAINS = 4,
    IMAGE_TUNNELS = 8,
    IMAGE_NEEDS_INJECTOR = 16,
    IMAGE_FLAGS = 31
};

struct image_header {
    char magic[8];
    uint32_t version, size; /* of the whole image */
    uint64_t digest;        /* of all that follows it: finds damage, not forgery */
    uint32_t name, extras;  /* texts; extras: JSON of `budget`, `prices`, `identity` */
    uint32_t flags;         /* enum image_flag */
    uint32_t unused;
    struct {
        uint32_t at, n; /* offset, and how many records */
    } part[IMAGE_PARTS];
};

enum rule_flag {
    RULE_DENY = 1,
    RULE_ASK = 2,
    RULE_READ_ONLY = 4,
    RULE_METHOD_SCOPED = 8,
    RULE_TUNNEL = 16,
    RULE_READ_AGAIN = 32, /* rule_read_again */
    RULE_CREDENTIAL = 64,
    RULE_CAPTURED = 128, /* its credential comes from a reply */
    RULE_WEBSOCKET = 256,
    RULE_TO = 512,
    RULE_FLAGS = 1023
};

struct image_rule {
    uint32_t text;         /* as people read it */
    uint32_t json, json_n; /* what rule_read reads */
    uint32_t secret;       /* text; POLICY_NONE: it sends none */
    uint32_t terms;        /* equal numbers: the same in all but patterns and methods */
    uint32_t flags;        /* enum rule_flag */
};

struct image_path {
    uint32_t first; /* segment */
    uint16_t n, tail;
};
enum { IMAGE_NO_PATH = UINT16_MAX }; /* as n */

/* See struct arm. */
struct image_arm {
    struct image_path path, original;
    uint32_t rule, site, methods, rank, next_way, next_site, kind, unused;
};

/* See struct site. */
struct image_site {
    uint64_t hash;
    uint32_t host, next_host, first_arm, first_way[2], kinds, taint, n_taints;
    uint16_t host_n, port;
    uint8_t scheme, kind, subdomains;
    uint8_t restrains; /* IMAGE_RESTRICTED, IMAGE_DENIED */
};
enum { IMAGE_RESTRICTED = 1, IMAGE_DENIED = 2 };

struct image_bucket {
    uint64_t hash;
    uint32_t first, unused; /* POLICY_NONE: free */
};

struct image_segment {
    uint32_t at;
    uint16_t n, kind;
};

struct image_taint {
    uint32_t secret, user; /* texts; user may be POLICY_NONE */
    uint32_t flags, on_reflect;
};
enum { IMAGE_TAINT_CAPTURED = 1, IMAGE_TAINT_AWS = 2 };

struct image_budget {
    uint64_t key; /* ascending */
    uint32_t rule, unused;
};

/* An image that was checked; borrowed. */
struct policy_image {
    const unsigned char *base;
    const struct image_header *head;
    const struct image_rule *rules;
    const struct image_arm *arms;
    const struct image_site *sites;
    const struct way *ways;
    const struct image_bucket *way_table, *site_table, *host_table;
    const struct image_segment *segments;
    const struct image_taint *taints;
    const struct image_budget *budgets;
    const uint32_t *secrets;
    const char *text;
    uint32_t n_rules, n_arms, n_sites, n_ways, n_budgets, n_secrets;
    size_t way_mask, site_mask;
};

/* p: at least eight bytes aligned. -1 with err: it is none, or something in it is out of range. */
int policy_image_check(const void *p, size_t n, struct policy_image *ret, struct err *err);
/* The digest that an image of n bytes, at least a header's, should have. */
uint64_t policy_image_digest(const void *p, size_t n);
size_t policy_image_record(enum image_part part); /* bytes of one of its records */

/* An arm's pattern, and the one that it has beside it. segments: PATTERN_SEGMENTS of them. */
void policy_image_pattern(const struct policy_image *x, const struct image_arm *a,
                          const struct image_path *path, struct segment *segments,
                          struct pattern *ret);
bool policy_image_matches(const struct policy_image *x, const struct image_arm *a,
                          const struct authority *to, struct slice path);
/* Sites that name this host at this scheme and port, its own and its parents': how many. */
size_t policy_image_sites(const struct policy_image *x, const struct authority *a,
                          const struct image_site *ret[POLICY_SITES_MAX]);
/* The first site of each host that names this one, whatever the scheme and port. */
size_t policy_image_hosts(const struct policy_image *x, const struct authority *a,
                          const struct image_site *ret[POLICY_SITES_MAX]);
/* Buckets of this site that a path can be in: first arms by next_way. */
size_t policy_image_probe(const struct policy_image *x, const struct image_site *s,
                          bool restricting, struct slice path, uint32_t ret[POLICY_WAYS_MAX]);

#endif
