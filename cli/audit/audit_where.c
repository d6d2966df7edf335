/* Finds the audit directory: the one that was given, else that of the daemon which --socket names,
 * else the configuration's. Refuses a daemon on another host. */
#include "audit_where.h"

#include "api_client.h"
#include "api_remote.h"
#include "commands.h"
#include "out.h"
#include "paths.h"
#include "settings.h"

#include <stdlib.h>
#include <string.h>

static char *configured_dir(const char *config, struct err *err)
{
    struct config *c = NULL;
    char *found = config ? NULL : config_find(NULL);
    if ((config || found) && (c = config_load(config ? config : found, err)) == NULL) {
        free(found);
        return NULL;
    }
    free(found);
    const char *dir = c ? config_audit_dir(c) : NULL;
    char *r = dir ? strdup(dir) : paths_audit_dir(err);
    config_unref(c);
    return r;
}

/* The daemon that was named knows where it writes. */
static char *daemon_dir(const char *socket, struct err *err)
{
    json_t *status;
    if (remote_is(socket)) {
        err_set(err, ERR_DENIED, "the log of %s lies on its host; read it there, or say --dir",
                socket);
        return NULL;
    }
    if (api_call(socket, "GET", "/v1/status", NULL, &status, err) < 0)
        return NULL;
    const char *dir = json_string_value(json_object_get(status, "audit_dir"));
    char *r = dir && *dir ? strdup(dir) : NULL;
    if (r == NULL)
        err_set(err, ERR_UPSTREAM, "the daemon does not say where its log is; say --dir or -c");
    json_decref(status);
    return r;
}

char *audit_where_dir(const struct args *a, const struct audit_where *w, int *code)
{
    struct err err = {0};
    int left = a->argc - a->next;
    if (left > 1 || (left == 1 && w->dir)) {
        *code = args_usage(a->cmd, "only one directory, not also %s", a->argv[a->argc - 1]);
        return NULL;
    }
    const char *given = left ? a->argv[a->next] : w->dir;
    char *r = given                     ? strdup(given)
              : a->socket && !w->config ? daemon_dir(a->socket, &err)
                                        : configured_dir(w->config, &err);
    if (r == NULL) {
        out_error("%s", err.text);
        *code = EXIT_NO;
    }
    return r;
}
