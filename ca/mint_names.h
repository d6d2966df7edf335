/* Which names a channel of the signer may have certified under the exported CA (attack E8): those
 * that its policy holds, and those that the parent gave it. */
#ifndef DURWARD_MINT_NAMES_H
#define DURWARD_MINT_NAMES_H

#include "authority.h"
#include "err.h"

#include <stdbool.h>
#include <stddef.h>

struct msg;
struct mint_names;
struct mint_right;

/* The first byte of what the parent says to the signer beside a channel (W_PEER's extra); then
 * n × name:str, its own. */
enum mint_scope {
    MINT_SANDBOX = 1, /* anything, under the CA of that sandbox */
    MINT_POLICY,      /* what the policy of the channel names, and its own names */
    MINT_POLICIES,    /* what any policy names, and its own names */
    MINT_OWN,         /* its own names */
    MINT_SCOPES,
};

struct mint_names *mint_names_new(void);
void mint_names_free(struct mint_names *n);
/* Nobody has it certified but whose own name it is, in canonical form. "" or NULL: nothing. */
int mint_names_reserve(struct mint_names *n, const char *host, struct err *err);
/* W_POLICY: in place of the one of that name. A policy that cannot be read is refused with err (1),
 * and the one before stays; -1: a bad message. */
int mint_names_policy(struct mint_names *n, struct msg *m, struct err *err);

/* extra: what W_PEER brought; policy: its policy. NULL when it makes no sense. */
struct mint_right *mint_right_new(struct slice extra, const char *policy);
void mint_right_free(struct mint_right *r);
enum mint_scope mint_right_scope(const struct mint_right *r);
/* Not for MINT_SANDBOX. The policies are asked now: a reload counts from the next leaf on. */
int mint_right_check(const struct mint_right *r, const struct mint_names *n,
                     const struct authority *host, struct err *err);

#endif
