/* durward check: is this configuration good? */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backend_here.h"
#include "commands.h"
#include "config.h"
#include "out.h"
#include "roots.h"
#include "secret_try.h"

static int cmd_check(int argc, char **argv);

static const struct arg_option options[] = {
    {'c', "config", "FILE", "the same as FILE"},
    {0},
};

const struct command command_check = {
    "check",
    "[--json] [[-c] FILE]",
    "Check a configuration file.",
    options,
    "Prints a summary, or for each error FILE:LINE: what is wrong and a hint, with exit status 1.\n"
    "FILE may be - for standard input; without one it is the file that 'durward run' would take.\n"
    "Warnings go to stderr and leave the status as it is: a deny inside a wider allow,\n"
    "a rule that never decides, placeholders without a rule, certificate files that are not on\n"
    "this machine, a backend whose programs it lacks, and secrets that cannot be had here:\n"
    "a variable that is not set, a file that is missing or open to others, a command that\n"
    "is not there ('durward secret test' runs it).\n",
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

/* Appends a text, in which a character may have been cut in two. */
static void keep_text(json_t *list, const char *text)
{
    char clean[sizeof((struct err *)0)->text];
    json_t *v = json_string(text);
    json_array_append_new(list, v ? v : json_string(out_clean(text, clean, sizeof clean)));
}

static void keep_warning(void *arg, const char *text)
{
    keep_text(arg, text);
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

/* As the start of `run` and `serve` looks at them; no command is run. */
static void try_secrets(json_t *list, const struct config *c)
{
    size_t n;
    const struct config_secret *s = config_secrets(c, &n);
    for (size_t i = 0; i < n; i++) {
        struct err err = {0};
        char text[sizeof err.text + 400];
        if (secret_at_hand(&s[i], &err) == 0)
            continue;
        snprintf(text, sizeof text, "secret '%s': %s; requests that need it would fail", s[i].name,
                 err.text);
        keep_warning(list, text);
    }
}

/* What package managers' configuration says and presets do not carry. */
static void found_notes(json_t *list, const struct config *c)
{
    const char *preset;
    json_t *one, *note;
    size_t i;
    char text[1200];
    json_object_foreach((json_t *)(uintptr_t)config_found(c), preset, one)
        json_array_foreach(json_object_get(one, "notes"), i, note)
    {
        snprintf(text, sizeof text, "preset '%s': %s", preset, json_string_value(note));
        keep_warning(list, text);
    }
}

/* A device is the kernel's and its driver's to guard, not ours. */
static void device_notes(json_t *list, const struct config *c)
{
    char text[1200];
    json_t *part;
    size_t k;
    for (size_t i = 0; i < config_policies(c); i++) {
        const char *name = config_policy_name(c, i);
        const json_t *found = config_policy_sandbox(c, name)->devices;
        json_array_foreach(json_object_get(found, "nodes"), k, part)
        {
            snprintf(text, sizeof text,
                     "policy '%s': %s is %s of this host: its driver alone says what it does for a "
                     "sandbox",
                     name, json_string_value(json_object_get(part, "path")),
                     json_string_value(json_object_get(part, "host")));
            keep_warning(list, text);
        }
        json_array_foreach(json_object_get(found, "mounts"), k, part)
        {
            snprintf(text, sizeof text, "policy '%s': %s of this host is read at %s", name,
                     json_string_value(json_object_get(part, "host")),
                     json_string_value(json_object_get(part, "path")));
            keep_warning(list, text);
        }
    }
}

static void keep_absent(void *arg, const char *policy, enum config_backend b, const char *why)
{
    char text[1200];
    snprintf(text, sizeof text,
             "policy '%s': backend: %s cannot run here: %s; no sandbox of it would start", policy,
             config_backend_name(b), why);
    keep_warning(arg, text);
}

static json_t *warnings(const struct config *c)
{
    json_t *list = json_array();
    struct err err = {0};
    config_warnings(c, keep_warning, list);
    missing_file(list, "ca.cert", config_ca_cert(c));
    missing_file(list, "ca.key", config_ca_key(c));
    try_secrets(list, c);
    found_notes(list, c);
    device_notes(list, c);
    backends_absent(c, keep_absent, list);
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

/* Names in it may be a sandbox's. */
static void tell_text(const char *before, const json_t *text)
{
    char *copy = strdup(json_string_value(text));
    if (copy == NULL)
        return;
    out_harmless(copy);
    fprintf(stderr, "%s%s\n", before, copy);
    free(copy);
}

static void print_warnings(const json_t *list)
{
    size_t i;
    const json_t *text;
    json_array_foreach(list, i, text)
    {
        out_coloured(stderr, COLOUR_YELLOW, "warning:");
        tell_text(" ", text);
    }
}

static void tell_error(void *arg, const char *text)
{
    keep_text(arg, text);
}

/* Takes the list. */
static int report_bad(const char *file, json_t *errors, bool json)
{
    size_t i, n = json_array_size(errors);
    const json_t *text;
    if (json)
        return out_json(json_pack("{s:b, s:s, s:O, s:o}", "ok", 0, "file", file, "error",
                                  json_array_get(errors, 0), "errors", errors)),
               EXIT_NO;
    json_array_foreach(errors, i, text) tell_text("", text);
    if (n > 1)
        fprintf(stderr, "%zu errors\n", n);
    json_decref(errors);
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

static int check(const char *file, bool json)
{
    struct err err = {0};
    size_t rules = 0;
    json_t *errors = json_array();
    struct config *c = config_check(file, tell_error, errors);
    if (c && compile_all(c, &rules, &err) < 0)
        tell_error(errors, err.text);
    int code;
    if (c == NULL || json_array_size(errors) > 0) {
        code = report_bad(file, errors, json);
    } else {
        json_decref(errors);
        code = report_good(file, c, rules, json);
    }
    config_unref(c);
    return code;
}

static int cmd_check(int argc, char **argv)
{
    struct args a = {.cmd = &command_check, .argc = argc, .argv = argv};
    struct err err = {0};
    char *found = NULL;
    const char *file = NULL;
    int code = args_one(&a, &file, 0, 1, "");
    if (code != ARGS_END)
        return code;
    if (file && a.next < argc)
        return args_usage(a.cmd, "one file at a time");
    if (file == NULL)
        file = a.next < argc ? argv[a.next] : (found = config_find(&err));
    if (file == NULL)
        return out_fail(&err);
    code = check(file, a.json);
    free(found);
    return code;
}
