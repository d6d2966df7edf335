/* durward console: a link that logs into the daemon's page. */
#include "api_client.h"
#include "commands.h"
#include "out.h"

static int cmd_console(int argc, char **argv);

const struct command command_console = {
    "console",
    "[--json] [--socket PATH]",
    "Print a link to the console, the page that shows what goes on.",
    NULL,
    "The link is good once, for five minutes. The daemon serves the page where the configuration\n"
    "says so: listen: [{ console: 127.0.0.1:9465 }]. From elsewhere: ssh -L 9465:127.0.0.1:9465.\n",
    cmd_console,
};

static void print_link(const json_t *reply)
{
    printf("%s\n", out_member(reply, "url"));
}

static int cmd_console(int argc, char **argv)
{
    struct args a = {.cmd = &command_console, .argc = argc, .argv = argv};
    int code = args_plain(&a, 0, 0, "");
    return code != ARGS_END ? code : api_print(&a, "POST", "/v1/console", NULL, print_link);
}
