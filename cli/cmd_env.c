/* durward env: what pairs any client with the daemon: proxy variables, CA files, placeholders. */
#include <stdlib.h>
#include <string.h>

#include "api_client.h"
#include "commands.h"
#include "env_for.h"
#include "env_print.h"
#include "out.h"
#include "strlist.h"
#include "trust.h"

static int cmd_env(int argc, char **argv);

enum { OPT_POLICY = 256, OPT_FOR, OPT_TTL, OPT_CA_DIR, OPT_FORMAT, TTL_MAX = 3600 };

struct wish {
    const char *policy, *ca_dir;
    const struct env_for *elsewhere; /* NULL: a client on this host */
    enum env_format format;
    unsigned ttl; /* seconds; 0: as the daemon says */
};

static const struct arg_option options[] = {
    {OPT_POLICY, "policy", "NAME", "the policy, where there is more than one"},
    {OPT_FOR, "for", "SYSTEM", "a container or a sandbox elsewhere: " ENV_FOR_NAMES},
    {OPT_TTL, "ttl", "T", "how long a token is good: 90s, 15m, at most 1h (the default)"},
    {OPT_FORMAT, "format", "FORM", ENV_FORMAT_NAMES " (default: shell)"},
    {OPT_CA_DIR, "ca-dir", "DIR", "where the client will find the trust directory"},
    {0},
};

const struct command command_env = {
    "env",
    "[--policy NAME] [--for SYSTEM] [--format FORM] [--ttl T] [--ca-dir DIR] [--json] [--socket "
    "PATH]",
    "Print variables that pair a client with the daemon.",
    options,
    "KEY=value lines for a shell: set -a; eval \"$(durward env)\"; set +a. They hold a token\n"
    "(unless the listener is bound to the policy) and placeholders, never a secret. A client\n"
    "that is paired this way is held by the proxy only as far as whatever runs it lets nothing\n"
    "else out. With --for they are for a sandbox on another host: of the listeners the one that "
    "it\n"
    "can reach, the one in TLS first; and lines of comment say what files to bring, and the "
    "lock.\n"
    "For docker they are an --env-file, for compose part of a service, for devcontainer members "
    "of\n"
    "devcontainer.json; there the comments go to stderr.\n"
    "  durward env --format github-actions >>\"$GITHUB_ENV\"\n",
    cmd_env,
};

static int set_proxy(struct strlist *env, const char *proxy)
{
    static const char *const names[] = {"HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy"};
    static const char local[] = "localhost,127.0.0.1,::1";
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (strlist_set_env(env, names[i], proxy) < 0)
            return -1;
    return strlist_set_env(env, "NO_PROXY", local) | strlist_set_env(env, "no_proxy", local) |
           strlist_set_env(env, "NODE_USE_ENV_PROXY", "1"); /* without it Node heeds none of them */
}

static int set_trust(struct strlist *env, const char *dir, bool tls_proxy, struct err *err)
{
    char **pairs = trust_env(dir, tls_proxy, err);
    int bad = 0;
    for (size_t i = 0; pairs && pairs[i] && !bad; i++)
        bad = strlist_put_env(env, pairs[i]);
    bool none = pairs == NULL;
    trust_env_free(pairs);
    if (bad)
        return err_set(err, ERR_LIMIT, "the environment is too long");
    return none ? -1 : 0;
}

static int collect(const json_t *reply, const char *ca_dir, struct strlist *env, struct err *err)
{
    const char *proxy = json_string_value(json_object_get(reply, "proxy"));
    const char *dir = ca_dir ? ca_dir : json_string_value(json_object_get(reply, "trust_dir"));
    const char *key;
    json_t *value;
    if (proxy == NULL || dir == NULL)
        return err_set(err, ERR_UPSTREAM, "the daemon's answer lacks proxy or trust_dir");
    if (set_proxy(env, proxy) < 0)
        return err_set(err, ERR_LIMIT, "the environment is too long");
    if (set_trust(env, dir, strncmp(proxy, "https:", 6) == 0, err) < 0)
        return -1;
    json_object_foreach(json_object_get(reply, "env"), key,
                        value) if (!json_is_string(value) ||
                                   strlist_set_env(env, key, json_string_value(value)) <
                                       0) return err_set(err, ERR_UPSTREAM,
                                                         "the daemon's answer has a bad variable");
    return 0;
}

static void tell(const struct wish *w, const json_t *reply)
{
    const char *proxy = json_string_value(json_object_get(reply, "proxy"));
    const char *dir = json_string_value(json_object_get(reply, "trust_dir"));
    if (env_for_print(w->elsewhere, w->format, proxy, dir, w->ca_dir))
        out_error("the only listener for this is of this host, which a sandbox elsewhere does not "
                  "reach: add one that it does, 'listen: [{ https: ADDRESS:PORT }]'");
}

static json_t *body_of(const struct wish *w)
{
    json_t *v = json_object();
    if (w->policy)
        json_object_set_new(v, "policy", json_string(w->policy));
    if (w->ttl)
        json_object_set_new(v, "ttl", json_integer(w->ttl));
    if (w->elsewhere)
        json_object_set_new(v, "remote", json_true());
    return v;
}

static int ask(const struct args *a, const struct wish *w)
{
    struct err err = {0};
    struct strlist env = {0};
    json_t *wish = body_of(w), *reply = NULL;
    int code = EXIT_NO;
    const char *dir = w->ca_dir ? w->ca_dir : "";
    if (api_call(a->socket, "POST", "/v1/identities", wish, &reply, &err) < 0 ||
        collect(reply, w->ca_dir, &env, &err) < 0) {
        out_error("%s", err.text);
    } else {
        if (w->elsewhere && !a->json)
            tell(w, reply);
        code = env_print(&env, w->format, out_member(reply, "trust_dir"), dir, &err) < 0 ? EXIT_NO
                                                                                         : EXIT_OK;
        if (err.code != ERR_NONE)
            out_error("%s", err.text);
    }
    strlist_done(&env);
    json_decref(wish);
    json_decref(reply);
    return code;
}

/* -1: not as it must be, *code says it. */
static int take(struct args *a, struct wish *w, int id, int *code)
{
    if (id == OPT_POLICY)
        w->policy = a->value;
    if (id == OPT_CA_DIR)
        w->ca_dir = a->value;
    if (id == OPT_FORMAT && (w->format = env_format_named(a->value)) == ENV_NO_FORMAT)
        *code = args_usage(a->cmd, "--format %s: there are " ENV_FORMAT_NAMES, a->value);
    else if (id == OPT_FOR && (w->elsewhere = env_for_find(a->value)) == NULL)
        *code = args_usage(a->cmd, "--for %s: there are " ENV_FOR_NAMES, a->value);
    else if (id == OPT_TTL && args_duration(a->value, TTL_MAX, &w->ttl) < 0)
        *code = args_usage(a->cmd, "--ttl %s: a time such as 90s or 15m, at most 1h", a->value);
    else
        return 0;
    return -1;
}

static int cmd_env(int argc, char **argv)
{
    struct args a = {.cmd = &command_env, .argc = argc, .argv = argv};
    struct wish w = {0};
    int id, code = EXIT_NO;
    while ((id = args_next(&a)) != ARGS_END) {
        if (id == ARGS_STOP)
            return a.exit_code;
        if (take(&a, &w, id, &code) < 0)
            return code;
    }
    if (a.next < argc)
        return args_usage(a.cmd, "unexpected argument %s", argv[a.next]);
    if (w.format == ENV_NO_FORMAT)
        w.format = w.elsewhere ? env_for_format(w.elsewhere) : ENV_SHELL;
    if (a.json)
        w.format = ENV_JSON;
    if (w.ca_dir == NULL && w.elsewhere)
        w.ca_dir = ENV_FOR_DIR;
    if (w.ca_dir && (w.ca_dir[0] != '/' || strpbrk(w.ca_dir, " \t\r\n")))
        return args_usage(a.cmd, "--ca-dir must be an absolute path without white space");
    return ask(&a, &w);
}
