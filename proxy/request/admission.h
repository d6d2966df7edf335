/* Admission: the one ordered list of what the head of a request must be before any of it leaves.
 * Gate, injector and `explain` ask this list, each in its own process and of its own policy, so a
 * request has the same code wherever it is refused. What only one role can know (whose placeholder
 * it is, which secret a gate asked for) that role adds at its place in the list. */
#ifndef DURWARD_ADMISSION_H
#define DURWARD_ADMISSION_H

#include "guard.h"

struct admission {
    struct decision decision; /* of the policy; rule NULL: none matched, or it was not asked */
    bool by_injector;         /* an injector serves it */
    size_t stripped;          /* fields that named another method */
    struct guard_answer answer;
};

struct admission_request {
    const struct policy *policy;
    const struct authority *authority;
    bool as_tunnel; /* asked of a URL: what a tunnel rule allows passes, unread */
    /* The role's own checks, once the policy allows the request and its fields are made; NULL: it
     * has none. 0, or -1 with the refusal in ret->answer (status 0: 403). */
    int (*own)(void *role, struct head *h, struct admission *ret);
    void *role;
};

/* 0, and of the fields those are left that will be written; or -1: refused, for the first reason in
 * the order of the list, which ret->answer says. */
int admission_check(const struct admission_request *q, struct head *h,
                    struct admission *ret) WUNUSED;

#endif
