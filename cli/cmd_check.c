/* durward check: is this configuration good? */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "commands.h"
#include "config.h"
#include "out.h"
#include "roots.h"

static int cmd_check(int argc, char **argv);

static const struct arg_option options[] = {{0}};

const struct command command_check = {
    "check",
    "[--json] FILE",
    "Check a configuration file.",
    options,
    "Prints a summary, or FILE:LINE: what is wrong and a hint, with exit status 1. FILE may be -\n"
    "for standard input. Warnings go to stderr and leave the status as it is: a deny inside a\n"
    "wider allow, placeholders without a rule, certificate files that are not on this machine.\n",
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

/* ---- what loads and may yet not do what it seems to ---- */

static void keep_warning(void *arg, const char *text)
{
    json_array_append_new(arg, json_string(text));
}

static void missing_file(json_t *list, const char *key, const char *path)
{
    char text[4400];
    if (path == NULL || access(path, R_OK) == 0)
        return;
    snprintf(text, sizeof text, "%s: %s: %s; 'durward serve' and 'run' would not start here", key,
             path, strerror(errno));
    keep_warning(list, text);
}

static json_t *warnings(const struct config *c)
{
    json_t *list = json_array();
    struct err err = {0};
    config_warnings(c, keep_warning, list);
    missing_file(list, "ca.cert", config_ca_cert(c));
    missing_file(list, "ca.key", config_ca_key(c));
    int fd = roots_pack_with(NULL, config_upstream_ca(c), &err);
    if (fd >= 0) {
        close(fd);
    } else {
        char text[sizeof err.text + 100];
        snprintf(text, sizeof text,
                 "upstream.ca: %s; 'durward serve' and 'run' would not start here", err.text);
        keep_warning(list, text);
    }
    return list;
}

static void print_warnings(const json_t *list)
{
    size_t i;
    const json_t *text;
    json_array_foreach(list, i, text)
    {
        out_coloured(stderr, COLOUR_YELLOW, "warning:");
        fprintf(stderr, " %s\n", json_string_value(text));
    }
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
    const struct config_secret *list = config_secrets(c, &secrets);
    while (secrets > 0 && list[secrets - 1].hidden)
        secrets--;
    config_listens(c, &listens);
    listens += (config_metrics(c) != NULL) + (config_console(c) != NULL);
    size_t policies = config_policies(c);
    json_t *warned = warnings(c);
    if (json)
        return out_json(json_pack("{s:b, s:s, s:I, s:I, s:I, s:I, s:o}", "ok", 1, "file", file,
                                  "secrets", (json_int_t)secrets, "policies", (json_int_t)policies,
                                  "rules", (json_int_t)rules, "listen", (json_int_t)listens,
                                  "warnings", warned)) < 0
                   ? EXIT_NO
                   : EXIT_OK;
    print_warnings(warned);
    json_decref(warned);
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
