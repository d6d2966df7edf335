/* Shared by stdio_server.c (HTTP) and stdio_session.c (processes). */
#ifndef DURWARD_STDIO_SERVER_H
#define DURWARD_STDIO_SERVER_H

#include <sys/types.h>

#include "stdio_mcp.h"

enum {
    STDIO_CONNS = 48,
    STDIO_PING_S = 15, /* without a word on a stream: then one is said, so that its end is seen */
    STDIO_SESSIONS = 8,
    STDIO_CHUNK = 64 * 1024,
    STDIO_OUT_MAX = 1 << 20 /* that wait for readers; beyond it a server's output is not read */
};

/* ANSWERS: a POST whose requests are under way. LISTENS: a GET. */
enum conn_state { CONN_HEAD = 0, CONN_BODY, CONN_ANSWERS, CONN_LISTENS };

struct session; /* of a client: one process */

struct conn {
    int fd; /* -1: none */
    enum conn_state state;
    int64_t written; /* seconds: something was */
    bool over;       /* it ends once what is in `out` is written */
    struct stdio_head head;
    struct stdio_body framing;
    struct buf in, body, out;
    struct session *session;                        /* of ANSWERS and LISTENS */
    char ids[STDIO_MESSAGES_MAX][STDIO_ID_MAX + 1]; /* that are not answered */
    size_t n_ids;
};

struct session {
    pid_t pid; /* 0: none */
    char id[33];
    int in, out;         /* of the process's standard descriptors, our ends */
    struct buf to, from; /* to the process; a line of it that is not whole */
    struct buf queue;    /* lines that nobody listens for */
    int64_t begun, used;
};

struct stdio_server {
    int listener;
    char **command;
    int64_t idle, used; /* seconds */
    unsigned failures;  /* processes in a row that ended soon */
    int64_t not_before; /* none is started until then */
    struct conn conns[STDIO_CONNS];
    struct session sessions[STDIO_SESSIONS];
};

int64_t stdio_now(void);
/* A line of a server. */
void stdio_said(struct stdio_server *v, struct session *s, struct slice line);
/* Whoever waits for it is told so. */
void stdio_session_over(struct stdio_server *v, struct session *s, const char *why);

/* stdio_session.c. NULL with *why: none can be had. */
struct session *stdio_session_new(struct stdio_server *v, const char **why);
struct session *stdio_session_find(struct stdio_server *v, const char *id);
void stdio_session_end(struct stdio_server *v, struct session *s, const char *why);
void stdio_session_write(struct session *s);
void stdio_session_read(struct stdio_server *v, struct session *s);
/* Ends those that are unused, and reaps. */
void stdio_sessions_look(struct stdio_server *v);

#endif
