/* One command in a sandbox of the daemon, over an upgraded connection: our standard descriptors,
 * the terminal and signals on this side, frames (doc/openapi.json, POST …/exec) on the other. */
#ifndef DURWARD_EXEC_SESSION_H
#define DURWARD_EXEC_SESSION_H

#include <jansson.h>

#include "buf.h"
#include "err.h"

enum { EXEC_ID_MAX = 64 };

struct exec_result {
    int status;      /* as in controller/proto/run.h */
    char text[1024]; /* why, when it is ours to say; else "" */
    bool detached;   /* it goes on, and may be attached to again */
    char id[EXEC_ID_MAX + 1];
};

struct exec_wishes {
    bool input; /* our standard input goes in; else the command's is at its end, unless `later` */
    bool tty;   /* the command has a terminal, and so, if ours is one, it is raw meanwhile */
    bool kept;  /* the command outlives us: ^P ^Q, SIGHUP and SIGTERM leave it */
    bool later; /* it has been running: others may bring its input */
};

/* sock: upgraded; owned. ahead: bytes that came with the answer's head. */
void exec_session(int sock, const void *ahead, size_t n, const struct exec_wishes *wishes,
                  struct exec_result *ret);
/* Ask for the upgrade: the socket, or -1 with err. What came behind the head is put into *ahead. */
int exec_upgrade(const char *socket, const char *path, const char *protocol, const json_t *body,
                 struct buf *ahead, struct err *err);

#endif
