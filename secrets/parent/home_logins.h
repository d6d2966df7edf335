/* Logins that were made inside a sandbox and stay with its kept home: the vault's captured secrets
 * of `keep: home`, in a file for each policy.
 *
 * HOMES/NAME/logins/POLICY  0600   as in secrets/proto/capture.h
 *
 * One home is known, which the command has opened and locked, and one sandbox of one policy: the
 * first that there was. Whatever the vault says, nothing else is read or written. */
#ifndef DURWARD_HOME_LOGINS_H
#define DURWARD_HOME_LOGINS_H

#include "ipc.h"

enum { HOME_LOGINS_MAX = 64 * 1024 }; /* bytes of a file: CAPTURED_KEPT_MAX */

struct home_logins;

/* dir: HOMES/NAME, and its lock, both taken over; -1: no home is kept, and NULL is returned, which
 * all of this takes. */
struct home_logins *home_logins_new(int dir, int lock);
void home_logins_free(struct home_logins *h);

/* A sandbox: the home's, if it is the first. True: it is, and the vault is to be told. */
bool home_logins_first(struct home_logins *h, const char *sandbox, const char *policy);
/* W_HOME to a vault that is there, or was started again. */
void home_logins_tell(const struct home_logins *h, struct ipc *vault);
/* W_HOME_KEEP of the vault, answered on its channel. 0, or -1 when the message is bad. *told: what
 * the log is to have, to be sent; its type is 0 when there is nothing. */
int home_logins_message(const struct home_logins *h, struct ipc *vault, struct msg *m,
                        struct msg *told);

#endif
