/* The SSH broker's back: one request of a front's, from its facts to its record. Shared by the
 * files of this room only. */
#ifndef DURWARD_SSH_BACK_H
#define DURWARD_SSH_BACK_H

#include "back.h"
#include "back_request.h"
#include "push_stream.h"
#include "secret.h"
#include "ssh_facts.h"
#include "ssh_pump.h"
#include "ssh_recording.h"

#include <libssh/callbacks.h>
#include <sys/queue.h>
#include <time.h>

enum {
    SSH_PUSH_TOTAL = 128 << 20,   /* of pushes that are held until they are decided, */
    SSH_PUSH_EACH = 32 << 20,     /* of one sandbox */
    SSH_AGENT_REQUESTS_MAX = 256, /* of the agents of a policy's sandboxes, */
    SSH_AGENT_REQUESTS_OF_ONE = 32,
    SSH_AGENT_KEYS_MAX = 16, /* in a list */
    SSH_LOGIN_SECONDS = 30,  /* from the connection to the server's having begun */
};

struct sftp_session;
struct ssh_agent_request;
struct ssh_request;

struct ssh_back {
    struct back *back;
    struct quota pushes;
    LIST_HEAD(, ssh_request) requests;
    uint64_t tickets; /* of sessions of sftp that wait for others' renames */
    struct quota agents;
    struct quota looking; /* bytes of memory, for recordings */
    LIST_HEAD(, ssh_agent_request) agent_requests;
};

enum request_state {
    REQUEST_KEY = 0,   /* the vault says the public key */
    REQUEST_ADMITTING, /* approval, budgets, the record */
    REQUEST_DIALLING,
    REQUEST_EXCHANGE, /* of keys; the server's is compared */
    REQUEST_LOGIN,
    REQUEST_OPENING, /* a channel */
    REQUEST_TERMINAL,
    REQUEST_ASKING, /* exec or shell */
    REQUEST_RUNNING,
};

/* The agent that libssh asks: it finds its answers in the socket already. */
struct ssh_agent_of {
    int fd;     /* our end; -1: none */
    int theirs; /* libssh's, which closes only the last that it was given; -1: none */
    struct sign_wait *wait;
    bool asked, signed_; /* what is to be signed is known; the signature is there */
    struct buf public, signature;
};

/* CHOOSE: which methods has the server? SEND: by that for passwords; ASKED: by that which asks;
 * ANSWER: it has asked for one. */
enum password_step { PASSWORD_CHOOSE = 0, PASSWORD_SEND, PASSWORD_ASKED, PASSWORD_ANSWER };

struct ssh_password_of {
    enum password_step step;
    struct sign_wait *wait;
    struct secret *value; /* until it is sent; NULL: it is not here */
    bool given;           /* the server has it, and may say it again */
    unsigned rounds;
};

struct ssh_request {
    struct ssh_back *of;
    struct back_request request;
    struct ssh_facts facts;
    enum request_state state;
    struct secret_wait *key;
    struct dial_wait *dial;
    char address[64];
    struct broker_stream *stream;
    ssh_session session;
    struct ssh_pump *pump;
    ssh_channel channel;
    struct ssh_channel_callbacks_struct callbacks;
    struct ssh_agent_of agent;
    struct ssh_password_of password;
    struct buf in, out;       /* of the front, for the server; of the server, for the front */
    struct push_stream *push; /* of a rule with `refs`: until it is with the server */
    bool push_passes;
    struct ssh_recording *recording; /* where its rule asks for one */
    struct sftp_session *sftp;       /* of the subsystem sftp, once the server runs it */
    bool aside, in_end, in_end_sent, out_end, status_sent;
    bool left,
        far_closed; /* of a forward: its client has gone, having said all; the server closed */
    bool has_status;
    struct ssh_status status;
    LIST_ENTRY(ssh_request) link;
};

/* ssh_request.c: the front is told, the record is written, it is freed. */
void ssh_request_refuse(struct ssh_request *q, const char *code, const char *text);
/* A push that may not be: on record as denied, and refused. */
void ssh_request_deny(struct ssh_request *q, const char *code, const char *detail);
void ssh_request_turn(void *request, bool late);
void ssh_requests_again(struct ssh_back *of); /* under another policy */
int ssh_request_new(struct ssh_back *of, const struct back_asked *asked);

/* ssh_agent_request.c: the same, of the agent inside a sandbox. */
void ssh_agent_requests_again(struct ssh_back *of);
int ssh_agent_request_new(struct ssh_back *of, const struct back_asked *asked);

/* ssh_login.c: the keys are exchanged with a server whose key the rule names; the login.
 * 1: done; 0: go on later; -1: refused with *code and *text. */
int ssh_login_begin(struct ssh_request *q, int fd);
int ssh_login_exchange(struct ssh_request *q, const char **code, const char **text);
int ssh_login_log_in(struct ssh_request *q, const char **code, const char **text);
void ssh_login_done(struct ssh_request *q);

/* ssh_password.c: the login of a rule with a password, in the same way; 2: the request is gone. */
int ssh_password_log_in(struct ssh_request *q, const char **code, const char **text);
void ssh_password_done(struct ssh_request *q);

/* ssh_carry.c: bytes both ways, and the end. True: it is over. */
bool ssh_carry(struct ssh_request *q);
int ssh_carry_up(void *request, struct slice bytes); /* back_request_ops.up, .more, .spent */
void ssh_carry_more(void *request);
void ssh_carry_spent(void *request);
extern const struct broker_stream_ops ssh_carry_ops;

#endif
