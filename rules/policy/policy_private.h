/* A policy in memory, as who builds one (policy.c) and who opens its image (policy_open.c) know it.
 * Internal to rules/policy. */
#ifndef DURWARD_POLICY_PRIVATE_H
#define DURWARD_POLICY_PRIVATE_H

#include "policy_build.h"
#include "policy_image.h"

/* What is read of an image is kept in blocks of so many: what is not read takes no memory. */
enum { POLICY_BLOCK = 64 };

struct policy {
    struct arena *arena;
    const char *name;
    unsigned refs;
    bool nxdomain; /* `names` */
    bool unguided; /* `guide` */
    const struct budget *budget;
    const struct price_table *prices;
    const struct cloud_identity *identity;
    size_t n_rules;
    struct policy_image image; /* all that is decided by */
    void *bytes;               /* of the image; `release` gives them back */
    size_t n_bytes;
    void (*release)(void *bytes, size_t n);
    /* One that was opened: rules and taints that were asked for, by blocks. */
    const struct rule_entry ***read;
    const struct taint ***taints;
    /* One that was built here. */
    struct rule_entry **rules;
    size_t cap, n_arms;
    struct policy_index index;
    /* While it is being built. */
    const json_t *secrets;
    json_t *credentials, *terms; /* description → number; the same of rules */
    json_t *extras;              /* what the image's readers read beside rules */
};

/* What an image's record says of this rule (enum rule_flag). */
uint32_t policy_rule_flags(const struct rule_entry *e);
/* The same kind as policy_rule_kind of the rule. */
unsigned policy_record_kind(const struct image_rule *r);
const struct policy_image *policy_image_of(const struct policy *p);
/* What goes to the host of this site (policy_taint.c). */
const struct taint *policy_taints_at(const struct policy *p, const struct image_site *s);
/* The image of a policy whose index is built; malloc'd, *n bytes. NULL with err: it is too large.
 */
void *policy_image_write(const struct policy *p, size_t *n, struct err *err);
/* The requests of a broker's session are decided by all that the rule says but its patterns. */
const char *rule_all_said(struct arena *a, const struct node *rule);

#endif
