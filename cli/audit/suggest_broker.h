/* suggest.c's part for what brokers carry (broker/). */
#ifndef DURWARD_SUGGEST_BROKER_H
#define DURWARD_SUGGEST_BROKER_H

#include <jansson.h>

#include "query.h"

/* A denial that a rule of theirs could have allowed: its pattern is host and path (which is r's, or
 * ""), and *more what the rule says beside `with`. The caller's. False: it is none. */
bool suggest_broker(const struct query_row *r, char *host, size_t size, const char **path,
                    json_t **more);
void suggest_broker_join(json_t *into, const json_t *more);

#endif
