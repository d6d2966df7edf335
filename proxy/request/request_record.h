/* What of a request stands in its record, the same in the gate's and in the injector's. */
#ifndef DURWARD_REQUEST_RECORD_H
#define DURWARD_REQUEST_RECORD_H

#include "authority.h"
#include "http_head.h"
#include "record.h"

/* All borrowed; texts may be NULL or "". */
struct request_record {
    const struct authority *authority; /* NULL: it is not known */
    const struct head *head;
    bool hides_path, hides_query;        /* a placeholder stands there, which no record has */
    struct slice shown_path;             /* what is said of such a path; n 0: nothing */
    bool hides_command;                  /* the query gets a credential, which no command has */
    const struct kube_terms *kubernetes; /* of its rule; NULL: it is not asked of a cluster */
    const char *rule, *credential, *entry;
    const char *sandbox, *policy; /* where the channel to the logger does not say them */
};

/* Begins the record of this kind with what is known of the request; of its query the names alone.
 */
void request_record(struct record *r, enum record_kind kind, uint64_t counter,
                    const struct request_record *q);

#endif
