/* Records counted by kind, policy and code, for /metrics: the logger counts what it writes, so no
 * record is missed when its writer ends. Codes come from writers, which may be conquered: the table
 * is bounded, and what finds no room counts as policy "other", code "other". */
#ifndef DURWARD_COUNTS_H
#define DURWARD_COUNTS_H

#include "ipc_msg.h"
#include "record_read.h"
#include "render.h"

enum { COUNTS_MAX = 400, COUNTS_NAME_MAX = 64, COUNTS_CODE_MAX = 32 };

struct count {
    enum record_kind kind;
    char policy[COUNTS_NAME_MAX + 1]; /* "": its channel has none */
    char code[COUNTS_CODE_MAX + 1];   /* of a completed request "2xx" and so on; "" if none */
    uint64_t records, count;          /* count: what summary records add up to */
    uint64_t up, down;                /* bytes of bodies */
};

struct counts {
    size_t n;
    bool changed; /* since it was last put */
    struct count list[COUNTS_MAX + RECORD_KINDS];
};

void counts_note(struct counts *c, const struct record_view *v, const struct render_source *from);
void counts_put(struct msg *m, const struct counts *c);
/* Fills *c. -1: malformed. */
int counts_get(struct msg *m, struct counts *c);

#endif
