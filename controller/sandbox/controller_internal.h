/* The controller's own state, shared by its files. */
#ifndef DURWARD_CONTROLLER_INTERNAL_H
#define DURWARD_CONTROLLER_INTERNAL_H

#include "config.h"
#include "ipc.h"
#include "keys.h"
#include "named_layer.h"
#include "quota.h"
#include "record.h"
#include "sandbox.h"

struct event_base;
struct backlog;
struct journal;
struct registry;
struct api;
struct approvals;
struct fleet_notes;
struct fleet_approvals;
struct fleet_hosts;
struct fleet_revocations;
struct proposals;
struct suppressing;
struct mcp_servers;
struct pods;
struct pools;
struct previews;
struct sandbox_events;
struct layer_queue;
struct managed_sandbox;

enum { CONTROLLER_PATH_MAX = 4096, CONTROLLER_CONFIG_MAX = 8 << 20, CONTROLLER_CLIENTS_MAX = 256 };

struct client {
    struct controller *controller;
    struct ipc *ch;
    struct sandbox *sandbox; /* NULL before W_RUN */
    bool ask;                /* its user decides on what is held */
    LIST_ENTRY(client) link;
};

struct controller {
    struct event_base *base;
    struct sandbox_owner owner; /* owner.parent is descriptor 3 */
    struct journal *journal;
    struct backlog *backlog; /* what this role records goes through it */
    struct config *config;
    struct keys keys;
    struct registry *registry; /* NULL when private */
    struct api *api;           /* NULL when private */
    bool private, ready;       /* ready: W_READY is out */
    uid_t owner_uid;
    gid_t owner_gid;
    int state_dir;
    int64_t started; /* monotonic seconds */
    char boot[80];   /* which one CLOCK_BOOTTIME counts in; "": not known */
    char *ca_pem;
    char trust_inside[CONTROLLER_PATH_MAX];
    char trust_outside[CONTROLLER_PATH_MAX];
    struct sandbox_events *sandbox_events; /* NULL when private */
    struct quota redacting; /* bytes for outputs that are looked through (execution_redact.c) */
    struct layer_queue *layers;
    struct approvals *approvals;
    struct fleet_notes *fleet;               /* NULL: there is none, or private */
    struct fleet_revocations *revocations;   /* the same */
    struct fleet_approvals *fleet_approvals; /* NULL: it names no hosts, or there is none */
    struct fleet_hosts *fleet_hosts;         /* NULL: there is none, or private */
    struct proposals *proposals;
    struct suppressing *suppressing; /* NULL when private */
    struct mcp_servers *mcp_servers;
    struct pods *pods;         /* NULL when private */
    struct pools *pools;       /* the same */
    struct previews *previews; /* the same */
    unsigned n_looks;          /* services.h: at how many sandboxes' services */
    TAILQ_HEAD(, managed_sandbox) managed_sandboxes;
    size_t n_managed_sandboxes;
    uint32_t last_publication;
    struct named_layers snapshots, volumes;
    size_t n_clients;
    LIST_HEAD(, client) clients;
};

/* A lifecycle record; it waits where there is no journal yet. */
void controller_put(const struct controller *c, const struct record *r);
void controller_record(struct controller *c, const char *target, const char *what,
                       const char *detail);
/* The same, and an event of the API. */
void controller_note(struct controller *c, const char *target, const char *what,
                     const char *detail);

/* client.c: a channel on which W_RUN comes. Takes over fd. */
void client_new(struct controller *c, int fd);
/* This sandbox is about to be freed. */
void client_sandbox_gone(struct controller *c, const struct sandbox *s);
/* Close all that are left. */
void client_drop_all(struct controller *c);

/* End a sandbox for what was seen of it: recorded, with why. */
void controller_kill(struct controller *c, struct sandbox *s, const char *why);

/* threshold.c: W_ACT and W_NOTIFIED. */
int controller_act(struct controller *c, struct msg *m);
int controller_notified(struct controller *c, struct msg *m);

/* What a sandbox that exists already is known by. */
struct sandbox_known {
    char id[SANDBOX_ID_MAX + 1];
    unsigned char seed[SANDBOX_SEED];
};

/* sandbox_plan.c: work out what a W_RUN asks for. known: NULL for a new one. */
int sandbox_plan_make(struct controller *c, struct run_request *r,
                      const struct sandbox_known *known, struct sandbox_plan *ret, struct err *err);
/* PREFIX-… with 128 random bits in lower-case base32. */
int sandbox_make_id(const char *prefix, char id[SANDBOX_ID_MAX + 1], struct err *err);

#endif
