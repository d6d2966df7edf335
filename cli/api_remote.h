/* The API of a daemon elsewhere, over TLS: https://HOST[:PORT] in place of a socket's path. The
 * daemon's certificate is verified with $DURWARD_CA (a file), else with the system's roots; who
 * asks is said by $DURWARD_TOKEN, or by the file $DURWARD_TOKEN_FILE, which nobody else may read.
 */
#ifndef DURWARD_API_REMOTE_H
#define DURWARD_API_REMOTE_H

#include "buf.h"
#include "err.h"

bool remote_is(const char *where); /* NULL is fine */
/* A descriptor that is read and written in clear; a thread of ours carries the bytes. */
int remote_open(const char *where, struct err *err);
/* The Host and Authorization lines of a request. */
int remote_head(const char *where, struct buf *b, struct err *err);

#endif
