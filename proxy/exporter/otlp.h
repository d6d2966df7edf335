/* The audit log as it is written, to an OTLP receiver (OTLP/HTTP, JSON): log records and spans in
 * batches, one on its way of each sort. What waits is bounded; what finds no room, or what the
 * receiver does not take after some tries, is dropped and counted (METER_EXPORT_DROPPED). It never
 * holds anything up: the log is what counts. */
#ifndef DURWARD_OTLP_H
#define DURWARD_OTLP_H

#include "fetch.h"

struct otlp;
struct watched;

/* Each URL may be NULL: none of these. means outlives it. */
struct otlp *otlp_new(struct event_base *base, struct fetch_means *means, const char *logs,
                      const char *spans);
void otlp_free(struct otlp *o); /* NULL is fine */
/* What the logger tells those who watch. */
void otlp_watched(struct otlp *o, const struct watched *w, struct slice key);

#endif
