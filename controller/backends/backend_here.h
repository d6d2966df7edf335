/* Which backends this host has the programs for: asked before a sandbox is made, and by who reads a
 * configuration that names one. */
#ifndef DURWARD_BACKEND_HERE_H
#define DURWARD_BACKEND_HERE_H

#include "config.h"
#include "err.h"

/* 0, also of a backend that needs nothing beside bubblewrap; -1 with the remedy. */
int backend_here(enum config_backend b, struct err *err);

typedef void (*backend_absent_fn)(void *arg, const char *policy, enum config_backend b,
                                  const char *why);
/* Tells of each policy whose backend cannot run here. */
void backends_absent(const struct config *c, backend_absent_fn fn, void *arg);

#endif
