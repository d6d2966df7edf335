/* Suppressions: findings that somebody has looked at, and that notices and the console's first view
 * leave out until a date. The log has all of them all the same: the logger asks here only for what
 * it counts towards a threshold that does no more than notify.
 *
 * A finding is a refusal: a record of kind denied, dns, packet or tls_refused. What became of a
 * request that was let through is none. console/suppressions.js says the same for the page. */
#ifndef DURWARD_SUPPRESSION_H
#define DURWARD_SUPPRESSION_H

#include "ipc_msg.h"
#include "record_read.h"
#include "render.h"

enum {
    SUPPRESSIONS_MAX = 64, /* at a time: all of them go in one message */
    SUPPRESSION_NAME_MAX = 64,
    SUPPRESSION_CODE_MAX = 40,
    SUPPRESSION_HOST_MAX = 255,
    SUPPRESSION_METHOD_MAX = 23,
    SUPPRESSION_PATH_MAX = 255,
};

/* "" of method, path and sandbox: any. */
struct suppression {
    char policy[SUPPRESSION_NAME_MAX + 1];
    char code[SUPPRESSION_CODE_MAX + 1]; /* of the record; where that has none, its kind */
    char host[SUPPRESSION_HOST_MAX + 1]; /* or "*.NAME": what is below NAME; without port 80, 443 */
    char method[SUPPRESSION_METHOD_MAX + 1];
    char path[SUPPRESSION_PATH_MAX + 1]; /* with "/" and two stars at its end: all that is below */
    char sandbox[SUPPRESSION_NAME_MAX + 1];
    int64_t expires; /* seconds since 1970 */
};

struct suppressions {
    size_t n;
    struct suppression list[SUPPRESSIONS_MAX];
};

/* Is it narrow enough, and can it ever fit a record? */
int suppression_check(const struct suppression *s, struct err *err);
/* now: seconds since 1970. */
bool suppressions_fit(const struct suppressions *all, const struct record_view *v,
                      const struct render_source *from, int64_t now);

void suppressions_put(const struct suppressions *all, struct msg *m);
int suppressions_get(struct suppressions *all, struct msg *m); /* 0, or -1: malformed */

#endif
