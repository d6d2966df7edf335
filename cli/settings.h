/* The configuration as commands find it. */
#ifndef DURWARD_SETTINGS_H
#define DURWARD_SETTINGS_H

#include "config.h"

/* `file` from -c, or NULL: the first that exists of config_find(). NULL with err otherwise. */
struct config *settings_load(const char *file, struct err *err);
/* The policy of this name, or with NULL the only one. NULL with err that lists them. */
const char *settings_policy(const struct config *c, const char *name, struct err *err);

#endif
