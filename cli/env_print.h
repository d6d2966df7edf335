/* The forms in which `durward env` prints variables. */
#ifndef DURWARD_ENV_PRINT_H
#define DURWARD_ENV_PRINT_H

#include <stdbool.h>

#include "err.h"
#include "strlist.h"

enum env_format {
    ENV_NO_FORMAT = 0,
    ENV_SHELL,        /* KEY='value', for eval */
    ENV_DOTENV,       /* KEY="value" with escapes */
    ENV_DOCKER,       /* KEY=value as it stands: docker run --env-file */
    ENV_JSON,         /* one object */
    ENV_ACTIONS,      /* for the file that $GITHUB_ENV names */
    ENV_COMPOSE,      /* a service's environment and volume */
    ENV_DEVCONTAINER, /* members of devcontainer.json */
};

#define ENV_FORMAT_NAMES "shell, dotenv, docker, json or github-actions"

/* ENV_NO_FORMAT when there is none of this name for --format. */
enum env_format env_format_named(const char *name);
/* from, to: the trust directory here and where the client finds it. -1 with err: a value that the
 * format cannot carry, or stdout cannot be written. */
int env_print(const struct strlist *env, enum env_format format, const char *from, const char *to,
              struct err *err);

#endif
