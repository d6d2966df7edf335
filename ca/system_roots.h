/* The host's own bundle of trusted roots: the first of the usual places that there is. */
#ifndef DURWARD_SYSTEM_ROOTS_H
#define DURWARD_SYSTEM_ROOTS_H

#include "compiler.h"

enum { ROOTS_FILE_MAX = 8 << 20 };

/* A constant path, or NULL when this host has none. */
const char *system_roots_path(void);

#endif
