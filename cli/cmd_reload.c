/* durward reload: the daemon reads its configuration again. A bad one changes nothing (P9). */
#include "api_client.h"
#include "commands.h"
#include "out.h"

static int cmd_reload(int argc, char **argv);

static const struct arg_option options[] = {{0}};

const struct command command_reload = {
    "reload",
    "[--json] [--socket PATH]",
    "Make the daemon read its configuration again.",
    options,
    "A bad configuration never replaces a good one: its error is shown, the exit status is 1\n"
    "and the daemon goes on with what it had.\n",
    cmd_reload,
};

static int cmd_reload(int argc, char **argv)
{
    struct args a = {.cmd = &command_reload, .argc = argc, .argv = argv};
    struct err err = {0};
    json_t *reply = NULL;
    if (args_next(&a) == ARGS_STOP)
        return a.exit_code;
    if (a.next < argc)
        return args_usage(a.cmd, "unexpected argument %s", argv[a.next]);
    if (api_call(a.socket, "POST", "/v1/reload", NULL, &reply, &err) < 0) {
        out_error("%s", err.text);
        return EXIT_NO;
    }
    if (a.json)
        return out_json(reply) < 0 ? EXIT_NO : EXIT_OK;
    json_decref(reply);
    printf("reloaded\n");
    return out_flush() < 0 ? EXIT_NO : EXIT_OK;
}
