/* The mail broker's front: connections of a sandbox's. Shared by the files of this room only. */
#ifndef DURWARD_SMTP_FRONT_H
#define DURWARD_SMTP_FRONT_H

#include "front.h"
#include "front_tls.h"
#include "io.h"
#include "smtp_command.h"
#include "smtp_facts.h"
#include "smtp_message.h"

#include <sys/queue.h>

enum {
    SMTP_CLIENTS_MAX = 128, /* of a sandbox */
    SMTP_IO = 64 * 1024,
    SMTP_UP_MAX = 4 * SMTP_IO,
    SMTP_DOWN_MAX = 64 * 1024,
    SMTP_ERRORS_MAX = 100,  /* replies of a connection that refuse; then it ends */
    SMTP_END_SECONDS = 320, /* for the server's answer to a message: it may take 300 (RFC 5321) */
    SMTP_ANSWER = 512,
};

struct smtp_front {
    struct front *front;
    size_t n_clients;
    LIST_HEAD(, smtp_client) clients;
};

enum client_state {
    CLIENT_SILENT = 0, /* before the greeting: TLS goes first */
    CLIENT_COMMANDS,
    CLIENT_AUTH,     /* it says as whom, to nobody */
    CLIENT_OPENING,  /* the back is asked */
    CLIENT_TEXT,     /* a message's */
    CLIENT_ENDED,    /* the server has it all, and is to say what came of it */
    CLIENT_DROPPING, /* the text of a message that was refused meanwhile */
};

struct smtp_client {
    struct smtp_front *of;
    struct authority at;
    struct io *io;
    struct front_tls tls;
    enum client_state state;
    bool secure, wants_tls; /* what it says comes in TLS; TLS is to begin */
    bool greeted, logged;   /* EHLO or HELO; AUTH */
    unsigned more;          /* lines of AUTH that follow */
    unsigned errors;
    struct policy *policy; /* whose rule it is; a reference */
    const struct rule *rule;
    bool has_sender;
    struct smtp_facts facts; /* of the message; its slices are of `names` */
    char *names[1 + SMTP_RECIPIENTS_MAX];
    struct smtp_reader text;
    struct broker_stream *stream;
    struct buf up;            /* for the back */
    bool blocked, ended;      /* the stream is full; the text has been read to its end */
    char answer[SMTP_ANSWER]; /* to a message that is dropped */
    LIST_ENTRY(smtp_client) link;
};

/* smtp_client.c */
void smtp_client_new(struct smtp_front *of, const struct authority *at, int fd);
void smtp_client_free(struct smtp_client *c, bool flushed);
/* A reply: "250 2.0.0 Ok". -1: the client is gone. */
int smtp_say(struct smtp_client *c, const char *text);
/* The same of a refusal, of which a connection has so many. */
int smtp_refuse(struct smtp_client *c, const char *text);
/* On record; what a reply says of it is the caller's. */
void smtp_denied(struct smtp_client *c, const char *code, const char *detail);
bool smtp_decide(struct smtp_client *c, const struct smtp_envelope *e, const char **code);

/* smtp_commands.c: a line of the client's. -1: the client is gone. */
int smtp_command(struct smtp_client *c, struct slice line);
int smtp_answer(struct smtp_client *c, struct slice line); /* in CLIENT_AUTH */
void smtp_forget(struct smtp_client *c);                   /* the message */

/* smtp_deliver.c: a message's text, and the back. */
int smtp_deliver(struct smtp_client *c); /* DATA; -1: the client is gone */
int smtp_text(struct smtp_client *c);    /* there is some in its input; the same */

/* Goes on with what is in its input. It may be gone. */
void smtp_turn(struct smtp_client *c);

#endif
