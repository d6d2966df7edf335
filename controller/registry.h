/* The controller's registry: identities given to remote sandboxes, in SQLite under the state
 * directory, so that they outlive a restart. An identity's placeholders are made again from its
 * seed; no secret, token or placeholder is stored. */
#ifndef DURWARD_REGISTRY_H
#define DURWARD_REGISTRY_H

#include "err.h"

struct registry;

enum { IDENTITY_ID_MAX = 64, IDENTITY_POLICY_MAX = 64, IDENTITY_SEED = 16 };

enum identity_kind {
    IDENTITY_TOKEN = 1,   /* a remote sandbox with a token of its own */
    IDENTITY_LISTENER = 2 /* whoever reaches the listeners bound to this policy */
};

struct identity {
    enum identity_kind kind;
    char id[IDENTITY_ID_MAX + 1]; /* [a-z0-9-] */
    char policy[IDENTITY_POLICY_MAX + 1];
    unsigned char seed[IDENTITY_SEED];
    int64_t expires; /* seconds since 1970; INT64_MAX: never */
};

/* dirfd: the state directory, kept by the caller for as long as the registry is open. */
struct registry *registry_open(int dirfd, struct err *err);
void registry_close(struct registry *r);
/* Durable when it returns. */
int registry_add(struct registry *r, const struct identity *i, struct err *err);
/* 0; 1 when there is no such identity or it was revoked before. Durable when it returns. */
int registry_revoke(struct registry *r, const char *id, struct err *err);
/* Forget those that expired before `now`. */
int registry_prune(struct registry *r, int64_t now, struct err *err);
/* The listener identity of a policy: 0 and *ret, or 1 when there is none yet. */
int registry_listener(struct registry *r, const char *policy, struct identity *ret,
                      struct err *err);
/* Every identity that is neither revoked nor expired at `now`, oldest first, until fn returns
 * non-zero. */
int registry_each(struct registry *r, int64_t now, int (*fn)(void *arg, const struct identity *i),
                  void *arg, struct err *err);

#endif
