/* The configuration as commands find it. */
#ifndef DURWARD_SETTINGS_H
#define DURWARD_SETTINGS_H

#include "config.h"

/* `file` from -c, or NULL: the first that exists of config_find(). NULL with err otherwise. */
struct config *settings_load(const char *file, struct err *err);
/* The same; where there is none and `file` is NULL, *ret is NULL, which is no error. */
int settings_load_if_any(const char *file, struct config **ret, struct err *err);
/* The policy of this name, or with NULL the only one. NULL with err that lists them. */
const char *settings_policy(const struct config *c, const char *name, struct err *err);

#endif
