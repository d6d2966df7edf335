/* durward console: a link that logs into the daemon's page. */
#include "api_client.h"
#include "commands.h"
#include "out.h"

static int cmd_console(int argc, char **argv);

static const struct arg_option options[] = {{0}};

const struct command command_console = {
    "console",
    "[--json] [--socket PATH]",
    "Print a link to the console, the page that shows what goes on.",
    options,
    "The link is good once, for five minutes. The daemon serves the page where the configuration\n"
    "says so: listen: [{ console: 127.0.0.1:9465 }]. From elsewhere: ssh -L 9465:127.0.0.1:9465.\n",
    cmd_console,
};

static int cmd_console(int argc, char **argv)
{
    struct args a = {.cmd = &command_console, .argc = argc, .argv = argv};
    struct err err = {0};
    json_t *reply = NULL;
    if (args_next(&a) == ARGS_STOP)
        return a.exit_code;
    if (a.next < argc)
        return args_usage(a.cmd, "unexpected argument %s", argv[a.next]);
    if (api_call(a.socket, "POST", "/v1/console", NULL, &reply, &err) < 0) {
        out_error("%s", err.text);
        return EXIT_NO;
    }
    if (a.json)
        return out_json(reply) < 0 ? EXIT_NO : EXIT_OK;
    const char *url = json_string_value(json_object_get(reply, "url"));
    printf("%s\n", url ? url : "");
    json_decref(reply);
    return out_flush() < 0 ? EXIT_NO : EXIT_OK;
}
