/* durward template: kinds of sandboxes that the configuration gives a name, and their pools. */
#include <stdio.h>
#include <string.h>

#include "api_client.h"
#include "commands.h"
#include "out.h"
#include "sandbox_spec.h"
#include "which.h"

enum { LS, SHOW };

static int run_ls(int argc, char **argv);
static int run_show(int argc, char **argv);

const struct command template_verbs[] = {
    [LS] = {"template ls", "[--json]", "List templates and what their pools hold.", NULL,
            "READY can be had at once, MAKING are on their way. FAILED is how often in a row one\n"
            "could not be made; 'show' says why and when the next is tried.\n",
            run_ls},
    [SHOW] = {"template show", "[--json] NAME", "Show a template and its pool.", NULL, NULL,
              run_show},
    {0},
};

static int64_t number(const json_t *v, const char *key)
{
    return json_integer_value(json_object_get(v, key));
}

static void print_row(struct out_table *t, const json_t *v)
{
    out_table_cell(t, out_member(v, "name"));
    out_table_cell(t, out_member(v, "policy"));
    out_table_cell(t, out_member(v, "image"));
    out_table_number(t, number(v, "pool"));
    out_table_number(t, number(v, "ready"));
    out_table_number(t, number(v, "making"));
    out_table_number(t, number(v, "failures"));
}

static int run_ls(int argc, char **argv)
{
    static const char *const titles[] = {"NAME",  "POLICY", "IMAGE",  "POOL",
                                         "READY", "MAKING", "FAILED", NULL};
    struct args a = {.cmd = &template_verbs[LS], .argc = argc, .argv = argv};
    struct err err = {0};
    int code = args_plain(&a, 0, 0, "");
    if (code != ARGS_END)
        return code;
    json_t *all = which_list(a.socket, WHICH_TEMPLATE, &err);
    return all ? out_list(all, a.json, titles, "the configuration has no templates", print_row)
               : out_fail(&err);
}

static void print_texts(const json_t *v, const char *key, const char *title)
{
    size_t i;
    json_t *one;
    char clean[400];
    json_array_foreach(json_object_get(v, key), i, one)
    {
        if (json_is_integer(one))
            printf("%-11s %lld\n", title, (long long)json_integer_value(one));
        else
            printf("%-11s %s\n", title, out_clean(json_string_value(one), clean, sizeof clean));
    }
}

static void print_pool(const json_t *v)
{
    char clean[300];
    printf("%-11s %lld of %lld ready, %lld on their way\n", "pool", (long long)number(v, "ready"),
           (long long)number(v, "pool"), (long long)number(v, "making"));
    if (json_object_get(v, "claimed"))
        printf("%-11s %lld from the pool, %lld made when asked for\n", "had",
               (long long)number(v, "claimed"), (long long)number(v, "missed"));
    if (number(v, "failures"))
        printf("%-11s %lld times in a row, next in %llds: %s\n", "failed",
               (long long)number(v, "failures"), (long long)number(v, "retry_in"),
               out_clean(out_member(v, "reason"), clean, sizeof clean));
}

static void print_one(const json_t *v)
{
    static const char *const shown[] = {"name", "policy", "image", "snapshot"};
    const char *key;
    json_t *one;
    char clean[1100], ttl[24], idle[24];
    for (size_t i = 0; i < ARRAY_LEN(shown); i++)
        if (*out_member(v, shown[i]))
            printf("%-11s %s\n", shown[i], out_clean(out_member(v, shown[i]), clean, 256));
    printf("%-11s %s\n", "warm-up", json_is_true(json_object_get(v, "warm_up")) ? "yes" : "no");
    printf("%-11s %s\n", "ttl", out_span(number(v, "ttl"), ttl, sizeof ttl));
    if (number(v, "idle_ttl"))
        printf("%-11s %s, then %s\n", "idle", out_span(number(v, "idle_ttl"), idle, sizeof idle),
               out_member(v, "on_idle"));
    if (number(v, "soft_ttl"))
        printf("%-11s %s, then %s\n", "soft ttl",
               out_span(number(v, "soft_ttl"), idle, sizeof idle), out_member(v, "on_soft_ttl"));
    json_object_foreach(json_object_get(v, "labels"), key, one)
        printf("%-11s %s=%s\n", "label", key, out_clean(json_string_value(one), clean, 1100));
    print_texts(v, "volumes", "volume");
    print_texts(v, "ports", "port");
    print_pool(v);
}

static int run_show(int argc, char **argv)
{
    struct args a = {.cmd = &template_verbs[SHOW], .argc = argc, .argv = argv};
    char path[128];
    int code = args_plain(&a, 1, 1, "which template?");
    if (code != ARGS_END)
        return code;
    if (!sandbox_spec_name_ok(argv[a.next]))
        return args_usage(a.cmd, "'%.64s' is not the name of a template", argv[a.next]);
    snprintf(path, sizeof path, "/v1/templates/%s", argv[a.next]);
    return api_print(&a, "GET", path, NULL, print_one);
}

const struct command command_template = {
    .name = "template",
    .usage = "ls|show [OPTION...]",
    .summary = "Kinds of sandboxes that the configuration names, and their pools.",
    .more =
        "'durward sandbox create --template NAME' makes a sandbox by one, out of its pool where\n"
        "that has one.\n",
    .verbs = template_verbs,
};
