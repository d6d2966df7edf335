/* Who watches the log as it is written: the controller, for the console, and the exporter, for
 * OTLP. Lines go out as they stand in the file, once they are in it. A watcher that is slow is
 * passed over and told exactly how much it missed; the logger never waits for one. The last lines
 * are kept, for whoever comes. */
#ifndef DURWARD_SUBSCRIBERS_H
#define DURWARD_SUBSCRIBERS_H

#include "ipc.h"
#include "record.h"

enum {
    SUBSCRIBERS_KEPT = 2 << 20,   /* bytes of lines */
    SUBSCRIBERS_CHUNK = 64 << 10, /* of lines in one message; a longer line goes alone */
    SUBSCRIBERS_BEHIND = 1 << 20, /* bytes that may wait in a watcher's channel */
};

enum subscribers_part { SUBSCRIBERS_LIVE = 0, SUBSCRIBERS_KEPT_PART = 1, SUBSCRIBERS_KEPT_END = 2 };

/* Of W_WATCHED. */
struct watched {
    uint8_t part;                   /* enum subscribers_part */
    uint64_t skipped[RECORD_KINDS]; /* by kind, since the watching began */
    struct slice lines;             /* whole ones, newlines included */
};

struct subscribers;

struct subscribers *subscribers_new(struct slice public_key);      /* 32 bytes; told to watchers */
void subscribers_free(struct subscribers *a);                      /* NULL is fine */
void subscribers_lines(struct subscribers *a, struct slice lines); /* they are in the file now */
/* From now on, and, if so wished, first of all what is kept. Two at a time: a third takes the place
 * of one. */
void subscribers_watch(struct subscribers *a, struct ipc *ch, bool kept);
void subscribers_leave(struct subscribers *a, const struct ipc *ch); /* it may be somebody else's */

/* How many of each kind. */
void subscribers_count(struct slice lines, uint64_t kinds[RECORD_KINDS]);
/* The longest beginning of whole lines within max bytes; the first line alone when it is longer. */
struct slice subscribers_cut(struct slice lines, size_t max);
/* The other end. -1: malformed. lines and key point into m. */
int subscribers_get(struct msg *m, struct watched *w, struct slice *key);

#endif
