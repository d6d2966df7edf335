/* One credentialed request in the injector: the injection checked against this process's own
 * policy, the secret fetched, *admitted* recorded, the slot filled, the origin spoken to. */
#ifndef DURWARD_INJECTION_H
#define DURWARD_INJECTION_H

#include "guard.h"
#include "injector_channel.h"
#include "injector.h"
#include "placement.h"
#include "stream.h"
#include "trace.h"

struct injection;

struct injection_request {
    struct authority authority;
    uint32_t generation;
    char secret[128]; /* "" with client_credential: pass */
    char entry[16];
    char token[512];
    const char *sandbox;
    bool needs_token;
    struct trace trace;
    struct injector_channel_marks marks;
    struct injector_channel_blanks blanks;
    struct head head; /* taken over */
};

/* What this process's own policy says of a request. */
struct injection_decided {
    char sandbox[65];
    struct policy *policy; /* whose rule it is; a reference, also when it was refused */
    const struct rule *rule;
    const struct credential *credential; /* NULL: the client's own goes (pass) */
    bool methods_matter;                 /* see struct decision */
    struct guard_answer answer;          /* of a refusal */
};

/* 0, or -1: refused, as ret->answer says. The authority's kind and address are filled in; of the
 * fields those are left that will be written; *placement, all 0, is begun where there is a
 * credential. */
int injection_check(const struct injector *i, const struct injection_request *r, struct head *h,
                    struct authority *authority, struct placement *placement,
                    struct injection_decided *ret) WUNUSED;

/* What its sandboxes share, before the first injection. files: descriptors that it may have. */
void injection_shares(struct injector *i, size_t files);
struct injection *injection_new(struct injector *i, struct downstream downstream);
/* The downstream may be told fail before this returns; the injection is then gone. */
void injection_start(struct injection *g, struct injection_request *r);
struct upstream injection_upstream(struct injection *g);

#endif
