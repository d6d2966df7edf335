/* The PostgreSQL broker's front: connections of a sandbox's. Shared by the files of this room only.
 */
#ifndef DURWARD_POSTGRES_FRONT_H
#define DURWARD_POSTGRES_FRONT_H

#include "front.h"
#include "front_tls.h"
#include "io.h"
#include "postgres_message.h"
#include "postgres_rule.h"
#include "postgres_startup.h"
#include "statement_cache.h"

#include <sys/queue.h>

enum {
    POSTGRES_CLIENTS_MAX = 128, /* of a sandbox */
    POSTGRES_IO = 64 * 1024,
    POSTGRES_QUEUE_MAX = POSTGRES_IO + POSTGRES_WHOLE_MAX + 4096,
    POSTGRES_REFUSALS = 64, /* that may be on their way at a time; older ones lose their reason */
    POSTGRES_REQUESTS_MAX = 2, /* wishes for encryption before the startup */
    POSTGRES_MARK = 64,
};

struct postgres_front {
    struct front *front;
    struct statement_cache *cache;
    size_t n_clients;
    LIST_HEAD(, postgres_client) clients;
};

enum client_state {
    CLIENT_FIRST = 0, /* its first packets */
    CLIENT_WAITING,   /* for the back */
    CLIENT_RUNNING,
};

/* Which of the client's messages the server has not answered. Statements change settings that the
 * server tells of only then; until then it may read the next one otherwise than we do. */
struct postgres_answers {
    uint32_t due;    /* ReadyForQuery: one for the startup, and for each Query and Sync */
    uint32_t before; /* of those, which a statement that is held back waits for */
    size_t held_at;  /* where in `up` it begins */
    uint32_t syncs;  /* since the last Execute, */
    bool only_syncs; /* and nothing else */
    bool ran;        /* something, since the last Sync that the server answers */
    bool executed;   /* the same, of Execute alone, */
    bool alone;      /* and the last Execute is the first of them */
    bool copying;    /* by an Execute: the server passes over Sync until CopyDone */
    bool unsure;     /* the count may be too low */
    bool held;
};

struct postgres_client {
    struct postgres_front *of;
    struct authority at;
    struct io *io;
    struct front_tls tls;
    bool wants_tls; /* it asked for TLS, which comes next */
    enum client_state state;
    unsigned requests;
    struct policy *policy; /* whose rule it is; a reference */
    const struct rule *rule;
    struct statement_bounds bounds;
    char database[POSTGRES_NAME_MAX + 1];
    struct postgres_reader up_reader, down_reader;
    struct broker_stream *stream;
    struct buf up; /* for the back */
    struct postgres_cancel key;
    bool blocked;                          /* the stream is full */
    bool over;                             /* the client has said that it ends */
    char print[1 + STATEMENT_FINGERPRINT]; /* of what goes next, to be said first */
    size_t n_print;
    uint64_t mark; /* in the words that stand for what is refused */
    uint32_t n_refused;
    const char *why[POSTGRES_REFUSALS];
    struct postgres_answers answers;
    LIST_ENTRY(postgres_client) link;
};

/* postgres_client.c */
void postgres_client_new(struct postgres_front *of, const struct authority *at, int fd);

/* postgres_judge.c: a message of the client's into c->up, as it is or as what stands for it; and
 * one of the server's into out. -1: no room, or memory is out. */
int postgres_judge_up(struct postgres_client *c, const struct postgres_part *m);
int postgres_judge_down(struct postgres_client *c, const struct postgres_part *m, struct buf *out);

/* postgres_answers.c: what went up, what came down. */
void postgres_answers_up(struct postgres_answers *a, char type);
/* True: nothing is held back any more. */
bool postgres_answers_down(struct postgres_answers *a, char type);
/* May this statement, of a session with bounds, go behind what is not answered? NULL: yes, perhaps
 * once that is (a->held then: from here on `up` waits). */
const char *postgres_answers_judge(struct postgres_answers *a, struct slice text, size_t up);

#endif
