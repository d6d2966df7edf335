/* One request to the daemon's API over its unix socket, blocking, with time-outs. The socket's
 * owner is checked by peer credentials: only a daemon of this user or of root is believed. */
#ifndef DURWARD_API_CLIENT_H
#define DURWARD_API_CLIENT_H

#include <jansson.h>

#include "err.h"

enum { API_TIMEOUT_SECONDS = 30 };

/* socket: NULL for this user's default path. body: may be NULL; not consumed. On success *ret is
 * the reply's JSON value (caller decrefs). A reply other than 2xx is an error with the daemon's own
 * message; ERR_UNREADY when no daemon answers at the socket. */
int api_call(const char *socket, const char *method, const char *path, const json_t *body,
             json_t **ret, struct err *err);

#endif
