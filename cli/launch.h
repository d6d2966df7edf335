/* Starting the parent: what `run` and `serve` hand to it.
 *
 * W_INIT (CLI → parent), the first message on the parent's descriptor 3:
 *   mode:u8           1 run, 2 serve
 *   config_path:str   absolute path of the file that was read, "" if none: for reload
 *   env n × str       "K=V": HOME, PATH, XDG_*, LANG, LC_* and what commands of secrets may have;
 *   fds: configuration (config_json, a memfd), env secrets (store_env_memfd), the command
 *   home:u8, fds if so: the directory of the kept home and its lock, for logins made inside
 * The parent's own environment is empty, so it sets these before it uses lib/paths.h or
 * secrets/parent/store.h.
 *
 * run:   the parent is our child; it answers W_READY or W_FAILED, then W_PEER (kind
 *        ROLE_CONTROLLER, fd = a channel that takes W_RUN). The end of its descriptor 3 is our end:
 *        it takes everything down.
 * serve: the process becomes the parent by exec. Descriptor 3 is one end of a pair, the message
 *        lies in it already; descriptor 4 is the other end, open only so that 3 is not at its end
 *        yet. After W_INIT the parent closes both: nobody is at the far end. It reports a failed
 *        start on stderr and by its exit status (1). Its standard descriptors are the caller's; it
 *        has no environment. */
#ifndef DURWARD_LAUNCH_H
#define DURWARD_LAUNCH_H

#include "config.h"
#include "ipc_msg.h"

enum launch_mode { LAUNCH_RUN = 1, LAUNCH_SERVE = 2 };

/* The kept home of a run: its directory, and its lock, which the parent holds as long as it writes.
 */
struct launch_home {
    int dir, lock;
};

enum { LAUNCH_SPARE_FD = 4 };

/* Builds W_INIT and wipes every env secret from this process's environment block. path: NULL if no
 * file was read. */
int launch_message(enum launch_mode mode, const char *path, const struct config *c,
                   const struct launch_home *home, struct msg *ret, struct err *err);
/* Start the private parent and send it W_INIT. home: NULL, if none is kept. *channel: our end,
 * close-on-exec. */
int launch_parent(const char *path, const struct config *c, const struct launch_home *home,
                  pid_t *pid, int *channel, struct err *err);
/* Our end of its channel is closed: it writes the audit log's last head, takes its roles down and
 * ends; after a while it is made to. */
void launch_ended(pid_t pid);
/* Become the daemon's parent; returns only on failure. */
int launch_become_parent(const char *path, const struct config *c, struct err *err);

#endif
