/* Homes that Durward keeps on the host: a directory that is $HOME in a sandbox and stays, with the
 * seed that its placeholders are made from. One running sandbox at a time has it.
 *
 * STATE-homes/NAME/  0700
 *   home/            what the sandbox sees
 *   logins/          those that were made inside (secrets/parent/home_logins.h); never inside
 *   seed             16 bytes; never inside
 *   renewed          there from `durward home renew` until files were written with the new ones
 *   lock             flock of whoever runs with it */
#ifndef DURWARD_HOME_H
#define DURWARD_HOME_H

#include <time.h>

#include "config.h"
#include "run.h"

struct home {
    char *name;
    char *files; /* the directory that is bound */
    int dir, lock;
    bool renewed; /* its files hold placeholders that were given up */
    unsigned char seed[RUN_SEED];
};

/* HOMES, malloc'd: beside the state directory, of which no sandbox is ever given anything. config
 * may be NULL. */
char *home_folder(const struct config *config, struct err *err);

/* Made where it is not there yet. Refused while somebody else has it. */
int home_open(const struct config *config, const char *name, struct home *ret,
              struct err *err) WUNUSED;
/* Does anything lie in it, or in a login that was made in it? */
bool home_used(const struct home *h);
/* The files of the profile were written. */
void home_laid(struct home *h);
void home_close(struct home *h); /* zeroed is fine */

bool home_name_ok(const char *name);
/* "PROFILE-PROJECT-1a2b3c4d": one for each project directory and profile. */
void home_name_for(const char *profile, const char *project, char *to, size_t n);

/* Its logins made inside are forgotten; so they are by home_renew, for their placeholders are. */
int home_logout(const struct config *config, const char *name, struct err *err);
int home_renew(const struct config *config, const char *name, struct err *err);
int home_remove(const struct config *config, const char *name, struct err *err);
/* Each by name, and whether somebody has it now. dir: HOMES/NAME. */
int home_each(const struct config *config,
              void (*fn)(void *arg, const char *name, bool used, int dir), void *arg,
              struct err *err);
/* The logins in such a directory: of which policy, the secrets' names with ", " between, and when
 * they were written last. */
void home_each_login(int dir,
                     void (*fn)(void *arg, const char *policy, const char *secrets, time_t when),
                     void *arg);

#endif
