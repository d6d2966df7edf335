/* What a profile and a kept home add to a request of `durward run`. */
#ifndef DURWARD_RUN_PROFILE_H
#define DURWARD_RUN_PROFILE_H

#include "config.h"
#include "home.h"
#include "profile.h"
#include "run_options.h"

struct run_profile {
    struct profile *profile; /* NULL: none */
    char *file;              /* where it was read from; NULL: built in */
    bool logged_in;          /* by its program's login file */
    bool inside;             /* it logs in by itself */
    bool begins;             /* and that login is made in this run */
    struct home home;
};

/* `durward run NAME`, --profile: reads it, and takes NAME off the command line. */
int run_profile_load(struct run_options *o, struct run_profile *ret, struct err *err) WUNUSED;
/* Its program: what it needs is bound, and its own words begin the command line. */
int run_profile_program(const struct run_options *o, const struct run_profile *p,
                        struct run_request *r, struct err *err) WUNUSED;
/* Its home and files. After the other binds were checked: no bind of the user's may hold what
 * Durward keeps, and the project's directory names the home. */
int run_profile_home(const struct run_options *o, const struct config *c, struct run_profile *p,
                     struct run_request *r, struct err *err) WUNUSED;
void run_profile_done(struct run_profile *p); /* zeroed is fine */

#endif
