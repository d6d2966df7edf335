/* Roles: each a fresh exec of its own program (program.h) with one descriptor (3, its control
 * channel to the parent) beside stderr, its role in argv[0] ("durward: gate"), its build in
 * argv[1], an empty environment, and later its own seccomp filter. */
#ifndef DURWARD_PROC_H
#define DURWARD_PROC_H

#include "err.h"
#include "filter.h"
#include "landlock.h"

enum role {
    ROLE_NONE = 0,
    ROLE_PARENT,
    ROLE_SIGNER,
    ROLE_VAULT,
    ROLE_DIALER,
    ROLE_GATE,
    ROLE_INJECTOR,
    ROLE_LOGGER,
    ROLE_CONTROLLER,
    ROLE_BUILDER,
    ROLE_CLIENT, /* not a process of ours to spawn: an API user or the CLI */
    ROLE_EXPORTER,
    ROLE_SSH_FRONT, /* brokers: broker.h */
    ROLE_SSH_BACK,
    ROLE_POSTGRES_FRONT,
    ROLE_POSTGRES_BACK,
    ROLE_REDIS_FRONT,
    ROLE_REDIS_BACK,
    ROLE_MYSQL_FRONT,
    ROLE_MYSQL_BACK,
    ROLE_SMTP_FRONT,
    ROLE_SMTP_BACK,
    ROLE_IMAP_FRONT,
    ROLE_IMAP_BACK,
    ROLE_FLEET,
    ROLE_COUNT
};

enum { PROC_CONTROL_FD = 3, PROC_ARGV = 4 };

const char *role_name(enum role r); /* "gate" */

/* Start a role: fork, close all but stderr and control_fd (which becomes 3), exec its program
 * (program_open) with an empty environment. stdin and stdout are /dev/null. Both descriptors stay
 * the caller's to close. With a tag the process shows as "durward: gate TAG"; debug: it says its
 * requests' steps (trace.h). Returns the pid in *ret. */
int proc_spawn(enum role r, int program, const char *tag, bool debug, int control_fd, pid_t *ret,
               struct err *err);
/* The same by the command, which starts one role only: the program is looked for now. */
int proc_spawn_one(enum role r, int control_fd, pid_t *ret, struct err *err);
/* The argument vector of a role, whose first word is argv0; the rest of it is static. */
void proc_role_argv(char *argv0, bool debug, char *argv[PROC_ARGV]);

/* First thing in a role: no_new_privs, not dumpable, no core, dies with its parent; as root drops
 * to the role's own uid and verifies that it cannot come back (builder and parent stay). Checks
 * that descriptor 3 is our control socket. */
int proc_enter(enum role r, struct err *err);
/* The uid a role runs under when started by root: 61700 + role (documented in SECURITY.md); else,
 * and where a user namespace has no such uids, our own. */
uid_t proc_role_uid(enum role r);
/* Started by root: become that uid for good. The parent and the builder stay as they are. */
int proc_become(enum role r, struct err *err);
/* What our own programs are started with: nothing, or the sanitizers' options. */
char **proc_environment(void);
/* No core dump of this process or of what it starts. The limit is 1 where it can be: with 0 a host
 * that hands dumps to a program still does so (core(5)). */
int proc_no_core(void);
/* Install the role's seccomp filter (default: EPERM) and Landlock, where the kernel has it: no path
 * at all. After this nothing outside its list works. In sanitizer builds the list is wider;
 * proc_relaxations() says how. */
int proc_confine(enum role r, struct err *err);
/* The same of a role that opens files later: beneath these places, and nowhere else. */
int proc_confine_to(enum role r, const struct landlock_place *places, size_t n, struct err *err);
/* The list: numbers of an architecture's system calls (FILTER_NATIVE: of this), each once (what
 * sanitizers need is left out). None for parent and builder, which start programs. Returns how
 * many. */
size_t proc_calls(enum role r, uint32_t arch, int *calls, size_t cap);
/* The filter as the kernel of that architecture takes it; no instructions where there is no list.
 */
int proc_filter(enum role r, uint32_t arch, struct filter_program *ret, struct err *err);
const char *proc_relaxations(void); /* "" in a production build */

/* As many open files as this process may have, up to 65,536. The limit that it came with is for
 * what it starts: proc_files_restore puts it back, in the child. */
void proc_files_raise(void);
void proc_files_restore(void);

/* Diagnostics of a role go to stderr of the daemon, one line, prefixed by the role. Only role mains
 * call this; never a library. Never a secret, never a header value. */
void proc_log(const char *fmt, ...) PRINTF(1, 2);

#endif
