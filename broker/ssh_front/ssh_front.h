/* The SSH broker's front: one connection of a sandbox's, its channels, and what each asks for.
 * Shared by the files of this room only. */
#ifndef DURWARD_SSH_FRONT_H
#define DURWARD_SSH_FRONT_H

#include "front.h"
#include "push_stream.h"
#include "scp_session.h"
#include "ssh_facts.h"
#include "ssh_pump.h"

#include <libssh/callbacks.h>
#include <libssh/server.h>
#include <sys/queue.h>

enum {
    SSH_CONNECTIONS_MAX = 128,  /* of a sandbox, */
    SSH_CHANNELS_MAX = 16,      /* of a connection, at once */
    SSH_PUSH_TOTAL = 64 << 20,  /* of pushes that are held until they are decided; half is one's */
    SSH_AGENT_CLIENTS_MAX = 16, /* of a sandbox, */
    SSH_AGENT_REFUSALS_MAX = 100, /* of one of these; then it ends */
    SSH_AGENT_LIST_SECONDS = 60,
    SSH_WASTE_MAX =
        64 << 20, /* of a refused push, which its client sends whole before it listens */
};

struct sftp_client;
struct ssh_agent_client;
struct ssh_connection;

struct ssh_front {
    struct front *front;
    ssh_bind bind; /* our host key, and what is spoken */
    size_t n_connections;
    struct quota pushes;
    LIST_HEAD(, ssh_connection) connections;
    size_t n_agent_clients;
    LIST_HEAD(, ssh_agent_client) agent_clients;
};

/* One `session` channel, asked for one thing, once; or a forward, asked for as it is opened. */
enum channel_state {
    CHANNEL_OPEN = 0, /* nothing is asked yet */
    CHANNEL_ASKED,
    CHANNEL_RUNNING, /* the back has it */
    CHANNEL_ENDED, /* its status is known, or that there is none; bytes may still be on their way to
                      the client */
    CHANNEL_CLOSED,
};

/* Of a push whose rule has `refs`. */
enum push_state {
    PUSH_NONE = 0,
    PUSH_HELD,     /* not decided yet */
    PUSH_PASSES,   /* what was held is on its way */
    PUSH_REFUSED,  /* the client will be told, once it has what the server said before */
    PUSH_ANSWERED, /* it was told, and may still be sending */
};

struct ssh_channel_of {
    struct ssh_connection *connection;
    ssh_channel channel;
    struct ssh_channel_callbacks_struct callbacks;
    enum channel_state state;
    struct ssh_facts facts;
    bool relative; /* the repository's path: see ssh_command_read */
    struct broker_stream *stream;
    struct buf in;  /* of the client, for the back: one packet at most */
    struct buf out; /* of the back, for the client: one packet at most */
    bool aside;     /* that is standard error's */
    bool eof_sent, has_status;
    bool down_end, down_end_sent; /* of a forward: the server's end has said all, */
    bool leaving;                 /* and its client closed it, having said all */
    struct ssh_status status;
    struct policy *policy;    /* whose rule its push is held against; a reference */
    const struct rule *rule;  /* that one */
    struct push_stream *push; /* what the client says of it, until it is with the back */
    enum push_state push_state;
    size_t wasted;
    struct sftp_client *sftp; /* of the subsystem sftp */
    TAILQ_ENTRY(ssh_channel_of) link;
};

struct ssh_connection {
    struct ssh_front *of;
    struct authority at;
    ssh_session session;
    struct ssh_pump *pump;
    struct ssh_server_callbacks_struct server;
    struct ssh_callbacks_struct common;
    char user[SSH_USER_MAX + 1];
    bool exchanged; /* keys */
    size_t n_channels;
    char why[300]; /* something was refused or ended; the client is told in a turn; "": nothing */
    TAILQ_HEAD(ssh_channels, ssh_channel_of) channels;
    LIST_ENTRY(ssh_connection) link;
};

/* ssh_connection.c: takes fd. */
void ssh_connection_new(struct ssh_front *of, const struct authority *at, int fd);

/* ssh_agent_client.c: likewise, a client of the agent inside. */
void ssh_agent_client_new(struct ssh_front *of, const struct authority *at, int fd);

/* ssh_channel.c */
ssh_channel ssh_channel_new_of(struct ssh_connection *c);
/* What can be done for it now: ask, read, write, close. */
void ssh_channel_turn(struct ssh_channel_of *h);
void ssh_channel_drop(struct ssh_channel_of *h);
/* To the client's standard error, and the end. */
void ssh_channel_say(struct ssh_channel_of *h, const char *code, const char *words,
                     uint32_t status);
extern const struct broker_stream_ops ssh_channel_stream_ops;
const char *ssh_channel_words(const char *code); /* of a refusal */
/* On record as refused. */
void ssh_facts_note(struct ssh_connection *c, const struct ssh_facts *f, const char *code,
                    const struct rule *rule, const char *detail);
void ssh_channel_note(struct ssh_channel_of *h, const char *code, const struct rule *rule,
                      const char *detail);

/* ssh_forward.c: a channel by which the server connects to somewhere. 0: it is open; -1: it is
 * refused, which libssh says. */
int ssh_forward_open(struct ssh_connection *c, ssh_message m);
bool ssh_forward_is(const struct ssh_channel_of *h);
void ssh_forward_over(struct ssh_channel_of *h, const char *code, const char *words);
void ssh_forward_turn(struct ssh_channel_of *h);

/* ssh_push.c: a push whose rule has `refs`. 0, or -1: memory is out. */
int ssh_push_begin(struct ssh_channel_of *h, const struct rule *rule);
/* True: it is decided, and goes on (or there is none). */
bool ssh_push_turn(struct ssh_channel_of *h);
/* It is refused: what the back sends is not for the client. */
bool ssh_push_refused(const struct ssh_channel_of *h);
void ssh_push_end(struct ssh_channel_of *h);

/* ssh_sftp.c: the subsystem sftp, also for a client that asked for scp as it was (else NULL). 0, or
 * -1: memory is out. */
int ssh_sftp_begin(struct ssh_channel_of *h, const struct rule *rule,
                   const struct scp_command *scp);
/* The back's words: where the server begins, and replies. -1: they are none. */
int ssh_sftp_opened(struct ssh_channel_of *h, struct slice s);
int ssh_sftp_down(struct ssh_channel_of *h, struct slice s);
void ssh_sftp_up(struct ssh_channel_of *h); /* what the client asks, as long as the back takes it */
void ssh_sftp_again(
    struct ssh_channel_of *h); /* that waited for the client, which has its answers */
/* How that ended, in place of how the server's subsystem did. */
void ssh_sftp_status(struct ssh_channel_of *h);
void ssh_sftp_end(struct ssh_channel_of *h);

/* What was asked beside a command: on record as refused. */
void ssh_refuse_other(struct ssh_connection *c, const char *code, const char *what);

#endif
