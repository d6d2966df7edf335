/* Which audit directory a command is about, and what the audit commands' files share. */
#ifndef DURWARD_AUDIT_WHERE_H
#define DURWARD_AUDIT_WHERE_H

#include "commands.h"

enum {
    AUDIT_OPT_DIR = 256,
    AUDIT_OPT_KEY,
    AUDIT_OPT_ANCHOR,
    AUDIT_OPT_PROOF,
    AUDIT_OPT_SINCE,
    AUDIT_OPT_SANDBOX,
    AUDIT_OPT_POLICY,
    AUDIT_OPT_EXACT,
    AUDIT_OPT_NEXT
};

struct audit_where {
    const char *dir, *config; /* --dir, -c */
};

/* After the options: the directory that they name, else that of the daemon that --socket or its
 * variable names, else the configuration's; malloc'd; NULL when the command must return *code. */
char *audit_where_dir(const struct args *a, const struct audit_where *w, int *code);

/* cmd_audit_verify.c */
int audit_run_verify(int argc, char **argv);
int audit_run_prove(int argc, char **argv);
/* cmd_audit_suggest.c */
int audit_run_suggest(int argc, char **argv);
/* cmd_audit_index.c */
int audit_run_index(int argc, char **argv);
/* cmd_audit_exfil.c */
int audit_run_exfil(int argc, char **argv);

#endif
