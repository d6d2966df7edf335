/* Records counted by kind, policy and code, for /metrics: the logger counts what it writes, so no
 * record is missed when its writer ends. Codes come from writers, which may be conquered: the table
 * is bounded, and shared by policies. While there is room each takes what it needs; then those with
 * more than their share give way, their rarest codes becoming code "other" of the same policy.
 * Names of policies are bounded too: beyond that, and where not even a policy's share has room,
 * records count as policy "other", code "other". Sums over the codes of a policy stay right. */
#ifndef DURWARD_COUNTS_H
#define DURWARD_COUNTS_H

#include "ipc_msg.h"
#include "record_read.h"
#include "render.h"

enum {
    COUNTS_MAX = 400,
    COUNTS_NAME_MAX = 64,
    COUNTS_CODE_MAX = 32,
    COUNTS_POLICIES = 128,
    COUNTS_NAMED = 64 /* of these by a field of the record: their writers could invent them */
};

struct count_policy {
    char name[COUNTS_NAME_MAX + 1];
    unsigned series; /* of it in the table */
};

struct count {
    enum record_kind kind;
    char policy[COUNTS_NAME_MAX + 1]; /* "": its channel has none */
    char code[COUNTS_CODE_MAX + 1];   /* of a completed request "2xx" and so on; "" if none */
    uint64_t records, count;          /* count: what summary records add up to */
    uint64_t up, down;                /* bytes of bodies */
    size_t owner;                     /* of policy[]; the counting side's only */
};

struct counts {
    size_t n;
    bool changed; /* since it was last put */
    struct count list[COUNTS_MAX + RECORD_KINDS];
    size_t n_policies; /* and these are the counting side's only; 0: "other", not made yet */
    struct count_policy policy[COUNTS_POLICIES];
};

void counts_note(struct counts *c, const struct record_view *v, const struct render_source *from);
void counts_put(struct msg *m, const struct counts *c);
/* Fills *c. -1: malformed. */
int counts_get(struct msg *m, struct counts *c);

#endif
