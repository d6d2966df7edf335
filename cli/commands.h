/* The commands of `durward`. Each cmd_NAME lives in cmd_NAME.c, gets argv with its own name first
 * and returns its exit code: 0 done, 1 the thing asked about failed, 2 usage, 125 to
 * 127 for `run`. */
#ifndef DURWARD_COMMANDS_H
#define DURWARD_COMMANDS_H

#include "args.h"

extern const struct command command_run, command_serve, command_reload, command_status,
    command_check, command_explain, command_test, command_env, command_completion, command_console,
    command_mcp, command_debug, command_doctor, command_trace, command_approve, command_audit,
    command_ca, command_home, command_image, command_login, command_preset, command_profile,
    command_proposals, command_suppressions, command_init, command_logs, command_sandbox,
    command_secret, command_template, command_token, command_volume;

/* The verbs of the commands that have some; each list ends with an entry without a name. */
extern const struct command approve_verbs[], audit_verbs[], ca_verbs[], home_verbs[], image_verbs[],
    login_verbs[], preset_verbs[], profile_verbs[], proposals_verbs[], sandbox_verbs[],
    suppressions_verbs[], secret_verbs[], template_verbs[], token_verbs[], volume_verbs[];

int preset_print(const char *name, bool json);

/* Verbs of `sandbox` with a file of their own. */
int verb_exec(int argc, char **argv);
int verb_attach(int argc, char **argv);
int verb_cp(int argc, char **argv);
int verb_watch(int argc, char **argv);
int verb_sync(int argc, char **argv);
int verb_forward(int argc, char **argv);
int verb_services(int argc, char **argv);
int verb_preview(int argc, char **argv);
int verb_snapshot(int argc, char **argv);
int snapshot_export_verb(const struct args *a, const char *name, const char *file, bool force);
/* The same of a volume. */
int volume_export_verb(const struct args *a, const char *name, const char *file, bool force);
int snapshot_import_verb(const struct args *a, const char *given, const char *file);
int verb_restore(int argc, char **argv);
extern const struct arg_option sandbox_exec_options[], sandbox_snapshot_options[],
    sandbox_watch_options[], sandbox_sync_options[], sandbox_preview_options[];

/* Of `login`. */
int login_mcp(int argc, char **argv);
extern const struct arg_option login_mcp_options[];

/* And of `ca`. */
int ca_rotate(int argc, char **argv);
extern const struct arg_option ca_rotate_options[];

/* Every command that can be used, in the order of the help; ends with a NULL. */
extern const struct command *const commands[];

#endif
