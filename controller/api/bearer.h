/* Tokens for the API over TLS: what each may do and see. The text of one is ID.SECRET, the id of
 * [a-z0-9-], the secret 64 hexadecimal digits; it is shown once, and only SHA-256 of the secret is
 * kept. A secret of 256 random bits needs no slow hash.
 *
 * Scopes say what may be asked. `policies` and `labels`, where given, say of which sandboxes: those
 * of these policies that have all these labels; others do not exist for it, and what it makes gets
 * the labels. */
#ifndef DURWARD_BEARER_H
#define DURWARD_BEARER_H

#include <jansson.h>
#include <sys/queue.h>

#include "registry.h"

enum bearer_scope {
    SCOPE_READ = 1,        /* what there is: sandboxes, snapshots, policies, events, the log */
    SCOPE_SANDBOXES = 2,   /* make, change, pause, fork, delete them; snapshots, volumes */
    SCOPE_EXEC = 4,        /* commands, files and ports in them */
    SCOPE_APPROVALS = 8,   /* see and decide what `ask` rules hold */
    SCOPE_IDENTITIES = 16, /* identities of remote sandboxes */
    SCOPE_ADMIN = 32,      /* all of these, tokens, reload */
};

enum {
    BEARERS_MAX = 1024,
    BEARER_ID_MAX = 64,
    BEARER_NAME_MAX = 63,
    BEARER_SECRET = 32,    /* bytes */
    BEARER_TEXT_MAX = 160, /* of a token, with its end */
    BEARER_TTL_DEFAULT = 90 * 86400,
    BEARER_TTL_MAX = 366 * 86400,
};

struct bearer {
    TAILQ_ENTRY(bearer) link;
    char id[BEARER_ID_MAX + 1], name[BEARER_NAME_MAX + 1];
    unsigned char hash[BEARER_HASH];
    unsigned scopes;
    json_t *policies; /* an array of names; empty: any */
    json_t *labels;   /* an object; empty: any */
    int64_t created, expires;
    int64_t volume_bytes;  /* that volumes made with it may have together; -1: not limited */
    int64_t max_sandboxes; /* made with it that there may be at a time; -1: not limited */
};

struct bearers;

struct bearer_wish {
    const char *name;
    unsigned scopes;
    const json_t *policies, *labels; /* NULL: any */
    int64_t ttl;                     /* seconds */
    int64_t volume_bytes;            /* -1: not limited */
    int64_t max_sandboxes;           /* the same */
};

/* All rows. NULL with err. The registry outlives it. */
struct bearers *bearers_load(struct registry *r, struct err *err);
void bearers_free(struct bearers *b); /* NULL is fine; wipes */
/* None is good while it is not known which ones the fleet has revoked. NULL: there is no fleet. */
struct fleet_notes;
void bearers_fleet(struct bearers *b, const struct fleet_notes *n);
/* *text: the token, this once. NULL with err: ERR_LIMIT, too many. */
const struct bearer *bearer_new(struct bearers *b, const struct bearer_wish *w,
                                char text[BEARER_TEXT_MAX], struct err *err);
/* 0; 1: there is none; -1. */
int bearer_revoke(struct bearers *b, const char *id, struct err *err);
/* Whose it is; NULL: nobody's, or its time is over. */
const struct bearer *bearer_check(const struct bearers *b, const char *text);
const struct bearer *bearer_find(const struct bearers *b, const char *id); /* and not over */
json_t *bearer_json(const struct bearer *b);
json_t *bearers_json(const struct bearers *b);

/* -1: there is no such scope. */
int bearer_scope_of(const char *name);
/* The name of the first of these scopes. */
const char *bearer_scope_name(unsigned scopes);
static inline bool bearer_may(const struct bearer *b, unsigned scope)
{
    return (b->scopes & (scope | SCOPE_ADMIN)) != 0;
}
/* Are there sandboxes that it does not see? */
bool bearer_is_narrow(const struct bearer *b);
bool bearer_has_policy(const struct bearer *b, const char *policy);
/* May it see what has this policy and these labels (NULL: none)? */
bool bearer_sees(const struct bearer *b, const char *policy, const json_t *labels);

#endif
