/* The mailbox broker's back: sessions at servers, from a front's wish to their records. Shared by
 * the files of this room only. */
#ifndef DURWARD_IMAP_BACK_H
#define DURWARD_IMAP_BACK_H

#include "back.h"
#include "back_link.h"
#include "back_login.h"
#include "back_request.h"
#include "imap_answer.h"
#include "imap_did.h"
#include "imap_response.h"
#include "io.h"

#include <sys/queue.h>

enum {
    IMAP_LOGIN_SECONDS = 60, /* from the connection to the first command */
    IMAP_IO = BACK_LINK_IO,
    IMAP_WRITTEN_MAX = IMAP_OUT_MAX + 2 * BROKER_PACKET_MAX,
    IMAP_DOWN_MAX = 4 * IMAP_IO,
    IMAP_CAME_MAX = 3 * IMAP_IO,
};

struct imap_back {
    struct back *back;
    LIST_HEAD(, imap_session) sessions;
};

enum session_state {
    SESSION_SECRET = 0, /* the vault says as whom */
    SESSION_ADMITTING,
    SESSION_LINKING,
    SESSION_GREETING, /* from here on the server's answer to it is awaited */
    SESSION_ASKING,   /* CAPABILITY, in clear */
    SESSION_STARTTLS,
    SESSION_SECURE_ASKING, /* the same, in TLS */
    SESSION_PASSWORD,      /* asked of the vault */
    SESSION_AUTH,          /* it is to say that it waits for the proof */
    SESSION_PROOF,
    SESSION_LAST_ASKING, /* CAPABILITY, of who is logged in */
    SESSION_RUNNING,
};

/* What is awaited of the server in SESSION_RUNNING. */
enum session_turn {
    TURN_IDLE = 0, /* nothing: the front may say a command */
    TURN_WORDS,    /* that it waits for what is left of the command */
    TURN_MESSAGE,  /* that it waits for a message */
    TURN_COMING,   /* nothing: a message comes */
    TURN_TAIL,     /* nothing: its line's end comes */
    TURN_LISTEN,   /* that it idles */
    TURN_DONE,     /* nothing: the front says DONE */
    TURN_END,      /* the command's end */
};

struct imap_session {
    struct imap_back *of;
    struct back_request request;
    struct back_login login;
    enum session_state state;
    enum session_turn turn;
    struct imap_server server;
    struct secret_wait *secret;
    struct sign_wait *proof;
    struct back_link link;
    struct event *clock;
    struct broker_stream *stream;
    unsigned tag; /* of the last command */
    /* the front's */
    struct imap_reader reader;
    struct imap_command command;
    struct buf said;  /* what has come of a command, */
    struct buf up;    /* and what of it is still to be written */
    uint64_t message; /* of a message that comes, what is left */
    char selected[IMAP_DID_NAME], selecting[IMAP_DID_NAME]; /* mailboxes */
    bool *gone;                                             /* set when it is */
    /* the server's */
    struct buf came;
    struct imap_responses responses;
    struct buf down, status; /* for the front, in this order; status n 0: none */
    uint64_t n_commands;
    struct imap_did did;
    LIST_ENTRY(imap_session) entry;
};

/* imap_open.c */
int imap_session_new(struct imap_back *of, const struct back_asked *asked);
void imap_sessions_again(struct imap_back *of); /* under another policy */
void imap_session_refuse(struct imap_session *s, const char *code, const char *text);
void imap_session_end(struct imap_session *s, enum record_kind kind, const char *code,
                      const char *detail);

/* imap_login.c */
void imap_login_begin(struct imap_session *s); /* the link is up */
/* A response, before SESSION_RUNNING. It may be gone. */
void imap_login_answer(struct imap_session *s, const struct imap_answer *a);

/* imap_carry.c: what comes from the server */
void imap_carry_begin(struct imap_session *s); /* its events are handled here from now on */
void imap_carry_stop(struct imap_session *s, const char *code, const char *text);
void imap_carry_more(void *session); /* back_request_ops.more, .spent */
void imap_carry_spent(void *session);
extern const struct broker_stream_ops imap_carry_ops;

/* imap_say.c: what the front has said */
int imap_say_up(void *session, struct slice bytes); /* back_request_ops.up */
/* The server waits for more. False: it should not. */
bool imap_say_more(struct imap_session *s);
void imap_say_ended(struct imap_session *s, bool good);               /* the command */
bool imap_say_is_tag(const struct imap_session *s, struct slice tag); /* the last one */
/* A line to the server with a tag of its own. -1: memory, and the session is gone. */
int imap_say_line(struct imap_session *s, const char *fmt, ...) PRINTF(2, 3);

#endif
