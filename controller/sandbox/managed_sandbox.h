/* A managed sandbox: a sandbox that the daemon keeps, with a row in the registry, a name and
 * labels, times to live, and commands that run in it. One writer: its state changes in
 * managed_sandbox.c only, and the row is written before anything outside can know of the change.
 *
 *   CREATING ──► RUNNING ◄──► PAUSED ──┐    PAUSED, STOPPED ──► RESUMING ──► RUNNING
 *       │           └──────► STOPPED ◄─┘
 *       └──► each may become STOPPING ──► (gone)
 *
 *   CREATING  its files are being copied, or a sandbox is being made
 *   PAUSED    its processes are frozen
 *   STOPPED   nothing of it runs: it was stopped, or ended by itself or with the daemon. The row,
 *             and kept files, stay until it expires or is deleted
 *   RESUMING  a paused one is being thawed, a stopped one made anew above its files, or one that
 *             runs taken over after the controller's restart
 *   STOPPING  it was deleted or its time is over; the row goes when nothing of it is left
 *
 * Its files are kept on disk (layer.h) unless its policy limits them (`disk`), which only memory
 * can; then they end with its processes. */
#ifndef DURWARD_MANAGED_SANDBOX_H
#define DURWARD_MANAGED_SANDBOX_H

#include <jansson.h>

#include "controller_internal.h"

enum managed_sandbox_state {
    MANAGED_SANDBOX_CREATING = 1,
    MANAGED_SANDBOX_RUNNING,
    MANAGED_SANDBOX_STOPPING,
    MANAGED_SANDBOX_STOPPED,
    MANAGED_SANDBOX_PAUSED,
    MANAGED_SANDBOX_RESUMING
};
enum { MANAGED_SANDBOX_STATES = MANAGED_SANDBOX_RESUMING + 1 };

enum {
    MANAGED_SANDBOXES_MAX = 4096,
    MANAGED_SANDBOX_NAME_MAX = 63,
    MANAGED_SANDBOX_TTL_MAX = CONFIG_TTL_MAX,
};

#define MANAGED_SANDBOX_WORKDIR "/workspace"

struct execution;
struct publication;
struct snapshot;

/* Called once: r runs, is paused, is stopped or is gone, whichever was awaited (when gone r is
 * freed afterwards). r NULL: it will not be, why says it. */
typedef void (*managed_sandbox_fn)(void *arg, struct managed_sandbox *r, const char *why);

struct managed_sandbox_wait {
    managed_sandbox_fn fn;
    void *arg;
    STAILQ_ENTRY(managed_sandbox_wait) link;
};
STAILQ_HEAD(managed_sandbox_waits, managed_sandbox_wait);

struct managed_sandbox {
    TAILQ_ENTRY(managed_sandbox) link; /* of controller.managed sandboxes, in order of creation */
    struct controller *controller;
    int64_t seq;
    char id[SANDBOX_ID_MAX + 1];
    char name[MANAGED_SANDBOX_NAME_MAX + 1]; /* "" for none */
    char policy[RUN_NAME_MAX];
    char backend[RUN_WORD_MAX], image[RUN_NAME_MAX]; /* bwrap's image "" is the host's /usr */
    json_t *labels, *env;                            /* objects of strings */
    json_t *volumes;    /* an array of NAME:/path[:ro], beside those of its policy */
    json_t *pod;        /* what pods.h says of it; NULL: it is none */
    unsigned pod_tries; /* since it ran last, to give it its listeners again */
    int64_t pod_due;    /* by CLOCK_MONOTONIC, in ms: the next */
    unsigned char seed[SANDBOX_SEED];
    enum managed_sandbox_state state;
    char reason[256];
    int64_t generation;
    int64_t created, expires; /* seconds since 1970 */
    /* By CLOCK_BOOTTIME, in seconds: its end; that of its soft time to live, if it runs; its last
     * use; when the row was written last */
    int64_t ends, soft_ends, used, noted;
    bool noted_busy; /* the row says that something ran in it */
    int64_t ttl, idle_ttl, soft_ttl;
    char token[SANDBOX_ID_MAX + 1];              /* that it was made with, or "" */
    char parent[SANDBOX_ID_MAX + 1];             /* the sandbox that it was forked from, or "" */
    char snapshot[SANDBOX_SPEC_NAME_MAX + 1];    /* that its files were taken from last, or "" */
    enum config_idle on_idle, on_soft;           /* on_soft: not IDLE_DELETE */
    char template[CONFIG_TEMPLATE_NAME_MAX + 1]; /* that it was made by, or "" */
    /* pools.h: made ahead, nobody has it; it can be had; it is deleted as soon as may be; the
     * generation of the pools that made it */
    bool pooled, ready, unwanted;
    uint32_t pool_generation;
    bool kept, auto_resume;
    struct sandbox *sandbox; /* NULL when nothing of it runs */
    struct event *timer;     /* the next of its ends */
    struct managed_sandbox_waits running, paused, stopped, gone, published;
    bool adopted, pause_again; /* since before the controller's restart; it was paused then */
    bool pausing, wanted; /* being frozen; somebody wants it to run when it is, or is taken over */
    bool busy;            /* its files are being copied, replaced or removed */
    struct {              /* managed_sandbox_restore; fn NULL: none */
        managed_sandbox_fn fn;
        void *arg;
        char snapshot[SANDBOX_SPEC_NAME_MAX + 1];
        char why[256]; /* it failed, as far as is known */
        bool again;    /* it ran before */
    } restore;
    /* In the row from before its files are replaced until it is known whether they are: the
     * snapshot, which a controller that finds it there has confirmed by the builder. "": none */
    char restoring[SANDBOX_SPEC_NAME_MAX + 1];
    LIST_HEAD(, publication) publications;
    LIST_HEAD(, execution) executions;
    unsigned n_executions, n_watches; /* n_watches: among them */
    uint32_t last_number;
};

struct managed_sandbox_wish {
    const char *policy;          /* must exist */
    const char *name;            /* NULL or "": none */
    json_t *labels, *env;        /* objects of strings, or NULL; borrowed */
    int64_t ttl, idle_ttl;       /* seconds; idle 0: never */
    int64_t soft_ttl;            /* seconds; 0: never */
    const char *token;           /* the id of the token that it is made with; NULL: none */
    const char *backend, *image; /* NULL or "": the policy's */
    json_t *volumes;             /* an array of NAME:/path[:ro], or NULL; borrowed */
    json_t *pod;                 /* it is a pod (pods.h); borrowed */
    const char *template;        /* it is made by that; NULL: none */
    bool pooled;                 /* ahead, for nobody yet (pools.h) */
    enum config_idle on_idle, on_soft;
    bool auto_resume;
    const struct snapshot *snapshot;           /* begin with its files, and image; or NULL */
    struct managed_sandbox *parent;            /* begin with its files, image and policy; or NULL */
    const struct managed_sandbox_sight *sight; /* of who asks; NULL: all */
};

/* Which sandboxes somebody sees: a name that only others have is free for them. */
struct managed_sandbox_sight {
    bool (*sees)(const void *who, const struct managed_sandbox *r);
    const void *who;
};
static inline bool managed_sandbox_seen(const struct managed_sandbox_sight *sight,
                                        const struct managed_sandbox *r)
{
    return sight == NULL || sight->sees(sight->who, r);
}

/* Rows of the registry: what ran is asked for again, what was being made or ended is ended. Before
 * the first message. */
int managed_sandboxes_load(struct controller *c, struct err *err);
/* The daemon ends: what runs is stopped. */
void managed_sandboxes_close(struct controller *c);
/* owner callbacks of their sandboxes. */
void managed_sandboxes_running(void *controller, struct sandbox *s);
int managed_sandboxes_said(void *controller, struct sandbox *s, struct msg *m);
void managed_sandboxes_named(void *controller, struct sandbox *s, const char *host, uint32_t index);
/* Before sandbox_free. */
void managed_sandboxes_gone(struct controller *c, struct sandbox *s);

/* NULL with err: ERR_LIMIT, ERR_DENIED for a name that is taken. It is CREATING;
 * managed_sandbox_await. */
struct managed_sandbox *managed_sandbox_new(struct controller *c,
                                            const struct managed_sandbox_wish *w, struct err *err);
/* One that was made ahead is had by whoever asks: its name, labels, variables, times, token. What
 * was known of it before is forgotten. ERR_DENIED for a name that is taken, else it is good for
 * nobody any more. */
int managed_sandbox_claim(struct managed_sandbox *r, const struct managed_sandbox_wish *w,
                          struct err *err);
struct managed_sandbox *managed_sandbox_find(struct controller *c, const char *id);
/* The oldest with all these labels that is CREATING or RUNNING. */
struct managed_sandbox *managed_sandbox_by_labels(struct controller *c, const json_t *labels,
                                                  const struct managed_sandbox_sight *sight);
bool managed_sandbox_has_labels(const struct managed_sandbox *r, const json_t *labels);
/* fn runs when it is RUNNING (at once if it is), or will not be by itself. -1: out of memory. */
int managed_sandbox_await(struct managed_sandbox *r, managed_sandbox_fn fn, void *arg);
/* Queues of those who wait: all are told, or one is put in. -1: out of memory. */
void managed_sandbox_tell(struct managed_sandbox_waits *q, struct managed_sandbox *r,
                          const char *why);
int managed_sandbox_wait_in(struct managed_sandbox_waits *q, managed_sandbox_fn fn, void *arg);
/* Is there somebody to talk to right now? */
bool managed_sandbox_awake(const struct managed_sandbox *r);
/* Let one that is PAUSED or STOPPED run again; of others nothing, which is fine. ERR_UNREADY: it
 * cannot. */
int managed_sandbox_wake(struct managed_sandbox *r, struct err *err);
/* fn runs when it is PAUSED (at once if it is) or cannot be. ERR_UNREADY: it does not run. */
int managed_sandbox_pause(struct managed_sandbox *r, managed_sandbox_fn fn, void *arg,
                          struct err *err);
/* End its processes; files, if kept, and row stay. fn runs when it is STOPPED. */
int managed_sandbox_stop(struct managed_sandbox *r, const char *why, managed_sandbox_fn fn,
                         void *arg, struct err *err);
/* fn runs when nothing of it is left (perhaps at once; r is then freed); NULL: nobody waits. */
int managed_sandbox_delete(struct managed_sandbox *r, const char *why, managed_sandbox_fn fn,
                           void *arg);
/* Change what is not NULL or negative; ttl and soft_ttl count from now. */
struct managed_sandbox_times {
    int64_t ttl, idle_ttl, soft_ttl;
};
int managed_sandbox_change(struct managed_sandbox *r, json_t *labels,
                           const struct managed_sandbox_times *t, struct err *err);
/* How many there are that were made with this token. */
size_t managed_sandboxes_of_token(const struct controller *c, const char *token);
/* Somebody works in it: the idle time begins anew. */
void managed_sandbox_used(struct managed_sandbox *r);
/* Can they be copied? ERR_UNREADY: no. */
int managed_sandbox_has_files(const struct managed_sandbox *r, struct err *err);
/* The snapshot's files in place of its own, and fresh placeholders; what ran is ended, and started
 * again if it ran. fn as managed_sandbox_await, or when it is STOPPED if it was not running.
 * ERR_DENIED: of another image; ERR_UNREADY. */
int managed_sandbox_restore(struct managed_sandbox *r, const struct snapshot *s,
                            managed_sandbox_fn fn, void *arg, struct err *err);
json_t *managed_sandbox_json(struct managed_sandbox *r);
const char *managed_sandbox_state_name(enum managed_sandbox_state s);
/* -1: no such state. */
int managed_sandbox_state_of(const char *name);

#endif
