/* The mailbox broker's front: connections of a sandbox's. Shared by the files of this room only. */
#ifndef DURWARD_IMAP_FRONT_H
#define DURWARD_IMAP_FRONT_H

#include "front.h"
#include "front_tls.h"
#include "imap_command.h"
#include "imap_response.h"
#include "io.h"

#include <sys/queue.h>

enum {
    IMAP_CLIENTS_MAX = 128, /* of a sandbox */
    IMAP_IO = 64 * 1024,
    IMAP_UP_MAX = IMAP_OUT_MAX + IMAP_IO,
    IMAP_DOWN_MAX = 4 * IMAP_IO,
    IMAP_REFUSALS_MAX = 200, /* of a connection; then it ends */
    IMAP_LINE_MAX = 12288,   /* of AUTHENTICATE's answers */
    IMAP_ANSWER = 600,
};

struct imap_front {
    struct front *front;
    size_t n_clients;
    LIST_HEAD(, imap_client) clients;
};

enum client_state {
    CLIENT_SILENT = 0, /* before the greeting: TLS goes first */
    CLIENT_COMMANDS,
    CLIENT_AUTH,     /* it says as whom, to nobody */
    CLIENT_OPENING,  /* the back is asked for a session */
    CLIENT_WAITING,  /* the back has a command, and is to say what came of it */
    CLIENT_MESSAGE,  /* of APPEND: it comes, */
    CLIENT_TAIL,     /* and its line's end */
    CLIENT_IDLE,     /* until DONE */
    CLIENT_DROPPING, /* a literal of a command that was refused, and its line's end */
};

struct imap_client {
    struct imap_front *of;
    struct authority at;
    struct io *io;
    struct front_tls tls;
    enum client_state state;
    bool secure, wants_tls; /* what it says comes in TLS; TLS is to begin */
    bool logged;            /* there is a session */
    unsigned more;          /* lines of AUTHENTICATE that follow */
    unsigned refusals;
    struct policy *policy; /* whose rule it is; a reference */
    const struct rule *rule;
    struct imap_reader reader;
    struct imap_command command;
    char tag[IMAP_TAG_MAX + 1]; /* of the command that is under way */
    enum imap_verb verb;        /* and which it is */
    bool waits, came;           /* its client waits to be told to go on; the server was told */
    uint64_t left;              /* of a message, or of what is dropped */
    unsigned has;               /* enum imap_extension: of the server */
    struct broker_stream *stream;
    struct buf up;     /* for the back */
    struct buf status; /* what came of a long one */
    bool blocked;      /* the stream is full */
    LIST_ENTRY(imap_client) link;
};

/* imap_client.c */
void imap_client_new(struct imap_front *of, const struct authority *at, int fd);
void imap_client_free(struct imap_client *c, bool flushed);
/* A line to the client. -1: it is gone. */
int imap_tell(struct imap_client *c, const char *fmt, ...) PRINTF(2, 3);
/* The last line; it is gone. */
void imap_bye(struct imap_client *c, const char *code, const char *text);
/* A reply that refuses, "NO" or "BAD", of which a connection has so many. -1: it is gone. */
int imap_no(struct imap_client *c, const char *status, const char *text, const char *code);
void imap_denied(struct imap_client *c, const char *code, const char *detail);
/* What does not follow the protocol: on record, and the connection ends. */
void imap_violation(struct imap_client *c, const char *why);
/* Goes on with what is in its input. It may be gone. */
void imap_turn(struct imap_client *c);

/* imap_commands.c: there is something in its input, in CLIENT_COMMANDS or CLIENT_AUTH. 0: it has to
 * wait; 1: go on; -1: the client is gone. */
int imap_next_command(struct imap_client *c);
int imap_next_answer(struct imap_client *c);
int imap_capability(struct imap_client *c, const char *before, const char *behind);

/* imap_session.c: what goes to the back, and what comes from there. */
int imap_open(struct imap_client *c);
/* The command that was read goes on. -1: the client is gone. */
int imap_send(struct imap_client *c);
int imap_next_bytes(struct imap_client *c); /* as imap_next_command, in the other states */

#endif
