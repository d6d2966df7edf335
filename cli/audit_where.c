#include "audit_where.h"

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

char *audit_where_dir(const struct args *a, const struct audit_where *w, int *code)
{
    struct err err = {0};
    int left = a->argc - a->next;
    if (left > 1 || (left == 1 && w->dir)) {
        *code = args_usage(a->cmd, "only one directory, not also %s", a->argv[a->argc - 1]);
        return NULL;
    }
    const char *given = left ? a->argv[a->next] : w->dir;
    char *r = given ? strdup(given) : configured_dir(w->config, &err);
    if (r == NULL) {
        out_error("%s", err.text);
        *code = EXIT_NO;
    }
    return r;
}
