/* Copies one descriptor into another on the event loop, with a bounded buffer. Needs a base that
 * takes any descriptor (poll or select, not epoll). Leaves the descriptors' flags alone: those of a
 * terminal are shared with the shell that started us. */
#ifndef DURWARD_PUMP_H
#define DURWARD_PUMP_H

#include "compiler.h"

struct event_base;
struct pump;

/* ended: the source is at its end and all is written, or the destination takes no more. Not called
 * by pump_free. Owned descriptors are closed when the pump is freed or has ended. */
typedef void (*pump_done_fn)(void *arg, struct pump *p);

struct pump *pump_new(struct event_base *base, int from, bool own_from, int to, bool own_to,
                      pump_done_fn done, void *arg);
void pump_free(struct pump *p); /* NULL is fine; safe inside its callback */

/* Copy nothing for a while; go on. NULL is fine. */
void pump_pause(struct pump *p);
void pump_resume(struct pump *p);

#endif
