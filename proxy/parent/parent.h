/* The parent: starts every role, wires them, keeps a duplicate of every listener, replaces what
 * dies. It reads no sandbox byte. Shared by the parent's files only. */
#ifndef DURWARD_PARENT_H
#define DURWARD_PARENT_H

#include "authority.h"
#include "bind.h"
#include "broker.h"
#include "ca_files.h"
#include "config.h"
#include "counts.h"
#include "ipc.h"
#include "log_bound.h"
#include "meter.h"
#include "proc.h"
#include "trust.h"

#include <sys/queue.h>

struct event_base;
struct parent;
struct revoked;
struct suppressions;

enum parent_mode { PARENT_RUN = 1, PARENT_SERVE = 2 };

enum child_state {
    CHILD_ASLEEP = -1, /* started when somebody asks it for something, or a moment later */
    CHILD_STARTED = 0, /* exec'd, W_INIT not sent */
    CHILD_INITED,      /* W_INIT sent */
    CHILD_READY,
    CHILD_DEAD,    /* to be started again */
    CHILD_RETIRED, /* ended on purpose */
};

struct sandbox;
struct act;
struct notices;
struct log_command;
struct verifying;

struct child {
    struct parent *parent;
    enum role role;
    enum child_state state;
    char tag[64];             /* for argv and logs */
    char policy[65];          /* injector, broker: its policy */
    struct sandbox *front_of; /* a broker's front: whose; else NULL */
    struct sandbox *sandbox;  /* gate: what it is the gate of */
    pid_t pid;
    struct ipc *ch;
    struct timespec started;
    unsigned quick_deaths;
    bool replaced;          /* we ended it, for another one in its place */
    unsigned lost;          /* channels, since it was started */
    struct event *again;    /* restart timer */
    uint32_t revoked_asked; /* newest W_REVOKED_TAKEN that it was sent, */
    uint32_t revoked_taken; /* and that it answered; since it was started */
    struct meters meters;   /* as it reported last */
    struct log_bound log;   /* of what it has us write */
    uint64_t traced_second; /* parent_trace.c */
    unsigned traced;        /* lines in it */
    TAILQ_ENTRY(child) link;
};

/* A wished-for channel between two roles; made anew whenever one of them is started again. */
struct wire {
    struct child *a, *b;
    char sandbox[65], policy[65];
    uint32_t number;     /* of this wire, for as long as it is wished for */
    uint32_t channel;    /* the newest; 0: none yet */
    bool lost;           /* that one ended: on_lost makes another */
    struct event *asked; /* b is asleep: its end, until something comes on it; else NULL */
    bool token;          /* a is the gate of a token listener: b asks for a token each time */
    TAILQ_ENTRY(wire) link;
};

/* A revocation that the API answers once each role has taken it (parent_revoked.c). */
struct revocation {
    uint32_t n;
    int64_t until; /* CLOCK_MONOTONIC, ms: then it is answered in any case */
    char id[65];
    STAILQ_ENTRY(revocation) link;
};
STAILQ_HEAD(revocations, revocation);

enum {
    SANDBOX_LISTENERS_MAX = 40,
    SANDBOX_PLACEHOLDERS_MAX = 256,
    SANDBOX_NAMES_MAX = 512,
    PARENT_ENDED_MAX = 16,
    SANDBOXES_EARLY_MAX = 64, /* whose listeners came before their W_SANDBOX */
};

struct sandbox_listener {
    uint8_t kind;
    uint32_t port;
    char name[HOST_TEXT_MAX]; /* LISTENER_REMOTE_HTTPS: of its certificate; else "" */
    int fd;
};

/* What a gate is bound to: a local sandbox, or an operator's `listen` entry. */
struct sandbox {
    char id[65];     /* "" for a listen entry */
    uint8_t mode;    /* enum gate_mode */
    char policy[65]; /* "" for a token listener: all of them */
    struct sandbox_listener listeners[SANDBOX_LISTENERS_MAX];
    size_t n_listeners;
    struct {
        char *text, *secret;
    } placeholders[SANDBOX_PLACEHOLDERS_MAX];
    size_t n_placeholders;
    size_t forwarded; /* of LISTENER_FORWARDED: which `listen` entry */
    struct child *gate, *fronts[BROKERS];
    unsigned char key[BROKER_KEY_MAX]; /* its brokers' host keys are made of it */
    size_t key_len;
    char *root; /* of its own CA, as the signer said it (W_ROOT); NULL: not yet */
    size_t root_len;
    struct sandbox_labels *labels; /* as the controller said them; NULL: not yet */
    uint64_t trace, trace_until;   /* whose session; seconds, monotonic */
    bool answered;                 /* the builder has its W_LISTENERS_OK */
    bool elsewhere;                /* a pod of a cluster: its gate is its node's */
    bool early; /* its listeners are here, its W_SANDBOX is not: that comes over another channel */
    TAILQ_ENTRY(sandbox) link;
};

struct parent {
    struct event_base *base;
    enum parent_mode mode;
    struct ipc *starter; /* run: the CLI */
    int keep_fd;         /* serve: the other end of our own control socket, held open */
    char *config_path;   /* NULL: none to reload from */
    struct config *config;
    uint32_t generation;
    LIST_HEAD(, policy_file) policy_files; /* parent_policy.c */
    int secret_fd;                         /* of the sandboxes' CAs: signers read it, we never do */
    char api_path[CONFIG_SOCKET_MAX + 1];  /* of the API's socket; "" for `run` */
    int env_fd, roots_fd, budgets_fd, audit_dir_fd, state_dir_fd, api_fd;
    struct parent_objects *objects; /* NULL: none */
    int node_fd;                    /* where a node's CNI plugin asks; -1: nowhere */
    int metrics_fd, console_fd;     /* `listen` entries that the controller serves; -1: none */
    int https_fd;                   /* its API in TLS; -1: none */
    struct ca_files ca;
    char *ca_pem;
    struct trust trust, roots; /* of paired clients; what the bundles of sandboxes are made of */
    struct event *ca_timer;    /* parent_ca.c; NULL: the CA is not ours to change */
    int programs[ROLE_COUNT];  /* of the roles; -1: not opened */
    int command_fd;            /* durward, as it was started */
    int archive_fd;            /* what the builder has archives read and written by */
    char *init_path, *cache_dir, *state_dir;
    char run_id[33];
    unsigned char tag_key[32], token_public[32];
    uint32_t next_channel, next_wire;
    TAILQ_HEAD(child_list, child) children;
    TAILQ_HEAD(wire_list, wire) wires;
    TAILQ_HEAD(sandbox_list, sandbox) sandboxes;
    struct event *spare_timer;
    struct event *lost_timer; /* parent_wire.c */
    struct port {
        uint16_t number;
        unsigned n; /* listeners: one port at several addresses */
    } * ports;      /* published for sandboxes: proxy/parent/parent_port.c */
    size_t n_ports;
    size_t files_ours;       /* parent_room.c: descriptors for no sandbox; 0: not counted yet */
    struct revoked *revoked; /* tokens that are good no longer; NULL: none yet */
    struct suppressions *suppressions; /* of the controller; NULL: none yet */
    struct revocations revocations;    /* that the controller waits for, oldest first */
    uint32_t n_revocations;            /* since the start */
    bool late;                         /* the vault was waited for long enough */
    struct event *revocation_timer;    /* when the oldest has waited long enough */
    struct event *until_timer;         /* when what the fleet has revoked is known no more */
    struct store_broker *store_broker; /* the vault's files and commands */
    struct home_logins *home_logins;   /* of `run` with a kept home, else NULL */
    struct notices *notices;           /* notice_queue.c; NULL: none yet */
    TAILQ_HEAD(act_list, act) acts;    /* parent_notice.c */
    size_t n_acts;
    uint32_t last_act;
    pid_t anchor_pid;            /* the command that keeps a checkpoint, while it runs; 0: none */
    struct verifying *verifying; /* parent_verify.c; NULL: never asked for */
    LIST_HEAD(, log_command) log_commands;
    unsigned n_log_asks; /* parent_log.c: that run */
    struct child *signer, *vault, *dialer, *logger, *controller, *builder, *spare, *exporter,
        *fleet;
    bool controller_ready, told_ready, draining, stopping;
    int exit_status;
    struct meters past[ROLE_COUNT]; /* of processes that ended */
    uint64_t starts[ROLE_COUNT];
    struct ended { /* parent_ended.c: not told to a controller yet, the oldest first */
        char sandbox[65], text[96];
    } ended[PARENT_ENDED_MAX];
    size_t n_ended;
    struct counts counts; /* the logger's, as it reported last */
};

/* parent_child.c */
void parent_set_state(struct child *c, enum child_state s);
/* Sends a role what it may not go on without: policies, who it is bound to, what is revoked. One
 * that cannot be told (there was no room for the message, or no descriptor) is ended, so that the
 * next begins with what holds; -1 then, and where its channel is dead. Takes the message. */
int parent_tell(struct child *c, struct msg *m);
struct child *parent_start(struct parent *p, enum role r, const char *tag);
/* "gate sb-..." or "logger", for a line of the log; until the next call. */
const char *parent_child_name(const struct child *c);
/* One without a process, which parent_wake gives it: when something comes on a channel to it
 * (parent_wire.c), or a moment after parent_wake_soon. NULL is fine. */
struct child *parent_start_later(struct parent *p, enum role r);
void parent_wake(struct child *c);
void parent_wake_soon(struct child *c);
/* parent_forwarded.c: who sends requests on to listeners with `forwarded`, and with what keys */
int parent_check_forwarded(const struct config *c, struct err *err);
void parent_tell_forwarded(struct child *gate); /* nothing for other gates */
void parent_retire(struct child *c); /* it ends, and is not started again; NULL is fine */
void parent_reaped(struct parent *p, pid_t pid, int status);
/* parent_ended.c: a role ended that was not told to: said on standard error, and recorded by the
 * controller, which may be the one that ended */
void parent_ended(struct child *c, int status);
void parent_tell_ended(struct parent *p);
/* parent_init.c: W_INIT of each role, as soon as what it needs is known */
void parent_init_child(struct child *c);
void parent_tell_vault_roots(struct parent *p);
void parent_tell_vault_home(struct parent *p);
void parent_init_waiting(struct parent *p);
/* parent_ca.c: the first signer is ready; whether the CA has changed since (1: another one signs);
 * the same, and a new signer for it */
int parent_ca_ready(struct parent *p, struct err *err);
void parent_ca_known(struct parent *p); /* before the signer is, where that can be */
int parent_ca_again(struct parent *p);
void parent_ca_look(struct parent *p);
/* parent_wire.c */
void parent_wire(struct parent *p, struct child *a, struct child *b, const char *sandbox,
                 const char *policy, bool token);
void parent_rewire(struct child *c); /* all wires of c whose other end is there */
/* W_LOST: the wire of c with that channel is made anew, where both ends live. A channel that was
 * replaced meanwhile is none any more: a role that died was wired when it was started again. It
 * takes a moment: a role that is dying loses all its channels before it is seen to be dead. 0, or
 * -1 for a bad message. */
int parent_lost(struct child *c, struct msg *m);
/* W_CORRUPT: the logger says that the far end of that channel writes what it may not. It is killed,
 * and started again as one that died. */
int parent_corrupt(struct child *logger, struct msg *m);
void parent_wire_gate(struct parent *p, struct sandbox *s);
/* Dialer and injectors of its policies, those that it has not yet. */
void parent_wire_policies(struct parent *p, const struct sandbox *s);
bool parent_is_wired(const struct parent *p, const struct child *a, const struct child *b,
                     const char *policy);
/* parent_broker.c: the brokers of a local sandbox's policy, those that it has not yet; none any
 * more; one that is forgotten; is it a front or back of that policy? */
void parent_wire_brokers(struct parent *p, struct sandbox *s);
void parent_retire_brokers(struct sandbox *s);
void parent_forget_front(const struct child *c);
bool parent_is_broker_of(const struct child *c, const char *policy);
/* A new channel to the vault, for another list of secrets; what it asked for it asks for again. */
void parent_wire_secrets(struct child *injector);
void parent_wires_dead(struct child *c); /* it has ended, and will be wired anew */
void parent_unwire(struct child *c);
/* parent_message.c: the starter's W_SECRET_TRY (0, or -1 when it is bad), and what roles say on
 * their control channels */
int parent_try_secret(struct parent *p, struct msg *m);
int parent_message(struct ipc *ch, struct msg *m, void *child);
/* parent_anchor.c: W_ANCHOR, and the end of the command it ran */
int parent_anchor(struct parent *p, struct msg *m);
bool parent_anchor_reaped(struct parent *p, pid_t pid, int status);
int parent_syslog(const char *path, const char *what, const char *line, struct err *err);
/* parent_verify.c: W_VERIFY */
int parent_verify(struct child *controller, struct msg *m);
/* parent_log.c: W_LOG_ASK */
int parent_log_ask(struct child *controller, struct msg *m);
/* parent_notice.c: W_NOTICE, W_ACTED; what another controller is to do once more */
int parent_notice(struct child *logger, struct msg *m);
int parent_acted(struct child *controller, struct msg *m);
void parent_acts_again(struct parent *p);
/* parent_suppress.c: W_SUPPRESS, from the controller and on; a logger that became ready */
int parent_suppress(struct parent *p, struct msg *m);
void parent_tell_suppressed(struct parent *p);
/* parent_revoked.c: W_REVOKED, from the controller and on */
int parent_revoked(struct parent *p, struct msg *m);
/* W_REVOKED_TAKEN: of the controller, or a role's answer. -1: bad. */
int parent_revoked_taken(struct child *c, struct msg *m);
int parent_revoked_begin(struct parent *p); /* in a fleet no token is taken yet. -1: no memory */
int parent_revoked_until(struct parent *p, struct msg *m); /* W_REVOKED_UNTIL */
void parent_revocations_gone(struct parent *p); /* the controller that waited for them ended */
/* parent_labels.c: W_LABELS; the dialer is told of those of one sandbox, of all, that one is gone
 */
int parent_labels(struct parent *p, struct msg *m);
void parent_labels_tell(struct parent *p, const struct sandbox *s);
void parent_labels_tell_all(struct parent *p);
void parent_labels_gone(struct parent *p, const char *sandbox);
/* parent_port.c: what is published, and that the dialer leads nobody there */
int parent_port_own(struct child *controller, struct msg *m); /* W_PORT_OWN */
void parent_tell_ports(struct parent *p);
void parent_ports_gone(struct parent *p);  /* the controller died */
void parent_tell_revoked(struct child *c); /* one that has its W_INIT; others need not know */
/* parent_trace.c: W_TRACE of the controller, again to a new gate, and W_TRACED of any role */
int parent_trace(struct child *controller, struct msg *m);
void parent_tell_trace(const struct sandbox *s);
int parent_traced(struct child *c, struct msg *m);
/* parent_meters.c: W_METERS, W_COUNTS, W_METERS_ALL */
int parent_meters(struct child *c, struct msg *m);
int parent_counts(struct child *logger, struct msg *m);
int parent_meters_all(struct child *controller, struct msg *m);
void parent_meters_past(struct child *c); /* it ended */
/* parent_sandbox.c */
/* The injector of a gate, which stays its own; gate NULL: any, so that one is there. NULL: the
 * policy needs none. */
struct child *parent_injector(struct parent *p, const char *policy, const struct child *gate);
size_t parent_injectors(const struct parent *p, const char *policy); /* how many there are */
struct sandbox *parent_sandbox_find(const struct parent *p, const char *id); /* a local one */
int parent_sandbox_new(struct parent *p, struct msg *m);
int parent_sandbox_listeners(struct parent *p, struct msg *m);
int parent_sandbox_root(struct child *signer, struct msg *m); /* W_ROOT */
void parent_ask_roots(struct parent *p);                      /* those that a signer still owes */
void parent_sandbox_bound(struct child *gate);
void parent_sandbox_gone(struct parent *p, const char *id);
/* parent_room.c: whether one with so many listeners may begin. -1, with err's text for whoever
 * asked for it, where those that run would have too few descriptors left. */
int parent_room(struct parent *p, size_t listeners, struct err *err);
/* serve: keep one gate warm for the next local sandbox. */
void parent_sandbox_spare(struct parent *p);
void parent_bind_gate(struct child *gate);                /* W_BIND, first or again */
int parent_listen_all(struct parent *p, struct err *err); /* serve: `listen` entries */
/* parent_setup.c: directories, sockets, CA, roots */
int parent_setup(struct parent *p, struct err *err);
/* The audit directory, made again if somebody removed it. */
void parent_keep_audit(struct parent *p);
/* The origins' roots; while the roles are loading, which takes as long. */
int parent_setup_roots(struct parent *p, struct err *err);
int parent_reload(struct parent *p, struct err *err);
/* parent_policy.c: the sealed images of policies. Borrowed; -1, and said, when there is none. */
int parent_policy_fd(struct parent *p, const char *name);
size_t parent_policies_open(const struct parent *p); /* how many descriptors that takes now */
/* Name, generation and image. */
void parent_put_policy(struct parent *p, const char *name, struct msg *m);
void parent_push_policy(struct child *c, const char *name); /* W_POLICY, as it is now */
void parent_policies_forget(struct parent *p);              /* after a reload */
/* parent.c */
/* Let requests end for at most 10 s, then stop. */
void parent_drain(struct parent *p);
void parent_stop(struct parent *p, int status);
void parent_maybe_ready(struct parent *p);

/* parent_port.c: W_PORT_OPEN. -1: bad. */
int parent_port_open(struct child *controller, struct msg *m);

#endif
