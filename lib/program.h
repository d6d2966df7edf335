/* Where our programs are: `durward`, the command, and one for each role in libexec/durward. They
 * are opened once, by their place beside the one that runs, and executed by descriptor: an upgrade
 * under a running daemon changes nothing of it. Each is told the build of who started it and does
 * not work for another. */
#ifndef DURWARD_PROGRAM_H
#define DURWARD_PROGRAM_H

#include "compiler.h"
#include "err.h"

#include <stdbool.h>

enum { EXIT_STRANGER = 3 }; /* started by nobody of ours, or by another build */

/* A descriptor that program_exec takes, close-on-exec; -1: it is not there, or not executable. */
int program_open(const char *name, struct err *err);
/* The path of one, NUL-terminated, in `to`; for what is mounted or told. 0 or -1. */
int program_path(const char *name, char *to, size_t size, struct err *err);
/* This process becomes that program. Only returns when it cannot. */
void program_exec(int fd, char *const argv[], char *const env[]);

/* The second argument of a role: what it and its parent were built from. A third one says that its
 * `log_level` is debug. */
#define PROGRAM_DEBUG "debug"
extern const char program_build[];
bool program_is_ours(int argc, char **argv);
bool program_debugs(int argc, char **argv);

#endif
