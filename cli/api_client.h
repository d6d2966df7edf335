/* One request to the daemon's API over its unix socket (or, where `socket` is https://HOST:PORT,
 * over TLS: api_remote.h), blocking, with time-outs. The socket's
 * owner is checked by peer credentials: only a daemon of this user or of root is believed. */
#ifndef DURWARD_API_CLIENT_H
#define DURWARD_API_CLIENT_H

#include <jansson.h>

#include "args.h"
#include "buf.h"
#include "err.h"

enum { API_TIMEOUT_SECONDS = 60 };

/* socket: NULL for this user's default path. body: may be NULL; not consumed. On success *ret is
 * the reply's JSON value (caller decrefs). A reply other than 2xx is an error with the daemon's own
 * message; ERR_UNREADY when no daemon answers at the socket. */
int api_call(const char *socket, const char *method, const char *path, const json_t *body,
             json_t **ret, struct err *err);

/* The same for a command: the answer as JSON where that was asked for, else shown by `print` (NULL:
 * nothing is). The exit code. */
int api_print(const struct args *a, const char *method, const char *path, const json_t *body,
              void (*print)(const json_t *reply));
void api_print_id(const json_t *reply);
void api_print_name(const json_t *reply);

/* The same, with an answer that takes as long as it takes: a command's end. */
int api_await(const char *socket, const char *method, const char *path, const json_t *body,
              json_t **ret, struct err *err);

struct api_request {
    const char *method, *path;
    const char *type;    /* of the body; NULL: JSON */
    const char *upgrade; /* the protocol to go on with, or NULL */
    bool patient;        /* the answer takes as long as it takes */
    const void *body;
    size_t n;
};

/* The same with bytes both ways: *body lies in `in`, which the caller frees (in any case). */
int api_bytes(const char *socket, const struct api_request *q, size_t max, struct buf *in,
              struct slice *body, struct err *err);
/* The same whatever the status is: -1 with err only where nobody answers, or no API does. */
int api_exchange(const char *socket, const struct api_request *q, size_t max, struct buf *in,
                 int *status, struct slice *body, struct err *err);
/* In steps: a connection whose peer was checked; a request on it; all of these bytes. */
int api_open(const char *socket, struct err *err);
int api_ask(const char *socket, int fd, const struct api_request *q, struct err *err);
int api_push(int fd, const void *p, size_t n, struct err *err);
/* The error that a reply other than 2xx says to what was asked at `path`, and, where nothing of
 * that id is there, the command that lists what is; always -1. */
int api_refused(int status, const char *path, struct slice body, struct err *err);
/* Percent-encoded for a query; on failure `to` is emptied. */
void api_quote(struct buf *to, const char *text);

#endif
