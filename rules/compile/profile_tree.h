/* A profile as it was read, and how it becomes part of a configuration. Internal to rules/compile.
 */
#ifndef DURWARD_PROFILE_TREE_H
#define DURWARD_PROFILE_TREE_H

#include <jansson.h>

#include "node.h"
#include "profile.h"

enum { PROFILE_SOURCES_MAX = 32 };

struct profile {
    char *name, *where;
    json_t *root, *lines;
    struct source source; /* borrows where and lines */
};

/* Where it goes: the tree of a configuration, its lines, and the policy in it. All borrowed. */
struct profile_into {
    json_t *root, *lines, *policy, *rules;
    const char *policy_name;
    bool telemetry;
    bool logged_in;             /* a login takes the place of the model's keys */
    enum profile_inside inside; /* one that the program makes by itself does */
    bool all;                   /* each secret counts as there: nothing but the text is judged */
};

/* Adds rules, secrets and variables. What the configuration says already stays. -1 with err when
 * no key of it is to be had, which says what to do. */
int profile_apply(const struct profile *p, const struct profile_into *into, struct err *err);
/* Does a policy made of it alone compile? */
int profile_check(const struct profile *p, struct err *err);

#endif
