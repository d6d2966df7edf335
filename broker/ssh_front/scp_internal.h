/* A session of scp and its steps. Shared by scp_session.c, scp_give.c, and scp_take.c only. */
#ifndef DURWARD_SCP_INTERNAL_H
#define DURWARD_SCP_INTERNAL_H

#include "scp_session.h"
#include "sftp_ask.h"

enum {
    SCP_CHUNK = 32 << 10, /* of one request */
    SCP_READS = 8,
    SCP_WRITES = 16,
    SCP_LINE_MAX = 1400,
    SCP_WHY_MAX = 200,
    /* of a mode (POSIX, sys/stat.h), as SFTP has it */
    SCP_KIND = 0170000,
    SCP_KIND_FOLDER = 0040000,
    SCP_KIND_FILE = 0100000,
};

enum scp_step {
    SCP_HELLO = 0,
    /* giving */
    SCP_BEGIN,
    SCP_STAT,
    SCP_OPEN,
    SCP_TIMES,
    SCP_HEAD,
    SCP_DATA,
    SCP_TAIL,
    SCP_CLOSE,
    SCP_LIST_OPEN,
    SCP_LIST_TIMES,
    SCP_LIST_HEAD,
    SCP_LIST,
    SCP_LIST_CLOSE,
    SCP_LIST_TAIL,
    /* taking */
    SCP_TARGET,
    SCP_LINE,
    SCP_PUT_OPEN,
    SCP_PUT_DATA,
    SCP_PUT_TAIL,
    SCP_PUT_FLUSH,
    SCP_PUT_SET,
    SCP_PUT_CLOSE,
    SCP_DIR_STAT,
    SCP_DIR_MAKE,
    SCP_DIR_SET,
    SCP_OVER,
    SCP_STEPS
};

struct scp_folder {
    char handle[SFTP_HANDLE_MAX];
    size_t n_handle, n_path;
    struct buf names; /* of the last list, those that are still to come */
    bool quiet;       /* the client is not told of it: its names are a pattern's */
    bool timed;
    struct sftp_attrs attrs; /* of a folder that is taken: its times, once all is in it */
};

struct scp_session {
    struct scp_command command;
    enum scp_step step;
    char path[SSH_FILE_PATH_MAX + 1]; /* of what is given or taken now */
    size_t n_path;
    struct scp_folder folders[SCP_FOLDERS_MAX];
    size_t depth;
    char handle[SFTP_HANDLE_MAX];
    size_t n_handle;
    uint32_t id, first; /* of the next request; of the next reply */
    unsigned under_way, stale;
    struct sftp_attrs attrs;
    uint64_t asked, done; /* bytes of the file */
    bool timed;           /* the next has the times of attrs */
    bool in_folder;       /* the target is one */
    bool matched;         /* a name of the pattern's was there */
    bool failed, errors;
    char why[SCP_WHY_MAX];
};

/* Whether something has moved, so that another turn may. */
typedef bool scp_turn(struct scp_session *s, const struct scp_io *io);
/* The same where the step waits for a reply: *r lies in io->replies until it returns. */
typedef bool scp_reply_turn(struct scp_session *s, const struct scp_io *io,
                            const struct sftp_reply *r);

/* What a step does: one of these. */
struct scp_act {
    scp_turn *turn;
    scp_reply_turn *reply;
};

/* scp_session.c */
bool scp_end(struct scp_session *s, bool failed); /* true */
bool scp_ask(struct scp_session *s, const struct scp_io *io, struct sftp_request *q,
             enum scp_step next);
/* The next reply, once it is there. False: it is not. */
bool scp_reply(struct scp_session *s, const struct scp_io *io, scp_reply_turn *turn);
/* 1: the client goes on; 2: it does not want this one; 0: it has not said yet; -1: it is over. */
int scp_answered(struct scp_session *s, const struct scp_io *io);
bool scp_say(struct scp_session *s, const struct scp_io *io, struct slice what, enum scp_step next);
/* What a reply says is wrong. */
void scp_why(struct scp_session *s, const struct sftp_reply *r);
/* The client is told of s->why, with the path. */
bool scp_complain(struct scp_session *s, const struct scp_io *io, enum scp_step next);
bool scp_take_handle(struct scp_session *s, const struct sftp_reply *r);
bool scp_is_folder(const struct sftp_attrs *a);
struct scp_folder *scp_top(struct scp_session *s);
/* Behind the first n bytes of the path. False: it is too long, or no name. */
bool scp_name(struct scp_session *s, size_t n, struct slice name);
struct slice scp_path(const struct scp_session *s);
struct slice scp_handle(const struct scp_session *s);
void scp_pop(struct scp_session *s);

/* scp_give.c, scp_take.c: the first step is with the server's hello. */
bool scp_give_first(struct scp_session *s, const struct scp_io *io);
bool scp_take_first(struct scp_session *s, const struct scp_io *io);
extern const struct scp_act scp_give_acts[SCP_STEPS], scp_take_acts[SCP_STEPS];

#endif
