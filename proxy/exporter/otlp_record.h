/* Lines of the audit log as OTLP says it (OTLP 1.5, JSON encoding): each record a log record, each
 * request that ended a span with a child for every step that took its time.
 *
 * A trace is one request. Its numbers come from the log's public key and the request's id, so that
 * whoever has the log can find the trace, and none needs to be remembered. */
#ifndef DURWARD_OTLP_RECORD_H
#define DURWARD_OTLP_RECORD_H

#include "slice.h"

#include <jansson.h>

enum { OTLP_SPANS = 5, OTLP_OPEN = 4096 };

struct otlp_ids {
    char key[32];   /* of the log */
    json_t **begun; /* OTLP_OPEN admitted records, each where its id's hash says */
};

int otlp_ids_init(struct otlp_ids *ids); /* -1: out of memory */
void otlp_ids_done(struct otlp_ids *ids);

/* A new object; NULL: memory is out. */
json_t *otlp_log(const struct otlp_ids *ids, const json_t *record);
/* An admitted record is kept for its end; what is kept of another one in its place goes. An end
 * gives the request's span and its children: how many. */
size_t otlp_spans(struct otlp_ids *ids, json_t *record, json_t *ret[OTLP_SPANS]);

#endif
