/* Identities of remote sandboxes (a token each) and of listeners that are bound to a policy. */
#ifndef DURWARD_IDENTITIES_H
#define DURWARD_IDENTITIES_H

#include <jansson.h>

#include "controller_internal.h"

enum { IDENTITY_TTL_DEFAULT = 3600, IDENTITY_TTL_MAX = 3600 }; /* seconds */

/* Tell the parent of every live identity (W_SANDBOX), making those of policy-bound listeners that
 * have none yet. Nothing to do when private. */
int identities_announce(struct controller *c, struct err *err);
/* What POST /v1/identities answers: {id, policy, proxy, env, trust_dir, ca,
 * ca_hashed} and, by way of a
 * listener that takes tokens, {token, expires}; a listener bound to the policy needs none. remote:
 * the client is on another host, which says what listener is best. NULL with err: ERR_PARSE for
 * what the requester got wrong. */
json_t *identities_issue(struct controller *c, const char *policy, unsigned ttl, bool remote,
                         struct err *err);
/* That identity is live, and of that policy. */
bool identities_are_of(struct controller *c, const char *id, const char *policy);
/* 0; 1 when there is none; -1. Said to the fleet, where there is one. */
int identities_revoke(struct controller *c, const char *id, struct err *err);
/* The same where the fleet has said it. */
int identities_revoke_told(struct controller *c, const char *id, struct err *err);
/* Any token of that id, good up to then, is refused from now on; of no identity of ours. */
int identities_refuse(struct controller *c, const char *id, int64_t expires, struct err *err);
/* The same where somebody else says so: only of that policy; else 1. */
int identities_revoke_of(struct controller *c, const char *id, const char *policy, struct err *err);

#endif
