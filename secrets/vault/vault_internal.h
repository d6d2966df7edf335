/* The vault's files share these: channels of injectors, entries, secrets that are made. */
#ifndef DURWARD_VAULT_INTERNAL_H
#define DURWARD_VAULT_INTERNAL_H

#include "captured.h"
#include "ipc.h"
#include "quota.h"
#include "trace.h"
#include "derived.h"
#include "vault.h"
#include "vault_entry.h"

#include <sys/queue.h>

enum { VAULT_OWNER_MAX = 140 }; /* "POLICY|SANDBOX" */

enum vault_state { VAULT_EMPTY, VAULT_READY, VAULT_ENDED };

struct minting;
struct vault_home;
struct tried;
struct host_sign;

/* How often an endpoint is asked because a server refused what it gave (vault_renew.c). */
struct vault_turn {
    int64_t asked_at; /* ms, monotonic, for whatever reason; 0: never */
    unsigned wait;    /* seconds from then on in which no refusal counts; 0: the least */
};

/* One secret: its entry, and how it is made, if it is. */
struct held_secret {
    struct vault_entry *entry;
    struct derived *mint;    /* NULL: it is stored somewhere */
    struct minting *minting; /* under way */
    struct secret *rotated;  /* a refresh token in place of the configured one, which has the */
    char rotated_for[65];    /* SHA-256 */
    unsigned lease;          /* seconds that its login gave; renewals that give less than half */
    uint32_t keep_req;       /* of a rotated token that is being written; 0: none */
    struct vault_turn turn;  /* of its endpoint */
    char refused[65];        /* SHA-256 of the value that is made anew before its time, or "" */
};

struct channel {
    struct vault *vault;
    struct ipc *ipc;
    uint32_t number;
    char policy[65];
    bool *released; /* by index of the vault's secrets */
    bool broker;    /* a back's: it is told public halves, and has logins signed */
    unsigned asked;
    struct quota agents;    /* signatures of agents, by sandbox (vault_agent.c) */
    struct tracing tracing; /* what comes next */
    LIST_HEAD(, asked) list;
    LIST_ENTRY(channel) link;
};

struct vault {
    struct event_base *base;
    struct ipc *control;
    enum vault_state state;
    bool finishing; /* it ends once no refresh token is being replaced */
    bool confine;
    struct vault_hooks hooks;
    struct held_secret *secrets;
    size_t n;
    const struct token_fetcher *fetcher; /* NULL: no token can be had */
    struct captured *captured;
    struct vault_home *home; /* vault_home.c; NULL: no sandbox has one */
    unsigned channels;
    uint32_t last_req; /* of W_STORE_OPEN and W_TOKEN_SAVE */
    LIST_HEAD(, channel) list;
    LIST_HEAD(, tried) tries; /* vault_try.c */
    unsigned n_tries;
    LIST_HEAD(, host_sign) host_signs; /* vault_agent.c */
    struct quota agents;               /* those, by policy */
    int down;                          /* secrets that cannot be read */
};

/* n when there is none. */
size_t vault_index(const struct vault *v, struct slice name);
/* The secret of this entry. */
struct held_secret *vault_secret_of(struct vault *v, const struct vault_entry *e);

/* vault_mint.c: the entry's hooks. */
void vault_mint_start(void *vault, struct vault_entry *e);
void vault_mint_stop(void *vault, struct vault_entry *e);
/* W_TOKEN_SAVED and W_STORE_FD of what was kept: 0, or -1 when the message is bad. */
int vault_mint_saved(struct vault *v, struct msg *m);
int vault_mint_found(struct vault *v, struct msg *m);
/* W_VAULT_FINISH. -1: bad. */
int vault_mint_finish(struct vault *v, struct msg *m);
void vault_end_if_finished(struct vault *v);
void vault_end(struct vault *v); /* its loop is left */

/* vault_mint.c: W_LOGIN_LOCKED and W_LOGIN_SAVED: 0, or -1 when the message is bad. */
int vault_login_locked(struct vault *v, struct msg *m);
int vault_login_saved(struct vault *v, struct msg *m);

/* vault_renew.c: W_SECRET_REFUSED on an injector's channel. 0 or -1. */
int vault_refused(struct channel *c, struct msg *m);
void vault_renew_asked(struct held_secret *s); /* its endpoint is, for whatever reason */
/* False: it is too soon. */
bool vault_turn_take(struct vault_turn *t, int64_t now);

/* vault_sign.c: W_SIGN on an injector's channel. 0 or -1. */
int vault_sign(struct channel *c, struct msg *m);
int vault_sign_text(struct channel *c, struct msg *m); /* the same of W_SIGN_TEXT */

/* vault_captured.c: W_CAPTURE, W_CAPTURED_GET, and W_CAPTURED_GONE on the control channel. */
int vault_capture(struct channel *c, struct msg *m);
int vault_captured_get(struct channel *c, struct msg *m);
int vault_captured_all(struct channel *c, struct msg *m);
/* A key of this sandbox's, borrowed; NULL: there is none. */
struct secret *vault_captured_key(struct channel *c, const char *sandbox, struct slice name);
int vault_captured_gone(struct vault *v, struct msg *m);
void vault_captured_refuse(struct channel *c, uint32_t req, const char *why); /* a W_CAPTURE */

/* vault_home.c: W_HOME and W_HOME_KEPT. 0, or -1 when the message is bad. */
int vault_home_told(struct vault *v, struct msg *m);
int vault_home_kept(struct vault *v, struct msg *m);
/* What was captured for this owner goes into the home. */
bool vault_home_takes(const struct channel *c, const char *owner, const struct captured_field *f,
                      size_t n);
/* Has it written. What the channel gets once it is: to be filled in, and sent by whoever hears of
 * the file. NULL with err. */
struct msg *vault_home_save(struct channel *c, uint32_t asked, const struct captured_field *f,
                            size_t n, struct err *err) WUNUSED;
void vault_home_left(struct channel *c); /* it goes */
bool vault_home_busy(const struct vault *v);
void vault_home_free(struct vault *v);
/* vault_try.c: W_SECRET_TRY of the parent. 0, or -1 when the message is bad. */
int vault_try(struct vault *v, struct msg *m);
void vault_tries_free(struct vault *v);

/* A text that a key is to sign by its own way, and for whom. */
struct text_to_sign {
    char sandbox[65];
    uint32_t scheme;
    size_t n;
    char text[];
};

/* vault_agent.c: a text by the agent that has this value's key: W_SIGNED is sent later. -1 with
 * err: it may not be signed, or cannot be asked for. */
int vault_agent_sign(struct channel *c, uint32_t req, const struct derived *d, struct slice value,
                     const struct text_to_sign *t, struct err *err);
/* Nobody waits for what a channel asked for. */
void vault_agent_left(struct channel *c);
/* The parent's answer: true when it was for such a signature; takes fd then. */
bool vault_agent_opened(struct vault *v, uint32_t req, int fd, const char *why);
void vault_agent_init(struct vault *v);
void vault_agent_begin(struct channel *c);

/* A request of a channel that waits for an entry; freed with the channel. */
struct asked {
    struct channel *channel;
    uint32_t req;
    struct vault_wait *wait;
    const struct derived *of; /* how the secret is made; NULL: it is stored */
    struct trace trace;
    void *more; /* owned, wiped by its size when freed; NULL for none */
    LIST_ENTRY(asked) link;
};
struct asked *vault_asked_new(struct channel *c, uint32_t req);
void vault_asked_free(struct asked *a);

#endif
