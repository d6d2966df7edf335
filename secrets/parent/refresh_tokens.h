/* Refresh tokens that an endpoint replaced: files of mode 0600 in a directory of the parent's, one
 * a secret. The vault writes and reads them through it. */
#ifndef DURWARD_REFRESH_TOKENS_H
#define DURWARD_REFRESH_TOKENS_H

#include "err.h"
#include "ipc.h"

/* A W_TOKEN_SAVE or W_TOKEN_GET of the vault, answered on its channel. state_dir: `tokens` is made
 * in it. 0, or -1 when the message is bad. */
int refresh_tokens_message(const char *state_dir, struct ipc *vault, struct msg *m);

#endif
