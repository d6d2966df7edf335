/* What the parent sees delivered: notices of thresholds and checkpoints for the anchor, each to one
 * place, tried again with growing pauses, in memory that is bounded. A delivery is one at least:
 * when the courier dies with one in hand, it goes out again. */
#ifndef DURWARD_DELIVERY_H
#define DURWARD_DELIVERY_H

#include "parent.h"

enum { DELIVERIES_MAX = 256, DELIVERY_TRIES = 8, DELIVERY_TEXT_MAX = 4096 };

enum sink { SINK_WEBHOOK = 0, SINK_COMMAND, SINK_SYSLOG, SINK_ANCHOR, SINKS };

/* sandbox: whom the log names beside what came of it. Beyond DELIVERIES_MAX it is counted as lost.
 */
void delivery_add(struct parent *p, enum sink s, const char *sandbox, const char *text);
int delivery_carried(struct child *courier, struct msg *m); /* W_CARRIED */
/* The courier was started (again): what the one before had in hand goes out again. */
void delivery_courier_ready(struct parent *p);
bool delivery_reaped(struct parent *p, pid_t pid, int status);
/* Turn the loop until nothing is under way, at most so long. What is left is lost. */
void delivery_finish(struct parent *p, unsigned ms);

#endif
