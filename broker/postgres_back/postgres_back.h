/* The PostgreSQL broker's back: sessions at servers, from a front's facts to their records. Shared
 * by the files of this room only. */
#ifndef DURWARD_POSTGRES_BACK_H
#define DURWARD_POSTGRES_BACK_H

#include "back.h"
#include "back_link.h"
#include "back_request.h"
#include "io.h"
#include "postgres_auth.h"
#include "postgres_message.h"
#include "postgres_rule.h"
#include "postgres_startup.h"

#include <sys/queue.h>

enum {
    POSTGRES_LOGIN_SECONDS = 30, /* from the connection to the first statement */
    POSTGRES_IO = BACK_LINK_IO,
    POSTGRES_DOWN_MAX = POSTGRES_IO + POSTGRES_WHOLE_MAX + 4096,
    POSTGRES_PRINTS = 64, /* fingerprints of a session that are on record */
    POSTGRES_PRINT = 16,
};

struct postgres_back {
    struct back *back;
    LIST_HEAD(, postgres_session) sessions;
};

enum session_state {
    SESSION_LOGIN = 0, /* the vault says as whom */
    SESSION_ADMITTING,
    SESSION_LINKING,
    SESSION_AUTHENTICATING,
    SESSION_STARTING, /* until the server is ready */
    SESSION_CHECKING, /* what the login may write */
    SESSION_RUNNING,
    SESSION_ENDING, /* the front gets what is left */
};

struct postgres_session {
    struct postgres_back *of;
    struct back_request request;
    char database[POSTGRES_NAME_MAX + 1], user[POSTGRES_NAME_MAX + 1];
    struct buf settings; /* of the sandbox, as texts of a startup */
    enum session_state state;
    struct secret_wait *login;
    struct sign_wait *proof;
    struct back_link link;
    struct postgres_reader reader;
    struct postgres_auth auth;
    struct postgres_cancel key;
    bool superuser, has_superuser; /* as it was said first */
    unsigned n_checked;            /* answers of what is asked before the session begins */
    struct event *clock;
    struct broker_stream *stream;
    struct buf down;                       /* for the front */
    bool up_end;                           /* the front has no more to say */
    uint64_t n_seen, n_rows, n_statements; /* bytes of whole messages; rows */
    struct {
        char text[POSTGRES_PRINT];
        uint64_t n;
    } prints[POSTGRES_PRINTS];
    size_t n_prints;
    struct postgres_cancelling *cancelling; /* at most one at a time */
    LIST_ENTRY(postgres_session) entry;
};

/* The request for TLS. */
#define POSTGRES_ASK SLICE("\0\0\0\x08\x04\xd2\x16\x2f")

/* postgres_session.c */
int postgres_session_new(struct postgres_back *of, const struct back_asked *asked);
bool postgres_session_without_login(const struct postgres_session *s); /* it has a certificate */
void postgres_sessions_again(struct postgres_back *of);                /* under another policy */
void postgres_session_refuse(struct postgres_session *s, const char *code, const char *text);
void postgres_session_end(struct postgres_session *s, enum record_kind kind, const char *code,
                          const char *detail);

/* postgres_login.c: from a link that is up to a server that is ready. Each returns 0, or -1 when
 * the session is gone. */
int postgres_login_begin(struct postgres_session *s);
int postgres_login_message(struct postgres_session *s, const struct postgres_part *m);
/* A setting that the server reports: NULL, or why the session must end. */
const char *postgres_login_reported(struct postgres_session *s, struct slice body);

/* postgres_carry.c */
int postgres_carry_begin(struct postgres_session *s); /* the server is ready; -1: it is gone */
void postgres_carry_io(struct io *io, enum io_event ev, void *arg);
void postgres_carry_stop(struct postgres_session *s, const char *code, const char *sqlstate,
                         const char *text); /* it is over, with a last word where there can be */
void postgres_carry_done(struct postgres_session *s);
int postgres_carry_up(void *session, struct slice bytes); /* back_request_ops.up, .more, .spent */
void postgres_carry_more(void *session);
void postgres_carry_spent(void *session);
extern const struct broker_stream_ops postgres_carry_ops;

#endif
