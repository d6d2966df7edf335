/* What the parent sees delivered: notices of thresholds and checkpoints for the anchor, each to one
 * place, tried again with growing pauses, in memory that is bounded. A delivery is one at least:
 * when the exporter dies with one in hand, it goes out again. */
#ifndef DURWARD_NOTICE_QUEUE_H
#define DURWARD_NOTICE_QUEUE_H

#include "parent.h"

enum { NOTICES_MAX = 256, NOTICE_QUEUE_TRIES = 8, NOTICE_QUEUE_TEXT_MAX = 4096 };

enum sink { SINK_WEBHOOK = 0, SINK_COMMAND, SINK_SYSLOG, SINK_ANCHOR, SINKS };

/* sandbox: whom the log names beside what came of it. Beyond NOTICES_MAX it is counted as lost.
 */
void notice_queue_add(struct parent *p, enum sink s, const char *sandbox, const char *text);
int notice_queue_carried(struct child *exporter, struct msg *m); /* W_CARRIED */
/* The exporter was started (again): what the one before had in hand goes out again. */
void notice_queue_exporter_ready(struct parent *p);
bool notice_queue_reaped(struct parent *p, pid_t pid, int status);
/* Turn the loop until nothing is under way, at most so long. What is left is lost. */
void notice_queue_finish(struct parent *p, unsigned ms);

#endif
