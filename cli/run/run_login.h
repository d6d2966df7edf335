/* `durward run --login NAME[@ENTRY,...][=FILE]`: the login of a program on this host, used by its
 * file once the user has said so for that file. */
#ifndef DURWARD_RUN_LOGIN_H
#define DURWARD_RUN_LOGIN_H

#include "login.h"
#include "run.h"
#include "run_options.h"

enum { RUN_LOGINS_MAX = 16 };

struct run_login {
    struct login_use use[RUN_LOGINS_MAX];
    size_t n;
};

/* Where the program keeps it: PATH_MAX bytes. of: whose it is, of a format with a file for each. */
void run_login_path(const struct login_format *f, const char *of, char *to);
/* fn for each such file that is there, with whose it is. */
void run_login_each(const struct login_format *f, void (*fn)(void *arg, const char *of), void *arg);
/* Looks at each file; zeroed before. */
int run_login_read(const struct run_options *o, struct run_login *ret, struct err *err) WUNUSED;
/* What stands in their place inside. Before a profile's own files, which do not replace them. */
int run_login_files(const struct run_login *l, struct run_request *r, struct err *err) WUNUSED;
void run_login_done(struct run_login *l); /* zeroed is fine */

#endif
