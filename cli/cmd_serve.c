/* durward serve: the daemon. This process becomes the parent (cli/launch.h says how). */
#include <stdio.h>
#include <stdlib.h>

#include "backend_here.h"
#include "commands.h"
#include "launch.h"
#include "out.h"
#include "paths.h"
#include "settings.h"

static int cmd_serve(int argc, char **argv);

static const struct arg_option options[] = {
    ARG_CONFIG,
    {0},
};

const struct command command_serve = {
    "serve",
    "[-c FILE]",
    "Run the daemon: all roles, in the foreground.",
    options,
    "SIGHUP or 'durward reload' reads the configuration again; SIGTERM lets requests end for at\n"
    "most 10 s and exits. Diagnostics go to stderr, first where it is reached: socket,\n"
    "console, metrics, proxies.\n",
    cmd_serve,
};

/* Where it is to be reached; what cannot be listened on is an error that follows. */
static void say_places(const struct config *c)
{
    const struct config_listen *tls = config_api(c);
    const char *console = config_console(c), *metrics = config_metrics(c);
    char *own = config_controller_socket(c) ? NULL : paths_api_socket(NULL);
    const char *socket = config_controller_socket(c) ? config_controller_socket(c) : own;
    size_t n;
    const struct config_listen *l = config_listens(c, &n);
    fprintf(stderr, "durward: socket %s", socket ? socket : "?");
    if (tls)
        fprintf(stderr, ", API https://%s", tls->reached_at);
    if (console)
        fprintf(stderr, ", console http://%s ('durward console' prints a link)", console);
    if (metrics)
        fprintf(stderr, ", metrics http://%s/metrics", metrics);
    for (size_t i = 0; i < n; i++)
        fprintf(stderr, ", proxy %s://%s", l[i].kind == LISTEN_HTTPS ? "https" : "http",
                l[i].reached_at);
    fputc('\n', stderr);
    free(own);
}

/* It starts all the same: what else there is may be used. */
static void say_absent(void *arg UNUSED, const char *policy, enum config_backend b, const char *why)
{
    fprintf(stderr, "durward: policy '%s': backend: %s cannot run here: %s\n", policy,
            config_backend_name(b), why);
}

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
        say_places(c);
    if (c)
        backends_absent(c, say_absent, NULL);
    if (c)
        launch_become_parent(file, c, &err);
    out_error("%s", err.text);
    config_unref(c);
    free(found);
    return EXIT_NO;
}
