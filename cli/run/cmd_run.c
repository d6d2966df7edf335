/* durward run: a sandbox for one command, with a private set of roles. No daemon, no root. */
#define _GNU_SOURCE 1
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "commands.h"
#include "idmap.h"
#include "launch.h"
#include "out.h"
#include "paths.h"
#include "run_binds.h"
#include "run_files.h"
#include "run_login.h"
#include "run_options.h"
#include "run_profile.h"
#include "run_session.h"
#include "run_stdio.h"
#include "run_summary.h"
#include "sandbox_spec.h"
#include "work.h"

static int cmd_run(int argc, char **argv);

const struct command command_run = {
    "run",
    "[OPTION...] [--] CMD [ARG...] | PROFILE [ARG...]",
    "Run a command in a sandbox.",
    run_arg_options,
    "The current directory is bound read-write at its own path; files in it that hold known\n"
    "credentials are hidden and named. In a container (--backend docker) it is a copy: what the\n"
    "command changed is brought back when it has ended. The environment inside holds TERM,\n"
    "COLORTERM, NO_COLOR, LANG, LC_*, TZ, PATH, what -e says and placeholders. Without CMD, on a\n"
    "terminal: your shell.\n"
    "A first word that names a profile (durward profile ls) runs that program with what it needs;\n"
    "behind -- it is a command.\n"
    "\nExit status: CMD's own, 128+N after signal N, 125 when Durward failed (usage errors too)\n"
    "or could not bring back all of a copy, 126 when CMD cannot be executed, 127 when it was not\n"
    "found.\n",
    cmd_run,
};

/* ---- what must not be on its way into the sandbox ---- */

/* The name of an env secret whose value is part of the text, or NULL. Short values would match by
 * chance. */
static const char *holds_secret(const struct config *c, const char *text)
{
    enum { SHORTEST = 8 };
    size_t n;
    const struct config_secret *s = config_secrets(c, &n);
    for (size_t i = 0; i < n; i++) {
        const char *v = s[i].store == STORE_ENV ? getenv(s[i].source) : NULL;
        if (v && strlen(v) >= SHORTEST && strstr(text, v))
            return s[i].name;
    }
    return NULL;
}

static int check_secrets(const struct config *c, const struct run_options *o, struct err *err)
{
    const char *name;
    for (size_t i = 0; i < o->env.n; i++)
        if ((name = holds_secret(c, o->env.v[i])) != NULL)
            return err_set(err, ERR_DENIED,
                           "-e %.*s would put the secret '%s' into the sandbox; leave it out: the "
                           "policy's env has a placeholder for it",
                           (int)strcspn(o->env.v[i], "="), o->env.v[i], name);
    for (int i = 0; i < o->argc; i++)
        if ((name = holds_secret(c, o->argv[i])) != NULL)
            return err_set(err, ERR_DENIED,
                           "the command line holds the value of the secret '%s'; use its "
                           "placeholder, or leave the credential out: the proxy adds it",
                           name);
    return 0;
}

/* A variable named on the command line must be there; a configured one may be for other work. */
static int check_env_secrets(const struct config *c, const struct run_options *o,
                             const char *policy, struct err *err)
{
    size_t n;
    for (size_t i = 0; i < o->secret.n; i++) {
        char name[256];
        snprintf(name, sizeof name, "%.*s", (int)strcspn(o->secret.v[i], "@"), o->secret.v[i]);
        const char *v = getenv(name);
        if (v == NULL || *v == 0)
            return err_set(err, ERR_UNREADY, "--secret %s: %s is not set in the environment",
                           o->secret.v[i], name);
    }
    const char *const *used = config_policy_secrets(c, policy, &n);
    for (size_t i = 0; i < n; i++) {
        const struct config_secret *s = config_secret(c, used[i]);
        if (s && s->store == STORE_ENV && getenv(s->source) == NULL)
            out_note("warning: %s is not set: requests that need the secret '%s' will fail",
                     s->source, s->name);
    }
    return 0;
}

/* ---- the request ---- */

static int fill_argv(const struct run_options *o, struct run_request *r, struct err *err)
{
    const char *shell = getenv("SHELL");
    int bad = 0; /* a profile's own words stand there already */
    for (int i = 0; i < o->argc && !bad; i++)
        bad = strlist_add(&r->argv, o->argv[i]);
    if (r->argv.n == 0)
        bad = strlist_add(&r->argv, shell && shell[0] == '/' ? shell : "/bin/sh");
    return bad ? err_set(err, ERR_LIMIT, "the command line is too long (80 KiB at most)") : 0;
}

static int fill_env(const struct run_options *o, struct run_request *r, struct err *err)
{
    static const char *const kept[] = {"TERM", "COLORTERM", "NO_COLOR", "LANG", "TZ", "PATH"};
    int bad = 0;
    for (size_t i = 0; i < ARRAY_LEN(kept) && !bad; i++) {
        const char *v = getenv(kept[i]);
        if (v)
            bad = strlist_set_env(&r->kept, kept[i], v);
    }
    for (char **e = environ; *e && !bad; e++)
        if (strncmp(*e, "LC_", 3) == 0 && strchr(*e, '='))
            bad = strlist_put_env(&r->kept, *e);
    for (size_t i = 0; i < o->env.n && !bad; i++)
        bad = strlist_put_env(&r->env, o->env.v[i]);
    return bad ? err_set(err, ERR_LIMIT, "the environment is too long") : 0;
}

static struct config *load(const struct run_options *o, struct run_profile *p,
                           const struct run_login *l, char **file, const char **policy,
                           struct err *err)
{
    struct config *base = NULL;
    const char *named = getenv("DURWARD_CONFIG");
    *file = o->config ? strdup(o->config) : config_find(err);
    if (*file == NULL && named && *named)
        return NULL; /* a file that was asked for and is missing is not "no configuration" */
    if (*file && (base = config_load(*file, err)) == NULL)
        return NULL;
    *err = (struct err){0};
    struct config_flags flags = {
        .policy = o->policy,
        .allow = (const char *const *)o->allow.v,
        .n_allow = o->allow.n,
        .secret = (const char *const *)o->secret.v,
        .n_secret = o->secret.n,
        .use = (const char *const *)o->use.v,
        .n_use = o->use.n,
        .ret_policy = policy,
        .profile = p->profile,
        .logins = l->use,
        .n_logins = l->n,
        .telemetry = o->telemetry,
        .inside = o->inside,
    };
    p->logged_in = config_flags_login(&flags);
    struct config *c = config_with_flags(base, &flags, err);
    config_unref(base);
    return c;
}

/* Pipes of root's can be opened again, as /dev/stderr is, by who the command is outside. */
static int find_outside(const struct config *c, struct run_request *r, struct err *err)
{
    struct sandbox_spec sandbox_spec;
    struct idmap map;
    if (r->uid != 0)
        return 0;
    if (sandbox_spec_of_policy(c, r->policy, r->backend, r->image, &sandbox_spec, err) < 0)
        return -1;
    idmap_caller(&map, 0, 0, r->n_binds > 0);
    r->outside = config_backend_lays_out(sandbox_spec.limits.backend) ? map.uid : 0;
    return 0;
}

static int prepare(const struct run_options *o, const struct config *c, const char *file,
                   const char *policy, struct run_profile *p, const struct run_login *l,
                   struct run_request *r, struct err *err)
{
    if (snprintf(r->policy, sizeof r->policy, "%s", policy) >= (int)sizeof r->policy)
        return err_set(err, ERR_LIMIT, "the policy's name is too long");
    if (check_secrets(c, o, err) < 0 || check_env_secrets(c, o, policy, err) < 0 ||
        run_binds(o, r, err) < 0 || run_profile_program(o, p, r, err) < 0 ||
        run_binds_check(r, c, file, p->file, err) < 0 || run_login_files(l, r, err) < 0 ||
        run_files_found(r, c, err) < 0 || run_profile_home(o, c, p, r, err) < 0 ||
        fill_argv(o, r, err) < 0 || fill_env(o, r, err) < 0)
        return -1;
    r->ask = o->ask;
    return find_outside(c, r, err);
}

/* ---- the end ---- */

/* Where `audit` finds the log of this run: not at a daemon's that a variable names. */
static char *log_option(const struct config *c, const char *file)
{
    const char *url = getenv("DURWARD_URL"), *sock = getenv("DURWARD_SOCKET");
    bool daemon = (url && *url) || (sock && *sock);
    const char *dir = config_audit_dir(c);
    char *own = NULL, *text = NULL;
    if (file && asprintf(&text, " -c %s", file) < 0)
        text = NULL;
    if (file || !daemon)
        return text;
    if (dir == NULL)
        dir = own = paths_audit_dir(NULL);
    if (dir && asprintf(&text, " --dir %s", dir) < 0)
        text = NULL;
    free(own);
    return text;
}

/* file: the configuration, where it was named with -c; the log is where that says. */
static void print_summary(const struct run_result *r, const struct config *c, const char *file,
                          bool asks)
{
    char path[4096];
    if (out_is_quiet())
        return;
    run_summary_print_calls(&r->denials);
    if (!run_summary_print(&r->denials))
        return;
    char *where = log_option(c, file);
    if (!asks && run_summary_has(&r->denials, "approval_denied"))
        fprintf(stderr, "; run --ask asks you about what an ask rule holds");
    fprintf(stderr, "; durward audit query%s --sandbox %s\n",
            where ? out_clean(where, path, sizeof path) : "", r->sandbox);
    free(where);
}

/* copied: taken over; NULL: no directory was. */
static void print_json(const struct run_result *r, json_t *copied)
{
    json_t *v = json_pack("{s:s, s:I, s:s, s:o, s:o, s:o, s:o*}", "sandbox", r->sandbox, "status",
                          (json_int_t)r->status, "error", r->text, "denied",
                          run_summary_json(&r->denials, false), "failed",
                          run_summary_json(&r->denials, true), "model_calls",
                          run_summary_calls_json(&r->denials), "copied", copied);
    char *text = v ? json_dumps(v, JSON_COMPACT | JSON_PRESERVE_ORDER) : NULL;
    if (text)
        fprintf(stderr, "%s\n", text); /* stdout is the command's */
    free(text);
    json_decref(v);
}

/* The command's own status, unless what it did is not all in its place. */
static int conclude(const struct config *c, const struct run_options *o, struct run_result *result,
                    struct work *work)
{
    json_t *copied;
    bool whole = result->started && result->text[0] == '\0';
    if (!work_end(work, result->started, whole, &copied) && result->status == 0)
        result->status = EXIT_DURWARD_FAILED;
    if (o->json) {
        print_json(result, copied);
        return (int)result->status;
    }
    json_decref(copied);
    if (result->text[0]) {
        char clean[1024];
        out_error("%s", out_clean(result->text, clean, sizeof clean));
    }
    print_summary(result, c, o->config, o->ask);
    return (int)result->status;
}

static int run_it(const struct config *c, const char *file, const struct run_options *o,
                  struct run_profile *p, struct run_request *r, struct err *err)
{
    static struct run_result result;
    pid_t pid;
    int channel;
    struct work *work;
    json_t *copied;
    struct launch_home home = {p->home.dir, p->home.lock};
    struct run_publish *publish = run_publish_open(&o->publish, err);
    if (err->code != ERR_NONE)
        return EXIT_DURWARD_FAILED;
    if (work_begin(c, r, &work, err) < 0) {
        run_publish_free(publish);
        return EXIT_DURWARD_FAILED;
    }
    if (launch_parent(file, c, p->home.name ? &home : NULL, &pid, &channel, err) < 0) {
        run_publish_free(publish);
        (void)work_end(work, false, false, &copied);
        return EXIT_DURWARD_FAILED;
    }
    run_session(channel, r, publish, &result);
    launch_ended(pid);
    if (result.started)
        home_laid(&p->home);
    return conclude(c, o, &result, work);
}

static int cmd_run(int argc, char **argv)
{
    struct run_options o;
    struct run_request r;
    struct err err = {0};
    char *file = NULL;
    const char *policy = NULL;
    struct config *c = NULL;
    struct run_profile p = {0};
    struct run_login login = {.n = 0};
    int code;
    run_request_init(&r);
    if (run_options_read(&command_run, argc, argv, &o, &code) < 0) {
        if (code == EXIT_USAGE)
            code = EXIT_DURWARD_FAILED; /* 2 could be the command's own */
        goto out;
    }
    code = EXIT_DURWARD_FAILED;
    if (run_profile_load(&o, &p, &err) < 0 || run_login_read(&o, &login, &err) < 0)
        goto report;
    if (o.argc == 0 && p.profile == NULL && !run_stdio_is_terminal()) {
        args_usage(&command_run, "which command? (without one, a terminal is needed)");
        goto out;
    }
    c = load(&o, &p, &login, &file, &policy, &err);
    if (c && prepare(&o, c, file, policy, &p, &login, &r, &err) == 0)
        code = run_it(c, file, &o, &p, &r, &err);
report:
    if (err.code != ERR_NONE)
        out_error("%s", err.text);
    if (err.code == ERR_PARSE && file && c == NULL && strncmp(err.text, "--", 2) != 0 &&
        strstr(err.text, "--policy") == NULL)
        out_error("'durward check %s' tells all that is wrong with it", file);
out:
    run_profile_done(&p);
    run_login_done(&login);
    run_request_done(&r);
    run_options_done(&o);
    config_unref(c);
    free(file);
    return code;
}
