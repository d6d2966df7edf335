/* Connecting to the first of several addresses that answers (after RFC 8305): IPv6 and IPv4 take
 * turns, a new attempt starts every 250 ms or as soon as one has failed, the rest are dropped when
 * one is connected. Makes sockets; judges no address. */
#ifndef DURWARD_RACE_H
#define DURWARD_RACE_H

#include "address.h"

struct event_base;
struct race;

enum { RACE_ATTEMPTS = 8, RACE_STAGGER_MS = 250 };

/* fd >= 0: a connected, non-blocking, close-on-exec socket, the callback's to close; a is the
 * address it was connected to. fd < 0: every attempt failed, error is the errno of the last. */
typedef void (*race_fn)(void *arg, int fd, const struct address *a, int error);

/* The list (n >= 1; beyond RACE_ATTEMPTS is left out, of each family its last) is copied. fn is
 * never called before this returns. NULL when memory is out. */
struct race *race_new(struct event_base *base, const struct address *list, size_t n, race_fn fn,
                      void *arg);
void race_cancel(struct race *r); /* fn will not run */

#endif
