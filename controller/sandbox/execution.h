/* An execution: one thing that durward-init does for us in a managed sandbox's sandbox: a command,
 * a file operation, a connection to its loopback. What comes from inside is an adversary's: outputs
 * are bounded bytes, descriptors are looked at before use.
 *
 *   ASKED ──► RUNNING ──► ENDED (op `ended`, then it is freed)
 *     └──────────────────►
 *
 * Where its policy says so, what detectors find in what comes out is made unreadable.
 *
 * Standard output and error are what the command itself wrote until its end; what a process that it
 * left behind writes later goes nowhere. */
#ifndef DURWARD_EXECUTION_H
#define DURWARD_EXECUTION_H

#include "inside.h"
#include "managed_sandbox.h"

enum {
    EXECUTIONS_MAX = 200, /* of one sandbox */
    WATCHES_MAX = 4,      /* among them */
    EXECUTION_ID_MAX = 64,
    EXECUTION_OUTPUT_DEFAULT = 8 << 20,
    EXECUTION_OUTPUT_MAX = 64 << 20, /* bytes kept of each output */
    EXECUTION_INPUT_MAX = 64 << 20,
    EXECUTION_REDACT_BYTES = 128 << 20, /* that looking through outputs of all may take */
    EXECUTION_TIMEOUT_DEFAULT = 1800,   /* seconds */
    EXECUTION_TIMED_OUT = 124,
};

struct execution;

/* Any may be NULL. */
struct execution_ops {
    /* It runs. fd: of a connection, the socket (taken over), else -1. */
    void (*started)(void *arg, struct execution *e, int fd);
    /* which: 1 or 2. Without this op output is kept in the execution. */
    void (*output)(void *arg, struct execution *e, int which, const void *p, size_t n);
    /* All input that was given is written. */
    void (*fed)(void *arg, struct execution *e);
    /* Its last word; e is freed when this returns. */
    void (*ended)(void *arg, struct execution *e);
};

/* A command that is wanted. Nothing is owned. */
struct execution_command {
    const char *id;             /* NULL or "": one is made */
    const char *command;        /* for sh -c; or NULL and */
    const struct strlist *argv; /* a program and its words */
    const struct strlist *env;  /* beside the sandbox's own; NULL: none */
    const char *cwd;            /* NULL: MANAGED_SANDBOX_WORKDIR */
    unsigned timeout;           /* seconds; 0: none */
    const void *input;          /* what it reads at once, n_input bytes */
    size_t n_input;
    bool more_input; /* execution_input will bring more */
    bool split, tty;
    uint32_t rows, cols;
    size_t max_output;
    bool whole; /* a cut output is of no use: end it when max_output is crossed */
};

/* NULL with err: ERR_UNREADY (not running, too many), ERR_DENIED (the id is in use), ERR_LIMIT (too
 * long), ERR_SYS. */
struct execution *execution_command(struct managed_sandbox *r, const struct execution_command *c,
                                    const struct execution_ops *ops, void *arg, struct err *err);
/* input: what is written (INSIDE_WRITE). max_output as above. */
struct execution *execution_file(struct managed_sandbox *r, enum inside_op op, const char *path,
                                 unsigned mode, const void *input, size_t n, size_t max_output,
                                 const struct execution_ops *ops, void *arg, struct err *err);
/* The same, only if it is of a version (controller/proto/inside.h). */
struct execution_file {
    enum inside_op op;
    const char *path, *version;
    unsigned mode;
    const void *input;
    size_t n, max_output;
};
struct execution *execution_file_version(struct managed_sandbox *r, const struct execution_file *f,
                                         const struct execution_ops *ops, void *arg,
                                         struct err *err);
/* What happens below a directory, to `output`, until it is abandoned or the directory is gone. It
 * keeps nothing from being idle. skip: names that are not looked at. */
struct execution *execution_watch(struct managed_sandbox *r, const char *path,
                                  const struct strlist *skip, const struct execution_ops *ops,
                                  void *arg, struct err *err);
struct execution *execution_connect(struct managed_sandbox *r, unsigned port,
                                    const struct execution_ops *ops, void *arg, struct err *err);

struct execution *execution_find(struct managed_sandbox *r, const char *id); /* commands only */
/* n == 0: the end of its input. -1: it does not read on, or over EXECUTION_INPUT_MAX waits. */
int execution_input(struct execution *e, const void *p, size_t n);
size_t execution_input_waiting(const struct execution *e);
void execution_signal(struct execution *e, unsigned sig);
void execution_winsize(struct execution *e, unsigned rows, unsigned cols);
/* Stop, or go on, reading its outputs. */
void execution_pause(struct execution *e, bool pause);
/* Nobody is interested any more: it is killed, no op will be called. */
void execution_abandon(struct execution *e);

const char *execution_id(const struct execution *e);
int64_t execution_started_at(const struct execution *e); /* seconds since 1970 */
struct slice execution_output(const struct execution *e, int which);
bool execution_truncated(const struct execution *e);
/* Its policy's `redact_output` could not read what came out, so that it was ended: text is the
 * constant, and the status of a file operation EBADMSG. */
#define EXECUTION_UNREADABLE                                                                     \
    "`redact_output` cannot look through it: it is UTF-16, or has more than 64 KiB that may be " \
    "one secret"
bool execution_unreadable(const struct execution *e);
bool execution_timed_out(const struct execution *e);
/* After its end: exit code, of a file operation or connection an errno. */
uint32_t execution_status(const struct execution *e);
const char *execution_text(const struct execution *e);
uint64_t execution_ms(const struct execution *e);

/* W_INIT_STARTED and W_INIT_EXIT. -1: bad. */
int execution_message(struct managed_sandbox *r, struct msg *m);
/* Its sandbox is gone: each ends with 125 and this text. */
void execution_end_all(struct managed_sandbox *r, const char *why);
/* Each command that runs. */
void execution_each(struct managed_sandbox *r, void (*fn)(void *arg, struct execution *e),
                    void *arg);

#endif
