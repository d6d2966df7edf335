/* Who watches the log as it is written: the controller, for the console, and the courier, for OTLP.
 * Lines go out as they stand in the file, once they are in it. A watcher that is slow is passed
 * over and told exactly how much it missed; the logger never waits for one. The last lines are
 * kept, for whoever comes. */
#ifndef DURWARD_AUDIENCE_H
#define DURWARD_AUDIENCE_H

#include "ipc.h"
#include "record.h"

enum {
    AUDIENCE_KEPT = 2 << 20,   /* bytes of lines */
    AUDIENCE_CHUNK = 64 << 10, /* of lines in one message; a longer line goes alone */
    AUDIENCE_BEHIND = 1 << 20, /* bytes that may wait in a watcher's channel */
};

enum audience_part { AUDIENCE_LIVE = 0, AUDIENCE_KEPT_PART = 1, AUDIENCE_KEPT_END = 2 };

/* Of W_WATCHED. */
struct watched {
    uint8_t part;                   /* enum audience_part */
    uint64_t skipped[RECORD_KINDS]; /* by kind, since the watching began */
    struct slice lines;             /* whole ones, newlines included */
};

struct audience;

struct audience *audience_new(struct slice public_key);      /* 32 bytes; told to watchers */
void audience_free(struct audience *a);                      /* NULL is fine */
void audience_lines(struct audience *a, struct slice lines); /* they are in the file now */
/* From now on, and, if so wished, first of all what is kept. Two at a time: a third takes the place
 * of one. */
void audience_watch(struct audience *a, struct ipc *ch, bool kept);
void audience_leave(struct audience *a, const struct ipc *ch); /* it may be somebody else's */

/* How many of each kind. */
void audience_tally(struct slice lines, uint64_t kinds[RECORD_KINDS]);
/* The longest beginning of whole lines within max bytes; the first line alone when it is longer. */
struct slice audience_cut(struct slice lines, size_t max);
/* The other end. -1: malformed. lines and key point into m. */
int audience_get(struct msg *m, struct watched *w, struct slice *key);

#endif
