/* Writes a login's file under the lock that the vault's refresh takes, too. */
#define _GNU_SOURCE 1
#include "login_keep.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "login_file.h"
#include "login_lock.h"
#include "paths.h"

bool login_name_ok(const char *name)
{
    size_t n = strlen(name);
    return n > 0 && n <= LOGIN_KEPT_NAME_MAX && name[0] != '-' && name[0] != '_' &&
           strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-_") == n;
}

char *login_folder(bool make, struct err *err)
{
    char *state = paths_user_state_dir(err);
    char *dir = state ? paths_join(state, "mcp") : NULL;
    if (dir && make && (paths_make_private(state, err) < 0 || paths_make_private(dir, err) < 0)) {
        free(dir);
        dir = NULL;
    }
    free(state);
    return dir;
}

json_t *login_object(const struct login_server *s, const struct login_client *c,
                     const json_t *tokens)
{
    int64_t life = login_life(tokens);
    const char *place = s->at.text + strlen("https://");
    json_t *v =
        json_pack("{s:s, s:s, s:s, s:s, s:s, s:{s:s, s:s}, s:O, s:O*}", "server", place, "resource",
                  s->resource.text, "issuer", s->issuer, "token_url", s->token.text, "scope",
                  s->scope, "client", "id", c->id, "auth", login_auth_name(c->auth), "access",
                  json_object_get(tokens, "access_token"), "refresh",
                  json_is_string(json_object_get(tokens, "refresh_token"))
                      ? json_object_get(tokens, "refresh_token")
                      : NULL);
    if (v == NULL)
        abort(); /* memory is out */
    if (c->secret[0] &&
        json_object_set_new(json_object_get(v, "client"), "secret", json_string(c->secret)) < 0)
        abort();
    if (life > 0 &&
        json_object_set_new(v, "expires", json_integer((json_int_t)time(NULL) + life)) < 0)
        abort();
    return v;
}

int login_keep(const char *name, const json_t *login, char **path, struct err *err)
{
    char *dir = login_folder(true, err), *lock = NULL;
    *path = NULL;
    if (dir == NULL)
        return -1;
    if (asprintf(path, "%s/%s.json", dir, name) < 0 || asprintf(&lock, "%s.lock", *path) < 0)
        abort(); /* memory is out */
    free(dir);
    int r = login_lock_take(lock, err);
    if (r == 0)
        r = err_set(err, ERR_UNREADY,
                    "the login '%s' is being refreshed by a sandbox's vault; try again", name);
    char *text = r < 0 ? NULL : json_dumps(login, JSON_INDENT(2));
    if (r == 1) {
        r = text ? login_file_replace(*path, NULL, slice_str(text), err)
                 : err_set(err, ERR_INTERNAL, "out of memory");
        rmdir(lock);
    }
    if (text)
        explicit_bzero(text, strlen(text));
    free(text);
    free(lock);
    if (r < 0) {
        free(*path);
        *path = NULL;
    }
    return r;
}
