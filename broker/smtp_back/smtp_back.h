/* The mail broker's back: messages on their way to servers, from a front's wish to their records.
 * Shared by the files of this room only. */
#ifndef DURWARD_SMTP_BACK_H
#define DURWARD_SMTP_BACK_H

#include "back.h"
#include "back_link.h"
#include "back_login.h"
#include "back_request.h"
#include "io.h"
#include "smtp_facts.h"
#include "smtp_message.h"
#include "smtp_reply.h"

#include <sys/queue.h>

enum {
    SMTP_LOGIN_SECONDS = 60, /* from the connection to the message's text */
    SMTP_END_SECONDS = 300,  /* for the answer to it (RFC 5321, 4.5.3.2.6) */
    SMTP_IO = BACK_LINK_IO,
    SMTP_WRITTEN_MAX = 2 * BROKER_PACKET_MAX, /* what becomes of a packet: all of it dots */
};

struct smtp_back {
    struct back *back;
    LIST_HEAD(, smtp_session) sessions;
};

enum session_state {
    SESSION_SECRET = 0, /* the vault says as whom */
    SESSION_ADMITTING,
    SESSION_LINKING,
    SESSION_GREETING, /* from here on the server's reply to it is awaited */
    SESSION_EHLO,
    SESSION_STARTTLS,
    SESSION_SECURE_EHLO,
    SESSION_PASSWORD, /* asked of the vault */
    SESSION_USER,     /* of AUTH LOGIN */
    SESSION_PROOF,
    SESSION_AUTH,
    SESSION_MAIL,
    SESSION_RCPT,
    SESSION_DATA,
    SESSION_TEXT, /* nothing is awaited */
    SESSION_ENDING,
};

struct smtp_session {
    struct smtp_back *of;
    struct back_request request;
    char *said; /* the facts, in which the envelope lies */
    struct smtp_facts facts;
    struct back_login login;
    enum session_state state;
    struct smtp_server server;
    struct secret_wait *secret;
    struct sign_wait *proof;
    struct back_link link;
    struct smtp_writer writer;
    size_t recipient; /* whose reply is awaited */
    bool front_gone;
    struct broker_stream *stream;
    LIST_ENTRY(smtp_session) entry;
};

/* smtp_session.c */
int smtp_session_new(struct smtp_back *of, const struct back_asked *asked);
void smtp_sessions_again(struct smtp_back *of); /* under another policy */
void smtp_session_refuse(struct smtp_session *s, const char *code, const char *text);
void smtp_session_end(struct smtp_session *s, enum record_kind kind, const char *code,
                      const char *detail);

/* smtp_talk.c: what is said to the server. */
void smtp_talk_begin(struct smtp_session *s); /* the link is up */
void smtp_talk_stop(struct smtp_session *s, const char *code, const char *text);
int smtp_talk_up(void *session, struct slice bytes); /* back_request_ops.up, .more, .spent */
void smtp_talk_more(void *session);
void smtp_talk_spent(void *session);
extern const struct broker_stream_ops smtp_talk_ops;

/* smtp_login.c */
void smtp_login_ask(struct smtp_session *s);   /* the password of the vault; then AUTH */
void smtp_login_proof(struct smtp_session *s); /* SESSION_PROOF: the server wants it */
/* Of the refusal of a login the status alone, "5.7.8" (RFC 3463), where there is one: its words may
 * hold that login in any form. */
void smtp_login_code(const struct smtp_reply *r, char *text, size_t size);

/* A line to the server, with its end; no secret of it stays in memory. -1: memory. */
int smtp_tell(struct smtp_session *s, const char *fmt, ...) PRINTF(2, 3);

#endif
