/* What is to be done about one path, of what both sides and the last common version say. A pure
 * function: tests/unit/test_sync_decide.c has all of its rows. */
#ifndef DURWARD_SYNC_DECIDE_H
#define DURWARD_SYNC_DECIDE_H

#include "compiler.h"

enum sync_direction { SYNC_BOTH, SYNC_IN, SYNC_OUT }; /* in: from the host into the sandbox */

/* Of a side, measured by the last common version; without one, what is there has changed. */
enum sync_side_state { SYNC_ABSENT, SYNC_SAME, SYNC_CHANGED };

enum sync_common {
    SYNC_NONE,    /* they never had a common version */
    SYNC_COMMON,  /* they had */
    SYNC_DIVERGED /* a conflict was kept: both are as they were noted, and differ */
};

enum sync_action {
    SYNC_NOTHING,
    SYNC_SEND,          /* the host's goes in */
    SYNC_RECEIVE,       /* the sandbox's comes out */
    SYNC_DELETE_INSIDE, /* it was deleted on the host */
    SYNC_DELETE_HERE,   /* it was deleted inside */
    SYNC_NOTE,          /* both have the same: that is the common version now */
    SYNC_FORGET,        /* neither has it any more */
    SYNC_CONFLICT       /* both changed it */
};

/* equal: both have the same bytes; asked only where both have changed, or have diverged. */
enum sync_action sync_decide(enum sync_direction d, enum sync_common common,
                             enum sync_side_state here, enum sync_side_state inside, bool equal);

#endif
