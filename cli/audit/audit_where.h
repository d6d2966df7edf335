/* Which audit directory a command is about, and what the audit commands' files share. */
#ifndef DURWARD_AUDIT_WHERE_H
#define DURWARD_AUDIT_WHERE_H

#include <jansson.h>

#include "commands.h"
#include "err.h"

struct audit_where {
    const char *dir, *config; /* --dir, -c */
};

/* Its options, in the table of a command that reads them into a struct that begins with one. */
#define AUDIT_OPTIONS_WHERE                                                                 \
    {0, "dir", "DIR",                                                                       \
     "the audit directory (default: the daemon's that is named, else the configuration's)", \
     offsetof(struct audit_where, dir)},                                                    \
    {                                                                                       \
        'c', "config", "FILE", "the configuration that names it",                           \
            offsetof(struct audit_where, config)                                            \
    }

/* After the options: the directory that they name, else that of the daemon that --socket or its
 * variable names, else the configuration's; malloc'd; NULL when the command must return *code. */
char *audit_where_dir(const struct args *a, const struct audit_where *w, int *code);

/* cmd_audit_verify.c */
extern const struct arg_option audit_verify_options[];
int audit_run_verify(int argc, char **argv);
int audit_run_prove(int argc, char **argv);
struct signing_key;
struct verify_result;
/* The public key that was given, or that of the directory, or of the one above it. */
struct signing_key *audit_key(int dirfd, const char *given, struct err *err);
json_t *audit_verified(const char *dir, const struct verify_result *v);
json_t *audit_key_hex(const struct signing_key *key);
/* cmd_audit_fleet.c */
struct audit_fleet_asked {
    const char *config; /* names the hosts and their keys */
    const char *heads;  /* files, "," between; NULL: the one of dir */
    const char *logs;   /* "HOST=DIR,…"; NULL: none but this host's, if heads are its own */
};
int audit_verify_fleet(const struct audit_fleet_asked *asked, const char *dir, bool json);
/* cmd_audit_case.c */
int audit_run_case(int argc, char **argv);
int audit_check_case(const char *file, const char *key_file, bool json);
/* cmd_audit_recording.c */
int audit_run_recording(int argc, char **argv);
/* cmd_audit_suggest.c */
extern const struct arg_option audit_suggest_options[];
int audit_run_suggest(int argc, char **argv);
/* cmd_audit_index.c */
int audit_run_index(int argc, char **argv);
/* cmd_audit_exfil.c */
extern const struct arg_option audit_exfil_options[];
int audit_run_exfil(int argc, char **argv);

#endif
