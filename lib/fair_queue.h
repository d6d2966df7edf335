/* Who waits for what several owners share: each owner's first come first, and owners by turns, so
 * that a crowd of one's costs another no more than its turn. An owner "A|B" is B of A: the As take
 * turns, and within each its Bs. How many may wait is bounded as a quota is, whose owners are the
 * As. So an A that chooses its Bs itself gains nothing by naming many. */
#ifndef DURWARD_FAIR_QUEUE_H
#define DURWARD_FAIR_QUEUE_H

#include "quota.h"

#include <sys/queue.h>

struct fair_owner;
struct fair_group;

struct fair_queue {
    struct quota quota;
    TAILQ_HEAD(fair_groups, fair_group) groups; /* whose turn it is first */
};

/* One that waits; zeroed: it does not. */
struct fair_item {
    struct fair_owner *owner;
    struct quota_part part;
    void *self; /* whose it is */
    TAILQ_ENTRY(fair_item) link;
};

void fair_queue_init(struct fair_queue *q, size_t total, size_t each);
enum quota_end fair_queue_add(struct fair_queue *q, struct fair_item *i, struct slice owner,
                              void *self) WUNUSED;
void fair_queue_leave(struct fair_item *i); /* fine if it does not wait */
bool fair_queue_has(const struct fair_queue *q, struct slice owner);
/* The next that may; it waits no more. NULL: none of those looked at. Of each A so many owners are
 * looked at, others the next time. */
struct fair_item *fair_queue_next(struct fair_queue *q,
                                  bool (*may)(void *arg, const struct fair_item *i), void *arg);

#endif
