/* Where things live for this user, when the configuration does not say. Directories are made with
 * mode 0700 and checked (owner, mode) before use. All results are malloc'd. */
#ifndef DURWARD_PATHS_H
#define DURWARD_PATHS_H

#include "err.h"

char *
paths_runtime_dir(struct err *err); /* /run/durward | $XDG_RUNTIME_DIR/durward | /tmp/durward-UID */
char *paths_state_dir(
    struct err *err); /* /var/lib/durward | $XDG_STATE_HOME/durward | ~/.local/state/durward */
/* Of what a user's command keeps for itself, root's too: $XDG_STATE_HOME/durward |
 * ~/.local/state/durward */
char *paths_user_state_dir(struct err *err);
char *paths_cache_dir(
    struct err *err); /* /var/cache/durward | $XDG_CACHE_HOME/durward | ~/.cache/durward */
char *paths_ca_dir(struct err *err); /* /var/lib/durward/ca | $XDG_DATA_HOME/durward/ca |
                                        ~/.local/share/durward/ca */
char *paths_profiles_dir(
    struct err *err); /* $XDG_CONFIG_HOME/durward/profiles | ~/.config/durward/profiles */
char *paths_audit_dir(struct err *err);  /* /var/log/durward | <state>/audit */
char *paths_api_socket(struct err *err); /* <runtime>/api.sock */
/* mkdir -p of the last components with 0700; the final one must be a directory of ours that no one
 * else can write. */
int paths_make_private(const char *dir, struct err *err);
/* 0 when the open file is a regular one of ours (or root's) that group and others cannot read. */
int paths_check_private_fd(int fd, const char *what, struct err *err);
char *paths_join(const char *a, const char *b); /* never NULL; aborts when memory is out */

#endif
