/* The controller's registry in SQLite under the state directory: identities given to remote
 * sandboxes, which outlive a restart, and (registry_sandbox.c) rows of local ones. An identity's
 * placeholders are made again from its seed; no secret, token or placeholder is stored. */
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

/* A local sandbox as it is known. Strings are the caller's. */
struct registry_sandbox {
    int64_t seq; /* set by registry_sandbox_add: the order of creation */
    const char *id, *name, *policy, *labels, *env, *reason; /* labels, env: JSON; name "": none */
    unsigned char seed[IDENTITY_SEED];
    int state; /* enum resident_state */
    int64_t generation, created, expires, ttl, idle_ttl;
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

/* The same of every one that is revoked and has not expired. */
int registry_each_revoked(struct registry *r, int64_t now,
                          int (*fn)(void *arg, const struct identity *i), void *arg,
                          struct err *err);

/* Local sandboxes: safe from kill -9 when these return, not from the power's going (which ends the
 * sandboxes too). */
int registry_sandbox_add(struct registry *r, struct registry_sandbox *s, struct err *err);
/* Everything but id, policy, env, seed and created. */
int registry_sandbox_update(struct registry *r, const struct registry_sandbox *s, struct err *err);
int registry_sandbox_delete(struct registry *r, const char *id, struct err *err);
/* Oldest first; strings live until fn returns. */
int registry_sandbox_each(struct registry *r,
                          int (*fn)(void *arg, const struct registry_sandbox *s), void *arg,
                          struct err *err);
/* Its synthetic names: index (name_table.h) and host. */
int registry_name_add(struct registry *r, const char *sandbox, uint32_t index, const char *host,
                      struct err *err);
int registry_name_each(struct registry *r, const char *sandbox,
                       void (*fn)(void *arg, const char *host), void *arg, struct err *err);

#endif
