/* The Redis broker's front: connections of a sandbox's. Shared by the files of this room only. */
#ifndef DURWARD_REDIS_FRONT_H
#define DURWARD_REDIS_FRONT_H

#include "front.h"
#include "front_tls.h"
#include "io.h"
#include "redis_judge.h"
#include "resp_reply.h"

#include <sys/queue.h>

enum {
    REDIS_CLIENTS_MAX = 128, /* of a sandbox */
    REDIS_IO = 64 * 1024,
    REDIS_HELD_MAX = 1 << 20,     /* of a command, until all of it is judged, */
    REDIS_HELD_OF_ALL = 16 << 20, /* and of a sandbox's connections together; then, and */
    REDIS_HELD_LEAST = REDIS_IO,  /* beyond this, it goes on as far as it is judged */
    REDIS_UP_MAX = REDIS_HELD_MAX + 4 * REDIS_IO,
    REDIS_DOWN_MAX = 4 * REDIS_IO,
    REDIS_REFUSALS = 64, /* that may be on their way at a time; older ones lose their reason */
    REDIS_MARK = 64,
};

struct redis_front {
    struct front *front;
    size_t n_clients;
    size_t held; /* by all of them */
    LIST_HEAD(, redis_client) clients;
};

/* What becomes of the command that is being read. */
enum redis_passing {
    REDIS_HELD = 0, /* what came of it lies at the end of `up`, and may be taken back */
    REDIS_PASSING,  /* some of it is with the back */
    REDIS_DROPPED,  /* another one stands in its place */
};

struct redis_client {
    struct redis_front *of;
    struct authority at;
    struct io *io;
    struct front_tls tls;
    bool begun, running;   /* the back is asked; it has opened */
    struct policy *policy; /* whose rule it is; a reference */
    const struct rule *rule;
    struct resp_commands commands;
    struct redis_judged judged;
    enum redis_passing passing;
    size_t held; /* the last bytes of `up`, which wait for what else their command is */
    struct resp_replies replies;
    struct broker_stream *stream;
    struct buf up; /* for the back */
    bool blocked;  /* the stream is full */
    uint64_t mark; /* in the words that stand for what is refused */
    uint32_t n_refused;
    const char *why[REDIS_REFUSALS]; /* NULL: it was a login */
    LIST_ENTRY(redis_client) link;
};

/* redis_client.c */
void redis_client_new(struct redis_front *of, const struct authority *at, int fd);

/* redis_answer.c: what c->commands has read into c->up, as it is, or what stands for its command.
 * NULL, or why the connection ends: memory is out ("memory"), or what is refused is partly with the
 * server ("redis_command"). And the server's error into out (resp_error_fn). */
const char *redis_answer_up(struct redis_client *c, enum resp_event e);
int redis_answer_down(void *client, struct slice line, struct buf *out);

#endif
