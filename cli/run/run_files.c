/* Fills the project's directory into the text of a file and makes it a step, where no bind lies. */
#include "run_files.h"

#include <stdio.h>
#include <string.h>

#include "buf.h"
#include "inside.h"
#include "out.h"

/* As inside of quotes in JSON and TOML. */
static int put_quoted(struct buf *to, const char *s)
{
    for (; *s; s++)
        if ((unsigned char)*s < 0x20) {
            if (buf_printf(to, "\\u%04x", (unsigned char)*s) < 0)
                return -1;
        } else if (((*s == '"' || *s == '\\') && buf_append(to, "\\", 1) < 0) ||
                   buf_append(to, s, 1) < 0) {
            return -1;
        }
    return 0;
}

static int fill_project(const char *text, const char *project, struct buf *to)
{
    static const char mark[] = "{{project}}";
    for (const char *at; (at = strstr(text, mark)) != NULL; text = at + sizeof mark - 1)
        if (buf_append(to, text, (size_t)(at - text)) < 0 || put_quoted(to, project) < 0)
            return -1;
    return buf_append_str(to, text) < 0 || buf_append(to, "", 1) < 0 ? -1 : 0;
}

/* ---- MCP servers of ours, as programs of others are told of them ---- */

static int put_server(struct buf *to, const char *name, bool json, bool first)
{
    static const char program[] = "/run/durward/durward-mcp";
    return json ? buf_printf(to, "%s\"%s\": { \"command\": \"%s\", \"args\": [\"%s\"] }",
                             first ? "" : ", ", name, program, name)
                : buf_printf(to, "[mcp_servers.%s]\ncommand = \"%s\"\nargs = [\"%s\"]\n", name,
                             program, name);
}

static int put_servers(struct buf *to, const struct config *c, const char *policy, bool json)
{
    size_t n;
    bool first = true;
    const struct config_mcp_server *all = config_mcp_servers(c, &n);
    for (size_t i = 0; i < n; i++) {
        if (!config_mcp_allowed(c, policy, all[i].name))
            continue;
        if (put_server(to, all[i].name, json, first) < 0)
            return -1;
        first = false;
    }
    return 0;
}

int run_files_servers(const struct config *c, const char *policy, const char *text, struct buf *to)
{
    static const char as_json[] = "{{mcp_servers json}}", as_toml[] = "{{mcp_servers toml}}";
    for (;;) {
        const char *json = strstr(text, as_json), *toml = strstr(text, as_toml);
        bool is_json = json && (toml == NULL || json < toml);
        const char *at = is_json ? json : toml;
        if (at == NULL)
            return buf_append_str(to, text) < 0 || buf_append(to, "", 1) < 0 ? -1 : 0;
        if (buf_append(to, text, (size_t)(at - text)) < 0 ||
            put_servers(to, c, policy, is_json) < 0)
            return -1;
        text = at + sizeof as_json - 1;
    }
}

bool run_files_meet_bind(const struct run_request *r, const char *path, bool below)
{
    size_t n = strlen(path);
    for (size_t i = 0; i < r->n_binds; i++) {
        const char *t = r->binds[i].target;
        size_t m = strlen(t);
        if (r->binds[i].home)
            continue;
        if (strncmp(path, t, m) == 0 && (path[m] == 0 || path[m] == '/'))
            return true;
        if (below && strncmp(t, path, n) == 0 && t[n] == '/')
            return true;
    }
    return false;
}

int run_files_add(struct run_request *r, int op, const char *path, const char *text,
                  struct err *err)
{
    char whole[RUN_PATH_MAX];
    struct buf filled;
    if (snprintf(whole, sizeof whole, "%s/%s", r->home, path) >= (int)sizeof whole)
        return err_set(err, ERR_LIMIT, "%s: the path is too long", path);
    if (run_files_meet_bind(r, whole, false))
        return 0;
    buf_init(&filled, RUN_TEXT_MAX);
    int bad = fill_project(text, r->cwd, &filled) < 0 ||
              run_request_step(r, op, whole, (const char *)buf_data(&filled)) < 0;
    buf_free(&filled);
    return bad ? err_set(err, ERR_LIMIT, "%s: the files of the home are too long", path) : 0;
}

static void tell_notes(const char *preset, const json_t *notes)
{
    char clean[1024];
    json_t *v;
    size_t i;
    json_array_foreach(notes, i, v)
        out_note("preset '%s': %s", preset, out_clean(json_string_value(v), clean, sizeof clean));
}

int run_files_found(struct run_request *r, const struct config *c, struct err *err)
{
    const char *preset;
    json_t *one;
    json_object_foreach((json_t *)(uintptr_t)config_found(c), preset, one)
    {
        const char *file = json_string_value(json_object_get(one, "file"));
        const char *text = json_string_value(json_object_get(one, "text"));
        if (json_object_get(json_object_get(one, "policies"), r->policy) == NULL)
            continue;
        tell_notes(preset, json_object_get(one, "notes"));
        if (*file && *text && run_files_add(r, INSIDE_WRITE_NEW, file, text, err) < 0)
            return -1;
    }
    return 0;
}
