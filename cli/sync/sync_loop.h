/* Watches both sides and works until it is stopped, or, with `once`, until nothing is left to do.
 */
#ifndef DURWARD_SYNC_LOOP_H
#define DURWARD_SYNC_LOOP_H

#include "sync_engine.h"

/* 0, or -1 with e->err: it cannot go on. */
int sync_loop(struct sync *e);

#endif
