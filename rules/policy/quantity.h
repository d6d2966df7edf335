/* Sizes and times as a configuration writes them: "64MB", "15m". -1 with a message that says what
 * one looks like. */
#ifndef DURWARD_QUANTITY_H
#define DURWARD_QUANTITY_H

#include "node.h"

/* KB, MB, GB, TB: decimal units, as disks are sold; at most 2^50 bytes. */
int quantity_bytes(const struct node *n, uint64_t *ret, struct err *err);
/* Seconds of "90s", "15m", "1h"; at most a day. */
int quantity_duration(const struct node *n, unsigned *ret, struct err *err);
/* The same with d for days, at most max seconds. */
int quantity_long_duration(const struct node *n, unsigned max, unsigned *ret, struct err *err);

#endif
