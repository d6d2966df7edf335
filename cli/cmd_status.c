/* durward status: is there a daemon, and what is it made of? Exit status 0 when one answers. */
#include "api_client.h"
#include "commands.h"
#include "out.h"

static int cmd_status(int argc, char **argv);

const struct command command_status = {
    "status",
    "[--json] [--socket PATH]",
    "Show the daemon's places, roles, listeners and sandboxes.",
    NULL,
    "Exit status 0 when a daemon answers, 1 when none does.\n",
    cmd_status,
};

static void print_uptime(json_int_t s)
{
    if (s >= 86400)
        printf("%lldd ", (long long)(s / 86400));
    if (s >= 3600)
        printf("%lldh ", (long long)(s / 3600 % 24));
    if (s >= 60)
        printf("%lldm ", (long long)(s / 60 % 60));
    printf("%llds", (long long)(s % 60));
}

/* Where it is reached and where it writes. */
static void print_places(const json_t *reply)
{
    static const char *const shown[][2] = {{"socket", "socket"},       {"api", "https"},
                                           {"console", "console"},     {"metrics", "metrics"},
                                           {"audit_dir", "audit log"}, {"fleet_key", "fleet key"}};
    bool any = false;
    for (size_t i = 0; i < ARRAY_LEN(shown); i++) {
        char clean[4200];
        const char *text = out_member(reply, shown[i][0]);
        if (*text)
            printf("%-10s %s\n", shown[i][1], out_clean(text, clean, sizeof clean));
        any |= *text != 0;
    }
    if (any)
        putchar('\n');
}

static void print_roles(const json_t *roles)
{
    static const char *const titles[] = {"ROLE", "PID", "FOR", NULL};
    struct out_table *t = out_table_new(titles);
    size_t i;
    json_t *r;
    json_array_foreach(roles, i, r)
    {
        char pid[24];
        snprintf(pid, sizeof pid, "%lld", (long long)json_integer_value(json_object_get(r, "pid")));
        out_table_cell(t, out_member(r, "role"));
        out_table_cell(t, pid);
        out_table_cell(t, out_member(r, "sandbox"));
    }
    out_table_print(t);
}

static void print_listeners(const json_t *listeners)
{
    static const char *const titles[] = {"LISTEN", "ADDRESS", "POLICY", NULL};
    if (json_array_size(listeners) == 0) {
        printf("\nno listeners\n");
        return;
    }
    struct out_table *t = out_table_new(titles);
    size_t i;
    json_t *l;
    json_array_foreach(listeners, i, l)
    {
        const char *policy = out_member(l, "policy");
        out_table_cell(t, out_member(l, "kind"));
        out_table_cell(t, out_member(l, "address"));
        out_table_cell(t, *policy ? policy : "(by token)");
    }
    putchar('\n');
    out_table_print(t);
}

static void print_sandboxes(const json_t *sandboxes)
{
    static const char *const titles[] = {"SANDBOX", "POLICY", "STATE", NULL};
    if (json_array_size(sandboxes) == 0) {
        printf("\nno sandboxes\n");
        return;
    }
    struct out_table *t = out_table_new(titles);
    size_t i;
    json_t *s;
    json_array_foreach(sandboxes, i, s)
    {
        out_table_cell(t, out_member(s, "id"));
        out_table_cell(t, out_member(s, "policy"));
        out_table_cell(t, out_member(s, "state"));
    }
    putchar('\n');
    out_table_print(t);
}

/* Those that have one. */
static void print_pools(const json_t *pools)
{
    static const char *const titles[] = {"TEMPLATE", "POOL", "READY", "FAILED", "REASON", NULL};
    static const char *const numbers[] = {"pool", "ready", "failures"};
    size_t i;
    json_t *p;
    struct out_table *t = NULL;
    json_array_foreach(pools, i, p)
    {
        char text[24], clean[300];
        if (json_integer_value(json_object_get(p, "pool")) == 0)
            continue;
        t = t ? t : out_table_new(titles);
        out_table_cell(t, out_member(p, "name"));
        for (size_t k = 0; k < ARRAY_LEN(numbers); k++) {
            snprintf(text, sizeof text, "%lld",
                     (long long)json_integer_value(json_object_get(p, numbers[k])));
            out_table_cell(t, text);
        }
        out_table_cell(t, out_clean(out_member(p, "reason"), clean, sizeof clean));
    }
    if (t == NULL)
        return;
    putchar('\n');
    out_table_print(t);
}

static void print_status(const json_t *reply)
{
    printf("durward is ");
    out_coloured(stdout, COLOUR_GREEN, "running");
    printf(", up ");
    print_uptime(json_integer_value(json_object_get(reply, "uptime_seconds")));
    printf("\n\n");
    print_places(reply);
    print_roles(json_object_get(reply, "roles"));
    print_listeners(json_object_get(reply, "listeners"));
    print_sandboxes(json_object_get(reply, "sandboxes"));
    print_pools(json_object_get(reply, "templates"));
}

static int cmd_status(int argc, char **argv)
{
    struct args a = {.cmd = &command_status, .argc = argc, .argv = argv};
    int code = args_plain(&a, 0, 0, "");
    return code != ARGS_END ? code : api_print(&a, "GET", "/v1/status", NULL, print_status);
}
