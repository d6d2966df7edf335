/* What a program in a sandbox asks its operator for: a request that the policy should allow, in
 * that program's own words. Read strictly: nothing of it is more than text. */
#ifndef DURWARD_GUIDE_PROPOSAL_H
#define DURWARD_GUIDE_PROPOSAL_H

#include "authority.h"
#include "slice.h"

enum {
    GUIDE_PROPOSAL_MAX = 4096, /* bytes of the body */
    GUIDE_PROPOSAL_PATH = 512,
    GUIDE_PROPOSAL_REASON = 280, /* code points */
};

struct guide_proposal {
    struct authority authority;
    char method[24];
    char path[GUIDE_PROPOSAL_PATH + 1];     /* a pattern of rules: '*' and '**' */
    char reason[GUIDE_PROPOSAL_REASON + 1]; /* printable ASCII; '?' for each other code point */
};

/* {"method", "host", "path", "reason", "scheme"}: host is needed; GET, "/" and https go without
 * saying. NULL, or what is wrong: constant text. */
const char *guide_proposal_read(struct slice body, struct guide_proposal *ret);

#endif
