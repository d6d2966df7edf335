/* Never carries a deletion over a change, nor a change over another. */
#include "sync_decide.h"

/* Whatever the direction. */
static enum sync_action decide_both(enum sync_common common, enum sync_side_state here,
                                    enum sync_side_state inside, bool equal)
{
    if (here == SYNC_ABSENT && inside == SYNC_ABSENT)
        return common == SYNC_NONE ? SYNC_NOTHING : SYNC_FORGET;
    if (here == SYNC_ABSENT)
        return common == SYNC_COMMON && inside == SYNC_SAME ? SYNC_DELETE_INSIDE : SYNC_RECEIVE;
    if (inside == SYNC_ABSENT)
        return common == SYNC_COMMON && here == SYNC_SAME ? SYNC_DELETE_HERE : SYNC_SEND;
    if (common == SYNC_COMMON && here == SYNC_SAME)
        return inside == SYNC_SAME ? SYNC_NOTHING : SYNC_RECEIVE;
    if (common == SYNC_COMMON && inside == SYNC_SAME)
        return SYNC_SEND;
    return equal ? SYNC_NOTE : SYNC_CONFLICT;
}

/* What diverged stays so where one side is not written to, until somebody changes it again. */
static bool stays(enum sync_direction d, enum sync_side_state here, enum sync_side_state inside)
{
    return d == SYNC_OUT ? inside == SYNC_SAME
                         : d == SYNC_IN && here == SYNC_SAME && inside == SYNC_SAME;
}

enum sync_action sync_decide(enum sync_direction d, enum sync_common common,
                             enum sync_side_state here, enum sync_side_state inside, bool equal)
{
    enum sync_action a = decide_both(common, here, inside, equal);
    if (d == SYNC_IN && (a == SYNC_RECEIVE || a == SYNC_DELETE_HERE))
        return SYNC_NOTHING;
    if (d == SYNC_OUT && (a == SYNC_SEND || a == SYNC_DELETE_INSIDE))
        return SYNC_NOTHING;
    if (a == SYNC_CONFLICT && common == SYNC_DIVERGED && stays(d, here, inside))
        return SYNC_NOTHING;
    return a;
}
