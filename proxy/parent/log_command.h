/* `durward audit ...` on the directory that the logger writes, run by the parent as the logger's
 * user: reading what that one wrote is no work for the parent's rights. What it says is collected,
 * bounded, and never read here. */
#ifndef DURWARD_LOG_COMMAND_H
#define DURWARD_LOG_COMMAND_H

#include "buf.h"
#include "err.h"

struct parent;
struct log_command;

/* It ended: its exit code, or -1; failed: why what it said is no answer, else NULL. The command is
 * freed after it. */
typedef void (*log_command_fn)(void *arg, int code, const char *failed, const struct buf *said);

struct log_command_order {
    const char *const *argv; /* from the program's name on, ended by NULL; copied by the fork */
    size_t most;             /* bytes that it may say */
    unsigned seconds;        /* that it may take */
    log_command_fn ended;
    void *arg;
};

/* The directory, as the command has it: its standard input, so that no path can lead elsewhere. */
#define LOG_COMMAND_DIR "/proc/self/fd/0"

struct log_command *log_command_start(struct parent *p, const struct log_command_order *o,
                                      struct err *err);
/* This process was one of them. */
bool log_command_reaped(struct parent *p, pid_t pid, int status);

#endif
