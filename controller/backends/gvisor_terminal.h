/* A terminal of a command under gVisor. What is inside is the sandbox's own, which nobody can give
 * out; what the controller gets is one of the host that only carries bytes, and a process of ours
 * is between the two. */
#ifndef DURWARD_GVISOR_TERMINAL_H
#define DURWARD_GVISOR_TERMINAL_H

#include <stdint.h>
#include <sys/types.h>

/* Starts it: its pid, or -1 with errno. master: for the controller; inner: for durward-init
 * (command.h, COMMAND_RELAYED). At SIGTERM it carries what is there yet, and ends. */
pid_t gvisor_terminal_start(uint32_t rows, uint32_t cols, int *master, int *inner);

#endif
