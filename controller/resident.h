/* A resident: a sandbox that the daemon keeps, with a row in the registry, a name and labels, times
 * to live, and commands that run in it. One writer: its state changes in resident.c only, and the
 * row is written before anything outside can know of the change.
 *
 *   CREATING ──► RUNNING ◄──► PAUSED ──┐    PAUSED, STOPPED ──► RESUMING ──► RUNNING
 *       │           └──────► STOPPED ◄─┘
 *       └──► each may become STOPPING ──► (gone)
 *
 *   CREATING  its files are being copied, or a sandbox is being made
 *   PAUSED    its processes are frozen
 *   STOPPED   nothing of it runs: it was stopped, or ended by itself or with the daemon. The row,
 * and kept files, stay until it expires or is deleted RESUMING  a paused one is being thawed, a
 * stopped one made anew above its files, or one that runs taken over after the controller's restart
 *   STOPPING  it was deleted or its time is over; the row goes when nothing of it is left
 *
 * Its files are kept on disk (layer.h) unless its policy limits them (`disk`), which only memory
 * can; then they end with its processes. */
#ifndef DURWARD_RESIDENT_H
#define DURWARD_RESIDENT_H

#include <jansson.h>

#include "controller_internal.h"

enum resident_state {
    RESIDENT_CREATING = 1,
    RESIDENT_RUNNING,
    RESIDENT_STOPPING,
    RESIDENT_STOPPED,
    RESIDENT_PAUSED,
    RESIDENT_RESUMING
};
enum { RESIDENT_STATES = RESIDENT_RESUMING + 1 };

enum {
    RESIDENTS_MAX = 4096,
    RESIDENT_NAME_MAX = 63,
    RESIDENT_TTL_MAX = CONFIG_TTL_MAX,
};

#define RESIDENT_WORKDIR "/workspace"

struct execution;
struct publication;
struct snapshot;

/* Called once: r runs, is paused, is stopped or is gone, whichever was awaited (when gone r is
 * freed afterwards). r NULL: it will not be, why says it. */
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
    char backend[RUN_WORD_MAX], image[RUN_NAME_MAX]; /* bwrap's image "" is the host's /usr */
    json_t *labels, *env;                            /* objects of strings */
    unsigned char seed[SANDBOX_SEED];
    enum resident_state state;
    char reason[256];
    int64_t generation;
    int64_t created, expires; /* seconds since 1970 */
    int64_t ends, used;       /* its end and its last use, by CLOCK_BOOTTIME, in seconds */
    int64_t ttl, idle_ttl;
    char parent[SANDBOX_ID_MAX + 1];   /* the sandbox that it was forked from, or "" */
    char snapshot[SHAPE_NAME_MAX + 1]; /* that its files were taken from last, or "" */
    enum config_idle on_idle;
    bool kept, auto_resume;
    struct sandbox *sandbox; /* NULL when nothing of it runs */
    struct event *timer;     /* the next of both ends */
    struct resident_waits running, paused, stopped, gone;
    bool adopted, pause_again; /* since before the controller's restart; it was paused then */
    bool pausing, wanted;      /* being frozen; meanwhile somebody wants it to run */
    bool busy;                 /* its files are being copied, replaced or removed */
    struct {                   /* resident_restore; fn NULL: none */
        resident_fn fn;
        void *arg;
        char snapshot[SHAPE_NAME_MAX + 1];
        char why[256]; /* it failed, as far as is known */
        bool again;    /* it ran before */
    } restore;
    /* In the row from before its files are replaced until it is known whether they are: the
     * snapshot, which a controller that finds it there has confirmed by the builder. "": none */
    char restoring[SHAPE_NAME_MAX + 1];
    LIST_HEAD(, publication) publications;
    LIST_HEAD(, execution) executions;
    unsigned n_executions;
    uint32_t last_number;
};

struct resident_wish {
    const char *policy;          /* must exist */
    const char *name;            /* NULL or "": none */
    json_t *labels, *env;        /* objects of strings, or NULL; borrowed */
    int64_t ttl, idle_ttl;       /* seconds; idle 0: never */
    const char *backend, *image; /* NULL or "": the policy's */
    enum config_idle on_idle;
    bool auto_resume;
    const struct snapshot *snapshot; /* begin with its files, and image; or NULL */
    struct resident *parent;         /* begin with its files, image and policy; or NULL */
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
/* fn runs when it is RUNNING (at once if it is), or will not be by itself. -1: out of memory. */
int resident_await(struct resident *r, resident_fn fn, void *arg);
/* Is there somebody to talk to right now? */
bool resident_awake(const struct resident *r);
/* Let one that is PAUSED or STOPPED run again; of others nothing, which is fine. ERR_UNREADY: it
 * cannot. */
int resident_wake(struct resident *r, struct err *err);
/* fn runs when it is PAUSED (at once if it is) or cannot be. ERR_UNREADY: it does not run. */
int resident_pause(struct resident *r, resident_fn fn, void *arg, struct err *err);
/* End its processes; files, if kept, and row stay. fn runs when it is STOPPED. */
int resident_stop(struct resident *r, const char *why, resident_fn fn, void *arg, struct err *err);
/* fn runs when nothing of it is left (perhaps at once; r is then freed); NULL: nobody waits. */
int resident_delete(struct resident *r, const char *why, resident_fn fn, void *arg);
/* Change what is not NULL or negative; ttl counts from now. */
int resident_change(struct resident *r, json_t *labels, int64_t ttl, int64_t idle_ttl,
                    struct err *err);
/* Somebody works in it: the idle time begins anew. */
void resident_used(struct resident *r);
/* Can they be copied? ERR_UNREADY: no. */
int resident_has_files(const struct resident *r, struct err *err);
/* The snapshot's files in place of its own, and fresh placeholders; what ran is ended, and started
 * again if it ran. fn as resident_await, or when it is STOPPED if it was not running. ERR_DENIED:
 * of another image; ERR_UNREADY. */
int resident_restore(struct resident *r, const struct snapshot *s, resident_fn fn, void *arg,
                     struct err *err);
json_t *resident_json(struct resident *r);
const char *resident_state_name(enum resident_state s);
/* -1: no such state. */
int resident_state_of(const char *name);

#endif
