/* What a rule's `refs` say of a push: each of its commands, and whether its pack has to show that
 * it rewrites nothing. */
#ifndef DURWARD_PUSH_JUDGE_H
#define DURWARD_PUSH_JUDGE_H

#include "inspect.h"

/* body: what is there of it, from its beginning; whole: that is all. ret->pack with INSPECT_PASS:
 * if its pack shows that every update is a fast-forward (push_judge_pack). */
enum inspect_answer push_judge(const struct inspection *in, struct slice body, bool whole,
                               struct inspect_result *ret);
/* A whole push of which ret->pack was said. */
enum inspect_answer push_judge_pack(struct slice body, struct inspect_result *ret);
/* The same, of one too large to be held. */
enum inspect_answer push_judge_large(struct inspect_result *ret);

#endif
