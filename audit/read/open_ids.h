/* The ids of one channel, for P4: each is begun once (admitted or denied), and each admitted one is
 * ended once. Memory is bounded: at most OPEN_IDS_MAX open ones, and for "begun already" a window
 * over the latest OPEN_IDS_WINDOW counters; a beginning below the window counts as a second one
 * (writers begin an id soon after they took its counter). */
#ifndef DURWARD_OPEN_IDS_H
#define DURWARD_OPEN_IDS_H

#include "compiler.h"

enum { OPEN_IDS_MAX = 65536, OPEN_IDS_WINDOW = 32768 };

struct open_ids;

enum open_ids_result {
    OPEN_IDS_OK,
    OPEN_IDS_SECOND,  /* begun before, or ended before */
    OPEN_IDS_UNKNOWN, /* an end of what was never admitted */
    OPEN_IDS_FULL,    /* no room for another open id */
};

struct open_ids *open_ids_new(void);
void open_ids_free(struct open_ids *o);
/* opens: admitted (an end must follow), else denied. */
enum open_ids_result open_ids_begin(struct open_ids *o, uint64_t counter, bool opens);
enum open_ids_result open_ids_end(struct open_ids *o, uint64_t counter);
size_t open_ids_count(const struct open_ids *o);
/* Any open id, 0 when there is none. */
uint64_t open_ids_any(struct open_ids *o);

#endif
