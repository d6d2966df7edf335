/* durward status: is there a daemon, and what is it made of? Exit status 0 when one answers. */
#include "api_client.h"
#include "commands.h"
#include "out.h"

#include <stddef.h>

static int cmd_status(int argc, char **argv);

struct asked {
    bool fleet;
};

static const struct arg_option options[] = {
    {0, "fleet", NULL, "the hosts of the fleet, as this one knows them",
     offsetof(struct asked, fleet)},
    {0},
};

const struct command command_status = {
    "status",
    "[--fleet] [--json] [--socket PATH]",
    "Show the daemon's places, roles, listeners and sandboxes.",
    options,
    "With --fleet: each host of the fleet, by what this one has read. No other host is asked, so "
    "what\nis shown is as old as it says.\n"
    "Exit status 0 when a daemon answers, 1 when none does.\n\n"
    "  durward status --fleet\n",
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

/* ---- the fleet ---- */

static void number_cell(struct out_table *t, const json_t *n)
{
    if (json_is_integer(n))
        out_table_number(t, json_integer_value(n));
    else
        out_table_cell(t, "?");
}

/* How long ago; "?": never. */
static void age_cell(struct out_table *t, const json_t *v)
{
    char text[32];
    const json_t *age = json_object_get(v, "age_seconds");
    out_table_cell(t, json_is_integer(age) ? out_span(json_integer_value(age), text, sizeof text)
                                           : "?");
}

static void print_hosts(const json_t *hosts)
{
    static const char *const titles[] = {"HOST", "STATE",   "HEARD", "SANDBOXES", "HELD",
                                         "LOG",  "RECORDS", "HEAD",  NULL};
    struct out_table *t = out_table_new(titles);
    size_t i;
    json_t *h;
    json_array_foreach(hosts, i, h)
    {
        char clean[80];
        const json_t *log = json_object_get(h, "log");
        out_table_cell(t, out_clean(out_member(h, "host"), clean, sizeof clean));
        out_table_cell(t, out_member(h, "state"));
        age_cell(t, h);
        number_cell(t, json_object_get(h, "sandboxes"));
        number_cell(t, json_object_get(h, "held"));
        out_table_cell(t, json_is_object(log) ? out_member(log, "state") : "?");
        number_cell(t, json_object_get(log, "records"));
        age_cell(t, log);
    }
    out_table_print(t);
}

static void print_shares(const json_t *hosts)
{
    static const char *const titles[] = {"SHARES OF", "POLICY", "LIMIT", "HOLDS", NULL};
    struct out_table *t = NULL;
    size_t i, k;
    json_t *h, *s;
    json_array_foreach(hosts, i, h) json_array_foreach(json_object_get(h, "shares"), k, s)
    {
        char clean[80];
        t = t ? t : out_table_new(titles);
        out_table_cell(t, out_member(h, "host"));
        out_table_cell(t, out_clean(out_member(s, "policy"), clean, sizeof clean));
        out_table_cell(t, out_clean(out_member(s, "limit"), clean, sizeof clean));
        number_cell(t, json_object_get(s, "held"));
    }
    if (t == NULL)
        return;
    putchar('\n');
    out_table_print(t);
}

/* Why it is not known whether one is there, and what does not agree. */
static void print_reasons(const json_t *h)
{
    char clean[400];
    size_t i;
    json_t *p;
    const char *why = out_member(h, "why");
    if (*why)
        printf("%s: %s\n", out_member(h, "host"), out_clean(why, clean, sizeof clean));
    json_array_foreach(json_object_get(json_object_get(h, "log"), "problems"), i, p)
        printf("%s: its log: %s: %s\n", out_member(h, "host"), out_member(p, "what"),
               out_clean(out_member(p, "text"), clean, sizeof clean));
}

static void print_fleet(const json_t *reply)
{
    char text[32];
    size_t i;
    json_t *h;
    const json_t *hosts = json_object_get(reply, "hosts");
    const json_t *age = json_object_get(reply, "age_seconds");
    if (!json_is_string(json_object_get(reply, "host"))) {
        printf("no fleet\n");
        return;
    }
    printf("read by %s", out_member(reply, "host"));
    if (json_is_integer(age))
        printf(" %s ago", out_span(json_integer_value(age), text, sizeof text));
    out_coloured(
        stdout, json_is_true(json_object_get(reply, "connected")) ? COLOUR_GREEN : COLOUR_RED,
        json_is_true(json_object_get(reply, "connected")) ? ", connected" : ", not connected");
    printf("\n\n");
    print_hosts(hosts);
    print_shares(hosts);
    json_array_foreach(hosts, i, h) print_reasons(h);
}

static int cmd_status(int argc, char **argv)
{
    struct args a = {.cmd = &command_status, .argc = argc, .argv = argv};
    struct asked asked = {0};
    int code = args_into(&a, &asked);
    if (code != ARGS_END)
        return code;
    if (a.next != argc)
        return args_usage(a.cmd, "unexpected argument %s", argv[a.next]);
    return asked.fleet ? api_print(&a, "GET", "/v1/fleet", NULL, print_fleet)
                       : api_print(&a, "GET", "/v1/status", NULL, print_status);
}
