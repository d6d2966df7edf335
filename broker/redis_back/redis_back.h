/* The Redis broker's back: sessions at servers, from a front's wish to their records. Shared by the
 * files of this room only. */
#ifndef DURWARD_REDIS_BACK_H
#define DURWARD_REDIS_BACK_H

#include "back.h"
#include "back_link.h"
#include "back_request.h"
#include "io.h"
#include "redis_judge.h"

#include <sys/queue.h>

enum {
    REDIS_LOGIN_SECONDS = 30, /* from the connection to the first command */
    REDIS_IO = BACK_LINK_IO,
    REDIS_WRITTEN_MAX = RESP_HELD_MAX + 2 * BROKER_PACKET_MAX, /* what becomes of a packet */
    REDIS_USER_MAX = 255,
    REDIS_PASSWORD_MAX = 1024,
    REDIS_DOWN_MAX = 2 * REDIS_IO,
    REDIS_NAMES = 64, /* commands of a session that are on record */
};

struct redis_back {
    struct back *back;
    LIST_HEAD(, redis_session) sessions;
};

enum session_state {
    SESSION_LOGIN = 0, /* the vault says as whom */
    SESSION_ADMITTING,
    SESSION_LINKING,
    SESSION_PASSWORD,  /* asked of the vault */
    SESSION_ANSWER,    /* the server's, to the password */
    SESSION_SELECTING, /* the rule's database */
    SESSION_RUNNING,
};

struct redis_session {
    struct redis_back *of;
    struct back_request request;
    char user[REDIS_USER_MAX + 1];
    enum session_state state;
    struct secret_wait *login;
    struct sign_wait *proof;
    struct back_link link;
    struct event *clock;
    struct broker_stream *stream;
    struct resp_commands commands; /* the front's */
    struct redis_judged judged;
    bool word;        /* the front's own, in the place of what it has refused */
    struct buf down;  /* for the front */
    bool up_end;      /* the front has no more to say, */
    bool server_gone; /* nor has the server */
    uint64_t n_commands;
    struct {
        const struct redis_command *command;
        uint64_t n;
    } names[REDIS_NAMES];
    size_t n_names;
    LIST_ENTRY(redis_session) entry;
};

/* redis_session.c */
int redis_session_new(struct redis_back *of, const struct back_asked *asked);
bool redis_session_without_login(const struct redis_session *s); /* a certificate is all of it */
void redis_sessions_again(struct redis_back *of);                /* under another policy */
void redis_session_refuse(struct redis_session *s, const char *code, const char *text);
void redis_session_end(struct redis_session *s, enum record_kind kind, const char *code,
                       const char *detail);

/* redis_carry.c */
void redis_carry_begin(struct redis_session *s); /* the link is up */
void redis_carry_stop(struct redis_session *s, const char *code, const char *text);
int redis_carry_up(void *session, struct slice bytes); /* back_request_ops.up, .more, .spent */
void redis_carry_more(void *session);
void redis_carry_spent(void *session);
extern const struct broker_stream_ops redis_carry_ops;

#endif
