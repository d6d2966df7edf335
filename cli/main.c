/* The command. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "commands.h"
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
    printf("\n  durward COMMAND --help tells about one of them; durward --version the version.\n"
           "\nexit status: 0 done, 1 what was asked about failed, 2 usage error;\n"
           "of run: the command's own, 128+N after signal N, 125 Durward failed\n"
           "(usage errors too), 126 the command cannot be executed, 127 it was not found.\n");
    return out_flush() < 0 ? EXIT_NO : EXIT_OK;
}

static size_t min3(size_t a, size_t b, size_t c)
{
    size_t m = a < b ? a : b;
    return m < c ? m : c;
}

/* Edit distance of two short words (Wagner and Fischer), for "did you mean". */
static size_t distance(const char *a, const char *b)
{
    enum { WORD = 32 };
    size_t row[WORD + 1], n = strnlen(a, WORD), m = strnlen(b, WORD);
    for (size_t j = 0; j <= m; j++)
        row[j] = j;
    for (size_t i = 1; i <= n; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= m; j++) {
            size_t above = row[j];
            row[j] = min3(above + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1]));
            diagonal = above;
        }
    }
    return row[m];
}

static int unknown_command(const char *name)
{
    const char *best = NULL;
    size_t least = 3; /* farther than two edits is no suggestion */
    char clean[64];
    for (const struct command *const *c = commands; *c; c++)
        if (distance((*c)->name, name) < least) {
            least = distance((*c)->name, name);
            best = (*c)->name;
        }
    out_clean(name, clean, sizeof clean);
    if (best)
        out_error("there is no command '%s'; did you mean '%s'?", clean, best);
    else
        out_error("there is no command '%s'; 'durward --help' lists them", clean);
    return EXIT_USAGE;
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
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 || strcmp(name, "help") == 0)
        return print_help();
    if (strcmp(name, "--version") == 0) {
        printf("durward %s%s\n", PACKAGE_VERSION, SANITIZED ? " (sanitizers)" : "");
        return out_flush() < 0 ? EXIT_NO : EXIT_OK;
    }
    for (const struct command *const *c = commands; *c; c++)
        if (strcmp((*c)->name, name) == 0)
            return (*c)->verbs ? args_verbs(*c, argc - 1, argv + 1) : (*c)->run(argc - 1, argv + 1);
    return unknown_command(name);
}
