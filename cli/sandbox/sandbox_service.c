/* durward sandbox services and preview: what listens in a sandbox by name, and where it is seen. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "api_client.h"
#include "commands.h"
#include "out.h"
#include "which.h"

enum { TTL_MAX = 86400 };

const struct arg_option sandbox_preview_options[] = {
    {0, "ttl", "T", "how long who opens it may look (90s, 15m, at most 24h; default: 8h)",
     .key = "ttl", .member = ARG_TIME, .most = TTL_MAX},
    {0, "revoke", NULL, "links and tokens are good no more, and who looks is sent away",
     .key = "revoke"},
    {0},
};

static void print_row(struct out_table *t, const json_t *v)
{
    out_table_cell(t, out_member(v, "name"));
    out_table_number(t, json_integer_value(json_object_get(v, "port")));
    out_table_cell(t, out_member(v, "health"));
    out_table_cell(t, out_member(v, "state"));
    out_table_cell(t, out_member(v, "detail"));
    out_table_cell(t, *out_member(v, "published") ? out_member(v, "published") : "-");
    out_table_cell(t, *out_member(v, "preview") ? out_member(v, "preview") : "-");
}

int verb_services(int argc, char **argv)
{
    static const char *const titles[] = {"NAME",   "PORT",      "HEALTH",  "STATE",
                                         "DETAIL", "PUBLISHED", "PREVIEW", NULL};
    struct args a = {
        .cmd = args_verb(sandbox_verbs, "sandbox services"), .argc = argc, .argv = argv};
    struct err err = {0};
    char id[WHICH_ID_MAX + 1], path[WHICH_ID_MAX + 64];
    json_t *reply, *list;
    int code = args_plain(&a, 1, 1, "which sandbox?");
    if (code != ARGS_END)
        return code;
    if (which_one(a.socket, WHICH_SANDBOX, argv[a.next], id, &err) < 0)
        return out_fail(&err);
    snprintf(path, sizeof path, "/v1/sandboxes/%s/services", id);
    if (api_call(a.socket, "GET", path, NULL, &reply, &err) < 0)
        return out_fail(&err);
    list = json_incref(json_object_get(reply, "services"));
    json_decref(reply);
    return out_list(list, a.json, titles, "the sandbox's policy names no services", print_row);
}

static void print_preview(const json_t *v)
{
    char link[700], url[400], token[80], life[24];
    int64_t now = time(NULL);
    printf("%s\n", out_clean(out_member(v, "link"), link, sizeof link));
    fprintf(stderr, "good once, for %s; programs ask %s with the field Durward-Preview-Token: %s\n",
            out_span(json_integer_value(json_object_get(v, "link_expires_at")) - now, life,
                     sizeof life),
            out_clean(out_member(v, "url"), url, sizeof url),
            out_clean(out_member(v, "token"), token, sizeof token));
}

/* service NULL: all of it. */
static int revoke(const struct args *a, const char *path, const char *service)
{
    char one[WHICH_ID_MAX + 400];
    struct buf name;
    buf_init(&name, 200);
    if (service)
        api_quote(&name, service);
    snprintf(one, sizeof one, "%s%s%.*s", path, service ? "/" : "", SL(buf_slice(&name)));
    buf_free(&name);
    return api_print(a, "DELETE", one, NULL, NULL);
}

int verb_preview(int argc, char **argv)
{
    struct args a = {
        .cmd = args_verb(sandbox_verbs, "sandbox preview"), .argc = argc, .argv = argv};
    struct err err = {0};
    char id[WHICH_ID_MAX + 1], path[WHICH_ID_MAX + 64];
    json_t *body = json_object();
    int code = args_body(&a, body, 1, 2, "which sandbox, and which service or port of it?");
    bool ends = json_object_get(body, "revoke") != NULL;
    const char *service = code == ARGS_END && a.next + 1 < argc ? argv[a.next + 1] : NULL;
    if (code == ARGS_END && ends && json_object_size(body) > 1)
        code = args_usage(a.cmd, "--revoke takes no --ttl");
    if (code == ARGS_END && !ends && service == NULL)
        code = args_usage(a.cmd, "which service or port of it?");
    if (code == ARGS_END && which_one(a.socket, WHICH_SANDBOX, argv[a.next], id, &err) < 0)
        code = out_fail(&err);
    if (code == ARGS_END) {
        snprintf(path, sizeof path, "/v1/sandboxes/%s/previews", id);
        json_object_set_new(body, "service", json_string(service ? service : ""));
        code = ends ? revoke(&a, path, service) : api_print(&a, "POST", path, body, print_preview);
    }
    json_decref(body);
    return code;
}
