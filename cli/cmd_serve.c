/* durward serve: the daemon. This process becomes the parent (cli/launch.h says how). */
#include <stdlib.h>

#include "commands.h"
#include "launch.h"
#include "out.h"
#include "settings.h"

static int cmd_serve(int argc, char **argv);

static const struct arg_option options[] = {
    {'c', "config", "FILE", "the configuration (default: $DURWARD_CONFIG, then the user's)"},
    {0},
};

const struct command command_serve = {
    "serve",
    "[-c FILE]",
    "Run the daemon: all roles, in the foreground.",
    options,
    "SIGHUP or 'durward reload' reads the configuration again; SIGTERM lets requests end for at\n"
    "most 10 s and exits. Diagnostics go to stderr.\n",
    cmd_serve,
};

static int cmd_serve(int argc, char **argv)
{
    struct args a = {.cmd = &command_serve, .argc = argc, .argv = argv};
    const char *file = NULL;
    char *found = NULL;
    struct err err = {0};
    int id;
    while ((id = args_next(&a)) != ARGS_END) {
        if (id == ARGS_STOP)
            return a.exit_code;
        file = a.value;
    }
    if (a.next < argc)
        return args_usage(a.cmd, "unexpected argument %s", argv[a.next]);
    if (a.socket && getenv("DURWARD_SOCKET") != a.socket)
        return args_usage(a.cmd, "--socket is for asking a daemon; here controller.socket says it");
    if (file == NULL)
        file = found = config_find(&err);
    struct config *c = file ? config_load(file, &err) : NULL;
    if (c)
        launch_become_parent(file, c, &err);
    out_error("%s", err.text);
    config_unref(c);
    free(found);
    return EXIT_NO;
}
