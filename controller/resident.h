/* A resident: a sandbox that the daemon keeps, with a row in the registry, a name and labels, times
 * to live, and commands that run in it. One writer: its state changes in resident.c only, and the
 * row is written before anything outside can know of the change.
 *
 *   CREATING ──► RUNNING ──► STOPPING ──► (gone)
 *       │           └──────► STOPPED ───► (gone)
 *       └─────────────────► (gone)
 *
 *   CREATING  a sandbox is being made, or taken over after the controller's restart
 *   STOPPING  it was deleted or its time is over; the row goes when nothing of it is left
 *   STOPPED   it ended by itself or with the daemon; the row stays until it expires or is deleted
 */
#ifndef DURWARD_RESIDENT_H
#define DURWARD_RESIDENT_H

#include <jansson.h>

#include "controller_internal.h"

enum resident_state {
    RESIDENT_CREATING = 1,
    RESIDENT_RUNNING,
    RESIDENT_STOPPING,
    RESIDENT_STOPPED
};

enum {
    RESIDENTS_MAX = 4096,
    RESIDENT_NAME_MAX = 63,
    RESIDENT_TTL_DEFAULT = 86400, /* seconds */
    RESIDENT_IDLE_DEFAULT = 3600,
    RESIDENT_TTL_MAX = 30 * 86400,
};

#define RESIDENT_WORKDIR "/workspace"

struct execution;

/* Called once: r runs (CREATING), or is gone (then r is freed afterwards). r NULL: it could not be
 * made, why says it. */
typedef void (*resident_fn)(void *arg, struct resident *r, const char *why);

struct resident_wait {
    resident_fn fn;
    void *arg;
    STAILQ_ENTRY(resident_wait) link;
};
STAILQ_HEAD(resident_waits, resident_wait);

struct resident {
    TAILQ_ENTRY(resident) link; /* of controller.residents, in order of creation */
    struct controller *controller;
    int64_t seq;
    char id[SANDBOX_ID_MAX + 1];
    char name[RESIDENT_NAME_MAX + 1]; /* "" for none */
    char policy[RUN_NAME_MAX];
    char backend[RUN_WORD_MAX], image[RUN_NAME_MAX]; /* "": the policy's */
    json_t *labels, *env;                            /* objects of strings */
    unsigned char seed[SANDBOX_SEED];
    enum resident_state state;
    char reason[256];
    int64_t generation;
    int64_t created, expires, used; /* seconds since 1970 */
    int64_t ttl, idle_ttl;
    struct sandbox *sandbox; /* NULL when stopped */
    struct event *timer;     /* the next of both ends */
    struct resident_waits running, gone;
    bool adopted;
    LIST_HEAD(, execution) executions;
    unsigned n_executions;
    uint32_t last_number;
};

struct resident_wish {
    const char *policy;          /* must exist */
    const char *name;            /* NULL or "": none */
    const char *backend, *image; /* NULL or "": the policy's */
    json_t *labels, *env;        /* objects of strings, or NULL; borrowed */
    int64_t ttl, idle_ttl;       /* seconds; idle 0: never */
};

/* Rows of the registry: what ran is asked for again, what was being made or ended is ended. Before
 * the first message. */
int residents_load(struct controller *c, struct err *err);
/* The daemon ends: what runs is stopped. */
void residents_close(struct controller *c);
/* owner callbacks of their sandboxes. */
void residents_running(void *controller, struct sandbox *s);
int residents_said(void *controller, struct sandbox *s, struct msg *m);
void residents_named(void *controller, struct sandbox *s, const char *host, uint32_t index);
/* Before sandbox_free. */
void residents_sandbox_gone(struct controller *c, struct sandbox *s);

/* NULL with err: ERR_LIMIT, ERR_DENIED for a name that is taken. It is CREATING; resident_await. */
struct resident *resident_new(struct controller *c, const struct resident_wish *w, struct err *err);
struct resident *resident_find(struct controller *c, const char *id);
/* The oldest with all these labels that is CREATING or RUNNING. */
struct resident *resident_by_labels(struct controller *c, const json_t *labels);
bool resident_has_labels(const struct resident *r, const json_t *labels);
/* fn runs when it is RUNNING (at once if it is), or will never be. -1: out of memory. */
int resident_await(struct resident *r, resident_fn fn, void *arg);
/* fn runs when nothing of it is left (perhaps at once; r is then freed); NULL: nobody waits. */
int resident_delete(struct resident *r, const char *why, resident_fn fn, void *arg);
/* Change what is not NULL or negative; ttl counts from now. */
int resident_change(struct resident *r, json_t *labels, int64_t ttl, int64_t idle_ttl,
                    struct err *err);
/* Somebody works in it: the idle time begins anew. */
void resident_used(struct resident *r);
json_t *resident_json(const struct resident *r);
const char *resident_state_name(enum resident_state s);

#endif
