/* durward check: is this configuration good? */
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "config.h"
#include "out.h"

static int cmd_check(int argc, char **argv);

static const struct arg_option options[] = {{0}};

const struct command command_check = {
    "check",
    "[--json] FILE",
    "Check a configuration file.",
    options,
    "Prints a summary, or FILE:LINE: what is wrong and a hint, with exit status 1. FILE may be -\n"
    "for standard input.\n",
    cmd_check,
};

static size_t count_rules(const struct policy *p)
{
    size_t n = 0;
    while (policy_rule(p, n))
        n++;
    return n;
}

/* Compile every policy as the roles will. */
static int compile_all(const struct config *c, size_t *rules, struct err *err)
{
    *rules = 0;
    for (size_t i = 0; i < config_policies(c); i++) {
        char *json = config_policy_json(c, config_policy_name(c, i));
        struct policy *p = json ? policy_parse(json, strlen(json), err) : NULL;
        free(json);
        if (p == NULL)
            return err_wrap(err, "policy %s", config_policy_name(c, i));
        *rules += count_rules(p);
        policy_free(p);
    }
    return 0;
}

static int report_bad(const char *file, const struct err *err, bool json)
{
    if (json)
        out_json(json_pack("{s:b, s:s, s:s}", "ok", 0, "file", file, "error", err->text));
    else
        fprintf(stderr, "%s\n", err->text);
    return EXIT_NO;
}

static int report_good(const char *file, const struct config *c, size_t rules, bool json)
{
    size_t secrets, listens;
    config_secrets(c, &secrets);
    config_listens(c, &listens);
    size_t policies = config_policies(c);
    if (json)
        return out_json(json_pack("{s:b, s:s, s:I, s:I, s:I, s:I}", "ok", 1, "file", file,
                                  "secrets", (json_int_t)secrets, "policies", (json_int_t)policies,
                                  "rules", (json_int_t)rules, "listen", (json_int_t)listens)) < 0
                   ? EXIT_NO
                   : EXIT_OK;
    printf("%s: ", file);
    out_coloured(stdout, COLOUR_GREEN, "OK");
    printf(": %zu %s, %zu %s, %zu %s, %zu %s\n", secrets, secrets == 1 ? "secret" : "secrets",
           policies, policies == 1 ? "policy" : "policies", rules, rules == 1 ? "rule" : "rules",
           listens, listens == 1 ? "listener" : "listeners");
    return out_flush() < 0 ? EXIT_NO : EXIT_OK;
}

static int cmd_check(int argc, char **argv)
{
    struct args a = {.cmd = &command_check, .argc = argc, .argv = argv};
    struct err err = {0};
    size_t rules;
    if (args_next(&a) == ARGS_STOP)
        return a.exit_code;
    if (a.next + 1 != argc)
        return args_usage(a.cmd, a.next == argc ? "which file?" : "one file at a time");
    const char *file = argv[a.next];
    struct config *c = config_load(file, &err);
    int code;
    if (c == NULL || compile_all(c, &rules, &err) < 0)
        code = report_bad(file, &err, a.json);
    else
        code = report_good(file, c, rules, a.json);
    config_unref(c);
    return code;
}
