/* Holds the commands of a push against a rule's `refs`. */
#include "push_judge.h"

#include "push.h"

#include <stdio.h>

static enum inspect_answer refuse(struct inspect_result *ret, unsigned status, const char *code,
                                  const char *why, struct slice ref)
{
    ret->status = status;
    ret->code = code;
    snprintf(ret->detail, sizeof ret->detail, "%s%s%.*s", why, ref.n ? " " : "",
             (int)(ref.n < 100 ? ref.n : 100), ref.p);
    return INSPECT_REFUSED;
}

static bool listed(const struct inspection *in, struct slice ref)
{
    for (size_t i = 0; i < in->refs.n; i++)
        if (push_ref_matches(in->refs.list[i], ref))
            return true;
    return false;
}

enum inspect_answer push_judge(const struct inspection *in, struct slice body, bool whole,
                               struct inspect_result *ret)
{
    struct push p;
    int r = push_read(body, &p);
    if (r < 0 || (r == 0 && whole))
        return refuse(ret, 400, "body_ambiguous", "push", SLICE(""));
    if (r == 0)
        return INSPECT_MORE;
    for (size_t i = 0; i < p.n; i++) {
        const struct push_command *c = &p.commands[i];
        bool fresh = push_id_is_zero(c->old_id), gone = push_id_is_zero(c->new_id);
        if (!listed(in, c->ref))
            return refuse(ret, 403, "ref", "not allowed:", c->ref);
        if (gone && !in->deletes)
            return refuse(ret, 403, "ref", "delete of", c->ref);
        ret->pack = ret->pack || (!fresh && !gone && !in->force);
    }
    return INSPECT_PASS;
}
