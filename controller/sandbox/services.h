/* A policy's `services`: programs in its sandboxes that listen on ports of theirs, by name. Whether
 * they answer is looked at when somebody asks, and at no other time: a connection, or a GET whose
 * status line alone is read. Of a sandbox that sleeps nothing is asked, and nothing wakes it. */
#ifndef DURWARD_SERVICES_H
#define DURWARD_SERVICES_H

#include <jansson.h>

#include "managed_sandbox.h"

enum { SERVICE_LOOK_SECONDS = 5, SERVICE_LOOKS_MAX = 32 /* at all sandboxes, at once */ };

/* fn, once and never from within: an array of {"name", "port", "health", "state", "detail",
 * "published", "preview"}, which is fn's. state: "healthy", "unhealthy" (it listens and does not
 * answer as it should), "closed" (nothing listens), "asleep". -1 with err: ERR_UNREADY when too
 * many are being looked at. */
typedef void (*services_fn)(void *arg, json_t *list);
int services_look(struct managed_sandbox *r, services_fn fn, void *arg, struct err *err);

#endif
