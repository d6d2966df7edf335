/* Prints variables so that what reads them gets each value as it is: every form has its own
 * quoting, and a value that a form cannot carry is refused. */
#include "env_print.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "compiler.h"
#include "out.h"
#include "slice.h"

enum env_format env_format_named(const char *name)
{
    static const char *const names[] = {[ENV_SHELL] = "shell",
                                        [ENV_DOTENV] = "dotenv",
                                        [ENV_DOCKER] = "docker",
                                        [ENV_JSON] = "json",
                                        [ENV_ACTIONS] = "github-actions"};
    for (size_t i = ENV_SHELL; i < ARRAY_LEN(names); i++)
        if (strcmp(names[i], name) == 0)
            return (enum env_format)i;
    return ENV_NO_FORMAT;
}

static bool name_ok(const char *pair, size_t n)
{
    if (n == 0 || (pair[0] >= '0' && pair[0] <= '9'))
        return false;
    for (size_t i = 0; i < n; i++)
        if (!ascii_is_alnum(pair[i]) && pair[i] != '_')
            return false;
    return true;
}

/* KEY='value', with ' as '\'': safe in every POSIX shell, whatever the value holds. */
static void put_shell(const char *pair, size_t n)
{
    printf("%.*s='", (int)n, pair);
    for (const char *p = pair + n + 1; *p; p++)
        if (*p == '\'')
            fputs("'\\''", stdout);
        else
            putchar(*p);
    fputs("'\n", stdout);
}

static void put_dotenv(const char *pair, size_t n)
{
    printf("%.*s=\"", (int)n, pair);
    for (const char *p = pair + n + 1; *p; p++)
        if (*p == '\n')
            fputs("\\n", stdout);
        else
            printf(strchr("\"\\$`", *p) ? "\\%c" : "%c", *p);
    fputs("\"\n", stdout);
}

/* JSON is YAML too; in compose files a dollar is doubled. */
static void put_compose(const char *pair, size_t n)
{
    json_t *v = json_string(pair + n + 1);
    char *text = v ? json_dumps(v, JSON_ENCODE_ANY) : NULL;
    printf("      %.*s: ", (int)n, pair);
    for (const char *p = text ? text : "\"\""; *p; p++)
        printf(*p == '$' ? "$%c" : "%c", *p);
    putchar('\n');
    free(text);
    json_decref(v);
}

static int put_plain(const char *pair, size_t n, enum env_format format, struct err *err)
{
    if (strchr(pair + n, '\n'))
        return err_set(err, ERR_DENIED, "%.*s has several lines, which this form cannot carry",
                       (int)n, pair);
    bool token = format == ENV_ACTIONS && strstr(pair + n, "://");
    if (token) /* the runner's own word for "do not show this in logs" */
        fprintf(stderr, "::add-mask::%s\n", pair + n + 1);
    printf("%s\n", pair);
    return 0;
}

static json_t *as_object(const struct strlist *env)
{
    json_t *v = json_object();
    for (size_t i = 0; i < env->n; i++) {
        size_t n = strcspn(env->v[i], "=");
        if (name_ok(env->v[i], n))
            json_object_setn_new(v, env->v[i], n, json_string(env->v[i] + n + 1));
    }
    return v;
}

static int put_devcontainer(const struct strlist *env, const char *from, const char *to)
{
    json_t *mount = json_sprintf("source=%s,target=%s,type=bind,readonly", from, to);
    return out_json(json_pack("{s:o, s:[o]}", "containerEnv", as_object(env), "mounts", mount));
}

static int put_pairs(const struct strlist *env, enum env_format format, struct err *err)
{
    int r = 0;
    for (size_t i = 0; r == 0 && i < env->n; i++) {
        const char *pair = env->v[i];
        size_t n = strcspn(pair, "=");
        if (!name_ok(pair, n))
            continue;
        if (format == ENV_SHELL)
            put_shell(pair, n);
        else if (format == ENV_DOTENV)
            put_dotenv(pair, n);
        else if (format == ENV_COMPOSE)
            put_compose(pair, n);
        else
            r = put_plain(pair, n, format, err);
    }
    return r;
}

int env_print(const struct strlist *env, enum env_format format, const char *from, const char *to,
              struct err *err)
{
    int r;
    if (format == ENV_JSON)
        r = out_json(as_object(env));
    else if (format == ENV_DEVCONTAINER)
        r = put_devcontainer(env, from, to);
    else {
        if (format == ENV_COMPOSE)
            printf("services:\n  SERVICE:\n    volumes: [\"%s:%s:ro\"]\n    environment:\n", from,
                   to);
        r = put_pairs(env, format, err);
    }
    return r < 0 || out_flush() < 0 ? -1 : 0;
}
