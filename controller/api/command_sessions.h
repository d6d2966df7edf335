/* Commands that outlive their client: the daemon keeps the latest of what each wrote, and a client
 * that attaches is told that and goes on from there. One client is attached at a time: the next one
 * takes its place.
 *
 * Bounded: COMMAND_SESSIONS_EACH of a sandbox, COMMAND_SESSION_TAIL_MAX bytes of each, and of all
 * together COMMAND_SESSIONS_BYTES, which sandboxes share (quota.h): beyond, the oldest output of
 * that command is dropped. One that has ended stays until somebody was told, it is cancelled,
 * COMMAND_SESSION_ENDED_S have passed, or its sandbox has COMMAND_SESSIONS_EACH others. All end
 * with the daemon. */
#ifndef DURWARD_COMMAND_SESSIONS_H
#define DURWARD_COMMAND_SESSIONS_H

#include "api_internal.h"

enum {
    COMMAND_SESSIONS_EACH = 16,
    COMMAND_SESSION_TAIL_MAX = 256 * 1024,
    COMMAND_SESSIONS_BYTES = 16 << 20,
    COMMAND_SESSIONS_BYTES_EACH = 4 << 20, /* of a sandbox */
    COMMAND_SESSION_ENDED_S = 3600,
};

struct command_sessions;

struct command_sessions *command_sessions_new(struct api *a); /* NULL: out of memory */
void command_sessions_free(
    struct command_sessions *k); /* streams are dropped before; NULL is fine */
/* Starts one and answers: with its id, or with frames. */
void command_sessions_start(struct command_sessions *k, struct evhttp_request *req,
                            struct managed_sandbox *r, const struct execution_command *wanted,
                            bool frames);
/* Answers with frames or lines: what it wrote last, then what it writes, and its end. */
void command_sessions_attach(struct command_sessions *k, struct evhttp_request *req,
                             struct managed_sandbox *r, const char *id);
/* One that has ended is forgotten; one that runs is when it ends. */
void command_sessions_forget(struct command_sessions *k, const struct managed_sandbox *r,
                             const char *id);
bool command_sessions_has(const struct command_sessions *k, const struct execution *e);
/* Appends those of a sandbox, running or not (RunningExec of doc/openapi.json). */
void command_sessions_list(struct command_sessions *k, const struct managed_sandbox *r,
                           json_t *list);

#endif
