/* Shared by execution.c (what is asked, and its end), execution_flow.c (bytes in and out),
 * execution_redact.c (what is not to come out) and execution_note.c (its record). */
#ifndef DURWARD_EXECUTION_INTERNAL_H
#define DURWARD_EXECUTION_INTERNAL_H

#include <time.h>

#include "execution.h"

struct event;

enum execution_kind { EXECUTION_COMMAND, EXECUTION_FILE, EXECUTION_CONNECT };
enum execution_state { EXECUTION_ASKED, EXECUTION_RUNNING, EXECUTION_ENDED };

struct execution {
    LIST_ENTRY(execution) link;
    struct managed_sandbox *managed_sandbox;
    uint32_t number;
    char id[EXECUTION_ID_MAX + 1];
    enum execution_kind kind;
    enum execution_state state;
    enum inside_op op;
    const struct execution_ops *ops; /* NULL once abandoned */
    void *arg;
    bool tty, split, wants_input, input_ended, paused, truncated, whole, timed_out;
    int in, out[2];
    struct event *on_in, *on_out[2], *timer;
    struct buf input, kept[2];
    size_t max_output;
    unsigned timeout;
    struct timespec began;
    int64_t started_at;
    uint64_t ms;
    uint32_t status;
    char text[512];
    char *path;            /* EXECUTION_FILE */
    size_t n_written;      /* INSIDE_WRITE */
    struct redact *redact; /* NULL: what comes out is not looked through */
};

/* execution_note.c: records of it; e is ENDED. */
void execution_note_started(const struct execution *e, const struct execution_command *c);
void execution_note_ended(const struct execution *e);

/* What durward-init hands out is used only when it is what was asked for. */
bool inside_is_pipe(int fd);
bool inside_is_connection(int fd);
/* W_INIT_STARTED's descriptors, in order; each is checked and taken over. -1: bad. */
int flow_attach(struct execution *e, int *fds, unsigned n);
void flow_write(struct execution *e);
/* What lies in the pipes at the end of the command. */
void flow_drain(struct execution *e);
void flow_pause(struct execution *e);
void flow_close(struct execution *e);
void flow_close_input(struct execution *e);
/* To whoever asked: bytes of output i, which is 0 or 1. */
void flow_give(struct execution *e, int i, const void *p, size_t n);

/* By its policy; split is known. followed: somebody at the other end waits for what it says. -1
 * with err: ERR_FULL, ERR_INTERNAL. */
int redact_begin(struct execution *e, bool followed, struct err *err) WUNUSED;
/* Bytes from inside; what is decided of them goes to flow_give. */
void redact_take(struct execution *e, int i, const void *p, size_t n);
void redact_end(struct execution *e, int i); /* nothing more comes of this output */
/* What was found so far, as records have it; "": nothing. */
const char *redact_found(const struct execution *e);
/* It could not be looked through, and ended. */
bool redact_unreadable(const struct execution *e);
void redact_free(struct execution *e);

#endif
