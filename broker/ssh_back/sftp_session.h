/* The back's part of an SFTP session: what its front asks is read and decided again, the server is
 * asked where links lead before it opens anything, files are on record. Shared by the files of this
 * room only. */
#ifndef DURWARD_SFTP_SESSION_H
#define DURWARD_SFTP_SESSION_H

#include "sftp_ask.h"
#include "ssh_back.h"

enum {
    SFTP_FILES_MAX = 64,          /* open in a session */
    SFTP_REFUSALS_MAX = 1100,     /* of a session: a front ends it before */
    SFTP_ANSWERS_MAX = 64 << 10,  /* that wait for the front: no more is taken of it */
    SFTP_RESOLVE_ID = SFTP_SLOTS, /* of what we ask ourselves */
};

/* An operation that is on record: admitted, and its end once. counter 0: none. */
struct sftp_record {
    uint64_t counter;
    struct timespec begun;
};

struct sftp_file {
    struct sftp_record record;
    bool directory, reads, writes;
    bool usable; /* it is open, and not about to be closed */
    uint64_t n_read, n_written;
    char handle[SFTP_HANDLE_MAX];
    size_t n_handle;
    char path[SSH_FILE_PATH_MAX + 1];
};

/* What the server was asked, and has not replied to. */
struct sftp_slot {
    bool used, resolved; /* its paths were: nobody renames meanwhile */
    enum sftp_op op;
    uint32_t n;
    uint32_t file;
    struct sftp_record record;
};

/* The one request that is not with the server yet. */
enum sftp_step { STEP_NONE = 0, STEP_RECORD, STEP_TURN, STEP_RESOLVE, STEP_RESOLVE_TO, STEP_LOOK };

enum sftp_stage { SFTP_STAGE_HELLO = 0, SFTP_STAGE_HOME, SFTP_STAGE_READY };

struct sftp_session {
    struct ssh_request *of;
    const struct ssh_files *files; /* of its rule */
    enum sftp_stage stage;
    enum sftp_step step;
    const char *failed; /* the server is not to be followed, or the front lies */
    struct buf from_front, from_server, to_front;
    struct sftp_slot slots[SFTP_SLOTS];
    struct sftp_file *open[SFTP_FILES_MAX];
    struct sftp_request asked; /* unless STEP_NONE; its paths are those below */
    struct sftp_record record;
    struct journal_wait *wait;
    uint64_t ticket;    /* since when it waits; 0: it does not */
    struct event *late; /* its turn takes too long */
    unsigned refusals;
    uint32_t extensions; /* of the server's */
    char home[SSH_FILE_PATH_MAX + 1];
    char path[SSH_FILE_PATH_MAX + 1], to[SSH_FILE_PATH_MAX + 1];
};

/* NULL: memory is out. */
struct sftp_session *sftp_session_new(struct ssh_request *q);
void sftp_session_free(struct sftp_session *s, const char *code); /* NULL is fine */
bool sftp_session_ready(const struct sftp_session *s);
bool sftp_session_waits(const struct sftp_session *s); /* for a reply of the server's */
/* What is wrong with it; NULL: nothing, or there is no session. */
const char *sftp_session_failed(const struct sftp_session *s);
/* Bytes of the front. 0 or -1. */
int sftp_session_take(struct sftp_session *s, struct slice bytes);
/* To the server, and from there. down: true where all that came is with the front. */
void sftp_session_up(struct sftp_session *s);
bool sftp_session_down(struct sftp_session *s);

/* sftp_session.c: refused, on record, and answered. */
void sftp_deny(struct sftp_session *s, const struct sftp_request *q, const char *code);
void sftp_answer(struct sftp_session *s, uint32_t id, enum sftp_status status, const char *text);
/* The request that was looked at goes to the server. */
void sftp_send(struct sftp_session *s, struct sftp_request *q, bool resolved);
struct slice sftp_home(const struct sftp_session *s);

/* sftp_turn.c: from the record to the server. */
void sftp_turn_begin(struct sftp_session *s, const struct sftp_request *q);
void sftp_turn_go_on(struct sftp_session *s);
void sftp_turn_resolved(struct sftp_session *s, const struct sftp_reply *r);
void sftp_turn_end(struct sftp_session *s); /* others may have theirs */

/* sftp_file.c */
/* Fields: who, what, where. */
void sftp_record_put(const struct sftp_session *s, const struct sftp_request *q, struct record *r);
void sftp_record_end(const struct sftp_session *s, struct sftp_record *of, enum record_kind kind,
                     const char *code, const char *detail);
/* About to be opened. The number that the front will have for it; -1: no room. */
int sftp_file_new(struct sftp_session *s, const struct sftp_request *q);
/* What the front's handle names; NULL: nothing. *number: which. */
struct sftp_file *sftp_file_of(const struct sftp_session *s, struct slice handle, uint32_t *number);
void sftp_file_close(struct sftp_session *s, uint32_t number, const char *code, const char *detail);

/* sftp_reply.c: a packet of the server's. */
void sftp_reply_take(struct sftp_session *s, struct slice body);

#endif
