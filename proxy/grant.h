/* One credentialed request in the injector: the grant checked against this process's own policy,
 * the secret fetched, *admitted* recorded, the slot filled, the origin spoken to. */
#ifndef DURWARD_GRANT_H
#define DURWARD_GRANT_H

#include "hop.h"
#include "injector.h"
#include "stream.h"

struct grant;

struct grant_request {
    struct authority authority;
    uint32_t generation;
    char secret[128]; /* "" with client_credential: pass */
    char entry[16];
    char token[512];
    const char *sandbox;
    bool needs_token;
    struct hop_marks marks;
    struct hop_blanks blanks;
    struct head head; /* taken over */
};

/* What this process's own policy says of a request. */
struct grant_decided {
    char sandbox[65];
    struct policy *policy; /* whose rule it is; a reference, also when it was refused */
    const struct rule *rule;
    const struct credential *credential; /* NULL: the client's own goes (pass) */
};

/* NULL, or the code to refuse with (403). The authority's kind and address are filled in. */
const char *grant_check(const struct injector *i, const struct grant_request *r,
                        const struct head *h, struct authority *authority,
                        struct grant_decided *ret);

struct grant *grant_new(struct injector *i, struct front front);
/* The front may be told fail before this returns; the grant is then gone. */
void grant_start(struct grant *g, struct grant_request *r);
struct back grant_back(struct grant *g);

#endif
