/* Loads the configuration that a command works with and picks a policy of it; an error lists the
 * policies that there are. */
#include "settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct config *settings_load(const char *file, struct err *err)
{
    char *found = NULL;
    if (file == NULL && (file = found = config_find(err)) == NULL)
        return NULL;
    struct config *c = config_load(file, err);
    free(found);
    return c;
}

static void list_policies(const struct config *c, char *out, size_t size)
{
    size_t at = 0;
    out[0] = 0;
    for (size_t i = 0; i < config_policies(c) && at < size; i++)
        at +=
            (size_t)snprintf(out + at, size - at, "%s%s", i ? ", " : "", config_policy_name(c, i));
}

const char *settings_policy(const struct config *c, const char *name, struct err *err)
{
    char known[512];
    size_t n = config_policies(c);
    if (name == NULL && n == 1)
        return config_policy_name(c, 0);
    for (size_t i = 0; name && i < n; i++)
        if (strcmp(config_policy_name(c, i), name) == 0)
            return config_policy_name(c, i);
    list_policies(c, known, sizeof known);
    if (n == 0)
        err_set(err, ERR_UNREADY, "the configuration has no policies");
    else if (name == NULL)
        err_set(err, ERR_UNREADY, "there are several policies; choose one with --policy: %s",
                known);
    else
        err_set(err, ERR_UNREADY, "there is no policy '%s'; there are: %s", name, known);
    return NULL;
}

int settings_load_if_any(const char *file, struct config **ret, struct err *err)
{
    char *found = file ? NULL : config_find(NULL);
    *ret = NULL;
    if (file == NULL && found == NULL)
        return 0;
    free(found);
    *ret = settings_load(file, err);
    return *ret ? 0 : -1;
}
