/* The MySQL broker's front: connections of a sandbox's. Shared by the files of this room only. */
#ifndef DURWARD_MYSQL_FRONT_H
#define DURWARD_MYSQL_FRONT_H

#include "front.h"
#include "front_tls.h"
#include "io.h"
#include "mysql_judge.h"

#include <sys/queue.h>

enum {
    MYSQL_CLIENTS_MAX = 128, /* of a sandbox */
    MYSQL_IO = 64 * 1024,
    MYSQL_UP_MAX = MYSQL_WHOLE_MAX + 2 * MYSQL_IO,
    MYSQL_DOWN_MAX = 4 * MYSQL_IO,
};

struct mysql_front {
    struct front *front;
    size_t n_clients;
    LIST_HEAD(, mysql_client) clients;
};

enum client_state {
    CLIENT_FIRST = 0, /* it was greeted, and is to answer */
    CLIENT_SWITCHING, /* it was told of another method, and answers once more */
    CLIENT_WAITING,   /* for the back */
    CLIENT_RUNNING,
    CLIENT_KILLING, /* it named no database: it may say KILL QUERY, and has no session yet */
};

struct mysql_client {
    struct mysql_front *of;
    struct authority at;
    struct io *io;
    struct front_tls tls;
    bool wants_tls; /* it asked for TLS, which comes next */
    enum client_state state;
    unsigned char number; /* of the next packet to it, in its login */
    bool welcomed;        /* it has heard that its login is good */
    struct mysql_greeting greeting;
    struct policy *policy; /* whose rule it is; a reference */
    const struct rule *rule;
    struct mysql_facts facts; /* its database lies in `database` */
    char database[MYSQL_NAME_MAX + 1];
    struct mysql_reader up_reader, down_reader;
    struct mysql_reply reply; /* to the command that is under way */
    struct broker_stream *stream;
    struct buf up; /* for the back */
    bool blocked;  /* the stream is full */
    bool over;     /* the client has said that it ends */
    LIST_ENTRY(mysql_client) link;
};

/* mysql_client.c */
void mysql_client_new(struct mysql_front *of, const struct authority *at, int fd);
void mysql_client_free(struct mysql_client *c, bool flushed);
/* The last word to the client. */
void mysql_client_end(struct mysql_client *c, const char *code, const char *text);
/* A session of its own, once it says more than KILL QUERY. False: it has none, and no rule. */
bool mysql_client_open(struct mysql_client *c);
/* The same, with a record. */
void mysql_client_deny(struct mysql_client *c, const char *code, const char *detail);

/* mysql_talk.c: commands and replies, once the back has opened. Each may free the client. */
void mysql_talk_turn(struct mysql_client *c);
int mysql_talk_data(struct mysql_client *c, struct slice bytes); /* -1: the back lies */
void mysql_talk_writable(struct mysql_client *c);
/* The one command of a client that has no session. */
void mysql_talk_kill(struct mysql_client *c);

#endif
