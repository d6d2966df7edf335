/* Holds the pack of a push against "fast-forwards alone"; apart from its commands, so that who
 * reads only those is not linked with zlib. */
#include "pack.h"
#include "push_judge.h"

#include <stdio.h>

static enum inspect_answer refuse(struct inspect_result *ret, const char *why)
{
    ret->status = 403;
    ret->code = "ref";
    snprintf(ret->detail, sizeof ret->detail, "%s", why);
    return INSPECT_REFUSED;
}

enum inspect_answer push_judge_pack(struct slice body, struct inspect_result *ret)
{
    struct push p;
    enum pack_answer a = PACK_BAD;
    if (push_read(body, &p) == 1 && p.end <= body.n)
        a = pack_shows((struct slice){body.p + p.end, body.n - p.end}, &p);
    if (a == PACK_SHOWN)
        return INSPECT_PASS;
    return refuse(ret,
                  a == PACK_BAD ? "the pack cannot be read" : "not shown to be a fast-forward");
}

enum inspect_answer push_judge_large(struct inspect_result *ret)
{
    return refuse(ret, "too large to show that it is a fast-forward");
}
