/* Reading secrets that are behind an endpoint, for `durward secret test`: by a vault and a dialer
 * of our own, as they run in the daemon; no value comes here. */
#ifndef DURWARD_SECRET_TRY_H
#define DURWARD_SECRET_TRY_H

#include "config.h"
#include "err.h"

struct secret_trial {
    const char *name; /* borrowed */
    bool ok;
    uint32_t bytes; /* of the value, when it is ok */
    char why[800];  /* when it is not */
};

/* Fills in each; what could not be asked is not ok either. Takes at most 45 s. Wipes the
 * environment secrets from this process's environment (cli/launch.h). */
void secret_try(const struct config *c, struct secret_trial *list, size_t n);

/* Without a value being read and a command run: is the variable set, the file there with a mode
 * that will do, the command's program to be found? What is made of others is not asked. 0, or -1.
 */
int secret_at_hand(const struct config_secret *s, struct err *err);

#endif
