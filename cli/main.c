/* The command. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "commands.h"
#include "nearest.h"
#include "out.h"
#include "proc.h"

#ifndef PACKAGE_VERSION
#define PACKAGE_VERSION "unknown"
#endif

const struct command *const commands[] = {
    &command_init,      &command_run,          &command_sandbox,    &command_serve,
    &command_status,    &command_reload,       &command_check,      &command_explain,
    &command_test,      &command_env,          &command_secret,     &command_approve,
    &command_proposals, &command_suppressions, &command_token,      &command_image,
    &command_volume,    &command_template,     &command_preset,     &command_profile,
    &command_home,      &command_login,        &command_ca,         &command_audit,
    &command_logs,      &command_console,      &command_mcp,        &command_doctor,
    &command_trace,     &command_debug,        &command_completion, NULL,
};

static int print_help(void)
{
    printf(
        "usage: durward COMMAND [OPTION...]\n\n"
        "Run code that you do not trust in a sandbox whose only way out is a proxy that adds\n"
        "credentials by rule, refuses everything else and records every attempt.\n\ncommands:\n");
    for (const struct command *const *c = commands; *c; c++)
        printf("  %-12s %s\n", (*c)->name, (*c)->summary);
    printf("\n  'durward help COMMAND' and 'durward COMMAND --help' tell about one of them;\n"
           "  'durward --version' tells the version.\n"
           "\nexit status: 0 done, 1 what was asked about failed, 2 usage error;\n"
           "of run: the command's own, 128+N after signal N, 125 Durward failed\n"
           "(usage errors too), 126 the command cannot be executed, 127 it was not found.\n");
    return out_flush() < 0 ? EXIT_NO : EXIT_OK;
}

static const char *command_name(size_t i, const void *arg UNUSED)
{
    return commands[i]->name;
}

static int unknown_command(const char *name)
{
    size_t n = 0;
    char clean[64];
    while (commands[n])
        n++;
    ssize_t best = name[0] == '-' ? -1 : nearest(name, n, command_name, NULL);
    out_clean(name, clean, sizeof clean);
    if (name[0] == '-')
        out_error("there is no option '%s' before the command: options stand behind it, as in "
                  "'durward run -c FILE'",
                  clean);
    else if (best >= 0)
        out_error("there is no command '%s'; did you mean '%s'?", clean, commands[best]->name);
    else
        out_error("there is no command '%s'; 'durward --help' lists them", clean);
    return EXIT_USAGE;
}

static int dispatch(int argc, char **argv)
{
    for (const struct command *const *c = commands; *c; c++)
        if (strcmp((*c)->name, argv[0]) == 0)
            return (*c)->verbs ? args_verbs(*c, argc, argv) : (*c)->run(argc, argv);
    return unknown_command(argv[0]);
}

/* "help COMMAND [VERB]" is "COMMAND [VERB] --help"; a word that is no verb is refused as there. */
static int help_on(int argc, char **argv)
{
    char option[] = "--help", *words[4] = {argv[0], option};
    if (argc > 2 || strcmp(argv[0], "help") == 0) {
        out_error("usage: durward help [COMMAND [VERB]]");
        return EXIT_USAGE;
    }
    if (argc > 1) {
        words[1] = argv[1];
        words[2] = option;
        for (const struct command *const *c = commands; *c; c++)
            if (strcmp((*c)->name, argv[0]) == 0 && (*c)->verbs == NULL)
                return args_usage(*c, "there is no '%s %s': it has no verbs", argv[0], argv[1]);
    }
    return dispatch(argc > 1 ? 3 : 2, words);
}

/* A closed standard descriptor would be taken by the next file that is opened. */
static int fill_standard_fds(void)
{
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF && open("/dev/null", O_RDWR) != fd)
            return -1;
    return 0;
}

int main(int argc, char **argv)
{
    if (fill_standard_fds() < 0)
        return EXIT_USAGE;
    proc_files_raise();
    if (argc < 2) {
        out_error("a command is missing; 'durward --help' lists them");
        return EXIT_USAGE;
    }
    const char *name = argv[1];
    if (strcmp(name, "help") == 0 && argc > 2)
        return help_on(argc - 2, argv + 2);
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 || strcmp(name, "help") == 0)
        return print_help();
    if (strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0 || strcmp(name, "version") == 0) {
        printf("durward %s%s\n", PACKAGE_VERSION, SANITIZED ? " (sanitizers)" : "");
        return out_flush() < 0 ? EXIT_NO : EXIT_OK;
    }
    return dispatch(argc - 1, argv + 1);
}
