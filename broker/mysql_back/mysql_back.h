/* The MySQL broker's back: sessions at servers, from a front's facts to their records. Shared by
 * the files of this room only. */
#ifndef DURWARD_MYSQL_BACK_H
#define DURWARD_MYSQL_BACK_H

#include "back.h"
#include "back_request.h"
#include "io.h"
#include "mysql_judge.h"
#include "mysql_login.h"

#include <sys/queue.h>

enum {
    MYSQL_IO = BACK_LINK_IO,
    MYSQL_DOWN_MAX = 2 * MYSQL_IO + MYSQL_WHOLE_MAX,
    MYSQL_PRINTS = 64, /* fingerprints of a session that are on record */
};

struct mysql_back {
    struct back *back;
    LIST_HEAD(, mysql_session) sessions;
};

enum session_state {
    SESSION_SECRET = 0, /* the vault says as whom */
    SESSION_ADMITTING,
    SESSION_LOGIN,
    SESSION_CHECKING, /* what the session is, and what its login may do */
    SESSION_RUNNING,
    SESSION_ASKING, /* what it is since a mode was restored; the answer to that waits */
};

struct mysql_session {
    struct mysql_back *of;
    struct back_request request;
    char database[MYSQL_NAME_MAX + 1], user[MYSQL_USER_MAX + 1];
    uint32_t capabilities; /* of MYSQL_CHOSEN, as its client asked for them */
    uint8_t charset;
    enum session_state state;
    struct secret_wait *secret;
    struct mysql_login login; /* and its connection, once it is in */
    unsigned n_checked;       /* questions that were answered, */
    bool check_row;           /* and this one has had its row */
    bool restores;            /* the present command does: what it sets is asked for behind it */
    size_t answer;            /* bytes of its answer, the last that the front is to get */
    struct mysql_reader up, down;
    struct mysql_reply reply;
    struct event *clock;
    struct broker_stream *stream;
    struct buf out;                        /* for the front */
    unsigned char number;                  /* of the server's last packet */
    bool up_end;                           /* the front has no more to say, */
    bool quitting;                         /* and the server neither */
    uint64_t n_seen, n_rows, n_statements; /* bytes of whole packets; rows */
    struct {
        char text[MYSQL_PRINT];
        uint64_t n;
    } prints[MYSQL_PRINTS];
    size_t n_prints;
    struct mysql_killing *killing; /* at most one at a time */
    LIST_ENTRY(mysql_session) entry;
};

static inline const struct mysql_terms *mysql_terms_of(const struct mysql_session *s)
{
    return s->request.rule->mysql;
}

/* mysql_session.c */
int mysql_session_new(struct mysql_back *of, const struct back_asked *asked);
void mysql_sessions_again(struct mysql_back *of); /* under another policy */
void mysql_session_refuse(struct mysql_session *s, const char *code, const char *text);
void mysql_session_end(struct mysql_session *s, enum record_kind kind, const char *code,
                       const char *detail);

/* mysql_check.c: what is asked of the server before a session begins. Each returns 0, or -1 when
 * the session is gone. */
int mysql_check_begin(struct mysql_session *s);
int mysql_check_again(struct mysql_session *s); /* how it reads statements now */
int mysql_check_packet(struct mysql_session *s, const struct mysql_part *m);

/* mysql_carry.c */
int mysql_carry_begin(struct mysql_session *s); /* -1: it is gone */
void mysql_carry_on(struct mysql_session *s);   /* commands go between front and server */
void mysql_carry_io(struct io *io, enum io_event ev, void *arg);
void mysql_carry_stop(struct mysql_session *s, const char *code, const char *text);
int mysql_carry_up(void *session, struct slice bytes); /* back_request_ops.up, .more, .spent */
void mysql_carry_more(void *session);
void mysql_carry_spent(void *session);
extern const struct broker_stream_ops mysql_carry_ops;

/* mysql_kill.c: KILL QUERY, on a connection of its own */
void mysql_kill_begin(struct mysql_session *s);
void mysql_kill_end(struct mysql_session *s); /* none is under way */

#endif
