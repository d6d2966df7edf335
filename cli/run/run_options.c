/* Holds the table of `durward run`'s options and reads them. Where a secret's value was given in
 * place of its name, the value is not printed again. */
#include "run_options.h"

#include "out.h"
#include "profile.h"

#include <stdlib.h>
#include <string.h>

enum {
    OPT_POLICY = 256,
    OPT_SECRET,
    OPT_ALLOW,
    OPT_BIND,
    OPT_NO_BIND,
    OPT_VIEW,
    OPT_WORKDIR,
    OPT_BACKEND,
    OPT_IMAGE,
    OPT_ASK,
    OPT_PUBLISH,
    OPT_PROFILE,
    OPT_HOME,
    OPT_TELEMETRY,
    OPT_LOGIN,
    OPT_LOGIN_INSIDE,
    OPT_LOGIN_KEPT,
    OPT_VOLUME,
    OPT_USE,
    OPT_QUIET = 'q'
};

const struct arg_option run_arg_options[] = {
    ARG_CONFIG,
    {OPT_POLICY, "policy", "NAME", "the policy, where there is more than one"},
    {OPT_PROFILE, "profile", "NAME", "what the program NAME needs; CMD is run in place of it"},
    {OPT_HOME, "home", "NAME", "keep $HOME, by this name (default: one a profile and directory)"},
    {OPT_LOGIN, "login", "NAME[@ENTRY,...][=FILE]",
     "use the login that a program has on this host (durward login ls); may repeat"},
    {OPT_LOGIN_INSIDE, "login-inside", NULL,
     "let the profile's program log in by itself; its login stays with its home"},
    {OPT_LOGIN_KEPT, "login-kept", NULL, "go on with that login; no other one can be made inside"},
    {OPT_TELEMETRY, "telemetry", NULL, "with the hosts that the profile's program reports to"},
    {OPT_SECRET, "secret", "NAME@HOST[:HEADER][,HOST]",
     "use the environment variable NAME for these hosts"},
    {OPT_ALLOW, "allow", "HOST[/PATH]", "allow this destination, without a credential"},
    {OPT_USE, "use", "PRESET", "allow what a preset does (durward preset ls); may repeat"},
    {OPT_BIND, "bind", "HOST[:IN][:ro]",
     "show a directory or file of the host inside; docker: a copy"},
    {OPT_VOLUME, "volume", "NAME:/IN[:ro]", "mount a volume of the policy's (durward volume)"},
    {OPT_NO_BIND, "no-bind", NULL, "neither bind nor copy the current directory"},
    {OPT_VIEW, "view", NULL, "judge bound files whenever they are opened, not once (slower)"},
    {OPT_WORKDIR, "workdir", "DIR", "bind DIR in place of the current directory, and start there"},
    {OPT_PUBLISH, "publish", "[[ADDR:]H:]S", "reach its port S at H of this host (127.0.0.1)"},
    {OPT_BACKEND, "backend", "NAME", "what makes the sandbox: bwrap, docker, gvisor or microvm"},
    {OPT_IMAGE, "image", "NAME", "its root: an imported image, or with docker one of the engine's"},
    {OPT_ASK, "ask", NULL, "ask on the terminal about what an ask rule holds"},
    {OPT_QUIET, "quiet", NULL, "say nothing but errors: no notes, no count of what was refused"},
    {'e', "env", "K[=V]", "set a variable inside, or pass on the caller's"},
    {0},
};

void run_options_done(struct run_options *o)
{
    strlist_done(&o->allow);
    strlist_done(&o->secret);
    strlist_done(&o->binds);
    strlist_done(&o->volumes);
    strlist_done(&o->publish);
    strlist_done(&o->env);
    strlist_done(&o->login);
    strlist_done(&o->use);
}

static bool name_ok(const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!ascii_is_alnum(s[i]) && s[i] != '_')
            return false;
    return n > 0 && (s[0] < '0' || s[0] > '9');
}

/* NAME@HOST…: a NAME with '=' is somebody's secret on the command line, where every user of the
 * machine can read it. It is refused without being shown again. */
static int add_secret(const struct command *cmd, struct run_options *o, const char *v)
{
    size_t n = strcspn(v, "@");
    if (memchr(v, '=', n) || (v[n] == 0 && strchr(v, '=')))
        return args_usage(cmd, "--secret takes the name of an environment variable, never a value: "
                               "other users can read command lines. Write --secret NAME@HOST");
    if (!name_ok(v, n))
        return args_usage(cmd, "--secret must begin with the name of an environment variable, as "
                               "in --secret GITHUB_TOKEN@api.github.com");
    if (v[n] != '@' || v[n + 1] == 0)
        return args_usage(cmd, "--secret: for which host? Write --secret NAME@HOST, where NAME is "
                               "the name of an environment variable, never its value");
    return strlist_add(&o->secret, v) < 0 ? args_usage(cmd, "too many --secret") : EXIT_OK;
}

static int add_env(const struct command *cmd, struct run_options *o, const char *v)
{
    size_t n = strcspn(v, "=");
    char name[256];
    if (!name_ok(v, n) || n >= sizeof name)
        return args_usage(cmd, "-e %.*s: not the name of a variable", (int)n, v);
    if (v[n] == '=')
        return strlist_put_env(&o->env, v) < 0 ? args_usage(cmd, "-e: too long") : EXIT_OK;
    memcpy(name, v, n + 1);
    const char *value = getenv(name);
    if (value == NULL)
        return EXIT_OK; /* as env(1) and others do: nothing to pass on */
    return strlist_set_env(&o->env, name, value) < 0 ? args_usage(cmd, "-e: too long") : EXIT_OK;
}

static int add_to(const struct command *cmd, struct strlist *l, const char *v, const char *flag)
{
    if (*v == 0)
        return args_usage(cmd, "--%s needs a value", flag);
    return strlist_add(l, v) < 0 ? args_usage(cmd, "too many --%s", flag) : EXIT_OK;
}

/* What an option without a value sets; NULL: it does something else. */
static bool *flag(struct run_options *o, int id)
{
    return id == OPT_TELEMETRY ? &o->telemetry
           : id == OPT_NO_BIND ? &o->no_bind
           : id == OPT_VIEW    ? &o->view
           : id == OPT_ASK     ? &o->ask
                               : NULL;
}

static int take(const struct command *cmd, struct run_options *o, int id, const char *v)
{
    bool *on = flag(o, id);
    if (on) {
        *on = true;
        return EXIT_OK;
    }
    switch (id) {
    case 'c':
        o->config = v;
        return EXIT_OK;
    case OPT_POLICY:
        o->policy = v;
        return EXIT_OK;
    case OPT_PROFILE:
        o->profile = v;
        return EXIT_OK;
    case OPT_HOME:
        o->home = v;
        return EXIT_OK;
    case OPT_LOGIN_INSIDE:
    case OPT_LOGIN_KEPT:
        if (o->inside)
            return args_usage(cmd, "one of --login-inside and --login-kept, once");
        o->inside = id == OPT_LOGIN_KEPT ? PROFILE_KEPT : PROFILE_LOGIN;
        return EXIT_OK;
    case OPT_WORKDIR:
        o->workdir = v;
        return EXIT_OK;
    case OPT_BACKEND:
        o->backend = v;
        return EXIT_OK;
    case OPT_IMAGE:
        o->image = v;
        return EXIT_OK;
    case OPT_QUIET:
        out_be_quiet();
        return EXIT_OK;
    case OPT_SECRET:
        return add_secret(cmd, o, v);
    case OPT_LOGIN:
        return add_to(cmd, &o->login, v, "login");
    case OPT_USE:
        return add_to(cmd, &o->use, v, "use");
    case OPT_ALLOW:
        return add_to(cmd, &o->allow, v, "allow");
    case OPT_PUBLISH:
        return add_to(cmd, &o->publish, v, "publish");
    case OPT_VOLUME:
        return add_to(cmd, &o->volumes, v, "volume");
    case OPT_BIND:
        return add_to(cmd, &o->binds, v, "bind");
    default:
        return add_env(cmd, o, v);
    }
}

int run_options_read(const struct command *cmd, int argc, char **argv, struct run_options *o,
                     int *code)
{
    struct args a = {.cmd = cmd, .argc = argc, .argv = argv, .in_order = true};
    int id;
    *o = (struct run_options){0};
    while ((id = args_next(&a)) != ARGS_END) {
        *code = id == ARGS_STOP ? a.exit_code : take(cmd, o, id, a.value);
        if (id == ARGS_STOP || *code != EXIT_OK)
            return -1;
    }
    o->plain = a.next > 1 && strcmp(argv[a.next - 1], "--") == 0;
    o->json = a.json;
    o->argc = argc - a.next;
    o->argv = argv + a.next;
    return 0;
}
