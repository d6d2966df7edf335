/* The life of one local sandbox: who is told what, in which order, and what may happen when.
 *
 *   NEW ──► BUILDING ──► READY ──► RUNNING ──► ENDING ──► GONE
 *    └──────────┴──────────┴────────────────────▲
 *
 *   NEW       waits for the builder's channel and for the journal
 *   BUILDING  parent has W_SANDBOX, builder has W_BUILD; waits for W_BUILT
 *   READY     durward-init's channel is here; waits for its self-test, then has W_INIT_EXEC
 *   RUNNING   W_INIT_STARTED came and the client knows
 *   ENDING    init's channel is closed, builder has W_TEARDOWN; waits for W_TORN, then tells the
 *             parent W_SANDBOX_GONE and waits for the gate's last counts
 *   GONE      the client has W_RUN_EXIT; the owner frees it
 *
 * What comes from durward-init and from gates is from processes that an adversary reaches: every
 * message is checked against the state, and a bad one ends that channel and nothing else. */
#ifndef DURWARD_SANDBOX_H
#define DURWARD_SANDBOX_H

#include <jansson.h>
#include <sys/queue.h>

#include "denials.h"
#include "host_key.h"
#include "ipc.h"
#include "name_table.h"
#include "run.h"
#include "sandbox_spec.h"

struct event_base;

enum sandbox_state {
    SANDBOX_NEW,
    SANDBOX_BUILDING,
    SANDBOX_READY,
    SANDBOX_RUNNING,
    SANDBOX_ENDING,
    SANDBOX_GONE
};

enum {
    HOST_KEY_TEXT = 192,
    SANDBOX_ID_MAX = 64,
    SANDBOX_PORTS_MAX = 24,
    SANDBOX_SEED = 16,
    SANDBOX_SSH_HOSTS = 200
};

struct sandbox_placeholder {
    char *placeholder, *secret; /* owned */
};

/* Everything a sandbox is made of, worked out before it begins. */
struct sandbox_plan {
    char id[SANDBOX_ID_MAX + 1];
    struct run_request request;
    struct strlist env; /* the whole environment inside */
    struct sandbox_placeholder *placeholders;
    size_t n_placeholders;
    uint16_t ports[SANDBOX_PORTS_MAX];
    size_t n_ports;
    struct strlist git_hosts, ssh_hosts;
    struct sandbox_spec sandbox_spec;        /* image, root and limits */
    unsigned names;                          /* synthetic names it may have */
    unsigned char seed[SANDBOX_SEED];        /* its placeholders are made from it, */
    unsigned char broker_key[HOST_KEY_SEED]; /* and the host key of its brokers (host_key.h); */
    char host_keys[HOST_KEY_KINDS][HOST_KEY_TEXT]; /* the public halves of that */
    json_t *labels;                                /* an object of texts, or NULL: none */
    bool signs; /* its policy signs for it: it has an SSH agent */
    /* Kept by the daemon: it has no command of its own, runs once it is tested, and what
     * durward-init says from then on goes to owner->said. */
    bool kept;
    bool serves; /* kept, but for as long as the controller that made it (mcp_servers.h) */
    bool adopt;  /* it runs already: take it over from the builder instead of making it */
};

void sandbox_plan_done(struct sandbox_plan *p);

struct sandbox;

/* The world of a sandbox. Functions may be NULL in tests. */
struct sandbox_owner {
    struct event_base *base;
    struct ipc *parent;  /* NULL once it is gone */
    struct ipc *builder; /* NULL while there is none */
    bool recording;      /* lifecycle records are taken; without, no sandbox begins */
    void (*event)(void *arg, const struct sandbox *s, const char *what, const char *detail);
    void (*gone)(void *arg, struct sandbox *s); /* state is GONE; call sandbox_free */
    /* of kept ones: it is RUNNING; init's message about commands (-1: bad); a new name */
    void (*running)(void *arg, struct sandbox *s);
    int (*said)(void *arg, struct sandbox *s, struct msg *m);
    void (*named)(void *arg, struct sandbox *s, const char *host, uint32_t index);
    /* Its gate brings a proposal (W_PROPOSE, answered to `gate`); -1: bad. */
    int (*proposed)(void *arg, struct sandbox *s, struct ipc *gate, struct msg *m);
    /* Its gate asks about previews of it (W_PREVIEW, W_PREVIEW_USED); -1: bad. */
    int (*preview)(void *arg, struct sandbox *s, struct ipc *gate, struct msg *m);
    void *arg;
    LIST_HEAD(, sandbox) list; /* every sandbox that is not freed */
};

struct sandbox *sandbox_find(struct sandbox_owner *owner, const char *id);
struct sandbox *sandbox_next(struct sandbox_owner *owner,
                             const struct sandbox *s); /* NULL: first */

/* Takes over the plan's content and the client's channel. NULL when memory is out. The sandbox
 * begins at once if there are a builder and a journal, else at sandbox_begin. */
struct sandbox *sandbox_new(struct sandbox_owner *owner, struct sandbox_plan *plan,
                            struct ipc *client);
void sandbox_free(struct sandbox *s);

enum sandbox_state sandbox_state(const struct sandbox *s);
const char *sandbox_state_name(enum sandbox_state st);
bool sandbox_state_may(enum sandbox_state from, enum sandbox_state to);
const char *sandbox_id(const struct sandbox *s);
const char *sandbox_policy(const struct sandbox *s);
const struct run_request *sandbox_request(const struct sandbox *s);
const struct denials *sandbox_denials(const struct sandbox *s);
void sandbox_called(struct sandbox *s, const struct denial_calls *calls); /* for its summary */
/* Somebody has it from now on: what was refused before is nothing to them, and these variables are
 * set in it. An object of texts. */
int sandbox_taken(struct sandbox *s, json_t *env, struct err *err);
const struct strlist *sandbox_env(const struct sandbox *s);
const char *sandbox_why(const struct sandbox *s); /* ENDING and GONE: why it ended; "" */
/* A name that it was given before it was adopted; in the order of their indexes. */
void sandbox_restore_name(struct sandbox *s, const char *host);
/* It has these labels from now on. An object of texts. */
void sandbox_label(struct sandbox *s, json_t *labels);
/* A message to durward-init of a kept sandbox; taken over. -1: it is not running, or too long. */
int sandbox_tell(struct sandbox *s, struct msg *m);

/* A builder or a journal arrived: begin, if nothing else is missing and it has not. */
void sandbox_begin(struct sandbox *s);
/* The builder's process died: what it was building has failed. */
void sandbox_builder_down(struct sandbox *s);
/* W_BUILT, after its sandbox:str was read. -1: the message is bad. */
int sandbox_built(struct sandbox *s, struct msg *m);
/* W_TORN */
void sandbox_torn(struct sandbox *s);
/* A gate's channel; replaces that of a gate that died. */
void sandbox_gate(struct sandbox *s, int fd);
/* A message to its gate; taken over. -1: there is none just now. */
int sandbox_tell_gate(struct sandbox *s, struct msg *m);
/* A message of the client after W_RUN. -1: bad. */
int sandbox_client_message(struct sandbox *s, struct msg *m);
/* Something of ours listens on this port of the host, or no longer: no rule leads there. */
void sandbox_port_own(const struct sandbox_owner *owner, unsigned port, bool on);
/* The client's channel is gone (and freed by the caller). */
void sandbox_client_gone(struct sandbox *s);
/* End it, with this exit status for the client; text says why when the status is ours. */
void sandbox_end(struct sandbox *s, uint32_t status, const char *text);

#endif
