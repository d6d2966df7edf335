/* Commands inside a sandbox, started by durward-init: a session of their own, on three descriptors
 * handed in or on a terminal made here. */
#ifndef DURWARD_COMMAND_H
#define DURWARD_COMMAND_H

#include "compiler.h"
#include "ipc_msg.h"

enum { COMMAND_TEXT = 256 };

struct command {
    pid_t pid;  /* also its session and first process group; 0: none runs */
    int master; /* the terminal's outer side, or -1; owned */
};

/* Why a command did not start, as env(1) has it: 125, 126 or 127. */
struct command_failure {
    uint32_t status;
    char text[COMMAND_TEXT];
};

void command_init(struct command *c);
/* m is a W_INIT_EXEC. 0 started; 1 not started, *why says it; -1 the message is malformed. */
int command_start(struct command *c, struct msg *m, struct command_failure *why);
/* To the command's process group; on a terminal to the one in the foreground. */
void command_signal(const struct command *c, int sig);
void command_winsize(const struct command *c, uint32_t rows, uint32_t cols);
/* Close what it holds and forget it (its processes are left alone). */
void command_reset(struct command *c);

#endif
