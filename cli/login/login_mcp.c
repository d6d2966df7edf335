/* durward login mcp: logs in at a remote MCP server, on the host, for sandboxes that then need no
 * login. Nothing of a token is ever printed. */
#define _GNU_SOURCE 1
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "commands.h"
#include "login_consent.h"
#include "login_file.h"
#include "login_keep.h"
#include "out.h"
#include "paths.h"
#include "proc.h"
#include "settings.h"

struct asked {
    const char *config, *client, *secret_file, *issuer, *scope, *port;
    bool no_browser;
};

const struct arg_option login_mcp_options[] = {
    {'c', "config", "FILE",
     "whose upstream.ca and upstream.resolve hold here, too (default: as every command)",
     offsetof(struct asked, config)},
    {0, "client-id", "ID", "a client that you registered there, or the URL of its metadata",
     offsetof(struct asked, client)},
    {0, "client-secret-file", "FILE", "the file with its secret, which nobody else may read",
     offsetof(struct asked, secret_file)},
    {0, "port", "N", "the port of the redirect, for a client that was registered with one",
     offsetof(struct asked, port)},
    {0, "issuer", "URL", "the authorization server, of several or where the server names none",
     offsetof(struct asked, issuer)},
    {0, "scope", "SCOPES", "what to ask for (default: what the server says)",
     offsetof(struct asked, scope)},
    {0, "no-browser", NULL, "no browser here: paste the address where one elsewhere ends",
     offsetof(struct asked, no_browser)},
    {0},
};

static int read_secret(const char *path, struct login_client *c, struct err *err)
{
    size_t n;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0)
        return err_sys(err, "%s", path);
    int r = paths_check_private_fd(fd, path, err);
    close(fd);
    char *text = r == 0 ? login_text_read(path, &n, err) : NULL;
    if (text == NULL)
        return -1;
    size_t len = strcspn(text, "\r\n");
    if (len == 0 || len > LOGIN_CLIENT_MAX)
        r = err_set(err, ERR_PARSE, "%s holds no secret of a client", path);
    else
        snprintf(c->secret, sizeof c->secret, "%.*s", (int)len, text);
    login_text_free(text, n);
    return r;
}

static int read_client(const struct asked *o, struct login_client *c, struct err *err)
{
    if (o->secret_file && o->client == NULL)
        return err_set(err, ERR_PARSE, "--client-secret-file goes with --client-id");
    if (o->secret_file && o->issuer == NULL && o->client)
        return err_set(err, ERR_PARSE,
                       "--client-secret-file goes with --issuer: the server alone does not choose "
                       "who is sent it");
    if (o->client == NULL)
        return 0;
    if (o->client[0] == 0 || strlen(o->client) > LOGIN_CLIENT_MAX || !login_scope_ok(o->client) ||
        strchr(o->client, ' '))
        return err_set(err, ERR_PARSE, "--client-id: that is not a client's id");
    snprintf(c->id, sizeof c->id, "%s", o->client);
    return o->secret_file ? read_secret(o->secret_file, c, err) : 0;
}

static int read_wish(const struct asked *o, const char *name, const char *url,
                     struct login_server *s, struct login_client *c, unsigned *port,
                     struct err *err)
{
    uint64_t n = 0;
    if (!login_name_ok(name))
        return err_set(err, ERR_PARSE,
                       "'%.60s' is not a login's name (a-z, 0-9, - and _, at most %d)", name,
                       LOGIN_KEPT_NAME_MAX);
    if (login_url_read(&s->at, url, "the server", err) < 0)
        return -1;
    if (!login_url_plain(&s->at))
        return err_set(err, ERR_PARSE, "the server is https://HOST[:PORT]/PATH without a query");
    if (o->scope && !login_scope_ok(o->scope))
        return err_set(err, ERR_PARSE, "--scope: words with blanks between");
    if (o->port && (slice_u64(slice_str(o->port), 65535, &n) < 0 || n == 0))
        return err_set(err, ERR_PARSE, "--port: 1 to 65535");
    *port = (unsigned)n;
    return read_client(o, c, err);
}

/* From the attempt's begin to its tokens. */
static int attempt(struct login_net *n, const struct asked *o, unsigned port,
                   struct login_server *s, struct login_client *c, json_t **tokens, struct err *err)
{
    struct login_attempt a;
    struct buf url;
    char code[LOGIN_CODE_MAX + 1] = "";
    int fd = login_listen(&port, err);
    buf_init(&url, 32 * 1024);
    int r = fd < 0 ? -1 : login_attempt_begin(&a, port, err);
    if (r == 0)
        r = c->id[0] ? login_client_known(s, c, err) : login_register(n, s, &a, c, err);
    if (r == 0)
        r = login_ask_url(s, c, &a, &url, err);
    if (r == 0 && buf_append(&url, "", 1) < 0)
        r = err_set(err, ERR_LIMIT, "the URL of the login is too long");
    if (r == 0)
        r = login_consent(fd, !o->no_browser, (const char *)buf_data(&url), s, &a, code, err);
    if (fd >= 0)
        close(fd);
    if (r == 0)
        r = login_exchange(n, s, c, &a, code, tokens, err);
    buf_free(&url);
    explicit_bzero(&a, sizeof a);
    explicit_bzero(code, sizeof code);
    return r;
}

/* ---- what is told ---- */

/* The secrets and the rule that use it, as the configuration has them. */
static json_t *lines(const char *name, const char *path, const struct login_server *s)
{
    char file[LOGIN_KEPT_NAME_MAX + 8];
    snprintf(file, sizeof file, "%s_file", name);
    json_t *v = json_pack(
        "{s:{s:{s:{s:s, s:s, s:s}}, s:{s:{s:s, s:s, s:s}}}, s:[{s:s, s:{s:[s], s:[s], s:[s]}, "
        "s:{s:s}}]}",
        "secrets", file, "login", "format", "mcp", "file", path, "part", "session", name,
        "oauth_login", "session", file, "token_url", s->token.text, "resource", s->resource.text,
        "rules", "allow", s->at.text + strlen("https://"), "mcp", "tools", "*", "resources", "**",
        "prompts", "*", "with", "bearer", name);
    if (v == NULL)
        abort(); /* memory is out */
    return v;
}

static void print_part(const char *title, const json_t *v)
{
    const char *key;
    json_t *item;
    size_t i;
    printf("%s:\n", title);
    json_object_foreach((json_t *)(uintptr_t)v, key, item)
    {
        char *text = json_dumps(item, 0);
        printf("  %s: %s\n", key, text ? text : "");
        free(text);
    }
    json_array_foreach(v, i, item)
    {
        char *text = json_dumps(item, 0);
        printf("  - %s\n", text ? text : "");
        free(text);
    }
}

static int tell(const struct args *a, const char *name, const char *path,
                const struct login_server *s, const json_t *login)
{
    json_t *all = lines(name, path, s);
    bool refreshes = json_object_get(login, "refresh") != NULL;
    if (a->json) {
        json_object_update_new(all, json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:b, s:O*}", "login",
                                              name, "file", path, "server", s->at.text, "resource",
                                              s->resource.text, "issuer", s->issuer, "scope",
                                              s->scope, "refreshes", refreshes, "expires",
                                              json_object_get(login, "expires")));
        return out_json(all) < 0 ? EXIT_NO : EXIT_OK;
    }
    fprintf(stderr,
            "The login '%s' is kept in %s. %s\n\n"
            "  durward run --login mcp@%s -- COMMAND\n\n"
            "uses it; for rules of your own, these belong into the configuration:\n\n",
            name, path,
            refreshes ? "It is refreshed there."
                      : "The server gave nothing to refresh it with: when it ends, log in again.",
            name);
    print_part("secrets", json_object_get(all, "secrets"));
    print_part("rules", json_object_get(all, "rules"));
    json_decref(all);
    return out_flush() < 0 ? EXIT_NO : EXIT_OK;
}

int login_mcp(int argc, char **argv)
{
    struct asked o = {0};
    struct args a = {.cmd = args_verb(login_verbs, "login mcp"), .argc = argc, .argv = argv};
    struct err err = {0};
    static struct login_server s;
    static struct login_client c;
    struct login_net net = {0};
    struct config *config = NULL;
    json_t *tokens = NULL, *login = NULL;
    char *path = NULL;
    unsigned port = 0;
    if (args_into(&a, &o) != ARGS_END)
        return a.exit_code;
    if (a.argc - a.next != 2)
        return args_usage(a.cmd, "a login is made by NAME URL");
    const char *name = argv[a.next];
    if (proc_no_core() < 0 || prctl(PR_SET_DUMPABLE, SANITIZED) < 0) {
        err_sys(&err, "a crash would leave tokens in a file");
        return out_fail(&err);
    }
    login_trees_wiped();
    signal(SIGPIPE, SIG_IGN); /* a server that hangs up is an error of its own */
    int r = read_wish(&o, name, argv[a.next + 1], &s, &c, &port, &err) < 0 ||
                    settings_load_if_any(o.config, &config, &err) < 0 ||
                    login_net_open(&net, config, &err) < 0 ||
                    login_discover(&net, &s, o.issuer, o.scope, &err) < 0 ||
                    attempt(&net, &o, port, &s, &c, &tokens, &err) < 0
                ? -1
                : 0;
    login = r == 0 ? login_object(&s, &c, tokens) : NULL;
    if (r == 0)
        r = login_keep(name, login, &path, &err);
    int code = r < 0 ? out_fail(&err) : tell(&a, name, path, &s, login);
    explicit_bzero(&c, sizeof c);
    json_decref(tokens);
    json_decref(login);
    free(path);
    login_net_close(&net);
    config_unref(config);
    return code;
}
