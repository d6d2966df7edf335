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
    REDIS_UP_MAX = RESP_COMMAND_MAX + 40 * RESP_ARGUMENTS_MAX + 2 * REDIS_IO,
    REDIS_DOWN_MAX = 4 * REDIS_IO,
    REDIS_REFUSALS = 64, /* that may be on their way at a time; older ones lose their reason */
    REDIS_MARK = 64,
};

struct redis_front {
    struct front *front;
    size_t n_clients;
    LIST_HEAD(, redis_client) clients;
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

/* redis_answer.c: the command that c->commands has read into c->up, as it is or as what stands for
 * it. -1: memory is out. And the server's error into out (resp_error_fn). */
int redis_answer_up(struct redis_client *c);
int redis_answer_down(void *client, struct slice line, struct buf *out);

#endif
