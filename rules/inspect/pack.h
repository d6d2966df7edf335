/* Does a pack show that one commit descends from another? Its commits are read, undeltified and
 * named by their hash; nothing is written and nothing outside the pack is known. */
#ifndef DURWARD_PACK_H
#define DURWARD_PACK_H

#include "push.h"

enum pack_answer { PACK_SHOWN = 0, PACK_NOT_SHOWN, PACK_BAD };

enum {
    PACK_COMMITS = 4096,
    PACK_COMMIT_MAX = 64 * 1024,
    PACK_LOOKED_MAX = 1 << 28,     /* commits that are looked at, in all searches of one pack */
    PACK_INFLATED_MAX = 128 << 20, /* of one pack: what cannot be told within it is not shown */
};

/* Every update of an existing reference in the push goes to a descendant of what it was. pack: from
 * "PACK" to its end. */
enum pack_answer pack_shows(struct slice pack, const struct push *p);

#endif
