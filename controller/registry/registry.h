/* The controller's registry in SQLite under the state directory: identities given to remote
 * sandboxes, which outlive a restart; and, a file each, rows of local ones (registry_sandbox.c), of
 * snapshots (registry_snapshot.c), of volumes (registry_volume.c), of suppressions
 * (registry_suppression.c), of notes for the fleet (registry_note.c) and of the API's tokens, by
 * their hashes (registry_bearer.c). An identity's placeholders are made again from its seed; no
 * secret, token or placeholder is stored.
 */
#ifndef DURWARD_REGISTRY_H
#define DURWARD_REGISTRY_H

#include "err.h"

struct registry;

enum { IDENTITY_ID_MAX = 64, IDENTITY_POLICY_MAX = 64, IDENTITY_SEED = 16 };
enum { REGISTRY_EXPIRED_MAX = 512 };

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
    const char *backend, *image, *parent, *snapshot;        /* "": none */
    const char *volumes; /* JSON: an array of NAME:/path[:ro], as it was asked for */
    const char
        *restoring; /* the snapshot that has replaced its files, or not: "" when that is known */
    unsigned char seed[IDENTITY_SEED];
    int state, on_idle, on_soft; /* enum managed_sandbox_state, enum config_idle */
    int auto_resume, kept;
    int64_t generation, created, expires, ttl, idle_ttl, soft_ttl;
    const char *token;    /* that it was made with; "": none */
    const char *pod;      /* JSON of what pods.h says of it; "": it is none */
    const char *template; /* that it was made by; "": none */
    int pooled;           /* made ahead for whoever asks next: nobody has it yet */
    const char *boot;     /* of which the following are, in seconds of CLOCK_BOOTTIME; "": none */
    int64_t ends, soft_ends, used; /* used 0: something runs in it */
};

/* A snapshot of a local sandbox's files. Strings are the caller's. */
struct registry_snapshot {
    const char *name, *sandbox, *policy, *image; /* image "": the host's */
    const char *labels;                          /* JSON: of what it was taken of */
    int64_t created;
    int ready; /* 0: it is being made, or was when the controller died */
};

/* A volume, or a snapshot of one. Strings are the caller's. */
struct registry_volume {
    const char *name, *policy, *labels; /* labels: JSON */
    const char *token;                  /* that it was made with, and counts for; "": none */
    const char *snapshot_of;            /* "": it is no snapshot */
    int64_t size, created;              /* bytes; seconds since 1970 */
    int many, ready; /* many: several may write; ready 0: it is being made or removed */
};

/* A token for the API, of which only a hash is known. Strings are the caller's. */
enum { BEARER_HASH = 32 };
struct registry_bearer {
    const char *id, *name, *policies, *labels; /* JSON: an array, an object; empty: any */
    unsigned char hash[BEARER_HASH];           /* SHA-256 of its secret part */
    int64_t scopes, created, expires;          /* enum api_scope; seconds since 1970 */
    int64_t volume_bytes;  /* that its volumes may have together; -1: not limited */
    int64_t max_sandboxes; /* that there may be at a time; -1: not limited */
};

/* A suppression of findings. Strings are the caller's. */
struct registry_suppression {
    const char *id, *policy, *code, *host, *method, *path, *sandbox; /* "": any */
    const char *reason, *made_by, *accepted_by, *lifted_by;          /* "": not yet */
    int64_t created, expires, accepted, lifted; /* seconds since 1970; 0: not yet */
};

/* What is to be said to the fleet (sandbox/fleet_notes.h). Strings are the caller's. */
struct registry_note {
    const char *kind, *id, *body;
    int64_t seconds; /* it is kept there */
};

/* dirfd: the state directory, kept by the caller for as long as the registry is open. */
struct registry *registry_open(int dirfd, struct err *err);
void registry_close(struct registry *r);
/* Durable when it returns. */
int registry_add(struct registry *r, const struct identity *i, struct err *err);
/* 0, and when it expires; 1 when there is no such identity or it was revoked before. Durable when
 * it returns. */
int registry_revoke(struct registry *r, const char *id, int64_t *expires, struct err *err);
/* Forget those that expired before `now`, but for the last REGISTRY_EXPIRED_MAX of those that are
 * revoked and of those that are not. */
int registry_prune(struct registry *r, int64_t now, struct err *err);
/* The listener identity of a policy: 0 and *ret, or 1 when there is none yet. */
int registry_listener(struct registry *r, const char *policy, struct identity *ret,
                      struct err *err);
/* Every identity that is neither revoked nor expired at `now`, oldest first, until fn returns
 * non-zero. */
int registry_each(struct registry *r, int64_t now, int (*fn)(void *arg, const struct identity *i),
                  void *arg, struct err *err);

/* The same of every one that is revoked and not forgotten. */
int registry_each_revoked(struct registry *r, int (*fn)(void *arg, const struct identity *i),
                          void *arg, struct err *err);
/* Up to when anything would have been good that is revoked and forgotten; 0: nothing is. */
int registry_revoked_floor(struct registry *r, int64_t *ret, struct err *err);

/* Local sandboxes: safe from kill -9 when these return, not from the power's going (which ends the
 * sandboxes too). */
int registry_sandbox_add(struct registry *r, struct registry_sandbox *s, struct err *err);
/* Everything but id, policy, backend, image, parent, volumes, kept, pod and template. */
int registry_sandbox_update(struct registry *r, const struct registry_sandbox *s, struct err *err);
/* It is the last in the order of creation from now on. */
int registry_sandbox_renew(struct registry *r, const char *id, int64_t *seq, struct err *err);
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

/* Its ports that are reached at addresses of this host. */
int registry_port_add(struct registry *r, const char *sandbox, const char *address, unsigned port,
                      struct err *err);
int registry_port_each(struct registry *r, const char *sandbox,
                       void (*fn)(void *arg, const char *address, unsigned port), void *arg,
                       struct err *err);

/* A fork knows the names that its parent was given, with their indexes. */
int registry_name_copy(struct registry *r, const char *from, const char *to, struct err *err);

/* Snapshots, as safe as local sandboxes. */
int registry_snapshot_add(struct registry *r, const struct registry_snapshot *s, struct err *err);
/* It is whole, and keeps the names that its sandbox was given. */
int registry_snapshot_ready(struct registry *r, const char *name, const char *sandbox,
                            struct err *err);
/* An imported one is whole, and says whose it was. */
int registry_snapshot_imported(struct registry *r, const struct registry_snapshot *s,
                               struct err *err);
/* It is being removed: not whole any more. */
int registry_snapshot_going(struct registry *r, const char *name, struct err *err);
int registry_snapshot_delete(struct registry *r, const char *name, struct err *err);
int registry_snapshot_each(struct registry *r,
                           int (*fn)(void *arg, const struct registry_snapshot *s), void *arg,
                           struct err *err);
/* The sandbox's names are the snapshot's from now on. */
int registry_snapshot_names(struct registry *r, const char *name, const char *sandbox,
                            struct err *err);

/* Volumes. Durable when they return: their files outlive the power's going. Oldest first. */
int registry_volume_add(struct registry *r, const struct registry_volume *v, struct err *err);
int registry_volume_ready(struct registry *r, const char *name, bool ready, struct err *err);
int registry_volume_delete(struct registry *r, const char *name, struct err *err);
int registry_volume_each(struct registry *r, int (*fn)(void *arg, const struct registry_volume *v),
                         void *arg, struct err *err);

/* Suppressions. Durable when they return. Oldest first. Putting one replaces that of its id. */
int registry_suppression_put(struct registry *r, const struct registry_suppression *s,
                             struct err *err);
int registry_suppression_delete(struct registry *r, const char *id, struct err *err);
int registry_suppression_each(struct registry *r,
                              int (*fn)(void *arg, const struct registry_suppression *s), void *arg,
                              struct err *err);

/* Notes for the fleet. Durable when added; one that was deleted may come again. Oldest first. */
int registry_note_add(struct registry *r, const struct registry_note *n, struct err *err);
int registry_note_delete(struct registry *r, const char *kind, const char *id, struct err *err);
int registry_note_each(struct registry *r, int (*fn)(void *arg, const struct registry_note *n),
                       void *arg, struct err *err);

/* Tokens for the API. Durable when they return. Oldest first. */
int registry_bearer_add(struct registry *r, const struct registry_bearer *b, struct err *err);
int registry_bearer_delete(struct registry *r, const char *id, struct err *err);
int registry_bearer_each(struct registry *r, int (*fn)(void *arg, const struct registry_bearer *b),
                         void *arg, struct err *err);

#endif
