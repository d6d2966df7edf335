/* durward reload: the daemon reads its configuration again. A bad one changes nothing (P9). */
#include "api_client.h"
#include "commands.h"
#include "out.h"

static int cmd_reload(int argc, char **argv);

const struct command command_reload = {
    "reload",
    "[--json] [--socket PATH]",
    "Make the daemon read its configuration again.",
    NULL,
    "A bad configuration never replaces a good one: its error is shown, the exit status is 1\n"
    "and the daemon goes on with what it had.\n",
    cmd_reload,
};

static void print_done(const json_t *reply UNUSED)
{
    printf("reloaded\n");
}

static int cmd_reload(int argc, char **argv)
{
    struct args a = {.cmd = &command_reload, .argc = argc, .argv = argv};
    int code = args_plain(&a, 0, 0, "");
    return code != ARGS_END ? code : api_print(&a, "POST", "/v1/reload", NULL, print_done);
}
